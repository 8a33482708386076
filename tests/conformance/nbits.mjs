// MatMulNBits for comparison: its definition in plain loops, and the random problems of ONNX
// Runtime's tests. Knows nothing of files.
import { elementOf } from './elements.mjs';
import { randomFrom } from './qgemm.mjs';

const f32 = Math.fround;

/** A product with more multiplications runs in two places only. */
const mostInAllPlaces = 1e5;
/** Of one with more, only about this number of elements is compared. */
const mostProducts = 1e8;
const elementsOfLarge = 5000;

/** Normally distributed numbers of float32, by Box and Muller. */
function normals(random, count) {
  return Float32Array.from(
    { length: count },
    () => 0.25 * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
}

/** Rounds half away from zero. */
const round = (x) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5);

/** The scale and the zero point of the weights of a block, by the rule of ONNX Runtime. */
function rangeOf(block, bits, isSymmetric) {
  const low = block.reduce((a, b) => Math.min(a, b));
  const high = block.reduce((a, b) => Math.max(a, b));
  if (isSymmetric) {
    const largest = Math.abs(high) > Math.abs(low) ? high : low;
    return { scale: f32(-largest / 2 ** (bits - 1)), zero: 2 ** (bits - 1) };
  }
  const most = 2 ** bits - 1;
  const [least, greatest] = [Math.min(low, 0), Math.max(high, 0)];
  const scale = f32(f32(greatest - least) / most);
  return { scale, zero: scale === 0 ? 0 : Math.min(most, Math.max(0, round(f32(-least / scale)))) };
}

/** Appends codes of a column to bytes, the first in the lowest bits. */
function writeCodes(codes, bits, bytes, at) {
  codes.forEach((code, i) => (bytes[at + ((i * bits) >> 3)] |= code << ((i * bits) & 7)));
}

/**
 * A case. Its operands are made when they are asked for, since many runs skip large cases.
 *
 * @param zeroPoints undefined, 'codes', or 'numbers': the zero points of codes as numbers
 */
function makeCase(problem, tolerance, seed) {
  const { name, type, bits, m, n, k, blockSize, level, batch, zeroPoints, bias } = problem;
  const products = batch.reduce((product, size) => product * size, m * n * k);
  let made;
  const tensors = () => (made ??= makeTensors(problem, products, seed));
  return {
    name:
      `${name} [${batch}] ${m}x${n}x${k}, blocks of ${blockSize}` +
      `${zeroPoints ? `, zero points as ${zeroPoints}` : ''}${bias ? ', bias' : ''}`,
    op: 'MatMulNBits',
    opset: 1,
    type: `${type}, ${bits} bits`,
    attrs: { K: k, N: n, bits, block_size: blockSize, accuracy_level: level },
    get inputs() {
      return tensors().inputs;
    },
    get outputs() {
      return tensors().outputs;
    },
    ...(products > mostInAllPlaces && { runs: ['new output', 'heap'] }),
    tolerance,
    products,
  };
}

