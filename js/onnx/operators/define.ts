/** How an operator is written down: its names, its inputs, and what it computes. */
import {
  ArgumentError,
  type DataArray,
  DTypeError,
  OutOfMemoryError,
  ShapeError,
} from '../../index.js';
import { contiguousStrides, viewOf } from '../internals.js';
import type { OnnxNode } from '../model.js';
import { Attributes, invalid, operators, type Run } from '../operator.js';
import { elementBytes, sizeOf } from '../storage.js';
import type { Make, OnnxDType, Value } from '../value.js';

const floats = 'float32 float64 float16 bfloat16';
const integers = 'int32 uint32 int64 uint64 int8 uint8';
/** The types that an input may have, by the kind that a signature states. */
const kinds: Record<string, string> = {
  float: floats,
  number: `${floats} ${integers}`,
  any: `${floats} ${integers} bool`,
  index: 'int64 int32',
  quantized: 'uint8 int8 int32',
  ranged: `${floats} int32`,
  byte: 'uint8 int8',
};

/** The newest opset of ONNX that is known. */
const newest = 26;

/** The most bytes of a result. */
const mostBytes = 2 ** 31;

/** @internal The inputs of a node that has those of its signature. */
type Inputs = readonly Value[];

/** @internal Computes the results of a node whose inputs have been checked. */
export type Compute = (inputs: Inputs, make: Make) => Value | Value[];

/**
 * @internal Adds operators.
 * @param names their keys. Those with a domain are of its opset 1
 * @param signature each input as `name:kind`. The kind is one of `kinds`, the name of a type, or
 *   `same` for the type of the input before it. `name?` may be absent. The last input may be
 *   `name*`: one or more
 * @param compile reads the attributes. Inputs that may be absent are undefined
 */
export function define(
  names: string,
  signature: string,
  compile: (attributes: Attributes, opset: number, node: OnnxNode) => Compute,
): void {
  for (const key of names.split(' ')) {
    operators.set(key, {
      opsets: key.includes('.') ? [1, 1] : [7, newest],
      compile(node, opset) {
        const attributes = new Attributes(node);
        const compute = compile(attributes, opset, node);
        attributes.end();
        const check = checkOf(signature, node);
        return (inputs, make) => {
          check(inputs);
          return compute(inputs as Inputs, (dtype, shape) => {
            checkSize(dtype, shape);
            return make(dtype, shape);
          });
        };
      },
    });
  }
}

function checkOf(
  signature: string,
  { inputs, ...node }: OnnxNode,
): (values: Parameters<Run>[0]) => void {
  const parameters = (signature.match(/\S+/g) ?? []).map((text) => {
    const [, name, sign, kind] = /(\w+)(\W*):(\w+)/.exec(text) as unknown as string[];
    return { name, isOptional: sign === '?', kind: kind as string, isList: sign === '*' };
  });
  const last = parameters.at(-1);
  while (last?.isList && parameters.length < inputs.length)
    parameters.push({ ...last, kind: 'same' });
  const least = parameters.filter(({ isOptional }) => !isOptional).length;
  if (
    inputs.length > parameters.length ||
    parameters.some(({ isOptional }, i) => !isOptional && !inputs[i])
  ) {
    const most = parameters.length > least ? ` to ${parameters.length}` : '';
    throw invalid(
      { inputs, ...node },
      `has ${inputs.filter(Boolean).length} inputs; it must have ${least}${most}`,
    );
  }
  return (values) => {
    let same = '';
    parameters.forEach(({ name, kind }, i) => {
      const dtype = values[i]?.dtype;
      if (dtype === undefined) return;
      const allowed = kind === 'same' ? same : (kinds[kind] ?? kind);
      if (!allowed.split(' ').includes(dtype))
        refuse(
          DTypeError,
          `${name}`,
          `has dtype ${dtype}; it must be ${allowed.replaceAll(' ', ' or ')}`,
        );
      same = dtype;
    });
  };
}

/** @internal Throws an error about an input or an attribute. The session adds the node. */
export function refuse(
  Class: new (op: string, argument: string, message: string) => Error,
  argument: string,
  what: string,
): never {
  throw new Class('run', argument, `run: ${argument} ${what}`);
}

/** @internal A shape as messages show it. */
export const shown = (shape: readonly number[]): string => `[${shape.join(', ')}]`;

