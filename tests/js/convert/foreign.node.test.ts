/**
 * `tensor` takes the arrays of the libraries themselves, and `gemm` multiplies them. A plain loop
 * reads their elements by their own `get`.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, DTypeError, type Gemm, tensor, type TensorInput, toNested } from 'wgemm';
import * as worker from 'wgemm/worker';

// Declares the parts of the libraries that the tests use. Their own declarations need compiler
// options that this project lacks, or do not exist.
interface Ndarray {
  readonly data: unknown;
  readonly shape: number[];
  readonly stride: number[];
  readonly offset: number;
  get(...place: number[]): number;
  transpose(...axes: number[]): Ndarray;
  lo(...from: number[]): Ndarray;
  hi(...to: number[]): Ndarray;
  step(...steps: number[]): Ndarray;
  pick(...place: (number | null)[]): Ndarray;
}
type MakeNdarray = (data: unknown, shape?: number[], stride?: number[], offset?: number) => Ndarray;
interface NumpyArray {
  readonly data: unknown;
  readonly shape: readonly number[];
  readonly T: NumpyArray;
  get(place: number[]): unknown;
  slice(...slices: string[]): NumpyArray;
  reshape(...shape: number[]): NumpyArray;
  tolist(): unknown;
}
interface Numpy {
  array(elements: unknown, dtype: string): NumpyArray;
}
interface StdlibArray {
  readonly data: unknown;
  readonly shape: number[];
  get(...place: number[]): number;
}
type MakeStdlibArray = (
  dtype: string,
  data: unknown,
  shape: number[],
  strides: number[],
  offset: number,
  order: string,
) => StdlibArray;
interface TfTensor {
  readonly shape: number[];
  readonly dtype: string;
  dataSync(): unknown;
  data(): Promise<Float32Array>;
  bufferSync(): { readonly shape: number[]; readonly values: unknown };
  dispose(): void;
}
interface Tf {
  setBackend(name: string): Promise<boolean>;
  tensor(elements: unknown, shape?: number[], dtype?: string): TfTensor;
  zeros(shape: number[]): TfTensor;
  transpose(x: TfTensor): TfTensor;
  reverse(x: TfTensor, axis: number): TfTensor;
  complex(real: number[], imaginary: number[]): TfTensor;
}
interface MlMatrix {
  readonly rows: number;
  readonly columns: number;
  get(row: number, column: number): number;
  to2DArray(): number[][];
}
interface Ml {
  Matrix: new (rows: number[][] | number, columns?: number) => MlMatrix;
  MatrixTransposeView: new (matrix: MlMatrix) => MlMatrix;
  WrapperMatrix1D: new (elements: number[], options: { rows: number }) => MlMatrix;
}
const load = async (name: string): Promise<unknown> => await import(/* @vite-ignore */ name);
const { default: ndarray } = (await load('ndarray')) as { default: MakeNdarray };
const np = (await load('numpy-ts')) as Numpy;
const { default: ndarrayBase } = (await load('@stdlib/ndarray-base-ctor')) as {
  default: MakeStdlibArray;
};
const tf = (await load('@tensorflow/tfjs-core')) as Tf;
await load('@tensorflow/tfjs-backend-cpu');
const { Matrix, MatrixTransposeView, WrapperMatrix1D } = (await load('ml-matrix')) as Ml;

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
  await tf.setBackend('cpu');
});
afterAll(() => {
  wg.dispose();
});

/**
 * Multiplies a matrix by itself transposed, as `tensor` makes it, and compares elements and result
 * with plain loops over `get`.
 */
function expectMatrix(
  x: Parameters<typeof tensor>[0],
  [rows, columns]: readonly number[],
  get: (row: number, column: number) => number,
): TensorInput {
  const a = tensor(x);
  const elements = Array.from({ length: rows as number }, (_, i) =>
    Array.from({ length: columns as number }, (_, j) => get(i, j)),
  );
  expect(toNested(a)).toEqual(elements);
  const product = elements.map((row) =>
    elements.map((other) => row.reduce((sum, value, k) => sum + value * (other[k] as number), 0)),
  );
  const b = tensor(x, { dtype: a.dtype as 'float32' });
  expect(toNested(wg.gemm(a as typeof b, b, null, { transB: true }))).toEqual(product);
  return a;
}

/** Numbers whose products are exact in each type. */
const numbers = (length: number) => Array.from({ length }, (_, i) => ((i * 5) % 17) - 8);

