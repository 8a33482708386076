/** Operators that compare two elements, or select one of them, and the remainder of a division. */
import type { Value } from '../read/value.js';
import { abs } from './activations.js';
import { accumulated, broadcasted, type Compute, type Row, scalar } from './define.js';
import type { Attributes } from './operator.js';

/** The relations of a to b that make a comparison true. Their sum is the attribute of the step. */
const less = 1;
const equal = 2;
const greater = 4;
const unordered = 8;

const compared =
  (relations: number): Compute =>
  (inputs, make) =>
    broadcasted(make, 'Compare', inputs, 'bool', [relations]);

/** @internal Whether a is greater than b. */
export const isGreater = compared(greater);

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

/** Combines inputs from the first to the last. */
const joined =
  (step: string): Compute =>
  (inputs, make) =>
    inputs.reduce((a, b, i) =>
      i > 1 ? accumulated(make, step, a, b) : broadcasted(make, step, [a, b]),
    );

/** Any number of inputs of one type. */
const combined = (name: string, kind: string, step = name): Row => ({
  name,
  inputs: `data_0:${kind}*`,
  compile: () => joined(step),
});

/** `Min` and `Max` of booleans. */
const logical = (name: string, step: string): Row => ({
  name: `${name}@7`,
  inputs: 'A:bool B:bool',
  overwrites: 2,
  compile: () => joined(step),
});

const mean: Compute = (inputs, make) => {
  const total = joined('Add')(inputs, make) as Value;
  const count = scalar(total.dtype, inputs.length);
  return inputs.length > 1
    ? accumulated(make, 'Div', total, count)
    : broadcasted(make, 'Div', [total, count]);
};

/** ONNX does not define the remainder of an integer by 0: it is 0 here. */
function mod(attributes: Attributes): Compute {
  const isC = attributes.flag('fmod', false);
  return (inputs, make) => broadcasted(make, 'Mod', inputs, undefined, [isC ? 1 : 0]);
}

/** @internal The operators of this file. */
export const comparisons: readonly Row[] = [
  comparison('Equal@7', equal, 'A:any B:same'),
  comparison('Less@7', less),
  comparison('LessOrEqual@12', less + equal),
  comparison('Greater@7', greater),
  comparison('GreaterOrEqual@12', greater + equal),
  comparison('Xor@7', less + greater, 'A:bool B:bool'),
  logical('And', 'Min'),
  logical('Or', 'Max'),
  { name: 'Not@1', inputs: 'X:bool', compile: () => not },
  { name: 'IsNaN@9', inputs: 'X:float', compile: () => isNaN },
  { name: 'IsInf@10', inputs: 'X:float', compile: isInf },
  combined('Min', 'number'),
  combined('Max', 'number'),
  combined('Sum', 'float', 'Add'),
  { name: 'Mean', inputs: 'data_0:float*', compile: () => mean },
  { name: 'Mod@10', inputs: 'A:number B:same', overwrites: 2, compile: mod },
];
