/**
 * The calls of an instance, as users see them. `wgemm` and `wgemm/worker` have the same ones: they
 * differ in what their handles are, and in how a result arrives.
 */
import type { GemmOptions } from './gemm.js';
import type { HeapTensor, PackedWeights } from './heap.js';
import type { Explanation, Info } from './index.js';
import type { MatMulOptions } from './matmul.js';
import type { PackOptions } from './pack.js';
import type { QGemmInputs, QGemmOptions, QuantizedArray, Scale, ZeroPoint } from './qgemm.js';
import type {
  ArrayOf,
  DataArray,
  DType,
  DTypeOf,
  Float16ArrayLike,
  Matching,
  Matrix,
  NewArrays,
  ResultArray,
  Tensor,
  TensorInput,
  TensorView,
} from './tensor.js';
import type { WorkerTensor, WorkerWeights } from './worker-handles.js';

/** Where an instance computes: in the thread of its caller, or in a worker. */
export type Place = 'here' | 'worker';

// Tables by place, since a type parameter of TypeScript cannot be a generic type. TypeScript looks
// `P` up in a table before it infers the other parameters.

/** How a result arrives. */
interface Arrival<T> {
  here: T;
  worker: Promise<T>;
}
interface Tensors<A extends DataArray> {
  here: HeapTensor<A>;
  worker: WorkerTensor<A>;
}
/** What `alloc` makes. The array of a tensor in a worker is what its `read()` returns. */
interface Allocated<D extends DType> {
  here: HeapTensor<ArrayOf<D>>;
  worker: WorkerTensor<NewArrays[D]>;
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

/** A tensor in an array, or in the memory of the instance. */
type Like<P extends Place, A extends DataArray = DataArray> = Described<P, A> | Tensors<A>[P];

/** A TensorInput or a TensorView. In one type, so that TypeScript infers `A` from either. */
interface Described<P extends Place, A extends DataArray> extends Omit<TensorInput<A>, 'data'> {
  readonly data: A | Tensors<A>[P];
}

/** What a call returns: `O`, the option `out`, or if that is undefined `T`. */
type OutOr<O, T> = O extends undefined ? T : O;

/** Refuses a tensor of 8 bits, which only `qgemm` takes. */
type Not8Bit<A extends DataArray> = EachNot8Bit[DTypeOf<A>];
type EachNot8Bit = {
  [T in DType]: T extends 'int8' | 'uint8' ? 'int8 and uint8 are for qgemm' : unknown;
};

/**
 * `out` of a call whose result has an array like `A`: a tensor of `Y`. `U` is a type that may be
 * wider, such as the `DataArray` of options in a variable. The call checks such an `out` when it
 * runs. It also checks views of handles of `wgemm`, which `GemmOptions` names in a worker, too.
 */
type Out<P extends Place, A extends DataArray, Y extends DataArray, U extends DataArray> =
  Like<P, Y> | ((Like<P, U> | TensorView<U>) & EachOut<DTypeOf<A>>[DTypeOf<U>]) | undefined;
type EachOut<D> = { [T in DType]: T extends D ? unknown : 'out must have the type of the result' };

/** Arrays for which `matmul` can make a result of float32. */
type Widened = Float32Array | Uint16Array | Float16ArrayLike;
/** Arrays that can hold a result of `matmul`. */
type MatMulArray<A extends DataArray> = Matching<A> | (A extends Widened ? Float32Array : never);
/** `outType`, which is checked like `out`. */
type OutType<A extends DataArray, D> =
  DTypeOf<MatMulArray<A>> | ([D & DTypeOf<MatMulArray<A>>] extends [never] ? never : D) | undefined;
/** The array of a result of `matmul` if `outType` may be one of `D`. */
type MatMulResult<A extends DataArray, D> = Tensor<
  ResultArray<A> | ('float32' extends D ? ResultArray<MatMulArray<A>> : never)
>;

/** Arrays that hold a result of `qgemm`, by `yScale`. */
type QGemmArray<S> = S extends null | undefined ? Float32Array : QuantizedArray;
type QGemmResult<A extends Float32Array | QuantizedArray> = Matrix<NewArrays[DTypeOf<A>]>;

/** Refuses a tensor that `pack` does not take for the operation `O`, or cannot pack as `D`. */
type Packable<O, D, A extends DataArray> = EachPackable<O, D>[DTypeOf<A>];
type EachPackable<O, D> = {
  [T in DType]: [O] extends [T extends 'int8' | 'uint8' ? 'gemm' | 'matmul' : 'qgemm']
    ? 'int8 and uint8 are for qgemm, all others for gemm and matmul'
    : [D & (T | (T extends 'float32' ? 'float16' | 'bfloat16' : never))] extends [never]
      ? 'as is the type of b; for float32 also float16 or bfloat16'
      : unknown;
};

/** A tensor in an array, or in the memory of the instance in the worker. */
export type WorkerTensorLike<A extends DataArray = DataArray> = Like<'worker', A>;

/** The type of an argument of `wgemm`, in which handles of `wgemm/worker` replace its own. */
export type InWorker<T> =
  T extends HeapTensor<infer A>
    ? WorkerTensor<A>
    : T extends TensorView<infer A>
      ? TensorView<A, WorkerTensor<A>>
      : T extends PackedWeights
        ? WorkerWeights
        : T;

/** What `qgemm` takes in `wgemm/worker`. */
export type WorkerQGemmInputs = { [K in keyof QGemmInputs]: InWorker<QGemmInputs[K]> };

/** An AbortSignal, for a TypeScript that does not know it. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** Options that every call in `wgemm/worker` takes. */
export interface CallOptions {
  /**
   * True moves the buffers under the arguments' arrays to the worker, which detaches the arrays.
   * They move when the worker accepts the call: do not touch them before the promise settles. If
   * the call is refused, or aborted before it begins, they stay as they were. If an accepted call
   * fails, for example because the engine grants less memory than expected, they are lost.
   *
   * The call returns `out` as a new tensor, with a new array. Memory that cannot move, such as
   * shared memory or a WebAssembly.Memory, is copied. To check the call, `pack` first packs zeros.
   * `deserialize` must read the bytes to check them: it copies them, and detaches the array if it
   * succeeds. Default false.
   */
  transfer?: boolean | undefined;
  /**
   * When it aborts, the call is rejected with its reason. A waiting call then never begins. A
   * running call completes, but its result is dropped and `out` in an array is not written.
   */
  signal?: Signal | undefined;
}

/** `T`, the options of a call in `wgemm`, with those of every call in a worker. */
export type WorkerOptions<T> = Omit<T, 'out'> & CallOptions;

/**
 * The calls of an instance. In `wgemm` they return their results. In `wgemm/worker` they return
 * promises, which are rejected with what the same call in `wgemm` throws.
 *
 * Each operand has a type parameter for its array. `A` alone determines the type of the result.
 */
export interface Api<P extends Place> {
  /** The build in use, its threads and micro-kernels, and why the instance has these. */
  readonly info: Info;

