// Changes files of weights: numbers, texts or bytes of valid ones. And reads and packs them.
import { Random } from './random.mjs';
import { changesOfRuns } from './runs.mjs';
import { corpus, encodeGGUF, encodeSafetensors } from './weights-files.mjs';

/** Whole numbers at which something may go wrong. */
const numbers = [
  ...[0, 1, 2, 3, 7, 8, 31, 32, 33, 64, 255, 256, 1000, 65536, 2 ** 24, 2 ** 31 - 1, 2 ** 31],
  ...[2 ** 32 - 1, 2 ** 32, 2 ** 40, 2 ** 53 - 1, 2 ** 53],
];
const wide = [2n ** 53n, 2n ** 61n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n];

/** Bytes of JSON that matter to a parser. */
const signs = Array.from('{}[]",:0123456789e.-\\ ', (sign) => sign.charCodeAt(0));

/** The file of a seed, and its format. */
export function fileOf(seed) {
  const random = new Random(seed);
  const [format, file] = random.pick(corpus);
  let bytes = (format === 'gguf' ? encodeGGUF : encodeSafetensors)(file);
  for (let times = random.pick([0, 1, 1, 2, 3]); times > 0; --times) bytes = change(random, bytes);
  return [format, bytes];
}

function change(random, bytes) {
  const { length } = bytes;
  // Most changes are in the header.
  const at = random.upTo(random.pick([length - 1, Math.min(length - 1, 600), 24]));
  const end = Math.min(length, at + random.upTo(40));
  const kind = random.upTo(8);
  const changeRun = changesOfRuns[kind];
  if (changeRun) return changeRun(random, bytes, at, end);
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  switch (kind) {
    case 4:
      if (at + 4 <= length) view.setUint32(at, random.pick(numbers), true);
      return copy;
    case 5:
      if (at + 8 <= length)
        view.setBigUint64(at, random.pick([...wide, ...numbers.map(BigInt)]), true);
      return copy;
    case 6:
      copy[at] = random.pick(signs);
      return copy;
    case 7:
      copy[at] ^= 1 << random.upTo(7);
      return copy;
    default:
      copy[at] = random.upTo(255);
      return copy;
  }
}

/** The most elements of a tensor that are converted. The header may ask for any number. */
const mostElements = 2 ** 16;

/**
 * Reads a file by one of the sources, and all of its tensors. Packs those that are small.
 * @param reached how many files were read, and tensors loaded, converted and packed
 */
export async function tryFile(seed, modules, reached) {
  const { readGGUF, readSafetensors, GemmError } = modules;
  const [format, bytes] = fileOf(seed);
  const read = format === 'gguf' ? readGGUF : readSafetensors;
  // A server may hide the size of a file. Then nothing bounds what a tensor asks for.
  const sources = [bytes, new Blob([bytes]), (at, length) => bytes.slice(at, at + length)];
  const file = await read(sources[seed % 3]);
  ++reached.read;
  for (const [name, info] of file.tensors) {
    try {
      const tensor = await file.tensor(name);
      ++reached.loaded;
      if (info.shape.reduce((product, size) => product * size, 1) > mostElements) continue;
      await tryPacking(modules, file, name, reached);
      const { data } = tensor.toFloat32();
      ++reached.converted;
      if (data.length !== info.shape.reduce((product, size) => product * size, 1))
        throw new Error(`${name} has ${data.length} elements`);
    } catch (error) {
      if (!(error instanceof GemmError)) throw error;
      expectClear(error);
    }
  }
}

/** By type: elements and bytes of a block, and where its float16 scales are. */
const blocks = {
  Q4_0: [32, 18, 0],
  Q4_1: [32, 20, 0, 2],
  Q5_0: [32, 22, 0],
  Q5_1: [32, 24, 0, 2],
  Q8_0: [32, 34, 0],
  Q2_K: [256, 84, 80, 82],
  Q3_K: [256, 110, 108],
  Q4_K: [256, 144, 0, 2],
  Q5_K: [256, 176, 0, 2],
  Q6_K: [256, 210, 208],
  F32: [1, 4],
  F16: [1, 2],
  BF16: [1, 2],
};

/** Packs random bytes as a matrix. They may end within it, and half of them have any scales. */
export async function tryBlocks(seed, modules, reached) {
  const random = new Random(seed);
  const [type, [elements, size, ...scales]] = random.pick(Object.entries(blocks));
  const ofRow = random.upTo(3);
  const n = random.upTo(20);
  const offset = random.pick([0, 0, 3, 64]);
  const bytes = Uint8Array.from({ length: offset + n * ofRow * size }, () => random.upTo(255));
  if (random.upTo(1) === 1)
    for (let at = offset; at < bytes.length; at += size)
      for (const scale of scales) bytes[at + scale + 1] &= 0xbf;
  const given = random.upTo(9) === 0 ? bytes.subarray(0, random.upTo(bytes.length)) : bytes;
  const range = (at, length) => given.slice(at, at + length);
  const stream = new Blob([given]).stream();
  const source = random.pick([given, new Blob([given]), range, stream]);
  const place = { type, shape: [n, ofRow * elements], offset };
  await tryPacking(modules, source, place, reached);
}

/**
 * Packs a tensor, and multiplies by it. Its bytes must give the same weights again. If it is
 * refused, no memory may remain.
 */
async function tryPacking({ packFrom, wg, GemmError }, from, what, reached) {
  const { inUse } = wg.memory();
  const held = [];
  try {
    const packed = await packFrom(wg, from, what);
    held.push(packed);
    const [k, n] = packed.shape;
    if (Math.max(k, n) > mostElements) return; // an empty matrix may have a side of any length
    const x = { data: new Float32Array(2 * k).fill(1), shape: [2, k] };
    for (const accuracyLevel of [0, 4]) {
      const { data } = packed.format
        ? wg.matmulNBits(x, packed, { accuracyLevel })
        : wg.matmul(x, packed);
      if (data.length !== 2 * n) throw new Error(`Y has ${data.length} elements`);
    }
    const bytes = packed.serialize();
    const again = wg.deserialize(bytes);
    held.push(again);
    if (Buffer.compare(bytes, again.serialize()) !== 0 || again.format !== packed.format)
      throw new Error('weights change by serialize() and deserialize()');
    ++reached.packed;
  } catch (error) {
    if (!(error instanceof GemmError)) throw error;
    expectClear(error);
  } finally {
    for (const weights of held) weights.dispose();
  }
  if (wg.memory().inUse !== inUse) throw new Error('memory remains');
}

/** Throws unless a user can understand an error. */
export function expectClear(error) {
  const { message, op } = error;
  const isClear =
    message.startsWith(`${op}: `) &&
    message.length < 400 &&
    !/undefined|\[object|NaN/.test(message.replace(/"[^"]*"|infinite or NaN/g, ''));
  if (!isClear) throw new Error(`an error is not clear: ${message}`, { cause: error });
}
