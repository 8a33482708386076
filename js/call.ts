/**
 * A call of an operation: its arguments read from JavaScript, the block that carries them to the
 * core, and operands' way to the heap and back.
 */
import type { Core } from './core.js';
import { ArgumentError, describe, OutOfMemoryError } from './errors.js';
import { HeapTensor, locateHeld, PackedWeights, writeHeld } from './heap.js';
import {
  absent,
  aNumber,
  locate,
  packedWeights,
  type Operand,
  operandOf,
  type Reader,
  readTensor,
  viewOfBytes,
} from './operand.js';
import { isList, isReadable, unpolluted } from './properties.js';
import { moverOf } from './stream.js';
import { arrayOf, bytesOf, type DataArray, type DType, holds, viewOf } from './tensor.js';
import type { CoreModule } from './wgemm-simd128.mjs';

/** @internal An operation of the core: by the arguments in the block, each gives an error code. */
export interface Operation {
  readonly name: 'gemm' | 'qgemm' | 'matmul';
  /**
   * What errors call its operands, where it takes the three that `runInHeap` has, and its result.
   */
  readonly operands: readonly [string, string, string];
  readonly result: string;
  /** Computes; the arguments are the block up to `end`. */
  run(module: CoreModule, end: number): number;
  /** Leaves type, rank and sizes of the result in the block. */
  shape(module: CoreModule): number;
  /**
   * Leaves the numbers of an explanation in the block; of a call that has allocated so many bytes
   * before.
   */
  explain(module: CoreModule, beside: number): number;
}

/** @internal */
export const operations: Record<Operation['name'], Operation> = {
  gemm: {
    name: 'gemm',
    operands: ['A', 'B', 'C'],
    result: 'Y',
    run: (module, end) => module.gemm(end),
    shape: (module) => module.gemmShape(),
    explain: (module, beside) => module.explainGemm(beside),
  },
  qgemm: {
    name: 'qgemm',
    operands: ['A', 'B', 'C'],
    result: 'Y',
    run: (module, end) => module.qgemm(end),
    shape: (module) => module.qgemmShape(),
    explain: (module, beside) => module.explainQgemm(beside),
  },
  matmul: {
    name: 'matmul',
    operands: ['src', 'weights', 'bias'],
    result: 'dst',
    run: (module, end) => module.matmul(end),
    shape: (module) => module.matmulShape(),
    explain: (module, beside) => module.explainMatmul(beside),
  },
};

/** The code of an error that the core gives where memory does not suffice. */
const outOfMemory = 5;
/**
 * Where an explanation has the bytes of scratch, and those that are moved to and from operands that
 * are out of core.
 */
const scratchAt = 16,
  streamedAt = 18;

/** @internal The arguments of a call, as they were read from the user's objects. */
export interface Arguments {
  readonly operation: Operation;
  /** Attributes, in the order in which bindings/embind.cc reads them. */
  readonly attributes: Float64Array;
  /** In the order of the bindings; null is left out. The last is the result. */
  readonly operands: (Operand | null)[];
  /** What the user gave to be filled. */
  readonly out: unknown;
}

/** @internal A call of an instance in this thread, checked as far as JavaScript goes. */
export interface Call extends Arguments {
  readonly core: Core;
}

/**
 * @internal Whether all that a call takes is in the heap: `runInHeap` is for these. To ask runs no
 * code of the user's.
 */
export function isInHeap(core: Core, a: unknown, b: unknown, c: unknown, out: unknown): boolean {
  if (core.disposed) return false; // by the options: there is no block to write to
  const hasC = c !== undefined && c !== null;
  return (
    HeapTensor.is(a) &&
    (HeapTensor.is(b) || PackedWeights.is(b)) &&
    HeapTensor.is(out) &&
    (!hasC || HeapTensor.is(c))
  );
}

/**
 * @internal Computes with tensors in the heap, as `makeCall` and `runCall` do with any, and makes
 * no object on the way: a small product takes no longer than a few of these. The attributes are in
 * the block, up to `end`.
 */
export function runInHeap(
  core: Core,
  operation: Operation,
  end: number,
  a: HeapTensor,
  b: HeapTensor | PackedWeights,
  c: HeapTensor | null | undefined,
  out: HeapTensor,
): HeapTensor {
  const { name: op, operands, result } = operation;
  const { block } = core;
  let at = writeHeld(core, op, operands[0], a, block, end);
  if (HeapTensor.is(b)) at = writeHeld(core, op, operands[1], b, block, at);
  else at = writePacked(block, at, locateHeld(b, core, op, operands[1]));
  if (c === undefined || c === null) block[at++] = absent;
  else at = writeHeld(core, op, operands[2], c, block, at);
  at = writeHeld(core, op, result, out, block, at);
  core.enter(op);
  let code: number;
  try {
    code = operation.run(core.module, at);
  } catch (error) {
    core.leave(error);
    throw error;
  }
  core.leave();
  core.check(code, op);
  return out;
}

