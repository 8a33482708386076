/**
 * The result that a call makes if the caller gives no `out`. The core checks its type and shape, as
 * it checks an `out`.
 */
import { type Operand, operandOf } from './operand.js';

/** @internal The type of a result, as the core numbers it, and its shape. */
export interface ResultType {
  readonly dtype: number;
  readonly shape: readonly number[];
}

/**
 * @internal The result as an operand that has no elements yet. If the operands make no product, or
 * a product of more than 2^53 elements, the shape means nothing. The core finds the error in the
 * operands first.
 */
export function operandOfResult(name: string, { dtype, shape }: ResultType): Operand {
  const isTooLarge = !(shape.reduce((product, size) => product * (size || 1), 1) <= 2 ** 53);
  const result = operandOf(name, dtype, isTooLarge ? [] : shape, null);
  result.size = result.shape.reduce((product, size) => product * size, 1);
  return result;
}
