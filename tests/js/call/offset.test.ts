/**
 * Tensors with an offset, in arrays that are longer than needed, and views of handles: results are
 * right, and what is around the tensors is neither changed nor copied.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type DataArray,
  dequantize,
  type DType,
  type Gemm,
  quantize,
  quantizeBias,
  type TensorInput,
} from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import { size } from '../support/arbitraries.js';
import { dtypes } from '../support/dtypes.js';
import { expectError, expectSameError, rejected, thrown } from '../support/errors.js';
import { type Expected, type Matrix, referenceGemm, referenceQGemm } from '../support/reference.js';
import { type ExpectedStack, referenceMatMul } from '../support/matmul-reference.js';
import { count, float32, Random, sameBytes } from '../support/tensors.js';
import {
  buffers,
  expectFilled,
  gather,
  type Spec,
  spec,
  type Window,
  windowIn,
} from '../support/windows.js';

let wg: Gemm;
let other: Gemm;
let inWorker: WorkerGemm;
/** Computes nearly everything out-of-core. */
let small: Gemm;
beforeAll(async () => {
  [wg, other, small] = [
    await createGemm(),
    await createGemm(),
    await createGemm({ maxMemory: 40_000 }),
  ];
  inWorker = await startWorker();
});
afterAll(() => {
  for (const each of [wg, other, small, inWorker]) each.dispose();
});

const seed = 20261124;

type Calls = Record<Problem['op'], (...args: [never, never]) => unknown>;

/** A call of an operation, with windows as its operands. */
interface Problem {
  windows: Record<string, Window>;
  out: Window | undefined;
  op: 'gemm' | 'matmul' | 'qgemm';
  /** The arguments of the call. */
  args: (options: object) => [never, never];
  reference: (dense: Record<string, Matrix>) => Expected | ExpectedStack;
}

const problem = fc.record({
  op: fc.constantFrom('gemm', 'matmul', 'qgemm'),
  dtype: fc.constantFrom(...dtypes),
  sizes: fc.tuple(size, size, size),
  batch: fc.integer({ min: 1, max: 3 }),
  transA: fc.boolean(),
  transB: fc.boolean(),
  packs: fc.boolean(),
  c: fc.constantFrom('none', '(N)', '(M,1)', '(M,N)'),
  out: fc.constantFrom('fresh', 'own', 'own', 'C'),
  specs: fc.array(spec, { minLength: 8, maxLength: 8 }),
  numbers: fc.integer(),
});
type ProblemSpec = typeof problem extends fc.Arbitrary<infer T> ? T : never;

async function make(
  where: Gemm | WorkerGemm,
  { op, dtype, sizes, batch, transA, transB, c, out, specs, numbers }: ProblemSpec,
): Promise<Problem> {
  const random = new Random(numbers);
  const [m, n, k] = sizes;
  let made = 0;
  const next = (type: DType, shape: number[], isInput = true) =>
    windowIn(where, random, type, shape, specs[made++] as Spec, isInput);
  const shapeOfC = { none: undefined, '(N)': [n], '(M,1)': [m, 1], '(M,N)': [m, n] }[c];
  const [shapeOfA, shapeOfB] = [transA ? [k, m] : [m, k], transB ? [n, k] : [k, n]];
  if (op === 'matmul') {
    shapeOfA.unshift(batch);
    if (batch !== 2) shapeOfB.unshift(batch);
  }
  const result = op === 'matmul' ? [batch, m, n] : [m, n];
  const isC = out === 'C' && c === '(M,N)' && op !== 'qgemm';
  if (op === 'qgemm') {
    const windows: Problem['windows'] = {
      a: await next('uint8', shapeOfA),
      b: await next('int8', shapeOfB),
      aScale: await next('float32', [1]),
      bScale: await next('float32', [n]),
      bZeroPoint: await next('int8', [n]),
      ...(shapeOfC && { c: await next('int32', shapeOfC) }),
    };
    // Scales are above 0, but not the elements around them.
    for (const window of [windows.aScale, windows.bScale] as [Window, Window])
      await window.change((value, isWithin) => (isWithin ? Math.abs(value) + 0.01 : -1));
    const target = out === 'fresh' ? undefined : await next('float32', result, false);
    return {
      windows,
      out: target,
      op,
      args: (options) =>
        [tensorsOf(windows), { transA, transB, ...options }] as unknown as [never, never],
      reference: (dense) => referenceQGemm(dense as never, { transA, transB }),
    };
  }
  const [a, b] = [await next(dtype, shapeOfA), await next(dtype, shapeOfB)];
  const shape = isC ? result : shapeOfC;
  const addend = shape && (await next(dtype, shape, !isC));
  const target = isC ? addend : out === 'fresh' ? undefined : await next(dtype, result, false);
  const windows = { a, b, ...(addend && { c: addend }) };
  const flags = op === 'gemm' ? { transA, transB } : { transposeA: transA, transposeB: transB };
  return {
    windows,
    out: target,
    op: op as 'gemm',
    args: (options) =>
      [a.tensor, b.tensor, addend?.tensor, { ...flags, ...options }] as unknown as [never, never],
    reference: (dense) => {
      const operands = [dense.a as Matrix, dense.b as Matrix, dense.c] as const;
      if (op === 'gemm') return referenceGemm(...operands, flags);
      return referenceMatMul(...operands, flags) as ExpectedStack;
    },
  };
}

