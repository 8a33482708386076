// Learns handwritten digits. Run it with `npm run digits`, which builds wgemm first.
import { classes, pixels, readDigits, seededRandom, select, shuffle, side } from './data.mjs';
import { drawDigits } from './draw.mjs';
import { allocOutputs, classify, createLayers, createTrainer, forward, multiplyBy } from './network.mjs';
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
  const right = answers.filter((answer, i) => answer === test.labels[i]).length;
  console.log(`\naccuracy: ${((100 * right) / test.count).toFixed(1)}%\n`);

  compareSpeed(layers, input, outputs);
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

/** The forward pass over the digits held back, by wgemm and by plain JavaScript on arrays of its own. */
function compareSpeed(layers, input, outputs) {
  const copy = ({ data, shape }) => ({ data: data.slice(), shape });
  const layersInJs = layers.map(({ weights, bias }) => ({ weights: copy(weights), bias: copy(bias) }));
  const inputInJs = copy(input);
  const outputsInJs = outputs.map(copy);

  const byWgemm = () => forward(layers, input, outputs, multiplyBy(wg));
  const byJs = () => forward(layersInJs, inputInJs, outputsInJs, multiplyInJavaScript);
  const [wgemmTime, jsTime] = race([byWgemm, byJs], 9);
  const error = difference(outputs.at(-1).data, outputsInJs.at(-1).data);
  if (!(error < 1e-4)) throw new Error(`wgemm and plain JavaScript disagree by ${error}`);

  const operations = layers.reduce((sum, { weights }) => sum + 2 * input.shape[0] * weights.size, 0);
  const speed = (seconds) => (operations / seconds / 1e9).toFixed(1).padStart(6);
  const line = (name, { best, median }) => `  ${name.padEnd(18)}${speed(best)} GOP/s at best, ${speed(median)} in the median run`;
  console.log(`the forward pass over ${input.shape[0]} digits, ${(operations / 1e9).toFixed(2)} billion operations:`);
  console.log(line('wgemm', wgemmTime));
  console.log(line('plain JavaScript', jsTime));
  console.log(`  speed-up: ${(jsTime.best / wgemmTime.best).toFixed(1)}x, with results that agree to ${error.toExponential(0)}\n`);
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
