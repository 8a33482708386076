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
import { ArgumentError, OutOfMemoryError, PackMismatchError } from './index.js';
import {
  bufferOf,
  lengthOf,
  offsetOf,
  operandOf,
  positive,
  readEach,
  readWeights,
  viewOf,
} from './shared.js';
import type { Core } from './core.js';
import { type Form, quantizedTypes, readQuantizations } from './linear-arguments.js';
import { type Layer, layerOf, layoutOf, renamed } from './linear-layer.js';
import type { Operand } from './operand.js';

const magic = 'wgemm-li';
const version = 1;
const [numbersAt, vectorsAt] = [24, 128];

/** @internal */
export function bytesOfLayer(form: Form, vectors: Uint8Array, weights: Uint8Array) {
  const weightsAt = vectorsAt + vectors.length;
  const length = weightsAt + weights.length;
  let bytes;
  try {
    bytes = new Uint8Array(length);
  } catch (error) {
    const message = `serialize: no array for the ${length} bytes: ${String(error)}`;
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

function checksum(bytes: Uint8Array, end: number): number {
  let sum = 0x811c9dc5;
  for (let i = 16; i < end; ++i) sum = Math.imul(sum ^ (bytes[i] as number), 0x01000193);
  return sum >>> 0;
}

const op = 'deserializeLinear';

/** @internal Makes a layer from the bytes that `serialize` returned. */
export function readLayer(core: Core, { source, dtype }: Operand): Layer {
  core.checkAlive(op);
  const given = source as Uint8Array;
  const length = lengthOf(given);
  const from = (start: number, end: number) =>
    viewOf('uint8', bufferOf(given), offsetOf(given) + start, end - start) as Uint8Array;
  const refuse = (what: string) => new PackMismatchError(op, 'bytes', `${op}: bytes ${what}`);
  const checkLength = (least: number) => {
    if (length < least) throw refuse(`has ${length} bytes; expected at least ${least}`);
  };
  checkLength(vectorsAt);
  // Copies, since another thread may change bytes in shared memory.
  const header = from(0, vectorsAt).slice();
  const view = new DataView(header.buffer);
  if (String.fromCharCode(...header.subarray(0, 8)) !== magic)
    throw refuse(`is not a layer: it does not begin with "${magic}"`);
  const found = view.getUint32(8, true);
  if (found !== version)
    throw refuse(`is of version ${found}; this library reads version ${version}`);
  const expected = view.getFloat64(16, true);
  if (length !== expected) throw refuse(`has ${length} bytes; expected ${expected}`);
  const form = Array.from({ length: 13 }, (_, i) =>
    view.getFloat64(numbersAt + 8 * i, true),
  ) as unknown as Form;
  const isSize = (size: number) => Number.isSafeInteger(size) && size >= 0;
  const isFlag = (flag: number) => flag === 0 || flag === 1;
  const hasZerosAlone = form[4] === 1 && form[3] === 0;
  if (!form.slice(0, 2).every(isSize) || !form.slice(2, 5).every(isFlag) || hasZerosAlone)
    throw refuse(wrongNumbers);
  const { starts, c } = layoutOf(form);
  const weightsAt = vectorsAt + c;
  checkLength(weightsAt);
  const bytes = from(0, weightsAt).slice();
  if (checksum(bytes, weightsAt) !== view.getUint32(12, true))
    throw refuse('is corrupt: the checksum does not match the contents');
  const [k, n, bias, isInt8, zeros, min, max, ...ofXAndY] = form;
  const take = (i: 0 | 1 | 2, type: 'float32' | 'uint8', flag: 0 | 1) =>
    flag ? viewOf(type, bytes.buffer, vectorsAt + (starts[i] as number), n) : null;
  const vectors = [take(0, 'float32', bias), take(1, 'float32', isInt8), take(2, 'uint8', zeros)];
  const quantization = ([type, scale, zeroPoint]: number[]) =>
    scale === 0 ? null : { scale, zeroPoint, dtype: quantizedTypes[type as 0 | 1] };
  try {
    const [x, y] = [quantization(ofXAndY.slice(0, 3)), quantization(ofXAndY.slice(3))];
    if (isInt8) readEach(op, 'scale', vectors[1], 'float32', { index: 1, size: n }, ...positive);
    if (readQuantizations(x, y, isInt8 === 1).join() !== ofXAndY.join() || !(min <= max))
      throw refuse(wrongNumbers);
    const weights = readWeights(core, operandOf('bytes', dtype, [], from(weightsAt, length)));
    const allowed = isInt8 ? ['int8', 'uint8'] : ['float32', 'float16', 'bfloat16'];
    if (weights.shape.join() === `${k},${n}` && allowed.includes(weights.dtype))
      return layerOf(core, form, weights, vectors, op);
    weights.dispose();
    throw refuse('has packed weights of another layer');
  } catch (error) {
    throw error instanceof ArgumentError ? refuse(wrongNumbers) : renamed(error, op, []);
  }
}

const wrongNumbers = 'has numbers that no layer has';
