/**
 * `wgemm/tfjs`: products of tfjs with wgemm installed, next to plain loops; tensors and packed weights
 * that end; what `remove` restores; what `install` refuses.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGemm, type Gemm, OutOfMemoryError } from 'wgemm';
import { install } from 'wgemm/tfjs';
import { createGemm as startInline } from 'wgemm/inline';
import { createGemm as startWorker } from 'wgemm/worker';
import { tf } from '../../peers/tfjs-backends.mjs';
import { expectError } from '../support/errors.js';
import { Random } from '../support/random.js';
import {
  activations,
  elements,
  expectClose,
  type Product,
  wantedOf,
  watchOldKernels,
} from './tfjs.js';

const random = new Random(1);
const tensor = (...shape: number[]) =>
  tf.tensor(random.tensor('float32', shape).data, shape, 'float32');

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
const originals = ['wasm', 'cpu'].flatMap((backendName) =>
  ['BatchMatMul', '_FusedMatMul', 'Reshape'].map(
    (name) => [[name, backendName], tf.getKernel(name, backendName)] as const,
  ),
);
afterAll(() => {
  expect(wg.memory().inUse).toBe(0);
  wg.dispose();
});

/** Batch axes of a and b, of which `tf.fused.matMul` makes one axis each. */
const batchAxes: [a: number[], b: number[]][] = [
  [
    [2, 3],
    [2, 3],
  ],
  [[2, 3], []],
  [[], [2, 3]],
  [
    [2, 3],
    [1, 3],
  ],
  [
    [2, 1],
    [1, 3],
  ],
  [[2, 3], [3]],
  [
    [3, 2],
    [1, 1],
  ],
  [
    [2, 3, 2],
    [2, 3, 2],
  ],
  [
    [2, 1, 2],
    [3, 2],
  ],
];

