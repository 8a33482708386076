/**
 * Tensors from arrays and from objects of other libraries, and nested arrays from tensors, compared
 * with plain loops. foreign.node.test.ts has the libraries themselves.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import {
  ArgumentError,
  createGemm,
  type DataArray,
  DisposedError,
  type DType,
  DTypeError,
  type Gemm,
  GemmError,
  OutOfMemoryError,
  quantize,
  ShapeError,
  tensor,
  type TensorInput,
  type TensorSource,
  toNested,
} from 'wgemm';
import { seed } from '../support/arbitraries.js';
import {
  allTypes,
  arrayClasses,
  type Float,
  floats,
  floatTypes,
  fromBits,
  get,
  isFloat,
  round,
  set,
  toBits,
  valuesOf,
} from '../support/dtypes.js';
import { count } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

type Value = number | bigint;
const halves = ['float16', 'bfloat16'] as const;
const isBig = (dtype: DType) => dtype === 'int64' || dtype === 'uint64';
const runs = { seed, numRuns: 300 };

/** Calls with every index of a shape, in order. */
function eachPlace(shape: readonly number[], call: (place: number[], index: number) => void): void {
  for (let index = 0; index < count(shape); ++index) {
    let rest = index;
    const place = shape.map(() => 0);
    for (let axis = shape.length - 1; axis >= 0; --axis) {
      place[axis] = rest % (shape[axis] as number);
      rest = Math.floor(rest / (shape[axis] as number));
    }
    call(place, index);
  }
}

/** All elements of a tensor in order, as numbers or bigints. */
function elementsOf({ data, shape, dtype, strides, offset = 0 }: TensorInput): Value[] {
  const steps = strides ?? shape.map((_, axis) => count(shape.slice(axis + 1)));
  const elements: Value[] = [];
  eachPlace(shape, (place) => {
    const index = place.reduce((sum, at, axis) => sum + at * (steps[axis] as number), offset);
    expect(index < data.length).toBe(true);
    elements.push(get(data, dtype as DType, index));
  });
  return elements;
}

/** Nested arrays of elements. */
function nestedOf(shape: readonly number[], elements: readonly unknown[]): unknown {
  const [size, ...inner] = shape;
  if (size === undefined) return elements[0];
  const step = count(inner);
  return Array.from({ length: size }, (_, i) =>
    nestedOf(inner, elements.slice(i * step, (i + 1) * step)),
  );
}

/** What an element becomes in another type; undefined if it cannot. */
function converted(value: Value, dtype: DType): Value | undefined {
  if (isFloat(dtype)) {
    const rounded = round(dtype, Number(value));
    return rounded === 0 && value < 0 ? -0 : rounded;
  }
  if (typeof value === 'number' && !Number.isInteger(value)) return undefined;
  const bits = 8 * arrayClasses[dtype].BYTES_PER_ELEMENT;
  const exact = BigInt(value);
  const wrapped = dtype.startsWith('u') ? BigInt.asUintN(bits, exact) : BigInt.asIntN(bits, exact);
  if (wrapped !== exact) return undefined;
  return isBig(dtype) ? exact : Number(exact);
}

function errorOf(call: () => unknown): GemmError {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(GemmError);
    return error as GemmError;
  }
  throw new Error('no error');
}
const refused = (x: unknown, options?: unknown) =>
  errorOf(() => tensor(x as TensorSource, options as { dtype?: DType }));

/** An array of a type with elements that differ. */
function arrayFor(dtype: DType, length: number): DataArray {
  const array = new arrayClasses[dtype](length);
  for (let i = 0; i < length; ++i) set(array, dtype, i, (i * 7 + 3) % 120);
  return array;
}

const view = fc.record({
  dtype: fc.constantFrom(...allTypes),
  wanted: fc.option(fc.constantFrom(...allTypes), { nil: undefined }),
  shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }),
  steps: fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 4, maxLength: 4 }),
  before: fc.nat(5),
  after: fc.nat(5),
  stride: fc.constantFrom('strides', 'stride'),
  holder: fc.constantFrom('array', 'list', 'store'),
});

