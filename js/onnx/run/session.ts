/** `loadModel`, and the runs of a model. */
import { createGemm, type Gemm } from '../../api/create-gemm.js';
import {
  bufferOf,
  checkAttached,
  classOf,
  dtypesOf,
  lengthOf,
  offsetOf,
  viewOf,
} from '../../base/arrays.js';
import { givenBytes } from '../../base/bytes.js';
import { disposable } from '../../base/dispose.js';
import {
  ArgumentError,
  describe,
  DisposedError,
  DTypeError,
  GemmError,
  OutOfMemoryError,
  ShapeError,
} from '../../base/errors.js';
import { contiguousStrides, isRank } from '../../base/layout.js';
import { messageOf } from '../../base/port.js';
import { has, isError, isList, isReadable, unpolluted } from '../../base/properties.js';
import { readOptions } from '../../base/read-options.js';
import type { DataArray, DType } from '../../base/tensor.js';
import { type Core, cores } from '../../instance/core.js';
import { HeapTensor, imitatesHandle } from '../../instance/heap.js';
import type { InstanceOptions } from '../../instance/start-core.js';
import type { Explanation } from '../../ops/explain.js';
import type { WorkerGemm } from '../../worker/gemm.js';
import { type CheckedNode, checkGraph, listNames } from '../graph/graph.js';
import type {
  Extra,
  ProductOperand,
  ProductCall,
  Shaped,
  ProductWeights,
} from '../graph/products.js';
import { keyOf, nameOf, type Run, titleOf } from '../operators/operator.js';
import { hold, keep, newArray, Root, sizeOf, Storage, Stored } from '../operators/storage.js';
import type { OnnxModel, OnnxNode, OnnxValueInfo } from '../read/model.js';
import { checkFetch, models, readOnnx, type ReadOptions } from '../read/read.js';
import { type Make, type OnnxDType, storedAs, type Value } from '../read/value.js';
import { type ProductLink, type PlannedStep, planSteps } from './plan.js';
import { Programs, type RunMemory } from './program.js';

/**
 * Options of {@link loadModel}, and options of {@link readOnnx}. The instance `wg` is one of
 * `wgemm` or of `wgemm/worker`: `wgemm/inline` is a copy of its own. Dispose of it after the model.
 *
 * @category Models
 */
export type LoadOptions = InstanceOptions<Gemm | WorkerGemm> &
  ReadOptions & {
    /**
     * The names of the outputs, such as `['probabilities']`, or of values between nodes. The model
     * loads only what they need: it has no other inputs, and other nodes need not be supported.
     * Default: the outputs that the model declares.
     */
    outputs?: readonly string[] | undefined;
  };

/**
 * A tensor that goes into a model, or comes out of it. It is contiguous and in row-major order.
 *
 * @typeParam A the class of its array
 * @category Models
 */
