/** If, ZipMap and states, on seeded random problems next to ONNX Runtime Web. */
import { expect, it } from 'vitest';
import { loadModel } from 'wgemm/onnx';
import { encodeGraph, type ModelSpec, type NodeSpec } from '../../peers/onnx-model.mjs';
import { Random } from '../support/random.js';
import { ort, wg } from '../support/with-ort.js';
import { randomTensor, tensor } from './onnx-nodes.js';

it('If', async () => {
  const random = new Random(51);
  const operators = ['Neg', 'Sqrt', 'Relu', 'Tanh', 'Add', 'Mul', 'Sub'];
  const info = (name: string) => ({ name, dtype: 'float32' });
  let names = 0;
  const graph = (outer: readonly string[], depth: number): { nodes: NodeSpec[]; last: string } => {
    const known = [...outer];
    const nodes: NodeSpec[] = [];
    for (let i = random.between(1, 4); i > 0; --i) {
      const output = `v${++names}`;
      if (depth < 3 && random.next() < 0.4) {
        const [yes, no] = [graph(known, depth + 1), graph(known, depth + 1)];
        const branch = ({ nodes, last }: typeof yes) => ({
          graph: { nodes, outputs: [info(last)] },
        });
        nodes.push({
          op: 'If',
          inputs: [random.pick(['a', 'b', 'yes'])],
          outputs: [output],
          attributes: { then_branch: branch(yes), else_branch: branch(no) },
        });
      } else {
        const op = random.pick(operators);
        const inputs = [random.pick(known), random.pick(known)].slice(op.length === 3 ? 0 : 1);
        if (op === 'Neg') inputs.length = 1;
        nodes.push({ op, inputs, outputs: [output] });
      }
      known.push(output);
    }
    return { nodes, last: known.at(-1) as string };
  };
  for (let compared = 0; compared < 40;) {
    const { nodes, last } = graph(['x', 'y'], 0);
    const spec: ModelSpec = {
      nodes,
      inputs: [
        ...['x', 'y'].map((name) => ({ ...info(name), shape: ['n'] })),
        ...['a', 'b'].map((name) => ({ name, dtype: 'bool', shape: [] })),
      ],
      outputs: [info(last)],
      initializers: [{ name: 'yes', dtype: 'bool', shape: [], data: Uint8Array.of(1) }],
    };
    const bytes = encodeGraph(spec);
    const model = await loadModel(bytes, { wg });
    const session = await ort.createSession(bytes);
    let runs = 0;
    for (; runs < 6; ++runs) {
      const feeds = {
        ...Object.fromEntries(
          ['x', 'y'].map((name) => [name, randomTensor(random, 'float32', [3])]),
        ),
        ...Object.fromEntries(
          ['a', 'b'].map((name) => [name, tensor('bool', [], [random.between(0, 1)])]),
        ),
      };
      // Inputs that no node takes stay in the model.
      const results = await model.run(feeds);
      const tensors = Object.fromEntries(
        Object.entries(feeds).map(([name, input]) => [name, ort.tensor(input as never)]),
      );
      let wanted: Record<string, { data: Float32Array }>;
      try {
        wanted = (await session.run(tensors)) as typeof wanted;
      } catch (error) {
        // The runtime loses a value of some graphs with many branches.
        if (String(error).includes('IsTensor() was false')) break;
        throw error;
      }
      const got = results[last]!.data as Float32Array;
      got.forEach((value, at) => {
        const other = wanted[last]!.data[at] as number;
        if (Number.isNaN(other)) expect(value, JSON.stringify(spec.nodes)).toBeNaN();
        else expect(value, JSON.stringify(spec.nodes)).toBeCloseTo(other, 5);
      });
    }
    if (runs === 6) ++compared;
    model.dispose();
  }
});

