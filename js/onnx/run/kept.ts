/**
 * Kept tensors: they stay in the memory of the instance from run to run, and have room for more
 * rows, so that an operator that appends rows writes only these.
 */
import type { Gemm } from '../../api/create-gemm.js';
import { describe, OutOfMemoryError } from '../../base/errors.js';
import { messageOf } from '../../base/port.js';
import type { HeapTensor } from '../../instance/heap.js';
import { withSize } from '../operators/define.js';
import { elementBytes, Root, sizeOf, Stored } from '../operators/storage.js';
import type { OnnxDType } from '../read/value.js';

/** @internal An output of a model that is an input of the next run. */
export interface KeptLink {
  /** The name of the input. */
  readonly name: string;
  readonly dtype: OnnxDType;
  /** Indices among the inputs and the outputs of the model. */
  readonly input: number;
  readonly output: number;
}

/** The fewest rows for which a tensor that grows has room. */
const leastRoom = 16;

/** @internal The elements of a kept tensor, with a gap for more rows. */
export class KeptRoot extends Root {
  constructor(
    readonly kept: Kept,
    readonly shape: readonly number[],
  ) {
    super(kept.chunk, undefined, false);
    this.uses = Infinity; // no run overwrites or ends it
    this.isOpen = true;
    const { axis, capacity } = kept;
    const [rows = 1, ...inner] = shape.slice(axis);
    const row = sizeOf(inner);
    if (sizeOf(shape.slice(0, axis)) !== 1 && rows * row > 0)
      this.gap = { from: rows * row, to: capacity * row };
  }
}

/** The memory of a kept tensor: its rows along an axis, and room for more. */
interface Layout {
  readonly axis: number;
  /** In rows. */
  readonly capacity: number;
  readonly chunk: HeapTensor<Uint8Array>;
}

/** @internal A tensor of a state. */
export class Kept {
  shape: readonly number[];
  axis = 0;
  capacity: number;
  chunk: HeapTensor<Uint8Array>;
  /** Whether rows were appended. */
  grows = false;
  /** Whether no operator can append to it where it is. */
  isCopied = false;

  /** @param link the indices of the input and the output of the model that have it */
  constructor(
    readonly link: KeptLink,
    readonly wg: Gemm,
    shape: readonly number[],
    op = 'run',
  ) {
    this.shape = shape;
    this.capacity = shape[0] ?? 1;
    this.chunk = this.#alloc(shape, 0, this.capacity, op);
  }

  get dtype(): OnnxDType {
    return this.link.dtype;
  }

  /** The tensor as a value of a run. @param shape with other rows, perhaps */
  valueOf(shape = this.shape): Stored {
    return new Stored(this.dtype, shape, sizeOf(shape), new KeptRoot(this, shape));
  }

  /** Whether a shape differs by its rows only, and there is room for them. */
  fits(shape: readonly number[]): boolean {
    return (
      axisOf(this.shape, shape, this.axis) === this.axis &&
      !((shape[this.axis] ?? 1) > this.capacity)
    );
  }

  /** Whether a shape differs along one axis only, or not at all. */
  differsAlongAxis(shape: readonly number[]): boolean {
    return axisOf(this.shape, shape, this.axis) !== undefined;
  }

  /** Memory for a larger shape, with room for more rows. */
  layoutFor(shape: readonly number[]): Layout {
    const axis = axisOf(this.shape, shape, this.axis);
    const rows = shape[axis ?? 0] ?? 1;
    const isLarger = axis !== undefined && rows > (this.shape[axis] ?? 1);
    const capacity = isLarger ? Math.max(leastRoom, 2 ** Math.ceil(Math.log2(rows))) : rows;
    return { axis: axis ?? 0, capacity, chunk: this.#alloc(shape, axis ?? 0, capacity) };
  }

  /** Takes other memory. The elements are lost. */
  take(layout: Layout): void {
    this.chunk.dispose();
    Object.assign(this, layout);
  }

  /** A copy of the elements. */
  read(): Uint8Array {
    const { count, length, stride } = this.#blocks(this.shape);
    const bytes = new Uint8Array(count * length);
    const { data } = this.chunk;
    for (let i = 0; i < count; ++i)
      bytes.set(data.subarray(i * stride, i * stride + length), i * length);
    return bytes;
  }

  /** Sets the elements. There must be room for them. */
  write(bytes: Uint8Array, shape: readonly number[]): void {
    this.shape = shape;
    const { count, length, stride } = this.#blocks(shape);
    const { data } = this.chunk;
    for (let i = 0; i < count; ++i)
      data.set(bytes.subarray(i * length, (i + 1) * length), i * stride);
  }

  clone(): Kept {
    const { shape, axis, capacity, grows, isCopied } = this;
    const copy = new Kept(this.link, this.wg, withSize(shape, axis, capacity), 'clone');
    Object.assign(copy, { axis, capacity, grows, isCopied });
    copy.write(this.read(), shape);
    return copy;
  }

  dispose(): void {
    this.chunk.dispose();
  }

  /** In bytes: runs of rows that are contiguous. */
  #blocks(shape: readonly number[]): { count: number; length: number; stride: number } {
    const [rows = 1, ...inner] = shape.slice(this.axis);
    const row = sizeOf(inner) * elementBytes(this.dtype);
    return {
      count: sizeOf(shape.slice(0, this.axis)),
      length: rows * row,
      stride: this.capacity * row,
    };
  }

  #alloc(
    shape: readonly number[],
    axis: number,
    capacity: number,
    op = 'run',
  ): HeapTensor<Uint8Array> {
    const bytes = sizeOf(withSize(shape, axis, capacity)) * elementBytes(this.dtype);
    try {
      return this.wg.alloc('uint8', [Math.max(bytes, 1)]);
    } catch (error) {
      const { name } = this.link;
      const found = `the kept input ${describe(name)} takes ${bytes} bytes (${messageOf(error)})`;
      throw new OutOfMemoryError(op, name, `${op}: ${found}`);
    }
  }
}

/** The axis along which shapes differ; `same` if they do not; undefined if several axes differ. */
function axisOf(a: readonly number[], b: readonly number[], same: number): number | undefined {
  const axes = a.flatMap((size, axis) => (size === b[axis] ? [] : axis));
  return a.length !== b.length || axes.length > 1 ? undefined : (axes[0] ?? same);
}

/**
 * @internal Gives tensors memory for larger shapes. Their elements stay if only the number of rows
 * changes. If memory is missing, all tensors stay as they are.
 */
export function enlarge(shapes: ReadonlyMap<Kept, readonly number[]>): void {
  const made: { kept: Kept; layout: Layout; bytes: Uint8Array }[] = [];
  try {
    for (const [kept, shape] of shapes)
      made.push({ kept, bytes: kept.read(), layout: kept.layoutFor(shape) });
  } catch (error) {
    for (const { layout } of made) layout.chunk.dispose();
    throw error;
  }
  for (const { kept, layout, bytes } of made) {
    const { axis, capacity } = layout;
    const { shape } = kept;
    kept.take(layout);
    const isSame = axisOf(shape, shapes.get(kept) as readonly number[], axis) === axis;
    if (isSame && (shape[axis] ?? 1) <= capacity) kept.write(bytes, shape);
  }
}

/** @internal The kept tensor whose memory has a value, if the tensor may take it as it is. */
export function inPlace({ root, shape }: Stored): Kept | undefined {
  return root instanceof KeptRoot && root.shape.join() === shape.join() ? root.kept : undefined;
}
