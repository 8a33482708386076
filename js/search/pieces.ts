/**
 * The memory of an index: pieces that each hold packed vectors, `Vectors` of wgemm.h. All pieces
 * before the last one in use are full, and their capacities are multiples of 32. So the bits of the
 * slots of a piece begin at a word.
 */
import { viewOf } from '../base/arrays.js';
import { OutOfMemoryError } from '../base/errors.js';
import type { ArrayOf, DType } from '../base/tensor.js';
import { locate, type Operand } from '../call/operand.js';
import { gather } from '../convert/quantize-arguments.js';
import type { QuantizeType } from '../convert/quantize-numbers.js';
import type { Core } from '../instance/core.js';
import { HeapObject } from '../instance/heap.js';
import { checkSize, defaultCapacity, metrics, type Settings } from './arguments.js';
import { bytesOfBits } from './ledger.js';

/** The operations of `vectors` in bindings/search.cc. */
const [make, append, read, truncate, compact] = [0, 1, 2, 3, 4];

/** @internal */
export const searching = 5,
  summing = 6,
  checksum = 7;

/** The most pieces that bindings/search.cc takes. */
const mostPieces = 256;

/** The fewest vectors that a further piece has room for, if there is memory. */
const least = defaultCapacity;

/** The most bytes of vectors that calls copy to the heap at once. */
const mostBytes = 2 ** 22;

/** @internal How many of `rows` vectors of this size calls copy to the heap at once. */
export const mostStaged = (rows: number, bytes: number) =>
  Math.min(Math.max(Math.floor(mostBytes / bytes), 1), rows);

/** @internal Memory for vectors, which the core has made. */
export class Piece extends HeapObject {
  constructor(
    core: Core,
    readonly address: number,
    readonly capacity: number,
    readonly byteLength: number,
  ) {
    super(core, address, 0); // no view shows it
  }
}

/**
 * @internal Finds the elements of vectors. From here on no code of the caller may run before the
 * call has copied them.
 */
export function find(core: Core, op: string, operand: Operand): void {
  locate(core, op, operand);
  checkSize(op, operand);
}

/** @internal Whether vectors are in the heap, one after the other. */
export function isInPlace({ address, shape, strides }: Operand): boolean {
  const [rows, dimensions] = shape as [number, number];
  const isDense =
    strides === null ||
    ((dimensions === 1 || strides[1] === 1) && (rows === 1 || strides[0] === dimensions));
  return address !== 0 && isDense;
}

/** @internal Bytes of an element. */
export const bytesOf = (core: Core, dtype: DType) => core.elements(dtype).BYTES_PER_ELEMENT;

/** @internal Bytes of a vector of an operand. */
export const bytesOfRow = (core: Core, { dtype, shape }: Operand) =>
  (shape[1] as number) * bytesOf(core, core.dtypes[dtype] as DType);

/** @internal Copies vectors of an operand to the heap, one after the other. */
export function stage(core: Core, operand: Operand, first: number, rows: number, to: number): void {
  const { dtype, shape, strides, address, outside, size } = operand;
  const dimensions = shape[1] as number;
  const type = core.dtypes[dtype] as QuantizeType;
  const [buffer, at] = outside ? [outside.buffer, outside.byteOffset] : [core.buffer, address];
  const bytes = bytesOf(core, type);
  const start = first * (strides ? (strides[0] as number) : dimensions);
  const copy = viewOf(type, core.buffer, to, rows * dimensions) as ArrayOf<QuantizeType>;
  const length = strides ? size - start : rows * dimensions;
  const source = viewOf(type, buffer, at + start * bytes, length) as typeof copy;
  if (strides) gather(copy, 0, source, [rows, dimensions], strides, 0, 0);
  else copy.set(source);
}

/** @internal */
export class Pieces {
  readonly #core: Core;
  readonly #settings: Settings;
  #pieces: Piece[] = [];

  constructor(core: Core, settings: Settings) {
    this.#core = core;
    this.#settings = settings;
  }

  /** The number of vectors that there is room for. */
  get capacity(): number {
    return this.#pieces.reduce((sum, { capacity }) => sum + capacity, 0);
  }

  get byteLength(): number {
    return this.#pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Makes room for more vectors after the first `count`. If it throws, nothing has changed. */
  reserve(op: string, count: number, added: number): void {
    const before = this.capacity;
    try {
      for (let capacity = before; capacity < count + added; { capacity } = this) {
        if (this.#pieces.length === mostPieces) throw this.#core.outOfMemory(count + added, op);
        const lacking = count + added - capacity;
        const wanted = capacity > 0 ? Math.max(capacity / 2, least) : this.#settings.capacity;
        this.#make(op, Math.max(lacking, wanted), Math.min(lacking, least), (piece) =>
          this.#pieces.push(piece),
        );
      }
    } catch (error) {
      this.shrink(before);
      throw error;
    }
  }

  /**
   * Makes a piece for `wanted` vectors: a smaller one if memory lacks, but with room for `fewest`.
   */
  #make(op: string, wanted: number, fewest: number, take: (piece: Piece) => unknown): void {
    const core = this.#core;
    const { dimensions, dtype, metric, rescore } = this.#settings;
    const rescored = rescore ? core.dtypes.indexOf(rescore) : -1;
    const types = [core.dtypes.indexOf(dtype), metrics.indexOf(metric), rescored];
    for (let size = wanted; ; size = Math.max(size / 2, fewest)) {
      const capacity = Math.ceil(size / 32) * 32;
      try {
        core.guard(op, () => {
          this.call(op, make, [dimensions, capacity, ...types]);
          const [address, bytes] = core.block as unknown as [number, number];
          take(new Piece(core, address, capacity, bytes));
        });
        return;
      } catch (error) {
        if (!(error instanceof OutOfMemoryError) || size <= fewest) throw error;
      }
    }
  }

