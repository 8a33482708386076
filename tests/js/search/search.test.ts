/** Indexes: the options and results of each call, what calls refuse, their memory and their bytes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm, GemmError, PackMismatchError } from 'wgemm';
import { createIndex, deserializeIndex, type VectorIndex } from 'wgemm/search';
import { Ledger } from '../../../js/search/ledger.js';
import { expectError, expectSameError, thrown, type Wanted } from '../support/errors.js';
import { Random } from '../support/random.js';
import { SharedBuffer } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  expect(wg.memory().inUse).toBe(0);
  wg.dispose();
});

/** Without types: many tests pass what types refuse. */
type Any = VectorIndex<never> & {
  add: (...args: unknown[]) => number;
  update: (...args: unknown[]) => number;
  remove: (...args: unknown[]) => number;
  search: (...args: unknown[]) => unknown;
  idOf: (...args: unknown[]) => unknown;
  maxSim: (...args: unknown[]) => Float32Array;
};
const create = (options: object = { dimensions: 2 }, instance = wg) =>
  createIndex(instance, options as never) as Any;

/** Four vectors whose cosines with [1, 0] descend. */
const four = () => Float32Array.of(1, 0, 4, 3, 3, 4, 0, 1);
const filled = (options: object = {}, ids?: unknown[]) => {
  const index = create({ dimensions: 2, ...options });
  index.add(four(), ids);
  return index;
};

describe('an index', () => {
  it('has the results of its documentation', () => {
    using index = createIndex<string>(wg, { dimensions: 3 });
    expect(index.add(Float32Array.of(1, 0, 0, 0, 1, 0), ['east', 'north'])).toBe(0);
    expect(index.search([3, 4, 0], 2)).toEqual([
      { id: 'north', score: Math.fround(0.8) },
      { id: 'east', score: Math.fround(0.6) },
    ]);
  });

  it('finds a vector itself with cosine 1 and distance 0', () => {
    const random = new Random(1);
    for (const dtype of ['float32', 'float16', 'bfloat16', 'int8'])
      for (const [metric, score] of [
        ['cosine', 1],
        ['euclidean', 0],
      ] as const) {
        using index = create({ dimensions: 100, metric, dtype });
        const vectors = random.tensor('float32', [50, 100]);
        index.add(vectors);
        const found = index.search(vectors, 1) as { id: number; score: number }[][];
        expect(found).toEqual(Array.from({ length: 50 }, (_, id) => [{ id, score }]));
      }
  });

  it('has cosines of at most 1', () => {
    using index = create();
    index.add([0.3, 3.6]);
    expect(index.search([0.1, 1.2], 1)).toEqual([{ id: 0, score: 1 }]);
    expect(index.search([-0.1, -1.2], 1)).toEqual([{ id: 0, score: -1 }]);
  });

  it('says what it has', () => {
    using index = create({ dimensions: 2, metric: 'dot', dtype: 'int8', rescore: 'bfloat16' });
    expect(index).toMatchObject({
      ...{ dimensions: 2, metric: 'dot', dtype: 'int8' },
      ...{ size: 0, nextPosition: 0, byteLength: 0, disposed: false },
    });
    const before = wg.memory().inUse;
    index.add(four());
    expect(index).toMatchObject({ size: 4, nextPosition: 4 });
    expect(wg.memory().inUse - before).toBe(index.byteLength + 64);
    expect(Object.isFrozen(index)).toBe(true);
    index.dispose();
    expect(index.disposed).toBe(true);
    expect(wg.memory().inUse).toBe(before);
  });

  it('has the defaults cosine, float32 and 1,024 vectors', () => {
    using index = create();
    expect(index).toMatchObject({ metric: 'cosine', dtype: 'float32' });
    index.add([1, 2]);
    using large = create({ dimensions: 2, capacity: 1024 });
    large.add([1, 2]);
    expect(index.byteLength).toBe(large.byteLength);
    using small = create({ dimensions: 2, capacity: 1 });
    small.add([1, 2]);
    expect(small.byteLength).toBeLessThan(index.byteLength);
  });
});

