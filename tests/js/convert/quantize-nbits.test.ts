/** quantizeNBits and fromGGUF: against their rules in plain loops, and their errors. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, fromGGUF, type Gemm, quantizeNBits } from 'wgemm';
import { toBits } from '../support/dtypes.js';
import { expectError, thrown } from '../support/errors.js';
import { allBits, blockSizes } from '../support/nbits.js';
import { float32, Random } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

const f32 = Math.fround;
const roundf = (x: number) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5);
const clamp = (x: number, most: number) => Math.max(0, Math.min(most, x));

/** Packs codes, one after the other, from the lowest bit of each row. */
function packed(rows: number[][], bits: number, bytes: number): Uint8Array {
  const data = new Uint8Array(rows.length * bytes);
  rows.forEach((row, i) =>
    row.forEach((code, j) => {
      const at = i * bytes + Math.floor((j * bits) / 8);
      data[at] = (data[at] as number) + code * 2 ** ((j * bits) % 8);
    }),
  );
  return data;
}

/** ONNX Runtime's quantizer. The columns are given one by one. */
function reference(columns: number[][], bits: number, blockSize: number, symmetric: boolean) {
  const k = columns[0]?.length ?? 0;
  const [blocks, most, centre] = [Math.ceil(k / blockSize), 2 ** bits - 1, 2 ** (bits - 1)];
  const scales: number[] = [];
  const zeros: number[][] = [];
  const codes = columns.map((column) => {
    zeros.push([]);
    return Array.from({ length: blocks }, (_, b) => {
      const block = column.slice(b * blockSize, (b + 1) * blockSize);
      let [min, max] = [Math.min(...block), Math.max(...block)];
      let [scale, zero] = [f32((Math.abs(max) > Math.abs(min) ? max : min) / -centre), centre];
      if (!symmetric) {
        [min, max] = [Math.min(min, 0), Math.max(max, 0)];
        scale = f32(f32(max - min) / most);
        zero = roundf(clamp(scale === 0 ? min : f32(-min / scale), most));
      }
      scales.push(scale);
      zeros.at(-1)?.push(zero);
      const inverse = scale === 0 ? 0 : f32(1 / scale);
      const own = block.map((w) => clamp(roundf(f32(f32(w * inverse) + zero)), most));
      return [...own, ...Array<number>(blockSize - own.length).fill(0)];
    }).flat();
  });
  return {
    data: packed(codes, bits, (blocks * blockSize * bits) / 8),
    scales: Float32Array.from(scales),
    zeroPoints: symmetric ? undefined : packed(zeros, bits, Math.ceil((blocks * bits) / 8)),
  };
}

describe.each([true, false])('quantizeNBits, symmetric %s', (symmetric) => {
  it.each(allBits)('%i bits', (bits) => {
    const random = new Random(bits);
    for (let i = 0; i < 60; ++i) {
      const [n, k] = [random.between(1, 6), random.between(1, random.pick([5, 70, 300]))];
      const blockSize = random.pick(blockSizes);
      const spread = 2 ** random.between(-100, 20);
      const kind = random.between(0, 4);
      const value = () => {
        if (kind === 0) return 0;
        if (kind === 1) return f32(random.next() * spread);
        if (kind === 2) return f32(-random.next() * spread);
        if (kind === 3) return random.between(-4, 4);
        return f32((random.next() * 2 - 1) * spread);
      };
      const columns = Array.from({ length: n }, () => Array.from({ length: k }, value));
      const turned = Float32Array.from({ length: k * n }, (_, at) => columns[at % n]?.[Math.floor(at / n)] as number); // prettier-ignore
      const wanted = reference(columns, bits, blockSize, symmetric);
      const held = wg.alloc('float32', [k, n]);
      held.data.set(turned);
      const strided = Float32Array.from({ length: 2 * k * n + 3 }, (_, at) => (at % 2 ? (turned[(at - 3) / 2] as number) : NaN)); // prettier-ignore
      for (const found of [
        quantizeNBits({ data: turned, shape: [k, n] }, { bits, blockSize, symmetric }),
        quantizeNBits(held, { bits, blockSize, symmetric }),
        quantizeNBits(
          { data: strided, shape: [k, n], strides: [2 * n, 2], offset: 3 },
          { bits, blockSize, symmetric },
        ),
        quantizeNBits(
          { data: Float32Array.from(columns.flat()), shape: [n, k] },
          { bits, blockSize, symmetric, trans: true },
        ),
      ]) {
        const blocks = Math.ceil(k / blockSize);
        expect(found).toEqual({
          data: { data: wanted.data, shape: [n, blocks, (blockSize * bits) / 8] },
          scales: { data: wanted.scales, shape: [n, blocks] },
          ...(!symmetric && {
            zeroPoints: { data: wanted.zeroPoints, shape: [n, Math.ceil((blocks * bits) / 8)] },
          }),
          k,
          n,
          bits,
          blockSize,
        });
      }
      held.dispose();
    }
  });

  it('extremes stay finite', () => {
    const most = f32(3.4028234663852886e38);
    for (const numbers of [
      [most, -most, 0, 1],
      [2 ** -149, 0, -(2 ** -149), 2 ** -148],
      [2 ** -140, -(2 ** -141), 0, 2 ** -145],
      [-most, -most, -most, 0],
    ]) {
      for (const bits of allBits) {
        const { scales, data } = quantizeNBits(float32([4, 1], ...numbers), {
          bits,
          blockSize: 16,
          symmetric,
        });
        const scale = scales.data[0] as number;
        expect(Number.isFinite(scale)).toBe(true);
        const weights = { ...quantizeNBits(float32([4, 1], ...numbers), { bits, blockSize: 16, symmetric }) }; // prettier-ignore
        const y = wg.matmulNBits(float32([4, 4], ...[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]), weights).data; // prettier-ignore
        numbers.forEach((x, i) => {
          const steps = symmetric && x / scale > 2 ** (bits - 1) - 1 ? 1.01 : 0.51;
          expect(Math.abs((y[i] as number) - x)).toBeLessThanOrEqual(
            steps * Math.abs(scale) + 2 ** -148,
          );
        });
        expect(data.data.length).toBe(2 * bits);
      }
    }
  });
});

