/** `packFrom`: packs a tensor while it is read. */
import type { Gemm } from '../api/create-gemm.js';
import type { InstanceLink, Signal, WorkerWeights } from '../api/worker-handles.js';
import { ArgumentError, describe, DTypeError, ShapeError } from '../base/errors.js';
import { readSizes } from '../base/layout.js';
import { isReadable } from '../base/properties.js';
import { checkSignal, readOptions } from '../base/read-options.js';
import type { DataArray, DType } from '../base/tensor.js';
import { operandOf } from '../call/operand.js';
import { cores, links } from '../instance/core.js';
import type { BlockFormat, PackedWeights } from '../instance/heap.js';
import type { PartedWeights } from '../ops/pack-parts.js';
import type { WorkerGemm } from '../worker/gemm.js';
import { sourceOf, tensorIn, type WeightsFile } from './file.js';
import { packRows } from './parts.js';
import { checkMatrix } from './rows.js';
import { Source, type StreamLike, type WeightsSource } from './source.js';
import { byteLengthOf, dtypeOf, alignedElements, isSize, type MatrixInfo } from './tensor.js';

/**
 * Options of `packFrom`.
 *
 * @category Files of weights
 */
export interface PackFromOptions {
  /**
   * The type that elements of `F32` are packed as, rounded to nearest even. Default: float32.
   * Must be absent for tensors of other types, which keep their type.
   */
  as?: 'float32' | 'float16' | 'bfloat16' | undefined;
  /**
   * When it aborts, the call is rejected with its reason, and the memory of the weights is free.
   * Default: none.
   */
  signal?: Signal | undefined;
}

/**
 * Where a matrix is in a source. It may be an element of `tensors` of a file, or a part of a
 * tensor, such as one expert.
 *
 * @category Files of weights
 */
export interface MatrixPlace {
  /** The type, as GGUF and safetensors name it, such as `'Q4_K'` or `'BF16'`. */
  readonly type: string;
  /** [N, K], in elements. */
  readonly shape: readonly number[];
  /** Where it begins, in bytes. Default 0. */
  readonly offset?: number | undefined;
}

const op = 'packFrom';

/** The types that F32 can be packed as. */
const kinds = ['float32', 'float16', 'bfloat16'];

/**
 * Packs a matrix [N, K] of a file while it reads it, about a megabyte at a time. So the matrix
 * never lies in memory as a whole, except in its packed form. The weights are K x N, as after
 * `pack(tensor, { trans: true })`.
 *
 * Blocks of ggml (Q4_0 to Q6_K) stay as they are. The weights then have a
 * {@link wgemm!PackedWeights.format | format}, and are for `matmulNBits`. Weights of F32, F16 and
 * BF16 are for `matmul` and `gemm`.
 *
 * @example
 * const file = await readGGUF('https://example.com/model.gguf');
 * const weights = await packFrom(wg, file, 'blk.0.attn_q.weight');
 * weights.format; // 'Q4_K'
 * const y = wg.matmulNBits(x, weights); // at accuracy level 4
 *
 * @param wg an instance of `wgemm` or of `wgemm/worker`
 * @param file what `readGGUF` or `readSafetensors` returned
 * @param name the name of a tensor
 * @param options all have defaults
 * @typeParam W the class of the instance
 * @returns a promise of the weights. The caller must `dispose()` of them
 * @throws by rejection: ArgumentError (also for a source that ends within the tensor, and a scale
 * that is infinite or NaN), DTypeError, ShapeError, GemmError with code `LOAD` if the source does
 * not load, DisposedError, OutOfMemoryError; what a function that reads ranges throws. The memory
 * of the weights is free then
 *
 * @category Files of weights
 */
export function packFrom<W extends Gemm | WorkerGemm>(
  wg: W,
  file: WeightsFile,
  name: string,
  options?: PackFromOptions,
): Promise<W extends Gemm ? PackedWeights : WorkerWeights>;

