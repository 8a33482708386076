/**
 * Packed weights as bytes: their form, the instances that read them, and the bytes that are refused.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type DType,
  type Gemm,
  PackedWeights,
  type QuantizedArray,
  type TensorLike,
} from 'wgemm';
import { allTypes, dtypes } from '../support/dtypes.js';
import { expectError, thrown } from '../support/errors.js';
import { expectMatMul } from '../support/stacks.js';
import { float32, Random, sameBytes, SharedBuffer } from '../support/tensors.js';

let wg: Gemm;
let other: Gemm;
beforeAll(async () => {
  wg = await createGemm();
  other = await createGemm({ simd: 'simd128' });
});
afterAll(() => {
  expect(wg.memory().inUse).toBe(0);
  wg.dispose();
  other.dispose();
});

const pack = (instance: Gemm, b: TensorLike, dtype: DType): PackedWeights =>
  instance.pack(b as TensorLike<QuantizedArray>, {
    op: dtype.endsWith('int8') ? 'qgemm' : 'matmul',
  });

/** The result of a call with these weights, and some A. */
function product(instance: Gemm, weights: PackedWeights): Uint8Array {
  const { dtype, shape } = weights;
  const a = new Random(1).tensor(dtype, [3, shape.at(-2) as number]);
  const bytes = a as TensorLike<QuantizedArray>;
  const y =
    weights.op === 'gemm'
      ? instance.matmul(a, weights)
      : shape.length > 2
        ? instance.matmulInteger(bytes, weights)
        : instance.qgemm({ a: bytes, aScale: 1, b: weights, bScale: 2 });
  return new Uint8Array(y.data.buffer);
}

const hexOf = (bytes: Uint8Array) =>
  Array.from(
    bytes,
    (byte, i) => (i > 0 && i % 8 === 0 ? ' ' : '') + byte.toString(16).padStart(2, '0'),
  ).join('');
const bytesOf = (hex: string) =>
  Uint8Array.from(hex.replaceAll(' ', '').match(/../g) as string[], (byte) => parseInt(byte, 16));

/** The same as in tests/native/serialize_test.cc. */
const goldens: [dtype: DType, shape: number[], data: TensorLike['data'], hex: string][] = [
  [
    'float32',
    [2, 2],
    Float32Array.of(1, 2, 3, 4),
    '7767656d6d2d7077 0100000001000000 ec9877b4d9dc3ce4 67656d6d00000000 666c6f6174333200 0800010008000400 0200000000000000' +
      ' 0200000000000000 0200000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000803f00000040' +
      ' 0000000000000000 0000000000000000 0000000000000000 0000404000008040 0000000000000000 0000000000000000 0000000000000000',
  ],
  [
    'bfloat16',
    [2, 1, 3],
    Uint16Array.of(1, 2, 3, 4, 5, 6),
    '7767656d6d2d7077 0100000001000000 4a1488274e0782a9 67656d6d00000000 62666c6f61743136 0800010000000200 0300000000000000' +
      ' 0200000000000000 0100000000000000 0300000000000000 0100020003000000 0000000000000000 0400050006000000 0000000000000000',
  ],
  [
    'uint8',
    [3, 2],
    Uint8Array.of(0, 1, 2, 127, 128, 255),
    '7767656d6d2d7077 0100000001000000 b711ff5114133ad3 7167656d6d000000 75696e7438000000 0800020000000100 0200000000000000' +
      ' 0300000000000000 0200000000000000 808281ff00000000 0000000000000000 00007f0000000000 0000000000000000',
  ],
];

