// Runs the API tests of operations. `vitest` is the stand-in that pages have.
//   node api.mjs NAME…  of test files, without .test.ts
//
// Files that make many memories are left out, above all offset.test.ts. V8 reserves 4 to 10 GB of
// addresses for each WebAssembly.Memory. QEMU 7.2 keeps 24 bytes for each page that was ever
// reserved, so a memory costs 24 to 60 MB that no garbage collection gives back.
import { runTests } from '../browser/page/vitest.js';

const files = {
  activation: () => import('../js/ops/activation.test.ts'),
  gemm: () => import('../js/ops/gemm.test.ts'),
  matmul: () => import('../js/ops/matmul.test.ts'),
  qgemm: () => import('../js/ops/qgemm.test.ts'),
  quantize: () => import('../js/convert/quantize.test.ts'),
  serialize: () => import('../js/ops/serialize.test.ts'),
};
const names = process.argv.slice(2);

const { passed, failed, failures } = await runTests(
  Object.fromEntries(names.map((name) => [name, files[name]])),
  { skip: () => undefined, onFile: () => {} },
);
if (failed > 0) throw new Error(`${failed} API tests fail:\n${failures.slice(0, 10).join('\n')}`);
if (passed === 0) throw new Error(`no API test ran of ${names.join(', ')}`);
console.log(`${passed} API tests passed`);
