/**
 * Conversions between float32 and the integers of QGemm: they make its A, B and C, and read its
 * result. No instance is needed.
 */
import { ArgumentError, describe, DTypeError, ShapeError } from './errors.js';
import { HeapTensor } from './heap.js';
import { readOptions } from './options.js';
import { unpolluted } from './properties.js';
import type { QuantizedArray } from './qgemm.js';
import {
  checkOut,
  checkValues,
  filled,
  inOrder,
  readAxis,
  readEach,
  readFactor,
  readTensor,
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
import {
  type ArrayOf,
  classOf,
  lengthOf,
  type NewArrays,
  type Tensor,
  type TensorInput,
  type TensorLike,
  type TensorView,
} from './tensor.js';

/** The types of A and B of QGemm. */
export type QuantizedDType = 'int8' | 'uint8';

export interface QuantizeOptions<
  D extends QuantizedDType = QuantizedDType,
  S extends boolean = boolean,
  X extends number | undefined = number | undefined,
> {
  /** Default `'uint8'`, with `symmetric` `'int8'`. */
  dtype?: D | undefined;
  /**
   * True: the zero point is 0 for int8 and 128 for uint8, and values differ from it by at most 127.
   * Default false.
   */
  symmetric?: S | undefined;
  /**
   * Each index of this axis has a scale and a zero point. A negative axis counts from the back.
   * Default: one scale and one zero point for the whole tensor.
   */
  axis?: X | undefined;
  /**
   * A known scale: a number, or with `axis` an array; rounded to float32. Default: computed from
   * the data.
   */
  scale?: number | Float32Array | undefined;
  /**
   * The zero point of a known `scale`: a number, or with `axis` an array of the type. Default: 0,
   * or with `symmetric` the zero point that it demands.
   */
  zeroPoint?: number | ArrayOf<D> | undefined;
  /**
   * A contiguous tensor with the shape of x and the type of the result. It must not overlap x. The
   * call fills it, and the result has its data.
   */
  out?: TensorLike<ArrayOf<D>> | TensorView<ArrayOf<D>> | undefined;
}

/** Integers. Each stands for the number (value - zeroPoint) * scale. */
export interface QuantizedPerTensor<A extends QuantizedArray> extends Tensor<A> {
  /** A float32. */
  readonly scale: number;
  readonly zeroPoint: number;
}

/** The same, with a scale and a zero point per index of `axis`, which counts from the front. */
export interface QuantizedPerAxis<A extends QuantizedArray> extends Tensor<A> {
  readonly scale: Float32Array;
  readonly zeroPoint: A;
  readonly axis: number;
}

/** The result of {@link quantize}, with an axis or without. */
export type Quantized<
  D extends QuantizedDType = QuantizedDType,
  X extends number | undefined = undefined,
> = X extends number ? QuantizedPerAxis<ArrayOf<D>> : QuantizedPerTensor<ArrayOf<D>>;

/** The argument of {@link dequantize}: a result of the other two functions, or a similar tensor. */
export interface QuantizedInput extends Omit<TensorInput, 'data'> {
  readonly data: QuantizedArray | Int32Array | HeapTensor<QuantizedArray | Int32Array>;
  /** A number, or with `axis` an array. */
  readonly scale: number | Float32Array;
  /** A number, or with `axis` an array of the type of the data. 0 with int32. Default 0. */
  readonly zeroPoint?: number | QuantizedArray | undefined;
  /** Scale and zero point have one number per index of this axis. Default: one for all. */
  readonly axis?: number | undefined;
}

export interface QuantizeBiasOptions<S extends number | Float32Array = number | Float32Array> {
  /** Scale of A: a number, or an array with one number. */
  aScale: number | Float32Array;
  /** Scale of B: a number, or an array with one per column. */
  bScale: S;
  /** The alpha of QGemm. Default 1. */
  alpha?: number | undefined;
  /** The factor of the bias. QGemm has no beta. Default 1. */
  beta?: number | undefined;
}

/** The result of {@link quantizeBias}. If there is a scale per column, `axis` is the last axis. */
export interface QuantizedBias<
  S extends number | Float32Array = number | Float32Array,
> extends Tensor<Int32Array> {
  readonly scale: S;
  readonly axis?: number;
}

/**
 * Quantizes float32 to 8 bits, as ONNX QuantizeLinear-19:
 * y = saturate(round(x / scale) + zeroPoint). The quotient is rounded to float32, and then half to
 * even.
 * https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
 *
 * Without `scale`, scale and zero point come from min and max: the least and the greatest element,
 * or 0 if that is less or greater. They are computed in float32, as in ONNX
 * DynamicQuantizeLinear-11: scale = (max - min) / 255, zeroPoint = saturate(round(qmin - min /
 * scale)), in which qmin is 0 for uint8 and -128 for int8. With `symmetric`, scale = max(max, -min)
 * / 127. If all data is 0, the scale is 1. No scale is less than the least float32 above 0.
 * https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html
 *
 * @example
 * const a = quantize({ data: activations, shape: [m, k] });
 * const b = quantize({ data: weights, shape: [k, n] }, { symmetric: true, axis: 1 });
 * wg.qgemm({
 *   a, aScale: a.scale, aZeroPoint: a.zeroPoint,
 *   b, bScale: b.scale, bZeroPoint: b.zeroPoint,
 * });
 *
 * @param x float32 of any shape: finite, or with a `scale` any number except NaN; infinity
 * saturates
 * @returns a tensor in the shape of x. Scale and zero point are numbers, or with `axis` a
 * Float32Array and an array of the type
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError; nothing is
 * written then
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
  const given = readOptions(op, options, [
    'dtype',
    'symmetric',
    'axis',
    'scale',
    'zeroPoint',
    'out',
  ]);
  const {
    symmetric = false,
    dtype = symmetric === true ? 'int8' : 'uint8',
    axis: along,
    scale,
    zeroPoint,
    out,
  } = given;
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
      `${op}: zeroPoint is given and scale is not; there must be both, scale alone, or neither`,
    );
  }
  const tensor = readTensor(op, 'x', x, ['float32']);
  const { shape } = tensor;
  const axis = readAxis(op, along, 'x', shape);
  const target = out === undefined ? null : readTensor(op, 'out', out, [dtype]);
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

/**
 * Converts 8 bits, or the int32 of a bias, to float32, as ONNX DequantizeLinear:
 * (value - zeroPoint) * scale. Each step is rounded to float32.
 * https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html
 *
 * @param q int8, uint8 or int32 of any shape, with its scale; what {@link quantize} and {@link
 * quantizeBias} return
 * @returns float32 in the shape of q
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function dequantize(q: QuantizedInput): Tensor<NewArrays['float32']>;
export function dequantize(q: unknown): unknown {
  const op = 'dequantize';
  const tensor = readTensor(op, 'q', q, ['int8', 'uint8', 'int32']);
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
 * Quantizes the bias of a Gemm to C of com.microsoft QGemm. This C "must be quantized with
 * zero_point = 0 and scale = alpha / beta * a_scale * b_scale". It is bias / scale, computed in
 * float64, rounded half to even and saturated to int32. QGemm computes alpha * a_scale * b_scale *
 * (acc + C). With this C that is alpha * (a_scale * b_scale * acc) + beta * bias.
 * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
 *
 * @param bias float32, finite, of shape [], [1], [N], [1, 1], [1, N], [M, 1] or [M, N]
 * @param options the scales, finite and above 0, and the factors, finite and not 0
 * @returns int32 in the shape of the bias. If `bScale` has several elements, the last axis is N: a
 * single column is repeated along it
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function quantizeBias<S extends number | Float32Array>(
  bias: TensorLike<Float32Array> | TensorView<Float32Array>,
  options: QuantizeBiasOptions<S>,
): QuantizedBias<S extends number ? number : Float32Array>;
export function quantizeBias(bias: unknown, options: unknown): unknown {
  const op = 'quantizeBias';
  const given = readOptions(op, options, ['aScale', 'bScale', 'alpha', 'beta']);
  const { aScale, bScale, alpha, beta } = given;
  const tensor = readTensor(op, 'bias', bias, ['float32']);
  const { shape } = tensor;
  if (shape.length > 2)
    throw new ShapeError(
      op,
      'bias',
      `${op}: bias has shape [${shape.join(', ')}]; the most axes are 2`,
    );
  const size = classOf(bScale) === 'Float32Array' ? lengthOf(bScale as Float32Array) : 1;
  const columns = size === 1 ? null : { index: Math.max(shape.length, 1) - 1, size };
  const factor = readFactor(op, 'alpha', alpha) / readFactor(op, 'beta', beta);
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
