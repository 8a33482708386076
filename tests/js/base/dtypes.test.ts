/**
 * The types of elements: their arrays, the ends of their ranges, how they are rounded, and the
 * factors that they take.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DType, type Gemm, type GemmOptions, type TensorInput } from 'wgemm';
import {
  arrayClasses,
  dtypes,
  Float16,
  type Float,
  floats,
  floatTypes,
  fromBits,
  integerTypes,
  round,
  toBits,
  valuesOf,
} from '../support/dtypes.js';
import { expectGemm, Random, tensor } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

type Value = number | bigint;

/** Y of a call with one element in each tensor. */
function y(
  dtype: DType,
  a: Value,
  b: Value,
  c: Value | null = null,
  options: GemmOptions = {},
): Value {
  return valuesOf(
    wg.gemm(tensor(dtype, [1, 1], [a]), tensor(dtype, [1, 1], [b]), c, options),
  )[0] as Value;
}

describe('arrays', () => {
  it.each(dtypes)('of %s come back as they are made by alloc', (dtype) => {
    using heap = wg.alloc(dtype, [2, 2]);
    expect(heap.data.constructor).toBe(arrayClasses[dtype]);
    const result = wg.gemm(heap, heap);
    expect(result.data.constructor).toBe(arrayClasses[dtype]);
    expect(result).toMatchObject({ dtype, shape: [2, 2] });
  });

  it('of float16 may be bits, each tensor in its own way', () => {
    const bits = (...numbers: number[]) =>
      Uint16Array.from(numbers, (number) => toBits('float16', number));
    const shape = [1, 2];
    const a = { data: bits(1.5, -2), shape, dtype: 'float16' } as const;
    const b = tensor('float16', [2, 2], [1, 2, 3, 4]);
    expect(valuesOf(expectGemm(wg, a, b, a))).toEqual([-3, -7]);
    const out = { data: bits(0, 0), shape, dtype: 'float16' } as const;
    expectGemm(wg, tensor('float16', shape, [1.5, -2]), b, tensor('float16', shape, [1.5, -2]), {
      out,
    });
    expect(out.data).toEqual(bits(-3, -7));
  });

  it('are known by their class in any realm, by no property of theirs', () => {
    const data = Object.defineProperty(new Float64Array(1).fill(3), Symbol.toStringTag, {
      value: 'Float32Array',
    });
    expect(wg.gemm({ data, shape: [1, 1] }, { data, shape: [1, 1] })).toMatchObject({
      dtype: 'float64',
      data: Float64Array.of(9),
    });
  });
});

