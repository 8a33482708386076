// Token after token, by a decoder as transformers.js and ONNX Runtime GenAI have it. A state keeps
// the keys and values of the tokens before in the memory of wgemm. Runs in pages, too.
import { loadModel } from 'wgemm/onnx';

/** The inputs that may be there besides the past keys and values. */
const known = ['input_ids', 'attention_mask', 'position_ids', 'num_logits_to_keep'];

/**
 * Loads a model.
 *
 * @param bytes of the .onnx file
 * @param options `wg` is an instance that was created with `models: true`. `externalData` is as in
 *   loadModel(). `limit` is the greatest number of tokens, of the prompt and after it
 * @returns the generator. The caller must dispose of it, before `wg`
 */
export async function createGenerator(bytes, { wg, externalData, limit = Infinity }) {
  const model = await loadModel(bytes, { wg, ...(externalData && { externalData }) });
  const names = model.inputs.map(({ name }) => name);
  let state;
  try {
    state = await model.state(linksOf(model, names));
  } catch (error) {
    model.dispose();
    throw error;
  }

  const ints = (list) => ({ data: BigInt64Array.from(list, BigInt), shape: [1, list.length] });
  let count = 0; // of the tokens in the state

  /** Runs the model on new tokens. Returns the logits of the next token. */
  async function step(ids) {
    const feeds = {
      input_ids: ints(ids),
      attention_mask: ints(new Array(count + ids.length).fill(1)),
      position_ids: ints(ids.map((_, i) => count + i)),
      num_logits_to_keep: { data: BigInt64Array.of(1n), shape: [] },
    };
    const used = Object.entries(feeds).filter(([name]) => names.includes(name));
    const { logits } = await model.run(Object.fromEntries(used), { state });
    count += ids.length;
    return logits.data.subarray(-logits.shape.at(-1)); // of the last token
  }

  return {
    /**
     * Yields the tokens that follow a prompt, until one of `ends`, `most` tokens, or the limit.
     *
     * @param prompt tokens
     * @param options `temperature`: 0 takes the likeliest token. `topK`: how many of the likeliest
     *   tokens are candidates. `random` returns numbers from 0 to 1, below 1
     */
    async *generate(prompt, { most = Infinity, ends = [], ...options } = {}) {
      if (prompt.length === 0) throw new Error('the prompt has no token; expected at least one');
      if (prompt.length >= limit)
        throw new Error(
          `the prompt has ${prompt.length} tokens; the model takes ${limit - 1} and one more`,
        );
      await state.cut(0);
      count = 0;
      let next = prompt;
      for (let i = 0; i < most && count + next.length <= limit; ++i) {
        const token = choose(await step(next), options);
        if (ends.includes(token)) return;
        yield token;
        next = [token];
      }
    },

    /** The logits after tokens, which go on from the tokens before. */
    step,

    dispose: () => model.dispose(), // and its state
  };
}

/** By the name of an output that is kept: the input that it becomes. */
function linksOf({ outputs }, names) {
  const links = {};
  for (const { name } of outputs) {
    const input = name.replace(/^present(_key_values)?\./, 'past_key_values.');
    if (input !== name && names.includes(input)) links[name] = input;
  }
  const kept = Object.values(links);
  const others = names.filter((name) => !known.includes(name) && !kept.includes(name));
  const shown = (list) => (list.length > 4 ? `${list.slice(0, 4).join(', ')}...` : list.join(', '));
  if (kept.length === 0)
    throw new Error(
      `model has the inputs ${shown(names)}; expected past_key_values.0.key and others, ` +
        'which a model with a cache has',
    );
  if (others.length > 0)
    throw new Error(`model has the input ${shown(others)}; expected ${known.join(', ')}`);
  if (!names.includes('input_ids'))
    throw new Error(`model has the inputs ${shown(names)}; expected input_ids`);
  if (!outputs.some(({ name, dtype }) => name === 'logits' && dtype === 'float32'))
    throw new Error('model has no output logits of float32');
  return links;
}

/** A token by its logits. */
function choose(logits, { temperature = 0, topK = 40, random = Math.random }) {
  if (temperature === 0) {
    let best = 0;
    for (let i = 1; i < logits.length; ++i) if (logits[i] > logits[best]) best = i;
    return best;
  }
  const candidates = likeliest(logits, topK);
  const most = logits[candidates[0]];
  const weights = candidates.map((token) => Math.exp((logits[token] - most) / temperature));
  let rest = random() * weights.reduce((sum, weight) => sum + weight, 0);
  const found = weights.findIndex((weight) => (rest -= weight) < 0);
  return candidates[found === -1 ? 0 : found];
}

/** The tokens with the greatest logits, in their order. */
function likeliest(logits, count) {
  const best = [];
  for (let token = 0; token < logits.length; ++token) {
    if (best.length === count && !(logits[token] > logits[best.at(-1)])) continue;
    let at = best.length;
    while (at > 0 && logits[token] > logits[best[at - 1]]) --at;
    best.splice(at, 0, token);
    if (best.length > count) best.pop();
  }
  return best;
}
