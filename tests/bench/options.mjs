// The options of a program of the bench.
import { parseArgs } from 'node:util';
import { fail } from '../../scripts/run.mjs';

const mostThreads = 64;

/**
 * The options of the command line, by name. Every program that calls this takes `--threads`, and
 * receives a number.
 *
 * @param options of parseArgs(), besides `threads`
 */
export function readOptions(options) {
  let values;
  try {
    ({ values } = parseArgs({
      options: { ...options, threads: { type: 'string', default: '1' } },
    }));
  } catch ({ message }) {
    fail(`bench: ${message}`);
  }
  const threads = Number(values.threads);
  if (!Number.isInteger(threads) || threads < 1 || threads > mostThreads)
    fail(
      `bench: --threads is ${values.threads}; it must be a whole number from 1 to ${mostThreads}`,
    );
  return { ...values, threads };
}
