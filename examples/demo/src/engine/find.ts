/** The nearest of many vectors: indexes of wgemm/search, and the loops of examples/search. */
import { transfer } from 'comlink';
import { createGemm, type Gemm, OutOfMemoryError } from 'wgemm';
import { createIndex, type IndexOptions } from 'wgemm/search';
import { agreement, searchInJavaScript } from '../../../search/plain.mjs';
import { makeVectors as makeInSteps } from '../../../search/vectors.mjs';
import { clockTick } from '../../../../tests/bench/turns.mjs';
import { threads as usualThreads } from './instance.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

export type Form = 'float32' | 'int8' | 'loop';

/** The nearest vectors, best first. */
export interface Nearest {
  positions: Uint32Array;
  scores: Float32Array;
}

export interface Search extends Nearest {
  form: Form;
  ms: number;
  /** How many of the nearest the loop found, too, if it searched. */
  agreed?: number | undefined;
}

export interface Points {
  count: number;
  size: number;
  /** x and y of each vector, from -1 to 1. */
  places: Float32Array;
  /** The cluster of each vector. */
  clusterOf: Uint8Array;
  forms: Form[];
  /** How many threads wgemm uses; 0 if wgemm cannot run. The plain loop uses one. */
  threads: number;
  /** Bytes of the vectors: of each index, and of the rows that the loop reads. */
  bytes: Record<Form, number>;
  /** Why there is no wgemm, or why there are fewer vectors than were asked for; or ''. */
  lack: string;
}

const size = 384;
const seed = 1;
const wanted = 10;
const countIfShort = 25_000;
/** The share of the time that making the vectors takes. Making the indexes takes the rest. */
const share = 0.6;

interface Store {
  rows: Float32Array;
  search: Map<Form, (query: Float32Array) => Nearest>;
  dispose(): void;
}

let store: Store | undefined;

/**
 * Makes vectors and their indexes: fewer if memory is short. Without wgemm, only the plain loop
 * searches them.
 *
 * @returns undefined if it was cancelled
 */
export const makeVectors = (count: number, report: Report): Promise<Points | undefined> =>
  inTurn(
    () => makeAll(count, report),
    () => report(0),
  );

async function makeAll(count: number, report: Report): Promise<Points | undefined> {
  freeVectors();
  let wg: Gemm | undefined;
  let lack = '';
  try {
    // An instance of its own: its memory goes back to the system when it ends.
    wg = await createGemm({ threads: usualThreads });
  } catch (error) {
    lack = `${(error as Error).message}. Only the plain loop searches.`;
  }
  try {
    return await make(wg, count, lack, report);
  } catch (error) {
    if (!isOutOfMemory(error) || count <= countIfShort) throw error;
    return await makeAll(countIfShort, report).then(
      (points) => points && { ...points, lack: points.lack || 'Memory is short here.' },
    );
  }
}

/** Frees what the vectors take. */
export function freeVectors(): void {
  store?.dispose();
  store = undefined;
}

/** Finds the ten nearest of a vector in some ways, and times each. */
export function nearestTen(index: number, forms: Form[]): Search[] {
  if (!store) throw new Error('the vectors were freed');
  const { rows, search } = store;
  const query = rows.subarray(index * size, (index + 1) * size);
  const searches: Search[] = forms.map((form) => {
    const { found, ms } = timed(() => search.get(form)!(query));
    return { form, ms, ...others(found, index) };
  });
  const loop = searches.find(({ form }) => form === 'loop');
  if (loop) {
    const nearest = toMatches(loop);
    for (const one of searches)
      one.agreed = agreement(Array.from(one.positions), rows, query, nearest);
  }
  return searches;
}

/** A timing spans this many ticks of the clock, or this many ms if they are fewer. */
const enough = { ticks: 10, ms: 10 };
let tick: number | undefined;

/** Times a search, which it repeats until the clock is fine enough to tell the time. */
function timed(search: () => Nearest): { found: Nearest; ms: number } {
  tick ??= clockTick();
  const least = Math.min(enough.ticks * tick, enough.ms);
  const start = performance.now();
  for (let calls = 1; ; ++calls) {
    const found = search();
    const passed = performance.now() - start;
    if (passed >= least) return { found, ms: passed / calls };
  }
}

