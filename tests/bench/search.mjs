// npm run bench -- --search: the ten nearest of many vectors by wgemm/search, by approximate
// indexes of npm and by other exact searches, in turns. An approximate index must be built first,
// and misses some of the nearest: the table has both.
import { createGemm } from 'wgemm';
import { fail } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import { loadOrt } from '../peers/onnx.mjs';
import { buildPrograms } from './build-programs.mjs';
import { duration } from './print.mjs';
import { batch, dimensions, kinds, makeData, nearest, recallOf } from './search/data.mjs';
import { forms, memoryBandwidth, productAlone, products, wgemmIndex } from './search/own.mjs';
import { hnswlib, onnxRuntime, plainLoop, usearch, usearchExact } from './search/peers.mjs';
import { race } from './turns.mjs';

const k = 10;
/** More queries than are timed, so that recall has three digits. */
const queryCount = 100;
/** An exact search in float32 may differ from float64 in ties only. */
const leastRecall = 0.999;

/** Longer than usual, since some fifteen contestants share it. */
const raceMs = 6000;
/** Threads of ONNX Runtime Web go on to spin for a while, and would take the processors. */
const rest = 20;

const usualCounts = [10_000, 100_000];

/**
 * By the name that `sides` takes: makes a contestant, or several with the same index. one(query)
 * and many(queries) return positions, unless it is a bound.
 */
const makers = [
  ...forms.map((form) => ['wgemm', (...args) => wgemmIndex(form, ...args)]),
  ...products.map((one) => ['product', (...args) => productAlone(one, ...args)]),
  ['memory', memoryBandwidth],
  ['loop', plainLoop],
  ['onnxruntime-web', onnxRuntime],
  ['hnswlib-wasm', hnswlib],
  ['usearch', usearch],
  ['usearch', usearchExact],
];

const nameOf = ({ kind, count }) => `${kind} ${count.toLocaleString('en')} x ${dimensions}`;

/**
 * Prints the table of each case, and returns the rows.
 *
 * @param args.counts how many vectors, instead of the usual numbers
 * @param args.filter text that the name of a case must contain
 * @param args.sides some of the names in `makers`, or undefined: all of them
 */
export async function raceSearch({ threads, filter, counts = usualCounts, sides }) {
  const cases = counts.flatMap((count) => kinds.map((kind) => ({ kind, count })));
  const chosen = cases.filter((each) => nameOf(each).includes(filter));
  if (chosen.length === 0)
    fail(
      `bench: no case of search contains "${filter}"; there are ` + cases.map(nameOf).join(', '),
    );
  const names = makers.map(([name]) => name);
  const unknown = sides?.find((side) => !names.includes(side));
  if (unknown !== undefined)
    fail(`bench: --sides has '${unknown}'; it may have ${[...new Set(names)].join(', ')}`);
  const chosenMakers = makers.filter(([name]) => !sides || sides.includes(name));
  await setUp('search');
  using wg = await createGemm({ threads });
  const { build } = wg.info;
  await buildPrograms([build]);
  const settings = { k, threads, build, ort: await loadOrt({ threads }) };
  const rows = [];
  for (const one of chosen) rows.push(await raceCase(one, chosenMakers, settings));
  return rows;
}

async function raceCase({ kind, count }, makers, settings) {
  const name = nameOf({ kind, count });
  const data = makeData(kind, count, queryCount);
  const truth = nearest(data, k);
  const contestants = [];
  for (const [, make] of makers) {
    const start = performance.now();
    const made = [await make(data, settings)].flat();
    const build = performance.now() - start;
    contestants.push(...made.map((each) => ({ kind: 'peer', build, ...each })));
  }
  for (const each of contestants) each.recall = await recallBy(each, data, truth);
  const few = Array.from({ length: batch }, (_, i) => rowOf(data.queries, i));
  const many = data.queries.subarray(0, batch * dimensions);
  const turns = { raceMs, rest: settings.threads > 1 ? rest : 0 };
  let next = 0;
  const ones = await race(
    contestants.map(({ one }) => ({
      run: async (times) => {
        for (let i = 0; i < times; ++i) await one(few[next++ % batch]);
      },
    })),
    turns,
  );
  const batches = await race(
    contestants.map((each) => ({
      run: async (times) => {
        for (let i = 0; i < times; ++i) await each.many(many);
      },
    })),
    turns,
  );
  // Rows of one index share its function.
  for (const dispose of new Set(contestants.map((each) => each.dispose))) await dispose?.();
  const row = {
    name,
    count,
    contestants: contestants.map(({ name, kind, isApproximate, build, bytes, recall }, i) => ({
      name,
      kind,
      isApproximate,
      build,
      bytes,
      recall,
      one: ones[i],
      many: batches[i],
    })),
  };
  print(row);
  return row;
}

