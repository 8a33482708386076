/**
 * Matrix multiplication on WebAssembly SIMD, exact to ONNX Gemm, com.microsoft QGemm and oneDNN
 * Graph MatMul.
 *
 * @example
 * import { createGemm } from 'wgemm';
 * const wg = await createGemm();
 * const y = wg.gemm({ data: a, shape: [m, k] }, { data: b, shape: [k, n] });
 * y.data; y.shape; y.dtype;
 *
 * @packageDocumentation
 */
import { type Call, explain, readOptions } from './call.js';
import { Core } from './core.js';
import { disposable } from './dispose.js';
import { ArgumentError, describe, DTypeError, ShapeError } from './errors.js';
import { type GemmOptions, readGemm, runGemm } from './gemm.js';
import { HeapTensor, type PackedWeights } from './heap.js';
import { type Assets, loadCore, type LoadedCore } from './load.js';
import { type MatMulOptions, readMatMul, runMatMul } from './matmul.js';
import { type PackOptions, packWeights, readWeights } from './pack.js';
import {
  type QGemmInputs,
  type QGemmOptions,
  qgemm,
  type QuantizedArray,
  type Scale,
  type ZeroPoint,
} from './qgemm.js';
import {
  type ArrayOf,
  bytesOf,
  type DataArray,
  type DType,
  readSizes,
  type ResultArray,
  type Tensor,
  type TensorLike,
} from './tensor.js';
import { mostThreads } from './threads.js';

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
} from './errors.js';
export type { Activation } from './call.js';
export type { GemmOptions } from './gemm.js';
export { HeapTensor, PackedWeights } from './heap.js';
export type { Assets, AssetSource } from './load.js';
export type { MatMulOptions } from './matmul.js';
export type { PackOptions } from './pack.js';
export type { QGemmInputs, QGemmOptions, QuantizedArray, Scale, ZeroPoint } from './qgemm.js';
export {
  dequantize,
  quantize,
  quantizeBias,
  type Quantized,
  type QuantizedBias,
  type QuantizedDType,
  type QuantizedInput,
  type QuantizedPerAxis,
  type QuantizedPerTensor,
  type QuantizeBiasOptions,
  type QuantizeOptions,
} from './quantize.js';
export type {
  ArrayOf,
  DataArray,
  DType,
  Float16ArrayLike,
  ResultArray,
  Tensor,
  TensorInput,
  TensorLike,
} from './tensor.js';

/** Version of the library. */
export const version = '0.1.0';

export interface CreateOptions {
  /**
   * Threads that large products are computed on, the caller's own among them: 1 to 64, or `'auto'`
   * for as many as there are processors, 8 at the most, and 1 where there cannot be more. A number
   * that cannot be had is an UnsupportedError, and a worker that does not start a GemmError of code
   * `WORKER`. Threads need shared memory, for which a page must be cross-origin isolated. They end
   * on `dispose()`. Default 1.
   */
  threads?: number | 'auto';
  /**
   * The build: `'relaxed'` uses relaxed SIMD, which fuses products and sums in float32 and float64
   * where the processor can; `'auto'` takes it where the engine has it. Default `'auto'`.
   */
  simd?: 'auto' | 'simd128' | 'relaxed';
  /**
   * `'strict'` gives the same bits in every engine, on every processor, in every build, for any
   * number of threads: floating point is summed in ascending k, each product and sum rounded on its
   * own, and every NaN is the canonical one. With `'fast'` the order is free, and products may be
   * fused. Integers are exact either way. Default `'fast'`.
   */
  determinism?: 'fast' | 'strict';
  /**
   * Where the `.wasm` comes from, and with threads `wgemm-thread.js`, when not from beside the
   * script.
   */
  assets?: Assets;
  /**
   * The most bytes that tensors, copies and scratch may take. The memory begins with 1 MB, and 192
   * kB per thread if there are several. It never takes more than `maxMemory` bytes besides, in
   * whole pages of 64 kB: what fragments keep apart is missing, and calls go block by block or
   * fail. Default: what the engine allows, 4 GB at the most.
   */
  maxMemory?: number;
}

