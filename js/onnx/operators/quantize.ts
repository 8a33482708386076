/** Operators that convert between floating point and quantized integers. */
import { arrayOf } from '../../base/arrays.js';
import { DTypeError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { OnnxNode } from '../read/model.js';
import { typeOf } from '../read/tensors.js';
import { type Make, type OnnxDType, storedAs, type Value } from '../read/value.js';
import {
  axisOf,
  type Compute,
  computed,
  recordForm,
  refuse,
  type Row,
  shown,
  withSize,
} from './define.js';
import { type Attributes, unsupported } from './operator.js';
import { record } from './record.js';
import { sizeOf } from './storage.js';

function readAttributes(attributes: Attributes, node: OnnxNode, dtype: string) {
  const axis = attributes.int('axis@13', 1);
  const block = attributes.int('block_size@21', 0);
  const number = attributes.int(dtype, 0);
  const [type, bytes] = typeOf(number);
  if (number !== 0 && !bytes)
    throw unsupported(node, `has output_dtype ${number}, which is not supported`);
  return { axis, block, dtype: number === 0 ? undefined : (type as OnnxDType) };
}

/** Computes each element by a step, with the scale and the zero point that it has. */
function scaled(
  [input, scale, zero]: readonly Value[],
  make: Make,
  dtype: OnnxDType,
  { axis: given, block }: { axis: number; block: number },
  name: string,
): Value {
  const x = input as Value;
  const { shape: from } = scale as Value;
  if (zero && sizeOf(zero.shape) !== sizeOf(from))
    refuse(ShapeError, 'zero_point', `has shape ${shown(zero.shape)}`, shown(from));
  const { shape } = x;
  const own = contiguousStrides(shape);
  let strides = shape.map(() => 0);
  let axis = 0;
  let next = 0; // from the scale of a block to the scale of the next one
  if (block > 0 || sizeOf(from) !== 1) {
    axis = axisOf(given, shape.length);
    const size = shape[axis] as number;
    const wanted = block > 0 ? withSize(shape, axis, Math.ceil(size / block)) : [size];
    if (shown(wanted) !== shown(from))
      refuse(ShapeError, 'scale', `has shape ${shown(from)}`, shown(wanted));
    if (block > 0) {
      strides = contiguousStrides(from);
      next = strides[axis] as number;
      strides[axis] = 0;
    } else strides[axis] = 1;
  }
  const zeroType = name === 'QuantizeLinear' ? dtype : x.dtype;
  const zeros = zero ?? {
    dtype: zeroType,
    shape: from,
    data: arrayOf(storedAs(zeroType), sizeOf(from)),
  };
  const inputs = [x, scale as Value, zeros];
  if (block <= 0)
    return computed(make, dtype, shape, inputs, {
      name,
      dims: shape,
      strides: [own, strides, strides, own],
    });
  const y = make(dtype, shape);
  const size = shape[axis] as number;
  const whole = Math.floor(size / block);
  const stride = own[axis] as number;
  /** Blocks from `first` on. The axis becomes two: blocks, and the elements of each. */
  const step = (first: number, count: number, length: number) => {
    const split = (list: readonly number[], outer: number, inner: number) => [
      ...list.slice(0, axis),
      outer,
      inner,
      ...list.slice(axis + 1),
    ];
    const along = split(own, block * stride, stride);
    const perBlock = split(strides, next, 0);
    const tensors = [...inputs, y].map((value, i) => ({
      value,
      strides: i % 3 ? perBlock : along,
      start: first * (i % 3 ? next : block * stride),
    }));
    if (count * length > 0) record(name, split(shape, count, length), tensors);
  };
  step(0, whole, block);
  step(whole, 1, size % block);
  return y;
}

function quantizeLinear(attributes: Attributes, _: number, node: OnnxNode): Compute {
  attributes.ignore('saturate@19', 'precision@23');
  const form = readAttributes(attributes, node, 'output_dtype@21');
  return (inputs, make) => {
    const dtype = inputs[2]?.dtype ?? form.dtype ?? 'uint8';
    if (!dtype.endsWith('int8') || (form.dtype ?? dtype) !== dtype)
      refuse(
        DTypeError,
        'output_dtype',
        `is ${form.dtype}`,
        'uint8 or int8, the type of y_zero_point',
      );
    return scaled(inputs, make, dtype, form, 'QuantizeLinear');
  };
}

function dequantizeLinear(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const form = readAttributes(attributes, node, 'output_dtype@23');
  return (inputs, make) => {
    const dtype = form.dtype ?? (inputs[1] as Value).dtype;
    return scaled(inputs, make, dtype, form, 'DequantizeLinear');
  };
}

const dynamicQuantizeLinear: Compute = ([x], make) => {
  const { shape } = x as Value;
  const results = [make('uint8', shape), make('float32', []), make('uint8', [])];
  const own = contiguousStrides(shape);
  const zero = own.map(() => 0);
  const form = { name: 'DynamicQuantizeLinear', dims: shape, strides: [own, own, zero, zero] };
  recordForm(form, [x as Value, ...results], 3);
  return results;
};

/** @internal The operators of this file. */
export const quantization: readonly Row[] = [
  {
    name: 'QuantizeLinear@10',
    inputs: 'x:ranged y_scale:float y_zero_point:byte?',
    compile: quantizeLinear,
  },
  {
    name: 'DequantizeLinear@10',
    inputs: 'x:quantized x_scale:float x_zero_point:first?',
    isShared: true,
    compile: dequantizeLinear,
  },
  {
    name: 'DynamicQuantizeLinear@11',
    inputs: 'x:float32 > 3',
    compile: () => dynamicQuantizeLinear,
  },
];
