/** `wgemm/inline` needs no other file. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
async function run(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', program],
    {
      cwd: root,
      timeout: 20_000,
    },
  );
  return stdout;
}

it('wgemm/inline works without fetch, and without files next to it', async () => {
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
