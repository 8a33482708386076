/**
 * The calls of an instance, as users see them. `wgemm` and `wgemm/worker` have the same calls. Only
 * their handles differ, and the way in which a result arrives.
 */
import type {
  ArrayOf,
  DataArray,
  DType,
  DTypeOf,
  Float16ArrayLike,
  Matching,
  Matrix,
  NBitsArray,
  NewArrays,
  QuantizedArray,
  ResultArray,
  Tensor,
  TensorInput,
} from '../base/tensor.js';
import type { NBitsWeights } from '../convert/quantize-nbits.js';
import type { HeapTensor, PackedWeights, TensorView } from '../instance/heap.js';
import type { Info } from '../instance/start-core.js';
import type { MemoryUse } from '../ops/alloc.js';
import type { Explanation } from '../ops/explain.js';
import type { GemmOptions } from '../ops/gemm.js';
import type {
  DynamicQuantizeMatMulOptions,
  HalfVector,
  MatMulIntegerOptions,
  MatMulIntegerToFloatOptions,
  QLinearMatMulInputs,
  QLinearMatMulOptions,
} from '../ops/integer-matmul.js';
import type { MatMulNBitsOptions } from '../ops/matmul-nbits.js';
import type { MatMulOptions } from '../ops/matmul.js';
import type { PackNBitsOptions, PackOptions } from '../ops/pack.js';
import type { QGemmInputs, QGemmOptions, Scale, ZeroPoint } from '../ops/qgemm.js';
import type { CallOptions, WorkerTensor, WorkerWeights } from './worker-handles.js';

/** Where an instance computes: in the thread of its caller, or in a worker. */
export type Place = 'here' | 'worker';

// These are tables by place, since a type parameter of TypeScript cannot be a generic type.
// TypeScript looks `P` up in a table before it infers the other parameters, and before it shows a
// signature. So users see only what is in the tables.

/** How a result arrives. */
interface Arrival<T> {
  here: T;
  worker: Promise<T>;
}

interface Operands<A extends DataArray = DataArray> {
  here: Operand<A>;
  worker: WorkerTensorLike<A>;
}

interface Outs<A extends DataArray, Y extends DataArray, U extends DataArray> {
  here: Out<A, Y, U>;
  worker: WorkerOut<A, Y, U>;
}

interface Allocated<D extends DType> {
  here: HeapTensor<ArrayOf<D>>;
  worker: WorkerTensor<NewArrays[D]>; // what its `read()` returns
}

interface Weights {
  here: PackedWeights;
  worker: WorkerWeights;
}

/** An argument or option that may hold handles. */
interface Holding<T> {
  here: T;
  worker: InWorker<T>;
}

interface Inputs {
  here: QGemmInputs;
  worker: WorkerQGemmInputs;
}

interface QLinearInputs {
  here: QLinearMatMulInputs;
  worker: HoldingHandles<QLinearMatMulInputs>;
}

interface NBits<A extends DataArray> {
  here: NBitsWeights<A>;
  worker: HoldingHandles<NBitsWeights<A>>;
}

/** Options that hold operands, except those for the result. */
interface OptionsWithOperands<T> {
  here: Omit<T, 'out'>;
  worker: HoldingHandles<Omit<T, 'out'>> & CallOptions;
}

/** Options of an operation, except those for its result. */
interface Options<T> {
  here: Omit<T, 'out' | 'outType'>;
  worker: Omit<T, 'out' | 'outType'> & CallOptions;
}

/** Options that every call has. */
interface EveryCall {
  here: unknown;
  worker: CallOptions;
}

/** The last argument of a call that has no options of its own. */
interface Last {
  here: [];
  worker: [options?: CallOptions];
}

/**
 * A {@link TensorInput} or a {@link TensorView}. It is one type, so that TypeScript infers `A` from
 * either.
 *
 * @typeParam A the class of the array
 * @category Type machinery
 */
export interface DescribedTensor<A extends DataArray> extends Omit<TensorInput<A>, 'data'> {
  /** The array, or the tensor in the memory of the instance, that has the elements. */
  readonly data: A | HeapTensor<A>;
}

/**
 * The counterpart of `DescribedTensor` in `wgemm/worker`. It is a type of its own: with the class
 * of `data` as a type parameter, TypeScript would not infer `A` from a view.
 *
 * @typeParam A the class of the array
 * @category Type machinery
 */
export interface WorkerDescribedTensor<A extends DataArray> extends Omit<TensorInput<A>, 'data'> {
  /** The array, or the tensor in the memory of the instance, that has the elements. */
  readonly data: A | WorkerTensor<A>;
}

/**
 * A tensor that a call of `wgemm` takes. It is in an array of the caller, or in the memory of the
 * instance, or a view of a tensor there.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export type Operand<A extends DataArray = DataArray> = DescribedTensor<A> | HeapTensor<A>;

/**
 * A tensor that a call of `wgemm/worker` takes. It is in an array of the caller, or in the memory
 * of the instance in the worker, or a view of a tensor there.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export type WorkerTensorLike<A extends DataArray = DataArray> =
  WorkerDescribedTensor<A> | WorkerTensor<A>;

/**
 * Refuses a number that is not one of `T`. A variable of type `number` is allowed: the call checks
 * it at run time.
 *
 * @typeParam N the type of the number
 * @typeParam T the numbers that the call takes
 * @category Type machinery
 */