describe('integers', () => {
  const [i32, u32, i64, u64] = [2 ** 31, 2 ** 32, 2n ** 63n, 2n ** 64n];
  const cases: [
    dtype: DType,
    what: string,
    a: Value,
    b: Value,
    c: Value | null,
    options: GemmOptions,
    wanted: Value,
  ][] = [
    ['int32', 'wraps at the top', i32 - 1, 2, null, {}, -2],
    ['int32', 'wraps at the bottom', -i32, -1, null, {}, -i32],
    ['int32', 'wraps when C is added', 1, 1, i32 - 1, {}, -i32],
    ['int32', 'takes the largest whole factors', 3, 1, 1, { alpha: 2 ** 53, beta: 7 }, 7],
    [
      'int32',
      'takes whole factors modulo 2^32',
      3,
      1,
      1,
      { alpha: 2 ** 53 - 1, beta: -(2 ** 53) },
      -3,
    ],
    ['int32', 'keeps alpha in float64', 10, 1, null, { alpha: 0.1 }, 1],
    [
      'int32',
      'keeps whole factors beyond 2^24',
      2 ** 24 + 1,
      1,
      null,
      { alpha: 2 ** 24 + 1 },
      Math.imul(2 ** 24 + 1, 2 ** 24 + 1),
    ],
    ['int32', 'is cut toward zero from above', 3, 1, null, { alpha: 0.5 }, 1],
    ['int32', 'is cut toward zero from below', -3, 1, null, { alpha: 0.5 }, -1],
    ['int32', 'is cut once, behind the sum', 1, 1, 7, { alpha: 0.5, beta: 0.25 }, 2],
    ['int32', 'saturates at the top', i32 - 1, 1, null, { alpha: 1.5 }, i32 - 1],
    ['int32', 'saturates at the bottom', -i32, 1, null, { alpha: 1.5 }, -i32],
    ['int32', 'wraps the product before the fraction', i32 - 1, 2, null, { alpha: 0.5 }, -1],
    ['uint32', 'wraps at the top', u32 - 1, u32 - 1, null, {}, 1],
    ['uint32', 'wraps below 0', 1, 1, null, { alpha: -1 }, u32 - 1],
    ['uint32', 'takes C up to the top', 0, 0, u32 - 1, {}, u32 - 1],
    ['uint32', 'saturates at 0', 1, 1, null, { alpha: -0.5 }, 0],
    ['uint32', 'saturates at the top', u32 - 1, 1, null, { alpha: 1.5 }, u32 - 1],
    ['uint32', 'is not an int32 next to a fraction', u32 - 2, 1, null, { alpha: 0.5 }, u32 / 2 - 1],
    [
      'uint32',
      'is not an int32 as C next to a fraction',
      0,
      1,
      u32 - 2,
      { beta: 0.5 },
      u32 / 2 - 1,
    ],
    ['int64', 'wraps at the top', i64 - 1n, 2, null, {}, -2n],
    [
      'int64',
      'multiplies all bits',
      2n ** 32n + 3n,
      2n ** 31n + 5n,
      null,
      {},
      (2n ** 32n + 3n) * (2n ** 31n + 5n) - u64 / 2n - i64,
    ],
    ['int64', 'takes C as a bigint to the bit', 0, 0, i64 - 1n, {}, i64 - 1n],
    ['int64', 'takes the smallest C', 0, 0, -i64, {}, -i64],
    ['int64', 'takes the smallest C as a number', 0, 0, -(2 ** 63), {}, -i64],
    [
      'int64',
      'takes alpha as a bigint to the bit',
      3,
      1,
      null,
      { alpha: 2n ** 53n + 1n },
      3n * (2n ** 53n + 1n),
    ],
    ['int64', 'takes a bigint modulo 2^64', 3, 1, 5, { alpha: u64 + 2n, beta: -u64 - 1n }, 1n],
    ['int64', 'takes a bigint of many digits', 3, 1, null, { alpha: 2n ** 200n - 1n }, -3n],
    ['int64', 'takes a bigint next to a whole number', 3, 1, 5, { alpha: 2n, beta: -1 }, 1n],
    ['int64', 'adds nothing where beta is 2^64', 3, 1, 5, { beta: u64 }, 3n],
    [
      'int64',
      'goes through float64 next to a fraction',
      2n ** 53n + 1n,
      1,
      1,
      { beta: 0.5 },
      2n ** 53n,
    ],
    ['int64', 'is cut toward zero', -7, 1, null, { alpha: 0.5 }, -3n],
    ['int64', 'saturates at the top', i64 - 1n, 1, null, { alpha: 1.5 }, i64 - 1n],
    ['int64', 'saturates where float64 rounds up to 2^63', i64 - 1n, 1, 0, { beta: 0.5 }, i64 - 1n],
    ['int64', 'saturates at the bottom', -i64, 1, null, { alpha: 1.5 }, -i64],
    ['uint64', 'wraps at the top', u64 - 1n, u64 - 1n, null, {}, 1n],
    ['uint64', 'takes C as a bigint to the top', 0, 0, u64 - 1n, {}, u64 - 1n],
    ['uint64', 'takes C as a number above 2^63', 0, 0, 2 ** 63, {}, i64],
    ['uint64', 'takes a negative bigint as alpha', 1, 1, null, { alpha: -1n }, u64 - 1n],
    ['uint64', 'takes alpha above 2^63', 1, 3, null, { alpha: i64 + 1n }, i64 + 3n],
    ['uint64', 'is not an int64 next to a fraction', i64, 1, null, { alpha: 1.5 }, i64 + i64 / 2n],
    ['uint64', 'is not an int64 as C next to a fraction', 0, 1, i64, { beta: 1.5 }, i64 + i64 / 2n],
    ['uint64', 'saturates at the top', u64 - 1n, 1, null, { alpha: 1.5 }, u64 - 1n],
    ['uint64', 'saturates at 0', 1, 1, null, { alpha: -1.5 }, 0n],
  ];
  it.each(cases)('%s %s', (dtype, _, a, b, c, options, wanted) => {
    expect(y(dtype, a, b, c, options)).toBe(wanted);
    // The same in the middle of vectors.
    const row = tensor(dtype, [1, 19], Array<Value>(19).fill(b));
    const column = tensor(dtype, [3, 1], [a, a, a]);
    expect(valuesOf(expectGemm(wg, column, row, c, options))).toEqual(Array(57).fill(wanted));
  });

  it.each(integerTypes)('of %s: a fraction of nothing does not count', (dtype) => {
    // Otherwise the result would be truncated, saturated or rounded.
    const large = dtype.endsWith('32') ? 2 ** 31 - 1 : 2n ** 63n - 1n;
    const [empty, none] = [tensor(dtype, [1, 0], []), tensor(dtype, [0, 1], [])];
    const wanted = BigInt.asUintN(dtype.endsWith('32') ? 32 : 64, BigInt(large) * 2n);
    const unsigned = (value: Value) =>
      BigInt.asUintN(dtype.endsWith('32') ? 32 : 64, BigInt(value));
    expect(unsigned(y(dtype, large, 2, null, { beta: 0.5 })), 'beta without C').toBe(wanted);
    expect(
      unsigned(valuesOf(wg.gemm(empty, none, large, { alpha: 0.5, beta: 2 }))[0] as Value),
      'alpha if K is 0',
    ).toBe(wanted);
    expect(unsigned(y(dtype, large, 2, 7, { beta: 0 })), 'beta 0').toBe(wanted);
  });
});

