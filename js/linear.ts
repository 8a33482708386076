/**
 * Layers compute y = activation(x * weights + bias). Weights, bias, scales and zero points stay in
 * the memory of an instance. This is an entry of its own, so that a page without layers does not
 * load it.
 *
 * @packageDocumentation
 */
import type { Core } from './core.js';
import { ArgumentError, type Gemm } from './index.js';
import { readLinear } from './linear-arguments.js';
import { readLayer } from './linear-bytes.js';
import { makeLayer } from './linear-layer.js';
import type { Activation } from './options.js';
import type { QuantizedPerAxis, QuantizedPerTensor } from './quantize.js';
import type { QuantizedArray } from './qgemm.js';
import { cores, describe, isReadable, readBytes } from './shared.js';
import type {
  DataArray,
  DType,
  Float16ArrayLike,
  ResultArray,
  Tensor,
  TensorLike,
} from './tensor.js';

/**
 * How numbers are quantized: each stands for (value - zeroPoint) * scale. A result of `quantize`
 * without an axis is one.
 */
export interface Quantization {
  /** Above 0; rounded to float32. */
  readonly scale: number;
  /** Default 0. */
  readonly zeroPoint?: number | undefined;
  /** `'int8'` or `'uint8'`. Default `'uint8'`. */
  readonly dtype?: DType | undefined;
}

interface LayerOptions<T> {
  /** The weights have shape (N, K). Any number except 0 is true. Default false. */
  trans?: boolean | number | undefined;
  /** float32, finite with int8, of shape [N] or [1, N]. Default: none. */
  bias?: T | null | undefined;
  /** Bounds of the result, as in `matmul` and `qgemm`. Default: none. */
  activation?: Activation | undefined;
}

/** Options of a layer whose weights are floating point. `W`: what its tensors may be. */
export interface FloatLinearOptions<
  W = TensorLike<Float32Array | Float16ArrayLike | Uint16Array>,
  B = TensorLike<Float32Array>,
> extends LayerOptions<B> {
  /** (K, N), or (N, K) with `trans`; float32, float16 or bfloat16. */
  weights: W;
  /**
   * The type as which weights are packed: their own, or for float32 weights any, rounded to nearest
   * even. Default: their own.
   */
  as?: 'float32' | 'float16' | 'bfloat16' | undefined;
  input?: undefined;
  output?: undefined;
}

/** Options of a layer whose weights are int8 or uint8. */
export interface Int8LinearOptions<
  I extends Quantization | undefined = Quantization | undefined,
  O extends Quantization | undefined = Quantization | undefined,
  B = TensorLike<Float32Array>,
> extends LayerOptions<B> {
  /**
   * A result of `quantize`, with one scale or one per column, of shape (K, N), or (N, K) with
   * `trans`. Or float32, which the call quantizes by `quantize(weights, { symmetric: true, axis })`
   * with a scale per column.
   */
  weights: B | QuantizedPerTensor<QuantizedArray> | QuantizedPerAxis<QuantizedArray>;
  /** Must be `'int8'` for float32 weights. */
  as?: 'int8' | undefined;
  /**
   * How x is quantized. Default: each call quantizes x as `quantize(x)`, to uint8, by the range of
   * all of x. The scale is larger if the quantized bias would otherwise not fit int32.
   */
  input?: I | undefined;
  /**
   * How the result is quantized. A layer with this as its `input` takes the result as x. `output`
   * needs an `input`. Default: the result is float32.
   */
  output?: O | undefined;
}

/** The arrays that an int8 layer takes, and that of its results. */
export type LinearInput<I> = Float32Array | (I extends Quantization ? QuantizedArray : never);
export type LinearOutput<O> = O extends Quantization ? QuantizedArray : Float32Array;

/**
 * A layer, made by {@link createLinear}. It owns its memory until its `dispose()`, the `dispose()`
 * of its instance, or garbage collection.
 */
export interface Linear<
  X extends DataArray = Float32Array,
  Y extends DataArray = Float32Array,
