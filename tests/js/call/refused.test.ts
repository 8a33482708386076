/**
 * Calls of gemm that have too little memory, or whose getters run code; and what other libraries
 * say of an array and gemm takes. error-cases.ts has the errors of arguments.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import { expectError, thrown, type Wanted } from '../support/errors.js';
import { expectGemm, float32 } from '../support/tensors.js';

let wg: Gemm;
let inWorker: WorkerGemm;
beforeAll(async () => {
  [wg, inWorker] = await Promise.all([createGemm(), startWorker()]);
});
afterAll(() => {
  wg.dispose();
  inWorker.dispose();
});

const square = float32([2, 2], 1, 2, 3, 4);
const data = (length: number) => new Float32Array(length);
/** Bytes of scratch of a product of 32 x 32 matrices with C. */
function scratchOf32(): number {
  const square = { data: data(1024), shape: [32, 32] };
  return wg.explain('gemm', square, square, 1).scratch;
}

const operands = () => ({
  a: float32([2, 3], 1, 2, 3, 4, 5, 6),
  b: float32([3, 2], 1, 2, 3, 4, 5, 6),
  c: float32([2, 2], 1, 2, 3, 4),
  out: float32([2, 2], 9, 9, 9, 9),
});
type Operands = ReturnType<typeof operands>;
interface Call {
  a?: unknown;
  b?: unknown;
  c?: unknown;
  options?: unknown;
}

const sayingTheSame: [string, (o: Operands) => Call][] = [
  [
    'an ndarray',
    (o) => ({ a: { ...o.a, stride: [3, 1], offset: 0, order: [1, 0], step: () => 0 } }),
  ],
  [
    'a row of an ndarray',
    (o) => ({
      a: { ...o.a, data: data(3), shape: [1, 3], stride: [7, 1], offset: 0 },
      c: 0,
      options: { out: undefined },
    }),
  ],
  [
    'an empty ndarray',
    () => ({
      a: { data: data(0), shape: [0, 3], stride: [9, 9], offset: 0 },
      c: 0,
      options: { out: undefined },
    }),
  ],
  ['strides and a stride', (o) => ({ a: { ...o.a, strides: [1, 2], stride: [1, 2] } })],
  [
    'an array of @stdlib',
    (o) => ({ b: { ...o.b, strides: [2, 1], offset: 0, order: 'row-major' } }),
  ],
  [
    'one whose strides say columns',
    (o) => ({ b: { ...o.b, strides: [1, 3], offset: 0, order: 'column-major' } }),
  ],
  [
    'a vector of columns',
    (o) => ({ c: { ...o.c, data: data(2), shape: [1, 2], order: 'F', fortranOrder: true } }),
  ],
  [
    'an .npy file',
    (o) => ({ c: { ...o.c, fortranOrder: false, step: 1, start: 0, byteOffset: 0 } }),
  ],
  [
    'nothing',
    (o) => ({
      a: { ...o.a, stride: undefined, offset: null, order: undefined, transposed: false },
    }),
  ],
  ...['C', 'C_CONTIGUOUS', 'K', 'A'].map((order): (typeof sayingTheSame)[number] => [
    `order ${order}`,
    (o) => ({ a: { ...o.a, order } }),
  ]),
  [
    'something else',
    (o) => ({ a: { ...o.a, name: 'x', id: 7, requiresGrad: true, layout: 'NCHW' } }),
  ],
];
it.each(sayingTheSame)('takes what says the same: %s', async (_, change) => {
  const o = operands();
  const { a, b, c, options } = change(o);
  const [A, B, C] = [a ?? o.a, b ?? o.b, c ?? o.c] as [never, never, never];
  const all = { out: o.out, ...(options as object) };
  expectGemm(wg, A, B, C, all);
  const y = await inWorker.gemm(A, B, C);
  expect(y.data).toEqual(wg.gemm(A, B, C).data);
});

describe('beta with out and without C', () => {
  it.each([0, -0, 0n, undefined])('is taken if it is %s, here and in the heap', (beta) => {
    const x = { data: BigInt64Array.of(3n), shape: [1, 1] };
    using held = wg.alloc('int64', [1, 1]);
    using y = wg.alloc('int64', [1, 1]);
    held.data.set([3n]);
    y.data.set([100n]);
    for (const c of [null, undefined]) {
      const out = { data: BigInt64Array.of(100n), shape: [1, 1] };
      expect(wg.gemm(x, x, c, { beta, out }).data[0]).toBe(9n);
      expect(wg.gemm(held, held, c, { beta, out: y }).data[0]).toBe(9n);
    }
  });
});

it('refuses a view of the heap that ended when the memory grew', async () => {
  const instance = await createGemm();
  const tensor = instance.alloc('float32', [2, 2]);
  const view = tensor.data;
  const { committed } = instance.memory();
  instance.alloc('float32', [committed / 4]);
  expect(instance.memory().committed).toBeGreaterThan(committed);
  if (view.buffer[Symbol.toStringTag] === 'SharedArrayBuffer') {
    // Views of shared memory stay valid, and the tensor has not moved.
    view.set([1, 2, 3, 4]);
    expectGemm(instance, { data: view, shape: [2, 2] }, square);
  } else {
    expectError(
      thrown(() => instance.gemm({ data: view, shape: [2, 2] }, square)),
      { code: 'ARGUMENT', argument: 'A', says: ['detached', 'grew'] },
    );
  }
  instance.gemm({ data: tensor.data, shape: [2, 2] }, square);
  instance.dispose();
});

