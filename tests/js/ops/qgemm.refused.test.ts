/**
 * Calls of qgemm that have too little memory, or whose getters run code. error-cases.ts has the
 * errors of arguments.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm, type QGemmInputs, type QGemmOptions } from 'wgemm';
import { expectError, thrown, type Wanted } from '../support/errors.js';
import { expectQGemm, packed } from '../support/quantized.js';
import { float32, int32, int8, uint8 } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => wg.dispose());

/** The errors of qgemm, for short. */
const disposed = (argument: string, ...says: string[]): Wanted => ({
  code: 'DISPOSED',
  op: 'qgemm',
  argument,
  says,
});

const withoutOut = () => ({
  a: uint8([2, 3], 1, 2, 3, 4, 5, 255),
  aScale: 0.5,
  aZeroPoint: Uint8Array.of(3),
  b: int8([3, 2], 1, -2, 3, -4, 5, -128),
  bScale: Float32Array.of(0.25, 0.75),
  bZeroPoint: int8([2], 7, -7),
  c: int32([2, 2], 1, 2, 3, 4),
});

describe('refuses to take more memory than there is', () => {
  const size = 64;
  const square = { data: new Uint8Array(size * size).fill(3), shape: [size, size] };
  const scales = { aScale: 1, bScale: 1 };
  const wanted: Wanted = {
    code: 'OUT_OF_MEMORY',
    op: 'qgemm',
    argument: '',
    says: [/no memory for \d+ bytes/, 'in use'],
  };

  it('for copies of arrays', async () => {
    using instance = await createGemm({ maxMemory: 10_000 });
    const held = instance.alloc('uint8', [9500]); // or it would be computed block by block
    const { inUse } = instance.memory();
    for (const out of [undefined, float32([size, size], ...Array<number>(size * size).fill(9))]) {
      expectError(
        thrown(() => instance.qgemm({ a: square, b: square, ...scales }, { out } as QGemmOptions)),
        wanted,
      );
      expect(out?.data.every((value) => value === 9)).not.toBe(false);
      expect(instance.memory().inUse).toBe(inUse);
    }
    held.dispose();
    expectQGemm(instance, withoutOut());
  });

  it('for scratch, to the byte', async () => {
    const { scratch } = wg.explain('qgemm', { a: square, b: square, ...scales });
    const room = 2 * (size * size + 64) + (4 * size * size + 64);
    for (const missing of [1, 0]) {
      using instance = await createGemm({ maxMemory: room + scratch + 64 - missing });
      const [a, b] = [instance.alloc('uint8', [size, size]), instance.alloc('int8', [size, size])];
      const out = instance.alloc('float32', [size, size]);
      out.data.fill(9);
      const { inUse } = instance.memory();
      const run = () => instance.qgemm({ a, b, ...scales }, { out });
      if (missing === 0) run();
      else
        expectError(thrown(run), {
          ...wanted,
          says: [
            new RegExp(
              `no memory for ${scratch} bytes of scratch; ${inUse} bytes are in use, ` +
                `and maxMemory is ${room + scratch + 63}$`,
            ),
          ],
        });
      expect(out.data.every((value) => value === 9 * missing)).toBe(true);
      expect(instance.memory().inUse).toBe(inUse);
    }
  });

  it('for weights', async () => {
    using instance = await createGemm({ maxMemory: 100_000 });
    const wanted: Wanted = {
      code: 'OUT_OF_MEMORY',
      op: 'pack',
      argument: '',
      says: [/no memory for/, 'in use'],
    };
    const tooWide = { data: new Int8Array(120_000), shape: [1, 120_000] };
    // There is too little memory for the copy, or for the weights after the copy.
    for (const width of [120_000, 60_000]) {
      const b = { data: tooWide.data.subarray(0, width), shape: [1, width] };
      expectError(
        thrown(() => instance.pack(b, { op: 'qgemm' })),
        wanted,
      );
      expect(instance.memory().inUse).toBe(0);
    }
    for (const size of [2 ** 29, 2 ** 30, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 52]) {
      for (const shape of [
        [size, 1],
        [1, size],
      ]) {
        const b = { data: new Int8Array(1), shape, strides: [0, 0] };
        expectError(
          thrown(() => instance.pack(b, { op: 'qgemm' })),
          wanted,
        );
        expectError(
          thrown(() =>
            instance.pack({ ...b, shape: shape.toReversed() }, { op: 'qgemm', trans: true }),
          ),
          wanted,
        );
      }
    }
    expect(instance.memory().inUse).toBe(0);
    packed(instance, withoutOut().b);
  });
});

