/** The calls that multiply 8-bit integers. */
import type {
  DataArray,
  DTypeOf,
  Float16ArrayLike,
  Matrix,
  NewArrays,
  QuantizedArray,
  Tensor,
} from '../base/tensor.js';
import type {
  DynamicQuantizeMatMulOptions,
  HalfVector,
  MatMulIntegerOptions,
  MatMulIntegerToFloatOptions,
  QLinearMatMulOptions,
} from '../ops/integer-matmul.js';
import type { QGemmOptions, Scale, ZeroPoint } from '../ops/qgemm.js';
import type {
  Arrival,
  Holding,
  Inputs,
  Operands,
  Options,
  OptionsWithOperands,
  OutOr,
  Outs,
  Place,
  QGemmArray,
  QLinearArray,
  QLinearInputs,
  Weights,
  ZeroPointOfA,
  ZeroPointOfB,
} from './types.js';

/** Products of 8-bit integers. */
export interface QuantizedProducts<P extends Place> {
  /**
   * Computes com.microsoft QGemm into `out`, and returns `out`. Everything else is as without
   * `out`.
   *
   * @param inputs the operands, with their scales and zero points
   * @param options with `out`, of shape (M, N). Its type is float32 without `yScale`; with it, the
   * type of `yZeroPoint`. It must not overlap an input
   * @typeParam O the type of `out`
   * @returns `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<
    Y extends QGemmArray<S>,
    U extends DataArray,
    O extends Operands[P] | undefined,
    S extends Holding<Scale | null | undefined>[P] = undefined,
  >(
    inputs: Inputs[P] & { yScale?: S },
    options: Options<QGemmOptions>[P] & { out: O } & { out: Outs<QGemmArray<S>, Y, U>[P] },
  ): Arrival<OutOr<O, Matrix<NewArrays[DTypeOf<QGemmArray<S>>]>>>[P];

  /**
   * Computes com.microsoft QGemm of quantized a and b, each int8 or uint8, to float32:
   *
   *     acc = sum over k of (a' - aZeroPoint) * (b' - bZeroPoint[n]) + c, in int32 that wraps
   *     s[n] = (alpha * aScale) * bScale[n], each step rounded to float32
   *     y = acc * s[n]
   *
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
   *
   * @example
   * const a = quantize({ data: Float32Array.of(0, 1, 2, 3), shape: [2, 2] });
   * const b = quantize(
   *   { data: Float32Array.of(1, 0, 0, 1), shape: [2, 2] },
   *   { symmetric: true, axis: 1 },
   * );
   * const y = wg.qgemm({
   *   a, aScale: a.scale, aZeroPoint: a.zeroPoint,
   *   b, bScale: b.scale, bZeroPoint: b.zeroPoint,
   * });
   * y.data; // Float32Array, about [0, 1, 2, 3]
   *
   * @param inputs the operands, with their scales and zero points
   * @param options all have defaults
   * @returns Y of shape (M, N), float32, contiguous, in a new array that the caller owns
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<Y extends Float32Array, U extends DataArray>(
    inputs: Inputs[P] & { yScale?: null | undefined; yZeroPoint?: null | undefined },
    options?: Options<QGemmOptions>[P] & { out?: Outs<Float32Array, Y, U>[P] },
  ): Arrival<Matrix<NewArrays['float32']>>[P];

  /**
   * Computes com.microsoft QGemm of quantized a and b to a quantized result. The sums `acc` are as
   * without `yScale`. Then s[n] = ((alpha * aScale) * bScale[n]) / yScale, each step rounded to
   * float32. Y is acc * s[n] rounded half to even, plus yZeroPoint, saturated.
   *
   * @param inputs the operands, with their scales and zero points, and `yScale` and `yZeroPoint`
   * @param options all have defaults
   * @returns Y of shape (M, N), contiguous, in a new array that the caller owns. It has the
   * type of the array of `yZeroPoint`; if that is a number, the type of `a`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<Y extends QuantizedArray, U extends DataArray>(
    inputs: Inputs[P] & { yScale: Holding<Scale>[P]; yZeroPoint: Holding<ZeroPoint>[P] },
    options?: Options<QGemmOptions>[P] & { out?: Outs<QuantizedArray, Y, U>[P] },
  ): Arrival<Matrix<NewArrays['int8' | 'uint8']>>[P];

  /**
   * Computes com.microsoft QGemm of inputs whose type does not say whether there is a `yScale`.
   *
   * @param inputs the operands, with their scales and zero points
   * @param options all have defaults
   * @returns Y of shape (M, N), contiguous, in a new array that the caller owns. It is float32, or
   * of 8 bits with `yScale` and `yZeroPoint`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<
    Y extends QGemmArray<S>,
    U extends DataArray,
    S extends Holding<Scale | null | undefined>[P] = undefined,
  >(
    inputs: Inputs[P] & { yScale?: S },
    options?: Options<QGemmOptions>[P] & { out?: Outs<QGemmArray<S>, Y, U>[P] },
  ): Arrival<Matrix<NewArrays['float32' | 'int8' | 'uint8']>>[P];

  /**
   * Computes ONNX MatMulInteger of a and b, each int8 or uint8, with batch axes that broadcast as
   * in `matmul`:
   *
   *     y = sum over k of (a' - aZeroPoint[m]) * (b' - bZeroPoint[n]), in int32 that wraps
   *
   * https://onnx.ai/onnx/operators/onnx__MatMulInteger.html
   *
   * @example
   * const a = { data: Uint8Array.of(11, 7, 3, 10, 6, 2), shape: [2, 3] };
   * const b = { data: Uint8Array.of(1, 4, 2, 5, 3, 6), shape: [3, 2] };
   * const y = wg.matmulInteger(a, b, { aZeroPoint: 12 });
   * y.data; // Int32Array [-38, -83, -44, -98]
   *
   * @param a (..., M, K), or (..., K, M) with `transA`; or (K); int8 or uint8
   * @param b (..., K, N), or (..., N, K) with `transB`; or (K); int8 or uint8. Or the packed
   * weights that `pack` made of it for `'qgemm'`
   * @param options all have defaults
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), int32, in a new array that the caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmulInteger<
    Y extends Int32Array,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    A = unknown,
    B = unknown,
    ZA = undefined,
    ZB = undefined,
  >(
    a: A & Operands<QuantizedArray>[P],
    b: B & (Operands<QuantizedArray>[P] | Weights[P]),
    options?: ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B> &
      OptionsWithOperands<MatMulIntegerOptions>[P] & { out?: O } & {
        out?: Outs<Int32Array, Y, U>[P];
      },
  ): Arrival<OutOr<O, Tensor<NewArrays['int32']>>>[P];

  /**
   * Computes ONNX QLinearMatMul of quantized a and b, with batch axes that broadcast as in
   * `matmul`. The sums `acc` are the result of `matmulInteger`. Then s = (aScale * bScale[n]) /
   * yScale, each step rounded to float32. Y is acc * s rounded half to even, plus yZeroPoint,
   * saturated.
   *
   * https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html
   *
   * @example
   * const a = { data: Uint8Array.of(208, 236, 0, 238), shape: [1, 4] };
   * const b = { data: Uint8Array.of(152, 51, 60, 26), shape: [4, 1] };
   * const y = wg.qlinearMatmul({
   *   a, aScale: 0.0066, aZeroPoint: 113,
   *   b, bScale: 0.00705, bZeroPoint: 114,
   *   yScale: 0.0107, yZeroPoint: 118,
   * });
   * y.data; // Uint8Array [79]
   *
   * @param inputs the operands, with their scales and zero points
   * @param options all have defaults
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), int8 or uint8, in a new array that the caller owns; or `out`.
   * It has the type of the array of `yZeroPoint`; if that is a number or absent, the type of `a`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qlinearMatmul<
    Y extends QLinearArray<A, Z>,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    A = unknown,
    B = unknown,
    Z = undefined,
    ZA = undefined,
    ZB = undefined,
  >(
    inputs: QLinearInputs[P] & { a: A; b: B; yZeroPoint?: Z | undefined } & ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B>,
    options?: Options<QLinearMatMulOptions>[P] & { out?: O } & {
      out?: Outs<QLinearArray<A, Z>, Y, U>[P];
    },
  ): Arrival<OutOr<O, Tensor<NewArrays['int8' | 'uint8']>>>[P];

  /**
   * Computes com.microsoft DynamicQuantizeMatMul of a float32 a and a quantized b, with batch axes
   * that broadcast as in `matmul`. The call quantizes a to uint8, with one scale and one zero point
   * for all of a, as ONNX DynamicQuantizeLinear does. Then it computes `matmulIntegerToFloat`.
   *
   * com.microsoft.DynamicQuantizeMatMul in
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
   *
   * @example
   * const a = { data: Float32Array.of(0, 51, 102, 255), shape: [2, 2] };
   * const b = { data: Int8Array.of(2, 0, 0, 4), shape: [2, 2] };
   * const y = wg.dynamicQuantizeMatmul(a, b, { bScale: 0.5, bias: Float32Array.of(1, 2) });
   * y.data; // Float32Array [1, 104, 103, 512]
   *
   * @param a (..., M, K), or (..., K, M) with `transA`; or (K); float32; each element must be
   * finite
   * @param b (..., K, N), or (..., N, K) with `transB`; or (K); int8 or uint8. Or the packed
   * weights that `pack` made of it for `'qgemm'`
   * @param options `bScale` is required
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), float32, in a new array that the caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  dynamicQuantizeMatmul<
    Y extends Float32Array,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    B = unknown,
    ZB = undefined,
  >(
    a: Operands<Float32Array>[P],
    b: B & (Operands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfB<ZB, B> &
      OptionsWithOperands<DynamicQuantizeMatMulOptions>[P] & { out?: O } & {
        out?: Outs<Float32Array, Y, U>[P];
      },
  ): Arrival<OutOr<O, Tensor<NewArrays['float32']>>>[P];

  /**
   * Computes com.microsoft MatMulIntegerToFloat of quantized a and b, with batch axes that
   * broadcast as in `matmul`. The sums `acc` are the result of `matmulInteger`. Y is acc * (aScale
   * * bScale[n]) + bias[n], each step rounded to float32.
   *
   * com.microsoft.MatMulIntegerToFloat in
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
   *
   * @example
   * const a = { data: Uint8Array.of(1, 2, 3, 4), shape: [2, 2] };
   * const b = { data: Int8Array.of(1, 0, 0, -1), shape: [2, 2] };
   * const y = wg.matmulIntegerToFloat(a, b, { aScale: 0.5, bScale: 0.5, aZeroPoint: 1 });
   * y.data; // Float32Array [0, -0.25, 0.5, -0.75]
   *
   * @param a (..., M, K), or (..., K, M) with `transA`; or (K); int8 or uint8
   * @param b (..., K, N), or (..., N, K) with `transB`; or (K); int8 or uint8. Or the packed
   * weights that `pack` made of it for `'qgemm'`
   * @param options `aScale` and `bScale` are required
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), float32, in a new array that the caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmulIntegerToFloat<
    Y extends Float32Array,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    A = unknown,
    B = unknown,
    ZA = undefined,
    ZB = undefined,
  >(
    a: A & Operands<QuantizedArray>[P],
    b: B & (Operands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B> &
      OptionsWithOperands<MatMulIntegerToFloatOptions<Float32Array, Scale>>[P] & {
        out?: O;
      } & { out?: Outs<Float32Array, Y, U>[P] },
  ): Arrival<OutOr<O, Tensor<NewArrays['float32']>>>[P];

  /**
   * Computes com.microsoft MatMulIntegerToFloat with float16 scales and bias to float16: in
   * float32, and rounded once. A scale that is a number is rounded to float16.
   *
   * @param a as with float32 scales
   * @param b as with float32 scales
   * @param options one of `aScale` and `bScale` must have a type, float16
   * @typeParam O the type of `out`
   * @returns Y of shape (..., M, N), float16, in a new array that the caller owns; or `out`. The
   * array is a Float16Array if the engine has one, else a Uint16Array
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmulIntegerToFloat<
    Y extends Uint16Array | Float16ArrayLike,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    A = unknown,
    B = unknown,
    ZA = undefined,
    ZB = undefined,
  >(
    a: A & Operands<QuantizedArray>[P],
    b: B & (Operands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B> &
      OptionsWithOperands<
        MatMulIntegerToFloatOptions<Uint16Array | Float16ArrayLike, HalfVector>
      >[P] & { out?: O } & { out?: Outs<Uint16Array | Float16ArrayLike, Y, U>[P] },
  ): Arrival<OutOr<O, Tensor<NewArrays['float16']>>>[P];
}
