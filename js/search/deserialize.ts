/** Reads indexes from the bytes that bytes.ts describes. */
import { bufferOf, lengthOf, offsetOf, viewOf } from '../base/arrays.js';
import { GemmError, OutOfMemoryError, PackMismatchError } from '../base/errors.js';
import type { Operand } from '../call/operand.js';
import type { Core } from '../instance/core.js';
import {
  defaultCapacity,
  indexTypes,
  metrics,
  mostDimensions,
  mostPositions,
  readIds,
  rescoreTypes,
  type Settings,
} from './arguments.js';
import {
  eachStaged,
  layoutOf,
  lengthAt,
  magic,
  numbersAt,
  positionsAt,
  sumAt,
  sumOf,
  version,
} from './bytes.js';
import type { VectorId } from './types.js';
import { Ledger } from './ledger.js';
import { Pieces } from './pieces.js';
import { VectorIndex } from './vector-index.js';

const op = 'deserializeIndex';

const refuse = (what: string) => new PackMismatchError(op, 'bytes', `${op}: bytes ${what}`);

/** The contents of the header. */
interface Header {
  readonly settings: Settings;
  readonly count: number;
  readonly next: number;
  readonly idBytes: number;
  readonly sum: number;
}

/** @internal Makes an index from the bytes that `serialize` returned. */
export function readIndex(core: Core, { source }: Operand): VectorIndex {
  core.checkAlive(op);
  const given = source as Uint8Array;
  const [buffer, length] = [bufferOf(given), lengthOf(given)];
  const view = viewOf('uint8', buffer, offsetOf(given), length) as Uint8Array;
  // The memory may grow before all bytes are read, which detaches a view of it.
  const bytes = core.owns(buffer) ? view.slice() : view;
  const header = readHeader(bytes);
  const { settings, count, idBytes, sum } = header;
  const layout = layoutOf(core, settings, count, idBytes);
  if (layout.end !== bytes.length) throw refuse('is corrupt: its header has invalid numbers');
  if (sumOf(core, op, bytes) !== sum)
    throw refuse('is corrupt: the checksum does not match the contents');
  const ledger = readLedger(bytes, header, layout.idsAt);
  const pieces = new Pieces(core, settings);
  pieces.reserve(op, 0, count);
  try {
    if (count > 0)
      readVectors(core, bytes, pieces, count, layout, core.dtypes.indexOf(settings.dtype));
  } catch (error) {
    if (!core.disposed) pieces.shrink(0);
    if (!(error instanceof GemmError) || error instanceof OutOfMemoryError) throw error;
    throw refuse(`is corrupt: ${error.message.replace(/^\w+: /, '')}`);
  }
  return new VectorIndex(core, settings, ledger, pieces);
}

function readHeader(bytes: Uint8Array): Header {
  const { length } = bytes;
  if (length < positionsAt) throw refuse(`has ${length} bytes; expected at least ${positionsAt}`);
  // A copy, since another thread may change bytes in shared memory.
  const header = bytes.slice(0, positionsAt);
  const view = new DataView(header.buffer);
  if (String.fromCharCode(...header.subarray(0, 8)) !== magic)
    throw refuse(`is not an index: it does not begin with "${magic}"`);
  const found = view.getUint32(8, true);
  if (found !== version)
    throw refuse(`is of version ${found}; this library reads version ${version}`);
  const expected = view.getFloat64(lengthAt, true);
  if (length !== expected) throw refuse(`has ${length} bytes; expected ${expected}`);
  const numbers = Array.from({ length: 7 }, (_, i) => view.getFloat64(numbersAt + 8 * i, true));
  type Seven = [number, number, number, number, number, number, number];
  const [dimensions, metricAt, typeAt, rescoreAt, count, next, idBytes] = numbers as Seven;
  const [metric, dtype] = [metrics[metricAt], indexTypes[typeAt]];
  const rescore = rescoreTypes[rescoreAt];
  if (
    metric === undefined ||
    dtype === undefined ||
    !(rescoreAt in rescoreTypes) ||
    (rescore !== undefined && dtype !== 'int8') ||
    !numbers.every((number) => Number.isSafeInteger(number) && number >= 0) ||
    dimensions < 1 ||
    dimensions > mostDimensions ||
    next > mostPositions
  )
    throw refuse('is corrupt: its header has invalid numbers');
  const settings = { dimensions, metric, dtype, rescore, capacity: defaultCapacity };
  return { settings, count, next, idBytes, sum: view.getUint32(sumAt, true) };
}

function textOf(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 4096)
    text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return text;
}

function readLedger(bytes: Uint8Array, { count, next, idBytes }: Header, idsAt: number): Ledger {
  const view = new DataView(bytes.slice(positionsAt, idsAt).buffer);
  const positions = Array.from({ length: count }, (_, i) => view.getUint32(4 * i, true));
  const ledger = new Ledger();
  let isRight: boolean;
  try {
    const text = textOf(bytes.slice(idsAt, idsAt + idBytes));
    const ids: VectorId[] | null = text ? readIds(op, 'bytes', JSON.parse(text), true) : null;
    isRight = (ids?.length ?? count) === count && ledger.restore(positions, ids, next);
  } catch {
    isRight = false;
  }
  if (!isRight) throw refuse('is corrupt: its ids or positions are invalid');
  return ledger;
}

function readVectors(
  core: Core,
  bytes: Uint8Array,
  pieces: Pieces,
  count: number,
  { sizes, starts }: ReturnType<typeof layoutOf>,
  dtype: number,
): void {
  eachStaged(core, op, pieces, count, sizes, (piece, column, first, length, places) => {
    places.forEach((place, part) => {
      const each = sizes[part] as number;
      const start = (starts[part] as number) + first * each;
      if (each > 0) core.module.HEAPU8.set(bytes.subarray(start, start + length * each), place);
    });
    const [rows, ...more] = places;
    pieces.appendRows(op, piece, column, dtype, rows, first, length, more);
  });
}
