// Six small networks. A run takes microseconds, so that what a call costs counts.
import { randomArray } from '../data.mjs';
import { graphMaker } from './graph.mjs';

/** { name, variant, bytes, feeds, bound }: as in models.mjs. */
export const smallModels = [
  {
    name: 'collision avoidance',
    variant: 'float32',
    bytes: acasXu,
    feeds: feed('float32', [1, 1, 1, 5]),
  },
  {
    name: 'wake word',
    variant: 'float32',
    bytes: wakeWord,
    feeds: feed('float32', [1, 16, 96]),
  },
  { name: 'policy', variant: 'float32', bytes: policy, feeds: feed('float32', [1, 24]) },
  {
    name: 'dense, 64 rows',
    variant: 'QDQ',
    bytes: qdqMlp,
    feeds: feed('float32', [64, 256]),
    bound: 0.02,
  },
  {
    name: 'dense',
    variant: 'float16',
    bytes: halfMlp,
    feeds: feed('float16', [1, 256]),
    bound: 0.01,
  },
  { name: 'table', variant: 'float32', bytes: tabular, feeds: feed('float32', [100, 14]) },
];

function feed(dtype, shape) {
  const size = shape.reduce((product, size) => product * size, 1);
  return () => ({ x: { dtype, shape, data: randomArray(dtype, size, 1) } });
}

const rangeOf = (inputs) => Math.sqrt(3 / inputs);

/** Adds a Gemm, whose weights have the columns in rows, as PyTorch writes it. */
function gemm({ node, floats }, x, name, inputs, outputs, y = name) {
  const w = floats(`${name}.weight`, [outputs, inputs], rangeOf(inputs));
  return node('Gemm', [x, w, floats(`${name}.bias`, [outputs], 0.1)], y, { transB: 1 });
}

const encoded = ({ encode }, from, to, dtype = 'float32', opset = 17) =>
  encode({
    opsets: { '': opset },
    inputs: [{ name: 'x', dtype, shape: from }],
    outputs: [{ name: 'y', dtype, shape: to }],
  });

/** A network of ACAS Xu, which says how an aircraft turns: 22 nodes, six hidden layers of 50. */
function acasXu() {
  const graph = graphMaker(1);
  const { node, floats } = graph;
  const centered = node('Sub', ['x', floats('mean', [1, 1, 1, 5])], 'centered');
  let x = node('Flatten', [centered], 'flat', { axis: 1 });
  const sizes = [5, 50, 50, 50, 50, 50, 50, 5];
  sizes.slice(1).forEach((outputs, i) => {
    const isLast = i === sizes.length - 2;
    const w = floats(`w${i}`, [sizes[i], outputs], rangeOf(sizes[i]));
    const product = node('MatMul', [x, w], `product${i}`);
    x = node('Add', [product, floats(`b${i}`, [outputs], 0.1)], isLast ? 'y' : `sum${i}`);
    if (!isLast) x = node('Relu', [x], `relu${i}`);
  });
  return encoded(graph, [1, 1, 1, 5], [1, 5]);
}

/** A detector of a wake word, on 16 vectors of features. */
function wakeWord() {
  const graph = graphMaker(2);
  const { node, nearOne, floats } = graph;
  let x = node('Flatten', ['x'], 'flat', { axis: 1 });
  [1536, 128].forEach((inputs, i) => {
    x = gemm(graph, x, `dense${i}`, inputs, 128);
    const factors = [nearOne(`norm${i}.weight`, [128]), floats(`norm${i}.bias`, [128], 0.1)];
    x = node('LayerNormalization', [x, ...factors], `norm${i}`, { axis: -1, epsilon: 1e-5 });
    x = node('Relu', [x], `relu${i}`);
  });
  node('Sigmoid', [gemm(graph, x, 'score', 128, 1)], 'y');
  return encoded(graph, ['batch', 16, 96], ['batch', 1]);
}

