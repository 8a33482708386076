/**
 * Programs: the steps of a run for one set of input shapes, which the core computes by one call.
 *
 * The first run with a set of shapes is recorded. Its nodes run as ever, on values whose elements
 * only a run knows: their data cannot be read. Operators record steps instead, and products their
 * block of arguments. A node that must read such elements, or for which src/nn/ has no operator,
 * ends a part of the program: what was recorded so far is computed, and the node runs here, in each
 * run. What it makes may have another shape in another run; then the run is recorded again.
 */
import { bytesOf, viewOf } from '../../base/arrays.js';
import { OutOfMemoryError } from '../../base/errors.js';
import { messageOf } from '../../base/port.js';
import type { DataArray } from '../../base/tensor.js';
import type { Core } from '../../instance/core.js';
import type { HeapTensor } from '../../instance/heap.js';
import { isRounded, type Recorder, recordBy, type StepTensor } from '../operators/record.js';
import { keyOf, type Run } from '../operators/operator.js';
import {
  hold,
  inArray,
  keep,
  NeedsRun,
  newArray,
  Root,
  sizeOf,
  Stored,
} from '../operators/storage.js';
import type { OnnxNode } from '../read/model.js';
import { type Make, type OnnxDType, storedAs, type Value } from '../read/value.js';
import { Arena } from './arena.js';

/** How many programs a model keeps: those that ran last. */
const mostPrograms = 8;

const floats = 'float32 float64 float16 bfloat16';
const numbers = `${floats} int32 uint32 int64 uint64 int8 uint8`;

/** The types of the first tensor of a step; others are the same or follow from the operator. */
const takes: Readonly<Record<string, string>> = {
  Add: numbers,
  Sub: numbers,
  Mul: numbers,
  Div: numbers,
  Copy: `${numbers} bool`,
  Cast: `${numbers} bool`,
  CastToBool: `${numbers} bool`,
  Gather: `${numbers} bool`,
  Where: 'bool',
  Relu: numbers,
  Clip: numbers,
  Square: numbers,
  Cube: numbers,
  QuantizeLinear: 'float32',
  DynamicQuantizeLinear: 'float32',
  DequantizeLinear: 'int8 uint8 int32',
};

/** An operator of the model. */
interface Runnable {
  readonly node: OnnxNode;
  readonly run: Run | undefined;
}

/** A step of the model as programs run it. */
export interface ProgramNode extends Runnable {
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /** The names whose values end after the node. */
  readonly ends: readonly number[];
  readonly product: unknown;
  /** The steps that run instead of a fused one that refuses its operands. */
  readonly originals: readonly ProgramNode[];
}

/** Memory that products and operators of a recorded run take. */
export interface RunMemory {
  make(dtype: OnnxDType, shape: readonly number[]): Stored;
  release(value: Stored): void;
  /** The elements of an operand, where a product reads them. */
  operand(value: Stored): DataArray;
  /** Runs an operator that a product could not compute, too. */
  apply(checked: Runnable, inputs: readonly (Stored | undefined)[]): Stored[];
  /** Calls the product. */
  call(body: () => unknown): unknown;
}

/** A part of a program: steps of the core, and then a node that runs here. */
interface Part {
  /** The address of the steps; 0: there are none. */
  program: number;
  /** By the number of a step in the program: the step of the model. */
  readonly nodes: readonly ProgramNode[];
  host?: {
    readonly checked: Runnable;
    readonly inputs: readonly (Stored | undefined)[];
    readonly outputs: readonly Stored[];
  };
}

interface Program {
  readonly feeds: readonly Stored[];
  readonly parts: Part[];
  readonly outputs: readonly Stored[];
  readonly constants: Constants;
}

/** Copies of known values in the memory of the instance. */
type Constants = Map<DataArray, HeapTensor<Uint8Array>>;

/** What the session does for programs. */
export interface Session {
  readonly nodes: readonly ProgramNode[];
  /** Values at the start of a run, by number. */
  readonly start: readonly (Stored | undefined)[];
  readonly feeds: readonly number[];
  readonly outputs: readonly number[];
  alloc(bytes: number): HeapTensor<Uint8Array>;
  /** Computes a product with its links by `memory`. Returns its results. */
  multiply(step: ProgramNode, values: readonly (Stored | undefined)[], memory: RunMemory): Stored[];
  errorIn(node: OnnxNode, error: unknown): unknown;
}

