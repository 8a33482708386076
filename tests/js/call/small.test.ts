/** Small products on arrays, which JavaScript computes: they have the bits of the core. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DType, type Gemm } from 'wgemm';
import { arrayClasses } from '../support/dtypes.js';
import { Random } from '../support/random.js';

const most = 216;
const dtypes = ['float32', 'float64', 'int32', 'uint32'] as const;
type Small = (typeof dtypes)[number];

/**
 * Shapes [m, n, k] of at most `most` multiply-adds, and some just above: all M and N, and K up to 9
 * and then every seventh.
 */
function* shapes(): Generator<[number, number, number]> {
  for (let m = 1; m <= most; ++m)
    for (let n = 1; m * n <= most; ++n) {
      const last = Math.floor(most / (m * n));
      for (let k = 1; k <= last; k += k < 9 ? 1 : 7) yield [m, n, k];
      yield [m, n, last];
      if (m * n < 20) yield [m, n, last + 1];
    }
}

/** Elements with zeros of both signs, infinities, NaN and values that cancel. */
function elements(random: Random, dtype: Small, size: number): Float32Array {
  const data = new arrayClasses[dtype](size) as Float32Array;
  const special = [0, -0, Infinity, -Infinity, NaN, 1e-40, 3e38, -3e38];
  for (let i = 0; i < size; ++i) {
    const pick = random.between(0, 400);
    if (!dtype.startsWith('float')) data[i] = random.between(0, 2 ** 32 - 1);
    else data[i] = special[pick] ?? (random.between(-1000, 1000) / 64) * 1.0000001 ** i;
  }
  return data;
}

const bitsOf = (data: ArrayBufferView) =>
  Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('latin1');

describe.each(['strict', 'fast'] as const)('in %s mode', (determinism) => {
  let wg: Gemm;
  beforeAll(async () => {
    wg = await createGemm({ determinism });
  });
  afterAll(() => {
    wg.dispose();
  });

  it.each(dtypes)('%s has the bits of products in the heap', (dtype) => {
    const random = new Random(5);
    const heap = [0, 1, 2].map(() => wg.alloc(dtype, [most + 40]));
    let wrong = 0;
    for (const [m, n, k] of shapes()) {
      const a = { data: elements(random, dtype, m * k), shape: [m, k] };
      const b = { data: elements(random, dtype, k * n), shape: [k, n] };
      const view = (i: number, shape: number[]) => ({ data: heap[i]!, shape, offset: 0 });
      (heap[0]!.data as Float32Array).set(a.data);
      (heap[1]!.data as Float32Array).set(b.data);
      const out = view(2, [m, n]);
      wg.gemm(view(0, a.shape) as never, view(1, b.shape) as never, null, { out: out as never });
      const wanted = heap[2]!.data.slice(0, m * n) as Float32Array;
      const own = { data: new (a.data.constructor as typeof Float32Array)(m * n), shape: [m, n] };
      const results = [
        wg.gemm(a, b).data,
        wg.matmul(a, b).data,
        wg.gemm(a, b, null, { out: own }).data,
      ];
      for (const data of results) {
        const isSame =
          determinism === 'strict'
            ? bitsOf(data) === bitsOf(wanted)
            : data.every((value, i) => Object.is(value, wanted[i])); // NaN has any bits
        if (!isSame) ++wrong;
      }
    }
    expect(wrong).toBe(0);
    for (const tensor of heap) tensor.dispose();
  });
});

