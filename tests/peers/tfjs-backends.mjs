// tfjs with its backends wasm and cpu, for tests in Node and in pages.
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import { setThreadsCount, setWasmPaths } from '@tensorflow/tfjs-backend-wasm';

// In a page the server has its .wasm here. In Node it finds it by itself.
if (typeof process === 'undefined') setWasmPaths('/tfjs/');
setThreadsCount(1);
// Its threads start from blobs, which the policy of the pages forbids.
tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);

export { tf };
