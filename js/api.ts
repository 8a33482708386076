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
/** Options of an operation. */
interface Options<T> {
  here: T;
  worker: WorkerOptions<T>;
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
  transfer?: boolean;
  /**
   * When it aborts, the call is rejected with its reason. A waiting call then never begins. A
   * running call completes, but its result is dropped and `out` in an array is not written.
   */
  signal?: Signal;
}

/** `T`, the options of a call in `wgemm`, with those of every call in a worker. */
export type WorkerOptions<T> = Omit<T, 'out'> & CallOptions;

/**
 * The calls of an instance. In `wgemm` they return their results. In `wgemm/worker` they return
 * promises, which are rejected with what the same call in `wgemm` throws.
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
  gemm<A extends DataArray, O extends Like<P, A>>(
    a: Like<P, A>,
    b: Like<P, A> | Weights[P],
    c: Like<P, A> | number | bigint | null | undefined,
    // A follows from `out`, too.
    options: Options<GemmOptions<A>>[P] & { out?: Like<P, A> } & { out: O },
  ): Arrival<O>[P];
  gemm<A extends DataArray>(
    a: Like<P, A>,
    b: Like<P, A> | Weights[P],
    c?: Like<P, A> | number | bigint | null,
    options?: Options<GemmOptions<A>>[P],
  ): Arrival<Tensor<ResultArray<A>>>[P];

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
  qgemm<A extends Float32Array | QuantizedArray, O extends Like<P, A>>(
    inputs: Inputs[P],
    options: Options<QGemmOptions<A>>[P] & { out: O },
  ): Arrival<O>[P];
  qgemm(
    inputs: Inputs[P] & { yScale?: null; yZeroPoint?: null },
    options?: Options<QGemmOptions>[P],
  ): Arrival<Tensor<Float32Array>>[P];
  qgemm(
    inputs: Inputs[P] & { yScale: Holding<Scale>[P]; yZeroPoint: Holding<ZeroPoint>[P] },
    options?: Options<QGemmOptions>[P],
  ): Arrival<Tensor<QuantizedArray>>[P];
  qgemm(
    inputs: Inputs[P],
    options?: Options<QGemmOptions>[P],
  ): Arrival<Tensor<Float32Array | QuantizedArray>>[P];

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
  matmul<A extends DataArray, O extends Like<P>>(
    src: Like<P, A>,
    weights: Like<P, A> | Weights[P],
    bias: Like<P, A> | number | bigint | null | undefined,
    options: Options<MatMulOptions>[P] & { out: O },
  ): Arrival<O>[P];
  matmul<A extends DataArray>(
    src: Like<P, A>,
    weights: Like<P, A> | Weights[P],
    bias: Like<P, A> | number | bigint | null | undefined,
    options: Options<MatMulOptions<A>>[P] & { outType: 'float32' },
  ): Arrival<Tensor<Float32Array>>[P];
  matmul<A extends DataArray>(
    src: Like<P, A>,
    weights: Like<P, A> | Weights[P],
    bias?: Like<P, A> | number | bigint | null,
    options?: Options<MatMulOptions<A>>[P],
  ): Arrival<Tensor<ResultArray<A>>>[P];

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
  pack(b: Like<P, QuantizedArray>, options: PackOptions & EveryCall[P]): Arrival<Weights[P]>[P];
  pack(
    b: Like<P>,
    options: PackOptions & EveryCall[P] & { op: 'gemm' | 'matmul' },
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
    options?: Options<GemmOptions>[P] & { out?: Like<P> },
  ): Arrival<Explanation>[P];
  explain(
    op: 'qgemm',
    inputs: Inputs[P],
    options?: Options<QGemmOptions>[P] & { out?: Like<P> },
  ): Arrival<Explanation>[P];
  explain(
    op: 'matmul',
    src: Like<P>,
    weights: Like<P> | Weights[P],
    bias?: Like<P> | number | bigint | null,
    options?: Options<MatMulOptions>[P] & { out?: Like<P> },
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
  ): Arrival<Tensors<ArrayOf<D>>[P]>[P];

  /**
   * Bytes that tensors and packed weights hold (`inUse`), and bytes that the wasm memory has taken
   * from the system (`committed`), which only grows.
   */
  memory(...options: Last[P]): Arrival<{ inUse: number; committed: number }>[P];
}
