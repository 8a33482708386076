/**
 * syrk against the reference in plain loops, and against gemm, bit by bit: types, transposes, alpha,
 * layouts, sizes, and places of the operands. error-cases.ts has its errors.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type Gemm,
  type OutOfMemoryError,
  type SyrkArray,
  type TensorInput,
} from 'wgemm';
import { createGemm as startWorker } from 'wgemm/worker';
import { set } from '../support/dtypes.js';
import { expectError, rejected, thrown } from '../support/errors.js';
import { isShort } from '../support/short.js';
import { expectSyrk, ofGemm } from '../support/syrk.js';
import { drop, float32, place, placeNames, Random, sameBytes } from '../support/tensors.js';

let wg: Gemm;
let strict: Gemm;
beforeAll(async () => {
  [wg, strict] = await Promise.all([createGemm(), createGemm({ determinism: 'strict' })]);
});
afterAll(() => {
  wg.dispose();
  strict.dispose();
});

const types = ['float32', 'float64'] as const;
const alphas = [undefined, 1, 0.5, -2, 0, -0, 2 ** -130, NaN, Infinity, -Infinity];
const shapeOfA = (n: number, k: number, transA: boolean | undefined) => (transA ? [k, n] : [n, k]);
const random = new Random(1);
type Tensor = TensorInput<SyrkArray> & { data: SyrkArray };
const floats = (dtype: (typeof types)[number], n: number, k: number) =>
  random.tensor(dtype, [n, k]) as Tensor;

describe.each(types)('%s', (dtype) => {
  it.each(placeNames)('computes each transpose and alpha, with A in %s', (where) => {
    for (const transA of [undefined, false, true]) {
      const a = place(wg, where, dtype, shapeOfA(6, 9, transA), random);
      for (const alpha of alphas) expectSyrk(wg, a, { alpha, transA }, `${transA}, ${alpha}`);
      drop(a);
    }
  });

  it.each(placeNames)('fills an out in %s', (where) => {
    for (const whereA of ['an array', 'the heap', 'column-major'] as const) {
      for (const n of [1, 5, 40, 70]) {
        const [a, out] = [
          place(wg, whereA, dtype, [n, 11], random),
          place(wg, where, dtype, [n, n], random),
        ];
        for (const alpha of [1, -0.5])
          expectSyrk(wg, a, { alpha, out: out as never }, `${whereA}, ${n}`);
        drop(a, out);
      }
    }
  });

  it('has each size from 1 to 40', () => {
    for (let n = 1; n <= 40; ++n) {
      for (const k of [1, 2, 7, 16, 40, n]) {
        for (const transA of [false, true]) {
          const a = random.tensor(dtype, shapeOfA(n, k, transA));
          expectSyrk(wg, a, { transA }, JSON.stringify([n, k, transA]));
          expectSyrk(strict, a, { transA, alpha: 3 }, JSON.stringify([n, k, transA, 'strict']));
        }
      }
    }
  });

  // Beyond the block sizes of each axis, and around whole tiles.
  const large: [number, number][] = [
    [64, 64],
    [97, 900],
    [130, 3],
    [257, 70],
    [385, 33],
    [600, 5],
  ];
  it.each(isShort ? large.slice(0, 3) : large)('has N = %i and K = %i', (n, k) => {
    const a = random.tensor(dtype, [n, k]);
    expectSyrk(wg, a, {}, 'fast');
    expectSyrk(wg, random.tensor(dtype, [k, n]), { transA: true, alpha: -0.5 }, 'transposed');
    expectSyrk(strict, a, { alpha: 3 }, 'strict');
  });

  it('is zero if K is 0, whatever alpha is, and empty if N is 0', () => {
    for (const alpha of [undefined, 0, -2]) {
      expectSyrk(wg, random.tensor(dtype, [3, 0]), { alpha });
      expectSyrk(wg, random.tensor(dtype, [0, 3]), { alpha, transA: true });
      expectSyrk(wg, random.tensor(dtype, [0, 3]), { alpha });
      expectSyrk(wg, random.tensor(dtype, [3, 0]), { alpha, transA: true });
      expectSyrk(wg, random.tensor(dtype, [0, 0]), { alpha });
    }
    for (const alpha of [NaN, Infinity, -Infinity])
      expect(Array.from(wg.syrk(floats(dtype, 2, 0), { alpha }).data)).toEqual([0, 0, 0, 0]);
  });

  it('propagates NaN and infinity', () => {
    for (const n of [3, 20, 70]) {
      for (const value of [NaN, Infinity, -Infinity, -0]) {
        const a = random.tensor(dtype, [n, 9]);
        set(a.data, dtype, 9 * (n >> 1) + 4, value);
        for (const alpha of [1, 0, -1]) expectSyrk(wg, a, { alpha }, `${n}, ${value}, ${alpha}`);
      }
    }
  });

  it('has the bytes of gemm in strict mode, also in a NaN', () => {
    for (const [n, k] of [
      [5, 5],
      [33, 70],
      [150, 260],
    ] as const) {
      const a = floats(dtype, n, k);
      set(a.data, dtype, 3, NaN);
      for (const options of [{}, { alpha: 0.3 }]) {
        const y = strict.syrk(a, options);
        expect(sameBytes(y.data, strict.gemm(a, a, null, ofGemm(options)).data)).toBe(true);
      }
    }
  });
});

it('rounds alpha to float32 with float32, and takes flags that are numbers', () => {
  const a = float32([2, 1], 1, 3);
  expect(wg.syrk(a, { alpha: 0.1 }).data).toEqual(wg.syrk(a, { alpha: Math.fround(0.1) }).data);
  expect(Array.from(wg.syrk(a, { transA: 2 }).data)).toEqual([10]);
  expect(Array.from(wg.syrk(a, { transA: 0, alpha: undefined }).data)).toEqual([1, 3, 3, 9]);
  expect(wg.syrk(a).dtype).toBe('float32');
});

it('takes a view whose elements repeat', () => {
  const a = { data: Float32Array.of(1, 2, 3), shape: [4, 3], strides: [0, 1] };
  expectSyrk(wg, a);
  expectSyrk(wg, a, { transA: true, alpha: 2 });
});

it('explains itself', () => {
  const a = floats('float32', 300, 200);
  const out = { data: new Float32Array(90_000), shape: [300, 300] };
  expect(wg.explain('syrk', a)).toMatchObject({
    ...{ op: 'syrk', batch: 1, m: 300, n: 300, k: 200, outOfCore: false },
    copies: 4 * (300 * 200 + 90_000),
  });
  expect(wg.explain('syrk', a, { out, transA: false }).copies).toBe(4 * (300 * 200 + 90_000));
  expect(wg.explain('syrk', a, { transA: true })).toMatchObject({ m: 200, n: 200, k: 300 });
  expect(wg.explain('syrk', floats('float64', 0, 3))).toMatchObject({ kernel: '', n: 0 });
});

describe('memory that does not suffice', () => {
  const maxMemory = 3_000_000;
  const a = floats('float32', 1000, 700);
  const wanted = {
    code: 'OUT_OF_MEMORY',
    op: 'syrk',
    argument: '',
    says: [/no memory for \d{7,} bytes; 0 bytes are in use, and maxMemory is 3000000/],
  } as const;

  it('is an error of the call, which is never out-of-core, and of explain', async () => {
    using small = await createGemm({ maxMemory });
    const out = { data: new Float32Array(1e6).fill(7), shape: [1000, 1000] };
    const { committed } = small.memory();
    expectError(
      thrown(() => small.syrk(a)),
      wanted,
    );
    expectError(
      thrown(() => small.syrk(a, { out })),
      wanted,
    );
    expectError(
      thrown(() => small.explain('syrk', a)),
      wanted,
    );
    expect(out.data.every((value) => value === 7)).toBe(true);
    expect(small.memory()).toEqual({ inUse: 0, committed });
    // A smaller one fits, and a wrong argument is found first.
    const less = floats('float32', 300, 400);
    expect(sameBytes(small.syrk(less).data, wg.syrk(less).data)).toBe(true);
    const error = thrown(() => small.syrk(a, { out: float32([1, 1], 1) }));
    expect(error).toMatchObject({ code: 'SHAPE', argument: 'out' });
  });

  it('is an error in a worker', async () => {
    using small = await startWorker({ maxMemory });
    expectError(await rejected(small.syrk(a)), wanted);
    expect((await small.memory()).inUse).toBe(0);
  });

  it('counts the bytes that it needs', async () => {
    using small = await createGemm({ maxMemory, threads: 1 });
    using large = await createGemm({ threads: 1 });
    const { scratch } = large.explain('syrk', a);
    const { message } = thrown(() => small.syrk(a)) as OutOfMemoryError;
    expect(Number(/for (\d+) bytes/.exec(message)?.[1])).toBe(4 * 1_700_000 + scratch);
  });
});

it('computes the covariance of samples', () => {
  // Numbers of 3 features that depend on each other, with a mean of 100.
  const [count, features] = [200, 3];
  const samples = floats('float64', count, features);
  for (let i = 0; i < samples.data.length; i += features) {
    samples.data[i + 2] = (samples.data[i] as number) * 2 - (samples.data[i + 1] as number);
    for (let j = 0; j < features; ++j) (samples.data[i + j] as number) += 100;
  }
  const column = (j: number) =>
    Array.from({ length: count }, (_, i) => samples.data[i * features + j] as number);
  const mean = (values: number[]) => values.reduce((sum, x) => sum + x, 0) / count;
  const means = Array.from({ length: features }, (_, j) => mean(column(j)));
  const centered = {
    data: samples.data.map((x, i) => x - (means[i % features] as number)),
    shape: [count, features],
  };
  const covariance = wg.syrk(centered, { transA: true, alpha: 1 / (count - 1) });
  for (let i = 0; i < features; ++i) {
    for (let j = 0; j < features; ++j) {
      const products = column(i).map(
        (x, s) => (x - (means[i] as number)) * ((column(j)[s] as number) - (means[j] as number)),
      );
      const wanted = (mean(products) * count) / (count - 1);
      expect(covariance.data[i * features + j]).toBeCloseTo(wanted, 12);
    }
  }
});
