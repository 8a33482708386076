// Measures tfjs with and without wgemm installed, in turns in one process: sweeps of sizes in both
// backends, and training.
//   npm run bench:tfjs -- --filter "wasm 12" --targets
//     --filter TEXT   only rows whose name contains the text: "cpu", "fused", "training"
//     --targets       judges the ratios, and fails if one misses its target
//     --threads 2     wgemm on two threads; tfjs itself has one in Node
import { fail, main } from '../../scripts/run.mjs';
import { install } from 'wgemm/tfjs';
import { bundleTfjs } from '../peers/tfjs-bundle.mjs';
import { randomArray } from './data.mjs';
import { readOptions } from './options.mjs';
import { threadsText } from './print.mjs';
import { bestAndMedian, race } from './turns.mjs';

/** The goals: how many times as fast a group must be with wgemm, in each of its rows. */
const anySize = { atLeast: 0.95 };
const slowInTfjs = { atLeast: 8 };
const training = { atLeast: 2 };

const turns = { warmUpMs: 100, warmUpCalls: 3, sampleMs: 2, raceMs: 300, minRounds: 9 };
/** A row that misses its target is measured again: some calls take 2 us. */
const longer = { ...turns, warmUpMs: 300, raceMs: 2000 };

/** [M, K, N] of products without transposes and batch axes. */
const plain = [
  ...[1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 128, 256, 512].map((size) => [size, size, size]),
  ...[16, 64, 128, 200, 256, 300, 512, 1024, 2048].map((size) => [1, size, size]),
  ...[1, 10, 100].flatMap((n) => [
    [1, 1000, n],
    [32, 128, n],
    [1024, 1024, n],
  ]),
  ...[2, 4, 8, 32, 128].map((m) => [m, 512, 512]),
  ...[1, 2, 4, 8, 16, 32].flatMap((size) => [
    [10_000, size, size],
    [10_000, size, 16],
    [10_000, 16, size],
    [1000, size, 1000],
  ]),
  [32, 784, 128],
  [1, 1, 10_000],
  [1, 10_000, 1],
  [8, 10_000, 8],
  [16, 10_000, 16],
  [10, 1, 10_000],
];
/** [batch, M, K, N] of others, in three forms: batches, and each operand transposed. */
const others = [
  ...[1, 2, 4, 6, 8, 10, 12, 16, 24, 64].map((size) => [1, size, size, size]),
  ...[2, 16, 200].flatMap((batch) => [1, 2, 4, 8, 16].map((size) => [batch, size, size, size])),
  [1, 1, 1000, 1],
  [1, 1, 10_000, 1],
  [1, 1000, 1, 1],
  [1, 1, 1, 1000],
  [1, 10_000, 2, 2],
  [200, 1, 64, 64],
  [200, 64, 1, 64],
];
/**
 * Products with a bias and an activation, at the borders of the rule. With a transpose and N > 1,
 * tfjs 4.22 has wrong numbers, and wgemm computes all sizes: so narrow ones may take longer.
 */
const fused = [
  ...[14, 16, 40, 48, 56, 64, 128].map((size) => ({ m: size, k: size, n: size })),
  ...[
    [1, 512, 512],
    [100, 32, 100],
    [1000, 16, 64],
    [1000, 64, 64],
    [1000, 16, 1000],
    [1000, 32, 1000],
    [10_000, 16, 16],
    [10_000, 32, 32],
    [32, 784, 128],
  ].map(([m, k, n]) => ({ m, k, n })),
  ...[
    [64, 3, 64],
    [1000, 4, 1],
    [1000, 16, 1],
    [4000, 40, 1],
  ].map(([m, k, n]) => ({ m, k, n, transposeB: true })),
].flatMap((problem) =>
  ['linear', 'relu', 'sigmoid', 'prelu'].map((activation) => ({ ...problem, activation })),
);
/** Products of transposes and batches as networks have them: attention, and gradients. */
const ofNetworks = [
  { batch: 12, m: 128, k: 64, n: 128, transposeB: true },
  { batch: 12, m: 128, k: 128, n: 64 },
  { m: 784, k: 64, n: 512, transposeA: true },
  { m: 64, k: 512, n: 784, transposeB: true },
  { m: 256, k: 256, n: 256, transposeA: true },
  { m: 256, k: 256, n: 256, transposeB: true },
  { batch: 64, m: 32, k: 32, n: 32 },
];

