/** Operators of models: cases from the definitions of ONNX, one node each. */
import type { OnnxDType } from 'wgemm/onnx';
import { type Float, toBits } from '../support/dtypes.js';
import { type Input, ints, type NodeCase, tensor } from './onnx-nodes.js';
import { transformerCases } from './transformer-cases.js';

type Values = readonly (number | bigint)[];
const f = Math.fround;

export const x = (
  values: Values,
  shape: readonly number[] = [values.length],
  dtype: OnnxDType = 'float32',
) => tensor(dtype, shape, values);

/** A type of 16 bits, as they are stored where the engine has no Float16Array. */
export const bits = (dtype: Float, values: readonly number[]): Input => ({
  dtype,
  shape: [values.length],
  data: Uint16Array.from(values, (value) => toBits(dtype, value)),
});

export type Case = readonly [
  what: string,
  node: Omit<NodeCase, 'opset'> & { opset?: number },
  ...results: (readonly [dtype: OnnxDType, shape: readonly number[], values: Values])[],
];

export const cases: readonly Case[] = [
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
    'Neg of the least int32 wraps',
    { op: 'Neg', inputs: [x([-(2 ** 31), 5, 0], [3], 'int32')] },
    ['int32', [3], [-(2 ** 31), -5, 0]],
  ],
  [
    'Sqrt of negative numbers is NaN',
    { op: 'Sqrt', inputs: [x([4, 0.25, -0, -1, Infinity, NaN])] },
    ['float32', [6], [2, 0.5, -0, NaN, Infinity, NaN]],
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
    'Gelu of com.microsoft at its ends',
    { op: 'Gelu', domain: 'com.microsoft', inputs: [x([0, 100, NaN, -6, -1e20, Infinity])] },
    ['float32', [6], [0, 100, NaN, 0, 0, Infinity]],
  ],
  [
    'FastGelu adds its bias first',
    {
      op: 'FastGelu',
      domain: 'com.microsoft',
      inputs: [x([2, 99, -300, -98, NaN, -100], [2, 3]), x([-2, 1, 200])],
    },
    ['float32', [2, 3], [0, 100, 0, 0, NaN, 100]],
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
    'LogSoftmax of equal elements, and of -Infinity',
    { op: 'LogSoftmax', inputs: [x([7, 7, -Infinity, 0], [2, 2])] },
    ['float32', [2, 2], [f(-Math.LN2), f(-Math.LN2), -Infinity, 0]],
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
    'ReduceMean of no elements',
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
    'Unsqueeze counts the axes of the result',
    { op: 'Unsqueeze', inputs: [x([1, 2]), ints([-1, 0])] },
    ['float32', [1, 2, 1], [1, 2]],
  ],
  [
    'Transpose without perm reverses the axes',
    { op: 'Transpose', inputs: [x([1, 2, 3, 4, 5, 6], [1, 2, 3], 'int64')] },
    ['int64', [3, 2, 1], [1n, 4n, 2n, 5n, 3n, 6n]],
  ],
  [
    'Concat, with an input of no elements',
    {
      op: 'Concat',
      inputs: [x([1, 2], [2, 1], 'int8'), x([], [2, 0], 'int8'), x([3, 4, 5, 6], [2, 2], 'int8')],
      attributes: { axis: -1 },
    },
    ['int8', [2, 3], [1, 3, 4, 2, 5, 6]],
  ],
  [
    'Identity of bool',
    { op: 'Identity', inputs: [x([1, 0, 1], [3, 1], 'bool')] },
    ['bool', [3, 1], [1, 0, 1]],
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
    'Gather of 2^40 rows without elements',
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
    'Abs of the least int32 wraps',
    { op: 'Abs', inputs: [x([-(2 ** 31), -5, 7], [3], 'int32')] },
    ['int32', [3], [-(2 ** 31), 5, 7]],
  ],
  ['Abs of uint8', { op: 'Abs', inputs: [x([200], [1], 'uint8')] }, ['uint8', [1], [200]]],
  [
    'Abs of floats',
    { op: 'Abs', inputs: [x([-1.5, -0, -Infinity, NaN])] },
    ['float32', [4], [1.5, 0, Infinity, NaN]],
  ],
  [
    'Sign of 0 and NaN',
    { op: 'Sign', inputs: [x([-0.25, 0, -0, 1e-40, -Infinity, NaN])] },
    ['float32', [6], [-1, 0, 0, 1, -1, NaN]],
  ],
  [
    'Sign of int64',
    { op: 'Sign', inputs: [x([-5, 0, 7], [3], 'int64')] },
    ['int64', [3], [-1n, 0n, 1n]],
  ],
  [
    'Reciprocal at its ends',
    { op: 'Reciprocal', inputs: [x([4, 0, -0, Infinity, NaN])] },
    ['float32', [5], [0.25, Infinity, -Infinity, 0, NaN]],
  ],
  [
    'PRelu with a slope per column',
    { op: 'PRelu', opset: 16, inputs: [x([-1, -2, 3, NaN], [2, 2]), x([0.5, 2])] },
    ['float32', [2, 2], [-0.5, -4, 3, NaN]],
  ],
  [
    'PRelu of uint32',
    { op: 'PRelu', opset: 16, inputs: [x([5, 7], [2], 'uint32'), x([2], [], 'uint32')] },
    ['uint32', [2], [5, 7]],
  ],
  [
    'Floor of negative numbers',
    { op: 'Floor', inputs: [x([-1.5, 1.5, -0.5, Infinity])] },
    ['float32', [4], [-2, 1, -1, Infinity]],
  ],
  [
    'Ceil of negative numbers',
    { op: 'Ceil', inputs: [x([-1.5, 1.5, 0.5, NaN])] },
    ['float32', [4], [-1, 2, 1, NaN]],
  ],
  [
    'Round to even',
    { op: 'Round', inputs: [x([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.4999999701976776])] },
    ['float32', [7], [0, 2, 2, 0, -2, -2, 0]],
  ],
  [
    'Exp at its ends',
    { op: 'Exp', inputs: [x([0, 100, -200, -Infinity, Infinity, NaN])] },
    ['float32', [6], [1, Infinity, 0, 0, Infinity, NaN]],
  ],
  [
    'Log at its ends',
    { op: 'Log', inputs: [x([1, 0, -0, -1, Infinity, NaN])] },
    ['float32', [6], [0, -Infinity, -Infinity, NaN, Infinity, NaN]],
  ],
  [
    'Sin of 0 and infinity',
    { op: 'Sin', inputs: [x([0, Infinity, -Infinity, NaN])] },
    ['float32', [4], [0, NaN, NaN, NaN]],
  ],
  [
    'Cos of 0 and infinity',
    { op: 'Cos', inputs: [x([0, Infinity, -Infinity, NaN])] },
    ['float32', [4], [1, NaN, NaN, NaN]],
  ],
  [
    'Softplus at its ends',
    { op: 'Softplus', inputs: [x([1000, -1000, 0, Infinity, -Infinity, NaN])] },
    ['float32', [6], [1000, 0, f(Math.LN2), Infinity, 0, NaN]],
  ],
  [
    'Softsign at its ends',
    { op: 'Softsign', inputs: [x([1, -3, 0, Infinity])] },
    ['float32', [4], [0.5, -0.75, 0, NaN]],
  ],
  [
    'Mish at its ends',
    { op: 'Mish', opset: 18, inputs: [x([0, 100, -200, Infinity, NaN])] },
    ['float32', [5], [0, 100, 0, Infinity, NaN]],
  ],
  [
    'Elu at its ends',
    { op: 'Elu', inputs: [x([2, 0, -100, -Infinity, NaN])], attributes: { alpha: { float: 2 } } },
    ['float32', [5], [2, 0, -2, -2, NaN]],
  ],
  [
    'HardSigmoid at its ends',
    {
      op: 'HardSigmoid',
      inputs: [x([0, 1, 9, -9, NaN])],
      attributes: { alpha: { float: 0.25 } },
    },
    ['float32', [5], [0.5, 0.75, 1, 0, NaN]],
  ],
  [
    'HardSwish at its ends',
    { op: 'HardSwish', opset: 14, inputs: [x([0, 3, 9, -3, -9])] },
    ['float32', [5], [0, 3, 9, 0, 0]],
  ],
  [
    'ThresholdedRelu of its threshold',
    { op: 'ThresholdedRelu', inputs: [x([1, 1.5, -2, NaN])] },
    ['float32', [4], [0, 1.5, 0, 0]],
  ],
  [
    'QuickGelu at its ends',
    { op: 'QuickGelu', domain: 'com.microsoft', inputs: [x([0, 100, -200, Infinity, NaN])] },
    ['float32', [5], [0, 100, 0, Infinity, NaN]],
  ],
  [
    'Equal of NaN and of zeros',
    { op: 'Equal', inputs: [x([NaN, 0, 1]), x([NaN, -0, 2])] },
    ['bool', [3], [0, 1, 0]],
  ],
  [
    'Equal of int64 beyond 2^53',
    {
      op: 'Equal',
      inputs: [x([2n ** 53n, 5n], [2], 'int64'), x([2n ** 53n + 1n, 5n], [2], 'int64')],
    },
    ['bool', [2], [0, 1]],
  ],
  [
    'Equal of bool broadcasts',
    { op: 'Equal', inputs: [x([1, 0], [2, 1], 'bool'), x([0, 1], [1, 2], 'bool')] },
    ['bool', [2, 2], [0, 1, 1, 0]],
  ],
  [
    'Less of uint64',
    { op: 'Less', inputs: [x([2n ** 63n, 1n], [2], 'uint64'), x([1n, 2n ** 63n], [2], 'uint64')] },
    ['bool', [2], [0, 1]],
  ],
  [
    'LessOrEqual of NaN',
    { op: 'LessOrEqual', inputs: [x([NaN, 1, 2, 3]), x([1, 1, 3, 2])] },
    ['bool', [4], [0, 1, 1, 0]],
  ],
  [
    'Greater of uint32',
    { op: 'Greater', inputs: [x([2 ** 31, 1], [2], 'uint32'), x([1], [], 'uint32')] },
    ['bool', [2], [1, 0]],
  ],
  [
    'GreaterOrEqual of NaN',
    { op: 'GreaterOrEqual', inputs: [x([NaN, 1, 2, 3]), x([1, 1, 3, 2])] },
    ['bool', [4], [0, 1, 0, 1]],
  ],
  ...(
    [
      ['And', [0, 0, 0, 1]],
      ['Or', [0, 1, 1, 1]],
      ['Xor', [0, 1, 1, 0]],
    ] as const
  ).map(
    ([op, values]) =>
      [
        `${op} broadcasts`,
        { op, inputs: [x([0, 1], [2, 1], 'bool'), x([0, 1], [2], 'bool')] },
        ['bool', [2, 2], values],
      ] as const,
  ),
  ['Not', { op: 'Not', inputs: [x([1, 0], [2], 'bool')] }, ['bool', [2], [0, 1]]],
  ['IsNaN', { op: 'IsNaN', inputs: [x([NaN, 1, -Infinity])] }, ['bool', [3], [1, 0, 0]]],
  [
    'IsNaN of float16',
    { op: 'IsNaN', opset: 20, inputs: [bits('float16', [NaN, 1])] },
    ['bool', [2], [1, 0]],
  ],
  [
    'IsInf of both signs',
    { op: 'IsInf', inputs: [x([NaN, 1, -Infinity, Infinity])] },
    ['bool', [4], [0, 0, 1, 1]],
  ],
  [
    'IsInf of one sign',
    {
      op: 'IsInf',
      inputs: [x([NaN, 1, -Infinity, Infinity], [4], 'float64')],
      attributes: { detect_negative: 0 },
    },
    ['bool', [4], [0, 0, 0, 1]],
  ],
  [
    'Min of NaN',
    { op: 'Min', inputs: [x([NaN, 1, 0]), x([1, NaN, 2])] },
    ['float32', [3], [NaN, NaN, 0]],
  ],
  [
    'Min of three broadcasts, and takes an input twice',
    {
      op: 'Min',
      inputs: [x([3, 1], [2, 1], 'int64'), x([2, 5], [2], 'int64'), x([3, 1], [2, 1], 'int64')],
    },
    ['int64', [2, 2], [2n, 3n, 1n, 1n]],
  ],
  [
    'Max of uint8, and of one input',
    { op: 'Max', inputs: [x([200, 7], [2], 'uint8')] },
    ['uint8', [2], [200, 7]],
  ],
  [
    'Max of uint32',
    { op: 'Max', inputs: [x([2 ** 31, 7], [2], 'uint32'), x([8], [], 'uint32')] },
    ['uint32', [2], [2 ** 31, 8]],
  ],
  [
    'Sum of three',
    { op: 'Sum', inputs: [x([1, 2]), x([10], []), x([100, 200])] },
    ['float32', [2], [111, 212]],
  ],
  [
    'Mean of three',
    { op: 'Mean', inputs: [x([1, 2]), x([3], []), x([5, 7])] },
    ['float32', [2], [3, 4]],
  ],
  [
    'Mean of one float16',
    { op: 'Mean', inputs: [bits('float16', [1.5, -3])] },
    ['float16', [2], [1.5, -3]],
  ],
  [
    'Mod has the sign of the divisor',
    { op: 'Mod', inputs: [x([-7, 7, -7, 7], [4], 'int32'), x([3, -3, -3, 0], [4], 'int32')] },
    ['int32', [4], [2, -2, -1, 0]],
  ],
  [
    'Mod of int64 with the sign of the dividend',
    {
      op: 'Mod',
      inputs: [x([-7, 7, -(2n ** 63n)], [3], 'int64'), x([3, -3, -1], [3], 'int64')],
      attributes: { fmod: 1 },
    },
    ['int64', [3], [-1n, 1n, 0n]],
  ],
  [
    'Mod of floats is exact',
    {
      op: 'Mod',
      inputs: [x([-4.5, 5.5, 1, 3e38, 1]), x([2, -2, 0, f(1e-30), Infinity])],
      attributes: { fmod: 1 },
    },
    ['float32', [5], [-0.5, 1.5, NaN, f(3e38) % f(1e-30), 1]],
  ],
  ['Size', { op: 'Size', inputs: [x([1, 2, 3, 4], [2, 2], 'int8')] }, ['int64', [], [4n]]],
  [
    'CastLike saturates',
    { op: 'CastLike', opset: 15, inputs: [x([300, -1.5]), x([], [0], 'uint8')] },
    ['uint8', [2], [255, 0]],
  ],
  [
    'Range upward',
    { op: 'Range', inputs: [x([1], []), x([5], []), x([1.5], [])] },
    ['float32', [3], [1, 2.5, 4]],
  ],
  [
    'Range downward',
    { op: 'Range', inputs: [x([5], [], 'int64'), x([0], [], 'int64'), x([-2], [], 'int64')] },
    ['int64', [3], [5n, 3n, 1n]],
  ],
  [
    'Range of nothing',
    { op: 'Range', inputs: [x([5], [], 'int32'), x([0], [], 'int32'), x([1], [], 'int32')] },
    ['int32', [0], []],
  ],
  [
    'ConstantOfShape without a value',
    { op: 'ConstantOfShape', inputs: [ints([2, 1])] },
    ['float32', [2, 1], [0, 0]],
  ],
  [
    'ConstantOfShape of a scalar',
    {
      op: 'ConstantOfShape',
      inputs: [ints([])],
      attributes: { value: { tensor: x([7], [1], 'int64') } },
    },
    ['int64', [], [7n]],
  ],
  [
    'BatchNormalization of channels',
    {
      op: 'BatchNormalization',
      inputs: [x([1, 2, 3, 4], [1, 2, 2]), x([1, 2]), x([0, 1]), x([1, 3]), x([0.75, 3.75])],
      attributes: { epsilon: { float: 0.25 } },
    },
    ['float32', [1, 2, 2], [0, 1, 1, 2]],
  ],
  [
    'BatchNormalization of rows',
    {
      op: 'BatchNormalization',
      opset: 15,
      inputs: [x([1, 4], [1, 2]), x([1, 2]), x([0, 1]), x([1, 3]), x([0.75, 3.75])],
      attributes: { epsilon: { float: 0.25 } },
    },
    ['float32', [1, 2], [0, 2]],
  ],
  [
    'InstanceNormalization',
    {
      op: 'InstanceNormalization',
      inputs: [x([1, 3, 5, 9], [1, 2, 2]), x([2, 1]), x([10, 20])],
      attributes: { epsilon: { float: 0 } },
    },
    ['float32', [1, 2, 2], [8, 12, 19, 21]],
  ],
  [
    'MeanVarianceNormalization of equal elements is 0',
    { op: 'MeanVarianceNormalization', inputs: [x([1, 3, 5, 5], [1, 2, 2, 1])] },
    ['float32', [1, 2, 2, 1], [-1, 1, 0, 0]],
  ],
  [
    'MeanVarianceNormalization along its axes',
    {
      op: 'MeanVarianceNormalization',
      inputs: [x([1, 5, 3, 7], [2, 2])],
      attributes: { axes: [-2] },
    },
    ['float32', [2, 2], [-1, -1, 1, 1]],
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
  [
    'ReduceSum of axes that are not adjacent',
    {
      op: 'ReduceSum',
      inputs: [x([1, 2, 3, 4, 5, 6, 7, 8], [2, 2, 2]), ints([-1, 0])],
      attributes: { keepdims: 0 },
    },
    ['float32', [2], [14, 22]],
  ],
  [
    'ReduceSum before opset 13 has an attribute',
    {
      op: 'ReduceSum',
      opset: 11,
      inputs: [x([1, 2, 3, 4], [2, 2], 'int64')],
      attributes: { axes: [-2] },
    },
    ['int64', [1, 2], [4n, 6n]],
  ],
  [
    'ReduceSum without axes may do nothing',
    {
      op: 'ReduceSum',
      inputs: [x([1, 2])],
      attributes: { noop_with_empty_axes: 1 },
    },
    ['float32', [2], [1, 2]],
  ],
  [
    'ReduceSum of a scalar, and of no elements',
    { op: 'ReduceSum', inputs: [x([5], [])] },
    ['float32', [], [5]],
  ],
  [
    'ReduceSum of no elements',
    { op: 'ReduceSum', inputs: [x([], [2, 0], 'int64'), ints([1])] },
    ['int64', [2, 1], [0n, 0n]],
  ],
  [
    'ReduceSum of int32 wraps',
    { op: 'ReduceSum', inputs: [x([2 ** 31 - 1, 1], [2], 'int32')] },
    ['int32', [1], [-(2 ** 31)]],
  ],
  [
    'ReduceMax of no elements',
    { op: 'ReduceMax', inputs: [x([], [1, 0])], attributes: { axes: [1] } },
    ['float32', [1, 1], [-Infinity]],
  ],
  [
    'ReduceMax of no elements of int64',
    { op: 'ReduceMax', inputs: [x([], [1, 0], 'int64')], attributes: { axes: [1] } },
    ['int64', [1, 1], [-(2n ** 63n)]],
  ],
  ['ReduceMax of NaN', { op: 'ReduceMax', inputs: [x([1, NaN, 2])] }, ['float32', [1], [NaN]]],
  [
    'ReduceMax of uint64',
    { op: 'ReduceMax', inputs: [x([5, 2n ** 64n - 1n], [2], 'uint64')] },
    ['uint64', [1], [2n ** 64n - 1n]],
  ],
  [
    'ReduceMax of bool',
    { op: 'ReduceMax', opset: 20, inputs: [x([0, 1, 0, 0], [2, 2], 'bool'), ints([1])] },
    ['bool', [2, 1], [1, 0]],
  ],
  [
    'ReduceMin of no elements of bool',
    { op: 'ReduceMin', opset: 20, inputs: [x([], [0], 'bool')] },
    ['bool', [1], [1]],
  ],
  [
    'ReduceMin of no elements of uint8',
    { op: 'ReduceMin', inputs: [x([], [0], 'uint8')] },
    ['uint8', [1], [255]],
  ],
  [
    'ReduceMin of int8',
    { op: 'ReduceMin', inputs: [x([5, -128, 7], [3], 'int8')] },
    ['int8', [1], [-128]],
  ],
  ['ReduceProd', { op: 'ReduceProd', inputs: [x([2, -3, 4])] }, ['float32', [1], [-24]]],
  [
    'ReduceProd of no elements',
    { op: 'ReduceProd', inputs: [x([], [0, 3])], attributes: { axes: [0], keepdims: 0 } },
    ['float32', [3], [1, 1, 1]],
  ],
  [
    'ReduceProd of int64 wraps',
    { op: 'ReduceProd', inputs: [x([2n ** 40n, 2n ** 24n, 3n], [3], 'int64')] },
    ['int64', [1], [0n]],
  ],
  ['ReduceL1', { op: 'ReduceL1', inputs: [x([2, -3, -4])] }, ['float32', [1], [9]]],
  [
    'ReduceL2 of integers truncates',
    { op: 'ReduceL2', inputs: [x([1, -1], [2], 'int32')] },
    ['int32', [1], [1]],
  ],
  ['ReduceL2', { op: 'ReduceL2', inputs: [x([3, -4])] }, ['float32', [1], [5]]],
  ['ReduceSumSquare', { op: 'ReduceSumSquare', inputs: [x([3, -4])] }, ['float32', [1], [25]]],
  [
    'ReduceLogSum',
    {
      op: 'ReduceLogSum',
      inputs: [x([0.25, 0.75, 0, 0, -1, -1], [3, 2])],
      attributes: { axes: [1] },
    },
    ['float32', [3, 1], [0, -Infinity, NaN]],
  ],
  [
    'ReduceLogSumExp does not overflow',
    {
      op: 'ReduceLogSumExp',
      inputs: [x([1000, -Infinity, -Infinity, -Infinity, Infinity, 1], [3, 2])],
      attributes: { axes: [1] },
    },
    ['float32', [3, 1], [1000, -Infinity, Infinity]],
  ],
  [
    'ReduceLogSumExp of no elements',
    { op: 'ReduceLogSumExp', inputs: [x([], [0])] },
    ['float32', [1], [-Infinity]],
  ],
  [
    'ArgMax of equal elements',
    { op: 'ArgMax', inputs: [x([1, 3, 3, 0, 0, -1], [2, 3])], attributes: { axis: 1 } },
    ['int64', [2, 1], [1n, 0n]],
  ],
  [
    'ArgMax selects the last one',
    {
      op: 'ArgMax',
      inputs: [x([1, 3, 3, 0, 0, -1], [2, 3])],
      attributes: { axis: -1, keepdims: 0, select_last_index: 1 },
    },
    ['int64', [2], [2n, 1n]],
  ],
  [
    'ArgMin along the first axis',
    { op: 'ArgMin', inputs: [x([1, 3, 0, 5, 2, 4], [3, 2], 'int64')] },
    ['int64', [1, 2], [1n, 0n]],
  ],
  [
    'ArgMin of no rows',
    { op: 'ArgMin', inputs: [x([], [2, 0])], attributes: { axis: 0 } },
    ['int64', [1, 0], []],
  ],
  [
    'TopK puts the first of equal elements first',
    { op: 'TopK', inputs: [x([1, 3, 3, 2]), ints([3])], outputs: 2 },
    ['float32', [3], [3, 3, 2]],
    ['int64', [3], [1n, 2n, 3n]],
  ],
  [
    'TopK of the least elements, along the first axis',
    {
      op: 'TopK',
      inputs: [x([4, 1, 2, 5, 3, 0], [3, 2], 'int64'), ints([2])],
      attributes: { axis: 0, largest: 0 },
      outputs: 2,
    },
    ['int64', [2, 2], [2n, 0n, 3n, 1n]],
    ['int64', [2, 2], [1n, 2n, 2n, 0n]],
  ],
  [
    'TopK before opset 10 has an attribute',
    { op: 'TopK', opset: 9, inputs: [x([1, 2])], attributes: { k: 1 }, outputs: 2 },
    ['float32', [1], [2]],
    ['int64', [1], [1n]],
  ],
  [
    'TopK of NaN, which is the greatest',
    { op: 'TopK', inputs: [x([1, NaN, Infinity]), ints([2])], outputs: 2 },
    ['float32', [2], [NaN, Infinity]],
    ['int64', [2], [1n, 2n]],
  ],
  [
    'CumSum, exclusive and back',
    {
      op: 'CumSum',
      inputs: [x([1, 2, 3, 4, 5, 6], [2, 3]), x([1], [], 'int32')],
      attributes: { exclusive: 1, reverse: 1 },
    },
    ['float32', [2, 3], [5, 3, 0, 11, 6, 0]],
  ],
  [
    'CumSum along the first axis',
    { op: 'CumSum', inputs: [x([1, 2, 3, 4], [2, 2], 'int64'), x([-2], [], 'int64')] },
    ['int64', [2, 2], [1n, 2n, 4n, 6n]],
  ],
  [
    'Pad with a constant',
    { op: 'Pad', inputs: [x([1, 2], [1, 2]), ints([1, 0, 0, 1]), x([9], [])] },
    ['float32', [2, 3], [9, 9, 9, 1, 2, 9]],
  ],
  [
    'Pad before opset 11 has attributes',
    {
      op: 'Pad',
      opset: 10,
      inputs: [bits('float16', [1, 2])],
      attributes: { pads: [1, 1], value: { float: 0.5 } },
    },
    ['float16', [4], [0.5, 1, 2, 0.5]],
  ],
  [
    'Pad with negative pads cuts',
    { op: 'Pad', inputs: [x([1, 2, 3, 4], [4], 'int64'), ints([-1, 2])] },
    ['int64', [5], [2n, 3n, 4n, 0n, 0n]],
  ],
  [
    'Pad along some axes',
    {
      op: 'Pad',
      opset: 18,
      inputs: [x([1, 0], [2, 1], 'bool'), ints([1, 0]), x([1], [], 'bool'), ints([-1])],
    },
    ['bool', [2, 2], [1, 1, 1, 0]],
  ],
  [
    'Pad with the edge',
    {
      op: 'Pad',
      inputs: [x([1, 2, 3, 4], [2, 2]), ints([1, 2, 0, 1])],
      attributes: { mode: 'edge' },
    },
    ['float32', [3, 5], [1, 1, 1, 2, 2, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4]],
  ],
  [
    'Pad with reflections',
    {
      op: 'Pad',
      inputs: [x([1, 2, 3]), ints([2, 5])],
      attributes: { mode: 'reflect' },
    },
    ['float32', [10], [3, 2, 1, 2, 3, 2, 1, 2, 3, 2]],
  ],
  [
    'Pad with repetitions',
    {
      op: 'Pad',
      opset: 19,
      inputs: [x([1, 2, 3]), ints([4, 2])],
      attributes: { mode: 'wrap' },
    },
    ['float32', [9], [3, 1, 2, 3, 1, 2, 3, 1, 2]],
  ],
  [
    'Pad with many repetitions of one element',
    { op: 'Pad', inputs: [x([3]), ints([0, 5])], attributes: { mode: 'wrap' } },
    ['float32', [6], [3, 3, 3, 3, 3, 3]],
  ],
  [
    'Pad of int64 before opset 11',
    {
      op: 'Pad',
      opset: 10,
      inputs: [x([5], [1], 'int64')],
      attributes: { pads: [0, 1], value: { float: 2.5 } },
    },
    ['int64', [2], [5n, 2n]],
  ],
  [
    'Pad with the edge of what a negative pad leaves',
    { op: 'Pad', inputs: [x([1, 2, 3]), ints([-1, 1])], attributes: { mode: 'edge' } },
    ['float32', [3], [2, 3, 3]],
  ],
  [
    'Trilu keeps the upper part',
    { op: 'Trilu', opset: 14, inputs: [x([1, 2, 3, 4, 5, 6], [2, 3])] },
    ['float32', [2, 3], [1, 2, 3, 0, 5, 6]],
  ],
  [
    'Trilu keeps the lower part of each matrix below a diagonal',
    {
      op: 'Trilu',
      opset: 14,
      inputs: [x([NaN, 2, 3, 4, NaN, 6, 7, 8], [2, 2, 2]), x([-1], [], 'int64')],
      attributes: { upper: 0 },
    },
    ['float32', [2, 2, 2], [0, 0, 3, 0, 0, 0, 7, 0]],
  ],
  [
    'Trilu of no rows',
    { op: 'Trilu', opset: 14, inputs: [x([], [0, 2 ** 30, 2 ** 10])] },
    ['float32', [0, 2 ** 30, 2 ** 10], []],
  ],
  [
    'Tile',
    { op: 'Tile', inputs: [x([1, 2, 3, 4], [2, 2], 'int8'), ints([1, 2])] },
    ['int8', [2, 4], [1, 2, 1, 2, 3, 4, 3, 4]],
  ],
  ['Tile by 0', { op: 'Tile', inputs: [x([1, 2], [2, 1]), ints([0, 3])] }, ['float32', [0, 3], []]],
  [
    'GatherElements with an index from the back',
    {
      op: 'GatherElements',
      inputs: [x([1, 2, 3, 4], [2, 2]), x([0, -1, 1, 0], [2, 2], 'int32')],
      attributes: { axis: 1 },
    },
    ['float32', [2, 2], [1, 2, 4, 3]],
  ],
  [
    'GatherElements of fewer columns',
    {
      op: 'GatherElements',
      inputs: [x([1, 2, 3, 4], [2, 2]), x([1, 0, 1], [3, 1], 'int64')],
    },
    ['float32', [3, 1], [3, 1, 3]],
  ],
  [
    'GatherND of elements and rows',
    {
      op: 'GatherND',
      inputs: [x([0, 1, 2, 3], [2, 2], 'int32'), x([0, 0, -1, 1], [2, 2], 'int64')],
    },
    ['int32', [2], [0, 3]],
  ],
  [
    'GatherND with batches',
    {
      op: 'GatherND',
      inputs: [x([0, 1, 2, 3, 4, 5, 6, 7], [2, 2, 2]), x([1, 0], [2, 1], 'int64')],
      attributes: { batch_dims: 1 },
    },
    ['float32', [2, 2], [2, 3, 4, 5]],
  ],
  [
    'ScatterElements with an index from the back',
    {
      op: 'ScatterElements',
      inputs: [x([1, 2, 3, 4, 5], [1, 5]), x([1, -2], [1, 2], 'int64'), x([8, 9], [1, 2])],
      attributes: { axis: 1 },
    },
    ['float32', [1, 5], [1, 8, 3, 9, 5]],
  ],
  [
    'ScatterElements adds twice',
    {
      op: 'ScatterElements',
      opset: 16,
      inputs: [x([1, 2], [2], 'int8'), ints([1, 1], 'int32'), x([100, 100], [2], 'int8')],
      attributes: { reduction: 'add' },
    },
    ['int8', [2], [1, -54]],
  ],
  [
    'ScatterElements adds truth values',
    {
      op: 'ScatterElements',
      opset: 16,
      inputs: [x([1, 0], [2], 'bool'), ints([0, 1]), x([1, 0], [2], 'bool')],
      attributes: { reduction: 'add' },
    },
    ['bool', [2], [1, 0]],
  ],
  [
    'ScatterND of rows',
    {
      op: 'ScatterND',
      inputs: [x([1, 2, 3, 4], [2, 2]), x([-1], [1, 1], 'int64'), x([8, 9], [1, 2])],
    },
    ['float32', [2, 2], [1, 2, 8, 9]],
  ],
  [
    'ScatterND keeps the greater element',
    {
      op: 'ScatterND',
      opset: 18,
      inputs: [x([1, 2, 3, 4], [2, 2]), x([0, 1, 0, 1, 1, 0], [3, 2], 'int64'), x([5, 4, -1])],
      attributes: { reduction: 'max' },
    },
    ['float32', [2, 2], [1, 5, 3, 4]],
  ],
  [
    'OneHot of indices that are out of range',
    { op: 'OneHot', inputs: [ints([-1, 3, 0, -4]), ints([3]), x([2, 5])] },
    ['float32', [4, 3], [2, 2, 5, 2, 2, 2, 5, 2, 2, 2, 2, 2]],
  ],
  [
    'OneHot along the first axis, of indices of float32',
    {
      op: 'OneHot',
      inputs: [x([1, 0]), x([2], []), x([0, 1], [2], 'int64')],
      attributes: { axis: 0 },
    },
    ['int64', [2, 2], [0n, 1n, 1n, 0n]],
  ],
  [
    'NonZero',
    { op: 'NonZero', inputs: [x([0, 2, NaN, -0], [2, 2])] },
    ['int64', [2, 2], [0n, 1n, 1n, 0n]],
  ],
  ['NonZero of a scalar', { op: 'NonZero', inputs: [x([5], [], 'int64')] }, ['int64', [0, 1], []]],
  ...transformerCases,
];