describe('ndarray', () => {
  const classes = [Float32Array, Float64Array, Int32Array];

  it.each(classes)('may hold a %o', (Class) => {
    const x = ndarray(Class.from(numbers(12)), [3, 4]);
    const views = {
      whole: x,
      transpose: x.transpose(1, 0),
      slice: x.lo(1, 1).hi(2, 2),
      'step -1': x.step(1, -1),
      'both steps -1': x.step(-1, -1),
      'every second column': x.step(1, 2),
      pick: ndarray(x.data, [2, 3, 2]).pick(1, null, null),
      broadcast: ndarray(x.data, [3, 4], [0, 1], 4),
    };
    for (const [name, view] of Object.entries(views)) {
      const a = expectMatrix(view, view.shape, (i, j) => view.get(i, j));
      expect(a.data === x.data).toBe(!name.includes('-1'));
    }
    const row = x.pick(1, null);
    expect(toNested(tensor(row))).toEqual([0, 1, 2, 3].map((j) => x.get(1, j)));
    const element = x.pick(1, 2);
    expect(toNested(tensor(element))).toBe(x.get(1, 2));
    expect(toNested(tensor(ndarray(x.data, [3, 4, 0])))).toEqual(Array(3).fill(Array(4).fill([])));
  });

  it('may hold an array, a store, and elements of 16 or 64 bits', () => {
    const list = numbers(6);
    const x = ndarray(list, [2, 3]).transpose(1, 0).step(-1, 1);
    expect(expectMatrix(x, [3, 2], (i, j) => x.get(i, j)).dtype).toBe('float32');
    const store = { length: 6, get: (i: number) => list[i], set() {} };
    const y = ndarray(store, [2, 3]).step(1, -1);
    expectMatrix(y, [2, 3], (i, j) => y.get(i, j));
    const z = ndarray(Int16Array.from(list), [3, 2]);
    expect(expectMatrix(z, [3, 2], (i, j) => z.get(i, j)).dtype).toBe('int32');
    const big = ndarray(BigInt64Array.from(list, BigInt), [2, 3]).step(1, -1);
    expect(toNested(tensor(big))).toEqual([
      list.slice(0, 3).reverse().map(BigInt),
      list.slice(3).reverse().map(BigInt),
    ]);
    const words = ndarray(Uint16Array.from([1, 2, 65535]));
    expect(tensor(words, { dtype: 'float64' }).data).toEqual(new Float64Array([1, 2, 65535]));
    expect(() => tensor(words)).toThrow(DTypeError);
  });

  it('may have a million elements, transposed and backwards', () => {
    const data = Float32Array.from({ length: 1e6 }, (_, i) => i % 3);
    const x = ndarray(data, [1000, 1000]).transpose(1, 0).step(-1, 1);
    const y = wg.gemm(
      tensor(x, { dtype: 'float32' }),
      tensor(Array.from({ length: 1000 }, (_, i) => [Number(i === 7)])),
    );
    for (let i = 0; i < 1000; ++i) expect(y.data[i]).toBe(x.get(i, 7));
  });
});

describe('numpy-ts', () => {
  it.each(['float32', 'float64', 'int32', 'float16'] as const)('may hold %s', (dtype) => {
    const x = np.array(numbers(20), dtype).reshape(4, 5);
    const views = {
      whole: x,
      transpose: x.T,
      slice: x.slice('1:3', '2:5'),
      'negative step': x.slice(':', '::-1'),
      'both negative': x.slice('::-1', '::-2'),
      'slice of the transpose': x.T.slice('1:4', '::2'),
    };
    for (const [name, view] of Object.entries(views)) {
      const a = expectMatrix(view, view.shape, (i, j) => Number(view.get([i, j])));
      expect(a.data === view.data).toBe(!name.includes('negative'));
      expect(toNested(a)).toEqual(view.tolist());
    }
    expect(toNested(tensor(x.slice('2')))).toEqual(x.slice('2').tolist());
    expect(toNested(tensor(x.slice('4:')))).toEqual([]);
  });

  it('may hold other types', () => {
    expect(tensor(np.array([1, 0], 'bool')).dtype).toBe('uint8');
    expect(tensor(np.array([-1, 2], 'int16')).data).toEqual(new Int32Array([-1, 2]));
    expect(toNested(tensor(np.array([1n, -2n], 'int64')))).toEqual([1n, -2n]);
    expect(() => tensor(np.array([1, 2], 'complex64'))).toThrow(DTypeError);
    expect(() => tensor(np.array([1, 2], 'uint16'))).toThrow(DTypeError);
    const x = np.array([[0.1, 0.2]], 'float64');
    expect(tensor(x, { dtype: 'float32' }).data).toEqual(new Float32Array([0.1, 0.2]));
  });
});

