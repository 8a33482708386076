/**
 * Weights that are packed for gemm and matmul: their results, the calls that refuse them, and the
 * memory that they hold.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type DType,
  type Gemm,
  type GemmOptions,
  PackedWeights,
  type TensorLike,
} from 'wgemm';
import { bytesOf, dtypes, floats, isFloat, set, valuesOf } from '../support/dtypes.js';
import { expectError, thrown, type Wanted } from '../support/errors.js';
import { shapeOfMatMul } from '../support/matmul-reference.js';
import { referenceGemm } from '../support/reference.js';
import { expectMatMul, layOut, place, placeNames } from '../support/stacks.js';
import {
  count,
  dispose,
  drop,
  expectCall,
  expectGemm,
  float32,
  Random,
  tensor,
} from '../support/tensors.js';

let wg: Gemm;
let other: Gemm;
beforeAll(async () => {
  wg = await createGemm();
  other = await createGemm();
});
afterAll(() => {
  wg.dispose();
  other.dispose();
});

type Op = 'gemm' | 'matmul';
const ops: readonly Op[] = ['gemm', 'matmul'];
const flags = [false, true];

/** Calls gemm with b packed, and expects the result of b itself. */
function expectPackedGemm(
  a: TensorLike,
  b: TensorLike,
  weights: PackedWeights,
  c: Parameters<typeof expectGemm>[3],
  options: GemmOptions,
  what: string,
) {
  const inputs = [a, b, c].filter(
    (input): input is TensorLike => typeof input === 'object' && input !== null,
  );
  const wanted = referenceGemm(a, b, c, options);
  return expectCall(
    wg,
    inputs,
    options.out as TensorLike | undefined,
    wanted,
    () => wg.gemm(a, weights, c, { ...options, transB: false } as GemmOptions),
    what,
  );
}

const factorsOf = (dtype: DType): readonly GemmOptions[] => [
  {},
  { alpha: 0.5, beta: -2 },
  { alpha: 3, beta: 2 },
  { alpha: 0, beta: 1 },
  { alpha: 2, beta: 0 },
  ...(dtype.endsWith('int64') ? [{ alpha: 2n ** 63n - 1n, beta: -3n }] : []),
];

