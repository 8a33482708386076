/** Searches of an index: from the caller's objects to matches. */
import { arrayOf, checkAttached, lengthOf } from '../base/arrays.js';
import { ArgumentError } from '../base/errors.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import {
  allocated,
  checkArray,
  checkOut,
  metrics,
  outNames,
  readFast,
  readNamed,
  readScore,
  readWhole,
  searchNames,
  type Settings,
} from './arguments.js';
import type { Match, VectorId } from './types.js';
import { FilterBits } from './filter.js';
import { bytesOfBits, type Ledger } from './ledger.js';
import { type Pieces, searching, summing } from './pieces.js';
import { Query } from './query.js';
import { addressOf } from './views.js';

/** The arguments of `search` and of `maxSim` in the block, before the pieces. */
const searchWords = 12,
  sumWords = 8;

const aligned = (bytes: number) => Math.ceil(bytes / 64) * 64;

/** An array of zeros. */
const arrayFor = (op: string, name: string, dtype: DType, length: number): DataArray =>
  allocated(op, `${length} elements of ${name}`, () => arrayOf(dtype, length));

/** @internal Searches an index. With `out`, `search` makes no object. */
export class Searcher {
  readonly #core: Core;
  readonly #settings: Settings;
  readonly #ledger: Ledger;
  readonly #pieces: Pieces;
  readonly #check: (op: string) => void;
  readonly #query: Query;
  readonly #filters: FilterBits;
  // The state of the search that runs. These are fields, so that a search makes no object.
  #k = 0;
  /** As `#k`, but at most the number of vectors. */
  #step = 0;
  /** The memory of a call, or 0, and where its parts begin. */
  #memory = 0;
  #slotsAt = 0;
  #scoresAt = 0;
  #foundAt = 0;
  #queriesAt = 0;
  /** Addresses of the caller's arrays. Their views are stale once the call has grown the memory. */
  #outPositions = 0;
  #outScores = 0;
  #outFound = 0;

  /** @param check throws if the index is disposed */
  constructor(
    core: Core,
    settings: Settings,
    ledger: Ledger,
    pieces: Pieces,
    check: (op: string) => void,
  ) {
    this.#core = core;
    this.#settings = settings;
    this.#ledger = ledger;
    this.#pieces = pieces;
    this.#check = check;
    this.#query = new Query(core, settings.dimensions);
    this.#filters = new FilterBits(ledger);
  }

  search(query: unknown, k: unknown, options: unknown): unknown {
    const op = 'search';
    const { filter, minScore, candidates, fast, out } = readNamed(op, options, searchNames);
    const most = readWhole(op, 'k', k, 1);
    const least = readScore(op, minScore, NaN);
    const again = this.#readCandidates(op, candidates, most);
    const isFast = readFast(op, fast);
    const arrays = out === null ? undefined : out;
    const { positions, scores, found } = readNamed(op, arrays, outNames, undefined, 'out');
    const { version, removed, live } = this.#ledger;
    const hasFilter = filter !== undefined && filter !== null;
    const bits = hasFilter ? this.#filters.of(op, filter) : removed > 0 ? live : undefined;
    this.#query.read(op, query, true);
    this.#check(op);
    if (this.#ledger.version !== version) {
      const rule = 'a filter must not change it';
      const message = `${op}: the index was changed while the call read its arguments; ${rule}`;
      throw new ArgumentError(op, 'index', message);
    }
    // From here on no code of the caller runs.
    this.#query.find(op);
    if (arrays !== undefined) this.#checkOut(op, positions, scores, found, most);
    this.#k = most;
    let result: unknown;
    this.#begin(op);
    try {
      this.#allocate(op, bits);
      this.#run(op, bits !== undefined, isFast, again, least);
      result =
        arrays === undefined
          ? this.#matches(op)
          : this.#write(positions as Uint32Array, scores as Float32Array, found as Uint32Array);
    } catch (error) {
      this.#end(error);
      throw error;
    }
    this.#end();
    if (hasFilter) this.#filters.giveBack(bits as Uint32Array);
    return result;
  }

  #readCandidates(op: string, candidates: unknown, k: number): number {
    if (candidates === undefined) return 0;
    const number = readWhole(op, 'candidates', candidates, k);
    if (this.#settings.rescore !== undefined) return number;
    const rule = 'it must be absent in an index without rescore';
    throw new ArgumentError(op, 'candidates', `${op}: candidates is ${number}; ${rule}`);
  }

