// Writes the tables of figures in README.md, docs/guide/onnx.md and docs/guide/accuracy.md from
// docs/bench/runs.json.
//   npm run figures    writes them; `npm run lint` checks that they are as written
//   npm run figures -- --add FILE.json   first adds what a bench wrote. The file's name begins with
//     DATE-MACHINE; the run itself tells its engine, its threads and its kind
// The tables of README.md have a column per processor, of its newest run in Node on one thread. The
// table of models has a column per number of threads, of the processor that ran them last. Each
// table stands between two comments.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import {
  file as data,
  libraryOf,
  modelsOf,
  nameOf,
  readRuns,
} from '../docs/.vitepress/data/bench.mjs';
import { threadsText } from '../tests/bench/print.mjs';
import { accuracyTables } from './accuracy-tables.mjs';
import { fail, main, root } from './run.mjs';

/** The forms of wgemm: the same threads and the default build. */
const own = ['wgemm', 'wgemm, B packed'];

const cases = [
  { name: 'float32 1024x1024x1024' },
  { name: 'float64 256x256x256' },
  { name: 'int64 512x512x512' },
  { name: 'uint8 x int8 1024x1024x1024' },
  { name: 'float32 1x4096x4096', title: 'B packed once', inMs: true },
  { name: 'uint8 x int8 1x4096x4096', title: 'B packed once', inMs: true },
];

/** The runs of a kind (`''` or `-start`), the newest of each processor, the newest first. */
function runsOf(kind) {
  const pattern = new RegExp(`^\\d{4}-\\d\\d-\\d\\d-([a-z]+)(\\d+)${kind}$`);
  const newest = new Map();
  for (const [name, run] of Object.entries(readRuns()).sort().reverse()) {
    const [, family, generation] = pattern.exec(name) ?? [];
    const processor = `${family}${generation}`;
    if (!family || newest.has(processor)) continue;
    const maker = run.processor.split(',')[0].replace(/\(R\)| Processor/g, '');
    newest.set(processor, {
      ...run,
      machine: `${maker} (${family[0].toUpperCase()}${family.slice(1)} ${generation})`,
    });
  }
  return [...newest.values()].sort((a, b) => b.date.localeCompare(a.date));
}

const rateOf = ({ operations, best }) => operations / best / 1e6;
const digits = (value) => value.toPrecision(3);
const fastest = (contestants) =>
  contestants.reduce((one, each) => (rateOf(each) > rateOf(one) ? each : one));

function cellOf(run, { name, inMs }) {
  const found = run.cases.find((each) => each.name === name);
  if (!found) return '-';
  const wgemm = fastest(found.contestants.filter((each) => own.includes(each.name)));
  const peer = fastest(found.contestants.filter(({ kind }) => kind === 'peer'));
  const figure = inMs ? `${wgemm.best.toFixed(2)} ms` : `${digits(rateOf(wgemm))} GOP/s`;
  const ratio = rateOf(wgemm) / rateOf(peer);
  return `**${figure}**, ${ratio.toFixed(ratio < 10 ? 2 : 1)} x ${libraryOf(peer.name)}`;
}

function labelOf({ name, title }) {
  const [, types, shape] = /^(.*) (\d+x\d+x\d+)$/.exec(name);
  return [`${types}, ${shape.replaceAll('x', ' x ')}`, title].filter(Boolean).join(', ');
}

