// Attention of a small transformer, in float32 and in bfloat16, computed by wg.matmul: block.mjs.
// Run it with `npm run attention`, which builds wgemm first.
import { seededRandom } from '../random.mjs';
import { createBlock } from './block.mjs';
import { difference } from './numbers.mjs';
import { attentionInJavaScript } from './plain.mjs';

const tokens = 128;
const heads = 12;
const width = 64; // per head
const size = heads * width;
const rounds = 20;

const { createGemm } = await import('wgemm').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('wgemm is not built here: run `npm run attention`, which builds it first.');
  process.exit(1);
});

// The same numbers in every run. The spread of the weights keeps the size of what they multiply.
const next = seededRandom(1);
const fill = (length, spread) => Float32Array.from({ length }, () => spread * (2 * next() - 1));
const weights = Object.fromEntries(
  ['q', 'k', 'v', 'o'].map((name) => [name, fill(size * size, Math.sqrt(3 / size))]),
);
const biases = Object.fromEntries(['q', 'k', 'v'].map((name) => [name, fill(size, 0.1)]));
const input = fill(tokens * size, Math.sqrt(3));

const wg = await createGemm();
try {
  console.log(`wgemm ${wg.info.version}: build ${wg.info.build}, ${wg.info.threads} thread`);
  console.log(`attention of ${tokens} tokens, ${heads} heads of ${width}\n`);

  const started = performance.now();
  const expected = attentionInJavaScript(input, weights, biases, { tokens, heads, width });
  const jsTime = performance.now() - started;

  const operations = 8 * tokens * size * size + 4 * tokens * tokens * size; // of the products
  const line = (name, ms, products, error) => {
    const speed = `${(operations / products / 1e6).toFixed(1).padStart(5)} GOP/s in them`;
    console.log(
      `${name.padEnd(17)}${ms.toFixed(1).padStart(7)} ms, ${products.toFixed(1).padStart(6)} ` +
        `of them products, ${speed}${error}`,
    );
  };
  for (const dtype of ['float32', 'bfloat16']) {
    const block = createBlock(wg, { dtype, tokens, heads, width, weights, biases });
    let best = { total: Infinity };
    for (let round = 0; round < rounds; ++round) {
      const times = block.run(input);
      if (times.total < best.total) best = times;
    }
    const error = difference(block.result(), expected);
    // bfloat16 has 8 significant bits, and these sums were rounded to it a few times.
    if (!(error < { float32: 1e-5, bfloat16: 3e-2 }[dtype]))
      throw new Error(`${dtype}: wgemm and plain JavaScript disagree by ${error}`);
    line(dtype, best.total, best.products, `, agrees to ${error.toExponential(0)}`);
  }
  line('plain JavaScript', jsTime, jsTime, '');
} finally {
  wg.dispose(); // frees all tensors and weights too
}