  #checkOut(op: string, positions: unknown, scores: unknown, found: unknown, k: number): void {
    const core = this.#core;
    checkOut(op, positions, scores, found, this.#query.rows, k);
    this.#outPositions = addressOf(core, op, 'out', positions as Uint32Array);
    this.#outScores = addressOf(core, op, 'out', scores as Float32Array);
    if (found !== undefined) this.#outFound = addressOf(core, op, 'out', found as Uint32Array);
  }

  /** Allocates the memory of a search, and writes the bits of slots there. */
  #allocate(op: string, bits: Uint32Array | undefined): void {
    const query = this.#query;
    this.#step = Math.min(this.#k, Math.max(this.#ledger.size, 1));
    const bitsRoom = bits ? aligned(bytesOfBits(this.#ledger.count)) : 0;
    const tableRoom = aligned(query.rows * this.#step * 4);
    const queryRoom = query.address === 0 ? query.most * query.bytes : 0;
    const countRoom = aligned(query.rows * 4);
    this.#reserve(op, bitsRoom + 2 * tableRoom + countRoom + queryRoom);
    this.#slotsAt = this.#memory + bitsRoom;
    this.#scoresAt = this.#slotsAt + tableRoom;
    this.#foundAt = this.#scoresAt + tableRoom;
    this.#queriesAt = this.#foundAt + countRoom;
    if (bits)
      this.#ledger.writeBits(this.#core.elements('uint32') as Uint32Array, bits, this.#memory);
  }

  #reserve(op: string, room: number): void {
    this.#memory = this.#core.allocate(room, op);
  }

  #begin(op: string): void {
    // The core checks queries even if there are no vectors.
    if (this.#ledger.count === 0) this.#pieces.makeOne(op);
    this.#core.enter(op);
  }

  /** Frees the memory of a call, and forgets its query. */
  #end(error?: unknown): void {
    if (this.#memory !== 0) this.#core.module.release(this.#memory);
    this.#memory = 0;
    this.#query.forget();
    this.#core.leave(error);
    if (this.#ledger.count === 0) this.#pieces.shrink(0);
  }

  /** Writes what `search` and `maxSim` have in common. */
  #writeQueries(first: number, rows: number, isFast: number): void {
    const at = this.#query.stage(first, rows, this.#queriesAt);
    const { block } = this.#core;
    block[0] = this.#query.type;
    block[1] = at;
    block[2] = rows;
    block[3] = this.#settings.dimensions;
    block[4] = isFast;
  }

  #run(op: string, hasBits: boolean, isFast: number, again: number, least: number): void {
    const core = this.#core;
    const { rows, most } = this.#query;
    for (let first = 0; first < rows; first += most) {
      this.#writeQueries(first, Math.min(most, rows - first), isFast);
      const { block } = core;
      block[5] = this.#step;
      block[6] = Math.min(again, this.#ledger.size);
      block[7] = least;
      block[8] = first;
      block[9] = this.#slotsAt + first * this.#step * 4;
      block[10] = this.#scoresAt + first * this.#step * 4;
      block[11] = this.#foundAt + first * 4;
      this.#pieces.writePieces(searchWords, hasBits ? this.#memory : 0);
      core.check(core.module.vectors(searching), op, op);
    }
  }

  /** Copies matches to the caller's arrays. Returns how many there are. */
  #write(positions: Uint32Array, scores: Float32Array, found: Uint32Array | undefined): number {
    const core = this.#core;
    const words = core.elements('uint32') as Uint32Array;
    const floats = core.elements('float32') as Float32Array;
    const positionsAt = this.#outPositions / 4;
    const scoresAt = this.#outScores / 4;
    const foundAt = this.#outFound / 4;
    const toPositions = positionsAt === 0 ? positions : words;
    const toScores = scoresAt === 0 ? scores : floats;
    let all = 0;
    for (let row = 0; row < this.#query.rows; ++row) {
      const matches = words[this.#foundAt / 4 + row] as number;
      all += matches;
      if (found) (foundAt === 0 ? found : words)[foundAt + row] = matches;
      const from = row * this.#step;
      for (let i = 0; i < matches; ++i) {
        const slot = words[this.#slotsAt / 4 + from + i] as number;
        toPositions[positionsAt + row * this.#k + i] = this.#ledger.positionAt(slot);
        toScores[scoresAt + row * this.#k + i] = floats[this.#scoresAt / 4 + from + i] as number;
      }
    }
    return all;
  }

  #matches(op: string): Match<VectorId>[] | Match<VectorId>[][] {
    const words = this.#core.elements('uint32') as Uint32Array;
    const floats = this.#core.elements('float32') as Float32Array;
    const all: Match<VectorId>[][] = [];
    allocated(op, 'the matches', () => {
      for (let row = 0; row < this.#query.rows; ++row) {
        const matches: Match<VectorId>[] = [];
        const end = row * this.#step + (words[this.#foundAt / 4 + row] as number);
        for (let i = row * this.#step; i < end; ++i) {
          const id = this.#ledger.idAt(words[this.#slotsAt / 4 + i] as number);
          matches.push({ id, score: floats[this.#scoresAt / 4 + i] as number });
        }
        all.push(matches);
      }
    });
    return this.#query.isOne ? (all[0] as Match<VectorId>[]) : all;
  }

  maxSim(query: unknown, documents: unknown, options: unknown): Float32Array {
    const op = 'maxSim';
    const core = this.#core;
    const { metric } = this.#settings;
    const { fast, out } = readNamed(op, options, ['fast', 'out']);
    const isFast = readFast(op, fast);
    if (metric === metrics[2]) {
      const rule = "maxSim needs 'dot' or 'cosine'";
      throw new ArgumentError(op, 'metric', `${op}: the metric of the index is euclidean; ${rule}`);
    }
    this.#query.read(op, query, false);
    this.#check(op);
    this.#query.find(op);
    const ends = this.#readEnds(op, documents);
    const { length } = ends;
    const scores = (out ?? arrayFor(op, 'out', 'float32', length)) as Float32Array;
    checkArray(op, 'out', 'out', scores, 'float32', length);
    const address = addressOf(core, op, 'out', scores);
    this.#begin(op);
    try {
      const endsAt = this.#allocateForSums(op, length);
      (core.elements('uint32') as Uint32Array).set(ends, endsAt / 4);
      this.#writeQueries(0, this.#query.rows, isFast);
      const { block } = core;
      block[5] = endsAt;
      block[6] = length;
      block[7] = this.#scoresAt;
      this.#pieces.writePieces(sumWords, this.#ledger.removed > 0 ? this.#memory : 0);
      core.check(core.module.vectors(summing), op, op);
      const floats = core.elements('float32') as Float32Array;
      const found = floats.subarray(this.#scoresAt / 4, this.#scoresAt / 4 + length);
      (address === 0 ? scores : floats).set(found, address / 4);
    } catch (error) {
      this.#end(error);
      throw error;
    }
    this.#end();
    return scores;
  }

  /** Allocates the memory of `maxSim`. Returns the address of the ends. */
  #allocateForSums(op: string, documents: number): number {
    const { count, removed, live } = this.#ledger;
    const query = this.#query;
    const bitsRoom = removed > 0 ? aligned(bytesOfBits(count)) : 0;
    const tableRoom = aligned(documents * 4);
    const queryRoom = query.address === 0 ? query.rows * query.bytes : 0;
    this.#reserve(op, bitsRoom + 2 * tableRoom + queryRoom);
    this.#scoresAt = this.#memory + bitsRoom + tableRoom;
    this.#queriesAt = this.#scoresAt + tableRoom;
    if (bitsRoom > 0)
      this.#ledger.writeBits(this.#core.elements('uint32') as Uint32Array, live, this.#memory);
    return this.#memory + bitsRoom;
  }

  /** Reads the ends of documents, as slots. */
  #readEnds(op: string, documents: unknown): Uint32Array {
    const name = 'documents';
    checkArray(op, name, name, documents, 'uint32', 0);
    const given = documents as Uint32Array;
    checkAttached(op, name, given, 'is a detached array');
    addressOf(this.#core, op, name, given);
    const ends = arrayFor(op, name, 'uint32', lengthOf(given)) as Uint32Array;
    ends.set(given);
    const { next } = this.#ledger;
    let last = 0;
    for (let i = 0; i < ends.length; ++i) {
      const end = ends[i] as number;
      if (end < last || end > next) {
        const rule = end < last ? 'it must ascend' : `the positions of the index end at ${next}`;
        const message = `${op}: documents has ${end} at [${i}]; ${rule}`;
        throw new ArgumentError(op, name, message);
      }
      last = end;
      ends[i] = this.#ledger.slotFrom(end);
    }
    return ends;
  }
}
