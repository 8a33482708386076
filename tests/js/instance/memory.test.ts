/**
 * Memory: calls keep none, tensors survive its growth, and tensors that are dropped are freed.
 */
import { describe, expect, it } from 'vitest';
import {
  createGemm,
  type Gemm,
  GemmError,
  type HeapTensor,
  type PackedWeights,
  quantizeNBits,
} from 'wgemm';
import { allTypes, arrayClasses, bytesOf, dtypes } from '../support/dtypes.js';
import { draw, expectQGemm, packed } from '../support/quantized.js';
import type { Matrix } from '../support/reference.js';
import {
  dispose,
  expectGemm,
  float32,
  int32,
  place,
  placeNames,
  Random,
  tensor,
} from '../support/tensors.js';

const square = float32([2, 2], 1, 2, 3, 4);

describe('memory()', () => {
  it('counts what tensors hold, and gives it back', async () => {
    const wg = await createGemm();
    expect(wg.memory().inUse).toBe(0);
    const tensors = [1, 100, 10_000].map((size) => wg.alloc('float32', [size]));
    const full = wg.memory();
    expect(full.inUse).toBeGreaterThanOrEqual(4 * 10_101);
    expect(full.inUse).toBeLessThan(4 * 10_101 + 3 * 128);
    expect(full.committed).toBeGreaterThanOrEqual(full.inUse);
    for (const tensor of tensors) tensor.dispose();
    expect(wg.memory()).toEqual({ inUse: 0, committed: full.committed });
    wg.dispose();
  });

  it('does not grow over thousands of calls, of every kind, that succeed and that fail', async () => {
    const wg = await createGemm();
    const [a, b, out] = [
      wg.alloc('float32', [16, 16]),
      wg.alloc('float32', [16, 16]),
      wg.alloc('float32', [16, 16]),
    ];
    const array = { data: new Random(1).fill(new Float32Array(256)), shape: [16, 16] };
    const eight = { data: new Uint8Array(6).fill(3), shape: [2, 3] };
    const operands = {
      a: eight,
      aScale: 1,
      b: { data: new Int8Array(6).fill(5), shape: [3, 2] },
      bScale: Float32Array.of(1, 2),
    };
    const weights = wg.pack(operands.b, { op: 'qgemm' });
    const nbits = quantizeNBits({ data: new Float32Array(32).fill(2), shape: [16, 2] });
    const calls: (() => unknown)[] = [
      () => wg.qgemm(operands),
      () => wg.qgemm({ ...operands, b: weights, c: 5, yScale: 1, yZeroPoint: 1 }, { alpha: 2 }),
      () => wg.explain('qgemm', { ...operands, b: weights }),
      () => wg.pack(operands.b, { op: 'qgemm', trans: true }).dispose(),
      () => wg.matmulInteger(eight, weights, { aZeroPoint: Uint8Array.of(1, 2) }),
      () => wg.qlinearMatmul({ ...operands, yScale: Float32Array.of(2, 3), yZeroPoint: 1 }),
      () => wg.dynamicQuantizeMatmul(a, { ...array, data: new Int8Array(256) }, { bScale: 1, out }),
      () => wg.matmulIntegerToFloat(eight, weights, { aScale: 1, bScale: operands.bScale }),
      () => wg.explain('dynamicQuantizeMatmul', float32([1, 3], 1, 2, 3), weights, { bScale: 1 }),
      () => wg.matmulNBits(float32([1, 16], ...Array<number>(16).fill(1)), nbits),
      () => wg.pack(nbits, { op: 'matmulNBits' }).dispose(),
      () => wg.syrk(array, { alpha: 2 }),
      () => wg.syrk(a, { out, transA: true }),
      () => wg.explain('syrk', array),
      () => wg.gemm(a, b, null, { out }),
      () => wg.gemm(a, array, out, { out, alpha: 0.5, transA: true }),
      () => wg.gemm(array, array, 1),
      () => wg.gemm(array, b, array, { out: { data: out.data, shape: [16, 16] } }),
      () => wg.gemm(int32([1, 2], 1, 2), int32([2, 1], 3, 4), null, { alpha: 0.5 }),
      ...dtypes.map(
        (dtype) => () => wg.gemm(tensor(dtype, [1, 2], [1, 2]), tensor(dtype, [2, 1], [3, 4]), 5),
      ),
      () => wg.explain('gemm', a, array),
      () => wg.alloc('int32', [33]).dispose(),
      () => wg.alloc('float32', [2 ** 31]),
      () => wg.gemm(a, square),
      () => wg.gemm(a, b, null, { out: a }),
      () => wg.gemm(array, b, square, { alpha: 2 }),
      () => wg.gemm(array, array, null, { opset: 7 }),
      () => wg.qgemm({ ...operands, bScale: Float32Array.of(1, NaN) }), // found when all is copied
      () =>
        wg.qgemm(
          { ...operands, b: weights, bScale: Float32Array.of(0, 1) },
          { out: { data: out.data.subarray(4, 8), shape: [2, 2] } },
        ),
      () => wg.qgemm({ ...operands, a: operands.b, b: weights }),
      () => wg.qgemm({ ...operands, aZeroPoint: 256 }),
      () => wg.matmulInteger(eight, operands.b, { bZeroPoint: Int8Array.of(1, 2, 3) }),
      () => wg.qlinearMatmul({ ...operands, yScale: Float32Array.of(1, 0) }),
      () => wg.dynamicQuantizeMatmul(float32([1, 3], 1, NaN, 3), weights, { bScale: 1 }),
      () => wg.matmulIntegerToFloat(eight, weights, { aScale: 1, bScale: 1, bias: square }),
      () => wg.pack({ ...operands.b, shape: [7, 1] }, { op: 'qgemm' }),
      () => wg.matmulNBits(float32([1, 3], 1, 2, 3), nbits),
      () => wg.pack({ ...nbits, n: 7 }, { op: 'matmulNBits' }),
      () => wg.syrk(array, { out: square }),
    ];
    // The engine collects its garbage before it refuses such an array.
    const slow = () =>
      wg.gemm(
        { data: new Float32Array(1), shape: [2 ** 40, 1], strides: [0, 0] },
        float32([1, 1], 1),
      );
    const round = (also: (() => unknown)[] = []) => {
      let failed = 0;
      for (const call of [...calls, ...also]) {
        try {
          call();
        } catch (error) {
          if (!(error instanceof GemmError)) throw error;
          ++failed;
        }
      }
      return failed;
    };
    expect(round([slow])).toBe(18);
    const before = wg.memory();
    for (let i = 0; i < 2000; ++i) round(i % 200 === 0 ? [slow] : []);
    expect(wg.memory()).toEqual(before);
    wg.dispose();
  });

  it('is at most maxMemory, though each tensor is larger than the one before', async () => {
    using wg = await createGemm({ maxMemory: 64_000_000 });
    for (let size = 10_000_000; size <= 60_000_000; size += 10_000_000)
      wg.alloc('uint8', [size]).dispose();
    expect(wg.memory().committed).toBeLessThanOrEqual(64_000_000);
  });

  it('does not grow over many tensors that come and go in no order', async () => {
    const wg = await createGemm();
    const random = new Random(2);
    const held: HeapTensor[] = [];
    const step = () => {
      if (held.length < 20 || random.next() < 0.5)
        held.push(wg.alloc('float32', [Math.floor(random.next() * 2000)]));
      else held.splice(Math.floor(random.next() * held.length), 1)[0]?.dispose();
      if (held.length > 40) for (const tensor of held.splice(0, 20)) tensor.dispose();
    };
    for (let i = 0; i < 2000; ++i) step();
    const { committed } = wg.memory();
    for (let i = 0; i < 20_000; ++i) step();
    expect(wg.memory().committed).toBeLessThanOrEqual(2 * committed);
    for (const tensor of held) tensor.dispose();
    expect(wg.memory().inUse).toBe(0);
    wg.dispose();
  });
});

