/**
 * tfjs with its WebAssembly backend, which has only float32. Its threads are workers made of blobs,
 * which the policy of the page forbids, so it has one thread.
 */
import { setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import plain from '@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm.wasm?url';
import simd from '@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-simd.wasm?url';
import * as tf from '@tensorflow/tfjs-core';
import type { Peer } from './peers.ts';
import { shapeOfA, shapeOfB, valuesOf } from './product.ts';

const absolute = (path: string) => new URL(path, self.location.href).href;

export async function start(): Promise<Peer> {
  setWasmPaths({
    'tfjs-backend-wasm.wasm': absolute(plain),
    'tfjs-backend-wasm-simd.wasm': absolute(simd),
    'tfjs-backend-wasm-threaded-simd.wasm': '', // tfjs asks for all three, and fetches one
  });
  tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
  await tf.setBackend('wasm');
  await tf.ready();
  return {
    version: tf.version_core,
    threads: 1,
    prepare(product) {
      const { m, n, k, dtype, transA, transB } = product;
      if (dtype !== 'float32') return Promise.resolve(undefined);
      const a = tf.tensor2d(valuesOf('float32', m * k, 1) as Float32Array, shapeOfA(product));
      const b = tf.tensor2d(valuesOf('float32', k * n, 2) as Float32Array, shapeOfB(product));
      let y: tf.Tensor | undefined;
      return Promise.resolve({
        name: 'tfjs',
        run(times) {
          for (let i = 0; i < times; ++i) {
            y?.dispose();
            y = tf.matMul(a, b, transA, transB);
          }
        },
        first: () => y!.dataSync()[0]!,
        dispose: () => [a, b, y].forEach((tensor) => tensor?.dispose()),
      });
    },
  };
}
