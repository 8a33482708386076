import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/js/**/*.test.ts'],
    // tests/js/memory.test.ts drops tensors and watches the collector free them.
    execArgv: ['--expose-gc'],
    testTimeout: 30_000,
  },
});
