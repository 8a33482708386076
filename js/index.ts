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
import type { Api } from './api.js';
import {
  type Arguments,
  type Call,
  isOperation,
  makeCall,
  type OperationName,
  operations,
  runCall,
  runInHeap,
} from './call.js';
import { formatOf, givenBytes } from './bytes.js';
import type { Core } from './core.js';
import { type CreateOptions, type Info, readSettings, startCore } from './create.js';
import { makeWebWorker, otherOrigin, urlOf } from './cross-origin.js';
import { disposable } from './dispose.js';
import { ArgumentError, describe, DTypeError, ShapeError } from './errors.js';
import { readGemm, runGemm } from './gemm.js';
import { halfOf, toHalves } from './half.js';
import {
  type Constructors,
  disposedHandle,
  foreignHandle,
  HeapTensor,
  PackedWeights,
  locateHeld,
} from './heap.js';
import {
  adviceForScript,
  ask,
  failure,
  isAddress,
  readThreadSource,
  readWasmSource,
} from './load.js';
import { readMatMul, runMatMul } from './matmul.js';
import {
  checkAttached,
  detachedArray,
  findIn,
  operandOf,
  type Reader,
  readTensor,
  absent,
  locate,
  packedWeights,
  viewOfBytes,
} from './operand.js';
import { readOptions, readActivation, readFlag } from './options.js';
import { explain } from './out-of-core.js';
import { messageOf } from './port.js';
import { printable } from './printable.js';
import { compute, copyIn, roomOf, stagedOf } from './staging.js';
import { allocate, count, large, limits, positive } from './quantize-numbers.js';
import { gather, readAxis, readEach } from './quantize-arguments.js';
import { operandOfResult } from './result.js';
import { handleKey, has, isError, isList, isReadable, unpolluted } from './properties.js';
import { packWeights, readBytes, readPack, readWeights } from './pack.js';
import { readMatMulNBits, runMatMulNBits } from './matmul-nbits.js';
import { isIntegerMatMul, readIntegerMatMul, runIntegerMatMul } from './integer-matmul.js';
import { readQGemm, runQGemm } from './qgemm.js';
import {
  arrayOf,
  bufferOf,
  byteLengthOf,
  bytesIn,
  bytesOf,
  classOf,
  type DType,
  dtypesOf,
  isDetached,
  isRank,
  lengthOf,
  offsetOf,
  readSizes,
  contiguousStrides,
  viewOf,
} from './tensor.js';

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
export {
  type CreateOptions,
  type Info,
  type InstanceOptions,
  type KernelInfo,
  version,
} from './create.js';
export type {
  DescribedTensor,
  FactorOf,
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
} from './api.js';
export {
  type ElementOf,
  type ForeignTensor,
  type MathjsMatrix,
  type MlMatrix,
  type NdarrayLike,
  type Nested,
  type NestedInput,
  type SourceArray,
  tensor,
  type TensorOptions,
  type TensorSource,
  type TfjsBuffer,
  type TfjsTensor,
  toNested,
} from './foreign.js';
export type { GemmOptions } from './gemm.js';
export { type HeapObject, HeapTensor, PackedWeights } from './heap.js';
export type { Assets, AssetSource } from './load.js';
export type { MatMulOptions } from './matmul.js';
export type { MatMulNBitsOptions, NBitsArray, NBitsWeights } from './matmul-nbits.js';
export type { Activation } from './options.js';
export type { PackNBitsOptions, PackOptions } from './pack.js';
export type {
  Bias,
  DynamicQuantizeMatMulOptions,
  HalfVector,
  MatMulIntegerOptions,
  MatMulIntegerToFloatOptions,
  QLinearMatMulInputs,
  QLinearMatMulOptions,
} from './integer-matmul.js';
export type { OperationName } from './call.js';
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
export {
  fromGGUF,
  type GGUFTensor,
  quantizeNBits,
  type QuantizedNBits,
  type QuantizeNBitsOptions,
} from './quantize-nbits.js';
export type {
  ArrayOf,
  Arrays,
  DataArray,
  DType,
  DTypeOf,
  DTypes,
  Float16ArrayLike,
  GemmArray,
  Matching,
  Matrix,
  NewArrays,
  ResultArray,
  Tensor,
  TensorInput,
  TensorLike,
  TensorView,
} from './tensor.js';

