/**
 * Products of few elements in arrays of the caller. JavaScript computes them, since a call of the
 * core takes several times as long. The bits are the same: the core fuses no product of this size,
 * wherever its operands are (src/plan/select_kernel.cc).
 */
import { bufferOf, classOf, lengthOf } from '../base/arrays.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Core } from '../instance/core.js';
import type { Arguments } from './call.js';
import type { Operand } from './operand.js';

/** The most multiply-adds. */
const mostSmall = 512;

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
const classes = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  uint32: Uint32Array,
};

/**
 * @internal Computes a call without options, if its product is small and in arrays. Otherwise
 * returns undefined, also if something is wrong with an operand.
 */
export function runSmall(core: Core, { operands, out }: Arguments): unknown {
  const [a, b, addend, result] = operands as [Operand, Operand, Operand | null, Operand | null];
  const dtype = core.dtypes[a.dtype] as DType;
  const loop = loops[dtype];
  const [m, k] = a.shape as [number, number];
  const n = b.shape[1] as number;
  const work = m * n * k;
  if (
    core.disposed || // by code that read the operands
    addend !== null ||
    !loop ||
    !(work >= 1 && work <= mostSmall) ||
    a.dtype !== b.dtype ||
    k !== b.shape[0] ||
    !isPlain(core, a, m * k) ||
    !isPlain(core, b, k * n)
  )
    return undefined;
  if (result === null) {
    const data = new classes[dtype as keyof typeof classes](m * n);
    loop(data as never, a.source as never, b.source as never, m, n, k);
    return { data, shape: [m, n], dtype };
  }
  if (
    result.dtype !== a.dtype ||
    result.shape[0] !== m ||
    result.shape[1] !== n ||
    !isPlain(core, result, m * n) ||
    isShared(result, a) ||
    isShared(result, b)
  )
    return undefined;
  loop(result.source as never, a.source as never, b.source as never, m, n, k);
  return out;
}

/** Whether an operand is a contiguous matrix in an array of the caller. */
function isPlain(core: Core, { shape, strides, offset, source }: Operand, size: number): boolean {
  return (
    shape.length === 2 &&
    strides === null &&
    offset === null &&
    classOf(source) !== undefined &&
    lengthOf(source as DataArray) === size &&
    !core.owns(bufferOf(source as DataArray))
  );
}

/** Whether two operands may overlap. */
const isShared = (one: Operand, other: Operand): boolean =>
  bufferOf(one.source as DataArray) === bufferOf(other.source as DataArray);
