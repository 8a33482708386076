// How far from the expected value a result may be: integers not at all, floating point by a bound
// on what rounding can do, (K + 8) * eps * (|alpha| * sum |a||b| + |beta * c|), and one rounding of
// the output's type; where there is no bound, not at all.
import { valueOf } from './elements.mjs';

/**
 * eps of the type that is computed in; bits of the fraction and least exponent of the type that is
 * stored.
 */
const floats = {
  float32: { eps: 2 ** -24, bits: 23, least: -126 },
  float64: { eps: 2 ** -53, bits: 52, least: -1022 },
  float16: { eps: 2 ** -24, bits: 10, least: -14 },
  bfloat16: { eps: 2 ** -24, bits: 7, least: -126 },
};

/**
 * The first element that is not right, as a sentence; undefined if all are.
 *
 * @param expected the tensor that must come out; with `indices`, some of its elements, by their
 * numbers in row-major order
 * @param data what came out
 * @param boundAt the bound of an element in floating point, by its index; undefined if every bit
 * must be right, so that -0 is not 0
 * @param tolerance how far off the expected values themselves may be, relative to each: some were
 * not computed from the operands as they are
 *   but from decimals that these are rounded from
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
    return `element ${indices?.[i] ?? i}: expected ${shown(expected)}${allowed > 0 ? ` within ${allowed}` : ''}, found ${shown(found)}`;
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
