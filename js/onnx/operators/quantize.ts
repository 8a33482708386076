/** Operators that convert between floating point and quantized integers. */
import { arrayOf, classOf } from '../../base/arrays.js';
import { DTypeError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import { large } from '../../convert/quantize-numbers.js';
import { quantize as toIntegers } from '../../convert/quantize.js';
import type { OnnxNode } from '../read/model.js';
import { typeOf } from '../read/tensors.js';
import { type Make, type OnnxDType, storedAs, type Value } from '../read/value.js';
import { axisOf, computed, define, type Numbers, refuse, shown, walk, withSize } from './define.js';
import { type Attributes, unsupported } from './operator.js';
import { isRecording, record } from './record.js';
import { sizeOf } from './storage.js';

type QuantizeLoop = (
  y: Numbers,
  at: number,
  length: number,
  s: number,
  x: Numbers,
  scales: Numbers,
  zeros: Numbers,
  q: number,
  t: number,
) => void;

function readAttributes(attributes: Attributes, node: OnnxNode, dtype: string) {
  const axis = attributes.int('axis@13', 1);
  const block = attributes.int('block_size@21', 0);
  const number = attributes.int(dtype, 0);
  const [type, bytes] = typeOf(number);
  if (number !== 0 && !bytes)
    throw unsupported(node, `has output_dtype ${number}, which is not supported`);
  return { axis, block, dtype: number === 0 ? undefined : (type as OnnxDType) };
}

/** Calls a loop for each run of elements, with the scales that it has. */
function scaled(
  [input, scale, zero]: readonly Value[],
  make: Make,
  dtype: OnnxDType,
  { axis: given, block }: { axis: number; block: number },
  loop: QuantizeLoop,
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
  const inputs = [x, scale as Value];
  const result = make(dtype, shape);
  if (block === 0 && isRecording()) {
    const zeroType = name === 'QuantizeLinear' ? dtype : x.dtype;
    const zeros = zero ?? { dtype: zeroType, shape: [], data: arrayOf(storedAs(zeroType), 1) };
    const along = (value: Value) => ({
      value,
      strides: sizeOf(value.shape) === 1 ? own.map(() => 0) : strides,
    });
    const tensors = [
      { value: x, strides: own },
      along(scale as Value),
      along(zeros),
      { value: result, strides: own },
    ];
    if (record(name, shape, tensors)) return result;
  }
  const keep: Make = () => result;
  return computed(keep, dtype, x.shape, inputs, (y, x, scales) => {
    const zeros = (zero?.data ?? new Float32Array(scales.length)) as Numbers;
    const size = shape[axis] ?? 1;
    const part = block > 0 ? block : size;
    for (let i = 0; i * part < size; ++i)
      walk(
        withSize(shape, axis, Math.min(part, size - i * part)),
        [own, strides],
        (length, [at, q], [s, t]) => {
          loop(y, at as number, length, s as number, x, scales, zeros, q as number, t as number);
        },
        [i && i * part * (own[axis] as number), i * next],
      );
  });
}

const quantize: QuantizeLoop = (y, at, length, s, x, scales, zeros, q, t) => {
  const least = classOf(y) === 'Int8Array' ? -128 : 0;
  for (; length > 0; --length, at += s, q += t) {
    const v =
      Math.fround((x[at] as number) / (scales[q] as number)) + large - large + (zeros[q] as number);
    y[at] = v < least ? least : v > least + 255 ? least + 255 : v;
  }
};

const dequantize: QuantizeLoop = (y, at, length, s, x, scales, zeros, q, t) => {
  for (; length > 0; --length, at += s, q += t)
    y[at] = Math.fround((x[at] as number) - (zeros[q] as number)) * (scales[q] as number);
};

/** @internal Adds the operators of this file to the table. */
export function addQuantize(): void {
  define(
    'QuantizeLinear@10',
    'x:ranged y_scale:float y_zero_point:byte?',
    (attributes, _, node) => {
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
        return scaled(inputs, make, dtype, form, quantize, 'QuantizeLinear');
      };
    },
  );

  define(
    'DequantizeLinear@10',
    'x:quantized x_scale:float x_zero_point:first?',
    (attributes, _, node) => {
      const form = readAttributes(attributes, node, 'output_dtype@23');
      return (inputs, make) =>
        scaled(
          inputs,
          make,
          form.dtype ?? (inputs[1] as Value).dtype,
          form,
          dequantize,
          'DequantizeLinear',
        );
    },
  );

  define('DynamicQuantizeLinear@11', 'x:float32 > 3', () => ([x], make) => {
    const { shape } = x as Value;
    const results = [make('uint8', shape), make('float32', []), make('uint8', [])] as const;
    const strides = contiguousStrides(shape);
    const zero = strides.map(() => 0);
    const tensors = [x as Value, ...results].map((value, i) => ({
      value,
      strides: i < 2 ? strides : zero,
    }));
    if (record('DynamicQuantizeLinear', shape, tensors)) return [...results];
    const [out, scales, zeros] = results.map(({ data }) => data) as [Uint8Array, Numbers, Numbers];
    const data = (x as Value).data as Numbers;
    const { scale, zeroPoint } = toIntegers({ data, shape }, { out: { data: out, shape } });
    scales[0] = scale;
    zeros[0] = zeroPoint;
    return [...results];
  });
}
