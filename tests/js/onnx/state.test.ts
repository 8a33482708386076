/** States: outputs of a run that stay in the memory of the instance as inputs of the next one. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { loadModel, type Model, type ModelResult, type ModelState } from 'wgemm/onnx';
import { createGemm as createInWorker } from 'wgemm/worker';
import { encodeGraph, type ModelSpec, type NodeSpec } from '../../peers/onnx-model.mjs';
import { expectError, rejected, type Wanted } from '../support/errors.js';
import { Random } from '../support/random.js';
import { glueOf } from './state-glue.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
});
afterAll(() => {
  wg.dispose();
});

const node = (op: string, inputs: string[], output: string, attributes = {}): NodeSpec => ({
  op,
  inputs,
  outputs: [output],
  attributes,
});
const ints = (name: string, ...values: number[]) => ({
  name,
  dtype: 'int64',
  shape: [values.length],
  data: BigInt64Array.from(values, BigInt),
});

const heads = 2;
const width = 4;
const past = { name: 'past', dtype: 'float32', shape: ['batch', heads, 'before', width] };

/** Attention of tokens to all tokens so far, whose keys are also the values. */
function attention(append: NodeSpec[] = [node('Concat', ['past', 'k'], 'present', { axis: 2 })]) {
  return {
    nodes: [
      node('Reshape', ['x', 'split'], 's'),
      node('Transpose', ['s'], 'k', { perm: [0, 2, 1, 3] }),
      ...append,
      node('Transpose', ['present'], 't', { perm: [0, 1, 3, 2] }),
      node('MatMul', ['k', 't'], 'scores'),
      node('Add', ['scores', 'mask'], 'masked'),
      node('Softmax', ['masked'], 'p', { axis: -1 }),
      node('MatMul', ['p', 'present'], 'y'),
    ],
    inputs: [
      { name: 'x', dtype: 'float32', shape: ['batch', 'tokens', heads * width] },
      { name: 'mask', dtype: 'float32', shape: ['batch', 1, 1, 'all'] },
      past,
    ],
    outputs: [
      { name: 'y', dtype: 'float32' },
      { name: 'present', dtype: 'float32' },
    ],
    initializers: [ints('split', 0, -1, heads, width)],
  } satisfies ModelSpec;
}

const random = new Random(51);
const floats = (...shape: number[]) => ({
  shape,
  data: random.fill(new Float32Array(shape.reduce((product, size) => product * size, 1))),
});

type Feeds = Parameters<Model['run']>[0];

/** Feeds of some tokens after `before` others. */
const tokensAfter = (before: number, tokens: number, batch = 1): Feeds => ({
  x: floats(batch, tokens, heads * width),
  mask: floats(batch, 1, 1, before + tokens),
});

/** A model, and another one that gets its kept outputs as feeds. */
class Twins {
  kept: Record<string, ModelResult> = {};

  constructor(
    readonly model: Model,
    readonly state: ModelState,
    readonly other: Model,
    readonly names: Readonly<Record<string, string>>,
  ) {}

  static async of(spec: ModelSpec, names: Readonly<Record<string, string>>): Promise<Twins> {
    const bytes = encodeGraph(spec);
    const model = await loadModel(bytes, { wg });
    return new Twins(model, await model.state(names), await loadModel(bytes, { wg }), names);
  }

  /** Runs both, and compares the results. `first`: what the state begins with. */
  async run(feeds: Feeds, first: Feeds = {}, state = this.state): Promise<void> {
    const results = await this.model.run(feeds, { state });
    const wanted = await this.other.run({ ...first, ...feeds, ...this.kept });
    this.kept = {};
    for (const [output, input] of Object.entries(this.names)) {
      this.kept[input] = wanted[output] as ModelResult;
      expect(results).not.toHaveProperty(output);
      delete wanted[output];
    }
    expect(results).toEqual(wanted);
  }

  dispose(): void {
    this.model.dispose();
    this.other.dispose();
  }
}

let before: number;
beforeEach(() => {
  before = wg.memory().inUse;
});
afterEach(() => {
  expect(wg.memory().inUse).toBe(before);
});