// The runtime has no access to the maps that are the result, so it runs the node before.
it('ZipMap', async () => {
  const random = new Random(52);
  const domain = 'ai.onnx.ml';
  const floats = (length: number) => ({
    floats: Array.from({ length }, () => Math.fround(random.next() * 4 - 2)),
  });
  for (let i = 0; i < 40; ++i) {
    const [count, columns] = [random.between(2, 5), random.between(1, 7)];
    const labels = Array.from({ length: count }, (_, i) => 3 * i - 5);
    const classifier: NodeSpec = {
      op: 'LinearClassifier',
      domain,
      inputs: ['x'],
      outputs: ['label', 'scores'],
      attributes: {
        coefficients: floats(count * columns),
        intercepts: floats(count),
        classlabels_ints: labels,
        post_transform: random.pick(['NONE', 'SOFTMAX', 'LOGISTIC']),
      },
    };
    const map: NodeSpec = {
      op: 'ZipMap',
      domain,
      inputs: ['scores'],
      outputs: ['map'],
      attributes: { classlabels_int64s: labels },
    };
    const bytesOf = (nodes: NodeSpec[], output: string) =>
      encodeGraph({
        opsets: { '': 17, [domain]: 3 },
        nodes,
        inputs: [{ name: 'x', dtype: 'float32', shape: ['n', columns] }],
        outputs: [{ name: output, dtype: 'float32' }],
      });
    const x = randomTensor(random, 'float32', [random.between(1, 5), columns]);
    const model = await loadModel(bytesOf([classifier, map], 'map'), { wg });
    const found = (await model.run({ x }))['map']!;
    model.dispose();
    const session = await ort.createSession(bytesOf([classifier], 'scores'));
    const wanted = await session.run({ x: ort.tensor(x as never) });
    const results = wanted as unknown as Record<string, { dims: number[]; data: Float32Array }>;
    const { dims, data } = results['scores']!;
    expect(found.shape).toEqual(dims);
    (found.data as Float32Array).forEach((value, at) => expect(value).toBeCloseTo(data[at]!, 4));
  }
});

const heads = 2;
const size = 16; // the runtime refuses others in GroupQueryAttention
const width = heads * size;
const ints = (name: string, ...values: number[]) => ({
  name,
  dtype: 'int64',
  shape: [values.length],
  data: BigInt64Array.from(values, BigInt),
});
const node = (op: string, inputs: (string | null)[], outputs: string[], rest = {}): NodeSpec => ({
  op,
  inputs,
  outputs,
  ...rest,
});
const ms = { domain: 'com.microsoft' };
/** Queries, keys or values of shape (batch, heads, tokens, size). */
const split = (from: string, to: string) => [
  node('Reshape', [from, 'heads'], [`${to} rows`]),
  node('Transpose', [`${to} rows`], [to], { attributes: { perm: [0, 2, 1, 3] } }),
];

