/** If, and ZipMap, on seeded random problems next to ONNX Runtime Web. */
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