const tensorsOf = (windows: Problem['windows']) =>
  Object.fromEntries(Object.entries(windows).map(([name, { tensor }]) => [name, tensor]));

/** Copies of the whole arrays of windows, and of the elements of these. */
async function copies(windows: Record<string, Window>) {
  const [all, dense]: [Record<string, DataArray>, Record<string, Matrix>] = [{}, {}];
  for (const [name, window] of Object.entries(windows)) {
    const array = (all[name] = (await window.read()).slice());
    dense[name] = gather(array, window);
  }
  return { all, dense };
}

/** Makes a call, and compares what it returns and all that is around the tensors. */
async function expectRight(
  where: Gemm | WorkerGemm,
  { windows, out, op, args, reference }: Problem,
  transfer?: boolean,
): Promise<void> {
  const everything = { ...windows, ...(out && { out }) };
  const { all, dense } = await copies(everything);
  const wanted = reference(dense);
  const options = { ...(out && { out: out.tensor }), ...(transfer !== undefined && { transfer }) };
  const y = (await (where as unknown as Calls)[op](...args(options))) as TensorInput;

  for (const [name, window] of Object.entries(windows)) {
    if (window === out) continue;
    const found = await window.read();
    if (transfer && found.length === 0) continue; // it moved
    expect(sameBytes(found, all[name] as DataArray), `${name} is as it was`).toBe(true);
  }
  if (!out) {
    expect(y.shape).toEqual(wanted.shape);
    const places = Int32Array.from({ length: count(y.shape) }, (_, i) => i);
    const fresh = { tensor: y, dtype: y.dtype, places } as unknown as Window;
    return expectFilled(y.data, y.data, fresh, wanted);
  }
  const isHandle = !ArrayBuffer.isView(out.tensor.data);
  if (!transfer || isHandle) {
    expect(y).toBe(out.tensor);
    return expectFilled(await out.read(), all.out as DataArray, out, wanted);
  }
  // A copy of out over the buffer that came back, or over an array of the elements alone.
  const { data, offset, ...rest } = y;
  const { data: given, offset: first = 0, ...others } = out.tensor;
  expect(rest).toEqual(others);
  expect(data.constructor).toBe(given.constructor);
  const before = all.out as DataArray;
  const moved = given.length === 0 && before.length > 0;
  if (moved) expect([offset, data.length]).toEqual([first, before.length]);
  const shift = first - (offset ?? NaN);
  const window = { ...out, places: out.places.map((place) => place - shift) };
  expectFilled(data, before.slice(shift, shift + data.length), window, wanted);
}

