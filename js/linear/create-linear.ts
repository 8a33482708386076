/** `createLinear` and `deserializeLinear`, and the layer that they return. */
import type { Gemm } from '../api/create-gemm.js';
import { ArgumentError, describe } from '../base/errors.js';
import type {
  DataArray,
  DType,
  Float16ArrayLike,
  NewArrays,
  QuantizedArray,
  ResultArray,
  Tensor,
} from '../base/tensor.js';
import type { Activation } from '../call/options.js';
import type { QuantizedPerAxis, QuantizedPerTensor } from '../convert/quantize.js';
import { type Core, cores } from '../instance/core.js';
import type { TensorLike } from '../instance/heap.js';
import { readBytes } from '../ops/pack.js';
import { readLinear } from './arguments.js';
import { readLayer } from './deserialize.js';
import { makeLayer } from './layer.js';

/**
 * How numbers are quantized: each integer stands for (value - zeroPoint) * scale. A result of
 * `quantize` without an axis has these properties.
 *
 * @category Layers
 */
export interface Quantization {
  /** The scale: above 0, rounded to float32. */
  readonly scale: number;
  /** The zero point: an integer in the range of `dtype`. Default 0. */
  readonly zeroPoint?: number | undefined;
  /** The type of the integers: `'int8'` or `'uint8'`. Default `'uint8'`. */
  readonly dtype?: DType | undefined;
}

/**
 * Options of every layer.
 *
 * @typeParam T what the bias may be
 * @category Layers
 */
export interface LinearOptions<T> {
  /** True: the weights have shape (N, K). Any number except 0 is true. Default false. */
  trans?: boolean | number | undefined;
  /** The bias: float32, of shape [N] or [1, N], and finite in an int8 layer. Default: none. */
  bias?: T | null | undefined;
  /** Bounds of the result, as in `matmul` and `qgemm`. Default: none. */
  activation?: Activation | undefined;
}

/**
 * Options of a layer whose weights are floating point.
 *
 * @typeParam W what the weights may be
 * @typeParam B what the bias may be
 * @category Layers
 */
export interface FloatLinearOptions<
  W = TensorLike<Float32Array | Float16ArrayLike | Uint16Array>,
  B = TensorLike<Float32Array>,
> extends LinearOptions<B> {
  /** The weights: float32, float16 or bfloat16, of shape (K, N), or (N, K) with `trans`. */
  weights: W;
  /**
   * The type that weights are packed as: their own, or for float32 weights any of these, rounded to
   * nearest even. Default: their own.
   */
  as?: 'float32' | 'float16' | 'bfloat16' | undefined;
  /** Only for int8 layers. */
  input?: undefined;
  /** Only for int8 layers. */
  output?: undefined;
}

/**
 * Options of a layer whose weights are int8 or uint8.
 *
 * @typeParam I the type of `input`
 * @typeParam O the type of `output`
 * @typeParam B what the bias and float32 weights may be
 * @category Layers
 */
export type Int8LinearOptions<
  I extends Quantization | undefined = Quantization | undefined,
  O extends Quantization | undefined = Quantization | undefined,
  B = TensorLike<Float32Array>,
> = LinearOptions<B> &
  (Int8Weights | Int8FloatWeights<B>) &
  (
    | Int8Quantization<I, O>
    | {
        /** Absent: each call quantizes x. */
        input?: undefined;
        /** `output` needs an `input`. */
        output?: undefined;
      }
  );

/**
 * Weights that are quantized, of an int8 layer.
 *
 * @category Layers
 */
export interface Int8Weights {
  /**
   * The weights, of shape (K, N), or (N, K) with `trans`: a result of `quantize`, with one scale or
   * one per column.
   */
  weights: QuantizedPerTensor<QuantizedArray> | QuantizedPerAxis<QuantizedArray>;
  /** The type that weights are packed as. Default: their own. */
  as?: 'int8' | undefined;
}

/**
 * Weights that an int8 layer quantizes.
 *
 * @typeParam B what float32 weights may be
 * @category Layers
 */
