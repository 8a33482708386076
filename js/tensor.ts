/** Tensors as callers pass and get them: types, arrays, shapes. */
import type { HeapTensor } from './heap.js';
import { describe, ShapeError } from './errors.js';
import { isList } from './properties.js';

/**
 * A Float16Array, declared here for projects whose TypeScript does not know it. The members are
 * those of every typed array.
 *
 * @category Tensors
 */
export interface Float16ArrayLike {
  /** Bytes per element: 2. */
  readonly BYTES_PER_ELEMENT: number;
  /** The memory that has the elements. */
  readonly buffer: ArrayBufferLike;
  /** Size in bytes. */
  readonly byteLength: number;
  /** Bytes in `buffer` before the first element. */
  readonly byteOffset: number;
  /** Number of elements. */
  readonly length: number;
  /** The name of the class. */
  readonly [Symbol.toStringTag]: 'Float16Array';
  [index: number]: number;
  /**
   * Sets elements to a value, rounded to float16. Returns this array.
   * @param value the value
   * @param start index of the first element, default 0
   * @param end index after the last element, default `length`
   */
  fill(value: number, start?: number, end?: number): Float16ArrayLike;
  /**
   * Copies numbers to elements, each rounded to float16.
   * @param array the numbers
   * @param offset index of the first element that is written, default 0
   */
  set(array: ArrayLike<number>, offset?: number): void;
  /**
   * Returns a copy of elements.
   * @param start index of the first element, default 0
   * @param end index after the last element, default `length`
   */
  slice(start?: number, end?: number): Float16ArrayLike;
  /**
   * Returns an array over the same memory.
   * @param start index of the first element, default 0
   * @param end index after the last element, default `length`
   */
  subarray(start?: number, end?: number): Float16ArrayLike;
  /** Iterates over the elements. */
  [Symbol.iterator](): IterableIterator<number>;
}

/**
 * The arrays that hold each type of elements, by ONNX's names for the types.
 *
 * @category Tensors
 */
export interface Arrays {
  /** IEEE 754 binary32. */
  float32: Float32Array;
  /** IEEE 754 binary64. */
  float64: Float64Array;
  /** IEEE 754 binary16. A Float16Array if the engine has one, else the bits in a Uint16Array. */
  float16: Float16ArrayLike | Uint16Array;
  /** bfloat16, as bits. */
  bfloat16: Uint16Array;
  /** Signed, 32 bits. */
  int32: Int32Array;
  /** Unsigned, 32 bits. */
  uint32: Uint32Array;
  /** Signed, 64 bits. */
  int64: BigInt64Array;
  /** Unsigned, 64 bits. */
  uint64: BigUint64Array;
  /** Signed, 8 bits. Only for `qgemm`. */
  int8: Int8Array;
  /** Unsigned, 8 bits. Only for `qgemm`. */
  uint8: Uint8Array;
}

/**
 * A type of elements, by ONNX's name for it: a key of {@link Arrays}.
 *
 * @category Tensors
 */
export type DType =
  | 'float32'
  | 'float64'
  | 'float16'
  | 'bfloat16'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'int8'
  | 'uint8';

/**
 * Arrays that hold elements of any type: the values of {@link Arrays}.
 *
 * @category Tensors
 */
export type DataArray = Arrays[DType];

/**
 * The array that holds elements of type `D`.
 *
 * @typeParam D the type of the elements
 * @category Tensors
 */
export type ArrayOf<D extends DType> = Arrays[D];

/**
 * The types that an array may hold, by the name of its class.
 *
 * @category Type machinery
 */
