/**
 * Which vectors an index has: their ids and positions. A vector is in a slot: a column, counted
 * over all pieces of memory. Compaction moves vectors to other slots, in the same order. Positions
 * stay.
 */
import { ArgumentError, describe, OutOfMemoryError } from '../base/errors.js';
import { mostPositions } from './arguments.js';
import type { VectorId } from './types.js';

/** The most entries of a Map in V8. */
const mostIds = 2 ** 24;

/** @internal Bytes of the bits of a number of slots. */
export const bytesOfBits = (slots: number) => Math.ceil(slots / 32) * 4;

/** @internal */
export class Ledger {
  /** Slots in use, also those whose vectors were removed. */
  count = 0;
  /** Vectors that were removed since the last compaction. */
  removed = 0;
  /** The position of the next vector. */
  next = 0;
  /** Changes with the vectors. */
  version = 0;
  /** By slot, ascending. undefined: each position is its slot. */
  #positions: number[] | undefined;
  /** By slot. undefined: positions are the ids, or it has never had a vector. */
  #ids: VectorId[] | undefined;
  /** The positions of ids. */
  readonly #places = new Map<VectorId, number>();
  /** A bit per slot: whether its vector was not removed. */
  #live = new Uint32Array(32);

  get size(): number {
    return this.count - this.removed;
  }

  /** Whether it has ids; undefined if it has never had a vector. */
  get hasIds(): boolean | undefined {
    return this.next === 0 ? undefined : this.#ids !== undefined;
  }

  /** The bits of the vectors that were not removed. Valid until the next change. */
  get live(): Uint32Array {
    return this.#live;
  }

  /** Whether each position is its slot. */
  get isDense(): boolean {
    return this.#positions === undefined;
  }

