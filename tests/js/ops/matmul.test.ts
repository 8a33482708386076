/**
 * What matmul computes, for every combination of its arguments, against the reference; what it
 * refuses; and its plans.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type DType,
  type Gemm,
  GemmError,
  HeapTensor,
  type MatMulOptions,
  type TensorLike,
} from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import { anything, nearlyRight, ones, seed, small } from '../support/arbitraries.js';
import {
  allTypes,
  arrayClasses,
  bytesOf,
  computedIn,
  dtypeOf,
  dtypes,
  floatTypes,
  integerTypes,
  isFloat,
  set,
  valuesOf,
} from '../support/dtypes.js';
import { expectError, thrown } from '../support/errors.js';
import { referenceMatMul, shapeOfMatMul, type Stack } from '../support/matmul-reference.js';
import { runs, withoutLarge } from '../support/short.js';
import { expectMatMul, gather, layOut, layouts, place, placeNames } from '../support/stacks.js';
import { count, drop, extent, float32, Random, snapshot, tensor } from '../support/tensors.js';

let wg: Gemm;
let other: Gemm;
let theirs: HeapTensor;
let inWorker: WorkerGemm;
beforeAll(async () => {
  wg = await createGemm();
  other = await createGemm();
  theirs = other.alloc('float32', [2, 3, 4]);
  inWorker = await startWorker();
});
afterAll(() => {
  wg.dispose();
  other.dispose();
  inWorker.dispose();
});

const [m, k, n] = [3, 5, 4];
const transposes = [false, true].flatMap((transposeA) =>
  [false, true].map((transposeB) => ({ transposeA, transposeB })),
);
type Transposes = (typeof transposes)[number];

/** Shapes of src and weights before a transpose: [] for a vector, or batch axes. */
type Pair = readonly [src: readonly number[] | 'vector', weights: readonly number[] | 'vector'];
const pairs: readonly Pair[] = [
  ['vector', 'vector'],
  ['vector', []],
  [[], 'vector'],
  ['vector', [2]],
  ['vector', [2, 3]],
  [[2], 'vector'],
  [[2, 1, 3], 'vector'],
  [[], []],
  [[2], []],
  [[], [2]],
  [[2], [2]],
  [[1], [3]],
  [[3], [1]],
  [[1], [1]],
  [[2, 3], [3]],
  [[2, 1], [3]],
  [[3], [2, 1]],
  [
    [2, 3],
    [2, 1],
  ],
  [
    [2, 1],
    [1, 3],
  ],
  [
    [1, 3],
    [2, 3],
  ],
  [[2, 1, 3], []],
  [[], [2, 1, 3]],
  [
    [2, 1, 2],
    [1, 3, 1],
  ],
  [
    [2, 2, 2],
    [2, 1, 2],
  ],
  [
    [1, 3, 1],
    [2, 3, 2],
  ],
];
const shapeOfSrc = (batch: Pair[0], flags: Partial<Transposes>, rows = m, depth = k) =>
  batch === 'vector' ? [depth] : [...batch, ...(flags.transposeA ? [depth, rows] : [rows, depth])];
const shapeOfWeights = (batch: Pair[1], flags: Partial<Transposes>, columns = n, depth = k) =>
  batch === 'vector'
    ? [depth]
    : [...batch, ...(flags.transposeB ? [columns, depth] : [depth, columns])];
const shapeOf = (src: readonly number[], weights: readonly number[], flags: object = {}) =>
  shapeOfMatMul(src, weights, flags) ?? expect.fail('no result');

/** All shapes that broadcast to a shape in one direction. */
const biasShapes = (shape: readonly number[]): number[][] =>
  shape.reduceRight<number[][]>(
    (all, size) => [
      ...all,
      ...all
        .filter((s) => s.length === (all.at(-1) as number[]).length)
        .flatMap((s) => [
          [1, ...s],
          [size, ...s],
        ]),
    ],
    [[]],
  );

