/** com.microsoft QGemm: its arguments, and how a call of it is read. */
import { readInputs, readOptions } from '../base/read-options.js';
import type { DataArray, QuantizedArray } from '../base/tensor.js';
import type { Arguments } from '../call/call.js';
import { type Reader, readTensor } from '../call/operand.js';
import {
  type Activation,
  readActivation,
  readAddend,
  readAlpha,
  readFlag,
} from '../call/options.js';
import {
  is8Bit,
  isHeldOrNumber,
  readParameter,
  readType,
  writeParameter,
} from '../call/parameters.js';
import { isInHeap, makeCall, runCall, runInHeap } from '../call/run.js';
import type { Core } from '../instance/core.js';
import {
  type HeapTensor,
  PackedWeights,
  type TensorLike,
  type TensorView,
} from '../instance/heap.js';
import { operations } from './operations.js';

/**
 * One scale, or one per column of B if the input allows that: a number, an array, or a tensor of
 * rank 0 or 1. Each is finite and above 0.
 *
 * @category Operations
 */
export type Scale = number | Float32Array | TensorLike<Float32Array> | TensorView<Float32Array>;

/**
 * A zero point, in the same forms as a scale. An array must have the type of its operand. A number
 * takes this type.
 *
 * @category Operations
 */
export type ZeroPoint =
  number | QuantizedArray | TensorLike<QuantizedArray> | TensorView<QuantizedArray>;

/**
 * Inputs of `qgemm`. The call only reads them.
 *
 * @category Operations
 */
export interface QGemmInputs {
  /** A: int8 or uint8, of shape (M, K), or (K, M) with `transA`. */
  a: TensorLike<QuantizedArray> | TensorView<QuantizedArray>;
  /** The one scale of a. */
  aScale: Scale;
  /** The one zero point of a. Default 0. */
  aZeroPoint?: ZeroPoint | null | undefined;
  /**
   * B: int8 or uint8, of shape (K, N), or (N, K) with `transB`. Or the packed weights that `pack`
   * made of it.
   */
  b: TensorLike<QuantizedArray> | TensorView<QuantizedArray> | PackedWeights;
  /** The scale of b: one, or one per column of B. */
  bScale: Scale;
  /** The zero point of b: one, or one per column of B, whatever the scales are. Default 0. */
  bZeroPoint?: ZeroPoint | null | undefined;
  /**
   * C: int32, which broadcasts to (M, N) in one direction. It is added to the sums of products, so
   * its scale is alpha * aScale * bScale. `quantizeBias` makes it. Default: none.
   */
  c?: TensorLike<Int32Array> | TensorView<Int32Array> | number | null | undefined;
  /**
   * The one scale of the result. With `yScale` and `yZeroPoint` the result is quantized, and
   * without both it is float32. One without the other is an error. Default: none.
   */
  yScale?: Scale | null | undefined;
  /**
   * The one zero point of the result. If it is an array, the result has its type. If it is a
   * number, the result has the type of `a`. Default: none.
   */
  yZeroPoint?: ZeroPoint | null | undefined;
}

/**
 * Options of `qgemm`.
 *
 * @typeParam A the class of the array of `out`
 * @category Operations
 */
export interface QGemmOptions<A extends DataArray = Float32Array | QuantizedArray> {
  /** Factor of the product and of c, finite, rounded to float32. Default 1. */
  alpha?: number | undefined;
  /** True: a has shape (K, M). Any number except 0 is true. Default false. */
  transA?: boolean | number | undefined;
  /**
   * True: b has shape (N, K). Any number except 0 is true. Must be false for packed weights.
   * Default false.
   */
  transB?: boolean | number | undefined;
  /**
   * Bounds of the result. For a quantized result they bound the real numbers that it stands for:
   * `'relu6'` is 0 to 6, whatever `yScale` is. The bounds are rounded to float32, and divided by
   * `yScale` if there is one. Then they bound acc * s[n] before it is rounded. Default: none.
   */
  activation?: Activation | undefined;
  /**
   * A tensor of the shape and the type of the result. The call writes it and returns it. It must
   * not overlap an input. Default: none, so that the call returns a new array.
   */
  out?: TensorLike<A> | TensorView<A> | undefined;
}

const op = 'qgemm';
const row = operations[op];
const { at, length } = row.attributes;

/** Inputs and options, each read once. */
interface GivenArguments {
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly alpha: unknown;
  readonly transA: unknown;
  readonly transB: unknown;
  readonly activation: unknown;
  readonly out: unknown;
}

