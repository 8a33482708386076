import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // The API tests on the build that the engine gets, and on the other; what needs Node or starts workers, on the first alone.
    projects: [
      { extends: true, test: { name: 'relaxed', include: ['tests/js/*.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'simd128',
          include: ['tests/js/*.test.ts'],
          exclude: ['tests/js/*.node.test.ts', 'tests/js/worker.test.ts'],
          setupFiles: ['tests/js/simd128.ts'],
        },
      },
    ],
    // tests/js/memory.test.ts drops tensors and watches the collector free them.
    execArgv: ['--expose-gc'],
    testTimeout: 30_000,
  },
});
