// Writes the figures in README.md, docs/badges.svg, docs/guide/onnx.md and docs/guide/accuracy.md
// from docs/bench/runs.json.
//   npm run figures    writes them; `npm run lint` checks that they are as written
//   npm run figures -- --add FILE.json   first adds what a bench wrote. The file's name begins with
//     DATE-MACHINE; the run itself tells its engine, its threads and its kind
// README.md has the newest run of Chromium on one thread, as the home page has. The table of models
// has a column per number of threads, of the processor that ran them last. Each table stands
// between two comments. The line of the badges in README.md has their text.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { caseNamed, ownOf, peersOf, rangeOf, rateOf } from '../docs/.vitepress/data/cases.mjs';
import { loadFront } from '../docs/.vitepress/data/front.mjs';
import { modelsOf } from '../docs/.vitepress/data/pages.mjs';
import { file as data, machineOf, nameOf, readRuns } from '../docs/.vitepress/data/runs.mjs';
import { libraryOf } from '../docs/.vitepress/data/texts.mjs';
import { threadsText } from '../tests/bench/print.mjs';
import { accuracyTables } from './accuracy-tables.mjs';
import { fail, main, root } from './run.mjs';

const cases = [
  { name: 'float32 1024x1024x1024' },
  { name: 'float32 1x4096x4096', title: 'constant B', inMs: true },
  { name: 'float64 256x256x256' },
  { name: 'int64 512x512x512' },
  { name: 'uint8 x int8 1024x1024x1024' },
  { name: 'uint8 x int8 1x4096x4096', title: 'constant B', inMs: true },
];

/** The runs of a kind (`''` or `-start`), the newest of each processor, the newest first. */
function runsOf(kind) {
  const pattern = new RegExp(`^\\d{4}-\\d\\d-\\d\\d-([a-z]+\\d+)${kind}$`);
  const newest = new Map();
  for (const [name, run] of Object.entries(readRuns()).sort().reverse()) {
    const [, processor] = pattern.exec(name) ?? [];
    if (!processor || newest.has(processor)) continue;
    newest.set(processor, { ...run, machine: machineOf(name, run.processor) });
  }
  return [...newest.values()].sort((a, b) => b.date.localeCompare(a.date));
}

const digits = (value) => value.toPrecision(3);
const ratioText = (ratio) => ratio.toFixed(ratio < 10 ? 2 : ratio < 100 ? 1 : 0);

function labelOf({ name, title }) {
  const [, types, shape] = /^(.*) (\d+x\d+x\d+)$/.exec(name);
  return [`${types}, ${shape.replaceAll('x', ' x ')}`, title].filter(Boolean).join(', ');
}

