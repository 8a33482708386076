/**
 * The integer products beside ONNX Runtime Web, bit for bit; in the worker; and on threads.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { createGemm as createWorker, type WorkerGemm } from 'wgemm/worker';
import { encodeModel, loadOrt, type Ort } from '../peers/onnx.mjs';
import {
  argumentsOf,
  type Call,
  describeCall,
  draw,
  operations,
  reference,
} from './integer-products.js';
import type { Matrix } from './reference.js';
import { Random } from './random.js';

let wg: Gemm;
let threaded: Gemm;
let worker: WorkerGemm;
let ort: Ort;
beforeAll(async () => {
  [wg, threaded, worker, ort] = await Promise.all([
    createGemm({ threads: 1 }),
    createGemm({ threads: 3 }),
    createWorker(),
    loadOrt(),
  ]);
});
afterAll(() => {
  for (const each of [wg, threaded, worker]) each.dispose();
});

type Calls = Record<string, (...args: unknown[]) => unknown>;
const call = (on: unknown, { op }: Call, args: unknown[]) => (on as Calls)[op]?.(...args);

/** The inputs of the operator, in its order. */
const inputsOf = {
  matmulInteger: ['a', 'b', 'aZeroPoint', 'bZeroPoint'],
  qlinearMatmul: ['a', 'aScale', 'aZeroPoint', 'b', 'bScale', 'bZeroPoint', 'yScale', 'yZeroPoint'],
  dynamicQuantizeMatmul: ['a', 'b', 'bScale', 'bZeroPoint', 'bias'],
  matmulIntegerToFloat: ['a', 'b', 'aScale', 'bScale', 'aZeroPoint', 'bZeroPoint', 'bias'],
} as const;
const types = {
  matmulInteger: 'MatMulInteger',
  qlinearMatmul: 'QLinearMatMul',
  dynamicQuantizeMatmul: 'DynamicQuantizeMatMul',
  matmulIntegerToFloat: 'MatMulIntegerToFloat',
};

it.each(operations)(
  '%s has the bits of ONNX Runtime Web',
  async (op) => {
    const random = new Random(11);
    for (let i = 0; i < 60; ++i) {
      const drawn = draw(random, op, true);
      const { shape, dtype } = reference(drawn);
      const given = {
        ...drawn.vectors,
        a: drawn.a,
        b: drawn.b,
        bias: drawn.bias,
      } as Record<string, Matrix | undefined>;
      const inputs = inputsOf[op].map((name) => {
        const input = given[name];
        return input ? { name, dtype: input.dtype, shape: input.shape } : null;
      });
      const model = encodeModel({
        type: types[op],
        domain: op === 'matmulInteger' || op === 'qlinearMatmul' ? '' : 'com.microsoft',
        inputs,
        output: { dtype, shape },
      } as never);
      const session = await ort.createSession(model);
      const feeds = Object.fromEntries(
        inputsOf[op]
          .filter((name) => given[name])
          .map((name) => [name, ort.tensor(given[name] as never)]),
      );
      const { Y } = (await session.run(feeds)) as Record<string, { data: ArrayLike<number> }>;
      const found = call(wg, drawn, argumentsOf(drawn)) as Matrix;
      const numbers = (data: unknown) => Array.from(data as Iterable<unknown>, Number);
      expect(numbers(found.data), describeCall(drawn)).toEqual(numbers(Y?.data));
    }
  },
  60_000,
);

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
