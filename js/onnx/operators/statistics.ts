/** Operators that normalize by a mean and a deviation, per channel or along some axes. */
import { ShapeError } from '../../base/errors.js';
import type { OnnxNode } from '../read/model.js';
import type { OnnxDType, Value } from '../read/value.js';
import {
  axisOf,
  broadcasted,
  type Compute,
  computed,
  type Numbers,
  refuse,
  type Row,
  scalar,
  shown,
  transposed,
  widened,
} from './define.js';
import { type Attributes, unsupported } from './operator.js';
import { inArray, sizeOf } from './storage.js';

/** Throws unless the inputs after the first have one element per channel. */
function checkChannels(parts: readonly Value[], channels: number): void {
  for (const { shape } of parts)
    if (shown(shape) !== `[${channels}]`)
      refuse(ShapeError, 'scale', `or another input has shape ${shown(shape)}`, `[${channels}]`);
}

const epsilonOf = ({ attributes }: OnnxNode) =>
  (attributes.get('epsilon') ?? Math.fround(1e-5)) as number;

/**
 * @internal The factor and the shift of each channel, from the inputs of BatchNormalization after
 * the first one.
 */
export function channelsOf(
  parts: readonly Value[],
  node: OnnxNode,
  dtype: OnnxDType,
  shape: readonly number[],
): [factor: Value, shift: Value] {
  const [scales, biases, means, variances] = parts.map((part) =>
    Float64Array.from(widened(part)),
  ) as [...[Float64Array, Float64Array, Float64Array, Float64Array]];
  const [factor, shift] = [inArray(dtype, shape), inArray(dtype, shape)];
  const [factors, shifts] = [factor.data, shift.data] as [Numbers, Numbers];
  scales.forEach((scale, i) => {
    factors[i] = scale / Math.sqrt((variances[i] as number) + epsilonOf(node));
    shifts[i] = (biases[i] as number) - (means[i] as number) * factors[i];
  });
  return [factor, shift];
}

function batchNormalization(attributes: Attributes, opset: number, node: OnnxNode): Compute {
  attributes.float('epsilon', 0);
  attributes.ignore('momentum');
  if (
    attributes.flag('training_mode@14', false) ||
    (opset < 9 && !attributes.flag('spatial', true))
  )
    throw unsupported(node, 'has training_mode 1 or spatial 0');
  return ([x, ...parts], make) => {
    const { dtype, shape } = x as Value;
    const [, channels = 1] = shape;
    checkChannels(parts, channels);
    const wide = dtype === 'float64' ? dtype : 'float32';
    const along = shape.slice(1).map((size, axis) => (axis === 0 ? size : 1));
    const inputs = [x as Value, ...channelsOf(parts, node, wide, along)];
    return broadcasted(make, 'Affine', inputs, dtype, [0, 1]);
  };
}

function instanceNormalization(attributes: Attributes): Compute {
  const epsilon = attributes.float('epsilon', Math.fround(1e-5));
  return ([x, ...parts], make) => {
    const { dtype, shape } = x as Value;
    const [count = 1, channels = 1, ...sizes] = shape;
    const size = sizeOf(sizes);
    checkChannels(parts, channels);
    const along = [channels * size, size, 1];
    return computed(make, dtype, shape, [x as Value, ...parts], {
      name: 'LayerNormalization',
      dims: [count, channels, size],
      strides: [along, [0, 1, 0], [0, 1, 0], along],
      attributes: [epsilon],
    });
  };
}

/** ONNX adds 1e-9 to the deviation. Here, 1e-18 is added to its square. */
function meanVarianceNormalization(attributes: Attributes): Compute {
  const given = attributes.ints('axes', [0, 2, 3]);
  return ([x], make) => {
    const { dtype, shape } = x as Value;
    const reduced = given.map((axis) => axisOf(axis, shape.length));
    const perm = [...shape.keys()].sort(
      (a, b) => Number(reduced.includes(a)) - Number(reduced.includes(b)),
    );
    const turned = transposed(make, x as Value, perm);
    const size = sizeOf(turned.shape.slice(shape.length - new Set(reduced).size));
    const y = computed(make, dtype, turned.shape, [turned, scalar(dtype, 1), scalar(dtype, 0)], {
      name: 'LayerNormalization',
      dims: [sizeOf(shape) / size || 0, size],
      strides: [
        [size, 1],
        [0, 0],
        [0, 0],
        [size, 1],
      ],
      attributes: [1e-18],
    });
    return transposed(
      make,
      y,
      perm.map((_, axis) => perm.indexOf(axis)),
    );
  };
}

/** @internal The operators of this file. */
export const statistics: readonly Row[] = [
  {
    name: 'BatchNormalization@7',
    inputs: 'X:float scale:float B:same input_mean:float input_var:same',
    overwrites: 1,
    compile: batchNormalization,
  },
  {
    name: 'InstanceNormalization',
    inputs: 'input:float scale:same B:same',
    overwrites: 1,
    compile: instanceNormalization,
  },
  {
    name: 'MeanVarianceNormalization@9',
    inputs: 'X:float',
    compile: meanVarianceNormalization,
  },
];
