/** com.microsoft MatMulNBits: its arguments, and how a call of it is read. */
import { classOf, lengthOf } from '../base/arrays.js';
import { ArgumentError, describe, isPromise, ShapeError } from '../base/errors.js';
import { handleIn, has, isList, isReadable } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray, DType, NBitsArray } from '../base/tensor.js';
import { writeNothing } from '../call/block.js';
import type { Arguments } from '../call/call.js';
import { type Operand, packedWeights, type Reader, readTensor } from '../call/operand.js';
import { type Activation, readActivation } from '../call/options.js';
import { readParameter } from '../call/parameters.js';
import { isInHeap, makeCall, runCall, runInHeap } from '../call/run.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, PackedWeights, type TensorLike, type TensorView } from '../instance/heap.js';
import { operations } from './operations.js';

/**
 * Options of `matmulNBits`.
 *
 * @typeParam A the class of the array of a, and of `out`
 * @category Operations
 */
export interface MatMulNBitsOptions<A extends DataArray = NBitsArray> {
  /** N numbers of the type of a, which are added to the columns of the result. Default: none. */
  bias?: A | TensorLike<A> | TensorView<A> | null | undefined;
  /**
   * 4 allows the call to quantize a to int8, with a scale per row and block: faster, and less
   * exact. All engines and builds then compute the same bits. 0 to 3, or zero points of the type of
   * the scales: the call computes in float32. Default: 0, or 4 for weights with a `format`.
   */
  accuracyLevel?: number | undefined;
  /** Bounds of the result, after the bias. Default: none. */
  activation?: Activation | undefined;
  /**
   * A tensor of the shape and the type of the result. The call writes it and returns it. It must
   * not overlap an input. Default: none, so that the call returns a new array.
   */
  out?: TensorLike<A> | TensorView<A> | undefined;
}

const op = 'matmulNBits';
const row = operations[op];
const { at, length } = row.attributes;
const weightNames = ['data', 'scales', 'zeroPoints', 'k', 'n', 'bits', 'blockSize'];

/** @internal */
export function runMatMulNBits(core: Core, args: readonly unknown[]): unknown {
  core.checkAlive(op);
  const [a, weights, options] = args;
  const { bias, accuracyLevel, activation, out } = readOptions(op, options, row.options);
  if (
    typeof activation !== 'object' && // code of the caller may run when its elements are read
    PackedWeights.is(weights) &&
    isInHeap(core, a, weights, bias, out)
  ) {
    const { block } = core;
    writeAttributes(block, levelFor(weights, accuracyLevel), activation);
    block.fill(0, at.k, length);
    return runInHeap(
      core,
      row,
      writeNothing(block, writeNothing(block, length)),
      a as HeapTensor,
      weights,
      bias as HeapTensor | null | undefined,
      out as HeapTensor,
    );
  }
  const read = { bias, accuracyLevel, activation, out };
  return runCall(makeCall(core, readArguments(core, a, weights, read)));
}

/** @internal Reads a call, and checks what needs no core. */
export function readMatMulNBits(reader: Reader, args: readonly unknown[]): Arguments {
  reader.checkAlive(op);
  const [a, weights, options] = args;
  const { bias, accuracyLevel, activation, out } = readOptions(
    op,
    options,
    row.options,
    'options',
    reader.callOptions,
  );
  return readArguments(reader, a, weights, { bias, accuracyLevel, activation, out });
}

function readArguments(
  reader: Reader,
  a: unknown,
  weights: unknown,
  { bias, accuracyLevel, activation, out }: Readonly<Record<string, unknown>>,
): Arguments {
  const operandA = readTensor(reader, op, 'A', a);
  const dtype = reader.dtypes[operandA.dtype] as DType;
  const attributes = new Float64Array(length);
  const [scales, zeroPoints, b] = readNBits(reader, op, weights, attributes, at.k);
  writeAttributes(
    attributes,
    levelFor(b.dtype === packedWeights ? b.source : null, accuracyLevel),
    activation,
  );
  // An array of 16 bits does not tell its type.
  const isBits = classOf(bias) === 'Uint16Array';
  const tensor = isBits ? { data: bias, shape: [lengthOf(bias as Uint16Array)], dtype } : bias;
  const operands = [
    scales,
    zeroPoints,
    operandA,
    b,
    readParameter(reader, op, 'bias', tensor, dtype),
    out === undefined ? null : readTensor(reader, op, 'out', out),
  ];
  return { operation: row, attributes, operands, out };
}

