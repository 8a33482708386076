// The greatest of many numbers.

/** The places of the greatest `wanted` numbers, the greatest first, with the numbers. */
export function top(cosines, wanted) {
  const places = [];
  let least = -Infinity; // of the places, once there are enough
  for (let i = 0; i < cosines.length; ++i) {
    const cosine = cosines[i];
    if (cosine <= least) continue; // as nearly all
    let at = Math.min(places.length, wanted - 1);
    for (; at > 0 && cosines[places[at - 1]] < cosine; --at) places[at] = places[at - 1];
    places[at] = i;
    if (places.length === wanted) least = cosines[places[wanted - 1]];
  }
  return places.map((index) => ({ index, cosine: cosines[index] }));
}

/**
 * How many of `found` are among the `expected`. One as near as the last of these counts: which of
 * two such vectors is the nearer is a matter of rounding.
 */
export function agreement(found, expected) {
  const indices = new Set(expected.map(({ index }) => index));
  const { cosine: last } = expected.at(-1);
  return found.filter(({ index, cosine }) => indices.has(index) || cosine > last - 1e-6).length;
}
