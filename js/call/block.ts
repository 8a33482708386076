/**
 * The block of arguments: numbers in the heap, which js/ writes and bindings/embind.cc reads in the
 * same order.
 */
import type { Core } from '../instance/core.js';
import { locateHeld, type PackedWeights } from '../instance/heap.js';
import { absent, aNumber, type Operand, packedWeights } from './operand.js';

/** Precedes an array of the caller that the result may overlap. */
const anArray = -4;

/** @internal What the core leaves in the block when it has explained a call, in this order. */
export const explained = [
  ...['kernel', 'regime', 'batch', 'm', 'n', 'k', 'mr', 'nr', 'kr', 'mc', 'nc', 'kc', 'threads'],
  ...['vectors', 'packsA', 'packsB', 'direct', 'transposed', 'scratch', 'outOfCore', 'moved'],
] as const;

/** @internal A number of an explanation. */
export function explainedNumber(core: Core, name: (typeof explained)[number]): number {
  return core.block[explained.indexOf(name)] as number;
}

/** @internal Writes attributes and operands. Returns the end of what it wrote. */
export function writeBlock(
  core: Core,
  attributes: Float64Array,
  operands: readonly (Operand | null)[],
): number {
  const { block } = core;
  let at = 0;
  for (const value of attributes) block[at++] = value;
  // In the heap, addresses show overlaps. Elsewhere only an array of the caller can be the result.
  const buffers = operands.at(-1)?.outside ? ([] as unknown[]) : null;
  for (const operand of operands) at = writeOperand(block, at, operand, buffers);
  return at;
}

/**
 * Returns the end of what it wrote.
 * @param buffers the buffers of the arrays so far; null if no array outside the heap can overlap
 * the result
 */
function writeOperand(
  block: Float64Array,
  at: number,
  operand: Operand | null,
  buffers: unknown[] | null,
): number {
  if (operand === null) return writeNothing(block, at);
  const { dtype, address, shape, strides, source, outside } = operand;
  if (typeof source === 'number' || typeof source === 'bigint')
    return writeNumber(block, at, dtype, source);
  if (dtype === packedWeights) return writeAddress(block, at, address);
  if (outside !== null && buffers !== null) {
    block[at++] = anArray;
    block[at++] = numberOf(outside.buffer, buffers);
    block[at++] = outside.byteOffset;
  }
  block[at++] = dtype;
  block[at++] = address;
  block[at++] = operand.size;
  block[at++] = shape.length;
  block[at++] = strides === null ? 0 : strides.length;
  for (let axis = 0; axis < shape.length; ++axis) block[at++] = shape[axis] as number;
  if (strides !== null)
    for (let axis = 0; axis < strides.length; ++axis) block[at++] = strides[axis] as number;
  return at;
}

/** @internal Writes a contiguous matrix in the heap. Returns the end of what it wrote. */
export function writeMatrix(
  block: Float64Array,
  at: number,
  dtype: number,
  address: number,
  rows: number,
  cols: number,
): number {
  block[at] = dtype;
  block[at + 1] = address;
  block[at + 2] = rows * cols;
  block[at + 3] = 2;
  block[at + 4] = 0;
  block[at + 5] = rows;
  block[at + 6] = cols;
  return at + 7;
}

/** The number of a buffer among `buffers`, from 1. Adds the buffer if it is new. */
function numberOf(buffer: unknown, buffers: unknown[]): number {
  const index = buffers.indexOf(buffer);
  return index < 0 ? buffers.push(buffer) : index + 1;
}

/** @internal Writes that there is no operand. */
export function writeNothing(block: Float64Array, at: number): number {
  block[at] = absent;
  return at + 1;
}

/** @internal Writes packed weights. */
export function writePacked(
  core: Core,
  op: string,
  name: string,
  weights: PackedWeights,
  block: Float64Array,
  at: number,
): number {
  return writeAddress(block, at, locateHeld(weights, core, op, name));
}

function writeAddress(block: Float64Array, at: number, address: number): number {
  block[at] = packedWeights;
  block[at + 1] = address;
  return at + 2;
}

/** @internal Writes an operand that the caller gave as a number, which its type must hold. */
export function writeNumber(
  block: Float64Array,
  at: number,
  dtype: number,
  value: number | bigint,
): number {
  block[at] = aNumber;
  block[at + 1] = dtype;
  return writeFactor(block, at + 2, value);
}

/** @internal Writes a number and -1, or the low and the high 32 bits of a bigint. */
export function writeFactor(block: Float64Array, at: number, value: number | bigint): number {
  const exact = typeof value === 'bigint';
  block[at] = exact ? Number(BigInt.asUintN(32, value)) : value;
  block[at + 1] = exact ? Number(BigInt.asUintN(64, value) >> 32n) : -1;
  return at + 2;
}