describe.each(dtypes)('%s', (dtype) => {
  it.each(placeNames)('gemm: any A, C, alpha and beta, packed from %s', (where) => {
    const random = new Random(1);
    for (const trans of flags) {
      const op = ops[(placeNames.indexOf(where) + Number(trans)) % 2] as Op;
      const [n, k] = [random.pick([6, 17]), random.pick([5, 9])];
      const b = place(wg, where, dtype, trans ? [n, k] : [k, n], random);
      const weights = wg.pack(b, { op, trans });
      for (const m of [1, random.between(2, 7)]) {
        for (const factors of factorsOf(dtype)) {
          const transA = random.pick(flags);
          const a = place(wg, random.pick(placeNames), dtype, transA ? [k, m] : [m, k], random);
          const shape = random.pick([undefined, [], [1], [n], [1, n], [m, 1], [m, n]]);
          const c = shape
            ? place(wg, random.pick(placeNames), dtype, shape, random)
            : random.pick([null, 7]);
          const out = place(wg, random.pick(placeNames), dtype, [m, n], random);
          const options = { ...factors, transA, transB: trans };
          // Without C, the call refuses beta with out.
          const alone = c === null ? { ...options, beta: undefined } : options;
          const sizes = `${m} x ${n} x ${k}, C ${shape?.join()}`;
          const what = `${op}, trans ${trans}, ${sizes}, transA ${transA}, alpha ${factors.alpha}, beta ${factors.beta}`;
          expectPackedGemm(a, b, weights, c, options, what);
          expectPackedGemm(a, b, weights, c, { ...alone, out }, what);
          expectPackedGemm(a, b, weights, out, { ...options, out }, `${what}, out is C`);
          drop(a, c, out);
        }
      }
      drop(b, weights);
    }
  });

  it.each(placeNames)('matmul: any batch and bias, packed from %s', (where) => {
    const random = new Random(2);
    const [m, n, k] = [3, 10, 5];
    const batches = [[], [1], [2], [2, 3], [1, 3], [2, 1]];
    for (const trans of flags) {
      for (const batch of batches) {
        const b = place(wg, where, dtype, [...batch, ...(trans ? [n, k] : [k, n])], random);
        const weights = wg.pack(b, { op: random.pick(ops), trans });
        expect(weights.shape).toEqual([...batch, k, n]);
        for (const of of random.pick([
          [undefined, [2, 3]],
          [[], [1, 1]],
          [[2], [4, 2, 1]],
          [[2, 1], [3]],
        ])) {
          const transposeA = random.pick(flags);
          const srcShape = of ? [...of, ...(transposeA ? [k, m] : [m, k])] : [k];
          const options = { transposeA, transposeB: trans };
          const shape = shapeOfMatMul(srcShape, b.shape, options);
          const src = place(wg, random.pick(placeNames), dtype, srcShape, random);
          const what = JSON.stringify({ trans, batch, srcShape, transposeA });
          if (shape) {
            const bias = random.tensor(
              dtype,
              shape.map((size) => random.pick([1, size])).slice(random.between(0, shape.length)),
            );
            const out = place(wg, random.pick(placeNames), dtype, shape, random);
            expectMatMul(wg, src, b, null, options, what, weights);
            expectMatMul(wg, src, b, bias, { ...options, out }, what, weights);
            expectMatMul(wg, src, b, out, { ...options, out }, `${what}, out is bias`, weights);
            if (bytesOf(dtype) === 2)
              expectMatMul(wg, src, b, bias, { ...options, outType: 'float32' }, what, weights);
            drop(out);
          } else {
            const wanted: Wanted = {
              code: 'SHAPE',
              op: 'matmul',
              argument: 'weights',
              says: [`[${of?.join(', ')}]`, `[${batch.join(', ')}]`, 'aligned at the right'],
            };
            expectError(
              thrown(() => wg.matmul(src, weights, null, { transposeA })),
              wanted,
            );
          }
          drop(src);
        }
        drop(b, weights);
      }
    }
  });

  it('hold a copy: what was packed may change, and go', () => {
    const random = new Random(3);
    const b = random.tensor(dtype, [2, 5, 9]);
    const heap = wg.alloc(dtype, [2, 5, 9]);
    heap.data.set(b.data as never);
    using weights = wg.pack(heap, { op: 'matmul' });
    random.fill(heap.data, dtype);
    heap.dispose();
    expectMatMul(wg, random.tensor(dtype, [2, 3, 5]), b, 1, {}, '', weights);
  });

  it('have the sizes on both sides of every tile, and of none', () => {
    const random = new Random(4);
    for (const k of [0, 1, 2, 3, 4, 5, 8, 9, 15]) {
      for (const n of [0, 1, 2, 4, 5, 7, 8, 9, 16, 17, 31]) {
        const trans = random.pick(flags);
        const b = random.tensor(dtype, trans ? [n, k] : [k, n]);
        using weights = wg.pack(b, { op: 'gemm', trans });
        for (const m of [random.between(0, 9), 1]) {
          const a = random.tensor(dtype, [m, k]);
          const c = random.pick([null, random.tensor(dtype, [m, 1]), random.tensor(dtype, [n])]);
          expectPackedGemm(a, b, weights, c, { transB: trans }, `${m} x ${n} x ${k}`);
          expectMatMul(wg, a, b, c, { transposeB: trans }, `${m} x ${n} x ${k}`, weights);
        }
      }
    }
  });

  it.each([
    ['deep enough to split K', [2], 3, 5, 9001],
    ['deep enough to split K, of many rows', [], 40, 3, 4097],
    ['wide enough to split N', [], 2, 20001, 2],
    ['tall enough to split M', [], 5000, 2, 3],
    ['of many matrices', [200], 2, 3, 2],
  ] as const)('are right in a product %s', (_, batch, m, n, k) => {
    const random = new Random(5);
    const trans = random.pick(flags);
    const b = random.tensor(dtype, [...batch, ...(trans ? [n, k] : [k, n])]);
    using weights = wg.pack(b, { op: 'matmul', trans });
    expectMatMul(
      wg,
      random.tensor(dtype, [...batch, m, k]),
      b,
      random.tensor(dtype, [n]),
      { transposeB: trans },
      '',
      weights,
    );
  });

  it('may be empty batches', () => {
    const random = new Random(6);
    for (const shape of [
      [0, 5, 9],
      [2, 0, 5, 9],
      [2, 0, 9],
      [0, 0, 0],
    ]) {
      const b = random.tensor(dtype, shape);
      using weights = wg.pack(b, { op: 'matmul' });
      expect(weights.shape).toEqual(shape);
      expectMatMul(
        wg,
        random.tensor(dtype, [3, shape.at(-2) as number]),
        b,
        2,
        {},
        shape.join(),
        weights,
      );
    }
  });

  it('are of strides that repeat or leave gaps', () => {
    const random = new Random(7);
    for (const strides of [
      [0, 1, 5],
      [0, 0, 1],
      [45, 9, 1],
      [1, 100, 10],
      [3, 30, 300],
      [0, 0, 0],
    ]) {
      const b = layOut(dtype, [3, 5, 9], strides);
      random.fill(b.data, dtype);
      using weights = wg.pack(b, { op: 'matmul' });
      expectMatMul(wg, random.tensor(dtype, [3, 2, 5]), b, null, {}, strides.join(), weights);
    }
  });

  it('tell what they are, and are kept as they were given', () => {
    const random = new Random(8);
    const b = random.tensor(dtype, [2, 64, 48]);
    for (const op of ops) {
      for (const trans of flags) {
        using weights = wg.pack(b, { op, trans });
        expect(weights).toBeInstanceOf(PackedWeights);
        expect(weights).toMatchObject({
          op: 'gemm',
          dtype,
          shape: trans ? [2, 48, 64] : [2, 64, 48],
          disposed: false,
        });
        expect(weights.byteLength).toBeGreaterThanOrEqual(b.data.byteLength);
        expect(weights.byteLength).toBeLessThan(1.2 * b.data.byteLength + 4096);
        expect(() => Object.assign(weights, { dtype: 'int8' })).toThrow(TypeError);
        expect(() => (weights.shape as number[]).push(1)).toThrow(TypeError);
      }
    }
  });

  if (isFloat(dtype)) {
    it('keep NaN, infinities, -0 and subnormal numbers', () => {
      const { digits, least } = floats[dtype];
      const numbers = [
        NaN,
        Infinity,
        -Infinity,
        -0,
        2 ** (least - digits + 1),
        -3 * 2 ** (least - digits + 1),
      ];
      for (const trans of flags) {
        const b = tensor(dtype, trans ? [6, 1] : [1, 6], numbers);
        using weights = wg.pack(b, { op: 'gemm', trans });
        const one = tensor(dtype, [1, 1], [1]);
        expect(
          valuesOf(wg.gemm(one, weights, 0, { beta: 0 })).map((value) => (value === 0 ? 0 : value)),
        ).toEqual(numbers.map((value) => (value === 0 ? 0 : value)));
      }
      const random = new Random(9);
      for (const special of [NaN, Infinity, -Infinity]) {
        const b = random.tensor(dtype, [3, 5, 9]);
        set(b.data, dtype, 60, special);
        using weights = wg.pack(b, { op: 'matmul' });
        expectMatMul(wg, random.tensor(dtype, [4, 5]), b, null, {}, String(special), weights);
      }
    });
  }
});