describe('when a getter among the arguments calls back', () => {
  const good = withoutOut();

  it('numbers stay as in their call', () => {
    const one = uint8([1, 1], 1);
    const inputs = {
      a: one,
      aScale: 2,
      aZeroPoint: 3,
      b: one,
      bScale: 5,
      bZeroPoint: 7,
      c: 11,
      yScale: 0.5,
      yZeroPoint: 13,
    };
    const wanted = wg.qgemm(inputs).data;
    const options = {
      get alpha() {
        wg.qgemm({
          a: one,
          aScale: 9,
          aZeroPoint: 9,
          b: one,
          bScale: 9,
          bZeroPoint: 9,
          c: 9,
          yScale: 9,
          yZeroPoint: 9,
        });
        return 1;
      },
    };
    expect(wg.qgemm(inputs, options).data).toEqual(wanted);
  });

  /** The same object, but that something is done as one of its properties is read. */
  const reading = <T extends object>(object: T, name: string, act: () => void): T =>
    Object.defineProperty({ ...object }, name, {
      get() {
        act();
        return object[name as keyof T];
      },
      enumerable: true,
    });
  const options = { alpha: 1, transA: false, out: float32([2, 2], 9, 9, 9, 9) };

  /**
   * Calls in which `end` is called in the middle: by every input and option, and within tensors.
   */
  const calls: Record<
    string,
    (b: QGemmInputs['b'], end: () => void) => [QGemmInputs, QGemmOptions]
  > = {
    'inputs.a': (b, end) => [reading({ ...good, b }, 'a', end), options],
    'inputs.b': (b, end) => [reading({ ...good, b }, 'b', end), options],
    'inputs.yZeroPoint': (b, end) => [
      reading({ ...good, b, yZeroPoint: undefined } as never, 'yZeroPoint', end),
      options,
    ],
    'options.alpha': (b, end) => [{ ...good, b }, reading(options, 'alpha', end)],
    'options.out': (b, end) => [{ ...good, b }, reading(options, 'out', end)],
    'A’s shape': (b, end) => [{ ...good, b, a: reading(good.a, 'shape', end) }, options],
    'C’s data': (b, end) => [{ ...good, b, c: reading(good.c, 'data', end) }, options],
    'bZeroPoint’s shape': (b, end) => [
      { ...good, b, bZeroPoint: reading(good.bZeroPoint, 'shape', end) },
      options,
    ],
    'out’s shape': (b, end) => [
      { ...good, b },
      { ...options, out: reading(options.out, 'shape', end) },
    ],
  };
  const names = Object.keys(calls);
  const callOf = (name: string) => calls[name] as (typeof calls)[string];

  it.each(names)('weights that it disposes of at %s are not used', (name) => {
    for (const run of ['qgemm', 'explain'] as const) {
      const gone = packed(wg, good.b);
      const [inputs, options] = callOf(name)(gone, () => gone.dispose());
      expectError(
        thrown(() =>
          run === 'qgemm' ? wg.qgemm(inputs, options) : wg.explain('qgemm', inputs, options),
        ),
        disposed('B', 'disposed weights'),
      );
    }
    expect(Array.from(options.out.data)).toEqual([9, 9, 9, 9]);
  });

  it.each(names)('an instance that it disposes of at %s is not used', async (name) => {
    const instance = await createGemm();
    const [inputs, options] = callOf(name)(packed(instance, good.b), () => instance.dispose());
    expectError(
      thrown(() => instance.qgemm(inputs, options)),
      disposed('instance', 'disposed'),
    );
  });

  it.each(names)('its own error at %s comes through, and nothing is kept', (name) => {
    const { inUse } = wg.memory();
    const [inputs, options] = callOf(name)(good.b, () => {
      throw new RangeError('mine');
    });
    expect(() => wg.qgemm(inputs, options)).toThrow(new RangeError('mine'));
    expect(wg.memory().inUse).toBe(inUse);
  });

  it.each(['op', 'trans', 'shape', 'data', 'strides'])(
    'pack uses no tensor or instance that it disposes of at %s',
    async (name) => {
      const instance = await createGemm();
      const tensor = instance.alloc('int8', [3, 2]);
      const view = tensor.data;
      const pack = (act: () => void) => {
        const options = { op: 'qgemm', trans: false } as const;
        const b = { data: view, shape: [3, 2], strides: [2, 1] };
        if (name in b) return instance.pack(reading(b, name, act), options);
        return instance.pack(b, reading(options, name, act));
      };
      const wanted = (argument: string, says: string): Wanted => ({
        code: 'DISPOSED',
        op: 'pack',
        argument,
        says: [says],
      });
      expectError(
        thrown(() => pack(() => tensor.dispose())),
        wanted('B', 'a view of a tensor that was disposed'),
      );
      expect(instance.memory().inUse).toBe(0);
      expectError(
        thrown(() => pack(() => instance.dispose())),
        wanted('instance', 'is disposed'),
      );
    },
  );
});

it('weights cannot be changed', () => {
  using weights = packed(wg, withoutOut().b);
  for (const change of [
    { shape: [300, 2] },
    { dtype: 'uint8' },
    { op: 'gemm' },
    { byteLength: 1 },
    { own: 1 },
  ]) {
    expect(() => Object.assign(weights, change)).toThrow(TypeError);
  }
  expect(() => (weights.shape as number[]).push(3)).toThrow(TypeError);
});