function writePacked(block: Float64Array, at: number, address: number): number {
  block[at] = packedWeights;
  block[at + 1] = address;
  return at + 2;
}

/** @internal Writes an operand that is given as a number, which its type must hold. */
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

/** @internal Writes a number and -1, or the low and high 32 bits of a bigint. */
export function writeFactor(block: Float64Array, at: number, value: number | bigint): number {
  const exact = typeof value === 'bigint';
  block[at] = exact ? Number(BigInt.asUintN(32, value)) : value;
  block[at + 1] = exact ? Number(BigInt.asUintN(64, value) >> 32n) : -1;
  return at + 2;
}

/**
 * @internal A call of what has been read from the user's objects, which may have run code of the
 * user's: what is found from here on holds.
 */
export function makeCall(core: Core, read: Arguments): Call {
  const { operation, attributes, operands, out } = read;
  core.checkAlive(operation.name);
  for (const operand of operands) if (operand !== null) locate(core, operation.name, operand);
  return { core, operation, attributes, operands, out };
}

/** @internal Computes, and gives the result: `out`, or a tensor with an array of its own. */
export function runCall(call: Call): unknown {
  return call.core.guard(call.operation.name, () => runGuarded(call));
}

function runGuarded(call: Call): unknown {
  const { core, operation, operands, out } = call;
  if (out === undefined) return throughStaging(call);
  for (const operand of operands)
    if (operand !== null && operand.outside !== null) return throughStaging(call);
  const end = write(core, operation.name, call.attributes, operands);
  core.check(operation.run(core.module, end), operation.name);
  return out;
}

/** Checks a call, and tells type and shape of its result. */
function shapeOf(call: Call): { dtype: DType; shape: number[] } {
  const { core, operation } = call;
  write(core, operation.name, call.attributes, call.operands);
  core.check(operation.shape(core.module), operation.name);
  const { block } = core;
  const rank = block[1] as number;
  const shape: number[] = [];
  for (let axis = 0; axis < rank; ++axis) shape.push(block[2 + axis] as number);
  return { dtype: core.dtypes[block[0] as number] as DType, shape };
}

/**
 * @internal Writes the block of arguments in the order in which bindings/embind.cc reads it, and
 * gives where it ends.
 */
export function write(
  core: Core,
  op: string,
  attributes: Float64Array,
  operands: readonly (Operand | null)[],
): number {
  const { block } = core;
  let i = 0;
  for (const value of attributes) block[i++] = value;
  const buffers: unknown[] = [];
  for (const operand of operands) {
    if (operand === null) {
      block[i++] = absent;
      continue;
    }
    const { shape, strides, source, address } = operand;
    if (typeof source === 'number' || typeof source === 'bigint') {
      i = writeNumber(block, i, operand.dtype, source);
      continue;
    }
    if (operand.dtype === packedWeights) {
      i = writePacked(block, i, address);
      continue;
    }
    block[i++] = operand.dtype;
    block[i++] = address;
    block[i++] = operand.size;
    block[i++] = shape.length;
    block[i++] = strides === null ? 0 : strides.length;
    if (address <= 0) {
      // An array that is not in the heap yet is told apart by its buffer.
      const { outside } = operand;
      block[i++] = outside === null ? 0 : numberOf(outside.buffer, buffers);
      block[i++] = outside === null ? 0 : outside.byteOffset;
    }
    for (let axis = 0; axis < shape.length; ++axis) block[i++] = shape[axis] as number;
    if (strides !== null)
      for (let axis = 0; axis < strides.length; ++axis) block[i++] = strides[axis] as number;
  }
  return i;
}

/** The place of a buffer among those seen, from 1; it is added where it is new. */
function numberOf(buffer: unknown, buffers: unknown[]): number {
  let i = 0;
  while (i < buffers.length && buffers[i] !== buffer) ++i;
  if (i === buffers.length) buffers.push(buffer);
  return i + 1;
}

/** Bytes for an operand in the heap, so that the next is aligned. */
function roomFor(core: Core, { dtype, size }: Operand): number {
  return Math.ceil((size * bytesOf(core.dtypes[dtype] as DType)) / 64) * 64;
}

/**
 * Checks a call, and gives its result as the last operand, which that becomes if the user gave
 * none.
 */