const dispose = ({ windows, out }: Problem) => {
  for (const window of Object.values(windows)) window.dispose();
  out?.dispose();
};

describe('every call is right with windows', () => {
  it('of arrays, of the heap, and of handles', async () => {
    await fc.assert(
      fc.asyncProperty(problem, async (spec) => {
        const made = await make(wg, spec);
        await expectRight(wg, made);
        dispose(made);
        expect(wg.memory().inUse).toBe(0);
      }),
      { seed, numRuns: 2000 },
    );
  });

  it('that are packed, from every place', async () => {
    await fc.assert(
      fc.asyncProperty(problem, async (spec) => {
        const op = spec.op as 'gemm';
        const made = await make(wg, { ...spec, transB: false });
        const b = made.windows.b as Window;
        using weights = wg.pack(b.tensor, { op });
        using wanted = wg.pack(gather(await b.read(), b), { op });
        expect(sameBytes(weights.serialize(), wanted.serialize())).toBe(true);
        dispose(made);
      }),
      { seed, numRuns: 500 },
    );
  });

  it('out-of-core', async () => {
    let outOfCore = 0;
    const many = fc.integer({ min: 60, max: 90 });
    await fc.assert(
      fc.asyncProperty(problem, fc.tuple(many, many, many), async (spec, sizes) => {
        // Handles would take the memory.
        const specs = spec.specs.map((each) =>
          each.where === 'a handle' || each.where === 'the heap'
            ? { ...each, where: 'plain' as const }
            : each,
        );
        const made = await make(small, { ...spec, sizes, batch: 1, specs });
        await expectRight(small, made);
        const args = made.args(made.out ? { out: made.out.tensor } : {});
        if (small.explain(made.op as 'gemm', ...args).outOfCore) ++outOfCore;
        expect(small.memory().inUse).toBe(0);
      }),
      { seed, numRuns: 60 },
    );
    expect(outOfCore, 'calls that were out-of-core').toBeGreaterThan(30);
  });

  it.each([false, true])('in a worker, with transfer %s', async (transfer) => {
    await fc.assert(
      fc.asyncProperty(problem, async (spec) => {
        // A test cannot get a view of the heap there.
        const specs = spec.specs.map((each) =>
          each.where === 'the heap' ? { ...each, where: 'a handle' as const } : each,
        );
        const made = await make(inWorker, { ...spec, specs });
        await expectRight(inWorker, made, transfer);
        dispose(made);
      }),
      { seed, numRuns: 400 },
    );
    expect((await inWorker.memory()).inUse).toBe(0);
  });

  it('quantize, dequantize and quantizeBias', async () => {
    const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(
        shape,
        spec,
        spec,
        fc.boolean(),
        fc.integer(),
        async (shape, ofX, ofOut, symmetric, numbers) => {
          const random = new Random(numbers);
          const x = await windowIn(wg, random, 'float32', shape, ofX, true);
          const dtype = symmetric ? 'int8' : 'uint8';
          // It must be contiguous.
          const out = await windowIn(
            wg,
            random,
            dtype,
            shape,
            { ...ofOut, hasStrides: false },
            false,
          );
          const dense = gather(x.read() as DataArray, x) as { data: Float32Array; shape: number[] };
          const wanted = quantize(dense, { symmetric });
          expect(quantize(x.tensor as never, { symmetric })).toEqual(wanted);
          const [before, ofInput] = [
            (out.read() as DataArray).slice(),
            (x.read() as DataArray).slice(),
          ];
          const q = quantize(x.tensor as never, { symmetric, out: out.tensor as never });
          expect({ ...q, data: q.data.slice() }).toEqual(wanted);
          const values = { dtype, values: Array.from(wanted.data), bounds: [] as number[] };
          values.bounds = values.values.map(() => 0);
          expectFilled(out.read() as DataArray, before, out, values as Expected);
          expect(sameBytes(x.read() as DataArray, ofInput)).toBe(true);
          const { scale, zeroPoint } = wanted;
          const back = dequantize({ ...out.tensor, scale, zeroPoint } as never);
          expect(back).toEqual(dequantize(wanted));
          if (shape.length < 3) {
            const scales = { aScale: 0.5, bScale: 0.25 };
            expect(quantizeBias(x.tensor as never, scales)).toEqual(quantizeBias(dense, scales));
          }
          x.dispose();
          out.dispose();
          expect(wg.memory().inUse).toBe(0);
        },
      ),
      { seed, numRuns: 1000 },
    );
  });
});

