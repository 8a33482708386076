/**
 * Repeated calls: neither the cache of calls nor the shorter path for tensors in the heap changes
 * results or errors.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm, GemmError, type HeapTensor } from 'wgemm';
import { expectError, thrown } from '../support/errors.js';
import { float32 } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => wg.dispose());

const numbers = (count: number, from: number) =>
  Float32Array.from({ length: count }, (_, i) => ((i * 7 + from) % 13) - 6);

/** The product of two matrices, each transposed or not. */
function product(
  a: Float32Array,
  b: Float32Array,
  [m, n, k]: [number, number, number],
  { transA = false, transB = false, alpha = 1, c = 0 },
): number[] {
  return Array.from({ length: m * n }, (_, at) => {
    const [i, j] = [Math.floor(at / n), at % n];
    let sum = 0;
    for (let l = 0; l < k; ++l)
      sum +=
        (a[transA ? l * m + i : i * k + l] as number) *
        (b[transB ? j * k + l : l * n + j] as number);
    return alpha * sum + c + 0; // no -0
  });
}

describe('the same shape comes again', () => {
  const n = 16;
  const a = numbers(n * n, 1);
  const b = numbers(n * n, 5);
  const place = (data: Float32Array) => {
    const tensor = wg.alloc('float32', [n, n]);
    tensor.data.set(data);
    return tensor;
  };

  it('with other flags, factors and a C, in the heap and in arrays, packed or not', () => {
    const [x, w, out] = [place(a), place(b), place(b)];
    const packed = wg.pack(w, { op: 'gemm' });
    const bias = wg.alloc('float32', [1]);
    bias.data[0] = 3;
    for (let round = 0; round < 3; ++round) {
      for (const transA of [false, true]) {
        for (const transB of [false, true]) {
          for (const alpha of [1, 2]) {
            for (const c of [0, 3]) {
              const wanted = product(a, b, [n, n, n], { transA, transB, alpha, c });
              const options = { transA, transB, alpha };
              const addend = c === 0 ? null : bias;
              expect(wg.gemm(x, w, addend, { ...options, out })).toBe(out);
              expect(Array.from(out.data, (value) => value + 0)).toEqual(wanted);
              const matrices = [a, b].map((data) => ({ data, shape: [n, n] })) as [
                { data: Float32Array; shape: number[] },
                typeof x,
              ];
              expect(
                Array.from(wg.gemm(...matrices, c, options).data, (value) => value + 0),
              ).toEqual(wanted);
              if (transB) continue;
              wg.gemm(x, packed, addend, { ...options, out });
              expect(Array.from(out.data, (value) => value + 0)).toEqual(wanted);
              wg.matmul(x, packed, addend, { transposeA: transA, alpha, out });
              expect(Array.from(out.data, (value) => value + 0)).toEqual(wanted);
              wg.matmul(x, w, addend, { transposeA: transA, alpha, out });
              expect(Array.from(out.data, (value) => value + 0)).toEqual(wanted);
            }
          }
        }
      }
    }
    for (const tensor of [x, w, out, packed, bias]) tensor.dispose();
  });

  it('with other tensors, sizes and types', () => {
    for (let round = 0; round < 3; ++round) {
      for (const dtype of ['float32', 'float64', 'int32'] as const) {
        for (const size of [1, 4, 7, 15, 16, 17]) {
          const tensors = [0, 1, 2].map((i) => {
            const tensor = wg.alloc(dtype, [size, size]);
            tensor.data.set(numbers(size * size, i + round));
            return tensor;
          }) as [HeapTensor<Float32Array>, HeapTensor<Float32Array>, HeapTensor<Float32Array>];
          const [x, w, out] = tensors;
          const wanted = product(
            Float32Array.from(x.data),
            Float32Array.from(w.data),
            [size, size, size],
            {},
          );
          wg.gemm(x, w, null, { out });
          expect(Array.from(out.data, (value) => value + 0)).toEqual(wanted);
          for (const tensor of tensors) tensor.dispose();
        }
      }
    }
  });

  it('with weights of 7 and of 8 bits', () => {
    for (let round = 0; round < 3; ++round) {
      for (const most of [63, 127]) {
        const x = {
          data: Uint8Array.from({ length: n * n }, (_, i) => 255 - (i % 3)),
          shape: [n, n],
        };
        const w = {
          data: Int8Array.from({ length: n * n }, (_, i) => (i % 2 === 0 ? most : -64)),
          shape: [n, n],
        };
        const packed = wg.pack(w, { op: 'qgemm' });
        const y = wg.qgemm({ a: x, aScale: 1, b: packed, bScale: 1 });
        expect(Array.from(y.data)).toEqual(
          product(Float32Array.from(x.data), Float32Array.from(w.data), [n, n, n], {}),
        );
        packed.dispose();
      }
    }
  });
});

