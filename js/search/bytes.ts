/**
 * An index as bytes, little-endian. Each part begins at a multiple of 8 bytes:
 *
 *     0  "wgemm-ix"
 *     8  uint32: version of this form
 *    12  uint32: checksum of the bytes from 16 on
 *    16  float64: number of all bytes
 *    24  float64: dimensions; metric, type and type for rescoring as indices into `metrics`,
 *        `indexTypes` and `rescoreTypes`; number of vectors; the next position; bytes of ids
 *    80  positions, uint32
 *     -  ids as an array of JSON in ASCII, or nothing in an index without ids
 *     -  the vectors in the type of the index, one after the other
 *     -  in an int8 index their scales, float32
 *     -  with rescoring the vectors in the type for it
 */
import type { Core } from '../instance/core.js';
import type { Settings } from './arguments.js';
import { bytesOf, checksum, mostStaged, type Piece, type Pieces } from './pieces.js';

/** @internal */
export const magic = 'wgemm-ix';

/** @internal */
export const version = 1;

/** @internal Offsets in bytes. */
export const sumAt = 12,
  lengthAt = 16,
  numbersAt = 24,
  positionsAt = 80;

/** The checksum is made of this many bytes at a time. They fit in the block. */
const mostSummed = 2 ** 12;

const padded = (bytes: number) => Math.ceil(bytes / 8) * 8;

/** @internal Bytes of each vector in the three last parts, and where the parts begin. */
export function layoutOf(
  core: Core,
  { dimensions, dtype, rescore }: Omit<Settings, 'metric' | 'capacity'>,
  count: number,
  idBytes: number,
) {
  const sizes = [
    dimensions * bytesOf(core, dtype),
    dtype === 'int8' ? 4 : 0,
    rescore ? dimensions * bytesOf(core, rescore) : 0,
  ] as const;
  const idsAt = positionsAt + padded(count * 4);
  let end = idsAt + padded(idBytes);
  const starts = sizes.map((size) => {
    const start = end;
    end += padded(count * size);
    return start;
  }) as unknown as readonly [number, number, number];
  return { idsAt, starts, sizes, end };
}

/**
 * @internal Calls back for each run of vectors that are in one piece. Each run is short enough for
 * memory in the heap, which has `places` for the parts of `layoutOf`; 0 for a part that is absent.
 */
export function eachStaged(
  core: Core,
  op: string,
  pieces: Pieces,
  count: number,
  sizes: readonly [number, number, number],
  run: (
    piece: Piece,
    column: number,
    first: number,
    length: number,
    places: readonly [number, number, number],
  ) => void,
): void {
  const [a, b, c] = sizes;
  const bytes = a + b + c;
  let most = mostStaged(count, bytes);
  core.guard(op, () => {
    let memory;
    // The index may fill the memory.
    while ((memory = core.module.allocate(most * bytes)) === 0) {
      if (most === 1) throw core.outOfMemory(bytes, op);
      most = Math.ceil(most / 2);
    }
    // The vectors come last, since vectors that have scales may begin at any address.
    const places = [memory + most * (b + c), b && memory, c && memory + most * b] as const;
    try {
      pieces.eachRun(0, count, most, (piece, column, first, length) =>
        run(piece, column, first, length, places),
      );
    } finally {
      core.module.release(memory);
    }
  });
}

/** @internal The checksum of the bytes from `lengthAt` on. */
export function sumOf(core: Core, op: string, bytes: Uint8Array): number {
  return core.guard(op, () => {
    const { block } = core;
    const memory = block.byteOffset + 16; // after the arguments: an index may fill the memory
    let sum = 0;
    for (let at = lengthAt; at < bytes.length; at += mostSummed) {
      const part = bytes.subarray(at, at + mostSummed);
      core.module.HEAPU8.set(part, memory);
      block[0] = memory;
      block[1] = part.length;
      core.check(core.module.vectors(checksum), op, op);
      sum = Math.imul(sum, 0x01000193) ^ block[0];
    }
    return sum >>> 0;
  });
}
