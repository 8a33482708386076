/** Ranges, rounding and scales of quantized numbers, and loops over elements that share a scale. */
import { arrayOf } from '../base/arrays.js';
import { OutOfMemoryError } from '../base/errors.js';
import type { ArrayOf, DType, QuantizedDType } from '../base/tensor.js';

/** @internal The types that these functions read and write. */
export type QuantizeType = QuantizedDType | 'int32' | 'float32';

/**
 * @internal `x + large - large` rounds x half to even if x is less than 2^51: from 2^52 on, a
 * float64 has no fraction. Loops write this out, since a function would be slower.
 */
export const large = 1.5 * 2 ** 52;

/** @internal The greatest float32. */
export const greatest = (2 - 2 ** -23) * 2 ** 127;

/** @internal The range of scales. */
export const positive = [2 ** -149, greatest] as const;

/**
 * @internal The range of values and of zero points, and its middle. int32 has zero point 0 only.
 */
export function limits(
  dtype: QuantizedDType | 'int32',
  symmetric: boolean,
): { least: number; most: number; centre: number } {
  const [first, most] = {
    int8: [-128, 127] as const,
    uint8: [0, 255] as const,
    int32: [0, 0] as const,
  }[dtype];
  const least = symmetric ? first + 1 : first;
  return { least, most, centre: (least + most) / 2 };
}

/** @internal The axis that has scales, and how many; null if there is one scale for all. */
export type Axis = { readonly index: number; readonly size: number } | null;

/** @internal Calls back for each run of contiguous elements that share a scale. */
export function eachRun(
  shape: readonly number[],
  axis: Axis,
  run: (group: number, from: number, to: number) => void,
): void {
  const total = count(shape);
  const length = axis ? count(shape.slice(axis.index + 1)) : total;
  const groups = axis ? axis.size : 1;
  for (
    let from = 0, group = 0;
    from < total;
    from += length, group = group + 1 === groups ? 0 : group + 1
  )
    run(group, from, from + length);
}

/** @internal Computes scales and zero points from the range of the data and 0. */
export function fromRange(
  op: string,
  data: Float32Array,
  shape: readonly number[],
  axis: Axis,
  dtype: QuantizedDType,
  symmetric: boolean,
) {
  const groups = axis ? axis.size : 1;
  const lows = allocate(op, 'x', 'float32', groups);
  const highs = allocate(op, 'x', 'float32', groups);
  eachRun(shape, axis, (group, from, to) => {
    let low = lows[group] as number;
    let high = highs[group] as number;
    for (let i = from; i < to; ++i) {
      const value = data[i] as number;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    lows[group] = low;
    highs[group] = high;
  });
  const { least, most, centre } = limits(dtype, symmetric);
  const zeros = allocate(op, 'x', dtype, groups);
  const scales = lows.map((low, group) => {
    const high = highs[group] as number;
    const exact = symmetric ? Math.max(-low, high) : high - low;
    const range = Math.fround(exact) < Infinity ? Math.fround(exact) : exact;
    const scale =
      exact === 0
        ? 1
        : Math.max(Math.fround(range / (most - (symmetric ? centre : least))), 2 ** -149);
    const zero = Math.fround(least - Math.fround(low / scale));
    zeros[group] = symmetric ? centre : Math.min(zero + large - large, most);
    return scale;
  });
  return [scales, zeros] as const;
}

/** @internal The number of elements of a shape. */
export const count = (shape: readonly number[]): number =>
  shape.reduce((product, size) => product * size, 1);

/** @internal An array of zeros. `name`: the argument that an error names. */
export function allocate<D extends DType>(
  op: string,
  name: string,
  dtype: D,
  length: number,
): ArrayOf<D> {
  try {
    return arrayOf(dtype, length) as ArrayOf<D>;
  } catch (error) {
    const found = `cannot allocate ${length} elements of ${dtype} for ${name}`;
    throw new OutOfMemoryError(op, name, `${op}: ${found} (${String(error)})`);
  }
}