export type OneOf<N extends number, T extends number> = number extends N ? N : T;

/**
 * Refuses a bigint unless the elements are integers of 64 bits. A variable that may be a number is
 * allowed: the call checks it at run time.
 *
 * @typeParam F the type of the factor
 * @typeParam A the class of the array of the elements
 * @category Type machinery
 */
export type FactorOf<F, A extends DataArray> = number extends F
  ? F
  : F extends bigint
    ? [Extract<DTypeOf<A>, 'int64' | 'uint64'>] extends [never]
      ? 'a bigint is for int64 and uint64'
      : F
    : F;

/** The option alpha. */
type Alpha<F, A extends DataArray> = { alpha?: F | undefined } & {
  alpha?: FactorOf<F, A> | undefined;
};

/** The options alpha and beta. */
type Factors<F, A extends DataArray> = Alpha<F, A> & { beta?: F | undefined } & {
  beta?: FactorOf<F, A> | undefined;
};

/**
 * The 8-bit types that an array, a tensor or a handle may have; `never` if the value is a number or
 * absent.
 *
 * @typeParam T the type of the value
 * @category Type machinery
 */
export type TypeIn8Bits<T> = T extends number | null | undefined
  ? never
  : T extends
        | Int8Array
        | {
            /** The elements. */
            readonly data: Int8Array | HeapTensor<Int8Array> | WorkerTensor<Int8Array>;
          }
        | WorkerTensor<Int8Array>
    ? 'int8'
    : T extends
          | Uint8Array
          | {
              /** The elements. */
              readonly data: Uint8Array | HeapTensor<Uint8Array> | WorkerTensor<Uint8Array>;
            }
          | WorkerTensor<Uint8Array>
      ? 'uint8'
      : 'int8' | 'uint8';

/**
 * Refuses a zero point whose array does not have the type of its operand. A zero point of a wider
 * type is allowed: the call checks it at run time.
 *
 * @typeParam Z the type of the zero point
 * @typeParam T the type of the operand
 * @category Type machinery
 */
export type ZeroPointOf<Z, T> = [TypeIn8Bits<Z>] extends [never]
  ? Z
  : [TypeIn8Bits<Z> & TypeIn8Bits<T>] extends [never]
    ? 'a zero point has the type of its operand'
    : Z;

/**
 * Arrays that hold a result of `qlinearMatmul`. Their type is the type of `yZeroPoint` if that is
 * an array, else the type of a.
 *
 * @typeParam T the type of a
 * @typeParam Z the type of `yZeroPoint`
 * @category Type machinery
 */
export type QLinearArray<T, Z> = ArrayOf<
  [TypeIn8Bits<Z>] extends [never]
    ? TypeIn8Bits<T>
    : TypeIn8Bits<Z> | (Z extends number | null | undefined ? TypeIn8Bits<T> : never)
>;

/** The zero point of a. */
type ZeroPointOfA<Z, T> = { aZeroPoint?: Z | undefined } & {
  aZeroPoint?: ZeroPointOf<Z, T> | undefined;
};

/** The zero point of b. */
type ZeroPointOfB<Z, T> = { bZeroPoint?: Z | undefined } & {
  bZeroPoint?: ZeroPointOf<Z, T> | undefined;
};

/** Codes of a few bits. */
type Bits<N extends number, S extends number> = {
  bits?: N | undefined;
  blockSize: S;
} & { bits?: OneOf<N, 2 | 4 | 8> | undefined; blockSize: OneOf<S, 16 | 32 | 64 | 128 | 256> };

/** The option accuracyLevel. */
type Level<L extends number> = { accuracyLevel?: L | undefined } & {
  accuracyLevel?: OneOf<L, 0 | 1 | 2 | 3 | 4> | undefined;
};

/**
 * What a call returns: `O`, the type of the option `out`; or `T` if there is no `out`.
 *
 * @typeParam O the type of `out`
 * @typeParam T the type of a result without `out`
 * @category Type machinery
 */
export type OutOr<O, T> = O extends undefined ? T : O;

/**
 * Refuses a tensor of 8 bits, which `qgemm` and the integer products take. For other arrays this
 * type is `unknown`, which allows everything.
 *
 * @typeParam A the class of the array of the tensor
 * @category Type machinery
 */
export type Not8Bit<A extends DataArray> = {
  [T in DType]: T extends 'int8' | 'uint8' ? 'int8 and uint8 are for qgemm' : unknown;
}[DTypeOf<A>];

/**
 * Refuses an `out` whose elements do not have the type of the result. For other arrays this type is
 * `unknown`, which allows everything.
 *
 * @typeParam A the class of the array of the result
 * @typeParam U the class of the array of `out`
 * @category Type machinery
 */
export type SameDType<A extends DataArray, U extends DataArray> = {
  [T in DType]: T extends DTypeOf<A> ? unknown : 'out must have the type of the result';
}[DTypeOf<U>];

/**
 * The option `out` of a call. Its array may have a wider type, such as the `DataArray` of options
 * in a variable. The call checks such an `out` when it runs.
 *
 * @typeParam A the class of the array of the result
 * @typeParam Y the class of the array of `out`
 * @typeParam U a class that may be wider than `Y`
 * @category Type machinery
 */
