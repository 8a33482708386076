/**
 * Runs a call whose operands were read. If all operands are in the heap, `runInHeap` computes at
 * once. Else the call computes from copies in staging memory (staging.ts), or out-of-core if they
 * do not fit (out-of-core.ts).
 */
import type { Core } from '../instance/core.js';
import { HeapTensor, PackedWeights, writeHeld } from '../instance/heap.js';
import { writeNothing, writePacked } from './block.js';
import type { Arguments, Call, Operation, Product } from './call.js';
import { locate } from './operand.js';
import { runWithinLimit } from './out-of-core.js';
import { operandOfResult } from './result.js';
import { compute, copyIn, roomOf, smallRoom, stagedOf } from './staging.js';

/**
 * @internal Whether all operands of a call are in the heap, as `runInHeap` needs them. Runs no code
 * of the caller.
 */
export function isInHeap(core: Core, a: unknown, b: unknown, c: unknown, out: unknown): boolean {
  if (core.disposed) return false; // code that read the options may have disposed of it
  const hasC = c !== undefined && c !== null;
  return (
    HeapTensor.is(out) && // most calls have none
    HeapTensor.is(a) &&
    (HeapTensor.is(b) || PackedWeights.is(b)) &&
    (!hasC || HeapTensor.is(c))
  );
}

/**
 * @internal Computes as `makeCall` and `runCall` do, if all tensors are in the heap. It makes no
 * objects, since a few of them take as long as a small product. The attributes are in the block, up
 * to `end`.
 */
export function runInHeap(
  core: Core,
  operation: Product,
  end: number,
  a: HeapTensor,
  b: HeapTensor | PackedWeights,
  c: HeapTensor | null | undefined,
  out: HeapTensor,
): HeapTensor {
  const { name: op, matrices } = operation;
  const { block } = core;
  let at = writeHeld(core, op, matrices[0], a, block, end);
  at = HeapTensor.is(b)
    ? writeHeld(core, op, matrices[1], b, block, at)
    : writePacked(core, op, matrices[1], b, block, at);
  at = c ? writeHeld(core, op, matrices[2], c, block, at) : writeNothing(block, at);
  at = writeHeld(core, op, 'out', out, block, at);
  computeBlock(core, operation, at);
  return out;
}

/** @internal Computes from the block up to `end`. */
export function computeBlock(core: Core, operation: Operation, end: number): void {
  core.enter(operation.name);
  let code: number;
  try {
    code = operation.run(core.module, end);
  } catch (error) {
    core.leave(error);
    throw error;
  }
  core.leave();
  core.check(code, operation.name);
}

/**
 * @internal A call with operands that were read from the caller's objects. Reading may have run
 * code of the caller; from here on none runs, so what `locate` finds stays true.
 */
export function makeCall(core: Core, read: Arguments): Call {
  const { operation, attributes, operands, out } = read;
  core.checkAlive(operation.name);
  for (const operand of operands) if (operand !== null) locate(core, operation.name, operand);
  const given = operands.at(-1);
  if (given) return { core, operation, attributes, operands, result: given, out };
  const result = operandOfResult('out', operation.resultType(read, core));
  const all = [...operands.slice(0, -1), result];
  return { core, operation, attributes, operands: all, result, out };
}

/** @internal Computes. Returns the result: `out`, or a tensor with an array of its own. */
export function runCall(call: Call): unknown {
  const { core, operation } = call;
  let result: unknown;
  core.enter(operation.name);
  try {
    result = runGuarded(call);
  } catch (error) {
    core.leave(error);
    throw error;
  }
  core.leave();
  return result;
}

/** The most bytes of scratch that A takes if the call quantizes it. */
function bytesOfQuantized({ operation, operands }: Call): number {
  if (operation.name !== 'dynamicQuantizeMatmul') return 0;
  return operands[operation.operands.indexOf('A')]?.size ?? 0;
}

function runGuarded(call: Call): unknown {
  const { core } = call;
  const staged = stagedOf(call);
  const room = roomOf(core, staged);
  if (room === 0) return compute(call);
  if (core.mustAsk(room + bytesOfQuantized(call))) return runWithinLimit(call);
  if (room <= smallRoom) {
    copyIn(call, staged, core.staging);
    return compute(call);
  }
  const address = core.module.allocate(room);
  if (address === 0) return runWithinLimit(call);
  try {
    copyIn(call, staged, address);
    return compute(call);
  } finally {
    core.module.release(address);
  }
}
