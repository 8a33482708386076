/** Nodes and tensors of models, and products between DequantizeLinear and QuantizeLinear. */
import type { ModelTensor } from 'wgemm/onnx';
import type { ModelSpec, NodeSpec, TensorSpec } from '../../peers/onnx-model.mjs';
import { Random } from '../support/random.js';

export const node = (op: string, inputs: string[], output: string, attributes = {}): NodeSpec => ({
  op,
  name: `the ${output}`,
  inputs,
  outputs: [output],
  attributes,
});
export const scalar = (name: string, value: number): TensorSpec => ({
  name,
  dtype: 'float32',
  shape: [],
  data: Float32Array.of(value),
});
export const floats = (name: string, shape: number[], seed = 1, most = 1) => ({
  name,
  dtype: 'float32',
  shape,
  data: new Random(seed)
    .fill(new Float32Array(shape.reduce((a, b) => a * b, 1)))
    .map((value) => value * most),
});
export const info = (name: string, dtype = 'none') => ({ name, dtype });

export const byteTensor = (
  name: string,
  dtype: string,
  shape: number[],
  seed: number,
): TensorSpec => {
  const bytes = new Random(seed).fill(new Uint8Array(shape.reduce((a, b) => a * b, 1)));
  return { name, dtype, shape, data: dtype === 'int8' ? new Int8Array(bytes.buffer) : bytes };
};

/** A product of DequantizeLinear, whose result a QuantizeLinear may take. */
export interface Static {
  op?: 'Gemm' | 'MatMul';
  /** The shape and the type of A. */
  shape?: number[];
  dtype?: 'int8' | 'uint8';
  /** The type of B. */
  weights?: 'int8' | 'uint8';
  transB?: 0 | 1;
  alpha?: number;
  hasBias?: boolean;
  isPerColumn?: boolean;
  /** Whether A and B have zero points. */
  hasZeros?: boolean;
  /** The operators after the product. */
  ends?: string[];
  seed?: number;
  opset?: number;
}
/** A model, and the nodes that its nodes become. */
export interface StaticForm {
  name: string;
  spec: ModelSpec;
  feeds: Record<string, ModelTensor>;
  becomes: string;
  /** The bound of a difference of floats, relative to 1 + |value|. */
  bound: number;
}

export function between(options: Static): StaticForm {
  const {
    op = 'Gemm',
    shape = [5, 40],
    dtype = 'uint8',
    weights = 'int8',
    transB = 0,
    alpha = 1,
    hasBias = false,
    isPerColumn = false,
    hasZeros = true,
    ends = ['QuantizeLinear'],
    seed = 1,
    opset = 17,
  } = options;
  const [k, n] = [shape.at(-1) as number, 12];
  const columns = isPerColumn ? [n] : [];
  const positive = (name: string, of: number[], seed: number) => {
    const tensor = floats(name, of, seed);
    return { ...tensor, data: tensor.data.map((value) => 0.01 + Math.abs(value) / 50) };
  };
  const [aScale, bScale] = [
    positive('A_SCALE', [], seed + 3),
    positive('B_SCALE', columns, seed + 5),
  ];
  const sums = { name: 'C', dtype: 'int32', shape: [n] };
  const zeroC = { name: 'C_ZERO', dtype: 'int32', shape: columns };
  const factor = Math.fround(alpha) * (aScale.data[0] as number);
  const constants: TensorSpec[] = [
    aScale,
    byteTensor('A_ZERO', dtype, [], seed + 6),
    byteTensor('B', weights, transB ? [n, k] : [k, n], seed + 4),
    bScale,
    byteTensor('B_ZERO', weights, columns, seed + 7),
    { ...sums, data: Int32Array.from({ length: n }, (_, i) => 1000 * i - 4500) },
    { ...bScale, name: 'C_SCALE', data: bScale.data.map((value) => factor * value) },
    { ...zeroC, data: new Int32Array(isPerColumn ? n : 1) },
    scalar('Y_SCALE', 0.3),
    ends.includes('Relu')
      ? { ...byteTensor('Y_ZERO', 'uint8', [], seed + 1), data: Uint8Array.of(0) }
      : byteTensor('Y_ZERO', dtype, [], seed + 8),
  ];
  const along = (axis: number) => (isPerColumn ? { axis } : {});
  const dequantize = (x: string, name: string, output: string, attributes = {}) => {
    const zero = hasZeros ? [`${name}_ZERO`] : [];
    return node('DequantizeLinear', [x, `${name}_SCALE`, ...zero], output, attributes);
  };
  const nodes = [
    dequantize('x', 'A', 'a'),
    dequantize('B', 'B', 'b', along(transB ? -2 : 1)),
    ...(hasBias ? [dequantize('C', 'C', 'c', along(0))] : []),
    node(
      op,
      hasBias ? ['a', 'b', 'c'] : ['a', 'b'],
      ends.length ? 'product' : 'y',
      op === 'Gemm' ? { transB, alpha: { float: alpha } } : {},
    ),
    ...ends.map((end, i) =>
      node(
        end,
        [i ? 'cut' : 'product', ...(end === 'Relu' ? [] : ['Y_SCALE', 'Y_ZERO'])],
        i === ends.length - 1 ? 'y' : 'cut',
      ),
    ),
  ];
  const isQuantized = ends.includes('QuantizeLinear');
  const becomes =
    op === 'Gemm'
      ? 'com.microsoft.QGemm'
      : isQuantized
        ? 'QLinearMatMul'
        : 'com.microsoft.MatMulIntegerToFloat';
  return {
    name: `${op} between DequantizeLinear and ${ends.join(', ') || 'nothing'}, ${JSON.stringify(options)}`,
    spec: {
      opsets: { '': opset },
      nodes,
      inputs: [info('x', dtype)],
      outputs: [info('y')],
      initializers: constants.filter(({ name }) =>
        nodes.some(({ inputs }) => inputs.includes(name as string)),
      ),
    },
    feeds: { x: byteTensor('x', dtype, shape, seed + 9) as ModelTensor },
    becomes,
    bound: 4e-6,
  };
}