describe.each(dtypes)('%s', (dtype) => {
  describe.each(placeNames)('with operands in %s', (where) => {
    it('computes every rank, broadcast and transpose, with and without bias', () => {
      const random = new Random(1);
      for (const flags of transposes) {
        for (const [a, b] of pairs) {
          const src = place(wg, where, dtype, shapeOfSrc(a, flags), random);
          const weights = place(wg, where, dtype, shapeOfWeights(b, flags), random);
          const shape = shapeOf(src.shape, weights.shape, flags);
          const bias = random.pick([undefined, null, ...biasShapes(shape)]);
          const added = bias && place(wg, where, dtype, bias, random);
          expectMatMul(
            wg,
            src,
            weights,
            added,
            flags,
            JSON.stringify({ ...flags, src: src.shape, weights: weights.shape, bias }),
          );
          drop(src, weights, added);
        }
      }
    });

    it('fills an out in every place, with bias, and if out is bias', () => {
      const random = new Random(2);
      for (const [index, whereOut] of placeNames.entries()) {
        for (const [a, b] of pairs.filter((_, i) => i % 5 === index % 5)) {
          const flags = random.pick(transposes);
          const src = place(wg, where, dtype, shapeOfSrc(a, flags), random);
          const weights = place(wg, where, dtype, shapeOfWeights(b, flags), random);
          const shape = shapeOf(src.shape, weights.shape, flags);
          const bias = place(
            wg,
            random.pick(placeNames),
            dtype,
            random.pick(biasShapes(shape)),
            random,
          );
          const out = place(wg, whereOut, dtype, shape, random);
          const what = `${whereOut}, ${JSON.stringify({ ...flags, src: src.shape, weights: weights.shape, bias: bias.shape })}`;
          expectMatMul(
            wg,
            src,
            weights,
            random.pick([bias, undefined, 3]),
            { ...flags, out },
            what,
          );
          expectMatMul(wg, src, weights, out, { ...flags, out }, `${what}, being bias`);
          drop(src, weights, bias, out);
        }
      }
    });
  });

  it('takes every bias that broadcasts to dst', () => {
    const random = new Random(3);
    for (const [a, b] of dtype === 'float32' ? pairs : pairs.filter((_, i) => i % 6 === 4)) {
      const src = random.tensor(dtype, shapeOfSrc(a, {}));
      const weights = random.tensor(dtype, shapeOfWeights(b, {}));
      const shape = shapeOf(src.shape, weights.shape);
      for (const biasShape of biasShapes(shape)) {
        const bias = place(wg, random.pick(placeNames), dtype, biasShape, random);
        expectMatMul(wg, src, weights, bias, {}, JSON.stringify({ dst: shape, bias: biasShape }));
        drop(bias);
      }
    }
  });

  it('takes a bias that is a number', () => {
    const random = new Random(4);
    const bits = bytesOf(dtype) * 8;
    const numbers = isFloat(dtype)
      ? [0, -0, 1, 0.1, 1 / 3, 2 ** -30]
      : dtype.startsWith('u')
        ? [0, 7, Math.min(2 ** bits - 1, 2 ** 53)]
        : [0, -7, Math.min(2 ** (bits - 1) - 1, 2 ** 53), -(2 ** (bits - 1))];
    const bigints =
      dtype === 'int64'
        ? [5n, -(2n ** 63n), 2n ** 63n - 1n]
        : dtype === 'uint64'
          ? [5n, 2n ** 64n - 1n]
          : [];
    for (const [a, b] of pairs) {
      const src = random.tensor(dtype, shapeOfSrc(a, {}));
      const weights = random.tensor(dtype, shapeOfWeights(b, {}));
      for (const bias of [...numbers, ...bigints])
        expectMatMul(wg, src, weights, bias, {}, String(bias));
    }
  });

  it('takes any alpha', () => {
    const random = new Random(21);
    const numbers = [1, 0, -0, -2, 3, 0.37, 1 + 1e-12, 2 ** 31, -(2 ** 53)];
    if (isFloat(dtype)) numbers.push(NaN, Infinity, -Infinity, 1e300);
    const factors =
      bytesOf(dtype) < 8 || isFloat(dtype) ? numbers : [...numbers, 0n, 3n, -(2n ** 62n) - 1n];
    for (const alpha of factors) {
      for (const [a, b] of pairs) {
        const flags = { ...random.pick(transposes), alpha };
        const where = random.pick(placeNames);
        const src = place(wg, where, dtype, shapeOfSrc(a, flags), random);
        const weights = place(wg, where, dtype, shapeOfWeights(b, flags), random);
        const shape = shapeOf(src.shape, weights.shape, flags);
        const out = place(wg, where, dtype, shape, random);
        const bias = random.pick([null, 3, random.tensor(dtype, random.pick(biasShapes(shape)))]);
        const what = `alpha ${alpha}, ${where}`;
        expectMatMul(wg, src, weights, null, flags, what);
        expectMatMul(wg, src, weights, bias, flags, `${what}, bias`);
        expectMatMul(wg, src, weights, null, { ...flags, out }, `${what}, out`);
        expectMatMul(wg, src, weights, out, { ...flags, out }, `${what}, bias is out`);
        if (bytesOf(dtype) === 2)
          expectMatMul(wg, src, weights, bias, { ...flags, outType: 'float32' }, `${what}, wide`);
        if (b !== 'vector') {
          using packed = wg.pack(weights, { op: 'matmul', trans: flags.transposeB });
          expectMatMul(wg, src, weights, bias, { ...flags, out }, `${what}, packed`, packed);
        }
        drop(src, weights, bias, out);
      }
      const [empty, none] = [random.tensor(dtype, [m, 0]), random.tensor(dtype, [0, n])];
      const ofNone = (bias: number | null) =>
        valuesOf(wg.matmul(empty, none, bias, { alpha })).map(Number);
      expect(ofNone(null)).toEqual(Array(m * n).fill(0));
      expect(ofNone(3)).toEqual(Array(m * n).fill(3));
    }
  });

  it('takes operands from any mix of arrays and the heap', () => {
    const random = new Random(5);
    for (let i = 0; i < 150; ++i) {
      const flags = random.pick(transposes);
      const [a, b] = random.pick(pairs);
      const places = [0, 0, 0, 0].map(() => random.pick(placeNames)) as [
        (typeof placeNames)[0],
        'an array',
        'an array',
        'an array',
      ];
      const src = place(wg, places[0], dtype, shapeOfSrc(a, flags), random);
      const weights = place(wg, places[1], dtype, shapeOfWeights(b, flags), random);
      const shape = shapeOf(src.shape, weights.shape, flags);
      const bias = place(wg, places[2], dtype, random.pick(biasShapes(shape)), random);
      const out = place(wg, places[3], dtype, shape, random);
      expectMatMul(
        wg,
        src,
        weights,
        bias,
        { ...flags, out },
        JSON.stringify({ flags, a, b, places }),
      );
      drop(src, weights, bias, out);
    }
  });

  it('computes sizes on both sides of every tile, in a batch', () => {
    const random = new Random(6);
    for (const rows of [1, 2, 3, 4, 5, 8, 9]) {
      for (const columns of [1, 3, 4, 7, 8, 9, 16, 17, 31]) {
        for (const depth of [1, 2, 4, 5, 9]) {
          const flags = random.pick(transposes);
          const [a, b] = random.pick<Pair>([
            [[2], []],
            [[2], [2]],
            [[], [2]],
            [
              [1, 2],
              [2, 1],
            ],
          ]);
          const src = random.tensor(dtype, shapeOfSrc(a, flags, rows, depth));
          const weights = random.tensor(dtype, shapeOfWeights(b, flags, columns, depth));
          const bias = random.pick([
            undefined,
            random.tensor(dtype, [rows, 1]),
            random.tensor(dtype, [columns]),
          ]);
          expectMatMul(
            wg,
            src,
            weights,
            bias,
            flags,
            JSON.stringify({ flags, a, b, rows, columns, depth, bias: bias?.shape }),
          );
        }
      }
    }
  });

  it.each(
    withoutLarge([
      ['deep enough to split K', [2], [], 3, 5, 9001],
      ['deep enough to split K, weights for each', [2], [2], 2, 3, 4097],
      ['deep enough to split K, weights shared by a batch of two axes', [2, 2], [2, 1], 2, 3, 4099],
      ['wide enough to split N', [2], [], 2, 20001, 2],
      ['wide enough to split N, weights shared among rows with gaps', [2, 1], [1, 2], 1, 16400, 2],
      ['tall enough to split M', [3], [], 6000, 2, 3],
      ['of many small ones', [300], [300], 2, 3, 2],
      ['of many small ones with the same weights', [300], [1], 2, 3, 2],
    ] as const),
  )('computes products %s', (_, a, b, rows, columns, depth) => {
    const random = new Random(7);
    const all =
      dtype === 'float32'
        ? [transposes[0], transposes[3]]
        : [transposes[dtypes.indexOf(dtype) % 4]];
    for (const flags of all as Transposes[]) {
      const src = place(
        wg,
        'gaps after every axis',
        dtype,
        shapeOfSrc(a, flags, rows, depth),
        random,
      );
      const weights = place(
        wg,
        'the heap',
        dtype,
        shapeOfWeights(b, flags, columns, depth),
        random,
      );
      expectMatMul(
        wg,
        flags.transposeA ? src : gather(src),
        weights,
        random.tensor(dtype, [rows, 1]),
        flags,
      );
      drop(weights);
    }
  });

  // A batch that shares weights is one tall product if the rows of src, dst and bias continue from
  // matrix to matrix, and only then.
  describe('with weights for a whole batch', () => {
    it.each([1, 2, m])('and %i rows, takes any strides of src, bias and out', (rows) => {
      const random = new Random(8);
      const names = Object.keys(layouts) as (keyof typeof layouts)[];
      for (const batch of [[4], [2, 3], [2, 1, 3]]) {
        const shape = [...batch, rows, n];
        const weights = random.tensor(
          dtype,
          random.pick([
            [k, n],
            [1, k, n],
          ]),
        );
        const strides = (t: TensorLike) => ('strides' in t ? t.strides : undefined);
        for (const bias of [undefined, ...biasShapes(shape)]) {
          for (const together of [true, false]) {
            const layout = () =>
              together ? 'an array' : random.pick([...names, 'an array'] as const);
            const src = place(wg, layout(), dtype, [...batch, rows, k], random);
            const out = place(wg, layout(), dtype, shape, random);
            const c = bias && place(wg, layout(), dtype, bias, random);
            expectMatMul(
              wg,
              src,
              weights,
              c,
              { out },
              JSON.stringify({ batch, rows, bias, src: strides(src), out: strides(out) }),
            );
          }
        }
      }
    });

    it('reads rows that lie at any distance', () => {
      const random = new Random(9);
      const weights = random.tensor(dtype, [k, n]);
      for (const rows of [1, 2]) {
        for (const rowStride of [0, k, k + 1, 2 * k]) {
          for (const batchStride of [0, 1, k, rowStride, rows * rowStride, rows * rowStride + 1]) {
            const strides = [batchStride, rowStride, 1];
            const src = layOut(dtype, [3, rows, k], strides);
            random.fill(src.data, dtype);
            expectMatMul(
              wg,
              src,
              weights,
              random.pick([undefined, random.tensor(dtype, [3, 1, 1])]),
              {},
              JSON.stringify({ rows, strides }),
            );
          }
        }
      }
    });
  });

  it('gives bias, or zeros, if K is 0', () => {
    const random = new Random(10);
    for (const flags of transposes) {
      for (const [a, b] of pairs) {
        const src = place(wg, random.pick(placeNames), dtype, shapeOfSrc(a, flags, m, 0), random);
        const weights = place(
          wg,
          random.pick(placeNames),
          dtype,
          shapeOfWeights(b, flags, n, 0),
          random,
        );
        const shape = shapeOf(src.shape, weights.shape, flags);
        const y = expectMatMul(wg, src, weights, null, flags);
        expect(valuesOf(y).every((value) => Object.is(Number(value), 0))).toBe(true);
        const bias = place(
          wg,
          random.pick(placeNames),
          dtype,
          random.pick(biasShapes(shape)),
          random,
        );
        const out = place(wg, random.pick(placeNames), dtype, shape, random);
        expectMatMul(wg, src, weights, bias, { ...flags, out });
        expectMatMul(wg, src, weights, 4, flags);
        expectMatMul(wg, src, weights, null, { ...flags, out });
        drop(src, weights, bias, out);
      }
    }
  });

  it('gives an empty result if M, N or an axis of the batch is 0', () => {
    const random = new Random(11);
    const empty: [src: number[], weights: number[], dst: number[]][] = [
      [
        [0, k],
        [k, n],
        [0, n],
      ],
      [
        [m, k],
        [k, 0],
        [m, 0],
      ],
      [
        [0, k],
        [k, 0],
        [0, 0],
      ],
      [
        [0, 0],
        [0, 0],
        [0, 0],
      ],
      [[k], [k, 0], [0]],
      [[0, k], [k], [0]],
      [
        [2, 0, k],
        [2, k, n],
        [2, 0, n],
      ],
      [
        [0, m, k],
        [k, n],
        [0, m, n],
      ],
      [
        [0, m, k],
        [1, k, n],
        [0, m, n],
      ],
      [
        [0, m, k],
        [0, k, n],
        [0, m, n],
      ],
      [
        [1, m, k],
        [0, k, n],
        [0, m, n],
      ],
      [
        [m, k],
        [2, 0, k, n],
        [2, 0, m, n],
      ],
      [
        [0, 1, m, k],
        [3, k, n],
        [0, 3, m, n],
      ],
      [
        [2, 1, m, k],
        [0, k, n],
        [2, 0, m, n],
      ],
      [
        [2, 0, m, 0],
        [2, 1, 0, n],
        [2, 0, m, n],
      ],
      [
        [0, k],
        [2, 0, 3, k, n],
        [2, 0, 3, 0, n],
      ],
    ];
    for (const where of placeNames) {
      for (const [shapeA, shapeB, dst] of empty) {
        const src = place(wg, where, dtype, shapeA, random);
        const weights = place(wg, where, dtype, shapeB, random);
        const out = place(wg, where, dtype, dst, random);
        const y = expectMatMul(wg, src, weights);
        expect(y.shape).toEqual(dst);
        for (const bias of [1, out, random.tensor(dtype, biasShapes(dst).at(-2) as number[])])
          expectMatMul(wg, src, weights, bias, { out });
        expect(
          () => wg.matmul(src, weights, random.tensor(dtype, [7, 7, 7])),
          'shapes are checked none the less',
        ).toThrow(GemmError);
        drop(src, weights, out);
      }
    }
  });

  it('repeats the elements of an input that has stride 0', () => {
    const random = new Random(12);
    const repeated = (size: number, shape: number[], strides: number[]) => ({
      ...random.tensor(dtype, [size]),
      shape,
      strides,
    });
    expectMatMul(
      wg,
      repeated(k, [2, m, k], [0, 0, 1]),
      repeated(k, [2, k, n], [0, 1, 0]),
      repeated(1, [2, m, n], [0, 0, 0]),
    );
    expectMatMul(
      wg,
      repeated(m * k, [2, 2, m, k], [0, 0, k, 1]),
      repeated(1, [2, 1, k, n], [0, 0, 0, 0]),
      repeated(2, [2, 1, m, 1], [1, 0, 0, 0]),
    );
    expectMatMul(wg, repeated(1, [k], [0]), repeated(n, [3, k, n], [0, 0, 1]));
  });

  it('ignores the stride of an axis of size 1, however long', () => {
    const far = 2 ** 53 - 1;
    const out = { ...tensor(dtype, [1, 1, 2], [0, 0]), strides: [far, far, 1] };
    const src = { ...tensor(dtype, [1, 1, 1], [3]), strides: [far, far, far] };
    const bias = { ...tensor(dtype, [1, 1, 1], [1]), strides: [far, far, far] };
    expectMatMul(wg, src, { ...tensor(dtype, [1, 1, 2], [4, 5]), strides: [far, far, 1] }, bias, {
      out,
    });
    expect(valuesOf(out).map(Number)).toEqual([13, 16]);
  });

  it('takes any number but 0 as true for transposeA and transposeB, which do nothing to a vector', () => {
    const a = tensor(dtype, [2, 1], [1, 2]);
    const b = tensor(dtype, [1, 2], [3, 4]);
    const vector = tensor(dtype, [2], [1, 2]);
    const y = (src: Stack, weights: Stack, flag: unknown) => {
      const { data, shape } = wg.matmul(src, weights, null, {
        transposeA: flag,
        transposeB: flag,
      } as MatMulOptions);
      return [shape, valuesOf({ data, dtype }).map(Number)];
    };
    for (const flag of [true, 1, -1, 0.5, Infinity, false, 0, -0, undefined]) {
      expect(y(a, b, flag), String(flag)).toEqual(
        flag
          ? [[1, 1], [11]]
          : [
              [2, 2],
              [3, 4, 6, 8],
            ],
      );
      expect(y(vector, vector, flag), String(flag)).toEqual([[], [5]]);
    }
  });

  it('gives each result an array of its own', () => {
    const vector = tensor(dtype, [1], [2]);
    const first = wg.matmul(vector, vector);
    const second = wg.matmul(vector, vector, 1);
    expect([...valuesOf(first), ...valuesOf(second)].map(Number)).toEqual([4, 5]);
    expect(first.data.buffer.byteLength).toBe(bytesOf(dtype));
    expect(first).toEqual({ data: first.data, shape: [], dtype });
  });
});

