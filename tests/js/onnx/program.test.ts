/** Programs: what a run computes by one call, what memory its programs take, and its errors. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { loadModel, type Model } from 'wgemm/onnx';
import { miniLm, textsOf } from '../../bench/models/minilm.mjs';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { expectError, rejected } from '../support/errors.js';
import { type Glue, glueOf } from './state-glue.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
});
afterAll(() => {
  wg.dispose();
});

const ones = (...shape: number[]) => ({
  shape,
  data: new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(1),
});

let glue: Glue;
beforeAll(async () => {
  // Only the recording of a product makes the object.
  const x = { name: 'x', dtype: 'float32', shape: [2, 2] };
  const node = { op: 'MatMul', inputs: ['x', 'x'], outputs: ['y'] };
  const bytes = encodeGraph({ nodes: [node], inputs: [x], outputs: [{ ...x, name: 'y' }] });
  const model = await loadModel(bytes, { wg });
  glue = await glueOf(() => model.run({ x: ones(2, 2) }));
  model.dispose();
});

/** How often the second run of a model calls the program. */
async function callsOf(bytes: Uint8Array, feeds: Parameters<Model['run']>[0]): Promise<number> {
  const model = await loadModel(bytes, { wg });
  await model.run(feeds);
  const { runProgram } = glue;
  let calls = 0;
  glue.runProgram = (...args) => {
    ++calls;
    return runProgram(...args);
  };
  try {
    await model.run(feeds);
  } finally {
    glue.runProgram = runProgram;
    model.dispose();
  }
  return calls;
}

it.each(['float32', 'int8'] as const)('computes MiniLM in %s by one call', async (variant) => {
  expect(await callsOf(miniLm({ variant, layers: 2 }), textsOf({ tokens: 5 }))).toBe(1);
});

it('computes integers by one call', async () => {
  const data = BigInt64Array.of(-(2n ** 40n), -3n, 0n, 5n);
  const constant = (name: string, value: bigint) => ({
    ...{ name, dtype: 'int64', shape: [] },
    data: BigInt64Array.of(value),
  });
  const node = (op: string, inputs: string[], output: string) => ({
    op,
    inputs,
    outputs: [output],
  });
  const names = ['square', 'cube', 'relu', 'clip'];
  const bytes = encodeGraph({
    nodes: [
      node('Pow', ['x', 'two'], 'square'),
      node('Pow', ['x', 'three'], 'cube'),
      node('Relu', ['x'], 'relu'),
      node('Clip', ['x', 'least', 'two'], 'clip'),
    ],
    inputs: [{ name: 'x', dtype: 'int64', shape: [4] }],
    outputs: names.map((name) => ({ name, dtype: 'int64' })),
    initializers: [constant('two', 2n), constant('three', 3n), constant('least', -3n)],
  });
  const feeds = { x: { data, shape: [4] } };
  expect(await callsOf(bytes, feeds)).toBe(1);
  const model = await loadModel(bytes, { wg });
  const results = await model.run(feeds);
  model.dispose();
  expect(names.map((name) => [...(results[name]!.data as BigInt64Array)])).toEqual([
    Array.from(data, (v) => BigInt.asIntN(64, v * v)),
    Array.from(data, (v) => BigInt.asIntN(64, v * v * v)),
    [0n, 0n, 0n, 5n],
    [-3n, -3n, 0n, 2n],
  ]);
});

const axesOfEnds = { name: 'axes', dtype: 'int64', shape: [2], data: BigInt64Array.of(0n, 2n) };

it('computes each form of an operator along rows by one call', async () => {
  const constant = { name: 'scale', dtype: 'float32', shape: [4], data: ones(4).data };
  const bytes = encodeGraph({
    opsets: { '': 20 },
    nodes: [
      { op: 'Relu', inputs: ['x'], outputs: ['positive'] },
      { op: 'LayerNormalization', inputs: ['positive', 'scale'], outputs: ['a'] },
      { op: 'LayerNormalization', inputs: ['a', 'part', 'part'], outputs: ['b', 'm', 'd'] },
      { op: 'Add', inputs: ['b', 'd'], outputs: ['c'] },
      { op: 'ReduceMean', inputs: ['c', 'axes'], outputs: ['e'] },
      { op: 'Cast', inputs: ['e'], outputs: ['f'], attributes: { to: 11 } },
      { op: 'QuantizeLinear', inputs: ['f', 'one'], outputs: ['g'] },
      { op: 'Cast', inputs: ['g'], outputs: ['h'], attributes: { to: 6 } },
      { op: 'ReduceMean', inputs: ['h'], outputs: ['i'] },
      { op: 'Relu', inputs: ['i'], outputs: ['y'] },
    ],
    inputs: [{ name: 'x', dtype: 'float32', shape: [2, 3, 4] }],
    outputs: [{ name: 'y', dtype: 'int32' }],
    initializers: [
      constant,
      { ...constant, name: 'part', shape: [3, 1], data: ones(3).data },
      { ...constant, name: 'one', shape: [], data: ones().data },
      axesOfEnds,
    ],
  });
  expect(await callsOf(bytes, { x: ones(2, 3, 4) })).toBe(1);
});