describe('views', () => {
  it('of any strides and offset have the elements of a plain loop', () => {
    fc.assert(
      fc.property(view, ({ dtype, wanted, shape, steps: all, before, after, stride, holder }) => {
        const steps = shape.map((_, axis) => all[axis] as number);
        const reach = (sign: number) =>
          steps.reduce((sum, step, axis) => {
            const far = step * Math.max((shape[axis] as number) - 1, 0);
            return sum + (far * sign > 0 ? far * sign : 0);
          }, 0);
        const offset = before + reach(-1);
        const array = arrayFor(dtype, offset + reach(1) + 1 + after);
        const values = valuesOf({ data: array, dtype });
        const data =
          holder === 'array'
            ? array
            : holder === 'list'
              ? values
              : { length: values.length, get: (i: number) => values[i], set() {} };
        const expected: Value[] = [];
        eachPlace(shape, (place) => {
          const index = place.reduce((sum, at, axis) => sum + at * (steps[axis] as number), offset);
          expected.push(values[index] as Value);
        });
        const x = { data, shape, [stride]: steps, offset, dtype };
        const y = tensor(x, wanted && { dtype: wanted });
        const type = wanted ?? dtype;
        expect(y.dtype).toBe(type);
        expect(y.shape).toEqual(shape);
        expect(elementsOf(y)).toEqual(expected.map((value) => converted(value, type)));
        const isHere = holder === 'array' && type === dtype;
        const isForward = steps.every((step, axis) => (shape[axis] as number) < 2 || step >= 0);
        const used = isHere && isForward;
        expect(y.data === array).toBe(used);
        if (y.data !== array) {
          expect(y.data.length).toBe(count(shape));
          expect(y.strides).toBe(undefined);
          expect(y.offset).toBe(undefined);
        }
        expect(toNested(y)).toEqual(nestedOf(shape, elementsOf(y)));
        if (holder === 'array')
          expect(toNested(x as TensorInput)).toEqual(nestedOf(shape, expected));
      }),
      runs,
    );
  });

  it('keep strides and offset if there are any', () => {
    const data = new Float32Array(6);
    const dtype = 'float32';
    expect(tensor({ data, shape: [2, 3] })).toStrictEqual({ data, shape: [2, 3], dtype });
    expect(tensor(data)).toStrictEqual({ data, shape: [6], dtype });
    for (const x of [
      { data, shape: [3, 2], strides: [1, 3], offset: 0 },
      { data, shape: [2], strides: [1], offset: 4 },
    ])
      expect(tensor(x)).toStrictEqual({ ...x, dtype });
    const row = { data, shape: [1, 2], strides: [3, 1], offset: 3 };
    expect(tensor({ ...row, strides: [-3, 1] })).toStrictEqual({ ...row, dtype });
  });

  it('that leave their data are refused', () => {
    const data = new Float32Array(6);
    for (const [shape, strides, offset, found] of [
      [[2, 3], [3, 1], 1, '6 elements'],
      [[2, 3], [4, 1], 0, '6 elements'],
      [[2, 3], [3, -1], 1, 'offset -1'],
      [[2, 3], [-3, 1], 2, 'offset -1'],
      [[2, 3], [3, -1], 3, '6 elements'],
      [[2 ** 40, 2 ** 40], [2 ** 40, 1], 0, '6 elements'],
      [[2], [-(2 ** 53 - 1)], 2 ** 53 - 1, '6 elements'],
      [[2, 3], [3], 0, 'one stride per axis'],
      [[2, 3], [3, 0.5], 0, '0.5'],
      [[2, 3], [3, '1'], 0, '"1"'],
      [[2, 3], 'x', 0, '"x"'],
      [[2, 3], [3, 1], -1, 'offset -1'],
      [[2, 3], [3, 1], NaN, 'offset NaN'],
      [[-2, 3], [3, 1], 0, '-2'],
      [[2.5], [3, 1], 0, '2.5'],
    ] as const) {
      for (const holder of [data, Array.from(data), { length: 6, get: () => 0 }]) {
        const error = refused({ data: holder, shape, strides, offset });
        expect(error).toBeInstanceOf(ShapeError);
        expect(error.message).toContain(found);
        expect(error).toMatchObject({ op: 'tensor', argument: 'x' });
      }
    }
    expect(refused({ data, shape: [2, 2] })).toBeInstanceOf(ShapeError);
    expect(refused({ data, shape: [2, 3], fortranOrder: true })).toBeInstanceOf(ShapeError);
    expect(errorOf(() => toNested({ data, shape: [7] }))).toBeInstanceOf(ShapeError);
  });

  it('may be empty', () => {
    const data = new Float64Array(3);
    for (const x of [
      { data, shape: [2, 0], strides: [-1, 7], offset: 3 },
      { data, shape: [2, 0], strides: [1, 7], offset: 3 },
      { data: [], shape: [2, 0] },
    ]) {
      const y = tensor(x);
      expect(y.shape).toEqual([2, 0]);
      expect(toNested(y)).toEqual([[], []]);
    }
  });

  it('of a million elements are copied backwards', () => {
    const data = Float32Array.from({ length: 1e6 }, (_, i) => i);
    const y = tensor({ data, shape: [1000, 1000], stride: [-1000, -1], offset: 1e6 - 1 });
    let right = 0;
    for (let i = 0; i < 1e6; ++i) right += Number(y.data[i] === 1e6 - 1 - i);
    expect(right).toBe(1e6);
  });
});

