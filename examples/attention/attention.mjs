// Attention of a small transformer, in float32 and in bfloat16, computed by wg.matmul. Run it with
// `npm run attention`, which builds wgemm first.
//
//   q, k, v = x * Wq + bq, x * Wk + bk, x * Wv + bv
//   y = x + concat over heads of (softmax(q k' / sqrt(width)) v) * Wo
//
// Vaswani et al., "Attention Is All You Need" (2017).
import { seededRandom } from '../random.mjs';
import { fromBfloat16, softmax, toBfloat16 } from './numbers.mjs';
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
    const block = createBlock(dtype);
    let best = { total: Infinity };
    for (let round = 0; round < rounds; ++round) {
      const times = block.run();
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

/** The block with its tensors in the instance's memory. `run()` returns its milliseconds. */
function createBlock(dtype) {
  const isFloat = dtype === 'float32';
  const encode = isFloat ? (array) => array : toBfloat16;
  const alloc = (shape, values, type = dtype) => {
    const tensor = wg.alloc(type, shape);
    if (values) tensor.data.set(type === dtype ? encode(values) : values);
    return tensor;
  };
  const x = alloc([tokens, size], input);
  const packed = {};
  for (const [name, values] of Object.entries(weights)) {
    packed[name] = wg.pack({ data: encode(values), shape: [size, size], dtype }, { op: 'matmul' });
  }
  const bias = Object.fromEntries(
    Object.entries(biases).map(([name, values]) => [name, alloc([size], values)]),
  );
  const [q, k, v, context, y] = Array.from({ length: 5 }, () => alloc([tokens, size]));
  const scores = alloc([heads, tokens, tokens], undefined, 'float32'); // softmax works in float32
  const shares = isFloat ? scores : alloc([heads, tokens, tokens]);

  // All heads of a tensor, as a batch: nothing is copied. The view is made for each call, since it
  // ends when the memory grows.
  const headsOf = ({ data }) => ({
    data,
    shape: [heads, tokens, width],
    strides: [width, size, 1],
    dtype,
  });

  let products = 0;
  const matmul = (...args) => {
    const start = performance.now();
    wg.matmul(...args);
    products += performance.now() - start;
  };
  return {
    run() {
      products = 0;
      const start = performance.now();
      matmul(x, packed.q, bias.q, { out: q });
      matmul(x, packed.k, bias.k, { out: k });
      matmul(x, packed.v, bias.v, { out: v });
      const alpha = 1 / Math.sqrt(width);
      matmul(headsOf(q), headsOf(k), null, { alpha, transposeB: true, out: scores });
      softmax(scores.data, tokens);
      if (!isFloat) shares.data.set(toBfloat16(scores.data));
      matmul(shares, headsOf(v), null, { out: headsOf(context) });
      matmul(context, packed.o, x, { out: y }); // adds x as a bias of full size
      return { total: performance.now() - start, products };
    },
    result: () => (isFloat ? y.data : fromBfloat16(y.data)),
  };
}

/** The largest difference, relative to the largest magnitude. */
function difference(a, b) {
  let largest = 0;
  let magnitude = 0;
  b.forEach((value, i) => {
    largest = Math.max(largest, Math.abs(a[i] - value));
    magnitude = Math.max(magnitude, Math.abs(value));
  });
  return largest / magnitude;
}
