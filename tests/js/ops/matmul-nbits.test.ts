/**
 * matmulNBits: random calls against plain loops, from arrays, heap tensors, views and packed
 * weights, into new arrays and `out`, block by block in little memory.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DType, type Gemm, type HeapTensor, quantizeNBits } from 'wgemm';
import { arrayClasses } from '../support/dtypes.js';
import { thrown } from '../support/errors.js';
import {
  allBits,
  argumentsOf,
  blockSizes,
  type Call,
  describeCall,
  draw,
  expectNear,
  floatTypes,
  placed,
  reference,
  zeroKinds,
} from '../support/nbits.js';
import type { Matrix } from '../support/reference.js';
import { drop, Random, sameBytes } from '../support/tensors.js';

const maxMemory = 3_000_000;
let wg: Gemm;
let strict: Gemm;
let small: Gemm;
beforeAll(async () => {
  [wg, strict, small] = await Promise.all([
    createGemm(),
    createGemm({ determinism: 'strict' }),
    createGemm({ maxMemory }),
  ]);
});
afterAll(() => {
  for (const each of [wg, strict, small]) each.dispose();
});

type Loose = (...args: unknown[]) => never;
type Result = Matrix & { dtype: DType };
const run = (on: Gemm, args: unknown[]): Result => (on.matmulNBits as Loose)(...args);
const explain = (on: Gemm, args: unknown[]): { outOfCore: boolean; op: string; n: number } =>
  (on.explain as Loose)('matmulNBits', ...args);
const pack = (on: Gemm, { weights }: Call) =>
  on.pack(placed(weights) as never, { op: 'matmulNBits' });

function inHeap(on: Gemm, { data, shape, dtype }: Matrix): HeapTensor {
  const tensor = on.alloc(dtype as DType, shape) as HeapTensor;
  (tensor.data as Uint8Array).set(data as Uint8Array);
  return tensor;
}

/** From every kind of operand. */
function expectRight(call: Call): void {
  const [wanted, what] = [reference(call), describeCall(call)];
  const y = run(wg, argumentsOf(call));
  expectNear(y, wanted, what);
  expect(y.data.constructor).toBe(arrayClasses[y.dtype]);
  expectNear(run(strict, argumentsOf(call)), wanted, `${what}, strict`);

  const made: HeapTensor[] = [];
  const place = (matrix: Matrix) => {
    made.push(inHeap(wg, matrix));
    return made.at(-1);
  };
  const out = place(y) as HeapTensor;
  out.data.fill(7 as never);
  const args = argumentsOf(call, { out }, place);
  expect(run(wg, args)).toBe(out);
  expectNear(out, wanted, `${what}, heap`);
  const view = (matrix: Matrix) => {
    const data = inHeap(wg, { ...matrix, shape: [matrix.data.length] });
    made.push(data);
    return { data, shape: matrix.shape };
  };
  expectNear(run(wg, argumentsOf(call, {}, view)), wanted, `${what}, views`);

  const weights = pack(wg, call);
  expect([weights.op, weights.dtype, ...weights.shape]).toEqual([
    'matmulNBits',
    call.a.dtype,
    call.weights.k,
    call.weights.n,
  ]);
  expectNear(run(wg, argumentsOf(call, {}, undefined, weights)), wanted, `${what}, packed`);
  const [a, , options] = args;
  for (let again = 0; again < 2; ++again) {
    out.data.fill(7 as never);
    expect(run(wg, [a, weights, options])).toBe(out);
    expectNear(out, wanted, `${what}, packed and heap`);
  }
  const theirs = strict.deserialize(weights.serialize());
  expect([theirs.op, theirs.dtype, ...theirs.shape]).toEqual([
    weights.op,
    weights.dtype,
    ...weights.shape,
  ]);
  expectNear(
    run(strict, argumentsOf(call, {}, undefined, theirs)),
    wanted,
    `${what}, deserialized`,
  );
  drop(...made, weights, theirs);
}

describe.each(floatTypes)('%s', (dtype) => {
  it.each(allBits)('%i bits: computes what its specification says', (bits) => {
    const random = new Random(bits * 10 + floatTypes.indexOf(dtype));
    for (let i = 0; i < 40; ++i) expectRight(draw(random, { dtype, bits }));
  });
});

