/** Linear models of ai.onnx.ml: results by their definition, and what is refused. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { loadModel, type ModelTensor } from 'wgemm/onnx';
import { encodeGraph, type NodeSpec } from '../../peers/onnx-model.mjs';
import { expectError, rejected } from '../support/errors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
});
afterAll(() => {
  wg.dispose();
});

const ml = (op: string, inputs: string[], outputs: string[], attributes = {}): NodeSpec => ({
  op,
  domain: 'ai.onnx.ml',
  name: 'the node',
  inputs,
  outputs,
  attributes,
});

interface Given extends ModelTensor {
  readonly dtype: 'float32' | 'float64' | 'int64' | 'int32';
}
const floats = (shape: number[], ...values: number[]): Given => ({
  dtype: 'float32',
  shape,
  data: Float32Array.from(values),
});

function load(nodes: NodeSpec[], inputs: Record<string, Given>, outputs: string[]) {
  return loadModel(
    encodeGraph({
      opsets: { '': 17, 'ai.onnx.ml': 3 },
      nodes,
      inputs: Object.entries(inputs).map(([name, { dtype }]) => ({ name, dtype })),
      outputs: outputs.map((name) => ({ name, dtype: name === 'label' ? 'int64' : 'float32' })),
    }),
    { wg },
  );
}

async function run(node: NodeSpec, inputs: Record<string, Given>) {
  const names = node.outputs.filter((name) => name !== null);
  const model = await load([node], inputs, names);
  const results = await model.run(inputs);
  model.dispose();
  return Object.fromEntries(
    names.map((name) => [name, [results[name]?.shape, ...(results[name]?.data ?? [])]]),
  );
}

const x = floats([2, 2], 1, 2, -3, 0.5);

describe('linear models', () => {
  const attributes = {
    coefficients: { floats: [1, 0.5, -1, 2, 0, 1] },
    intercepts: { floats: [0, 1, -0.5] },
  };
  const scores = [2, 4, 1.5, -2.75, 5, 0];

  it('compute scores', async () => {
    const node = ml('LinearRegressor', ['x'], ['y'], { ...attributes, targets: 3 });
    expect(await run(node, { x })).toEqual({ y: [[2, 3], ...scores] });
    const one = ml('LinearRegressor', ['x'], ['y'], { coefficients: { floats: [2, 4] } });
    expect(await run(one, { x })).toEqual({ y: [[2, 1], 10, -4] });
    const double = { ...x, dtype: 'float64', data: Float64Array.from(x.data as Float32Array) };
    expect(await run(one, { x: double as Given })).toEqual({ y: [[2, 1], 10, -4] });
    const int = { dtype: 'int64', shape: [1, 2], data: BigInt64Array.of(3n, -1n) } as const;
    expect(await run(one, { x: int })).toEqual({ y: [[1, 1], 2] });
  });

  const labels = { classlabels_ints: [7, -2, 2n ** 60n] };

  it.each([
    ['NONE', scores],
    ['LOGISTIC', scores.map((score) => 1 / (1 + Math.exp(-score)))],
    [
      'SOFTMAX',
      [0, 3].flatMap((at) => {
        const row = scores.slice(at, at + 3).map(Math.exp);
        return row.map((each) => each / row.reduce((sum, one) => sum + one, 0));
      }),
    ],
  ])('choose labels, with post_transform %s', async (transform, wanted) => {
    const node = ml('LinearClassifier', ['x'], ['label', 'y'], {
      ...attributes,
      ...labels,
      post_transform: transform,
    });
    const { label, y } = await run(node, { x });
    expect(label).toEqual([[2], -2n, -2n]);
    const [shape, ...found] = y as [number[], ...number[]];
    expect(shape).toEqual([2, 3]);
    wanted.forEach((each, i) => expect(found[i]).toBeCloseTo(each, 6));
    const both = await load([node], { x }, ['label']);
    expect((await both.run({ x }))['label']?.data).toEqual(BigInt64Array.of(-2n, -2n));
    both.dispose();
  });

  it('take the first of equal scores', async () => {
    const node = ml('LinearClassifier', ['x'], ['label', 'y'], {
      coefficients: { floats: [1, 1, 1, 1] },
      intercepts: { floats: [0, 0] },
      classlabels_ints: [3, 4],
    });
    expect((await run(node, { x }))['label']).toEqual([[2], 3n, 3n]);
  });
});

describe('what is around linear models', () => {
  it('scales', async () => {
    const node = ml('Scaler', ['x'], ['y'], {
      offset: { floats: [1, 0.5] },
      scale: { floats: [2, 4] },
    });
    expect(await run(node, { x })).toEqual({ y: [[2, 2], 0, 6, -8, 0] });
    const one = ml('Scaler', ['x'], ['y'], { offset: { floats: [1] }, scale: { floats: [2] } });
    const int = { dtype: 'int32', shape: [1, 2], data: Int32Array.of(3, -1) } as const;
    expect(await run(one, { x: int })).toEqual({ y: [[1, 2], 4, -4] });
  });

  it.each([
    ['MAX', [0.5, 1, -6, 1]],
    ['L1', [1 / 3, 2 / 3, -3 / 3.5, 0.5 / 3.5]],
    ['L2', [1 / Math.sqrt(5), 2 / Math.sqrt(5), -3 / Math.sqrt(9.25), 0.5 / Math.sqrt(9.25)]],
  ])('normalizes by %s', async (norm, wanted) => {
    const node = ml('Normalizer', ['x'], ['y'], { norm });
    const { y } = await run(node, { x: floats([3, 2], 1, 2, -3, 0.5, 0, 0) });
    expect(y).toEqual([[3, 2], ...[...wanted, 0, 0].map(Math.fround)]);
  });

  it('extracts columns', async () => {
    const node = ml('ArrayFeatureExtractor', ['x', 'i'], ['y']);
    const i = { dtype: 'int64', shape: [1, 3], data: BigInt64Array.of(1n, 0n, 1n) } as const;
    expect(await run(node, { x, i })).toEqual({ y: [[2, 3], 2, 1, 2, 0.5, -3, 0.5] });
    expect(await run(node, { x: floats([2], 5, 6), i })).toEqual({ y: [[1, 3], 6, 5, 6] });
  });

  it('gives maps as tensors', async () => {
    const nodes = [
      ml('Normalizer', ['x'], ['n'], { norm: 'L1' }),
      ml('ZipMap', ['n'], ['y'], { classlabels_int64s: [0, 1] }),
    ];
    const model = await load(nodes, { x }, ['y']);
    expect(model.outputs).toEqual([{ name: 'y', dtype: 'float32', shape: undefined }]);
    expect((await model.run({ x }))['y']?.shape).toEqual([2, 2]);
    model.dispose();
  });
});

const strings = 'has labels that are strings, which are not supported; export integers';
const classifier = { coefficients: { floats: [1, 1] }, classlabels_ints: [0, 1] };

it.each([
  ['TreeEnsembleClassifier', {}, 'computes decision trees, which are not supported'],
  ['LabelEncoder', {}, 'computes strings, which are not supported'],
  ['ZipMap', { classlabels_strings: ['a', 'b'] }, strings],
  ['LinearClassifier', { ...classifier, classlabels_strings: ['a', 'b'] }, strings],
  [
    'LinearClassifier',
    { ...classifier, intercepts: { floats: [1] } },
    'has one score for 2 labels; there must be one per label',
  ],
  [
    'LinearRegressor',
    { coefficients: { floats: [1] }, post_transform: 'PROBIT' },
    'has post_transform PROBIT, which is not supported',
  ],
  ['Normalizer', { norm: 'L3' }, 'has norm L3; it must be MAX, L1 or L2'],
])('refuses %s %j', async (op, attributes, says) => {
  expectError(await rejected(load([ml(op, ['x'], ['y'], attributes)], { x }, ['y'])), {
    code: 'UNSUPPORTED',
    op: 'loadModel',
    argument: '',
    says: [`node ai.onnx.ml.${op} "the node" ${says}`],
  });
});

it('refuses coefficients that do not fit', async () => {
  const node = ml('LinearRegressor', ['x'], ['y'], {
    coefficients: { floats: [1, 2, 3] },
    targets: 2,
  });
  expectError(await rejected(load([node], { x }, ['y'])), {
    code: 'ARGUMENT',
    op: 'loadModel',
    argument: 'the node',
    says: ['has 3 coefficients and 0 intercepts for 2 results'],
  });
});