export interface ModelTensor<A extends DataArray = DataArray> {
  /** The elements. For `'bool'`, 0 and 1 in a Uint8Array. */
  readonly data: A;
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** The type of the elements. Default in what `run` takes: the type that the model declares. */
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
 * A product of a model, as {@link Model.explain} tells of it.
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
 * A model that is ready to run. {@link loadModel} makes it. It owns its memory until its
 * `dispose()`.
 *
 * @category Models
 */
export interface Model {
  /** The inputs of a run, as the model declares them. */
  readonly inputs: readonly OnnxValueInfo[];
  /** The outputs of a run, as the model declares them. Their shapes may be others in a run. */
  readonly outputs: readonly OnnxValueInfo[];
  /** Whether its own `dispose()`, or the end of its instance, has ended it. */
  readonly disposed: boolean;
  /**
   * Runs the model. With an instance in this thread, the run is over when the call returns its
   * promise. Otherwise runs wait for each other, and the call copies its inputs. If the instance
   * has `models: true`, the first run with a set of input shapes takes longer than later ones.
   *
   * @example
   * const x = { data: new Float32Array(784), shape: [1, 784] };
   * const { scores } = await model.run({ x });
   *
   * @param feeds a tensor for each input, by name. The call only reads them
   * @returns a promise of the outputs, by name, in new arrays that the caller owns
   * @throws by rejection: ArgumentError, DTypeError and ShapeError, which name the input or the
   * node at fault; DisposedError, OutOfMemoryError
   */
  run(
    feeds: Readonly<Record<string, ModelTensor | HeapTensor>>,
  ): Promise<Record<string, ModelResult>>;
  /**
   * Runs the model on zeros, and tells of each product how it was computed.
   *
   * @param shapes the shape of each input, by name. Default: the shape that the model declares,
   * with 1 for each dynamic size
   * @returns a promise of the products, in the order of the run
   * @throws by rejection: what `run` throws
   */
  explain(shapes?: Readonly<Record<string, readonly number[]>>): Promise<ModelProduct[]>;
  /** Frees the memory, and the instance if the model created it. Does nothing the second time. */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

const createOptions = ['threads', 'simd', 'determinism', 'assets', 'maxMemory'] as const;

/**
 * Loads a model in the format of ONNX, so that it can run. It checks the graph, computes what is
 * constant, and packs constant weights. Afterwards nothing of the bytes or of the OnnxModel is
 * needed.
 *
 * @example
 * const model = await loadModel(await (await fetch('digits.onnx')).arrayBuffer());
 * const { scores } = await model.run({ x: { data: pixels, shape: [1, 784] } });
 * model.dispose();
 *
 * @param source the bytes of an .onnx file, which must not change until the promise settles; or
 * the object that `readOnnx` returned, not a copy
 * @param options all have defaults
 * @returns a promise of the model. The caller must `dispose()` of it
 * @throws by rejection: UnsupportedError, which lists all operators that are missing, and the nodes
 * that are not supported for another reason; ArgumentError, DTypeError, ShapeError and
 * PackMismatchError, which name the node at fault; and what `readOnnx` and `createGemm` throw
 *
 * @category Models
 */
export async function loadModel(
  source: Uint8Array | ArrayBuffer | OnnxModel,
  options: LoadOptions = {},
): Promise<Model> {
  const op = 'loadModel';
  const names = ['wg', 'externalData', 'outputs', ...createOptions];
  const read = readOptions(op, options, names) as LoadOptions;
  const { wg: given, externalData, outputs: chosen } = read; // each once
  const { threads, simd, determinism, assets, maxMemory } = read;
  const settings = { threads, simd, determinism, assets, maxMemory };
  checkFetch(op, externalData);
  const outputs = readOutputs(chosen);
  const isModel = isReadable(source) && has(source, 'graph');
  if (isModel && !models.has(source)) {
    const found = 'source is not itself a model from readOnnx()';
    const advice = 'pass the model that readOnnx() returned, or bytes';
    throw new ArgumentError(op, 'source', `${op}: ${found}; ${advice}`);
  }
  const bytes = isModel ? undefined : givenBytes(op, 'source', source);
  if (given !== undefined) {
    checkInstance(given);
    const name = createOptions.find((name) => settings[name] !== undefined);
    if (name !== undefined)
      throw new ArgumentError(op, name, `${op}: pass either wg or ${name}, not both`);
  }
  // It starts while the model is read.
  const starting = Promise.resolve(given ?? createGemm({ ...settings, models: true }));
  starting.catch(() => undefined); // it may fail before it is awaited
  let wg: Gemm | WorkerGemm | undefined;
  let owned: Owned | undefined;
  try {
    const model = bytes ? await readOnnx(bytes, { externalData }) : (source as OnnxModel);
    const graph = checkGraph(model, outputs);
    const isHere = given === undefined || cores.has(given);
    const plan = planSteps(graph, isHere);
    wg = await starting;
    owned = new Owned(wg, given === undefined);
    const loaded = await prepare(wg, owned, plan.steps, plan.constants, graph);
    return new LoadedModel(loaded, graph.inputs, graph.outputs, owned);
  } catch (error) {
    owned?.dispose();
    if (given === undefined && !owned) {
      void starting.then(
        (started) => started.dispose(),
        () => undefined,
      );
    }
    throw error;
  }
}

/** The names in the option `outputs`. */
function readOutputs(outputs: unknown): readonly string[] | undefined {
  if (outputs === undefined) return undefined;
  const isArray = isList(outputs);
  const names: unknown[] = [];
  let areNames = isArray && outputs.length > 0;
  // By index, as a shape: an array may have another iterator, or be a long one of holes.
  for (let i = 0; isArray && i < outputs.length && (areNames || i < 20); ++i) {
    names.push(outputs[i]);
    areNames &&= typeof names[i] === 'string';
  }
  if (areNames && new Set(names).size === names.length) return names as string[];
  const shown = names.slice(0, 20).map(describe).join(', ');
  const found = isArray ? `[${shown}]` : describe(outputs);
  throw new ArgumentError(
    'loadModel',
    'outputs',
    `loadModel: outputs is ${found}; it must be an array of one or more different names`,
  );
}

function checkInstance(wg: unknown): void {
  const isInstance =
    isReadable(wg) &&
    'pack,explain,matmul,gemm,qgemm,matmulNBits,alloc,memory'
      .split(',')
      .every((name) => typeof (wg as Record<string, unknown>)[name] === 'function');
  if (isInstance && cores.has(wg)) return;
  // Other methods of a worker return promises, too.
  const used = isInstance ? useOf(wg as unknown as WorkerGemm) : undefined;
  if (isPending(used)) return void used.catch(() => undefined);
  const found = used ? 'an instance of another copy of wgemm, such as wgemm/inline' : describe(wg);
  throw new ArgumentError(
    'loadModel',
    'wg',
    `loadModel: wg is ${found}; it must be an instance of wgemm or of wgemm/worker`,
  );
}

/** The memory use of an instance; undefined for a proxy or another object made from one. */
function useOf(wg: WorkerGemm): unknown {
  try {
    void wg.disposed; // throws for a proxy of an instance in a worker, whose calls only reject
    return wg.memory();
  } catch {
    return undefined;
  }
}

/** The memory of a model. */
class Owned {
  readonly #objects: { dispose(): void }[] = [];
  readonly storage: Storage;
  readonly core: Core | undefined;
  programs: Programs | undefined;
  isDisposed = false;

  constructor(
    readonly wg: Gemm | WorkerGemm,
    readonly ownsInstance: boolean,
  ) {
    this.core = cores.get(wg);
    this.storage = new Storage(this.core && (wg as Gemm));
  }

  add<T extends { dispose(): void }>(object: T): T {
    this.#objects.push(object);
    return object;
  }

  /** Calls a method of the instance. */
  call(name: string, args: unknown[]): unknown {
    return (this.wg as unknown as Record<string, (...args: unknown[]) => unknown>)[name]?.(...args);
  }

