// Trains a network on handwritten digits. Run it with `npm run digits`, which builds wgemm first.
import { seededRandom } from '../random.mjs';
import { accuracy, showSome } from './answers.mjs';
import { classes, pixels, readDigits, shuffle, side } from './data.mjs';
import {
  allocOutputs,
  classify,
  createLayers,
  createTrainer,
  forward,
  multiplyBy,
} from './network.mjs';
import { difference, multiplyInJavaScript, race } from './race.mjs';

const seed = 2; // of weights and batches: the same accuracy in every run
const hidden = 128;
const epochs = 20;
const batch = 100;
const rate = 0.05;
const momentum = 0.9;

const [
  wgemm,
  { makeInt8Layers, makeLayers, runner },
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

  const layers = createLayers(wg, [pixels, hidden, classes], random);
  learn(layers, training);

  const forms = {
    float32: makeLayers(wg, layers, 'float32'),
    bfloat16: makeLayers(wg, layers, 'bfloat16'),
    int8: quantize(layers, training),
  };
  const answers = compare(layers, forms, test); // of bfloat16
  console.log(
    `saved: bfloat16, ${saveLayers(forms.bfloat16).toLocaleString('en')} bytes in ${file};`,
  );
  console.log('`npm run classify` starts from it\n');
  showSome(test, answers);
} finally {
  wg.dispose(); // frees every tensor too
}

function learn(layers, { images, labels, count }) {
  console.log(
    `learning in ${epochs} epochs of ${count / batch} batches, a network ` +
      `${pixels}-${hidden}-${classes}`,
  );
  const trainer = createTrainer(wg, layers, { batch, rate, momentum });
  const order = Uint16Array.from({ length: count }, (_, i) => i);
  const batchLabels = new Uint8Array(batch);
  const progress = showProgress(epochs * (count / batch));
  for (let epoch = 1; epoch <= epochs; ++epoch) {
    shuffle(order, random);
    let lossSum = 0;
    for (let first = 0; first < count; first += batch) {
      const input = trainer.input.data;
      for (let i = 0; i < batch; ++i) {
        const row = order[first + i];
        input.set(shifted(images, row), i * pixels);
        batchLabels[i] = labels[row];
      }
      lossSum += trainer.step(batchLabels);
      progress.step(epoch, lossSum / (first / batch + 1));
    }
    progress.endEpoch(epoch, lossSum / (count / batch));
  }
  progress.end();
}

/**
 * Moves a digit by up to a pixel in each direction. It stays the same digit, but the network cannot
 * learn single pixels by heart. The rim of every image is empty, so a move is an offset to read at.
 */
function shifted(images, row) {
  const move = () => Math.floor(3 * random()) - 1;
  const start = Math.min(
    Math.max(0, row * pixels + move() * side + move()),
    images.length - pixels,
  );
  return images.subarray(start, start + pixels);
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
 * The network in 8 bits. Its ranges are chosen by its outputs for some of the digits of the
 * training.
 */
function quantize(layers, training) {
  const sample = wg.alloc('float32', [1000, pixels]);
  sample.data.set(training.images.subarray(0, sample.size));
  const outputs = allocOutputs(wg, layers, 1000);
  forward(layers, sample, outputs, multiplyBy(wg));
  const quantized = makeInt8Layers(wg, layers, outputs);
  for (const tensor of [sample, ...outputs]) tensor.dispose();
  return quantized;
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
  const rows = Object.entries(forms).map(([name, form]) => ({
    name,
    bytes: bytesOf(form),
    runner: (count) => runner(wg, form, count),
  }));
  // The same layers, with pixels that are 8-bit already: they need not quantize them.
  rows.push({ ...rows.at(-1), name: 'int8, 8-bit x', takesBytes: true });
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
