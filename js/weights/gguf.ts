/**
 * Reads files of ggml.
 *
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md describes them, and ggml/src/gguf.cpp
 * of ggml-org/llama.cpp reads them.
 */
import { describe } from '../base/errors.js';
import { typeNames } from './blocks.js';
import { fileOf, type WeightsFile } from './file.js';
import { decode, Source, type WeightsSource } from './source.js';
import { byteLengthOf, checkPlaces, isSize, type WeightsInfo } from './tensor.js';

const op = 'readGGUF';

/**
 * The most texts, lists and booleans in a header, of which a tensor counts as eight. Each costs up
 * to some hundred bytes of memory. The largest vocabularies have a million texts.
 */
const mostItems = 2 ** 21;

/** The most axes of a tensor. ggml has 4. */
const mostAxes = 8;

/** The most lists within each other. */
const mostLists = 8;

/**
 * A value in the metadata of a GGUF file. Whole numbers of 64 bits are bigints if they are beyond
 * 2^53 - 1. A list of numbers is a typed array.
 *
 * @category Files of weights
 */
export type GGUFValue =
  | number
  | bigint
  | boolean
  | string
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | BigUint64Array
  | BigInt64Array
  | Float64Array
  | readonly GGUFValue[];

/**
 * A GGUF file whose header was read.
 *
 * @category Files of weights
 */
export interface GGUFFile extends WeightsFile {
  /** The version of the format. */
  readonly version: number;
  /** The metadata, by key, such as `'general.architecture'`. */
  readonly metadata: ReadonlyMap<string, GGUFValue>;
  /** The tensors, by name, in the order of the header. */
  readonly tensors: ReadonlyMap<string, WeightsInfo>;
}

/** The arrays of numbers, by the number of a type in the metadata. */
const arrays = [
  ...[Uint8Array, Int8Array, Uint16Array, Int16Array, Uint32Array, Int32Array, Float32Array],
  ...[undefined, undefined, undefined, BigUint64Array, BigInt64Array, Float64Array],
];
const [isBool, isText, isList] = [7, 8, 9];

/** There are not enough bytes yet: this many are needed. */
class Lack extends Error {
  constructor(readonly bytes: number) {
    super();
  }
}

/** Reads the values of a header. */
class Header {
  at = 0;
  items = 0;
  #view: DataView;

  constructor(readonly source: Source) {
    this.#view = viewOf(source);
  }

  /**
   * Reads something whose size is not known. If bytes are lacking, it reads twice as many as there
   * are, and starts again.
   */
  async read<T>(body: () => T): Promise<T> {
    const { at, items } = this;
    for (;;) {
      try {
        return body();
      } catch (lack) {
        if (!(lack instanceof Lack)) throw lack;
        await this.source.readHead(lack.bytes, 2 * this.source.head.length);
        this.#view = viewOf(this.source);
        Object.assign(this, { at, items });
      }
    }
  }