/** A copy: USearch's exact search ignores where a view begins. */
const rowOf = (rows, i) => rows.slice(i * dimensions, (i + 1) * dimensions);

/** Undefined for a bound: it finds nothing. */
async function recallBy({ name, kind, isExact, one }, { queries }, truth) {
  if (kind === 'bound') return undefined;
  const found = [];
  for (let i = 0; i < queryCount; ++i) found.push(Array.from(await one(rowOf(queries, i)), Number));
  const recall = recallOf(found, truth);
  if (isExact && recall < leastRecall)
    throw new Error(`${name} is exact, but its recall is ${recall}`);
  return recall;
}

// --- the table -----------------------------------------------------------------------------------

/**
 * How long `of` takes next to `than`, and how long it may or must: by one query, by many, or by
 * both. The target of memory is for more vectors than the caches hold.
 */
const ratios = [
  { of: 'wgemm, float32', than: 'memory, float32', one: 'at most 1.1' },
  {
    of: 'wgemm, float32',
    than: 'product alone, float32',
    one: 'at most 1.05',
    many: 'at most 1.05',
  },
  {
    of: 'wgemm, float32, fast',
    than: 'product alone, float32, fast',
    one: 'at most 1.05',
    many: 'at most 1.05',
  },
  { of: 'wgemm, int8', than: 'product alone, int8', one: 'at most 1.12', many: 'at most 1.12' },
  {
    of: 'wgemm, float32',
    than: 'wgemm, int8, rescored by float32',
    one: 'at least 3',
    many: 'at least 1.4, with VNNI 2.5',
  },
];

function print({ name, count, contestants }) {
  const row = (first, ...columns) =>
    console.log(first.padEnd(36) + columns.map((text) => text.padStart(11)).join(''));
  console.log('');
  row(name, '1 query', 'median', `${batch} queries`, 'median', `recall@${k}`, 'build', 'MB');
  for (const { name, build, bytes, recall, one, many } of contestants)
    row(
      name,
      ...[one, many].flatMap(({ best, median }) => [duration(best), duration(median)]),
      recall?.toFixed(3) ?? '',
      recall === undefined ? '' : `${(build / 1000).toFixed(2)} s`,
      (bytes / 1e6).toFixed(1),
    );
  const find = (name) => contestants.find((each) => each.name === name);
  for (const { of, than, ...targets } of ratios)
    for (const [which, target] of Object.entries(targets)) {
      const [first, second] = [find(of), find(than)];
      if (!first || !second) continue;
      const ratio = (first[which].best / second[which].best).toFixed(2);
      const queries = which === 'one' ? '1 query' : `${batch} queries`;
      console.log(`${queries}: ${of} / ${than}: ${ratio}; target ${target}`);
    }
  for (const peer of contestants) printGain(peer, contestants);
  for (const { name, kind, bytes } of contestants)
    if (kind === 'own' && !name.endsWith('fast'))
      console.log(`${name}: ${(bytes / count).toFixed(0)} MB per million vectors`);
}

/**
 * After how many queries, one by one, an approximate index has gained the time that its build took,
 * next to the fastest form of wgemm that finds as many of the nearest.
 */
function printGain({ name, isApproximate, build, recall, one }, contestants) {
  if (!isApproximate) return;
  const [own] = contestants
    .filter((each) => each.kind === 'own' && each.recall >= recall)
    .sort((a, b) => a.one.best - b.one.best);
  if (!own) return;
  const gain = own.one.best - one.best;
  const queries = Math.ceil((build - own.build) / gain);
  console.log(
    `${name} finds ${recall.toFixed(3)}; ${own.name}, finds ${own.recall.toFixed(3)}: ` +
      (gain > 0
        ? `the index has gained the time of its build after ${queries.toLocaleString('en')} queries`
        : 'the index is not faster'),
  );
}
