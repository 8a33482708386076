/** A model in the memory of an instance: its constants, its packed weights, and its steps. */
import type { Gemm } from '../../api/create-gemm.js';
import { describe, DisposedError, DTypeError } from '../../base/errors.js';
import { type Core, cores } from '../../instance/core.js';
import type { HeapTensor } from '../../instance/heap.js';
import type { CheckedGraph } from '../graph/graph.js';
import type { ProductCall, ProductWeights } from '../graph/products.js';
import { heapCopyOf, hold, newArray, Root, Stored } from '../operators/storage.js';
import type { OnnxNode, OnnxValueInfo } from '../read/model.js';
import type { OnnxDType, Value } from '../read/value.js';
import { Calculator } from './calculator.js';
import { checkAlive, errorIn } from './errors.js';
import { checkShape, type ModelInput } from './feeds.js';
import type { KeptNames, ModelProduct, ModelStep, Runner, StateRunner } from './model.js';
import { type PlannedModel, type PlannedStep, planModel } from './plan.js';
import { namesOf } from './product.js';
import { Programs } from './program.js';
import { inPlace, type Kept, type KeptLink } from './kept.js';
import { State } from './state.js';
import type { Prepacked } from './external.js';
import {
  absent,
  type OpenStep,
  type ProductStep,
  type Step,
  theResult,
  withEnds,
} from './steps.js';

/** @internal Receives the fraction of a model's constants that is loaded, from 0 to 1. */
export type Progress = (done: number) => void | Promise<void>;

interface SessionInput extends ModelInput {
  readonly number: number;
  readonly absent: Stored | undefined;
}