describe('vectors and queries', () => {
  it('may be lists, arrays, tensors and handles', () => {
    using index = create();
    const [two, one] = [Float32Array.of(1, 0, 0, 1), Float32Array.of(1, 0)];
    using held = wg.alloc('float32', [2, 2]);
    using flat = wg.alloc('float32', [2]);
    held.data.set(two);
    flat.data.set(one);
    const ways: unknown[] = [[1, 0, 0, 1], two, { data: two, shape: [2, 2] }, held];
    ways.push({ data: held, shape: [2, 2] }, { data: two, shape: [2, 2], strides: [2, 1] });
    ways.forEach((vectors, i) => expect(index.add(vectors)).toBe(2 * i));
    const ones: unknown[] = [[1, 0], one, { data: one, shape: [2] }, flat];
    ones.push({ data: held, shape: [2], offset: 0 }, { data: two, shape: [2], strides: [1] });
    ones.forEach((vector, i) => expect(index.add(vector)).toBe(12 + i));
    expect(index.size).toBe(18);
    for (const query of ones) expect(index.search(query, 1)).toEqual([{ id: 0, score: 1 }]);
    for (const query of [{ data: two, shape: [2, 2] }, held])
      expect(index.search(query, 1)).toEqual([[{ id: 0, score: 1 }], [{ id: 1, score: 1 }]]);
    expect(index.search({ data: one, shape: [1, 2] }, 1)).toEqual([[{ id: 0, score: 1 }]]);
    expect(index.search({ data: new Float32Array(0), shape: [0, 2] }, 1)).toEqual([]);
  });

  it('may be in shared memory, and views of the heap', () => {
    using index = create();
    const shared = new Float32Array(new SharedBuffer(16));
    shared.set([1, 0, 0, 1]);
    index.add(shared);
    using held = wg.alloc('float32', [2]);
    held.data.set([0, 2]);
    expect(index.search(shared.subarray(2), 1)).toEqual([{ id: 1, score: 1 }]);
    expect(index.search(held.data, 1)).toEqual([{ id: 1, score: 1 }]);
    index.add(held.data);
    expect(index.size).toBe(3);
  });

  it('may be none', () => {
    using index = create();
    expect(index.add([])).toBe(0);
    expect(index.add({ data: new Float32Array(0), shape: [0, 2] }, [])).toBe(0);
    expect(index.search([1, 0], 3)).toEqual([]);
    expect(index.maxSim([1, 0], Uint32Array.of(0, 0), { out: null })).toEqual(
      Float32Array.of(-Infinity, -Infinity),
    );
    const out = {
      positions: new Uint32Array(3),
      scores: new Float32Array(3),
      found: Uint32Array.of(9),
    };
    expect(index.search([1, 0], 3, { out })).toBe(0);
    expect(out.found).toEqual(Uint32Array.of(0));
    index.add([1, 0], ['a']);
    expect(index.idOf(0)).toBe('a');
  });

  it('are checked in an index without vectors, too', () => {
    using full = filled();
    using removed = filled();
    removed.remove([0, 1, 2, 3]);
    for (const index of [create(), removed]) {
      for (const query of [[NaN, 0], [0, 0], new Float64Array(2), Int8Array.of(1, 0)])
        for (const call of [
          (index: Any) => thrown(() => index.search(query, 1)),
          (index: Any) => thrown(() => index.maxSim(query, Uint32Array.of(0))),
        ])
          expectSameError(call(index), call(full));
      const none = { data: new Float32Array(0), shape: [0, 2] };
      expect((thrown(() => index.maxSim(none, Uint32Array.of(0))) as Error).message).toBe(
        'maxSim: query has no rows; it must have one or more',
      );
      expect(index.byteLength).toBe(0);
    }
  });

  it('grow beyond the capacity, also by many at once', () => {
    const random = new Random(2);
    using index = create({ dimensions: 3, capacity: 10, metric: 'dot' });
    const all: number[] = [];
    for (const count of [1, 9, 25, 1000, 1, 3000]) {
      const { data } = random.tensor('float32', [count, 3]);
      index.add(data);
      all.push(...(data as Float32Array));
    }
    expect(index.size).toBe(4036);
    using whole = create({ dimensions: 3, capacity: 5000, metric: 'dot' });
    whole.add(Float32Array.from(all));
    expect(index.search([1, 2, 3], 100)).toEqual(whole.search([1, 2, 3], 100));
    expect(index.serialize()).toEqual(whole.serialize());
  });

  it('of more than 4 MB are copied in parts', () => {
    const random = new Random(3);
    const [rows, dimensions] = [1200, 1024];
    const vectors = random.tensor('float32', [rows, dimensions]);
    using index = create({ dimensions, capacity: 500 });
    index.add(vectors);
    const found = index.search(vectors, 1) as { id: number; score: number }[][];
    expect(found.map(([match]) => match?.id)).toEqual(Array.from({ length: rows }, (_, i) => i));
    (vectors.data as Float32Array)[1150 * dimensions + 7] = NaN;
    const { size, byteLength } = index;
    const said = thrown(() => index.add(vectors));
    expectError(said, {
      code: 'ARGUMENT',
      op: 'add',
      argument: 'vectors',
      says: ['NaN at [1150, 7]'],
    });
    expect(index).toMatchObject({ size, byteLength, nextPosition: rows });
    expect(index.search(vectors.data.subarray(0, dimensions), 2)).toHaveLength(2);
    const query = thrown(() => index.search(vectors, 1));
    expectError(query, {
      code: 'ARGUMENT',
      op: 'search',
      argument: 'query',
      says: ['NaN at [1150, 7]'],
    });
  });
});

describe('ids', () => {
  it('are strings and numbers, and change with update and remove', () => {
    using index = filled({}, ['a', 2, 'c', 0.5]);
    expect(index.idOf(3)).toBe(0.5);
    expect(index.update([1, 0], ['c'])).toBe(4);
    expect(index.idOf(2)).toBe(undefined);
    expect(index.idOf(4)).toBe('c');
    expect(index.update([1, 0, 1, 0], ['new', 'a'])).toBe(5);
    expect(index.search([1, 0], 9)).toEqual([
      { id: 'c', score: 1 },
      { id: 'new', score: 1 },
      { id: 'a', score: 1 },
      { id: 2, score: Math.fround(0.8) },
      { id: 0.5, score: 0 },
    ]);
    expect(index.remove('b')).toBe(0);
    expect(index.remove([2, '2', 'new', 2])).toBe(2);
    expect(index.remove(new Set(['a', 'c', 0.5, 1e300]))).toBe(3);
    expect(index).toMatchObject({ size: 0, nextPosition: 7, byteLength: 0 });
    expect(index.add([1, 0], ['a'])).toBe(7);
    expect(index.search([1, 0], 1)).toEqual([{ id: 'a', score: 1 }]);
  });

  it('are the positions in an index without ids, and no position is used again', () => {
    using index = filled();
    expect(index.remove([0, 2])).toBe(2);
    expect([0, 1, 2, 3, 4].map((position) => index.idOf(position))).toEqual([, 1, , 3, ,]); // eslint-disable-line no-sparse-arrays
    expect(index.add([1, 0])).toBe(4);
    expect(index.remove(['1', -1, 0.5, 99, 1e9])).toBe(0);
    expect(index.update([5, 0], [1])).toBe(5);
    expect(index.search([1, 0], 4)).toEqual([
      { id: 4, score: 1 },
      { id: 5, score: 1 },
      { id: 3, score: 0 },
    ]);
  });

  it('0 and -0 are one id', () => {
    using index = create();
    index.add([1, 0], [-0]);
    expect(index.idOf(0)).toBe(0);
    expect(index.remove(0)).toBe(1);
  });
});