describe('outType', () => {
  const halves = ['float16', 'bfloat16'] as const;

  it.each(halves)('float32 of %s is the sum before it is rounded', (dtype) => {
    const random = new Random(13);
    for (const where of placeNames) {
      for (const [a, b] of pairs) {
        const flags = random.pick(transposes);
        const src = place(wg, where, dtype, shapeOfSrc(a, flags), random);
        const weights = place(wg, where, dtype, shapeOfWeights(b, flags), random);
        const shape = shapeOf(src.shape, weights.shape, flags);
        const bias = random.pick([
          undefined,
          0.1,
          random.tensor(dtype, random.pick(biasShapes(shape))),
        ]);
        const y = expectMatMul(wg, src, weights, bias, { ...flags, outType: 'float32' }, where);
        expect(y.dtype).toBe('float32');
        const out = place(wg, random.pick(placeNames), 'float32', shape, random);
        expectMatMul(wg, src, weights, bias, { ...flags, out }, `${where}, by out`);
        expectMatMul(
          wg,
          src,
          weights,
          bias,
          { ...flags, out, outType: 'float32' },
          `${where}, by both`,
        );
        expectMatMul(
          wg,
          src,
          weights,
          bias,
          { ...flags, outType: dtype },
          `${where}, of the same type`,
        );
        drop(src, weights, bias, out);
      }
    }
    const [one, tiny] = [tensor(dtype, [2], [1, 2 ** -9]), tensor(dtype, [2], [1, 2 ** -9])];
    expect(wg.matmul(one, tiny, null, { outType: 'float32' }).data[0]).toBe(1 + 2 ** -18);
    expect(valuesOf(wg.matmul(one, tiny))).toEqual([1]);
  });

  it.each(dtypes)('that is %s is what it would be', (dtype) => {
    const random = new Random(14);
    const [src, weights] = [random.tensor(dtype, [2, m, k]), random.tensor(dtype, [k, n])];
    expect(wg.matmul(src, weights, null, { outType: dtype })).toEqual(wg.matmul(src, weights));
    const out = random.tensor(dtype, [2, m, n]);
    expectMatMul(wg, src, weights, 1, { outType: dtype, out });
  });

  it('16-bit types are rounded once', () => {
    // In float32 the sum is a tie of bfloat16; the bias breaks it.
    const src = tensor('bfloat16', [2], [1, 2 ** -8]);
    expect(valuesOf(wg.matmul(src, tensor('bfloat16', [2], [1, 1])))).toEqual([1]);
    expect(valuesOf(wg.matmul(src, tensor('bfloat16', [2], [1, 1]), 2 ** -20))).toEqual([
      1 + 2 ** -7,
    ]);
    expect(
      valuesOf(wg.matmul(src, tensor('bfloat16', [2], [1, 1]), tensor('bfloat16', [], [2 ** -20]))),
    ).toEqual([1 + 2 ** -7]);
    expect(
      valuesOf(wg.matmul(tensor('float16', [1], [65504]), tensor('float16', [1], [2]))),
    ).toEqual([Infinity]);
    expect(
      wg.matmul(tensor('float16', [1], [65504]), tensor('float16', [1], [2]), null, {
        outType: 'float32',
      }).data[0],
    ).toBe(131008);
  });
});