it('quantizeNBits has defaults', () => {
  const b = float32([33, 1], ...Array.from({ length: 33 }, (_, i) => i - 16));
  const weights = quantizeNBits(b);
  expect(weights).toEqual(
    quantizeNBits(b, { bits: 4, blockSize: 32, symmetric: true, trans: false }),
  );
  expect(weights.data.shape).toEqual([1, 2, 16]);
  expect('zeroPoints' in weights).toBe(false);
  expect(quantizeNBits(b, null)).toEqual(weights);
  expect(quantizeNBits({ data: new Float32Array(0), shape: [0, 3] }).scales.shape).toEqual([3, 0]);
});

it('quantizeNBits refuses wrong arguments', () => {
  const good = float32([2, 2], 1, 2, 3, 4);
  for (const [args, code, argument, ...says] of [
    [[5], 'ARGUMENT', 'weights', 'is 5', '{ data, shape }'],
    [[float32([4], 1, 2, 3, 4)], 'SHAPE', 'weights', '[4]', '(K, N)'],
    [[float32([1, 2, 2], 1, 2, 3, 4)], 'SHAPE', 'weights', '[1, 2, 2]', '(N, K) with trans'],
    [[{ data: new Float64Array(4), shape: [2, 2] }], 'DTYPE', 'weights', 'Float64Array'],
    [[float32([2, 2], 1, NaN, 3, 4)], 'ARGUMENT', 'weights', 'NaN at [0, 1]', 'finite'],
    [[float32([2, 2], 1, 2, -Infinity, 4)], 'ARGUMENT', 'weights', '-Infinity at [1, 0]', 'finite'],
    [[good, { bits: 3 }], 'ARGUMENT', 'bits', 'is 3', '2, 4 or 8'],
    [[good, { bits: '4' }], 'ARGUMENT', 'bits', '"4"', '2, 4 or 8'],
    [[good, { blockSize: 8 }], 'ARGUMENT', 'blockSize', 'is 8', '16, 32, 64, 128 or 256'],
    [[good, { blockSize: null }], 'ARGUMENT', 'blockSize', 'is null', '16, 32'],
    [[good, { symmetric: 'no' }], 'ARGUMENT', 'symmetric', '"no"', 'boolean'],
    [[good, { trans: NaN }], 'ARGUMENT', 'trans', 'NaN', 'boolean'],
    [[good, { axis: 0 }], 'ARGUMENT', 'axis', 'not known', 'bits, blockSize, symmetric, trans'],
    [[good, 4], 'ARGUMENT', 'options', 'is 4', 'object'],
  ] as const)
    expectError(
      thrown(() => (quantizeNBits as (...args: unknown[]) => unknown)(...args)),
      { code, op: 'quantizeNBits', argument, says },
    );
});

