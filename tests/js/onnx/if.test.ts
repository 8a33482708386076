/** Models with If: which branch runs, what it takes from around it, and what is refused. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { loadModel, type ModelTensor } from 'wgemm/onnx';
import { encodeGraph, type ModelSpec, type NodeSpec } from '../../peers/onnx-model.mjs';
import { expectError, rejected, type Wanted } from '../support/errors.js';
import { Random } from '../support/random.js';

let wg: Gemm;
let before: number;
beforeAll(async () => {
  wg = await createGemm({ models: true });
  before = wg.memory().inUse;
});
afterAll(() => {
  expect(wg.memory().inUse).toBe(before);
  wg.dispose();
});

const node = (op: string, inputs: string[], output: string, attributes = {}): NodeSpec => ({
  op,
  name: `${op} ${output}`,
  inputs,
  outputs: [output],
  attributes,
});
const float = (name: string) => ({ name, dtype: 'float32' });
const graph = (
  nodes: NodeSpec[],
  outputs: string[],
  initializers: ModelSpec['initializers'] = [],
) => ({
  graph: { nodes, outputs: outputs.map(float), initializers },
});
const choice = (
  cond: string,
  yes: ReturnType<typeof graph>,
  no: ReturnType<typeof graph>,
  ...outputs: string[]
): NodeSpec => ({
  op: 'If',
  name: 'the choice',
  inputs: [cond],
  outputs,
  attributes: { then_branch: yes, else_branch: no },
});

const random = new Random(4);
const tensor = (...shape: number[]) => ({
  shape,
  data: random.fill(new Float32Array(shape.reduce((product, size) => product * size, 1))),
});
const bool = (value: boolean) => ({ shape: [], data: Uint8Array.of(value ? 1 : 0) });
const weights = { name: 'w', dtype: 'float32', ...tensor(3, 3) };

/** y is relu(x w) + x or tanh(x) - 1; z is x w or x. */
const spec = (cond: NodeSpec[], inputs: ModelSpec['inputs'] = []): ModelSpec => ({
  nodes: [
    ...cond,
    node('MatMul', ['x', 'w'], 'product'),
    choice(
      'cond',
      graph([node('Relu', ['product'], 'a'), node('Add', ['a', 'x'], 'b')], ['b', 'product']),
      graph(
        [node('Tanh', ['x'], 'a'), node('Sub', ['a', 'own'], 'c')],
        ['c', 'x'],
        [{ name: 'own', dtype: 'float32', shape: [], data: Float32Array.of(1) }],
      ),
      'y',
      'z',
    ),
    node('Neg', ['y'], 'negative'),
  ],
  inputs: [{ name: 'x', dtype: 'float32', shape: ['rows', 3] }, ...(inputs ?? [])],
  outputs: ['y', 'z', 'negative'].map(float),
  initializers: [weights],
});

const branches: ModelSpec[] = [
  [
    node('MatMul', ['x', 'w'], 'z'),
    node('Relu', ['z'], 'a'),
    node('Add', ['a', 'x'], 'y'),
    node('Neg', ['y'], 'negative'),
  ],
  [
    node('Tanh', ['x'], 'a'),
    node('Sub', ['a', 'one'], 'y'),
    node('Identity', ['x'], 'z'),
    node('Neg', ['y'], 'negative'),
  ],
].map((nodes) => ({
  ...spec([]),
  nodes,
  initializers: [weights, { name: 'one', dtype: 'float32', shape: [], data: Float32Array.of(1) }],
}));

async function resultsOf(model: ModelSpec, feeds: Record<string, ModelTensor>[]) {
  const loaded = await loadModel(encodeGraph(model), { wg });
  try {
    const results = [];
    for (const each of feeds) results.push(await loaded.run(each));
    return results;
  } finally {
    loaded.dispose();
  }
}

