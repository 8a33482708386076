/**
 * Limits: a call knows what memory it needs before it copies anything, and an instance never takes
 * more than its limit.
 */
import { describe, expect, it } from 'vitest';
import { createGemm, type Gemm, GemmError, type HeapTensor } from 'wgemm';
import { thrown } from '../support/errors.js';
import { Random } from '../support/tensors.js';

const random = new Random(24);
const floats = (shape: readonly number[]) =>
  random.tensor('float32', shape) as {
    data: Float32Array;
    shape: readonly number[];
    dtype: 'float32';
  };
const bytes = (dtype: 'int8' | 'uint8', shape: readonly number[]) =>
  random.tensor(dtype, shape) as { data: Int8Array | Uint8Array; shape: readonly number[] };

interface Holder {
  readonly data: { readonly byteLength: number };
}

/** The bytes that a call copies from array to array. In core, a constructor copies a new result. */
function copiedBy(call: () => Holder, outOfCore: boolean, out?: Holder): number {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with each array
  const { set } = Uint8Array.prototype;
  const prototype = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array;
  let copied = 0;
  prototype.set = function (this: Uint8Array, source: Uint8Array, offset?: number) {
    copied += source.byteLength;
    set.call(this, source, offset);
  };
  try {
    const result = call();
    if (result !== out && !outOfCore) copied += result.data.byteLength;
  } finally {
    Object.assign(prototype, { set });
  }
  return copied;
}

describe('a call copies what explain() foretells, and nothing twice', () => {
  const limits = [2 ** 20, 2 ** 21, 3_000_000, 5_000_000];

  it.each(limits)('of float32, with %d bytes', async (maxMemory) => {
    using wg = await createGemm({ maxMemory });
    let count = 0;
    for (let size = 200; size <= 640; size += 20) {
      const [a, b, c] = [floats([size, size]), floats([size, size]), floats([size])];
      const { copies, outOfCore } = wg.explain('gemm', a, b, c);
      count += outOfCore ? 1 : 0;
      expect(copiedBy(() => wg.gemm(a, b, c), outOfCore)).toBe(copies);
      const out = { data: new Float32Array(size * size), shape: [size, size] };
      const into = wg.explain('gemm', a, b, c, { out });
      expect(copiedBy(() => wg.gemm(a, b, c, { out }), into.outOfCore, out)).toBe(into.copies);
    }
    expect(count).toBeGreaterThan(0);
    expect(wg.memory().inUse).toBe(0);
  });

  it.each(limits)('of 8 bits with scales and zero points, with %d bytes', async (maxMemory) => {
    using wg = await createGemm({ maxMemory });
    let count = 0;
    for (let size = 400; size <= 1100; size += 50) {
      const inputs = {
        a: bytes('uint8', [size, size]),
        aScale: 0.5,
        aZeroPoint: 3,
        b: bytes('int8', [size, size]),
        bScale: new Float32Array(size).fill(0.25),
        bZeroPoint: new Int8Array(size).fill(size % 100 === 0 ? 0 : 5),
      };
      const { copies, outOfCore } = wg.explain('qgemm', inputs);
      count += outOfCore ? 1 : 0;
      expect(copiedBy(() => wg.qgemm(inputs), outOfCore)).toBe(copies);
    }
    expect(count).toBeGreaterThan(0);
    expect(wg.memory().inUse).toBe(0);
  });
});

