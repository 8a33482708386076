/**
 * Reads files of safetensors.
 *
 * https://github.com/huggingface/safetensors#format describes them.
 */
import { describe } from '../base/errors.js';
import { fileOf, type WeightsFile } from './file.js';
import { decode, Source, type WeightsSource } from './source.js';
import { byteLengthOf, checkPlaces, isSize, type WeightsInfo } from './tensor.js';

const op = 'readSafetensors';

/**
 * The most values in a header. Each may cost up to a hundred bytes of memory. A tensor has twelve.
 */
const mostValues = 2 ** 22;

/** The most axes of a tensor. */
const mostAxes = 64;

/**
 * A file of safetensors whose header was read.
 *
 * @category Files of weights
 */
export interface SafetensorsFile extends WeightsFile {
  /** The texts in `__metadata__`, by key. */
  readonly metadata: ReadonlyMap<string, string>;
  /** The tensors, by name, in the order of their data. */
  readonly tensors: ReadonlyMap<string, WeightsInfo>;
}

/** The own properties of an object in JSON; undefined for other values. */
const propertiesOf = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? new Map<string, unknown>(Object.entries(value))
    : undefined;

/**
 * Reads the header of a file of safetensors. A file of strangers is safe to read: all counts and
 * lengths have limits, and the tensors must follow one another without gaps.
 *
 * @example
 * const file = await readSafetensors('https://example.com/model.safetensors');
 * const weights = await file.tensor('lm_head.weight');
 * weights.dtype; // 'bfloat16'
 *
 * @param source the file. The call reads the header, or 64 kB if that is more
 * @returns what the header says, and a function that loads tensors
 * @throws by rejection: ArgumentError if the file is malformed, GemmError with code `LOAD` if it
 * does not load, OutOfMemoryError
 *
 * @category Files of weights
 */
export async function readSafetensors(source: WeightsSource): Promise<SafetensorsFile> {
  const file = new Source(op, 'a file of safetensors', source);
  await file.readHead(10); // and "{}"
  const view = new DataView(file.head.buffer, file.head.byteOffset);
  if (file.head[8] !== 0x7b) throw file.otherFormat('has no "{" at 8');
  const start = 8 + view.getUint32(0, true) + view.getUint32(4, true) * 2 ** 32;
  await file.readHead(start);
  const header = readJson(file, file.head.subarray(8, start));
  file.dropHead();

  const metadata = new Map<string, string>();
  const found: WeightsInfo[] = [];
  for (const [name, value] of header) {
    const properties = propertiesOf(value);
    const wrong = (what: string) => file.malformed(`has tensor ${describe(name)} ${what}`);
    if (name === '__metadata__') {
      for (const [key, text] of properties ?? [['', undefined]]) {
        if (typeof text !== 'string') throw file.malformed('has metadata that are not texts');
        metadata.set(key, text);
      }
      continue;
    }
    const [type, shape, offsets] = ['dtype', 'shape', 'data_offsets'].map((key) =>
      properties?.get(key),
    );
    if (typeof type !== 'string') throw wrong('without a dtype');
    if (!Array.isArray(shape) || shape.length > mostAxes || !shape.every(isSize))
      throw wrong(`without a shape of up to ${mostAxes} sizes`);
    const [begin, end] = (Array.isArray(offsets) ? offsets : []) as unknown[];
    if (!isSize(begin) || !isSize(end) || end < begin) throw wrong('without valid data_offsets');
    const needed = byteLengthOf(wrong, type, shape);
    if (!Number.isNaN(needed) && needed !== end - begin)
      throw wrong(
        `of ${end - begin} bytes; shape [${shape.join(', ')}] of ${type} needs ${needed}`,
      );
    Object.freeze(shape);
    const info = { name, type, shape, offset: start + begin, byteLength: end - begin };
    found.push(Object.freeze(info));
  }
  found.sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  checkPlaces(file, found);
  let last = start;
  for (const { name, offset, byteLength } of found) {
    if (offset !== last)
      throw file.malformed(`has a gap before tensor ${describe(name)}, from ${last} to ${offset}`);
    last += byteLength;
  }
  if (file.size !== undefined && last < file.size)
    throw file.malformed(`has ${file.size} bytes, and its tensors end at ${last}`);
  const tensors = new Map(found.map((info) => [info.name, info]));
  return fileOf(op, file, { metadata, tensors });
}

/** The properties of a header. */
function readJson(file: Source, bytes: Uint8Array): Map<string, unknown> {
  // Each value follows a comma or a bracket.
  let values = 0;
  for (let i = 0; i < bytes.length; ++i) {
    const byte = bytes[i];
    if (byte === 0x2c || byte === 0x5b || byte === 0x7b) ++values;
  }
  if (values > mostValues)
    throw file.malformed(`has more than ${mostValues} values in its header, which is the limit`);
  let value: unknown;
  try {
    value = JSON.parse(decode(bytes));
  } catch {
    // An engine may also give up on nested lists.
  }
  const properties = propertiesOf(value);
  if (!properties) throw file.malformed('has a header that is not a JSON object');
  return properties;
}
