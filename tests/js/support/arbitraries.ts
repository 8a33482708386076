/**
 * Arbitraries that the property tests share: sizes, layouts, and values of every JavaScript kind.
 */
import fc from 'fast-check';
import type { DType, Gemm, TensorLike } from 'wgemm';
import { allTypes, arrayClasses } from './dtypes.js';
import { count, drop, extent, type Random, tensor } from './tensors.js';

export const seed = 20250101;
export const size = fc.oneof(
  { weight: 9, arbitrary: fc.integer({ min: 0, max: 12 }) },
  { weight: 1, arbitrary: fc.integer({ min: 13, max: 70 }) },
);

/**
 * Layouts of a tensor: in an array or in the heap, at its start or later, with elements before and
 * after it. A matrix is row-major or column-major, with gaps, or repeated.
 */
export const layout = fc.record({
  inHeap: fc.boolean(),
  columnMajor: fc.boolean(),
  step: fc.integer({ min: 1, max: 3 }),
  gap: fc.integer({ min: 0, max: 5 }),
  repeat: fc.constantFrom('none', 'none', 'rows', 'columns'),
  offset: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined, freq: 1 }),
  after: fc.integer({ min: 0, max: 3 }),
});
export type Layout = typeof layout extends fc.Arbitrary<infer T> ? T : never;

/** A tensor in such a layout. Only a matrix has strides. */
export function layOut(
  wg: Gemm,
  random: Random,
  dtype: DType,
  shape: number[],
  layout: Layout,
  mayRepeat: boolean,
): TensorLike {
  const { inHeap, columnMajor, step, gap, repeat, offset, after } = layout;
  if (offset === undefined && inHeap) {
    const tensor = wg.alloc(dtype, shape);
    random.fill(tensor.data, dtype);
    return tensor;
  }
  if (shape.length !== 2 || inHeap) {
    if (offset === undefined) return random.tensor(dtype, shape);
    const around = inHeap
      ? wg.alloc(dtype, [offset + count(shape) + after])
      : random.tensor(dtype, [offset + count(shape) + after]);
    random.fill(around.data, dtype);
    return {
      // The memory may grow before the call, and the view would be detached.
      get data() {
        return around.data;
      },
      shape,
      dtype,
      offset,
      ...(inHeap && { dispose: () => drop(around) }),
    };
  }
  const [rows, columns] = shape as [number, number];
  const strides = columnMajor ? [step, rows * step + gap] : [columns * step + gap, step];
  if (mayRepeat && repeat !== 'none') strides[repeat === 'rows' ? 0 : 1] = 0;
  const length = extent(shape, strides) + (offset ?? 0) + after;
  // Also float16 as its bits.
  const data =
    dtype === 'float16' && gap > 2 ? new Uint16Array(length) : new arrayClasses[dtype](length);
  const first = offset !== undefined && { offset };
  return { data: random.fill(data, dtype), shape, strides, dtype, ...first };
}

export const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withSparseArray: true,
  withTypedArray: true,
});
export const small = fc.integer({ min: 0, max: 3 });
export const ones = (dtype: DType, shape: number[]) =>
  tensor(dtype, shape, Array<number>(count(shape)).fill(1));
export const nearlyRight = fc.oneof(
  fc.double(),
  fc.boolean(),
  small,
  fc.constantFrom(undefined, null, ...allTypes),
  fc.array(fc.oneof(small, fc.integer(), fc.double()), { maxLength: 4 }),
  fc
    .tuple(fc.constantFrom(...allTypes), fc.integer({ min: 0, max: 9 }))
    .map(([dtype, length]) => ones(dtype, [length]).data),
);
export const orAnything = (good: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 4, arbitrary: good }, anything);
export const sizes = fc.oneof(
  { weight: 8, arbitrary: fc.array(small, { maxLength: 4 }) },
  nearlyRight,
  anything,
);
