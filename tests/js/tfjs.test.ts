/**
 * `wgemm/tfjs`: products of tfjs with wgemm installed, beside plain loops; tensors and packed weights
 * that end; what `remove` restores; what `install` refuses.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGemm, type Gemm, OutOfMemoryError } from 'wgemm';
import { install } from 'wgemm/tfjs';
import { tf, type TfTensor } from '../peers/tfjs-backends.mjs';
import { expectError } from './errors.js';
import { Random } from './random.js';
import { watchOldKernels } from './tfjs.js';

const random = new Random(1);
const tensor = (...shape: number[]) =>
  tf.tensor(random.tensor('float32', shape).data, shape, 'float32');
const elements = (x: TfTensor) => Array.from(x.dataSync());

type Product = Parameters<typeof tf.fused.matMul>[0];

const activations: Record<string, (x: number, slope: number) => number> = {
  linear: (x) => x,
  relu: (x) => Math.max(x, 0),
  relu6: (x) => Math.min(Math.max(x, 0), 6),
  elu: (x) => (x < 0 ? Math.expm1(x) : x),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  leakyrelu: (x) => (x < 0 ? 0.3 * x : x),
  prelu: (x, slope) => (x < 0 ? slope * x : x),
};

/** An element of a tensor that broadcasts to a shape with this last part of an index. */
function at({ shape }: TfTensor, values: number[], index: readonly number[]): number {
  const from = index.length - shape.length;
  const place = shape.reduce(
    (sum, size, axis) => sum * size + (size === 1 ? 0 : (index[from + axis] as number)),
    0,
  );
  return values[place] as number;
}

/** The product, by plain loops in float64. `shape`: that of the result. */
function wantedOf(product: Product, shape: readonly number[]): number[] {
  const { a, b, transposeA, transposeB, bias, activation = 'linear' } = product;
  const slopes = product.preluActivationWeights;
  const [ofA, ofB] = [elements(a), elements(b)];
  const [ofBias, ofSlopes] = [bias, slopes].map((each) => (each ? elements(each) : []));
  const k = a.shape.at(transposeA ? -2 : -1) as number;
  const size = shape.reduce((product, size) => product * size, 1);
  return Array.from({ length: size }, (_, place) => {
    const index: number[] = [];
    for (let axis = shape.length - 1; axis >= 0; --axis) {
      index.unshift(place % (shape[axis] as number));
      place = Math.floor(place / (shape[axis] as number));
    }
    const batch = index.slice(0, -2);
    const [i, j] = index.slice(-2) as [number, number];
    let sum = bias ? at(bias, ofBias as number[], index) : 0;
    for (let step = 0; step < k; ++step) {
      const x = at(a, ofA, [...batch, ...(transposeA ? [step, i] : [i, step])]);
      sum += x * at(b, ofB, [...batch, ...(transposeB ? [j, step] : [step, j])]);
    }
    const slope = slopes ? at(slopes, ofSlopes as number[], index) : 0;
    return (activations[activation] as (x: number, slope: number) => number)(sum, slope);
  });
}

function expectClose(found: number[], wanted: number[]): void {
  expect(found.length).toBe(wanted.length);
  const worst = Math.max(0, ...found.map((value, i) => Math.abs(value - (wanted[i] as number))));
  expect(worst).toBeLessThan(1e-4);
  expect(found.some(Number.isNaN)).toBe(wanted.some(Number.isNaN));
}

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  expect(wg.memory().inUse).toBe(0);
  wg.dispose();
});

