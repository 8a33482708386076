/** Tensors from arrays and from other libraries, and nested arrays from tensors. */
import { checkAttached, classOf, dtypeNames, dtypesOf, lengthOf } from '../base/arrays.js';
import {
  ArgumentError,
  describe,
  DTypeError,
  OutOfMemoryError,
  ShapeError,
} from '../base/errors.js';
import {
  contiguousStrides,
  extentIn,
  isRank,
  type Layout,
  readLayout,
  readSizes,
  tensorKeys,
} from '../base/layout.js';
import { messageOf } from '../base/port.js';
import { has, isList, isReadable } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { ArrayOf, DataArray, DType, TensorInput } from '../base/tensor.js';
import { readData } from '../call/operand.js';
import {
  disposedHandle,
  HeapTensor,
  type TensorLike,
  type TensorView,
  viewHeld,
} from '../instance/heap.js';
import { isDType, makeArray, type ReadElement, readElements } from './foreign-elements.js';
import type {
  ElementOf,
  Nested,
  NestedInput,
  TensorOptions,
  TensorSource,
} from './foreign-types.js';
import { checkTensor } from './quantize-arguments.js';

type Properties = Record<string, unknown>;

/** Properties of tensors, here and in other libraries. */
// prettier-ignore
const keys = [
  ...tensorKeys, 'dataSync', 'values', 'storage', 'rows', 'columns', 'to2DArray', 'isMatrix',
  'toArray',
];

/** Reads the properties of a tensor, each once. */
function readProperties(op: string, name: string, x: unknown): Properties {
  checkTensor(op, name, x);
  const properties = Object.create(null) as Properties;
  for (const key of keys) {
    // The data of a tensor in the heap is a view, which may become invalid.
    if (key === 'data' && HeapTensor.is(x)) properties[key] = x;
    else if (has(x, key)) properties[key] = (x as Properties)[key];
  }
  return properties;
}

/** A copy of a shape or strides. Other values stay as they are. */
function copyList(list: unknown): unknown {
  const length = isList(list) ? list.length : undefined;
  return isRank(length) ? Array.from({ length }, (_, axis) => (list as unknown[])[axis]) : list;
}

/** Where the elements of a tensor are. */
interface ElementSource {
  /** A typed array, an array, or an object that has `get(index)`. */
  readonly data: unknown;
  /** The caller's data: `data`, or the tensor in the heap that `data` is a view of. */
  readonly given: unknown;
  /** The type, as the caller states it. */
  readonly dtype: unknown;
  /** The same elements from the first one in memory on, as if no stride were negative. */
  readonly layout: Layout;
  readonly steps: readonly number[];
  /** How far negative strides reach back: 0 or less. */
  readonly back: number;
}

/** Finds the elements of a tensor. */
function readSource(op: string, name: string, x: unknown, properties: Properties): ElementSource {
  const { dataSync, values, storage, strides, stride } = properties;
  let { data, dtype } = properties;
  if (typeof dtype === 'string' && /complex|string/.test(dtype)) {
    const found = `${name} has dtype ${describe(dtype)}`;
    throw new DTypeError(op, name, `${op}: ${found}; its elements must be real numbers`);
  }
  const isTfjs = typeof dataSync === 'function' || data === undefined;
  if (isTfjs) {
    try {
      data = typeof dataSync === 'function' ? (dataSync.call(x) as unknown) : values;
    } catch (error) {
      const advice = `pass { data: await ${name}.data(), shape: ${name}.shape }`;
      const message = `${name} has no data at once (${messageOf(error)}); ${advice}`;
      throw new ArgumentError(op, name, `${op}: ${message}`);
    }
  }
  if (isReadable(storage)) properties.offset ??= (storage as Properties).offset; // of numpy-ts
  const { offset } = properties;
  const sizes = copyList(properties.shape);
  // Strides of tfjs lack the last axis.
  const steps = isTfjs ? undefined : copyList(strides ?? stride);
  let back = 0;
  properties.shape = sizes;
  properties.strides =
    isList(steps) && isRank(steps.length)
      ? steps.map((step, axis) => {
          if (typeof step !== 'number' || step >= 0) return step;
          const size = (sizes as number[] | undefined)?.[axis] as number;
          back += (size && size - 1) * step;
          return -step;
        })
      : steps;
  properties.stride = null;
  if (back) properties.offset = (typeof offset === 'number' ? offset : 0) + back;
  const layout = readLayout(op, name, properties);
  const given = data;
  if (HeapTensor.is(data)) {
    if (data.disposed) throw disposedHandle(op, name, false);
    ({ dtype } = data);
    data = viewHeld(data);
  }
  if (classOf(data) !== undefined) checkAttached(op, name, data as DataArray);
  else if (!isList(data) && !(isReadable(data) && typeof (data as Properties).get === 'function'))
    readData(op, name, { data }, dtypesOf); // throws
  extentIn(op, name, lengthIn(data) as number, layout);
  return {
    data,
    given,
    dtype,
    layout,
    steps: layout.steps ? (steps as number[]) : contiguousStrides(layout.sizes),
    back,
  };
}