describe('options of search', () => {
  it('filter: ids, sets, bits and functions', () => {
    using index = filled({}, ['a', 'b', 'c', 'd']);
    const ids = (filter: unknown, k = 9) =>
      (index.search([1, 0], k, { filter }) as { id: string }[]).map(({ id }) => id);
    expect(ids(undefined)).toEqual(['a', 'b', 'c', 'd']);
    expect(ids(null)).toEqual(['a', 'b', 'c', 'd']);
    expect(ids(['d', 'x', 'b', 3])).toEqual(['b', 'd']);
    expect(ids(new Set(['c']))).toEqual(['c']);
    expect(ids([])).toEqual([]);
    expect(ids(Uint32Array.of(0b1101, 5))).toEqual(['a', 'c', 'd']);
    const seen: unknown[] = [];
    expect(ids((...args: unknown[]) => seen.push(args) % 2, 1)).toEqual(['a']);
    expect(seen).toEqual([['a', 0], ['b', 1], ['c', 2], ['d', 3]]); // prettier-ignore
    index.remove('b');
    expect(ids(Uint32Array.of(0b1110))).toEqual(['c', 'd']);
    expect(ids(['a', 'b'])).toEqual(['a']);
    index.add([1, 1], ['e']);
    expect(ids(Uint32Array.of(0b10110))).toEqual(['e', 'c']);
    expect(ids(() => true, 2)).toEqual(['a', 'e']);
  });

  it('minScore: the least score, or the largest distance', () => {
    using index = filled();
    const scores = (minScore: number) =>
      (index.search([1, 0], 9, { minScore }) as { score: number }[]).map(({ score }) => score);
    expect(scores(0.8)).toEqual([1, Math.fround(0.8)]);
    expect(scores(-Infinity)).toHaveLength(4);
    expect(scores(2)).toEqual([]);
    using far = filled({ metric: 'euclidean' });
    expect(far.search([0, 0], 9, { minScore: 1 })).toEqual([
      { id: 0, score: 1 },
      { id: 3, score: 1 },
    ]);
    expect(far.search([0, 0], 9, { minScore: 4.99 })).toHaveLength(2);
    expect(far.search([0, 0], 9, { minScore: 5 })).toHaveLength(4);
    expect(far.search([0, 0], 9, { minScore: -1 })).toEqual([]);
  });

  it('out: arrays of the caller, which may be longer, and in the heap', () => {
    using index = filled();
    const held = [
      wg.alloc('uint32', [6]),
      wg.alloc('float32', [6]),
      wg.alloc('uint32', [2]),
    ] as const;
    for (const [positions, scores, found] of [
      [new Uint32Array(6), new Float32Array(6), new Uint32Array(2)],
      held.map(({ data }) => data) as [Uint32Array, Float32Array, Uint32Array],
    ] as const) {
      for (const array of [positions, scores, found]) array.fill(7);
      const queries = { data: Float32Array.of(1, 0, 0, 1), shape: [2, 2] };
      const out = { positions, scores, found };
      expect(index.search(queries, 3, { out, minScore: 0.7 })).toBe(4);
      expect([...positions]).toEqual([0, 1, 7, 3, 2, 7]);
      expect([...scores]).toEqual([1, Math.fround(0.8), 7, 1, Math.fround(0.8), 7]);
      expect([...found]).toEqual([2, 2]);
      expect(index.search([1, 0], 2, { out: { positions, scores } })).toBe(2);
    }
    for (const each of held) each.dispose();
  });

  it('out: in the heap, which the search grows', async () => {
    using own = await createGemm({ threads: 1 });
    using index = create({ dimensions: 4, metric: 'dot' }, own);
    index.add(new Float32Array(4000).fill(1));
    const [positions, scores] = [own.alloc('uint32', [400000]), own.alloc('float32', [400000])];
    const out = { positions: positions.data, scores: scores.data, found: undefined };
    const queries = { data: new Float32Array(160000).fill(1), shape: [40000, 4] };
    const { buffer } = positions.data;
    expect(index.search(queries, 10, { out })).toBe(400000);
    expect(positions.data.buffer).not.toBe(buffer);
    expect([...positions.data.slice(-3)]).toEqual([7, 8, 9]);
    expect([...scores.data.slice(-3)]).toEqual([4, 4, 4]);
  });

  it('candidates: how many are rescored', () => {
    const random = new Random(4);
    using index = create({ dimensions: 40, dtype: 'int8', rescore: 'float32' });
    using exact = create({ dimensions: 40 });
    const vectors = random.tensor('float32', [500, 40]);
    index.add(vectors);
    exact.add(vectors);
    const query = random.tensor('float32', [40]).data;
    const wanted = exact.search(query, 10);
    expect(index.search(query, 10, { candidates: 500 })).toEqual(wanted);
    expect(index.search(query, 10, { candidates: 1000 })).toEqual(wanted);
    expect(index.search(query, 10)).toEqual(index.search(query, 10, { candidates: 40 }));
    expect(index.search(query, 500)).toEqual(exact.search(query, 500));
  });

  it('fast: scores within the bound of sums', () => {
    const random = new Random(5);
    using index = create({ dimensions: 300, metric: 'dot' });
    index.add(random.tensor('float32', [300, 300]));
    const query = random.tensor('float32', [300]).data;
    const strict = index.search(query, 300) as { id: number; score: number }[];
    const fast = index.search(query, 300, { fast: true }) as typeof strict;
    const scores = new Map(strict.map(({ id, score }) => [id, score]));
    for (const { id, score } of fast)
      expect(Math.abs(score - (scores.get(id) as number))).toBeLessThan(1e-4);
  });

  it('maxSim: sums over the query of the best scores', () => {
    using index = filled({ metric: 'dot' });
    const query = { data: Float32Array.of(1, 0, 0, 1), shape: [2, 2] };
    // [1, 0] and [4, 3]; nothing; [3, 4] and [0, 1].
    const ends = Uint32Array.of(2, 2, 4);
    expect(index.maxSim(query, ends)).toEqual(Float32Array.of(7, -Infinity, 7));
    index.remove(1);
    const out = new Float32Array(4).fill(9);
    expect(index.maxSim(query.data, ends, { out, fast: true })).toBe(out);
    expect(out).toEqual(Float32Array.of(1, -Infinity, 7, 9));
    expect(index.maxSim(query, new Uint32Array(0))).toEqual(new Float32Array(0));
  });
});

const idRule = 'an id must be a string or a finite number';
const shapeRule = 'it must have shape [n, 2] or [2]';

