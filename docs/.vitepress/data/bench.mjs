// Reads docs/bench/runs.json, and prepares its runs for the pages. A name is DATE-MACHINE, then
// -ENGINE-THREADS unless the run is of Node on one thread, and then its kind:
//   nothing   by `npm run bench -- --json`: cases, and the sweep
//   -random   by `npm run bench -- --random --json`: random shapes
//   -models   by `npm run bench -- --models --json`: whole models next to ONNX Runtime Web
//   -accuracy by `npm run bench -- --accuracy --json`: errors, and what strict mode costs
//   -start    by `npm run bench:start -- --json`: start-up times, of several engines
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { threadsText } from '../../../tests/bench/print.mjs';
import { groupsOf } from '../../../tests/bench/random-rows.mjs';

export const file = join(import.meta.dirname, '..', '..', 'bench', 'runs.json');
export const readRuns = () => JSON.parse(readFileSync(file, 'utf8'));

/** Engines have this order on the pages. */
const engines = ['Node', 'Bun', 'Chromium', 'Firefox', 'WebKitGTK'];
const usualPage = 'node-1';

const pageOf = ({ engine, threads }) => `${engine.name.toLowerCase()}-${threads}`;

/** The name of a run in the data. @param machine DATE-MACHINE */
export function nameOf(machine, run) {
  if (!run.engine) return `${machine}-start`;
  const page = pageOf(run);
  const kind = run.kind ? `-${run.kind}` : run.rows ? '-random' : '';
  return `${machine}${page === usualPage ? '' : `-${page}`}${kind}`;
}

/** '2026-11-24-zen4-firefox-2' -> '2026-11-24, zen4' */
const titleOf = (name) => name.replace(/^(\d{4}-\d\d-\d\d)-(\w+).*$/, '$1, $2');

/** The runs of a page or of all, the newest first: { id, title, results?, random?, models? }. */
function runsOf(runs, page) {
  const named = Object.keys(runs).filter(
    (name) => runs[name].engine && !name.endsWith('-accuracy'),
  );
  return [...new Set(named.map((name) => name.replace(/-(random|models)$/, '')))]
    .map((id) => ({
      id,
      title: titleOf(id),
      results: runs[id],
      random: runs[`${id}-random`],
      models: runs[`${id}-models`],
    }))
    .map((each) => ({ ...each, about: each.results ?? each.random ?? each.models }))
    .filter(({ about }) => !page || pageOf(about) === page)
    .sort((a, b) => b.about.date.localeCompare(a.about.date));
}

const engineText = ({ engine }) => `${engine.name} ${engine.version}`;

const libraries = {
  ORT: 'ONNX Runtime Web',
  'ORT, constant B': 'ONNX Runtime Web',
  'onnxruntime-web': 'ONNX Runtime Web',
};
export const libraryOf = (name) => libraries[name] ?? name;

/** Forms of wgemm that are compared with a peer: the same types and threads, the default build. */
const usual = ['wgemm', 'wgemm, B packed'];

const rateOf = ({ operations, best }) => operations / best / 1e6;
const fastest = (contestants) =>
  contestants.reduce((one, each) => (one && rateOf(one) >= rateOf(each) ? one : each), undefined);

const number = (value, digits) =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Shows a rate in GOP/s. */
export const rateText = (rate) => number(rate, rate < 99.95 ? 1 : 0);

export function timeText(ms) {
  if (ms < 0.1) return `${number(ms * 1000, ms < 0.01 ? 2 : 1)} µs`;
  return `${number(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`;
}

export const ratioText = (ratio) => `${number(ratio, ratio < 9.995 ? 2 : 1)}×`;

const sizeText = (bytes) =>
  bytes < 1e6 ? `${number(bytes / 1e3, 0)} kB` : `${number(bytes / 1e6, 1)} MB`;

