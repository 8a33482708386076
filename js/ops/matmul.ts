/** oneDNN Graph MatMul: its options, and how a call of it is read. */
import { describe, DTypeError } from '../base/errors.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray, DType, DTypeOf } from '../base/tensor.js';
import type { Arguments } from '../call/call.js';
import { type Operand, type Reader, readTensor } from '../call/operand.js';
import {
  type Activation,
  readActivation,
  readAddend,
  readFactor,
  readFlag,
} from '../call/options.js';
import { isInHeap, makeCall, runCall, runInHeap } from '../call/run.js';
import { runSmall } from '../call/small.js';
import type { Core } from '../instance/core.js';
import type { HeapTensor, TensorLike, TensorView } from '../instance/heap.js';
import { operations } from './operations.js';

/**
 * Options of `matmul`.
 *
 * @typeParam A the class of the array of `out`
 * @category Operations
 */
export interface MatMulOptions<A extends DataArray = DataArray> {
  /** Factor of the product, by the rules of {@link GemmOptions.alpha}. Default 1. */
  alpha?: number | bigint | undefined;
  /**
   * True: the last two axes of src are (K, M). Any number except 0 is true. It has no effect on a
   * vector. Default false.
   */
  transposeA?: boolean | number | undefined;
  /**
   * True: the last two axes of weights are (N, K). Any number except 0 is true. It has no effect on
   * a vector. Must be false for packed weights. Default false.
   */
  transposeB?: boolean | number | undefined;
  /**
   * The type of the result: the type of src, or also `'float32'` if src is float16 or bfloat16.
   * Default: the type of `out`, or without `out` the type of src.
   */
  outType?: DTypeOf<A> | undefined;
  /**
   * Bounds of the result: an element below min becomes min, one above max becomes max. All others
   * stay, including NaN, and -0 if a bound is 0. With float32, float16 and bfloat16 the bounds are
   * rounded to float32. For a result of 16 bits, they are rounded to its type, too. With integers
   * the bounds must be whole or infinite. Default: none.
   */
  activation?: Activation | undefined;
  /**
   * A tensor of the shape and the type of the result. The call writes it and returns it. It may be
   * exactly bias: the same memory, shape and strides. Otherwise it must not overlap an input.
   * Default: none, so that the call returns a new array.
   */
  out?: TensorLike<A> | TensorView<A> | undefined;
}

const op = 'matmul';
const row = operations[op];
const { arrays } = row;
const { at, length } = row.attributes;

/** @internal */
export function runMatMul(
  core: Core,
  src: unknown,
  weights: unknown,
  bias: unknown,
  options: unknown,
): unknown {
  core.checkAlive(op);
  const { alpha, transposeA, transposeB, outType, activation, out } = readOptions(
    op,
    options,
    row.options,
  );
  // Reading the elements of an array may run code of the caller. It must run before anything is in
  // the block.
  if (
    outType !== undefined ||
    typeof activation === 'object' ||
    !isInHeap(core, src, weights, bias, out)
  ) {
    const attributes = attributesOfMatMul(transposeA, transposeB, 0, activation, alpha);
    const read = readArguments(core, attributes, src, weights, bias, out, outType);
    const isBare =
      alpha === undefined &&
      transposeA === undefined &&
      transposeB === undefined &&
      outType === undefined &&
      activation === undefined;
    return (isBare ? runSmall(core, read) : undefined) ?? runCall(makeCall(core, read));
  }
  // 0 is the type of a result that the call makes, for which there is `out` here.
  writeAttributes(core.block, alpha, transposeA, transposeB, 0, activation);
  return runInHeap(
    core,
    row,
    length,
    src as HeapTensor,
    weights as HeapTensor,
    bias as HeapTensor | null,
    out as HeapTensor,
  );
}

/** @internal Reads a call, and checks what needs no core. */
export function readMatMul(
  reader: Reader,
  [src, weights, bias, options]: readonly unknown[],
): Arguments {
  reader.checkAlive(op);
  const { alpha, transposeA, transposeB, outType, activation, out } = readOptions(
    op,
    options,
    row.options,
    'options',
    reader.callOptions,
  );
  const attributes = attributesOfMatMul(transposeA, transposeB, 0, activation, alpha);
  return readArguments(reader, attributes, src, weights, bias, out, outType);
}

/** Also writes the type of the result to the attributes. */
function readArguments(
  reader: Reader,
  attributes: Float64Array,
  src: unknown,
  weights: unknown,
  bias: unknown,
  out: unknown,
  outType: unknown,
): Arguments {
  const operandA = readTensor(reader, op, 'src', src, arrays);
  const operandB = readTensor(reader, op, 'weights', weights, arrays);
  const typeOfSrc = reader.dtypes[operandA.dtype] as DType;
  const addend = readAddend(reader, op, 'bias', bias, typeOfSrc, arrays);
  const result = out === undefined ? null : readTensor(reader, op, 'out', out, arrays);
  attributes[at.outType] = typeOfResult(reader, operandA, outType, result);
  const operands = [operandA, operandB, addend, result];
  return { operation: row, attributes, operands, out };
}

/** The number of the type of the result. */
function typeOfResult(
  { dtypes }: Reader,
  src: Operand,
  outType: unknown,
  result: Operand | null,
): number {
  const typeOfSrc = dtypes[src.dtype] as DType;
  const allowed =
    typeOfSrc === 'float16' || typeOfSrc === 'bfloat16' ? [typeOfSrc, 'float32'] : [typeOfSrc];
  if (outType !== undefined && !allowed.includes(outType as DType)) {
    const found = `outType is ${describe(outType)} and src has type ${typeOfSrc}`;
    throw new DTypeError(op, 'outType', `${op}: ${found}; it must be ${allowed.join(' or ')}`);
  }
  const type = outType === undefined ? (result ?? src).dtype : dtypes.indexOf(outType as DType);
  if (result && result.dtype !== type) {
    const found = `out has type ${dtypes[result.dtype]} and outType is ${describe(outType)}`;
    throw new DTypeError(op, 'outType', `${op}: ${found}; they must be the same`);
  }
  return type;
}

// Takes the options one by one, as in gemm.ts.
function writeAttributes(
  to: Float64Array,
  alpha: unknown,
  transposeA: unknown,
  transposeB: unknown,
  type: number,
  activation: unknown,
): void {
  readFactor(op, 'alpha', alpha, to, at.alpha);
  to[at.transposeA] = readFlag(op, 'transposeA', transposeA, 0);
  to[at.transposeB] = readFlag(op, 'transposeB', transposeB, 0);
  to[at.outType] = type;
  readActivation(op, activation, to, at.activation);
}

/** @internal The attributes of a call. */
export function attributesOfMatMul(
  transposeA: unknown,
  transposeB: unknown,
  type: number,
  activation: unknown,
  alpha?: unknown,
): Float64Array {
  const attributes = new Float64Array(length);
  writeAttributes(attributes, alpha, transposeA, transposeB, type, activation);
  return attributes;
}
