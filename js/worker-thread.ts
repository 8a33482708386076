/**
 * What runs in the worker of `wgemm/worker`, as `wgemm-worker.js`: takes calls, makes them one
 * after the other, and answers.
 */
import type { Core } from './core.js';
import { readOptions } from './call.js';
import {
  ArgumentError,
  describe,
  DisposedError,
  DTypeError,
  type ErrorCode,
  GemmError,
  OutOfMemoryError,
  ShapeError,
} from './errors.js';
import { HeapTensor, PackedWeights } from './heap.js';
import { createGemm, type CreateOptions, type Gemm } from './index.js';
import { fromPacket, type Held, type Packet, type SentArray, sentArray } from './message.js';
import { isRevoked } from './properties.js';
import { classOf, type DataArray, type DType, isDetached, type Tensor } from './tensor.js';

/** @internal */
export type Method =
  | 'createGemm'
  | 'gemm'
  | 'qgemm'
  | 'matmul'
  | 'pack'
  | 'serialize'
  | 'deserialize'
  | 'explain'
  | 'alloc'
  | 'memory'
  | 'read'
  | 'write';

/** @internal From the page. The last of the arguments of a call are its options. */
export type Order =
  /** `isTrial`: it is checked, and then waits for its packet. */
  | {
      readonly kind: 'call';
      readonly id: number;
      readonly method: Method;
      readonly packet: Packet;
      readonly isTrial: boolean;
    }
  | { readonly kind: 'packet'; readonly id: number; readonly packet: Packet }
  | { readonly kind: 'cancel'; readonly id: number }
  | { readonly kind: 'dispose' | 'forget'; readonly id: number }
  /**
   * What `assets` gave; what is no source, and may be nothing that can be sent, as arguments of
   * calls are.
   */
  | { readonly kind: 'asset'; readonly source: unknown }
  | { readonly kind: 'noAsset'; readonly packet: Packet };

/** @internal To the page. */
export type Answer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'closing'; readonly why: string }
  | { readonly kind: 'asset'; readonly file: string }
  | { readonly kind: 'accepted'; readonly id: number }
  | { readonly kind: 'outcome'; readonly id: number; readonly outcome: Outcome }
  | {
      readonly kind: 'error';
      readonly id: number;
      readonly code: ErrorCode;
      readonly op: string;
      readonly argument: string;
      readonly message: string;
      readonly cause: SentCause | undefined;
    };

/** @internal The cause of an error: not every engine can clone one. */
export interface SentCause {
  /** Undefined for what is no Error. */
  readonly name: string | undefined;
  readonly message: string;
  readonly cause: SentCause | undefined;
}

/**
 * @internal What a call gave: a plain value, `'out'` where it filled that; an array, of a tensor or
 * to fill `out` with; a handle.
 */
export interface Outcome {
  readonly value?: unknown;
  readonly array?: SentArray;
  readonly buffers: ArrayBuffer[];
  readonly shape?: readonly number[];
  readonly dtype?: DType;
  readonly held?: Held;
  /** Of packed weights. */
  readonly op?: 'gemm' | 'qgemm';
  readonly byteLength?: number;
}

interface Port {
  postMessage(answer: Answer, transfer: ArrayBuffer[]): void;
  listen(take: (order: Order) => void, onUnreadable: () => void): void;
}

const port = ((): Port => {
  const parent = globalThis.process?.getBuiltinModule?.('node:worker_threads')?.parentPort;
  if (parent) {
    return {
      postMessage: (answer, transfer) => parent.postMessage(answer, transfer),
      listen: (take, onUnreadable) =>
        void parent.on('message', take).on('messageerror', onUnreadable),
    };
  }
  const scope = globalThis as unknown as {
    postMessage: Port['postMessage'];
    addEventListener(type: string, listener: (event: { data: Order }) => void): void;
    close(): void;
  };
  const close = scope.close.bind(scope);
  scope.close = () => {
    scope.postMessage({ kind: 'closing', why: 'it closed itself' }, []);
    close();
  };
  return {
    postMessage: (answer, transfer) => scope.postMessage(answer, transfer),
    listen(take, onUnreadable) {
      scope.addEventListener('message', ({ data }) => take(data));
      scope.addEventListener('messageerror', onUnreadable);
    },
  };
})();

/** Calls and disposals, in the order in which they were made. */
const queue: Order[] = [];
const objects = new Map<number, HeapTensor | PackedWeights>();
let instance: Gemm | undefined;
let handles = 0;
let busy = false;
let takeAsset: ((source: unknown) => void) | undefined;
/** The call that was accepted and waits for its packet, which does not come if it is cancelled. */
let accepted: { readonly id: number; readonly take: (packet?: Packet) => void } | undefined;

