// Reads a folder with a decoder and its tokenizer, in the layouts of transformers.js and of ONNX
// Runtime GenAI.
import { open, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';

/** Where the model may be. The first file that exists is taken. */
export const modelFiles = ['onnx/model_q4.onnx', 'model_q4.onnx', 'model.onnx', 'onnx/model.onnx'];

/**
 * Reads what a generator needs.
 *
 * @param file the path of the model in the folder. Default: the first one of `modelFiles`
 * @returns `file`; its `bytes`; `externalData`, which reads other files next to it; the
 *   `tokenizer`; the `limit` of tokens; and `ends`, the tokens that end a text
 */
export async function readFolder(folder, file) {
  const json = async (name) => parse(join(folder, name), await readIfThere(join(folder, name)));
  const tokenizer = await json('tokenizer.json');
  if (!tokenizer) throw new Error(`folder ${folder} has no tokenizer.json, which is required`);
  const config = (await json('config.json')) ?? {};
  const generation = (await json('generation_config.json')) ?? {};
  const genai = (await json('genai_config.json'))?.model ?? {}; // of ONNX Runtime GenAI
  const model = await readModel(folder, file ? [file] : modelFiles);
  return {
    ...model,
    externalData: readerOf(dirname(join(folder, model.file))),
    tokenizer: new Tokenizer(tokenizer, (await json('tokenizer_config.json')) ?? {}),
    limit: genai.context_length ?? config.max_position_embeddings ?? Infinity,
    ends: [genai.eos_token_id ?? generation.eos_token_id ?? config.eos_token_id ?? []].flat(),
  };
}

async function readModel(folder, files) {
  for (const file of files) {
    const bytes = await readIfThere(join(folder, file));
    if (bytes) return { file, bytes };
  }
  throw new Error(`folder ${folder} has no model; expected ${files.join(', or ')}`);
}

/** Reads a part of a file next to the model. The model is text of others, so it names no path. */
const readerOf =
  (folder) =>
  async ({ location, offset, length }) => {
    if (location !== basename(location))
      throw new Error(`model keeps weights in ${location}; expected a file in its own folder`);
    const path = join(folder, location);
    const handle = await open(path).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
      throw new Error(`model keeps weights in ${path}, which is missing`, { cause: error });
    });
    try {
      const bytes = new Uint8Array(length);
      const { bytesRead } = await handle.read(bytes, 0, length, offset);
      if (bytesRead < length) throw new Error(`${path} ends before ${offset + length} bytes`);
      return bytes;
    } finally {
      await handle.close();
    }
  };

function parse(path, bytes) {
  if (!bytes) return undefined;
  try {
    return JSON.parse(bytes);
  } catch (error) {
    throw new Error(`${path} is not JSON: ${error.message}`, { cause: error });
  }
}

async function readIfThere(path) {
  try {
    return await readFile(path);
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  }
}
