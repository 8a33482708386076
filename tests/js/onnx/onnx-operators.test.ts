/** Operators of models: cases from the definitions of ONNX, and what is refused. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ArgumentError,
  createGemm,
  DTypeError,
  type Gemm,
  GemmError,
  OutOfMemoryError,
  ShapeError,
  UnsupportedError,
} from 'wgemm';
import { loadModel, type ModelResult } from 'wgemm/onnx';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { type Float, fromBits, round, toBits } from '../support/dtypes.js';
import { bits, cases, x } from './onnx-cases.js';
import { type Input, ints, type NodeCase, runNode, thrownBy, valuesOf } from './onnx-nodes.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
});
afterAll(() => {
  wg.dispose();
});

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
    ['0 and -0', zero, minusZero, [-0, 0, 0, -0, NaN, 0, 0, -0]],
    ['-0 and 0', minusZero, zero, [-0, 0, -0, 0, NaN, -0, -0, 0]],
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
      'no elements along the axis of ArgMax',
      { op: 'ArgMax', inputs: [x([], [2, 0])], attributes: { axis: 1 } },
      ShapeError,
      'data has shape [2, 0]; it must be not empty along axis 1',
    ],
    [
      'more elements than the axis of TopK has',
      { op: 'TopK', inputs: [x([1, 2]), ints([3])], outputs: 2 },
      GemmError,
      'K is 3; it must be from 0 to 2',
    ],
    [
      'pads of another number',
      { op: 'Pad', inputs: [x([1, 2]), ints([1])] },
      ShapeError,
      'pads is [1]; it must be two numbers for each axis',
    ],
    [
      'pads that cut more than there is',
      { op: 'Pad', inputs: [x([1, 2]), ints([-3, 5])] },
      ShapeError,
      'pads is [-3, 5]; it must be less than [2] cut off',
    ],
    [
      'a reflection of one element',
      { op: 'Pad', inputs: [x([1]), ints([1, 0])], attributes: { mode: 'reflect' } },
      ShapeError,
      'data has axis 0 of size 1; it must be larger for reflect',
    ],
    [
      'a constant of two elements',
      { op: 'Pad', inputs: [x([1]), ints([1, 0]), x([1, 2])] },
      ShapeError,
      'constant_value has shape [2]; it must be a scalar',
    ],
    [
      'a mode that it does not know',
      { op: 'Pad', inputs: [x([1]), ints([1, 0])], attributes: { mode: 'mirror' } },
      GemmError,
      'unknown mode',
    ],
    [
      'a result of Pad without end',
      { op: 'Pad', inputs: [x([1]), ints([2n ** 62n, 0])] },
      OutOfMemoryError,
      '2^31 bytes',
    ],
    [
      'Trilu of a vector',
      { op: 'Trilu', opset: 14, inputs: [x([1, 2])] },
      ShapeError,
      'input has shape [2]; it must be of 2 or more axes',
    ],
    [
      'repeats of another number',
      { op: 'Tile', inputs: [x([1, 2]), ints([1, 2])] },
      ShapeError,
      'repeats is [1, 2]; it must be 1 numbers long',
    ],
    [
      'negative repeats',
      { op: 'Tile', inputs: [x([1, 2]), ints([-1])] },
      ShapeError,
      'has shape [-2]',
    ],
    [
      'indices of more columns than data',
      {
        op: 'GatherElements',
        inputs: [x([1, 2], [2, 1]), x([0, 0], [1, 2], 'int64')],
      },
      ShapeError,
      'indices has shape [1, 2]; it must be within [2, 1], except along axis 0',
    ],
    ...(
      [
        { op: 'GatherElements', inputs: [x([1, 2]), ints([2])] },
        { op: 'ScatterElements', inputs: [x([1, 2]), ints([2]), x([5])] },
        { op: 'GatherND', inputs: [x([1, 2]), x([2], [1, 1], 'int64')] },
        { op: 'ScatterND', inputs: [x([1, 2]), x([2], [1, 1], 'int64'), x([5])] },
      ] as const
    ).map(
      (node) =>
        [
          `an index of ${node.op} beyond the axis`,
          node,
          GemmError,
          'indices is 2; it must be from -2 to 1',
        ] as const,
    ),
    [
      'an index of GatherND beyond its own axis',
      { op: 'GatherND', inputs: [x([1, 2, 3, 4], [2, 2]), x([0, 2], [1, 2], 'int64')] },
      GemmError,
      'indices is 2; it must be from -2 to 1',
    ],
    [
      'indices of more axes than data',
      { op: 'GatherND', inputs: [x([1, 2]), x([0, 0], [1, 2], 'int64')] },
      ShapeError,
      'indices has shape [1, 2]; it must be of 1 to 1 last indices',
    ],
    [
      'batches of another size',
      {
        op: 'GatherND',
        inputs: [x([1, 2], [2, 1]), x([0], [1, 1], 'int64')],
        attributes: { batch_dims: 1 },
      },
      ShapeError,
      'indices has shape [1, 1]; it must be of the first 1 sizes of [2, 1]',
    ],
    [
      'updates of another shape',
      { op: 'ScatterND', inputs: [x([1, 2]), x([0], [1, 1], 'int64'), x([5, 6])] },
      ShapeError,
      'updates has shape [2]; it must be [1]',
    ],
    [
      'a reduction that it does not know',
      {
        op: 'ScatterElements',
        opset: 16,
        inputs: [x([1]), ints([0]), x([5])],
        attributes: { reduction: 'sub' },
      },
      GemmError,
      'unknown reduction',
    ],
    [
      'a negative depth',
      { op: 'OneHot', inputs: [ints([0]), ints([-1]), x([0, 1])] },
      GemmError,
      'depth is -1; it must be 0 or more',
    ],
    [
      'values that are not two',
      { op: 'OneHot', inputs: [ints([0]), ints([2]), x([0, 1, 2])] },
      ShapeError,
      'values has shape [3]; it must be [2]',
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
        ['Equal', 7],
        ['Sin', 7],
        ['Round', 11],
        ['LessOrEqual', 12],
        ['HardSwish', 14],
        ['CastLike', 15],
        ['Mish', 18],
        ['BatchNormalization', 7],
        ['CumSum', 11],
        ['GatherElements', 11],
        ['GatherND', 11],
        ['ScatterElements', 11],
        ['ScatterND', 11],
        ['OneHot', 9],
        ['NonZero', 9],
        ['Trilu', 14],
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
        ['ReduceSum', { noop_with_empty_axes: 1 }, 13],
        ['ArgMax', { select_last_index: 1 }, 12],
        ['GatherND', { batch_dims: 1 }, 12],
        ['ScatterND', { reduction: 'add' }, 16],
        ['ScatterElements', { reduction: 'add' }, 16],
        ['Constant', { value_int: 1 }, 12],
        ['Dropout', { seed: 1 }, 12],
        ['CastLike', { saturate: 1 }, 19],
        ['BatchNormalization', { training_mode: 0 }, 14],
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
      'spatial after opset 8',
      { op: 'BatchNormalization', opset: 9, inputs: [], attributes: { spatial: 1 } },
      UnsupportedError,
      'has the attribute "spatial", which is not supported in opset 9',
    ],
    ...(
      [
        [14, { training_mode: 1 }],
        [7, { spatial: 0 }],
      ] as const
    ).map(
      ([opset, attributes]) =>
        [
          `BatchNormalization with ${Object.keys(attributes).join()}`,
          { op: 'BatchNormalization', opset, inputs: [], attributes },
          UnsupportedError,
          'has training_mode 1 or spatial 0',
        ] as const,
    ),
    [
      'channels of another number',
      { op: 'BatchNormalization', inputs: [x([1, 2], [1, 2]), ...[1, 2, 3, 4].map(() => x([1]))] },
      ShapeError,
      'scale or another input has shape [1]; it must be [2]',
    ],
    ...(
      [
        [
          'without cosines',
          [],
          ArgumentError,
          'cos_cache or sin_cache is absent; it must be given',
        ],
        ['with a scalar', [x([1], []), x([1], [])], ShapeError, 'cos_cache has shape []'],
      ] as const
    ).map(
      ([what, caches, Class, says]) =>
        [
          `a rotation ${what}`,
          {
            op: 'GroupQueryAttention',
            domain: 'com.microsoft',
            inputs: [
              ...[1, 2, 3].map(() => x([1, 2], [1, 1, 2])),
              ...[null, null, ints([0], 'int32'), ints([1], 'int32')],
              ...caches,
            ],
            attributes: { num_heads: 1, kv_num_heads: 1, do_rotary: 1 },
            outputs: 3,
          },
          Class,
          says,
        ] as const,
    ),
    [
      'a Range of a list',
      { op: 'Range', inputs: [x([1, 2]), x([3], []), x([1], [])] },
      ShapeError,
      'start, limit or delta has 2 elements; it must be a scalar',
    ],
    [
      'a Range without end',
      { op: 'Range', inputs: [x([1], []), x([3], []), x([0], [])] },
      ArgumentError,
      'start is 1, limit 3 and delta 0; it must be numbers with a finite number of steps between them',
    ],
    [
      'a TopK of two numbers',
      { op: 'TopK', inputs: [x([1, 2]), ints([1, 1])], outputs: 2 },
      ShapeError,
      'K has 2 elements; it must be a scalar',
    ],
    [
      'a Trilu of no number',
      { op: 'Trilu', opset: 14, inputs: [x([1, 2], [1, 2]), ints([])] },
      ShapeError,
      'k has 0 elements; it must be a scalar',
    ],
    [
      'a OneHot of two depths',
      { op: 'OneHot', inputs: [ints([0]), ints([1, 2]), x([0, 1])] },
      ShapeError,
      'depth has 2 elements; it must be a scalar',
    ],
    [
      'a ConstantOfShape of two values',
      { op: 'ConstantOfShape', inputs: [], attributes: { value: { tensor: x([1, 2]) } } },
      GemmError,
      'has a value of 2 elements; it must have 1',
    ],
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