describe.each(['bfloat16', 'float16'] as const)('of %s next to float32', (as) => {
  it('are as in float32, rounded to nearest even', async () => {
    const random = new Random(11);
    const strict = await createGemm({ determinism: 'strict' });
    for (const m of [1, 2, 3, 5, 16, 48, 49, 64, 130]) {
      for (const [n, k] of [
        [1, 1],
        [9, 33],
        [40, 130],
      ] as const) {
        const trans = random.pick(flags);
        const [a, b, c] = [
          random.tensor('float32', [m, k]),
          random.tensor('float32', trans ? [n, k] : [k, n]),
          random.tensor('float32', [n]),
        ];
        const rounded = tensor(as, b.shape, valuesOf(b));
        const wide = tensor('float32', b.shape, valuesOf(rounded));
        const [x, w, y] = [
          strict.alloc('float32', [m, k]),
          strict.alloc('float32', b.shape),
          strict.alloc('float32', [m, n]),
        ];
        x.data.set(a.data as Float32Array);
        w.data.set(b.data as Float32Array);
        const packs = [
          strict.pack(b, { op: 'gemm', trans, as }),
          strict.pack(rounded, { op: 'matmul', trans }),
          strict.pack(w, { op: 'gemm', trans, as }),
        ];
        const wanted = strict.gemm(a, wide, c, { transB: trans, alpha: 0.5 });
        for (const weights of packs) {
          expect(weights).toMatchObject({ dtype: as, shape: [k, n] });
          expect(weights.byteLength).toBe(packs[0]?.byteLength);
          expect(strict.gemm(a, weights, c, { alpha: 0.5 })).toEqual(wanted);
          expect(strict.matmul(a, weights, c)).toEqual(
            strict.matmul(a, wide, c, { transposeB: trans }),
          );
          expect(strict.gemm(x, weights, null, { out: y }).data).toEqual(
            strict.gemm(a, wide, null, { transB: trans }).data,
          );
        }
        using fast = wg.pack(b, { op: 'gemm', trans, as });
        expectPackedGemm(a, wide, fast, c, { transB: trans }, `${m} x ${n} x ${k}`);
        drop(x, w, y, ...packs);
      }
    }
    strict.dispose();
  });

  it('serve their own type as before, and no other', () => {
    const b = float32([2, 3], 1, 2, 3, 4, 5, 6);
    using weights = wg.pack(b, { op: 'gemm', as });
    expect(valuesOf(wg.gemm(tensor(as, [1, 2], [1, 1]), weights))).toEqual([5, 7, 9]);
    expect(valuesOf(wg.matmul(float32([2], 1, 1), weights, 1))).toEqual([6, 8, 10]);
    const says = [`packed as ${as}`, 'for a float32'];
    for (const dtype of dtypes.filter((dtype) => dtype !== as && dtype !== 'float32')) {
      expectError(
        thrown(() => wg.gemm(new Random(1).tensor(dtype, [1, 2]), weights)),
        { code: 'DTYPE', argument: 'B', says },
      );
    }
  });
});

