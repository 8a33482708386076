/** Staging: memory in the heap for copies of the caller's arrays while a call computes. */
import { arrayOf, bytesOf, copiedFrom } from '../base/arrays.js';
import { OutOfMemoryError } from '../base/errors.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import { writeBlock } from './block.js';
import type { Call } from './call.js';
import { type Operand, viewOfBytes } from './operand.js';

/** @internal The bytes from `core.staging` on. bindings/embind.cc has the length, too. */
export const smallRoom = 16384;

/** Up to this many elements are copied one by one: views for `set()` would take longer. */
const fewElements = 64;

/** The types whose elements are copied fast one by one: others need bigints or conversions. */
const quick = new Set<DType>([
  'float32',
  'float64',
  'bfloat16',
  'int32',
  'uint32',
  'int8',
  'uint8',
]);

/** Whether an operand has few elements, and they are all elements of its array. */
const isShort = ({ size, strides, offset }: Operand): boolean =>
  size <= fewElements && strides === null && offset === null;

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
    if (outside === null || (operand === result && operand.strides === null)) continue;
    const dtype = core.dtypes[operand.dtype] as DType;
    if (isShort(operand) && quick.has(dtype)) {
      const source = operand.source as Float32Array;
      const heap = core.elements(dtype) as Float32Array;
      const first = operand.address / bytesOf(dtype);
      for (let i = 0; i < operand.size; ++i) heap[first + i] = source[i] as number;
    } else core.module.HEAPU8.set(viewOfBytes(outside), operand.address);
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
  if (outside === null) return out;
  const dtype = core.dtypes[result.dtype] as DType;
  if (isShort(result) && quick.has(dtype)) {
    const target = result.source as Float32Array;
    const heap = core.elements(dtype) as Float32Array;
    const first = address / bytesOf(dtype);
    for (let i = 0; i < result.size; ++i) target[i] = heap[first + i] as number;
  } else
    viewOfBytes(outside).set(core.module.HEAPU8.subarray(address, address + outside.byteLength));
  return out;
}

/** A copy of the result in an array of its own. */
function resultArray(core: Core, op: string, { name, dtype, address, size }: Operand): DataArray {
  const type = core.dtypes[dtype] as DType;
  try {
    if (size > fewElements || !quick.has(type)) return copiedFrom(type, core.buffer, address, size);
    const data = arrayOf(type, size) as Float32Array;
    const heap = core.elements(type) as Float32Array;
    const first = address / bytesOf(type);
    for (let i = 0; i < size; ++i) data[i] = heap[first + i] as number;
    return data;
  } catch (error) {
    const message = `${op}: cannot allocate ${size} elements of ${name} (${String(error)})`;
    throw new OutOfMemoryError(op, name, message);
  }
}
