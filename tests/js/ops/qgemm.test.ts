/**
 * What qgemm computes, for every combination of its arguments, bit for bit against the reference;
 * and the plans that explain returns.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm, GemmError, PackedWeights, type QGemmInputs } from 'wgemm';
import {
  arrayClasses,
  type Quantized,
  quantized,
  quantizedTypes,
  valuesOf,
} from '../support/dtypes.js';
import type { Matrix } from '../support/reference.js';
import {
  draw,
  dropAll,
  expectQGemm,
  forms,
  oneForms,
  outputs,
  packed,
  relaxedDots,
  shapesOfC,
  typePairs,
  vector,
} from '../support/quantized.js';
import { withoutLarge } from '../support/short.js';
import {
  count,
  drop,
  int32,
  place,
  placeNames,
  Random,
  snapshot,
  tensor,
} from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

const [m, n, k] = [5, 6, 7];
const alphas = [1, 0.5, -1, 0.37, 0, -2.5];
const transposes = [false, true].flatMap((transA) =>
  [false, true].map((transB) => ({ transA, transB })),
);

describe.each(typePairs)('$a x $b', (types) => {
  describe.each(placeNames)('with operands in %s', (where) => {
    it('computes every transpose, type of the result and broadcast of C', () => {
      const random = new Random(1);
      for (const transpose of transposes) {
        for (const output of outputs) {
          for (const c of [...shapesOfC(m, n), undefined, null, 7]) {
            const { inputs, options } = draw(wg, random, {
              types,
              sizes: [m, n, k],
              where,
              output,
              c,
              alpha: random.pick(alphas),
              ...transpose,
            });
            expectQGemm(wg, inputs, options, JSON.stringify({ ...options, output, c }));
            dropAll(inputs);
          }
        }
      }
    });

    it.each(placeNames)('fills an out in %s', (whereOut) => {
      const random = new Random(2);
      for (const output of outputs) {
        for (const b of ['plain', 'packed']) {
          const { inputs, options } = draw(wg, random, {
            types,
            sizes: [m, n, k],
            where,
            output,
            c: [m, 1],
          });
          const out = place(wg, whereOut, output, [m, n], random);
          const weights = b === 'packed' ? packed(wg, inputs.b as Matrix) : inputs.b;
          expectQGemm(wg, { ...inputs, b: weights }, { ...options, out }, `${output}, ${b}`);
          dropAll(inputs, weights, out);
        }
      }
    });
  });

  it('takes scales and zero points in every form, each on its own', () => {
    const random = new Random(3);
    for (const one of oneForms) {
      for (const bScale of forms) {
        for (const bZeroPoint of forms) {
          const where = random.pick([
            'an array',
            'part of an array',
            'shared memory',
            'the heap',
            'a view of the heap',
          ] as const);
          const output = random.pick(outputs);
          const transB = random.pick([false, true]);
          const { inputs, options } = draw(wg, random, {
            types,
            sizes: [3, n, k],
            where,
            output,
            one,
            bScale,
            bZeroPoint,
            transB,
          });
          expectQGemm(
            wg,
            inputs,
            options,
            JSON.stringify({ one, bScale, bZeroPoint, where, output }),
          );
          dropAll(inputs);
        }
      }
    }
  });

  it('takes zero points that are left out as 0, each on its own', () => {
    const random = new Random(4);
    for (const absent of [undefined, null]) {
      const { inputs } = draw(wg, random, { types, sizes: [m, n, k] });
      expectQGemm(wg, { ...inputs, aZeroPoint: absent });
      expectQGemm(wg, { ...inputs, bZeroPoint: absent });
      expectQGemm(wg, {
        ...inputs,
        aZeroPoint: absent,
        bZeroPoint: absent,
        yScale: absent,
        yZeroPoint: absent,
      });
    }
  });

  it('computes sizes on both sides of every tile', () => {
    const random = new Random(5);
    for (const rows of [1, 2, 3, 4, 5, 8, 9, 23, 24, 29]) {
      for (const columns of [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 41]) {
        for (const depth of [1, 2, 3, 7, 8, 17]) {
          const c = random.pick([undefined, [rows, columns], [columns]]);
          const { inputs, options } = draw(wg, random, {
            types,
            sizes: [rows, columns, depth],
            c,
            output: random.pick(outputs),
          });
          expectQGemm(wg, inputs, options, `${rows} x ${columns} x ${depth}`);
        }
      }
    }
  });

  it.each(
    withoutLarge([
      ['67 x 130 x 71', 67, 130, 71],
      ['deep enough to split K', 3, 5, 9001],
      ['deep enough to split K, of many rows', 25, 3, 4097],
      ['wide enough to split N', 2, 20001, 3],
      ['tall enough to split M', 20001, 2, 3],
    ]),
  )('computes a product %s', (_, rows, columns, depth) => {
    const random = new Random(6);
    for (const transpose of [transposes[0], transposes[3]] as typeof transposes) {
      const sizes = [rows, columns, depth] as const;
      const { inputs, options } = draw(wg, random, {
        types,
        sizes,
        c: [columns],
        output: random.pick(outputs),
        ...transpose,
      });
      expectQGemm(wg, inputs, options);
      using weights = packed(wg, inputs.b as Matrix, transpose.transB);
      expectQGemm(wg, { ...inputs, b: weights }, { ...options, transB: false });
    }
  });

  it('gives what C alone gives if K is 0', () => {
    const random = new Random(7);
    for (const transpose of transposes) {
      for (const output of outputs) {
        for (const c of [...shapesOfC(m, n), undefined, -3]) {
          const { inputs, options } = draw(wg, random, {
            types,
            sizes: [m, n, 0],
            output,
            c,
            alpha: random.pick(alphas),
            ...transpose,
          });
          expectQGemm(wg, inputs, options);
          using weights = packed(wg, inputs.b as Matrix, transpose.transB);
          const out = place(wg, random.pick(placeNames), output, [m, n], random);
          expectQGemm(wg, { ...inputs, b: weights }, { ...options, transB: false, out });
          drop(out);
        }
      }
    }
  });

  it.each([
    ['M', 0, n, k],
    ['N', m, 0, k],
    ['M and N', 0, 0, k],
    ['M, N and K', 0, 0, 0],
  ])('gives an empty result where %s is 0', (_, rows, columns, depth) => {
    const random = new Random(8);
    for (const where of placeNames) {
      for (const output of outputs) {
        const { inputs, options } = draw(wg, random, {
          types,
          sizes: [rows, columns, depth],
          where,
          output,
          c: [rows, columns],
        });
        const y = expectQGemm(wg, inputs, options);
        expect(y.shape).toEqual([rows, columns]);
        const out = place(wg, where, output, [rows, columns], random);
        expectQGemm(wg, inputs, { ...options, out });
        const weights = packed(wg, inputs.b as Matrix);
        expect(weights.shape).toEqual([depth, columns]);
        expectQGemm(wg, { ...inputs, b: weights }, options);
        const bad = { ...inputs, c: int32([7, 7], ...Array<number>(49).fill(0)) } as QGemmInputs;
        expect(() => wg.qgemm(bad, options), 'shapes are checked none the less').toThrow(GemmError);
        dropAll(inputs, out, weights);
      }
    }
  });

  it('is exact with operands and zero points at the ends of their ranges, at K = 4096', () => {
    const [rangeA, rangeB] = [quantized[types.a], quantized[types.b]];
    const ends = ({ min, max }: { min: number; max: number }) => [min, max];
    for (const rows of [1, 2, 3, 4, 24]) {
      for (const a of ends(rangeA)) {
        for (const b of ends(rangeB)) {
          const operandA = tensor(types.a, [rows, 4096], Array<number>(rows * 4096).fill(a));
          const operandB = tensor(types.b, [4096, 3], Array<number>(4096 * 3).fill(b));
          using weights = wg.pack(operandB as QGemmInputs['a'], { op: 'qgemm' });
          for (const aZeroPoint of [undefined, ...ends(rangeA)]) {
            for (const bZeroPoint of [undefined, ...ends(rangeB)]) {
              const wanted = Math.fround(4096 * (a - (aZeroPoint ?? 0)) * (b - (bZeroPoint ?? 0)));
              for (const either of [operandB, weights]) {
                const inputs = {
                  a: operandA,
                  aScale: 1,
                  aZeroPoint,
                  b: either,
                  bScale: 1,
                  bZeroPoint,
                } as QGemmInputs;
                const { data } = wg.qgemm(inputs);
                expect(
                  data.every((value) => value === wanted),
                  `${a} - ${aZeroPoint}, ${b} - ${bZeroPoint}: ${data[0]}, not ${wanted}`,
                ).toBe(true);
              }
            }
          }
        }
      }
    }
  });

  it('wraps sums that int32 does not hold', () => {
    const random = new Random(9);
    const [lowA, highA] = [quantized[types.a].min, quantized[types.a].max];
    const [lowB, highB] = [quantized[types.b].min, quantized[types.b].max];
    const depth = 40_000;
    const a = tensor(types.a, [3, depth], Array<number>(3 * depth).fill(highA));
    const b = tensor(types.b, [depth, 2], Array<number>(2 * depth).fill(highB));
    const { inputs } = draw(wg, random, { types, sizes: [3, 2, depth], b });
    const wide = { ...inputs, a, aScale: 1, aZeroPoint: lowA, b, bScale: 1, bZeroPoint: lowB };
    expect(depth * (highA - lowA) * (highB - lowB)).toBeGreaterThan(2 ** 31);
    const wanted = Math.fround((depth * (highA - lowA) * (highB - lowB)) | 0);
    expect(valuesOf(expectQGemm(wg, wide))).toEqual(Array(6).fill(wanted));
    using weights = packed(wg, b);
    expectQGemm(wg, { ...wide, b: weights });
    for (const c of [2 ** 31 - 1, -(2 ** 31)]) expectQGemm(wg, { ...wide, c });
  });

  it('repeats the elements of an input that has stride 0', () => {
    const random = new Random(10);
    const a = { ...tensor(types.a, [k], Array(k).fill(3)), shape: [m, k], strides: [0, 1] };
    const b = { ...tensor(types.b, [k], Array(k).fill(5)), shape: [k, n], strides: [1, 0] };
    const c = { ...int32([], 9), shape: [m, n], strides: [0, 0] };
    const { inputs, options } = draw(wg, random, { types, sizes: [m, n, k], b });
    expectQGemm(wg, { ...inputs, a, c }, options);
    using weights = packed(wg, b);
    expectQGemm(wg, { ...inputs, a, b: weights, c }, options);
  });
});

describe('packed weights', () => {
  it.each(quantizedTypes)('of %s tell what they are', (dtype) => {
    const b = new Random(11).tensor(dtype, [19, 37]);
    for (const trans of [false, true]) {
      using weights = packed(wg, b, trans);
      expect(weights).toBeInstanceOf(PackedWeights);
      expect(weights).toMatchObject({
        op: 'qgemm',
        dtype,
        shape: trans ? [37, 19] : [19, 37],
        disposed: false,
      });
      expect(weights.byteLength).toBeGreaterThanOrEqual(19 * 37);
    }
  });

  it('stay 8 bits an element', () => {
    using weights = packed(wg, new Random(12).tensor('uint8', [512, 512]));
    expect(weights.byteLength).toBeLessThan(512 * 512 * 1.02);
  });

  describe.each(quantizedTypes)('of %s', (dtype) => {
    it.each(placeNames)(
      'serve any A, scales, zero points and M from 1 to 40, packed from %s',
      (where) => {
        const random = new Random(13);
        const [columns, depth] = [37, 19];
        for (const trans of [false, true]) {
          const b = place(wg, where, dtype, trans ? [columns, depth] : [depth, columns], random);
          using weights = packed(wg, b, trans);
          random.fill(b.data, dtype); // a copy is used
          for (let rows = 1; rows <= 40; ++rows) {
            const types = { a: random.pick(quantizedTypes), b: dtype };
            const whereA = random.pick(placeNames);
            const c = random.pick([undefined, [rows, columns], [rows, 1], [columns], 5]);
            const drawn = draw(wg, random, {
              types,
              sizes: [rows, columns, depth],
              where: whereA,
              b: weights,
              c,
              output: random.pick(outputs),
              alpha: random.pick(alphas),
              transA: random.pick([false, true]),
            });
            expectQGemm(
              wg,
              drawn.inputs,
              drawn.options,
              `M = ${rows}, A in ${whereA}, trans ${trans}`,
            );
            dropAll({ ...drawn.inputs, b: null });
          }
          drop(b);
        }
      },
    );
  });

  it('take any number but 0 as true for trans', () => {
    const b = tensor('int8', [1, 2], [3, 4]) as QGemmInputs['a'];
    for (const trans of [true, 1, -1, 0.5, Infinity])
      expect(wg.pack(b, { op: 'qgemm', trans }).shape, String(trans)).toEqual([2, 1]);
    for (const trans of [false, 0, -0, undefined])
      expect(wg.pack(b, { op: 'qgemm', trans } as never).shape, String(trans)).toEqual([1, 2]);
  });

  it('allow a transB that is false', () => {
    const random = new Random(14);
    const { inputs } = draw(wg, random, { types: { a: 'int8', b: 'int8' }, sizes: [m, n, k] });
    using weights = packed(wg, inputs.b as Matrix);
    expect(wg.qgemm({ ...inputs, b: weights } as QGemmInputs, { transB: 0 })).toEqual(
      wg.qgemm(inputs as QGemmInputs),
    );
  });
});

describe('results', () => {
  /** Accumulators through the epilogue: they are C, and the product is nothing. */
  const requantize = (
    acc: readonly number[],
    output: Quantized,
    zeroPoint: number,
    scales: Scales,
  ): number[] => {
    const [alpha, aScale, bScale, yScale] = scales;
    const length = acc.length;
    const yZeroPoint = new arrayClasses[output](1) as Int8Array;
    yZeroPoint[0] = zeroPoint;
    const results = [0, 1, 3].map((depth) => {
      const a = { data: new Uint8Array(depth), shape: [1, depth] };
      const b = { data: new Int8Array(depth * length).fill(77), shape: [depth, length] };
      const c = { data: Int32Array.from(acc), shape: [length] };
      return Array.from(wg.qgemm({ a, aScale, b, bScale, c, yScale, yZeroPoint }, { alpha }).data);
    });
    for (const result of results)
      expect(result, 'with a product of zeros, or none').toEqual(results[0]);
    return results[0] as number[];
  };
  type Scales = readonly [alpha: number, a: number, b: number, y: number];

  it('are rounded half to even, before the zero point is added', () => {
    const half: Scales = [2, 0.25, 4, 4];
    const acc = [-7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7];
    const wanted = [-4, -3, -2, -2, -2, -1, 0, 0, 0, 1, 2, 2, 2, 3, 4];
    for (const zeroPoint of [0, 1, 2, -1, -100, 100]) {
      expect(requantize(acc, 'int8', zeroPoint, half)).toEqual(
        wanted.map((value) => value + zeroPoint),
      );
      const above = Math.abs(zeroPoint) + 9;
      expect(requantize(acc, 'uint8', above, half)).toEqual(wanted.map((value) => value + above));
    }
    expect(requantize(acc, 'int8', 5, [-2, 0.25, 4, 4]), 'alpha turns signs').toEqual(
      wanted.map((value) => 5 - value),
    );
  });

  it('saturate', () => {
    const acc = [
      -(2 ** 31),
      -1000,
      -129,
      -128,
      -127,
      0,
      126,
      127,
      128,
      255,
      256,
      1000,
      2 ** 31 - 1,
    ];
    for (const output of quantizedTypes) {
      const { min, max } = quantized[output];
      for (const zeroPoint of [min, 0, 1, max]) {
        const wanted = acc.map((value) => Math.min(Math.max(value + zeroPoint, min), max));
        expect(requantize(acc, output, zeroPoint, [1, 1, 1, 1]), `${output}, ${zeroPoint}`).toEqual(
          wanted,
        );
      }
    }
    expect(
      requantize([-(2 ** 31), -1, 0, 1, 2 ** 31 - 1], 'int8', 3, [1, 1e30, 1, 1]),
      'from beyond int32',
    ).toEqual([-128, -128, 3, 127, 127]);
    expect(
      requantize([-(2 ** 31), -1, 0, 1, 2 ** 31 - 1], 'uint8', 3, [3, 1e38, 1, 1]),
      'from infinity',
    ).toEqual([0, 0, 3, 255, 255]);
  });

  // Each of these orders of factors would round to the other side.
  it.each<[what: string, scales: Scales, acc: number, wanted: number]>([
    ['b / y first', [1, 2.2, 2.3, 9], 225, 127],
    ['a * b first', [4.4, 2.5, 1.8, 2.4], 6, 49],
    ['a / y first', [0.5, 8.7, 5, 9], 18, 44],
    ['alpha last', [7.5, 0.1, 7.4, 2.9], 29, 56],
    ['no rounding between', [2.3, 0.6, 0.1, 9.6], 800, 11],
    ['1 / y', [1, 1.8, 2.7, 4.8], 120, 121],
    ['no rounding of the result to float32', [1, 1.3, 10, 7.2], 18, 32],
  ])('are not scaled with %s', (_, scales, acc, wanted) => {
    expect(requantize(Array<number>(19).fill(acc), 'int8', 0, scales)).toEqual(
      Array(19).fill(wanted),
    );
  });

  it('are accumulators rounded to float32, and alpha is', () => {
    const one = { data: Uint8Array.of(1), shape: [1, 1] };
    const value = (c: number, aScale = 1, alpha = 1) =>
      wg.qgemm({ a: one, aScale, aZeroPoint: 1, b: one, bScale: 1, c }, { alpha })
        .data[0] as number;
    expect(value(2 ** 24 + 1)).toBe(2 ** 24);
    expect(value(2 ** 24 + 3)).toBe(2 ** 24 + 4);
    expect(value(2 ** 31 - 1)).toBe(2 ** 31);
    expect(value(1, 1, 0.1)).toBe(Math.fround(0.1));
    expect(value(1, 1, 1 + 2 ** -30)).toBe(1);
    expect(value(3, 2 ** -149)).toBe(3 * 2 ** -149);
    expect(value(3, 2 ** -149, 0.25), 'a scale that vanishes').toBe(0);
    expect(value(2 ** 30, 2 ** 127)).toBe(Infinity);
    expect(value(7, 1, 0)).toBe(0);
    expect(value(0, 1, -1)).toBe(-0);
  });

  it('have the type of a zero point that is an array, and of A if it is a number', () => {
    for (const types of typePairs) {
      const { inputs } = draw(wg, new Random(15), { types, sizes: [m, n, k] });
      const y = (yZeroPoint: unknown) =>
        expectQGemm(wg, { ...inputs, yScale: 1, yZeroPoint: yZeroPoint as number }).dtype;
      expect(y(5)).toBe(types.a);
      expect(y(Int8Array.of(-5))).toBe('int8');
      expect(y(Uint8Array.of(250))).toBe('uint8');
    }
  });

  it('have arrays of their own', () => {
    const { inputs } = draw(wg, new Random(16), {
      types: { a: 'int8', b: 'uint8' },
      sizes: [m, n, k],
      output: 'int8',
    });
    const [first, second] = [expectQGemm(wg, inputs), expectQGemm(wg, inputs)];
    expect(first.data.buffer).not.toBe(second.data.buffer);
    expect(first.data.buffer.byteLength).toBe(m * n);
  });
});

