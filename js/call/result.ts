/**
 * The result that a call makes if the caller gives no `out`. The core checks its type and shape, as
 * it checks those of an `out`.
 */
import type { Core } from '../instance/core.js';
import { PackedWeights } from '../instance/heap.js';
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

/** @internal */
export function resultOfMatMul(_: Core, operands: Operands, attributes: Float64Array): ResultType {
  const [src, weights] = operands as [Operand, Operand];
  const shape = shapeOfStacks(src, weights, attributes[2] !== 0, attributes[3] !== 0);
  return { dtype: attributes[4] as number, shape };
}

/** @internal */
export function resultOfQuantized(
  core: Core,
  operands: Operands,
  attributes: Float64Array,
): ResultType {
  const [op, transA, transB] = attributes as unknown as [number, number, number];
  const [aScale, , bScale, , , yZeroPoint, a, b] = operands as (Operand | undefined)[];
  const [int32, float32] = [core.dtypes.indexOf('int32'), core.dtypes.indexOf('float32')];
  const floats = (aScale ?? bScale)?.dtype ?? float32;
  // By the number of the operation.
  const types = [int32, a?.dtype, floats, floats, float32];
  return {
    dtype: (yZeroPoint?.dtype ?? types[op]) as number,
    shape: shapeOfStacks(a as Operand, b as Operand, transA !== 0, transB !== 0),
  };
}

/** @internal */
export function resultOfNBits(_: Core, operands: Operands, attributes: Float64Array): ResultType {
  const [, , a, b] = operands as [null, null, Operand, Operand];
  const n = PackedWeights.is(b.source) ? b.source.shape.at(-1) : attributes[4];
  // The core refuses an N below 0.
  return { dtype: a.dtype, shape: [...a.shape.slice(0, -1), Math.max(n as number, 0)] };
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
