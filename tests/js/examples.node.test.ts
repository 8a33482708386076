/** Examples that check themselves do so. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('attention agrees with plain JavaScript, in float32 and in bfloat16', async () => {
  const file = fileURLToPath(new URL('../../examples/attention/attention.mjs', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  expect(stdout).toMatch(/^float32 .*agrees to.*\nbfloat16 .*agrees to.*\nplain JavaScript/m);
});