/** A policy of reinforcement learning: two hidden layers of 64 with Tanh. */
function policy() {
  const graph = graphMaker(3);
  let x = graph.node('Tanh', [gemm(graph, 'x', 'dense0', 24, 64)], 'tanh0');
  x = graph.node('Tanh', [gemm(graph, x, 'dense1', 64, 64)], 'tanh1');
  gemm(graph, x, 'action', 64, 6, 'y');
  return encoded(graph, ['batch', 24], ['batch', 6]);
}

/** A dense network as ONNX Runtime's static quantization writes it. */
function qdqMlp() {
  const graph = graphMaker(4);
  const { node, scalar, tensor, floats, takeBack } = graph;
  /** Rounds a value to uint8, by a scale and a zero point. */
  const rounded = (x, name, scale, zero, y = `${name}.back`) => {
    const factors = [
      scalar(`${name}.scale`, 'float32', scale),
      scalar(`${name}.zero`, 'uint8', zero),
    ];
    const q = node('QuantizeLinear', [x, ...factors], `${name}.quantized`);
    return node('DequantizeLinear', [q, ...factors], y);
  };
  const sizes = [256, 128, 64, 10];
  let xScale = 2 / 255;
  let x = rounded('x', 'x', xScale, 128);
  sizes.slice(1).forEach((outputs, i) => {
    const inputs = sizes[i];
    const isLast = i === sizes.length - 2;
    const most = rangeOf(inputs);
    const scale = most / 127;
    floats(`w${i}`, [outputs, inputs], most);
    const weights = Int8Array.from(takeBack().data, (value) => Math.round(value / scale));
    floats(`b${i}`, [outputs], 0.1);
    const bias = Int32Array.from(takeBack().data, (value) => Math.round(value / (xScale * scale)));
    const wFactors = [scalar(`w${i}.scale`, 'float32', scale), scalar(`w${i}.zero`, 'int8', 0)];
    const bFactors = [
      scalar(`b${i}.scale`, 'float32', xScale * scale),
      scalar(`b${i}.zero`, 'int32', 0),
    ];
    const w = node(
      'DequantizeLinear',
      [tensor(`w${i}.quantized`, 'int8', [outputs, inputs], weights), ...wFactors],
      `w${i}`,
    );
    const b = node(
      'DequantizeLinear',
      [tensor(`b${i}.quantized`, 'int32', [outputs], bias), ...bFactors],
      `b${i}`,
    );
    x = node('Gemm', [x, w, b], `sum${i}`, { transB: 1 });
    if (!isLast) x = node('Relu', [x], `relu${i}`);
    xScale = isLast ? 4 / 255 : 2 / 255;
    x = rounded(x, `layer${i}`, xScale, isLast ? 128 : 0, isLast ? 'y' : undefined);
  });
  return encoded(graph, ['batch', 256], ['batch', 10]);
}

/** A dense network whose weights, input and output are float16. */
function halfMlp() {
  const graph = graphMaker(5);
  const { node, floats, takeBack, tensor } = graph;
  const halves = (name, shape, most) => {
    floats(name, shape, most);
    return tensor(name, 'float16', shape, Float16Array.from(takeBack().data));
  };
  const sizes = [256, 128, 64, 10];
  let x = 'x';
  sizes.slice(1).forEach((outputs, i) => {
    const isLast = i === sizes.length - 2;
    const w = halves(`w${i}`, [outputs, sizes[i]], rangeOf(sizes[i]));
    const b = halves(`b${i}`, [outputs], 0.1);
    x = node('Gemm', [x, w, b], isLast ? 'y' : `sum${i}`, { transB: 1 });
    if (!isLast) x = node('Relu', [x], `relu${i}`);
  });
  return encoded(graph, ['batch', 256], ['batch', 10], 'float16');
}

/** A classifier of the rows of a table. */
function tabular() {
  const graph = graphMaker(6);
  let x = graph.node('Relu', [gemm(graph, 'x', 'dense0', 14, 64)], 'relu0');
  x = graph.node('Relu', [gemm(graph, x, 'dense1', 64, 32)], 'relu1');
  graph.node('Softmax', [gemm(graph, x, 'classes', 32, 5)], 'y', { axis: -1 });
  return encoded(graph, ['batch', 14], ['batch', 5]);
}
