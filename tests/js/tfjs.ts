/** What the tests of `wgemm/tfjs` share. */
import type { Tf } from '../peers/tfjs-backends.mjs';

/**
 * Counts the calls of the old kernels that return products of float32, until `restore`. Call it before
 * `install`.
 */
export function watchOldKernels(tf: Tf, backendName: string) {
  const counter = { calls: 0, restore: () => undefined as void };
  const kernels = ['BatchMatMul', '_FusedMatMul'].map((name) => tf.getKernel(name, backendName));
  const register = (kernel: (typeof kernels)[number]) => {
    tf.unregisterKernel(kernel.kernelName, backendName);
    tf.registerKernel(kernel);
  };
  for (const old of kernels)
    register({
      ...old,
      kernelFunc(args) {
        const result = old.kernelFunc(args); // may refuse it
        const { a, b } = args.inputs;
        if (a?.dtype === 'float32' && b?.dtype === 'float32') ++counter.calls;
        return result;
      },
    });
  counter.restore = () => kernels.forEach(register);
  return counter;
}
