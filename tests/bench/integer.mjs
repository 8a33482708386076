// The products of dynamically quantized models: MatMulInteger, QLinearMatMul,
// DynamicQuantizeMatMul and MatMulIntegerToFloat, in wgemm and in ONNX Runtime Web.
import { randomArray } from './data.mjs';

/** By the name of the call in wgemm: the operator of ONNX, and the type of the result. */
const operators = {
  matmulInteger: { type: 'MatMulInteger', result: 'int32' },
  qlinearMatmul: { type: 'QLinearMatMul' }, // the type of A
  dynamicQuantizeMatmul: {
    type: 'DynamicQuantizeMatMul',
    domain: 'com.microsoft',
    result: 'float32',
  },
  matmulIntegerToFloat: {
    type: 'MatMulIntegerToFloat',
    domain: 'com.microsoft',
    result: 'float32',
  },
};

export const isInteger = (operation) => operation in operators;

const shapesOf = ({ batch, m, n, k }) => {
  const stack = batch ? [batch] : [];
  return { a: [...stack, m, k], b: [...stack, k, n], y: [...stack, m, n] };
};

/** Scales per column and one zero point, as quantizers make them. */
export function integerData(problem) {
  const { operation, typeOfA, typeOfB, n, k } = problem;
  const shapes = shapesOf(problem);
  const size = (shape) => shape.reduce((product, each) => product * each, 1);
  const perColumn = operation !== 'qlinearMatmul' && !problem.batch;
  return {
    a: { shape: shapes.a, data: randomArray(typeOfA, size(shapes.a), 1) },
    b: { shape: shapes.b, data: randomArray(typeOfB, size(shapes.b), 2) },
    aScale: 0.02,
    aZeroPoint: typeOfA === 'int8' ? 5 : 133,
    bScale: perColumn ? randomArray('float32', n, 3).map((x) => 0.005 + 0.001 * x) : 0.005,
    bZeroPoint: typeOfB === 'int8' ? 0 : 128,
    bias: randomArray('float32', n, 4),
    yScale: 0.01 * Math.sqrt(k),
    yZeroPoint: 120,
  };
}

/** The arguments of wgemm's call. `x`, `w` and `out` are the matrices. */
export function integerArguments({ operation }, data, x, w, out) {
  const { aScale, aZeroPoint, bScale, bZeroPoint, bias, yScale, yZeroPoint } = data;
  switch (operation) {
    case 'matmulInteger':
      return [x, w, { aZeroPoint, bZeroPoint, out }];
    case 'qlinearMatmul': {
      const scales = { aScale, aZeroPoint, bScale, bZeroPoint, yScale };
      return [{ a: x, b: w, ...scales, yZeroPoint }, { out }];
    }
    case 'dynamicQuantizeMatmul':
      return [x, w, { bScale, bZeroPoint, bias, out }];
    default:
      return [x, w, { aScale, bScale, aZeroPoint, bZeroPoint, bias, out }];
  }
}

export const typeOfResult = ({ operation, typeOfA }) => operators[operation].result ?? typeOfA;

/** Whether ONNX Runtime has a kernel for these types. */
export const hasPeer = ({ operation, typeOfA, typeOfB }) =>
  operation === 'matmulInteger' || typeOfA !== 'int8' || typeOfB !== 'uint8';

/** The problem for ONNX Runtime, or undefined if it has no kernel for these types. */
export function integerModel(problem, data) {
  const { operation, typeOfA, typeOfB } = problem;
  if (!hasPeer(problem)) return undefined;
  const arrays = { float32: Float32Array, int8: Int8Array, uint8: Uint8Array };
  const vector = (name, dtype, value) => {
    const isList = typeof value !== 'number';
    return {
      name,
      dtype,
      shape: isList ? [value.length] : [],
      data: isList ? value : arrays[dtype].of(value),
    };
  };
  const a = { name: 'A', dtype: typeOfA, ...data.a },
    b = { name: 'B', dtype: typeOfB, ...data.b },
    aScale = vector('a_scale', 'float32', data.aScale),
    aZero = vector('a_zero_point', typeOfA, data.aZeroPoint),
    bScale = vector('b_scale', 'float32', data.bScale),
    bZero = vector('b_zero_point', typeOfB, data.bZeroPoint),
    bias = vector('bias', 'float32', data.bias);
  // ONNX Runtime wants a zero point per column next to scales per column.
  const bZeros =
    typeof data.bScale === 'number'
      ? bZero
      : vector(
          'b_zero_point',
          typeOfB,
          new arrays[typeOfB](data.bScale.length).fill(data.bZeroPoint),
        );
  const inputs = {
    matmulInteger: [a, b, aZero, bZero],
    qlinearMatmul: [
      a,
      aScale,
      aZero,
      b,
      bScale,
      bZero,
      vector('y_scale', 'float32', data.yScale),
      vector('y_zero_point', typeOfA, data.yZeroPoint),
    ],
    dynamicQuantizeMatmul: [a, b, bScale, bZeros, bias],
    matmulIntegerToFloat: [a, b, aScale, bScale, aZero, bZeros, bias],
  }[operation];
  const { type, domain } = operators[operation];
  const output = { dtype: typeOfResult(problem), shape: shapesOf(problem).y };
  return { type, domain, inputs, output };
}