describe('one head of a fused QKV', () => {
  const [tokens, heads, width] = [7, 3, 4];
  const row = 3 * heads * width;
  const random = new Random(7);
  const { data: all } = random.tensor('float32', [tokens, row]) as { data: Float32Array };
  /** `which`: 0 for Q, 1 for K, 2 for V. */
  const view = <D>(data: D, which: number, head: number) => ({
    data,
    shape: [tokens, width],
    strides: [row, 1],
    offset: (which * heads + head) * width,
  });
  const context = <D>(data: D, head: number) => ({
    data,
    shape: [tokens, width],
    strides: [heads * width, 1],
    offset: head * width,
  });
  const at = (which: number, head: number, token: number, i: number) =>
    all[token * row + (which * heads + head) * width + i] as number;
  /** Q times the transpose of K, times V. */
  function expectAttention(found: ArrayLike<number>): void {
    for (let head = 0; head < heads; ++head)
      for (let t = 0; t < tokens; ++t)
        for (let i = 0; i < width; ++i) {
          let sum = 0;
          for (let s = 0; s < tokens; ++s) {
            let score = 0;
            for (let j = 0; j < width; ++j) score += at(0, head, t, j) * at(1, head, s, j);
            sum += score * at(2, head, s, i);
          }
          expect(found[t * heads * width + head * width + i]).toBeCloseTo(sum, 4);
        }
  }

  it('is read and written where it is in an array', () => {
    const out = new Float32Array(tokens * heads * width);
    for (let head = 0; head < heads; ++head) {
      const scores = wg.gemm(view(all, 0, head), view(all, 1, head), null, { transB: true });
      wg.matmul(scores, view(all, 2, head), null, { out: context(out, head) });
    }
    expectAttention(out);
  });

  it('is read and written where it is in the heap, without a copy', () => {
    using qkv = wg.alloc('float32', [tokens, row]);
    using out = wg.alloc('float32', [tokens, heads * width]);
    using scores = wg.alloc('float32', [tokens, tokens]);
    qkv.data.set(all);
    for (let head = 0; head < heads; ++head) {
      const options = { transB: true, out: scores };
      const [q, k] = [view(qkv, 0, head), view(qkv, 1, head)];
      expect(wg.explain('gemm', q, k, null, options).copies).toBe(0);
      wg.gemm(q, k, null, options);
      const target = context(out, head);
      expect(wg.matmul(scores, view(qkv, 2, head), null, { out: target })).toBe(target);
    }
    expectAttention(out.data);
    expect(sameBytes(qkv.data, all)).toBe(true);
  });

  it('is read and written in a worker, in an array and by handles', async () => {
    const [qkv, out] = [
      await inWorker.alloc('float32', [tokens, row]),
      await inWorker.alloc('float32', [tokens, heads * width]),
    ];
    await qkv.write(all);
    const array = new Float32Array(tokens * heads * width);
    for (let head = 0; head < heads; ++head) {
      const options = { transB: true };
      const scores = await inWorker.gemm(view(qkv, 0, head), view(all, 1, head), null, options);
      const target = context(out, head);
      expect(await inWorker.matmul(scores, view(qkv, 2, head), null, { out: target })).toBe(target);
      await inWorker.matmul(scores, view(all, 2, head), null, { out: context(array, head) });
    }
    expectAttention(await out.read());
    expectAttention(array);
    qkv.dispose();
    out.dispose();
  });

  it('as out does not overlap the others in the same array, but does overlap itself', () => {
    using qkv = wg.alloc('float32', [tokens, row]);
    const weights = float32([width, width], ...Array<number>(width * width).fill(1));
    for (const data of [all.slice(), qkv]) {
      const run = (to: number) => () =>
        wg.gemm(view(data as Float32Array, 0, 1), weights, null, {
          out: view(data as Float32Array, 0, to),
        });
      expect(run(0)).not.toThrow();
      expectError(thrown(run(1)), { code: 'ARGUMENT', argument: 'out', says: ['out overlaps A'] });
    }
  });
});

