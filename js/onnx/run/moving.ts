/**
 * Programs for sizes that grow from run to run, such as the number of tokens in a cache. Their
 * words change by a constant for each row more, so that no run is recorded for its sizes.
 */
import { sizeOf, Stored } from '../operators/storage.js';
import { inPlace, type Kept, KeptRoot } from './kept.js';
import type { Program, Signs } from './recording.js';

/** @internal A run that was recorded without computing. */
export interface Rehearsal {
  readonly words: Float64Array;
  /** As in `Recording`. */
  readonly signs: readonly Signs[];
  readonly program: Program;
}

/** @internal */
export interface Moving {
  /** The sizes of the feeds with the fewest rows, as `sizesOf` returns them. */
  readonly sizes: readonly number[];
  /** By size: 1 if it grows with the rows, else 0. */
  readonly rates: readonly number[];
  /** The most rows more. */
  readonly end: number;
  readonly first: Rehearsal;
  /** What a row more adds to words that change, by their index. */
  readonly changes: ReadonlyMap<number, number>;
  /** What a row more adds to the sizes of outputs, and of the kept tensors that they show. */
  readonly growth: readonly Growth[];
  /** The program for one number of rows. */
  program: Program;
}

interface Growth {
  readonly own: readonly number[];
  readonly kept: readonly number[];
}

/** @internal The ranks and sizes of values. */
export const sizesOf = (values: readonly { readonly shape: readonly number[] }[]): number[] =>
  values.flatMap(({ shape }) => [shape.length, ...shape]);

/**
 * @internal By size, 1 if it has grown since the last run, and 0 if it is the same; and how many
 * rows more than now the tensors of a state have room for. Undefined if sizes have changed in
 * another way.
 */
export function growthOf(
  kept: readonly (Kept | undefined)[],
  last: readonly number[],
  sizes: readonly number[],
): { rates: number[]; end: number } | undefined {
  const changes = sizes.map((size, i) => size - (last[i] as number));
  const change = changes.find(Boolean) as number; // as many rows as a run appends
  if (last.length !== sizes.length || !(change > 0)) return undefined;
  if (changes.some((each) => each !== 0 && each !== change)) return undefined;
  const room = kept.flatMap((one) =>
    one?.grows ? one.capacity - (one.shape[one.axis] as number) - change : [],
  );
  return { rates: changes.map((each) => each / change), end: Math.min(...room) };
}

/** The shapes of feeds that have `rows` rows more. */
function shapesAt(
  feeds: readonly { readonly shape: readonly number[] }[],
  rates: readonly number[],
  rows: number,
): number[][] {
  let at = 0;
  return feeds.map(({ shape }) => {
    ++at; // the rank
    return shape.map((size) => size + rows * (rates[at++] as number));
  });
}

/** @internal Feeds that have `rows` rows more. */
export function feedsAt(
  feeds: readonly Stored[],
  rates: readonly number[],
  rows: number,
): Stored[] {
  const shapes = shapesAt(feeds, rates, rows);
  return feeds.map((feed, i) => valueAt(feed, shapes[i] as number[]));
}

/** @param kept the shape of the kept tensor that the value shows, perhaps with another shape */
function valueAt({ dtype, root }: Stored, shape: readonly number[], kept = shape): Stored {
  const own = root instanceof KeptRoot ? new KeptRoot(root.kept, kept) : root;
  return new Stored(dtype, shape, sizeOf(shape), own);
}

/** The shape of the kept tensor that a value shows. */
const keptShapeOf = (value: Stored | undefined): readonly number[] =>
  value?.root instanceof KeptRoot ? value.root.shape : [];

const differences = (from: readonly number[], to: readonly number[] = []): number[] =>
  from.map((size, axis) => (to[axis] as number) - size);

const grownBy = (shape: readonly number[], growth: readonly number[] = [], rows: number) =>
  shape.map((size, axis) => size + rows * (growth[axis] as number));

/** Whether outputs that no step computes have the same elements. These may depend on sizes. */
function hasSameArrays(a: Program, b: Program): boolean {
  const arrayOf = (output: Stored | undefined) => output?.root.array as Float32Array | undefined;
  return a.outputs.every((output, i) => {
    const [one = [], other = []] = [arrayOf(output), arrayOf(b.outputs[i])];
    return one.length === other.length && one.every((x: number, at) => Object.is(x, other[at]));
  });
}

