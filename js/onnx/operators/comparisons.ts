/** Operators that compare two elements, or select one of them, and the remainder of a division. */
import type { Value } from '../read/value.js';
import { abs } from './activations.js';
import type { Compute, Row } from './define.js';
import { broadcasted, isFloat, type Scalar, scalar, sum } from './elementwise.js';
import type { Attributes } from './operator.js';

/** The relations of a to b that make a comparison true. Their sum is the attribute of the step. */
const less = 1;
const equal = 2;
const greater = 4;
const unordered = 8;

const compared = (relations: number): Compute => {
  const f: Scalar = (a, b) => (relations >> (a < b ? 0 : a === b ? 1 : a > b ? 2 : 3)) & 1;
  return (inputs, make) => broadcasted(make, 'bool', inputs, f, 'Compare', [relations]);
};

const comparison = (name: string, relations: number, inputs = 'A:number B:same'): Row => ({
  name,
  inputs,
  compile: () => compared(relations),
});

const not: Compute = ([x], make) => compared(equal)([x as Value, scalar('bool', 0)], make);

const isNaN: Compute = ([x], make) => compared(unordered)([x as Value, x as Value], make);

/** Compares with an infinity. If both count, compares the magnitude. */
function isInf(attributes: Attributes): Compute {
  const [negative, positive] = ['negative', 'positive'].map((sign) =>
    attributes.flag(`detect_${sign}`, true),
  );
  return (inputs, make) => {
    const x = (negative && positive ? abs(inputs, make) : inputs[0]) as Value;
    const infinity = scalar(x.dtype, positive ? Infinity : -Infinity);
    return compared(negative || positive ? equal : 0)([x, infinity], make);
  };
}

/** Combines any number of inputs of one type, from the first to the last. */
function combined(name: string, kind: string, f: Scalar, step = name): Row {
  return {
    name,
    inputs: `data_0:${kind}*`,
    compile: () => (inputs, make) =>
      inputs.reduce((a, b) => broadcasted(make, a.dtype, [a, b], f, step)),
  };
}

/** `Min` and `Max` of booleans. */
const logical = (name: string, f: Scalar, step: string): Row => ({
  name: `${name}@7`,
  inputs: 'A:bool B:bool',
  overwrites: 2,
  compile: () => (inputs, make) => broadcasted(make, 'bool', inputs, f, step),
});

const mean: Compute = (inputs, make) => {
  const total = inputs.reduce((a, b) => broadcasted(make, a.dtype, [a, b], sum, 'Add'));
  const count = scalar(total.dtype, inputs.length);
  return broadcasted(make, total.dtype, [total, count], (a, b) => a / b, 'Div');
};

/** ONNX does not define the remainder of an integer by 0: it is 0 here. */
function mod(attributes: Attributes): Compute {
  const isC = attributes.flag('fmod', false);
  return (inputs, make) => {
    const { dtype } = inputs[0] as Value;
    const f: Scalar = (a, b) => {
      const rest = b || isFloat(dtype) ? a % b : b;
      return !isC && rest && rest < 0 !== b < 0 ? rest + b : rest;
    };
    return broadcasted(make, dtype, inputs, f, 'Mod', [isC ? 1 : 0]);
  };
}

/** @internal The operators of this file. */
export const comparisons: readonly Row[] = [
  comparison('Equal@7', equal, 'A:any B:same'),
  comparison('Less@7', less),
  comparison('LessOrEqual@12', less + equal),
  comparison('Greater@7', greater),
  comparison('GreaterOrEqual@12', greater + equal),
  comparison('Xor@7', less + greater, 'A:bool B:bool'),
  logical('And', (a, b) => a & b, 'Min'),
  logical('Or', (a, b) => a | b, 'Max'),
  { name: 'Not@1', inputs: 'X:bool', compile: () => not },
  { name: 'IsNaN@9', inputs: 'X:float', compile: () => isNaN },
  { name: 'IsInf@10', inputs: 'X:float', compile: isInf },
  combined('Min', 'number', (a, b) => (b < a || b !== b ? b : a)),
  combined('Max', 'number', (a, b) => (a < b || b !== b ? b : a)),
  combined('Sum', 'float', sum, 'Add'),
  { name: 'Mean', inputs: 'data_0:float*', compile: () => mean },
  { name: 'Mod@10', inputs: 'A:number B:same', overwrites: 2, compile: mod },
];