export interface DTypes {
  /** Holds float32. */
  Float32Array: 'float32';
  /** Holds float64. */
  Float64Array: 'float64';
  /** Holds float16. */
  Float16Array: 'float16';
  /** Holds the bits of either. `dtype` tells which. */
  Uint16Array: 'float16' | 'bfloat16';
  /** Holds int32. */
  Int32Array: 'int32';
  /** Holds uint32. */
  Uint32Array: 'uint32';
  /** Holds int64. */
  BigInt64Array: 'int64';
  /** Holds uint64. */
  BigUint64Array: 'uint64';
  /** Holds int8. */
  Int8Array: 'int8';
  /** Holds uint8. */
  Uint8Array: 'uint8';
}

/**
 * The types that an array may hold: one, except for a Uint16Array.
 *
 * @typeParam A the class of the array
 * @category Tensors
 */
export type DTypeOf<A extends DataArray> = DTypes[A[typeof Symbol.toStringTag]];

/**
 * Arrays that `gemm` and `matmul` take: all except those of 8 bits.
 *
 * @category Tensors
 */
export type GemmArray = Exclude<DataArray, Int8Array | Uint8Array>;

/**
 * `A`, or an array of the same type that is, for example, in shared memory.
 *
 * @typeParam A the class of the array
 * @category Type machinery
 */
export type Matching<A extends DataArray> = A | ArrayOf<DTypeOf<A>>;

/**
 * New arrays, by type. TypeScript from 5.7 on knows that their memory is not shared.
 *
 * @category Type machinery
 */
export type NewArrays = { [D in DType]: ReturnType<Arrays[D]['slice']> };

/**
 * The array of a result, by the array of an operand. For float16 that is passed as bits, the result
 * is a Float16Array if the engine has one.
 *
 * @typeParam A the class of the array of an operand
 * @category Tensors
 */
export type ResultArray<A extends DataArray> = A extends Float16ArrayLike
  ? A
  : NewArrays[DTypeOf<A>];

/**
 * A tensor that a call takes. The caller owns its array, and calls only read it.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export interface TensorInput<A extends DataArray = DataArray> {
  /**
   * The elements. With `strides` or `offset`, the array has at least as many elements as these and
   * the shape need. With neither, it has exactly as many as the shape needs.
   */
  readonly data: A;
  /** The size of each axis, in elements: up to 64 axes. A tensor of rank 0 has shape []. */
  readonly shape: readonly number[];
  /**
   * The type of the elements. Default: the type of the array. A Uint16Array has the bits of
   * `'float16'` or `'bfloat16'`, and needs a `dtype`.
   */
  readonly dtype?: DTypeOf<A> | undefined;
  /**
   * Distance from one element to the next along each axis, in elements, 0 or more. Default:
   * contiguous, in row-major order.
   */
  readonly strides?: readonly number[] | undefined;
  /** Index in `data` of the first element. Default 0. */
  readonly offset?: number | undefined;
}

/**
 * A view of a tensor in the memory of the instance, such as one head of attention. It has the type
 * of that tensor, and stays valid when the memory grows.
 *
 * @typeParam A the class of the array of the tensor
 * @typeParam H the class of tensors in the memory of the instance
 * @category Tensors
 */
export interface TensorView<A extends DataArray = DataArray, H = HeapTensor<A>> extends Omit<
  TensorInput<A>,
  'data'
> {
  /** The tensor in the memory of the instance. */
  readonly data: H;
}

/**
 * A contiguous tensor that a call returns. The caller owns its array, which is new.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export interface Tensor<A extends DataArray = DataArray> {
  /** The elements, in row-major order. */
  readonly data: A;
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** The type of the elements. */
  readonly dtype: DTypeOf<A>;
}

/**
 * A result of `gemm` or `qgemm`.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export interface Matrix<A extends DataArray = DataArray> extends Tensor<A> {
  /** M and N: the numbers of rows and columns. */
  readonly shape: readonly [rows: number, columns: number];
}

