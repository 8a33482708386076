export async function firstResult(a, b) {
  const tf = await import('@tensorflow/tfjs-core');
  const { setThreadsCount, setWasmPaths } = await import('@tensorflow/tfjs-backend-wasm');
  // In a page it looks for its .wasm next to the page. In Node it finds it by itself.
  if (typeof document === 'object') setWasmPaths(new URL('./', import.meta.url).href);
  setThreadsCount(1);
  await tf.setBackend('wasm');
  return tf.matMul(tf.tensor(a.data, a.shape), tf.tensor(b.data, b.shape)).dataSync();
}