/** What the program of a rehearsal consists of, in numbers. Others than numbers must not differ. */
function numbersOf({ words, program }: Rehearsal): Float64Array {
  const ends = program.outputs.flatMap((output) => {
    const { root, shape } = output;
    const place = inPlace(output) ? 1 : root.chunk ? 2 : NaN;
    const kept = keptShapeOf(output);
    return [place, root.start, shape.length, ...shape, kept.length, ...kept];
  });
  const numbers = new Float64Array(words.length + ends.length);
  numbers.set(words);
  numbers.set(ends, words.length);
  return numbers;
}

/** Whether a known value cannot be another one between the first and the last run. */
function areSteady(near: Signs, next: Signs, far: Signs): boolean {
  const { uniform, mayChange } = near;
  // There may be more results in each run, and each may depend on another number.
  if (uniform !== undefined && [next, far].every((signs) => signs.uniform === uniform)) return true;
  const [a, b, c] = [near, next, far].map(({ differences }) => differences) as [
    readonly number[],
    readonly number[],
    readonly number[],
  ];
  const isSteady = (first: number, i: number) => {
    const last = c[i] as number;
    return (first === last && first === b[i]) || (mayChange && first * last > 0);
  };
  return a.length === b.length && a.length === c.length && a.every(isSteady);
}

/**
 * @internal The programs between three rehearsals: with the fewest rows, with one more, and with
 * `end` more. Undefined if a number does not change by the same for each row.
 */
export function movingOf(
  sizes: readonly number[],
  rates: readonly number[],
  end: number,
  rehearsals: readonly [Rehearsal, Rehearsal, Rehearsal],
): Moving | undefined {
  const [a, b, c] = rehearsals.map(numbersOf) as [Float64Array, Float64Array, Float64Array];
  const [first, second, last] = rehearsals;
  if (a.length !== b.length || a.length !== c.length || first.program.parts.length !== 1)
    return undefined;
  if (![second, last].every(({ program }) => hasSameArrays(first.program, program)))
    return undefined;
  const [near, next, far] = rehearsals.map(({ signs }) => signs) as [Signs[], Signs[], Signs[]];
  if (next.length !== near.length || far.length !== near.length) return undefined;
  if (!near.every((signs, i) => areSteady(signs, next[i] as Signs, far[i] as Signs)))
    return undefined;
  const changes = new Map<number, number>();
  for (let i = 0; i < a.length; ++i) {
    if (Object.is(a[i], b[i]) && Object.is(a[i], c[i])) continue; // also NaN
    const change = (b[i] as number) - (a[i] as number);
    if ((c[i] as number) !== (a[i] as number) + change * end) return undefined;
    if (i < first.words.length) changes.set(i, change);
  }
  const growth = first.program.outputs.map((output, i) => {
    const other = second.program.outputs[i];
    const own = differences(output.shape, other?.shape);
    return { own, kept: differences(keptShapeOf(output), keptShapeOf(other)) };
  });
  return { sizes, rates, end, first, changes, growth, program: first.program };
}

/** @internal The number of rows more for which a program exists; undefined if it is for others. */
export function rowsFor(
  { sizes, rates, end }: Moving,
  wanted: readonly number[],
): number | undefined {
  const at = rates.indexOf(1);
  const rows = (wanted[at] as number) - (sizes[at] as number);
  const fits =
    rows >= 0 &&
    rows <= end &&
    wanted.length === sizes.length &&
    wanted.every((size, i) => size === (sizes[i] as number) + rows * (rates[i] as number));
  return fits ? rows : undefined;
}

/** @internal The values of a program for `rows` rows more. */
export function valuesAt(
  { first: { program }, rates, growth }: Moving,
  rows: number,
): Pick<Program, 'feeds' | 'outputs'> {
  return {
    feeds: feedsAt(program.feeds, rates, rows),
    outputs: program.outputs.map((output, i) =>
      valueAt(
        output,
        grownBy(output.shape, growth[i]?.own, rows),
        grownBy(keptShapeOf(output), growth[i]?.kept, rows),
      ),
    ),
  };
}
