/** Operands as a call needs them: what the caller's objects say, and where the elements are. */
import {
  bufferOf,
  bytesOf,
  checkAttached,
  classOf,
  dtypesOf,
  lengthOf,
  offsetOf,
} from '../base/arrays.js';
import { ArgumentError, describe, DisposedError, DTypeError, isPromise } from '../base/errors.js';
import { extentIn, type Layout, readLayout, tensorKeys } from '../base/layout.js';
import { handleIn, has, isList, isReadable, unpolluted } from '../base/properties.js';
import { callOf } from '../base/read-options.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, imitatesHandle, locateHeld, PackedWeights } from '../instance/heap.js';

/**
 * @internal What the readers of arguments need of the instance whose call they read. For an
 * instance in this thread it is the Core. For one in a worker it is the Link to that worker.
 */
export interface Reader {
  /** Names of the types, in the order of the core's numbers. */
  readonly dtypes: readonly DType[];
  /** Options that every call takes besides its own. */
  readonly callOptions?: readonly string[];
  /** Recognizes handles in a worker, if calls take them. */
  readonly handles?: {
    isTensor(value: unknown): value is Handle;
    isWeights(value: unknown): value is Handle;
    /** Whether it has the prototype of a handle. */
    resembles(value: object): boolean;
  };
  /** Throws unless the instance is alive. */
  checkAlive(op: string): void;
}

/** @internal A handle of elements in the memory of an instance, here or in a worker. */
export interface Handle {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly disposed: boolean;
}

/**
 * @internal What stands for the type of an operand in the block of arguments if it is not a tensor.
 */
export const absent = -1,
  packedWeights = -2,
  aNumber = -3;

/** @internal A tensor as a call writes it to the core. */
export interface Operand {
  readonly name: string;
  /** Number of its type in the core; or `packedWeights`. */
  readonly dtype: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[] | null;
  /** Index of the first element in `source`; null if the caller gives none. */
  readonly offset: number | null;
  /**
   * The holder of the elements: a handle, an array of the caller, or a number. null: only `address`
   * tells where they are.
   */
  readonly source: Handle | DataArray | number | bigint | null;
  /** Number of elements in memory, from the first to the last one. */
  size: number;
  /** Address in the heap; 0 while the elements are elsewhere. */
  address: number;
  /**
   * The bytes in the caller's array that are copied to the heap and back; null if there are no
   * elements, or they are in the heap. Not a typed array: engines limit its length, and bytes may
   * exceed that limit.
   */
  outside: ArrayBufferView | null;
}

/**
 * @internal Reads what the caller's objects say of a tensor. This may run code of the caller, so
 * `locate` must follow.
 * @param arrays the classes of arrays that errors offer. Default: all
 */
export function readTensor(
  reader: Reader,
  op: string,
  name: string,
  value: unknown,
  arrays?: readonly string[],
): Operand {
  const { dtypes, handles } = reader;
  if (isReadable(value) && isLiteral(value)) return readPlain(reader, op, name, value, arrays);
  if (HeapTensor.is(value) || handles?.isTensor(value))
    return operandOf(name, dtypes.indexOf(value.dtype), value.shape, value);
  if (PackedWeights.is(value) || handles?.isWeights(value)) {
    if (name !== 'B' && name !== 'weights') {
      const rule = 'which can only stand for the second matrix of a product';
      throw new ArgumentError(op, name, `${op}: ${name} is packed weights, ${rule}`);
    }
    if (op === 'pack') throw new ArgumentError(op, name, `${op}: ${name} is packed already`);
    return operandOf(name, packedWeights, [], value);
  }
  if (!isReadable(value)) {
    // In BLAS, sizes and letters come first.
    const isBlas = typeof value === 'number' || typeof value === 'string';
    const isFirst = name === 'A' || name === 'src';
    throw notTensor(op, name, describe(value), isBlas && isFirst ? callOf[op] : undefined);
  }
  if (imitatesHandle(value) || handles?.resembles(value))
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is a copy of a handle; pass the handle that alloc() or pack() returned`,
    );
  return readPlain(reader, op, name, value, arrays);
}

/** Whether an object is a literal. */
const isLiteral = (value: object) => Object.getPrototypeOf(value) === Object.prototype;

/** Reads an object that is not a handle. Handles have other prototypes, which cannot change. */
function readPlain(
  reader: Reader,
  op: string,
  name: string,
  value: object,
  arrays: readonly string[] | undefined,
): Operand {
  const { dtypes, handles } = reader;
  checkOurs(op, name, value);
  const tensor = unpolluted(value, tensorKeys);
  const { data, dtype } = tensor; // once: they may be getters
  const array = classOf(data);
  const isArray = array !== undefined;
  if (!isArray && (HeapTensor.is(data) || handles?.isTensor(data))) {
    const { dtype: held } = data;
    if (dtype !== undefined && dtype !== held) {
      const found = `has dtype ${describe(dtype)} and as data a tensor of ${held}`;
      throw new DTypeError(op, name, `${op}: ${name} ${found}; it must be ${held} or absent`);
    }
    return operandIn(name, dtypes.indexOf(held), readLayout(op, name, tensor), data);
  }
  if (data === undefined) checkMistaken(op, name, value);
  if (!isArray && isReadable(data) && !PackedWeights.is(data) && !handles?.isWeights(data))
    checkOurs(op, name, data);
  const read = readData(op, name, { data, dtype }, dtypesOf, array, arrays);
  return operandIn(name, dtypes.indexOf(read.dtype), readLayout(op, name, tensor), read.data);
}

function notTensor(op: string, name: string, found: string, advice?: string): ArgumentError {
  const rule = 'it must be a tensor, { data, shape } or from alloc()';
  const message = `${op}: ${name} is ${found}; ${rule}${advice ? `; ${advice}` : ''}`;
  return new ArgumentError(op, name, message);
}

/** Throws for an object without data: options, a matrix of another library and so on. */
function checkMistaken(op: string, name: string, value: object): void {
  const mistaken = kindOf(value);
  if (mistaken !== undefined)
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} is ${mistaken}; it must be a tensor, { data, shape }` +
        (isList(value) ? `; ${conversion}` : ''),
    );
  if (has(value, 'data')) return;
  const [key] = Object.keys(value);
  const found = key === undefined ? 'without data' : `with ${describe(key)} and no data`;
  // Options are a literal, and matrices of other libraries have classes.
  const advice = (isLiteral(value) ? callOf[op] : undefined) ?? conversion;
  throw notTensor(op, name, `an object ${found}`, advice);
}

