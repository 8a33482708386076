/**
 * Matrix multiplication on WebAssembly SIMD, exact to ONNX Gemm.
 *
 * @example
 * import { createGemm } from 'wgemm';
 * const wg = await createGemm();
 * const y = wg.gemm({ data: a, shape: [m, k] }, { data: b, shape: [k, n] });
 * y.data; y.shape; y.dtype;
 *
 * @packageDocumentation
 */
import { Core } from './core.js';
import { ArgumentError, describe, DTypeError, OpsetError, OutOfMemoryError, ShapeError, UnsupportedError } from './errors.js';
import { type Assets, loadCore } from './load.js';
import {
  type ArrayOf,
  bytesOf,
  type DataArray,
  disposable,
  type DType,
  HeapTensor,
  locate,
  type Operand,
  readSizes,
  readTensor,
  type ResultArray,
  type Tensor,
  type TensorLike,
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
  ShapeError,
  UnsupportedError,
} from './errors.js';
export type { Assets } from './load.js';
export type { ArrayOf, DataArray, DType, Float16ArrayLike, ResultArray, Tensor, TensorInput, TensorLike } from './tensor.js';
export { HeapTensor } from './tensor.js';

/** Version of the library. */
export const version = '0.1.0';

export interface CreateOptions {
  /** Threads to compute on. This version has 1; `'auto'` takes what there is. Default 1. */
  threads?: number | 'auto';
  /** The build. This version has `'simd128'`; `'auto'` takes the fastest that the engine has. Default `'auto'`. */
  simd?: 'auto' | 'simd128' | 'relaxed';
  /** `'fast'`: the order of summation is free. This version has no `'strict'`. Default `'fast'`. */
  determinism?: 'fast' | 'strict';
  /** Where the `.wasm` comes from, when not from beside the script. */
  assets?: Assets;
  /** The most bytes that tensors, copies and scratch may take. Default: what the engine allows, 4 GB at the most. */
  maxMemory?: number;
}

export interface GemmOptions<A extends DataArray = DataArray> {
  /**
   * Factor of the product. Rounded to float32 with float32, float16 and bfloat16. With integers a fraction sends the result through
   * float64, in which 64-bit values above 2^53 lose bits. A bigint is for int64 and uint64, modulo 2^64. Default 1.
   */
  alpha?: number | bigint;
  /** Factor of C, as alpha. 0: C is not read. Default 1. */
  beta?: number | bigint;
  /** A has shape (K, M). Any number but 0 is true. Default false. */
  transA?: boolean | number;
  /** B has shape (N, K). Any number but 0 is true. Default false. */
  transB?: boolean | number;
  /** The model's opset: the newest Gemm that is not above it is meant. Default 13. */
  opset?: number;
  /** Opsets 1 to 6 only: whether C may be broadcast. Default false. */
  broadcast?: boolean | number;
  /** Filled in place and returned. May be C itself, else must not overlap an input. */
  out?: TensorLike<A>;
}

/** What a call would do, without running it. */
export interface Explanation {
  op: 'gemm';
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
  /** Bytes copied between the caller's arrays and the heap. */
  copies: number;
  /** Bytes of scratch memory, taken for the call. */
  scratch: number;
}

export interface KernelInfo {
  /** States types, tile and instruction set. */
  name: string;
  /** The type that it multiplies and accumulates in. */
  dtype: DType;
  tile: [mr: number, nr: number, kr: number];
  /** Made for this processor. */
  preferred: boolean;
}

export interface Info {
  version: string;
  /** The build that runs. */
  build: 'simd128';
  threads: number;
  determinism: 'fast';
  /** Why this build and this number of threads. */
  why: string;
  /** Best first. */
  kernels: readonly KernelInfo[];
}

