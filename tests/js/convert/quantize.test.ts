/**
 * Conversions between float32 and the integers of QGemm, compared with the definitions of ONNX,
 * which this file repeats.
 */
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import {
  ArgumentError,
  createGemm,
  dequantize,
  DisposedError,
  DTypeError,
  type Gemm,
  GemmError,
  OutOfMemoryError,
  quantize,
  quantizeBias,
  type Quantized,
  type QuantizedPerAxis,
  type QuantizedPerTensor,
  ShapeError,
  type TensorInput,
} from 'wgemm';
import { count, float32, placeNames, places, Random } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

const random = new Random(8);
const types = ['int8', 'uint8'] as const;
const classes = { int8: Int8Array, uint8: Uint8Array };
const ranges = { int8: [-128, 127], uint8: [0, 255] } as const;
const f = Math.fround;

/** Half to even, from its definition. */
function halfToEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest === 0.5 ? below + Math.abs(below % 2) : rest < 0.5 ? below : below + 1;
}
const clamp = (value: number, [least, most]: readonly [number, number]) =>
  Math.min(Math.max(value, least), most);

interface Wanted {
  dtype: (typeof types)[number];
  symmetric: boolean;
}

/** QuantizeLinear of one element. */
function element(value: number, scale: number, zero: number, { dtype, symmetric }: Wanted): number {
  const [least, most] = ranges[dtype];
  const quotient = f(value / scale);
  const rounded = Number.isFinite(quotient) ? halfToEven(quotient) : quotient;
  return clamp(rounded + zero, [symmetric ? least + 1 : least, most]);
}

/**
 * Scale and zero point of elements: the body of the function DynamicQuantizeLinear, each step in
 * float32.
 */
function parameters(values: number[], { dtype, symmetric }: Wanted): [scale: number, zero: number] {
  const [min, max] = [Math.min(0, ...values), Math.max(0, ...values)];
  if (symmetric) return [f(Math.max(max, -min) / f(127)) || 1, dtype === 'int8' ? 0 : 128];
  const scale = f(f(max - min) / f(255)) || 1;
  return [scale, halfToEven(clamp(f(ranges[dtype][0] - f(min / scale)), ranges[dtype]))];
}

/** The index along an axis of each element. */
function indices(shape: readonly number[], axis: number): number[] {
  const inner = count(shape.slice(axis + 1));
  return Array.from(
    { length: count(shape) },
    (_, i) => Math.floor(i / inner) % (shape[axis] as number),
  );
}

/** Elements of many magnitudes, some of them exact halves of a scale that is a power of two. */
function sample(
  shape: readonly number[],
  magnitude = 1,
): { data: Float32Array; shape: readonly number[] } {
  return {
    data: Float32Array.from({ length: count(shape) }, () => (random.next() * 2 - 0.7) * magnitude),
    shape,
  };
}

const all = types.flatMap((dtype) => [false, true].map((symmetric) => ({ dtype, symmetric })));
describe('quantize, by a scale that is given', () => {
  it('rounds halves to even', () => {
    const x = float32([2, 4], -3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5);
    expect([...quantize(x, { dtype: 'int8', scale: 1 }).data]).toEqual([-4, -2, -2, 0, 0, 2, 2, 4]);
    expect([...quantize(x, { dtype: 'int8', scale: 1, zeroPoint: 3 }).data]).toEqual([
      -1, 1, 1, 3, 3, 5, 5, 7,
    ]);
    expect([...quantize(x, { scale: 1, zeroPoint: 3 }).data]).toEqual([0, 1, 1, 3, 3, 5, 5, 7]);
    expect([...quantize(x, { scale: 0.25, zeroPoint: 100 }).data]).toEqual([
      86, 90, 94, 98, 102, 106, 110, 114,
    ]);
  });

  it('rounds the quotient to float32 before', () => {
    // 0.05 / 0.02 is a little more than 2.5 as float32 numbers are, 0.07 / 0.004 a little less than
    // 17.5.
    expect([...quantize(float32([1], 0.05), { scale: 0.02 }).data]).toEqual([2]);
    expect([...quantize(float32([1], 0.07), { scale: 0.004 }).data]).toEqual([18]);
  });

  it.each([
    { options: { dtype: 'int8' }, wanted: [-128, -128, -128, -127, 126, 127, 127, 127] },
    { options: { dtype: 'uint8', zeroPoint: 128 }, wanted: [0, 0, 0, 1, 254, 255, 255, 255] },
    { options: { dtype: 'uint8' }, wanted: [0, 0, 0, 0, 126, 127, 128, 255] },
    { options: { symmetric: true }, wanted: [-127, -127, -127, -127, 126, 127, 127, 127] },
    { options: { dtype: 'uint8', symmetric: true }, wanted: [1, 1, 1, 1, 254, 255, 255, 255] },
    {
      options: { dtype: 'int8', zeroPoint: -128 },
      wanted: [-128, -128, -128, -128, -2, -1, 0, 127],
    },
  ] as const)('saturates at both ends: $options', ({ options, wanted }) => {
    const x = float32([8], -Infinity, -3e38, -128, -127, 126, 127, 128, Infinity);
    expect([...quantize(x, { scale: 1, ...options }).data]).toEqual(wanted);
    // The quotient itself exceeds float32.
    expect([...quantize(float32([2], -3e38, 3e38), { scale: 1e-30, dtype: 'int8' }).data]).toEqual([
      -128, 127,
    ]);
  });

  it('takes for float32 what rounds to it', () => {
    expect(quantize(float32([1], 3e38), { scale: 3.4028235e38 })).toMatchObject({
      data: Uint8Array.of(1),
      scale: f(3.4028235e38),
    });
  });

  it('keeps a scale as float32, and makes zero points if there are none', () => {
    const x = float32([2, 2], 1, 2, 3, 4);
    expect(quantize(x, { scale: 0.1 })).toEqual({
      data: Uint8Array.of(10, 20, 30, 40),
      shape: [2, 2],
      dtype: 'uint8',
      scale: f(0.1),
      zeroPoint: 0,
    });
    expect(quantize(x, { scale: 0.1, symmetric: true })).toMatchObject({
      dtype: 'int8',
      zeroPoint: 0,
    });
    expect(quantize(x, { scale: 0.1, symmetric: true, dtype: 'uint8' })).toMatchObject({
      data: Uint8Array.of(138, 148, 158, 168),
      zeroPoint: 128,
    });
    expect(quantize(x, { scale: 1, axis: 1 })).toEqual({
      data: Uint8Array.of(1, 2, 3, 4),
      shape: [2, 2],
      dtype: 'uint8',
      scale: Float32Array.of(1, 1),
      zeroPoint: Uint8Array.of(0, 0),
      axis: 1,
    });
  });

  it('takes one for each index of an axis, and returns copies', () => {
    const x = float32([2, 3], 1, 2, 3, 4, 5, 6);
    const scale = Float32Array.of(1, 0.5, 2);
    const zeroPoint = Int8Array.of(10, -20, 0);
    const q = quantize(x, { dtype: 'int8', axis: -1, scale, zeroPoint });
    expect(q).toEqual({
      data: Int8Array.of(11, -16, 2, 14, -10, 3),
      shape: [2, 3],
      dtype: 'int8',
      scale,
      zeroPoint,
      axis: 1,
    });
    scale.fill(7);
    zeroPoint.fill(7);
    expect([...q.scale, ...q.zeroPoint]).toEqual([1, 0.5, 2, 10, -20, 0]);
    expect([...quantize(x, { axis: 0, scale: Float32Array.of(1, 2), zeroPoint: 1 }).data]).toEqual([
      2, 3, 4, 3, 3, 4,
    ]);
  });

  it.each(all)('agrees with what the data gave: $dtype, symmetric $symmetric', (wanted) => {
    const x = sample([5, 7]);
    for (const axis of [undefined, 0, 1]) {
      const q = quantize(x, { ...wanted, axis });
      expect(quantize(x, { ...wanted, axis, scale: q.scale, zeroPoint: q.zeroPoint })).toEqual(q);
    }
  });
});

