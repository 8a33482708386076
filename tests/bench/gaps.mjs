// Times calls with gaps between them: the threads of wgemm may sleep in a gap, and must be woken.
// The same call on one thread takes turns with it, with the same gap.
//   node tests/bench/gaps.mjs [--threads n] [--only idle,busy,collector] [--dist DIR] [--json FILE]
// `--dist`: a folder with a built library, such as dist/. Given several times, all take turns.
import { existsSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { fail, main, root, wholeNumbers } from '../../scripts/run.mjs';
import { processorName } from './machine.mjs';
import { duration } from './print.mjs';

/** Products in float32. On one thread the cubes take about 20, 60 and 200 us, 1 ms and 10 ms. */
const cases = [
  [88, 88, 88],
  [128, 128, 128],
  [192, 192, 192],
  [1, 1024, 1024],
  [320, 320, 320],
  [704, 704, 704],
];

/** Milliseconds between the end of a call and the start of the next. */
const gaps = [0, 0.01, 0.1, 1, 10];

/** Each setting runs in a worker of its own. */
const settings = {
  idle: { does: 'the caller waits in the gap', pause: 'wait' },
  busy: {
    does: 'the same, while the main JavaScript thread computes',
    pause: 'wait',
    isBusy: true,
  },
  collector: {
    does: 'the caller makes garbage in the gap',
    pause: 'litter',
    // The collector runs each time that the caller has made about a megabyte.
    resourceLimits: { maxYoungGenerationSizeMb: 3 },
  },
};

let sum = 0;

/** Computes for some milliseconds. */
function computeFor(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) for (let i = 0; i < 10_000; ++i) sum += Math.sqrt(sum + i) % 3;
}

/** Runs a setting in a worker. Calls `print` with each row. */
async function runSetting(setting, data, print) {
  const { pause, isBusy, resourceLimits } = settings[setting];
  const worker = new Worker(join(import.meta.dirname, 'gaps-worker.mjs'), {
    workerData: { pause, cases, gaps, ...data },
    ...(resourceLimits && { resourceLimits }),
  });
  let isOver = false;
  const over = new Promise((done, failed) => {
    worker.on('error', failed);
    worker.on('exit', done);
  }).finally(() => (isOver = true));
  const ready = new Promise((done) => {
    worker.on('message', (message) => (message.isReady ? done() : print(message)));
  });
  await Promise.race([ready, over]);
  while (isBusy && !isOver) {
    computeFor(10);
    await new Promise((done) => setImmediate(done)); // messages arrive
  }
  await over;
}

const columns = [
  ['M x N x K', 18, ({ shape }) => shape.join(' x ')],
  ['gap', 9, ({ gap }) => (gap === 0 ? 'none' : gap < 1 ? `${gap * 1000} us` : `${gap} ms`)],
  ['threads', 9, ({ threads }) => threads],
  ['best', 11, ({ best }) => duration(best)],
  ['median', 11, ({ median }) => duration(median)],
  ['1 thread', 11, ({ one }) => duration(one.median)],
  ['best/1', 9, ({ toOne }) => toOne.best.toFixed(2)],
  ['median/1', 10, ({ toOne }) => toOne.median.toFixed(2)],
  ['best/no gap', 13, ({ toNoGap }) => toNoGap.best.toFixed(2)],
  ['median/no gap', 15, ({ toNoGap }) => toNoGap.median.toFixed(2)],
  ['collections', 13, ({ collections }) => collections],
];

const line = (cells) =>
  cells.map((cell, i) => String(cell)[i === 0 ? 'padEnd' : 'padStart'](columns[i][1])).join('');

async function runAll() {
  const { values } = parseArgs({
    options: {
      threads: { type: 'string', default: String(availableParallelism()) },
      only: { type: 'string', default: Object.keys(settings).join() },
      dist: { type: 'string', multiple: true, default: [join(root, 'dist')] },
      json: { type: 'string' },
    },
  });
  const [threads] = wholeNumbers(values, 'threads');
  const names = values.only.split(',');
  const unknown = names.find((name) => !Object.hasOwn(settings, name));
  if (unknown !== undefined)
    fail(`gaps: --only has ${unknown}; there are ${Object.keys(settings).join(', ')}.`);
  for (const folder of values.dist)
    if (!existsSync(join(folder, 'index.js')))
      fail(`gaps: --dist is ${folder}, which has no index.js; build it by \`npm run build\`.`);
  const builds = values.dist.map((folder) => pathToFileURL(join(resolve(folder), 'index.js')).href);
  const rows = [];
  const print = (name, row) => {
    const dist = values.dist[builds.indexOf(row.build)];
    rows.push({ setting: name, ...row, build: dist });
    const cells = columns.map(([, , text]) => text(row));
    console.log(line(cells) + (builds.length > 1 ? `  ${dist}` : ''));
  };
  console.log(
    `${processorName()}, Node ${process.versions.node}, ${threads} threads\n` +
      "A ratio compares with the row's calls on one thread, or with the calls without a gap. " +
      'Collections: how often the collector ran during the row.',
  );
  for (const name of names) {
    console.log(`\n${name}: ${settings[name].does}\n${line(columns.map(([head]) => head))}`);
    await runSetting(name, { threads, builds }, (row) => print(name, row));
  }
  if (values.json) {
    const run = { processor: processorName(), node: process.versions.node, threads, rows };
    writeFileSync(values.json, `${JSON.stringify(run, null, 2)}\n`);
  }
}

await main(runAll);
