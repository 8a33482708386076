/**
 * Reads files of weights: GGUF and safetensors. It reads the header first, and each tensor when it
 * is asked for. This is an entry of its own, so that a page without such files does not load it.
 *
 * @module wgemm/weights
 */
export type { BlobLike, ReadRange, WeightsSource } from './weights/source.js';
export type {
  WeightsInfo,
  WeightsTensor,
  WeightsTensorOf,
  WeightsTypes,
} from './weights/tensor.js';
export { type GGUFFile, type GGUFValue, readGGUF } from './weights/gguf.js';
export { readSafetensors, type SafetensorsFile } from './weights/safetensors.js';