describe('nested arrays', () => {
  const nested = fc
    .record({
      shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }),
      wanted: fc.option(fc.constantFrom(...allTypes), { nil: undefined }),
      big: fc.boolean(),
      seed: fc.nat(100),
    })
    .map((x) => ({
      ...x,
      elements: Array.from({ length: count(x.shape) }, (_, i) => (i * 7 + x.seed) % 120).map((n) =>
        x.big ? BigInt(n) : n,
      ),
    }));

  it('become tensors, and come back', () => {
    fc.assert(
      fc.property(nested, ({ shape, wanted, big, elements }) => {
        const end = shape.indexOf(0);
        const seen = end < 0 ? shape : shape.slice(0, end + 1); // what nested arrays show of it
        const x = nestedOf(shape, elements) as number[][];
        const y = tensor(x, wanted && { dtype: wanted });
        const dtype = wanted ?? (big && elements.length > 0 ? 'int64' : 'float32');
        expect(y.dtype).toBe(dtype);
        expect(y.shape).toEqual(seen);
        expect(elementsOf(y)).toEqual(elements.map((value) => converted(value, dtype)));
        expect(toNested(y)).toEqual(nestedOf(seen, elementsOf(y)));
      }),
      runs,
    );
  });

  it('may have typed arrays as rows', () => {
    const rows = [new Float64Array([1, 2.5]), new Float32Array([3, 4]), [5, 6n]];
    const y = tensor([rows] as never);
    expect(y).toStrictEqual({
      data: new Float64Array([1, 2.5, 3, 4, 5, 6]),
      shape: [1, 3, 2],
      dtype: 'float64',
    });
    expect(tensor([new Int16Array([-1, 2])])).toStrictEqual({
      data: new Int32Array([-1, 2]),
      shape: [1, 2],
      dtype: 'int32',
    });
    const bits = [new Uint16Array([0x3c00, 0xc000]), new Uint16Array([0x7c00, 1])];
    expect(elementsOf(tensor(bits, { dtype: 'float16' }))).toEqual([1, -2, Infinity, 2 ** -24]);
    expect(refused(bits)).toBeInstanceOf(DTypeError);
    expect(refused(bits, { dtype: 'float32' })).toBeInstanceOf(DTypeError);
    expect(refused([[new Float32Array(2)], [[1, 2]], [[1, 2], 3]])).toBeInstanceOf(ShapeError);
  });

  it('that are ragged are refused with the place', () => {
    const rule = 'all must have the same number';
    for (const [x, found] of [
      [
        [
          [1, 2, 3],
          [4, 5],
        ],
        'x[1] has 2 elements and x[0] has 3',
      ],
      [[[1], 2], 'x[1] is 2 and x[0] has 1'],
      [[[], [1]], 'x[1] has 1 elements and x[0] has 0'],
      [[[[1, 2]], [[1], [2]]], 'x[1] has 2 elements and x[0] has 1'],
      [
        [
          [
            [1, 2],
            [3, 4],
          ],
          [[1, 2], [3]],
        ],
        'x[1][1] has 1 elements and x[0][0] has 2',
      ],
      [[[1, 2], new Float32Array(3)], 'x[1] has 3 elements and x[0] has 2'],
      [[[1, 2], null], 'x[1] is null and x[0] has 2'],
      [[new Float32Array(2), 7], 'x[1] is 7 and x[0] has 2'],
    ] as const) {
      const error = refused(x);
      expect(error).toBeInstanceOf(ShapeError);
      expect(error.message).toBe(`tensor: ${found}; ${rule}`);
    }
  });

  it('hold numbers and bigints only', () => {
    for (const [x, found] of [
      [[1, 'a'], 'x has "a" at [1]'],
      [
        [
          [1, 2],
          [3, undefined],
        ],
        'x has undefined at [1, 1]',
      ],
      [[1, [2]], 'x has an array at [1]'],
      [[1, , 3], 'x has undefined at [1]'], // eslint-disable-line no-sparse-arrays
      [[true], 'x has true at [0]'],
      [[{ data: new Float32Array(1), shape: [1] }], 'x has an object at [0]'],
      [[null], 'x has null at [0]'],
    ] as const) {
      const error = refused(x);
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toBe(`tensor: ${found}; for float32 it must be a number or a bigint`);
    }
  });

  it('are at most 64 deep', () => {
    let x: unknown = 1;
    for (let depth = 0; depth < 64; ++depth) x = [x];
    expect(tensor(x as number[])).toMatchObject({ shape: Array(64).fill(1) });
    expect(toNested(tensor(x as number[]))).toEqual(x);
    expect(refused([x])).toBeInstanceOf(ShapeError);
    const endless: unknown[] = [];
    endless.push(endless);
    expect(refused(endless)).toBeInstanceOf(ShapeError);
    let many: unknown = [1, 1];
    for (let depth = 0; depth < 62; ++depth) many = [many, many];
    expect(refused(many)).toBeInstanceOf(OutOfMemoryError);
  });

  it('of a million elements are copied', () => {
    const x = Array.from({ length: 1000 }, (_, i) => Array.from({ length: 1000 }, (_, j) => i - j));
    const y = tensor(x);
    let right = 0;
    for (let i = 0; i < 1000; ++i)
      for (let j = 0; j < 1000; ++j) right += Number(y.data[i * 1000 + j] === i - j);
    expect(right).toBe(1e6);
    expect(toNested(y)).toEqual(x);
  });
});

