// Attention next to its definition in float64, whose errors are far below the unit.
import { draw, numbersOf } from './data.mjs';
import { floats, ulp } from './exact.mjs';

const [heads, queries, size] = [3, 24, 64];
const eps = 2 ** -24;

/** The exact result, in float64, the largest sum of magnitudes of a score, and the largest |v|. */
function definition({ q, k, v, keys, mask, causal, softcap }) {
  const scale = 1 / Math.sqrt(size);
  const y = new Float64Array(heads * queries * size);
  let most = 0;
  for (let h = 0; h < heads; ++h) {
    for (let i = 0; i < queries; ++i) {
      const seen = causal ? keys - queries + i + 1 : keys;
      const scores = Float64Array.from({ length: seen }, (_, j) => {
        let [sum, magnitude] = [0, 0];
        for (let d = 0; d < size; ++d) {
          const term =
            scale * q.numbers[(h * queries + i) * size + d] * k.numbers[(h * keys + j) * size + d];
          sum += term;
          magnitude += Math.abs(term);
        }
        if (softcap) sum = softcap * Math.tanh(sum / softcap);
        const added = mask ? mask.numbers[i * keys + j] : 0;
        most = Math.max(most, magnitude + Math.abs(added));
        return sum + added;
      });
      const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
      const powers = scores.map((score) => Math.exp(score - largest));
      const total = powers.reduce((a, b) => a + b, 0);
      for (let d = 0; d < size; ++d) {
        let sum = 0;
        powers.forEach((power, j) => (sum += power * v.numbers[(h * keys + j) * size + d]));
        y[(h * queries + i) * size + d] = sum / total;
      }
    }
  }
  return { y, most, largest: v.numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0) };
}

/** A row, in units of eps * max|v|; with elements of 16 bits in units of the last place. */
function row(name, keys, { dtype = 'float32', hasMask, ...options } = {}) {
  const is16 = dtype !== 'float32';
  return {
    table: is16 ? 'halves' : 'attention',
    name: `${name}, ${keys} keys`,
    *problems() {
      for (const seed of [1, 2]) {
        const q = draw(10 * seed, dtype, [heads, queries, size]);
        const k = draw(10 * seed + 1, dtype, [heads, keys, size]);
        const v = draw(10 * seed + 2, dtype, [heads, keys, size]);
        const mask = hasMask ? draw(10 * seed + 3, dtype, [queries, keys]) : undefined;
        const { y, most, largest } = definition({ q, k, v, keys, mask, ...options });
        const unitAt = (i) => (is16 ? ulp(y[i], floats[dtype]) : eps * largest);
        yield {
          run: (wg) => numbersOf(wg.attention(q, k, v, { ...(mask && { mask }), ...options })),
          errorAt: (i, found) => Math.abs(found - y[i]) / unitAt(i),
          bound: is16 ? undefined : 4 * (2 + most),
        };
      }
    },
  };
}

export const attentionRows = [
  row('float32', 64),
  row('float32', 1024),
  row('float32, causal', 256, { causal: true }),
  row('float32, mask', 256, { hasMask: true }),
  row('float32, softcap', 256, { softcap: 20 }),
  row('attention float16', 256, { dtype: 'float16' }),
  row('attention bfloat16', 256, { dtype: 'bfloat16' }),
];