export interface Int8FloatWeights<B> {
  /**
   * The weights, of shape (K, N), or (N, K) with `trans`: float32, which the call quantizes by
   * `quantize(weights, { symmetric: true, axis })` with a scale per column.
   */
  weights: B;
  /** The type that weights are packed as. */
  as: 'int8';
}

/**
 * How x and the result of an int8 layer are quantized.
 *
 * @typeParam I the type of `input`
 * @typeParam O the type of `output`
 * @category Layers
 */
export interface Int8Quantization<I, O> {
  /**
   * How x is quantized. Default: each call quantizes x as `quantize(x)`, to uint8, by the range of
   * all of x. The scale is larger if the quantized bias would otherwise not fit int32.
   */
  input: I;
  /**
   * How the result is quantized. A layer with this as its `input` takes the result as x. `output`
   * needs an `input`. Default: the result is float32.
   */
  output?: O | undefined;
}

/**
 * Options of a layer of float32 weights, if only a variable says whether it is an int8 layer.
 *
 * @typeParam B what weights and bias may be
 * @category Layers
 */
export interface EitherLinearOptions<B = TensorLike<Float32Array>> extends LinearOptions<B> {
  /** The weights: float32, of shape (K, N), or (N, K) with `trans`. */
  weights: B;
  /** The type that weights are packed as. */
  as: 'float32' | 'float16' | 'bfloat16' | 'int8' | undefined;
  /** Only if `as` is `'int8'`. */
  input?: undefined;
  /** Only if `as` is `'int8'`. */
  output?: undefined;
}

/**
 * The arrays that an int8 layer takes, by the type of the option `input`.
 *
 * @typeParam I the type of `input`
 * @category Layers
 */
export type LinearInput<I> = Float32Array | (I extends Quantization ? QuantizedArray : never);

/**
 * The array of the results of an int8 layer, by the type of the option `output`.
 *
 * @typeParam O the type of `output`
 * @category Layers
 */
export type LinearOutput<O> = O extends Quantization ? QuantizedArray : Float32Array;

/**
 * A layer. {@link createLinear} and {@link deserializeLinear} make it. It owns its memory until its
 * `dispose()`, the `dispose()` of its instance, or garbage collection.
 *
 * @typeParam X the classes of arrays that it takes
 * @typeParam Y the class of arrays that it returns
 * @category Layers
 */
export interface Linear<
  X extends DataArray = Float32Array,
  Y extends DataArray = Float32Array,
> extends LinearInfo {
  /**
   * Computes activation(x * weights + bias) into `out`, and returns `out`. Everything else is as
   * without `out`. If x and `out` are in the heap, the call copies nothing.
   *
   * @param x float32 of shape (..., K); or quantized by `input`, with its type
   * @param options `out`: a tensor of shape (..., N) and the type of the result. It must not
   * overlap x. With int8 it must be contiguous
   * @typeParam O the type of `out`
   * @returns `out`
   * @throws ShapeError, DTypeError, ArgumentError (also for NaN in x of an int8 layer),
   * DisposedError, OutOfMemoryError; nothing is written then
   */
  run<O extends TensorLike<Y>>(
    x: TensorLike<X>,
    options: {
      /** The tensor that receives the result. */
      out: O;
    },
  ): O;
  /**
   * Computes activation(x * weights + bias). An int8 layer quantizes x if it is float32. Then it
   * computes the same bits as `qgemm` with C from `quantizeBias`.
   *
   * @param x float32 of shape (..., K); or quantized by `input`, with its type. The call only reads
   * it
   * @param options may have `out`, if their type does not say whether they have it
   * @returns (..., N) of float32, or quantized by `output`; contiguous, in a new array that the
   * caller owns
   * @throws ShapeError, DTypeError, ArgumentError (also for NaN in x of an int8 layer),
   * DisposedError, OutOfMemoryError; nothing is written then
   */
  run(
    x: TensorLike<X>,
    options?: {
      /** The tensor that receives the result. */
      out?: TensorLike<Y> | undefined;
    } | null,
  ): Tensor<ResultArray<Y>>;
  /**
   * Returns the whole layer as bytes, in a new array that the caller owns. `deserializeLinear`
   * makes a layer from them, in any instance, build or engine. Equal layers have the same bytes.
   *
   * @throws DisposedError, OutOfMemoryError
   */
  serialize(): NewArrays['uint8'];
}

