// 100,000 mixed calls on every build, which end with the bytes in use that they began with: what
// tests/js/pressure.test.ts does, for longer.
import { main, run } from './run.mjs';

await main(() =>
  run(
    'vitest',
    ['run', 'tests/js/pressure.test.ts', '-t', 'mixed calls', ...process.argv.slice(2)],
    {
      env: { WGEMM_SOAK: '100000' },
      otherwise: 'Calls leave something behind, or fail as they should not: see above.',
    },
  ),
);
