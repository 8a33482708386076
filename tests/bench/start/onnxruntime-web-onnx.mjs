// Its smallest build, which has only WebAssembly.
export async function firstResult({ data }, _, model) {
  const { default: ort } = await import('onnxruntime-web/wasm');
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(model, { executionProviders: ['wasm'] });
  const x = new ort.Tensor('float32', data.slice(0, 784), [1, 784]);
  const { scores } = await session.run({ x });
  return scores.data;
}
