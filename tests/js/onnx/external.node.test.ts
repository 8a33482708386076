/** Weights that are packed while they are read: in a worker, and how much memory that takes. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { createGemm as createInWorker } from 'wgemm/worker';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { expectError, rejected } from '../support/errors.js';
import { Random } from '../support/tensors.js';

const program = fileURLToPath(new URL('external-memory.mjs', import.meta.url));
// Node 20 has relaxed SIMD behind a flag, which later versions do not know.
const flags = process.version.startsWith('v20.') ? ['--experimental-wasm-relaxed-simd'] : [];

it.each([
  ['in this thread', false, false],
  ['in this thread, transposed', false, true],
  ['in a worker', true, true],
])('a tensor of 100 MB takes at most 1.1 times its packed bytes, %s', async (_, ...settings) => {
  const args = ['--expose-gc', ...flags, program, ...settings.map(String)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { packed, read, live } = JSON.parse(stdout) as Record<string, number>;
  expect(read).toBe(packed);
  expect(live).toBeGreaterThan(1);
  // The arrays of parts that the worker has not freed count, too. Node 20 cannot free them at once.
  expect(live).toBeLessThan(settings[0] && flags.length > 0 ? 2 : 1.1);
});

describe('in a worker', () => {
  const [k, n] = [600, 1000];
  const w = new Random(1).fill(new Float32Array(k * n));
  const v = new Random(2).fill(new Float32Array(n * 5));
  const bytes = new Uint8Array(4 * (w.length + v.length));
  bytes.set(new Uint8Array(w.buffer));
  bytes.set(new Uint8Array(v.buffer), w.byteLength);
  const model = encodeGraph({
    nodes: [
      { op: 'MatMul', inputs: ['x', 'w'], outputs: ['h'] },
      { op: 'Gemm', inputs: ['h', 'v'], outputs: ['y'], attributes: { transB: 1 } },
    ],
    inputs: [{ name: 'x', dtype: 'float32', shape: [2, k] }],
    outputs: [{ name: 'y', dtype: 'float32', shape: [2, 5] }],
    initializers: [
      { name: 'w', dtype: 'float32', shape: [k, n], external: { location: 'f', offset: 0 } },
      {
        name: 'v',
        dtype: 'float32',
        shape: [5, n],
        external: { location: 'f', offset: w.byteLength },
      },
    ],
  });
  const x = { data: new Random(3).fill(new Float32Array(2 * k)), shape: [2, k] };

  it('models have the same bits, and their memory is theirs', async () => {
    const wg = await createInWorker({ models: true, determinism: 'strict' });
    const here = await createGemm({ models: true, determinism: 'strict' });
    const before = (await wg.memory()).inUse;
    const lengths: number[] = [];
    const f = (offset: number, length: number) => {
      lengths.push(length);
      return Promise.resolve(bytes.subarray(offset, offset + length));
    };
    const told: number[] = [];
    const progress = (done: number) => void told.push(done);
    const loaded = await loadModel(model, { wg, externalData: { f }, progress });
    const whole = await loadModel(model, {
      wg: here,
      externalData: ({ offset, length }) => bytes.slice(offset, offset + length),
    });
    globalThis.gc?.(); // handles of the page that are collected must not free the weights
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await loaded.run({ x })).toEqual(await whole.run({ x }));
    expect(Math.max(...lengths)).toBeLessThanOrEqual(2 ** 20);
    expect(lengths.reduce((sum, each) => sum + each, 0)).toBe(bytes.length);
    expect(told).toEqual([...told].sort((a, b) => a - b));
    expect(told.at(-1)).toBe(1);
    loaded.dispose();
    expect((await wg.memory()).inUse).toBe(before);
    for (const each of [whole, here, wg]) each.dispose();
  });

  it('errors free the memory', async () => {
    const wg = await createInWorker({ models: true });
    const before = (await wg.memory()).inUse;
    const failure = new Error('404');
    for (const at of [0, w.byteLength]) {
      const f = (offset: number, length: number) => {
        if (offset === at) throw failure;
        return bytes.subarray(offset, offset + length);
      };
      expect(await rejected(loadModel(model, { wg, externalData: { f } }))).toBe(failure);
      expect((await wg.memory()).inUse).toBe(before);
    }
    // While the worker has all weights, and makes the model.
    const stop = (done: number) => {
      if (done === 1) throw failure;
    };
    const loading = loadModel(model, { wg, externalData: { f: bytes }, progress: stop });
    expect(await rejected(loading)).toBe(failure);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await wg.memory()).inUse).toBe(before);
    wg.dispose();
    const ended = rejected(loadModel(model, { wg, externalData: { f: bytes } }));
    expectError(await ended, { code: 'DISPOSED', op: 'loadModel', argument: 'instance', says: [] });
  });
});