/**
 * A tensor in an array of the caller, or in the memory of an instance. Use this type for parameters
 * of your own functions.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export type TensorLike<A extends DataArray = DataArray> = TensorInput<A> | HeapTensor<A>;

interface ArrayClass {
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
  new (buffer: ArrayBuffer, byteOffset: number, length: number): DataArray;
  new (length: number): DataArray;
}

/** The array that the library makes for a type. */
const arrays: Record<DType, ArrayClass> = {
  float32: Float32Array,
  float64: Float64Array,
  float16: (globalThis as unknown as { Float16Array?: ArrayClass }).Float16Array ?? Uint16Array,
  bfloat16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
};

/** @internal The types of elements. */
export const dtypeNames = Object.keys(arrays) as DType[];

/** @internal The types that an array of a class may hold. */
export const dtypesOf: Record<string, DType[]> = Object.create(null) as Record<string, DType[]>;
for (const [dtype, { name }] of Object.entries(arrays))
  if (name !== 'Uint16Array') dtypesOf[name] = [dtype as DType];
dtypesOf.Uint16Array = ['float16', 'bfloat16'];

/** @internal The array of a type, over a part of the heap. */
export function viewOf(
  dtype: DType,
  buffer: ArrayBufferLike,
  address: number,
  length: number,
): DataArray {
  // The buffer may be shared, which old declarations do not know.
  return new arrays[dtype](buffer as ArrayBuffer, address, length);
}

/** @internal A copy of elements of a memory. `slice()` would clear the array before it copies. */
export function copiedFrom(
  dtype: DType,
  buffer: ArrayBufferLike,
  address: number,
  length: number,
): DataArray {
  return new arrays[dtype](viewOf(dtype, buffer, address, length) as never);
}

/** @internal An array of zeros. */
export function arrayOf(dtype: DType, length: number): DataArray {
  return new arrays[dtype](length);
}

/** @internal The name of the class of arrays that the library makes for a type. */
export function classNameOf(dtype: DType): string {
  return arrays[dtype].name;
}

/** @internal Bytes of an element. */
export function bytesOf(dtype: DType): number {
  return arrays[dtype].BYTES_PER_ELEMENT;
}

/** @internal Whether a number may be an element: integers must be whole and in range. */
export function holds(dtype: DType, value: number): boolean {
  if (dtype.includes('float')) return true;
  const range = 2 ** (8 * bytesOf(dtype));
  const min = dtype.startsWith('u') ? 0 : -range / 2;
  return Number.isInteger(value) && min <= value && value < min + range;
}

/**
 * Reads an internal property of a typed array of any realm. Properties that users added to the
 * array do not count.
 */
function intrinsic(
  name: typeof Symbol.toStringTag | 'length' | 'byteLength' | 'buffer' | 'byteOffset',
): (array: unknown) => unknown {
  const property = Object.getOwnPropertyDescriptor(
    Object.getPrototypeOf(Uint8Array.prototype),
    name,
  );
  return (array) => property?.get?.call(array) as unknown;
}
/** @internal The name of its class; undefined for anything else. */
export const classOf = intrinsic(Symbol.toStringTag) as (value: unknown) => string | undefined;
/** @internal */
export const lengthOf = intrinsic('length') as (array: DataArray) => number;
/** @internal */
export const byteLengthOf = intrinsic('byteLength') as (array: DataArray) => number;
/** @internal */
export const bufferOf = intrinsic('buffer') as (array: DataArray) => ArrayBufferLike;
/** @internal */
export const offsetOf = intrinsic('byteOffset') as (array: DataArray) => number;

/** @internal */
export function isDetached(buffer: ArrayBufferLike): boolean {
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

/** @internal Detaches a new array, which then replaces a detached one of the caller. */
export function detached<A extends DataArray>(array: A): A {
  structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] });
  return array;
}

const lengthOfBuffer = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength');

/**
 * @internal The bytes of an ArrayBuffer or a SharedArrayBuffer of any realm. Returns a detached
 * array for a detached buffer, and other values as they are.
 */
