// Learns handwritten digits. Run it with `npm run digits`, which builds wgemm first.
import { seededRandom } from '../random.mjs';
import { classes, pixels, readDigits, select, shuffle, side } from './data.mjs';
import { drawDigits } from './draw.mjs';
import { allocOutputs, classify, createLayers, createTrainer, forward, multiplyBy } from './network.mjs';
import { allocQuantizedOutputs, forwardQuantized, quantizeImages, quantizeLayers } from './quantized.mjs';
import { difference, multiplyInJavaScript, race } from './race.mjs';

const seed = 1; // the same digits, weights and accuracy in every run
const learned = 8000; // the rest is held back
const hidden = 128;
const epochs = 20;
const batch = 100;
const rate = 0.05;
const momentum = 0.9;

const [{ createGemm }, { default: cliProgress }] = await Promise.all([import('wgemm'), import('cli-progress')]).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('wgemm is not built here: run `npm run digits`, which builds it first.');
  process.exit(1);
});

const random = seededRandom(seed);
const wg = await createGemm();
try {
  console.log(`wgemm ${wg.info.version}: build ${wg.info.build}, ${wg.info.threads} thread, ${wg.info.kernels[0].name}`);
  const digits = readDigits(random);
  const training = select(digits, 0, learned);
  const test = select(digits, learned, digits.labels.length);
  console.log(`${training.count} digits to learn from, ${test.count} held back`);

  const layers = createLayers(wg, [pixels, hidden, classes], random);
  learn(layers, training);

  const input = wg.alloc('float32', [test.count, pixels]);
  input.data.set(test.images);
  const outputs = allocOutputs(wg, layers, test.count);
  const answers = classify(forward(layers, input, outputs, multiplyBy(wg)));
  console.log(`\naccuracy: ${percent(accuracy(answers, test))}\n`);

  const network = quantize(layers, training);
  const quantizedInput = quantizeImages(wg, input);
  const quantizedOutputs = allocQuantizedOutputs(wg, network, test.count);
  const runQuantized = () => forwardQuantized(wg, network, quantizedInput, quantizedOutputs);
  compare(layers, input, outputs, runQuantized, test);
  showSome(test, answers);
} finally {
  wg.dispose(); // and with it every tensor
}

function learn(layers, { images, labels, count }) {
  console.log(`learning in ${epochs} epochs of ${count / batch} batches, a network ${pixels}-${hidden}-${classes}`);
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
 * A digit moved by up to a pixel in each direction: it stays the same digit, but the network cannot learn single pixels by heart.
 * Moving is reading from a little before or after, since the rim of every image is empty.
 */
function shifted(images, row) {
  const move = () => Math.floor(3 * random()) - 1;
  const start = Math.min(Math.max(0, row * pixels + move() * side + move()), images.length - pixels);
  return images.subarray(start, start + pixels);
}

/** A bar on a terminal; elsewhere, in a file or a log, a line an epoch. */
function showProgress(steps) {
  if (!process.stdout.isTTY) {
    return {
      step() {},
      endEpoch: (epoch, loss) => console.log(`epoch ${String(epoch).padStart(2)} of ${epochs}: loss ${loss.toFixed(4)}`),
      end() {},
    };
  }
  const bar = new cliProgress.SingleBar(
    { format: '{bar} {percentage}%  epoch {epoch}, loss {loss}, {eta_formatted} left', stream: process.stdout, hideCursor: true },
    cliProgress.Presets.shades_classic,
  );
  bar.start(steps, 0, { epoch: 1, loss: '-' });
  return {
    step: (epoch, loss) => bar.increment({ epoch, loss: loss.toFixed(4) }),
    endEpoch() {},
    end: () => bar.stop(),
  };
}

function percent(fraction) {
  return `${(100 * fraction).toFixed(1)}%`;
}

/** The part of answers that are right. */
function accuracy(answers, { labels }) {
  return answers.filter((answer, i) => answer === labels[i]).length / labels.length;
}

/** The network in 8 bits, its ranges chosen by what it gives for some of the digits that it learned from. */
function quantize(layers, training) {
  const sample = wg.alloc('float32', [1000, pixels]);
  sample.data.set(training.images.subarray(0, sample.size));
  const outputs = allocOutputs(wg, layers, 1000);
  forward(layers, sample, outputs, multiplyBy(wg));
  const network = quantizeLayers(wg, layers, outputs);
  for (const tensor of [sample, ...outputs]) tensor.dispose();
  return network;
}

/** The forward pass over the digits held back: by gemm, by qgemm, and by plain JavaScript on arrays of its own. */
function compare(layers, input, outputs, runQuantized, test) {
  const copy = ({ data, shape }) => ({ data: data.slice(), shape });
  const layersInJs = layers.map(({ weights, bias }) => ({ weights: copy(weights), bias: copy(bias) }));
  const inputInJs = copy(input);
  const outputsInJs = outputs.map(copy);

  const runs = {
    'float32, gemm': () => forward(layers, input, outputs, multiplyBy(wg)),
    'int8, qgemm': runQuantized,
    'plain JavaScript': () => forward(layersInJs, inputInJs, outputsInJs, multiplyInJavaScript),
  };
  const times = race(Object.values(runs), 9);
  const error = difference(outputs.at(-1).data, outputsInJs.at(-1).data);
  if (!(error < 1e-4)) throw new Error(`wgemm and plain JavaScript disagree by ${error}`);

  const operations = layers.reduce((sum, { weights }) => sum + 2 * input.shape[0] * weights.size, 0);
  const speed = (seconds) => (operations / seconds / 1e9).toFixed(1).padStart(6);
  console.log(`the forward pass over ${input.shape[0]} digits, ${(operations / 1e9).toFixed(2)} billion operations:`);
  Object.entries(runs).forEach(([name, run], i) => {
    const right = percent(accuracy(classify(run()), test));
    console.log(`  ${name.padEnd(18)}${right} right, ${speed(times[i].best)} GOP/s at best, ${speed(times[i].median)} in the median run`);
  });
  const [float, quantized, js] = times.map(({ best }) => best);
  console.log(
    `  gemm is ${(js / float).toFixed(1)} times as fast as plain JavaScript, with results that agree to ${error.toExponential(0)};`,
  );
  console.log(`  qgemm is ${(float / quantized).toFixed(1)} times as fast as gemm, with a quarter of the bytes\n`);
}

/** Digits that it knew, and two that it mistook. */
function showSome({ images, labels }, answers) {
  const rows = [...labels.keys()];
  const known = rows.filter((row) => answers[row] === labels[row]);
  const mistaken = rows.filter((row) => answers[row] !== labels[row]);
  const pictures = [...known.slice(0, 4), ...mistaken.slice(0, 2)].map((row) => ({
    image: images.subarray(row * pixels, (row + 1) * pixels),
    side,
    caption: answers[row] === labels[row] ? `took for ${answers[row]}: right` : `took for ${answers[row]}: is ${labels[row]}`,
  }));
  console.log(drawDigits(pictures, process.stdout.columns ?? 80));
}