/** By message: code, argument, and the call, in which `index` has four vectors without ids. */
type Row = readonly [Wanted['code'], string, (index: Any) => unknown];
const rows: Record<string, Row> = {
  'createIndex: wg is an object; it must be an instance of wgemm; for an instance of wgemm/worker, import createIndex from wgemm/worker':
    ['ARGUMENT', 'wg', () => createIndex({} as never, { dimensions: 2 })],
  'deserializeIndex: wg is undefined; it must be an instance of wgemm; for an instance of wgemm/worker, import deserializeIndex from wgemm/worker':
    ['ARGUMENT', 'wg', () => deserializeIndex(undefined as never, new Uint8Array(1))],
  'createIndex: options is undefined; it must be an object with dimensions': [
    'ARGUMENT',
    'options',
    () => createIndex(wg, undefined as never),
  ],
  'createIndex: options is 3; it must be an object': [
    'ARGUMENT',
    'options',
    () => create(3 as never),
  ],
  'createIndex: the option "dimension" is not known; it must be one of dimensions, metric, dtype, rescore, capacity':
    ['ARGUMENT', 'dimension', () => create({ dimension: 2 })],
  'createIndex: dimensions is undefined; it must be a whole number from 1 to 32768': [
    'ARGUMENT',
    'dimensions',
    () => create({}),
  ],
  'createIndex: dimensions is 0; it must be a whole number from 1 to 32768': [
    'ARGUMENT',
    'dimensions',
    () => create({ dimensions: 0 }),
  ],
  'createIndex: dimensions is 32769; it must be a whole number from 1 to 32768': [
    'ARGUMENT',
    'dimensions',
    () => create({ dimensions: 32769 }),
  ],
  "createIndex: metric is \"l2\"; it must be 'dot', 'cosine' or 'euclidean'": [
    'ARGUMENT',
    'metric',
    () => create({ dimensions: 2, metric: 'l2' }),
  ],
  'createIndex: dtype is "float64"; it must be float32 or float16 or bfloat16 or int8 or uint8': [
    'DTYPE',
    'dtype',
    () => create({ dimensions: 2, dtype: 'float64' }),
  ],
  'createIndex: rescore is "float32"; it must be absent, since dtype is "uint8" and not int8': [
    'ARGUMENT',
    'rescore',
    () => create({ dimensions: 2, dtype: 'uint8', rescore: 'float32' }),
  ],
  "createIndex: rescore is \"float16\"; it must be 'float32' or 'bfloat16'": [
    'DTYPE',
    'rescore',
    () => create({ dimensions: 2, dtype: 'int8', rescore: 'float16' }),
  ],
  'createIndex: capacity is 1.5; it must be a whole number from 1 to 4294967296': [
    'ARGUMENT',
    'capacity',
    () => create({ dimensions: 2, capacity: 1.5 }),
  ],
  'add: vectors has 3 elements; it must have a multiple of 2, the dimensions of the index': [
    'SHAPE',
    'vectors',
    (index) => index.add([1, 2, 3]),
  ],
  [`add: vectors has shape [2, 3]; ${shapeRule}`]: [
    'SHAPE',
    'vectors',
    (index) => index.add({ data: new Float32Array(6), shape: [2, 3] }),
  ],
  [`add: vectors has shape [1, 1, 2]; ${shapeRule}`]: [
    'SHAPE',
    'vectors',
    (index) => index.add({ data: new Float32Array(2), shape: [1, 1, 2] }),
  ],
  [`add: vectors has shape []; ${shapeRule}`]: [
    'SHAPE',
    'vectors',
    (index) => index.add({ data: new Float32Array(1), shape: [] }),
  ],
  'add: vectors has 3 elements; its shape [2, 2] needs 4': [
    'SHAPE',
    'vectors',
    (index) => index.add({ data: new Float32Array(3), shape: [2, 2] }),
  ],
  'add: vectors is undefined; it must be a tensor, { data, shape } or from alloc()': [
    'ARGUMENT',
    'vectors',
    (index) => index.add(),
  ],
  'add: vectors has "x" at [1]; each element must be a number; pass several vectors as a tensor': [
    'DTYPE',
    'vectors',
    (index) => index.add([1, 'x']),
  ],
  'add: vectors has an array at [0]; each element must be a number; pass several vectors as a tensor': ['DTYPE', 'vectors', (index) => index.add([[1, 2], [3, 4]])], // prettier-ignore
  'add: vectors has a Uint16Array and no dtype; dtype must be float16 or bfloat16': [
    'DTYPE',
    'vectors',
    (index) => index.add(new Uint16Array(2)),
  ],
  'add: vectors has type float64; it must be float32, float16 or bfloat16': [
    'DTYPE',
    'vectors',
    (index) => index.add(new Float64Array(2)),
  ],
  'add: vectors has type int8; it must be float32, float16 or bfloat16': [
    'DTYPE',
    'vectors',
    (index) => index.add(new Int8Array(2)),
  ],
  'add: vectors has NaN at [1, 0]; each element must be finite': [
    'ARGUMENT',
    'vectors',
    (index) => index.add([1, 0, NaN, 0]),
  ],
  'add: vectors has -Infinity at [0, 1]; each element must be finite': [
    'ARGUMENT',
    'vectors',
    (index) => index.add([1, -Infinity]),
  ],
  'search: query has 4294967295 elements; a vector of the index has 2; pass several as a tensor of shape [n, 2]':
    ['SHAPE', 'query', (index) => index.search(new Array(2 ** 32 - 1), 1)],
  'add: ids is "a"; it must be an array of ids': [
    'ARGUMENT',
    'ids',
    (index) => index.add([1, 2], 'a'),
  ],
  'add: ids is an object; it must be an array of ids': [
    'ARGUMENT',
    'ids',
    (index) => index.add([1, 2], new Set([1])),
  ],
  [`add: ids has null; ${idRule}`]: ['ARGUMENT', 'ids', (index) => index.add([1, 2], [null])],
  [`add: ids has NaN; ${idRule}`]: ['ARGUMENT', 'ids', (index) => index.add([1, 2], [NaN])],
  'add: ids has 2 ids for 1 vectors; there must be one per vector': [
    'ARGUMENT',
    'ids',
    (index) => index.add([1, 2], ['a', 'b']),
  ],
  'add: ids must be absent; in this index, the positions are the ids': [
    'ARGUMENT',
    'ids',
    (index) => index.add([1, 2], ['a']),
  ],
  'add: ids is missing; in an index with ids, each vector needs one': [
    'ARGUMENT',
    'ids',
    () => withIds((index) => index.add([1, 2])),
  ],
  'add: ids has "a", which the index has; update() replaces vectors': [
    'ARGUMENT',
    'ids',
    () => withIds((index) => index.add([1, 2], ['a'])),
  ],
  'add: ids has "x" twice; each id must be unique': [
    'ARGUMENT',
    'ids',
    () => withIds((index) => index.add([1, 2, 3, 4], ['x', 'x'])),
  ],
  'update: ids is undefined; it must be an array of ids': [
    'ARGUMENT',
    'ids',
    (index) => index.update([1, 2]),
  ],
  'update: ids has 1 twice; each id must be unique': [
    'ARGUMENT',
    'ids',
    (index) => index.update([1, 2, 3, 4], [1, 1]),
  ],
  [`remove: ids has an object; ${idRule}`]: ['ARGUMENT', 'ids', (index) => index.remove([{}])],
  ...Object.fromEntries(
    ['abc', -1, 1.5, 4].map((id): [string, Row] => [
      `update: ids has ${JSON.stringify(id)}; in this index, it must be a position below 4`,
      ['ARGUMENT', 'ids', (index) => index.update([1, 2], [id])],
    ]),
  ),
  'add: an index has at most 2^24 ids': [
    'OUT_OF_MEMORY',
    '',
    () => {
      using index = create({ dimensions: 1, metric: 'dot', dtype: 'uint8' });
      index.add(new Uint8Array(2 ** 24 + 1), new Array(2 ** 24 + 1).fill(1));
    },
  ],
  'remove: ids is undefined; it must be an array or a Set of ids': [
    'ARGUMENT',
    'ids',
    (index) => index.remove(),
  ],
  [`remove: ids is Infinity; ${idRule}`]: ['ARGUMENT', 'ids', (index) => index.remove(Infinity)],
  'search: k is undefined; it must be a whole number 1 or more': [
    'ARGUMENT',
    'k',
    (index) => index.search([1, 0]),
  ],
  'search: k is 0; it must be a whole number 1 or more': [
    'ARGUMENT',
    'k',
    (index) => index.search([1, 0], 0),
  ],
  'search: k is 1.5; it must be a whole number 1 or more': [
    'ARGUMENT',
    'k',
    (index) => index.search([1, 0], 1.5),
  ],
  'search: query has 4 elements; a vector of the index has 2; pass several as a tensor of shape [n, 2]':
    ['SHAPE', 'query', (index) => index.search([1, 0, 1, 0], 1)],
  [`search: query has shape [3]; ${shapeRule}`]: [
    'SHAPE',
    'query',
    (index) => index.search({ data: new Float32Array(3), shape: [3] }, 1),
  ],
  'search: query has NaN at [0, 1]; each element must be finite': [
    'ARGUMENT',
    'query',
    (index) => index.search([1, NaN], 1),
  ],
  'search: row 0 of query is 0, or so small that its squares are 0; cosine needs a direction': [
    'ARGUMENT',
    'query',
    (index) => index.search(Float32Array.of(0, 0), 1),
  ],
  'search: query has type uint8; it must be float32, float16 or bfloat16': [
    'DTYPE',
    'query',
    (index) => index.search(Uint8Array.of(1, 0), 1),
  ],
  'search: the option "filters" is not known; it must be one of filter, minScore, candidates, fast, out':
    ['ARGUMENT', 'filters', (index) => index.search([1, 0], 1, { filters: [] })],
  'search: options is an array; it must be an object': [
    'ARGUMENT',
    'options',
    (index) => index.search([1, 0], 1, []),
  ],
  'search: options is an object; it must be an object': [
    'ARGUMENT',
    'options',
    (index) => index.search([1, 0], 1, new Uint8Array(0)),
  ],
  'search: minScore is NaN; it must be a number': [
    'ARGUMENT',
    'minScore',
    (index) => index.search([1, 0], 1, { minScore: NaN }),
  ],
  'search: minScore is "0.5"; it must be a number': [
    'ARGUMENT',
    'minScore',
    (index) => index.search([1, 0], 1, { minScore: '0.5' }),
  ],
  'search: fast is "no"; it must be a boolean or a number': [
    'ARGUMENT',
    'fast',
    (index) => index.search([1, 0], 1, { fast: 'no' }),
  ],
  'search: candidates is 3; it must be absent in an index without rescore': [
    'ARGUMENT',
    'candidates',
    (index) => index.search([1, 0], 1, { candidates: 3 }),
  ],
  'search: candidates is 3; it must be a whole number 5 or more': [
    'ARGUMENT',
    'candidates',
    (index) => index.search([1, 0], 5, { candidates: 3 }),
  ],
  'search: filter is "a"; it must be an array or a Set of ids, a Uint32Array of bits, or a function':
    ['ARGUMENT', 'filter', (index) => index.search([1, 0], 1, { filter: 'a' })],
  'search: filter is Uint8Array; it must be an array or a Set of ids, a Uint32Array of bits, or a function':
    ['ARGUMENT', 'filter', (index) => index.search([1, 0], 1, { filter: new Uint8Array(1) })],
  [`search: filter has a symbol; ${idRule}`]: [
    'ARGUMENT',
    'filter',
    (index) => index.search([1, 0], 1, { filter: [Symbol.iterator] }),
  ],
  'search: filter has 0 elements; it needs 1': [
    'SHAPE',
    'filter',
    (index) => index.search([1, 0], 1, { filter: new Uint32Array(0) }),
  ],
  'search: the index was changed while the call read its arguments; a filter must not change it': [
    'ARGUMENT',
    'index',
    (index) => index.search([1, 0], 1, { filter: () => index.add([1, 0]) }),
  ],
  'search: out is 3; it must be an object': [
    'ARGUMENT',
    'out',
    (index) => index.search([1, 0], 1, { out: 3 }),
  ],
  'search: out.positions is undefined; it must be a Uint32Array': [
    'DTYPE',
    'out',
    (index) => index.search([1, 0], 1, { out: {} }),
  ],
  'search: out.scores is Float64Array; it must be a Float32Array': [
    'DTYPE',
    'out',
    (index) =>
      index.search([1, 0], 1, {
        out: { positions: new Uint32Array(1), scores: new Float64Array(1) },
      }),
  ],
  'search: out.positions has 5 elements; it needs 6': [
    'SHAPE',
    'out',
    (index) =>
      index.search({ data: Float32Array.of(1, 0, 1, 0), shape: [2, 2] }, 3, {
        out: { positions: new Uint32Array(5), scores: new Float32Array(6) },
      }),
  ],
  'search: out.found has 0 elements; it needs 1': [
    'SHAPE',
    'out',
    (index) =>
      index.search([1, 0], 1, {
        out: {
          positions: new Uint32Array(1),
          scores: new Float32Array(1),
          found: new Uint32Array(0),
        },
      }),
  ],
  'search: out.found is null; it must be a Uint32Array': [
    'DTYPE',
    'out',
    (index) =>
      index.search([1, 0], 1, {
        out: { positions: new Uint32Array(1), scores: new Float32Array(1), found: null },
      }),
  ],
  'idOf: position is -1; it must be a whole number 0 or more': [
    'ARGUMENT',
    'position',
    (index) => index.idOf(-1),
  ],
  'maxSim: documents is an array; it must be a Uint32Array': [
    'DTYPE',
    'documents',
    (index) => index.maxSim([1, 0], [4]),
  ],
  'maxSim: documents has 1 at [1]; it must ascend': [
    'ARGUMENT',
    'documents',
    (index) => index.maxSim([1, 0], Uint32Array.of(2, 1)),
  ],
  'maxSim: documents has 5 at [0]; the positions of the index end at 4': [
    'ARGUMENT',
    'documents',
    (index) => index.maxSim([1, 0], Uint32Array.of(5)),
  ],
  'maxSim: out has 0 elements; it needs 1': [
    'SHAPE',
    'out',
    (index) => index.maxSim([1, 0], Uint32Array.of(4), { out: new Float32Array(0) }),
  ],
  'maxSim: query has 3 elements; it must have a multiple of 2, the dimensions of the index': [
    'SHAPE',
    'query',
    (index) => index.maxSim([1, 0, 1], Uint32Array.of(4)),
  ],
  "maxSim: the metric of the index is euclidean; maxSim needs 'dot' or 'cosine'": [
    'ARGUMENT',
    'metric',
    () => {
      using index = filled({ metric: 'euclidean' });
      index.maxSim([1, 0], Uint32Array.of(4));
    },
  ],
};

