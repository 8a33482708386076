/** Products of matrices that contestants compute: wgemm, plain JavaScript and the peers. */
import type { DType, Explanation, Gemm, HeapTensor } from 'wgemm';

/** Types that the page offers. int8 is uint8 x int8 with a float32 result: QGemm. */
export type ProductType =
  'float32' | 'float64' | 'bfloat16' | 'float16' | 'int32' | 'int64' | 'int8';

export interface Product {
  m: number;
  n: number;
  k: number;
  dtype: ProductType;
  transA: boolean;
  transB: boolean;
}

export interface Contestant {
  name: string;
  /** Computes the product some times. */
  run(times: number): void | Promise<void>;
  /** Element 0 of the result, by which the page checks that all compute the same. */
  first(): number | Promise<number>;
  dispose(): void;
}

export interface OwnContestant extends Contestant {
  /** What the call would do. */
  plan(): Explanation;
}

export const shapeOfA = ({ m, k, transA }: Product): [number, number] => (transA ? [k, m] : [m, k]);
export const shapeOfB = ({ n, k, transB }: Product): [number, number] => (transB ? [n, k] : [k, n]);

// #region own
/** The product by wgemm, on tensors in its memory: a call copies and allocates nothing. */
export function wgemmOn(wg: Gemm, product: Product): OwnContestant {
  const { m, n, dtype, transA, transB } = product;
  const isQuantized = dtype === 'int8';
  const a = filled(wg.alloc(isQuantized ? 'uint8' : dtype, shapeOfA(product)), 1);
  const b = filled(wg.alloc(dtype, shapeOfB(product)), 2);
  const out = wg.alloc(isQuantized ? 'float32' : dtype, [m, n]);
  const call = { transA, transB, out };
  const inputs = { a, aScale: 1, aZeroPoint: 128, b, bScale: 1 };
  const multiply = isQuantized
    ? () => wg.qgemm(inputs as never, call as never)
    : () => wg.gemm(a as never, b as never, null, call as never);
  return {
    name: 'wgemm',
    run(times) {
      for (let i = 0; i < times; ++i) multiply();
    },
    // #endregion
    first: () => Number(out.data[0]),
    plan: () =>
      isQuantized
        ? wg.explain('qgemm', inputs as never, call as never)
        : wg.explain('gemm', a as never, b as never, null, call as never),
    dispose: () => [a, b, out].forEach((tensor) => tensor.dispose()),
  };
}

/** Whether plain JavaScript can compute a type without work of its own on bits. */
export const isInJavaScript = ({ dtype }: Product): boolean =>
  dtype !== 'bfloat16' && dtype !== 'float16' && dtype !== 'int64';

// #region javascript
/** The product by three loops, in the order that walks arrays forwards. */
export function javascriptOn(product: Product): Contestant {
  const { m, n, k, dtype, transA, transB } = product;
  const isQuantized = dtype === 'int8';
  const a = valuesOf(isQuantized ? 'uint8' : dtype, m * k, 1) as Float32Array;
  const b = valuesOf(dtype, k * n, 2) as Float32Array;
  const y = new (classOf(isQuantized ? 'float32' : dtype))(m * n) as Float32Array;
  const [rowOfA, columnOfA] = transA ? [1, m] : [k, 1];
  const [rowOfB, columnOfB] = transB ? [1, k] : [n, 1];
  const zero = isQuantized ? 128 : 0;
  const multiply = () => {
    y.fill(0);
    for (let i = 0; i < m; ++i)
      for (let p = 0; p < k; ++p) {
        const factor = a[i * rowOfA + p * columnOfA]! - zero;
        for (let j = 0; j < n; ++j) y[i * n + j]! += factor * b[p * rowOfB + j * columnOfB]!;
      }
  };
  // #endregion
  return {
    name: 'JavaScript',
    run(times) {
      for (let i = 0; i < times; ++i) multiply();
    },
    first: () => y[0]!,
    dispose: () => undefined,
  };
}

// --- numbers -------------------------------------------------------------------------------------

const classes = {
  float32: Float32Array,
  float64: Float64Array,
  bfloat16: Uint16Array,
  float16: Uint16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  int8: Int8Array,
  uint8: Uint8Array,
};
type Filled = ProductType | 'uint8';
const classOf = (dtype: Filled) => classes[dtype];

/** Elements of a tensor with these bits, from -0.5 to 0.5 if floating point. All are finite. */
const elements: Record<Filled, (random: number) => number | bigint> = {
  float32: (random) => random - 0.5,
  float64: (random) => random - 0.5,
  // A sign, and the exponent of 0.25 to 0.5.
  bfloat16: (random) => (random < 0.5 ? 0x8000 : 0) | 0x3e80 | ((random * 0x100) & 0x7f),
  float16: (random) => (random < 0.5 ? 0x8000 : 0) | 0x3400 | ((random * 0x800) & 0x3ff),
  int32: (random) => Math.floor(200 * random) - 100,
  int64: (random) => BigInt(Math.floor(200 * random) - 100),
  int8: (random) => Math.floor(200 * random) - 100,
  uint8: (random) => Math.floor(256 * random),
};

/** Random numbers that repeat after 1,021 elements, since many would take longer than a product. */
function fill(array: { length: number }, dtype: Filled, seed: number): void {
  const data = array as Float32Array;
  const period = Math.min(1021, data.length);
  let state = seed;
  for (let i = 0; i < period; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    data[i] = elements[dtype](state / 2 ** 32) as number;
  }
  for (let done = period; done < data.length; done *= 2) data.copyWithin(done, 0, done);
}

export function valuesOf(dtype: Filled, length: number, seed: number): ArrayBufferView {
  const data = new (classOf(dtype))(length);
  fill(data, dtype, seed);
  return data;
}

function filled(tensor: HeapTensor, seed: number): HeapTensor {
  fill(tensor.data, tensor.dtype as Filled & DType, seed);
  return tensor;
}
