/** If, and linear models of ai.onnx.ml, on seeded random problems next to ONNX Runtime Web. */
import { expect, it } from 'vitest';
import { loadModel } from 'wgemm/onnx';
import { encodeGraph, type ModelSpec, type NodeSpec } from '../../peers/onnx-model.mjs';
import { Random } from '../support/random.js';
import { ort, wg } from '../support/with-ort.js';
import { type NodeCase, randomTensor, runInOrt, runNode, tensor, valuesOf } from './onnx-nodes.js';

const list = (random: Random, length: number) => ({
  floats: Array.from({ length }, () => Math.fround(random.next() * 4 - 2)),
});

type Draw = (random: Random) => Pick<NodeCase, 'inputs' | 'attributes' | 'outputs'>;

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
    inputs: [matrix(random, columns)],
    attributes: {
      coefficients: list(random, rows * columns),
      intercepts: list(random, rows),
      post_transform: random.pick(['NONE', 'SOFTMAX', 'LOGISTIC']),
      targets: rows,
    },
  };
};

const draws: Record<string, Draw> = {
  LinearRegressor(random) {
    const { inputs, attributes } = linear(random);
    // The runtime applies no other.
    return {
      inputs: [{ ...inputs[0]!, ...randomTensor(random, 'float32', inputs[0]!.shape) }],
      attributes: { ...attributes, post_transform: 'NONE' },
    };
  },
  LinearClassifier(random) {
    const { inputs, attributes } = linear(random);
    const { targets = 0, ...others } = attributes!;
    const labels = Array.from({ length: targets as number }, () => random.between(-99, 99));
    return { inputs, attributes: { ...others, classlabels_ints: labels }, outputs: 2 };
  },
  Scaler(random) {
    const columns = random.between(1, 7);
    const length = random.pick([1, columns]);
    return {
      inputs: [matrix(random, columns)],
      attributes: { offset: list(random, length), scale: list(random, length) },
    };
  },
  Normalizer: (random) => ({
    inputs: [matrix(random, random.between(1, 7))],
    attributes: { norm: random.pick(['MAX', 'L1', 'L2']) },
  }),
  ArrayFeatureExtractor(random) {
    const columns = random.between(1, 7);
    const count = random.between(1, 5);
    const indices = Array.from({ length: count }, () => random.between(0, columns - 1));
    return { inputs: [matrix(random, columns), tensor('int64', [1, count], indices)] };
  },
};

it.each(Object.keys(draws))('%s', async (op) => {
  const random = new Random(51);
  for (let i = 0; i < 40; ++i) {
    const node = { op, domain: 'ai.onnx.ml', opset: 13, ...(draws[op] as Draw)(random) };
    const what = JSON.stringify([node.inputs, node.attributes], (_, value: unknown) =>
      typeof value === 'bigint' ? Number(value) : value,
    );
    const found = await runNode(wg, node);
    const wanted = await runInOrt(
      ort,
      node,
      found.map(({ dtype }) => dtype),
    );
    found.forEach((each, j) => {
      const other = wanted[j]!;
      expect([each.dtype, each.shape], what).toEqual([other.dtype, other.shape]);
      const others = valuesOf(other);
      valuesOf(each).forEach((value, at) => {
        if (typeof value === 'bigint') expect(value, what).toBe(others[at]);
        else expect(value, what).toBeCloseTo(others[at] as number, 4);
      });
    });
  }
});

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
  for (let i = 0; i < 40; ++i) {
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
    for (let run = 0; run < 6; ++run) {
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
      const wanted = (await session.run(
        Object.fromEntries(
          Object.entries(feeds).map(([name, input]) => [name, ort.tensor(input as never)]),
        ),
      )) as Record<string, { data: Float32Array }>;
      const got = results[last]!.data as Float32Array;
      got.forEach((value, at) => {
        expect(value, JSON.stringify(spec.nodes)).toBeCloseTo(wanted[last]!.data[at] as number, 5);
      });
    }
    model.dispose();
  }
});
