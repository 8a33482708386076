/** What this entry shares with `wgemm`. Its bundle names nothing else of `internals`. */
import { internals } from '../index.js';

// Imported in one place: each module of a bundle that imports them would name them again.
export {
  ArgumentError,
  DTypeError,
  DisposedError,
  GemmError,
  OutOfMemoryError,
  ShapeError,
  UnsupportedError,
  createGemm,
  quantize,
} from '../index.js';

/** @internal */
export const {
  arrayOfType,
  bufferOf,
  bytesIn,
  bytesPerElement,
  checkAttached,
  classOf,
  contiguousStrides,
  cores,
  describe,
  disposable,
  dtypesOf,
  halfOf,
  has,
  isReadable,
  large,
  lengthOf,
  messageOf,
  narrow,
  offsetOf,
  readOptions,
  unpolluted,
  viewOf,
  widen,
} = internals;

/**
 * @internal The bytes that a caller gives; undefined if it gives something else. The slice() of a
 * Buffer would make no copy, so the result is a plain Uint8Array.
 */
export function bytesOf(op: string, name: string, value: unknown): Uint8Array | undefined {
  const bytes = bytesIn(value);
  if (classOf(bytes) !== 'Uint8Array') return undefined;
  const given = bytes as Uint8Array;
  checkAttached(op, name, given, 'is a detached array');
  return viewOf('uint8', bufferOf(given), offsetOf(given), lengthOf(given)) as Uint8Array;
}