function withIds(body: (index: Any) => unknown): unknown {
  using index = filled({}, ['a', 'b', 'c', 'd']);
  return body(index);
}

describe('refuses, changes nothing, and still works', () => {
  it.each(Object.entries(rows))('%s', (message, [code, argument, call]) => {
    using index = filled();
    const before = index.serialize();
    const { inUse } = wg.memory();
    const error = thrown(() => call(index));
    const op = message.split(':')[0] as string;
    expect((error as Error).message).toBe(message);
    expectError(error, { code, op, argument, says: [] });
    // A filter that changes the index has changed it.
    if (!message.includes('was changed')) {
      expect(index.serialize()).toEqual(before);
      expect(wg.memory().inUse).toBe(inUse);
    }
    expect(index.search([1, 0], 1)).toEqual([{ id: 0, score: 1 }]);
  });

  it('vectors of zeros only with cosine, and squares beyond float32', () => {
    for (const metric of ['dot', 'euclidean']) {
      using index = create({ dimensions: 2, metric });
      index.add([0, 0]);
      expect(index.search([0, 0], 1)).toEqual([{ id: 0, score: 0 }]);
    }
    using index = create({ dimensions: 2, metric: 'dot' });
    const message = (vectors: unknown) => (thrown(() => index.add(vectors)) as Error).message;
    expect(message([1e20, 0])).toBe(
      'add: row 0 of vectors is too large: in the type of the index, the sum of its squares must be a finite float32',
    );
    using cosine = create();
    expect((thrown(() => cosine.add([1, 0, 1e-30, 0])) as Error).message).toBe(
      'add: row 1 of vectors is 0, or so small that its squares are 0; cosine needs a direction',
    );
  });

  it('fractions and numbers beyond 255 in uint8', () => {
    using index = create({ dimensions: 2, dtype: 'uint8', metric: 'euclidean' });
    index.add([0, 255]);
    index.add(Uint8Array.of(3, 4));
    for (const wrong of [0.5, -1, 256])
      expect((thrown(() => index.add([1, wrong])) as Error).message).toMatch(/^add: vectors has a fraction or a number out of range at \[0, 1\]; each element must be a whole number from 0 to 255$/); // prettier-ignore
    expect(index.search([0, 0], 1)).toEqual([{ id: 1, score: 5 }]);
  });

  it('detached arrays and disposed handles', () => {
    using index = filled();
    const detached = new Float32Array(2);
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    const tensor = { data: detached, shape: [1, 2] };
    const held = wg.alloc('float32', [1, 2]);
    const view = held.data;
    held.dispose();
    for (const given of [detached, tensor, held, view]) {
      for (const [op, argument, call] of [
        ['add', 'vectors', () => index.add(given)],
        ['search', 'query', () => index.search(given, 1)],
        ['maxSim', 'query', () => index.maxSim(given, Uint32Array.of(4))],
      ] as const) {
        const error = thrown(call) as GemmError;
        expect(error).toBeInstanceOf(GemmError);
        expect(error).toMatchObject({ op, argument });
      }
    }
    const bits = new Uint32Array(1);
    structuredClone(bits.buffer, { transfer: [bits.buffer] });
    for (const call of [
      () => index.search([1, 0], 1, { filter: bits }),
      () => index.search([1, 0], 1, { out: { positions: bits, scores: new Float32Array(1) } }),
      () => index.maxSim([1, 0], bits),
    ])
      expect((thrown(call) as Error).message).toContain('it was transferred');
  });

  it('a disposed index and instance', async () => {
    const other = await createGemm();
    for (const [dispose, argument] of [
      ['index', 'index'],
      ['instance', 'instance'],
    ]) {
      const index = create({ dimensions: 2 }, other);
      index.add(four());
      const bytes = index.serialize();
      (dispose === 'index' ? index : other).dispose();
      expect(index).toMatchObject({ disposed: true, byteLength: 0 });
      const calls = {
        add: () => index.add([1, 0]),
        update: () => index.update([1, 0], [0]),
        remove: () => index.remove(0),
        search: () => index.search([1, 0], 1),
        idOf: () => index.idOf(0),
        maxSim: () => index.maxSim([1, 0], Uint32Array.of(1)),
        serialize: () => index.serialize(),
      };
      for (const [op, call] of Object.entries(calls))
        expectError(thrown(call), { code: 'DISPOSED', op, argument: argument as string, says: [] });
      index.dispose();
      if (dispose === 'instance') {
        for (const [op, call] of Object.entries({
          createIndex: () => create({ dimensions: 2 }, other),
          deserializeIndex: () => deserializeIndex(other, bytes),
        }))
          expectError(thrown(call), { code: 'DISPOSED', op, argument: 'instance', says: [] });
      }
    }
  });

  it('a tensor of another instance', async () => {
    using other = await createGemm();
    using index = filled();
    const held = other.alloc('float32', [1, 2]);
    for (const [op, argument, call] of [
      ['add', 'vectors', () => index.add(held)],
      ['search', 'query', () => index.search(held, 1)],
    ] as const)
      expectError(thrown(call), { code: 'ARGUMENT', op, argument, says: ['another instance'] });
  });
});