port.listen(take, () => giveUp('a message cannot be read'));
port.postMessage({ kind: 'ready' }, []);

function take(order: Order): void {
  if (order.kind === 'cancel') {
    const index = queue.findIndex((waiting) => waiting.kind === 'call' && waiting.id === order.id);
    if (index >= 0) queue.splice(index, 1);
    if (accepted?.id === order.id) accepted.take();
  } else if (order.kind === 'packet') {
    if (accepted?.id === order.id) accepted.take(order.packet);
  } else if (order.kind === 'asset') {
    takeAsset?.(order.source);
  } else if (order.kind === 'noAsset') {
    takeAsset?.(fromPacket(order.packet, objectOf)[0]);
  } else {
    queue.push(order);
    if (!busy) work().catch((error: unknown) => giveUp(String(error)));
  }
}

/** The page ends the worker then. */
function giveUp(why: string): void {
  port.postMessage({ kind: 'closing', why }, []);
}

/** One a turn of the event loop, so that a cancellation comes before the calls that wait. */
async function work(): Promise<void> {
  busy = true;
  for (let order = queue.shift(); order; order = queue.shift()) {
    if (order.kind === 'call') {
      await answer(order);
      await nextTurn();
    } else if (order.kind === 'dispose' || order.kind === 'forget') {
      objects.get(order.id)?.dispose();
      if (order.kind === 'forget') objects.delete(order.id);
    }
  }
  busy = false;
}

const nextTurn: () => Promise<unknown> = (() => {
  if (typeof setImmediate === 'function')
    return () => new Promise((resolve) => setImmediate(resolve));
  const { port1, port2 } = new MessageChannel();
  return () =>
    new Promise((resolve) => {
      port1.onmessage = resolve;
      port2.postMessage(0);
    });
})();

async function answer({ id, method, packet, isTrial }: Order & { kind: 'call' }): Promise<void> {
  try {
    let taken: Packet | undefined = packet;
    if (isTrial) {
      check(method, standIns(method, packet));
      port.postMessage({ kind: 'accepted', id }, []);
      taken = await new Promise<Packet | undefined>((take) => (accepted = { id, take }));
      accepted = undefined;
      if (!taken) return;
    }
    const outcome = outcomeOf(await run(method, fromPacket(taken, objectOf)));
    port.postMessage({ kind: 'outcome', id, outcome }, outcome.buffers);
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError || instance?.disposed) throw error; // there is no instance to go on with
    const isOurs = error instanceof GemmError;
    const { code, op, argument } = isOurs
      ? error
      : { code: 'ARGUMENT' as const, op: method, argument: '' };
    const message = isOurs ? error.message : `${method}: ${String(error)}`;
    const cause = causeOf(isOurs ? error.cause : error);
    port.postMessage({ kind: 'error', id, code, op, argument, message, cause }, []);
  }
}

function causeOf(cause: unknown): SentCause | undefined {
  if (cause === undefined) return undefined;
  if (cause instanceof Error)
    return { name: cause.name, message: cause.message, cause: causeOf(cause.cause) };
  return {
    name: undefined,
    message: typeof cause === 'string' ? cause : describe(cause),
    cause: undefined,
  };
}

/** The arguments of a trial. Zeros take no memory until they are read, in most engines. */
function standIns(op: Method, packet: Packet): unknown[] {
  try {
    return fromPacket(packet, objectOf);
  } catch (error) {
    const message = `${op}: no memory to check the call (${String(error)}); make it without transfer, or with less at once`;
    throw new OutOfMemoryError(op, '', message);
  }
}

/** Throws what the call would throw, except for errors that depend on elements. */
function check(method: Method, args: unknown[]): void {
  const wg = instance as unknown as Record<Method, (...args: unknown[]) => unknown>;
  if (method === 'write') findWritten(args);
  else if (method === 'pack') (wg.pack(...args) as PackedWeights).dispose();
  else if (method === 'explain') wg.explain(...args);
  else wg.explain(method, ...args);
}

/** What a handle stands for. Those of other instances are of one that there is not. */
function objectOf({ kind, id, dtype, shape }: Held): unknown {
  const object = objects.get(id);
  if (object) return object;
  if (kind === 'imitation') return Object.create(HeapTensor.prototype);
  const elsewhere = { dtypes: [], adopt() {} } as unknown as Core;
  return kind === 'tensor'
    ? new HeapTensor(elsewhere, dtype, shape, 0, 0, 0)
    : new PackedWeights(elsewhere, 'gemm', dtype, [...shape], 0, 0);
}

