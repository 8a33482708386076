// Exact references. Sums and products of float64 carry their errors along, so a dot product is
// exact to 2^-53 of the result and K^2 * 2^-106 of the sum of magnitudes. Functions for float64 are
// computed in whole numbers with 1200 bits after the point.

// --- error-free transformations ------------------------------------------------------------------

/** The error of a rounded sum. (Knuth, "The Art of Computer Programming" 2, 4.2.2.) */
function errorOfSum(a, b, sum) {
  const rest = sum - a;
  return a - (sum - rest) + (b - rest);
}

/**
 * The error of a rounded product. (Dekker, "A floating-point technique for extending the available
 * precision", 1971.)
 */
function errorOfProduct(a, b, product) {
  const [highA, highB] = [upperHalf(a), upperHalf(b)];
  const [lowA, lowB] = [a - highA, b - highB];
  return lowA * lowB - (product - highA * highB - lowA * highB - highA * lowB);
}

function upperHalf(value) {
  const shifted = (2 ** 27 + 1) * value;
  return shifted - (shifted - value);
}

/** A sum that carries its error: the exact value is `sum + error`. */
export class ExactSum {
  sum = 0;
  error = 0;
  magnitude = 0;

  add(value) {
    const next = this.sum + value;
    this.error += errorOfSum(this.sum, value, next);
    this.sum = next;
    this.magnitude += Math.abs(value);
  }

  addProduct(a, b) {
    const product = a * b;
    this.error += errorOfProduct(a, b, product);
    this.add(product);
  }

  /** Multiplies by a number. */
  scale(factor) {
    const product = factor * this.sum;
    this.error = factor * this.error + errorOfProduct(factor, this.sum, product);
    this.sum = product;
    this.magnitude *= Math.abs(factor);
  }

  /** How far a number is from the exact value. */
  distance(value) {
    return Math.abs(value - this.sum - this.error);
  }

  get value() {
    return this.sum + this.error;
  }
}

// --- functions in fixed point --------------------------------------------------------------------

const places = 1200n;
const one = 1n << places;
const times = (a, b) => (a * b) >> places;
const over = (a, b) => (a << places) / b;

const words = new DataView(new ArrayBuffer(8));

/** The exact number: of at least 2^-1100 in magnitude, or 0. */
function fixed(value) {
  if (value === 0) return 0n;
  words.setFloat64(0, value);
  const bits = words.getBigInt64(0);
  const exponent = Number((bits >> 52n) & 2047n);
  const fraction = (bits & ((1n << 52n) - 1n)) | (1n << 52n);
  const shift = BigInt(exponent - 1075) + places;
  const size = shift >= 0n ? fraction << shift : fraction >> -shift;
  return value < 0 ? -size : size;
}

const abs = (x) => (x < 0n ? -x : x);

/** The largest whole number whose square is at most x. */
function root(x) {
  if (x === 0n) return 0n;
  let y = 1n << BigInt((x.toString(2).length >> 1) + 1);
  for (;;) {
    const next = (y + x / y) >> 1n;
    if (next >= y) return y;
    y = next;
  }
}

const sqrt = (x) => root(x << places);

/** Adds terms until they vanish. `next(term, n)` returns the term n from the term before. */
function series(first, next) {
  let [sum, term] = [first, first];
  for (let n = 1n; term !== 0n; ++n) {
    term = next(term, n);
    sum += term;
  }
  return sum;
}

/** arctan(1 / n) */
function arctan(n) {
  let [power, sum] = [one / n, 0n];
  for (let i = 1n; power !== 0n; i += 2n) {
    sum += (i % 4n === 1n ? power : -power) / i;
    power /= n * n;
  }
  return sum;
}
const pi = 4n * (4n * arctan(5n) - arctan(239n)); // Machin

/** e^x, by halving the argument and squaring the result. */
function exp(x) {
  const halvings = 16n;
  let y = series(one, (term, n) => (times(term, x) >> halvings) / n);
  for (let i = 0n; i < halvings; ++i) y = times(y, y);
  return y;
}

/** A step from the logarithm of float64, whose error is about 2^-53: d^6 is below 2^-280. */
function log(x) {
  const near = fixed(Math.log(toNumber(x)));
  const d = times(x, exp(-near)) - one;
  const power = [d];
  for (let i = 1; i < 5; ++i) power.push(times(power[i - 1], d));
  return near + power.reduce((sum, each, i) => sum + (i % 2 ? -each : each) / BigInt(i + 1), 0n);
}

/** Rounded to float64; only as a first guess. */
const toNumber = (x) => {
  const drop = BigInt(Math.max(abs(x).toString(2).length - 64, 0));
  return Number(x >> drop) * 2 ** (Number(drop) - Number(places));
};

const rootOfPi = sqrt(pi);

function erf(x) {
  const square = times(x, x);
  let [power, sum] = [x, x];
  for (let n = 1n; power !== 0n; ++n) {
    power = -times(power, square) / n;
    sum += power / (2n * n + 1n);
  }
  return over(2n * sum, rootOfPi);
}

function sine(x) {
  const square = times(x, x);
  return series(x, (term, n) => -times(term, square) / (2n * n * (2n * n + 1n)));
}
function cosine(x) {
  const square = times(x, x);
  return series(one, (term, n) => -times(term, square) / (2n * n * (2n * n - 1n)));
}

const sigmoid = (x) => over(one, one + exp(-x));
const tanh = (x) => {
  const power = exp(2n * x);
  return over(power - one, power + one);
};
const softplus = (x) => log(one + exp(x));

/** Functions of float64, in fixed point. */
export const exactly = {
  fixed,
  one,
  times,
  over,
  exp,
  log,
  erf,
  sine,
  cosine,
  sigmoid,
  tanh,
  softplus,
  sqrt,
  pi,
};

/** The distance of a float64 number from an exact one, in units of the last place of the latter. */
export function ulpsOfFloat64(found, exact) {
  const length = abs(exact).toString(2).length;
  const difference = abs(fixed(found) - exact);
  // The unit is 2^-52 of the leading bit.
  return toNumber((difference << places) >> BigInt(Math.max(length - 53, 0)));
}

/** The distance of a float64 number from an exact one, in units of a given size. */
export const unitsOfFloat64 = (found, exact, unit) =>
  toNumber(abs(fixed(found) - exact)) / Math.abs(unit);

/** The unit in the last place of a type, at a number. */
export function ulp(value, { digits, least }) {
  const exponent = value === 0 ? -1074 : exponentOf(value);
  return 2 ** Math.max(exponent - digits + 1, least);
}

function exponentOf(value) {
  words.setFloat64(0, value);
  const exponent = (words.getUint16(0) >> 4) & 2047;
  return exponent === 0 ? -1074 : exponent - 1023;
}

/** Digits of types in bits, and the exponents of their least numbers. */
export const floats = {
  float32: { digits: 24, least: -149 },
  float64: { digits: 53, least: -1074 },
  float16: { digits: 11, least: -24 },
  bfloat16: { digits: 8, least: -133 },
};
