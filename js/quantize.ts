/**
 * Between float32 and the integers of QGemm: what makes its A, B and C, and what reads them. No
 * instance is needed.
 */
import {
  ArgumentError,
  describe,
  DisposedError,
  DTypeError,
  OutOfMemoryError,
  ShapeError,
} from './errors.js';
import { HeapTensor, PackedWeights, viewHeld } from './heap.js';
import { readOptions } from './options.js';
import { handleIn, isReadable, unpolluted } from './properties.js';
import type { QuantizedArray } from './qgemm.js';
import {
  type ArrayOf,
  bufferOf,
  classOf,
  contiguousStrides,
  isDetached,
  lengthOf,
  offsetOf,
  readLayout,
  type Tensor,
  type TensorInput,
  tensorKeys,
  type TensorLike,
  viewOf,
} from './tensor.js';

/** The types of A and B of QGemm. */
export type QuantizedDType = 'int8' | 'uint8';

export interface QuantizeOptions<
  D extends QuantizedDType = QuantizedDType,
  S extends boolean = boolean,
  X extends number | undefined = number | undefined,
> {
  /** Default `'uint8'`, with `symmetric` `'int8'`. */
  dtype?: D;
  /**
   * The zero point is 0 for int8 and 128 for uint8, and values lie at most 127 from it. Default
   * false.
   */
  symmetric?: S;
  /**
   * A scale and a zero point for each index of this axis, a negative one counting from the back.
   * Default: one for the whole tensor.
   */
  axis?: X;
  /**
   * Known from elsewhere: a number, or with `axis` an array; rounded to float32. Default: found
   * from the data.
   */
  scale?: number | Float32Array;
  /**
   * That of a known `scale`: a number, or with `axis` an array of the type. Default 0, with
   * `symmetric` what that means.
   */
  zeroPoint?: number | ArrayOf<D>;
  /**
   * Contiguous, of the shape of x and the type of the result, apart from x. Filled in place; the
   * result's data is its data.
   */
  out?: TensorLike<ArrayOf<D>>;
}

/** Whole numbers that stand for (value - zeroPoint) * scale. */
export interface QuantizedPerTensor<A extends QuantizedArray> extends Tensor<A> {
  /** A float32. */
  readonly scale: number;
  readonly zeroPoint: number;
}

/** The same with a scale and a zero point for each index of `axis`, which counts from the front. */
export interface QuantizedPerAxis<A extends QuantizedArray> extends Tensor<A> {
  readonly scale: Float32Array;
  readonly zeroPoint: A;
  readonly axis: number;
}

/** What {@link quantize} returns, by whether there is an axis. */
export type Quantized<
  D extends QuantizedDType = QuantizedDType,
  X extends number | undefined = undefined,
> = X extends number ? QuantizedPerAxis<ArrayOf<D>> : QuantizedPerTensor<ArrayOf<D>>;

/** What {@link dequantize} takes: what the other two return, and tensors from elsewhere. */
export interface QuantizedInput extends TensorInput<QuantizedArray | Int32Array> {
  /** A number, or with `axis` an array. */
  readonly scale: number | Float32Array;
  /** A number, or with `axis` an array of the type of the data. 0 with int32. Default 0. */
  readonly zeroPoint?: number | QuantizedArray;
  /** Scale and zero point hold one number for each index of this axis. */
  readonly axis?: number;
}

export interface QuantizeBiasOptions<S extends number | Float32Array = number | Float32Array> {
  /** Scale of A: a number, or an array of one. */
  aScale: number | Float32Array;
  /** Scale of B: a number, or an array of one for each column. */
  bScale: S;
  /** QGemm's factor of everything. Default 1. */
  alpha?: number;
  /** The factor that the bias is to have. QGemm has none of its own. Default 1. */
  beta?: number;
}

/**
 * What {@link quantizeBias} returns. `axis` is the last one, where there is a scale for each
 * column.
 */
export interface QuantizedBias<
  S extends number | Float32Array = number | Float32Array,
> extends Tensor<Int32Array> {
  readonly scale: S;
  readonly axis?: number;
}

