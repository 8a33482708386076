// Changes files of weights: numbers, texts or bytes of valid ones. And reads them.
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
 * Reads a file by one of the sources, and all of its tensors.
 * @param reached how many files were read, tensors loaded, and tensors converted
 */
export async function tryFile(seed, { readGGUF, readSafetensors, GemmError }, reached) {
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

/** Throws unless a user can understand an error. */
export function expectClear(error) {
  const { message, op } = error;
  const isClear =
    message.startsWith(`${op}: `) &&
    message.length < 400 &&
    !/undefined|\[object|NaN/.test(message.replace(/"[^"]*"/g, ''));
  if (!isClear) throw new Error(`an error is not clear: ${message}`, { cause: error });
}
