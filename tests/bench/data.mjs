// The operands of the contestants: the same numbers in every run.

/** Numbers from -1 to 1, or integers over their type's range. */
export function randomArray(dtype, length, seed) {
  let state = seed;
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) | 0);
  const fill = (array, value) => array.map(value);
  const fraction = () => next() / 2 ** 31;
  switch (dtype) {
    case 'float64':
      return fill(new Float64Array(length), fraction);
    case 'float16':
      return fill(new Float16Array(length), fraction);
    case 'bfloat16': // the upper halves of float32
      return Uint16Array.from(
        new Uint32Array(fill(new Float32Array(length), fraction).buffer),
        (bits) => bits >>> 16,
      );
    case 'int32':
      return fill(new Int32Array(length), next);
    case 'uint32':
      return fill(new Uint32Array(length), next);
    case 'int64':
      return fill(new BigInt64Array(length), () => (BigInt(next()) << 32n) | BigInt(next() >>> 0));
    case 'uint64':
      return fill(new BigUint64Array(length), () =>
        BigInt.asUintN(64, (BigInt(next()) << 32n) | BigInt(next() >>> 0)),
      );
    case 'int8':
      return fill(new Int8Array(length), () => next() >> 24);
    case 'uint8':
      return fill(new Uint8Array(length), () => next() >>> 24);
    default:
      return fill(new Float32Array(length), fraction);
  }
}

/**
 * Activations with a zero point next to the middle of their type, weights with one in the middle,
 * and a result that mostly fits its type.
 */
export function qgemmData({ typeOfA, typeOfB, typeOfY, m, n, k, bits = 8 }) {
  const quantized = typeOfY !== 'float32';
  return {
    a: randomArray(typeOfA, m * k, 1),
    aScale: 0.02,
    aZeroPoint: typeOfA === 'int8' ? 5 : 133,
    b: randomArray(typeOfB, k * n, 2).map((element) => element >> (8 - bits)),
    bScale: 0.005,
    bZeroPoint: typeOfB === 'int8' ? 0 : 128,
    yScale: quantized ? 0.01 * Math.sqrt(k) : null,
    yZeroPoint: quantized ? 120 : null,
  };
}

/**
 * How far results may differ: they are sums of K products, each below 1, in any order. Integers
 * wrap, and 8 bits are exact.
 */
export function toleranceOf({ dtype, k }) {
  return { float32: 1e-6 * k, float64: 1e-14 * k, float16: 0.02 * Math.sqrt(k) }[dtype] ?? 0;
}

/** The transpose of a matrix, or of each matrix of a stack. */
export function transposed({ data, shape }) {
  const [rows, columns] = shape.slice(-2);
  return {
    shape: [...shape.slice(0, -2), columns, rows],
    data: data.map((_, i) => {
      const [matrix, at] = [Math.floor(i / (rows * columns)), i % (rows * columns)];
      return data[matrix * rows * columns + (at % rows) * columns + Math.floor(at / rows)];
    }),
  };
}
