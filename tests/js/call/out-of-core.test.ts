/**
 * Operands larger than the memory: calls are computed out-of-core, with the same results as in a
 * memory that holds everything.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type DataArray,
  type DType,
  type Gemm,
  type MatMulOptions,
  type TensorInput,
} from 'wgemm';
import { arrayClasses, bytesOf, dtypes } from '../support/dtypes.js';
import { expectError, thrown } from '../support/errors.js';
import { Random, sameBytes } from '../support/tensors.js';

/**
 * The limit of the instances that compute out-of-core. It is not below the initial memory, which
 * has room for the stacks of threads.
 */
const maxMemory = 3_000_000;

let whole: Gemm;
let small: Gemm;
beforeAll(async () => {
  whole = await createGemm({ determinism: 'strict' });
  small = await createGemm({ determinism: 'strict', maxMemory });
});
afterAll(() => {
  whole.dispose();
  small.dispose();
});

const random = new Random(1);
const bytes = (dtype: 'int8' | 'uint8', shape: readonly number[]) =>
  random.tensor(dtype, shape) as {
    data: Int8Array | Uint8Array;
    shape: readonly number[];
    dtype: 'int8' | 'uint8';
  };
const floats = (shape: readonly number[]) =>
  random.tensor('float32', shape) as {
    data: Float32Array;
    shape: readonly number[];
    dtype: 'float32';
  };

/** Expects the same bits of a call in both instances, within the memory of the small one. */
function expectSame(
  call: (wg: Gemm) => { data: DataArray; shape: readonly number[]; dtype?: DType },
): void {
  const before = small.memory().inUse;
  const [wanted, found] = [call(whole), call(small)];
  expect(found.shape).toEqual(wanted.shape);
  expect(found.dtype).toBe(wanted.dtype);
  expect(found.data.constructor).toBe(wanted.data.constructor);
  expect(sameBytes(found.data, wanted.data)).toBe(true);
  expect(small.memory().inUse).toBe(before);
  expect(small.memory().committed).toBeLessThanOrEqual(maxMemory);
}

