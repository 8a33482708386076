// tfjs' own tests of matrix products, with wgemm installed in both backends.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { install } from 'wgemm/tfjs';
import { bundleTfjsTests } from '../peers/tfjs-tests.mjs';

const { tf, declareTests } = await bundleTfjsTests();

/** Calls of old kernels, by the types of their operands. */
const oldCalls = new Map<string, number>();
for (const backendName of ['wasm', 'cpu']) {
  for (const kernelName of ['BatchMatMul', '_FusedMatMul']) {
    const old = tf.getKernel(kernelName, backendName);
    tf.unregisterKernel(kernelName, backendName);
    tf.registerKernel({
      ...old,
      kernelFunc(args) {
        const { a, b } = args.inputs as Record<'a' | 'b', { dtype: string }>;
        const key = `${backendName}: ${a.dtype}, ${b.dtype}`;
        oldCalls.set(key, (oldCalls.get(key) ?? 0) + 1);
        return old.kernelFunc(args);
      },
    });
  }
}
const remove = await install(tf, { always: true });
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it });
declareTests();

describe('the old kernels', () => {
  it('computed no float32 product', () => {
    expect([...oldCalls.keys()].filter((key) => key.endsWith('float32, float32'))).toEqual([]);
  });
});

afterAll(remove);