  isLive(slot: number): boolean {
    return (((this.#live[slot >> 5] as number) >>> (slot & 31)) & 1) === 1;
  }

  positionAt(slot: number): number {
    return this.#positions === undefined ? slot : (this.#positions[slot] as number);
  }

  idAt(slot: number): VectorId {
    return this.#ids === undefined ? this.positionAt(slot) : (this.#ids[slot] as VectorId);
  }

  /** Copies the bits of all slots to an address in memory, of which `words` is a view. */
  writeBits(words: Uint32Array, bits: Uint32Array, address: number): void {
    const length = Math.ceil(this.count / 32);
    for (let i = 0; i < length; ++i) words[address / 4 + i] = bits[i] as number;
  }

  /** The ids of all vectors. */
  ids(): VectorId[] {
    const ids: VectorId[] = [];
    for (let slot = 0; slot < this.count; ++slot) if (this.isLive(slot)) ids.push(this.idAt(slot));
    return ids;
  }

  /** The first slot whose position is at least `position`. */
  slotFrom(position: number): number {
    let [low, high] = [0, this.count];
    if (this.#positions === undefined) return Math.min(position, high);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#positions[middle] as number) < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The slot of a vector that was not removed; -1 if there is none at the position. */
  slotAt(position: number): number {
    const slot = this.slotFrom(position);
    return slot < this.count && this.positionAt(slot) === position && this.isLive(slot) ? slot : -1;
  }

  /** The slot of an id; -1 if there is none. */
  slotOf(id: VectorId): number {
    const position = this.hasIds ? this.#places.get(id) : id;
    return typeof position === 'number' && position >= 0 && Number.isInteger(position)
      ? this.slotAt(position)
      : -1;
  }

  /** Throws unless `added` vectors with these ids can be added. `isNew`: the ids must be new. */
  check(op: string, added: number, ids: readonly VectorId[] | null, isNew: boolean): void {
    const refuse = (what: string) => new ArgumentError(op, 'ids', `${op}: ${what}`);
    const { hasIds } = this;
    if (ids !== null && ids.length !== added)
      throw refuse(`ids has ${ids.length} ids for ${added} vectors; there must be one per vector`);
    if (isNew && hasIds === true && ids === null)
      throw refuse('ids is missing; in an index with ids, each vector needs one');
    if (isNew && hasIds === false && ids !== null)
      throw refuse('ids must be absent; in this index, the positions are the ids');
    if (this.next + added > mostPositions)
      throw new OutOfMemoryError(op, '', `${op}: an index has at most 2^32 positions`);
    if (ids === null) return;
    // Before the Set, which has at most as many entries.
    if ((hasIds === false ? 0 : this.#places.size) + added > mostIds)
      throw new OutOfMemoryError(op, '', `${op}: an index has at most 2^24 ids`);
    const seen = new Set<VectorId>();
    for (const id of ids) {
      if (hasIds === false && ((id as number) >>> 0 !== id || id >= this.next)) {
        const rule = `in this index, it must be a position below ${this.next}`;
        throw refuse(`ids has ${describe(id)}; ${rule}`);
      }
      if (seen.has(id)) throw refuse(`ids has ${describe(id)} twice; each id must be unique`);
      seen.add(id);
      if (isNew && this.#places.has(id))
        throw refuse(`ids has ${describe(id)}, which the index has; update() replaces vectors`);
    }
  }

  /** Adds vectors after `check`. `ids` of an index without ids must be null. */
  add(added: number, ids: readonly VectorId[] | null): void {
    if (added === 0) return;
    if (ids) this.#ids ??= [];
    this.#grow(this.count + added);
    for (let i = 0; i < added; ++i) {
      const slot = this.count++;
      const position = this.next++;
      (this.#live[slot >> 5] as number) |= 1 << (slot & 31);
      this.#positions?.push(position);
      if (!ids) continue;
      this.#ids?.push(ids[i] as VectorId);
      this.#places.set(ids[i] as VectorId, position);
    }
    ++this.version;
  }

  #grow(slots: number): void {
    const words = Math.ceil(slots / 32);
    if (words <= this.#live.length) return;
    const grown = new Uint32Array(Math.max(words, this.#live.length * 2));
    grown.set(this.#live);
    this.#live = grown;
  }

  /** Removes the vector of a slot, unless it was removed, or the slot is -1. */
  remove(slot: number): void {
    if (slot < 0 || !this.isLive(slot)) return;
    (this.#live[slot >> 5] as number) &= ~(1 << (slot & 31));
    if (this.#ids) {
      const id = this.#ids[slot] as VectorId;
      // update() has given the id to another vector.
      if (this.#places.get(id) === this.positionAt(slot)) this.#places.delete(id);
    }
    ++this.removed;
    ++this.version;
  }

  /** Gives each vector the slot to which compaction moved it. */
  compact(): void {
    const positions: number[] = [];
    const ids: VectorId[] | undefined = this.#ids && [];
    for (let slot = 0; slot < this.count; ++slot) {
      if (!this.isLive(slot)) continue;
      positions.push(this.positionAt(slot));
      ids?.push((this.#ids as VectorId[])[slot] as VectorId);
    }
    this.#positions = positions;
    this.#ids = ids;
    this.count = positions.length;
    this.removed = 0;
    this.#live = new Uint32Array(Math.max(Math.ceil(this.count / 32), 32));
    for (let slot = 0; slot < this.count; ++slot)
      (this.#live[slot >> 5] as number) |= 1 << (slot & 31);
  }

  /**
   * Sets the positions and ids of the vectors of an index without any. Returns false, and sets
   * nothing, if ids are not unique or positions do not ascend.
   */
  restore(positions: readonly number[], ids: readonly VectorId[] | null, next: number): boolean {
    const count = positions.length;
    if (ids !== null && new Set(ids).size !== count) return false;
    let last = -1;
    for (const position of positions) {
      if (position <= last) return false;
      last = position;
    }
    if (last >= next || (ids !== null && next === 0)) return false;
    if (last !== count - 1 || next !== count) this.#positions = [];
    if (ids) this.#ids = [];
    this.add(count, ids);
    if (this.#positions) {
      this.#positions = [...positions];
      ids?.forEach((id, slot) => this.#places.set(id, positions[slot] as number));
    }
    this.next = next;
    return true;
  }
}
