/** Handles of memory in an instance, which last until `dispose()`: tensors and packed weights. */
import { classOf, viewOf } from '../base/arrays.js';
import { disposable } from '../base/dispose.js';
import { ArgumentError, describe, DisposedError, OutOfMemoryError } from '../base/errors.js';
import { printable } from '../base/printable.js';
import { handleKey } from '../base/properties.js';
import type { DataArray, DType, DTypeOf, NewArrays, TensorInput } from '../base/tensor.js';
import type { Core } from './core.js';

declare global {
  // `using` without a newer library in the user's TypeScript; merges with the
  // declaration of esnext.disposable.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
}

/** @internal Returns its address. Throws if it is disposed or belongs to another instance. */
export let locateHeld: (object: HeapObject, core: Core, op: string, name: string) => number;

/** @internal Writes a tensor to the block at `at`, as block.ts does. Returns the end of it. */
export let writeHeld: (
  core: Core,
  op: string,
  name: string,
  tensor: HeapTensor,
  block: Float64Array,
  at: number,
) => number;

/** @internal The elements of a tensor, as a view that is valid until the memory grows. */
export let viewHeld: (tensor: HeapTensor) => DataArray;

/** Packed weights as bytes. */
let serialized: (weights: HeapObject) => NewArrays['uint8'];

/**
 * A handle of memory in an instance: a {@link HeapTensor}, {@link PackedWeights} or a
 * {@link wgemm!Recording | Recording}. `dispose()` frees the memory. So does garbage collection,
 * but at no known time.
 *
 * @category Tensors
 */
export abstract class HeapObject {
  readonly #core: Core;
  #address: number;

  /** @internal viewed: bytes that views can show, or `aProgram`. */
  constructor(core: Core, address: number, viewed: number) {
    this.#core = core;
    this.#address = address;
    core.adopt(this, address, viewed);
  }

  /** Whether it has ended: by its own `dispose()`, or with its instance. */
  get disposed(): boolean {
    return this.#address === 0 || this.#core.disposed;
  }