/**
 * The plan for a call: what it would do. `explain` returns it.
 *
 * @category Instances
 */
export interface Explanation {
  /** The operation. */
  op: OperationName;
  /**
   * Number of products of the sizes `m`, `n` and `k`. If one product can replace several, it counts
   * once.
   */
  batch: number;
  /** M: rows of the result of each product. */
  m: number;
  /** N: columns of the result of each product. */
  n: number;
  /** K: elements in each sum. */
  k: number;
  /** The name of the micro-kernel; '' if M, N or K is 0, since there is no product then. */
  kernel: string;
  /**
   * Which rules chose the block sizes: 'GEMM', 'skinny GEMM' (small M) or 'GEMV' (M is 1). It also
   * says how B is read if B is unpacked. '' if there is no product.
   */
  regime: string;
  /**
   * Rows (MR) and columns (NR) of the micro-kernel's tile, in elements, and k steps per iteration.
   */
  tile: [mr: number, nr: number, kr: number];
  /** Block sizes MC, NC and KC, in elements. */
  blocks: [mc: number, nc: number, kc: number];
  /** Number of threads that compute the call. */
  threads: number;
  /** Which operands the call packs. Others are read unpacked, or were packed by `pack`. */
  packs: {
    /** Whether the call packs A. */
    a: boolean;
    /** Whether the call packs B. */
    b: boolean;
  };
  /** Whether the micro-kernel writes the result. If not, the epilogue writes it. */
  direct: boolean;
  /**
   * Whether the call computes the transpose of the result, since N is small. `tile`, `blocks` and
   * `packs` then describe the transposed product, in which B' is the first operand.
   */
  transposed: boolean;
  /**
   * Whether the arrays do not fit in memory, so that the call copies them there block by block.
   * `tile`, `blocks` and `packs` then describe the largest product of blocks. This is a prediction
   * from the limit and the bytes in use now. If the engine grants less, a call is out-of-core, too.
   */
  outOfCore: boolean;
  /**
   * Bytes copied between the caller's arrays and the heap. An out-of-core call copies some of
   * them more than once.
   */
  copies: number;
  /** Bytes of scratch memory during the call. An out-of-core call counts its blocks, too. */
  scratch: number;
}

/**
 * How much memory an instance uses. `memory()` returns it.
 *
 * @category Instances
 */
export interface MemoryUse {
  /** Bytes that tensors and packed weights hold. */
  inUse: number;
  /** Bytes that the wasm memory has taken from the system. They only grow. */
  committed: number;
}

/**
 * Starts an instance, with a memory of its own. The caller must `dispose()` of it.
 *
 * @example
 * const wg = await createGemm({ threads: 'auto', determinism: 'strict' });
 * wg.info.build; // 'relaxed' or 'simd128'
 * wg.dispose();
 *
 * @param options all have defaults
 * @returns a promise of the instance
 * @throws by rejection: ArgumentError; UnsupportedError if the engine or page lacks what an option
 * demands; GemmError with code `LOAD` or `WORKER` if a file or a thread does not start
 *
 * @category Instances
 */
export async function createGemm(options: CreateOptions = {}): Promise<Gemm> {
  const { core, info } = await startCore(readSettings(options));
  return new Instance(core, info);
}

/**
 * An instance. {@link createGemm} makes it. `x instanceof Gemm` tells whether x is one.
 *
 * The calls return their results at once. The instance keeps no array of the caller.
 *
 * @category Instances
 */
export interface Gemm extends Api<'here'> {
  /** Whether it has ended: by `dispose()`, or because the engine interrupted a call. */
  readonly disposed: boolean;

  /**
   * Ends the instance and its threads, and frees its memory with all tensors and packed weights.
   * Does nothing the second time.
   */
  dispose(): void;
  /** The same as `dispose()`, for `using`. */
  [Symbol.dispose](): void;
}

/** The core of each instance, for functions that take an instance. */
const cores = new WeakMap<object, Core>();

