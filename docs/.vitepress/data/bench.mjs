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

/** '2026-11-24-zen4-firefox-2' -> '2026-11-24, AMD EPYC (Zen 4)' */
const titleOf = (name, { processor }) => `${name.slice(0, 10)}, ${machineOf(name, processor)}`;

/** The runs of a page or of all, the newest first: { id, title, results?, random?, models? }. */
function runsOf(runs, page) {
  const named = Object.keys(runs).filter(
    (name) => runs[name].engine && !name.endsWith('-accuracy'),
  );
  return [...new Set(named.map((name) => name.replace(/-(random|models)$/, '')))]
    .map((id) => ({
      id,
      results: runs[id],
      random: runs[`${id}-random`],
      models: runs[`${id}-models`],
    }))
    .map((each) => ({ ...each, about: each.results ?? each.random ?? each.models }))
    .map((each) => ({ ...each, title: titleOf(each.id, each.about) }))
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
      ratios: ratiosOf(runs),
    };
  });
  const rank = ({ engine }) => engines.indexOf(engine);
  return pages.sort((a, b) => rank(a) - rank(b) || a.threads - b.threads);
}

/** The ratios of the newest run with cases, as texts, or undefined. */
function ratiosOf(runs) {
  const newest = runs.find(({ results }) => results && casesOf(results).some(({ best }) => best));
  if (!newest) return undefined;
  const { cases, lowest, median, highest } = rangeOf(newest.results);
  return {
    cases,
    lowest: ratioText(lowest),
    median: ratioText(median),
    highest: ratioText(highest),
    run: newest.title,
  };
}

/** The overview: a sentence, the charts, the ratios of each page, and all start-up times. */
export function loadOverview(all = readRuns()) {
  const front = loadFront(all);
  const plain = (ratio) => ratioText(ratio).replace('×', '');
  const { cases, lowest, median, highest } = rangeOf(front.results);
  return {
    lead:
      `In ${front.engine} on one thread, wgemm is ${plain(median)} times as fast as the fastest ` +
      `peer, in the median of ${cases} cases. The lowest ratio is ${plain(lowest)}, and the ` +
      `highest is ${plain(highest)}.`,
    charts: {
      peers: peersChart(front),
      engines: enginesChart(all, front),
      models: modelsChart(all),
    },
    pages: loadPages(all).map(({ page, title, ratios }) => ({ page, title, ratios })),
    starts: Object.entries(all)
      .filter(([name]) => name.endsWith('-start'))
      .map(([name, run]) => startOf(name, run))
      .sort((a, b) => b.id.localeCompare(a.id)),
  };
}

function startOf(name, run) {
  return {
    id: name,
    title: titleOf(name, run),
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

// --- the charts of the overview -----------------------------------------------------------------

/** A chart: bars from 0 on one linear scale. @param groups [{ label, bars: [{ value, ... }] }] */
function chartOf({ groups, tickText, ...rest }) {
  const highest = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)));
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const step = steps.find((each) => highest / each <= 6) ?? highest;
  const end = Math.ceil(highest / step) * step;
  const at = (value) => Math.round((value / end) * 1000) / 10;
  return {
    ...rest,
    groups: groups.map(({ label, bars }) => ({
      label,
      bars: bars.map(({ value, ...bar }) => ({ ...bar, width: at(value) })),
    })),
    ticks: Array.from({ length: Math.round(end / step) + 1 }, (_, i) => ({
      text: tickText(Math.round(i * step * 10) / 10),
      at: at(i * step),
    })),
  };
}

const chartCases = [
  frontCase,
  'float32 64x64x64',
  'float32 1x4096x4096',
  'float64 256x256x256',
  'int32 512x512x512',
  'uint8 x int8 1024x1024x1024',
  'uint8 x int8 1x4096x4096',
];

const caseNamed = ({ cases }, wanted) => cases.find(({ name }) => name === wanted);

const ownOf = ({ contestants }) => fastest(contestants.filter(({ name }) => usual.includes(name)));

/** The faster form of each peer, the fastest peer first. */
function peersOf({ contestants }) {
  const peers = contestants.filter(({ kind }) => kind === 'peer');
  return [...new Set(peers.map(({ name }) => libraryOf(name)))]
    .map((library) => fastest(peers.filter(({ name }) => libraryOf(name) === library)))
    .sort((a, b) => rateOf(b) - rateOf(a));
}

/** A bar of a rate. */
const rateBar = (one, name = libraryOf(one.name)) => ({
  name,
  value: rateOf(one),
  text: rateText(rateOf(one)),
  isOwn: one.kind === 'own',
});

