/** Operators of models: cases from the definitions of ONNX, and what is refused. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  DTypeError,
  type Gemm,
  GemmError,
  OutOfMemoryError,
  ShapeError,
  UnsupportedError,
} from 'wgemm';
import { loadModel, type ModelResult, type OnnxDType } from 'wgemm/onnx';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { type Float, fromBits, round, toBits } from '../support/dtypes.js';
import {
  type Input,
  ints,
  type NodeCase,
  runNode,
  tensor,
  thrownBy,
  valuesOf,
} from './onnx-nodes.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
});
afterAll(() => {
  wg.dispose();
});

type Values = readonly (number | bigint)[];
const f = Math.fround;
const x = (
  values: Values,
  shape: readonly number[] = [values.length],
  dtype: OnnxDType = 'float32',
) => tensor(dtype, shape, values);
/** A type of 16 bits, as they are stored where the engine has no Float16Array. */
const bits = (dtype: Float, values: readonly number[]): Input => ({
  dtype,
  shape: [values.length],
  data: Uint16Array.from(values, (value) => toBits(dtype, value)),
});

type Case = readonly [
  what: string,
  node: Omit<NodeCase, 'opset'> & { opset?: number },
  ...results: (readonly [dtype: OnnxDType, shape: readonly number[], values: Values])[],
];

