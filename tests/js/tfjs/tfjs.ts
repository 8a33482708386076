/** What the tests of `wgemm/tfjs` share. */
import { expect } from 'vitest';
import type { Tf, TfTensor } from '../../peers/tfjs-backends.mjs';

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

export type Product = Parameters<Tf['fused']['matMul']>[0];

export const elements = (x: TfTensor) => Array.from(x.dataSync());

/** Each of tfjs, with leakyreluAlpha 0.3. */
export const activations: Record<string, (x: number, slope: number) => number> = {
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

/** The product, by plain loops in float64. `shape`: the shape of the result. */
export function wantedOf(product: Product, shape: readonly number[]): number[] {
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

/** Also that infinities and NaN are where they must be. */
export function expectClose(found: number[], wanted: number[]): void {
  expect(found.length).toBe(wanted.length);
  const wrong = found.findIndex((value, i) => {
    const right = wanted[i] as number;
    return !Object.is(value, right) && !(Math.abs(value - right) < 1e-4);
  });
  if (wrong >= 0) expect(found[wrong], `element ${wrong}`).toBe(wanted[wrong]);
}