describe('objects that lie or run code', () => {
  it('getters that dispose of the index or add to it', () => {
    for (const change of ['dispose', 'add'] as const) {
      const index = filled();
      const act = () => (change === 'dispose' ? index.dispose() : index.add([1, 0]));
      const options = {
        get fast() {
          act();
          return false;
        },
      };
      const tensor = {
        data: Float32Array.of(1, 0),
        get shape() {
          act();
          return [2];
        },
      };
      if (change === 'dispose') {
        expect((thrown(() => index.search([1, 0], 1, options)) as Error).message).toBe('search: the index is disposed'); // prettier-ignore
        expect((thrown(() => index.search(tensor, 1)) as Error).message).toBe('search: the index is disposed'); // prettier-ignore
      } else {
        expect(index.search([1, 0], 9, options)).toHaveLength(5);
        expect((thrown(() => index.search(tensor, 1)) as Error).message).toContain('was changed');
        expect(index.add(tensor)).toBe(7); // the getter adds first
      }
      index.dispose();
    }
  });

  it('a filter may search, and throw', () => {
    using index = filled();
    const found = index.search([1, 0], 4, {
      filter: (id: number) => {
        const inner = index.search([0, 1], 1, { filter: (id: number) => id < 2 }) as {
          id: number;
        }[];
        return inner[0]?.id !== id;
      },
    }) as { id: number }[];
    expect(found.map(({ id }) => id)).toEqual([0, 2, 3]);
    const mine = new RangeError('mine');
    expect(
      thrown(() =>
        index.search([1, 0], 1, {
          filter: () => {
            throw mine;
          },
        }),
      ),
    ).toBe(mine);
    expect(index.search([1, 0], 1)).toEqual([{ id: 0, score: 1 }]);
  });

  it('each option is read once', () => {
    const read: string[] = [];
    const spy = <T extends object>(object: T): T =>
      new Proxy(object, {
        get(target, key) {
          if (typeof key === 'string') read.push(key);
          return Reflect.get(target, key) as unknown;
        },
      });
    using index = create(spy({ dimensions: 2, metric: 'dot', dtype: 'int8', rescore: 'float32', capacity: 5 })); // prettier-ignore
    expect(read.sort()).toEqual(['capacity', 'dimensions', 'dtype', 'metric', 'rescore']);
    index.add(four());
    read.length = 0;
    const out = spy({ positions: new Uint32Array(2), scores: new Float32Array(2), found: new Uint32Array(1) }); // prettier-ignore
    index.search([1, 0], 2, spy({ filter: [0], minScore: 0, candidates: 2, fast: 1, out }));
    const own = ['candidates', 'fast', 'filter', 'minScore', 'out', 'found', 'positions', 'scores'];
    expect(read.sort()).toEqual(own.sort());
    read.length = 0;
    index.maxSim([1, 0], Uint32Array.of(4), spy({ fast: false, out: new Float32Array(1) }));
    expect(read.sort()).toEqual(['fast', 'out']);
  });

  it('lists whose length lies', () => {
    using index = filled();
    const lying = (length: unknown) =>
      new Proxy([1, 0], {
        get: (list, key) => (key === 'length' ? length : Reflect.get(list, key)) as unknown,
      });
    for (const length of [-1, 1.5, 'x', 2 ** 40, undefined]) {
      for (const call of [
        () => index.add(lying(length)),
        () => index.add([1, 0], lying(length)),
        () => index.remove(lying(length)),
        () => index.search(lying(length), 1),
        () => index.search([1, 0], 1, { filter: lying(length) }),
      ])
        expect((thrown(call) as Error).message).toMatch(/ is an array of length /);
    }
  });

  it('properties of Object.prototype change nothing', () => {
    const polluted = Object.prototype as Record<string, unknown>;
    const names = ['dimensions', 'metric', 'dtype', 'rescore', 'capacity', 'filter', 'minScore'];
    names.push('candidates', 'fast', 'out', 'positions', 'scores', 'found');
    try {
      for (const name of names) polluted[name] = 'wrong';
      using index = filled();
      const out = { positions: new Uint32Array(1), scores: new Float32Array(1) };
      expect(index.search([1, 0], 1, { out })).toBe(1);
      expect(index.search([1, 0], 1, {})).toEqual([{ id: 0, score: 1 }]);
      expect(index.maxSim([1, 0], Uint32Array.of(1), {})).toEqual(Float32Array.of(1));
      expect((thrown(() => create({})) as Error).message).toContain('dimensions is undefined');
    } finally {
      for (const name of names) delete polluted[name];
    }
  });
});