/** 'matmul float32 12 x 128x64x128, transposeB' -> types, shape and the rest. */
function partsOf({ name, m, n, k }) {
  const shape = `${m}x${n}x${k}`;
  const [before, after] = name.split(shape);
  const batch = /(\d+) x $/.exec(before)?.[1];
  const types = before.replace(/(\d+ x )?$/, '').trim();
  return {
    types: types.replace(' x ', ' × '),
    shape: batch ? `${batch} × (${m} × ${n} × ${k})` : `${m} × ${n} × ${k}`,
    detail: after.replace(/^(,? )+/, '').replace(/^to /, 'y '),
  };
}

/** The text of the first column, and of a bar. */
const labelOf = ({ types, shape, detail }) => [types, shape, detail].filter(Boolean).join(', ');

function formText(name) {
  const form = name.replace(/^wgemm(, )?/, '') || 'wgemm';
  return form === 'wgemm' ? 'B unpacked' : form.replace('one by one', 'a gemm per matrix');
}

/** Rows of one case: each form of wgemm, and the fastest peer. */
function caseOf(problem) {
  const of = (kind) => problem.contestants.filter((each) => each.kind === kind);
  const peer = fastest(of('peer'));
  const forms = of('own').map((each) => ({
    form: formText(each.name),
    rate: rateText(rateOf(each)),
    time: timeText(each.best),
    // A ratio of two threads to one would say nothing about the libraries.
    ratio: peer && !/threads/.test(each.name) ? ratioText(rateOf(each) / rateOf(peer)) : '',
  }));
  const own = fastest(of('own').filter(({ name }) => usual.includes(name)));
  return {
    ...partsOf(problem),
    forms,
    peer: peer && {
      library: libraryOf(peer.name),
      detail: /constant B/.test(peer.name) ? 'constant B' : '',
      rate: rateText(rateOf(peer)),
    },
    best: own && peer && rateOf(own) / rateOf(peer),
  };
}

/** Lengths of bars in percent of the width, on a logarithmic scale. */
function barsOf(cases) {
  const shown = cases.filter(({ best }) => best);
  const lowest = Math.min(1, ...shown.map(({ best }) => best));
  const from = lowest < 1 ? Math.min(Math.log2(lowest), -0.25) : 0;
  const to = Math.ceil(Math.log2(Math.max(...shown.map(({ best }) => best))));
  const at = (ratio) => Math.round(((Math.log2(ratio) - from) / (to - from)) * 1000) / 10;
  return {
    bars: shown.map((each) => {
      const [start, end] = [at(1), at(each.best)].sort((a, b) => a - b);
      return {
        label: labelOf(each),
        ratio: ratioText(each.best),
        peer: each.peer.library,
        start,
        width: Math.max(end - start, 0.4),
        slower: each.best < 1,
      };
    }),
    ticks: Array.from({ length: to + 1 }, (_, i) => ({ text: `${2 ** i}×`, at: at(2 ** i) })),
  };
}

const versionsText = (versions = {}) =>
  Object.entries(versions)
    .map(([name, version]) => `${libraryOf(name)} ${version}`)
    .join(', ');

/** Facts of every kind of run, by their names. */
const factsOf = ({ processor, date, engine, threads, withoutThreads, versions }) => ({
  Machine: processor,
  Date: date.slice(0, 10),
  ...(engine && { Engine: `${engineText({ engine })}, ${threadsText(threads)}` }),
  ...(withoutThreads && { 'One thread': withoutThreads.join(', ') }),
  Versions: versionsText(versions),
});

const hasSweep = (results) => results?.cases.some(({ name }) => name.startsWith('sweep ')) ?? false;

/** The runs that have a sweep: { id, results }. */
export const listSweeps = () => runsOf(readRuns()).filter(({ results }) => hasSweep(results));

const casesOf = (results) =>
  results.cases
    .filter(({ name }) => !/^(sweep|cliff) /.test(name))
    .filter(({ m }) => m !== undefined)
    .map(caseOf);

