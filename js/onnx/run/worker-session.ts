/** A model whose session is in a worker, as its page sees it. */
import type {
  Held,
  InstanceLink,
  Signal,
  WorkerObject,
  WorkerWeights,
} from '../../api/worker-handles.js';
import { viewOf } from '../../base/arrays.js';
import { operandOf } from '../../call/operand.js';
import type { OnnxModel, OnnxValueInfo } from '../read/model.js';
import { frozen } from '../read/read.js';
import { storedAs, type Value } from '../read/value.js';
import type { ModelInput } from './feeds.js';
import type { Prepacked } from './external.js';
import type { KeptNames, ModelProduct, ModelStep, Runner, StateRunner } from './model.js';

/** The answer of the worker about a model. */
interface Described {
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly OnnxValueInfo[];
}

/**
 * @internal Loads a model in a worker.
 * @param prepacked weights in the worker, which the model takes over
 * @param wg the instance. The model refers to it, so that it is not garbage-collected
 */
export async function loadInWorker(
  wg: object,
  link: InstanceLink,
  model: OnnxModel,
  outputs: readonly string[] | undefined,
  progress: ((done: number) => void) | undefined,
  prepacked: Prepacked,
): Promise<Runner> {
  const op = 'loadModel';
  const hasProgress = progress !== undefined;
  const numbers = Array.from(prepacked, ([name, weights]) => [
    name,
    link.numberOf(weights as WorkerWeights, op, name),
  ]);
  return (await link.callModel(op, undefined, () => ({
    op,
    values: { model, outputs, hasProgress, prepacked: numbers },
    operands: [],
    progress,
    result: ({ held, value }) =>
      new WorkerSession(wg, link, link.handleOf(held as Held), value as Described),
  }))) as Runner;
}

class WorkerSession implements Runner {
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly OnnxValueInfo[];

  constructor(
    readonly wg: object,
    readonly link: InstanceLink,
    readonly handle: WorkerObject,
    described: Described,
  ) {
    const { inputs, outputs } = frozen(described);
    this.inputs = inputs;
    this.outputs = outputs;
  }

  get disposed(): boolean {
    return this.handle.disposed;
  }

  async run(
    feeds: readonly (Value | undefined)[],
    signal: Signal | undefined,
    state: StateRunner | undefined,
  ): Promise<readonly (Value | undefined)[]> {
    const values = (await this.#call('run', 'run', feeds, { signal, state })) as readonly (
      Value | undefined
    )[];
    // Under jsdom, messages have arrays of another realm.
    return values.map((value) => {
      if (!value) return undefined;
      const { dtype, shape, data } = value;
      const elements = viewOf(storedAs(dtype), data.buffer, data.byteOffset, data.length);
      return { dtype, shape, data: elements };
    });
  }

  async explain(feeds: readonly (Value | undefined)[]): Promise<ModelProduct[]> {
    return (await this.#call('explainModel', 'explain', feeds)) as ModelProduct[];
  }

  async profile(
    feeds: readonly (Value | undefined)[],
    state: StateRunner | undefined,
  ): Promise<ModelStep[]> {
    const options = { state, hasSteps: true };
    return (await this.#call('explainModel', 'explain', feeds, options)) as ModelStep[];
  }

  async state(keep: KeptNames): Promise<StateRunner> {
    return (await this.#ofState('state', this.handle, { keep })) as StateRunner;
  }

  dispose(): void {
    this.handle.dispose();
  }

  #call(
    method: 'run' | 'explainModel',
    op: string,
    feeds: readonly (Value | undefined)[],
    {
      signal,
      state,
      hasSteps,
    }: { signal?: Signal | undefined; state?: StateRunner | undefined; hasSteps?: boolean } = {},
  ): Promise<unknown> {
    const { link, handle } = this;
    const held = state && handles.get(state);
    return link.callModel(method, { signal }, () => ({
      op,
      values: {
        object: link.numberOf(handle, op, 'model'),
        state: held && link.numberOf(held, op, 'state'),
        hasSteps,
      },
      operands: feeds.map((feed, i) => {
        if (!feed) return null;
        const name = this.inputs[i]?.info.name as string;
        const dtype = link.dtypes.indexOf(storedAs(feed.dtype));
        return operandOf(name, dtype, feed.shape, feed.data);
      }),
      result: ({ value }) => value,
    }));
  }

  /** Makes a state, or makes a call about one. */
  #ofState(
    op: string,
    handle: WorkerObject,
    values: { readonly keep?: KeptNames; readonly length?: number },
  ): Promise<unknown> {
    const { link } = this;
    return link.callModel('modelState', undefined, () => ({
      op,
      values: { object: link.numberOf(handle, op, 'state'), ...values },
      operands: [],
      result: ({ held }) => held && this.#stateOf(link.handleOf(held)),
    }));
  }

  #stateOf(handle: WorkerObject): StateRunner {
    const runner: StateRunner = {
      get disposed() {
        return handle.disposed;
      },
      cut: async (length) => void (await this.#ofState('cut', handle, { length })),
      clone: async () => (await this.#ofState('clone', handle, {})) as StateRunner,
      dispose: () => handle.dispose(),
    };
    handles.set(runner, handle);
    return runner;
  }
}

/** The handles of states. */
const handles = new WeakMap<StateRunner, WorkerObject>();
