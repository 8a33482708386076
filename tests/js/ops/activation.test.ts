/**
 * The option `activation`: its effect on results, in every place that they can be in, and the values
 * that it refuses.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Activation, createGemm, type Gemm, type HalfVector } from 'wgemm';
import { dtypes, isFloat, valuesOf } from '../support/dtypes.js';
import { expectError, thrown } from '../support/errors.js';
import { place, placeNames, Random, tensor } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ determinism: 'strict' });
});
afterAll(() => wg.dispose());

const activations: readonly [Activation, min: number, max: number][] = [
  ['relu', 0, Infinity],
  ['relu6', 0, 6],
  [[-1, 2], -1, 2],
  [[-Infinity, 3], -Infinity, 3],
  [[-Infinity, Infinity], -Infinity, Infinity],
];
/** Values at a bound, and NaN, stay unchanged. */
const within = (values: readonly (number | bigint)[], min: number, max: number) =>
  values
    .map((value) => (value < min ? min : value > max ? max : value))
    .map((value) => (typeof value === 'bigint' ? Number(value) : value));
const numbersOf = (y: Parameters<typeof valuesOf>[0]) =>
  valuesOf(y).map((value) => (typeof value === 'bigint' ? Number(value) : value));

describe.each(dtypes)('%s', (dtype) => {
  const unsigned = dtype.startsWith('uint');
  const random = new Random(1);
  /** Small whole numbers, whose products are exact in every type. */
  const small = (shape: number[], where: (typeof placeNames)[number] = 'an array') => {
    const filled = place(wg, where, dtype, shape, random);
    const { data } = filled;
    for (let i = 0; i < data.length; ++i) {
      const { data: one } = tensor(
        dtype,
        [],
        [((i * 7) % 5) - (unsigned ? 0 : 2)].map((x) => (dtype.endsWith('int64') ? BigInt(x) : x)),
      );
      (data as Float32Array)[i] = (one as Float32Array)[0] as number;
    }
    return filled;
  };

  it.each(placeNames)('holds with out in %s', (where) => {
    for (const [activation, min, max] of activations) {
      for (const m of [1, 5, 40]) {
        const [a, b] = [small([m, 6]), small([6, 9])];
        for (const c of [null, small([9])]) {
          const wanted = within(valuesOf(wg.gemm(a, b, c)), min, max);
          expect(numbersOf(wg.gemm(a, b, c, { activation })), String(activation)).toEqual(wanted);
          const matmulWanted = within(valuesOf(wg.matmul(a, b, c)), min, max);
          expect(numbersOf(wg.matmul(a, b, c, { activation })), String(activation)).toEqual(
            matmulWanted,
          );
        }
        const out = place(wg, where, dtype, [m, 9], random);
        expect(wg.gemm(a, b, null, { activation, out })).toBe(out);
        const product = wg.gemm(a, b, null, { activation });
        expect(numbersOf(wg.gemm(out, small([9, 9]), null, {})), String(activation)).toEqual(
          numbersOf(wg.gemm(product, small([9, 9]))),
        );
        if ('dispose' in out) out.dispose();
      }
    }
  });

  it('holds in the heap', () => {
    const heap = (shape: number[]) => small(shape, 'the heap');
    const [a, b, c, out] = [heap([3, 6]), heap([6, 9]), heap([9]), heap([3, 9])];
    using weights = wg.pack(b, { op: 'gemm' });
    for (const [activation, min, max] of activations) {
      const wanted = within(valuesOf(wg.gemm(a, b, c)), min, max);
      for (const right of [b, weights]) {
        expect(numbersOf(wg.gemm(a, right, c, { activation, out })), String(activation)).toEqual(
          wanted,
        );
        expect(numbersOf(wg.matmul(a, right, c, { activation, out })), String(activation)).toEqual(
          wanted,
        );
      }
    }
    for (const each of [a, b, c, out]) (each as unknown as { dispose(): void }).dispose();
  });

  it('may be no fraction with integers', () => {
    const one = small([1, 1]);
    for (const activation of [[0.5, 6] as const, [0, 6.5] as const, [0, 2 ** 54] as const]) {
      if (isFloat(dtype)) {
        wg.gemm(one, one, null, { activation });
      } else {
        const wanted = {
          code: 'ARGUMENT',
          argument: 'activation',
          says: ['whole number', dtype],
        } as const;
        expectError(
          thrown(() => wg.gemm(one, one, null, { activation })),
          wanted,
        );
        expectError(
          thrown(() => wg.matmul(one, one, null, { activation })),
          { ...wanted, op: 'matmul' },
        );
      }
    }
  });
});

