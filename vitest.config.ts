import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const needNode = ['tests/js/**/*.node.test.ts', 'tests/js/worker/worker.test.ts'];

/**
 * The tests in which builds may differ: random problems of each operator, memory and threads. Their
 * JavaScript is the same, and the test program and the vectors test their kernels. The build with
 * the other instruction set, and with threads, runs all of these. WGEMM_TEST_FULL=1 runs everything
 * on each build.
 */
const whereBuildsDiffer = ['*property', 'builds', 'calls', 'memory', 'pressure', 'threads'];
/** What the other two builds run. */
const fewest = ['property', 'builds'];

/** The API tests on a build, except those that need Node or start workers of their own. */
function project(name: string, files = ['*']) {
  return {
    extends: true as const,
    resolve: {
      alias: name.endsWith('-mt')
        ? [
            {
              find: /^wgemm$/,
              replacement: fileURLToPath(new URL('tests/js/support/threaded.ts', import.meta.url)),
            },
          ]
        : [],
    },
    test: {
      name,
      include: (process.env.WGEMM_TEST_FULL ? ['*'] : files).map(
        (file) => `tests/js/**/${file}.test.ts`,
      ),
      exclude: needNode,
      // A process per file would add a second per file.
      isolate: false,
      setupFiles: name.startsWith('simd128') ? ['tests/js/support/simd128.ts'] : [],
    },
  };
}

export default defineConfig({
  test: {
    // On the build that createGemm chooses, and on the others.
    projects: [
      project('relaxed'),
      { extends: true, test: { name: 'node', include: needNode } },
      project('simd128', fewest),
      project('relaxed-mt', fewest),
      project('simd128-mt', whereBuildsDiffer),
    ],
    setupFiles: ['tests/js/support/equality.ts'],
    // tests/js/instance/memory.test.ts drops tensors and watches the garbage collector free them.
    execArgv: ['--expose-gc'],
    testTimeout: 60_000, // CI runs other steps at the same time
    maxWorkers: 2,
  },
});
