import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const needNode = ['tests/js/*.node.test.ts', 'tests/js/worker.test.ts'];

/** The API tests on a build, except those that need Node or start workers of their own. */
function project(name: string) {
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
      include: ['tests/js/*.test.ts'],
      exclude: needNode,
      setupFiles: name.startsWith('simd128') ? ['tests/js/simd128.ts'] : [],
    },
  };
}

export default defineConfig({
  test: {
    // On the build that createGemm chooses, and on the others.
    projects: [
      project('relaxed'),
      { extends: true, test: { name: 'node', include: needNode } },
      project('simd128'),
      project('relaxed-mt'),
      project('simd128-mt'),
    ],
    // tests/js/memory.test.ts drops tensors and watches the garbage collector free them.
    execArgv: ['--expose-gc'],
    testTimeout: 30_000,
    maxWorkers: 2,
  },
});
