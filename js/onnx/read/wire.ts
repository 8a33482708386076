/**
 * Reads fields of messages. pbf knows the format. This adds the checks that bytes of strangers
 * need: each value has the type of its field, and ends within its message. And 64 bits stay exact.
 *
 * https://protobuf.dev/programming-guides/encoding/
 */
import { PbfReader } from 'pbf';
import { ArgumentError } from '../../base/errors.js';

const [varint, fixed64, lengthPrefixed, fixed32] = [0, 1, 2, 5];

/**
 * The most messages and texts in a model. Each costs up to some hundred bytes of memory, though it
 * may be two bytes of a file. Models of 100000 nodes have fewer.
 */
const mostItems = 2 ** 21;

/**
 * The most numbers in all lists of attributes. Each takes up to 60 bytes of memory, and may take
 * one byte of a file. Forests of a million nodes have fewer.
 */
const mostNumbers = 2 ** 23;

let decoder: TextDecoder | undefined;

/** Decodes UTF-8. Pages in Jest have no TextDecoder, but they have Node's modules. */
function decode(bytes: Uint8Array): string {
  const Decoder = globalThis.TextDecoder ?? process.getBuiltinModule('node:util').TextDecoder;
  decoder ??= new Decoder('utf-8', { ignoreBOM: true }); // which is part of a name
  return decoder.decode(bytes);
}

/** @internal */
export class Wire extends PbfReader {
  /** Where the message that is read begins and ends. */
  #start = 0;
  #end: number;
  #items = 0;
  #numbers = 0;
  /** The messages around the current position, for errors. */
  #path: string[] = [];

  constructor(bytes: Uint8Array) {
    super(bytes);
    this.#end = bytes.length;
  }

  /** The error of bytes that break the format. */
  malformed(what: string): ArgumentError {
    const place = this.#path.length > 0 ? `${this.#path.join(', ')} ` : 'it ';
    return new ArgumentError(
      'readOnnx',
      'bytes',
      `readOnnx: bytes is not a model: ${place}${what}`,
    );
  }

  /** Reads a message in a field. `title` names it in errors, and `read` calls `fields`. */
  message<T>(title: string, read: () => T): T {
    const end = this.#readEnd();
    const outer = [this.#start, this.#end] as const;
    this.#count();
    this.#path.push(title);
    [this.#start, this.#end] = [this.pos, end];
    const result = read();
    [this.#start, this.#end] = outer;
    this.#path.pop();
    return result;
  }

  /** Calls `body` with the number of each field of the message. It reads the value, or not. */
  fields(body: (field: number) => void): void {
    let field;
    // nextField() also skips a value that was not read.
    while ((field = this.nextField(this.#end)) !== 0) body(field);
    if (this.pos !== this.#end) throw this.malformed('is shorter than its last field');
  }

  /** Calls `fields` for the whole message, once more. */
  again(body: (field: number) => void): void {
    this.pos = this.#start;
    this.fields(body);
  }

  /** The size of the message, in bytes. */
  get extent(): number {
    return this.#end - this.#start;
  }

  /** The bytes of a field: a view. */
  bytes(): Uint8Array {
    const end = this.#readEnd();
    const bytes = this.buf.subarray(this.pos, end);
    this.pos = end;
    return bytes;
  }

  text(): string {
    this.#count();
    return decode(this.bytes());
  }

  /** A whole number of 64 bits with a sign: a bigint if it is beyond 2^53 - 1. */
  int(): number | bigint {
    this.#expect(varint);
    return this.readVarint();
  }

  /** A whole number from 0 to 2^53 - 1. */
  size(what: string): number {
    return this.natural(this.int(), what);
  }

  /** Checks a number that was read before, as `size` does. */
  natural(size: number | bigint, what: string): number {
    if (typeof size === 'bigint' || size < 0)
      throw this.malformed(`has ${what} ${size}; it must be from 0 to 2^53 - 1`);
    return size;
  }

  float(): number {
    this.#expect(fixed32);
    return this.#float();
  }

  /** Calls `take` with each whole number of a repeated field, packed or not. */
  ints(take: (value: number | bigint) => void): void {
    this.#repeated(varint, () => take(this.readVarint()));
  }

  /** Adds a number to a list of an attribute. */
  add<T>(list: T[], number: T): void {
    if (++this.#numbers > mostNumbers)
      throw this.malformed(`has more than ${mostNumbers} numbers, which is the limit`);
    list.push(number);
  }

  floats(take: (value: number) => void): void {
    this.#repeated(fixed32, () => take(this.#float()));
  }

  doubles(take: (value: number) => void): void {
    this.#repeated(fixed64, () => {
      this.#checkRoom(8);
      take(this.readDouble());
    });
  }

  #repeated(type: number, read: () => void): void {
    if (this.type !== lengthPrefixed) {
      this.#expect(type);
      read();
      return;
    }
    const outer = this.#end;
    this.#end = this.#readEnd();
    while (this.pos < this.#end) read();
    this.#end = outer;
  }

  #expect(type: number): void {
    if (this.type !== type)
      throw this.malformed(`has a field of wire type ${this.type}; it must be ${type}`);
  }

  /** Reads the length of a value, and returns where the value ends. */
  #readEnd(): number {
    this.#expect(lengthPrefixed);
    const length = this.readVarint();
    const rest = this.#end - this.pos;
    if (length >= 0 && length <= rest) return this.pos + Number(length);
    throw this.malformed(`has a field of ${length} bytes; only ${rest} bytes follow`);
  }

  #checkRoom(bytes: number): void {
    if (this.#end - this.pos < bytes) throw this.malformed('ends within a number');
  }

  #float(): number {
    this.#checkRoom(4);
    return this.readFloat();
  }

  /** Whole numbers with a sign, also keys and lengths. Beyond 2^53 - 1 it is a bigint. */
  override readVarint(): number {
    let low = 0; // 49 bits
    let high = 0n;
    for (let i = 0; i < 10; ++i) {
      this.#checkRoom(1);
      const byte = this.buf[this.pos++] as number;
      if (i < 7) low += (byte & 0x7f) * 2 ** (7 * i);
      else high |= BigInt(byte & 0x7f) << BigInt(7 * i);
      if (byte >= 0x80) continue;
      if (i < 7) return low;
      const value = BigInt.asIntN(64, high + BigInt(low));
      return Number.isSafeInteger(Number(value)) ? Number(value) : (value as unknown as number);
    }
    throw this.malformed('has a number of more than 10 bytes');
  }

  #count(): void {
    if (++this.#items > mostItems)
      throw this.malformed(`has more than ${mostItems} messages and texts, which is the limit`);
  }
}
