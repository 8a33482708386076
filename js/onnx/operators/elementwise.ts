/** Operators that compute each element of the result from one element of each input. */
import { DTypeError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { OnnxNode } from '../read/model.js';
import { typeOf } from '../read/tensors.js';
import type { Make, OnnxDType, Value } from '../read/value.js';
import {
  broadcast,
  type Compute,
  computed,
  isBig,
  type Numbers,
  refuse,
  type Row,
  type StepForm,
  stridesIn,
  walk,
  widened,
} from './define.js';
import { type Attributes, invalid, type Link, type NumberOf, unsupported } from './operator.js';
import { inArray } from './storage.js';

/** @internal */
export const isFloat = (dtype: OnnxDType) => dtype.includes('float');

/** @internal A function of elements, which may be bigints. */
export type Scalar = (a: number, b: number, c: number) => number;

/** @internal */
export function map(y: Numbers, x: Numbers, f: (x: number) => number): void {
  for (let i = 0; i < y.length; ++i) y[i] = f(x[i] as number);
}

interface Unary {
  /** The kind of the input. Default: `'float'`. */
  readonly kind?: string;
  /** Without it, only src/nn/ computes the function. */
  readonly f?: (x: number) => number;
  /** The step. Default: the operator of the same name. */
  readonly formOf?: (attributes: Attributes) => StepForm;
}

/** @internal A row of a function of one number. */
export function unary(name: string, { kind = 'float', f, formOf }: Unary = {}): Row {
  return {
    name,
    inputs: `X:${kind}`,
    overwrites: 1,
    folds: f !== undefined,
    compile: (attributes) => {
      const form = formOf?.(attributes) ?? { name: name.split('@')[0] as string };
      return ([x], make) => {
        const { dtype, shape } = x as Value;
        return computed(make, dtype, shape, [x as Value], form, f && ((y, x) => map(y, x, f)));
      };
    },
  };
}

/**
 * @internal Broadcasts the inputs, and calls a function for each element.
 *
 * @param name the name of the step
 * @param attributes the attributes of the step
 */
export function broadcasted(
  make: Make,
  dtype: OnnxDType,
  inputs: readonly Value[],
  f: Scalar,
  name?: string,
  attributes?: readonly number[],
): Value {
  const shape = broadcast(...inputs.map(({ shape }) => shape));
  const own = contiguousStrides(shape);
  const along = inputs.map((input) => stridesIn(shape, input.shape));
  const strides = [...along, own];
  const form = name === undefined ? undefined : { name, dims: shape, strides, attributes };
  return computed(make, dtype, shape, inputs, form, (y, a, b, c = a) =>
    walk(shape, [own, ...along], (length, at, steps) => {
      const [start, p, q, r = p] = at as [number, number, number];
      const [, s, t, u = s] = steps as [number, number, number];
      for (let i = 0; i < length; ++i)
        y[start + i] = f(a[p + i * s] as number, b[q + i * t] as number, c[r + i * u] as number);
    }),
  );
}

/** @internal A value of one element. */
export const scalar = (dtype: OnnxDType, value: number): Value =>
  computed(inArray, dtype, [], [], undefined, (y) => y.fill(value));

/** @internal */
export const scaleAndShift: Scalar = (x, factor, shift) => x * factor + shift;

/** @internal */
export const sum: Scalar = (a, b) => a + b;
const product: Scalar = (a, b) => a * b;
/** @internal The array that stores the integers truncates and wraps them. */
export const wrapped = (a: number, b: number) => (typeof a === 'number' ? Math.imul(a, b) : a * b);

/** @param f computes floating point, and integers without `ofIntegers` */
function arithmetic(name: string, fields: Partial<Row>, f: Scalar, ofIntegers = f): Row {
  const compute: Compute = (inputs, make) => {
    const { dtype } = inputs[0] as Value;
    return broadcasted(make, dtype, inputs, isFloat(dtype) ? f : ofIntegers, name);
  };
  return {
    name: `${name}@7`,
    inputs: 'A:number B:same',
    overwrites: 2,
    ...fields,
    compile: () => compute,
  };
}

/** The call of a product multiplies by the other input. */
const factor =
  (inverse: (x: number, at: number) => number): Row['link'] =>
  (_, at, numberOf) => ({ kind: 'alpha', alpha: inverse(numberOf(1 - at) ?? NaN, at) });

/** 1 / x, if multiplication by 1 / x and division by x always give the same bits. Otherwise NaN. */
function inverse(x: number, at: number): number {
  const exponent = Math.log2(Math.abs(x));
  return at === 0 && Number.isInteger(exponent) && Math.abs(exponent) < 100 ? 1 / x : NaN;
}

/** As in IEEE 754, 1 to any power is 1, and -1 to an infinite power is 1. */
const power: Scalar = (a, b) =>
  a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : Math.pow(a, b);

/**
 * As in ONNX Runtime, powers of integers wrap if the exponent is a single 2 or 3. Other powers of
 * integers are computed in float64.
 */
const pow: Compute = (inputs, make) => {
  const [x, exponent] = inputs as [Value, Value];
  const { dtype } = x;
  const { length, 0: first } = widened(exponent);
  const only = length === 1 ? Number(first) : NaN;
  if (only === 2 || (only === 3 && !isFloat(dtype))) {
    const square = isFloat(dtype) ? (v: number) => v * v : (v: number) => wrapped(v, v);
    const f = only === 2 ? square : (v: number) => wrapped(square(v), v);
    const form = { name: only === 2 ? 'Square' : 'Cube' };
    const shape = broadcast(x.shape, exponent.shape);
    return computed(make, dtype, shape, [x], form, (y, x) => map(y, x, f));
  }
  if (isFloat(dtype)) {
    const to = isFloat(exponent.dtype) ? exponent : cast(exponent, inArray, 'float64');
    return broadcasted(make, dtype, [x, to], power);
  }
  const wide = inputs.map((value) => cast(value, inArray, 'float64'));
  return cast(broadcasted(inArray, 'float64', wide, power), make, dtype);
};

/**
 * @internal As in the calls of products, x if it equals a bound: -0 stays -0 if the bounds admit 0.
 */
export function clipped(
  x: Value,
  make: Make,
  least: number,
  most: number,
  form: StepForm | undefined,
): Value {
  const f = (v: number) => {
    const w = v < least ? least : v;
    return w > most ? most : w;
  };
  return computed(make, x.dtype, x.shape, [x], form, (y, x) => map(y, x, f));
}

const relu: Compute = ([x], make) => {
  const zero = (isBig((x as Value).dtype) ? 0n : 0) as number;
  return clipped(x as Value, make, zero, Infinity, { name: 'Relu' });
};

/** Whether float64 has a bound, which may be a bigint. */
const isExactBound = (bound: number | bigint): boolean =>
  typeof bound === 'number' || Number.isSafeInteger(Number(bound));

function clip(attributes: Attributes, opset: number): Compute {
  const isOld = opset < 11;
  const fixed = isOld
    ? [attributes.float('min', -Infinity), attributes.float('max', Infinity)]
    : [-Infinity, Infinity];
  return ([x, ...bounds], make) => {
    const { dtype } = x as Value;
    if (isOld && !isFloat(dtype))
      refuse(DTypeError, 'input', `has dtype ${dtype}`, 'floating point');
    const given = fixed.map((absent, i) => {
      const bound = bounds[i];
      if (!bound) return absent;
      const { length, 0: value } = widened(bound);
      if (length === 1) return value === value ? value : absent; // NaN is not a bound
      return refuse(ShapeError, i ? 'max' : 'min', `has ${length} elements`, 'a scalar');
    }) as [number, number];
    const form = given.every(isExactBound)
      ? { name: 'Clip', attributes: given.map(Number) }
      : undefined;
    return clipped(x as Value, make, ...given, form);
  };
}

/** The bounds of a Clip, if they are constants that a call takes. */
function clipLink(
  { inputs, attributes }: OnnxNode,
  at: number,
  numberOf: NumberOf,
): Link | undefined {
  const boundOf = (index: number, name: string, absent: number) => {
    const attribute = attributes.get(name);
    if (typeof attribute === 'number') return attribute;
    return inputs[index] ? (numberOf(index) ?? NaN) : absent;
  };
  const min = boundOf(1, 'min', -Infinity);
  const max = boundOf(2, 'max', Infinity);
  return at === 0 && min <= max ? { kind: 'activation', activation: [min, max] } : undefined;
}

function gelu(attributes: Attributes): StepForm {
  const approximate = attributes.string('approximate', 'none');
  if (!['none', 'tanh'].includes(approximate))
    throw invalid(attributes.node, 'has an unknown approximate; it must be none or tanh');
  return { name: approximate === 'none' ? 'Gelu' : 'FastGelu' };
}

const fastGelu: Compute = ([x, bias], make) => {
  let input = x as Value;
  if (bias) input = broadcasted(make, input.dtype, [input, bias], sum, 'Add');
  return computed(make, input.dtype, input.shape, [input], { name: 'FastGelu' });
};

/** @internal The elements in another type. */
export function cast(x: Value, make: Make, to: OnnxDType): Value {
  const { dtype, shape } = x;
  if (dtype === to) return x;
  const form = { name: to === 'bool' ? 'CastToBool' : 'Cast' };
  return computed(make, to, shape, [x], form, (y, x) => convert(y, x, dtype, to));
}

/** @internal Writes elements in another type. */
export function convert(y: Numbers, x: Numbers, from: OnnxDType, to: OnnxDType): void {
  const toBig = isBig(to);
  if (to === 'bool') return map(y, x, (v) => (v == 0 ? 0 : 1)); // also of bigints
  if (toBig === isBig(from) && (isFloat(to) || !isFloat(from))) return y.set(x);
  if (isBig(from)) return map(y, x, (v) => Number(isFloat(to) ? v : BigInt.asIntN(32, v as never)));
  if (!isFloat(from)) return map(y, x, BigInt as never);
  // ONNX does not define what numbers out of range become: they saturate.
  const isSigned = to.startsWith('i') ? 1 : 0;
  const limit = 2 ** (8 * y.BYTES_PER_ELEMENT - isSigned);
  const whole = (toBig ? BigInt : Number) as (v: number) => number;
  const most = (toBig ? BigInt(limit) - 1n : limit - 1) as number;
  map(y, x, (v) => (v >= limit ? most : whole(Math.trunc(Math.max(v || 0, -limit * isSigned)))));
}

function compileCast(attributes: Attributes, _: number, node: OnnxNode): Compute {
  attributes.ignore('saturate@19', 'round_mode@24'); // of types that wgemm has not
  const number = attributes.int('to');
  const type = typeOf(number);
  if (type.length === 1)
    throw unsupported(node, `casts to ${number}, the type ${type[0]}, which wgemm does not have`);
  return ([x], make) => cast(x as Value, make, type[0]);
}

function castLike(attributes: Attributes): Compute {
  attributes.ignore('saturate@19', 'round_mode@24');
  return ([x, like], make) => cast(x as Value, make, (like as Value).dtype);
}

const where: Compute = (inputs, make) =>
  broadcasted(make, (inputs[1] as Value).dtype, inputs, (flag, a, b) => (flag ? a : b), 'Where');

/** @internal The operators of this file. */
export const elementwise: readonly Row[] = [
  unary('LeakyRelu', {
    formOf: (attributes) => ({
      name: 'LeakyRelu',
      attributes: [attributes.float('alpha', Math.fround(0.01))],
    }),
  }),
  unary('Sigmoid'),
  unary('Tanh'),
  unary('Neg', { kind: 'signed', f: (x) => -x }),
  unary('Sqrt', { f: Math.sqrt }),
  unary('Erf@9'),
  unary('Gelu@20', { formOf: gelu }),
  unary('com.microsoft.Gelu', { formOf: () => ({ name: 'Gelu' }) }),
  {
    name: 'com.microsoft.FastGelu',
    inputs: 'X:float bias:same?',
    overwrites: 2,
    folds: false,
    compile: () => fastGelu,
  },
  {
    name: 'Relu',
    inputs: 'X:number',
    overwrites: 1,
    link: () => ({ kind: 'activation', activation: 'relu' }),
    compile: () => relu,
  },
  {
    name: 'Clip',
    inputs: 'input:number min:same?@11 max:same?@11',
    overwrites: 1,
    link: clipLink,
    compile: clip,
  },
  arithmetic('Add', { link: () => ({ kind: 'bias' }), commutes: true }, sum),
  arithmetic('Sub', {}, (a, b) => a - b),
  arithmetic('Mul', { link: factor((x) => x), commutes: true }, product, wrapped),
  // ONNX does not define division by 0: it is 0 here
  arithmetic(
    'Div',
    { link: factor(inverse) },
    (a, b) => a / b,
    (a, b) => (b ? a / b : b),
  ),
  { name: 'Pow@7', inputs: 'X:number Y:number', overwrites: 2, compile: () => pow },
  { name: 'Cast', inputs: 'input:any', compile: compileCast },
  { name: 'CastLike@15', inputs: 'input:any target_type:any', compile: castLike },
  {
    name: 'Where@9',
    inputs: 'condition:bool X:any Y:same',
    overwrites: 3,
    compile: () => where,
  },
];
