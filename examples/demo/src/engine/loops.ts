/**
 * The product in plain JavaScript. A query after the name of this file imports a copy of its own:
 * './loops.ts?float32'.
 */
import type { Product } from './product.ts';

export type Numbers = Float32Array | Float64Array | Int32Array | Int8Array | Uint8Array;

// #region javascript
/** Y = (A - zero) * B by three loops. The innermost reads and writes along rows. */
export function multiply(product: Product, a: Numbers, b: Numbers, y: Numbers, zero: number): void {
  const { m, n, k, transA, transB } = product;
  const [rowOfA, columnOfA] = transA ? [1, m] : [k, 1];
  const [rowOfB, columnOfB] = transB ? [1, k] : [n, 1];
  y.fill(0);
  for (let i = 0; i < m; ++i)
    for (let p = 0; p < k; ++p) {
      const factor = a[i * rowOfA + p * columnOfA]! - zero;
      for (let j = 0; j < n; ++j) y[i * n + j]! += factor * b[p * rowOfB + j * columnOfB]!;
    }
}
// #endregion