function randomOf({ rows, seed }) {
  const groups = groupsOf(rows).map(({ kind, arrays, shapes, worst, median, slower }) => ({
    kind: kind.replace(' x ', '\u00a0× '), // breaks only after the sign
    arrays,
    shapes,
    worst: ratioText(worst),
    median: ratioText(median),
    slower,
  }));
  return {
    seed,
    places: [
      { title: 'in the memory of each library', groups: groups.filter(({ arrays }) => !arrays) },
      { title: 'on plain arrays', groups: groups.filter(({ arrays }) => arrays) },
    ],
  };
}

/** Rows of whole models: ONNX Runtime Web's time next to ours. */
export const modelsOf = ({ cases }) =>
  cases.map(({ model, variant, contestants }) => {
    const [own, peer] = ['own', 'peer'].map((kind) =>
      contestants.find((each) => each.kind === kind),
    );
    const ratio = peer.median / own.median;
    return {
      model,
      variant,
      time: timeText(own.median),
      ratio: ratioText(ratio),
      slower: ratio < 1,
    };
  });

function runOf({ id, title, about, results, random, models }) {
  const cases = results && casesOf(results);
  return {
    id,
    title,
    facts: factsOf(about),
    ...(cases && { cases }),
    ...(cases?.some(({ best }) => best) && { chart: barsOf(cases) }),
    sweep: hasSweep(results),
    ...(random && { random: randomOf(random) }),
    ...(models && { models: modelsOf(models) }),
  };
}

/**
 * A page for each engine and number of threads that has a run: { page, title, engine, threads,
 * runs }, the newest run first.
 */
export function loadPages(all = readRuns()) {
  const pages = [...new Set(runsOf(all).map(({ about }) => pageOf(about)))].map((page) => {
    const runs = runsOf(all, page);
    const { engine, threads } = runs[0].about;
    return {
      page,
      title: `${engine.name}, ${threadsText(threads)}`,
      engine: engine.name,
      threads,
      runs: runs.map(runOf),
      median: medianOf(runs),
    };
  });
  const rank = ({ engine }) => engines.indexOf(engine);
  return pages.sort((a, b) => rank(a) - rank(b) || a.threads - b.threads);
}

/** The median of the ratios of the newest run with cases: { ratio, cases, run }, or undefined. */
function medianOf(runs) {
  const newest = runs.find(({ results }) => results && casesOf(results).some(({ best }) => best));
  if (!newest) return undefined;
  const { cases, median } = rangeOf(newest.results);
  return { ratio: ratioText(median), cases, run: newest.title };
}

/** The overview: a cell for each engine and number of threads, and all start-up times. */
export function loadOverview(all = readRuns()) {
  const pages = loadPages(all).map(({ page, title, engine, threads, median }) => ({
    page,
    title,
    engine,
    threads,
    median,
  }));
  const threads = [...new Set(pages.map((each) => each.threads))].sort((a, b) => a - b);
  return {
    columns: threads.map(threadsText),
    rows: [...new Set(pages.map(({ engine }) => engine))].map((engine) => ({
      engine,
      cells: threads.map(
        (count) => pages.find((each) => each.engine === engine && each.threads === count) ?? null,
      ),
    })),
    starts: Object.entries(all)
      .filter(([name]) => name.endsWith('-start'))
      .map(([name, run]) => startOf(name, run))
      .sort((a, b) => b.id.localeCompare(a.id)),
  };
}

function startOf(name, run) {
  return {
    id: name,
    title: titleOf(name),
    facts: factsOf(run),
    rows: run.rows.map(({ where, library, best, median, ratio, brotli }) => ({
      where,
      library: libraryOf(library),
      best: timeText(best),
      median: timeText(median),
      ratio: library === 'wgemm' ? '' : ratioText(ratio),
      size: brotli ? sizeText(brotli) : '',
    })),
  };
}

// --- the figures of the home page and of README.md -----------------------------------------------

