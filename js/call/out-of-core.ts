/**
 * Calls whose copies may not fit in memory. If staging memory fits next to the scratch, a call
 * computes from it. Otherwise the call is out-of-core: the core moves blocks of the caller's arrays
 * while it computes.
 */
import { arrayOf, bytesOf } from '../base/arrays.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import type { CoreModule } from '../instance/glue.js';
import { explainedNumber, writeBlock } from './block.js';
import type { Call } from './call.js';
import type { Operand } from './operand.js';
import { compute, copyIn, roomOf, stagedOf } from './staging.js';

/** The code of the core's error if memory does not suffice. */
const outOfMemory = 5;

/** @internal Computes. Before it copies a matrix, it asks the core whether everything fits. */
export function runWithinLimit(call: Call): unknown {
  const { core, operation, attributes, operands, result, out } = call;
  const { module } = core;
  const { matrices, parameters } = split(call);
  const room = roomOf(core, matrices);
  const parameterStaging = stageParameters(call, parameters);
  let staging = 0;
  try {
    if (fits(call, room) && room !== 0)
      staging = allocateNextTo(core, room, explainedNumber(core, 'scratch'));
    if (staging !== 0 || room === 0) {
      copyIn(call, matrices, staging);
      return compute(call);
    }
    const data = takeOutOfCore(call, matrices);
    const end = writeBlock(core, attributes, operands);
    module.moveBlock = moverOf(core, operands);
    core.check(operation.run(module, end), operation.name);
    if (data === undefined) return out;
    return { data, shape: result.shape, dtype: core.dtypes[result.dtype] };
  } finally {
    module.moveBlock = undefined;
    if (staging !== 0) module.release(staging);
    if (parameterStaging !== 0) module.release(parameterStaging);
  }
}

/**
 * @internal Leaves the core's explanation of the call in the block. Returns the bytes that the call
 * copies between the caller's arrays and the heap.
 */
export function leaveExplanation(call: Call): number {
  const { core, result, out } = call;
  const { matrices, parameters } = split(call);
  const parameterStaging = stageParameters(call, parameters);
  try {
    if (!fits(call, roomOf(core, matrices))) {
      takeOutOfCore(call, matrices);
      return bytesOutside(parameters) + explainedNumber(core, 'moved');
    }
    let bytes = bytesOutside(parameters) + bytesOutside(matrices);
    if (out === undefined) bytes += result.size * bytesOf(core.dtypes[result.dtype] as DType);
    else if (result.strides !== null) bytes += result.outside?.byteLength ?? 0; // in and out
    return bytes;
  } finally {
    if (parameterStaging !== 0) core.module.release(parameterStaging);
  }
}

/**
 * The operands to stage. Parameters are scales and zero points: the core checks their values. They
 * are never out-of-core, and neither are codes of a few bits.
 */
function split(call: Call): { matrices: Operand[]; parameters: Operand[] } {
  const { outOfCore } = call.operation;
  const isMatrix = (operand: Operand) =>
    operand === call.result || outOfCore.length === 0 || outOfCore.includes(operand.name);
  const staged = stagedOf(call);
  return {
    matrices: staged.filter(isMatrix),
    parameters: staged.filter((operand) => !isMatrix(operand)),
  };
}

function bytesOutside(operands: readonly Operand[]): number {
  return operands.reduce((bytes, { outside }) => bytes + (outside?.byteLength ?? 0), 0);
}

/** Copies parameters to memory that the caller must release. Returns its address, 0 for none. */
function stageParameters(call: Call, parameters: readonly Operand[]): number {
  const { core, operation } = call;
  const room = roomOf(core, parameters);
  if (room === 0) return 0;
  const address = core.module.allocate(room);
  if (address === 0) {
    fits(call, room); // throws the error of a wrong argument, which comes first
    throw core.outOfMemory(room, operation.name);
  }
  copyIn(call, parameters, address);
  return address;
}