const nameOf = ({ batch, m, k, n, transposeA, transposeB, isFresh, activation }) =>
  `${activation ? `fused ${activation} ` : ''}${batch ? `${batch} x ` : ''}${m}x${k}x${n}` +
  `${transposeA ? ', A transposed' : ''}${transposeB ? ', B transposed' : ''}` +
  `${isFresh ? ', new B each time' : ''}`;

const productsOf = ({ batch = 1, m, k, n }) => batch * m * k * n;

await main(async () => {
  const { filter, targets, threads } = readOptions({
    filter: { type: 'string', default: '' },
    targets: { type: 'boolean', default: false },
  });
  const { tf, layers } = await bundleTfjs();
  const rows = [];
  const judge = (name, [without, withWgemm], { atLeast }, unit = 'us') => {
    const ratio = without.best / withWgemm.best;
    const figures = [without, withWgemm].map(({ best }) => best.toPrecision(3).padStart(9));
    const isMissed = ratio < atLeast;
    rows.push({ name, ratio, atLeast });
    console.log(
      `${name.padEnd(44)} ${figures.join(' ')} ${unit} ${ratio.toFixed(2).padStart(7)}` +
        (targets && isMissed ? `   MISSED: ${atLeast}` : ''),
    );
  };
  const asked = (name) => name.includes(filter);
  console.log(
    `\ntfjs on one thread, without wgemm and with it` +
      (threads > 1 ? ` on ${threadsText(threads)}` : ''),
  );
  for (const backendName of ['wasm', 'cpu']) {
    await tf.setBackend(backendName);
    const kernels = await kernelsOf(tf, backendName, threads);
    const sweep = async (problem, goal) => {
      const name = `${backendName} ${nameOf(problem)}`;
      // The loops of `cpu` take seconds for more.
      if (!asked(name) || (backendName === 'cpu' && productsOf(problem) > 4e6)) return;
      const contestants = contestantsOf(tf, kernels, problem);
      const raceFor = async (options) =>
        (await race(contestants, options)).map(({ best }) => ({ best: best * 1000 }));
      let times = await raceFor(turns);
      if (times[0].best / times[1].best < goal.atLeast) times = await raceFor(longer);
      contestants[0].dispose();
      judge(name, times, goal);
    };
    for (const [m, k, n] of plain) {
      await sweep({ m, k, n }, anySize);
      if (m * k * n <= 3e7) await sweep({ m, k, n, isFresh: true }, anySize);
    }
    for (const [batch, m, k, n] of others)
      for (const form of batch === 1
        ? [{ transposeA: true }, { transposeB: true }, { transposeB: true, isFresh: true }]
        : [{ batch }, { batch, isFresh: true }])
        await sweep({ m, k, n, ...form }, anySize);
    for (const problem of fused) await sweep(problem, anySize);
    for (const problem of ofNetworks) await sweep(problem, slowInTfjs);
    kernels.remove();
  }
  for (const units of [[128], [512, 256]]) {
    const name = `wasm training 784-${units.join('-')}-10, 5 epochs`;
    if (!asked(name)) continue;
    await tf.setBackend('wasm');
    judge(name, await raceTraining(tf, layers, units, threads), training, 'ms');
  }
  const worst = [...rows].sort((a, b) => a.ratio / a.atLeast - b.ratio / b.atLeast)[0];
  if (!worst) fail(`bench: no row contains "${filter}"; there are wasm 256x256x256, cpu, training`);
  console.log(`\nthe worst next to its target: ${worst.name}, ${worst.ratio.toFixed(2)}`);
  const missed = rows.filter(({ ratio, atLeast }) => ratio < atLeast);
  console.log(`${missed.length} of ${rows.length} rows miss their target`);
  if (targets && missed.length > 0) process.exitCode = 1;
});