  /** Makes a small piece. */
  makeOne(op: string): void {
    this.#make(op, 1, 1, (piece) => this.#pieces.push(piece));
  }

  /** Frees the pieces that only have slots from `slots` on. */
  shrink(slots: number): void {
    let start = this.capacity;
    for (;;) {
      start -= this.#pieces.at(-1)?.capacity ?? Infinity;
      if (start < slots) return;
      this.#pieces.pop()?.dispose();
    }
  }

  /** Calls the core with these arguments. Must be called inside `guard`. */
  call(op: string, operation: number, values: readonly number[]): void {
    const core = this.#core;
    core.block.set(values);
    core.check(core.module.vectors(operation), op, op);
  }

  /**
   * Appends vectors to the first `count`, for which there must be room. If it throws, it may have
   * appended some of them, so `truncate` must follow.
   */
  append(op: string, operand: Operand, count: number): void {
    const core = this.#core;
    const [rows] = operand.shape as [number];
    const bytes = bytesOfRow(core, operand);
    const inPlace = isInPlace(operand);
    const most = inPlace ? rows : mostStaged(rows, bytes);
    const room = inPlace ? 0 : most * bytes;
    core.guard(op, () => {
      const staging = room === 0 ? 0 : core.allocate(room, op);
      try {
        this.eachRun(count, rows, most, (piece, column, first, length) => {
          if (!inPlace) stage(core, operand, first, length, staging);
          const at = inPlace ? operand.address + first * bytes : staging;
          this.appendRows(op, piece, column, operand.dtype, at, first, length);
        });
      } finally {
        if (room > 0) core.module.release(staging);
      }
    });
  }

  /**
   * Appends vectors in the heap to the first `column` of a piece.
   * @param first the number of the first one in errors
   * @param more the addresses of their scales and of the vectors for rescoring, or nothing
   */
  appendRows(
    op: string,
    piece: Piece,
    column: number,
    dtype: number,
    rows: number,
    first: number,
    length: number,
    more = [0, 0],
  ): void {
    const { dimensions } = this.#settings;
    // If the engine interrupted an earlier call, there may be more vectors than the index knows.
    this.call(op, truncate, [piece.address, column]);
    this.call(op, append, [piece.address, dtype, rows, length, dimensions, ...more, first]);
  }

  /** Calls back for each run of slots that are in one piece. `first`: counted from `from`. */
  eachRun(
    from: number,
    slots: number,
    most: number,
    run: (piece: Piece, column: number, first: number, length: number) => void,
  ): void {
    let start = 0;
    for (const piece of this.#pieces) {
      const end = Math.min(start + piece.capacity, from + slots);
      for (let slot = Math.max(start, from); slot < end; slot += most)
        run(piece, slot - start, slot - from, Math.min(end - slot, most));
      start += piece.capacity;
    }
  }

  /** Copies vectors of a piece to the heap: their elements, scales, and elements for rescoring. */
  read(op: string, piece: Piece, column: number, length: number, to: readonly number[]): void {
    this.call(op, read, [piece.address, column, length, ...to]);
  }

  /** Keeps the first `count` vectors, and as much room as there was before. */
  truncate(op: string, count: number, capacity: number): void {
    this.shrink(capacity);
    let start = 0;
    this.#core.guard(op, () => {
      for (const { address, capacity } of this.#pieces) {
        this.call(op, truncate, [address, Math.max(Math.min(count - start, capacity), 0)]);
        start += capacity;
      }
    });
  }

  /**
   * Moves the vectors whose bit is 1, `size` of them, to the first slots. If less than half of the
   * room is then in use, it moves them to a smaller piece, if there is memory for it.
   * @param write writes the bits of `count` slots to an address
   * @param done is called when the vectors have moved. Without memory for the bits, they stay
   */
  compact(
    op: string,
    count: number,
    size: number,
    write: (bits: number) => void,
    done: () => void,
  ): void {
    const core = this.#core;
    const wanted = Math.max(size, this.#settings.capacity);
    let fresh: Piece | undefined;
    try {
      if (this.capacity > 2 * wanted && this.#pieces.length < mostPieces)
        this.#make(op, wanted, wanted, (piece) => (fresh = piece));
    } catch {
      // They stay in large pieces.
    }
    let unused = fresh && [fresh];
    core.guard(op, () => {
      const bits = core.module.allocate(bytesOfBits(count));
      if (bits === 0) return;
      write(bits);
      this.writePieces(0, bits, fresh);
      core.check(core.module.vectors(compact), op, op);
      core.module.release(bits);
      if (fresh) {
        unused = this.#pieces;
        this.#pieces = [fresh];
      }
      done();
    });
    for (const piece of unused ?? []) piece.dispose();
  }

  /**
   * Writes the pieces to the block from `at` on, with their bits if there are any. `fresh`: an
   * empty piece, which comes first.
   */
  writePieces(at: number, bits: number, fresh?: Piece): void {
    const { block } = this.#core;
    const { length } = this.#pieces;
    let next = at;
    block[next++] = fresh ? length + 1 : length;
    if (fresh) {
      block[next++] = fresh.address;
      block[next++] = 0;
    }
    let start = 0;
    for (let i = 0; i < length; ++i) {
      const { address, capacity } = this.#pieces[i] as Piece;
      block[next++] = address;
      block[next++] = bits === 0 ? 0 : bits + start / 8;
      start += capacity;
    }
  }
}
