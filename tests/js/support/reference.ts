/**
 * Gemm and QGemm as their specifications define them, in plain loops. They are slow, and short
 * enough to check by reading.
 */
import type { DataArray, DType } from 'wgemm';
import {
  dtypeOf,
  floats,
  type Float,
  type GemmType,
  get,
  type Integer,
  integers,
  isFloat,
  type Quantized,
  quantized,
  round,
} from './dtypes.js';

export interface Matrix {
  data: DataArray;
  shape: readonly number[];
  dtype?: DType;
  strides?: readonly number[];
  offset?: number;
}
export type Bias = Matrix | number | bigint | null | undefined;

export interface Factors {
  alpha?: number | bigint;
  beta?: number | bigint;
  transA?: boolean | number;
  transB?: boolean | number;
}

/**
 * Y in row-major order, before it is rounded to its type, and how far from it each element of a
 * result may be before that.
 */
export interface Expected {
  dtype: DType;
  shape: [m: number, n: number];
  values: (number | bigint)[];
  bounds: number[];
}

export function referenceGemm(a: Matrix, b: Matrix, c: Bias, factors: Factors = {}): Expected {
  const dtype = dtypeOf(a) as GemmType;
  return isFloat(dtype) ? floatGemm(dtype, a, b, c, factors) : integerGemm(dtype, a, b, c, factors);
}

/** Sums carry their errors along, which makes them as good as exact, for float64 too. */
function floatGemm(dtype: Float, a: Matrix, b: Matrix, c: Bias, factors: Factors): Expected {
  const { m, n, k, atA, atB, atC } = read(dtype, a, b, c, factors);
  const computed = dtype === 'float64' ? 'float64' : 'float32';
  const { digits, least, most } = floats[computed];
  const [eps, tiny] = [2 ** -digits, 2 ** (least - digits + 1)];
  const alpha = round(computed, Number(factors.alpha ?? 1));
  const beta = round(computed, Number(factors.beta ?? 1));
  const [rows, columns] = [
    Float64Array.from(list(m, k, atA), Number),
    Float64Array.from(list(k, n, atB), Number),
  ];
  const values: number[] = [];
  const bounds: number[] = [];
  for (let i = 0; i < m; ++i) {
    for (let j = 0; j < n; ++j) {
      let sum = 0;
      let error = 0;
      let magnitude = 0;
      for (let p = 0; p < k; ++p) {
        const x = rows[i * k + p] as number;
        const y = columns[p * n + j] as number;
        const product = x * y;
        const next = sum + product;
        error += errorOfProduct(x, y, product) + errorOfSum(sum, product, next);
        sum = next;
        magnitude += Math.abs(product);
      }
      const scaled = k === 0 ? 0 : alpha * sum; // alpha = 0 does not skip the product
      const bias = beta !== 0 && atC ? Number(atC(i, j)) : undefined; // beta = 0: C is not read
      const added = bias === undefined ? 0 : beta * bias;
      const y = scaled + added;
      error =
        alpha * error +
        errorOfProduct(alpha, sum, scaled) +
        errorOfProduct(beta, bias ?? 0, added) +
        errorOfSum(scaled, added, y);
      values.push(Number.isFinite(y + error) ? y + error : y);
      const terms = (k === 0 ? 0 : Math.abs(alpha) * magnitude) + Math.abs(added);
      const steps = eps * terms + tiny * Math.max(1, Math.abs(alpha)); // the latter of products that are subnormal
      const overflows = Number.isFinite(y) && terms >= 2 ** most; // it may have met infinity on its way: nothing can be said
      bounds.push(overflows ? Infinity : (k + 8) * steps + eps * Math.abs(y));
    }
  }
  return { dtype, shape: [m, n], values, bounds };
}

/** The error of a rounded sum of two numbers. (Knuth, "The Art of Computer Programming" 2, 4.2.2.) */
function errorOfSum(a: number, b: number, sum: number): number {
  const rest = sum - a;
  return a - (sum - rest) + (b - rest);
}

/**
 * The error of a rounded product of two numbers. (Dekker, "A floating-point technique for extending the
 * available precision", 1971.)
 */