/** What a call would do, without running it. */
export interface Explanation {
  op: 'gemm' | 'qgemm' | 'matmul';
  /** Products of the sizes below, after what can be one is one. */
  batch: number;
  m: number;
  n: number;
  k: number;
  /** Name of the micro-kernel; '' where M, N or K is 0 and there is no product. */
  kernel: string;
  /** Rows and columns of the micro-kernel's tile, and steps of k that it takes at once. */
  tile: [mr: number, nr: number, kr: number];
  /** Rows, columns and steps of k of a block. */
  blocks: [mc: number, nc: number, kc: number];
  threads: number;
  /** Which operands are brought into panels; the others are read in place. */
  packs: { a: boolean; b: boolean };
  /** Whether the micro-kernel writes the result itself, with no pass behind it. */
  direct: boolean;
  /**
   * Whether the transpose of the result is computed, since N is small: tile, blocks and packs tell
   * of that, with A and B exchanged.
   */
  transposed: boolean;
  /**
   * Whether arrays do not fit the memory and are brought there block by block: tile, blocks and
   * packs tell of the largest of these products. Foretold by the bytes that are in use now and the
   * limit; a call streams, too, where the engine gives less memory than that.
   */
  streams: boolean;
  /**
   * Bytes copied between the caller's arrays and the heap. A call that streams copies some more
   * than once.
   */
  copies: number;
  /** Bytes of scratch memory, taken for the call; with the blocks of one that streams. */
  scratch: number;
}

export interface KernelInfo {
  /** States types, tile and instruction set. */
  name: string;
  /**
   * The type that it multiplies and accumulates in; int8 stands for both 8-bit types, accumulated
   * in int32.
   */
  dtype: DType;
  tile: [mr: number, nr: number, kr: number];
  /** Made for this processor, and engine. */
  preferred: boolean;
}

export interface Info {
  version: string;
  /** The build that runs. */
  build: 'simd128' | 'relaxed';
  threads: number;
  determinism: 'fast' | 'strict';
  /** Why this build and this number of threads. */
  why: string;
  /** Best first. */
  kernels: readonly KernelInfo[];
}

/** Starts an instance, with a memory of its own. */
export async function createGemm(options: CreateOptions = {}): Promise<Gemm> {
  const op = 'createGemm';
  const read = readOptions(op, options, ['threads', 'simd', 'determinism', 'assets', 'maxMemory']);
  const {
    threads = 1,
    simd = 'auto',
    determinism = 'fast',
    assets,
    maxMemory,
  } = read as CreateOptions;
  if (
    threads !== 'auto' &&
    !(Number.isSafeInteger(threads) && threads >= 1 && threads <= mostThreads)
  ) {
    const message = `${op}: threads is ${describe(threads)}; it must be a whole number from 1 to ${mostThreads}, or 'auto'`;
    throw new ArgumentError(op, 'threads', message);
  }
  if (!['auto', 'simd128', 'relaxed'].includes(simd)) {
    throw new ArgumentError(
      op,
      'simd',
      `${op}: simd is ${describe(simd)}; it must be 'auto', 'simd128' or 'relaxed'`,
    );
  }
  if (!['fast', 'strict'].includes(determinism)) {
    throw new ArgumentError(
      op,
      'determinism',
      `${op}: determinism is ${describe(determinism)}; it must be 'fast' or 'strict'`,
    );
  }
  if (assets !== undefined && typeof assets !== 'function') {
    throw new ArgumentError(
      op,
      'assets',
      `${op}: assets is ${describe(assets)}; it must be a function from a file's name to where it is`,
    );
  }
  if (maxMemory !== undefined && !(Number.isSafeInteger(maxMemory) && maxMemory >= 1)) {
    throw new ArgumentError(
      op,
      'maxMemory',
      `${op}: maxMemory is ${describe(maxMemory)}; it must be a whole number of bytes from 1`,
    );
  }
  let die: (why: string) => void = () => undefined;
  const memoryLimit = Math.min(maxMemory ?? 0, 2 ** 32 - 1);
  const strict = determinism === 'strict';
  const loaded = await loadCore({ simd, threads, assets, memoryLimit, strict }, (why) => die(why));
  const core = new Core(loaded, memoryLimit);
  die = (why) => core.die('WORKER', `a thread of the instance died (${why})`);
  return new Gemm(core, determinism, loaded);
}