const cases: readonly Case[] = [
  [
    'Relu keeps NaN',
    { op: 'Relu', inputs: [x([-1, 2, NaN, -Infinity, Infinity])] },
    ['float32', [5], [0, 2, NaN, 0, Infinity]],
  ],
  ['Relu of int64', { op: 'Relu', inputs: [x([-5, 7], [2], 'int64')] }, ['int64', [2], [0n, 7n]]],
  [
    'Relu of float16',
    { op: 'Relu', inputs: [bits('float16', [-1.5, 2.5])] },
    ['float16', [2], [0, 2.5]],
  ],
  [
    'Relu of bfloat16',
    { op: 'Relu', inputs: [bits('bfloat16', [-1.5, 3])] },
    ['bfloat16', [2], [0, 3]],
  ],
  [
    'Add of bfloat16 rounds half to even',
    { op: 'Add', inputs: [bits('bfloat16', [256, 258]), bits('bfloat16', [1, 1])] },
    ['bfloat16', [2], [256, 260]],
  ],
  [
    'Add of float16 overflows',
    { op: 'Add', inputs: [bits('float16', [65504, 2048]), bits('float16', [65504, 1])] },
    ['float16', [2], [Infinity, 2048]],
  ],
  [
    'Clip with min above max',
    { op: 'Clip', inputs: [x([-5, 0, 5]), x([2], []), x([1], [])] },
    ['float32', [3], [1, 1, 1]],
  ],
  [
    'Clip without a bound that is NaN',
    { op: 'Clip', inputs: [x([1, 2, 3]), x([NaN], []), x([2], [])] },
    ['float32', [3], [1, 2, 2]],
  ],
  ['Clip without bounds', { op: 'Clip', inputs: [x([-5, NaN])] }, ['float32', [2], [-5, NaN]]],
  ['LeakyRelu', { op: 'LeakyRelu', inputs: [x([-1, 2])] }, ['float32', [2], [-f(0.01), 2]]],
  [
    'Sigmoid at its ends',
    { op: 'Sigmoid', inputs: [x([0, 1000, -1000, NaN])] },
    ['float32', [4], [0.5, 1, 0, NaN]],
  ],
  [
    'Tanh at its ends',
    { op: 'Tanh', inputs: [x([0, 1000, -1000, NaN, 1e-30])] },
    ['float32', [5], [0, 1, -1, NaN, f(1e-30)]],
  ],
  [
    'Erf at its ends',
    { op: 'Erf', inputs: [x([0, 100, -100, Infinity, NaN])] },
    ['float32', [5], [0, 1, -1, 1, NaN]],
  ],
  [
    'Gelu at its ends',
    { op: 'Gelu', opset: 20, inputs: [x([0, 100, NaN, -6, -1e20, -Infinity, Infinity])] },
    ['float32', [7], [0, 100, NaN, 0, 0, NaN, Infinity]],
  ],
  [
    'Softmax of a row of -Infinity',
    { op: 'Softmax', inputs: [x([-Infinity, -Infinity, 0, 0], [2, 2])] },
    ['float32', [2, 2], [NaN, NaN, 0.5, 0.5]],
  ],
  ['Softmax of nothing', { op: 'Softmax', inputs: [x([], [2, 0])] }, ['float32', [2, 0], []]],
  [
    'Softmax before opset 13 flattens',
    { op: 'Softmax', opset: 12, inputs: [x([0, 0, 0, 0], [1, 2, 2])] },
    ['float32', [1, 2, 2], [0.25, 0.25, 0.25, 0.25]],
  ],
  [
    'Softmax along the first axis',
    { op: 'Softmax', inputs: [x([0, 5, 0, 5], [2, 2])], attributes: { axis: 0 } },
    ['float32', [2, 2], [0.5, 0.5, 0.5, 0.5]],
  ],
  [
    'Add of int32 wraps',
    { op: 'Add', inputs: [x([2 ** 31 - 1], [1], 'int32'), x([1], [], 'int32')] },
    ['int32', [1], [-(2 ** 31)]],
  ],
  [
    'Add of uint64 wraps',
    { op: 'Add', inputs: [x([2n ** 64n - 1n], [1], 'uint64'), x([2], [], 'uint64')] },
    ['uint64', [1], [1n]],
  ],
  [
    'Mul of int32 is exact',
    { op: 'Mul', inputs: [x([123456789], [1], 'int32'), x([987654321], [], 'int32')] },
    ['int32', [1], [Math.imul(123456789, 987654321)]],
  ],
  [
    'Mul of uint32 is exact',
    { op: 'Mul', inputs: [x([4294967295], [1], 'uint32'), x([4294967295], [], 'uint32')] },
    ['uint32', [1], [1]],
  ],
  [
    'Div of integers truncates',
    { op: 'Div', inputs: [x([-7, 7, 5], [3], 'int32'), x([2, -2, 0], [3], 'int32')] },
    ['int32', [3], [-3, -3, 0]],
  ],
  [
    'Div of int64 truncates',
    { op: 'Div', inputs: [x([-7, 7, 5], [3], 'int64'), x([2, -2, 0], [3], 'int64')] },
    ['int64', [3], [-3n, -3n, 0n]],
  ],
  [
    'Sub broadcasts both ways',
    { op: 'Sub', inputs: [x([1, 2], [2, 1]), x([10, 20, 30], [1, 3])] },
    ['float32', [2, 3], [-9, -19, -29, -8, -18, -28]],
  ],
  [
    'Add with an axis of size 0',
    { op: 'Add', inputs: [x([], [0, 3]), x([1], [1, 1])] },
    ['float32', [0, 3], []],
  ],
  [
    'Pow by 2, 0.5 and an integer',
    { op: 'Pow', inputs: [x([3, 4]), x([2, 0], [2], 'int64')] },
    ['float32', [2], [9, 1]],
  ],
  [
    'Pow of int64',
    { op: 'Pow', inputs: [x([3, -2], [2], 'int64'), x([3], [], 'int32')] },
    ['int64', [2], [27n, -8n]],
  ],
  [
    'Pow of 1 and -1 by numbers that are not finite',
    {
      op: 'Pow',
      inputs: [x([1, 1, -1, -1, -1, 2]), x([NaN, Infinity, Infinity, -Infinity, NaN, NaN])],
    },
    ['float32', [6], [1, 1, 1, 1, NaN, NaN]],
  ],
  [
    'Pow of int64 by 2 is exact',
    { op: 'Pow', inputs: [x([3037000499n], [1], 'int64'), x([2], [], 'float32')] },
    ['int64', [1], [3037000499n ** 2n]],
  ],
  [
    'Pow of int64 by 3 wraps',
    { op: 'Pow', inputs: [x([94906267n], [1], 'int64'), x([3], [], 'int64')] },
    ['int64', [1], [BigInt.asIntN(64, 94906267n ** 3n)]],
  ],
  [
    'Pow of int32 by 2 wraps',
    { op: 'Pow', inputs: [x([2 ** 31 - 1], [1], 'int32'), x([2], [], 'int32')] },
    ['int32', [1], [1]],
  ],
  [
    'Pow of int32 by others saturates',
    { op: 'Pow', inputs: [x([2], [1], 'int32'), x([31], [], 'int32')] },
    ['int32', [1], [2 ** 31 - 1]],
  ],
  [
    'ReduceMean of nothing',
    { op: 'ReduceMean', inputs: [x([], [2, 0])], attributes: { axes: [1] } },
    ['float32', [2, 1], [NaN, NaN]],
  ],
  [
    'ReduceMean with axes that are empty',
    {
      op: 'ReduceMean',
      opset: 18,
      inputs: [x([1, 3]), ints([])],
      attributes: { noop_with_empty_axes: 1 },
    },
    ['float32', [2], [1, 3]],
  ],
  [
    'ReduceMean of all',
    { op: 'ReduceMean', inputs: [x([1, 2, 3, 6], [2, 2])], attributes: { keepdims: 0 } },
    ['float32', [], [3]],
  ],
  [
    'ReduceMean of int32 truncates',
    { op: 'ReduceMean', inputs: [x([-1, -2], [2], 'int32')], attributes: { keepdims: 0 } },
    ['int32', [], [-1]],
  ],
  [
    'LayerNormalization with its statistics',
    {
      op: 'LayerNormalization',
      inputs: [x([1, 3, 2, 2], [2, 2]), x([2, 2])],
      attributes: { epsilon: { float: 1 } },
      outputs: 3,
    },
    ['float32', [2, 2], [f(-2 * Math.SQRT1_2), f(2 * Math.SQRT1_2), 0, 0]],
    ['float32', [2, 1], [2, 2]],
    ['float32', [2, 1], [f(Math.SQRT1_2), 1]],
  ],
  [
    'LayerNormalization of rows of one',
    {
      op: 'LayerNormalization',
      inputs: [x([5, 6], [2, 1]), x([1])],
      outputs: 3,
      attributes: { epsilon: { float: 1 } },
    },
    ['float32', [2, 1], [0, 0]],
    ['float32', [2, 1], [5, 6]],
    ['float32', [2, 1], [1, 1]],
  ],
  [
    'LayerNormalization with a Scale of one and a B of its own per row',
    {
      op: 'LayerNormalization',
      inputs: [x([1, 3, 4, 0], [2, 2]), x([2]), x([10, 20, 30, 40], [2, 2])],
      attributes: { epsilon: { float: 0 } },
    },
    ['float32', [2, 2], [8, 22, 32, 38]],
  ],
  [
    'LayerNormalization along all axes with a Scale per row',
    {
      op: 'LayerNormalization',
      inputs: [x([1, 3, 1, 3], [2, 2]), x([2, 5], [2, 1])],
      attributes: { epsilon: { float: 0 }, axis: 0 },
    },
    ['float32', [2, 2], [-2, 2, -5, 5]],
  ],
  [
    'Squeeze of no axes',
    { op: 'Squeeze', inputs: [x([1], [1, 1]), ints([])] },
    ['float32', [1, 1], [1]],
  ],
  [
    'Flatten at 0',
    { op: 'Flatten', inputs: [x([1, 2], [2, 1])], attributes: { axis: 0 } },
    ['float32', [1, 2], [1, 2]],
  ],
  [
    'Reshape copies a size for 0',
    { op: 'Reshape', inputs: [x([1, 2, 3, 4, 5, 6], [2, 3]), ints([0, -1, 1])] },
    ['float32', [2, 3, 1], [1, 2, 3, 4, 5, 6]],
  ],
  [
    'Reshape with allowzero',
    {
      op: 'Reshape',
      opset: 14,
      inputs: [x([], [0, 3]), ints([3, 0])],
      attributes: { allowzero: 1 },
    },
    ['float32', [3, 0], []],
  ],
  [
    'Slice back to the start',
    {
      op: 'Slice',
      inputs: [x([1, 2, 3, 4]), ints([-1]), ints([-(2n ** 63n)]), ints([0]), ints([-1])],
    },
    ['float32', [4], [4, 3, 2, 1]],
  ],
  [
    'Slice to the greatest end',
    { op: 'Slice', inputs: [x([1, 2, 3, 4]), ints([1]), ints([2n ** 63n - 1n])] },
    ['float32', [3], [2, 3, 4]],
  ],
  [
    'Slice of int64',
    {
      op: 'Slice',
      inputs: [x([1, -2, 3, 4], [4], 'int64'), ints([3]), ints([0]), ints([0]), ints([-2])],
    },
    ['int64', [2], [4n, -2n]],
  ],
  [
    'Split with a smaller last part',
    {
      op: 'Split',
      opset: 18,
      inputs: [x([1, 2, 3, 4, 5])],
      attributes: { num_outputs: 3 },
      outputs: 3,
    },
    ['float32', [2], [1, 2]],
    ['float32', [2], [3, 4]],
    ['float32', [1], [5]],
  ],
  [
    'Gather of int64 from the back',
    { op: 'Gather', inputs: [x([1, -1, 3], [3], 'int64'), ints([-1, 1])] },
    ['int64', [2], [3n, -1n]],
  ],
  [
    'Gather of nothing, many times',
    { op: 'Gather', inputs: [x([], [2 ** 40, 1, 0]), ints([0])], attributes: { axis: 1 } },
    ['float32', [2 ** 40, 1, 0], []],
  ],
  [
    'Expand keeps sizes for 1',
    { op: 'Expand', inputs: [x([1, 2], [2, 1]), ints([1, 1, 3])] },
    ['float32', [1, 2, 3], [1, 1, 1, 2, 2, 2]],
  ],
  [
    'Where of int64',
    {
      op: 'Where',
      opset: 16,
      inputs: [x([1, 0], [2], 'bool'), x([-1], [], 'int64'), x([5], [], 'int64')],
    },
    ['int64', [2], [-1n, 5n]],
  ],
  [
    'Shape from 1',
    { op: 'Shape', opset: 15, inputs: [x([1, 2, 3, 4], [1, 2, 2])], attributes: { start: 1 } },
    ['int64', [2], [2n, 2n]],
  ],
  [
    'Cast to bool',
    { op: 'Cast', inputs: [x([0, -0, NaN, 0.1])], attributes: { to: 9 } },
    ['bool', [4], [0, 0, 1, 1]],
  ],
  [
    'Cast of floating point saturates',
    { op: 'Cast', inputs: [x([300, -300, NaN, -1.9, 1.9])], attributes: { to: 3 } },
    ['int8', [5], [127, -128, 0, -1, 1]],
  ],
  [
    'Cast of integers wraps',
    { op: 'Cast', inputs: [x([300n, -1n, 2n ** 40n + 5n], [3], 'int64')], attributes: { to: 2 } },
    ['uint8', [3], [44, 255, 5]],
  ],
  [
    'Cast of negative integers to uint64 wraps, too',
    { op: 'Cast', inputs: [x([-1, -128, 5], [3], 'int8')], attributes: { to: 13 } },
    ['uint64', [3], [18446744073709551615n, 18446744073709551488n, 5n]],
  ],
  [
    'Cast to int64',
    { op: 'Cast', inputs: [x([-1.5, NaN, 2 ** 40])], attributes: { to: 7 } },
    ['int64', [3], [-1n, 0n, 2n ** 40n]],
  ],
  [
    'Cast to bfloat16',
    { op: 'Cast', inputs: [x([1 + 2 ** -8, 1 + 3 * 2 ** -8, 3.5e38])], attributes: { to: 16 } },
    ['bfloat16', [3], [1, 1 + 2 ** -6, Infinity]],
  ],
  [
    'Dropout and its mask',
    { op: 'Dropout', inputs: [x([1, 2])], outputs: 2 },
    ['float32', [2], [1, 2]],
    ['bool', [2], [1, 1]],
  ],
  [
    'Dropout in training, by a ratio of 0',
    {
      op: 'Dropout',
      inputs: [x([1, 2]), { ...bits('float16', [0]), shape: [] }, x([1], [], 'bool')],
      outputs: 2,
    },
    ['float32', [2], [1, 2]],
    ['bool', [2], [1, 1]],
  ],
  [
    'Dropout before opset 10 and its mask of bfloat16',
    { op: 'Dropout', opset: 7, inputs: [bits('bfloat16', [2, 3])], outputs: 2 },
    ['bfloat16', [2], [2, 3]],
    ['bfloat16', [2], [1, 1]],
  ],
  [
    'Dropout before opset 10 and its mask of int64',
    { op: 'Dropout', opset: 7, inputs: [x([2], [1], 'int64')], outputs: 2 },
    ['int64', [1], [2n]],
    ['int64', [1], [1n]],
  ],
  [
    'QuantizeLinear rounds half to even',
    { op: 'QuantizeLinear', inputs: [x([1, 3, 5, -1, 1e9, -1e9]), x([2], []), x([1], [], 'int8')] },
    ['int8', [6], [1, 3, 3, 1, 127, -128]],
  ],
  [
    'QuantizeLinear along an axis',
    { op: 'QuantizeLinear', inputs: [x([10, 10], [1, 2]), x([1, 10]), x([0, 1], [2], 'uint8')] },
    ['uint8', [1, 2], [10, 2]],
  ],
  [
    'DequantizeLinear of int32',
    { op: 'DequantizeLinear', inputs: [x([-3], [1], 'int32'), x([0.5], [])] },
    ['float32', [1], [-1.5]],
  ],
  [
    'DequantizeLinear of blocks',
    {
      op: 'DequantizeLinear',
      opset: 21,
      inputs: [x([1, 2, 3, 4], [4], 'int8'), x([1, 10])],
      attributes: { axis: 0, block_size: 2 },
    },
    ['float32', [4], [1, 2, 30, 40]],
  ],
  [
    'DequantizeLinear of blocks with a smaller last one',
    {
      op: 'DequantizeLinear',
      opset: 21,
      inputs: [x([1, 2, 3, 4, 5, 6], [2, 3], 'int8'), x([1, 10, 2, 20], [2, 2])],
      attributes: { axis: 1, block_size: 2 },
    },
    ['float32', [2, 3], [1, 2, 30, 8, 10, 120]],
  ],
  [
    'DequantizeLinear of blocks along the first axis',
    {
      op: 'DequantizeLinear',
      opset: 21,
      inputs: [x([1, 2, 3, 4, 5, 6], [3, 2], 'int8'), x([1, 10, 2, 20], [2, 2])],
      attributes: { axis: 0, block_size: 2 },
    },
    ['float32', [3, 2], [1, 20, 3, 40, 10, 120]],
  ],
  [
    'DynamicQuantizeLinear of zeros',
    { op: 'DynamicQuantizeLinear', inputs: [x([0, 0])], outputs: 3 },
    ['uint8', [2], [0, 0]],
    ['float32', [], [1]],
    ['uint8', [], [0]],
  ],
  [
    'Constant of a whole number beyond 2^53',
    { op: 'Constant', inputs: [], attributes: { value_int: 2n ** 63n - 1n } },
    ['int64', [], [2n ** 63n - 1n]],
  ],
  [
    'Constant of numbers',
    { op: 'Constant', inputs: [], attributes: { value_floats: { floats: [1, 0.5] } } },
    ['float32', [2], [1, 0.5]],
  ],
  [
    'Constant of a tensor',
    { op: 'Constant', inputs: [], attributes: { value: { tensor: x([1, 2], [2, 1], 'int32') } } },
    ['int32', [2, 1], [1, 2]],
  ],
];

