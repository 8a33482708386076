/** The calls that multiply floats, integers of 32 and 64 bits, and weights of a few bits. */
import type {
  DataArray,
  DType,
  Matching,
  Matrix,
  NBitsArray,
  NewArrays,
  ResultArray,
  Tensor,
} from '../base/tensor.js';
import type { AttentionOptions } from '../ops/attention.js';
import type { GemmOptions } from '../ops/gemm.js';
import type { MatMulNBitsOptions } from '../ops/matmul-nbits.js';
import type { MatMulOptions } from '../ops/matmul.js';
import type { SyrkArray, SyrkOptions } from '../ops/syrk.js';
import type {
  Alpha,
  Arrival,
  Bits,
  Factors,
  Level,
  MatMulArray,
  MatMulResultArray,
  NBits,
  Not8Bit,
  Operands,
  Options,
  OptionsWithOperands,
  OutOr,
  Outs,
  OutType,
  Place,
  Weights,
  Widened,
} from './types.js';

/** Products of floating point, of 32-bit and 64-bit integers, and of weights of a few bits. */
export interface FloatProducts<P extends Place> {
  /**
   * Computes ONNX Gemm into `out`, and returns `out`. Everything else is as without `out`.
   *
   * @param a A of shape (M, K), or (K, M) with `transA`; not int8 or uint8
   * @param b B of shape (K, N), or (N, K) with `transB`, and of the type of A. Or the packed
   * weights that `pack` made of it
   * @param c C: a tensor of the type of A that broadcasts to (M, N) in one direction. Or a number,
   * or a bigint with int64 and uint64. Or nothing, from opset 11 on
   * @param options with `out`, of shape (M, N) and the type of A. It may be C itself, but must not
   * overlap A or B
   * @typeParam O the type of `out`
   * @returns `out`
   * @throws ShapeError, DTypeError, OpsetError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  gemm<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
    O extends Operands[P] | undefined,
    F extends number | bigint = number,
  >(
    a: Operands<A>[P] & Not8Bit<A>,
    b: Operands<B>[P] | Weights[P],
    c: Operands<C>[P] | number | bigint | null | undefined,
    options: Options<GemmOptions>[P] & Factors<F, A> & { out: O } & { out: Outs<A, Y, U>[P] },
  ): Arrival<OutOr<O, Matrix<ResultArray<A>>>>[P];

  /**
   * Computes ONNX Gemm: Y = alpha * A' * B' + beta * C. A' is A or its transpose, and B' is B or
   * its transpose. https://onnx.ai/onnx/operators/onnx__Gemm.html
   *
   * The call checks all arguments before it writes. It only reads A, B and C, which remain the
   * caller's.
   *
   * @example
   * const a = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] };
   * const b = { data: Float32Array.of(1, 0, 0, 1, 1, 1), shape: [3, 2] };
   * const y = wg.gemm(a, b, 10, { alpha: 0.5 });
   * y.data; // Float32Array [12, 12.5, 15, 15.5]
   *
   * @param a A of shape (M, K), or (K, M) with `transA`; not int8 or uint8
   * @param b B of shape (K, N), or (N, K) with `transB`, and of the type of A. Or the packed
   * weights that `pack` made of it
   * @param c C: a tensor of the type of A that broadcasts to (M, N) in one direction. Or a number,
   * or a bigint with int64 and uint64. Or nothing, from opset 11 on
   * @param options all have defaults
   * @returns Y of shape (M, N) and the type of A, contiguous, in a new array that the caller owns
   * @throws ShapeError, DTypeError, OpsetError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  gemm<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
    F extends number | bigint = number,
  >(
    a: Operands<A>[P] & Not8Bit<A>,
    b: Operands<B>[P] | Weights[P],
    c?: Operands<C>[P] | number | bigint | null,
    options?: Options<GemmOptions>[P] & Factors<F, A> & { out?: Outs<A, Y, U>[P] },
  ): Arrival<Matrix<ResultArray<A>>>[P];

  /**
   * Computes oneDNN Graph MatMul into `out`, and returns `out`. Everything else is as without
   * `out`.
   *
   * @param src (..., M, K), or (..., K, M) with `transposeA`; or a vector (K); not int8 or uint8
   * @param weights (..., K, N), or (..., N, K) with `transposeB`; or a vector (K); of the type of
   * src. Or the packed weights that `pack` made of them
   * @param bias a tensor of the type of src that broadcasts to the result in one direction. Or a
   * number, rounded to the type of src. Or nothing
   * @param options with `out`, of shape (..., M, N). It has the type of src, or float32 for a src
   * of float16 or bfloat16. It may be bias itself, but must not overlap src or weights
   * @typeParam O the type of `out`
   * @returns `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmul<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends MatMulArray<A>,
    U extends DataArray,
    O extends Operands[P] | undefined,
    D extends DType = never,
    F extends number | bigint = number,
  >(
    src: Operands<A>[P] & Not8Bit<A>,
    weights: Operands<B>[P] | Weights[P],
    bias: Operands<C>[P] | number | bigint | null | undefined,
    options: Options<MatMulOptions>[P] &
      Alpha<F, A> & { outType?: OutType<A, D>; out: O } & {
        out: Outs<MatMulArray<A>, Y, U>[P];
      },
  ): Arrival<OutOr<O, Tensor<MatMulResultArray<A, D>>>>[P];

  /**
   * Computes oneDNN Graph MatMul of float16 or bfloat16 (or float32) to float32. Everything else
   * is as without `outType`.
   *
   * @param src (..., M, K), or (..., K, M) with `transposeA`; or a vector (K)
   * @param weights (..., K, N), or (..., N, K) with `transposeB`; or a vector (K); of the type of
   * src. Or the packed weights that `pack` made of them
   * @param bias a tensor of the type of src that broadcasts to the result in one direction. Or a
   * number, rounded to the type of src. Or nothing
   * @param options with `outType: 'float32'`
   * @returns (..., M, N) of float32, contiguous, in a new array that the caller owns
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmul<
    A extends Widened,
    B extends Matching<A>,
    C extends Matching<A>,
    F extends number | bigint = number,
  >(
    src: Operands<A>[P],
    weights: Operands<B>[P] | Weights[P],
    bias: Operands<C>[P] | number | bigint | null | undefined,
    options: Options<MatMulOptions>[P] & Alpha<F, A> & { outType: 'float32'; out?: undefined },
  ): Arrival<Tensor<NewArrays['float32']>>[P];

  /**
   * Computes oneDNN Graph MatMul: dst = alpha * src * weights + bias, for stacks of matrices. The
   * last two axes are the matrix. The axes before them are batch axes, which broadcast in both
   * directions, as in NumPy. A vector is a row as src and a column as weights, and the result does
   * not have that axis. https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
   *
   * @example
   * // 2 products of (3, 4) and (4, 5). All share the weights.
   * const src = { data: new Float32Array(2 * 3 * 4).fill(1), shape: [2, 3, 4] };
   * const weights = { data: new Float32Array(4 * 5).fill(1), shape: [4, 5] };
   * const y = wg.matmul(src, weights, 0.5, { alpha: 2 });
   * y.shape; // [2, 3, 5]
   * y.data; // Float32Array [8.5, 8.5, ...]
   *
   * @param src (..., M, K), or (..., K, M) with `transposeA`; or a vector (K); not int8 or uint8
   * @param weights (..., K, N), or (..., N, K) with `transposeB`; or a vector (K); of the type of
   * src. Or the packed weights that `pack` made of them
   * @param bias a tensor of the type of src that broadcasts to the result in one direction. Or a
   * number, rounded to the type of src. Or nothing
   * @param options all have defaults
   * @returns (..., M, N) of the type of src or `outType`, contiguous, in a new array that the
   * caller owns
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmul<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    Y extends MatMulArray<A>,
    U extends DataArray,
    D extends DType = never,
    F extends number | bigint = number,
  >(
    src: Operands<A>[P] & Not8Bit<A>,
    weights: Operands<B>[P] | Weights[P],
    bias?: Operands<C>[P] | number | bigint | null,
    options?: Options<MatMulOptions>[P] &
      Alpha<F, A> & {
        outType?: OutType<A, D>;
        out?: Outs<MatMulArray<A>, Y, U>[P];
      },
  ): Arrival<Tensor<MatMulResultArray<A, D>>>[P];

  /**
   * Computes the products of all pairs of rows of A', such as a Gram matrix or a covariance: Y =
   * alpha * A' * transpose(A'). A' is A or its transpose. The call takes half of the work of
   * `gemm`, and Y is exactly symmetric. BLAS calls the operation syrk.
   *
   * @example
   * // 3 samples of 2 features: the sums of the products of features.
   * const samples = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [3, 2] };
   * const y = wg.syrk(samples, { transA: true });
   * y.shape; // [2, 2]
   * y.data; // Float32Array [35, 44, 44, 56]
   *
   * @param a A of shape (N, K), or (K, N) with `transA`; float32 or float64
   * @param options all have defaults
   * @typeParam O the type of `out`
   * @returns Y of shape (N, N) and the type of A, contiguous, in a new array that the caller owns;
   * or `out`
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError; nothing is
   * written then
   */
  syrk<
    A extends SyrkArray,
    Y extends Matching<A>,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
  >(
    a: Operands<A>[P],
    options?: Options<SyrkOptions>[P] & { out?: O } & { out?: Outs<A, Y, U>[P] },
  ): Arrival<OutOr<O, Matrix<ResultArray<A>>>>[P];

