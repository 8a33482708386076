/** Operators that move elements, or give them another shape. */
import { ArgumentError, type DataArray, ShapeError } from '../../index.js';
import { contiguousStrides } from '../internals.js';
import { invalid, unsupported } from '../operator.js';
import { sizeOf } from '../storage.js';
import type { Value } from '../value.js';
import {
  axisOf,
  broadcast,
  copy,
  define,
  move,
  numbersIn,
  refuse,
  reshaped,
  shown,
  stridesIn,
  wordsOf,
} from './define.js';

/** @internal Adds the operators of this file to the table. */
export function addShapes(): void {
  define(
    'Identity',
    'input:any',
    () =>
      ([x]) =>
        x as Value,
  );

  define('Dropout', 'data:any ratio?:float training_mode?:bool', (attributes, opset, node) => {
    attributes.ignore('ratio', 'seed');
    return ([data, , training], make) => {
      const x = data as Value;
      if (numbersIn(training)?.[0])
        refuse(ArgumentError, 'training_mode', 'is true; it must be false');
      if (!node.outputs[1]) return x;
      const mask = make(opset < 10 ? x.dtype : 'bool', x.shape);
      (mask.data as Float32Array).fill(1);
      return [x, mask];
    };
  });

  define('Shape', 'data:any', (attributes) => {
    const start = attributes.int('start', 0);
    const end = attributes.int('end', Infinity);
    return ([data], make) => {
      const sizes = (data as Value).shape.slice(start, end);
      const y = make('int64', [sizes.length]);
      (y.data as BigInt64Array).set(sizes.map(BigInt));
      return y;
    };
  });

  define('Flatten', 'input:any', (attributes) => {
    const given = attributes.int('axis', 1);
    return ([x]) => {
      const { shape } = x as Value;
      const axis = given === shape.length ? given : axisOf(given, shape.length);
      return reshaped(x as Value, [sizeOf(shape.slice(0, axis)), sizeOf(shape.slice(axis))]);
    };
  });

  define('Reshape', 'data:any shape:int64', (attributes) => {
    const allowZero = attributes.flag('allowzero', false);
    return ([data, wanted]) => {
      const { shape } = data as Value;
      const sizes = numbersIn(wanted as Value);
      const found = () => `is ${shown(sizes)} for data of shape ${shown(shape)}`;
      const known = sizes.map((size, axis) =>
        size === 0 && !allowZero ? (shape[axis] ?? -2) : size,
      );
      const open = known.indexOf(-1);
      if (open >= 0) known[open] = 1;
      const rest = sizeOf(shape) / sizeOf(known);
      if (open >= 0) known[open] = rest;
      if (
        !known.every((size) => Number.isSafeInteger(size) && size >= 0) ||
        sizeOf(known) !== sizeOf(shape)
      )
        refuse(ShapeError, 'shape', `${found()}; it must keep the number of elements`);
      return reshaped(data as Value, known);
    };
  });

  define('Squeeze', 'data:any axes?:int64', (attributes) => {
    const fixed = attributes.ints('axes', undefined);
    return ([data, given]) => {
      const { shape } = data as Value;
      const axes = (fixed ?? numbersIn(given))?.map((axis) => axisOf(axis, shape.length, 'axes'));
      return reshaped(
        data as Value,
        shape.filter((size, axis) => {
          if (!(axes?.includes(axis) ?? size === 1)) return true;
          if (size !== 1)
            refuse(ShapeError, 'data', `has size ${size} in axis ${axis}; it must be 1`);
          return false;
        }),
      );
    };
  });

  define('Unsqueeze', 'data:any axes?:int64', (attributes) => {
    const fixed = attributes.ints('axes', undefined);
    return ([data, given]) => {
      const { shape } = data as Value;
      const axes = fixed ?? numbersIn(given) ?? [];
      const rank = shape.length + axes.length;
      const added = new Set(axes.map((axis) => axisOf(axis, rank, 'axes')));
      if (added.size < axes.length)
        refuse(ArgumentError, 'axes', `is ${shown(axes)}; each axis must be there once`);
      const sizes = [...shape];
      return reshaped(
        data as Value,
        Array.from({ length: rank }, (_, axis) =>
          added.has(axis) ? 1 : (sizes.shift() as number),
        ),
      );
    };
  });

  define('Transpose', 'data:any', (attributes, _, node) => {
    const given = attributes.ints('perm', undefined);
    // Products read through a transpose, and only check its rank.
    if (given?.some((_, axis) => !given.includes(axis)))
      throw invalid(node, `has perm ${shown(given)}; it must be a permutation of its axes`);
    return ([data], make) => {
      const x = data as Value;
      const { length } = x.shape;
      const perm = given ?? x.shape.map((_, axis) => length - 1 - axis);
      if (perm.length !== length)
        refuse(ArgumentError, 'perm', `is ${shown(perm)}; it must have ${length} axes`);
      const shape = perm.map((axis) => x.shape[axis] as number);
      const strides = contiguousStrides(x.shape);
      const y = make(x.dtype, shape);
      copy(
        y.data,
        x.data,
        shape,
        contiguousStrides(shape),
        perm.map((axis) => strides[axis] as number),
      );
      return y;
    };
  });

  define('Expand', 'input:any shape:int64', () => ([input, wanted], make) => {
    const x = input as Value;
    const sizes = numbersIn(wanted as Value);
    if (sizes.some((size) => size < 0))
      refuse(ArgumentError, 'shape', `is ${shown(sizes)}; sizes must be 0 or more`);
    const shape = broadcast(x.shape, sizes);
    const y = make(x.dtype, shape);
    copy(y.data, x.data, shape, contiguousStrides(shape), stridesIn(shape, x.shape));
    return y;
  });

  define('Concat', 'inputs*:any', (attributes) => {
    const given = attributes.int('axis');
    return (inputs, make) => {
      const [{ dtype, shape: first }] = inputs as [Value];
      const axis = axisOf(given, first.length);
      const shape = [...first];
      shape[axis] = 0;
      for (const { shape: sizes } of inputs) {
        if (
          sizes.length !== first.length ||
          sizes.some((size, i) => i !== axis && size !== first[i])
        )
          refuse(
            ShapeError,
            'inputs',
            `have shapes ${shown(first)} and ${shown(sizes)}; they must be the same except in axis ${axis}`,
          );
        shape[axis] += sizes[axis] as number;
      }
      const y = make(dtype, shape);
      const strides = contiguousStrides(shape);
      let at = 0;
      for (const { data, shape: sizes } of inputs) {
        copy(y.data, data, sizes, strides, contiguousStrides(sizes), at);
        at += (sizes[axis] as number) * (strides[axis] as number);
      }
      return y;
    };
  });

  define('Split', 'input:any split?:int64', (attributes, _, node) => {
    const given = attributes.int('axis', 0);
    const fixed = attributes.ints('split', undefined);
    const { length } = node.outputs;
    const count = attributes.int('num_outputs', length);
    if (count !== length) throw invalid(node, `has num_outputs ${count}, and ${length} outputs`);
    return ([input, sizesGiven], make) => {
      const x = input as Value;
      const axis = axisOf(given, x.shape.length);
      const total = x.shape[axis] as number;
      const part = Math.ceil(total / count);
      const sizes =
        fixed ??
        numbersIn(sizesGiven) ??
        node.outputs.map((_, i) => (i < count - 1 ? part : total - part * i));
      const sum = sizes.reduce((sum, size) => sum + size, 0);
      if (sizes.length !== length || sum !== total || sizes.some((size) => size < 0))
        refuse(
          ShapeError,
          'split',
          `is ${shown(sizes)}; it must be ${length} sizes that add up to ${total}`,
        );
      const strides = contiguousStrides(x.shape);
      const parts = sizes.map((size) =>
        make(
          x.dtype,
          x.shape.map((each, i) => (i === axis ? size : each)),
        ),
      );
      let at = 0;
      for (const { data, shape } of parts) {
        copy(data, x.data, shape, contiguousStrides(shape), strides, 0, at);
        at += (shape[axis] as number) * (strides[axis] as number);
      }
      return parts;
    };
  });

  define('Slice', 'data:any starts?:index ends?:same axes?:same steps?:same', (attributes) => {
    const fixed = ['starts', 'ends', 'axes'].map((name) => attributes.ints(name, undefined));
    return ([data, ...inputs], make) => {
      const x = data as Value;
      const rank = x.shape.length;
      const lists: readonly (readonly number[] | undefined)[] = fixed[0]
        ? fixed
        : inputs.map(numbersIn);
      const [starts = [], ends = []] = lists;
      const [, , axes = starts.map((_, i) => i), steps = starts.map(() => 1)] = lists;
      const shape = [...x.shape];
      const strides = contiguousStrides(shape);
      const own = [...strides];
      let first = 0;
      if (new Set([starts, ends, axes, steps].map(({ length }) => length)).size > 1)
        refuse(ArgumentError, 'starts', 'must have as many elements as ends, axes and steps');
      starts.forEach((start, i) => {
        const axis = axisOf(axes[i] as number, rank, 'axes');
        const size = x.shape[axis] as number;
        const step = steps[i] as number;
        if (step === 0) refuse(ArgumentError, 'steps', 'has a step of 0; it must not be 0');
        const least = step < 0 ? -1 : 0;
        const clamped = (index: number, most: number, least: number) =>
          Math.min(Math.max(index < 0 ? index + size : index, least), most);
        const from = clamped(start, step < 0 ? size - 1 : size, 0);
        const to = clamped(ends[i] as number, size + least, least);
        shape[axis] = Math.max(0, Math.ceil((to - from) / step));
        first += from * (strides[axis] as number);
        own[axis] = step * (strides[axis] as number);
      });
      const y = make(x.dtype, shape);
      copy(y.data, x.data, shape, contiguousStrides(shape), own, 0, first);
      return y;
    };
  });

  define('Gather', 'data:any indices:any', (attributes) => {
    const given = attributes.int('axis', 0);
    return ([data, indices], make) => {
      const x = data as Value;
      const axis = axisOf(given, x.shape.length);
      const size = x.shape[axis] as number;
      const inner = x.shape.slice(axis + 1);
      const outer = x.shape.slice(0, axis);
      const y = make(x.dtype, [...outer, ...(indices as Value).shape, ...inner]);
      const [to, perElement] = wordsOf(y.data);
      const [from] = wordsOf(x.data);
      const length = sizeOf(inner) * perElement;
      const list = numbersIn(indices as Value).map((index) => axisOf(index, size, 'indices'));
      for (let i = 0, at = 0; i < sizeOf(outer); ++i)
        for (const index of list) {
          move(to, from, length, at, (i * size + index) * length, 1, 1);
          at += length;
        }
      return y;
    };
  });

  define('Constant', '', (attributes, _, node) => {
    const [name = ''] = node.attributes.keys();
    const make = (dtype: 'float32' | 'int64', list: number[], shape: number[]): Value => ({
      dtype,
      shape,
      data: dtype === 'int64' ? BigInt64Array.from(list, BigInt) : Float32Array.from(list),
    });
    const readers: Record<string, () => Value> = {
      value: () => attributes.tensor(name),
      value_float: () => make('float32', [attributes.float(name)], []),
      value_int: () => make('int64', [attributes.int(name)], []),
      value_floats: () =>
        make('float32', attributes.floats(name), [attributes.floats(name).length]),
      value_ints: () => make('int64', attributes.ints(name), [attributes.ints(name).length]),
    };
    if (!Object.hasOwn(readers, name))
      throw unsupported(
        node,
        `has no value that is supported: it must be ${Object.keys(readers).join(' or ')}`,
      );
    const { dtype, shape, data } = (readers[name] as () => Value)();
    return (_, make) => {
      const y = make(dtype, shape);
      (y.data as Float32Array).set(data as Exclude<DataArray, BigInt64Array | BigUint64Array>);
      return y;
    };
  });
}