describe('quantize, by the data', () => {
  describe.each(all)('$dtype, symmetric $symmetric', (wanted) => {
    it.each([undefined, 0, 1, 2, -1, -2, -3])('as the definition says: axis %s', (axis) => {
      for (const magnitude of [1e-30, 0.01, 1, 128, 1e30]) {
        const shape = [4, 5, 6];
        const x = sample(shape, magnitude);
        const at = axis === undefined ? x.data : indices(shape, axis < 0 ? axis + 3 : axis);
        const groups = axis === undefined ? 1 : (shape.at(axis) as number);
        const groupOf = (i: number) => (axis === undefined ? 0 : (at[i] as number));
        // So that they differ.
        x.data.forEach(
          (value, i) => (x.data[i] = value * 2 ** groupOf(i) * (groupOf(i) % 3 === 1 ? -1 : 1)),
        );
        const each = Array.from({ length: groups }, (_, group) =>
          parameters(
            [...x.data].filter((_, i) => groupOf(i) === group),
            wanted,
          ),
        );
        const of = (i: number) => each[groupOf(i)] as [number, number];

        const q = quantize(x, { ...wanted, axis });
        expect([...q.data]).toEqual(
          Array.from(x.data, (value, i) => element(value, ...of(i), wanted)),
        );
        expect(q.data).toBeInstanceOf(classes[wanted.dtype]);
        expect(q).toMatchObject({ shape, dtype: wanted.dtype });
        if (axis === undefined) {
          expect(q).not.toHaveProperty('axis');
          expect([q.scale, q.zeroPoint]).toEqual(each[0]);
        } else {
          expect(q.scale).toEqual(Float32Array.from(each, ([scale]) => scale));
          expect(q.zeroPoint).toEqual(classes[wanted.dtype].from(each.map(([, zero]) => zero)));
          expect(q).toHaveProperty('axis', axis < 0 ? axis + 3 : axis);
        }
      }
    });

    it('comes back within half a step', () => {
      for (const axis of [undefined, 0, 1]) {
        const x = sample([30, 20], 3);
        const q = quantize(x, { ...wanted, axis });
        const y = dequantize(q);
        const at = axis === undefined ? [] : indices([30, 20], axis);
        y.data.forEach((value, i) => {
          const scale =
            typeof q.scale === 'number' ? q.scale : (q.scale[at[i] as number] as number);
          expect(Math.abs(value - (x.data[i] as number))).toBeLessThanOrEqual(
            (scale / 2) * 1.00001,
          );
        });
      }
    });
  });

  it('is uint8, and int8 if symmetric, unless it is said', () => {
    const x = float32([2], -1, 1);
    expect(quantize(x).dtype).toBe('uint8');
    expect(quantize(x, null).dtype).toBe('uint8');
    expect(quantize(x, { symmetric: true }).dtype).toBe('int8');
    expect(quantize(x, { symmetric: true, dtype: 'uint8' }).dtype).toBe('uint8');
    const whole = float32([3], -128, 0, 127);
    const q = {
      data: Int8Array.of(-128, 0, 127),
      shape: [3],
      dtype: 'int8',
      scale: 1,
      zeroPoint: 0,
    };
    expect(quantize(whole, { dtype: 'int8' })).toEqual(q);
  });

  it('includes 0 in the range, and has scale 1 if all is 0', () => {
    expect(quantize(float32([2], 51, 255))).toMatchObject({
      data: Uint8Array.of(51, 255),
      scale: 1,
      zeroPoint: 0,
    });
    expect(quantize(float32([2], -51, -255))).toMatchObject({
      data: Uint8Array.of(204, 0),
      scale: 1,
      zeroPoint: 255,
    });
    expect(quantize(float32([2], 0, -0))).toMatchObject({
      data: Uint8Array.of(0, 0),
      scale: 1,
      zeroPoint: 0,
    });
    expect(quantize(float32([2], 0, -0), { dtype: 'int8' })).toMatchObject({
      data: Int8Array.of(-128, -128),
      scale: 1,
      zeroPoint: -128,
    });
    expect(quantize(float32([1], 0), { symmetric: true })).toMatchObject({
      data: Int8Array.of(0),
      scale: 1,
      zeroPoint: 0,
    });
    expect(quantize(float32([0]))).toEqual({
      data: new Uint8Array(0),
      shape: [0],
      dtype: 'uint8',
      scale: 1,
      zeroPoint: 0,
    });
    expect(quantize(float32([2, 0]), { axis: 0, symmetric: true })).toMatchObject({
      scale: Float32Array.of(1, 1),
      zeroPoint: Int8Array.of(0, 0),
    });
    expect(quantize(float32([2, 0]), { axis: 1 })).toMatchObject({
      scale: new Float32Array(0),
      zeroPoint: new Uint8Array(0),
    });
    expect(quantize(float32([], 7))).toMatchObject({
      data: Uint8Array.of(255),
      shape: [],
      scale: f(7 / 255),
    });
  });

  it('computes scale and zero point in float32 steps, as the body of DynamicQuantizeLinear', () => {
    // With one rounding these would be 25, and -127.
    expect(quantize(float32([2], -0.01, 0.09)).zeroPoint).toBe(26);
    expect(quantize(float32([2], -0.01, 1.69), { dtype: 'int8' }).zeroPoint).toBe(-126);
  });

  it('never has a scale of 0 or infinity', () => {
    const least = 2 ** -149;
    const most = (2 - 2 ** -23) * 2 ** 127;
    // 300 / 255 is nearest to 1 there, and the zero point saturates.
    expect(quantize(float32([2], -300 * least, -least))).toMatchObject({
      data: Uint8Array.of(0, 254),
      scale: least,
      zeroPoint: 255,
    });
    expect(quantize(float32([2], -least, least))).toMatchObject({
      data: Uint8Array.of(0, 2),
      scale: least,
      zeroPoint: 1,
    });
    expect(quantize(float32([2], -least, least), { symmetric: true })).toMatchObject({
      data: Int8Array.of(-1, 1),
      scale: least,
    });
    // The range is 2 * most, which float32 does not hold.
    expect(quantize(float32([2], -most, most))).toMatchObject({
      data: Uint8Array.of(0, 255),
      scale: f((2 * most) / 255),
      zeroPoint: 128,
    });
    expect(quantize(float32([2], -most, most), { symmetric: true })).toMatchObject({
      data: Int8Array.of(-127, 127),
      scale: f(most / 127),
    });
  });
});