  /**
   * Computes scaled dot-product attention: softmax(scale * q * k' + mask) * v for each head. Scores
   * are never written whole. Each `heads / keyHeads` heads of q in a row share a head of k and v.
   * The call needs an instance of `createGemm({ models: true })`. It computes in float32. Let
   * s be the largest sum of the magnitudes of a score: of scale * q[i] * k[i] over i, and of a
   * finite mask. The result is within (2 * (size + 12) * s + 1.5 * keys + 12) * 2^-24 times the
   * largest |v| of the exact one, and is then rounded to the type of q. A query that sees no key
   * has a result of 0.
   * https://onnx.ai/onnx/operators/onnx__Attention.html
   *
   * @example
   * const q = { data: new Float32Array(12 * 8 * 64).fill(0.1), shape: [12, 8, 64] };
   * const k = { data: new Float32Array(12 * 20 * 64).fill(0.1), shape: [12, 20, 64] };
   * const v = { data: new Float32Array(12 * 20 * 64).fill(2), shape: [12, 20, 64] };
   * const y = wg.attention(q, k, v, { causal: true });
   * y.shape; // [12, 8, 64]
   * y.data; // Float32Array [2, 2, ...]
   *
   * @param q (batch, heads, queries, size) of float32, float16 or bfloat16, without the first axis
   * or the first two if there is one batch, or one head
   * @param k (batch, keyHeads, keys, size), of the rank and the type of q
   * @param v (batch, keyHeads, keys, width), of the rank and the type of q
   * @param options all have defaults
   * @typeParam O the type of `out`
   * @returns (batch, heads, queries, width) of the rank and the type of q, in a new array that the
   * caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError;
   * UnsupportedError without `models: true`
   */
  attention<
    A extends NBitsArray,
    K extends Matching<A>,
    V extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
  >(
    q: Operands<A>[P],
    k: Operands<K>[P],
    v: Operands<V>[P],
    options?: OptionsWithOperands<AttentionOptions>[P] & { out?: O } & {
      out?: Outs<A, Y, U>[P];
    },
  ): Arrival<OutOr<O, Tensor<ResultArray<A>>>>[P];