export type Out<A extends DataArray, Y extends DataArray, U extends DataArray> =
  Operand<Y> | ((Operand<U> | TensorView<U>) & SameDType<A, U>) | undefined;

/**
 * {@link Out} of a call in a worker. It also allows views of handles of `wgemm`, since
 * `GemmOptions` names these. The call checks them when it runs.
 *
 * @typeParam A the class of the array of the result
 * @typeParam Y the class of the array of `out`
 * @typeParam U a class that may be wider than `Y`
 * @category Type machinery
 */
export type WorkerOut<A extends DataArray, Y extends DataArray, U extends DataArray> =
  WorkerTensorLike<Y> | ((WorkerTensorLike<U> | TensorView<U>) & SameDType<A, U>) | undefined;

/**
 * Arrays for which `matmul` can make a result of float32: those of float32, float16 and bfloat16.
 *
 * @category Type machinery
 */
export type Widened = Float32Array | Uint16Array | Float16ArrayLike;

/**
 * Arrays that can hold a result of `matmul`.
 *
 * @typeParam A the class of the array of src
 * @category Type machinery
 */
export type MatMulArray<A extends DataArray> =
  Matching<A> | (A extends Widened ? Float32Array : never);

/**
 * What the option `outType` of `matmul` may be.
 *
 * @typeParam A the class of the array of src
 * @typeParam D the type that the call names
 * @category Type machinery
 */
export type OutType<A extends DataArray, D> =
  DTypeOf<MatMulArray<A>> | ([D & DTypeOf<MatMulArray<A>>] extends [never] ? never : D) | undefined;

/**
 * The array of a result of `matmul`.
 *
 * @typeParam A the class of the array of src
 * @typeParam D the types that `outType` may name
 * @category Type machinery
 */
export type MatMulResultArray<A extends DataArray, D> =
  ResultArray<A> | ('float32' extends D ? ResultArray<MatMulArray<A>> : never);

/**
 * Arrays that hold a result of `qgemm`, by `yScale`: without it float32, with it 8 bits.
 *
 * @typeParam S the type of `yScale`
 * @category Type machinery
 */
export type QGemmArray<S> = S extends null | undefined ? Float32Array : QuantizedArray;

/**
 * Refuses a tensor that `pack` does not take for the operation, or cannot pack as the type. For
 * other tensors this type is `unknown`, which allows everything.
 *
 * @typeParam O the operation
 * @typeParam D the type that `as` names
 * @typeParam A the class of the array of b
 * @category Type machinery
 */
export type Packable<O, D, A extends DataArray> = {
  [T in DType]: [O] extends [T extends 'int8' | 'uint8' ? 'gemm' | 'matmul' : 'qgemm']
    ? 'int8 and uint8 are for qgemm, all others for gemm and matmul'
    : [D & (T | (T extends 'float32' ? 'float16' | 'bfloat16' : never))] extends [never]
      ? 'as is the type of b; for float32 also float16 or bfloat16'
      : unknown;
}[DTypeOf<A>];

/**
 * The type of an argument of `wgemm`, in which handles of `wgemm/worker` replace its own.
 *
 * @typeParam T the type in `wgemm`
 * @category Type machinery
 */
export type InWorker<T> =
  T extends HeapTensor<infer A>
    ? WorkerTensor<A>
    : T extends TensorView<infer A>
      ? TensorView<A, WorkerTensor<A>>
      : T extends PackedWeights
        ? WorkerWeights
        : T;

/**
 * What `qgemm` takes in `wgemm/worker`: {@link QGemmInputs}, with handles of the worker.
 *
 * @interface
 * @category Operations
 */
export type WorkerQGemmInputs = { [K in keyof QGemmInputs]: InWorker<QGemmInputs[K]> };

/**
 * Inputs or options of a call in `wgemm/worker`, with handles of the worker.
 *
 * @typeParam T the inputs or options in `wgemm`
 * @category Type machinery
 */
export type HoldingHandles<T> = { [K in keyof T]: InWorker<T[K]> };

/**
 * `T`, the options of a call in `wgemm`, with those of every call in a worker.
 *
 * @typeParam T the options in `wgemm`
 * @category Operations
 */
export type WorkerOptions<T> = Omit<T, 'out'> & CallOptions;

/**
 * The calls of an instance. In `wgemm` they return their results. In `wgemm/worker` they return
 * promises, which are rejected with what the same call in `wgemm` throws.
 *
 * Each operand has a type parameter for its array. `A` alone determines the type of the result.
 * Overloads repeat their comments, since an editor shows only those of the overload in use.
 */
export interface Api<P extends Place> {
  /** The build in use, its threads and micro-kernels, and why the instance has these. */
  readonly info: Info;