const empty = (batch: number) => ({ past: floats(batch, heads, 0, width) });
const pair = { present: 'past' };

describe('a decoder', () => {
  it.each([1, 2])('computes as with feeds, with a batch of %i', async (batch) => {
    const twins = await Twins.of(attention(), pair);
    await twins.run(tokensAfter(0, 5, batch), empty(batch));
    for (let length = 5; length < 80; ++length) await twins.run(tokensAfter(length, 1, batch));
    await twins.run(tokensAfter(80, 7, batch));
    for (let length = 87; length < 100; ++length) await twins.run(tokensAfter(length, 1, batch));
    twins.dispose();
  });

  it('records only while tensors grow', async () => {
    const model = await loadModel(encodeGraph(attention()), { wg });
    const state = await model.state(pair);
    const glue = await glueOf(() => model.run(tokensAfter(0, 9), { state }));
    const moved: number[] = [];
    const { takePlans } = glue;
    glue.takePlans = (...args) => (++(moved[moved.length - 1] as number), takePlans(...args));
    try {
      for (let length = 9; length < 64; ++length) {
        moved.push(0);
        await model.run(tokensAfter(length, 1), { state });
      }
    } finally {
      glue.takePlans = takePlans;
    }
    // There is room for 16, 32 and 64 rows. A run after each enlargement is recorded.
    expect(moved.filter((calls) => calls === 0).length).toBeLessThan(10);
    expect(moved.slice(-25)).toEqual(Array.from({ length: 25 }, () => 1));
    model.dispose();
  });

  it('takes no more memory from run to run', async () => {
    const model = await loadModel(encodeGraph(attention()), { wg });
    const state = await model.state(pair);
    const uses = new Set<number>();
    for (let length = 0; length < 120; ++length) {
      await model.run(tokensAfter(length, 1), { state });
      if (length > 70) uses.add(wg.memory().inUse);
    }
    expect(uses.size).toBeLessThan(3);
    state.dispose();
    expect(state.disposed).toBe(true);
    model.dispose();
  });

  it('goes on after a cut, and as a copy', async () => {
    const twins = await Twins.of(attention(), pair);
    await twins.run(tokensAfter(0, 20, 2), empty(2));
    for (let length = 20; length < 30; ++length) await twins.run(tokensAfter(length, 1, 2));
    const copy = await twins.state.clone();
    const whole = twins.kept;
    await twins.state.cut(12);
    const { data } = whole['past'] as ModelResult;
    const rows = 30 * width;
    const first = Array.from({ length: 2 * heads }, (_, i) =>
      (data as Float32Array).slice(i * rows, i * rows + 12 * width),
    );
    const shape = [2, heads, 12, width];
    twins.kept = {
      past: { dtype: 'float32', shape, data: Float32Array.from(first.flatMap((row) => [...row])) },
    };
    for (let length = 12; length < 40; ++length) await twins.run(tokensAfter(length, 1, 2));
    twins.kept = whole;
    for (let length = 30; length < 40; ++length)
      await twins.run(tokensAfter(length, 1, 2), {}, copy);
    await copy.cut(0);
    twins.kept = empty(2) as never;
    await twins.run(tokensAfter(0, 3, 2), {}, copy);
    copy.dispose();
    twins.dispose();
  });

  it('takes a feed in place of what it has', async () => {
    const twins = await Twins.of(attention(), pair);
    const first = floats(2, heads, 6, width);
    for (let round = 0; round < 2; ++round) {
      twins.kept = {};
      await twins.run({ ...tokensAfter(6, 1, 2), past: first });
      for (let length = 7; length < 20; ++length) await twins.run(tokensAfter(length, 1, 2));
    }
    twins.dispose();
  });

  it('says what a run copies', async () => {
    for (const [append, where] of [
      [[node('Concat', ['past', 'k'], 'present', { axis: 2 })], []],
      [[node('Concat', ['k', 'past'], 'present', { axis: 2 })], ['present']],
    ] as const) {
      const model = await loadModel(encodeGraph(attention([...append])), { wg });
      const state = await model.state(pair);
      await model.run(tokensAfter(0, 3), { state });
      for (let round = 0; round < 2; ++round) {
        const shapes = { x: [1, 1, heads * width], mask: [1, 1, 1, 4] };
        const steps = await model.explain(shapes, { steps: true, state });
        const copied = steps.filter((step) => step.where === 'copy');
        expect(copied.map((step) => step.node)).toEqual(where);
        expect(steps.map(({ op }) => op)).toContain('Softmax');
      }
      await model.run(tokensAfter(3, 1), { state });
      model.dispose();
    }
  });
});

