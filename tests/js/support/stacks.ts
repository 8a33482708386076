/**
 * Helpers of the tests of MatMul: tensors of any rank in every kind of place, and the check of a
 * call and its result.
 */
import { expect } from 'vitest';
import type { DataArray, DType, Gemm, MatMulOptions, TensorLike } from 'wgemm';
import { PackedWeights } from 'wgemm';
import { arrayClasses, dtypeOf, set } from './dtypes.js';
import type { Bias } from './reference.js';
import { type ExpectedStack, referenceMatMul, type Stack } from './matmul-reference.js';
import {
  count,
  expectKept,
  expectNear,
  extent,
  must,
  places as places2,
  type Random,
  sameBytes,
  snapshot,
} from './tensors.js';

/**
 * Strides for a shape, from the last axis to the first. `first`: the stride of the last axis.
 * `next`: the stride of an axis, by the stride and the size of the axis after it.
 */
function outward(
  shape: readonly number[],
  first: number,
  next: (stride: number, size: number) => number,
): number[] {
  const strides = shape.map(() => first);
  for (let axis = shape.length - 2; axis >= 0; --axis)
    strides[axis] = next(strides[axis + 1] as number, shape[axis + 1] as number);
  return strides;
}
const contiguous = (shape: readonly number[]) => outward(shape, 1, (stride, size) => stride * size);

/**
 * Strides of a shape whose axes are in another order in memory: `order` names them from the
 * outermost inwards.
 */
function permuted(shape: readonly number[], order: readonly number[]): number[] {
  const strides: number[] = [];
  contiguous(order.map((axis) => shape[axis] as number)).forEach(
    (stride, i) => (strides[order[i] as number] = stride),
  );
  return strides;
}
const axesOf = (shape: readonly number[]) => shape.map((_, axis) => axis);

/** Layouts of a tensor, as functions from shapes to strides. */
export const layouts = {
  'gaps after every axis': (shape) => outward(shape, 1, (stride, size) => stride * size + 1),
  'every second element': (shape) => outward(shape, 2, (stride, size) => stride * size),
  'matrices transposed': (shape) =>
    permuted(shape, [...axesOf(shape).slice(0, -2), ...axesOf(shape).slice(-2).reverse()]),
  'axes reversed': (shape) => permuted(shape, axesOf(shape).reverse()),
  // As in an attention layer: (tokens, heads, width).
  'contiguous heads': (shape) =>
    permuted(
      shape,
      shape.length < 3
        ? axesOf(shape)
        : axesOf(shape).toSpliced(-3, 2, shape.length - 2, shape.length - 3),
    ),
} satisfies Record<string, (shape: readonly number[]) => number[]>;

/** A tensor of zeros in such a layout. */
export function layOut(dtype: DType, shape: readonly number[], strides: readonly number[]): Stack {
  return { data: new arrayClasses[dtype](extent(shape, strides)), shape, strides, dtype };
}

const spread = Object.fromEntries(
  Object.entries(layouts).map(([name, layout]) => [
    name,
    (_: Gemm, dtype: DType, shape: readonly number[]) => layOut(dtype, shape, layout(shape)),
  ]),
) as Record<keyof typeof layouts, (wg: Gemm, dtype: DType, shape: readonly number[]) => TensorLike>;

/** Where the elements of a tensor of any rank can be. */
export const places = {
  'an array': places2['an array'],
  'part of an array': places2['part of an array'], // float16 by its bits
  'shared memory': places2['shared memory'],
  'the heap': places2['the heap'],
  'a view of the heap': places2['a view of the heap'],
  ...spread,
};
export type Place = keyof typeof places;
export const placeNames = Object.keys(places) as Place[];

/** Makes a tensor in such a place, random throughout. */
export function place(
  wg: Gemm,
  name: Place,
  dtype: DType,
  shape: readonly number[],
  random: Random,
): TensorLike {
  const tensor = places[name](wg, dtype, shape);
  random.fill(tensor.data, dtype);
  return tensor;
}