it.each(cases.map(([what, ...rest]) => [what, rest] as const))('%s', async (what, rest) => {
  const [node, ...results] = rest;
  const found = await runNode(wg, {
    opset: 13,
    ...node,
    ...(node.op === 'LayerNormalization' && { opset: 17 }),
  });
  expect(found.length).toBe(results.length);
  results.forEach(([dtype, shape, values], i) => {
    const result = found[i] as Input;
    expect([result.dtype, result.shape], what).toEqual([dtype, shape]);
    expect(
      valuesOf(result).map((value) => (typeof value === 'number' ? value + 0 : value)),
      what,
    ).toEqual(values.map((value) => (typeof value === 'number' ? value + 0 : value)));
  });
});

describe('-0', () => {
  const small = -(2 ** -14);
  const zeros = [-0, 0, -1, 1, NaN, small, -Infinity, Infinity];
  const types = ['float32', 'float64', 'float16', 'bfloat16'] as const;
  const inputOf = (dtype: Float) =>
    dtype.endsWith('float16') ? bits(dtype, zeros) : x(zeros, [8], dtype);
  const [zero, minusZero, six] = [[0], [-0], [6]] as const;

  it.each(types)('stays in Relu, as in the calls of products: %s', async (dtype) => {
    const [y] = await runNode(wg, { op: 'Relu', opset: 14, inputs: [inputOf(dtype)] });
    expect(valuesOf(y as Input)).toEqual([-0, 0, 0, 1, NaN, 0, 0, Infinity]);
  });

  it.each([
    ['0 and 6', zero, six, [-0, 0, 0, 1, NaN, 0, 0, 6]],
    ['-0 and 6', minusZero, six, [-0, 0, -0, 1, NaN, -0, -0, 6]],
    ['-6 and 0', [-6], zero, [-0, 0, -1, 0, NaN, small, -6, 0]],
    ['-6 and -0', [-6], minusZero, [-0, 0, -1, -0, NaN, small, -6, -0]],
    ['0 and 0', zero, zero, [-0, 0, 0, 0, NaN, 0, 0, 0]],
    ['1 and 6', [1], six, [1, 1, 1, 1, NaN, 1, 1, 6]],
  ] as const)('stays in Clip by bounds that admit it: %s', async (_, min, max, wanted) => {
    const inputs = [inputOf('float32'), x(min, []), x(max, [])];
    const [y] = await runNode(wg, { op: 'Clip', opset: 13, inputs });
    expect(valuesOf(y as Input)).toEqual(wanted);
  });

  it.each(['Relu', 'Clip'])('is the same if %s joins a product', async (last) => {
    const strict = await createGemm({ determinism: 'strict', models: true });
    const [a, b] = [x([0, 1], [1, 2]), x([1, 1, 0, -1], [2, 2])];
    const nodes = [
      { op: 'MatMul', inputs: ['a', 'b'], outputs: ['p'] },
      { op: 'Mul', inputs: ['p', 'minus'], outputs: ['q'] }, // -0 and 1
      { op: last, inputs: last === 'Clip' ? ['q', 'zero'] : ['q'], outputs: ['y'] },
    ];
    const info = (name: string) => ({ name, dtype: 'float32' });
    const initializers = [
      { name: 'minus', ...x([-1], []) },
      { name: 'zero', ...x([0], []) },
    ];
    const inputs = ['a', 'b'].map(info);
    for (const [outputs, joined] of [
      [['y'], ['Mul', last]],
      [['y', 'q'], ['Mul']],
      [['y', 'q', 'p'], []],
    ] as const) {
      const bytes = encodeGraph({ nodes, inputs, outputs: outputs.map(info), initializers });
      const model = await loadModel(bytes, { wg: strict });
      const { y } = await model.run({ a, b });
      expect(valuesOf(y as Input)).toEqual([-0, 1]);
      const [product] = await model.explain({ a: [1, 2], b: [2, 2] });
      expect(product?.fused).toEqual(joined);
      model.dispose();
    }
    strict.dispose();
  });
});

