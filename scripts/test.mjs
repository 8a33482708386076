// Runs every test. The native test program runs natively, under sanitizers, and as wasm with and
// without threads. Then come the native package, the JavaScript API, test vectors, and the npm
// package. The tarball is tested in Node, in bundlers, and in pages of Chromium. Arguments go to
// Vitest.
// With --only PART,PART: only these of `parts`.
// With --quick: the tests that find most mistakes, in under two minutes once everything is built.
// They are the test program without sanitizers, and on one build the API tests that do not need
// Node. The tests that take longest are left out.
// With --full: all API tests on every build, though vitest.config.ts otherwise chooses some, and
// the vectors of over ten million multiplications.
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildPreset, hasAvx2, makeDist } from './build.mjs';
import { testNativePackage } from './native-package.mjs';
import { fail, main, run } from './run.mjs';
import { setUp } from './setup.mjs';

/**
 * Preset -> the targets that are built; [] is all of them. The native test program runs under the
 * sanitizers, and in part with AVX2. As wasm it runs in each instruction set, and with and without
 * threads. API tests run on all four builds, as vitest.config.ts chooses, and vectors on two.
 */
const presets = {
  native: ['wgemm_fixed_problems'],
  'native-avx2': [],
  'native-asan': [],
  'native-tsan': [],
  'wasm-simd128': ['wgemm_modules', 'wgemm_bench_kernels'],
  'wasm-relaxed': [],
  'wasm-simd128-mt': [],
  'wasm-relaxed-mt': ['wgemm_modules'],
};

const wasmPresets = Object.keys(presets).filter((name) => name.startsWith('wasm'));

const times = [];

async function step(name, body) {
  console.log(`test: ${name}`);
  const start = performance.now();
  await body();
  times.push(`${((performance.now() - start) / 1000).toFixed(1).padStart(7)} s  ${name}`);
  console.log(`test: ${times.at(-1)}`);
}

const runTests = (preset, env) =>
  run('ctest', ['--preset', preset], {
    env,
    otherwise:
      `Tests of ${preset} fail: see above which, ` +
      `and run them by \`ctest --preset ${preset}\`.`,
  });

/** Simulated engines, and products larger than memory: a third of the time. */
const slow = { native: '-Engines/*', files: ['out-of-core.test.ts', 'limits.test.ts'] };

/** Every kernel, and products of floats: all other code is as under the address sanitizer. */
const testsOfWideVectors = 'KernelTable.*:Table/Kernel*:Types/*/float32:Types/*/float64:*Explain*';

async function testQuickly(args) {
  await setUp('wasm', 'native');
  await step('building native', () => buildPreset('native'));
  await buildDist();
  await step('running native', () => runTests('native', { GTEST_FILTER: slow.native }));
  const files = readdirSync(join('tests', 'js'), { recursive: true })
    .filter((name) => name.endsWith('.test.ts') && !slow.files.includes(basename(name)))
    .map((name) => join('tests', 'js', name));
  await step('running Vitest', () =>
    run('vitest', ['run', '--project', 'relaxed', ...(args.length > 0 ? args : files)], {
      otherwise:
        'Tests in tests/js fail: see above which, ' +
        'and run them by `npx vitest --project relaxed`.',
    }),
  );
}

/**
 * The parts that `--only` can name. A part builds what it needs, so that each can run alone.
 * `needs`: what setUp() installs for it.
 */
export const parts = {
  native: {
    needs: ['native'],
    async run() {
      await build('native');
      if (hasAvx2()) {
        await build('native-avx2');
        await step('running native-avx2', () =>
          runTests('native-avx2', { GTEST_FILTER: testsOfWideVectors }),
        );
      }
      await step('testing the native package', testNativePackage);
    },
  },
  sanitizers: { needs: ['native', 'clang'], run: () => buildAndRun('native-asan', 'native-tsan') },
  ...Object.fromEntries(
    wasmPresets.map((preset) => [preset, { needs: ['wasm'], run: () => buildAndRun(preset) }]),
  ),
  api: { needs: ['native', 'wasm'], run: testApi },
  vectors: { needs: ['wasm'], run: testVectors },
  package: { needs: ['wasm', 'package', 'chromium'], run: testPackage },
};

