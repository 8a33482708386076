/** Tensors as users give and get them, and operands as a call needs them. */
import type { Core } from './core.js';
import { ArgumentError, describe, DisposedError, DTypeError, ShapeError } from './errors.js';

declare global {
  // `using` without a newer library in the user's TypeScript; merges with that of esnext.disposable.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
}

/** What a Float16Array is, for a TypeScript that does not know it. */
export interface Float16ArrayLike {
  readonly BYTES_PER_ELEMENT: number;
  readonly buffer: ArrayBufferLike;
  readonly byteLength: number;
  readonly byteOffset: number;
  readonly length: number;
  readonly [Symbol.toStringTag]: 'Float16Array';
  [index: number]: number;
  fill(value: number, start?: number, end?: number): Float16ArrayLike;
  set(array: ArrayLike<number>, offset?: number): void;
  slice(start?: number, end?: number): Float16ArrayLike;
  subarray(start?: number, end?: number): Float16ArrayLike;
  [Symbol.iterator](): IterableIterator<number>;
}

/** Arrays that hold the types of elements, by ONNX's names for these. */
interface Arrays {
  float32: Float32Array;
  float64: Float64Array;
  /** A Float16Array where the engine has one, else the bits in a Uint16Array. */
  float16: Float16ArrayLike | Uint16Array;
  /** The bits. */
  bfloat16: Uint16Array;
  int32: Int32Array;
  uint32: Uint32Array;
  int64: BigInt64Array;
  uint64: BigUint64Array;
}
export type DType = keyof Arrays;
export type DataArray = Arrays[DType];
export type ArrayOf<D extends DType> = Arrays[D];

/** The array of a result, by that of the operands: float16 by its bits comes back as a Float16Array where there is one. */
export type ResultArray<A extends DataArray> = A extends Uint16Array ? Uint16Array | Float16ArrayLike : A;

/** What a call takes: the elements of a tensor, in an array of the caller's that is only read. */
export interface TensorInput<A extends DataArray = DataArray> {
  /** Exactly as many elements as shape and strides need. */
  readonly data: A;
  readonly shape: readonly number[];
  /** Follows from the array, but for a Uint16Array, which holds the bits of `'float16'` or `'bfloat16'`. */
  readonly dtype?: DType;
  /** From one element to the next along each axis, in elements, 0 or more. Default: contiguous, the last axis fastest. */
  readonly strides?: readonly number[];
}

/** What a call returns: a contiguous tensor with an array of its own. */
export interface Tensor<A extends DataArray = DataArray> {
  readonly data: A;
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/** A tensor in either place. */
export type TensorLike<A extends DataArray = DataArray> = TensorInput<A> | HeapTensor<A>;

interface ArrayClass {
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
  new (buffer: ArrayBuffer, byteOffset: number, length: number): DataArray;
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
};

/** The types that an array of a class may hold. */
const dtypesOf: Record<string, DType[]> = {};
for (const [dtype, { name }] of Object.entries(arrays)) if (name !== 'Uint16Array') dtypesOf[name] = [dtype as DType];
dtypesOf.Uint16Array = ['float16', 'bfloat16'];

/** @internal The array of a type, over a part of the heap. */
export function viewOf(dtype: DType, buffer: ArrayBuffer, address: number, length: number): DataArray {
  return new arrays[dtype](buffer, address, length);
}

/** @internal Bytes of an element. */
export function bytesOf(dtype: DType): number {
  return arrays[dtype].BYTES_PER_ELEMENT;
}

/** What a typed array is in truth, from whatever realm it comes and whatever properties of its own it has. */
function intrinsic(name: typeof Symbol.toStringTag | 'length' | 'buffer' | 'byteOffset'): (array: unknown) => unknown {
  const property = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), name);
  return (array) => property?.get?.call(array) as unknown;
}
/** The name of its class; undefined for anything else. */
const classOf = intrinsic(Symbol.toStringTag) as (value: unknown) => string | undefined;
const lengthOf = intrinsic('length') as (array: DataArray) => number;
const bufferOf = intrinsic('buffer') as (array: DataArray) => ArrayBufferLike;
const offsetOf = intrinsic('byteOffset') as (array: DataArray) => number;

