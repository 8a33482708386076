/** Checks of `syrk`, which its tests share. */
import type { Gemm, SyrkArray, SyrkOptions, TensorLike } from 'wgemm';
import { dtypeOf, get } from './dtypes.js';
import { elements, type Expected, type Matrix, referenceGemm } from './reference.js';
import { expectCall, must } from './tensors.js';

/** The options of `gemm` that make it compute `syrk`. */
export const ofGemm = ({ alpha, transA }: SyrkOptions) => ({ alpha, transA, transB: !transA });

/** The expected result of `syrk`, and the allowed error of each element. */
export const referenceSyrk = (a: Matrix, { alpha = 1, transA = false }: SyrkOptions): Expected =>
  referenceGemm(a, a, null, { alpha, transA, transB: !transA });

/**
 * Calls `syrk`. Expects all of `expectCall`, an exactly symmetric result, and in the lower triangle
 * the numbers of `gemm`, bit by bit. The bits of a NaN may differ. In fast mode, the result of `gemm`
 * may not be symmetric: with 3 rows, the sum of the last column has another order.
 */
export function expectSyrk(wg: Gemm, a: TensorLike, options: SyrkOptions = {}, what = ''): void {
  const tensor = a as TensorLike<SyrkArray>;
  const out = options.out as TensorLike | undefined;
  const wanted = referenceSyrk(a, options);
  const y = expectCall(wg, [a], out, wanted, () => wg.syrk(tensor, options) as TensorLike, what);
  const dtype = dtypeOf(a);
  const product = wg.gemm(tensor, tensor, null, ofGemm(options)).data;
  const at = elements(dtype, y);
  const [n] = wanted.shape;
  for (let i = 0; i < n; ++i) {
    for (let j = 0; j < n; ++j) {
      const found = at(i, j);
      must(Object.is(found, at(j, i)), `Y[${i}, ${j}] is not Y[${j}, ${i}]`, what);
      const other = get(product, dtype, Math.max(i, j) * n + Math.min(i, j));
      must(Object.is(found, other), `Y[${i}, ${j}] is ${found}, and ${other} by gemm`, what);
    }
  }
}