it('numbers are tensors of rank 0', () => {
  expect(tensor(2.5)).toStrictEqual({ data: new Float32Array([2.5]), shape: [], dtype: 'float32' });
  expect(tensor(-3n)).toStrictEqual({ data: new BigInt64Array([-3n]), shape: [], dtype: 'int64' });
  expect(toNested(tensor(2.5))).toBe(2.5);
  expect(toNested(tensor(-3n))).toBe(-3n);
  expect(refused(2.5, { dtype: 'int8' }).message).toBe(
    'tensor: x is 2.5; for int8 it must be whole and from -128 to 127',
  );
});

describe('conversions', () => {
  const wide = fc.oneof(
    fc.double(),
    fc.float(),
    fc.double({ min: -70000, max: 70000, noNaN: true }),
    fc.double({ min: -1e-4, max: 1e-4, noNaN: true }),
    fc.integer({ min: -300, max: 300 }),
    fc.maxSafeInteger(),
    fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(Number),
    fc.constantFrom(0, -0, NaN, Infinity, -Infinity, 65519, 65520, 2 ** 31, -(2 ** 31), 2 ** 63),
  );

  it('of numbers are exact for every type, or are refused with the place', () => {
    fc.assert(
      fc.property(fc.array(wide), fc.constantFrom(...allTypes), (list, dtype) => {
        const expected = list.map((value) => converted(value, dtype));
        const bad = expected.indexOf(undefined);
        for (const x of [list, Float64Array.from(list)]) {
          if (bad < 0) {
            const y = tensor(x, { dtype });
            const signed = isFloat(dtype) ? expected : expected.map((n) => (n === 0 ? 0 : n));
            expect(elementsOf(y)).toEqual(signed);
          } else {
            const error = refused(x, { dtype });
            expect(error).toBeInstanceOf(ArgumentError);
            expect(error.message).toContain(
              ` at [${bad}]; for ${dtype} it must be whole and from `,
            );
          }
        }
      }),
      { ...runs, numRuns: 1000 },
    );
  });

  it.each(halves)(
    'to %s round every midpoint half to even, and its neighbours to nearest',
    (dtype) => {
      const { digits, least, most } = floats[dtype];
      const infinity = (most - least + 2) * 2 ** (digits - 1);
      const values: number[] = [];
      const expected: number[] = [];
      for (let code = 0; code < infinity; ++code) {
        const low = fromBits(dtype, code);
        const high = code + 1 < infinity ? fromBits(dtype, code + 1) : 2 ** (most + 1);
        const middle = (low + high) / 2;
        values.push(low, middle, middle * (1 - 2 ** -52), middle * (1 + 2 ** -51));
        expected.push(code, code + (code % 2), code, code + 1);
      }
      for (const x of [values, Float64Array.from(values)]) {
        const y = tensor(x, { dtype });
        expect(new Uint16Array(y.data.buffer)).toEqual(Uint16Array.from(expected));
      }
      const negative = tensor(
        values.map((n) => -n),
        { dtype },
      );
      expect(new Uint16Array(negative.data.buffer)).toEqual(
        Uint16Array.from(expected, (code) => code + 0x8000),
      );
    },
  );

  it.each(halves)('of every %s to floats are exact, and come back as they were', (dtype) => {
    const codes = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
    const x = { data: codes, shape: [2 ** 16], dtype };
    const wide = tensor(x, { dtype: 'float64' });
    const expected = Float64Array.from(codes, (code) => fromBits(dtype, code));
    expect(wide.data).toEqual(expected);
    expect(toNested(x)).toEqual(Array.from(expected));
    for (const from of [wide, tensor(x, { dtype: 'float32' })]) {
      const back = new Uint16Array(tensor(from, { dtype }).data.buffer);
      const isWrong = (code: number) => !Number.isNaN(expected[code]) && back[code] !== code;
      expect(codes.find(isWrong)).toBeUndefined();
    }
    const [other] = halves.filter((name) => name !== dtype) as [Float];
    const y = tensor(x, { dtype: other });
    expect(new Uint16Array(y.data.buffer)[0x3c01]).toBe(toBits(other, fromBits(dtype, 0x3c01)));
  });

  it('of bigints to floats are the nearest float64', () => {
    const big = fc.bigInt({ min: -(2n ** 1100n), max: 2n ** 1100n });
    const near = fc.record({ e: fc.nat(130), low: fc.bigInt({ min: -3n, max: 3n }) });
    const tie = near.map(({ e, low }) => (2n ** 24n + 1n) * 2n ** BigInt(e) + low);
    fc.assert(
      fc.property(fc.oneof(big, tie), fc.constantFrom(...floatTypes), (value, dtype) => {
        expect(elementsOf(tensor(value, { dtype }))).toEqual([round(dtype, Number(value))]);
      }),
      runs,
    );
  });

  it('of bigints to integers are refused out of range', () => {
    expect(tensor([1n, -1n], { dtype: 'int8' }).data).toEqual(new Int8Array([1, -1]));
    expect(tensor([2 ** 62, -1], { dtype: 'int64' }).data).toEqual(
      new BigInt64Array([2n ** 62n, -1n]),
    );
    expect(tensor([2n ** 64n - 1n], { dtype: 'uint64' }).data[0]).toBe(2n ** 64n - 1n);
    for (const [x, dtype] of [
      [[0n, 2n ** 63n], 'int64'],
      [[0, 2 ** 63], 'int64'],
      [[0, 2 ** 64], 'uint64'],
      [[0n, -1n], 'uint64'],
      [[0, 128n], 'int8'],
      [[0, -129], 'int8'],
      [[0, 256], 'uint8'],
      [[0, NaN], 'int32'],
      [[0, Infinity], 'uint64'],
      [[0, 2 ** 32], 'uint32'],
      [[0, 10n ** 1000n], 'int32'],
    ] as const) {
      const error = refused(x, { dtype });
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain(' at [1]; ');
    }
    expect(Object.is(tensor([-0], { dtype: 'int32' }).data[0], 0)).toBe(true);
    expect(Object.is(tensor([-0], { dtype: 'float16' }).data[0] || -0, -0)).toBe(true);
  });

  it('are needed for classes that the library lacks', () => {
    const clamped = new Uint8ClampedArray([0, 1, 255]);
    const y = tensor(clamped.subarray(1));
    expect(y).toStrictEqual({ data: new Uint8Array([1, 255]), shape: [2], dtype: 'uint8' });
    const x = { data: new Uint16Array([1, 65535]), shape: [2], dtype: 'uint16' };
    expect(tensor(x, { dtype: 'int32' }).data).toEqual(new Int32Array([1, 65535]));
    for (const dtype of [undefined, 'float16', 'bfloat16'])
      expect(refused(x, { dtype })).toBeInstanceOf(DTypeError);
    const bits = new Uint16Array([0x3f80]);
    expect(refused(bits)).toBeInstanceOf(DTypeError);
    expect(refused(bits, { dtype: 'float32' })).toBeInstanceOf(DTypeError);
    expect(tensor(bits, { dtype: 'bfloat16' }).data).toBe(bits);
  });

  it('to a type that is none are refused', () => {
    for (const dtype of ['float', 'toString', '__proto__', 7, null, ['float32'], Symbol('x')]) {
      const error = refused([1], { dtype });
      expect(error).toBeInstanceOf(DTypeError);
      expect(error).toMatchObject({ op: 'tensor', argument: 'dtype' });
    }
    expect(refused([1], { type: 'float32' })).toBeInstanceOf(ArgumentError);
    expect(refused([1], 'float32')).toBeInstanceOf(ArgumentError);
    const data = new Uint8Array(4);
    expect(refused({ data, shape: [4], dtype: 'float32' })).toBeInstanceOf(DTypeError);
  });
});

