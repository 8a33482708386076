/**
 * Products of few elements in arrays of the caller. JavaScript computes them, since a call of the
 * core takes several times as long. The bits are the same: the core fuses no product of this size,
 * wherever its operands are (src/plan/select_kernel.cc).
 */
import {
  arrayOf,
  bufferOf,
  bytesOf,
  classNameOf,
  classOf,
  copiedFrom,
  lengthOf,
  offsetOf,
  viewOf,
} from '../base/arrays.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import { writeMatrix, writeNothing } from './block.js';
import type { Arguments } from './call.js';
import type { Operand } from './operand.js';
import { computeBlock } from './run.js';
import { smallRoom } from './staging.js';

/** The most multiply-adds. */
const mostSmall = 216;

/** Writes y = a * b, with a of shape (m, k) and b of shape (k, n). */
type Loop<A = never> = (y: A, a: A, b: A, m: number, n: number, k: number) => void;

const { fround, imul } = Math;

/** NaN as the core writes it. */
const canonical = (sum: number): number => (sum === sum ? sum : NaN);

// Four columns at a time: a sum waits for the one before it.
const float32: Loop<Float32Array> = (y, a, b, m, n, k) => {
  let at = 0;
  for (let row = 0; row < m * k; row += k) {
    let j = 0;
    for (; j + 3 < n; j += 4) {
      let s = fround(0);
      let t = fround(0);
      let u = fround(0);
      let v = fround(0);
      for (let p = row, q = j; p < row + k; ++p, q += n) {
        const x = a[p] as number;
        s = fround(s + fround(x * (b[q] as number)));
        t = fround(t + fround(x * (b[q + 1] as number)));
        u = fround(u + fround(x * (b[q + 2] as number)));
        v = fround(v + fround(x * (b[q + 3] as number)));
      }
      y[at++] = canonical(s);
      y[at++] = canonical(t);
      y[at++] = canonical(u);
      y[at++] = canonical(v);
    }
    for (; j < n; ++j) {
      let sum = fround(0);
      for (let p = row, q = j; p < row + k; ++p, q += n)
        sum = fround(sum + fround((a[p] as number) * (b[q] as number)));
      y[at++] = canonical(sum);
    }
  }
};

const float64: Loop<Float64Array> = (y, a, b, m, n, k) => {
  for (let i = 0; i < m; ++i)
    for (let j = 0; j < n; ++j) {
      let sum = 0;
      for (let p = 0; p < k; ++p) sum += (a[i * k + p] as number) * (b[p * n + j] as number);
      y[i * n + j] = canonical(sum);
    }
};

const int32: Loop<Int32Array | Uint32Array> = (y, a, b, m, n, k) => {
  for (let i = 0; i < m; ++i)
    for (let j = 0; j < n; ++j) {
      let sum = 0;
      for (let p = 0; p < k; ++p)
        sum = (sum + imul(a[i * k + p] as number, b[p * n + j] as number)) | 0;
      y[i * n + j] = sum;
    }
};

const loops: Partial<Record<DType, Loop>> = { float32, float64, int32, uint32: int32 };

/**
 * @internal Computes a call without options, if its operands are small matrices in arrays.
 * Otherwise returns undefined, also if something is wrong with an operand.
 */
export function runSmall(core: Core, read: Arguments): unknown {
  const { operands, out } = read;
  const [a, b, addend, result] = operands as [Operand, Operand, Operand | null, Operand | null];
  if (core.disposed || addend !== null) return undefined; // code that read the operands may dispose
  const dtype = core.dtypes[a.dtype] as DType;
  const [m, k] = a.shape as [number, number];
  const n = b.shape[1] as number;
  const size = m * n;
  const bytes = (size + m * k + k * n + 3 * alignment) * bytesOf(dtype);
  if (
    !(size * k >= 1 && bytes <= smallRoom) ||
    a.dtype !== b.dtype ||
    k !== b.shape[0] ||
    !isPlain(core, a, dtype, m * k) ||
    !isPlain(core, b, dtype, k * n)
  )
    return undefined;
  if (
    result !== null &&
    (result.dtype !== a.dtype ||
      result.shape[0] !== m ||
      result.shape[1] !== n ||
      !isPlain(core, result, dtype, size) ||
      !canBeWritten(core, result, a, b))
  )
    return undefined;
  const loop = size * k <= mostSmall ? loops[dtype] : undefined;
  if (!loop && core.mustAsk(bytes)) return undefined;
  let y = result?.source as DataArray | undefined;
  if (loop) {
    y ??= arrayOf(dtype, size);
    loop(y as never, a.source as never, b.source as never, m, n, k);
  } else y = runCopied(core, read, a, b, y, m, n, k);
  return result === null ? { data: y, shape: [m, n], dtype } : out;
}

/** Each copy begins at a multiple of this many elements. */
const alignment = 16;
const aligned = (elements: number) => Math.ceil(elements / alignment) * alignment;

/** Lets the core compute from copies. Returns the result: `y`, or a new array. */
function runCopied(
  core: Core,
  { operation, attributes }: Arguments,
  a: Operand,
  b: Operand,
  y: DataArray | undefined,
  m: number,
  n: number,
  k: number,
): DataArray {
  const dtype = core.dtypes[a.dtype] as DType;
  const heap = core.elements(dtype) as Float32Array;
  const bytes = heap.BYTES_PER_ELEMENT;
  const first = core.staging / bytes;
  const atB = first + aligned(m * k);
  const atY = atB + aligned(k * n);
  heap.set(a.source as Float32Array, first);
  heap.set(b.source as Float32Array, atB);
  const { block } = core;
  let at = 0;
  for (; at < attributes.length; ++at) block[at] = attributes[at] as number;
  at = writeMatrix(block, at, a.dtype, first * bytes, m, k);
  at = writeMatrix(block, at, a.dtype, atB * bytes, k, n);
  at = writeNothing(block, at);
  at = writeMatrix(block, at, a.dtype, atY * bytes, m, n);
  computeBlock(core, operation, at);
  const size = m * n;
  if (!y) return copiedFrom(dtype, core.buffer, atY * bytes, size);
  // Views of our own: an array of the caller may have methods of its own.
  const target = viewOf(dtype, bufferOf(y), offsetOf(y), size) as Float32Array;
  target.set(viewOf(dtype, core.buffer, atY * bytes, size) as Float32Array);
  return y;
}

/**
 * Whether an operand is a contiguous matrix in an array of the caller, of the class that the
 * library makes.
 */
function isPlain(
  core: Core,
  { shape, strides, offset, source }: Operand,
  dtype: DType,
  size: number,
): boolean {
  return (
    shape.length === 2 &&
    strides === null &&
    offset === null &&
    ArrayBuffer.isView(source) &&
    lengthOf(source) === size &&
    // No tensor begins at the first byte of the heap. The buffer of a small array is slow to get.
    (offsetOf(source) === 0 || !core.owns(bufferOf(source))) &&
    (dtype !== 'float16' || classOf(source) === classNameOf(dtype))
  );
}

/**
 * Whether the result can be written while A and B are read. Two objects may stand for the same
 * shared memory, so a result there takes the usual way.
 */
function canBeWritten(core: Core, result: Operand, a: Operand, b: Operand): boolean {
  const buffer = bufferOf(result.source as DataArray);
  return (
    buffer instanceof ArrayBuffer &&
    buffer !== bufferOf(a.source as DataArray) &&
    buffer !== bufferOf(b.source as DataArray) &&
    !core.owns(buffer)
  );
}