function makeTensors(
  { type, bits, m, n, k, blockSize, batch, zeroPoints, bias, flat },
  products,
  seed,
) {
  const random = randomFrom(seed);
  const blocks = Math.ceil(k / blockSize);
  const rows = batch.reduce((product, size) => product * size, m);
  const a = normals(random, rows * k);
  const weights = normals(random, k * n);
  const columnBytes = (blocks * blockSize * bits) / 8;
  const zeroBytes = Math.ceil((blocks * bits) / 8);
  const data = new Uint8Array(n * columnBytes);
  const packedZeros = new Uint8Array(n * zeroBytes);
  const scales = new Float32Array(n * blocks);
  const zeros = new Float32Array(n * blocks);
  const values = new Float32Array(n * k);
  for (let column = 0; column < n; ++column) {
    const codes = [];
    for (let block = 0; block < blocks; ++block) {
      const begin = block * blockSize;
      const inBlock = Array.from(
        { length: Math.min(blockSize, k - begin) },
        (_, i) => weights[(begin + i) * n + column],
      );
      const { scale, zero } = rangeOf(inBlock, bits, zeroPoints === undefined);
      const inverse = scale === 0 ? 0 : f32(1 / scale);
      scales[column * blocks + block] = scale;
      zeros[column * blocks + block] = zero;
      inBlock.forEach((weight, i) => {
        const code = Math.min(2 ** bits - 1, Math.max(0, round(f32(f32(weight * inverse) + zero))));
        codes.push(code);
        values[column * k + begin + i] = (code - zero) * scale;
      });
    }
    writeCodes(codes, bits, data, column * columnBytes);
    const ofColumn = zeros.subarray(column * blocks, (column + 1) * blocks);
    writeCodes([...ofColumn], bits, packedZeros, column * zeroBytes);
  }
  const added = bias ? Float32Array.from({ length: n }, () => 1 + 4 * random()) : undefined;
  const step = products > mostProducts ? Math.ceil((rows * n) / elementsOfLarge) : 1;
  const indices = Array.from({ length: Math.ceil((rows * n) / step) }, (_, i) => i * step);
  const y = indices.map((index) => {
    const [row, column] = [Math.floor(index / n) * k, (index % n) * k];
    let sum = 0;
    for (let p = 0; p < k; ++p) sum = f32(sum + f32(a[row + p] * values[column + p]));
    return elementOf(type, added ? f32(sum + added[index % n]) : sum);
  });
  const array = type === 'float32' ? Float32Array : Uint16Array;
  const floats = (shape, numbers) => ({
    dtype: type,
    shape,
    data: array.from(numbers, (number) => elementOf(type, number)),
  });
  const bytes = (shape, data) => ({ dtype: 'uint8', shape, data, initializer: true });
  const shapeOf = (size) => (flat ? [n * size] : [n, size]);
  return {
    inputs: [
      floats([...batch, m, k], a),
      bytes([n, blocks, (blockSize * bits) / 8], data),
      floats(shapeOf(blocks), scales),
      zeroPoints === 'codes'
        ? bytes(shapeOf(zeroBytes), packedZeros)
        : zeroPoints && floats(shapeOf(blocks), zeros),
      null,
      added && floats([n], added),
    ].map((input) => input ?? null),
    outputs: [
      {
        dtype: type,
        shape: [...batch, m, n],
        data: array.from(y),
        ...(step > 1 && { indices }),
      },
    ],
  };
}

const typesOfA = { float: 'float32', MLFloat16: 'float16', BFloat16: 'bfloat16' };

/** As ONNX Runtime's tests have it. */
function toleranceOf(bits, type, level) {
  if (bits !== 4 || (type === 'float32' && level === 4)) return { abs: 0.1, rel: 0.02 };
  return type === 'float32' ? { abs: 1e-4, rel: 1e-4 } : { abs: 0.055, rel: 0.02 };
}

/** The tolerance of one case, such as 'tolerance 0.2f, 0.03f'. */
function toleranceIn(note) {
  const [, abs, rel] = /tolerance ([\d.]+)f, ([\d.]+)f/.exec(note ?? '') ?? [];
  return abs && { abs: Number(abs), rel: Number(rel) };
}

/** The problems of ONNX Runtime's tests, except those with g_idx, which is refused. */
export function* nbitsGrid({ shapes, batch_4_bits_accuracy_4: batches }) {
  let seed = 0;
  const variants = (bits) =>
    bits === 4
      ? [{}, { zeroPoints: 'codes' }, { zeroPoints: 'numbers' }]
      : [{}, { zeroPoints: 'codes' }, { bias: true }, { zeroPoints: 'codes', bias: true }];
  for (const [group, families] of Object.entries(shapes)) {
    const bits = Number.parseInt(group);
    for (const [name, { A, 'M,N,K,block_size,accuracy_level': sizes }] of Object.entries(
      families,
    )) {
      for (const [m, n, k, blockSize, level = 0, note] of sizes) {
        const type = typesOfA[note] ?? typesOfA[A];
        for (const variant of variants(bits)) {
          const size = { name, type, bits, m, n, k, blockSize, level, ...variant };
          const batch = bits === 4 ? [1] : [];
          yield makeCase(
            { ...size, batch, flat: name.includes('Legacy') },
            toleranceIn(note) ?? toleranceOf(bits, type, level),
            ++seed,
          );
        }
      }
    }
  }
  for (const sizes of batches['batch,M,N,K,block_size']) {
    const [batch, m, n, k, blockSize] = sizes.filter((size) => size !== 'bias');
    const size = { name: 'batch', type: 'float32', bits: 4, m, n, k, blockSize, level: 4 };
    yield makeCase(
      { ...size, batch: [batch], bias: sizes[0] === 'bias' },
      { abs: 0.1, rel: 0.02 },
      ++seed,
    );
  }
}
