/** ONNX Gemm: its options, and how a call of it is read. */
import { ArgumentError, describe, OpsetError } from '../base/errors.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Arguments } from '../call/call.js';
import { type Reader, readTensor } from '../call/operand.js';
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
import type { HeapTensor, PackedWeights, TensorLike, TensorView } from '../instance/heap.js';
import { operations } from './operations.js';

/**
 * Options of `gemm`.
 *
 * @typeParam A the class of the array of `out`
 * @category Operations
 */
export interface GemmOptions<A extends DataArray = DataArray> {
  /**
   * Factor of the product, rounded to float32 with float32, float16 and bfloat16. With integers a
   * fraction makes the result pass through float64, in which 64-bit values above 2^53 lose bits. A
   * bigint is for int64 and uint64, modulo 2^64. Default 1.
   */
  alpha?: number | bigint | undefined;
  /**
   * Factor of C, by the rules of `alpha`. If it is 0, C is checked but not read. With `out` and
   * without C it must be 0 or absent: to add to `out`, pass it as C, too. Default 1.
   */
  beta?: number | bigint | undefined;
  /** True: A has shape (K, M). Any number except 0 is true. Default false. */
  transA?: boolean | number | undefined;
  /**
   * True: B has shape (N, K). Any number except 0 is true. Must be false for packed weights.
   * Default false.
   */
  transB?: boolean | number | undefined;
  /**
   * The opset of the model, from 1. The newest version of Gemm that is not above it applies.
   * Default 13.
   */
  opset?: number | undefined;
  /**
   * Opsets 1 to 6 only: whether C may be broadcast. If not, C must have shape (M, N). Any number
   * except 0 is true. Default false.
   */
  broadcast?: boolean | number | undefined;
  /**
   * Bounds of the result: an element below min becomes min, one above max becomes max. All others
   * stay, including NaN, and -0 if a bound is 0. With float32, float16 and bfloat16 the bounds are
   * rounded to float32. For a result of 16 bits, they are rounded to its type, too. With integers
   * the bounds must be whole or infinite. Every opset has this option. Default: none.
   */
  activation?: Activation | undefined;
  /**
   * A tensor of the shape and the type of the result. The call writes it and returns it. It may be
   * exactly C: the same memory, shape and strides. Otherwise it must not overlap an input. Default:
   * none, so that the call returns a new array.
   */
  out?: TensorLike<A> | TensorView<A> | undefined;
}

const op = 'gemm';
const row = operations[op];
const { arrays } = row;
const { at, length } = row.attributes;

/** The attributes of a call without options. */
const bare = new Float64Array(length);
const none = undefined;
writeAttributes(bare, none, none, none, none, none, none, none);

/** @internal */
export function runGemm(core: Core, a: unknown, b: unknown, c: unknown, options: unknown): unknown {
  core.checkAlive(op);
  const { alpha, beta, transA, transB, opset, broadcast, activation, out } = readOptions(
    op,
    options,
    row.options,
  );
  if (beta !== undefined) checkBeta(beta, c, out);
  // Reading the elements of an array may run code of the caller. It must run before anything is in
  // the block.
  if (typeof activation === 'object' || !isInHeap(core, a, b, c, out)) {
    const isBare =
      alpha === undefined &&
      beta === undefined &&
      transA === undefined &&
      transB === undefined &&
      opset === undefined &&
      broadcast === undefined &&
      activation === undefined;
    const attributes = isBare ? bare : new Float64Array(length);
    if (!isBare)
      writeAttributes(attributes, alpha, beta, transA, transB, opset, broadcast, activation);
    const read = readArguments(core, attributes, a, b, c, out);
    return (isBare ? runSmall(core, read) : undefined) ?? runCall(makeCall(core, read));
  }
  writeAttributes(core.block, alpha, beta, transA, transB, opset, broadcast, activation);
  return runInHeap(
    core,
    row,
    length,
    a as HeapTensor,
    b as HeapTensor | PackedWeights,
    c as HeapTensor | null | undefined,
    out as HeapTensor,
  );
}

/** @internal Reads a call, and checks what needs no core. */
export function readGemm(reader: Reader, [a, b, c, options]: readonly unknown[]): Arguments {
  reader.checkAlive(op);
  const { alpha, beta, transA, transB, opset, broadcast, activation, out } = readOptions(
    op,
    options,
    row.options,
    'options',
    reader.callOptions,
  );
  if (beta !== undefined) checkBeta(beta, c, out);
  const attributes = new Float64Array(length);
  writeAttributes(attributes, alpha, beta, transA, transB, opset, broadcast, activation);
  return readArguments(reader, attributes, a, b, c, out);
}

/** In BLAS, the result is C, so that beta without C looks like a factor of `out`. */
function checkBeta(beta: unknown, c: unknown, out: unknown): void {
  if (out === undefined || (c ?? null) !== null || beta === 0 || beta === 0n) return;
  const found = `${op}: beta is ${describe(beta)}, which has no effect without C`;
  throw new ArgumentError(op, 'beta', `${found}; to add to out, pass out as C, too`);
}

function readArguments(
  reader: Reader,
  attributes: Float64Array,
  a: unknown,
  b: unknown,
  c: unknown,
  out: unknown,
): Arguments {
  const operandA = readTensor(reader, op, 'A', a, arrays);
  const operandB = readTensor(reader, op, 'B', b, arrays);
  const typeOfA = reader.dtypes[operandA.dtype] as DType;
  const operandC = readAddend(reader, op, 'C', c, typeOfA, arrays);
  const operandY = out === undefined ? null : readTensor(reader, op, 'out', out, arrays);
  const operands = [operandA, operandB, operandC, operandY];
  return { operation: row, attributes, operands, out };
}

// Takes the options one by one: an object that holds them would take as long as a part of a small
// product.
function writeAttributes(
  to: Float64Array,
  alpha: unknown,
  beta: unknown,
  transA: unknown,
  transB: unknown,
  opset: unknown,
  broadcast: unknown,
  activation: unknown,
): void {
  readFactor(op, 'alpha', alpha, to, at.alpha);
  readFactor(op, 'beta', beta, to, at.beta);
  to[at.transA] = readFlag(op, 'transA', transA, 0);
  to[at.transB] = readFlag(op, 'transB', transB, 0);
  to[at.opset] = readOpset(opset);
  to[at.broadcast] = readFlag(op, 'broadcast', broadcast, NaN); // NaN: not given
  readActivation(op, activation, to, at.activation);
}

function readOpset(value: unknown): number {
  if (value === undefined) return 13;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new OpsetError(
      op,
      'opset',
      `${op}: opset is ${describe(value)}; it must be a whole number, 1 or more`,
    );
  }
  return value;
}
