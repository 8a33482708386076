// Tests dist/ in Node for arm64, on a processor with dot products and on one without. Other
// machines use an emulator, which the set-up provides without changing the system.
//   node tests/arm64/run.mjs [--cpu max,cortex-a53]
//     [--only vectors,api,strict,operators,fuzz,tiers]
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { nodeOn } from '../../scripts/arm64.mjs';
import { fail, main, root } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import { runChild } from '../package/child.mjs';
import { refuse, Results, twoAtATime } from '../package/results.mjs';

const here = import.meta.dirname;
const bundles = join(root, 'build', 'arm64');
const program = (name) => join(bundles, `${name}.mjs`);

/** QEMU's names of processors, and what these have. */
const processors = {
  max: 'with dot products',
  'cortex-a53': 'without dot products',
};

/**
 * The programs: arguments of Node. The last line that a program prints says what it did. The
 * slowest come first.
 */
const tests = {
  // Larger cases would take many minutes under an emulator.
  vectors: [join(root, 'tests', 'conformance', 'run.mjs'), 'wgemm', '--most', '1e6'],
  // Each in its own process, since the emulator keeps memory: see api.mjs.
  'api, gemm': [program('api'), 'gemm'],
  'api, matmul': [program('api'), 'matmul'],
  'api, qgemm and others': [program('api'), 'qgemm', 'quantize', 'activation', 'serialize'],
  strict: [program('strict')],
  operators: [program('operators')],
  fuzz: [program('fuzz'), 400],
  'tiers, ends': [program('tiers'), 'ends', 60_000],
  'tiers, least': [program('tiers'), 'least', 60_000],
};

/** Bundles each program into one file, with the API tests that it uses and without the package. */
async function bundle() {
  const { build } = await import('esbuild');
  await build({
    entryPoints: ['api', 'fuzz', 'operators', 'strict', 'tiers'].map((name) =>
      join(here, `${name}.mjs`),
    ),
    outdir: bundles,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'node',
    external: ['wgemm'],
    alias: { vitest: join(root, 'tests', 'browser', 'page', 'vitest.js') },
    logLevel: 'warning',
  });
}

function choose(option, given, all) {
  const chosen = given?.split(',') ?? all;
  const unknown = chosen.find((name) => !all.includes(name));
  if (unknown) fail(`--${option} has ${unknown}; it takes any of ${all.join(', ')}.`);
  return chosen;
}

await main(async () => {
  const isArm = process.arch === 'arm64';
  const options = {
    cpu: { type: 'string' },
    only: { type: 'string' },
  };
  const { cpu, only } = parseArgs({ options }).values;
  if (isArm && cpu) fail('--cpu is for machines that emulate arm64; this one is arm64 itself.');
  const kinds = [...new Set(Object.keys(tests).map((name) => name.split(',')[0]))];
  const wanted = choose('only', only, kinds);
  const chosen = isArm ? ['max'] : choose('cpu', cpu, Object.keys(processors));
  await setUp(...(isArm ? [] : ['arm64']));
  await bundle();

  const results = new Results();
  const whereOf = (name) => (isArm ? 'this processor' : `${name}, ${processors[name]}`);
  const run = (processor, what, args, check = (said) => said.trim().split('\n').at(-1)) =>
    results.test('arm64', whereOf(processor), what, async () => {
      const [program, ...before] = nodeOn(processor);
      const env = isArm ? {} : { WGEMM_SHORT_TESTS: '1' };
      const child = { cwd: root, env, timeout: 1_200_000 };
      return check(await runChild(program, [...before, ...args.map(String)], child));
    });
  for (const processor of chosen) {
    await run(processor, 'starts', ['-p', '`${process.arch} ${process.version}`'], (said) =>
      said.startsWith('arm64 ') ? said.trim() : refuse(`it is ${said}`),
    );
  }
  const jobs = Object.keys(tests)
    .filter((what) => wanted.includes(what.split(',')[0]))
    .flatMap((what) => chosen.map((processor) => ({ what, processor })));
  await twoAtATime(jobs, async ({ what, processor }) => {
    console.log(`arm64: ${whereOf(processor)}: ${what}`);
    await run(processor, what, tests[what]);
  });
  results.finish();
});