/** Both instruction sets. Other tests compare threads with one thread. */
const few = ['--most', '1e7', '--builds', 'simd128,relaxed'];

const isFull = () => Boolean(process.env.WGEMM_TEST_FULL);

async function buildAndRun(...names) {
  for (const preset of names) await build(preset);
  for (const preset of names.filter((name) => presets[name].length === 0))
    await step(`running ${preset}`, () => runTests(preset));
}

const build = (preset, ...targets) =>
  step(`building ${preset}`, () =>
    buildPreset(preset, ...(targets.length > 0 ? targets : presets[preset])),
  );

async function buildDist() {
  for (const preset of wasmPresets) await build(preset, 'wgemm_modules');
  await step('building dist/', makeDist);
}

async function testApi(args) {
  await build('native');
  for (const preset of ['wasm-simd128', 'wasm-relaxed'])
    await build(preset, 'wgemm_modules', 'wgemm_bench_kernels');
  await buildDist();
  await step('running Vitest', () =>
    run('vitest', ['run', ...args], {
      otherwise: 'Tests in tests/js fail: see above which, and run them by `npx vitest`.',
    }),
  );
}

async function testVectors() {
  await buildDist();
  await step('running test vectors', () =>
    run('node', ['tests/conformance/run.mjs', ...(isFull() ? [] : few)], {
      otherwise:
        'Test vectors fail: see above which, and run them by `node tests/conformance/run.mjs`.',
    }),
  );
  // V8 joins vectors by this flag, which Node has from 23.5 on.
  const join = parseInt(process.versions.node) >= 24 ? ['--experimental-wasm-revectorize'] : [];
  const joined = ['tests/conformance/run.mjs', '--vectors', '32', '--builds', 'relaxed', ...few];
  await step('running test vectors with joined vectors', () =>
    run('node', [...join, ...joined], {
      otherwise:
        'Test vectors fail with joined vectors: see above which, and run them by ' +
        `\`node ${[...join, ...joined].join(' ')}\`.`,
    }),
  );
  const onOne = isFull() ? [] : ['--builds', 'relaxed'];
  await step('running test vectors as models', () =>
    run('node', ['tests/conformance/run.mjs', '--models', '--most', '1e3', ...onOne], {
      otherwise:
        'Test vectors fail as models: see above which, ' +
        'and run them by `node tests/conformance/run.mjs --models`.',
    }),
  );
  await step("running ONNX's tests of nodes", () =>
    run('node', ['tests/conformance/run.mjs', '--nodes', ...onOne], {
      otherwise:
        "ONNX's tests of nodes fail: see above which, " +
        'and run them by `node tests/conformance/run.mjs --nodes`.',
    }),
  );
}

async function testPackage() {
  await buildDist();
  await step('testing the package', () =>
    run('node', ['tests/package/everywhere.mjs', '--fast'], {
      otherwise:
        'Tests of the package fail: see above which, ' +
        'and run them by `npm run test:everywhere -- --fast`.',
    }),
  );
}

/** Runs these parts. Parts of `npm test` share what they build. */
async function testParts(names, args) {
  const unknown = names.find((name) => !Object.hasOwn(parts, name));
  if (unknown !== undefined)
    fail(`test: there is no part '${unknown}'; there are ${Object.keys(parts).join(', ')}.`);
  await setUp(...names.flatMap((name) => parts[name].needs));
  for (const name of names) await parts[name].run(args);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    let [first, ...others] = process.argv.slice(2);
    if (first === '--full') {
      process.env.WGEMM_TEST_FULL = '1'; // vitest.config.ts reads it
      [first, ...others] = others;
    }
    if (first === '--quick') await testQuickly(others);
    else if (first === '--only') await testParts((others[0] ?? '').split(','), others.slice(1));
    else await testParts(Object.keys(parts), first === undefined ? [] : [first, ...others]);
    console.log(`test: where the time went\n${times.join('\n')}`);
  });
}