describe('bytes', () => {
  const made = () => {
    const random = new Random(6);
    const list: Uint8Array[] = [];
    for (const dtype of ['float32', 'bfloat16', 'int8', 'uint8']) {
      for (const rescore of dtype === 'int8' ? [undefined, 'float32', 'bfloat16'] : [undefined]) {
        using index = create({ dimensions: 5, dtype, rescore });
        const vectors = Array.from({ length: 50 }, () => random.between(1, 200));
        index.add(
          vectors,
          rescore ? ['a', 2, 'é\ud800', '', 0.1, 'f', 'g', 'h', 'i', 'j'] : undefined,
        );
        index.remove(rescore ? 2 : 4);
        list.push(index.serialize());
      }
    }
    return list;
  };

  it('are the same whatever was removed before', () => {
    using index = filled();
    using other = create({ dimensions: 2, capacity: 50 });
    other.add([9, 9, ...four()]);
    other.remove(0);
    index.update([...four().subarray(0, 2)], [0]);
    for (const bytes of [index.serialize(), other.serialize(), ...made()]) {
      using read = deserializeIndex(wg, bytes);
      expect(read.serialize()).toEqual(bytes);
      for (const given of [bytes.buffer, new Uint8Array([0, ...bytes]).subarray(1)]) {
        using again = deserializeIndex(wg, given);
        expect(again.serialize()).toEqual(bytes);
      }
      const shared = new Uint8Array(new SharedBuffer(bytes.length));
      shared.set(bytes);
      using same = deserializeIndex(wg, shared);
      expect(same.serialize()).toEqual(bytes);
    }
  });

  it('may be a view of the heap, which grows', async () => {
    using own = await createGemm();
    using index = create({ dimensions: 1000 });
    index.add(new Random(1).tensor('float32', [1000, 1000]));
    const bytes = index.serialize();
    using held = own.alloc('uint8', [bytes.length]);
    held.data.set(bytes);
    using read = deserializeIndex(own, held.data);
    expect(read.serialize()).toEqual(bytes);
  });

  it('keep positions, ids and scores', () => {
    using index = filled({ dtype: 'int8', rescore: 'bfloat16' }, ['a', 'b', 'c', 'd']);
    index.remove('b');
    using read = deserializeIndex<string>(wg, index.serialize());
    expect(read).toMatchObject({ size: 3, nextPosition: 4, dtype: 'int8', metric: 'cosine' });
    expect(read.search([1, 0], 9)).toEqual(index.search([1, 0], 9));
    expect(read.idOf(2)).toBe('c');
    expect(read.add([1, 0], ['e'])).toBe(4);
    expect(read.search([1, 0], 1, { candidates: 5 })).toEqual([{ id: 'a', score: 1 }]);
  });

  it('are right although Array.prototype has toJSON', () => {
    const polluted = Array.prototype as { toJSON?: unknown };
    using index = filled({}, ['a', 'b', 'c', 0.5]);
    const bytes = index.serialize();
    try {
      polluted.toJSON = () => 'wrong';
      expect(index.serialize()).toEqual(bytes);
    } finally {
      delete polluted.toJSON;
    }
  });

  it('have no ids if the index has never had a vector', () => {
    expect(new Ledger().restore([], null, 0)).toBe(true);
    expect(new Ledger().restore([], [], 1)).toBe(true);
    expect(new Ledger().restore([], [], 0)).toBe(false);
  });

  it('of an empty index make an empty index', () => {
    using index = create({ dimensions: 7, metric: 'dot' });
    using read = deserializeIndex(wg, index.serialize());
    expect(read).toMatchObject({ dimensions: 7, metric: 'dot', size: 0 });
    index.add([1, 2, 3, 4, 5, 6, 7], ['x']);
    index.remove('x');
    using other = deserializeIndex<string>(wg, index.serialize());
    expect(other).toMatchObject({ size: 0, nextPosition: 1 });
    expect(other.add([1, 2, 3, 4, 5, 6, 7], ['x'])).toBe(1);
    expect((thrown(() => other.add([1, 2, 3, 4, 5, 6, 7])) as Error).message).toContain(
      'ids is missing',
    );
  });

  it('that are cut, changed or forged are refused', () => {
    const random = new Random(7);
    for (const bytes of made()) {
      for (let length = 0; length < bytes.length; length += random.between(1, 40))
        expect(thrown(() => deserializeIndex(wg, bytes.slice(0, length)))).toBeInstanceOf(
          PackMismatchError,
        );
      for (let i = 0; i < 300; ++i) {
        const forged = bytes.slice();
        const at = i < 80 ? i : random.between(0, bytes.length - 1);
        forged[at] = (forged[at] as number) ^ (1 << random.between(0, 7));
        const error = thrown(() => deserializeIndex(wg, forged));
        expect(error).toBeInstanceOf(PackMismatchError);
        expectError(error, {
          code: 'PACK_MISMATCH',
          op: 'deserializeIndex',
          argument: 'bytes',
          says: [],
        });
      }
    }
  });

  it('say what is wrong', () => {
    const [bytes] = made() as [Uint8Array];
    const message = (change: (bytes: Uint8Array, view: DataView) => unknown) => {
      const forged = bytes.slice();
      const changed = change(forged, new DataView(forged.buffer));
      return (thrown(() => deserializeIndex(wg, (changed ?? forged) as never)) as Error).message;
    };
    const { length } = bytes;
    const start = 'deserializeIndex: bytes ';
    expect(message(() => 3)).toBe(`${start}is 3; it must be a Uint8Array or an ArrayBuffer`);
    expect(message((all) => all.slice(0, 79))).toBe(`${start}has 79 bytes; expected at least 80`);
    expect(message((all) => all.fill(0, 0, 1))).toBe(`${start}is not an index: it does not begin with "wgemm-ix"`); // prettier-ignore
    expect(message((_, view) => view.setUint32(8, 9, true))).toBe(`${start}is of version 9; this library reads version 1`); // prettier-ignore
    expect(message((all) => all.slice(0, -8))).toBe(
      `${start}has ${length - 8} bytes; expected ${length}`,
    );
    expect(message((_, view) => view.setFloat64(24, 0.5, true))).toBe(`${start}is corrupt: its header has invalid numbers`); // prettier-ignore
    expect(message((all) => void (all[length - 9] = 99))).toBe(`${start}is corrupt: the checksum does not match the contents`); // prettier-ignore
  });
});

