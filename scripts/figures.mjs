// Writes the tables of figures in README.md from docs/bench/runs.json, one column per processor.
//   npm run figures    writes them; `npm run lint` checks that they are as written
//   npm run figures -- --add FILE.json   first adds what a bench wrote. The file's name begins with
//     DATE-MACHINE; the run itself tells its engine, its threads and its kind
// Each processor shows its newest run of Node on one thread, and each table stands between two
// comments.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { file as data, libraryOf, nameOf, readRuns } from '../docs/.vitepress/data/bench.mjs';
import { fail, main, root } from './run.mjs';

const readme = join(root, 'README.md');

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

/** README.md with the tables as the runs have them. */
function written(text) {
  for (const [name, make] of [
    ['speed', speedTable],
    ['start', startTable],
  ]) {
    const pattern = new RegExp(`(<!-- figures: ${name} -->\n)[^]*?(<!-- end -->)`);
    if (!pattern.test(text)) fail(`figures: README.md has no place for the table '${name}'`);
    text = text.replace(pattern, (_, begin, end) => `${begin}${make()}\n${end}`);
  }
  return text;
}

export function lintFigures() {
  const text = readFileSync(readme, 'utf8');
  if (written(text) !== text)
    fail(
      'README.md: its figures are not as in docs/bench/runs.json; `npm run figures` writes them',
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
    writeFileSync(readme, written(readFileSync(readme, 'utf8')));
  });
}