/** Starts an instance, with a memory of its own. */
export async function createGemm(options: CreateOptions = {}): Promise<Gemm> {
  const op = 'createGemm';
  const read = readOptions(op, options, ['threads', 'simd', 'determinism', 'assets', 'maxMemory']);
  const { threads = 1, simd = 'auto', determinism = 'fast', assets, maxMemory } = read as CreateOptions;
  if (threads !== 'auto' && !(Number.isSafeInteger(threads) && threads >= 1)) {
    throw new ArgumentError(op, 'threads', `${op}: threads is ${describe(threads)}; it must be a whole number from 1, or 'auto'`);
  }
  if (!['auto', 'simd128', 'relaxed'].includes(simd)) {
    throw new ArgumentError(op, 'simd', `${op}: simd is ${describe(simd)}; it must be 'auto', 'simd128' or 'relaxed'`);
  }
  if (!['fast', 'strict'].includes(determinism)) {
    throw new ArgumentError(op, 'determinism', `${op}: determinism is ${describe(determinism)}; it must be 'fast' or 'strict'`);
  }
  if (assets !== undefined && typeof assets !== 'function') {
    throw new ArgumentError(op, 'assets', `${op}: assets is ${describe(assets)}; it must be a function from a file's name to where it is`);
  }
  if (maxMemory !== undefined && !(Number.isSafeInteger(maxMemory) && maxMemory >= 1)) {
    throw new ArgumentError(op, 'maxMemory', `${op}: maxMemory is ${describe(maxMemory)}; it must be a whole number of bytes from 1`);
  }
  if (threads !== 'auto' && threads > 1) {
    throw new UnsupportedError(op, 'threads', `${op}: threads is ${threads}; version ${version} computes on 1`);
  }
  if (simd === 'relaxed') throw new UnsupportedError(op, 'simd', `${op}: simd is 'relaxed'; version ${version} has 'simd128'`);
  if (determinism === 'strict') {
    throw new UnsupportedError(op, 'determinism', `${op}: determinism is 'strict'; version ${version} has 'fast'`);
  }
  const module = await loadCore(assets);
  const why = `build ${simd === 'auto' ? 'the one of this version' : 'as asked'}; threads ${threads === 'auto' ? 'the one of this version' : 'as asked'}`;
  return new Gemm(new Core(module, Math.min(maxMemory ?? 0, 2 ** 32 - 1)), why);
}

/** An instance. Made by {@link createGemm}. */
export class Gemm {
  /** The build in use and why, its threads and its micro-kernels. */
  readonly info: Info;
  readonly #core: Core;

  /** @internal */
  constructor(core: Core, why: string) {
    this.#core = core;
    this.info = Object.freeze({ version, build: 'simd128', threads: 1, determinism: 'fast', why, kernels: kernelsOf(core) } as const);
  }

  /**
   * ONNX Gemm: Y = alpha * A' * B' + beta * C, A' being A or its transpose. C is broadcast to (M, N) in one direction.
   * https://onnx.ai/onnx/operators/onnx__Gemm.html
   *
   * @param a (M, K), or (K, M) with `transA`
   * @param b (K, N), or (N, K) with `transB`
   * @param c a tensor, a number (a bigint with int64 and uint64), or nothing
   * @returns Y of shape (M, N): `out`, or a tensor with an array of its own
   * @throws ShapeError, DTypeError, OpsetError, ArgumentError, DisposedError, OutOfMemoryError; nothing is written then
   */
  gemm<A extends DataArray, O extends TensorLike<A>>(
    a: TensorLike<A>,
    b: TensorLike<A>,
    c: TensorLike<A> | number | bigint | null | undefined,
    options: GemmOptions<A> & { out: O },
  ): O;
  gemm<A extends DataArray>(
    a: TensorLike<A>,
    b: TensorLike<A>,
    c?: TensorLike<A> | number | bigint | null,
    options?: GemmOptions<A>,
  ): Tensor<ResultArray<A>>;
  gemm(a: unknown, b: unknown, c?: unknown, options?: unknown): unknown {
    const call = this.#read('gemm', a, b, c, options);
    const { core, operands, out } = call;
    if (out === undefined || operands.some((operand) => operand !== null && operand.outside !== null)) return throughStaging(call);
    writeGemm(call);
    core.check(core.module.gemm(), 'gemm');
    return out;
  }

