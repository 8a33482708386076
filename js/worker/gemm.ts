/** `createGemm` of `wgemm/worker`, and the instance that it returns. */
import { bestKernel } from '../api/create-gemm.js';
import type { Api } from '../api/gemm.js';
import {
  callOptions,
  keepAtEnd,
  whenCollected,
  WorkerObject,
  type WorkerWeights,
} from '../api/worker-handles.js';
import { WorkerRecording } from '../api/worker-recording.js';
import { disposable } from '../base/dispose.js';
import { ArgumentError, GemmError } from '../base/errors.js';
import { printable } from '../base/printable.js';
import { isReadable, unpolluted } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { OperationName } from '../call/call.js';
import { links } from '../instance/core.js';
import { failure } from '../instance/load.js';
import { type CreateOptions, type Info, readSettings } from '../instance/start-core.js';
import type { MemoryUse } from '../ops/alloc.js';
import { attentionOptionsAt, checkModels, readAttention } from '../ops/attention.js';
import type { Explanation } from '../ops/explain.js';
import { isOperation, operations } from '../ops/operations.js';
import { readCall } from '../ops/read-call.js';
import { Link, type Request } from './link.js';
import type { Method, Started } from './message.js';
import {
  allocating,
  asking,
  computing,
  deserializing,
  explaining,
  packing,
  recording,
} from './requests.js';
import { adviceForWorker, portOfWorker, startWorker } from './start.js';

/**
 * Options of `createGemm`.
 *
 * @category Instances
 */
export interface WorkerCreateOptions extends CreateOptions {
  /**
   * A function that returns the worker, a `Worker` or one of `node:worker_threads`, from the
   * package's `wgemm-worker.js` at any address; with `models: true`, from its
   * `wgemm-models-worker.js`. Default: the file next to this script.
   */
  worker?: (() => unknown) | undefined;
}

/**
 * Starts a worker, and in it an instance with a memory of its own. The caller must `dispose()` of
 * it.
 *
 * @example
 * const wg = await createGemm({ threads: 'auto' });
 * wg.dispose();
 *
 * @param options all have defaults
 * @returns a promise of the instance
 * @throws by rejection: what `createGemm` of `wgemm` throws; GemmError with code `LOAD` if the
 * worker does not start within 10 s
 *
 * @category Instances
 */
export async function createGemm(options: WorkerCreateOptions = {}): Promise<WorkerGemm> {
  const op = 'createGemm';
  const { assets, ...settings } = readSettings(options, ['worker']);
  const make = isReadable(options) ? unpolluted(options, ['worker']).worker : undefined;
  if (make !== undefined && typeof make !== 'function') {
    throw new ArgumentError(
      op,
      'worker',
      `${op}: worker is ${typeof make}; it must be a function that returns a worker`,
    );
  }
  const link = linkTo(make as (() => unknown) | undefined, assets, settings.models);
  try {
    const hasAssets = assets !== undefined;
    const request = asking<'createGemm'>({ ...settings, hasAssets });
    const { info, dtypes } = (await link.call(op, undefined, () => request)) as Started;
    link.dtypes = dtypes;
    link.models = settings.models;
    return new Instance(link, info);
  } catch (error) {
    link.end(() => error);
    throw error;
  }
}

function linkTo(
  make: (() => unknown) | undefined,
  assets: CreateOptions['assets'],
  models: boolean,
): Link {
  const advice = adviceForWorker(make !== undefined, models);
  try {
    return new Link(portOfWorker(make ? make() : startWorker(models), models), assets, advice);
  } catch (error) {
    if (error instanceof GemmError) throw error;
    throw failure('the worker cannot be created', error, advice);
  }
}

/**
 * An instance in a worker. {@link createGemm} makes it. `x instanceof WorkerGemm` tells whether x
 * is one.
 *
 * The calls are the calls of `wgemm`. Each returns a promise, which is rejected with what the same
 * call in `wgemm` throws. So "throws" means a rejection, and the examples need `await` before each
 * call. Calls run in their order, one at a time. They copy arrays to the worker when they are made,
 * unless `transfer` is true.
 *
 * @category Instances
 */
export interface WorkerGemm extends Api<'worker'> {
  /** Whether it has ended: by `dispose()`, or because its worker died. */
  readonly disposed: boolean;

