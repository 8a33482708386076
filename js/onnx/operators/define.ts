/** How an operator is written down: its names, its inputs, and what it computes. */
import { ArgumentError, DTypeError, OutOfMemoryError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { DataArray } from '../../base/tensor.js';
import type { OnnxNode } from '../read/model.js';
import type { Make, OnnxDType, Value } from '../read/value.js';
import { type Attributes, invalid, type Operator } from './operator.js';
import { record } from './record.js';
import { elementBytes, inArray, sizeOf } from './storage.js';

const floats = 'float32 float64 float16 bfloat16';
const integers = 'int32 uint32 int64 uint64 int8 uint8';

/** @internal The types that an input may have, by the kind that a row states. */
export const kinds: Readonly<Record<string, string>> = {
  float: floats,
  number: `${floats} ${integers}`,
  any: `${floats} ${integers} bool`,
  index: 'int64 int32',
  quantized: 'uint8 int8 int32',
  ranged: `${floats} int32`,
  byte: 'uint8 int8',
  signed: `${floats} int32 int64 int8`,
  half: 'float32 float16 bfloat16',
  mask: 'float32 float16 bfloat16 bool',
};

/** The newest opset of ONNX that is known. */
const newest = 26;

/** The most bytes of a result. */
const mostBytes = 2 ** 31;

/** @internal Computes the results of a node whose inputs have been checked. */
export type Compute = (inputs: readonly Value[], make: Make) => Value | Value[];

/** @internal An operator. */
export interface Row extends Partial<Pick<Operator, 'commutes' | 'isShared' | 'link'>> {
  /** Its key, and `@9` if it begins at opset 9. Default: 6. With a domain it begins at opset 1. */
  readonly name: string;
  /**
   * Each input as `name:kind`. The kind is one of `kinds`, the name of a type, `same` or `first`.
   * `same` is the type of the input before it, and `first` the type of the first input. `kind?` may
   * be absent. `@13` marks an input that the operator has from opset 13 on. A last input `kind*`
   * stands for one or more of the same type. After the inputs, `> 3` stands for up to 3 outputs;
   * default: 1.
   */
  readonly inputs: string;
  /**
   * How many of the first inputs the first result may overwrite. After the operator has written an
   * index of the result, it must not read this index of these inputs. Default: 0.
   */
  readonly overwrites?: number;
  /** Reads the attributes. Inputs that may be absent are undefined. */
  readonly compile: (attributes: Attributes, opset: number, node: OnnxNode) => Compute;
}

/** @internal Makes the key and the operator of a row. */
export function define(row: Row): [key: string, operator: Operator] {
  const { name, inputs, commutes = false, isShared, link } = row;
  const [key, from = 6] = name.split('@') as [string, string?];
  const [, outputs = 1] = inputs.split(' > ') as [string, string?];
  return [
    key,
    {
      opsets: key.includes('.') ? [1, 1] : [Number(from), newest],
      outputs: Number(outputs),
      commutes,
      isShared,
      link,
      compile(attributes, opset, node) {
        const compute = row.compile(attributes, opset, node);
        attributes.end();
        const parameters = parametersOf(row, opset, node);
        return (values, make) => {
          checkTypes(parameters, values);
          let over = values.slice(0, row.overwrites ?? 0) as Value[];
          return compute(values as readonly Value[], (dtype, shape) => {
            checkSize(dtype, shape);
            const inputs = over;
            over = [];
            return make(dtype, shape, inputs);
          });
        };
      },
    },
  ];
}

interface Parameter {
  readonly name: string;
  readonly kind: string;
  readonly types: readonly string[];
}

/** The inputs of a node, as its row states them. Throws if it has other ones. */
function parametersOf(row: Row, opset: number, node: OnnxNode): Parameter[] {
  const { inputs } = node;
  const [takes = ''] = row.inputs.split(' > ');
  const parameters = takes
    .split(' ')
    .filter((each) => each && !(opset < Number(each.split('@')[1])));
  if (takes.endsWith('*')) while (parameters.length < inputs.length) parameters.push('inputs:same');
  if (
    inputs.length > parameters.length ||
    parameters.some((each, i) => !each.includes('?') && !inputs[i])
  )
    throw invalid(
      node,
      `has ${inputs.filter(Boolean).length} inputs; it must have ${shown(parameters)}`,
    );
  return parameters.map((each) => {
    const [name, kind] = each.split(/\W/) as [string, string];
    return { name, kind, types: (kinds[kind] ?? kind).split(' ') };
  });
}

function checkTypes(
  parameters: readonly Parameter[],
  values: readonly (Value | undefined)[],
): void {
  let before = values[0]?.dtype as string;
  parameters.forEach(({ name, kind, types }, i) => {
    const dtype = values[i]?.dtype;
    if (!dtype) return;
    const same = kind === 'same' ? before : kind === 'first' ? values[0]?.dtype : undefined;
    if (same ? dtype !== same : !types.includes(dtype))
      refuse(DTypeError, name, `has dtype ${dtype}`, same ?? types.join(' or '));
    before = dtype;
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

/** @internal Throws an error about the shape of an input, unless it is right. */
export function expectShape(
  isRight: boolean,
  name: string,
  shape: readonly number[],
  wanted: string,
): void {
  if (!isRight) refuse(ShapeError, name, `has shape ${shown(shape)}`, wanted);
}

/** @internal Throws if a result is too large, before there is memory for it. */
export function checkSize(dtype: OnnxDType, shape: readonly number[]): void {
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

/** @internal A list of whole numbers. */
export const listed = (list: readonly number[]): Value => ({
  dtype: 'int64',
  shape: [list.length],
  data: BigInt64Array.from(list, BigInt),
});

/** @internal The array that operators compute on: it may also be of another class. */
export type Numbers = Float32Array;

/** @internal Whether the elements are bigints. */
export const isBig = (dtype: OnnxDType): boolean => dtype.endsWith('int64');

/** @internal */
export const isFloat = (dtype: OnnxDType): boolean => dtype.includes('float');

const isHalf = (dtype: OnnxDType): boolean => dtype.endsWith('float16');

/** @internal The elements in another type. */
export function cast(x: Value, make: Make, to: OnnxDType): Value {
  const { dtype, shape } = x;
  if (dtype === to) return x;
  return computed(make, to, shape, [x], { name: to === 'bool' ? 'CastToBool' : 'Cast' });
}

/**
 * @internal A result whose elements JavaScript computes, by their index.
 * @param wide the type of the elements, which are then cast. Default: the type of the result, or
 * float32 for types of 16 bits
 */
export function filled(
  make: Make,
  dtype: OnnxDType,
  shape: readonly number[],
  f: (index: number) => number,
  wide = dtype,
): Value {
  const y = make(dtype, shape);
  const own = isHalf(wide) ? 'float32' : wide;
  const to = own === dtype ? y : inArray(own, shape);
  const data = to.data as Numbers;
  for (let i = 0; i < data.length; ++i) data[i] = f(i);
  if (to !== y) recordForm({ name: 'Cast' }, [to, y]);
  return y;
}

/** @internal A value of one element. */
export const scalar = (dtype: OnnxDType, value: number): Value =>
  cast({ dtype: 'float64', shape: [], data: Float64Array.of(value) }, inArray, dtype);

/** @internal Elements for computing: elements of 16 bits as a new array of float32. */
export const widened = (x: Value): Numbers =>
  (isHalf(x.dtype) ? cast(x, inArray, 'float32') : x).data as Numbers;

/** @internal The element of a scalar, which may be a bigint. */
export function elementOf(x: Value, name: string): number {
  const { length, 0: element } = widened(x);
  if (length === 1) return element as number;
  return refuse(ShapeError, name, `has ${length} elements`, 'a scalar');
}

/** @internal The step that computes a result: see `record`. */
export interface StepForm {
  /** The operator in src/nn/. It takes all types that the row of the operator allows. */
  readonly name: string;
  /** Default: the elements of all tensors, one by one. */
  readonly dims?: readonly number[];
  /** The strides of each input, and then of the result. */
  readonly strides?: readonly (readonly number[])[];
  readonly attributes?: readonly number[] | undefined;
}

/** @internal Makes a result by a step. */
export function computed(
  make: Make,
  dtype: OnnxDType,
  shape: readonly number[],
  inputs: readonly Value[],
  form: StepForm,
): Value {
  const y = make(dtype, shape);
  recordForm(form, [...inputs, y]);
  return y;
}

/** @internal Records a step: the inputs, and then the results. */
export function recordForm(form: StepForm, values: readonly Value[], results = 1): void {
  // A page may give Object.prototype the same names.
  const { name, dims, strides, attributes } = { __proto__: null, ...form } as StepForm;
  const along = dims ?? [sizeOf((values.at(-1) as Value).shape)];
  const tensors = values.map((value, i) => ({ value, strides: strides?.[i] ?? [1], start: 0 }));
  record(name, along, tensors, attributes, results);
}

/** @internal Broadcasts the inputs, and computes each element by a step. */
export function broadcasted(
  make: Make,
  name: string,
  inputs: readonly Value[],
  dtype = (inputs[0] as Value).dtype,
  attributes: readonly number[] = [],
): Value {
  const dims = broadcast(...inputs.map(({ shape }) => shape));
  const strides = [...inputs.map(({ shape }) => stridesIn(dims, shape)), contiguousStrides(dims)];
  return computed(make, dtype, dims, inputs, { name, dims, strides, attributes });
}

/**
 * Calls back for each run of elements along the innermost axis: with the index of the first one and
 * the step in each operand. Axes are joined if all operands allow it.
 */
function walk(
  shape: readonly number[],
  strides: readonly (readonly number[])[],
  body: (length: number, at: readonly number[], steps: readonly number[]) => void,
  starts: readonly number[],
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

/** Elements, of which some classes have bigints. */
type Words = Int32Array;

/** Elements as whole numbers of their size, whose copies keep all bits. */
function wordsOf(data: DataArray): Words {
  const { BYTES_PER_ELEMENT: bytes, buffer, byteOffset, length } = data;
  const classes = { 1: Uint8Array, 2: Uint16Array, 4: Int32Array, 8: BigInt64Array };
  const Words = classes[bytes as keyof typeof classes];
  return new Words(buffer as ArrayBuffer, byteOffset, length) as Words;
}

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
  const [y, x] = [wordsOf(to.data), wordsOf(from.data)];
  walk(
    shape,
    [toStrides, fromStrides],
    (length, [q, p], [t, s]) => {
      move(y, x, length, q as number, p as number, t as number, s as number);
    },
    [toStart, fromStart],
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

/**
 * @internal As `broadcasted`, but overwrites y if the result has its shape.
 * @param y a value that the operator has made
 */
export function accumulated(make: Make, name: string, y: Value, x: Value): Value {
  const { shape } = y;
  const dims = broadcast(shape, x.shape);
  if (shown(dims) !== shown(shape)) return broadcasted(make, name, [y, x]);
  const own = contiguousStrides(shape);
  recordForm({ name, dims, strides: [own, stridesIn(dims, x.shape), own] }, [y, x, y]);
  return y;
}

/** @internal A value whose elements repeat, so that it has a shape to which it broadcasts. */
export const spread = (make: Make, x: Value, shape: readonly number[]): Value =>
  picked(make, x, shape, stridesIn(shape, x.shape));

/** @internal A value with the axes of another one in another order. */
export function transposed(make: Make, x: Value, perm: readonly number[]): Value {
  const along = (list: readonly number[]) => perm.map((axis) => list[axis] as number);
  return picked(make, x, along(x.shape), along(contiguousStrides(x.shape)));
}

/** Copies a run of words. */
function move(
  y: Words,
  x: Words,
  length: number,
  to: number,
  from: number,
  toStep: number,
  fromStep: number,
): void {
  if (length > 24 && toStep === 1 && fromStep === 1) y.set(x.subarray(from, from + length), to);
  else for (let i = 0; i < length; ++i, to += toStep, from += fromStep) y[to] = x[from] as number;
}
