// tfjs with gradients, layers and its own tests of matrix products, for Node. Its packages have
// these in modules that Node cannot load, so esbuild bundles them. The bundle has a copy of tfjs of
// its own, but all copies in a process share their kernels and backends.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';
import { root } from '../../scripts/run.mjs';

const wasm = join(root, 'node_modules', '@tensorflow', 'tfjs-backend-wasm', 'dist');

/**
 * @returns `tf`; `layers`, the namespace of tfjs-layers; and `declareTests()`, which declares tfjs'
 * own tests of matMul and fused.matMul, once for each backend. They are written for Jasmine:
 * `describe`, `it` and so on must be global then
 */
export async function bundleTfjs() {
  const outfile = join(root, 'build', 'tfjs', 'tfjs.cjs');
  await build({
    stdin: {
      contents: `
        import * as tf from '@tensorflow/tfjs-core';
        import '@tensorflow/tfjs-core/dist/register_all_gradients';
        import '@tensorflow/tfjs-core/dist/public/chained_ops/register_all_chained_ops';
        import '@tensorflow/tfjs-backend-cpu';
        import { setThreadsCount, setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
        import { setTestEnvs } from '@tensorflow/tfjs-core/dist/jasmine_util';
        import * as layers from '@tensorflow/tfjs-layers';
        setThreadsCount(1);
        setWasmPaths(${JSON.stringify(`${wasm}/`)});
        export { layers, tf };
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
