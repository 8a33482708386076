/** Gemm as its specification defines it, in plain loops. Slow, and short enough to be checked by reading. */
import type { DataArray } from 'wgemm';

export interface Matrix {
  data: DataArray;
  shape: readonly number[];
  strides?: readonly number[];
}

export interface Factors {
  alpha?: number;
  beta?: number;
  transA?: boolean | number;
  transB?: boolean | number;
}

/** Y in row-major order, and how far from it each element of a result may be. */
export interface Expected {
  shape: [m: number, n: number];
  values: ArrayLike<number>;
  bounds: ArrayLike<number>;
}

export function referenceGemm(a: Matrix, b: Matrix, c: Matrix | number | null | undefined, factors: Factors = {}): Expected {
  return a.data instanceof Int32Array ? int32Gemm(a, b, c, factors) : float32Gemm(a, b, c, factors);
}

/** Sums in float64: the products are exact there, and what the sum loses is far below the bound. */
function float32Gemm(a: Matrix, b: Matrix, c: Matrix | number | null | undefined, factors: Factors): Expected {
  const { m, n, k, atA, atB, atC, hasC } = read(a, b, c, factors);
  const alpha = Math.fround(factors.alpha ?? 1);
  const beta = Math.fround(factors.beta ?? 1);
  const eps = 2 ** -24;
  const values = new Float64Array(m * n);
  const bounds = new Float64Array(m * n);
  for (let i = 0; i < m; ++i) {
    for (let j = 0; j < n; ++j) {
      let sum = 0;
      let magnitude = 0;
      for (let p = 0; p < k; ++p) {
        const product = atA(i, p) * atB(p, j);
        sum += product;
        magnitude += Math.abs(product);
      }
      const added = hasC && beta !== 0 ? beta * Math.fround(atC(i, j)) : 0; // beta = 0: C is not read
      const y = k === 0 ? added : alpha * sum + added;
      values[i * n + j] = y;
      const terms = (k === 0 ? 0 : Math.abs(alpha) * magnitude) + Math.abs(added);
      const overflows = Number.isFinite(y) && terms >= 2 ** 127; // float32 may have met infinity on its way: nothing can be said
      bounds[i * n + j] = overflows ? Infinity : (k + 8) * eps * terms + eps * Math.abs(y) + 2 ** -149; // the last: of subnormal numbers
    }
  }
  return { shape: [m, n], values, bounds };
}

/**
 * The product modulo 2^32; Y too where alpha and beta are whole, else by way of float64, truncated and saturated. A factor of nothing,
 * alpha where K is 0 and beta where there is no C, does not count.
 */
function int32Gemm(a: Matrix, b: Matrix, c: Matrix | number | null | undefined, factors: Factors): Expected {
  const { m, n, k, atA, atB, atC, hasC } = read(a, b, c, factors);
  const { alpha = 1, beta = 1 } = factors;
  const whole = (k === 0 || Number.isInteger(alpha)) && (!hasC || Number.isInteger(beta));
  const values = new Int32Array(m * n);
  for (let i = 0; i < m; ++i) {
    for (let j = 0; j < n; ++j) {
      let sum = 0n;
      for (let p = 0; p < k; ++p) sum += BigInt(atA(i, p)) * BigInt(atB(p, j));
      const product = BigInt.asIntN(32, sum);
      values[i * n + j] = whole
        ? Number(BigInt.asIntN(32, BigInt(Math.trunc(alpha)) * product + BigInt(Math.trunc(beta)) * BigInt(atC(i, j))))
        : Math.min(Math.max(Math.trunc(alpha * Number(product) + beta * atC(i, j)), -(2 ** 31)), 2 ** 31 - 1);
    }
  }
  return { shape: [m, n], values, bounds: new Int32Array(m * n) };
}

type At = (row: number, column: number) => number;

function read(a: Matrix, b: Matrix, c: Matrix | number | null | undefined, { transA, transB }: Factors) {
  const atA = transposed(elements(a), transA);
  const atB = transposed(elements(b), transB);
  return {
    m: a.shape[transA ? 1 : 0] as number,
    k: a.shape[transA ? 0 : 1] as number,
    n: b.shape[transB ? 0 : 1] as number,
    atA,
    atB,
    hasC: c !== undefined && c !== null,
    atC: typeof c === 'number' ? () => c : c ? elements(c) : () => 0,
  };
}

function transposed(at: At, flag: unknown): At {
  return flag ? (row, column) => at(column, row) : at;
}

/** A tensor of rank 2 or less, broadcast to a matrix: an axis that is not there, or has size 1, is not walked. */
function elements({ data, shape, strides }: Matrix): At {
  const [rows = 1, columns = 1] = shape.length === 2 ? shape : [1, ...shape];
  const [rowStride = 0, columnStride = 0] = strides === undefined ? [columns, 1] : shape.length === 2 ? strides : [0, ...strides];
  const down = rows === 1 ? 0 : rowStride;
  const across = columns === 1 ? 0 : columnStride;
  return (row, column) => data[row * down + column * across] as number;
}
