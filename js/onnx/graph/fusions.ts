/**
 * The fusions: what exporters write out in several nodes, and the operator that computes it in one.
 * Larger ones come first.
 */
import type { OnnxNode } from '../read/model.js';
import type { Value } from '../read/value.js';
import type { Found, Fusion, Pattern } from './match.js';

const either = (...patterns: Pattern[]): Pattern => ({ either: patterns });

/** The mean along the last axis, whose size becomes 1: see `isOfLastAxis`. */
const mean = (x: Pattern): Pattern => either(['ReduceMean', x], ['ReduceMean', x, -1n]);
const centered: Pattern = ['Sub', 'x', mean('x')];
const squares = either(['Pow', centered, 2], ['Mul', centered, centered]);
const normalized: Pattern = ['Div', centered, ['Sqrt', ['Add', mean(squares), 'EPSILON']]];

function isOfLastAxis({ op, inputs, attributes }: OnnxNode): boolean {
  const axes = attributes.get('axes') as readonly number[] | undefined;
  const isLast = inputs.length > 1 || (axes?.length === 1 && axes[0] === -1);
  return op !== 'ReduceMean' || (isLast && attributes.get('keepdims') !== 0);
}

/** @internal Whether a constant is float32, and has few axes. */
export const isFloat = (constant: Value | undefined, mostAxes: number): boolean =>
  constant?.dtype === 'float32' && constant.shape.length <= mostAxes;

const layerNormalization = (pattern: Pattern, ...factors: string[]): Fusion => ({
  pattern,
  becomes: ['LayerNormalization', 'x', ...factors],
  isExact: false, // the mean and the variance are float64
  fits: ({ nodes, constant }) =>
    nodes.every(isOfLastAxis) &&
    factors.every((factor) => isFloat(constant(factor), 1)) &&
    isFloat(constant('EPSILON'), 0),
  attributes: ({ constant }) => ({ epsilon: Number(constant('EPSILON')?.data[0]) }),
});

/** x / 2 times a factor. */
const half = (factor: Pattern): Pattern =>
  either(
    ['Mul', ['Mul', 'x', factor], 0.5],
    ['Mul', ['Mul', 'x', 0.5], factor],
    ['Mul', ['Mul', factor, 0.5], 'x'],
  );
const root = Math.sqrt(2 / Math.PI);
const cube = either(['Pow', 'x', 3], ['Mul', ['Mul', 'x', 'x'], 'x']);

/** Whether the inputs of a product are results of one DynamicQuantizeLinear, in this order. */
function areQuantized({ name, maker }: Found, ...inputs: string[]): boolean {
  const { op, outputs } = maker(inputs[0] as string) ?? {};
  return op === 'DynamicQuantizeLinear' && inputs.every((input, i) => outputs?.[i] === name(input));
}

/** @internal */
export const fusions: readonly Fusion[] = [
  layerNormalization(['Add', ['Mul', normalized, 'GAMMA'], 'BETA'], 'GAMMA', 'BETA'),
  layerNormalization(['Mul', normalized, 'GAMMA'], 'GAMMA'),
  {
    pattern: ['Mul', ['Cast', ['MatMulInteger', 'q', 'W', 'zero', 'ZEROS']], ['Mul', 'scale', 'S']],
    becomes: ['com.microsoft.MatMulIntegerToFloat', 'q', 'W', 'scale', 'S', 'zero', 'ZEROS'],
    isExact: true,
    fits: (found) => {
      const [weights, scales] = [found.constant('W'), found.constant('S')];
      return (
        areQuantized(found, 'q', 'scale', 'zero') &&
        found.nodes.every(({ op, attributes }) => op !== 'Cast' || attributes.get('to') === 1) &&
        weights?.shape.length === 2 &&
        weights.dtype.endsWith('int8') &&
        isFloat(scales, 1) &&
        // The call refuses a product of scales that is not finite. The scale of A is below 2^121.
        (scales?.data as Float32Array).every((scale) => Math.abs(scale) < 64)
      );
    },
  },
  {
    pattern: half([
      'Add',
      ['Erf', either(['Div', 'x', Math.SQRT2], ['Mul', 'x', Math.SQRT1_2])],
      1,
    ]),
    becomes: ['com.microsoft.Gelu', 'x'],
    isExact: false,
  },
  {
    pattern: half([
      'Add',
      [
        'Tanh',
        either(
          ['Mul', ['Add', 'x', ['Mul', cube, 0.044715]], root],
          ['Mul', ['Mul', 'x', root], ['Add', ['Mul', ['Mul', 'x', 0.044715], 'x'], 1]],
        ),
      ],
      1,
    ]),
    becomes: ['com.microsoft.FastGelu', 'x'],
    isExact: false,
  },
];
