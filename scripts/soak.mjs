// Runs 100,000 mixed calls on every build, as tests/js/instance/pressure.test.ts does for a shorter
// time.
// The same number of bytes must be in use after them as before.
import { main, run } from './run.mjs';

await main(() =>
  run(
    'vitest',
    ['run', 'tests/js/instance/pressure.test.ts', '-t', 'mixed calls', ...process.argv.slice(2)],
    {
      env: { WGEMM_SOAK: '100000' },
      otherwise: 'Calls leak memory, or fail: see above.',
    },
  ),
);