/** The results of a node that runs here have other shapes than when it was recorded. */
class OtherShapes extends Error {}
/** A fused step refuses its operands when it runs. */
class Unfused extends Error {
  constructor(readonly step: ProgramNode) {
    super();
  }
}
/** The memory of the programs is too small. */
class TooSmall extends Error {}

/** @internal The programs of a model. */
export class Programs {
  readonly #programs = new Map<string, Program>();
  /** Of the model's own values. Programs own the copies of what their recording computed. */
  readonly #constants: Constants = new Map();
  readonly #numbers: ReadonlyMap<string, number>;
  #arena: HeapTensor<Uint8Array> | undefined;

  constructor(
    readonly core: Core,
    readonly session: Session,
  ) {
    const numbers = new Map<string, number>();
    for (let i = 0; ; ++i) {
      const name = core.module.operatorName?.(i) ?? 0;
      if (name === 0) break;
      numbers.set(core.text(name), i);
    }
    this.#numbers = numbers;
  }

  /** Runs the model. Returns the values of its outputs, which are valid until the next run. */
  run(feeds: readonly Stored[]): readonly Stored[] {
    const key = feeds.map(({ shape }) => shape.join()).join(';');
    const unfused = new Set<ProgramNode>();
    const program = this.#programs.get(key);
    if (program) {
      this.#programs.delete(key);
      try {
        this.#replay(program, feeds);
        this.#programs.set(key, program);
        return program.outputs;
      } catch (error) {
        this.#drop(program);
        if (error instanceof Unfused) unfused.add(error.step);
        else if (!(error instanceof OtherShapes)) throw error;
      }
    }
    for (let hasGrown = false; ;) {
      const recording = this.#recordingOf(unfused);
      try {
        const recorded = recording.run(feeds);
        this.#programs.set(key, recorded);
        this.#dropOldest();
        return recorded.outputs;
      } catch (error) {
        this.#drop(recording);
        if (error instanceof Unfused) unfused.add(error.step);
        else if (error instanceof TooSmall) {
          this.#growFor(recording);
          hasGrown = true;
        } else {
          if (hasGrown) this.#freeArena(); // no program uses it yet
          throw error;
        }
      }
    }
  }

  #recordingOf(unfused: ReadonlySet<ProgramNode>): Recording {
    return new Recording(
      this.core,
      this.session,
      this.#arena,
      this.#numbers,
      unfused,
      (value, own) => this.#constant(value, own),
    );
  }

  /** Keeps the programs that ran last. */
  #dropOldest(): void {
    for (const [key, program] of this.#programs) {
      if (this.#programs.size <= mostPrograms) return;
      this.#programs.delete(key);
      this.#drop(program);
    }
  }

  dispose(): void {
    this.#freeArena();
    for (const constant of this.#constants.values()) constant.dispose();
    this.#constants.clear();
  }

  /** Replaces the memory of the programs by as much as a run needs. The programs then end. */
  #growFor({ needed, largest, isWhole, nodes }: Recording): void {
    this.#freeArena();
    try {
      // A node that runs here ends the recording before the whole need is known.
      if (!isWhole) this.#arena = this.session.alloc(needed + needed / 2);
    } catch {
      // The need itself may fit.
    }
    try {
      this.#arena ??= this.session.alloc(needed);
    } catch (refused) {
      const found = `the values that are needed at once take ${needed} bytes`;
      const error = new OutOfMemoryError('run', '', `run: ${found} (${messageOf(refused)})`);
      const step = nodes[largest];
      throw step ? this.session.errorIn(step.node, error) : error;
    }
  }

  #freeArena(): void {
    for (const program of this.#programs.values()) this.#drop(program);
    this.#programs.clear();
    this.#arena?.dispose();
    this.#arena = undefined;
  }

  #drop({ parts, constants }: Pick<Program, 'parts' | 'constants'>): void {
    for (const constant of constants.values()) constant.dispose();
    if (this.core.disposed) return;
    for (const { program } of parts)
      if (program) this.core.guard('run', () => this.core.module.dropProgram?.(program));
  }

  #replay({ feeds: places, parts }: Program, feeds: readonly Stored[]): void {
    places.forEach((place, i) => place.elements.set((feeds[i] as Stored).data as never));
    for (const part of parts) {
      runPart(this.core, this.session, part);
      const { host } = part;
      if (!host) continue;
      const results = operate(this.session, host.checked, host.inputs);
      host.outputs.forEach((output, i) => {
        const result = results[i];
        if (!result) return;
        if (result.dtype !== output.dtype || result.shape.join() !== output.shape.join())
          throw new OtherShapes();
        output.elements.set(result.data as never);
      });
    }
  }

  #constant({ data, root }: Stored, own: Constants): HeapTensor<Uint8Array> {
    const constants = root.uses === Infinity ? this.#constants : own;
    let constant = constants.get(data);
    if (!constant) {
      constant = this.session.alloc(Math.max(data.byteLength, 1));
      const { buffer, byteOffset, byteLength } = data;
      constant.data.set(new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength));
      constants.set(data, constant);
    }
    return constant;
  }
}

