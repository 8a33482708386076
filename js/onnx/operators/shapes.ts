/** Operators that move elements, or give them another shape. */
import { ArgumentError, ShapeError, UnsupportedError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { OnnxNode } from '../read/model.js';
import type { Make, OnnxDType, Value } from '../read/value.js';
import {
  axisOf,
  broadcast,
  type Compute,
  computed,
  copy,
  elementOf,
  filled,
  isBig,
  numbersIn,
  picked,
  refuse,
  reshaped,
  type Row,
  scalar,
  shown,
  spread,
  transposed,
  widened,
  withSize,
} from './define.js';
import { type Attributes, invalid, unsupported } from './operator.js';
import { sizeOf } from './storage.js';

const identity: Compute = (inputs) => inputs[0] as Value;

function dropout(attributes: Attributes, opset: number, node: OnnxNode): Compute {
  attributes.ignore(opset < 12 ? 'ratio' : 'seed');
  return ([data, ratio, training], make) => {
    const { dtype, shape } = data as Value;
    if (numbersIn(training)?.[0] && (!ratio || widened(ratio)[0] !== 0))
      refuse(UnsupportedError, 'training_mode', 'is true', 'false, unless ratio is 0');
    if (node.outputs.length < 2) return data as Value;
    const type = opset < 10 ? dtype : 'bool';
    return [data as Value, spread(make, scalar(type, 1), shape)];
  };
}

function shapeOf(attributes: Attributes): Compute {
  const start = attributes.int('start@15', 0);
  const end = attributes.int('end@15', Infinity);
  return ([data], make) => {
    const sizes = (data as Value).shape.slice(start, end);
    const y = make('int64', [sizes.length]);
    (y.data as BigInt64Array).set(sizes.map(BigInt));
    return y;
  };
}

const size: Compute = ([data], make) => {
  const y = make('int64', []);
  (y.data as BigInt64Array)[0] = BigInt(sizeOf((data as Value).shape));
  return y;
};

function flatten(attributes: Attributes): Compute {
  const given = attributes.int('axis', 1);
  return ([x]) => {
    const { shape } = x as Value;
    const axis = axisOf(given, shape.length, 1);
    return reshaped(x as Value, [sizeOf(shape.slice(0, axis)), sizeOf(shape.slice(axis))]);
  };
}

function reshape(attributes: Attributes): Compute {
  const allowZero = attributes.flag('allowzero@14', false);
  return ([data, wanted]) => {
    const { shape } = data as Value;
    const sizes = numbersIn(wanted as Value);
    const total = sizeOf(shape);
    const known = sizes.map((size, axis) => (size || allowZero ? size : (shape[axis] ?? NaN)));
    const open = known.indexOf(-1);
    if (open >= 0) {
      known[open] = 1;
      known[open] = total / sizeOf(known);
    }
    if (sizeOf(known) !== total || !known.every((size) => Number.isInteger(size) && size >= 0))
      refuse(ShapeError, 'shape', `is ${shown(sizes)}`, `of as many elements as ${shown(shape)}`);
    return reshaped(data as Value, known);
  };
}

/** An empty list squeezes no axis, as in NumPy and in ONNX's reference. (In ONNX Runtime, all.) */
function squeeze(attributes: Attributes, opset: number): Compute {
  const fixed = opset < 13 ? attributes.ints('axes', undefined) : undefined;
  return ([data, given]) => {
    const { shape } = data as Value;
    const axes = (fixed ?? numbersIn(given))?.map((axis) => axisOf(axis, shape.length));
    for (const axis of axes ?? [])
      if (shape[axis] !== 1)
        refuse(ShapeError, 'data', `has axis ${axis} of size ${shape[axis]}`, 'of size 1');
    return reshaped(
      data as Value,
      shape.filter((size, axis) => !(axes ? axes.includes(axis) : size === 1)),
    );
  };
}

function unsqueeze(attributes: Attributes, opset: number): Compute {
  const fixed = opset < 13 ? attributes.ints('axes') : undefined;
  return ([data, given]) => {
    const shape = [...(data as Value).shape];
    const axes = fixed ?? numbersIn(given as Value);
    const rank = shape.length + axes.length;
    const sorted = axes.map((axis) => axisOf(axis, rank)).sort((a, b) => a - b);
    if (new Set(sorted).size < axes.length || rank > 64)
      refuse(
        ArgumentError,
        'axes',
        `has ${axes.length} axes`,
        'a list without repeats, for a rank of at most 64',
      );
    for (const axis of sorted) shape.splice(axis, 0, 1);
    return reshaped(data as Value, shape);
  };
}

/** @internal The perm of a Transpose of a shape. Without one, it reverses the axes. */
export const permOf = ({ attributes }: OnnxNode, shape: readonly number[]): readonly number[] =>
  (attributes.get('perm') as readonly number[] | undefined) ?? [...shape.keys()].reverse();

function transpose(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const given = attributes.ints('perm', undefined);
  // Products that take a transposed operand only check its rank.
  if (given && (given.length > 64 || given.some((_, axis) => !given.includes(axis))))
    throw invalid(node, 'has a perm that is not a permutation of at most 64 axes');
  return ([data], make) => {
    const { shape } = data as Value;
    const perm = permOf(node, shape);
    if (perm.length !== shape.length)
      refuse(ShapeError, 'data', `has shape ${shown(shape)}`, `of rank ${perm.length}`);
    return transposed(make, data as Value, perm);
  };
}

const expand: Compute = ([input, wanted], make) => {
  const shape = broadcast((input as Value).shape, numbersIn(wanted as Value));
  return spread(make, input as Value, shape);
};

function concat(attributes: Attributes): Compute {
  const given = attributes.int('axis');
  return (inputs, make) => {
    const [{ dtype, shape: first }] = inputs as [Value];
    const axis = axisOf(given, first.length);
    const shape = withSize(first, axis, 0);
    for (const { shape: sizes } of inputs) {
      if (shown(withSize(sizes, axis, 0)) !== shown(withSize(first, axis, 0)))
        refuse(
          ShapeError,
          'inputs',
          `has an input of shape ${shown(sizes)}`,
          `${shown(first)} except along axis ${axis}`,
        );
      (shape[axis] as number) += sizes[axis] as number;
    }
    const y = make(dtype, shape);
    const strides = contiguousStrides(shape);
    let at = 0;
    for (const x of inputs) {
      copy(y, x, x.shape, strides, contiguousStrides(x.shape), at, 0);
      at += (x.shape[axis] as number) * (strides[axis] as number);
    }
    return y;
  };
}

function split(attributes: Attributes, opset: number, node: OnnxNode): Compute {
  const given = attributes.int('axis', 0);
  const fixed = opset < 13 ? attributes.ints('split', undefined) : undefined;
  const count = node.outputs.length;
  // From opset 18 on a node has either sizes or the number of its outputs.
  if (opset >= 18 && !node.inputs[1] && attributes.int('num_outputs') !== count)
    throw invalid(node, `has ${count} outputs; it must have as many as num_outputs`);
  return ([input, sizes], make) => {
    const { shape } = input as Value;
    const axis = axisOf(given, shape.length);
    const total = shape[axis] as number;
    const part = Math.ceil(total / count);
    let rest = total;
    const parts =
      fixed ??
      numbersIn(sizes) ??
      node.outputs.map((_, i) => (opset < 18 || i < count - 1 ? part : total - part * i));
    const strides = contiguousStrides(shape);
    if (parts.some((size) => ((rest -= size), size < 0)) || rest !== 0 || parts.length !== count)
      refuse(ShapeError, 'split', `is ${shown(parts)}`, `${count} sizes with the sum ${total}`);
    return parts.map((size) => {
      const from = (strides[axis] as number) * rest;
      rest += size;
      return picked(make, input as Value, withSize(shape, axis, size), strides, from);
    });
  };
}

function slice(attributes: Attributes, opset: number): Compute {
  const names = ['starts', 'ends', 'axes'];
  const fixed = opset < 10 && names.map((name) => attributes.ints(name, undefined));
  return ([data, ...inputs], make) => {
    const [starts = [], ends = [], ...others]: (readonly number[] | undefined)[] =
      fixed || inputs.map((input) => numbersIn(input));
    const [axes = [...starts.keys()], steps = starts.map(() => 1)] = others;
    const shape = [...(data as Value).shape];
    const strides = contiguousStrides(shape);
    let from = 0;
    if ([ends, axes, steps].some(({ length }) => length !== starts.length))
      refuse(ArgumentError, 'starts', `is ${shown(starts)}`, 'as long as ends, axes and steps');
    const along = axes.map((axis) => axisOf(axis, shape.length));
    if (new Set(along).size < along.length)
      refuse(ArgumentError, 'axes', `is ${shown(axes)}`, 'a list without repeats');
    along.forEach((axis, i) => {
      const step = steps[i] as number;
      if (step === 0) refuse(ArgumentError, 'steps', 'has a step of 0', 'a list without 0');
      const size = shape[axis] as number;
      const back = step < 0 ? 1 : 0;
      const clamped = (index: number, least: number) =>
        Math.min(Math.max(index < 0 ? index + size : index, least), size - back);
      const first = clamped(starts[i] as number, 0);
      shape[axis] = Math.max(0, Math.ceil((clamped(ends[i] as number, -back) - first) / step));
      from += first * (strides[axis] as number);
      (strides[axis] as number) *= step;
    });
    return picked(make, data as Value, shape, strides, from);
  };
}

function gather(attributes: Attributes): Compute {
  const axis = attributes.int('axis', 0);
  return ([data, indices], make) => gathered(make, data as Value, indices as Value, axis);
}

/** @internal Parts of data along an axis, by their indices. */
export function gathered(make: Make, data: Value, indices: Value, given: number): Value {
  const { dtype, shape } = data;
  const axis = axisOf(given, shape.length);
  const size = shape[axis] as number;
  const shapes = [shape.slice(0, axis), indices.shape, shape.slice(axis + 1)];
  const [before, picks, after] = shapes.map(sizeOf) as [number, number, number];
  return computed(make, dtype, shapes.flat(), [data, indices], {
    name: 'Gather',
    dims: [before, picks, after],
    strides: [
      [size * after, 0, 1],
      [0, 1, 0],
      [picks * after, after, 1],
    ],
    attributes: [size, after],
  });
}

function constant(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const value = constantOf(attributes, node);
  return (_, make) => picked(make, value, value.shape, contiguousStrides(value.shape));
}

function constantOf(attributes: Attributes, node: OnnxNode): Value {
  const [name = ''] = node.attributes.keys();
  if (name === 'value') return attributes.tensor(name);
  const [, kind, isList] = /^value_(float|int)(s?)$/.exec(name) ?? [];
  if (!kind)
    throw unsupported(
      node,
      `has ${name || 'no value'}; it must have value, value_float(s) or value_int(s)`,
    );
  attributes[`${kind}${isList}` as 'ints'](`${name}@12`);
  const list = [node.attributes.get(name)].flat() as number[]; // or bigints, not rounded
  return {
    dtype: `${kind}${kind === 'int' ? 64 : 32}` as OnnxDType,
    shape: isList ? [list.length] : [],
    data: kind === 'int' ? BigInt64Array.from(list, BigInt) : Float32Array.from(list),
  };
}

function constantOfShape(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const value: Value = node.attributes.has('value')
    ? attributes.tensor('value')
    : { dtype: 'float32', shape: [], data: new Float32Array(1) };
  const { length } = value.data;
  if (length !== 1) throw invalid(node, `has a value of ${length} elements; it must have 1`);
  return ([input], make) => {
    const shape = numbersIn(input as Value);
    return picked(
      make,
      value,
      shape,
      shape.map(() => 0),
    );
  };
}

const range: Compute = (inputs, make) => {
  const { dtype } = inputs[0] as Value;
  const [start, limit, delta] = inputs.map((input) =>
    elementOf(input, 'start, limit or delta'),
  ) as [number, number, number];
  const count = Math.max(0, Math.ceil(Number(limit - start) / Number(delta)));
  if (!Number.isSafeInteger(count))
    refuse(
      ArgumentError,
      'start',
      `is ${start}, limit ${limit} and delta ${delta}`,
      'numbers with a finite number of steps between them',
    );
  const ofIndex = (isBig(dtype) ? BigInt : Number) as (i: number) => number;
  return filled(make, dtype, [count], (i) => start + ofIndex(i) * delta);
};

/** @internal The operators of this file. */
export const shapes: readonly Row[] = [
  { name: 'Identity', inputs: 'input:any', compile: () => identity },
  {
    name: 'Dropout@7',
    inputs: 'data:any ratio:float?@12 training_mode:bool?@12 > 2',
    compile: dropout,
  },
  { name: 'Shape', inputs: 'data:any', compile: shapeOf },
  { name: 'Size@1', inputs: 'data:any', compile: () => size },
  { name: 'Flatten', inputs: 'input:any', compile: flatten },
  { name: 'Reshape', inputs: 'data:any shape:int64', compile: reshape },
  { name: 'Squeeze', inputs: 'data:any axes:int64?@13', compile: squeeze },
  { name: 'Unsqueeze', inputs: 'data:any axes:int64@13', compile: unsqueeze },
  {
    name: 'Transpose',
    inputs: 'data:any',
    link: () => ({ kind: 'transpose' }),
    compile: transpose,
  },
  { name: 'Expand@8', inputs: 'input:any shape:int64', compile: () => expand },
  { name: 'Concat', inputs: 'inputs:any*', compile: concat },
  { name: 'Split', inputs: 'input:any split:int64?@13 > Infinity', compile: split },
  {
    name: 'Slice',
    inputs: 'data:any starts:index@10 ends:same@10 axes:same?@10 steps:same?@10',
    compile: slice,
  },
  { name: 'Gather', inputs: 'data:any indices:index', compile: gather },
  { name: 'Constant', inputs: '', compile: constant },
  { name: 'ConstantOfShape@9', inputs: 'input:int64', compile: constantOfShape },
  { name: 'Range@11', inputs: 'start:signed limit:same delta:same', compile: () => range },
];