describe('tensors of this library', () => {
  it('are taken as they are', () => {
    const y = wg.gemm(tensor([[1, 2]]), tensor([[3], [4]]));
    expect(toNested(y)).toEqual([[11]]);
    expect(tensor(y).data).toBe(y.data);
    expect(tensor(y, { dtype: 'int8' })).toStrictEqual({
      data: new Int8Array([11]),
      shape: [1, 1],
      dtype: 'int8',
    });
  });

  it('in the heap are taken as they are, and can be views', () => {
    const x = wg.alloc('float64', [2, 3]);
    x.data.set([1, 2, 3, 4, 5, 6]);
    const y = tensor(x);
    expect(y).toStrictEqual({ data: x, shape: [2, 3], dtype: 'float64' });
    expect(toNested(x)).toEqual([[1, 2, 3], [4, 5, 6]]); // prettier-ignore
    expect(toNested(y)).toEqual([[1, 2, 3], [4, 5, 6]]); // prettier-ignore
    const column = { data: x, shape: [2], strides: [3], offset: 1 };
    expect(toNested(column)).toEqual([2, 5]);
    expect(tensor(column)).toStrictEqual({ ...column, dtype: 'float64' });
    const reversed = tensor({ ...column, strides: [-3], offset: 4 }, { dtype: 'bfloat16' });
    expect(toNested(reversed)).toEqual([5, 2]);
    const b = tensor([[1], [1], [1]], { dtype: 'float64' });
    expect(toNested(wg.gemm(y, b))).toEqual([[6], [15]]);
    x.dispose();
    expect(refused(x)).toBeInstanceOf(DisposedError);
    expect(refused(column)).toBeInstanceOf(DisposedError);
    expect(errorOf(() => toNested(x))).toBeInstanceOf(DisposedError);
    expect(errorOf(() => toNested(Object.create(x) as typeof x))).toBeInstanceOf(ArgumentError);
  });

  it('that are packed are refused', () => {
    const packed = wg.pack(tensor([[1]]), { op: 'gemm' });
    for (const x of [packed, { data: packed, shape: [1] }]) {
      expect(refused(x)).toBeInstanceOf(GemmError);
      expect(errorOf(() => toNested(x as never))).toBeInstanceOf(GemmError);
    }
    packed.dispose();
  });

  it.each(allTypes)('of %s become nested arrays', (dtype) => {
    const data = arrayFor(dtype, 24);
    const elements = valuesOf({ data, dtype });
    expect(toNested({ data, shape: [2, 3, 4], dtype })).toEqual(nestedOf([2, 3, 4], elements));
    expect(toNested({ data, shape: [], offset: 5, dtype })).toBe(elements[5]);
    expect(toNested({ data, shape: [3], strides: [0], offset: 5, dtype })).toEqual(
      Array(3).fill(elements[5]),
    );
  });

  it('are refused by toNested if memory has no room for the arrays', () => {
    const data = new Float32Array(1);
    for (const shape of [
      [2 ** 20, 2 ** 20],
      [2 ** 40, 0],
      [2 ** 50, 2 ** 50],
    ]) {
      const error = errorOf(() => toNested({ data, shape, strides: [0, 0] }));
      expect(error).toBeInstanceOf(OutOfMemoryError);
      expect(error).toMatchObject({ op: 'toNested', argument: 'y' });
    }
    expect(
      refused({ data, shape: [2 ** 30, 2 ** 30], strides: [0, 0] }, { dtype: 'int8' }),
    ).toBeInstanceOf(OutOfMemoryError);
  });
});

