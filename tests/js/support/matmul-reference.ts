/** MatMul as its specification defines it: products of matrices, each by the reference of Gemm. */
import type { DType } from 'wgemm';
import { dtypeOf } from './dtypes.js';
import { type Bias, type Matrix, referenceGemm } from './reference.js';

/** A tensor of any rank. */
export type Stack = Matrix;

export interface Flags {
  alpha?: number | bigint;
  transposeA?: boolean | number;
  transposeB?: boolean | number;
  outType?: DType;
}

/**
 * dst in row-major order, before it is rounded to its type, and how far from it each element of a
 * result may be before that.
 */
export interface ExpectedStack {
  dtype: DType;
  shape: number[];
  values: (number | bigint)[];
  bounds: number[];
}

type Place = Pick<Stack, 'shape' | 'strides'>;

interface Axis {
  size: number;
  stride: number;
}

/**
 * Returns undefined if the operands make no product: K differs, batch axes or bias do not
 * broadcast, or a rank is 0.
 */
export function referenceMatMul(
  src: Stack,
  weights: Stack,
  bias: Bias,
  flags: Flags = {},
): ExpectedStack | undefined {
  const found = arrange(src, weights, flags);
  if (!found) return undefined;
  const { shape, batch, rows, inner, depth, columns, isVector } = found;
  const tensor = typeof bias === 'object' && bias !== null ? bias : undefined;
  if (tensor && !isSame(broadcast(shape, tensor.shape), shape)) return undefined;
  // Bias with all axes of dst, and the axes of the vectors.
  const axesOfBias = axesOf(tensor ?? { shape: [] });
  while (axesOfBias.length < shape.length) axesOfBias.unshift(added);
  if (isVector.src) axesOfBias.splice(batch.length, 0, added);
  if (isVector.weights) axesOfBias.push(added);
  const [biasRows, biasColumns] = axesOfBias.splice(-2) as [Axis, Axis];

  const dtype = dtypeOf(src);
  const matrix = ({ data }: Stack, start: number, down: Axis, across: Axis): Matrix => {
    return {
      data: data.subarray(start),
      shape: [down.size, across.size],
      strides: [down.stride, across.stride],
      dtype,
    };
  };
  const values: ExpectedStack['values'] = [];
  const bounds: number[] = [];
  const count = batch.reduce((product, size) => product * size, 1);
  for (let i = 0; i < count; ++i) {
    const product = referenceGemm(
      matrix(src, offset(batch, i, found.batchOfSrc), rows, inner),
      matrix(weights, offset(batch, i, found.batchOfWeights), depth, columns),
      tensor ? matrix(tensor, offset(batch, i, axesOfBias), biasRows, biasColumns) : bias,
      { alpha: flags.alpha ?? 1 },
    );
    // One by one, since engines limit the number of arguments.
    for (const value of product.values) values.push(value);
    for (const bound of product.bounds) bounds.push(bound);
  }
  return { dtype: flags.outType ?? dtype, shape, values, bounds };
}

/** The shape of dst; undefined if `referenceMatMul` returns undefined. */
export function shapeOfMatMul(
  src: readonly number[],
  weights: readonly number[],
  flags: Flags = {},
): number[] | undefined {
  return arrange({ shape: src }, { shape: weights }, flags)?.shape;
}

/** The axis that a tensor lacks. */
const added: Axis = { size: 1, stride: 0 };

function arrange(src: Place, weights: Place, { transposeA, transposeB }: Flags) {
  const [batchOfSrc, batchOfWeights] = [axesOf(src), axesOf(weights)];
  if (batchOfSrc.length === 0 || batchOfWeights.length === 0) return undefined;
  // A vector is a row or a column by an axis that is not in the result.
  const isVector = { src: batchOfSrc.length === 1, weights: batchOfWeights.length === 1 };
  if (isVector.src) batchOfSrc.unshift(added);
  else if (transposeA) batchOfSrc.push(...batchOfSrc.splice(-2).reverse());
  if (isVector.weights) batchOfWeights.push(added);
  else if (transposeB) batchOfWeights.push(...batchOfWeights.splice(-2).reverse());
  const [rows, inner] = batchOfSrc.splice(-2) as [Axis, Axis];
  const [depth, columns] = batchOfWeights.splice(-2) as [Axis, Axis];
  if (inner.size !== depth.size) return undefined;
  const batch = broadcast(sizesOf(batchOfSrc), sizesOf(batchOfWeights));
  if (!batch) return undefined;
  const shape = [
    ...batch,
    ...(isVector.src ? [] : [rows.size]),
    ...(isVector.weights ? [] : [columns.size]),
  ];
  return { shape, batch, batchOfSrc, batchOfWeights, rows, inner, depth, columns, isVector };
}

const isSame = (a: readonly number[] | undefined, b: readonly number[]) =>
  a?.length === b.length && a.every((size, axis) => size === b[axis]);

const sizesOf = (axes: Axis[]) => axes.map(({ size }) => size);

function axesOf({ shape, strides }: Place): Axis[] {
  let next = 1;
  const contiguous = shape.map(() => 0);
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    contiguous[axis] = next;
    next *= shape[axis] as number;
  }
  return shape.map((size, axis) => ({ size, stride: (strides ?? contiguous)[axis] as number }));
}

/** The shape that two shapes broadcast to, aligned at the right. */
function broadcast(a: readonly number[], b: readonly number[]): number[] | undefined {
  const shape: number[] = [];
  for (let back = Math.max(a.length, b.length); back > 0; --back) {
    const [x, y] = [a.at(-back) ?? 1, b.at(-back) ?? 1]; // at() of an axis that is not there is undefined
    if (x !== y && x !== 1 && y !== 1) return undefined;
    shape.push(x === 1 ? y : x);
  }
  return shape;
}

/**
 * Where the matrix number `index` of a batch begins, in a tensor whose batch axes broadcast to it.
 */
function offset(batch: number[], index: number, axes: Axis[]): number {
  let start = 0;
  for (let back = 1; back <= batch.length; ++back) {
    const size = batch.at(-back) as number;
    const axis = axes.at(-back);
    if (back <= axes.length && axis && axis.size !== 1) start += (index % size) * axis.stride;
    index = Math.floor(index / size);
  }
  return start;
}
