/**
 * The API of `wgemm` as promises, computed in a worker: the page stays responsive.
 *
 * @example
 * import { createGemm } from 'wgemm/worker';
 * const wg = await createGemm();
 * const y = await wg.gemm({ data: a, shape: [m, k] }, { data: b, shape: [k, n] });
 *
 * @packageDocumentation
 */
import { disposable } from './dispose.js';
import {
  ArgumentError,
  type CreateOptions,
  type DataArray,
  DisposedError,
  DTypeError,
  type DType,
  type ErrorCode,
  type Explanation,
  GemmError,
  type GemmOptions,
  HeapTensor,
  type Info,
  type MatMulOptions,
  OpsetError,
  OutOfMemoryError,
  PackedWeights,
  PackMismatchError,
  type PackOptions,
  type QGemmInputs,
  type QGemmOptions,
  type QuantizedArray,
  type ResultArray,
  type Scale,
  ShapeError,
  type ArrayOf,
  type Tensor,
  type TensorInput,
  UnsupportedError,
  type ZeroPoint,
} from './index.js';
import {
  arrayOf,
  type Held,
  move,
  packetsOf,
  type Packet,
  propertiesOf,
  sentArray,
} from './message.js';
import { messageOf, nodeWorkers, type Port, portOf, waitFor } from './port.js';
import { handleKey, has, isList, isReadable, isRevoked, unpolluted } from './properties.js';
import { bufferOf, bytesIn, isRank, tensorKeys } from './tensor.js';
import type { Answer, Method, Order, Outcome, SentCause } from './worker-thread.js';

export {
  ArgumentError,
  dequantize,
  DisposedError,
  DTypeError,
  GemmError,
  OpsetError,
  OutOfMemoryError,
  PackMismatchError,
  quantize,
  quantizeBias,
  ShapeError,
  UnsupportedError,
  version,
} from './index.js';
export type {
  Activation,
  ArrayOf,
  Assets,
  AssetSource,
  CreateOptions,
  DataArray,
  DType,
  ErrorCode,
  Explanation,
  Float16ArrayLike,
  GemmOptions,
  Info,
  KernelInfo,
  MatMulOptions,
  PackOptions,
  QGemmInputs,
  QGemmOptions,
  Quantized,
  QuantizedArray,
  QuantizedBias,
  QuantizedDType,
  QuantizedInput,
  QuantizedPerAxis,
  QuantizedPerTensor,
  QuantizeBiasOptions,
  QuantizeOptions,
  ResultArray,
  Scale,
  Tensor,
  TensorInput,
  ZeroPoint,
} from './index.js';

/** A tensor in either place. */
export type WorkerTensorLike<A extends DataArray = DataArray> = TensorInput<A> | WorkerTensor<A>;

/** What an argument or option may be here: handles stand for what they are handles of. */
export type InWorker<T> =
  T extends HeapTensor<infer A> ? WorkerTensor<A> : T extends PackedWeights ? WorkerWeights : T;

/** An AbortSignal, for a TypeScript that does not know it. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** Of every call. */
export interface CallOptions {
  /**
   * The buffers of the arguments' arrays move to the worker, which detaches the arrays. They move
   * when the worker accepts the call; do not touch them before the promise settles. A call that is
   * refused, or aborted before, leaves them as they were. They are gone if an accepted call fails,
   * as when the engine gives less memory than foretold.
   *
   * An `out` comes back as a tensor with an array of its own. Memory that cannot move, shared or
   * WebAssembly's, is copied. `pack` checks by a run on zeros. `deserialize` must read bytes to
   * check them: it takes a copy, and detaches the array when it succeeds. Default false.
   */
  transfer?: boolean;
  /**
   * Its abort rejects the call with its reason. A call that waits is not begun; of one that runs,
   * the result is dropped.
   */
  signal?: Signal;
}

/** Options of `wgemm`'s call of that name, and of every call here. */
export type WorkerOptions<T> = Omit<T, 'out'> & CallOptions;

