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
    floats(name, shape, most = 1) {
      const data = new Float32Array(sizeOf(shape));
      for (let i = 0; i < data.length; ++i) data[i] = (2 * random() - 1) * most;
      return add(name, 'float32', shape, data);
    },
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
 * A block of an encoder as PyTorch exports one of BERT: attention of several heads, a network of
 * two layers with Gelu between them, and a normalization after each.
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

const microsoft = { '': 17, 'com.microsoft': 1 };

/**
 * A network in 8 bits: QuantizeLinear, QGemm to uint8, and QGemm to float32 with Relu behind it.
 */
export function int8Mlp({ inputs = 40, hidden = 24, outputs = 10, seed = 3 } = {}) {
  const { list, floats, bytes, scalar } = maker(seed);
  const columns = (name, n) => {
    floats(name, [n], 0.01);
    list.at(-1).data = list.at(-1).data.map((x) => Math.abs(x) + 0.001);
    return name;
  };
  const c = (name, n) => {
    list.push({
      name,
      dtype: 'int32',
      shape: [n],
      data: Int32Array.from({ length: n }, (_, i) => 37 * i - 300),
    });
    return name;
  };
  const [xScale, xZero] = [scalar('x.scale', 'float32', 0.015), scalar('x.zero', 'uint8', 120)];
  const [hScale, hZero] = [scalar('h.scale', 'float32', 0.4), scalar('h.zero', 'uint8', 90)];
  const zeros = (name, n) => {
    list.push({ name, dtype: 'int8', shape: [n], data: new Int8Array(n) });
    return name;
  };
  const qgemm = (name, from, to, factors, y, more) => ({
    op: 'QGemm',
    domain: 'com.microsoft',
    name,
    inputs: [
      ...factors,
      bytes(`${name}.w`, 'int8', [to, from], -64, 63),
      columns(`${name}.scale`, to),
      zeros(`${name}.zeros`, to),
      c(`${name}.c`, to),
      ...more,
    ],
    outputs: [y],
    attributes: { transB: 1 },
  });
  return encodeGraph({
    opsets: microsoft,
    nodes: [
      { op: 'QuantizeLinear', name: 'quantize', inputs: ['x', xScale, xZero], outputs: ['xq'] },
      qgemm('first', inputs, hidden, ['xq', xScale, xZero], 'h', [hScale, hZero]),
      qgemm('second', hidden, outputs, ['h', hScale, hZero], 's', []),
      { op: 'Relu', name: 'relu', inputs: ['s'], outputs: ['y'] },
    ],
    initializers: list,
    inputs: [{ name: 'x', dtype: 'float32', shape: ['batch', inputs] }],
    outputs: [{ name: 'y', dtype: 'float32', shape: ['batch', outputs] }],
  });
}

/**
 * A network that quantizes as it runs, as ONNX Runtime's tools write it: by DynamicQuantizeLinear,
 * MatMulInteger, Cast and Mul; then by MatMulIntegerToFloat; then by DynamicQuantizeMatMul.
 */
export function dynamicMlp({ size = 32, seed = 4 } = {}) {
  const { list, floats, bytes, scalar } = maker(seed);
  const weights = (name) => bytes(name, 'int8', [size, size], -64, 63);
  const scale = (name) => scalar(name, 'float32', 0.01);
  const quantize = (x, name) => ({
    op: 'DynamicQuantizeLinear',
    name,
    inputs: [x],
    outputs: [`${name}.q`, `${name}.scale`, `${name}.zero`],
  });
  const zero = scalar('zero', 'int8', 0);
  return encodeGraph({
    opsets: microsoft,
    nodes: [
      quantize('x', 'a'),
      {
        op: 'MatMulInteger',
        name: 'mm',
        inputs: ['a.q', weights('w1'), 'a.zero', zero],
        outputs: ['sum'],
      },
      { op: 'Cast', name: 'cast', inputs: ['sum'], outputs: ['cast'], attributes: { to: 1 } },
      { op: 'Mul', name: 'scales', inputs: ['a.scale', scale('s1')], outputs: ['s'] },
      { op: 'Mul', name: 'scaled', inputs: ['cast', 's'], outputs: ['t'] },
      { op: 'Add', name: 'bias', inputs: ['t', floats('b1', [size])], outputs: ['u'] },
      { op: 'Relu', name: 'relu', inputs: ['u'], outputs: ['v'] },
      quantize('v', 'b'),
      {
        op: 'MatMulIntegerToFloat',
        domain: 'com.microsoft',
        name: 'to float',
        inputs: [
          'b.q',
          weights('w2'),
          'b.scale',
          scale('s2'),
          'b.zero',
          zero,
          floats('b2', [size]),
        ],
        outputs: ['w'],
      },
      {
        op: 'DynamicQuantizeMatMul',
        domain: 'com.microsoft',
        name: 'dynamic',
        inputs: ['w', weights('w3'), scale('s3'), zero, floats('b3', [size])],
        outputs: ['y'],
      },
    ],
    initializers: list,
    inputs: [{ name: 'x', dtype: 'float32', shape: ['batch', 'rows', size] }],
    outputs: [{ name: 'y', dtype: 'float32', shape: ['batch', 'rows', size] }],
  });
}

/** Two layers of 4-bit weights, with Add and Relu behind the first one. */
export function nbitsMlp({ sizes = [64, 48, 16], blockSize = 32, seed = 5 } = {}) {
  const { list, floats, bytes } = maker(seed);
  const product = (x, y, i) => {
    const [k, n] = [sizes[i], sizes[i + 1]];
    const blocks = Math.ceil(k / blockSize);
    return {
      op: 'MatMulNBits',
      domain: 'com.microsoft',
      name: `layer ${i}`,
      inputs: [
        x,
        bytes(`w${i}`, 'uint8', [n, blocks, blockSize / 2]),
        floats(`s${i}`, [n * blocks], 0.1),
        bytes(`z${i}`, 'uint8', [n * Math.ceil(blocks / 2)]),
      ],
      outputs: [y],
      attributes: { K: k, N: n, bits: 4, block_size: blockSize },
    };
  };
  return encodeGraph({
    opsets: microsoft,
    nodes: [
      product('x', 'a', 0),
      { op: 'Add', name: 'bias', inputs: ['a', floats('b', [sizes[1]])], outputs: ['b.a'] },
      { op: 'Relu', name: 'relu', inputs: ['b.a'], outputs: ['r'] },
      product('r', 'y', 1),
    ],
    initializers: list,
    inputs: [{ name: 'x', dtype: 'float32', shape: ['batch', sizes[0]] }],
    outputs: [{ name: 'y', dtype: 'float32', shape: ['batch', sizes[2]] }],
  });
}