  /** Moves on, and returns where it was. */
  skip(bytes: number): number {
    const { at } = this;
    if (at + bytes > this.#view.byteLength) throw new Lack(at + bytes);
    this.at += bytes;
    return at;
  }

  count(items: number): void {
    this.items += items;
    if (this.items > mostItems)
      throw this.source.malformed(`has more than ${mostItems} texts and lists, which is the limit`);
  }

  u32(): number {
    return this.#view.getUint32(this.skip(4), true);
  }

  /** A whole number from 0 to 2^53 - 1. */
  size(what: string): number {
    const size = this.u32() + this.u32() * 2 ** 32;
    if (!isSize(size)) throw this.source.malformed(`has ${what} beyond 2^53 - 1`);
    return size;
  }

  text(): string {
    const start = this.skip(this.size('a text with a length'));
    return decode(this.source.head.subarray(start, this.at));
  }

  value(type: number): GGUFValue {
    if (type === isList) return this.list(1);
    if (type === isText) return this.text();
    const [value] = this.numbers(type, 1);
    return typeof value === 'bigint' && isSize(Math.abs(Number(value)))
      ? Number(value)
      : (value as GGUFValue);
  }

  /** Numbers, or booleans. */
  numbers(type: number, length: number): GGUFValue & object & Iterable<GGUFValue> {
    const array = arrays[type] ?? (type === isBool ? Uint8Array : undefined);
    if (!array) throw this.source.malformed(`has metadata of type ${type}`);
    if (type === isBool) this.count(length);
    const start = this.skip(length * array.BYTES_PER_ELEMENT);
    const numbers = new array(this.source.head.slice(start, this.at).buffer);
    return type === isBool ? Array.from(numbers as Uint8Array, (byte) => byte !== 0) : numbers;
  }

  list(depth: number): GGUFValue {
    if (depth > mostLists)
      throw this.source.malformed(`has lists nested more than ${mostLists} deep`);
    const [type, length] = [this.u32(), this.size('a list with a length')];
    if (type !== isText && type !== isList) return this.numbers(type, length);
    this.count(length);
    return Array.from({ length }, () => (type === isText ? this.text() : this.list(depth + 1)));
  }
}

const viewOf = ({ head }: Source) => new DataView(head.buffer, head.byteOffset, head.byteLength);

/**
 * Reads the header of a GGUF file of version 2 or 3, little-endian. A file of strangers is safe to
 * read: all counts and lengths have limits, and are compared with the bytes that are there.
 *
 * @example
 * const file = await readGGUF('https://example.com/model.gguf');
 * file.metadata.get('general.architecture'); // 'llama'
 * const { shape, data } = (await file.tensor('output.weight')).toFloat32();
 *
 * @param source the file. The call reads at most 64 kB more than twice the header
 * @returns what the header says, and a function that loads tensors
 * @throws by rejection: ArgumentError if the file is malformed, GemmError with code `LOAD` if it
 * does not load, OutOfMemoryError
 *
 * @category Files of weights
 */
export async function readGGUF(source: WeightsSource): Promise<GGUFFile> {
  const file = new Source(op, 'a GGUF file', source);
  await file.readHead(24);
  const header = new Header(file);
  if (header.u32() !== 0x46554747) throw file.otherFormat('does not begin with "GGUF"');
  const version = header.u32();
  if (version % 2 ** 16 === 0) throw file.malformed('is big-endian');
  if (version !== 2 && version !== 3)
    throw file.malformed(`has version ${version}; it must be 2 or 3`);
  const tensorCount = header.size('a number of tensors');
  const pairs = header.size('a number of metadata');

  const metadata = new Map<string, GGUFValue>();
  for (let i = 0; i < pairs; ++i) {
    const [key, value] = await header.read(() => {
      header.count(2);
      return [header.text(), header.value(header.u32())] as const;
    });
    if (metadata.has(key)) throw file.malformed(`repeats the metadata ${describe(key)}`);
    metadata.set(key, value);
  }
  const alignment = metadata.get('general.alignment') ?? 32;
  if (typeof alignment !== 'number' || !/^10*$/.test(alignment.toString(2)) || alignment > 2 ** 31)
    throw file.malformed(`has alignment ${describe(alignment)}; it must be a power of two`);

  const found: Omit<WeightsInfo, 'byteLength'>[] = [];
  for (let i = 0; i < tensorCount; ++i) found.push(await header.read(() => readInfo(header)));
  const start = Math.ceil(header.at / alignment) * alignment;
  file.dropHead();
  const tensors = new Map<string, WeightsInfo>();
  for (const { offset, ...info } of found) {
    const { name, type, shape } = info;
    const wrong = (what: string) => file.malformed(`has tensor ${describe(name)} ${what}`);
    if (tensors.has(name)) throw wrong('twice');
    if (offset % alignment !== 0)
      throw wrong(`at ${offset} of the data; it must be a multiple of ${alignment}`);
    const byteLength = byteLengthOf(wrong, type, shape);
    tensors.set(name, Object.freeze({ ...info, offset: start + offset, byteLength }));
  }
  checkPlaces(
    file,
    Array.from(tensors.values()).sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength),
  );
  return fileOf(op, file, { version, metadata, tensors });
}

/** Reads the description of a tensor. Its offset is from the start of the data. */
function readInfo(header: Header): Omit<WeightsInfo, 'byteLength'> {
  header.count(8);
  const name = header.text();
  const axes = header.u32();
  if (axes > mostAxes)
    throw header.source.malformed(
      `has tensor ${describe(name)} of ${axes} axes; it may have ${mostAxes}`,
    );
  const shape = Array.from({ length: axes }, () => header.size('a size')).reverse();
  const number = header.u32();
  const type = typeNames[number] || `type ${number}`;
  return { name, type, shape: Object.freeze(shape), offset: header.size('an offset') };
}
