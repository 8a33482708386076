/** Files that are read by ranges: bytes in memory, a Blob, an address, or a function. */
import { bytesIn, classOf } from '../base/arrays.js';
import { type Format, formatOf, givenBytes } from '../base/bytes.js';
import { ArgumentError, describe, GemmError } from '../base/errors.js';
import { messageOf } from '../base/port.js';
import { isA, isReadable } from '../base/properties.js';
import { allocate } from '../convert/quantize-numbers.js';

/**
 * A Blob or a File, declared here for projects whose TypeScript does not know them.
 *
 * @category Files of weights
 */
export interface BlobLike {
  /** Size in bytes. */
  readonly size: number;
  /**
   * Returns a part.
   * @param start the first byte
   * @param end the byte after the last one
   */
  slice(start?: number, end?: number): BlobLike;
  /** Reads the bytes. */
  arrayBuffer(): Promise<ArrayBuffer>;
}

/**
 * Reads a range of a file. Returns `length` bytes, or fewer if the file ends before. An error that
 * it throws reaches the caller.
 *
 * @param offset the first byte
 * @param length how many bytes
 *
 * @category Files of weights
 */
export type ReadRange = (
  offset: number,
  length: number,
) => Uint8Array | ArrayBuffer | Promise<Uint8Array | ArrayBuffer>;

/**
 * A file of weights, which is read by ranges:
 *
 * - its bytes. Tensors may be views of them;
 * - a Blob or a File, such as a page's user selects;
 * - an address for `fetch`, as a string or a URL. The server must know the header `Range`;
 * - a function that reads a range, for everything else.
 *
 * @category Files of weights
 */
export type WeightsSource =
  | Uint8Array
  | ArrayBuffer
  | BlobLike
  | string
  | {
      /** The address. */
      readonly href: string;
    }
  | ReadRange;

let decoder: TextDecoder | undefined;

/** @internal Decodes UTF-8. Pages in Jest have no TextDecoder, but they have Node's modules. */
export function decode(bytes: Uint8Array): string {
  const Decoder = globalThis.TextDecoder ?? process.getBuiltinModule('node:util').TextDecoder;
  decoder ??= new Decoder('utf-8', { ignoreBOM: true }); // which is part of a name
  return decoder.decode(bytes);
}

