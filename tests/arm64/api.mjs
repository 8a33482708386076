// Runs the API tests of the operations: those that need no page and take no minutes under an
// emulator. `vitest` is the stand-in that pages have.
import { runTests } from '../browser/page/vitest.js';

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
  skip: () => undefined,
  onFile: () => {},
});
if (failed > 0) throw new Error(`${failed} of the API tests fail:\n${failures.join('\n')}`);
console.log(`${passed} tests`);