  /** The plan for a call with these arguments, without running it: `explain('gemm', a, b, c, options)`. */
  explain(op: 'gemm', a: TensorLike, b: TensorLike, c?: TensorLike | number | bigint | null, options?: GemmOptions): Explanation {
    if (op !== 'gemm') throw new ArgumentError('explain', 'op', `explain: op is ${describe(op)}; it must be 'gemm'`);
    const call = this.#read('gemm', a, b, c, options);
    const { core, operands } = call;
    writeGemm(call);
    core.check(core.module.explainGemm(), 'gemm');
    const [kernel, m, n, k, mr, nr, kr, mc, nc, kc, threads, packsA, packsB, direct, scratch] = numbers(core, 15);
    const bytes = bytesOf(core.dtypes[operands[0].dtype] as DType);
    let copies = operands[3] === null ? m * n * bytes : 0;
    for (const operand of operands) copies += operand?.outside?.byteLength ?? 0;
    if (operands[3]?.strides) copies += operands[3].outside?.byteLength ?? 0; // there and back
    return {
      op,
      m,
      n,
      k,
      kernel: core.text(kernel),
      tile: [mr, nr, kr],
      blocks: [mc, nc, kc],
      threads,
      packs: { a: packsA !== 0, b: packsB !== 0 },
      direct: direct !== 0,
      copies,
      scratch,
    };
  }

  /** A tensor of zeros inside the wasm memory, so that calls copy nothing. */
  alloc<D extends DType>(dtype: D, shape: readonly number[]): HeapTensor<ArrayOf<D>> {
    const op = 'alloc';
    const core = this.#core;
    core.checkAlive(op);
    if (!core.dtypes.includes(dtype)) {
      throw new DTypeError(op, 'dtype', `${op}: dtype is ${describe(dtype)}; it must be ${core.dtypes.join(' or ')}`);
    }
    const sizes = Object.freeze(readSizes(op, 'shape', 'shape is', shape));
    core.checkAlive(op);
    const size = sizes.reduce((product, n) => product * n, 1);
    if (!(sizes.reduce((product, n) => product * (n || 1), 1) <= 2 ** 53)) {
      throw new ShapeError(op, 'shape', `${op}: shape is [${sizes.join(', ')}], of more than 2^53 elements`);
    }
    const bytes = size * bytesOf(dtype);
    const address = core.allocate(bytes, op);
    core.module.HEAPU8.fill(0, address, address + bytes);
    const tensor = new HeapTensor<ArrayOf<D>>(core, dtype, sizes, size, address);
    core.adopt(tensor, address, bytes);
    return tensor;
  }

  /** Bytes that tensors hold (`inUse`), and bytes that the wasm memory has taken from the system (`committed`), which only grows. */
  memory(): { inUse: number; committed: number } {
    const core = this.#core;
    core.checkAlive('memory');
    return { inUse: core.module.bytesInUse(), committed: core.buffer.byteLength };
  }

  get disposed(): boolean {
    return this.#core.disposed;
  }

  /** Ends the instance and its tensors; the memory goes back as a whole. Does nothing the second time. */
  dispose(): void {
    this.#core.dispose();
  }

  declare [Symbol.dispose]: () => void;

  #read(op: string, a: unknown, b: unknown, c: unknown, options: unknown): GemmCall {
    const core = this.#core;
    core.checkAlive(op);
    const read = readOptions(op, options, ['alpha', 'beta', 'transA', 'transB', 'opset', 'broadcast', 'out']);
    const operandA = readTensor(core, op, 'A', a);
    const operandB = readTensor(core, op, 'B', b);
    let operandC: Operand | null = null;
    if (typeof c === 'number' || typeof c === 'bigint') operandC = scalar(core, op, c, operandA.dtype);
    else if (c !== undefined && c !== null) operandC = readTensor(core, op, 'C', c);
    const { alpha, beta, transA, transB, opset, broadcast, out } = read;
    const call: GemmCall = {
      core,
      alpha: readFactor(op, 'alpha', alpha),
      beta: readFactor(op, 'beta', beta),
      transA: readFlag(op, 'transA', transA, 0),
      transB: readFlag(op, 'transB', transB, 0),
      opset: readOpset(op, opset),
      broadcast: readFlag(op, 'broadcast', broadcast, NaN),
      operands: [operandA, operandB, operandC, out === undefined ? null : readTensor(core, op, 'Y', out)],
      out,
    };
    // Getters may have called back: what is found from here on holds.
    core.checkAlive(op);
    for (const operand of call.operands) if (operand !== null) locate(core, op, operand);
    return call;
  }
}
disposable(Gemm.prototype);