/** The run of the front figures: the newest of Chromium on one thread. */
const frontPage = 'chromium-1';
const frontCase = 'float32 1024x1024x1024';
const columns = [
  { library: 'wgemm', names: usual, start: 'wgemm' },
  {
    library: 'ONNX Runtime Web',
    names: ['ORT', 'ORT, constant B'],
    start: 'onnxruntime-web',
    version: 'onnxruntime-web',
  },
  { library: 'tfjs', names: ['tfjs'], start: 'tfjs', version: 'tfjs' },
];

/** '2026-11-28-zen5-chromium-1' -> ['zen', '5'] */
const processorOf = (id) => /^\d{4}-\d\d-\d\d-([a-z]+)(\d+)/.exec(id).slice(1);

/** 'AMD EPYC (Zen 5)', of the name of a run and of the processor that the run states. */
export function machineOf(id, processor) {
  const [family, generation] = processorOf(id);
  const maker = processor.split(',')[0].replace(/\(R\)| Processor/g, '');
  return `${maker} (${family[0].toUpperCase()}${family.slice(1)} ${generation})`;
}

const rateUnit = (rate) => `${rate.toPrecision(3)} GOP/s`;

/** A bar of each library: lengths are in percent of the largest value. */
function barOf({ title, detail, values, text, isMore }) {
  const largest = Math.max(...values);
  return {
    title,
    detail,
    better: isMore ? 'more is faster' : 'less is better',
    bars: values.map((value, i) => ({
      library: columns[i].library,
      text: text(value),
      width: Math.round((value / largest) * 1000) / 10,
    })),
  };
}

/**
 * Size, start and speed next to two peers: the newest start-up times, and the newest run of
 * Chromium on one thread of the same processor.
 */
export function loadFront(all = readRuns()) {
  const [startId] = Object.keys(all)
    .filter((name) => name.endsWith('-start'))
    .sort()
    .reverse();
  const start = all[startId];
  const processor = processorOf(startId).join('');
  const found = runsOf(all, frontPage).find(
    ({ id, results }) =>
      processorOf(id).join('') === processor &&
      results?.cases.some(({ name }) => name === frontCase),
  );
  if (!found) throw new Error(`docs/bench/runs.json has no run of ${frontPage} on ${processor}`);
  const { id, results } = found;
  const inPage = columns.map((column) =>
    start.rows.find(({ library, brotli }) => library === column.start && brotli),
  );
  const problem = results.cases.find(({ name }) => name === frontCase);
  const rates = columns.map(({ names }) =>
    rateOf(fastest(problem.contestants.filter(({ name }) => names.includes(name)))),
  );
  return {
    page: frontPage,
    results,
    date: [...new Set([results.date.slice(0, 10), startId.slice(0, 10)])].join(' and '),
    machine: machineOf(id, results.processor),
    engine: engineText(results).replace(/\..*/, ''),
    libraries: columns.map(({ library, version }) => ({
      library,
      version: version ? results.versions[version] : '',
    })),
    figures: [
      barOf({
        title: 'Download',
        detail: 'the bundle and its .wasm, with brotli',
        values: inPage.map(({ brotli }) => brotli),
        text: (bytes) => `${(bytes / 1000).toFixed(0)} kB`,
      }),
      barOf({
        title: 'First result',
        detail: 'from the import on',
        values: inPage.map(({ best }) => best),
        text: (ms) => `${ms.toFixed(0)} ms`,
      }),
      barOf({
        title: 'Speed',
        detail: 'float32, 1024 × 1024 × 1024',
        values: rates,
        text: rateUnit,
        isMore: true,
      }),
    ],
  };
}

/** The figures that the home page shows. */
export function loadHome() {
  const { page, date, machine, engine, libraries, figures } = loadFront();
  return { page, date, machine, engine, libraries, figures };
}

/**
 * How many times as fast as the fastest peer, over all cases of a run: { cases, lowest, median,
 * highest }.
 */
export function rangeOf(results) {
  const ratios = casesOf(results)
    .flatMap(({ best }) => best ?? [])
    .sort((a, b) => a - b);
  return {
    cases: ratios.length,
    lowest: ratios[0],
    median: ratios[ratios.length >> 1],
    highest: ratios.at(-1),
  };
}
