// Trains a small language model on the prose of this repository, and writes with it: in float32, in
// int8 and in 4 bits. Run it with `npm run tiny-llm`, which builds wgemm first. Options come after
// `--`, such as `npm run tiny-llm -- --prompt "A kernel"`.
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { race } from '../digits/race.mjs';
import { seededRandom } from '../random.mjs';
import { alphabet, decode, encode } from './alphabet.mjs';
import { learn, settings } from './learn.mjs';
import { createModel, fromBytes, toBytes } from './model.mjs';
import { readText } from './text.mjs';

const usage = `Options:
  --short            a smaller model, which learns for a few seconds
  --seed 1           of the weights, the batches and the text
  --prompt "The "    how the text begins
  --tokens 300       how many characters follow
  --temperature 0.7  below 1 prefers likely characters
  --save file        saves the weights
  --load file        takes saved weights, without training`;

const string = (value) => ({ type: 'string', ...(value && { default: value }) });
const { short, prompt, save, load, help, ...numbers } = readOptions({
  help: { type: 'boolean' },
  short: { type: 'boolean' },
  seed: string('1'),
  prompt: string('The '),
  tokens: string('300'),
  temperature: string('0.7'),
  save: string(),
  load: string(),
});
if (help) {
  console.log(usage);
  process.exit();
}
const [seed, tokens, temperature] = ['seed', 'tokens', 'temperature'].map((name) => {
  const number = Number(numbers[name]);
  const isWhole = name === 'temperature' || Number.isSafeInteger(number);
  if (!(number > 0 && isWhole)) {
    const kind = name === 'temperature' ? 'number' : 'whole number';
    end(`--${name} is ${numbers[name]}; it must be a ${kind} above 0.`);
  }
  return number;
});
const start = encode(prompt);
if (start.length === 0) end('--prompt must have a character of ASCII.');

const [{ createGemm }, { createDecoder, generate, perplexity }, { default: cliProgress }] =
  await Promise.all([
    import('wgemm'),
    import('./decoder.mjs'), // which imports wgemm, too
    import('cli-progress'),
  ]).catch((error) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return end('wgemm is not built here: run `npm run tiny-llm`, which builds it first.');
  });

const count = (number) => number.toLocaleString('en');
const wg = await createGemm();
try {
  console.log(`wgemm ${wg.info.version}: build ${wg.info.build}, ${wg.info.threads} thread`);
  const text = readText();
  const [training, heldBack] = [encode(text.training), encode(text.heldBack)];
  console.log(
    `the prose of this repository: ${count(training.length)} characters to learn from, ` +
      `${count(heldBack.length)} held back`,
  );
  const model = load ? loadModel(load) : train(training);
  if (save) {
    const bytes = toBytes(model);
    writeFileSync(save, bytes);
    console.log(`saved: float32, ${count(bytes.length)} bytes in ${save}`);
  }
  compare(model, heldBack);
} finally {
  wg.dispose(); // frees all tensors and weights too
}

function loadModel(file) {
  try {
    return fromBytes(readFileSync(file));
  } catch (error) {
    return end(`--load ${file}: ${error.message}`);
  }
}

function train(training) {
  const random = seededRandom(seed);
  const { sizes, steps, batch } = settings[short ? 'short' : 'full'];
  const model = createModel(sizes, random);
  const weights = Object.values(model.weights).reduce((sum, { length }) => sum + length, 0);
  console.log(
    `a transformer: ${sizes.layers} layers, ${sizes.heads} heads of ` +
      `${sizes.size / sizes.heads}, ${count(weights)} weights`,
  );
  console.log(`learning in ${count(steps)} steps of ${batch * sizes.context} characters`);
  const progress = showProgress(steps);
  const started = performance.now();
  for (const { step, loss } of learn(wg, model, training, { steps, batch, random }))
    progress.step(step, loss);
  progress.end();
  console.log(`learned in ${((performance.now() - started) / 1000).toFixed(0)} s`);
  return model;
}

/** A bar on a terminal; in a file or a log, ten lines. */
function showProgress(steps) {
  if (!process.stdout.isTTY) {
    return {
      step(step, loss) {
        if (step % Math.ceil(steps / 10) === 0)
          console.log(`step ${String(step).padStart(5)} of ${steps}: loss ${loss.toFixed(3)}`);
      },
      end() {},
    };
  }
  const bar = new cliProgress.SingleBar(
    {
      format: '{bar} {percentage}%  loss {loss}, {eta_formatted} left',
      stream: process.stdout,
      hideCursor: true,
    },
    cliProgress.Presets.shades_classic,
  );
  bar.start(steps, 0, { loss: '-' });
  return {
    step: (_, loss) => bar.increment({ loss: loss.toFixed(3) }),
    end: () => bar.stop(),
  };
}

/** Prints what each form of the weights writes, and a table of the forms. */
function compare(model, heldBack) {
  const rows = ['float32', 'int8', '4 bits'].map((name) => {
    const decoder = createDecoder(wg, model, name);
    return { name, decoder, perplexity: perplexity(decoder, heldBack) };
  });
  const write = ({ decoder }) => {
    const written = new Uint8Array(tokens);
    const source = generate(decoder, start, { random: seededRandom(seed), temperature });
    for (let i = 0; i < tokens; ++i) written[i] = source.next().value;
    return decode(written);
  };
  for (const row of rows) console.log(`\n${row.name}:\n${wrapped(decode(start) + write(row))}`);
  const times = race(
    rows.map((row) => () => write(row)),
    9,
  );

  const line = (...cells) =>
    console.log(
      cells
        .map((cell, i) => (i === 0 ? cell.padEnd(9) : cell.padStart(19)))
        .join('')
        .trimEnd(),
    );
  console.log('\none character is one token; speed is the median of 9 runs:\n');
  line('weights', 'bytes', 'tokens per second', 'perplexity', 'against float32');
  rows.forEach(({ name, decoder, perplexity }, i) =>
    line(
      name,
      count(decoder.byteLength),
      count(Math.round((start.length + tokens) / times[i].median)),
      perplexity.toFixed(3),
      i === 0 ? '' : `${percent(perplexity / rows[0].perplexity)}`,
    ),
  );
  for (const { name, perplexity } of rows) {
    if (!(perplexity < 1.05 * rows[0].perplexity && perplexity < alphabet.length))
      throw new Error(`${name}: a perplexity of ${perplexity} is too high`);
  }
}

function percent(ratio) {
  const change = 100 * (ratio - 1);
  return `${change < 0 ? '' : '+'}${change.toFixed(2)}%`;
}

/** Lines of at most 80 characters. */
function wrapped(text) {
  return text.replace(/(?=.{81})(.{1,80}) /g, '$1\n');
}

function readOptions(options) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    return end(error.message);
  }
}

function end(sentence) {
  console.error(`${sentence}\n${usage}`);
  process.exit(1);
}
