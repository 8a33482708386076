/** Indexes as types: their options, calls and results. */
import type { Operand } from '../api/types.js';
import type { Float16ArrayLike, NewArrays } from '../base/tensor.js';

/**
 * How two vectors are compared.
 *
 * - `'dot'`: the dot product. Larger is better.
 * - `'cosine'`: the dot product divided by the lengths of both vectors, from -1 to 1. Larger is
 *   better. A vector finds itself with score 1.
 * - `'euclidean'`: the distance. Smaller is better. A vector finds itself with score 0.
 *
 * @category Search
 */
export type Metric = 'dot' | 'cosine' | 'euclidean';

/**
 * The types that an index can hold vectors in.
 *
 * @category Search
 */
export type IndexDType = 'float32' | 'float16' | 'bfloat16' | 'int8' | 'uint8';

/**
 * The id of a vector: a string, or a finite number.
 *
 * @category Search
 */
export type VectorId = string | number;

/**
 * Arrays that hold elements of vectors.
 *
 * @category Search
 */
export type VectorArray = Float32Array | Float16ArrayLike | Uint16Array | Int8Array | Uint8Array;

/**
 * Vectors without a shape: numbers in an array, one vector after the other. JavaScript's numbers
 * are rounded to float32.
 *
 * @category Search
 */
export type VectorList = readonly number[] | Exclude<VectorArray, Uint16Array>;

/**
 * Options of `createIndex`.
 *
 * @category Search
 */
export interface IndexOptions {
  /** The number of elements of each vector: a whole number from 1 to 32,768. */
  dimensions: number;
  /** How vectors are compared. Default `'cosine'`. */
  metric?: Metric | undefined;
  /**
   * The type that vectors are held in. Vectors and queries are converted to it:
   *
   * - `'float32'`: as they are.
   * - `'float16'` and `'bfloat16'`: rounded to nearest even. They take half the memory.
   * - `'int8'`: each vector has a scale of its own, so that its largest element becomes 127 or
   *   -127. It takes a quarter of the memory. Vectors that are given as int8 stay as they are, with
   *   scale 1.
   * - `'uint8'`: only whole numbers from 0 to 255, which stay as they are.
   *
   * Default `'float32'`.
   */
  dtype?: IndexDType | undefined;
  /**
   * Only for `dtype: 'int8'`: the index also keeps each vector in this type. A search then takes
   * `candidates` vectors by their int8 scores, and returns the best of them by the scores in this
   * type. Default: none.
   */
  rescore?: 'float32' | 'bfloat16' | undefined;
  /**
   * The number of vectors that the first piece of memory has room for. The index grows beyond it.
   * Each further piece has half as many as the index holds, and at least 1,024. Default 1,024.
   */
  capacity?: number | undefined;
}

/**
 * A vector that a search found.
 *
 * @typeParam I the type of ids
 * @category Search
 */
export interface Match<I extends VectorId = number> {
  /** The id of the vector. In an index without ids, its position. */
  id: I;
  /** Its score by the metric of the index, rounded to float32. */
  score: number;
}

/**
 * A function that says which vectors a search may return.
 *
 * @param id the id of a vector. In an index without ids, its position
 * @param position the position of the vector
 * @returns true for a vector that may be returned
 * @typeParam I the type of ids
 * @category Search
 */
export type VectorTest<I extends VectorId = number> = (id: I, position: number) => boolean;

/**
 * Which vectors a search may return:
 *
 * - ids, in an array or a Set. Ids that the index does not have are ignored;
 * - bits by position: bit `position % 32` of word `floor(position / 32)`. There must be a bit for
 *   each position below `nextPosition`;
 * - a function that is called for each vector, and returns true for those that may be returned. It
 *   must not change the index. An index in a worker takes no function.
 *
 * The filter applies before the best `k` are chosen. So a search returns `k` vectors if `k` pass.
 *
 * @typeParam I the type of ids
 * @category Search
 */
export type IndexFilter<I extends VectorId = number> =
  readonly I[] | ReadonlySet<I> | Uint32Array | VectorTest<I>;

/**
 * Options of `search`.
 *
 * @typeParam F what the filter may be
 * @category Search
 */
