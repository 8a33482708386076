// Runs an example, such as digits/digits, on the one build that it uses. That build is made in
// build/, since dist/ always holds all builds. With --models before its name, the example can run
// models.
import { join } from 'node:path';
import { makeExampleLibrary } from './build.mjs';
import { main, run } from './run.mjs';
import { setUp } from './setup.mjs';

const models = process.argv[2] === '--models';
const [name, ...rest] = process.argv.slice(models ? 3 : 2);

await main(async () => {
  await setUp('wasm');
  console.log('build: WebAssembly with relaxed SIMD');
  await makeExampleLibrary({ models });
  // A separate program, since set-up may install a newer Node than runs this script.
  await run(
    'node',
    [
      '--import',
      `./scripts/example-library.mjs${models ? '?models' : ''}`,
      join('examples', `${name}.mjs`),
      ...rest,
    ],
    {
      input: 'inherit',
      otherwise: `The example ${name} failed: see above why.`,
    },
  );
});
