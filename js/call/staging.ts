/** Staging: memory in the heap for copies of the caller's arrays while a call computes. */
import { bytesOf, copiedFrom } from '../base/arrays.js';
import { OutOfMemoryError } from '../base/errors.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import { writeBlock } from './block.js';
import type { Call } from './call.js';
import { type Operand, viewOfBytes } from './operand.js';

/** @internal The bytes from `core.staging` on. bindings/embind.cc has the length, too. */
export const smallRoom = 16384;

/** @internal The operands to stage: the caller's arrays, and a result that the call makes. */
export function stagedOf({ operands }: Call): Operand[] {
  const staged: Operand[] = [];
  for (const operand of operands)
    if (operand !== null && (operand.outside !== null || operand.source === null))
      staged.push(operand);
  return staged;
}

/** @internal Bytes of staging memory for these operands. */
export function roomOf(core: Core, staged: readonly Operand[]): number {
  let room = 0;
  for (const operand of staged) room += roomFor(core, operand);
  return room;
}

/** A multiple of 64, so that the next operand is aligned. */
function roomFor(core: Core, { dtype, size }: Operand): number {
  return Math.ceil((size * bytesOf(core.dtypes[dtype] as DType)) / 64) * 64;
}

/** @internal Places the operands from `address` on, and copies in what the call reads of them. */
export function copyIn(
  { core, result }: { core: Core; result?: Operand },
  staged: readonly Operand[],
  address: number,
): void {
  for (const operand of staged) {
    const { outside } = operand;
    operand.address = address;
    address += roomFor(core, operand);
    // The result is only written. If it has strides, the bytes between its elements must stay.
    if (outside !== null && (operand !== result || operand.strides !== null))
      core.module.HEAPU8.set(viewOfBytes(outside), operand.address);
  }
}

/** @internal Computes from operands that all have an address in the heap. Returns the result. */
export function compute({ core, operation, attributes, operands, result, out }: Call): unknown {
  const end = writeBlock(core, attributes, operands);
  core.check(operation.run(core.module, end), operation.name);
  if (out === undefined) {
    const data = resultArray(core, operation.name, result);
    return { data, shape: result.shape, dtype: core.dtypes[result.dtype] };
  }
  const { outside, address } = result;
  if (outside !== null)
    viewOfBytes(outside).set(core.module.HEAPU8.subarray(address, address + outside.byteLength));
  return out;
}

/** A copy of the result in an array of its own. */
function resultArray(core: Core, op: string, { name, dtype, address, size }: Operand): DataArray {
  try {
    return copiedFrom(core.dtypes[dtype] as DType, core.buffer, address, size);
  } catch (error) {
    const message = `${op}: cannot allocate ${size} elements of ${name} (${String(error)})`;
    throw new OutOfMemoryError(op, name, message);
  }
}
