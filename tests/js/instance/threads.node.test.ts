/** Threads in Node: the process ends with them, may not have any, or makes many. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { expectError, notCreated } from '../support/errors.js';
import { Random, sameBytes } from '../support/tensors.js';

const folder = mkdtempSync(join(tmpdir(), 'wgemm-threads-'));
afterAll(() => rmSync(folder, { recursive: true }));

// Counts the workers that are alive: Node lists only those that keep the process alive.
let alive = 0;
const threads = process.getBuiltinModule('node:worker_threads');
const { Worker } = threads;
threads.Worker = class extends Worker {
  constructor(...args: ConstructorParameters<typeof Worker>) {
    super(...args);
    ++alive;
    this.once('exit', () => --alive);
  }
};
afterAll(() => void (threads.Worker = Worker));

/** Runs a module in a process of its own, which has 10 seconds. */
async function run(
  code: string,
  ...flags: string[]
): Promise<{ exit: number | null; out: string; seconds: number }> {
  const script = join(folder, 'script.mjs');
  writeFileSync(script, `import { createGemm } from '${import.meta.resolve('wgemm')}';\n${code}`);
  const start = performance.now();
  const child = spawn(process.execPath, [...flags, script], { timeout: 10_000 });
  let out = '';
  child.stdout.on('data', (data) => (out += String(data)));
  child.stderr.on('data', (data) => (out += String(data)));
  const exit = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { exit, out, seconds: (performance.now() - start) / 1000 };
}

const use = `
  const square = { data: new Float32Array(256 * 256).fill(1), shape: [256, 256] };
  console.log(wg.info.threads, wg.explain('gemm', square, square).threads, wg.gemm(square, square).data[0]);`;

describe('threads', () => {
  it('do not keep a process alive', async () => {
    const { exit, out, seconds } = await run(`const wg = await createGemm({ threads: 3 });${use}`);
    expect({ exit, out }).toEqual({ exit: 0, out: '3 3 256\n' });
    expect(seconds).toBeLessThan(5);
  });

  it('do not keep a process alive while nobody waits for them', async () => {
    const { exit, out } = await run(
      `createGemm({ threads: 3 }).then((wg) => console.log(wg.info.threads));`,
    );
    expect({ exit, out }).toEqual({ exit: 0, out: '3\n' });
  });

  it('are an error within seconds if workers are forbidden, and one with auto', async () => {
    const forbidden = ['--permission', '--allow-fs-read=*', '--no-warnings'];
    const number = await run(
      `await createGemm({ threads: 2 }).catch(({ name, code, message }) => console.log(name, code, message));`,
      ...forbidden,
    );
    expect(number).toMatchObject({
      exit: 0,
      out: expect.stringMatching(
        /^GemmError WORKER createGemm: threads is 2, but a thread does not start/,
      ) as string,
    });
    expect(number.seconds).toBeLessThan(5);
    const auto = await run(
      `const wg = await createGemm({ threads: 'auto' });${use}\nconsole.log(wg.info.why);`,
      ...forbidden,
    );
    expect(auto).toMatchObject({
      exit: 0,
      out: expect.stringMatching(
        /^1 1 256\n.*threads: (one, since more do not start|one, since there is only one processor)/,
      ) as string,
    });
    expect(auto.seconds).toBeLessThan(5);
  });

  it.each([
    ['ends at once', 'process.exit(7);', 'code 7'],
    ['throws', 'throw new Error("mine");', 'mine'],
    ['says nothing', 'setInterval(() => {}, 1000);', '2 of 2 did not answer'],
  ])('are an error where the script %s, and nothing is left', async (_, code, why) => {
    const script = join(folder, 'thread.mjs');
    writeFileSync(script, code);
    const file = new URL(import.meta.resolve('wgemm/assets/wgemm-simd128-mt.wasm'));
    const assets = (name: string) => (name.endsWith('.wasm') ? file : pathToFileURL(script));
    const start = performance.now();
    expectError(await notCreated({ threads: 3, simd: 'simd128', assets }), {
      code: 'WORKER',
      op: 'createGemm',
      argument: 'threads',
      says: [why],
    });
    expect(performance.now() - start).toBeLessThan(5000);
    await expect.poll(() => alive).toBe(0);
  });

  it('start if the process was busy for longer than they are waited for', async () => {
    const creating = createGemm({ threads: 3 });
    await expect.poll(() => alive, { interval: 1 }).toBe(2);
    for (const end = performance.now() + 4500; performance.now() < end;) Math.random();
    const wg = await creating;
    await new Promise((resolve) => setTimeout(resolve, 50));
    const square = { data: new Float32Array(256 * 256).fill(1), shape: [256, 256] };
    expect(wg.gemm(square, square).data[0]).toBe(256);
    wg.dispose();
  });

  it('come, work and go 100 times, and leave nothing', async () => {
    const [a, b] = [
      new Random(1).tensor('float32', [100, 128]),
      new Random(2).tensor('float32', [128, 100]),
    ];
    const one = await createGemm({ threads: 1 });
    const wanted = one.gemm(a, b).data;
    let kept = 0;
    for (let round = 1; round <= 100; ++round) {
      const wg = await createGemm({ threads: 2 + (round % 2) });
      expect(wg.explain('gemm', a, b).threads).toBe(wg.info.threads);
      expect(sameBytes(wg.gemm(a, b).data, wanted)).toBe(true);
      wg.dispose();
      if (round === 30) kept = await resident();
    }
    await expect.poll(() => alive).toBe(0);
    expect((await resident()) - kept).toBeLessThan(100e6); // an instance takes over a megabyte, and its workers ten
    one.dispose();
  }, 300_000);

  it('end when an instance was only dropped', async () => {
    const drop = async () => {
      const wg = await createGemm({ threads: 3 });
      expect(alive).toBe(2);
      return new WeakRef(wg);
    };
    const dropped = await drop();
    await expect.poll(async () => (await collect(), alive)).toBe(0);
    expect(dropped.deref()).toBeUndefined();
  });
});

async function collect(): Promise<void> {
  (globalThis.gc as () => void)();
  await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Bytes of the process, once the collector has run. */
async function resident(): Promise<number> {
  for (let i = 0; i < 10; ++i) await collect();
  return process.memoryUsage().rss;
}