/** Formats that users pass by mistake. */
const formats: readonly Format[] = [
  [/^.{8}\{"/s, 'safetensors'],
  [/^GGUF/, 'GGUF'],
  [/^PK/, 'a zip archive, such as PyTorch writes'],
];

/** The first read of a file, in bytes. */
const firstBytes = 2 ** 16;

/**
 * The most bytes of a header. The largest vocabularies have some 20 MB, and the writers of
 * safetensors stop at 100 MB.
 */
const mostBytes = 2 ** 27;

/** @internal A file. */
export class Source {
  /** Size in bytes; undefined as long as nobody has said it. */
  size: number | undefined;
  /** The first bytes, as far as they were read. They are copies: shared memory may change. */
  head = new Uint8Array();
  readonly #op: string;
  /** What was read, for errors: 'a GGUF file'. */
  readonly #what: string;
  readonly #readRange: ReadRange;

  constructor(op: string, what: string, source: unknown) {
    this.#op = op;
    this.#what = what;
    if (classOf(bytesIn(source)) === 'Uint8Array') {
      const bytes = givenBytes(op, 'source', source);
      this.size = bytes.length;
      this.#readRange = (offset, length) => bytes.subarray(offset, offset + length);
    } else if (isBlob(source)) {
      this.size = source.size;
      this.#readRange = (offset, length) =>
        this.#loaded('cannot be read', source.slice(offset, offset + length).arrayBuffer());
    } else if (typeof source === 'string' || isA(source, 'URL')) {
      const url = String(source);
      this.#readRange = (offset, length) => this.#fetch(url, offset, length);
    } else if (typeof source === 'function') {
      this.#readRange = source as ReadRange;
    } else {
      const rule =
        'it must be a Uint8Array, an ArrayBuffer, a Blob, a URL, or a function that reads a range';
      const found = classOf(source) ?? describe(source);
      throw new ArgumentError(op, 'source', `${op}: source is ${found}; ${rule}`);
    }
  }

  /** The error of bytes that break the format. */
  malformed(found: string): ArgumentError {
    const message = `${this.#op}: source is not ${this.#what}: it ${found}`;
    return new ArgumentError(this.#op, 'source', message);
  }

  /** Reads a range. The result is shorter if the file ends within it. */
  async read(offset: number, length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array();
    const result: unknown = await this.#readRange(offset, length);
    const label = `the result of source for ${length} bytes at ${offset}`;
    const bytes = givenBytes(this.#op, 'source', result, label);
    if (bytes.length > length) {
      const message = `${this.#op}: ${label} has ${bytes.length} bytes; expected ${length} or less`;
      throw new ArgumentError(this.#op, 'source', message);
    }
    return bytes;
  }

  /**
   * Reads until `head` has at least this many bytes.
   * @param more how many there should be afterwards, if the file has them
   */
  async readHead(least: number, more = least): Promise<void> {
    const { length } = this.head;
    if (least <= length) return;
    const end = Math.min(this.size ?? Infinity, mostBytes);
    if (least <= end || length === 0) {
      const most = Math.min(Math.max(least, more, firstBytes), end);
      const next = await this.read(length, Math.max(most - length, 0));
      const head = new Uint8Array(length + next.length);
      head.set(this.head);
      head.set(next, length);
      this.head = head;
      if (head.length < most) this.size ??= head.length;
      if (least <= head.length) return;
    }
    if (least > mostBytes && (this.size ?? Infinity) > mostBytes)
      throw this.malformed(`has a header of more than ${mostBytes} bytes, which is the limit`);
    throw this.otherFormat(`ends within its header, at ${this.size ?? this.head.length}`);
  }

  /** The error of a file that is perhaps of another format. */
  otherFormat(found: string): ArgumentError {
    const format = formatOf(this.head, formats);
    const isOther = format !== undefined && !this.#what.includes(format);
    return this.malformed(isOther ? `is ${format}` : found);
  }

  /** Gives the first bytes free, when the header was read. */
  dropHead(): void {
    this.head = new Uint8Array();
  }

  /** The error of a file that does not load. */
  #failed(found: string, options?: { cause: unknown }): GemmError {
    const message = `${this.#op}: source ${found}`;
    return new GemmError('LOAD', this.#op, 'source', message, options);
  }

  async #loaded<T>(found: string, promise: Promise<T>): Promise<T> {
    try {
      return await promise;
    } catch (cause) {
      throw this.#failed(`${found}: ${messageOf(cause)}`, { cause });
    }
  }

  async #fetch(url: string, offset: number, length: number): Promise<Uint8Array> {
    const headers = { Range: `bytes=${offset}-${offset + length - 1}` };
    const failed = 'cannot be fetched';
    const { status, body, headers: answer } = await this.#loaded(failed, fetch(url, { headers }));
    const refused = (found: string) => {
      // A rejection would be an error that nobody handles.
      body?.cancel().catch(() => undefined);
      return this.#failed(found);
    };
    // Other origins may hide this header.
    const [, first = offset, size] =
      /^bytes (\d+)-\d+\/(?:(\d+)|\*)$/.exec(answer.get('content-range') ?? '') ?? [];
    if (status === 416) {
      void refused('');
      return new Uint8Array(); // the file ends before the range
    }
    if (status === 200) {
      const advice = 'pass a Blob instead: await (await fetch(url)).blob()';
      throw refused(`is on a server that does not answer with a range; ${advice}`);
    }
    if (status !== 206 || !body) throw refused(`has HTTP status ${status}; expected 206`);
    if (Number(first) !== offset)
      throw refused(`answers with a range from ${first} on; expected ${offset}`);
    if (size) this.size ??= Number(size);
    if (size && this.size !== Number(size))
      throw refused(`had ${this.size} bytes before and has ${size} now`);
    const bytes = allocate(this.#op, 'source', 'uint8', length);
    const reader = body.getReader();
    for (let at = 0; ;) {
      const { done, value } = await this.#loaded(failed, reader.read());
      if (done) return bytes.subarray(0, at);
      if (at + value.length > length) {
        reader.cancel().catch(() => undefined);
        throw this.#failed(`answers with more than the ${length} bytes that were asked for`);
      }
      bytes.set(value, at);
      at += value.length;
    }
  }
}

function isBlob(value: unknown): value is BlobLike {
  const { slice, arrayBuffer } = (isReadable(value) ? value : {}) as Record<string, unknown>;
  return typeof slice === 'function' && typeof arrayBuffer === 'function';
}
