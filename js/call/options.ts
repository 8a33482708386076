/** Options and operands of a call, read one by one from the caller's objects. */
import { holds } from '../base/arrays.js';
import { ArgumentError, describe } from '../base/errors.js';
import { isList } from '../base/properties.js';
import type { DType } from '../base/tensor.js';
import { writeFactor } from './block.js';
import { type Operand, operandOf, type Reader, readTensor } from './operand.js';

/** @internal An operand that the caller gave as a number: a tensor of rank 0. */
export function scalar(
  reader: Reader,
  op: string,
  name: string,
  value: number | bigint,
  dtype: DType,
): Operand {
  checkHolds(op, name, value, dtype);
  const operand = operandOf(name, reader.dtypes.indexOf(dtype), [], value);
  operand.size = 1;
  return operand;
}

/** @internal Throws unless the type can hold the number. */
export function checkHolds(op: string, name: string, value: number | bigint, dtype: DType): void {
  let rule = '';
  if (typeof value === 'number') {
    if (!holds(dtype, value)) rule = 'it must be whole and in the range of the type';
  } else if (dtype !== 'int64' && dtype !== 'uint64') {
    rule = 'bigints are for int64 and uint64';
  } else if ((dtype === 'int64' ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value)) !== value) {
    rule = 'it must be in the range of the type';
  }
  if (rule !== '')
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${describe(value)}, which ${dtype} cannot hold; ${rule}`,
    );
}

/**
 * @internal C or a bias: a tensor, a number, or nothing.
 * @param arrays as in `readTensor`
 */
export function readAddend(
  reader: Reader,
  op: string,
  name: string,
  value: unknown,
  dtype: DType,
  arrays?: readonly string[],
): Operand | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'number' || typeof value === 'bigint'
    ? scalar(reader, op, name, value, dtype)
    : readTensor(reader, op, name, value, arrays);
}

/**
 * Bounds of the elements of a result: `'relu'` is [0, Infinity], and `'relu6'` is [0, 6]. Neither
 * bound may be NaN, and min must not exceed max.
 *
 * @category Operations
 */
export type Activation = 'relu' | 'relu6' | readonly [min: number, max: number];

/**
 * @internal Writes the bounds to `to[at]` and `to[at + 1]`. Unless the value is an object, this
 * makes no object and runs no code of the caller.
 */
export function readActivation(op: string, value: unknown, to: Float64Array, at: number): void {
  to[at] = value === undefined ? -Infinity : 0;
  to[at + 1] = value === 'relu6' ? 6 : Infinity;
  if (value === undefined || value === 'relu' || value === 'relu6') return;
  if (!isList(value)) {
    throw new ArgumentError(
      op,
      'activation',
      `${op}: activation is ${describe(value)}; it must be 'relu', 'relu6' or [min, max]`,
    );
  }
  const length: unknown = value.length;
  if (length !== 2) {
    throw new ArgumentError(
      op,
      'activation',
      `${op}: activation is an array of ${describe(length)} elements; it must be [min, max]`,
    );
  }
  for (let i = 0; i < 2; ++i) {
    const bound: unknown = value[i];
    if (typeof bound !== 'number') {
      throw new ArgumentError(
        op,
        'activation',
        `${op}: activation has ${describe(bound)}; it must be [min, max], two numbers`,
      );
    }
    to[at + i] = bound;
  }
}

/** @internal Writes alpha or beta, 1 by default, to `to[at]` and `to[at + 1]`. */
export function readFactor(
  op: string,
  name: string,
  value: unknown,
  to: Float64Array,
  at: number,
): void {
  if (value !== undefined && typeof value !== 'number' && typeof value !== 'bigint') {
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${describe(value)}; ` +
        'it must be a number, or a bigint with int64 and uint64',
    );
  }
  writeFactor(to, at, value ?? 1);
}

/** @internal An alpha that must be a number, 1 by default. */
export function readAlpha(op: string, alpha: unknown): number {
  if (alpha !== undefined && typeof alpha !== 'number')
    throw new ArgumentError(op, 'alpha', `${op}: alpha is ${describe(alpha)}; it must be a number`);
  return alpha ?? 1;
}

/** @internal A boolean or a number as 0 or 1. */
export function readFlag(op: string, name: string, value: unknown, whenAbsent: number): number {
  if (value === undefined) return whenAbsent;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'number' || Number.isNaN(value)) {
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${describe(value)}; it must be a boolean or a number`,
    );
  }
  return value === 0 ? 0 : 1;
}
