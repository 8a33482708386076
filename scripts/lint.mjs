// Checks the form of all code: clang-format, Prettier, ESLint, TypeScript's types; and its words:
// codespell, and those that scripts/banned-words.mjs bans. Checks that includes in src/ and imports
// in js/ point down, and that functions of src/ are short. Checks the form of the measurements in
// docs/lab, the figures of README.md, and the workflows of CI. With --fix, corrects the form.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { lintFigures } from './figures.mjs';
import { lintImports } from './lint-imports.mjs';
import { lintIncludes } from './lint-includes.mjs';
import { lintLab } from './lint-lab.mjs';
import { lintLanguage, textFiles } from './lint-language.mjs';
import { lintLength } from './lint-length.mjs';
import { lintWorkflows } from './lint-workflows.mjs';
import { main, run } from './run.mjs';
import { setUp } from './setup.mjs';

const fix = process.argv.includes('--fix');

const cplusplus = ['src', 'bindings', 'tests', 'examples']
  .filter((folder) => existsSync(folder))
  .flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, name)))
  .filter((name) => /\.(c|cc|h)$/.test(name) && !name.includes('node_modules'));
const scripts = ['js', 'tests', 'examples', 'scripts', 'docs'].filter((folder) =>
  existsSync(folder),
);
const projects = ['js', 'tests', join('tests', 'js'), join('examples', 'demo')].filter((folder) =>
  existsSync(join(folder, 'tsconfig.json')),
);
/** Checks types in a quarter of the time of the project's, which typescript-eslint needs. */
const typeScript7 = join('tests', 'package', 'node_modules', 'typescript-7', 'bin', 'tsc');
/** The words of names such as kLeastCost and least_cost are checked one by one. */
const wordInName = "[A-Z]?[a-z'’]+";
/** Parts of names that codespell takes for faults: NdArray of numjs. */
const rightWords = 'nd';

await main(async () => {
  await setUp('lint', 'demo', 'package'); // types of the demo's packages, and TypeScript 7
  const otherwise = 'Correct what is said above; `npm run lint -- --fix` does what it can.';
  if (cplusplus.length > 0) {
    await run('clang-format-19', [...(fix ? ['-i'] : ['--dry-run', '-Werror']), ...cplusplus], {
      otherwise,
    });
  }
  await run(
    'prettier',
    [fix ? '--write' : '--check', '--log-level', 'warn', ...scripts, '.github'],
    { otherwise },
  );
  await run(
    'eslint',
    [
      ...(fix ? ['--fix'] : []),
      '--max-warnings',
      '0',
      '--no-error-on-unmatched-pattern',
      ...scripts,
    ],
    { otherwise },
  );
  for (const project of projects)
    await run('node', [typeScript7, '--noEmit', '-p', project], { otherwise });
  await run(
    'codespell',
    ['--regex', wordInName, '--ignore-words-list', rightWords, ...textFiles()],
    { otherwise },
  );
  lintIncludes();
  lintImports();
  lintLength();
  lintLab();
  lintFigures();
  await lintWorkflows();
  lintLanguage();
});