const row = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) =>
  [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n');

function speedTable() {
  const runs = runsOf('');
  return table(
    [
      'one thread; M x N x K',
      ...runs.map(({ machine, date }) => `${machine}, ${date.slice(0, 10)}`),
    ],
    cases.map((each) => [labelOf(each), ...runs.map((run) => cellOf(run, each))]),
  );
}

function startTable() {
  const [{ rows, machine, versions }] = runsOf('-start');
  const inPage = rows.filter(({ brotli }) => brotli);
  const titleOf = ({ library }) =>
    library === 'wgemm' ? library : `${libraryOf(library)} ${versions[library]}`;
  return table(
    [`in ${inPage[0].where.replace(/\..*/, '')}, ${machine}`, ...inPage.map(titleOf)],
    [
      ['from import to the first result', ...inPage.map(({ best }) => `${best.toFixed(0)} ms`)],
      [
        'download for that result: a bundle and its `.wasm`, with brotli',
        ...inPage.map(({ brotli }) => `${(brotli / 1000).toFixed(0)} kB`),
      ],
    ],
  );
}

/** Whether a row is not of a single operator. */
const isWhole = ({ variant }) => variant !== 'one node';

const titleOf = ({ model, variant }) => `${model}, ${variant}`;

/** The runs of models of the processor that ran them last, in Node, by number of threads. */
function modelRuns() {
  const names = Object.keys(readRuns()).sort().reverse();
  const [newest] = names.filter((name) => name.endsWith('-models'));
  const [machine] = /^\d{4}-\d\d-\d\d-[a-z]+\d+/.exec(newest) ?? [];
  return names
    .filter((name) => name.startsWith(machine) && /\d(-node-\d+)?-models$/.test(name))
    .map((name) => readRuns()[name])
    .sort((a, b) => a.threads - b.threads);
}

/** The models in README.md. */
const someModels = [
  'MiniLM, 128 tokens, int8',
  'MiniLM, 128 tokens, float32',
  'wake word, float32',
  'collision avoidance, float32',
];

/** @param chosen the titles of the rows. Default: all */
function modelTable(chosen) {
  const runs = modelRuns();
  const [{ processor, versions }] = runs;
  const tables = runs.map(modelsOf);
  return table(
    [
      `${processor.split(',')[0]}, Node; ${libraryOf('ORT')} ${versions['onnxruntime-web']}`,
      ...runs.map(({ threads }) => threadsText(threads)),
    ],
    (chosen ?? tables[0].filter(isWhole).map(titleOf)).map((title) => [
      title,
      ...tables.map((rows) => {
        const { time, ratio } = rows.find((row) => titleOf(row) === title);
        return `**${time}**, ${ratio.replace('×', ' x')}`;
      }),
    ]),
  );
}

/** The newest run of each processor that has the product of fast and strict mode. */
function strictRuns() {
  return runsOf('').map(({ machine, date, cases: all }) => ({
    machine,
    date,
    contestants: all.find(({ name }) => name === cases[0].name).contestants,
  }));
}

const accuracyRun = () => runsOf('-accuracy')[0];

/** A sentence. */
function aboutAccuracy() {
  const { machine, date, engine, versions } = accuracyRun();
  const libraries = `${engine.name} ${engine.version}, with wgemm ${versions.wgemm}`;
  return `The run of ${date.slice(0, 10)} was on ${machine}, in ${libraries}.`;
}

const tables = [
  { name: 'speed', page: 'README.md', make: speedTable },
  { name: 'start', page: 'README.md', make: startTable },
  { name: 'models', page: 'README.md', make: () => modelTable(someModels) },
  { name: 'models', page: 'docs/guide/onnx.md', make: () => modelTable() },
  ...accuracyTables({ findRun: accuracyRun, findStrict: strictRuns, table }),
  { name: 'accuracy run', page: 'docs/guide/accuracy.md', make: aboutAccuracy },
];
const pages = [...new Set(tables.map(({ page }) => page))];
const textOf = (page) => readFileSync(join(root, page), 'utf8');

/** The text of a page, with its tables made from the runs. */
function written(page) {
  let text = textOf(page);
  for (const { name, make } of tables.filter((each) => each.page === page)) {
    const pattern = new RegExp(`(<!-- figures: ${name} -->\n)[^]*?(<!-- end -->)`);
    if (!pattern.test(text)) fail(`figures: ${page} has no place for the table '${name}'`);
    text = text.replace(pattern, (_, begin, end) => `${begin}${make()}\n${end}`);
  }
  return text;
}

export function lintFigures() {
  for (const page of pages)
    if (written(page) !== textOf(page))
      fail(
        `${page}: its figures differ from docs/bench/runs.json; \`npm run figures\` writes them`,
      );
}

/** A row of a random run, with what the pages need. */
const shortened = ({ name, kind, arrays, peer, ratio }) => ({
  name,
  kind,
  arrays,
  peer,
  ratio: Number(ratio.toFixed(3)),
});

/** Adds a run to the data, one line per run. */
function add(file) {
  const [machine] = /^\d{4}-\d\d-\d\d-[a-z]+\d+(?=[-.])/.exec(basename(file)) ?? [];
  if (!machine)
    fail(`figures: --add is ${file}; its name must begin with DATE-MACHINE: 2026-11-24-zen4.json`);
  const run = JSON.parse(readFileSync(resolve(process.env.INIT_CWD ?? '', file), 'utf8'));
  const name = nameOf(machine, run);
  if (name.endsWith('-random')) run.rows = run.rows.map(shortened);
  const runs = Object.entries({ ...readRuns(), [name]: run }).sort();
  const lines = runs.map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  writeFileSync(data, `{\n${lines.join(',\n')}\n}\n`);
}

if (process.argv[1] === import.meta.filename) {
  await main(() => {
    const [, , option, file] = process.argv;
    if (option !== undefined && (option !== '--add' || !file))
      fail(`figures: ${option} is not known; it takes --add FILE`);
    if (file) add(file);
    for (const page of pages) writeFileSync(join(root, page), written(page));
  });
}
