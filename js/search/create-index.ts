/** `createIndex` and `deserializeIndex`. */
import type { Gemm } from '../api/create-gemm.js';
import { ArgumentError, describe } from '../base/errors.js';
import { type Core, cores } from '../instance/core.js';
import { readBytes } from '../ops/pack.js';
import { readSettings } from './arguments.js';
import { readIndex } from './deserialize.js';
import type { IndexOptions, VectorId, VectorIndex } from './types.js';
import { VectorIndex as Index } from './vector-index.js';

/**
 * Makes an index of vectors without any vectors.
 *
 * @example
 * const index = createIndex<string>(wg, { dimensions: 3 });
 * index.add(Float32Array.of(1, 0, 0, 0, 1, 0), ['east', 'north']);
 * index.search([3, 4, 0], 2).map(({ id }) => id); // ['north', 'east']
 *
 * @param wg the instance that has the index in its memory
 * @param options `dimensions` is required
 * @typeParam I the type of ids. The default is for an index without ids
 * @returns the index. The caller must `dispose()` of it
 * @throws DTypeError, ArgumentError, DisposedError
 *
 * @category Search
 */
export function createIndex<I extends VectorId = number>(
  wg: Gemm,
  options: IndexOptions,
): VectorIndex<I>;
export function createIndex(wg: unknown, options: unknown): never {
  const core = coreOf('createIndex', wg);
  return new Index(core, readSettings(core, options)) as never;
}

/**
 * Makes an index from the bytes that `serialize()` returned. The index has its own copy, and the
 * same ids and positions.
 *
 * @param wg the instance that has the index in its memory
 * @param bytes all bytes of the index: an array, or a buffer, which may be shared
 * @typeParam I the type of ids
 * @returns the index. The caller must `dispose()` of it
 * @throws PackMismatchError for bytes that are cut short, were changed, or are not an index;
 * ArgumentError, DisposedError, OutOfMemoryError
 *
 * @category Search
 */
export function deserializeIndex<I extends VectorId = number>(
  wg: Gemm,
  bytes: Uint8Array | ArrayBufferLike,
): VectorIndex<I>;
export function deserializeIndex(wg: unknown, bytes: unknown): unknown {
  const op = 'deserializeIndex';
  const core = coreOf(op, wg);
  return readIndex(core, readBytes(core, bytes, op));
}

function coreOf(op: string, wg: unknown): Core {
  const core: Core | undefined = cores.get(wg as object);
  if (core) return core;
  const advice = `for an instance of wgemm/worker, import ${op} from wgemm/worker`;
  const rule = `it must be an instance of wgemm; ${advice}`;
  throw new ArgumentError(op, 'wg', `${op}: wg is ${describe(wg)}; ${rule}`);
}
