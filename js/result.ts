/**
 * The result that a call makes if the caller gives no `out`. The core checks its type and shape, as
 * it checks those of an `out`.
 */
import type { Core } from './core.js';
import { PackedWeights } from './heap.js';
import { type Operand, operandOf } from './operand.js';

type Shape = readonly number[];
type Operands = readonly (Operand | null)[];

/** @internal The type of a result, as the core numbers it, and its shape. */
export interface ResultType {
  readonly dtype: number;
  readonly shape: Shape;
}

/** @internal */
export function resultOfGemm(_: Core, operands: Operands, attributes: Float64Array): ResultType {
  const [a, b] = operands as [Operand, Operand];
  return { dtype: a.dtype, shape: shapeOfProduct(a, b, attributes[4] !== 0, attributes[5] !== 0) };
}

/** @internal It has the type of y_zero_point. Without one it is float32. */
export function resultOfQGemm(
  core: Core,
  operands: Operands,
  attributes: Float64Array,
): ResultType {
  const dtype = operands[5]?.dtype ?? core.dtypes.indexOf('float32');
  const [a, b] = operands.slice(6) as [Operand, Operand];
  return { dtype, shape: shapeOfProduct(a, b, attributes[1] !== 0, attributes[2] !== 0) };
}

/** @internal */
export function resultOfMatMul(_: Core, operands: Operands, attributes: Float64Array): ResultType {
  const [src, weights] = operands as [Operand, Operand];
  const [a, b] = [shapeOf(src), shapeOf(weights)];
  const shape = broadcast(a.slice(0, -2), b.slice(0, -2));
  // A vector has no M or N.
  if (a.length > 1) shape.push(a.at(attributes[2] !== 0 ? -1 : -2) as number);
  if (b.length > 1) shape.push(b.at(attributes[3] !== 0 ? -2 : -1) as number);
  return { dtype: attributes[4] as number, shape };
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

/**
 * @internal The result as an operand that has no elements yet. If the operands make no product, or
 * one of more than 2^53 elements, its shape means nothing: the core finds the error in the operands
 * first.
 */
export function operandOfResult(name: string, { dtype, shape }: ResultType): Operand {
  const isTooLarge = !(shape.reduce((product, size) => product * (size || 1), 1) <= 2 ** 53);
  const result = operandOf(name, dtype, isTooLarge ? [] : shape, null);
  result.size = result.shape.reduce((product, size) => product * size, 1);
  return result;
}
