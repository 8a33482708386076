/** A search by its definition: every score on its own, and then a sort. */
import type { IndexDType, Metric } from 'wgemm/search';
import { round } from './dtypes.js';

/** A vector, as an index holds it. Queries are converted by the same rule. */
interface Stored {
  elements: number[];
  scale: number;
  norm: number;
}

const isInteger = (dtype: string) => dtype === 'int8' || dtype === 'uint8';

/** Rounds half to even. */
function whole(x: number): number {
  const below = Math.floor(x);
  const rest = x - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
}

/** The sum of products in ascending k: exact for integers, else in float32 and unfused. */
function dot(a: readonly number[], b: readonly number[], exact: boolean): number {
  let sum = 0;
  for (let k = 0; k < a.length; ++k) {
    const product = (a[k] as number) * (b[k] as number);
    sum = exact ? sum + product : Math.fround(sum + Math.fround(product));
  }
  return sum;
}

/** What `store` returned, by numbers and type. */
const known = new WeakMap<readonly number[], Map<string, Stored>>();

/** @param isCodes whether the numbers are int8 that an int8 index takes as they are */
function store(numbers: readonly number[], dtype: string, isCodes: boolean): Stored {
  const all = known.get(numbers) ?? new Map<string, Stored>();
  known.set(numbers, all);
  const key = `${dtype} ${isCodes}`;
  const stored = all.get(key) ?? convert(numbers, dtype, isCodes);
  all.set(key, stored);
  return stored;
}

function convert(numbers: readonly number[], dtype: string, isCodes: boolean): Stored {
  let elements = numbers.map(Math.fround);
  let scale = 1;
  if (dtype === 'int8' && !isCodes) {
    const most = elements.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    scale = most === 0 ? 1 : Math.max(Math.fround(most / 127), 2 ** -149);
    elements = elements.map((x) => Math.max(-127, Math.min(127, whole(Math.fround(x / scale)))));
  } else if (dtype === 'float16' || dtype === 'bfloat16') {
    elements = elements.map((x) => round(dtype, x));
  }
  return { elements, scale, norm: dot(elements, elements, isInteger(dtype)) };
}

function scoreOf(metric: Metric, q: Stored, v: Stored, exact: boolean): number {
  const sum = dot(q.elements, v.elements, exact);
  const scales = q.scale * v.scale;
  if (metric === 'dot') return Math.fround(sum * scales) + 0;
  if (metric === 'cosine')
    return Math.fround(Math.max(-1, Math.min(1, sum / Math.sqrt(q.norm * v.norm)))) + 0;
  const square = q.scale * q.scale * q.norm + v.scale * v.scale * v.norm - 2 * scales * sum;
  return Math.fround(Math.sqrt(Math.max(0, square)));
}

export interface ReferenceVector<I> {
  id: I;
  position: number;
  numbers: readonly number[];
  isCodes: boolean;
}

export interface ReferenceOptions {
  metric: Metric;
  dtype: IndexDType;
  rescore?: 'float32' | 'bfloat16' | undefined;
}

/** Scores of a query and vectors. */
export class ReferenceScores {
  readonly #query: Stored;
  readonly #again: Stored | undefined;
  readonly #options: ReferenceOptions;

  constructor(query: readonly number[], isCodes: boolean, options: ReferenceOptions) {
    this.#options = options;
    this.#query = store(query, options.dtype, isCodes);
    if (options.rescore) this.#again = store(query, options.rescore, false);
  }

  /** By the type of the index. */
  of({ numbers, isCodes }: ReferenceVector<unknown>): number {
    const { metric, dtype } = this.#options;
    return scoreOf(metric, this.#query, store(numbers, dtype, isCodes), isInteger(dtype));
  }

  /** By the type for rescoring. */
  again({ numbers }: ReferenceVector<unknown>): number {
    const { metric, rescore } = this.#options;
    return scoreOf(metric, this.#again as Stored, store(numbers, rescore as string, false), false);
  }
}

/** The best k vectors. Equal scores are in the order of positions. */
export function referenceSearch<I>(
  vectors: readonly ReferenceVector<I>[],
  query: readonly number[],
  isCodes: boolean,
  k: number,
  options: ReferenceOptions & { minScore?: number | undefined; candidates?: number | undefined },
): { id: I; score: number }[] {
  const { metric, rescore, candidates = 4 * Math.min(k, Math.max(vectors.length, 1)) } = options;
  const scores = new ReferenceScores(query, isCodes, options);
  const best = (list: { vector: ReferenceVector<I>; score: number }[], most: number) =>
    list
      .sort(
        (a, b) =>
          (metric === 'euclidean' ? a.score - b.score : b.score - a.score) ||
          a.vector.position - b.vector.position,
      )
      .slice(0, most);
  let found = best(
    vectors.map((vector) => ({ vector, score: scores.of(vector) })),
    rescore ? Math.max(k, candidates) : vectors.length,
  );
  if (rescore)
    found = best(
      found.map(({ vector }) => ({ vector, score: scores.again(vector) })),
      found.length,
    );
  const least = options.minScore === undefined ? undefined : Math.fround(options.minScore);
  return found
    .filter(
      ({ score }) =>
        least === undefined || (metric === 'euclidean' ? score <= least : score >= least),
    )
    .slice(0, k)
    .map(({ vector, score }) => ({ id: vector.id, score }));
}

/** The score of a document: the sum over queries of the best score of its vectors. */
export function referenceMaxSim(
  vectors: readonly ReferenceVector<unknown>[],
  queries: readonly (readonly number[])[],
  isCodes: boolean,
  options: ReferenceOptions,
): number {
  let sum = 0;
  for (const query of queries) {
    const scores = new ReferenceScores(query, isCodes, options);
    sum += vectors.reduce((most, vector) => Math.max(most, scores.of(vector)), -Infinity);
  }
  return Math.fround(sum);
}
