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
 * tensors are in tfjs' own heap. With `arrays`, each call makes them, except a constant B
 * (`packed`), and reads the result.
 */
export function tfjsMatMul(a, b, { transA = false, transB = false, packed, arrays } = {}) {
  const tensor = ({ data, shape }) => tf.tensor(data, shape, 'float32');
  const [x, w] = [tensor(a), tensor(b)];
  let y;
  return {
    name: 'tfjs',
    run(times) {
      for (let i = 0; i < times; ++i) {
        y?.dispose();
        if (!arrays) {
          y = tf.matMul(x, w, transA, transB);
          continue;
        }
        const given = packed ? [tensor(a)] : [tensor(a), tensor(b)];
        y = tf.matMul(given[0], given[1] ?? w, transA, transB);
        y.dataSync();
        given.forEach((each) => each.dispose());
      }
    },
    result: () => y.dataSync(),
    dispose: () => [x, w, y].forEach((each) => each.dispose()),
  };
}