function errorOfProduct(a: number, b: number, product: number): number {
  const highA = upperHalf(a);
  const highB = upperHalf(b);
  const [lowA, lowB] = [a - highA, b - highB];
  return lowA * lowB - (product - highA * highB - lowA * highB - highA * lowB);
}

function upperHalf(value: number): number {
  const shifted = (2 ** 27 + 1) * value;
  return shifted - (shifted - value);
}

/**
 * The product modulo 2^bits. Y is exact, too, if alpha and beta are whole; else it is computed in
 * float64, truncated and saturated. Alpha does not count if K is 0, and beta does not count without
 * a C.
 */
function integerGemm(dtype: Integer, a: Matrix, b: Matrix, c: Bias, factors: Factors): Expected {
  const { m, n, k, atA, atB, atC } = read(dtype, a, b, c, factors);
  const { alpha = 1, beta = 1 } = factors;
  const { bits, signed } = integers[dtype];
  const wrap = (value: bigint) =>
    signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
  const [min, max] = signed
    ? [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n]
    : [0n, 2n ** BigInt(bits) - 1n];
  const saturate = (value: bigint) => (value < min ? min : value > max ? max : value);
  const isWhole = (factor: number | bigint) =>
    typeof factor === 'bigint' || Number.isInteger(factor);
  const whole = (factor: number | bigint) => (isWhole(factor) ? BigInt(factor) : 0n); // a fraction that does not count
  const exact = (k === 0 || isWhole(alpha)) && (!atC || isWhole(beta));
  const [rows, columns] = [list(m, k, atA).map(BigInt), list(k, n, atB).map(BigInt)];
  const values: bigint[] = [];
  for (let i = 0; i < m; ++i) {
    for (let j = 0; j < n; ++j) {
      let sum = 0n;
      for (let p = 0; p < k; ++p)
        sum += (rows[i * k + p] as bigint) * (columns[p * n + j] as bigint);
      const product = wrap(sum);
      const added = atC ? BigInt(atC(i, j)) : 0n;
      values.push(
        exact
          ? wrap(whole(alpha) * product + whole(beta) * added)
          : saturate(
              BigInt(Math.trunc(Number(alpha) * Number(product) + Number(beta) * Number(added))),
            ),
      );
    }
  }
  return { dtype, shape: [m, n], values, bounds: values.map(() => 0) };
}

/** A scale or zero point: one value, or one per column. */
export type Vector = number | DataArray | Matrix;

export interface QuantizedOperands {
  a: Matrix;
  aScale: Vector;
  aZeroPoint?: Vector | null;
  b: Matrix;
  bScale: Vector;
  bZeroPoint?: Vector | null;
  c?: Matrix | number | null;
  yScale?: Vector | null;
  yZeroPoint?: Vector | null;
}

export interface QuantizedFactors {
  alpha?: number;
  transA?: boolean | number;
  transB?: boolean | number;
}

/**
 * QGemm: sums in int32 that wraps, every step of a scale rounded to float32, and results rounded
 * half to even. Each bit counts.
 */
export function referenceQGemm(
  operands: QuantizedOperands,
  { alpha = 1, transA, transB }: QuantizedFactors = {},
): Expected {
  const { a, b, c, yScale, yZeroPoint } = operands;
  const { m, n, k, atA, atB, atC } = readMatrices(a, dtypeOf(a), b, dtypeOf(b), c, 'int32', {
    transA,
    transB,
  });
  const [aScale, aZeroPoint] = [vector(operands.aScale)(0), vector(operands.aZeroPoint)(0)];
  const [bScale, bZeroPoint] = [vector(operands.bScale), vector(operands.bZeroPoint)];
  const rows = Int32Array.from(list(m, k, atA), (value) => Number(value) - aZeroPoint);
  const columns = Int32Array.from(list(k, n, atB), (value, i) => Number(value) - bZeroPoint(i % n));
  const dtype =
    yScale === undefined || yScale === null
      ? 'float32'
      : typeof yZeroPoint === 'number'
        ? dtypeOf(a)
        : typeOf(yZeroPoint);
  const finish =
    dtype === 'float32'
      ? (value: number) => value
      : requantizer(dtype as Quantized, vector(yZeroPoint)(0) + 0);
  const scales = Array.from({ length: n }, (_, j) => {
    const scale = Math.fround(
      Math.fround(Math.fround(alpha) * Math.fround(aScale)) * Math.fround(bScale(j)),
    );
    return dtype === 'float32' ? scale : Math.fround(scale / Math.fround(vector(yScale)(0)));
  });
  const values: number[] = [];
  for (let i = 0; i < m; ++i) {
    for (let j = 0; j < n; ++j) {
      let sum = atC ? Number(atC(i, j)) : 0;
      for (let p = 0; p < k; ++p)
        sum = (sum + Math.imul(rows[i * k + p] as number, columns[p * n + j] as number)) | 0;
      values.push(finish(Math.fround(Math.fround(sum) * (scales[j] as number))));
    }
  }
  return { dtype, shape: [m, n], values, bounds: values.map(() => 0) };
}

