// Runs the API tests, except those that need Node, in any runtime, with the package in dist/.
// `vitest` is the stand-in that pages have. runtimes.mjs bundles this file with the tests.
//   run-api.mjs [PATH...]  only these files of tests/js, such as ops/gemm.test.ts
import process from 'node:process';
import { tests } from 'all-tests';
import { runTests, skipTest } from '../browser/page/vitest.js';

// Tests that watch the garbage collector start it.
const { Bun } = globalThis;
globalThis.gc ??= Bun ? () => Bun.gc(true) : () => skipTest('no gc() in this engine');

const paths = process.argv.slice(2);
const asked = paths.map((path) => {
  if (!tests[path]) throw new Error(`tests/js has no file ${path}`);
  return [path, tests[path]];
});
const files = asked.length > 0 ? Object.fromEntries(asked) : tests;
const { passed, failed, failures } = await runTests(files, {
  skip: () => undefined,
  onFile: () => {},
});
if (failed > 0) throw new Error(`${failed} API tests fail:\n${failures.slice(0, 10).join('\n')}`);
if (passed === 0) throw new Error(`no API test ran of ${paths.join(', ') || 'tests/js'}`);
console.log(`${passed} API tests passed`);
process.exit(); // tfjs leaves timers
