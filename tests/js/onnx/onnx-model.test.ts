/** Models that run: what is joined to products, what memory they take, and what is refused. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm, ShapeError, UnsupportedError } from 'wgemm';
import { createGemm as createInline } from 'wgemm/inline';
import { loadModel, type Model, type ModelResult, type ModelTensor, readOnnx } from 'wgemm/onnx';
import { encoderBlock, maker, mlp } from '../../peers/onnx-graphs.mjs';
import {
  encodeGraph,
  type ModelSpec,
  type NodeSpec,
  type TensorSpec,
} from '../../peers/onnx-model.mjs';
import { expectError, rejected, type Wanted } from '../support/errors.js';
import { dispose, Random } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ determinism: 'strict', models: true });
});
afterAll(() => {
  wg.dispose();
});

const floats = (name: string, shape: readonly number[], seed = 1): TensorSpec => {
  const size = shape.reduce((product, n) => product * n, 1);
  return { name, dtype: 'float32', shape, data: new Random(seed).fill(new Float32Array(size)) };
};
const scalar = (name: string, value: number): TensorSpec => ({
  name,
  dtype: 'float32',
  shape: [],
  data: Float32Array.of(value),
});
const node = (
  op: string,
  inputs: (string | null)[],
  output: string,
  attributes = {},
): NodeSpec => ({
  op,
  name: `${op} ${output}`,
  inputs,
  outputs: [output],
  attributes,
});
const input = (name: string, shape?: (number | string)[], dtype = 'float32') => ({
  name,
  dtype,
  ...(shape && { shape }),
});

/** Runs a model once, and tells what each product computes, too. */
async function run(spec: ModelSpec, feeds: Record<string, ModelTensor>) {
  const before = wg.memory().inUse;
  const model = await loadModel(encodeGraph(spec), { wg });
  try {
    const results = await model.run(feeds);
    const shapes = Object.fromEntries(
      Object.entries(feeds).map(([name, { shape }]) => [name, shape]),
    );
    const fused = (await model.explain(shapes)).map((product) => product.fused);
    return { results, fused };
  } finally {
    model.dispose();
    expect(wg.memory().inUse).toBe(before);
  }
}

const feed = (shape: readonly number[], seed = 9): ModelTensor =>
  floats('x', shape, seed) as ModelTensor;

describe('what follows a product', () => {
  const nodes = [
    node('MatMul', ['x', 'w'], 'a'),
    node('Mul', ['a', 'two'], 'b'),
    node('Add', ['bias', 'b'], 'c'),
    node('Relu', ['c'], 'd'),
    node('Transpose', ['d'], 'y', { perm: [1, 0] }),
  ];
  const spec: ModelSpec = {
    nodes,
    inputs: [input('x', ['m', 20])],
    outputs: [input('y')],
    initializers: [floats('w', [20, 30]), scalar('two', 2), floats('bias', [30], 3)],
  };
  const x = feed([7, 20]);

  it('is computed by its call', async () => {
    const { results, fused } = await run(spec, { x });
    expect(fused).toEqual([['Mul', 'Add', 'Relu', 'Transpose']]);
    expect(results.y?.shape).toEqual([30, 7]);
  });

  it.each([
    ['a', []],
    ['b', ['Mul']],
    ['c', ['Mul', 'Add']],
    ['d', ['Mul', 'Add', 'Relu']],
  ])('is not, from where an output of the model is needed: %s', async (name, wanted) => {
    const { results: whole } = await run(spec, { x });
    const { results, fused } = await run({ ...spec, outputs: [input('y'), input(name)] }, { x });
    expect(fused).toEqual([wanted]);
    expect(results.y).toEqual(whole.y);
    expect(results[name]?.shape).toEqual([7, 30]);
  });

  it.each([
    ['a', []],
    ['b', ['Mul']],
    ['c', ['Mul', 'Add']],
    ['d', ['Mul', 'Add', 'Relu']],
  ])('is not, from where two nodes need it: %s', async (name, wanted) => {
    const { results: whole } = await run(spec, { x });
    const also = {
      nodes: [...nodes, node('Sqrt', [name], 'z')],
      outputs: [input('y'), input('z')],
    };
    const { results, fused } = await run({ ...spec, ...also }, { x });
    expect(fused).toEqual([wanted]);
    expect(results.y).toEqual(whole.y);
  });

  it('is not, if one node needs it twice', async () => {
    const twice = [node('MatMul', ['x', 'w'], 'a'), node('Add', ['a', 'a'], 'y')];
    const { fused } = await run({ ...spec, nodes: twice }, { x });
    expect(fused).toEqual([[]]);
  });

  it.each([
    ['more axes than the product', [2, 1, 30], [2, 7, 30]],
    ['more rows than the product', [7, 30], [7, 30], 1],
  ])('runs on its own if the addend has %s', async (_, shape, wanted, rows = 7) => {
    const sum = [node('MatMul', ['x', 'w'], 'a'), node('Add', ['a', 'more'], 'y')];
    const initializers = [floats('w', [20, 30]), floats('more', shape, 5)];
    const { results, fused } = await run(
      { ...spec, nodes: sum, initializers },
      { x: feed([rows, 20]) },
    );
    expect(fused).toEqual([[]]);
    expect(results.y?.shape).toEqual(wanted);
    const plain = await run(
      { ...spec, nodes: sum, initializers, outputs: [input('y'), input('a')] },
      { x: feed([rows, 20]) },
    );
    expect(results.y).toEqual(plain.results.y);
  });

  it('may be a sum that another product is part of', async () => {
    const sum = [
      node('MatMul', ['x', 'w'], 'a'),
      node('MatMul', ['x', 'v'], 'b'),
      node('Add', ['a', 'b'], 'y'),
    ];
    const initializers = [floats('w', [20, 30]), floats('v', [20, 30], 5)];
    const { results, fused } = await run({ ...spec, nodes: sum, initializers }, { x });
    expect(fused.flat()).toEqual(['Add']);
    const outputs = [input('y'), input('a'), input('b')];
    const plain = await run({ ...spec, nodes: sum, initializers, outputs }, { x });
    expect(plain.fused.flat()).toEqual([]);
    expect(results.y).toEqual(plain.results.y);
  });

  it.each([
    ['Div by a power of 2', node('Div', ['a', 'number'], 'y'), 8, ['Div']],
    ['Div by another number', node('Div', ['a', 'number'], 'y'), 3, []],
    ['Div of a number', node('Div', ['number', 'a'], 'y'), 8, []],
    ['Clip with bounds in order', node('Clip', ['a', null, 'number'], 'y'), 0.5, ['Clip']],
    ['Clip by NaN', node('Clip', ['a', null, 'number'], 'y'), NaN, []],
  ])('%s', async (_, last, number, wanted) => {
    const sum = { nodes: [node('MatMul', ['x', 'w'], 'a'), last] };
    const initializers = [floats('w', [20, 30]), scalar('number', number)];
    const { results, fused } = await run({ ...spec, ...sum, initializers }, { x });
    expect(fused).toEqual([wanted]);
    const outputs = [input('y'), input('a')];
    const plain = await run({ ...spec, ...sum, initializers, outputs }, { x });
    expect(results.y).toEqual(plain.results.y);
  });

  it.each([
    ['Mul', ['a', 'c']],
    ['Clip', ['a', null, 'c']],
    ['Add', ['a', 'c']],
  ])(
    'runs on its own, and is the node at fault, if it is of another type: %s',
    async (op, from) => {
      const wrong: ModelSpec = {
        ...spec,
        nodes: [node('MatMul', ['x', 'w'], 'a'), node(op, from, 'y')],
        initializers: [
          floats('w', [20, 30]),
          { name: 'c', dtype: 'float64', shape: [], data: Float64Array.of(2) },
        ],
      };
      const model = await loadModel(encodeGraph(wrong), { wg });
      expectError(await rejected(model.run({ x })), {
        code: 'DTYPE',
        op: 'run',
        argument: `${op} y`,
        says: [new RegExp(`^run: node ${op} "${op} y"`), 'float64'],
      });
      model.dispose();
    },
  );

  it('may be a Gemm without C, whose beta has no effect', async () => {
    const gemm = node('Gemm', ['x', 'w'], 'a', { alpha: { float: 2 }, beta: { float: 3 } });
    const parts = { inputs: [input('x', ['m', 20])], outputs: [input('y')] };
    const initializers = [floats('w', [20, 30]), floats('bias', [30], 3)];
    const alone = [gemm, node('Identity', ['a'], 'y')];
    const product = await run({ ...parts, nodes: alone, initializers }, { x });
    const sum = [gemm, node('Add', ['a', 'bias'], 'y')];
    const { results, fused } = await run({ ...parts, nodes: sum, initializers }, { x });
    expect(fused).toEqual([['Add']]);
    const bias = initializers[1]?.data as Float32Array;
    const wanted = (product.results.y?.data as Float32Array).map(
      (value, i) => value + (bias[i % 30] as number),
    );
    expect(results.y?.data).toEqual(wanted);
  });

  it('is not joined if the product rounds to 16 bits first', async () => {
    const half = (shape: number[], seed: number) => {
      const { data, ...rest } = floats('', shape, seed);
      const bits = Uint16Array.from(data as Float32Array, (value) => 0x3c00 + Math.abs(value) * 99);
      return { ...rest, dtype: 'float16', data: bits };
    };
    const sum: ModelSpec = {
      nodes: [node('MatMul', ['x', 'w'], 'a'), node('Add', ['a', 'bias'], 'y')],
      inputs: [input('x', ['m', 20], 'float16')],
      outputs: [input('y', undefined, 'float16')],
      initializers: [
        { ...half([20, 30], 2), name: 'w' },
        { ...half([30], 3), name: 'bias' },
      ],
    };
    const { fused } = await run(sum, { x: half([7, 20], 4) as ModelTensor });
    expect(fused).toEqual([[]]);
  });

  it('is not Relu of 16 bits, for which a product may round to -0', async () => {
    const bits = (name: string, value: number) => ({
      ...{ name, dtype: 'float16', shape: [1, 1] },
      data: Uint16Array.of(value),
    });
    const relu: ModelSpec = {
      nodes: [node('MatMul', ['x', 'w'], 'a'), node('Relu', ['a'], 'y')],
      inputs: [input('x', [1, 1], 'float16')],
      outputs: [input('y', undefined, 'float16')],
      initializers: [bits('w', 0x0400)], // 2^-14
    };
    const { results, fused } = await run(relu, { x: bits('x', 0x8400) as ModelTensor });
    expect(Object.is((results.y as ModelResult).data[0], -0) || results.y?.data[0] === 0x8000).toBe(
      true,
    );
    expect(fused).toEqual([[]]);
  });

  it('is a Transpose before a product, which reads it by strides', async () => {
    const turned: ModelSpec = {
      nodes: [
        node('Transpose', ['x'], 'p', { perm: [0, 2, 1, 3] }),
        node('Transpose', ['x'], 'q', { perm: [0, 2, 1, 3] }),
        node('Transpose', ['q'], 'r', { perm: [0, 1, 3, 2] }),
        node('MatMul', ['p', 'r'], 'y'),
      ],
      inputs: [input('x', ['b', 'm', 'h', 'k'])],
      outputs: [input('y')],
    };
    const heads = feed([2, 5, 3, 4]);
    const { results } = await run(turned, { x: heads });
    const outputs = ['y', 'p', 'r'].map((name) => input(name));
    const plain = await run({ ...turned, outputs }, { x: heads });
    expect(results.y).toEqual(plain.results.y);
    expect(results.y?.shape).toEqual([2, 3, 5, 5]);
  });

  it('does not overwrite what is needed later', async () => {
    // Each operator of this chain may write where it reads; x, a constant and an output stay.
    const chain: ModelSpec = {
      nodes: [
        node('Relu', ['x'], 'a'),
        node('Add', ['a', 'c'], 'b'),
        node('Mul', ['b', 'b'], 'd'),
        node('Reshape', ['d', 'flat'], 'e'),
        node('Sub', ['e', 'f'], 'g'),
        node('Identity', ['d'], 'h'),
        node('Reshape', ['c', 'flat'], 'f'),
        node('Softmax', ['h'], 'i'),
      ].sort((one, other) => (one.outputs[0] === 'f' ? -1 : other.outputs[0] === 'f' ? 1 : 0)),
      inputs: [input('x', [40, 50])],
      outputs: ['b', 'g', 'i', 'h'].map((name) => input(name)),
      initializers: [
        floats('c', [40, 50], 2),
        { name: 'flat', dtype: 'int64', shape: [1], data: BigInt64Array.of(-1n) },
      ],
    };
    const x = feed([40, 50]);
    const copy = (x.data as Float32Array).slice();
    const model = await loadModel(encodeGraph(chain), { wg });
    const first = await model.run({ x });
    const second = await model.run({ x });
    model.dispose();
    expect(second).toEqual(first);
    expect(x.data).toEqual(copy);
    const c = chain.initializers?.[0]?.data as Float32Array;
    const b = copy.map((value, i) => Math.max(value, 0) + (c[i] as number));
    expect(first.b?.data).toEqual(b);
    expect(first.h?.data).toEqual(b.map((value) => value * value));
    expect(first.g?.data).toEqual(
      b.map((value, i) => Math.fround(value * value) - (c[i] as number)),
    );
  });
});

