/**
 * Integer products from the heap whose elements change between calls; and larger than the memory,
 * with the same results as in a memory that holds everything.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DType, type Gemm, type HeapTensor } from 'wgemm';
import { expectError, thrown } from '../support/errors.js';
import { argumentsOf, type Call, type Operation, operations } from '../support/integer-products.js';
import type { Matrix } from '../support/reference.js';
import { isShort } from '../support/short.js';
import { drop, float32, Random, sameBytes } from '../support/tensors.js';

const maxMemory = 3_000_000;
let wg: Gemm;
let whole: Gemm;
let small: Gemm;
beforeAll(async () => {
  [wg, whole, small] = await Promise.all([
    createGemm(),
    createGemm({ determinism: 'strict' }),
    createGemm({ maxMemory }),
  ]);
});
afterAll(() => {
  for (const each of [wg, whole, small]) each.dispose();
});

type Loose = Record<string, (...args: unknown[]) => Matrix>;
const run = (on: Gemm, op: Operation, args: unknown[]) =>
  (on as unknown as Loose)[op]?.(...args) as Matrix;

interface Shapes {
  a: readonly number[];
  b: readonly number[];
  /** Shapes of what belongs to rows of A, to columns of B, and to rows of Y. */
  rows: readonly number[];
  columns: readonly number[];
  rowsOfY: readonly number[];
}

/** A call whose vectors have these shapes, or one value where the operation takes only that. */
function draw(random: Random, op: Operation, { a, b, rows, columns, rowsOfY }: Shapes): Call {
  const isDynamic = op === 'dynamicQuantizeMatmul';
  const ofRows = op === 'matmulIntegerToFloat' ? [] : rows;
  const scales = (shape: readonly number[], most: number): Matrix => {
    const scale = random.tensor('float32', shape);
    (scale.data as Float32Array).forEach((x, i) => (scale.data[i] = (1 + Math.abs(x)) * most));
    return scale;
  };
  const vectors = {
    ...(!isDynamic && { aZeroPoint: random.tensor('uint8', ofRows) }),
    bZeroPoint: random.tensor('int8', columns),
    ...(op !== 'matmulInteger' && { bScale: scales(columns, 0.01) }),
    ...((op === 'qlinearMatmul' || op === 'matmulIntegerToFloat') && {
      aScale: scales(ofRows, 0.01),
    }),
    ...(op === 'qlinearMatmul' && {
      yScale: scales(rowsOfY, 2),
      yZeroPoint: random.tensor('uint8', rowsOfY),
    }),
  };
  const hasBias = isDynamic || op === 'matmulIntegerToFloat';
  const dtype = isDynamic ? 'float32' : 'uint8';
  return {
    op,
    a: random.tensor(dtype, a),
    b: random.tensor('int8', b),
    vectors: vectors,
    bias: hasBias ? random.tensor('float32', [b.at(-1) as number]) : undefined,
  };
}

describe('from the heap, with other elements in each call', () => {
  const shapes: Shapes = {
    a: [2, 5, 33],
    b: [33, 18],
    rows: [2, 5, 1],
    columns: [18],
    rowsOfY: [5],
  };

  it.each(operations)('%s', (op) => {
    const random = new Random(operations.indexOf(op));
    const first = draw(random, op, shapes);
    const { inUse } = wg.memory();
    const held: HeapTensor[] = [];
    const tensors = new Map<string, HeapTensor>();
    const names = (call: Call) => ({ a: call.a, b: call.b, bias: call.bias, ...call.vectors });
    const fill = (call: Call) => {
      for (const [name, matrix] of Object.entries(names(call))) {
        if (!matrix) continue;
        const known = tensors.get(name) ?? wg.alloc(matrix.dtype as DType, matrix.shape);
        if (!tensors.has(name)) held.push(known);
        tensors.set(name, known);
        (known.data as Uint8Array).set(matrix.data as Uint8Array);
      }
    };
    const placed = (call: Call) => {
      const entries = Object.entries(names(call));
      return (matrix: Matrix) =>
        tensors.get(entries.find(([, other]) => other === matrix)?.[0] ?? '');
    };
    const wantedOf = (call: Call) => run(whole, op, argumentsOf(call));
    const { dtype, shape } = wantedOf(first);
    const out = wg.alloc(dtype as DType, shape) as HeapTensor;
    for (let i = 0; i < 30; ++i) {
      const call = draw(random, op, shapes);
      fill(call);
      expect(run(wg, op, argumentsOf(call, { out }, placed(call)))).toBe(out);
      expect(sameBytes(out.data, wantedOf(call).data), `call ${i}`).toBe(true);
    }
    if (op === 'dynamicQuantizeMatmul') {
      const call = draw(random, op, shapes);
      fill(call);
      const before = out.data.slice();
      (tensors.get('a')?.data as Float32Array)[200] = NaN;
      const again = () => run(wg, op, argumentsOf(call, { out }, placed(call)));
      expectError(thrown(again), { code: 'ARGUMENT', op, argument: 'A', says: ['NaN'] });
      expect(out.data).toEqual(before);
      fill(call);
      again();
      expect(sameBytes(out.data, wantedOf(call).data)).toBe(true);
    }
    drop(...held, out);
    expect(wg.memory().inUse).toBe(inUse);
  });

  it('numbers in place of vectors, in turns', () => {
    const a = wg.alloc('uint8', [2, 2]);
    const b = wg.alloc('int8', [2, 2]);
    const [ints, floats] = [wg.alloc('int32', [2, 2]), wg.alloc('float32', [2, 2])];
    const bytes = wg.alloc('uint8', [2, 2]);
    a.data.set([1, 2, 3, 4]);
    b.data.set([1, 0, 0, 1]);
    for (let i = 0; i < 40; ++i) {
      const [zero, scale] = [i % 5, 2 ** (i % 7)];
      wg.matmulInteger(a, b, { aZeroPoint: zero, out: ints });
      expect([...ints.data]).toEqual([1, 2, 3, 4].map((x) => x - zero));
      wg.matmulIntegerToFloat(a, b, { aScale: scale, bScale: -1, aZeroPoint: zero, out: floats });
      expect([...floats.data]).toEqual([1, 2, 3, 4].map((x) => (x - zero) * -scale));
      wg.qlinearMatmul(
        { a, b, aScale: scale, bScale: 1, yScale: scale, yZeroPoint: zero },
        { out: bytes },
      );
      expect([...bytes.data]).toEqual([1, 2, 3, 4].map((x) => x + zero));
      const { data } = wg.dynamicQuantizeMatmul(float32([1, 2], 255 * scale, scale), b, {
        bScale: 1,
      });
      expect([...data]).toEqual([255 * scale, scale]);
    }
    drop(a, b, ints, floats, bytes);
  });
});