describe('memory', () => {
  it('after removal of a quarter is free, and vectors keep their order', () => {
    const random = new Random(8);
    using index = create({ dimensions: 4, capacity: 32, metric: 'dot' });
    index.add(random.tensor('float32', [5000, 4]));
    const { byteLength } = index;
    const wanted = index.search([1, 2, 3, 4], 5000) as { id: number }[];
    const left = wanted.filter(({ id }) => id % 100 === 0);
    index.remove(Array.from({ length: 5000 }, (_, id) => id).filter((id) => id % 100 !== 0));
    expect(index.byteLength).toBeLessThan(byteLength / 2);
    expect(index.search([1, 2, 3, 4], 5000)).toEqual(left);
    index.add(random.tensor('float32', [3000, 4]));
    expect(index.size).toBe(3050);
  });

  it('fails without memory, changes nothing, and the next call works', async () => {
    const limit = 3 << 20;
    using own = await createGemm({ maxMemory: limit });
    const random = new Random(9);
    using index = create({ dimensions: 64, capacity: 100, metric: 'dot' }, own);
    index.add(random.tensor('float32', [100, 64]));
    const before = index.serialize();
    const many = random.tensor('float32', [9000, 64]);
    const error = thrown(() => index.add(many));
    expectError(error, { code: 'OUT_OF_MEMORY', op: 'add', argument: '', says: ['no memory'] });
    expect(index.serialize()).toEqual(before);
    let added = 0;
    for (;;) {
      try {
        index.add(random.tensor('float32', [100, 64]));
        added += 100;
      } catch (error) {
        expectError(error, { code: 'OUT_OF_MEMORY', op: 'add', argument: '', says: ['no memory'] });
        break;
      }
    }
    expect(added).toBeGreaterThan(5000); // smaller pieces, if large ones do not fit
    expect(index.size).toBe(100 + added);
    expect(index.search(random.tensor('float32', [64]).data, 3)).toHaveLength(3);
    const filler: { dispose(): void }[] = [];
    for (let bytes = limit; bytes >= 64;) {
      try {
        filler.push(own.alloc('uint8', [bytes]));
      } catch {
        bytes = Math.floor(bytes / 2);
      }
    }
    const query = random.tensor('float32', [500, 64]);
    for (const call of [() => index.search(query, 100), () => index.serialize()])
      expect(thrown(call)).toMatchObject({ code: 'OUT_OF_MEMORY' });
    // Without memory for bits, the removed vectors stay until a later removal.
    const half = Array.from({ length: index.size / 2 }, (_, i) => 2 * i);
    expect(index.remove(half)).toBe(half.length);
    for (const each of filler) each.dispose();
    const found = index.search(query.data.subarray(0, 64), 100) as { id: number }[];
    expect(found.every(({ id }) => id % 2 === 1)).toBe(true);
    const { byteLength } = index;
    index.remove(1);
    expect(index.byteLength).toBeLessThan(byteLength);
    expect(index.search(query, 100)).toHaveLength(500);
  });

  it('is enough to serialize when little is left', async () => {
    using own = await createGemm({ maxMemory: 8 * 2 ** 20 });
    using index = create({ dimensions: 64, metric: 'dot' }, own);
    const hundred = new Float32Array(6400).fill(1);
    const error = thrown(() => {
      for (;;) index.add(hundred);
    });
    expectError(error, { code: 'OUT_OF_MEMORY', op: 'add', argument: '', says: [] });
    using read = deserializeIndex(wg, index.serialize());
    expect(read.size).toBe(index.size);
  });

  it('is freed by collection', async () => {
    using own = await createGemm();
    (() => {
      const index = create({ dimensions: 2 }, own);
      index.add(four());
    })();
    const { gc } = globalThis as { gc?: () => void };
    for (let i = 0; gc && i < 50 && own.memory().inUse > 0; ++i) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    if (gc) expect(own.memory().inUse).toBe(0);
  });
});