  /**
   * Computes ONNX Gemm into `out`, and returns `out`. Everything else is as without `out`.
   *
   * @param a A of shape (M, K), or (K, M) with `transA`; not int8 or uint8
   * @param b B of shape (K, N), or (N, K) with `transB`, and of the type of A. Or the packed
   * weights that `pack` made of it
   * @param c C: a tensor of the type of A that broadcasts to (M, N) in one direction. Or a number,
   * or a bigint with int64 and uint64. Or nothing, from opset 11 on
   * @param options with `out`, of shape (M, N) and the type of A. It may be C itself, but must not
   * overlap A or B
   * @typeParam O the type of `out`
   * @returns `out`
   * @throws ShapeError, DTypeError, OpsetError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  gemm<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
    O extends Operands[P] | undefined,
    F extends number | bigint = number,
  >(
    a: Operands<A>[P] & Not8Bit<A>,
    b: Operands<B>[P] | Weights[P],
    c: Operands<C>[P] | number | bigint | null | undefined,
    options: Options<GemmOptions>[P] & Factors<F, A> & { out: O } & { out: Outs<A, Y, U>[P] },
  ): Arrival<OutOr<O, Matrix<ResultArray<A>>>>[P];
  /**
   * Computes ONNX Gemm: Y = alpha * A' * B' + beta * C. A' is A or its transpose, and B' is B or
   * its transpose. https://onnx.ai/onnx/operators/onnx__Gemm.html
   *
   * The call checks all arguments before it writes. It only reads A, B and C, which remain the
   * caller's.
   *
   * @example
   * const a = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] };
   * const b = { data: Float32Array.of(1, 0, 0, 1, 1, 1), shape: [3, 2] };
   * const y = wg.gemm(a, b, 10, { alpha: 0.5 });
   * y.data; // Float32Array [12, 12.5, 15, 15.5]
   *
   * @param a A of shape (M, K), or (K, M) with `transA`; not int8 or uint8
   * @param b B of shape (K, N), or (N, K) with `transB`, and of the type of A. Or the packed
   * weights that `pack` made of it
   * @param c C: a tensor of the type of A that broadcasts to (M, N) in one direction. Or a number,
   * or a bigint with int64 and uint64. Or nothing, from opset 11 on
   * @param options all have defaults
   * @returns Y of shape (M, N) and the type of A, contiguous, in a new array that the caller owns
   * @throws ShapeError, DTypeError, OpsetError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  gemm<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
    F extends number | bigint = number,
  >(
    a: Operands<A>[P] & Not8Bit<A>,
    b: Operands<B>[P] | Weights[P],
    c?: Operands<C>[P] | number | bigint | null,
    options?: Options<GemmOptions>[P] & Factors<F, A> & { out?: Outs<A, Y, U>[P] },
  ): Arrival<Matrix<ResultArray<A>>>[P];

  /**
   * Computes com.microsoft QGemm into `out`, and returns `out`. Everything else is as without
   * `out`.
   *
   * @param inputs the operands, with their scales and zero points
   * @param options with `out`, of shape (M, N). Its type is float32 without `yScale`; with it, the
   * type of `yZeroPoint`. It must not overlap an input
   * @typeParam O the type of `out`
   * @returns `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<
    Y extends QGemmArray<S>,
    U extends DataArray,
    O extends Operands[P] | undefined,
    S extends Holding<Scale | null | undefined>[P] = undefined,
  >(
    inputs: Inputs[P] & { yScale?: S },
    options: Options<QGemmOptions>[P] & { out: O } & { out: Outs<QGemmArray<S>, Y, U>[P] },
  ): Arrival<OutOr<O, Matrix<NewArrays[DTypeOf<QGemmArray<S>>]>>>[P];
  /**
   * Computes com.microsoft QGemm of quantized a and b, each int8 or uint8, to float32:
   *
   *     acc = sum over k of (a' - aZeroPoint) * (b' - bZeroPoint[n]) + c, in int32 that wraps
   *     s[n] = (alpha * aScale) * bScale[n], each step rounded to float32
   *     y = acc * s[n]
   *
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
   *
   * @example
   * const a = quantize({ data: Float32Array.of(0, 1, 2, 3), shape: [2, 2] });
   * const b = quantize(
   *   { data: Float32Array.of(1, 0, 0, 1), shape: [2, 2] },
   *   { symmetric: true, axis: 1 },
   * );
   * const y = wg.qgemm({
   *   a, aScale: a.scale, aZeroPoint: a.zeroPoint,
   *   b, bScale: b.scale, bZeroPoint: b.zeroPoint,
   * });
   * y.data; // Float32Array, about [0, 1, 2, 3]
   *
   * @param inputs the operands, with their scales and zero points
   * @param options all have defaults
   * @returns Y of shape (M, N), float32, contiguous, in a new array that the caller owns
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<Y extends Float32Array, U extends DataArray>(
    inputs: Inputs[P] & { yScale?: null | undefined; yZeroPoint?: null | undefined },
    options?: Options<QGemmOptions>[P] & { out?: Outs<Float32Array, Y, U>[P] },
  ): Arrival<Matrix<NewArrays['float32']>>[P];
  /**
   * Computes com.microsoft QGemm of quantized a and b to a quantized result. The sums `acc` are as
   * without `yScale`. Then s[n] = ((alpha * aScale) * bScale[n]) / yScale, each step rounded to
   * float32. Y is acc * s[n] rounded half to even, plus yZeroPoint, saturated.
   *
   * @param inputs the operands, with their scales and zero points, and `yScale` and `yZeroPoint`
   * @param options all have defaults
   * @returns Y of shape (M, N), contiguous, in a new array that the caller owns. Its type is that
   * of the array of `yZeroPoint`; if that is a number, the type of `a`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<Y extends QuantizedArray, U extends DataArray>(
    inputs: Inputs[P] & { yScale: Holding<Scale>[P]; yZeroPoint: Holding<ZeroPoint>[P] },
    options?: Options<QGemmOptions>[P] & { out?: Outs<QuantizedArray, Y, U>[P] },
  ): Arrival<Matrix<NewArrays['int8' | 'uint8']>>[P];
  /**
   * Computes com.microsoft QGemm of inputs whose type does not say whether there is a `yScale`.
   *
   * @param inputs the operands, with their scales and zero points
   * @param options all have defaults
   * @returns Y of shape (M, N), contiguous, in a new array that the caller owns. It is float32, or
   * of 8 bits with `yScale` and `yZeroPoint`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<
    Y extends QGemmArray<S>,
    U extends DataArray,
    S extends Holding<Scale | null | undefined>[P] = undefined,
  >(
    inputs: Inputs[P] & { yScale?: S },
    options?: Options<QGemmOptions>[P] & { out?: Outs<QGemmArray<S>, Y, U>[P] },
  ): Arrival<Matrix<NewArrays['float32' | 'int8' | 'uint8']>>[P];

  /**
   * Computes oneDNN Graph MatMul into `out`, and returns `out`. Everything else is as without
   * `out`.
   *
   * @param src (..., M, K), or (..., K, M) with `transposeA`; or a vector (K); not int8 or uint8
   * @param weights (..., K, N), or (..., N, K) with `transposeB`; or a vector (K); of the type of
   * src. Or the packed weights that `pack` made of them
   * @param bias a tensor of the type of src that broadcasts to the result in one direction. Or a
   * number, rounded to the type of src. Or nothing
   * @param options with `out`, of shape (..., M, N). It has the type of src, or float32 for a src
   * of float16 or bfloat16. It may be bias itself, but must not overlap src or weights
   * @typeParam O the type of `out`
   * @returns `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmul<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends MatMulArray<A>,
    U extends DataArray,
    O extends Operands[P] | undefined,
    D extends DType = never,
    F extends number | bigint = number,
  >(
    src: Operands<A>[P] & Not8Bit<A>,
    weights: Operands<B>[P] | Weights[P],
    bias: Operands<C>[P] | number | bigint | null | undefined,
    options: Options<MatMulOptions>[P] &
      Alpha<F, A> & { outType?: OutType<A, D>; out: O } & {
        out: Outs<MatMulArray<A>, Y, U>[P];
      },
  ): Arrival<OutOr<O, Tensor<MatMulResultArray<A, D>>>>[P];
  /**
   * Computes oneDNN Graph MatMul of float16 or bfloat16 (or float32) to float32. Everything else
   * is as without `outType`.
   *
   * @param src (..., M, K), or (..., K, M) with `transposeA`; or a vector (K)
   * @param weights (..., K, N), or (..., N, K) with `transposeB`; or a vector (K); of the type of
   * src. Or the packed weights that `pack` made of them
   * @param bias a tensor of the type of src that broadcasts to the result in one direction. Or a
   * number, rounded to the type of src. Or nothing
   * @param options with `outType: 'float32'`
   * @returns (..., M, N) of float32, contiguous, in a new array that the caller owns
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmul<
    A extends Widened,
    B extends Matching<A>,
    C extends Matching<A>,
    F extends number | bigint = number,
  >(
    src: Operands<A>[P],
    weights: Operands<B>[P] | Weights[P],
    bias: Operands<C>[P] | number | bigint | null | undefined,
    options: Options<MatMulOptions>[P] & Alpha<F, A> & { outType: 'float32'; out?: undefined },
  ): Arrival<Tensor<NewArrays['float32']>>[P];
  /**
   * Computes oneDNN Graph MatMul: dst = alpha * src * weights + bias, for stacks of matrices. The
   * last two axes are the matrix. The axes before them are batch axes, which broadcast in both
   * directions, as in NumPy. A vector is a row as src and a column as weights, and the result does
   * not have that axis. https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
   *
   * @example
   * // 2 products of (3, 4) and (4, 5). All share the weights.
   * const src = { data: new Float32Array(2 * 3 * 4).fill(1), shape: [2, 3, 4] };
   * const weights = { data: new Float32Array(4 * 5).fill(1), shape: [4, 5] };
   * const y = wg.matmul(src, weights, 0.5, { alpha: 2 });
   * y.shape; // [2, 3, 5]
   * y.data; // Float32Array [8.5, 8.5, ...]
   *
   * @param src (..., M, K), or (..., K, M) with `transposeA`; or a vector (K); not int8 or uint8
   * @param weights (..., K, N), or (..., N, K) with `transposeB`; or a vector (K); of the type of
   * src. Or the packed weights that `pack` made of them
   * @param bias a tensor of the type of src that broadcasts to the result in one direction. Or a
   * number, rounded to the type of src. Or nothing
   * @param options all have defaults
   * @returns (..., M, N) of the type of src or `outType`, contiguous, in a new array that the
   * caller owns
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmul<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends MatMulArray<A>,
    U extends DataArray,
    D extends DType = never,
    F extends number | bigint = number,
  >(
    src: Operands<A>[P] & Not8Bit<A>,
    weights: Operands<B>[P] | Weights[P],
    bias?: Operands<C>[P] | number | bigint | null,
    options?: Options<MatMulOptions>[P] &
      Alpha<F, A> & {
        outType?: OutType<A, D>;
        out?: Outs<MatMulArray<A>, Y, U>[P];
      },
  ): Arrival<Tensor<MatMulResultArray<A, D>>>[P];

  /**
   * Computes ONNX MatMulInteger of a and b, each int8 or uint8, with batch axes that broadcast as
   * in `matmul`:
   *
   *     y = sum over k of (a' - aZeroPoint[m]) * (b' - bZeroPoint[n]), in int32 that wraps
   *
   * https://onnx.ai/onnx/operators/onnx__MatMulInteger.html
   *
   * @example
   * const a = { data: Uint8Array.of(11, 7, 3, 10, 6, 2), shape: [2, 3] };
   * const b = { data: Uint8Array.of(1, 4, 2, 5, 3, 6), shape: [3, 2] };
   * const y = wg.matmulInteger(a, b, { aZeroPoint: 12 });
   * y.data; // Int32Array [-38, -83, -44, -98]
   *
   * @param a (..., M, K), or (..., K, M) with `transA`; or (K); int8 or uint8
   * @param b (..., K, N), or (..., N, K) with `transB`; or (K); int8 or uint8. Or the packed
   * weights that `pack` made of it for `'qgemm'`
   * @param options all have defaults
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), int32, in a new array that the caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmulInteger<
    Y extends Int32Array,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    A = unknown,
    B = unknown,
    ZA = undefined,
    ZB = undefined,
  >(
    a: A & Operands<QuantizedArray>[P],
    b: B & (Operands<QuantizedArray>[P] | Weights[P]),
    options?: ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B> &
      OptionsWithOperands<MatMulIntegerOptions>[P] & { out?: O } & {
        out?: Outs<Int32Array, Y, U>[P];
      },
  ): Arrival<OutOr<O, Tensor<NewArrays['int32']>>>[P];

  /**
   * Computes ONNX QLinearMatMul of quantized a and b, with batch axes that broadcast as in
   * `matmul`. The sums `acc` are those of `matmulInteger`. Then s = (aScale * bScale[n]) / yScale,
   * each step rounded to float32. Y is acc * s rounded half to even, plus yZeroPoint, saturated.
   *
   * https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html
   *
   * @example
   * const a = { data: Uint8Array.of(208, 236, 0, 238), shape: [1, 4] };
   * const b = { data: Uint8Array.of(152, 51, 60, 26), shape: [4, 1] };
   * const y = wg.qlinearMatmul({
   *   a, aScale: 0.0066, aZeroPoint: 113,
   *   b, bScale: 0.00705, bZeroPoint: 114,
   *   yScale: 0.0107, yZeroPoint: 118,
   * });
   * y.data; // Uint8Array [79]
   *
   * @param inputs the operands, with their scales and zero points
   * @param options all have defaults
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), int8 or uint8, in a new array that the caller owns; or `out`.
   * It has the type of the array of `yZeroPoint`; if that is a number or absent, the type of `a`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qlinearMatmul<
    Y extends QLinearArray<A, Z>,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    A = unknown,
    B = unknown,
    Z = undefined,
    ZA = undefined,
    ZB = undefined,
  >(
    inputs: QLinearInputs[P] & { a: A; b: B; yZeroPoint?: Z | undefined } & ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B>,
    options?: Options<QLinearMatMulOptions>[P] & { out?: O } & {
      out?: Outs<QLinearArray<A, Z>, Y, U>[P];
    },
  ): Arrival<OutOr<O, Tensor<NewArrays['int8' | 'uint8']>>>[P];

  /**
   * Computes com.microsoft DynamicQuantizeMatMul of a float32 a and a quantized b, with batch axes
   * that broadcast as in `matmul`. The call quantizes a to uint8, with one scale and one zero point
   * for all of a, as ONNX DynamicQuantizeLinear does. Then it computes `matmulIntegerToFloat`.
   *
   * com.microsoft.DynamicQuantizeMatMul in
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
   *
   * @example
   * const a = { data: Float32Array.of(0, 51, 102, 255), shape: [2, 2] };
   * const b = { data: Int8Array.of(2, 0, 0, 4), shape: [2, 2] };
   * const y = wg.dynamicQuantizeMatmul(a, b, { bScale: 0.5, bias: Float32Array.of(1, 2) });
   * y.data; // Float32Array [1, 104, 103, 512]
   *
   * @param a (..., M, K), or (..., K, M) with `transA`; or (K); float32; each element must be
   * finite
   * @param b (..., K, N), or (..., N, K) with `transB`; or (K); int8 or uint8. Or the packed
   * weights that `pack` made of it for `'qgemm'`
   * @param options `bScale` is required
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), float32, in a new array that the caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  dynamicQuantizeMatmul<
    Y extends Float32Array,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    B = unknown,
    ZB = undefined,
  >(
    a: Operands<Float32Array>[P],
    b: B & (Operands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfB<ZB, B> &
      OptionsWithOperands<DynamicQuantizeMatMulOptions>[P] & { out?: O } & {
        out?: Outs<Float32Array, Y, U>[P];
      },
  ): Arrival<OutOr<O, Tensor<NewArrays['float32']>>>[P];

  /**
   * Computes com.microsoft MatMulIntegerToFloat of quantized a and b, with batch axes that
   * broadcast as in `matmul`. The sums `acc` are those of `matmulInteger`. Y is acc * (aScale *
   * bScale[n]) + bias[n], each step rounded to float32.
   *
   * com.microsoft.MatMulIntegerToFloat in
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
   *
   * @example
   * const a = { data: Uint8Array.of(1, 2, 3, 4), shape: [2, 2] };
   * const b = { data: Int8Array.of(1, 0, 0, -1), shape: [2, 2] };
   * const y = wg.matmulIntegerToFloat(a, b, { aScale: 0.5, bScale: 0.5, aZeroPoint: 1 });
   * y.data; // Float32Array [0, -0.25, 0.5, -0.75]
   *
   * @param a (..., M, K), or (..., K, M) with `transA`; or (K); int8 or uint8
   * @param b (..., K, N), or (..., N, K) with `transB`; or (K); int8 or uint8. Or the packed
   * weights that `pack` made of it for `'qgemm'`
   * @param options `aScale` and `bScale` are required
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), float32, in a new array that the caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmulIntegerToFloat<
    Y extends Float32Array,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    A = unknown,
    B = unknown,
    ZA = undefined,
    ZB = undefined,
  >(
    a: A & Operands<QuantizedArray>[P],
    b: B & (Operands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B> &
      OptionsWithOperands<MatMulIntegerToFloatOptions<Float32Array, Scale>>[P] & {
        out?: O;
      } & { out?: Outs<Float32Array, Y, U>[P] },
  ): Arrival<OutOr<O, Tensor<NewArrays['float32']>>>[P];
  /**
   * Computes com.microsoft MatMulIntegerToFloat with float16 scales and bias to float16: in
   * float32, and rounded once. A scale that is a number is rounded to float16.
   *
   * @param a as with float32 scales
   * @param b as with float32 scales
   * @param options one of `aScale` and `bScale` must have a type, float16
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), float16, in a new array that the caller owns; or `out`. The
   * array is a Float16Array if the engine has one, else a Uint16Array
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmulIntegerToFloat<
    Y extends Uint16Array | Float16ArrayLike,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    A = unknown,
    B = unknown,
    ZA = undefined,
    ZB = undefined,
  >(
    a: A & Operands<QuantizedArray>[P],
    b: B & (Operands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B> &
      OptionsWithOperands<
        MatMulIntegerToFloatOptions<Uint16Array | Float16ArrayLike, HalfVector>
      >[P] & { out?: O } & { out?: Outs<Uint16Array | Float16ArrayLike, Y, U>[P] },
  ): Arrival<OutOr<O, Tensor<NewArrays['float16']>>>[P];

  /**
   * Computes com.microsoft MatMulNBits of a and weights of 2, 4 or 8 bits, with a scale and a zero
   * point z for each column n and each block of `blockSize` steps of k:
   *
   *     y = sum over k of a[m, k] * (code[n, k] - z) * scale, plus bias[n]
   *
   * com.microsoft.MatMulNBits in
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
   *
   * @example
   * const b = { data: new Float32Array(64 * 3).fill(0.5), shape: [64, 3] };
   * const weights = wg.pack(quantizeNBits(b), { op: 'matmulNBits' });
   * const a = { data: new Float32Array(2 * 64).fill(1), shape: [2, 64] };
   * const y = wg.matmulNBits(a, weights);
   * y.shape; // [2, 3]
   * y.data; // Float32Array [32, 32, ...]
   * weights.dispose();
   *
   * @param a (..., K), float32, float16 or bfloat16
   * @param weights B, with scales of the type of a, as `quantizeNBits` makes it. Or the packed
   * weights that `pack` made of it
   * @param options all have defaults
   * @typeParam O the type of `out`
   * @returns Y of shape (..., N) and the type of a, in a new array that the caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmulNBits<
    A extends NBitsArray,
    S extends Matching<A>,
    C extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    N extends number = 4,
    K extends number = number,
    L extends number = 0,
  >(
    a: Operands<A>[P],
    weights: (NBits<S>[P] & Bits<N, K>) | Weights[P],
    options?: OptionsWithOperands<MatMulNBitsOptions<C>>[P] &
      Level<L> & { out?: O } & {
        out?: Outs<A, Y, U>[P];
      },
  ): Arrival<OutOr<O, Tensor<ResultArray<A>>>>[P];

  /**
   * Packs weights of `matmulNBits` once, for any number of calls. They keep their bits.
   *
   * @param weights codes, scales and zero points
   * @param options `op` is required
   * @returns the packed weights, of shape [k, n]. The caller must `dispose()` of them
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  pack<A extends NBitsArray, N extends number = 4, K extends number = number>(
    weights: NBits<A>[P] & Bits<N, K>,
    options: PackNBitsOptions & EveryCall[P],
  ): Arrival<Weights[P]>[P];
  /**
   * Packs b once, for any number of calls: they take the result as `b` or `weights`. It is a copy
   * in the memory of the instance until its `dispose()`. Elements keep their type unless `as` names
   * another: float32 can be packed as bfloat16 or float16, which halves the bytes to read. Calls
   * take weights of these two types with float32 operands, too. They widen the weights exactly, and
   * otherwise compute as with float32.
   *
   * @example
   * const b = { data: new Float32Array(512 * 512).fill(1), shape: [512, 512] };
   * const weights = wg.pack(b, { op: 'gemm' });
   * const x = { data: new Float32Array(8 * 512).fill(1), shape: [8, 512] };
   * const y = wg.gemm(x, weights); // y.data: Float32Array [512, 512, ...]
   * weights.dispose();
   *
   * @param b (..., K, N) of any type of gemm and matmul; for qgemm and the integer products int8 or
   * uint8, for qgemm without batch axes. With `trans` the last two axes are (N, K)
   * @param options `op` is required
   * @returns the packed weights. The caller must `dispose()` of them
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  pack<A extends DataArray, O extends PackOptions['op'], D extends DType>(
    b: Operands<A>[P] & Packable<O, D, A>,
    options: PackOptions & EveryCall[P] & { op: O; as?: D | undefined },
  ): Arrival<Weights[P]>[P];

  /**
   * Makes packed weights from the bytes that `serialize()` returned, in any instance, build or
   * engine, or natively. The weights have their own copy of the bytes. While the call runs, the
   * memory must have room for another copy.
   *
   * @param bytes all bytes of the weights: an array, or a buffer, which may be shared
   * @param options only in a worker; all have defaults
   * @returns the packed weights. The caller must `dispose()` of them
   * @throws PackMismatchError for bytes that are cut short, were changed, or are not packed
   * weights; ArgumentError, DisposedError, OutOfMemoryError
   */
  deserialize(bytes: Uint8Array | ArrayBufferLike, ...options: Last[P]): Arrival<Weights[P]>[P];

