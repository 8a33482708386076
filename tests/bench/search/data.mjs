// The vectors and the queries of the benchmark of search, and the true neighbours of each query.
import { randomFrom } from '../../conformance/qgemm.mjs';

export const dimensions = 384; // as MiniLM and other small models of embeddings have

/** How many queries are searched for together. */
export const batch = 32;

/** How many vectors a cluster has on average, at every size of an index. */
const perCluster = 10;
/** The length of the noise, relative to the length of a centre. */
const noise = 1;

/**
 * 'clustered': vectors around random centres, as texts are around topics. The clusters overlap such
 * that HNSW with usual parameters finds about 95% of the nearest. 'random': vectors without
 * structure, about equally far from each query: the worst case of an approximate index. An exact
 * search does the same work for both.
 */
export const kinds = ['clustered', 'random'];

/** Makes vectors of length 1, and queries like them that are not among them. Both are row-major. */
export function makeData(kind, count, queryCount, seed = 1) {
  const random = randomFrom(seed);
  const isClustered = kind === 'clustered';
  const centres = rowsOf(isClustered ? Math.ceil(count / perCluster) : 1, (row) =>
    addNoise(row, 1, random),
  );
  const fill = (row) => {
    if (!isClustered) return addNoise(row, 1, random);
    const at = Math.floor((random() * centres.length) / dimensions) * dimensions;
    row.set(centres.subarray(at, at + dimensions));
    addNoise(row, noise, random);
  };
  return { vectors: rowsOf(count, fill), queries: rowsOf(queryCount, fill) };
}

function rowsOf(count, fill) {
  const rows = new Float32Array(count * dimensions);
  for (let at = 0; at < rows.length; at += dimensions) fill(rows.subarray(at, at + dimensions));
  return rows;
}

/** Adds a vector of this length in a random direction, and makes the sum a vector of length 1. */
function addNoise(row, length, random) {
  const most = length * Math.sqrt(12 / dimensions); // of uniform numbers with that length
  let squares = 0;
  for (let j = 0; j < dimensions; ++j) {
    const value = row[j] + most * (random() - 0.5);
    row[j] = value;
    squares += value * value;
  }
  const factor = 1 / Math.sqrt(squares);
  for (let j = 0; j < dimensions; ++j) row[j] *= factor;
}

/** The positions of the k nearest vectors of each query, by cosines in float64. */
export function nearest({ vectors, queries }, k) {
  const wide = new Float64Array(queries);
  const count = queries.length / dimensions;
  const best = Array.from({ length: count }, () => []);
  for (let at = 0; at < vectors.length; at += dimensions) {
    const vector = new Float64Array(vectors.subarray(at, at + dimensions));
    const length = Math.sqrt(dot(vector, vector, 0));
    for (let i = 0; i < count; ++i)
      insert(best[i], k, at / dimensions, dot(vector, wide, i * dimensions) / length);
  }
  return best.map((list) => list.map(({ position }) => position));
}

function dot(vector, queries, at) {
  let [even, odd] = [0, 0]; // an addition to a sum waits for the one before
  for (let j = 0; j < dimensions; j += 2) {
    even += vector[j] * queries[at + j];
    odd += vector[j + 1] * queries[at + j + 1];
  }
  return even + odd;
}

/** Inserts a vector into the list of the k nearest, the nearest first. */
export function insert(list, k, position, score) {
  if (list.length === k && score <= list[k - 1].score) return;
  let at = list.length < k ? list.length : k - 1;
  for (; at > 0 && list[at - 1].score < score; --at) list[at] = list[at - 1];
  list[at] = { position, score };
}

/** The share of the true neighbours that were found. */
export function recallOf(found, truth) {
  const shares = truth.map((positions, i) => {
    const set = new Set(found[i]);
    return positions.filter((position) => set.has(position)).length / positions.length;
  });
  return shares.reduce((sum, share) => sum + share) / shares.length;
}
