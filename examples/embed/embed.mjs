// Finds the texts that are nearest to a text, by model.onnx and tokenizer.json of a folder.
// Run it with `npm run embed -- FOLDER "text"`, which builds wgemm first.
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { parseArgs } from 'node:util';

const ownTexts = new URL('texts.txt', import.meta.url);

const usage = `Usage: npm run embed -- FOLDER "text" [options]
FOLDER has a model and its tokenizer, as transformers.js takes them: docs/guide/embeddings.md.
Options:
  --texts file           the texts to search, one per line; - is standard input
                         Default: examples/embed/texts.txt
  --top 5                how many texts to print
  --model file           the model in FOLDER, such as onnx/model_quantized.onnx
  --pooling mean         mean or cls. Default: as FOLDER says, or mean
  --query-prefix text    goes before the text: e5 needs "query: "
  --passage-prefix text  goes before each text to search: e5 needs "passage: "`;

const string = (value) => ({ type: 'string', ...(value !== undefined && { default: value }) });
const { positionals, values: options } = readOptions({
  help: { type: 'boolean' },
  texts: string(),
  top: string('5'),
  model: string(),
  pooling: string(),
  'query-prefix': string(''),
  'passage-prefix': string(''),
});
if (options.help) {
  console.log(usage);
  process.exit();
}
if (positionals.length !== 2)
  end(`Expected 2 arguments, FOLDER and "text"; found ${positionals.length}.`);
const [folder, query] = positionals;
const top = Number(options.top);
if (!(Number.isSafeInteger(top) && top > 0))
  end(`--top is ${options.top}; it must be a whole number above 0.`);

const [{ createGemm }, { createEmbedder }, { readFolder }, { createIndex }] = await Promise.all([
  import('wgemm'),
  import('./embedder.mjs'), // which imports wgemm/onnx
  import('./folder.mjs'),
  import('wgemm/search'),
]).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  return end('wgemm is not built here: run `npm run embed`, which builds it first.');
});

let wg;
let embedder;
try {
  const texts = await readTexts(options.texts);
  const { file, bytes, tokenizer, limit, pooling } = await readFolder(folder, options.model);
  wg = await createGemm({ models: true });
  console.log(`wgemm ${wg.info.version}: build ${wg.info.build}, ${wg.info.threads} thread`);
  embedder = await createEmbedder(bytes, {
    wg,
    tokenizer,
    limit,
    pooling: options.pooling ?? pooling,
  });
  const most = Number.isFinite(limit) ? `, at most ${limit} tokens` : '';
  console.log(`${file}: pooling ${embedder.pooling}${most}`);

  const start = performance.now();
  const embeddings = await embedder.embedAll(texts.map((each) => options['passage-prefix'] + each));
  const seconds = (performance.now() - start) / 1000;
  console.log(`embedded ${texts.length} texts in ${seconds.toFixed(2)} s\n`);

  const index = createIndex(wg, { dimensions: embeddings[0].length });
  for (const embedding of embeddings) index.add(embedding);
  const wanted = await embedder.embed(options['query-prefix'] + query);
  for (const { id, score } of index.search(wanted, top))
    console.log(`${score.toFixed(3)}  ${texts[id]}`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  embedder?.dispose();
  wg?.dispose(); // frees the index, too
}

/** The lines that are not empty. */
async function readTexts(file = ownTexts) {
  const read = file === '-' ? readAll(process.stdin) : readFile(file, 'utf8');
  const all = await read.catch((error) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(`--texts ${file}: there is no such file`, { cause: error });
  });
  const lines = all.split('\n').map((line) => line.trim());
  const texts = lines.filter((line) => line !== '');
  if (texts.length === 0) throw new Error(`--texts ${file} has no text; expected one per line`);
  return texts;
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