/** The kernels without and with wgemm: functions that register them. */
async function kernelsOf(tf, backendName, threads) {
  const names = ['BatchMatMul', '_FusedMatMul'];
  const registered = () => names.map((name) => tf.getKernel(name, backendName));
  const before = registered();
  const remove = await install(tf, { threads });
  const after = registered();
  const register = (kernels) => () => {
    for (const kernel of kernels) {
      tf.unregisterKernel(kernel.kernelName, backendName);
      tf.registerKernel(kernel);
    }
  };
  const [withoutWgemm, withWgemm] = [before, after].map(register);
  return {
    withoutWgemm,
    withWgemm,
    remove() {
      withWgemm();
      remove();
    },
  };
}

function contestantsOf(tf, { withoutWgemm, withWgemm }, problem) {
  const { batch, m, k, n, transposeA = false, transposeB = false, isFresh, activation } = problem;
  const stack = batch ? [batch] : [];
  const [shapeOfA, shapeOfB] = [
    [...stack, ...(transposeA ? [k, m] : [m, k])],
    [...stack, ...(transposeB ? [n, k] : [k, n])],
  ];
  const a = tf.tensor(randomArray('float32', (batch ?? 1) * m * k, 1), shapeOfA);
  const data = randomArray('float32', (batch ?? 1) * k * n, 2);
  let b = tf.tensor(data, shapeOfB);
  const [bias, preluActivationWeights] = [3, 4].map((seed) =>
    tf.tensor(randomArray('float32', n, seed), [n]),
  );
  const multiply = activation
    ? () =>
        tf.fused.matMul({
          ...{ a, b, transposeA, transposeB, bias, activation },
          ...(activation === 'prelu' && { preluActivationWeights }),
        })
    : () => tf.matMul(a, b, transposeA, transposeB);
  return [withoutWgemm, withWgemm].map((register) => ({
    run(times) {
      register();
      for (let i = 0; i < times; ++i) {
        if (isFresh) {
          b.dispose();
          b = tf.tensor(data, shapeOfB);
        }
        multiply().dispose();
      }
    },
    dispose: () => [a, b, bias, preluActivationWeights].forEach((each) => each.dispose()),
  }));
}

/** Trains a dense network on random digits, from the same weights each time. */
async function raceTraining(tf, layers, units, threads) {
  const samples = 2048;
  const x = tf.tensor(randomArray('float32', samples * 784, 3), [samples, 784]);
  const labels = new Float32Array(samples * 10);
  for (let i = 0; i < samples; ++i) labels[i * 10 + ((i * 7) % 10)] = 1;
  const y = tf.tensor(labels, [samples, 10]);
  const fit = async () => {
    const seed = 1;
    const model = layers.sequential();
    for (const [i, size] of [...units, 10].entries()) {
      model.add(
        layers.layers.dense({
          units: size,
          activation: i < units.length ? 'relu' : 'softmax',
          kernelInitializer: layers.initializers.glorotUniform({ seed: seed + i }),
          ...(i === 0 && { inputShape: [784] }),
        }),
      );
    }
    model.compile({ optimizer: 'sgd', loss: 'categoricalCrossentropy' });
    const start = performance.now();
    await model.fit(x, y, { epochs: 5, batchSize: 64, shuffle: false, verbose: 0 });
    const ms = performance.now() - start;
    model.dispose();
    return ms;
  };
  const samplesOf = [[], []];
  for (let round = 0; round < 4; ++round) {
    const without = await fit();
    const remove = await install(tf, { threads });
    const withWgemm = await fit();
    remove();
    if (round === 0) continue; // engines compile
    samplesOf[0].push(without);
    samplesOf[1].push(withWgemm);
  }
  for (const each of [x, y]) each.dispose();
  return samplesOf.map(bestAndMedian);
}
