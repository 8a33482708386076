/** The arguments of quantize, dequantize and quantizeBias. No instance is needed to read them. */
import {
  bufferOf,
  bytesOf,
  checkAttached,
  classNameOf,
  classOf,
  lengthOf,
  offsetOf,
  viewOf,
} from '../base/arrays.js';
import {
  ArgumentError,
  describe,
  DisposedError,
  DTypeError,
  isPromise,
  ShapeError,
} from '../base/errors.js';
import { contiguousStrides, extentIn, readLayout, tensorKeys } from '../base/layout.js';
import { handleIn, isReadable, unpolluted } from '../base/properties.js';
import type { ArrayOf, DType, QuantizedDType } from '../base/tensor.js';
import { readData } from '../call/operand.js';
import { HeapTensor, imitatesHandle, PackedWeights, viewHeld } from '../instance/heap.js';
import { allocate, type Axis, count, type QuantizeType } from './quantize-numbers.js';

/** @internal A tensor, as the caller's objects describe it. */
export interface TensorArgument<D extends QuantizeType> {
  /** The holder of the elements: a handle, or the caller's array. */
  readonly source: HeapTensor | ArrayOf<D>;
  /** In elements. */
  readonly length: number;
  /** Index of the first element in `source`. */
  readonly first: number;
  /** Number of elements from the first to the last one. */
  readonly extent: number;
  /** After `settle`: an array of the library over these elements. */
  data: ArrayOf<D>;
  readonly dtype: D;
  readonly shape: readonly number[];
  /** null: contiguous. */
  readonly strides: readonly number[] | null;
}

/**
 * @internal Reads and checks a tensor of one of `dtypes`, which may run code of the caller.
 * `settle` must follow.
 */
export function readTensorArgument<D extends QuantizeType>(
  op: string,
  name: string,
  value: unknown,
  dtypes: readonly D[],
): TensorArgument<D> {
  checkTensor(op, name, value);
  const tensor = unpolluted(value, tensorKeys);
  const layout = readLayout(op, name, tensor);
  const { sizes: shape, steps } = layout;
  const source = HeapTensor.is(value) ? value : tensor.data;
  const isHeld = HeapTensor.is(source);
  if (isHeld && source.disposed) throw disposedTensor(op, name);
  const { dtype: type = isHeld ? source.dtype : undefined } = tensor;
  const allowed = Object.create(null) as Record<string, DType[]>;
  for (const dtype of dtypes) allowed[classNameOf(dtype)] = [dtype];
  const given = isHeld ? viewHeld(source) : source;
  const { data, dtype } = readData(op, name, { data: given, dtype: type }, allowed);
  checkAttached(op, name, data);
  const length = lengthOf(data);
  const extent = extentIn(op, name, length, layout);
  const contiguous = contiguousStrides(shape);
  const strides = steps ?? contiguous;
  const isContiguous =
    extent === 0 || shape.every((size, axis) => size === 1 || strides[axis] === contiguous[axis]);
  return {
    source: isHeld ? source : (data as ArrayOf<D>),
    length,
    first: layout.offset ?? 0,
    extent,
    data: data as ArrayOf<D>,
    dtype: dtype as D,
    shape,
    strides: isContiguous ? null : strides,
  };
}

const TypedArray = Object.getPrototypeOf(Uint8Array) as abstract new () => object;

/**
 * Whether a value is a typed array only by its prototype, such as a proxy of one. Its properties
 * throw.
 */
function imitatesArray(value: object): boolean {
  return value instanceof TypedArray && classOf(value) === undefined;
}

/** @internal Throws unless a value is an object that may have the properties of a tensor. */
export function checkTensor(op: string, name: string, value: unknown): asserts value is object {
  const isWrong = !isReadable(value) || imitatesHandle(value) || imitatesArray(value);
  if (isWrong || isPromise(value)) {
    const Wrong = isWrong ? ArgumentError : DTypeError;
    const allowed = 'it must be a tensor, { data, shape } or from alloc()';
    throw new Wrong(op, name, `${op}: ${name} is ${describe(value)}; ${allowed}`);
  }
  if (HeapTensor.is(value)) return;
  const handle = PackedWeights.is(value) ? 'packed weights' : handleIn(value);
  if (handle === undefined) return;
  const source = handle.endsWith('worker') ? ', with data from its read()' : '';
  const message = `${op}: ${name} is ${handle}; it must be { data, shape }${source}`;
  throw new ArgumentError(op, name, message);
}

function disposedTensor(op: string, name: string): DisposedError {
  return new DisposedError(op, name, `${op}: ${name} is a tensor that was disposed of`);
}

/**
 * @internal Finds the elements of a tensor, after the last code of the caller ran. Such code may
 * have grown the memory, or detached an array.
 */
export function settle<D extends QuantizeType>(
  op: string,
  name: string,
  tensor: TensorArgument<D>,
): void {
  const { source, length, first, extent, dtype } = tensor;
  if (HeapTensor.is(source)) {
    if (source.disposed) throw disposedTensor(op, name);
  } else {
    checkAttached(op, name, source);
    if (lengthOf(source) !== length) {
      const found = `${name} had ${length} elements and has ${lengthOf(source)} now`;
      const message = `${op}: ${found}; nothing may change it while the call reads its arguments`;
      throw new ArgumentError(op, name, message);
    }
  }
  tensor.data = elementsOf(dtype, arrayOf(tensor), first, extent);
}