describe('Cast of each type to each other', () => {
  const int = (bits: number, signed: boolean) => ({ bits, signed });
  const whole = {
    ...{ int8: int(8, true), uint8: int(8, false), int32: int(32, true), uint32: int(32, false) },
    ...{ int64: int(64, true), uint64: int(64, false) },
  };
  const codes = {
    ...{ float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9, float16: 10, float64: 11 },
    ...{ uint32: 12, uint64: 13, bfloat16: 16 },
  };
  type Type = keyof typeof codes;
  const wholeOf = (dtype: Type) =>
    dtype in whole ? whole[dtype as keyof typeof whole] : undefined;
  const limitsOf = ({ bits, signed }: { bits: number; signed: boolean }): [bigint, bigint] => {
    const size = 1n << BigInt(bits);
    return signed ? [-size / 2n, size / 2n - 1n] : [0n, size - 1n];
  };

  /** Numbers at all edges that the type has. */
  function inputOf(dtype: Type): Input {
    if (dtype === 'bool') return x([0, 1], [2], dtype);
    const type = wholeOf(dtype);
    const edges = Object.values(whole).flatMap(limitsOf);
    if (type) {
      const [least, most] = limitsOf(type);
      const near = [
        0n,
        1n,
        5n,
        -1n,
        -128n,
        ...edges.flatMap((edge) => [edge - 1n, edge, edge + 1n]),
      ];
      const values = [...new Set(near)].filter((value) => least <= value && value <= most);
      return x(type.bits < 64 ? values.map(Number) : values, [values.length], dtype);
    }
    const near = edges
      .map(Number)
      .flatMap((edge) => [edge, edge - 1, edge + 1, edge / 2, edge * 2]);
    const values = [...near, 0, -0, 0.5, -0.5, 1.5, -1.9, NaN, Infinity, -Infinity, 1e30, -1e30];
    return dtype.endsWith('16')
      ? bits(
          dtype as Float,
          values.map((value) => round(dtype as Float, value)),
        )
      : x(values, [values.length], dtype);
  }

  /** Integers wrap, floating point saturates, and NaN becomes 0. */
  function wantedOf(value: number | bigint, from: Type, to: Type): number | bigint {
    if (to === 'bool') return value == 0 ? 0 : 1;
    const type = wholeOf(to);
    // Before it is rounded to 16 bits, it is rounded to float32.
    if (!type)
      return round(to as Float, to === 'float64' ? Number(value) : Math.fround(Number(value)));
    const [least, most] = limitsOf(type);
    let wanted;
    if (!from.includes('float'))
      wanted = BigInt[type.signed ? 'asIntN' : 'asUintN'](type.bits, BigInt(value));
    else if (Number.isNaN(value)) wanted = 0n;
    else wanted = value <= least ? least : value >= most ? most : BigInt(Math.trunc(Number(value)));
    return type.bits < 64 ? Number(wanted) : wanted;
  }

  it.each(Object.keys(codes) as Type[])('%s', async (from) => {
    const input = inputOf(from);
    for (const to of Object.keys(codes) as Type[]) {
      const attributes = { to: codes[to] };
      const [y] = await runNode(wg, { op: 'Cast', opset: 13, inputs: [input], attributes });
      expect(y?.dtype).toBe(to);
      valuesOf(input).forEach((value, i) => {
        const found = valuesOf(y as Input)[i];
        expect(found, `${value} to ${to}`).toEqual(wantedOf(value, from, to));
      });
    }
  });
});

