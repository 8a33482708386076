/** The type and the shape of the result of each operation, if the caller gives no `out`. */
import { type Arguments, attributeOf, operandNamed } from '../call/call.js';
import type { Operand } from '../call/operand.js';
import type { ResultType } from '../call/result.js';
import type { Core } from '../instance/core.js';
import { PackedWeights } from '../instance/heap.js';

type ReadArguments = Omit<Arguments, 'out'>;
type Shape = readonly number[];

/** @internal */
export function resultOfGemm(read: ReadArguments): ResultType {
  const [a, b] = [operandNamed(read, 'A') as Operand, operandNamed(read, 'B') as Operand];
  const [transA, transB] = [attributeOf(read, 'transA') !== 0, attributeOf(read, 'transB') !== 0];
  return { dtype: a.dtype, shape: shapeOfProduct(a, b, transA, transB) };
}

/** @internal */
export function resultOfMatMul(read: ReadArguments): ResultType {
  const [src, weights] = [operandNamed(read, 'src'), operandNamed(read, 'weights')];
  const transposes = ['transposeA', 'transposeB'].map((name) => attributeOf(read, name) !== 0);
  const [transposeA, transposeB] = transposes as [boolean, boolean];
  const shape = shapeOfStacks(src as Operand, weights as Operand, transposeA, transposeB);
  return { dtype: attributeOf(read, 'outType'), shape };
}

/** @internal */
export function resultOfQuantized(read: ReadArguments, core: Core): ResultType {
  const [a, b] = [operandNamed(read, 'A') as Operand, operandNamed(read, 'B') as Operand];
  const [transA, transB] = [attributeOf(read, 'transA') !== 0, attributeOf(read, 'transB') !== 0];
  const [int32, float32] = [core.dtypes.indexOf('int32'), core.dtypes.indexOf('float32')];
  const floats = (operandNamed(read, 'aScale') ?? operandNamed(read, 'bScale'))?.dtype ?? float32;
  const types = {
    qgemm: float32,
    matmulInteger: int32,
    qlinearMatmul: a.dtype,
    dynamicQuantizeMatmul: floats,
    matmulIntegerToFloat: floats,
  };
  return {
    dtype:
      operandNamed(read, 'yZeroPoint')?.dtype ?? types[read.operation.name as keyof typeof types],
    shape: shapeOfStacks(a, b, transA, transB),
  };
}

/** @internal */
export function resultOfNBits(read: ReadArguments): ResultType {
  const [a, b] = [operandNamed(read, 'A') as Operand, operandNamed(read, 'B') as Operand];
  const n = PackedWeights.is(b.source) ? b.source.shape.at(-1) : attributeOf(read, 'n');
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
