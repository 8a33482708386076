// The trained model, token by token, for Node and for browsers. It keeps the keys and values of the
// tokens before: the KV cache.
import { alphabet } from './alphabet.mjs';
import { bytesOf, forms } from './linear.mjs';
import { matricesOf, recent, slopesOf, visitRecent } from './model.mjs';
import { norm, softmax } from './rows.mjs';

/**
 * A decoder with its own copy of the weights.
 *
 * @param wg the instance of wgemm
 * @param model what createModel() or fromBytes() returned
 * @param form of the weights: 'float32', 'int8' or '4 bits'
 * @returns the decoder. The caller must dispose of it
 */
export function createDecoder(wg, { sizes, weights }, form) {
  const { size, layers, heads, context } = sizes;
  const width = size / heads;
  const owned = [];
  const alloc = (...shape) => {
    const tensor = wg.alloc('float32', shape);
    owned.push(tensor);
    return tensor;
  };

  // The embedding stays float32 in each form, since no product takes it.
  const embedding = weights.embedding.slice();
  let { byteLength } = embedding;
  const run = {};
  for (const { name, shape } of matricesOf(sizes)) {
    if (name === 'embedding') continue;
    const product = forms[form](wg, { data: weights[name], shape });
    owned.push(...product.parts);
    byteLength += bytesOf(product);
    run[name] = product.run;
  }

  // A cache has room for twice the context, so the tokens of a context are contiguous in it. When
  // it is full, the newest move to its front.
  const capacity = 2 * context;
  const caches = Array.from({ length: layers }, () => ({
    keys: alloc(capacity, size),
    values: alloc(capacity, size),
  }));
  let used = 0;
  let last = []; // the last tokens, the newest at the end

  const [x, y, input, mixed] = Array.from({ length: 4 }, () => alloc(size));
  const [qkv, hidden, scores] = [3 * size, 4 * size, alphabet.length].map((length) =>
    alloc(length),
  );
  const shares = alloc(heads, context);
  const factors = new Float64Array(1);

  const alpha = 1 / Math.sqrt(width);
  const bias = alloc(heads, context); // the last column is for the newest token
  slopesOf(sizes).forEach((slope, head) => {
    for (let i = 0; i < context; ++i) bias.data[head * context + i] = slope * (context - 1 - i);
  });

  // All heads as a batch: views, which copy nothing.
  const headsOf = (tensor, rows, offset) => ({
    data: tensor,
    offset,
    shape: [heads, rows, width],
    strides: [width, size, 1],
  });
  const columnsOf = (tensor, count, offset) => ({
    data: tensor,
    offset,
    shape: [heads, 1, count],
    strides: [context, context, 1],
  });
  const query = headsOf(qkv, 1, 0);
  const mixedHeads = headsOf(mixed, 1, 0);

  // #region attention
  const attend = ({ keys, values }) => {
    const rows = qkv.data;
    keys.data.set(rows.subarray(size, 2 * size), used * size);
    values.data.set(rows.subarray(2 * size), used * size);
    const count = Math.min(used + 1, context);
    const first = (used + 1 - count) * size;
    const out = columnsOf(shares, count, 0);
    wg.matmul(query, headsOf(keys, count, first), columnsOf(bias, count, context - count), {
      ...{ alpha, transposeB: true, out },
    });
    for (let head = 0; head < heads; ++head) softmax(shares.data, head * context, count);
    wg.matmul(out, headsOf(values, count, first), null, { out: mixedHeads });
  };
  // #endregion

  return {
    /** Of all weights. */
    byteLength,

    /** Takes the next token. Returns the scores of the one after it: a view until the next call. */
    step(token) {
      if (used === capacity) {
        used = context - 1;
        for (const { data } of caches.flatMap(({ keys, values }) => [keys, values]))
          data.copyWithin(0, (capacity - used) * size);
      }
      last = [...last.slice(1 - recent), token];
      const sums = x.data.fill(0);
      visitRecent(last, last.length - 1, 0, size, (start) => {
        for (let j = 0; j < size; ++j) sums[j] += embedding[start + j];
      });
      // #region step
      caches.forEach((cache, i) => {
        norm(x.data, input.data, factors, size);
        run[`${i}.qkv`](input, { out: qkv });
        attend(cache);
        run[`${i}.out`](mixed, { bias: x, out: y });
        norm(y.data, input.data, factors, size);
        run[`${i}.up`](input, { activation: 'relu', out: hidden });
        run[`${i}.down`](hidden, { bias: y, out: x });
      });
      norm(x.data, input.data, factors, size);
      run.head(input, { out: scores });
      // #endregion
      ++used;
      return scores.data;
    },

    /** Forgets all tokens. */
    reset() {
      used = 0;
      last = [];
    },

    /** Frees its tensors and weights. */
    dispose() {
      for (const object of owned) object.dispose();
    },
  };
}

/**
 * Yields tokens without end, which continue `prompt`. It must have a token. A temperature below 1
 * prefers what is likely.
 */
export function* generate(decoder, prompt, { random, temperature }) {
  decoder.reset();
  let scores;
  for (const token of prompt) scores = decoder.step(token);
  const shares = new Float64Array(scores.length);
  for (;;) {
    for (let i = 0; i < shares.length; ++i) shares[i] = scores[i] / temperature;
    softmax(shares, 0, shares.length);
    let rest = random();
    let token = 0;
    while (token < shares.length - 1 && rest >= shares[token]) rest -= shares[token++];
    yield token;
    scores = decoder.step(token);
  }
}

/** The perplexity for tokens: exp of the mean loss of each, after those before it. */
export function perplexity(decoder, tokens) {
  decoder.reset();
  let loss = 0;
  for (let i = 1; i < tokens.length; ++i) {
    const shares = decoder.step(tokens[i - 1]);
    softmax(shares, 0, shares.length);
    loss -= Math.log(shares[tokens[i]]);
  }
  return Math.exp(loss / (tokens.length - 1));
}