describe('bytes of packed weights', () => {
  it.each(goldens)('are of one form for ever: %s %j', (dtype, shape, data, hex) => {
    using weights = pack(wg, { dtype, shape, data }, dtype);
    expect(hexOf(weights.serialize())).toBe(hex);
    using read = wg.deserialize(bytesOf(hex));
    expect(sameBytes(product(wg, read), product(wg, weights))).toBe(true);
  });

  it.each(allTypes)('of %s are read by this instance and by another', (dtype) => {
    const random = new Random(2);
    const shapes = [[1, 1], [5, 9], [8, 16], [0, 3], [3, 0], [2, 3, 7, 5], [0, 3, 4], [1, 4, 4]]; // prettier-ignore
    for (const shape of shapes) {
      const b = random.tensor(dtype, shape);
      const weights = pack(wg, b, dtype);
      const bytes = weights.serialize();
      const { op, byteLength } = weights;
      const wanted = product(wg, weights);
      weights.dispose();
      using here = wg.deserialize(bytes);
      using there = other.deserialize(bytes.buffer);
      for (const [instance, read] of [
        [wg, here],
        [other, there],
      ] as const) {
        expect(read).toMatchObject({ op, dtype, shape, byteLength, disposed: false });
        expect(sameBytes(read.serialize(), bytes)).toBe(true);
        if (instance === wg || dtype.includes('int'))
          expect(sameBytes(product(instance, read), wanted)).toBe(true);
      }
      if ((dtypes as readonly string[]).includes(dtype)) {
        expectMatMul(wg, random.tensor(dtype, [2, shape.at(-2) as number]), b, null, {}, '', here);
      }
    }
    expect(other.memory().inUse).toBe(0);
  });

  it('are an array of its own, and are read from wherever they are', () => {
    const b = new Random(3).tensor('float32', [5, 9]);
    using weights = pack(wg, b, 'float32');
    const bytes = weights.serialize();
    expect(bytes.buffer).toBeInstanceOf(ArrayBuffer);
    expect(bytes.byteLength).toBe(bytes.buffer.byteLength);
    const copy = bytes.slice();
    const part = new Uint8Array(bytes.length + 5);
    part.set(bytes, 3);
    const shared = new Uint8Array(new SharedBuffer(bytes.length));
    shared.set(bytes);
    using heap = wg.alloc('uint8', [bytes.length]);
    heap.data.set(bytes);
    for (const from of [part.subarray(3, 3 + bytes.length), shared, shared.buffer, heap.data]) {
      using read = wg.deserialize(from);
      expect(sameBytes(product(wg, read), product(wg, weights))).toBe(true);
    }
    bytes.fill(0);
    expect(sameBytes(weights.serialize(), copy)).toBe(true);
  });

  it('of a view of the heap are read though the memory grows', async () => {
    using instance = await createGemm();
    const weights = instance.pack(new Random(4).tensor('float32', [300, 300]), { op: 'gemm' });
    const bytes = weights.serialize();
    weights.dispose();
    const heap = instance.alloc('uint8', [bytes.length]);
    heap.data.set(bytes);
    const { committed } = instance.memory();
    const filler = instance.alloc('uint8', [committed - instance.memory().inUse - 200_000]);
    using read = instance.deserialize(heap.data);
    expect(instance.memory().committed).toBeGreaterThan(committed);
    expect(sameBytes(read.serialize(), bytes)).toBe(true);
    filler.dispose();
  });

  it('of weights of nothing take nothing, however many columns they have', async () => {
    using small = await createGemm({ maxMemory: 20_000 });
    using weights = small.pack({ data: new Int8Array(0), shape: [0, 2 ** 40] }, { op: 'qgemm' });
    const bytes = weights.serialize();
    expect(bytes.length).toBe(72);
    using read = small.deserialize(bytes);
    expect(read).toMatchObject({ shape: [0, 2 ** 40], byteLength: weights.byteLength });
    expect(small.memory().inUse).toBeLessThan(3000);
    using narrow = small.pack({ data: new Int8Array(0), shape: [0, 3] }, { op: 'qgemm' });
    const a = { data: new Uint8Array(0), shape: [2, 0] };
    const y = small.qgemm({
      a,
      aScale: 1,
      aZeroPoint: 3,
      b: narrow,
      bScale: 1,
      bZeroPoint: 2,
      c: 5,
    });
    expect(Array.from(y.data)).toEqual([5, 5, 5, 5, 5, 5]);
  });
});

