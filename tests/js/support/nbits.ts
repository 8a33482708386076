/** Random calls of matmulNBits, and what they must return, in plain loops. */
import { expect } from 'vitest';
import type { DataArray, DType } from 'wgemm';
import { arrayClasses, type Float, get, round, set } from './dtypes.js';
import type { Matrix } from './reference.js';
import type { Random } from './random.js';

export const floatTypes = ['float32', 'float16', 'bfloat16'] as const;
export type NBitsType = (typeof floatTypes)[number];
export const allBits = [2, 4, 8] as const;
export const blockSizes = [16, 32, 64, 128, 256] as const;
export const zeroKinds = ['absent', 'codes', 'typed'] as const;

/** Weights as the library takes them. */
export interface Weights {
  readonly data: Matrix;
  readonly scales: Matrix;
  readonly zeroPoints?: Matrix | undefined;
  readonly k: number;
  readonly n: number;
  readonly bits: number;
  readonly blockSize: number;
}

/** A call with contiguous operands. */
export interface Call {
  readonly a: Matrix;
  readonly weights: Weights;
  readonly bias?: Matrix | undefined;
  readonly level: number;
  readonly activation?: readonly [number, number] | undefined;
}

export interface Choice {
  readonly dtype: NBitsType;
  readonly bits: number;
  readonly blockSize: number;
  readonly zeros: (typeof zeroKinds)[number];
  /** The axes of A in front of K. */
  readonly rows: readonly number[];
  readonly n: number;
  readonly k: number;
  readonly level: number;
  readonly hasBias: boolean;
  readonly isFlat: boolean;
  readonly activation?: readonly [number, number] | undefined;
}

const f32 = Math.fround;
const count = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);

export function tensorOf(dtype: DType, shape: readonly number[], value: () => number): Matrix {
  const data = new arrayClasses[dtype](count(shape));
  for (let i = 0; i < data.length; ++i) set(data, dtype, i, value());
  return { data, shape, dtype };
}

/** A random call. Padding is random, too. */
export function draw(random: Random, chosen: Partial<Choice> = {}): Call {
  const one = <T>(values: readonly T[]) => random.pick(values);
  const {
    dtype = one(floatTypes),
    bits = one(allBits),
    blockSize = one(blockSizes),
    zeros = one(zeroKinds),
    rows = one([[], [1], [1], [3], [7], [2, 3], [2, 1, 4]]),
    n = random.between(1, 30),
    k = random.between(1, one([20, 100, 600])),
    level = one([0, 0, 1, 4, 4]),
    hasBias = one([true, false]),
    isFlat = one([true, false]),
    activation = one([undefined, undefined, [-1, 2] as const]),
  } = chosen;
  const blocks = Math.ceil(k / blockSize);
  const byte = () => random.between(0, 255);
  const flat = (...shape: number[]) => (isFlat ? [count(shape)] : shape);
  const zeroPoints = {
    absent: undefined,
    codes: tensorOf('uint8', flat(n, Math.ceil((blocks * bits) / 8)), byte),
    typed: tensorOf(dtype, flat(n, blocks), () => random.next() * 2 ** bits),
  }[zeros];
  return {
    a: tensorOf(dtype, [...rows, k], () => random.next() * 4 - 2),
    weights: {
      data: tensorOf('uint8', [n, blocks, (blockSize * bits) / 8], byte),
      scales: tensorOf(dtype, flat(n, blocks), () => (random.next() - 0.3) * 0.1),
      ...(zeroPoints && { zeroPoints }),
      k,
      n,
      bits,
      blockSize,
    },
    bias: hasBias ? tensorOf(dtype, [n], () => random.next() * 6 - 3) : undefined,
    level,
    activation,
  };
}

const codeAt = (data: DataArray, bytesOfRow: number, bits: number, row: number, index: number) =>
  (((data as Uint8Array)[row * bytesOfRow + Math.floor((index * bits) / 8)] as number) >>
    ((index * bits) % 8)) &
  (2 ** bits - 1);

const number = ({ data, dtype }: Matrix, index: number) => Number(get(data, dtype as DType, index));

/** The code at k of a column, and the scale and the zero point of its block. */
function weightAt({ data, scales, zeroPoints, k, bits, blockSize }: Weights, j: number, p: number) {
  const blocks = Math.ceil(k / blockSize);
  const b = Math.floor(p / blockSize);
  const zero = !zeroPoints
    ? 2 ** (bits - 1)
    : zeroPoints.dtype === 'uint8'
      ? codeAt(zeroPoints.data, Math.ceil((blocks * bits) / 8), bits, j, b)
      : number(zeroPoints, j * blocks + b);
  const code = codeAt(data.data, (blocks * blockSize * bits) / 8, bits, j, p);
  return { code, scale: number(scales, j * blocks + b), zero };
}

