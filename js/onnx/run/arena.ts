/** The memory of a model's programs: offsets in one block, which values take one after another. */

/** Bytes between the starts of values: a line of a cache. */
const step = 64;

/** @internal */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** A value: its range, and the events of the arena at which it was taken and given up. */
interface Taken extends Range {
  readonly from: number;
  to: number;
}

/** The largest number of values that are planned. The time grows with its square. */
const mostPlanned = 2000;

const sizeOf = ({ start, end }: Range): number => end - start;

/** The first free range of `size` bytes between ranges, which ascend. */
function findRange(ranges: readonly Range[], size: number): Range {
  let start = 0;
  for (const range of ranges) {
    if (range.start - start >= size) break;
    start = Math.max(start, range.end);
  }
  return { start, end: start + size };
}

/** The index of the first range that starts after a place. The ranges ascend. */
function indexAfter(ranges: readonly Range[], place: number): number {
  const index = ranges.findIndex(({ start }) => start > place);
  return index < 0 ? ranges.length : index;
}

/** @internal Hands out ranges of bytes. The first free range that is large enough is taken. */
export class Arena {
  /** Free ranges in ascending order. No two of them touch. */
  readonly #free: Range[] = [{ start: 0, end: Infinity }];
  /** In the order in which they were taken. */
  readonly #all: Taken[] = [];
  /** By their starts. */
  readonly #live = new Map<number, Taken>();
  #events = 0;
  /** The end of the last range that was ever taken. */
  peak = 0;

  /** @param planned ranges for values in the order in which they are taken, as plan() returns */
  constructor(readonly planned: readonly Range[] = []) {}

  /** The ranges that were taken, in their order. */
  get all(): readonly Range[] {
    return this.#all;
  }

  take(bytes: number): number {
    const size = Math.max(Math.ceil(bytes / step), 1) * step;
    const free = this.#free;
    // The plan is of a recording with the same values. If a value differs, its range may not fit.
    const planned = this.planned[this.#all.length];
    const fits = (range: Range) =>
      planned !== undefined &&
      sizeOf(planned) >= size &&
      range.start <= planned.start &&
      planned.end <= range.end;
    let index = planned ? free.findIndex(fits) : -1;
    if (index < 0) index = free.findIndex((range) => sizeOf(range) >= size);
    const range = free[index] as Range;
    const start = fits(range) ? (planned as Range).start : range.start;
    const end = start + size;
    const rest = [
      { start: range.start, end: start },
      { start: end, end: range.end },
    ];
    free.splice(index, 1, ...rest.filter((part) => sizeOf(part) > 0));
    const value = { start, end, from: this.#events++, to: Infinity };
    this.#all.push(value);
    this.#live.set(start, value);
    this.peak = Math.max(this.peak, end);
    return start;
  }

  giveUp(start: number): void {
    const value = this.#live.get(start) as Taken;
    this.#live.delete(start);
    value.to = this.#events++;
    const free = this.#free;
    let first = indexAfter(free, start);
    let last = first;
    let { end } = value;
    if (free[last]?.start === end) end = (free[last++] as Range).end;
    if (free[first - 1]?.end === start) start = (free[--first] as Range).start;
    free.splice(first, last - first, { start, end });
  }

  /**
   * Plans ranges for the values so far. Places the largest values first, and the others between
   * them. Returns the ranges and their end, if they then need less memory.
   */
  plan(): { planned: readonly Range[]; peak: number } {
    if (this.#all.length > mostPlanned) return { planned: [], peak: this.peak };
    const placed: (Taken & { readonly value: Taken })[] = [];
    for (const value of [...this.#all].sort((a, b) => sizeOf(b) - sizeOf(a))) {
      const { from, to } = value;
      const others = placed.filter((other) => other.from < to && from < other.to);
      const range = findRange(others, sizeOf(value));
      placed.splice(indexAfter(placed, range.start), 0, { value, from, to, ...range });
    }
    const peak = Math.max(...placed.map(({ end }) => end));
    if (peak >= this.peak) return { planned: [], peak: this.peak };
    const ranges = new Map(placed.map((each) => [each.value, each]));
    return { planned: this.#all.map((value) => ranges.get(value) as Range), peak };
  }
}
