/** Where the values of a run are: in memory of the instance, which is used again, or in arrays. */
import type { Gemm } from '../../api/create-gemm.js';
import { arrayOf, bytesOf, viewOf } from '../../base/arrays.js';
import { OutOfMemoryError } from '../../base/errors.js';
import type { DataArray } from '../../base/tensor.js';
import type { HeapTensor } from '../../instance/heap.js';
import { type Make, type OnnxDType, storedAs, type Value } from '../read/value.js';
import { isRecording } from './record.js';

/** Values of fewer bytes are in arrays of their own, which take less time to make. */
const fewBytes = 4096;

/** Bytes to which the sizes of chunks are rounded up, so that similar sizes share chunks. */
const roundedTo = 1024;

/** The most bytes of all arrays of a run if the instance is in a worker, as in wasm. */
const mostBytes = 2 ** 32;

/** @internal The elements of one value, and of others that have another shape only. */
export class Root {
  /** How many names have these elements. */
  uses = 0;
  /** Whether only a run knows the elements, and so a recorded run must not read them. */
  isOpen = false;
  constructor(
    /** Memory of the instance, of at least as many bytes as the elements. */
    readonly chunk: HeapTensor<Uint8Array> | undefined,
    /** The elements, if they are not in a chunk. */
    readonly array: DataArray | undefined,
    /** Whether the run made them, so that an operator may overwrite them after their last use. */
    readonly isOwn: boolean,
    /** The byte of the chunk where they begin. */
    readonly start = 0,
  ) {}
}

/** @internal What an operator throws that needs elements which only a run knows. */
export class NeedsRun extends Error {}

/** @internal A value of a run. */
export class Stored implements Value {
  #view: DataArray | undefined;

  constructor(
    readonly dtype: OnnxDType,
    readonly shape: readonly number[],
    readonly size: number,
    readonly root: Root,
  ) {}

  get data(): DataArray {
    if (this.root.isOpen && isRecording()) throw new NeedsRun();
    return this.elements;
  }

  /** As `data`, also while a run is recorded. */
  get elements(): DataArray {
    const { chunk, array, start } = this.root;
    if (chunk === undefined) return array as DataArray;
    const { buffer, byteOffset } = chunk.data;
    // When memory grows, it moves.
    if (this.#view?.buffer !== buffer)
      this.#view = viewOf(storedAs(this.dtype), buffer, byteOffset + start, this.size);
    return this.#view;
  }

  reshape(shape: readonly number[]): Stored {
    return new Stored(this.dtype, shape, this.size, this.root);
  }
}

/** @internal The value of an array. `isOwn`: an operator may overwrite it after its last use. */
export function hold({ dtype, shape, data }: Value, isOwn: boolean): Stored {
  return new Stored(dtype, shape, data.length, new Root(undefined, data, isOwn));
}

/** @internal Notes that one more name has the value. */
export function keep(value: Stored): Stored {
  ++value.root.uses;
  return value;
}

/** @internal A new value in an array: an intermediate result of an operator. */
export const inArray: Make = (dtype, shape) => ({
  dtype,
  shape,
  data: newArray(dtype, sizeOf(shape)),
});

/** @internal The number of elements. */
export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** @internal Bytes of an element. */
export function elementBytes(dtype: OnnxDType): number {
  return bytesOf(storedAs(dtype));
}

/** @internal A new array. */
export function newArray(dtype: OnnxDType, size: number, op = 'run'): DataArray {
  try {
    return arrayOf(storedAs(dtype), size);
  } catch {
    throw new OutOfMemoryError(op, '', `${op}: cannot allocate ${size} elements of ${dtype}`);
  }
}

/**
 * @internal The values of a model's runs. One run at a time takes them. Between runs the chunks
 * stay, except those that the last run has not used.
 */
export class Storage {
  /** Chunks that no value has, by size. */
  readonly #free: HeapTensor<Uint8Array>[] = [];
  /** The chunks that the run has used. */
  readonly #used = new Set<HeapTensor<Uint8Array>>();
  readonly #live = new Set<Root>();
  /** Bytes of arrays that the run has made and not given up. */
  #arrayBytes = 0;

