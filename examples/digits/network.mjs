// A network of fully connected layers. Every product of matrices is one call of wg.gemm on tensors
// in its memory, which copies nothing.

/** Layers of random weights: `sizes` are the numbers of neurons, from the input to the output. */
export function createLayers(wg, sizes, random) {
  return sizes.slice(1).map((outputs, i) => {
    const inputs = sizes[i];
    const layer = {
      weights: wg.alloc('float32', [inputs, outputs]),
      bias: wg.alloc('float32', [1, outputs]),
    };
    // He et al., 2015: with this spread the signal neither fades nor grows from one ReLU to the
    // next.
    const spread = Math.sqrt(2 / inputs);
    const { data } = layer.weights;
    for (let j = 0; j < data.length; ++j) data[j] = spread * normal(random);
    return layer;
  });
}

/** Tensors for the outputs of each layer for `rows` images. */
export function allocOutputs(wg, layers, rows) {
  return layers.map(({ bias }) => wg.alloc('float32', [rows, bias.shape[1]]));
}

/**
 * The forward pass: fills `outputs`, one tensor per layer, and returns the last one: a score for
 * each class. `multiply(x, layer, y, activation)` computes y = activation(x * weights + bias).
 */
export function forward(layers, input, outputs, multiply) {
  let x = input;
  layers.forEach((layer, i) => {
    const y = outputs[i];
    multiply(x, layer, y, i < layers.length - 1 ? 'relu' : undefined);
    x = y;
  });
  return x;
}

/** y = activation(x * weights + bias): the bias, a single row, is broadcast to every row of y. */
export function multiplyBy(wg) {
  return (x, { weights, bias }, y, activation) => wg.gemm(x, weights, bias, { activation, out: y });
}

/** Gradient descent with momentum, on `batch` images at a time. */
export function createTrainer(wg, layers, { batch, momentum }) {
  const multiply = multiplyBy(wg);
  const input = wg.alloc('float32', [batch, layers[0].weights.shape[0]]);
  const outputs = allocOutputs(wg, layers, batch);
  // The derivative of the loss by each output, and the running sum of gradients (the velocity) of
  // each weight and bias.
  const deltas = allocOutputs(wg, layers, batch);
  const velocities = layers.map(({ weights, bias }) => ({
    weights: wg.alloc('float32', weights.shape),
    bias: wg.alloc('float32', bias.shape),
  }));
  const ones = wg.alloc('float32', [1, batch]);
  ones.data.fill(1);

  // velocity = momentum * velocity + gradient / batch: C of the product is its own output.
  const addGradient = (a, b, velocity, transA) => {
    wg.gemm(a, b, velocity, { transA, alpha: 1 / batch, beta: momentum, out: velocity });
  };

  return {
    /** The input: fill its data with `batch` images, then call step(). */
    input,

    /** Learns from these images. Returns their mean loss before this step. */
    step(labels, rate) {
      const scores = forward(layers, input, outputs, multiply);
      const loss = crossEntropy(scores.data, labels, deltas.at(-1).data);
      for (let i = layers.length - 1; i >= 0; --i) {
        const x = i === 0 ? input : outputs[i - 1];
        addGradient(x, deltas[i], velocities[i].weights, true);
        addGradient(ones, deltas[i], velocities[i].bias, false); // the sum over the batch
        if (i > 0) {
          wg.gemm(deltas[i], layers[i].weights, null, { transB: true, out: deltas[i - 1] });
          reluBackward(outputs[i - 1].data, deltas[i - 1].data);
        }
      }
      layers.forEach(({ weights, bias }, i) => {
        descend(weights.data, velocities[i].weights.data, rate);
        descend(bias.data, velocities[i].bias.data, rate);
      });
      return loss / batch;
    },

    /** Frees everything except the layers. */
    dispose() {
      const running = velocities.flatMap(({ weights, bias }) => [weights, bias]);
      for (const tensor of [input, ones, ...outputs, ...deltas, ...running]) tensor.dispose();
    },
  };
}

/** The class with the highest score, for each row. */
export function classify({ data, shape: [rows, classes] }) {
  return Uint8Array.from({ length: rows }, (_, row) => {
    let best = 0;
    for (let i = 1; i < classes; ++i)
      if (data[row * classes + i] > data[row * classes + best]) best = i;
    return best;
  });
}

/** If ReLU returned 0, nothing before it matters to the loss. */
function reluBackward(output, delta) {
  for (let i = 0; i < delta.length; ++i) if (output[i] === 0) delta[i] = 0;
}

/**
 * Softmax cross entropy: returns the sum of losses, and fills `delta` with its derivative by each
 * score.
 */
function crossEntropy(scores, labels, delta) {
  const classes = scores.length / labels.length;
  let loss = 0;
  labels.forEach((label, row) => {
    const start = row * classes;
    let highest = -Infinity;
    for (let i = 0; i < classes; ++i) highest = Math.max(highest, scores[start + i]);
    let sum = 0;
    // Each is at most 1, so that nothing overflows.
    for (let i = 0; i < classes; ++i) sum += Math.exp(scores[start + i] - highest);
    for (let i = 0; i < classes; ++i)
      delta[start + i] = Math.exp(scores[start + i] - highest) / sum;
    delta[start + label] -= 1;
    loss += Math.log(sum) - (scores[start + label] - highest);
  });
  return loss;
}

function descend(weights, velocity, rate) {
  for (let i = 0; i < weights.length; ++i) weights[i] -= rate * velocity[i];
}

/** Normally distributed, by Box and Muller. */
function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