describe('@stdlib/ndarray', () => {
  it.each(['row-major', 'column-major'] as const)('may have %s order', (order) => {
    const data = Float64Array.from(numbers(12));
    const steps = order === 'row-major' ? [4, 1] : [1, 3];
    for (const [shape, strides, offset] of [
      [[3, 4], steps, 0],
      [[2, 2], steps, 1],
      [[3, 4], steps.map((n) => -n), 11],
      [[3, 2], [steps[0], -2 * (steps[1] as number)], 3 * (steps[1] as number)],
    ] as [number[], number[], number][]) {
      const x = ndarrayBase('float64', data, shape, strides, offset, order);
      const a = expectMatrix(x, shape, (i, j) => x.get(i, j));
      expect(a.data === data).toBe(strides.every((n) => n >= 0));
    }
  });

  it('may hold other types', () => {
    const x = ndarrayBase('generic', numbers(4), [2, 2], [2, 1], 0, 'row-major');
    expectMatrix(x, [2, 2], (i, j) => x.get(i, j));
    const bytes = new Uint8ClampedArray([1, 2]);
    const y = ndarrayBase('uint8c', bytes, [2], [1], 0, 'row-major');
    expect(tensor(y).data).toEqual(new Uint8Array([1, 2]));
    const z = ndarrayBase('int16', new Int16Array([1, -2]), [2], [-1], 1, 'row-major');
    expect(tensor(z).data).toEqual(new Int32Array([-2, 1]));
    const c = ndarrayBase('complex64', new Float32Array(4), [2], [1], 0, 'row-major');
    expect(() => tensor(c)).toThrow(DTypeError);
  });
});

describe('tfjs', () => {
  it('may be tensors and buffers', () => {
    const list = numbers(12);
    for (const dtype of ['float32', 'int32'] as const) {
      const x = tf.tensor(list, [3, 4], dtype);
      const get = (i: number, j: number) => list[4 * i + j] as number;
      expect(expectMatrix(x, [3, 4], get).dtype).toBe(dtype);
      const y = tf.transpose(x);
      expectMatrix(y, [4, 3], (i, j) => get(j, i));
      expectMatrix(x.bufferSync(), [3, 4], get);
      const reversed = tf.reverse(x, 1);
      expectMatrix(reversed, [3, 4], (i, j) => get(i, 3 - j));
    }
    expect(toNested(tensor(tf.tensor(5)))).toBe(5);
    expect(toNested(tensor(tf.zeros([2, 0, 3])))).toEqual([[], []]);
    expect(tensor(tf.tensor([true, false], [2], 'bool')).data).toEqual(new Uint8Array([1, 0]));
    expect(toNested(tensor(tf.zeros([2, 1, 2])))).toEqual([[[0, 0]], [[0, 0]]]);
  });

  it('must hold real numbers that can be read at once', async () => {
    expect(() => tensor(tf.complex([1], [2]))).toThrow(DTypeError);
    expect(() => tensor(tf.tensor(['a']))).toThrow(DTypeError);
    const x = tf.tensor([1, 2]);
    const { shape } = x;
    const y = tensor({ data: await x.data(), shape });
    expect(toNested(y)).toEqual([1, 2]);
    x.dispose();
    expect(() => tensor(x)).toThrow(/^tensor: x has no data at once \(.+\); pass \{ data: await x/);
  });
});

it('ml-matrix keeps its elements', () => {
  const x = new Matrix([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  for (const y of [x, new MatrixTransposeView(x), new WrapperMatrix1D([1, 2, 3, 4], { rows: 2 })]) {
    const a = expectMatrix(y, [y.rows, y.columns], (i, j) => y.get(i, j));
    expect(a.dtype).toBe('float64');
  }
  expect(tensor(new Matrix(0, 3)).shape).toEqual([0, 3]);
  expect(tensor(x, { dtype: 'int8' }).data).toEqual(new Int8Array([1, 2, 3, 4, 5, 6]));
});

describe('wgemm/worker', () => {
  it('has the same functions', () => {
    expect(worker.tensor).toBe(tensor);
    expect(worker.toNested).toBe(toNested);
  });

  it('refuses a tensor in a worker, with advice', async () => {
    const wg = await worker.createGemm();
    const x = await wg.alloc('float32', [1, 2]);
    await x.write(new Float32Array([1, 2]));
    const advice = 'a tensor in a worker; it must be { data, shape }, with data from its read()';
    expect(() => worker.toNested(x as never)).toThrow(`toNested: y is ${advice}`);
    expect(() => tensor(x as never)).toThrow(`tensor: x is ${advice}`);
    expect(() => tensor({ data: x, shape: [1, 2] } as never)).toThrow(DTypeError);
    expect(worker.toNested({ data: await x.read(), shape: x.shape })).toEqual([[1, 2]]);
    const y = await wg.gemm(
      tensor([[3, 4]]),
      tensor(await wg.gemm(tensor([[1], [1]]), tensor([[2]]))),
    );
    expect(worker.toNested(y)).toEqual([[14]]);
    wg.dispose();
  });
});