describe('JavaScript computes', () => {
  it('products of few elements: their NaN is canonical', async () => {
    using wg = await createGemm();
    const bits = Uint32Array.of(0x7fc12345);
    const nan = { data: new Float32Array(bits.buffer), shape: [1, 1] };
    const one = { data: Float32Array.of(1), shape: [1, 1] };
    const bitsOfResult = (data: Float32Array) => new Uint32Array(data.buffer)[0];
    expect(bitsOfResult(wg.gemm(nan, one).data)).toBe(0x7fc00000);
    // With a factor, the core computes. NaN keeps its payload there.
    expect(bitsOfResult(wg.gemm(nan, one, null, { alpha: 1 }).data)).toBe(0x7fc12345);
  });

  it('nothing that would write to the heap at its first byte', async () => {
    using wg = await createGemm();
    const tensor = wg.alloc('float32', [36, 36]);
    for (const size of [2, 4, 36]) {
      const data = new Float32Array(tensor.data.buffer, 0, size * size);
      const before = data.slice();
      const a = { data: new Float32Array(size * size).fill(3), shape: [size, size] };
      expect(() => wg.gemm(a, a, null, { out: { data, shape: [size, size] } })).toThrow('disposed');
      expect(data).toEqual(before);
    }
  });
});

describe('a result of the caller', () => {
  it('is written although its array has methods of its own', async () => {
    using wg = await createGemm();
    for (const size of [3, 9, 20]) {
      const x = { data: new Float32Array(size * size).fill(1), shape: [size, size] };
      const data = new Float32Array(size * size);
      Object.defineProperty(data, 'set', { value: () => undefined });
      wg.gemm(x, x, null, { out: { data, shape: [size, size] } });
      expect(data).toEqual(new Float32Array(size * size).fill(size));
    }
  });

  it.runIf(typeof SharedArrayBuffer === 'function')(
    'may be another object of the same shared memory as an operand',
    async () => {
      using wg = await createGemm();
      const memory = new SharedArrayBuffer(36);
      const [data, out] = [new Float32Array(memory), new Float32Array(structuredClone(memory))];
      data.set([1, 2, 3, 4, 5, 6, 7, 8, 9]);
      const b = { data: Float32Array.of(2, 1, 0, 1, 2, 1, 0, 1, 2), shape: [3, 3] };
      wg.gemm({ data, shape: [3, 3] }, b, null, { out: { data: out, shape: [3, 3] } });
      expect([...out]).toEqual([4, 8, 8, 13, 20, 17, 22, 32, 26]);
    },
  );
});

describe('the core computes', () => {
  let wg: Gemm;
  beforeAll(async () => {
    wg = await createGemm();
  });
  afterAll(() => {
    wg.dispose();
  });
  const of = (dtype: DType, shape: number[]) => ({
    data: new arrayClasses[dtype](4).fill((dtype === 'int64' ? 2n : 2) as never),
    shape,
    dtype,
  });

  it('what JavaScript does not: other types, options, C, and out over an input', () => {
    const x = of('float32', [2, 2]);
    for (const dtype of ['float16', 'bfloat16', 'int64'] as const) {
      const other = of(dtype, [2, 2]);
      expect(wg.gemm(other as never, other as never)).toMatchObject({ dtype, shape: [2, 2] });
    }
    expect(wg.gemm(x as never, x as never, 1).data).toEqual(Float32Array.of(9, 9, 9, 9));
    expect(wg.gemm(x as never, x as never, null, { alpha: 0.5 }).data[0]).toBe(4);
    expect(() => wg.gemm(x as never, x as never, null, { out: x as never })).toThrow('overlap');
  });

  it('errors of small operands', () => {
    const x = of('float32', [2, 2]) as never;
    expect(() => wg.gemm(x, of('float32', [4, 1]) as never)).toThrow('K');
    expect(() => wg.gemm(x, of('float32', [2, 3]) as never)).toThrow('elements');
    expect(() => wg.gemm(x, of('float64', [2, 2]) as never)).toThrow('float');
    const own = wg.alloc('float32', [2, 2]);
    const view = { data: own.data, shape: [2, 2] };
    own.dispose();
    expect(() => wg.gemm(view, x)).toThrow('disposed');
  });

  it('nothing once the instance has ended', async () => {
    const other = await createGemm();
    const x = of('float32', [2, 2]) as never;
    const ends = {
      shape: [2, 2],
      get data() {
        other.dispose();
        return Float32Array.of(1, 2, 3, 4);
      },
    };
    expect(() => other.gemm(ends, x)).toThrow('disposed');
    expect(() => other.gemm(x, x)).toThrow('disposed');
  });
});