/** @internal A model in the memory of an instance of this thread. */
export class Session implements Runner {
  readonly inputs: readonly SessionInput[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly #memory: ModelMemory;
  readonly #programs: Programs;
  readonly #steps: readonly Step[];

  /** Loads a model. @param prepacked weights that are packed already, which it takes over */
  static async load(
    graph: CheckedGraph,
    wg: Gemm,
    progress: Progress,
    prepacked: Prepacked,
  ): Promise<Session> {
    const memory = new ModelMemory(wg, prepacked);
    const { core } = memory;
    try {
      core.checkAlive('loadModel');
      const planned = planModel(graph, new Calculator(core));
      const loading = new Loading(planned, memory, async (done) => {
        await progress(done);
        core.checkAlive('loadModel'); // other code has run
      });
      await loading.load();
      return new Session(graph, loading, memory);
    } catch (error) {
      memory.dispose();
      throw error;
    }
  }

  private constructor(graph: CheckedGraph, loading: Loading, memory: ModelMemory) {
    const outputs = graph.outputs.map(({ name }) => loading.numberOf(name));
    this.inputs = loading.inputs();
    this.outputs = graph.outputs;
    this.#memory = memory;
    const { wg, core } = memory;
    this.#steps = loading.stepsUntil(outputs);
    this.#programs = new Programs(core, wg, {
      steps: this.#steps,
      start: loading.start,
      feeds: this.inputs.map(({ number }) => number),
      outputs,
    });
  }

  get disposed(): boolean {
    return this.#memory.isDisposed || this.#memory.wg.disposed;
  }

  /** Runs the model. With a state, the results of kept outputs are undefined. */
  run(
    feeds: readonly (Value | undefined)[],
    _: unknown,
    state?: StateRunner,
  ): readonly (Value | undefined)[] {
    checkAlive('run', this);
    const own = stateOf('run', state);
    const given = this.#begin(feeds, own);
    try {
      return this.#end(this.#programs.run(given, own), own);
    } catch (error) {
      this.#rollBack(own);
      throw error;
    }
  }

  /** As `run`, but awaits `pause` between steps of programs. */
  async runWithPauses(
    feeds: readonly (Value | undefined)[],
    pause: () => Promise<void> | undefined,
    state?: StateRunner,
  ): Promise<readonly (Value | undefined)[]> {
    checkAlive('run', this);
    const own = stateOf('run', state);
    const given = this.#begin(feeds, own);
    try {
      return this.#end(await this.#programs.runWithPauses(given, pause, own), own);
    } catch (error) {
      this.#rollBack(own);
      throw error;
    }
  }

  /** Runs the model, and returns its steps with their times. A state stays as it is. */
  profile(feeds: readonly (Value | undefined)[], state?: StateRunner): ModelStep[] {
    checkAlive('explain', this);
    const own = stateOf('explain', state);
    try {
      const { times, outputs } = this.#programs.profile(this.#begin(feeds, own), own);
      const steps = Array.from(times, ([step, { time, isHost }]): ModelStep => {
        return { ...namesOf(step), time, where: isHost ? 'JavaScript' : 'WebAssembly' };
      });
      for (const { output } of own?.links ?? []) {
        if (inPlace(outputs[output] as Stored)?.link.output === output) continue;
        const { name } = this.outputs[output] as OnnxValueInfo;
        steps.push({ node: name, op: '', fused: [], time: 0, where: 'copy' });
      }
      return steps;
    } finally {
      this.#rollBack(own);
    }
  }

  state(names: KeptNames): StateRunner {
    checkAlive('state', this);
    const links = names.map(([output, input]): KeptLink => {
      const { info } = this.inputs[input] as SessionInput;
      return { name: info.name, dtype: info.dtype as OnnxDType, input, output };
    });
    return new State(links, this.#memory.wg, this.#programs);
  }

  /** The values of the feeds, and of what a state has. */
  #begin(given: readonly (Value | undefined)[], state: State | undefined): Stored[] {
    if (!state) return this.#stored(given);
    const feeds = given.map((feed) => feed && this.#outside(feed)); // `begin` allocates
    try {
      if (state.begin(this.inputs, feeds)) this.#programs.drop(state, false);
    } catch (error) {
      this.#rollBack(state);
      throw error;
    }
    const values = this.#stored(feeds);
    for (const kept of state.kept as readonly Kept[]) values[kept.link.input] = kept.valueOf();
    return values;
  }

  #end(values: readonly Stored[], state: State | undefined): (Value | undefined)[] {
    const results = this.#results(values, state);
    state?.commit(values, (shapes) => this.#programs.enlarge(state, shapes));
    return results;
  }

  #rollBack(state: State | undefined): void {
    if (state?.rollBack()) this.#programs.drop(state, false);
  }

  explain(feeds: readonly (Value | undefined)[]): ModelProduct[] {
    checkAlive('explain', this);
    this.run(feeds, undefined); // its memory then suffices
    return this.#programs.explain(this.#stored(feeds));
  }

  dispose(): void {
    if (this.#memory.isDisposed) return;
    this.#programs.dispose();
    this.#memory.dispose();
  }

  /** The outputs of a run, in arrays of their own. */
  #results(values: readonly Stored[], state: State | undefined): (Value | undefined)[] {
    const isStrict = this.#memory.wg.info.determinism === 'strict';
    return this.outputs.map(({ name, dtype: declared }, i) => {
      if (state?.links.some(({ output }) => output === i)) return undefined;
      const value = values[i] as Stored;
      if (value.dtype === declared || declared === 'none') {
        const result = copyOf(value);
        if (isStrict) canonizeNaN(result);
        return result;
      }
      const found = `run: output ${describe(name)} has dtype ${value.dtype}`;
      throw new DTypeError('run', name, `${found}; the model declares ${declared}`);
    });
  }

  #stored(feeds: readonly (Value | undefined)[]): Stored[] {
    return this.inputs.map(({ absent }, i) => {
      const feed = feeds[i];
      if (!feed) return absent as Stored; // or a state has it
      return hold(this.#outside(feed), false);
    });
  }

  /** A feed that is not in the memory: a view of the memory would end when it grows. */
  #outside(feed: Value): Value {
    return this.#memory.core.owns(feed.data.buffer) ? copyOf(feed) : feed;
  }
}

function stateOf(op: string, runner: StateRunner | undefined): State | undefined {
  if (runner?.disposed)
    throw new DisposedError(op, 'state', `${op}: state is disposed; make another by model.state()`);
  return runner as State | undefined;
}

