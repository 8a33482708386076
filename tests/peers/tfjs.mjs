// tfjs with its WebAssembly backend. It has only float32.
import * as tf from '@tensorflow/tfjs-core';
import { getThreadsCount, setThreadsCount, setWasmPaths } from '@tensorflow/tfjs-backend-wasm';

export const version = tf.version_core;

/**
 * Starts the backend. Call it first.
 *
 * @returns how many threads it has: one, except in an isolated page
 */
export async function startTfjs({ threads = 1 } = {}) {
  const isPage = typeof process === 'undefined';
  // In a page the server has its .wasm here. In Node it finds it by itself.
  if (isPage) setWasmPaths('/tfjs/');
  // It takes half as many threads as there are processors, at the most.
  if (isPage)
    Object.defineProperty(navigator, 'hardwareConcurrency', {
      value: 2 * threads,
      configurable: true,
    });
  // On one thread, the build without threads is the usual one.
  if (threads === 1) tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
  setThreadsCount(threads);
  await tf.setBackend('wasm');
  await tf.ready();
  if (isPage) delete navigator.hardwareConcurrency; // as the browser has it
  return getThreadsCount();
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