/**
 * Float32 to 8 bits, as ONNX QuantizeLinear-19: y = saturate(round(x / scale) + zeroPoint), the
 * quotient rounded to float32 and then half to even.
 * https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
 *
 * Where `scale` is not given, both come from the least and the greatest of 0 and the data, in
 * float32 as in the definition of ONNX DynamicQuantizeLinear-11: scale = (max - min) / 255,
 * zeroPoint = saturate(round(qmin - min / scale)), qmin being 0 or -128. With `symmetric`, scale =
 * max(max, -min) / 127. The scale of nothing but zeros is 1; none is less than the least float32
 * above 0. https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html
 *
 * @example const a = quantize({ data: activations, shape: [m, k] }); const b = quantize({ data:
 * weights, shape: [k, n] }, { symmetric: true, axis: 1 }); wg.qgemm({ a, aScale: a.scale,
 * aZeroPoint: a.zeroPoint, b, bScale: b.scale, bZeroPoint: b.zeroPoint });
 *
 * @param x float32 of any shape: finite, or with a `scale` anything but NaN; infinity saturates
 * @returns the shape of x; scale and zero point are numbers, or with `axis` a Float32Array and an
 * array of the type
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError; nothing is
 * written then
 */
export function quantize<
  S extends boolean = false,
  D extends QuantizedDType = S extends true ? 'int8' : 'uint8',
  X extends number | undefined = undefined,
>(x: TensorLike<Float32Array>, options?: QuantizeOptions<D, S, X> | null): Quantized<D, X>;
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
  const data = contiguous(op, 'x', tensor);
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
  if (!HeapTensor.is(out)) return { data: target ? target.given : y, shape, dtype, ...parameters };
  return {
    // A view of the heap ends when the memory grows; that of the tensor is then made anew.
    get data() {
      return viewHeld(out);
    },
    shape,
    dtype,
    ...parameters,
  };
}

/**
 * 8 bits, or the int32 of a bias, to float32, as ONNX DequantizeLinear: (value - zeroPoint) *
 * scale, each step rounded to float32. https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html
 *
 * @param q int8, uint8 or int32 of any shape, with its scale; what {@link quantize} and {@link
 * quantizeBias} return
 * @returns float32 in the shape of q
 * @throws ShapeError, DTypeError, ArgumentError, OutOfMemoryError
 */
export function dequantize(q: QuantizedInput): Tensor<Float32Array>;
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
  const values = contiguous(op, 'q', tensor);
  const data = allocate(op, 'q', 'float32', values.length);
  eachRun(shape, axis, (group, from, to) => {
    const scale = scales[group] as number;
    const zero = zeros[group] as number;
    for (let i = from; i < to; ++i) data[i] = Math.fround((values[i] as number) - zero) * scale;
  });
  return { data, shape, dtype: 'float32' };
}

/**
 * The bias of a Gemm as C of com.microsoft QGemm, which "must be quantized with zero_point = 0 and
 * scale = alpha / beta * a_scale * b_scale": round(bias / scale), computed in float64, half to
 * even, saturated to int32. QGemm computes alpha * a_scale * b_scale * (acc + C), and this C makes
 * that alpha * (a_scale * b_scale * acc) + beta * bias.
 * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
 *
 * @param bias float32, finite, of shape [], [1], [N], [1, 1], [1, N], [M, 1] or [M, N]
 * @param options the scales, finite and above 0, and the factors, finite and not 0
 * @returns the shape of the bias; with an array as `bScale` its last axis is N, over which a single
 * column is repeated
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function quantizeBias<S extends number | Float32Array>(
  bias: TensorLike<Float32Array>,
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
  const values = contiguous(op, 'bias', tensor);
  checkValues(op, 'bias', values, shape, true);

  const repeats = columns && last === 1 ? columns.size : 1;
  const data = allocate(op, 'bias', 'int32', values.length * repeats);
  for (let i = 0; i < data.length; ++i) {
    const value =
      (values[Math.floor(i / repeats)] as number) / (scales[i % scales.length] as number) +
      large -
      large;
    data[i] = Math.max(-(2 ** 31), Math.min(value, 2 ** 31 - 1));
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

const arrays = { int8: Int8Array, uint8: Uint8Array, int32: Int32Array, float32: Float32Array };
type Name = keyof typeof arrays;

/**
 * Beside it a float64 has no room for a fraction: adding it and taking it away rounds half to even,
 * of what is less than 2^51.
 */
const large = 1.5 * 2 ** 52;

/** The greatest float32, and the range of scales. */
const greatest = (2 - 2 ** -23) * 2 ** 127;
const positive = [2 ** -149, greatest] as const;

