/** The page's side of an index in a worker. */
import { type CallOptions, numberOf, type WorkerWeights } from '../api/worker-handles.js';
import { checkAttached } from '../base/arrays.js';
import { disposable } from '../base/dispose.js';
import { DisposedError } from '../base/errors.js';
import { isList } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray } from '../base/tensor.js';
import { type Operand, operandOf } from '../call/operand.js';
import {
  checkArray,
  checkOut,
  isBits,
  isSet,
  outNames,
  type PlainFilter,
  readFast,
  readId,
  readIds,
  readNamed,
  readScore,
  readVectors,
  readWhole,
  searchNames,
  wrongFilter,
} from '../search/arguments.js';
import type { SearchOut } from '../search/types.js';
import type { Link } from './link.js';
import type { IndexAnswer, IndexMethod, IndexState, SearchResult, Values } from './message.js';

/** @internal Names of the options that each call has. */
export const signalName = ['signal'];

/** The arguments that a call sends, and the function that makes its result of the worker's. */
interface Read<M extends IndexMethod> {
  readonly values: Omit<Values[M], 'object'>;
  readonly operands?: readonly Operand[];
  readonly finish?: (result: unknown) => unknown;
}

/** Indexes keep their instance from being collected. */
const owners = new WeakMap<object, object>();

/** @internal An index, as the interface of the same name in search.ts describes it. */
export class WorkerVectorIndex {
  readonly dimensions: number;
  readonly metric: IndexState['metric'];
  readonly dtype: IndexState['dtype'];
  readonly #link: Link;
  readonly #handle: WorkerWeights;
  readonly #wg: object;
  #state: IndexState;

  constructor(link: Link, handle: WorkerWeights, state: IndexState, wg: object) {
    this.dimensions = state.dimensions;
    this.metric = state.metric;
    this.dtype = state.dtype;
    this.#link = link;
    this.#handle = handle;
    this.#wg = wg;
    this.#state = state;
    owners.set(this, wg);
    Object.freeze(this);
  }

  get size(): number {
    return this.#state.size;
  }

  get nextPosition(): number {
    return this.#state.nextPosition;
  }

  get byteLength(): number {
    return this.disposed ? 0 : this.#state.byteLength;
  }

  get disposed(): boolean {
    return this.#handle.disposed;
  }

  /** Its number in the worker. Throws if it is disposed. */
  #number(op: string): number {
    if (this.#handle.disposed && !this.#link.ended)
      throw new DisposedError(op, 'index', `${op}: the index is disposed`);
    return numberOf(this.#handle, this.#link, op, 'index');
  }

  async #call<M extends IndexMethod>(op: M, options: unknown, read: () => Read<M>): Promise<never> {
    const result = await this.#link.call(op, options, () => {
      this.#number(op);
      const { values, operands = [], finish = (result) => result } = read();
      return {
        values: { ...values, object: this.#number(op) } as never,
        operands,
        result: ({ value }) => {
          const { state, result } = value as IndexAnswer;
          this.#state = state;
          return finish(result);
        },
      };
    });
    owners.set(this, this.#wg); // keeps index and instance alive until now
    return result as never;
  }

  #vectors(op: string, name: string, value: unknown, isQuery = false): Operand {
    const { dimensions } = this;
    const { operand, isOne } = readVectors(this.#link, op, name, value, dimensions, isQuery);
    if (!isOne) return operand;
    const { dtype, shape, source, strides, offset } = operand;
    return operandOf(name, dtype, shape.slice(1), source, strides?.slice(1) ?? null, offset);
  }

  add(vectors: unknown, ids?: unknown, options?: unknown): Promise<number> {
    return this.#add('add', vectors, ids, options);
  }

  update(vectors: unknown, ids: unknown, options?: unknown): Promise<number> {
    return this.#add('update', vectors, ids, options);
  }

