// Two ways to find the nearest vectors by a product of matrices. All vectors have length 1, so
// their products with a query are the cosines. Each search compares all vectors.
import { quantize } from 'wgemm';
import { dot } from './plain.mjs';
import { top } from './top.mjs';

/** Searches `vectors`, a float32 tensor of shape [count, size] in the memory of the instance. */
export function float32Index(wg, vectors) {
  // #region float32
  const [count, size] = vectors.shape;
  const query = wg.alloc('float32', [size, 1]);
  const cosines = wg.alloc('float32', [count, 1]);

  function search(vector, wanted) {
    query.data.set(vector);
    wg.gemm(vectors, query, null, { out: cosines });
    return top(cosines.data, wanted);
  }
  // #endregion
  return { search };
}

const rowsPerBlock = 25_000; // 10 MB while they are packed
const rowsPerStep = 5000; // some ms
const candidatesPerWanted = 4;

/**
 * Searches an int8 copy of `vectors`, which takes a quarter of the bytes. It is made in steps: they
 * yield the fraction that is done.
 */
export function* int8Index(wg, vectors) {
  const [count, size] = vectors.shape;
  wg.alloc('int8', [count + rowsPerBlock, size]).dispose(); // the memory grows once, not per block
  const cosines = wg.alloc('float32', [1, count]);
  const codes = wg.alloc('int8', [rowsPerBlock, size]);
  const blocks = [];
  for (let first = 0; first < count; first += rowsPerBlock) {
    const rows = Math.min(rowsPerBlock, count - first);
    const bScale = new Float32Array(rows); // one per vector
    for (let row = 0; row < rows; row += rowsPerStep) {
      const shape = [Math.min(rowsPerStep, rows - row), size];
      const { scale } = quantize(
        { data: vectors, shape, offset: (first + row) * size },
        { symmetric: true, axis: 0, out: { data: codes, shape, offset: row * size } },
      );
      bScale.set(scale, row);
      yield (first + row) / count;
    }
    const b = wg.pack({ data: codes, shape: [rows, size] }, { op: 'qgemm', trans: true });
    blocks.push({ b, bScale, out: { data: cosines, shape: [1, rows], offset: first } });
    yield (first + rows) / count;
  }
  codes.dispose();

  // #region int8
  function search(vector, wanted) {
    const a = quantize({ data: vector, shape: [1, size] }, { symmetric: true });
    for (const { b, bScale, out } of blocks) {
      wg.qgemm({ a, aScale: a.scale, b, bScale }, { out });
    }
    // These cosines are rounded, so float32 decides among more candidates than are wanted.
    const data = vectors.data;
    return top(cosines.data, candidatesPerWanted * wanted)
      .map(({ index }) => ({ index, cosine: dot(data, index * size, vector) }))
      .sort((one, two) => two.cosine - one.cosine)
      .slice(0, wanted);
  }
  // #endregion
  return { search, byteLength: blocks.reduce((sum, { b }) => sum + b.byteLength, 0) };
}
