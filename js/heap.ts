/** What lives in the memory of an instance until it is disposed of: tensors and packed weights. */
import type { Core } from './core.js';
import { disposable } from './dispose.js';
import { handleKey } from './properties.js';
import { type DataArray, type DType, viewOf } from './tensor.js';
import { ArgumentError, describe, DisposedError, OutOfMemoryError } from './errors.js';

declare global {
  // `using` without a newer library in the user's TypeScript; merges with that of
  // esnext.disposable.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
}

/** @internal Where it is, if it is alive and belongs to `core`. */
export let locateHeld: (object: HeapObject, core: Core, op: string, name: string) => number;
/**
 * @internal Writes a tensor to the block of arguments at `at`, as `write` in call.ts does an
 * operand, and gives where it ends.
 */
export let writeHeld: (
  core: Core,
  op: string,
  name: string,
  tensor: HeapTensor,
  block: Float64Array,
  at: number,
) => number;
/**
 * @internal The elements of a tensor, as a view that lives as long as the memory stays in place.
 */
export let viewHeld: (tensor: HeapTensor) => DataArray;
/** Packed weights as bytes. */
let serialized: (weights: HeapObject) => ReturnType<Uint8Array['slice']>;

/**
 * Something that holds memory of an instance until `dispose()`; garbage collection is only a net.
 */
export abstract class HeapObject {
  readonly #core: Core;
  #address: number;

  /** @internal viewed: bytes that users may see through views. */
  constructor(core: Core, address: number, viewed: number) {
    this.#core = core;
    this.#address = address;
    core.adopt(this, address, viewed);
  }

  get disposed(): boolean {
    return this.#address === 0 || this.#core.disposed;
  }

  /** Gives the memory back. Does nothing the second time. */
  dispose(): void {
    if (this.#address !== 0) this.#core.free(this.#address, this);
    this.#address = 0;
  }

  declare [Symbol.dispose]: () => void;

  static {
    locateHeld = (object, core, op, name) => {
      if (object.#core === core && object.#address !== 0 && !core.disposed) return object.#address;
      const isWeights = PackedWeights.is(object);
      if (object.#core !== core) throw foreignHandle(op, name, isWeights);
      if (core.disposed)
        throw core.ended(op, name, `the instance that ${name} belongs to is disposed`);
      throw disposedHandle(op, name, isWeights);
    };
    viewHeld = (tensor) => {
      const core = tensor.#core;
      const address = locateHeld(tensor, core, 'data', 'tensor');
      return core.viewFor(tensor, () => viewOf(tensor.dtype, core.buffer, address, tensor.size));
    };
    serialized = (weights) => {
      const op = 'serialize';
      const core = weights.#core;
      const address = locateHeld(weights, core, op, 'weights');
      return core.guard(op, () => {
        const length = core.module.serializedBytes(address);
        const staging = core.allocate(length, op);
        try {
          core.check(core.module.serialize(address, staging, length), op);
          return copyOf(core, op, staging, length);
        } finally {
          core.module.release(staging);
        }
      });
    };
  }
}
disposable(HeapObject.prototype);

/** @internal The error of a call with a handle of another instance. */
export function foreignHandle(op: string, name: string, isWeights: boolean): ArgumentError {
  const found = isWeights
    ? 'packed weights of another instance; pack them here'
    : 'a tensor of another instance; copy its data, or alloc it here';
  return new ArgumentError(op, name, `${op}: ${name} is ${found}`);
}

/** @internal The error of a call with a handle that is disposed. */
export function disposedHandle(op: string, name: string, isWeights: boolean): DisposedError {
  const found = isWeights ? 'disposed weights' : 'a disposed tensor';
  return new DisposedError(op, name, `${op}: ${name} is ${found}`);
}

/** Bytes of the heap as an array of its own. */
function copyOf(
  core: Core,
  op: string,
  address: number,
  length: number,
): ReturnType<Uint8Array['slice']> {
  try {
    return core.module.HEAPU8.slice(address, address + length);
  } catch (error) {
    throw new OutOfMemoryError(op, '', `${op}: no array for the ${length} bytes: ${String(error)}`);
  }
}

/**
 * A contiguous tensor inside the memory of an instance: calls read and write it in place. Made by
 * `alloc`, filled with zeros. Holds its memory until `dispose()`; garbage collection is only a net.
 */
export class HeapTensor<A extends DataArray = DataArray> extends HeapObject {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Number of elements. */
  readonly size: number;
  /** The type, as the core has it. */
  readonly #number: number;

  static {
    writeHeld = (core, op, name, tensor, block, at) => {
      const { shape } = tensor;
      const rank = shape.length;
      block[at] = tensor.#number;
      block[at + 1] = locateHeld(tensor, core, op, name);
      block[at + 2] = tensor.size;
      block[at + 3] = rank;
      block[at + 4] = 0;
      for (let axis = 0; axis < rank; ++axis) block[at + 5 + axis] = shape[axis] as number;
      return at + 5 + rank;
    };
  }

  /** @internal */
  constructor(
    core: Core,
    dtype: DType,
    shape: readonly number[],
    size: number,
    address: number,
    bytes: number,
  ) {
    super(core, address, bytes);
    this.dtype = dtype;
    this.shape = Object.freeze(shape);
    this.size = size;
    this.#number = core.dtypes.indexOf(dtype);
    Object.freeze(this); // calls trust what it says of its memory
  }

  /**
   * The elements, as a view of the memory: valid until the next call, which may move the memory.
   * Take it anew, or copy from it.
   */
  get data(): A {
    return viewHeld(this) as A;
  }

  /** @internal Whether it is one in truth, and not by its prototype. */
  static is(value: unknown): value is HeapTensor {
    return typeof value === 'object' && value !== null && #number in value;
  }
}

/**
 * Weights that are laid out once, for any number of calls: they stand where `b` or `weights` does.
 * Made by `pack` or `deserialize`. Hold a copy in the instance's memory until `dispose()`.
 */
export class PackedWeights extends HeapObject {
  /** What they are for: `'gemm'` is for `matmul` too. */
  readonly op: 'gemm' | 'qgemm';
  /** Of the elements, as they are packed. */
  readonly dtype: DType;
  /** [..., K, N], after `trans`. */
  readonly shape: readonly number[];
  /** Bytes of memory that they take. */
  readonly byteLength: number;
  readonly #brand = true;

  static {
    Object.defineProperty(this.prototype, handleKey, {
      value: 'packed weights of another copy of wgemm',
    });
  }

  /** @internal */
  constructor(
    core: Core,
    op: 'gemm' | 'qgemm',
    dtype: DType,
    shape: readonly number[],
    address: number,
    byteLength: number,
  ) {
    super(core, address, 0); // no view shows it
    this.op = op;
    this.dtype = dtype;
    this.shape = Object.freeze(shape);
    this.byteLength = byteLength;
    Object.freeze(this);
  }

  /**
   * The weights as bytes, in an array of their own, which `deserialize` makes weights of again: in
   * another instance, build, engine, or natively. They are the same wherever they were packed.
   * @throws DisposedError, OutOfMemoryError: there must be room for the bytes in the instance's
   * memory
   */
  serialize(): ReturnType<Uint8Array['slice']> {
    const op = 'serialize';
    if (!PackedWeights.is(this))
      throw new ArgumentError(
        op,
        'weights',
        `${op}: weights is ${describe(this)}; it must be packed weights`,
      );
    return serialized(this);
  }

  /** @internal Whether it is one in truth. */
  static is(value: unknown): value is PackedWeights {
    return typeof value === 'object' && value !== null && #brand in value;
  }
}