/** What models do with tensors that are kept. */
const variants: Record<string, [spec: ModelSpec, names?: Record<string, string>]> = {
  'rows at the start': [attention([node('Concat', ['k', 'past'], 'present', { axis: 2 })])],
  'a copy of the rows': [
    attention([
      node('Concat', ['past', 'k'], 'c', { axis: 2 }),
      node('Identity', ['c'], 'present'),
    ]),
  ],
  'rows that are rounded': [
    attention([
      node('Concat', ['past', 'k'], 'c', { axis: 2 }),
      node('Add', ['c', 'c'], 'present'),
    ]),
  ],
  'elements of the tensor': (() => {
    const spec = attention();
    const nodes = [
      ...spec.nodes,
      node('Mul', ['past', 'past'], 'squares'),
      node('Identity', ['past'], 'same'),
      node('Reshape', ['present', 'flat'], 'flattened'),
      node('Sqrt', ['flattened'], 'roots'),
      node('Slice', ['present', 'from', 'to', 'axes', 'back'], 'sliced'),
      node('Gather', ['present', 'first'], 'gathered', { axis: 1 }),
      node('Pow', ['past', 'odd'], 'powers'),
      node('MatMul', ['y', 'square'], 'product'),
      node('Add', ['product', 'tail'], 'sum'),
      node('Slice', ['present', 'minus', 'to', 'axes'], 'tail'),
    ];
    const names = ['squares', 'same', 'roots', 'sliced', 'gathered', 'powers', 'sum'];
    return [
      {
        ...spec,
        nodes,
        outputs: [...spec.outputs, ...names.map((name) => ({ name, dtype: 'float32' }))],
        initializers: [
          ...spec.initializers,
          ints('flat', -1),
          ints('from', -1),
          ints('minus', -1),
          ints('to', 2 ** 40),
          ints('axes', 2),
          ints('back', 1),
          ints('first', 1, 0),
          { name: 'odd', dtype: 'float32', shape: [], data: Float32Array.of(3) },
          { name: 'square', dtype: 'float32', ...floats(width, width) },
        ],
      },
    ];
  })(),
};

/** A model that also returns the sizes of a tensor, which no step computes. */
variants['sizes of the tensor'] = (() => {
  const spec = attention();
  const sizes = { name: 'sizes', dtype: 'int64' };
  const nodes = [...spec.nodes, node('Shape', ['present'], 'sizes')];
  return [{ ...spec, nodes, outputs: [...spec.outputs, sizes] }];
})();

/** A model with a branch for one length only. */
variants['a condition of one length'] = (() => {
  const spec = attention();
  const branch = (op: string) => ({
    graph: { nodes: [node(op, ['y'], 'z')], outputs: [{ name: 'z', dtype: 'float32' }] },
  });
  const nodes = [
    ...spec.nodes,
    node('Shape', ['present'], 'shape'),
    node('Gather', ['shape', 'rows'], 'length'),
    node('Sub', ['length', 'one'], 'difference'),
    node('Cast', ['difference'], 'isOther', { to: 9 }),
    node('If', ['isOther'], 'w', { then_branch: branch('Neg'), else_branch: branch('Relu') }),
  ];
  return [
    {
      ...spec,
      nodes,
      outputs: [...spec.outputs, { name: 'w', dtype: 'float32' }],
      initializers: [...spec.initializers, ints('rows', 2), ints('one', 25)],
    },
  ];
})();