describe('floating point', () => {
  const smallest = (dtype: Float) => 2 ** (floats[dtype].least - floats[dtype].digits + 1);
  const largest = (dtype: Float) => (2 - 2 ** (1 - floats[dtype].digits)) * 2 ** floats[dtype].most;

  it.each(floatTypes)(
    'of %s keeps subnormal numbers and the largest, and passes to infinity behind them',
    (dtype) => {
      for (const sign of [1, -1]) {
        for (const value of [
          smallest(dtype),
          3 * smallest(dtype),
          2 ** floats[dtype].least,
          largest(dtype),
        ]) {
          expect(y(dtype, sign * value, 1)).toBe(sign * value);
          expect(y(dtype, 0, 0, sign * value)).toBe(sign * value);
        }
        expect(y(dtype, largest(dtype), 2 * sign)).toBe(sign * Infinity);
        expect(y(dtype, largest(dtype), 1, null, { alpha: 1.5 * sign })).toBe(sign * Infinity);
        expect(y(dtype, sign * 2 ** floats[dtype].least, 0.5), 'a subnormal product').toBe(
          (sign * 2 ** floats[dtype].least) / 2,
        );
      }
    },
  );

  it.each(floatTypes)('of %s rounds C as a number once', (dtype) => {
    const digits = floats[dtype].digits;
    const [half, more] = [2 ** -digits, 2 ** -45];
    // Just above and below the middle of two numbers. Rounded to float32 first, both would be the
    // middle.
    for (const c of [
      0.1,
      1 + half,
      1 + 3 * half,
      1 + half + more,
      1 + 3 * half - more,
      largest(dtype) * 4,
      smallest(dtype) / 2,
      NaN,
    ]) {
      expect(y(dtype, 0, 0, c), String(c)).toBe(round(dtype, c));
    }
  });

  it.each(floatTypes)(
    'of %s takes alpha and beta in the precision that it is computed in',
    (dtype) => {
      const kept = dtype === 'float64' ? 0.1 : Math.fround(0.1);
      expect(y(dtype, 1, 1, null, { alpha: 0.1 })).toBe(round(dtype, kept));
      expect(y(dtype, 0, 0, 1, { beta: 0.1 })).toBe(round(dtype, kept));
      // 10 * 0.1 - 1 shows which 0.1 it was.
      expect(y(dtype, 10, 1, -1, { alpha: 0.1 })).toBe(
        round(dtype, dtype === 'float64' ? 0 : Math.fround(10 * kept) - 1),
      );
      // Rounded to float32 this beta is 0, and C is not read.
      expect(y(dtype, 1, 1, NaN, { beta: 1e-60 })).toBe(dtype === 'float64' ? NaN : 1);
    },
  );

  it('of float64 keeps 53 bits', () => {
    expect(y('float64', 1 + 2 ** -52, 1, 2 ** -52)).toBe(1 + 2 ** -51);
    expect(y('float64', 2 ** 53, 1, 1, { beta: 2 })).toBe(2 ** 53 + 2);
  });

  it.each(['float16', 'bfloat16'] as const)('of %s sums in float32', (dtype) => {
    // 3000 times 1 and 1/2: in the type itself the sum would stop where a half is no longer seen.
    const a = tensor(dtype, [1, 3000], Array<number>(3000).fill(0.5));
    const b = tensor(dtype, [3000, 1], Array<number>(3000).fill(1));
    expect(valuesOf(wg.gemm(a, b))).toEqual([round(dtype, 1500)]);
    // Products and sums beyond float16, whose result is within it.
    expect(y('float16', 60000, 60000, null, { alpha: 2 ** -20 })).toBe(
      round('float16', round('float16', 60000) ** 2 / 2 ** 20),
    );
    expect(y('float16', 60000, 2, -60000)).toBe(round('float16', 60000));
  });
});

