/**
 * Blocks of ggml, written by their definition: from codes, scales and minima to bytes, and to the
 * numbers that they stand for. ggml-common.h and quantize_row_*_ref() of ggml-quants.c have the
 * places of the bits, at commit 01243c5 of ggml-org/llama.cpp.
 */
import type { Random } from '../support/random.js';

const f32 = Math.fround;

/** The number of a float16. */
export function numberOfHalf(code: number): number {
  const [sign, exponent, fraction] = [code & 0x8000 ? -1 : 1, (code >> 10) & 31, code & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** float16: zeros, the least, subnormal, 1, the largest, infinities, NaN. */
const corners = [
  ...[0, 0x8000, 1, 0x8001, 0x3ff, 0x83ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0xfbff],
  ...[0x7c00, 0xfc00, 0x7e00],
];

/** Draws a float16. */
type DrawHalf = (random: Random) => number;

/** Any float16, often a corner. */
export const anyHalf: DrawHalf = (random) =>
  random.next() < 0.4 ? random.pick(corners) : random.between(0, 0xffff);

/** A float16 that weights may have: neither an infinity nor NaN. */
export const finiteHalf: DrawHalf = (random) => {
  const code = anyHalf(random);
  return (code & 0x7c00) === 0x7c00 ? code & 0x83ff : code;
};

/** A float16 of either sign from 2^-9 to 2^-4, as trained weights have. */
export const mildHalf: DrawHalf = (random) =>
  random.between(0x1800, 0x2bff) | random.pick([0, 0x8000]);

/** A block as it is written. */
class Block {
  readonly bytes: Uint8Array;
  readonly #random: Random;
  readonly #drawHalf: DrawHalf;

  constructor(random: Random, length: number, drawHalf: DrawHalf) {
    this.bytes = new Uint8Array(length);
    this.#random = random;
    this.#drawHalf = drawHalf;
  }

  /** Writes bits into a byte. */
  put(byte: number, bit: number, value: number): void {
    this.bytes[byte] = (this.bytes[byte] as number) | ((value << bit) & 255);
  }

  /** Draws a float16 and writes it. */
  half(byte: number): number {
    const code = this.#drawHalf(this.#random);
    this.put(byte, 0, code & 255);
    this.put(byte + 1, 0, code >> 8);
    return numberOfHalf(code);
  }

  /** Draws codes, often the least and the largest ones. */
  codes(count: number, least: number, most: number): number[] {
    const { between, pick, next } = bound(this.#random);
    return Array.from({ length: count }, () =>
      next() < 0.2 ? pick([least, most]) : between(least, most),
    );
  }
}

const bound = (random: Random) => ({
  next: () => random.next(),
  pick: <T>(values: readonly T[]) => random.pick(values),
  between: (least: number, most: number) => random.between(least, most),
});

/**
 * What a block stands for: element i is d * scale * code, or d * scale * code - dmin * minimum.
 * Each scale and each minimum is of as many elements. Codes have signs, if there are no minima.
 */
export interface Parts {
  readonly d: number;
  readonly scales: readonly number[];
  readonly codes: readonly number[];
  readonly dmin?: number;
  readonly minima?: readonly number[];
}

/** The numbers of a block, as ggml computes them in float32. */
function numbersOf({ d, scales, codes, dmin = 0, minima }: Parts): number[] {
  const size = codes.length / scales.length;
  return codes.map((code, i) => {
    const j = Math.floor(i / size);
    const number = f32(f32(d * (scales[j] as number)) * code);
    return minima ? f32(number - f32(dmin * (minima[j] as number))) : number;
  });
}

/** A type: the number in a file, elements and bytes of a block, and how to draw one. */
export interface ReferenceType {
  readonly number: number;
  readonly elements: number;
  readonly bytes: number;
  readonly draw: (block: Block) => Parts;
}

/** 32 codes of 4 or 5 bits at `at`; the fifth bits are at `fifth`. */
function small(block: Block, at: number, fifth?: number): number[] {
  const codes = block.codes(32, 0, fifth === undefined ? 15 : 31);
  codes.forEach((code, i) => {
    block.put(at + (i % 16), i < 16 ? 0 : 4, code % 16);
    if (fifth !== undefined) block.put(fifth + Math.floor(i / 8), i % 8, Math.floor(code / 16));
  });
  return codes;
}

/** The lowest 2 bits of 256 codes. */
function putTwoBits(block: Block, at: number, codes: number[]): void {
  codes.forEach((code, i) =>
    block.put(at + 32 * Math.floor(i / 128) + (i % 32), 2 * Math.floor((i % 128) / 32), code % 4),
  );
}

/** Q4_K and Q5_K. */
function drawK(block: Block, bits: number): Parts {
  const [d, dmin] = [block.half(0), block.half(2)];
  const [scales, minima] = [block.codes(8, 0, 63), block.codes(8, 0, 63)];
  for (let j = 0; j < 4; ++j) {
    block.put(4 + j, 0, scales[j] as number);
    block.put(8 + j, 0, minima[j] as number);
    const [scale, minimum] = [scales[j + 4] as number, minima[j + 4] as number];
    block.put(12 + j, 0, scale % 16);
    block.put(12 + j, 4, minimum % 16);
    block.put(4 + j, 6, Math.floor(scale / 16));
    block.put(8 + j, 6, Math.floor(minimum / 16));
  }
  const codes = block.codes(256, 0, 2 ** bits - 1);
  codes.forEach((code, i) => {
    const [at, half] = [Math.floor(i / 64), Math.floor((i % 64) / 32)];
    block.put((bits === 5 ? 48 : 16) + 32 * at + (i % 32), 4 * half, code % 16);
    if (bits === 5) block.put(16 + (i % 32), Math.floor(i / 32), Math.floor(code / 16));
  });
  return { d, scales, codes, dmin, minima };
}

/** A type without sub-blocks: it has a minimum m, which is added, or none. */
const plain = (d: number, codes: readonly number[], m?: number): Parts => ({
  ...{ d, scales: [1], codes },
  ...(m !== undefined && { dmin: -m, minima: [1] }),
});

export const referenceTypes: Record<string, ReferenceType> = {
  Q4_0: {
    ...{ number: 2, elements: 32, bytes: 18 },
    draw: (block) => {
      const d = block.half(0);
      return plain(
        d,
        small(block, 2).map((code) => code - 8),
      );
    },
  },
  Q4_1: {
    ...{ number: 3, elements: 32, bytes: 20 },
    draw: (block) => {
      const [d, m] = [block.half(0), block.half(2)];
      return plain(d, small(block, 4), m);
    },
  },
  Q5_0: {
    ...{ number: 6, elements: 32, bytes: 22 },
    draw: (block) => {
      const d = block.half(0);
      return plain(
        d,
        small(block, 6, 2).map((code) => code - 16),
      );
    },
  },
  Q5_1: {
    ...{ number: 7, elements: 32, bytes: 24 },
    draw: (block) => {
      const [d, m] = [block.half(0), block.half(2)];
      return plain(d, small(block, 8, 4), m);
    },
  },
  Q8_0: {
    ...{ number: 8, elements: 32, bytes: 34 },
    draw: (block) => {
      const d = block.half(0);
      const codes = block.codes(32, -128, 127);
      codes.forEach((code, i) => block.put(2 + i, 0, code));
      return plain(d, codes);
    },
  },
  Q2_K: {
    ...{ number: 10, elements: 256, bytes: 84 },
    draw: (block) => {
      const [d, dmin] = [block.half(80), block.half(82)];
      const [scales, minima] = [block.codes(16, 0, 15), block.codes(16, 0, 15)];
      scales.forEach((scale, j) => block.put(j, 0, scale));
      minima.forEach((minimum, j) => block.put(j, 4, minimum));
      const codes = block.codes(256, 0, 3);
      putTwoBits(block, 16, codes);
      return { d, scales, codes, dmin, minima };
    },
  },
  Q3_K: {
    ...{ number: 11, elements: 256, bytes: 110 },
    draw: (block) => {
      const d = block.half(108);
      const scales = block.codes(16, -32, 31);
      scales.forEach((scale, j) => {
        const code = scale + 32;
        block.put(96 + (j % 8), j < 8 ? 0 : 4, code % 16);
        block.put(104 + (j % 4), 2 * Math.floor(j / 4), Math.floor(code / 16));
      });
      const codes = block.codes(256, -4, 3);
      putTwoBits(
        block,
        32,
        codes.map((code) => code + 4),
      );
      codes.forEach((code, i) => block.put(i % 32, Math.floor(i / 32), code >= 0 ? 1 : 0));
      return { d, scales, codes };
    },
  },
  Q4_K: {
    ...{ number: 12, elements: 256, bytes: 144 },
    draw: (block) => drawK(block, 4),
  },
  Q5_K: {
    ...{ number: 13, elements: 256, bytes: 176 },
    draw: (block) => drawK(block, 5),
  },
  Q6_K: {
    ...{ number: 14, elements: 256, bytes: 210 },
    draw: (block) => {
      const d = block.half(208);
      const scales = block.codes(16, -128, 127);
      scales.forEach((scale, j) => block.put(192 + j, 0, scale));
      const codes = block.codes(256, -32, 31);
      codes.forEach((code, i) => {
        const [part, bits] = [Math.floor(i / 128), code + 32];
        block.put(64 * part + (i % 64), 4 * Math.floor((i % 128) / 64), bits % 16);
        const shift = 2 * Math.floor((i % 128) / 32);
        block.put(128 + 32 * part + (i % 32), shift, Math.floor(bits / 16));
      });
      return { d, scales, codes };
    },
  },
};

/** Draws blocks of a type: their bytes, their parts, and the numbers that they stand for. */
export function drawBlocks(
  random: Random,
  type: ReferenceType,
  count: number,
  drawHalf: DrawHalf = anyHalf,
) {
  const data = new Uint8Array(count * type.bytes);
  const values = new Float32Array(count * type.elements);
  const parts: Parts[] = [];
  for (let i = 0; i < count; ++i) {
    const block = new Block(random, type.bytes, drawHalf);
    parts.push(type.draw(block));
    values.set(numbersOf(parts[i] as Parts), i * type.elements);
    data.set(block.bytes, i * type.bytes);
  }
  return { data, values, parts };
}