/** A model that hides later tokens by a mask of known sizes, as exporters write it out in nodes. */
const masked = (comparison: readonly NodeSpec[]): ModelSpec => {
  const spec = attention();
  const size = (of: string, output: string) => [
    node('Shape', [of], `${output} shape`),
    node('Gather', [`${output} shape`, 'rows'], output),
  ];
  const nodes = [
    ...size('past', 'before'),
    ...spec.nodes,
    ...size('present', 'all'),
    node('Range', ['zero', 'all', 'step'], 'keys'),
    node('Range', ['before', 'all', 'step'], 'queries'),
    node('Unsqueeze', ['queries', 'last'], 'column'),
    ...comparison,
    node('Where', ['hides', 'least', 'most'], 'hidden'),
    node('Add', ['scores', 'hidden'], 'z'),
  ];
  const scalar = (name: string, value: number) => ({ ...ints(name, value), shape: [] });
  const float = (name: string, value: number) => ({
    name,
    dtype: 'float32',
    shape: [],
    data: Float32Array.of(value),
  });
  return {
    ...spec,
    nodes,
    outputs: [...spec.outputs, { name: 'z', dtype: 'float32' }],
    initializers: [
      ...spec.initializers,
      ...[scalar('rows', 2), scalar('zero', 0), scalar('step', 1), ints('last', 1)],
      ...[scalar('window', 20), scalar('two', 2), scalar('four', 4)],
      ...[float('least', -8), float('most', 0.5)],
    ],
  };
};

/** Masks, and whether all their elements are the same while tokens come one by one. */
const masks: Record<string, [mask: NodeSpec[], moves: boolean]> = {
  'later tokens': [[node('Greater', ['keys', 'column'], 'hides')], true],
  'tokens that are not later': [
    [node('LessOrEqual', ['keys', 'column'], 'seen'), node('Not', ['seen'], 'hides')],
    true,
  ],
  'tokens before a window': [
    [node('Sub', ['column', 'window'], 'from'), node('Less', ['keys', 'from'], 'hides')],
    false,
  ],
  // At the sizes of the rehearsals, the elements that both masks have are the same.
  'the second half of the tokens': [
    [
      node('Div', ['all', 'two'], 'half'),
      node('Add', ['half', 'four'], 'from'),
      node('Greater', ['keys', 'from'], 'hides'),
    ],
    false,
  ],
  'one token': [[node('Equal', ['keys', 'window'], 'hides')], false],
};

describe.each(Object.entries(masks))('a mask of %s', (_, [mask, moves]) => {
  it('computes as with feeds', async () => {
    const twins = await Twins.of(masked(mask), pair);
    await twins.run(tokensAfter(0, 5), empty(1));
    for (let length = 5; length < 70; ++length) await twins.run(tokensAfter(length, 1));
    await twins.run(tokensAfter(70, 4));
    for (let length = 74; length < 90; length += 2) await twins.run(tokensAfter(length, 2));
    twins.dispose();
  });

  it(`is ${moves ? 'not recorded for each length' : 'recorded for each length'}`, async () => {
    const model = await loadModel(encodeGraph(masked(mask)), { wg });
    const state = await model.state(pair);
    const glue = await glueOf(() => model.run(tokensAfter(0, 33), { state }));
    const { takePlans } = glue;
    let moved = 0;
    glue.takePlans = (...args) => (++moved, takePlans(...args));
    try {
      for (let length = 33; length < 64; ++length)
        await model.run(tokensAfter(length, 1), { state });
    } finally {
      glue.takePlans = takePlans;
    }
    if (moves) expect(moved).toBeGreaterThan(20);
    else expect(moved).toBe(0);
    model.dispose();
  });
});

