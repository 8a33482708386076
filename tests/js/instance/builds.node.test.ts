/** The build that createGemm chooses, in processes of their own: it asks the engine once. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const x86 = process.arch === 'x64';
const flags = ['--no-enable-fma3'];

/** What a module prints, as JSON, in a process of its own. */
async function run(code: string, ...flags: string[]): Promise<unknown> {
  const script = `
    const print = (value) => console.log(JSON.stringify(value));
    const load = () => import(${JSON.stringify(import.meta.resolve('wgemm'))});
    const chosen = async (options) => {
      const { info } = await (await load()).createGemm(options);
      return [info.build, info.why.split(';')[0]];
    };
    ${code}`;
  const args = [...flags, '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

describe('the build', () => {
  it.runIf(x86)('is simd128 if the engine does not fuse multiply-adds', async () => {
    const why = 'build: this engine does not fuse multiply-adds';
    expect(await run('print(await chosen())', ...flags)).toEqual(['simd128', why]);
    expect(await run(`print(await chosen({ simd: 'relaxed' }))`, ...flags)).toEqual([
      'relaxed',
      'build: as asked',
    ]);
  });

  it('is relaxed if the engine forbids what tells whether it fuses', async () => {
    for (const what of ['Module', 'Instance']) {
      expect(
        await run(`
          const original = WebAssembly.${what};
          WebAssembly.${what} = class {
            static [Symbol.hasInstance] = (value) => value instanceof original;
            constructor() { throw new WebAssembly.CompileError('forbidden'); }
          };
          print(await chosen());`),
      ).toEqual(['relaxed', 'build: the engine has relaxed SIMD']);
    }
  });

  it('is found by one module, which takes under a millisecond', async () => {
    const [count, best] = (await run(`
      let made = 0;
      const { Instance } = WebAssembly;
      WebAssembly.Instance = class extends Instance {
        constructor(...args) { super(...args); ++made; }
      };
      for (let i = 0; i < 3; ++i) await chosen();
      const { Module } = WebAssembly;
      let best = Infinity;
      let probe;
      WebAssembly.Module = class extends Module { constructor(bytes) { super(bytes); probe = bytes; } };
      const { createGemm } = await import(${JSON.stringify(import.meta.resolve('wgemm'))} + '?again');
      await createGemm();
      for (let i = 0; i < 10; ++i) {
        const start = performance.now();
        new Instance(new Module(probe)).exports[''](1, 1);
        best = Math.min(best, performance.now() - start);
      }
      print([made, best]);`)) as [number, number];
    expect(count).toBe(2); // a copy of the package asks again
    expect(best).toBeLessThan(1);
  });
});

const products = `
  const { createGemm } = await load();
  const [m, n, k] = [5, 40, 64];
  const numbers = (length) => Float32Array.from({ length }, (_, i) => Math.sin(i) * 3);
  const a = { data: numbers(m * k), shape: [m, k] };
  const b = {
    data: { data: Uint8Array.from({ length: n * 32 }, (_, i) => i * 73), shape: [n, 2, 16] },
    scales: { data: numbers(n * 2), shape: [n, 2] }, k, n, bits: 4, blockSize: 32,
  };
  const results = [];
  for (const simd of ['simd128', 'relaxed']) {
    const wg = await createGemm({ simd });
    for (const rows of [1, m]) {
      const x = { data: a.data.subarray(0, rows * k), shape: [rows, k] };
      const { kernel } = wg.explain('matmulNBits', x, b, { accuracyLevel: 4 });
      const { data } = wg.matmulNBits(x, b, { accuracyLevel: 4 });
      results.push([kernel, Buffer.from(data.buffer).toString('base64')]);
    }
  }
  print(results);`;

describe('4 bits at accuracy level 4', () => {
  it.runIf(x86)('have a vector kernel and the same bits where products are not fused', async () => {
    const [one, many, ...relaxed] = (await run(products, ...flags)) as [string, string][];
    expect(one![0]).toBe('f32_nbits_4x8c4__simd128_quantized_a');
    expect(relaxed).toEqual([one, many]);
  });
});
