/**
 * Conversions between float32 and the integers of QGemm: they make its A, B and C, and read its
 * result. No instance is needed.
 */
import { classOf, lengthOf } from '../base/arrays.js';
import { ArgumentError, describe, DTypeError, ShapeError } from '../base/errors.js';
import { unpolluted } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type {
  ArrayOf,
  NewArrays,
  QuantizedArray,
  QuantizedDType,
  Tensor,
  TensorInput,
} from '../base/tensor.js';
import { HeapTensor, type TensorLike, type TensorView } from '../instance/heap.js';
import {
  checkOut,
  checkValues,
  filled,
  inOrder,
  readAxis,
  readEach,
  readFactorArgument,
  readTensorArgument,
  settle,
} from './quantize-arguments.js';
import {
  allocate,
  eachRun,
  fromRange,
  greatest,
  large,
  limits,
  positive,
} from './quantize-numbers.js';

/**
 * Options of {@link quantize}.
 *
 * @typeParam D the type of the result
 * @typeParam S the type of `symmetric`
 * @typeParam X the type of `axis`
 * @category Quantization
 */
export interface QuantizeOptions<
  D extends QuantizedDType = QuantizedDType,
  S extends boolean = boolean,
  X extends number | undefined = number | undefined,
> {
  /** The type of the result. Default `'uint8'`; with `symmetric` `'int8'`. */
  dtype?: D | undefined;
  /**
   * True: the zero point is 0 for int8 and 128 for uint8, and values differ from it by at most 127.
   * Default false.
   */
  symmetric?: S | undefined;
  /**
   * An axis of x. Each index of it has a scale and a zero point. A negative axis counts from the
   * back. Default: one scale and one zero point for the whole tensor.
   */
  axis?: X | undefined;
  /**
   * A known scale, above 0: a number, or with `axis` an array with one per index. It is rounded to
   * float32. Default: the call computes it from the data.
   */
  scale?: number | Float32Array | undefined;
  /**
   * The zero point of a known `scale`: a number, or with `axis` an array of the type, with one per
   * index. Default: 0, or with `symmetric` the zero point that it demands.
   */
  zeroPoint?: number | ArrayOf<D> | undefined;
  /**
   * A contiguous tensor with the shape of x and the type of the result. It must not overlap x. The
   * call fills it, and the result has its data. Default: none, so that the result has a new array.
   */
  out?: TensorLike<ArrayOf<D>> | TensorView<ArrayOf<D>> | undefined;
}

/**
 * A tensor of integers, with one scale and one zero point. Each integer stands for the number
 * (value - zeroPoint) * scale.
 *
 * @typeParam A the class of its array
 * @category Quantization
 */
export interface QuantizedPerTensor<A extends QuantizedArray> extends Tensor<A> {
  /** The scale: a float32 above 0. */
  readonly scale: number;
  /** The zero point: an integer in the range of the type. */
  readonly zeroPoint: number;
}

/**
 * A tensor of integers, with a scale and a zero point per index of an axis. Each integer stands for
 * the number (value - zeroPoint) * scale.
 *
 * @typeParam A the class of its array
 * @category Quantization
 */
export interface QuantizedPerAxis<A extends QuantizedArray> extends Tensor<A> {
  /** The scales: one per index of `axis`. */
  readonly scale: Float32Array;
  /** The zero points: one per index of `axis`. */
  readonly zeroPoint: A;
  /** The axis, counted from the front. */
  readonly axis: number;
}

/**
 * The result of {@link quantize}, with an axis or without.
 *
 * @typeParam D the type of the integers
 * @typeParam X the type of `axis`
 * @category Quantization
 */
export type Quantized<
  D extends QuantizedDType = QuantizedDType,
  X extends number | undefined = undefined,
> = X extends number ? QuantizedPerAxis<ArrayOf<D>> : QuantizedPerTensor<ArrayOf<D>>;

/**
 * The argument of {@link dequantize}: a result of {@link quantize} or {@link quantizeBias}, or a
 * tensor like these.
 *
 * @category Quantization
 */
