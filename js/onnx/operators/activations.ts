/** Functions of one number, and PRelu, whose slope is a tensor. */
import type { Value } from '../read/value.js';
import {
  broadcast,
  broadcasted,
  type Compute,
  computed,
  isFloat,
  type Row,
  scalar,
  spread,
} from './define.js';
import { unary } from './elementwise.js';

/** A function with attributes of these defaults, in the order of the step. */
const activation = (name: string, defaults: Readonly<Record<string, number>>): Row =>
  unary(name, 'float', (attributes) => ({
    name: name.replace(/.*\.|@.*/g, ''),
    attributes: Object.entries(defaults).map(([key, value]) =>
      attributes.float(key, Math.fround(value)),
    ),
  }));

/** @internal */
export const abs: Compute = ([x], make) => {
  const { dtype, shape } = x as Value;
  if (dtype.startsWith('u')) return x as Value;
  return computed(make, dtype, shape, [x as Value], { name: 'Abs' });
};

const sign: Compute = ([x], make) => {
  const { dtype, shape } = x as Value;
  const form = isFloat(dtype) ? { name: 'Sign' } : { name: 'Clip', attributes: [-1, 1] };
  return computed(make, dtype, shape, [x as Value], form);
};

const reciprocal: Compute = ([x], make) => {
  const { dtype } = x as Value;
  return broadcasted(make, 'Div', [scalar(dtype, 1), x as Value]);
};

const prelu: Compute = (inputs, make) => {
  const [x, slope] = inputs as [Value, Value];
  return x.dtype.startsWith('u')
    ? spread(make, x, broadcast(x.shape, slope.shape))
    : broadcasted(make, 'PRelu', inputs);
};

/** @internal The operators of this file. */
export const activations: readonly Row[] = [
  { name: 'Abs', inputs: 'X:number', overwrites: 1, compile: () => abs },
  { name: 'Sign@9', inputs: 'input:number', overwrites: 1, compile: () => sign },
  { name: 'Reciprocal', inputs: 'X:float', overwrites: 1, compile: () => reciprocal },
  { name: 'PRelu@7', inputs: 'X:number slope:same', overwrites: 2, compile: () => prelu },
  ...['Floor', 'Ceil', 'Round@11', 'Exp', 'Log', 'Sin@7', 'Cos@7', 'Softplus@1', 'Softsign@1'].map(
    (name) => unary(name),
  ),
  unary('Mish@18'),
  activation('Elu', { alpha: 1 }),
  activation('HardSigmoid', { alpha: 0.2, beta: 0.5 }),
  activation('ThresholdedRelu@10', { alpha: 1 }),
  activation('com.microsoft.QuickGelu', { alpha: 1.702 }),
  unary('HardSwish@14', 'float', () => ({
    name: 'HardSwish',
    attributes: [Math.fround(1 / 6), 0.5],
  })),
];
