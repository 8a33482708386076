/**
 * Matrix multiplication on WebAssembly SIMD, exact to the specifications of ONNX Gemm,
 * com.microsoft QGemm and oneDNN Graph MatMul. {@link createGemm} starts an instance, which has the
 * calls: {@link Gemm}.
 *
 * @example
 * import { createGemm } from 'wgemm';
 * const wg = await createGemm();
 * const a = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] };
 * const b = { data: Float32Array.of(1, 0, 0, 1, 1, 1), shape: [3, 2] };
 * const y = wg.gemm(a, b);
 * y.data; // Float32Array [4, 5, 10, 11]
 * y.shape; // [2, 2]
 * y.dtype; // 'float32'
 *
 * @categoryDescription Type machinery
 * By these types, TypeScript infers results and refuses wrong operands. The signatures of calls use
 * them, but these pages show the signatures without them.
 *
 * @module wgemm
 */
export {
  ArgumentError,
  DisposedError,
  DTypeError,
  type ErrorCode,
  GemmError,
  OpsetError,
  OutOfMemoryError,
  PackMismatchError,
  ShapeError,
  UnsupportedError,
} from './base/errors.js';
export {
  type CreateOptions,
  type Info,
  type InstanceOptions,
  type KernelInfo,
  version,
} from './instance/start-core.js';
export type {
  DescribedTensor,
  FactorOf,
  InMemory,
  MatMulArray,
  MatMulResultArray,
  Not8Bit,
  OneOf,
  Operand,
  Out,
  OutOr,
  OutType,
  Packable,
  QGemmArray,
  QLinearArray,
  SameDType,
  TypeIn8Bits,
  Widened,
  ZeroPointOf,
} from './api/types.js';
export { tensor, toNested } from './convert/foreign.js';
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
export type { GemmOptions } from './ops/gemm.js';
export {
  type BlockFormat,
  type HeapObject,
  HeapTensor,
  PackedWeights,
  type TensorLike,
  type TensorView,
} from './instance/heap.js';
export type { Assets, AssetSource } from './instance/load.js';
export type { AttentionOptions } from './ops/attention.js';
export type { MatMulOptions } from './ops/matmul.js';
export type { MatMulNBitsOptions } from './ops/matmul-nbits.js';
export type { Activation } from './call/options.js';
export type { PackNBitsOptions, PackOptions } from './ops/pack.js';
export type {
  Bias,
  DynamicQuantizeMatMulOptions,
  HalfVector,
  MatMulIntegerOptions,
  MatMulIntegerToFloatOptions,
  QLinearMatMulInputs,
  QLinearMatMulOptions,
} from './ops/integer-matmul.js';
export type { OperationName } from './call/call.js';
export type { QGemmInputs, QGemmOptions, Scale, ZeroPoint } from './ops/qgemm.js';
export type { SyrkArray, SyrkOptions } from './ops/syrk.js';
export {
  dequantize,
  quantize,
  quantizeBias,
  type Quantized,
  type QuantizedBias,
  type QuantizedInput,
  type QuantizedPerAxis,
  type QuantizedPerTensor,
  type QuantizeBiasOptions,
  type QuantizeOptions,
} from './convert/quantize.js';
export {
  fromGGUF,
  type GGUFTensor,
  quantizeNBits,
  type QuantizedNBits,
  type QuantizeNBitsOptions,
} from './convert/quantize-nbits.js';
export type {
  ArrayOf,
  Arrays,
  DataArray,
  DType,
  DTypeOf,
  DTypes,
  Float16ArrayLike,
  GemmArray,
  NBitsArray,
  QuantizedArray,
  QuantizedDType,
  Matching,
  Matrix,
  NewArrays,
  ResultArray,
  Tensor,
  TensorInput,
} from './base/tensor.js';
export { type Explanation } from './ops/explain.js';
export { type MemoryUse } from './ops/alloc.js';
export { Recording } from './ops/record.js';
export type { RecordedCalls } from './api/recorded-calls.js';
export { createGemm, Gemm } from './api/create-gemm.js';
export type { NBitsWeights } from './convert/quantize-nbits.js';
