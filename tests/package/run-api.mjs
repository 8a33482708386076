// Runs the API tests, except those that need Node, in any runtime, with the package in dist/.
// `vitest` is the stand-in that pages have. runtimes.mjs bundles this file with the tests.
//   run-api.mjs [NAME...]  only these files, such as gemm.test.ts
import process from 'node:process';
import { tests } from 'all-tests';
import { runTests, skipTest } from '../browser/page/vitest.js';

// Tests that watch the garbage collector start it.
const { Bun } = globalThis;
globalThis.gc ??= Bun ? () => Bun.gc(true) : () => skipTest('no gc() in this engine');

const names = process.argv.slice(2);
const asked = Object.entries(tests).filter(([name]) => names.length === 0 || names.includes(name));
const { passed, failed, failures } = await runTests(Object.fromEntries(asked), {
  skip: () => undefined,
  onFile: () => {},
});
if (failed > 0) throw new Error(`${failed} API tests fail:\n${failures.slice(0, 10).join('\n')}`);
if (passed === 0) throw new Error(`no API test ran of ${names.join(', ')}`);
console.log(`${passed} API tests passed`);
process.exit(); // tfjs leaves timers