/** Where each element is, in row-major order. */
export function offsetsOf({
  shape,
  strides,
}: {
  shape: readonly number[];
  strides?: readonly number[];
}): Int32Array {
  const steps = strides ?? contiguous(shape);
  let offsets = Int32Array.of(0);
  shape.forEach((size, axis) => {
    const starts = offsets;
    offsets = new Int32Array(starts.length * size);
    let next = 0;
    for (const start of starts)
      for (let i = 0; i < size; ++i) offsets[next++] = start + i * (steps[axis] as number);
  });
  return offsets;
}

/** The elements in row-major order, in an array of their own. */
export function gather(tensor: TensorLike): Stack {
  const { data, shape } = tensor;
  const dtype = dtypeOf(tensor);
  if (!('strides' in tensor) || tensor.strides === undefined)
    return { data: data.slice(), shape, dtype };
  const offsets = offsetsOf(tensor);
  const copy = new (data.constructor as new (length: number) => DataArray)(offsets.length);
  offsets.forEach((offset, i) => (copy[i] = data[offset] as never));
  return { data: copy, shape, dtype };
}

/** A tensor with its last two axes exchanged, without gaps; one of rank 1 as it is. */
export function transposed(tensor: TensorLike): Stack {
  const { shape } = tensor;
  if (shape.length < 2) return gather(tensor);
  const swap = <T>(axes: readonly T[]) => [...axes.slice(0, -2), ...axes.slice(-2).reverse()];
  const strides = 'strides' in tensor && tensor.strides ? tensor.strides : contiguous(shape);
  return gather({
    data: tensor.data,
    dtype: dtypeOf(tensor),
    shape: swap(shape),
    strides: swap(strides),
  });
}

/**
 * Calls matmul. Expects the right result in the right place, unchanged inputs, and no memory kept.
 * Returns the result. `packed` replaces the weights, and with them transposeB.
 */
export function expectMatMul(
  wg: Gemm,
  src: TensorLike,
  weights: TensorLike,
  bias?: Bias | TensorLike,
  options: MatMulOptions = {},
  what = '',
  packed?: PackedWeights,
): TensorLike {
  const out = options.out as TensorLike | undefined;
  const wanted = referenceMatMul(src, weights, bias, {
    ...options,
    outType: options.outType ?? (out && dtypeOf(out)),
  });
  if (!wanted)
    return expect.fail(
      `there is no result of shapes ${JSON.stringify([src.shape, weights.shape])} ${what}`,
    );
  const inputs = [src, weights, bias].filter(
    (input): input is TensorLike => typeof input === 'object' && input !== null,
  );
  const call = () =>
    packed
      ? wg.matmul(src, packed, bias as never, { ...options, transposeB: false } as never)
      : wg.matmul(src, weights, bias as never, options as never);
  return expectCall(wg, inputs, out, wanted, call as () => TensorLike, what);
}

function expectCall(
  wg: Gemm,
  inputs: readonly TensorLike[],
  out: TensorLike | undefined,
  wanted: ExpectedStack,
  call: () => TensorLike,
  what: string,
): TensorLike {
  const outBefore = out && snapshot(out);
  const y = expectKept(wg, inputs, out, wanted, call, what);
  const { data } = y;
  const flat: [number, number] = [1, count(wanted.shape)];
  expectNear(
    { ...gather(y), shape: flat },
    { ...wanted, shape: flat },
    `of dst [${wanted.shape.join(', ')}] ${what}`,
  );

  if (outBefore && 'strides' in y && y.strides) {
    // The bytes between the elements of out are left to compare.
    const gaps = data.slice();
    for (const offset of offsetsOf(y))
      for (const each of [gaps, outBefore.data]) set(each, wanted.dtype, offset, 0);
    must(
      sameBytes(gaps, outBefore.data),
      'what lies between the elements of out is not as it was',
      what,
    );
  }
  return y;
}
