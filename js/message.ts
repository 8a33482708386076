/**
 * Arguments of calls as messages between a page and its worker: what a structured clone would lose
 * or refuse is told apart, so that the worker finds the same mistakes in the same arguments.
 */
import { handleIn, handleKey, has, isRevoked } from './properties.js';
import {
  bufferOf,
  byteLengthOf,
  classOf,
  type DataArray,
  type DType,
  detached,
  isDetached,
  lengthOf,
  offsetOf,
  tensorKeys,
} from './tensor.js';

/** @internal What a handle stands for. */
export interface Held {
  /** 'imitation': what only looks like a handle, by its prototype. */
  readonly kind: 'tensor' | 'weights' | 'imitation';
  /** Number in the worker; 0 for what is no part of that worker's instance. */
  readonly id: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** @internal A value of a message: itself where it is a primitive. */
export type Sent =
  | undefined
  | null
  | boolean
  | number
  | string
  | bigint
  | SentArray
  | Held
  /** The length is one that an array has, unless it is a proxy's. */
  | { readonly kind: 'list'; readonly items: Sent[]; readonly length: Sent }
  | { readonly kind: 'object'; readonly own: Entries; readonly inherited: Entries }
  /** A handle of another copy of the package. */
  | { readonly kind: 'handle'; readonly text: string }
  | { readonly kind: 'function' | 'symbol' | 'revoked' };

type Entries = [key: string, value: Sent][];

/** @internal A typed array, as a part of a buffer of the message. */
export interface SentArray {
  readonly kind: 'array';
  /** Of its class. */
  readonly name: string;
  /** Among the buffers of the message; -1 for an array that is detached. */
  buffer: number;
  /** In bytes. */
  offset: number;
  readonly length: number;
}

/** @internal The arguments of a call. */
export interface Packet {
  readonly args: Sent[];
  /** A number stands for a buffer of so many bytes that only a check is to see. */
  readonly buffers: (ArrayBuffer | number)[];
}

/**
 * @internal What a packet has of the buffers under arrays: copies; the buffers, which are detached,
 * or copies of those that cannot move, such as WebAssembly's; or their sizes.
 */
export type Way = 'copy' | 'move' | 'describe';

interface Part {
  readonly sent: SentArray;
  readonly array: DataArray;
  readonly buffer: ArrayBufferLike;
  readonly start: number;
  readonly end: number;
  /** Whether a check reads its elements. */
  readonly isRead: boolean;
}

/** Of the inputs of qgemm. */
const readByChecks = /(Scale|ZeroPoint)$/;

/**
 * @internal Reads arguments, and gives the function that makes packets of them. Arrays that overlap
 * also overlap in each packet: `out` may be C, but must not overlap A.
 * @param heldOf the handle that an object is, if it is one
 */
export function packetsOf(
  args: readonly unknown[],
  heldOf: (value: object) => Held | undefined,
): (way: Way) => Packet {
  const parts: Part[] = [];

  function encode(value: unknown, depth: number, isRead = false): Sent {
    if (typeof value === 'function' || typeof value === 'symbol')
      return { kind: typeof value } as Sent;
    if (typeof value !== 'object' || value === null) return value as Sent;
    if (isRevoked(value)) return { kind: 'revoked' };
    // Inputs and options are at depth 0, tensors at 1 at the most, their arrays, shapes and strides
    // at 2. Errors tell no more of what is deeper than its kind, and no array may be detached that
    // is no operand.
    const name = classOf(value);
    if (name !== undefined && depth <= 2) return encodeArray(value as DataArray, name, isRead);
    if (Array.isArray(value)) {
      const length: unknown = value.length;
      // No shape may have as many.
      const count = depth <= 2 && typeof length === 'number' ? Math.min(length, 65) : 0;
      const items = Array.from({ length: count }, (_, i) => encode(value[i], 3));
      return { kind: 'list', items, length: encode(length, 3) };
    }
    const held = depth <= 2 ? heldOf(value) : undefined;
    if (held) return held;
    const text = depth <= 2 ? handleIn(value) : undefined;
    if (text !== undefined) return { kind: 'handle', text };
    if (name !== undefined || depth >= 2 || (depth === 1 && !has(value, 'data')))
      return { kind: 'object', own: [], inherited: [] };
    const { own, inherited } = propertiesOf(value);
    const encoded = (properties: object): Entries =>
      Object.entries(properties).map(([key, item]) => [
        key,
        encode(item, depth + 1, isRead || readByChecks.test(key)),
      ]);
    return { kind: 'object', own: encoded(own), inherited: encoded(inherited) };
  }

  function encodeArray(array: DataArray, name: string, isRead: boolean): SentArray {
    const buffer = bufferOf(array);
    const length = lengthOf(array);
    const start = offsetOf(array);
    const sent: SentArray = {
      kind: 'array',
      name,
      buffer: isDetached(buffer) ? -1 : 0,
      offset: 0,
      length,
    };
    if (sent.buffer === 0)
      parts.push({ sent, array, buffer, start, end: start + byteLengthOf(array), isRead });
    return sent;
  }

  const encoded = args.map((arg) => encode(arg, 0));
  return (way) => {
    // The call is refused for an array that has gone since, and must not cost the others.
    const alive = parts.filter(isAsItWas);
    const moves = way === 'move' && alive.length === parts.length;
    const buffers: Packet['buffers'] = [];
    const place = (group: readonly Part[], from: number, buffer: ArrayBuffer | number) => {
      for (const { sent, start } of group)
        Object.assign(sent, { buffer: buffers.length, offset: start - from });
      buffers.push(buffer);
    };
    for (const { sent } of parts) sent.buffer = -1;
    for (const buffer of new Set(alive.map((part) => part.buffer))) {
      const inIt = alive.filter((part) => part.buffer === buffer).sort((a, b) => a.start - b.start);
      const moved = moves && inIt.some(({ start, end }) => start < end) ? move(buffer) : undefined;
      if (moved) {
        place(inIt, 0, moved);
        continue;
      }
      for (const cluster of clusters(inIt)) {
        // From a multiple of 8 bytes, so that every array stays aligned.
        const first = Math.floor((cluster[0] as Part).start / 8) * 8;
        const last = Math.max(...cluster.map((part) => part.end));
        const isDescribed = way === 'describe' && !cluster.some((part) => part.isRead);
        place(cluster, first, isDescribed ? last - first : copyOf(buffer, first, last));
      }
    }
    return { args: encoded, buffers };
  };
}

function isAsItWas({ sent, array, buffer, start }: Part): boolean {
  return lengthOf(array) === sent.length && offsetOf(array) === start && !isDetached(buffer);
}

function copyOf(buffer: ArrayBufferLike, first: number, last: number): ArrayBuffer {
  const copy = new Uint8Array(last - first);
  copy.set(new Uint8Array(buffer, first, last - first));
  return copy.buffer;
}

/**
 * @internal The properties of an object, each read once. Own ones that can be enumerated are told
 * apart, since only these may be unknown; of a tensor, no others are read than those that say where
 * the elements are.
 */
export function propertiesOf(value: object): {
  own: Record<string, unknown>;
  inherited: Record<string, unknown>;
} {
  const keys = Object.keys(value);
  const others = new Set<string>(tensorKeys.filter((key) => has(value, key)));
  const isTensor = others.has('data');
  if (!isTensor) {
    for (
      let from: unknown = value;
      from && from !== Object.prototype;
      from = Object.getPrototypeOf(from)
    ) {
      for (const key of Object.getOwnPropertyNames(from)) others.add(key);
    }
  }
  for (const key of keys) others.delete(key);
  const read = (names: Iterable<string>) =>
    Object.fromEntries(
      Array.from(names, (key) => [
        key,
        isTensor && !tensorKeys.includes(key) ? undefined : (value as Record<string, unknown>)[key],
      ]),
    );
  return { own: read(keys), inherited: read(others) };
}

/** @internal A buffer's bytes in another, which detaches the first; undefined if it cannot move. */
export function move(buffer: ArrayBufferLike): ArrayBuffer | undefined {
  try {
    return structuredClone(buffer as ArrayBuffer, { transfer: [buffer as ArrayBuffer] });
  } catch {
    return undefined;
  }
}

/** Parts of a buffer, in the order of their starts, by what hangs together. */
function clusters(parts: readonly Part[]): Part[][] {
  const found: Part[][] = [];
  let end = -1;
  for (const part of parts) {
    if (part.start < end) found.at(-1)?.push(part);
    else found.push([part]);
    end = Math.max(end, part.end);
  }
  return found;
}

/**
 * @internal The arguments again, zeros for what is only described. @param object what a handle
 * stands for
 */
export function fromPacket(packet: Packet, object: (held: Held) => unknown): unknown[] {
  const buffers = packet.buffers.map((buffer) =>
    typeof buffer === 'number' ? new ArrayBuffer(buffer) : buffer,
  );
  function decode(value: Sent): unknown {
    if (typeof value !== 'object' || value === null) return value;
    switch (value.kind) {
      case 'array':
        return arrayOf(value, buffers);
      case 'list':
        return listOf(value.items.map(decode), decode(value.length));
      case 'object':
        return Object.setPrototypeOf(
          decodeEntries(value.own),
          decodeEntries(value.inherited),
        ) as unknown;
      case 'function':
        return () => undefined;
      case 'symbol':
        return Symbol();
      case 'handle':
        return { [handleKey]: value.text };
      case 'revoked': {
        const { proxy, revoke } = Proxy.revocable({}, {});
        revoke();
        return proxy;
      }
      default:
        return object(value);
    }
  }
  const decodeEntries = (entries: Entries) =>
    Object.fromEntries(entries.map(([key, item]) => [key, decode(item)]));
  return packet.args.map(decode);
}

/** An array, or a proxy of one if it says of its length what no array can. */
function listOf(items: unknown[], length: unknown): unknown[] {
  if (typeof length === 'number' && length >>> 0 === length)
    return Object.assign(items, { length });
  return new Proxy(items, {
    get: (target, key) => (key === 'length' ? length : (Reflect.get(target, key) as unknown)),
  });
}

/** @internal */
export function arrayOf(
  { name, buffer, offset, length }: SentArray,
  buffers: readonly ArrayBuffer[],
): DataArray {
  type ArrayClass = new (buffer: ArrayBuffer, offset: number, length: number) => DataArray;
  const ArrayOfName = (globalThis as unknown as Record<string, ArrayClass>)[name] as ArrayClass;
  if (buffer >= 0) return new ArrayOfName(buffers[buffer] as ArrayBuffer, offset, length);
  return detached(new ArrayOfName(new ArrayBuffer(8), 0, 1));
}

/** @internal A whole array as part of a message, whose buffer is to be transferred. */
export function sentArray(array: DataArray): { sent: SentArray; buffers: ArrayBuffer[] } {
  const sent: SentArray = {
    kind: 'array',
    name: classOf(array) as string,
    buffer: 0,
    offset: offsetOf(array),
    length: lengthOf(array),
  };
  return { sent, buffers: [bufferOf(array) as ArrayBuffer] };
}
