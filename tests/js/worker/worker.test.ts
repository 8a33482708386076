/**
 * `wgemm/worker`: the results and errors of `wgemm`, as promises; and its own features: transfer,
 * signals, handles, and how an instance ends.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as wgemm from 'wgemm';
import {
  createGemm as createHere,
  type DataArray,
  DisposedError,
  type DType,
  type Explanation,
  type Gemm,
  GemmError,
  type PackOptions,
} from 'wgemm';
import * as entry from 'wgemm/worker';
import {
  createGemm,
  type Signal,
  type WorkerGemm,
  WorkerTensor,
  WorkerWeights,
} from 'wgemm/worker';
import {
  allTypes,
  arrayClasses,
  bytesOf,
  dtypeOf,
  dtypes,
  Float16,
  quantizedTypes,
  set,
} from '../support/dtypes.js';
import { expectError, expectSameError, rejected, thrown } from '../support/errors.js';
import { layouts, layOut } from '../support/stacks.js';
import { count, dispose, float32, int32, Random, SharedBuffer } from '../support/tensors.js';

let here: Gemm;
let wg: WorkerGemm;
beforeAll(async () => {
  [here, wg] = await Promise.all([createHere({ threads: 1 }), createGemm()]);
});
afterAll(() => {
  here.dispose();
  wg.dispose();
});

type Method =
  | 'gemm'
  | 'qgemm'
  | 'matmul'
  | 'matmulInteger'
  | 'qlinearMatmul'
  | 'dynamicQuantizeMatmul'
  | 'matmulIntegerToFloat'
  | 'syrk'
  | 'explain';
type Loose = Record<Method, (...args: unknown[]) => unknown>;
const loose = (instance: Gemm | WorkerGemm) => instance as unknown as Loose;

const bits = (array: DataArray) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** All arrays among some arguments, in a fixed order. */
function arraysOf(value: unknown): DataArray[] {
  if (ArrayBuffer.isView(value)) return [value as DataArray];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(arraysOf) : [];
}

function expectEqual(found: unknown, wanted: unknown): void {
  const [theirs, ours] = [arraysOf(found), arraysOf(wanted)];
  expect(theirs.map(({ constructor }) => constructor)).toEqual(
    ours.map(({ constructor }) => constructor),
  );
  expect(theirs.map(bits)).toEqual(ours.map(bits));
  const rest = (value: unknown) => ({ ...(value as object), data: undefined });
  expect(rest(found)).toEqual(rest(wanted));
}

/**
 * Makes the same call here and in a worker, with two copies of the arguments. Expects the same
 * result, and the same arrays after it.
 */
async function expectSame(method: Method, make: () => unknown[]): Promise<void> {
  const [ours, theirs] = [make(), make()];
  const wanted = loose(here)[method](...ours);
  const found = await loose(wg)[method](...theirs);
  expectEqual(found, wanted);
  const at = ours.findIndex((arg) => (arg as { out?: unknown } | undefined)?.out === wanted);
  if (at >= 0 && method !== 'explain') expect(found).toBe((theirs[at] as { out: unknown }).out);
  expect(arraysOf(theirs).map(bits)).toEqual(arraysOf(ours).map(bits));
  expect((await wg.memory()).inUse, 'bytes in use').toBe(0);
}

/** Parts of one array that do not overlap. */
function slices(dtype: DType, shapes: readonly (readonly number[])[], gap = 3) {
  const data = new arrayClasses[dtype](
    shapes.reduce((sum, shape) => sum + count(shape) + gap, gap),
  );
  new Random(5).fill(data, dtype);
  let at = gap;
  return shapes.map((shape) => {
    const part = { data: data.subarray(at, at + count(shape)), shape, dtype };
    at += count(shape) + gap;
    return part;
  });
}

const square = (first = 1) => float32([2, 2], first, 2, 3, 4);
/** Takes long enough for a test to act while the call runs. */
const side = 800;
const slow = () => {
  const large = { data: new Float32Array(side * side).fill(1), shape: [side, side] };
  return wg.gemm(large, large);
};
const after = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