describe('explain() throws what the call throws', () => {
  const matrix = (size: number) => ({
    data: new Float32Array(size * size).fill(1),
    shape: [size, size],
  });
  const repeated = (shape: number[]) => ({
    data: new Float32Array(1),
    shape,
    strides: shape.map(() => 0),
  });
  const eight = (size: number) => ({
    data: new Int8Array(size * size).fill(1),
    shape: [size, size],
  });
  const scales = (size: number, last: number) => new Float32Array(size).fill(1).fill(last, -1);
  type Arguments = Parameters<Gemm['explain']>;
  const calls: Record<string, unknown[]> = {
    'a scale of 0': ['qgemm', { a: eight(20), aScale: 1, b: eight(20), bScale: scales(20, 0) }],
    'a scale that is NaN': [
      'qgemm',
      { a: eight(20), aScale: NaN, b: eight(20), bScale: scales(20, 1) },
    ],
    'a scale that is negative, of large operands': [
      'qgemm',
      { a: eight(900), aScale: 1, b: eight(900), bScale: scales(900, -1) },
    ],
    'a product of scales that overflows': [
      'qgemm',
      { a: eight(20), aScale: 1e30, b: eight(20), bScale: scales(20, 1e30) },
    ],
    'an alpha that overflows': [
      'qgemm',
      { a: eight(20), aScale: 1, b: eight(20), bScale: 1 },
      { alpha: 1e300 },
    ],
    'a bound of a wrong scale': [
      'qgemm',
      { a: eight(20), aScale: 0, b: eight(20), bScale: 1 },
      { activation: [2, 1] },
    ],
    'scales beyond memory': [
      'qgemm',
      {
        a: eight(1),
        aScale: 1,
        b: { data: new Int8Array(600_000), shape: [1, 600_000] },
        bScale: scales(600_000, 1),
      },
    ],
    'a result that no array holds': ['gemm', repeated([2 ** 40, 1]), matrix(1)],
    'a result of more than 2^53 elements': ['gemm', repeated([2 ** 40, 1]), repeated([1, 2 ** 40])],
    'shapes that do not match': ['gemm', matrix(20), matrix(30)],
    'an out that overlaps': ['gemm', ...((a) => [a, matrix(20), null, { out: a }])(matrix(20))],
    'an opset that lacks it': ['gemm', matrix(20), matrix(20), null, { opset: 7 }],
    'a bias that does not broadcast': ['matmul', matrix(20), matrix(20), matrix(3)],
  };

  const callOf = (wg: Gemm, op: 'gemm' | 'qgemm' | 'matmul' | 'syrk') =>
    (wg[op] as (...args: unknown[]) => unknown).bind(wg);
  const messageOf = (call: () => unknown) => {
    try {
      call();
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  it.each(Object.keys(calls))('for %s', async (name) => {
    using wg = await createGemm({ maxMemory: 2_000_000 });
    const [op, ...args] = calls[name] as ['gemm' | 'qgemm' | 'matmul', ...unknown[]];
    const wanted = thrown(() => callOf(wg, op)(...args)) as GemmError;
    const found = thrown(() => wg.explain(...([op, ...args] as unknown as Arguments))) as GemmError;
    expect(wanted).toBeInstanceOf(GemmError);
    expect(found.constructor).toBe(wanted.constructor);
    const tell = ({ code, op, argument, message }: GemmError) => ({ code, op, argument, message });
    expect(tell(found)).toEqual(tell(wanted));
    expect(wg.memory().inUse).toBe(0);
  });

  it('when memory is nearly full', async () => {
    const limit = 1_000_000;
    using wg = await createGemm({ maxMemory: limit });
    const inputs = { a: eight(60), aScale: 1, b: eight(60), bScale: scales(60, 1) };
    let failed = 0;
    for (let left = 0; left < 30_000; left += 192) {
      using filler = wg.alloc('uint8', [limit - 64 - left]);
      for (const [op, ...args] of [
        ['gemm', matrix(40), matrix(40)],
        ['qgemm', inputs],
        ['syrk', matrix(40)],
      ] as const) {
        const wanted = messageOf(() => callOf(wg, op)(...args));
        expect(messageOf(() => wg.explain(...([op, ...args] as unknown as Arguments)))).toBe(
          wanted,
        );
        failed += wanted === '' ? 0 : 1;
      }
      expect(filler.disposed).toBe(false);
    }
    expect(failed).toBeGreaterThan(10);
  });
});

describe('maxMemory', () => {
  it('bounds what is committed, however fragmented', async () => {
    const maxMemory = 16_000_000;
    using wg = await createGemm({ maxMemory });
    const bound = wg.memory().committed + Math.ceil(maxMemory / 65536) * 65536;
    const held: HeapTensor[] = [];
    let refused = 0;
    for (let step = 0; step < 3000; ++step) {
      // Sizes grow, so that no tensor fits where an earlier one was freed.
      const size = Math.ceil(2 ** (10 + (12 * step) / 3000) * (1 + random.next()));
      try {
        held.push(wg.alloc('uint8', [size]));
      } catch (error) {
        expect(error).toMatchObject({ code: 'OUT_OF_MEMORY' });
        ++refused;
        for (let i = 0; i < 3; ++i)
          held.splice(Math.floor(random.next() * held.length), 1)[0]?.dispose();
      }
      expect(wg.memory().committed).toBeLessThanOrEqual(bound);
    }
    expect(refused).toBeGreaterThan(0);
    // Calls still work, in the memory that is left.
    const [a, b] = [floats([30, 40]), floats([40, 20])];
    held.pop()?.dispose();
    expect(wg.gemm(a, b).data).toHaveLength(600);
    for (const tensor of held) tensor.dispose();
    expect(wg.memory().inUse).toBe(0);
    wg.alloc('uint8', [maxMemory - 64 - (maxMemory % 64)]).dispose();
    expect(wg.memory().committed).toBeLessThanOrEqual(bound);
  });
});

it('a view of the heap is found as fast among many tensors as among few', async () => {
  using wg = await createGemm();
  const one = { data: Float32Array.of(1), shape: [1, 1] };
  const best = (tensor: HeapTensor<Float32Array>) => {
    const out = { data: tensor.data.subarray(1, 2), shape: [1, 1] };
    let least = Infinity;
    for (let round = 0; round < 40; ++round) {
      const start = performance.now();
      for (let i = 0; i < 100; ++i) wg.gemm(one, one, null, { out });
      least = Math.min(least, performance.now() - start);
    }
    return least;
  };
  const make = (count: number) => Array.from({ length: count }, () => wg.alloc('float32', [4]));
  const few = make(10);
  const among_few = Math.max(best(few[9] as HeapTensor<Float32Array>), 0.02);
  const many = make(40_000);
  expect(best(many[39_999] as HeapTensor<Float32Array>) / among_few).toBeLessThan(25);
});

it('views of the heap are found wherever they begin, and not once their tensor is gone', async () => {
  using wg = await createGemm();
  const tensors = [1, 30_000, 1, 100_000, 7, 16_384, 3].map((size) => wg.alloc('float32', [size]));
  const one = { data: Float32Array.of(1), shape: [1, 1] };
  const call = (data: Float32Array) => wg.gemm({ data, shape: [1, 1] }, one).data[0];
  tensors.forEach((tensor, i) => tensor.data.fill(i));
  tensors.forEach(({ data, size }, i) => {
    for (const at of [0, size >> 1, size - 1]) expect(call(data.subarray(at, at + 1))).toBe(i);
  });
  const ends = tensors.map(
    ({ data, size }) => new Float32Array(data.buffer, data.byteOffset + 4 * size, 1),
  );
  for (const data of ends) expect(thrown(() => call(data))).toMatchObject({ code: 'DISPOSED' });
  const views = tensors.map(({ data, size }) => data.subarray(size - 1));
  tensors.forEach((tensor, i) => {
    if (i % 2 === 1) tensor.dispose();
  });
  views.forEach((view, i) => {
    if (i % 2 === 0) expect(call(view)).toBe(i);
    else expect(thrown(() => call(view))).toMatchObject({ code: 'DISPOSED' });
  });
});

describe('an engine without views of that length', () => {
  it.each([1, 2])('computes out-of-core, at stride %d', async (stride) => {
    using wg = await createGemm({ maxMemory: 3_000_000 });
    const [m, k] = [4, 600_000];
    const data = random.fill(new Float32Array(m * k * stride - stride + 1));
    const a = { data, shape: [m, k], strides: [k * stride, stride] };
    const b = { data: Float32Array.of(1), shape: [k, 1], strides: [0, 0] };
    const wanted = wg.gemm(a, b).data;
    const Whole = Uint8Array;
    const refusing = new Proxy(Whole, {
      construct(target, args: [ArrayBuffer, number, number]) {
        if (args[0] instanceof ArrayBuffer && args[2] > 2 ** 22)
          throw new RangeError(`Invalid typed array length: ${args[2]}`);
        return Reflect.construct(target, args) as object;
      },
    });
    globalThis.Uint8Array = refusing;
    try {
      expect(wg.gemm(a, b).data).toEqual(wanted);
      expect(wg.explain('gemm', a, b).outOfCore).toBe(true);
    } finally {
      globalThis.Uint8Array = Whole;
    }
  });
});
