/** Reads the bytes of a model. */
import { UnsupportedError } from '../index.js';
import type { OnnxModel } from './model.js';

/**
 * Options of {@link readOnnx}.
 *
 * @category Models
 */
export interface ReadOptions {
  /**
   * Returns bytes that the model keeps outside of it.
   *
   * `location` is a path relative to the model, as the model states it: check it before you use it.
   * `offset` and `length` are in bytes; `length` is undefined for all bytes after `offset`.
   * Default: a model with external data is refused.
   */
  externalData?:
    | ((part: {
        readonly location: string;
        readonly offset: number;
        readonly length: number | undefined;
      }) => Uint8Array | Promise<Uint8Array>)
    | undefined;
}

/**
 * Reads a model, and checks nothing about its operators.
 *
 * @category Models
 * @param bytes the bytes of an .onnx file. Tensors of the result may be views of them
 * @param options options
 */
export function readOnnx(
  bytes: Uint8Array | ArrayBuffer,
  options?: ReadOptions,
): Promise<OnnxModel> {
  throw new UnsupportedError('readOnnx', 'bytes', `readOnnx: ${typeof bytes} ${typeof options}`);
}
