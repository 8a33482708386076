/**
 * Random arguments of matmulNBits. Valid ones give the result of the reference, from every layout.
 * Wrong ones give a complete GemmError.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm, type TensorLike } from 'wgemm';
import {
  anything,
  layout,
  layOut,
  nearlyRight,
  seed,
  size,
  small,
} from '../support/arbitraries.js';
import { succeeds } from '../support/errors.js';
import {
  allBits,
  argumentsOf,
  blockSizes,
  describeCall,
  draw,
  expectNear,
  floatTypes,
  placed,
  reference,
  zeroKinds,
} from '../support/nbits.js';
import type { Matrix } from '../support/reference.js';
import { runs } from '../support/short.js';
import { drop, Random, snapshot } from '../support/tensors.js';
import { get, set } from '../support/dtypes.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

type Loose = (...args: unknown[]) => TensorLike;
const run = (args: readonly unknown[]) => (wg.matmulNBits as unknown as Loose)(...args);

const choice = fc.record({
  dtype: fc.constantFrom(...floatTypes),
  bits: fc.constantFrom(...allBits),
  blockSize: fc.constantFrom(...blockSizes),
  zeros: fc.constantFrom(...zeroKinds),
  sizes: fc.tuple(size, size, fc.integer({ min: 0, max: 300 })),
  level: fc.integer({ min: 0, max: 4 }),
  hasBias: fc.boolean(),
  isFlat: fc.boolean(),
  bounds: fc.option(fc.tuple(fc.integer({ min: -9, max: 0 }), fc.integer({ min: 0, max: 9 }))),
  layouts: fc.tuple(layout, layout),
  isPacked: fc.boolean(),
  isHeld: fc.boolean(),
  numbers: fc.integer(),
});

it('valid arguments give the result of the reference', () => {
  fc.assert(
    fc.property(choice, ({ sizes: [m, n, k], bounds, layouts, isPacked, isHeld, ...chosen }) => {
      const random = new Random(chosen.numbers);
      const activation = bounds ?? ([-Infinity, Infinity] as const);
      const call = draw(random, { ...chosen, rows: [m], n, k, activation });
      const { dtype } = chosen;
      // A in its layout, which may repeat rows or columns.
      const a = layOut(wg, random, dtype, [m, k], layouts[0], true);
      const { strides = [k, 1], offset = 0 } = a as { strides?: number[]; offset?: number };
      const read = call.a.data;
      for (let i = 0; i < m * k; ++i) {
        const at = offset + Math.floor(i / k) * (strides[0] ?? 0) + (i % k) * (strides[1] ?? 0);
        set(read, dtype, i, get(a.data, dtype, at));
      }
      const out = layOut(wg, random, dtype, [m, n], layouts[1], false);
      const { inUse } = wg.memory();
      const made: { dispose: () => void }[] = [];
      const place = (matrix: Matrix) => {
        if (!isHeld) return matrix;
        const tensor = wg.alloc(matrix.dtype as 'uint8', matrix.shape);
        tensor.data.set(matrix.data as Uint8Array);
        made.push(tensor);
        return tensor;
      };
      const weights = isPacked
        ? wg.pack(placed(call.weights) as never, { op: 'matmulNBits' })
        : placed(call.weights, place);
      const [, , options] = argumentsOf(call, {}, place, weights);
      const before = snapshot(a);
      const [wanted, what] = [reference(call), describeCall(call)];
      expectNear(run([a, weights, options]), wanted, what);
      expect(run([a, weights, { ...(options as object), out }])).toBe(out);
      const to = out as { strides?: number[]; offset?: number };
      const [down, across] = to.strides ?? [n, 1];
      const places = wanted.values.map(
        (_, i) =>
          (to.offset ?? 0) + Math.floor(i / n) * (down as number) + (i % n) * (across as number),
      );
      expectNear({ data: out.data, shape: out.shape, dtype }, wanted, `${what}, out`, places);
      expect(snapshot(a)).toEqual(before);
      drop(weights, ...made);
      expect(wg.memory().inUse, 'bytes in use').toBe(inUse);
      drop(a, out);
    }),
    { seed, numRuns: runs(400) },
  );
});

/** Mostly what is right for weights of two columns of 16 codes. */
const near = (good: unknown) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(good) }, nearlyRight, small, anything);
const tensorLike = (data: unknown, shape: unknown) =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ data: near(data), shape: near(shape) }, { requiredKeys: ['data'] }),
    },
    anything,
  );

it('any other arguments give a GemmError', () => {
  const { inUse } = wg.memory();
  let good = 0;
  fc.assert(
    fc.property(
      tensorLike(new Float32Array(16), [1, 16]),
      fc.oneof(
        {
          weight: 9,
          arbitrary: fc.record(
            {
              data: tensorLike(new Uint8Array(16), [2, 1, 8]),
              scales: tensorLike(new Float32Array(2), [2, 1]),
              zeroPoints: fc.oneof(fc.constant(undefined), tensorLike(new Uint8Array(2), [2, 1])),
              k: near(16),
              n: near(2),
              bits: near(4),
              blockSize: near(16),
            },
            { requiredKeys: ['data', 'scales', 'k', 'n', 'blockSize'] },
          ),
        },
        anything,
      ),
      fc.oneof(
        fc.constant(undefined),
        fc.record(
          {
            bias: near(new Float32Array(2)),
            accuracyLevel: near(4),
            activation: near('relu'),
            out: tensorLike(new Float32Array(2), [1, 2]),
          },
          { requiredKeys: [] },
        ),
        anything,
      ),
      (a, weights, options) => {
        const called = succeeds(() => run([a, weights, options]));
        const explained = succeeds(() =>
          (wg.explain as unknown as Loose)('matmulNBits', a, weights, options),
        );
        expect(explained).toBe(called);
        const packs = succeeds(() =>
          (wg.pack as unknown as (...args: unknown[]) => { dispose: () => void })(weights, {
            op: 'matmulNBits',
          }).dispose(),
        );
        if (called) {
          ++good;
          expect(packs).toBe(true);
        }
      },
    ),
    { seed, numRuns: runs(3000) },
  );
  expect(good).toBeGreaterThan(0);
  expect(wg.memory().inUse).toBe(inUse);
});
