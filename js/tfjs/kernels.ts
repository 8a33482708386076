/** The kernels that replace kernels of TensorFlow.js. */
import { classOf } from '../base/arrays.js';
import { OutOfMemoryError } from '../base/errors.js';
import { operandOf, packedWeights } from '../call/operand.js';
import { makeCall, runCall } from '../call/run.js';
import { count } from '../convert/quantize-numbers.js';
import type { Core } from '../instance/core.js';
import { attributesOfMatMul } from '../ops/matmul.js';
import { operations } from '../ops/operations.js';
import { costOfEpilogue, isFasterThanLoops, isFasterThanXnnpack } from './rule.js';
import type { DataOwner, KeptWeights } from './weights.js';

/** @internal The functions of TensorFlow.js that `install` calls. */
export interface Functions {
  readonly getKernel: (kernelName: string, backendName: string) => KernelConfig | undefined;
  readonly registerKernel: (config: KernelConfig) => void;
  readonly unregisterKernel: (kernelName: string, backendName: string) => void;
}

/** @internal */
export interface KernelConfig {
  kernelName: string;
  backendName: string;
  kernelFunc(args: KernelArguments): TensorInfo;
  /** Is called before the backend ends. */
  disposeFunc?(backend: Backend): void;
}

interface KernelArguments {
  readonly inputs: Record<string, TensorInfo | undefined>;
  readonly backend: Backend;
  readonly attrs?: KernelAttributes;
}

interface KernelAttributes {
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  readonly activation?: string;
  readonly leakyreluAlpha?: number;
}

/** If a backend returns one, the caller must dispose of its data, or return it. */
interface TensorInfo {
  readonly dataId: object;
  readonly shape: readonly number[];
  readonly dtype: string;
}

/** The members that both backends have, and members that only one has. */
interface Backend extends DataOwner {
  readSync(dataId: object): unknown;
  /** Only wasm: a tensor of memory that is not cleared. */
  makeOutput(shape: readonly number[], dtype: string): TensorInfo;
  /** Only wasm: the elements in its memory. The view is valid until the memory grows. */
  typedArrayFromHeap(tensor: TensorInfo): Float32Array;
  /** Only wasm: the shape with which data was made. A reshaped tensor has the same data. */
  readonly dataIdMap?: { get(dataId: object): { readonly shape: readonly number[] } };
  /** Only wasm. */
  readonly wasm?: { readonly tfjs?: { getThreadsCount?(): number } };
  /** Only cpu: a tensor that has this array. */
  makeTensorInfo(shape: readonly number[], dtype: string, values: Float32Array): TensorInfo;
}

/** How the elements of a backend's tensors are reached. */
interface Access {
  /** A tensor of float32 whose elements are not set. */
  readonly make: (backend: Backend, shape: readonly number[]) => TensorInfo;
  /** The elements themselves. In `wasm` only until the next tensor is made. */
  readonly view: (backend: Backend, tensor: TensorInfo) => Float32Array;
}

const accesses: Record<string, Access> = {
  wasm: {
    make: (backend, shape) => backend.makeOutput(shape, 'float32'),
    view: (backend, tensor) => backend.typedArrayFromHeap(tensor),
  },
  cpu: {
    make: (backend, shape) =>
      backend.makeTensorInfo(shape, 'float32', new Float32Array(count(shape))),
    view(backend, { dataId }) {
      const values = backend.readSync(dataId);
      // Some kernels leave an ordinary array.
      return classOf(values) === 'Float32Array'
        ? (values as Float32Array)
        : Float32Array.from(values as number[]);
    },
  },
};

const fused = '_FusedMatMul';

/** @internal Kernels that compute products. The package replaces them. */
export const kernelNames = ['BatchMatMul', fused];

/** A tensor of more than 3 axes that was reshaped. */
interface Reshaped {
  /** A weak reference, so that it does not keep the data. */
  readonly dataId: WeakRef<object>;
  /** The shape before. */
  readonly shape: readonly number[];
}

/**
 * @internal The arguments of the last two calls of Reshape; null for a tensor of up to 3 axes.
 * `tf.fused.matMul` reshapes a and then b to 3 axes, and calls the kernel. Bias and slopes keep
 * their axes. They must broadcast to the shape that the result has without these reshapes.
 */
export type LastReshaped = [a: Reshaped | null, b: Reshaped | null];

/** @internal A Reshape that records its arguments in `last`. */
export function watchReshape(old: KernelConfig, last: LastReshaped): KernelConfig {
  const kernelFunc = (args: KernelArguments): TensorInfo => {
    const { x } = args.inputs;
    last[0] = last[1];
    last[1] = x && x.shape.length > 3 ? { dataId: new WeakRef(x.dataId), shape: x.shape } : null;
    return old.kernelFunc(args);
  };
  return { ...old, kernelFunc, [mark]: true } as KernelConfig;
}