it('keeps NaN and -0', () => {
  const a = tensor('float32', [4, 1], [NaN, -0, -Infinity, 9]);
  const one = tensor('float32', [1, 1], [1]);
  expect(valuesOf(wg.gemm(a, one, null, { activation: 'relu6' }))).toEqual([NaN, 0, 0, 6]);
  expect(valuesOf(wg.gemm(a, one, null, { alpha: -1, activation: 'relu' }))).toEqual([
    NaN,
    -0,
    Infinity,
    0,
  ]);
});

describe('qgemm', () => {
  const [a, b] = [
    { data: Int8Array.of(3, -7, 100, 2), shape: [2, 2] },
    { data: Int8Array.of(1, 2, -3, 4), shape: [2, 2] },
  ];
  const inputs = { a, aScale: 0.5, b, bScale: 0.25 };

  it('bounds float32', () => {
    const plain = [...wg.qgemm(inputs).data];
    for (const [activation, min, max] of activations)
      expect([...wg.qgemm(inputs, { activation }).data], String(activation)).toEqual(
        within(plain, min, max),
      );
  });

  it('bounds what a quantized result stands for', () => {
    const [yScale, yZeroPoint] = [0.125, Int8Array.of(10)];
    for (const [activation, min, max] of activations) {
      const wanted = Int8Array.from([...wg.qgemm(inputs).data], (y) => {
        const value = Math.min(Math.max(y / yScale, min / yScale), max / yScale); // whole numbers here
        return Math.min(Math.max(value + 10, -128), 127);
      });
      expect(
        wg.qgemm({ ...inputs, yScale, yZeroPoint }, { activation }).data,
        String(activation),
      ).toEqual(wanted);
    }
  });
});

describe('the integer products', () => {
  const a = { data: Int8Array.of(3, -7, 100, 2), shape: [2, 2] };
  const b = { data: Int8Array.of(1, 2, -3, 4), shape: [2, 2] };
  const scales = { aScale: 0.5, bScale: 0.25 };

  it('bound float32 and float16, after the bias', () => {
    const bias = Float32Array.of(1, -2);
    const f = { data: Float32Array.of(3, -7, 100, 2), shape: [2, 2] };
    const half = (...numbers: number[]) =>
      tensor('float16', [numbers.length], numbers) as HalfVector;
    const halves = { aScale: half(0.5), bScale: half(0.25), bias: half(1, -2) };
    for (const [activation, min, max] of activations) {
      const bounds = { activation };
      for (const call of [
        (options: object) => wg.matmulIntegerToFloat(a, b, { ...scales, bias, ...options }),
        (options: object) => wg.matmulIntegerToFloat(a, b, { ...halves, ...options }),
        (options: object) => wg.dynamicQuantizeMatmul(f, b, { bScale: 0.25, bias, ...options }),
      ]) {
        const plain = numbersOf(call({}));
        expect(numbersOf(call(bounds)), String(activation)).toEqual(within(plain, min, max));
      }
    }
  });

  it('bound what a quantized result stands for, also if yScale is negative', () => {
    const yZeroPoint = Int8Array.of(10);
    for (const yScale of [0.125, -0.125]) {
      for (const [activation, min, max] of activations) {
        const wanted = [...wg.matmulIntegerToFloat(a, b, scales).data].map((y) =>
          Math.min(Math.max(Math.min(Math.max(y, min), max) / yScale + 10, -128), 127),
        );
        const inputs = { a, b, ...scales, yScale, yZeroPoint };
        expect(
          [...wg.qlinearMatmul(inputs, { activation }).data],
          `${String(activation)}, ${yScale}`,
        ).toEqual(wanted);
      }
    }
  });
});

it('whose element disposes of the instance is refused', async () => {
  const instance = await createGemm();
  const out = instance.alloc('float32', [1, 1]);
  const activation = Object.defineProperty([0, 6], 0, {
    get() {
      instance.dispose();
      return 0;
    },
  }) as unknown as [number, number];
  expectError(
    thrown(() => instance.gemm(out, out, null, { activation, out })),
    { code: 'DISPOSED', argument: 'instance', says: ['disposed'] },
  );
});

it('is told by the plan: the micro-kernel does not write the result itself', () => {
  const x = tensor(
    'float32',
    [16, 16],
    Array.from({ length: 256 }, () => 1),
  );
  expect(wg.explain('gemm', x, x, null, { activation: 'relu' }).direct).toBe(false);
});
