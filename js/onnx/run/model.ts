/** The public class of a model. */
import type { Signal } from '../../api/worker-handles.js';
import { disposable } from '../../base/dispose.js';
import { ArgumentError, describe, DisposedError, DTypeError } from '../../base/errors.js';
import { isReadable } from '../../base/properties.js';
import { readOptions } from '../../base/read-options.js';
import type { DataArray } from '../../base/tensor.js';
import type { HeapTensor } from '../../instance/heap.js';
import type { Explanation } from '../../ops/explain.js';
import { listNames } from '../graph/graph.js';
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
 * A step of a run, as {@link Model.explain} reports it with the option `steps`.
 *
 * @category Models
 */
export interface ModelStep {
  /** The name of the node, or the name of its output if the node has none. */
  readonly node: string;
  /** The operator, such as `'MatMul'`. */
  readonly op: string;
  /** The operators of the other nodes that the step computes, such as `'Add'`. */
  readonly fused: readonly string[];
  /** The time that the step took, in milliseconds. */
  readonly time: number;
  /**
   * What computes the step. `'copy'`: this is a kept output, whose rows each run copies, since no
   * operator can append to them. Its `node` is the name of the output.
   */
  readonly where: 'WebAssembly' | 'JavaScript' | 'copy';
}

/**
 * What a model keeps from run to run, such as the keys and values of a decoder. {@link Model.state}
 * makes it. It has memory until its `dispose()`, or until the `dispose()` of the model.
 *
 * @category Models
 */
export interface ModelState {
  /** Whether the state, its model or its instance is disposed. */
  readonly disposed: boolean;
  /**
   * Keeps only the first rows of each tensor that has grown, such as the first tokens.
   *
   * @param length the number of rows that stay, from 0 to the number that there are
   * @returns a promise that settles when it is done
   * @throws by rejection: ArgumentError, DisposedError
   */
  cut(length: number): Promise<void>;
  /**
   * Copies the state.
   *
   * @returns a promise of the copy. The caller must `dispose()` of it
   * @throws by rejection: OutOfMemoryError, DisposedError
   */
  clone(): Promise<ModelState>;
  /** Frees the memory. Does nothing the second time. */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

/**
 * Options of {@link Model.explain}.
 *
 * @category Models
 */
export interface ExplainOptions {
  /** Whether to report each step of a run, and not only products. Default: false. */
  steps?: boolean | undefined;
  /** With `steps`: the state of the run. It stays as it is. Default: none. */
  state?: ModelState | undefined;
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
  /**
   * Makes outputs of this run the inputs of the next run with the same state. The results lack
   * these outputs. If the run fails, the state stays as it was. Default: none.
   */
  state?: ModelState | undefined;
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
   * Runs the model on zeros, and reports how each product was computed. An `attention_mask` of
   * int64 has ones.
   *
   * @param shapes the shape of each input, by name. Default: the shape that the model declares,
   * with 1 for each dynamic size
   * @returns a promise of the products, in the order of the run
   * @throws by rejection: the errors of `run`
   */
  explain(shapes?: Readonly<Record<string, readonly number[]>>): Promise<ModelProduct[]>;
  /**
   * With `steps: true`, reports each step of the run.
   *
   * @param shapes as above
   * @param options which steps, and of which state
   * @returns a promise of the steps, in the order of the run
   * @throws by rejection: the errors of `run`
   */
  explain(
    shapes: Readonly<Record<string, readonly number[]>> | undefined,
    options: ExplainOptions & { steps: true },
  ): Promise<ModelStep[]>;
  /**
   * Makes a state: outputs that become inputs of the next run. They stay in the memory of the
   * instance. An input begins as zeros, and its dynamic sizes as 0, unless another input has a
   * size of the same name. A feed of the input replaces what the state has.
   *
   * @example
   * const state = await model.state({ present: 'past' });
   * const { logits } = await model.run({ token }, { state });
   *
   * @param keep by the name of an output: the name of the input that it becomes
   * @returns a promise of the state. The caller must `dispose()` of it
   * @throws by rejection: ArgumentError, DTypeError, DisposedError
   */
  state(keep: Readonly<Record<string, string>>): Promise<ModelState>;
  /** Frees the memory, and the instance if the model created it. Does nothing the second time. */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

/** @internal Pairs of an output and the input that it becomes, by their indices. */
export type KeptNames = readonly (readonly [output: number, input: number])[];

/** @internal A state in this thread, or in a worker. */
export interface StateRunner {
  readonly disposed: boolean;
  cut(length: number): void | Promise<void>;
  clone(): StateRunner | Promise<StateRunner>;
  dispose(): void;
}

/** @internal Runs a model: a session in this thread, or a session in a worker. */
export interface Runner {
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly disposed: boolean;
  /**
   * Returns the outputs in new arrays; undefined for those that a state keeps. A feed that is
   * undefined has a default, or is in the state.
   */
  run(
    feeds: readonly (Value | undefined)[],
    signal: Signal | undefined,
    state: StateRunner | undefined,
  ): readonly (Value | undefined)[] | Promise<readonly (Value | undefined)[]>;
  explain(feeds: readonly (Value | undefined)[]): ModelProduct[] | Promise<ModelProduct[]>;
  profile(
    feeds: readonly (Value | undefined)[],
    state: StateRunner | undefined,
  ): ModelStep[] | Promise<ModelStep[]>;
  state(names: KeptNames): StateRunner | Promise<StateRunner>;
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
    const { signal, state } = readOptions(op, options, ['signal', 'state']) as RunOptions;
    // For a worker, the link checks the rest of it.
    if (signal !== undefined && typeof (signal as Partial<Signal> | null)?.aborted !== 'boolean')
      throw new ArgumentError(op, 'signal', `${op}: signal must be an AbortSignal`);
    const own = this.#stateOf(op, state);
    const values = readFeeds(op, this.#runner.inputs, feeds, own?.names);
    checkAlive(op, this); // a getter of the feeds may have ended it
    if (own) checkState(op, state as ModelState);
    if (signal?.aborted) throw signal.reason;
    const outputs = await this.#runner.run(values, signal, own?.runner);
    const results = Object.create(null) as Record<string, ModelResult>;
    this.outputs.forEach(({ name }, i) => {
      const output = outputs[i];
      if (!output) return; // the state has it
      const { dtype, shape, data } = output;
      results[name] = { data, shape: [...shape], dtype };
    });
    return results;
  }