describe('If', () => {
  const isTrue = { name: 'cond', dtype: 'bool', shape: [], data: Uint8Array.of(1) };

  it.each([0, 1])('runs the branch of a constant: %i', async (value) => {
    const x = tensor(2, 3);
    const constant = { ...isTrue, data: Uint8Array.of(value) };
    const model = spec([]);
    const given = { ...model, initializers: [...(model.initializers ?? []), constant] };
    const wanted = await resultsOf(branches[1 - value] as ModelSpec, [{ x }]);
    expect(await resultsOf(given, [{ x }])).toEqual(wanted);
  });

  it('chooses by shapes when a run is recorded', async () => {
    const cond = [
      node('Shape', ['x'], 'shape'),
      node('Slice', ['shape', 'zero', 'one', 'zero'], 'rows'),
      node('Sub', ['rows', 'one'], 'more'),
      node('Cast', ['more'], 'cond', { to: 9 }),
    ];
    const model = spec(cond);
    const int = (name: string, value: bigint) => ({
      name,
      dtype: 'int64',
      shape: [1],
      data: BigInt64Array.of(value),
    });
    const given = {
      ...model,
      initializers: [...(model.initializers ?? []), int('zero', 0n), int('one', 1n)],
    };
    for (const rows of [1, 4]) {
      const x = tensor(rows, 3);
      const wanted = await resultsOf(branches[rows > 1 ? 0 : 1] as ModelSpec, [{ x }]);
      expect(await resultsOf(given, [{ x }])).toEqual(wanted);
    }
  });

  it('chooses in each run by an input', async () => {
    const model = spec([], [{ name: 'cond', dtype: 'bool', shape: [] }]);
    const values = [true, true, false, true, false, false];
    const feeds = values.map((value) => ({ x: tensor(2, 3), cond: bool(value) }));
    const results = await resultsOf(model, feeds);
    for (const [i, { x }] of feeds.entries()) {
      const wanted = await resultsOf(branches[values[i] ? 0 : 1] as ModelSpec, [{ x }]);
      expect([results[i]]).toEqual(wanted);
    }
  });

  it('may be in another, and its names may be taken elsewhere', async () => {
    const inner = choice(
      'second',
      graph([node('Add', ['a', 'x'], 'b')], ['b']),
      graph([], ['a']),
      'inner',
    );
    const model: ModelSpec = {
      nodes: [
        choice(
          'cond',
          graph([node('Tanh', ['x'], 'a'), inner, node('Neg', ['inner'], 'b')], ['b']),
          graph([node('Neg', ['x'], 'a')], ['a']),
          'y',
        ),
        node('Neg', ['x'], 'b'),
      ],
      inputs: [
        { name: 'x', dtype: 'float32', shape: ['rows', 3] },
        ...['cond', 'second'].map((name) => ({ name, dtype: 'bool', shape: [1] })),
      ],
      outputs: ['y', 'b'].map(float),
    };
    const cases = [0, 1, 2, 3, 3, 2, 1, 0];
    const feeds = cases.map((value) => ({
      x: tensor(1, 3),
      cond: { shape: [1], data: Uint8Array.of(value & 1) },
      second: { shape: [1], data: Uint8Array.of(value >> 1) },
    }));
    const results = await resultsOf(model, feeds);
    const tanh = await resultsOf(
      {
        nodes: [node('Tanh', ['x'], 'y')],
        inputs: [float('x')],
        outputs: [float('y')],
      },
      feeds.map(({ x }) => ({ x })),
    );
    results.forEach(({ y, b }, i) => {
      const { data } = (feeds[i] as (typeof feeds)[0]).x;
      const bent = tanh[i]?.['y']?.data as Float32Array;
      const value = cases[i] as number;
      const wanted = data.map((each, j) =>
        value & 1
          ? -(value >> 1 ? Math.fround((bent[j] as number) + each) : (bent[j] as number))
          : -each,
      );
      expect(y?.data).toEqual(wanted);
      expect(b?.data).toEqual(data.map((each) => -each));
    });
  });

  it('frees what a branch no longer needs', async () => {
    const chain = (name: string) => [
      node('Tanh', ['x'], `${name}0`),
      ...Array.from({ length: 9 }, (_, i) => node('Tanh', [`${name}${i}`], `${name}${i + 1}`)),
    ];
    const model = await loadModel(
      encodeGraph({
        nodes: [choice('cond', graph(chain('a'), ['a9']), graph(chain('b'), ['b9']), 'y')],
        inputs: [
          { name: 'x', dtype: 'float32', shape: ['size'] },
          { name: 'cond', dtype: 'bool', shape: [] },
        ],
        outputs: [float('y')],
      }),
      { maxMemory: 16e6 },
    );
    // Three values at once take 12 MB.
    const { y } = await model.run({ x: tensor(1e6), cond: bool(true) });
    expect(y?.shape).toEqual([1e6]);
    model.dispose();
  });
});

const x = { name: 'x', dtype: 'float32', shape: [1] };
const cond = { name: 'cond', dtype: 'bool', shape: [] };
const ofBranches = (yes: unknown, no: unknown = graph([], ['x'])): ModelSpec => ({
  nodes: [choice('cond', yes as never, no as never, 'y')],
  inputs: [x, cond],
  outputs: [float('y')],
});

const refusals: [says: string, model: ModelSpec, wanted?: Partial<Wanted>][] = [
  [
    'node If "the choice" takes "q", which is not an input, a constant or an output of a node',
    ofBranches(graph([], ['q'])),
  ],
  [
    'node If "the choice" has a then_branch that makes a name twice',
    ofBranches(graph([node('Neg', ['x'], 'a'), node('Neg', ['x'], 'a')], ['a'])),
  ],
  [
    'node If "the choice" has a then_branch of 0 inputs and 0 outputs; it must have no inputs and 1',
    ofBranches(graph([], [])),
  ],
  ['node If "the choice" lacks the attribute then_branch; it must be a graph', ofBranches(1)],
  [
    '1 operator is missing: own.Odd (node "odd")',
    ofBranches(
      graph([{ op: 'Odd', domain: 'own', name: 'odd', inputs: ['x'], outputs: ['a'] }], ['a']),
    ),
    { code: 'UNSUPPORTED', argument: '' },
  ],
  [
    'node Loop "loop" repeats a graph, which is not supported; export the model without loops',
    {
      nodes: [{ op: 'Loop', name: 'loop', inputs: ['', 'cond', 'x'], outputs: ['y'] }],
      inputs: [x, cond],
      outputs: [float('y')],
    },
    { code: 'UNSUPPORTED', argument: '' },
  ],
];

it.each(refusals)('says: %s', async (says, model, wanted) => {
  expectError(await rejected(loadModel(encodeGraph(model), { wg })), {
    code: 'ARGUMENT',
    op: 'loadModel',
    argument: 'the choice',
    ...wanted,
    says: [says],
  });
});

it('refuses a condition that is not one bool', async () => {
  const model = await loadModel(
    encodeGraph({ ...ofBranches(graph([], ['x'])), inputs: [x, { ...cond, shape: ['n'] }] }),
    { wg },
  );
  const feeds = { x: tensor(1), cond: { shape: [2], data: new Uint8Array(2) } };
  expectError(await rejected(model.run(feeds)), {
    code: 'SHAPE',
    op: 'run',
    argument: 'the choice',
    says: ['cond has dtype bool and shape [2]; it must be one bool'],
  });
  model.dispose();
});
