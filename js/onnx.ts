/**
 * Runs models in the format of ONNX. This is an entry of its own, so that a page without models
 * does not load it.
 *
 * @module wgemm/onnx
 */
export type {
  OnnxAttribute,
  OnnxGraph,
  OnnxModel,
  OnnxNode,
  OnnxOtherDType,
  OnnxTensor,
  OnnxUnreadTensor,
  OnnxValueInfo,
} from './onnx/read/model.js';
export type { ExternalData } from './onnx/read/tensors.js';
export { type ReadExternalData, type ReadOptions, readOnnx } from './onnx/read/read.js';
export { loadModel, type LoadOptions } from './onnx/run/load.js';
export type {
  ExplainOptions,
  Model,
  ModelProduct,
  ModelResult,
  ModelState,
  ModelStep,
  ModelTensor,
  RunOptions,
} from './onnx/run/model.js';
export type { OnnxDType } from './onnx/read/value.js';
