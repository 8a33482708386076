/**
 * Programs: the steps of a run for one set of input shapes, which the core computes by one call.
 * The first run with a set of shapes is recorded.
 */
import type { Gemm } from '../../api/create-gemm.js';
import { OutOfMemoryError } from '../../base/errors.js';
import { messageOf } from '../../base/port.js';
import type { Core } from '../../instance/core.js';
import type { HeapTensor } from '../../instance/heap.js';
import { endRecording } from '../operators/record.js';
import type { Stored } from '../operators/storage.js';
import { storedAs } from '../read/value.js';
import type { Range } from './arena.js';
import { errorIn } from './errors.js';
import type { ModelProduct } from './model.js';
import {
  operate,
  operatorsIn,
  OtherShapes,
  type Part,
  type Place,
  type Program,
  Recording,
  runPart,
  TooSmall,
  Unfused,
  Words,
} from './recording.js';
import type { Step, Steps } from './steps.js';

/** How many programs a model keeps: those that ran last. */
const mostPrograms = 8;

/** @internal The programs of a model. */
export class Programs {
  readonly #programs = new Map<string, Program>();
  readonly #place: Place;
  #arena: HeapTensor<Uint8Array> | undefined;

  constructor(
    readonly core: Core,
    readonly wg: Gemm,
    model: Steps,
  ) {
    const numbers = core.dtypes.map((dtype, i) => [dtype, i]);
    const bool = core.dtypes.indexOf(storedAs('bool'));
    const types = Object.fromEntries([...numbers, ['bool', bool]]) as Place['types'];
    const operators = operatorsIn(core);
    this.#place = { core, wg, model, operators, types, words: new Words() };
  }

  /** Runs the model. Returns the values of its outputs, which are valid until the next run. */
  run(feeds: readonly Stored[]): readonly Stored[] {
    return last(this.#run(feeds, Infinity));
  }

  /** As `run`, with a `pause` between steps. The run ends if `pause` rejects. */
  async runWithPauses(
    feeds: readonly Stored[],
    pause: () => Promise<void> | undefined,
  ): Promise<readonly Stored[]> {
    const slices = this.#run(feeds, 1);
    for (;;) {
      const { done, value } = slices.next();
      if (done) return value;
      const waiting = pause();
      if (waiting) await waiting;
    }
  }

  /** Runs the model, and computes each product on its own. */
  explain(feeds: readonly Stored[]): ModelProduct[] {
    const products: ModelProduct[] = [];
    this.#drop(this.#record(feeds, new Set(), products));
    return products;
  }

  dispose(): void {
    this.#freeArena();
  }

  /** Runs the model in slices: at most `most` steps at a time. */
  *#run(feeds: readonly Stored[], most: number): Slices<readonly Stored[]> {
    endRecording();
    const key = feeds.map(({ shape }) => shape.join()).join(';');
    const unfused = new Set<Step>();
    const program = this.#programs.get(key);
    if (program) {
      this.#programs.delete(key);
      this.#programs.set(key, program); // as the last one that ran
      try {
        yield* this.#replay(program, feeds, most);
        return program.outputs;
      } catch (error) {
        this.#programs.delete(key);
        this.#drop(program);
        if (error instanceof Unfused) unfused.add(error.step);
        else if (!(error instanceof OtherShapes)) throw error;
      }
    }
    const recorded = this.#record(feeds, unfused);
    this.#programs.set(key, recorded);
    this.#dropOldest();
    return recorded.outputs;
  }

  /** Records a run. @param products what `explain` returns */
  #record(feeds: readonly Stored[], unfused: Set<Step>, products?: ModelProduct[]): Program {
    let planned: readonly Range[] = [];
    for (let hasGrown = false; ;) {
      const recording = new Recording(this.#place, this.#arena, unfused, products, planned);
      planned = [];
      if (products) products.length = 0;
      try {
        return recording.run(feeds);
      } catch (error) {
        this.#drop(recording);
        if (error instanceof Unfused) unfused.add(error.step);
        else if (error instanceof TooSmall) {
          ({ planned } = recording);
          if (recording.needed <= (this.#arena?.size ?? 0)) continue;
          this.#growFor(recording);
          hasGrown = true;
        } else {
          if (hasGrown) this.#freeArena(); // no program uses it yet
          throw error;
        }
      }
    }
  }

  *#replay(
    { feeds: places, parts }: Program,
    feeds: readonly Stored[],
    most: number,
  ): Slices<void> {
    places.forEach((place, i) => place.elements.set((feeds[i] as Stored).data as never));
    for (const part of parts) {
      for (let first = 0; first < part.count; first += most) {
        if (first > 0) yield;
        runPart(this.core, part, first, Math.min(first + most, part.count));
      }
      runHost(part);
    }
  }

  /** Keeps the programs that ran last. */
  #dropOldest(): void {
    for (const [key, program] of this.#programs) {
      if (this.#programs.size <= mostPrograms) return;
      this.#programs.delete(key);
      this.#drop(program);
    }
  }

  /** Replaces the memory of the programs by as much as a run needs. The programs then end. */
  #growFor({ needed, largest, isWhole, steps }: Recording): void {
    this.#freeArena();
    const alloc = (bytes: number) => this.wg.alloc('uint8', [bytes]);
    try {
      // A node that runs here ends the recording before the whole need is known.
      if (!isWhole) this.#arena = alloc(needed + needed / 2);
    } catch {
      // The need itself may fit.
    }
    try {
      this.#arena ??= alloc(needed);
    } catch (refused) {
      const found = `the values that are needed at once take ${needed} bytes`;
      const error = new OutOfMemoryError('run', '', `run: ${found} (${messageOf(refused)})`);
      const step = steps[largest];
      throw step ? errorIn('run', step.node, error) : error;
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
      if (program) this.core.guard('run', () => this.core.module.dropProgram(program));
  }
}

/** A generator of a run: each iteration computes a slice of the run. */
type Slices<T> = Generator<void, T, void>;

/** Runs all slices, and returns the result. */
function last<T>(slices: Slices<T>): T {
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
  }
}

/** Runs the node that ends a part. */
function runHost({ host }: Part): void {
  if (!host) return;
  const results = operate(host.checked, host.inputs);
  host.outputs.forEach((output, i) => {
    const result = results[i];
    if (!result) return;
    if (result.dtype !== output.dtype || result.shape.join() !== output.shape.join())
      throw new OtherShapes();
    output.elements.set(result.data as never);
  });
}
