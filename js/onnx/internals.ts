/** What this entry shares with `wgemm`. Its bundle names nothing else of `internals`. */
import { internals } from '../index.js';

// Imported in one place: each module of a bundle that imports them would name them again.
export {
  ArgumentError,
  DTypeError,
  DisposedError,
  GemmError,
  HeapTensor,
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
  bytesPerElement,
  checkAttached,
  classOf,
  contiguousStrides,
  cores,
  describe,
  disposable,
  dtypesOf,
  formatOf,
  givenBytes,
  halfOf,
  has,
  isError,
  isList,
  isRank,
  isReadable,
  large,
  lengthOf,
  messageOf,
  offsetOf,
  readOptions,
  toHalves,
  unpolluted,
  viewOf,
} = internals;
