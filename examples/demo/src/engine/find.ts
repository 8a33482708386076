/** The nearest of many vectors, by examples/search. */
import { transfer } from 'comlink';
import { createGemm, type Gemm, type HeapTensor, OutOfMemoryError } from 'wgemm';
import { float32Index, int8Index } from '../../../search/index.mjs';
import { searchInJavaScript } from '../../../search/plain.mjs';
import { makeVectors as makeInSteps } from '../../../search/vectors.mjs';
import { threads } from './instance.ts';
import type { Report } from './report.ts';

export type Form = 'float32' | 'int8' | 'loop';

export interface Neighbour {
  index: number;
  cosine: number;
}

export interface Search {
  form: Form;
  ms: number;
  found: Neighbour[];
}

export interface Points {
  count: number;
  size: number;
  /** x and y of each vector, from -1 to 1. */
  places: Float32Array;
  /** The cluster of each vector. */
  clusterOf: Uint8Array;
  forms: Form[];
  /** Bytes of the vectors: in float32, and in int8. */
  bytes: { float32: number; int8: number };
  /** Why there is no wgemm, or why there are fewer vectors than were asked for; or ''. */
  lack: string;
}

const size = 384;
const seed = 1;
const wanted = 10;
const countIfShort = 25_000;
/** The share of the time that making the vectors takes. Packing them takes the rest. */
const share = 0.5;

interface Store {
  vectors: { data: Float32Array; shape: readonly number[] };
  search: Map<Form, (query: Float32Array, wanted: number) => Neighbour[]>;
  dispose(): void;
}

let store: Store | undefined;

/**
 * Makes vectors, packs them, and projects them to a plane. If memory is short, makes fewer. If
 * there is no wgemm, makes them in an array, and only the plain loop searches them.
 *
 * @returns undefined if it was cancelled
 */
export async function makeVectors(count: number, report: Report): Promise<Points | undefined> {
  freeVectors();
  let wg: Gemm | undefined;
  let lack = '';
  try {
    // An instance of its own: its memory goes back to the system when it ends.
    wg = await createGemm({ threads });
  } catch (error) {
    lack = `${(error as Error).message}. Only the plain loop searches.`;
  }
  try {
    return await make(wg, count, lack, report);
  } catch (error) {
    if (!isOutOfMemory(error) || count <= countIfShort) throw error;
    return await makeVectors(countIfShort, report).then(
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
  const { vectors, search } = store;
  const query = vectors.data.slice(index * size, (index + 1) * size);
  return forms.map((form) => {
    const start = performance.now();
    const found = search.get(form)!(query, wanted + 1);
    const ms = performance.now() - start;
    // The nearest of all is the vector itself.
    return { form, ms, found: found.filter((one) => one.index !== index).slice(0, wanted) };
  });
}

async function make(
  wg: Gemm | undefined,
  count: number,
  lack: string,
  report: Report,
): Promise<Points | undefined> {
  let isKept = false;
  try {
    const vectors = wg ? wg.alloc('float32', [count, size]) : arrayOf(count);
    const made = await run(makeInSteps(vectors, seed), (part) => report(share * part));
    if (!made) return undefined;
    const search: Store['search'] = new Map();
    let int8Bytes = 0;
    if (wg) {
      const tensor = vectors as HeapTensor<Float32Array>;
      const int8 = await run(int8Index(wg, tensor), (part) => report(share + (1 - share) * part));
      if (!int8) return undefined;
      int8Bytes = int8.byteLength;
      search.set('float32', float32Index(wg, tensor).search).set('int8', int8.search);
    }
    // The vectors are in the memory of the instance, which the loop reads as fast as an array.
    const cosines = new Float32Array(count);
    search.set('loop', (query, k) => searchInJavaScript(vectors, query, k, cosines));
    const places = wg
      ? wg.gemm(vectors as HeapTensor<Float32Array>, { data: made.axes, shape: [size, 2] }).data
      : projected(vectors.data, made.axes, count);
    store = { vectors, search, dispose: () => wg?.dispose() };
    isKept = true;
    return transfer(
      {
        count,
        size,
        places,
        clusterOf: made.clusterOf,
        forms: [...search.keys()],
        bytes: { float32: 4 * count * size, int8: int8Bytes },
        lack,
      },
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

const arrayOf = (count: number) => ({
  data: new Float32Array(count * size),
  shape: [count, size],
});

/** The same projection without wgemm. */
function projected(data: Float32Array, axes: Float32Array, count: number): Float32Array {
  const places = new Float32Array(2 * count);
  for (let i = 0; i < count; ++i)
    for (let j = 0; j < size; ++j) {
      places[2 * i]! += data[i * size + j]! * axes[2 * j]!;
      places[2 * i + 1]! += data[i * size + j]! * axes[2 * j + 1]!;
    }
  return places;
}

const isOutOfMemory = (error: unknown) =>
  error instanceof OutOfMemoryError || error instanceof RangeError;
