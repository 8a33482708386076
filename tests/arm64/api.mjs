// Runs a fifth of the API tests of the operations, since all of them take many minutes under an
// emulator. `vitest` is the stand-in that pages have.
import { runTests, skipTest } from '../browser/page/vitest.js';

const parts = 5;

// Tests that watch the garbage collector start it.
globalThis.gc ??= () => skipTest('no gc() in this engine');

const files = {
  'activation.test.ts': () => import('../js/activation.test.ts'),
  'dtypes.test.ts': () => import('../js/dtypes.test.ts'),
  'gemm.test.ts': () => import('../js/gemm.test.ts'),
  'matmul.test.ts': () => import('../js/matmul.test.ts'),
  'offset.test.ts': () => import('../js/offset.test.ts'),
  'qgemm.test.ts': () => import('../js/qgemm.test.ts'),
  'quantize.test.ts': () => import('../js/quantize.test.ts'),
  'serialize.test.ts': () => import('../js/serialize.test.ts'),
  'weights.test.ts': () => import('../js/weights.test.ts'),
};

const { passed, failed, failures } = await runTests(files, {
  skip: (number) => (number % parts === 0 ? undefined : 'left to other processors'),
  onFile: () => {},
});
if (failed > 0) throw new Error(`${failed} of the API tests fail:\n${failures.join('\n')}`);
console.log(`${passed} tests`);