describe('where the elements are', () => {
  it.each(placeNames)('reads x from %s', (where) => {
    const x = places[where](wg, 'float32', [4, 6]) as TensorInput<Float32Array>;
    random.fill(x.data);
    const [down, across] = x.strides ?? [6, 1];
    const plain = Float32Array.from(
      { length: 24 },
      (_, i) =>
        x.data[Math.floor(i / 6) * (down as number) + (i % 6) * (across as number)] as number,
    );
    for (const axis of [undefined, 0, 1])
      expect(quantize(x, { axis })).toEqual(quantize({ data: plain, shape: [4, 6] }, { axis }));
  });

  it('follows strides of any rank, of 0 too', () => {
    const { data } = sample([24]);
    const pick = (shape: number[], at: (...index: number[]) => number) => {
      const picked: number[] = [];
      const walk = (index: number[]) => {
        if (index.length === shape.length) picked.push(data[at(...index)] as number);
        else for (let i = 0; i < (shape[index.length] as number); ++i) walk([...index, i]);
      };
      walk([]);
      return { data: Float32Array.from(picked), shape };
    };
    const axes = { data, shape: [4, 3, 2], strides: [1, 8, 4] };
    for (const axis of [undefined, 0, 1, 2]) {
      expect(quantize(axes, { axis })).toEqual(
        quantize(
          pick([4, 3, 2], (i = 0, j = 0, k = 0) => i + 8 * j + 4 * k),
          { axis },
        ),
      );
    }
    const repeated = { data: data.subarray(0, 3), shape: [2, 3], strides: [0, 1] };
    expect(quantize(repeated, { axis: 0 })).toEqual(
      quantize(
        pick([2, 3], (_, j) => j),
        { axis: 0 },
      ),
    );
    // The call does not look at values between the elements.
    const gaps = { data: Float32Array.of(1, NaN, 3), shape: [2], strides: [2] };
    expect([...quantize(gaps, { scale: 1 }).data]).toEqual([1, 3]);
    expect([
      ...dequantize({ data: Int8Array.of(1, 99, 3), shape: [2, 1], strides: [2, 5], scale: 2 })
        .data,
    ]).toEqual([2, 6]);
    const bias = { data: Float32Array.of(1, 9, 3), shape: [1, 2], strides: [7, 2] };
    expect([...quantizeBias(bias, { aScale: 1, bScale: 1 }).data]).toEqual([1, 3]);
    expect(quantize({ data: Float32Array.of(), shape: [0, 3], strides: [1, 1] }).data).toHaveLength(
      0,
    );
  });

  it('fills out, and leaves the bytes around it', () => {
    const x = float32([2, 3], -1, 0, 1, 2, 3, 4);
    const data = new Int8Array(10).fill(77);
    for (const strides of [undefined, [3, 1]]) {
      const q = quantize(x, {
        dtype: 'int8',
        axis: 0,
        out: { data: data.subarray(2, 8), shape: [2, 3], strides },
      });
      expect(q.data.buffer).toBe(data.buffer);
      expect(q).toEqual(quantize(x, { dtype: 'int8', axis: 0 }));
      expect([...data]).toEqual([77, 77, ...q.data, 77, 77]);
      data.fill(77);
    }
    // The strides of an axis without a second element do not matter.
    expect([
      ...quantize(float32([1, 2], 3, 4), {
        scale: 1,
        out: { data: new Uint8Array(2), shape: [1, 2], strides: [9, 1] },
      }).data,
    ]).toEqual([3, 4]);
    expect(
      quantize(float32([0, 3]), {
        out: { data: new Uint8Array(0), shape: [0, 3], strides: [9, 9] },
      }).data,
    ).toHaveLength(0);
    // In one buffer, on either side of x.
    const buffer = new ArrayBuffer(24);
    const between = { data: new Float32Array(buffer, 4, 4), shape: [4] };
    between.data.set([1, 2, 3, 4]);
    for (const at of [0, 20]) {
      quantize(between, { scale: 1, out: { data: new Uint8Array(buffer, at, 4), shape: [4] } });
      expect([...new Uint8Array(buffer, at, 4), ...between.data]).toEqual([1, 2, 3, 4, 1, 2, 3, 4]);
    }
  });

  it('fills out in the heap, whose data it returns even when the memory has moved', async () => {
    const own = await createGemm();
    const x = own.alloc('float32', [2, 3]);
    x.data.set([-1, 0, 1, 2, 3, 4]);
    const out = own.alloc('uint8', [2, 3]);
    const q = quantize(x, { out });
    own.alloc('float32', [1 << 24]);
    expect(q.data).toBe(out.data);
    expect([...out.data]).toEqual([...quantize(float32([2, 3], -1, 0, 1, 2, 3, 4)).data]);
    expect(dequantize(q).data[5]).toBeCloseTo(4);
    own.dispose();
  });
});