describe('a product larger than maxMemory', () => {
  it.each(dtypes)('of %s gives the same', (dtype) => {
    // The operands are about ten times as large as the memory.
    const [m, k, n] =
      bytesOf(dtype) === 8
        ? [700, 2800, 700]
        : bytesOf(dtype) === 4
          ? [1000, 3300, 1000]
          : [1400, 4700, 1400];
    const [a, b] = [random.tensor(dtype, [m, k]), random.tensor(dtype, [k, n])];
    const plan = small.explain('gemm', a, b);
    expect((2 * m * k + m * n) * bytesOf(dtype)).toBeGreaterThan(9 * maxMemory);
    expect(plan).toMatchObject({ outOfCore: true, m, n, k });
    expect(plan.scratch).toBeLessThan(maxMemory);
    expectSame((wg) => wg.gemm(a, b));
  });

  it('in fast mode is within the bound', async () => {
    using fast = await createGemm({ maxMemory });
    const [a, b] = [floats([400, 5000]), floats([5000, 300])];
    const [found, wanted] = [fast.gemm(a, b).data, whole.gemm(a, b).data] as [
      Float32Array,
      Float32Array,
    ];
    const sizes = (t: TensorInput<Float32Array>) => ({ ...t, data: t.data.map(Math.abs) });
    const sums = whole.gemm(sizes(a), sizes(b)).data as Float32Array;
    expect(
      found.every(
        (y, i) => Math.abs(y - (wanted[i] as number)) <= 2 * 5008 * 2 ** -24 * (sums[i] as number),
      ),
    ).toBe(true);
  });

  it('with transposes, strides, factors and every form of C', () => {
    const [m, k, n] = [700, 900, 600];
    const strided = (t: TensorInput<Float32Array>, strides: number[]) => ({ ...t, strides });
    const a = floats([m, k]);
    const forms: [TensorInput<Float32Array>, { transA?: true }][] = [
      [a, {}],
      [{ ...a, shape: [k, m] }, { transA: true }],
      [strided(floats([m * (k + 3) - 3]), [k + 3, 1]), {}],
      [strided(floats([k * m]), [1, m]), {}],
      [strided(floats([2 * m * k - 1]), [2 * k, 2]), {}], // no contiguous run
      [strided(floats([k]), [0, 1]), {}],
    ];
    const b = floats([k, n]);
    for (const [tensor, options] of forms) {
      const given = {
        data: tensor.data,
        shape: options.transA ? [k, m] : [m, k],
        strides: tensor.strides,
      };
      const stated = given.strides === undefined ? { data: given.data, shape: given.shape } : given;
      expectSame((wg) => wg.gemm(stated, b, null, options));
    }
    for (const shape of [[], [1], [n], [1, n], [m, 1], [m, n]]) {
      const c = floats(shape);
      expectSame((wg) =>
        wg.gemm(a, { ...b, shape: [n, k] }, c, { alpha: 0.3, beta: -1.5, transB: true }),
      );
    }
    expectSame((wg) => wg.gemm(a, b, 2.5));
  });

  it('is bounded if its sums are whole, and not before', () => {
    const [a, b] = [floats([500, 3000]), floats([3000, 500])];
    for (const activation of ['relu', [-0.5, 0.25]] as const) {
      expectSame((wg) => wg.gemm(a, b, null, { activation }));
    }
    const bias = floats([500]);
    expectSame((wg) => wg.matmul(a, b, bias, { activation: 'relu6' }));
    const inputs = {
      a: bytes('uint8', [900, 4000]),
      aScale: 0.1,
      b: bytes('int8', [4000, 900]),
      bScale: 0.02,
    };
    expectSame((wg) => wg.qgemm(inputs, { activation: [-1, 2] }));
    expectSame((wg) =>
      wg.qgemm({ ...inputs, yScale: 0.05, yZeroPoint: 100 }, { activation: 'relu' }),
    );
  });

  it.each(['bfloat16', 'float16'] as const)('takes packed weights of %s next to float32', (as) => {
    const [a, b] = [floats([2500, 600]), floats([600, 300])];
    expectSame((wg) => {
      using packed = wg.pack(b, { op: 'matmul', as });
      return wg.matmul(a, packed, null, { activation: 'relu' });
    });
  });

  it('of 64 bits keeps every bit of strided elements', () => {
    const [m, k, n] = [500, 600, 500];
    const data = random.tensor('int64', [2 * m * k - 1]).data;
    const b = random.tensor('int64', [k, n]);
    expectSame((wg) => wg.gemm({ data, shape: [m, k], strides: [2 * k, 2] }, b, 7n, { beta: 3n }));
  });

  it('fills out, also one with gaps, and nothing between', () => {
    const [m, k, n] = [700, 900, 600];
    const [a, b] = [floats([m, k]), floats([k, n])];
    for (const strides of [undefined, [n + 2, 1], [1, m + 1], [2 * n, 2]]) {
      const size =
        strides === undefined
          ? m * n
          : (m - 1) * (strides[0] as number) + (n - 1) * (strides[1] as number) + 1;
      const results = [whole, small].map((wg) => {
        const out = {
          data: new Float32Array(size).fill(9),
          shape: [m, n],
          ...(strides && { strides }),
        };
        expect(wg.gemm(a, b, null, { out })).toBe(out);
        return out.data;
      }) as [Float32Array, Float32Array];
      expect(results[0].every((value, i) => value === results[1][i])).toBe(true);
    }
    expect(small.memory().inUse).toBe(0);
  });

  it('sums in place if out is C', () => {
    const [m, k, n] = [700, 900, 600];
    const [a, b, c] = [floats([m, k]), floats([k, n]), floats([m, n])];
    expectSame((wg) => {
      const out = { data: c.data.slice(), shape: c.shape };
      return { ...wg.gemm(a, b, { ...out }, { out, beta: 0.5 }), dtype: 'float32' };
    });
  });

  it('takes tensors that are in the heap, and packed weights, as they are', () => {
    const [m, k, n] = [2500, 200, 300];
    const [a, b] = [floats([m, k]), floats([k, n])];
    expectSame((wg) => {
      using packed = wg.pack(b, { op: 'gemm' });
      return wg.gemm(a, packed);
    });
    expectSame((wg) => {
      using held = wg.alloc('float32', [k, n]);
      held.data.set(b.data);
      return wg.gemm(a, held);
    });
    expectSame((wg) => {
      using out = wg.alloc('float32', [m, 100]);
      const wide = floats([k, 100]);
      wide.data.set(b.data.subarray(0, k * 100));
      wg.gemm(a, wide, null, { out });
      return { data: out.data.slice(), shape: out.shape, dtype: out.dtype };
    });
  });

  it('works through stacks of matrices, with broadcast axes, in place and wider', () => {
    const [src, weights] = [
      random.tensor('float16', [6, 1, 300, 400]),
      random.tensor('float16', [2, 500, 400]),
    ];
    const bias = random.tensor('float16', [2, 1, 500]);
    const options: MatMulOptions = { transposeB: true };
    expectSame((wg) => wg.matmul(src, weights, bias, options));
    expectSame((wg) => wg.matmul(src, weights, bias, { ...options, alpha: 0.5 }));
    expectSame((wg) => wg.matmul(src, weights, bias, { ...options, outType: 'float32' }));
    const dst = floats([3, 600, 600]);
    const square = floats([3, 600, 600]);
    expectSame((wg) => {
      const out = { data: dst.data.slice(), shape: dst.shape };
      return { ...wg.matmul(square, square, { ...out }, { out }), dtype: 'float32' };
    });
    expectSame((wg) =>
      wg.matmul(
        { ...square, shape: [1800, 600] },
        { data: floats([600]).data.fill(0.5), shape: [600] },
      ),
    );
    expectSame((wg) => wg.matmul({ ...square, shape: [1080000] }, { ...square, shape: [1080000] }));
  });

  it.each(['int8', 'uint8'] as const)('of quantized %s has every bit', (dtype) => {
    const [m, k, n] = [1200, 2500, 1300];
    const [a, b] = [bytes('uint8', [m, k]), bytes(dtype, [k, n])];
    const vectors = {
      bScale: floats([n]).data.map((x) => Math.abs(x) + 0.01),
      bZeroPoint: bytes(dtype, [n]).data,
    };
    const inputs = { a, b, aScale: 0.02, aZeroPoint: 131, ...vectors };
    expectSame((wg) => wg.qgemm(inputs));
    const c = random.tensor('int32', [m, 1]) as { data: Int32Array; shape: readonly number[] };
    expectSame((wg) =>
      wg.qgemm({ ...inputs, c, yScale: 3, yZeroPoint: new Int8Array([3]) }, { alpha: 0.5 }),
    );
    expectSame((wg) => {
      using packed = wg.pack(
        { ...b, data: b.data.subarray(0, 900 * n), shape: [900, n] },
        { op: 'qgemm' },
      );
      return wg.qgemm({
        ...inputs,
        a: { ...a, data: a.data.subarray(0, 900 * m), shape: [m, 900] },
        b: packed,
      });
    });
  });
});