describe('pack', () => {
  it('takes any number but 0 as true for trans', () => {
    const b = float32([1, 2], 3, 4);
    for (const op of ops) {
      for (const trans of [true, 1, -1, 0.5, Infinity])
        expect(wg.pack(b, { op, trans }).shape, String(trans)).toEqual([2, 1]);
      for (const trans of [false, 0, -0, undefined])
        expect(wg.pack(b, { op, trans }).shape, String(trans)).toEqual([1, 2]);
    }
  });

  const good = () => float32([2, 3], 1, 2, 3, 4, 5, 6);

  it('is refused if a getter disposes of what is packed, or of the instance', async () => {
    const heap = wg.alloc('float32', [2, 3]);
    const { inUse } = wg.memory();
    const options = {
      op: 'gemm' as const,
      get trans() {
        heap.dispose();
        return false;
      },
    };
    expectError(
      thrown(() => wg.pack(heap, options)),
      { op: 'pack', code: 'DISPOSED', argument: 'B', says: ['disposed tensor'] },
    );
    expect(wg.memory().inUse).toBeLessThan(inUse);
    const instance = await createGemm();
    const ending = {
      op: 'gemm' as const,
      get trans() {
        instance.dispose();
        return false;
      },
    };
    const wanted: Wanted = {
      op: 'pack',
      code: 'DISPOSED',
      argument: 'instance',
      says: ['disposed'],
    };
    expectError(
      thrown(() => instance.pack(good(), ending)),
      wanted,
    );
    expectError(
      thrown(() => instance.pack(good(), { op: 'gemm' })),
      wanted,
    );
  });
});