describe('objects of other libraries', () => {
  const data = new Float32Array([1, 2, 3, 4]);

  it('with dataSync are read once', () => {
    let calls = 0;
    const x = {
      shape: [2, 2],
      strides: [2],
      dtype: 'float32',
      data: () => Promise.resolve(data),
      dataSync() {
        expect(this).toBe(x);
        ++calls;
        return data;
      },
    };
    expect(tensor(x)).toStrictEqual({ data, shape: [2, 2], dtype: 'float32' });
    expect(calls).toBe(1);
    expect(refused({ ...x, dtype: 'complex64' })).toBeInstanceOf(DTypeError);
    expect(refused({ ...x, dtype: 'string' })).toBeInstanceOf(DTypeError);
    const late = {
      ...x,
      dataSync() {
        throw new Error('use data()');
      },
    };
    expect(refused(late).message).toBe(
      'tensor: x has no data at once (use data()); pass { data: await x.data(), shape: x.shape }',
    );
    const odd = {
      ...x,
      dataSync() {
        throw Object.create(null);
      },
    };
    expect(refused(odd).message).toContain('x has no data at once (an object); ');
  });

  it('with to2DArray have rows and columns', () => {
    const x = { rows: 2, columns: 2, to2DArray: () => [[1, 2], [3, 4.5]] }; // prettier-ignore
    const y = tensor(x);
    expect(y).toStrictEqual({
      data: new Float64Array([1, 2, 3, 4.5]),
      shape: [2, 2],
      dtype: 'float64',
    });
    expect(refused({ ...x, rows: 3 })).toBeInstanceOf(ShapeError);
    expect(refused({ ...x, columns: -1 })).toBeInstanceOf(ShapeError);
    expect(refused({ ...x, to2DArray: () => 'x' })).toBeInstanceOf(ShapeError);
  });

  it('with isMatrix are nested arrays', () => {
    const matrix = (elements: unknown) => ({
      isMatrix: true,
      _data: elements,
      toArray() {
        return (this as unknown as { _data: unknown })._data;
      },
    });
    const numbers = [[1, 2, 3], [4, 5, 6]]; // prettier-ignore
    for (const dtype of [undefined, 'float64', 'int8'] as const)
      expect(tensor(matrix(numbers), { dtype })).toStrictEqual(tensor(numbers, { dtype }));
    expect(tensor(matrix([[1n, 2n]]))).toStrictEqual(tensor([[1n, 2n]]));
    expect(tensor(matrix([1, 2]))).toStrictEqual(tensor([1, 2]));
    expect(refused(matrix([[{ re: 1, im: 2 }]]))).toMatchObject({ code: 'ARGUMENT' });
    expect(refused(matrix([[1], [2, 3]]))).toBeInstanceOf(ShapeError);
    expect(refused({ ...matrix(numbers), isMatrix: false })).toBeInstanceOf(GemmError);
  });

  it('that are promises must be awaited', () => {
    const says = /is a promise, which must be awaited/;
    expect(refused(Promise.resolve(tensor([1]))).message).toMatch(says);
    expect(errorOf(() => toNested(Promise.resolve(tensor([1])) as never)).message).toMatch(says);
    expect(errorOf(() => quantize(Promise.resolve(tensor([1])) as never)).message).toMatch(says);
  });

  it('that are none are refused', () => {
    for (const x of [
      ...[undefined, null, 'abc', true, Symbol('x'), () => 1, {}, new Map(), new Date()],
      ...[Promise.resolve(1), new DataView(new ArrayBuffer(8)), new ArrayBuffer(8), /x/],
      ...[{ shape: [1] }, { data }, { data: 'x', shape: [1] }, { data: {}, shape: [1] }],
      ...[
        { data: null, shape: [1] },
        { data: 5, shape: [1] },
        { data: [1, 2], shape: [1] },
      ],
      ...[{ data: new DataView(new ArrayBuffer(8)), shape: [8] }],
      ...[
        { data: { get: () => 1 }, shape: [1] },
        { data: [[1, 2]], shape: [1] },
      ],
      ...[
        { data, shape: [4], stride: 'x' },
        { data, shape: [2, 2], byteOffset: 4 },
      ],
    ]) {
      expect(refused(x)).toMatchObject({ op: 'tensor', argument: 'x' });
      expect(errorOf(() => toNested(x as never))).toMatchObject({ op: 'toNested', argument: 'y' });
    }
    for (const y of [[1, 2], 5, 5n, data, new Int16Array(2)])
      expect(errorOf(() => toNested(y as never))).toBeInstanceOf(GemmError);
    for (const array of [[1], new Int16Array(1), new Uint8ClampedArray(1), new Uint16Array(1)])
      expect(errorOf(() => toNested({ data: array, shape: [1] } as never))).toBeInstanceOf(
        DTypeError,
      );
  });
});

