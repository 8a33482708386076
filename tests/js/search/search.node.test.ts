/** Indexes in a worker: the results, bytes and errors of those here. Searches that make no object. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm as createHere, type Gemm } from 'wgemm';
import * as here from 'wgemm/search';
import {
  createGemm,
  createIndex,
  deserializeIndex,
  type WorkerGemm,
  type WorkerVectorIndex,
} from 'wgemm/worker';
import { fewestCollections } from '../support/collections.js';
import { expectSameError, rejected, thrown } from '../support/errors.js';
import { Random } from '../support/random.js';

let wg: WorkerGemm;
let local: Gemm;
beforeAll(async () => {
  [wg, local] = await Promise.all([createGemm(), createHere()]);
});
afterAll(async () => {
  expect((await wg.memory()).inUse).toBe(0);
  wg.dispose();
  local.dispose();
});

const random = new Random(1);
const floats = (...shape: number[]) =>
  random.tensor('float32', shape) as { data: Float32Array; shape: readonly number[] };

/** Both indexes, without types: see search.test.ts. */
type Call = (...args: unknown[]) => unknown;
type Both = Record<'add' | 'update' | 'remove' | 'search' | 'idOf' | 'maxSim' | 'serialize', Call>;
async function both(options: object) {
  const there = await createIndex(wg, options as never);
  const same = here.createIndex(local, options as never);
  return {
    there: there as never as Both & WorkerVectorIndex,
    here: same as never as Both & here.VectorIndex,
  };
}

