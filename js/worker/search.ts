/** `createIndex` and `deserializeIndex` for instances in workers, and the type of indexes. */
import type { WorkerTensorLike } from '../api/types.js';
import type { CallOptions, Signal } from '../api/worker-handles.js';
import { readOptions } from '../base/read-options.js';
import type { NewArrays } from '../base/tensor.js';
import { readBytes } from '../ops/pack.js';
import { readSettings } from '../search/arguments.js';
import type {
  IndexInfo,
  IndexOptions,
  Match,
  MaxSimOptions,
  MaxSimOut,
  SearchOptions,
  SearchOut,
  VectorArray,
  VectorId,
  VectorList,
} from '../search/types.js';
import type { WorkerGemm } from './gemm.js';
import { type Link, makeInWorker, type Request } from './link.js';
import type { IndexState, Method } from './message.js';
import { signalName, WorkerVectorIndex as Index } from './vector-index.js';

/**
 * Options of every call of an index in a worker.
 *
 * @category Search
 */
export interface IndexCallOptions {
  /** When it aborts, the call is rejected with its reason. Default: none. */
  signal?: Signal | undefined;
}

/**
 * Which vectors a search in a worker may return: ids, in an array or a Set; or bits by position, as
 * in an index of `wgemm/search`.
 *
 * @typeParam I the type of ids
 * @category Search
 */
export type WorkerIndexFilter<I extends VectorId = number> =
  readonly I[] | ReadonlySet<I> | Uint32Array;

/**
 * An index of vectors in a worker. {@link createIndex} and {@link deserializeIndex} make it. It
 * owns its memory until its `dispose()`, the `dispose()` of its instance, or garbage collection.
 * Its calls are the calls of an index of `wgemm/search`, and return promises.
 *
 * @typeParam I the type of ids
 * @category Search
 */
export interface WorkerVectorIndex<I extends VectorId = number> extends IndexInfo {
  /**
   * Adds vectors. If it fails, it has added nothing, unless `signal` aborted it: then it may have
   * added them.
   *
   * @param vectors a tensor of shape [n, dimensions] or [dimensions], or the elements of any number
   * of vectors, one vector after the other. Elements: float32, float16, bfloat16, int8 or uint8
   * @param ids one id per vector, which the index does not have yet. Absent in an index without ids
   * @param options all have defaults
   * @returns a promise of the position of the first vector. The others follow
   * @throws by rejection: ShapeError, DTypeError, ArgumentError (also for NaN, infinity, and with
   * `'cosine'` for a vector of zeros), DisposedError, OutOfMemoryError
   */
  add(
    vectors: VectorList | WorkerTensorLike<VectorArray>,
    ids?: readonly I[] | null,
    options?: IndexCallOptions,
  ): Promise<number>;
  /**
   * Adds vectors, and removes the vectors that had their ids. The new vectors get new positions. If
   * it fails, it has changed nothing, unless `signal` aborted it: then it may have changed the
   * index.
   *
   * @param vectors as for `add`
   * @param ids one id per vector. The index need not have them. In an index without ids, the
   * positions of vectors to remove
   * @param options all have defaults
   * @returns a promise of the position of the first vector. The others follow
   * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  update(
    vectors: VectorList | WorkerTensorLike<VectorArray>,
    ids: readonly I[],
    options?: IndexCallOptions,
  ): Promise<number>;
  /**
   * Removes vectors.
   *
   * @param ids one id; or several, in an array or a Set. Ids that the index does not have are
   * ignored
   * @param options all have defaults
   * @returns a promise of how many vectors were removed
   * @throws by rejection: ArgumentError, DisposedError
   */
  remove(ids: I | readonly I[] | ReadonlySet<I>, options?: IndexCallOptions): Promise<number>;
  /**
   * Writes the vectors that are nearest to each query into arrays of the caller, when the promise
   * settles.
   *
   * @param query a vector; or a tensor of shape [n, dimensions] or [dimensions]
   * @param k the most matches of a query: a whole number from 1
   * @param options `out` is required
   * @returns a promise of the number of matches, of all queries together
   * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError;
   * nothing is written then
   */
  search(
    query: VectorList | WorkerTensorLike<VectorArray>,
    k: number,
    options: SearchOptions<WorkerIndexFilter<I>> &
      IndexCallOptions & {
        /** The arrays that receive the result. */
        out: SearchOut;
      },
  ): Promise<number>;
  /**
   * Finds the vectors that are nearest to one query, best first.
   *
   * @param query a vector, as an array or a tensor of shape [dimensions]
   * @param k the most matches: a whole number from 1
   * @param options all have defaults
   * @returns a promise of the matches, in a new array
   * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  search(
    query:
      | VectorList
      | (WorkerTensorLike<VectorArray> & {
          /** One axis. */
          readonly shape: readonly [number];
        }),
    k: number,
    options?: (SearchOptions<WorkerIndexFilter<I>> & IndexCallOptions & { out?: undefined }) | null,
  ): Promise<Match<I>[]>;
  /**
   * Finds the vectors that are nearest to each of several queries, best first.
   *
   * @param queries a tensor of shape [n, dimensions]
   * @param k the most matches of a query: a whole number from 1
   * @param options all have defaults
   * @returns a promise of an array of matches per query
   * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  search(
    queries: WorkerTensorLike<VectorArray> & {
      /** Two axes. */
      readonly shape: readonly [number, number];
    },
    k: number,
    options?: (SearchOptions<WorkerIndexFilter<I>> & IndexCallOptions & { out?: undefined }) | null,
  ): Promise<Match<I>[][]>;
  /**
   * Searches by a tensor whose type does not say how many axes it has.
   *
   * @param query a tensor of shape [n, dimensions] or [dimensions]
   * @param k the most matches of a query: a whole number from 1
   * @param options all have defaults
   * @returns a promise of the matches of a vector, or of an array of matches per query
   * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  search(
    query: WorkerTensorLike<VectorArray>,
    k: number,
    options?: (SearchOptions<WorkerIndexFilter<I>> & IndexCallOptions & { out?: undefined }) | null,
  ): Promise<Match<I>[] | Match<I>[][]>;
  /**
   * Returns the id of the vector at a position: in an index without ids, the position. Returns
   * undefined if the index has no vector there.
   *
   * @param position a whole number from 0
   * @param options all have defaults
   * @returns a promise of the id
   * @throws by rejection: ArgumentError, DisposedError
   */
  idOf(position: number, options?: IndexCallOptions): Promise<I | undefined>;
  /**
   * Computes the score of documents that have a vector per token, as in an index of `wgemm/search`.
   *
   * @param query a tensor of shape [n, dimensions], or vectors one after the other
   * @param documents per document the position after its last vector, ascending
   * @param options `out`: the array that receives the scores
   * @returns a promise of a score per document, in `out` or in a new array
   * @throws by rejection: ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError;
   * nothing is written then
   */
  maxSim(
    query: VectorList | WorkerTensorLike<VectorArray>,
    documents: Uint32Array,
    options?: (MaxSimOptions & Partial<MaxSimOut> & IndexCallOptions) | null,
  ): Promise<Float32Array>;
  /**
   * Returns the whole index as bytes, in a new array that the caller owns. `deserializeIndex` makes
   * an index from them, here or in `wgemm/search`.
   *
   * @param options all have defaults
   * @returns a promise of the bytes
   * @throws by rejection: DisposedError, OutOfMemoryError
   */
  serialize(options?: CallOptions): Promise<NewArrays['uint8']>;
}

