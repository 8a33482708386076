/** Reads rows of a matrix in float32, in order, about a megabyte at a time. */
import type { Signal } from '../api/worker-handles.js';
import { DTypeError, ShapeError } from '../base/errors.js';
import { checkSignal, readOptions } from '../base/read-options.js';
import type { Tensor } from '../base/tensor.js';
import { partsOf } from './parts.js';
import { mostOfPart, type Source } from './source.js';
import {
  convertible,
  alignedElements,
  float32Of,
  isConvertible,
  type MatrixInfo,
  type WeightsInfo,
} from './tensor.js';

/**
 * Options of `rows` of a file.
 *
 * @category Files of weights
 */
export interface RowsOptions {
  /** When it aborts, the next step of the iterator is rejected with its reason. Default: none. */
  signal?: Signal | undefined;
}

/**
 * @internal Checks that a tensor is a matrix, and that its type has numbers in float32.
 * @param name the argument that leads to it
 */
export function checkMatrix(op: string, name: string, { type, shape }: MatrixInfo): void {
  const found = `${op}: ${name} is a tensor of`;
  if (!isConvertible(type))
    throw new DTypeError(op, name, `${found} type ${type}; it must be ${convertible()}`);
  if (shape.length === 2) return;
  const rule = 'it must be [N, K]; pass the place of a matrix in it to packFrom()';
  throw new ShapeError(op, name, `${found} shape [${shape.join(', ')}]; ${rule}`);
}

/** @internal Reads rows in float32. */
export async function* rowsOf(
  source: Source,
  info: WeightsInfo,
  options: unknown,
): AsyncGenerator<Tensor<Float32Array>> {
  const op = 'rows';
  const { signal } = readOptions(op, options, ['signal']) as RowsOptions;
  checkSignal(op, signal);
  checkMatrix(op, 'name', info);
  const { type } = info;
  const [n, k] = info.shape as [number, number];
  const rows = Math.max(1, Math.floor(mostOfPart / 4 / k));
  for await (const [first, bytes] of partsOf(source, info, rows, signal)) {
    source.checkUsable(bytes);
    const shape = [Math.min(rows, n - first), k];
    const data = float32Of(op, type, shape, alignedElements(op, type, bytes));
    yield { data, shape, dtype: 'float32' };
  }
}