  dispose(): void {
    if (this.isDisposed) return;
    this.isDisposed = true;
    this.programs?.dispose();
    this.storage.dispose();
    for (const object of this.#objects) object.dispose();
    this.#objects.length = 0;
    if (this.ownsInstance) this.wg.dispose();
  }
}

/** A step, with names replaced by their numbers; -1 stands for an absent one. */
interface Step {
  readonly node: OnnxNode;
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /** The names whose values end after this step. */
  readonly ends: readonly number[];
  readonly run: Run | undefined;
  readonly product: ProductStep | undefined;
  /** For a fused node: the steps that run instead, if it refuses its operands. Otherwise none. */
  readonly originals: readonly Step[];
}

/** A step before `withEnds`. */
type OpenStep = Omit<Step, 'ends' | 'originals'> & { readonly originals: readonly OpenStep[] };

interface ProductStep {
  readonly call: ProductCall;
  readonly weights: ProductWeights | undefined;
  readonly views: PlannedStep['views'];
  readonly links: readonly StepLink[];
}

interface StepLink {
  readonly link: ProductLink;
  /** Its inputs; `theResult` stands for the result of the product or link before it. */
  readonly inputs: readonly number[];
  /** For a bias, the number of its name. */
  readonly other: number;
}

const absent = -1;
const theResult = -2;

interface Loaded {
  readonly steps: readonly Step[];
  /** The values at the start of a run, by number: the constants. */
  readonly start: readonly (Stored | undefined)[];
  /** Constants in the memory of an instance in a worker. */
  readonly handles: ReadonlyMap<
    number,
    { readonly dtype: DType; readonly shape: readonly number[] }
  >;
  readonly inputs: readonly LoadedInput[];
  readonly outputs: readonly { readonly info: OnnxValueInfo; readonly number: number }[];
}

interface LoadedInput {
  readonly info: OnnxValueInfo;
  readonly number: number;
  readonly absent: Stored | undefined;
  /** Whether a product takes it. */
  readonly isOperand: boolean;
}

async function prepare(
  wg: Gemm | WorkerGemm,
  owned: Owned,
  planned: readonly PlannedStep[],
  constants: ReadonlyMap<string, Value>,
  graph: ReturnType<typeof checkGraph>,
): Promise<Loaded> {
  const numbers = new Map<string, number>();
  const numberOf = (name: string): number => {
    if (name === '') return absent;
    let number = numbers.get(name);
    if (number === undefined) numbers.set(name, (number = numbers.size));
    return number;
  };
  const outputs = graph.outputs.map((info) => ({ info, number: numberOf(info.name) }));
  const packed = new Map<string, ProductWeights>();
  const operands = new Set<number>(); // that products take
  const others = new Set<number>(outputs.map(({ number }) => number)); // that operators take
  const prepareStep = async (step: PlannedStep): Promise<OpenStep> => {
    const { checked, inputs, outputs, links, views, originals } = step;
    const { node, run, product: call } = checked;
    let product: ProductStep | undefined;
    let taken = inputs;
    if (call) {
      const weights = await packWeights(owned, call, inputs, constants, packed).catch(
        (error: unknown) => {
          throw errorIn('loadModel', node, error);
        },
      );
      if (weights) taken = inputs.map((name, i) => (call.packed.includes(i) ? '' : name));
      product = {
        call,
        weights,
        views,
        links: links.map((link) => ({
          link,
          inputs: link.checked.node.inputs.map((name) =>
            name === link.input ? theResult : numberOf(name),
          ),
          other: link.kind === 'bias' ? numberOf(link.other) : absent,
        })),
      };
      for (const { inputs, other } of product.links) {
        if (other !== absent) operands.add(other);
        for (const number of inputs) if (number !== other) others.add(number);
      }
    }
    const takenNumbers = taken.map(numberOf);
    for (const number of takenNumbers) (call ? operands : others).add(number);
    return {
      node,
      inputs: takenNumbers,
      outputs: outputs.map(numberOf),
      run,
      product,
      originals: await prepareAll(originals),
    };
  };
  const prepareAll = async (list: readonly PlannedStep[]): Promise<OpenStep[]> => {
    const steps: OpenStep[] = [];
    for (const step of list) steps.push(await prepareStep(step));
    return steps;
  };
  const steps = await prepareAll(planned);

  const start: (Stored | undefined)[] = [];
  const handles = new Map<number, { readonly dtype: DType; readonly shape: readonly number[] }>();
  for (const [name, value] of constants) {
    const number = numbers.get(name);
    if (number === undefined || !(operands.has(number) || others.has(number))) continue;
    const stored = await holdConstant(owned, value, operands.has(number) && value.dtype !== 'bool');
    start[number] = stored;
    if (!owned.core && operands.has(number) && value.dtype !== 'bool') {
      const { dtype, shape } = value;
      const tensor = owned.add(await (wg as WorkerGemm).alloc(dtype, shape));
      handles.set(number, tensor);
      await tensor.write(value.data);
    }
  }
  const sizes = new Map<string, { size: number; by: string }>();
  const inputs = graph.inputs.map((info) => {
    const { name, dtype } = info;
    const number = numberOf(name);
    const absent = graph.defaults.get(name);
    if (absent) {
      const label = `loadModel: the default of input ${describe(name)}`;
      if (absent.dtype !== dtype) {
        const message = `${label} has dtype ${absent.dtype}; the model declares ${dtype}`;
        throw new DTypeError('loadModel', name, message);
      }
      checkShape('loadModel', label, info, absent.shape, sizes);
    }
    return {
      info,
      number,
      absent: absent && keptStored(absent.dtype, absent.shape, copyOf(absent.data, absent.dtype)),
      isOperand: operands.has(number),
    };
  });
  const isLater = new Uint8Array(numbers.size);
  for (const { number } of outputs) isLater[number] = 1;
  return { steps: withEnds(steps, isLater), start, handles, inputs, outputs };
}

/** The weights of a product, packed once for all nodes; undefined if they are not constant. */
async function packWeights(
  owned: Owned,
  call: ProductCall,
  names: readonly string[],
  constants: ReadonlyMap<string, Value>,
  packed: Map<string, ProductWeights>,
): Promise<ProductWeights | undefined> {
  const isConstant = (i: number) => !names[i] || constants.has(names[i]);
  if (!names[call.b] || !call.packed.every(isConstant)) return undefined;
  const args = call.pack(names.map((name) => constants.get(name)));
  if (!args) return undefined;
  // Elements follow from the names.
  const key = JSON.stringify([call.packed.map((i) => names[i]), args], (key, value: unknown) =>
    key === 'data' ? undefined : value,
  );
  let weights = packed.get(key);
  if (!weights) {
    weights = owned.add((await owned.call('pack', args)) as ProductWeights);
    packed.set(key, weights);
  }
  return weights;
}

/** A value that no run overwrites or ends. */
function keptStored(
  dtype: OnnxDType,
  shape: readonly number[],
  data: DataArray,
  chunk?: HeapTensor<Uint8Array>,
): Stored {
  const root = new Root(chunk, chunk ? undefined : data, false);
  root.uses = Infinity;
  return new Stored(dtype, shape, data.length, root);
}

/** A copy of a constant, so that the bytes of the model can go. */
async function holdConstant(
  owned: Owned,
  { dtype, shape, data }: Value,
  isOperand: boolean,
): Promise<Stored> {
  if (!owned.core || !isOperand || data.length === 0)
    return keptStored(dtype, shape, copyOf(data, dtype));
  const chunk = owned.add(
    (await owned.call('alloc', ['uint8', [data.byteLength]])) as HeapTensor<Uint8Array>,
  );
  chunk.data.set(new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength));
  return keptStored(dtype, shape, data, chunk);
}

/**
 * Adds to each step the names that no later step takes.
 *
 * @param isLater by number: whether something after these steps takes the name
 * @param lastEnds names that the last step ends, too
 */
function withEnds(
  steps: readonly OpenStep[],
  isLater: Uint8Array,
  lastEnds: readonly number[] = [],
): Step[] {
  const reversed: Step[] = [];
  for (const step of [...steps].reverse()) {
    const ends = reversed.length === 0 ? [...lastEnds] : [];
    const linked = step.product?.links.flatMap(({ inputs }) => inputs) ?? [];
    for (const number of [...step.inputs, ...linked, ...step.outputs]) {
      if (number < 0 || isLater[number]) continue;
      isLater[number] = 1;
      ends.push(number);
    }
    // If the original steps run, the last of them ends what the step would end.
    reversed.push({ ...step, ends, originals: withEnds(step.originals, isLater, ends) });
  }
  return reversed.reverse();
}

/** The error of a node, with the node in its message. */
function errorIn(op: string, node: OnnxNode, error: unknown): unknown {
  const title = titleOf(node);
  const message = messageOf(error);
  if (error instanceof GemmError && /^(run|loadModel): node /.test(message)) return error;
  if (isError(error) && error.name === 'RangeError' && /alloc|length|size/i.test(message))
    return new OutOfMemoryError(op, nameOf(node), `${op}: ${title}: ${message}`);
  if (!(error instanceof GemmError)) return error;
  const told = `${op}: ${title}: ${message.replace(/^(run|loadModel): /, '')}`;
  const { code } = error;
  const plain = error.constructor === GemmError;
  const Class = error.constructor as new (...args: string[]) => GemmError;
  return plain
    ? new GemmError(code, op, nameOf(node), told, { cause: error })
    : Object.defineProperty(new Class(op, nameOf(node), told), 'cause', {
        __proto__: null,
        value: error,
        configurable: true,
      } as PropertyDescriptor);
}

/** Whether a result of an instance is a promise, as the results of an instance in a worker are. */
const isPending = (value: unknown): value is Promise<unknown> =>
  typeof (value as { then?: unknown } | undefined)?.then === 'function';

/** Calls `next` with a value, or later with the result of a promise. */
function after<T, R>(value: unknown, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return isPending(value) ? value.then((result) => next(result as T)) : next(value as T);
}

class LoadedModel implements Model {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly #loaded: Loaded;
  readonly #owned: Owned;
  /** The memory of runs that are not programs. */
  readonly #memory: RunMemory;
  /** The end of the runs so far, if the instance is in a worker. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    loaded: Loaded,
    inputs: readonly OnnxValueInfo[],
    outputs: readonly OnnxValueInfo[],
    owned: Owned,
  ) {
    this.#loaded = loaded;
    this.#owned = owned;
    const { storage } = owned;
    this.#memory = {
      make: (dtype, shape) => storage.make(dtype, shape, true),
      release: (value) => storage.release(value),
      operand: ({ data }) => data,
      apply: (checked, inputs) => this.#apply(checked, inputs),
      call: (body) => body(),
    };
    this.inputs = Object.freeze([...inputs]);
    this.outputs = Object.freeze([...outputs]);
    Object.freeze(this);
  }

  get disposed(): boolean {
    return this.#owned.isDisposed || this.#owned.wg.disposed;
  }

  async run(
    feeds: Readonly<Record<string, ModelTensor | HeapTensor>>,
  ): Promise<Record<string, ModelResult>> {
    const op = 'run';
    this.#checkAlive(op);
    const values = this.#readFeeds(op, feeds);
    this.#checkAlive(op); // a getter of the feeds may have ended it
    return await this.#queued(values, undefined);
  }

  async explain(shapes: Readonly<Record<string, readonly number[]>> = {}): Promise<ModelProduct[]> {
    const op = 'explain';
    this.#checkAlive(op);
    const feeds = this.#readFeeds(op, this.#zeros(op, shapes));
    const products: ModelProduct[] = [];
    await this.#queued(feeds, products);
    return products;
  }

  dispose(): void {
    // The last run in a worker gives its values up when it ends.
    this.#owned.dispose();
  }

  declare [Symbol.dispose]: () => void;

  #checkAlive(op: string): void {
    if (this.disposed)
      throw new DisposedError(
        op,
        'model',
        `${op}: the model or its instance is disposed; load the model again by loadModel()`,
      );
  }

  async #queued(
    feeds: (Stored | undefined)[],
    products: ModelProduct[] | undefined,
  ): Promise<Record<string, ModelResult>> {
    if (this.#owned.core) return await this.#execute(feeds, products);
    const result = this.#last.then(async () => {
      this.#checkAlive('run');
      return await this.#execute(feeds, products);
    });
    this.#last = result.catch(() => undefined);
    return await result;
  }

  /** The programs of the model, if its instance has the operators of models. */
  #programsOf(core: Core | undefined): Programs | undefined {
    if (!core?.module.makeProgram) return undefined;
    const { steps, start, inputs, outputs } = this.#loaded;
    this.#owned.programs ??= new Programs(core, {
      nodes: steps,
      start,
      feeds: inputs.map(({ number }) => number),
      outputs: outputs.map(({ number }) => number),
      alloc: (bytes) => this.#owned.call('alloc', ['uint8', [bytes]]) as HeapTensor<Uint8Array>,
      multiply: (step, values, memory) => {
        try {
          const { product } = step as Step & { product: ProductStep };
          return this.#multiply(step as Step, product, values, undefined, memory) as Stored[];
        } catch (error) {
          throw errorIn('run', step.node, error);
        }
      },
      errorIn: (node, error) => errorIn('run', node, error),
    });
    return this.#owned.programs;
  }

  /** Runs all steps. With an instance in this thread it waits for nothing. */
  async #execute(
    feeds: readonly (Stored | undefined)[],
    products: ModelProduct[] | undefined,
  ): Promise<Record<string, ModelResult>> {
    const { steps, start, inputs } = this.#loaded;
    const { storage, core } = this.#owned;
    if (!products) {
      const programs = this.#programsOf(core);
      if (programs) return this.#results(programs.run(feeds as readonly Stored[]));
    }
    const values = [...start];
    let succeeds = false;
    try {
      for (let i = 0; i < inputs.length; ++i) {
        const { number, isOperand } = inputs[i] as LoadedInput;
        let value = feeds[i] as Stored;
        if (core && isOperand && value.root.chunk === undefined) {
          // Several products may take it.
          const copy = storage.make(value.dtype, value.shape, true);
          copy.data.set(value.data as never);
          value = copy;
        }
        values[number] = keep(value);
      }
      const queue = [...steps];
      for (let i = 0; i < queue.length; ++i) {
        const step = queue[i] as Step;
        try {
          const results = step.product
            ? this.#multiply(step, step.product, values, products, this.#memory)
            : this.#operate(step, values);
          const made = isPending(results) ? await results : results;
          this.#place(step, values, made);
        } catch (error) {
          // A node refuses its operands before it writes, so the original nodes may read them.
          if (step.originals.length === 0) throw errorIn('run', step.node, error);
          queue.splice(i + 1, 0, ...step.originals);
        }
      }
      const results = this.#results(
        this.#loaded.outputs.map(({ number }) => values[number] as Stored),
      );
      succeeds = true;
      return results;
    } finally {
      if (succeeds && !this.#owned.isDisposed) storage.end();
      else storage.dispose();
    }
  }

  /** The outputs of a run, in arrays of their own. */
  #results(values: readonly Stored[]): Record<string, ModelResult> {
    const results = Object.create(null) as Record<string, ModelResult>;
    this.#loaded.outputs.forEach(({ info }, i) => {
      const { dtype, shape, data } = values[i] as Stored;
      const { name, dtype: declared } = info;
      if (![dtype, 'none'].includes(declared)) {
        const found = `run: output ${describe(name)} has dtype ${dtype}`;
        throw new DTypeError('run', name, `${found}; the model declares ${declared}`);
      }
      results[name] = { data: copyOf(data, dtype), shape: [...shape], dtype };
    });
    return results;
  }

  /** Names the results of a step, and ends what no later step takes. */
  #place(step: Step, values: (Stored | undefined)[], results: readonly Stored[]): void {
    const { storage } = this.#owned;
    for (let i = 0; i < step.outputs.length; ++i) {
      const number = step.outputs[i] as number;
      if (number !== absent) values[number] = keep(results[i] as Stored);
    }
    for (const number of step.ends) {
      const value = values[number];
      if (value) storage.release(value);
      values[number] = undefined;
    }
  }

  #operate(step: Step, values: readonly (Stored | undefined)[]): Stored[] {
    const inputs = step.inputs.map((number) => values[number]);
    return this.#apply(step, inputs, (i) => step.ends.includes(step.inputs[i] as number));
  }

  /** Runs an operator. @param isLast whether no later step reads the input of an index */
  #apply(
    { node, run }: Pick<CheckedNode, 'node' | 'run'>,
    inputs: readonly (Stored | undefined)[],
    isLast: (index: number) => boolean = () => false,
  ): Stored[] {
    const { storage } = this.#owned;
    const made: Stored[] = [];
    const make: Make = (dtype, shape, over) => {
      const size = sizeOf(shape);
      const taken = inputs.find(
        (value, i) =>
          value &&
          over?.includes(value) &&
          value.root.isOwn &&
          value.root.uses === 1 &&
          !made.some(({ root }) => root === value.root) &&
          value.size === size &&
          value.dtype === dtype &&
          isLast(i),
      );
      const value = taken ? new Stored(dtype, shape, size, taken.root) : storage.make(dtype, shape);
      made.push(value);
      return value;
    };
    let results;
    try {
      results = (run as Run)(inputs, make);
    } catch (error) {
      // The step has the name of a product, if the node follows one.
      throw errorIn('run', node, error);
    }
    const known = [...made, ...inputs];
    return [results].flat().map((result) => result && this.#adopt(result, known));
  }

  /** The result of an operator: a value that it made or got, a reshaped one, or a new array. */
  #adopt(result: Value, known: readonly (Stored | undefined)[]): Stored {
    if (result instanceof Stored) return result;
    const { dtype, shape, data } = result;
    const same = known.find((value) => value?.data === data);
    if (same) return new Stored(dtype, shape, same.size, same.root);
    const { core } = this.#owned;
    const isInHeap = core?.owns(bufferOf(data));
    return hold({ dtype, shape, data: isInHeap ? copyOf(data, dtype) : data }, true);
  }

  #multiply(
    step: Step,
    product: ProductStep,
    values: readonly (Stored | undefined)[],
    products: ModelProduct[] | undefined,
    memory: RunMemory,
  ): Stored[] | Promise<Stored[]> {
    const { call, weights, links, views } = product;
    const { core } = this.#owned;
    const temporary: Stored[] = [];
    const transposed: { shape: readonly number[]; strides: readonly number[] }[] = [];
    const inputs = step.inputs.map((number, i) => {
      const value = values[number];
      const turn = views.get(i);
      if (!value || !turn) return value;
      const { shape } = value;
      const perm = permOf(turn.node, shape);
      const along = (list: readonly number[]) => perm.map((axis) => list[axis] as number);
      if (perm.length !== shape.length) this.#apply(turn, [value]); // throws, since perm is wrong
      transposed[i] = { shape: along(shape), strides: along(contiguousStrides(shape)) };
      return value;
    });
    const shapes = inputs.map(
      (input, i): Shaped | undefined =>
        input && { dtype: input.dtype, shape: transposed[i]?.shape ?? input.shape },
    );
    const plain = call.result(shapes, weights);
    const extra: Extra = {};
    let fused = 0;
    let bias = absent;
    let perm: readonly number[] | undefined;
    for (const { link, other } of links) {
      if (!canFuse(link, call, plain, values[other])) break;
      ++fused;
      if (link.kind === 'alpha') extra.alpha = link.alpha;
      else if (link.kind === 'bias') bias = other;
      else if (link.kind === 'activation') extra.activation = link.activation;
      else perm = permOf(link.checked.node, plain.shape);
    }
    let result: Stored | undefined;
    if (core) {
      const addend = values[bias];
      const takes =
        call.fuses.bias === 'any' && // other calls refuse a bias in the memory of the result
        addend?.root.isOwn &&
        addend.root.uses === 1 &&
        addend.root.chunk &&
        !perm &&
        step.ends.includes(bias) &&
        addend.dtype === plain.dtype &&
        sameShape(addend.shape, plain.shape) &&
        !inputs.some((input) => input?.root === addend.root);
      const shape = perm ? perm.map((axis) => plain.shape[axis] as number) : plain.shape;
      result = takes
        ? new Stored(plain.dtype, shape, addend.size, addend.root)
        : memory.make(plain.dtype, shape);
    }
    const operandOf = (
      number: number,
      value: Stored | undefined,
      i?: number,
    ): ProductOperand | undefined => {
      const handle = this.#loaded.handles.get(number);
      const view = i === undefined ? undefined : transposed[i];
      const data = (handle ?? (value && memory.operand(value))) as DataArray;
      return value && { dtype: value.dtype, shape: value.shape, data, ...view };
    };
    const operands = inputs.map((input, i) => operandOf(step.inputs[i] as number, input, i));
    if (bias !== absent) {
      const addend = operandOf(bias, values[bias]) as ProductOperand;
      const isColumns = call.fuses.bias === 'columns';
      extra.bias = isColumns ? { ...addend, shape: [sizeOf(addend.shape)] } : addend;
    }
    if (result) {
      const strides = perm && stridesThrough(plain.shape, perm);
      extra.out = { ...plain, data: result.elements, ...(strides && { strides }) };
    }
    const args = call.arguments(operands, weights, extra);
    const finish = (returned: Shaped & { data?: DataArray }): Stored[] => {
      let value = result ?? hold(returned as Value, true);
      for (const { link, inputs } of links.slice(fused)) {
        const taken = inputs.map((number) => (number === theResult ? value : values[number]));
        temporary.push(keep(value));
        [value] = memory.apply(link.checked, taken) as [Stored];
      }
      keep(value);
      for (const each of temporary) memory.release(each);
      --value.root.uses;
      return [value];
    };
    const multiply = () => memory.call(() => this.#owned.call(call.name, args));
    if (!products) return after(multiply(), finish);
    // With an instance in this thread nothing is awaited: another run would use the same memory.
    return after(this.#owned.call('explain', [call.name, ...args]), (plan) => {
      const start = performance.now();
      return after(multiply(), (returned: Shaped) => {
        const time = performance.now() - start;
        products.push(describeProduct(step, product, fused, shapes, plain, plan, time));
        return finish(returned);
      });
    });
  }

  /** Feeds of zeros. */
  #zeros(op: string, given: unknown): Record<string, ModelTensor> {
    const shapes = given ?? {};
    this.#checkNames(op, 'shapes', shapes, 'a shape');
    const feeds = Object.create(null) as Record<string, ModelTensor>;
    for (const { info, absent } of this.#loaded.inputs) {
      const own = has(shapes, info.name) ? shapes[info.name] : undefined;
      if (absent && own === undefined) continue;
      const shape = (own ??
        info.shape?.map((size) => (typeof size === 'number' ? size : 1)) ??
        []) as readonly number[];
      // A wrong shape is refused as the shape of a feed.
      const size = sizeOf(sizesIn(shape) ?? []);
      feeds[info.name] = { data: newArray(info.dtype as OnnxDType, size, op), shape };
    }
    return feeds;
  }

  /** Throws unless a value is an object whose keys are names of inputs. */
  #checkNames(
    op: string,
    argument: string,
    value: unknown,
    each: string,
  ): asserts value is Record<string, unknown> {
    const names = new Set(this.#loaded.inputs.map(({ info }) => info.name));
    if (!isReadable(value) || Array.isArray(value) || classOf(value) !== undefined)
      throw new ArgumentError(
        op,
        argument,
        `${op}: ${argument} is ${describe(value)}; ` +
          `it must be an object with ${each} for each input: ${listNames(names)}`,
      );
    for (const key of Object.keys(value)) {
      if (!names.has(key))
        throw new ArgumentError(
          op,
          key,
          `${op}: the model has no input ${describe(key)}; it has ${listNames(names)}`,
        );
    }
  }

  /** The feeds of a run, in the order of the inputs, checked against what the model declares. */
  #readFeeds(op: string, feeds: unknown): Stored[] {
    const { inputs } = this.#loaded;
    this.#checkNames(op, 'feeds', feeds, 'a tensor');
    const sizes = new Map<string, { size: number; by: string }>();
    const found = inputs.map(({ info, absent }) => {
      const value: unknown = has(feeds, info.name) ? feeds[info.name] : undefined;
      if (value === undefined) {
        if (absent) return absent;
        const names = listNames(inputs.map(({ info }) => info.name));
        throw new ArgumentError(
          op,
          info.name,
          `${op}: input ${describe(info.name)} is absent; the model needs ${names}`,
        );
      }
      return this.#readFeed(op, info, value, sizes);
    });
    // A getter of one feed may have detached another. No code of the caller runs from here on.
    return found.map((feed) => (feed instanceof Stored ? feed : feed()));
  }

  /** Reads and checks a feed. Returns a function that finds its elements. */
  #readFeed(
    op: string,
    info: OnnxValueInfo,
    value: unknown,
    sizes: Map<string, { size: number; by: string }>,
  ): () => Stored {
    const { name } = info;
    const label = `${op}: input ${describe(name)}`;
    if (!isReadable(value) || !has(value, 'data') || !has(value, 'shape') || imitatesHandle(value))
      throw new ArgumentError(
        op,
        name,
        `${label} is ${describe(value)}; it must be a tensor, { data, shape }`,
      );
    const disposed = () => new DisposedError(op, name, `${label} is a disposed tensor`);
    if (has(value, 'disposed') && (value as { disposed?: unknown }).disposed === true)
      throw disposed();
    const tensor = unpolluted(value, ['data', 'shape', 'dtype', 'strides', 'offset']);
    const { data, shape, dtype, strides, offset } = tensor;
    const wanted = info.dtype as OnnxDType;
    const stored = storedAs(wanted);
    const found = classOf(data) ?? describe(data);
    if (
      !dtypesOf[found]?.includes(stored) ||
      ![wanted, stored].includes((dtype ?? wanted) as OnnxDType)
    ) {
      const type = dtype === undefined ? found : `${found} with dtype ${describe(dtype)}`;
      throw new DTypeError(op, name, `${label} has ${type} as data; the model declares ${wanted}`);
    }
    if (strides !== undefined || (offset ?? 0) !== 0)
      throw new ArgumentError(op, name, `${label} has strides or an offset; it must be contiguous`);
    const axes = sizesIn(shape);
    if (!axes)
      throw new ShapeError(
        op,
        name,
        `${label} has shape ${describe(shape)}; it must be an array of whole numbers`,
      );
    checkShape(op, label, info, axes, sizes);
    const find = (): DataArray => {
      const isHeld = HeapTensor.is(value);
      if (isHeld && value.disposed) throw disposed();
      const array = isHeld ? value.data : (data as DataArray);
      checkAttached(op, name, array);
      const length = lengthOf(array);
      if (length === sizeOf(axes)) return array;
      const rule = `its shape [${axes.join(', ')}] needs ${sizeOf(axes)}`;
      throw new ShapeError(op, name, `${label} has ${length} elements; ${rule}`);
    };
    find();
    return () => {
      const array = find();
      const { core } = this.#owned;
      let own = viewOf(stored, bufferOf(array), offsetOf(array), lengthOf(array));
      // A view of memory would move, and the caller may change an array before a worker is done.
      const isCopied = !core || core.owns(bufferOf(array));
      if (isCopied) own = copyOf(own, wanted);
      // Any value but 0 is true, as in models.
      if (wanted === 'bool') own = (own as Uint8Array).map((value) => Math.min(value, 1));
      return hold({ dtype: wanted, shape: axes, data: own }, false);
    };
  }
}
disposable(LoadedModel.prototype);

