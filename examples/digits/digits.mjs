// Trains a network on handwritten digits. Run it with `npm run digits`, which builds wgemm first.
import { seededRandom } from '../random.mjs';
import { accuracy, showSome } from './answers.mjs';
import { classes, pixels, readDigits, shuffle, side } from './data.mjs';
import { file, saveLayers } from './file.mjs';
import {
  allocOutputs,
  classify,
  createLayers,
  createTrainer,
  forward,
  multiplyBy,
  packLayers,
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
  { allocQuantizedOutputs, forwardQuantized, quantizeImages, quantizeLayers },
  { default: cliProgress },
] = await Promise.all([
  import('wgemm'),
  import('./quantized.mjs'), // which imports wgemm, too
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

  const input = wg.alloc('float32', [test.count, pixels]);
  input.data.set(test.images);
  const forms = {
    float32: packLayers(wg, layers, 'float32'),
    bfloat16: packLayers(wg, layers, 'bfloat16'),
  };
  const answers = compare(layers, forms, quantize(layers, training), input, test); // of bfloat16
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
  const network = quantizeLayers(wg, layers, outputs);
  for (const tensor of [sample, ...outputs]) tensor.dispose();
  return network;
}

/**
 * Prints a table of the forward pass over the digits held back, for each form of the weights and
 * for plain JavaScript on its own arrays.
 */
function compare(layers, forms, quantized, input, test) {
  const copy = ({ data, shape }) => ({ data: data.slice(), shape });
  const outputs = allocOutputs(wg, layers, test.count);
  const layersInJs = layers.map(({ weights, bias }) => ({
    weights: copy(weights),
    bias: copy(bias),
  }));
  const inputInJs = copy(input);
  const outputsInJs = outputs.map(copy);
  const quantizedInput = quantizeImages(wg, input);
  const quantizedOutputs = allocQuantizedOutputs(wg, quantized, test.count);

  const rows = Object.entries(forms).map(([name, form]) => [
    name,
    form,
    () => forward(form, input, outputs, multiplyBy(wg)),
  ]);
  rows.push([
    'int8',
    quantized,
    () => forwardQuantized(wg, quantized, quantizedInput, quantizedOutputs),
  ]);
  rows.push([
    'plain JavaScript',
    layersInJs,
    () => forward(layersInJs, inputInJs, outputsInJs, multiplyInJavaScript),
  ]);
  const times = race(
    rows.map(([, , run]) => run),
    9,
  );
  const error = difference(rows[0][2]().data, outputsInJs.at(-1).data);
  if (!(error < 1e-4)) throw new Error(`wgemm and plain JavaScript disagree by ${error}`);

  const operations = layers.reduce((sum, { weights }) => sum + 2 * test.count * weights.size, 0);
  const line = (...cells) =>
    console.log(cells.map((cell, i) => (i === 0 ? cell.padEnd(18) : cell.padStart(11))).join(''));
  console.log(
    `\nthe forward pass over ${test.count} digits, ${(operations / 1e9).toFixed(2)} billion ` +
      `operations, the median of 9 runs:\n`,
  );
  line('weights', 'accuracy', 'bytes', 'time', 'GOP/s');
  rows.forEach(([name, form, run], i) => {
    const bytes = form.reduce(
      (sum, { weights }) => sum + (weights.byteLength ?? weights.data.byteLength),
      0,
    );
    const { median } = times[i];
    const right = accuracy(classify(run()), test);
    line(
      name,
      right,
      bytes.toLocaleString('en'),
      `${(1000 * median).toFixed(1)} ms`,
      (operations / median / 1e9).toFixed(1),
    );
  });
  console.log(`\nfloat32 and plain JavaScript agree to ${error.toExponential(0)}`);
  return classify(rows[1][2]());
}