  /**
   * ONNX Gemm: Y = alpha * A' * B' + beta * C. A' is A or its transpose, B' is B or its transpose.
   * C is broadcast to (M, N) in one direction. https://onnx.ai/onnx/operators/onnx__Gemm.html
   *
   * @param a (M, K), or (K, M) with `transA`
   * @param b (K, N), or (N, K) with `transB`; or the packed weights that `pack` made of it
   * @param c a tensor, a number (a bigint with int64 and uint64), or nothing
   * @returns Y of shape (M, N): `out`, or a tensor with an array of its own
   * @throws ShapeError, DTypeError, OpsetError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  gemm<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
    O extends Like<P> | undefined,
  >(
    a: Like<P, A> & Not8Bit<A>,
    b: Like<P, B> | Weights[P],
    c: Like<P, C> | number | bigint | null | undefined,
    options: Options<GemmOptions>[P] & { out: O } & { out: Out<P, A, Y, U> },
  ): Arrival<OutOr<O, Matrix<ResultArray<A>>>>[P];
  gemm<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
  >(
    a: Like<P, A> & Not8Bit<A>,
    b: Like<P, B> | Weights[P],
    c?: Like<P, C> | number | bigint | null,
    options?: Options<GemmOptions>[P] & { out?: Out<P, A, Y, U> },
  ): Arrival<Matrix<ResultArray<A>>>[P];

  /**
   * com.microsoft QGemm of quantized a and b, int8 or uint8 each:
   *
   *     acc = sum over k of (a' - aZeroPoint) * (b' - bZeroPoint[n]) + c, in int32 that wraps
   *     s[n] = ((alpha * aScale) * bScale[n]) / yScale, each step rounded to float32
   *
   * Without yScale and yZeroPoint the result is float32, acc * s[n], and s[n] is not divided. With
   * them it is acc * s[n] rounded half to even, plus yZeroPoint, saturated.
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
   *
   * @returns Y of shape (M, N): `out`, or a tensor with an array of its own
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<
    Y extends QGemmArray<S>,
    U extends DataArray,
    O extends Like<P> | undefined,
    S extends Holding<Scale | null | undefined>[P] = undefined,
  >(
    inputs: Inputs[P] & { yScale?: S },
    options: Options<QGemmOptions>[P] & { out: O } & { out: Out<P, QGemmArray<S>, Y, U> },
  ): Arrival<OutOr<O, QGemmResult<QGemmArray<S>>>>[P];
  qgemm<Y extends Float32Array, U extends DataArray>(
    inputs: Inputs[P] & { yScale?: null | undefined; yZeroPoint?: null | undefined },
    options?: Options<QGemmOptions>[P] & { out?: Out<P, Float32Array, Y, U> },
  ): Arrival<QGemmResult<Float32Array>>[P];
  qgemm<Y extends QuantizedArray, U extends DataArray>(
    inputs: Inputs[P] & { yScale: Holding<Scale>[P]; yZeroPoint: Holding<ZeroPoint>[P] },
    options?: Options<QGemmOptions>[P] & { out?: Out<P, QuantizedArray, Y, U> },
  ): Arrival<QGemmResult<QuantizedArray>>[P];
  qgemm<
    Y extends QGemmArray<S>,
    U extends DataArray,
    S extends Holding<Scale | null | undefined>[P] = undefined,
  >(
    inputs: Inputs[P] & { yScale?: S },
    options?: Options<QGemmOptions>[P] & { out?: Out<P, QGemmArray<S>, Y, U> },
  ): Arrival<QGemmResult<Float32Array | QuantizedArray>>[P];

  /**
   * oneDNN Graph MatMul: dst = alpha * src * weights + bias, for stacks of matrices. The last two
   * axes are the matrix. The axes before them are broadcast in both directions, as in NumPy. A
   * vector is a row as src and a column as weights, and the result does not have that axis.
   * https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
   *
   * @param src (..., M, K), or (..., K, M) with `transposeA`; or (K)
   * @param weights (..., K, N), or (..., N, K) with `transposeB`; or (K); or the packed weights
   * that `pack` made of them
   * @param bias a tensor that broadcasts to the result in one direction, a number (rounded to the
   * type of src), or nothing
   * @returns (..., M, N): `out`, or a tensor with an array of its own
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmul<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends MatMulArray<A>,
    U extends DataArray,
    O extends Like<P> | undefined,
    D extends DType = never,
  >(
    src: Like<P, A> & Not8Bit<A>,
    weights: Like<P, B> | Weights[P],
    bias: Like<P, C> | number | bigint | null | undefined,
    options: Options<MatMulOptions>[P] & { outType?: OutType<A, D>; out: O } & {
      out: Out<P, MatMulArray<A>, Y, U>;
    },
  ): Arrival<OutOr<O, MatMulResult<A, D>>>[P];
  matmul<A extends Widened, B extends Matching<A>, C extends Matching<A>>(
    src: Like<P, A>,
    weights: Like<P, B> | Weights[P],
    bias: Like<P, C> | number | bigint | null | undefined,
    options: Options<MatMulOptions>[P] & { outType: 'float32'; out?: undefined },
  ): Arrival<Tensor<NewArrays['float32']>>[P];
  matmul<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends MatMulArray<A>,
    U extends DataArray,
    D extends DType = never,
  >(
    src: Like<P, A> & Not8Bit<A>,
    weights: Like<P, B> | Weights[P],
    bias?: Like<P, C> | number | bigint | null,
    options?: Options<MatMulOptions>[P] & {
      outType?: OutType<A, D>;
      out?: Out<P, MatMulArray<A>, Y, U>;
    },
  ): Arrival<MatMulResult<A, D>>[P];

  /**
   * Packs b once, for any number of calls: they take the result as `b` or `weights`. It is a copy
   * in the memory of the instance until its `dispose()`. Elements keep their type unless `as` names
   * another: float32 can be packed as bfloat16 or float16, which halves the bytes to read. Calls
   * take weights of these two types with float32 operands, too. They widen the weights exactly, and
   * otherwise compute as with float32.
   *
   * @param b (..., K, N) of any type of gemm and matmul; for qgemm (K, N) of int8 or uint8. With
   * `trans` the last two axes are (N, K)
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  pack<A extends DataArray, O extends PackOptions['op'], D extends DType>(
    b: Like<P, A> & Packable<O, D, A>,
    options: PackOptions & EveryCall[P] & { op: O; as?: D | undefined },
  ): Arrival<Weights[P]>[P];

  /**
   * Packed weights from the bytes that `serialize()` returned, in any instance, build or engine, or
   * natively. While the call runs, the memory must have room for a copy of the bytes, too.
   *
   * @throws PackMismatchError for bytes that are cut short, were changed, or are no packed weights;
   * ArgumentError, DisposedError, OutOfMemoryError
   */
  deserialize(bytes: Uint8Array | ArrayBufferLike, ...options: Last[P]): Arrival<Weights[P]>[P];