export interface SearchOptions<F = IndexFilter> {
  /** Which vectors the search may return. Default: all. */
  filter?: F | undefined;
  /**
   * The least score of a match, rounded to float32. With the metric `'euclidean'`, the largest
   * distance. Default: none.
   */
  minScore?: number | undefined;
  /**
   * Only for an index with `rescore`: how many vectors are rescored, at least `k`. Default `4 * k`.
   */
  candidates?: number | undefined;
  /**
   * False: scores are the same bits in every engine, in every build and for any number of threads.
   * True: products may be summed in any order, and fused. Default false.
   */
  fast?: boolean | undefined;
}

/**
 * Arrays of the caller that receive the result of a search. Row `i` of the result begins at
 * `i * k`, best first. Elements after the last match of a row stay as they are.
 *
 * @category Search
 */
export interface SearchOut {
  /** Receives positions. Its length is at least the number of queries times k. */
  positions: Uint32Array;
  /** Receives scores. Its length is at least the number of queries times k. */
  scores: Float32Array;
  /** Receives the number of matches of each query. Default: none. */
  found?: Uint32Array | undefined;
}

/**
 * Options of `maxSim`.
 *
 * @category Search
 */
export interface MaxSimOptions {
  /** The same as for `search`. Default false. */
  fast?: boolean | undefined;
}

/**
 * The option that makes `maxSim` write to an array of the caller.
 *
 * @category Search
 */
export interface MaxSimOut {
  /** Receives the scores, one per document. It may be longer. */
  out: Float32Array;
}

/**
 * The properties that an index here and an index in a worker share.
 *
 * @category Search
 */
