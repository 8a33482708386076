/** Engines without some types of arrays: Node in a separate process. */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { fromBits } from '../support/dtypes.js';

it('arrays are Uint16Arrays for float16 in an engine without Float16Array', async () => {
  const program = `
    delete globalThis.Float16Array;
    const { createGemm } = await import('wgemm');
    const wg = await createGemm();
    const tensor = wg.alloc('float16', [1, 1]);
    tensor.data[0] = 0x4200; // 3
    const a = { data: Uint16Array.of(0x3800), shape: [1, 1], dtype: 'float16' }; // 0.5
    const y = wg.gemm(a, tensor, 1);
    const error = (() => { try { wg.gemm({ data: [1], shape: [1, 1] }, a); } catch (error) { return error.message; } })();
    console.log(JSON.stringify([tensor.data.constructor.name, y.data.constructor.name, y.dtype, y.data[0], error]));
  `;
  // In the repository, so that Node finds `wgemm` as it does for a user of the package.
  const folder = new URL('../../../build/engine/', import.meta.url);
  await mkdir(folder, { recursive: true });
  const file = fileURLToPath(new URL('program.mjs', folder));
  await writeFile(file, program);
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  const [heap, result, dtype, bits, error] = JSON.parse(stdout) as [
    string,
    string,
    string,
    number,
    string,
  ];
  expect([heap, result, dtype, fromBits('float16', bits)]).toEqual([
    'Uint16Array',
    'Uint16Array',
    'float16',
    2.5,
  ]);
  expect(error).toContain('Uint16Array');
  expect(error).not.toContain('Float16Array');
});