describe('fromGGUF', () => {
  /** Random blocks, and the numbers that they stand for. */
  function draw(random: Random, type: 'Q4_0' | 'Q8_0', n: number, k: number) {
    const [bytes, numbers]: [number[], number[]] = [[], []];
    for (let block = 0; block < (n * k) / 32; ++block) {
      const d = random.pick([0.5, -0.25, 2 ** -20, 3, 2 ** -14, 1000]);
      const bits = toBits('float16', d);
      bytes.push(bits & 255, bits >> 8);
      if (type === 'Q8_0') {
        for (let i = 0; i < 32; ++i) {
          const q = random.between(-128, 127);
          bytes.push(q & 255);
          numbers.push(q * d);
        }
      } else {
        const q = Array.from({ length: 32 }, () => random.between(0, 15));
        for (let i = 0; i < 16; ++i) bytes.push((q[i] as number) + 16 * (q[i + 16] as number));
        numbers.push(...q.map((each) => (each - 8) * d));
      }
    }
    return { data: Uint8Array.from(bytes), numbers };
  }

  it.each(['Q4_0', 'Q8_0'] as const)('%s stands for the same numbers', (type) => {
    const random = new Random(5);
    for (const [n, k] of [
      [1, 32],
      [3, 96],
      [7, 256],
    ] as const) {
      const { data, numbers } = draw(random, type, n, k);
      const placed = new Uint8Array([9, ...data, 9]).subarray(1, data.length + 1);
      for (const each of [data, placed]) {
        const weights = fromGGUF({ type, data: each, shape: [n, k] });
        const bits = type === 'Q4_0' ? 4 : 8;
        expect(weights).toMatchObject({ n, k, bits, blockSize: 32 });
        expect(weights.data.shape).toEqual([n, k / 32, 4 * bits]);
        expect(weights.scales.shape).toEqual([n, k / 32]);
        expect(Object.keys(weights)).toEqual(['data', 'scales', 'k', 'n', 'bits', 'blockSize']);
        // Rows of the identity show each number.
        const a = new Float32Array(k * k);
        for (let i = 0; i < k; ++i) a[i * k + i] = 1;
        const y = wg.matmulNBits({ data: a, shape: [k, k] }, weights).data;
        const found = Array.from({ length: n * k }, (_, i) => (y[(i % k) * n + Math.floor(i / k)] as number) + 0); // prettier-ignore
        expect(found).toEqual(numbers.map((x) => x + 0));
      }
    }
  });

  it('reads every kind of float16 scale', () => {
    for (const [bits, value] of [
      [0, 0],
      [0x8000, -0],
      [1, 2 ** -24],
      [0x83ff, -1023 * 2 ** -24],
      [0x0400, 2 ** -14],
      [0x3c01, 1 + 2 ** -10],
      [0xfbff, -65504],
      [0x7c00, Infinity],
      [0xfc00, -Infinity],
      [0x7e00, NaN],
    ] as const) {
      const data = new Uint8Array(18);
      data.set([bits & 255, bits >> 8]);
      expect(fromGGUF({ type: 'Q4_0', data, shape: [1, 32] }).scales.data[0]).toBe(value);
    }
  });

  it('refuses wrong arguments', () => {
    const good = { type: 'Q4_0', data: new Uint8Array(36), shape: [2, 32] };
    const gone = new Uint8Array(36);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    for (const [change, code, argument, ...says] of [
      [{ type: 'Q4_1' }, 'DTYPE', 'type', '"Q4_1"', "'Q4_0' or 'Q8_0'"],
      [{ type: undefined }, 'DTYPE', 'type', 'undefined', "'Q4_0' or 'Q8_0'"],
      [{ type: 2 }, 'DTYPE', 'type', 'is 2'],
      [{ data: [1, 2] }, 'DTYPE', 'data', 'an array', 'Uint8Array'],
      [{ data: new Int8Array(36) }, 'DTYPE', 'data', 'Int8Array', 'Uint8Array'],
      [{ data: gone }, 'ARGUMENT', 'data', 'detached'],
      [{ data: new Uint8Array(35) }, 'SHAPE', 'data', '35 bytes', 'needs 36'],
      [{ type: 'Q8_0' }, 'SHAPE', 'data', '36 bytes', 'Q8_0 needs 68'],
      [{ shape: 64 }, 'SHAPE', 'shape', 'is 64', 'an array'],
      [{ shape: [64] }, 'SHAPE', 'shape', '[64]', '[n, k]'],
      [{ shape: [2, 2, 32] }, 'SHAPE', 'shape', '[2, 2, 32]', '[n, k]'],
      [{ shape: [32, 2] }, 'SHAPE', 'shape', '[32, 2]', 'a multiple of 32'],
      [{ shape: [2, -32] }, 'SHAPE', 'shape', '-32'],
      [{ shape: [2, 32.5] }, 'SHAPE', 'shape', '32.5'],
      [{ name: 'blk' }, 'ARGUMENT', 'name', 'property of tensor', 'type, data, shape'],
    ] as const)
      expectError(
        thrown(() => fromGGUF({ ...good, ...change } as never)),
        { code, op: 'fromGGUF', argument, says },
      );
    for (const tensor of [5, 'Q4_0'])
      expectError(
        thrown(() => fromGGUF(tensor as never)),
        { code: 'ARGUMENT', op: 'fromGGUF', argument: 'tensor', says: ['it must be an object'] },
      );
  });
});
