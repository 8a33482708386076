// The products of the model with weights in three forms, for Node and for browsers. A form makes a
// product of weights of (K, N). Its run(x, { bias, activation, out }) computes
// out = activation(x * weights + bias) for one x of K elements. The caller must dispose of `parts`.
import { quantize, quantizeNBits } from 'wgemm';

export const forms = {
  float32(wg, weights) {
    const packed = wg.pack(weights, { op: 'matmul' });
    return {
      parts: [packed],
      run: (x, { bias, ...options }) => wg.matmul(x, packed, bias, options),
    };
  },

  int8(wg, weights) {
    const { scale, ...b } = quantize(weights, { symmetric: true, axis: 1 }); // a scale per column
    const packed = wg.pack(b, { op: 'qgemm' });
    const bScale = wg.alloc('float32', [scale.length]);
    bScale.data.set(scale);
    return {
      parts: [packed, bScale],
      run: (x, options) => wg.dynamicQuantizeMatmul(x, packed, { bScale, ...options }),
    };
  },

  '4 bits'(wg, weights) {
    // A scale per block of 32 weights of a column.
    const b = quantizeNBits(weights, { bits: 4, blockSize: 32, symmetric: true });
    const packed = wg.pack(b, { op: 'matmulNBits' });
    const accuracyLevel = 4; // quantizes x to 8 bits
    return {
      parts: [packed],
      run: (x, options) => wg.matmulNBits(x, packed, { accuracyLevel, ...options }),
    };
  },
};

/** Bytes of a product's weights: of packed weights, or of a heap tensor. */
export const bytesOf = ({ parts }) =>
  parts.reduce((sum, part) => sum + (part.byteLength ?? part.data.byteLength), 0);
