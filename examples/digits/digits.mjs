// Trains a network on handwritten digits. Run it with `npm run digits`, which builds wgemm first.
import { seededRandom } from '../random.mjs';
import { accuracy, showSome } from './answers.mjs';
import { readDigits } from './data.mjs';
import { pixels } from './images.mjs';
import { learn, sizes } from './learn.mjs';
import { classify, createLayers, forward } from './network.mjs';
import { difference, multiplyInJavaScript, race } from './race.mjs';

const seed = 2; // of weights and batches: the same accuracy in every run
const epochs = 20;
const batch = 100;

const [
  wgemm,
  { makeDynamicLayers, makeForms, runner },
  { file, saveLayers },
  { default: cliProgress },
] = await Promise.all([
  import('wgemm'),
  import('./layers.mjs'), // which imports wgemm, too
  import('./file.mjs'),
  import('cli-progress'),
]).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('wgemm is not built here: run `npm run digits`, which builds it first.');
  process.exit(1);
});

const random = seededRandom(seed);
const wg = await wgemm.createGemm();
try {
  console.log(
    `wgemm ${wg.info.version}: build ${wg.info.build}, ${wg.info.threads} thread, ` +
      `${wg.info.kernels[0].name}`,
  );
  const { training, test } = readDigits();
  console.log(`${training.count} digits to learn from, ${test.count} held back`);

  const layers = createLayers(wg, sizes, random);
  train(layers, training);

  const forms = makeForms(wg, layers, training.images.subarray(0, 1000 * pixels));
  const answers = compare(layers, forms, test); // of bfloat16
  console.log(
    `saved: bfloat16, ${saveLayers(forms.bfloat16).toLocaleString('en')} bytes in ${file};`,
  );
  console.log('`npm run classify` starts from it\n');
  showSome(test, answers);
} finally {
  wg.dispose(); // frees every tensor too
}

function train(layers, training) {
  const batches = training.count / batch;
  console.log(`learning in ${epochs} epochs of ${batches} batches, a network ${sizes.join('-')}`);
  const progress = showProgress(epochs * batches);
  for (const { epoch, endsEpoch, loss } of learn(wg, layers, training, { epochs, batch, random })) {
    progress.step(epoch, loss);
    if (endsEpoch) progress.endEpoch(epoch, loss);
  }
  progress.end();
}

/** A bar on a terminal; in a file or a log, one line per epoch. */
function showProgress(steps) {
  if (!process.stdout.isTTY) {
    return {
      step() {},
      endEpoch: (epoch, loss) =>
        console.log(`epoch ${String(epoch).padStart(2)} of ${epochs}: loss ${loss.toFixed(4)}`),
      end() {},
    };
  }
  const bar = new cliProgress.SingleBar(
    {
      format: '{bar} {percentage}%  epoch {epoch}, loss {loss}, {eta_formatted} left',
      stream: process.stdout,
      hideCursor: true,
    },
    cliProgress.Presets.shades_classic,
  );
  bar.start(steps, 0, { epoch: 1, loss: '-' });
  return {
    step: (epoch, loss) => bar.increment({ epoch, loss: loss.toFixed(4) }),
    endEpoch() {},
    end: () => bar.stop(),
  };
}

/**
 * Prints a table of the forward pass, for each form of the network and for plain JavaScript on its
 * own arrays: accuracy over all digits held back, and times for 1,000 digits and for one.
 */
function compare(layers, forms, test) {
  const copy = ({ data, shape }) => ({ data: data.slice(), shape });
  const inJavaScript = layers.map(({ weights, bias }) => ({
    weights: copy(weights),
    bias: copy(bias),
  }));
  const bytesOf = (layers) => layers.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const rowOf = ([name, form]) => ({
    name,
    bytes: bytesOf(form),
    runner: (count) => runner(wg, form, count),
  });
  const rows = Object.entries(forms).map(rowOf);
  // The same layers, with pixels that are 8-bit already: they need not quantize them.
  rows.push({ ...rows.at(-1), name: 'int8, 8-bit x', takesBytes: true });
  rows.push(rowOf(['int8, dynamic', makeDynamicLayers(wg, layers)]));
  rows.push({
    name: 'plain JavaScript',
    bytes: bytesOf(inJavaScript.flatMap(({ weights, bias }) => [weights.data, bias.data])),
    runner(count) {
      const outputs = layers.map(({ bias: { size } }) => ({
        data: new Float32Array(count * size),
        shape: [count, size],
      }));
      return (input) => forward(inJavaScript, input, outputs, multiplyInJavaScript);
    },
  });

  // Plain JavaScript reads its own arrays faster than the heap.
  const inputOf = ({ name, takesBytes }, count) => {
    const shape = [count, pixels];
    const data = test.images.subarray(0, count * pixels);
    if (name === 'plain JavaScript') return { data, shape };
    const input = wg.alloc(takesBytes ? 'uint8' : 'float32', shape);
    if (takesBytes) wgemm.quantize({ data, shape }, { scale: 1 / 255, out: input });
    else input.data.set(data);
    return input;
  };
  /** Seconds per pass over `count` digits: the median of 9 runs of `repeats` passes. */
  const timesOf = (count, repeats) =>
    race(
      rows.map((row) => {
        const [run, input] = [row.runner(count), inputOf(row, count)];
        return () => {
          for (let i = 0; i < repeats; ++i) run(input);
        };
      }),
      9,
    ).map(({ median }) => median / repeats);
  const [many, one] = [timesOf(1000, 1), timesOf(1, 1000)];
  const scores = rows.map((row) => row.runner(test.count)(inputOf(row, test.count)));
  const error = difference(scores[0].data, scores.at(-1).data);
  if (!(error < 1e-4)) throw new Error(`wgemm and plain JavaScript disagree by ${error}`);

  const operations = layers.reduce((sum, { weights }) => sum + 2 * weights.size, 0);
  const line = (...cells) =>
    console.log(cells.map((cell, i) => (i === 0 ? cell.padEnd(18) : cell.padStart(13))).join(''));
  console.log(
    `\nthe forward pass, ${operations.toLocaleString('en')} operations per digit, the median of ` +
      `9 runs:\n`,
  );
  line('weights', 'accuracy', 'bytes', '1,000 digits', 'GOP/s', 'one digit');
  rows.forEach(({ name, bytes }, i) =>
    line(
      name,
      accuracy(classify(scores[i]), test),
      bytes.toLocaleString('en'),
      `${(1000 * many[i]).toFixed(2)} ms`,
      ((1000 * operations) / many[i] / 1e9).toFixed(1),
      `${(1e6 * one[i]).toFixed(1)} us`,
    ),
  );
  console.log(`\nfloat32 and plain JavaScript agree to ${error.toExponential(0)}`);
  return classify(scores[1]);
}