/**
 * Whether the limit has room for `room` bytes of staging memory and the scratch. Leaves
 * the core's explanation in the block. Throws the core's error if an argument is wrong.
 */
function fits({ core, operation, attributes, operands }: Call, room: number): boolean {
  writeBlock(core, attributes, operands);
  const code = operation.explain(core.module, room);
  if (code === outOfMemory && room !== 0) return false;
  core.check(code, operation.name);
  return true;
}

/** Returns staging memory if there is memory for the scratch as well, else 0. */
function allocateNextTo({ module }: Core, room: number, scratch: number): number {
  const address = module.allocate(room);
  if (address === 0 || scratch === 0) return address;
  const second = module.allocate(scratch); // what the core will ask for
  module.release(second !== 0 ? second : address);
  return second !== 0 ? address : 0;
}

/**
 * Marks matrices as out-of-core, and leaves the core's explanation in the block. Returns the array
 * of a result that the call makes. Throws if no matrix of the operation may be out-of-core.
 */
function takeOutOfCore(call: Call, matrices: readonly Operand[]): DataArray | undefined {
  const { core, operation, attributes, operands, result, out } = call;
  if (operation.outOfCore.length === 0) {
    fits(call, 0);
    const bytes = roomOf(core, matrices) + explainedNumber(core, 'scratch');
    throw core.outOfMemory(bytes, operation.name);
  }
  for (const operand of matrices) operand.address = -1 - operands.indexOf(operand);
  writeBlock(core, attributes, operands);
  core.check(operation.explain(core.module, 0), operation.name);
  if (out !== undefined) return undefined;
  let data: DataArray;
  try {
    data = arrayOf(core.dtypes[result.dtype] as DType, result.size);
  } catch {
    throw core.outOfMemory(roomOf(core, [result]), operation.name);
  }
  const { buffer, byteLength } = data;
  result.outside = { buffer, byteOffset: 0, byteLength };
  return data;
}

const words = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

/** The most elements of a view. No engine in use has a limit below 2^32. */
const mostWords = 2 ** 30;

/**
 * The function that the core calls: it moves elements of the operand at `place`. Elements of the
 * last operand, the result, move from the heap, and all others move to the heap. Element j of
 * run i is element offset + i * runStride + j * stride of the array. At `address` all are
 * contiguous. An error in here, such as a stack overflow, ends the instance.
 */
function moverOf(core: Core, operands: readonly (Operand | null)[]): CoreModule['moveBlock'] {
  return (place, offset, count, length, runStride, stride, address) => {
    const { dtype, outside } = operands[place] as Operand & { outside: ArrayBufferView };
    const isResult = place === operands.length - 1;
    const bytes = bytesOf(core.dtypes[dtype] as DType);
    // As integers, since floating point may not keep the bits of a NaN.
    const perElement = bytes > 4 ? 2 : 1;
    const Words = words[(bytes / perElement) as keyof typeof words];
    const moved = new Words(core.buffer as ArrayBuffer, address, count * length * perElement);
    const most = Math.ceil(mostWords / perElement / (stride || 1)); // elements of a view
    let next = 0;
    for (let i = 0; i < count; ++i) {
      for (let first = 0; first < length; first += most) {
        const size = Math.min(most, length - first);
        const at = outside.byteOffset + (offset + i * runStride + first * stride) * bytes;
        const elements = new Words(
          outside.buffer as ArrayBuffer,
          at,
          ((size - 1) * stride + 1) * perElement,
        );
        const end = next + size * perElement;
        if (stride === 1) {
          const run = moved.subarray(next, end);
          if (isResult) elements.set(run);
          else run.set(elements);
          next = end;
        }
        for (let word = 0; next < end; word += (stride - 1) * perElement) {
          for (let each = 0; each < perElement; ++each, ++word, ++next) {
            if (isResult) elements[word] = moved[next] as number;
            else moved[next] = elements[word] as number;
          }
        }
      }
    }
  };
}
