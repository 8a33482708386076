// The models of one node that ONNX Runtime Web computes in the demo. Build time makes them, since
// the encoder is larger than all of them. `virtual:models` exports them as base64, by type and
// transposes.
import { encodeModel } from '../../../tests/peers/onnx.mjs';

const name = 'virtual:models';

/** The types that ONNX Runtime Web has for Gemm; int8 stands for QGemm. */
const floats = ['float32', 'float64'];

function modelOf(dtype, transA, transB) {
  const input = (name, type) => ({ name, dtype: type });
  return encodeModel(
    dtype === 'int8'
      ? {
          type: 'QGemm',
          domain: 'com.microsoft',
          attributes: { transA, transB },
          inputs: [
            input('A', 'uint8'),
            { name: 'aScale', dtype: 'float32', shape: [], data: Float32Array.of(1) },
            { name: 'aZero', dtype: 'uint8', shape: [], data: Uint8Array.of(128) },
            input('B', 'int8'),
            { name: 'bScale', dtype: 'float32', shape: [], data: Float32Array.of(1) },
            { name: 'bZero', dtype: 'int8', shape: [], data: Int8Array.of(0) },
          ],
          output: { dtype: 'float32' },
        }
      : {
          type: 'Gemm',
          attributes: { transA, transB },
          inputs: [input('A', dtype), input('B', dtype)],
          output: { dtype },
        },
  );
}

function makeModels() {
  const made = {};
  for (const dtype of [...floats, 'int8'])
    for (const transA of [0, 1])
      for (const transB of [0, 1])
        made[`${dtype} ${transA} ${transB}`] = Buffer.from(modelOf(dtype, transA, transB)).toString(
          'base64',
        );
  return made;
}

export function models() {
  return {
    name: 'models',
    resolveId: (id) => (id === name ? `\0${name}` : undefined),
    load: (id) =>
      id === `\0${name}` ? `export default ${JSON.stringify(makeModels())};` : undefined,
  };
}
