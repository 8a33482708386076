// com.microsoft MatMulNBits: weights of 2, 4 or 8 bits with a scale per column and block of K, in
// wgemm and in ONNX Runtime Web.
import { randomArray } from './data.mjs';

/** A, and weights without zero points: all are 2^(bits - 1). Weights are from -1 to 1. */
export function nbitsData({ m, n, k, bits, blockSize }) {
  const blocks = k / blockSize;
  const codes = (blockSize * bits) / 8; // bytes of a block
  const largest = 2 ** (1 - bits);
  return {
    a: { shape: [m, k], data: randomArray('float32', m * k, 1) },
    weights: {
      data: { shape: [n, blocks, codes], data: randomArray('uint8', n * blocks * codes, 2) },
      scales: {
        shape: [n, blocks],
        data: randomArray('float32', n * blocks, 3).map((x) => largest * (0.75 + 0.25 * x)),
      },
      ...{ k, n, bits, blockSize },
    },
  };
}

/** Formats of blocks: elements and bytes of a block, and where it has its scales in float16. */
const blockFormats = {
  Q4_0: [32, 18, [0]],
  Q8_0: [32, 34, [0]],
  Q4_K: [256, 144, [0, 2]],
  Q5_K: [256, 176, [0, 2]],
  Q6_K: [256, 210, [208]],
};

/** Weights (N, K) in a format of blocks, as a file has them. Each scale is 2^-14. */
export function blocksOf(format, { n, k }) {
  const [elements, bytes, scalesAt] = blockFormats[format];
  const data = randomArray('uint8', ((n * k) / elements) * bytes, 4);
  for (let block = 0; block < data.length; block += bytes)
    for (const at of scalesAt) data.set([0, 0x04], block + at);
  return data;
}

/** The numbers that the codes stand for, of shape (N, K). */
export function dequantized({ data, scales, k, n, bits, blockSize }) {
  const zero = 2 ** (bits - 1);
  const floats = new Float32Array(n * k);
  for (let i = 0; i < floats.length; ++i) {
    const code = (data.data[(i * bits) >> 3] >> ((i * bits) & 7)) & (2 * zero - 1);
    floats[i] = (code - zero) * scales.data[Math.floor(i / blockSize)];
  }
  return { shape: [n, k], data: floats };
}

/** The problem for ONNX Runtime. Its WebAssembly computes all levels alike. */
export function nbitsModel({ m, n, k, bits, blockSize }, { a, weights }) {
  return {
    type: 'MatMulNBits',
    domain: 'com.microsoft',
    attributes: { K: k, N: n, bits, block_size: blockSize, accuracy_level: 4 },
    inputs: [
      { name: 'A', dtype: 'float32', ...a },
      { name: 'B', dtype: 'uint8', ...weights.data },
      { name: 'scales', dtype: 'float32', ...weights.scales },
    ],
    output: { dtype: 'float32', shape: [m, n] },
  };
}

/**
 * How far a result of accuracy level 4 may differ. A is int8 there, so each product has an error
 * of at most 1 / 254. The bound is six standard deviations of their sum.
 */
export const toleranceOfLevel4 = ({ k }) => 0.008 * Math.sqrt(k);
