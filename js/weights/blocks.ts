/**
 * Blocks of ggml: elements of 2 to 8 bits, which share scales and minima.
 *
 * ggml/src/ggml-common.h has the layouts. The functions dequantize_row_* in ggml/src/ggml-quants.c
 * return the same values. Both as of commit 01243c5 of ggml-org/llama.cpp.
 *
 * Those functions compute in float32. There, a product has at most 24 bits and no small exponent,
 * so it is exact. The sum with a minimum rounds once. Here, all products and sums are exact in
 * float64, since all are multiples of 2^-24 below 2^28, and the store to `y` rounds once.
 */
import { type Half, halfOf } from '../base/half.js';

/**
 * Writes the values of a block to `y`, from `to` on.
 * @param x the bytes of the file, where the block begins at `at`
 */
type Dequantize = (x: Uint8Array, at: number, y: Float32Array, to: number) => void;

/** Reads a byte. */
const byte = (x: Uint8Array, at: number) => x[at] as number;

/** Reads a float16. */
function half(x: Uint8Array, at: number): number {
  const { values } = halfOf('float16') as Half;
  return values[byte(x, at) | (byte(x, at + 1) << 8)] as number;
}

/**
 * 32 elements: a scale; a minimum if there is one; 4 bytes of fifth bits if there are 5 bits; and
 * 16 bytes, whose low 4 bits are elements 0 to 15, and whose high 4 bits are elements 16 to 31.
 */
function nibbles(bits: 4 | 5, hasMinimum: boolean): Dequantize {
  const fifth = hasMinimum ? 4 : 2;
  const codes = bits === 5 ? fifth + 4 : fifth;
  const zero = hasMinimum ? 0 : 2 ** (bits - 1);
  return (x, at, y, to) => {
    const scale = half(x, at);
    // The sum with -0 is exact, also for -0.
    const minimum = hasMinimum ? half(x, at + 2) : -0;
    for (let i = 0; i < 32; ++i) {
      let code = (byte(x, at + codes + (i & 15)) >> (i < 16 ? 0 : 4)) & 15;
      if (bits === 5) code |= ((byte(x, at + fifth + (i >> 3)) >> (i & 7)) & 1) << 4;
      y[to + i] = (code - zero) * scale + minimum;
    }
  };
}

/** 32 elements: a scale, and an int8 per element. */
const bytes: Dequantize = (x, at, y, to) => {
  const scale = half(x, at);
  for (let i = 0; i < 32; ++i) y[to + i] = ((byte(x, at + 2 + i) << 24) >> 24) * scale;
};

/** 256 elements: the two lowest bits of element i are in byte `i % 32 + 32 * (i >> 7)`. */
const twoBits = (x: Uint8Array, at: number, i: number) =>
  (byte(x, at + (i & 31) + ((i >> 7) << 5)) >> ((i >> 4) & 6)) & 3;

/**
 * 256 elements: 16 bytes, each with a scale of 4 bits and a minimum of 4 bits of 16 elements; 64
 * bytes of codes; the scale of the scales, and the scale of the minima.
 */
const q2k: Dequantize = (x, at, y, to) => {
  const [scale, minimum] = [half(x, at + 80), half(x, at + 82)];
  for (let i = 0; i < 256; ++i) {
    const both = byte(x, at + (i >> 4));
    y[to + i] = scale * (both & 15) * twoBits(x, at + 16, i) - minimum * (both >> 4);
  }
};

/**
 * 256 elements: 32 bytes of third bits; 64 bytes of codes; 16 scales of 6 bits in 12 bytes, of
 * which the last 4 have the high bits; the scale of the scales.
 */
const q3k: Dequantize = (x, at, y, to) => {
  const scale = half(x, at + 108);
  for (let i = 0; i < 256; ++i) {
    const j = i >> 4;
    const low = byte(x, at + 96 + (j & 7)) >> (j < 8 ? 0 : 4);
    const high = byte(x, at + 104 + (j & 3)) >> (2 * (j >> 2));
    const third = (byte(x, at + (i & 31)) >> (i >> 5)) & 1;
    const code = twoBits(x, at + 32, i) - (third ? 0 : 4);
    y[to + i] = scale * (((low & 15) | ((high & 3) << 4)) - 32) * code;
  }
};