/** Throws for a handle of another entry or copy of this package. */
function checkOurs(op: string, name: string, value: object): void {
  const handle = handleIn(value);
  if (handle !== undefined)
    throw new ArgumentError(op, name, `${op}: ${name} is ${handle}; it must be of this instance`);
}

/**
 * @internal Reads the array of a tensor, and its type. `allowed`: the types that an array of each
 * class may hold. `found`: the class of the array. `arrays`: the classes that errors offer.
 * Default: all allowed.
 */
export function readData(
  op: string,
  name: string,
  { data, dtype }: Record<string, unknown>,
  allowed: Record<string, readonly DType[]>,
  found = classOf(data),
  arrays?: readonly string[],
): { data: DataArray; dtype: DType } {
  const array = found ?? describe(data);
  const held = allowed[array];
  const lacksType = dtype === undefined && held !== undefined && held.length > 1;
  if (!held || (lacksType && arrays?.includes(array) === false)) {
    const names = arrays ?? Object.keys(allowed);
    const advice = found === undefined ? `; ${conversion}` : '';
    throw new DTypeError(
      op,
      name,
      `${op}: the data of ${name} is ${array}; it must be ${names.join(' or ')}${advice}`,
    );
  }
  if (lacksType) {
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} has a ${array} and no dtype; dtype must be ${held.join(' or ')}`,
    );
  }
  if (dtype !== undefined && !held.includes(dtype as DType)) {
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} has dtype ${describe(dtype)} and a ${array}; that holds ${held.join(' or ')}`,
    );
  }
  return { data: data as DataArray, dtype: (dtype ?? held[0]) as DType };
}

const conversion = 'convert it by tensor(...)';

/** The name of a kind of values that callers mistake for tensors. */
function kindOf(value: object): string | undefined {
  const array = classOf(value);
  if (array !== undefined) return array in dtypesOf ? `a ${array} without a shape` : undefined;
  if (isList(value)) return 'an array';
  return isPromise(value) ? describe(value) : undefined;
}

/** @internal */
export function operandOf(
  name: string,
  dtype: number,
  shape: readonly number[],
  source: Operand['source'],
  strides: readonly number[] | null = null,
  offset: number | null = null,
): Operand {
  return { name, dtype, shape, strides, offset, source, size: 0, address: 0, outside: null };
}

function operandIn(
  name: string,
  dtype: number,
  { sizes, steps, offset }: Layout,
  source: Operand['source'],
): Operand {
  return operandOf(name, dtype, sizes, source, steps, offset);
}

/** @internal Whether a value is an array that can hold elements. */
export function isDataArray(value: unknown): value is DataArray {
  return (classOf(value) ?? '') in dtypesOf;
}

/**
 * @internal Sets the size of an operand, whose source has `length` elements. Returns the index of
 * its first element. Throws if the source is too short for its strides or offset.
 */
export function findIn(op: string, operand: Operand, length: number): number {
  const { name, shape, strides, offset } = operand;
  operand.size = length;
  if (strides === null && offset === null) return 0; // the core checks the length
  const layout = { sizes: shape, steps: strides, offset };
  operand.size = extentIn(op, name, length, layout);
  return offset ?? 0;
}

/**
 * @internal Finds the elements of an operand. From here on no code of the caller may run before the
 * call has copied them.
 */
export function locate(core: Core, op: string, operand: Operand): void {
  const { name, source } = operand;
  if (source === null || typeof source === 'number' || typeof source === 'bigint') return;
  if (PackedWeights.is(source)) {
    operand.address = locateHeld(source, core, op, name);
    return;
  }
  const bytes = bytesOf(core.dtypes[operand.dtype] as DType);
  if (HeapTensor.is(source)) {
    const address = locateHeld(source, core, op, name);
    operand.address = address + findIn(op, operand, source.size) * bytes;
    return;
  }
  const array = source as DataArray; // this instance takes no handles in a worker
  checkAttached(op, name, array);
  const buffer = bufferOf(array);
  const start = offsetOf(array) + findIn(op, operand, lengthOf(array)) * bytes;
  if (operand.size === 0) return;
  const byteLength = operand.size * bytes;
  if (!core.owns(buffer)) {
    operand.outside = { buffer, byteOffset: start, byteLength };
    return;
  }
  // The call does not copy a view of the heap, so a tensor that is alive must contain it.
  if (core.holds(start, byteLength)) operand.address = start;
  else
    throw new DisposedError(
      op,
      name,
      `${op}: the data of ${name} is a view of a tensor that was disposed`,
    );
}

/** @internal The bytes of an array, which memory must have room for: engines limit this view. */
export function viewOfBytes({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}