it.each(integerTypes)('%s wraps, and takes bigints if it has 64 bits', (dtype) => {
  const most = dtype.startsWith('u')
    ? 2n ** BigInt(8 * bytesOf(dtype)) - 1n
    : 2n ** BigInt(8 * bytesOf(dtype) - 1) - 1n;
  const ends = { data: new arrayClasses[dtype](6), shape: [2, 3], dtype };
  for (let i = 0; i < 6; ++i) set(ends.data, dtype, i, bytesOf(dtype) === 8 ? most : Number(most));
  const [src, weights] = [ends, { ...ends, shape: [3, 2] }];
  for (const bias of [null, 1, { ...ends, data: ends.data.slice(0, 2), shape: [2] }])
    expectMatMul(wg, src, weights, bias);
  if (bytesOf(dtype) === 8) expectMatMul(wg, src, weights, most);
});

describe.each(floatTypes)('NaN and infinity in %s', (dtype) => {
  it('propagate from src, weights and bias, to their own part of dst alone', () => {
    const random = new Random(15);
    for (const special of [NaN, Infinity, -Infinity]) {
      for (const [rows, columns] of [
        [1, 1],
        [1, 8],
        [2, 5],
        [4, 8],
        [5, 13],
      ] as const) {
        for (const [a, b] of [
          [[3], []],
          [[], [3]],
          [[3], [3]],
          [[3, 1], [2]],
        ] as Pair[]) {
          const src = random.tensor(dtype, shapeOfSrc(a, {}, rows, k));
          const weights = random.tensor(dtype, shapeOfWeights(b, {}, columns, k));
          const shape = shapeOf(src.shape, weights.shape);
          const bias = random.tensor(dtype, random.pick(biasShapes(shape)));
          const inputs = [src, weights, bias] as const;
          const victim = random.pick(inputs);
          set(victim.data, dtype, random.between(0, victim.data.length - 1), special);
          expectMatMul(
            wg,
            ...inputs,
            {},
            `${special} in ${inputs.indexOf(victim)}, ${JSON.stringify({ rows, columns, a, b })}`,
          );
          expectMatMul(wg, src, weights);
        }
      }
    }
  });

  it('meet as IEEE 754 says', () => {
    const sum = (numbers: number[], ...factors: number[]) =>
      valuesOf(
        wg.matmul(
          tensor(dtype, [numbers.length], numbers),
          tensor(dtype, [numbers.length], factors),
        ),
      )[0];
    expect(sum([Infinity, -Infinity], 1, 1)).toBe(NaN);
    expect(sum([Infinity, 1], 1, 1)).toBe(Infinity);
    expect(sum([Infinity], 0)).toBe(NaN);
    expect(sum([0], -Infinity)).toBe(NaN);
    const one = tensor(dtype, [1], [1]);
    expect(valuesOf(wg.matmul(one, one, -Infinity))).toEqual([-Infinity]);
    expect(valuesOf(wg.matmul(one, one, NaN))).toEqual([NaN]);
  });

  it('do not come from what was in out before', () => {
    const random = new Random(16);
    for (const [a, b] of pairs) {
      const [src, weights] = [
        random.tensor(dtype, shapeOfSrc(a, {})),
        random.tensor(dtype, shapeOfWeights(b, {})),
      ];
      const out = random.tensor(dtype, shapeOf(src.shape, weights.shape));
      for (let i = 0; i < out.data.length; ++i) set(out.data, dtype, i, NaN);
      expectMatMul(wg, src, weights, random.pick([null, 1]), { out });
      expectMatMul(
        wg,
        {
          ...src,
          data: src.data.subarray(0, 0),
          shape: src.shape.map((size, axis) => (axis === src.shape.length - 1 ? 0 : size)),
        },
        {
          ...weights,
          data: weights.data.subarray(0, 0),
          shape: weights.shape.map((size, axis) =>
            axis === Math.max(weights.shape.length - 2, 0) ? 0 : size,
          ),
        },
        null,
        { out },
      );
    }
  });
});

