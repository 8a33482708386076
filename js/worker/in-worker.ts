/**
 * The script of the worker of `wgemm/worker`, `wgemm-worker.js`: takes calls, makes them one
 * after the other, and answers. The page has read and checked the arguments.
 * `wgemm-models-worker.js` contains it, too.
 */
import type { Held } from '../api/worker-handles.js';
import { classOf } from '../base/arrays.js';
import { ArgumentError, OutOfMemoryError } from '../base/errors.js';
import { nodeWorkers } from '../base/port.js';
import type { DataArray, Tensor } from '../base/tensor.js';
import type { Arguments, OperationName } from '../call/call.js';
import type { Operand } from '../call/operand.js';
import { makeCall, runCall } from '../call/run.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, PackedWeights } from '../instance/heap.js';
import { type Info, startCore } from '../instance/start-core.js';
import { readLayer } from '../linear/deserialize.js';
import { type Layer, makeLayer } from '../linear/layer.js';
import { allocTensor, memoryOf } from '../ops/alloc.js';
import { explainCall } from '../ops/explain.js';
import { isOperation, operations } from '../ops/operations.js';
import { packWeights, readWeights } from '../ops/pack.js';
import { beginPack, packPart, type PartPlace } from '../ops/pack-parts.js';
import { Recording, recordCalls } from '../ops/record.js';
import { readIndex } from '../search/deserialize.js';
import { VectorIndex } from '../search/vector-index.js';
import { errorAnswer } from './errors.js';
import { callIndex, indexMethods, stateOf } from './index-calls.js';
import {
  type Answer,
  type CallOrder,
  type IndexMethod,
  type Method,
  type ModelOrder,
  operandsOf,
  type Order,
  type Outcome,
  type Packet,
  sentArray,
  type Started,
  type StateOrder,
  type Values,
} from './message.js';

interface PagePort {
  postMessage(answer: Answer, transfer: ArrayBuffer[]): void;
  listen(take: (order: Order) => void, onUnreadable: () => void): void;
}

