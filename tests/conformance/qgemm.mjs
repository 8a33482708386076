// com.microsoft QGemm for comparison: its definition in plain loops, and the problems that ONNX
// Runtime's test generates. Knows nothing of files.

export const types = {
  int8: { array: Int8Array, least: -128, most: 127 },
  uint8: { array: Uint8Array, least: 0, most: 255 },
};
const f32 = Math.fround;

/** The accumulators in row-major order. Sums are exact before they wrap. */
function accumulate([a, , aZeroPoint, b, , bZeroPoint, c], { transA, transB }) {
  const [m, k] = transA ? a.shape.toReversed() : a.shape;
  const n = b.shape[transB ? 0 : 1];
  const [aRow, aStep] = transA ? [1, m] : [k, 1];
  const [bColumn, bStep] = transB ? [k, 1] : [1, n];
  const [rows, columns] = c ? [1, 1, ...c.shape].slice(-2) : [];
  const zeroOfA = elementFor(aZeroPoint, 0) ?? 0;
  return Int32Array.from({ length: m * n }, (_, index) => {
    const [row, column] = [Math.floor(index / n), index % n];
    const zeroOfB = elementFor(bZeroPoint, column) ?? 0;
    let sum = c ? c.data[(rows === 1 ? 0 : row) * columns + (columns === 1 ? 0 : column)] : 0;
    for (let p = 0; p < k; ++p) {
      sum +=
        (a.data[row * aRow + p * aStep] - zeroOfA) *
        (b.data[column * bColumn + p * bStep] - zeroOfB);
    }
    return sum | 0;
  });
}

/** The scale or zero point of a column. */
const elementFor = (vector, column) => vector?.data[vector.data.length === 1 ? 0 : column];

/**
 * Y of a problem. In float64 a product or quotient of two float32 is so exact that rounding it
 * again to float32 equals a single rounding.
 */
export function referenceQGemm(inputs, attrs) {
  const [a, aScale, , b, bScale, , , yScale, yZeroPoint] = inputs;
  const shape = [a.shape[attrs.transA ? 1 : 0], b.shape[attrs.transB ? 0 : 1]];
  const scaled = Float32Array.from(accumulate(inputs, attrs), (acc, index) => {
    let scale = f32(f32(attrs.alpha ?? 1) * aScale.data[0]);
    scale = f32(scale * elementFor(bScale, index % shape[1]));
    if (yScale) scale = f32(scale / yScale.data[0]);
    return f32(acc) * scale;
  });
  if (!yScale) return { dtype: 'float32', shape, data: scaled };
  const { array, least, most } = types[yZeroPoint.dtype];
  const quantized = (value) =>
    Math.max(least, Math.min(most, roundToEven(value) + yZeroPoint.data[0]));
  return { dtype: yZeroPoint.dtype, shape, data: array.from(scaled, quantized) };
}

export function roundToEven(value) {
  const below = Math.floor(value);
  const fraction = value - below;
  return fraction > 0.5 || (fraction === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/**
 * Generates the cases by the rule of ONNX Runtime's test: every size with its types, and with its
 * combinations of transposes, C, constant B and columns.
 */
export function* qgemmGrid({ MNK: families, types_A_B_Y: combinations, batch }) {
  // The combination of int8 and uint8, which ONNX Runtime lacks, follows the same rule.
  const all = [...combinations, ['int8', 'uint8', 'float32'], ['int8', 'uint8', 'int8']];
  let seed = 0;
  for (const [family, sizes] of Object.entries(families)) {
    for (const [m, n, k] of sizes) {
      for (const [typeOfA, typeOfB, typeOfY] of all) {
        for (const setting of batch) {
          const { inputs, attrs } = problem(
            { m, n, k, typeOfA, typeOfB, typeOfY, ...setting },
            randomFrom(++seed),
          );
          const name = `${family} ${m}x${n}x${k} ${JSON.stringify(setting)}`;
          const type = `${typeOfA} x ${typeOfB} -> ${typeOfY}`;
          yield {
            name,
            op: 'QGemm',
            opset: 1,
            type,
            attrs,
            inputs,
            outputs: [referenceQGemm(inputs, attrs)],
          };
        }
      }
    }
  }
}

function problem(
  {
    m,
    n,
    k,
    typeOfA,
    typeOfB,
    typeOfY,
    transA,
    transB,
    C: hasC,
    B_initializer: initializer,
    per_column: perColumn,
  },
  random,
) {
  const wholes = (dtype, divisor) => {
    const [least, most] = [types[dtype].least, types[dtype].most].map((end) =>
      Math.trunc(end / divisor),
    );
    return () => least + Math.floor(random() * (most - least + 1));
  };
  const factor = (least, most) => f32(least + random() * (most - least));
  const tensor = (dtype, shape, array, element) => {
    return {
      dtype,
      shape,
      data: array.from({ length: shape.reduce((size, axis) => size * axis, 1) }, element),
    };
  };
  const matrix = (dtype, shape, divisor) =>
    tensor(dtype, shape, types[dtype].array, wholes(dtype, divisor));
  const zeroPoint = (dtype, shape, element) =>
    tensor(dtype, shape, types[dtype].array, (_, i) => element(i));
  const scale = (shape, element) => tensor('float32', shape, Float32Array, element);

  const a = matrix(typeOfA, transA ? [k, m] : [m, k], 1);
  const b = {
    ...matrix(typeOfB, transB ? [n, k] : [k, n], typeOfB === 'int8' ? 2 : 1),
    initializer,
  };
  const zeroOfB = typeOfB === 'int8' && initializer && !perColumn ? 0 : middleOf(b);
  const columns = perColumn ? [n] : [];
  const inputs = [
    a,
    scale([], () => factor(0.003, 0.004)),
    zeroPoint(typeOfA, [], () => middleOf(a)),
    b,
    scale(columns, () => factor(0.003, 0.004)),
    // Its test's values per column. An unsigned type reads -1 as 255.
    zeroPoint(typeOfB, columns, (i) => (perColumn ? (zeroOfB + (i % 2) === 0 ? 1 : -1) : zeroOfB)),
    hasC ? tensor('int32', [m, n], Int32Array, wholes(typeOfA, 1)) : null,
    null,
    null,
  ];
  const attrs = { alpha: factor(1, 2), transA, transB };
  if (typeOfY !== 'float32') {
    const range = rangeOfScale(referenceQGemm(inputs, attrs).data, typeOfY);
    inputs[7] = scale([], () => range.scale);
    inputs[8] = zeroPoint(typeOfY, [], () => range.zeroPoint);
  }
  return { inputs, attrs };
}

const middleOf = ({ data }) =>
  Math.trunc((data.reduce((x, y) => Math.min(x, y)) + data.reduce((x, y) => Math.max(x, y))) / 2);

/** A scale and zero point with which the values and 0 fit a type; for int8, without -128. */
function rangeOfScale(values, dtype) {
  const [low, high] = [
    values.reduce((x, y) => Math.min(x, y), 0),
    values.reduce((x, y) => Math.max(x, y), 0),
  ];
  const { least, most } = dtype === 'int8' ? { least: -127, most: 127 } : types[dtype];
  const scale = f32((high - low) / (most - least)) || 1;
  const zeroPoint = least - low / scale; // not below 0 for uint8; its halves go away from 0
  return {
    scale,
    zeroPoint: Math.max(
      least,
      Math.min(most, Math.sign(zeroPoint) * Math.round(Math.abs(zeroPoint))),
    ),
  };
}

/** Mulberry32: numbers from 0 to 1, the same in every run. */
export function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let bits = Math.imul(seed ^ (seed >>> 15), seed | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