/** The range of values and of zero points, and the middle of it; int32 has no zero point but 0. */
function limits(
  dtype: QuantizedDType | 'int32',
  symmetric: boolean,
): { least: number; most: number; centre: number } {
  const [first, most] = {
    int8: [-128, 127] as const,
    uint8: [0, 255] as const,
    int32: [0, 0] as const,
  }[dtype];
  const least = symmetric ? first + 1 : first;
  return { least, most, centre: (least + most) / 2 };
}

/** The axis that has scales, and how many. null: there is one scale for all. */
type Axis = { readonly index: number; readonly size: number } | null;

/** Calls back for each stretch of elements that share a scale. */
function eachRun(
  shape: readonly number[],
  axis: Axis,
  run: (group: number, from: number, to: number) => void,
): void {
  const total = count(shape);
  const length = axis ? count(shape.slice(axis.index + 1)) : total;
  const groups = axis ? axis.size : 1;
  for (
    let from = 0, group = 0;
    from < total;
    from += length, group = group + 1 === groups ? 0 : group + 1
  )
    run(group, from, from + length);
}

/** Scales and zero points by the least and the greatest of 0 and the data. */
function fromRange(
  op: string,
  data: Float32Array,
  shape: readonly number[],
  axis: Axis,
  dtype: QuantizedDType,
  symmetric: boolean,
) {
  const groups = axis ? axis.size : 1;
  const lows = allocate(op, 'x', 'float32', groups);
  const highs = allocate(op, 'x', 'float32', groups);
  eachRun(shape, axis, (group, from, to) => {
    let low = lows[group] as number;
    let high = highs[group] as number;
    for (let i = from; i < to; ++i) {
      const value = data[i] as number;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    lows[group] = low;
    highs[group] = high;
  });
  const { least, most, centre } = limits(dtype, symmetric);
  const zeros = allocate(op, 'x', dtype, groups);
  const scales = lows.map((low, group) => {
    const high = highs[group] as number;
    const exact = symmetric ? Math.max(-low, high) : high - low;
    const range = Math.fround(exact) < Infinity ? Math.fround(exact) : exact;
    const scale =
      exact === 0
        ? 1
        : Math.max(Math.fround(range / (most - (symmetric ? centre : least))), 2 ** -149);
    const zero = Math.fround(least - Math.fround(low / scale));
    zeros[group] = symmetric ? centre : Math.min(zero + large - large, most);
    return scale;
  });
  return [scales, zeros] as const;
}

interface Read<D extends Name> {
  /** What the user gave. */
  readonly source: object;
  /** Its array. */
  readonly given: ArrayOf<D>;
  /**
   * From `settle` on its elements in an array of the library's, of which no method or property is
   * the user's.
   */
  data: ArrayOf<D>;
  readonly length: number;
  readonly dtype: D;
  readonly shape: number[];
  /** null: contiguous. */
  readonly strides: number[] | null;
}

function readTensor<D extends Name>(
  op: string,
  name: string,
  value: unknown,
  dtypes: readonly D[],
): Read<D> {
  if (!isReadable(value) || (value instanceof HeapTensor && !HeapTensor.is(value))) {
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${describe(value)}; it must be a tensor, { data, shape } or from alloc()`,
    );
  }
  if (HeapTensor.is(value) && value.disposed)
    throw new DisposedError(op, name, `${op}: ${name} is a tensor that was disposed of`);
  const handle = PackedWeights.is(value) ? 'packed weights' : handleIn(value);
  if (handle !== undefined)
    throw new ArgumentError(op, name, `${op}: ${name} is ${handle}; it must be { data, shape }`);
  const tensor = unpolluted(value, tensorKeys);
  const { sizes: shape, steps } = readLayout(op, name, tensor);
  const packed = contiguousStrides(shape);
  const strides = steps ?? packed;
  const { data, dtype: stated } = HeapTensor.is(value)
    ? { data: viewHeld(value), dtype: value.dtype }
    : tensor;
  const array = classOf(data) ?? describe(data);
  const dtype = dtypes.find((dtype) => arrays[dtype].name === array);
  if (dtype === undefined) {
    const allowed = dtypes.map((dtype) => arrays[dtype].name).join(' or ');
    throw new DTypeError(op, name, `${op}: ${name} has as data ${array}; it must be ${allowed}`);
  }
  if (stated !== undefined && stated !== dtype) {
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} has dtype ${describe(stated)} and a ${array}; that holds ${dtype}`,
    );
  }
  checkAttached(op, name, data as ArrayOf<D>, 'has a detached array as data');
  const length = lengthOf(data as ArrayOf<D>);
  const needed = shape.includes(0)
    ? 0
    : shape.reduce((last, size, axis) => last + (size - 1) * (strides[axis] as number), 1);
  if (length !== needed) {
    const layout = steps === null ? '' : ` with strides [${strides.join(', ')}]`;
    throw new ShapeError(
      op,
      name,
      `${op}: ${name} has ${length} elements; shape [${shape.join(', ')}]${layout} needs ${needed}`,
    );
  }
  const plain =
    length === 0 || shape.every((size, axis) => size === 1 || strides[axis] === packed[axis]);
  const given = data as ArrayOf<D>;
  return {
    source: value,
    given,
    data: given,
    length,
    dtype,
    shape,
    strides: plain ? null : strides,
  };
}