describe('a kept tensor', () => {
  it.each(Object.entries(variants))('has the elements that feeds have: %s', async (_, [spec]) => {
    const twins = await Twins.of(spec, pair);
    await twins.run(tokensAfter(0, 3, 2), empty(2));
    for (let length = 3; length < 40; ++length) await twins.run(tokensAfter(length, 1, 2));
    twins.dispose();
  });

  it('may be an output of another shape, too', async () => {
    const spec: ModelSpec = {
      nodes: [
        node('Concat', ['past', 'x'], 'present', { axis: 1 }),
        node('Reshape', ['present', 'flat'], 'y'),
      ],
      inputs: ['past', 'x'].map((name) => ({ name, dtype: 'float32', shape: [1, `${name}s`, 3] })),
      outputs: ['present', 'y'].map((name) => ({ name, dtype: 'float32' })),
      initializers: [ints('flat', -1)],
    };
    const twins = await Twins.of(spec, pair);
    await twins.run({ x: floats(1, 2, 3) }, { past: floats(1, 0, 3) });
    for (let length = 2; length < 40; ++length) await twins.run({ x: floats(1, 1, 3) });
    twins.dispose();
  });

  it('need not grow, begins as zeros, and may become another one', async () => {
    const dense = ['a', 'b'].map((name) => ({ name, dtype: 'float32', shape: [2, 3] }));
    const spec: ModelSpec = {
      nodes: [
        node('MatMul', ['a', 'w'], 'm'),
        node('Add', ['m', 'x'], 'n'),
        node('Tanh', ['n'], 'c'),
        node('Identity', ['a'], 'd'),
        node('Identity', ['b'], 'y'),
      ],
      inputs: [...dense, { name: 'x', dtype: 'float32', shape: [2, 3] }],
      outputs: ['c', 'd', 'y'].map((name) => ({ name, dtype: 'float32' })),
      initializers: [{ name: 'w', dtype: 'float32', ...floats(3, 3) }],
    };
    const zeros = { shape: [2, 3], data: new Float32Array(6) };
    const twins = await Twins.of(spec, { c: 'a', d: 'b' });
    for (let i = 0; i < 4; ++i) await twins.run({ x: floats(2, 3) }, { a: zeros, b: zeros });
    twins.dispose();
    const swapped = await Twins.of(
      {
        ...spec,
        nodes: [...spec.nodes, node('Identity', ['b'], 'e')],
        outputs: [...spec.outputs!, { name: 'e', dtype: 'float32' }],
      },
      { d: 'b', e: 'a' },
    );
    await swapped.run({ x: floats(2, 3), a: floats(2, 3), b: floats(2, 3) });
    for (let i = 0; i < 4; ++i) await swapped.run({ x: floats(2, 3) });
    swapped.dispose();
  });

  it('may have another shape in each run', async () => {
    const spec: ModelSpec = {
      nodes: [node('Transpose', ['past'], 't'), node('Concat', ['t', 'x'], 'present', { axis: 0 })],
      inputs: ['past', 'x'].map((name) => ({
        name,
        dtype: 'float32',
        shape: [undefined, undefined],
      })),
      outputs: [{ name: 'present', dtype: 'float32' }],
    };
    const twins = await Twins.of(spec, pair);
    await twins.run({ past: floats(2, 3), x: floats(1, 2) });
    for (const size of [4, 3, 5, 4, 6]) await twins.run({ x: floats(1, size) });
    twins.dispose();
  });

  it('stays as it was if memory is missing', async () => {
    const small = await createGemm({ models: true, maxMemory: 8e6 });
    const model = await loadModel(encodeGraph(attention()), { wg: small });
    const state = await model.state(pair);
    let length = 0;
    for (; length < 20; ++length) await model.run(tokensAfter(length, 1), { state });
    const copy = await state.clone();
    const inUse = small.memory().inUse;
    const failed = await rejected(model.run(tokensAfter(length, 2000), { state }));
    expect(failed).toMatchObject({ code: 'OUT_OF_MEMORY', op: 'run' });
    // The tensor may have more room than before, but nothing else is left.
    expect(small.memory().inUse).toBeLessThan(inUse + 1e6);
    for (; length < 40; ++length) {
      const feeds = tokensAfter(length, 1);
      const results = await model.run(feeds, { state });
      expect(results).toEqual(await model.run(feeds, { state: copy }));
    }
    small.dispose();
  });
});

