/**
 * States: outputs of a run that are inputs of the next one. They stay in the memory of the
 * instance, and have room for more rows, so that an operator that appends rows writes only these.
 */
import type { Gemm } from '../../api/create-gemm.js';
import {
  ArgumentError,
  describe,
  DTypeError,
  OutOfMemoryError,
  ShapeError,
} from '../../base/errors.js';
import { messageOf } from '../../base/port.js';
import type { HeapTensor } from '../../instance/heap.js';
import { withSize } from '../operators/define.js';
import { elementBytes, Root, sizeOf, Stored } from '../operators/storage.js';
import type { OnnxDType, Value } from '../read/value.js';
import { checkShape, type ModelInput } from './feeds.js';
import type { Moving } from './moving.js';
import type { Program } from './recording.js';

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
  ) {
    this.shape = shape;
    this.capacity = shape[0] ?? 1;
    this.chunk = this.#alloc(shape, 0, this.capacity);
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
    const copy = new Kept(this.link, this.wg, withSize(shape, axis, capacity));
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

  #alloc(shape: readonly number[], axis: number, capacity: number): HeapTensor<Uint8Array> {
    const bytes = sizeOf(withSize(shape, axis, capacity)) * elementBytes(this.dtype);
    try {
      return this.wg.alloc('uint8', [Math.max(bytes, 1)]);
    } catch (error) {
      const { name } = this.link;
      const found = `the kept input ${describe(name)} takes ${bytes} bytes (${messageOf(error)})`;
      throw new OutOfMemoryError('run', name, `run: ${found}`);
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

/** @internal The programs of a model, or of a state. */
export class ProgramSet {
  readonly programs = new Map<string, Program>();
  moving: Moving | undefined;
  /** The sizes of the feeds in the last run. */
  last: readonly number[] = [];
  /** The number of runs until programs are rehearsed again. */
  wait = 0;
  failures = 0;
}

/** @internal An output of a model that is an input of the next run. */
export interface KeptLink {
  /** The name of the input. */
  readonly name: string;
  readonly dtype: OnnxDType;
  /** Indices among the inputs and the outputs of the model. */
  readonly input: number;
  readonly output: number;
}

/** @internal What a model keeps between runs. */
export class State {
  /** By the index of a link. Absent before the first run. */
  kept: readonly (Kept | undefined)[];
  /** While a run is in progress: what was kept before it. */
  #before: readonly (Kept | undefined)[] | undefined;
  readonly programs = new ProgramSet();
  isDisposed = false;

  constructor(
    readonly links: readonly KeptLink[],
    readonly wg: Gemm,
  ) {
    this.kept = links.map(() => undefined);
  }

  /**
   * Begins a run, which `commit` or `rollBack` ends. A feed of a kept input replaces the tensor.
   * Without a tensor, the run begins with zeros. Returns whether tensors were replaced.
   */
  begin(inputs: readonly ModelInput[], feeds: readonly (Value | undefined)[]): boolean {
    const sizes = new Map<string, { size: number; by: string }>();
    const check = (index: number, shape: readonly number[]) => {
      const { info } = inputs[index] as ModelInput;
      checkShape('run', `run: input ${describe(info.name)}`, info, shape, sizes);
    };
    feeds.forEach((feed, i) => feed && check(i, feed.shape));
    const before = this.kept;
    const kept = [...before];
    this.#before = before;
    this.kept = kept;
    this.links.forEach((link, i) => {
      const feed = feeds[link.input];
      const own = kept[i];
      if (own && !feed) return check(link.input, own.shape);
      const { shape } = (inputs[link.input] as ModelInput).info;
      if (!feed && !shape) {
        const found = `input ${describe(link.name)} has no declared shape`;
        throw new ShapeError('run', link.name, `run: ${found}; pass a first tensor as a feed`);
      }
      const first =
        feed?.shape ??
        (shape ?? []).map((size) =>
          typeof size === 'number' ? size : (sizes.get(size ?? '')?.size ?? 0),
        );
      const tensor = new Kept(link, this.wg, first);
      kept[i] = tensor;
      if (feed) tensor.write(bytesOf(feed), first);
    });
    return before.some((one, i) => one && one !== kept[i]);
  }

  /** Takes the kept outputs of a run. @param enlarge replaces memory, as `enlarge` */
  commit(values: readonly Stored[], enlarge: (shapes: Map<Kept, readonly number[]>) => void): void {
    const isOwn = (value: Stored, kept: Kept) => inPlace(value) === kept;
    const pairs = (this.kept as readonly Kept[]).map((kept) => {
      const value = values[kept.link.output] as Stored;
      const { dtype } = kept;
      if (value.dtype !== dtype) {
        const found = `the output for input ${describe(kept.link.name)} has dtype ${value.dtype}`;
        throw new DTypeError('run', kept.link.name, `run: ${found}; expected ${dtype}`);
      }
      // A tensor may become another one of the same state.
      const isOther = !isOwn(value, kept) && value.root instanceof KeptRoot;
      return {
        kept,
        value,
        bytes: isOther ? bytesOf({ data: value.elements }).slice() : undefined,
      };
    });
    const copied = pairs.filter(({ kept, value }) => !isOwn(value, kept));
    const large = copied.filter(({ kept, value }) => !kept.fits(value.shape));
    if (large.length > 0) enlarge(new Map(large.map(({ kept, value }) => [kept, value.shape])));
    for (const { kept, value } of pairs)
      kept.grows ||= rowsOf(value.shape, kept) > rowsOf(kept.shape, kept);
    for (const { kept, value, bytes } of copied)
      kept.write(bytes ?? bytesOf({ data: value.elements }), value.shape);
    for (const { kept, value } of pairs) kept.shape = value.shape;
    for (const one of this.#before ?? []) if (one && !this.kept.includes(one)) one.dispose();
    this.#before = undefined;
  }

  /** Ends a run that failed. Returns whether tensors were replaced. */
  rollBack(): boolean {
    if (!this.#before) return false;
    const failed = this.kept;
    this.kept = this.#before;
    this.#before = undefined;
    for (const one of failed) if (one && !this.kept.includes(one)) one.dispose();
    return failed.some((one, i) => one !== this.kept[i]);
  }

  /** Keeps only the first rows of the tensors that grow. */
  cut(length: number): void {
    const growing = this.kept.flatMap((kept) => (kept?.grows ? kept : []));
    const most = Math.min(...growing.map((kept) => rowsOf(kept.shape, kept)));
    if (growing.length === 0 || !(length >= 0 && length <= most)) {
      const rule = growing.length > 0 ? `from 0 to ${most}` : '0, since no tensor has grown';
      if (length !== 0)
        throw new ArgumentError('cut', 'length', `cut: length is ${length}; it must be ${rule}`);
    }
    for (const kept of growing) kept.shape = withSize(kept.shape, kept.axis, length);
  }

  clone(): State {
    const copy = new State(this.links, this.wg);
    const kept: (Kept | undefined)[] = [];
    copy.kept = kept;
    try {
      for (const one of this.kept) kept.push(one?.clone());
    } catch (error) {
      copy.dispose();
      throw error;
    }
    return copy;
  }

  dispose(): void {
    this.isDisposed = true;
    for (const kept of this.kept) kept?.dispose();
    this.kept = [];
  }
}

/** @internal The kept tensor whose memory has a value, if the tensor may take it as it is. */
export function inPlace({ root, shape }: Stored): Kept | undefined {
  return root instanceof KeptRoot && root.shape.join() === shape.join() ? root.kept : undefined;
}

const rowsOf = (shape: readonly number[], { axis }: Kept): number => shape[axis] ?? 1;

const bytesOf = ({ data }: Pick<Value, 'data'>): Uint8Array =>
  new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
