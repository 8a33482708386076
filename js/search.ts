/**
 * Nearest vectors: an index holds vectors in the memory of an instance, and a search returns the
 * `k` vectors that are nearest to a query. Every vector is compared, so results are exact. This is
 * an entry of its own, so that a page without it does not load it. For an index in a worker, import
 * the same functions from `wgemm/worker`.
 *
 * @module wgemm/search
 */
export { createIndex, deserializeIndex } from './search/create-index.js';
export type {
  IndexDType,
  IndexFilter,
  IndexInfo,
  IndexOptions,
  Match,
  MaxSimOptions,
  MaxSimOut,
  Metric,
  SearchOptions,
  SearchOut,
  VectorArray,
  VectorId,
  VectorIndex,
  VectorList,
  VectorTest,
} from './search/types.js';