describe('a small window of a large array', () => {
  const large = new Float32Array(25_000_000);
  const shape = [10, 10];
  const window = { data: large, shape, strides: [20, 1], offset: 24_999_000 };
  const identity = float32(shape, ...Array.from({ length: 100 }, (_, i) => Number(i % 11 === 0)));

  it('is all that a call copies', async () => {
    using fresh = await createGemm();
    for (let i = 0; i < 10; ++i)
      for (let j = 0; j < 10; ++j) large[24_999_000 + i * 20 + j] = i - j;
    fresh.gemm(identity, identity);
    const { committed } = fresh.memory();
    const { data } = fresh.gemm(window, identity);
    expect(Array.from(data)).toEqual(
      Array.from({ length: 100 }, (_, i) => Math.floor(i / 10) - (i % 10)),
    );
    const out = { ...window, offset: 1_000_000 };
    fresh.gemm(window, identity, null, { out });
    expect(large[1_000_000 + 20]).toBe(1);
    fresh.pack(window, { op: 'gemm' }).dispose();
    expect(fresh.memory().committed).toBe(committed);
    // 190 elements of A, 100 of B, and 100 of Y; or 190 of Y, in and out.
    expect(fresh.explain('gemm', window, identity).copies).toBe(4 * (190 + 100 + 100));
    expect(fresh.explain('gemm', window, identity, null, { out }).copies).toBe(
      4 * (190 + 100 + 2 * 190),
    );
  });

  it('is all that a worker gets', async () => {
    const { committed } = await inWorker.memory();
    const time = async (run: () => unknown) => {
      const start = performance.now();
      for (let i = 0; i < 10; ++i) await run();
      return performance.now() - start;
    };
    const calls = await time(() => inWorker.gemm(window, identity));
    expect(calls).toBeLessThan(await time(() => large.slice()));
    expect((await inWorker.memory()).committed).toBe(committed);
    const out = { ...window, offset: 5, data: new Float32Array(300).fill(9) };
    expect(await inWorker.gemm(identity, identity, null, { out })).toBe(out);
    expect([out.data[4], out.data[5], out.data[14], out.data[15]]).toEqual([9, 1, 0, 9]);
  });
});

describe('a view of a handle', () => {
  const ones = float32([2, 2], 1, 0, 0, 1);

  it('stays valid when the memory grows, and reads no array', async () => {
    using fresh = await createGemm();
    const tensor = fresh.alloc('float32', [10]);
    tensor.data.set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const view = { data: tensor, shape: [2, 2], strides: [3, 1], offset: 4 };
    const out = { data: fresh.alloc('float32', [10]), shape: [2, 2], offset: 3 };
    expect(fresh.gemm(view, ones, null, { out })).toBe(out);
    const { committed } = fresh.memory();
    fresh.alloc('float32', [30_000_000]);
    expect(fresh.memory().committed).toBeGreaterThan(committed);
    out.data.data.fill(9);
    expect(fresh.gemm(view, ones, null, { out })).toBe(out);
    expect(Array.from(out.data.data)).toEqual([9, 9, 9, 4, 5, 7, 8, 9, 9, 9]);
    expect(Array.from(fresh.gemm(view, ones).data)).toEqual([4, 5, 7, 8]);
  });

  it('may be a view of another shape', async () => {
    using tensor = wg.alloc('float32', [6]);
    tensor.data.set([1, 2, 3, 4, 5, 6]);
    const two = float32([2, 1], 1, 1);
    expect(Array.from(wg.gemm({ data: tensor, shape: [3, 2] }, two).data)).toEqual([3, 7, 11]);
    expect(
      Array.from(wg.gemm({ data: tensor, shape: [3, 2], dtype: 'float32' }, two).data),
    ).toEqual([3, 7, 11]);
    const there = await inWorker.alloc('float32', [6]);
    await there.write(tensor.data);
    expect((await inWorker.gemm({ data: there, shape: [3, 2] }, two)).data).toEqual(
      Float32Array.of(3, 7, 11),
    );
    there.dispose();
  });
});

