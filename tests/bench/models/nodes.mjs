// Models of one operator. Each is a chain of equal nodes. The two chains of an operator have
// different lengths, and the same inputs and outputs.
import { randomArray } from '../data.mjs';
import { graphMaker } from './graph.mjs';

/** The numbers of nodes of the two chains. */
export const chainLengths = [4, 12];

const shapes = [
  [128, 768],
  [12, 128, 128],
];

/** Adds a node with inputs `x` and weights, and the output `y`. Returns the shape of the output. */
const operators = {
  DynamicQuantizeLinear({ node }, x, y, shape) {
    node('DynamicQuantizeLinear', [x], [`${y}.quantized`, y, `${y}.zero_point`]);
    return shape;
  },
  Softmax({ node }, x, y, shape) {
    node('Softmax', [x], y, { axis: -1 });
    return shape;
  },
  LayerNormalization({ node, nearOne, floats }, x, y, shape) {
    const last = shape.slice(-1);
    const factors = [nearOne(`${y}.scale`, last), floats(`${y}.bias`, last, 0.1)];
    node('LayerNormalization', [x, ...factors], y, { axis: -1, epsilon: 1e-5 });
    return shape;
  },
  Gelu({ node }, x, y, shape) {
    node('Gelu', [x], y);
    return shape;
  },
  Add({ node, floats }, x, y, shape) {
    node('Add', [x, floats(`${y}.other`, shape, 1)], y);
    return shape;
  },
  'Add of a row'({ node, floats }, x, y, shape) {
    node('Add', [x, floats(`${y}.other`, shape.slice(-1), 1)], y);
    return shape;
  },
  'Transpose of heads'({ node }, x, y, shape) {
    const [batch, rows, heads, width] = shape;
    node('Transpose', [x], y, { perm: [0, 2, 1, 3] });
    return [batch, heads, rows, width];
  },
  'Transpose of rows'({ node }, x, y, shape) {
    const perm = shape.map((_, axis) => axis);
    perm.push(...perm.splice(-2).reverse());
    node('Transpose', [x], y, { perm });
    return perm.map((axis) => shape[axis]);
  },
};

/** Whether every node reads x, so that all scales are outputs. Its other output is of bytes. */
const readsInput = (name) => name === 'DynamicQuantizeLinear';

/** The shape of x: with heads for the Transpose that has four axes. */
function shapeFor(name, shape) {
  if (name !== 'Transpose of heads') return shape;
  return shape.length === 2 ? [1, shape[0], 12, shape[1] / 12] : [1, ...shape];
}

/** The bytes of a chain of `count` nodes. */
function chain(name, shape, count) {
  const graph = graphMaker(7);
  let [x, after] = ['x', shape];
  const outputs = [];
  for (let i = 1; i <= count; ++i) {
    const y = i === count ? 'y' : `y${i}`;
    after = operators[name](graph, x, y, after);
    if (readsInput(name)) outputs.push({ name: y, dtype: 'float32', shape: [] });
    else x = y;
  }
  if (!readsInput(name)) outputs.push({ name: 'y', dtype: 'float32', shape: after });
  const inputs = [{ name: 'x', dtype: 'float32', shape }];
  return graph.encode({ opsets: { '': 20 }, inputs, outputs });
}

/** { name, variant, chains(), feeds() }: chains() returns the bytes of both chains. */
export const nodes = Object.keys(operators).flatMap((name) =>
  shapes.map((size) => {
    const shape = shapeFor(name, size);
    const data = randomArray(
      'float32',
      size.reduce((product, each) => product * each),
      1,
    );
    return {
      name: `${name}, ${size.join(' x ')}`,
      variant: 'one node',
      chains: () => chainLengths.map((count) => chain(name, shape, count)),
      feeds: () => ({ x: { dtype: 'float32', shape, data: data.map((value) => 4 * value) } }),
    };
  }),
);
