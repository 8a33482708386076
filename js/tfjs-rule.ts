/**
 * When wgemm is faster than a kernel of tfjs 4.22. The numbers are fits to sweeps of sizes on Zen
 * 5, in Node with relaxed SIMD. They favor the old kernel, so that no size is slower than it was.
 *
 * A call of wgemm costs about 1 us more than one of the old kernels, since it copies operands and
 * result between two memories, and has more to check. `tests/bench/tfjs.mjs` measures the sweeps.
 */

/**
 * @internal Beside XNNPACK, which computes the products of `wasm` without transposes and batch
 * axes. wgemm is about 1.4 times as fast. So it pays if the product is large, and if K or N is:
 * each element that is copied, of A and of the result, must be in enough products. For fewer than 8
 * columns XNNPACK takes as long as for 8. If the result is small, both read B once, and are equally
 * fast.
 */
export function isFasterThanXnnpack(m: number, n: number, k: number): boolean {
  const products = m * k * Math.ceil(n / 8) * 8;
  return m * n >= 256 && products >= 70_000 + 5 * m * (k + n);
}

/**
 * @internal Beside loops over elements: all other products of `wasm`, and those of `cpu`. wgemm
 * takes about 0.1 us more for each matrix of a batch. A product of two vectors takes as long as
 * their copy.
 */
export function isFasterThanLoops(batch: number, m: number, n: number, k: number): boolean {
  return m * n > 1 && batch * (m * n * k - 200) >= 3000;
}