// The calls are declared in `Api`, which both entries share. For TypeScript a result of type
// `never` fits every overload.
const Instance = class Gemm implements Api<'here'> {
  readonly info: Info;
  readonly #core: Core;

  constructor(core: Core, info: Info) {
    this.#core = core;
    cores.set(this, core);
    if (info.threads > 1) core.endThreadsWith(this);
    this.info = Object.freeze(info);
    Object.freeze(this);
  }

  gemm(a: unknown, b: unknown, c?: unknown, options?: unknown): never {
    return runGemm(this.#core, a, b, c, options) as never;
  }

  qgemm(inputs: unknown, options?: unknown): never {
    return runQGemm(this.#core, inputs, options) as never;
  }

  matmul(src: unknown, weights: unknown, bias?: unknown, options?: unknown): never {
    return runMatMul(this.#core, src, weights, bias, options) as never;
  }

  matmulInteger(...args: unknown[]): never {
    return runIntegerMatMul(this.#core, 'matmulInteger', args) as never;
  }

  qlinearMatmul(...args: unknown[]): never {
    return runIntegerMatMul(this.#core, 'qlinearMatmul', args) as never;
  }

  dynamicQuantizeMatmul(...args: unknown[]): never {
    return runIntegerMatMul(this.#core, 'dynamicQuantizeMatmul', args) as never;
  }

  matmulIntegerToFloat(...args: unknown[]): never {
    return runIntegerMatMul(this.#core, 'matmulIntegerToFloat', args) as never;
  }

  matmulNBits(...args: unknown[]): never {
    return runMatMulNBits(this.#core, args) as never;
  }

  pack(b: unknown, options: unknown): PackedWeights {
    return packWeights(this.#core, readPack(this.#core, b, options));
  }

  deserialize(bytes: unknown): PackedWeights {
    return readWeights(this.#core, readBytes(this.#core, bytes));
  }

  explain(op: unknown, ...args: unknown[]): Explanation {
    return explainCall(makeCall(this.#core, readExplained(this.#core, op, args)));
  }

  alloc(dtype: unknown, shape: unknown): never {
    return allocTensor(this.#core, readAlloc(this.#core, dtype, shape)) as never;
  }

  memory(): MemoryUse {
    return memoryOf(this.#core);
  }

  get disposed(): boolean {
    return this.#core.disposed;
  }

  dispose(): void {
    this.#core.dispose();
  }

  declare [Symbol.dispose]: () => void;
};
disposable(Instance.prototype);
printable(Instance.prototype, (instance) => {
  const { inUse, committed } = instance.memory();
  return `${bestKernel(instance)}\n  memory: ${inUse} bytes in use, ${committed} committed`;
});

/** The line about the kernel of large float32 products. */
function bestKernel({ info }: { info: Info }): string {
  const best = info.kernels.find(({ tile, preferred }) => preferred && tile[0] > 1);
  return `best kernel: ${best?.name}`;
}

/**
 * The class of instances, for `instanceof`.
 *
 * @hidden The interface of the same name documents it.
 */
export const Gemm: abstract new (...args: never) => Gemm = Instance;

/** Reads the name of a call, and its arguments. */
function readExplained(reader: Reader, op: unknown, args: unknown[]): Arguments {
  if (op === 'matmul') return readMatMul(reader, args[0], args[1], args[2], args[3]);
  if (op === 'gemm') return readGemm(reader, args[0], args[1], args[2], args[3]);
  if (op === 'qgemm') return readQGemm(reader, args[0], args[1]);
  if (op === 'matmulNBits') return readMatMulNBits(reader, args);
  if (isIntegerMatMul(op)) return readIntegerMatMul(reader, op, args);
  const names = Object.keys(operations).map((name) => `'${name}'`);
  throw new ArgumentError(
    'explain',
    'op',
    `explain: op is ${describe(op)}; it must be ` +
      `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`,
  );
}

/** @internal The arguments of `alloc`, as they were read from the caller's objects. */
export interface AllocArguments {
  readonly dtype: DType;
  readonly sizes: number[];
}

function readAlloc(reader: Reader, dtype: unknown, shape: unknown): AllocArguments {
  const op = 'alloc';
  const { dtypes } = reader;
  reader.checkAlive(op);
  if (!dtypes.includes(dtype as DType)) {
    throw new DTypeError(
      op,
      'dtype',
      `${op}: dtype is ${describe(dtype)}; it must be ${dtypes.join(' or ')}`,
    );
  }
  const sizes = readSizes(op, 'shape', 'shape is', shape);
  if (!(sizes.reduce((product, n) => product * (n || 1), 1) <= 2 ** 53)) {
    throw new ShapeError(
      op,
      'shape',
      `${op}: shape is [${sizes.join(', ')}], of more than 2^53 elements`,
    );
  }
  return { dtype: dtype as DType, sizes };
}

function allocTensor(core: Core, { dtype, sizes }: AllocArguments): HeapTensor {
  const op = 'alloc';
  core.checkAlive(op);
  const size = sizes.reduce((product, n) => product * n, 1);
  const bytes = size * bytesOf(dtype);
  return core.guard(op, () => {
    const address = core.allocate(bytes, op);
    core.module.HEAPU8.fill(0, address, address + bytes);
    return new (HeapTensor as unknown as Constructors['tensor'])(
      core,
      dtype,
      sizes,
      size,
      address,
      bytes,
    );
  });
}

function memoryOf(core: Core): MemoryUse {
  core.checkAlive('memory');
  return { inUse: core.module.bytesInUse(), committed: core.buffer.byteLength };
}

/** @internal What the page and the worker of `wgemm/worker` share with this entry. */
export const internals = {
  allocate,
  absent,
  adviceForScript,
  allocTensor,
  arrayOfType: arrayOf,
  ask,
  bestKernel,
  bufferOf,
  byteLengthOf,
  bytesIn,
  bytesPerElement: bytesOf,
  checkAttached,
  classOf,
  compute,
  contiguousStrides,
  copyIn,
  cores,
  count,
  describe,
  detachedArray,
  disposable,
  disposedHandle,
  dtypesOf,
  explainCall,
  failure,
  findIn,
  foreignHandle,
  formatOf,
  gather,
  givenBytes,
  halfOf,
  handleKey,
  has,
  isAddress,
  isDetached,
  isError,
  isList,
  isOperation,
  isRank,
  isReadable,
  lengthOf,
  large,
  limits,
  locate,
  locateHeld,
  makeCall,
  makeWebWorker,
  memoryOf,
  messageOf,
  offsetOf,
  operandOf,
  operandOfResult,
  operations,
  otherOrigin,
  packedWeights,
  packWeights,
  positive,
  printable,
  readActivation,
  readAlloc,
  readAxis,
  readBytes,
  readEach,
  readExplained,
  readFlag,
  readGemm,
  readIntegerMatMul,
  readMatMul,
  readMatMulNBits,
  readOptions,
  readPack,
  readQGemm,
  readSettings,
  readTensor,
  readThreadSource,
  readWasmSource,
  readWeights,
  roomOf,
  runCall,
  runInHeap,
  stagedOf,
  toHalves,
  unpolluted,
  urlOf,
  viewOf,
  viewOfBytes,
};

/** The numbers that the core left at the front of the block. */
function numbers<N extends 6 | 19>(core: Core, count: N): Numbers[N] {
  return Array.from(core.block.subarray(0, count)) as Numbers[N];
}
type N4 = [number, number, number, number];
type N5 = [number, ...N4];
type Numbers = { 6: [number, ...N5]; 19: [...N4, ...N5, ...N5, ...N5] };

function explainCall(call: Call): Explanation {
  const { core, operation } = call;
  const copies = core.guard(operation.name, () => explain(call));
  const [
    kernel,
    regime,
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
    outOfCore,
  ] = numbers(core, 19);
  return {
    op: operation.name,
    batch,
    m,
    n,
    k,
    kernel: core.text(kernel),
    regime: core.text(regime),
    tile: [mr, nr, kr],
    blocks: [mc, nc, kc],
    threads,
    packs: { a: packsA !== 0, b: packsB !== 0 },
    direct: direct !== 0,
    transposed: transposed !== 0,
    outOfCore: outOfCore !== 0,
    copies,
    scratch,
  };
}