describe('refuses', () => {
  const refused: readonly (readonly [
    what: string,
    node: Omit<NodeCase, 'opset'> & { opset?: number },
    Class: new (...args: never) => GemmError,
    says: string,
  ])[] = [
    [
      'shapes that do not broadcast',
      { op: 'Add', inputs: [x([1, 2]), x([1, 2, 3])] },
      ShapeError,
      '[2] and [3]',
    ],
    [
      'different types',
      { op: 'Add', inputs: [x([1]), x([1], [1], 'float64')] },
      DTypeError,
      'B has dtype float64; it must be float32',
    ],
    [
      'a type that the operator lacks',
      { op: 'Sigmoid', inputs: [x([1], [1], 'int32')] },
      DTypeError,
      'X has dtype int32; it must be float32 or',
    ],
    [
      'an absent input',
      { op: 'Add', inputs: [x([1]), null] },
      GemmError,
      'it must have [A:number, B:same]',
    ],
    [
      'an axis beyond the rank',
      { op: 'Softmax', inputs: [x([1])], attributes: { axis: 1 } },
      GemmError,
      'axis is 1; it must be from -1 to 0',
    ],
    [
      'an unknown attribute',
      { op: 'Relu', inputs: [x([1])], attributes: { beta: 1 } },
      GemmError,
      'beta',
    ],
    [
      'an attribute of another kind',
      { op: 'Flatten', inputs: [x([1])], attributes: { axis: 'a' } },
      GemmError,
      'axis',
    ],
    [
      'a result without end',
      { op: 'Expand', inputs: [x([1]), ints([2 ** 40])] },
      OutOfMemoryError,
      '2^31 bytes',
    ],
    [
      'negative sizes',
      { op: 'Expand', inputs: [x([1]), ints([-2])] },
      ShapeError,
      'has shape [-2]; it must be of at most 64 axes, with sizes of 0 or more',
    ],
    [
      'another number of elements',
      { op: 'Reshape', inputs: [x([1, 2]), ints([3])] },
      ShapeError,
      'shape is [3]',
    ],
    [
      'two open sizes',
      { op: 'Reshape', inputs: [x([1, 2]), ints([-1, -1])] },
      ShapeError,
      'shape is [-1, -1]',
    ],
    [
      'an open size next to 0',
      { op: 'Reshape', inputs: [x([], [0]), ints([0, -1])] },
      ShapeError,
      'shape is [0, -1]',
    ],
    [
      'Squeeze of a larger axis',
      { op: 'Squeeze', inputs: [x([1, 2]), ints([0])] },
      ShapeError,
      'has axis 0 of size 2; it must be of size 1',
    ],
    [
      'an axis twice',
      { op: 'Unsqueeze', inputs: [x([1]), ints([0, 0])] },
      GemmError,
      'a list without repeats',
    ],
    [
      'a step of 0',
      { op: 'Slice', inputs: [x([1]), ints([0]), ints([1]), ints([0]), ints([0])] },
      GemmError,
      'steps',
    ],
    [
      'Slice along an axis twice',
      { op: 'Slice', inputs: [x([1, 2, 3]), ints([1, 1]), ints([3, 3]), ints([0, -1])] },
      GemmError,
      'axes is [0, -1]; it must be a list without repeats',
    ],
    [
      'parts that do not add up',
      { op: 'Split', inputs: [x([1, 2]), ints([1, 2])], outputs: 2 },
      ShapeError,
      'split is [1, 2]',
    ],
    [
      'an index beyond the axis',
      { op: 'Gather', inputs: [x([1, 2]), ints([2])] },
      GemmError,
      'indices is 2; it must be from -2 to 1',
    ],
    [
      'more axes than any shape has',
      { op: 'Squeeze', inputs: [x([1]), ints(Array<number>(70_000).fill(0))] },
      ShapeError,
      'list has 70000 numbers; it must be at most 65536 numbers long',
    ],
    [
      'a perm that is none',
      { op: 'Transpose', inputs: [x([1], [1, 1])], attributes: { perm: [0, 0] } },
      GemmError,
      'perm',
    ],
    [
      'Concat of other sizes',
      { op: 'Concat', inputs: [x([1], [1, 1]), x([1, 2], [1, 2])], attributes: { axis: 0 } },
      ShapeError,
      'axis 0',
    ],
    [
      'training',
      { op: 'Dropout', inputs: [x([1]), x([0.5], []), x([1], [], 'bool')] },
      UnsupportedError,
      'training_mode is true; it must be false, unless ratio is 0',
    ],
    [
      'training by the ratio that is the default',
      { op: 'Dropout', inputs: [x([1]), null, x([1], [], 'bool')] },
      UnsupportedError,
      'training_mode',
    ],
    ...[NaN, Infinity].map(
      (value) =>
        [
          `DynamicQuantizeLinear of ${value}`,
          { op: 'DynamicQuantizeLinear', inputs: [x([value, 1, 5])], outputs: 3 },
          GemmError,
          String(value),
        ] as const,
    ),
    [
      'more outputs than the operator has',
      { op: 'Relu', inputs: [x([1])], outputs: 2 },
      GemmError,
      'loadModel: node Relu "the node" has 2 outputs; it must have at most 1',
    ],
    [
      'a Constant of nothing',
      { op: 'Constant', inputs: [] },
      UnsupportedError,
      'has no value; it must have value, value_float(s) or value_int(s)',
    ],
    ...(
      [
        ['Gelu', 20],
        ...['Add', 'Sub', 'Mul', 'Div', 'Pow', 'Dropout'].map((op) => [op, 7] as const),
        ['DynamicQuantizeLinear', 11],
        ['QuantizeLinear', 10],
        ['DequantizeLinear', 10],
        ['Erf', 9],
        ['Where', 9],
        ['Expand', 8],
      ] as const
    ).map(
      ([op, first]) =>
        [
          `${op} before its first opset`,
          { op, opset: first - 1, inputs: [] },
          UnsupportedError,
          `is of opset ${first - 1}; it must be from ${first} to 26`,
        ] as const,
    ),
    ...(
      [
        ['Reshape', { allowzero: 1 }, 14],
        ['Shape', { start: 1 }, 15],
        ['Shape', { end: 1 }, 15],
        ['Cast', { to: 1, saturate: 1 }, 19],
        ['Cast', { to: 1, round_mode: 'up' }, 24],
        ['QuantizeLinear', { axis: 1 }, 13],
        ['QuantizeLinear', { saturate: 1 }, 19],
        ['QuantizeLinear', { block_size: 2 }, 21],
        ['QuantizeLinear', { output_dtype: 2 }, 21],
        ['QuantizeLinear', { precision: 1 }, 23],
        ['DequantizeLinear', { axis: 1 }, 13],
        ['DequantizeLinear', { block_size: 2 }, 21],
        ['DequantizeLinear', { output_dtype: 1 }, 23],
        ['ReduceMean', { noop_with_empty_axes: 1 }, 18],
        ['Constant', { value_int: 1 }, 12],
        ['Dropout', { seed: 1 }, 12],
      ] as const
    ).map(([op, attributes, first]) => {
      const name = Object.keys(attributes).at(-1) as string;
      const said = `has the attribute "${name}", which is not supported in opset ${first - 1}`;
      return [
        `${name} of ${op} before opset ${first}`,
        { op, attributes, opset: first - 1, inputs: [] },
        UnsupportedError,
        said,
      ] as const;
    }),
    [
      'scales of another length',
      { op: 'QuantizeLinear', inputs: [x([1, 2], [1, 2]), x([1, 2, 3])] },
      ShapeError,
      'scale has shape [3]',
    ],
    [
      'bounds that are not scalars',
      { op: 'Clip', inputs: [x([1]), x([1, 2])] },
      ShapeError,
      'min has 2 elements',
    ],
    [
      'a Scale of another length',
      {
        op: 'LayerNormalization',
        opset: 17,
        inputs: [x([1, 2], [2, 1]), x([1, 2])],
        attributes: { axis: 0 },
      },
      ShapeError,
      'Scale has shape [2]; it must be a shape that broadcasts to [2, 1]',
    ],
    [
      'a zero point of another type',
      {
        op: 'DequantizeLinear',
        inputs: [x([1], [1], 'uint8'), x([1], []), x([1], [], 'int8')],
      },
      DTypeError,
      'x_zero_point has dtype int8; it must be uint8',
    ],
    [
      'Clip of integers before opset 11',
      { op: 'Clip', opset: 7, inputs: [x([1], [1], 'int64')], attributes: { min: { float: 0 } } },
      DTypeError,
      'input has dtype int64',
    ],
    ...(
      [
        [{ op: 'Clip', inputs: [x([1])], attributes: { min: { float: 0 } } }, '"min"'],
        [{ op: 'Clip', opset: 10, inputs: [x([1]), x([0], [])] }, 'has 2 inputs'],
        [{ op: 'ReduceMean', opset: 18, inputs: [x([1])], attributes: { axes: [0] } }, '"axes"'],
        [{ op: 'Squeeze', inputs: [x([1])], attributes: { axes: [0] } }, '"axes"'],
        [{ op: 'Unsqueeze', inputs: [x([1])] }, 'has 1 inputs'],
        [{ op: 'Unsqueeze', opset: 12, inputs: [x([1])] }, 'lacks the attribute axes'],
        [{ op: 'Slice', inputs: [x([1])], attributes: { starts: [0], ends: [1] } }, '"starts"'],
        [{ op: 'Slice', opset: 10, inputs: [x([1]), ints([0])] }, 'has 2 inputs'],
        [{ op: 'Split', inputs: [x([1, 2])], attributes: { split: [2] } }, '"split"'],
        [{ op: 'Split', inputs: [x([1, 2, 3])], outputs: 2 }, 'split is [2, 2]'],
        [{ op: 'Split', inputs: [x([1])], attributes: { num_outputs: 1 } }, '"num_outputs"'],
        [{ op: 'Split', opset: 18, inputs: [x([1])] }, 'lacks the attribute num_outputs'],
        [
          { op: 'Split', opset: 18, inputs: [x([1]), ints([1])], attributes: { num_outputs: 1 } },
          '"num_outputs"',
        ],
        [{ op: 'Dropout', inputs: [x([1])], attributes: { ratio: 1 } }, '"ratio"'],
      ] as const
    ).map(([node, says]) => [`what another opset has: ${node.op}`, node, GemmError, says] as const),
    [
      'a type that wgemm lacks',
      { op: 'Cast', inputs: [x([1])], attributes: { to: 8 } },
      GemmError,
      'string',
    ],
    [
      'a Constant of text',
      { op: 'Constant', inputs: [], attributes: { value_string: 'a' } },
      GemmError,
      'value_string',
    ],
    [
      'an approximation that it does not know',
      { op: 'Gelu', opset: 20, inputs: [x([1])], attributes: { approximate: 'sin' } },
      GemmError,
      'approximate',
    ],
    [
      'an opset that is not known',
      { op: 'Relu', opset: 5, inputs: [x([1])] },
      GemmError,
      'is of opset 5; it must be from 6 to 26',
    ],
  ];
  it.each(refused)('%s', async (_, node, Class, says) => {
    const error = await thrownBy(runNode(wg, { opset: 13, ...node }));
    expect(error).toBeInstanceOf(Class);
    expect((error as GemmError).message).toContain(says);
    expect((error as GemmError).message).toContain('the node');
    expect(['run', 'loadModel']).toContain((error as GemmError).op);
  });

  it('lists of any length with a short message', async () => {
    const many = ints(Array<number>(65_000).fill(2));
    const inputs = [x([1]), many];
    for (const node of [
      { op: 'Reshape', inputs },
      { op: 'Slice', inputs: [...inputs, ints([1])] },
    ]) {
      const { message } = (await thrownBy(runNode(wg, { opset: 13, ...node }))) as GemmError;
      expect(message).toContain('[2, 2');
      expect(message.length).toBeLessThan(1000);
    }
  });
});

