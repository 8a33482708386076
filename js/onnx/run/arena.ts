/** The memory of a model's programs: offsets in one block, which values take one after another. */

/** Bytes between the starts of values: a line of a cache. */
const step = 64;

/** The bytes that a value takes. */
const rounded = (bytes: number): number => Math.max(Math.ceil(bytes / step), 1) * step;

/** @internal Hands out ranges of bytes. The first free range that is large enough is taken. */
export class Arena {
  /** Free ranges in ascending order. No two of them touch. */
  readonly #free: { start: number; end: number }[] = [{ start: 0, end: Infinity }];
  /** The end of the last range that was ever taken. */
  peak = 0;

  take(bytes: number): number {
    const size = rounded(bytes);
    const index = this.#free.findIndex(({ start, end }) => end - start >= size);
    const range = this.#free[index] as { start: number; end: number };
    const { start } = range;
    range.start += size;
    if (range.start === range.end) this.#free.splice(index, 1);
    this.peak = Math.max(this.peak, start + size);
    return start;
  }

  giveUp(start: number, bytes: number): void {
    const end = start + rounded(bytes);
    let index = this.#free.findIndex((range) => range.start > start);
    if (index < 0) index = this.#free.length;
    const [before, after] = [this.#free[index - 1], this.#free[index]];
    const joinsBefore = before?.end === start;
    const joinsAfter = after?.start === end;
    if (joinsBefore && joinsAfter) {
      before.end = after.end;
      this.#free.splice(index, 1);
    } else if (joinsBefore) before.end = end;
    else if (joinsAfter) after.start = start;
    else this.#free.splice(index, 0, { start, end });
  }
}