/** Expects the same results if all values are outputs, since then nothing is fused or in place. */
async function expectSame(spec: ModelSpec, feeds: Record<string, ModelTensor>) {
  const { results, fused } = await run(spec, feeds);
  const outputs = spec.nodes.flatMap(({ outputs }) => outputs.map((name) => input(name as string)));
  const all = await run(
    { ...spec, outputs: outputs.map((info) => ({ ...info, dtype: 'none' })) },
    feeds,
  );
  expect(all.fused.flat()).toEqual([]);
  for (const [name, result] of Object.entries(results)) expect(result).toEqual(all.results[name]);
  return fused;
}

describe('an operator overwrites its input only with its result', () => {
  it.each([[[1, 6]], [[1]], [[]], [[4, 1]], [[4, 6]], [[6]]])(
    'LayerNormalization with Scale and B of %j',
    async (part) => {
      for (const hasBias of [false, true])
        await expectSame(
          {
            nodes: [
              node('Relu', ['x'], 'a'),
              node('LayerNormalization', ['a', 'scale', hasBias ? 'b' : null], 'y'),
            ],
            inputs: [input('x', [4, 6])],
            outputs: [input('y')],
            initializers: [floats('scale', part, 2), floats('b', part, 3)],
          },
          { x: feed([4, 6]) },
        );
    },
  );

  it.each([
    ['LayerNormalization of itself', node('LayerNormalization', ['a', 'a', 'a'], 'y')],
    ['LayerNormalization by what ends', node('LayerNormalization', ['x', 'a', 'a'], 'y')],
    ['the difference from itself', node('Sub', ['a', 'a'], 'y')],
    ['a broadcast operand that ends', node('Sub', ['a', 'row'], 'y')],
    ['a broadcast operand before it', node('Div', ['row', 'a'], 'y')],
    ['Pow by itself', node('Pow', ['a', 'a'], 'y')],
    ['Softmax along another axis', node('Softmax', ['a'], 'y', { axis: 0 })],
    ['ReduceMean that keeps all', node('ReduceMean', ['a'], 'y', { axes: [0], keepdims: 0 })],
    ['FastGelu', { ...node('FastGelu', ['a', 'row'], 'y'), domain: 'com.microsoft' }],
  ])('%s', async (_, last) => {
    for (const rows of [1, 40])
      await expectSame(
        {
          opsets: { '': 17, 'com.microsoft': 1 },
          nodes: [node('Sigmoid', ['x'], 'a'), node('Tanh', ['r'], 'row'), last],
          inputs: [input('x', ['m', 50]), input('r', [50])],
          outputs: [input('y')],
        },
        { x: feed([rows, 50]), r: feed([50], 4) },
      );
  });
});

