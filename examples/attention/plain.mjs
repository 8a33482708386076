// The same attention in plain JavaScript, as one would write it without a library.
import { softmax } from './numbers.mjs';

/** @param sizes `shares`, if given, gets the shares of all heads: [heads, tokens, tokens] */
export function attentionInJavaScript(x, weights, biases, { tokens, heads, width, shares }) {
  const size = heads * width;
  const project = (input, w, addend) => {
    const y = new Float32Array(tokens * size);
    for (let i = 0; i < tokens; ++i) {
      const row = y.subarray(i * size, (i + 1) * size);
      row.set(addend(i));
      for (let p = 0; p < size; ++p) {
        const factor = input[i * size + p];
        for (let j = 0; j < size; ++j) row[j] += factor * w[p * size + j];
      }
    }
    return y;
  };
  const [q, k, v] = ['q', 'k', 'v'].map((name) => project(x, weights[name], () => biases[name]));
  const context = new Float32Array(tokens * size);
  const scores = new Float32Array(tokens);
  for (let head = 0; head < heads; ++head) {
    for (let i = 0; i < tokens; ++i) {
      const at = i * size + head * width;
      for (let j = 0; j < tokens; ++j) {
        let sum = 0;
        for (let c = 0; c < width; ++c) sum += q[at + c] * k[j * size + head * width + c];
        scores[j] = sum / Math.sqrt(width);
      }
      softmax(scores, tokens);
      shares?.set(scores, (head * tokens + i) * tokens);
      for (let j = 0; j < tokens; ++j) {
        for (let c = 0; c < width; ++c)
          context[at + c] += scores[j] * v[j * size + head * width + c];
      }
    }
  }
  return project(context, weights.o, (i) => x.subarray(i * size, (i + 1) * size));
}
