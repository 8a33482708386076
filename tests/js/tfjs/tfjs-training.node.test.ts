// Training with wgemm installed: the gradients of matrix products are products, too.
import { describe, expect, it, vi } from 'vitest';
import { install } from 'wgemm/tfjs';
import type { TfTensor } from '../../peers/tfjs-backends.mjs';
import { bundleTfjs } from '../../peers/tfjs-bundle.mjs';
import { Random } from '../support/random.js';
import { watchOldKernels } from './tfjs.js';

// Importing a second copy of tfjs registers all kernels again, and warns of each.
const warn = vi.spyOn(console, 'warn').mockReturnValue();
const { tf } = await bundleTfjs();
const { tf: otherCopy } = await import('../../peers/tfjs-backends.mjs');
warn.mockRestore();

describe.each(['wasm', 'cpu'])('%s', (backendName) => {
  /** The losses of a network with a hidden layer, which computes all gradients of products. */
  const train = () => {
    const random = new Random(7);
    const make = (...shape: number[]) =>
      tf.tensor(random.tensor('float32', shape).data, shape, 'float32');
    const [x, y] = [make(32, 40), make(32, 3)];
    const variables = [make(40, 50), make(50), make(50, 3), make(3)].map((value): TfTensor => {
      const variable = tf.variable(value);
      value.dispose();
      return variable;
    });
    const [w1, b1, w2, b2] = variables as [TfTensor, TfTensor, TfTensor, TfTensor];
    const optimizer = tf.train.sgd(0.01);
    const losses = Array.from({ length: 20 }, () =>
      tf.tidy(() => {
        const loss = optimizer.minimize(() => {
          const hidden = tf.relu(tf.fused.matMul({ a: x, b: w1, bias: b1 }));
          return tf.mean(tf.square(tf.sub(tf.add(tf.matMul(hidden, w2), b2), y)));
        }, true);
        return loss.dataSync()[0] as number;
      }),
    );
    for (const each of [x, y, ...variables]) each.dispose();
    optimizer.dispose();
    return losses;
  };

  it('trains to the losses of the old kernels, and leaks no tensor', async () => {
    await tf.setBackend(backendName);
    const { numTensors, numDataBuffers } = tf.memory();
    const old = watchOldKernels(tf, backendName);
    const wanted = train();
    const { calls } = old;
    expect(calls).toBeGreaterThanOrEqual(20 * 5);
    const remove = await install(tf, { always: true });
    const found = train();
    remove();
    expect(old.calls).toBe(calls);
    old.restore();
    expect(tf.memory()).toMatchObject({ numTensors, numDataBuffers });
    expect(found.at(-1)).toBeLessThan((found[0] as number) / 2);
    found.forEach((loss, i) => expect(loss / (wanted[i] as number)).toBeCloseTo(1, 3));
  });

  it('serves all copies of tfjs in the page, which share their kernels', async () => {
    await tf.setBackend(backendName);
    const old = watchOldKernels(tf, backendName);
    const remove = await install(otherCopy, { always: true });
    await expect(install(tf)).rejects.toThrow('has wgemm installed');
    for (const each of [tf, otherCopy])
      each.tidy(() => {
        const y = each.matMul(each.ones([2, 3]), each.ones([3, 2]));
        expect(Array.from(y.dataSync())).toEqual([3, 3, 3, 3]);
      });
    expect(old.calls).toBe(0);
    remove();
    old.restore();
  });
});
