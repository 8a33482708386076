// Text to embedding, by a model as transformers.js takes it. The tokenizer makes tokens of the
// text, the model makes a vector per token, and pooling makes one vector. Runs in pages, too.
import { loadModel, readOnnx } from 'wgemm/onnx';

/** By the name of an input of the model: what the tokenizer returns for it. */
const partOf = {
  input_ids: 'ids',
  attention_mask: 'attention_mask',
  token_type_ids: 'token_type_ids',
};
/** Outputs that exporters write: a vector per text, which needs no pooling, or per token. */
const perText = ['sentence_embedding'];
const perToken = ['last_hidden_state', 'token_embeddings'];
const poolings = ['mean', 'cls'];

/**
 * Loads a model.
 *
 * @param bytes of the .onnx file
 * @param options `wg` is an instance that was created with `models: true`. `tokenizer` is a
 *   Tokenizer of `@huggingface/tokenizers`. `pooling` is 'mean', the mean of the vectors of all
 *   tokens, or 'cls', the vector of the first token. Default: the vector per text that the model
 *   computes, or 'mean' if it computes none. `limit` is the greatest number of tokens per text
 * @returns the embedder. The caller must dispose of it, before `wg`
 */
export async function createEmbedder(bytes, { wg, tokenizer, pooling, limit = Infinity }) {
  if (pooling !== undefined && !poolings.includes(pooling))
    throw new Error(`pooling is ${pooling}; expected ${poolings.join(' or ')}`);
  const source = await readOnnx(bytes);
  const output = chooseOutput(source.graph, pooling);
  const model = await loadModel(source, { wg, outputs: [output] });
  try {
    checkInputs(model.inputs);
  } catch (error) {
    model.dispose();
    throw error;
  }

  function encode(text) {
    const tokens = tokenizer.encode(text, { return_token_type_ids: true });
    const { length } = tokens.ids;
    if (length > limit) {
      const start = text.length > 40 ? `${text.slice(0, 40)}...` : text;
      throw new Error(
        `text has ${length} tokens; at most ${limit} are allowed: split it. It is "${start}"`,
      );
    }
    return tokens;
  }

  async function embedTokens(tokens) {
    const feeds = {};
    for (const { name } of model.inputs) {
      const data = BigInt64Array.from(tokens[partOf[name]], BigInt);
      feeds[name] = { data, shape: [1, data.length] };
    }
    const { [output]: result } = await model.run(feeds);
    return normalized(perText.includes(output) ? result.data : pool(result, tokens, pooling));
  }

  return {
    /** How the vectors of tokens become one: 'mean', 'cls', or 'model' if the model does it. */
    pooling: perText.includes(output) ? 'model' : (pooling ?? 'mean'),

    /** The embedding of a text: a Float32Array of length 1. */
    embed: async (text) => await embedTokens(encode(text)),

    /**
     * The embeddings of texts, in their order. The model computes one text at a time, since a batch
     * is not faster, and an int8 model rounds a text by the others of its batch. Texts of the same
     * length follow each other: the model plans a run once per length, and keeps a few plans.
     */
    async embedAll(texts) {
      const encoded = texts.map(encode);
      const order = [...texts.keys()].sort((a, b) => encoded[a].ids.length - encoded[b].ids.length);
      const embeddings = [];
      for (const i of order) embeddings[i] = await embedTokens(encoded[i]);
      return embeddings;
    },

    dispose: () => model.dispose(),
  };
}

function chooseOutput({ outputs }, pooling) {
  const usable = pooling === undefined ? [...perText, ...perToken] : perToken;
  const names = outputs.map(({ name }) => name);
  const output = usable.find((name) => names.includes(name));
  if (output === undefined)
    throw new Error(`model has the outputs ${names.join(', ')}; expected ${usable.join(' or ')}`);
  const { dtype } = outputs.find(({ name }) => name === output);
  if (dtype !== 'float32') throw new Error(`model: ${output} is ${dtype}; expected float32`);
  return output;
}

function checkInputs(inputs) {
  const names = inputs.map(({ name }) => name);
  const known = Object.keys(partOf);
  if (names.includes('input_ids') && names.every((name) => known.includes(name))) return;
  throw new Error(
    `model has the inputs ${names.join(', ')}; expected input_ids, and no others than ` +
      known.slice(1).join(' and '),
  );
}

/** Makes one vector of the vectors of the tokens. `shape` is [1, tokens, size]. */
function pool({ data, shape }, { attention_mask: mask }, pooling = 'mean') {
  const size = shape.at(-1);
  if (pooling === 'cls') return data.subarray(0, size);
  const sums = new Float64Array(size);
  mask.forEach((isToken, i) => {
    if (!isToken) return;
    for (let j = 0; j < size; ++j) sums[j] += data[i * size + j];
  });
  return sums; // normalization also divides them by their number
}

function normalized(vector) {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return Float32Array.from(vector, (value) => value / length);
}