  /**
   * Ends the worker with its instance, tensors and packed weights. Pending calls are rejected with
   * DisposedError. Does nothing the second time.
   */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

/** Handles keep their instance from being collected. */
const ownerOf = new WeakMap<object, object>();

// The calls are declared in `Api`, which both entries share. For TypeScript a result of type
// `never` fits every overload.
const Instance = class WorkerGemm implements Api<'worker'> {
  readonly info: Info;
  readonly #link: Link;

  constructor(link: Link, info: Info) {
    // Without a link, the finalizer would throw later.
    if (!(link instanceof Link)) {
      const message = 'createGemm: new WorkerGemm() makes no instance; call createGemm()';
      throw new ArgumentError('createGemm', '', message);
    }
    this.info = Object.freeze(info);
    this.#link = link;
    links.set(this, link);
    Object.freeze(this);
    whenCollected(this, () => link.dispose());
  }

  async gemm(...args: unknown[]): Promise<never> {
    return await this.#compute('gemm', args);
  }

  async qgemm(...args: unknown[]): Promise<never> {
    return await this.#compute('qgemm', args);
  }

  async matmul(...args: unknown[]): Promise<never> {
    return await this.#compute('matmul', args);
  }

  async matmulInteger(...args: unknown[]): Promise<never> {
    return await this.#compute('matmulInteger', args);
  }

  async qlinearMatmul(...args: unknown[]): Promise<never> {
    return await this.#compute('qlinearMatmul', args);
  }

  async dynamicQuantizeMatmul(...args: unknown[]): Promise<never> {
    return await this.#compute('dynamicQuantizeMatmul', args);
  }

  async matmulIntegerToFloat(...args: unknown[]): Promise<never> {
    return await this.#compute('matmulIntegerToFloat', args);
  }

  async matmulNBits(...args: unknown[]): Promise<never> {
    return await this.#compute('matmulNBits', args);
  }

  async syrk(...args: unknown[]): Promise<never> {
    return await this.#compute('syrk', args);
  }

  async attention(...args: unknown[]): Promise<never> {
    return await this.#call('attention', args[attentionOptionsAt], (link) => {
      checkModels(link.models);
      return computing(link, readAttention(link, args));
    });
  }

  async pack(b: unknown, options: unknown): Promise<WorkerWeights> {
    return await this.#call('pack', options, (link) => packing(link, b, options));
  }

  async deserialize(bytes: unknown, options?: unknown): Promise<WorkerWeights> {
    return await this.#call('deserialize', options, (link) => deserializing(link, bytes, options));
  }

  async explain(op: unknown, ...args: unknown[]): Promise<Explanation> {
    const options = isOperation(op) ? args[operations[op].optionsAt] : undefined;
    return await this.#call('explain', options, (link) => explaining(link, op, args));
  }

  async record(calls: unknown, options?: unknown): Promise<WorkerRecording> {
    return await this.#call('record', options, (link) => recording(link, calls, options));
  }

  async alloc(dtype: unknown, shape: unknown, options?: unknown): Promise<never> {
    return await this.#call('alloc', options, (link) => allocating(link, dtype, shape, options));
  }

  async memory(options?: unknown): Promise<MemoryUse> {
    return await this.#call('memory', options, () => {
      readOptions('memory', options, callOptions);
      return asking(undefined);
    });
  }

  get disposed(): boolean {
    return this.#link.ended;
  }

  dispose(): void {
    keepAtEnd(this);
    this.#link.dispose();
  }

  declare [Symbol.dispose]: () => void;

  async #compute(op: OperationName, args: readonly unknown[]): Promise<never> {
    return await this.#call(op, args[operations[op].optionsAt], (link) =>
      computing(link, readCall(link, op, args)),
    );
  }

  async #call<M extends Method>(
    method: M,
    options: unknown,
    read: (link: Link) => Request<M>,
  ): Promise<never> {
    const result = await this.#link.call(method, options, () => read(this.#link));
    if (result instanceof WorkerObject || result instanceof WorkerRecording)
      ownerOf.set(result, this);
    return result as never;
  }
};
disposable(Instance.prototype);
printable(
  Instance.prototype,
  (instance) => `${bestKernel(instance)}\n  memory: await memory() tells it`,
);

/**
 * The class of instances in workers, for `instanceof`.
 *
 * @hidden The interface of the same name documents it.
 */
export const WorkerGemm: abstract new (...args: never) => WorkerGemm = Instance;
