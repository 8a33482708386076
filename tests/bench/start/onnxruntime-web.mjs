// Its smallest build, which has only WebAssembly.
export async function firstResult(a, b, model) {
  const { default: ort } = await import('onnxruntime-web/wasm');
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(model, { executionProviders: ['wasm'] });
  const tensor = ({ data, shape }) => new ort.Tensor('float32', data, shape);
  const { Y } = await session.run({ A: tensor(a), B: tensor(b) });
  return Y.data;
}
