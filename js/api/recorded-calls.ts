/** The calls that a recording takes, as types. */
/* eslint-disable @typescript-eslint/no-empty-object-type -- the reference needs the interfaces */
import type {
  DataArray,
  DType,
  Float16ArrayLike,
  Matching,
  NBitsArray,
  QuantizedArray,
} from '../base/tensor.js';
import type { NBitsWeights } from '../convert/quantize-nbits.js';
import type { GemmOptions } from '../ops/gemm.js';
import type {
  DynamicQuantizeMatMulOptions,
  HalfVector,
  MatMulIntegerOptions,
  MatMulIntegerToFloatOptions,
  QLinearMatMulInputs,
  QLinearMatMulOptions,
} from '../ops/integer-matmul.js';
import type { MatMulNBitsOptions } from '../ops/matmul-nbits.js';
import type { MatMulOptions } from '../ops/matmul.js';
import type { QGemmInputs, QGemmOptions, Scale } from '../ops/qgemm.js';
import type { SyrkArray, SyrkOptions } from '../ops/syrk.js';
import type {
  Alpha,
  Bits,
  Factors,
  HeldInputs,
  HeldOperands,
  Level,
  MatMulArray,
  Not8Bit,
  OutType,
  Place,
  QGemmArray,
  QLinearArray,
  Weights,
  ZeroPointOfA,
  ZeroPointOfB,
} from './types.js';

/**
 * The calls that `record` takes: the products of an instance. Each operand is in the memory of the
 * instance: a tensor from `alloc()`, a view of one, packed weights, or a number. Each call must
 * have `out`, and returns it. Calls are checked at once, and computed by `run()` of the recording.
 *
 * @category Operations
 */
export interface RecordedCalls extends Recorded<'here'> {}

/**
 * The calls that `record` takes in a worker: the same as in `wgemm`, with handles of the worker.
 * They are computed by `run()` of the recording.
 *
 * @category Operations
 */
export interface WorkerRecordedCalls extends Recorded<'worker'> {}

/** By place: the calls that `record` takes. */
export interface RecordedAt {
  here: RecordedCalls;
  worker: WorkerRecordedCalls;
}

/** The calls that `record` takes, as both entries have them. */
interface Recorded<P extends Place> {
  /**
   * Records `gemm`.
   *
   * @param a as in `gemm`, like all that follow
   * @param b as in `gemm`
   * @param c as in `gemm`
   * @param options as in `gemm`, with `out`
   * @returns `out`
   * @throws what `gemm` throws
   */
  gemm<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    O extends HeldOperands<Matching<A>>[P],
    F extends number | bigint = number,
  >(
    a: HeldOperands<A>[P] & Not8Bit<A>,
    b: HeldOperands<B>[P] | Weights[P],
    c: HeldOperands<C>[P] | number | bigint | null | undefined,
    options: Omit<GemmOptions, 'out'> & Factors<F, A> & { out: O },
  ): O;

  /**
   * Records `matmul`.
   *
   * @param src as in `matmul`, like all that follow
   * @param weights as in `matmul`
   * @param bias as in `matmul`
   * @param options as in `matmul`, with `out`
   * @returns `out`
   * @throws what `matmul` throws
   */
  matmul<
    A extends DataArray,
    B extends Matching<A>,
    C extends Matching<A>,
    O extends HeldOperands<MatMulArray<A>>[P],
    D extends DType = never,
    F extends number | bigint = number,
  >(
    src: HeldOperands<A>[P] & Not8Bit<A>,
    weights: HeldOperands<B>[P] | Weights[P],
    bias: HeldOperands<C>[P] | number | bigint | null | undefined,
    options: Omit<MatMulOptions, 'out' | 'outType'> &
      Alpha<F, A> & { outType?: OutType<A, D>; out: O },
  ): O;

  /**
   * Records `syrk`.
   *
   * @param a as in `syrk`
   * @param options as in `syrk`, with `out`
   * @returns `out`
   * @throws what `syrk` throws
   */
  syrk<A extends SyrkArray, O extends HeldOperands<Matching<A>>[P]>(
    a: HeldOperands<A>[P],
    options: Omit<SyrkOptions, 'out'> & { out: O },
  ): O;

  /**
   * Records `qgemm`. Each run reads the scales and zero points.
   *
   * @param inputs as in `qgemm`
   * @param options as in `qgemm`, with `out`
   * @returns `out`
   * @throws what `qgemm` throws, except errors of values of scales, which `run()` throws
   */
  qgemm<
    O extends HeldOperands<QGemmArray<S>>[P],
    S extends HeldInputs<QGemmInputs>[P]['yScale'] = undefined,
  >(
    inputs: HeldInputs<QGemmInputs>[P] & { yScale?: S },
    options: Omit<QGemmOptions, 'out'> & { out: O },
  ): O;