/** The description of a product that `explain` returns. */
function describeProduct(
  step: Step,
  { call, weights, links }: ProductStep,
  fused: number,
  shapes: readonly (Shaped | undefined)[],
  result: Shaped,
  plan: unknown,
  time: number,
): ModelProduct {
  const { originals } = step;
  const operands = [shapes[call.a], weights ?? shapes[call.b], result];
  // The model does not have a fused node: it has the original nodes, and links follow these.
  const replaced = originals.slice(0, originals.length - links.length);
  const { node } = replaced.find(({ product }) => product) ?? step;
  const joined = [...replaced, ...links.slice(0, fused).map(({ link }) => link.checked)];
  return {
    node: node.name || (node.outputs[0] as string),
    op: keyOf(node),
    fused: joined.filter((one) => one.node !== node).map((one) => keyOf(one.node)),
    operands: operands.flatMap((one) => (one ? { dtype: one.dtype, shape: one.shape } : [])),
    packed: weights !== undefined,
    plan: plan as Explanation,
    time,
  };
}

function sizesIn(shape: unknown): number[] | undefined {
  const length = isList(shape) ? shape.length : undefined;
  if (!isRank(length)) return undefined;
  const sizes = Array.from({ length }, (_, axis) => (shape as unknown[])[axis]);
  return sizes.every((size) => Number.isSafeInteger(size) && (size as number) >= 0)
    ? sizes.map((size) => (size as number) + 0) // -0 is 0
    : undefined;
}