/** The accuracy level of a call. The default of weights in a block format is 4. */
const levelFor = (weights: unknown, level: unknown): unknown =>
  level === undefined && (weights as Partial<PackedWeights> | null)?.format ? 4 : level;

/** Writes the attributes, except for the attributes of the weights. */
function writeAttributes(to: Float64Array, accuracyLevel: unknown, activation: unknown): void {
  to[at.accuracyLevel] = readWhole(
    op,
    'accuracyLevel',
    accuracyLevel === undefined ? 0 : accuracyLevel,
  );
  readActivation(op, activation, to, at.activation);
}

/**
 * @internal Reads weights. Writes K, N, bits and block size to `to[from]` and after it.
 * @returns the scales, the zero points and the codes. Packed weights replace all three
 */
export function readNBits(
  reader: Reader,
  op: string,
  weights: unknown,
  to: Float64Array,
  from: number,
): [scales: Operand | null, zeroPoints: Operand | null, b: Operand] {
  const array = classOf(weights);
  if (!isReadable(weights) || isList(weights) || array !== undefined || isPromise(weights))
    throw notWeights(op, array ?? describe(weights));
  if (
    weights instanceof HeapTensor ||
    reader.handles?.isTensor(weights) ||
    (has(weights, 'shape') && !has(weights, 'scales') && handleIn(weights) === undefined)
  )
    throw notWeights(op, 'a tensor');
  if (handleIn(weights) !== undefined) return [null, null, readTensor(reader, op, 'B', weights)];
  const gIdx = (weights as { gIdx?: unknown }).gIdx;
  if (gIdx !== undefined && gIdx !== null && has(weights, 'gIdx')) {
    throw new ArgumentError(
      op,
      'gIdx',
      `${op}: gIdx is given, which ONNX Runtime has deprecated; ` +
        'reorder K of A and B by it, or dequantize the weights',
    );
  }
  const w = readOptions(op, weights, weightNames, 'weights', ['gIdx']);
  const { data, scales, zeroPoints, k, n, bits = 4, blockSize } = w;
  to[from] = readWhole(op, 'k', k, 0);
  to[from + 1] = readWhole(op, 'n', n, 0);
  to[from + 2] = readWhole(op, 'bits', bits);
  to[from + 3] = readWhole(op, 'blockSize', blockSize);
  const b = readTensor(reader, op, 'B', data);
  if (b.dtype === packedWeights) throw notWeights(op, 'an object with packed weights as data');
  return [
    readTensor(reader, op, 'scales', scales),
    zeroPoints === undefined || zeroPoints === null
      ? null
      : readTensor(reader, op, 'zeroPoints', zeroPoints),
    b,
  ];
}

function notWeights(op: string, found: string): ArgumentError {
  const allowed = '{ data, scales, k, n, blockSize }, as quantizeNBits() returns it';
  const orPacked = op === 'pack' ? '' : ', or from pack()';
  const message = `${op}: weights is ${found}; it must be ${allowed}${orPacked}`;
  return new ArgumentError(op, 'weights', message);
}

/** A whole number. The core checks its range, except `least` of k and n, which the core renames. */
function readWhole(op: string, name: string, value: unknown, least = -Infinity): number {
  const isWhole = Number.isInteger(value) && Math.abs(value as number) <= 2 ** 53;
  if (isWhole && (value as number) >= least) return value as number;
  const rule = isWhole ? `from ${least} to 2^53` : 'a whole number of at most 2^53';
  const ErrorClass = isWhole ? ShapeError : ArgumentError;
  throw new ErrorClass(op, name, `${op}: ${name} is ${describe(value)}; it must be ${rule}`);
}
