// The form of the two files that come with the demo. Build time writes them, the engine reads them.
// They are as dense as a server's compression needs them: it does the rest.
import { pixels } from '../../digits/images.mjs';

/** How many digits come with the page: enough to reach 95% of those held back. */
export const counts = { training: 2750, test: 500 };

const perByte = 4; // pixels, of 2 bits each: 0, 1 or 2 halves
const largest = 63; // weights are whole numbers from -63 to 63, times a scale for each output

/** The bytes of digits, whose pixels are rounded to 0, 1/2 and 1: labels, then images. */
export function writeDigits({ images, labels }) {
  const packed = new Uint8Array(images.length / perByte);
  images.forEach((ink, i) => (packed[i >> 2] |= Math.round(2 * ink) << (2 * (i % perByte))));
  return Buffer.concat([labels, packed]);
}

/** Digits { images, labels } of such bytes. */
export function readDigits(bytes) {
  const count = counts.training + counts.test;
  const images = new Float32Array(count * pixels);
  for (let i = 0; i < images.length; ++i)
    images[i] = ((bytes[count + (i >> 2)] >> (2 * (i % perByte))) & 3) / 2;
  return { images, labels: bytes.subarray(0, count) };
}

/**
 * The bytes of layers { weights, bias }, tensors of shape [K, N] and [1, N]. For each layer: N
 * scales and N biases as float32, then K x N weights as int8.
 */
export function writeNetwork(layers) {
  const pieces = layers.flatMap(({ weights, bias }) => {
    const outputs = weights.shape[1];
    const scales = new Float32Array(outputs);
    weights.data.forEach((weight, i) => {
      const n = i % outputs;
      scales[n] = Math.max(scales[n], Math.abs(weight) / largest);
    });
    const numbers = weights.data.map((weight, i) => Math.round(weight / scales[i % outputs]));
    return [scales, Float32Array.from(bias.data), Int8Array.from(numbers)];
  });
  return Buffer.concat(pieces.map(({ buffer }) => Buffer.from(buffer)));
}

/** Layers { weights, bias } of such bytes, as arrays of float32. `sizes` as of createLayers(). */
export function readNetwork(bytes, sizes) {
  let at = 0;
  const take = (length) => bytes.slice(at, (at += length)).buffer;
  return sizes.slice(1).map((outputs, i) => {
    const scales = new Float32Array(take(4 * outputs));
    const bias = new Float32Array(take(4 * outputs));
    const numbers = new Int8Array(take(sizes[i] * outputs));
    const weights = Float32Array.from(numbers, (number, j) => number * scales[j % outputs]);
    return { weights, bias };
  });
}
