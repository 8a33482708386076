/** Random indexes: each result must be the result of the definition, to the bit. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { createIndex, deserializeIndex, type VectorId, type VectorIndex } from 'wgemm/search';
import { seed } from '../support/arbitraries.js';
import { Random } from '../support/random.js';
import {
  referenceMaxSim,
  type ReferenceOptions,
  referenceSearch,
  type ReferenceVector,
} from '../support/search-reference.js';
import { forms, indexTypes, makeVectors, metrics, typesFor } from '../support/vectors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  expect(wg.memory().inUse).toBe(0);
  wg.dispose();
});

const steps = [
  'add',
  'add',
  'add',
  'update',
  'remove',
  'search',
  'search',
  'maxSim',
  'save',
] as const;

const problem = fc.record({
  seed: fc.nat(),
  dimensions: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(33, 64, 257, 300)),
  metric: fc.constantFrom(...metrics),
  dtype: fc.constantFrom(...indexTypes),
  rescore: fc.constantFrom(undefined, 'float32', 'bfloat16'),
  capacity: fc.constantFrom(1, 32, 60, 1024),
  hasIds: fc.boolean(),
  isCoarse: fc.boolean(),
  steps: fc.array(
    fc.record({
      kind: fc.constantFrom(...steps),
      count: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 10, max: 70 })),
      form: fc.constantFrom(...forms),
      filter: fc.constantFrom('none', 'none', 'function', 'array', 'set', 'bits'),
      hasOut: fc.boolean(),
      hasLeast: fc.boolean(),
      isOne: fc.boolean(),
      k: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(200)),
    }),
    { minLength: 2, maxLength: 14 },
  ),
});
type Problem = typeof problem extends fc.Arbitrary<infer T> ? T : never;
type Step = Problem['steps'][number];

/** An index and what it must have. */
class Model {
  index: VectorIndex<VectorId>;
  vectors: ReferenceVector<VectorId>[] = [];
  next = 0;
  readonly random: Random;
  readonly options: ReferenceOptions & { dimensions: number; capacity: number };

  constructor(readonly problem: Problem) {
    const { dimensions, metric, dtype, capacity, seed } = problem;
    const rescore = dtype === 'int8' ? problem.rescore : undefined;
    this.options = { dimensions, metric, dtype, rescore, capacity };
    this.random = new Random(seed);
    this.index = createIndex(wg, this.options);
  }

  vectorsFor({ form, isOne, count }: Step, rows = count) {
    const { dimensions, dtype } = this.options;
    const type = this.random.pick(typesFor(dtype));
    const { isCoarse } = this.problem;
    const one = isOne && rows === 1;
    return makeVectors(
      wg,
      this.random,
      { dimensions, dtype, type, form, isCoarse, isOne: one },
      rows,
    );
  }

  newId(): VectorId {
    const number = this.random.between(0, 10 ** 9) / 8;
    return this.random.pick([number, -number, `${number}`, `é\n"${number}`, `\ud800${number}`]);
  }

  add(step: Step): void {
    const { given, rows, isCodes, ...made } = this.vectorsFor(step);
    const ids = this.problem.hasIds ? rows.map(() => this.newId()) : undefined;
    if (new Set(ids).size !== (ids?.length ?? 0)) return made.dispose();
    expect(this.index.add(given, ids)).toBe(this.next);
    this.#push(rows, isCodes, ids);
    made.dispose();
  }

  update(step: Step): void {
    const some = this.vectors.filter(() => this.random.next() < 0.3).map(({ id }) => id);
    const ids = [...some, ...(this.problem.hasIds ? [this.newId()] : [])];
    if (new Set(ids).size !== ids.length) return;
    const { given, rows, isCodes, ...made } = this.vectorsFor(step, ids.length);
    expect(this.index.update(given, ids)).toBe(this.next);
    this.vectors = this.vectors.filter(({ id }) => !ids.includes(id));
    this.#push(rows, isCodes, this.problem.hasIds ? ids : undefined);
    made.dispose();
  }

