// Passes mutated models to wgemm/onnx, for ten minutes or `--seconds`, in processes with bounded
// memory. With `--graphs`, it passes random graphs, which must run, and compares their results with
// the same nodes when every value is an output. Each model has a seed: `--seed n --count 1` tries
// that one again. Models that fail are kept in build/fuzz/.
import { fork } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { graphOf } from '../tests/fuzz/onnx-graphs.mjs';
import { modelOf } from '../tests/fuzz/onnx-mutate.mjs';
import { encodeGraph } from '../tests/peers/onnx-model.mjs';
import { fail, main, root, wholeNumbers } from './run.mjs';

/** A model must be refused or run within this time, in ms. */
const limit = 20_000;
/** Models per process. */
const batch = 20_000;
/** The most kinds of failures that are printed. */
const most = 10;

await main(async () => {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '600' },
      seed: { type: 'string', default: '1' },
      count: { type: 'string', default: '1000000000' },
      graphs: { type: 'boolean', default: false },
    },
  });
  const [seconds, seed, count] = wholeNumbers(values, 'seconds', 'seed', 'count');
  const kind = values.graphs ? 'graphs' : 'models';
  const failures = new Map();
  const reached = {};
  let peak = 0;
  const end = performance.now() + 1000 * seconds;
  let next = seed;
  while (next < seed + count && performance.now() < end && failures.size < most) {
    const size = Math.min(batch, seed + count - next);
    const left = (end - performance.now()) / 1000;
    const done = await runChild([next, size, left, kind], (seed, fault) => {
      const kind = kindOf(fault);
      const known = failures.get(kind) ?? 0;
      failures.set(kind, known + 1);
      if (known > 0) return;
      console.error(`seed ${seed}: ${fault}\n  kept as ${keep(kind, seed)}`);
    });
    for (const [stage, number] of Object.entries(done.reached ?? {}))
      reached[stage] = (reached[stage] ?? 0) + number;
    peak = Math.max(peak, done.peak ?? 0);
    next = done.next;
    const stages = Object.entries(reached).map(([stage, number]) => `${stage} ${number}`);
    console.log(`${next - seed} ${kind}: ${stages.join(', ')}; at most ${peak.toFixed(0)} MB`);
  }
  const failed = Array.from(failures.values()).reduce((sum, number) => sum + number, 0);
  if (failed > 0) fail(`fuzz: ${failed} ${kind} fail in ${failures.size} ways, see above.`);
});

/** Failures of one kind come from one place. */
function kindOf(fault) {
  const [first, ...rest] = fault.split('\n');
  const place = rest.find((line) => line.startsWith('    at '));
  return place ? `${first.replace(/:.*/, '')} ${place}` : first.replace(/\d+/g, '');
}

function keep(kind, seed) {
  const folder = join(root, 'build', 'fuzz');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${seed}.onnx`);
  writeFileSync(path, kind === 'graphs' ? encodeGraph(graphOf(seed).model) : modelOf(seed));
  return relative(root, path);
}

/** Tries models in a process, until it ends or one of them takes too long. */
function runChild([first, ...args], onFault) {
  const child = fork(join(root, 'tests', 'fuzz', 'onnx-child.mjs'), [first, ...args].map(String), {
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
