/** Products with tensors of GGUF files, by `packFrom`: each block format against its definition. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { packFrom } from 'wgemm/weights';
import { fromBits, toBits } from '../support/dtypes.js';
import { Random } from '../support/random.js';
import { drawWeights, level0, level4 } from './block-products.js';
import { finiteHalf, mildHalf, referenceTypes } from './block-reference.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

/** The bits of numbers. All NaN count as one. */
const bitsOf = (values: Float32Array) =>
  new Uint32Array(values.slice().buffer).map((bits) =>
    (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits,
  );

/** Rows of A. Some blocks have zeros, or numbers of very different sizes. */
function drawA(random: Random, m: number, k: number): Float32Array {
  const a = new Float32Array(m * k);
  for (let at = 0; at < a.length; at += 32) {
    const size = random.pick([1, 1, 1, 100, 1e-3, 0]);
    for (let i = at; i < at + 32; ++i) a[i] = (random.next() * 2 - 1) * size;
  }
  return a;
}

const sizes = (random: Random, elements: number) =>
  [
    random.between(1, 37),
    elements * random.between(1, elements === 32 ? random.pick([3, 9, 30]) : 3),
  ] as const;

it.each(Object.entries(referenceTypes))(
  '%s at level 4 has the bits of the definition',
  async (name, type) => {
    const random = new Random(100 + type.number);
    let finite = 0;
    for (const m of [1, 1, 2, 2, 5, 5, 70]) {
      const [n, k] = sizes(random, type.elements);
      const weights = drawWeights(random, type, [n, k], random.pick([mildHalf, finiteHalf]));
      const packed = await packFrom(wg, weights.data, { type: name, shape: [n, k] });
      expect(packed).toMatchObject({ op: 'matmulNBits', format: name, shape: [k, n] });
      const a = drawA(random, m, k);
      const bias = random.pick([undefined, random.fill(new Float32Array(n))]);
      const y = wg.matmulNBits({ data: a, shape: [m, k] }, packed, { bias });
      const wanted = level4(a, weights, bias);
      expect([m, n, k, bitsOf(y.data)]).toEqual([m, n, k, bitsOf(wanted)]);
      finite += wanted.filter((value) => Number.isFinite(value) && value !== 0).length;
      packed.dispose();
    }
    expect(finite).toBeGreaterThan(500);
  },
);

it.each(Object.entries(referenceTypes))('%s at level 0 is within the bound', async (name, type) => {
  const random = new Random(200 + type.number);
  for (const m of [1, 1, 2, 5, 70]) {
    const [n, k] = sizes(random, type.elements);
    const weights = drawWeights(random, type, [n, k], mildHalf);
    const packed = await packFrom(wg, weights.data, { type: name, shape: [n, k] });
    const a = drawA(random, m, k);
    const y = wg.matmulNBits({ data: a, shape: [m, k] }, packed, { accuracyLevel: 0 });
    const { exact, bound } = level0(a, weights);
    const wrong = Array.from(y.data, (value, i) =>
      Math.abs(value - (exact[i] as number)) <= (bound[i] as number) ? [] : [[m, n, k, i, value]],
    ).flat();
    expect(wrong).toEqual([]);
    packed.dispose();
  }
});

it.each(Object.entries(referenceTypes))(
  '%s at level 0 has its numbers, to the bit',
  async (name, type) => {
    // A row of A that has a single 1 reads a row of B'.
    const random = new Random(300 + type.number);
    const [n, k] = [19, 2 * type.elements];
    const weights = drawWeights(random, type, [n, k]);
    const packed = await packFrom(wg, weights.data, { type: name, shape: [n, k] });
    const a = new Float32Array(k * k);
    for (let i = 0; i < k; ++i) a[i * k + i] = 1;
    for (const rows of [1, k]) {
      const options = { accuracyLevel: 0 };
      const y = wg.matmulNBits(
        { data: a.subarray(0, rows * k), shape: [rows, k] },
        packed,
        options,
      );
      const found = y.data.map((value) => value + 0); // -0 may be a sum with 0
      const wanted = found.map(
        (_, i) => (weights.values[(i % n) * k + Math.floor(i / n)] as number) + 0,
      );
      expect(bitsOf(found)).toEqual(bitsOf(wanted));
    }
    packed.dispose();
  },
);

it.each(['float16', 'bfloat16'] as const)('A of %s', async (dtype) => {
  const random = new Random(7);
  for (const [name, type] of Object.entries(referenceTypes)) {
    const [n, k] = sizes(random, type.elements);
    const weights = drawWeights(random, type, [n, k], mildHalf);
    const packed = await packFrom(wg, weights.data, { type: name, shape: [n, k] });
    const bits = Uint16Array.from(drawA(random, 3, k), (value) => toBits(dtype, value));
    const y = wg.matmulNBits({ data: bits, shape: [3, k], dtype }, packed);
    const wide = Float32Array.from(bits, (code) => fromBits(dtype, code));
    const wanted = Array.from(level4(wide, weights), (value) => toBits(dtype, value));
    expect(y.dtype).toBe(dtype);
    const found = new Uint16Array(y.data.buffer, y.data.byteOffset, y.data.length);
    expect([name, ...found]).toEqual([name, ...wanted]);
    packed.dispose();
  }
});

it('a scale that is infinite or NaN is refused by row and block', async () => {
  for (const [name, type] of Object.entries(referenceTypes)) {
    const random = new Random(type.number);
    const [n, k] = [9, 3 * type.elements];
    for (const code of [0x7c00, 0xfc00, 0x7e01]) {
      const bytes = drawWeights(random, type, [n, k]).data;
      const at = (7 * 3 + 2) * type.bytes;
      bytes.set([code & 255, code >> 8], at + placeOfScale(name, type.bytes));
      await expect(packFrom(wg, bytes, { type: name, shape: [n, k] })).rejects.toThrow(
        /^packFrom: source has a scale that is infinite or NaN, in row 7 and block 2$/,
      );
    }
  }
});

/** Where d is in a block. */
const placeOfScale = (name: string, bytes: number) =>
  name === 'Q2_K' ? 80 : name === 'Q3_K' || name === 'Q6_K' ? bytes - 2 : 0;
