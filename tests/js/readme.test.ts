/** The examples of README.md do what is printed below them. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);

const readme = await readFile(new URL('README.md', root), 'utf8');
const examples = [...readme.matchAll(/^```js\n(?<code>[^`]*?)^```$\n\nprints\n\n^```text\n(?<output>[^`]*?)^```$/gm)];

it('README.md has the examples', () => expect(examples.length).toBe(2));

it.each(examples.map(({ groups }, i) => [i, groups?.code ?? '', groups?.output ?? ''] as const))('example %i', async (i, code, output) => {
  // In the repository, so that `wgemm` is found as it is by a user of the package.
  const folder = new URL('build/readme/', root);
  await mkdir(folder, { recursive: true });
  const file = fileURLToPath(new URL(`example${i}.mjs`, folder));
  await writeFile(file, code);
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  expect(stdout.trimEnd()).toBe(output.trimEnd());
});