describe('returns what wgemm returns, bit for bit:', () => {
  it('with activation, and weights of 16 bits', async () => {
    const [a, b] = [float32([2, 3], 1, -2, 3, -4, 5, -6), float32([3, 2], 1.001, 2, -3, 4, 5, -6)];
    for (const activation of ['relu', 'relu6', [-3, 2.5]]) {
      await expectSame('gemm', () => [a, b, null, { activation }]);
      await expectSame('matmul', () => [a, b, 1, { activation }]);
    }
    await expectSame('gemm', () => [
      a,
      b,
      null,
      { activation: [-1, 1], out: float32([2, 2], 0, 0, 0, 0) },
    ]);
    using weights = await wg.pack(b, { op: 'matmul', as: 'bfloat16' });
    using ours = here.pack(b, { op: 'matmul', as: 'bfloat16' });
    expect(weights).toMatchObject({
      dtype: 'bfloat16',
      shape: [3, 2],
      byteLength: ours.byteLength,
    });
    expectEqual(
      await wg.gemm(a, weights, null, { activation: 'relu' }),
      here.gemm(a, ours, null, { activation: 'relu' }),
    );
    const wrong: PackOptions = { op: 'gemm', as: 'int8' };
    expectSameError(
      await rejected(wg.pack(b, wrong)),
      thrown(() => here.pack(b, wrong)),
    );
    const bad = { activation: [2, 1] as [number, number] };
    expectSameError(
      await rejected(wg.gemm(a, b, null, bad)),
      thrown(() => here.gemm(a, b, null, bad)),
    );
  });

  it.each(dtypes)('gemm of %s', async (dtype) => {
    const make =
      (
        options: (c: object, random: Random) => object | undefined,
        c: (random: Random) => unknown,
      ) =>
      () => {
        const random = new Random(1);
        const addend = c(random);
        return [
          random.tensor(dtype, [5, 7]),
          random.tensor(dtype, [7, 6]),
          addend,
          options(addend as object, random),
        ];
      };
    const matrix = (random: Random) => random.tensor(dtype, [5, 6]);
    await expectSame('gemm', make(() => undefined, () => undefined)); // prettier-ignore
    await expectSame('gemm', make(() => ({ alpha: 2, beta: 3 }), (random) => random.tensor(dtype, [6]))); // prettier-ignore
    await expectSame('gemm', make(() => ({}), () => 5)); // prettier-ignore
    await expectSame('gemm', make((_, random) => ({ out: random.tensor(dtype, [5, 6]) }), matrix)); // prettier-ignore
    await expectSame('gemm', make((c) => ({ out: c }), matrix)); // prettier-ignore
    await expectSame('explain', () => ['gemm', ...make(() => ({ alpha: 2 }), matrix)()]);
    for (const layout of Object.values(layouts)) {
      const spread = (random: Random, shape: number[]) => {
        const laid = layOut(dtype, shape, layout(shape));
        random.fill(laid.data, dtype);
        return laid;
      };
      await expectSame('gemm', () => {
        const random = new Random(2);
        const [a, b, out] = [
          spread(random, [5, 7]),
          spread(random, [6, 7]),
          spread(random, [5, 6]),
        ];
        return [a, b, out, { transB: true, out }];
      });
    }
    await expectSame('gemm', () => {
      const [a, b, c, out] = slices(dtype, [[5, 7], [7, 6], [5, 6], [5, 6]]); // prettier-ignore
      return [a, b, c, { out }];
    });
    await expectSame('gemm', () => {
      const [a, b] = slices(dtype, [[5, 7], [7, 6]], 0); // prettier-ignore
      return [a, b, a && { ...a, data: a.data.subarray(2, 8), shape: [6] }];
    });
  });

  it.each(['int64', 'uint64'] as const)('bigints of %s', async (dtype) => {
    await expectSame('gemm', () => {
      const random = new Random(3);
      return [
        random.tensor(dtype, [3, 4]),
        random.tensor(dtype, [4, 5]),
        2n ** 62n + 1n,
        { alpha: 3n, beta: 2n ** 63n - 1n },
      ];
    });
  });

  it('numbers that a decimal text would change', async () => {
    for (const c of [-0, NaN, Infinity, 2 ** -149]) {
      await expectSame('gemm', () => [
        float32([1, 1], -0),
        float32([1, 1], 1),
        c,
        { alpha: -0, beta: 1 },
      ]);
    }
    const nan = () => ({
      data: new Float32Array(Uint32Array.of(0x7fc12345).buffer),
      shape: [1, 1],
    });
    // With a factor, the core computes here, too.
    await expectSame('gemm', () => [nan(), float32([1, 1], 1), null, { alpha: 1, out: nan() }]);
  });

  it('float16 in both kinds of array', async () => {
    const kinds = Float16 ? [Uint16Array, Float16] : [Uint16Array];
    for (const Kind of kinds) {
      const half = (shape: number[]) => {
        const data = new Kind(count(shape));
        for (let i = 0; i < data.length; ++i) set(data, 'float16', i, i / 8 - 1);
        return { data, shape, dtype: 'float16' };
      };
      await expectSame('gemm', () => [half([3, 4]), half([4, 5]), half([5])]);
      await expectSame('gemm', () => [half([3, 4]), half([4, 5]), null, { out: half([3, 5]) }]);
      await expectSame('matmul', () => [half([3, 4]), half([4, 5]), null, { outType: 'float32' }]);
    }
  });

  it.each(dtypes)('matmul of %s', async (dtype) => {
    const random = () => new Random(4);
    await expectSame('matmul', () => {
      const from = random();
      return [
        from.tensor(dtype, [2, 1, 3, 5]),
        from.tensor(dtype, [4, 5, 6]),
        from.tensor(dtype, [6]),
      ];
    });
    await expectSame('matmul', () => [random().tensor(dtype, [5]), random().tensor(dtype, [5])]); // of rank 0
    for (const layout of Object.values(layouts)) {
      await expectSame('matmul', () => {
        const out = layOut(dtype, [4, 3, 6], layout([4, 3, 6]));
        random().fill(out.data, dtype);
        return [
          random().tensor(dtype, [3, 5]),
          random().tensor(dtype, [4, 6, 5]),
          1,
          { alpha: 2, transposeB: true, out },
        ];
      });
      await expectSame('explain', () => {
        const src = layOut(dtype, [3, 5], layout([3, 5]));
        return [
          'matmul',
          src,
          random().tensor(dtype, [4, 6, 5]),
          null,
          { alpha: 3, transposeB: true },
        ];
      });
    }
    // A vector, and no axis at all, with room between elements and without.
    await expectSame('matmul', () => {
      const out = {
        data: random().fill(new arrayClasses[dtype](10), dtype),
        shape: [4],
        strides: [3],
        dtype,
      };
      return [random().tensor(dtype, [5]), random().tensor(dtype, [5, 4]), null, { out }];
    });
    await expectSame('matmul', () => {
      const out = {
        data: random().fill(new arrayClasses[dtype](1), dtype),
        shape: [],
        strides: [],
        dtype,
      };
      return [random().tensor(dtype, [5]), random().tensor(dtype, [5]), null, { out }];
    });
  });

  it.each(quantizedTypes)('qgemm of %s', async (dtype) => {
    const inputs = () => {
      const random = new Random(6);
      const zeroPoint = random.fill(new arrayClasses[dtype](1), dtype);
      const [a, b] = [random.tensor(dtype, [5, 7]), random.tensor(dtype, [7, 6])];
      const bScale = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [6] };
      return {
        a,
        aScale: 0.5,
        aZeroPoint: zeroPoint,
        b,
        bScale,
        bZeroPoint: 3,
        c: int32([6], 1, 2, 3, 4, 5, 6),
      };
    };
    await expectSame('qgemm', () => [inputs()]);
    await expectSame('qgemm', () => [
      { ...inputs(), yScale: Float32Array.of(0.5), yZeroPoint: 1 },
      { alpha: 2 },
    ]);
    await expectSame('qgemm', () => [
      inputs(),
      { out: { data: new Float32Array(34), shape: [5, 6], strides: [7, 1] } },
    ]);
    await expectSame('explain', () => ['qgemm', inputs(), { alpha: 2 }]);
  });

  it('syrk', async () => {
    for (const dtype of ['float32', 'float64'] as const) {
      const a = () => new Random(6).tensor(dtype, [5, 7]);
      await expectSame('syrk', () => [a()]);
      await expectSame('syrk', () => [a(), { alpha: -0.5, transA: true }]);
      await expectSame('explain', () => ['syrk', a(), { transA: true }]);
      await expectSame('syrk', () => {
        const [x, out] = slices(dtype, [
          [5, 7],
          [5, 5],
        ]) as [object, object];
        return [x, { out: { ...out, strides: [1, 5] } }];
      });
    }
  });

  it('nothing', async () => {
    const empty = (...shape: number[]) => ({ data: new Float32Array(0), shape });
    await expectSame('gemm', () => [empty(0, 3), empty(3, 0)]);
    await expectSame('gemm', () => [empty(2, 0), empty(0, 3), float32([3], 1, 2, 3)]);
    await expectSame('gemm', () => [empty(0, 3), empty(3, 0), null, { out: empty(0, 0) }]);
    // The strides lead past the end of the array.
    await expectSame('gemm', () => [
      float32([2, 1], 1, 2),
      empty(1, 0),
      null,
      { out: { ...empty(2, 0), strides: [5, 1] } },
    ]);
    await expectSame('matmul', () => [empty(0, 2, 3), { data: new Float32Array(3), shape: [3] }]);
    const buffer = new ArrayBuffer(16);
    await expectSame('gemm', () => [
      { data: new Float32Array(buffer, 16, 0), shape: [0, 2] },
      { data: new Float32Array(buffer), shape: [2, 2] },
    ]);
  });

  it('shared memory, and memory of another instance', async () => {
    const shared = () => ({ data: new Float32Array(new SharedBuffer(16)).fill(3), shape: [2, 2] });
    await expectSame('gemm', () => [shared(), shared(), null, { out: shared() }]);
    using heap = here.alloc('float32', [2, 2]);
    heap.data.set([1, 2, 3, 4]);
    const y = await wg.gemm({ data: heap.data, shape: [2, 2] }, square());
    expect(Array.from(y.data)).toEqual([7, 10, 15, 22]);
  });

  it('tensors and options of classes, by their getters, each read once', async () => {
    let reads = 0;
    class Matrix {
      readonly #data = Float32Array.of(1, 2, 3, 4, 5, 6);
      get data() {
        ++reads;
        return this.#data;
      }
      get shape() {
        return [2, 3];
      }
    }
    class Options {
      get transB() {
        return true;
      }
      method() {}
    }
    await expectSame('gemm', () => [new Matrix(), new Matrix(), null, new Options()]);
    expect(reads).toBe(2 + 2);
    await expectSame('gemm', () => [
      new Matrix(),
      new Matrix(),
      null,
      Object.create({ transA: 1, alpha: 2 }),
    ]);
    const out = new Matrix();
    const filled = float32([2, 3], 1, 2, 3, 4, 5, 6);
    expect(await wg.gemm(square(), filled, null, { out })).toBe(out);
    expect(out.data).toEqual(here.gemm(square(), filled).data);
  });

  it('arrays with a wrong BYTES_PER_ELEMENT', async () => {
    const odd = square();
    Object.defineProperty(odd.data, 'BYTES_PER_ELEMENT', { value: 1 });
    expect(Array.from((await wg.gemm(odd, square())).data)).toEqual([7, 10, 15, 22]);
  });

  it('info', () => {
    expect(wg.info).toEqual(here.info);
    expect(wg.disposed).toBe(false);
  });

  it('what else is exported, except the classes of the heap', () => {
    const { HeapTensor, PackedWeights, Recording, Gemm, ...shared } = wgemm as Record<
      string,
      unknown
    >;
    expect([HeapTensor, PackedWeights, Recording]).not.toContain(undefined);
    for (const [name, value] of Object.entries(shared)) {
      if (name === 'createGemm' || name.startsWith('$')) continue;
      expect((entry as Record<string, unknown>)[name], name).toBe(value);
    }
    expect(Gemm).toBeDefined();
  });
});

describe('two calls at once', () => {
  it('fill rows of one array that lie between each other', async () => {
    const data = new Float32Array(8).fill(9);
    const rows = (from: number) => ({
      data: data.subarray(from, from + 6),
      shape: [2, 2],
      strides: [4, 1],
    });
    const identity = float32([2, 2], 1, 0, 0, 1);
    await Promise.all([
      wg.gemm(square(1), identity, null, { out: rows(0) }),
      wg.gemm(square(10), identity, null, { out: rows(2) }),
    ]);
    expect(Array.from(data)).toEqual([1, 2, 10, 2, 3, 4, 3, 4]);
  });

  it('fill columns of one array that lie between each other', async () => {
    const data = new Float32Array(8);
    const columns = (from: number) => ({
      data: data.subarray(from, from + 7),
      shape: [2, 2],
      strides: [4, 2],
    });
    const identity = float32([2, 2], 1, 0, 0, 1);
    await Promise.all(
      [0, 1].map((from) => wg.gemm(square(10 * from), identity, null, { out: columns(from) })),
    );
    expect(Array.from(data)).toEqual([0, 10, 2, 2, 3, 3, 4, 4]);
  });

  it('read their arguments when they are made', async () => {
    const a = square();
    const shape = [2, 2];
    const out = { data: new Float32Array(4), shape, strides: [2, 1] };
    const y = wg.gemm(a, square(), null, { out });
    a.data.fill(100);
    shape[0] = 1000;
    out.strides[0] = 1;
    expect((await y).data).toEqual(Float32Array.of(7, 10, 15, 22));
    expect(out.data).toEqual(Float32Array.of(7, 10, 15, 22));
  });

  it('a thousand are answered, each by its own result, in their order', async () => {
    const order: number[] = [];
    const calls = Array.from({ length: 1000 }, async (_, i) => {
      const { data } = await wg.gemm(float32([1, 1], i), float32([1, 1], 2));
      order.push(i);
      return data[0];
    });
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 1000 }, (_, i) => 2 * i));
    expect(order).toEqual(Array.from({ length: 1000 }, (_, i) => i));
  });

  it('of two instances do not disturb each other', async () => {
    const other = await createGemm();
    const [mine, theirs] = await Promise.all([wg.alloc('int32', [2]), other.alloc('int32', [3])]);
    await Promise.all([mine.write(Int32Array.of(1, 2)), theirs.write(Int32Array.of(3, 4, 5))]);
    const slowly = slow();
    expect(await theirs.read()).toEqual(Int32Array.of(3, 4, 5));
    expect((await slowly).data[0]).toBe(side);
    other.dispose();
    expect(theirs.disposed).toBe(true);
    expect(await mine.read()).toEqual(Int32Array.of(1, 2));
    mine.dispose();
  });
});

describe('an out of a class of the caller’s', () => {
  const fillers: [string, () => Float32Array][] = [
    [
      'a set()',
      () =>
        new (class extends Float32Array {
          override set() {}
        })(8),
    ],
    [
      'a length',
      () =>
        new (class extends Float32Array {
          override get length() {
            return 1;
          }
        })(8),
    ],
    [
      'a length of its own',
      () => Object.defineProperty(new Float32Array(8), 'length', { value: 1 }),
    ],
  ];
  it.each(fillers)('with %s is filled all the same', async (_, make) => {
    const elements = (array: Float32Array) => Array.from(new Float32Array(array.buffer));
    const out = { data: make(), shape: [4, 2] };
    const tall = float32([4, 1], 1, 2, 3, 4);
    expect(await wg.gemm(tall, float32([1, 2], 1, 10), null, { out })).toBe(out);
    expect(elements(out.data)).toEqual([1, 10, 2, 20, 3, 30, 4, 40]);
    const columns = { data: make(), shape: [2, 2], strides: [6, 1] };
    await wg.gemm(square(), square(), null, { out: columns });
    expect(elements(columns.data)).toEqual([7, 10, 0, 0, 0, 0, 15, 22]);
  });
});