/** The nearest of all is the vector itself, which is not shown. */
function others({ positions, scores }: Nearest, index: number): Nearest {
  const at = positions.indexOf(index);
  if (at >= 0) {
    positions.copyWithin(at, at + 1);
    scores.copyWithin(at, at + 1);
  }
  return { positions: positions.subarray(0, wanted), scores: scores.subarray(0, wanted) };
}

const toMatches = ({ positions, scores }: Nearest) =>
  Array.from(positions, (id, i) => ({ id, score: scores[i]! }));

const emptyNearest = (): Nearest => ({
  positions: new Uint32Array(wanted + 1),
  scores: new Float32Array(wanted + 1),
});

// --- the indexes ---------------------------------------------------------------------------------

/** An index of all vectors, and its search. It is made in steps. */
function* makeIndex(wg: Gemm, vectors: Float32Array, options: Partial<IndexOptions>) {
  const capacity = vectors.length / 384;
  const index = createIndex(wg, { dimensions: 384, metric: 'cosine', capacity, ...options });
  for (let first = 0; first < capacity; first += 5000) {
    index.add(vectors.subarray(384 * first, 384 * (first + 5000)));
    yield index.size / capacity; // the page shows how far it is
  }

  // The same arrays for each search: while the pointer moves, a search makes no object.
  const out = { positions: new Uint32Array(11), scores: new Float32Array(11) };
  const search = (vector: Float32Array) => {
    index.search(vector, 11, { out });
    return out;
  };
  return { search, byteLength: index.byteLength };
}

/** A search by the plain loop. */
function loopOver(rows: Float32Array, count: number) {
  const cosines = new Float32Array(count);
  const out = emptyNearest();
  return (query: Float32Array) => {
    const found = searchInJavaScript(rows, query, wanted + 1, cosines);
    found.forEach(({ id, score }: { id: number; score: number }, i: number) => {
      out.positions[i] = id;
      out.scores[i] = score;
    });
    return out;
  };
}

const optionsOf = {
  float32: { dtype: 'float32' },
  int8: { dtype: 'int8', rescore: 'bfloat16' },
} as const;

async function make(
  wg: Gemm | undefined,
  count: number,
  lack: string,
  report: Report,
): Promise<Points | undefined> {
  let isKept = false;
  try {
    const rows = new Float32Array(count * size);
    const made = await run(makeInSteps({ data: rows, shape: [count, size] }, seed), (part) =>
      report(share * part),
    );
    if (!made) return undefined;
    const search: Store['search'] = new Map();
    const bytes = { float32: 0, int8: 0, loop: rows.byteLength };
    for (const [i, form] of (['float32', 'int8'] as const).entries()) {
      if (!wg) break;
      const index = await run(makeIndex(wg, rows, optionsOf[form]), (part) =>
        report(share + ((1 - share) * (i + part)) / 2),
      );
      if (!index) return undefined;
      search.set(form, index.search);
      bytes[form] = index.byteLength;
    }
    search.set('loop', loopOver(rows, count));
    store = { rows, search, dispose: () => wg?.dispose() };
    isKept = true;
    const { clusterOf, places } = made as { clusterOf: Uint8Array; places: Float32Array };
    const threads = wg?.info.threads ?? 0;
    return transfer(
      { count, size, places, clusterOf, forms: [...search.keys()], threads, bytes, lack },
      [places.buffer as ArrayBuffer],
    );
  } finally {
    if (!isKept) wg?.dispose();
  }
}

/** Runs steps, which yield the fraction that is done; undefined if it was cancelled. */
async function run<T>(
  steps: Generator<number, T>,
  report: (fraction: number) => boolean | Promise<boolean>,
): Promise<T | undefined> {
  let last = -Infinity;
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (performance.now() - last < 16) continue; // no more often than the page draws
    if (!(await report(value))) return undefined;
    last = performance.now();
  }
}

const isOutOfMemory = (error: unknown) =>
  error instanceof OutOfMemoryError || error instanceof RangeError;