it('a product whose copies fit, and not its scratch next to them, goes through all the same', async () => {
  const sizes = Array.from({ length: 18 }, (_, i) => 360 + 5 * i); // three of 360 and of 445 take 1.6 and 2.4 MB
  let count = 0;
  for (const size of sizes) {
    const small = await createGemm({ maxMemory: 2 ** 21 });
    const ones = { data: new Float32Array(size * size).fill(1), shape: [size, size] };
    if (3 * ones.data.byteLength < 2 ** 21 && small.explain('gemm', ones, ones, null).outOfCore)
      ++count;
    for (let round = 0; round < 2; ++round) {
      const { data } = small.gemm(ones, ones, null);
      expect(data.every((value) => value === size)).toBe(true);
    }
    small.dispose();
  }
  expect(count).toBeGreaterThan(0);
});

it('a narrow product is the same if its last block of K has few steps', async () => {
  for (const dtype of dtypes) {
    // Hardly more than the smallest blocks take.
    const limit = bytesOf(dtype) === 8 ? 26_000 : 20_000;
    using tiny = await createGemm({ determinism: 'strict', maxMemory: limit });
    const [a, b] = [random.tensor(dtype, [257, 20]), random.tensor(dtype, [257, 7])];
    expect(tiny.explain('gemm', a, b, null, { transA: true }).outOfCore).toBe(true);
    const [wanted, found] = [whole, tiny].map((wg) => wg.gemm(a, b, null, { transA: true }).data);
    expect(sameBytes(found as DataArray, wanted as DataArray)).toBe(true);
  }
});

