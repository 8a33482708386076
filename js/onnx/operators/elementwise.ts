/** Operators that compute each element of the result from one element of each input. */
import { DTypeError } from '../../base/errors.js';
import type { OnnxNode } from '../read/model.js';
import { typeOf } from '../read/tensors.js';
import type { Value } from '../read/value.js';
import {
  broadcast,
  broadcasted,
  cast,
  type Compute,
  computed,
  elementOf,
  filled,
  isFloat,
  refuse,
  reshaped,
  type Row,
  spread,
  type StepForm,
  widened,
} from './define.js';
import { type Attributes, invalid, type Link, type NumberOf, unsupported } from './operator.js';
import { inArray } from './storage.js';

/** @internal A row of a function of one number. `formOf`: the step. Default: of the same name. */
export const unary = (
  name: string,
  kind = 'float',
  formOf: (attributes: Attributes) => StepForm = () => ({ name: name.split('@')[0] as string }),
): Row => ({
  name,
  inputs: `X:${kind}`,
  overwrites: 1,
  compile(attributes) {
    const form = formOf(attributes);
    return ([x], make) => {
      const { dtype, shape } = x as Value;
      return computed(make, dtype, shape, [x as Value], form);
    };
  },
});

const arithmetic = (name: string, fields: Partial<Row> = {}): Row => ({
  name: `${name}@7`,
  inputs: 'A:number B:same',
  overwrites: 2,
  ...fields,
  compile: () => (inputs, make) => broadcasted(make, name, inputs),
});

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
const power = (a: number, b: number): number =>
  a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : Math.pow(a, b);

/**
 * As in ONNX Runtime, powers of integers wrap if the exponent is a single 2 or 3. JavaScript
 * computes other powers in float64.
 */
const pow: Compute = (inputs, make) => {
  const [x, exponent] = inputs as [Value, Value];
  const { dtype } = x;
  const { length, 0: first } = widened(exponent);
  const only = length === 1 ? Number(first) : NaN;
  const shape = broadcast(x.shape, exponent.shape);
  if (only === 2 || (only === 3 && !isFloat(dtype)))
    return computed(make, dtype, shape, [x], { name: only === 2 ? 'Square' : 'Cube' });
  const [bases, exponents] = inputs.map((value) =>
    Float64Array.from(widened(spread(inArray, value, shape)), Number),
  ) as [Float64Array, Float64Array];
  return filled(
    make,
    dtype,
    shape,
    (i) => power(bases[i] as number, exponents[i] as number),
    isFloat(dtype) ? dtype : 'float64',
  );
};

/** Whether float64 has a bound, which may be a bigint. */
const isExactBound = (bound: number | bigint): boolean =>
  typeof bound === 'number' || Number.isSafeInteger(Number(bound));

/** As in the calls of products, x if it equals a bound: -0 stays -0 if the bounds admit 0. */
function clip(attributes: Attributes, opset: number): Compute {
  const isOld = opset < 11;
  const fixed = isOld
    ? [attributes.float('min', -Infinity), attributes.float('max', Infinity)]
    : [-Infinity, Infinity];
  return ([x, ...bounds], make) => {
    const { dtype, shape } = x as Value;
    if (isOld && !isFloat(dtype))
      refuse(DTypeError, 'input', `has dtype ${dtype}`, 'floating point');
    const given = fixed.map((absent, i) => {
      const bound = bounds[i] ? elementOf(bounds[i], i ? 'max' : 'min') : absent;
      return bound === bound ? bound : absent; // NaN is not a bound
    });
    if (given.every(isExactBound))
      return computed(make, dtype, shape, [x as Value], {
        name: 'Clip',
        attributes: given.map(Number),
      });
    return ['Max', 'Min'].reduce((y, name, i) => {
      const bound = bounds[i];
      return bound ? broadcasted(make, name, [y, reshaped(bound, [])]) : y;
    }, x as Value);
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
  const input = bias ? broadcasted(make, 'Add', [x as Value, bias]) : (x as Value);
  return computed(make, input.dtype, input.shape, [input], { name: 'FastGelu' });
};

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
  broadcasted(make, 'Where', inputs, (inputs[1] as Value).dtype);

/** @internal The operators of this file. */
export const elementwise: readonly Row[] = [
  unary('LeakyRelu', 'float', (attributes) => ({
    name: 'LeakyRelu',
    attributes: [attributes.float('alpha', Math.fround(0.01))],
  })),
  ...['Sigmoid', 'Tanh', 'Sqrt', 'Erf@9'].map((name) => unary(name)),
  unary('Neg', 'signed'),
  unary('Gelu@20', 'float', gelu),
  unary('com.microsoft.Gelu', 'float', () => ({ name: 'Gelu' })),
  {
    name: 'com.microsoft.FastGelu',
    inputs: 'X:float bias:same?',
    overwrites: 2,
    compile: () => fastGelu,
  },
  {
    ...unary('Relu', 'number'),
    link: () => ({ kind: 'activation', activation: 'relu' }),
  },
  {
    name: 'Clip',
    inputs: 'input:number min:same?@11 max:same?@11',
    overwrites: 1,
    link: clipLink,
    compile: clip,
  },
  arithmetic('Add', { link: () => ({ kind: 'bias' }), commutes: true }),
  arithmetic('Sub'),
  arithmetic('Mul', { link: factor((x) => x), commutes: true }),
  arithmetic('Div', { link: factor(inverse) }), // ONNX does not define division by 0: it is 0 here
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