describe('an out that changes meanwhile', () => {
  it('is refused when it is detached', async () => {
    const out = square();
    const y = wg.gemm(square(), square(), null, { out });
    structuredClone(out.data.buffer, { transfer: [out.data.buffer] });
    expectError(await rejected(y), {
      code: 'ARGUMENT',
      argument: 'out',
      says: ['can no longer be written', 'until the call is done'],
    });
  });
});

/** A detached array. */
const gone = () => {
  const array = new Float32Array(4);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
};

describe('a tensor in the worker', () => {
  it.each(allTypes)('of %s is zeros, is written, and is read', async (dtype) => {
    using heap = await wg.alloc(dtype, [3, 4]);
    expect(heap).toBeInstanceOf(WorkerTensor);
    expect(heap).toMatchObject({ dtype, shape: [3, 4], size: 12, disposed: false });
    const zeros = await heap.read();
    expectEqual(zeros, new arrayClasses[dtype](12));
    const data = new Random(7).fill(new arrayClasses[dtype](12), dtype);
    await heap.write(data);
    expectEqual(await heap.read(), data);
    await heap.write(data.subarray(0, 2), { offset: 5 });
    await heap.write(data.subarray(0, 0), { offset: 12 });
    const wanted = data.slice();
    (wanted as Uint8Array).set(data.subarray(0, 2) as Uint8Array, 5);
    expectEqual(await heap.read(), wanted);
    expect((await wg.memory()).inUse).toBe(64 + Math.ceil((12 * bytesOf(dtype)) / 64) * 64);
  });

  it('takes float16 by its bits', async () => {
    using heap = await wg.alloc('float16', [2]);
    await heap.write(Uint16Array.of(0x3c00, 0xc000));
    expect(bits(await heap.read())).toEqual(bits(Uint16Array.of(0x3c00, 0xc000)));
  });

  it('cannot be changed', async () => {
    using heap = await wg.alloc('float32', [2, 2]);
    expect(() => (heap.shape as number[]).push(3)).toThrow(TypeError);
    for (const change of [{ shape: [1000, 2] }, { size: 2000 }, { dtype: 'int32' }])
      expect(() => Object.assign(heap, change)).toThrow(TypeError);
    using weights = await wg.pack(square(), { op: 'gemm' });
    for (const change of [{ shape: [300, 2] }, { op: 'qgemm' }, { byteLength: 1 }])
      expect(() => Object.assign(weights, change)).toThrow(TypeError);
    expect(() => (weights.shape as number[]).push(3)).toThrow(TypeError);
  });

  it('stands wherever a tensor does, also as out', async () => {
    using a = await wg.alloc('float32', [2, 2]);
    using out = await wg.alloc('float32', [2, 2]);
    await a.write(square().data);
    expect(await wg.gemm(a, square(), a, { out })).toBe(out);
    expect(
      await wg
        .matmul(out, a, null, { out, transfer: true })
        .catch((error: unknown) => (error as GemmError).argument),
    ).toBe('out');
    const wanted = here.gemm(square(), square(), square());
    expect(await out.read()).toEqual(wanted.data);
    expectEqual(await wg.gemm(out, a), here.gemm(wanted, square()));
    expect((await wg.explain('gemm', a, a, null, { out })).copies).toBe(0);
    using x = await wg.alloc('int8', [1, 2]);
    using w = await wg.alloc('uint8', [2, 1]);
    using scale = await wg.alloc('float32', [1]);
    await scale.write(Float32Array.of(2));
    const y = await wg.qgemm({ a: x, aScale: 1, b: w, bScale: scale, c: 5 });
    expect(Array.from(y.data)).toEqual([10]);
  });

  it('are operands of the integer products too', async () => {
    const bytes = Int8Array.of(1, -2, 3, 4, -5, 6);
    const ours = {
      a: { data: Uint8Array.of(1, 2, 3, 4, 5, 255), shape: [2, 3] },
      floats: float32([2, 3], 1, -2, 3, 4, 5.5, -6),
      b: { data: bytes, shape: [3, 2] },
      zero: { data: Int8Array.of(7, -7), shape: [2] },
      rows: { data: Uint8Array.of(9, 200), shape: [2, 1] },
      scale: float32([2], 0.25, -0.5),
      bias: float32([2], 3, -5),
    };
    type Named<T> = Record<keyof typeof ours, T>;
    const theirs = {} as Named<WorkerTensor>;
    for (const [name, { data, shape }] of Object.entries(ours)) {
      const dtype = dtypeOf({ data });
      const held = await wg.alloc(dtype, shape);
      await held.write(data);
      theirs[name as keyof typeof ours] = held;
    }
    const [mine, yours] = [
      here.pack(ours.b, { op: 'qgemm' }),
      await wg.pack(ours.b, { op: 'qgemm' }),
    ];
    const calls = ({ a, floats, b, zero, rows, scale, bias }: Named<unknown>, weights: unknown) =>
      [
        ['matmulInteger', a, b, { aZeroPoint: rows, bZeroPoint: zero }, 'int32'],
        ['matmulInteger', a, weights, { aZeroPoint: rows, bZeroPoint: zero }, 'int32'],
        [
          'dynamicQuantizeMatmul',
          floats,
          weights,
          { bScale: scale, bZeroPoint: zero, bias },
          'float32',
        ],
        [
          'matmulIntegerToFloat',
          a,
          b,
          { aScale: 2, bScale: scale, bZeroPoint: zero, bias },
          'float32',
        ],
        [
          'qlinearMatmul',
          {
            a,
            aScale: 2,
            aZeroPoint: rows,
            b,
            bScale: scale,
            bZeroPoint: zero,
            yScale: 30,
            yZeroPoint: rows,
          },
          {},
          undefined,
          'uint8',
        ],
      ] as const;
    const wanted = calls(ours, mine);
    for (const [i, [op, first, second, third, dtype]] of calls(theirs, yours).entries()) {
      const [, ...args] = wanted[i] as (typeof wanted)[number];
      const y = loose(here)[op](...args.slice(0, 3)) as { data: DataArray };
      expectEqual(await loose(wg)[op](first, second, third), y);
      using out = await wg.alloc(dtype, [2, 2]);
      const withOut =
        op === 'qlinearMatmul' ? [first, { out }] : [first, second, { ...third, out }];
      expect(await loose(wg)[op](...withOut)).toBe(out);
      expect(bits(await out.read())).toEqual(bits(y.data));
      const { copies } = (await loose(wg).explain(op, ...withOut)) as Explanation;
      if (op !== 'qlinearMatmul') expect(copies, op).toBe(0);
    }
    mine.dispose();
    yours.dispose();
    for (const held of Object.values(theirs)) held.dispose();
  });

  it('is disposed of after the calls that were made before, and once', async () => {
    const { inUse } = await wg.memory();
    const a = await wg.alloc('float32', [2, 2]);
    const written = a.write(square().data);
    const y = wg.gemm(a, a);
    const read = a.read();
    a.dispose();
    expect(a.disposed).toBe(true);
    const late = [wg.gemm(a, square()), wg.gemm(square(), square(), null, { out: a })].map(
      rejected,
    );
    await written;
    expect(Array.from((await y).data)).toEqual([7, 10, 15, 22]);
    expect(await read).toEqual(square().data);
    for (const [i, call] of late.entries()) {
      expectError(await call, {
        code: 'DISPOSED',
        argument: ['A', 'out'][i] as string,
        says: ['disposed tensor'],
      });
    }
    const heir = await wg.alloc('float32', [2, 2]); // most likely in the same place
    a.dispose();
    a[dispose]();
    expect((await wg.memory()).inUse - inUse).toBe(128);
    expectError(await rejected(a.read()), {
      code: 'DISPOSED',
      op: 'read',
      argument: 'tensor',
      says: ['disposed'],
    });
    expectError(await rejected(a.write(square().data)), {
      code: 'DISPOSED',
      op: 'write',
      argument: 'tensor',
      says: ['disposed'],
    });
    heir.dispose();
    expect((await wg.memory()).inUse).toBe(inUse);
  });

  const a4 = () => new Float32Array(4);
  it.each([
    ['another type', () => [new Int32Array(4)], 'DTYPE', 'data', ['Int32Array', 'Float32Array']],
    ['a plain array', () => [[1, 2]], 'DTYPE', 'data', ['an array', 'Float32Array']],
    ['nothing', () => [], 'DTYPE', 'data', ['undefined', 'Float32Array']],
    ['a function', () => [() => 1], 'DTYPE', 'data', ['a function', 'Float32Array']],
    ['too much', () => [new Float32Array(5)], 'SHAPE', 'data', ['5 elements', '4']],
    [
      'what reaches beyond the end',
      () => [new Float32Array(2), { offset: 3 }],
      'SHAPE',
      'data',
      ['2 elements', 'offset is 3', '4 elements'],
    ],
    [
      'what begins behind the end',
      () => [new Float32Array(0), { offset: 5 }],
      'SHAPE',
      'data',
      ['0 elements', 'offset is 5', '4 elements'],
    ],
    [
      'a negative offset',
      () => [a4(), { offset: -1 }],
      'ARGUMENT',
      'offset',
      ['-1', 'a whole number from 0'],
    ],
    [
      'a fraction',
      () => [a4(), { offset: 0.5 }],
      'ARGUMENT',
      'offset',
      ['0.5', 'a whole number from 0'],
    ],
    [
      'an unknown option',
      () => [a4(), { at: 1 }],
      'ARGUMENT',
      'at',
      ['"at"', 'not known', 'offset'],
    ],
    ['options that are a number', () => [a4(), 3], 'ARGUMENT', 'options', ['3', 'an object']],
    ['a detached array', () => [gone()], 'ARGUMENT', 'data', ['detached']],
  ] as const)('refuses to be written with %s', async (_, args, code, argument, says) => {
    using heap = await wg.alloc('float32', [4]);
    expectError(await rejected((heap.write as (...args: unknown[]) => Promise<void>)(...args())), {
      code,
      op: 'write',
      argument,
      says,
    });
    expect(await heap.read()).toEqual(a4());
  });
});

