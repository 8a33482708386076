/** The blocks of ggml: each type against its definition, and in products. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, fromGGUF, type Gemm } from 'wgemm';
import { readGGUF, type WeightsTensor } from 'wgemm/weights';
import { encodeGGUF } from '../../fuzz/weights-files.mjs';
import { Random } from '../support/random.js';
import { drawBlocks, numberOfHalf, referenceTypes } from './block-reference.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

/** The bits of numbers. All NaN count as one. */
const bitsOf = (values: Float32Array) =>
  new Uint32Array(Float32Array.from(values, (value) => value).buffer).map((bits) =>
    (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits,
  );

async function tensorOf(type: number, ne: number[], data: Uint8Array): Promise<WeightsTensor> {
  const file = await readGGUF(encodeGGUF({ tensors: [{ name: 'w', ne, type, data }] }));
  return file.tensor('w');
}

it.each(Object.entries(referenceTypes))(
  '%s stands for the numbers of its definition, to the bit',
  async (name, type) => {
    const blocks = 32768 / type.elements;
    const { data, values } = drawBlocks(new Random(type.number), type, blocks);
    const [k, n] = [type.elements * 4, blocks / 4];
    const tensor = await tensorOf(type.number, [k, n], data);
    expect(tensor).toMatchObject({ name: 'w', type: name, dtype: name, shape: [n, k] });
    expect(tensor.data).toEqual(data);
    const found = tensor.toFloat32();
    expect(found).toMatchObject({ shape: [n, k], dtype: 'float32' });
    expect(bitsOf(found.data)).toEqual(bitsOf(values));
    // The draws have what may go wrong: NaN, zeros with a sign, and sums that are rounded.
    expect(values.some(Number.isNaN)).toBe(true);
    expect(values.some((value) => Object.is(value, -0))).toBe(true);
    expect(values.some((value) => Math.abs(value) > 2 ** 17)).toBe(true);
  },
);

it('F16 and BF16 have the numbers of all codes, F32 is not copied', async () => {
  const codes = Uint16Array.from({ length: 65536 }, (_, code) => code);
  const bytes = new Uint8Array(codes.buffer);
  const f16 = (await tensorOf(1, [65536], bytes)).toFloat32().data;
  expect(bitsOf(f16)).toEqual(bitsOf(Float32Array.from(codes, numberOfHalf)));
  const bf16 = (await tensorOf(30, [65536], bytes)).toFloat32().data;
  const wide = Uint32Array.from(codes, (code) => code * 65536);
  expect(bitsOf(bf16)).toEqual(bitsOf(new Float32Array(wide.buffer)));
  const f32 = await tensorOf(0, [3], new Uint8Array(Float32Array.of(1, -0, NaN).buffer));
  expect(f32.toFloat32().data).toBe(f32.data);
});

it('an empty tensor has no elements', async () => {
  const { data, shape } = (await tensorOf(12, [256, 0], new Uint8Array())).toFloat32();
  expect([data.length, shape]).toEqual([0, [0, 256]]);
});

describe('in products', () => {
  const x = { data: Float32Array.from({ length: 64 }, (_, i) => Math.sin(i)), shape: [1, 64] };

  it.each([
    ['Q4_0', 2, 18],
    ['Q8_0', 8, 34],
  ])('fromGGUF takes a tensor of %s', async (name, number, bytes) => {
    const random = new Random(7);
    const data = Uint8Array.from({ length: 6 * bytes }, () => random.between(0, 255));
    for (let at = 0; at < data.length; at += bytes) data[at + 1] = 0x30; // scales near 0.1
    const tensor = await tensorOf(number, [64, 3], data);
    const { type, shape } = tensor;
    if (tensor.type !== 'Q4_0' && tensor.type !== 'Q8_0') return expect.fail(type);
    const weights = fromGGUF({ type: tensor.type, data: tensor.data, shape });
    expect(tensor.type).toBe(name);
    const exact = wg.matmul(x, tensor.toFloat32(), null, { transposeB: true });
    const y = wg.matmulNBits(x, weights);
    y.data.forEach((value, i) => expect(value).toBeCloseTo(exact.data[i] as number, 4));
    return undefined;
  });

  it('calls take tensors of elements, and refuse blocks', async () => {
    const ones = new Uint8Array(Uint16Array.from({ length: 128 }, () => 0x3f80).buffer);
    const bf16 = await tensorOf(30, [64, 2], ones);
    if (bf16.type !== 'BF16') return expect.fail(bf16.type);
    const packed = wg.pack(bf16, { op: 'matmul', trans: true });
    expect([packed.dtype, packed.shape]).toEqual(['bfloat16', [64, 2]]);
    packed.dispose();
    const q8 = await tensorOf(8, [32], new Uint8Array(34));
    expect(() => wg.matmul(q8 as never, q8 as never)).toThrow(/Q8_0/);
    return undefined;
  });
});