/**
 * Makes an index of vectors without any vectors.
 *
 * @example
 * const index = await createIndex<string>(wg, { dimensions: 3 });
 * await index.add(Float32Array.of(1, 0, 0, 0, 1, 0), ['east', 'north']);
 * const [nearest] = await index.search([3, 4, 0], 1);
 * nearest.id; // 'north'
 *
 * @param wg the instance that has the index in its memory
 * @param options `dimensions` is required
 * @typeParam I the type of ids. The default is for an index without ids
 * @returns a promise of the index. The caller must `dispose()` of it
 * @throws by rejection: DTypeError, ArgumentError, DisposedError
 *
 * @category Search
 */
export function createIndex<I extends VectorId = number>(
  wg: WorkerGemm,
  options: IndexOptions & IndexCallOptions,
): Promise<WorkerVectorIndex<I>>;
export async function createIndex(wg: unknown, options: unknown): Promise<never> {
  return await make(wg, 'createIndex', options, (link) => ({
    values: readSettings(link, options),
    operands: [],
  }));
}

/**
 * Makes an index from the bytes that `serialize()` returned. The index has its own copy, and the
 * same ids and positions.
 *
 * @param wg the instance that has the index in its memory
 * @param bytes all bytes of the index: an array, or a buffer, which may be shared
 * @param options all have defaults
 * @typeParam I the type of ids
 * @returns a promise of the index. The caller must `dispose()` of it
 * @throws by rejection: PackMismatchError for bytes that are cut short, were changed, or are not an
 * index; ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Search
 */
export function deserializeIndex<I extends VectorId = number>(
  wg: WorkerGemm,
  bytes: Uint8Array | ArrayBufferLike,
  options?: IndexCallOptions,
): Promise<WorkerVectorIndex<I>>;
export async function deserializeIndex(
  wg: unknown,
  bytes: unknown,
  options?: unknown,
): Promise<never> {
  const op = 'deserializeIndex';
  return await make(wg, op, options, (link) => {
    readOptions(op, options, signalName);
    return { values: undefined, operands: [readBytes(link, bytes, op)] };
  });
}

function make<M extends Method>(
  wg: unknown,
  op: M,
  options: unknown,
  read: (link: Link) => Omit<Request<M>, 'result'>,
): Promise<never> {
  return makeInWorker(
    wg,
    op,
    'wgemm/search',
    options,
    read,
    (link, handle, wg, value) => new Index(link, handle, value as IndexState, wg),
  );
}