async function run(method: Method, args: unknown[]): Promise<unknown> {
  if (method === 'createGemm') {
    port.postMessage({ kind: 'ready' }, []); // who made the worker long ago has not heard the first
    instance = await createGemm(withAssets(args[0]));
    return instance.info;
  }
  if (method === 'write') {
    const { target, data, offset } = findWritten(args);
    return target.set(data, offset);
  }
  if (withoutOptions.includes(method)) readOptions(method, args.pop(), anywhere);
  if (method === 'read') return dataOf(method, args[0] as HeapTensor).slice();
  if (method === 'serialize') return (args[0] as PackedWeights).serialize();
  const wg = instance as unknown as Record<Method, (...args: unknown[]) => unknown>;
  const options = args.at(-1) as { out?: { data: DataArray } } | undefined;
  const result = wg[method](...args);
  if (options?.out === undefined || result !== options.out) return result;
  return HeapTensor.is(options.out) ? { out: null } : { out: options.out.data };
}

/** Options of every call. */
const anywhere = ['transfer', 'signal'];
/** Calls that have no options of their own. */
const withoutOptions: readonly Method[] = ['memory', 'alloc', 'read', 'serialize', 'deserialize'];

/** The function stays on the page, which is asked. */
function withAssets(options: unknown): CreateOptions {
  if (
    isRevoked(options) ||
    typeof (options as CreateOptions | null | undefined)?.assets !== 'function'
  )
    return options as CreateOptions;
  const assets = (file: string) =>
    new Promise((resolve) => {
      takeAsset = resolve;
      port.postMessage({ kind: 'asset', file }, []);
    });
  return Object.assign(options as CreateOptions, { assets });
}

function dataOf(op: Method, tensor: HeapTensor): DataArray {
  if (tensor.disposed) throw new DisposedError(op, 'tensor', `${op}: tensor is a disposed tensor`);
  return tensor.data;
}

/** Checks the arguments of `write`, and tells what is written where. */
function findWritten([tensor, data, options]: unknown[]): {
  target: Uint8Array;
  data: Uint8Array;
  offset: number;
} {
  const op = 'write';
  const { offset = 0 } = readOptions(op, options, ['offset', ...anywhere]);
  const { dtype } = tensor as HeapTensor;
  const view = dataOf(op, tensor as HeapTensor);
  // Of float16 the bits, too.
  const bits =
    classOf(data) === 'Uint16Array'
      ? new Uint16Array(view.buffer as ArrayBuffer, view.byteOffset, view.length)
      : undefined;
  const target = dtype === 'float16' && bits ? bits : view;
  if (classOf(data) !== classOf(target)) {
    throw new DTypeError(
      op,
      'data',
      `${op}: data is ${classOf(data) ?? describe(data)}; for ${dtype} it must be ${classOf(view)}`,
    );
  }
  if (!Number.isSafeInteger(offset) || (offset as number) < 0) {
    throw new ArgumentError(
      op,
      'offset',
      `${op}: offset is ${describe(offset)}; it must be a whole number from 0`,
    );
  }
  const { length } = data as DataArray;
  if (length === 0 && isDetached((data as DataArray).buffer)) {
    throw new ArgumentError(
      op,
      'data',
      `${op}: data is a detached array; it was transferred, or the memory under it grew`,
    );
  }
  if ((offset as number) + length > view.length) {
    throw new ShapeError(
      op,
      'data',
      `${op}: data has ${length} elements, from ${String(offset)} on; the tensor has ${view.length}`,
    );
  }
  return { target: target as Uint8Array, data: data as Uint8Array, offset: offset as number };
}

function outcomeOf(result: unknown): Outcome {
  if (HeapTensor.is(result) || PackedWeights.is(result)) {
    const id = ++handles;
    objects.set(id, result);
    const { dtype, shape } = result;
    if (HeapTensor.is(result)) return { held: { kind: 'tensor', id, dtype, shape }, buffers: [] };
    return {
      held: { kind: 'weights', id, dtype, shape },
      op: result.op,
      byteLength: result.byteLength,
      buffers: [],
    };
  }
  if (classOf(result) !== undefined) return arrayOutcome(result as DataArray);
  const { out, data, shape, dtype } = (result ?? {}) as Partial<Tensor> & {
    out?: DataArray | null;
  };
  if (out === null) return { value: 'out', buffers: [] };
  if (out !== undefined) return { value: 'out', ...arrayOutcome(out) };
  if (classOf(data) !== undefined)
    return { ...arrayOutcome(data as DataArray), shape: shape, dtype: dtype };
  return { value: result, buffers: [] };
}

function arrayOutcome(array: DataArray): Pick<Outcome, 'array' | 'buffers'> {
  const { sent, buffers } = sentArray(array);
  return { array: sent, buffers };
}
