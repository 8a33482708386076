// Products with quantized operands. A result of integers is exact. Other results are compared with
// the product of the numbers that the operands stand for. If the call quantizes A, these are the
// numbers of A before.
import { packFrom } from 'wgemm/weights';
import { drawBlocks, mildHalf, referenceTypes } from '../../js/weights/block-reference.ts';
import { Random } from '../../fuzz/random.mjs';
import { randomArray } from '../data.mjs';
import { nbitsData } from '../nbits.mjs';
import { draw } from './data.mjs';
import { ExactSum, floats, ulp } from './exact.mjs';

const [m, n] = [24, 40];
const eps = 2 ** -floats.float32.digits;

// --- weights of few bits -------------------------------------------------------------------------

/**
 * A row of matmulNBits, at level 0 in units of eps times the sum of magnitudes, at level 4 in
 * ten thousandths of that sum.
 *
 * @param make returns { a, weightsOn(wg), numbers, magnitudes }, the latter two of shape (N, K)
 */
function nbitsRow({ name, k, level, make }) {
  const isFine = level === 0;
  return {
    table: isFine ? 'weights' : 'weights4',
    name,
    k,
    bound: isFine ? Math.min(k + 4, 4 * Math.sqrt(k + 4)) : undefined,
    *problems() {
      const { a, weightsOn, numbers, magnitudes = numbers } = make(k);
      yield {
        async run(wg) {
          const weights = await weightsOn(wg);
          const { data } = wg.matmulNBits({ data: a, shape: [m, k] }, weights, {
            accuracyLevel: level,
          });
          weights.dispose?.();
          return data;
        },
        errorAt(index, y) {
          const [row, column] = [Math.floor(index / n) * k, (index % n) * k];
          const exact = new ExactSum();
          let size = 0;
          for (let p = 0; p < k; ++p) {
            exact.add(a[row + p] * numbers[column + p]);
            size += Math.abs(a[row + p] * magnitudes[column + p]);
          }
          return exact.distance(y) / (size * (isFine ? eps : 1e-4));
        },
      };
    },
  };
}

/** Codes of some bits with a scale per block. */
function codes(bits, blockSize = 32) {
  return (k) => {
    const { a, weights } = nbitsData({ m, n, k, bits, blockSize });
    const { data, scales } = weights;
    const zero = 2 ** (bits - 1);
    const numbers = new Float64Array(n * k);
    const magnitudes = new Float64Array(n * k);
    for (let i = 0; i < n * k; ++i) {
      const code = (data.data[(i * bits) >> 3] >> ((i * bits) & 7)) & (2 * zero - 1);
      const scale = scales.data[Math.floor(i / blockSize)];
      numbers[i] = (code - zero) * scale;
      magnitudes[i] = (code + zero) * Math.abs(scale);
    }
    return { a: a.data, weightsOn: () => weights, numbers, magnitudes };
  };
}

/** Zero points of the formats without minima. */
const zeroPoints = { Q4_0: 8, Q8_0: 128, Q6_K: 32 };

/** Blocks as a GGUF file has them, which packFrom() keeps. */
function blocks(type) {
  return (k) => {
    const random = new Random(3);
    const between = (least, most) => least + random.upTo(most - least);
    const drawn = { next: () => random.next(), pick: (list) => random.pick(list), between };
    const { elements } = referenceTypes[type];
    const { data, values, parts } = drawBlocks(
      drawn,
      referenceTypes[type],
      (n * k) / elements,
      (each) => mildHalf(each),
    );
    const zero = zeroPoints[type] ?? 0;
    const magnitudes = parts.flatMap(({ d, scales, codes: all, dmin = 0, minima }) =>
      all.map((code, i) => {
        const j = Math.floor(i / (elements / scales.length));
        const size = Math.abs(d * scales[j]) * (Math.abs(code) + 2 * zero);
        return size + Math.abs(dmin * (minima?.[j] ?? 0));
      }),
    );
    return {
      a: draw(4, 'float32', [m, k]).data,
      weightsOn: (wg) => packFrom(wg, data, { type, shape: [n, k] }),
      numbers: values,
      magnitudes,
    };
  };
}

const nbits = [0, 4].flatMap((level) => [
  ...[8, 4, 2].flatMap((bits) =>
    [256, 4096].map((k) => nbitsRow({ name: `${bits} bits`, k, level, make: codes(bits) })),
  ),
  ...['Q8_0', 'Q6_K', 'Q4_K', 'Q4_0'].map((type) =>
    nbitsRow({ name: `${type} of GGUF`, k: 4096, level, make: blocks(type) }),
  ),
]);

// --- integers ------------------------------------------------------------------------------------

/** The sums of (A - zero point) * (B - zero point), which fit int32 here. */
function sumsOf({ a, b, aZeroPoint, bZeroPoint }) {
  const [k] = b.shape;
  return Float64Array.from({ length: m * n }, (_, index) => {
    const [i, j] = [Math.floor(index / n), index % n];
    let sum = 0;
    for (let p = 0; p < k; ++p)
      sum += (a.data[i * k + p] - aZeroPoint) * (b.data[p * n + j] - bZeroPoint);
    return sum;
  });
}

