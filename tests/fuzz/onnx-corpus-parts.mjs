// What describes the models of the fuzzer of wgemm/onnx.

export const f = (...values) => Float32Array.from(values);
const longs = (...values) => BigInt64Array.from(values, BigInt);
export const ramp = (length) => Float32Array.from({ length }, (_, i) => ((i * 7) % 11) / 5 - 1);
export const bytes = (length) => Uint8Array.from({ length }, (_, i) => (i * 37) % 256);

export const float = (name, shape, data) => ({ name, dtype: 'float32', shape, data });
export const list = (name, ...values) => ({
  name,
  dtype: 'int64',
  shape: [values.length],
  data: longs(...values),
});
/** An input or an output; of any shape without sizes. */
export const x = (name, ...sizes) => ({
  name,
  dtype: 'float32',
  shape: sizes.length > 0 ? sizes : undefined,
});
export const node = (op, inputs, outputs, attributes, domain) => ({
  op,
  name: `${op} of ${outputs.split(' ')[0]}`,
  inputs: inputs === '' ? [] : inputs.split(' ').map((name) => (name === '_' ? null : name)),
  outputs: outputs.split(' '),
  ...(attributes && { attributes }),
  ...(domain && { domain }),
});
export const microsoft = 'com.microsoft';
export const learning = 'ai.onnx.ml';
