/**
 * ONNX MatMulInteger and QLinearMatMul, com.microsoft DynamicQuantizeMatMul and
 * MatMulIntegerToFloat: their arguments, and how a call of them is read.
 */
import { readInputs, readOptions } from '../base/read-options.js';
import type { DataArray, DType, Float16ArrayLike, QuantizedArray } from '../base/tensor.js';
import type { Arguments } from '../call/call.js';
import { type Reader, readTensor } from '../call/operand.js';
import { type Activation, readActivation, readFlag } from '../call/options.js';
import {
  is8Bit,
  isHeldOrNumber,
  readParameter,
  readType,
  writeParameter,
} from '../call/parameters.js';
import { isInHeap, makeCall, runCall, runInHeap } from '../call/run.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, PackedWeights, type TensorLike, type TensorView } from '../instance/heap.js';
import { operations, parameterNames } from './operations.js';
import type { Scale, ZeroPoint } from './qgemm.js';

/**
 * A float16 scale or bias: an array, or a tensor.
 *
 * @category Operations
 */
export type HalfVector =
  | Uint16Array
  | Float16ArrayLike
  | TensorLike<Uint16Array | Float16ArrayLike>
  | TensorView<Uint16Array | Float16ArrayLike>;

/**
 * A float32 bias: an array of N elements, or a tensor of shape [N].
 *
 * @category Operations
 */
export type Bias = Float32Array | TensorLike<Float32Array> | TensorView<Float32Array>;

/** Options that all four calls have. */
interface Transposes<A extends DataArray> {
  /** True: the last two axes of a are (K, M). Any number except 0 is true. Default false. */
  transA?: boolean | number | undefined;
  /**
   * True: the last two axes of b are (N, K). Any number except 0 is true. Must be false for packed
   * weights. Default false.
   */
  transB?: boolean | number | undefined;
  /**
   * A tensor of the shape and the type of the result. The call writes it and returns it. It must
   * not overlap an input. Default: none, so that the call returns a new array.
   */
  out?: TensorLike<A> | TensorView<A> | undefined;
}

/**
 * Options of `matmulInteger`.
 *
 * @typeParam A the class of the array of `out`
 * @category Operations
 */
export interface MatMulIntegerOptions<A extends DataArray = Int32Array> extends Transposes<A> {
  /** The zero point of a: one, or one per row, of shape [M] or [..., M, 1]. Default 0. */
  aZeroPoint?: ZeroPoint | null | undefined;
  /**
   * The zero point of b: one, or one per column, of shape [N], or [..., 1, N] with the batch axes
   * of b. Default 0.
   */
  bZeroPoint?: ZeroPoint | null | undefined;
}

/**
 * Inputs of `qlinearMatmul`. The call only reads them. A scale must be finite; it may be negative,
 * and except for yScale it may be 0. All scales have one type, float32 or float16. A number takes
 * the type of the others.
 *
 * @category Operations
 */
export interface QLinearMatMulInputs {
  /** A: int8 or uint8, of shape (..., M, K), or (..., K, M) with `transA`; or (K). */
  a: TensorLike<QuantizedArray> | TensorView<QuantizedArray>;
  /** The scale of a: one, or one per row, of shape [M] or [..., M, 1]. */
  aScale: Scale | HalfVector;
  /** The zero point of a, by the same rule. Default 0. */
  aZeroPoint?: ZeroPoint | null | undefined;
  /**
   * B: int8 or uint8, of shape (..., K, N), or (..., N, K) with `transB`; or (K). Or the packed
   * weights that `pack` made of it for `'qgemm'`.
   */
  b: TensorLike<QuantizedArray> | TensorView<QuantizedArray> | PackedWeights;
  /** The scale of b: one, or one per column, of shape [N], or [..., 1, N] with b's batch axes. */
  bScale: Scale | HalfVector;
  /** The zero point of b, by the same rule. Default 0. */
  bZeroPoint?: ZeroPoint | null | undefined;
  /** The scale of the result: one, or one per row, of shape [M] or [..., M, 1]. */
  yScale: Scale | HalfVector;
  /**
   * The zero point of the result, by the same rule. If it is an array or a tensor, the result has
   * its type. Otherwise the result has the type of a. Default 0.
   */
  yZeroPoint?: ZeroPoint | null | undefined;
}

