/**
 * Memory under pressure: calls that get no memory, one byte less than they need, or just enough.
 * Then many calls of all kinds.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createGemm,
  type DType,
  type Gemm,
  GemmError,
  type HeapTensor,
  PackedWeights,
  type QuantizedArray,
  type TensorLike,
} from 'wgemm';
import { allTypes, bytesOf, dtypeOf, dtypes } from '../support/dtypes.js';
import { expectError, thrown } from '../support/errors.js';
import { count, expectGemm, float32, Random, sameBytes } from '../support/tensors.js';

/** Bytes in use for a tensor or weights of `bytes` bytes. */
const taken = (bytes: number) => 64 + Math.ceil(bytes / 64) * 64;

const opOf = (dtype: DType) => (dtype.endsWith('int8') ? 'qgemm' : 'gemm');
const packIn = (wg: Gemm, b: TensorLike, dtype: DType, trans = false) =>
  wg.pack(b as TensorLike<QuantizedArray>, { op: opOf(dtype), trans });

/** A product by the operation that has the type. */
function multiply(
  wg: Gemm,
  a: TensorLike,
  b: TensorLike | PackedWeights,
  out?: TensorLike,
): TensorLike {
  const dtype = 'dtype' in a ? (a.dtype as DType) : 'float32';
  const options = out ? { out } : {};
  if (opOf(dtype) === 'gemm') return wg.gemm(a, b, null, options as { out: TensorLike });
  return wg.qgemm({ a, aScale: 1, b, bScale: 1 } as never, options as never);
}

describe('if memory is just not enough, each call fails with nothing written or kept, and the next is right', () => {
  const limit = 1 << 20;
  let wg: Gemm;
  beforeEach(async () => {
    wg = await createGemm({ maxMemory: limit });
  });
  afterEach(() => wg.dispose());

  const [m, n, k] = [40, 50, 60];
  const random = new Random(1);
  /** A call, its tensors in the heap, and the out that must stay unchanged if it fails. */
  type Made = { call: () => unknown; op: string; out?: TensorLike; held: { dispose(): void }[] };
  const kinds: Record<string, (dtype: DType, a: TensorLike, b: TensorLike) => Made> = {
    'a product of arrays': (dtype, a, b) => ({
      op: opOf(dtype),
      call: () => multiply(wg, a, b),
      held: [],
    }),
    'a product into an array': (dtype, a, b) => {
      const out = random.tensor(opOf(dtype) === 'qgemm' ? 'float32' : dtype, [m, n]);
      return { op: opOf(dtype), call: () => multiply(wg, a, b, out), out, held: [] };
    },
    'a product in the heap': (dtype, a, b) => {
      const held = [
        wg.alloc(dtype, [m, k]),
        wg.alloc(dtype, [k, n]),
        wg.alloc(opOf(dtype) === 'qgemm' ? 'float32' : dtype, [m, n]),
      ] as const;
      held[0].data.set(a.data as never);
      held[1].data.set(b.data as never);
      return {
        op: opOf(dtype),
        call: () => multiply(wg, held[0], held[1], held[2]),
        out: held[2],
        held: [...held],
      };
    },
    'a product of packed weights': (dtype, a, b) => {
      const weights = packIn(wg, b, dtype);
      return { op: opOf(dtype), call: () => multiply(wg, a, weights), held: [weights] };
    },
    packing: (dtype, _, b) => ({ op: 'pack', call: () => packIn(wg, b, dtype), held: [] }),
    'weights to bytes': (dtype, _, b) => {
      const weights = packIn(wg, b, dtype);
      return { op: 'serialize', call: () => weights.serialize(), held: [weights] };
    },
    'weights of bytes': (dtype, _, b) => {
      const weights = packIn(wg, b, dtype);
      const bytes = weights.serialize();
      weights.dispose();
      return { op: 'deserialize', call: () => wg.deserialize(bytes), held: [] };
    },
    'a tensor': (dtype) => ({ op: 'alloc', call: () => wg.alloc(dtype, [m, n]), held: [] }),
  };

  it.each(Object.keys(kinds).flatMap((kind) => allTypes.map((dtype) => [kind, dtype] as const)))(
    '%s: %s',
    (kind, dtype) => {
      const [a, b] = [random.tensor(dtype, [m, k]), random.tensor(dtype, [k, n])];
      const { call, op, out, held } = (kinds[kind] as (typeof kinds)[string])(dtype, a, b);
      const result = () => {
        const value = call();
        const { data } = value as { data?: TensorLike['data'] };
        if (value instanceof Uint8Array) return value;
        const copy =
          value instanceof PackedWeights ? value.serialize() : (data as TensorLike['data']).slice();
        if (value !== out) (value as { dispose?(): void }).dispose?.();
        return copy;
      };
      const wanted = result();
      const before = wg.memory().inUse;
      let failures = 0;
      for (let left = 0; ; left += left < 256 ? 64 : 2048) {
        const filler = wg.alloc('uint8', [limit - before - left - 64]);
        const { inUse } = wg.memory();
        if (out) random.fill(out.data, dtypeOf(out));
        const was = out?.data.slice();
        let error;
        let value: unknown;
        try {
          value = call();
        } catch (thrown) {
          error = thrown;
        }
        if (error === undefined) {
          if (value !== out) (value as { dispose?(): void }).dispose?.();
          expect(wg.memory().inUse).toBe(inUse);
          filler.dispose();
          break;
        }
        ++failures;
        expectError(error, {
          code: 'OUT_OF_MEMORY',
          op,
          argument: '',
          says: ['no memory for', /\d+ bytes are in use/],
        });
        expect(wg.memory().inUse).toBe(inUse);
        if (out && was) expect(sameBytes(out.data, was)).toBe(true);
        filler.dispose();
        expect(sameBytes(result(), wanted)).toBe(true);
        expect(wg.memory().inUse).toBe(before);
      }
      // Small products in the heap take nothing that the limit could refuse.
      if (kind !== 'a product in the heap') expect(failures).toBeGreaterThan(2);
      for (const each of held) each.dispose();
      expect(wg.memory().inUse).toBe(0);
    },
  );
});