describe('tensors of an attention layer, without a copy', () => {
  const [tokens, heads, width] = [7, 3, 4];

  /** Three projections of each token, head by head: (tokens, 3, heads, width). */
  const projections = (dtype: DType, inHeap: boolean) => {
    const whole = inHeap
      ? wg.alloc(dtype, [tokens, 3, heads, width])
      : tensor(dtype, [tokens, 3, heads, width], Array<number>(tokens * 3 * heads * width).fill(0));
    new Random(17).fill(whole.data, dtype);
    const part = (index: number, head?: number) => {
      const [shape, strides] =
        head === undefined
          ? [
              [heads, tokens, width],
              [width, 3 * heads * width, 1],
            ]
          : [
              [tokens, width],
              [3 * heads * width, 1],
            ];
      const start = (index * heads + (head ?? 0)) * width;
      return {
        data: whole.data.subarray(start, start + extent(shape, strides)),
        shape,
        strides,
        dtype,
      };
    };
    return { whole, part };
  };

  it.each(dtypes)('%s: one head of many, and all of them', (dtype) => {
    for (const inHeap of [false, true]) {
      const { whole, part } = projections(dtype, inHeap);
      const scores = expectMatMul(wg, part(0), part(1), null, { transposeB: true });
      expect(scores.shape).toEqual([heads, tokens, tokens]);
      // Each head to its columns of (tokens, heads, width).
      const context = tensor(
        dtype,
        [tokens, heads, width],
        Array<number>(tokens * heads * width).fill(0),
      );
      const all = {
        data: context.data,
        dtype,
        shape: [heads, tokens, width],
        strides: [width, heads * width, 1],
      };
      expectMatMul(wg, scores, part(2), null, { out: all });
      for (let head = 0; head < heads; ++head) {
        const alone = expectMatMul(wg, part(0, head), part(1, head), null, { transposeB: true });
        expect(alone.data).toEqual(
          scores.data.subarray(head * tokens * tokens, (head + 1) * tokens * tokens),
        );
        const data = context.data
          .slice()
          .subarray(head * width, head * width + (tokens - 1) * heads * width + width);
        const out = { data, dtype, shape: [tokens, width], strides: [heads * width, 1] };
        expectMatMul(wg, alone, part(2, head), null, { out });
        expect(gather(out).data).toEqual(
          gather({ ...out, data: context.data.subarray(head * width, head * width + data.length) })
            .data,
        );
      }
      drop(whole);
    }
  });

  it('dst may lie between the heads of src and weights', () => {
    for (const inHeap of [false, true]) {
      const { whole, part } = projections('float32', inHeap);
      const square = tensor(
        'float32',
        [width, width],
        [...new Random(18).fill(new Float32Array(width * width))],
      );
      const before = snapshot(whole).data;
      const alone = expectMatMul(wg, gather(part(0)), square);
      wg.matmul(part(0), square, null, { out: part(2) });
      // Equal except for rounding: another layout may have another kernel.
      Array.from(gather(part(2)).data, Number).forEach((sum, i) =>
        expect(sum).toBeCloseTo(Number(alone.data[i]), 6),
      );
      const after = snapshot(whole).data;
      for (let i = 0; i < after.length; ++i)
        if (Math.floor(i / (heads * width)) % 3 !== 2) expect(after[i]).toBe(before[i]);
      // Heads that are contiguous.
      wg.matmul(part(0, 0), square, part(1, 1), { out: part(1, 1) });
      drop(whole);
    }
  });

  it('inputs may overlap each other', () => {
    const data = new Random(19).fill(new Float32Array(40));
    const part = (start: number, ...shape: number[]) => ({
      data: data.subarray(start, start + count(shape)),
      shape,
    });
    expectMatMul(wg, part(0, 2, 3, 3), part(5, 2, 3, 3), part(7, 3));
    expectMatMul(wg, part(0, 2, 3, 3), part(0, 2, 3, 3), part(0, 2, 3, 3));
  });

  it('parts of one heap tensor, and tensors of another instance by their data', () => {
    using heap = wg.alloc('float32', [100]);
    new Random(20).fill(heap.data);
    const part = (start: number, ...shape: number[]) => ({
      data: heap.data.subarray(start, start + count(shape)),
      shape,
    });
    expectMatMul(wg, part(0, 2, 3, 3), part(2, 3, 4), part(50, 4), { out: part(60, 2, 3, 4) });
    expectMatMul(wg, part(0, 2, 3, 3), part(2, 3, 4), part(60, 2, 3, 4), {
      out: part(60, 2, 3, 4),
    });
    new Random(21).fill(theirs.data as Float32Array);
    expectMatMul(wg, { data: theirs.data, shape: [2, 3, 4] }, { data: theirs.data, shape: [4, 6] });
  });
});

/** src (2, 3, 4), weights (4, 5), a bias of 5, and an out (2, 3, 5). */
function operands() {
  const random = new Random(22);
  const make = (...shape: number[]) => ({
    data: random.fill(new Float32Array(count(shape))),
    shape,
  });
  return { src: make(2, 3, 4), weights: make(4, 5), bias: make(5), out: make(2, 3, 5) };
}

const data = (length: number) => new Float32Array(length);
const ofShape = (...shape: number[]) => ({ data: data(count(shape)), shape });

it.each(dtypes)(
  'an outType or out for %s may be its own type, and float32 for 16 bits',
  (dtype) => {
    const one = tensor(dtype, [1], [1]);
    for (const outType of allTypes) {
      const out = { data: new arrayClasses[outType](1), shape: [], dtype: outType };
      const runs = [{ outType }, { out }, { out, outType }].map((options) => {
        return [
          () => wg.matmul(one, one, null, options as never),
          'outType' in options ? 'outType' : 'out',
        ] as const;
      });
      const allowed = outType === dtype || (outType === 'float32' && bytesOf(dtype) === 2);
      for (const [run, argument] of runs) {
        if (allowed) expect(dtypeOf(run() as Stack)).toBe(outType);
        else expect(thrown(run)).toMatchObject({ op: 'matmul', code: 'DTYPE', argument });
      }
    }
  },
);

