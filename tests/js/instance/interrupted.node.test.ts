/**
 * Calls that the engine interrupts: by a stack overflow, by a timeout of `vm`.
 * tests/js/instance/interrupted.mjs makes them.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { createGemm } from 'wgemm';
import { expectError, thrown } from '../support/errors.js';

const program = fileURLToPath(new URL('interrupted.mjs', import.meta.url));
// Node 20 has relaxed SIMD behind a flag, which later versions do not know.
const flags = process.version.startsWith('v20.') ? ['--experimental-wasm-relaxed-simd'] : [];

/** Runs a scenario in a separate process, which nothing may keep alive. */
async function run(...args: string[]): Promise<{ wrong: string[]; ended: Record<string, number> }> {
  const child = spawn(process.execPath, ['--expose-gc', ...flags, program, ...args], {
    timeout: 120_000,
  });
  let out = '';
  child.stdout.on('data', (data) => (out += String(data)));
  child.stderr.on('data', (data) => (out += String(data)));
  const exit = await new Promise<number | null>((resolve) => child.on('close', resolve));
  expect(exit, out).toBe(0);
  return JSON.parse(out) as Awaited<ReturnType<typeof run>>;
}

describe.each([
  ['simd128', '2'],
  ['relaxed', '1'],
])('on %s with %s threads', (simd, threads) => {
  it('a recursion that is too deep leaves an instance that works, or that has ended and says so', async () => {
    const { wrong, ended } = await run(simd, threads, 'overflow');
    expect(wrong).toEqual([]);
    expect(Object.keys(ended).length).toBeGreaterThan(10); // of 15 calls
  }, 150_000);

  it('a timeout of vm ends the instance', async () => {
    const { wrong, ended } = await run(simd, threads, 'timeout');
    expect(wrong).toEqual([]);
    expect(Object.keys(ended)).toHaveLength(2);
  }, 150_000);

  it('an instance that ended frees its memory', async () => {
    const { wrong, ended } = await run(simd, threads, 'memory');
    expect(wrong).toEqual([]);
    expect(ended.memory).toBeGreaterThan(5);
  }, 150_000);
});

it('an error on the way of a block to the heap ends the instance', async () => {
  const wg = await createGemm({ threads: 1, maxMemory: 700_000 });
  const square = { data: new Float32Array(90_000), shape: [300, 300] };
  expect(wg.explain('gemm', square, square).outOfCore).toBe(true);
  const tensor = wg.alloc('float32', [2]);
  const mine = new RangeError('mine');
  const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array; // blocks move by their words
  const set = vi.spyOn(typedArray, 'set').mockImplementation(() => {
    throw mine;
  });
  try {
    expect(thrown(() => wg.gemm(square, square))).toBe(mine);
  } finally {
    set.mockRestore();
  }
  expect([wg.disposed, tensor.disposed]).toEqual([true, true]);
  const says = ['interrupted its call of gemm (mine)', 'create another with createGemm()'];
  expectError(
    thrown(() => wg.alloc('int8', [1])),
    { code: 'INTERRUPTED', op: 'alloc', argument: 'instance', says },
  );
  expectError(
    thrown(() => tensor.data),
    { code: 'INTERRUPTED', op: 'data', argument: 'instance', says },
  );
  tensor.dispose();
  wg.dispose();
});
