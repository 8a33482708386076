export async function firstResult({ data }, _, model) {
  const { loadModel } = await import('wgemm/onnx');
  const network = await loadModel(model);
  const { scores } = await network.run({ x: { data: data.subarray(0, 784), shape: [1, 784] } });
  return scores.data;
}
