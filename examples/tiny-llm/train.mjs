// The gradients of the model, and steps of its training. Every product of matrices is one call of
// wg.matmul on tensors in its memory, which copies nothing.
import { matricesOf, slopesOf, visitRecent } from './model.mjs';
import { causalSoftmax, causalSoftmaxBackward, crossEntropy, norm, normBackward } from './rows.mjs';

/**
 * The training of a model on `batch` texts of `context` tokens at a time.
 *
 * @param wg the instance of wgemm
 * @param model what createModel() or fromBytes() returned
 * @param options `batch`, and `dtype`: float32, or float64 to check the gradients
 * @returns the trainer. The caller must call its finish()
 */
export function createTrainer(wg, { sizes, weights }, { batch, dtype = 'float32' }) {
  const { size, layers, heads, context } = sizes;
  const width = size / heads;
  const rows = batch * context;
  const owned = [];
  const alloc = (...shape) => {
    const tensor = wg.alloc(dtype, shape);
    owned.push(tensor);
    return tensor;
  };

  const [matrices, gradients] = [{}, {}];
  for (const { name, shape } of matricesOf(sizes)) {
    matrices[name] = alloc(...shape);
    matrices[name].data.set(weights[name]);
    gradients[name] = alloc(...shape);
  }

  // All heads of all texts, as a batch: a view, which copies nothing.
  const headsOf = (tensor, offset = 0) => ({
    data: tensor,
    offset,
    shape: [batch, heads, context, width],
    strides: [context * tensor.shape[1], width, tensor.shape[1], 1],
  });
  const allocHeads = () => {
    const qkv = alloc(rows, 3 * size);
    const [q, k, v] = [0, size, 2 * size].map((offset) => headsOf(qkv, offset));
    return { qkv, q, k, v };
  };
  const allocMixed = () => {
    const mixed = alloc(rows, size);
    return { mixed, mixedHeads: headsOf(mixed) };
  };

  // The results of the forward pass that the backward pass reads.
  const kept = Array.from({ length: layers }, () => ({
    input: alloc(rows, size), // norm(x)
    inputFactors: new Float64Array(rows),
    ...allocHeads(),
    shares: alloc(batch, heads, context, context), // the results of softmax
    ...allocMixed(),
    middle: alloc(rows, size), // the second norm(x)
    middleFactors: new Float64Array(rows),
    hidden: alloc(rows, 4 * size),
  }));
  const x = alloc(rows, size);
  const output = alloc(rows, size);
  const outputFactors = new Float64Array(rows);
  const scores = alloc(rows, matrices.head.shape[1]);

  // The derivatives of the loss by them. `branch` is that by an input of a product.
  const delta = {
    ...{ x: alloc(rows, size), branch: alloc(rows, size), hidden: alloc(rows, 4 * size) },
    ...{ ...allocHeads(), ...allocMixed(), shares: alloc(batch, heads, context, context) },
  };

  const alpha = 1 / Math.sqrt(width);
  const bias = alloc(heads, context, context);
  slopesOf(sizes).forEach((slope, head) => {
    for (let i = 0; i < context; ++i)
      for (let j = 0; j < context; ++j)
        bias.data[(head * context + i) * context + j] = slope * (i - j);
  });

  /** Calls visit(start of a row of x, start of a row of the embedding). */
  const visitEmbedding = (tokens, visit) => {
    for (let row = 0; row < rows; ++row) {
      const first = row - (row % context);
      visitRecent(tokens, row, first, size, (start) => visit(row * size, start));
    }
  };

  const forward = (tokens) => {
    const [sums, embedding] = [x.data.fill(0), matrices.embedding.data];
    visitEmbedding(tokens, (to, from) => {
      for (let j = 0; j < size; ++j) sums[to + j] += embedding[from + j];
    });
    // #region forward
    kept.forEach((layer, i) => {
      const { input, qkv, q, k, v, shares, mixed, mixedHeads, middle, hidden } = layer;
      norm(x.data, input.data, layer.inputFactors, size);
      wg.matmul(input, matrices[`${i}.qkv`], null, { out: qkv });
      wg.matmul(q, k, bias, { alpha, transposeB: true, out: shares });
      causalSoftmax(shares.data, context);
      wg.matmul(shares, v, null, { out: mixedHeads });
      wg.matmul(mixed, matrices[`${i}.out`], x, { out: x }); // adds to x
      norm(x.data, middle.data, layer.middleFactors, size);
      wg.matmul(middle, matrices[`${i}.up`], null, { activation: 'relu', out: hidden });
      wg.matmul(hidden, matrices[`${i}.down`], x, { out: x });
    });
    norm(x.data, output.data, outputFactors, size);
    wg.matmul(output, matrices.head, null, { out: scores });
    // #endregion
  };

  /** For y = a * matrix: the gradient of the matrix, and the derivative by a. */
  const productBackward = (name, a, yDelta, aDelta) => {
    wg.matmul(a, yDelta, null, { transposeA: true, out: gradients[name] });
    wg.matmul(yDelta, matrices[name], null, { transposeB: true, out: aDelta });
  };

  /** Fills the gradients. `scores` must hold the derivative by the scores. */
  const backward = (tokens) => {
    const { branch } = delta;
    const addNormBackward = ({ data }, factors) =>
      normBackward(data, factors, branch.data, delta.x.data, size);
    delta.x.data.fill(0);
    productBackward('head', output, scores, branch);
    addNormBackward(output, outputFactors);
    // #region backward
    for (let i = layers - 1; i >= 0; --i) {
      const { input, q, k, v, shares, mixed, middle, hidden, ...layer } = kept[i];
      productBackward(`${i}.down`, hidden, delta.x, delta.hidden);
      reluBackward(hidden.data, delta.hidden.data);
      productBackward(`${i}.up`, middle, delta.hidden, branch);
      addNormBackward(middle, layer.middleFactors);

      productBackward(`${i}.out`, mixed, delta.x, delta.mixed);
      wg.matmul(shares, delta.mixedHeads, null, { transposeA: true, out: delta.v });
      wg.matmul(delta.mixedHeads, v, null, { transposeB: true, out: delta.shares });
      causalSoftmaxBackward(shares.data, delta.shares.data, context);
      wg.matmul(delta.shares, k, null, { alpha, out: delta.q });
      wg.matmul(delta.shares, q, null, { alpha, transposeA: true, out: delta.k });
      productBackward(`${i}.qkv`, input, delta.qkv, branch);
      addNormBackward(input, layer.inputFactors);
    }
    // #endregion
    const [sums, deltas] = [gradients.embedding.data.fill(0), delta.x.data];
    visitEmbedding(tokens, (from, to) => {
      for (let j = 0; j < size; ++j) sums[to + j] += deltas[from + j];
    });
  };

  /** Fills the gradients of the mean loss, and returns it. */
  const differentiate = (tokens, targets) => {
    forward(tokens);
    const loss = crossEntropy(scores.data, targets);
    backward(tokens);
    return loss;
  };

  const moments = Object.entries(matrices).map(([name, { size: length }]) => ({
    weights: matrices[name],
    gradient: gradients[name],
    first: new Float32Array(length),
    second: new Float32Array(length),
  }));
  let steps = 0;

  return {
    /** Heap tensors by the names of the matrices. */
    matrices,
    gradients,

    differentiate,

    /**
     * Learns from `batch` texts, one after the other. `targets` holds the token after each of
     * `tokens`. Returns the mean loss before this step.
     */
    step(tokens, targets, rate) {
      const loss = differentiate(tokens, targets);
      ++steps;
      for (const { weights, gradient, first, second } of moments)
        adamW(weights.data, gradient.data, { first, second, rate, steps });
      return loss;
    },

    /** Copies what was learned to the model, and frees everything. */
    finish() {
      for (const [name, { data }] of Object.entries(matrices)) weights[name].set(data);
      for (const tensor of owned) tensor.dispose();
    },
  };
}

/** Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019). */
function adamW(weights, gradient, { first, second, rate, steps }) {
  const [beta1, beta2, decay, least] = [0.9, 0.98, 0.1, 1e-8];
  const firstRate = rate / (1 - beta1 ** steps);
  const secondFactor = 1 / (1 - beta2 ** steps);
  const keep = 1 - rate * decay;
  for (let i = 0; i < weights.length; ++i) {
    const g = gradient[i];
    const mean = (first[i] = beta1 * first[i] + (1 - beta1) * g);
    const square = (second[i] = beta2 * second[i] + (1 - beta2) * g * g);
    weights[i] =
      weights[i] * keep - (firstRate * mean) / (Math.sqrt(square * secondFactor) + least);
  }
}

/** If ReLU returned 0, nothing before it matters to the loss. */
function reluBackward(output, delta) {
  for (let i = 0; i < delta.length; ++i) if (output[i] === 0) delta[i] = 0;
}