describe('dequantize', () => {
  it('is (value - zeroPoint) * scale', () => {
    const wanted = { data: Float32Array.of(-5, 0, 5, 122.5), shape: [4], dtype: 'float32' };
    expect(
      dequantize({ data: Uint8Array.of(8, 10, 12, 59), shape: [4], scale: 2.5, zeroPoint: 10 }),
    ).toEqual(wanted);
    expect(
      dequantize({ data: Int8Array.of(-2, 0, 2, 49), shape: [4], scale: 2.5, dtype: 'int8' }),
    ).toEqual(wanted);
    // Also beyond 8 bits, and below 0.
    expect([
      ...dequantize({ data: Int8Array.of(-128), shape: [], scale: -1, zeroPoint: 127 }).data,
    ]).toEqual([255]);
  });

  it('has one for each index of an axis', () => {
    const q = {
      data: Uint8Array.of(1, 2, 3, 4, 5, 6),
      shape: [3, 2],
      scale: Float32Array.of(1, 10, 100),
    };
    expect([...dequantize({ ...q, axis: 0 }).data]).toEqual([1, 2, 30, 40, 500, 600]);
    expect([...dequantize({ ...q, axis: -2, zeroPoint: Uint8Array.of(1, 2, 3) }).data]).toEqual([
      0, 1, 10, 20, 200, 300,
    ]);
    expect([
      ...dequantize({ ...q, axis: 1, scale: Float32Array.of(1, 2), zeroPoint: 1 }).data,
    ]).toEqual([0, 2, 2, 6, 4, 10]);
  });

  it('rounds int32 to float32, and then the product', () => {
    const data = Int32Array.of(2 ** 31 - 1, -(2 ** 31), 2 ** 24 + 1, 16777219);
    expect([...dequantize({ data, shape: [4], scale: 1 }).data]).toEqual([
      2 ** 31,
      -(2 ** 31),
      2 ** 24,
      16777220,
    ]);
    expect([...dequantize({ data, shape: [4], scale: 0.1, zeroPoint: 0 }).data]).toEqual(
      Array.from(data, (v) => f(f(v) * f(0.1))),
    );
  });
});