  /**
   * Computes com.microsoft MatMulNBits of a and weights of 2, 4 or 8 bits. The weights have a scale
   * and a zero point z for each column n and each block of `blockSize` steps of k:
   *
   *     y = sum over k of a[m, k] * (code[n, k] - z) * scale, plus bias[n]
   *
   * com.microsoft.MatMulNBits in
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
   *
   * @example
   * const b = { data: new Float32Array(64 * 3).fill(0.5), shape: [64, 3] };
   * const weights = wg.pack(quantizeNBits(b), { op: 'matmulNBits' });
   * const a = { data: new Float32Array(2 * 64).fill(1), shape: [2, 64] };
   * const y = wg.matmulNBits(a, weights);
   * y.shape; // [2, 3]
   * y.data; // Float32Array [32, 32, ...]
   * weights.dispose();
   *
   * @param a (..., K), float32, float16 or bfloat16
   * @param weights B, with scales of the type of a, as `quantizeNBits` makes it. Or the packed
   * weights that `pack` made of it
   * @param options all have defaults
   * @typeParam O the type of `out`
   * @returns Y of shape (..., N) and the type of a, in a new array that the caller owns; or `out`
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmulNBits<
    A extends NBitsArray,
    S extends Matching<A>,
    C extends Matching<A>,
    Y extends Matching<A>,
    U extends DataArray,
    O extends Operands[P] | undefined = undefined,
    N extends number = 4,
    K extends number = number,
    L extends number = 0,
  >(
    a: Operands<A>[P],
    weights: (NBits<S>[P] & Bits<N, K>) | Weights[P],
    options?: OptionsWithOperands<MatMulNBitsOptions<C>>[P] &
      Level<L> & { out?: O } & {
        out?: Outs<A, Y, U>[P];
      },
  ): Arrival<OutOr<O, Tensor<ResultArray<A>>>>[P];
}
