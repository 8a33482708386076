/** Functions of one number, and PRelu, whose slope is a tensor. */
import type { Value } from '../read/value.js';
import { type Compute, computed, isBig, type Row } from './define.js';
import { broadcasted, clipped, isFloat, map, scalar, unary, wrapped } from './elementwise.js';

/** Half to even. */
const round = (x: number): number => {
  const y = Math.round(x);
  return y - x === 0.5 && y % 2 ? y - 1 : y;
};

/** A function with attributes of these defaults, in the order of the step. */
const activation = (name: string, defaults: Readonly<Record<string, number>>): Row =>
  unary(name, {
    formOf: (attributes) => ({
      name: name.replace(/.*\.|@.*/g, ''),
      attributes: Object.entries(defaults).map(([key, value]) =>
        attributes.float(key, Math.fround(value)),
      ),
    }),
  });

const magnitude = (x: number) => (typeof x === 'number' ? Math.abs(x) : x < 0 ? -x : x);

/** @internal */
export const abs: Compute = ([x], make) => {
  const { dtype, shape } = x as Value;
  if (dtype.startsWith('u')) return x as Value;
  return computed(make, dtype, shape, [x as Value], { name: 'Abs' }, (y, x) =>
    map(y, x, magnitude),
  );
};

const sign: Compute = ([x], make) => {
  const { dtype, shape } = x as Value;
  const one = (isBig(dtype) ? 1n : 1) as number;
  if (!isFloat(dtype))
    return clipped(x as Value, make, -one, one, { name: 'Clip', attributes: [-1, 1] });
  return computed(make, dtype, shape, [x as Value], { name: 'Sign' }, (y, x) =>
    map(y, x, (v) => (v > 0 ? 1 : v < 0 ? -1 : v + 0)),
  );
};

const reciprocal: Compute = ([x], make) => {
  const { dtype } = x as Value;
  return broadcasted(make, dtype, [scalar(dtype, 1), x as Value], (a, b) => a / b, 'Div');
};

const prelu: Compute = (inputs, make) => {
  const { dtype } = inputs[0] as Value;
  const product = isFloat(dtype) ? (x: number, slope: number) => x * slope : wrapped;
  const step = dtype.startsWith('u') ? undefined : 'PRelu';
  return broadcasted(make, dtype, inputs, (x, slope) => (x < 0 ? product(x, slope) : x), step);
};

/** @internal The operators of this file. */
export const activations: readonly Row[] = [
  { name: 'Abs', inputs: 'X:number', overwrites: 1, compile: () => abs },
  { name: 'Sign@9', inputs: 'input:number', overwrites: 1, compile: () => sign },
  { name: 'Reciprocal', inputs: 'X:float', overwrites: 1, compile: () => reciprocal },
  { name: 'PRelu@7', inputs: 'X:number slope:same', overwrites: 2, compile: () => prelu },
  unary('Floor', { f: Math.floor }),
  unary('Ceil', { f: Math.ceil }),
  unary('Round@11', { f: round }),
  ...['Exp', 'Log', 'Sin@7', 'Cos@7', 'Softplus@1', 'Softsign@1', 'Mish@18'].map((name) =>
    unary(name),
  ),
  activation('Elu', { alpha: 1 }),
  activation('HardSigmoid', { alpha: 0.2, beta: 0.5 }),
  activation('ThresholdedRelu@10', { alpha: 1 }),
  activation('com.microsoft.QuickGelu', { alpha: 1.702 }),
  unary('HardSwish@14', {
    formOf: () => ({ name: 'HardSwish', attributes: [Math.fround(1 / 6), 0.5] }),
  }),
];
