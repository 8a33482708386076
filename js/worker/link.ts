/** The page's side of the protocol with a worker: orders go out, answers come back. */
import {
  type CallOptions,
  callOptions,
  handleOf,
  handles,
  type Held,
  type InstanceLink,
  type ModelRequest,
  numberOf,
  type Signal,
  type WorkerObject,
  type WorkerWeights,
} from '../api/worker-handles.js';
import { bytesIn, detachedArray } from '../base/arrays.js';
import { ArgumentError, describe, GemmError } from '../base/errors.js';
import { nodeWorkers, type Port, waitFor } from '../base/port.js';
import { isReadable, unpolluted } from '../base/properties.js';
import { checkSignal } from '../base/read-options.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Operand, Reader } from '../call/operand.js';
import { links } from '../instance/core.js';
import { urlOf } from '../instance/cross-origin.js';
import { ask, type Assets, isAddress, readThreadSource, readWasmSource } from '../instance/load.js';
import { isOperation } from '../ops/operations.js';
import { disposedInstance, errorOf, notSent } from './errors.js';
import {
  type Answer,
  arrayOf,
  type CallOrder,
  type Method,
  type Order,
  type Outcome,
  type Packet,
  packetsOf,
  type Values,
} from './message.js';

/**
 * If no message arrives for this many milliseconds, the worker has failed to start. The script must
 * arrive in this time, even over a slow network. It sends its first message at once.
 */
const patience = 10_000;

/** Replaces the port of a worker that has ended. */
const gone: Port = { post() {}, terminate() {}, hold() {}, listen() {} };

const kinds: readonly unknown[] = [
  'ready',
  'closing',
  'asset',
  'accepted',
  'progress',
  'outcome',
  'error',
] satisfies Answer['kind'][];

/**
 * Calls that do not compute, but whose arrays move with `transfer`, too, once the worker has
 * accepted the call.
 */
const moving: readonly Method[] = ['pack', 'explain', 'write'];

/** @internal A call whose arguments the page has read and found valid. */
export interface Request<M extends Method> {
  /** The name of the call in errors. Default: the method. */
  readonly op?: string;
  readonly values: Values[M];
  readonly operands: readonly (Operand | null)[];
  /** Makes what the caller gets. `data` is the array of the outcome. */
  readonly result: (outcome: Outcome, data: DataArray | undefined, transfer: boolean) => unknown;
  /** Receives how much of the call is done, from 0 to 1. */
  readonly progress?: ((done: number) => void) | undefined;
}

/** A call that has no answer yet. */
interface PendingCall {
  /** The name of the call in errors. */
  readonly op: string;
  /** Keeps its handles from the collector. */
  readonly request: Request<Method>;
  /** Sends the arrays, once the worker has accepted the call. */
  readonly sendArrays: () => void;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/** @internal The link to the worker of an instance, and the Reader of its calls. */
export class Link implements Reader, InstanceLink {
  readonly callOptions = callOptions;
  readonly handles = handles;
  /** Known once the worker has started the instance. */
  dtypes: readonly DType[] = [];
  models = false;
  #port: Port;
  #assets: Assets | undefined;
  readonly #advice: string;
  readonly #pending = new Map<number, PendingCall>();
  #calls = 0;
  #started = false;
  readonly #waiting: ReturnType<typeof waitFor> | undefined;
  /** Makes the error of every call from the end on. */
  #end: ((op: string) => unknown) | undefined;

