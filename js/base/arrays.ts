/** Typed arrays by type of elements, and what they say of themselves. */
import { ArgumentError } from './errors.js';
import type { DataArray, DType } from './tensor.js';

export interface ArrayClass {
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

/** The getter of a property of every typed array. It ignores properties that users add. */
function getterOf(name: string | symbol): (this: unknown) => unknown {
  const prototype = Object.getPrototypeOf(Uint8Array.prototype) as object;
  const property = Object.getOwnPropertyDescriptor(prototype, name) as {
    get(this: unknown): unknown;
  };
  // eslint-disable-next-line @typescript-eslint/unbound-method -- callers give the array
  return property.get;
}

const getClass = getterOf(Symbol.toStringTag);
const getLength = getterOf('length');
const getByteLength = getterOf('byteLength');
const getBuffer = getterOf('buffer');
const getByteOffset = getterOf('byteOffset');

// These functions take arrays of any realm. Each is written out, so that engines compile it to a
// load.

/** @internal The name of its class; undefined for anything else. */
export const classOf = (value: unknown) => getClass.call(value) as string | undefined;

/** @internal */
export const lengthOf = (array: DataArray) => getLength.call(array) as number;

/** @internal */
export const byteLengthOf = (array: DataArray) => getByteLength.call(array) as number;

/** @internal */
export const bufferOf = (array: DataArray) => getBuffer.call(array) as ArrayBufferLike;

/** @internal */
export const offsetOf = (array: DataArray) => getByteOffset.call(array) as number;

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

/** @internal Throws if an array is detached. `found`: the words of the message for that. */
export function checkAttached(op: string, name: string, array: DataArray, found?: string): void {
  if (lengthOf(array) === 0 && isDetached(bufferOf(array))) throw detachedArray(op, name, found);
}

/** @internal The error of a call with an array that is detached. */
export function detachedArray(
  op: string,
  name: string,
  found = 'has a detached array as data',
): ArgumentError {
  const message = `${op}: ${name} ${found}; it was transferred, or the memory under it grew`;
  return new ArgumentError(op, name, message);
}
