// Measures how fast wgemm is next to its peers, in turns in one process. The figures depend on the
// machine and its load; the ratios of one run hold.
//   npm run bench           the table of cases, and a sweep over sizes with its picture: 5 minutes
//     --filter TEXT         cases whose name contains the text: "1024"; "sweep", the sweep alone;
//                           "cliff", which no other text runs: M or N from 1 to 64, or K to 65536,
//                           in every type; "cliff float32 M"
//     --engine firefox      there instead of in Node: bun, chromium, firefox, webkit
//     --threads 2           wgemm on two threads, and every peer that has threads in the engine
//     --targets             judges the figures: the targets are in cases.mjs
//     --json run.json       the file of the results; default: a dated one in build/bench/
//     --svg docs/x.svg      the file of the picture; default: next to the results
//     --compare old.json    what changed since an earlier run
//     --random              random shapes of all types next to the fastest peer, the losses first
//       --count 300 --seed 1 --filter float32  --engine, --threads, --json and --targets as above
//     --models              whole models next to ONNX Runtime Web: MiniLM in float32 and int8, six
//                           small networks, a step of a decoder, and single nodes: 6 minutes
//       --filter "one node"  --engine, --threads, --json and --compare as above
//     --calls               a million calls of 16 x 16 x 16: their time, and whether memory grows;
//                           and calls that are recorded
//       --threads 2
//     --attention           attention next to the same steps as separate calls: half a minute
//       --filter "12 x 128"  --threads
//     --search              exact search next to approximate indexes of npm: recall, time to build,
//                           bytes: 20 minutes
//       --filter "clustered 10,000"  --threads, --json
//       --count 1000000 --sides wgemm,loop  other numbers of vectors, and some contestants
//     --accuracy            the largest and the mean error of each operation and type, and what
//                           strict mode costs: 2 minutes
//       --filter "gemm float32"  --threads, --json
//     --wide                V8 with and without the flag that joins vectors of 16 bytes, in
//                           two processes, next to a loop in registers: 2 minutes
//       --filter float32
//     --kernels             every micro-kernel, and whether the table prefers the fastest
//       --engine node,chromium,firefox,webkit  some of Node and the browsers that are installed
//       --build relaxed|simd128  --filter float32
//     --cblas               cblas.h in a wasm module: gemm next to wg.gemm and to loops, syrk and
//                           trsm next to gemm: 2 minutes
//       --build simd128  --filter "syrk float32"
//     --arm                 inner loops of kernels for ARM, as V8 compiles them, and their speed by
//                           models of processors: no measurement
//       --filter float32
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fail, main, root, wholeNumbers } from '../../scripts/run.mjs';
import { buildPrograms } from './build-programs.mjs';
import { cases, choose, cliffs, sweeps } from './cases.mjs';
import { engines, prepareEngine, workIn } from './engines.mjs';
import { processorName } from './machine.mjs';
import { judge } from './measure.mjs';
import { readOptions } from './options.mjs';
import {
  printCase,
  printCaseHead,
  printCliff,
  printGoals,
  printLimits,
  printModel,
  printModelHead,
  printSweep,
  threadsText,
} from './print.mjs';
import { judgeRows, printRows } from './random-rows.mjs';
import { printComparison, readResults } from './results.mjs';

const options = {
  filter: { type: 'string', default: '' },
  json: { type: 'string' },
  svg: { type: 'string' },
  compare: { type: 'string' },
  targets: { type: 'boolean', default: false },
  models: { type: 'boolean', default: false },
  calls: { type: 'boolean', default: false },
  attention: { type: 'boolean', default: false },
  search: { type: 'boolean', default: false },
  sides: { type: 'string' },
  accuracy: { type: 'boolean', default: false },
  random: { type: 'boolean', default: false },
  count: { type: 'string' },
  seed: { type: 'string' },
  wide: { type: 'boolean', default: false },
  kernels: { type: 'boolean', default: false },
  cblas: { type: 'boolean', default: false },
  arm: { type: 'boolean', default: false },
  engine: { type: 'string' },
  build: { type: 'string' },
};