  /**
   * Records `matmulInteger`. Each run reads the zero points.
   *
   * @param a as in `matmulInteger`, like all that follow
   * @param b as in `matmulInteger`
   * @param options as in `matmulInteger`, with `out`
   * @returns `out`
   * @throws what `matmulInteger` throws
   */
  matmulInteger<
    O extends HeldOperands<Int32Array>[P],
    A = unknown,
    B = unknown,
    ZA = undefined,
    ZB = undefined,
  >(
    a: A & HeldOperands<QuantizedArray>[P],
    b: B & (HeldOperands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B> &
      HeldInputs<Omit<MatMulIntegerOptions, 'out'>>[P] & { out: O },
  ): O;

  /**
   * Records `qlinearMatmul`. Each run reads the scales and zero points.
   *
   * @param inputs as in `qlinearMatmul`
   * @param options as in `qlinearMatmul`, with `out`
   * @returns `out`
   * @throws what `qlinearMatmul` throws, except errors of values of scales, which `run()` throws
   */
  qlinearMatmul<
    O extends HeldOperands<QLinearArray<A, Z>>[P],
    A = unknown,
    B = unknown,
    Z = undefined,
    ZA = undefined,
    ZB = undefined,
  >(
    inputs: HeldInputs<QLinearMatMulInputs>[P] & {
      a: A;
      b: B;
      yZeroPoint?: Z | undefined;
    } & ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B>,
    options: Omit<QLinearMatMulOptions, 'out'> & { out: O },
  ): O;

  /**
   * Records `dynamicQuantizeMatmul`. Each run reads the scales and zero points, and quantizes a.
   *
   * @param a as in `dynamicQuantizeMatmul`, like all that follow
   * @param b as in `dynamicQuantizeMatmul`
   * @param options as in `dynamicQuantizeMatmul`, with `out`
   * @returns `out`
   * @throws what `dynamicQuantizeMatmul` throws, except errors of values of scales and of a, which
   * `run()` throws
   */
  dynamicQuantizeMatmul<O extends HeldOperands<Float32Array>[P], B = unknown, ZB = undefined>(
    a: HeldOperands<Float32Array>[P],
    b: B & (HeldOperands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfB<ZB, B> &
      HeldInputs<Omit<DynamicQuantizeMatMulOptions, 'out'>>[P] & { out: O },
  ): O;

  /**
   * Records `matmulIntegerToFloat`. Each run reads the scales and zero points.
   *
   * @param a as in `matmulIntegerToFloat`, like all that follow
   * @param b as in `matmulIntegerToFloat`
   * @param options as in `matmulIntegerToFloat`, with `out`
   * @returns `out`
   * @throws what `matmulIntegerToFloat` throws, except errors of values of scales, which `run()`
   * throws
   */
  matmulIntegerToFloat<
    O extends HeldOperands<Float32Array | Uint16Array | Float16ArrayLike>[P],
    A = unknown,
    B = unknown,
    ZA = undefined,
    ZB = undefined,
  >(
    a: A & HeldOperands<QuantizedArray>[P],
    b: B & (HeldOperands<QuantizedArray>[P] | Weights[P]),
    options: ZeroPointOfA<ZA, A> &
      ZeroPointOfB<ZB, B> &
      HeldInputs<Omit<MatMulIntegerToFloatOptions<Float32Array, Scale | HalfVector>, 'out'>>[P] & {
        out: O;
      },
  ): O;

  /**
   * Records `matmulNBits`.
   *
   * @param a as in `matmulNBits`, like all that follow
   * @param weights as in `matmulNBits`
   * @param options as in `matmulNBits`, with `out`
   * @returns `out`
   * @throws what `matmulNBits` throws
   */
  matmulNBits<
    A extends NBitsArray,
    S extends Matching<A>,
    C extends Matching<A>,
    O extends HeldOperands<Matching<A>>[P],
    N extends number = 4,
    K extends number = number,
    L extends number = 0,
  >(
    a: HeldOperands<A>[P],
    weights: (HeldInputs<NBitsWeights<S>>[P] & Bits<N, K>) | Weights[P],
    options: HeldInputs<Omit<MatMulNBitsOptions<C>, 'out'>>[P] & Level<L> & { out: O },
  ): O;
}
