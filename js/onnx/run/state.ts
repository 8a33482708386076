/** States: outputs of a run that are inputs of the next one, with the programs for them. */
import type { Gemm } from '../../api/create-gemm.js';
import { ArgumentError, describe, DTypeError, ShapeError } from '../../base/errors.js';
import { viewOfBytes } from '../../call/operand.js';
import { withSize } from '../operators/define.js';
import type { Stored } from '../operators/storage.js';
import type { Value } from '../read/value.js';
import { checkShape, type ModelInput } from './feeds.js';
import { inPlace, Kept, type KeptLink, KeptRoot } from './kept.js';
import type { StateRunner } from './model.js';
import type { Moving } from './moving.js';
import type { Program } from './recording.js';

/** @internal The programs of a model, or of a state. */
export class ProgramSet {
  readonly programs = new Map<string, Program>();
  moving: Moving | undefined;
  /** The sizes of the feeds in the last run. */
  last: readonly number[] = [];
  /** The number of runs until programs are rehearsed again. */
  wait = 0;
  failures = 0;
}

/** What has programs for states. */
interface Owner {
  add(state: State): void;
  drop(state: State, isEnd: boolean): void;
}

/** @internal What a model keeps between runs. */
export class State implements StateRunner {
  /** By the index of a link. Absent before the first run. */
  kept: readonly (Kept | undefined)[];
  /** While a run is in progress: what was kept before it. */
  #before: readonly (Kept | undefined)[] | undefined;
  readonly programs = new ProgramSet();
  disposed = false;

  constructor(
    readonly links: readonly KeptLink[],
    readonly wg: Gemm,
    readonly owner: Owner,
  ) {
    owner.add(this);
    this.kept = links.map(() => undefined);
  }

  /**
   * Begins a run, which `commit` or `rollBack` ends. A feed of a kept input replaces the tensor.
   * Without a tensor, the run begins with zeros. Returns whether tensors were replaced.
   */
  begin(inputs: readonly ModelInput[], feeds: readonly (Value | undefined)[]): boolean {
    const sizes = new Map<string, { size: number; by: string }>();
    const check = (index: number, shape: readonly number[]) => {
      const { info } = inputs[index] as ModelInput;
      checkShape('run', `run: input ${describe(info.name)}`, info, shape, sizes);
    };
    feeds.forEach((feed, i) => feed && check(i, feed.shape));
    const before = this.kept;
    const kept = [...before];
    this.#before = before;
    this.kept = kept;
    this.links.forEach((link, i) => {
      const feed = feeds[link.input];
      const own = kept[i];
      if (own && !feed) return check(link.input, own.shape);
      const { shape } = (inputs[link.input] as ModelInput).info;
      if (!feed && !shape) {
        const found = `input ${describe(link.name)} has no declared shape`;
        throw new ShapeError('run', link.name, `run: ${found}; pass a first tensor as a feed`);
      }
      const first =
        feed?.shape ??
        (shape ?? []).map((size) =>
          typeof size === 'number' ? size : (sizes.get(size ?? '')?.size ?? 0),
        );
      const tensor = new Kept(link, this.wg, first);
      kept[i] = tensor;
      if (feed) tensor.write(viewOfBytes(feed.data), first);
    });
    return before.some((one, i) => one && one !== kept[i]);
  }

  /** Takes the kept outputs of a run. @param enlarge replaces memory, as `enlarge` */
  commit(values: readonly Stored[], enlarge: (shapes: Map<Kept, readonly number[]>) => void): void {
    const isOwn = (value: Stored, kept: Kept) => inPlace(value) === kept;
    const pairs = (this.kept as readonly Kept[]).map((kept) => {
      const value = values[kept.link.output] as Stored;
      const { dtype } = kept;
      if (value.dtype !== dtype) {
        const found = `the output for input ${describe(kept.link.name)} has dtype ${value.dtype}`;
        throw new DTypeError('run', kept.link.name, `run: ${found}; expected ${dtype}`);
      }
      // A tensor may become another one of the same state.
      const isOther = !isOwn(value, kept) && value.root instanceof KeptRoot;
      return {
        kept,
        value,
        bytes: isOther ? viewOfBytes(value.elements).slice() : undefined,
      };
    });
    const copied = pairs.filter(({ kept, value }) => !isOwn(value, kept));
    const large = copied.filter(({ kept, value }) => !kept.fits(value.shape));
    if (large.length > 0) enlarge(new Map(large.map(({ kept, value }) => [kept, value.shape])));
    for (const { kept, value } of pairs)
      kept.grows ||= rowsOf(value.shape, kept) > rowsOf(kept.shape, kept);
    for (const { kept, value, bytes } of copied)
      kept.write(bytes ?? viewOfBytes(value.elements), value.shape);
    for (const { kept, value } of pairs) kept.shape = value.shape;
    for (const one of this.#before ?? []) if (one && !this.kept.includes(one)) one.dispose();
    this.#before = undefined;
  }

  /** Ends a run that failed. Returns whether tensors were replaced. */
  rollBack(): boolean {
    if (!this.#before) return false;
    const failed = this.kept;
    this.kept = this.#before;
    this.#before = undefined;
    for (const one of failed) if (one && !this.kept.includes(one)) one.dispose();
    return failed.some((one, i) => one !== this.kept[i]);
  }

  /** Keeps only the first rows of the tensors that grow. */
  cut(length: number): void {
    const growing = this.kept.flatMap((kept) => (kept?.grows ? kept : []));
    const most = Math.min(...growing.map((kept) => rowsOf(kept.shape, kept)));
    if (growing.length === 0 || !(length >= 0 && length <= most)) {
      const rule = growing.length > 0 ? `from 0 to ${most}` : '0, since no tensor has grown';
      if (length !== 0)
        throw new ArgumentError('cut', 'length', `cut: length is ${length}; it must be ${rule}`);
    }
    for (const kept of growing) kept.shape = withSize(kept.shape, kept.axis, length);
  }

  clone(): State {
    const copy = new State(this.links, this.wg, this.owner);
    const kept: (Kept | undefined)[] = [];
    copy.kept = kept;
    try {
      for (const one of this.kept) kept.push(one?.clone());
    } catch (error) {
      copy.dispose();
      throw error;
    }
    return copy;
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.owner.drop(this, true);
    for (const kept of this.kept) kept?.dispose();
    this.kept = [];
  }
}

const rowsOf = (shape: readonly number[], { axis }: Kept): number => shape[axis] ?? 1;