const cases: [what: string, shapes: Shapes, packs: boolean][] = [
  [
    'matrices, values per row and column',
    { a: [900, 2100], b: [2100, 700], rows: [900], columns: [700], rowsOfY: [900, 1] },
    false,
  ],
  [
    'batches that broadcast, values with batch axes',
    {
      a: [2, 1, 150, 3000],
      b: [3, 3000, 400],
      rows: [2, 1, 150, 1],
      columns: [3, 1, 400],
      rowsOfY: [2, 3, 150, 1],
    },
    false,
  ],
  [
    'rows of a vector, one large B',
    { a: [5000], b: [5000, 900], rows: [], columns: [900], rowsOfY: [1] },
    false,
  ],
  [
    'packed weights with batch axes',
    {
      a: [2, 3000, 400],
      b: [2, 400, 300],
      rows: [2, 3000, 1],
      columns: [2, 1, 300],
      rowsOfY: [3000],
    },
    true,
  ],
];

describe.each(isShort ? cases.slice(2, 3) : cases)(
  'larger than the memory: %s',
  (_, shapes, packs) => {
    it.each(operations)('%s', (op) => {
      const call = draw(new Random(3), op, shapes);
      const [ours, theirs] = [whole, small].map((on) => {
        const weights = packs ? on.pack(call.b, { op: 'qgemm' }) : undefined;
        const args = argumentsOf(call, {}, undefined, weights ?? call.b);
        const before = on.memory().inUse;
        const plan = (on.explain as unknown as Loose[string])(op, ...args) as unknown;
        if (on === small) expect(plan).toMatchObject({ op, outOfCore: true });
        const y = run(on, op, args);
        expect(on.memory().inUse).toBe(before);
        weights?.dispose();
        return y;
      }) as [Matrix, Matrix];
      expect([...theirs.shape, theirs.dtype]).toEqual([...ours.shape, ours.dtype]);
      expect(sameBytes(theirs.data, ours.data)).toBe(true);
      expect(small.memory().committed).toBeLessThanOrEqual(maxMemory);
    });

    if (packs || shapes.a.length < 2) return;
    it.each(operations)('%s, transposed, into a view', (op) => {
      const call = draw(new Random(4), op, shapes);
      const turn = ({ data, shape, dtype }: Matrix) => ({
        data,
        dtype,
        shape: [...shape.slice(0, -2), ...shape.slice(-2).reverse()],
      });
      const [ours, theirs] = [whole, small].map((on) => {
        const { shape, dtype } = run(whole, op, argumentsOf(call));
        let next = 2;
        const strides = shape.map(() => 0);
        for (let axis = shape.length - 1; axis >= 0; --axis) {
          strides[axis] = next;
          next = next * (shape[axis] as number) + 1;
        }
        const length = shape.reduce(
          (last, size, axis) => last + (size - 1) * (strides[axis] as number),
          1,
        );
        const { data } = new Random(5).tensor(dtype as DType, [length]);
        const out = { data, shape, strides, dtype };
        const turned = { ...call, a: turn(call.a), b: turn(call.b) };
        expect(run(on, op, argumentsOf(turned, { transA: true, transB: true, out }))).toBe(out);
        return data;
      });
      expect(sameBytes(theirs as Matrix['data'], ours as Matrix['data'])).toBe(true);
      expect(small.memory().committed).toBeLessThanOrEqual(maxMemory);
    });
  },
);

it.each([0, 1_000_000, 2_099_999])(
  'NaN at %i of an A that is larger than the memory is found before anything is written',
  (at) => {
    const call = draw(new Random(6), 'dynamicQuantizeMatmul', {
      a: [700, 3000],
      b: [3000, 20],
      rows: [],
      columns: [],
      rowsOfY: [],
    });
    const out = { data: new Float32Array(14_000).fill(7), shape: [700, 20] };
    (call.a.data as Float32Array)[at] = NaN;
    const { inUse } = small.memory();
    expectError(
      thrown(() => run(small, call.op, argumentsOf(call, { out }))),
      { code: 'ARGUMENT', op: call.op, argument: 'A', says: ['A has NaN'] },
    );
    expect(out.data.every((x) => x === 7)).toBe(true);
    expect(small.memory().inUse).toBe(inUse);
    (call.a.data as Float32Array)[at] = -1e6; // the range counts wherever it is found
    const [ours, theirs] = [whole, small].map((on) => run(on, call.op, argumentsOf(call)).data);
    expect(sameBytes(theirs as Float32Array, ours as Float32Array)).toBe(true);
  },
);
