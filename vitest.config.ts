import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const equality = 'tests/js/equality.ts';
const needNode = ['tests/js/*.node.test.ts', 'tests/js/worker.test.ts'];

/**
 * The tests in which builds may differ: random problems of each operator, memory and threads. Their
 * JavaScript is the same, and the test program and the vectors test their kernels. Each instruction
 * set has its turn with threads or without. WGEMM_TEST_FULL=1 runs everything on each build.
 */
const perBuild = ['*property', 'builds', 'calls', 'memory', 'pressure', 'threads'];
/** Of the two other pairs of an instruction set and threads. */
const perPair = ['property', 'builds'];

/** The API tests on a build, except those that need Node or start workers of their own. */
function project(name: string, files = ['*']) {
  return {
    extends: true as const,
    resolve: {
      alias: name.endsWith('-mt')
        ? [
            {
              find: /^wgemm$/,
              replacement: fileURLToPath(new URL('tests/js/threaded.ts', import.meta.url)),
            },
          ]
        : [],
    },
    test: {
      name,
      include: (process.env.WGEMM_TEST_FULL ? ['*'] : files).map(
        (file) => `tests/js/${file}.test.ts`,
      ),
      exclude: needNode,
      setupFiles: [equality, ...(name.startsWith('simd128') ? ['tests/js/simd128.ts'] : [])],
    },
  };
}

export default defineConfig({
  test: {
    // On the build that createGemm chooses, and on the others.
    projects: [
      project('relaxed'),
      { extends: true, test: { name: 'node', include: needNode, setupFiles: [equality] } },
      project('simd128', perPair),
      project('relaxed-mt', perPair),
      project('simd128-mt', perBuild),
    ],
    // tests/js/memory.test.ts drops tensors and watches the garbage collector free them.
    execArgv: ['--expose-gc'],
    testTimeout: 60_000, // CI runs other steps beside it
    maxWorkers: 2,
  },
});