function checkAttached(op: string, name: string, array: ArrayOf<Name>, found: string): void {
  if (!isDetached(bufferOf(array))) return;
  throw new ArgumentError(
    op,
    name,
    `${op}: ${name} ${found}; it was transferred, or the memory under it grew`,
  );
}

/** The elements of an array of the user's, whose own properties and class may be anything. */
function elementsOf<D extends Name>(dtype: D, array: ArrayOf<D>): ArrayOf<D> {
  return viewOf(dtype, bufferOf(array), offsetOf(array), lengthOf(array)) as ArrayOf<D>;
}

/**
 * Once no code of the user's can run any more: what was read before may have moved with the memory,
 * or be gone.
 */
function settle<D extends Name>(op: string, name: string, tensor: Read<D>): void {
  if (HeapTensor.is(tensor.source)) {
    if (tensor.source.disposed)
      throw new DisposedError(op, name, `${op}: ${name} is a tensor that was disposed of`);
    tensor.data = viewHeld(tensor.source) as ArrayOf<D>;
    return;
  }
  const { given, length, dtype } = tensor;
  checkAttached(op, name, given, 'has a detached array as data');
  if (lengthOf(given) !== length) {
    const found = `${name} had ${length} elements and has ${lengthOf(given)} now`;
    throw new ArgumentError(
      op,
      name,
      `${op}: ${found}; nothing may change it while the call reads its arguments`,
    );
  }
  tensor.data = elementsOf(dtype, given);
}

function checkOut(op: string, out: Read<QuantizedDType>, x: Read<'float32'>): void {
  if (out.shape.join() !== x.shape.join()) {
    throw new ShapeError(
      op,
      'out',
      `${op}: out has shape [${out.shape.join(', ')}]; it must have that of x, [${x.shape.join(', ')}]`,
    );
  }
  if (out.strides)
    throw new ShapeError(
      op,
      'out',
      `${op}: out has strides [${out.strides.join(', ')}]; it must be contiguous`,
    );
  const [a, b] = [out.data, x.data];
  if (
    a.buffer === b.buffer &&
    a.byteOffset < b.byteOffset + b.byteLength &&
    b.byteOffset < a.byteOffset + a.byteLength
  ) {
    throw new ArgumentError(op, 'out', `${op}: out overlaps x; it must have memory of its own`);
  }
}

function readAxis(op: string, axis: unknown, name: string, shape: readonly number[]): Axis {
  if (axis === undefined) return null;
  const rank = shape.length;
  if (typeof axis !== 'number' || !Number.isInteger(axis) || axis < -rank || axis >= rank) {
    const allowed = rank === 0 ? 'absent' : `a whole number from ${-rank} to ${rank - 1}`;
    throw new ArgumentError(
      op,
      'axis',
      `${op}: axis is ${describe(axis)}; for shape [${shape.join(', ')}] of ${name} it must be ${allowed}`,
    );
  }
  const index = (axis + rank) % rank;
  return { index, size: shape[index] as number };
}

// Not inside of `readEach`: for a named function esbuild calls defineProperty() with a descriptor
// that `Object.prototype` may have a say in.
function isWithin(number: number, least: number, most: number, whole: boolean): boolean {
  return least <= number && number <= most && (!whole || Number.isInteger(number));
}

