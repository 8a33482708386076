/** Files whose header was read. */
import { classOf } from '../base/arrays.js';
import { ArgumentError, describe } from '../base/errors.js';
import type { Tensor } from '../base/tensor.js';
import { type RowsOptions, rowsOf } from './rows.js';
import type { Source } from './source.js';
import { load, type WeightsInfo, type WeightsTensor } from './tensor.js';

/**
 * The tensors of a file: what {@link GGUFFile} and {@link SafetensorsFile} share.
 *
 * @category Files of weights
 */
export interface WeightsFile {
  /** The tensors, by name. */
  readonly tensors: ReadonlyMap<string, WeightsInfo>;
  /**
   * Loads a tensor: it reads the range of its bytes, and keeps no copy. Rejects with an
   * ArgumentError if the file has no such tensor or ends within it, and with a
   * DTypeError if the library cannot read its type.
   * @param name the name of a tensor
   */
  tensor(name: string): Promise<WeightsTensor>;
  /**
   * Reads a tensor of shape [N, K] in parts of whole rows, about a megabyte each, in float32. It
   * reads the next part while the caller uses one, except from a function. So `for await (const
   * vectors of file.rows(name)) index.add(vectors)` fills an index of vectors of any size. The
   * iterator rejects with the errors of `tensor`, a ShapeError for a tensor of another rank, and a
   * DTypeError for a type without `toFloat32()`.
   * @param name the name of a tensor
   * @param options all have defaults
   */
  rows(name: string, options?: RowsOptions): AsyncGenerator<Tensor<Float32Array>>;
}

/** The source and the tensors of each file, by the object that a reader returned. */
const opened = new WeakMap<object, { source: Source; tensors: ReadonlyMap<string, WeightsInfo> }>();

/** @internal Makes a file of what its header says: adds the functions that read tensors. */
export function fileOf<H extends { readonly tensors: ReadonlyMap<string, WeightsInfo> }>(
  op: string,
  source: Source,
  header: H,
): H & WeightsFile {
  const infoIn = (op: string, name: string) => infoOf(op, header.tensors, name);
  const file: H & WeightsFile = {
    ...header,
    tensor: async (name) => await load(op, source, infoIn(op, name)),
    async *rows(name, options) {
      yield* rowsOf(source, infoIn('rows', name), options);
    },
  };
  opened.set(file, { source, tensors: header.tensors });
  return file;
}

function infoOf(op: string, tensors: ReadonlyMap<string, WeightsInfo>, name: unknown): WeightsInfo {
  const info = tensors.get(name as string);
  if (info) return info;
  const message = `${op}: name is ${describe(name)}; it must be the name of a tensor of the file`;
  throw new ArgumentError(op, 'name', message);
}

/** @internal The source of a file; undefined for other objects. */
export const sourceOf = (file: unknown): Source | undefined => opened.get(file as object)?.source;

/** @internal The source of a file, and where a tensor is in it. */
export function tensorIn(op: string, file: unknown, name: unknown): [Source, WeightsInfo] {
  const found = opened.get(file as object);
  if (found) return [found.source, infoOf(op, found.tensors, name)];
  const rule = 'it must be what readGGUF() or readSafetensors() returned, and not a copy';
  const what = classOf(file) ?? describe(file);
  throw new ArgumentError(op, 'file', `${op}: file is ${what}; ${rule}`);
}