/** Options of `createGemm`. */
export interface WorkerCreateOptions extends CreateOptions {
  /**
   * Makes the worker, a `Worker` or one of `node:worker_threads`, from the package's
   * `wgemm-worker.js` wherever that is served. Default: from beside this script.
   */
  worker?: () => unknown;
}

const errors: Partial<
  Record<ErrorCode, new (op: string, argument: string, message: string) => GemmError>
> = {
  SHAPE: ShapeError,
  DTYPE: DTypeError,
  OPSET: OpsetError,
  ARGUMENT: ArgumentError,
  OUT_OF_MEMORY: OutOfMemoryError,
  PACK_MISMATCH: PackMismatchError,
  DISPOSED: DisposedError,
  UNSUPPORTED: UnsupportedError,
};

/**
 * Milliseconds of silence after which a script is not considered the package's. It must be fetched
 * in this time, over a slow network too; all else comes after its first word.
 */
const patience = 10_000;

/** Starts a worker, and an instance with a memory of its own in it. */
export async function createGemm(options: WorkerCreateOptions = {}): Promise<WorkerGemm> {
  const op = 'createGemm';
  const make = isReadable(options) ? unpolluted(options, ['worker']).worker : undefined;
  if (make !== undefined && typeof make !== 'function') {
    throw new ArgumentError(
      op,
      'worker',
      `${op}: worker is ${typeof make}; it must be a function that makes a worker`,
    );
  }
  const rest = without(options, ['worker']);
  let link: Link;
  try {
    const port = portOfWorker(make ? (make as () => unknown)() : startWorker());
    link = new Link(port, isReadable(rest) ? (rest as CreateOptions).assets : undefined);
  } catch (error) {
    if (error instanceof GemmError) throw error;
    const advice =
      'have wgemm-worker.js beside this script, from the origin of the page, or make the worker with the option worker';
    throw new GemmError(
      'LOAD',
      op,
      '',
      `${op}: the worker cannot be made (${messageOf(error)}); ${advice}`,
      { cause: error },
    );
  }
  try {
    const info = (await link.call(op, [rest])) as Info;
    return new WorkerGemm(link, info);
  } catch (error) {
    link.end(() => error);
    throw error;
  }
}

/**
 * An instance in a worker. Made by {@link createGemm}. The calls are those of `wgemm`, where they
 * are described.
 */
export class WorkerGemm {
  /** The build in use and why, its threads and its micro-kernels. */
  readonly info: Info;
  readonly #link: Link;

  /** @internal */
  constructor(link: Link, info: Info) {
    this.info = Object.freeze(info);
    this.#link = link;
    Object.freeze(this);
    net?.register(this, () => link.end(disposedError), this);
  }

  /**
   * ONNX Gemm: Y = alpha * A' * B' + beta * C, as `gemm` of `wgemm`. Rejected with what that
   * throws.
   */
  gemm<A extends DataArray, O extends WorkerTensorLike<A>>(
    a: WorkerTensorLike<A>,
    b: WorkerTensorLike<A> | WorkerWeights,
    c: WorkerTensorLike<A> | number | bigint | null | undefined,
    options: WorkerOptions<GemmOptions<A>> & { out?: WorkerTensorLike<A> } & { out: O }, // A follows from out, too
  ): Promise<O>;
  gemm<A extends DataArray>(
    a: WorkerTensorLike<A>,
    b: WorkerTensorLike<A> | WorkerWeights,
    c?: WorkerTensorLike<A> | number | bigint | null,
    options?: WorkerOptions<GemmOptions<A>>,
  ): Promise<Tensor<ResultArray<A>>>;
  async gemm(a: unknown, b: unknown, c?: unknown, options?: unknown): Promise<unknown> {
    return await this.#call('gemm', [a, b, c], options);
  }