/** The length of an array or a typed array; undefined for most other values. */
function lengthIn(value: unknown): unknown {
  return classOf(value) === undefined
    ? (value as { length?: unknown } | undefined)?.length
    : lengthOf(value as DataArray);
}

/** A pass through all elements, in order. */
interface Pass {
  readonly op: string;
  /** The type that elements are converted to. */
  readonly dtype: DType | undefined;
  readonly shape: readonly number[];
  readonly steps: readonly number[];
  /** Reads the element at an index; null: the elements are in nested arrays. */
  readonly read: ReadElement | null;
  /** The index along each axis where the pass is. */
  readonly place: number[];
  /** Takes an element; null: the pass makes nested arrays. */
  readonly put: ((element: unknown) => void) | null;
}

/** Passes through the axes from `axis` on. `at`: where they begin, an index or an array. */
function walk(pass: Pass, axis: number, at: unknown): unknown {
  const { op, shape, place, put } = pass;
  const size = shape[axis];
  if (size === undefined) {
    const element = pass.read ? pass.read(at as number) : at;
    return put ? put(element) : element;
  }
  const step = pass.steps[axis] as number;
  let { read } = pass;
  if (!read) {
    const isArray = isList(at) || classOf(at) !== undefined;
    const length = isArray ? lengthIn(at) : undefined;
    if (length !== size) {
      const path = place.slice(0, axis).map((index) => `[${index}]`);
      const found = isArray ? `has ${describe(length)} elements` : `is ${describe(at)}`;
      const first = `x${'[0]'.repeat(axis)} has ${size}`;
      const message = `x${path.join('')} ${found} and ${first}; all must have the same number`;
      throw new ShapeError(op, 'x', `${op}: ${message}`);
    }
    [, read] = readElements(op, 'x', at, undefined, pass.dtype);
  }
  const list = [];
  for (let i = 0; i < size; ++i) {
    place[axis] = i;
    const nested = walk(pass, axis + 1, pass.read ? (at as number) + i * step : read(i));
    if (!put) list.push(nested);
  }
  return list;
}

/** Copies elements to a tensor with an array of its own. */
function copy(
  op: string,
  dtype: DType,
  shape: readonly number[],
  steps: readonly number[],
  read: ReadElement | null,
  at: unknown,
): TensorInput {
  const place: number[] = [];
  const [data, put] = makeArray(op, dtype, shape, place);
  // A size of 0 may stand next to one of 2^50. Nested arrays are checked as they are passed.
  if (!read || data.length > 0) walk({ op, dtype, shape, steps, read, place, put }, 0, at);
  return { data, shape, dtype };
}

/** The default type of elements whose array determines none. */
function defaultType(sample: unknown): DType {
  const array = classOf(sample);
  if (array !== undefined) return array === 'Int16Array' ? 'int32' : 'uint8';
  return typeof sample === 'bigint' ? 'int64' : 'float32';
}

/**
 * Makes a tensor of a type that the call names. Conversions to floats round half to even, once.
 * Conversions of bigints begin with the nearest float64. Conversions to integers throw unless each
 * element is whole and in range.
 *
 * @example
 * import * as np from 'numpy-ts';
 * tensor(np.array([[1, 2]]), { dtype: 'bfloat16' }); // Uint16Array of bits, of shape [1, 2]
 *
 * @param x a number, nested arrays, a typed array, or a tensor of this or another library
 * @param options `dtype` is required
 * @typeParam D the type of the elements
 * @returns a tensor. Its array is the caller's if that has this type and calls can read it. If not,
 * the array is new
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Conversion
 */
