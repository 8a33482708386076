/**
 * Records a run as a program.
 *
 * Nodes run as usual, on values whose elements only a run knows: their data cannot be read.
 * Operators record steps instead, and products their block of arguments. A node that must read such
 * elements, or for which src/nn/ has no operator, ends a part of the program: what was recorded so
 * far is computed, and the node runs here, in each run. Its results may have other shapes in
 * another run; then the run is recorded again.
 */
import { bytesOf, viewOf } from '../../base/arrays.js';
import { OutOfMemoryError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { DataArray } from '../../base/tensor.js';
import type { Gemm } from '../../api/create-gemm.js';
import type { Core } from '../../instance/core.js';
import type { HeapTensor } from '../../instance/heap.js';
import type { Explanation } from '../../ops/explain.js';
import type { CheckedNode } from '../graph/checked.js';
import { refuse, shown } from '../operators/define.js';
import type { Run } from '../operators/operator.js';
import { type Recorder, recordBy, type StepTensor } from '../operators/record.js';
import {
  heapCopyOf,
  hold,
  inArray,
  keep,
  NeedsRun,
  newArray,
  Root,
  sizeOf,
  Stored,
} from '../operators/storage.js';
import { type Make, type OnnxDType, storedAs, type Value } from '../read/value.js';
import { Arena, type Range } from './arena.js';
import type { Calculator } from './calculator.js';
import { errorIn } from './errors.js';
import { aroundGap, type Axes, axesOfCopy, stridesOf } from './gaps.js';
import { inPlace, type Kept, KeptRoot } from './kept.js';
import type { ModelProduct } from './model.js';
import { PlannedProduct } from './product.js';
import { type Step, type Steps, theResult } from './steps.js';
import type { Words } from './words.js';

/** An operator of the model. */
type Runnable = Pick<CheckedNode, 'node' | 'run'>;

/** @internal A part of a program: steps of the core, and then a node that runs here. */
export interface Part {
  /** The address of the steps; 0: there are none. */
  program: number;
  /** The number of steps of the core. */
  readonly count: number;
  /** The steps of the model. */
  readonly steps: readonly Step[];
  /** By the number of a step of the core: the number of the step of the model. */
  readonly owners: readonly number[];
  host:
    | {
        readonly step: Step;
        readonly checked: Runnable;
        readonly inputs: readonly (Stored | undefined)[];
        readonly outputs: readonly Stored[];
      }
    | undefined;
}

/** @internal A run that was recorded. */
export interface Program {
  readonly feeds: readonly Stored[];
  readonly parts: Part[];
  readonly outputs: readonly Stored[];
  readonly constants: Constants;
}

/** @internal Copies of known values in the memory of the instance. */
export type Constants = Map<DataArray, HeapTensor<Uint8Array>>;

/** @internal The state that recordings of a model share. */
export interface Place {
  readonly core: Core;
  readonly wg: Gemm;
  readonly model: Steps;
  readonly calculator: Calculator;
  readonly words: Words;
}

/** @internal The results of a node that runs here have other shapes than when it was recorded. */
export class OtherShapes extends Error {}
/** @internal A fused step refuses its operands when it runs. */
export class Unfused extends Error {
  constructor(readonly step: Step) {
    super();
  }
}
/** @internal The memory of the programs, or of kept tensors, is too small. */
export class TooSmall extends Error {}
/** The program of a rehearsal depends on sizes in another way than by their changes. */
class NotMoving extends Error {}

/**
 * @internal Makes the program of some words. @param previous takes the plans of products from
 * this program, if it is not 0, and drops it
 */
export function makeProgram(core: Core, words: Words, previous = 0): number {
  const program = core.makeProgram('run', words.all);
  if (previous)
    core.guard('run', () => {
      core.module.takePlans?.(program, previous);
      core.module.dropProgram(previous);
    });
  return program;
}

/** @internal Runs an operator here. */
export function operate(
  { node, run }: Runnable,
  inputs: readonly (Stored | undefined)[],
  calculator: Calculator,
): (Value | undefined)[] {
  try {
    return recordBy(calculator, () => [(run as Run)(inputs, inArray)].flat());
  } catch (error) {
    throw errorIn('run', node, error);
  }
}

/** @internal Computes steps of a part: from `first` to before `end`. */
export function runPart(core: Core, { program, steps, count }: Part, first = 0, end = count): void {
  if (program === 0) return;
  const { module } = core;
  const code = core.guard('run', () => module.runProgram(program, first, end));
  if (code === 0) return;
  const step = steps[module.failedNode(program)] as Step;
  if (step.originals.length > 0) throw new Unfused(step);
  try {
    core.check(code, 'run');
  } catch (error) {
    throw errorIn('run', step.node, error);
  }
}

/** The size of the result is the index of the branch, so that another branch is another shape. */
const choose: Run = ([condition]) => {
  const { dtype, shape, data } = condition as Value;
  if (dtype !== 'bool' || data.length !== 1)
    refuse(ShapeError, 'cond', `has dtype ${dtype} and shape ${shown(shape)}`, 'one bool');
  const branch = data[0] ? 0 : 1;
  return { dtype, shape: [branch], data: new Uint8Array(branch) };
};

/** Steps that find each element by the strides of its tensor, and by no attribute. */
const strided = ['Copy', 'Attention', 'AttentionScores', 'WriteRows'];

/** Whether an error only says how to record again. */
const isSignal = (error: unknown): boolean =>
  [TooSmall, Unfused, NotMoving].some((Signal) => error instanceof Signal);

/** A result of an operator: it becomes a known value if the operator writes its elements. */
class Draft extends Stored {
  /** The value of the step that computes the result, or the known value. */
  made: Stored | undefined;

  constructor(
    dtype: OnnxDType,
    shape: readonly number[],
    size: number,
    readonly over: readonly Value[],
  ) {
    super(dtype, shape, size, noRoot);
  }
  override get data(): DataArray {
    return this.finished().data;
  }
  override get elements(): DataArray {
    return this.finished().elements;
  }
  override reshape(shape: readonly number[]): Stored {
    return this.finished().reshape(shape);
  }
  finished(): Stored {
    return (this.made ??= hold(inArray(this.dtype, this.shape), true));
  }
}
const noRoot = new Root(undefined, undefined, false);

/** @internal Numbers whose signs decide a known value, such as the results of a comparison. */
export interface Signs {
  readonly differences: readonly number[];
  /** Whether the numbers may change without a change of their signs. */
  readonly mayChange: boolean;
  /** The value of all results, if a value at both ends holds between. */
  readonly uniform: unknown;
}

/** Comparisons whose results are the same between two numbers as at both. */
const ordered = ['Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual'];

/** Operators that take some elements of a value, perhaps from other places in each run. */
const lookups = ['Slice', 'Split', 'Gather', 'GatherElements', 'GatherND'];

/** The value of all elements; undefined if they differ, or there are none. */
function uniformOf(data: DataArray): unknown {
  const [value] = data;
  return (data as Float32Array).every((element) => Object.is(element, value)) ? value : undefined;
}

/** @internal How a run is recorded. */
export interface RecordingOptions {
  /** Fused steps that must not run. */
  readonly unfused: ReadonlySet<Step>;
  /** What `explain` returns: each product is then computed on its own. */
  readonly products?: ModelProduct[] | undefined;
  /** Where the values should be. */
  readonly planned: readonly Range[];
  /** Whether nothing is computed. */
  readonly isRehearsal?: boolean | undefined;
  /** The constants of another rehearsal. */
  readonly constants?: Constants | undefined;
}

/** @internal The recording of a run. */
export class Recording implements Recorder {
  readonly records = true;
  readonly parts: Part[] = [];
  readonly constants: Constants = new Map();
  /** What decides known values, while a run is rehearsed. */
  readonly signs: Signs[] = [];
  /** Kept tensors that need memory for larger shapes. */
  readonly large = new Map<Kept, readonly number[]>();
  /** Bytes that the programs need, if their memory is too small. */
  needed = 0;
  /** The step at which they need the most. */
  largest = 0;
  /** Whether `needed` is the number of bytes for the whole run. */
  isWhole = false;
  /** The steps so far. Their numbers are in the words of programs. */
  readonly steps: Step[] = [];
  /** Where values of the next recording should be, if the memory is too small. */
  planned: readonly Range[] = [];
  readonly #arena: Arena;
  readonly #words: Words;
  /** By the number of a step in the words: the number of the step of the model. */
  #owners: number[] = [];
  /** Kept tensors to which a step appends. */
  readonly #appended = new Set<Kept>();
  /** Whether values may have gaps. */
  #hasGaps = false;
  #isLast: (value: Stored) => boolean = () => false;

  constructor(
    readonly place: Place,
    readonly memory: HeapTensor<Uint8Array> | undefined,
    readonly options: RecordingOptions,
  ) {
    this.#arena = new Arena(options.planned);
    this.#words = place.words;
    this.#words.length = 0; // a recording may have failed
  }

  /** Where the values are, in the order in which they were made. */
  get ranges(): readonly Range[] {
    return this.#arena.all;
  }

  get #isTooSmall(): boolean {
    return this.large.size > 0 || this.#arena.peak > (this.memory?.size ?? 0);
  }

  run(given: readonly Stored[]): Program {
    const { model } = this.place;
    const { unfused, isRehearsal } = this.options;
    const values: (Stored | undefined)[] = [...model.start];
    const feeds = given.map((feed, i) => {
      const { root, dtype, shape } = feed;
      const isKept = root instanceof KeptRoot;
      this.#hasGaps ||= isKept;
      const place = isKept ? root.kept.valueOf(shape) : this.#make(dtype, shape);
      if (!isKept && !isRehearsal && !this.#isTooSmall) place.elements.set(feed.data as never);
      values[model.feeds[i] as number] = keep(place);
      return place;
    });
    let outputs: readonly Stored[];
    try {
      const queue = [...model.steps].reverse();
      for (let step = queue.pop(); step; step = queue.pop()) {
        if (step.branches)
          queue.push(...[...(step.branches[this.#branchOf(step, values)] ?? [])].reverse());
        else if (unfused.has(step) || !this.#record(step, values))
          queue.push(...[...step.originals].reverse());
      }
      outputs = model.outputs.map((number, i) => {
        const value = values[number] as Stored;
        return inPlace(value)?.link.output === i ? value : this.#packed(value);
      });
    } catch (error) {
      // A step that waits to be computed may be at fault, and comes first.
      const isOwn = isSignal(error) || isRehearsal;
      if (!isOwn && !(error instanceof OutOfMemoryError)) this.#flush();
      throw error;
    }
    this.isWhole = true;
    this.#flush();
    return { feeds, parts: this.parts, constants: this.constants, outputs };
  }

  /** The branch of an If, by its index. If only a run knows the condition, a part ends here. */
  #branchOf(step: Step, values: readonly (Stored | undefined)[]): number {
    this.steps.push(step);
    const condition = values[step.inputs[0] as number];
    const [branch] = this.#operate({ node: step.node, run: choose }, [condition], () => false);
    return (branch as Stored).shape[0] as number;
  }

  /** Records a step, or runs it here. Returns false if it is fused and refuses its operands. */
  #record(step: Step, values: (Stored | undefined)[]): boolean {
    const results = this.#run(step, values);
    if (!results) return false;
    step.outputs.forEach((number, i) => {
      const result = results[i];
      if (number >= 0 && result) values[number] = keep(result);
    });
    for (const number of step.ends) {
      const value = values[number];
      if (value) this.#release(value);
      values[number] = undefined;
    }
    return true;
  }

  /** The results of a step; undefined if it is fused and refuses its operands. */
  #run(
    step: Step,
    values: readonly (Stored | undefined)[],
  ): readonly (Stored | undefined)[] | undefined {
    const mark = this.#mark();
    const before = this.parts.length;
    this.steps.push(step);
    try {
      const inputs = step.inputs.map((number) => values[number]);
      if (step.product) return [this.#multiply(step, inputs, values)];
      const isLast = (value: Stored) => step.ends.some((number) => values[number] === value);
      return this.#operate(step, inputs, isLast);
    } catch (error) {
      const isOwn = isSignal(error);
      if (isOwn || step.originals.length === 0)
        throw step.product && !isOwn ? errorIn('run', step.node, error) : error;
      // Parts that the step has ended stay: no step reads what their steps write.
      this.#back(this.parts.length === before ? mark : { length: 0, count: 0 });
      return undefined;
    }
  }

  #mark(): { length: number; count: number } {
    return { length: this.#words.length, count: this.#owners.length };
  }

  /** Forgets all steps that were recorded since a mark. */
  #back({ length, count }: { length: number; count: number }): void {
    this.#words.length = length;
    this.#owners.length = count;
  }

  /** The number of the step that is recorded. */
  get #step(): number {
    return Math.max(this.steps.length - 1, 0);
  }

  #make(dtype: OnnxDType, shape: readonly number[]): Stored {
    const size = sizeOf(shape);
    const bytes = size * bytesOf(storedAs(dtype));
    if (!(bytes < 2 ** 32))
      throw new OutOfMemoryError('run', '', `run: cannot allocate ${size} elements of ${dtype}`);
    const { peak } = this.#arena;
    const start = this.#arena.take(bytes);
    if (this.#arena.peak > peak) this.largest = this.#step;
    const root = this.#isTooSmall
      ? new Root(undefined, newArray(dtype, 0), true, start) // nothing is computed any more
      : new Root(this.memory, undefined, true, start);
    root.isOpen = true;
    root.bytes = Math.max(bytes, 1);
    return new Stored(dtype, shape, size, root);
  }

  #release({ root }: Stored): void {
    if (--root.uses !== 0 || root.bytes === 0) return;
    this.#arena.giveUp(root.start);
    root.bytes = 0;
  }

  /** Records a product, and the links after it. */
  #multiply(
    step: Step,
    inputs: readonly (Stored | undefined)[],
    values: readonly (Stored | undefined)[],
  ): Stored {
    const product = step.product as NonNullable<Step['product']>;
    const packed: Stored[] = [];
    if (this.#hasGaps) [inputs, values] = this.#packFor(product, inputs, values, packed);
    const planned = new PlannedProduct(product, inputs, values, (turn, input) =>
      this.#operate(turn, [input], () => false),
    );
    const { dtype, shape } = planned.result;
    const bias = planned.takenBias(step.ends);
    let value = bias ? new Stored(dtype, shape, bias.size, bias.root) : this.#make(dtype, shape);
    this.#call(step, planned, value);
    keep(value);
    for (const { link, inputs } of product.links.slice(planned.fused)) {
      const before = value;
      const taken = inputs.map((number) => (number === theResult ? before : values[number]));
      [value] = this.#operate(link.checked, taken, (one) => one === before) as [Stored];
      keep(value);
      this.#release(before);
    }
    --value.root.uses;
    for (const one of packed) this.#release(keep(one));
    return value;
  }

  /** Records the call of a product. For `explain`, computes it. */
  #call(step: Step, planned: PlannedProduct, result: Stored): void {
    const { core, wg } = this.place;
    const { products } = this.options;
    if (products) this.#flush();
    if (this.#isTooSmall) return;
    const { name } = planned.product.call;
    const args = planned.argumentsFor(result, (value) => this.#operand(value));
    const call = () => (wg[name] as (...args: unknown[]) => unknown).apply(wg, args);
    if (products) {
      const plan = (wg.explain as (...args: unknown[]) => Explanation)(name, ...args);
      const start = performance.now();
      call();
      const time = performance.now() - start;
      products.push(planned.describe(step, plan, time));
      return;
    }
    const { byteOffset } = result.elements;
    core.withoutComputing(
      byteOffset,
      (operation, end) => {
        this.#begin(-1 - operation);
        this.#words.set(this.#words.length - 1, end);
        this.#words.append(core.block.subarray(0, end));
      },
      call,
    );
  }

  step(
    name: string,
    dims: readonly number[],
    tensors: readonly StepTensor[],
    attributes: readonly number[],
    results: number,
  ): boolean {
    const { calculator } = this.place;
    const last = (tensors.at(-1) as StepTensor).value;
    if (!(last instanceof Draft) || last.made?.root.isOpen === false)
      return calculator.step(name, dims, tensors, attributes, results);
    const operator = calculator.operators.get(name) as number;
    if (name === 'Copy' && this.#appends({ dims, tensors })) return true;
    for (const { value } of tensors) if (value instanceof Draft && !value.made) this.#open(value);
    // Nothing is computed if results have no elements. Their other axes may be of any size.
    if (tensors.every(({ value }) => !(value instanceof Draft) || value.size === 0)) return true;
    if (!this.#hasGaps) {
      this.#write(operator, { dims, tensors }, attributes);
      return true;
    }
    const packed: Stored[] = [];
    this.#write(operator, this.#withoutGaps(name, { dims, tensors }, packed), attributes);
    for (const one of packed) this.#release(keep(one));
    return true;
  }

  /**
   * Whether a step copies a kept tensor to the start of an output that becomes the tensor. Then
   * the output takes its memory, and the rest of the operator appends rows.
   */
  #appends({ dims, tensors: [from, to] }: Axes): boolean {
    const root = from?.value instanceof Stored ? from.value.root : undefined;
    const draft = to?.value;
    if (!from || !to || !(root instanceof KeptRoot) || !(draft instanceof Draft)) return false;
    const { kept, shape } = root;
    const { outputs } = this.steps.at(-1) as Step;
    const isSame = (a: readonly number[], b: readonly number[]) => a.join() === b.join();
    if (
      draft.made ||
      kept.isCopied ||
      this.#appended.has(kept) ||
      !outputs.includes(this.place.model.outputs[kept.link.output] as number) ||
      from.start + to.start !== 0 ||
      !isSame(dims, shape) ||
      !isSame(from.strides, contiguousStrides(shape)) ||
      !isSame(to.strides, contiguousStrides(draft.shape)) ||
      draft.size === sizeOf(shape) || // the operator may write elsewhere
      !kept.differsAlongAxis(draft.shape)
    )
      return false;
    this.#appended.add(kept);
    if (kept.fits(draft.shape)) {
      draft.made = kept.valueOf(draft.shape);
    } else {
      this.large.set(kept, draft.shape);
      const nowhere = new Root(undefined, newArray(draft.dtype, 0), false);
      nowhere.isOpen = true;
      nowhere.uses = Infinity;
      draft.made = new Stored(draft.dtype, draft.shape, draft.size, nowhere);
    }
    return true;
  }

  /** The axes of a step whose tensors have gaps. */
  #withoutGaps(name: string, axes: Axes, packed: Stored[]): Axes {
    for (let i = 0; i < axes.tensors.length; ++i) {
      const { value } = axes.tensors[i] as StepTensor;
      const stored = value instanceof Draft ? value.made : (value as Stored);
      const gap = stored?.root?.gap;
      if (!stored || !gap) continue;
      const around = strided.includes(name) ? aroundGap(axes, i, gap) : undefined;
      // Only a copy has the same elements along other axes.
      if (around && (name === 'Copy' || around.dims.length === axes.dims.length)) {
        axes = around;
        continue;
      }
      if (value instanceof Draft) this.#mustCopy(stored);
      const tensors = [...axes.tensors];
      const copy = this.#packed(stored);
      tensors[i] = { ...(tensors[i] as StepTensor), value: copy };
      packed.push(copy);
      axes = { ...axes, tensors };
    }
    return axes;
  }

  /** Begins again, without appending to the tensor that has a value. */
  #mustCopy({ root }: Stored): never {
    (root as KeptRoot).kept.isCopied = true;
    throw new TooSmall();
  }

  /** A copy of a value without its gap; the value itself if it has none. */
  #packed(value: Stored): Stored {
    const copy = value.root.gap ? this.#make(value.dtype, value.shape) : value;
    const operator = this.place.calculator.operators.get('Copy') as number;
    if (copy !== value) this.#write(operator, axesOfCopy(value, copy), []);
    return copy;
  }

  /** Values for a product, which reads A and B by strides if it can. */
  #packFor(
    { call, links }: NonNullable<Step['product']>,
    inputs: readonly (Stored | undefined)[],
    values: readonly (Stored | undefined)[],
    packed: Stored[],
  ): [typeof inputs, typeof values] {
    const pack = (value: Stored | undefined) => {
      if (!value?.root.gap) return value;
      const copy = this.#packed(value);
      packed.push(copy);
      return copy;
    };
    const reads = ['gemm', 'matmul'].includes(call.name);
    const linked = new Set(links.flatMap(({ inputs }) => inputs));
    return [
      inputs.map((value, i) => (reads && i < 2 && value && stridesOf(value) ? value : pack(value))),
      values.map((value, number) => (linked.has(number) ? pack(value) : value)),
    ];
  }

  /** Writes the words of a step. */
  #write(operator: number, { dims, tensors }: Axes, attributes: readonly number[]): void {
    const addresses = tensors.map(({ value }) => this.#addressOf(value)); // may copy constants
    this.#begin(operator);
    this.#words.step(dims, tensors, addresses, attributes, this.place.calculator.types);
  }

  /** Begins the words of a step. */
  #begin(number: number): void {
    this.#owners.push(this.#step);
    this.#words.begin(number, this.#step);
  }

  /** Gives a result its memory. */
  #open(draft: Draft): void {
    const { dtype, shape, size } = draft;
    const taken = draft.over.find(
      (one): one is Stored =>
        one instanceof Stored &&
        one.root.isOpen &&
        one.root.uses === 1 &&
        one.size === size &&
        one.dtype === dtype &&
        this.#isLast(one),
    );
    draft.made = taken ? new Stored(dtype, shape, size, taken.root) : this.#make(dtype, shape);
  }

  #addressOf(value: Value): number {
    const stored = value instanceof Draft ? value.finished() : value;
    const own = stored instanceof Stored ? stored : hold(stored, false);
    const { chunk, start, isOpen } = own.root;
    if (chunk) return chunk.data.byteOffset + start;
    if (isOpen) return 64 + start; // the memory is too small
    return this.#constant(own).data.byteOffset;
  }

  #operate(
    checked: Runnable,
    inputs: readonly (Stored | undefined)[],
    isLast: (value: Stored) => boolean,
  ): (Stored | undefined)[] {
    const { node, run } = checked;
    const mark = this.#mark();
    const made: Draft[] = [];
    const make: Make = (dtype, shape, over) => {
      const draft = new Draft(dtype, shape, sizeOf(shape), over ?? []);
      made.push(draft);
      return draft;
    };
    this.#isLast = (value) =>
      isLast(value) && !made.some((draft) => draft.made?.root === value.root);
    let results: (Value | undefined)[];
    const isOpen = inputs.some((input) => input?.root.isOpen);
    const by = isOpen ? this : this.place.calculator;
    try {
      results = recordBy(by, () => [(run as Run)(inputs, make)].flat());
    } catch (error) {
      if (!(error instanceof NeedsRun)) throw errorIn('run', node, error);
      this.#back(mark);
      this.#giveUp(made, []);
      return this.#host(checked, inputs);
    }
    if (this.options.isRehearsal && !isOpen) this.#note(node.op, inputs, results[0]);
    const stored = results.map((result, i) => {
      // The memory of results that the node does not name ends now.
      if (!result || (results.length > 1 && !node.outputs[i])) return undefined;
      if (result instanceof Draft) return result.finished();
      if (result instanceof Stored) return result;
      return hold(result, false);
    });
    this.#giveUp(made, stored);
    return stored;
  }

  /** Notes on what a known value depends that does not change by the same from row to row. */
  #note(op: string, inputs: readonly (Stored | undefined)[], result: Value | undefined): void {
    const isMod = op === 'Mod';
    if (!result) return;
    // A table may have any elements at the places between.
    const isLookup = lookups.includes(op);
    if (isLookup)
      this.signs.push({ differences: [result.data.length], mayChange: false, uniform: undefined });
    if (result.dtype !== 'bool' && !isMod) return;
    const [a = [], b = [0]] = inputs.map((input) =>
      Array.from((input?.data ?? []) as ArrayLike<number | bigint>, Number),
    );
    const at = (list: number[], i: number) => list[list.length === 1 ? 0 : i] ?? NaN;
    const differences = Array.from(
      { length: Math.max(a.length, b.length) },
      (_, i) => at(a, i) - at(b, i),
    );
    // Other operators on truth values have inputs that were noted.
    const isOrdered = ordered.includes(op) || (inputs[0]?.dtype === 'bool' && !isLookup);
    const uniform = isOrdered ? uniformOf(result.data) : undefined;
    this.signs.push({ differences, mayChange: !isMod, uniform });
  }

  /** Gives up the values that an operator has made, except its results. */
  #giveUp(made: readonly Draft[], results: readonly (Stored | undefined)[]): void {
    for (const { made: value } of made) {
      const root = value?.root;
      if (!root || root.uses !== 0 || results.some((result) => result?.root === root)) continue;
      ++root.uses;
      this.#release(value);
    }
  }

  /** Runs a node here, after the recorded steps. */
  #host(checked: Runnable, given: readonly (Stored | undefined)[]): Stored[] {
    if (this.options.isRehearsal) throw new NotMoving();
    const inputs = given.map((input) => input && this.#packed(input));
    this.#flush();
    const results = operate(checked, inputs, this.place.calculator);
    const outputs = results.map((result) => {
      const { dtype, shape } = result as Value;
      return this.#make(dtype, shape);
    });
    if (!this.#isTooSmall)
      outputs.forEach((output, i) => output.elements.set((results[i] as Value).data as never));
    (this.parts.at(-1) as Part).host = {
      step: this.steps.at(-1) as Step,
      checked,
      inputs,
      outputs,
    };
    inputs.forEach((input, i) => {
      if (input && input !== given[i]) this.#release(keep(input));
    });
    return outputs;
  }

  /** The copy of a known value in the memory of the instance. */
  #constant(value: Stored): HeapTensor<Uint8Array> {
    let constant = this.constants.get(value.data);
    if (!constant) {
      constant = this.#sharedCopyOf(value) ?? heapCopyOf(value, this.place.wg);
      this.constants.set(value.data, constant);
    }
    return constant;
  }

  /**
   * The copy that another rehearsal has made, of the same elements. If all elements are the same,
   * it may have more of them.
   */
  #sharedCopyOf({ data }: Stored): HeapTensor<Uint8Array> | undefined {
    const { constants } = this.options;
    if (!constants) return undefined;
    const [known = [], copy] = [...constants][this.constants.size] ?? [];
    const elements = known as Float32Array;
    const isSame =
      elements.length === data.length
        ? elements.every((element, i) => Object.is(element, data[i]))
        : elements.length > data.length &&
          uniformOf(elements) !== undefined &&
          Object.is(uniformOf(elements), uniformOf(data));
    if (!isSame) throw new NotMoving();
    return copy;
  }

  /** The elements of an operand, where a product reads them. */
  #operand(value: Stored): DataArray {
    const { chunk, isOpen } = value.root;
    if (chunk || isOpen) return value.elements;
    const { buffer, byteOffset } = this.#constant(value).data;
    return viewOf(storedAs(value.dtype), buffer, byteOffset, value.size);
  }

  /** Makes the program of the steps so far, and runs it. */
  #flush(): void {
    if (this.#isTooSmall) {
      const { peak, planned } = this.#arena;
      this.needed = peak;
      // A plan that did not suffice is not made again.
      if (this.isWhole && planned.length === 0)
        ({ peak: this.needed, planned: this.planned } = this.#arena.plan());
      throw new TooSmall();
    }
    const owners = this.#owners;
    const { length: count } = owners;
    const part: Part = { program: 0, count, steps: this.steps, owners, host: undefined };
    this.parts.push(part);
    // The caller of a rehearsal takes the words.
    if (this.#words.length === 0 || this.options.isRehearsal) return;
    const { core } = this.place;
    try {
      part.program = makeProgram(core, this.#words);
    } catch (error) {
      throw errorIn('run', (this.steps[this.#step] as Step).node, error);
    }
    this.#words.length = 0;
    this.#owners = [];
    runPart(core, part);
  }
}
