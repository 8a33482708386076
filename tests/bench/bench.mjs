// Measures how fast wgemm is next to its peers, in turns in one process. The figures depend on the
// machine and its load; the ratios of one run hold.
//   npm run bench           the table of cases, and a sweep over sizes with its picture: 5 minutes
//     --filter TEXT         cases whose name contains the text: "1024"; "sweep", the sweep alone;
//                           "cliff", which no other text runs: M or N from 1 to 64, or K to 65536,
//                           in every type; "cliff float32 M"
//     --threads 2           wgemm and ONNX Runtime Web on two threads; other peers have no threads
//     --targets             judges the figures: the targets are in cases.mjs
//     --json run.json       the file of the results; default: a dated one in build/bench/
//     --svg docs/x.svg      the file of the picture; default: next to the results
//     --compare old.json    what changed since an earlier run
//     --calls               a million calls of 16 x 16 x 16: their time, and whether memory grows
//     --random              random shapes of all types next to the fastest peer, the losses first
//       --count 300 --seed 1 --filter float32
//     --kernels             every micro-kernel, and whether the table prefers the fastest
//       --engine node,chromium,firefox,webkit  some of Node and the browsers that are installed
//       --build relaxed|simd128  --filter float32
//     --arm                 inner loops of kernels for ARM, as V8 compiles them, and their speed by
//                           models of processors: no measurement
//       --filter float32
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, main, root } from '../../scripts/run.mjs';
import { countCalls } from './calls.mjs';
import { cases, cliffs, sweeps } from './cases.mjs';
import { runCliff } from './cliff.mjs';
import { contestantsOf, limitOf, peerVersions, startAll, stepOf } from './contestants.mjs';
import { processorName } from './machine.mjs';
import { judge, measure } from './measure.mjs';
import { printCase, printCaseHead, printGoals, printLimits, printSweep } from './print.mjs';
import { buildPrograms } from './program.mjs';
import { printComparison, readResults } from './results.mjs';

const options = {
  filter: { type: 'string', default: '' },
  threads: { type: 'string', default: '1' },
  json: { type: 'string' },
  svg: { type: 'string' },
  compare: { type: 'string' },
  targets: { type: 'boolean', default: false },
  calls: { type: 'boolean', default: false },
  random: { type: 'boolean', default: false },
  count: { type: 'string' },
  seed: { type: 'string' },
  kernels: { type: 'boolean', default: false },
  arm: { type: 'boolean', default: false },
  engine: { type: 'string' },
  build: { type: 'string' },
};

/** Arguments of limitOf(): for the relaxed build only if the engine takes it. */
async function limitsOfSweep({ wg, ...library }) {
  const problem = sweeps.find(({ operation }) => operation === 'qgemm');
  const [own, ...others] = await contestantsOf(problem, { wg, ...library });
  const step = stepOf(own.plan());
  for (const { dispose } of [own, ...others]) await dispose?.();
  const { build } = wg.info;
  return [
    ...(build === 'relaxed' ? [[build, 'float32', 'float32, relaxed']] : []),
    ['simd128', 'float32', 'float32, simd128'],
    step === 'int8'
      ? ['simd128', step, 'uint8 x int8, simd128']
      : [build, step, 'uint8 x int8, relaxed'],
  ];
}
// A sweep asks for many sizes of code that has become fast at other sizes already.
const sweepTurns = { warmUpMs: 120, warmUpCalls: 3, raceMs: 1000, minRounds: 5 };

