import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The API tests on a build, or without those that need Node or start workers of their own. */
function project(name: string, all: boolean) {
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
      exclude: all ? [] : ['tests/js/*.node.test.ts', 'tests/js/worker.test.ts'],
      setupFiles: name.startsWith('simd128') ? ['tests/js/simd128.ts'] : [],
    },
  };
}

export default defineConfig({
  test: {
    // On the build that createGemm chooses, and on the others.
    projects: [
      project('relaxed', true),
      project('simd128', false),
      project('relaxed-mt', false),
      project('simd128-mt', false),
    ],
    // tests/js/memory.test.ts drops tensors and watches the garbage collector free them.
    execArgv: ['--expose-gc'],
    testTimeout: 30_000,
    maxWorkers: 2,
  },
});
