/** Layers of instances in workers. */
import type { InWorker, WorkerTensorLike } from '../api/types.js';
import {
  type CallOptions,
  numberOf,
  type Signal,
  type WorkerWeights,
} from '../api/worker-handles.js';
import { disposable } from '../base/dispose.js';
import { DisposedError } from '../base/errors.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray, NewArrays, QuantizedArray, ResultArray, Tensor } from '../base/tensor.js';
import type { TensorLike } from '../instance/heap.js';
import { readLinear } from '../linear/arguments.js';
import type {
  EitherLinearOptions,
  FloatLinearOptions,
  Int8LinearOptions,
  LinearInfo,
  LinearInput,
  LinearOutput,
  Quantization,
} from '../linear/create-linear.js';
import { readBytes } from '../ops/pack.js';
import type { WorkerGemm } from './gemm.js';
import { type Link, makeInWorker, type Request } from './link.js';
import type { Method } from './message.js';
import { running } from './requests.js';

/**
 * Options of the calls that make or run a layer.
 *
 * @category Layers
 */
export interface LinearCallOptions {
  /** When it aborts, the call is rejected with its reason. Default: none. */
  signal?: Signal | undefined;
}

/**
 * A layer in a worker. {@link createLinear} and {@link deserializeLinear} make it. It owns its
 * memory until its `dispose()`, the `dispose()` of its instance, or garbage collection.
 *
 * @typeParam X the classes of arrays that it takes
 * @typeParam Y the class of arrays that it returns
 * @category Layers
 */
export interface WorkerLinear<
  X extends DataArray = Float32Array,
  Y extends DataArray = Float32Array,
> extends LinearInfo {
  /**
   * Computes activation(x * weights + bias) into `out`, and returns `out`. If `out` is in an array,
   * the array is written when the promise settles.
   *
   * @param x float32 of shape (..., K); or quantized by `input`, with its type
   * @param options `out`: a tensor of shape (..., N) and the type of the result. It must not
   * overlap x. With int8 it must be contiguous
   * @typeParam O the type of `out`
   * @returns a promise of `out`
   * @throws by rejection: ShapeError, DTypeError, ArgumentError (also for NaN in x of an int8
   * layer), DisposedError, OutOfMemoryError; nothing is written then
   */
  run<O extends WorkerTensorLike<Y>>(
    x: WorkerTensorLike<X>,
    options: LinearCallOptions & { out: O },
  ): Promise<O>;
  /**
   * Computes activation(x * weights + bias). An int8 layer quantizes x if it is float32. Then it
   * computes the same bits as `qgemm` with C from `quantizeBias`.
   *
   * @param x float32 of shape (..., K); or quantized by `input`, with its type. The call only reads
   * it
   * @param options all have defaults
   * @returns a promise of (..., N) of float32, or quantized by `output`; contiguous, in a new array
   * that the caller owns
   * @throws by rejection: ShapeError, DTypeError, ArgumentError (also for NaN in x of an int8
   * layer), DisposedError, OutOfMemoryError
   */
  run(x: WorkerTensorLike<X>, options?: LinearCallOptions | null): Promise<Tensor<ResultArray<Y>>>;
  /**
   * Returns the whole layer as bytes, in a new array that the caller owns. `deserializeLinear`
   * makes a layer from them, here or in `wgemm/linear`.
   *
   * @param options all have defaults
   * @returns a promise of the bytes
   * @throws by rejection: DisposedError, OutOfMemoryError
   */
  serialize(options?: CallOptions): Promise<NewArrays['uint8']>;
}

/**
 * Floating-point weights of a layer in a worker: a tensor in an array, or a tensor in the memory of
 * the instance in the worker.
 *
 * @category Layers
 */
export type WorkerLinearWeights =
  InWorker<TensorLike<Float32Array | Uint16Array>> | FloatLinearOptions['weights'];

/**
 * Options of a layer in a worker whose weights are floating point.
 *
 * @category Layers
 */
export type WorkerFloatLinearOptions = FloatLinearOptions<
  WorkerLinearWeights,
  WorkerTensorLike<Float32Array>
> &
  LinearCallOptions;

/**
 * Options of a layer in a worker whose weights are int8 or uint8.
 *
 * @typeParam I the type of `input`
 * @typeParam O the type of `output`
 * @category Layers
 */
export type WorkerInt8LinearOptions<
  I extends Quantization | undefined = Quantization | undefined,
  O extends Quantization | undefined = Quantization | undefined,
> = Int8LinearOptions<I, O, WorkerTensorLike<Float32Array>> & LinearCallOptions;