/** The arguments of gemm, checked as far as JavaScript goes. */
interface GemmCall {
  core: Core;
  alpha: number | bigint;
  beta: number | bigint;
  transA: number;
  transB: number;
  opset: number;
  /** NaN: not given. */
  broadcast: number;
  operands: [a: Operand, b: Operand, c: Operand | null, y: Operand | null];
  out: unknown;
}

/** The numbers that the core left at the front of the block. */
function numbers<N extends 2 | 6 | 15>(core: Core, count: N): Numbers[N] {
  return Array.from(core.block.subarray(0, count)) as Numbers[N];
}
type N5 = [number, number, number, number, number];
type Numbers = { 2: [number, number]; 6: [number, ...N5]; 15: [...N5, ...N5, ...N5] };

function kernelsOf(core: Core): KernelInfo[] {
  return Array.from({ length: core.module.kernelCount() }, (_, i) => {
    core.module.kernel(i);
    const [name, dtype, mr, nr, kr, preferred] = numbers(core, 6);
    return { name: core.text(name), dtype: core.dtypes[dtype] as DType, tile: [mr, nr, kr], preferred: preferred !== 0 };
  });
}

/** Writes the block of arguments in the order in which bindings/embind.cc reads it. */
function writeGemm(call: GemmCall): void {
  const { core } = call;
  const { block } = core;
  writeFactor(block, 0, call.alpha);
  writeFactor(block, 4, call.beta);
  block[8] = call.transA;
  block[9] = call.transB;
  block[10] = call.opset;
  block[11] = call.broadcast;
  let i = 12;
  const buffers: unknown[] = [];
  for (const operand of call.operands) {
    if (operand === null) {
      block.fill(0, i, i + 7);
      block[i + 1] = -1;
      i += 7;
      continue;
    }
    const { shape, strides, source } = operand;
    if (typeof source === 'number' || typeof source === 'bigint') storeScalar(core, operand.dtype, source);
    // An array that is not in the heap yet is told apart by its buffer.
    const outside = operand.address === 0 ? operand.outside : null;
    if (outside !== null && !buffers.includes(outside.buffer)) buffers.push(outside.buffer);
    block[i++] = operand.address;
    block[i++] = operand.dtype;
    block[i++] = operand.size;
    block[i++] = outside === null ? 0 : 1 + buffers.indexOf(outside.buffer);
    block[i++] = outside === null ? 0 : outside.byteOffset;
    block[i++] = shape.length;
    block[i++] = strides === null ? 0 : strides.length;
    for (let axis = 0; axis < shape.length; ++axis) block[i++] = shape[axis] as number;
    if (strides !== null) for (let axis = 0; axis < strides.length; ++axis) block[i++] = strides[axis] as number;
  }
}

function writeFactor(block: Float64Array, at: number, factor: number | bigint): void {
  const exact = typeof factor === 'bigint';
  block[at] = exact ? 0 : factor;
  block[at + 1] = exact ? 1 : 0;
  block[at + 2] = exact ? Number(BigInt.asUintN(32, factor)) : 0;
  block[at + 3] = exact ? Number(BigInt.asUintN(32, factor >> 32n)) : 0;
}