/**
 * 256 elements: the scale of the scales, and the scale of the minima; 8 scales and 8 minima of 6
 * bits in 12 bytes, each of 32 elements; 32 bytes of fifth bits if there are 5 bits; 128 bytes of
 * codes.
 */
function q45k(bits: 4 | 5): Dequantize {
  const codes = bits === 5 ? 48 : 16;
  return (x, at, y, to) => {
    const [scale, minimum] = [half(x, at), half(x, at + 2)];
    for (let j = 0; j < 8; ++j) {
      // The low 6 bits of the first 8 bytes are the scales and the minima of j < 4. The others have
      // 4 bits in the last 4 bytes, and 2 bits on top of these.
      const [first, second] = [byte(x, at + 4 + (j & 3)), byte(x, at + 8 + (j & 3))];
      const last = byte(x, at + 12 + (j & 3));
      const d = scale * (j < 4 ? first & 63 : (last & 15) | ((first >> 6) << 4));
      const m = minimum * (j < 4 ? second & 63 : (last >> 4) | ((second >> 6) << 4));
      for (let i = 0; i < 32; ++i) {
        let code = (byte(x, at + codes + 32 * (j >> 1) + i) >> (4 * (j & 1))) & 15;
        if (bits === 5) code |= ((byte(x, at + 16 + i) >> j) & 1) << 4;
        y[to + 32 * j + i] = d * code - m;
      }
    }
  };
}

/**
 * 256 elements: 128 bytes of low 4 bits; 64 bytes of high 2 bits; 16 scales of int8, each of 16
 * elements; the scale of the scales.
 */
const q6k: Dequantize = (x, at, y, to) => {
  const scale = half(x, at + 208);
  for (let i = 0; i < 256; ++i) {
    const low = byte(x, at + (i & 63) + ((i >> 7) << 6)) >> (i & 64 ? 4 : 0);
    const code = ((low & 15) | (twoBits(x, at + 128, i) << 4)) - 32;
    y[to + i] = scale * ((byte(x, at + 192 + (i >> 4)) << 24) >> 24) * code;
  }
};

/** How to read the types that are known. */
const known: Record<string, Dequantize> = {
  ...{ Q4_0: nibbles(4, false), Q4_1: nibbles(4, true) },
  ...{ Q5_0: nibbles(5, false), Q5_1: nibbles(5, true), Q8_0: bytes },
  ...{ Q2_K: q2k, Q3_K: q3k, Q4_K: q45k(4), Q5_K: q45k(5), Q6_K: q6k },
};

/**
 * By the number of a type in a file: its name, or nothing if ggml no longer has it; and for types
 * whose elements are in blocks, the elements and the bytes of a block.
 */
const types = (
  'F32,F16,Q4_0 32 18,Q4_1 32 20,,,Q5_0 32 22,Q5_1 32 24,Q8_0 32 34,Q8_1 32 36,Q2_K 256 84,' +
  'Q3_K 256 110,Q4_K 256 144,Q5_K 256 176,Q6_K 256 210,Q8_K 256 292,IQ2_XXS 256 66,' +
  'IQ2_XS 256 74,IQ3_XXS 256 98,IQ1_S 256 50,IQ4_NL 32 18,IQ3_S 256 110,IQ2_S 256 82,' +
  'IQ4_XS 256 136,I8,I16,I32,I64,F64,IQ1_M 256 56,BF16,,,,TQ1_0 256 54,TQ2_0 256 66,,,,' +
  'MXFP4 32 17,NVFP4 64 36,Q1_0 128 18,Q2_0 64 18'
)
  .split(',')
  .map((row) => row.split(' ') as [name: string, elements?: string, bytes?: string]);

/** @internal A type of ggml: elements of a block, its bytes, and how to read it, if it is known. */
export type BlockType = readonly [elements: number, bytes: number, dequantize?: Dequantize];

/** @internal The types whose elements are in blocks, by name. */
export const blockTypes: ReadonlyMap<string, BlockType> = new Map(
  types
    .filter(([, elements]) => elements)
    .map(([name, elements, bytes]) => [name, [Number(elements), Number(bytes), known[name]]]),
);

/** @internal By the number of a type in a file: its name, or '' if ggml no longer has it. */
export const typeNames: readonly string[] = types.map(([name]) => name);
