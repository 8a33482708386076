/**
 * Masks that a model with a state computes from the number of rows. Some have other elements at
 * one number of rows only.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { loadModel, type ModelResult } from 'wgemm/onnx';
import { encodeGraph, type NodeSpec } from '../../peers/onnx-model.mjs';
import { Random } from '../support/random.js';
import { glueOf } from './state-glue.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
});
afterAll(() => {
  wg.dispose();
});

const width = 4;
/** The most rows, and a number of rows between two enlargements of the kept tensor. */
const most = 70;
const between = 25;

const node = (op: string, inputs: string[], output: string, attributes = {}): NodeSpec => ({
  op,
  inputs,
  outputs: [output],
  attributes,
});
const ints = (name: string, shape: number[], ...values: number[]) => ({
  name,
  dtype: 'int64',
  shape,
  data: BigInt64Array.from(values, BigInt),
});
const random = new Random(97);
const rows = (count: number) => ({
  shape: [1, count, width],
  data: random.fill(new Float32Array(count * width)),
});
/** A table of zeros with a row per number of rows. The row of `between` has ones. */
const ones = Float32Array.from({ length: most * most }, (_, i) =>
  Number(Math.floor(i / most) === between - 1),
);

/** The scores of one token, and a mask that `nodes` make of `all`, `last` and `keys`. */
const graphOf = (nodes: NodeSpec[]) =>
  encodeGraph({
    nodes: [
      node('Concat', ['past', 'x'], 'present', { axis: 1 }),
      node('Transpose', ['present'], 'columns', { perm: [0, 2, 1] }),
      node('MatMul', ['x', 'columns'], 'scores'),
      node('Shape', ['present'], 'shape'),
      node('Gather', ['shape', 'one'], 'all'),
      node('Sub', ['all', 'one'], 'last'),
      node('Range', ['zero', 'all', 'one'], 'keys'),
      ...nodes,
    ],
    inputs: ['past', 'x'].map((name) => ({
      name,
      dtype: 'float32',
      shape: [1, `${name}s`, width],
    })),
    outputs: ['present', 'y'].map((name) => ({ name, dtype: 'float32' })),
    initializers: [
      ints('zero', [], 0),
      ints('one', [], 1),
      ints('five', [], 5),
      ints('between', [], between),
      ints('flat', [1], -1),
      { name: 'least', dtype: 'float32', shape: [1], data: Float32Array.of(-1e30) },
      { name: 'ones', dtype: 'float32', shape: [most, most], data: ones },
      { name: 'truths', dtype: 'bool', shape: [most, most], data: Uint8Array.from(ones) },
    ],
  });
const hide = node('Where', ['hidden', 'least', 'scores'], 'y');
const rowOf = (table: string, row: string) => [
  node('Gather', [table, 'last'], 'row', { axis: 0 }),
  node('Gather', ['row', 'keys'], row, { axis: 0 }),
];

/** Masks, and whether no run is recorded while the kept tensor has room. */
const masks: Record<string, [moves: boolean, nodes: NodeSpec[]]> = {
  'of later keys': [true, [node('Greater', ['keys', 'last'], 'hidden'), hide]],
  'of earlier keys': [
    true,
    [node('LessOrEqual', ['keys', 'last'], 'shown'), node('Not', ['shown'], 'hidden'), hide],
  ],
  'in numbers': [
    true,
    [
      node('Reshape', ['all', 'flat'], 'list'),
      node('ConstantOfShape', ['list'], 'full', {
        value: { tensor: { dtype: 'float32', shape: [1], data: Float32Array.of(-1e30) } },
      }),
      node('Greater', ['keys', 'last'], 'hidden'),
      node('Cast', ['hidden'], 'factors', { to: 1 }),
      node('Mul', ['full', 'factors'], 'mask'),
      node('Add', ['scores', 'mask'], 'y'),
    ],
  ],
  'of a window': [
    false,
    [node('Sub', ['all', 'between'], 'start'), node('Less', ['keys', 'start'], 'hidden'), hide],
  ],
  'of the first keys': [false, [node('Less', ['keys', 'five'], 'hidden'), hide]],
  'by distance': [
    false,
    [
      node('Sub', ['keys', 'last'], 'distance'),
      node('Cast', ['distance'], 'bias', { to: 1 }),
      node('Add', ['scores', 'bias'], 'y'),
    ],
  ],
  'by place': [
    false,
    [node('Cast', ['keys'], 'bias', { to: 1 }), node('Add', ['scores', 'bias'], 'y')],
  ],
  'by place and number of rows': [
    false,
    [
      node('Mul', ['keys', 'all'], 'products'),
      node('Cast', ['products'], 'bias', { to: 1 }),
      node('Add', ['scores', 'bias'], 'y'),
    ],
  ],
  'at one number of rows': [
    false,
    [
      node('Mul', ['keys', 'zero'], 'zeros'),
      node('Add', ['zeros', 'all'], 'counts'),
      node('Equal', ['counts', 'between'], 'hidden'),
      hide,
    ],
  ],
  'from a table of numbers': [
    false,
    [...rowOf('ones', 'mask'), node('Add', ['scores', 'mask'], 'y')],
  ],
  'from a table of truth values': [false, [...rowOf('truths', 'hidden'), hide]],
};

it.each(Object.entries(masks))('a mask %s', async (_, [moves, nodes]) => {
  const before = wg.memory().inUse;
  const bytes = graphOf(nodes);
  const [model, other] = [await loadModel(bytes, { wg }), await loadModel(bytes, { wg })];
  const state = await model.state({ present: 'past' });
  let past: ModelResult = { dtype: 'float32', shape: [1, 0, width], data: new Float32Array() };
  const compare = async () => {
    const x = rows(1);
    const { y } = await model.run({ x }, { state });
    const wanted = await other.run({ x, past });
    past = wanted['present']!;
    expect(y).toEqual(wanted['y']);
  };
  const glue = await glueOf(compare);
  const { takePlans } = glue;
  let moved = 0;
  glue.takePlans = (...args) => (++moved, takePlans(...args));
  try {
    for (let length = 1; length < most; ++length) await compare();
  } finally {
    glue.takePlans = takePlans;
  }
  if (moves) expect(moved).toBeGreaterThan(most - 15);
  model.dispose();
  other.dispose();
  expect(wg.memory().inUse).toBe(before);
});