export function bytesIn(value: unknown): unknown {
  try {
    new DataView(value as ArrayBuffer); // throws for all else, and runs no code of the caller
    return new Uint8Array(value as ArrayBuffer);
  } catch {
    try {
      lengthOfBuffer?.get?.call(value); // throws for all but an ArrayBuffer
    } catch {
      return value;
    }
    return detached(new Uint8Array(1));
  }
}

/** @internal Whether a tensor may have this number of axes. */
export function isRank(length: unknown): length is number {
  return Number.isInteger(length) && 0 <= (length as number) && (length as number) <= 64;
}

/**
 * @internal Reads a shape or strides: an array of whole numbers from 0 to 2^53 - 1.
 * @param label the start of an error message about them
 */
export function readSizes(
  op: string,
  argument: string,
  label: string,
  value: unknown,
  what = 'size',
): number[] {
  if (!isList(value)) {
    throw new ShapeError(
      op,
      argument,
      `${op}: ${label} ${describe(value)}; it must be an array of whole numbers, such as [2, 3]`,
    );
  }
  const sizes: number[] = [];
  const rank = value.length; // of a proxy it may be anything, and differ each time
  if (!isRank(rank)) {
    throw new ShapeError(
      op,
      argument,
      `${op}: ${label} an array of length ${describe(rank)}; ` +
        'its length must be a whole number from 0 to 64',
    );
  }
  for (let i = 0; i < rank; ++i) {
    const size: unknown = value[i];
    if (!Number.isSafeInteger(size) || (size as number) < 0) {
      const found = Array.from({ length: rank }, (_, at) => describe(value[at])).join(', ');
      const rule = `each ${what} must be a whole number from 0 to 2^53 - 1`;
      throw new ShapeError(op, argument, `${op}: ${label} [${found}]; ${rule}`);
    }
    sizes.push(size as number);
  }
  return sizes;
}

/**
 * @internal Properties of a tensor. Those after `offset` are from other libraries, and must agree
 * with shape and strides.
 */
export const tensorKeys = [
  ...['data', 'shape', 'dtype', 'strides', 'offset'],
  ...['stride', 'byteOffset', 'start', 'step', 'order', 'layout'],
  ...['storageOffset', 'begin', 'fortranOrder', 'fortran_order', 'isFortran'],
  ...['columnMajor', 'column_major', 'colMajor', 'isColumnMajor', 'transposed'],
];

/** @internal Where the elements of a tensor are in its data. */
export interface Layout {
  readonly sizes: readonly number[];
  /** null if the caller gives no strides: contiguous. */
  readonly steps: readonly number[] | null;
  /** null if the caller gives none: 0. */
  readonly offset: number | null;
}

/** @internal Reads where the elements of a tensor are. */
export function readLayout(op: string, name: string, tensor: Record<string, unknown>): Layout {
  const { shape, strides, offset, stride, byteOffset, start, step, order, layout } = tensor;
  const { storageOffset, begin, fortranOrder, fortran_order, isFortran } = tensor;
  const { columnMajor, column_major, colMajor, isColumnMajor, transposed } = tensor;
  const sizes = readSizes(op, name, `${name} has shape`, shape);
  const steps =
    strides === undefined ? null : readSizes(op, name, `${name} has strides`, strides, 'stride');
  if (steps !== null && steps.length !== sizes.length) {
    const found = `${name} has strides [${steps.join(', ')}] and shape [${sizes.join(', ')}]`;
    throw new ShapeError(op, name, `${op}: ${found}; there must be one stride per axis`);
  }
  const first = isAbsent(offset) ? null : offset;
  if (first !== null && !(Number.isSafeInteger(first) && (first as number) >= 0)) {
    const found = `${name} has offset ${describe(first)}`;
    const message = `${op}: ${found}; it must be a whole number from 0 to 2^53 - 1`;
    throw new ShapeError(op, name, message);
  }
  const places = stride ?? byteOffset ?? start ?? step ?? storageOffset ?? begin;
  const fortran = order ?? layout ?? fortranOrder ?? fortran_order ?? isFortran;
  const columns = columnMajor ?? column_major ?? colMajor ?? isColumnMajor ?? transposed;
  if ((places ?? fortran ?? columns ?? null) !== null) {
    const before = { byteOffset, start, storageOffset, begin };
    const turned = {
      order,
      layout,
      fortranOrder,
      fortran_order,
      isFortran,
      columnMajor,
      column_major,
    };
    const flags = { colMajor, isColumnMajor, transposed };
    checkOthers(op, name, sizes, steps, { stride, step, ...before, ...turned, ...flags });
  }
  return { sizes, steps, offset: first as number | null };
}

