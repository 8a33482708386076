// Loads a model whose only weights, 100 MB of float32, are in another file, and writes the largest
// memory while it loads: bytes of the instance and of JavaScript's arrays above the start. `gc`
// frees what nobody uses, so that only what is needed counts.
import { createGemm } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { createGemm as createInWorker } from 'wgemm/worker';
import { encodeGraph } from '../../peers/onnx-model.mjs';

const [inWorker, trans] = process.argv.slice(2).map((argument) => argument === 'true');
const [k, n] = [5120, 5120];
const external = { location: 'w', offset: 0, length: 4 * k * n };
const model = encodeGraph({
  nodes: [
    { op: 'Gemm', inputs: ['x', 'w'], outputs: ['y'], attributes: { transB: Number(trans) } },
  ],
  inputs: [{ name: 'x', dtype: 'float32', shape: [1, k] }],
  outputs: [{ name: 'y', dtype: 'float32', shape: [1, n] }],
  initializers: [{ name: 'w', dtype: 'float32', shape: trans ? [n, k] : [k, n], external }],
});
const wg = await (inWorker ? createInWorker : createGemm)({ models: true });

/** The bytes that are taken, with and without what the collector may free. */
async function measure() {
  const wasm = (await wg.memory()).committed;
  const loose = process.memoryUsage().arrayBuffers;
  globalThis.gc();
  return { loose: loose + wasm, live: process.memoryUsage().arrayBuffers + wasm };
}

const start = await measure();
const peak = { loose: 0, live: 0 };
const note = async () => {
  const now = await measure();
  for (const key of ['loose', 'live']) peak[key] = Math.max(peak[key], now[key] - start[key]);
};
let read = 0;
const loaded = await loadModel(model, {
  wg,
  externalData: {
    async w(offset, length) {
      const bytes = new Uint8Array(length).fill(1);
      read += length;
      if (!inWorker || read % 5 === 0) await note();
      return bytes;
    },
  },
});
await note();
const packed = 4 * k * n;
console.log(JSON.stringify({ packed, read, live: peak.live / packed, loose: peak.loose / packed }));
loaded.dispose();
wg.dispose();