describe('a heap tensor', () => {
  it.each(allTypes)('of %s is zeros, also in memory that had other numbers', async (dtype) => {
    const wg = await createGemm();
    for (let i = 0; i < 10; ++i) {
      const { inUse } = wg.memory();
      const tensor = wg.alloc(dtype, [10, 10]);
      expect(tensor).toMatchObject({ dtype, shape: [10, 10], size: 100, disposed: false });
      expect(wg.memory().inUse - inUse).toBe(64 + Math.ceil((100 * bytesOf(dtype)) / 64) * 64);
      expect(tensor.data).toEqual(new arrayClasses[dtype](100));
      new Random(i).fill(tensor.data, dtype);
      tensor.dispose();
    }
    wg.dispose();
  });

  it('shares no memory with another', async () => {
    const wg = await createGemm();
    const tensors = Array.from({ length: 50 }, (_, i) => wg.alloc('float32', [i]));
    tensors.forEach((tensor, i) => tensor.data.fill(i));
    tensors.forEach((tensor, i) => expect(tensor.data).toEqual(new Float32Array(i).fill(i)));
    wg.dispose();
  });

  it('keeps the shape that it was made with', async () => {
    const wg = await createGemm();
    const shape = [2, 2];
    const tensor = wg.alloc('float32', shape);
    shape[0] = 1000;
    expect(tensor.shape).toEqual([2, 2]);
    // TypeScript forbids these. If they worked, calls would read memory behind the tensor's end.
    for (const change of [{ shape: [1000, 2] }, { size: 2000 }, { dtype: 'int32' }])
      expect(() => Object.assign(tensor, change)).toThrow(TypeError);
    expect(() => (tensor.shape as number[]).push(3)).toThrow(TypeError);
    wg.dispose();
  });

  it('may be disposed of twice, and by using', async () => {
    const wg = await createGemm();
    const tensor = wg.alloc('float32', [100]);
    const next = wg.alloc('float32', [100]);
    tensor.dispose();
    const { inUse } = wg.memory();
    tensor.dispose();
    tensor[dispose]();
    expect(wg.memory().inUse).toBe(inUse);
    // Another tensor has this memory by now. The dead one must not free it.
    const heir = wg.alloc('float32', [100]);
    tensor.dispose();
    heir.data.fill(1);
    expect(wg.alloc('float32', [100]).data).not.toEqual(heir.data);
    next.dispose();
    const left = wg.memory().inUse;
    {
      using scoped = wg.alloc('float32', [100]);
      expect(wg.memory().inUse).toBeGreaterThan(left);
      expect(scoped.disposed).toBe(false);
    }
    expect(wg.memory().inUse).toBe(left);
    wg.dispose();
  });

  it('outlives growth of the memory', async () => {
    const wg = await createGemm();
    const random = new Random(3);
    const tensor = wg.alloc('float32', [4, 5]);
    random.fill(tensor.data);
    const values = tensor.data.slice();
    const before = wg.memory().committed;
    wg.alloc('float32', [before / 4]).dispose();
    expect(wg.memory().committed).toBeGreaterThan(before);
    expect(tensor.data).toEqual(values);
    expectGemm(wg, tensor, float32([5, 1], 1, 2, 3, 4, 5));
    wg.dispose();
  });
});

