/** Indexes in the memory of an instance. */
import { disposable } from '../base/dispose.js';
import { DisposedError } from '../base/errors.js';
import type { NewArrays } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import { readId, readIds, readVectors, readWhole, type Settings } from './arguments.js';
import type { VectorId } from './types.js';
import { Ledger } from './ledger.js';
import { find, Pieces } from './pieces.js';
import { Searcher } from './searcher.js';
import { bytesOfIndex } from './serialize.js';

/** @internal An index, as the interface of the same name in types.ts describes it. */
export class VectorIndex {
  readonly dimensions: number;
  readonly metric: Settings['metric'];
  readonly dtype: Settings['dtype'];
  readonly #core: Core;
  readonly #settings: Settings;
  readonly #ledger: Ledger;
  readonly #pieces: Pieces;
  readonly #searcher: Searcher;
  #disposed = false;

  constructor(
    core: Core,
    settings: Settings,
    ledger = new Ledger(),
    pieces = new Pieces(core, settings),
  ) {
    const { dimensions, metric, dtype } = settings;
    this.dimensions = dimensions;
    this.metric = metric;
    this.dtype = dtype;
    this.#core = core;
    this.#settings = settings;
    this.#ledger = ledger;
    this.#pieces = pieces;
    this.#searcher = new Searcher(core, settings, ledger, pieces, (op) => this.#check(op));
    Object.freeze(this);
  }

  get size(): number {
    return this.#ledger.size;
  }

  get nextPosition(): number {
    return this.#ledger.next;
  }

  get byteLength(): number {
    return this.disposed ? 0 : this.#pieces.byteLength;
  }

  get disposed(): boolean {
    return this.#disposed || this.#core.disposed;
  }

  #check(op: string): void {
    this.#core.checkAlive(op);
    if (this.#disposed) throw new DisposedError(op, 'index', `${op}: the index is disposed`);
  }

  add(vectors: unknown, ids?: unknown): number {
    return this.#add('add', vectors, ids);
  }

  update(vectors: unknown, ids: unknown): number {
    return this.#add('update', vectors, ids);
  }

  #add(op: 'add' | 'update', vectors: unknown, given: unknown): number {
    this.#check(op);
    const core = this.#core;
    const [ledger, pieces] = [this.#ledger, this.#pieces];
    const isNew = op === 'add';
    const isWithout = isNew && (given === undefined || given === null);
    const ids = isWithout ? null : readIds(op, 'ids', given, true);
    const { operand } = readVectors(core, op, 'vectors', vectors, this.dimensions, false);
    this.#check(op);
    find(core, op, operand);
    const [added] = operand.shape as [number];
    ledger.check(op, added, ids, isNew);
    const { count, next } = ledger;
    const { capacity } = pieces;
    pieces.reserve(op, count, added);
    try {
      pieces.append(op, operand, count);
    } catch (error) {
      if (!core.disposed) pieces.truncate(op, count, capacity);
      throw error;
    }
    const old = isNew || ids === null ? [] : ids.map((id) => ledger.slotOf(id));
    core.guard(op, () => {
      ledger.add(added, ledger.hasIds === false ? null : ids);
      for (const slot of old) ledger.remove(slot);
    });
    this.#compact(op);
    return next;
  }

  remove(given: unknown): number {
    const op = 'remove';
    this.#check(op);
    const isOne = typeof given === 'string' || typeof given === 'number';
    const ids = isOne ? [readId(op, 'ids', given)] : readIds(op, 'ids', given);
    this.#check(op);
    const ledger = this.#ledger;
    const { size } = ledger;
    this.#core.guard(op, () => {
      for (const id of ids) ledger.remove(ledger.slotOf(id));
    });
    const removed = size - ledger.size;
    this.#compact(op);
    return removed;
  }

  /** If a quarter of all vectors was removed, frees their memory. */
  #compact(op: string): void {
    const [core, ledger, pieces] = [this.#core, this.#ledger, this.#pieces];
    const { count, size, removed, live } = ledger;
    if (removed === 0 || removed * 4 < count) return;
    const write = (to: number) => ledger.writeBits(core.elements('uint32') as never, live, to);
    if (size > 0) pieces.compact(op, count, size, write, () => ledger.compact());
    else core.guard(op, () => ledger.compact());
    pieces.shrink(ledger.count);
  }

  search(query: unknown, k: unknown, options?: unknown): unknown {
    this.#check('search');
    return this.#searcher.search(query, k, options);
  }

  maxSim(query: unknown, documents: unknown, options?: unknown): Float32Array {
    this.#check('maxSim');
    return this.#searcher.maxSim(query, documents, options);
  }

  idOf(position: unknown): VectorId | undefined {
    const op = 'idOf';
    this.#check(op);
    const slot = this.#ledger.slotAt(readWhole(op, 'position', position, 0));
    return slot < 0 ? undefined : this.#ledger.idAt(slot);
  }

  serialize(): NewArrays['uint8'] {
    this.#check('serialize');
    return bytesOfIndex(this.#core, this.#settings, this.#ledger, this.#pieces);
  }

  dispose(): void {
    this.#disposed = true;
    this.#pieces.shrink(0);
  }

  declare [Symbol.dispose]: () => void;
}
disposable(VectorIndex.prototype);