describe('hostile values', () => {
  const own = (error: unknown) => error instanceof GemmError || (error as Error).message === 'mine';

  it('give an error or a right result', () => {
    const { proxy, revoke } = Proxy.revocable([1], {});
    revoke();
    const lying = (length: unknown) =>
      new Proxy([1, 2], {
        get: (list, key) => (key === 'length' ? length : (Reflect.get(list, key) as unknown)),
      });
    let reads = 0;
    const growing = new Proxy([1, 2], {
      get: (list, key) => (key === 'length' ? ++reads : (Reflect.get(list, key) as unknown)),
    });
    for (const x of [
      ...[proxy, [proxy], { data: proxy, shape: [1] }, { data: [1], shape: proxy }],
      ...[lying(-1), lying(NaN), lying('x'), lying(2 ** 60), lying(3), [lying(0.5)], [growing]],
      { data: [1], shape: [1], strides: lying(2 ** 40) },
      { data: { length: { valueOf: () => 9 }, get: () => 'x' }, shape: [1] },
      [new Proxy(new Float32Array(2), {})],
      { data: new Proxy(new Float32Array(2), {}), shape: [2] },
      new Proxy(
        {},
        {
          get() {
            throw new Error('mine');
          },
          has: () => true,
        },
      ),
      new Proxy({}, { get: () => () => 1, has: () => true }),
      ...[new Proxy(new Float32Array(2), {}), Object.create(Float32Array.prototype) as object],
      { dataSync: 'a string', shape: [1] },
    ]) {
      for (const call of [() => tensor(x as TensorSource), () => toNested(x as never)]) {
        let error;
        try {
          call();
        } catch (thrown) {
          error = thrown;
        }
        expect(own(error)).toBe(true);
      }
    }
  });

  it('that detach or resize an array while it is read are refused', () => {
    const detach = (array: Float32Array) =>
      structuredClone(array, { transfer: [array.buffer as ArrayBuffer] });
    const data = new Float32Array(4);
    const x = {
      data,
      get shape() {
        detach(data);
        return [4];
      },
    };
    expect(refused(x)).toBeInstanceOf(ArgumentError);
    expect(refused(data)).toBeInstanceOf(ArgumentError);
    expect(errorOf(() => toNested({ data, shape: [0] }))).toBeInstanceOf(ArgumentError);
    const row = new Float32Array(2);
    const first = new Proxy([1, 2], {
      get(list, key) {
        if (key === '1' && row.length > 0) detach(row);
        return Reflect.get(list, key) as unknown;
      },
    });
    expect(refused([first, row])).toBeInstanceOf(ShapeError);
    const shrinking = [1, 2, 3];
    const list = {
      data: new Proxy(shrinking, {
        get(target, key) {
          if (key === '0') target.length = 1;
          return Reflect.get(target, key) as unknown;
        },
      }),
      shape: [3],
    };
    expect(refused(list)).toBeInstanceOf(ArgumentError);
  });

  it('do not come from Object.prototype', () => {
    const base = Object.prototype as unknown as Record<string, unknown>;
    const names = ['offset', 'strides', 'stride', 'dtype', 'dataSync', 'values', 'storage'];
    names.push('to2DArray', 'rows', 'data', 'order', 'float16', 'float32', 'get');
    const data = new Float32Array([1, 2, 3, 4]);
    for (const name of names) {
      let results;
      Object.defineProperty(base, name, { value: () => 1, configurable: true, writable: true });
      try {
        results = [
          tensor({ data, shape: [2, 2] }),
          tensor(tensor(data), { dtype: 'float32' }),
          tensor([Array.from(data)]),
          toNested({ data, shape: [2, 2] }),
        ];
      } finally {
        delete base[name];
      }
      expect(results).toEqual([
        { data, shape: [2, 2], dtype: 'float32' },
        { data, shape: [4], dtype: 'float32' },
        { data, shape: [1, 4], dtype: 'float32' },
        [[1, 2], [3, 4]], // prettier-ignore
      ]);
    }
  });
});

