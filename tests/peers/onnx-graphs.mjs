// Models of several nodes, as exporters write them: for tests, and for races with ONNX Runtime Web.
import { encodeGraph } from './onnx-model.mjs';
import { randomFrom } from '../conformance/qgemm.mjs';

/** Makes initializers with random elements. */
export function maker(seed = 1) {
  const random = randomFrom(seed);
  const sizeOf = (shape) => shape.reduce((product, size) => product * size, 1);
  const list = [];
  const add = (name, dtype, shape, data) => (list.push({ name, dtype, shape, data }), name);
  return {
    list,
    random,
    /** Numbers from -most to most. */
    floats: (name, shape, most = 1) =>
      add(
        name,
        'float32',
        shape,
        Float32Array.from({ length: sizeOf(shape) }, () => (2 * random() - 1) * most),
      ),
    bytes(name, dtype, shape, least = dtype === 'int8' ? -128 : 0, most = least + 255) {
      const array = dtype === 'int8' ? Int8Array : Uint8Array;
      const element = () => least + Math.floor(random() * (most - least + 1));
      return add(name, dtype, shape, array.from({ length: sizeOf(shape) }, element));
    },
    scalar: (name, dtype, value) =>
      add(
        name,
        dtype,
        [],
        { float32: Float32Array, uint8: Uint8Array, int8: Int8Array }[dtype].of(value),
      ),
    ints: (name, values) =>
      add(name, 'int64', [values.length], BigInt64Array.from(values.map(BigInt))),
  };
}

/**
 * A dense network: Gemm and Relu in turns. Layer i has sizes[i] inputs and sizes[i + 1] outputs.
 *
 * @param isWhole whether weights and biases are -1, 0 or 1
 */
export function mlp({ sizes = [784, 128, 64, 10], batch = 'batch', seed = 1, isWhole } = {}) {
  const { list, floats } = maker(seed);
  const nodes = [];
  let x = 'x';
  sizes.slice(1).forEach((outputs, i) => {
    const inputs = sizes[i];
    const isLast = i === sizes.length - 2;
    const y = isLast ? 'scores' : `y${i}`;
    nodes.push({
      op: 'Gemm',
      name: `dense ${i}`,
      inputs: [
        x,
        floats(`w${i}`, [outputs, inputs], Math.sqrt(3 / inputs)),
        floats(`b${i}`, [outputs]),
      ],
      outputs: [y],
      attributes: { transB: 1 },
    });
    x = y;
    if (isLast) return;
    x = `relu${i}`;
    nodes.push({ op: 'Relu', name: `relu ${i}`, inputs: [y], outputs: [x] });
  });
  const rounded = (tensor) => ({
    ...tensor,
    data: tensor.data.map((x) => Math.sign(Math.round(9 * x))),
  });
  return encodeGraph({
    nodes,
    initializers: isWhole ? list.map(rounded) : list,
    inputs: [{ name: 'x', dtype: 'float32', shape: [batch, sizes[0]] }],
    outputs: [{ name: 'scores', dtype: 'float32', shape: [batch, sizes.at(-1)] }],
  });
}

/**
 * A block of an encoder as PyTorch exports one of BERT: attention of several heads, a network of two
 * layers with Gelu between them, and a normalization after each.
 *
 * @param gelu 'erf': by Div, Erf, Add, Mul and Mul, as exporters write it; 'op': the operator
 */
export function encoderBlock({
  heads = 12,
  size = 768,
  hidden = 3072,
  batch = 'batch',
  tokens = 'tokens',
  gelu = 'erf',
  seed = 1,
} = {}) {
  const { list, floats, scalar, ints } = maker(seed);
  const nodes = [];
  const add = (op, inputs, output, attributes = {}) => {
    nodes.push({ op, name: `${op} ${output}`, inputs, outputs: [output], attributes });
    return output;
  };
  const dense = (x, name, from, to) => {
    const product = add(
      'MatMul',
      [x, floats(`${name}.w`, [from, to], Math.sqrt(3 / from))],
      `${name}.product`,
    );
    return add('Add', [floats(`${name}.b`, [to], 0.1), product], name);
  };
  const normalize = (x, name) =>
    add(
      'LayerNormalization',
      [x, floats(`${name}.scale`, [size]), floats(`${name}.bias`, [size])],
      name,
      {
        axis: -1,
        epsilon: 1e-5,
      },
    );
  const width = size / heads;
  const toHeads = ints('to heads', [0, 0, heads, width]);
  const toRows = ints('to rows', [0, 0, size]);
  const headsOf = (name, perm) =>
    add(
      'Transpose',
      [add('Reshape', [dense('x', name, size, size), toHeads], `${name}.heads`)],
      `${name}.turned`,
      { perm },
    );
  const q = headsOf('q', [0, 2, 1, 3]);
  const k = headsOf('k', [0, 2, 3, 1]);
  const v = headsOf('v', [0, 2, 1, 3]);
  const scores = add('MatMul', [q, k], 'scores');
  const scaled = add('Div', [scores, scalar('root', 'float32', Math.sqrt(width))], 'scaled');
  const shares = add('Softmax', [scaled], 'shares', { axis: -1 });
  const context = add('Transpose', [add('MatMul', [shares, v], 'context')], 'context.turned', {
    perm: [0, 2, 1, 3],
  });
  const attended = dense(add('Reshape', [context, toRows], 'context.rows'), 'o', size, size);
  const first = normalize(add('Add', [attended, 'x'], 'residual 1'), 'norm 1');
  const inner = dense(first, 'up', size, hidden);
  let active;
  if (gelu === 'op') active = add('Gelu', [inner], 'active');
  else {
    const erf = add(
      'Erf',
      [add('Div', [inner, scalar('root 2', 'float32', Math.SQRT2)], 'gelu 1')],
      'gelu 2',
    );
    const sum = add('Add', [erf, scalar('one', 'float32', 1)], 'gelu 3');
    active = add(
      'Mul',
      [add('Mul', [inner, sum], 'gelu 4'), scalar('half', 'float32', 0.5)],
      'active',
    );
  }
  const outer = dense(active, 'down', hidden, size);
  normalize(add('Add', [outer, first], 'residual 2'), 'y');
  const shape = [batch, tokens, size];
  return encodeGraph({
    opsets: { '': gelu === 'op' ? 20 : 17 },
    nodes,
    initializers: list,
    inputs: [{ name: 'x', dtype: 'float32', shape }],
    outputs: [{ name: 'y', dtype: 'float32', shape }],
  });
}
