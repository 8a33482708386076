/**
 * The option `vectors`: results have the same bits whatever it is, with and without the flag by which
 * V8 joins vectors.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { hashes } from '../support/fixed-problems.js';
import type { Found } from './vectors.js';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../..', import.meta.url));

const join = '--experimental-wasm-revectorize';
/** Code that V8 has optimized before it runs, since only that joins vectors. */
const optimized = '--no-liftoff';
/** Processors with VNNI have dot products of 8 bits, and other kernels without. */
const withoutVnni = '--no-enable-avx-vnni';

/** Node has the flags of its V8 alone. */
const hasFlag = await run(process.execPath, [join, '--eval', '0']).then(
  () => true,
  () => false,
);

async function resultsIn(...flags: string[]): Promise<Found> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('vectors.ts', import.meta.url))],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    external: ['wgemm'],
    logLevel: 'error',
  });
  const child = run(process.execPath, [...flags, '--input-type=module'], {
    cwd: root,
    maxBuffer: Infinity,
  });
  child.child.stdin?.end(outputFiles[0]?.text);
  return JSON.parse((await child).stdout) as Found;
}

const plain = await resultsIn(optimized);

const engines = [
  { flags: [optimized] },
  { flags: [optimized, join] },
  { flags: [optimized, withoutVnni] },
  { flags: [optimized, withoutVnni, join] },
].filter(({ flags }) => hasFlag || !flags.includes(join));

describe.each(engines)('with $flags', ({ flags }) => {
  it('gives the same bits with vectors of 16 and of 32 bytes', async () => {
    const found = await resultsIn(...flags);
    for (const vectors of [16, 32] as const) {
      const { strict, serialized, fast } = found[vectors];
      expect(strict).toBe(hashes.strict);
      expect(serialized).toBe(hashes.serialized);
      // First each by its name. Results of floats depend on the processor.
      expect(fast.filter((result, i) => result !== plain[16].fast[i])).toEqual([]);
    }
    // Other kernels computed them.
    const others = found[32].kernels.filter((kernel, i) => kernel !== found[16].kernels[i]);
    const ofFloats = ['f32_5x16__relaxed', 'f64_5x8__relaxed', 'f32_bf16_4x16__relaxed'];
    if (process.arch !== 'x64') return;
    expect(others).toEqual(expect.arrayContaining(ofFloats));
    if (flags.includes(withoutVnni)) expect(others).toContain('i8_i16_4x16c2__simd128');
  });
});

it('says which it has, and plans calls by it', async () => {
  for (const vectors of [16, 32, 'auto'] as const) {
    using wg = await createGemm({ vectors });
    expect(wg.info.vectors).toBe(vectors);
    const a = { data: new Float32Array(100 * 100), shape: [100, 100] };
    const plan = wg.explain('gemm', a, a);
    expect(plan.vectors).toBe(vectors === 32 ? 32 : 16);
    const joins = wg.info.build === 'relaxed' && vectors === 32;
    if (process.arch === 'x64') expect(plan.kernel.includes('_5x16__')).toBe(joins);
  }
});

async function decided(...flags: string[]): Promise<unknown> {
  const script = `
    const { createGemm } = await import('wgemm');
    const wg = await createGemm({ vectors: 'auto' });
    const a = { data: new Float32Array(512 * 512).fill(0.5), shape: [512, 512] };
    const end = performance.now() + 3000;
    const first = wg.gemm(a, a).data;
    let same = true;
    while (performance.now() < end && wg.explain('gemm', a, a).vectors === 16)
      same &&= wg.gemm(a, a).data.every((x, i) => x === first[i]);
    console.log(JSON.stringify([wg.explain('gemm', a, a).vectors, same]));`;
  const args = [...flags, '--input-type=module', '--eval', script];
  return JSON.parse((await run(process.execPath, args, { cwd: root })).stdout);
}

it("'auto' keeps vectors of 16 bytes in an engine that does not join them", async () => {
  expect(await decided()).toEqual([16, true]);
});

// The engine measures between calls, so a busy machine decides when 'auto' decides.
it.runIf(hasFlag)(
  "'auto' takes vectors of 32 bytes if the engine joins",
  { retry: 3 },
  async () => {
    expect(await decided(join)).toEqual([32, true]);
  },
);