/** Runs an operator here. */
function operate(
  session: Session,
  { node, run }: Runnable,
  inputs: readonly (Stored | undefined)[],
): (Value | undefined)[] {
  try {
    return [(run as Run)(inputs, inArray)].flat();
  } catch (error) {
    throw session.errorIn(node, error);
  }
}

/** Computes the steps of a part. */
function runPart(core: Core, session: Session, { program, nodes }: Part): void {
  if (program === 0) return;
  const { module } = core;
  const code = core.guard('run', () => module.runProgram?.(program)) as number;
  if (code === 0) return;
  const step = nodes[module.failedNode?.(program) as number] as ProgramNode;
  if (step.originals.length > 0) throw new Unfused(step);
  try {
    core.check(code, 'run');
  } catch (error) {
    throw session.errorIn(step.node, error);
  }
}

/** A result of an operator: it becomes a known value if the operator writes its elements. */
class Draft extends Stored {
  #array: DataArray | undefined;
  #made: Stored | undefined;

  constructor(
    dtype: OnnxDType,
    shape: readonly number[],
    size: number,
    readonly over: readonly Value[],
  ) {
    super(dtype, shape, size, noRoot);
  }
  /** The value of the step that computes the result. */
  become(value: Stored): void {
    this.#made = value;
  }
  get isKnown(): boolean {
    return this.#array !== undefined;
  }
  get made(): Stored | undefined {
    return this.#made;
  }
  override get data(): DataArray {
    if (this.#made) return this.#made.data;
    return (this.#array ??= newArray(this.dtype, this.size));
  }
  override get elements(): DataArray {
    return this.#made ? this.#made.elements : this.data;
  }
  override reshape(shape: readonly number[]): Stored {
    return this.finished().reshape(shape);
  }
  finished(): Stored {
    return (this.#made ??= hold(this, true));
  }
}
const noRoot = new Root(undefined, undefined, false);

/** The recording of a run. */
class Recording implements Recorder, RunMemory {
  readonly parts: Part[] = [];
  readonly constants: Constants = new Map();
  /** Bytes that the programs need, if their memory is too small. */
  needed = 0;
  /** The step at which they need the most. */
  largest = 0;
  /** Whether `needed` is of the whole run. */
  isWhole = false;
  /** The steps so far. Their numbers are in the words of programs. */
  readonly nodes: ProgramNode[] = [];
  readonly #arena = new Arena();
  readonly #sizes = new Map<Root, number>();
  #words: number[] = [];
  #isLast: (value: Stored) => boolean = () => false;

  constructor(
    readonly core: Core,
    readonly session: Session,
    readonly memory: HeapTensor<Uint8Array> | undefined,
    readonly numbers: ReadonlyMap<string, number>,
    readonly unfused: ReadonlySet<ProgramNode>,
    readonly constant: (value: Stored, own: Constants) => HeapTensor<Uint8Array>,
  ) {}

  get #isTooSmall(): boolean {
    return this.#arena.peak > (this.memory?.size ?? 0);
  }

  run(given: readonly Stored[]): Program {
    const { session } = this;
    const values: (Stored | undefined)[] = [...session.start];
    const feeds = given.map((feed, i) => {
      const place = this.make(feed.dtype, feed.shape);
      if (!this.#isTooSmall) place.elements.set(feed.data as never);
      values[session.feeds[i] as number] = keep(place);
      return place;
    });
    try {
      const queue = [...session.nodes].reverse();
      for (let node = queue.pop(); node; node = queue.pop())
        if (this.unfused.has(node) || !this.#record(node, values))
          queue.push(...[...node.originals].reverse());
    } catch (error) {
      // A step that waits to be computed may be at fault, and comes first.
      const isOwn = error instanceof TooSmall || error instanceof Unfused;
      if (!isOwn && !(error instanceof OutOfMemoryError)) this.#flush();
      throw error;
    }
    this.isWhole = true;
    this.#flush();
    return {
      feeds,
      parts: this.parts,
      constants: this.constants,
      outputs: session.outputs.map((number) => values[number] as Stored),
    };
  }

  /** Records a step, or runs it here. Returns false if it is fused and refuses its operands. */
  #record(step: ProgramNode, values: (Stored | undefined)[]): boolean {
    const results = this.#run(step, values);
    if (!results) return false;
    step.outputs.forEach((number, i) => {
      const result = results[i];
      if (number >= 0 && result) values[number] = keep(result);
    });
    for (const number of step.ends) {
      const value = values[number];
      if (value) this.release(value);
      values[number] = undefined;
    }
    return true;
  }

  /** The results of a step; undefined if it is fused and refuses its operands. */
  #run(
    step: ProgramNode,
    values: readonly (Stored | undefined)[],
  ): readonly (Stored | undefined)[] | undefined {
    const { length } = this.#words;
    const before = this.parts.length;
    this.nodes.push(step);
    try {
      if (step.product) return this.session.multiply(step, values, this);
      const inputs = step.inputs.map((number) => values[number]);
      const isLast = (value: Stored) => step.ends.some((number) => values[number] === value);
      return this.#operate(step, inputs, isLast);
    } catch (error) {
      const isOwn = error instanceof TooSmall || error instanceof Unfused;
      if (isOwn || step.originals.length === 0) throw error;
      // Parts that the step has ended stay: their steps write what nothing reads.
      this.#words.length = this.parts.length === before ? length : 0;
      return undefined;
    }
  }

  get #node(): number {
    return Math.max(this.nodes.length - 1, 0);
  }

  make(dtype: OnnxDType, shape: readonly number[]): Stored {
    const size = sizeOf(shape);
    const bytes = size * bytesOf(storedAs(dtype));
    if (!(bytes < 2 ** 32))
      throw new OutOfMemoryError('run', '', `run: cannot allocate ${size} elements of ${dtype}`);
    const { peak } = this.#arena;
    const start = this.#arena.take(bytes);
    if (this.#arena.peak > peak) this.largest = this.#node;
    const root = this.#isTooSmall
      ? new Root(undefined, newArray(dtype, 0), true, start) // nothing is computed any more
      : new Root(this.memory, undefined, true, start);
    root.isOpen = true;
    this.#sizes.set(root, bytes);
    return new Stored(dtype, shape, size, root);
  }

  release({ root }: Stored): void {
    if (--root.uses !== 0) return;
    const bytes = this.#sizes.get(root);
    if (bytes === undefined) return;
    this.#sizes.delete(root);
    this.#arena.giveUp(root.start, bytes);
  }

  step(
    name: string,
    dims: readonly number[],
    tensors: readonly StepTensor[],
    attributes: readonly number[],
  ): boolean {
    const number = this.numbers.get(name);
    const types = takes[name] ?? floats;
    const [first] = tensors as [StepTensor];
    if (number === undefined || !types.split(' ').includes(first.value.dtype)) return false;
    const outputs = tensors.flatMap(({ value }) =>
      value instanceof Draft && !value.isKnown && value.made === undefined ? value : [],
    );
    const last = tensors.at(-1) as StepTensor;
    if (!(last.value instanceof Draft) || last.value.isKnown) return false;
    const placed = tensors.map(({ value }) => this.#place(value, outputs));
    const body = [dims.length || 1, ...(dims.length ? dims : [1])];
    tensors.forEach(({ strides, start = 0, value: { dtype } }, i) => {
      const bytes = bytesOf(storedAs(dtype));
      body.push(
        this.core.dtypes.indexOf(storedAs(dtype)),
        (placed[i] as number) + start * bytes,
        ...(dims.length ? strides : [0]),
      );
    });
    this.#words.push(number, this.#node, body.length + attributes.length);
    for (const word of body) this.#words.push(word);
    this.#words.push(...attributes);
    return true;
  }

  /** The address of a value. An output gets its memory here. */
  #place(value: Value, outputs: readonly Draft[]): number {
    if (value instanceof Draft && outputs.includes(value)) {
      const taken = value.over.find(
        (one): one is Stored =>
          one instanceof Stored &&
          one.root.isOpen &&
          one.root.uses === 1 &&
          one.size === value.size &&
          one.dtype === value.dtype &&
          this.#isLast(one),
      );
      value.become(
        taken
          ? new Stored(value.dtype, value.shape, value.size, taken.root)
          : this.make(value.dtype, value.shape),
      );
    }
    const stored = value instanceof Draft ? (value.made ?? value.finished()) : value;
    const own = stored instanceof Stored ? stored : hold(stored, false);
    const { chunk, start, isOpen } = own.root;
    if (chunk) return chunk.data.byteOffset + start;
    if (isOpen) return 64 + start; // the memory is too small
    return this.constant(own, this.constants).data.byteOffset;
  }

  apply(checked: Runnable, inputs: readonly (Stored | undefined)[]): Stored[] {
    return this.#operate(checked, inputs, () => false) as Stored[];
  }

  #operate(
    checked: Runnable,
    inputs: readonly (Stored | undefined)[],
    isLast: (value: Stored) => boolean,
  ): (Stored | undefined)[] {
    const { node, run } = checked;
    const words = this.#words.length;
    const made: Draft[] = [];
    const make: Make = (dtype, shape, over) => {
      const draft = new Draft(dtype, shape, sizeOf(shape), over ?? []);
      made.push(draft);
      return draft;
    };
    this.#isLast = (value) =>
      isLast(value) && !made.some((draft) => draft.made?.root === value.root);
    let results: (Value | undefined)[];
    try {
      const isOpen = isRounded(keyOf(node)) || inputs.some((input) => input?.root.isOpen);
      results = recordBy(isOpen ? this : undefined, () => [(run as Run)(inputs, make)].flat());
    } catch (error) {
      if (!(error instanceof NeedsRun)) throw this.session.errorIn(node, error);
      this.#words.length = words;
      for (const { made: value } of made)
        if (value && this.#sizes.has(value.root) && value.root.uses === 0) {
          ++value.root.uses;
          this.release(value);
        }
      return this.#host(checked, inputs);
    }
    return results.map((result) => {
      if (result === undefined) return undefined;
      if (result instanceof Draft) return result.finished();
      if (result instanceof Stored) return result;
      return hold(result, false);
    });
  }

  /** Runs a node here, after what was recorded. */
  #host(checked: Runnable, inputs: readonly (Stored | undefined)[]): Stored[] {
    this.#flush();
    const results = operate(this.session, checked, inputs);
    const outputs = results.map((result) => {
      const { dtype, shape } = result as Value;
      return this.make(dtype, shape);
    });
    if (!this.#isTooSmall)
      outputs.forEach((output, i) => output.elements.set((results[i] as Value).data as never));
    (this.parts.at(-1) as Part).host = { checked, inputs, outputs };
    return outputs;
  }

  operand(value: Stored): DataArray {
    const { chunk, isOpen } = value.root;
    if (chunk || isOpen) return value.elements;
    const { buffer, byteOffset } = this.constant(value, this.constants).data;
    return viewOf(storedAs(value.dtype), buffer, byteOffset, value.size);
  }

  call(body: () => unknown): undefined {
    const { core } = this;
    if (this.#isTooSmall) return;
    core.withoutComputing((operation, end) => {
      const { block } = core;
      this.#words.push(-1 - operation, this.#node, end);
      for (let i = 0; i < end; ++i) this.#words.push(block[i] as number);
    }, body);
  }

  /** Makes the program of the steps so far, and runs it. */
  #flush(): void {
    if (this.#isTooSmall) {
      this.needed = this.#arena.peak;
      throw new TooSmall();
    }
    const part: Part = { program: 0, nodes: this.nodes };
    this.parts.push(part);
    if (this.#words.length === 0) return;
    const { core } = this;
    const { module } = core;
    const { length } = this.#words;
    try {
      const words = core.allocate(8 * length, 'run');
      try {
        new Float64Array(core.buffer, words, length).set(this.#words);
        core.check(core.guard('run', () => module.makeProgram?.(words, length)) as number, 'run');
        part.program = core.block[0] as number;
      } finally {
        module.release(words);
      }
    } catch (error) {
      throw this.session.errorIn((this.nodes[this.#node] as ProgramNode).node, error);
    }
    this.#words = [];
    runPart(core, this.session, part);
  }
}
