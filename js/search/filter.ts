/** Which vectors a search may return, as bits of slots. */
import { isList } from '../base/properties.js';
import { checkArray, isBits, isSet, readIds, wrongFilter } from './arguments.js';
import type { VectorId } from './types.js';
import type { Ledger } from './ledger.js';

function set(bits: Uint32Array, slot: number): void {
  (bits[slot >> 5] as number) |= 1 << (slot & 31);
}

/** @internal The bits of filters. Searches use the same array again. */
export class FilterBits {
  readonly #ledger: Ledger;
  /** Absent while a search uses it. */
  #spare: Uint32Array | undefined;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Returns the bits of a filter. It may run code of the caller. `giveBack` must follow. */
  of(op: string, filter: unknown): Uint32Array {
    const words = Math.ceil(this.#ledger.count / 32);
    let bits = this.#spare;
    if (bits === undefined || bits.length < words) bits = new Uint32Array(words + (words >> 1));
    this.#spare = undefined;
    if (isBits(filter)) this.#copy(op, filter, bits);
    else if (typeof filter === 'function') this.#ask(filter as () => unknown, bits.fill(0));
    else if (isList(filter) || isSet(filter))
      this.#find(readIds(op, 'filter', filter), bits.fill(0));
    else throw wrongFilter(op, filter, true);
    return bits;
  }

  /** Takes the bits that `of` returned. */
  giveBack(bits: Uint32Array): void {
    this.#spare = bits;
  }

  /** Bits by position become bits by slot. */
  #copy(op: string, filter: Uint32Array, bits: Uint32Array): void {
    const { live, count, next, isDense } = this.#ledger;
    checkArray(op, 'filter', 'filter', filter, 'uint32', Math.ceil(next / 32));
    const words = Math.ceil(count / 32);
    for (let i = 0; i < words; ++i)
      bits[i] = isDense ? (live[i] as number) & (filter[i] as number) : (live[i] as number);
    if (isDense) return;
    for (let slot = 0; slot < count; ++slot) {
      const position = this.#ledger.positionAt(slot);
      if ((((filter[position >>> 5] as number) >>> (position & 31)) & 1) === 0)
        (bits[slot >> 5] as number) &= ~(1 << (slot & 31));
    }
  }

  #ask(filter: (id: VectorId, position: number) => unknown, bits: Uint32Array): void {
    const ledger = this.#ledger;
    const { version, count } = ledger;
    for (let slot = 0; slot < count && ledger.version === version; ++slot)
      if (ledger.isLive(slot) && filter(ledger.idAt(slot), ledger.positionAt(slot)))
        set(bits, slot);
  }

  #find(ids: readonly VectorId[], bits: Uint32Array): void {
    for (const id of ids) {
      const slot = this.#ledger.slotOf(id);
      if (slot >= 0) set(bits, slot);
    }
  }
}
