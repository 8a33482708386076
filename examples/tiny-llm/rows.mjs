// What the model computes row by row, in plain JavaScript: norm, softmax, cross entropy.

const least = 1e-6; // keeps the norm of zeros finite

/** y = x / sqrt(mean of x * x), for each row. `factors` receives the factor of each. */
export function norm(x, y, factors, columns) {
  for (let row = 0, start = 0; start < x.length; ++row, start += columns) {
    const end = start + columns;
    let sum = 0;
    for (let i = start; i < end; ++i) sum += x[i] * x[i];
    const factor = 1 / Math.sqrt(sum / columns + least);
    for (let i = start; i < end; ++i) y[i] = x[i] * factor;
    factors[row] = factor;
  }
}

/** Adds to `xDelta` the derivative by x. `y` and `factors` are what norm() returned. */
export function normBackward(y, factors, yDelta, xDelta, columns) {
  for (let row = 0, start = 0; start < y.length; ++row, start += columns) {
    const end = start + columns;
    let sum = 0;
    for (let i = start; i < end; ++i) sum += y[i] * yDelta[i];
    const mean = sum / columns;
    const factor = factors[row];
    for (let i = start; i < end; ++i) xDelta[i] += factor * (yDelta[i] - mean * y[i]);
  }
}

/** Softmax of `count` scores from `start` on, in their array. */
export function softmax(scores, start, count) {
  const end = start + count;
  let highest = -Infinity;
  for (let i = start; i < end; ++i) if (scores[i] > highest) highest = scores[i];
  let sum = 0;
  // Each is at most 1, so that nothing overflows.
  for (let i = start; i < end; ++i) sum += scores[i] = Math.exp(scores[i] - highest);
  const factor = 1 / sum;
  for (let i = start; i < end; ++i) scores[i] *= factor;
}

/** Causal softmax of squares: row i has shares of the columns up to i, and zeros after them. */
export function causalSoftmax(scores, tokens) {
  for (let start = 0; start < scores.length; start += tokens * tokens) {
    for (let i = 0; i < tokens; ++i) {
      const row = start + i * tokens;
      softmax(scores, row, i + 1);
      scores.fill(0, row + i + 1, row + tokens);
    }
  }
}

/** Makes of `delta`, the derivative by the shares, the derivative by the scores. */
export function causalSoftmaxBackward(shares, delta, tokens) {
  for (let start = 0; start < shares.length; start += tokens * tokens) {
    for (let i = 0; i < tokens; ++i) {
      const row = start + i * tokens;
      const end = row + i + 1;
      let sum = 0;
      for (let j = row; j < end; ++j) sum += shares[j] * delta[j];
      for (let j = row; j < end; ++j) delta[j] = shares[j] * (delta[j] - sum);
      delta.fill(0, end, row + tokens);
    }
  }
}

/**
 * Softmax cross entropy: returns the mean loss, and makes of the scores the derivative of it by
 * each score.
 */
export function crossEntropy(scores, targets) {
  const rows = targets.length;
  const columns = scores.length / rows;
  let loss = 0;
  for (let row = 0; row < rows; ++row) {
    const start = row * columns;
    softmax(scores, start, columns);
    loss -= Math.log(scores[start + targets[row]]);
    scores[start + targets[row]] -= 1;
    for (let i = start; i < start + columns; ++i) scores[i] /= rows;
  }
  return loss / rows;
}
