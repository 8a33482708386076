/** Random problems of the operators of ai.onnx.ml. */
import { type NodeCase, randomTensor, tensor } from './onnx-nodes.js';
import type { Random } from '../support/random.js';

const list = (random: Random, length: number) => ({
  floats: Array.from({ length }, () => Math.fround(random.next() * 4 - 2)),
});

type Draw = (random: Random) => Omit<NodeCase, 'op' | 'domain'>;

const matrix = (random: Random, columns: number) => {
  const dtype = random.pick(['float32', 'float32', 'float64', 'int64', 'int32'] as const);
  const shape = [random.between(1, 5), columns];
  if (!dtype.startsWith('int')) return randomTensor(random, dtype, shape);
  const values = Array.from({ length: columns * (shape[0] as number) }, () =>
    random.between(-9, 9),
  );
  return tensor(dtype, shape, values);
};

const linear: Draw = (random) => {
  const [rows, columns] = [random.between(2, 5), random.between(1, 7)];
  return {
    opset: 13,
    inputs: [matrix(random, columns)],
    attributes: {
      coefficients: list(random, rows * columns),
      intercepts: list(random, rows),
      post_transform: random.pick(['NONE', 'SOFTMAX', 'LOGISTIC']),
      targets: rows,
    },
  };
};

const regressor: Draw = (random) => {
  const { inputs, attributes, opset } = linear(random);
  // The runtime takes no other type, and applies no other end.
  const x = randomTensor(random, 'float32', inputs[0]!.shape);
  return { opset, inputs: [x], attributes: { ...attributes, post_transform: 'NONE' } };
};

const classifier: Draw = (random) => {
  const { inputs, attributes, opset } = linear(random);
  const { targets = 0, ...others } = attributes!;
  const labels = Array.from({ length: targets as number }, () => random.between(-99, 99));
  return { opset, inputs, attributes: { ...others, classlabels_ints: labels }, outputs: 2 };
};

const scaler: Draw = (random) => {
  const columns = random.between(1, 7);
  const length = random.pick([1, columns]);
  return {
    opset: 13,
    inputs: [matrix(random, columns)],
    attributes: { offset: list(random, length), scale: list(random, length) },
  };
};

const normalizer: Draw = (random) => ({
  opset: 13,
  inputs: [matrix(random, random.between(1, 7))],
  attributes: { norm: random.pick(['MAX', 'L1', 'L2']) },
});

const extractor: Draw = (random) => {
  const columns = random.between(1, 7);
  const count = random.between(1, 5);
  const indices = Array.from({ length: count }, () => random.between(0, columns - 1));
  return { opset: 13, inputs: [matrix(random, columns), tensor('int64', [1, count], indices)] };
};

/** As in onnx-draws.ts. */
export const linearDraws: Record<string, readonly [Draw, ulps?: number, absolute?: number]> = {
  'ai.onnx.ml.LinearRegressor': [regressor, 64, 1e-5],
  'ai.onnx.ml.LinearClassifier': [classifier, 64, 1e-5],
  'ai.onnx.ml.Scaler': [scaler, 2, 1e-6],
  'ai.onnx.ml.Normalizer': [normalizer, 4, 1e-6],
  'ai.onnx.ml.ArrayFeatureExtractor': [extractor],
};
