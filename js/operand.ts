/** Operands as a call needs them: what the user's objects say, and where the elements are. */
import type { Core } from './core.js';
import { ArgumentError, describe, DisposedError, DTypeError } from './errors.js';
import { HeapTensor, locateHeld, PackedWeights } from './heap.js';
import { handleIn, isList, isReadable, unpolluted } from './properties.js';
import {
  bufferOf,
  bytesOf,
  classOf,
  type DataArray,
  type DType,
  dtypesOf,
  isDetached,
  lengthOf,
  offsetOf,
  readLayout,
  tensorKeys,
} from './tensor.js';

/**
 * @internal What stands for an operand's type in the block of arguments where there is no tensor.
 */
export const absent = -1,
  packedWeights = -2,
  aNumber = -3;

/** @internal A tensor as a call writes it to the core. */
export interface Operand {
  readonly name: string;
  /** Its number in the core; `packedWeights` where that is what stands here. */
  readonly dtype: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[] | null;
  /**
   * What holds the elements: a tensor in the heap, an array of the caller's, a number, or nothing
   * but the address.
   */
  readonly source: HeapTensor | PackedWeights | DataArray | number | bigint | null;
  /** Elements that there are. */
  size: number;
  /** In the heap; 0 for what is not there, or not yet. */
  address: number;
  /**
   * Where a caller's array has the bytes that are copied to the heap and back; null for what is
   * there, or has no elements. Not a typed array: engines limit its length, and bytes may exceed
   * that.
   */
  outside: ArrayBufferView | null;
}

/**
 * @internal Reads all that the user's objects say of a tensor, which may run code of the user's;
 * `locate` must follow.
 */
export function readTensor(core: Core, op: string, name: string, value: unknown): Operand {
  if (HeapTensor.is(value))
    return operandOf(name, core.dtypes.indexOf(value.dtype), value.shape, value);
  if (PackedWeights.is(value)) {
    if (name !== 'B' && name !== 'weights') {
      const place = op === 'matmul' ? 'weights' : 'B';
      throw new ArgumentError(
        op,
        name,
        `${op}: ${name} is packed weights, which can only stand for ${place}`,
      );
    }
    if (op === 'pack') throw new ArgumentError(op, name, `${op}: ${name} is packed already`);
    return operandOf(name, packedWeights, [], value);
  }
  const imitates =
    isReadable(value) && (value instanceof HeapTensor || value instanceof PackedWeights);
  if (!isReadable(value) || imitates) {
    const found = imitates
      ? 'not itself what alloc() or pack() gave but made of it'
      : describe(value);
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${found}; it must be a tensor, { data, shape } or from alloc()`,
    );
  }
  const handle = handleIn(value);
  if (handle !== undefined)
    throw new ArgumentError(op, name, `${op}: ${name} is ${handle}; it must be of this instance`);
  const tensor = unpolluted(value, tensorKeys);
  const { data, dtype } = tensor;
  const mistaken = data === undefined ? kindOf(value) : undefined;
  if (mistaken !== undefined)
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} is ${mistaken}; it must be a tensor, { data, shape }`,
    );
  const array = classOf(data) ?? describe(data);
  const held = dtypesOf[array];
  if (!held) {
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} has as data ${array}; it must be ${Object.keys(dtypesOf).join(' or ')}`,
    );
  }
  if (dtype === undefined && held.length > 1) {
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} has a ${array} and no dtype; that must be ${held.join(' or ')}`,
    );
  }
  if (dtype !== undefined && !held.includes(dtype as DType)) {
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} has dtype ${describe(dtype)} and a ${array}; that holds ${held.join(' or ')}`,
    );
  }
  const index = core.dtypes.indexOf((dtype ?? held[0]) as DType);
  const { sizes, steps } = readLayout(op, name, tensor);
  return operandOf(name, index, sizes, data as DataArray, steps);
}

/** What users take for a tensor. */
function kindOf(value: object): string | undefined {
  const array = classOf(value);
  if (array !== undefined) return array in dtypesOf ? `a ${array} without a shape` : undefined;
  if (isList(value)) return 'an array';
  return typeof (value as PromiseLike<unknown>).then === 'function'
    ? 'a promise, which must be awaited'
    : undefined;
}

/** @internal */
export function operandOf(
  name: string,
  dtype: number,
  shape: readonly number[],
  source: Operand['source'],
  strides: readonly number[] | null = null,
): Operand {
  return { name, dtype, shape, strides, source, size: 0, address: 0, outside: null };
}

/** @internal Whether a value is an array that can hold elements. */
export function isDataArray(value: unknown): value is DataArray {
  return (classOf(value) ?? '') in dtypesOf;
}

/**
 * @internal Finds the elements of an operand, once no code of the user's can come between any more.
 */
export function locate(core: Core, op: string, operand: Operand): void {
  const { name, source } = operand;
  if (source === null || typeof source === 'number' || typeof source === 'bigint') return;
  if (HeapTensor.is(source) || PackedWeights.is(source)) {
    operand.address = locateHeld(source, core, op, name);
    operand.size = HeapTensor.is(source) ? source.size : 0;
    return;
  }
  const length = lengthOf(source),
    buffer = bufferOf(source),
    start = offsetOf(source);
  if (length === 0 && isDetached(buffer)) {
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} has a detached array as data; it was transferred, or the memory under it grew`,
    );
  }
  operand.size = length;
  if (length === 0) return;
  const bytes = length * bytesOf(core.dtypes[operand.dtype] as DType);
  if (!core.owns(buffer)) {
    operand.outside = { buffer, byteOffset: start, byteLength: bytes };
    return;
  }
  // A view of the heap is used in place, so it must be part of a tensor that is alive.
  if (core.holds(start, bytes)) operand.address = start;
  else
    throw new DisposedError(
      op,
      name,
      `${op}: ${name} has as data a view of this instance's memory, but of no tensor that is alive`,
    );
}

/** @internal The bytes of an array that memory has room for. */
export function viewOfBytes({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}