export function tensor<D extends DType>(
  x: TensorSource,
  options: {
    /** The type of the result. */
    dtype: D;
  },
): TensorInput<ArrayOf<D>>;

/**
 * Makes a tensor of float32 from a number, or from nested arrays of numbers.
 *
 * @example
 * tensor([[1, 2, 3], [4, 5, 6]]); // float32, of shape [2, 3]
 *
 * @param x a number, or nested arrays with one level per axis
 * @param options without `dtype`
 * @returns a contiguous tensor with a new array
 * @throws ShapeError, ArgumentError, OutOfMemoryError
 */
export function tensor(
  x: number | NestedInput<number>,
  options?: TensorOptions<undefined>,
): TensorInput<Float32Array>;

/**
 * Makes a tensor of int64 from a bigint, or from nested arrays of bigints.
 *
 * @param x a bigint, or nested arrays with one level per axis
 * @param options without `dtype`
 * @returns a contiguous tensor with a new array
 * @throws ShapeError, ArgumentError, OutOfMemoryError
 */
export function tensor(
  x: bigint | NestedInput<bigint>,
  options?: TensorOptions<undefined>,
): TensorInput<BigInt64Array>;

/**
 * Makes a tensor from a typed array, from nested arrays of typed arrays, or from a tensor of this
 * library. It has the type of the array.
 *
 * @param x a typed array, which is a vector; nested arrays of them; or a tensor
 * @param options without `dtype`
 * @typeParam A the class of the array
 * @returns a tensor. Its array is the array of x, or the tensor in the heap. For nested arrays it
 * is new
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function tensor<A extends DataArray>(
  x: A | NestedInput<A> | TensorLike<A> | TensorView<A>,
  options?: TensorOptions<undefined>,
): TensorInput<A>;

/**
 * Makes a tensor from a tensor of another library that names its type as this one does.
 *
 * @example
 * import ndarray from 'ndarray';
 * tensor(ndarray(new Float64Array(6), [2, 3]).transpose(1, 0)); // float64, not copied
 *
 * @param x a tensor of another library
 * @param options without `dtype`
 * @typeParam D the type of the elements
 * @returns a tensor. Its array is the array of x if calls can read it. If not, the array is new
 * @throws ShapeError, DTypeError, ArgumentError, OutOfMemoryError
 */
export function tensor<D extends DType>(
  x: {
    /** The elements. */
    readonly data: unknown;
    /** The size of each axis, in elements. */
    readonly shape: readonly number[];
    /** The type of the elements. */
    readonly dtype: D;
  },
  options?: TensorOptions<undefined>,
): TensorInput<ArrayOf<D>>;

/**
 * Makes a tensor from a number, nested arrays, a typed array or a tensor of another library. Such
 * libraries are ndarray, numpy-ts, `@stdlib/ndarray`, tfjs, ml-matrix and mathjs.
 *
 * @param x a number, nested arrays, a typed array, or a tensor of this or another library
 * @param options all have defaults
 * @returns a tensor. Its array is the caller's if calls can read it. If not, the array is new
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
 */
export function tensor(x: TensorSource, options?: TensorOptions): TensorInput;

/**
 * Makes a tensor from a number, nested arrays, a typed array or a tensor of another library. Such
 * libraries are ndarray, numpy-ts, `@stdlib/ndarray`, tfjs, ml-matrix and mathjs.
 *
 * A tensor of another library may be a view, with an offset and strides, which may be negative.
 * Nothing is copied if calls can read the elements where they are. The result then has the caller's
 * array, or the tensor in the heap. Otherwise the result is contiguous and has a new array. The
 * call copies nested arrays, matrices of ml-matrix and mathjs, tensors with negative strides, and
 * elements of another type than `dtype`. It also copies an Int16Array and a Uint8ClampedArray. The
 * data of a tensor of tfjs is what its `dataSync()` returns.
 */