/**
 * Packs a matrix [N, K] whose place the caller knows, while it reads it.
 *
 * @example
 * const { body } = await fetch('q_proj.bin');
 * const weights = await packFrom(wg, body, { type: 'BF16', shape: [4096, 4096] });
 *
 * @param wg an instance of `wgemm` or of `wgemm/worker`
 * @param source where the bytes are; also a file whose header was read, or a stream, which is read
 * to the end of the matrix and then cancelled
 * @param place type, shape and offset
 * @param options all have defaults
 * @typeParam W the class of the instance
 * @returns a promise of the weights. The caller must `dispose()` of them
 * @throws by rejection: as with a file
 */
export function packFrom<W extends Gemm | WorkerGemm>(
  wg: W,
  source: WeightsSource | StreamLike | WeightsFile,
  place: MatrixPlace,
  options?: PackFromOptions,
): Promise<W extends Gemm ? PackedWeights : WorkerWeights>;

export async function packFrom(
  wg: unknown,
  from: unknown,
  what: unknown,
  options?: unknown,
): Promise<never> {
  const instance = cores.get(wg as object) ?? (links.get(wg as object) as InstanceLink | undefined);
  if (!instance) {
    const rule = 'it must be an instance of wgemm or wgemm/worker';
    throw new ArgumentError(op, 'wg', `${op}: wg is ${describe(wg)}; ${rule}`);
  }
  instance.checkAlive(op);
  const { as, signal } = readOptions(op, options, ['as', 'signal']) as PackFromOptions;
  checkSignal(op, signal);
  const [source, info] = isReadable(what)
    ? [sourceOf(from) ?? new Source(op, 'a file with this tensor', from, true), readPlace(what)]
    : tensorIn(op, from, what);
  checkMatrix(op, isReadable(what) ? 'place' : 'name', info);
  const { type } = info;
  const [n, k] = info.shape as [number, number];
  const own = dtypeOf(type);
  const isBlocks = own === undefined;
  if (as !== undefined && !(type === 'F32' && kinds.includes(as))) {
    const rule = `it must be ${kinds.join(' or ')} for F32, and absent for other types`;
    throw new DTypeError(op, 'as', `${op}: as is ${describe(as)}; ${rule}`);
  }
  if (signal?.aborted) throw signal.reason;
  const weights = { type: isBlocks ? (type as BlockFormat) : (as ?? own), k, n } as PartedWeights;
  const dtype = instance.dtypes.indexOf((own ?? 'uint8') as DType);
  const partOf = (first: number, bytes: Uint8Array) => {
    const data = alignedElements(op, type, bytes) as DataArray;
    const shape = isBlocks ? [data.length] : [data.length / k, k];
    return [{ trans: 1, row: 0, col: first }, operandOf('B', dtype, shape, data)] as const;
  };
  // Panels of packed weights have 8 columns, and parts have whole panels.
  return (await packRows(op, instance, {
    weights,
    source,
    info,
    step: 8,
    partOf,
    signal,
  })) as never;
}

/** Reads the place of a matrix. */
function readPlace(place: object): MatrixInfo {
  const names = ['type', 'shape', 'offset'];
  const read = readOptions(op, place, names, 'place', ['name', 'byteLength']);
  const { type, shape, offset = 0 } = read as { [key in keyof MatrixInfo]: unknown };
  const found = `${op}: place`;
  const sizes = readSizes(op, 'place', 'place has a shape that is', shape);
  if (!isSize(offset)) {
    const rule = 'it must be a whole number from 0';
    throw new ArgumentError(op, 'place', `${found} has offset ${describe(offset)}; ${rule}`);
  }
  const wrong = (what: string) => new ShapeError(op, 'place', `${found} is ${what}`);
  const name = typeof type === 'string' ? type : describe(type); // which no type has as its name
  const byteLength = byteLengthOf(wrong, name, sizes);
  if (!isSize(offset + (byteLength || 0))) {
    const rule = 'the matrix must end before byte 2^53';
    throw new ArgumentError(op, 'place', `${found} has offset ${offset}; ${rule}`);
  }
  return { type: name, shape: sizes, offset, byteLength };
}