describe('packed weights in the worker', () => {
  it('stand where b and weights do, and are disposed of', async () => {
    const b = new Random(8).tensor('float32', [5, 6]);
    const eight = new Random(9).tensor('int8', [5, 6]);
    const src = new Random(10).tensor('float32', [2, 3, 5]);
    const { data } = src;
    const [ours, theirs] = [here.pack(b, { op: 'matmul' }), await wg.pack(b, { op: 'matmul' })];
    const [oursOf8, theirsOf8] = [
      here.pack(eight, { op: 'qgemm' }),
      await wg.pack(eight, { op: 'qgemm' }),
    ];
    expect(theirs).toBeInstanceOf(WorkerWeights);
    for (const [found, wanted] of [
      [theirs, ours],
      [theirsOf8, oursOf8],
    ] as const) {
      // prettier-ignore
      const { op, dtype, shape, byteLength, disposed } = wanted;
      expect(found).toMatchObject({ op, dtype, shape, byteLength, disposed });
    }
    const a = { data: data.subarray(0, 15) as Float32Array, shape: [3, 5] };
    expectEqual(await wg.gemm(a, theirs, 1), here.gemm(a, ours, 1));
    expectEqual(await wg.matmul(src, theirs), here.matmul(src, ours));
    expectEqual(await wg.explain('gemm', a, theirs), here.explain('gemm', a, ours));
    const inputs = { a: new Random(11).tensor('uint8', [2, 5]), aScale: 1, bScale: 2 } as never as {
      a: never;
      aScale: 1;
      bScale: 2;
    };
    expectEqual(await wg.qgemm({ ...inputs, b: theirsOf8 }), here.qgemm({ ...inputs, b: oursOf8 }));
    const swapped = [await rejected(wg.gemm(a, theirsOf8)), thrown(() => here.gemm(a, oursOf8))];
    expectSameError(...(swapped as [unknown, unknown]));
    for (const weights of [ours, theirs, oursOf8, theirsOf8]) weights.dispose();
    expectError(await rejected(wg.gemm(a, theirs)), {
      code: 'DISPOSED',
      argument: 'B',
      says: ['disposed weights'],
    });
    expect((await wg.memory()).inUse).toBe(0);
  });
});

describe('packed weights as bytes', () => {
  it('go from a worker, and to one, as copies or by transfer', async () => {
    const b = new Random(8).tensor('float32', [5, 6]);
    const a = new Random(9).tensor('float32', [3, 5]) as { data: Float32Array; shape: number[] };
    using ours = here.pack(b, { op: 'gemm' });
    using theirs = await wg.pack(b, { op: 'gemm' });
    const bytes = await theirs.serialize();
    expect(bytes).toEqual(ours.serialize());
    const shared = new Uint8Array(new SharedBuffer(bytes.length));
    shared.set(bytes);
    for (const from of [bytes, bytes.slice().buffer, shared, shared.buffer]) {
      using read = await wg.deserialize(from);
      expect(read).toMatchObject({
        op: 'gemm',
        dtype: 'float32',
        shape: [5, 6],
        byteLength: ours.byteLength,
      });
      expectEqual(await wg.gemm(a, read), here.gemm(a, ours));
    }
    expect(bytes.length).toBeGreaterThan(0);
    using moved = await wg.deserialize(bytes, { transfer: true });
    expect(bytes.length).toBe(0);
    expectEqual(await wg.gemm(a, moved), here.gemm(a, ours));
    using read = here.deserialize(await moved.serialize());
    expectEqual(here.gemm(a, read), here.gemm(a, ours));
  });

  it('are not copied again after they were read, if they cannot move', async () => {
    using theirs = await wg.pack(square(), { op: 'gemm' });
    const bytes = await theirs.serialize();
    const fixed = new Uint8Array(new WebAssembly.Memory({ initial: 1 }).buffer, 8, bytes.length);
    fixed.set(bytes);
    const call = wg.deserialize(fixed, { transfer: true });
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is applied to an array
    const { set } = Uint8Array.prototype;
    Uint8Array.prototype.set = function (...args) {
      if (this.length === bytes.length) throw new RangeError('mine');
      set.apply(this, args);
    };
    try {
      using read = await call;
      expect(read).toMatchObject({ op: 'gemm', shape: [2, 2] });
      expect(fixed.length).toBe(bytes.length);
    } finally {
      Uint8Array.prototype.set = set;
    }
  });

  it('are refused as wgemm refuses them', async () => {
    for (const bytes of [
      undefined,
      5,
      'text',
      new Int8Array(4),
      [1],
      { data: 1 },
      gone(),
      gone().buffer,
      new Uint8Array(100),
      new SharedBuffer(100),
    ] as never[]) {
      expectSameError(await rejected(wg.deserialize(bytes)), thrown(() => here.deserialize(bytes))); // prettier-ignore
    }
    const [ours, theirs] = [
      here.pack(square(), { op: 'gemm' }),
      await wg.pack(square(), { op: 'gemm' }),
    ];
    expectError(await rejected(theirs.serialize({ foo: 1 } as never)), {
      code: 'ARGUMENT',
      op: 'serialize',
      argument: 'foo',
      says: ['not known'],
    });
    for (const weights of [ours, theirs]) weights.dispose();
    expectSameError(await rejected(theirs.serialize()), thrown(() => ours.serialize())); // prettier-ignore
    expect((await wg.memory()).inUse).toBe(0);
  });
});

describe('refuses as wgemm does', () => {
  it('objects that only look like a handle, and proxies', async () => {
    const own = await wg.alloc('float32', [2, 2]);
    const { proxy: revoked, revoke } = Proxy.revocable({}, {});
    revoke();
    using mine = here.alloc('float32', [2, 2]);
    for (const prototype of [
      wgemm.HeapTensor,
      wgemm.PackedWeights,
      WorkerTensor,
      WorkerWeights,
    ].map((each) => each.prototype as object)) {
      const wanted = thrown(() =>
        here.gemm(Object.create(wgemm.HeapTensor.prototype) as never, square()),
      );
      expectSameError(await rejected(wg.gemm(Object.create(prototype) as never, square())), wanted);
    }
    for (const [found, wanted] of [
      [new Proxy(own, {}), new Proxy(mine, {})],
      [Object.create(own), Object.create(mine)],
      [new Proxy([], {}), []],
      ...[
        {},
        [],
        new Map(),
        new Date(),
        new Number(5),
        { data: revoked },
        { data: mine },
        { data: new Proxy(square().data, {}), shape: [4] },
      ].map((same) => [same, same]),
      ...[
        { ...square(), shape: [Symbol('a')] },
        { ...square(), shape: [revoked] },
      ].map((same) => [same, same]),
      ...[
        { ...square(), shape: [[1]] },
        { ...square(), shape: [Float32Array.of(1)] },
        { ...square(), shape: [() => 1] },
      ].map((same) => [same, same]),
      ...[
        { ...square(), shape: new Array(2 ** 32 - 1) },
        { ...square(), shape: [2, 2, { a: { b: {} } }] },
      ].map((same) => [same, same]),
    ] as [unknown, unknown][]) {
      expectSameError(
        await rejected(wg.gemm(found as never, square())),
        thrown(() => here.gemm(wanted as never, square())),
      );
    }
    own.dispose();
  });

  it('an option that is not known, in memory()', async () => {
    expectError(await rejected(wg.memory({ foo: 1 } as never)), {
      code: 'ARGUMENT',
      op: 'memory',
      argument: 'foo',
      says: ['not known', 'transfer, signal'],
    });
  });

  it('options that cannot be sent, and takes options that are empty', async () => {
    const circle: Record<string, unknown> = {};
    circle.circle = circle;
    for (const options of [circle, { transA: circle }, { foo: () => 1 }])
      expectSameError(
        await rejected(wg.gemm(square(), square(), null, options as never)),
        thrown(() => here.gemm(square(), square(), null, options as never)),
      );
    for (const options of [null, undefined, {}, Object.create(null)] as unknown[])
      await expectSame('gemm', () => [square(), square(), null, options]);
  });

  it('arrays among the arguments of calls that take none, also with transfer', async () => {
    using heap = await wg.alloc('float32', [2]);
    using weights = await wg.pack(square(), { op: 'gemm' });
    const sizes = Int32Array.of(2, 3);
    const foo = new Float32Array(1);
    const options = (transfer: boolean) => ({ foo, transfer }) as never;
    const calls: Record<string, (transfer: boolean) => Promise<unknown>> = {
      alloc: (transfer) => wg.alloc('float32', sizes as never, { transfer }),
      memory: (transfer) => wg.memory(options(transfer)),
      read: (transfer) => heap.read(options(transfer)),
      serialize: (transfer) => weights.serialize(options(transfer)),
    };
    for (const [op, call] of Object.entries(calls)) {
      const error = await rejected(call(true));
      expectSameError(error, await rejected(call(false)));
      expect(error).toMatchObject({ op });
    }
    expect([sizes.length, foo.length]).toEqual([2, 1]);
  });

  it('arguments whose getters throw, with their error', async () => {
    const mine = new RangeError('mine');
    const throwing = {
      get data(): Float32Array {
        throw mine;
      },
      shape: [1],
    };
    expect(await rejected(wg.gemm(throwing, square()))).toBe(mine);
    expect(await rejected(wg.gemm(square(), square(), null, { out: throwing }))).toBe(mine);
  });

  it('an instance that a getter among the arguments disposes of', async () => {
    const instance = await createGemm();
    const options = {
      get alpha() {
        instance.dispose();
        return 1;
      },
    };
    expectError(await rejected(instance.gemm(square(), square(), 1, options)), {
      code: 'DISPOSED',
      argument: 'instance',
      says: ['disposed'],
    });
  });
});

