/** The package in a realm of its own, as under jsdom. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('all entries take objects of another realm', async () => {
  const script = fileURLToPath(new URL('realms.mjs', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--experimental-vm-modules',
    '--no-warnings',
    script,
  ]);
  expect(stdout).toBe('realms passed\n');
});