describe('the same call comes again, on the same places', () => {
  const [m, n, k] = [5, 6, 7];
  const exactly = (array: { data: ArrayLike<number> }) =>
    Array.from(array.data, (value) => value + 0);

  it('with other elements, of tensors in the heap, numbers and arrays', () => {
    const [x, w, out] = [
      wg.alloc('float32', [m, k]),
      wg.alloc('float32', [k, n]),
      wg.alloc('float32', [m, n]),
    ];
    for (let round = 0; round < 4; ++round) {
      const [a, b] = [numbers(m * k, round), numbers(k * n, 2 * round)];
      x.data.set(a);
      w.data.set(b);
      const wanted = product(a, b, [m, n, k], { c: round });
      expect(exactly(wg.gemm(x, w, round, { out }))).toEqual(wanted);
      expect(exactly(wg.matmul(x, w, round, { out }))).toEqual(wanted);
      expect(
        exactly(wg.gemm({ data: a, shape: [m, k] }, { data: b, shape: [k, n] }, round)),
      ).toEqual(wanted);
    }
    for (const tensor of [x, w, out]) tensor.dispose();
  });

  it('after others, more than are kept', () => {
    const x = wg.alloc('float32', [m, k]);
    const w = wg.alloc('float32', [k, n]);
    const outs = Array.from({ length: 20 }, () => wg.alloc('float32', [m, n]));
    for (let round = 0; round < 3; ++round) {
      const [a, b] = [numbers(m * k, round), numbers(k * n, 2 * round)];
      x.data.set(a);
      w.data.set(b);
      for (const some of [3, 8, 9, 20]) {
        for (const out of outs.slice(0, some)) wg.gemm(x, w, null, { out });
        for (const out of outs.slice(0, some)) {
          expect(exactly(out)).toEqual(product(a, b, [m, n, k], {}));
          out.data.fill(9);
        }
      }
    }
    for (const tensor of [x, w, ...outs]) tensor.dispose();
  });

  it('with its operands exchanged', () => {
    const tensors = [1, 2].map((from) => {
      const tensor = wg.alloc('float32', [n, n]);
      tensor.data.set(numbers(n * n, from));
      return tensor;
    }) as [HeapTensor<Float32Array>, HeapTensor<Float32Array>];
    const out = wg.alloc('float32', [n, n]);
    const [a, b] = [Float32Array.from(tensors[0].data), Float32Array.from(tensors[1].data)];
    for (let round = 0; round < 2; ++round) {
      for (const [one, other, wanted] of [
        [tensors[0], tensors[1], product(a, b, [n, n, n], {})],
        [tensors[1], tensors[0], product(b, a, [n, n, n], {})],
        [tensors[0], tensors[0], product(a, a, [n, n, n], {})],
      ] as const) {
        expect(exactly(wg.gemm(one, other, null, { out }))).toEqual(wanted);
        out.data.fill(9);
        expect(exactly(wg.matmul(one, other, null, { out }))).toEqual(wanted);
      }
    }
    for (const tensor of [...tensors, out]) tensor.dispose();
  });

  it('with other packed weights at the address of some that were disposed of', () => {
    const x = wg.alloc('float32', [1, 64]);
    const out = wg.alloc('float32', [1, 32]);
    x.data.fill(1);
    // Weights of float16 without infinity have a kernel of their own.
    for (const value of [2, Infinity, 3, -Infinity, NaN, 4]) {
      const w = { data: new Float32Array(64 * 32).fill(1), shape: [64, 32] };
      w.data[0] = value;
      const packed = wg.pack(w, { op: 'gemm', as: 'float16' });
      for (let round = 0; round < 2; ++round) {
        wg.gemm(x, packed, null, { out });
        expect(out.data[0]).toBe(value + 63);
        expect(out.data[1]).toBe(64);
      }
      packed.dispose();
    }
    x.dispose();
    out.dispose();
  });

  it('with other packed weights of qgemm, likewise', () => {
    const [a, out] = [wg.alloc('uint8', [2, 64]), wg.alloc('float32', [2, 32])];
    a.data.fill(1);
    for (const value of [2, -3, 127, -128, 0]) {
      const packed = wg.pack(
        { data: new Int8Array(64 * 32).fill(value), shape: [64, 32] },
        { op: 'qgemm' },
      );
      for (let round = 0; round < 2; ++round) {
        wg.qgemm({ a, aScale: 1, aZeroPoint: 3, b: packed, bScale: 1 }, { out });
        expect([...out.data]).toEqual(new Array(64).fill(64 * -2 * value + 0));
      }
      packed.dispose();
    }
    a.dispose();
    out.dispose();
  });

  it('of qgemm, with more numbers than are kept, and some that are refused', () => {
    const [a, out] = [wg.alloc('uint8', [2, 2]), wg.alloc('float32', [2, 2])];
    a.data.fill(1);
    for (let round = 0; round < 2; ++round) {
      for (let scale = 1; scale < 20; ++scale) {
        const inputs = { a, aScale: scale, b: a, bScale: 1 };
        for (let again = 0; again < 2; ++again) {
          expect([...wg.qgemm(inputs, { out }).data]).toEqual([
            2 * scale,
            2 * scale,
            2 * scale,
            2 * scale,
          ]);
          expect(() => wg.qgemm({ ...inputs, aScale: 7, bScale: -1 }, { out })).toThrow(GemmError);
          expect(() => wg.qgemm({ ...inputs, aScale: 7, bZeroPoint: 300 }, { out })).toThrow(
            GemmError,
          );
        }
      }
    }
    a.dispose();
    out.dispose();
  });

  it('with other scales and zero points', () => {
    const [a, b] = [wg.alloc('uint8', [2, 4]), wg.alloc('int8', [4, 3])];
    const [aScale, bZeroPoint] = [wg.alloc('float32', []), wg.alloc('int8', [])];
    const out = wg.alloc('float32', [2, 3]);
    a.data.fill(2);
    b.data.fill(3);
    for (const [scale, zero] of [
      [1, 0],
      [2, 0],
      [0.5, 1],
      [1, 2],
    ] as const) {
      aScale.data[0] = scale;
      bZeroPoint.data[0] = zero;
      wg.qgemm({ a, aScale, b, bScale: 1, bZeroPoint }, { out });
      expect([...out.data]).toEqual(new Array(6).fill(4 * 2 * (3 - zero) * scale));
    }
    for (const tensor of [a, b, aScale, bZeroPoint, out]) tensor.dispose();
  });

  it('of qgemm, with other elements and numbers, in turns', () => {
    const [a, b] = [wg.alloc('uint8', [m, k]), wg.alloc('int8', [k, n])];
    const [c, float, byte] = [
      wg.alloc('int32', [n]),
      wg.alloc('float32', [m, n]),
      wg.alloc('uint8', [m, n]),
    ];
    c.data.set(numbers(n, 3));
    for (let round = 0; round < 4; ++round) {
      const [x, w] = [numbers(m * k, round), numbers(k * n, 2 * round)];
      a.data.set(x.map((value) => value + 130));
      b.data.set(w);
      // No more calls than the cache holds.
      for (const [aScale, aZeroPoint, bScale, bZeroPoint] of [
        [1, 128, 0.5, 0],
        [2, 131, 0.5, 0],
        [2, 131, 1, 0],
        [1, 255, 1, -3],
      ] as const) {
        const inputs = { a, aScale, aZeroPoint, b, bScale, bZeroPoint };
        const [left, right] = [
          x.map((value) => value + 130 - aZeroPoint),
          w.map((value) => value - bZeroPoint),
        ];
        const sums = product(left, right, [m, n, k], {});
        expect(exactly(wg.qgemm(inputs, { out: float }))).toEqual(
          sums.map((sum) => sum * aScale * bScale + 0),
        );
        const numbersOfY = sums.map(
          (sum, i) => (sum + (c.data[i % n] as number)) * aScale * bScale,
        );
        const relu = wg.qgemm(
          { ...inputs, c, yScale: 8, yZeroPoint: 6 },
          { out: byte, activation: 'relu' },
        );
        expect(exactly(relu)).toEqual(
          Array.from(Uint8ClampedArray.from(numbersOfY, (y) => Math.max(y / 8, 0) + 6)),
        );
      }
    }
    for (const tensor of [a, b, c, float, byte]) tensor.dispose();
  });

  it('after one that was refused', () => {
    const [x, w, out] = [
      wg.alloc('float32', [m, k]),
      wg.alloc('float32', [k, n]),
      wg.alloc('float32', [m, n]),
    ];
    x.data.set(numbers(m * k, 1));
    w.data.set(numbers(k * n, 2));
    const wanted = product(numbers(m * k, 1), numbers(k * n, 2), [m, n, k], {});
    for (let round = 0; round < 10; ++round) {
      const error = thrown(() => wg.gemm(x, w, null, { out: x }));
      expect(error).toBeInstanceOf(GemmError);
      expect(thrown(() => wg.gemm(x, w, null, { out: x }))).toEqual(error);
      expect(exactly(wg.gemm(x, w, null, { out }))).toEqual(wanted);
    }
    for (const tensor of [x, w, out]) tensor.dispose();
  });

  it('block by block, with other arrays', async () => {
    const small = await createGemm({ maxMemory: 2 ** 21 });
    const size = 800;
    for (let round = 0; round < 3; ++round) {
      const [a, b] = [numbers(size * size, round), numbers(size * size, 3 * round)];
      const shape = [size, size];
      const args = [{ data: a, shape }, { data: b, shape }, null] as const;
      expect(small.explain('gemm', ...args, {}).outOfCore).toBe(true);
      const { data } = small.gemm(...args);
      const { data: wanted } = wg.gemm(...args);
      expect(data).toEqual(wanted);
    }
    small.dispose();
  });
});