describe('a residual Add joins a product, whatever its rows are', () => {
  const [k, n] = [32, 1100]; // a result of 4096 bytes or more is in a block of memory
  const weights = (dtype: string, shape: number[], name = 'w') => ({
    name,
    dtype,
    shape,
    data: new Random(5).fill(new Uint8Array(shape.reduce((a, b) => a * b))),
  });
  const ms = (one: NodeSpec) => ({ ...one, domain: 'com.microsoft' });
  const products: [string, NodeSpec[], TensorSpec[]][] = [
    ['MatMul', [node('MatMul', ['x', 'w'], 'p')], [floats('w', [k, n])]],
    ['Gemm', [node('Gemm', ['x', 'w'], 'p')], [floats('w', [k, n])]],
    [
      'MatMulNBits',
      [ms(node('MatMulNBits', ['x', 'w', 's'], 'p', { K: k, N: n, bits: 4, block_size: 32 }))],
      [weights('uint8', [n, 1, 16]), floats('s', [n])],
    ],
    [
      'DynamicQuantizeMatMul',
      [ms(node('DynamicQuantizeMatMul', ['x', 'w', 's'], 'p'))],
      [weights('uint8', [k, n]), scalar('s', 0.02)],
    ],
    [
      'MatMulIntegerToFloat',
      [
        { op: 'DynamicQuantizeLinear', inputs: ['x'], outputs: ['q', 'sx', 'zx'] },
        ms(node('MatMulIntegerToFloat', ['q', 'w', 'sx', 's', 'zx'], 'p')),
      ],
      [weights('uint8', [k, n]), scalar('s', 0.02)],
    ],
  ];
  const cases = products.flatMap((product) =>
    [[k], [1, k], [3, k], [1, 1, k], [2, 1, k], [1, 3, k]].flatMap((shape) =>
      product[0] === 'Gemm' && shape.length !== 2 ? [] : [[...product, shape] as const],
    ),
  );
  it.each(cases.map(([name, ...rest]) => [name, rest.at(-1), rest] as const))(
    '%s of %j',
    async (name, _, rest) => {
      const [nodes, initializers, shape] = rest;
      const result = [...shape.slice(0, -1), n];
      const isDense = name === 'MatMul' || name === 'Gemm';
      for (const addend of [result, result.slice(-1), [1, ...result]]) {
        const fused = await expectSame(
          {
            opsets: { '': 17, 'com.microsoft': 1 },
            nodes: [node('Tanh', ['r'], 't'), ...nodes, node('Add', ['t', 'p'], 'y')],
            inputs: [input('x', shape), input('r', addend)],
            outputs: [input('y')],
            initializers,
          },
          { x: feed(shape), r: feed(addend, 3) },
        );
        const isRow = addend.slice(0, -1).every((size) => size === 1);
        const joins = addend.length <= result.length && (isDense || isRow);
        expect(fused).toEqual([joins ? ['Add'] : []]);
      }
    },
  );
});

describe('Gelu that is written out', () => {
  const [root, inverse, one, half] = [Math.SQRT2, Math.SQRT1_2, 1, 0.5];
  const scalars = Object.entries({ root, inverse, one, half });
  const constants = scalars.map(([name, value]) => scalar(name, value));
  const rest = [node('Erf', ['a'], 'b'), node('Add', ['b', 'one'], 'c')];
  const byRoot = [node('Div', ['x', 'root'], 'a'), ...rest];
  const byInverse = [node('Mul', ['inverse', 'x'], 'a'), ...rest];
  const halfOfProduct = [node('Mul', ['x', 'c'], 'd'), node('Mul', ['d', 'half'], 'y')];
  const halfOfX = [node('Mul', ['half', 'x'], 'd'), node('Mul', ['c', 'd'], 'y')];
  const forms = [byRoot, byInverse].flatMap((start) =>
    [halfOfProduct, halfOfX].map((end) => [...start, ...end]),
  );
  const specOf = (nodes: NodeSpec[], initializers = constants, dtype = 'float32'): ModelSpec => ({
    nodes,
    inputs: [input('x', ['m', 'n'], dtype)],
    outputs: [input('y', undefined, dtype)],
    initializers,
  });
  const x = feed([30, 40]);
  const resultOf = async (spec: ModelSpec) => (await run(spec, { x })).results.y as ModelResult;
  const gelu = () => resultOf({ ...specOf([node('Gelu', ['x'], 'y')]), opsets: { '': 20 } });

  it.each(forms)('is computed as Gelu', async (...nodes) => {
    expect(await resultOf(specOf(nodes))).toEqual(await gelu());
  });

  it.each(['a', 'b', 'c', 'd'])('is not, if the model returns %s', async (name) => {
    const wanted = await gelu();
    for (const nodes of forms) {
      const spec = specOf(nodes);
      const found = await resultOf({ ...spec, outputs: [input('y'), input(name)] });
      expect(found).not.toEqual(wanted); // it rounds after each node
      (found.data as Float32Array).forEach((value, i) => {
        expect(Math.abs(value - (wanted.data[i] as number))).toBeLessThan(1e-6);
      });
    }
  });

  it.each(['a', 'b', 'c', 'd'])('is not, if another node takes %s', async (name) => {
    for (const nodes of forms) {
      const spec = specOf([...nodes, node('Tanh', [name], 'z')]);
      const found = await resultOf({ ...spec, outputs: [input('y'), input('z')] });
      expect(found).not.toEqual(await gelu());
    }
  });

  it.each(['root', 'inverse', 'one', 'half'])('is not, if %s is another number', async (name) => {
    const wanted = await gelu();
    const others = constants.map((each) => (each.name === name ? scalar(name, 3) : each));
    for (const nodes of forms) {
      if (!nodes.some(({ inputs }) => inputs.includes(name))) continue;
      const found = await resultOf(specOf(nodes, others));
      const far = (found.data as Float32Array).some(
        (value, i) => Math.abs(value - Number(wanted.data[i])) > 0.1,
      );
      expect(far).toBe(true);
    }
  });

  it('keeps the axes that a constant adds', async () => {
    const deep = constants.map((each) =>
      each.name === 'half' ? { ...each, shape: [1, 1, 1] } : each,
    );
    for (const nodes of forms)
      expect((await resultOf(specOf(nodes, deep))).shape).toEqual([1, 30, 40]);
  });

  it('follows a product and its bias', async () => {
    const nodes = [
      node('MatMul', ['x', 'w'], 'p'),
      node('Add', ['p', 'v'], 'q'),
      ...byRoot.map((each) => ({ ...each, inputs: each.inputs.map((n) => (n === 'x' ? 'q' : n)) })),
      node('Mul', ['q', 'c'], 'd'),
      node('Mul', ['d', 'half'], 'y'),
    ];
    const initializers = [...constants, floats('w', [40, 20]), floats('v', [20])];
    const { results, fused } = await run(specOf(nodes, initializers), { x });
    expect(fused).toEqual([['Add']]);
    expect(results.y?.shape).toEqual([30, 20]);
  });

  it('refuses another type than its constants have', async () => {
    const bytes = encodeGraph(specOf(forms[0] as NodeSpec[], constants, 'float64'));
    const model = await loadModel(bytes, { wg });
    const wrong = { data: Float64Array.of(1), shape: [1, 1] };
    expectError(await rejected(model.run({ x: wrong })), {
      code: 'DTYPE',
      op: 'run',
      argument: 'Div a',
      says: [/^run: node Div "Div a"/, 'float64', 'float32'],
    });
    model.dispose();
  });
});

