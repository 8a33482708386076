// Passes mutated files to wgemm/weights, for ten minutes or `--seconds`, in processes with bounded
// memory. Each file must be read, or give an error that says what is wrong. Each has a seed:
// `--seed n --count 1` tries that one again. Files that fail are kept in build/fuzz/.
import { parseArgs } from 'node:util';
import { fileOf } from '../tests/fuzz/weights-mutate.mjs';
import { fuzzInChildren, options } from './fuzz-children.mjs';
import { main } from './run.mjs';

await main(async () => {
  const { values } = parseArgs({ options });
  await fuzzInChildren({
    program: 'weights-child.mjs',
    what: 'files',
    values,
    keep: (seed) => {
      const [format, bytes] = fileOf(seed);
      return [`${seed}.${format}`, bytes];
    },
  });
});