  #push(rows: number[][], isCodes: boolean, ids: VectorId[] | undefined): void {
    for (const [i, numbers] of rows.entries()) {
      const position = this.next++;
      this.vectors.push({ id: ids ? (ids[i] as VectorId) : position, position, numbers, isCodes });
    }
  }

  remove({ count, isOne }: Step): void {
    const share = count / 80;
    const ids = this.vectors.filter(() => this.random.next() < share).map(({ id }) => id);
    const [first] = ids;
    if (isOne && first !== undefined) {
      expect(this.index.remove(first)).toBe(1);
      this.vectors = this.vectors.filter(({ id }) => id !== first);
      return;
    }
    const given = [...ids, 'none', -1];
    expect(this.index.remove(this.random.pick([given, new Set(given)]))).toBe(ids.length);
    this.vectors = this.vectors.filter(({ id }) => !ids.includes(id));
  }

  filter({ filter }: Step) {
    if (filter === 'none') return undefined;
    const left = new Set(this.vectors.filter(() => this.random.next() < 0.5));
    const ids = [...left].map(({ id }) => id);
    const has = (vector: ReferenceVector<VectorId>) => left.has(vector);
    const positions = new Set([...left].map(({ position }) => position));
    const bits = new Uint32Array(Math.ceil(this.next / 32) + 1);
    for (const position of positions) (bits[position >> 5] as number) |= 1 << (position & 31);
    const given = {
      function: (_: VectorId, position: number) => positions.has(position),
      array: [...ids, 'none'],
      set: new Set<VectorId>([...ids, -5]),
      bits,
    }[filter];
    return { has, given };
  }

  search(step: Step): void {
    const { k, hasOut, hasLeast } = step;
    const isMany = this.random.next() < 0.5;
    const count = isMany ? Math.min(step.count, 20) : 1;
    const form = isMany && step.form.endsWith('array') ? 'tensor' : step.form;
    const queries = this.vectorsFor({ ...step, form, isOne: !isMany }, count);
    // Sometimes it has a vector itself.
    const filter = this.filter(step);
    const all = this.vectors.filter((vector) => filter?.has(vector) ?? true);
    const search = (minScore?: number) =>
      queries.rows.map((row) =>
        referenceSearch(all, row, queries.isCodes, k, { ...this.options, minScore }),
      );
    let wanted = search();
    let minScore: number | undefined;
    if (hasLeast) {
      minScore = wanted[0]?.[this.random.between(0, 5)]?.score ?? 0.25;
      wanted = search(minScore);
    }
    const options = { filter: filter?.given, minScore };
    if (hasOut) {
      const out = {
        positions: new Uint32Array(count * k + 1).fill(77),
        scores: new Float32Array(count * k + 1).fill(77),
        found: this.random.next() < 0.5 ? new Uint32Array(count).fill(77) : undefined,
      };
      const same = {
        positions: out.positions.slice(),
        scores: out.scores.slice(),
        found: out.found && Uint32Array.from(wanted, ({ length }) => length),
      };
      for (const [row, matches] of wanted.entries())
        for (const [i, { id, score }] of matches.entries()) {
          const at = row * k + i;
          same.positions[at] = this.vectors.find((v) => v.id === id)?.position as number;
          same.scores[at] = score;
        }
      const found = this.index.search(queries.given as never, k, { ...options, out });
      expect(found).toBe(wanted.flat().length);
      expect(out).toEqual(same);
    } else {
      const found = this.index.search(queries.given as never, k, options);
      expect(found).toEqual(isMany ? wanted : wanted[0]);
    }
    queries.dispose();
  }

  maxSim(step: Step): void {
    if (this.options.metric === 'euclidean') return;
    const queries = this.vectorsFor(step, 1 + (step.count % 8));
    const ends = Uint32Array.from({ length: 5 }, () => this.random.between(0, this.next)).sort();
    const wanted = Float32Array.from(ends, (end, i) => {
      const begin = ends[i - 1] ?? 0;
      const inIt = this.vectors.filter(({ position }) => begin <= position && position < end);
      return referenceMaxSim(inIt, queries.rows, queries.isCodes, this.options);
    });
    const out = new Float32Array(7);
    const { index } = this;
    if (step.hasOut) {
      expect(index.maxSim(queries.given as never, ends, { out })).toBe(out);
      expect(out).toEqual(Float32Array.of(...wanted, 0, 0));
    } else {
      expect(index.maxSim(queries.given as never, ends)).toEqual(wanted);
    }
    queries.dispose();
  }

  save(): void {
    const bytes = this.index.serialize();
    const read = deserializeIndex<VectorId>(wg, bytes);
    expect(read.serialize()).toEqual(bytes);
    this.index.dispose();
    this.index = read;
  }

  check(): void {
    const { index, vectors, next } = this;
    const { dimensions, metric, dtype } = this.options;
    expect(index).toMatchObject({
      dimensions,
      metric,
      dtype,
      size: vectors.length,
      nextPosition: next,
    });
    const ids = new Map(vectors.map(({ id, position }) => [position, id]));
    for (let position = 0; position < next + 1; ++position)
      expect(index.idOf(position)).toBe(ids.get(position));
  }
}

it('an index has the results of the definition after any operations', () => {
  fc.assert(
    fc.property(problem, (problem) => {
      const model = new Model(problem);
      try {
        for (const step of problem.steps) model[step.kind](step);
        model.check();
        model.search({ ...(problem.steps[0] as Step), k: 200, filter: 'none', hasOut: false });
      } finally {
        model.index.dispose();
      }
    }),
    { seed, numRuns: 300 },
  );
});