  /**
   * com.microsoft QGemm of quantized a and b, as `qgemm` of `wgemm`. Rejected with what that
   * throws.
   */
  qgemm<A extends Float32Array | QuantizedArray, O extends WorkerTensorLike<A>>(
    inputs: WorkerQGemmInputs,
    options: WorkerOptions<QGemmOptions<A>> & { out: O },
  ): Promise<O>;
  qgemm(
    inputs: WorkerQGemmInputs & { yScale?: null; yZeroPoint?: null },
    options?: WorkerOptions<QGemmOptions>,
  ): Promise<Tensor<Float32Array>>;
  qgemm(
    inputs: WorkerQGemmInputs & { yScale: InWorker<Scale>; yZeroPoint: InWorker<ZeroPoint> },
    options?: WorkerOptions<QGemmOptions>,
  ): Promise<Tensor<QuantizedArray>>;
  qgemm(
    inputs: WorkerQGemmInputs,
    options?: WorkerOptions<QGemmOptions>,
  ): Promise<Tensor<Float32Array | QuantizedArray>>;
  async qgemm(inputs: unknown, options?: unknown): Promise<unknown> {
    return await this.#call('qgemm', [inputs], options);
  }

  /**
   * oneDNN Graph MatMul: dst = src * weights + bias, for stacks of matrices, as `matmul` of
   * `wgemm`. Rejected with what that throws.
   */
  matmul<A extends DataArray, O extends WorkerTensorLike>(
    src: WorkerTensorLike<A>,
    weights: WorkerTensorLike<A> | WorkerWeights,
    bias: WorkerTensorLike<A> | number | bigint | null | undefined,
    options: WorkerOptions<MatMulOptions> & { out: O },
  ): Promise<O>;
  matmul<A extends DataArray>(
    src: WorkerTensorLike<A>,
    weights: WorkerTensorLike<A> | WorkerWeights,
    bias: WorkerTensorLike<A> | number | bigint | null | undefined,
    options: WorkerOptions<MatMulOptions<A>> & { outType: 'float32' },
  ): Promise<Tensor<Float32Array>>;
  matmul<A extends DataArray>(
    src: WorkerTensorLike<A>,
    weights: WorkerTensorLike<A> | WorkerWeights,
    bias?: WorkerTensorLike<A> | number | bigint | null,
    options?: WorkerOptions<MatMulOptions<A>>,
  ): Promise<Tensor<ResultArray<A>>>;
  async matmul(
    src: unknown,
    weights: unknown,
    bias?: unknown,
    options?: unknown,
  ): Promise<unknown> {
    return await this.#call('matmul', [src, weights, bias], options);
  }

