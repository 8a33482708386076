// tfjs with its WebAssembly backend on one thread. It has only float32.
import * as tf from '@tensorflow/tfjs-core';
import { setThreadsCount } from '@tensorflow/tfjs-backend-wasm';

export const version = tf.version_core;

/** Starts the backend. Call it first. */
export async function startTfjs() {
  setThreadsCount(1);
  await tf.setBackend('wasm');
  await tf.ready();
}

/**
 * A product of two tensors, { data, shape } each, which can be computed any number of times. The
 * tensors are in tfjs' own heap.
 */
export function tfjsMatMul(a, b, { transA = false, transB = false } = {}) {
  const [x, w] = [tf.tensor(a.data, a.shape, 'float32'), tf.tensor(b.data, b.shape, 'float32')];
  let y;
  return {
    name: 'tfjs',
    run(times) {
      for (let i = 0; i < times; ++i) {
        y?.dispose();
        y = tf.matMul(x, w, transA, transB);
      }
    },
    result: () => y.dataSync(),
    dispose: () => [x, w, y].forEach((tensor) => tensor.dispose()),
  };
}