describe('when a getter among the arguments calls back', () => {
  const { src, weights } = operands();

  it('the number that is bias stays as in its call', () => {
    const one = float32([1], 1);
    const options = {
      get transposeA() {
        wg.matmul(one, one, 100);
        return false;
      },
    };
    expect(wg.matmul(one, one, 5, options).data[0]).toBe(6);
    const shape = {
      data: new Float32Array([2]),
      get shape() {
        wg.matmul(one, one, 100);
        return [1];
      },
    };
    expect(
      wg.matmul(one, shape, 5, {
        out: {
          data: new Float32Array(1),
          get shape() {
            wg.matmul(one, one, 7);
            return [];
          },
        },
      }).data[0],
    ).toBe(7);
  });

  it.each(['src', 'weights', 'bias', 'out', 'packed'] as const)(
    'what it disposes of is not used: %s',
    (name) => {
      const { inUse } = wg.memory();
      const tensors = {
        src: wg.alloc('float32', [2, 3, 4]),
        weights: wg.alloc('float32', [4, 5]),
        bias: wg.alloc('float32', [5]),
        out: wg.alloc('float32', [2, 3, 5]),
      };
      const packed = wg.pack(tensors.weights, { op: 'matmul' });
      const victim = name === 'packed' ? packed : tensors[name];
      const options = {
        out: tensors.out,
        get outType() {
          victim.dispose();
          return 'float32' as const;
        },
      };
      const argumentName = {
        src: 'src',
        weights: 'weights',
        bias: 'bias',
        out: 'out',
        packed: 'weights',
      }[name];
      expectError(
        thrown(() =>
          wg.matmul(
            tensors.src,
            name === 'packed' ? packed : tensors.weights,
            tensors.bias,
            options,
          ),
        ),
        {
          op: 'matmul',
          code: 'DISPOSED',
          argument: argumentName,
          says: [name === 'packed' ? 'disposed weights' : 'disposed tensor'],
        },
      );
      drop(packed, ...Object.values(tensors));
      expect(wg.memory().inUse).toBe(inUse);
    },
  );

  it('an instance that it disposes of is not used', async () => {
    const instance = await createGemm();
    const options = {
      get transposeB() {
        instance.dispose();
        return false;
      },
    };
    expectError(
      thrown(() => instance.matmul(src, weights, 1, options)),
      { op: 'matmul', code: 'DISPOSED', argument: 'instance', says: ['disposed'] },
    );
  });

  it('memory that it makes grow is found again', async () => {
    const instance = await createGemm();
    const heap = instance.alloc('float32', [2, 3, 4]);
    heap.data.set(src.data);
    const wanted = wg.matmul(src, weights).data;
    const options = {
      get transposeB() {
        instance.alloc('float32', [instance.memory().committed / 4]);
        return false;
      },
    };
    expect(instance.matmul(heap, weights, null, options).data).toEqual(wanted);
    instance.dispose();
  });

  it('its own error comes through, and nothing is kept', () => {
    const { inUse } = wg.memory();
    const mine = new RangeError('mine');
    const options = {
      get out(): never {
        throw mine;
      },
    };
    expect(thrown(() => wg.matmul(src, weights, null, options))).toBe(mine);
    expect(wg.memory().inUse).toBe(inUse);
  });
});

describe('refuses to take more memory than there is', () => {
  it('for copies, and for scratch, to the byte; but computes it block by block if that fits', async () => {
    const [a, b] = [ofShape(4, 32, 32), ofShape(4, 32, 32)];
    const { scratch, copies } = wg.explain('matmul', a, b, 1);
    expect(copies).toBe(3 * 16384);
    const enough = copies + 64 + scratch + 64;
    const instance = await createGemm({ maxMemory: enough });
    expectMatMul(instance, a, b, 1);
    instance.dispose();
    for (const limit of [enough - 1, copies]) {
      const small = await createGemm({ maxMemory: limit });
      expect(small.explain('matmul', a, b, 1).outOfCore).toBe(true);
      expectMatMul(small, a, b, 1); // block by block
      const held = small.alloc('uint8', [limit - 500]);
      const { inUse } = small.memory();
      const out = float32([4, 32, 32], ...Array<number>(4096).fill(9));
      for (const options of [{}, { out }]) {
        expectError(
          thrown(() => small.matmul(a, b, 1, options)),
          { op: 'matmul', code: 'OUT_OF_MEMORY', argument: '', says: ['no memory for', 'in use'] },
        );
      }
      expect(out.data.every((value) => value === 9)).toBe(true);
      expect(small.memory().inUse).toBe(inUse);
      held.dispose();
      expectMatMul(small, ofShape(2, 3, 4), ofShape(4, 5));
      small.dispose();
    }
  });

  it('for a result that 4 GB do not hold', () => {
    const before = wg.memory();
    const one = { data: data(1), shape: [2 ** 20, 1, 1], strides: [0, 0, 0] };
    const row = { data: data(1), shape: [1, 2 ** 20], strides: [0, 0] };
    expectError(
      thrown(() => wg.matmul(one, row)),
      { op: 'matmul', code: 'OUT_OF_MEMORY', argument: '', says: ['no memory for'] },
    );
    expect(wg.memory()).toEqual(before);
  });
});

it('keeps no memory over many calls', async () => {
  const instance = await createGemm();
  const random = new Random(23);
  const round = () => {
    const [a, b] = random.pick(pairs);
    const flags = random.pick(transposes);
    instance.matmul(
      random.tensor('float32', shapeOfSrc(a, flags)),
      random.tensor('float32', shapeOfWeights(b, flags)),
      random.pick([null, 1]),
      flags,
    );
    try {
      instance.matmul(ofShape(2, 3), ofShape(2, 3));
    } catch {
      // as it must
    }
  };
  for (let i = 0; i < 100; ++i) round();
  const before = instance.memory();
  for (let i = 0; i < 2000; ++i) round();
  expect(instance.memory()).toEqual(before);
  expect(before.inUse).toBe(0);
  instance.dispose();
});

