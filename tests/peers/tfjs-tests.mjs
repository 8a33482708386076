// The tests of tfjs for its matrix products, as the package of tfjs-core has them. They are written
// for Jasmine, whose functions Vitest has, too.
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { root } from '../../scripts/run.mjs';

const packages = join(root, 'node_modules', '@tensorflow');
const wasm = join(packages, 'tfjs-backend-wasm', 'dist');

/**
 * Bundles tfjs with its two backends and its tests of matrix products. The bundle has one copy of
 * tfjs, apart from that of other tests.
 *
 * @returns its `tf`, and `declareTests()`, which declares the tests once for each backend. `describe`,
 * `it` and so on must be global then
 */
export async function bundleTfjsTests() {
  const outfile = join(root, 'build', 'tfjs-tests', 'tests.cjs');
  mkdirSync(dirname(outfile), { recursive: true });
  await build({
    stdin: {
      contents: `
        import * as tf from '@tensorflow/tfjs-core';
        import { setThreadsCount, setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
        import '@tensorflow/tfjs-backend-cpu';
        import { setTestEnvs } from '@tensorflow/tfjs-core/dist/jasmine_util';
        setThreadsCount(1);
        setWasmPaths(${JSON.stringify(`${wasm}/`)});
        export { tf };
        export function declareTests() {
          setTestEnvs(
            ['wasm', 'cpu'].map((name) => ({ name, backendName: name, isDataSync: true })),
          );
          require('@tensorflow/tfjs-core/dist/ops/mat_mul_test');
          require('@tensorflow/tfjs-core/dist/ops/fused/fused_mat_mul_test');
        }`,
      resolveDir: root,
    },
    outfile,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    mainFields: ['module', 'main'],
    logLevel: 'error',
    plugins: [
      {
        name: 'jasmine',
        setup({ onLoad, onResolve }) {
          onResolve({ filter: /^jasmine-core/ }, ({ path }) => ({ path, namespace: 'jasmine' }));
          onLoad({ filter: /.*/, namespace: 'jasmine' }, () => ({
            contents: 'exports.core = () => ({});',
          }));
        },
      },
    ],
  });
  return createRequire(import.meta.url)(outfile);
}