describe.each(['float16', 'bfloat16'] as const)('conversions of %s in operators', (dtype) => {
  const codes = Uint16Array.from({ length: 2 ** 16 }, (_, code) => code);
  const numbers = Array.from(codes, (code) => fromBits(dtype, code));
  const to = (name: string) => ({ float32: 1, float16: 10, bfloat16: 16 })[name] as number;
  const cast = async (input: Input, type: string) => {
    const node = { op: 'Cast', opset: 13, inputs: [input], attributes: { to: to(type) } };
    const [result] = await runNode(wg, node);
    return (result as ModelResult).data.buffer;
  };

  it('widen every value', async () => {
    const input = { dtype, shape: [codes.length], data: codes };
    expect(Array.from(new Float32Array(await cast(input, 'float32')))).toEqual(numbers);
  });

  it('round every midpoint half to even, and its neighbours to nearest', async () => {
    const finite = numbers.slice(0, numbers.indexOf(Infinity));
    const step = (finite.at(-1) as number) - (finite.at(-2) as number);
    const middles = finite.map((x, i) => (x + (finite[i + 1] ?? x + step)) / 2);
    const words = new Int32Array(Float32Array.from([...finite, ...middles, Infinity]).buffer);
    const near = Int32Array.from([...words].flatMap((word) => [word - 1, word, word + 1]).slice(1));
    const values = Float32Array.from([...new Float32Array(near.buffer)].flatMap((v) => [v, -v]));
    const input = { dtype: 'float32', shape: [values.length], data: values } as const;
    const found = new Uint16Array(await cast(input, dtype));
    const isWrong = (value: number, i: number) => {
      const code = found[i] as number;
      if (Number.isNaN(value)) return !Number.isNaN(fromBits(dtype, code));
      return code !== toBits(dtype, value);
    };
    expect(values.findIndex(isWrong)).toBe(-1);
  });
});