describe('memory', () => {
  it('holds one packed copy of weights that several nodes take', async () => {
    const model = async (second: string) => {
      const nodes = [
        node('MatMul', ['x', 'w'], 'a'),
        node('MatMul', ['x', second], 'b'),
        node('Sub', ['a', 'b'], 'y'),
      ];
      const initializers = [floats('w', [64, 64]), floats('v', [64, 64])];
      const loaded = await loadModel(
        encodeGraph({
          nodes,
          initializers,
          inputs: [input('x', ['m', 64])],
          outputs: [input('y')],
        }),
        { wg },
      );
      const { inUse } = wg.memory();
      const { y } = await loaded.run({ x: feed([3, 64]) });
      loaded.dispose();
      expect((y as ModelResult).data).toEqual(new Float32Array(3 * 64));
      return inUse;
    };
    const [one, two] = [await model('w'), await model('v')];
    expect(two - one).toBeGreaterThanOrEqual(4 * 64 * 64);
  });

  it('is given back by a run that fails', async () => {
    const model = await loadModel(
      encodeGraph({
        nodes: [
          { op: 'MatMul', inputs: ['x', 'w'], outputs: ['h'] },
          { op: 'Reshape', inputs: ['h', 'shape'], outputs: ['y'] },
        ],
        initializers: [
          floats('w', [64, 64]),
          { name: 'shape', dtype: 'int64', shape: [2], data: BigInt64Array.of(2n, 64n) },
        ],
        inputs: [input('x', ['m', 64])],
        outputs: [input('y')],
      }),
      { wg },
    );
    const { inUse } = wg.memory();
    await expect(model.run({ x: feed([1000, 64]) })).rejects.toThrow(ShapeError);
    expect(wg.memory().inUse).toBe(inUse);
    expect((await model.run({ x: feed([2, 64]) })).y?.shape).toEqual([2, 64]);
    model.dispose();
  });

  it('is as after one run, after 100 runs and other shapes', async () => {
    const before = wg.memory().inUse;
    const model = await loadModel(encoderBlock({ heads: 4, size: 64, hidden: 128 }), { wg });
    const shapes = [
      [1, 20, 64],
      [2, 50, 64],
      [1, 3, 64],
    ];
    // The second shape needs more memory, so the program of the first one is written twice.
    for (const shape of [...shapes, ...shapes]) await model.run({ x: feed(shape) });
    const { inUse, committed } = wg.memory();
    for (let i = 0; i < 99; ++i) await model.run({ x: feed(shapes[i % 3] as number[]) });
    expect(wg.memory()).toEqual({ inUse, committed });
    model.dispose();
    model.dispose();
    expect(wg.memory().inUse).toBe(before);
  });

  it('if it does not suffice: nothing is kept, and the next run works', async () => {
    const limit = 2 ** 20;
    const instance = await createGemm({
      maxMemory: limit,
      determinism: 'strict',
      models: true,
    });
    const bytes = encoderBlock({ heads: 2, size: 32, hidden: 64 });
    const feeds = { x: feed([1, 40, 32]) };
    const own = await loadModel(bytes, { determinism: 'strict' });
    const wanted = await own.run(feeds);
    own.dispose();
    const outcomes = { load: 0, run: 0, done: 0 };
    for (let left = 200; left < limit / 2; left += 5000) {
      const filler = instance.alloc('uint8', [limit - left]);
      const { inUse } = instance.memory();
      let model: Model | undefined;
      try {
        model = await loadModel(bytes, { wg: instance });
        const loaded = instance.memory().inUse;
        try {
          expect(await model.run(feeds)).toEqual(wanted);
          ++outcomes.done;
        } catch (error) {
          expect(error).toMatchObject({ code: 'OUT_OF_MEMORY', op: 'run' });
          expect((error as Error).message).toContain('node ');
          expect(instance.memory().inUse - loaded).toBeLessThan(left);
          ++outcomes.run;
        }
        filler.dispose();
        expect(await model.run(feeds)).toEqual(wanted);
      } catch (error) {
        if (model) throw error;
        expect(error).toMatchObject({ code: 'OUT_OF_MEMORY', op: 'loadModel' });
        ++outcomes.load;
      }
      model?.dispose();
      expect(instance.memory().inUse).toBe(filler.disposed ? 0 : inUse);
      filler.dispose();
    }
    expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(0);
    instance.dispose();
  });

  it('ends with the model, if the model created the instance', async () => {
    const model = await loadModel(mlp());
    expect(model.disposed).toBe(false);
    const same = model;
    model[dispose]();
    expect(same.disposed).toBe(true);
    const error = await rejected(model.run({ x: feed([1, 784]) }));
    expectError(error, { code: 'DISPOSED', op: 'run', argument: 'model', says: ['loadModel()'] });
    expectError(await rejected(model.explain()), {
      code: 'DISPOSED',
      op: 'explain',
      argument: 'model',
      says: [],
    });
  });

  it('of the bytes is not needed after loading', async () => {
    const bytes = mlp();
    const read = await readOnnx(bytes);
    const model = await loadModel(read, { wg });
    const x = feed([2, 784]);
    const first = await model.run({ x });
    bytes.fill(255);
    for (const { data } of read.graph.initializers.values()) (data as Float32Array).fill(NaN);
    expect(await model.run({ x })).toEqual(first);
    model.dispose();
  });
});