  #add(op: 'add' | 'update', vectors: unknown, ids: unknown, options: unknown): Promise<number> {
    return this.#call(op, options, () => {
      readOptions(op, options, signalName);
      const hasNone = op === 'add' && (ids === undefined || ids === null);
      const list = hasNone ? null : readIds(op, 'ids', ids, true);
      return { values: { ids: list }, operands: [this.#vectors(op, 'vectors', vectors)] };
    });
  }

  remove(ids: unknown, options?: unknown): Promise<number> {
    const op = 'remove';
    return this.#call(op, options, () => {
      readOptions(op, options, signalName);
      const isOne = typeof ids === 'string' || typeof ids === 'number';
      return { values: { ids: isOne ? [readId(op, 'ids', ids)] : readIds(op, 'ids', ids) } };
    });
  }

  search(query: unknown, k: unknown, options?: unknown): Promise<unknown> {
    return this.#call('search', options, () => this.#readSearch(query, k, options));
  }

  #readSearch(query: unknown, k: unknown, options: unknown): Read<'search'> {
    const op = 'search';
    const given = readNamed(op, options, searchNames, signalName);
    const { filter, minScore, candidates, fast, out } = given;
    const hasOut = out !== undefined && out !== null;
    const values = {
      k: readWhole(op, 'k', k, 1),
      minScore: minScore === undefined ? minScore : readScore(op, minScore, 0),
      candidates:
        candidates === undefined
          ? candidates
          : readWhole(op, 'candidates', candidates, k as number),
      fast: readFast(op, fast),
      hasOut,
    };
    const arrays = readNamed(op, out, outNames, [], 'out');
    const { positions, scores, found } = arrays;
    const plain = plainFilter(op, filter);
    const operand = this.#vectors(op, 'query', query, true);
    const read = { values: { ...values, filter: plain }, operands: [operand] };
    if (!hasOut) return read;
    const rows = operand.shape.length === 1 ? 1 : (operand.shape[0] as number);
    const check = () => checkOut(op, positions, scores, found, rows, values.k);
    check();
    const finish = (result: unknown) => {
      check();
      const arrays = { positions, scores, found } as SearchOut;
      return copyOut(arrays, result as SearchResult, rows, values.k);
    };
    return { ...read, finish };
  }

  idOf(position: unknown, options?: unknown): Promise<string | number | undefined> {
    const op = 'idOf';
    return this.#call(op, options, () => {
      readOptions(op, options, signalName);
      return { values: { position: readWhole(op, 'position', position, 0) } };
    });
  }

  maxSim(query: unknown, documents: unknown, options?: unknown): Promise<Float32Array> {
    const op = 'maxSim';
    return this.#call(op, options, () => {
      const { fast, out } = readNamed(op, options, ['fast', 'out'], signalName);
      const isFast = readFast(op, fast);
      const operand = this.#vectors(op, 'query', query);
      checkArray(op, 'documents', 'documents', documents, 'uint32', 0);
      checkAttached(op, 'documents', documents as DataArray, 'is a detached array');
      const ends = new Uint32Array(documents as Uint32Array);
      const hasOut = out !== undefined && out !== null;
      const check = () => checkArray(op, 'out', 'out', out, 'float32', ends.length);
      const finish = (result: unknown) => {
        if (!hasOut) return result;
        check();
        (out as Float32Array).set(result as Float32Array);
        return out;
      };
      if (hasOut) check();
      return { values: { documents: ends, fast: isFast }, operands: [operand], finish };
    });
  }

  async serialize(options?: CallOptions): Promise<Uint8Array> {
    this.#link.checkAlive('serialize');
    this.#number('serialize');
    const bytes = await this.#handle.serialize(options);
    owners.set(this, this.#wg);
    return bytes;
  }

  dispose(): void {
    this.#handle.dispose();
  }

  declare [Symbol.dispose]: () => void;
}
disposable(WorkerVectorIndex.prototype);

/** A filter as the worker can take it. */
function plainFilter(op: string, filter: unknown): PlainFilter | undefined {
  if (filter === undefined || filter === null) return undefined;
  if (isBits(filter)) {
    checkAttached(op, 'filter', filter, 'is a detached array');
    return new Uint32Array(filter);
  }
  if (typeof filter === 'object' && (isSet(filter) || isList(filter)))
    return readIds(op, 'filter', filter);
  throw wrongFilter(op, filter, false);
}

/** Copies what the worker found to the caller's arrays. Returns the number of matches. */
function copyOut(out: SearchOut, result: SearchResult, rows: number, k: number): number {
  const { positions, scores, found, step } = result;
  let all = 0;
  for (let row = 0; row < rows; ++row) {
    const matches = found[row] as number;
    all += matches;
    if (out.found) out.found[row] = matches;
    for (let i = 0; i < matches; ++i) {
      out.positions[row * k + i] = positions[row * step + i] as number;
      out.scores[row * k + i] = scores[row * step + i] as number;
    }
  }
  return all;
}