describe('quantizeBias', () => {
  it('is round(bias / scale), scale being alpha / beta * aScale * bScale', () => {
    const bias = float32([5], -2.5, -0.5, 0.5, 1.5, 3);
    expect(quantizeBias(bias, { aScale: 1, bScale: 1 })).toEqual({
      data: Int32Array.of(-2, 0, 0, 2, 3),
      shape: [5],
      dtype: 'int32',
      scale: 1,
    });
    expect(quantizeBias(bias, { aScale: 0.5, bScale: 0.25 })).toMatchObject({
      data: Int32Array.of(-20, -4, 4, 12, 24),
      scale: 0.125,
    });
    expect(quantizeBias(bias, { aScale: 0.5, bScale: 0.25, alpha: 4 })).toMatchObject({
      data: Int32Array.of(-5, -1, 1, 3, 6),
      scale: 0.5,
    });
    expect(quantizeBias(bias, { aScale: 0.5, bScale: 0.25, beta: 2 })).toMatchObject({
      data: Int32Array.of(-40, -8, 8, 24, 48),
      scale: 0.0625,
    });
    expect(quantizeBias(bias, { aScale: 1, bScale: 1, alpha: -1, beta: 2 })).toMatchObject({
      data: Int32Array.of(5, 1, -1, -3, -6),
      scale: -0.5,
    });
  });

  it('is rounded once, and returns a float32 as scale', () => {
    const { data, scale } = quantizeBias(float32([2], 1, 1000), {
      aScale: 0.003,
      bScale: 0.007,
      alpha: 0.3,
      beta: 0.7,
    });
    const exact = (0.3 / 0.7) * f(0.003) * f(0.007);
    expect([...data]).toEqual([halfToEven(1 / exact), halfToEven(1000 / exact)]);
    expect(scale).toBe(f(exact));
    // In float32 these would be halves, as 0.05 / 0.02 above.
    expect([...quantizeBias(float32([1], 0.05), { aScale: 0.02, bScale: 1 }).data]).toEqual([3]);
  });

  it('saturates', () => {
    const bias = float32([4], -3e38, -(2 ** 31), 2 ** 31, 3e38);
    const wanted = [-(2 ** 31), -(2 ** 31), 2 ** 31 - 1, 2 ** 31 - 1];
    expect([...quantizeBias(bias, { aScale: 1, bScale: 1 }).data]).toEqual(wanted);
    expect([...quantizeBias(bias, { aScale: 2 ** -100, bScale: 2 ** -40 }).data]).toEqual(wanted);
  });

  it.each([
    { shape: [], values: [3], wanted: [3, 6, 12], result: [3] },
    { shape: [1], values: [3], wanted: [3, 6, 12], result: [3] },
    { shape: [3], values: [1, 2, 3], wanted: [1, 4, 12], result: [3] },
    { shape: [1, 1], values: [3], wanted: [3, 6, 12], result: [1, 3] },
    { shape: [1, 3], values: [1, 2, 3], wanted: [1, 4, 12], result: [1, 3] },
    { shape: [2, 1], values: [1, 2], wanted: [1, 2, 4, 2, 4, 8], result: [2, 3] },
    { shape: [2, 3], values: [1, 2, 3, 4, 5, 6], wanted: [1, 4, 12, 4, 10, 24], result: [2, 3] },
    { shape: [0, 3], values: [], wanted: [], result: [0, 3] },
  ])(
    'of shape $shape has a scale for each column, or one for all',
    ({ shape, values, wanted, result }) => {
      const bias = float32(shape, ...values);
      const c = quantizeBias(bias, { aScale: 2, bScale: Float32Array.of(0.5, 0.25, 0.125) });
      const scale = Float32Array.of(1, 0.5, 0.25);
      expect(c).toEqual({
        data: Int32Array.from(wanted),
        shape: result,
        dtype: 'int32',
        scale,
        axis: result.length - 1,
      });
      expect(quantizeBias(bias, { aScale: 2, bScale: 0.5 })).toEqual({
        data: Int32Array.from(values),
        shape,
        dtype: 'int32',
        scale: 1,
      });
      const back = dequantize(c);
      expect(back.shape).toEqual(result);
      back.data.forEach((value, i) =>
        expect(value).toBe(values[values.length < back.data.length ? Math.floor(i / 3) : i]),
      );
    },
  );

  it('makes of QGemm, alpha * aScale * bScale * (acc + C), a Gemm with beta * bias', () => {
    const [aScale, bScale, alpha, beta] = [f(0.02), Float32Array.of(0.01, 0.03), 0.75, -1.5];
    const bias = float32([2], 1.25, -3.5);
    const c = quantizeBias(bias, { aScale, bScale, alpha, beta });
    bias.data.forEach((value, n) => {
      const unit = alpha * aScale * (bScale[n] as number);
      expect(
        Math.abs(unit * (1000 + (c.data[n] as number)) - (unit * 1000 + beta * value)),
      ).toBeLessThanOrEqual(unit / 2);
    });
  });
});

it('infers the arrays from the options', () => {
  const x = float32([2, 2], 1, 2, 3, 4);
  expectTypeOf(quantize(x)).toEqualTypeOf<QuantizedPerTensor<Uint8Array>>();
  expectTypeOf(quantize(x, { dtype: 'int8' })).toEqualTypeOf<QuantizedPerTensor<Int8Array>>();
  expectTypeOf(quantize(x, { symmetric: true })).toEqualTypeOf<QuantizedPerTensor<Int8Array>>();
  expectTypeOf(quantize(x, { symmetric: true, dtype: 'uint8' })).toEqualTypeOf<
    QuantizedPerTensor<Uint8Array>
  >();
  expectTypeOf(quantize(x, { axis: 1 })).toEqualTypeOf<QuantizedPerAxis<Uint8Array>>();
  expectTypeOf(quantize(x, { axis: 1, dtype: 'int8' })).toEqualTypeOf<
    QuantizedPerAxis<Int8Array>
  >();
  expectTypeOf<Quantized>().toEqualTypeOf<QuantizedPerTensor<Int8Array | Uint8Array>>();
  expectTypeOf(quantizeBias(x, { aScale: 1, bScale: 1 }).scale).toEqualTypeOf<number>();
  expectTypeOf(
    quantizeBias(x, { aScale: 1, bScale: Float32Array.of(1, 1) }).scale,
  ).toEqualTypeOf<Float32Array>();
  // @ts-expect-error: the option is not known
  expect(() => quantize(x, { axes: 1 })).toThrow(ArgumentError);
  // @ts-expect-error: of another type than the result
  expect(() => quantize(x, { scale: 1, zeroPoint: Int8Array.of(1) })).toThrow(DTypeError);
});