describe.each(['float16', 'bfloat16'] as const)('every value of %s', (dtype) => {
  const all = Uint16Array.from({ length: 65536 }, (_, bits) => bits);
  const one = tensor(dtype, [1, 1], [1]);
  const values = Array.from(all, (bits) => fromBits(dtype, bits));

  it('is encoded and decoded by this test as by definition', () => {
    const isWrong = (bits: number) => {
      const value = values[bits] as number;
      return !Number.isNaN(value) && toBits(dtype, value) !== bits;
    };
    expect(all.find(isWrong)).toBeUndefined();
    if (Float16 && dtype === 'float16')
      expect(values).toEqual(Array.from(new Float16(all.buffer) as Float32Array));
    if (dtype === 'bfloat16')
      expect(values).toEqual(
        Array.from(new Float32Array(Uint32Array.from(all, (bits) => bits * 65536).buffer)),
      );
  });

  it('comes through as A, as B and as C', () => {
    const column: TensorInput = { data: all, shape: [65536, 1], dtype };
    const row: TensorInput = { data: all, shape: [1, 65536], dtype };
    // The sign of a zero may get lost, since sums begin with one.
    const wanted = values.map((value) => value + 0);
    const found = (y: ReturnType<typeof wg.gemm>) => valuesOf(y).map((value) => Number(value) + 0);
    expect(found(wg.gemm(column, one))).toEqual(wanted);
    expect(found(wg.gemm(one, row))).toEqual(wanted);
    expect(
      found(wg.gemm(tensor(dtype, [65536, 0], []), tensor(dtype, [0, 1], []), column)),
    ).toEqual(wanted);
  });

  // As a row for the code that rounds several at once, and as a column for the code that rounds one.
  it.each(['row', 'column'])(
    'is rounded to once, to nearest even, from between it and the next, in a %s',
    (kind) => {
      // x + h, where h is half of the distance to the next number or close to that: exact in
      // float32.
      const { digits, least } = floats[dtype];
      const finite = values.filter(
        (x) => Math.abs(x) >= 2 ** (least + 2 * digits) && Number.isFinite(x),
      );
      const halves = finite.map(
        (x) => Math.sign(x) * 2 ** (Math.floor(Math.log2(Math.abs(x))) - digits),
      );
      expect(finite.length).toBeGreaterThan(10000);
      const shape = kind === 'row' ? [1, finite.length] : [finite.length, 1];
      const x = tensor(dtype, shape, finite);
      for (const near of [1, 1 + 2 ** (1 - digits), 1 - 2 ** -digits]) {
        const h = halves.map((half) => half * near);
        const c = tensor(dtype, shape, h);
        const wanted = finite.map((x, i) => round(dtype, x + (h[i] as number)));
        expect(
          valuesOf(kind === 'row' ? wg.gemm(one, x, c) : wg.gemm(x, one, c)),
          `${near} of a half`,
        ).toEqual(wanted);
      }
    },
  );

  it.each(['row', 'column'])('is rounded to once among subnormal numbers, in a %s', (kind) => {
    const { digits, least } = floats[dtype];
    const unit = 2 ** (least - digits + 1);
    const count = 2 ** digits;
    // 0, 1/4, 1/2 and so on of the smallest number, by way of alpha.
    const shape = kind === 'row' ? [1, count] : [count, 1];
    const x = tensor(
      dtype,
      shape,
      Array.from({ length: count }, (_, i) => i * unit * 2 ** 10),
    );
    const wanted = valuesOf(x).map((value) => round(dtype, Number(value) * 2 ** -12));
    expect(
      valuesOf(
        kind === 'row'
          ? wg.gemm(one, x, null, { alpha: 2 ** -12 })
          : wg.gemm(x, one, null, { alpha: 2 ** -12 }),
      ),
    ).toEqual(wanted);
    expect(new Set(wanted).size).toBe(count / 4 + 1);
  });
});

it('the reference rounds to nearest even', () => {
  const random = new Random(1);
  for (let i = 0; i < 100_000; ++i) {
    const value = (random.next() - 0.5) * 2 ** Math.floor(random.next() * 300 - 160);
    if (round('float32', value) !== Math.fround(value))
      expect.fail(`round() of ${value} is not Math.fround()`);
  }
  for (const dtype of floatTypes) {
    const { digits } = floats[dtype];
    if (dtype === 'float64') continue;
    expect([1, 3].map((odd) => round(dtype, 1 + odd * 2 ** -digits))).toEqual([
      1,
      1 + 2 ** (2 - digits),
    ]);
  }
});