export interface QuantizedInput extends Omit<TensorInput, 'data'> {
  /** The integers. */
  readonly data: QuantizedArray | Int32Array | HeapTensor<QuantizedArray | Int32Array>;
  /** The scale: a number, or with `axis` an array with one per index. */
  readonly scale: number | Float32Array;
  /**
   * The zero point: a number, or with `axis` an array of the type of the data. It must be 0 with
   * int32. Default 0.
   */
  readonly zeroPoint?: number | QuantizedArray | undefined;
  /** Scale and zero point have one number per index of this axis. Default: one for the tensor. */
  readonly axis?: number | undefined;
}

/**
 * Options of {@link quantizeBias}.
 *
 * @typeParam S the type of `bScale`
 * @category Quantization
 */
export interface QuantizeBiasOptions<S extends number | Float32Array = number | Float32Array> {
  /** The scale of A, finite and above 0: a number, or an array with one number. */
  aScale: number | Float32Array;
  /** The scale of B, finite and above 0: a number, or an array with one per column. */
  bScale: S;
  /** The alpha of the call of `qgemm`, finite and not 0. Default 1. */
  alpha?: number | undefined;
  /** The factor of the bias, finite and not 0. QGemm has no beta. Default 1. */
  beta?: number | undefined;
}

/**
 * The result of {@link quantizeBias}: C of `qgemm`. Its zero point is 0.
 *
 * @typeParam S the type of `scale`
 * @category Quantization
 */
export interface QuantizedBias<
  S extends number | Float32Array = number | Float32Array,
> extends Tensor<Int32Array> {
  /** The scale: alpha / beta * aScale * bScale. A number, or an array with one per column. */
  readonly scale: S;
  /** The last axis, if there is a scale per column. Otherwise absent. */
  readonly axis?: number;
}

/**
 * Quantizes float32 to 8 bits, as ONNX QuantizeLinear-19 does.
 *
 * y = saturate(round(x / scale) + zeroPoint). The quotient is rounded to float32, and then half to
 * even.
 * https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
 *
 * Without `scale`, scale and zero point come from min and max, which are the least and the greatest
 * of all elements and 0. They are computed in float32, as ONNX DynamicQuantizeLinear-11 does: scale
 * = (max - min) / 255, and zeroPoint = saturate(round(qmin - min / scale)). In that formula, qmin
 * is 0 for uint8 and -128 for int8. With `symmetric`, scale = max(max, -min) / 127. If all data is
 * 0, the scale is 1. No scale is less than the least float32 above 0.
 * https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html
 *
 * @example
 * const x = { data: Float32Array.of(-1, 0, 0.5, 1), shape: [2, 2] };
 * const a = quantize(x); // uint8, one scale: a.data, a.scale, a.zeroPoint
 * const b = quantize(x, { symmetric: true, axis: 1 }); // int8, a scale per column
 *
 * @param x float32 of any shape: finite, or with a `scale` any number except NaN; infinity
 * saturates. The call only reads it
 * @param options all have defaults
 * @typeParam S the type of `symmetric`
 * @typeParam D the type of the result
 * @typeParam X the type of `axis`
 * @returns a contiguous tensor in the shape of x, in a new array or the array of `out`. Scale and
 * zero point are numbers. With `axis`, they are a Float32Array and an array of the type
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError; nothing is
 * written then
 *
 * @category Quantization
 */
export function quantize<
  S extends boolean = false,
  D extends QuantizedDType = S extends true ? 'int8' : 'uint8',
  X extends number | undefined = undefined,
