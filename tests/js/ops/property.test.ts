/**
 * Random arguments. Valid ones give the result of the reference. Any others give that or a GemmError,
 * and keep no memory.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createGemm,
  type Gemm,
  type GemmOptions,
  type PackedWeights,
  type TensorLike,
} from 'wgemm';
import {
  anything,
  layout,
  type Layout,
  layOut,
  nearlyRight,
  ones,
  orAnything,
  seed,
  size,
  sizes,
  small,
} from '../support/arbitraries.js';
import { allTypes, dtypes, floats, isFloat, set } from '../support/dtypes.js';
import { expectWhole, succeeds } from '../support/errors.js';
import { count, drop, expectGemm, expectGemmTwice, float32, Random } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

const factor = fc.oneof(
  fc.constantFrom(0, 1, -1, 0.5),
  fc.integer({ min: -9, max: 9 }),
  fc.float({ min: -4, max: 4, noNaN: true }),
);

/** Values: mostly plain numbers, sometimes the special ones. */
const special = fc.option(fc.constantFrom(NaN, Infinity, -Infinity, 0, -0, 'subnormal' as const), {
  freq: 5,
});

it('gemm is right for random shapes, layouts, transposes, alpha and beta', () => {
  const arguments_ = fc.record({
    dtype: fc.constantFrom(...dtypes),
    m: size,
    n: size,
    k: size,
    transA: fc.boolean(),
    transB: fc.boolean(),
    alpha: factor,
    beta: factor,
    c: fc.constantFrom('none', 'number', '()', '(1)', '(N)', '(1,1)', '(1,N)', '(M,1)', '(M,N)'),
    out: fc.constantFrom('fresh', 'own', 'C'),
    layouts: fc.tuple(layout, layout, layout, layout),
    special,
    numbers: fc.integer(),
  });
  fc.assert(
    fc.property(
      arguments_,
      ({
        dtype,
        m,
        n,
        k,
        transA,
        transB,
        alpha,
        beta,
        c: kindOfC,
        out: kindOfOut,
        layouts,
        special,
        numbers,
      }) => {
        const random = new Random(numbers);
        const heap: TensorLike[] = [];
        const make = (shape: number[], layout: Layout, mayRepeat: boolean) => {
          const tensor = layOut(wg, random, dtype, shape, layout, mayRepeat);
          heap.push(tensor);
          return tensor;
        };
        const shapesOfC: Record<string, number[]> = {
          '()': [],
          '(1)': [1],
          '(N)': [n],
          '(1,1)': [1, 1],
          '(1,N)': [1, n],
          '(M,1)': [m, 1],
          '(M,N)': [m, n],
        };
        const a = make(transA ? [k, m] : [m, k], layouts[0], true);
        const b = make(transB ? [n, k] : [k, n], layouts[1], true);
        const shape = shapesOfC[kindOfC];
        const outIsC = kindOfOut === 'C' && kindOfC === '(M,N)';
        const c = shape ? make(shape, layouts[2], !outIsC) : kindOfC === 'number' ? 3 : undefined;
        if (special !== null && isFloat(dtype)) {
          const { digits, least } = floats[dtype];
          set(
            a.data,
            dtype,
            a.data.length >> 1,
            special === 'subnormal' ? 3 * 2 ** (least - digits + 1) : special,
          );
        }
        const options: GemmOptions = { transA, transB, alpha, beta };
        if (outIsC) options.out = c as TensorLike;
        else if (kindOfOut === 'own') options.out = make([m, n], layouts[3], false);
        expectGemmTwice(wg, a, b, c, options);
        drop(...heap);
        expect(wg.memory().inUse).toBe(0);
      },
    ),
    { seed, numRuns: 4000 },
  );
});

