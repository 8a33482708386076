import { loadModel } from 'wgemm/onnx';

// y = Relu(x * w + b). Your page would fetch a file, or take the one that a visitor drops.
const base64 =
  'CAgSC3dnZW1tIHRlc3RzGgExQgQKABAROqEBEgVncmFwaAoWIgRHZW1tOgAaAAoBeAoBdwoBYhIBaAoQIgRS' +
  'ZWx1OgAaAAoBaBIBeVoYCgF4EhMKEQgBEg0KBxIFYmF0Y2gKAggCYhgKAXkSEwoRCAESDQoHEgViYXRjaAoC' +
  'CAMqI0IBdwgCCAMQAUoYAACAPwAAAAAAAIC/AAAAAAAAgD8AAIC/KhVCAWIIAxABSgwAAAA/AAAAPwAAgEA=';
const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

const model = await loadModel(bytes, { threads: 'auto' });
const { y } = await model.run({ x: { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] } });
console.log(y.data); // 1.5 2.5 1 3.5 4.5 0
for (const { op, fused, time } of await model.explain({ x: [2, 2] }, { steps: true }))
  console.log([op, ...fused].join(' + '), time, 'ms');
model.dispose();