describe('out', () => {
  it.each(outputs)('of %s in the middle of memory leaves what is around it', (output) => {
    const random = new Random(17);
    for (const where of ['an array', 'the heap'] as const) {
      for (const rows of [1, 2, 3, 4, 24]) {
        for (const columns of [1, 2, 7, 8, 9, 15, 16, 17, 31, 33]) {
          const around = place(wg, where, output, [rows * columns + 64], random);
          const { inputs, options } = draw(wg, random, {
            types: { a: 'uint8', b: 'int8' },
            sizes: [rows, columns, k],
            where,
            output,
          });
          const weights = packed(wg, inputs.b as Matrix);
          const [start, end] = [random.between(0, 63), rows * columns];
          const out = { data: around.data.subarray(start, start + end), shape: [rows, columns] };
          const before = snapshot(around).data;
          expectQGemm(wg, inputs, { ...options, out });
          expectQGemm(wg, { ...inputs, b: weights }, { ...options, out });
          const after = snapshot(around).data;
          for (const data of [before, after] as Int8Array[]) data.fill(0, start, start + end);
          expect(after, `${rows} x ${columns} in ${where}`).toEqual(before);
          dropAll(inputs, around, weights);
        }
      }
    }
  });

  it('may lie between the rows of inputs', () => {
    const random = new Random(18);
    const buffer = random.fill(new Int8Array(6 * 30)).buffer;
    const head = (index: number) => ({
      data: new Int8Array(buffer, 6 * index, 5 * 30 + 6),
      shape: [6, 6],
      strides: [30, 1],
    });
    const { inputs } = draw(wg, random, {
      types: { a: 'int8', b: 'int8' },
      sizes: [6, 6, 6],
      output: 'int8',
      one: 'a number',
    });
    const all = { ...inputs, a: snapshot(head(0)), b: snapshot(head(2)) };
    const alone = expectQGemm(wg, all);
    const before = new Int8Array(buffer.slice(0));
    wg.qgemm({ ...all, a: head(0), b: head(2) } as QGemmInputs, { out: head(1) });
    const after = new Int8Array(buffer);
    const wanted = before.map((value, i) =>
      Math.floor(i / 6) % 5 === 1
        ? (alone.data[6 * Math.floor(i / 30) + (i % 6)] as number)
        : value,
    );
    expect(after).toEqual(wanted);
  });

  it('and inputs may be parts of one heap tensor', () => {
    using heap = wg.alloc('uint8', [300]);
    new Random(19).fill(heap.data);
    const part = (at: number, shape: number[]) => ({
      data: heap.data.subarray(at, at + count(shape)),
      shape,
    });
    const scale = tensor('float32', [], [0.01]);
    const inputs = {
      a: part(0, [m, k]),
      aScale: scale,
      aZeroPoint: part(290, [1]),
      b: part(3, [k, n]), // overlaps a
      bScale: scale,
      bZeroPoint: part(200, [n]),
      yScale: scale,
      yZeroPoint: part(299, []),
    };
    expectQGemm(wg, inputs, { out: part(100, [m, n]) });
  });
});

