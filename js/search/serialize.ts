/** Writes indexes as the bytes that bytes.ts describes. */
import type { NewArrays } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import { allocated, indexTypes, metrics, rescoreTypes, type Settings } from './arguments.js';
import {
  eachStaged,
  layoutOf,
  lengthAt,
  magic,
  positionsAt,
  sumAt,
  sumOf,
  version,
} from './bytes.js';
import type { Ledger } from './ledger.js';
import type { Pieces } from './pieces.js';

const op = 'serialize';

/** A UTF-16 unit in JSON. Not every host has a TextEncoder. */
const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** @internal */
export function bytesOfIndex(
  core: Core,
  settings: Settings,
  ledger: Ledger,
  pieces: Pieces,
): NewArrays['uint8'] {
  const { metric, dtype, rescore, dimensions } = settings;
  const { size, count, hasIds, next } = ledger;
  // A page may give Array.prototype a toJSON.
  const ids = allocated(op, 'the ids', () =>
    hasIds
      ? JSON.stringify(Object.assign(ledger.ids(), { toJSON: 0 })).replace(/[^ -~]/g, escaped)
      : '',
  );
  const { idsAt, starts, sizes, end } = layoutOf(core, settings, size, ids.length);
  const bytes: NewArrays['uint8'] = allocated(op, `${end} bytes`, () => new Uint8Array(end));
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < magic.length; ++i) bytes[i] = magic.charCodeAt(i);
  view.setUint32(8, version, true);
  const types = [metrics.indexOf(metric), indexTypes.indexOf(dtype), rescoreTypes.indexOf(rescore)];
  [end, dimensions, ...types, size, next, ids.length].forEach((number, i) =>
    view.setFloat64(lengthAt + 8 * i, number, true),
  );
  for (let i = 0; i < ids.length; ++i) bytes[idsAt + i] = ids.charCodeAt(i);
  let position = positionsAt;
  for (let slot = 0; slot < count; ++slot) {
    if (!ledger.isLive(slot)) continue;
    view.setUint32(position, ledger.positionAt(slot), true);
    position += 4;
  }
  let done = 0;
  if (size > 0)
    eachStaged(core, op, pieces, count, sizes, (piece, column, first, length, places) => {
      pieces.read(op, piece, column, length, places);
      const { HEAPU8 } = core.module;
      // Copies runs of vectors that were not removed.
      for (let from = 0; from < length;) {
        let to = from;
        while (to < length && ledger.isLive(first + to)) ++to;
        places.forEach((place, part) => {
          const each = sizes[part] as number;
          const copied = HEAPU8.subarray(place + from * each, place + to * each);
          bytes.set(copied, (starts[part] as number) + done * each);
        });
        done += to - from;
        from = to + 1;
      }
    });
  view.setUint32(sumAt, sumOf(core, op, bytes), true);
  return bytes;
}