describe('refuses', () => {
  const good = () => float32([3, 2], 1, 2, 3, 4, 5, 6);
  it.each([
    [2, [3, 1], 'strides [3, 1] and offset 2 need 8'],
    [1, undefined, 'offset 1 need 7'],
    [2 ** 53 - 1, undefined, 'offset 9007199254740991 need more than 2^53'],
    [0, [4, 1], 'strides [4, 1] need 7'],
  ])('an offset of %i and strides %j in quantize', (offset, strides, says) => {
    const x = { ...float32([2, 3], 1, 2, 3, 4, 5, 6), offset, ...(strides && { strides }) };
    const error = thrown(() => quantize(x));
    expectError(error, { code: 'SHAPE', op: 'quantize', argument: 'x', says: [says] });
  });

  it('an out that is too short, and writes nothing', () => {
    const out = { data: new Float32Array(9).fill(7), shape: [3, 3], strides: [3, 1], offset: 1 };
    const run = () => wg.gemm(good(), float32([2, 3], 1, 2, 3, 4, 5, 6), null, { out });
    const says = ['out has 9 elements; its shape [3, 3], strides [3, 1] and offset 1 need 10'];
    expectError(thrown(run), { code: 'SHAPE', argument: 'out', says });
    expect(out.data.every((value) => value === 7)).toBe(true);
    const [x, y] = [float32([9], ...out.data), { ...out, data: new Int8Array(9), shape: [9] }];
    const q = thrown(() => quantize(x, { dtype: 'int8', out: { ...y, strides: [1] } }));
    expectError(q, {
      code: 'SHAPE',
      op: 'quantize',
      argument: 'out',
      says: ['out has 9 elements; its shape [9], strides [1] and offset 1 need 10'],
    });
  });

  it('what overlaps only by windows', () => {
    const data = new Float32Array(40);
    const part = (offset: number) => ({ data, shape: [2, 2], offset });
    const run = (x: number, y: number) => () => wg.gemm(part(x), part(20), null, { out: part(y) });
    for (const [x, y] of [[0, 4], [4, 0], [0, 36], [24, 16]] as const) expect(run(x, y)).not.toThrow(); // prettier-ignore
    for (const [x, y] of [
      [0, 3],
      [3, 0],
      [8, 8],
    ] as const)
      expectError(thrown(run(x, y)), {
        code: 'ARGUMENT',
        argument: 'out',
        says: ['out overlaps A'],
      });
    const bytes = new Uint8Array(data.buffer);
    const out = (offset: number) => ({ data: bytes, shape: [4], offset });
    const x = { data, shape: [4], offset: 4 };
    expect(quantize(x, { out: out(12) }).data.byteOffset).toBe(12);
    expectError(
      thrown(() => quantize(x, { out: out(13) })),
      { code: 'ARGUMENT', op: 'quantize', argument: 'out', says: ['overlaps x'] },
    );
  });
});

