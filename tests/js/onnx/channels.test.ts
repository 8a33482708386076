/** BatchNormalization after a Gemm with constant weights, which computes it, too. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { loadModel, type ModelResult, readOnnx } from 'wgemm/onnx';
import { encodeGraph, type ModelSpec, type TensorSpec } from '../../peers/onnx-model.mjs';
import { plannedSteps } from '../support/planned.js';
import { floats, info, node } from './static-products.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
});
afterAll(() => {
  wg.dispose();
});

const k = 5;
const n = 6;
const x = floats('x', [3, k], 1, 4);
const variance = { ...floats('variance', [n], 2, 4) } as TensorSpec;
variance.data = (variance.data as Float32Array).map((value) => Math.abs(value) + 0.5);
const parts = ['scale', 'bias', 'mean'].map((name, i) => floats(name, [n], i + 3, 4) as TensorSpec);

function modelOf({
  weights = [k, n],
  c = undefined as number[] | undefined,
  attributes = {},
  outputs = ['z'],
  more = [] as ReturnType<typeof node>[],
  given = ['x'],
} = {}): ModelSpec {
  const names = c ? ['x', 'w', 'c'] : ['x', 'w'];
  const constants = [floats('w', weights, 9, 2) as TensorSpec, ...parts, variance];
  if (c) constants.push(floats('c', c, 8, 2));
  const norm = ['y', 'scale', 'bias', 'mean', 'variance'];
  return {
    nodes: [
      { ...node('Gemm', names, 'y'), attributes },
      { ...node('BatchNormalization', norm, 'z'), attributes: { epsilon: { float: 0.125 } } },
      ...more,
    ],
    inputs: given.map((name) => info(name, 'float32')),
    outputs: outputs.map((name) => info(name)),
    initializers: constants.filter(({ name }) => !given.includes(name as string)),
  };
}

const stepsOf = async (spec: ModelSpec) =>
  (await plannedSteps(await readOnnx(encodeGraph(spec)))).map(({ checked }) => checked.node.op);

async function run(spec: ModelSpec, outputs: string[]) {
  const model = await loadModel(encodeGraph(spec), { wg, outputs });
  const { z } = await model.run({ x: { shape: x.shape, data: x.data } });
  model.dispose();
  return (z as ModelResult).data as Float32Array;
}

it.each([
  ['without C', {}],
  ['with C of a row', { c: [n] }],
  ['with C of a matrix of one row', { c: [1, n] }],
  ['with C of one element', { c: [] }],
  ['with transB and alpha', { weights: [n, k], attributes: { transB: 1, alpha: { float: 0.5 } } }],
])('joins a Gemm %s', async (_, form) => {
  const spec = modelOf(form);
  expect(await stepsOf(spec)).toEqual(['Gemm']);
  const [found, wanted] = [await run(spec, ['z']), await run(spec, ['y', 'z'])];
  found.forEach((value, i) => expect(value).toBeCloseTo(wanted[i] as number, 4));
});

it.each([
  ['if the Gemm is an output', { outputs: ['y', 'z'] }],
  ['if another node takes the Gemm', { outputs: ['z', 'r'], more: [node('Relu', ['y'], 'r')] }],
  ['with beta', { c: [n], attributes: { beta: { float: 2 } } }],
  ['with C of a column', { c: [3, 1] }],
  ['if the scale is not a constant', { given: ['x', 'scale'] }],
  ['if the weights are not a constant', { given: ['x', 'w'] }],
])('does not join %s', async (_, form) => {
  expect(await stepsOf(modelOf(form))).toContain('BatchNormalization');
});
