// Goes on with a text, token by token, by model.onnx and tokenizer.json of a folder.
// Run it with `npm run generate -- FOLDER "text"`, which builds wgemm first.
import { parseArgs } from 'node:util';

const usage = `Usage: npm run generate -- FOLDER "text" [options]
FOLDER has a decoder and its tokenizer, as transformers.js or ONNX Runtime GenAI take them:
docs/guide/text-generation.md.
Options:
  --tokens 100      the most tokens to print
  --chat            asks a model that was trained for chats: SmolLM2-Instruct, Qwen
  --temperature 0   0 takes the likeliest token; 1 draws by the probabilities
  --top-k 40        how many of the likeliest tokens to draw from
  --seed 1          of the draws
  --model file      the model in FOLDER, such as onnx/model_q4.onnx`;

const string = (value) => ({ type: 'string', ...(value !== undefined && { default: value }) });
const { positionals, values: options } = readOptions({
  help: { type: 'boolean' },
  tokens: string('100'),
  chat: { type: 'boolean' },
  temperature: string('0'),
  'top-k': string('40'),
  seed: string('1'),
  model: string(),
});
if (options.help) {
  console.log(usage);
  process.exit();
}
if (positionals.length !== 2)
  end(`Expected 2 arguments, FOLDER and "text"; found ${positionals.length}.`);
const [folder, text] = positionals;
const [most, topK, seed] = ['tokens', 'top-k', 'seed'].map((name) => {
  const value = Number(options[name]);
  if (Number.isSafeInteger(value) && value > 0) return value;
  return end(`--${name} is ${options[name]}; it must be a whole number above 0.`);
});
const temperature = Number(options.temperature);
if (!(temperature >= 0 && temperature < Infinity))
  end(`--temperature is ${options.temperature}; it must be a number from 0 on.`);

const [{ createGemm }, { createGenerator }, { readFolder }, { seededRandom }] = await Promise.all([
  import('wgemm'),
  import('./generator.mjs'), // which imports wgemm/onnx
  import('./folder.mjs'),
  import('../random.mjs'),
]).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  return end('wgemm is not built here: run `npm run generate`, which builds it first.');
});

/** The form of a chat in which SmolLM2 and Qwen were trained. */
const chat = (text) => `<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`;

let wg;
let generator;
try {
  const { file, bytes, tokenizer, ends, ...read } = await readFolder(folder, options.model);
  wg = await createGemm({ models: true });
  console.log(`wgemm ${wg.info.version}: build ${wg.info.build}, ${wg.info.threads} thread`);
  generator = await createGenerator(bytes, { wg, ...read });
  const { ids } = tokenizer.encode(options.chat ? chat(text) : text);
  console.log(`${file}: the prompt has ${ids.length} tokens\n`);

  const random = seededRandom(seed);
  const tokens = [];
  const times = [];
  let printed = '';
  let start = performance.now();
  for await (const token of generator.generate(ids, { most, ends, temperature, topK, random })) {
    times.push(performance.now() - start);
    tokens.push(token);
    const all = tokenizer.decode(tokens, { skip_special_tokens: true });
    // A character may have several tokens, and shows up with the last of them.
    if (!all.endsWith('\ufffd')) {
      process.stdout.write(all.slice(printed.length));
      printed = all;
    }
    start = performance.now();
  }
  const [first = 0, ...others] = times;
  const middle = others.sort((a, b) => a - b)[others.length >> 1];
  const rate = middle === undefined ? '' : `, then ${(1000 / middle).toFixed(0)} per second`;
  const count = `${tokens.length} token${tokens.length === 1 ? '' : 's'}`;
  console.log(`\n\n${count}: the first one after ${(first / 1000).toFixed(2)} s${rate}`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  generator?.dispose();
  wg?.dispose();
}

function readOptions(options) {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return end(error.message);
  }
}

function end(sentence) {
  console.error(`${sentence}\n${usage}`);
  process.exit(1);
}