describe('feeds', () => {
  const bytes = encodeGraph({
    nodes: [node('Add', ['x', 'z'], 'y'), node('Where', ['flags', 'y', 'x'], 'v')],
    inputs: [input('x', ['batch', 3]), input('z', ['batch', 3]), input('flags', [3], 'bool')],
    outputs: [input('y'), input('v')],
  });
  let model: Model;
  beforeAll(async () => {
    model = await loadModel(bytes, { wg });
  });
  afterAll(() => model.dispose());

  const x = feed([2, 3]);
  const flags = { data: Uint8Array.of(1, 0, 1), shape: [3] };
  const good = { x, z: x, flags };

  it('may be arrays and tensors in the heap, and of bool', async () => {
    const held = wg.alloc('float32', [2, 3]);
    held.data.set(x.data as Float32Array);
    const { y, v } = await model.run({ x: held, z: x, flags: { ...flags, dtype: 'bool' } });
    const doubled = (x.data as Float32Array).map((value) => 2 * value);
    expect(y).toEqual({ data: doubled, shape: [2, 3], dtype: 'float32' });
    expect((v as ModelResult).data[1]).toBe((x.data as Float32Array)[1]);
    held.dispose();
  });

  it('of bool may have any bytes, also in the heap, and what is not 0 is true', async () => {
    const nodes = [node('Identity', ['x'], 'y'), node('Cast', ['x'], 'z', { to: 1 })];
    const bytes = encodeGraph({
      nodes,
      inputs: [input('x', [3], 'bool')],
      outputs: [input('y', undefined, 'bool'), input('z')],
    });
    const odd = await loadModel(bytes, { wg });
    const held = wg.alloc('uint8', [3]);
    const data = Uint8Array.of(0, 2, 255);
    held.data.set(data);
    for (const x of [held, { data, shape: [3] }]) {
      const { y, z } = await odd.run({ x });
      expect((y as ModelResult).data).toEqual(Uint8Array.of(0, 1, 1));
      expect((z as ModelResult).data).toEqual(Float32Array.of(0, 1, 1));
    }
    expect(data).toEqual(Uint8Array.of(0, 2, 255));
    held.dispose();
    odd.dispose();
  });

  it('are zeros in explain(), which errors of their shapes name', async () => {
    const error = await rejected(model.explain({ x: [2, 4] }));
    expectError(error, { code: 'SHAPE', op: 'explain', argument: 'x', says: ['[2, 4]'] });
    const other = await rejected(model.explain({ x: [2, 3], z: [1, 3] }));
    expectError(other, { code: 'SHAPE', op: 'explain', argument: 'z', says: ['"batch" is 2'] });
  });

  it.each([['abc'], [[2, -1]], [[2, 1.5]]])('have no shape %j in explain()', async (shape) => {
    const error = await rejected(model.explain({ x: shape as never }));
    expectError(error, { code: 'SHAPE', op: 'explain', argument: 'x', says: ['whole numbers'] });
  });

  it('are checked against what cannot be changed', () => {
    const [info] = model.inputs;
    expect(() => Object.assign(info as object, { dtype: 'int8' })).toThrow(TypeError);
    expect(() => Object.assign(info?.shape as object, { 1: 7 })).toThrow(TypeError);
    expect(() => Object.assign(model.outputs[0] as object, { name: '' })).toThrow(TypeError);
  });

  it('of 0 rows may have -0 of them, which is 0', async () => {
    const none = { data: new Float32Array(0), shape: [-0, 3] };
    const { y } = await model.run({ x: none, z: none, flags });
    expect(y?.shape).toEqual([0, 3]);
  });

  it('are refused: a disposed tensor of the heap', async () => {
    const held = wg.alloc('float32', [2, 3]);
    held.dispose();
    const error = await rejected(model.run({ ...good, z: held }));
    const says = ['input "z" is a disposed tensor'];
    expectError(error, { code: 'DISPOSED', op: 'run', argument: 'z', says });
  });

  const refused: [string, unknown, Partial<Wanted> & { says: Wanted['says'] }][] = [
    ['nothing', undefined, { argument: 'feeds', says: ['"x", "z", "flags"'] }],
    ['an array', [x], { argument: 'feeds', says: ['"x", "z", "flags"'] }],
    ['an unknown name', { ...good, q: x }, { argument: 'q', says: ['"q"', '"x", "z", "flags"'] }],
    ['an absent one', { x, flags }, { argument: 'z', says: ['absent'] }],
    ['a number', { ...good, x: 5 }, { argument: 'x', says: ['5', '{ data, shape }'] }],
    [
      'another type',
      { ...good, z: { data: new Float64Array(6), shape: [2, 3] } },
      { code: 'DTYPE', argument: 'z', says: ['Float64Array', 'float32'] },
    ],
    [
      'another dtype',
      { ...good, z: { ...x, dtype: 'int32' } },
      { code: 'DTYPE', argument: 'z', says: ['"int32"', 'float32'] },
    ],
    [
      'another rank',
      { ...good, x: { ...x, shape: [6] } },
      { code: 'SHAPE', argument: 'x', says: ['[6]', '[batch, 3]'] },
    ],
    [
      'another size',
      { ...good, x: { ...x, shape: [3, 2] } },
      { code: 'SHAPE', argument: 'x', says: ['[3, 2]', '[batch, 3]'] },
    ],
    [
      'another size of a name',
      { ...good, z: feed([1, 3]) },
      { code: 'SHAPE', argument: 'z', says: ['[1, 3]', '"batch" is 2 in "x"'] },
    ],
    [
      'too few elements',
      { ...good, x: { ...x, shape: [1, 3] } },
      { code: 'SHAPE', argument: 'x', says: ['6 elements', '[1, 3]'] },
    ],
    [
      'no shape',
      { ...good, x: { ...x, shape: 'abc' } },
      { code: 'SHAPE', argument: 'x', says: ['"abc"'] },
    ],
    [
      'strides',
      { ...good, x: { ...x, strides: [3, 1] } },
      { argument: 'x', says: ['strides', 'contiguous'] },
    ],
  ];
  it.each(refused)('are refused: %s', async (_, feeds, wanted) => {
    const error = await rejected(model.run(feeds as never));
    expectError(error, { code: 'ARGUMENT', op: 'run', argument: '', ...wanted });
    await model.run(good);
  });

  it('are refused: a revoked proxy as a shape', async () => {
    const { proxy: shape, revoke } = Proxy.revocable([2, 3], {});
    revoke();
    const says = ['input "x" has shape a revoked proxy', 'an array'];
    const wanted = { code: 'SHAPE' as const, argument: 'x', says };
    const error = await rejected(model.run({ ...good, x: { ...x, shape } }));
    expectError(error, { ...wanted, op: 'run' });
    expectError(await rejected(model.explain({ x: shape })), { ...wanted, op: 'explain' });
    await model.run(good);
  });

  it('are refused: a proxy of a tensor of the heap', async () => {
    const held = wg.alloc('float32', [2, 3]);
    const error = await rejected(model.run({ ...good, z: new Proxy(held, {}) }));
    const says = ['input "z" is an object; it must be a tensor'];
    expectError(error, { code: 'ARGUMENT', op: 'run', argument: 'z', says });
    held.dispose();
  });

  it('may change memory while a later one is read', async () => {
    const data = Float32Array.of(1, 2, 3, 4, 5, 6);
    const detaches = {
      ...good,
      x: { data, shape: [2, 3] },
      get flags() {
        structuredClone(data, { transfer: [data.buffer] });
        return good.flags;
      },
    };
    const error = await rejected(model.run(detaches));
    const says = ['x has a detached array as data'];
    expectError(error, { code: 'ARGUMENT', op: 'run', argument: 'x', says });
    const own = await createGemm({ models: true });
    const here = await loadModel(bytes, { wg: own });
    const held = own.alloc('float32', [2, 3]);
    held.data.set(x.data as Float32Array);
    const grows = {
      ...good,
      x: held,
      get flags() {
        own.alloc('float32', [2 ** 22]);
        return good.flags;
      },
    };
    expect(await here.run(grows)).toEqual(await model.run(good));
    const disposes = {
      ...good,
      x: held,
      get flags() {
        held.dispose();
        return good.flags;
      },
    };
    const disposed = await rejected(here.run(disposes));
    expectError(disposed, { code: 'DISPOSED', op: 'run', argument: 'x', says: ['disposed'] });
    here.dispose();
    own.dispose();
  });

  it('have names of any kind', async () => {
    const nodes = [node('Add', ['__proto__', 'constructor'], 'toString')];
    const inputs = [input('__proto__', [1]), input('constructor', [1])];
    const odd = await loadModel(encodeGraph({ nodes, inputs, outputs: [input('toString')] }), {
      wg,
    });
    const one = { data: Float32Array.of(1), shape: [1] };
    const result = await odd.run(
      Object.fromEntries([
        ['__proto__', one],
        ['constructor', one],
      ]),
    );
    const wanted = { data: Float32Array.of(2), shape: [1], dtype: 'float32' };
    expect(Object.entries(result)).toEqual([['toString', wanted]]);
    const error = await rejected(odd.run({ constructor: one }));
    expectError(error, { code: 'ARGUMENT', op: 'run', argument: '__proto__', says: ['absent'] });
    odd.dispose();
  });

  it('may be omitted if the model has a value for it', async () => {
    const nodes = [node('Add', ['x', 'w'], 'y')];
    const [one] = [{ data: Float32Array.of(1), shape: [1] }];
    const spec = {
      nodes,
      inputs: [input('x', [1]), input('w', [1])],
      outputs: [input('y')],
      initializers: [{ name: 'w', dtype: 'float32', ...one }],
    };
    const odd = await loadModel(encodeGraph(spec), { wg });
    expect((await odd.run({ x: one })).y?.data).toEqual(Float32Array.of(2));
    const five = { data: Float32Array.of(5), shape: [1] };
    expect((await odd.run({ x: one, w: five })).y?.data).toEqual(Float32Array.of(6));
    odd.dispose();
    const old = await loadModel(encodeGraph({ ...spec, irVersion: 3 }), { wg });
    expect(old.inputs.map(({ name }) => name)).toEqual(['x']);
    old.dispose();
  });

  it.each([
    [[2], 'float32', 'SHAPE', 'has shape [1]; the model declares [2]'],
    [[1, 1], 'float32', 'SHAPE', 'has shape [1]; the model declares [1, 1]'],
    [['n', 3], 'float32', 'SHAPE', 'has shape [1]; the model declares [n, 3]'],
    [[1], 'int32', 'DTYPE', 'has dtype float32; the model declares int32'],
  ] as const)('have defaults as the model declares: %j of %s', async (shape, dtype, code, says) => {
    const spec = {
      nodes: [node('Add', ['x', 'w'], 'y')],
      inputs: [input('x', [1]), input('w', [...shape], dtype)],
      outputs: [input('y')],
      initializers: [{ name: 'w', dtype: 'float32', shape: [1], data: Float32Array.of(1) }],
    };
    const error = await rejected(loadModel(encodeGraph(spec), { wg }));
    const wanted = { op: 'loadModel', argument: 'w', says: [`the default of input "w" ${says}`] };
    expectError(error, { code, ...wanted });
  });
});

describe('an instance of its own', () => {
  it('has the operators of models', async () => {
    const asked: string[] = [];
    const assets = (file: string) => {
      asked.push(file);
      return import.meta.resolve(`wgemm/assets/${file}`);
    };
    const model = await loadModel(mlp(), { simd: 'simd128', assets });
    model.dispose();
    expect(asked).toEqual(['wgemm-simd128-models.wasm']);
  });

  it('takes no option models, which it sets', async () => {
    const error = await rejected(loadModel(mlp(), { models: false } as never));
    const says = ['models', 'not known'];
    expectError(error, { code: 'ARGUMENT', op: 'loadModel', argument: 'models', says });
  });
});

