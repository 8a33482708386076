// The same search in plain JavaScript, as one would write it without a library.
import { top } from './top.mjs';

/** The nearest by two loops. `cosines` has room for a number per vector. */
export function searchInJavaScript(vectors, query, wanted, cosines) {
  const data = vectors.data;
  for (let i = 0; i < cosines.length; ++i) cosines[i] = dot(data, i * query.length, query);
  return top(cosines, wanted);
}

/** Has four sums, since an addition to a sum waits for the one before. `size` divides by four. */
export function dot(data, at, query) {
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  for (let j = 0; j < query.length; j += 4) {
    s0 += data[at + j] * query[j];
    s1 += data[at + j + 1] * query[j + 1];
    s2 += data[at + j + 2] * query[j + 2];
    s3 += data[at + j + 3] * query[j + 3];
  }
  return s0 + s1 + (s2 + s3);
}
