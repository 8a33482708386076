/** Operators that choose elements by their indices, and operators that repeat or pad tensors. */
import { ArgumentError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { OnnxNode } from '../read/model.js';
import type { Make, OnnxDType, Value } from '../read/value.js';
import {
  axisOf,
  type Compute,
  computed,
  copy,
  expectShape,
  kinds,
  numbersIn,
  picked,
  recordForm,
  refuse,
  type Row,
  shown,
  widened,
  withSize,
  wordsOf,
} from './define.js';
import { cast } from './elementwise.js';
import { type Attributes, invalid } from './operator.js';
import { record } from './record.js';
import { inArray, sizeOf } from './storage.js';

/** One element, which is 0 by default. */
const scalarOf = (dtype: OnnxDType, value = 0): Value =>
  cast({ dtype: 'float32', shape: [], data: Float32Array.of(value) }, inArray, dtype);

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
  const sizes = inArray('int64', [shape.length]);
  (sizes.data as BigInt64Array).set(shape.map(BigInt));
  const rows = indices.shape.slice(0, -1);
  return computed(make, 'int64', rows, [indices, sizes], {
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
  recordForm(form, [indices, updates, y], true);
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
    const size = Math.trunc(Number(widened(depth)[0]));
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
    if (record('Scatter', dims, tensors, [size, inner, 0, 1])) return y;
    const [to, from] = [wordsOf(y.data), wordsOf(values.data)];
    (whole.data as BigInt64Array).forEach((index, i) => {
      const place = Number(index) + (index < 0 ? size : 0);
      if (place < 0 || place >= size) return;
      to[(Math.floor(i / inner) * size + place) * inner + (i % inner)] = from[1] as number;
    });
    return y;
  };
}

/** It runs in JavaScript, since elements determine the shape of the result. */
const nonZero: Compute = ([x], make) => {
  const { shape } = x as Value;
  const isNot0 = (value: number) => value != 0; // also of bigints
  let count = 0;
  for (const value of widened(x as Value)) if (isNot0(value)) ++count;
  const y = make('int64', [shape.length, count]);
  const to = y.data as BigInt64Array;
  const strides = contiguousStrides(shape);
  let found = 0;
  widened(x as Value).forEach((value, i) => {
    if (!isNot0(value)) return;
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
    const from = numbersIn(k)?.[0] ?? 0;
    const [rows, columns] = shape.slice(-2) as [number, number];
    expectShape(shape.length > 1, 'input', shape, 'of 2 or more axes');
    if (sizeOf(shape) === 0) return input as Value;
    const mask = inArray('bool', [rows, columns]);
    const { length } = mask.data;
    for (let i = 0; i < length; ++i) {
      const above = (i % columns) - Math.floor(i / columns);
      (mask.data as Uint8Array)[i] = (isUpper ? above >= from : above <= from) ? 1 : 0;
    }
    const zero = scalarOf(dtype);
    const form = {
      name: 'Where',
      dims: [sizeOf(shape) / length, length],
      strides: [
        [0, 1],
        [length, 1],
        [0, 0],
        [length, 1],
      ],
    };
    const inputs = [mask, input as Value, zero];
    return computed(make, dtype, shape, inputs, form, (y, mask, x, [zero]) => {
      for (let i = 0; i < y.length; ++i) y[i] = (mask[i % length] ? x[i] : zero) as number;
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

const modes = ['constant', 'edge', 'reflect', 'wrap'];

/** Copies data into the result, and then fills one axis after the other from what is there. */
function pad(attributes: Attributes, opset: number, node: OnnxNode): Compute {
  const mode = attributes.string('mode', 'constant');
  if (!modes.includes(mode))
    throw invalid(node, `has an unknown mode; it must be ${modes.join(' or ')}`);
  const fixed = opset < 11 ? attributes.ints('pads') : undefined;
  const fill = opset < 11 ? attributes.float('value', 0) : 0;
  return ([data, given, constant, along], make) => {
    const { dtype, shape } = data as Value;
    const pads = fixed ?? numbersIn(given as Value);
    const all = [...shape.keys()];
    const axes = (numbersIn(along) ?? all).map((axis) => axisOf(axis, shape.length));
    if (pads.length !== 2 * axes.length || new Set(axes).size < axes.length)
      refuse(ShapeError, 'pads', `is ${shown(pads)}`, 'two numbers for each axis');
    const isConstant = mode === 'constant';
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
    const y = make(dtype, result);
    const [to, from] = [contiguousStrides(result), contiguousStrides(shape)];
    /** The index of the first element that is of data. */
    const startOf = (strides: readonly number[], sign: number, first = 0) =>
      all
        .slice(first)
        .reduce((at, i) => at + Math.max(sign * ends[i]![0], 0) * (strides[i] as number), 0);
    if (isConstant) {
      const value = constant ?? scalarOf(dtype, fill);
      expectShape(sizeOf(value.shape) === 1, 'constant_value', value.shape, 'a scalar');
      const zeros = all.map(() => 0);
      copy(y, value, result, to, zeros, 0, 0);
    }
    copy(y, data as Value, inner, to, from, startOf(to, 1), startOf(from, -1));
    if (isConstant || sizeOf(result) === 0) return y;
    for (const axis of all) {
      const size = inner[axis] as number;
      const sizes = [...result.slice(0, axis), ...inner.slice(axis)];
      const stride = to[axis] as number;
      const start = startOf(to, 1, axis + 1);
      const turned = (sign: number) => withSize(to, axis, sign * stride);
      const pads = (ends[axis] as number[]).map((pad) => Math.max(pad, 0)) as [number, number];
      let filled = size;
      pads.forEach((pad, end) => {
        const sign = 2 * end - 1;
        let edge = pads[0] + end * (size - 1);
        let count;
        for (; pad > 0; pad -= count) {
          const whole = filled - (filled % size);
          // The index of the first element that is copied, and the direction of the others.
          const [most, first, turn] =
            mode === 'edge'
              ? [size && pad, edge, 0]
              : mode === 'wrap'
                ? [whole, edge + sign - sign * whole, sign]
                : [filled - 1, edge - sign, -sign];
          count = Math.min(pad, most);
          if (!(count > 0))
            refuse(ShapeError, 'data', `has axis ${axis} of size ${size}`, `larger for ${mode}`);
          copy(
            y,
            y,
            withSize(sizes, axis, count),
            turned(sign),
            turned(turn),
            start + (edge + sign) * stride,
            start + first * stride,
          );
          edge += sign * count;
          filled += count;
        }
      });
    }
    return y;
  };
}

/** @internal The operators of this file. */
export const indices: readonly Row[] = [
  {
    name: 'GatherElements@11',
    inputs: 'data:any indices:index',
    folds: false,
    compile: gatherElements,
  },
  { name: 'GatherND@11', inputs: 'data:any indices:int64', folds: false, compile: gatherND },
  {
    name: 'ScatterElements@11',
    inputs: 'data:any indices:index updates:first',
    folds: false,
    compile: scatterElements,
  },
  {
    name: 'ScatterND@11',
    inputs: 'data:any indices:int64 updates:first',
    folds: false,
    compile: scatterND,
  },
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
