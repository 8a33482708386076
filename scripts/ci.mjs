// The steps of CI. `.ci/run` runs all of them here, and each job of .github/workflows runs some of
// them. This is the only list.
//   node scripts/ci.mjs          every step that this machine can run, some at the same time
//   node scripts/ci.mjs STEP...  these steps
// Compiler warnings are errors. A fast machine tries as many models as a slow one.
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cache, fail, main, onPath, root, run } from './run.mjs';
import { setUp } from './setup.mjs';

const npm = (script, ...args) => [
  'npm',
  'run',
  script,
  ...(args.length > 0 ? ['--', ...args] : []),
];
const test = (part) => [npm('test', '--only', part)];

/** Step -> its commands. `npm test` is cut into its parts, which share what they build. */
export const steps = {
  digits: [npm('digits')],
  native: test('native'),
  sanitizers: test('sanitizers'),
  'wasm-simd128': test('wasm-simd128'),
  'wasm-relaxed': test('wasm-relaxed'),
  'wasm-simd128-mt': test('wasm-simd128-mt'),
  'wasm-relaxed-mt': test('wasm-relaxed-mt'),
  api: test('api'),
  vectors: test('vectors'),
  package: test('package'),
  cblas: [npm('test:everywhere', '--only', 'cblas')],
  arm64: [npm('test:arm64', '--only', 'fuzz,operators')],
  fuzz: [
    npm('fuzz', '--seconds', '10'),
    npm('fuzz:onnx', '--seconds', '10', '--count', '10000'),
    npm('fuzz:onnx', '--graphs', '--seconds', '10', '--count', '2000'),
    npm('fuzz:weights', '--seconds', '10', '--count', '20000'),
    npm('fuzz:calls', '--seconds', '10', '--count', '2000'),
  ],
  runtimes: [npm('test:everywhere', '--only', 'runtimes', '--rest')],
  browsers: [npm('test:browsers', '--smoke', '--engine', 'firefox,webkit')],
  // The site contains the demo.
  site: [
    npm('site', '--short'),
    ['node', 'tests/site/run.mjs', '--smoke'],
    ['node', 'tests/demo/run.mjs', '--smoke', '--folder', 'build/site/demo'],
  ],
  lint: [npm('build'), npm('lint')], // types of tests come from dist/
};

/** Steps that only a workflow runs: before the others, on another system, or for a release. */
export const elsewhere = {
  setup: [['node', 'scripts/setup.mjs']],
  safari: [npm('test:browsers', '--engine', 'safari')],
  release: [npm('release', '--check')],
};

/**
 * Compilers run through ccache if it is installed. It reuses files that an earlier clone of the
 * same sources compiled, in whichever folder.
 */
function useCompilerCache() {
  const ccache = onPath('ccache');
  if (!ccache) return;
  Object.assign(process.env, {
    CMAKE_C_COMPILER_LAUNCHER: ccache,
    CMAKE_CXX_COMPILER_LAUNCHER: ccache,
    CCACHE_DIR: join(cache, 'ccache'),
    CCACHE_BASEDIR: root,
    CCACHE_NOHASHDIR: '1',
    CCACHE_DEPEND: '1', // else it preprocesses what it then compiles
    CCACHE_MAXSIZE: '1G',
    WGEMM_LINK_CACHE: join(cache, 'ccache', 'links'), // scripts/cached-link.mjs
  });
}

/**
 * Lists of steps that `.ci/run` runs at the same time, at the end. Each of these steps leaves a
 * core idle for much of its time. Steps of one list share folders in build/, so they run one after
 * the other.
 */
const lanes = [
  ['package', 'runtimes', 'browsers', 'fuzz', 'cblas'],
  ['site', 'vectors', 'arm64', 'lint'],
];

const times = [];

async function runStep(name, log) {
  const start = performance.now();
  try {
    for (const [program, ...args] of { ...steps, ...elsewhere }[name])
      await run(program, args, { log, otherwise: `ci: the step ${name} fails: see above why.` });
  } finally {
    times.push(line(performance.now() - start, name));
  }
}

/** Runs the steps of each list one after the other, and shows what a step says once it ends. */
async function runLanes() {
  const logs = join(root, 'build', 'ci');
  mkdirSync(logs, { recursive: true });
  let hasFailed = false;
  const ends = await Promise.allSettled(
    lanes.map(async (names) => {
      for (const name of names) {
        if (hasFailed) return;
        console.log(`ci: ${name} begins`);
        const file = join(logs, `${name}.log`);
        const log = openSync(file, 'w');
        try {
          await runStep(name, log);
        } catch (error) {
          hasFailed = true;
          throw error;
        } finally {
          closeSync(log);
          console.log(`ci: ${name} says\n${readFileSync(file, 'utf8')}ci: ${times.at(-1)}`);
        }
      }
    }),
  );
  const failure = ends.find(({ status }) => status === 'rejected');
  if (failure) throw failure.reason;
}

const line = (ms, what) => `${(ms / 1000).toFixed(0).padStart(5)} s  ${what}`;

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    const known = Object.keys({ ...steps, ...elsewhere });
    const chosen = process.argv.slice(2);
    const unknown = chosen.find((name) => !known.includes(name));
    if (unknown !== undefined)
      fail(`ci: there is no step '${unknown}'; there are ${known.join(', ')}.`);
    process.env.CI = 'true';
    process.env.WGEMM_PACKAGES_CACHE = join(cache, 'npm-packages'); // scripts/setup.mjs
    await setUp('ci');
    useCompilerCache();
    try {
      const together = chosen.length > 0 ? [] : lanes.flat();
      const before = Object.keys(steps).filter((name) => !together.includes(name));
      for (const name of chosen.length > 0 ? chosen : before) await runStep(name);
      if (together.length > 0) await runLanes();
    } finally {
      console.log([...times, line(performance.now(), 'in all')].join('\n'));
    }
  });
}