describe('a model is refused', () => {
  const one: TensorSpec = { name: 'c', dtype: 'float32', shape: [1], data: Float32Array.of(1) };
  const spec = (nodes: NodeSpec[], more: Partial<ModelSpec> = {}): ModelSpec => ({
    nodes,
    inputs: [input('x', [1])],
    outputs: [input('y')],
    initializers: [one],
    ...more,
  });
  const cases: [string, ModelSpec, Partial<Wanted> & { says: Wanted['says'] }][] = [
    [
      'with a cycle',
      spec([node('Add', ['x', 'b'], 'a'), node('Relu', ['a'], 'b'), node('Relu', ['b'], 'y')]),
      { argument: 'Add a', says: ['cycle'] },
    ],
    [
      'with a name that nothing makes',
      spec([node('Add', ['x', 'q'], 'y')]),
      { argument: 'Add y', says: ['"q"'] },
    ],
    [
      'with an output that nothing makes',
      spec([node('Relu', ['x'], 'z')]),
      { argument: 'y', says: ['"y"'] },
    ],
    [
      'with an output twice',
      spec([node('Relu', ['x'], 'y')], { outputs: [input('y'), input('y')] }),
      { argument: 'y', says: ['twice'] },
    ],
    [
      'without outputs',
      spec([node('Relu', ['x'], 'y')], { outputs: [] }),
      { argument: '', says: ['outputs'] },
    ],
    [
      'with a name made twice',
      spec([node('Relu', ['x'], 'y'), node('Sqrt', ['x'], 'y')]),
      { argument: 'Sqrt y', says: ['"y"', 'Relu y'] },
    ],
    [
      'with a constant made again',
      spec([node('Relu', ['x'], 'c'), node('Sqrt', ['c'], 'y')]),
      { argument: 'Relu c', says: ['constant'] },
    ],
    [
      'with an input twice',
      spec([node('Relu', ['x'], 'y')], { inputs: [input('x'), input('x')] }),
      { argument: 'x', says: ['"x"'] },
    ],
    [
      'with too many inputs of a product',
      spec([node('MatMul', ['x', 'c', 'c'], 'y')]),
      { argument: 'MatMul y', says: ['3 inputs'] },
    ],
    [
      'with too many outputs of a product',
      spec([{ ...node('MatMul', ['x', 'c'], 'y'), outputs: ['y', 'z'] }]),
      { argument: 'MatMul y', says: ['2 outputs'] },
    ],
    [
      'with an attribute that a product has not',
      spec([node('MatMul', ['x', 'c'], 'y', { alpha: 2 })]),
      { code: 'UNSUPPORTED', argument: '', says: ['MatMul y', 'alpha'] },
    ],
    ...['int16', 'string'].map((dtype): (typeof cases)[number] => [
      `with an input of ${dtype}`,
      spec([node('Relu', ['c'], 'y')], { inputs: [input('x', [1], dtype)] }),
      { code: 'DTYPE', argument: 'x', says: ['input "x"', dtype] },
    ]),
    [
      'with operators that are not known',
      spec([
        node('Odd', ['x'], 'a'),
        node('Relu', ['a'], 'b'),
        { ...node('Relu', ['b'], 'y'), domain: 'org.example' },
      ]),
      {
        code: 'UNSUPPORTED',
        argument: '',
        says: ['2 operators are missing: Odd (node "Odd a"), org.example.Relu (node "Relu y")'],
      },
    ],
    [
      'with a constant of another type, and an operator that is not known behind it',
      spec([
        node('Constant', [], 'k', {
          value: { tensor: { dtype: 'int16', shape: [1], data: Int16Array.of(1) } },
        }),
        node('Odd', ['k'], 'y'),
      ]),
      {
        code: 'UNSUPPORTED',
        argument: '',
        says: [
          '1 operator is missing: Odd (node "Odd y"); ' +
            '1 node is not supported: node Constant "Constant k" has a value of type int16',
        ],
      },
    ],
    [
      'of an opset that is not known',
      spec([node('Relu', ['x'], 'y')], { opsets: { '': 99 } }),
      { code: 'UNSUPPORTED', argument: '', says: ['opset 99'] },
    ],
    [
      'without an opset',
      spec([node('Relu', ['x'], 'y')], { opsets: { 'com.microsoft': 1 } }),
      { code: 'UNSUPPORTED', argument: '', says: ['of a domain without an opset in the model'] },
    ],
    [
      'with weights that fit no call',
      spec(
        [node('MatMulNBits', ['x', 'c', 'c'], 'y', { K: 2, N: 1, block_size: 7 })].map((one) => ({
          ...one,
          domain: 'com.microsoft',
        })),
        { opsets: { '': 17, 'com.microsoft': 1 } },
      ),
      { argument: 'MatMulNBits y', says: ['MatMulNBits y'] },
    ],
  ];
  it.each(cases)('%s', async (_, model, wanted) => {
    const before = wg.memory().inUse;
    const error = await rejected(loadModel(encodeGraph(model), { wg }));
    const { code = 'ARGUMENT', argument = '', says } = wanted;
    if (says[0] !== 'MatMulNBits y') expectError(error, { code, op: 'loadModel', argument, says });
    else expect((error as Error).message).toContain('MatMulNBits y');
    expect(wg.memory().inUse).toBe(before);
  });

  it('by a run that makes another type than it declares', async () => {
    const bytes = encodeGraph(
      spec([node('Relu', ['x'], 'y')], { outputs: [input('y', [7], 'int64')] }),
    );
    const model = await loadModel(bytes, { wg });
    for (const call of [model.run({ x: feed([1]) }), model.explain()])
      expectError(await rejected(call), {
        code: 'DTYPE',
        op: 'run',
        argument: 'y',
        says: ['output "y" has dtype float32; the model declares int64'],
      });
    model.dispose();
  });

  it('lists all operators that are missing, and how many nodes each has', async () => {
    const nodes = Array.from({ length: 1000 }, (_, i) => [
      node('Conv', ['x'], `c${i}`),
      node(`Other${i % 40}`, ['x'], `o${i}`),
    ]).flat();
    const outputs = nodes.map((one) => input(one.outputs[0] as string));
    const error = (await rejected(
      loadModel(encodeGraph(spec(nodes, { outputs })), { wg }),
    )) as Error;
    expect(error).toBeInstanceOf(UnsupportedError);
    const [first, ...rest] = error.message.split('), ');
    expect(first).toBe(
      'loadModel: 41 operators are missing: Conv (1000 nodes, the first is "Conv c0"',
    );
    expect(rest.map((text) => text.split(' ')[0])).toEqual(
      Array.from({ length: 40 }, (_, i) => `Other${i}`),
    );
    expect(error.message.endsWith('Other39 (25 nodes, the first is "Other39 o39")')).toBe(true);
  });

  it('lists 20 of many faults of nodes, each once', async () => {
    const cast = (to: number, i: number) => node('Cast', ['x'], `y${to}_${i}`, { to });
    const nodes = [8, 14].flatMap((to) => Array.from({ length: 50 }, (_, i) => cast(to, i)));
    const odd = Array.from({ length: 100 }, (_, i) =>
      node('Relu', ['x'], `r${i}`, { [`a${i}`]: 1 }),
    );
    const outputs = [...nodes, ...odd].map((one) => input(one.outputs[0] as string));
    const error = (await rejected(
      loadModel(encodeGraph(spec([...nodes, ...odd], { outputs })), { wg }),
    )) as Error;
    const { message } = error;
    expect(message).toContain(
      'loadModel: 200 nodes are not supported: node Cast "Cast y8_0" casts to 8, ' +
        'the type string, which wgemm does not have (50 such nodes); ' +
        'node Cast "Cast y14_0" casts to 14, ',
    );
    expect(message).toContain('; node Relu "Relu r17" has the attribute "a17"');
    expect(message).not.toContain('a18');
    expect(message.endsWith(', and 82 more')).toBe(true);
  });

  it('unless readOnnx made it', async () => {
    const read = await readOnnx(mlp());
    for (const source of [{ ...read }, structuredClone(read), { graph: null }, { graph: {} }])
      expectError(await rejected(loadModel(source as never, { wg })), {
        code: 'ARGUMENT',
        op: 'loadModel',
        argument: 'source',
        says: ['not a model that readOnnx() returned', 'pass that model, not a copy'],
      });
    expectError(await rejected(loadModel(read, { wg, externalData: 7 as never })), {
      code: 'ARGUMENT',
      op: 'loadModel',
      argument: 'externalData',
      says: ['7', 'function'],
    });
    const [first] = read.graph.initializers.values();
    for (const part of [read, read.graph.nodes, read.graph.nodes[0], first, first?.shape])
      expect(Object.isFrozen(part)).toBe(true);
  });

  it('with an instance that is none, or options next to one', async () => {
    const bytes = mlp();
    const wrong = await rejected(loadModel(bytes, { wg: createGemm({ models: true }) as never }));
    expectError(wrong, {
      code: 'ARGUMENT',
      op: 'loadModel',
      argument: 'wg',
      says: ['a promise, which must be awaited'],
    });
    const own = await createInline();
    const inline = await rejected(loadModel(bytes, { wg: own as never }));
    own.dispose();
    expectError(inline, {
      code: 'ARGUMENT',
      op: 'loadModel',
      argument: 'wg',
      says: ['wgemm/inline', 'wgemm/worker'],
    });
    for (const made of [new Proxy(wg, {}), Object.create(wg) as Gemm]) {
      const says = ['wg is an object', 'wgemm/worker'];
      const error = await rejected(loadModel(bytes, { wg: made }));
      expectError(error, { code: 'ARGUMENT', op: 'loadModel', argument: 'wg', says });
    }
    const both = await rejected(loadModel(bytes, { wg, threads: 2 } as never));
    const says = ['pass either wg or threads, not both'];
    expectError(both, { code: 'ARGUMENT', op: 'loadModel', argument: 'threads', says });
    const unknown = await rejected(loadModel(bytes, { wgg: wg } as never));
    expectError(unknown, {
      code: 'ARGUMENT',
      op: 'loadModel',
      argument: 'wgg',
      says: ['externalData'],
    });
  });
});

