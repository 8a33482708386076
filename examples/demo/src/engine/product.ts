/** Products of matrices that contestants compute: wgemm, plain JavaScript and the peers. */
import type { DType, Gemm, HeapTensor } from 'wgemm';
import { seededRandom } from '../../../random.mjs';
import { multiply as float32 } from './loops.ts?float32';
import { multiply as float64 } from './loops.ts?float64';
import { multiply as int32 } from './loops.ts?int32';
import { multiply as int8 } from './loops.ts?int8';
import type { Numbers } from './loops.ts';

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
  run: (times: number) => void | Promise<void>;
  /** Element 0 of the result, by which the page checks that all compute the same. */
  first: () => number | Promise<number>;
  dispose: () => void;
  /** Whether its threads stay awake for some time after a call. */
  spins?: boolean;
}

export const shapeOfA = ({ m, k, transA }: Product): [number, number] => (transA ? [k, m] : [m, k]);
export const shapeOfB = ({ n, k, transB }: Product): [number, number] => (transB ? [n, k] : [k, n]);

/** The product by wgemm. */
export const wgemmOn = (wg: Gemm, product: Product): Contestant =>
  product.dtype === 'int8' ? qgemmOn(wg, product) : gemmOn(wg, product, product.dtype);

/** Tensors in the memory of wgemm: a call on them copies and allocates nothing. */
export function gemmTensors(wg: Gemm, product: Product, dtype: Exclude<ProductType, 'int8'>) {
  const a = wg.alloc(dtype, shapeOfA(product));
  const b = wg.alloc(dtype, shapeOfB(product));
  const out = wg.alloc(dtype, [product.m, product.n]);
  return { a, b, out };
}

function gemmOn(wg: Gemm, product: Product, dtype: Exclude<ProductType, 'int8'>): Contestant {
  const { transA, transB } = product;
  const { a, b, out } = gemmTensors(wg, product, dtype);
  return own({ a, b, out }, (times) => {
    for (let i = 0; i < times; ++i) wg.gemm(a, b, null, { transA, transB, out });
  });
}

/** The same for uint8 x int8, with a float32 result. */
export function qgemmTensors(wg: Gemm, product: Product) {
  const a = wg.alloc('uint8', shapeOfA(product));
  const b = wg.alloc('int8', shapeOfB(product));
  const out = wg.alloc('float32', [product.m, product.n]);
  return { inputs: { a, aScale: 1, aZeroPoint: 128, b, bScale: 1 }, out };
}

function qgemmOn(wg: Gemm, product: Product): Contestant {
  const { transA, transB } = product;
  const { inputs, out } = qgemmTensors(wg, product);
  return own({ ...inputs, out }, (times) => {
    for (let i = 0; i < times; ++i) wg.qgemm(inputs, { transA, transB, out });
  });
}

interface Tensors {
  a: HeapTensor;
  b: HeapTensor;
  out: HeapTensor;
}

function own({ a, b, out }: Tensors, run: (times: number) => void): Contestant {
  fillTensor(a, 1);
  fillTensor(b, 2);
  return {
    name: 'wgemm',
    run,
    first: () => Number(out.data[0]),
    dispose: () => [a, b, out].forEach((tensor) => tensor.dispose()),
  };
}

/** Whether plain JavaScript can compute a type without work of its own on bits. */
export const isInJavaScript = ({ dtype }: Pick<Product, 'dtype'>): boolean =>
  dtype !== 'bfloat16' && dtype !== 'float16' && dtype !== 'int64';

/**
 * The loops, once per type: an engine compiles a function for the types that it has seen, and one
 * for all types would be several times slower.
 */
const loops = { float32, float64, int32, int8 };

/** The product by plain JavaScript, of a type that it has. */
export function javascriptOn(product: Product): Contestant {
  const { m, n, k, dtype } = product;
  const isQuantized = dtype === 'int8';
  const multiply = loops[dtype as keyof typeof loops];
  const a = valuesOf(isQuantized ? 'uint8' : dtype, m * k, 1) as Numbers;
  const b = valuesOf(dtype, k * n, 2) as Numbers;
  const y = new (classOf(isQuantized ? 'float32' : dtype))(m * n) as Numbers;
  return {
    name: 'JavaScript',
    run(times) {
      for (let i = 0; i < times; ++i) multiply(product, a, b, y, isQuantized ? 128 : 0);
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
  const random = seededRandom(seed);
  for (let i = 0; i < period; ++i) data[i] = elements[dtype](random()) as number;
  for (let done = period; done < data.length; done *= 2) data.copyWithin(done, 0, done);
}

export function valuesOf(dtype: Filled, length: number, seed: number): ArrayBufferView {
  const data = new (classOf(dtype))(length);
  fill(data, dtype, seed);
  return data;
}

function fillTensor({ data, dtype }: HeapTensor, seed: number): void {
  // Some engines have a Float16Array, which would round the bits as if they were numbers.
  const isOfBits = dtype === 'float16' || dtype === 'bfloat16';
  const elements = data as Uint16Array;
  fill(
    isOfBits ? new Uint16Array(elements.buffer, elements.byteOffset, elements.length) : data,
    dtype as Filled & DType,
    seed,
  );
}