function roundToEven(value: number): number {
  const below = Math.floor(value);
  const fraction = value - below;
  return fraction > 0.5 || (fraction === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

export interface Expected {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly values: readonly number[];
  /** 0: every bit counts. */
  readonly bounds: readonly number[];
}

/** The elements of the result before they are rounded to its type, and how far they may be off. */
export function reference({ a, weights, bias, level, activation }: Call): Expected {
  const { n, k, blockSize, zeroPoints } = weights;
  const rows = count(a.shape.slice(0, -1));
  const isQuantized = level === 4 && (!zeroPoints || zeroPoints.dtype === 'uint8');
  const [low, high] = (activation ?? [-Infinity, Infinity]).map(f32) as [number, number];
  const values: number[] = [];
  const bounds: number[] = [];
  for (let i = 0; i < rows; ++i) {
    for (let j = 0; j < n; ++j) {
      const added = bias ? number(bias, j) : 0;
      let [sum, size] = [0, Math.abs(added)];
      for (let first = 0; first < k; first += blockSize) {
        const steps = Array.from({ length: Math.min(blockSize, k - first) }, (_, p) => ({
          x: number(a, i * k + first + p),
          ...weightAt(weights, j, first + p),
        }));
        if (isQuantized) {
          const s = f32(steps.reduce((most, { x }) => Math.max(most, Math.abs(x)), 0) / 127);
          const dot = steps.reduce((dot, { x, code, zero }) => {
            const q = s === 0 ? 0 : Math.max(-127, Math.min(127, roundToEven(f32(x / s))));
            return dot + q * (code - zero);
          }, 0);
          sum = f32(sum + f32(f32(dot) * f32(s * (steps[0]?.scale as number))));
          continue;
        }
        for (const { x, code, scale, zero } of steps) {
          sum += x * (code - zero) * scale;
          size += Math.abs(x * scale) * (code + Math.abs(zero));
        }
      }
      const y = isQuantized ? (bias ? f32(sum + added) : sum) : sum + added;
      values.push(Math.max(low, Math.min(high, y)));
      bounds.push(isQuantized ? 0 : Math.min(k + 4, 4 * Math.sqrt(k + 4)) * 2 ** -24 * size);
    }
  }
  return { shape: [...a.shape.slice(0, -1), n], dtype: a.dtype as DType, values, bounds };
}

/** Expects every element of a result to be a rounding of a number within the bound. */
export function expectNear(
  found: { data: DataArray; shape: readonly number[]; dtype?: DType },
  { shape, dtype, values, bounds }: Expected,
  what: string,
  places: readonly number[] = values.map((_, i) => i),
): void {
  expect([...found.shape, found.dtype], what).toEqual([...shape, dtype]);
  const { data } = found;
  values.forEach((value, i) => {
    const y = Number(get(data, dtype, places[i] as number));
    const bound = bounds[i] as number;
    const [least, most] = [value - bound, value + bound].map((x) => round(dtype as Float, x));
    const isRight = bound === 0 ? y === least : (least as number) <= y && y <= (most as number);
    if (!isRight) expect.fail(`Y[${i}] is ${y}; it must be ${value}, within ${bound} ${what}`);
  });
}

export function describeCall({ a, weights, bias, level, activation }: Call): string {
  const { k, n, bits, blockSize, zeroPoints, scales } = weights;
  return (
    `${a.dtype} [${a.shape.join(', ')}], N ${n}, K ${k}, ${bits} bits in blocks of ${blockSize}, ` +
    `scales [${scales.shape.join(', ')}], zero points ${zeroPoints?.dtype ?? 'absent'}, ` +
    `level ${level}${bias ? ', bias' : ''}${activation ? ', activation' : ''}`
  );
}

type Place = (matrix: Matrix) => unknown;
const asIs: Place = (matrix) => matrix;

/** The weights, with each tensor as `place` returns it. */
export function placed(weights: Weights, place: Place = asIs): Record<string, unknown> {
  const { data, scales, zeroPoints, ...others } = weights;
  const zeros = zeroPoints && { zeroPoints: place(zeroPoints) };
  return { data: place(data), scales: place(scales), ...zeros, ...others };
}

/** The arguments of the call, with other operands in the place of its own. */
export function argumentsOf(
  { a, weights, bias, level, activation }: Call,
  options: object = {},
  place: Place = asIs,
  packed: unknown = placed(weights, place),
): unknown[] {
  const own = {
    ...(level !== 0 && { accuracyLevel: level }),
    ...(bias && { bias: place(bias) }),
    ...(activation && { activation }),
  };
  return [place(a), packed, { ...own, ...options }];
}