/** Attentions of the tokens x to all tokens so far, by what appends the keys and values. */
const decoders: Record<string, NodeSpec[]> = {
  Concat: [
    ...split('k', 'k4'),
    ...split('v', 'v4'),
    ...split('q', 'q4'),
    node('Concat', ['past.k', 'k4'], ['present.k'], { attributes: { axis: 2 } }),
    node('Concat', ['past.v', 'v4'], ['present.v'], { attributes: { axis: 2 } }),
    node('Transpose', ['present.k'], ['turned'], { attributes: { perm: [0, 1, 3, 2] } }),
    node('MatMul', ['q4', 'turned'], ['scores']),
    node('Softmax', ['scores'], ['weights'], { attributes: { axis: -1 } }),
    node('MatMul', ['weights', 'present.v'], ['y']),
  ],
  Attention: [
    ...split('k', 'k4'),
    ...split('v', 'v4'),
    ...split('q', 'q4'),
    node(
      'Attention',
      ['q4', 'k4', 'v4', null, 'past.k', 'past.v'],
      ['y', 'present.k', 'present.v'],
      {
        attributes: { is_causal: 1 },
      },
    ),
  ],
  MultiHeadAttention: [
    node(
      'MultiHeadAttention',
      ['q', 'k', 'v', null, null, null, 'past.k', 'past.v'],
      ['y', 'present.k', 'present.v'],
      { ...ms, attributes: { num_heads: heads, unidirectional: 1 } },
    ),
  ],
  GroupQueryAttention: [
    node('Shape', ['past.k'], ['sizes']),
    node('Gather', ['sizes', 'two'], ['before']),
    node('Shape', ['x'], ['sizes of x']),
    node('Gather', ['sizes of x', 'one'], ['tokens']),
    node('Add', ['before', 'tokens'], ['sum']),
    node('Cast', ['sum'], ['total'], { attributes: { to: 6 } }),
    node('Sub', ['sum', 'one'], ['last']),
    node('Cast', ['last'], ['length'], { attributes: { to: 6 } }),
    node(
      'GroupQueryAttention',
      ['q', 'k', 'v', 'past.k', 'past.v', 'length', 'total', 'cos', 'sin'],
      ['y', 'present.k', 'present.v'],
      { ...ms, attributes: { num_heads: heads, kv_num_heads: heads, do_rotary: 1 } },
    ),
  ],
};

it.each(Object.keys(decoders))('a state of %s', async (name) => {
  const random = new Random(53);
  const kept = { 'present.k': 'past.k', 'present.v': 'past.v' };
  for (let i = 0; i < 10; ++i) {
    const weights = ['wq', 'wk', 'wv'].map((name) => ({
      name,
      ...randomTensor(random, 'float32', [5, width], 1),
    }));
    const tables = ['cos', 'sin'].map((name) => ({
      name,
      ...randomTensor(random, 'float32', [120, size / 2], 1),
    }));
    const batch = name === 'GroupQueryAttention' ? 1 : random.pick([1, 2]);
    const past = ['past.k', 'past.v'].map((name) => ({
      name,
      dtype: 'float32',
      shape: [batch, heads, 'before', size],
    }));
    const bytes = encodeGraph({
      opsets: { '': 23, 'com.microsoft': 1 },
      nodes: [
        ...['q', 'k', 'v'].map((name) => node('MatMul', ['x', `w${name}`], [name])),
        ...(decoders[name] as NodeSpec[]),
      ],
      inputs: [{ name: 'x', dtype: 'float32', shape: [batch, 'tokens', 5] }, ...past],
      outputs: ['y', ...Object.keys(kept)].map((name) => ({ name, dtype: 'float32' })),
      initializers: [
        ...[...weights, ...tables, ints('heads', 0, 0, heads, size)],
        ...[ints('one', 1), ints('two', 2)],
      ],
    });
    const model = await loadModel(bytes, { wg });
    const state = await model.state(kept);
    const session = await ort.createSession(bytes);
    const empty = ort.tensor({
      dtype: 'float32',
      shape: [batch, heads, 0, size],
      data: new Float32Array(0),
    });
    let pasts: Record<string, typeof empty> = { 'past.k': empty, 'past.v': empty };
    for (let run = 0; run < 24; ++run) {
      const tokens = run === 0 || random.next() < 0.1 ? random.between(1, 4) : 1;
      const x = randomTensor(random, 'float32', [batch, tokens, 5], 1);
      const { y } = await model.run({ x }, { state });
      const results = await session.run({ ...pasts, x: ort.tensor(x as never) });
      const wanted = results as unknown as Record<string, typeof empty>;
      expect(y!.shape).toEqual(wanted['y']!.dims);
      const others = wanted['y']!.data as Float32Array;
      (y!.data as Float32Array).forEach((value, at) => expect(value).toBeCloseTo(others[at]!, 4));
      pasts = { 'past.k': wanted['present.k']!, 'past.v': wanted['present.v']! };
    }
    state.dispose();
    model.dispose();
  }
});