await main(async () => {
  const args = readArguments();
  if (args.kernels) return (await import('./kernels.mjs')).rankKernels(args);
  if (args.cblas) return (await import('./cblas.mjs')).raceCblas(args);
  if (args.wide) return (await import('./wide.mjs')).compareVectors(args);
  if (args.arm) return (await import('./arm.mjs')).modelArm(args);
  if (args.calls) return (await import('./calls.mjs')).countCalls(args);
  if (args.attention) return (await import('./attention.mjs')).raceAttention(args);
  if (args.search) return raceSearch(args);
  if (args.accuracy) return findErrors(args);
  if (args.models) return raceModels(args);
  await (args.random ? raceRandom : measureAll)(args);
});

function readArguments() {
  const args = readOptions(options);
  const isAlone = args.kernels || args.cblas || args.arm || args.wide;
  if (!args.kernels && !args.cblas && args.build !== undefined)
    fail('bench: --build is for --kernels and --cblas: say one of them, too');
  if (!args.random && args.seed !== undefined) fail('bench: --seed is for --random: say that too');
  if (!args.random && !args.search && args.count !== undefined)
    fail('bench: --count is for --random and --search: say one of them, too');
  if (!args.search && args.sides !== undefined)
    fail('bench: --sides is for --search: say that too');
  if (isAlone && args.threads > 1)
    fail('bench: --kernels, --cblas, --arm and --wide take no --threads: they measure one thread');
  if ((args.calls || args.attention || args.search || args.cblas || args.accuracy) && args.engine) {
    const options = '--calls, --attention, --search, --cblas and --accuracy';
    fail(`bench: ${options} take no --engine: they run in Node`);
  }
  if (args.models && (args.targets || args.svg))
    fail('bench: --models takes no --targets and no --svg: it has no targets and no picture');
  const { engine = 'node' } = args;
  if (!isAlone && !engines.includes(engine))
    fail(`bench: there is no engine '${engine}'; there are ${engines.join(', ')}`);
  const name = new Date().toISOString().slice(0, 16).replace(/[T:]/g, '-');
  const { json = join(root, 'build', 'bench', `${name}.json`) } = args;
  return { ...args, json };
}

/**
 * Lets the engine work.
 *
 * @returns what the file of a run says of the run itself, which this prints, too
 * @param onResult called with the arguments of each tell() of work.mjs, except 'start'
 */
async function workOf({ engine = 'node', threads, ...settings }, onResult) {
  const { name, version } = await prepareEngine(engine);
  const results = {
    date: new Date().toISOString(),
    processor: processorName(),
    engine: { name, version },
    threads,
  };
  await workIn(engine, { threads, ...settings }, (kind, result) => {
    if (kind !== 'start') return onResult(kind, result);
    const { build, versions, withoutThreads } = result;
    Object.assign(results, { ...(threads > 1 && { withoutThreads }), versions });
    console.log(
      `${results.processor}, ${name} ${version}, ${threadsText(threads)}, wgemm's build ${build}`,
    );
    console.log(
      Object.entries(versions)
        .map((each) => each.join(' '))
        .join(', '),
    );
    if (threads > 1 && withoutThreads.length > 0)
      console.log(`on one thread here: ${withoutThreads.join(', ')}`);
  });
  return results;
}

function write(json, results) {
  writeFileSync(json, `${JSON.stringify(results, null, 1)}\n`);
  console.log(`\nresults: ${relative('', json)}`);
}

/** Whether a case, or a part of it, has bounds. */
function hasBounds({ bounds = [], together = [] }) {
  return bounds.length > 0 || together.some(hasBounds);
}

async function raceRandom({ json, targets, filter, count = '300', seed = '1', engine, threads }) {
  const [shapes, first] = wholeNumbers({ count, seed }, 'count', 'seed');
  mkdirSync(dirname(json), { recursive: true });
  const rows = [];
  const settings = { random: true, engine, threads, filter, count: shapes, seed: first };
  const about = await workOf(settings, (_, row) => {
    rows.push(row);
    if (process.stderr.isTTY) process.stderr.write(`\r${rows.length >> 1} of ${shapes} shapes`);
  });
  if (process.stderr.isTTY) process.stderr.write('\r');
  if (rows.length === 0) fail(`bench: none of the ${count} shapes contains "${filter}"`);
  printRows(rows);
  if (targets) judgeRows(rows);
  write(json, { ...about, seed: first, rows });
}