/** Whether a property that other libraries have, too, has no value: some have it as a method. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'function';
}

/**
 * @internal The elements of a tensor from its first to its last one, in data of `length` elements.
 * Throws if the data has too few, or without strides and offset too many.
 */
export function extentIn(
  op: string,
  name: string,
  length: number,
  { sizes, steps, offset }: Layout,
): number {
  const strides = steps ?? contiguousStrides(sizes);
  const extent = sizes.includes(0)
    ? 0
    : sizes.reduce((last, size, axis) => last + (size - 1) * (strides[axis] as number), 1);
  const needed = (offset ?? 0) + extent;
  const mayBeLonger = steps !== null || offset !== null;
  if (mayBeLonger ? needed <= length : needed === length) return extent;
  let found = `${name} has ${length} elements; its shape [${sizes.join(', ')}]`;
  if (steps) found += `${offset ? ',' : ' and'} strides [${steps.join(', ')}]`;
  if (offset) found += ` and offset ${offset}`;
  const number = needed > 2 ** 53 ? 'more than 2^53' : needed;
  throw new ShapeError(op, name, `${op}: ${found} need${steps || offset ? '' : 's'} ${number}`);
}

/** Throws if a property of another library contradicts shape and strides. */
function checkOthers(
  op: string,
  name: string,
  sizes: number[],
  steps: number[] | null,
  said: Record<string, unknown>,
): void {
  const strides = steps ?? contiguousStrides(sizes);
  const long = sizes.flatMap((size, axis) => (size > 1 ? [axis] : [])); // axes with steps
  const isOneWay = steps !== null || long.length < 2 || sizes.includes(0);
  for (const [key, value] of Object.entries(said)) {
    if (isAbsent(value)) continue;
    let found = describe(value);
    let same;
    if (key === 'stride') {
      const list = isList(value) ? sizes.map((_, axis) => value[axis]) : undefined;
      if (list) found = `[${list.map(describe).join(', ')}]`;
      same =
        list !== undefined &&
        (sizes.includes(0) || long.every((axis) => list[axis] === strides[axis]));
    } else if (key === 'step') {
      same = value === 1;
    } else if (offsetKeys.includes(key)) {
      same = value === 0;
    } else if (key === 'order' || key === 'layout') {
      const text = textIn(value); // the order of an ndarray is a list of axes, and may be any
      same = isOneWay || !columnMajorText.test(text);
      found = describe(text);
    } else {
      same = isOneWay || !value;
    }
    if (same) continue;
    const advice =
      'pass tensor(x) of this package, or shape, strides and offset, with these two in elements';
    throw new ShapeError(
      op,
      name,
      `${op}: ${name} has ${key} ${found}, which differs from its shape and strides; ${advice}`,
    );
  }
}
const offsetKeys = ['byteOffset', 'start', 'storageOffset', 'begin'];
const columnMajorText = /^\s*(f\b|f_|fortran|cm\b)|col/i;

/** The text of a string or String object, else ''. Runs no code of the caller. */
function textIn(value: unknown): string {
  try {
    return String.prototype.valueOf.call(value);
  } catch {
    return '';
  }
}

/** @internal The strides of a contiguous tensor. */
export function contiguousStrides(shape: readonly number[]): number[] {
  const strides = [...shape];
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis] as number;
  }
  return strides;
}