const row = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) =>
  [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n');

/** Size, start and speed: the figures of the home page. */
function frontTable() {
  const { machine, engine, libraries, figures } = loadFront();
  return table(
    [
      `${engine}, ${machine}, one thread`,
      ...libraries.map(({ library, version }) => `${library} ${version}`.trim()),
    ],
    figures.map(({ title, detail, bars }) => [
      `${title}: ${detail.replaceAll('×', 'x').replace('.wasm', '`.wasm`')}`,
      ...bars.map(({ text }, i) => (i === 0 ? `**${text}**` : text)),
    ]),
  );
}

function speedTable() {
  const { results, machine, engine } = loadFront();
  const rows = cases.map((each) => {
    const problem = caseNamed(results, each.name);
    const wgemm = ownOf(problem);
    const [peer] = peersOf(problem);
    const text = (one) =>
      each.inMs ? `${one.best.toFixed(2)} ms` : `${digits(rateOf(one))} GOP/s`;
    const ratio = ratioText(rateOf(wgemm) / rateOf(peer));
    return [
      labelOf(each),
      `**${text(wgemm)}**`,
      `${text(peer)}, ${libraryOf(peer.name)}`,
      `${ratio} x`,
    ];
  });
  return table(
    [`M x N x K, one thread; ${engine}, ${machine}`, 'wgemm', 'the fastest peer', 'ratio'],
    rows,
  );
}

/** The sentence below the table of speed. */
function rangeText() {
  const { cases: count, lowest, median, highest } = rangeOf(loadFront().results);
  const others = runsOf('');
  const [low] = others
    .map((run) => ({ machine: run.machine, lowest: rangeOf(run).lowest }))
    .sort((a, b) => a.lowest - b.lowest);
  return (
    `Over the ${count} cases that a peer computes, too, the ratio is ${ratioText(lowest)} to ` +
    `${ratioText(highest)}, with a median of ${ratioText(median)}. In Node on ` +
    `${others.length} processors, the lowest ratio is ${ratioText(low.lowest)}, on ${low.machine}.`
  );
}

/** Facts about the package: each a name and a value. */
function facts() {
  const about = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  if (about.dependencies) fail('figures: package.json has dependencies, and the badge says none');
  const [download] = loadFront().figures;
  return [
    ['licence', about.license],
    ['download, with brotli', download.bars[0].text],
    ['types', about.types ? 'included' : 'none'],
    ['dependencies', 'none'],
  ];
}

const factsText = () =>
  facts()
    .map((each) => each.join(': '))
    .join('; ');

const badgeHeight = 20;

/** These facts as a picture, without requests to other hosts. */
function badges() {
  const widthOf = (text) => Math.round(text.length * 6.6) + 12; // the text is made as wide
  let x = 0;
  const parts = facts().map(([name, value]) => {
    const [left, right] = [widthOf(name), widthOf(value)];
    const at = x;
    x += left + right + 6;
    const label = (text, from, width) =>
      `<text x="${from + 6}" y="14" textLength="${width - 12}">${text}</text>`;
    return (
      `<rect x="${at}" width="${left + right}" height="${badgeHeight}" rx="3" fill="#3d4a4f"/>` +
      `<path d="M${at + left} 0h${right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-${right - 3}z" ` +
      `fill="#0f766e"/>${label(name, at, left)}${label(value, at + left, right)}`
    );
  });
  const says = factsText();
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${x - 6}" height="${badgeHeight}" ` +
    `role="img" aria-label="${says}"><title>${says}</title>\n` +
    `<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n` +
    `${parts.join('\n')}\n</g></svg>\n`
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

function modelTable() {
  const runs = modelRuns();
  const [{ processor, versions }] = runs;
  const tables = runs.map(modelsOf);
  return table(
    [
      `${processor.split(',')[0]}, Node; ${libraryOf('ORT')} ${versions['onnxruntime-web']}`,
      ...runs.map(({ threads }) => threadsText(threads)),
    ],
    tables[0]
      .filter(isWhole)
      .map(titleOf)
      .map((title) => [
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
    contestants: caseNamed({ cases: all }, cases[0].name).contestants,
  }));
}

const accuracyRun = () => runsOf('-accuracy')[0];

/** A sentence. */
function aboutAccuracy() {
  const { machine, date, engine, versions } = accuracyRun();
  const libraries = `${engine.name} ${engine.version}, with wgemm ${versions.wgemm}`;
  return `The run of ${date.slice(0, 10)} was on ${machine}, in ${libraries}.`;
}

/** The lines of a table in a page. */
const between = (name) => new RegExp(`(?<=<!-- figures: ${name} -->\n)[^]*?(?=<!-- end -->)`);

/** The picture in README.md. */
const badgesFile = 'docs/badges.svg';

const tables = [
  {
    name: 'badges',
    page: 'README.md',
    at: /(?<=\n)!\[.*\]\(docs\/badges\.svg\)\n/,
    make: () => `![${factsText()}](${badgesFile})`,
  },
  { name: 'front', page: 'README.md', make: frontTable },
  { name: 'speed', page: 'README.md', make: speedTable },
  { name: 'range', page: 'README.md', make: rangeText },
  { name: 'models', page: 'docs/guide/onnx.md', make: modelTable },
  ...accuracyTables({ findRun: accuracyRun, findStrict: strictRuns, table }),
  { name: 'accuracy run', page: 'docs/guide/accuracy.md', make: aboutAccuracy },
];
const pages = [...new Set(tables.map(({ page }) => page))];
const textOf = (page) => readFileSync(join(root, page), 'utf8');

/** The text of a page, with its tables made from the runs. */
function written(page) {
  if (page === badgesFile) return badges();
  let text = textOf(page);
  for (const { name, make, at = between(name) } of tables.filter((each) => each.page === page)) {
    if (!at.test(text)) fail(`figures: ${page} has no place for the table '${name}'`);
    text = text.replace(at, () => `${make()}\n`);
  }
  return text;
}

export function lintFigures() {
  for (const page of [...pages, badgesFile])
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
    for (const page of [...pages, badgesFile]) writeFileSync(join(root, page), written(page));
  });
}