describe('explain', () => {
  it('says out-of-core only if that is needed', () => {
    const [a, b] = [floats([500, 500]), floats([500, 500])];
    const [inMemory, inBlocks] = [whole.explain('gemm', a, b), small.explain('gemm', a, b)];
    expect(inMemory).toMatchObject({ outOfCore: false, copies: 3e6 });
    expect(inBlocks.outOfCore).toBe(true);
    expect(inBlocks.copies).toBeGreaterThanOrEqual(3e6);
    expect(inBlocks.copies % 1e6).toBe(0);
    const part = { ...a, data: a.data.subarray(0, 5e4), shape: [100, 500] };
    expect(small.explain('gemm', part, b)).toMatchObject({
      outOfCore: false,
      copies: 200_000 + 1_000_000 + 200_000,
    });
  });

  it('foretells it to the byte, and no memory if there is none', async () => {
    const [a, b] = [floats([200, 100]), floats([100, 200])];
    // Two threads fall back to one before a call goes out-of-core.
    using one = await createGemm({ threads: 1, determinism: 'strict' });
    const { scratch } = one.explain('gemm', a, b, 1);
    const copies = Math.ceil((2 * 80_000) / 64) * 64 + 160_000;
    for (const missing of [0, 1]) {
      using wg = await createGemm({
        threads: 1,
        maxMemory: copies + 64 + scratch + 64 - missing,
        determinism: 'strict',
      });
      expect(wg.explain('gemm', a, b, 1)).toMatchObject({ outOfCore: missing === 1 });
      using held = wg.alloc('uint8', [copies + scratch - 2000]);
      expect((thrown(() => wg.explain('gemm', a, b, 1)) as Error).message).toBe(
        (thrown(() => wg.gemm(a, b, 1)) as Error).message,
      );
      expect(held.size).toBe(copies + scratch - 2000);
    }
  });

  it('counts what is copied more than once', () => {
    const [m, k, n] = [900, 1000, 800];
    const [a, b] = [random.tensor('int32', [m, k]), random.tensor('int32', [k, n])];
    const { copies, outOfCore } = small.explain('gemm', a, b);
    expect(outOfCore).toBe(true);
    // One copy of A per block of columns, one of B, and one of Y.
    const found = (copies - 4 * m * n) / 4 / k;
    const solutions = Array.from({ length: 9 }, (_, i) => (found - m * (i + 1)) / n).filter(
      (times) => Number.isInteger(times) && times > 0,
    );
    expect(solutions.length).toBeGreaterThan(0);
    expect(copies).toBeLessThan(4 * (4 * m * k + 4 * k * n + m * n));
  });

  it('counts scales once', () => {
    const [a, b] = [bytes('int8', [1500, 2000]), bytes('int8', [2000, 10])];
    const one = small.explain('qgemm', { a, b, aScale: 1, bScale: 1 });
    const ten = small.explain('qgemm', { a, b, aScale: 1, bScale: new Float32Array(10).fill(1) });
    expect(one.outOfCore && ten.outOfCore).toBe(true);
    expect(ten.copies - one.copies).toBe(40);
  });
});

describe('refuses', () => {
  const count = (size: number) => new Float32Array(size).fill(1);

  it('what breaks a rule before anything is written', () => {
    const out = { data: count(1e6), shape: [1000, 1000] };
    const a = { data: count(1e6), shape: [1000, 1000] };
    expectError(
      thrown(() => small.gemm(a, { ...a, shape: [500, 2000] }, null, { out })),
      { code: 'SHAPE', op: 'gemm', argument: 'B', says: ['K is 1000 in A and 500 in B'] },
    );
    expectError(
      thrown(() => small.gemm(out, a, null, { out })),
      { code: 'ARGUMENT', op: 'gemm', argument: 'out', says: ['overlaps A'] },
    );
    const q = {
      a: { data: new Int8Array(4e6), shape: [2000, 2000] },
      aScale: 1,
      bScale: new Float32Array(2000),
    };
    expectError(
      thrown(() => small.qgemm({ ...q, b: q.a })),
      { code: 'ARGUMENT', op: 'qgemm', argument: 'bScale', says: ['bScale is 0'] },
    );
    expect(out.data.every((value) => value === 1)).toBe(true);
    expect(small.memory().inUse).toBe(0);
  });

  it('if not even the smallest blocks fit, and writes nothing', async () => {
    using tiny = await createGemm({ maxMemory: 20_000 });
    using held = tiny.alloc('uint8', [16_000]);
    const { inUse } = tiny.memory();
    const a = { data: count(10_000), shape: [100, 100] };
    const out = { data: count(10_000), shape: [100, 100] };
    expectError(
      thrown(() => tiny.gemm(a, a, null, { out })),
      {
        code: 'OUT_OF_MEMORY',
        op: 'gemm',
        argument: '',
        says: [/no memory for \d+ bytes, which the smallest blocks take/, 'in use'],
      },
    );
    expect(out.data.every((value) => value === 1)).toBe(true);
    expect(tiny.memory().inUse).toBe(inUse);
    held.dispose();
    expect(
      tiny.gemm(
        { data: a.data.subarray(0, 100), shape: [10, 10] },
        { data: a.data.subarray(0, 100), shape: [10, 10] },
      ).data[0],
    ).toBe(10);
  });
});

it('arrays of every class come back as they are in memory', () => {
  for (const dtype of dtypes) {
    const wide = random.tensor(dtype, [2, 500_000]);
    const result = small.gemm({ ...random.tensor(dtype, [1, 2]) }, wide);
    expect(result.data).toBeInstanceOf(arrayClasses[dtype]);
    expect(result.data.buffer.byteLength).toBe(500_000 * bytesOf(dtype));
  }
});
