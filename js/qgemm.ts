/** com.microsoft QGemm: its arguments, and how a call of it is read. */
import { type Activation, type Call, makeCall, operations, readActivation, readAddend, readFlag, readOptions, scalar } from './call.js';
import type { Core } from './core.js';
import { ArgumentError, describe, DTypeError } from './errors.js';
import { PackedWeights } from './heap.js';
import { isDataArray, type Operand, readTensor } from './operand.js';
import type { DataArray, DType, TensorLike } from './tensor.js';

/** Arrays of quantized elements. */
export type QuantizedArray = Int8Array | Uint8Array;
/** One, or one a column of B where that is said: a number, an array, or a tensor of rank 0 or 1. */
export type Scale = number | Float32Array | TensorLike<Float32Array>;
/** As a scale. A number takes the type of the operand that it belongs to, which an array must have. */
export type ZeroPoint = number | QuantizedArray | TensorLike<QuantizedArray>;

export interface QGemmInputs {
  /** int8 or uint8, (M, K), or (K, M) with `transA`. */
  a: TensorLike<QuantizedArray>;
  /** One, above 0. */
  aScale: Scale;
  /** One. Default 0. */
  aZeroPoint?: ZeroPoint | null;
  /** int8 or uint8, (K, N), or (N, K) with `transB`; or what `pack` made of it. */
  b: TensorLike<QuantizedArray> | PackedWeights;
  /** One, or one a column, above 0. */
  bScale: Scale;
  /** One, or one a column, independently of the scales. Default 0. */
  bZeroPoint?: ZeroPoint | null;
  /** Broadcast to (M, N) in one direction, and added before anything is scaled: alpha * aScale * bScale is its scale. */
  c?: TensorLike<Int32Array> | number | null;
  /** One, above 0. With it and `yZeroPoint` the result is quantized, without both it is float32. */
  yScale?: Scale | null;
  /** One. Its array gives the type of the result; a number takes the type of `a`. */
  yZeroPoint?: ZeroPoint | null;
}

export interface QGemmOptions<A extends DataArray = Float32Array | QuantizedArray> {
  /** Factor of the product and of c, rounded to float32. Default 1. */
  alpha?: number;
  /** a has shape (K, M). Any number but 0 is true. Default false. */
  transA?: boolean | number;
  /** b has shape (N, K). Any number but 0 is true. Not for packed weights. Default false. */
  transB?: boolean | number;
  /**
   * Bounds of the result, or where it is quantized of the numbers that it stands for: rounded to float32, and divided by yScale where there is
   * one, they hold acc * s[n] before it is rounded. Default: none.
   */
  activation?: Activation;
  /** Filled in place and returned. Must not overlap an input. */
  out?: TensorLike<A>;
}

const inputs = ['a', 'aScale', 'aZeroPoint', 'b', 'bScale', 'bZeroPoint', 'c', 'yScale', 'yZeroPoint'];

/** @internal */
export function readQGemm(core: Core, args: unknown, options: unknown): Call {
  const op = 'qgemm';
  core.checkAlive(op);
  if (typeof args !== 'object' || args === null) {
    throw new ArgumentError(op, 'inputs', `${op}: inputs is ${describe(args)}; it must be an object with ${inputs.join(', ')}`);
  }
  const { a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint } = readOptions(op, args, inputs, 'inputs');
  const { alpha = 1, transA, transB, activation, out } = readOptions(op, options, ['alpha', 'transA', 'transB', 'activation', 'out']);
  if (typeof alpha !== 'number') throw new ArgumentError(op, 'alpha', `${op}: alpha is ${describe(alpha)}; it must be a number`);
  const operandA = readTensor(core, op, 'A', a);
  const operandB = readTensor(core, op, 'B', b);
  const typeOfA = readType(core, operandA);
  const typeOfB = readType(core, operandB);
  const attributes = new Float64Array(5);
  attributes[0] = alpha;
  attributes[1] = readFlag(op, 'transA', transA, 0);
  attributes[2] = readFlag(op, 'transB', transB, 0);
  readActivation(op, activation, attributes, 3);
  const operands = [
    operandA,
    readVector(core, 'a_scale', aScale, 'float32', true),
    readVector(core, 'a_zero_point', aZeroPoint, typeOfA),
    operandB,
    readVector(core, 'b_scale', bScale, 'float32', true),
    readVector(core, 'b_zero_point', bZeroPoint, typeOfB),
    readAddend(core, op, 'C', c, 'int32'),
    readVector(core, 'y_scale', yScale, 'float32'),
    readVector(core, 'y_zero_point', yZeroPoint, typeOfA),
    out === undefined ? null : readTensor(core, op, 'Y', out),
  ];
  return makeCall(core, operations.qgemm, attributes, operands, out);
}

/** The type of A or B, which a zero point that is a number takes. */
function readType(core: Core, { name, dtype, source }: Operand): DType {
  const type = PackedWeights.is(source) ? source.dtype : (core.dtypes[dtype] as DType);
  if (type === 'int8' || type === 'uint8' || PackedWeights.is(source)) return type; // of packed weights the core tells
  throw new DTypeError('qgemm', name, `qgemm: ${name} has type ${type}; it must be int8 or uint8`);
}

/** A scale or zero point. */
function readVector(core: Core, name: string, value: unknown, dtype: DType, required = false): Operand | null {
  const op = 'qgemm';
  if (value === undefined || value === null) {
    if (!required) return null;
    throw new ArgumentError(op, name, `${op}: ${name} is ${describe(value)}; it must be a number, an array or a tensor`);
  }
  if (typeof value === 'number') return scalar(core, op, name, value, dtype);
  if (Array.isArray(value)) {
    const arrays = dtype === 'float32' ? 'a Float32Array' : 'an Int8Array or Uint8Array';
    throw new DTypeError(op, name, `${op}: ${name} is an array; it must be a number, ${arrays}, or a tensor`);
  }
  return readTensor(core, op, name, isDataArray(value) ? { data: value, shape: [value.length] } : value);
}