async function raceSearch({ json, filter, threads, count, sides }) {
  const counts = count && wholeNumbers({ count }, 'count');
  mkdirSync(dirname(json), { recursive: true });
  const search = await import('./search.mjs');
  console.log(`${processorName()}, Node ${process.version}, ${threadsText(threads)}`);
  const cases = await search.raceSearch({ threads, filter, counts, sides: sides?.split(',') });
  const about = { date: new Date().toISOString(), processor: processorName(), threads };
  write(json, { ...about, kind: 'search', cases });
}

async function findErrors({ json, filter, threads }) {
  mkdirSync(dirname(json), { recursive: true });
  const { measureAccuracy } = await import('./accuracy.mjs');
  console.log(`${processorName()}, Node ${process.version}, ${threadsText(threads)}`);
  const measured = await measureAccuracy({ threads, filter });
  const engine = { name: 'Node', version: process.versions.node };
  const about = { date: new Date().toISOString(), processor: processorName(), engine, threads };
  write(json, { ...about, kind: 'accuracy', ...measured });
}

async function raceModels({ json, filter, compare, engine, threads }) {
  const { modelNames } = await import('./models.mjs');
  if (!modelNames.some((name) => name.includes(filter))) {
    const all = modelNames.map((name) => `  ${name}\n`).join('');
    fail(`bench: no model contains "${filter}"; there are\n${all.trimEnd()}`);
  }
  const old = compare && readResults(compare, '--compare');
  mkdirSync(dirname(json), { recursive: true });
  const rows = [];
  const about = await workOf({ models: true, engine, threads, filter }, (_, row) => {
    if (rows.length === 0) printModelHead();
    printModel(row);
    rows.push(row);
  });
  const results = { ...about, kind: 'models', cases: rows };
  if (old) printComparison(old, results);
  write(json, results);
}

async function measureAll({ json, filter, targets, compare, engine, threads, svg: picture }) {
  const chosen = choose(filter);
  if (Object.values(chosen).every(({ length }) => length === 0)) {
    const some = [...cases, sweeps[0], cliffs[0]].map(({ name }) => `  ${name}\n`).join('');
    fail(
      `bench: no case contains "${filter}"; there are\n${some}and the other sizes of ` +
        'the sweep, the other types and axes of cliffs',
    );
  }
  const whole = chosen.sweeps.length === sweeps.length;
  if (picture && !whole)
    fail('bench: --svg is a picture of the sweep, which the filter leaves out');
  const old = compare && readResults(compare, '--compare');
  const svg = whole ? (picture ?? json.replace(/(\.json)?$/, '.svg')) : undefined;
  // A path that cannot be written fails now, not minutes later.
  for (const file of [json, svg]) if (file) mkdirSync(dirname(file), { recursive: true });
  // The bounds of cases and of the sweep.
  if (chosen.sweeps.length > 0 || chosen.cases.some(hasBounds))
    await buildPrograms(['relaxed', 'simd128']);

  const measured = [];
  const goals = [];
  let before;
  const print = {
    case(one) {
      if (!before) printCaseHead();
      printCase(one);
      // The goals are for one thread.
      const { goals: wanted = [] } =
        threads === 1 ? cases.find(({ name }) => name === one.name) : {};
      goals.push(...wanted.map((goal) => judge(goal, one)).filter(Boolean));
    },
    limits: printLimits,
    sweep: (one) => printSweep(one, before),
    cliff(one) {
      const { name } = one;
      const judged = one.goals.map((goal) => ({
        name,
        ...goal,
        reached: goal.ratio <= goal.atMost,
      }));
      goals.push(...judged);
      printCliff(judged, { targets, isFirst: !before?.name.startsWith('cliff ') });
    },
  };
  const about = await workOf({ engine, threads, filter }, (kind, one) => {
    print[kind](one);
    measured.push({ ...one, goals: undefined });
    before = one;
  });
  const results = { ...about, cases: measured, goals };
  if (targets) {
    printGoals(goals);
    if (threads > 1 && chosen.cases.length > 0)
      console.log('\nThe targets of the table are for one thread: none is judged here.');
  }
  if (old) printComparison(old, results);
  write(json, results);
  if (!svg) return;
  writeFileSync(svg, (await import('./picture.mjs')).draw(results));
  console.log(`picture: ${relative('', svg)}`);
}
