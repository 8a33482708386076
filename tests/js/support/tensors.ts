/**
 * Helpers of the tests: seeded numbers, tensors in every kind of place, and the check of a call and
 * its result.
 */
import { expect } from 'vitest';
import type {
  DataArray,
  DType,
  Gemm,
  GemmOptions,
  HeapTensor,
  PackedWeights,
  TensorInput,
  TensorLike,
} from 'wgemm';
import { arrayClasses, bytesOf, dtypeOf, get, isFloat, round, set } from './dtypes.js';
import type { Random } from './random.js';
import { type Expected, type Matrix, referenceGemm } from './reference.js';

export { Random } from './random.js';

export const count = (shape: readonly number[]): number =>
  shape.reduce((product, size) => product * size, 1);

const zeros = (dtype: DType, shape: readonly number[]) => ({
  data: new arrayClasses[dtype](count(shape)),
  shape,
  dtype,
});

/**
 * A page that is not isolated has no global of that name, but it has memories of the class.
 */
export const SharedBuffer =
  (globalThis as { SharedArrayBuffer?: SharedArrayBufferConstructor }).SharedArrayBuffer ??
  (new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true }).buffer
    .constructor as SharedArrayBufferConstructor);

/**
 * Places of the elements of a tensor. Each function makes a tensor of zeros there, from type and
 * shape. If it is not a matrix, there is no place for gaps, and it is a plain array.
 */
export const places = {
  'an array': (_, dtype, shape) => zeros(dtype, shape),
  // Only here is float16 given as its bits.
  'part of an array': (_, dtype, shape) => {
    const array = new (dtype === 'float16' ? Uint16Array : arrayClasses[dtype])(count(shape) + 5);
    return { data: array.subarray(3, 3 + count(shape)), shape, dtype };
  },
  'shared memory': (_, dtype, shape) => {
    return {
      data: new arrayClasses[dtype](new SharedBuffer(bytesOf(dtype) * count(shape))),
      shape,
      dtype,
    };
  },
  'rows with gaps': (_, dtype, shape) => strided(dtype, shape, ([, columns]) => [columns + 3, 1]),
  'column-major': (_, dtype, shape) => strided(dtype, shape, ([rows]) => [1, rows]),
  'columns with gaps': (_, dtype, shape) => strided(dtype, shape, ([rows]) => [2, 2 * rows + 1]),
  'every third element': (_, dtype, shape) =>
    strided(dtype, shape, ([, columns]) => [3 * columns, 3]),
  'the heap': (wg, dtype, shape) => wg.alloc(dtype, shape),
  'a view of the heap': (wg, dtype, shape) => {
    const tensor = wg.alloc(dtype, shape);
    // The memory may grow before the call, and the view would be detached.
    return {
      get data() {
        return tensor.data;
      },
      shape,
      dtype,
    };
  },
} satisfies Record<string, (wg: Gemm, dtype: DType, shape: readonly number[]) => TensorLike>;

export type Place = keyof typeof places;
export const placeNames = Object.keys(places) as Place[];

function strided(
  dtype: DType,
  shape: readonly number[],
  layout: (shape: [number, number]) => [number, number],
): TensorLike {
  if (shape.length !== 2) return zeros(dtype, shape);
  const strides = layout(shape as [number, number]);
  return { data: new arrayClasses[dtype](extent(shape, strides)), shape, strides, dtype };
}

/** The elements that the array of a tensor must have. */
export function extent(shape: readonly number[], strides: readonly number[]): number {
  return count(shape) === 0
    ? 0
    : shape.reduce((last, size, axis) => last + (size - 1) * (strides[axis] as number), 1);
}

export function place(
  wg: Gemm,
  where: Place,
  dtype: DType,
  shape: readonly number[],
  random: Random,
): TensorLike {
  const tensor = places[where](wg, dtype, shape);
  random.fill(tensor.data, dtype);
  return tensor;
}

/** Values as they are now, to compare with later. */
export function snapshot(tensor: TensorLike): Matrix {
  const { shape } = tensor;
  const copy: Matrix = { data: tensor.data.slice(), shape, dtype: dtypeOf(tensor) };
  if ('strides' in tensor && tensor.strides) copy.strides = tensor.strides;
  if ('offset' in tensor && tensor.offset) copy.offset = tensor.offset;
  return copy;
}

