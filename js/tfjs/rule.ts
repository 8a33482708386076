/**
 * When wgemm is faster than a kernel of tfjs 4.22. The numbers are fits to sweeps of sizes on Zen 5
 * and on Emerald Rapids, in Node with relaxed SIMD. They favor the old kernel, so that no size is
 * slower than it was.
 *
 * A call of wgemm costs about 1 us more than one of the old kernels, since it copies operands and
 * result between two memories, and has more to check. `tests/bench/tfjs.mjs` measures the sweeps.
 */

/**
 * @internal The cost of bias and activation in wgemm beyond their cost in the old kernels, in
 * products. XNNPACK adds the bias, and applies bounds, to sums in registers. wgemm does so in
 * passes over each row. Other activations run on the same kernels, but need another result.
 *
 * @param rows the rows of all matrices of the result
 */
export function costOfEpilogue(
  rows: number,
  n: number,
  hasBias: boolean,
  hasActivation: boolean,
): number {
  return rows * ((hasBias ? 1000 + 8 * n : 0) + (hasActivation ? 8 * n : 0));
}

/**
 * @internal Compared with XNNPACK, which computes the products of `wasm` without transposes and
 * batch axes. wgemm is about 1.4 times as fast, but copies A and the result. So it pays if the
 * product is large and each copied element is in enough products, which needs a large K or N. A
 * result of more than 1 MiB needs more products, since L2 does not hold it and its copy. For fewer
 * than 8 columns XNNPACK takes as long as for 8. If the result is small, both read B once, and are
 * equally fast.
 *
 * @param epilogue what `costOfEpilogue` returns
 */
export function isFasterThanXnnpack(m: number, n: number, k: number, epilogue: number): boolean {
  const products = m * k * Math.ceil(n / 8) * 8;
  const perResult = m * n > 2 ** 18 ? 10 : 5;
  return m * n >= 256 && products >= 70_000 + m * (5 * k + perResult * n) + epilogue;
}

/**
 * @internal Compared with loops over elements: other products of `wasm`, and all of `cpu`. wgemm
 * takes about 0.1 us more for each matrix of a batch. A product of two vectors takes as long as
 * their copy. The loops take as long for one product as XNNPACK for 32.
 *
 * @param epilogue what `costOfEpilogue` returns
 */
export function isFasterThanLoops(
  batch: number,
  m: number,
  n: number,
  k: number,
  epilogue: number,
): boolean {
  return m * n > 1 && batch * (m * n * k - 200) >= 3000 + epilogue / 32;
}