  /** Frees the memory. Does nothing the second time. */
  dispose(): void {
    if (this.#address !== 0) this.#core.free(this.#address, this);
    this.#address = 0;
  }

  /** The same as `dispose()`, for `using`. */
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
      if (!PackedWeights.is(weights))
        throw new ArgumentError(
          op,
          'weights',
          `${op}: weights is ${describe(weights)}; it must be packed weights`,
        );
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

/**
 * @internal The error of a call with a handle that is disposed.
 * @param where what its message names instead of the call
 */
export function disposedHandle(
  op: string,
  name: string,
  isWeights: boolean,
  where = op,
): DisposedError {
  const found = isWeights ? 'disposed weights' : 'a disposed tensor';
  return new DisposedError(op, name, `${where}: ${name} is ${found}`);
}

/** A copy of bytes of the heap. */
function copyOf(core: Core, op: string, address: number, length: number): NewArrays['uint8'] {
  try {
    return core.module.HEAPU8.slice(address, address + length);
  } catch (error) {
    throw new OutOfMemoryError(op, '', `${op}: cannot allocate ${length} bytes (${String(error)})`);
  }
}

/**
 * @internal The block formats of ggml that weights may have, in the order of `BlockFormat` of
 * wgemm.h. 0 is for other weights.
 *
 * The type `BlockFormat` lists them again, since declarations omit this array.
 */
export const blockFormats = [
  ...(['', 'Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'Q8_0'] as const),
  ...(['Q2_K', 'Q3_K', 'Q4_K', 'Q5_K', 'Q6_K'] as const),
] as const;

/**
 * A block format of ggml: weights of few bits, as files have them. See
 * {@link wgemm!PackedWeights.format | format}.
 *
 * @category Operations
 */
export type BlockFormat =
  'Q4_0' | 'Q4_1' | 'Q5_0' | 'Q5_1' | 'Q8_0' | 'Q2_K' | 'Q3_K' | 'Q4_K' | 'Q5_K' | 'Q6_K';

/** @internal The constructors of handles, which users do not see. */
export interface Constructors {
  tensor: new (
    core: Core,
    dtype: DType,
    shape: readonly number[],
    size: number,
    address: number,
    bytes: number,
  ) => HeapTensor;
  weights: new (
    core: Core,
    op: PackedWeights['op'],
    dtype: DType,
    format: BlockFormat | undefined,
    shape: readonly number[],
    address: number,
    byteLength: number,
  ) => PackedWeights;
}

/**
 * A contiguous tensor in the memory of an instance: calls read and write it without a copy. `alloc`
 * makes it, filled with zeros. The caller must `dispose()` of it, which frees its memory. Garbage
 * collection frees it, too, but at no known time.
 *
 * @typeParam A the class of `data`
 * @category Tensors
 */
export class HeapTensor<A extends DataArray = DataArray> extends HeapObject {
  /** The type of the elements. */
  readonly dtype: DTypeOf<A>;
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** Number of elements. */
  readonly size: number;
  /** The core's number of the type. */
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

  private constructor(
    core: Core,
    dtype: DType,
    shape: readonly number[],
    size: number,
    address: number,
    bytes: number,
  ) {
    super(core, address, bytes);
    this.dtype = dtype as DTypeOf<A>;
    this.shape = Object.freeze(shape);
    this.size = size;
    this.#number = core.dtypes.indexOf(dtype);
    Object.freeze(this); // calls rely on its type and shape
  }

  /**
   * The elements, as a view of the memory, in row-major order. It is valid until the next call,
   * which may grow the memory. After a call, read this property again.
   *
   * @throws DisposedError
   */
  get data(): A {
    return viewHeld(this) as A;
  }

  /** @internal Whether a value is a HeapTensor. A prototype does not suffice. */
  static is(value: unknown): value is HeapTensor {
    return typeof value === 'object' && value !== null && #number in value;
  }
}

printable(
  HeapTensor.prototype,
  ({ data, size }: HeapTensor<Float32Array>) =>
    `data: ${classOf(data)} [${data.subarray(0, 8).join(', ')}${size > 8 ? ', ...' : ''}]\n` +
    '  read data again after each call',
);

/**
 * Weights that are packed once, for any number of calls: calls take them as `b` or `weights`.
 * `pack`, `deserialize` and `packFrom` of `wgemm/weights` make them. They are a copy in the memory
 * of the instance. The caller must `dispose()` of them.
 *
 * @category Operations
 */
export class PackedWeights extends HeapObject {
  /** The operation that they are for: `'gemm'` means `matmul` too. */
  readonly op: 'gemm' | 'qgemm' | 'matmulNBits';
  /** The type of the elements, as they are packed. For `matmulNBits`, the type of the scales. */
  readonly dtype: DType;
  /**
   * The block format of ggml that they keep, such as `'Q4_K'`; undefined for other weights.
   * `packFrom` of `wgemm/weights` makes weights with a format, for `matmulNBits`.
   */
  readonly format: BlockFormat | undefined;
  /** (..., K, N) in elements, after the transpose that `trans` asks for. */
  readonly shape: readonly number[];
  /** Bytes of memory that they take. */
  readonly byteLength: number;
  readonly #brand = true;

  static {
    Object.defineProperty(this.prototype, handleKey, {
      value: 'packed weights of another copy of wgemm',
    });
  }

  private constructor(
    core: Core,
    op: PackedWeights['op'],
    dtype: DType,
    format: BlockFormat | undefined,
    shape: readonly number[],
    address: number,
    byteLength: number,
  ) {
    super(core, address, 0); // no view shows it
    this.op = op;
    this.dtype = dtype;
    this.format = format;
    this.shape = Object.freeze(shape);
    this.byteLength = byteLength;
    Object.freeze(this);
  }

  /**
   * Returns the weights as bytes, in a new array that the caller owns. `deserialize` makes weights
   * from them in any instance, build or engine, or natively. Weights that are packed elsewhere have
   * the same bytes. While the call runs, the memory of the instance must have room for the bytes.
   *
   * @throws DisposedError, OutOfMemoryError
   */
  serialize(): NewArrays['uint8'] {
    return serialized(this);
  }

  /** @internal Whether a value is PackedWeights. A prototype does not suffice. */
  static is(value: unknown): value is PackedWeights {
    return typeof value === 'object' && value !== null && #brand in value;
  }
}
printable(
  PackedWeights.prototype,
  ({ op }) => `for ${op === 'gemm' ? 'gemm and matmul' : op}\n  save them by serialize()`,
);

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
 * A tensor in an array of the caller, or in the memory of an instance. Use this type for parameters
 * of your own functions.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export type TensorLike<A extends DataArray = DataArray> = TensorInput<A> | HeapTensor<A>;

/** @internal Whether a value is a handle only by its prototype, such as a proxy of one. */
export function imitatesHandle(value: unknown): boolean {
  return (
    (value instanceof HeapTensor && !HeapTensor.is(value)) ||
    (value instanceof PackedWeights && !PackedWeights.is(value))
  );
}
