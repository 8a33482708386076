// A model and its tokenizer, in the layout of transformers.js, from a folder or from files that a
// page was given.
import { Tokenizer } from '@huggingface/tokenizers';

/** Where the model may be. The first file that exists is taken. */
export const modelFiles = [
  'model.onnx',
  'onnx/model.onnx',
  'model_quantized.onnx',
  'onnx/model_quantized.onnx',
];

/**
 * Reads what an embedder needs.
 *
 * @param folder its name, for errors
 * @param read returns a promise of the bytes of a file by its path in the folder; or of undefined
 *   if there is no such file
 * @param file the path of the model in the folder. Default: the first one of `modelFiles`
 * @returns `file`; its `bytes`; the `tokenizer`; the `limit` of tokens per text; and `pooling`,
 *   which is undefined if the folder does not say it
 */
export async function readFiles(folder, read, file) {
  const json = async (name) => parse(`${folder}/${name}`, await read(name));
  const tokenizer = await json('tokenizer.json');
  if (!tokenizer) throw new Error(`folder ${folder} has no tokenizer.json, which is required`);
  const tokenizerConfig = (await json('tokenizer_config.json')) ?? {};
  return {
    ...(await readModel(folder, read, file ? [file] : modelFiles)),
    tokenizer: new Tokenizer(tokenizer, tokenizerConfig),
    limit: limitOf((await json('config.json')) ?? {}, tokenizerConfig),
    pooling: poolingOf(await json('1_Pooling/config.json')),
  };
}

async function readModel(folder, read, files) {
  for (const file of files) {
    const bytes = await read(file);
    if (bytes) return { file, bytes };
  }
  throw new Error(`folder ${folder} has no model; expected ${files.join(', or ')}`);
}

/** The number of rows of the position table, or less if the tokenizer says so. */
function limitOf(
  { max_position_embeddings: rows = Infinity },
  { model_max_length: tokens = rows },
) {
  return Math.min(rows, tokens);
}

/** sentence-transformers writes this file. Repositories made for transformers.js may lack it. */
function poolingOf(config) {
  if (!config) return undefined;
  if (config.pooling_mode_cls_token) return 'cls';
  if (config.pooling_mode_mean_tokens) return 'mean';
  const found = Object.keys(config).filter((name) => config[name] === true && /^pool/.test(name));
  throw new Error(
    `1_Pooling/config.json says ${found.join(', ') || 'no pooling'}; ` +
      'expected pooling_mode_cls_token or pooling_mode_mean_tokens',
  );
}

function parse(path, bytes) {
  if (!bytes) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new Error(`${path} is not JSON: ${error.message}`, { cause: error });
  }
}