it('transA and transB take any number but 0 as true', () => {
  const a = { data: Int8Array.of(1, 2), shape: [2, 1] };
  const b = { data: Int8Array.of(3, 4), shape: [1, 2] };
  const y = (flag: unknown) =>
    Array.from(
      wg.qgemm({ a, aScale: 1, b, bScale: 1 }, { transA: flag, transB: flag } as object).data,
    );
  for (const flag of [true, 1, -1, 0.5, Infinity]) expect(y(flag), String(flag)).toEqual([11]);
  for (const flag of [false, 0, -0, undefined]) expect(y(flag), String(flag)).toEqual([3, 4, 6, 8]);
});

describe('explain', () => {
  const bytes = { float32: 4, int8: 1, uint8: 1 };

  it.each(typePairs)(
    'tells sizes, kernel, copies and scratch of $a x $b, and computes nothing',
    (types) => {
      const random = new Random(20);
      const kernels = new Map<string, number[]>();
      for (let rows = 1; rows <= 40; ++rows) {
        for (const output of outputs) {
          const { inputs, options } = draw(wg, random, {
            types,
            sizes: [rows, 16, 8],
            c: [16],
            output,
            one: 'a number',
            bScale: '[N]',
            bZeroPoint: 'a number',
          });
          const out = place(wg, 'an array', output, [rows, 16], random);
          const before = snapshot(out);
          using weights = packed(wg, inputs.b as Matrix);
          const args = inputs as QGemmInputs;
          const plan = wg.explain('qgemm', args, { ...options, out } as object);
          expect(plan).toMatchObject({
            op: 'qgemm',
            m: rows,
            n: 16,
            k: 8,
            threads: 1,
            direct: false,
          });
          expect(wg.info.kernels.find(({ name }) => name === plan.kernel)).toMatchObject({
            dtype: 'int8',
            tile: plan.tile,
          });
          expect(plan.packs, 'B is not packed yet').toEqual({ a: true, b: true });
          const ofArrays = rows * 8 + 4 * 16 + 4 * 16 + bytes[output] * rows * 16; // A, b_scale, C and Y
          const ofZeroPoint = output === 'float32' || output === types.a ? 0 : 1;
          expect(plan.copies).toBe(ofArrays + ofZeroPoint + 8 * 16);
          expect(wg.explain('qgemm', args, options).copies, 'a fresh Y is copied out').toBe(
            plan.copies,
          );
          const stored = wg.explain('qgemm', { ...args, b: weights }, options);
          expect(stored.copies).toBe(plan.copies - 8 * 16);
          // If the relaxed dot product of the engine is exact for 8 bits, there are kernels for
          // packed weights only.
          if (!stored.kernel.includes('_relaxed')) expect(stored.kernel).toBe(plan.kernel);
          // A skinny GEMM reads B as it is stored. With more rows B is packed once for all of them.
          expect(stored.packs).toEqual({
            a: true,
            b: !/^i8_(\d+x\d+c2|1x32c4)__/.test(stored.kernel),
          });
          expect(stored.scratch).toBeLessThanOrEqual(plan.scratch);
          expect(out.data).toEqual(before.data);
          kernels.set(plan.kernel, [...(kernels.get(plan.kernel) ?? []), rows]);
        }
      }
      const ranges = [...kernels].map(([kernel, rows]) => [
        kernel,
        Math.min(...rows),
        Math.max(...rows),
      ]);
      // B that is not packed takes a relaxed dot product if that is exact for any B.
      const dot = relaxedDots(wg).find((name) =>
        /^i8_4x\d+c4__relaxed_dot_(unsigned|signed_masked)$/.test(name),
      );
      expect(ranges).toEqual([
        ['i8_1x32c2__simd128', 1, 1],
        ['i8_2x16c2__simd128', 2, 2],
        ...(dot
          ? [
              ['i8_4x8c2__simd128', 3, 4],
              [dot, 5, 40],
            ]
          : [
              ['i8_4x8c2__simd128', 3, 23],
              ['i8_i16_4x8c2__simd128', 24, 40],
            ]),
      ]);
    },
  );

  it('tells that heap tensors and numbers are not copied, and that a strided out goes there and back', () => {
    const random = new Random(21);
    const wanted = {
      types: { a: 'int8', b: 'int8' },
      sizes: [m, n, k],
      one: 'a number',
      bScale: 'a number',
      bZeroPoint: '[N]',
    } as const;
    const { inputs } = draw(wg, random, { ...wanted, where: 'the heap', c: [m, n] });
    const [heap, strided] = [
      place(wg, 'the heap', 'float32', [m, n], random),
      place(wg, 'rows with gaps', 'float32', [m, n], random),
    ];
    expect(wg.explain('qgemm', inputs as QGemmInputs, { out: heap } as object).copies).toBe(0);
    expect(wg.explain('qgemm', inputs as QGemmInputs, { out: strided } as object).copies).toBe(
      2 * strided.data.byteLength,
    );
    dropAll(inputs, heap);
  });

  it('names no kernel if there is no product', () => {
    const a = (shape: number[]) => ({ data: new Uint8Array(count(shape)), shape });
    const plan = (rows: number, columns: number, depth: number) =>
      wg.explain('qgemm', { a: a([rows, depth]), aScale: 1, b: a([depth, columns]), bScale: 1 });
    expect(plan(0, 3, 2)).toMatchObject({ kernel: '', m: 0, n: 3, k: 2, scratch: 0, copies: 6 });
    expect(plan(3, 0, 2)).toMatchObject({ kernel: '', m: 3, n: 0, k: 2, scratch: 0, copies: 6 });
    expect(plan(3, 2, 0)).toMatchObject({ kernel: '', m: 3, n: 2, k: 0, copies: 24 });
  });

  it('bounds scratch at any size', () => {
    const one = { data: new Int8Array(1), strides: [0, 0] };
    for (const size of [1, 7, 4096, 4097, 2 ** 31, 2 ** 40]) {
      const plan = wg.explain('qgemm', {
        a: { ...one, shape: [300, size] },
        aScale: 1,
        b: { ...one, shape: [size, 900] },
        bScale: 1,
      });
      expect(plan).toMatchObject({ m: 300, n: 900, k: size });
      expect(plan.scratch, `scratch for K = ${size}`).toBeLessThan(2 ** 25);
    }
  });
});

it('scales and zero points may be bare views of the heap', () => {
  const random = new Random(22);
  const { inputs, options } = draw(wg, random, {
    types: { a: 'uint8', b: 'int8' },
    sizes: [m, n, k],
    where: 'the heap',
  });
  using scales = wg.alloc('float32', [n]);
  scales.data.set(
    vector(
      wg,
      'an array of N',
      'an array',
      'float32',
      n,
      () => random.next() + 0.1,
    ) as Float32Array,
  );
  using zeroPoints = wg.alloc('int8', [n]);
  random.fill(zeroPoints.data);
  expectQGemm(wg, { ...inputs, bScale: scales.data, bZeroPoint: zeroPoints.data }, options);
  dropAll(inputs);
});