it('frees what an operator takes for itself', async () => {
  const model = await loadModel(
    encodeGraph({
      opsets: { '': 20 },
      nodes: [
        { op: 'ReduceMean', inputs: ['x', 'axes'], outputs: ['a'] },
        { op: 'ReduceMean', inputs: ['x', 'axes'], outputs: ['b'] },
        { op: 'ReduceMean', inputs: ['x', 'axes'], outputs: ['c'] },
        { op: 'Concat', inputs: ['a', 'b', 'c'], outputs: ['y'], attributes: { axis: 0 } },
      ],
      inputs: [{ name: 'x', dtype: 'float32', shape: [2, 3, 'size'] }],
      outputs: [{ name: 'y', dtype: 'float32' }],
      initializers: [axesOfEnds],
    }),
    { maxMemory: 16e6 },
  );
  // The input and a copy of it with other axes take 12 MB.
  const { y } = await model.run({ x: ones(2, 3, 250_000) });
  expect(y!.data).toEqual(new Float32Array(9).fill(1));
  model.dispose();
});

it('computes nothing for a result without elements, whatever its other axes are', async () => {
  const nodes = ['Softmax', 'LogSoftmax', 'Tanh'].map((op) => ({
    op,
    inputs: ['x'],
    outputs: [op],
  }));
  const bytes = encodeGraph({
    nodes,
    inputs: [{ name: 'x', dtype: 'float32' }],
    outputs: nodes.map(({ op }) => ({ name: op, dtype: 'float32' })),
  });
  const shape = [2 ** 24, 0];
  expect(await callsOf(bytes, { x: { data: new Float32Array(0), shape } })).toBe(0);
});

it('keeps no copies of what dropped programs have computed from shapes', async () => {
  const before = wg.memory().inUse;
  const model = await loadModel(
    encodeGraph({
      nodes: [
        { op: 'Shape', inputs: ['x'], outputs: ['shape'] },
        { op: 'Cast', inputs: ['shape'], outputs: ['sizes'], attributes: { to: 1 } },
        { op: 'Mul', inputs: ['x', 'sizes'], outputs: ['y'] },
      ],
      inputs: [{ name: 'x', dtype: 'float32', shape: ['rows', 2] }],
      outputs: [{ name: 'y', dtype: 'float32' }],
    }),
    { wg },
  );
  // More shapes than a model keeps programs.
  const runAll = async () => {
    for (let rows = 1; rows <= 10; ++rows) {
      const { y } = await model.run({ x: ones(rows, 2) });
      expect(y!.data[0]).toBe(rows);
    }
    return wg.memory().inUse;
  };
  await runAll();
  const once = await runAll();
  expect(await runAll()).toBe(once);
  model.dispose();
  expect(wg.memory().inUse).toBe(before);
});

it('names the first node at fault, also if a later one fails when the run is recorded', async () => {
  const model = await loadModel(
    encodeGraph({
      nodes: [
        { op: 'MatMul', name: 'first', inputs: ['a', 'b'], outputs: ['product'] },
        { op: 'Tanh', name: 'second', inputs: ['product'], outputs: ['bent'] },
        { op: 'Add', name: 'third', inputs: ['bent', 'c'], outputs: ['y'] },
      ],
      inputs: ['a', 'b', 'c'].map((name) => ({ name, dtype: 'float32' })),
      outputs: [{ name: 'y', dtype: 'float32' }],
    }),
    { wg },
  );
  const c = ones(7);
  const refused = async (a: number, says: string, argument: string) =>
    expectError(await rejected(model.run({ a: ones(2, a), b: ones(4, 5), c })), {
      code: 'SHAPE',
      op: 'run',
      argument,
      says: [says],
    });
  await refused(3, 'node MatMul "first"', 'first');
  await refused(4, 'node Add "third"', 'third');
  const { y } = await model.run({ a: ones(2, 4), b: ones(4, 5), c: ones(5) });
  expect(y!.data[9]).toBeCloseTo(Math.tanh(4) + 1, 6);
  model.dispose();
});

it('needs no more memory than a run takes, if nodes run in JavaScript', async () => {
  const model = await loadModel(
    encodeGraph({
      nodes: [
        { op: 'Relu', inputs: ['x'], outputs: ['positive'] },
        { op: 'Slice', inputs: ['positive', 'start', 'end'], outputs: ['first'] },
        { op: 'Pow', inputs: ['first', 'exponent'], outputs: ['y'] },
      ],
      inputs: [
        { name: 'x', dtype: 'float32', shape: ['size'] },
        { name: 'end', dtype: 'int64', shape: [1] },
        { name: 'exponent', dtype: 'float32', shape: [] },
      ],
      outputs: [{ name: 'y', dtype: 'float32' }],
      initializers: [{ name: 'start', dtype: 'int64', shape: [1], data: new BigInt64Array(1) }],
    }),
    { maxMemory: 16e6 },
  );
  // Two values at once take 12 MB.
  const end = { data: BigInt64Array.of(1500000n), shape: [1] };
  const { y } = await model.run({ x: ones(1500000), end, exponent: ones() });
  expect(y!.shape).toEqual([1500000]);
  model.dispose();
});
