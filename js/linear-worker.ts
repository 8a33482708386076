/** Layers of instances in workers. */
import type { CallOptions, InWorker, Signal, WorkerTensorLike } from './api.js';
import {
  ArgumentError,
  type DataArray,
  DisposedError,
  type QuantizedArray,
  type ResultArray,
  type Tensor,
  type TensorLike,
} from './index.js';
import type {
  FloatLinearOptions,
  Int8LinearOptions,
  LinearInfo,
  LinearInput,
  LinearOutput,
  Quantization,
} from './linear.js';
import { readLinear } from './linear-arguments.js';
import type { Method } from './message.js';
import { describe, disposable, readBytes, readOptions } from './shared.js';
import type { WorkerGemm } from './worker.js';
import { handleOf, numberOf, type WorkerWeights } from './worker-handles.js';
import type { Link, Request } from './worker-link.js';
import { running } from './worker-requests.js';

/** Options of the calls that make or run a layer. */
export interface LinearCallOptions {
  /** When it aborts, the call is rejected with its reason. */
  signal?: Signal | undefined;
}

/** A layer in a worker, made by {@link createLinear}. */
export interface WorkerLinear<
  X extends DataArray = Float32Array,
  Y extends DataArray = Float32Array,
> extends LinearInfo {
  /** Does what `run` of a `Linear` of `wgemm/linear` does, and returns a promise. */
  run<O extends WorkerTensorLike<Y>>(
    x: WorkerTensorLike<X>,
    options: LinearCallOptions & { out: O },
  ): Promise<O>;
  run(x: WorkerTensorLike<X>, options?: LinearCallOptions | null): Promise<Tensor<ResultArray<Y>>>;
  /** Does what `serialize` of a `Linear` of `wgemm/linear` does, and returns a promise. */
  serialize(options?: CallOptions): Promise<ReturnType<Uint8Array['slice']>>;
}

type Weights = InWorker<TensorLike<Float32Array | Uint16Array>> | FloatLinearOptions['weights'];
type Vector = WorkerTensorLike<Float32Array>;

/** Does what `createLinear` of `wgemm/linear` does, and returns a promise. */
export function createLinear(
  wg: WorkerGemm,
  options: FloatLinearOptions<Weights, Vector> & LinearCallOptions,
): Promise<WorkerLinear>;
export function createLinear<
  I extends Quantization | undefined = undefined,
  O extends Quantization | undefined = undefined,
>(
  wg: WorkerGemm,
  options: Int8LinearOptions<I, O, Vector> & LinearCallOptions,
): Promise<WorkerLinear<LinearInput<I>, LinearOutput<O>>>;
export function createLinear(
  wg: WorkerGemm,
  options: (
    | FloatLinearOptions<Weights, Vector>
    | Int8LinearOptions<Quantization | undefined, Quantization | undefined, Vector>
  ) &
    LinearCallOptions,
): Promise<WorkerLinear<Float32Array, Float32Array | QuantizedArray>>;
export async function createLinear(wg: unknown, options: unknown): Promise<never> {
  return await make(wg, 'createLinear', options, (link) => {
    const { operands, ...values } = readLinear(link, options);
    return { values, operands };
  });
}

/** Does what `deserializeLinear` of `wgemm/linear` does, and returns a promise. */
export function deserializeLinear<
  X extends DataArray = Float32Array,
  Y extends DataArray = Float32Array,
>(
  wg: WorkerGemm,
  bytes: Uint8Array | ArrayBufferLike,
  options?: LinearCallOptions,
): Promise<WorkerLinear<X, Y>>;
export async function deserializeLinear(
  wg: unknown,
  bytes: unknown,
  options?: unknown,
): Promise<never> {
  const op = 'deserializeLinear';
  return await make(wg, op, options, (link) => {
    readOptions(op, options, ['signal']);
    return { values: undefined, operands: [readBytes(link, bytes, op)] };
  });
}

/** @internal The link of each instance, for functions that take an instance. */
export const links = new WeakMap<object, Link>();

async function make<M extends Method>(
  wg: unknown,
  op: M,
  options: unknown,
  read: (link: Link) => Omit<Request<M>, 'result'>,
): Promise<never> {
  const link = links.get(wg as object);
  if (!link) {
    const rule =
      'it must be an instance of wgemm/worker; for one of wgemm import from wgemm/linear';
    throw new ArgumentError(op, 'wg', `${op}: wg is ${describe(wg)}; ${rule}`);
  }
  const handle = await link.call(op, options, () => ({
    ...read(link),
    result: ({ held }) => held && handleOf(link, held),
  }));
  return layerOf(link, handle as WorkerWeights, wg as object) as never;
}

/** Layers keep their instance from being collected. */
const owners = new WeakMap<object, object>();

function layerOf(link: Link, handle: WorkerWeights, wg: object): object {
  const [inputs, outputs] = handle.shape;
  const number = () => {
    if (handle.disposed && !link.ended)
      throw new DisposedError('run', 'layer', 'run: the layer is disposed');
    return numberOf(handle, link, 'run', 'layer');
  };
  const layer = {
    inputs,
    outputs,
    dtype: handle.dtype,
    byteLength: handle.byteLength,
    get disposed() {
      return handle.disposed;
    },
    async run(x: unknown, options?: unknown) {
      const result = await link.call('run', options, () => running(link, number, x, options));
      owners.set(layer, wg); // keeps layer and instance alive until now
      return result;
    },
    serialize: async (options?: CallOptions) => await handle.serialize(options),
    dispose: () => handle.dispose(),
  };
  owners.set(layer, wg);
  disposable(layer);
  return Object.freeze(layer);
}