const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for('Symbol.dispose') as typeof Symbol.dispose);

/** @internal Adds `[Symbol.dispose]` to a class, under the engine's symbol or the one that tools put in its place. */
export function disposable(prototype: { dispose(): void }): void {
  Object.defineProperty(prototype, disposeSymbol, {
    value(this: { dispose(): void }) {
      this.dispose();
    },
    configurable: true,
    writable: true,
  });
}

/**
 * A contiguous tensor inside the memory of an instance: calls read and write it in place. Made by `alloc`, filled with zeros. Holds its
 * memory until `dispose()`; garbage collection is only a net.
 */
export class HeapTensor<A extends DataArray = DataArray> {
  readonly #core: Core;
  readonly #dtype: DType;
  readonly #shape: readonly number[];
  readonly #size: number;
  #address: number;

  /** @internal */
  constructor(core: Core, dtype: DType, shape: readonly number[], size: number, address: number) {
    this.#core = core;
    this.#dtype = dtype;
    this.#shape = shape;
    this.#size = size;
    this.#address = address;
  }

  get dtype(): DType {
    return this.#dtype;
  }

  get shape(): readonly number[] {
    return this.#shape;
  }

  /** Number of elements. */
  get size(): number {
    return this.#size;
  }

  /** The elements, as a view of the memory: valid until the next call, which may move the memory. Take it anew, or copy from it. */
  get data(): A {
    const { address, size } = HeapTensor.locate(this, this.#core, 'data', 'tensor');
    return this.#core.viewFor(this, () => viewOf(this.#dtype, this.#core.buffer, address, size)) as A;
  }

  get disposed(): boolean {
    return this.#address === 0 || this.#core.disposed;
  }

  /** Gives the memory back. Does nothing the second time. */
  dispose(): void {
    if (this.#address !== 0) this.#core.abandon(this, this.#address);
    this.#address = 0;
  }

  declare [Symbol.dispose]: () => void;

  /** @internal Whether it is one in truth, and not by its prototype. */
  static is(value: unknown): value is HeapTensor {
    return typeof value === 'object' && value !== null && #core in value;
  }

  /** @internal Where the elements are, of a tensor that is alive and belongs to `core`. */
  static locate(tensor: HeapTensor, core: Core, op: string, name: string): { address: number; size: number } {
    if (tensor.#core !== core) {
      throw new ArgumentError(op, name, `${op}: ${name} is a tensor of another instance; copy its data, or alloc it here`);
    }
    if (core.disposed) throw new DisposedError(op, name, `${op}: the instance that ${name} belongs to is disposed`);
    if (tensor.#address === 0) throw new DisposedError(op, name, `${op}: ${name} is a disposed tensor`);
    return { address: tensor.#address, size: tensor.#size };
  }
}
disposable(HeapTensor.prototype);

/** @internal A tensor as a call writes it to the core. */
export interface Operand {
  readonly name: string;
  readonly dtype: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[] | null;
  /** What holds the elements: a tensor in the heap, an array of the caller's, a number, or nothing but the address. */
  readonly source: HeapTensor | DataArray | number | bigint | null;
  /** Elements that there are. */
  size: number;
  /** In the heap; 0 for what is not there, or not yet. */
  address: number;
  /** The bytes of a caller's array that are to be copied to the heap and back; null for what is there, or has no elements. */
  outside: Uint8Array | null;
}

/** @internal Reads a shape or strides, `label` being how a message starts on them: an array of whole numbers from 0 to 2^53 - 1. */
export function readSizes(op: string, argument: string, label: string, value: unknown): number[] {
  if (!Array.isArray(value)) {
    throw new ShapeError(op, argument, `${op}: ${label} ${describe(value)}; it must be an array of whole numbers`);
  }
  const sizes: number[] = [];
  const rank = value.length;
  if (rank > 64) throw new ShapeError(op, argument, `${op}: ${label} an array of ${rank} numbers; the most is 64`);
  for (let i = 0; i < rank; ++i) {
    const size: unknown = value[i];
    if (!Number.isSafeInteger(size) || (size as number) < 0) {
      throw new ShapeError(
        op,
        argument,
        `${op}: ${label} an array with ${describe(size)} in it; each must be a whole number from 0 to 2^53 - 1`,
      );
    }
    sizes.push(size as number);
  }
  return sizes;
}

/** @internal Reads all that the user's objects say of a tensor, which may run code of the user's; `locate` must follow. */
export function readTensor(core: Core, op: string, name: string, value: unknown): Operand {
  if (HeapTensor.is(value)) {
    return {
      name,
      dtype: core.dtypes.indexOf(value.dtype),
      shape: value.shape,
      strides: null,
      source: value,
      size: 0,
      address: 0,
      outside: null,
    };
  }
  if (typeof value !== 'object' || value === null || value instanceof HeapTensor) {
    const found = value instanceof HeapTensor ? 'not itself a tensor but made of one' : describe(value);
    throw new ArgumentError(op, name, `${op}: ${name} is ${found}; it must be a tensor, { data, shape } or from alloc()`);
  }
  const { data, shape, dtype, strides } = value as Record<keyof TensorInput, unknown>;
  const array = classOf(data) ?? describe(data);
  const held = dtypesOf[array];
  if (!held) {
    throw new DTypeError(op, name, `${op}: ${name} has as data ${array}; it must be ${Object.keys(dtypesOf).join(' or ')}`);
  }
  if (dtype === undefined && held.length > 1) {
    throw new DTypeError(op, name, `${op}: ${name} has a ${array} and no dtype; that must be ${held.join(' or ')}`);
  }
  if (dtype !== undefined && !held.includes(dtype as DType)) {
    throw new DTypeError(op, name, `${op}: ${name} has dtype ${describe(dtype)} and a ${array}; that holds ${held.join(' or ')}`);
  }
  const index = core.dtypes.indexOf((dtype ?? held[0]) as DType);
  const sizes = readSizes(op, name, `${name} has shape`, shape);
  const steps = strides === undefined ? null : readSizes(op, name, `${name} has strides`, strides);
  if (steps !== null && steps.length !== sizes.length) {
    const found = `${name} has strides [${steps.join(', ')}] and shape [${sizes.join(', ')}]`;
    throw new ShapeError(op, name, `${op}: ${found}; there must be one stride an axis`);
  }
  return {
    name,
    dtype: index,
    shape: sizes,
    strides: steps,
    source: data as DataArray,
    size: 0,
    address: 0,
    outside: null,
  };
}

/** @internal Finds the elements of an operand, once no code of the user's can come between any more. */
export function locate(core: Core, op: string, operand: Operand): void {
  const { name, source } = operand;
  if (source === null || typeof source === 'number' || typeof source === 'bigint') return;
  if (HeapTensor.is(source)) {
    const { address, size } = HeapTensor.locate(source, core, op, name);
    operand.address = address;
    operand.size = size;
    return;
  }
  const length = lengthOf(source),
    buffer = bufferOf(source),
    start = offsetOf(source);
  if (length === 0 && isDetached(buffer)) {
    throw new ArgumentError(op, name, `${op}: ${name} has a detached array as data; it was transferred, or the memory under it grew`);
  }
  operand.size = length;
  if (length === 0) return;
  const bytes = length * bytesOf(core.dtypes[operand.dtype] as DType);
  if (buffer !== core.buffer) {
    operand.outside = new Uint8Array(buffer, start, bytes);
    return;
  }
  // A view of the heap is used in place, so it must be part of a tensor that is alive.
  for (const [address, room] of core.tensors) {
    if (address <= start && start + bytes <= address + room) {
      operand.address = start;
      return;
    }
  }
  throw new DisposedError(op, name, `${op}: ${name} has as data a view of this instance's memory, but of no tensor that is alive`);
}

function isDetached(buffer: ArrayBufferLike): boolean {
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}
