/**
 * Layers as bytes, little-endian:
 *
 *     0  "wgemm-li"
 *     8  uint32: version of this form
 *    12  uint32: FNV-1a of the bytes from 16 to the packed weights, which have their own checksum
 *    16  float64: number of all bytes
 *    24  float64: each number of the layer's Form
 *   128  bias, scales and zero points, as in the memory, padded with zeros to multiples of 64 bytes
 *     -  the packed weights, as their serialize() returns them
 */
import { OutOfMemoryError } from '../base/errors.js';
import type { Form } from './arguments.js';

/** @internal */
export const magic = 'wgemm-li';

/** @internal */
export const version = 1;

/** @internal Offsets in bytes. */
export const numbersAt = 24,
  vectorsAt = 128;

/** @internal */
export function bytesOfLayer(form: Form, vectors: Uint8Array, weights: Uint8Array) {
  const weightsAt = vectorsAt + vectors.length;
  const length = weightsAt + weights.length;
  let bytes;
  try {
    bytes = new Uint8Array(length);
  } catch (error) {
    const message = `serialize: cannot allocate ${length} bytes (${String(error)})`;
    throw new OutOfMemoryError('serialize', '', message);
  }
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < magic.length; ++i) bytes[i] = magic.charCodeAt(i);
  view.setUint32(8, version, true);
  [length, ...form].forEach((number, i) => view.setFloat64(16 + 8 * i, number, true));
  bytes.set(vectors, vectorsAt);
  bytes.set(weights, weightsAt);
  view.setUint32(12, checksum(bytes, weightsAt), true);
  return bytes;
}

/** @internal FNV-1a of the bytes from 16 to `end`. */
export function checksum(bytes: Uint8Array, end: number): number {
  let sum = 0x811c9dc5;
  for (let i = 16; i < end; ++i) sum = Math.imul(sum ^ (bytes[i] as number), 0x01000193);
  return sum >>> 0;
}