/** An instance. Made by {@link createGemm}. */
export class Gemm {
  /** The build in use and why, its threads and its micro-kernels. */
  readonly info: Info;
  readonly #core: Core;

  /** @internal */
  constructor(core: Core, determinism: Info['determinism'], { threads, why }: LoadedCore) {
    this.#core = core;
    if (threads > 1) core.endThreadsWith(this);
    const kernels = kernelsOf(core);
    // By what is there: the option assets may give either file.
    const build = kernels.some(({ name }) => name.includes('_relaxed')) ? 'relaxed' : 'simd128';
    this.info = Object.freeze({ version, build, threads, determinism, why, kernels });
    Object.freeze(this);
  }

  /**
   * ONNX Gemm: Y = alpha * A' * B' + beta * C, A' being A or its transpose. C is broadcast to (M,
   * N) in one direction. https://onnx.ai/onnx/operators/onnx__Gemm.html
   *
   * @param a (M, K), or (K, M) with `transA`
   * @param b (K, N), or (N, K) with `transB`; or what `pack` made of it
   * @param c a tensor, a number (a bigint with int64 and uint64), or nothing
   * @returns Y of shape (M, N): `out`, or a tensor with an array of its own
   * @throws ShapeError, DTypeError, OpsetError, ArgumentError, DisposedError, OutOfMemoryError;
   * nothing is written then
   */
  gemm<A extends DataArray, O extends TensorLike<A>>(
    a: TensorLike<A>,
    b: TensorLike<A> | PackedWeights,
    c: TensorLike<A> | number | bigint | null | undefined,
    options: GemmOptions<A> & { out: O },
  ): O;
  gemm<A extends DataArray>(
    a: TensorLike<A>,
    b: TensorLike<A> | PackedWeights,
    c?: TensorLike<A> | number | bigint | null,
    options?: GemmOptions<A>,
  ): Tensor<ResultArray<A>>;
  gemm(a: unknown, b: unknown, c?: unknown, options?: unknown): unknown {
    return runGemm(this.#core, a, b, c, options);
  }

  /**
   * com.microsoft QGemm of quantized a and b, int8 or uint8 each:
   *
   *     acc = sum over k of (a' - aZeroPoint) * (b' - bZeroPoint[n]) + c, in int32 that wraps
   *     s[n] = ((alpha * aScale) * bScale[n]) / yScale, each step rounded to float32
   *
   * The result is float32, acc * s[n], without the division; with yScale and yZeroPoint it is acc *
   * s[n] rounded half to even, plus yZeroPoint, saturated.
   * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
   *
   * @returns Y of shape (M, N): `out`, or a tensor with an array of its own
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  qgemm<A extends Float32Array | QuantizedArray, O extends TensorLike<A>>(
    inputs: QGemmInputs,
    options: QGemmOptions<A> & { out: O },
  ): O;
  qgemm(
    inputs: QGemmInputs & { yScale?: null; yZeroPoint?: null },
    options?: QGemmOptions,
  ): Tensor<Float32Array>;
  qgemm(
    inputs: QGemmInputs & { yScale: Scale; yZeroPoint: ZeroPoint },
    options?: QGemmOptions,
  ): Tensor<QuantizedArray>;
  qgemm(inputs: QGemmInputs, options?: QGemmOptions): Tensor<Float32Array | QuantizedArray>;
  qgemm(inputs: unknown, options?: unknown): unknown {
    return qgemm(this.#core, inputs, options, true);
  }

  /**
   * oneDNN Graph MatMul: dst = src * weights + bias, for stacks of matrices. The last two axes are
   * the matrix, those before them are broadcast like NumPy's, both ways. A vector is a row as src
   * and a column as weights, and the result has not that axis.
   * https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
   *
   * @param src (..., M, K), or (..., K, M) with `transposeA`; or (K)
   * @param weights (..., K, N), or (..., N, K) with `transposeB`; or (K); or what `pack` made of
   * them
   * @param bias a tensor that broadcasts to the result in one direction, a number (rounded to the
   * type of src), or nothing
   * @returns (..., M, N): `out`, or a tensor with an array of its own
   * @throws ShapeError, DTypeError, ArgumentError, PackMismatchError, DisposedError,
   * OutOfMemoryError; nothing is written then
   */
  matmul<A extends DataArray, O extends TensorLike>(
    src: TensorLike<A>,
    weights: TensorLike<A> | PackedWeights,
    bias: TensorLike<A> | number | bigint | null | undefined,
    options: MatMulOptions & { out: O },
  ): O;
  matmul<A extends DataArray>(
    src: TensorLike<A>,
    weights: TensorLike<A> | PackedWeights,
    bias: TensorLike<A> | number | bigint | null | undefined,
    options: MatMulOptions<A> & { outType: 'float32' },
  ): Tensor<Float32Array>;
  matmul<A extends DataArray>(
    src: TensorLike<A>,
    weights: TensorLike<A> | PackedWeights,
    bias?: TensorLike<A> | number | bigint | null,
    options?: MatMulOptions<A>,
  ): Tensor<ResultArray<A>>;
  matmul(src: unknown, weights: unknown, bias?: unknown, options?: unknown): unknown {
    return runMatMul(this.#core, src, weights, bias, options);
  }

  /**
   * Lays b out once, for any number of calls: what it returns stands where `b` or `weights` stands.
   * Elements keep their type, unless `as` says another: float32 can be packed as bfloat16 or
   * float16, half the bytes to read. Weights of these types serve operands of float32, too: they
   * are widened, exactly, and all else is as with float32.
   *
   * @param b for gemm and matmul any of their types, (..., K, N); for qgemm int8 or uint8, (K, N);
   * with `trans` (..., N, K)
   * @throws ShapeError, DTypeError, ArgumentError, DisposedError, OutOfMemoryError
   */
  pack(b: TensorLike<QuantizedArray>, options: PackOptions): PackedWeights;
  pack(b: TensorLike, options: PackOptions & { op: 'gemm' | 'matmul' }): PackedWeights;
  pack(b: unknown, options: unknown): PackedWeights {
    return packWeights(this.#core, b, options);
  }

  /**
   * Packed weights from what their `serialize()` gave, in whatever instance, build or engine, or
   * natively. The bytes are copied.
   *
   * @throws PackMismatchError for bytes that are cut short, were changed or are none of these,
   * ArgumentError, DisposedError, OutOfMemoryError:
   *   there must be room for the bytes, too, while they are read
   */
  deserialize(bytes: Uint8Array | ArrayBufferLike): PackedWeights {
    return readWeights(this.#core, bytes);
  }

  /**
   * The plan for a call with these arguments, without running it: its name, and then its arguments.
   *
   * @throws what the call throws
   */
  explain(
    op: 'gemm',
    a: TensorLike,
    b: TensorLike | PackedWeights,
    c?: TensorLike | number | bigint | null,
    options?: GemmOptions,
  ): Explanation;
  explain(op: 'qgemm', inputs: QGemmInputs, options?: QGemmOptions): Explanation;
  explain(
    op: 'matmul',
    src: TensorLike,
    weights: TensorLike | PackedWeights,
    bias?: TensorLike | number | bigint | null,
    options?: MatMulOptions,
  ): Explanation;
  explain(op: unknown, ...args: unknown[]): unknown {
    if (op === 'matmul')
      return explainCall(readMatMul(this.#core, args[0], args[1], args[2], args[3]));
    if (op === 'gemm') return explainCall(readGemm(this.#core, args[0], args[1], args[2], args[3]));
    if (op === 'qgemm') return explainCall(qgemm(this.#core, args[0], args[1], false) as Call);
    throw new ArgumentError(
      'explain',
      'op',
      `explain: op is ${describe(op)}; it must be 'gemm', 'qgemm' or 'matmul'`,
    );
  }

  /** A tensor of zeros inside the wasm memory, so that calls copy nothing. */
  alloc<D extends DType>(dtype: D, shape: readonly number[]): HeapTensor<ArrayOf<D>> {
    const op = 'alloc';
    const core = this.#core;
    core.checkAlive(op);
    if (!core.dtypes.includes(dtype)) {
      throw new DTypeError(
        op,
        'dtype',
        `${op}: dtype is ${describe(dtype)}; it must be ${core.dtypes.join(' or ')}`,
      );
    }
    const sizes = readSizes(op, 'shape', 'shape is', shape);
    core.checkAlive(op);
    const size = sizes.reduce((product, n) => product * n, 1);
    if (!(sizes.reduce((product, n) => product * (n || 1), 1) <= 2 ** 53)) {
      throw new ShapeError(
        op,
        'shape',
        `${op}: shape is [${sizes.join(', ')}], of more than 2^53 elements`,
      );
    }
    const bytes = size * bytesOf(dtype);
    return core.guard(op, () => {
      const address = core.allocate(bytes, op);
      core.module.HEAPU8.fill(0, address, address + bytes);
      return new HeapTensor<ArrayOf<D>>(core, dtype, sizes, size, address, bytes);
    });
  }

  /**
   * Bytes that tensors hold (`inUse`), and bytes that the wasm memory has taken from the system
   * (`committed`), which only grows.
   */
  memory(): { inUse: number; committed: number } {
    const core = this.#core;
    core.checkAlive('memory');
    return { inUse: core.module.bytesInUse(), committed: core.buffer.byteLength };
  }

  /** Whether it has ended: by `dispose()`, or since the engine interrupted a call. */
  get disposed(): boolean {
    return this.#core.disposed;
  }

  /**
   * Ends the instance and its tensors; the memory goes back as a whole. Does nothing the second
   * time.
   */
  dispose(): void {
    this.#core.dispose();
  }

  declare [Symbol.dispose]: () => void;
}
disposable(Gemm.prototype);

/** The numbers that the core left at the front of the block. */
function numbers<N extends 6 | 18>(core: Core, count: N): Numbers[N] {
  return Array.from(core.block.subarray(0, count)) as Numbers[N];
}
type N5 = [number, number, number, number, number];
type Numbers = { 6: [number, ...N5]; 18: [number, number, number, ...N5, ...N5, ...N5] };

function kernelsOf(core: Core): KernelInfo[] {
  return Array.from({ length: core.module.kernelCount() }, (_, i) => {
    core.module.kernel(i);
    const [name, dtype, mr, nr, kr, preferred] = numbers(core, 6);
    return {
      name: core.text(name),
      dtype: core.dtypes[dtype] as DType,
      tile: [mr, nr, kr],
      preferred: preferred !== 0,
    };
  });
}

function explainCall(call: Call): Explanation {
  const { core, operation } = call;
  const copies = core.guard(operation.name, () => explain(call));
  const [
    kernel,
    batch,
    m,
    n,
    k,
    mr,
    nr,
    kr,
    mc,
    nc,
    kc,
    threads,
    packsA,
    packsB,
    direct,
    transposed,
    scratch,
    streams,
  ] = numbers(core, 18);
  return {
    op: operation.name,
    batch,
    m,
    n,
    k,
    kernel: core.text(kernel),
    tile: [mr, nr, kr],
    blocks: [mc, nc, kc],
    threads,
    packs: { a: packsA !== 0, b: packsB !== 0 },
    direct: direct !== 0,
    transposed: transposed !== 0,
    streams: streams !== 0,
    copies,
    scratch,
  };
}