describe('explain', () => {
  it.each(dtypes)(
    'tells sizes, kernel, copies and scratch of %s, and computes nothing',
    (dtype) => {
      const random = new Random(24);
      const [src, weights, out] = [
        random.tensor(dtype, [2, 5, 7]),
        random.tensor(dtype, [2, 7, 6]),
        random.tensor(dtype, [2, 5, 6]),
      ];
      const before = snapshot(out);
      const { inUse } = wg.memory();
      const plan = wg.explain('matmul', src, weights, null, { out });
      expect(plan).toMatchObject({ op: 'matmul', batch: 2, m: 5, n: 6, k: 7, threads: 1 });
      expect(out.data).toEqual(before.data);
      expect(wg.memory().inUse).toBe(inUse);
      expect(wg.info.kernels.find((kernel) => kernel.name === plan.kernel)).toMatchObject({
        dtype: computedIn[dtype],
        tile: plan.tile,
      });
      expect(plan.copies).toBe(bytesOf(dtype) * 2 * (35 + 42 + 30));
      expect(wg.explain('matmul', src, weights).copies).toBe(plan.copies);
      expect(plan.direct).toBe(bytesOf(dtype) >= 4);
      expect(wg.explain('matmul', src, weights, 1).direct).toBe(false);
      expect(plan.scratch > 0).toBe(plan.packs.a || plan.packs.b || !plan.direct);
    },
  );

  it('of float32 from 16 bits: the kernel writes dst itself, which is copied out whole', () => {
    const random = new Random(25);
    const [src, weights] = [random.tensor('bfloat16', [5, 7]), random.tensor('bfloat16', [7, 6])];
    expect(wg.explain('matmul', src, weights, null, { outType: 'float32' })).toMatchObject({
      direct: true,
      copies: 2 * (35 + 42) + 4 * 30,
    });
    expect(wg.explain('matmul', src, weights)).toMatchObject({
      direct: false,
      copies: 2 * (35 + 42 + 30),
    });
  });

  it.each<
    [
      what: string,
      src: number[],
      weights: number[],
      bias: number[] | undefined,
      sizes: [batch: number, m: number],
    ]
  >([
    ['shared weights make one tall product', [2, 4, 3, 5], [5, 6], undefined, [1, 24]],
    ['so they do where they have axes of 1', [2, 4, 3, 5], [1, 1, 5, 6], undefined, [1, 24]],
    ['with a bias by column too', [2, 4, 3, 5], [5, 6], [6], [1, 24]],
    ['with a bias for each element too', [2, 4, 3, 5], [5, 6], [2, 4, 3, 6], [1, 24]],
    ['a bias by row does not go on', [8, 3, 5], [5, 6], [3, 1], [8, 3]],
    ['rows of one', [8, 1, 5], [5, 6], [8, 1, 1], [1, 8]],
    ['weights for each are as many products', [2, 4, 3, 5], [2, 4, 5, 6], undefined, [8, 3]],
    ['weights for the outer axis', [2, 4, 3, 5], [2, 1, 5, 6], undefined, [2, 12]],
    ['a shared src is not a tall product', [3, 5], [2, 4, 5, 6], undefined, [8, 3]],
    ['a vector is a row', [5], [4, 5, 6], undefined, [4, 1]],
    ['two vectors', [5], [5], undefined, [1, 1]],
  ])('%s', (_, src, weights, bias, [batch, rows]) => {
    const plan = wg.explain(
      'matmul',
      ofShape(...src),
      ofShape(...weights),
      bias && ofShape(...bias),
    );
    expect(plan).toMatchObject({ batch, m: rows, k: 5 });
  });

  it('scratch does not grow with the batch', async () => {
    const one = { data: data(1) };
    const repeated = (...shape: number[]) => ({ ...one, shape, strides: shape.map(() => 0) });
    const src = (batch: number) => ({ data: data(64), shape: [batch, 64, 64], strides: [0, 1, 0] });
    const scratch = (batch: number) =>
      wg.explain('matmul', src(batch), repeated(64, 64), 1).scratch;
    expect(scratch(2 ** 16)).toBe(scratch(2 ** 10));
    using small = await createGemm({ maxMemory: 2 ** 22 });
    const inBlocks = small.explain('matmul', src(2 ** 14), repeated(64, 64), 1); // with blocks, as it does not fit the memory
    expect(inBlocks.outOfCore).toBe(true);
    expect(inBlocks.scratch).toBeLessThan(2 * scratch(2 ** 10));
    // No array holds that result, so that the call is refused, and explain() says so.
    expect((thrown(() => scratch(2 ** 30)) as Error).message).toBe(
      (thrown(() => wg.matmul(src(2 ** 30), repeated(64, 64), 1)) as Error).message,
    );
    for (const size of [1, 4096, 4097, 2 ** 31, 2 ** 40]) {
      const plan = wg.explain('matmul', repeated(9, 3, size), repeated(9, size, 5));
      expect(plan).toMatchObject({ m: 27, n: 5, k: size }); // its matrices lie one upon another
      expect(plan.scratch).toBeLessThan(2 ** 25);
    }
  });

  it('tells that heap tensors and numbers are not copied, and that a strided out goes there and back', () => {
    const random = new Random(26);
    const [src, weights, out] = [
      wg.alloc('int32', [2, 5, 7]),
      wg.alloc('int32', [7, 6]),
      wg.alloc('int32', [2, 5, 6]),
    ];
    expect(wg.explain('matmul', src, weights, 3, { out }).copies).toBe(0);
    const strided = place(wg, 'gaps after every axis', 'int32', [2, 5, 6], random);
    expect(wg.explain('matmul', src, weights, 3, { out: strided }).copies).toBe(
      2 * strided.data.byteLength,
    );
    drop(src, weights, out);
  });

  it('names no kernel if there is no product', () => {
    expect(wg.explain('matmul', ofShape(2, 0, 1), ofShape(1, 1))).toMatchObject({
      kernel: '',
      scratch: 0,
      copies: 4,
    });
    expect(wg.explain('matmul', ofShape(0, 2, 1), ofShape(1, 1))).toMatchObject({
      kernel: '',
      scratch: 0,
      copies: 4,
    });
    expect(wg.explain('matmul', ofShape(2, 3, 0), ofShape(0, 4))).toMatchObject({
      kernel: '',
      n: 4,
      k: 0,
      copies: 4 * 24,
    });
  });
});