type Case = [
  call: () => unknown,
  error: new (...args: never[]) => GemmError,
  argument: string,
  ...says: string[],
];
function refuses(op: string, cases: Record<string, Case>): void {
  describe(`${op} refuses`, () => {
    it.each(Object.entries(cases).map(([name, bad]) => ({ name, bad })))(
      '$name',
      ({ bad: [call, error, argument, ...says] }) => {
        let thrown: unknown = null;
        try {
          call();
        } catch (caught) {
          thrown = caught;
        }
        expect(thrown).toBeInstanceOf(error);
        expect(thrown).toMatchObject({ op, argument });
        const { message } = thrown as GemmError;
        expect(message.startsWith(`${op}: `), message).toBe(true);
        for (const text of [argument, ...says]) expect(message).toContain(text);
      },
    );
  });
}

const x = float32([2, 3], 1, 2, 3, 4, 5, 6);
/** Calls quantize with an out. If the call is refused, the out must be unchanged. */
function q(value: unknown, options: object = {}): Case[0] {
  return () => {
    const data = new ('dtype' in options && options.dtype === 'int8' ? Int8Array : Uint8Array)(
      6,
    ).fill(77);
    try {
      quantize(value as never, { out: { data, shape: [2, 3] }, ...options } as never);
    } finally {
      expect([...data]).toEqual(Array(6).fill(77));
    }
  };
}
const disposed = () => {
  const tensor = wg.alloc('float32', [2, 3]);
  tensor.dispose();
  return tensor;
};