  /**
   * Returns the plan for a call of `gemm`, without running it.
   *
   * @param op the name of the call
   * @param a as in `gemm`, like all that follow
   * @param b as in `gemm`
   * @param c as in `gemm`
   * @param options as in `gemm`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'gemm',
    a: Operands[P],
    b: Operands[P] | Weights[P],
    c?: Operands[P] | number | bigint | null,
    options?: Options<GemmOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];
  /**
   * Returns the plan for a call of `qgemm`, without running it.
   *
   * @param op the name of the call
   * @param inputs as in `qgemm`
   * @param options as in `qgemm`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'qgemm',
    inputs: Inputs[P],
    options?: Options<QGemmOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];
  /**
   * Returns the plan for a call of `matmul`, without running it.
   *
   * @param op the name of the call
   * @param src as in `matmul`, like all that follow
   * @param weights as in `matmul`
   * @param bias as in `matmul`
   * @param options as in `matmul`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'matmul',
    src: Operands[P],
    weights: Operands[P] | Weights[P],
    bias?: Operands[P] | number | bigint | null,
    options?: Options<MatMulOptions>[P] & {
      outType?: DType | undefined;
      out?: Operands[P] | undefined;
    },
  ): Arrival<Explanation>[P];

  /**
   * Returns the plan for a call of an integer product, without running it.
   *
   * @param op the name of the call
   * @param a as in the call, like all that follow
   * @param b as in the call
   * @param options as in the call
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'matmulInteger' | 'dynamicQuantizeMatmul' | 'matmulIntegerToFloat',
    a: Operands[P],
    b: Operands[P] | Weights[P],
    options?: OptionsWithOperands<Partial<MatMulIntegerToFloatOptions>>[P] & {
      out?: Operands[P] | undefined;
    },
  ): Arrival<Explanation>[P];
  /**
   * Returns the plan for a call of `qlinearMatmul`, without running it.
   *
   * @param op the name of the call
   * @param inputs as in `qlinearMatmul`
   * @param options as in `qlinearMatmul`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'qlinearMatmul',
    inputs: QLinearInputs[P],
    options?: Options<QLinearMatMulOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];

  /**
   * Returns the plan for a call of `matmulNBits`, without running it.
   *
   * @param op the name of the call
   * @param a as in the call, like all that follow
   * @param weights as in the call
   * @param options as in the call
   * @returns the plan
   * @throws what the call throws
   */
  explain<A extends NBitsArray>(
    op: 'matmulNBits',
    a: Operands[P],
    weights: NBits<A>[P] | Weights[P],
    options?: OptionsWithOperands<MatMulNBitsOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];

  /**
   * Makes a tensor of zeros in the memory of the instance, so that calls on it copy nothing. It
   * holds its memory until its `dispose()`.
   *
   * @param dtype the type of the elements
   * @param shape the size of each axis, in elements: up to 64 axes
   * @param options only in a worker; all have defaults
   * @typeParam D the type of the elements
   * @returns the tensor. The caller must `dispose()` of it
   * @throws ShapeError, DTypeError, DisposedError, OutOfMemoryError
   */
  alloc<D extends DType>(
    dtype: D,
    shape: readonly number[],
    ...options: Last[P]
  ): Arrival<Allocated<D>[P]>[P];

  /**
   * Returns how much memory the instance uses, in bytes.
   *
   * @param options only in a worker; all have defaults
   * @returns the numbers of bytes
   * @throws DisposedError
   */
  memory(...options: Last[P]): Arrival<MemoryUse>[P];
}