export function tensor(x: unknown, options?: unknown): unknown {
  const op = 'tensor';
  const { dtype: wanted } = readOptions(op, options, ['dtype']);
  if (wanted !== undefined && !isDType(wanted)) {
    const message = `dtype is ${describe(wanted)}; it must be ${dtypeNames.join(' or ')}`;
    throw new DTypeError(op, 'dtype', `${op}: ${message}`);
  }
  const isNested = typeof x === 'number' || typeof x === 'bigint' || isList(x);
  const isArray = classOf(x) !== undefined;
  const properties =
    isNested || isArray ? (Object.create(null) as Properties) : readProperties(op, 'x', x);
  if (isArray) {
    properties.data = x;
    properties.shape = [lengthOf(x as DataArray)];
  }
  const { to2DArray, rows, columns, isMatrix, toArray } = properties;
  const label = 'x has shape';
  if (typeof to2DArray === 'function') {
    const shape = readSizes(op, 'x', label, [rows, columns]);
    return copy(op, wanted ?? 'float64', shape, [], null, to2DArray.call(x));
  }
  const isMathjs = isMatrix === true && typeof toArray === 'function';
  if (isNested || isMathjs) {
    const nested: unknown = isMathjs ? toArray.call(x) : x;
    const sizes: unknown[] = [];
    let first: unknown = nested;
    while (isList(first) && sizes.length <= 64) {
      sizes.push(first.length);
      first = first[0];
    }
    if (classOf(first) !== undefined) sizes.push(lengthIn(first));
    const [dtype = defaultType(first)] = readElements(op, 'x', first, undefined, wanted);
    return copy(op, wanted ?? dtype, readSizes(op, 'x', label, sizes), [], null, nested);
  }
  const { data, given, dtype: said, layout, steps, back } = readSource(op, 'x', x, properties);
  const { sizes: shape, offset } = layout;
  const [known, read] = readElements(op, 'x', data, said, wanted);
  const first = (offset ?? 0) - back;
  const dtype =
    wanted ??
    known ??
    (isDType(said) ? said : defaultType(classOf(data) === undefined ? read(first) : data));
  if (dtype !== known || back) return copy(op, dtype, shape, steps, read, first);
  const isPlain = offset === null && layout.steps === null;
  return {
    data: given,
    shape,
    dtype,
    ...(isPlain ? undefined : { strides: layout.steps ?? steps, offset: first }),
  };
}

/** The most elements and arrays that `toNested` makes. */
const most = 2 ** 26;

/**
 * Returns the elements of a matrix in nested arrays, one per row. The type of the shape must be two
 * numbers, as in a result of `gemm`.
 *
 * @example
 * toNested(wg.gemm(tensor([[1, 2]]), tensor([[3], [4]]))); // [[11]]
 *
 * @param y a result, another tensor or a view of one, or a tensor in the heap. For a tensor in a
 * worker, pass `{ data, shape }` with the array that its `read()` returns
 * @typeParam A the class of the array
 * @returns new arrays of numbers, or of bigints for int64 and uint64
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError; OutOfMemoryError for more than 2^26
 * elements or arrays
 *
 * @category Conversion
 */
export function toNested<A extends DataArray>(
  y: (TensorLike<A> | TensorView<A>) & { readonly shape: readonly [number, number] },
): ElementOf<A>[][];

/**
 * Returns the elements of a tensor in nested arrays, one level per axis. A tensor of rank 0 returns
 * its number.
 *
 * @param y a result, another tensor or a view of one, or a tensor in the heap. For a tensor in a
 * worker, pass `{ data, shape }` with the array that its `read()` returns
 * @typeParam A the class of the array
 * @returns new arrays of numbers, or of bigints for int64 and uint64
 * @throws ShapeError, DTypeError, ArgumentError, DisposedError; OutOfMemoryError for more than 2^26
 * elements or arrays
 */
export function toNested<A extends DataArray>(
  y: TensorLike<A> | TensorView<A>,
): Nested<ElementOf<A>>;

/** Returns the elements of a tensor in nested arrays, one level per axis. */
export function toNested(y: unknown): unknown {
  const op = 'toNested';
  const source = readSource(op, 'y', y, readProperties(op, 'y', y));
  const { data, dtype, steps, back } = source;
  const { sizes: shape, offset } = source.layout;
  readData(op, 'y', { data, dtype }, dtypesOf);
  let lists = 1;
  let all = 0;
  for (const size of shape) all += lists *= size;
  if (all > most) {
    const found = `y has shape [${shape.join(', ')}]`;
    throw new OutOfMemoryError(op, 'y', `${op}: ${found}; nested arrays hold up to 2^26 elements`);
  }
  const [, read] = readElements(op, 'y', data, dtype, undefined);
  const pass = { op, dtype: undefined, shape, steps, read, place: [], put: null };
  return walk(pass, 0, (offset ?? 0) - back);
}
