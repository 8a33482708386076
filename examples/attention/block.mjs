// Attention of a transformer, as a block with its tensors in the memory of an instance of wgemm.
//
//   q, k, v = x * Wq + bq, x * Wk + bk, x * Wv + bv
//   y = x + concat over heads of (softmax(q k' / sqrt(width)) v) * Wo
//
// Vaswani et al., "Attention Is All You Need" (2017).
import { fromBfloat16, softmax, toBfloat16 } from './numbers.mjs';

/**
 * A block for `tokens` tokens. `size` is heads * width, `width` is the width of one head.
 *
 * @param wg the instance of wgemm
 * @param options `dtype` is 'float32' or 'bfloat16'. `weights` has q, k, v and o, as Float32Arrays
 *   of [size, size]; `biases` has q, k and v, of `size` elements. The block copies them
 * @returns the block. The caller must dispose of it
 */
export function createBlock(wg, { dtype, tokens, heads, width, weights, biases }) {
  const size = heads * width;
  const isFloat = dtype === 'float32';
  const encode = isFloat ? (array) => array : toBfloat16;
  const owned = [];
  const own = (object) => (owned.push(object), object);
  const alloc = (shape, type = dtype) => own(wg.alloc(type, shape));

  const packed = {};
  for (const [name, values] of Object.entries(weights)) {
    const matrix = { data: encode(values), shape: [size, size], dtype };
    packed[name] = own(wg.pack(matrix, { op: 'matmul' }));
  }
  const bias = {};
  for (const [name, values] of Object.entries(biases)) {
    bias[name] = alloc([size]);
    bias[name].data.set(encode(values));
  }
  const [x, q, k, v, context, y] = Array.from({ length: 6 }, () => alloc([tokens, size]));
  const scores = alloc([heads, tokens, tokens], 'float32'); // softmax works in float32
  const shares = isFloat ? scores : alloc([heads, tokens, tokens]);

  let softmaxTime = 0;
  const toShares = () => {
    const start = performance.now();
    softmax(scores.data, tokens);
    if (!isFloat) shares.data.set(toBfloat16(scores.data));
    softmaxTime = performance.now() - start;
  };

  // All heads of a tensor, as a batch: a view, which copies nothing.
  const headsOf = (data) => ({ data, shape: [heads, tokens, width], strides: [width, size, 1] });
  const alpha = 1 / Math.sqrt(width);

  const multiply = () => {
    wg.matmul(x, packed.q, bias.q, { out: q });
    wg.matmul(x, packed.k, bias.k, { out: k });
    wg.matmul(x, packed.v, bias.v, { out: v });
    wg.matmul(headsOf(q), headsOf(k), null, { alpha, transposeB: true, out: scores });
    toShares(); // softmax of each row
    wg.matmul(shares, headsOf(v), null, { out: headsOf(context) });
    wg.matmul(context, packed.o, x, { out: y }); // adds x as a bias of full size
  };

  return {
    /**
     * Computes the block.
     *
     * @param {Float32Array} [input] of [tokens, size]; without it, the one of the call before
     * @returns milliseconds of the block, and of the products in it
     */
    run(input) {
      if (input) x.data.set(encode(input));
      const start = performance.now();
      multiply();
      const total = performance.now() - start;
      return { total, products: total - softmaxTime };
    },
    /** y, as a new Float32Array of [tokens, size]. */
    result: () => (isFloat ? y.data.slice() : fromBfloat16(y.data)),
    /**
     * How much each token looks at each other one, from 0 to 1, as a new Float32Array of [tokens,
     * tokens]: row i has the shares of token i, whose sum is 1.
     */
    sharesOf(head) {
      return scores.data.slice(head * tokens * tokens, (head + 1) * tokens * tokens);
    },
    /** Frees its tensors and weights. */
    dispose() {
      for (const object of owned) object.dispose();
    },
  };
}