it('stays in a worker', async () => {
  const worker = await createInWorker({ models: true });
  const bytes = encodeGraph(attention());
  const [there, here] = [await loadModel(bytes, { wg: worker }), await loadModel(bytes, { wg })];
  const states = [await there.state(pair), await here.state(pair)] as const;
  const run = async (feeds: Feeds, [a, b]: readonly [ModelState, ModelState] = states) =>
    expect(await there.run(feeds, { state: a })).toEqual(await here.run(feeds, { state: b }));
  for (let length = 0; length < 40; ++length) await run(tokensAfter(length, 1));
  const copies = [await states[0].clone(), await states[1].clone()] as const;
  for (const state of states) await state.cut(3);
  await run(tokensAfter(3, 1));
  await run(tokensAfter(40, 1), copies);
  const shapes = { x: [1, 1, heads * width], mask: [1, 1, 1, 5] };
  const steps = await there.explain(shapes, { steps: true, state: states[0] });
  expect(steps.map(({ op }) => op)).toContain('Softmax');
  expectError(await rejected(states[0].cut(9)), {
    code: 'ARGUMENT',
    op: 'cut',
    argument: 'length',
    says: ['length is 9; it must be from 0 to 4'],
  });
  states[0].dispose();
  expect(states[0].disposed).toBe(true);
  here.dispose();
  there.dispose();
  worker.dispose();
});

const refusals: [
  says: string,
  wanted: Omit<Wanted, 'says'>,
  call: (model: Model, state: ModelState) => Promise<unknown>,
][] = [
  [
    'keep is 3; it must be an object of names',
    { code: 'ARGUMENT', op: 'state', argument: 'keep' },
    (model) => model.state(3 as never),
  ],
  [
    'keep has "q"; the outputs are "y", "present"',
    { code: 'ARGUMENT', op: 'state', argument: 'keep' },
    (model) => model.state({ q: 'past' }),
  ],
  [
    'keep has "q"; the inputs are "x", "mask", "past"',
    { code: 'ARGUMENT', op: 'state', argument: 'keep' },
    (model) => model.state({ present: 'q' }),
  ],
  [
    'keep has "past" twice',
    { code: 'ARGUMENT', op: 'state', argument: 'keep' },
    (model) => model.state({ present: 'past', y: 'past' }),
  ],
  [
    'state is 3; it must be a state of this model',
    { code: 'ARGUMENT', op: 'run', argument: 'state' },
    (model) => model.run(tokensAfter(0, 1), { state: 3 as never }),
  ],
  [
    'with state, steps must be true',
    { code: 'ARGUMENT', op: 'explain', argument: 'state' },
    (model, state) => model.explain({}, { state } as never),
  ],
  [
    'length is 1.5; it must be a whole number',
    { code: 'ARGUMENT', op: 'cut', argument: 'length' },
    (_, state) => state.cut(1.5),
  ],
  [
    'length is 1; it must be 0, since no tensor has grown',
    { code: 'ARGUMENT', op: 'cut', argument: 'length' },
    (_, state) => state.cut(1),
  ],
  [
    'the state or its model is disposed; make another by model.state()',
    { code: 'DISPOSED', op: 'clone', argument: 'state' },
    (_, state) => {
      state.dispose();
      return state.clone();
    },
  ],
  [
    'the state or its model is disposed; make another by model.state()',
    { code: 'DISPOSED', op: 'run', argument: 'state' },
    (model, state) => {
      state.dispose();
      return model.run(tokensAfter(0, 1), { state });
    },
  ],
];

it.each(refusals)('says: %s', async (says, wanted, call) => {
  const model = await loadModel(encodeGraph(attention()), { wg });
  const state = await model.state(pair);
  expectError(await rejected(call(model, state)), { ...wanted, says: [says] });
  model.dispose();
});

it('refuses sizes that do not agree with what it has', async () => {
  const model = await loadModel(encodeGraph(attention()), { wg });
  const state = await model.state(pair);
  await model.run(tokensAfter(0, 1), { state });
  expectError(await rejected(model.run(tokensAfter(1, 1, 2), { state })), {
    code: 'SHAPE',
    op: 'run',
    argument: 'past',
    says: ['input "past" has shape [1, 2, 1, 4] and "batch" is 2 in "x"'],
  });
  await model.run(tokensAfter(1, 1), { state });
  model.dispose();
});