/** Reads scales or zero points, a number or with an axis an array, as an array of their own. */
function readEach<D extends Name>(
  op: string,
  name: string,
  value: unknown,
  dtype: D,
  axis: Axis,
  least: number,
  most: number,
): ArrayOf<D> {
  const float = dtype === 'float32';
  const allowed =
    least === most ? least : `a ${float ? 'float32' : 'whole number'} from ${least} to ${most}`;
  if (typeof value === 'number') {
    const number = float ? Math.fround(value) : value;
    if (!isWithin(number, least, most, !float))
      throw new ArgumentError(
        op,
        name,
        `${op}: ${name} is ${describe(value)}; it must be ${allowed}`,
      );
    return allocate(op, name, dtype, axis ? axis.size : 1).fill(number) as ArrayOf<D>;
  }
  const found = classOf(value) ?? describe(value);
  const wanted = arrays[dtype].name;
  if (found === wanted) checkAttached(op, name, value as ArrayOf<D>, 'is a detached array');
  if (found === wanted && !axis && lengthOf(value as ArrayOf<D>) === 1)
    return readEach(op, name, (value as ArrayOf<D>)[0], dtype, axis, least, most);
  if (found !== wanted || !axis) {
    const Wrong = classOf(value) !== undefined && found !== wanted ? DTypeError : ArgumentError;
    throw new Wrong(
      op,
      name,
      `${op}: ${name} is ${found}; it must be a number${name === 'aScale' ? '' : `, or for an axis a ${wanted}`}`,
    );
  }
  const each = elementsOf(dtype, value as ArrayOf<D>);
  if (each.length !== axis.size) {
    throw new ShapeError(
      op,
      name,
      `${op}: ${name} has ${each.length} elements; it must have ${axis.size}, as axis ${axis.index} has`,
    );
  }
  const bad = each.findIndex((number: number) => !isWithin(number, least, most, !float));
  if (bad >= 0)
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} has ${each[bad]} at [${bad}]; each must be ${allowed}`,
    );
  return each.slice() as ArrayOf<D>;
}

function readFactor(op: string, name: string, value: unknown = 1): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value === 0) {
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${describe(value)}; it must be a finite number and not 0`,
    );
  }
  return value;
}

/** Refuses NaN, and infinities where all must be finite. */
function checkValues(
  op: string,
  name: string,
  data: Float32Array,
  shape: readonly number[],
  finite: boolean,
): void {
  for (let i = 0; i < data.length; ++i) {
    const value = data[i] as number;
    if (Number.isNaN(finite ? value - value : value)) {
      const place = contiguousStrides(shape).map(
        (stride, axis) => Math.floor(i / stride) % (shape[axis] as number),
      );
      const rule = finite ? 'finite' : 'a number or infinity';
      throw new ArgumentError(
        op,
        name,
        `${op}: ${name} has ${value} at [${place.join(', ')}]; each element must be ${rule}`,
      );
    }
  }
}

const count = (shape: readonly number[]): number =>
  shape.reduce((product, size) => product * size, 1);

/** The elements in order: the tensor's own array, or a copy. */
function contiguous<D extends Name>(
  op: string,
  name: string,
  { data, dtype, shape, strides }: Read<D>,
): ArrayOf<D> {
  if (!strides) return data;
  const copy = allocate(op, name, dtype, count(shape));
  gather(copy, 0, data, shape, strides, 0, 0);
  return copy;
}

/**
 * Copies the elements of the axes from `axis` on to `copy` from `next` on; gives where they end.
 */
function gather(
  copy: ArrayOf<Name>,
  next: number,
  data: ArrayOf<Name>,
  shape: number[],
  strides: number[],
  axis: number,
  from: number,
): number {
  const size = shape[axis];
  if (size === undefined) {
    copy[next] = data[from] as number;
    return next + 1;
  }
  for (let at = 0; at < size; ++at) {
    next = gather(
      copy,
      next,
      data,
      shape,
      strides,
      axis + 1,
      from + at * (strides[axis] as number),
    );
  }
  return next;
}

function allocate<D extends Name>(op: string, name: string, dtype: D, length: number): ArrayOf<D> {
  try {
    return new arrays[dtype](length) as ArrayOf<D>;
  } catch (error) {
    throw new OutOfMemoryError(
      op,
      name,
      `${op}: no array for ${length} elements of ${dtype}, which ${name} asks for: ${String(error)}`,
    );
  }
}