/** The memory of a model. */
class ModelMemory {
  readonly #objects: { dispose(): void }[] = [];
  readonly core: Core;
  isDisposed = false;

  constructor(
    readonly wg: Gemm,
    readonly prepacked: Prepacked,
  ) {
    this.core = cores.get(wg) as Core;
    this.#objects.push(...prepacked.values());
  }

  /** The weights that `pack` makes. */
  pack(args: [b: unknown, options: object]): ProductWeights {
    const weights = this.wg.pack(...(args as unknown as Parameters<Gemm['pack']>));
    this.#objects.push(weights);
    return weights;
  }

  /** A copy of elements. */
  copy(value: Value): HeapTensor<Uint8Array> {
    const chunk = heapCopyOf(value, this.wg);
    this.#objects.push(chunk);
    return chunk;
  }

  dispose(): void {
    this.isDisposed = true;
    for (const object of this.#objects) object.dispose();
    this.#objects.length = 0;
  }
}

/** The state of a model while it is loaded. */
class Loading {
  /** The values at the start of a run, by number: the constants. */
  readonly start: (Stored | undefined)[] = [];
  readonly #planned: PlannedModel;
  readonly #memory: ModelMemory;
  readonly #progress: Progress;
  readonly #numbers = new Map<string, number>();
  /** Packed weights, by their source: nodes may share them. */
  readonly #packed = new Map<string, ProductWeights>();
  /** The names that steps take. */
  readonly #taken = new Set<number>();
  readonly #allBytes: number;
  #steps: OpenStep[] = [];
  #bytes = 0;

  constructor(planned: PlannedModel, memory: ModelMemory, progress: Progress) {
    this.#planned = planned;
    this.#memory = memory;
    this.#progress = progress;
    const constants = Array.from(planned.constants.values());
    this.#allBytes = constants.reduce((sum, { data }) => sum + data.byteLength, 0) || 1;
  }

  /** The number of a name. */
  numberOf(name: string): number {
    if (name === '') return absent;
    let number = this.#numbers.get(name);
    if (number === undefined) this.#numbers.set(name, (number = this.#numbers.size));
    return number;
  }