/** Throws if a result is too large, before there is memory for it. */
function checkSize(dtype: OnnxDType, shape: readonly number[]): void {
  if (shape.length > 64)
    refuse(ShapeError, 'the result', `has ${shape.length} axes; it must have at most 64`);
  if (!(sizeOf(shape) * elementBytes(dtype) <= mostBytes))
    refuse(
      OutOfMemoryError,
      'the result',
      `has shape ${shown(shape)} and dtype ${dtype}; it must have at most 2^31 bytes`,
    );
}

/** @internal The same elements in another shape. */
export function reshaped(value: Value, shape: readonly number[]): Value {
  checkSize(value.dtype, shape);
  return { dtype: value.dtype, shape, data: value.data };
}

/** @internal An axis, counted from the front. */
export function axisOf(axis: number, rank: number, name = 'axis'): number {
  if (!(-rank <= axis && axis < rank))
    refuse(ArgumentError, name, `is ${axis}; it must be from ${-rank} to ${rank - 1}`);
  return axis < 0 ? axis + rank : axis;
}

/** @internal The elements of a list of sizes, axes or indices; undefined if it is absent. */
export function numbersIn(value: Value): number[];
export function numbersIn(value: Value | undefined): number[] | undefined;
export function numbersIn(value: Value | undefined): number[] | undefined {
  return value && Array.from(value.data as ArrayLike<number | bigint>, Number);
}

/** @internal The array that operators compute on: it may also be of another class. */
export type Numbers = Float32Array;

/** @internal Whether the elements are bigints. */
export const isBig = (dtype: OnnxDType): boolean => dtype.endsWith('int64');

const isHalf = (dtype: OnnxDType): boolean => dtype.endsWith('float16');

/** `x + large - large` rounds x half to even if x is less than 2^51. */
export const large = 1.5 * 2 ** 52;

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** @internal Elements for computing: those of 16 bits as a new array of float32. */
export function widened({ dtype, data }: Value): Numbers {
  if (!isHalf(dtype)) return data as Numbers;
  const isFloat16 = dtype === 'float16';
  const given = isFloat16 ? viewOf(dtype, data.buffer, data.byteOffset, data.length) : data;
  if (!(given instanceof Uint16Array)) return new Float32Array(given as ArrayLike<number>);
  return Float32Array.from(given, (half) => {
    bits[0] = half << 16;
    if (isFloat16) {
      bits[0] = ((half & 0x8000) << 16) | ((half & 0x7fff) << 13);
      const value = (float[0] as number) * 2 ** 112;
      const magnitude = Math.abs(value);
      return magnitude < 65536 ? value : magnitude > 65536 ? NaN : value * Infinity;
    }
    return float[0] as number;
  });
}

/** Stores float32 as 16 bits. */
function narrow({ dtype, data }: Value, values: Numbers): void {
  const isFloat16 = dtype === 'float16';
  const to = isFloat16 ? viewOf(dtype, data.buffer, data.byteOffset, data.length) : data;
  if (!(to instanceof Uint16Array)) return (to as Numbers).set(values);
  values.forEach((value, i) => {
    float[0] = value;
    const all = bits[0] as number;
    const sign = (all >>> 16) & 0x8000;
    const magnitude = Math.abs(value);
    if (!isFloat16) to[i] = value === value ? (all + 0x7fff + ((all >>> 16) & 1)) >>> 16 : 0x7fc0;
    else if (magnitude < 2 ** -14) to[i] = sign + (magnitude * 2 ** 24 + large - large);
    else if (magnitude < 65520)
      to[i] = sign + (((all & 0x7fffffff) + 0xfff + ((all >>> 13) & 1)) >>> 13) - (112 << 10);
    else to[i] = value === value ? sign + 0x7c00 : 0x7e00;
  });
}

/**
 * @internal Makes a result by a function that writes its elements, from those of inputs. Elements of
 * 16 bits are float32 there.
 */
export function computed(
  make: Make,
  dtype: OnnxDType,
  shape: readonly number[],
  inputs: Inputs,
  compute: (y: Numbers, ...inputs: Numbers[]) => void,
): Value {
  const y = make(dtype, shape);
  const to = isHalf(dtype) ? new Float32Array(sizeOf(shape)) : (y.data as Numbers);
  compute(to, ...inputs.map(widened));
  if (isHalf(dtype)) narrow(y, to);
  return y;
}

/**
 * @internal Calls back for each run of elements along the innermost axis, with the index of the first
 * one and the step in each operand. Axes are joined if all operands allow it.
 */