await main(async () => {
  const args = readArguments();
  if (args.kernels) return (await import('./kernels.mjs')).rankKernels(args);
  if (args.arm) return (await import('./arm.mjs')).modelArm(args);
  if (args.calls) return countCalls();
  const json =
    args.json ??
    join(
      root,
      'build',
      'bench',
      `${new Date().toISOString().slice(0, 16).replace(/[T:]/g, '-')}.json`,
    );
  if (args.random) {
    const library = await startAll(args);
    const { raceRandom } = await import('./random.mjs');
    await raceRandom({ count: '300', seed: '1', ...args, json }, library, describe(library));
    return library.dispose();
  }

  const contain = (list) => list.filter(({ name }) => name.includes(args.filter));
  const chosen = {
    cases: contain(cases),
    sweeps: contain(sweeps),
    cliffs: args.filter.includes('cliff') ? contain(cliffs) : [],
  };
  if (Object.values(chosen).every(({ length }) => length === 0)) {
    const some = [...cases, sweeps[0], cliffs[0]].map(({ name }) => `  ${name}\n`).join('');
    fail(
      `bench: no case contains "${args.filter}"; there are\n${some}and the other sizes of ` +
        'the sweep, the other types and axes of cliffs',
    );
  }
  const whole = chosen.sweeps.length === sweeps.length;
  if (args.svg && !whole)
    fail('bench: --svg is a picture of the sweep, which the filter leaves out');
  const old = args.compare && readResults(args.compare, '--compare');
  const svg = whole ? (args.svg ?? json.replace(/(\.json)?$/, '.svg')) : undefined;
  // A path that cannot be written fails now, not minutes later.
  for (const file of [json, svg]) if (file) mkdirSync(dirname(file), { recursive: true });
  // The bounds of cases and of the sweep.
  if (chosen.sweeps.length > 0 || chosen.cases.some(({ bounds = [] }) => bounds.length > 0))
    await buildPrograms(['relaxed', 'simd128']);

  const library = await startAll(args);
  const results = await run(chosen, library, args);
  library.dispose();
  if (old) printComparison(old, results);

  writeFileSync(json, `${JSON.stringify(results, null, 1)}\n`);
  console.log(`\nresults: ${relative('', json)}`);
  if (svg) {
    writeFileSync(svg, (await import('./picture.mjs')).draw(results));
    console.log(`picture: ${relative('', svg)}`);
  }
});

function readArguments() {
  let args;
  try {
    args = parseArgs({ options }).values;
  } catch ({ message }) {
    fail(`bench: ${message}`);
  }
  if (!args.kernels && (args.engine !== undefined || args.build !== undefined))
    fail('bench: --engine and --build are for --kernels: say that too');
  if (!args.random && (args.count !== undefined || args.seed !== undefined))
    fail('bench: --count and --seed are for --random: say that too');
  const threads = Number(args.threads);
  if (!Number.isInteger(threads) || threads < 1 || threads > 64)
    fail(`bench: --threads is ${args.threads}; it must be a whole number from 1 to 64`);
  return { ...args, threads };
}

/** What a file of results says of its run. Prints it, too. */
function describe({ wg: { info }, ort, threads }) {
  const about = {
    date: new Date().toISOString(),
    processor: processorName(),
    node: process.versions.node,
    threads,
    versions: { wgemm: info.version, 'onnxruntime-web': ort.version, ...peerVersions },
  };
  const { processor, node, versions } = about;
  console.log(
    `${processor}, Node ${node}, ${threads === 1 ? 'one thread' : `${threads} threads`}, ` +
      `wgemm's build ${info.build}`,
  );
  console.log(
    Object.entries(versions)
      .map((each) => each.join(' '))
      .join(', '),
  );
  return about;
}

async function run(chosen, library, { targets }) {
  const results = { ...describe(library), cases: [], goals: [] };
  const { threads } = results;

  if (chosen.cases.length > 0) printCaseHead();
  for (const problem of chosen.cases) {
    const measured = await measure(problem, await contestantsOf(problem, library));
    results.cases.push(measured);
    printCase(measured);
    // The goals are for one thread.
    if (threads === 1)
      for (const goal of problem.goals ?? []) results.goals.push(judge(goal, measured));
  }

  if (chosen.sweeps.length > 0) {
    const taken = await limitsOfSweep(library);
    const limits = await measure(
      { name: 'sweep limit' },
      await Promise.all(taken.map((each) => limitOf(...each))),
    );
    results.cases.push(limits);
    printLimits(limits);
  }
  let before;
  for (const problem of chosen.sweeps) {
    const measured = await measure(problem, await contestantsOf(problem, library), sweepTurns);
    results.cases.push(measured);
    printSweep(measured, before);
    before = measured;
  }

  if (chosen.cliffs.length > 0) console.log('\ncliffs: the worst size of each, and all that miss');
  for (const { name, ...cliff } of chosen.cliffs) {
    const { goals, ...measured } = await runCliff(cliff, library.wg);
    results.cases.push({ name, ...measured });
    const judged = goals.map((goal) => ({ name, ...goal, reached: goal.ratio <= goal.atMost }));
    results.goals.push(...judged);
    for (const { of, than, ratio, reached } of judged) {
      console.log(
        `${name.padEnd(32)} ${`${of} next to ${than}`.padEnd(28)} ` +
          `${ratio.toFixed(3)}${reached || !targets ? '' : '   MISSED'}`,
      );
    }
  }
  if (!targets) return results;
  printGoals(results.goals);
  if (threads > 1 && chosen.cases.length > 0)
    console.log('\nThe targets of the table are for one thread: none is judged here.');
  return results;
}