  /** Packs weights, and copies the other constants that steps or outputs take. */
  async load(): Promise<void> {
    const { graph, steps, constants } = this.#planned;
    for (const { name } of graph.outputs) this.#taken.add(this.numberOf(name));
    this.#steps = await this.#prepareAll(steps);
    for (const [name, value] of constants) {
      const number = this.#numbers.get(name);
      if (number === undefined || !this.#taken.has(number)) continue;
      const root = new Root(this.#memory.copy(value), undefined, false);
      root.uses = Infinity; // no run overwrites or ends it
      this.start[number] = new Stored(value.dtype, value.shape, value.data.length, root);
      await this.#tell(value);
    }
    await this.#progress(1);
  }

  /** Reports the progress after a constant. */
  async #tell({ data }: Value): Promise<void> {
    this.#bytes += data.byteLength;
    await this.#progress(Math.min(this.#bytes / this.#allBytes, 1));
  }

  async #prepareAll(planned: readonly PlannedStep[]): Promise<OpenStep[]> {
    const steps: OpenStep[] = [];
    for (const step of planned) steps.push(await this.#prepare(step));
    return steps;
  }

  async #prepareBranches(
    branches: NonNullable<PlannedStep['branches']>,
  ): Promise<readonly (readonly OpenStep[])[]> {
    const prepared: OpenStep[][] = [];
    for (const branch of branches) prepared.push(await this.#prepareAll(branch));
    return prepared;
  }

  async #prepare(step: PlannedStep): Promise<OpenStep> {
    const { node, run, product: call } = step.checked;
    const weights = call && (await this.#weightsOf(node, call, step.inputs));
    const product = call && this.#productOf(step, call, weights);
    const inputs = step.inputs.map((name, i) =>
      this.numberOf(weights && call.packed.includes(i) ? '' : name),
    );
    // An If reads only its condition. Its branches take the other inputs.
    for (const number of step.branches ? inputs.slice(0, 1) : inputs) this.#taken.add(number);
    const outputs = step.outputs.map((name) => this.numberOf(name));
    return {
      node,
      inputs,
      outputs,
      run,
      product,
      originals: await this.#prepareAll(step.originals),
      branches: step.branches && (await this.#prepareBranches(step.branches)),
    };
  }

  #productOf(
    { links, views }: PlannedStep,
    call: ProductCall,
    weights: ProductWeights | undefined,
  ): ProductStep {
    const numbered = links.map((link) => ({
      link,
      inputs: link.checked.node.inputs.map((name) =>
        name === link.input ? theResult : this.numberOf(name),
      ),
      other: link.kind === 'bias' ? this.numberOf(link.other) : absent,
    }));
    for (const { inputs } of numbered) for (const number of inputs) this.#taken.add(number);
    return { call, weights, views, links: numbered };
  }

  /** The packed weights of a product; undefined if they are not constant. */
  async #weightsOf(
    node: OnnxNode,
    call: ProductCall,
    names: readonly string[],
  ): Promise<ProductWeights | undefined> {
    const constants = names.map((name) => this.#planned.constants.get(name));
    const isConstant = (i: number) => !names[i] || constants[i] !== undefined;
    if (!names[call.b] || !call.packed.every(isConstant)) return undefined;
    const prepacked = this.#memory.prepacked.get(names[call.b] as string);
    if (prepacked) return prepacked;
    const args = call.pack(constants);
    if (!args) return undefined;
    // Elements follow from the names.
    const key = JSON.stringify([call.packed.map((i) => names[i]), args], (key, value: unknown) =>
      key === 'data' ? undefined : value,
    );
    let weights = this.#packed.get(key);
    if (!weights) {
      try {
        weights = this.#memory.pack(args);
      } catch (error) {
        throw errorIn('loadModel', node, error);
      }
      this.#packed.set(key, weights);
      await this.#tell(constants[call.b] as Value);
    }
    return weights;
  }

  /** The inputs, with their defaults. */
  inputs(): SessionInput[] {
    const sizes = new Map<string, { size: number; by: string }>();
    return this.#planned.graph.inputs.map((info) => {
      const { name, dtype } = info;
      const given = this.#planned.graph.defaults.get(name);
      const number = this.numberOf(name);
      if (!given) return { info, number, isOptional: false, absent: undefined };
      const label = `loadModel: the default of input ${describe(name)}`;
      if (given.dtype !== dtype) {
        const message = `${label} has dtype ${given.dtype}; the model declares ${dtype}`;
        throw new DTypeError('loadModel', name, message);
      }
      checkShape('loadModel', label, info, given.shape, sizes);
      return { info, number, isOptional: true, absent: hold(copyOf(given), false) };
    });
  }

  /** The steps. `outputs`: the names that the caller needs after them. */
  stepsUntil(outputs: readonly number[]): Step[] {
    const isLater = new Uint8Array(this.#numbers.size);
    for (const number of outputs) isLater[number] = 1;
    return withEnds(this.#steps, isLater);
  }
}

/** Writes the canonical NaN in place of each NaN: its bits depend on the processor. */
function canonizeNaN({ dtype, data }: Value): void {
  const codes = { float16: [0x7c00, 0x7e00], bfloat16: [0x7f80, 0x7fc0] }[dtype as string];
  if (codes) {
    const [infinity, canonical] = codes as [number, number];
    const elements = new Uint16Array(data.buffer as ArrayBuffer);
    for (let i = 0; i < elements.length; ++i)
      if (((elements[i] as number) & 0x7fff) > infinity) elements[i] = canonical;
  } else if (dtype.startsWith('float')) {
    const elements = data as Float32Array;
    for (let i = 0; i < elements.length; ++i) if (Number.isNaN(elements[i])) elements[i] = NaN;
  }
}

/** A value in a new array. */
function copyOf({ dtype, shape, data }: Value): Value {
  const copy = newArray(dtype, data.length);
  (copy as Float32Array).set(data as Float32Array);
  return { dtype, shape, data: copy };
}
