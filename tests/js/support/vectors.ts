/** Vectors for the tests of indexes: as calls take them, and as numbers. */
import type { DType, Gemm, TensorLike } from 'wgemm';
import type { IndexDType, Metric, VectorArray, VectorList } from 'wgemm/search';
import { arrayClasses, bytesOf, get, set } from './dtypes.js';
import type { Random } from './random.js';

export const indexTypes: readonly IndexDType[] = [
  'float32',
  'float16',
  'bfloat16',
  'int8',
  'uint8',
];
export const metrics: readonly Metric[] = ['dot', 'cosine', 'euclidean'];

/** How vectors are given. */
export const forms = [
  'array',
  'typed array',
  'tensor',
  'strided',
  'heap',
  'heap view',
  'view',
] as const;
export type Form = (typeof forms)[number];

export interface Vectors {
  given: VectorList | TensorLike<VectorArray>;
  /** As float32, or as integers. */
  rows: number[][];
  /** Whether they are int8 that an int8 index takes as they are. */
  isCodes: boolean;
  dispose(): void;
}

/** Types of vectors that an index takes. */
export const typesFor = (dtype: IndexDType): readonly DType[] => [
  ...(['float32', 'float16', 'bfloat16'] as const),
  ...(dtype === 'int8' || dtype === 'uint8' ? [dtype] : []),
];

/** One random vector. `isCoarse`: of few values, so that scores are often equal. */
function numbersFor(
  random: Random,
  dimensions: number,
  dtype: IndexDType,
  type: DType,
  isCoarse: boolean,
): number[] {
  const one = () => {
    if (dtype === 'uint8') return isCoarse ? random.between(0, 2) : random.between(0, 255);
    if (type === 'int8') return isCoarse ? random.between(-1, 1) : random.between(-128, 127);
    return isCoarse ? random.between(-2, 2) / 2 : random.next() * 2 - 1;
  };
  const numbers: number[] = Array.from({ length: dimensions }, one);
  if (!numbers.some((number) => number !== 0)) numbers[random.between(0, dimensions - 1)] = 1;
  return numbers;
}

/** Random vectors. A tensor of one vector has no axis of rows if `isOne`. */
export function makeVectors(
  wg: Gemm | undefined,
  random: Random,
  {
    dimensions,
    dtype,
    type,
    form,
    isCoarse = false,
    isOne = false,
    rows: fixed,
  }: {
    dimensions: number;
    dtype: IndexDType;
    type: DType;
    form: Form;
    isCoarse?: boolean;
    isOne?: boolean;
    rows?: number[][];
  },
  count: number,
): Vectors {
  const wanted =
    fixed ??
    Array.from({ length: count }, () => numbersFor(random, dimensions, dtype, type, isCoarse));
  const flat = new arrayClasses[type](count * dimensions);
  wanted.flat().forEach((number, i) => set(flat, type, i, number));
  const rows = wanted.map((row, i) =>
    row.map((_, k) => Number(get(flat, type, i * dimensions + k))),
  );
  const shape = isOne ? [dimensions] : [count, dimensions];
  const tensor = (data: unknown, more = {}) =>
    ({ data, shape, dtype: type, ...more }) as unknown as TensorLike<VectorArray>;
  const done = (given: Vectors['given'], dispose = () => {}) => ({
    given,
    rows,
    isCodes: type === 'int8',
    dispose,
  });
  const isBits = flat instanceof Uint16Array;
  if (form === 'array' && type === 'float32') return done(rows.flat());
  if (form === 'typed array' && !isBits) return done(flat as never);
  if (form === 'strided') {
    const strides = [2 * dimensions + 3, 2];
    const data = new arrayClasses[type](5 + count * (strides[0] as number));
    rows.forEach((row, i) =>
      row.forEach((number, k) => set(data, type, 4 + i * (strides[0] as number) + 2 * k, number)),
    );
    return done(tensor(data, { strides: isOne ? [2] : strides, offset: 4 }));
  }
  if (form === 'view') {
    const data = new arrayClasses[type](count * dimensions + 3).subarray(3);
    rows.flat().forEach((number, i) => set(data, type, i, number));
    return done(tensor(data));
  }
  if ((form === 'heap' || form === 'heap view') && wg) {
    const isPart = form === 'heap view';
    const held = wg.alloc(type, isPart ? [count * dimensions + 8] : shape);
    const bytes = new Uint8Array(held.data.buffer, held.data.byteOffset, held.size * bytesOf(type));
    bytes.set(new Uint8Array(flat.buffer as ArrayBuffer), isPart ? 8 * bytesOf(type) : 0);
    const given = isPart ? tensor(held, { offset: 8 }) : (held as TensorLike<VectorArray>);
    return done(given, () => held.dispose());
  }
  return done(tensor(flat));
}