describe('the option outputs', () => {
  const bytes = encodeGraph({
    nodes: [
      node('MatMul', ['x', 'w'], 'h'),
      node('Relu', ['h'], 'features'),
      node('Softmax', ['features'], 'probabilities'),
      node('Hardmax', ['features'], 'index'),
      { ...node('LabelMap', ['index', 'names'], 'label'), domain: 'ai.onnx.ml' },
      node('MatMul', ['z', 'v'], 'other'),
    ],
    inputs: [input('x', ['m', 4]), input('z', ['m', 64]), input('names', [3], 'string')],
    outputs: [input('probabilities'), input('label', undefined, 'int64'), input('other')],
    initializers: [floats('w', [4, 3]), floats('v', [64, 64])],
  });
  const x = feed([2, 4]);

  it('loads what these outputs need, and nothing else', async () => {
    const before = wg.memory().inUse;
    const model = await loadModel(bytes, { wg, outputs: ['probabilities'] });
    expect(wg.memory().inUse - before).toBeLessThan(64 * 64 * 4);
    expect(model.inputs.map(({ name }) => name)).toEqual(['x']);
    expect(model.outputs.map(({ name }) => name)).toEqual(['probabilities']);
    expect(Object.keys(await model.run({ x }))).toEqual(['probabilities']);
    expect((await model.explain()).map(({ node }) => node)).toEqual(['MatMul h']);
    expectError(await rejected(model.run({ x, z: x })), {
      code: 'ARGUMENT',
      op: 'run',
      argument: 'z',
      says: ['the model has no input "z"; it has "x"'],
    });
    model.dispose();
  });

  it('may have values between nodes, in the order of the caller', async () => {
    const names = ['features', 'probabilities', 'h', 'w', 'x'];
    const read = await readOnnx(bytes);
    const model = await loadModel(read, { wg, outputs: names });
    expect(model.outputs).toMatchObject([
      { name: 'features', dtype: 'none', shape: undefined },
      { name: 'probabilities', dtype: 'float32' },
      ...[{ name: 'h' }, { name: 'w' }, { name: 'x', dtype: 'float32', shape: ['m', 4] }],
    ]);
    for (const info of model.outputs) expect(Object.isFrozen(info)).toBe(true);
    const results = await model.run({ x });
    expect(Object.keys(results)).toEqual(names);
    expect(results.x?.data).toEqual(x.data);
    const relu = (results.h as ModelResult).data as Float32Array;
    expect(results.features?.data).toEqual(relu.map((value) => Math.max(value, 0)));
    model.dispose();
  });

  it('is read once, before the call returns', async () => {
    const outputs = ['probabilities'];
    let reads = 0;
    const loading = loadModel(bytes, {
      wg,
      get outputs() {
        ++reads;
        return outputs;
      },
    });
    outputs[0] = 'nothing';
    const model = await loading;
    expect(model.outputs.map(({ name }) => name)).toEqual(['probabilities']);
    expect(reads).toBe(1);
    model.dispose();
  });

  it('is what an error proposes, if some outputs need nothing that is missing', async () => {
    expectError(await rejected(loadModel(bytes, { wg })), {
      code: 'UNSUPPORTED',
      op: 'loadModel',
      argument: '',
      says: [
        '2 operators are missing: Hardmax (node "Hardmax index"), ai.onnx.ml.LabelMap ' +
          '(node "LabelMap label"); to load the outputs that do not need them, ' +
          'pass outputs: ["probabilities", "other"]',
      ],
    });
  });

  it('is not needed for nodes that no output needs', async () => {
    const model = await loadModel(
      encodeGraph({
        nodes: [node('Relu', ['x'], 'y'), node('Nothing', ['y'], 'z')],
        inputs: [input('x', [1])],
        outputs: [input('y')],
      }),
      { wg },
    );
    expect((await model.run({ x: feed([1]) })).y?.shape).toEqual([1]);
    model.dispose();
  });

  it.each([
    [
      ['label', 'none'],
      ['outputs has "none"', 'its outputs are "probabilities", "label", "other"'],
    ],
    [[''], ['outputs has ""']],
    [[], ['outputs is []', 'one or more different names']],
    [
      ['label', 'label'],
      ['outputs is ["label", "label"]', 'different names'],
    ],
    [
      ['label', 7],
      ['outputs is ["label", 7]', 'names'],
    ],
    ['label', ['outputs is "label"', 'an array']],
    [{ 0: 'label', length: 1 }, ['outputs is an object', 'an array']],
    [null, ['outputs is null', 'an array']],
    [new Array(3), ['outputs is [undefined, undefined, undefined]', 'names']],
  ])('is refused: %j', async (outputs, says) => {
    const before = wg.memory().inUse;
    const error = await rejected(loadModel(bytes, { wg, outputs: outputs as never }));
    expectError(error, { code: 'ARGUMENT', op: 'loadModel', argument: 'outputs', says });
    expect(wg.memory().inUse).toBe(before);
  });

  it('is refused: a revoked proxy, and the longest array', async () => {
    const gone = Proxy.revocable([], {});
    gone.revoke();
    for (const [outputs, found] of [
      [gone.proxy, 'a revoked proxy'],
      [new Array<never>(2 ** 32 - 1), '[undefined, '],
    ] as const) {
      expectError(await rejected(loadModel(bytes, { wg, outputs })), {
        code: 'ARGUMENT',
        op: 'loadModel',
        argument: 'outputs',
        says: [`outputs is ${found}`, 'an array'],
      });
    }
  });

  it('is read by index', async () => {
    const outputs = Object.assign(['probabilities'], {
      [Symbol.iterator]: () => ['label'].values(),
    });
    const model = await loadModel(bytes, { wg, outputs });
    expect(model.outputs.map(({ name }) => name)).toEqual(['probabilities']);
    model.dispose();
  });
});

describe('a run is refused, and its memory is freed', () => {
  it.each([
    ['sizes that do not fit', [node('MatMul', ['x', 'x'], 'y')], { code: 'SHAPE' as const }],
    [
      'a result beyond all memory',
      [node('Expand', ['x', 'huge'], 'a'), node('Relu', ['a'], 'y')],
      { code: 'OUT_OF_MEMORY' as const },
    ],
    [
      'many large results',
      [
        node('Expand', ['x', 'large'], 'a'),
        node('Expand', ['x', 'large'], 'b'),
        node('Expand', ['x', 'large'], 'c'),
        node('Concat', ['a', 'b', 'c'], 'd', { axis: 0 }),
        node('Relu', ['d'], 'y'),
      ],
      { code: 'OUT_OF_MEMORY' as const },
    ],
  ])('%s', async (_, nodes, wanted) => {
    const small = await createGemm({ maxMemory: 2 ** 24, models: true });
    const sizes = (name: string, size: bigint): TensorSpec => ({
      name,
      dtype: 'int64',
      shape: [2],
      data: BigInt64Array.of(size, 4n),
    });
    const model = await loadModel(
      encodeGraph({
        nodes: [...nodes, node('Relu', ['x'], 'fine')],
        inputs: [input('x', ['m', 'n'])],
        outputs: [input('y'), input('fine')],
        initializers: [sizes('huge', 2n ** 40n), sizes('large', 2n ** 19n)],
      }),
      { wg: small },
    );
    const error = await rejected(model.run({ x: feed([1, 4]) }));
    expect(error).toMatchObject({ ...wanted, op: 'run' });
    expect((error as Error).message).toContain('node ');
    expect(small.memory().inUse).toBeLessThan(2 ** 24);
    model.dispose();
    expect(small.memory().inUse).toBe(0);
    small.dispose();
  });
});