/** Throws unless a shape is the one that the model declares, and agrees with those before it. */
function checkShape(
  op: string,
  label: string,
  { name, shape: declared }: OnnxValueInfo,
  shape: readonly number[],
  sizes: Map<string, { size: number; by: string }>,
): void {
  if (!declared) return;
  const shown = declared.map((size) => size ?? '?').join(', ');
  const found = `${label} has shape [${shape.join(', ')}]`;
  const fits =
    shape.length === declared.length &&
    declared.every((size, axis) => typeof size !== 'number' || size === shape[axis]);
  if (!fits) throw new ShapeError(op, name, `${found}; the model declares [${shown}]`);
  declared.forEach((symbol, axis) => {
    if (typeof symbol !== 'string') return;
    const size = shape[axis] as number;
    const before = sizes.get(symbol);
    if (!before) sizes.set(symbol, { size, by: name });
    else if (before.size !== size)
      throw new ShapeError(
        op,
        name,
        `${found} and ${describe(symbol)} is ${before.size} in ${describe(before.by)}; ` +
          'sizes of the same name must be the same',
      );
  });
}

/** A new array with the elements. */
function copyOf(data: DataArray, dtype: OnnxDType): DataArray {
  const copy = newArray(dtype, data.length);
  (copy as Float32Array).set(data as Float32Array);
  return copy;
}

