/** What the tests share: seeded numbers, tensors in every kind of place, and the one check of a result. */
import { expect } from 'vitest';
import type { DataArray, DType, Gemm, GemmOptions, TensorLike } from 'wgemm';
import { type Matrix, referenceGemm } from './reference.js';

/** The same numbers in every run (mulberry32). */
export class Random {
  constructor(private state: number) {}

  /** From 0 up to 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** float32 from -1 to 1; int32 over its whole range, so that products wrap. */
  fill<A extends DataArray>(array: A): A {
    for (let i = 0; i < array.length; ++i) {
      array[i] = array instanceof Int32Array ? Math.floor(this.next() * 2 ** 32) | 0 : this.next() * 2 - 1;
    }
    return array;
  }
}

export const dtypes: readonly DType[] = ['float32', 'int32'];

export function arrayOf(dtype: DType, length: number | ArrayBufferLike | number[]): DataArray {
  const Class = dtype === 'float32' ? Float32Array : Int32Array;
  return new Class(length as never);
}

export const count = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/**
 * Where the elements of a tensor can be: each makes one of zeros there, given its type and shape. What is not a matrix has no rows or
 * columns to put gaps between, and is a plain array instead.
 */
export const places = {
  'an array': (_, dtype, shape) => ({ data: arrayOf(dtype, count(shape)), shape }),
  'part of an array': (_, dtype, shape) => ({ data: arrayOf(dtype, count(shape) + 5).subarray(3, 3 + count(shape)), shape }),
  'shared memory': (_, dtype, shape) => ({ data: arrayOf(dtype, new SharedArrayBuffer(4 * count(shape))), shape }),
  'rows with gaps': (_, dtype, shape) => strided(dtype, shape, ([, columns]) => [columns + 3, 1]),
  'column-major': (_, dtype, shape) => strided(dtype, shape, ([rows]) => [1, rows]),
  'columns with gaps': (_, dtype, shape) => strided(dtype, shape, ([rows]) => [2, 2 * rows + 1]),
  'every third element': (_, dtype, shape) => strided(dtype, shape, ([, columns]) => [3 * columns, 3]),
  'the heap': (wg, dtype, shape) => wg.alloc(dtype, shape),
  'a view of the heap': (wg, dtype, shape) => {
    const tensor = wg.alloc(dtype, shape);
    // The memory may grow between this and the call, which ends views.
    return {
      get data() {
        return tensor.data;
      },
      shape,
    };
  },
} satisfies Record<string, (wg: Gemm, dtype: DType, shape: readonly number[]) => TensorLike>;

export type Place = keyof typeof places;
export const placeNames = Object.keys(places) as Place[];

function strided(dtype: DType, shape: readonly number[], layout: (shape: [number, number]) => [number, number]): TensorLike {
  if (shape.length !== 2) return { data: arrayOf(dtype, count(shape)), shape };
  const strides = layout(shape as [number, number]);
  return { data: arrayOf(dtype, extent(shape, strides)), shape, strides };
}

/** Elements that an array must have. */
export function extent(shape: readonly number[], strides: readonly number[]): number {
  return count(shape) === 0 ? 0 : shape.reduce((last, size, axis) => last + (size - 1) * (strides[axis] as number), 1);
}

export function place(wg: Gemm, where: Place, dtype: DType, shape: readonly number[], random: Random): TensorLike {
  const tensor = places[where](wg, dtype, shape);
  random.fill(tensor.data);
  return tensor;
}

/** Values as they are now, to compare with later. */
export function snapshot<T extends TensorLike>(tensor: T): Matrix {
  const { shape } = tensor;
  const data = tensor.data.slice();
  return 'strides' in tensor && tensor.strides ? { data, shape, strides: tensor.strides } : { data, shape };
}

/** Calls gemm, and expects of it the right result in the right place, inputs as they were, and no memory kept. Returns the result. */
export function expectGemm(
  wg: Gemm,
  a: TensorLike,
  b: TensorLike,
  c?: TensorLike | number | null,
  options?: GemmOptions | null,
  what = '',
): TensorLike {
  const inputs = [a, b, c].filter((input): input is TensorLike => typeof input === 'object' && input !== null);
  const before = new Map(inputs.map((input) => [input, snapshot(input)]));
  const at = (input: TensorLike) => before.get(input) as Matrix;
  const wanted = referenceGemm(at(a), at(b), typeof c === 'object' && c !== null ? at(c) : c, options ?? {});
  const out = options?.out;
  const outBefore = out && snapshot(out);
  const inUse = wg.memory().inUse;

  const y = wg.gemm(a, b, c, options as GemmOptions);

  const says = (text: string) => `${text} ${what}`;
  expect(wg.memory().inUse, says('bytes in use after the call')).toBe(inUse);
  for (const input of inputs) {
    if (!(out && sameMemory(input, out))) expect(bytes(input.data).equals(bytes(at(input).data)), says('an input is as it was')).toBe(true);
  }
  if (out) expect(y, says('what the call returns')).toBe(out);
  else expect([...y.shape, y.dtype, y.data.constructor], says('the result')).toEqual([...wanted.shape, dtypeOf(a), a.data.constructor]);

  const [rows, columns] = wanted.shape;
  const [down, across] = 'strides' in y && y.strides ? (y.strides as [number, number]) : [columns, 1];
  const data = y.data;
  const gaps = data.slice();
  if (!out) expect(data.length, says('elements of the result')).toBe(rows * columns);
  for (let i = 0; i < rows; ++i) {
    for (let j = 0; j < columns; ++j) {
      const found = data[i * down + j * across] as number;
      const index = i * columns + j;
      if (!near(found, wanted.values[index] as number, wanted.bounds[index] as number)) {
        expect.fail(says(`Y[${i}, ${j}] is ${found}; it must be ${wanted.values[index]}, within ${wanted.bounds[index]}`));
      }
      // What is left to compare of out is what lies between its elements.
      if (outBefore) gaps[i * down + j * across] = outBefore.data[i * down + j * across] = 0;
    }
  }
  if (outBefore) expect(bytes(gaps).equals(bytes(outBefore.data)), says('what lies between the elements of out is as it was')).toBe(true);
  return y;
}

function near(found: number, wanted: number, bound: number): boolean {
  if (bound === Infinity) return true;
  if (Number.isNaN(wanted)) return Number.isNaN(found);
  if (!Number.isFinite(wanted)) return found === wanted;
  return Math.abs(found - wanted) <= bound;
}

const bytes = (array: DataArray) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);

function sameMemory(a: TensorLike, b: TensorLike): boolean {
  return a.data.buffer === b.data.buffer && a.data.byteOffset === b.data.byteOffset;
}

export const dtypeOf = (tensor: TensorLike): DType => (tensor.data instanceof Int32Array ? 'int32' : 'float32');

/** A tensor of the numbers given. */
export function tensor(dtype: DType, shape: readonly number[], numbers: number[]): Matrix {
  return { data: arrayOf(dtype, numbers), shape };
}

export const float32 = (shape: readonly number[], ...numbers: number[]) => ({ data: Float32Array.from(numbers), shape });
export const int32 = (shape: readonly number[], ...numbers: number[]) => ({ data: Int32Array.from(numbers), shape });