/** Every peer that computes a case. */
function peersChart({ page, results, machine, engine }) {
  const problems = chartCases.map((name) => caseNamed(results, name)).filter(Boolean);
  return chartOf({
    unit: 'GOP/s; more is faster',
    tickText: (rate) => `${rate}`,
    about:
      `${engine} on an ${machine}, one thread, ${results.date.slice(0, 10)}. ` +
      `${versionsText(results.versions)}.`,
    page,
    groups: problems.map((problem) => ({
      label: labelOf(partsOf(problem)),
      bars: [rateBar(ownOf(problem), 'wgemm'), ...peersOf(problem).map((peer) => rateBar(peer))],
    })),
  });
}

/** One product in each engine, on each number of threads, next to the fastest peer there. */
function enginesChart(all, { results: { processor } }) {
  const found = runsOf(all)
    .filter(({ results }) => results?.processor === processor && caseNamed(results, frontCase))
    .filter(
      ({ about }, i, runs) => runs.findIndex((run) => pageOf(run.about) === pageOf(about)) === i,
    );
  const withCase = engines
    .map((name) => found.filter(({ about }) => about.engine.name === name))
    .filter((runs) => runs.length > 0);
  const dates = [...new Set(found.map(({ about }) => about.date.slice(0, 10)))].sort();
  return chartOf({
    unit: 'GOP/s; more is faster',
    tickText: (rate) => `${rate}`,
    about:
      `float32, 1024 × 1024 × 1024, on an ${machineOf(found[0].id, processor)} with ` +
      `${processor.split(', ').at(-1)}, ${dates.join(' and ')}. Each bar of wgemm is next to the ` +
      'fastest peer of the same run. A peer without threads in the engine has one.',
    groups: withCase.map((runs) => ({
      label: engineText(runs[0].about),
      bars: runs
        .sort((a, b) => a.about.threads - b.about.threads)
        .flatMap(({ results }) => {
          const problem = caseNamed(results, frontCase);
          const [peer] = peersOf(problem);
          const nameOfBar = (library) => {
            const hasOne = results.withoutThreads?.includes(library);
            return `${library}, ${threadsText(hasOne ? 1 : results.threads)}`;
          };
          return [
            rateBar(ownOf(problem), nameOfBar('wgemm')),
            rateBar(peer, nameOfBar(libraryOf(peer.name))),
          ];
        }),
    })),
  });
}

const chartModels = [
  ['MiniLM, 16 tokens', 'float32'],
  ['MiniLM, 16 tokens', 'int8'],
  ['MiniLM, 128 tokens', 'float32'],
  ['MiniLM, 128 tokens', 'int8'],
  ['wake word', 'float32'],
  ['table', 'float32'],
];

/** Whole models on each number of threads; 1 is the speed of ONNX Runtime Web on one thread. */
function modelsChart(all) {
  const [newest] = runsOf(all).filter(({ models }) => models?.threads === 1);
  const { processor, engine } = newest.models;
  const found = runsOf(all)
    .map(({ models }) => models)
    .filter((models) => models?.processor === processor && models.engine.name === engine.name)
    .filter(({ threads }, i, runs) => runs.findIndex((run) => run.threads === threads) === i)
    .sort((a, b) => a.threads - b.threads);
  const rowOf = ({ cases }, [model, variant]) =>
    cases.find((each) => each.model === model && each.variant === variant);
  const dates = [...new Set(found.map(({ date }) => date.slice(0, 10)))].sort();
  return chartOf({
    unit: 'times as fast as ONNX Runtime Web on one thread; more is faster',
    tickText: (ratio) => `${ratio}×`,
    about:
      `${engineText(newest.models)} on an ${machineOf(newest.id, processor)}, ` +
      `${dates.join(' and ')}. ` +
      `${versionsText(newest.models.versions)}. Times are medians of whole runs.`,
    page: pageOf(newest.models),
    groups: chartModels
      .filter((each) => found.every((run) => rowOf(run, each)))
      .map((each) => {
        const one = rowOf(found[0], each).contestants.find(({ kind }) => kind === 'peer').median;
        return {
          label: each.join(', '),
          bars: found.flatMap((run) =>
            rowOf(run, each).contestants.map(({ name, kind, median }) => ({
              name: `${name}, ${threadsText(run.threads)}`,
              value: one / median,
              text: `${ratioText(one / median)}, ${timeText(median)}`,
              isOwn: kind === 'own',
            })),
          ),
        };
      }),
  });
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