describe('with transfer, out comes back', () => {
  const [x, identity] = [() => float32([2, 2], 1, 2, 3, 4), () => float32([2, 2], 1, 0, 0, 1)];
  const run = async (out: object): Promise<TensorInput> =>
    await inWorker.gemm(x(), identity(), null, {
      out: out as TensorInput<Float32Array>,
      transfer: true,
    });

  it('as its whole array over the same buffer', async () => {
    const whole = new Float32Array(20).fill(9);
    const out = { data: whole.subarray(2, 18), shape: [2, 2], strides: [5, 2], offset: 3, tag: 1 };
    const y = await run(out);
    expect([whole.length, out.data.length]).toEqual([0, 0]);
    expect(y).toEqual({
      data: Float32Array.of(9, 9, 9, 1, 9, 2, 9, 9, 3, 9, 4, 9, 9, 9, 9, 9),
      shape: [2, 2],
      strides: [5, 2],
      offset: 3,
      tag: 1,
    });
    expect([y.data.byteOffset, y.data.buffer.byteLength]).toEqual([8, 80]);
    const again = await inWorker
      .gemm(y, identity(), y, { out: y, transfer: true } as never)
      .catch((error: unknown) => error);
    expectError(again, { code: 'ARGUMENT', argument: 'out', says: ['overlaps A'] });
    expect(await run(y)).toEqual({
      ...out,
      data: Float32Array.of(9, 9, 9, 1, 9, 2, 9, 9, 3, 9, 4, 9, 9, 9, 9, 9),
    });
  });

  it('whole, if it has strides and no offset', async () => {
    const out = { data: new Float32Array(8).fill(9), shape: [2, 2], strides: [3, 1] };
    expect(await run(out)).toEqual({ ...out, data: Float32Array.of(1, 2, 9, 3, 4, 9, 9, 9) });
  });

  it.each(['shared', 'of a WebAssembly.Memory'] as const)(
    'as an array of its elements from a buffer that cannot move: %s',
    async (where) => {
      const data = new Float32Array(buffers[where](80) as ArrayBuffer, 8, 16).fill(9);
      const out = { data, shape: [2, 2], strides: [5, 2], offset: 3 };
      const y = await run(out);
      expect(y).toEqual({
        data: Float32Array.of(1, 9, 2, 9, 9, 3, 9, 4),
        shape: [2, 2],
        strides: [5, 2],
        offset: 0,
      });
      expect(data.every((value) => value === 9)).toBe(true);
      const same = { ...y, data: y.data.slice() };
      expect(await run(y)).toEqual(same);
    },
  );

  it('that is empty', async () => {
    const out = { data: new Float32Array(5).fill(9), shape: [0, 2], offset: 3 };
    const none = { data: new Float32Array(0), shape: [0, 2] };
    const y = await inWorker.gemm(none, identity(), null, { out, transfer: true } as never);
    expect(y).toMatchObject({ shape: [0, 2] });
  });
});