describe('packed weights', () => {
  const b = new Random(7).tensor('int8', [50, 40]);
  const types = { a: 'uint8', b: 'int8' } as const;
  /** Expects the right result with these weights. */
  const expectRight = (wg: Gemm, weights: PackedWeights) => {
    const { inputs, options } = draw(wg, new Random(8), {
      types,
      sizes: [3, 40, 50],
      b: weights,
      where: 'an array',
    });
    expectQGemm(wg, inputs, options);
  };

  it('hold what they say until they are disposed of, twice or by using', async () => {
    const wg = await createGemm();
    const weights = packed(wg, b);
    expect(wg.memory().inUse).toBe(64 + Math.ceil(weights.byteLength / 64) * 64);
    const next = packed(wg, b);
    weights.dispose();
    const { inUse } = wg.memory();
    weights.dispose();
    weights[dispose]();
    // Others have this memory by now. The dead ones must not free it.
    const heir = packed(wg, b);
    weights.dispose();
    expect(wg.memory().inUse).toBe(2 * inUse);
    expectRight(wg, heir);
    next.dispose();
    heir.dispose();
    {
      using scoped = packed(wg, b);
      expect(wg.memory().inUse).toBe(inUse);
      expect(scoped.disposed).toBe(false);
    }
    expect(wg.memory().inUse).toBe(0);
    wg.dispose();
  });

  it('are gone with their instance', async () => {
    const wg = await createGemm();
    const weights = packed(wg, b);
    wg.dispose();
    expect(weights.disposed).toBe(true);
    weights.dispose();
    expect(weights).toMatchObject({ shape: [50, 40], dtype: 'int8' });
  });

  it('leave nothing behind over a thousand', async () => {
    const wg = await createGemm();
    const heap = place(wg, 'the heap', 'int8', [50, 40], new Random(9));
    const pack = () => {
      for (const from of [b, heap])
        for (const trans of [false, true]) packed(wg, from, trans).dispose();
    };
    pack();
    const before = wg.memory();
    for (let i = 0; i < 250; ++i) pack();
    expect(wg.memory()).toEqual(before);
    wg.dispose();
  });

  it('outlive growth of the memory, also during their packing', async () => {
    const wg = await createGemm();
    const { committed } = wg.memory();
    const weights = packed(wg, b);
    wg.alloc('uint8', [committed]).dispose();
    expect(wg.memory().committed).toBeGreaterThan(committed);
    expectRight(wg, weights);
    const grown = wg.memory().committed;
    const wide = new Random(10).tensor('uint8', [1, grown / 2]);
    using large = packed(wg, wide);
    expect(wg.memory().committed).toBeGreaterThan(grown);
    const y = wg.qgemm({
      a: { data: Uint8Array.of(3), shape: [1, 1] },
      aScale: 1,
      b: large,
      bScale: 1,
    }).data;
    expect(y.every((value, j) => value === 3 * (wide.data[j] as number))).toBe(true);
    expectRight(wg, weights);
    wg.dispose();
  });

  it('are not to be seen through views of the memory', async () => {
    const wg = await createGemm();
    const { buffer } = wg.alloc('int8', [1]).data;
    packed(wg, new Random(11).tensor('int8', [512, 512]));
    let refused = 0;
    for (let at = 0; at < buffer.byteLength; at += 4096) {
      const view = { data: new Int8Array(buffer, at, 4), shape: [2, 2] };
      expect(() => wg.qgemm({ a: view, aScale: 1, b: view, bScale: 1 })).toThrow(
        'a view of a tensor that was disposed',
      );
      ++refused;
    }
    expect(refused).toBeGreaterThan(100);
    wg.dispose();
  });
});

