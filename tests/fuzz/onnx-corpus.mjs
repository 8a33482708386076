// The models from which the fuzzer of wgemm/onnx starts: small, and together with every operator.

import { more } from './onnx-corpus-more.mjs';
import { bytes, f, float, list, microsoft, node, ramp, x } from './onnx-corpus-parts.mjs';

/** A dense network, with a dynamic batch. */
const mlp = {
  opsets: { '': 17 },
  inputs: [x('x', 'batch', 4)],
  outputs: [x('y', 'batch', 3)],
  initializers: [
    float('w1', [4, 5], ramp(20)),
    float('b1', [5], ramp(5)),
    { ...float('w2', [3, 5], ramp(15)), typed: true },
    float('b2', [3], ramp(3)),
    float('low', [], f(-1)),
    float('high', [], f(1)),
  ],
  nodes: [
    node('MatMul', 'x w1', 'h'),
    node('Add', 'h b1', 'i'),
    node('Relu', 'i', 'j'),
    node('Gemm', 'j w2 b2', 'k', { transB: 1, alpha: 0.5, beta: { float: 2 } }),
    node('Clip', 'k low high', 'l'),
    node('Softmax', 'l', 'y', { axis: -1 }),
  ],
};

/** Attention and a dense part, with a dynamic batch. */
const encoder = {
  opsets: { '': 20 },
  inputs: [x('x', 'batch', 3, 4)],
  outputs: [x('y', 'batch', 3, 4)],
  initializers: [
    float('w', [4, 4], ramp(16)),
    float('gain', [4], ramp(4)),
    float('shift', [4], ramp(4)),
    float('root', [], f(1.5)),
    list('split_heads', 0, 0, 2, 2),
    list('join_heads', 0, 0, -1),
  ],
  nodes: [
    node('LayerNormalization', 'x gain shift', 'n', { axis: -1, epsilon: 1e-5 }),
    node('MatMul', 'n w', 'p'),
    node('Reshape', 'p split_heads', 'q'),
    node('Transpose', 'q', 'r', { perm: [0, 2, 1, 3] }),
    node('Transpose', 'r', 's', { perm: [0, 1, 3, 2] }),
    node('MatMul', 'r s', 't'),
    node('Div', 't root', 'u'),
    node('Softmax', 'u', 'v', { axis: -1 }),
    node('MatMul', 'v r', 'o'),
    node('Transpose', 'o', 'a', { perm: [0, 2, 1, 3] }),
    node('Reshape', 'a join_heads', 'b'),
    node('Add', 'b x', 'c'),
    node('Gelu', 'c', 'd'),
    node('Dropout', 'd', 'y'),
  ],
};
/** Elementwise operators, and broadcasts. */
const elements = {
  opsets: { '': 17 },
  inputs: [x('x', 2, 'n'), { name: 'c', dtype: 'bool', shape: ['n'] }],
  outputs: [x('y'), { name: 'i', dtype: 'int32' }],
  initializers: [float('two', [], f(2)), float('column', [2, 1], f(1, -1))],
  nodes: [
    node('Sub', 'x column', 'a'),
    node('Mul', 'a a', 'b'),
    node('Pow', 'b two', 'd'),
    node('Sqrt', 'd', 'e'),
    node('Erf', 'e', 'g'),
    node('Sigmoid', 'g', 'h'),
    node('Tanh', 'h', 'j'),
    node('LeakyRelu', 'j', 'k', { alpha: 0.1 }),
    node('Where', 'c k x', 'l'),
    node('ReduceMean', 'l', 'm', { axes: [1], keepdims: 1 }),
    node('Sub', 'l m', 'o'),
    node('LogSoftmax', 'o', 'y'),
    node('Cast', 'o', 'i', { to: 6 }),
  ],
};