>(
  x: TensorLike<Float32Array> | TensorView<Float32Array>,
  options?: QuantizeOptions<D, S, X> | null,
): Quantized<D, X>;
export function quantize(x: unknown, options?: unknown): unknown {
  const op = 'quantize';
  const { symmetric, dtype, axis: along, scale, zeroPoint, out } = readQuantize(op, options);
  const tensor = readTensorArgument(op, 'x', x, ['float32']);
  const { shape } = tensor;
  const axis = readAxis(op, along, 'x', shape);
  const target = out === undefined ? null : readTensorArgument(op, 'out', out, [dtype]);
  settle(op, 'x', tensor);
  if (target) {
    settle(op, 'out', target);
    checkOut(op, target, tensor);
  }
  const data = inOrder(op, 'x', tensor);
  checkValues(op, 'x', data, shape, scale === undefined);
  const { least, most, centre } = limits(dtype, symmetric);
  const [low, high, absent] = symmetric ? [centre, centre, centre] : [least, most, 0];
  const [scales, zeros] =
    scale === undefined
      ? fromRange(op, data, shape, axis, dtype, symmetric)
      : [
          readEach(op, 'scale', scale, 'float32', axis, ...positive),
          readEach(
            op,
            'zeroPoint',
            zeroPoint === undefined ? absent : zeroPoint,
            dtype,
            axis,
            low,
            high,
          ),
        ];

  const y = target ? target.data : allocate(op, 'x', dtype, data.length);
  eachRun(shape, axis, (group, from, to) => {
    const scale = scales[group] as number;
    const zero = zeros[group] as number;
    for (let i = from; i < to; ++i) {
      const value = Math.fround((data[i] as number) / scale) + large - large + zero;
      y[i] = Math.max(least, Math.min(value, most));
    }
  });
  const parameters = axis
    ? { scale: scales, zeroPoint: zeros, axis: axis.index }
    : { scale: scales[0], zeroPoint: zeros[0] };
  if (!target) return { data: y, shape, dtype, ...parameters };
  if (!HeapTensor.is(target.source)) return { data: filled(target), shape, dtype, ...parameters };
  return {
    // A view of the heap becomes invalid when the memory grows. Then this makes another.
    get data() {
      return filled(target);
    },
    shape,
    dtype,
    ...parameters,
  };
}

/** Reads the options of `quantize`. */
function readQuantize(op: string, options: unknown) {
  const names = ['dtype', 'symmetric', 'axis', 'scale', 'zeroPoint', 'out'];
  const given = readOptions(op, options, names);
  const { symmetric = false, axis, scale, zeroPoint, out } = given;
  const { dtype = symmetric === true ? 'int8' : 'uint8' } = given;
  if (typeof symmetric !== 'boolean') {
    throw new ArgumentError(
      op,
      'symmetric',
      `${op}: symmetric is ${describe(symmetric)}; it must be true or false`,
    );
  }
  if (dtype !== 'int8' && dtype !== 'uint8') {
    throw new DTypeError(
      op,
      'dtype',
      `${op}: dtype is ${describe(dtype)}; it must be 'int8' or 'uint8'`,
    );
  }
  if (zeroPoint !== undefined && scale === undefined) {
    throw new ArgumentError(
      op,
      'zeroPoint',
      `${op}: zeroPoint needs a scale; give both, scale alone, or neither`,
    );
  }
  return { symmetric, dtype, axis, scale, zeroPoint, out } as const;
}

/**
 * Converts 8 bits, or the int32 of a bias, to float32, as ONNX DequantizeLinear does.
 *
 * y = (value - zeroPoint) * scale. Each step is rounded to float32.
 * https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html
 *
 * @example
 * const q = quantize({ data: Float32Array.of(-1, 0, 1), shape: [3] });
 * const y = dequantize(q); // y.data: Float32Array, about [-1, 0, 1]
 *
 * @param q int8, uint8 or int32 of any shape, with its scale, such as {@link quantize} and {@link
 * quantizeBias} return. The call only reads it
 * @returns float32 in the shape of q, contiguous, in a new array
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Quantization
 */
export function dequantize(q: QuantizedInput): Tensor<NewArrays['float32']>;
export function dequantize(q: unknown): unknown {
  const op = 'dequantize';
  const tensor = readTensorArgument(op, 'q', q, ['int8', 'uint8', 'int32']);
  const { shape, dtype } = tensor;
  const {
    scale,
    zeroPoint = 0,
    axis: along,
  } = unpolluted(q as object, ['scale', 'zeroPoint', 'axis']);
  const axis = readAxis(op, along, 'q', shape);
  const { least, most } = limits(dtype, false);
  const scales = readEach(op, 'scale', scale, 'float32', axis, -greatest, greatest);
  const zeros = readEach(op, 'zeroPoint', zeroPoint, dtype, axis, least, most);
  settle(op, 'q', tensor);
  const values = inOrder(op, 'q', tensor);
  const data = allocate(op, 'q', 'float32', values.length);
  eachRun(shape, axis, (group, from, to) => {
    const scale = scales[group] as number;
    const zero = zeros[group] as number;
    for (let i = from; i < to; ++i) data[i] = Math.fround((values[i] as number) - zero) * scale;
  });
  return { data, shape, dtype: 'float32' };
}