refuses('quantize', {
  'no tensor': [q(null), ArgumentError, 'x', 'null', '{ data, shape }'],
  'a number': [q(5), ArgumentError, 'x', '5', '{ data, shape }'],
  'a bare array': [q(x.data), ShapeError, 'x', 'undefined'],
  'a disposed tensor': [() => q(disposed())(), DisposedError, 'x', 'disposed'],
  float64: [
    q({ ...x, data: new Float64Array(6) }),
    DTypeError,
    'x',
    'Float64Array',
    'Float32Array',
  ],
  'a plain array': [
    q({ ...x, data: [1, 2, 3, 4, 5, 6] }),
    DTypeError,
    'x',
    'an array',
    'Float32Array',
  ],
  'what says that it is a Float32Array': [
    q({
      ...x,
      data: { length: 6, [Symbol.toStringTag]: 'Float32Array', __proto__: Float32Array.prototype },
    }),
    DTypeError,
    'x',
    'an object',
  ],
  'another dtype': [q({ ...x, dtype: 'int8' }), DTypeError, 'x', '"int8"', 'float32'],
  'a bad shape': [q({ ...x, shape: [2, -3] }), ShapeError, 'x', '-3', 'a whole number'],
  'bad strides': [q({ ...x, strides: [1.5, 1] }), ShapeError, 'x', '1.5', 'a whole number'],
  'too few strides': [q({ ...x, strides: [1] }), ShapeError, 'x', '[1]', '[2, 3]'],
  'an array too long': [
    q({ ...x, data: new Float32Array(7) }),
    ShapeError,
    'x',
    '7',
    '[2, 3]',
    '6',
  ],
  'an array too short for its strides': [
    q({ ...x, strides: [4, 1] }),
    ShapeError,
    'x',
    '6',
    '[4, 1]',
    '7',
  ],
  'elements for an empty shape': [q({ ...x, shape: [0, 3] }), ShapeError, 'x', '6', '[0, 3]', '0'],
  'more than there is memory for': [
    () => quantize({ data: Float32Array.of(1), shape: [2 ** 40], strides: [0] }),
    OutOfMemoryError,
    'x',
    String(2 ** 40),
  ],
  NaN: [q(float32([2, 3], 1, 2, 3, 4, 5, NaN)), ArgumentError, 'x', 'NaN', '[1, 2]', 'finite'],
  infinity: [
    q(float32([2, 3], 1, 2, 3, -Infinity, 5, 6), { axis: 0 }),
    ArgumentError,
    'x',
    '-Infinity',
    '[1, 0]',
    'finite',
  ],
  'NaN by a scale': [
    q(float32([2, 3], 1, NaN, 3, 4, 5, 6), { scale: 1 }),
    ArgumentError,
    'x',
    'NaN',
    '[0, 1]',
    'infinity',
  ],
  'NaN in a transposed tensor': [
    q({ data: Float32Array.of(1, 2, 3, 4, NaN, 6), shape: [2, 3], strides: [1, 2] }),
    ArgumentError,
    'x',
    '[0, 2]',
  ],
  'NaN at rank 0': [() => quantize(float32([], NaN)), ArgumentError, 'x', '[]'],
  'options of another kind': [() => quantize(x, 5 as never), ArgumentError, 'options', '5'],
  'an option that is not known': [
    q(x, { axes: 0 }),
    ArgumentError,
    'axes',
    'not known',
    'axis',
    'zeroPoint',
  ],
  'another type': [q(x, { dtype: 'int32' }), DTypeError, 'dtype', '"int32"', 'int8', 'uint8'],
  'symmetric that is a number': [q(x, { symmetric: 1 }), ArgumentError, 'symmetric', '1', 'true'],
  'an axis beyond the last': [
    q(x, { axis: 2 }),
    ArgumentError,
    'axis',
    '2',
    'from -2 to 1',
    '[2, 3]',
  ],
  'an axis before the first': [q(x, { axis: -3 }), ArgumentError, 'axis', '-3', 'from -2 to 1'],
  'half an axis': [q(x, { axis: 0.5 }), ArgumentError, 'axis', '0.5'],
  'an axis that is null': [q(x, { axis: null }), ArgumentError, 'axis', 'null'],
  'an axis of a scalar': [
    () => quantize(float32([], 1), { axis: 0 }),
    ArgumentError,
    'axis',
    '[]',
    'absent',
  ],
  'scale 0': [q(x, { scale: 0 }), ArgumentError, 'scale', 'is 0'],
  'a negative scale': [q(x, { scale: -1 }), ArgumentError, 'scale', '-1'],
  'scale NaN': [q(x, { scale: NaN }), ArgumentError, 'scale', 'NaN'],
  'a scale beyond float32': [q(x, { scale: 1e39 }), ArgumentError, 'scale', '1e+39', 'float32'],
  'a scale below float32': [q(x, { scale: 1e-50 }), ArgumentError, 'scale', '1e-50', 'float32'],
  'a scale that is a string': [q(x, { scale: '1' }), ArgumentError, 'scale', '"1"', 'a number'],
  'a scale that is null': [q(x, { scale: null }), ArgumentError, 'scale', 'null'],
  'scales of float64': [
    q(x, { axis: 0, scale: Float64Array.of(1, 1) }),
    DTypeError,
    'scale',
    'Float64Array',
    'Float32Array',
  ],
  'scales without an axis': [
    q(x, { scale: Float32Array.of(1, 1) }),
    ArgumentError,
    'scale',
    'Float32Array',
    'a number',
    'axis',
  ],
  'too many scales': [
    q(x, { axis: 0, scale: Float32Array.of(1, 1, 1) }),
    ShapeError,
    'scale',
    '3 elements',
    '2',
    'axis 0',
  ],
  'scales of which one is infinite': [
    q(x, { axis: 0, scale: Float32Array.of(1, Infinity) }),
    ArgumentError,
    'scale',
    'Infinity',
    '[1]',
  ],
  'a zero point alone': [q(x, { zeroPoint: 1 }), ArgumentError, 'zeroPoint', 'scale'],
  'a zero point out of uint8': [
    q(x, { scale: 1, zeroPoint: 256 }),
    ArgumentError,
    'zeroPoint',
    '256',
    'from 0 to 255',
  ],
  'a zero point out of int8': [
    q(x, { scale: 1, zeroPoint: 128, dtype: 'int8' }),
    ArgumentError,
    'zeroPoint',
    '128',
    'from -128 to 127',
  ],
  'half a zero point': [
    q(x, { scale: 1, zeroPoint: 0.5 }),
    ArgumentError,
    'zeroPoint',
    '0.5',
    'whole',
  ],
  'a zero point that is null': [
    q(x, { scale: 1, zeroPoint: null, dtype: 'int8' }),
    ArgumentError,
    'zeroPoint',
    'null',
  ],
  'zero points of another type': [
    q(x, { scale: 1, axis: 0, zeroPoint: Int8Array.of(1, 1) }),
    DTypeError,
    'zeroPoint',
    'Int8Array',
    'Uint8Array',
  ],
  'too few zero points': [
    q(x, { scale: 1, axis: 1, zeroPoint: Uint8Array.of(1, 1) }),
    ShapeError,
    'zeroPoint',
    '2 elements',
    '3',
  ],
  'a zero point off the middle': [
    q(x, { scale: 1, symmetric: true, zeroPoint: 1, dtype: 'uint8' }),
    ArgumentError,
    'zeroPoint',
    '1',
    '128',
  ],
  'zero points off the middle': [
    q(x, { scale: 1, symmetric: true, dtype: 'int8', axis: 0, zeroPoint: Int8Array.of(0, 3) }),
    ArgumentError,
    'zeroPoint',
    '3',
    'must be 0',
  ],
  'an out that is null': [() => quantize(x, { out: null as never }), ArgumentError, 'out', 'null'],
  'an out of another type': [
    () => quantize(x, { out: { data: new Int8Array(6), shape: [2, 3] } as never }),
    DTypeError,
    'out',
    'Int8Array',
    'Uint8Array',
  ],
  'an out of another shape': [
    () => quantize(x, { out: { data: new Uint8Array(6), shape: [3, 2] } }),
    ShapeError,
    'out',
    '[3, 2]',
    '[2, 3]',
  ],
  'an out that is not contiguous': [
    () => quantize(x, { out: { data: new Uint8Array(6), shape: [2, 3], strides: [1, 2] } }),
    ShapeError,
    'out',
    '[1, 2]',
    'contiguous',
  ],
  'an out that overlaps x': [
    () => quantize(x, { out: { data: new Uint8Array(x.data.buffer, 18, 6), shape: [2, 3] } }),
    ArgumentError,
    'out',
    'overlaps x',
  ],
});

