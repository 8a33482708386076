/** `record`: calls that are read and checked once, and then computed by one call of the core. */
import { classOf } from '../base/arrays.js';
import { ArgumentError, describe, DisposedError, isPromise } from '../base/errors.js';
import { writeBlock } from '../call/block.js';
import type { Arguments, Call, OperationName } from '../call/call.js';
import type { Operand, Reader } from '../call/operand.js';
import { makeCall } from '../call/run.js';
import { aProgram, type Core } from '../instance/core.js';
import { disposedHandle, HeapObject, locateHeld, PackedWeights } from '../instance/heap.js';
import { operations } from './operations.js';
import { readCall } from './read-call.js';

/**
 * Calls that `record` has recorded. `run()` computes them, each time from the elements that their
 * operands hold then. It holds memory until its `dispose()`, and keeps its operands from garbage
 * collection, but not from their `dispose()`.
 *
 * @category Operations
 */
export class Recording extends HeapObject {
  /** The number of calls. */
  readonly length: number;
  readonly #core: Core;
  readonly #calls: readonly Call[];
  /** How many objects had been freed when all operands were seen alive. */
  #checked = -1;

  private constructor(core: Core, address: number, calls: readonly Call[]) {
    super(core, address, aProgram);
    this.#core = core;
    this.#calls = calls;
    this.length = calls.length;
    Object.freeze(this);
  }

  /**
   * Computes the calls in their order.
   *
   * @throws DisposedError if the recording, its instance or one of its operands is disposed;
   * nothing is computed then. ArgumentError for a scale that is not finite and the like, and
   * OutOfMemoryError; the message names the call by its number, from 1, and the calls before it
   * have been computed
   */
  run(): void {
    const op = 'run';
    const core = this.#core;
    core.checkAlive(op);
    if (this.disposed) {
      const message = `${op}: the recording is disposed; record its calls again`;
      throw new DisposedError(op, 'recording', message);
    }
    if (this.#checked !== core.disposals) this.#checkOperands();
    const { module } = core;
    const address = locateHeld(this, core, op, 'recording');
    const code = core.guard(op, () => module.runProgram(address, 0, this.length));
    if (code === 0) return;
    const number = module.failedNode(address);
    const { name } = (this.#calls[number - 1] as Call).operation;
    core.check(code, name, titleOf(name, number));
  }

  /** Throws if an operand has been disposed of. */
  #checkOperands(): void {
    const { disposals } = this.#core;
    this.#calls.forEach(({ operation: { name: op }, operands }, i) => {
      for (const operand of operands) {
        const source = operand?.source;
        if (!(source instanceof HeapObject) || !source.disposed) continue;
        const { name } = operand as Operand;
        throw disposedHandle(op, name, PackedWeights.is(source), titleOf(op, i + 1));
      }
    });
    this.#checked = disposals;
  }
}

const titleOf = (op: OperationName, number: number) => `${op}, call ${number} of the recording`;

/**
 * @internal Calls `body`, a function of the caller, with an object whose methods read calls. Checks
 * that their operands are handles or numbers.
 * @param take receives each call
 */
export function readRecording(
  reader: Reader,
  body: unknown,
  take: (read: Arguments) => void,
): void {
  const op = 'record';
  reader.checkAlive(op);
  if (typeof body !== 'function') {
    const message = `${op}: calls is ${describe(body)}; it must be a function that makes calls`;
    throw new ArgumentError(op, 'calls', message);
  }
  let isOpen = true;
  const method =
    (name: OperationName) =>
    (...args: unknown[]) => {
      if (!isOpen) {
        const rule = 'make all calls before your function returns';
        throw new ArgumentError(name, 'calls', `${name}: the recording has ended; ${rule}`);
      }
      const read = readCall(reader, name, args);
      read.operands.forEach((operand, i) => {
        checkHeld(name, read.operation.operands[i] as string, operand);
      });
      take(read);
      return read.out;
    };
  const names = Object.keys(operations) as OperationName[];
  const calls = Object.freeze(Object.fromEntries(names.map((name) => [name, method(name)])));
  let result: unknown;
  try {
    result = (body as (recorded: object) => unknown)(calls);
  } finally {
    isOpen = false;
  }
  if (!isPromise(result)) return;
  Promise.resolve(result).catch(() => undefined); // its calls fail from now on
  const rule = 'make all calls before it returns, without await';
  throw new ArgumentError(op, 'calls', `${op}: your function returned a promise; ${rule}`);
}

/** Throws if an operand is an array, or if there is no `out`. */
function checkHeld(op: OperationName, name: string, operand: Operand | null): void {
  const array = operand === null ? undefined : classOf(operand.source);
  if (operand === null ? name !== 'out' : array === undefined) return;
  const found = array === undefined ? 'undefined' : `in a ${array}`;
  const others = name === 'out' ? '' : ', or packed weights or a number where the call takes them';
  const rule = `in a recording it must be a tensor from alloc(), or a view of one${others}`;
  throw new ArgumentError(op, name, `${op}: ${name} is ${found}; ${rule}`);
}

/** @internal Records the calls of `body`. */
export function record(core: Core, body: unknown): Recording {
  return recordCalls(core, (take) => {
    readRecording(core, body, take);
  });
}

/** @internal Records calls. @param make makes them, by its argument */
export function recordCalls(
  core: Core,
  make: (take: (read: Arguments) => void) => void,
): Recording {
  const op = 'record';
  const calls: Call[] = [];
  const words: number[] = [];
  make((read) => {
    const call = makeCall(core, read);
    const { name, number } = read.operation;
    const end = writeBlock(core, call.attributes, call.operands);
    core.check(
      core.guard(name, () => core.module.check(number)),
      name,
    );
    calls.push(call);
    words.push(-1 - number, calls.length, end, ...core.block.subarray(0, end));
  });
  core.checkAlive(op);
  const address = core.makeProgram(op, words);
  return new (Recording as unknown as new (...args: unknown[]) => Recording)(core, address, calls);
}