/**
 * Quantizes the bias of a Gemm to C of com.microsoft QGemm.
 *
 * This C "must be quantized with zero_point = 0 and scale = alpha / beta * a_scale * b_scale". It
 * is bias / scale, computed in float64, rounded half to even and saturated to int32. QGemm computes
 * alpha * a_scale * b_scale * (acc + C). With this C that is alpha * (a_scale * b_scale * acc) +
 * beta * bias.
 * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
 *
 * @example
 * const bias = { data: Float32Array.of(0.5, -0.5), shape: [2] };
 * const c = quantizeBias(bias, { aScale: 0.01, bScale: 0.02 }); // c.data: Int32Array [2500, -2500]
 *
 * @param bias float32, finite, of shape [], [1], [N], [1, 1], [1, N], [M, 1] or [M, N]. The call
 * only reads it
 * @param options the scales and the factors
 * @typeParam S the type of `bScale`
 * @returns int32 in the shape of the bias, contiguous, in a new array. If `bScale` has several
 * elements, the last axis is N: a single column is repeated along it
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Quantization
 */
export function quantizeBias<S extends number | Float32Array>(
  bias: TensorLike<Float32Array> | TensorView<Float32Array>,
  options: QuantizeBiasOptions<S>,
): QuantizedBias<S extends number ? number : Float32Array>;
export function quantizeBias(bias: unknown, options: unknown): unknown {
  const op = 'quantizeBias';
  const given = readOptions(op, options, ['aScale', 'bScale', 'alpha', 'beta']);
  const { aScale, bScale, alpha, beta } = given;
  const tensor = readTensorArgument(op, 'bias', bias, ['float32']);
  const { shape } = tensor;
  if (shape.length > 2)
    throw new ShapeError(
      op,
      'bias',
      `${op}: bias has shape [${shape.join(', ')}]; it must have at most 2 axes`,
    );
  const size = classOf(bScale) === 'Float32Array' ? lengthOf(bScale as Float32Array) : 1;
  const columns = size === 1 ? null : { index: Math.max(shape.length, 1) - 1, size };
  const factor = readFactorArgument(op, 'alpha', alpha) / readFactorArgument(op, 'beta', beta);
  const [a] = readEach(op, 'aScale', aScale, 'float32', null, ...positive) as unknown as [number];
  const scales = Float64Array.from(
    readEach(op, 'bScale', bScale, 'float32', columns, ...positive),
    (b) => factor * a * b,
  );
  const bad = scales.find(
    (scale) => !(Math.abs(Math.fround(scale)) <= greatest && Math.fround(scale) !== 0),
  );
  if (bad !== undefined) {
    const found = `with aScale alpha / beta * aScale * bScale is ${bad}`;
    throw new ArgumentError(
      op,
      'aScale',
      `${op}: ${found}; it must be finite and not 0 in float32`,
    );
  }
  const last = shape.at(-1) ?? 1;
  if (columns && last !== 1 && last !== columns.size) {
    const found = `bias has shape [${shape.join(', ')}] and bScale has ${columns.size} elements`;
    throw new ShapeError(
      op,
      'bias',
      `${op}: ${found}; the last axis must be as long, or 1, or absent`,
    );
  }
  settle(op, 'bias', tensor);
  const values = inOrder(op, 'bias', tensor);
  checkValues(op, 'bias', values, shape, true);

  const repeats = columns && last === 1 ? columns.size : 1;
  const data = allocate(op, 'bias', 'int32', values.length * repeats);
  for (let i = 0; i < data.length; ++i) {
    const value =
      (values[Math.floor(i / repeats)] as number) / (scales[i % scales.length] as number);
    data[i] = Math.max(-(2 ** 31), Math.min(value + large - large, 2 ** 31 - 1));
  }
  const scale = columns ? Float32Array.from(scales) : Math.fround(scales[0] as number);
  if (!columns) return { data, shape, dtype: 'int32', scale };
  return {
    data,
    shape: [...shape.slice(0, -1), columns.size],
    dtype: 'int32',
    scale,
    axis: columns.index,
  };
}