/** The shape of an operand before it was reshaped. */
function shapeBefore(reshaped: Reshaped | null, { dataId, shape }: TensorInfo): readonly number[] {
  const isSame =
    reshaped?.dataId.deref() === dataId &&
    reshaped.shape.slice(-2).join() === shape.slice(-2).join() &&
    batchOf(reshaped.shape) === batchOf(shape);
  return isSame ? reshaped.shape : shape;
}

/** @internal Everything that a replacement needs. */
export interface Context {
  readonly functions: Functions;
  /** The core of the instance. */
  readonly core: Core;
  readonly always: boolean;
  /** The threads of the instance. */
  readonly threads: number;
  /** The packed weights of the instance. */
  readonly weights: KeptWeights;
  readonly last: LastReshaped;
  readonly old: KernelConfig;
  /** Whether its backend is `wasm`. */
  readonly isWasm: boolean;
  /** Whether it computes. If not, it calls the old kernel. */
  readonly isActive: () => boolean;
}

/** Other copies of this entry recognize its kernels by this property. */
const mark = Symbol.for('wgemm.tfjs');

/** @internal Whether a kernel is a replacement. */
export function isReplaced(kernel: object): boolean {
  return mark in kernel;
}

/** @internal The kernel that replaces `context.old`. */
export function replacementOf(context: Context): KernelConfig {
  const { old, isActive } = context;
  const access = accesses[old.backendName] as Access;
  const kernelFunc = (args: KernelArguments): TensorInfo => {
    const product = readProduct(context, args);
    if (!product || !isActive()) return old.kernelFunc(args);
    try {
      return computeProduct(context, access, args.backend, product);
    } catch (error) {
      if (error instanceof OutOfMemoryError) return old.kernelFunc(args);
      throw error;
    }
  };
  const disposeFunc = (backend: Backend) => {
    context.weights.release(backend);
    old.disposeFunc?.(backend);
  };
  return { ...old, kernelFunc, disposeFunc, [mark]: true } as KernelConfig;
}

/** A product that wgemm computes. */
interface KernelProduct {
  readonly a: TensorInfo;
  readonly b: TensorInfo;
  readonly bias: TensorInfo | undefined;
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  /** The shapes of a, b and the result, as the caller has them. */
  readonly shapes: readonly [a: readonly number[], b: readonly number[], result: number[]];
  /** The shape of the result that the kernel returns. All batch axes may be one axis. */
  readonly shape: number[];
  /** Bounds of the result, which wgemm applies. */
  readonly bounds: readonly [min: number, max: number];
  /** The step after the product, if `bounds` do not suffice. */
  readonly then: ApplyActivation | null;
}

/** Applies an activation to a tensor. Returns that tensor, or a new one. */
type ApplyActivation = (backend: Backend, tensor: TensorInfo) => TensorInfo;

const noBounds = [-Infinity, Infinity] as const;

/** Activations that wgemm has. */
const boundsOf = new Map<string, readonly [min: number, max: number]>([
  ['linear', noBounds],
  ['relu', [0, Infinity]],
  ['relu6', [0, 6]],
]);

/**
 * Reads a call. Returns null if the old kernel must compute it, or report its error. Small products
 * come here too, so this makes no objects before it knows that wgemm is faster.
 */