describe('growth of the memory during a call', () => {
  // 2 MB of B, and of the packed B: more than a new instance has.
  const wide = { data: new Random(4).fill(new Float32Array(500_000)), shape: [5, 100_000] };

  it.each(placeNames)('leaves A, C and out right in %s', async (where) => {
    const wg = await createGemm();
    const random = new Random(5);
    const tensors = [
      place(wg, where, 'float32', [1, 5], random),
      place(wg, where, 'float32', [1, 1], random),
    ] as const;
    const { committed } = wg.memory();
    expectGemm(wg, tensors[0], wide, tensors[1], { alpha: 2 });
    expect(wg.memory().committed).toBeGreaterThan(committed);
    wg.dispose();
  });

  it.each(['an array', 'the heap', 'a view of the heap'] as const)(
    'leaves operands of qgemm right in %s',
    async (where) => {
      const wg = await createGemm();
      const types = { a: 'int8', b: 'uint8' } as const;
      const random = new Random(12);
      const { inputs, options } = draw(wg, random, {
        types,
        sizes: [1, 5, 5],
        where,
        c: [1, 5],
        one: '[1]',
        bScale: '[N]',
        bZeroPoint: '[N]',
      });
      const weights = packed(wg, inputs.b as Matrix);
      // The copy of B, with the gaps between its rows, is more than a new instance has.
      const { committed } = wg.memory();
      const wide = {
        data: new Uint8Array(committed + 5).fill(random.between(1, 99)),
        shape: [5, 5],
        strides: [committed / 4, 1],
      };
      expectQGemm(wg, { ...inputs, b: wide }, options);
      expect(wg.memory().committed).toBeGreaterThan(committed);
      expectQGemm(wg, { ...inputs, b: weights }, options);
      wg.dispose();
    },
  );

  it('leaves out right in the heap, for scratch alone', async () => {
    const wg = await createGemm();
    const random = new Random(6);
    const tensors = [
      place(wg, 'the heap', 'float32', [30, 500], random),
      place(wg, 'the heap', 'float32', [500, 3000], random),
    ] as const;
    const out = place(wg, 'the heap', 'float32', [30, 3000], random);
    expect(wg.explain('gemm', ...tensors, 3, { alpha: 2, out }).scratch).toBeGreaterThan(400_000);
    let fill = wg.memory();
    // Leaves less than the scratch.
    while (fill.committed - fill.inUse > 400_000) {
      wg.alloc('float32', [50_000]);
      fill = wg.memory();
    }
    expectGemm(wg, ...tensors, 3, { alpha: 2, out });
    expect(wg.memory().committed).toBeGreaterThan(fill.committed);
    wg.dispose();
  });

  it('leaves empty operands right', async () => {
    for (const place of ['A', 'out']) {
      const wg = await createGemm();
      const empty = wg.alloc('float32', [0, 5]);
      const emptyOut = wg.alloc('float32', [0, 100_000]);
      const { committed, inUse } = wg.memory();
      const a = place === 'A' ? { data: empty.data, shape: [0, 5] } : float32([0, 5]);
      const options = place === 'out' ? { out: { data: emptyOut.data, shape: [0, 100_000] } } : {};
      expect(wg.gemm(a, wide, null, options).shape, place).toEqual([0, 100_000]);
      // A call that has nothing to compute need not copy, so the memory need not grow.
      expect(wg.memory().committed).toBeGreaterThanOrEqual(committed);
      expect(wg.memory().inUse).toBe(inUse);
      wg.dispose();
    }
  });
});

