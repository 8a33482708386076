/** matmulNBits in the worker and on threads. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, fromGGUF, type Gemm, quantizeNBits } from 'wgemm';
import * as inWorkerEntry from 'wgemm/worker';
import { createGemm as createWorker, type WorkerGemm } from 'wgemm/worker';
import { argumentsOf, describeCall, draw, placed } from '../support/nbits.js';
import type { Matrix } from '../support/reference.js';
import { Random, sameBytes } from '../support/tensors.js';

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

type Calls = Record<'matmulNBits' | 'explain' | 'pack', (...args: unknown[]) => unknown>;
const on = (instance: unknown) => instance as Calls;

it('is the same in the worker', async () => {
  const random = new Random(1);
  for (let i = 0; i < 30; ++i) {
    const call = draw(random);
    const args = argumentsOf(call);
    const wanted = on(wg).matmulNBits(...args);
    expect(await on(worker).matmulNBits(...args), describeCall(call)).toEqual(wanted);
    expect(await on(worker).explain('matmulNBits', ...args)).toEqual(
      on(wg).explain('matmulNBits', ...args),
    );
    const held: { dispose: () => void }[] = [];
    const tensors: Matrix[] = [];
    argumentsOf(call, {}, (matrix) => tensors.push(matrix));
    const places = new Map<Matrix, unknown>();
    for (const matrix of tensors) {
      const tensor = await worker.alloc(matrix.dtype as 'uint8', matrix.shape);
      await tensor.write(matrix.data as Uint8Array);
      held.push(tensor);
      places.set(matrix, tensor);
    }
    const there = argumentsOf(call, {}, (matrix) => places.get(matrix));
    expect(await on(worker).matmulNBits(...there), describeCall(call)).toEqual(wanted);
    const out = await worker.alloc(call.a.dtype as 'float32', [
      ...call.a.shape.slice(0, -1),
      call.weights.n,
    ]);
    const [a, weights, options] = there;
    expect(await on(worker).matmulNBits(a, weights, { ...(options as object), out })).toBe(out);
    expect(await out.read()).toEqual((wanted as Matrix).data);
    for (const each of [...held, out]) each.dispose();
  }
  expect((await worker.memory()).inUse).toBe(0);
});

it('packs weights in the worker', async () => {
  const random = new Random(2);
  for (let i = 0; i < 20; ++i) {
    const call = draw(random);
    const here = wg.pack(placed(call.weights) as never, { op: 'matmulNBits' });
    const wanted = on(wg).matmulNBits(...argumentsOf(call, {}, undefined, here));
    const moved = structuredClone(call.weights);
    for (const [given, options] of [
      [call.weights, {}],
      [moved, { transfer: true }],
    ] as const) {
      const weights = await worker.pack(placed(given) as never, { op: 'matmulNBits', ...options });
      expect([weights.op, weights.dtype, weights.shape, weights.byteLength]).toEqual([
        here.op,
        here.dtype,
        here.shape,
        here.byteLength,
      ]);
      expect(sameBytes(await weights.serialize(), here.serialize())).toBe(true);
      const args = argumentsOf(call, {}, undefined, weights);
      expect(await on(worker).matmulNBits(...args)).toEqual(wanted);
      const theirs = await worker.deserialize(here.serialize());
      expect([theirs.op, theirs.dtype, theirs.shape]).toEqual([here.op, here.dtype, here.shape]);
      weights.dispose();
      theirs.dispose();
    }
    for (const tensor of [moved.data, moved.scales]) expect(tensor.data.length).toBe(0);
    here.dispose();
  }
  expect((await worker.memory()).inUse).toBe(0);
});

it('moves the arrays of a call, only if it is accepted', async () => {
  const call = draw(new Random(3), { zeros: 'codes', hasBias: true, rows: [3] });
  const wanted = on(wg).matmulNBits(...argumentsOf(call));
  const options = { transfer: true };
  const moved = structuredClone(call);
  const bad = { ...moved, weights: { ...moved.weights, n: moved.weights.n + 1 } };
  const refused = on(worker).matmulNBits(...argumentsOf(bad, options)) as Promise<unknown>;
  await expect(refused).rejects.toMatchObject({ code: 'SHAPE', argument: 'B' });
  const packing = worker.pack(placed(bad.weights) as never, { op: 'matmulNBits', ...options });
  await expect(packing).rejects.toMatchObject({ code: 'SHAPE', op: 'pack', argument: 'B' });
  expect(moved).toEqual(call);
  expect(await on(worker).matmulNBits(...argumentsOf(moved, options))).toEqual(wanted);
  const { data, scales, zeroPoints } = moved.weights;
  for (const tensor of [moved.a, data, scales, zeroPoints, moved.bias])
    expect(tensor?.data.length).toBe(0);
});

it('has the same functions in both entries', () => {
  expect(inWorkerEntry.quantizeNBits).toBe(quantizeNBits);
  expect(inWorkerEntry.fromGGUF).toBe(fromGGUF);
});

it.each([0, 4])('level %i on threads', (level) => {
  const random = new Random(4);
  for (const rows of [[1], [3], [190]]) {
    const call = draw(random, {
      dtype: 'float32',
      rows,
      n: 700,
      k: 900,
      blockSize: 32,
      level,
      zeros: 'codes',
    });
    const weights = threaded.pack(placed(call.weights) as never, { op: 'matmulNBits' });
    const wanted = on(wg).matmulNBits(...argumentsOf(call)) as Matrix;
    for (const args of [argumentsOf(call), argumentsOf(call, {}, undefined, weights)]) {
      const found = on(threaded).matmulNBits(...args) as Matrix;
      if (level === 4) expect(sameBytes(found.data, wanted.data)).toBe(true);
      (found.data as Float32Array).forEach((y, i) => {
        if (Math.abs(Number(y) - Number(wanted.data[i])) > 1e-3)
          expect.fail(`Y[${i}] is ${y}; it must be ${String(wanted.data[i])}`);
      });
    }
    weights.dispose();
  }
});
