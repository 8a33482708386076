// Products in floating point, and their errors in units of eps * sum |a||b|.
import { distributions, draw, numbersOf, tensorOf } from './data.mjs';
import { ExactSum, floats, ulp } from './exact.mjs';

const lengths = [16, 256, 4096];

/** Shapes that different micro-kernels serve, M by N, and the form of B. */
const forms = [
  { m: 48, n: 72 },
  { m: 33, n: 40, transB: true },
  { m: 20, n: 64, packed: true },
  { m: 1, n: 96 },
  { m: 40, n: 1 },
];

/** The float that a type is computed in. */
const computedIn = (dtype) => (dtype === 'float64' ? 'float64' : 'float32');
const epsOf = (dtype) => 2 ** -floats[computedIn(dtype)].digits;

/**
 * A problem of gemm: how to run it, and how far element i of a result is from the exact one.
 *
 * @param kind `dtype`; `as`: the type of packed weights; `alpha`, `beta`; `unit`: 'ulp' of the type
 */
function gemmProblem(
  { dtype, as, alpha = 1, beta = 0, isRounded },
  { m, n, k, transB, packed },
  at,
) {
  const [seed, distribution] = at;
  const a = draw(seed, dtype, [m, k], distribution);
  const b = draw(seed + 1, dtype, transB ? [n, k] : [k, n], distribution);
  const c = beta === 0 ? undefined : draw(seed + 2, dtype, [m, n], distribution);
  const weights = as ? tensorOf(as, b.shape, b.numbers) : b;
  const eps = epsOf(dtype);
  const factors = [alpha, beta].map(dtype === 'float64' ? Number : Math.fround);
  const [stepK, stepN] = transB ? [1, k] : [n, 1];
  // Each sum is kept as two numbers, and its unit.
  const [sums, errors, units] = [0, 1, 2].map(() => new Float64Array(m * n));
  for (let i = 0; i < m; ++i) {
    for (let j = 0; j < n; ++j) {
      const exact = new ExactSum();
      for (let p = 0; p < k; ++p) {
        const [x, y] = [a.numbers[i * k + p], weights.numbers[p * stepK + j * stepN]];
        // A product of two numbers of float32 is exact in float64.
        if (dtype === 'float64') exact.addProduct(x, y);
        else exact.add(x * y);
      }
      if (alpha !== 1) exact.scale(factors[0]);
      if (c) exact.addProduct(factors[1], c.numbers[i * n + j]);
      const index = i * n + j;
      sums[index] = exact.sum;
      errors[index] = exact.error;
      units[index] = isRounded ? ulp(exact.value, floats[dtype]) : eps * exact.magnitude;
    }
  }
  return {
    run(wg) {
      const options = { alpha, ...(beta !== 0 && { beta }) };
      if (!packed && !as) return resultOf(wg, { a, b, c, transB, isRounded, options });
      const w = wg.pack(b, { op: 'gemm', trans: transB, as });
      const y = wg.gemm(a, w, c, options);
      w.dispose();
      return numbersOf(y);
    },
    errorAt: (i, y) => Math.abs(y - sums[i] - errors[i]) / units[i],
    operands: { a, b, m, n, k },
  };
}

/** The numbers of Y. Products of 16 bits have a result of float32, unless it is rounded. */
function resultOf(wg, { a, b, c, transB, isRounded, options }) {
  if (a.data instanceof Uint16Array && !isRounded)
    return numbersOf(wg.matmul(a, b, null, { transposeB: transB, outType: 'float32' }));
  return numbersOf(wg.gemm(a, b, c, { ...options, transB }));
}

function* problemsOf(kind, k, chosen) {
  let seed = 1;
  for (const form of chosen)
    for (const distribution of distributions)
      yield gemmProblem(kind, { ...form, k }, [(seed += 10), distribution]);
}

function gemmRow(name, kind, k) {
  const is16 = kind.dtype.endsWith('float16');
  // Packed weights have no outType of their own here: their products are rounded.
  const chosen = forms.filter(({ packed }) => !packed || !is16 || kind.isRounded);
  return {
    table: kind.isRounded ? 'halves' : 'products',
    name,
    k,
    bound: kind.isRounded ? undefined : k + 8,
    problems: () => problemsOf(kind, k, chosen),
  };
}

/** A stack of products. */
function batchRow(k) {
  const [batch, m, n] = [6, 24, 40];
  return {
    table: 'products',
    name: 'matmul float32, 6 matrices',
    k,
    bound: k + 8,
    *problems() {
      for (const distribution of distributions) {
        const stacks = [draw(5, 'float32', [batch, m, k], distribution)];
        stacks.push(draw(6, 'float32', [batch, k, n], distribution));
        const [a, b] = stacks;
        yield {
          run: (wg) => numbersOf(wg.matmul(a, b)),
          errorAt(index, y) {
            const [i, j] = [Math.floor(index / n), index % n];
            const first = Math.floor(i / m) * k * n + j;
            const exact = new ExactSum();
            for (let p = 0; p < k; ++p) exact.add(a.numbers[i * k + p] * b.numbers[first + p * n]);
            return exact.distance(y) / (2 ** -24 * exact.magnitude);
          },
        };
      }
    },
  };
}

export const productRows = [
  ...lengths.map((k) => gemmRow('gemm float32', { dtype: 'float32' }, k)),
  gemmRow('gemm float32 with alpha, beta, C', { dtype: 'float32', alpha: 0.37, beta: -1.5 }, 256),
  gemmRow('gemm float32, weights as bfloat16', { dtype: 'float32', as: 'bfloat16' }, 256),
  batchRow(256),
  ...lengths.map((k) => gemmRow('gemm float64', { dtype: 'float64' }, k)),
  ...['float16', 'bfloat16'].flatMap((dtype) =>
    lengths.map((k) => gemmRow(`matmul ${dtype} to float32`, { dtype }, k)),
  ),
  ...['float16', 'bfloat16'].flatMap((dtype) =>
    [256, 4096].map((k) => gemmRow(`gemm ${dtype}`, { dtype, isRounded: true }, k)),
  ),
];

/** Problems of float32 for peers, whose operands are { a, b, m, n, k }. */
export const peerProblems = (k) => problemsOf({ dtype: 'float32' }, k, forms.slice(0, 1));
export { lengths };
