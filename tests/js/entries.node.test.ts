/** What the import of an entry does: nothing; and that `wgemm/inline` needs nothing but itself. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
async function run(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: root,
    timeout: 20_000,
  });
  return stdout;
}

it.each(['wgemm', 'wgemm/worker', 'wgemm/inline'])('the import of %s has no effects', async (entry) => {
  const program = `
    import { createRequire } from 'node:module';
    const calls = [];
    const spy = (holder, name) => {
      const descriptor = Object.getOwnPropertyDescriptor(holder, name);
      Object.defineProperty(holder, name, { ...descriptor, value: new Proxy(function () {}, { apply: () => calls.push(name), construct: () => (calls.push(name), {}) }) });
    };
    for (const name of Object.getOwnPropertyNames(WebAssembly)) if (typeof WebAssembly[name] === 'function') spy(WebAssembly, name);
    spy(createRequire(import.meta.url)('node:worker_threads'), 'Worker');
    for (const name of ['fetch', 'setTimeout', 'setInterval', 'MessageChannel', 'BroadcastChannel', 'Worker', 'structuredClone', 'queueMicrotask']) {
      Object.defineProperty(globalThis, name, { value: (...args) => calls.push(name), configurable: true, writable: true });
    }
    const state = () => JSON.stringify([
      Reflect.ownKeys(globalThis).map(String), process.getActiveResourcesInfo(), process.eventNames().map(String),
      [Array, Object, Promise, Symbol, Float32Array, Function].map((each) => [...Reflect.ownKeys(each), ...Reflect.ownKeys(each.prototype)].map(String)),
    ]);
    const before = state();
    await import(${JSON.stringify(entry)});
    console.log(before === state(), calls.join());
  `;
  expect(await run(program)).toBe('true \n');
});

it('wgemm/inline works without fetch, and without files beside it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'wgemm-'));
  try {
    const file = join(folder, 'inline.mjs');
    await copyFile(fileURLToPath(import.meta.resolve('wgemm/inline')), file);
    const program = `
      delete globalThis.fetch;
      delete globalThis.process.getBuiltinModule;
      delete globalThis.XMLHttpRequest;
      const { createGemm } = await import(${JSON.stringify(pathToFileURL(file).href)});
      const wg = await createGemm();
      const a = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };
      console.log(wg.gemm(a, a).data.join());
    `;
    expect(await run(program)).toBe('7,10,15,22\n');
  } finally {
    await rm(folder, { recursive: true });
  }
});
