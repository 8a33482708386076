/** Random calls of syrk, on each build: right, symmetric, and with the bits of gemm. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm, type SyrkOptions, type TensorLike } from 'wgemm';
import {
  layout,
  layOut,
  nearlyRight,
  orAnything,
  seed,
  size,
  sizes,
} from '../support/arbitraries.js';
import { set } from '../support/dtypes.js';
import { succeeds } from '../support/errors.js';
import { runs } from '../support/short.js';
import { expectSyrk } from '../support/syrk.js';
import { count, drop, float32, Random } from '../support/tensors.js';

let wg: Gemm;
let strict: Gemm;
beforeAll(async () => {
  [wg, strict] = await Promise.all([createGemm(), createGemm({ determinism: 'strict' })]);
});
afterAll(() => {
  wg.dispose();
  strict.dispose();
});

const axis = fc.oneof(
  { weight: 9, arbitrary: size },
  { weight: 1, arbitrary: fc.integer({ min: 71, max: 200 }) },
);

it('is right for random shapes, layouts, transposes and alpha', () => {
  const arguments_ = fc.record({
    dtype: fc.constantFrom('float32' as const, 'float64' as const),
    n: axis,
    k: axis,
    transA: fc.boolean(),
    alpha: fc.oneof(
      fc.constantFrom(undefined, 0, 1, -1),
      fc.float({ min: -4, max: 4, noNaN: true }),
    ),
    hasOut: fc.boolean(),
    isStrict: fc.boolean(),
    layouts: fc.tuple(layout, layout),
    special: fc.option(fc.constantFrom(NaN, Infinity, -Infinity, -0), { freq: 5 }),
    numbers: fc.integer(),
  });
  fc.assert(
    fc.property(arguments_, ({ dtype, n, k, transA, alpha, layouts, ...chosen }) => {
      const [on, random] = [chosen.isStrict ? strict : wg, new Random(chosen.numbers)];
      const a = layOut(on, random, dtype, transA ? [k, n] : [n, k], layouts[0], true);
      const out = chosen.hasOut ? layOut(on, random, dtype, [n, n], layouts[1], false) : undefined;
      if (chosen.special !== null) set(a.data, dtype, a.data.length >> 1, chosen.special);
      expectSyrk(on, a, { transA, alpha, out } as SyrkOptions);
      drop(a, out);
      expect(on.memory().inUse).toBe(0);
    }),
    { seed, numRuns: runs(1500) },
  );
});

it('any other arguments give a result or an error of ours', () => {
  const data = fc
    .integer({ min: 0, max: 9 })
    .chain((length) =>
      fc.constantFrom(new Float32Array(length), new Float64Array(length), new Int32Array(length)),
    );
  const tensor = fc.record(
    { data: orAnything(data), shape: sizes, strides: sizes, offset: nearlyRight },
    { requiredKeys: ['data', 'shape'] },
  );
  const options = fc.record(
    { alpha: nearlyRight, transA: nearlyRight, out: orAnything(tensor) },
    { requiredKeys: [] },
  );
  let succeeded = 0;
  fc.assert(
    fc.property(orAnything(tensor), orAnything(options), (a, given) => {
      const call = () => wg.syrk(a as TensorLike as never, given as SyrkOptions);
      if (succeeds(call)) ++succeeded;
      expect(wg.memory().inUse).toBe(0);
    }),
    { seed, numRuns: runs(3000) },
  );
  expect(succeeded).toBeGreaterThan(0);
  expect(count(wg.syrk(float32([2, 2], 1, 2, 3, 4)).shape)).toBe(4);
});