describe('deserialize refuses', () => {
  const good = bytesOf((goldens[0] as (typeof goldens)[0])[3]);
  const changed = (at: number, value: number) => Object.assign(good.slice(), { [at]: value });
  it('every byte that is changed, and every part', () => {
    for (let at = 0; at < good.length; ++at) {
      for (const bytes of [changed(at, (good[at] as number) ^ 1), good.subarray(0, at)]) {
        expect(
          thrown(() => wg.deserialize(bytes)),
          String(at),
        ).toMatchObject({ code: 'PACK_MISMATCH' });
      }
    }
  });

  it('sizes beyond what any memory has, by the bytes that they want', () => {
    const sizes = (rows: number, cols: number) => {
      const bytes = good.slice();
      new DataView(bytes.buffer).setBigUint64(56, BigInt(rows), true);
      new DataView(bytes.buffer).setBigUint64(64, BigInt(cols), true);
      return bytes;
    };
    for (const [rows, cols, says] of [
      [2 ** 32, 8, 'has 168 bytes; expected 137438953576'],
      [2 ** 53, 1, 'has 168 bytes; expected 288230376151711848'],
      [2 ** 32, 2 ** 32, 'has more than 2^53 elements, by its shape [4294967296, 4294967296]'],
    ] as const) {
      expectError(
        thrown(() => wg.deserialize(sizes(rows, cols))),
        {
          code: 'PACK_MISMATCH',
          op: 'deserialize',
          argument: 'bytes',
          says: [`deserialize: bytes ${says}`],
        },
      );
    }
  });

  it('if there is no memory, and keeps nothing; so does serialize', async () => {
    using small = await createGemm({ maxMemory: 35_000 });
    const weights = small.pack(new Random(5).tensor('float32', [300, 9]), { op: 'gemm' });
    const { inUse } = small.memory();
    expectError(
      thrown(() => weights.serialize()),
      {
        code: 'OUT_OF_MEMORY',
        op: 'serialize',
        argument: '',
        says: ['no memory for', 'maxMemory is 35000'],
      },
    );
    expect(small.memory().inUse).toBe(inUse);
    weights.dispose();
    using large = pack(wg, new Random(5).tensor('float32', [300, 9]), 'float32');
    const bytes = large.serialize();
    // There is room for the bytes but not for the weights, and then not even for the bytes.
    expectError(
      thrown(() => small.deserialize(bytes)),
      {
        code: 'OUT_OF_MEMORY',
        op: 'deserialize',
        argument: '',
        says: ['no memory for weights of 1 x 300 x 9 elements'],
      },
    );
    expectError(
      thrown(() => small.deserialize(new Uint8Array(50_000))),
      {
        code: 'OUT_OF_MEMORY',
        op: 'deserialize',
        argument: '',
        says: ['no memory for 50048 bytes'],
      },
    );
    expect(small.memory().inUse).toBe(0);
    using read = small.deserialize(good);
    expect(read.shape).toEqual([2, 2]);
  });
});

it('nothing but packed weights is serialized', () => {
  using tensor = wg.alloc('float32', [4, 4]);
  for (const value of [tensor, {}, Object.create(PackedWeights.prototype), undefined]) {
    expectError(
      thrown(() => PackedWeights.prototype.serialize.call(value as PackedWeights)),
      {
        code: 'ARGUMENT',
        op: 'serialize',
        argument: 'weights',
        says: ['it must be packed weights'],
      },
    );
  }
});

it('weights and instances that are disposed of are neither written nor read', async () => {
  const instance = await createGemm();
  const weights = instance.pack(float32([1, 2], 1, 2), { op: 'gemm' });
  const bytes = weights.serialize();
  const held = instance.deserialize(bytes);
  weights.dispose();
  expectError(
    thrown(() => weights.serialize()),
    { code: 'DISPOSED', op: 'serialize', argument: 'weights', says: ['disposed weights'] },
  );
  instance.dispose();
  expectError(
    thrown(() => held.serialize()),
    { code: 'DISPOSED', op: 'serialize', argument: 'weights', says: ['instance'] },
  );
  expectError(
    thrown(() => instance.deserialize(bytes)),
    { code: 'DISPOSED', op: 'deserialize', argument: 'instance', says: ['disposed'] },
  );
});