/**
 * Calls gemm, and expects all of `expectCall`. Returns the result. `packed` replaces b, and with it
 * transB. Without c it passes no beta, since the call refuses beta with `out`.
 */
export function expectGemm(
  wg: Gemm,
  a: TensorLike,
  b: TensorLike,
  c?: TensorLike | number | bigint | null,
  options?: GemmOptions | null,
  what = '',
  packed?: PackedWeights,
): TensorLike {
  const inputs = [a, b, c].filter(
    (input): input is TensorLike => typeof input === 'object' && input !== null,
  );
  const wanted = referenceGemm(a, b, c, options ?? {});
  const isOutAlone = options?.out && (c === undefined || c === null);
  const given = (isOutAlone ? { ...options, beta: undefined } : options) as GemmOptions;
  const call = () =>
    packed ? wg.gemm(a, packed, c, { ...given, transB: false }) : wg.gemm(a, b, c, given);
  return expectCall(wg, inputs, options?.out as TensorLike | undefined, wanted, call, what);
}

/** The same with b as it is, and with b packed. A C that is overwritten is first restored. */
export function expectGemmTwice(
  wg: Gemm,
  a: TensorLike,
  b: TensorLike,
  c: TensorLike | number | bigint | null | undefined,
  options: GemmOptions,
  what = '',
): void {
  const { transB } = options;
  const out = options.out as TensorLike | undefined;
  const before = out?.data.slice();
  expectGemm(wg, a, b, c, options, what);
  if (out) out.data.set(before as never);
  const packed = wg.pack(b, { op: 'gemm', trans: transB });
  try {
    expectGemm(wg, a, b, c, options, `${what}, packed`, packed);
  } finally {
    packed.dispose();
  }
}

/** Fails with a text unless something holds. Not by expect(), which costs more than a call. */
export function must(holds: boolean | undefined, text: string, what: string): void {
  if (!holds) expect.fail(`${text} ${what}`);
}

/**
 * Makes a call. Expects unchanged inputs, no memory kept, and what the call returns to be `out`, or
 * new and of this type and shape. Returns it.
 */
export function expectKept(
  wg: Gemm,
  inputs: readonly TensorLike[],
  out: TensorLike | undefined,
  { dtype, shape }: { dtype: DType; shape: readonly number[] },
  call: () => TensorLike,
  what: string,
): TensorLike {
  const before = inputs.map(snapshot);
  const { inUse } = wg.memory();

  const y = call();

  must(
    wg.memory().inUse === inUse,
    `${wg.memory().inUse} bytes are in use after the call, ${inUse} were before`,
    what,
  );
  inputs.forEach((input, i) => {
    const isSame = sameBytes(input.data, (before[i] as Matrix).data);
    must(isSame || (out && sameMemory(input, out)), `input ${i} is not as it was`, what);
  });
  if (out) {
    must(y === out, 'what the call returns is not out', what);
  } else {
    const expected = [dtype, arrayClasses[dtype], ...shape];
    const found = [y.dtype, y.data.constructor, ...y.shape];
    must(
      found.length === expected.length && found.every((part, i) => part === expected[i]),
      `the result is ${found.join()}; it must be ${expected.join()}`,
      what,
    );
    must(y.data.length === count(shape), `the result has ${y.data.length} elements`, what);
  }
  return y;
}

/** Makes a call. Expects all of `expectKept`, and the right result in the right place. */
export function expectCall(
  wg: Gemm,
  inputs: readonly TensorLike[],
  out: TensorLike | undefined,
  wanted: Expected,
  call: () => TensorLike,
  what: string,
): TensorLike {
  const { dtype } = wanted;
  const outBefore = out && snapshot(out);
  const y = expectKept(wg, inputs, out, wanted, call, what);
  expectNear(y, wanted, what);

  if (outBefore) {
    // The bytes between and around the elements of out are left to compare.
    const [rows, columns] = wanted.shape;
    const [down, across, first] = placesOf(y);
    const gaps = y.data.slice();
    for (let i = 0; i < rows; ++i) {
      for (let j = 0; j < columns; ++j)
        for (const data of [gaps, outBefore.data])
          set(data, dtype, first + i * down + j * across, 0);
    }
    must(
      sameBytes(gaps, outBefore.data),
      'what lies between the elements of out is not as it was',
      what,
    );
  }
  return y;
}

