/** Scales and zero points of products of 8-bit operands, as calls read them. */
import { lengthOf } from '../base/arrays.js';
import { ArgumentError, describe, DTypeError } from '../base/errors.js';
import { isList } from '../base/properties.js';
import type { DType } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, type PackedWeights, writeHeld } from '../instance/heap.js';
import { writeNumber } from './block.js';
import {
  absent,
  isDataArray,
  type Operand,
  packedWeights,
  type Reader,
  readTensor,
} from './operand.js';
import { checkHolds, scalar } from './options.js';

/** @internal */
export function is8Bit(dtype: DType): boolean {
  return dtype === 'int8' || dtype === 'uint8';
}

/** @internal Whether `writeParameter` takes the value. */
export function isHeldOrNumber(value: unknown): boolean {
  return typeof value === 'number' || HeapTensor.is(value);
}

/** @internal Writes a scale or zero point that `isHeldOrNumber`, or none. */
export function writeParameter(
  core: Core,
  op: string,
  block: Float64Array,
  at: number,
  name: string,
  value: unknown,
  dtype: DType,
): number {
  if (typeof value === 'number') {
    checkHolds(op, name, value, dtype);
    return writeNumber(block, at, core.dtypes.indexOf(dtype), value);
  }
  if (value !== undefined && value !== null)
    return writeHeld(core, op, name, value as HeapTensor, block, at);
  block[at] = absent;
  return at + 1;
}

/** @internal The type of A or B, which a zero point that is a number takes. */
export function readType(reader: Reader, op: string, { name, dtype, source }: Operand): DType {
  if (dtype === packedWeights) return (source as PackedWeights).dtype; // the core checks it
  const type = reader.dtypes[dtype] as DType;
  if (is8Bit(type)) return type;
  throw new DTypeError(op, name, `${op}: ${name} has type ${type}; it must be int8 or uint8`);
}

/** @internal Reads a scale, a zero point or a bias: a number, an array, a tensor, or nothing. */
export function readParameter(
  reader: Reader,
  op: string,
  name: string,
  value: unknown,
  dtype: DType,
  required = false,
): Operand | null {
  if (value === undefined || value === null) {
    if (!required) return null;
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${describe(value)}; it must be a number, an array or a tensor`,
    );
  }
  if (typeof value === 'number') return scalar(reader, op, name, value, dtype);
  if (isList(value)) {
    const arrays = is8Bit(dtype) ? 'an Int8Array or Uint8Array' : 'a Float32Array';
    throw new DTypeError(
      op,
      name,
      `${op}: ${name} is an array; it must be a number, ${arrays}, or a tensor`,
    );
  }
  return readTensor(
    reader,
    op,
    name,
    isDataArray(value) ? { data: value, shape: [lengthOf(value)] } : value,
  );
}
