// The products of dynamically quantized models for comparison: their definitions in plain loops,
// and the random problems of ONNX Runtime's tests. Knows nothing of files.
import { elementOf, valueOf } from './elements.mjs';
import { randomFrom, roundToEven, types } from './qgemm.mjs';

const f32 = Math.fround;

const sizeOf = (shape) => shape.reduce((product, axis) => product * axis, 1);

/**
 * The value of a vector for a row or column of all matrices; `absent` if there is none. A vector
 * with fewer values repeats them.
 */
const valueAt = (vector, index, absent) =>
  vector ? valueOf(vector.dtype, vector.data[index % vector.data.length]) : absent;

/** The row among the rows of all matrices of A, and the column among the columns of all of B. */
function placeOf(index, [m, n]) {
  const matrix = Math.floor(index / (m * n));
  return { matrix, row: Math.floor(index / n), column: matrix * n + (index % n) };
}

/**
 * The sums of a product in row-major order. B is one matrix, or has the batch axes of A. Sums are
 * exact before they wrap.
 */
function accumulate(a, aZeroPoint, b, bZeroPoint) {
  const k = a.shape.at(-1);
  const n = b.shape.at(-1);
  const sizes = [a.shape.at(-2), n];
  return Int32Array.from({ length: sizeOf(a.shape.slice(0, -1)) * n }, (_, index) => {
    const { matrix, row, column } = placeOf(index, sizes);
    const startOfB = b.shape.length > 2 ? matrix * k * n : 0;
    const zeroOfA = valueAt(aZeroPoint, row, 0);
    const zeroOfB = valueAt(bZeroPoint, column, 0);
    let sum = 0;
    for (let p = 0; p < k; ++p)
      sum += (a.data[row * k + p] - zeroOfA) * (b.data[startOfB + p * n + (index % n)] - zeroOfB);
    return sum | 0;
  });
}

/** ONNX DynamicQuantizeLinear: the bytes, the scale and the zero point. */
function quantize({ shape, data }) {
  const [low, high] = [
    data.reduce((x, y) => Math.min(x, y), 0),
    data.reduce((x, y) => Math.max(x, y), 0),
  ];
  const scale = f32(f32(high - low) / 255) || 1;
  const clamp = (value) => Math.max(0, Math.min(255, value));
  const zeroPoint = roundToEven(clamp(f32(0 - f32(low / scale))));
  return {
    a: {
      dtype: 'uint8',
      shape,
      data: Uint8Array.from(data, (x) => clamp(roundToEven(f32(x / scale)) + zeroPoint)),
    },
    aScale: { dtype: 'float32', data: Float32Array.of(scale) },
    aZeroPoint: { dtype: 'uint8', data: Uint8Array.of(zeroPoint) },
  };
}

/** Y of MatMulIntegerToFloat. Each step is rounded to float32. */
function toFloat(a, b, aScale, bScale, aZeroPoint, bZeroPoint, bias) {
  const n = b.shape.at(-1);
  const { dtype } = bScale;
  const values = Array.from(accumulate(a, aZeroPoint, b, bZeroPoint), (acc, index) => {
    const { column } = placeOf(index, [a.shape.at(-2), n]);
    const scaled = f32(f32(acc) * f32(valueAt(aScale, 0) * valueAt(bScale, column)));
    return elementOf(dtype, bias ? f32(scaled + valueAt(bias, column)) : scaled);
  });
  const array = dtype === 'float32' ? Float32Array : Uint16Array;
  return { dtype, shape: [...a.shape.slice(0, -1), n], data: array.from(values) };
}

const references = {
  MatMulInteger: ([a, b, aZeroPoint, bZeroPoint]) => ({
    dtype: 'int32',
    shape: [...a.shape.slice(0, -1), b.shape.at(-1)],
    data: accumulate(a, aZeroPoint, b, bZeroPoint),
  }),
  DynamicQuantizeMatMul([a, b, bScale, bZeroPoint, bias]) {
    const { a: bytes, aScale, aZeroPoint } = quantize(a);
    return toFloat(bytes, b, aScale, bScale, aZeroPoint, bZeroPoint, bias);
  },
  MatMulIntegerToFloat: ([a, b, aScale, bScale, aZeroPoint, bZeroPoint, bias]) =>
    toFloat(a, b, aScale, bScale, aZeroPoint, bZeroPoint, bias),
};

function kaseOf(name, op, opset, inputs, initializer) {
  const own = inputs.map((input, i) => (i === 1 ? { ...input, initializer } : input));
  const wanted = references[op](own);
  return {
    name,
    op,
    opset,
    type: `${inputs[0].dtype} x ${inputs[1].dtype} -> ${wanted.dtype}`,
    attrs: {},
    inputs: own,
    outputs: [wanted],
    products: sizeOf(inputs[0].shape) * inputs[1].shape.at(-1),
  };
}