function readProduct(
  { functions, always, threads, isWasm, last, old }: Context,
  { inputs, backend, attrs = {} }: KernelArguments,
): KernelProduct | null {
  const { a, b, bias, preluActivationWeights: slopes } = inputs;
  if (a?.dtype !== 'float32' || b?.dtype !== 'float32') return null;
  const { transposeA = false, transposeB = false, activation = 'linear' } = attrs;
  const rankA = a.shape.length,
    rankB = b.shape.length;
  if (rankA < 2 || rankB < 2) return null;
  const m = a.shape[transposeA ? rankA - 1 : rankA - 2] as number;
  const k = a.shape[transposeA ? rankA - 2 : rankA - 1] as number;
  const n = b.shape[transposeB ? rankB - 2 : rankB - 1] as number;
  if (b.shape[transposeB ? rankB - 1 : rankB - 2] !== k) return null;
  const batchOfA = batchOf(a.shape),
    batchOfB = batchOf(b.shape);
  const isXnnpack = isWasm && !transposeA && !transposeB && batchOfA === 1 && batchOfB === 1;
  const batch = Math.max(batchOfA, batchOfB);
  const epilogue = costOfEpilogue(batch * m, n, !!bias, activation !== 'linear');
  if (
    !always &&
    batchOfA * batchOfB * m * n * k > 0 && // both backends have errors with empty operands
    (batchOfA === 1 || batchOfB === 1 || hasSameBatches(a.shape, b.shape)) &&
    (isWasm
      ? isRight(backend, bias, slopes, activation, m, n, k, isXnnpack)
      : isRightInCpu(bias, batch) && isRightInCpu(slopes, batch)) &&
    (isXnnpack
      ? !isFasterThanXnnpack(m, n, k, epilogue) || threadsOf(backend) > threads
      : !isFasterThanLoops(batch, m, n, k, epilogue))
  )
    return null;

  if ((bias && bias.dtype !== 'float32') || (slopes && slopes.dtype !== 'float32')) return null;
  let [shapeA, shapeB] = [a.shape, b.shape];
  if (old.kernelName === fused)
    [shapeA, shapeB] = [shapeBefore(last[0], a), shapeBefore(last[1], b)];
  const batches = broadcast(shapeA.slice(0, -2), shapeB.slice(0, -2));
  if (!batches) return null;
  const whole = [...batches, m, n];
  if (bias && !isBroadcastTo(bias.shape, whole)) return null;
  if (slopes && !isBroadcastTo(slopes.shape, whole)) return null;
  const isReshaped = shapeA !== a.shape || shapeB !== b.shape;
  const shape = isReshaped ? [count(batches), m, n] : whole;
  const shapes = [shapeA, shapeB, whole] as const;
  const read = { a, b, bias, transposeA, transposeB, shapes, shape };
  const bounds = boundsOf.get(activation);
  if (bounds) return { ...read, bounds, then: null };
  const { backendName } = old;
  const then = stepOf(functions, backendName, activation, slopes, whole, attrs.leakyreluAlpha);
  // XNNPACK's kernels divide by the sizes of some empty tensors.
  return then && { ...read, bounds: noBounds, then: count(shape) > 0 ? then : null };
}

/** XNNPACK uses several if the page is isolated. */
function threadsOf({ wasm }: Backend): number {
  return wasm?.tfjs?.getThreadsCount?.() ?? 1;
}

/** The product of the sizes of the batch axes. */
function batchOf(shape: readonly number[]): number {
  let batch = 1;
  for (let axis = shape.length - 3; axis >= 0; --axis) batch *= shape[axis] as number;
  return batch;
}

/** The old kernels need this if both operands have more than one matrix. */
function hasSameBatches(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let axis = a.length - 3; axis >= 0; --axis) if (a[axis] !== b[axis]) return false;
  return true;
}

/**
 * Whether the old kernel of `wasm` may compute this. Unless XNNPACK computes the product, the
 * kernel of tfjs 4.22 adds the bias and applies bounds once per 48 steps of K, and only the first
 * row gets all elements of the bias. It refuses a bias of several axes. It repeats the slopes in
 * the order of memory, whatever their shape is.
 */
function isRight(
  { dataIdMap }: Backend,
  bias: TensorInfo | undefined,
  slopes: TensorInfo | undefined,
  activation: string,
  m: number,
  n: number,
  k: number,
  isXnnpack: boolean,
): boolean {
  if (bias && (bias.shape.length !== 1 || bias.shape[0] !== n)) return false;
  if (bias && dataIdMap?.get(bias.dataId).shape.length !== 1) return false;
  if (slopes && !isRepeatedIn(slopes.shape, [m, n])) return false;
  if (isXnnpack) return true;
  return bias ? k <= 48 && (m === 1 || n === 1) : k <= 48 || !activation.startsWith('relu');
}

/** Whether the old kernel of `cpu`, which has one batch axis, broadcasts bias or slopes right. */
function isRightInCpu(part: TensorInfo | undefined, batch: number): boolean {
  if (!part || part.shape.length < 3) return true;
  return part.shape.length === 3 && (part.shape[0] === 1 || part.shape[0] === batch);
}

/** The names of the backend's kernels for other activations. */
const kernelOf = new Map([
  ['elu', 'Elu'],
  ['sigmoid', 'Sigmoid'],
  ['leakyrelu', 'LeakyRelu'],
  ['prelu', 'Prelu'],
]);

/** null: there is no such activation here. */
function stepOf(
  { getKernel }: Functions,
  backendName: string,
  activation: string,
  slopes: TensorInfo | undefined,
  shape: readonly number[],
  alpha = 0,
): ApplyActivation | null {
  if (activation === 'prelu') {
    if (!slopes) return null;
    // XNNPACK's kernel is five times as fast, but it repeats the slopes in the order of memory.
    if (backendName === 'cpu' || !isRepeatedIn(slopes.shape, shape)) {
      const { view } = accesses[backendName] as Access;
      return (backend, tensor) => {
        prelu(view(backend, tensor), shape, view(backend, slopes), slopes.shape);
        return tensor;
      };
    }
  }
  const name = kernelOf.get(activation);
  const kernel = name && getKernel(name, backendName);
  if (!kernel) return null;
  return (backend, x) =>
    kernel.kernelFunc({
      inputs: { x, alpha: slopes },
      backend,
      attrs: { alpha } as KernelAttributes,
    });
}

