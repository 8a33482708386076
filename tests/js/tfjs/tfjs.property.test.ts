/**
 * `wgemm/tfjs` in random calls: each result is the result of plain loops, and of tfjs without wgemm,
 * where tfjs is right.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { install } from 'wgemm/tfjs';
import { tf } from '../../peers/tfjs-backends.mjs';
import { seed } from '../support/arbitraries.js';
import { Random } from '../support/random.js';
import { activations, elements, expectClose, type Product, wantedOf } from './tfjs.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  expect(wg.memory().inUse).toBe(0);
  wg.dispose();
});

/** Around the borders of the rule for loops, and beyond 48 steps of K. */
const size = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 20 }) },
  { weight: 1, arbitrary: fc.integer({ min: 21, max: 100 }) },
  { weight: 1, arbitrary: fc.constant(0) },
);
/** Batch axes of a, b and the result. tfjs makes one axis of several. */
const batches = fc.constantFrom<[a: number[], b: number[], result: number[]]>(
  [[], [], []],
  [[], [], []],
  [[3], [], [3]],
  [[], [2], [2]],
  [[1], [4], [4]],
  [[3], [3], [3]],
  [
    [2, 2],
    [2, 2],
    [2, 2],
  ],
);
/** Which axes of the result a bias or slopes have; 1 stands for an axis of size 1. */
const axes = fc.constantFrom('none', 'n', 'n', '1', '1n', 'm1', 'mn', 'b11', 'b1n', 'bmn');

const call = fc.record({
  batches,
  m: size,
  n: size,
  k: size,
  transposeA: fc.boolean(),
  transposeB: fc.boolean(),
  activation: fc.constantFrom(...Object.keys(activations)),
  bias: axes,
  slopes: axes,
  isFused: fc.boolean(),
  always: fc.boolean(),
  calls: fc.integer({ min: 1, max: 3 }),
  /** Among the elements of a. */
  special: fc.option(fc.constantFrom(NaN, Infinity, -Infinity, -0), { freq: 4 }),
  seed: fc.integer(),
});
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

/** The shape of a bias or of slopes. null: there are none, or the result has no batch axis. */
function shapeOf(axes: string, batch: number[], m: number, n: number): number[] | null {
  if (axes === 'none' || (axes.startsWith('b') && batch.length !== 1)) return null;
  const sizes: Record<string, number> = { b: batch[0] ?? 1, m, n, 1: 1 };
  return Array.from(axes, (axis) => sizes[axis] as number);
}

function productOf(call: Call): Product {
  const { batches, m, n, k, transposeA, transposeB, activation, special } = call;
  const random = new Random(call.seed);
  const tensor = (shape: number[], value: number | null = null) => {
    const { data } = random.tensor('float32', shape);
    if (value !== null && data.length > 0) data[random.between(0, data.length - 1)] = value;
    return tf.tensor(data, shape, 'float32');
  };
  const [ofBias, ofSlopes] = [call.bias, call.slopes].map((axes) =>
    shapeOf(axes, batches[2], m, n),
  );
  const slopes = () => tensor(ofSlopes ?? [n]);
  return {
    a: tensor([...batches[0], ...(transposeA ? [k, m] : [m, k])], special),
    b: tensor([...batches[1], ...(transposeB ? [n, k] : [k, n])]),
    transposeA,
    transposeB,
    ...(call.isFused && {
      ...(ofBias && { bias: tensor(ofBias) }),
      activation,
      leakyreluAlpha: 0.3,
      ...(activation === 'prelu' && { preluActivationWeights: slopes() }),
    }),
  };
}

/** Whether tfjs 4.22 computes this by XNNPACK. */
function isXnnpack(backendName: string, { batches, transposeA, transposeB }: Call): boolean {
  return backendName === 'wasm' && !transposeA && !transposeB && batches[2].every((n) => n === 1);
}

/** Whether the backend of tfjs 4.22 computes this right. If not, it throws or has wrong numbers. */
function isTfjsRight(backendName: string, call: Call): boolean {
  const { batches, m, n, k, isFused, activation, bias, slopes, special } = call;
  // XNNPACK divides by sizes, and both backends have errors with empty batches.
  if (m * n * k === 0 || batches[2].includes(0)) return false;
  if (backendName === 'cpu' || !isFused) return true;
  const isByXnnpack = isXnnpack(backendName, call);
  if (isByXnnpack && special !== null) return false; // its relu makes 0 of NaN
  const repeats = ['none', 'n', '1n', 'mn', 'bmn', '1'];
  if (activation === 'prelu' && !repeats.includes(slopes)) return false;
  if (isByXnnpack) return bias === 'none' || bias === 'n';
  if (bias === 'none') return k <= 48 || !activation.startsWith('relu');
  return bias === 'n' && k <= 48 && (m === 1 || n === 1);
}

describe.each(['wasm', 'cpu'])('%s', (backendName) => {
  it('has the numbers of plain loops and of tfjs', async () => {
    await tf.setBackend(backendName);
    const before = tf.memory();
    let compared = 0;
    const multiply = (call: Call, product: Product) => {
      const { a, b, transposeA, transposeB } = product;
      return call.isFused ? tf.fused.matMul(product) : tf.matMul(a, b, transposeA, transposeB);
    };
    const check = async (call: Call) => {
      const product = productOf(call);
      const tensors = [product.a, product.b, product.bias, product.preluActivationWeights];
      const shape = [...call.batches[2], call.m, call.n];
      const wanted = wantedOf(product, shape);
      const theirs = isTfjsRight(backendName, call) ? multiply(call, product) : null;
      const remove = await install(tf, { wg, always: call.always });
      try {
        for (let times = 0; times < call.calls; ++times) {
          const y = multiply(call, product);
          try {
            expect(y.shape).toEqual(shape);
            // XNNPACK's results have no NaN after relu.
            if (call.always || call.special === null || !isXnnpack(backendName, call))
              expectClose(elements(y), wanted);
            if (theirs) expectClose(elements(y), elements(theirs));
          } finally {
            y.dispose();
          }
        }
        compared += theirs ? 1 : 0;
      } finally {
        remove();
        for (const each of [...tensors, theirs]) each?.dispose();
      }
    };
    await fc.assert(fc.asyncProperty(call, check), { seed, numRuns: 600 });
    expect(compared).toBeGreaterThan(150);
    const { numTensors, numDataBuffers } = tf.memory();
    expect({ numTensors, numDataBuffers }).toEqual({
      numTensors: before.numTensors,
      numDataBuffers: before.numDataBuffers,
    });
  });
});