const port = ((): PagePort => {
  const parent = nodeWorkers()?.parentPort;
  if (parent) {
    return {
      postMessage: (answer, transfer) => parent.postMessage(answer, transfer),
      listen: (take, onUnreadable) =>
        void parent.on('message', take).on('messageerror', onUnreadable),
    };
  }
  const scope = globalThis as unknown as {
    postMessage: PagePort['postMessage'];
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

/** Calls and disposals in the order of the page. */
const queue: Order[] = [];

/** @internal A model in the worker. */
export interface WorkerModel {
  /** The description of the model for the page. */
  readonly described: object;
  /** @param pause lets the worker take messages. It rejects if the page has cancelled the run */
  run(
    operands: readonly (Operand | null)[],
    pause: Pause,
    state: WorkerState | undefined,
  ): Promise<Sent>;
  explain(
    operands: readonly (Operand | null)[],
    hasSteps: boolean,
    state: WorkerState | undefined,
  ): unknown;
  state(keep: NonNullable<StateOrder['keep']>): WorkerState;
  dispose(): void;
}

/** @internal A state of a model in the worker. */
export interface WorkerState {
  cut(length: number): void;
  clone(): WorkerState;
  dispose(): void;
}

/** @internal Returns undefined if it is not time for a pause. */
export type Pause = () => Promise<void> | undefined;

/** @internal A result with the buffers that move to the page. */
export class Sent {
  constructor(
    readonly value: unknown,
    readonly buffers: ArrayBuffer[],
  ) {}
}

/** @internal What the script for models adds: js/onnx/run/in-worker.ts. */
export const models: {
  /** Computes attention. @param isCheck only checks the operands */
  attention?: (
    core: Core,
    attributes: Float64Array,
    operands: (Operand | null)[],
    isCheck: boolean,
  ) => unknown;
  load?: (
    core: Core,
    info: Info,
    order: ModelOrder,
    progress: (done: number) => void | Promise<void>,
    prepacked: ReadonlyMap<string, PackedWeights>,
  ) => Promise<WorkerModel>;
} = {};

type WorkerObject =
  HeapTensor | PackedWeights | Recording | Layer | VectorIndex | WorkerModel | WorkerState;

/** The objects that the handles of the page stand for, by number. */
const objects = new Map<number, WorkerObject>();

/** The instance, once createGemm has started it. */
let core: Core;
let info: Info;
let isStarted = false;
let lastHandle = 0;
let isBusy = false;
/** The call that runs, and whether the page has cancelled it. */
let running = { id: 0, isCancelled: false };
let takeAsset: ((source: unknown) => void) | undefined;

/** The call that was accepted and waits for its arrays. They do not come if it is cancelled. */
let accepted: { readonly id: number; readonly take: (packet?: Packet) => void } | undefined;

port.listen(take, () => giveUp('a message cannot be read'));
port.postMessage({ kind: 'ready' }, []);

function take(order: Order): void {
  if (order.kind === 'cancel') {
    const index = queue.findIndex((waiting) => waiting.kind === 'call' && waiting.id === order.id);
    if (index >= 0) queue.splice(index, 1);
    if (accepted?.id === order.id) accepted.take();
    if (running.id === order.id) running.isCancelled = true;
  } else if (order.kind === 'packet') {
    if (accepted?.id === order.id) accepted.take(order.packet);
  } else if (order.kind === 'asset') {
    takeAsset?.(order.source);
  } else {
    queue.push(order);
    if (!isBusy) work().catch((error: unknown) => giveUp(String(error)));
  }
}

/** Tells the page that the worker cannot go on. The page then ends it. */
function giveUp(why: string): void {
  port.postMessage({ kind: 'closing', why }, []);
}

/** Makes one call per turn of the event loop, so that a cancellation precedes waiting calls. */
async function work(): Promise<void> {
  isBusy = true;
  for (let order = queue.shift(); order; order = queue.shift()) {
    if (order.kind === 'call') {
      await answer(order);
      await nextTurn();
    } else if (order.kind === 'dispose' || order.kind === 'forget') {
      objects.get(order.id)?.dispose();
      if (order.kind === 'forget') objects.delete(order.id);
    }
  }
  isBusy = false;
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

async function answer(order: CallOrder): Promise<void> {
  const { id, method, packet, isTrial } = order;
  running = { id, isCancelled: false };
  try {
    let taken: Packet | undefined = packet;
    if (isTrial) {
      check(order, standIns(method, packet));
      port.postMessage({ kind: 'accepted', id }, []);
      taken = await new Promise<Packet | undefined>((take) => (accepted = { id, take }));
      accepted = undefined;
      if (!taken) return;
    }
    const outcome = outcomeOf(await run(order, operandsOf(taken, objectOf)));
    port.postMessage({ kind: 'outcome', id, outcome }, outcome.buffers);
  } catch (error) {
    // The instance has ended, so the worker cannot go on.
    if ((error as Error | null)?.name === 'RuntimeError' || (isStarted && core.disposed))
      throw error;
    port.postMessage(errorAnswer(id, method, error), []);
  }
}

/** The operands of a trial. In most engines zeros take no memory until they are read. */
function standIns(op: Method, packet: Packet): (Operand | null)[] {
  try {
    return operandsOf(packet, objectOf);
  } catch (error) {
    const advice = 'call without transfer, or pass smaller arrays';
    const message = `${op}: not enough memory to check the call (${String(error)}); ${advice}`;
    throw new OutOfMemoryError(op, '', message);
  }
}

/** The object of a handle's number. After 'forget' the page does not send the number again. */
function objectOf(handle: number): HeapTensor | PackedWeights {
  // It is a layer only if the call expects a layer.
  return objects.get(handle) as HeapTensor | PackedWeights;
}

type RunMethod<M extends Method> = (values: Values[M], operands: (Operand | null)[]) => unknown;

const computations = Object.fromEntries(
  Object.keys(operations).map((name) => [name, computeBy(name as OperationName)]),
) as Record<OperationName, RunMethod<OperationName>>;

const ofIndexes = Object.fromEntries(
  indexMethods.map((method) => [
    method,
    (values: Values[IndexMethod], [operand]: (Operand | null)[]) =>
      callIndex(objects.get(values.object) as VectorIndex, method, values, tensorOf(operand)),
  ]),
) as unknown as { readonly [M in IndexMethod]: RunMethod<M> };

const calls: { readonly [M in Method]: RunMethod<M> } = {
  ...computations,
  ...ofIndexes,
  attention: ({ attributes }, operands) => models.attention?.(core, attributes, operands, false),
  createGemm: start,
  explain: ({ operation, attributes }, operands) => explain(operation, attributes, operands),
  pack: (read, operands) => packWeights(core, { ...read, operands }),
  packFrom: (values, [weights, part]) =>
    'type' in values
      ? beginPack(core, 'packFrom', values)
      : takePart(weights?.source as PackedWeights, values, part as Operand),
  deserialize: (_, [bytes]) => readWeights(core, bytes as Operand),
  createLinear: (read, operands) => makeLayer(core, { ...read, operands }),
  deserializeLinear: (_, [bytes]) => readLayer(core, bytes as Operand),
  run: ({ object, state }, operands) =>
    runObject(objects.get(object) as Runnable, operands, stateAt(state)),
  loadModel,
  explainModel: ({ object, state, hasSteps = false }, operands) =>
    (objects.get(object) as WorkerModel).explain(operands, hasSteps, stateAt(state)),
  modelState: ({ object, keep, length }) => {
    if (keep) return (objects.get(object) as WorkerModel).state(keep);
    const state = stateAt(object) as WorkerState;
    return length === undefined ? state.clone() : state.cut(length);
  },
  record: ({ calls }, operands) => record(calls, operands),
  alloc: (values) => allocTensor(core, values),
  memory: () => memoryOf(core),
  read: (_, [tensor]) => read(tensor?.source as HeapTensor),
  write: ({ offset }, [tensor, data]) =>
    write(tensor?.source as HeapTensor, data?.source as DataArray, offset),
  serialize: (_, [weights]) => (weights?.source as PackedWeights | Layer | VectorIndex).serialize(),
  createIndex: (settings) => new VectorIndex(core, settings),
  deserializeIndex: (_, [bytes]) => readIndex(core, bytes as Operand),
};

function run({ method, values }: CallOrder, operands: (Operand | null)[]): unknown {
  return (calls[method] as RunMethod<Method>)(values, operands);
}

/** Throws what the call would throw, except for errors that depend on elements. */
function check({ method, values }: CallOrder, operands: (Operand | null)[]): void {
  if (method === 'pack') (calls.pack(values, operands) as PackedWeights).dispose();
  else if (method === 'explain') calls.explain(values, operands);
  else if (method === 'attention') models.attention?.(core, values.attributes, operands, true);
  else if (isOperation(method))
    explain(method, (values as Values[OperationName]).attributes, operands);
}

async function start({ hasAssets, ...settings }: Values['createGemm']): Promise<Started> {
  // Sent again: if the page made the worker long before, it may not have heard the first message.
  port.postMessage({ kind: 'ready' }, []);
  if (settings.models && !models.load) {
    const found = 'worker() returned a worker of wgemm-worker.js';
    const rule = 'with models: true, it must return a worker of wgemm-models-worker.js';
    throw new ArgumentError('createGemm', 'worker', `createGemm: ${found}; ${rule}`);
  }
  const assets = hasAssets ? askPage : undefined;
  ({ core, info } = await startCore({ ...settings, assets }));
  isStarted = true;
  return { info, dtypes: core.dtypes };
}

/** Packs a part. It then frees the array of the message: the collector would leave many of them. */
function takePart(weights: PackedWeights, place: PartPlace, part: Operand): void {
  packPart(core, 'packFrom', weights, place, part);
  (part.source as unknown as { buffer: { transfer?(n: number): void } }).buffer.transfer?.(0);
}

async function loadModel(order: ModelOrder): Promise<WorkerModel> {
  const { id } = running;
  const pause = pauseIn(running);
  const load = models.load as NonNullable<typeof models.load>; // the page has checked it
  const progress = (done: number) => {
    if (order.hasProgress) port.postMessage({ kind: 'progress', id, done }, []);
    return pause();
  };
  return await load(core, info, order, progress, new Map(order.prepacked.map(takeOver)));
}

/** Takes weights over from their handle. */
function takeOver([name, handle]: ModelOrder['prepacked'][number]): [string, PackedWeights] {
  const weights = objectOf(handle) as PackedWeights;
  objects.delete(handle);
  return [name, weights];
}

/** In a long call, the worker takes messages after this many milliseconds. */
const turn = 8;

/** The pauses of a call. */
function pauseIn(call: typeof running): Pause {
  let last = performance.now();
  const pause = async () => {
    await nextTurn();
    last = performance.now();
    if (call.isCancelled) throw new Error('the page has cancelled the call');
  };
  return () => (performance.now() - last < turn ? undefined : pause());
}

/** The objects that have `run`. */
type Runnable = Recording | Layer | WorkerModel;

const stateAt = (number: number | undefined) =>
  number === undefined ? undefined : (objects.get(number) as WorkerState);

function runObject(
  object: Runnable,
  operands: (Operand | null)[],
  state: WorkerState | undefined,
): unknown {
  if (object instanceof Recording) return void object.run();
  return 'described' in object
    ? object.run(operands, pauseIn(running), state)
    : runLayer(object, operands);
}

/** The option `assets`, a function that stays on the page. */
function askPage(file: string): Promise<string> {
  return new Promise<unknown>((resolve) => {
    takeAsset = resolve;
    port.postMessage({ kind: 'asset', file }, []);
  }) as Promise<string>;
}

function argumentsOf(
  name: OperationName,
  attributes: Float64Array,
  operands: (Operand | null)[],
): Arguments {
  const out = operands.at(-1)?.source;
  return { operation: operations[name], attributes, operands, out };
}

function computeBy(name: OperationName): RunMethod<OperationName> {
  return ({ attributes }, operands) => {
    const result = runCall(makeCall(core, argumentsOf(name, attributes, operands)));
    return HeapTensor.is(result) ? undefined : result; // for `out` the page has the handle
  };
}

function record(calls: Values['record']['calls'], operands: (Operand | null)[]): Recording {
  let at = 0;
  return recordCalls(core, (take) => {
    for (const { name, attributes } of calls) {
      const end = at + operations[name].operands.length;
      take(argumentsOf(name, attributes, operands.slice(at, end)));
      at = end;
    }
  });
}

function explain(
  name: OperationName,
  attributes: Float64Array,
  operands: (Operand | null)[],
): unknown {
  return explainCall(makeCall(core, argumentsOf(name, attributes, operands)));
}

function runLayer(layer: Layer, operands: (Operand | null)[]): unknown {
  const [x, out] = operands.map(tensorOf);
  const result = layer.run(x, { out });
  return HeapTensor.is(operands[1]?.source) ? undefined : result; // the page has the handle
}

/** An operand as a tensor. */
function tensorOf(operand: Operand | null | undefined) {
  if (!operand) return undefined;
  const { source, shape, strides, offset, dtype } = operand;
  const places = { strides: strides ?? undefined, offset: offset ?? undefined };
  return { data: source, shape, ...places, dtype: core.dtypes[dtype] };
}

function read({ data, size }: HeapTensor): DataArray {
  try {
    return data.slice();
  } catch (error) {
    const message = `read: cannot allocate ${size} elements (${String(error)})`;
    throw new OutOfMemoryError('read', '', message);
  }
}

function write(tensor: HeapTensor, data: DataArray, offset: number): void {
  let view = tensor.data;
  // Elements of float16 may come as bits.
  if (classOf(data) === 'Uint16Array')
    view = new Uint16Array(view.buffer as ArrayBuffer, view.byteOffset, view.length);
  (view as Uint8Array).set(data as Uint8Array, offset);
}

function isLayer(result: unknown): result is Layer {
  return typeof result === 'object' && result !== null && 'inputs' in result;
}

function isIndex(result: unknown): result is VectorIndex {
  return typeof result === 'object' && result !== null && 'nextPosition' in result;
}

function isModel(result: unknown): result is WorkerModel {
  return typeof result === 'object' && result !== null && 'described' in result;
}

function isState(result: unknown): result is WorkerState {
  return typeof result === 'object' && result !== null && 'cut' in result;
}

/** The message about a result. */
function outcomeOf(result: unknown): Outcome {
  if (result instanceof Sent) return { ...result };
  if (isModel(result)) return { held: hold(result), value: result.described, buffers: [] };
  if (isIndex(result)) return { held: hold(result), value: stateOf(result), buffers: [] };
  if (
    HeapTensor.is(result) ||
    PackedWeights.is(result) ||
    result instanceof Recording ||
    isLayer(result) ||
    isState(result)
  )
    return { held: hold(result), buffers: [] };
  if (classOf(result) !== undefined) return sentArray(result as DataArray);
  const { data, shape, dtype } = (result ?? {}) as Partial<Tensor>;
  if (classOf(data) === undefined) return { value: result, buffers: [] };
  return { ...sentArray(data as DataArray), shape, dtype };
}

/** Numbers a new handle. */
function hold(object: WorkerObject): Held {
  const id = ++lastHandle;
  objects.set(id, object);
  if ('described' in object || object instanceof Recording || isState(object))
    return { kind: 'weights', id, dtype: 'float32', shape: [] };
  if ('inputs' in object) {
    const { inputs, outputs, dtype, byteLength } = object;
    return { kind: 'weights', id, dtype, shape: [inputs, outputs], byteLength };
  }
  if (isIndex(object))
    return { kind: 'weights', id, dtype: object.dtype, shape: [], byteLength: 0 };
  const { dtype, shape } = object;
  if (HeapTensor.is(object)) return { kind: 'tensor', id, dtype, shape };
  const { op, format, byteLength } = object;
  return { kind: 'weights', id, dtype, shape, op, format, byteLength };
}
