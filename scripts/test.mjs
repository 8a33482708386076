// Runs every test: native, native under sanitizers, the same test program as wasm with and without
// threads, the native package, then the JavaScript API, test vectors, and the npm package. Its
// tarball is tested in Node, in bundlers, and in pages of Chromium. Arguments go to Vitest.
// With --quick: what finds most mistakes in under two minutes, once everything is built: the test
// program without sanitizers, and on one build the API tests that do not need Node; without what
// takes longest.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildPreset, makeDist } from './build.mjs';
import { testNativePackage } from './native-package.mjs';
import { main, run } from './run.mjs';
import { setUp } from './setup.mjs';

/**
 * Preset -> the targets that are built; [] is all of them. The native test program runs under the
 * sanitizers. As wasm it runs in each instruction set, and with and without threads. The API tests
 * and the vectors run on all four builds.
 */
const presets = {
  native: ['wgemm_fixed_problems'],
  'native-asan': [],
  'native-tsan': [],
  'wasm-simd128': ['wgemm_wasm', 'wgemm_bench_kernels'],
  'wasm-relaxed': [],
  'wasm-simd128-mt': [],
  'wasm-relaxed-mt': ['wgemm_wasm'],
};

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

async function testQuickly(args) {
  await setUp('wasm', 'native');
  await step('building native', () => buildPreset('native'));
  for (const preset of Object.keys(presets).filter((name) => name.startsWith('wasm')))
    await step(`building ${preset}`, () => buildPreset(preset, 'wgemm_wasm'));
  await step('building dist/', makeDist);
  await step('running native', () => runTests('native', { GTEST_FILTER: slow.native }));
  const files = readdirSync(join('tests', 'js'))
    .filter((name) => name.endsWith('.test.ts') && !slow.files.includes(name))
    .map((name) => `tests/js/${name}`);
  await step('running Vitest', () =>
    run('vitest', ['run', '--project', 'relaxed', ...(args.length > 0 ? args : files)], {
      otherwise:
        'Tests in tests/js fail: see above which, ' +
        'and run them by `npx vitest --project relaxed`.',
    }),
  );
}

async function testAll(args) {
  await setUp('wasm', 'native', 'clang', 'package', 'chromium');
  for (const [preset, targets] of Object.entries(presets)) {
    await step(`building ${preset}`, () => buildPreset(preset, ...targets));
  }
  await step('building dist/', makeDist);
  for (const preset of Object.keys(presets).filter((name) => presets[name].length === 0)) {
    await step(`running ${preset}`, () => runTests(preset));
  }
  await step('testing the native package', testNativePackage);
  await step('running Vitest', () =>
    run('vitest', ['run', ...args], {
      otherwise: 'Tests in tests/js fail: see above which, and run them by `npx vitest`.',
    }),
  );
  await step('running test vectors', () =>
    run('node', ['tests/conformance/run.mjs'], {
      otherwise:
        'Test vectors fail: see above which, and run them by `node tests/conformance/run.mjs`.',
    }),
  );
  await step('running test vectors as models', () =>
    run('node', ['tests/conformance/run.mjs', '--models', '--most', '1e3'], {
      otherwise:
        'Test vectors fail as models: see above which, ' +
        'and run them by `node tests/conformance/run.mjs --models`.',
    }),
  );
  await step('testing the package', () =>
    run('node', ['tests/package/everywhere.mjs', '--fast'], {
      otherwise:
        'Tests of the package fail: see above which, ' +
        'and run them by `npm run test:everywhere -- --fast`.',
    }),
  );
}

await main(async () => {
  const [first, ...others] = process.argv.slice(2);
  if (first === '--quick') await testQuickly(others);
  else await testAll(process.argv.slice(2));
  console.log(`test: where the time went\n${times.join('\n')}`);
});