// Arguments of every kind: arguments of a valid call with some replaced, so that a call fails late, or
// succeeds.
const replacement = fc.record({
  argument: fc.constantFrom('a', 'b', 'c', 'options'),
  field: fc.constantFrom(
    undefined,
    'data',
    'shape',
    'strides',
    'dtype',
    'alpha',
    'beta',
    'transA',
    'transB',
    'opset',
    'broadcast',
    'out',
    'else',
  ),
  value: fc.oneof(nearlyRight, anything),
});
const call = fc
  .record({
    dtype: fc.constantFrom(...dtypes),
    m: small,
    k: small,
    n: small,
    replacements: fc.array(replacement, { maxLength: 3 }),
  })
  .map(({ dtype, m, k, n, replacements }) => {
    const make = (rows: number, columns: number) => ones(dtype, [rows, columns]);
    const good: Record<string, unknown> = {
      a: make(m, k),
      b: make(k, n),
      c: make(m, n),
      options: { alpha: 2 },
    };
    for (const { argument, field, value } of replacements) {
      const whole = good[argument];
      if (field === undefined || typeof whole !== 'object' || whole === null)
        good[argument] = value;
      else good[argument] = { ...whole, [field]: value };
    }
    return [good.a, good.b, good.c, good.options] as unknown as [
      a: TensorLike,
      b: TensorLike,
      c: TensorLike | null,
      options: GemmOptions,
    ];
  });

it('gemm and explain take arguments of every JavaScript kind: a GemmError, or a right result', () => {
  let [succeeded, succeededPacked] = [0, 0];
  fc.assert(
    fc.property(call, fc.boolean(), ([a, b, c, options], packs) => {
      let packed: PackedWeights | undefined;
      if (packs) succeeds(() => (packed = wg.pack(b, { op: 'gemm' })));
      const taken = wg.memory().inUse;
      const explained = succeeds(() => wg.explain('gemm', a, packed ?? b, c, options));
      expect(wg.memory().inUse).toBe(taken);
      if (explained) {
        expectGemm(wg, a, b, c, options, '', packed);
        if (packed) ++succeededPacked;
        else ++succeeded;
      } else {
        expect(succeeds(() => wg.gemm(a, packed ?? b, c, options))).toBe(false);
      }
      expect(wg.memory().inUse).toBe(taken);
      drop(packed);
      expect(wg.memory().inUse).toBe(0);
    }),
    { seed, numRuns: 10_000 },
  );
  expect(succeeded, 'calls that succeeded: the arguments must not be all bad').toBeGreaterThan(
    1000,
  );
  expect(succeededPacked, 'those with B packed').toBeGreaterThan(1000);
  expectGemm(wg, float32([1, 1], 2), float32([1, 1], 3));
});

it('alloc takes arguments of every JavaScript kind', () => {
  let succeeded = 0;
  fc.assert(
    fc.property(
      orAnything(fc.constantFrom(...allTypes)),
      fc.oneof(sizes, fc.array(fc.maxSafeNat())),
      (dtype, shape) => {
        const made = succeeds(() => {
          const tensor = wg.alloc(dtype as 'int32', shape as number[]);
          expect(tensor.data.length).toBe(count(shape as number[]));
          expect(tensor.size).toBe(tensor.data.length);
          tensor.dispose();
        });
        if (made) ++succeeded;
        expect(wg.memory().inUse).toBe(0);
      },
    ),
    { seed, numRuns: 3000 },
  );
  expect(succeeded).toBeGreaterThan(500);
});

it('createGemm takes options of every JavaScript kind', async () => {
  const options = orAnything(
    fc.record(
      {
        threads: orAnything(fc.constantFrom(1, 'auto')),
        simd: orAnything(fc.constantFrom('auto', 'simd128', 'relaxed')),
        determinism: orAnything(fc.constant('fast')),
        maxMemory: orAnything(fc.integer({ min: 1 })),
        // Not a URL or text: those are fetched.
        assets: orAnything(fc.constant(undefined)).filter((value) => typeof value !== 'function'),
      },
      { requiredKeys: [] },
    ),
  );
  await fc.assert(
    fc.asyncProperty(options, async (options) => {
      try {
        (await createGemm(options as object)).dispose();
      } catch (error) {
        expectWhole(error);
      }
    }),
    { seed, numRuns: 200 },
  );
});
