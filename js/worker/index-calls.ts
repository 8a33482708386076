/** The calls of indexes in the worker. */
import { OutOfMemoryError } from '../base/errors.js';
import type { VectorIndex } from '../search/vector-index.js';
import type { IndexAnswer, IndexMethod, IndexState, SearchResult, Values } from './message.js';

/** An operand as a tensor. */
interface Given {
  readonly shape: readonly number[];
}

type Calls = {
  readonly [M in IndexMethod]: (
    index: VectorIndex,
    values: Values[M],
    operand: Given | undefined,
  ) => unknown;
};

const calls: Calls = {
  add: (index, { ids }, vectors) => index.add(vectors, ids),
  update: (index, { ids }, vectors) => index.update(vectors, ids),
  remove: (index, { ids }) => index.remove(ids),
  search: (index, { k, hasOut, filter, minScore, candidates, fast }, query) => {
    const options = { filter, minScore, candidates, fast };
    return hasOut ? searchInto(index, query as Given, k, options) : index.search(query, k, options);
  },
  idOf: (index, { position }) => index.idOf(position),
  maxSim: (index, { documents, fast }, query) => index.maxSim(query, documents, { fast }),
};

/** @internal */
export const indexMethods = Object.keys(calls) as IndexMethod[];

/** @internal Makes a call of an index. */
export function callIndex<M extends IndexMethod>(
  index: VectorIndex,
  method: M,
  values: Values[M],
  operand: Given | undefined,
): IndexAnswer {
  const result = calls[method](index, values, operand);
  return { state: stateOf(index), result };
}

/** @internal An index as the page knows it. */
export function stateOf(index: VectorIndex): IndexState {
  const { dimensions, metric, dtype, size, nextPosition, byteLength } = index;
  return { dimensions, metric, dtype, size, nextPosition, byteLength };
}

function searchInto(index: VectorIndex, query: Given, k: number, options: object): SearchResult {
  const op = 'search';
  const rows = query.shape.length === 1 ? 1 : (query.shape[0] as number);
  const step = Math.min(k, Math.max(index.size, 1));
  let out;
  try {
    const [positions, scores] = [new Uint32Array(rows * step), new Float32Array(rows * step)];
    out = { positions, scores, found: new Uint32Array(rows) };
  } catch (error) {
    const message = `${op}: cannot allocate ${rows * step} matches (${String(error)})`;
    throw new OutOfMemoryError(op, '', message);
  }
  index.search(query, step, { ...options, out });
  return { ...out, step };
}