  /**
   * The plan for a call, without running it. Takes the name of the call, and then its arguments.
   *
   * @throws what the call throws
   */
  explain(
    op: 'gemm',
    a: Like<P>,
    b: Like<P> | Weights[P],
    c?: Like<P> | number | bigint | null,
    options?: Options<GemmOptions>[P] & { out?: Like<P> | undefined },
  ): Arrival<Explanation>[P];
  explain(
    op: 'qgemm',
    inputs: Inputs[P],
    options?: Options<QGemmOptions>[P] & { out?: Like<P> | undefined },
  ): Arrival<Explanation>[P];
  explain(
    op: 'matmul',
    src: Like<P>,
    weights: Like<P> | Weights[P],
    bias?: Like<P> | number | bigint | null,
    options?: Options<MatMulOptions>[P] & {
      outType?: DType | undefined;
      out?: Like<P> | undefined;
    },
  ): Arrival<Explanation>[P];

  /**
   * A tensor of zeros in the memory of the instance, so that calls on it copy nothing. It holds its
   * memory until its `dispose()`.
   *
   * @throws ShapeError, DTypeError, DisposedError, OutOfMemoryError
   */
  alloc<D extends DType>(
    dtype: D,
    shape: readonly number[],
    ...options: Last[P]
  ): Arrival<Allocated<D>[P]>[P];

  /**
   * Bytes that tensors and packed weights hold (`inUse`), and bytes that the wasm memory has taken
   * from the system (`committed`), which only grows.
   */
  memory(...options: Last[P]): Arrival<{ inUse: number; committed: number }>[P];
}
