/** Random problems of products. QLinearMatMul and FusedMatMul are in the other files. */
import { type Input, type NodeCase, randomTensor, tensor } from './onnx-nodes.js';
import type { Random } from '../support/random.js';

type Draw = (random: Random) => Omit<NodeCase, 'op' | 'domain'>;

const f32 = 'float32';
const float = (value: number) => ({ float: value });
const sizes = (random: Random) =>
  [0, 1, 2].map(() => random.between(1, 20)) as [number, number, number];

/** Without inputs at the end that are absent. */
function given(inputs: (Input | null)[]): (Input | null)[] {
  while (inputs.at(-1) === null) inputs.pop();
  return inputs;
}

/** Positive numbers close to one. */
function scales(random: Random, shape: readonly number[], unit: number): Input {
  const count = shape.reduce((product, size) => product * size, 1);
  return tensor(
    f32,
    shape,
    Array.from({ length: count }, () => unit * (0.5 + random.next())),
  );
}

const gemm: Draw = (random) => {
  const [m, k, n] = sizes(random);
  const [transA, transB] = [random.between(0, 1), random.between(0, 1)];
  const dtype = random.pick(['float32', 'float32', 'float64'] as const);
  const version = random.pick([7, 9, 11, 13]);
  const c = random.pick([[m, n], [1, n], [n], [m, 1], [1], []]);
  const hasC = version < 11 || random.next() < 0.7; // C is required before opset 11
  return {
    opset: version,
    inputs: [
      randomTensor(random, dtype, transA ? [k, m] : [m, k]),
      randomTensor(random, dtype, transB ? [n, k] : [k, n]),
      ...(hasC ? [randomTensor(random, dtype, c)] : []),
    ],
    attributes: {
      transA,
      transB,
      alpha: float(random.pick([1, 0.5, -2])),
      beta: float(random.pick([1, 0.5, 0])),
    },
  };
};

/** The shapes of two stacks of matrices, which broadcast, or of vectors. */
function shapesOf(random: Random): [a: number[], b: number[]] {
  const [m, k, n] = sizes(random);
  const stack = Array.from({ length: random.between(0, 3) }, () => random.pick([1, 2, 3]));
  const part = () => stack.map((size) => (random.next() < 0.3 ? 1 : size));
  const a = random.next() < 0.1 ? [k] : [...part(), m, k];
  const b = random.next() < 0.1 ? [k] : [...part().slice(random.between(0, stack.length)), k, n];
  return [a, b];
}

const matMul: Draw = (random) => {
  const dtype = random.pick(['float32', 'float32', 'float64', 'int32', 'int64'] as const);
  const [a, b] = shapesOf(random);
  return {
    opset: random.pick([9, 13]),
    inputs: [randomTensor(random, dtype, a), randomTensor(random, dtype, b)],
  };
};

const bytes = (random: Random) => {
  const a = random.pick(['uint8', 'uint8', 'int8'] as const);
  // The runtime has no kernel of int8 by uint8.
  return [a, a === 'int8' ? a : random.pick(['uint8', 'int8'] as const)] as const;
};

const matMulInteger: Draw = (random) => {
  const [aType, bType] = bytes(random);
  const [m, k, n] = sizes(random);
  const stack = random.pick([[], [2], [2, 3]]);
  const zeroA = random.pick([null, randomTensor(random, aType, [])]);
  const zeroB = random.pick([null, randomTensor(random, bType, random.pick([[], [n]]))]);
  return {
    opset: 10,
    inputs: given([
      randomTensor(random, aType, [...stack, m, k]),
      randomTensor(random, bType, [k, n]),
      zeroA,
      zeroB,
    ]),
  };
};

const qGemm: Draw = (random) => {
  const [m, k, n] = sizes(random);
  const [transA, transB] = [random.between(0, 1), random.between(0, 1)];
  const [aType, bType] = bytes(random);
  const columns = random.pick([[], [n]]);
  const isQuantized = random.next() < 0.6;
  return {
    opset: 17,
    inputs: given([
      randomTensor(random, aType, transA ? [k, m] : [m, k]),
      ...[scales(random, [], 0.02), randomTensor(random, aType, [])],
      randomTensor(random, bType, transB ? [n, k] : [k, n]),
      ...[scales(random, columns, 0.02), randomTensor(random, bType, columns)],
      random.pick([
        null,
        tensor(
          'int32',
          [n],
          Array.from({ length: n }, () => random.between(-999, 999)),
        ),
      ]),
      ...(isQuantized ? [scales(random, [], 2), randomTensor(random, aType, [])] : []),
    ]),
    attributes: { transA, transB, alpha: float(1) },
  };
};

const toFloat: Draw = (random) => {
  const [aType, bType] = bytes(random);
  const [m, k, n] = sizes(random);
  const columns = random.pick([[], [n]]);
  return {
    opset: 17,
    inputs: given([
      randomTensor(random, aType, [...random.pick([[], [2]]), m, k]),
      randomTensor(random, bType, [k, n]),
      ...[scales(random, [], 0.02), scales(random, columns, 0.02)],
      randomTensor(random, aType, []),
      randomTensor(random, bType, columns),
      random.pick([null, randomTensor(random, f32, [n])]),
    ]),
  };
};

const dynamic: Draw = (random) => {
  const [m, k, n] = sizes(random);
  const bType = random.pick(['uint8', 'int8'] as const);
  const columns = random.pick([[], [n]]);
  return {
    opset: 17,
    inputs: given([
      randomTensor(random, f32, [...random.pick([[], [2]]), m, k]),
      randomTensor(random, bType, [k, n]),
      scales(random, columns, 0.02),
      random.pick([null, randomTensor(random, bType, columns)]),
      random.pick([null, randomTensor(random, f32, [n])]),
    ]),
  };
};

const nBits: Draw = (random) => {
  const block = random.pick([16, 32, 64]);
  const [m, k, n] = [random.between(1, 5), random.between(1, 100), random.between(1, 20)];
  const blocks = Math.ceil(k / block);
  const zero = random.pick([null, randomTensor(random, 'uint8', [n * Math.ceil(blocks / 2)])]);
  return {
    opset: 17,
    inputs: given([
      randomTensor(random, f32, [...random.pick([[], [2]]), m, k]),
      randomTensor(random, 'uint8', [n, blocks, block / 2]),
      scales(random, [n * blocks], 0.1),
      zero,
    ]),
    attributes: { K: k, N: n, bits: 4, block_size: block },
  };
};

/** As in onnx-draws.ts. */
export const productDraws: Record<string, readonly [Draw, ulps?: number, absolute?: number]> = {
  Gemm: [gemm, 32, 1e-4],
  MatMul: [matMul, 32, 1e-4],
  MatMulInteger: [matMulInteger],
  'com.microsoft.QGemm': [qGemm],
  'com.microsoft.MatMulIntegerToFloat': [toFloat, 4, 1e-4],
  'com.microsoft.DynamicQuantizeMatMul': [dynamic, 4, 1e-4],
  'com.microsoft.MatMulNBits': [nBits, 32, 1e-3],
};
