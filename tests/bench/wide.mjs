// npm run bench -- --wide: the same build in V8 with and without the flag that joins two vectors of
// 16 bytes. Two processes take turns, one with the flag and vectors: 32, the other with neither.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fail } from '../../scripts/run.mjs';
import { buildPrograms } from './build-programs.mjs';
import { processorName } from './machine.mjs';
import { bestAndMedian } from './turns.mjs';

const flag = '--experimental-wasm-revectorize';
const cube = (size) => ({ m: size, n: size, k: size });
const model = { m: 128, n: 768, k: 768 };
const bytes = { operation: 'qgemm', typeOfA: 'uint8', typeOfB: 'int8', typeOfY: 'float32' };

const float32 = { dtype: 'float32', limit: 'float32', products: 4 };
const packed = { form: { packed: true } };

/**
 * `limit`: the loop in registers, of a type in limit.cc. `products`: of its steps, per vector of 16
 * bytes.
 */
const cases = [
  { ...float32, ...cube(1024) },
  { ...float32, ...cube(256) },
  { ...float32, ...model },
  { ...float32, ...model, ...packed },
  { ...float32, m: 12, n: 768, k: 768 },
  { dtype: 'float64', ...cube(512), limit: 'float64', products: 2 },
  { dtype: 'float64', ...cube(256), limit: 'float64', products: 2 },
  { ...float32, dtype: 'bfloat16', ...cube(512) },
  { ...float32, dtype: 'bfloat16', ...model, ...packed },
  { ...float32, dtype: 'bfloat16', m: 32, n: 768, k: 768, ...packed },
  { ...bytes, ...cube(1024), limit: 'int8', products: 8 },
  { ...bytes, ...model, ...packed, limit: 'int8', products: 8 },
  { ...bytes, ...model, ...packed, bits: 7, limit: 'int8', products: 8 },
].map((each) => ({ ...each, name: nameOf(each) }));

function nameOf({ dtype, typeOfA, typeOfB, m, n, k, bits, form }) {
  const types = dtype ?? `${typeOfA} x ${typeOfB}${bits ? ` of ${bits} bits` : ''}`;
  return `${types} ${m}x${n}x${k}${form ? ', B packed' : ''}`;
}

/** The loop in registers with the steps of the kernel, and their products per 16 bytes. */
function limitOf({ limit, products }, kernel) {
  if (kernel.includes('_dot_7bit')) return ['dot_7bit', 16];
  return kernel.includes('_dot_') ? ['dot', 16] : [limit, products];
}

/** Milliseconds of one timing, and the number of timings of each side. */
const [sampleMs, rounds] = [30, 40];

export async function compareVectors({ filter }) {
  const chosen = cases.filter(({ name }) => name.includes(filter));
  if (chosen.length === 0) {
    const all = cases.map(({ name }) => `  ${name}\n`).join('');
    fail(`bench: no case contains "${filter}"; there are\n${all.trimEnd()}`);
  }
  await buildPrograms(['relaxed']);
  const sides = [start(16), start(32, flag)];
  console.log(`${processorName()}, Node ${process.versions.node}; GOP/s counts 2*M*N*K`);
  const heads = ['16 bytes', 'joined', 'ratio (medians)', 'loop', 'of it'];
  console.log(''.padEnd(44) + heads.map((head) => head.padStart(18)).join(''));
  try {
    for (const problem of chosen) {
      const { plans, limits, best, median } = await raceSides(sides, problem);
      const { m, n, k, name } = problem;
      const speed = (ms) => (2 * m * n * k) / ms / 1e6;
      const cells = [
        ...best.map((ms) => speed(ms).toFixed(1)),
        `${(best[0] / best[1]).toFixed(2)} (${(median[0] / median[1]).toFixed(2)})`,
        limits.toFixed(1),
        `${((speed(best[1]) / limits) * 100).toFixed(0)}%`,
      ];
      console.log(`${name.padEnd(44)}${cells.map((cell) => cell.padStart(18)).join('')}`);
      console.log(`  ${plans.join(', then ')}`);
    }
  } finally {
    for (const { child } of sides) child.kill();
  }
}

function start(vectors, ...execArgv) {
  const child = fork(import.meta.filename, ['side'], {
    execArgv: [...process.execArgv, ...execArgv],
  });
  child.once('exit', (code) => code && fail(`bench: the process with vectors: ${vectors} ended`));
  return { vectors, child };
}

async function ask({ child }, message) {
  child.send(message);
  const [answer] = await once(child, 'message');
  return answer;
}

/** Times a case on both sides in turns. */
async function raceSides(sides, problem) {
  const plans = [];
  for (const side of sides)
    plans.push((await ask(side, { problem, vectors: side.vectors })).kernel);
  const samples = sides.map(() => []);
  const limits = [];
  for (let round = 0; round < rounds; ++round) {
    for (let i = 0; i < 2; ++i) {
      const at = (round + i) % 2;
      samples[at].push((await ask(sides[at], { sampleMs })).ms);
    }
    limits.push((await ask(sides[1], { limit: limitOf(problem, plans[1]) })).speed);
  }
  const times = samples.map(bestAndMedian);
  return {
    plans,
    limits: Math.max(...limits),
    best: times.map(({ best }) => best),
    median: times.map(({ median }) => median),
  };
}

/** One side: it answers each message. */
async function serve() {
  const { createGemm } = await import('wgemm');
  const { ownOn } = await import('./contestants.mjs');
  const { startProgram } = await import('./program.mjs');
  const program = await startProgram('relaxed');
  let wg, own, times;
  const time = (run, count) => {
    const begin = performance.now();
    run(count);
    return (performance.now() - begin) / count;
  };
  const answer = {
    async problem({ problem, vectors }) {
      wg?.dispose();
      wg = await createGemm({ vectors });
      own = ownOn(wg, { ...problem, ...problem.form }, problem.form ?? {});
      // V8 compiles while these calls run, and replaces code at a later call.
      const end = performance.now() + 800;
      let calls = 0;
      for (; performance.now() < end; ++calls) {
        own.run(1);
        await new Promise((resolve) => setImmediate(resolve));
      }
      times = Math.max(1, Math.round((calls * sampleMs) / 800));
      return { kernel: own.plan?.().kernel ?? '' };
    },
    sampleMs: () => ({ ms: time(own.run, times) }),
    limit({ limit: [limit, products] }) {
      const run = (count) => program[`_limit_joined_${limit}`](count);
      run(1);
      const count = 20;
      return { speed: (2 * products * program._limit_joined_steps()) / time(run, count) / 1e6 };
    },
  };
  process.on('message', async (message) => {
    const kind = ['problem', 'sampleMs', 'limit'].find((name) => name in message);
    process.send(await answer[kind](message));
  });
}

if (process.argv[1] === import.meta.filename && process.argv[2] === 'side') await serve();
