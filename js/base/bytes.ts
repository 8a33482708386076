/** Bytes of files: how a caller gives them, and which format they have. */
import { bufferOf, bytesIn, checkAttached, classOf, lengthOf, offsetOf, viewOf } from './arrays.js';
import { ArgumentError, describe } from './errors.js';
import { isReadable } from './properties.js';

/** @internal Advice for a value that is not bytes but leads to them. */
export function adviceForBytes(value: unknown): string {
  try {
    const { arrayBuffer, href } = (isReadable(value) ? value : {}) as Record<string, unknown>;
    if (typeof arrayBuffer === 'function') return ': await its arrayBuffer()';
    return typeof value === 'string' || typeof href === 'string' ? ': fetch it first' : '';
  } catch {
    return ''; // a proxy of a URL has no href
  }
}

/**
 * @internal The bytes that a caller gives, as a plain Uint8Array: the slice() of a Buffer makes no
 * copy.
 */
export function givenBytes(op: string, argument: string, value: unknown, label = argument) {
  const given = bytesIn(value) as Uint8Array;
  const found = classOf(given);
  if (found !== 'Uint8Array') {
    const rule = `it must be a Uint8Array or an ArrayBuffer${adviceForBytes(value)}`;
    const message = `${op}: ${label} is ${found ?? describe(value)}; ${rule}`;
    throw new ArgumentError(op, argument, message);
  }
  checkAttached(op, argument, given, 'is a detached array');
  return viewOf('uint8', bufferOf(given), offsetOf(given), lengthOf(given)) as Uint8Array;
}

/** @internal How files of a format begin, each byte as one letter; and its name. */
export type Format = readonly [begin: RegExp, what: string];

const formats: readonly Format[] = [
  [/^$/, 'an empty file'],
  [/^version https:.*lfs/, 'a pointer of Git LFS'],
  [/^(ï»¿)?\s*</, 'a page of HTML'],
  [/^\s*[[{]/, 'JSON'],
  [/^.\x8b/s, 'gzip'],
  [/^[\t\n\r -~]+$/, 'text'],
];

/** @internal The format of bytes, by how they begin; undefined if it is not known. */
export function formatOf(bytes: Uint8Array, others: readonly Format[] = []): string | undefined {
  const begin = String.fromCharCode(...bytes.subarray(0, 64));
  return [...others, ...formats].find(([pattern]) => pattern.test(begin))?.[1];
}