describe('an index in a worker', () => {
  it.each([
    ['float32', undefined, true],
    ['bfloat16', undefined, false],
    ['int8', 'float32', true],
    ['uint8', undefined, false],
  ])('%s, rescored %s, with ids %s: equals the index here', async (dtype, rescore, hasIds) => {
    const { there, here } = await both({ dimensions: 19, dtype, rescore, capacity: 40 });
    const same = async (op: keyof Both, ...args: unknown[]) => {
      const [found, wanted] = [await there[op](...args), here[op](...args)];
      expect(found).toEqual(wanted);
      const { size, nextPosition, byteLength } = here;
      expect(there).toMatchObject({ size, nextPosition, byteLength });
      return wanted;
    };
    const vectors = (n: number) =>
      dtype === 'uint8'
        ? {
            data: Uint8Array.from({ length: 19 * n }, () => random.between(0, 255)),
            shape: [n, 19],
          }
        : floats(n, 19);
    const ids = (n: number, from: number) =>
      hasIds
        ? Array.from({ length: n }, (_, i) => (i % 2 ? `id ${from + i}` : from + i))
        : undefined;
    await same('add', vectors(50), ids(50, 0));
    await same('add', vectors(1).data, ids(1, 50));
    await same('add', Array.from(vectors(2).data), ids(2, 51));
    await same('update', vectors(3), hasIds ? ['id 1', 'new', 2] : [1, 7, 2]);
    await same('remove', hasIds ? 'id 3' : 3);
    await same('remove', new Set([4, 6, 'id 5', 'none']));
    await same('idOf', 8);
    await same('idOf', 3);
    const query = vectors(1);
    const queries = vectors(4);
    await same('search', query.data, 5);
    await same('search', { ...query, shape: [19] }, 100);
    await same('search', queries, 3, { minScore: 0.1 });
    const candidates = rescore ? 9 : undefined;
    await same('search', queries, 3, { filter: [8, 10, 12, 'id 9'], candidates });
    await same('search', queries, 3, { filter: new Set([8, 10]) });
    await same('search', queries, 3, { filter: Uint32Array.of(-1, 0xff, 7).subarray(0, 2) });
    for (const k of [3, 100]) {
      const outs = [0, 1].map(() => ({
        positions: new Uint32Array(4 * k).fill(7),
        scores: new Float32Array(4 * k).fill(7),
        found: new Uint32Array(4),
      }));
      const [first, second] = outs;
      const found = await there.search(queries, k, { out: first, minScore: 0 });
      expect(found).toBe(here.search(queries, k, { out: second, minScore: 0 }));
      expect(first).toEqual(second);
    }
    await same('maxSim', queries, Uint32Array.of(3, 3, 50));
    const out = new Float32Array(2);
    expect(await there.maxSim(queries, Uint32Array.of(9), { out, fast: false })).toBe(out);
    expect(out[1]).toBe(0);
    const bytes = (await same('serialize')) as Uint8Array<ArrayBuffer>;
    const read = await deserializeIndex(wg, bytes);
    expect(await read.serialize()).toEqual(bytes);
    expect(read).toMatchObject({ size: here.size, nextPosition: here.nextPosition });
    for (const each of [there, here, read]) each.dispose();
    expect(there.disposed).toBe(true);
  });

  it('takes tensors in the memory of the worker', async () => {
    const index = await createIndex(wg, { dimensions: 3 });
    const held = await wg.alloc('float32', [2, 3]);
    await held.write(Float32Array.of(1, 0, 0, 0, 1, 0));
    await index.add(held);
    expect(await index.search(held as never, 1)).toEqual([
      [{ id: 0, score: 1 }],
      [{ id: 1, score: 1 }],
    ]);
    const view = { data: held, shape: [3], offset: 3 };
    expect(await index.search(view as never, 1)).toEqual([{ id: 1, score: 1 }]);
    held.dispose();
    index.dispose();
  });

  it('refuses what the index here refuses', async () => {
    const { there, here } = await both({ dimensions: 2 });
    for (const index of [there, here]) await index.add(Float32Array.of(1, 0, 4, 3), ['a', 'b']);
    const one = Float32Array.of(1, 0);
    const calls: [keyof Both, ...unknown[]][] = [
      ['add', [1]],
      ['add', one],
      ['add', one, ['a']],
      ['add', one, [null]],
      ['add', one, 'c'],
      ['add', Float32Array.of(NaN, 0), ['c']],
      ['add', [0, 0], ['c']],
      ['add', new Int8Array(2), ['c']],
      ['update', one],
      ['update', one, ['c', 'd']],
      ['remove', {}],
      ['remove', [undefined]],
      ['search', one],
      ['search', one, 0],
      ['search', [1, 0, 1, 0], 1],
      ['search', { data: one, shape: [1, 1, 2] }, 1],
      ['search', [NaN, 0], 1],
      ['search', one, 1, { filter: [{}] }],
      ['search', one, 1, { filter: new Uint32Array(0) }],
      ['search', one, 1, { minScore: NaN }],
      ['search', one, 5, { candidates: 3 }],
      ['search', one, 1, { candidates: 3 }],
      ['search', one, 1, { fast: 'x' }],
      ['search', one, 1, { filters: 1 }],
      ['search', one, 1, { out: 3 }],
      ['search', one, 1, { out: {} }],
      ['search', one, 2, { out: { positions: new Uint32Array(1), scores: new Float32Array(2) } }],
      ['idOf', 0.5],
      ['maxSim', one, [2]],
      ['maxSim', one, Uint32Array.of(3)],
      ['maxSim', one, Uint32Array.of(2, 1)],
      ['maxSim', one, Uint32Array.of(2), { out: new Float32Array(0) }],
      ['maxSim', one, Uint32Array.of(2), { out: [] }],
    ];
    for (const [op, ...args] of calls) {
      const wanted = thrown(() => here[op](...args));
      expectSameError(await rejected(there[op](...args) as Promise<unknown>), wanted);
    }
    const error = await rejected(there.search(one, 1, { filter: () => true }) as Promise<unknown>);
    expect((error as Error).message).toBe(
      'search: filter is a function; it must be an array or a Set of ids, or a Uint32Array of bits; a worker takes no function',
    );
    expect(await there.search(one, 1)).toEqual([{ id: 'a', score: 1 }]);
    expect(there.size).toBe(2);
    for (const options of [undefined, {}, { dimensions: 2, metric: 'l2' }]) {
      const wanted = thrown(() => here_createIndex(options));
      expectSameError(await rejected(createIndex(wg, options as never)), wanted);
    }
    const wanted = thrown(() => here_deserializeIndex(new Uint8Array(90)));
    expectSameError(await rejected(deserializeIndex(wg, new Uint8Array(90))), wanted);
    expect(
      ((await rejected(createIndex(local as never, { dimensions: 2 }))) as Error).message,
    ).toBe(
      'createIndex: wg is an object; it must be an instance of wgemm/worker; for an instance of wgemm, import createIndex from wgemm/search',
    );
    here.dispose();
    there.dispose();
    for (const op of [
      'add',
      'update',
      'remove',
      'search',
      'idOf',
      'maxSim',
      'serialize',
    ] as const) {
      const args: Record<string, unknown[]> = {
        idOf: [1],
        remove: ['a'],
        serialize: [],
        maxSim: [one, Uint32Array.of(1)],
      };
      const given = args[op] ?? [one, op === 'search' ? 1 : ['c']];
      const error = await rejected(Promise.resolve().then(() => there[op](...given)));
      expectSameError(
        error,
        thrown(() => here[op](...given)),
      );
    }
  });

  it('does not write to arrays that were detached meanwhile', async () => {
    const index = await createIndex(wg, { dimensions: 2 });
    await index.add([1, 0]);
    const out = { positions: new Uint32Array(1), scores: new Float32Array(1) };
    const found = index.search([1, 0], 1, { out });
    structuredClone(out.scores.buffer, { transfer: [out.scores.buffer] });
    expect(((await rejected(found)) as Error).message).toContain('detached array as out.scores');
    index.dispose();
  });

  it('a signal ends a call', async () => {
    const index = await createIndex(wg, { dimensions: 2 });
    const reason = new Error('enough');
    const controller = new AbortController();
    const added = index.add([1, 0], null, { signal: controller.signal });
    controller.abort(reason);
    expect(await rejected(added)).toBe(reason);
    expect(await rejected(index.search([1, 0], 1, { signal: controller.signal }))).toBe(reason);
    index.dispose();
  });

  it('ends with its instance', async () => {
    const other = await createGemm();
    const index = await createIndex(other, { dimensions: 2 });
    const pending = index.add([1, 0]);
    other.dispose();
    expect(index.disposed).toBe(true);
    for (const promise of [pending, index.search([1, 0], 1)])
      expect(await rejected(promise)).toMatchObject({ code: 'DISPOSED', argument: 'instance' });
  });
});

const here_createIndex = (options: unknown) => here.createIndex(local, options as never);
const here_deserializeIndex = (bytes: Uint8Array) => here.deserializeIndex(local, bytes);

it('100,000 searches with the option out leave nothing for the collector', async () => {
  const index = here.createIndex(local, { dimensions: 16 });
  index.add(floats(64, 16));
  index.remove([3, 4]);
  const query = floats(16).data;
  const held = local.alloc('float32', [16]);
  held.data.set(query);
  const options = {
    filter: new Uint32Array(2).fill(-1),
    minScore: -1,
    out: { positions: new Uint32Array(5), scores: new Float32Array(5), found: new Uint32Array(1) },
  };
  const run = (calls: number) => {
    for (let i = 0; i < calls; ++i) {
      index.search(query, 5, options);
      index.search(held, 5, options);
    }
  };
  expect(await fewestCollections(run, 3000, 50_000)).toBeLessThanOrEqual(1);
  held.dispose();
  index.dispose();
});
