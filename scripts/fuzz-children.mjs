// Tries seeds in processes with bounded memory, and tells which of them fail, end the process or
// take too long.
import { fork } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fail, root, wholeNumbers } from './run.mjs';

/** A seed must be tried within this time, in ms. */
const limit = 20_000;
/** Seeds per process. */
const batch = 20_000;
/** The most kinds of failures that are printed. */
const most = 10;

/** Options of the command line. */
export const options = {
  seconds: { type: 'string', default: '600' },
  seed: { type: 'string', default: '1' },
  count: { type: 'string', default: '1000000000' },
};

/**
 * @param program a file of tests/fuzz/. It takes the first seed, how many there are, the seconds
 *   that are left, and `what`. It tells its parent each seed before it begins
 * @param what the things that are tried, for messages
 * @param values the options above, as they were given
 * @param keep returns the name and the bytes of the file of a seed
 */
export async function fuzzInChildren({ program, what, values, keep }) {
  const [seconds, seed, count] = wholeNumbers(values, 'seconds', 'seed', 'count');
  const failures = new Map();
  const reached = {};
  let peak = 0;
  const end = performance.now() + 1000 * seconds;
  let next = seed;
  while (next < seed + count && performance.now() < end && failures.size < most) {
    const size = Math.min(batch, seed + count - next);
    const left = (end - performance.now()) / 1000;
    const done = await runChild(program, [next, size, left, what], (seed, fault) => {
      const kind = kindOf(fault);
      const known = failures.get(kind) ?? 0;
      failures.set(kind, known + 1);
      if (known > 0) return;
      console.error(`seed ${seed}: ${fault}\n  kept as ${write(...keep(seed))}`);
    });
    for (const [stage, number] of Object.entries(done.reached ?? {}))
      reached[stage] = (reached[stage] ?? 0) + number;
    peak = Math.max(peak, done.peak ?? 0);
    next = done.next;
    const stages = Object.entries(reached).map(([stage, number]) => `${stage} ${number}`);
    console.log(`${next - seed} ${what}: ${stages.join(', ')}; at most ${peak.toFixed(0)} MB`);
  }
  const failed = Array.from(failures.values()).reduce((sum, number) => sum + number, 0);
  if (failed > 0) fail(`fuzz: ${failed} ${what} fail in ${failures.size} ways, see above.`);
}

/** Failures of one kind come from one place. */
function kindOf(fault) {
  const [first, ...rest] = fault.split('\n');
  const place = rest.find((line) => line.startsWith('    at '));
  return place ? `${first.replace(/:.*/, '')} ${place}` : first.replace(/\d+/g, '');
}

function write(name, bytes) {
  const folder = join(root, 'build', 'fuzz');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return relative(root, path);
}

/** Tries seeds in a process, until it ends or one of them takes too long. */
function runChild(program, [first, ...args], onFault) {
  const child = fork(join(root, 'tests', 'fuzz', program), [first, ...args].map(String), {
    execArgv: ['--expose-gc', '--max-old-space-size=256'],
  });
  return new Promise((resolve) => {
    let seed = first;
    let done;
    const end = () => {
      onFault(seed, `takes more than ${limit} ms`);
      child.kill('SIGKILL');
    };
    let timer = setTimeout(end, limit);
    child.on('message', (message) => {
      clearTimeout(timer);
      timer = setTimeout(end, limit);
      if (message.fault) onFault(message.seed, message.fault);
      else if (message.reached) done = message;
      else ({ seed } = message);
    });
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      if (!done && signal !== 'SIGKILL') onFault(seed, `ends the process: ${signal ?? code}`);
      resolve(done ?? { next: seed + 1 });
    });
  });
}