describe('the collector', () => {
  /** Runs the collector until `done`, or for 2 seconds. */
  async function collectUntil(done: () => boolean): Promise<void> {
    const turn = () => new Promise((resolve) => setTimeout(resolve, 1));
    const end = performance.now() + 2000;
    while (!done() && performance.now() < end) {
      await turn(); // what a WeakRef gave out lives until the turn is over
      (globalThis.gc as () => void)();
      await turn();
    }
  }

  it('frees tensors that were dropped, and no others', async () => {
    const wg = await createGemm();
    const kept = wg.alloc('float32', [4]);
    kept.data.fill(5);
    const { inUse } = wg.memory();
    (() => {
      for (let i = 0; i < 100; ++i) wg.alloc('float32', [1000]);
    })();
    expect(wg.memory().inUse).toBeGreaterThan(400_000);
    await collectUntil(() => wg.memory().inUse === inUse);
    expect(wg.memory().inUse).toBe(inUse);
    expect(Array.from(kept.data)).toEqual([5, 5, 5, 5]);
    wg.dispose();
  });

  it('frees recordings that were dropped, and keeps the operands of others', async () => {
    const wg = await createGemm();
    const record = () => {
      const tensor = wg.alloc('float32', [2, 2]);
      tensor.data.set([1, 1, 0, 1]);
      const out = wg.alloc('float32', [2, 2]);
      const recording = wg.record((calls) => {
        calls.gemm(tensor, tensor, null, { out });
      });
      recording.run();
      return { recording, out };
    };
    const kept = record();
    const { inUse } = wg.memory();
    (() => {
      for (let i = 0; i < 10; ++i) record();
    })();
    expect(wg.memory().inUse).toBe(11 * inUse);
    await collectUntil(() => wg.memory().inUse === inUse);
    expect(wg.memory().inUse).toBe(inUse);
    kept.out.data.fill(0);
    kept.recording.run();
    expect(Array.from(kept.out.data)).toEqual([1, 2, 0, 1]);
    wg.dispose();
  });

  it('frees packed weights that were dropped, and no others', async () => {
    const wg = await createGemm();
    const b = new Random(13).tensor('int8', [100, 100]);
    const kept = packed(wg, b);
    const { inUse } = wg.memory();
    (() => {
      for (let i = 0; i < 100; ++i) packed(wg, b);
    })();
    expect(wg.memory().inUse).toBe(101 * inUse);
    await collectUntil(() => wg.memory().inUse === inUse);
    expect(wg.memory().inUse).toBe(inUse);
    const { inputs } = draw(wg, new Random(14), {
      types: { a: 'int8', b: 'int8' },
      sizes: [3, 100, 100],
      b: kept,
    });
    expectQGemm(wg, inputs);
    wg.dispose();
  });

  it('frees a tensor once, if it was disposed of and then dropped', async () => {
    const wg = await createGemm();
    const { inUse } = wg.memory();
    const gone = (() => {
      const tensor = wg.alloc('float32', [1000]);
      tensor.dispose();
      return new WeakRef(tensor);
    })();
    const heir = wg.alloc('float32', [1000]); // most likely in the same place
    await collectUntil(() => gone.deref() === undefined);
    expect(gone.deref()).toBeUndefined();
    expect(wg.memory().inUse).toBeGreaterThan(inUse);
    expect(heir.disposed).toBe(false);
    heir.dispose();
    expect(wg.memory().inUse).toBe(inUse);
    wg.dispose();
  });

  it('takes an instance that was disposed of, with its memory, while tensors and weights of it are held', async () => {
    const start = async () => {
      const wg: Gemm = await createGemm();
      const tensor = wg.alloc('float32', [10]);
      const weights = wg.pack({ data: new Int8Array(4), shape: [2, 2] }, { op: 'qgemm' });
      const buffer = new WeakRef(tensor.data.buffer);
      wg.dispose();
      return { wg: new WeakRef(wg), buffer, tensor, weights };
    };
    const { wg, buffer, tensor, weights } = await start();
    await collectUntil(() => wg.deref() === undefined && buffer.deref() === undefined);
    expect({ instance: wg.deref() === undefined, memory: buffer.deref() === undefined }).toEqual({
      instance: true,
      memory: true,
    });
    expect(tensor.disposed && weights.disposed).toBe(true);
  });

  it('takes an instance that was only dropped', async () => {
    const start = async () => {
      const wg = await createGemm();
      wg.gemm(wg.alloc('float32', [1, 1]), wg.alloc('float32', [1, 1]));
      return new WeakRef(wg);
    };
    const wg = await start();
    await collectUntil(() => wg.deref() === undefined);
    expect(wg.deref() === undefined).toBe(true);
  });

  it('goes on if an instance was dropped just after its tensors', async () => {
    const collect = globalThis.gc as () => void;
    const other = await createGemm();
    const holder: { wg?: Gemm } = { wg: await createGemm() };
    (() => {
      for (let i = 0; i < 10; ++i) holder.wg?.alloc('float32', [10]);
    })();
    await new Promise((resolve) => setTimeout(resolve, 1));
    // If V8 collects a FinalizationRegistry before its callbacks, it finalizes nothing more in the
    // process.
    collect();
    delete holder.wg;
    collect();
    await new Promise((resolve) => setTimeout(resolve, 1));
    (() => {
      for (let i = 0; i < 10; ++i) other.alloc('float32', [10]);
    })();
    await collectUntil(() => other.memory().inUse === 0);
    expect(other.memory().inUse).toBe(0);
    other.dispose();
  });
});

describe('an instance', () => {
  it('may be disposed of twice, and by using', async () => {
    const wg = await createGemm();
    wg.dispose();
    wg.dispose();
    wg[dispose]();
    expect(wg.disposed).toBe(true);
    let seen: Gemm;
    {
      using scoped = await createGemm();
      seen = scoped;
      expectGemm(scoped, square, square);
    }
    expect(seen.disposed).toBe(true);
  });

  it('has a memory of its own', async () => {
    const [one, two] = await Promise.all([createGemm(), createGemm()]);
    const tensor = one.alloc('float32', [100]);
    expect(two.memory().inUse).toBe(0);
    one.dispose();
    expectGemm(two, square, square);
    expect(tensor.disposed).toBe(true);
    two.dispose();
  });
});