/** Rounds half to even, adds the zero point, saturates. */
function requantizer(dtype: Quantized, zeroPoint: number): (value: number) => number {
  const { min, max } = quantized[dtype];
  return (value) => {
    const below = Math.floor(value);
    const above = value - below > 0.5 || (value - below === 0.5 && below % 2 !== 0);
    return Math.min(Math.max((above ? below + 1 : below) + zeroPoint, min), max);
  };
}

const typeOf = (value: Vector | null | undefined) =>
  dtypeOf(isTensor(value) ? value : { data: value as DataArray });
const isTensor = (value: unknown): value is Matrix =>
  typeof value === 'object' && value !== null && 'data' in value;

/** The number for each column; 0 if there is none. */
function vector(value: Vector | null | undefined): (column: number) => number {
  if (value === undefined || value === null) return () => 0;
  if (typeof value === 'number') return () => value;
  const tensor = isTensor(value) ? value : { data: value, shape: [value.length] };
  const at = elements(dtypeOf(tensor), tensor);
  return (column) => Number(at(0, column));
}

type At = (row: number, column: number) => number | bigint;

const read = (dtype: DType, a: Matrix, b: Matrix, c: Bias, factors: Factors) =>
  readMatrices(a, dtype, b, dtype, c, dtype, factors);

function readMatrices(
  a: Matrix,
  typeOfA: DType,
  b: Matrix,
  typeOfB: DType,
  c: Bias,
  typeOfC: DType,
  { transA, transB }: Factors,
) {
  const number =
    typeof c === 'number' && isFloat(typeOfC) ? round(typeOfC, c) : (c as number | bigint);
  return {
    m: a.shape[transA ? 1 : 0] as number,
    k: a.shape[transA ? 0 : 1] as number,
    n: b.shape[transB ? 0 : 1] as number,
    atA: transposed(elements(typeOfA, a), transA),
    atB: transposed(elements(typeOfB, b), transB),
    atC: isTensor(c)
      ? elements(typeOfC, c)
      : c === undefined || c === null
        ? undefined
        : () => number,
  };
}

function transposed(at: At, flag: unknown): At {
  return flag ? (row, column) => at(column, row) : at;
}

/**
 * A tensor of rank 2 or less, broadcast to a matrix: an axis that is not there, or has size 1, is
 * not walked.
 */
export function elements(dtype: DType, { data, shape, strides, offset = 0 }: Matrix): At {
  const [rows = 1, columns = 1] = shape.length === 2 ? shape : [1, ...shape];
  const [rowStride = 0, columnStride = 0] =
    strides === undefined ? [columns, 1] : shape.length === 2 ? strides : [0, ...strides];
  const down = rows === 1 ? 0 : rowStride;
  const across = columns === 1 ? 0 : columnStride;
  return (row, column) => get(data, dtype, offset + row * down + column * across);
}

/** All elements of a matrix, row by row. */
export function list(rows: number, columns: number, at: At): (number | bigint)[] {
  return Array.from({ length: rows * columns }, (_, i) => at(Math.floor(i / columns), i % columns));
}