describe('any problem', () => {
  const kinds = fc.constantFrom(
    'right',
    'right',
    'right',
    'right',
    'size',
    'size',
    'bias',
    'out',
    'type',
    'rank',
  );
  const axis = fc.record({
    size: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 1, max: 3 }) },
      { weight: 1, arbitrary: fc.constant(0) },
    ),
    keeps: fc.constantFrom('both', 'src', 'weights'),
  });
  const size = fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 1, max: 9 }) },
    { weight: 1, arbitrary: fc.integer({ min: 10, max: 40 }) },
    { weight: 1, arbitrary: fc.constant(0) },
  );
  const where = fc.constantFrom(...placeNames);
  const problem = fc.record({
    dtype: fc.constantFrom(...dtypes),
    kind: kinds,
    batch: fc.array(axis, { maxLength: 3 }),
    missing: fc.record({ of: fc.constantFrom('src', 'weights'), axes: fc.nat({ max: 3 }) }),
    vectors: fc.record({ src: fc.nat({ max: 5 }), weights: fc.nat({ max: 5 }) }),
    sizes: fc.tuple(size, size, size),
    transposeA: fc.boolean(),
    transposeB: fc.boolean(),
    alpha: fc.constantFrom(undefined, 1, 1, 0, -2, 0.37),
    bias: fc.record({
      kind: fc.constantFrom('none', 'number', 'tensor', 'tensor'),
      mask: fc.nat({ max: 31 }),
      axes: fc.nat({ max: 5 }),
    }),
    out: fc.constantFrom('fresh', 'own', 'bias', 'float32'),
    places: fc.tuple(where, where, where, where),
    special: fc.option(fc.constantFrom(NaN, Infinity, -Infinity, -0), { freq: 5 }),
    numbers: fc.integer(),
  });

  it('is computed as the reference does, or refused if the reference has no result', () => {
    const found = { computed: 0, refused: 0, packed: 0 };
    fc.assert(
      fc.property(problem, (p) => {
        const {
          dtype,
          kind,
          batch,
          missing,
          vectors,
          sizes,
          transposeA,
          transposeB,
          places,
          numbers,
        } = p;
        const [rows, columns, depth] = sizes;
        const random = new Random(numbers);
        const heap: unknown[] = [];
        const make = (index: 0 | 1 | 2 | 3, shape: readonly number[], type: DType = dtype) => {
          const made = place(wg, places[index], type, shape, random);
          heap.push(made);
          return made;
        };
        // Batch axes of each: 1 where only the other has it, and none at all in front.
        const axesOf = (name: 'src' | 'weights') =>
          batch
            .map(({ size, keeps }) => (keeps === 'both' || keeps === name ? size : 1))
            .slice(missing.of === name ? missing.axes : 0);
        const srcShape =
          vectors.src === 0 ? [depth] : shapeOfSrc(axesOf('src'), { transposeA }, rows, depth);
        const weightsShape =
          vectors.weights === 0
            ? [depth]
            : shapeOfWeights(axesOf('weights'), { transposeB }, columns, depth);
        if (kind === 'size') {
          const victim = random.pick([srcShape, weightsShape]);
          const axis = random.between(0, victim.length - 1);
          victim[axis] = (victim[axis] as number) + random.between(1, 2);
        }
        if (kind === 'rank') random.pick([srcShape, weightsShape]).length = 0;
        const src = make(0, srcShape);
        const weights = make(1, weightsShape, kind === 'type' ? random.pick(allTypes) : dtype);
        const flags = { transposeA, transposeB, ...(p.alpha !== undefined && { alpha: p.alpha }) };
        const product = shapeOfMatMul(srcShape, weightsShape, flags);
        const dst = product ?? [rows, columns];
        const biasShape = dst
          .map((size, i) => (p.bias.mask & (1 << i) ? 1 : size))
          .slice(Math.min(p.bias.axes, dst.length));
        if (kind === 'bias')
          random.pick([() => biasShape.unshift(1, ...dst), () => biasShape.push(7)])();
        const bias =
          p.out === 'bias'
            ? make(2, dst)
            : p.bias.kind === 'tensor'
              ? make(2, biasShape)
              : p.bias.kind === 'number'
                ? 3
                : null;
        if (p.special !== null && isFloat(dtype) && src.data.length > 0)
          set(src.data, dtype, random.between(0, src.data.length - 1), p.special);
        const wide = p.out === 'float32' && bytesOf(dtype) === 2;
        const options: MatMulOptions = { ...flags };
        if (p.out === 'bias') options.out = bias as TensorLike;
        else if (p.out === 'own') options.out = make(3, kind === 'out' ? [...dst, 1] : dst);
        else if (wide) options.outType = 'float32';

        const typesAgree = dtypeOf(weights) === dtype;
        const wanted = typesAgree ? referenceMatMul(src, weights, bias, flags) : undefined;
        const what = JSON.stringify({
          ...p,
          bias: { ...p.bias, shape: biasShape },
          srcShape,
          weightsShape,
        });
        const outFits = !(p.out === 'own' && kind === 'out');
        if (wanted && outFits) {
          expectMatMul(wg, src, weights, bias, options, what);
          ++found.computed;
          if (weightsShape.length > 1) {
            using packed = wg.pack(weights, { op: 'matmul', trans: transposeB });
            // Its own result again: out that is bias has another bias by now.
            expectMatMul(wg, src, weights, bias, options, `${what}, packed`, packed);
            ++found.packed;
          }
        } else {
          const before = heap.map((made) => snapshot(made as TensorLike));
          const error = thrown(() => wg.matmul(src, weights, bias as never, options as never));
          expect(error, what).toBeInstanceOf(GemmError);
          const { code, argument, op } = error as GemmError;
          expect(op).toBe('matmul');
          if (!typesAgree)
            expect([code, argument], what).toEqual(
              srcShape.length === 0 ? ['SHAPE', 'src'] : ['DTYPE', 'weights'],
            );
          else
            expect([code, argument], what).toEqual([
              'SHAPE',
              srcShape.length === 0 ? 'src' : !product ? 'weights' : !wanted ? 'bias' : 'out',
            ]);
          heap.forEach((made, i) =>
            expect((made as TensorLike).data, what).toEqual(before[i]?.data),
          );
          ++found.refused;
        }
        drop(...heap);
      }),
      { seed, numRuns: runs(5000) },
    );
    expect(found.computed).toBeGreaterThan(runs(2500));
    expect(found.refused).toBeGreaterThan(runs(1000));
    expect(found.packed).toBeGreaterThan(runs(2000));
  });
});

it('matmul, explain and pack take arguments of every JavaScript kind: a GemmError, or a right result', () => {
  const replacement = fc.record({
    argument: fc.constantFrom('src', 'weights', 'bias', 'options'),
    field: fc.constantFrom(
      undefined,
      'data',
      'shape',
      'strides',
      'dtype',
      'alpha',
      'transposeA',
      'transposeB',
      'outType',
      'out',
      'else',
    ),
    value: fc.oneof(nearlyRight, anything),
  });
  const all = fc.record({
    dtype: fc.constantFrom(...dtypes),
    shapes: fc.tuple(fc.array(small, { maxLength: 2 }), small, small, small),
    replacements: fc.array(replacement, { maxLength: 2 }),
  });
  const isWhole = (call: () => unknown, op: string) => {
    try {
      call();
      return true;
    } catch (error) {
      if (!(error instanceof GemmError)) throw error;
      expect(error).toMatchObject({
        op,
        code: expect.stringMatching(/^[A-Z_]+$/) as string,
        argument: expect.any(String) as string,
      });
      expect(error.message).toMatch(/^\w+: .{10}/);
      return false;
    }
  };
  let succeeded = 0;
  fc.assert(
    fc.property(all, ({ dtype, shapes: [batch, m, k, n], replacements }) => {
      const good: Record<string, unknown> = {
        src: ones(dtype, [...batch, m, k]),
        weights: ones(dtype, [k, n]),
        bias: ones(dtype, [n]),
        options: { transposeA: false },
      };
      for (const { argument, field, value } of replacements) {
        const whole = good[argument];
        if (field === undefined || typeof whole !== 'object' || whole === null)
          good[argument] = value;
        else good[argument] = { ...whole, [field]: value };
      }
      const { src, weights, bias, options } = good as unknown as {
        src: Stack;
        weights: Stack;
        bias: number;
        options: MatMulOptions;
      };
      const { inUse } = wg.memory();
      const packs = isWhole(() => wg.pack(weights, { op: 'matmul' }).dispose(), 'pack');
      const explained = isWhole(() => wg.explain('matmul', src, weights, bias, options), 'matmul');
      if (explained) {
        expect(packs || weights.shape.length === 1, 'weights that matmul takes can be packed').toBe(
          true,
        );
        expectMatMul(wg, src, weights, bias, options ?? {});
        ++succeeded;
      } else {
        expect(isWhole(() => wg.matmul(src, weights, bias, options), 'matmul')).toBe(false);
      }
      expect(wg.memory().inUse).toBe(inUse);
    }),
    { seed, numRuns: runs(5000) },
  );
  expect(succeeded, 'calls that succeeded: the arguments must not be all bad').toBeGreaterThan(
    runs(1000),
  );
});
