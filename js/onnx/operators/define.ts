/** How an operator is written down: its names, its inputs, and what it computes. */
import { ArgumentError, DTypeError, OutOfMemoryError, ShapeError } from '../../base/errors.js';
import { halfOf, toHalves } from '../../base/half.js';
import { contiguousStrides } from '../../base/layout.js';
import type { DataArray } from '../../base/tensor.js';
import type { OnnxNode } from '../read/model.js';
import type { Make, OnnxDType, Value } from '../read/value.js';
import { type Attributes, invalid, operators } from './operator.js';
import { record } from './record.js';
import { elementBytes, sizeOf } from './storage.js';

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

/** @internal Computes the results of a node whose inputs have been checked. */
export type Compute = (inputs: readonly Value[], make: Make) => Value | Value[];

/**
 * @internal Adds an operator.
 * @param name its key, and `@9` if it begins at opset 9. Default: 6. With a domain it begins at
 *   opset 1
 * @param signature each input as `name:kind`. The kind is one of `kinds`, the name of a type, or
 *   `same` or `first` for the type of the input before it or of the first one. `kind?` may be
 *   absent. `@13` is for those that the operator has from opset 13 on. A last input `kind*` stands
 *   for one or more of the same type. After these, `> 3` stands for up to 3 outputs; default: 1
 * @param compile reads the attributes. Inputs that may be absent are undefined
 */
export function define(
  name: string,
  signature: string,
  compile: (attributes: Attributes, opset: number, node: OnnxNode) => Compute,
): void {
  const [key, from = 6] = name.split('@') as [string, string?];
  const [takes, outputs = 1] = signature.split(' > ') as [string, string?];
  operators.set(key, {
    opsets: key.includes('.') ? [1, 1] : [Number(from), newest],
    outputs: Number(outputs),
    compile(attributes, opset, node) {
      const compute = compile(attributes, opset, node);
      attributes.end();
      const { inputs } = node;
      const parameters = takes
        .split(' ')
        .filter((each) => each && !(opset < Number(each.split('@')[1])));
      if (takes.endsWith('*'))
        while (parameters.length < inputs.length) parameters.push('inputs:same');
      if (
        inputs.length > parameters.length ||
        parameters.some((each, i) => !each.includes('?') && !inputs[i])
      )
        throw invalid(
          node,
          `has ${inputs.filter(Boolean).length} inputs; it must have ${shown(parameters)}`,
        );
      return (values, make) => {
        let same = '';
        parameters.forEach((parameter, i) => {
          const dtype = values[i]?.dtype;
          if (!dtype) return;
          const [name, kind] = parameter.split(/\W/) as [string, string];
          if (kind === 'first') same = values[0]?.dtype as string;
          else if (kind !== 'same') same = kinds[kind] ?? kind;
          if (!same.split(' ').includes(dtype))
            refuse(DTypeError, name, `has dtype ${dtype}`, same.replaceAll(' ', ' or '));
          same = dtype;
        });
        return compute(values as readonly Value[], (dtype, shape, over) => {
          checkSize(dtype, shape);
          return make(dtype, shape, over);
        });
      };
    },
  });
}

/**
 * @internal Throws an error about an input or an attribute. The session adds the node.
 * @param wanted what the input or attribute must be
 */
export function refuse(
  Class: new (op: string, argument: string, message: string) => Error,
  argument: string,
  found: string,
  wanted: unknown,
): never {
  throw new Class('run', argument, `run: ${argument} ${found}; it must be ${String(wanted)}`);
}

/** @internal A list as messages show it: the first 64 of it, as many as a shape can have. */
export const shown = (list: readonly unknown[]): string =>
  `[${list.slice(0, 64).join(', ')}${list.length > 64 ? ', ...' : ''}]`;

/** Throws if a result is too large, before there is memory for it. */
function checkSize(dtype: OnnxDType, shape: readonly number[]): void {
  const bytes = sizeOf(shape) * elementBytes(dtype);
  if (shape.length > 64 || !(bytes <= mostBytes) || shape.some((size) => size < 0))
    refuse(
      bytes > mostBytes ? OutOfMemoryError : ShapeError,
      'the result',
      `has shape ${shown(shape)}`,
      'of at most 64 axes, with sizes of 0 or more, and at most 2^31 bytes',
    );
}

/** @internal The same elements in another shape. */
export function reshaped(value: Value, shape: readonly number[]): Value {
  checkSize(value.dtype, shape);
  return value.reshape?.(shape) ?? { dtype: value.dtype, shape, data: value.data };
}

/**
 * @internal An axis or an index, counted from the front.
 * @param beyond 1 if it may be the rank itself
 */
export function axisOf(axis: number, rank: number, beyond = 0, name = 'axis'): number {
  const most = rank + beyond - 1;
  if (!(-rank <= axis && axis <= most))
    refuse(ArgumentError, name, `is ${axis}`, `from ${-rank} to ${most}`);
  return axis < 0 ? axis + rank : axis;
}

/** More sizes, axes or outputs than any model has. An array of numbers must not end the process. */
const mostNumbers = 1 << 16;