/** All of them with `npm run soak`. */
const calls = Number(
  (globalThis as { process?: { env: Record<string, string> } }).process?.env.WGEMM_SOAK ?? 5000,
);

it(`${calls} mixed calls end with the bytes in use that they began with`, async () => {
  const limit = 1 << 20;
  const wg = await createGemm({ maxMemory: limit });
  const random = new Random(2026);
  type Held = { object: HeapTensor | PackedWeights; bytes: number };
  const held: Held[] = [];
  const kept: Uint8Array[] = [];
  const size = () => random.pick([0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 33, random.between(1, 64)]);
  const keep = <T extends HeapTensor | PackedWeights>(object: T, bytes: number) =>
    void held.push({ object, bytes: taken(bytes) });
  /** A tensor in an array or in the heap, mostly of the shape asked for; or weights. */
  const operand = (dtype: DType, shape: number[], mayBePacked: boolean) => {
    const wanted = random.next() < 0.1 ? shape.map(size) : shape;
    const found = held
      .map(({ object }) => object)
      .filter(
        (object) => object.dtype === dtype && (mayBePacked || !(object instanceof PackedWeights)),
      );
    if (random.next() < 0.3 && found.length > 0) return random.pick(found) as HeapTensor;
    return random.tensor(dtype, wanted);
  };
  const steps: (() => unknown)[] = [
    ...[1, 2, 3].map(() => () => {
      const dtype = random.pick(allTypes);
      const [m, n, k] = [size(), size(), size()];
      const out = random.pick([
        undefined,
        operand(opOf(dtype) === 'qgemm' ? 'float32' : dtype, [m, n], false),
      ]);
      return multiply(wg, operand(dtype, [m, k], false), operand(dtype, [k, n], true), out);
    }),
    () => {
      const dtype = random.pick(dtypes);
      const [m, n, k] = [size(), size(), size()];
      return wg.matmul(
        operand(dtype, [3, m, k], false),
        operand(dtype, [k, n], true),
        random.pick([null, 1, operand(dtype, [n], false)]),
        {
          transposeA: random.next() < 0.1,
        },
      );
    },
    () => {
      const dtype = random.pick(allTypes);
      const weights = packIn(
        wg,
        operand(dtype, [size(), size()], random.next() < 0.1),
        dtype,
        random.next() < 0.5,
      );
      keep(weights, weights.byteLength);
    },
    () => {
      const weights = held
        .map(({ object }) => object)
        .find((object) => object instanceof PackedWeights);
      if (weights) kept[random.between(0, 4)] = weights.serialize();
    },
    () => {
      const bytes = kept.filter((each) => each.length > 0)[random.between(0, 4)];
      if (!bytes) return;
      if (random.next() < 0.3) bytes[random.between(0, bytes.length - 1)] = random.between(0, 255);
      const weights = wg.deserialize(
        random.next() < 0.2 ? bytes.subarray(random.between(0, 99)) : bytes,
      );
      keep(weights, weights.byteLength);
    },
    () => {
      const dtype = random.pick(allTypes);
      const shape = random.next() < 0.1 ? [random.between(1, 2 ** 18), 8] : [size(), size()];
      keep(wg.alloc(dtype, shape), count(shape) * bytesOf(dtype));
    },
    () => held.splice(random.between(0, held.length), 1)[0]?.object.dispose(),
    () =>
      wg.explain(
        'gemm',
        operand('float32', [size(), size()], false),
        operand('float32', [size(), size()], true),
      ),
  ];
  const failures: Record<string, number> = {};
  const wrong: string[] = [];
  let sum: number;
  for (let i = 0; i < calls; ++i) {
    try {
      random.pick(steps)();
    } catch (error) {
      if (!(error instanceof GemmError)) throw error;
      failures[error.code] = (failures[error.code] ?? 0) + 1;
    }
    while (held.length > 24)
      held.splice(random.between(0, held.length - 1), 1)[0]?.object.dispose();
    sum = held.reduce((total, { bytes }) => total + bytes, 0);
    if (wg.memory().inUse !== sum)
      wrong.push(`call ${i}: ${wg.memory().inUse} bytes are in use, ${sum} are held`);
    if (wrong.length > 0) break;
    if (i % 64 === 0 && sum < limit / 2)
      expectGemm(wg, float32([1, 2], 1, 2), float32([2, 2], 3, 4, 5, 6));
  }
  expect(wrong).toEqual([]);
  for (const { object } of held) object.dispose();
  expect(wg.memory().inUse).toBe(0);
  expect(wg.memory().committed).toBeLessThanOrEqual(4 * limit);
  for (const code of ['SHAPE', 'PACK_MISMATCH', 'OUT_OF_MEMORY'])
    expect(failures[code], code).toBeGreaterThan(calls / 1000);
  if (calls > 5000)
    console.log(
      `${wg.info.build}, threads ${wg.info.threads}: ${calls} calls, errors ${JSON.stringify(failures)}`,
    );
  expectError(
    thrown(() => wg.alloc('uint8', [limit])),
    { code: 'OUT_OF_MEMORY', op: 'alloc', argument: '', says: ['0 bytes are in use'] },
  );
  wg.dispose();
}, 1_800_000);