function tensors(seed) {
  const random = randomFrom(seed);
  return {
    wholes: (dtype, shape, least = types[dtype].least, most = types[dtype].most) => ({
      dtype,
      shape,
      data: types[dtype].array.from(
        { length: sizeOf(shape) },
        () => least + Math.floor(random() * (most - least + 1)),
      ),
    }),
    fractions: (shape, most) => ({
      dtype: 'float32',
      shape,
      data: Float32Array.from({ length: sizeOf(shape) }, () => (2 * random() - 1) * most),
    }),
  };
}

/** The problems of ONNX Runtime's test of MatMulInteger, over the whole range of A. */
export function* matmulIntegerGrid(spec) {
  let seed = 0;
  for (const [key, typeOfA] of Object.entries({ U8X8: 'uint8', S8X8: 'int8' })) {
    for (const [family, sizes] of Object.entries(spec[key].MNK)) {
      for (const [m, n, k] of sizes) {
        for (const typeOfB of ['int8', 'uint8']) {
          for (const initializer of [false, true]) {
            const { wholes } = tensors(++seed);
            const inputs = [wholes(typeOfA, [m, k]), wholes(typeOfB, [k, n])];
            yield kaseOf(`${family} ${m}x${n}x${k}`, spec.op, spec.opset, inputs, initializer);
          }
        }
      }
    }
  }
}

/** The problems of ONNX Runtime's tests of the other two. */
export function* dynamicGrid() {
  const [m, k, n] = [4, 128, 128];
  const choices = [false, true];
  let seed = 0;
  for (const typeOfB of ['int8', 'uint8']) {
    for (const initializer of choices) {
      for (const perColumn of choices) {
        for (const hasZeroPoint of choices) {
          for (const hasBias of choices) {
            const columns = perColumn ? [n] : [1];
            const name =
              `${m}x${n}x${k}${perColumn ? ', per column' : ''}` +
              `${hasZeroPoint ? ', zero points' : ''}${hasBias ? ', bias' : ''}`;
            const make = tensors(++seed);
            const [least, most] = typeOfB === 'int8' ? [-64, 63] : [0, 127];
            const b = make.wholes(typeOfB, [k, n], least, most);
            const bScale = make.fractions(columns, 0.1);
            const bZero = hasZeroPoint ? make.wholes(typeOfB, columns) : null;
            const bias = hasBias ? make.fractions([n], 0.1) : null;
            const dynamic = [make.fractions([m, k], 1), b, bScale, bZero, bias];
            yield kaseOf(name, 'DynamicQuantizeMatMul', 1, dynamic, initializer);
            for (const typeOfA of ['int8', 'uint8']) {
              const aZero = hasZeroPoint
                ? make.wholes(typeOfA, [1], ...Array(2).fill(typeOfA === 'int8' ? 0 : 128))
                : null;
              const a = make.wholes(typeOfA, [m, k]);
              const inputs = [a, b, make.fractions([1], 0.1), bScale, aZero, bZero, bias];
              yield kaseOf(name, 'MatMulIntegerToFloat', 1, inputs, initializer);
            }
          }
        }
      }
    }
  }
  yield* fusedGrid();
}

/** Cases of its tests of fusions, which have batch axes. */
function* fusedGrid() {
  const shapes = [
    ...[[1], [4], [1, 4]].map((columns) => [[5, 4, 3], [3, 4], columns]),
    [
      [15, 14, 13],
      [15, 13, 27],
      [15, 1, 27],
    ],
  ];
  let seed = 1000;
  for (const [shapeOfA, shapeOfB, columns] of shapes) {
    for (const typeOfB of ['int8', 'uint8']) {
      for (const hasZeroPoint of [false, true]) {
        const name =
          `[${shapeOfA}] x [${shapeOfB}], scales [${columns}]` +
          (hasZeroPoint ? ', zero points' : '');
        const { wholes, fractions } = tensors(++seed);
        const b = wholes(typeOfB, shapeOfB);
        const bScale = fractions(columns, 0.1);
        const bZero = hasZeroPoint ? wholes(typeOfB, columns) : null;
        const dynamic = [fractions(shapeOfA, 1), b, bScale, bZero, null];
        yield kaseOf(name, 'DynamicQuantizeMatMul', 1, dynamic);
        for (const typeOfA of ['int8', 'uint8']) {
          const aZero = hasZeroPoint ? wholes(typeOfA, []) : null;
          const inputs = [wholes(typeOfA, shapeOfA), b, fractions([], 0.1), bScale, aZero, bZero];
          yield kaseOf(name, 'MatMulIntegerToFloat', 1, [...inputs, null]);
        }
      }
    }
  }
}
