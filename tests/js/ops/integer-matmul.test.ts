/**
 * The integer products: random calls against plain loops, from arrays, heap tensors and packed
 * weights, into new arrays and `out`, block by block in little memory; and their errors.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DType, type Gemm, type HeapTensor } from 'wgemm';
import { thrown } from '../support/errors.js';
import {
  argumentsOf,
  type Call,
  describeCall,
  draw,
  operations,
  reference,
} from '../support/integer-products.js';
import type { Matrix } from '../support/reference.js';
import { Random } from '../support/random.js';

let wg: Gemm;
let strict: Gemm;
let small: Gemm;
beforeAll(async () => {
  [wg, strict, small] = await Promise.all([
    createGemm(),
    createGemm({ determinism: 'strict' }),
    createGemm({ maxMemory: 3_000_000 }),
  ]);
});
afterAll(() => {
  for (const each of [wg, strict, small]) each.dispose();
});

type Result = { data: ArrayLike<unknown>; shape: readonly number[]; dtype: DType };
const call = (on: Gemm, { op }: Pick<Call, 'op'>, args: unknown[]) =>
  (on as unknown as Record<string, (...args: unknown[]) => Result>)[op]?.(...args) as Result;

function expectResult(found: Result, wanted: Matrix, what: string): void {
  expect(found.dtype, what).toBe(wanted.dtype);
  expect([...found.shape], what).toEqual([...wanted.shape]);
  expect(found.data.length, what).toBe(wanted.data.length);
  for (let i = 0; i < wanted.data.length; ++i)
    if (!Object.is(Number(found.data[i]), Number(wanted.data[i])) && Number(wanted.data[i]) !== 0)
      expect(found.data[i], `${what}, element ${i}`).toBe(wanted.data[i]);
}

function inHeap(on: Gemm, { data, shape, dtype }: Matrix): HeapTensor {
  const tensor = on.alloc(dtype as DType, shape) as HeapTensor;
  (tensor.data as Uint8Array).set(data as Uint8Array);
  return tensor;
}

describe.each(operations)('%s', (op) => {
  it('computes what its specification says, from every kind of operand', () => {
    const random = new Random(operations.indexOf(op) + 1);
    for (let i = 0; i < 150; ++i) {
      const drawn = draw(random, op);
      const [wanted, what] = [reference(drawn), describeCall(drawn)];
      expectResult(call(wg, drawn, argumentsOf(drawn)), wanted, what);
      expectResult(call(strict, drawn, argumentsOf(drawn)), wanted, `${what}, strict`);
      const made: HeapTensor[] = [];
      const place = (matrix: Matrix) => {
        made.push(inHeap(wg, matrix));
        return made.at(-1);
      };
      const out = place({ ...wanted, data: wanted.data.slice() }) as HeapTensor;
      expect(call(wg, drawn, argumentsOf(drawn, { out }, place))).toBe(out);
      expectResult(out, wanted, `${what}, heap`);
      // The second call is cached, and reads scales and zero points again.
      expectResult(
        call(wg, drawn, argumentsOf(drawn, { out })),
        wanted,
        `${what}, out in the heap`,
      );
      if (drawn.b.shape.length > 1) {
        const weights = wg.pack(drawn.b, { op: 'qgemm' });
        const args = argumentsOf(drawn, {}, undefined, weights);
        expectResult(call(wg, drawn, args), wanted, `${what}, packed`);
        weights.dispose();
      }
      for (const each of made) each.dispose();
    }
  });

  it('transposes matrices, and writes views with gaps', () => {
    const random = new Random(9);
    for (let i = 0; i < 40; ++i) {
      let drawn = draw(random, op);
      while (drawn.a.shape.length < 2 || drawn.b.shape.length < 2) drawn = draw(random, op);
      const wanted = reference(drawn);
      const swap = (matrix: Matrix): Matrix => {
        const [rows, columns] = matrix.shape.slice(-2) as [number, number];
        const data = matrix.data.slice() as Float32Array;
        for (let at = 0; at < data.length; ++at) {
          const [stack, rest] = [Math.floor(at / (rows * columns)), at % (rows * columns)];
          const place = stack * rows * columns + (rest % rows) * columns + Math.floor(rest / rows);
          data[at] = Number(matrix.data[place]);
        }
        return { ...matrix, data, shape: [...matrix.shape.slice(0, -2), columns, rows] };
      };
      const turned = { ...drawn, a: swap(drawn.a), b: swap(drawn.b) };
      const args = argumentsOf(turned, { transA: true, transB: 1 });
      expectResult(call(wg, drawn, args), wanted, describeCall(drawn));

      let next = 2;
      const strides = wanted.shape.map(() => 0);
      for (let axis = strides.length - 1; axis >= 0; --axis) {
        strides[axis] = next;
        next = next * (wanted.shape[axis] as number) + 1;
      }
      const data = wanted.data.slice(0, 0).constructor as new (length: number) => Float32Array;
      const out = {
        data: new data(next).fill(77),
        shape: wanted.shape,
        strides,
        dtype: wanted.dtype,
      };
      call(wg, drawn, argumentsOf(drawn, { out }));
      const found = Array.from({ length: wanted.data.length }, (_, index) => {
        let [rest, at] = [index, 0];
        for (let axis = strides.length - 1; axis >= 0; --axis) {
          at += (rest % (wanted.shape[axis] as number)) * (strides[axis] as number);
          rest = Math.floor(rest / (wanted.shape[axis] as number));
        }
        return out.data[at] as number;
      });
      expectResult(
        { data: found, shape: wanted.shape, dtype: wanted.dtype as DType },
        wanted,
        'view',
      );
      expect(out.data.filter((x) => x === 77).length).toBeGreaterThanOrEqual(
        next - found.length * 2,
      );
    }
  });

  it('computes block by block what does not fit the memory', () => {
    const random = new Random(3);
    const [m, n, k] = [700, 900, 1500];
    const a = random.tensor(op === 'dynamicQuantizeMatmul' ? 'float32' : 'uint8', [m, k]);
    const b = random.tensor('int8', [k, n]);
    const scale = { data: Float32Array.of(0.01), shape: [1], dtype: 'float32' } as Matrix;
    const rows = { data: random.tensor('uint8', [m]).data, shape: [m], dtype: 'uint8' } as Matrix;
    const vectors = {
      matmulInteger: { aZeroPoint: rows },
      qlinearMatmul: { aScale: scale, aZeroPoint: rows, bScale: scale, yScale: scale },
      dynamicQuantizeMatmul: { bScale: scale },
      matmulIntegerToFloat: { aScale: scale, bScale: scale },
    }[op];
    const drawn = { op, a, b, vectors } as Call;
    const args = argumentsOf(drawn);
    const plan = (small.explain as (...args: unknown[]) => { outOfCore: boolean })(op, ...args);
    expect(plan.outOfCore).toBe(true);
    const [found, wanted] = [call(small, drawn, args), call(wg, drawn, args)];
    expect(Array.from(found.data)).toEqual(Array.from(wanted.data));
    expect(small.memory().committed).toBeLessThanOrEqual(3_000_000);
  }, 60_000);

  it('leaks nothing, also after errors', () => {
    const random = new Random(5);
    const before = wg.memory().inUse;
    for (let i = 0; i < 30; ++i) {
      const drawn = draw(random, op);
      call(wg, drawn, argumentsOf(drawn));
      thrown(() => call(wg, drawn, argumentsOf({ ...drawn, b: { ...drawn.b, shape: [0, 0] } })));
    }
    expect(wg.memory().inUse).toBe(before);
  });

  it('explains its plan', () => {
    const drawn = draw(new Random(7), op);
    const plan = (wg.explain as (...args: unknown[]) => { op: string; kernel: string })(
      op,
      ...argumentsOf(drawn),
    );
    expect(plan.op).toBe(op);
    expect(plan.kernel).toMatch(/^i8_/);
  });
});

describe('errors', () => {
  const a = { data: Uint8Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] };
  const b = { data: Int8Array.of(1, 2, 3, 4, 5, 6), shape: [3, 2] };
  const f = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] };
  it('writes nothing to out', () => {
    const out = { data: new Float32Array(4).fill(5), shape: [2, 2] };
    const bad = { ...f, data: Float32Array.of(1, 2, 3, 4, 5, Infinity) };
    thrown(() => wg.dynamicQuantizeMatmul(bad, b, { bScale: 1, out }));
    expect(out.data).toEqual(new Float32Array(4).fill(5));
  });

  it('takes packed weights with batch axes', () => {
    const stack = { ...b, shape: [1, 3, 2] };
    using weights = wg.pack(stack, { op: 'qgemm' });
    expect(wg.matmulInteger(a, weights).shape).toEqual([1, 2, 2]);
  });
});

describe('float16', () => {
  it('is computed in float32 and rounded once', () => {
    const half = (bits: number[]) => ({
      data: Uint16Array.from(bits),
      shape: [bits.length],
      dtype: 'float16' as const,
    });
    const y = wg.matmulIntegerToFloat(
      { data: Uint8Array.of(1, 2, 3, 4), shape: [2, 2] },
      { data: Int8Array.of(1, 0, 0, -1), shape: [2, 2] },
      { aScale: half([0x3800]), bScale: 0.5, bias: half([0x3c00, 0]) },
    );
    expect(y.dtype).toBe('float16');
    const bits = new Uint16Array(y.data.buffer as ArrayBuffer, y.data.byteOffset, 4);
    expect([...bits]).toEqual([0x3d00, 0xb800, 0x3f00, 0xbc00]);
  });
});
