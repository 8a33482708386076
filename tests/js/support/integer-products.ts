/** Random calls of the integer products, and what they must return, in plain loops. */
import type { DType } from 'wgemm';
import { arrayClasses } from './dtypes.js';
import type { Matrix } from './reference.js';
import { Random } from './random.js';

export const operations = [
  'matmulInteger',
  'qlinearMatmul',
  'dynamicQuantizeMatmul',
  'matmulIntegerToFloat',
] as const;
export type Operation = (typeof operations)[number];

/** A call with contiguous operands. Absent ones are undefined. */
export interface Call {
  readonly op: Operation;
  readonly a: Matrix;
  readonly b: Matrix;
  readonly vectors: Readonly<Partial<Record<VectorName, Matrix>>>;
  readonly bias?: Matrix | undefined;
}
type VectorName = 'aScale' | 'aZeroPoint' | 'bScale' | 'bZeroPoint' | 'yScale' | 'yZeroPoint';

const f32 = Math.fround;
const size = (shape: readonly number[]) => shape.reduce((product, each) => product * each, 1);

function roundToEven(value: number): number {
  const below = Math.floor(value);
  const fraction = value - below;
  return fraction > 0.5 || (fraction === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/** ONNX DynamicQuantizeLinear of all of A. */
function quantize({ data, shape }: Matrix): { a: Matrix; scale: number; zeroPoint: number } {
  const values = Array.from(data as Float32Array);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const scale = f32(f32(high - low) / 255) || 1;
  const clamp = (value: number) => Math.max(0, Math.min(255, value));
  const zeroPoint = roundToEven(clamp(f32(0 - f32(low / scale))));
  const bytes = values.map((x) => clamp(roundToEven(f32(x / scale)) + zeroPoint));
  return { a: { data: Uint8Array.from(bytes), shape, dtype: 'uint8' }, scale, zeroPoint };
}

/** The index of an element of `shape`, broadcast, for the index of an element of Y's batch. */
function batchIndex(shape: readonly number[], batch: readonly number[], index: number): number {
  let [at, step] = [0, 1];
  for (let axis = batch.length - 1; axis >= 0; --axis) {
    const own = shape[axis - (batch.length - shape.length)] ?? 1;
    const i = index % (batch[axis] as number);
    index = Math.floor(index / (batch[axis] as number));
    if (own !== 1) at += i * step;
    step *= own;
  }
  return at;
}

/** Type, shape and elements of the result. */
export function reference({ op, a: given, b, vectors, bias }: Call): Matrix {
  const quantized = op === 'dynamicQuantizeMatmul' ? quantize(given) : undefined;
  const a = quantized?.a ?? given;
  const [shapeA, shapeB] = [a.shape, b.shape];
  const [isRow, isColumn] = [shapeA.length === 1, shapeB.length === 1];
  const [m, k] = isRow ? [1, shapeA[0] as number] : (shapeA.slice(-2) as [number, number]);
  const n = isColumn ? 1 : (shapeB.at(-1) as number);
  const [batchA, batchB] = [shapeA.slice(0, -2), shapeB.slice(0, -2)];
  const rank = Math.max(batchA.length, batchB.length);
  const batch = Array.from({ length: rank }, (_, axis) => {
    const one = batchA[axis - (rank - batchA.length)] ?? 1;
    return one === 1 ? (batchB[axis - (rank - batchB.length)] ?? 1) : one;
  });
  /** A value that belongs to a row or a column of a matrix. */
  const at = (name: VectorName, matrix: number, index: number, absent: number): number => {
    const vector = vectors[name];
    if (!vector) return absent;
    const { data, shape } = vector;
    if (data.length === 1) return Number(data[0]);
    const count = name.startsWith('b') ? n : m;
    return Number(data[(shape.length === 1 ? 0 : matrix) * count + index]);
  };
  const values: number[] = [];
  for (let y = 0; y < size(batch); ++y) {
    const [i, j] = [batchIndex(batchA, batch, y), batchIndex(batchB, batch, y)];
    for (let row = 0; row < m; ++row) {
      for (let column = 0; column < n; ++column) {
        const zeroA = quantized?.zeroPoint ?? at('aZeroPoint', i, row, 0);
        const zeroB = at('bZeroPoint', j, column, 0);
        let sum = 0;
        for (let p = 0; p < k; ++p) {
          const x = Number(a.data[(i * m + row) * k + p]) - zeroA;
          sum += x * (Number(b.data[(j * k + p) * n + column]) - zeroB);
        }
        const acc = sum | 0;
        const scaleA = quantized?.scale ?? at('aScale', i, row, 1);
        const scale = f32(scaleA * at('bScale', j, column, 1));
        if (op === 'matmulInteger') values.push(acc);
        else if (op === 'qlinearMatmul') {
          const zero = at('yZeroPoint', y, row, 0);
          const value = f32(f32(acc) * f32(scale / at('yScale', y, row, 1)));
          const [least, most] = typeOfResult(op, a, vectors) === 'int8' ? [-128, 127] : [0, 255];
          const inside = Math.max(least - zero, Math.min(most - zero, value));
          values.push(roundToEven(inside) + zero);
        } else {
          const value = f32(f32(acc) * scale);
          values.push(bias ? f32(value + Number(bias.data[column])) : value);
        }
      }
    }
  }
  const dtype = typeOfResult(op, a, vectors);
  const shape = [...batch, ...(isRow ? [] : [m]), ...(isColumn ? [] : [n])];
  const data = new arrayClasses[dtype](values.length) as Float32Array;
  data.set(values);
  return { data, shape, dtype };
}

function typeOfResult(op: Operation, a: Matrix, vectors: Call['vectors']): DType {
  if (op === 'matmulInteger') return 'int32';
  if (op === 'qlinearMatmul') return (vectors.yZeroPoint ?? a).dtype as DType;
  return 'float32';
}

/** Batch axes of A and of B. */
const batches = [
  [[], []],
  [[], []],
  [[3], []],
  [[], [2]],
  [[2, 1], [3]],
  [
    [2, 3],
    [2, 3],
  ],
] as const;

/** A random call. `peer`: one that ONNX Runtime has a kernel for, and that means the same there. */
export function draw(random: Random, op: Operation, peer = false): Call {
  const typeB = random.pick(['int8', 'uint8'] as const);
  const typesOfA =
    peer && op !== 'matmulInteger' && typeB === 'uint8' ? ['uint8'] : ['int8', 'uint8'];
  const typeA = (op === 'dynamicQuantizeMatmul' ? 'float32' : random.pick(typesOfA)) as DType;
  const [m, n, k] = [random.between(1, 9), random.between(1, 40), random.between(1, 70)];
  const onlyMatrices = peer && op !== 'matmulInteger';
  const [batchA, batchB] = onlyMatrices ? [[], []] : random.pick(batches);
  const isRow = !peer && random.between(0, 9) === 0;
  const isColumn = !peer && random.between(0, 9) === 0;
  const shapeA = isRow ? [k] : [...batchA, m, k];
  const shapeB = isColumn ? [k] : [...batchB, k, n];
  const batch = Math.max(isRow ? 0 : batchA.length, isColumn ? 0 : batchB.length);
  const fraction = () =>
    f32(0.001 + random.next() * 0.05) * (peer || random.between(0, 3) ? 1 : -1);
  const floats = (shape: readonly number[], make = fraction): Matrix => ({
    data: Float32Array.from({ length: size(shape) }, make),
    shape,
    dtype: 'float32',
  });
  const bytes = (dtype: DType, shape: readonly number[]) => random.tensor(dtype, shape);
  const one = () => random.pick([[], [1]] as const);
  const rows = (own: readonly number[]) =>
    peer || isRow ? one() : random.pick([[], [1], [m], [...own, m, 1]] as const);
  const columns = () => {
    if (isColumn) return one();
    if (peer) return batchB.length > 0 ? [] : random.pick([[], [n]]);
    return random.pick([[], ...(batchB.length === 0 ? [[n]] : []), [...batchB, 1, n]]);
  };
  const maybe = <T>(value: T): T | undefined => (random.between(0, 3) === 0 ? undefined : value);
  const isLinear = op === 'qlinearMatmul';
  const [hasA, hasScale] = [op !== 'dynamicQuantizeMatmul', op !== 'matmulInteger'];
  const ofY = random.pick([typeA, ...(peer ? [] : ['int8', 'uint8'])]) as DType;
  const needed = <T>(value: T) => (peer && isLinear ? value : maybe(value));
  const ofColumns = columns();
  const batchOfY: readonly number[] =
    batchA.length >= batchB.length && (batchB.length === 0 || batchA.length > 1)
      ? batchA.length === 2 && batchB.length === 1
        ? [2, 3]
        : batchA
      : batchB;
  const ofRows = isLinear ? rows(batchA) : one();
  return {
    op,
    a:
      typeA === 'float32'
        ? floats(shapeA, () => (random.next() * 2 - 1) * 3)
        : bytes(typeA, shapeA),
    b: bytes(typeB, shapeB),
    vectors: {
      ...(hasA && hasScale && { aScale: floats(ofRows) }),
      ...(hasA && {
        aZeroPoint:
          peer && isLinear
            ? bytes(typeA, ofRows)
            : maybe(bytes(typeA, op === 'matmulIntegerToFloat' ? one() : rows(batchA))),
      }),
      ...(hasScale && { bScale: floats(ofColumns) }),
      bZeroPoint: needed(bytes(typeB, peer && hasScale ? ofColumns : columns())),
      ...(isLinear && {
        yScale: floats(batch === 0 || !isRow ? rows(isColumn ? batchA : batchOfY) : one(), () =>
          f32(0.05 + random.next() * k * 0.1),
        ),
        yZeroPoint: needed(bytes(ofY, rows(isColumn ? batchA : batchOfY))),
      }),
    },
    bias:
      hasScale && !isLinear
        ? maybe(floats([isColumn ? 1 : n], () => random.next() * 9 - 4))
        : undefined,
  };
}

/** The types and shapes of a call. */
export function describeCall({ op, a, b, vectors }: Call): string {
  const text = (name: string, matrix?: Matrix) => `${name} [${matrix?.shape.join(', ') ?? ''}]`;
  const others = Object.entries(vectors).map(([name, vector]) => text(name, vector));
  return [op, text(a.dtype as string, a), text(b.dtype as string, b), ...others].join(' ');
}

/** The arguments of the call, with other operands in the place of its own. */
export function argumentsOf(
  { op, a, b, vectors, bias }: Call,
  options: object = {},
  place: (matrix: Matrix) => unknown = (matrix) => matrix,
  weights: unknown = place(b),
): unknown[] {
  const placed = Object.fromEntries(
    Object.entries(vectors)
      .filter(([, vector]) => vector)
      .map(([name, vector]) => [name, place(vector)]),
  );
  if (op === 'qlinearMatmul') return [{ a: place(a), b: weights, ...placed }, options];
  return [place(a), weights, { ...placed, ...(bias && { bias: place(bias) }), ...options }];
}
