/** Functions of one number, with the accuracy of float32 or better. */
const steps = 32;
const tableOf = (length: number, power: (i: number) => number) =>
  Float64Array.from({ length }, (_, i) => 2 ** power(i));
const fractions = tableOf(steps, (i) => i / steps);
const wholes = tableOf(2102, (i) => i - 1077);

/** ln(2) / steps, in two parts: the product of the first one and a step number is exact. */
const high = Math.fround(Math.LN2) / steps;
const low = (Math.LN2 - Math.fround(Math.LN2) + 2.319046813846e-17) / steps;

/** @internal e^x, with the accuracy of float64. It is faster than Math.exp. */
export function exp(x: number): number {
  if (x > 710) return Infinity;
  if (x < -746) return 0;
  const i = (x * (steps / Math.LN2)) | 0;
  const r = x - i * high - i * low;
  const s = r * r;
  return (
    (wholes[(i >> 5) + 1077] as number) *
    (fractions[i & 31] as number) *
    (1 + (r + s * (1 / 2 + r / 6 + s * (1 / 24 + r / 120 + s / 720))))
  );
}

/** @internal tanh(x), within 2^-46 of it */
export function tanh(x: number): number {
  const s = x * x;
  return s < 4e-4
    ? x - x * s * (1 / 3 - s * (2 / 15 - s * (17 / 315 - s * (62 / 2835))))
    : 1 - 2 / (exp(2 * x) + 1);
}

/** @internal The error function in float64: the series of Maclaurin, without cancellation. */
export function exactErf(x: number): number {
  const s = x * x;
  if (s > 36) return Math.sign(x);
  let sum = x;
  let term = x;
  for (let n = 3; Math.abs(term) > Math.abs(sum) * 2 ** -54; n += 2) sum += term *= (2 * s) / n;
  return (2 / Math.sqrt(Math.PI)) * exp(-s) * sum;
}

/** @internal The error function: x times a quotient of polynomials in x^2, by a minimax fit. */
export function erf(x: number): number {
  const s = x * x;
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
  return x > 3.93 ? 1 : x < -3.93 ? -1 : (x * p) / q; // exactly, as Gelu multiplies by the rest
}