function resultOf(call: Call): Operand {
  const { core, operation, operands } = call;
  const { dtype, shape } = shapeOf(call);
  const last = operands.length - 1;
  let y = operands[last] as Operand | null;
  if (y === null) {
    y = operandOf(operation.result, core.dtypes.indexOf(dtype), shape, null);
    y.size = 1;
    for (const size of shape) y.size *= size;
    operands[last] = y;
  }
  return y;
}

/**
 * A call with operands outside the heap: checked first, then copied in, computed, and copied out.
 */
function throughStaging(call: Call): unknown {
  const { core } = call;
  const y = resultOf(call);
  const staged = stagedOf(call, y);
  const room = roomOf(core, staged);
  const staging = room === 0 || core.mustAsk(room) ? 0 : core.module.allocate(room);
  if (staging === 0 && room !== 0) return checkedFirst(call, y);
  try {
    bring(core, staged, y, staging);
    return compute(call, y);
  } finally {
    if (staging !== 0) core.module.release(staging);
  }
}

/**
 * The operands that the heap must have copies of.
 * @param matrices true: only matrices; false: only scales and zero points; default: all
 */
function stagedOf({ operation, operands, out }: Call, y: Operand, matrices?: boolean): Operand[] {
  const staged: Operand[] = [];
  for (const operand of operands) {
    if (operand === null || (operand.outside === null && (operand !== y || out !== undefined)))
      continue;
    const isMatrix = operand === y || operation.operands.includes(operand.name);
    if (matrices === undefined || matrices === isMatrix) staged.push(operand);
  }
  return staged;
}

/** Bytes that the heap must have for copies. */
function roomOf(core: Core, staged: readonly Operand[]): number {
  let room = 0;
  for (const operand of staged) room += roomFor(core, operand);
  return room;
}

/** Gives operands their places from `address` on, and copies there what is read of them. */
function bring(core: Core, staged: readonly Operand[], y: Operand, address: number): void {
  for (const operand of staged) {
    const { outside } = operand;
    operand.address = address;
    address += roomFor(core, operand);
    // Y is only written, but what lies between its elements must stay as it was.
    if (outside !== null && (operand !== y || operand.strides !== null)) {
      core.module.HEAPU8.set(viewOfBytes(outside), operand.address);
    }
  }
}

/** Computes, once all operands are in the heap, and copies the result out. */
function compute({ core, operation, attributes, operands, out }: Call, y: Operand): unknown {
  const end = write(core, operation.name, attributes, operands);
  core.check(operation.run(core.module, end), operation.name);
  const { outside, address, shape } = y;
  if (out === undefined)
    return { data: copyOut(core, operation, y), shape, dtype: core.dtypes[y.dtype] };
  if (outside !== null) {
    viewOfBytes(outside).set(core.module.HEAPU8.subarray(address, address + outside.byteLength));
  }
  return out;
}

/**
 * Asks, before it copies a matrix, if copies and scratch fit. If not, it computes out-of-core.
 */
function checkedFirst(call: Call, y: Operand): unknown {
  const { core, operation, attributes, operands, out } = call;
  const { module } = core;
  const matrices = stagedOf(call, y, true);
  const room = roomOf(core, matrices);
  const vectors = bringVectors(call, y);
  let staging = 0;
  try {
    const fits = hasRoom(call, room);
    if (fits && room !== 0) staging = allocateBeside(core, room, core.block[scratchAt] as number);
    if (staging !== 0 || room === 0) {
      bring(core, matrices, y, staging);
      return compute(call, y);
    }
    const data = makeRemote(call, y, matrices);
    const end = write(core, operation.name, attributes, operands);
    module.moveBlock = moverOf(core, operands);
    core.check(operation.run(module, end), operation.name);
    return data === undefined ? out : { data, shape: y.shape, dtype: core.dtypes[y.dtype] };
  } finally {
    module.moveBlock = undefined;
    if (staging !== 0) module.release(staging);
    if (vectors !== 0) module.release(vectors);
  }
}

/**
 * Copies scales and zero points, which plans depend on, to memory that the caller must release; 0
 * for none.
 */
function bringVectors(call: Call, y: Operand): number {
  const { core, operation } = call;
  const vectors = stagedOf(call, y, false);
  const room = roomOf(core, vectors);
  const address = room === 0 ? 0 : core.allocate(room, operation.name);
  bring(core, vectors, y, address);
  return address;
}

/**
 * Whether the limit leaves room for so many bytes of copies and scratch beside them; and leaves the
 * core's explanation in the block.
 */
function hasRoom({ core, operation, attributes, operands }: Call, room: number): boolean {
  write(core, operation.name, attributes, operands);
  const code = operation.explain(core.module, room);
  if (code === outOfMemory && room !== 0) return false;
  core.check(code, operation.name);
  return true;
}

