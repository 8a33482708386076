// Passes bytes that libFuzzer makes to deserialize(), for ten minutes or `--seconds`. Inputs that
// fail are kept in build/fuzz/; build/native-fuzz/wgemm_deserialize_fuzz runs such a file again.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildPreset } from './build.mjs';
import { fail, main, root, run } from './run.mjs';
import { setUp } from './setup.mjs';

await main(async () => {
  const { seconds } = parseArgs({
    options: { seconds: { type: 'string', default: '600' } },
  }).values;
  if (!/^[1-9]\d*$/.test(seconds))
    fail(`--seconds is ${seconds}; it must be a whole number from 1.`);
  await setUp('native', 'fuzz');
  await buildPreset('native-fuzz', 'wgemm_deserialize_fuzz');
  const found = join(root, 'build', 'fuzz');
  mkdirSync(found, { recursive: true });
  await run(
    join(root, 'build', 'native-fuzz', 'wgemm_deserialize_fuzz'),
    [
      `-max_total_time=${seconds}`,
      '-max_len=4096',
      '-timeout=10',
      '-print_final_stats=1',
      `-artifact_prefix=${found}/`,
    ],
    {
      env: { UBSAN_OPTIONS: 'print_stacktrace=1' },
      otherwise:
        'deserialize() fails: see above on which bytes, and run the program with their file.',
    },
  );
});
