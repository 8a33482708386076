/** The type and the shape of the result of each operation, if the caller gives no `out`. */
import type { Arguments } from '../call/call.js';
import type { Operand } from '../call/operand.js';
import type { ResultType } from '../call/result.js';
import type { Core } from '../instance/core.js';
import { PackedWeights } from '../instance/heap.js';

type ReadArguments = Omit<Arguments, 'out'>;
type Shape = readonly number[];
type Given = Operand | null;
/** The operands of a product of 8-bit operands: the parameters, the factors, and others. */
type Quantized = [Given, Given, Given, Given, Given, Given, Operand, Operand];

/** @internal */
export function resultOfGemm({ operation, attributes, operands }: ReadArguments): ResultType {
  const { at } = operation.attributes;
  const [a, b] = operands as [Operand, Operand];
  const transA = attributes[at.transA as number] !== 0;
  const transB = attributes[at.transB as number] !== 0;
  return { dtype: a.dtype, shape: shapeOfProduct(a, b, transA, transB) };
}

/** @internal */
export function resultOfMatMul({ operation, attributes, operands }: ReadArguments): ResultType {
  const { at } = operation.attributes;
  const [src, weights] = operands as [Operand, Operand];
  const transposeA = attributes[at.transposeA as number] !== 0;
  const transposeB = attributes[at.transposeB as number] !== 0;
  return {
    dtype: attributes[at.outType as number] as number,
    shape: shapeOfStacks(src, weights, transposeA, transposeB),
  };
}

/** @internal */
export function resultOfQuantized(read: ReadArguments, { dtypes }: Core): ResultType {
  const { operation, attributes, operands } = read;
  const { at } = operation.attributes;
  const [aScale, , bScale, , , yZeroPoint, a, b] = operands as unknown as Quantized;
  const transA = attributes[at.transA as number] !== 0;
  const transB = attributes[at.transB as number] !== 0;
  const shape = shapeOfStacks(a, b, transA, transB);
  if (yZeroPoint) return { dtype: yZeroPoint.dtype, shape };
  switch (operation.name) {
    case 'matmulInteger':
      return { dtype: dtypes.indexOf('int32'), shape };
    case 'qlinearMatmul':
      return { dtype: a.dtype, shape };
    case 'qgemm':
      return { dtype: dtypes.indexOf('float32'), shape };
    default:
      return { dtype: (aScale ?? bScale)?.dtype ?? dtypes.indexOf('float32'), shape };
  }
}

/** @internal */
export function resultOfNBits({ operation, attributes, operands }: ReadArguments): ResultType {
  const [a, b] = operands.slice(-4) as [Operand, Operand];
  const { at } = operation.attributes;
  const n = PackedWeights.is(b.source) ? b.source.shape.at(-1) : attributes[at.n as number];
  // The core refuses an N below 0.
  return { dtype: a.dtype, shape: [...a.shape.slice(0, -1), Math.max(n as number, 0)] };
}

/** @internal */
export function resultOfSyrk({ operation, attributes, operands }: ReadArguments): ResultType {
  const transA = attributes[operation.attributes.at.transA as number] !== 0;
  const a = operands[0] as Operand;
  return { dtype: a.dtype, shape: shapeOfProduct(a, a, transA, !transA) };
}

/** The shape of a product of stacks of matrices. A vector has no M or N. */
function shapeOfStacks(left: Operand, right: Operand, transA: boolean, transB: boolean): Shape {
  const [a, b] = [shapeOf(left), shapeOf(right)];
  const shape = broadcast(a.slice(0, -2), b.slice(0, -2));
  if (a.length > 1) shape.push(a.at(transA ? -1 : -2) as number);
  if (b.length > 1) shape.push(b.at(transB ? -2 : -1) as number);
  return shape;
}

/** (M, N) */
function shapeOfProduct(a: Operand, b: Operand, transA: boolean, transB: boolean): Shape {
  const [m, n] = [shapeOf(a)[transA ? 1 : 0], shapeOf(b)[transB ? 0 : 1]];
  return m === undefined || n === undefined ? [] : [m, n];
}

function shapeOf({ source, shape }: Operand): Shape {
  return PackedWeights.is(source) ? source.shape : shape;
}

/** The shape that two shapes broadcast to, aligned at the right, if they do. */
function broadcast(a: Shape, b: Shape): number[] {
  const [long, short] = a.length < b.length ? [b, a] : [a, b];
  const missing = long.length - short.length;
  return long.map((size, axis) => (size === 1 ? (short[axis - missing] ?? 1) : size));
}