> extends LinearInfo {
  /**
   * Computes activation(x * weights + bias). An int8 layer quantizes x if it is float32. Then it
   * computes the same bits as `qgemm` with C from `quantizeBias`. If x and `out` are in the heap,
   * the call copies nothing.
   *
   * @param x float32 of shape (..., K); or quantized by `input`, with its type
   * @param options `out` receives the result and is returned. It must not overlap x. With int8 it
   * must be contiguous.
   * @returns (..., N): `out`, or a tensor with an array of its own; float32, or quantized by
   * `output`
   * @throws ShapeError, DTypeError, ArgumentError (also for NaN in x of an int8 layer),
   * DisposedError, OutOfMemoryError; nothing is written then
   */
  run<O extends TensorLike<Y>>(x: TensorLike<X>, options: { out: O }): O;
  run(
    x: TensorLike<X>,
    options?: { out?: TensorLike<Y> | undefined } | null,
  ): Tensor<ResultArray<Y>>;
  /**
   * Returns the whole layer as bytes, in a new array. `deserializeLinear` makes a layer from them,
   * in any instance, build or engine. Equal layers have the same bytes.
   * @throws DisposedError, OutOfMemoryError
   */
  serialize(): ReturnType<Uint8Array['slice']>;
}

/** What layers here and in a worker have. */
export interface LinearInfo {
  /** K: the size of the last axis of x. */
  readonly inputs: number;
  /** N: the size of the last axis of the result. */
  readonly outputs: number;
  /** The type of the packed weights. */
  readonly dtype: DType;
  /** Bytes of memory that the weights, bias, scales and zero points take. */
  readonly byteLength: number;
  /** Whether its own `dispose()`, or the end of its instance, has ended it. */
  readonly disposed: boolean;
  /** Frees the memory. Does nothing the second time. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/**
 * Makes a layer. It has copies of the weights and of the bias, so the caller may change or dispose
 * of these afterwards.
 *
 * @example
 * const layer = createLinear(wg, { weights, bias, as: 'int8', activation: 'relu' });
 * const y = layer.run({ data: x, shape: [rows, layer.inputs] });
 *
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function createLinear(wg: Gemm, options: FloatLinearOptions): Linear;
export function createLinear<
  I extends Quantization | undefined = undefined,
  O extends Quantization | undefined = undefined,
>(wg: Gemm, options: Int8LinearOptions<I, O>): Linear<LinearInput<I>, LinearOutput<O>>;
export function createLinear(
  wg: Gemm,
  options: FloatLinearOptions | Int8LinearOptions,
): Linear<Float32Array, Float32Array | QuantizedArray>;
export function createLinear(wg: unknown, options: unknown): never {
  const core = coreOf('createLinear', wg);
  return makeLayer(core, readLinear(core, options)) as never;
}

/**
 * Makes a layer from the bytes that `serialize()` returned. The layer has its own copy. While the
 * call runs, the memory must have room for another copy of the bytes.
 *
 * @throws PackMismatchError for bytes that are cut short, were changed, or are no layer;
 * ArgumentError, DisposedError, OutOfMemoryError
 */
export function deserializeLinear<
  X extends DataArray = Float32Array,
  Y extends DataArray = Float32Array,
>(wg: Gemm, bytes: Uint8Array | ArrayBufferLike): Linear<X, Y>;
export function deserializeLinear(wg: unknown, bytes: unknown): unknown {
  const op = 'deserializeLinear';
  const core = coreOf(op, wg);
  return readLayer(core, readBytes(core, bytes, op));
}

function coreOf(op: string, wg: unknown): Core {
  const core: Core | undefined = cores.get(wg as object);
  if (core) return core;
  const isPromise = isReadable(wg) && typeof (wg as { then?: unknown }).then === 'function';
  const found = isPromise ? 'a promise, which must be awaited' : describe(wg);
  const rule = 'it must be an instance of wgemm; for one in a worker import from wgemm/worker';
  throw new ArgumentError(op, 'wg', `${op}: wg is ${found}; ${rule}`);
}
