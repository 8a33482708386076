/** ONNX Runtime Web: its smallest build, which has only WebAssembly. */
import * as ort from 'onnxruntime-web/wasm';
import wasm from 'onnxruntime-web/ort-wasm-simd-threaded.wasm?url';
import models from 'virtual:models';
import type { Peer } from './peers.ts';
import { type Product, shapeOfA, shapeOfB, valuesOf } from './product.ts';

function modelOf({ dtype, transA, transB }: Product): Uint8Array | undefined {
  const text = models[`${dtype} ${Number(transA)} ${Number(transB)}`];
  return text === undefined ? undefined : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

export function start(threads: number): Promise<Peer> {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = { wasm: new URL(wasm, self.location.href).href };
  ort.env.wasm.initTimeout = 60_000; // ms; it waits for ever if a thread does not start
  ort.env.logLevel = 'error';
  return Promise.resolve({
    version: ort.env.versions.web ?? '',
    threads,
    async prepare(product) {
      const { m, n, k, dtype } = product;
      const model = modelOf(product);
      if (!model) return undefined;
      const session = await ort.InferenceSession.create(model, { executionProviders: ['wasm'] });
      const typeOfA = dtype === 'int8' ? 'uint8' : dtype;
      const feeds = {
        A: new ort.Tensor(
          typeOfA as 'float32',
          valuesOf(typeOfA, m * k, 1) as Float32Array,
          shapeOfA(product),
        ),
        B: new ort.Tensor(
          dtype as 'float32',
          valuesOf(dtype, k * n, 2) as Float32Array,
          shapeOfB(product),
        ),
      };
      let y: ort.Tensor | undefined;
      return {
        name: 'ONNX Runtime Web',
        spins: threads > 1,
        async run(times) {
          for (let i = 0; i < times; ++i) ({ Y: y } = await session.run(feeds));
        },
        first: () => (y!.data as Float32Array)[0]!,
        dispose: () => void session.release(),
      };
    },
  });
}