/** A call with operands outside the heap: checked first, then copied in, computed, and copied out. */
function throughStaging(call: GemmCall): unknown {
  const { core, operands, out } = call;
  writeGemm(call);
  core.check(core.module.gemmShape(), 'gemm');
  const [m, n] = numbers(core, 2);
  const fresh: Operand = {
    name: 'Y',
    dtype: operands[0].dtype,
    shape: [m, n],
    strides: null,
    source: null,
    size: m * n,
    address: 0,
    outside: null,
  };
  const y = operands[3] ?? fresh;
  operands[3] = y;
  const staged = operands.filter((operand) => operand !== null && (operand.outside !== null || operand === fresh)) as Operand[];
  const room = ({ dtype, size }: Operand) => Math.ceil((size * bytesOf(core.dtypes[dtype] as DType)) / 64) * 64;
  const total = staged.reduce((sum, operand) => sum + room(operand), 0);
  const staging = total === 0 ? 0 : core.allocate(total, 'gemm');
  try {
    let next = staging;
    for (const operand of staged) {
      operand.address = next;
      next += room(operand);
      // Y is only written, but what lies between its elements must stay as it was.
      if (operand.outside !== null && (operand !== y || operand.strides !== null)) core.module.HEAPU8.set(operand.outside, operand.address);
    }
    writeGemm(call);
    core.check(core.module.gemm(), 'gemm');
    const dtype = core.dtypes[y.dtype] as DType;
    if (out === undefined) return { data: copyOut(core, dtype, y), shape: [m, n], dtype };
    y.outside?.set(core.module.HEAPU8.subarray(y.address, y.address + y.outside.byteLength));
    return out;
  } finally {
    if (staging !== 0) core.module.release(staging);
  }
}

/** The result as an array of its own. */
function copyOut(core: Core, dtype: DType, y: Operand): DataArray {
  try {
    return viewOf(dtype, core.buffer, y.address, y.size).slice();
  } catch (error) {
    throw new OutOfMemoryError('gemm', 'Y', `gemm: no array for the ${y.size} elements of Y: ${String(error)}`);
  }
}

/** C given as a number: a tensor of rank 0. The number goes to its place in the heap when the arguments do. */
function scalar(core: Core, op: string, value: number | bigint, dtype: number): Operand {
  const name = core.dtypes[dtype];
  if (typeof value === 'bigint') {
    if (name !== 'int64' && name !== 'uint64') {
      throw new ArgumentError(op, 'C', `${op}: C is ${describe(value)}, which ${name} cannot hold; bigints are for int64 and uint64`);
    }
    if ((name === 'int64' ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value)) !== value) {
      throw new ArgumentError(op, 'C', `${op}: C is ${describe(value)}, which ${name} cannot hold; it must be in the range of the type`);
    }
  }
  return { name: 'C', dtype, shape: [], strides: null, source: value, size: 1, address: core.scalarAddress, outside: null };
}

function storeScalar(core: Core, dtype: number, value: number | bigint): void {
  if (typeof value === 'bigint') {
    new BigInt64Array(core.buffer, core.scalarAddress, 1)[0] = value;
  } else if (core.module.storeScalar(dtype, value) !== 0) {
    const rule = 'it must be whole and in the range of the type';
    throw new ArgumentError('gemm', 'C', `gemm: C is ${describe(value)}, which ${core.dtypes[dtype]} cannot hold; ${rule}`);
  }
}

function readOptions(op: string, options: unknown, allowed: string[]): Record<string, unknown> {
  if (options === undefined || options === null) return {};
  if (typeof options !== 'object') throw new ArgumentError(op, 'options', `${op}: options is ${describe(options)}; it must be an object`);
  for (const key of Object.keys(options)) {
    if (!allowed.includes(key))
      throw new ArgumentError(op, key, `${op}: the option ${describe(key)} is not known; there are ${allowed.join(', ')}`);
  }
  return options as Record<string, unknown>;
}

function readFactor(op: string, name: string, value: unknown): number | bigint {
  if (value === undefined) return 1;
  if (typeof value !== 'number' && typeof value !== 'bigint')
    throw new ArgumentError(op, name, `${op}: ${name} is ${describe(value)}; it must be a number, or a bigint with int64 and uint64`);
  return value;
}

function readFlag(op: string, name: string, value: unknown, absent: number): number {
  if (value === undefined) return absent;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'number' || Number.isNaN(value)) {
    throw new ArgumentError(op, name, `${op}: ${name} is ${describe(value)}; it must be a boolean or a number`);
  }
  return value === 0 ? 0 : 1;
}

function readOpset(op: string, value: unknown): number {
  if (value === undefined) return 13;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new OpsetError(op, 'opset', `${op}: opset is ${describe(value)}; it must be a whole number from 1`);
  }
  return value;
}
