/** Operators that choose elements by their indices, and operators that repeat or pad tensors. */
import { ArgumentError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { OnnxNode } from '../read/model.js';
import type { Make, Value } from '../read/value.js';
import {
  axisOf,
  cast,
  checkSize,
  type Compute,
  computed,
  copy,
  expectShape,
  kinds,
  listed,
  elementOf,
  numbersIn,
  picked,
  recordForm,
  refuse,
  reshaped,
  type Row,
  scalar,
  shown,
  spread,
  withSize,
} from './define.js';
import { type Attributes, invalid } from './operator.js';
import { record } from './record.js';
import { gathered } from './shapes.js';
import { inArray, sizeOf } from './storage.js';

/** The strides of a shape for the elements of indices, and the stride of the axis. */
function indexed(shape: readonly number[], axis: number): [strides: number[], stride: number] {
  const strides = contiguousStrides(shape);
  return [withSize(strides, axis, 0), strides[axis] as number];
}

/** Refuses indices that do not fit data except along an axis. Returns the axis. */
function axisInside(data: Value, indices: Value, given: number): number {
  const axis = axisOf(given, data.shape.length);
  const { shape } = indices;
  const isInside =
    shape.length === data.shape.length &&
    shape.every((size, i) => i === axis || size <= (data.shape[i] as number));
  expectShape(isInside, 'indices', shape, `within ${shown(data.shape)}, except along axis ${axis}`);
  return axis;
}

function gatherElements(attributes: Attributes): Compute {
  const given = attributes.int('axis', 0);
  return (inputs, make) => {
    const [data, indices] = inputs as [Value, Value];
    const axis = axisInside(data, indices, given);
    const [strides, stride] = indexed(data.shape, axis);
    const along = contiguousStrides(indices.shape);
    return computed(make, data.dtype, indices.shape, inputs, {
      name: 'Gather',
      dims: indices.shape,
      strides: [strides, along, along],
      attributes: [data.shape[axis] as number, stride],
    });
  };
}

/** Indices of several axes as indices of one, in place of these axes. `shape`: their sizes. */
function flattened(make: Make, indices: Value, shape: readonly number[]): Value {
  const rows = indices.shape.slice(0, -1);
  return computed(make, 'int64', rows, [indices, listed(shape)], {
    name: 'FlatIndices',
    dims: [sizeOf(rows), shape.length],
    strides: [
      [shape.length, 1],
      [0, 1],
      [1, 0],
    ],
  });
}

/** How many axes the last axis of indices has. */
function depthOf(data: Value, { shape }: Value, batch: number): number {
  const depth = shape.at(-1) ?? 0;
  const most = data.shape.length - batch;
  expectShape(depth > 0 && depth <= most, 'indices', shape, `of 1 to ${most} last indices`);
  return depth;
}

function gatherND(attributes: Attributes): Compute {
  const batch = attributes.int('batch_dims@12', 0);
  return (inputs, make) => {
    const [data, indices] = inputs as [Value, Value];
    const { dtype, shape } = data;
    const depth = depthOf(data, indices, batch);
    const batches = shape.slice(0, batch);
    const own = indices.shape.slice(0, -1).slice(0, batch);
    const isRight = batch >= 0 && shown(own) === shown(batches);
    expectShape(
      isRight,
      'indices',
      indices.shape,
      `of the first ${batch} sizes of ${shown(shape)}`,
    );
    const sizes = shape.slice(batch, batch + depth);
    const inner = shape.slice(batch + depth);
    const flat = flattened(make, indices, sizes);
    const [size, each, count] = [sizes, inner, flat.shape.slice(batch)].map(sizeOf) as [
      ...[number, number, number],
    ];
    return computed(make, dtype, [...flat.shape, ...inner], [data, flat], {
      name: 'Gather',
      dims: [sizeOf(batches), count, each],
      strides: [
        [size * each, 0, 1],
        [count, 1, 0],
        [count * each, each, 1],
      ],
      attributes: [size, each],
    });
  };
}

/** The number of a reduction in src/nn/. */
function reductionOf(attributes: Attributes, node: OnnxNode): number {
  const kind = ['none', 'add', 'mul', 'max', 'min'].indexOf(
    attributes.string('reduction@16', 'none'),
  );
  if (kind < 0)
    throw invalid(node, 'has an unknown reduction; it must be none, add, mul, max or min');
  return kind;
}

/** Data with updates at indices. The dims and strides are of a step without data. */
function scattered(
  make: Make,
  data: Value,
  indices: Value,
  updates: Value,
  dims: readonly number[],
  strides: readonly (readonly number[])[],
  attributes: readonly number[],
): Value {
  const y = picked(make, data, data.shape, contiguousStrides(data.shape));
  // The sum of truth values is their maximum.
  const kind = attributes[2] === 1 && data.dtype === 'bool' ? 3 : (attributes[2] as number);
  const form = { name: 'Scatter', dims, strides, attributes: [...attributes.slice(0, 2), kind, 0] };
  recordForm(form, [indices, updates, y]);
  return y;
}

const expectUpdates = ({ shape }: Value, wanted: readonly number[]) =>
  expectShape(shown(shape) === shown(wanted), 'updates', shape, shown(wanted));

function scatterElements(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const given = attributes.int('axis', 0);
  const kind = reductionOf(attributes, node);
  return (inputs, make) => {
    const [data, indices, updates] = inputs as [Value, Value, Value];
    const axis = axisInside(data, indices, given);
    expectUpdates(updates, indices.shape);
    const [strides, stride] = indexed(data.shape, axis);
    const along = contiguousStrides(indices.shape);
    return scattered(
      make,
      data,
      indices,
      updates,
      indices.shape,
      [along, along, strides],
      [data.shape[axis] as number, stride, kind],
    );
  };
}

function scatterND(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const kind = reductionOf(attributes, node);
  return (inputs, make) => {
    const [data, indices, updates] = inputs as [Value, Value, Value];
    const { shape } = data;
    const depth = depthOf(data, indices, 0);
    const [sizes, inner] = [shape.slice(0, depth), shape.slice(depth)];
    expectUpdates(updates, [...indices.shape.slice(0, -1), ...inner]);
    const flat = flattened(make, indices, sizes);
    const each = sizeOf(inner);
    const strides = [
      [1, 0],
      [each, 1],
      [0, 1],
    ];
    const dims = [sizeOf(flat.shape), each];
    return scattered(make, data, flat, updates, dims, strides, [sizeOf(sizes), each, kind]);
  };
}

/** An index that is out of range has no 1. */
function oneHot(attributes: Attributes): Compute {
  const given = attributes.int('axis', -1);
  return (inputs, make) => {
    const [indices, depth, values] = inputs as [Value, Value, Value];
    const { shape } = indices;
    const axis = axisOf(given, shape.length + 1);
    const size = Math.trunc(Number(elementOf(depth, 'depth')));
    if (!(size >= 0)) refuse(ArgumentError, 'depth', `is ${size}`, '0 or more');
    expectShape(sizeOf(values.shape) === 2, 'values', values.shape, '[2]');
    const result = [...shape.slice(0, axis), size, ...shape.slice(axis)];
    const y = picked(make, values, result, Array<number>(result.length).fill(0));
    const inner = sizeOf(shape.slice(axis));
    const dims = [sizeOf(shape.slice(0, axis)), inner];
    const isIndex = (kinds.index as string).includes(indices.dtype);
    const whole = isIndex ? indices : cast(indices, make, 'int64');
    const tensors = [
      { value: whole, strides: [inner, 1], start: 0 },
      { value: values, strides: [0, 0], start: 1 },
      { value: y, strides: [size * inner, 1], start: 0 },
    ];
    record('Scatter', dims, tensors, [size, inner, 0, 1]);
    return y;
  };
}

/** It runs in JavaScript, since elements determine the shape of the result. */
const nonZero: Compute = ([x], make) => {
  const { shape } = x as Value;
  const flags = cast(x as Value, inArray, 'bool').data as Uint8Array;
  const count = flags.reduce((sum, flag) => sum + flag, 0);
  const y = make('int64', [shape.length, count]);
  const to = y.data as BigInt64Array;
  const strides = contiguousStrides(shape);
  let found = 0;
  flags.forEach((flag, i) => {
    if (!flag) return;
    strides.forEach((stride, axis) => {
      const index = Math.floor(i / stride) % (shape[axis] as number);
      to[axis * count + found] = BigInt(index);
    });
    ++found;
  });
  return y;
};

function trilu(attributes: Attributes): Compute {
  const isUpper = attributes.flag('upper', true);
  return ([input, k], make) => {
    const { dtype, shape } = input as Value;
    const from = k ? Number(elementOf(k, 'k')) : 0;
    const [rows, columns] = shape.slice(-2) as [number, number];
    expectShape(shape.length > 1, 'input', shape, 'of 2 or more axes');
    if (sizeOf(shape) === 0) return input as Value;
    const mask = inArray('bool', [rows, columns]);
    const { length } = mask.data;
    for (let i = 0; i < length; ++i) {
      const above = (i % columns) - Math.floor(i / columns);
      (mask.data as Uint8Array)[i] = (isUpper ? above >= from : above <= from) ? 1 : 0;
    }
    return computed(make, dtype, shape, [mask, input as Value, scalar(dtype, 0)], {
      name: 'Where',
      dims: [sizeOf(shape) / length, length],
      strides: [
        [0, 1],
        [length, 1],
        [0, 0],
        [length, 1],
      ],
    });
  };
}

const tile: Compute = ([input, repeats], make) => {
  const { dtype, shape } = input as Value;
  const times = numbersIn(repeats as Value);
  if (times.length !== shape.length)
    refuse(ShapeError, 'repeats', `is ${shown(times)}`, `${shape.length} numbers long`);
  const y = make(
    dtype,
    shape.map((size, axis) => size * (times[axis] as number)),
  );
  const strides = contiguousStrides(shape);
  /** Each axis that is repeated counts as two. */
  const along = (before: readonly number[], list: readonly number[]) =>
    list.flatMap((each, axis) => (times[axis] === 1 ? each : [before[axis] as number, each]));
  const dims = along(times, shape);
  const zeros = shape.map(() => 0);
  copy(y, input as Value, dims, contiguousStrides(dims), along(zeros, strides), 0, 0);
  return y;
};

/** The remainder of a division, which is not negative. */
const modulo = (a: number, b: number): number => ((a % b) + b) % b;

/** By mode: the index of the element that an index beyond an axis stands for. */
const modes: Readonly<Record<string, (index: number, size: number) => number>> = {
  constant: (index) => index,
  edge: (index, size) => Math.min(Math.max(index, 0), size - 1),
  reflect(index, size) {
    const last = size - 1;
    return last - Math.abs(last - modulo(index, 2 * last));
  },
  wrap: modulo,
};

/** Cuts what negative pads cut, and then gathers elements along each axis that has pads. */
function pad(attributes: Attributes, opset: number, node: OnnxNode): Compute {
  const mode = attributes.string('mode', 'constant');
  const names = Object.keys(modes);
  if (!names.includes(mode))
    throw invalid(node, `has an unknown mode; it must be ${names.join(' or ')}`);
  const fixed = opset < 11 ? attributes.ints('pads') : undefined;
  const fill = opset < 11 ? attributes.float('value', 0) : 0;
  return ([data, given, constant, along], make) => {
    const { dtype, shape } = data as Value;
    const pads = fixed ?? numbersIn(given as Value);
    const all = [...shape.keys()];
    const axes = (numbersIn(along) ?? all).map((axis) => axisOf(axis, shape.length));
    if (pads.length !== 2 * axes.length || new Set(axes).size < axes.length)
      refuse(ShapeError, 'pads', `is ${shown(pads)}`, 'two numbers for each axis');
    /** The pads at both ends of an axis; negative ones cut data. */
    const ends = all.map((axis) => {
      const i = axes.indexOf(axis);
      return i < 0 ? [0, 0] : [pads[i], pads[axes.length + i]];
    }) as [number, number][];
    const sums = (of: (pad: number) => number) =>
      ends.map(([before, after], axis) => (shape[axis] as number) + of(before) + of(after));
    const result = sums((pad) => pad);
    const inner = sums((pad) => Math.min(pad, 0));
    if (inner.some((size) => size < 0))
      refuse(ShapeError, 'pads', `is ${shown(pads)}`, `less than ${shown(shape)} cut off`);
    checkSize(dtype, result);
    const from = contiguousStrides(shape);
    /** The index of the first element that is of data. */
    const startOf = (strides: readonly number[], sign: number) =>
      ends.reduce((at, [pad], i) => at + Math.max(sign * pad, 0) * (strides[i] as number), 0);
    const start = startOf(from, -1);
    if (mode === 'constant') {
      const value = constant ?? scalar(dtype, fill);
      expectShape(sizeOf(value.shape) === 1, 'constant_value', value.shape, 'a scalar');
      const y = spread(make, reshaped(value, []), result);
      const to = contiguousStrides(result);
      copy(y, data as Value, inner, to, from, startOf(to, 1), start);
      return y;
    }
    let y = picked(make, data as Value, inner, from, start);
    if (sizeOf(result) === 0) return reshaped(y, result);
    ends.forEach(([before, after], axis) => {
      const size = inner[axis] as number;
      const first = Math.max(before, 0);
      const length = first + size + Math.max(after, 0);
      if (length === size) return;
      if (size < (mode === 'reflect' ? 2 : 1))
        refuse(ShapeError, 'data', `has axis ${axis} of size ${size}`, `larger for ${mode}`);
      const indexOf = modes[mode] as (index: number, size: number) => number;
      const list = Array.from({ length }, (_, i) => indexOf(i - first, size));
      y = gathered(make, y, listed(list), axis);
    });
    return y;
  };
}

/** @internal The operators of this file. */
export const indices: readonly Row[] = [
  { name: 'GatherElements@11', inputs: 'data:any indices:index', compile: gatherElements },
  { name: 'GatherND@11', inputs: 'data:any indices:int64', compile: gatherND },
  {
    name: 'ScatterElements@11',
    inputs: 'data:any indices:index updates:first',
    compile: scatterElements,
  },
  { name: 'ScatterND@11', inputs: 'data:any indices:int64 updates:first', compile: scatterND },
  { name: 'OneHot@9', inputs: 'indices:number depth:number values:any', compile: oneHot },
  { name: 'NonZero@9', inputs: 'X:any', compile: () => nonZero },
  { name: 'Trilu@14', inputs: 'input:any k:int64?', overwrites: 1, compile: trilu },
  { name: 'Tile', inputs: 'input:any repeats:int64', compile: () => tile },
  {
    name: 'Pad',
    inputs: 'data:any pads:int64@11 constant_value:first?@11 axes:index?@18',
    compile: pad,
  },
];