/** Memory for copies where there is some for scratch as well; else 0. */
function allocateBeside({ module }: Core, room: number, scratch: number): number {
  const address = module.allocate(room);
  if (address === 0 || scratch === 0) return address;
  const beside = module.allocate(scratch); // what the core will ask for
  module.release(beside !== 0 ? beside : address);
  return beside !== 0 ? address : 0;
}

/**
 * Has the core take matrices block by block, and leaves its explanation of that in the block. Gives
 * the array of a result that is yet to be made.
 */
function makeRemote(call: Call, y: Operand, matrices: readonly Operand[]): DataArray | undefined {
  const { core, operation, attributes, operands, out } = call;
  for (const operand of matrices) operand.address = -1 - operands.indexOf(operand);
  write(core, operation.name, attributes, operands);
  core.check(operation.explain(core.module, 0), operation.name);
  if (out !== undefined) return undefined;
  let data: DataArray;
  try {
    data = arrayOf(core.dtypes[y.dtype] as DType, y.size);
  } catch {
    throw core.outOfMemory(roomFor(core, y), operation.name);
  }
  const { buffer, byteLength } = data;
  y.outside = { buffer, byteOffset: 0, byteLength };
  return data;
}

/** The result as an array of its own. */
function copyOut(core: Core, { name: op, result }: Operation, y: Operand): DataArray {
  try {
    return viewOf(core.dtypes[y.dtype] as DType, core.buffer, y.address, y.size).slice();
  } catch (error) {
    throw new OutOfMemoryError(
      op,
      result,
      `${op}: no array for the ${y.size} elements of ${result}: ${String(error)}`,
    );
  }
}

/** @internal An operand that is given as a number: a tensor of rank 0. */
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

/** @internal Throws unless an element of that type may be given as that number. */
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

/** @internal C or a bias: a tensor, a number, or nothing. */
export function readAddend(
  reader: Reader,
  op: string,
  name: string,
  value: unknown,
  dtype: DType,
): Operand | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'number' || typeof value === 'bigint'
    ? scalar(reader, op, name, value, dtype)
    : readTensor(reader, op, name, value);
}

/**
 * @internal Leaves in the block what the core would do, and gives the bytes copied between the
 * caller's arrays and the heap.
 */
export function explain(call: Call): number {
  const { core } = call;
  const y = resultOf(call);
  const matrices = stagedOf(call, y, true);
  const vectors = bringVectors(call, y);
  let bytes = 0;
  try {
    const fits = hasRoom(call, roomOf(core, matrices));
    for (const { outside } of stagedOf(call, y, fits ? undefined : false))
      bytes += outside?.byteLength ?? 0;
    if (!fits) makeRemote(call, y, matrices);
    else if (call.out === undefined) bytes += y.size * bytesOf(core.dtypes[y.dtype] as DType);
    else if (y.strides) bytes += y.outside?.byteLength ?? 0; // there and back
    return fits ? bytes : bytes + (core.block[streamedAt] as number);
  } finally {
    if (vectors !== 0) core.module.release(vectors);
  }
}

const noOptions = Object.freeze(Object.create(null) as Record<string, unknown>);

/**
 * @internal Reads an object of options, which may have no others than those `allowed`, and those
 * `besides` that something else reads.
 */
export function readOptions(
  op: string,
  options: unknown,
  allowed: readonly string[],
  what = 'options',
  besides: readonly string[] = [],
): Record<string, unknown> {
  if (options === undefined || options === null) return noOptions;
  if (!isReadable(options)) {
    throw new ArgumentError(
      op,
      what,
      `${op}: ${what} is ${describe(options)}; it must be an object`,
    );
  }
  // Those of its own; Object.keys() would make an array.
  for (const key in options) {
    if (allowed.includes(key) || besides.includes(key)) continue;
    if (Object.prototype.hasOwnProperty.call(options, key))
      throw new ArgumentError(
        op,
        key,
        `${op}: the ${what.slice(0, -1)} ${describe(key)} is not known; there are ${allowed.join(', ')}`,
      );
  }
  return unpolluted(options, allowed);
}

/**
 * Bounds that the elements of a result are kept within: `'relu'` is [0, Infinity], `'relu6'` [0,
 * 6].
 */
export type Activation = 'relu' | 'relu6' | readonly [min: number, max: number];

/**
 * @internal Writes the bounds to `to` from `at` on. Of a text it makes no object, and runs no code
 * of the user's.
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
        `${op}: activation is an array with ${describe(bound)} in it; it must be of two numbers`,
      );
    }
    to[at + i] = bound;
  }
}

/** @internal */
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