  /** @param wg the instance, if it is in this thread */
  constructor(readonly wg: Gemm | undefined) {}

  /**
   * A value of its own, whose elements have any value.
   *
   * @param isOperand whether a product reads or writes it, which must copy what is not in a chunk
   */
  make(dtype: OnnxDType, shape: readonly number[], isOperand = false): Stored {
    const size = sizeOf(shape);
    return new Stored(dtype, shape, size, this.#newRoot(dtype, size, isOperand));
  }

  /** Notes that a name ends. After the last one, others may use the memory. */
  release({ root }: Stored): void {
    if (--root.uses === 0) this.#giveUp(root);
  }

  /** Gives up what is left of a run, and the chunks that it has not used. */
  end(): void {
    for (const root of this.#live) this.#giveUp(root);
    const chunks = this.#free.splice(0);
    for (const chunk of chunks) {
      if (this.#used.has(chunk)) this.#free.push(chunk);
      else chunk.dispose();
    }
    this.#used.clear();
  }

  /** Frees all chunks. Their values end. */
  dispose(): void {
    this.#used.clear();
    this.end();
  }

  #newRoot(dtype: OnnxDType, size: number, isOperand: boolean): Root {
    const bytes = size * elementBytes(dtype);
    if (!(bytes <= Number.MAX_SAFE_INTEGER))
      throw new OutOfMemoryError('run', '', `run: cannot allocate ${size} elements of ${dtype}`);
    let root: Root;
    if (this.wg !== undefined && bytes >= (isOperand ? 1 : fewBytes))
      root = new Root(this.#take(this.wg, bytes), undefined, true);
    else {
      if (this.#arrayBytes + bytes > mostBytes) {
        const found = `the model needs arrays of ${this.#arrayBytes + bytes} bytes`;
        throw new OutOfMemoryError('run', '', `run: ${found}; at most 4 GB are allowed`);
      }
      root = new Root(undefined, newArray(dtype, size), true);
      this.#arrayBytes += bytes;
    }
    this.#live.add(root);
    return root;
  }

  /** A free chunk of about this size, or a new one. */
  #take(wg: Gemm, bytes: number): HeapTensor<Uint8Array> {
    const size = Math.ceil(bytes / roundedTo) * roundedTo;
    const least = this.#free[this.#indexOf(size)]?.size;
    let chunk: HeapTensor<Uint8Array> | undefined;
    // Take the last chunk of its size: nothing moves if all chunks have one size.
    if (least && least <= 2 * size) [chunk] = this.#free.splice(this.#indexOf(least + 1) - 1, 1);
    chunk ??= this.#alloc(wg, size);
    this.#used.add(chunk);
    return chunk;
  }

  #alloc(wg: Gemm, size: number): HeapTensor<Uint8Array> {
    try {
      return wg.alloc('uint8', [size]);
    } catch (error) {
      // Chunks of other sizes may take the memory that is missing.
      if (!(error instanceof OutOfMemoryError) || this.#free.length === 0) throw error;
      for (const chunk of this.#free.splice(0)) chunk.dispose();
      return wg.alloc('uint8', [size]);
    }
  }

  #giveUp(root: Root): void {
    if (!this.#live.delete(root)) return;
    const { chunk, array } = root;
    if (array) this.#arrayBytes -= array.byteLength;
    if (!chunk) return;
    this.#free.splice(this.#indexOf(chunk.size + 1), 0, chunk);
  }

  /** The index of the first free chunk of at least `size` bytes, by binary search. */
  #indexOf(size: number): number {
    let [first, end] = [0, this.#free.length];
    while (first < end) {
      const middle = (first + end) >> 1;
      if ((this.#free[middle] as HeapTensor).size < size) first = middle + 1;
      else end = middle;
    }
    return first;
  }
}
