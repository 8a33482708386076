/** Functions of one number, in float64 with the accuracy of float32: in float32 at most 1 ulp off. */
import { large } from './define.js';

const tablesOf = (length: number, power: (i: number) => number) =>
  Float64Array.from({ length }, (_, i) => 2 ** power(i));
const fractions = tablesOf(32, (i) => i / 32);
const wholes = tablesOf(306, (i) => i - 153);

/** @internal e^x. Beyond e^-105 and e^105 it is 0 or Infinity. */
export function exp(x: number): number {
  if (x > 105) return Infinity;
  if (x < -105) return 0;
  const k = x * (32 / Math.LN2) + large - large;
  const r = x - k * (Math.LN2 / 32);
  const i = k | 0;
  return (
    (wholes[(i >> 5) + 153] as number) *
    (fractions[i & 31] as number) *
    (1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r / 24))))
  );
}

/** @internal tanh(x) */
export function tanh(x: number): number {
  const s = x * x;
  return s < 4e-4 ? x - x * s * (1 / 3 - s * (2 / 15)) : 1 - 2 / (exp(2 * x) + 1);
}

/** @internal The error function in float64: the series of Maclaurin, without cancellation. */
export function exactErf(x: number): number {
  const s = x * x;
  if (s > 36) return Math.sign(x);
  let sum = x;
  let term = x;
  for (let n = 3; Math.abs(term) > Math.abs(sum) * 2 ** -54; n += 2) sum += term *= (2 * s) / n;
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-s) * sum;
}

/** @internal The error function: x times a quotient of polynomials in x^2, by a minimax fit. */
export function erf(x: number): number {
  const v = x > 3.93 ? 3.93 : x < -3.93 ? -3.93 : x;
  const s = v * v;
  const p =
    1.128379146 +
    s *
      (0.1907733375 +
        s * (0.05278863523 + s * (0.003779083429 + s * (0.0002847838602 + s * 2.041883583e-6))));
  const q =
    1 +
    s *
      (0.5024011922 +
        s * (0.1142529442 + s * (0.01499640025 + s * (0.001165060837 + s * 3.800187557e-5))));
  return (v * p) / q;
}