export function walk(
  shape: readonly number[],
  strides: readonly (readonly number[])[],
  body: (length: number, at: readonly number[], steps: readonly number[]) => void,
  starts: readonly number[] = strides.map(() => 0),
): void {
  const axes: { size: number; steps: number[] }[] = [];
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    const size = shape[axis] as number;
    if (size === 0) return;
    if (size === 1) continue;
    const steps = strides.map((each) => each[axis] as number);
    const inner = axes.at(-1);
    if (inner && steps.every((step, i) => step === (inner.steps[i] as number) * inner.size))
      inner.size *= size;
    else axes.push({ size, steps });
  }
  const { size, steps } = axes.shift() ?? { size: 1, steps: starts.map(() => 0) };
  const at = [...starts];
  const along = (index: number): void => {
    const axis = axes[index];
    if (!axis) return body(size, at, steps);
    const { size: count, steps: outer } = axis;
    for (let i = 0; i < count; ++i) {
      along(index - 1);
      for (let j = 0; j < at.length; ++j) (at[j] as number) += outer[j] as number;
    }
    for (let j = 0; j < at.length; ++j) (at[j] as number) -= (outer[j] as number) * count;
  };
  along(axes.length - 1);
}

/** @internal The shape to which NumPy broadcasts shapes. */
export function broadcast(...shapes: (readonly number[])[]): number[] {
  const rank = Math.max(...shapes.map(({ length }) => length));
  return Array.from({ length: rank }, (_, axis) => {
    const sizes = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1);
    const size = sizes.find((size) => size !== 1) ?? 1;
    if (sizes.every((each) => each === 1 || each === size)) return size;
    const found = shapes.map(shown).join(' and ');
    refuse(ShapeError, 'the inputs', `have shapes ${found}; sizes must be the same or 1`);
  });
}

/** @internal The strides of a contiguous operand along the axes of a shape to which it broadcasts. */
export function stridesIn(shape: readonly number[], from: readonly number[]): number[] {
  const strides = contiguousStrides(from);
  return shape.map((_, axis) => {
    const own = axis - shape.length + from.length;
    return own >= 0 && from[own] !== 1 ? (strides[own] as number) : 0;
  });
}

/** @internal Elements as whole numbers of at most 32 bits, and how many of them an element has. */
export function wordsOf(data: DataArray): [words: Int32Array, perElement: number] {
  const { BYTES_PER_ELEMENT: bytes, buffer, byteOffset, byteLength } = data;
  const Words = [Uint8Array, Uint16Array][bytes - 1] ?? Int32Array;
  const words = new Words(buffer as ArrayBuffer, byteOffset, byteLength / Words.BYTES_PER_ELEMENT);
  return [words as Int32Array, bytes / Words.BYTES_PER_ELEMENT];
}

/** @internal Calls back for words as `walk` does for elements. */
export function walkWords(
  perElement: number,
  shape: readonly number[],
  strides: readonly (readonly number[])[],
  /** Of operands that have no words, such as conditions. */
  whole: number,
  body: Parameters<typeof walk>[2],
  starts: readonly number[] = strides.map(() => 0),
): void {
  if (perElement === 1) return walk(shape, strides, body, starts);
  const isWhole = (i: number) => i >= strides.length - whole;
  walk(
    [...shape, perElement],
    strides.map((each, i) =>
      isWhole(i) ? [...each, 0] : [...each.map((step) => step * perElement), 1],
    ),
    body,
    starts.map((start, i) => (isWhole(i) ? start : start * perElement)),
  );
}

/** @internal Copies elements between arrays of one class, by the strides and the starts of both. */
export function copy(
  to: DataArray,
  from: DataArray,
  shape: readonly number[],
  toStrides: readonly number[],
  fromStrides: readonly number[],
  toStart = 0,
  fromStart = 0,
): void {
  const [y, perElement] = wordsOf(to);
  const [x] = wordsOf(from);
  walkWords(
    perElement,
    shape,
    [toStrides, fromStrides],
    0,
    (length, [q, p], [t, s]) => {
      move(y, x, length, q as number, p as number, t as number, s as number);
    },
    [toStart, fromStart],
  );
}

/** @internal Copies a run of words. */
export function move(
  y: Int32Array,
  x: Int32Array,
  length: number,
  to: number,
  from: number,
  toStep: number,
  fromStep: number,
): void {
  if (length > 64 && toStep === 1 && fromStep === 1) y.set(x.subarray(from, from + length), to);
  else for (let i = 0; i < length; ++i, to += toStep, from += fromStep) y[to] = x[from] as number;
}
