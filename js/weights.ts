/**
 * Reads files of weights: GGUF and safetensors. It reads the header first, and each tensor when it
 * is asked for. It also packs tensors while it reads them. This is an entry of its own, so that a
 * page without such files does not load it.
 *
 * @module wgemm/weights
 */
export type { BlobLike, ReadRange, StreamLike, WeightsSource } from './weights/source.js';
export type { WeightsFile } from './weights/file.js';
export type { RowsOptions } from './weights/rows.js';
export { type MatrixPlace, packFrom, type PackFromOptions } from './weights/pack-from.js';
export type {
  WeightsInfo,
  WeightsTensor,
  WeightsTensorOf,
  WeightsTypes,
} from './weights/tensor.js';
export { type GGUFFile, type GGUFValue, readGGUF } from './weights/gguf.js';
export { readSafetensors, type SafetensorsFile } from './weights/safetensors.js';
