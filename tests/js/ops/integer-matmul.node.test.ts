/** The integer products in the worker and on threads. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { createGemm as createWorker, type WorkerGemm } from 'wgemm/worker';
import { argumentsOf, type Call, draw, operations } from '../support/integer-products.js';
import type { Matrix } from '../support/reference.js';
import { Random } from '../support/random.js';

let wg: Gemm;
let threaded: Gemm;
let worker: WorkerGemm;
beforeAll(async () => {
  [wg, threaded, worker] = await Promise.all([
    createGemm({ threads: 1 }),
    createGemm({ threads: 3 }),
    createWorker(),
  ]);
});
afterAll(() => {
  for (const each of [wg, threaded, worker]) each.dispose();
});

type Calls = Record<string, (...args: unknown[]) => unknown>;
const call = (on: unknown, { op }: Call, args: unknown[]) => (on as Calls)[op]?.(...args);

it.each(operations)('%s is the same in the worker', async (op) => {
  const random = new Random(12);
  for (let i = 0; i < 20; ++i) {
    const drawn = draw(random, op);
    const wanted = call(wg, drawn, argumentsOf(drawn));
    expect(await call(worker, drawn, argumentsOf(drawn))).toEqual(wanted);
    expect(
      await (worker.explain as (...args: unknown[]) => unknown)(op, ...argumentsOf(drawn)),
    ).toEqual((wg.explain as (...args: unknown[]) => unknown)(op, ...argumentsOf(drawn)));
    // The arrays move to the worker.
    const moved = structuredClone(drawn);
    const options = { transfer: true };
    expect(await call(worker, moved, argumentsOf(moved, options))).toEqual(wanted);
    expect(moved.a.data.length).toBe(0);
    // The worker finds the same error.
    const bad = { ...drawn, b: { ...drawn.b, shape: [3, 3, 3] } };
    const error = await (call(worker, bad, argumentsOf(bad)) as Promise<unknown>).catch(String);
    let here: unknown;
    try {
      call(wg, bad, argumentsOf(bad));
    } catch (found) {
      here = String(found);
    }
    expect(error).toBe(here);
  }
});

it.each(operations)('%s is the same on threads', (op) => {
  const random = new Random(13);
  const [m, n, k] = [190, 210, 300];
  const scale = { data: Float32Array.of(0.01), shape: [1], dtype: 'float32' } as Matrix;
  const vectors = {
    ...(op !== 'matmulInteger' && { bScale: scale }),
    ...(op !== 'matmulInteger' && op !== 'dynamicQuantizeMatmul' && { aScale: scale }),
    ...(op === 'qlinearMatmul' && { yScale: scale }),
    ...(op !== 'dynamicQuantizeMatmul' && { aZeroPoint: random.tensor('uint8', [1]) }),
    bZeroPoint: random.tensor('int8', [n]),
  };
  const a = random.tensor(op === 'dynamicQuantizeMatmul' ? 'float32' : 'uint8', [2, m, k]);
  const drawn = { op, a, b: random.tensor('int8', [k, n]), vectors } as Call;
  expect(call(threaded, drawn, argumentsOf(drawn))).toEqual(call(wg, drawn, argumentsOf(drawn)));
});
