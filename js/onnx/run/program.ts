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
import { Calculator } from './calculator.js';
import { errorIn } from './errors.js';
import { enlarge, type Kept, KeptRoot } from './kept.js';
import type { ModelProduct } from './model.js';
import {
  feedsAt,
  growthOf,
  movingOf,
  type Moving,
  type Rehearsal,
  rowsFor,
  sizesOf,
  valuesAt,
} from './moving.js';
import {
  makeProgram,
  operate,
  OtherShapes,
  type Part,
  type Place,
  type Program,
  Recording,
  type RecordingOptions,
  runPart,
  TooSmall,
  Unfused,
} from './recording.js';
import { ProgramSet, type State } from './state.js';
import type { Step, Steps } from './steps.js';
import { Words } from './words.js';

/** How many programs a model keeps: those that ran last. */
const mostPrograms = 8;

/** @internal The programs of a model. */
export class Programs {
  /** The programs of runs without a state. */
  readonly #own = new ProgramSet();
  readonly #states = new Set<State>();
  readonly #place: Place;
  #arena: HeapTensor<Uint8Array> | undefined;

  constructor(
    readonly core: Core,
    readonly wg: Gemm,
    model: Steps,
  ) {
    this.#place = { core, wg, model, calculator: new Calculator(core), words: new Words() };
  }