describe('transfer', () => {
  it('detaches the buffers under the arguments, and the result is the same', async () => {
    const random = new Random(12);
    const [a, b, c] = [
      random.tensor('float64', [5, 7]),
      random.tensor('float64', [7, 6]),
      random.tensor('float64', [6]),
    ];
    const wanted = here.gemm(a, b, c, { alpha: 2 });
    const y = wg.gemm(a, b, c, { alpha: 2, transfer: true });
    const lengths = () => [a, b, c].map(({ data }) => data.length);
    expect(lengths(), 'not before the call is accepted').toEqual([35, 42, 6]);
    expectEqual(await y, wanted);
    expect(lengths()).toEqual([0, 0, 0]);
    expectError(await rejected(wg.gemm(a, b)), {
      code: 'ARGUMENT',
      argument: 'A',
      says: ['detached', 'transferred'],
    });
    expectError(await rejected(wg.gemm(a, b, null, { transfer: true })), {
      code: 'ARGUMENT',
      argument: 'A',
      says: ['detached'],
    });
  });

  it('of false keeps them', async () => {
    const a = square();
    await wg.gemm(a, a, null, { transfer: false });
    expect(a).toEqual(square());
  });

  it('takes one buffer under two operands, as a whole or in parts', async () => {
    const [a, b] = slices('float32', [[2, 3], [3, 2]]) as [never, never]; // prettier-ignore
    const wanted = here.gemm(a, b, null);
    expectEqual(await wg.gemm(a, b, null, { transfer: true }), wanted);
    const both = square();
    expectEqual(
      await wg.gemm(both, both, both, { transfer: true }),
      here.gemm(square(), square(), square()),
    );
    expect(both.data.length).toBe(0);
    const inputs = { aScale: Float32Array.of(2), bScale: 1 };
    const [x, w] = slices('uint8', [[2, 3], [3, 2]], 1) as [never, never]; // prettier-ignore
    const y = here.qgemm({ a: x, b: w, ...inputs });
    expectEqual(await wg.qgemm({ a: x, b: w, ...inputs }, { transfer: true }), y);
    expect(inputs.aScale.length).toBe(0);
  });

  it('returns out as a tensor with an array of its own, and keeps the gaps between its elements', async () => {
    const data = new Float32Array(10).fill(9);
    const out = { data: data.subarray(1, 9), shape: [2, 2], strides: [5, 2], tag: 'mine' };
    const y = await wg.gemm(square(), square(), null, { out, transfer: true });
    expect((y as unknown) === out).toBe(false);
    expect([data.length, out.data.length]).toEqual([0, 0]);
    expect(y).toEqual({
      data: Float32Array.of(7, 9, 10, 9, 9, 15, 9, 22),
      shape: [2, 2],
      strides: [5, 2],
      tag: 'mine',
    });
    expect(y.data.buffer.byteLength, 'the buffer that was given').toBe(40);
    const again = await wg.gemm(square(), square(), y, { out: y, transfer: true });
    expect(Array.from(again.data)).toEqual([14, 9, 20, 9, 9, 30, 9, 44]);
    class Out {
      readonly #data = new Float32Array(4);
      get data() {
        return this.#data;
      }
      get shape() {
        return [2, 2];
      }
    }
    expect(await wg.gemm(square(), square(), null, { out: new Out(), transfer: true })).toEqual({
      data: Float32Array.of(7, 10, 15, 22),
      shape: [2, 2],
    });
  });

  it('copies shared memory', async () => {
    const shared = {
      data: new Float32Array(new SharedBuffer(16)).fill(3) as Float32Array,
      shape: [2, 2],
    };
    const y = await wg.gemm(shared, square(), null, { transfer: true });
    expect(Array.from(y.data)).toEqual([12, 18, 12, 18]);
    expect(shared.data[0]).toBe(3);
    const out = await wg.gemm(square(), square(), null, { out: shared, transfer: true });
    expect(Array.from(out.data)).toEqual([7, 10, 15, 22]);
  });

  it('copies memory that cannot move, and moves the rest', async () => {
    const memory = new WebAssembly.Memory({ initial: 1 });
    const fixed = { data: new Float32Array(memory.buffer, 8, 4), shape: [2, 2] };
    for (const [a, b] of [
      [square(), fixed],
      [fixed, square()],
    ] as const) {
      expect(Array.from((await wg.gemm(a, b, null, { transfer: true })).data)).toEqual([
        0, 0, 0, 0,
      ]);
      expect([a.data.length, b.data.length]).toEqual(a === fixed ? [4, 0] : [0, 4]);
    }
  });

  it('leaves arrays that are not operands where they are', async () => {
    const [cache, tag] = [new Float32Array(3), { deep: { deeper: new Float32Array(3) } }];
    await wg.gemm({ ...square(), cache, tag } as never, square(), null, { transfer: true });
    const bad = { ...square(), shape: [2, 2, Float32Array.of(1)] };
    await rejected(wg.gemm(square(), bad as never, null, { transfer: true }));
    expect([cache.length, tag.deep.deeper.length, (bad.shape[2] as Float32Array).length]).toEqual([
      3, 3, 1,
    ]);
  });

  it('is there for write and pack', async () => {
    using heap = await wg.alloc('float32', [4]);
    const { data } = square();
    await heap.write(data, { transfer: true });
    expect(data.length).toBe(0);
    expect(await heap.read({ transfer: true })).toEqual(square().data);
    const b = square();
    using weights = await wg.pack(b, { op: 'gemm', transfer: true });
    expect(b.data.length).toBe(0);
    expectEqual(await wg.gemm(square(), weights), here.gemm(square(), square()));
  });

  describe('takes nothing', () => {
    /**
     * Expects that a call is rejected as without transfer, and that its arrays stay as they are.
     */
    async function expectKept(
      make: () => unknown[],
      call: (transfer: boolean, ...args: never[]) => Promise<unknown>,
    ): Promise<void> {
      const [copied, kept] = [make(), make()];
      const wanted = await rejected(call(false, ...(copied as never[])));
      expectSameError(await rejected(call(true, ...(kept as never[]))), wanted);
      expect(arraysOf(copied).length).toBeGreaterThan(0);
      const elements = (value: unknown) =>
        arraysOf(value).map((array) => (array.length === 0 ? 'none' : bits(array)));
      expect(elements(kept)).toEqual(elements(make()));
    }

    const quantized = () => ({
      a: { data: new Int8Array(4), shape: [2, 2] },
      b: { data: new Int8Array(4), shape: [2, 2] },
    });
    type Refused = [string, Method, () => unknown[]];
    const disposed = async () => {
      const heap = await wg.alloc('float32', [2, 2]);
      heap.dispose();
      return heap;
    };
    it.each<Refused>([
      [
        'an option that is not known',
        'gemm',
        () => [square(), square(), square(), { transa: true }],
      ],
      ['an option of another type', 'gemm', () => [square(), square(), square(), { alpha: 'x' }]],
      [
        'shapes that do not fit',
        'gemm',
        () => [square(), { data: new Float32Array(6), shape: [3, 2] }, null, {}],
      ],
      [
        'a shape that its array does not fit',
        'gemm',
        () => [square(), { data: new Float32Array(5), shape: [2, 2] }, null, {}],
      ],
      ['types that differ', 'gemm', () => [square(), int32([2, 2], 1, 2, 3, 4), square(), {}]],
      [
        'an out of another shape',
        'gemm',
        () => [square(), square(), null, { out: float32([2, 3], 1, 2, 3, 4, 5, 6) }],
      ],
      [
        'an array that is detached',
        'gemm',
        () => [square(), square(), { data: gone(), shape: [4] }, {}],
      ],
      ['an opset', 'gemm', () => [square(), square(), square(), { opset: 0 }]],
      ['types of matmul', 'matmul', () => [square(), int32([2, 2], 1, 2, 3, 4), null, {}]],
      [
        'a scale of another type',
        'qgemm',
        () => [{ ...quantized(), aScale: 1, bScale: new Int8Array(1) }, {}],
      ],
      [
        'a zero point for a result of float32',
        'qgemm',
        () => [{ ...quantized(), aScale: 1, bScale: 1, yZeroPoint: new Int8Array(1) }, {}],
      ],
      ['a scale that is NaN', 'qgemm', () => [{ ...quantized(), aScale: NaN, bScale: 1 }, {}]],
      [
        'a scale that is NaN in an array',
        'qgemm',
        () => [{ ...quantized(), aScale: 1, bScale: Float32Array.of(NaN) }, {}],
      ],
      [
        'an alpha that is NaN',
        'qgemm',
        () => [{ ...quantized(), aScale: 1, bScale: 1 }, { alpha: NaN }],
      ],
      [
        'a result that is too large',
        'gemm',
        () => [
          { data: Float32Array.of(1), shape: [2 ** 20, 1], strides: [0, 0] },
          { data: Float32Array.of(1), shape: [1, 2 ** 20], strides: [0, 0] },
          null,
          {},
        ],
      ],
      [
        'what explain refuses',
        'explain',
        () => ['gemm', square(), { data: new Float32Array(6), shape: [3, 2] }, null, {}],
      ],
    ])('for %s', async (_, method, make) => {
      await expectKept(make, (transfer, ...args) => {
        return loose(wg)[method](...args.slice(0, -1), {
          ...(args.at(-1) as unknown as object),
          transfer,
        }) as Promise<unknown>;
      });
    });

    it('for a tensor that is disposed of', async () => {
      const heap = await disposed();
      await expectKept(
        () => [square()],
        (transfer, a: ReturnType<typeof square>) => wg.gemm(a, heap, null, { transfer }),
      );
      await expectKept(
        () => [square().data],
        (transfer, data: Float32Array) => heap.write(data, { transfer }),
      );
    });

    it('for a lack of memory that can be foretold', async () => {
      const small = await createGemm({ maxMemory: 10_000 });
      const large = () => [{ data: new Float32Array(10_000).fill(3), shape: [100, 100] }];
      await expectKept(large, (transfer, a: ReturnType<typeof square>) =>
        small.gemm(a, a, null, { transfer }),
      );
      await expectKept(large, (transfer, b: ReturnType<typeof square>) =>
        small.pack(b, { op: 'gemm', transfer }),
      );
      expect((await small.memory()).inUse).toBe(0);
      small.dispose();
    });

    it('in pack, write and deserialize', async () => {
      using heap = await wg.alloc('float32', [4]);
      const write = (transfer: boolean, data: never, offset: number) =>
        heap.write(data, { offset, transfer });
      await expectKept(() => [new Float32Array(5), 0], write);
      await expectKept(() => [new Int32Array(4), 0], write);
      await expectKept(() => [new Float32Array(4), 1], write);
      await expectKept(() => [new Float32Array(4), -1], write);
      const pack = (transfer: boolean, b: never, options: object) =>
        wg.pack(b, { ...options, transfer } as never);
      await expectKept(() => [square(), { op: 'conv' }], pack);
      await expectKept(() => [square(), { op: 'qgemm' }], pack);
      await expectKept(() => [square(), { op: 'gemm', transpose: 1 }], pack);
      await expectKept(() => [{ ...square(), shape: [4] }, { op: 'gemm' }], pack);
      const weights = here.pack(square(), { op: 'gemm' });
      const damaged = weights.serialize();
      weights.dispose();
      damaged[damaged.length - 1] = 1 + (damaged.at(-1) as number);
      const deserialize = (transfer: boolean, bytes: never) => wg.deserialize(bytes, { transfer });
      await expectKept(() => [damaged.slice()], deserialize);
      await expectKept(() => [new Uint8Array(100)], deserialize);
      expect((await wg.memory()).inUse).toBe(128);
    });

    it('for a call that is aborted before it began, or whose instance is disposed of', async () => {
      const first = slow();
      const controller = new AbortController();
      const a = square();
      const call = rejected(wg.gemm(a, a, null, { signal: controller.signal, transfer: true }));
      await after(1);
      controller.abort();
      expect(await call).toMatchObject({ name: 'AbortError' });
      await first;
      expect(Array.from((await wg.gemm(a, a)).data)).toEqual([7, 10, 15, 22]);
      const instance = await createGemm();
      const pending = rejected(instance.gemm(a, a, null, { transfer: true }));
      instance.dispose();
      await pending;
      expect(a).toEqual(square());
    });

    it('of the others, when an array is gone before the call begins', async () => {
      const [a, b] = [square(), square()];
      const calls = [
        wg.gemm(a, a, null, { transfer: true }),
        wg.gemm(b, a, null, { transfer: true }),
      ] as const;
      expect(Array.from((await calls[0]).data)).toEqual([7, 10, 15, 22]);
      expectError(await rejected(calls[1]), {
        code: 'ARGUMENT',
        argument: 'B',
        says: ['detached', 'transferred'],
      });
      expect(b).toEqual(square());
      const buffer = new (
        ArrayBuffer as unknown as new (n: number, options: object) => ArrayBuffer
      )(16, { maxByteLength: 16 });
      if (!('resize' in buffer)) return;
      const shrinks = { data: new Float32Array(buffer), shape: [2, 2] };
      const call = rejected(wg.gemm(b, shrinks, null, { transfer: true }));
      buffer.resize(8);
      expectError(await call, { code: 'ARGUMENT', argument: 'B', says: ['detached'] });
      expect(b).toEqual(square());
    });
  });

  it('keeps the order of calls, however they send their arrays', async () => {
    using heap = await wg.alloc('float32', [2, 2]);
    const first = slow();
    const { data } = square();
    const written = heap.write(data, { transfer: true });
    const y = wg.gemm(heap, square());
    const overwritten = heap.write(new Float32Array(4));
    await Promise.all([first, written, overwritten]);
    expect(Array.from((await y).data)).toEqual([7, 10, 15, 22]);
    expect(data.length).toBe(0);
    expect(await heap.read()).toEqual(new Float32Array(4));
  });

  it('reads scales and zero points of a call before it takes them', async () => {
    const a = { data: new Int8Array(4).fill(2), shape: [2, 2] };
    const b = { data: new Int8Array(4).fill(3), shape: [2, 2] };
    const bScale = { data: Float32Array.of(1, 2), shape: [2] };
    const inputs = { a, aScale: Float32Array.of(0.5), b, bScale, bZeroPoint: Int8Array.of(1) };
    const y = await wg.qgemm(inputs, { transfer: true });
    expect(Array.from(y.data)).toEqual([4, 8, 4, 8]);
    expect(arraysOf(inputs).map(({ length }) => length)).toEqual([0, 0, 0, 0, 0]);
  });

  it('must be a boolean', async () => {
    for (const transfer of [1, 'true', null, []]) {
      const call = wg.gemm(square(), square(), null, { transfer: transfer as never });
      expectError(await rejected(call), {
        code: 'ARGUMENT',
        argument: 'transfer',
        says: ['must be a boolean'],
      });
    }
  });
});