const sameShape = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((size, axis) => size === b[axis]);

/** Whether the call of a product can compute a link, too, with the same elements. */
function canFuse(
  link: ProductLink,
  { fuses }: ProductCall,
  { dtype, shape }: Shaped,
  other: Stored | undefined,
): boolean {
  if (link.dtypes.some((other) => other !== dtype)) return false;
  const isExact = dtype === 'float32' || dtype === 'float64';
  switch (link.kind) {
    case 'alpha':
      return isExact && link.rank <= shape.length;
    case 'bias': {
      if (!isExact || other?.dtype !== dtype || other.shape.length > shape.length) return false;
      const first = shape.length - other.shape.length;
      if (
        fuses.bias === 'columns' &&
        (other.size !== shape.at(-1) || other.shape.at(-1) !== other.size)
      )
        return false;
      return other.shape.every((size, axis) => size === 1 || size === shape[first + axis]);
    }
    case 'activation':
      return isExact; // a negative sum may round to -0 in 16 bits, which Relu keeps
    case 'transpose':
      return permOf(link.checked.node, shape).length === shape.length;
  }
}

/** The perm of a Transpose of a shape. Without one, it reverses the axes. */
const permOf = ({ attributes }: OnnxNode, shape: readonly number[]): readonly number[] =>
  (attributes.get('perm') as readonly number[] | undefined) ?? [...shape.keys()].reverse();

/** The strides of a tensor whose transpose by `perm` is contiguous. */
function stridesThrough(shape: readonly number[], perm: readonly number[]): number[] {
  const strides: number[] = [];
  contiguousStrides(perm.map((axis) => shape[axis] as number)).forEach((stride, i) => {
    strides[perm[i] as number] = stride;
  });
  return strides;
}
