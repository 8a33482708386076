// Seeded operands, in several distributions.
import { seededRandom } from '../../../examples/random.mjs';
import { arrayOf, elementOf, valueOf } from '../../conformance/elements.mjs';

const exponents = { float64: 40, float32: 20, bfloat16: 20, float16: 5 };

/** How elements are drawn, by name. Sums of positive elements have the largest rounding errors. */
const draws = {
  'of both signs': (next) => 2 * next() - 1,
  positive: (next) => next(),
  'of all sizes': (next, dtype) => {
    const size = 2 ** Math.round((2 * next() - 1) * exponents[dtype]);
    return (next() < 0.5 ? -1 : 1) * size * (1 + next());
  },
};

export const distributions = Object.keys(draws);

/** A tensor { data, shape, dtype }, and its numbers in float64. */
export function draw(seed, dtype, shape, distribution = distributions[0]) {
  const next = seededRandom(seed);
  // 53 bits for float64.
  const fine = () => next() + next() / 2 ** 32;
  const count = shape.reduce((product, size) => product * size, 1);
  const numbers = Float64Array.from({ length: count }, () => draws[distribution](fine, dtype));
  return tensorOf(dtype, shape, numbers);
}

/** Rounds numbers to a type. */
export function tensorOf(dtype, shape, numbers) {
  const is16 = dtype.endsWith('float16');
  const data = is16
    ? Uint16Array.from(numbers, (each) => elementOf(dtype, Math.fround(each)))
    : arrayOf(dtype).from(numbers);
  return { data, shape, dtype, numbers: numbersOf({ data, dtype }) };
}

/** The elements of a tensor, as numbers. */
export const numbersOf = ({ data, dtype }) =>
  data instanceof Uint16Array
    ? Float64Array.from(data, (element) => valueOf(dtype, element))
    : Float64Array.from(data);
