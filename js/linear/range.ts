/** Bounds on the scales of an int8 layer, so that adding the products to the bias does not wrap. */
import type { Form } from './arguments.js';
import type { Vectors } from './memory.js';

/** @internal The greatest magnitude in C, so that adding the products does not wrap. */
export const mostSum = 2 ** 30;

/**
 * A column's scale is at least its bias times this. Otherwise the bias of a column of tiny
 * weights would exceed `mostSum`, or x would need a coarse scale.
 */
const leastRatio = 2 ** -15;

/**
 * @internal The scales of weights that the layer quantizes: by their range, or greater ones if the
 * bias needs them. A column of zeros has the scale of its bias.
 */
export function scalesFor(
  form: Form,
  scales: Float32Array,
  bias: Float32Array | null,
  isZeroAt: (column: number) => boolean,
): Float32Array {
  const scaleOfX = form[8];
  const ratio = Math.max(leastRatio, scaleOfX && 1 / (scaleOfX * mostSum));
  return scales.map((scale, column) => {
    const least = Math.abs(bias?.[column] ?? 0) * ratio;
    return least > 0 && (least > scale || isZeroAt(column)) ? least : scale;
  });
}

/** @internal Whether a column of weights is zero. */
export function isZero(
  data: Float32Array,
  [k, n]: readonly number[],
  axis: number,
  column: number,
) {
  const [size, step, start] = (axis === 1 ? [k, n, column] : [n, 1, column * (n as number)]) as [
    number,
    number,
    number,
  ];
  for (let i = 0; i < size; ++i) if (data[start + i * step] !== 0) return false;
  return true;
}

/**
 * @internal The least scale of x that a call computes. With a smaller one C would exceed `mostSum`.
 * It is at most `leastRatio`, so that one column does not make x coarse for all others.
 */
export function leastScaleOf([bias, bScale]: Vectors): number {
  const scales = bScale as Float32Array;
  const ratios = (bias as Float32Array | null)?.map(
    (value, column) => Math.abs(value) / (scales[column] as number) / mostSum,
  );
  return Math.min(leastRatio, ratios?.reduce((most, ratio) => Math.max(most, ratio), 0) ?? 0);
}