describe('packed weights', () => {
  const b = float32([2, 3], 1, 2, 3, 4, 5, 6);
  const a = float32([1, 2], 1, 2);

  it('take any 0 as a flag to transpose', () => {
    using weights = wg.pack(b, { op: 'gemm' });
    expect(Array.from(wg.matmul(a, weights, null, { transposeB: 0 }).data)).toEqual([9, 12, 15]);
    expect(Array.from(wg.gemm(a, weights, null, { transB: false }).data)).toEqual([9, 12, 15]);
  });

  it('free their memory, once', () => {
    const { inUse } = wg.memory();
    const weights = wg.pack(new Random(11).tensor('float32', [4, 100, 70]), { op: 'matmul' });
    expect(wg.memory().inUse - inUse).toBe(64 + Math.ceil(weights.byteLength / 64) * 64);
    weights.dispose();
    expect(wg.memory().inUse).toBe(inUse);
    const heir = wg.alloc('float32', [28000]);
    weights.dispose();
    weights[dispose]();
    expect(wg.memory().inUse).toBeGreaterThan(inUse);
    heir.dispose();
    expect(wg.memory().inUse).toBe(inUse);
  });

  it('are freed with their instance, or when nobody can reach them', async () => {
    const instance = await createGemm();
    const weights = instance.pack(b, { op: 'matmul' });
    (() => void instance.pack(new Random(12).tensor('float32', [100, 100]), { op: 'matmul' }))();
    const { inUse } = instance.memory();
    for (let i = 0; i < 50 && instance.memory().inUse === inUse; ++i) {
      (globalThis as unknown as { gc(): void }).gc();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(inUse - instance.memory().inUse).toBeGreaterThan(40_000);
    expect(weights.disposed).toBe(false);
    instance.dispose();
    expect(weights.disposed).toBe(true);
    weights.dispose();
    expectError(
      thrown(() => wg.matmul(a, weights)),
      { code: 'ARGUMENT', op: 'matmul', argument: 'weights', says: ['another instance'] },
    );
  });

  it('that memory has no room for are refused, and nothing is kept', async () => {
    const instance = await createGemm({ maxMemory: 60_000 });
    const large = new Random(13).tensor('float32', [100, 100]); // fits, but not twice
    expectError(
      thrown(() => instance.pack(large, { op: 'gemm' })),
      { code: 'OUT_OF_MEMORY', op: 'pack', argument: '', says: ['no memory for', /in use/] },
    );
    expect(instance.memory().inUse).toBe(0);
    const many = {
      data: new Float32Array(1),
      shape: [2 ** 20, 2 ** 20, 2 ** 10],
      strides: [0, 0, 0],
    };
    expectError(
      thrown(() => instance.pack(many, { op: 'gemm' })),
      {
        code: 'OUT_OF_MEMORY',
        op: 'pack',
        argument: '',
        says: ['no memory for', '1048576 x 1048576 x 1024'],
      },
    );
    expect(instance.memory().inUse).toBe(0);
    using weights = instance.pack(b, { op: 'gemm' });
    expect(Array.from(instance.gemm(a, weights).data)).toEqual([9, 12, 15]);
    instance.dispose();
  });

  it('explain tells of them: B is not packed again if the kernel reads it so, nor copied', () => {
    const random = new Random(14);
    for (const dtype of dtypes) {
      const [src, weights] = [random.tensor(dtype, [2, 50, 300]), random.tensor(dtype, [300, 240])]; // too many to read B in place
      using packed = wg.pack(weights, { op: 'matmul' });
      const [plain, stored] = [
        wg.explain('matmul', src, weights),
        wg.explain('matmul', src, packed),
      ];
      expect(plain.packs.b).toBe(true);
      expect(stored).toMatchObject({
        op: 'matmul',
        batch: 1,
        m: 100,
        n: 240,
        k: 300,
        copies: plain.copies - count([300, 240]) * bytesOf(dtype),
      });
      if (!stored.packs.b) expect(stored.scratch).toBeLessThan(plain.scratch);
    }
    // The storage here is the kernel's own layout.
    using packed = wg.pack(random.tensor('float32', [40, 24]), { op: 'gemm' });
    expect(wg.explain('gemm', random.tensor('float32', [5, 40]), packed).packs.b).toBe(false);
  });
});
