// Scores of wgemm/search next to the scores of the same vectors in float64.
import { createIndex } from 'wgemm/search';
import { seededRandom } from '../../../examples/random.mjs';

const [dimensions, count, queries] = [384, 500, 8];

/** Vectors in clusters, as embeddings are. */
function vectors(seed, length) {
  const next = seededRandom(seed);
  const normal = () => next() + next() + next() + next() - 2;
  const centres = Float32Array.from({ length: 20 * dimensions }, normal);
  return Float32Array.from({ length: length * dimensions }, (_, i) => {
    const centre = Math.floor(i / dimensions) % 20;
    return centres[centre * dimensions + (i % dimensions)] + 0.4 * normal();
  });
}

const metrics = {
  cosine: ({ dot, q, v }) => dot / Math.sqrt(q * v),
  dot: ({ dot }) => dot,
  euclidean: ({ far }) => Math.sqrt(far),
};

/** The divisor of an error. It is 1 for a cosine, which has no unit. */
const units = {
  cosine: () => 1,
  dot: ({ q, v }) => Math.sqrt(q * v),
  euclidean: ({ q, v }) => Math.sqrt(q) + Math.sqrt(v),
};

function row(metric, dtype) {
  return {
    table: 'search',
    name: `${metric}, ${dtype}`,
    k: dimensions,
    *problems() {
      const [all, asked] = [vectors(1, count), vectors(2, queries)];
      const sums = Array.from({ length: queries * count }, (_, index) => {
        const [i, j] = [Math.floor(index / count), index % count].map((at) => at * dimensions);
        let [dot, q, v, far] = [0, 0, 0, 0];
        for (let d = 0; d < dimensions; ++d) {
          const [x, y] = [asked[i + d], all[j + d]];
          dot += x * y;
          q += x * x;
          v += y * y;
          far += (x - y) ** 2;
        }
        return { dot, q, v, far };
      });
      yield {
        run(wg) {
          const index = createIndex(wg, { dimensions, metric, dtype });
          index.add(all);
          const scores = new Float64Array(queries * count);
          for (let i = 0; i < queries; ++i) {
            const query = asked.subarray(i * dimensions, (i + 1) * dimensions);
            for (const { id, score } of index.search(query, count)) scores[i * count + id] = score;
          }
          index.dispose();
          return scores;
        },
        errorAt: (i, score) => Math.abs(score - metrics[metric](sums[i])) / units[metric](sums[i]),
      };
    },
  };
}

export const searchRows = [
  ...['float32', 'float16', 'bfloat16', 'int8'].map((dtype) => row('cosine', dtype)),
  row('dot', 'float32'),
  row('euclidean', 'float32'),
];