it('refuses the data of a tensor that is disposed, itself or with its instance', async () => {
  const disposed = wg.alloc('float32', [2, 2]);
  disposed.dispose();
  const instance = await createGemm();
  const tensor = instance.alloc('int32', [1]);
  instance.dispose();
  expect(tensor.disposed).toBe(true);
  for (const [read, found] of [
    [() => disposed.data, 'tensor is a disposed tensor'],
    [() => tensor.data, 'the instance that tensor belongs to is disposed'],
  ] as const)
    expectError(thrown(read), { code: 'DISPOSED', op: 'data', argument: 'tensor', says: [found] });
  tensor.dispose();
});

describe('when a getter among the arguments calls back', () => {
  it('the number that is C stays as in its call', () => {
    const one = float32([1, 1], 1);
    const options = {
      get alpha() {
        wg.gemm(one, one, 100);
        return 1;
      },
    };
    expect(wg.gemm(one, one, 5, options).data[0]).toBe(6);
  });

  it('a tensor that it disposes of is not read', () => {
    const tensor = wg.alloc('float32', [2, 2]);
    const options = {
      get alpha() {
        tensor.dispose();
        return 1;
      },
    };
    expectError(
      thrown(() => wg.gemm(tensor, square, null, options)),
      { code: 'DISPOSED', argument: 'A', says: ['disposed tensor'] },
    );
  });

  it('an instance that it disposes of is not used', async () => {
    const instance = await createGemm();
    const options = {
      get alpha() {
        instance.dispose();
        return 1;
      },
    };
    expectError(
      thrown(() => instance.gemm(square, square, 1, options)),
      { code: 'DISPOSED', argument: 'instance', says: ['disposed'] },
    );
  });

  it('its own error comes through, and nothing is kept', () => {
    const inUse = wg.memory().inUse;
    const options = {
      get out(): never {
        throw new RangeError('mine');
      },
    };
    expect(() => wg.gemm(square, square, null, options)).toThrow(new RangeError('mine'));
    expect(wg.memory().inUse).toBe(inUse);
  });
});

describe('refuses to take more memory than there is', () => {
  it('for alloc, beyond maxMemory', async () => {
    const instance = await createGemm({ maxMemory: 10_000 });
    expectError(
      thrown(() => instance.alloc('float32', [2500])),
      {
        code: 'OUT_OF_MEMORY',
        op: 'alloc',
        argument: '',
        says: ['10000 bytes', '0 bytes are in use'],
      },
    );
    expect(instance.memory().inUse).toBe(0);
    const tensor = instance.alloc('float32', [2000]);
    expect(thrown(() => instance.alloc('float32', [2000]))).toMatchObject({
      code: 'OUT_OF_MEMORY',
    });
    tensor.dispose();
    instance.alloc('float32', [2000]);
    instance.dispose();
  });

  it('for copies of arrays, beyond maxMemory', async () => {
    const instance = await createGemm({ maxMemory: 10_000 });
    const held = instance.alloc('uint8', [9900]); // or it would be computed block by block
    const { inUse } = instance.memory();
    const wide = { data: data(2500), shape: [1, 2500] };
    const out = float32([1, 2500], ...Array<number>(2500).fill(9));
    for (const options of [{}, { out }]) {
      expectError(
        thrown(() => instance.gemm(float32([1, 1], 1), wide, null, options)),
        { code: 'OUT_OF_MEMORY', argument: '', says: [/no memory for \d+ bytes/, 'in use'] },
      );
    }
    expect(out.data.every((value) => value === 9)).toBe(true);
    expect(instance.memory().inUse).toBe(inUse);
    held.dispose();
    expectGemm(instance, square, square, 1);
    instance.dispose();
  });

  it('for scratch, beyond maxMemory, with tensors in the heap', async () => {
    const scratch = scratchOf32();
    // Each tensor has 64 bytes of its own.
    const instance = await createGemm({ maxMemory: 3 * (4096 + 64) + 64 + scratch - 1 });
    const make = () => instance.alloc('float32', [32, 32]);
    const [a, b, out] = [make(), make(), make()];
    out.data.fill(9);
    const inUse = instance.memory().inUse;
    const run = () => instance.gemm(a, b, 1, { out });
    expectError(thrown(run), {
      code: 'OUT_OF_MEMORY',
      argument: '',
      says: [/no memory for \d+ bytes of scratch/, 'in use'],
    });
    expect(out.data.every((value) => value === 9)).toBe(true);
    expect(instance.memory().inUse).toBe(inUse);
    expectGemm(instance, square, square);
    instance.dispose();
  });

  it('is true to the byte: what maxMemory allows, works', async () => {
    const scratch = scratchOf32();
    const instance = await createGemm({ maxMemory: 3 * (4096 + 64) + scratch + 64 });
    const [a, b, out] = [
      instance.alloc('float32', [32, 32]),
      instance.alloc('float32', [32, 32]),
      instance.alloc('float32', [32, 32]),
    ];
    instance.gemm(a, b, 1, { out });
    instance.dispose();
  });

  it.each([2 ** 30 - 16, 2 ** 30, 2 ** 31, 2 ** 40, 2 ** 53 - 1])(
    'for %i elements, which 4 GB do not hold',
    (size) => {
      const before = wg.memory();
      const wanted: Wanted = {
        code: 'OUT_OF_MEMORY',
        op: 'alloc',
        argument: '',
        says: [/no memory for \d+ bytes/],
      };
      expectError(
        thrown(() => wg.alloc('float32', [size])),
        wanted,
      );
      if (size >= 2 ** 40) {
        const column = { data: data(1), shape: [size, 1], strides: [0, 0] }; // an array may hold the result of less
        expectError(
          thrown(() => wg.gemm(column, float32([1, 1], 1))),
          { ...wanted, op: 'gemm' },
        );
      }
      expect(wg.memory()).toEqual(before);
      expectGemm(wg, square, square);
    },
  );
});