it('every block size, kind of zero points and level', () => {
  const random = new Random(1);
  for (const blockSize of blockSizes) {
    for (const zeros of zeroKinds) {
      for (const level of [0, 1, 2, 3, 4]) {
        const k = random.pick([blockSize, 2 * blockSize, 3 * blockSize - 5]);
        expectRight(draw(random, { blockSize, zeros, level, k, n: random.between(1, 12) }));
      }
    }
  }
});

it('empty matrices', () => {
  const random = new Random(2);
  for (const sizes of [
    { rows: [0] },
    { rows: [2, 0, 3] },
    { n: 0 },
    { k: 0, hasBias: true },
    { k: 0, hasBias: false, rows: [2], n: 3 },
  ])
    expectRight(draw(random, sizes));
});

it('many rows and columns', () => {
  const random = new Random(3);
  for (const level of [0, 4]) {
    for (const rows of [[1], [17], [70]])
      expectRight(draw(random, { rows, n: 90, k: 520, level, blockSize: 32 }));
  }
});

it('level 4 has the same bits in the heap, strict, and on packed weights', () => {
  const random = new Random(4);
  for (let i = 0; i < 20; ++i) {
    const call = draw(random, { level: 4, zeros: random.pick(['absent', 'codes'] as const) });
    const wanted = run(wg, argumentsOf(call));
    const weights = pack(strict, call);
    for (const y of [
      run(strict, argumentsOf(call)),
      run(strict, argumentsOf(call, {}, undefined, weights)),
    ])
      expect(sameBytes(y.data, wanted.data), describeCall(call)).toBe(true);
    weights.dispose();
  }
});

it('a and out are views with gaps', () => {
  const random = new Random(5);
  const gaps = (shape: readonly number[]) => {
    let next = 2;
    const strides = shape.map(() => 0);
    for (let axis = shape.length - 1; axis >= 0; --axis) {
      strides[axis] = next;
      next = next * (shape[axis] as number) + 1;
    }
    const places = shape.reduce(
      (all, size, axis) =>
        all.flatMap((at) => Array.from({ length: size }, (_, i) => at + i * (strides[axis] ?? 0))),
      [3],
    );
    return { strides, offset: 3, places, length: next + 5 };
  };
  for (let i = 0; i < 30; ++i) {
    const call = draw(random, { rows: random.pick([[], [4], [2, 3]]) });
    const { a } = call;
    const from = gaps(a.shape);
    const spread = new arrayClasses[a.dtype as DType](from.length) as Uint16Array;
    from.places.forEach((at, index) => (spread[at] = a.data[index] as number));
    const wanted = reference(call);
    const to = gaps(wanted.shape);
    const out = {
      data: new arrayClasses[wanted.dtype](to.length) as Uint16Array,
      shape: wanted.shape,
      strides: to.strides,
      offset: to.offset,
      dtype: wanted.dtype,
    };
    out.data.fill(77);
    const [, weights, options] = argumentsOf(call, { out });
    const { strides, offset } = from;
    const view = { data: spread, shape: a.shape, strides, offset, dtype: a.dtype };
    expect(run(wg, [view, weights, options])).toBe(out);
    expectNear(out, wanted, describeCall(call), to.places);
    for (const at of to.places) out.data[at] = 77;
    expect(out.data.every((x) => x === 77)).toBe(true);
  }
});

it('bias is an array of the type of a', () => {
  const random = new Random(6);
  for (const dtype of floatTypes) {
    const call = draw(random, { dtype, hasBias: true });
    const bare = [call.bias?.data as Uint16Array];
    if (dtype === 'float16')
      bare.push(
        new Uint16Array(
          (call.bias as Matrix).data.buffer,
          (call.bias as Matrix).data.byteOffset,
          call.weights.n,
        ),
      );
    for (const bias of bare)
      expectNear(run(wg, argumentsOf(call, { bias })), reference(call), describeCall(call));
    const without = { ...call, bias: undefined };
    for (const bias of [null, undefined])
      expectNear(run(wg, argumentsOf(without, { bias })), reference(without), describeCall(call));
  }
});