/** @internal The elements of a list of sizes or axes; undefined if it is absent. */
export function numbersIn(value: Value): number[];
export function numbersIn(value: Value | undefined): number[] | undefined;
export function numbersIn(value: Value | undefined): number[] | undefined {
  const count = value?.data.length as number;
  if (count > mostNumbers)
    refuse(ShapeError, 'list', `has ${count} numbers`, `at most ${mostNumbers} numbers long`);
  return value && Array.from(value.data as ArrayLike<number | bigint>, Number);
}

/** @internal The array that operators compute on: it may also be of another class. */
export type Numbers = Float32Array;

/** @internal Whether the elements are bigints. */
export const isBig = (dtype: OnnxDType): boolean => dtype.endsWith('int64');

/** The codes of elements of 16 bits, which may be in a Float16Array. */
const codesIn = ({ buffer, byteOffset, length }: DataArray) =>
  new Uint16Array(buffer as ArrayBuffer, byteOffset, length);

/** @internal Elements for computing: elements of 16 bits as a new array of float32. */
export function widened({ dtype, data }: Value): Numbers {
  const half = halfOf(dtype);
  if (!half) return data as Numbers;
  const { values } = half;
  const codes = codesIn(data);
  const wide = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; ++i) wide[i] = values[codes[i] as number] as number;
  return wide;
}

/** @internal The step that computes a result, too: see `record`. */
export interface StepForm {
  readonly name: string;
  /** Default: the elements of all tensors, one by one. */
  readonly dims?: readonly number[];
  /** The strides of each input, and then of the result. */
  readonly strides?: readonly (readonly number[])[];
  readonly attributes?: readonly number[];
}

/**
 * @internal Makes a result by a function that writes its elements from the elements of inputs.
 * Elements of 16 bits are float32 there. The result may be in the memory of an input: see `Make`.
 */
export function computed(
  make: Make,
  dtype: OnnxDType,
  shape: readonly number[],
  inputs: readonly Value[],
  compute: (y: Numbers, ...inputs: Numbers[]) => void,
  form?: StepForm,
): Value {
  const y = make(dtype, shape, inputs);
  if (form) {
    const { name, dims = [sizeOf(shape)], strides, attributes } = form;
    const tensors = [...inputs, y].map((value, i) => ({ value, strides: strides?.[i] ?? [1] }));
    if (record(name, dims, tensors, attributes)) return y;
  }
  const { data } = y;
  const half = halfOf(dtype);
  const to = half ? new Float32Array(data.length) : (data as Numbers);
  compute(to, ...inputs.map(widened));
  if (half) toHalves(codesIn(data), new Int32Array(to.buffer), half);
  return y;
}

/**
 * @internal Calls back for each run of elements along the innermost axis: with the index of the
 * first one and the step in each operand. Axes are joined if all operands allow it.
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

/** @internal A shape with another size along an axis. */
export function withSize(shape: readonly number[], axis: number, size: number): number[] {
  return shape.map((each, i) => (i === axis ? size : each));
}

/** @internal The shape to which NumPy broadcasts shapes. */
export function broadcast(...shapes: (readonly number[])[]): number[] {
  const rank = Math.max(...shapes.map(({ length }) => length));
  return Array.from({ length: rank }, (_, axis) => {
    const sizes = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1);
    const size = sizes.find((size) => size !== 1) ?? 1;
    if (sizes.every((each) => each === 1 || each === size)) return size;
    const found = shapes.map(shown).join(' and ');
    return refuse(ShapeError, 'the shape', `differs: ${found}`, 'the same along each axis, or 1');
  });
}

/** @internal The strides of a contiguous operand along a shape to which it broadcasts. */
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

/** @internal Strides in words, of elements of `count` words. The last axis counts words. */
export const inWords = (strides: readonly number[], count: number): number[] => [
  ...strides.map((stride) => stride * count),
  1,
];

/** @internal Copies elements between values of one type, by the strides and the starts of both. */
export function copy(
  to: Value,
  from: Value,
  shape: readonly number[],
  toStrides: readonly number[],
  fromStrides: readonly number[],
  toStart: number,
  fromStart: number,
): void {
  const tensors = [
    { value: from, strides: fromStrides, start: fromStart },
    { value: to, strides: toStrides, start: toStart },
  ];
  if (record('Copy', shape, tensors)) return;
  const [y, count] = wordsOf(to.data);
  const [x] = wordsOf(from.data);
  walk(
    [...shape, count],
    [inWords(toStrides, count), inWords(fromStrides, count)],
    (length, [q, p], [t, s]) => {
      move(y, x, length, q as number, p as number, t as number, s as number);
    },
    [toStart * count, fromStart * count],
  );
}

/** @internal A new value of elements of another one, by their strides. */
export function picked(
  make: Make,
  x: Value,
  shape: readonly number[],
  strides: readonly number[],
  start = 0,
): Value {
  const y = make(x.dtype, shape);
  copy(y, x, shape, contiguousStrides(shape), strides, 0, start);
  return y;
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
  if (length > 24 && toStep === 1 && fromStep === 1) y.set(x.subarray(from, from + length), to);
  else for (let i = 0; i < length; ++i, to += toStep, from += fromStep) y[to] = x[from] as number;
}
