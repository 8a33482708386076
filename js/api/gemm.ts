/** The calls of an instance, as users see them. */
import type { DataArray, DType, NBitsArray } from '../base/tensor.js';
import type { Info } from '../instance/start-core.js';
import type { MemoryUse } from '../ops/alloc.js';
import type { Explanation } from '../ops/explain.js';
import type { GemmOptions } from '../ops/gemm.js';
import type { MatMulIntegerToFloatOptions, QLinearMatMulOptions } from '../ops/integer-matmul.js';
import type { MatMulNBitsOptions } from '../ops/matmul-nbits.js';
import type { MatMulOptions } from '../ops/matmul.js';
import type { PackNBitsOptions, PackOptions } from '../ops/pack.js';
import type { QGemmOptions } from '../ops/qgemm.js';
import type { SyrkOptions } from '../ops/syrk.js';
import type { FloatProducts } from './float-products.js';
import type { QuantizedProducts } from './quantized-products.js';
import type { RecordedAt } from './recorded-calls.js';
import type {
  Allocated,
  Arrival,
  Bits,
  EveryCall,
  Inputs,
  Last,
  NBits,
  Operands,
  Options,
  OptionsWithOperands,
  Packable,
  Place,
  QLinearInputs,
  Recordings,
  Weights,
} from './types.js';

/**
 * The calls of an instance. In `wgemm` they return their results. In `wgemm/worker` they return
 * promises, which are rejected with what the same call in `wgemm` throws.
 *
 * Each operand has a type parameter for its array. `A` alone determines the type of the result.
 * Overloads repeat their comments, since an editor shows only the comment of the overload in use.
 */
export interface Api<P extends Place> extends FloatProducts<P>, QuantizedProducts<P> {
  /** The build in use, its threads and micro-kernels, and why the instance has these. */
  readonly info: Info;

  /**
   * Packs weights of `matmulNBits` once, for any number of calls. They keep their bits.
   *
   * @param weights codes, scales and zero points
   * @param options `op` is required
   * @returns the packed weights, of shape [k, n]. The caller must `dispose()` of them
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  pack<A extends NBitsArray, N extends number = 4, K extends number = number>(
    weights: NBits<A>[P] & Bits<N, K>,
    options: PackNBitsOptions & EveryCall[P],
  ): Arrival<Weights[P]>[P];

  /**
   * Packs b once, for any number of calls: they take the result as `b` or `weights`. It is a copy
   * in the memory of the instance until its `dispose()`. Elements keep their type unless `as` names
   * another: float32 can be packed as bfloat16 or float16, which halves the bytes to read. Calls
   * take weights of these two types with float32 operands, too. They widen the weights exactly, and
   * otherwise compute as with float32.
   *
   * @example
   * const b = { data: new Float32Array(512 * 512).fill(1), shape: [512, 512] };
   * const weights = wg.pack(b, { op: 'gemm' });
   * const x = { data: new Float32Array(8 * 512).fill(1), shape: [8, 512] };
   * const y = wg.gemm(x, weights); // y.data: Float32Array [512, 512, ...]
   * weights.dispose();
   *
   * @param b (..., K, N) of any type of gemm and matmul. For qgemm and the integer products, int8
   * or uint8; for qgemm, without batch axes. With `trans` the last two axes are (N, K)
   * @param options `op` is required
   * @returns the packed weights. The caller must `dispose()` of them
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  pack<A extends DataArray, O extends PackOptions['op'], D extends DType>(
    b: Operands<A>[P] & Packable<O, D, A>,
    options: PackOptions & EveryCall[P] & { op: O; as?: D | undefined },
  ): Arrival<Weights[P]>[P];

  /**
   * Makes packed weights from the bytes that `serialize()` returned, in any instance, build or
   * engine, or natively. The weights have their own copy of the bytes. While the call runs, the
   * memory must have room for another copy.
   *
   * @param bytes all bytes of the weights: an array, or a buffer, which may be shared
   * @param options only in a worker; all have defaults
   * @returns the packed weights. The caller must `dispose()` of them
   * @throws PackMismatchError for bytes that are cut short, were changed, or are not packed
   * weights; ArgumentError, DisposedError, OutOfMemoryError
   */
  deserialize(bytes: Uint8Array | ArrayBufferLike, ...options: Last[P]): Arrival<Weights[P]>[P];

