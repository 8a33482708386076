/**
 * The API of `wgemm`, computed in a worker, so that the page stays responsive. Calls return
 * promises.
 *
 * This entry also exports what does not depend on where an instance computes: the errors,
 * {@link wgemm!tensor | tensor}, {@link wgemm!toNested | toNested},
 * {@link wgemm!quantize | quantize}, {@link wgemm!dequantize | dequantize},
 * {@link wgemm!quantizeBias | quantizeBias}, {@link wgemm!quantizeNBits | quantizeNBits},
 * {@link wgemm!fromGGUF | fromGGUF}, {@link wgemm!version | version}, and the types of tensors and
 * options. These are the objects of `wgemm` and `wgemm/linear`, so `instanceof` agrees.
 *
 * @example
 * import { createGemm } from 'wgemm/worker';
 * const wg = await createGemm();
 * const a = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] };
 * const b = { data: Float32Array.of(1, 0, 0, 1, 1, 1), shape: [3, 2] };
 * const y = await wg.gemm(a, b);
 * y.data; // Float32Array [4, 5, 10, 11]
 * wg.dispose();
 *
 * @module wgemm/worker
 */
export {
  ArgumentError,
  DisposedError,
  DTypeError,
  GemmError,
  OpsetError,
  OutOfMemoryError,
  PackMismatchError,
  ShapeError,
  UnsupportedError,
} from './base/errors.js';
export { dequantize, quantize, quantizeBias } from './convert/quantize.js';
export { fromGGUF, quantizeNBits } from './convert/quantize-nbits.js';
export { tensor, toNested } from './convert/foreign.js';
export { version } from './instance/start-core.js';
export type { Activation } from './call/options.js';
export type {
  ArrayOf,
  Arrays,
  DataArray,
  DType,
  DTypeOf,
  Float16ArrayLike,
  GemmArray,
  NBitsArray,
  QuantizedArray,
  QuantizedDType,
  Matrix,
  NewArrays,
  ResultArray,
  Tensor,
  TensorInput,
} from './base/tensor.js';
export type { Assets, AssetSource } from './instance/load.js';
export type { CreateOptions, Info, KernelInfo } from './instance/start-core.js';
export type {
  ElementOf,
  ForeignTensor,
  MathjsMatrix,
  MlMatrix,
  NdarrayLike,
  Nested,
  NestedInput,
  SourceArray,
  TensorOptions,
  TensorSource,
  TfjsBuffer,
  TfjsTensor,
} from './convert/foreign-types.js';
export type { ErrorCode } from './base/errors.js';
export type { Explanation } from './ops/explain.js';
export type { GGUFTensor, QuantizedNBits, QuantizeNBitsOptions } from './convert/quantize-nbits.js';
export type { GemmOptions } from './ops/gemm.js';
export type { AttentionOptions } from './ops/attention.js';
export type { MatMulOptions } from './ops/matmul.js';
export type {
  MatMulIntegerOptions,
  MatMulIntegerToFloatOptions,
  QLinearMatMulInputs,
  QLinearMatMulOptions,
} from './ops/integer-matmul.js';
export type { MatMulNBitsOptions } from './ops/matmul-nbits.js';
export type { MemoryUse } from './ops/alloc.js';
export type { PackNBitsOptions, PackOptions } from './ops/pack.js';
export type { OperationName } from './call/call.js';
export type { QGemmInputs, QGemmOptions, Scale, ZeroPoint } from './ops/qgemm.js';
export type { SyrkArray, SyrkOptions } from './ops/syrk.js';
export type {
  Quantized,
  QuantizedBias,
  QuantizedInput,
  QuantizedPerAxis,
  QuantizedPerTensor,
  QuantizeBiasOptions,
  QuantizeOptions,
} from './convert/quantize.js';
export type {
  HoldingHandles,
  InMemory,
  InWorker,
  WorkerOptions,
  WorkerDescribedTensor,
  WorkerOut,
  WorkerQGemmInputs,
  WorkerTensorLike,
} from './api/types.js';
export {
  createLinear,
  deserializeLinear,
  type LinearCallOptions,
  type WorkerFloatLinearOptions,
  type WorkerInt8LinearOptions,
  type WorkerLinear,
  type WorkerLinearWeights,
} from './worker/linear.js';
export type {
  EitherLinearOptions,
  FloatLinearOptions,
  Int8FloatWeights,
  Int8LinearOptions,
  Int8Quantization,
  Int8Weights,
  LinearInfo,
  LinearInput,
  LinearOptions,
  LinearOutput,
  Quantization,
} from './linear/create-linear.js';
export {
  createIndex,
  deserializeIndex,
  type IndexCallOptions,
  type WorkerIndexFilter,
  type WorkerVectorIndex,
} from './worker/search.js';
export type {
  IndexDType,
  IndexInfo,
  IndexOptions,
  Match,
  MaxSimOptions,
  MaxSimOut,
  Metric,
  SearchOptions,
  SearchOut,
  VectorArray,
  VectorId,
  VectorList,
} from './search/types.js';
export { WorkerObject, WorkerTensor, WorkerWeights } from './api/worker-handles.js';
export { WorkerRecording } from './api/worker-recording.js';
export type { WorkerRecordedCalls } from './api/recorded-calls.js';
export { createGemm, type WorkerCreateOptions, WorkerGemm } from './worker/gemm.js';
export type { BlockFormat, TensorView } from './instance/heap.js';
export type { NBitsWeights } from './convert/quantize-nbits.js';
export type { CallOptions, Signal } from './api/worker-handles.js';
