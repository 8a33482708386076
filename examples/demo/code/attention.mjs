import { createGemm } from 'wgemm';

const wg = await createGemm();
const [heads, tokens, width] = [6, 12, 32];
const random = (...shape) => ({
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => Math.random() - 0.5),
  shape,
});
const [q, k, v] = ['q', 'k', 'v'].map(() => random(heads, tokens, width));

// A batch of six products per call: one per head.
const scores = wg.matmul(q, k, null, { transposeB: true, alpha: 1 / Math.sqrt(width) });
for (let i = 0; i < heads * tokens; ++i)
  softmax(scores.data.subarray(i * tokens, (i + 1) * tokens));
console.log(wg.matmul(scores, v).shape); // [6, 12, 32]
wg.dispose();

function softmax(row) {
  const most = Math.max(...row);
  const sum = row.reduce((before, value) => before + Math.exp(value - most), 0);
  row.forEach((value, i) => (row[i] = Math.exp(value - most) / sum));
}
