// Reads docs/bench/runs.json, and prepares its runs for the pages:
//   NAME        by `npm run bench -- --json`: cases, and the sweep
//   NAME-start  by `npm run bench:start -- --json`: start-up times
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const file = join(import.meta.dirname, '..', '..', 'bench', 'runs.json');
const readRuns = () => JSON.parse(readFileSync(file, 'utf8'));

const libraries = {
  ORT: 'ONNX Runtime Web',
  'ORT, constant B': 'ONNX Runtime Web',
  'onnxruntime-web': 'ONNX Runtime Web',
};
const libraryOf = (name) => libraries[name] ?? name;

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

function startOf({ date, processor, versions, rows }) {
  return {
    date: date.slice(0, 10),
    processor,
    versions: versionsText(versions),
    rows: rows.map(({ where, library, best, median, ratio, brotli }) => ({
      where,
      library: libraryOf(library),
      best: timeText(best),
      median: timeText(median),
      ratio: library === 'wgemm' ? '' : ratioText(ratio),
      size: brotli ? sizeText(brotli) : '',
    })),
  };
}

const versionsText = (versions = {}) =>
  Object.entries(versions)
    .map(([name, version]) => `${libraryOf(name)} ${version}`)
    .join(', ');

/** The results of a run, and its start-up times; each undefined if the run has none. */
export const resultsOf = (id) => readRuns()[id];
const startTimesOf = (id) => readRuns()[`${id}-start`];

/** Every run, the newest first: { id, title }. */
export function listRuns() {
  return Object.keys(readRuns())
    .map((name) => name.replace(/-start$/, ''))
    .filter((id, i, all) => all.indexOf(id) === i)
    .map((id) => {
      const { date } = resultsOf(id) ?? startTimesOf(id);
      // '2026-11-24-zen4' -> '2026-11-24, zen4'
      return { id, date, title: id.replace(/^(\d{4}-\d\d-\d\d)-/, '$1, ') };
    })
    .sort((a, b) => b.date.localeCompare(a.date));
}

export const hasSweep = (results) =>
  results?.cases.some(({ name }) => name === 'sweep limit') ?? false;

/** What the pages show of every run, the newest first. */
export function loadRuns() {
  return listRuns().map(({ id, title }) => {
    const results = resultsOf(id);
    const times = startTimesOf(id);
    const start = times && startOf(times);
    if (!results) {
      const { date, processor, versions } = start;
      return { id, title, date, processor, versions, start };
    }
    const cases = results.cases
      .filter(({ name }) => !/^(sweep|cliff) /.test(name))
      .filter(({ m }) => m !== undefined)
      .map(caseOf);
    return {
      id,
      title,
      date: results.date.slice(0, 10),
      processor: results.processor,
      node: results.node,
      threads: results.threads === 1 ? 'one thread' : `${results.threads} threads`,
      versions: versionsText(results.versions),
      cases,
      ...(cases.some(({ best }) => best) && { chart: barsOf(cases) }),
      sweep: hasSweep(results),
      start,
    };
  });
}

// --- the table of the home page ------------------------------------------------------------------

const onHome = [
  'float32 1024x1024x1024',
  'float32 64x64x64',
  'float32 1x4096x4096',
  'uint8 x int8 1024x1024x1024',
  'uint8 x int8 1x4096x4096',
];
const columns = [
  { library: 'wgemm', names: usual },
  { library: 'ONNX Runtime Web', names: ['ORT', 'ORT, constant B'] },
  { library: 'tfjs', names: ['tfjs'] },
  { library: 'numpy-ts', names: ['numpy-ts'] },
];

/** The newest run that has all cases of the table; undefined if none has. */
export function loadHome() {
  for (const { id } of listRuns()) {
    const results = resultsOf(id);
    const found = onHome.map((name) => results?.cases.find((each) => each.name === name));
    if (!found.every(Boolean)) continue;
    const times = startTimesOf(id);
    return {
      id,
      date: results.date.slice(0, 10),
      processor: results.processor,
      node: results.node,
      libraries: columns.map(({ library }) => library),
      rows: found.map((each) => ({
        ...partsOf(each),
        cells: columns.map(({ names }) => {
          const best = fastest(each.contestants.filter(({ name }) => names.includes(name)));
          return best ? rateText(rateOf(best)) : '';
        }),
      })),
      starts: times ? startsOf(times) : [],
    };
  }
  return undefined;
}

function startsOf({ rows }) {
  const places = [...new Set(rows.map(({ where }) => where))];
  const cell = (where, library, text) => {
    const row = rows.find((each) => each.where === where && libraryOf(each.library) === library);
    return row ? text(row) : '';
  };
  const row = (label, where, text) => ({
    label,
    cells: columns.map(({ library }) => cell(where, library, text)),
  });
  const times = places.map((where) =>
    row(`first result, ${where.replace(/(\d+)\..*$/, '$1')}`, where, ({ best }) => timeText(best)),
  );
  const inPage = places.find((where) => rows.some((each) => each.where === where && each.brotli));
  return inPage
    ? [...times, row('to load, with brotli', inPage, ({ brotli }) => sizeText(brotli))]
    : times;
}
