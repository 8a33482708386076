/** What gemm computes, for every combination of its arguments, against the reference. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DType, type Gemm, type GemmOptions, GemmError } from 'wgemm';
import {
  bytesOf,
  computedIn,
  dtypes,
  floatTypes,
  isFloat,
  set,
  valuesOf,
} from '../support/dtypes.js';
import { isShort, withoutLarge } from '../support/short.js';
import {
  drop,
  expectGemm,
  float32,
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

const [m, k, n] = [5, 7, 6];
const shapesOfC: readonly (readonly number[])[] = [[], [1], [n], [1, 1], [1, n], [m, 1], [m, n]];
const factors: readonly GemmOptions[] = [
  {},
  { alpha: 0.5, beta: -2 },
  { alpha: 3, beta: 2 },
  { alpha: -0.75, beta: 0.375 },
  { alpha: 3, beta: 0.5 },
  { alpha: 0, beta: 1 },
  { alpha: 2, beta: 0 },
  { alpha: 0, beta: 0 },
];
const transposes = [false, true].flatMap((transA) =>
  [false, true].map((transB) => ({ transA, transB })),
);
const shapeOfA = (options: GemmOptions) => (options.transA ? [k, m] : [m, k]);
const shapeOfB = (options: GemmOptions) => (options.transB ? [n, k] : [k, n]);

describe.each(dtypes)('%s', (dtype) => {
  describe.each(placeNames)('with A, B and C in %s', (where) => {
    it('computes every transpose, broadcast of C, alpha and beta', () => {
      const random = new Random(1);
      for (const transpose of transposes) {
        const a = place(wg, where, dtype, shapeOfA(transpose), random);
        const b = place(wg, where, dtype, shapeOfB(transpose), random);
        const tensors = shapesOfC.map((shape) => place(wg, where, dtype, shape, random));
        for (const c of [...tensors, undefined, null, 7]) {
          for (const factor of factors) {
            const options = { ...transpose, ...factor };
            expectGemm(
              wg,
              a,
              b,
              c,
              options,
              JSON.stringify({ ...options, c: typeof c === 'object' ? c?.shape : c }),
            );
          }
        }
        drop(a, b, ...tensors);
      }
    });

    const placesOfOut = isShort ? placeNames.filter((_, i) => i % 3 === 0) : placeNames;
    it.each(placesOfOut)('fills an out in %s', (whereOut) => {
      const random = new Random(2);
      for (const transpose of transposes) {
        const a = place(wg, where, dtype, shapeOfA(transpose), random);
        const b = place(wg, where, dtype, shapeOfB(transpose), random);
        const c = place(wg, where, dtype, [m, n], random);
        const out = place(wg, whereOut, dtype, [m, n], random);
        for (const input of [c, undefined, 3]) {
          for (const factor of factors)
            expectGemm(
              wg,
              a,
              b,
              input,
              { ...transpose, ...factor, out },
              JSON.stringify({ ...transpose, ...factor }),
            );
        }
        drop(a, b, c, out);
      }
    });

    it('writes over C if out is C', () => {
      const random = new Random(3);
      for (const transpose of transposes) {
        for (const factor of factors) {
          const a = place(wg, where, dtype, shapeOfA(transpose), random);
          const b = place(wg, where, dtype, shapeOfB(transpose), random);
          const c = place(wg, where, dtype, [m, n], random);
          expectGemm(
            wg,
            a,
            b,
            c,
            { ...transpose, ...factor, out: c },
            JSON.stringify({ ...transpose, ...factor }),
          );
          drop(a, b, c);
        }
      }
    });
  });

  it('takes A, B, C and out from any mix of arrays and the heap', () => {
    const random = new Random(4);
    const mixed = ['an array', 'the heap', 'a view of the heap', 'rows with gaps'] as const;
    for (const whereA of mixed) {
      for (const whereB of mixed) {
        for (const whereC of mixed) {
          const a = place(wg, whereA, dtype, [m, k], random);
          const b = place(wg, whereB, dtype, [k, n], random);
          const c = place(wg, whereC, dtype, [m, n], random);
          expectGemm(wg, a, b, c, { alpha: 2 }, `${whereA}, ${whereB}, ${whereC}`);
          for (const whereOut of mixed) {
            const out = place(wg, whereOut, dtype, [m, n], random);
            expectGemm(
              wg,
              a,
              b,
              c,
              { alpha: 2, out },
              `${whereA}, ${whereB}, ${whereC}, ${whereOut}`,
            );
            drop(out);
          }
          drop(a, b, c);
        }
      }
    }
  });

  it('computes sizes on both sides of every tile', () => {
    const random = new Random(5);
    for (const rows of [1, 2, 3, 4, 5, 8, 9]) {
      for (const columns of [1, 3, 4, 7, 8, 9, 16, 17, 24, 31]) {
        for (const depth of [1, 2, 3, 4, 5, 8, 15]) {
          const a = place(wg, 'an array', dtype, [rows, depth], random);
          const b = place(wg, 'an array', dtype, [depth, columns], random);
          expectGemm(wg, a, b, null, {}, `${rows} x ${columns} x ${depth}`);
          expectGemm(wg, a, b, 3, { alpha: 2 }, `${rows} x ${columns} x ${depth}, with C`);
        }
      }
    }
  });

  const large = dtype === 'float32' && !isShort ? [129, 257, 300] : [67, 130, 71];
  it.each(transposes)(`computes ${large.join(' x ')} with %o`, (transpose) => {
    const random = new Random(6);
    const [rows, columns, depth] = large as [number, number, number];
    const a = place(
      wg,
      'an array',
      dtype,
      transpose.transA ? [depth, rows] : [rows, depth],
      random,
    );
    const b = place(
      wg,
      'rows with gaps',
      dtype,
      transpose.transB ? [columns, depth] : [depth, columns],
      random,
    );
    const c = place(wg, 'an array', dtype, [rows, 1], random);
    // The reference takes a second per call. So each transpose comes once, and both with and without
    // an epilogue.
    if (transpose.transA === transpose.transB) expectGemm(wg, a, b, null, transpose);
    else expectGemm(wg, a, b, c, { ...transpose, alpha: 0.5 });
  });

  it.each(
    withoutLarge([
      ['deep enough to split K', 3, 5, 9001],
      ['wide enough to split N', 2, 20001, 3],
      ['tall enough to split M', 20001, 2, 3],
    ]),
  )('computes a product %s', (_, rows, columns, depth) => {
    const random = new Random(7);
    for (const transA of [false, true]) {
      const a = place(wg, 'an array', dtype, transA ? [depth, rows] : [rows, depth], random);
      const b = place(wg, 'the heap', dtype, [depth, columns], random);
      expectGemm(wg, a, b, null, { transA });
      expectGemm(wg, a, b, 2, { transA, alpha: -1, beta: 3 });
      drop(b);
    }
  });

  it.skipIf(isShort)('passes over rows of any length, in every layout', () => {
    const random = new Random(18);
    const [rows, columns, depth] = [2, 777, 3];
    const a = place(wg, 'an array', dtype, [rows, depth], random);
    const b = place(wg, 'an array', dtype, [depth, columns], random);
    for (const where of placeNames) {
      for (const shape of [[columns], [rows, 1], [rows, columns]]) {
        const c = place(wg, where, dtype, shape, random);
        expectGemm(wg, a, b, c, { alpha: 2 });
        for (const whereOut of ['an array', 'column-major'] as const) {
          expectGemm(
            wg,
            a,
            b,
            c,
            { beta: -3, out: place(wg, whereOut, dtype, [rows, columns], random) },
            `${where}, ${whereOut}`,
          );
        }
        drop(c);
      }
    }
  });

  it('gives beta * C, or zeros, if K is 0', () => {
    const random = new Random(8);
    for (const transpose of transposes) {
      const a = place(wg, 'an array', dtype, transpose.transA ? [0, m] : [m, 0], random);
      const b = place(wg, 'the heap', dtype, transpose.transB ? [n, 0] : [0, n], random);
      for (const shape of shapesOfC) {
        const c = place(wg, 'an array', dtype, shape, random);
        for (const factor of factors) expectGemm(wg, a, b, c, { ...transpose, ...factor });
      }
      for (const where of placeNames) {
        const out = place(wg, where, dtype, [m, n], random);
        expectGemm(wg, a, b, null, { ...transpose, out });
        expectGemm(wg, a, b, 4, { ...transpose, beta: 3, out });
        expectGemm(wg, a, b, out, { ...transpose, beta: 3, out });
        drop(out);
      }
      drop(b);
    }
  });

  it.each([
    ['M', 0, n, k],
    ['N', m, 0, k],
    ['M and N', 0, 0, k],
    ['M, N and K', 0, 0, 0],
  ])('gives an empty result where %s is 0', (_, rows, columns, depth) => {
    const random = new Random(9);
    for (const where of placeNames) {
      const a = place(wg, where, dtype, [rows, depth], random);
      const b = place(wg, where, dtype, [depth, columns], random);
      const out = place(wg, where, dtype, [rows, columns], random);
      const y = expectGemm(wg, a, b);
      expect(y.shape).toEqual([rows, columns]);
      expectGemm(wg, a, b, 1, { out });
      expectGemm(wg, a, b, out, { out });
      expectGemm(wg, a, b, place(wg, 'an array', dtype, [1, columns], random));
      expect(
        () => wg.gemm(a, b, place(wg, 'an array', dtype, [7, 7], random)),
        'shapes are checked none the less',
      ).toThrow(GemmError);
      drop(a, b, out);
    }
  });

  it('repeats the elements of an input that has stride 0', () => {
    const random = new Random(10);
    const row = { ...random.tensor(dtype, [3]), shape: [m, 3], strides: [0, 1] };
    const column = { ...random.tensor(dtype, [3]), shape: [3, n], strides: [1, 0] };
    const one = { ...random.tensor(dtype, []), shape: [m, n], strides: [0, 0] };
    expectGemm(wg, row, column, one);
  });

  it('ignores the stride of an axis of size 1, however long', () => {
    const far = 2 ** 53 - 1;
    const out = { ...tensor(dtype, [1, 2], [0, 0]), strides: [far, 1] };
    expectGemm(
      wg,
      { ...tensor(dtype, [1, 1], [3]), strides: [far, far] },
      tensor(dtype, [1, 2], [4, 5]),
      null,
      { out },
    );
    expect(valuesOf(out).map(Number)).toEqual([12, 15]);
  });

  it('takes any number but 0 as true for transA and transB', () => {
    const a = tensor(dtype, [2, 1], [1, 2]);
    const b = tensor(dtype, [1, 2], [3, 4]);
    for (const flag of [true, 1, -1, 0.5, Infinity]) {
      expect(
        valuesOf(wg.gemm(a, b, null, { transA: flag, transB: flag })).map(Number),
        String(flag),
      ).toEqual([11]);
    }
    for (const flag of [false, 0, -0, undefined]) {
      expect(
        valuesOf(wg.gemm(a, b, null, { transA: flag, transB: flag })).map(Number),
        String(flag),
      ).toEqual([3, 4, 6, 8]);
    }
  });

  it('gives each result an array of its own', () => {
    const a = tensor(dtype, [1, 1], [2]);
    const first = wg.gemm(a, a);
    const second = wg.gemm(a, a, 1);
    expect([...valuesOf(first), ...valuesOf(second)].map(Number)).toEqual([4, 5]);
    expect(first.data.buffer.byteLength).toBe(bytesOf(dtype));
  });
});

describe('one buffer for several tensors', () => {
  type Heads = ReturnType<typeof heads>[number];

  // Rows of A, of C and of out in turn, as the heads of an attention layer.
  const heads = (rows: number, width: number, names: number) => {
    const buffer = new ArrayBuffer(4 * rows * width * names);
    const random = new Random(11);
    random.fill(new Float32Array(buffer));
    return Array.from({ length: names }, (_, name) => ({
      data: new Float32Array(buffer, 4 * width * name, (rows - 1) * width * names + width),
      shape: [rows, width],
      strides: [width * names, 1],
    }));
  };

  it('allows an out that lies between the rows of the inputs', () => {
    for (const transB of [false, true]) {
      const [a, b, out] = heads(6, 6, 3) as [Heads, Heads, Heads];
      const [beforeA, beforeB] = [snapshot(a), snapshot(b)];
      const alone = wg.gemm(beforeA, beforeB, null, { transB });
      wg.gemm(a, b, null, { transB, out });
      const y = snapshot(out);
      for (let i = 0; i < 6; ++i)
        expect(y.data.slice(18 * i, 18 * i + 6)).toEqual(alone.data.slice(6 * i, 6 * i + 6));
      for (const [after, before] of [
        [a, beforeA],
        [b, beforeB],
      ] as const) {
        for (let i = 0; i < 6; ++i)
          expect(after.data.slice(18 * i, 18 * i + 6)).toEqual(
            before.data.slice(18 * i, 18 * i + 6),
          );
      }
    }
  });

  it('allows an out with a single row in the gap between the rows of an input', () => {
    const buffer = new ArrayBuffer(4 * 12);
    const b = { data: new Float32Array(buffer).fill(1), shape: [2, 4], strides: [8, 1] };
    const out = { data: new Float32Array(buffer, 16, 4), shape: [1, 4] };
    wg.gemm(float32([1, 2], 2, 3), b, null, { out });
    expect(Array.from(new Float32Array(buffer))).toEqual([1, 1, 1, 1, 5, 5, 5, 5, 1, 1, 1, 1]);
  });

  it('allows inputs that overlap each other', () => {
    const data = new Random(12).fill(new Float32Array(12));
    expectGemm(
      wg,
      { data: data.subarray(0, 9), shape: [3, 3] },
      { data: data.subarray(3, 12), shape: [3, 3] },
      { data: data.subarray(1, 4), shape: [3] },
    );
  });

  it('allows out at the very end of an input', () => {
    const data = new Random(13).fill(new Float32Array(8));
    const a = { data: data.subarray(0, 4), shape: [2, 2] };
    expectGemm(wg, a, { data: a.data.slice(), shape: [2, 2] }, null, {
      out: { data: data.subarray(4), shape: [2, 2] },
    });
  });

  it('works on parts of one heap tensor', () => {
    const tensor = wg.alloc('float32', [3, 4]);
    new Random(14).fill(tensor.data);
    const part = (i: number) => ({ data: tensor.data.subarray(4 * i, 4 * i + 4), shape: [2, 2] });
    expectGemm(wg, part(0), part(1), null, { out: part(2) });
    expectGemm(wg, part(0), part(1), part(2), { out: part(2) });
    tensor.dispose();
  });

  it('takes a heap tensor of another instance by its data, which is copied', async () => {
    const other = await createGemm();
    const theirs = other.alloc('float32', [2, 2]);
    theirs.data.set([1, 2, 3, 4]);
    const out = other.alloc('float32', [2, 2]);
    wg.gemm({ data: theirs.data, shape: [2, 2] }, float32([2, 2], 1, 0, 0, 1), null, {
      out: { data: out.data, shape: [2, 2] },
    });
    expect(Array.from(out.data)).toEqual([1, 2, 3, 4]);
    other.dispose();
  });
});

describe.each(floatTypes)('NaN and infinity in %s', (dtype) => {
  const make = (shape: readonly number[], ...numbers: number[]) => tensor(dtype, shape, numbers);
  const identity = make([2, 2], 1, 0, 0, 1);

  it('propagate from A and B through every kernel', () => {
    for (const special of [NaN, Infinity, -Infinity]) {
      for (const rows of [1, 2, 4, 5]) {
        for (const columns of [1, 4, 8, 13]) {
          for (const depth of [1, 4, 9]) {
            for (const where of ['A', 'B']) {
              const random = new Random(15);
              const a = random.tensor(dtype, [rows, depth]);
              const b = random.tensor(dtype, [depth, columns]);
              set((where === 'A' ? a : b).data, dtype, depth - 1, special);
              expectGemm(
                wg,
                a,
                b,
                null,
                {},
                `${special} in ${where}, ${rows} x ${columns} x ${depth}`,
              );
              expectGemm(
                wg,
                a,
                b,
                1,
                { alpha: -2 },
                `${special} in ${where}, ${rows} x ${columns} x ${depth}, with C`,
              );
            }
          }
        }
      }
    }
  });

  it('meet as IEEE 754 says', () => {
    const sum = (...numbers: number[]) =>
      valuesOf(
        wg.gemm(
          make([1, numbers.length], ...numbers),
          make([numbers.length, 1], ...numbers.map(() => 1)),
        ),
      );
    expect(sum(Infinity, -Infinity)).toEqual([NaN]);
    expect(sum(Infinity, 1)).toEqual([Infinity]);
    expect(sum(-Infinity, NaN)).toEqual([NaN]);
    for (const zero of [0, -0])
      expect(valuesOf(wg.gemm(make([1, 1], Infinity), make([1, 1], zero)))).toEqual([NaN]);
  });

  it('do not reach Y from C if beta is 0', () => {
    const c = make([2, 2], NaN, Infinity, -Infinity, NaN);
    expect(valuesOf(wg.gemm(identity, identity, c, { beta: 0 }))).toEqual([1, 0, 0, 1]);
    expect(valuesOf(wg.gemm(identity, identity, NaN, { beta: 0 }))).toEqual([1, 0, 0, 1]);
    expect(valuesOf(wg.gemm(identity, identity, c, { beta: -0, out: c }))).toEqual([1, 0, 0, 1]);
    const heap = wg.alloc(dtype, [2, 2]);
    for (let i = 0; i < 4; ++i) set(heap.data, dtype, i, NaN);
    expect(valuesOf(wg.gemm(identity, identity, heap, { beta: 0, out: heap }))).toEqual([
      1, 0, 0, 1,
    ]);
    heap.dispose();
  });

  it('do not reach Y from what was in out before', () => {
    const out = make([2, 2], NaN, NaN, NaN, NaN);
    expect(valuesOf(wg.gemm(identity, identity, null, { out }))).toEqual([1, 0, 0, 1]);
  });

  it('reach Y from C if beta is not 0', () => {
    const y = wg.gemm(identity, identity, make([2], NaN, -Infinity), { beta: 0.5 });
    expect(valuesOf(y)).toEqual([NaN, -Infinity, NaN, -Infinity]);
  });

  it('reach Y if alpha is 0: 0 * NaN is NaN', () => {
    expect(valuesOf(wg.gemm(make([2, 1], NaN, 1), make([1, 2], 1, 1), null, { alpha: 0 }))).toEqual(
      [NaN, NaN, 0, 0],
    );
    expect(valuesOf(wg.gemm(make([1, 1], Infinity), make([1, 1], 1), 5, { alpha: 0 }))).toEqual([
      NaN,
    ]);
  });

  it('are taken as alpha and beta', () => {
    expect(valuesOf(wg.gemm(identity, identity, null, { alpha: NaN }))).toEqual([
      NaN,
      NaN,
      NaN,
      NaN,
    ]);
    expect(valuesOf(wg.gemm(identity, identity, null, { alpha: Infinity }))).toEqual([
      Infinity,
      NaN,
      NaN,
      Infinity,
    ]);
    expect(valuesOf(wg.gemm(identity, identity, 1, { beta: -Infinity }))).toEqual([
      -Infinity,
      -Infinity,
      -Infinity,
      -Infinity,
    ]);
  });

  it('as alpha do nothing if K is 0', () => {
    const [empty, none] = [make([2, 0]), make([0, 2])];
    for (const alpha of [NaN, Infinity]) {
      expect(valuesOf(wg.gemm(empty, none, null, { alpha }))).toEqual([0, 0, 0, 0]);
      expect(valuesOf(wg.gemm(empty, none, 3, { alpha, beta: 2 }))).toEqual([6, 6, 6, 6]);
    }
  });
});

describe('opset', () => {
  const since = (opset: number) =>
    [13, 11, 9, 7, 6, 1].find((version) => version <= opset) as number;

  const first = (dtype: DType) => (dtype === 'bfloat16' ? 13 : isFloat(dtype) ? 1 : 9);

  for (const dtype of dtypes) {
    it.each([1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 21, 2 ** 53 - 1])(
      `%i takes or refuses ${dtype}, C and broadcast`,
      (opset) => {
        const version = since(opset);
        const a = tensor(dtype, [2, 1], [1, 2]);
        const b = tensor(dtype, [1, 2], [3, 4]);
        const shapes = [undefined, [2, 2], [2, 1], [1, 2], [1, 1], [2], [1], []];
        for (const shape of shapes) {
          for (const broadcast of [undefined, false, true, 0, 1]) {
            const c = shape && new Random(16).tensor(dtype, shape);
            const options = { opset, beta: 2, ...(broadcast === undefined ? {} : { broadcast }) };
            const what = `C ${JSON.stringify(shape)}, broadcast ${broadcast}`;
            const lacking =
              version < first(dtype)
                ? 'opset'
                : !c && version < 11
                  ? 'C'
                  : broadcast !== undefined && version > 6
                    ? 'broadcast'
                    : undefined;
            if (lacking !== undefined) {
              const error = caught(() => wg.gemm(a, b, c, options));
              expect(error, what).toMatchObject({
                name: 'OpsetError',
                code: 'OPSET',
                op: 'gemm',
                argument: lacking,
              });
              expect(error.message).toContain(`opset ${opset} means Gemm-${version}`);
            } else if (version <= 6 && !broadcast && shape !== shapes[1]) {
              expect(
                caught(() => wg.gemm(a, b, c, options)),
                what,
              ).toMatchObject({ name: 'ShapeError', code: 'SHAPE', op: 'gemm', argument: 'C' });
            } else {
              expectGemm(wg, a, b, c, options, what);
            }
          }
        }
      },
    );
  }

  it.each([1, 6])('%i demands broadcast for a C that is a number', (opset) => {
    const one = float32([1, 1], 1);
    expect(caught(() => wg.gemm(one, one, 1, { opset }))).toMatchObject({
      code: 'SHAPE',
      argument: 'C',
    });
    expectGemm(wg, one, one, 1, { opset, broadcast: 1 });
  });

  function caught(call: () => unknown): GemmError {
    try {
      call();
    } catch (error) {
      if (error instanceof GemmError) return error;
      throw error;
    }
    return expect.fail('no error');
  }
});

describe('explain', () => {
  it.each(dtypes)(
    'tells sizes, kernel, copies and scratch of %s, and computes nothing',
    (dtype) => {
      const random = new Random(17);
      const [a, b, out] = [
        random.tensor(dtype, [5, 7]),
        random.tensor(dtype, [7, 6]),
        random.tensor(dtype, [5, 6]),
      ];
      const before = snapshot(out);
      const plan = wg.explain('gemm', a, b, null, { out });
      expect(plan).toMatchObject({ op: 'gemm', m: 5, n: 6, k: 7, threads: 1 });
      expect(out.data).toEqual(before.data);
      expect(wg.info.kernels.find((kernel) => kernel.name === plan.kernel)?.dtype).toBe(
        computedIn[dtype],
      );
      expect(plan.copies).toBe(bytesOf(dtype) * (35 + 42 + 30));
      expect(wg.explain('gemm', a, b).copies).toBe(plan.copies);
      // If the result has another type than the sums, or alpha is not 1, the epilogue writes it.
      expect(plan.direct).toBe(bytesOf(dtype) >= 4);
      expect(wg.explain('gemm', a, b, null, { alpha: 2 }).direct).toBe(false);
    },
  );

  it('tells that heap tensors are not copied', () => {
    const [a, b, out] = [
      wg.alloc('int32', [5, 7]),
      wg.alloc('int32', [7, 6]),
      wg.alloc('int32', [5, 6]),
    ];
    expect(wg.explain('gemm', a, b, 3, { out }).copies).toBe(0);
    drop(a, b, out);
  });

  it('names no kernel if there is no product', () => {
    expect(wg.explain('gemm', float32([0, 1]), float32([1, 1], 1))).toMatchObject({
      kernel: '',
      regime: '',
      m: 0,
      scratch: 0,
      copies: 4,
    });
  });

  it.each([
    ['GEMM', 512],
    ['skinny GEMM', 511],
    ['skinny GEMM, unpacked row-major B', 2],
    ['GEMV, axpy', 1],
  ])('tells that the regime is %s with %i rows', (regime, m) => {
    const one = { data: new Float32Array(1), strides: [0, 0] };
    const b = { data: new Float32Array(300 * 300), shape: [300, 300] };
    expect(wg.explain('gemm', { ...one, shape: [m, 300] }, b).regime).toBe(regime);
  });

  it('has room for the tile in the blocks, at any size', () => {
    const one = { data: new Float32Array(1), strides: [0, 0] };
    for (const size of [1, 7, 4096, 4097, 2 ** 31, 2 ** 40]) {
      const plan = wg.explain('gemm', { ...one, shape: [3, size] }, { ...one, shape: [size, 9] });
      expect(plan).toMatchObject({ m: 3, n: 9, k: size });
      expect(plan.scratch, `scratch for K = ${size}`).toBeLessThan(2 ** 25);
      expect(plan.scratch).toBeGreaterThan(0);
    }
  });
});

describe('info', () => {
  it('states the build, and kernels whose names tell their tile', () => {
    expect(wg.info).toMatchObject({ determinism: 'fast' });
    expect(['simd128', 'relaxed']).toContain(wg.info.build);
    expect(wg.info.why).not.toBe('');
    for (const { name, dtype, tile } of wg.info.kernels) {
      expect(name).toMatch(
        new RegExp(
          `^${dtype.replace(/[a-z]+/, ([first]) => first as string)}(_nbits|_[a-z]+\\d+)?(_gemv)?_${tile[0]}x${tile[1]}`,
        ),
      );
    }
    for (const dtype of Object.values(computedIn)) {
      expect(wg.info.kernels.some((kernel) => kernel.dtype === dtype && kernel.preferred)).toBe(
        true,
      );
    }
  });
});