/**
 * Whether broadcasting a tensor to a shape repeats its elements in the order of memory. It does if
 * its axes, without leading axes of size 1, are the last axes of the shape.
 */
function isRepeatedIn(part: readonly number[], shape: readonly number[]): boolean {
  for (let rest = count(part), i = 1; rest > 1; ++i) {
    const size = part.at(-i) as number;
    if (size !== shape.at(-i)) return false;
    rest /= size;
  }
  return true;
}

/** Multiplies elements below 0 by slopes, which broadcast to the shape. */
function prelu(
  values: Float32Array,
  shape: readonly number[],
  slopes: Float32Array,
  shapeOfSlopes: readonly number[],
): void {
  const rank = shape.length;
  const strides = stridesIn(shapeOfSlopes, rank);
  const columns = shape[rank - 1] as number;
  const step = strides[rank - 1] as number;
  const index = new Array<number>(rank).fill(0);
  let from = 0;
  for (let start = 0; start < values.length; start += columns) {
    for (let i = 0; i < columns; ++i) {
      const value = values[start + i] as number;
      if (value < 0) values[start + i] = value * (slopes[from + i * step] as number);
    }
    for (let axis = rank - 2; axis >= 0; --axis) {
      from += strides[axis] as number;
      if (++(index[axis] as number) < (shape[axis] as number)) break;
      from -= (strides[axis] as number) * (index[axis] as number);
      index[axis] = 0;
    }
  }
}

/** The strides of a contiguous tensor as it broadcasts to a rank; 0 along axes of size 1. */
function stridesIn(shape: readonly number[], rank: number): number[] {
  const strides = new Array<number>(rank).fill(0);
  let stride = 1;
  for (let i = 1; i <= shape.length; ++i) {
    const size = shape[shape.length - i] as number;
    if (size !== 1) strides[rank - i] = stride;
    stride *= size;
  }
  return strides;
}

/** The shape that batch axes broadcast to; null if they do not. */
function broadcast(a: readonly number[], b: readonly number[]): number[] | null {
  const rank = Math.max(a.length, b.length);
  const shape = new Array<number>(rank);
  for (let i = 1; i <= rank; ++i) {
    const sizes = [a[a.length - i] ?? 1, b[b.length - i] ?? 1] as const;
    if (sizes[0] !== sizes[1] && sizes[0] !== 1 && sizes[1] !== 1) return null;
    shape[rank - i] = sizes[0] === 1 ? sizes[1] : sizes[0];
  }
  return shape;
}

function isBroadcastTo(from: readonly number[], to: readonly number[]): boolean {
  const result = broadcast(from, to);
  return result?.length === to.length && result.every((size, i) => size === to[i]);
}

function computeProduct(
  { core, weights }: Context,
  { make, view }: Access,
  backend: Backend,
  { a, b, bias, transposeA, transposeB, shapes, shape, bounds, then }: KernelProduct,
): TensorInfo {
  const float32 = core.dtypes.indexOf('float32');
  const [shapeA, shapeB, whole] = shapes;
  const rows = shapeB.at(-2) as number;
  const columns = shapeB.at(-1) as number;
  // Before the views of operands, which end if this makes the memory grow.
  const result = make(backend, shape);
  try {
    const operandIn = (name: string, tensor: TensorInfo, shape = tensor.shape) =>
      operandOf(name, float32, shape, view(backend, tensor));
    const packed =
      batchOf(b.shape) === 1
        ? weights.find(backend, b.dataId, rows, columns, transposeB, () => view(backend, b))
        : null;
    // Packed weights have no batch axes. The unpacked ones may have more than a.
    const missing = packed ? whole.length - shapeA.length : 0;
    const shapeOfA = missing > 0 ? [...new Array<number>(missing).fill(1), ...shapeA] : shapeA;
    const operands = [
      operandIn('src', a, shapeOfA),
      packed ? operandOf('weights', packedWeights, [], packed) : operandIn('weights', b, shapeB),
      bias ? operandIn('bias', bias) : null,
      operandIn('out', result, whole),
    ];
    const attributes = attributesOfMatMul(transposeA, transposeB && !packed, float32, bounds);
    runCall(makeCall(core, { operation: operations.matmul, attributes, operands, out: result }));
    const activated = then ? then(backend, result) : result;
    if (activated !== result) backend.disposeData(result.dataId);
    return activated;
  } catch (error) {
    backend.disposeData(result.dataId);
    throw error;
  }
}