  /**
   * Returns the plan for a call of `gemm`, without running it.
   *
   * @param op the name of the call
   * @param a as in `gemm`, like all that follow
   * @param b as in `gemm`
   * @param c as in `gemm`
   * @param options as in `gemm`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'gemm',
    a: Operands[P],
    b: Operands[P] | Weights[P],
    c?: Operands[P] | number | bigint | null,
    options?: Options<GemmOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];

  /**
   * Returns the plan for a call of `qgemm`, without running it.
   *
   * @param op the name of the call
   * @param inputs as in `qgemm`
   * @param options as in `qgemm`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'qgemm',
    inputs: Inputs[P],
    options?: Options<QGemmOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];

  /**
   * Returns the plan for a call of `matmul`, without running it.
   *
   * @param op the name of the call
   * @param src as in `matmul`, like all that follow
   * @param weights as in `matmul`
   * @param bias as in `matmul`
   * @param options as in `matmul`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'matmul',
    src: Operands[P],
    weights: Operands[P] | Weights[P],
    bias?: Operands[P] | number | bigint | null,
    options?: Options<MatMulOptions>[P] & {
      outType?: DType | undefined;
      out?: Operands[P] | undefined;
    },
  ): Arrival<Explanation>[P];

  /**
   * Returns the plan for a call of an integer product, without running it.
   *
   * @param op the name of the call
   * @param a as in the call, like all that follow
   * @param b as in the call
   * @param options as in the call
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'matmulInteger' | 'dynamicQuantizeMatmul' | 'matmulIntegerToFloat',
    a: Operands[P],
    b: Operands[P] | Weights[P],
    options?: OptionsWithOperands<Partial<MatMulIntegerToFloatOptions>>[P] & {
      out?: Operands[P] | undefined;
    },
  ): Arrival<Explanation>[P];

  /**
   * Returns the plan for a call of `qlinearMatmul`, without running it.
   *
   * @param op the name of the call
   * @param inputs as in `qlinearMatmul`
   * @param options as in `qlinearMatmul`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'qlinearMatmul',
    inputs: QLinearInputs[P],
    options?: Options<QLinearMatMulOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];

  /**
   * Returns the plan for a call of `matmulNBits`, without running it.
   *
   * @param op the name of the call
   * @param a as in the call, like all that follow
   * @param weights as in the call
   * @param options as in the call
   * @returns the plan
   * @throws what the call throws
   */
  explain<A extends NBitsArray>(
    op: 'matmulNBits',
    a: Operands[P],
    weights: NBits<A>[P] | Weights[P],
    options?: OptionsWithOperands<MatMulNBitsOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];

  /**
   * Returns the plan for a call of `syrk`, without running it.
   *
   * @param op the name of the call
   * @param a as in `syrk`
   * @param options as in `syrk`
   * @returns the plan
   * @throws what the call throws
   */
  explain(
    op: 'syrk',
    a: Operands[P],
    options?: Options<SyrkOptions>[P] & { out?: Operands[P] | undefined },
  ): Arrival<Explanation>[P];

  /**
   * Records calls on tensors in the memory of the instance, so that `run()` of the recording
   * computes all of them by one call: for many small products that repeat, as in each frame of an
   * animation. Each run reads the elements, scales and zero points that the operands hold then.
   *
   * @example
   * const x = wg.alloc('float32', [1, 16]);
   * const w = wg.alloc('float32', [16, 16]);
   * const h = wg.alloc('float32', [1, 16]);
   * const y = wg.alloc('float32', [1, 16]);
   * const recording = wg.record((calls) => {
   *   calls.matmul(x, w, null, { out: h, activation: 'relu' });
   *   calls.matmul(h, w, null, { out: y });
   * });
   * x.data.fill(1);
   * w.data.fill(0.5);
   * recording.run();
   * y.data; // Float32Array [64, 64, ...]
   * recording.dispose();
   *
   * @param calls makes the calls, by its argument, before it returns. Nothing is computed
   * @param options only in a worker; all have defaults
   * @returns the recording. The caller must `dispose()` of it
   * @throws what the calls throw; ArgumentError for an operand in an array, for a call without
   * `out`, and if `calls` returns a promise; OutOfMemoryError
   */
  record(calls: (calls: RecordedAt[P]) => void, ...options: Last[P]): Arrival<Recordings[P]>[P];

  /**
   * Makes a tensor of zeros in the memory of the instance, so that calls on it copy nothing. It
   * holds its memory until its `dispose()`.
   *
   * @param dtype the type of the elements
   * @param shape the size of each axis, in elements: up to 64 axes
   * @param options only in a worker; all have defaults
   * @typeParam D the type of the elements
   * @returns the tensor. The caller must `dispose()` of it
   * @throws ShapeError, DTypeError, DisposedError, OutOfMemoryError
   */
  alloc<D extends DType>(
    dtype: D,
    shape: readonly number[],
    ...options: Last[P]
  ): Arrival<Allocated<D>[P]>[P];

  /**
   * Returns how much memory the instance uses, in bytes.
   *
   * @param options only in a worker; all have defaults
   * @returns the numbers of bytes
   * @throws DisposedError
   */
  memory(...options: Last[P]): Arrival<MemoryUse>[P];
}