/**
 * Expects every element of a result to be a rounding of some number within the bound of the expected
 * one.
 */
export function expectNear(
  y: TensorLike,
  { dtype, shape: [rows, columns], values, bounds }: Expected,
  what = '',
): void {
  const [down, across, first] = placesOf(y);
  const { data } = y; // a heap tensor makes a new view each time
  must(
    'strides' in y || 'offset' in y || data.length === rows * columns,
    `the result has ${data.length} elements`,
    what,
  );
  for (let i = 0; i < rows; ++i) {
    for (let j = 0; j < columns; ++j) {
      const found = get(data, dtype, first + i * down + j * across);
      const [wanted, bound] = [
        values[i * columns + j] as number | bigint,
        bounds[i * columns + j] as number,
      ];
      if (!near(dtype, found, wanted, bound)) {
        expect.fail(`Y[${i}, ${j}] is ${found}; it must be ${wanted}, within ${bound} ${what}`);
      }
    }
  }
}

function near(
  dtype: DType,
  found: number | bigint,
  wanted: number | bigint,
  bound: number,
): boolean {
  if (typeof wanted === 'bigint') return BigInt(found) === wanted;
  if (bound === 0 || !isFloat(dtype)) return Object.is(found, wanted);
  if (Number.isNaN(wanted)) return Number.isNaN(found);
  if (!Number.isFinite(wanted)) return found === wanted;
  if (bound === Infinity) return true;
  return (
    round(dtype, wanted - bound) <= (found as number) &&
    (found as number) <= round(dtype, wanted + bound)
  );
}

/** The symbol that replaces `Symbol.dispose` in an engine without it, also for compilers of `using`. */
export const dispose: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');

/** Disposes of the arguments that are in the heap. */
export function drop(...tensors: unknown[]): void {
  for (const item of tensors)
    if (typeof item === 'object' && item !== null && 'dispose' in item)
      (item.dispose as () => void).call(item);
}

/** Strides of rows and columns, and the offset. */
function placesOf(y: TensorInput | HeapTensor): [number, number, number] {
  const { strides = [y.shape[1] ?? 1, 1], offset = 0 } = y as TensorInput;
  return [strides[0] as number, strides[1] as number, offset];
}

/** Whether two arrays are the same, bit by bit. */
export function sameBytes(a: DataArray, b: DataArray): boolean {
  if (a.byteLength !== b.byteLength) return false;
  const [one, other] = [
    new Uint8Array(a.buffer, a.byteOffset, a.byteLength),
    new Uint8Array(b.buffer, b.byteOffset, b.byteLength),
  ];
  for (let i = 0; i < one.length; ++i) if (one[i] !== other[i]) return false;
  return true;
}

function sameMemory(a: TensorLike, b: TensorLike): boolean {
  return a.data.buffer === b.data.buffer && a.data.byteOffset === b.data.byteOffset;
}

/** A tensor of these numbers. */
export function tensor(
  dtype: DType,
  shape: readonly number[],
  numbers: readonly (number | bigint)[],
): Matrix {
  const data = new arrayClasses[dtype](numbers.length);
  numbers.forEach((value, i) => set(data, dtype, i, value));
  return { data, shape, dtype };
}

/** Makes tensors of one array class from their elements. */
const tensorsOf =
  <A extends DataArray>(arrayClass: { from(numbers: number[]): A }) =>
  (shape: readonly number[], ...numbers: number[]) => ({ data: arrayClass.from(numbers), shape });

export const float32 = tensorsOf(Float32Array);
export const int32 = tensorsOf(Int32Array);
export const int8 = tensorsOf(Int8Array);
export const uint8 = tensorsOf(Uint8Array);
