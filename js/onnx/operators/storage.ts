/** Where the values of a run are: in the memory of its programs, or in arrays. */
import type { Gemm } from '../../api/create-gemm.js';
import { arrayOf, bytesOf, viewOf } from '../../base/arrays.js';
import { viewOfBytes } from '../../call/operand.js';
import { OutOfMemoryError } from '../../base/errors.js';
import type { DataArray } from '../../base/tensor.js';
import type { HeapTensor } from '../../instance/heap.js';
import { type Make, type OnnxDType, storedAs, type Value } from '../read/value.js';
import { isRecording } from './record.js';

/** @internal A gap after each run of elements: a place where more rows will be. */
export interface Gap {
  /** Elements of a run. */
  readonly from: number;
  /** Elements from the start of a run to the start of the next one. */
  readonly to: number;
}

/** @internal The elements of one value, and of others that have another shape only. */
export class Root {
  /** How many names have these elements. */
  uses = 0;
  /** The bytes that they take while a run is recorded; 0: a recording did not place them. */
  bytes = 0;
  /** Whether only a run knows the elements, and so a recorded run must not read them. */
  isOpen = false;
  /** Absent if the elements are contiguous. */
  gap: Gap | undefined;
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

/** @internal Thrown by an operator that needs elements which only a run knows. */
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

  /** As `data`, also while a run is recorded. With a gap, the elements in the gaps, too. */
  get elements(): DataArray {
    const { chunk, array, start, gap } = this.root;
    if (chunk === undefined) return array as DataArray;
    const { buffer, byteOffset } = chunk.data;
    const size = gap ? (this.size / gap.from) * gap.to : this.size;
    // When memory grows, it moves.
    if (this.#view?.buffer !== buffer)
      this.#view = viewOf(storedAs(this.dtype), buffer, byteOffset + start, size);
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

/** @internal A copy of elements in the memory of an instance. */
export function heapCopyOf({ data }: Pick<Value, 'data'>, wg: Gemm): HeapTensor<Uint8Array> {
  const copy = wg.alloc('uint8', [Math.max(data.byteLength, 1)]);
  copy.data.set(viewOfBytes(data));
  return copy;
}

/** @internal A new array. */
export function newArray(dtype: OnnxDType, size: number, op = 'run'): DataArray {
  try {
    return arrayOf(storedAs(dtype), size);
  } catch {
    throw new OutOfMemoryError(op, '', `${op}: cannot allocate ${size} elements of ${dtype}`);
  }
}
