// Compares results with expected values. Integers must be equal. Floating point may differ by a
// bound on rounding errors, (K + 8) * eps * (|alpha| * sum |a||b| + |beta * c|), and by one
// rounding to the output's type. Without a bound, every bit must be equal.
import { valueOf } from './elements.mjs';

/**
 * eps: of the type that is computed in. Bits of the fraction and least exponent: of the type that
 * is stored.
 */
const floats = {
  float32: { eps: 2 ** -24, bits: 23, least: -126 },
  float64: { eps: 2 ** -53, bits: 52, least: -1022 },
  float16: { eps: 2 ** -24, bits: 10, least: -14 },
  bfloat16: { eps: 2 ** -24, bits: 7, least: -126 },
};

/**
 * Returns the first wrong element, as a sentence; undefined if all are right.
 *
 * @param expected the result that must come out; with `indices`, only the elements of these numbers
 *   in row-major order
 * @param data the result
 * @param boundAt index -> the bound of a floating-point element; undefined if every bit must be
 *   equal, so that -0 is not 0
 * @param tolerance relative error of the expected values: some were computed from decimals, before
 *   these were rounded to the operands
 */
export function difference({ dtype, data: wanted, indices }, data, boundAt, tolerance = 0) {
  for (let i = 0; i < wanted.length; ++i) {
    const expected = valueOf(dtype, wanted[i]);
    const found = valueOf(dtype, data[i]);
    if (Object.is(found, expected) || (boundAt && found === expected)) continue;
    const rounds = boundAt && dtype in floats && Number.isFinite(expected);
    const allowed = rounds
      ? boundAt(indices?.[i] ?? i) +
        rounding(floats[dtype], expected) +
        tolerance * Math.abs(expected)
      : 0;
    if (boundAt && Math.abs(Number(found - expected)) <= allowed) continue;
    return (
      `element ${indices?.[i] ?? i}: expected ` +
      `${shown(expected)}${allowed > 0 ? ` within ${allowed}` : ''}, found ${shown(found)}`
    );
  }
  return undefined;
}

const shown = (value) => (Object.is(value, -0) ? '-0' : String(value));

/** Half of the distance between neighbours. */
function rounding({ bits, least }, value) {
  return 2 ** (Math.max(Math.floor(Math.log2(Math.abs(value))), least) - bits - 1);
}

/** The bound of each element of Gemm's result. */
export function gemmBound({ attrs, inputs: [a, b, c], outputs: [y] }) {
  const { transA, transB, alpha = 1, beta = 1 } = attrs;
  const n = y.shape[1];
  const k = a.shape[transA ? 0 : 1];
  const size = (tensor, row, column) =>
    Math.abs(valueOf(tensor.dtype, tensor.data[row * (tensor.shape.at(-1) ?? 1) + column]));
  return (index) => {
    const row = Math.floor(index / n);
    const column = index % n;
    let sum = 0;
    for (let p = 0; p < k; ++p) {
      sum +=
        (transA ? size(a, p, row) : size(a, row, p)) *
        (transB ? size(b, column, p) : size(b, p, column));
    }
    const [rows, columns] = c ? [1, 1, ...c.shape].slice(-2) : [];
    const added = c && beta !== 0 ? size(c, rows === 1 ? 0 : row, columns === 1 ? 0 : column) : 0;
    return (k + 8) * floats[y.dtype].eps * (Math.abs(alpha) * sum + Math.abs(beta) * added);
  };
}
