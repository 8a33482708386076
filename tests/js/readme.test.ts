/** The first example of README.md does what is printed below it. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);

it('the first example of README.md prints the text that follows it', async () => {
  const readme = await readFile(new URL('README.md', root), 'utf8');
  const found = /^```js\n(?<code>.*?)^```$.*?^```text\n(?<output>.*?)^```$/ms.exec(readme);
  if (!found?.groups) return expect.fail('README.md must have a block ```js and behind it a block ```text');

  // In the repository, so that `wgemm` is found as it is by a user of the package.
  const folder = new URL('build/readme/', root);
  await mkdir(folder, { recursive: true });
  const file = fileURLToPath(new URL('example.mjs', folder));
  await writeFile(file, found.groups.code as string);
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  expect(stdout.trimEnd()).toBe((found.groups.output as string).trimEnd());
});