  /**
   * Lays b out once, in the worker's memory, for any number of calls: what it gives stands where
   * `b` or `weights` stands.
   */
  pack(
    b: WorkerTensorLike<QuantizedArray>,
    options: PackOptions & CallOptions,
  ): Promise<WorkerWeights>;
  pack(
    b: WorkerTensorLike,
    options: PackOptions & CallOptions & { op: 'gemm' | 'matmul' },
  ): Promise<WorkerWeights>;
  async pack(b: unknown, options: unknown): Promise<WorkerWeights> {
    return (await this.#call('pack', [b], options)) as WorkerWeights;
  }

  /**
   * Packed weights in the worker's memory from what their `serialize()` gave, there or in `wgemm`.
   * Rejected with what that throws.
   */
  async deserialize(
    bytes: Uint8Array | ArrayBufferLike,
    options?: CallOptions,
  ): Promise<WorkerWeights> {
    return (await this.#call('deserialize', [bytesIn(bytes)], options)) as WorkerWeights;
  }

  /**
   * The plan for a call with these arguments, without running it: its name, and then its arguments.
   */
  explain(
    op: 'gemm',
    a: WorkerTensorLike,
    b: WorkerTensorLike | WorkerWeights,
    c?: WorkerTensorLike | number | bigint | null,
    options?: WorkerOptions<GemmOptions> & { out?: WorkerTensorLike },
  ): Promise<Explanation>;
  explain(
    op: 'qgemm',
    inputs: WorkerQGemmInputs,
    options?: WorkerOptions<QGemmOptions> & { out?: WorkerTensorLike },
  ): Promise<Explanation>;
  explain(
    op: 'matmul',
    src: WorkerTensorLike,
    weights: WorkerTensorLike | WorkerWeights,
    bias?: WorkerTensorLike | number | bigint | null,
    options?: WorkerOptions<MatMulOptions> & { out?: WorkerTensorLike },
  ): Promise<Explanation>;
  async explain(op: unknown, ...args: unknown[]): Promise<Explanation> {
    const count = op === 'qgemm' ? 1 : 3; // before the options
    const padded = Array.from({ length: count }, (_, i) => args[i]);
    return (await this.#call('explain', [op, ...padded], args[count])) as Explanation;
  }

  /** A tensor of zeros inside the worker's memory, so that calls on it copy nothing. */
  async alloc<D extends DType>(
    dtype: D,
    shape: readonly number[],
    options?: CallOptions,
  ): Promise<WorkerTensor<ArrayOf<D>>> {
    return (await this.#call('alloc', [dtype, shape], options)) as WorkerTensor<ArrayOf<D>>;
  }

  /**
   * Bytes that tensors hold (`inUse`), and bytes that the wasm memory has taken from the system
   * (`committed`).
   */
  async memory(options?: CallOptions): Promise<{ inUse: number; committed: number }> {
    return (await this.#call('memory', [], options)) as { inUse: number; committed: number };
  }

  get disposed(): boolean {
    return this.#link.ended;
  }

  /**
   * Ends the worker and all that is in it; what is pending is rejected. Does nothing the second
   * time.
   */
  dispose(): void {
    net?.unregister(this);
    this.#link.end(disposedError);
  }

  declare [Symbol.dispose]: () => void;

  async #call(method: Method, args: unknown[], options: unknown): Promise<unknown> {
    const outcome = await this.#link.call(method, args, options);
    if (outcome instanceof WorkerObject) ownerOf.set(outcome, this);
    return outcome;
  }
}
disposable(WorkerGemm.prototype);

/** What `qgemm` takes. */
export type WorkerQGemmInputs = { [K in keyof QGemmInputs]: InWorker<QGemmInputs[K]> };

/** Handles keep their instance from being collected. */
const ownerOf = new WeakMap<object, WorkerGemm>();

/** The net under dispose(): ends what nobody can reach any more. */
const net =
  typeof FinalizationRegistry === 'function'
    ? new FinalizationRegistry<() => void>((end) => end())
    : undefined;

/** What a handle is in its worker. */
let heldBy: (object: object, link: Link) => Held | undefined;

/**
 * Something that holds memory of an instance in a worker until `dispose()`; garbage collection is
 * only a net.
 */
export abstract class WorkerObject {
  readonly #link: Link;
  readonly #held: Held;
  #disposed = false;

  /** @internal */
  constructor(link: Link, held: Held) {
    this.#link = link;
    this.#held = held;
    Object.freeze(held.shape);
    net?.register(this, () => link.order({ kind: 'forget', id: held.id })); // also after dispose()
  }

  get disposed(): boolean {
    return this.#disposed || this.#link.ended;
  }

  get dtype(): DType {
    return this.#held.dtype;
  }

  /** Of packed weights [..., K, N], after `trans`. */
  get shape(): readonly number[] {
    return this.#held.shape;
  }

  /** Gives the memory back, after the calls that were made before. Does nothing the second time. */
  dispose(): void {
    if (!this.#disposed) this.#link.order({ kind: 'dispose', id: this.#held.id });
    this.#disposed = true;
  }

  declare [Symbol.dispose]: () => void;

  /** @internal */
  protected async call(method: Method, args: unknown[], options: unknown): Promise<unknown> {
    return await this.#link.call(method, [this, ...args], options);
  }

  static {
    heldBy = (object, link) => {
      if (#held in object) return object.#link === link ? object.#held : { ...object.#held, id: 0 };
      if (HeapTensor.is(object))
        return { kind: 'tensor', id: 0, dtype: object.dtype, shape: object.shape };
      if (PackedWeights.is(object))
        return { kind: 'weights', id: 0, dtype: object.dtype, shape: object.shape };
      const imitates =
        object instanceof HeapTensor ||
        object instanceof PackedWeights ||
        object instanceof WorkerObject;
      return imitates ? { kind: 'imitation', id: 0, dtype: 'float32', shape: [] } : undefined;
    };
  }
}
disposable(WorkerObject.prototype);

/** A contiguous tensor inside the memory of an instance in a worker. Made by `alloc`. */
export class WorkerTensor<A extends DataArray = DataArray> extends WorkerObject {
  static {
    Object.defineProperty(this.prototype, handleKey, { value: 'a tensor in a worker' });
  }

  /** @internal */
  constructor(link: Link, held: Held) {
    super(link, held);
    Object.freeze(this);
  }

  /** Number of elements. */
  get size(): number {
    return this.shape.reduce((product, n) => product * n, 1);
  }

  /** The elements as they are after the calls that were made before, in an array of their own. */
  async read(options?: CallOptions): Promise<A> {
    return (await this.call('read', [], options)) as A;
  }

  /**
   * Writes elements, before the calls that are made after.
   * @param data of the type of the tensor
   * @param options offset: the first element that is written; default 0
   * @throws DTypeError, ShapeError, ArgumentError, DisposedError; nothing is written then
   */
  async write(data: A, options: CallOptions & { offset?: number } = {}): Promise<void> {
    await this.call('write', [data], options);
  }
}

/**
 * Weights that are laid out once, in the memory of an instance in a worker. Made by `pack` or
 * `deserialize`.
 */
export class WorkerWeights extends WorkerObject {
  static {
    Object.defineProperty(this.prototype, handleKey, { value: 'packed weights in a worker' });
  }

  /** What they are for: `'gemm'` is for `matmul` too. */
  readonly op: 'gemm' | 'qgemm';
  /** Bytes of memory that they take. */
  readonly byteLength: number;

  /** @internal */
  constructor(link: Link, held: Held, op: 'gemm' | 'qgemm', byteLength: number) {
    super(link, held);
    this.op = op;
    this.byteLength = byteLength;
    Object.freeze(this);
  }

  /** The weights as bytes, in an array of their own, for `deserialize`, here or in `wgemm`. */
  async serialize(options?: CallOptions): Promise<ReturnType<Uint8Array['slice']>> {
    return (await this.call('serialize', [], options)) as ReturnType<Uint8Array['slice']>;
  }
}

const script = 'wgemm-worker.js';

function startWorker(): unknown {
  const threads = nodeWorkers();
  // Not by the expression below, of which bundlers would make a file more; and without the flags of
  // the process, of which --input-type would be wrong for a file.
  if (threads) {
    const own = import.meta.url as string | undefined;
    if (!own) throw new Error('this script does not know its own address');
    // Node reads inherited options, too.
    const options = Object.setPrototypeOf(
      { execArgv: [] },
      null,
    ) as import('node:worker_threads').WorkerOptions;
    return new threads.Worker(new URL(script, own), options);
  }
  if (typeof Worker !== 'function')
    throw new UnsupportedError(
      'createGemm',
      '',
      'createGemm: there are no workers here; use wgemm itself',
    );
  return new Worker(new URL('./wgemm-worker.js', import.meta.url), { type: 'module' });
}

/** Workers that have an instance. */
const taken = new WeakSet<object>();

function portOfWorker(made: unknown): Port {
  const worker = made as Record<string, unknown> | null | undefined;
  const can = (...names: string[]) => names.some((name) => typeof worker?.[name] === 'function');
  if (!worker || !can('postMessage') || !can('terminate') || !can('on', 'addEventListener')) {
    throw new ArgumentError(
      'createGemm',
      'worker',
      'createGemm: worker() did not give a worker; it must give one of wgemm-worker.js',
    );
  }
  // Both instances would take the answers to either.
  if (taken.has(worker))
    throw new ArgumentError(
      'createGemm',
      'worker',
      'createGemm: worker() gave a worker again; it must give one an instance',
    );
  taken.add(worker);
  return portOf(worker);
}

/** In the place of a worker that has ended. */
const gone: Port = { post() {}, terminate() {}, hold() {}, listen() {} };

interface Pending {
  readonly method: Method;
  /** Handles among them are not collected while their call is pending. */
  readonly args: unknown[];
  /** Sends what was only described. */
  readonly give: () => void;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

const kinds: readonly unknown[] = [
  'ready',
  'closing',
  'asset',
  'accepted',
  'outcome',
  'error',
] satisfies Answer['kind'][];

/** The calls that take arrays with `transfer`, and of which there are trials. */
const taking: readonly Method[] = ['gemm', 'qgemm', 'matmul', 'pack', 'explain', 'write'];

/** The way to the worker of an instance: orders go out, answers come back. */
class Link {
  #port: Port;
  #assets: CreateOptions['assets'];
  readonly #pending = new Map<number, Pending>();
  #calls = 0;
  #started = false;
  readonly #waiting: ReturnType<typeof waitFor> | undefined;
  /** What a call is rejected with, from the end on. */
  #end: ((op: string) => unknown) | undefined;

  constructor(port: Port, assets: CreateOptions['assets']) {
    this.#port = port;
    this.#assets = assets;
    port.listen(
      (answer) => this.#take(answer as Answer),
      (why, cause) => this.#die(why, cause),
    );
    if (this.#started || this.ended) return; // it spoke while it got its listeners
    this.#waiting = waitFor(patience, () => this.#die(`it said nothing for ${patience / 1000} s`));
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  #checkAlive(op: string): void {
    if (this.#end) throw this.#end(op);
  }

  /** Ends the worker, and rejects what is pending. */
  end(errorFor: (op: string) => unknown): void {
    if (this.#end) return;
    this.#end = errorFor;
    this.#waiting?.end();
    for (const { method, reject } of this.#pending.values()) reject(errorFor(method));
    this.#pending.clear();
    const port = this.#port;
    this.#port = gone; // handles hold this, and are not to hold the worker
    this.#assets = undefined;
    port.terminate();
  }

  #die(why: string, cause?: unknown): void {
    const [code, what, advice] = this.#started
      ? (['WORKER', 'the worker died', 'create another instance'] as const)
      : ([
          'LOAD',
          'the worker does not start',
          'have wgemm-worker.js beside this script, in a page from its origin and under headers that allow it',
        ] as const);
    this.end((op) => new GemmError(code, op, '', `${op}: ${what} (${why}); ${advice}`, { cause }));
  }

  /**
   * Sends what has no answer. Tells whether it went: nobody waits for it, so that nothing is
   * thrown.
   */
  order(order: Order): boolean {
    try {
      if (!this.#end) this.#port.post(order, []);
      return true;
    } catch {
      return false;
    }
  }

  /** Sends the packet of a call, and tells whether it went. If not, the call is rejected. */
  #send(id: number, order: () => Order & { packet: Packet }): boolean {
    try {
      const made = order();
      const { buffers } = made.packet;
      this.#port.post(
        made,
        buffers.filter((buffer) => typeof buffer !== 'number'),
      );
      return true;
    } catch (error) {
      const pending = this.#pending.get(id);
      pending?.reject(notSent(pending.method, error));
      return false;
    }
  }

  /** Has the worker not wait for the packet of an accepted call. */
  #cancelAccepted(id: number): void {
    if (!this.order({ kind: 'cancel', id })) this.#die('it waits for arrays that cannot be sent');
  }

  /**
   * Sends a call, whose options besides those of the call itself are here, and makes of its answer
   * what the caller gets.
   */
  async call(method: Method, args: unknown[], options?: unknown): Promise<unknown> {
    this.#checkAlive(method);
    const { transfer, signal, own } = readOptions(method, options);
    if (signal?.aborted) throw signal.reason;
    const heldOf = (object: object) => heldBy(object, this);
    const out = isReadable(own) ? (own as { out?: unknown }).out : undefined;
    const target = isReadable(out) && !heldOf(out) && has(out, 'data') ? snapshot(out) : undefined;
    if (target) Object.assign(own as object, { out: target });
    const packetBy = packetsOf([...args, own], heldOf);
    // Code of the user's ran.
    this.#checkAlive(method);
    if (signal?.aborted) throw signal.reason;
    const id = ++this.#calls;
    const isCopied = !transfer || !taking.includes(method);
    let reject: (error: unknown) => void = () => undefined;
    const abort = () => {
      if (!this.#settle(id)) return;
      reject(signal?.reason);
      this.order({ kind: 'cancel', id });
    };
    try {
      const outcome = await new Promise<Outcome>((resolve, rejectIt) => {
        reject = rejectIt;
        signal?.addEventListener('abort', abort);
        const give = () => {
          const packetOrder = () => ({ kind: 'packet' as const, id, packet: packetBy('move') });
          if (!this.#send(id, packetOrder)) this.#cancelAccepted(id);
        };
        this.#pending.set(id, { method, args, give, resolve, reject });
        this.#port.hold(true);
        this.#send(id, () => {
          const packet = packetBy(isCopied ? 'copy' : 'describe');
          return {
            kind: 'call',
            id,
            method,
            packet,
            isTrial: !isCopied && packet.buffers.length > 0,
          };
        });
      });
      const result = this.#read(outcome, method, out, target, transfer);
      if (transfer && method === 'deserialize') move(bufferOf(args[0] as Uint8Array));
      return result;
    } finally {
      this.#settle(id); // a stack overflow may have left it
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Takes a call off the list; tells whether it was on it. */
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
        if (pending) pending.give();
        else this.#cancelAccepted(answer.id);
        break;
      }
      case 'closing':
        this.#die(answer.why);
        break;
      case 'asset':
        void this.#provide(answer.file);
        break;
      case 'outcome':
      case 'error': {
        const pending = this.#pending.get(answer.id);
        if (!this.#settle(answer.id) || !pending) {
          // It was cancelled when it ran already.
          if (answer.kind === 'outcome' && answer.outcome.held)
            this.order({ kind: 'forget', id: answer.outcome.held.id });
        } else if (answer.kind === 'outcome') {
          pending.resolve(Object.setPrototypeOf(answer.outcome, null) as Outcome); // what is not in it is not there
        } else {
          const { code, op, argument, message, cause } = answer;
          const ErrorClass = errors[code];
          const error = ErrorClass
            ? new ErrorClass(op, argument, message)
            : new GemmError(code, op, argument, message);
          pending.reject(withCause(error, cause));
        }
      }
    }
  }

  /** What the caller gets. */
  #read(
    { value, array, buffers, shape, dtype, held, op, byteLength }: Outcome,
    method: Method,
    out: unknown,
    target: TensorInput | undefined,
    transfer: boolean,
  ): unknown {
    if (held)
      return op ? new WorkerWeights(this, held, op, byteLength ?? 0) : new WorkerTensor(this, held);
    if (!array) return value === 'out' ? out : value;
    const data = arrayOf(array, buffers);
    if (method === 'read' || method === 'serialize') return data;
    if (!target) return { data, shape, dtype };
    if (transfer) return { ...(out as object), ...target, data };
    fill(method, target, data);
    return out;
  }

  /** Asks `assets`, which stays on this side. */
  async #provide(file: string): Promise<void> {
    let source: unknown;
    try {
      const given: unknown = this.#assets?.(file);
      if (isRevoked(given)) {
        const found = `assets(${JSON.stringify(file)}) gave a revoked proxy`;
        throw new ArgumentError(
          'createGemm',
          'assets',
          `createGemm: ${found}; it must give a URL, bytes or a WebAssembly.Module`,
        );
      }
      source = bytesIn(await given);
    } catch (error) {
      this.end(() => error);
      return;
    }
    const address =
      source instanceof URL ? source.href : typeof source === 'string' ? absolute(source) : source;
    try {
      this.#port.post({ kind: 'asset', source: address }, []);
    } catch {
      const packet = packetsOf([source], () => undefined)('copy');
      try {
        this.#port.post({ kind: 'noAsset', packet }, []);
      } catch (error) {
        this.end((op) => notSent(op, error));
      }
    }
  }
}

/** What a call is rejected with whose message cannot be made or posted. */
function notSent(op: string, error: unknown): GemmError {
  const message = `${op}: the arguments cannot be sent to the worker (${messageOf(error)})`;
  if (error instanceof RangeError)
    return new OutOfMemoryError(op, '', `${message}; pass less at once`);
  return new GemmError('WORKER', op, '', `${message}; check its postMessage()`, { cause: error });
}

/** An error whose cause is as the worker told it. */
function withCause<E extends Error>(error: E, cause: SentCause | undefined): E {
  if (!cause) return error;
  const value =
    cause.name === undefined
      ? cause.message
      : withCause(named(cause.name, new Error(cause.message)), cause.cause);
  return Object.defineProperty(error, 'cause', { value, configurable: true });
}

function named(name: string, error: Error): Error {
  return Object.defineProperty(error, 'name', { value: name, configurable: true });
}

/** Takes apart the options of a call and those of every call. */
function readOptions(
  op: string,
  options: unknown,
): { transfer: boolean; signal: Signal | undefined; own: unknown } {
  if (!isReadable(options)) return { transfer: false, signal: undefined, own: options };
  const { transfer = false, signal } = unpolluted(options, ['transfer', 'signal']) as CallOptions;
  if (typeof transfer !== 'boolean') {
    throw new ArgumentError(
      op,
      'transfer',
      `${op}: transfer is of type ${typeof transfer}; it must be a boolean`,
    );
  }
  const isSignal =
    isReadable(signal) &&
    typeof signal.addEventListener === 'function' &&
    typeof signal.removeEventListener === 'function' &&
    typeof signal.aborted === 'boolean';
  if (signal !== undefined && !isSignal) {
    throw new ArgumentError(op, 'signal', `${op}: signal is no AbortSignal; it must be one`);
  }
  return { transfer, signal, own: without(options, ['transfer', 'signal']) };
}

/** Options but for some; what is none as it is. */
function without(options: unknown, names: readonly string[]): unknown {
  if (!isReadable(options)) return options;
  const { own, inherited } = propertiesOf(options);
  for (const name of names) for (const properties of [own, inherited]) delete properties[name];
  return Object.setPrototypeOf(own, Object.setPrototypeOf(inherited, null) as object);
}

/** An address means what it means on this side. */
function absolute(address: string): string {
  try {
    return new URL(address, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch {
    return address; // whoever fetches it will tell
  }
}

/** A tensor as it is now: code of the user's may run, and change it, until it is filled. */
function snapshot(tensor: object): TensorInput {
  const properties = unpolluted(tensor, tensorKeys);
  const present = tensorKeys.filter((key) => has(tensor, key));
  const copy = Object.fromEntries(present.map((key) => [key, copyOf(properties[key])]));
  return Object.setPrototypeOf(copy, null) as TensorInput;
}

function copyOf(value: unknown): unknown {
  if (!isList(value)) return value;
  const { length } = value;
  return isRank(length) ? Array.from({ length }, (_, axis) => value[axis]) : value; // of another it will be told
}

/**
 * Writes the elements of a result into the caller's array, and nothing between them. It uses an
 * array of the library's on the same buffer: the caller's class may have methods of its own.
 */
function fill(op: string, { data, shape, strides }: TensorInput, result: DataArray): void {
  try {
    const { sent, buffers } = sentArray(data);
    if (sent.length !== result.length) throw new RangeError('its length has changed');
    if (result.length === 0) return; // rows may begin behind it
    const target = arrayOf(sent, buffers) as Uint8Array;
    const row = (source: DataArray, at: number) => target.set(source as Uint8Array, at);
    if (!strides) return row(result, 0);
    const walk = (axis: number, at: number): void => {
      const [n, step] = [shape[axis] ?? 1, strides[axis] ?? 1];
      if (axis >= shape.length - 1 && step === 1) return row(result.subarray(at, at + n), at);
      for (let i = 0; i < n; ++i) walk(axis + 1, at + i * step);
    };
    walk(0, 0);
  } catch (error) {
    throw new ArgumentError(
      op,
      'out',
      `${op}: out cannot be written any more (${messageOf(error)}); leave its array alone until the call is done`,
    );
  }
}

function disposedError(op: string): DisposedError {
  return new DisposedError(
    op,
    'instance',
    `${op}: the instance is disposed; create another with createGemm()`,
  );
}