const bytes = { data: Uint8Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3], scale: 1 };
const d = (change: object) => () => dequantize({ ...bytes, ...change });
refuses('dequantize', {
  'no tensor': [
    () => dequantize(undefined as never),
    ArgumentError,
    'q',
    'undefined',
    '{ data, shape }',
  ],
  float32: [
    d({ data: x.data }),
    DTypeError,
    'q',
    'Float32Array',
    'Int8Array or Uint8Array or Int32Array',
  ],
  'another dtype': [d({ dtype: 'int8' }), DTypeError, 'q', '"int8"', 'uint8'],
  'a bad shape': [d({ shape: [6, 2] }), ShapeError, 'q', '6 elements', '[6, 2]', '12'],
  'no scale': [d({ scale: undefined }), ArgumentError, 'scale', 'undefined', 'a number'],
  'an infinite scale': [d({ scale: -Infinity }), ArgumentError, 'scale', '-Infinity', 'float32'],
  'scales without an axis': [
    d({ scale: Float32Array.of(1, 1) }),
    ArgumentError,
    'scale',
    'Float32Array',
    'axis',
  ],
  'too few scales': [
    d({ scale: Float32Array.of(1, 1), axis: 1 }),
    ShapeError,
    'scale',
    '2 elements',
    '3',
  ],
  'a bad axis': [d({ axis: 5 }), ArgumentError, 'axis', '5', 'from -2 to 1'],
  'a zero point out of range': [
    d({ zeroPoint: -1 }),
    ArgumentError,
    'zeroPoint',
    '-1',
    'from 0 to 255',
  ],
  'zero points of another type': [
    d({ axis: 1, zeroPoint: new Int8Array(3) }),
    DTypeError,
    'zeroPoint',
    'Int8Array',
    'Uint8Array',
  ],
  'a zero point of int32': [
    d({ data: new Int32Array(6), zeroPoint: 1 }),
    ArgumentError,
    'zeroPoint',
    'is 1',
    'must be 0',
  ],
});

const scales = { aScale: 1, bScale: 1 };
const b =
  (shape: number[], options: object, ...values: number[]) =>
  () =>
    quantizeBias(float32(shape, ...values), { ...scales, ...options });
refuses('quantizeBias', {
  'no tensor': [() => quantizeBias(null as never, scales), ArgumentError, 'bias', 'null'],
  int32: [
    () => quantizeBias({ data: Int32Array.of(1), shape: [1] } as never, scales),
    DTypeError,
    'bias',
    'Int32Array',
    'Float32Array',
  ],
  'rank 3': [b([1, 1, 1], {}, 1), ShapeError, 'bias', '[1, 1, 1]', '2'],
  NaN: [b([2, 1], {}, 1, NaN), ArgumentError, 'bias', 'NaN', '[1, 0]', 'finite'],
  infinity: [b([2], {}, Infinity, 1), ArgumentError, 'bias', 'Infinity', '[0]', 'finite'],
  'no options': [() => quantizeBias(x, undefined as never), ArgumentError, 'aScale', 'undefined'],
  'an option that is not known': [
    b([1], { scale: 1 }, 1),
    ArgumentError,
    'scale',
    'not known',
    'aScale, bScale, alpha, beta',
  ],
  'aScale 0': [b([1], { aScale: 0 }, 1), ArgumentError, 'aScale', 'is 0'],
  'an array as aScale': [
    b([1], { aScale: Float32Array.of(1, 1) }, 1),
    ArgumentError,
    'aScale',
    'Float32Array',
    'must be a number',
  ],
  'a negative bScale': [b([1], { bScale: -2 }, 1), ArgumentError, 'bScale', '-2'],
  'bScale of float64': [
    b([1], { bScale: Float64Array.of(1) }, 1),
    DTypeError,
    'bScale',
    'Float64Array',
    'Float32Array',
  ],
  'a bScale that is NaN for a column': [
    b([2], { bScale: Float32Array.of(1, NaN) }, 1, 1),
    ArgumentError,
    'bScale',
    'NaN',
    '[1]',
  ],
  'columns that are not the columns of bScale': [
    b([2], { bScale: new Float32Array(3).fill(1) }, 1, 1),
    ShapeError,
    'bias',
    '[2]',
    '3',
  ],
  'alpha 0': [b([1], { alpha: 0 }, 1), ArgumentError, 'alpha', '0'],
  'alpha that is a bigint': [b([1], { alpha: 1n }, 1), ArgumentError, 'alpha', '1n'],
  'beta 0': [b([1], { beta: -0 }, 1), ArgumentError, 'beta', '-0'],
  'an infinite beta': [b([1], { beta: Infinity }, 1), ArgumentError, 'beta', 'Infinity'],
  'scales whose product float32 cannot hold': [
    b([1], { aScale: 1e-30, bScale: 1e-30 }, 1),
    ArgumentError,
    'aScale',
    'e-60',
    'not 0',
  ],
  'factors whose quotient is infinite': [
    b([1], { alpha: 1e300, beta: 1e-300 }, 1),
    ArgumentError,
    'aScale',
    'Infinity',
  ],
});

it('an array that goes away while the others are read is refused, and nothing is written', () => {
  const data = Float32Array.of(1, 2);
  const out = Uint8Array.of(7, 7);
  const target = {
    data: out,
    get shape() {
      structuredClone(data.buffer, { transfer: [data.buffer] });
      return [2];
    },
  };
  expect(() => quantize({ data, shape: [2] }, { out: target })).toThrow(/x has a detached array/);
  expect([...out]).toEqual([7, 7]);
});

it('a proxy of an array is refused', () => {
  const x = new Proxy(new Float32Array(2), {}) as never;
  for (const call of [
    () => quantize(x),
    () => quantize({ data: new Float32Array(2), shape: [2] }, { out: x }),
    () => dequantize(x),
    () => quantizeBias(x, { aScale: 1, bScale: 1 }),
  ])
    expect(call).toThrow(/(x|out|q|bias) is an object; it must be a tensor/);
});

it('an array of one scale stands for the number', () => {
  const bias = { data: Float32Array.of(1, 2, 3), shape: [3] };
  const one = Float32Array.of(0.5);
  expect(quantizeBias(bias, { aScale: one, bScale: one })).toEqual(
    quantizeBias(bias, { aScale: 0.5, bScale: 0.5 }),
  );
  expect(quantize(bias, { scale: one })).toEqual(quantize(bias, { scale: 0.5 }));
});
