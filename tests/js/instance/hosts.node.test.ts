/** Errors in a runtime that lacks something, and package.json. */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { version } from 'wgemm';

/** The errors of createGemm in a process of its own, as [name, message]. */
async function errorsIn(entry: string, start: string, ...flags: string[]): Promise<unknown> {
  const script = `
    ${start};
    const { createGemm } = await import(${JSON.stringify(import.meta.resolve(entry))});
    const told = [];
    for (const options of [{}, { threads: 2 }])
      await createGemm(options).then(
        (wg) => (wg.dispose(), told.push(['', ''])),
        ({ name, message }) => told.push([name, message]),
      );
    console.log(JSON.stringify(told));`;
  const args = [...flags, '--no-warnings', '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

const entries = ['wgemm', 'wgemm/worker'];

describe.each(entries)('%s', (entry) => {
  it('says that the engine has no WebAssembly', async () => {
    const error = ['UnsupportedError', 'createGemm: this engine has no WebAssembly'];
    expect(await errorsIn(entry, '', '--jitless')).toEqual([error, error]);
    const hides = 'delete globalThis.WebAssembly';
    if (entry === 'wgemm') expect(await errorsIn(entry, hides)).toEqual([error, error]);
  });

  it('says which Node it needs', async () => {
    const rule = 'it must be 20.16 or later in version 20, or 22.3 or later';
    const message = `createGemm: Node ${process.versions.node} is too old; ${rule}`;
    const told = (await errorsIn(entry, 'delete process.getBuiltinModule')) as string[][];
    expect(told[0]).toEqual(['UnsupportedError', message]);
    expect(told[1]?.[1]).toContain(message.replace('createGemm: ', ''));
  });

  it('leaves it to the runtime which flag to give', async () => {
    const folder = dirname(fileURLToPath(import.meta.resolve('wgemm')));
    const scripts = ['index.js', 'worker.js', 'worker-linear.js', 'worker-search.js'];
    const flags = scripts.map((script) => `--allow-fs-read=${join(folder, script)}`);
    for (const [name, message] of (await errorsIn(
      entry,
      '',
      '--permission',
      ...flags,
    )) as string[][]) {
      expect(name).toBe('GemmError');
      expect(message).toMatch(/--allow-(fs-read|worker)[^;]*\)$/);
    }
  });
});

it('its package.json is found by its name', () => {
  const require = createRequire(import.meta.url);
  expect(require('wgemm/package.json')).toMatchObject({ name: 'wgemm', version });
});