describe('signal', () => {
  const reason = new RangeError('mine');
  const abortedBy = (signal: AbortSignal | Signal) => wg.gemm(square(), square(), null, { signal });

  it('without removeEventListener() is refused', async () => {
    const signal = { aborted: false, addEventListener() {} } as never;
    const wanted = {
      code: 'ARGUMENT' as const,
      argument: 'signal',
      says: ['signal must be an AbortSignal'],
    };
    expectError(await rejected(abortedBy(signal)), wanted);
  });

  it('that is aborted already: rejects with its reason, and reads nothing', async () => {
    const never = {
      get data(): Float32Array {
        throw new Error('was read');
      },
      shape: [1],
    };
    expect(
      await rejected(wg.gemm(never, square(), null, { signal: AbortSignal.abort(reason) })),
    ).toBe(reason);
    const a = square();
    expect(
      await rejected(wg.gemm(a, a, null, { signal: AbortSignal.abort(), transfer: true })),
    ).toMatchObject({ name: 'AbortError' });
    expect(a.data.length).toBe(4);
  });

  it('aborted while the call waits: it is not begun', async () => {
    using heap = await wg.alloc('float32', [2, 2]);
    const out = square(9);
    const controllers = Array.from({ length: 4 }, () => new AbortController());
    const [one, two, three, four] = controllers.map(({ signal }) => signal) as [
      AbortSignal,
      AbortSignal,
      AbortSignal,
      AbortSignal,
    ];
    const first = slow();
    const waiting = [
      wg.gemm(square(), square(), null, { out: heap, signal: one }),
      wg.gemm(square(), square(), null, { out, signal: two }),
      wg.alloc('float32', [1000], { signal: three }),
      heap.write(square().data, { signal: four }),
    ];
    const late = wg.gemm(square(), square());
    for (const controller of controllers) controller.abort(reason);
    const order: string[] = [];
    await Promise.all([
      ...waiting.map(async (call) => {
        expect(await rejected(call)).toBe(reason);
        order.push('aborted');
      }),
      first.then(() => order.push('first')),
    ]);
    expect(order, 'at once').toEqual([...Array<string>(4).fill('aborted'), 'first']);
    expect(Array.from((await late).data)).toEqual([7, 10, 15, 22]);
    expect(out).toEqual(square(9));
    expect(await heap.read()).toEqual(new Float32Array(4));
    expect((await wg.memory()).inUse).toBe(128);
  });

  it('aborted while the call runs: its result is dropped', async () => {
    const large = { data: new Float32Array(side * side).fill(1), shape: [side, side] };
    const out = { data: new Float32Array(side * side), shape: [side, side] };
    const controller = new AbortController();
    const y = wg.gemm(large, large, null, { out, signal: controller.signal });
    await after(5);
    controller.abort(reason);
    expect(await rejected(y)).toBe(reason);
    expect(Array.from((await wg.gemm(square(), square())).data)).toEqual([7, 10, 15, 22]);
    expect(out.data.every((value) => value === 0)).toBe(true);
  });

  it('aborted when the worker has begun: handles that the call made are freed', async () => {
    for (let i = 0; i < 20; ++i) {
      const controller = new AbortController();
      const { signal } = controller;
      const calls = [
        wg.alloc('float32', [100], { signal }),
        wg.pack(square(), { op: 'gemm', signal }),
      ];
      const ended = Promise.all(calls.map(rejected));
      if (i % 2) await Promise.resolve();
      controller.abort(reason);
      expect(await ended).toEqual([reason, reason]);
    }
    await wg.memory(); // by now the page knows of them
    expect((await wg.memory()).inUse).toBe(0);
  });

  it('aborted after the call: changes nothing', async () => {
    const controller = new AbortController();
    const out = square();
    const y = await wg.gemm(square(), square(), null, { out, signal: controller.signal });
    controller.abort(reason);
    await wg.memory();
    expect(Array.from(y.data)).toEqual([7, 10, 15, 22]);
  });

  it('aborted by a getter among the arguments', async () => {
    const controller = new AbortController();
    const options = {
      get alpha() {
        controller.abort(reason);
        return 1;
      },
      signal: controller.signal,
    };
    expect(await rejected(wg.gemm(square(), square(), null, options))).toBe(reason);
  });

  it('one may serve many calls', async () => {
    const controller = new AbortController();
    const first = slow();
    const calls = Array.from({ length: 20 }, () => rejected(abortedBy(controller.signal)));
    controller.abort(reason);
    expect(await Promise.all(calls)).toEqual(Array(20).fill(reason));
    await first;
  });

  it('has no listener after the call, however the call ended', async () => {
    const listeners = new Set<() => void>();
    const counting: Signal = {
      aborted: false,
      reason,
      addEventListener: (_, listener) => void listeners.add(listener),
      removeEventListener: (_, listener) => void listeners.delete(listener),
    };
    const call = abortedBy(counting);
    expect(listeners.size).toBe(1);
    await call;
    expect(listeners.size).toBe(0);
    await rejected(wg.gemm(square(), 5 as never, null, { signal: counting }));
    expect(listeners.size).toBe(0);
    const aborted = rejected(abortedBy(counting));
    for (const listener of listeners) listener();
    expect(await aborted).toBe(reason);
    expect(listeners.size).toBe(0);
    const instance = await createGemm();
    const pending = rejected(instance.memory({ signal: counting }));
    instance.dispose();
    await pending;
    expect(listeners.size).toBe(0);
  });

  it('may abort the call or end the instance while the call listens to it', async () => {
    const removeEventListener = () => undefined;
    const addEventListener = (_: 'abort', abort: () => void) => abort();
    const abortsAtOnce: Signal = { aborted: false, reason, addEventListener, removeEventListener };
    expect(await rejected(abortedBy(abortsAtOnce))).toBe(reason);
    for (const isListening of [true, false]) {
      const instance = await createGemm();
      let reads = 0;
      const signal: Signal = {
        get aborted() {
          if (!isListening && ++reads === 3) instance.dispose(); // the last check of the page
          return false;
        },
        addEventListener: () => isListening && instance.dispose(),
        removeEventListener,
      };
      const call = instance.gemm(square(), square(), null, { signal });
      expectError(await rejected(call), { code: 'DISPOSED', argument: 'instance', says: [] });
    }
  });

  it('must be an AbortSignal', async () => {
    for (const signal of [5, null, {}, new AbortController()]) {
      expectError(await rejected(abortedBy(signal as never)), {
        code: 'ARGUMENT',
        argument: 'signal',
        says: ['AbortSignal'],
      });
    }
  });
});