/** Shapes and parts of tensors. */
const shapes = {
  opsets: { '': 17 },
  inputs: [x('x', 'n', 4, 3), { name: 'indices', dtype: 'int64', shape: ['k'] }],
  outputs: [x('y'), x('z'), x('w')],
  initializers: [
    list('zero', 0),
    list('one', 1),
    list('minus_one', -1),
    list('most', 2n ** 63n - 1n),
    list('ones', 1, 1),
    list('parts', 1, 3),
  ],
  nodes: [
    node('Shape', 'x', 's'),
    node('Gather', 's zero', 'n', { axis: 0 }),
    node('Concat', 'n minus_one', 't', { axis: 0 }),
    node('Reshape', 'x t', 'a'),
    node('Flatten', 'x', 'b', { axis: 1 }),
    node('Add', 'a b', 'c'),
    node('Unsqueeze', 'c one', 'd'),
    node('Expand', 'd ones', 'e'),
    node('Squeeze', 'e one', 'y'),
    node('Slice', 'x minus_one most one', 'g'),
    node('Split', 'x parts', 'h i', { axis: 1 }),
    node('Identity', 'h', 'w'),
    node('Gather', 'i indices', 'z', { axis: 0 }),
    node('Constant', '', 'constant', {
      value: { tensor: { dtype: 'float32', shape: [2], data: f(1, 2) } },
    }),
    node('Mul', 'constant constant', 'unused'),
  ],
};
/** Products of 8 bits, and what quantizes. */
const int8 = {
  opsets: { '': 17, [microsoft]: 1 },
  inputs: [x('x', 'm', 4)],
  outputs: [x('y'), x('z'), x('d'), { name: 'q', dtype: 'uint8' }],
  initializers: [
    { name: 'w', dtype: 'uint8', shape: [4, 3], data: bytes(12) },
    { name: 'zw', dtype: 'uint8', shape: [], data: Uint8Array.of(128) },
    float('sw', [], f(0.02)),
    float('sy', [], f(0.1)),
    float('bias', [3], ramp(3)),
    { name: 'c', dtype: 'int32', shape: [3], data: Int32Array.of(5, -5, 500) },
  ],
  nodes: [
    node('DynamicQuantizeLinear', 'x', 'a sa za'),
    node('MatMulInteger', 'a w za zw', 'i'),
    node('Cast', 'i', 'j', { to: 1 }),
    node('Mul', 'sa sw', 's'),
    node('Mul', 'j s', 'y'),
    node('QuantizeLinear', 'x sy zw', 'b'),
    node('DequantizeLinear', 'b sy zw', 'd'),
    node('QLinearMatMul', 'b sy zw w sw zw sy zw', 'q'),
    node('MatMulIntegerToFloat', 'a w sa sw za zw bias', 'f', undefined, microsoft),
    node('DynamicQuantizeMatMul', 'x w sw zw bias', 'g', undefined, microsoft),
    node('QGemm', 'b sy zw w sw zw c', 'h', { transA: 0, alpha: { float: 1 } }, microsoft),
    node('Add', 'f g', 'k'),
    node('Add', 'k h', 'z'),
  ],
};

/** Weights of 4 bits. */
const nbits = {
  opsets: { '': 17, [microsoft]: 1 },
  inputs: [x('x', 'm', 32)],
  outputs: [x('y')],
  initializers: [
    { name: 'w', dtype: 'uint8', shape: [3, 2, 8], data: bytes(48) },
    float('scales', [6], ramp(6)),
    { name: 'zeros', dtype: 'uint8', shape: [3], data: bytes(3) },
  ],
  nodes: [
    node(
      'MatMulNBits',
      'x w scales zeros',
      'y',
      { K: 32, N: 3, bits: 4, block_size: 16 },
      microsoft,
    ),
  ],
};

/** What is refused when it runs, but is read. */
const others = {
  opsets: { '': 17, own: 3 },
  metadata: { key: 'value' },
  inputs: [x('x', 2)],
  outputs: [x('y', 2)],
  initializers: [
    { ...float('far', [2]), external: { location: 'far.bin', offset: 4, length: 8 } },
    { name: 'text', dtype: 'string', shape: [1], data: Uint8Array.of(1) },
    { name: 'half', dtype: 'float16', shape: [2], data: Uint16Array.of(1, 0x3c00), typed: true },
    { name: 'flags', dtype: 'bool', shape: [2], data: Uint8Array.of(1, 0), typed: true },
    { name: 'wide', dtype: 'float64', shape: [1], data: Float64Array.of(1), typed: true },
    { name: 'big', dtype: 'uint64', shape: [1], data: BigUint64Array.of(7n), typed: true },
  ],
  nodes: [
    node('Add', 'x far', 'y'),
    node('If', 'flags', 'z', { then_branch: { graph: mlp }, else_branch: { graph: nbits } }),
    node('Own', 'x', 'o', { strings: ['a', 'b'], floats: [0.5], ints: [1, 2] }, 'own'),
  ],
};

export const corpus = [mlp, encoder, elements, shapes, int8, nbits, others, ...more];