describe.each(['wasm', 'cpu'])('%s', (backendName) => {
  let tensorsBefore: ReturnType<typeof tf.memory>;
  beforeEach(async () => {
    await tf.setBackend(backendName);
    tensorsBefore = tf.memory();
  });
  afterEach(() => {
    const { numTensors, numDataBuffers } = tf.memory();
    expect({ numTensors, numDataBuffers }).toEqual({
      numTensors: tensorsBefore.numTensors,
      numDataBuffers: tensorsBefore.numDataBuffers,
    });
  });

  describe('products', () => {
    let remove: () => void;
    let old: ReturnType<typeof watchOldKernels>;
    beforeAll(async () => {
      old = watchOldKernels(tf, backendName);
      remove = await install(tf, { wg, always: true });
    });
    afterAll(() => {
      remove();
      old.restore();
      expect(old.calls).toBe(0);
    });

    const shapes: [a: number[], b: number[]][] = [
      [[], []],
      [[1], []],
      [[3], []],
      [[], [3]],
      [[3], [3]],
      [[3], [1]],
      [
        [2, 1],
        [1, 3],
      ],
      [
        [2, 3],
        [2, 3],
      ],
    ];
    for (const [transposeA, transposeB] of [
      [false, false],
      [false, true],
      [true, false],
      [true, true],
    ] as const)
      it.each(shapes)(`%j x %j, transposes ${transposeA} ${transposeB}`, (batchOfA, batchOfB) => {
        tf.tidy(() => {
          for (const [m, n, k] of [
            [1, 1, 1],
            [5, 7, 49],
            [3, 17, 4],
          ] as const) {
            const a = tensor(...batchOfA, ...(transposeA ? [k, m] : [m, k]));
            const b = tensor(...batchOfB, ...(transposeB ? [n, k] : [k, n]));
            for (const times of [1, 2, 3]) {
              const y = tf.matMul(a, b, transposeA, transposeB);
              expect(y.shape.slice(-2), `time ${times}`).toEqual([m, n]);
              expectClose(elements(y), wantedOf({ a, b, transposeA, transposeB }, y.shape));
            }
          }
        });
      });

    describe.each(Object.keys(activations))('%s', (activation) => {
      const shapesOfBias = [null, [7], [1], [1, 7], [5, 7], [5, 1], [3, 5, 7], [3, 1, 1]];
      it.each(shapesOfBias.map((shape) => ({ shape })))('bias $shape', ({ shape }) => {
        tf.tidy(() => {
          for (const transposeB of [false, true])
            for (const batch of [[], [3]]) {
              const bias = shape ? tensor(...shape) : undefined;
              // A bias with more axes than the result is refused.
              if (bias && bias.shape.length > batch.length + 2) continue;
              const product = {
                a: tensor(...batch, 5, 49),
                b: transposeB ? tensor(7, 49) : tensor(49, 7),
                transposeB,
                bias,
                activation,
                preluActivationWeights: activation === 'prelu' ? tensor(7) : undefined,
                leakyreluAlpha: 0.3,
              } as Product;
              const y = tf.fused.matMul(product);
              expect(y.shape).toEqual([...batch, 5, 7]);
              expectClose(elements(y), wantedOf(product, y.shape));
            }
        });
      });
    });

    const shapesOfSlopes = [[7], [1], [5, 1], [5, 7], [3, 1, 1], [3, 5, 7]];
    it.each(shapesOfSlopes.map((shape) => ({ shape })))('slopes $shape', ({ shape }) => {
      tf.tidy(() => {
        const [a, b, preluActivationWeights] = [tensor(3, 5, 4), tensor(4, 7), tensor(...shape)];
        const product = { a, b, activation: 'prelu', preluActivationWeights };
        const y = tf.fused.matMul(product);
        expectClose(elements(y), wantedOf(product, y.shape));
      });
    });

    it('empty operands', () => {
      tf.tidy(() => {
        expect(elements(tf.matMul(tf.zeros([2, 0]), tf.zeros([0, 3])))).toEqual(Array(6).fill(0));
        expect(tf.matMul(tf.zeros([0, 2]), tf.zeros([2, 3])).shape).toEqual([0, 3]);
        expect(tf.matMul(tf.zeros([0, 2, 2]), tf.zeros([2, 3])).shape).toEqual([0, 2, 3]);
      });
    });

    it('NaN stays, with each activation', () => {
      tf.tidy(() => {
        const [a, b] = [tf.tensor([[NaN, 1]]), tf.tensor([[1], [1]])];
        for (const activation of ['linear', 'relu', 'relu6', 'elu', 'leakyrelu', 'prelu'])
          expect(
            elements(tf.fused.matMul({ a, b, activation, preluActivationWeights: tf.ones([1]) })),
            activation,
          ).toEqual([NaN]);
      });
    });

    it('a variable that is assigned', () => {
      tf.tidy(() => {
        const [a, b] = [tensor(4, 4), tf.variable(tensor(4, 4))];
        for (let i = 0; i < 4; ++i) {
          for (let times = 0; times < 3; ++times)
            expectClose(elements(tf.matMul(a, b)), wantedOf({ a, b }, [4, 4]));
          b.assign(tensor(4, 4));
        }
        b.dispose();
      });
    });

    it('the same data in other shapes, and transposed', () => {
      tf.tidy(() => {
        const b = tensor(6, 4);
        for (let times = 0; times < 3; ++times)
          for (const [rows, columns] of [
            [6, 4],
            [4, 6],
            [3, 8],
          ] as const)
            for (const transposeB of [false, true]) {
              const view = tf.reshape(b, [rows, columns]);
              const a = tensor(2, transposeB ? columns : rows);
              const y = tf.matMul(a, view, false, transposeB);
              expectClose(elements(y), wantedOf({ a, b: view, transposeB }, y.shape));
            }
      });
    });

    it('packed weights end with their tensor', () => {
      const { inUse } = wg.memory();
      const [a, b] = [tensor(4, 64), tensor(64, 32)];
      const clone = tf.reshape(b, [64, 32]);
      const multiply = () => tf.matMul(a, b).dispose();
      multiply();
      expect(wg.memory().inUse).toBe(inUse);
      multiply();
      const packed = wg.memory().inUse;
      expect(packed).toBeGreaterThanOrEqual(inUse + 4 * 64 * 32);
      multiply();
      clone.dispose();
      expect(wg.memory().inUse).toBe(packed);
      b.dispose();
      expect(wg.memory().inUse).toBe(inUse);
      a.dispose();
    });

    it('packed weights end with a tensor that is collected', async () => {
      if (backendName === 'wasm') return; // its memory keeps what nobody disposes of
      const { inUse } = wg.memory();
      const bytes = 4 * 64 * 64;
      for (let i = 0; i < 20; ++i) {
        const [a, b] = [tensor(64, 64), tensor(64, 64)];
        for (let times = 0; times < 2; ++times) tf.matMul(a, b).dispose();
      }
      tensorsBefore = tf.memory(); // tfjs counts them for ever
      expect(wg.memory().inUse).toBeGreaterThanOrEqual(inUse + 20 * bytes);
      // The engine may keep the last one.
      for (let tries = 0; tries < 50 && wg.memory().inUse >= inUse + 2 * bytes; ++tries) {
        (globalThis as { gc?: () => void }).gc?.();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect(wg.memory().inUse).toBeLessThan(inUse + 2 * bytes);
    });
  });

  it('restores everything, and may be removed twice', async () => {
    const { inUse } = wg.memory();
    const names = ['BatchMatMul', '_FusedMatMul'];
    const kernels = names.map((name) => tf.getKernel(name, backendName));
    const backend = tf.backend();
    const { disposeData } = backend;
    const isOwn = Object.hasOwn(backend, 'disposeData');
    const [a, b] = [tensor(4, 64), tensor(64, 32)];
    const multiply = () => tf.matMul(a, b).dispose();

    const remove = await install(tf, { wg, always: true });
    names.forEach((name, i) => expect(tf.getKernel(name, backendName)).not.toBe(kernels[i]));
    multiply();
    multiply();
    expect(wg.memory().inUse).toBeGreaterThan(inUse);
    expect(backend.disposeData).not.toBe(disposeData);
    for (let times = 0; times < 2; ++times) {
      remove();
      names.forEach((name, i) => expect(tf.getKernel(name, backendName)).toBe(kernels[i]));
      expect(backend.disposeData).toBe(disposeData);
      expect(Object.hasOwn(backend, 'disposeData')).toBe(isOwn);
      expect(wg.memory().inUse).toBe(inUse);
    }
    expect(wg.disposed).toBe(false);
    multiply();

    // An earlier remove() does not affect a later install().
    const again = await install(tf, { wg });
    remove();
    expect(tf.getKernel('BatchMatMul', backendName)).not.toBe(kernels[0]);
    again();
    a.dispose();
    b.dispose();
  });

  it('leaves kernels and hooks of others when it is removed', async () => {
    const [a, b] = [tensor(4, 64), tensor(64, 32)];
    const before = tf.getKernel('BatchMatMul', backendName);
    const backend = tf.backend();
    const old = watchOldKernels(tf, backendName);
    const remove = await install(tf, { wg, always: true });
    const ours = tf.getKernel('BatchMatMul', backendName);
    const theirs = { ...ours };
    const replaceBy = (kernel: typeof ours) => {
      tf.unregisterKernel('BatchMatMul', backendName);
      tf.registerKernel(kernel);
    };
    for (let times = 0; times < 2; ++times) tf.matMul(a, b).dispose();
    replaceBy(theirs);
    const hook = backend.disposeData;
    const theirHook: typeof hook = (...args) => hook.apply(backend, args);
    backend.disposeData = theirHook;

    remove();
    expect(tf.getKernel('BatchMatMul', backendName)).toBe(theirs);
    expect(backend.disposeData).toBe(theirHook);
    expect(old.calls).toBe(0);
    tf.matMul(a, b).dispose();
    expect(old.calls).toBe(1);
    a.dispose();
    b.dispose();
    old.restore();
    replaceBy(before);
    delete (backend as Partial<typeof backend>).disposeData;
  });

  it('computes by the old kernels once the instance has ended', async () => {
    const own = await createGemm();
    const old = watchOldKernels(tf, backendName);
    const remove = await install(tf, { wg: own, always: true });
    tf.tidy(() => {
      const [a, b] = [tensor(3, 4), tensor(4, 5)];
      for (let times = 0; times < 3; ++times) tf.matMul(a, b);
      expect(old.calls).toBe(0);
      own.dispose();
      expectClose(elements(tf.matMul(a, b)), wantedOf({ a, b }, [3, 5]));
      expect(old.calls).toBe(1);
    });
    remove();
    old.restore();
  });

  it('computes by the old kernels if there is no memory', async () => {
    const full = await createGemm({ maxMemory: 1 });
    for (let size = 2 ** 20; size > 0; size = Math.floor(size / 2)) {
      try {
        for (;;) full.alloc('float32', [size]);
      } catch (error) {
        expect(error).toBeInstanceOf(OutOfMemoryError);
      }
    }
    const old = watchOldKernels(tf, backendName);
    const remove = await install(tf, { wg: full, always: true });
    tf.tidy(() => {
      const [a, b] = [tensor(20, 30), tensor(30, 40)];
      const before = tf.backend().numDataIds();
      for (let times = 1; times <= 3; ++times) {
        const y = tf.matMul(a, b);
        expect(old.calls).toBe(times);
        expectClose(elements(y), wantedOf({ a, b }, [20, 40]));
        y.dispose();
        expect(tf.backend().numDataIds()).toBe(before);
      }
    });
    remove();
    old.restore();
    full.dispose();
  });

  it('leaves other types, and what is wrong, to the old kernels', async () => {
    const remove = await install(tf, { wg, always: true });
    tf.tidy(() => {
      const integers = tf.tensor([[1, 2]], [1, 2], 'int32');
      const column = tf.reshape(integers, [2, 1]);
      if (backendName === 'cpu') {
        const y = tf.matMul(integers, column);
        expect([y.dtype, ...elements(y)]).toEqual(['int32', 5]);
      } else expect(() => tf.matMul(integers, column)).toThrow('non non-float32');
      expect(() => tf.matMul(tensor(2, 3), tensor(2, 3))).toThrow('inner shapes (3) and (2)');
      expect(() => tf.matMul(tensor(2, 2, 3), tensor(3, 3, 3))).toThrow('broadcast');
      const fused = { a: tensor(2, 3), b: tensor(3, 4) };
      expect(() => tf.fused.matMul({ ...fused, activation: 'none' })).toThrow();
      expect(() => tf.fused.matMul({ ...fused, bias: tensor(3) })).toThrow('broadcast');
    });
    remove();
  });

  it('computes small products by the old kernel, unless `always`', async () => {
    for (const always of [undefined, false, true]) {
      const old = watchOldKernels(tf, backendName);
      const remove = await install(tf, { wg, always });
      tf.tidy(() => {
        tf.matMul(tensor(1, 2), tensor(2, 1));
        expect(old.calls).toBe(always ? 0 : 1);
        tf.matMul(tensor(100, 200), tensor(100, 100), true);
        tf.matMul(tensor(3, 100, 100), tensor(100, 100));
        expect(old.calls).toBe(always ? 0 : 1);
      });
      remove();
      old.restore();
    }
  });
});

it('adds the bias once, which tfjs does once per 48 steps of K', async () => {
  await tf.setBackend('wasm');
  const sums = () =>
    tf.tidy(() => {
      const [a, b, bias] = [tf.ones([1, 96]), tf.ones([1, 96]), tf.fill([1], 100)];
      const batch = [tf.ones([2, 1, 96]), tf.ones([96, 1])] as const;
      return [
        ...elements(tf.fused.matMul({ a, b, transposeB: true, bias })),
        ...elements(tf.fused.matMul({ a: batch[0], b: batch[1], bias })),
      ];
    });
  // If this fails, tfjs is right: then `isRight` of tfjs-kernels.ts need not look at the bias.
  expect(sums()).toEqual([296, 296, 296]);
  const remove = await install(tf, { wg });
  expect(sums()).toEqual([196, 196, 196]);
  remove();
});

describe('install refuses', () => {
  const functions = {
    getKernel: () => undefined,
    registerKernel: () => undefined,
    unregisterKernel: () => undefined,
  };
  const notTf = 'tf is';
  it.each<[string, unknown, unknown, string, (string | RegExp)[]]>([
    ['nothing', undefined, {}, 'tf', [notTf, 'undefined', 'the namespace of TensorFlow.js']],
    ['a number', 1, {}, 'tf', [notTf, '1']],
    ['an object', {}, {}, 'tf', ['getKernel', 'undefined', 'must be a function']],
    [
      'part of tf',
      { ...functions, registerKernel: 1 },
      {},
      'tf',
      ['registerKernel', '1', 'must be a function'],
    ],
    [
      'tf without backends',
      functions,
      {},
      'tf',
      ['no kernel BatchMatMul or _FusedMatMul', "'wasm' or 'cpu'", '@tensorflow/tfjs-backend-wasm'],
    ],
    ['options that are a number', tf, 1, 'options', ['is 1', 'must be an object']],
    ['another wg', tf, { wg: {} }, 'wg', ['an object', 'must be an instance of wgemm']],
    ['wg null', tf, { wg: null }, 'wg', ['null', 'must be an instance of wgemm']],
    ['always', tf, { always: 1 }, 'always', ['is 1', 'must be a boolean']],
  ])('%s', async (_, given, options, argument, says) => {
    const error = await install(given as never, options as never).catch((error: unknown) => error);
    expectError(error, { code: 'ARGUMENT', op: 'install', argument, says });
  });

  it('wg beside other options, and unknown options', async () => {
    const failed = (options: object) => install(tf, options).catch((error: unknown) => error);
    const says = ['not known', 'wg, always'];
    expectError(await failed({ wg, threads: 1 }), {
      code: 'ARGUMENT',
      op: 'install',
      argument: 'threads',
      says,
    });
    expectError(await failed({ thread: 1 }), {
      code: 'ARGUMENT',
      op: 'createGemm',
      argument: 'thread',
      says: ['not known'],
    });
  });

  it('an instance that has ended', async () => {
    const ended = await createGemm();
    ended.dispose();
    const error = await install(tf, { wg: ended }).catch((error: unknown) => error);
    expectError(error, { code: 'DISPOSED', op: 'install', argument: 'instance', says: [] });
  });

  it('a second time, also at once', async () => {
    const kernel = tf.getKernel('BatchMatMul', 'cpu');
    const wanted = {
      code: 'ARGUMENT',
      op: 'install',
      argument: 'tf',
      says: ['has wgemm installed', 'call the function'],
    } as const;
    const both = await Promise.allSettled([install(tf), install(tf)]);
    const [first, second] = both.sort((a) => (a.status === 'fulfilled' ? -1 : 1));
    expectError((second as PromiseRejectedResult).reason, wanted);
    expectError(await install(tf, { wg }).catch((error: unknown) => error), wanted);
    (first as PromiseFulfilledResult<() => void>).value();
    expect(tf.getKernel('BatchMatMul', 'cpu')).toBe(kernel);
  });
});