describe('dispose', () => {
  const disposed = (op: string) => ({
    code: 'DISPOSED' as const,
    op,
    argument: 'instance',
    says: ['disposed', 'createGemm()'],
  });

  it('rejects pending and later calls, and ends all handles', async () => {
    const instance = await createGemm();
    const [heap, weights] = [
      await instance.alloc('float32', [2, 2]),
      await instance.pack(square(), { op: 'gemm' }),
    ];
    const out = square(9);
    const pending = {
      gemm: instance.gemm(square(), square(), null, { out }),
      memory: instance.memory(),
      read: heap.read(),
    };
    instance.dispose();
    expect([instance.disposed, heap.disposed, weights.disposed]).toEqual([true, true, true]);
    for (const [op, call] of Object.entries(pending))
      expectError(await rejected(call), disposed(op));
    const later = {
      gemm: instance.gemm(heap, weights),
      alloc: instance.alloc('int8', [1]),
      write: heap.write(square().data),
    };
    for (const [op, call] of Object.entries(later)) expectError(await rejected(call), disposed(op));
    heap.dispose();
    weights.dispose();
    instance.dispose();
    instance[dispose]();
    expect(out).toEqual(square(9));
    expectError(await rejected(wg.gemm(heap, square())), {
      code: 'ARGUMENT',
      argument: 'A',
      says: ['another instance'],
    });
  });

  it('by using', async () => {
    let seen: WorkerGemm;
    {
      using scoped = await createGemm();
      seen = scoped;
      using heap = await scoped.alloc('float32', [1]);
      await heap.read();
    }
    expect(seen.disposed).toBe(true);
    expect(await rejected(seen.memory())).toBeInstanceOf(DisposedError);
  });

  it('50 times in a row', async () => {
    for (let i = 0; i < 50; ++i) {
      const instance = await createGemm();
      const heap = await instance.alloc('float32', [i]);
      expect((await instance.gemm(float32([1, 1], i), float32([1, 1], 2))).data[0]).toBe(2 * i);
      expect(heap.size).toBe(i);
      instance.dispose();
    }
  });
});

describe('createGemm', () => {
  it.each([
    5,
    'text',
    () => 1,
    { thread: 1 },
    { signal: 1 },
    { threads: 0 },
    { threads: 65 },
    { simd: 'avx' },
    { assets: 'here' },
    { maxMemory: 0 },
  ])('refuses %o as wgemm does', async (options) => {
    expectSameError(
      await rejected(createGemm(options as never)),
      await rejected(createHere(options as never)),
    );
  });

  it.each([undefined, null, {}, { threads: 1, maxMemory: 1e6 }, { worker: undefined }])(
    'takes %o',
    async (options) => {
      const instance = await createGemm(options as never);
      expect(Array.from((await instance.gemm(square(), square())).data)).toEqual([7, 10, 15, 22]);
      instance.dispose();
    },
  );

  it('takes options of a class', async () => {
    class Options {
      get maxMemory() {
        return 10_000;
      }
    }
    const instance = await createGemm(new Options());
    expect(await rejected(instance.alloc('float32', [2500]))).toMatchObject({
      name: 'OutOfMemoryError',
      code: 'OUT_OF_MEMORY',
      op: 'alloc',
    });
    instance.dispose();
  });

  it('refuses a worker that is not one', async () => {
    const wanted = (...says: string[]) => ({
      code: 'ARGUMENT' as const,
      op: 'createGemm',
      argument: 'worker',
      says,
    });
    for (const worker of [5, null, 'wgemm-worker.js', {}]) {
      expectError(
        await rejected(createGemm({ worker: worker as never })),
        wanted('must be a function'),
      );
    }
    const deaf = { postMessage() {}, terminate() {} };
    for (const made of [undefined, null, 5, {}, Promise.resolve({}), deaf]) {
      expectError(
        await rejected(createGemm({ worker: () => made })),
        wanted('it must return a worker of wgemm-worker.js'),
      );
    }
  });

  it('says so where a worker takes no listeners, or options throw, and leaves nothing behind', async () => {
    const mine = new RangeError('mine');
    const throws = (): never => {
      throw mine;
    };
    const made = () => ({ postMessage() {}, terminate() {}, addEventListener: throws });
    const error = await rejected(createGemm({ worker: made }));
    expectError(error, {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: ['mine', 'wgemm-worker.js'],
    });
    let workers = 0;
    const options = {
      get threads() {
        return throws();
      },
      worker: () => ++workers,
    };
    expect(await rejected(createGemm(options))).toBe(mine);
    expect(workers).toBe(0);
  });

  it('says so where making a worker throws', async () => {
    const mine = new RangeError('mine');
    const error = await rejected(
      createGemm({
        worker() {
          throw mine;
        },
      }),
    );
    expectError(error, {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: ['mine', 'wgemm-worker.js'],
    });
    expect((error as GemmError).cause).toBe(mine);
  });

  it('passes on an error of the caller’s assets, and refuses what is not a source', async () => {
    const mine = new RangeError('mine');
    const assets = () => {
      throw mine;
    };
    expect(await rejected(createGemm({ assets }))).toBe(mine);
    expect(await rejected(createGemm({ assets: () => Promise.reject(mine) }))).toBe(mine);
    for (const source of [undefined, 5, {}, [], () => 1, Symbol('a'), new Map([[1, () => 1]])]) {
      const assets = (() => source) as never;
      expectSameError(
        await rejected(createGemm({ assets })),
        await rejected(createHere({ assets })),
      );
    }
  });
});

it('thrown errors are of the classes of wgemm', async () => {
  expect(await rejected(wg.gemm(square(), 5 as never))).toBeInstanceOf(wgemm.ArgumentError);
  expect(await rejected(wg.alloc('int8', [-1]))).toBeInstanceOf(entry.ShapeError);
});