/**
 * Makes a layer whose weights are floating point. It has copies of weights and bias.
 *
 * @example
 * const weights = { data: new Float32Array(4 * 2).fill(0.5), shape: [4, 2] };
 * const bias = { data: Float32Array.of(1, -9), shape: [2] };
 * const layer = await createLinear(wg, { weights, bias, activation: 'relu' });
 * const y = await layer.run({ data: Float32Array.of(1, 2, 3, 4), shape: [1, 4] });
 * y.data; // Float32Array [6, 0]
 *
 * @param wg the instance that has the layer in its memory
 * @param options `weights` is required
 * @returns a promise of the layer. The caller must `dispose()` of it
 * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Layers
 */
export function createLinear(
  wg: WorkerGemm,
  options: WorkerFloatLinearOptions,
): Promise<WorkerLinear>;

/**
 * Makes a layer whose weights are int8 or uint8. It has copies of weights and bias.
 *
 * @param wg the instance that has the layer in its memory
 * @param options `weights` is required; with float32 weights also `as: 'int8'`
 * @typeParam I the type of `input`
 * @typeParam O the type of `output`
 * @returns a promise of the layer. The caller must `dispose()` of it
 * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function createLinear<
  I extends Quantization | undefined = undefined,
  O extends Quantization | undefined = undefined,
>(
  wg: WorkerGemm,
  options: WorkerInt8LinearOptions<I, O>,
): Promise<WorkerLinear<LinearInput<I>, LinearOutput<O>>>;

/**
 * Makes a layer by options whose type does not say whether its weights are floating point.
 *
 * @param wg the instance that has the layer in its memory
 * @param options `weights` is required
 * @returns a promise of the layer. The caller must `dispose()` of it
 * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function createLinear(
  wg: WorkerGemm,
  options:
    | WorkerFloatLinearOptions
    | WorkerInt8LinearOptions
    | (EitherLinearOptions<WorkerTensorLike<Float32Array>> & LinearCallOptions),
): Promise<WorkerLinear<Float32Array, Float32Array | QuantizedArray>>;

/** Makes a layer, which computes activation(x * weights + bias). */
export async function createLinear(wg: unknown, options: unknown): Promise<never> {
  return await make(wg, 'createLinear', options, (link) => {
    const { operands, ...values } = readLinear(link, options);
    return { values, operands };
  });
}

/**
 * Makes a layer from the bytes that `serialize()` returned. The layer has its own copy. While the
 * call runs, the memory must have room for another copy of the bytes.
 *
 * @param wg the instance that has the layer in its memory
 * @param bytes all bytes of the layer: an array, or a buffer, which may be shared
 * @param options all have defaults
 * @typeParam X the classes of arrays that the layer takes
 * @typeParam Y the class of arrays that the layer returns
 * @returns a promise of the layer. The caller must `dispose()` of it
 * @throws by rejection: PackMismatchError for bytes that are cut short, were changed, or are not a
 * layer; ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Layers
 */
export function deserializeLinear<
  X extends DataArray = Float32Array,
  Y extends DataArray = Float32Array,
>(
  wg: WorkerGemm,
  bytes: Uint8Array | ArrayBufferLike,
  options?: LinearCallOptions,
): Promise<WorkerLinear<X, Y>>;
export async function deserializeLinear(
  wg: unknown,
  bytes: unknown,
  options?: unknown,
): Promise<never> {
  const op = 'deserializeLinear';
  return await make(wg, op, options, (link) => {
    readOptions(op, options, ['signal']);
    return { values: undefined, operands: [readBytes(link, bytes, op)] };
  });
}

function make<M extends Method>(
  wg: unknown,
  op: M,
  options: unknown,
  read: (link: Link) => Omit<Request<M>, 'result'>,
): Promise<never> {
  return makeInWorker(wg, op, 'wgemm/linear', options, read, layerOf);
}

/** Layers keep their instance from being collected. */
const owners = new WeakMap<object, object>();

function layerOf(link: Link, handle: WorkerWeights, wg: object): object {
  const [inputs, outputs] = handle.shape;
  const number = () => {
    if (handle.disposed && !link.ended)
      throw new DisposedError('run', 'layer', 'run: the layer is disposed');
    return numberOf(handle, link, 'run', 'layer');
  };
  const layer = {
    inputs,
    outputs,
    dtype: handle.dtype,
    byteLength: handle.byteLength,
    get disposed() {
      return handle.disposed;
    },
    async run(x: unknown, options?: unknown) {
      const result = await link.call('run', options, () => running(link, number, x, options));
      owners.set(layer, wg); // keeps layer and instance alive until now
      return result;
    },
    serialize: async (options?: CallOptions) => await handle.serialize(options),
    dispose: () => handle.dispose(),
  };
  owners.set(layer, wg);
  disposable(layer);
  return Object.freeze(layer);
}