it('types follow from dtype or the array', () => {
  expectTypeOf(tensor([[1, 2]])).toEqualTypeOf<TensorInput<Float32Array>>();
  expectTypeOf(tensor(1)).toEqualTypeOf<TensorInput<Float32Array>>();
  expectTypeOf(tensor([1n])).toEqualTypeOf<TensorInput<BigInt64Array>>();
  expectTypeOf(tensor([[1]], { dtype: 'int8' })).toEqualTypeOf<TensorInput<Int8Array>>();
  expectTypeOf(tensor(new Float64Array(1)).data).toExtend<Float64Array>();
  expectTypeOf(tensor([new Float64Array(1)]).data).toExtend<Float64Array>();
  const x = { data: new Int32Array(1), shape: [1], stride: [1], offset: 0 };
  expectTypeOf(tensor(x).data).toExtend<Int32Array>();
  const foreign = { data: [1] as unknown, shape: [1], dtype: 'float64' } as const;
  expectTypeOf(tensor(foreign)).toEqualTypeOf<TensorInput<Float64Array>>();
  const y = { data: new Float32Array(4), shape: [2, 2] } as const;
  expectTypeOf(toNested(y)).toEqualTypeOf<number[][]>();
  const big = { data: new BigInt64Array(4), shape: [2, 2] } as const;
  expectTypeOf(toNested(big)).toEqualTypeOf<bigint[][]>();
});

it('huge axes next to a size of 0 end at once', () => {
  const shape = [2 ** 50, 0];
  expect(tensor({ data: new Float32Array(0), shape }, { dtype: 'float64' }).shape).toEqual(shape);
  expect(tensor({ data: [], shape } as never).data).toEqual(new Float32Array(0));
});
