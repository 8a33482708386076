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
 * Reads a range of a file. Returns `length` bytes, or fewer if the file ends before. `packFrom` and
 * `rows` ask for the next range when they no longer need them. Tensors that `tensor` returns may be
 * views of them. An error that it throws reaches the caller.
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

/**
 * A ReadableStream of bytes, such as the body of a response; declared here for projects whose
 * TypeScript does not know it.
 *
 * @category Files of weights
 */
export interface StreamLike {
  /** Takes the stream, which then has no other reader. */
  getReader(): {
    /** Reads the next bytes. */
    read(): Promise<{
      /** Whether the stream has ended. */
      done: boolean;
      /** The bytes, unless it has ended. */
      value?: Uint8Array | undefined;
    }>;
    /** Says that no more bytes are needed. */
    cancel(): Promise<unknown>;
  };
}

type StreamReader = ReturnType<StreamLike['getReader']>;

/** @internal Reads bytes in order. */
export interface Flow {
  /** Returns the next bytes; fewer if the file ends. */
  pull(length: number): Promise<Uint8Array>;
  /** Stops reading. */
  cancel?(): void;
}

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

/** @internal About how many bytes of a flow are read at once. */
export const mostOfPart = 2 ** 20;

/** @internal A file. */
export class Source {
  /** Size in bytes; undefined as long as nobody has said it. */
  size: number | undefined;
  /** The first bytes, as far as they were read. They are copies: shared memory may change. */
  head = new Uint8Array();
  /** Whether the next range may be read before the last one is used. A function may reuse bytes. */
  readonly readsAhead: boolean;
  readonly #op: string;
  /** What was read, for errors: 'a GGUF file'. */
  readonly #what: string;
  /** Begins to read a range. */
  readonly #begin: (offset: number, length: number, stop?: AbortController) => Flow | Promise<Flow>;

  /** @param isOnce whether the source is read once, in order. Then it may be a stream */
  constructor(op: string, what: string, source: unknown, isOnce = false) {
    this.#op = op;
    this.#what = what;
    this.readsAhead = typeof source !== 'function';
    let read: ReadRange;
    this.#begin = (offset) => ({
      pull: async (length) => {
        const result: unknown = await read(offset, length);
        const label = `the result of source for ${length} bytes at ${offset}`;
        offset += length;
        const bytes = givenBytes(op, 'source', result, label);
        if (bytes.length <= length) return bytes;
        const message = `${op}: ${label} has ${bytes.length} bytes; expected ${length} or less`;
        throw new ArgumentError(op, 'source', message);
      },
    });
    if (classOf(bytesIn(source)) === 'Uint8Array') {
      const bytes = givenBytes(op, 'source', source);
      this.size = bytes.length;
      // The bytes may be detached by now.
      read = (offset, length) => givenBytes(op, 'source', bytes).subarray(offset, offset + length);
    } else if (isBlob(source)) {
      this.size = source.size;
      read = (offset, length) =>
        this.#loaded('cannot be read', source.slice(offset, offset + length).arrayBuffer());
    } else if (typeof source === 'string' || isA(source, 'URL')) {
      this.#begin = (...range) => this.#fetch(String(source), ...range);
    } else if (typeof source === 'function') {
      read = source as ReadRange;
    } else if (isOnce && isStream(source)) {
      this.#begin = async (offset) => {
        const failed = 'cannot be read';
        const reader = Promise.resolve().then(() => source.getReader());
        const flow = this.#flowOf(failed, await this.#loaded(failed, reader), Infinity);
        let at = 0;
        const pull = async (length: number) => {
          while (at < offset) {
            const { length } = await flow.pull(Math.min(offset - at, mostOfPart));
            if (length === 0) {
              this.size = at;
              break;
            }
            at += length;
          }
          return flow.pull(length);
        };
        return { ...flow, pull };
      };
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

  /** Throws if bytes of the caller were detached after they were read. */
  checkUsable(bytes: Uint8Array): void {
    givenBytes(this.#op, 'source', bytes);
  }

  /** Reads a range. The result is shorter if the file ends within it. */
  async read(offset: number, length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array();
    const flow = this.flow(offset, length);
    const bytes = await flow.pull(length);
    flow.cancel();
    return bytes;
  }

  /**
   * Reads a range in order, part by part.
   * @param stop what `cancel` aborts, for a request that has no answer yet
   */
  flow(offset: number, length: number, stop?: AbortController): Required<Flow> {
    const starting = this.#begin(offset, length, stop);
    return {
      pull: async (length) => (await starting).pull(length),
      cancel: () => {
        stop?.abort();
        Promise.resolve(starting).then(
          (flow) => flow.cancel?.(),
          () => undefined,
        );
      },
    };
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

  /** Reads a stream, which must have at most `left` bytes. */
  #flowOf(failed: string, reader: StreamReader, left: number): Flow {
    const most = left;
    let isOver = false;
    let rest: Uint8Array = new Uint8Array();
    /** Returns whether there are more bytes. */
    const more = async () => {
      if (isOver) return false;
      const { done, value } = await this.#loaded(failed, reader.read());
      if (done) return false;
      rest = givenBytes(this.#op, 'source', value, 'a part of source');
      left -= rest.length;
      if (left >= 0) return true;
      cancel();
      throw this.#failed(`answers with more than the ${most} bytes that were asked for`);
    };
    const pull = async (length: number) => {
      const bytes = allocate(this.#op, 'source', 'uint8', length);
      let at = 0;
      while (at < length && (rest.length > 0 || (await more()))) {
        const part = rest.subarray(0, length - at);
        bytes.set(part, at);
        at += part.length;
        rest = rest.subarray(part.length);
      }
      if (left === 0 && rest.length === 0) await more();
      return bytes.subarray(0, at);
    };
    const cancel = () => {
      isOver = true;
      // The caller's function may be missing, throw, or return anything.
      (async () => reader.cancel())().catch(() => undefined);
    };
    return { pull, cancel };
  }

  async #fetch(url: string, offset: number, length: number, stop?: AbortController): Promise<Flow> {
    const headers = { Range: `bytes=${offset}-${offset + length - 1}` };
    const failed = 'cannot be fetched';
    const request = fetch(url, stop ? { headers, signal: stop.signal } : { headers });
    const { status, body, headers: answer } = await this.#loaded(failed, request);
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
      return { pull: () => Promise.resolve(new Uint8Array()) }; // the file ends before the range
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
    return this.#flowOf(failed, body.getReader(), length);
  }
}

function isStream(value: unknown): value is StreamLike {
  return isReadable(value) && typeof (value as Partial<StreamLike>).getReader === 'function';
}

function isBlob(value: unknown): value is BlobLike {
  const { slice, arrayBuffer } = (isReadable(value) ? value : {}) as Record<string, unknown>;
  return typeof slice === 'function' && typeof arrayBuffer === 'function';
}