/**
 * Options of `qlinearMatmul`.
 *
 * @typeParam A the class of the array of `out`
 * @category Operations
 */
export interface QLinearMatMulOptions<A extends DataArray = QuantizedArray> extends Transposes<A> {
  /**
   * Bounds of the real numbers that the result stands for: `'relu6'` is 0 to 6, whatever `yScale`
   * is. Default: none.
   */
  activation?: Activation | undefined;
}

/**
 * Options of `dynamicQuantizeMatmul`. `bScale` is required.
 *
 * @typeParam A the class of the array of `out`
 * @category Operations
 */
export interface DynamicQuantizeMatMulOptions<
  A extends DataArray = Float32Array,
> extends Transposes<A> {
  /** The scale of b: one, or one per column, of shape [N], or [..., 1, N] with b's batch axes. */
  bScale: Scale;
  /** The zero point of b, by the same rule. Default 0. */
  bZeroPoint?: ZeroPoint | null | undefined;
  /** N numbers that are added to the columns of the result. Default: none. */
  bias?: Bias | null | undefined;
  /** Bounds of the result, after the bias. Default: none. */
  activation?: Activation | undefined;
}

/**
 * Options of `matmulIntegerToFloat`. `aScale` and `bScale` are required.
 *
 * @typeParam A the class of the array of `out`
 * @typeParam S the class of the arrays of scales and bias: a class for float32 or float16
 * @category Operations
 */
export interface MatMulIntegerToFloatOptions<
  A extends DataArray = Float32Array | Uint16Array | Float16ArrayLike,
  S = Scale | HalfVector,
> extends Transposes<A> {
  /** The one scale of a. */
  aScale: S | number;
  /** The scale of b: one, or one per column, of shape [N], or [..., 1, N] with b's batch axes. */
  bScale: S | number;
  /** The one zero point of a. Default 0. */
  aZeroPoint?: ZeroPoint | null | undefined;
  /** The zero point of b: one, or one per column, as bScale. Default 0. */
  bZeroPoint?: ZeroPoint | null | undefined;
  /** N numbers that are added to the columns of the result, of the type of the scales. */
  bias?: Exclude<S, number> | null | undefined;
  /** Bounds of the result, after the bias. Default: none. */
  activation?: Activation | undefined;
}

type Name = 'matmulInteger' | 'qlinearMatmul' | 'dynamicQuantizeMatmul' | 'matmulIntegerToFloat';

/** Inputs and options of a call as the caller made it. Absent ones are undefined. */
class GivenArguments {
  a: unknown;
  b: unknown;
  aScale: unknown;
  aZeroPoint: unknown;
  bScale: unknown;
  bZeroPoint: unknown;
  yScale: unknown;
  yZeroPoint: unknown;
  bias: unknown;
  transA: unknown;
  transB: unknown;
  activation: unknown;
  out: unknown;

  /** Reads properties, each once: they may be getters, also of a class. */
  take(from: Readonly<Record<string, unknown>>, names: readonly string[]): void {
    for (const name of names) this[name as keyof GivenArguments] = from[name] as never;
  }
}

/** Reads each argument of a call once. */
function readGiven(
  op: Name,
  args: readonly unknown[],
  besides?: readonly string[],
): GivenArguments {
  const given = new GivenArguments();
  const { inputs } = operations.qlinearMatmul;
  if (op === 'qlinearMatmul') given.take(readInputs(op, args[0], inputs), inputs);
  else [given.a, given.b] = args;
  const { options, optionsAt } = operations[op];
  given.take(readOptions(op, args[optionsAt], options, 'options', besides), options);
  return given;
}