/** The caller's array, or the array of a handle. */
function arrayOf<D extends QuantizeType>({ source }: TensorArgument<D>): ArrayOf<D> {
  return HeapTensor.is(source) ? (viewHeld(source) as ArrayOf<D>) : source;
}

/**
 * @internal The elements of the tensor that a call filled, as they are in memory now. Returns the
 * caller's array or the array of the handle, unless the tensor is only a part of that array.
 */
export function filled<D extends QuantizeType>(tensor: TensorArgument<D>): ArrayOf<D> {
  const { length, first, extent, dtype } = tensor;
  const array = arrayOf(tensor);
  return extent === length ? array : elementsOf(dtype, array, first, extent);
}

/** Elements of the caller's array, in an array without properties or methods of the caller. */
function elementsOf<D extends QuantizeType>(
  dtype: D,
  array: ArrayOf<D>,
  first = 0,
  length = lengthOf(array),
): ArrayOf<D> {
  const start = offsetOf(array) + first * bytesOf(dtype);
  return viewOf(dtype, bufferOf(array), start, length) as ArrayOf<D>;
}

/** @internal The elements in order: the tensor's own array, or a copy. */
export function inOrder<D extends QuantizeType>(
  op: string,
  name: string,
  { data, dtype, shape, strides }: TensorArgument<D>,
): ArrayOf<D> {
  if (strides === null) return data;
  const copy = allocate(op, name, dtype, count(shape));
  gather(copy, 0, data, shape, strides, 0, 0);
  return copy;
}

/**
 * @internal Copies the elements of the axes from `axis` on, which begin at `data[from]`, to
 * `copy[next]` and the elements after it. Returns the end of the copy.
 */
export function gather(
  copy: ArrayOf<QuantizeType>,
  next: number,
  data: ArrayOf<QuantizeType>,
  shape: readonly number[],
  strides: readonly number[],
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

/** @internal Checks the tensor that the call fills. */
export function checkOut(
  op: string,
  out: TensorArgument<QuantizedDType>,
  x: TensorArgument<'float32'>,
): void {
  if (out.shape.join() !== x.shape.join()) {
    const found = `${op}: out has shape [${out.shape.join(', ')}]`;
    const message = `${found}; the result has shape [${x.shape.join(', ')}]`;
    throw new ShapeError(op, 'out', message);
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
    throw new ArgumentError(op, 'out', `${op}: out overlaps x in memory; it must overlap no input`);
  }
}

/** @internal Reads the axis that has scales. */
export function readAxis(op: string, axis: unknown, name: string, shape: readonly number[]): Axis {
  if (axis === undefined) return null;
  const rank = shape.length;
  if (typeof axis !== 'number' || !Number.isInteger(axis) || axis < -rank || axis >= rank) {
    const allowed = rank === 0 ? 'absent' : `a whole number from ${-rank} to ${rank - 1}`;
    const rule = `for shape [${shape.join(', ')}] of ${name} it must be ${allowed}`;
    throw new ArgumentError(op, 'axis', `${op}: axis is ${describe(axis)}; ${rule}`);
  }
  const index = (axis + rank) % rank;
  return { index, size: shape[index] as number };
}

// This is not a function inside `readEach`, since esbuild would name that by defineProperty(). Its
// descriptor inherits from `Object.prototype`, which pages may change.
function isWithin(number: number, least: number, most: number, whole: boolean): boolean {
  return least <= number && number <= most && (!whole || Number.isInteger(number));
}

/**
 * @internal Reads scales or zero points: a number, or with an axis an array. Returns a new array.
 */
export function readEach<D extends QuantizeType>(
  op: string,
  name: string,
  value: unknown,
  dtype: D,
  axis: Axis,
  least: number,
  most: number,
): ArrayOf<D> {
  const float = dtype === 'float32';
  const whole = least === most ? least : `a whole number from ${least} to ${most}`;
  const allowed = float ? 'finite and above 0 in float32' : whole;
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
  const wanted = classNameOf(dtype);
  if (found === wanted) checkAttached(op, name, value as ArrayOf<D>, 'is a detached array');
  if (found === wanted && !axis && lengthOf(value as ArrayOf<D>) === 1)
    return readEach(op, name, (value as ArrayOf<D>)[0], dtype, axis, least, most);
  if (found !== wanted || !axis) {
    const Wrong = classOf(value) !== undefined && found !== wanted ? DTypeError : ArgumentError;
    const rule = `it must be a number${name === 'aScale' ? '' : `, or for an axis a ${wanted}`}`;
    throw new Wrong(op, name, `${op}: ${name} is ${found}; ${rule}`);
  }
  const each = elementsOf(dtype, value as ArrayOf<D>);
  if (each.length !== axis.size) {
    const rule = `it must have ${axis.size}, as axis ${axis.index} has`;
    throw new ShapeError(op, name, `${op}: ${name} has ${each.length} elements; ${rule}`);
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

/** @internal Reads alpha or beta. */
export function readFactorArgument(op: string, name: string, value: unknown = 1): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value === 0) {
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${describe(value)}; it must be a finite number and not 0`,
    );
  }
  return value;
}

/** @internal Throws for NaN, and for infinities if all elements must be finite. */
export function checkValues(
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
