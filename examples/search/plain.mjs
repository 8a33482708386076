// The same search in plain JavaScript, as one would write it without a library.

/**
 * The nearest by two loops: `{ id, score }` of the greatest cosines, the greatest first.
 *
 * @param rows vectors of length 1, one after the other
 * @param scores has room for a number per vector
 */
export function searchInJavaScript(rows, query, k, scores) {
  for (let i = 0; i < scores.length; ++i) scores[i] = dot(rows, i * query.length, query);
  return top(scores, k);
}

/** How many of `ids` are among the `nearest` of a query, as the loops found them. */
export function agreement(ids, rows, query, nearest) {
  // Rounding decides which of two vectors that are this close is nearer.
  const least = nearest.at(-1).score - 1e-6;
  return ids.filter((id) => dot(rows, id * query.length, query) > least).length;
}

/** Has four sums, since an addition to a sum waits for the one before. `size` divides by four. */
function dot(rows, at, query) {
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  for (let j = 0; j < query.length; j += 4) {
    s0 += rows[at + j] * query[j];
    s1 += rows[at + j + 1] * query[j + 1];
    s2 += rows[at + j + 2] * query[j + 2];
    s3 += rows[at + j + 3] * query[j + 3];
  }
  return s0 + s1 + (s2 + s3);
}

/** The places of the `k` greatest numbers, the greatest first, with the numbers. */
function top(scores, k) {
  const places = [];
  let least = -Infinity; // of the places, once there are enough
  for (let i = 0; i < scores.length; ++i) {
    const score = scores[i];
    if (score <= least) continue; // as nearly all
    let at = Math.min(places.length, k - 1);
    for (; at > 0 && scores[places[at - 1]] < score; --at) places[at] = places[at - 1];
    places[at] = i;
    if (places.length === k) least = scores[places[k - 1]];
  }
  return places.map((id) => ({ id, score: scores[id] }));
}