/** @internal */
export function runQGemm(core: Core, inputs: unknown, options: unknown): unknown {
  core.checkAlive(op);
  const { a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint } = readInputs(
    op,
    inputs,
    row.inputs,
  );
  const { alpha, transA, transB, activation, out } = readOptions(op, options, row.options);
  if (
    typeof activation !== 'object' && // code of the caller may run when its elements are read
    isInHeap(core, a, b, c, out) &&
    is8Bit((a as HeapTensor).dtype) &&
    (PackedWeights.is(b) || is8Bit((b as HeapTensor).dtype)) &&
    isHeldOrNumber(aScale) &&
    isHeldOrNumber(aZeroPoint ?? 0) &&
    isHeldOrNumber(bScale) &&
    isHeldOrNumber(bZeroPoint ?? 0) &&
    isHeldOrNumber(yScale ?? 0) &&
    isHeldOrNumber(yZeroPoint ?? 0)
  ) {
    const typeA = (a as HeapTensor).dtype,
      typeB = (b as HeapTensor | PackedWeights).dtype;
    const { block } = core;
    writeAttributes(block, alpha, transA, transB, activation);
    let end = writeParameter(core, op, block, length, 'aScale', aScale, 'float32');
    end = writeParameter(core, op, block, end, 'aZeroPoint', aZeroPoint, typeA);
    end = writeParameter(core, op, block, end, 'bScale', bScale, 'float32');
    end = writeParameter(core, op, block, end, 'bZeroPoint', bZeroPoint, typeB);
    end = writeParameter(core, op, block, end, 'yScale', yScale, 'float32');
    end = writeParameter(core, op, block, end, 'yZeroPoint', yZeroPoint, typeA);
    return runInHeap(
      core,
      row,
      end,
      a as HeapTensor,
      b as HeapTensor | PackedWeights,
      c as HeapTensor | null | undefined,
      out as HeapTensor,
    );
  }
  const read = { a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint };
  const given = { inputs: read, alpha, transA, transB, activation, out };
  return runCall(makeCall(core, readArguments(core, given)));
}

/** @internal Reads a call, and checks what needs no core. */
export function readQGemm(reader: Reader, [inputs, options]: readonly unknown[]): Arguments {
  reader.checkAlive(op);
  const { a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint } = readInputs(
    op,
    inputs,
    row.inputs,
  );
  const { alpha, transA, transB, activation, out } = readOptions(
    op,
    options,
    row.options,
    'options',
    reader.callOptions,
  );
  const read = { a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint };
  return readArguments(reader, { inputs: read, alpha, transA, transB, activation, out });
}

function readArguments(reader: Reader, given: GivenArguments): Arguments {
  const { a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint } = given.inputs;
  const { alpha, transA, transB, activation, out } = given;
  const operandA = readTensor(reader, op, 'A', a);
  const operandB = readTensor(reader, op, 'B', b);
  const typeA = readType(reader, op, operandA);
  const typeB = readType(reader, op, operandB);
  const attributes = new Float64Array(length);
  writeAttributes(attributes, alpha, transA, transB, activation);
  const operands = [
    readParameter(reader, op, 'aScale', aScale, 'float32', true),
    readParameter(reader, op, 'aZeroPoint', aZeroPoint, typeA),
    readParameter(reader, op, 'bScale', bScale, 'float32', true),
    readParameter(reader, op, 'bZeroPoint', bZeroPoint, typeB),
    readParameter(reader, op, 'yScale', yScale, 'float32'),
    readParameter(reader, op, 'yZeroPoint', yZeroPoint, typeA),
    operandA,
    operandB,
    readAddend(reader, op, 'C', c, 'int32'),
    out === undefined ? null : readTensor(reader, op, 'out', out),
  ];
  return { operation: row, attributes, operands, out };
}

function writeAttributes(
  to: Float64Array,
  alpha: unknown,
  transA: unknown,
  transB: unknown,
  activation: unknown,
): void {
  to[at.op] = row.op;
  to[at.transA] = readFlag(op, 'transA', transA, 0);
  to[at.transB] = readFlag(op, 'transB', transB, 0);
  to[at.alpha] = readAlpha(op, alpha);
  readActivation(op, activation, to, at.activation);
}

/** @internal The attributes of a call that other code of the library makes. */
export function attributesOfQGemm(min: number, max: number): Float64Array {
  const attributes = new Float64Array(length);
  writeAttributes(attributes, undefined, false, false, [min, max]);
  return attributes;
}