it('other zero points and scales in the same place are read by the next call', () => {
  const random = new Random(7);
  const bounds = { activation: [-Infinity, Infinity] } as const;
  const sizes = { dtype: 'float32', rows: [3], n: 20, k: 100, blockSize: 32, bits: 4 } as const;
  const given = {
    ...sizes,
    ...bounds,
    zeros: 'codes',
    isFlat: false,
    hasBias: true,
    level: 0,
  } as const;
  const tensors = new Map<string, HeapTensor>();
  const first = draw(random, given);
  const parts = (call: Call) => ({ ...call.weights, a: call.a, bias: call.bias });
  for (const name of ['data', 'scales', 'zeroPoints', 'a', 'bias'] as const)
    tensors.set(name, inHeap(wg, parts(first)[name] as Matrix));
  const [out, ofA] = [wg.alloc('float32', [3, 20]), tensors.get('a')];
  const held = Object.fromEntries(tensors);
  for (let i = 0; i < 10; ++i) {
    const call = draw(random, given);
    for (const [name, tensor] of tensors)
      (tensor.data as Uint8Array).set(parts(call)[name as 'a'].data as Uint8Array);
    const { data, scales, zeroPoints, bias } = held;
    run(wg, [ofA, { ...call.weights, data, scales, zeroPoints }, { bias, out }]);
    expectNear(out, reference(call), `call ${i}`);
  }
  drop(out, ...tensors.values());
});

describe('larger than the memory', () => {
  const sizes = { dtype: 'float32', zeros: 'codes', n: 300, k: 1500, blockSize: 64 } as const;
  const rest = { bits: 4, hasBias: true, isFlat: false } as const;

  it.each([0, 4])('a and the result, level %i', (level) => {
    const call = draw(new Random(8), { ...sizes, ...rest, rows: [2, 500], level });
    const args = argumentsOf(call);
    expect(explain(small, args).outOfCore).toBe(true);
    expect(explain(wg, args).outOfCore).toBe(false);
    const weights = pack(small, call);
    const packed = argumentsOf(call, {}, undefined, weights);
    expect(explain(small, packed).outOfCore).toBe(true);
    const { inUse } = small.memory();
    const wanted = run(wg, args);
    const bounds = level === 4 ? 0 : 1e-3;
    for (const each of [args, packed]) {
      const y = run(small, each);
      expect([...y.shape]).toEqual([2, 500, 300]);
      (y.data as Float32Array).forEach((value, i) => {
        if (Math.abs(value - Number(wanted.data[i])) > bounds)
          expect.fail(`Y[${i}] is ${value}; it must be ${String(wanted.data[i])}`);
      });
      expect(small.memory().inUse).toBe(inUse);
    }
    const out = { data: new Float32Array(300_000), shape: [2, 500, 300] };
    expect(run(small, argumentsOf(call, { out }))).toBe(out);
    expect(small.memory().committed).toBeLessThanOrEqual(maxMemory);
    weights.dispose();
  });

  it('weights that do not fit are refused, also by explain', () => {
    const call = draw(new Random(9), { ...sizes, ...rest, rows: [1], n: 6000, level: 0 });
    for (const each of [run, explain]) {
      const error = thrown(() => each(small, argumentsOf(call)));
      expect(error).toMatchObject({ code: 'OUT_OF_MEMORY', op: 'matmulNBits' });
    }
    expect(thrown(() => pack(small, call))).toMatchObject({ code: 'OUT_OF_MEMORY', op: 'pack' });
    const short = draw(new Random(9), { ...sizes, ...rest, rows: [1], n: 5, level: 0 });
    expectNear(run(small, argumentsOf(short)), reference(short), 'the next call');
  });
});

it('leaks nothing, also after errors', () => {
  const random = new Random(10);
  const before = wg.memory().inUse;
  for (let i = 0; i < 30; ++i) {
    const call = draw(random);
    run(wg, argumentsOf(call));
    pack(wg, call).dispose();
    const bad = { ...call, weights: { ...call.weights, n: call.weights.n + 1 } };
    thrown(() => run(wg, argumentsOf(bad)));
    thrown(() => pack(wg, bad));
  }
  expect(wg.memory().inUse).toBe(before);
});

it('explains its plan', () => {
  const call = draw(new Random(11), { rows: [1], n: 40, k: 256, dtype: 'float32' });
  const weights = pack(wg, call);
  for (const args of [argumentsOf(call), argumentsOf(call, {}, undefined, weights)])
    expect(explain(wg, args)).toMatchObject({ op: 'matmulNBits', m: 1, n: 40, k: 256, batch: 1 });
  weights.dispose();
});

it('packed weights say what they are', () => {
  using weights = wg.pack(quantizeNBits({ data: new Float32Array(64), shape: [32, 2] }), {
    op: 'matmulNBits',
  });
  expect((weights as { toString(): string }).toString()).toMatch(/for matmulNBits/);
});