/** Compares fused products with plain loops. */
function expectBatchAxes(activation: string): void {
  for (const [batchOfA, batchOfB] of batchAxes) {
    const rank = Math.max(batchOfA.length, batchOfB.length);
    const sizeAt = (batch: number[], axis: number) => batch[axis - rank + batch.length] ?? 1;
    const batch = Array.from({ length: rank }, (_, axis) =>
      Math.max(sizeAt(batchOfA, axis), sizeAt(batchOfB, axis)),
    );
    for (let round = 0; round < 8; ++round) {
      const [m, n, k] = [random.between(1, 4), random.between(1, 5), random.pick([1, 3, 50])];
      const [transposeA, transposeB] = [round % 2 === 1, round % 4 > 1];
      const shape = [...batch, m, n];
      /** A shape that broadcasts to the shape of the result. */
      const part = () =>
        shape.slice(random.between(0, rank + 1)).map((size) => random.pick([1, size]));
      tf.tidy(() => {
        const product = {
          a: tensor(...batchOfA, ...(transposeA ? [k, m] : [m, k])),
          b: tensor(...batchOfB, ...(transposeB ? [n, k] : [k, n])),
          ...{ transposeA, transposeB, activation, leakyreluAlpha: 0.3 },
          bias: random.next() < 0.8 ? tensor(...part()) : undefined,
          preluActivationWeights: activation === 'prelu' ? tensor(...part()) : undefined,
        } as Product;
        const y = tf.fused.matMul(product);
        expect(y.shape).toEqual(shape);
        expectClose(elements(y), wantedOf(product, shape));
      });
    }
  }
}

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

    const shapesOfSlopes = [
      ...[[7], [1], [1, 7], [5, 1], [5, 7], [7, 1], [7, 7], [3, 1, 1], [3, 5, 7], [1, 5, 7]],
      ...[
        [3, 5, 1],
        [3, 1, 7],
      ],
    ];
    it.each(shapesOfSlopes.map((shape) => ({ shape })))('slopes $shape', ({ shape }) => {
      tf.tidy(() => {
        const m = shape.at(-2) === 7 ? 7 : 5;
        const [a, b, preluActivationWeights] = [tensor(3, m, 4), tensor(4, 7), tensor(...shape)];
        const product = { a, b, activation: 'prelu', preluActivationWeights };
        const y = tf.fused.matMul(product);
        expectClose(elements(y), wantedOf(product, y.shape));
      });
    });

    it.each(Object.keys(activations))(
      'several batch axes, bias and slopes of any rank, %s',
      (name) => {
        expectBatchAxes(name);
      },
    );

    it.each(Object.keys(activations))('empty operands, %s', (activation) => {
      tf.tidy(() => {
        expect(elements(tf.matMul(tf.zeros([2, 0]), tf.zeros([0, 3])))).toEqual(Array(6).fill(0));
        const [bias, slopes] = [tf.tensor([-1, 0, 2]), tf.fill([3], 0.5)];
        const preluActivationWeights = activation === 'prelu' ? slopes : undefined;
        for (const [a, b] of [
          [
            [2, 0],
            [0, 3],
          ],
          [
            [0, 2],
            [2, 3],
          ],
          [
            [2, 4, 0],
            [0, 3],
          ],
          [
            [0, 2, 2],
            [2, 3],
          ],
          [
            [0, 2, 2],
            [0, 2, 3],
          ],
        ] as const) {
          const operands = { a: tf.zeros(a), b: tf.zeros(b), bias };
          const product = { ...operands, activation, preluActivationWeights, leakyreluAlpha: 0.3 };
          const y = tf.fused.matMul(product);
          expect(y.shape).toEqual([...a.slice(0, -1), 3]);
          expectClose(elements(y), wantedOf(product, y.shape));
        }
        const empty = { a: tf.zeros([2, 3]), b: tf.zeros([3, 0]) };
        const noSlopes = activation === 'prelu' ? tf.zeros([0]) : undefined;
        const y = tf.fused.matMul({
          ...empty,
          ...{ activation, preluActivationWeights: noSlopes },
        });
        expect([y.shape, elements(y)]).toEqual([[2, 0], []]);
      });
    });

    it.each(Object.keys(activations))('NaN and infinities, %s', (activation) => {
      tf.tidy(() => {
        const numbers = [NaN, Infinity, -Infinity, 1e30, -1e30, -200, 200, 0];
        const preluActivationWeights = activation === 'prelu' ? tf.tensor([0.25]) : undefined;
        // Without and with the kernel of XNNPACK.
        for (const transposeB of [false, true]) {
          const [a, b] = [tf.tensor(numbers, [numbers.length, 1]), tf.ones([1, 1])];
          const product = { a, b, transposeB, activation, preluActivationWeights };
          const y = tf.fused.matMul({ ...product, leakyreluAlpha: 0.3 });
          const wanted = wantedOf(product as Product, y.shape).map(Math.fround);
          elements(y).forEach((value, i) => {
            const right = wanted[i] as number;
            if (!(Math.abs(value - right) <= 1e-6 * Math.abs(right) + 1e-6))
              expect(value, `of ${numbers[i]}`).toBe(right);
          });
        }
      });
    });

    it('leakyreluAlpha is 0.2 by default, and may be 0', () => {
      tf.tidy(() => {
        const [a, b] = [tf.tensor([-10], [1, 1]), tf.ones([1, 1])];
        const product = { a, b, activation: 'leakyrelu' };
        expectClose(elements(tf.fused.matMul(product)), [-2]);
        expectClose(elements(tf.fused.matMul({ ...product, leakyreluAlpha: 0 })), [-0]);
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

    it('packed weights of a variable end with each value, and those in tidy() with it', () => {
      const { inUse } = wg.memory();
      const [a, first] = [tensor(4, 64), tensor(64, 32)];
      const b = tf.variable(first);
      first.dispose();
      let packed = 0;
      for (let i = 0; i < 3; ++i) {
        tf.tidy(() => {
          for (let times = 0; times < 3; ++times) tf.matMul(a, b);
        });
        if (i === 0) packed = wg.memory().inUse;
        expect(packed).toBeGreaterThan(inUse);
        expect(wg.memory().inUse).toBe(packed);
        const next = tensor(64, 32);
        b.assign(next);
        next.dispose();
        expect(wg.memory().inUse).toBe(inUse);
      }
      b.dispose();
      tf.tidy(() => {
        const local = tensor(64, 32);
        for (let times = 0; times < 3; ++times) tf.matMul(a, local);
        expect(wg.memory().inUse).toBe(packed);
      });
      expect(wg.memory().inUse).toBe(inUse);
      a.dispose();
    });

    it('data in shared memory', () => {
      if (typeof SharedArrayBuffer === 'undefined') return; // the page is not isolated
      tf.tidy(() => {
        const shared = (...shape: number[]) => {
          const { data } = random.tensor('float32', shape);
          const copy = new Float32Array(new SharedArrayBuffer(data.byteLength));
          copy.set(data as Float32Array);
          return tf.tensor(copy, shape, 'float32');
        };
        const [a, b] = [shared(5, 6), shared(6, 7)];
        for (let times = 0; times < 3; ++times)
          expectClose(elements(tf.matMul(a, b)), wantedOf({ a, b }, [5, 7]));
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

  it('has several batch axes right at every size, with bias and slopes of any rank', async () => {
    const remove = await install(tf, { wg });
    try {
      for (const activation of Object.keys(activations)) expectBatchAxes(activation);
    } finally {
      remove();
    }
  });

  it('takes a bias that was made with other axes', async () => {
    const remove = await install(tf, { wg });
    try {
      tf.tidy(() => {
        const product = { a: tensor(2, 3), b: tensor(3, 4), bias: tf.reshape(tensor(1, 4), [4]) };
        expectClose(elements(tf.fused.matMul(product)), wantedOf(product, [2, 4]));
      });
    } finally {
      remove();
    }
  });

  it('is not misled by axes that were reshaped before', async () => {
    const remove = await install(tf, { wg, always: true });
    try {
      tf.tidy(() => {
        const [a, b] = [tensor(2, 3, 4, 5), tensor(3, 2, 5, 4)];
        const product = {
          a: tf.reshape(a, [6, 4, 5]),
          b: tf.reshape(b, [6, 5, 4]),
          bias: tensor(6, 1, 4),
        };
        const wanted = wantedOf(product, [6, 4, 4]);
        expectClose(elements(tf.fused.matMul(product)), wanted);
        tf.reshape(a, [6, 4, 5]);
        tf.reshape(b, [6, 5, 4]);
        const plain = { a: product.a, b: product.b };
        expectClose(elements(tf.matMul(plain.a, plain.b)), wantedOf(plain, [6, 4, 4]));
      });
    } finally {
      remove();
    }
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

  it('may be removed before a later install(), by way of kernels of others', async () => {
    const before = tf.getKernel('BatchMatMul', backendName);
    const [own, other] = [await createGemm(), await createGemm()];
    const [a, b] = [tensor(4, 64), tensor(64, 32)];
    const wanted = wantedOf({ a, b }, [4, 32]);
    const multiply = () => {
      for (let times = 0; times < 2; ++times) {
        const y = tf.matMul(a, b);
        expectClose(elements(y), wanted);
        y.dispose();
      }
    };
    const first = await install(tf, { wg: own, always: true });
    multiply();
    // Somebody replaces all kernels of ours, so that install() does not see them.
    const names = ['BatchMatMul', '_FusedMatMul'];
    const theirs = ['wasm', 'cpu'].flatMap((backendName) =>
      names.map((kernelName) => {
        const ours = tf.getKernel(kernelName, backendName);
        tf.unregisterKernel(kernelName, backendName);
        const kernel = { kernelName, backendName, kernelFunc: ours.kernelFunc };
        tf.registerKernel(kernel);
        return kernel;
      }),
    );
    const second = await install(tf, { wg: other, always: true });
    multiply();
    expect([own, other].map((each) => each.memory().inUse > 0)).toEqual([true, true]);
    first();
    expect([own, other].map((each) => each.memory().inUse > 0)).toEqual([false, true]);
    multiply();
    second();
    expect(other.memory().inUse).toBe(0);
    multiply();
    for (const kernel of theirs)
      expect(tf.getKernel(kernel.kernelName, kernel.backendName)).toBe(kernel);
    expect([own, other].map((each) => each.memory().inUse)).toEqual([0, 0]);
    for (const each of [a, b, own, other]) each.dispose();
    for (const [name, kernel] of originals) {
      const [kernelName, backendName] = name;
      tf.unregisterKernel(kernelName, backendName);
      tf.registerKernel(kernel);
    }
    expect(tf.getKernel('BatchMatMul', backendName)).toBe(before);
    delete (tf.backend() as Partial<ReturnType<typeof tf.backend>>).disposeData;
  });

  it('frees packed weights with their backend, and serves the next one', async () => {
    const { inUse } = wg.memory();
    const other = backendName === 'cpu' ? 'wasm' : 'cpu';
    const remove = await install(tf, { wg, always: true });
    const multiply = () =>
      tf.tidy(() => {
        const [a, b] = [tensor(4, 64), tensor(64, 32)];
        for (let times = 0; times < 3; ++times)
          expectClose(elements(tf.matMul(a, b)), wantedOf({ a, b }, [4, 32]));
      });
    const kept = [tensor(4, 64), tensor(64, 32)] as const;
    for (let times = 0; times < 2; ++times) tf.matMul(...kept).dispose();
    expect(wg.memory().inUse).toBeGreaterThan(inUse);
    const old = tf.backend();
    const factory = tf.findBackendFactory(backendName);
    tf.removeBackend(backendName);
    expect(wg.memory().inUse).toBe(inUse);
    expect(Object.hasOwn(old, 'disposeData')).toBe(false);
    // It starts when wgemm is installed.
    tf.registerBackend(backendName, factory);
    await tf.setBackend(backendName);
    expect(tf.backend()).not.toBe(old);
    multiply();
    expect(wg.memory().inUse).toBe(inUse);
    // Weights move with the tensor from one backend to another.
    const [a, b] = [tensor(4, 64), tensor(64, 32)];
    const wanted = wantedOf({ a, b }, [4, 32]);
    for (const name of [backendName, other, backendName]) {
      await tf.setBackend(name);
      for (let times = 0; times < 3; ++times) {
        const y = tf.matMul(a, b);
        expectClose(elements(y), wanted);
        y.dispose();
      }
    }
    a.dispose();
    b.dispose();
    expect(wg.memory().inUse).toBe(inUse);
    remove();
    // tfjs counts the tensors of the backend that ended.
    tensorsBefore = tf.memory();
  });

  it('packs weights up to half of the memory', async () => {
    const maxMemory = 32 * 2 ** 20;
    const small = await createGemm({ maxMemory });
    const remove = await install(tf, { wg: small });
    const old = tf.memory();
    const a = tensor(8, 512);
    const weights = Array.from({ length: 20 }, () => tensor(512, 512));
    for (const b of weights) for (let times = 0; times < 3; ++times) tf.matMul(a, b).dispose();
    expect(small.memory().inUse).toBeGreaterThan(maxMemory / 2 - 2 ** 21);
    expect(small.memory().inUse).toBeLessThan(maxMemory / 2 + 2 ** 16);
    for (const each of [a, ...weights]) each.dispose();
    expect(small.memory().inUse).toBe(0);
    expect(tf.memory().numTensors).toBe(old.numTensors);
    remove();
    small.dispose();
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

  it('leaves complex, boolean and text operands as tfjs has them', async () => {
    const outcomes = () =>
      tf.tidy(() => {
        const plain = tf.ones([2, 2]);
        return [
          ...(backendName === 'cpu' ? [tf.complex(plain, plain)] : []), // `wasm` has none
          tf.tensor([true, false, true, true], [2, 2], 'bool'),
          tf.tensor([1, 2, 3, 4], [2, 2], 'int32'),
          tf.tensor(['a', 'b', 'c', 'd'], [2, 2], 'string'),
        ].flatMap((x) =>
          (
            [
              [x, x],
              [x, plain],
              [plain, x],
            ] as const
          ).map(([a, b]) => {
            try {
              const y = tf.fused.matMul({ a, b, bias: tf.ones([2]) });
              return [y.dtype, ...elements(y)];
            } catch (error) {
              return String(error);
            }
          }),
        );
      });
    const wanted = outcomes();
    const remove = await install(tf, { wg, always: true });
    expect(outcomes()).toEqual(wanted);
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

it('leaves products to XNNPACK whose bias or activation costs more than it gains', async () => {
  await tf.setBackend('wasm');
  const old = watchOldKernels(tf, 'wasm');
  const remove = await install(tf, { wg });
  const isOld = (body: () => unknown) => {
    const { calls } = old;
    tf.tidy(() => void body());
    return old.calls > calls;
  };
  const isOldWith = ([m, k, n]: readonly [number, number, number]) => {
    const [a, b, bias] = [tensor(m, k), tensor(k, n), tensor(n)];
    const fused = (product: Partial<Product>) => () => tf.fused.matMul({ a, b, ...product });
    const found = {
      plain: isOld(() => tf.matMul(a, b)),
      bias: isOld(fused({ bias })),
      relu: isOld(fused({ activation: 'relu' })),
      both: isOld(fused({ bias, activation: 'sigmoid' })),
      prelu: isOld(fused({ activation: 'prelu', preluActivationWeights: bias })),
    };
    for (const each of [a, b, bias]) each.dispose();
    return found;
  };
  const never = { plain: false, bias: false, relu: false, both: false, prelu: false };
  expect(isOldWith([64, 64, 64])).toEqual(never);
  expect(isOldWith([10_000, 16, 16])).toEqual({
    ...never,
    bias: true,
    relu: true,
    both: true,
    prelu: true,
  });
  expect(isOldWith([1000, 16, 64])).toMatchObject({ plain: false, bias: true, both: true });
  // The result and its copy exceed L2.
  expect(isOldWith([1000, 8, 1000]).plain).toBe(true);
  expect(isOldWith([500, 8, 500]).plain).toBe(false);
  remove();
  old.restore();
});

it('leaves products to XNNPACK if it has more threads', async () => {
  await tf.setBackend('wasm');
  const { wasm } = tf.backend();
  const { tfjs } = wasm as NonNullable<typeof wasm>;
  const { getThreadsCount } = tfjs;
  const old = watchOldKernels(tf, 'wasm');
  const remove = await install(tf, { wg });
  const multiply = (transposeB: boolean) =>
    tf.tidy(() => void tf.matMul(tf.ones([64, 64]), tf.ones([64, 64]), false, transposeB));
  multiply(false);
  expect(old.calls).toBe(0);
  tfjs.getThreadsCount = () => wg.info.threads + 1;
  multiply(false);
  expect(old.calls).toBe(1);
  multiply(true); // its loops have one thread
  expect(old.calls).toBe(1);
  tfjs.getThreadsCount = getThreadsCount;
  remove();
  old.restore();
});

it('is right where tfjs adds the bias and applies bounds once per 48 steps of K', async () => {
  await tf.setBackend('wasm');
  const sums = () =>
    tf.tidy(() => {
      const [a, b, bias] = [tf.ones([1, 96]), tf.ones([1, 96]), tf.fill([1], 100)];
      const batch = [tf.ones([2, 1, 96]), tf.ones([96, 1])] as const;
      // The first 48 products of x and b are -1, and the others are 1.
      const signs = Array.from({ length: 96 }, (_, i) => (i < 48 ? -1 : 1));
      const x = tf.tensor(signs, [1, 96], 'float32');
      const rows = { a: tf.ones([2, 1]), b: tf.ones([2, 1]), bias: tf.tensor([10, 20]) };
      return [
        ...elements(tf.fused.matMul({ a, b, transposeB: true, bias })),
        ...elements(tf.fused.matMul({ a: batch[0], b: batch[1], bias })),
        ...elements(tf.fused.matMul({ a: x, b, transposeB: true, activation: 'relu' })),
        ...elements(tf.fused.matMul({ ...rows, transposeB: true })),
      ];
    });
  // If this fails, tfjs is right: then `isRight` of tfjs-kernels.ts need not look at the bias.
  expect(sums()).toEqual([296, 296, 296, 48, 11, 21, 21, 21]);
  const remove = await install(tf, { wg });
  expect(sums()).toEqual([196, 196, 196, 0, 11, 21, 11, 21]);
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
    ['an object', {}, {}, 'tf', ['tf.getKernel is undefined', 'the namespace of TensorFlow.js']],
    [
      'part of tf',
      { ...functions, registerKernel: 1 },
      {},
      'tf',
      ['tf.registerKernel is 1', 'the namespace of TensorFlow.js'],
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

  it('wg next to other options, and unknown options', async () => {
    const failed = (options: object) => install(tf, options).catch((error: unknown) => error);
    const wanted = { code: 'ARGUMENT', op: 'install' } as const;
    for (const options of [{ threads: 1 }, { maxMemory: 2 ** 30 }]) {
      const [argument] = Object.keys(options) as [string];
      const says = ['pass either wg or', 'not both'];
      expectError(await failed({ wg, ...options }), { ...wanted, argument, says });
    }
    const says = ['not known', 'wg, always, threads'];
    expectError(await failed({ thread: 1 }), { ...wanted, argument: 'thread', says });
    expectError(await failed({ wg, forever: true }), { ...wanted, argument: 'forever', says });
    expectError(await failed({ threads: 0 }), {
      code: 'ARGUMENT',
      op: 'createGemm',
      argument: 'threads',
      says: ['is 0', 'from 1'],
    });
    (await install(tf, { wg, threads: undefined, always: undefined }))();
  });

  it('instances of other entries, and promises', async () => {
    const [inWorker, inline] = [await startWorker(), await startInline()];
    for (const given of [inWorker, inline, createGemm()]) {
      const error = await install(tf, { wg: given as never }).catch((error: unknown) => error);
      const says = ['of wgemm, not of wgemm/worker or wgemm/inline'];
      if (given instanceof Promise) says.push('a promise, which must be awaited');
      expectError(error, { code: 'ARGUMENT', op: 'install', argument: 'wg', says });
      (await given).dispose();
    }
    const error = await install(Promise.resolve(tf) as never).catch((error: unknown) => error);
    expectError(error, {
      ...{ code: 'ARGUMENT', op: 'install', argument: 'tf' },
      says: ['getKernel', 'undefined', 'await a promise of it'],
    });
  });

  it('what is not a kernel', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const kernel of [null, 1, 'kernel', {}, { kernelFunc: 1 }, proxy]) {
      const given = { ...functions, getKernel: () => kernel };
      const error = await install(given as never).catch((error: unknown) => error);
      expectError(error, {
        ...{ code: 'ARGUMENT', op: 'install', argument: 'tf' },
        says: ['has kernel BatchMatMul of wasm, which is ', 'an object with a kernelFunc'],
      });
    }
  });

  it('nothing by halves: an error of tf leaves the kernels as they were', async () => {
    const hostile = new Proxy(functions, {
      get: () => {
        throw new Error('hostile');
      },
    });
    await expect(install(hostile as never, { wg })).rejects.toThrow('hostile');
    for (const failing of [1, 2, 3, 4]) {
      let calls = 0;
      const given = {
        ...tf,
        getKernel: tf.getKernel,
        unregisterKernel: tf.unregisterKernel,
        registerKernel(kernel: ReturnType<typeof tf.getKernel>) {
          tf.registerKernel(kernel);
          if (++calls === failing) throw new Error(`call ${failing}`);
        },
      };
      await expect(install(given, { wg })).rejects.toThrow(`call ${failing}`);
      for (const [[kernelName, backendName], kernel] of originals)
        expect(tf.getKernel(kernelName, backendName)).toBe(kernel);
    }
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