describe('what is in the heap alone', () => {
  it('has the errors that arrays have, in their order', async () => {
    const other = await createGemm();
    const heap = [wg, wg, wg, wg].map((each) => each.alloc('float32', [2, 2]));
    const [a, b, c, out] = heap as [HeapTensor, HeapTensor, HeapTensor, HeapTensor];
    const theirs = other.alloc('float32', [2, 2]);
    const gone = wg.alloc('float32', [2, 2]);
    gone.dispose();
    const weights = wg.pack(a, { op: 'gemm' });
    const old = wg.pack(a, { op: 'gemm' });
    old.dispose();
    const gemm = wg.gemm.bind(wg) as (...args: unknown[]) => unknown;
    const matmul = wg.matmul.bind(wg) as (...args: unknown[]) => unknown;
    const refused = (call: () => unknown, code: string, argument: string) => {
      const inUse = wg.memory().inUse;
      expect(thrown(call)).toMatchObject({ code, argument });
      expect(wg.memory().inUse).toBe(inUse);
    };
    refused(() => gemm(theirs, gone, c, { out, alpha: 'x' }), 'ARGUMENT', 'alpha');
    refused(() => gemm(theirs, gone, c, { out, transA: 'x', beta: {} }), 'ARGUMENT', 'beta');
    refused(() => gemm(a, b, c, { out, transA: 'x' }), 'ARGUMENT', 'transA');
    refused(() => gemm(a, b, c, { out, opset: 'x' }), 'OPSET', 'opset');
    refused(() => gemm(a, b, c, { out, opset: 7, alpha: 1n }), 'ARGUMENT', 'alpha');
    refused(() => gemm(a, b, c, { out, gamma: 1 }), 'ARGUMENT', 'gamma');
    refused(() => gemm(theirs, gone, c, { out }), 'ARGUMENT', 'A');
    refused(() => gemm(a, gone, theirs, { out }), 'DISPOSED', 'B');
    refused(() => gemm(a, old, theirs, { out }), 'DISPOSED', 'B');
    refused(() => gemm(a, b, theirs, { out: gone }), 'ARGUMENT', 'C');
    refused(() => gemm(a, b, c, { out: gone }), 'DISPOSED', 'out');
    refused(() => gemm(a, b, c, { out: weights }), 'ARGUMENT', 'out');
    refused(() => gemm(weights, b, c, { out }), 'ARGUMENT', 'A');
    refused(() => gemm(a, b, c, { out: a }), 'ARGUMENT', 'out');
    refused(() => gemm(a, b, weights, { out }), 'ARGUMENT', 'C');
    refused(() => gemm(a, weights, c, { out, transB: 1 }), 'ARGUMENT', 'transB');
    refused(() => matmul(a, gone, theirs, { out }), 'DISPOSED', 'weights');
    refused(() => matmul(a, b, theirs, { out }), 'ARGUMENT', 'bias');
    refused(() => matmul(a, b, c, { out: gone }), 'DISPOSED', 'out');
    refused(() => matmul(gone, b, c, { out, transposeB: 'x' }), 'ARGUMENT', 'transposeB');
    refused(() => matmul(gone, b, c, { out, transposeB: 'x', alpha: 'x' }), 'ARGUMENT', 'alpha');
    refused(() => matmul(a, b, c, { out: b }), 'ARGUMENT', 'out');
    refused(() => matmul(a, b, c, { out, outType: 'float64' }), 'DTYPE', 'outType');
    const [bytes, old8, sums] = [
      wg.alloc('uint8', [2, 2]),
      wg.alloc('uint8', [2, 2]),
      wg.alloc('int32', [2]),
    ];
    old8.dispose();
    const qgemm = (inputs: object, options?: object) => () =>
      (wg.qgemm as (...args: unknown[]) => unknown)(
        { a: bytes, aScale: 1, b: bytes, bScale: 1, ...inputs },
        { out: a, ...options },
      );
    refused(qgemm({ aScale: undefined }), 'ARGUMENT', 'aScale');
    refused(qgemm({ bScale: null }), 'ARGUMENT', 'bScale');
    refused(qgemm({ bScale: gone }), 'DISPOSED', 'bScale');
    refused(qgemm({ aScale: 0 }), 'ARGUMENT', 'aScale');
    refused(qgemm({ aZeroPoint: 256 }), 'ARGUMENT', 'aZeroPoint');
    refused(qgemm({ bZeroPoint: -1 }), 'ARGUMENT', 'bZeroPoint');
    refused(qgemm({ yScale: 1, yZeroPoint: 0.5 }), 'ARGUMENT', 'yZeroPoint');
    refused(qgemm({ yScale: 1 }), 'ARGUMENT', 'yZeroPoint');
    refused(qgemm({ yScale: a }), 'SHAPE', 'yScale');
    refused(qgemm({ a: old8 }), 'DISPOSED', 'A');
    refused(qgemm({ a, b: sums }), 'DTYPE', 'A');
    refused(qgemm({ b: sums }), 'DTYPE', 'B');
    refused(qgemm({ b: weights }), 'PACK_MISMATCH', 'B');
    refused(qgemm({ c: b }), 'DTYPE', 'C');
    refused(qgemm({ c: weights }), 'ARGUMENT', 'C');
    refused(qgemm({}, { alpha: '1' }), 'ARGUMENT', 'alpha');
    refused(qgemm({}, { transA: 'x' }), 'ARGUMENT', 'transA');
    refused(qgemm({}, { out: bytes }), 'DTYPE', 'out');
    refused(qgemm({ yScale: 1, yZeroPoint: 1 }, { out: bytes }), 'ARGUMENT', 'out');
    for (const tensor of [...heap, weights, bytes, sums]) tensor.dispose();
    other.dispose();
  });

  it('is looked for after the options were read, which may run code', async () => {
    const instance = await createGemm();
    const [a, b, out] = [0, 1, 2].map(() => instance.alloc('float32', [2, 2])) as [
      HeapTensor<Float32Array>,
      HeapTensor<Float32Array>,
      HeapTensor<Float32Array>,
    ];
    const one = float32([1, 1], 1);
    // A call in between writes to the block of arguments.
    a.data.set([1, 2, 3, 4]);
    b.data.set([1, 0, 0, 1]);
    const calling = {
      get alpha() {
        instance.gemm(one, one, 100);
        return 2;
      },
      out,
    };
    expect(Array.from(instance.gemm(a, b, null, calling).data)).toEqual([2, 4, 6, 8]);
    const growing = {
      get alpha() {
        instance.alloc('float32', [1_000_000]).dispose(); // more than there is: the memory moves
        return 3;
      },
      out,
    };
    expect(Array.from(instance.gemm(a, b, null, growing).data)).toEqual([3, 6, 9, 12]);
    // So does a getter among the inputs of qgemm.
    const bytes = instance.alloc('uint8', [2, 2]);
    bytes.data.fill(1);
    let pages = 2_000_000;
    for (const factor of [2, 3, 4]) {
      const inputs = {
        a: bytes,
        get aScale() {
          instance.alloc('float32', [(pages += 1_000_000)]).dispose();
          return factor;
        },
        b: bytes,
        bScale: 1,
      };
      expect(Array.from(instance.qgemm(inputs, { out }).data)).toEqual(
        new Array(4).fill(2 * factor),
      );
    }
    const disposing = (what: { dispose(): void }) => ({
      get alpha() {
        what.dispose();
        return 1;
      },
      out,
    });
    expectError(
      thrown(() => instance.gemm(a, b, null, disposing(b))),
      { code: 'DISPOSED', argument: 'B', says: ['disposed tensor'] },
    );
    expectError(
      thrown(() => instance.gemm(a, a, null, disposing(instance))),
      { code: 'DISPOSED', argument: 'instance', says: ['disposed'] },
    );
  });

  it('takes options that inherit, and refuses unknown ones of their own alone', () => {
    const [a, out] = [wg.alloc('float32', [1, 1]), wg.alloc('float32', [1, 1])];
    a.data[0] = 2;
    const inherited = Object.create({ alpha: 3, unknown: 1 }) as { out: HeapTensor };
    inherited.out = out;
    wg.gemm(a, a, null, inherited);
    expect(out.data[0]).toBe(12);
    expect(() => wg.gemm(a, a, null, Object.assign(inherited, { unknown: 1 }))).toThrow(GemmError);
    const hidden = Object.defineProperty({ out }, 'unknown', { value: 1 });
    wg.gemm(a, a, null, hidden);
    expect(out.data[0]).toBe(4);
    a.dispose();
    out.dispose();
  });

  it('works when the memory has moved', async () => {
    const instance = await createGemm();
    const [a, out] = [instance.alloc('float32', [1, 1]), instance.alloc('float32', [1, 1])];
    for (let size = 1 << 18; size <= 1 << 21; size *= 2) {
      a.data[0] = size;
      instance.alloc('float32', [size]);
      instance.gemm(a, a, null, { out });
      expect(out.data[0]).toBe(size * size);
    }
    instance.dispose();
  });
});