it('inputs may be detached, end the model, or have names of JavaScript', async () => {
  const spec: ModelSpec = {
    nodes: [node('Relu', ['constructor'], 'y')],
    inputs: [input('constructor', ['m', 2])],
    outputs: [input('y')],
  };
  const model = await loadModel(encodeGraph(spec), { wg });
  expect(await model.explain()).toEqual([]);
  const data = new Float32Array(2);
  structuredClone(data, { transfer: [data.buffer] });
  const detached = await rejected(model.run({ constructor: { data, shape: [0, 2] } }));
  expectError(detached, {
    code: 'ARGUMENT',
    op: 'run',
    argument: 'constructor',
    says: ['detached'],
  });
  const ends = {
    get constructor() {
      model.dispose();
      return feed([1, 2]);
    },
  };
  const ended = await rejected(model.run(ends));
  expectError(ended, { code: 'DISPOSED', op: 'run', argument: 'model', says: [] });
});

it.each(['bias', 'dims', 'host', 'originals', 'start', 'strides'])(
  'Object.prototype may have %s',
  async (name) => {
    const spec: ModelSpec = {
      nodes: [
        node('MatMul', ['x', 'w'], 'a'),
        node('Tanh', ['a'], 'b'),
        node('Pow', ['b', 'half'], 'y'),
      ],
      inputs: [input('x', ['m', 2])],
      outputs: [input('y')],
      initializers: [
        floats('w', [2, 2]),
        { name: 'half', dtype: 'float32', shape: [], data: Float32Array.of(0.5) },
      ],
    };
    const wanted = await run(spec, { x: feed([3, 2]) });
    for (const value of [1, [[3], [3]]]) {
      Object.defineProperty(Object.prototype, name, { value, configurable: true });
      try {
        expect(await run(spec, { x: feed([3, 2]) })).toEqual(wanted);
      } finally {
        delete (Object.prototype as Record<string, unknown>)[name];
      }
    }
  },
);

it('shapes and a signal may end the model', async () => {
  const spec: ModelSpec = {
    nodes: [node('Relu', ['x'], 'y')],
    inputs: [input('x', ['m', 2])],
    outputs: [input('y')],
  };
  const { inUse } = wg.memory();
  const wanted = { code: 'DISPOSED', argument: 'model', says: ['loadModel()'] } as const;
  const first = await loadModel(encodeGraph(spec), { wg });
  const shapes = {
    get x() {
      first.dispose();
      return [1, 2];
    },
  };
  expectError(await rejected(first.explain(shapes)), { ...wanted, op: 'explain' });
  const second = await loadModel(encodeGraph(spec), { wg });
  let reads = 0;
  const signal = {
    get aborted() {
      if (++reads === 2) second.dispose(); // after the feeds
      return false;
    },
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  };
  const ended = await rejected(second.run({ x: feed([1, 2]) }, { signal }));
  expectError(ended, { ...wanted, op: 'run' });
  expect(wg.memory().inUse).toBe(inUse);
});

// By the square of the number of nodes, this takes 20 s, more than the limit of the test.
it('nodes may be in any order, which takes time by their number only', async () => {
  const count = 20_000;
  const names = Array.from({ length: count }, (_, i) => `n${i}`);
  // Each input of the first node is made by a later one.
  const nodes = [
    node('Concat', names, 'y', { axis: 0 }),
    ...names.map((n) => node('Relu', ['x'], n)),
  ];
  const bytes = encodeGraph({ nodes, inputs: [input('x', [1])], outputs: [input('y')] });
  const model = await loadModel(bytes, { wg });
  const { y } = await model.run({ x: { data: Float32Array.of(3), shape: [1] } });
  expect((y as ModelResult).shape).toEqual([count]);
  model.dispose();
}, 15_000);

// By the square of the number of products, loading takes 35 s, more than the limit of the test.
it('products may end in one node, which takes time by their number only', async () => {
  const names = Array.from({ length: 20_000 }, (_, i) => `p${i}`);
  const nodes = [
    ...names.map((name) => node('MatMul', ['x', 'w'], name)),
    node('Concat', names, 'y', { axis: 0 }),
  ];
  const initializers = [floats('w', [1, 1])];
  const inputs = [input('x', [1, 1])];
  const bytes = encodeGraph({ nodes, inputs, outputs: [input('y')], initializers });
  const model = await loadModel(bytes, { wg });
  const { y } = await model.run({ x: { data: Float32Array.of(1), shape: [1, 1] } });
  expect(y?.shape).toEqual([names.length, 1]);
  model.dispose();
}, 20_000);

// By the square of the number of inputs, a run takes 40 s, more than the limit of the test.
it('inputs may be many, which takes time by their number only', async () => {
  const names = Array.from({ length: 100_000 }, (_, i) => `x${i}`);
  const nodes = [node('Concat', names, 'y', { axis: 0 })];
  const inputs = names.map((name) => input(name, [1]));
  const bytes = encodeGraph({ nodes, inputs, outputs: [input('y')] });
  const model = await loadModel(bytes, { wg });
  const tensors = names.map((name, i) => [name, { data: Float32Array.of(i), shape: [1] }]);
  const { y } = await model.run(Object.fromEntries(tensors) as Record<string, ModelTensor>);
  expect(y?.data).toEqual(Float32Array.from(names, (_, i) => i));
  await model.explain(Object.fromEntries(names.map((name) => [name, [1]])));
  model.dispose();
}, 20_000);

it('outputs may be chosen among many, which takes time by their number only', async () => {
  const names = Array.from({ length: 40_000 }, (_, i) => `y${i}`);
  const nodes = names.map((name) => node('Relu', ['x'], name));
  const outputs = names.map((name) => input(name));
  const bytes = encodeGraph({ nodes, inputs: [input('x', [1])], outputs });
  const model = await loadModel(bytes, { wg, outputs: names });
  expect(model.outputs.map(({ name }) => name)).toEqual(names);
  model.dispose();
}, 15_000);

// By the product of both numbers, this takes minutes, more than the limit of the test.
it('products behind many nodes Transpose take time by their numbers only', async () => {
  const count = 20_000;
  const turns = Array.from({ length: count }, (_, i) =>
    node('Transpose', [i ? `t${i - 1}` : 'x'], `t${i}`),
  );
  const products = Array.from({ length: 1000 }, (_, i) =>
    node('MatMul', [`t${count - 1}`, `t${count - 1}`], `y${i}`),
  );
  const bytes = encodeGraph({
    nodes: [...turns, ...products],
    inputs: [input('x', [2, 2])],
    outputs: products.map((_, i) => input(`y${i}`)),
  });
  const model = await loadModel(bytes, { wg });
  const { y999 } = await model.run({ x: { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] } });
  expect((y999 as ModelResult).data).toEqual(Float32Array.of(7, 10, 15, 22));
  model.dispose();
}, 15_000);

it('nodes of com.microsoft need no opset of it', async () => {
  const nodes = [{ ...node('Gelu', ['x'], 'y'), domain: 'com.microsoft' }];
  const spec: ModelSpec = { nodes, inputs: [input('x', [3])], outputs: [input('y')] };
  const x = feed([3]);
  const wanted = await run({ ...spec, opsets: { '': 17, 'com.microsoft': 1 } }, { x });
  expect(await run(spec, { x })).toEqual(wanted);
  const other = await rejected(
    loadModel(encodeGraph({ ...spec, opsets: { '': 17, 'com.microsoft': 2 } }), { wg }),
  );
  expect((other as Error).message).toContain('is of opset 2; it must be 1');
});

it('constants are folded, so that only the rest runs', async () => {
  const made = maker();
  const folded: ModelSpec = {
    nodes: [
      node('Transpose', ['w'], 'wt', { perm: [1, 0] }),
      node('Reshape', ['wt', made.ints('sizes', [20, 30])], 'b'),
      node('MatMul', ['x', 'b'], 'y'),
    ],
    inputs: [input('x', ['m', 20])],
    outputs: [input('y'), input('wt')],
    initializers: [...made.list, floats('w', [30, 20])],
  };
  const model = await loadModel(encodeGraph(folded), { wg });
  const [product] = await model.explain();
  expect(product).toMatchObject({ op: 'MatMul', packed: true, fused: [] });
  const { wt } = await model.run({ x: feed([1, 20]) });
  expect((wt as ModelResult).shape).toEqual([20, 30]);
  expect((wt as ModelResult).data[1]).toBe((folded.initializers?.at(-1)?.data as Float32Array)[20]);
  model.dispose();
});
