/** The public class of a model. */
import type { Signal } from '../../api/worker-handles.js';
import { disposable } from '../../base/dispose.js';
import { ArgumentError } from '../../base/errors.js';
import { readOptions } from '../../base/read-options.js';
import type { DataArray } from '../../base/tensor.js';
import type { HeapTensor } from '../../instance/heap.js';
import type { Explanation } from '../../ops/explain.js';
import type { OnnxValueInfo } from '../read/model.js';
import type { OnnxDType, Value } from '../read/value.js';
import { checkAlive } from './errors.js';
import { type ModelInput, readFeeds, zeros } from './feeds.js';

/**
 * An input or output of a model. The tensor is contiguous and in row-major order.
 *
 * @typeParam A the class of its array
 * @category Models
 */
export interface ModelTensor<A extends DataArray = DataArray> {
  /** The elements. For `'bool'`, 0 and 1 in a Uint8Array. */
  readonly data: A;
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** The type of the elements. Default for feeds of `run`: the type that the model declares. */
  readonly dtype?: OnnxDType | undefined;
}

/**
 * A result of a model.
 *
 * @category Models
 */
export interface ModelResult extends ModelTensor {
  /** The type of the elements. */
  readonly dtype: OnnxDType;
}

/**
 * A product of a model, as {@link Model.explain} reports it.
 *
 * @category Models
 */
export interface ModelProduct {
  /** The name of the node, or the name of its output if the node has none. */
  readonly node: string;
  /** The operator, such as `'MatMul'`. */
  readonly op: string;
  /** The operators of the nodes that the same call computes, in their order, such as `'Add'`. */
  readonly fused: readonly string[];
  /** The operands A and B, and the result. */
  readonly operands: readonly {
    /** The type of the elements. */
    readonly dtype: OnnxDType;
    /** The size of each axis, in elements. */
    readonly shape: readonly number[];
  }[];
  /** Whether B was packed when the model was loaded. */
  readonly packed: boolean;
  /** The plan of the call. */
  readonly plan: Explanation;
  /** The time that the call took, in milliseconds. */
  readonly time: number;
}

/**
 * Options of {@link Model.run}.
 *
 * @category Models
 */
export interface RunOptions {
  /**
   * When the signal aborts, the run is rejected with the reason of the signal. A run in a worker
   * then ends after its current step. The first run with a set of input shapes always completes.
   * With an instance in this thread, no signal can abort during a run. Default: none.
   */
  signal?: Signal | undefined;
}

/**
 * A model that is ready to run. {@link loadModel} makes it. It owns its memory until its
 * `dispose()`.
 *
 * @category Models
 */
export interface Model {
  /** The inputs of a run, as the model declares them. */
  readonly inputs: readonly OnnxValueInfo[];
  /** The outputs of a run, as the model declares them. A run may give them other shapes. */
  readonly outputs: readonly OnnxValueInfo[];
  /** Whether the model or its instance is disposed. */
  readonly disposed: boolean;
  /**
   * Runs the model. With an instance in this thread, the run has ended when the call returns its
   * promise. In a worker, runs wait for each other, and the call copies its inputs. The first run
   * with a set of input shapes takes longer than later runs.
   *
   * @example
   * const x = { data: new Float32Array(784), shape: [1, 784] };
   * const { scores } = await model.run({ x });
   *
   * @param feeds a tensor for each input, by name. The call only reads them
   * @param options all have defaults
   * @returns a promise of the outputs, by name, in new arrays that the caller owns
   * @throws by rejection: ArgumentError, DTypeError and ShapeError, which name the input or the
   * node at fault; DisposedError, OutOfMemoryError; the reason of the signal
   */
  run(
    feeds: Readonly<Record<string, ModelTensor | HeapTensor>>,
    options?: RunOptions,
  ): Promise<Record<string, ModelResult>>;
  /**
   * Runs the model on zeros, and reports how each product was computed.
   *
   * @param shapes the shape of each input, by name. Default: the shape that the model declares,
   * with 1 for each dynamic size
   * @returns a promise of the products, in the order of the run
   * @throws by rejection: the errors of `run`
   */
  explain(shapes?: Readonly<Record<string, readonly number[]>>): Promise<ModelProduct[]>;
  /** Frees the memory, and the instance if the model created it. Does nothing the second time. */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

/** @internal Runs a model: a session in this thread, or a session in a worker. */
export interface Runner {
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly disposed: boolean;
  /** Returns the outputs in new arrays. A feed that is undefined has a default. */
  run(
    feeds: readonly (Value | undefined)[],
    signal: Signal | undefined,
  ): readonly Value[] | Promise<readonly Value[]>;
  explain(feeds: readonly (Value | undefined)[]): ModelProduct[] | Promise<ModelProduct[]>;
  dispose(): void;
}

/** @internal */
export class LoadedModel implements Model {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly #runner: Runner;
  readonly #owned: { dispose(): void } | undefined;

  /** @param owned an instance that ends with the model */
  constructor(runner: Runner, owned: { dispose(): void } | undefined) {
    this.#runner = runner;
    this.#owned = owned;
    this.inputs = Object.freeze(runner.inputs.map(({ info }) => info));
    this.outputs = Object.freeze([...runner.outputs]);
    Object.freeze(this);
  }

  get disposed(): boolean {
    return this.#runner.disposed;
  }

  async run(
    feeds: Readonly<Record<string, ModelTensor | HeapTensor>>,
    options?: RunOptions,
  ): Promise<Record<string, ModelResult>> {
    const op = 'run';
    checkAlive(op, this);
    const { signal } = readOptions(op, options, ['signal']) as RunOptions;
    // For a worker, the link checks the rest of it.
    if (signal !== undefined && typeof (signal as Partial<Signal> | null)?.aborted !== 'boolean')
      throw new ArgumentError(op, 'signal', `${op}: signal must be an AbortSignal`);
    const values = readFeeds(op, this.#runner.inputs, feeds);
    checkAlive(op, this); // a getter of the feeds may have ended it
    if (signal?.aborted) throw signal.reason;
    const outputs = await this.#runner.run(values, signal);
    const results = Object.create(null) as Record<string, ModelResult>;
    this.outputs.forEach(({ name }, i) => {
      const { dtype, shape, data } = outputs[i] as Value;
      results[name] = { data, shape: [...shape], dtype };
    });
    return results;
  }

  async explain(shapes?: Readonly<Record<string, readonly number[]>>): Promise<ModelProduct[]> {
    const op = 'explain';
    checkAlive(op, this);
    const { inputs } = this.#runner;
    const feeds = readFeeds(op, inputs, zeros(op, inputs, shapes));
    checkAlive(op, this); // a getter of the shapes may have ended it
    return await this.#runner.explain(feeds);
  }

  dispose(): void {
    this.#runner.dispose();
    this.#owned?.dispose();
  }

  declare [Symbol.dispose]: () => void;
}
disposable(LoadedModel.prototype);
