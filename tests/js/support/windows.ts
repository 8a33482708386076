/** Windows: tensors that begin later in their array or handle, and end before it, in every place. */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { DataArray, DType, Gemm, HeapTensor } from 'wgemm';
import type { WorkerGemm, WorkerTensor } from 'wgemm/worker';
import { arrayClasses, bytesOf, get, set } from './dtypes.js';
import type { Random } from './random.js';
import type { Expected, Matrix } from './reference.js';
import { offsetsOf } from './stacks.js';
import { count, expectNear, extent, sameBytes, SharedBuffer } from './tensors.js';

type Resizable = new (bytes: number, options: { maxByteLength: number }) => ArrayBuffer;

/** Buffers of at least some bytes. An engine that has no resizable ones gives plain ones. */
export const buffers = {
  plain: (bytes: number) => new ArrayBuffer(bytes),
  shared: (bytes: number) => new SharedBuffer(bytes),
  resizable: (bytes: number) =>
    new (ArrayBuffer as unknown as Resizable)(bytes, { maxByteLength: bytes + 64 }),
  growable: (bytes: number) =>
    new (SharedBuffer as unknown as Resizable)(bytes, { maxByteLength: bytes + 64 }),
  'of a WebAssembly.Memory': (bytes: number) =>
    new WebAssembly.Memory({ initial: Math.ceil(bytes / 65536) }).buffer,
} satisfies Record<string, (bytes: number) => ArrayBufferLike>;

/** Where the elements of a window are, in which kind of memory, and what is around them. */
export const spec = fc.record({
  where: fc.constantFrom(
    ...(Object.keys(buffers) as (keyof typeof buffers)[]),
    'the heap' as const,
    'a handle' as const,
    'a handle' as const,
  ),
  /** Elements of the buffer before the array. */
  before: fc.constantFrom(0, 0, 1, 5),
  offset: fc.integer({ min: 0, max: 9 }),
  /** Whether the tensor has strides, or only an offset. */
  hasStrides: fc.boolean(),
  /** Whether the order of the axes is reversed. */
  isReversed: fc.boolean(),
  step: fc.integer({ min: 1, max: 3 }),
  gap: fc.integer({ min: 0, max: 4 }),
  /** An axis whose stride is 0, if the tensor is an input. */
  repeated: fc.constantFrom(-1, -1, 0, 1),
  /** Elements after the last one. */
  after: fc.integer({ min: 0, max: 4 }),
  isBits: fc.boolean(),
});
export type Spec = typeof spec extends fc.Arbitrary<infer T> ? T : never;

export interface Window {
  /** The tensor, as a call takes it. */
  tensor: {
    data: DataArray;
    shape: readonly number[];
    dtype: DType;
    strides?: readonly number[];
    offset?: number;
  };
  dtype: DType;
  /** Index of each element of the tensor, in row-major order. */
  places: Int32Array;
  /** The whole array or tensor. */
  read: () => Promise<DataArray> | DataArray;
  /** Replaces each number of the array. */
  change: (next: (value: number, isWithin: boolean) => number) => Promise<void>;
  dispose: () => void;
}

/** Strides that no two elements share, except along a repeated axis. */
function stridesOf(shape: readonly number[], spec: Spec, isInput: boolean): number[] {
  const { isReversed, step, gap, repeated } = spec;
  const strides = shape.map(() => 0);
  let next = step;
  const axes = shape.map((_, axis) => axis);
  for (const axis of isReversed ? axes : axes.reverse()) {
    strides[axis] = next;
    next = next * (shape[axis] as number) + gap;
  }
  if (isInput && repeated in strides) strides[repeated] = 0;
  return strides;
}

/** Makes a window of random elements, among random elements. */
export async function windowIn(
  wg: Gemm | WorkerGemm,
  random: Random,
  dtype: DType,
  shape: readonly number[],
  spec: Spec,
  isInput: boolean,
): Promise<Window> {
  const { where, before, offset, hasStrides, after } = spec;
  const strides = hasStrides ? stridesOf(shape, spec, isInput) : undefined;
  const needed = offset + (strides ? extent(shape, strides) : count(shape));
  const length = needed + after;
  const rest = { shape, dtype, offset, ...(strides && { strides }) };
  const places = offsetsOf(rest).map((place) => place + offset);
  const window = (
    data: unknown,
    read: Window['read'],
    write: (array: Uint8Array) => unknown,
    dispose: () => void = () => undefined,
  ): Window => {
    const change: Window['change'] = async (next) => {
      const array = (await read()).slice() as Uint8Array;
      await write(array.map((value, i) => next(value, places.includes(i))));
    };
    // The memory may grow before the call. A view of it would be detached, if it were read now.
    const tensor = Object.defineProperty(rest, 'data', {
      get: () => (where === 'the heap' ? read() : data),
      enumerable: true,
    });
    return { tensor: tensor as Window['tensor'], dtype, places, read, change, dispose };
  };
  if (where === 'a handle' || where === 'the heap') {
    const all = random.tensor(dtype, [length]).data as unknown as Uint8Array;
    const held: HeapTensor | WorkerTensor = await wg.alloc(dtype, [length]);
    const read = () => ('data' in held ? held.data : held.read());
    const write = (array: Uint8Array) =>
      'data' in held ? (held.data as Uint8Array).set(array) : held.write(array);
    await write(all);
    return window(held, read, write, () => held.dispose());
  }
  const bytes = bytesOf(dtype);
  const isBits = dtype === 'float16' && spec.isBits;
  const ArrayClass = arrayClasses[
    isBits ? 'bfloat16' : dtype
  ] as unknown as Float32ArrayConstructor;
  const buffer = buffers[where]((before + length) * bytes) as ArrayBuffer;
  const data = random.fill(new ArrayClass(buffer, before * bytes, length), dtype);
  return window(
    data,
    () => data,
    (array) => (data as unknown as Uint8Array).set(array),
  );
}

/** The elements of a window, in an array of their own. */
export function gather(all: DataArray, { dtype, places, tensor: { shape } }: Window): Matrix {
  const data = new (all.constructor as new (length: number) => DataArray)(places.length);
  places.forEach((place, i) => set(data, dtype, i, get(all, dtype, place)));
  return { data, shape, dtype };
}

/** Expects that a call has filled a window with a result, and changed nothing around it. */
export function expectFilled(
  found: DataArray,
  before: DataArray,
  window: Window,
  wanted: Omit<Expected, 'shape'>,
): void {
  const { data, dtype } = gather(found, window);
  expectNear(
    { data, dtype: dtype as DType, shape: [1, data.length] },
    { ...wanted, shape: [1, data.length] },
  );
  const [after, guards] = [found.slice(), before.slice()];
  for (const place of window.places)
    for (const each of [after, guards]) set(each, window.dtype, place, 0);
  expect(sameBytes(after, guards), 'the elements around the result are as they were').toBe(true);
}