/** @internal */
export function runIntegerMatMul(core: Core, op: Name, args: readonly unknown[]): unknown {
  core.checkAlive(op);
  const given = readGiven(op, args);
  const { a, b, bias, out, activation } = given;
  const { aScale, aZeroPoint, bScale, bZeroPoint, yScale, yZeroPoint } = given;
  const scales = [aScale, aZeroPoint, bScale, bZeroPoint, yScale, yZeroPoint];
  if (
    typeof activation !== 'object' && // code of the caller may run when its elements are read
    isInHeap(core, a, b, bias, out) &&
    (is8Bit((a as HeapTensor).dtype) || op === 'dynamicQuantizeMatmul') &&
    (PackedWeights.is(b) || is8Bit((b as HeapTensor).dtype)) &&
    scales.every((value) => isHeldOrNumber(value ?? 0))
  ) {
    const typeOfScales = scaleType(scales.map((value) => HeapTensor.is(value) && value.dtype));
    const types = typesOf((a as HeapTensor).dtype, (b as HeapTensor).dtype, typeOfScales);
    const { block } = core;
    writeAttributes(block, op, given);
    let end = operations[op].attributes.length;
    scales.forEach((value, i) => {
      end = writeParameter(
        core,
        op,
        block,
        end,
        parameterNames[i] as string,
        value,
        types[i] as DType,
      );
    });
    return runInHeap(
      core,
      operations[op],
      end,
      a as HeapTensor,
      b as HeapTensor | PackedWeights,
      bias as HeapTensor | null | undefined,
      out as HeapTensor,
    );
  }
  return runCall(makeCall(core, readArguments(core, op, given)));
}

/** @internal Reads a call, and checks what needs no core. */
export function readIntegerMatMul(reader: Reader, op: Name, args: readonly unknown[]): Arguments {
  reader.checkAlive(op);
  return readArguments(reader, op, readGiven(op, args, reader.callOptions));
}

/** The types that scales and zero points take if they are numbers. */
function typesOf(a: DType, b: DType, scales: DType): readonly DType[] {
  return [scales, a, scales, b, scales, a];
}

/** The type of the scales, by the types of all scales and zero points that have one. */
function scaleType([a, , b, , y]: readonly unknown[]): DType {
  return [a, b, y].includes('float16') ? 'float16' : 'float32';
}

function readArguments(reader: Reader, op: Name, given: GivenArguments): Arguments {
  const a = readTensor(reader, op, 'A', given.a);
  const b = readTensor(reader, op, 'B', given.b);
  const typeA = op === 'dynamicQuantizeMatmul' ? 'uint8' : readType(reader, op, a);
  const typeB = readType(reader, op, b);
  const attributes = new Float64Array(operations[op].attributes.length);
  writeAttributes(attributes, op, given);
  // Numbers wait for the type of the other scales.
  const isNumber = (i: number) => typeof given[parameterNames[i] as 'aScale'] === 'number';
  const read = (i: number, types: readonly DType[]) => {
    const name = parameterNames[i] as (typeof parameterNames)[number];
    return readParameter(reader, op, name, given[name], types[i] as DType);
  };
  const early = parameterNames.map((_, i) =>
    isNumber(i) ? null : read(i, typesOf(typeA, typeB, 'float32')),
  );
  const types = typesOf(
    typeA,
    typeB,
    scaleType(early.map((scale) => scale && reader.dtypes[scale.dtype])),
  );
  const scales = early.map((scale, i) => (isNumber(i) ? read(i, types) : scale));
  const operands = [
    ...scales,
    a,
    b,
    readParameter(reader, op, 'bias', given.bias, types[0] as DType),
    given.out === undefined ? null : readTensor(reader, op, 'out', given.out),
  ];
  return { operation: operations[op], attributes, operands, out: given.out };
}

function writeAttributes(to: Float64Array, op: Name, given: GivenArguments): void {
  const { attributes, op: number } = operations[op];
  const { at } = attributes;
  to[at.op] = number;
  to[at.transA] = readFlag(op, 'transA', given.transA, 0);
  to[at.transB] = readFlag(op, 'transB', given.transB, 0);
  to[at.alpha] = 1;
  readActivation(op, given.activation, to, at.activation);
}