  /** Runs the model. Returns the values of its outputs, which are valid until the next run. */
  run(feeds: readonly Stored[], state?: State): readonly Stored[] {
    return last(this.#run(feeds, Infinity, state));
  }

  /** As `run`, with a `pause` between steps. The run ends if `pause` rejects. */
  async runWithPauses(
    feeds: readonly Stored[],
    pause: () => Promise<void> | undefined,
    state?: State,
  ): Promise<readonly Stored[]> {
    const slices = this.#run(feeds, 1, state);
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
    this.#drop(this.#record(feeds, { products }).program);
    return products;
  }

  /** Runs the model, and measures each step. Returns the milliseconds. */
  profile(
    feeds: readonly Stored[],
    state?: State,
  ): { times: ReadonlyMap<Step, StepTime>; outputs: readonly Stored[] } {
    this.run(feeds, state);
    const set = state?.programs ?? this.#own;
    const program = set.programs.get(keyOf(sizesOf(feeds))) ?? (set.moving as Moving).program;
    const times = new Map<Step, StepTime>();
    const measure = (step: Step, isHost: boolean, run: () => void) => {
      const start = performance.now();
      run();
      const before = times.get(step);
      const time = performance.now() - start + (before?.time ?? 0);
      times.set(step, { time, isHost: isHost || before?.isHost === true });
    };
    setFeeds(program, feeds);
    for (const part of program.parts) {
      part.owners.forEach((owner, i) =>
        measure(part.steps[owner] as Step, false, () => runPart(this.core, part, i, i + 1)),
      );
      if (part.host) measure(part.host.step, true, () => this.#runHost(part));
    }
    return { times, outputs: program.outputs };
  }

  /** Disposes of the states, too. */
  dispose(): void {
    for (const state of this.#states) state.dispose();
    this.#freeArena();
  }

  add(state: State): void {
    this.#states.add(state);
  }

  /** Drops the programs of a state. @param isEnd whether it will have no others */
  drop(state: State, isEnd: boolean): void {
    this.#dropSet(state.programs);
    if (isEnd) this.#states.delete(state);
  }

  /** Gives kept tensors more memory. The programs of their state then end. */
  enlarge(state: State, shapes: ReadonlyMap<Kept, readonly number[]>): void {
    enlarge(shapes);
    this.drop(state, false);
  }

  /** Runs the model in slices: at most `most` steps at a time. */
  *#run(feeds: readonly Stored[], most: number, state?: State): Slices<readonly Stored[]> {
    endRecording();
    const set = state?.programs ?? this.#own;
    const { programs } = set;
    const sizes = sizesOf(feeds);
    const key = keyOf(sizes);
    const unfused = new Set<Step>();
    const moved = state && this.#moved(state, feeds, sizes);
    const program = moved ?? programs.get(key);
    if (program) {
      if (!moved) {
        programs.delete(key);
        programs.set(key, program); // as the last one that ran
      }
      try {
        yield* this.#replay(program, feeds, most);
        return program.outputs;
      } catch (error) {
        if (moved) set.moving = undefined;
        else programs.delete(key);
        this.#drop(program);
        if (error instanceof Unfused) {
          set.wait = Infinity;
          unfused.add(error.step);
        } else if (!(error instanceof OtherShapes)) throw error;
      }
    }
    const recorded = this.#record(feeds, { unfused, state }).program;
    programs.set(key, recorded);
    this.#dropOldest(programs);
    return recorded.outputs;
  }

  /** The program of a state for feeds that have more rows than in the run before. */
  #moved(state: State, feeds: readonly Stored[], sizes: readonly number[]): Program | undefined {
    const set = state.programs;
    if (!set.moving || rowsFor(set.moving, sizes) === undefined)
      this.#rehearse(state, feeds, sizes);
    set.last = sizes;
    const { moving } = set;
    const rows = moving && rowsFor(moving, sizes);
    if (rows === undefined) return undefined;
    const { first, changes, program } = moving as Moving;
    const { words } = this.#place;
    words.length = 0;
    words.append(first.words);
    for (const [index, change] of changes)
      words.set(index, (first.words[index] as number) + rows * change);
    const [part] = program.parts as [Part];
    if (words.length > 0) part.program = makeProgram(this.core, words, part.program);
    return ((moving as Moving).program = { ...program, ...valuesAt(moving as Moving, rows) });
  }

  /** Makes programs for as many rows as the tensors of a state have room for. */
  #rehearse(state: State, feeds: readonly Stored[], sizes: readonly number[]): void {
    const set = state.programs;
    const growth = growthOf(state.kept, set.last, sizes);
    if (!growth || !(growth.end >= 2) || --set.wait > 0) return;
    const { rates, end } = growth;
    const rehearsals: Rehearsal[] = [];
    let moving: Moving | undefined;
    try {
      // The last one has the largest values. The others have theirs at the same places.
      let options: Omit<Partial<RecordingOptions>, 'unfused'> = { isRehearsal: true };
      for (const rows of [end, 0, 1]) {
        const given = feedsAt(feeds, rates, rows);
        const { program, ranges, signs } = this.#record(given, { ...options, state });
        rehearsals.push({ words: this.#place.words.taken(), program, signs });
        options = { planned: ranges, constants: program.constants, ...options };
      }
      const [last, first, second] = rehearsals as [Rehearsal, Rehearsal, Rehearsal];
      moving = movingOf(sizes, rates, end, [first, second, last]);
    } catch {
      // The run throws the error, if it fails, too.
    }
    const own = set.moving;
    if (moving) {
      if (own) this.#drop(own.program);
      set.moving = moving;
      set.failures = 0;
    } else if (rehearsals[0]) {
      this.#drop(rehearsals[0].program);
    }
    if (!moving) set.wait = 2 ** ++set.failures;
  }

  /** Records a run. */
  #record(
    feeds: readonly Stored[],
    options: Omit<Partial<RecordingOptions>, 'unfused'> & {
      unfused?: Set<Step>;
      state?: State | undefined;
    },
  ): Pick<Recording, 'ranges' | 'signs'> & { program: Program } {
    const { unfused = new Set(), products, state } = options;
    let planned = options.planned ?? [];
    for (let hasGrown = false; ;) {
      const recording = new Recording(this.#place, this.#arena, { ...options, unfused, planned });
      planned = [];
      if (products) products.length = 0;
      try {
        const program = recording.run(feeds);
        return { program, ranges: recording.ranges, signs: recording.signs };
      } catch (error) {
        if (!options.constants) this.#drop(recording);
        if (error instanceof Unfused) unfused.add(error.step);
        else if (error instanceof TooSmall) {
          ({ planned } = recording);
          if (recording.large.size > 0) this.enlarge(state as State, recording.large);
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

  *#replay(program: Program, feeds: readonly Stored[], most: number): Slices<void> {
    setFeeds(program, feeds);
    for (const part of program.parts) {
      for (let first = 0; first < part.count; first += most) {
        if (first > 0) yield;
        runPart(this.core, part, first, Math.min(first + most, part.count));
      }
      this.#runHost(part);
    }
  }

  /** Runs the node that ends a part. */
  #runHost({ host }: Part): void {
    if (!host) return;
    const results = operate(host.checked, host.inputs, this.#place.calculator);
    host.outputs.forEach((output, i) => {
      const result = results[i];
      if (!result) return;
      if (result.dtype !== output.dtype || result.shape.join() !== output.shape.join())
        throw new OtherShapes();
      output.elements.set(result.data as never);
    });
  }

  /** Keeps the programs that ran last. */
  #dropOldest(programs: Map<string, Program>): void {
    for (const [key, program] of programs) {
      if (programs.size <= mostPrograms) return;
      programs.delete(key);
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
    this.#dropSet(this.#own);
    for (const state of this.#states) this.#dropSet(state.programs);
    this.#arena?.dispose();
    this.#arena = undefined;
  }

  #dropSet(set: ProgramSet): void {
    for (const program of set.programs.values()) this.#drop(program);
    set.programs.clear();
    if (set.moving) this.#drop(set.moving.program);
    set.moving = undefined;
  }

  #drop({ parts, constants }: Pick<Program, 'parts' | 'constants'>): void {
    for (const constant of constants.values()) constant.dispose();
    if (this.core.disposed) return;
    for (const { program } of parts)
      if (program) this.core.guard('run', () => this.core.module.dropProgram(program));
  }
}

/** The time of a step in milliseconds, and whether it runs in JavaScript. */
interface StepTime {
  readonly time: number;
  readonly isHost: boolean;
}

const keyOf = (sizes: readonly number[]): string => sizes.join();

/** Copies feeds to their places. Kept tensors are there. */
function setFeeds({ feeds: places }: Program, feeds: readonly Stored[]): void {
  places.forEach((place, i) => {
    if (!(place.root instanceof KeptRoot)) place.elements.set((feeds[i] as Stored).data as never);
  });
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