/**
 * The properties that layers here and in a worker share.
 *
 * @category Layers
 */
export interface LinearInfo {
  /** K: the size of the last axis of x. */
  readonly inputs: number;
  /** N: the size of the last axis of the result. */
  readonly outputs: number;
  /** The type of the packed weights. */
  readonly dtype: DType;
  /** Bytes of memory that weights, bias, scales and zero points take. */
  readonly byteLength: number;
  /** Whether its own `dispose()`, or the end of its instance, has ended it. */
  readonly disposed: boolean;
  /** Frees the memory. Does nothing the second time. */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

/**
 * Makes a layer whose weights are floating point. It has copies of weights and bias, so the caller
 * may change or dispose of these afterwards.
 *
 * @example
 * const weights = { data: new Float32Array(4 * 2).fill(0.5), shape: [4, 2] };
 * const bias = { data: Float32Array.of(1, -9), shape: [2] };
 * const layer = createLinear(wg, { weights, bias, as: 'bfloat16', activation: 'relu' });
 * const y = layer.run({ data: Float32Array.of(1, 2, 3, 4), shape: [1, 4] });
 * y.data; // Float32Array [6, 0]
 *
 * @param wg the instance that has the layer in its memory
 * @param options `weights` is required
 * @returns the layer. The caller must `dispose()` of it
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Layers
 */
export function createLinear(wg: Gemm, options: FloatLinearOptions): Linear;

/**
 * Makes a layer whose weights are int8 or uint8. It has copies of weights and bias, so the caller
 * may change or dispose of these afterwards.
 *
 * @param wg the instance that has the layer in its memory
 * @param options `weights` is required; with float32 weights also `as: 'int8'`
 * @typeParam I the type of `input`
 * @typeParam O the type of `output`
 * @returns the layer. The caller must `dispose()` of it
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function createLinear<
  I extends Quantization | undefined = undefined,
  O extends Quantization | undefined = undefined,
>(wg: Gemm, options: Int8LinearOptions<I, O>): Linear<LinearInput<I>, LinearOutput<O>>;

/**
 * Makes a layer by options whose type does not say whether its weights are floating point.
 *
 * @param wg the instance that has the layer in its memory
 * @param options `weights` is required
 * @returns the layer. The caller must `dispose()` of it
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function createLinear(
  wg: Gemm,
  options: FloatLinearOptions | Int8LinearOptions | EitherLinearOptions,
): Linear<Float32Array, Float32Array | QuantizedArray>;

/** Makes a layer, which computes activation(x * weights + bias). */
export function createLinear(wg: unknown, options: unknown): never {
  const core = coreOf('createLinear', wg);
  return makeLayer(core, readLinear(core, options)) as never;
}

/**
 * Makes a layer from the bytes that `serialize()` returned. The layer has its own copy. While the
 * call runs, the memory must have room for another copy of the bytes.
 *
 * @param wg the instance that has the layer in its memory
 * @param bytes all bytes of the layer: an array, or a buffer, which may be shared
 * @typeParam X the classes of arrays that the layer takes
 * @typeParam Y the class of arrays that the layer returns
 * @returns the layer. The caller must `dispose()` of it
 * @throws PackMismatchError for bytes that are cut short, were changed, or are not a layer;
 * ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Layers
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
  const advice = `for an instance of wgemm/worker, import ${op} from wgemm/worker`;
  const rule = `it must be an instance of wgemm; ${advice}`;
  throw new ArgumentError(op, 'wg', `${op}: wg is ${describe(wg)}; ${rule}`);
}