describe('code of the caller that runs while arguments are read', () => {
  type Resizable = ArrayBuffer & { resize(bytes: number): void };
  const identity = float32([2, 2], 1, 0, 0, 1);
  /** A call whose A is read before `change` runs. */
  const run = (a: object, change: () => void, instance = wg) =>
    instance.gemm(a as TensorInput<Float32Array>, identity, null, {
      get alpha() {
        change();
        return 1;
      },
    });
  const runInWorker = (a: object, change: () => void) =>
    inWorker.gemm(a as TensorInput<Float32Array>, identity, null, {
      get alpha() {
        change();
        return 1;
      },
    });
  const resizable = (elements: number) => buffers.resizable(4 * elements) as Resizable;

  it('may shrink a buffer down to the window, not below', async () => {
    for (const elements of [10, 9, 8, 7, 5, 2, 0]) {
      // Of fixed length, it is out of bounds from 9 on, and then it has no elements.
      for (const isTracking of [true, false]) {
        const make = () => {
          const buffer = resizable(10);
          const data = isTracking ? new Float32Array(buffer) : new Float32Array(buffer, 0, 10);
          data.set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
          const a = { data, shape: [2, 2], strides: [2, 1], offset: 4 };
          return [a, () => buffer.resize(4 * elements)] as const;
        };
        const length = isTracking ? elements : elements === 10 ? 10 : 0;
        if (length >= 8) {
          expect(Array.from(run(...make()).data)).toEqual([4, 5, 6, 7]);
          expect(Array.from((await runInWorker(...make())).data)).toEqual([4, 5, 6, 7]);
          continue;
        }
        const error = thrown(() => run(...make()));
        expectError(error, {
          code: 'SHAPE',
          argument: 'A',
          says: [`${length} elements`, 'offset 4 need 8'],
        });
        expectSameError(await rejected(runInWorker(...make())), error);
      }
    }
  });

  it('may grow a shared buffer', () => {
    const buffer = buffers.growable(40) as unknown as { grow(bytes: number): void };
    const data = new Float32Array(buffer as never);
    data.set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const a = { data, shape: [2, 2], offset: 6 };
    expect(Array.from(run(a, () => buffer.grow(60)).data)).toEqual([6, 7, 8, 9]);
  });

  it('may not detach an array', async () => {
    const make = () => {
      const data = new Float32Array(10);
      const detach = () => void structuredClone(data.buffer, { transfer: [data.buffer] });
      return [{ data, shape: [2, 2], offset: 6 }, detach] as const;
    };
    const error = thrown(() => run(...make()));
    expectError(error, { code: 'ARGUMENT', argument: 'A', says: ['detached'] });
    expectSameError(await rejected(runInWorker(...make())), error);
  });

  it('may dispose of a handle, but the call is refused', async () => {
    const held = wg.alloc('float32', [10]);
    const error = thrown(() => run({ data: held, shape: [2, 2], offset: 6 }, () => held.dispose()));
    expectError(error, { code: 'DISPOSED', argument: 'A', says: ['disposed tensor'] });
    const there = await inWorker.alloc('float32', [10]);
    const view = { data: there, shape: [2, 2], offset: 6 };
    expectSameError(await rejected(runInWorker(view, () => there.dispose())), error);
    const fresh = await createGemm();
    const lost = fresh.alloc('float32', [10]);
    const ended = thrown(() =>
      run({ data: lost, shape: [2, 2], offset: 6 }, () => fresh.dispose(), fresh),
    );
    expectError(ended, { code: 'DISPOSED', argument: 'instance', says: ['disposed'] });
  });

  it('may grow the memory under a view of a handle', async () => {
    using fresh = await createGemm();
    const held = fresh.alloc('float32', [10]);
    held.data.set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const grow = () => void fresh.alloc('float32', [30_000_000]);
    const view = { data: held, shape: [2, 2], offset: 6 };
    expect(Array.from(run(view, grow, fresh).data)).toEqual([6, 7, 8, 9]);
    const target = fresh.alloc('uint8', [9]);
    const out = {
      data: target,
      get shape() {
        grow();
        return [4];
      },
      offset: 3,
    };
    const q = quantize({ data: held, shape: [4], offset: 6 }, { scale: 1, out });
    grow();
    expect(Array.from(q.data)).toEqual([6, 7, 8, 9]);
    expect(Array.from(target.data)).toEqual([0, 0, 0, 6, 7, 8, 9, 0, 0]);
  });

  it('sees each property read once', () => {
    const reads: string[] = [];
    const a = new Proxy<Record<string, unknown>>(
      { data: new Float32Array(9), shape: [2, 2], strides: [2, 1], offset: 5 },
      {
        get(target, key) {
          if (typeof key === 'string') reads.push(key);
          return target[key as string];
        },
      },
    );
    wg.gemm(a as never, identity);
    for (const key of ['data', 'shape', 'strides', 'offset', 'dtype'])
      expect(reads.filter((read) => read === key).length, key).toBe(1);
  });

  it('may pollute Object.prototype', async () => {
    const data = Float32Array.of(9, 1, 2, 3, 4);
    const a = { data, shape: [2, 2], offset: 1 };
    const target = { data: new Float32Array(4), shape: [2, 2] };
    Object.defineProperty(Object.prototype, 'offset', { value: 3, configurable: true });
    try {
      expect(Array.from(wg.gemm(a, identity).data)).toEqual([1, 2, 3, 4]);
      const out = (await inWorker.gemm(a, identity, null, {
        out: target,
        transfer: true,
      } as never)) as object;
      expect(Object.keys(out)).toEqual(['data', 'shape']);
    } finally {
      delete (Object.prototype as { offset?: number }).offset;
    }
  });
});
