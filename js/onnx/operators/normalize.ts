/** Operators that compute with all elements along some axes. */
import { ShapeError } from '../../base/errors.js';
import type { OnnxNode } from '../read/model.js';
import type { Make, Value } from '../read/value.js';
import {
  axisOf,
  type Compute,
  computed,
  recordForm,
  refuse,
  type Row,
  scalar,
  shown,
  spread,
} from './define.js';
import { type Attributes, unsupported } from './operator.js';
import { sizeOf } from './storage.js';

function softmax(name: string): Row {
  return {
    name,
    inputs: 'input:float',
    overwrites: 1,
    compile: (attributes, opset) => {
      const given = attributes.int('axis', opset < 13 ? 1 : -1);
      return ([input], make) => {
        const { dtype, shape } = input as Value;
        // Before opset 13 the axis may be the rank. It and all axes after it count as one axis.
        const axis = axisOf(given, shape.length, opset < 13 ? 1 : 0);
        const step = opset < 13 ? 1 : sizeOf(shape.slice(axis + 1));
        const size = opset < 13 ? sizeOf(shape.slice(axis)) : (shape[axis] as number);
        const strides = [size * step, 1, step];
        return computed(make, dtype, shape, [input as Value], {
          name,
          dims: [sizeOf(shape.slice(0, axis)), step, size],
          strides: [strides, strides],
        });
      };
    },
  };
}

function layerNormalization(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const given = attributes.int('axis', -1);
  const epsilon = attributes.float('epsilon', Math.fround(1e-5));
  if (attributes.int('stash_type', 1) !== 1)
    throw unsupported(node, 'has a stash_type other than 1, which is not supported');
  const name = `LayerNormalization${node.outputs.length > 1 ? 'Statistics' : ''}`;
  return ([input, scale, bias], make) =>
    normalized(make, name, input as Value, given, epsilon, scale as Value, bias);
}

/**
 * @internal Normalizes along an axis and those after it.
 * @param name the step, which has one result, or as `...Statistics` three
 */
export function normalized(
  make: Make,
  name: string,
  input: Value,
  given: number,
  epsilon: number,
  scale: Value,
  bias?: Value,
): Value[] {
  const { dtype, shape } = input;
  const axis = axisOf(given, shape.length);
  const inner = shape.slice(axis);
  const size = sizeOf(inner);
  const rows = shape.map((size, i) => (i < axis ? size : 1));
  const y = make(dtype, shape);
  const statistics = name.endsWith('Statistics') ? [0, 1].map(() => make('float32', rows)) : [];
  /** Scale or B: as large as a row, or broadcast to all of them. */
  const fitted = (part: Value, name: string): Value => {
    const from = part.shape;
    if (from.some((each, j) => each !== 1 && each !== shape.at(j - from.length)))
      refuse(
        ShapeError,
        name,
        `has shape ${shown(from)}`,
        `a shape that broadcasts to ${shown(shape)}`,
      );
    return shown(from) === shown(inner) ? part : spread(make, part, shape);
  };
  const zero = scalar(dtype, 0);
  const parts = [fitted(scale, 'Scale'), bias ? fitted(bias, 'B') : zero];
  const along = [size, 1];
  const stridesOf = (part: Value) => [sizeOf(part.shape) === size ? 0 : size, 1];
  const spreads = parts.map((part) => (part === zero ? [0, 0] : stridesOf(part)));
  const form = {
    name,
    dims: [sizeOf(rows), size],
    strides: [along, ...spreads, along, [1, 0], [1, 0]],
    attributes: [epsilon],
  };
  recordForm(form, [input, ...parts, y, ...statistics], 1 + statistics.length);
  return [y, ...statistics];
}

/** @internal The operators of this file. */
export const normalization: readonly Row[] = [
  softmax('Softmax'),
  softmax('LogSoftmax'),
  {
    name: 'LayerNormalization@1',
    inputs: 'X:float Scale:same B:same? > 3',
    overwrites: 1,
    compile: layerNormalization,
  },
];
