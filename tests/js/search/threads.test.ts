/** Indexes with threads: the number of threads changes no result. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { createIndex } from 'wgemm/search';
import { hasThreads } from '../support/fixed-problems.js';
import { Random } from '../support/random.js';
import { referenceMaxSim, referenceSearch } from '../support/search-reference.js';
import { indexTypes, makeVectors, metrics } from '../support/vectors.js';

let instances: Gemm[];
beforeAll(async () => {
  const threads = hasThreads ? [1, 2, 3, 4] : [1];
  instances = await Promise.all(threads.map((threads) => createGemm({ threads })));
});
afterAll(() => {
  for (const wg of instances) {
    expect(wg.memory().inUse).toBe(0);
    wg.dispose();
  }
});

it.each(indexTypes.flatMap((dtype) => metrics.map((metric) => [dtype, metric] as const)))(
  '%s, %s: the results of the definition for any number of threads',
  (dtype, metric) => {
    const random = new Random(1);
    const dimensions = 61;
    const type = dtype === 'uint8' ? 'uint8' : 'float32';
    const form = 'tensor';
    const make = (count: number, isCoarse: boolean) =>
      makeVectors(undefined, random, { dimensions, dtype, type, form, isCoarse }, count);
    const parts = [make(700, false), make(500, true), make(1, false), make(300, true)];
    const rescore = dtype === 'int8' ? ('bfloat16' as const) : undefined;
    const options = { dimensions, metric, dtype, rescore, capacity: 96 };
    const all = parts
      .flatMap(({ rows }) => rows)
      .map((numbers, i) => ({ id: i, position: i, numbers, isCodes: false }));
    const removed = new Set(all.filter(() => random.next() < 0.2).map(({ id }) => id));
    const filter = Uint32Array.from({ length: Math.ceil(all.length / 32) }, () =>
      Math.floor(random.next() * 2 ** 32),
    );
    filter.fill(0, 10, 30); // whole blocks without a bit
    const left = all.filter(({ id }) => !removed.has(id));
    const some = left.filter(({ id }) => ((filter[id >> 5] as number) >> (id & 31)) & 1);
    const ends = Uint32Array.of(10, 10, 700, 1400, 1501);
    for (const count of [1, 3, 40, 300]) {
      const queries = make(count, count === 3);
      const own = count > 40 ? { ...queries, rows: queries.rows.slice(0, 40) } : queries;
      const wanted = own.rows.map((row) => referenceSearch(left, row, false, 10, options));
      const filtered = own.rows.map((row) => referenceSearch(some, row, false, 10, options));
      let first: unknown;
      for (const wg of instances) {
        using index = createIndex(wg, options);
        for (const { given } of parts) index.add(given);
        index.remove(removed);
        const found = index.search(queries.given as never, 10) as never[];
        expect(found.slice(0, 40)).toEqual(wanted);
        first ??= found;
        expect(found).toEqual(first);
        const passed = index.search(queries.given as never, 10, { filter }) as never[];
        expect(passed.slice(0, 40)).toEqual(filtered);
        if (metric === 'euclidean' || count > 3) continue;
        const sums = Float32Array.from(ends, (end, i) => {
          const inIt = left.filter(({ id }) => (ends[i - 1] ?? 0) <= id && id < end);
          return referenceMaxSim(inIt, queries.rows, false, options);
        });
        expect(index.maxSim(queries.given, ends)).toEqual(sums);
      }
    }
  },
);