  async explain(
    shapes?: Readonly<Record<string, readonly number[]>>,
    options?: ExplainOptions,
  ): Promise<never> {
    const op = 'explain';
    checkAlive(op, this);
    const { steps, state } = readOptions(op, options, ['steps', 'state']) as ExplainOptions;
    const own = this.#stateOf(op, state);
    if (own && !steps)
      throw new ArgumentError(op, 'state', `${op}: with state, steps must be true`);
    const { inputs } = this.#runner;
    const feeds = readFeeds(op, inputs, zeros(op, inputs, shapes, own?.names), own?.names);
    checkAlive(op, this); // a getter of the shapes may have ended it
    if (own) checkState(op, state as ModelState);
    const runner = this.#runner;
    return (await (steps ? runner.profile(feeds, own?.runner) : runner.explain(feeds))) as never;
  }

  async state(keep: Readonly<Record<string, string>>): Promise<ModelState> {
    const op = 'state';
    checkAlive(op, this);
    const names = readKeep(op, keep, this.inputs, this.outputs);
    checkAlive(op, this); // a getter may have ended it
    return new LoadedState(this, await this.#runner.state(names), names);
  }

  /** The state in an option. */
  #stateOf(op: string, state: unknown): ReturnType<typeof LoadedState.of> {
    if (state === undefined) return undefined;
    const own = LoadedState.of(state);
    if (own?.model !== this) {
      const message = `${op}: state is ${describe(state)}; it must be a state of this model`;
      throw new ArgumentError(op, 'state', message);
    }
    checkState(op, state as ModelState);
    return own;
  }

  dispose(): void {
    this.#runner.dispose();
    this.#owned?.dispose();
  }

  declare [Symbol.dispose]: () => void;
}
disposable(LoadedModel.prototype);

class LoadedState implements ModelState {
  /** The names of the inputs that it has. */
  readonly #names: ReadonlySet<string>;
  readonly #runner: StateRunner;
  readonly #model: LoadedModel;
  readonly #pairs: KeptNames;

  constructor(model: LoadedModel, runner: StateRunner, pairs: KeptNames) {
    this.#model = model;
    this.#runner = runner;
    this.#pairs = pairs;
    this.#names = new Set(pairs.map(([, input]) => model.inputs[input]?.name as string));
    Object.freeze(this);
  }

  /** What is behind a state; undefined for another value. */
  static of(
    value: unknown,
  ): { model: LoadedModel; runner: StateRunner; names: ReadonlySet<string> } | undefined {
    if (typeof value !== 'object' || value === null || !(#runner in value)) return undefined;
    return { model: value.#model, runner: value.#runner, names: value.#names };
  }

  get disposed(): boolean {
    return this.#runner.disposed || this.#model.disposed;
  }

  async cut(length: number): Promise<void> {
    const op = 'cut';
    checkState(op, this);
    if (!Number.isSafeInteger(length)) {
      const found = `${op}: length is ${describe(length)}; it must be a whole number`;
      throw new ArgumentError(op, 'length', found);
    }
    await this.#runner.cut(length);
  }

  async clone(): Promise<ModelState> {
    checkState('clone', this);
    return new LoadedState(this.#model, await this.#runner.clone(), this.#pairs);
  }

  dispose(): void {
    this.#runner.dispose();
  }

  declare [Symbol.dispose]: () => void;
}
disposable(LoadedState.prototype);

function checkState(op: string, { disposed }: ModelState): void {
  const found = 'the state or its model is disposed; make another by model.state()';
  if (disposed) throw new DisposedError(op, 'state', `${op}: ${found}`);
}

/** Reads and checks the outputs that a state keeps, and the inputs that they become. */
function readKeep(
  op: string,
  keep: unknown,
  inputs: readonly OnnxValueInfo[],
  outputs: readonly OnnxValueInfo[],
): KeptNames {
  const refuse = (found: string) => new ArgumentError(op, 'keep', `${op}: keep ${found}`);
  if (!isReadable(keep) || Array.isArray(keep))
    throw refuse(`is ${describe(keep)}; it must be an object of names`);
  const taken = new Set<number>();
  const find = (list: readonly OnnxValueInfo[], wanted: unknown, kind: string) => {
    const names = list.map(({ name }) => name);
    const index = names.indexOf(wanted as string);
    if (index < 0) throw refuse(`has ${describe(wanted)}; the ${kind} are ${listNames(names)}`);
    return index;
  };
  return Object.entries(keep).map(([from, to]: [string, unknown]) => {
    const output = find(outputs, from, 'outputs');
    const input = find(inputs, to, 'inputs');
    if (taken.has(input)) throw refuse(`has ${describe(to)} twice`);
    taken.add(input);
    const [found, wanted] = [outputs[output]?.dtype, inputs[input]?.dtype];
    if (found !== wanted && found !== 'none') {
      const message = `keep has ${describe(from)} of ${found} for ${describe(to)} of ${wanted}`;
      throw new DTypeError(op, 'keep', `${op}: ${message}; the types must be the same`);
    }
    return [output, input];
  });
}