  /** @param advice what helps if the worker does not start */
  constructor(port: Port, assets: Assets | undefined, advice: string) {
    this.#port = port;
    this.#advice = advice;
    this.#assets = assets;
    port.listen(
      (answer) => this.#take(answer as Answer),
      (why, cause) => this.#die(why, cause),
    );
    if (this.#started || this.ended) return; // a message or an error came during listen()
    this.#waiting = waitFor(patience, () => this.#die(`no answer for ${patience / 1000} s`));
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  checkAlive(op: string): void {
    if (this.#end) throw this.#end(op);
  }

  /** Ends the worker, and rejects all pending calls with `errorFor` their names. */
  end(errorFor: (op: string) => unknown): void {
    if (this.#end) return;
    this.#end = errorFor;
    this.#waiting?.end();
    for (const { op, reject } of this.#pending.values()) reject(errorFor(op));
    this.#pending.clear();
    const port = this.#port;
    this.#port = gone; // handles keep this link alive, and must not keep the worker alive
    this.#assets = undefined;
    port.terminate();
  }

  dispose(): void {
    this.end(disposedInstance);
  }

  #die(why: string, cause?: unknown): void {
    const [code, what, advice] = this.#started
      ? (['WORKER', 'the worker died', 'create another instance'] as const)
      : (['LOAD', 'the worker does not start', this.#advice] as const);
    this.end((op) => new GemmError(code, op, '', `${op}: ${what} (${why}); ${advice}`, { cause }));
  }

  /** Sends an order that has no answer. Returns whether it was sent. Never throws. */
  order(order: Order): boolean {
    try {
      if (!this.#end) this.#port.post(order, []);
      return true;
    } catch {
      return false;
    }
  }

  /** Sends an order with a packet. Returns whether it was sent. If not, rejects the call. */
  #send(id: number, make: () => Order & { packet: Packet }): boolean {
    try {
      const order = make();
      const { buffers } = order.packet;
      this.#port.post(
        order,
        buffers.filter((buffer) => typeof buffer !== 'number'),
      );
      return true;
    } catch (error) {
      const pending = this.#pending.get(id);
      pending?.reject(notSent(pending.op, error));
      return false;
    }
  }

  /** Makes the worker stop waiting for the arrays of a call that it accepted. */
  #cancelAccepted(id: number): void {
    if (!this.order({ kind: 'cancel', id })) this.#die('the arrays of a call cannot be sent');
  }

  /**
   * Makes a call: reads its arguments, sends them, and waits for the answer.
   *
   * @param read reads the arguments, except for the options that every call has
   */
  async call<M extends Method>(
    method: M,
    options: unknown,
    read: () => Request<M>,
  ): Promise<unknown> {
    this.checkAlive(method);
    const { transfer, signal } = readCallOptions(method, options);
    if (signal?.aborted) throw signal.reason;
    const request = read();
    // The user's getters may have ended the instance, or aborted the call.
    this.checkAlive(method);
    if (signal?.aborted) throw signal.reason;
    const { op = method, values, operands, result } = request;
    const packetBy = packetsOf(
      op,
      operands,
      (handle, name) => numberOf(handle, this, op, name),
      (name) => detachedArray(op, name, method === 'write' ? 'is a detached array' : undefined),
    );
    const id = ++this.#calls;
    const isCopied =
      !transfer || !(moving.includes(method) || method === 'attention' || isOperation(method));
    let reject: (error: unknown) => void = () => undefined;
    const abort = () => {
      if (!this.#settle(id)) return;
      reject(signal?.reason);
      this.order({ kind: 'cancel', id });
    };
    try {
      const outcome = await new Promise<Outcome>((resolve, rejectIt) => {
        reject = rejectIt;
        const sendArrays = () => {
          const packetOrder = () => ({ kind: 'packet' as const, id, packet: packetBy('move') });
          if (!this.#send(id, packetOrder)) this.#cancelAccepted(id);
        };
        this.#pending.set(id, { op, request, sendArrays, resolve, reject });
        // A signal of the user's own class may end the instance, or abort the call at once.
        signal?.addEventListener('abort', abort);
        this.checkAlive(method);
        if (!this.#pending.has(id)) return;
        this.#port.hold(true);
        this.#send(id, () => {
          const packet = packetBy(isCopied ? 'copy' : 'describe');
          const isTrial = !isCopied && packet.buffers.length > 0;
          return { kind: 'call', id, method, values, packet, isTrial } as CallOrder;
        });
      });
      const { array, buffers } = outcome;
      return result(outcome, array && arrayOf(array, buffers), transfer);
    } finally {
      this.#settle(id); // a stack overflow may have left it
      signal?.removeEventListener('abort', abort);
    }
  }

  handleOf(held: Held): WorkerObject {
    return handleOf(this, held);
  }

  numberOf(handle: WorkerObject, op: string, name: string): number {
    return numberOf(handle, this, op, name);
  }

  async packFrom(
    options: CallOptions,
    values: Values['packFrom'],
    operands: readonly Operand[],
  ): Promise<unknown> {
    const result: Request<'packFrom'>['result'] = ({ held }) => held && handleOf(this, held);
    return await this.call('packFrom', options, () => ({ values, operands, result }));
  }

  /** Makes a call about a model. */
  async callModel(
    method: 'loadModel' | 'run' | 'explainModel' | 'modelState',
    options: CallOptions | undefined,
    read: () => ModelRequest,
  ): Promise<unknown> {
    return await this.call(method, options, read as () => Request<typeof method>);
  }

  /** Takes a call off the list, and returns whether it was on it. */
  #settle(id: number): boolean {
    const was = this.#pending.delete(id);
    if (this.#pending.size === 0) this.#port.hold(false);
    return was;
  }

  #take(answer: Answer): void {
    if (!kinds.includes((answer as Answer | null | undefined)?.kind)) return; // of another script
    this.#started = true;
    this.#waiting?.end();
    switch (answer.kind) {
      case 'ready':
        break;
      case 'accepted': {
        const pending = this.#pending.get(answer.id);
        if (pending) pending.sendArrays();
        else this.#cancelAccepted(answer.id);
        break;
      }
      case 'closing':
        this.#die(answer.why);
        break;
      case 'asset':
        void this.#provide(answer.file);
        break;
      case 'progress':
        this.#tell(answer.id, answer.done);
        break;
      case 'outcome':
      case 'error': {
        const pending = this.#pending.get(answer.id);
        if (!this.#settle(answer.id) || !pending) {
          // It was cancelled while it ran.
          if (answer.kind === 'outcome' && answer.outcome.held)
            this.order({ kind: 'forget', id: answer.outcome.held.id });
        } else if (answer.kind === 'outcome') {
          // Without a prototype: the page may have given Object.prototype the same properties.
          pending.resolve(Object.setPrototypeOf(answer.outcome, null) as Outcome);
        } else {
          pending.reject(errorOf(answer));
        }
      }
    }
  }

  /** Reports to the caller how much of a call is done. If its function throws, the call ends. */
  #tell(id: number, done: number): void {
    const pending = this.#pending.get(id);
    try {
      pending?.request.progress?.(done);
    } catch (error) {
      if (!this.#settle(id)) return;
      pending?.reject(error);
      this.order({ kind: 'cancel', id });
    }
  }

  /** Asks `assets`, a function that stays on the page, and sends what it returned. */
  async #provide(file: string): Promise<void> {
    let source: unknown;
    try {
      const returned = bytesIn(await ask(file, this.#assets));
      source = addressOf(
        file.endsWith('.wasm') ? readWasmSource(file, returned) : readThreadSource(file, returned),
      );
    } catch (error) {
      this.end(() => error);
      return;
    }
    try {
      this.#port.post({ kind: 'asset', source }, []);
    } catch (error) {
      this.end((op) => notSent(op, error));
    }
  }
}

/** Reads the options that every call has. */
function readCallOptions(
  op: string,
  options: unknown,
): { transfer: boolean; signal: Signal | undefined } {
  if (!isReadable(options)) return { transfer: false, signal: undefined };
  const { transfer = false, signal } = unpolluted(options, callOptions) as CallOptions;
  if (typeof transfer !== 'boolean') {
    throw new ArgumentError(
      op,
      'transfer',
      `${op}: transfer is of type ${typeof transfer}; it must be a boolean`,
    );
  }
  checkSignal(op, signal);
  return { transfer, signal };
}

/**
 * Makes an address absolute, so that it means in the worker what it means on the page. Other values
 * stay as they are. So does a path of Node: under jsdom, paths are not relative to the page.
 */
function addressOf(source: unknown): unknown {
  if (!isAddress(source) || (typeof source === 'string' && nodeWorkers())) return source;
  return urlOf(source)?.href ?? source; // if there is none, the error comes when it is fetched
}

/**
 * @internal Makes an object that lives in a worker, such as a layer.
 * @param wg an instance whose worker has the object
 * @param entry the entry that has the same call for instances of `wgemm`
 * @param read reads the arguments of the call
 * @param make makes what the caller gets
 */
export async function makeInWorker<M extends Method>(
  wg: unknown,
  op: M,
  entry: string,
  options: unknown,
  read: (link: Link) => Omit<Request<M>, 'result'>,
  make: (link: Link, handle: WorkerWeights, wg: object, value: unknown) => unknown,
): Promise<never> {
  const link = links.get(wg as object) as Link | undefined;
  if (!link) {
    const advice = `for an instance of wgemm, import ${op} from ${entry}`;
    const rule = `it must be an instance of wgemm/worker; ${advice}`;
    throw new ArgumentError(op, 'wg', `${op}: wg is ${describe(wg)}; ${rule}`);
  }
  const made = await link.call(op, options, () => ({
    ...read(link),
    result: ({ held, value }) =>
      held && make(link, handleOf(link, held) as WorkerWeights, wg as object, value),
  }));
  return made as never;
}