function bytesFor(k) {
  return {
    a: { data: randomArray('uint8', m * k, 1), shape: [m, k] },
    b: { data: randomArray('int8', k * n, 2), shape: [k, n] },
    aScale: Math.fround(0.021),
    aZeroPoint: 117,
    bScale: Float32Array.from({ length: n }, (_, i) => 0.003 * (1 + i / n)),
    bZeroPoint: -3,
    yScale: Math.fround(0.043 * Math.sqrt(k)),
    yZeroPoint: 120,
  };
}

/** The numbers that the sums stand for, which float64 has to 2^-52. */
const realsOf = (data) => sumsOf(data).map((sum, i) => sum * (data.aScale * data.bScale[i % n]));

const inUlp = (reals) => (i, y) => Math.abs(y - reals[i]) / ulp(reals[i], floats.float32);

/** Results from 0 to 255, in steps of them. */
const inSteps = (reals, { yScale, yZeroPoint }) => {
  const clamp = (x) => Math.max(0, Math.min(255, x));
  return (i, y) => Math.abs(y - clamp(reals[i] / yScale + yZeroPoint));
};

/** A row of bytes. */
function bytesRow(name, unit, run, errorOf) {
  return {
    table: 'quantized',
    name,
    unit,
    k: 1024,
    *problems() {
      const data = bytesFor(1024);
      yield { run: (wg) => run(wg, data).data, errorAt: errorOf(data) };
    },
  };
}

/** A product of whole numbers, which wraps. */
function wrappingRow(dtype, bits) {
  const k = 64;
  return {
    table: 'quantized',
    name: `gemm ${dtype}`,
    unit: 'exact',
    k,
    *problems() {
      const [a, b] = [randomArray(dtype, m * k, 1), randomArray(dtype, k * n, 2)];
      yield {
        run: (wg) => wg.gemm({ data: a, shape: [m, k] }, { data: b, shape: [k, n] }).data,
        errorAt(index, y) {
          const [i, j] = [Math.floor(index / n), index % n];
          let sum = 0n;
          for (let p = 0; p < k; ++p) sum += BigInt(a[i * k + p]) * BigInt(b[p * n + j]);
          return Math.abs(Number(BigInt(y) - BigInt.asIntN(bits, sum)));
        },
      };
    },
  };
}

/** A is float32, and the call quantizes it. */
function dynamicRow() {
  const k = 1024;
  return {
    table: 'quantized',
    name: 'dynamicQuantizeMatmul to float32',
    unit: '10^-4 of sum |a||b|',
    k,
    *problems() {
      const a = draw(8, 'float32', [m, k]);
      const { b, bScale, bZeroPoint } = bytesFor(k);
      const zeros = Int8Array.of(bZeroPoint);
      yield {
        run: (wg) => wg.dynamicQuantizeMatmul(a, b, { bScale, bZeroPoint: zeros }).data,
        errorAt(index, y) {
          const [i, j] = [Math.floor(index / n), index % n];
          const exact = new ExactSum();
          for (let p = 0; p < k; ++p)
            exact.add(a.data[i * k + p] * (b.data[p * n + j] - bZeroPoint) * bScale[j]);
          return exact.distance(y) / (1e-4 * exact.magnitude);
        },
      };
    },
  };
}

const integers = [
  wrappingRow('int32', 32),
  wrappingRow('int64', 64),
  bytesRow(
    'matmulInteger to int32',
    'exact',
    (wg, { a, b, aZeroPoint, bZeroPoint }) => wg.matmulInteger(a, b, { aZeroPoint, bZeroPoint }),
    (data) => {
      const sums = sumsOf(data);
      return (i, y) => Math.abs(y - sums[i]);
    },
  ),
  bytesRow(
    'qgemm to float32',
    'ULP',
    (wg, { a, b, aScale, aZeroPoint, bScale, bZeroPoint }) =>
      wg.qgemm({ a, b, aScale, aZeroPoint, bScale, bZeroPoint }),
    (data) => inUlp(realsOf(data)),
  ),
  bytesRow(
    'qgemm to uint8',
    'steps of yScale',
    (wg, inputs) => wg.qgemm(inputs),
    (data) => inSteps(realsOf(data), data),
  ),
  bytesRow(
    'qlinearMatmul to uint8',
    'steps of yScale',
    (wg, inputs) => wg.qlinearMatmul(inputs),
    (data) => inSteps(realsOf(data), data),
  ),
  bytesRow(
    'matmulIntegerToFloat',
    'ULP',
    (wg, { a, b, aScale, aZeroPoint, bScale, bZeroPoint }) =>
      wg.matmulIntegerToFloat(a, b, { aScale, aZeroPoint, bScale, bZeroPoint }),
    (data) => inUlp(realsOf(data)),
  ),
  dynamicRow(),
];

export const quantizedRows = [...nbits, ...integers];