describe('a worker of the web', () => {
  interface Message {
    kind: string;
    id: number;
  }
  /** Replaces a Worker. It keeps the messages that it gets, and the test sends its answers. */
  class Fake {
    readonly listeners: Record<string, (event: object) => void> = {};
    readonly sent: Message[] = [];
    terminated = 0;

    addEventListener(type: string, listener: (event: object) => void): void {
      this.listeners[type] = listener;
    }
    postMessage(message: Message): void {
      this.sent.push(message);
    }
    terminate(): void {
      ++this.terminated;
    }
    says(data: object): void {
      this.listeners.message?.({ data });
    }
  }

  // These begin here, so that their waiting overlaps with the other tests.
  const silent = [[], ['hello'], [{ kind: 'hello' }, 5]].map((messages) => {
    const fake = new Fake();
    const made = rejected(createGemm({ worker: () => fake }));
    for (const message of messages) fake.says(message as never);
    return [made, fake] as const;
  });

  async function start(): Promise<{ fake: Fake; wg: WorkerGemm }> {
    const fake = new Fake();
    const made = createGemm({ worker: () => fake });
    fake.says({ kind: 'ready' });
    fake.says({
      kind: 'outcome',
      id: fake.sent[0]?.id,
      outcome: { value: { info: { build: 'simd128' }, dtypes: allTypes }, buffers: [] },
    });
    return { fake, wg: await made };
  }

  it('whose postMessage() throws: the call is rejected, and the next is made', async () => {
    const { fake, wg } = await start();
    const mine = new RangeError('mine');
    const post = fake.postMessage.bind(fake);
    for (const [thrown, code, op] of [
      [new TypeError('mine'), 'WORKER', 'gemm'],
      [mine, 'OUT_OF_MEMORY', 'gemm'],
    ] as const) {
      fake.postMessage = () => {
        throw thrown;
      };
      expectError(await rejected(wg.gemm(square(), square())), {
        code,
        op,
        argument: '',
        says: ['cannot be sent', 'mine'],
      });
      const controller = new AbortController();
      fake.postMessage = post;
      const waiting = rejected(wg.gemm(square(), square(), null, { signal: controller.signal }));
      fake.postMessage = () => {
        throw thrown;
      };
      controller.abort(mine);
      expect(await waiting).toBe(mine);
      fake.postMessage = post;
    }
    const memory = wg.memory();
    fake.says({ kind: 'outcome', id: fake.sent.at(-1)?.id, outcome: { value: 5, buffers: [] } });
    expect(await memory).toBe(5);
    wg.dispose();
  });

  it('whose postMessage() throws for arrays: the call is rejected, and the worker does not wait', async () => {
    const { fake, wg } = await start();
    const call = rejected(wg.gemm(square(), square(), null, { transfer: true }));
    const { id } = fake.sent.at(-1) as Message;
    const post = fake.postMessage.bind(fake);
    fake.postMessage = (message) => {
      if (message.kind === 'packet') throw new TypeError('mine');
      post(message);
    };
    fake.says({ kind: 'accepted', id });
    expectError(await call, { code: 'WORKER', argument: '', says: ['cannot be sent', 'mine'] });
    expect(fake.sent.at(-1)).toEqual({ kind: 'cancel', id });
    wg.dispose();
  });

  it('that waits for arrays and cannot be told that none come is ended', async () => {
    const { fake, wg } = await start();
    const pending = rejected(wg.memory());
    const call = rejected(wg.gemm(square(), square(), null, { transfer: true }));
    const { id } = fake.sent.at(-1) as Message;
    fake.postMessage = () => {
      throw new TypeError('mine');
    };
    fake.says({ kind: 'accepted', id });
    expectError(await call, { code: 'WORKER', argument: '', says: ['cannot be sent', 'mine'] });
    expectError(await pending, {
      code: 'WORKER',
      op: 'memory',
      argument: '',
      says: ['the worker died', 'the arrays of a call cannot be sent'],
    });
    expect(fake.terminated).toBe(1);
  });

  it('is sent no array of a call that transfers before it has accepted it', async () => {
    const { fake, wg } = await start();
    const controller = new AbortController();
    const a = square();
    const call = rejected(wg.gemm(a, a, null, { transfer: true, signal: controller.signal }));
    const { id, packet, isTrial } = fake.sent.at(-1) as Message & {
      packet: { buffers: unknown[] };
      isTrial: boolean;
    };
    expect({ buffers: packet.buffers, isTrial }).toEqual({ buffers: [16], isTrial: true });
    controller.abort();
    fake.says({ kind: 'accepted', id }); // crossed the abort on its way
    expect(await call).toMatchObject({ name: 'AbortError' });
    expect(fake.sent.at(-1)).toEqual({ kind: 'cancel', id });
    expect(a).toEqual(square());
    wg.dispose();
  });

  it('tells the cause of an error', async () => {
    const { fake, wg } = await start();
    const call = rejected(wg.gemm(square(), square()));
    const cause = {
      name: 'RangeError',
      message: 'mine',
      cause: { name: undefined, message: 'a text', cause: undefined },
    };
    fake.says({
      kind: 'error',
      id: fake.sent.at(-1)?.id,
      code: 'SHAPE',
      op: 'gemm',
      argument: 'A',
      message: 'gemm: A',
      cause,
    });
    const error = (await call) as GemmError;
    expectError(error, { code: 'SHAPE', argument: 'A', says: [] });
    expect(error.cause).toBeInstanceOf(Error);
    expect(error.cause).toMatchObject({ name: 'RangeError', message: 'mine', cause: 'a text' });
    wg.dispose();
  });

  it('that sends nothing, or only messages of others, is an error in time', async () => {
    for (const [made, fake] of silent) {
      expectError(await made, {
        code: 'LOAD',
        op: 'createGemm',
        argument: '',
        says: ['no answer for 10 s', 'wgemm-worker.js'],
      });
      expect(fake.terminated).toBe(1);
    }
  });

  it('may send messages of other scripts', async () => {
    const { fake, wg } = await start();
    for (const message of [null, undefined, 'hello', { kind: 'hello' }])
      fake.says(message as never);
    expect(wg.disposed).toBe(false);
    wg.dispose();
  });

  const ends: [string, (fake: Fake) => void, string][] = [
    [
      'an error that nobody catches',
      (fake) => fake.listeners.error?.({ message: 'mine', error: new Error('mine') }),
      'mine',
    ],
    [
      'a message that cannot be read',
      (fake) => fake.listeners.messageerror?.({}),
      'a message cannot be read',
    ],
    ['terminate()', (fake) => fake.terminate(), 'it was terminated'],
    [
      'close() inside',
      (fake) => fake.says({ kind: 'closing', why: 'it closed itself' }),
      'it closed itself',
    ],
  ];
  it.each(ends)(
    'ends by %s: what is pending is rejected, and what comes later',
    async (_, end, why) => {
      const { fake, wg } = await start();
      const pending = rejected(wg.gemm(square(), square()));
      end(fake);
      const died = (op: string) => ({
        code: 'WORKER' as const,
        op,
        argument: '',
        says: ['the worker died', why],
      });
      expectError(await pending, died('gemm'));
      expectError(await rejected(wg.memory()), died('memory'));
      expect(wg.disposed).toBe(true);
      expect(fake.terminated, 'is not left to itself').toBeGreaterThan(0);
      const sent = fake.sent.length;
      wg.dispose();
      expect(fake.sent.length).toBe(sent);
    },
  );

  it('that was ready before createGemm() dies as any other', async () => {
    const fake = new Fake();
    const made = createGemm({ worker: () => fake });
    fake.says({
      kind: 'outcome',
      id: fake.sent[0]?.id,
      outcome: { value: { info: { build: 'simd128' }, dtypes: allTypes }, buffers: [] },
    });
    const wg = await made;
    fake.terminate();
    expectError(await rejected(wg.memory()), {
      code: 'WORKER',
      op: 'memory',
      argument: '',
      says: ['the worker died'],
    });
  });

  it('that cannot be loaded has another error than one that died', async () => {
    const fake = new Fake();
    const made = rejected(createGemm({ worker: () => fake }));
    fake.listeners.error?.({}); // browsers say no more of a script that is not there
    const says = ['does not start', 'cannot be loaded or run', 'wgemm-worker.js'];
    expectError(await made, { code: 'LOAD', op: 'createGemm', argument: '', says });
    expect(fake.terminated).toBe(1);
  });

  it('is told of cancelled calls, and of handles that nobody waits for', async () => {
    const { fake, wg } = await start();
    const controller = new AbortController();
    const call = rejected(wg.alloc('float32', [1], { signal: controller.signal }));
    const id = fake.sent.at(-1)?.id;
    controller.abort();
    expect(await call).toMatchObject({ name: 'AbortError' });
    expect(fake.sent.at(-1)).toEqual({ kind: 'cancel', id });
    fake.says({
      kind: 'outcome',
      id,
      outcome: { held: { kind: 'tensor', id: 7, dtype: 'float32', shape: [1] }, buffers: [] },
    });
    expect(fake.sent.at(-1)).toEqual({ kind: 'forget', id: 7 });
    wg.dispose();
    expect(fake.terminated).toBe(1);
  });
});

describe.skipIf(typeof document !== 'object')('a worker of a page', () => {
  async function start(): Promise<{ worker: Worker; wg: WorkerGemm }> {
    const worker = new Worker(import.meta.resolve('wgemm/assets/wgemm-worker.js'), {
      type: 'module',
    });
    return { worker, wg: await createGemm({ worker: () => worker }) };
  }

  const ends: [string, (worker: Worker) => void, string][] = [
    ['terminate()', (worker) => worker.terminate(), 'it was terminated'],
    ['an error that nobody catches', (worker) => worker.postMessage(null), ''],
  ];
  it.each(ends)(
    'ends by %s: what is pending is rejected, and what comes later',
    async (_, end, why) => {
      const { worker, wg } = await start();
      expect(Array.from((await wg.gemm(square(), square())).data)).toEqual([7, 10, 15, 22]);
      end(worker);
      const died = (op: string) => ({
        code: 'WORKER' as const,
        op,
        argument: '',
        says: ['the worker died', why],
      });
      expectError(await rejected(wg.gemm(square(), square())), died('gemm'));
      expectError(await rejected(wg.memory()), died('memory'));
    },
  );

  it('has an address with a query, or is next to a script with one', async () => {
    const query = '?v=1/2#3/4';
    const script = import.meta.resolve('wgemm/assets/wgemm-worker.js') + query;
    const second = script.replace('wgemm-worker.js', 'worker.js');
    const { createGemm: createFrom } = (await import(/* @vite-ignore */ second)) as typeof entry;
    for (const made of [
      createGemm({ worker: () => new Worker(script, { type: 'module' }) }),
      createFrom(),
    ]) {
      const instance = await made;
      expect(Array.from((await instance.gemm(square(), square())).data)).toEqual([7, 10, 15, 22]);
      instance.dispose();
    }
  });

  it('that was made long before, is used', async () => {
    const worker = new Worker(import.meta.resolve('wgemm/assets/wgemm-worker.js'), {
      type: 'module',
    });
    await new Promise((resolve) => worker.addEventListener('message', resolve, { once: true }));
    const instance = await createGemm({ worker: () => worker });
    expect(Array.from((await instance.gemm(square(), square())).data)).toEqual([7, 10, 15, 22]);
    instance.dispose();
  });

  it('that is not there is an error', async () => {
    const missing = createGemm({ worker: () => new Worker('/not-here.js', { type: 'module' }) });
    expectError(await rejected(missing), {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: ['does not start', 'wgemm-worker.js'],
    });
  });
});
