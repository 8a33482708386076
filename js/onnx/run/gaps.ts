/** Axes of values that have gaps: a kept tensor has room for more rows along one axis. */
import { contiguousStrides } from '../../base/layout.js';
import type { StepTensor } from '../operators/record.js';
import { type Gap, sizeOf, type Stored } from '../operators/storage.js';

/** @internal The axes of a step, and its tensors along them. */
export interface Axes {
  readonly dims: readonly number[];
  readonly tensors: readonly StepTensor[];
}

/**
 * @internal The same elements of a tensor along axes of which none crosses its gap, by the strides
 * in memory. Axes are split in two if necessary. Undefined if that does not suffice.
 *
 * @param at the index of the tensor that has the gap
 */
export function aroundGap(
  { dims, tensors }: Axes,
  at: number,
  { from, to }: Gap,
): Axes | undefined {
  const sizes = [...dims];
  const strides = tensors.map((tensor) => [...tensor.strides]);
  const own = strides[at] as number[];
  const { start } = tensors[at] as StepTensor;
  const first = start % from;
  let [low, high] = [first, first];
  for (let axis = 0; axis < sizes.length; ++axis) {
    const [size, stride] = [sizes[axis] as number, own[axis] as number];
    const most = from / Math.abs(stride);
    if (size <= 1 || stride === 0) continue;
    if (stride % from === 0) own[axis] = (stride / from) * to;
    else if (size <= most) {
      if (stride < 0) low += (size - 1) * stride;
      else high += (size - 1) * stride;
    } else if (size % most === 0) {
      sizes.splice(axis, 1, size / most, most);
      for (const each of strides)
        each.splice(axis, 1, (each[axis] as number) * most, each[axis] as number);
      --axis; // the first of the two
    } else return undefined;
  }
  if (low < 0 || high >= from) return undefined;
  return {
    dims: sizes,
    tensors: tensors.map(({ value, start }, i) => ({
      value,
      strides: strides[i] as number[],
      start: i === at ? ((start - first) / from) * to + first : start,
    })),
  };
}

/** @internal The strides of a value in memory; undefined if an axis crosses its gap. */
export function stridesOf(value: Stored): readonly number[] | undefined {
  const { shape, root } = value;
  const strides = contiguousStrides(shape);
  if (!root.gap) return strides;
  const around = aroundGap({ dims: shape, tensors: [{ value, strides, start: 0 }] }, 0, root.gap);
  return around?.dims.length === shape.length ? around.tensors[0]?.strides : undefined;
}

/** @internal The axes of a copy of a value without its gap. */
export function axesOfCopy(value: Stored, copy: Stored): Axes {
  const { from, to } = value.root.gap as Gap;
  return {
    dims: [sizeOf(value.shape) / from, from],
    tensors: [
      { value, strides: [to, 1], start: 0 },
      { value: copy, strides: [from, 1], start: 0 },
    ],
  };
}