export interface IndexInfo {
  /** The number of elements of each vector. */
  readonly dimensions: number;
  /** How vectors are compared. */
  readonly metric: Metric;
  /** The type that vectors are held in. */
  readonly dtype: IndexDType;
  /** The number of vectors. In a worker: after the last call that has settled. */
  readonly size: number;
  /**
   * The position that the next vector gets: 1 more than the last one. The index never uses a
   * position again. In a worker: after the last call that has settled.
   */
  readonly nextPosition: number;
  /**
   * Bytes of the memory of the instance that the vectors take. In a worker: after the last call
   * that has settled.
   */
  readonly byteLength: number;
  /** Whether its own `dispose()`, or the end of its instance, has ended it. */
  readonly disposed: boolean;
  /** Frees the memory. Does nothing the second time. */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

/**
 * An index of vectors. {@link wgemm/search!createIndex | createIndex} and
 * {@link wgemm/search!deserializeIndex | deserializeIndex} make it. It owns its memory until its
 * `dispose()`, the `dispose()` of its instance, or garbage collection.
 *
 * Each vector has a position: 0 for the first one, then 1, and so on. If the first `add` has ids,
 * each vector must have an id. Otherwise the positions are the ids.
 *
 * Scores are defined to the bit, unless `fast` is true. Products are added in the order of the
 * elements, in float32, with one rounding per product and one per sum. In int8 and uint8, the sum
 * is exact. The sum of squares of each vector is computed in the same way. The score follows from
 * these sums in float64, and is rounded once to float32. Equal scores are ordered by position.
 *
 * @typeParam I the type of ids
 * @category Search
 */
export interface VectorIndex<I extends VectorId = number> extends IndexInfo {
  /**
   * Adds copies of vectors. If the vectors do not fit in memory twice, add them in parts. If it
   * throws, it has added nothing.
   *
   * @param vectors a tensor of shape [n, dimensions] or [dimensions], or the elements of any number
   * of vectors, one vector after the other. Elements: float32, float16, bfloat16, int8 or uint8
   * @param ids one id per vector, which the index does not have yet. Absent in an index without ids
   * @returns the position of the first vector. The others follow
   * @throws ShapeError, DTypeError, ArgumentError (also for NaN, infinity, and with `'cosine'` for
   * a vector of zeros), DisposedError, OutOfMemoryError
   */
  add(vectors: VectorList | Operand<VectorArray>, ids?: readonly I[]): number;
  /**
   * Adds vectors, and removes the vectors that had their ids. The new vectors get new positions. If
   * it throws, it has changed nothing.
   *
   * @param vectors as for `add`
   * @param ids one id per vector. The index need not have them. In an index without ids, the
   * positions of vectors to remove
   * @returns the position of the first vector. The others follow
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  update(vectors: VectorList | Operand<VectorArray>, ids: readonly I[]): number;
  /**
   * Removes vectors. Their memory becomes free when a quarter of all vectors are removed.
   *
   * @param ids one id; or several, in an array or a Set. Ids that the index does not have are
   * ignored
   * @returns how many vectors were removed
   * @throws ArgumentError, DisposedError
   */
  remove(ids: I | readonly I[] | ReadonlySet<I>): number;
  /**
   * Writes the vectors that are nearest to each query into arrays of the caller, best first. If the
   * query is one vector in a typed array, or a tensor of `alloc()`, and a filter is bits, the call
   * makes no object.
   *
   * @param query a vector; or a tensor of shape [n, dimensions] or [dimensions]
   * @param k the most matches of a query: a whole number from 1
   * @param options `out` is required
   * @returns the number of matches, of all queries together
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError; nothing is
   * written then
   */
  search(
    query: VectorList | Operand<VectorArray>,
    k: number,
    options: SearchOptions<IndexFilter<I>> & {
      /** The arrays that receive the result. */
      out: SearchOut;
    },
  ): number;
  /**
   * Returns the vectors that are nearest to one query, best first. There are `k` of them, or all
   * that pass `filter` and `minScore` if these are fewer.
   *
   * @param query a vector, as an array or a tensor of shape [dimensions]
   * @param k the most matches: a whole number from 1
   * @param options all have defaults
   * @returns the matches, in a new array
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  search(
    query:
      | VectorList
      | (Operand<VectorArray> & {
          /** One axis. */
          readonly shape: readonly [number];
        }),
    k: number,
    options?: (SearchOptions<IndexFilter<I>> & { out?: undefined }) | null,
  ): Match<I>[];
  /**
   * Returns the vectors that are nearest to each of several queries, best first.
   *
   * @param queries a tensor of shape [n, dimensions]
   * @param k the most matches of a query: a whole number from 1
   * @param options all have defaults
   * @returns an array of matches per query
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  search(
    queries: Operand<VectorArray> & {
      /** Two axes. */
      readonly shape: readonly [number, number];
    },
    k: number,
    options?: (SearchOptions<IndexFilter<I>> & { out?: undefined }) | null,
  ): Match<I>[][];
  /**
   * Searches by a tensor whose type does not say how many axes it has.
   *
   * @param query a tensor of shape [n, dimensions] or [dimensions]
   * @param k the most matches of a query: a whole number from 1
   * @param options all have defaults
   * @returns the matches of a vector, or an array of matches per query
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  search(
    query: Operand<VectorArray>,
    k: number,
    options?: (SearchOptions<IndexFilter<I>> & { out?: undefined }) | null,
  ): Match<I>[] | Match<I>[][];
  /**
   * Returns the id of the vector at a position: in an index without ids, the position. Returns
   * undefined if the index has no vector there.
   *
   * @param position a whole number from 0
   * @throws ArgumentError, DisposedError
   */
  idOf(position: number): I | undefined;
  /**
   * Computes the score of documents that have a vector per token, as models with late interaction
   * do. Each vector of the query adds its best score with a vector of the document. The metric must
   * be `'dot'` or `'cosine'`.
   *
   * @param query a tensor of shape [n, dimensions], or vectors one after the other
   * @param documents per document the position after its last vector, ascending. The first document
   * begins at position 0, and each other one where the one before it ends
   * @param options `out`: the array that receives the scores
   * @returns a score per document, in `out` or in a new array. It is -Infinity for a document
   * without vectors
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError; nothing is
   * written then
   */
  maxSim(
    query: VectorList | Operand<VectorArray>,
    documents: Uint32Array,
    options?: (MaxSimOptions & Partial<MaxSimOut>) | null,
  ): Float32Array;
  /**
   * Returns the whole index as bytes, in a new array that the caller owns. `deserializeIndex` makes
   * an index from them, in any instance, build or engine. Vectors that were removed are not in it.
   *
   * @throws DisposedError, OutOfMemoryError
   */
  serialize(): NewArrays['uint8'];
}
