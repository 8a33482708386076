// Operators of models: elementwise functions over all their inputs, and operators along rows. Each
// runs as a model of one node.
import { loadModel } from 'wgemm/onnx';
import { seededRandom } from '../../../examples/random.mjs';
import { encodeModel } from '../../peers/onnx.mjs';
import { ExactSum, exactly, floats, ulp, ulpsOfFloat64, unitsOfFloat64 } from './exact.mjs';

const { one, fixed, times, over } = exactly;
const arrays = { float32: Float32Array, float64: Float64Array };
const ms = 'com.microsoft';

// --- inputs --------------------------------------------------------------------------------------

/** A quarter of a million numbers of float32 of all exponents, and as many from 2^-10 to 2^7. */
function sweep() {
  const bits = [];
  for (let i = 0; i < 2 ** 32; i += 16411) bits.push(i);
  for (let i = 0x3a800000; i < 0x43000000; i += 571) bits.push((i | ((i % 2) << 31)) >>> 0);
  const x = new Float32Array(Uint32Array.from(bits).buffer);
  return x.filter(Number.isFinite);
}
const xs = { float32: sweep() };

/** Numbers of float64 from 2^-30 to 700, most of them from 2^-4 on. */
const next = seededRandom(5);
xs.float64 = Float64Array.from({ length: 3000 }, (_, i) => {
  const size = 2 ** (i % 2 ? (i % 13) - 4 : -(i % 30)) * (1 + next() + next() / 2 ** 32);
  return (next() < 0.5 ? -1 : 1) * size;
}).filter((x) => Math.abs(x) < 700);

// --- functions -----------------------------------------------------------------------------------

const half = (x) => x / 2n;

/** erf by its series, or by the continued fraction of erfc: to 2^-45 at least. */
function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let [power, sum] = [x, x];
    for (let n = 1; Math.abs(power) > 2 ** -70 * size; ++n) {
      power *= -(x * x) / n;
      sum += power / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  return Math.sign(x) * (1 - erfc(size));
}

/** erfc of at least 2.5. */
function erfc(x) {
  let fraction = 0;
  for (let n = 60; n > 0; --n) fraction = n / 2 / (x + fraction);
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const gelu = (x) =>
  x < -2.5 * Math.SQRT2 ? (x / 2) * erfc(-x / Math.SQRT2) : (x / 2) * (1 + erf(x / Math.SQRT2));
const cubic = 0.044715;
const fastGelu = (x) => x * sigmoid(Math.sqrt(8 / Math.PI) * (x + cubic * x * x * x));
const alpha = Math.fround(1.702);
const power = Math.fround(1.7);

const positive = (x) => x > 0;
const isBelow = (limit) => (x) => Math.abs(x) < limit;
/** Units of the input: 2^-23 of it in float32, 2^-52 in float64. */
const ofInput = { unit: 'input' };

/**
 * Functions: by the operator's name, the function in float64 for float32, the function in fixed
 * point for float64, and `limit`, which the native tests demand of float32.
 */
const functions = {
  Sqrt: { of: Math.sqrt, fixed: exactly.sqrt, where: positive, limit: 0.501 },
  Reciprocal: {
    of: (x) => 1 / x,
    fixed: (x) => over(one, x),
    where: (x) => Math.abs(x) > 2 ** -126 && Math.abs(x) < 2 ** 126,
    limit: 0.501,
  },
  Exp: { of: Math.exp, fixed: exactly.exp, limit: 1 },
  Log: { of: Math.log, fixed: exactly.log, where: positive, limit: 2 },
  Sigmoid: { of: sigmoid, fixed: exactly.sigmoid, limit: 2.5 },
  Tanh: { of: Math.tanh, fixed: exactly.tanh, limit: 2.6 },
  Erf: { of: erf, fixed: exactly.erf, whereFixed: isBelow(6), limit: 0.9 },
  Sin: {
    ...{ of: Math.sin, fixed: exactly.sine, limit: 0.6, absolute: true },
    ...{ where: isBelow(2 ** 28), whereFixed: isBelow(64) },
  },
  Cos: {
    ...{ of: Math.cos, fixed: exactly.cosine, limit: 0.6, absolute: true },
    ...{ where: isBelow(2 ** 28), whereFixed: isBelow(64) },
  },
  Softplus: { of: softplus, fixed: exactly.softplus, limit: 2.7 },
  Softsign: {
    of: (x) => x / (1 + Math.abs(x)),
    fixed: (x) => over(x, one + (x < 0n ? -x : x)),
    limit: 1.5,
  },
  Elu: {
    of: (x) => (x < 0 ? Math.expm1(x) : x),
    fixed: (x) => (x < 0n ? exactly.exp(x) - one : x),
    limit: 3,
  },
  Mish: {
    ...ofInput,
    of: (x) => x * Math.tanh(softplus(x)),
    fixed: (x) => times(x, exactly.tanh(exactly.softplus(x))),
    limit: 1.2,
  },
  Gelu: {
    ...ofInput,
    of: gelu,
    fixed: (x) => times(half(x), one + exactly.erf(over(x, exactly.sqrt(2n * one)))),
    whereFixed: isBelow(8),
    limit: 0.8,
  },
  FastGelu: {
    ...ofInput,
    domain: ms,
    of: fastGelu,
    fixed(x) {
      const inner = x + times(fixed(cubic), times(x, times(x, x)));
      return times(x, exactly.sigmoid(times(exactly.sqrt(over(8n * one, exactly.pi)), inner)));
    },
    where: isBelow(2 ** 40),
    limit: 0.9,
  },
  QuickGelu: {
    ...ofInput,
    domain: ms,
    of: (x) => x * sigmoid(alpha * x),
    fixed: (x) => times(x, exactly.sigmoid(times(fixed(alpha), x))),
    limit: 1.3,
  },
  Pow: {
    of: (x) => x ** power,
    fixed: (x) => exactly.exp(times(fixed(power), exactly.log(x))),
    where: positive,
    other: power,
    isForEngine: true,
  },
};

// --- rows ----------------------------------------------------------------------------------------

/** Runs a model of one node, with inputs { data, shape, dtype }. */
async function runNode(wg, { op, domain, attributes, inputs }) {
  const [{ dtype }] = inputs;
  const bytes = encodeModel({
    type: op,
    domain,
    opset: 23,
    attributes,
    inputs: inputs.map(({ dtype, shape }, i) => ({ name: `x${i}`, dtype, shape })),
    output: { dtype, shape: undefined },
  });
  const model = await loadModel(bytes, { wg });
  try {
    const feeds = Object.fromEntries(inputs.map((each, i) => [`x${i}`, each]));
    return (await model.run(feeds)).Y.data;
  } finally {
    model.dispose();
  }
}

const tensor = (dtype, shape, numbers) => ({ dtype, shape, data: arrays[dtype].from(numbers) });

function functionRow(name, dtype) {
  const each = functions[name];
  const {
    of,
    where = () => true,
    whereFixed = where,
    domain,
    other,
    unit,
    limit,
    absolute,
    isForEngine,
  } = each;
  const isSingle = dtype === 'float32';
  return {
    table: 'functions',
    name,
    dtype,
    unit: unit === 'input' ? 'of the input' : absolute && !isSingle ? 'of 1' : 'ULP',
    bound: isSingle ? limit : undefined,
    isForEngine,
    *problems() {
      const x = xs[dtype].filter(isSingle ? where : whereFixed);
      const inputs = [tensor(dtype, [x.length], x)];
      if (other !== undefined) inputs.push(tensor(dtype, [1], [other]));
      const exact = isSingle
        ? Float64Array.from(x, of)
        : Array.from(x, (v) => each.fixed(fixed(v)));
      yield {
        run: (wg) => runNode(wg, { op: name, domain, inputs }),
        errorAt(i, y) {
          const size = Math.abs(x[i]);
          if (isSingle) {
            if (!Number.isFinite(Math.fround(exact[i])))
              return y === exact[i] || !Number.isFinite(y) ? 0 : NaN;
            const step = unit === 'input' ? size * 2 ** -23 : ulp(exact[i], floats.float32);
            return Math.abs(y - exact[i]) / Math.max(step, 2 ** -149);
          }
          if (unit === 'input') return unitsOfFloat64(y, exact[i], size * 2 ** -52);
          return absolute ? unitsOfFloat64(y, exact[i], 2 ** -52) : ulpsOfFloat64(y, exact[i]);
        },
      };
    },
  };
}

/** Rows of numbers, their sums and their maximum. */
const rowsAndSize = [
  [6, 1000],
  [64, 24],
];

/** Operators along the last axis: the exact results of a row, from its numbers. */
const alongRows = {
  Softmax: { limit: 3, of: (x) => softmax(x).map(({ share }) => share) },
  LogSoftmax: { limit: 3, of: (x) => softmax(x).map(({ log }) => log) },
  LayerNormalization: { limit: 0.51, weights: 2, of: (x, w) => normalized(x, mean(x), w) },
  RMSNormalization: { limit: 0.51, weights: 1, of: (x, w) => normalized(x, 0, w) },
  ReduceMean: { limit: 0.51, isReduction: true, of: (x) => [mean(x)], draw: Math.abs },
  ReduceSum: { limit: 0.51, isReduction: true, of: (x) => [sum(x)], draw: Math.abs },
  ReduceL2: { limit: 0.51, isReduction: true, of: (x) => [Math.sqrt(squares(x))] },
  ReduceLogSumExp: { limit: 0.51, isReduction: true, of: (x) => [logSumExp(x)], draw: Math.abs },
};

function sum(values) {
  const exact = new ExactSum();
  for (const value of values) exact.add(value);
  return exact.value;
}
const mean = (x) => sum(x) / x.length;
const squares = (x) => sum(x.map((v) => v * v));

function softmax(x) {
  const most = x.reduce((a, b) => Math.max(a, b), -Infinity);
  const at = x.indexOf(most);
  // Without the largest, so that the logarithm is exact near 0.
  const rest = sum(x.map((v, i) => (i === at ? 0 : Math.exp(v - most))));
  return Array.from(x, (v) => ({
    share: Math.exp(v - most) / (1 + rest),
    log: v - most - Math.log1p(rest),
  }));
}
const logSumExp = (x) => {
  const most = x.reduce((a, b) => Math.max(a, b), -Infinity);
  return most + Math.log(sum(x.map((v) => Math.exp(v - most))));
};

const epsilon = Math.fround(1e-5);
function normalized(x, centre, [scale, bias]) {
  const deviation = Math.sqrt(mean(x.map((v) => (v - centre) ** 2)) + epsilon);
  return Array.from(x, (v, i) => ((v - centre) / deviation) * scale[i] + (bias?.[i] ?? 0));
}

function alongRow(name) {
  const { limit, of, weights = 0, isReduction, draw = (v) => v } = alongRows[name];
  return {
    table: 'functions',
    name,
    dtype: 'float32',
    unit: 'ULP',
    bound: limit,
    *problems() {
      const random = seededRandom(3);
      for (const [rows, size] of rowsAndSize) {
        for (const width of [1, 20]) {
          const x = Float32Array.from({ length: rows * size }, () =>
            draw(width * (2 * random() - 1)),
          );
          const factors = Array.from({ length: weights }, () =>
            Float32Array.from({ length: size }, () => 0.5 + random()),
          );
          const inputs = [tensor('float32', [rows, size], x)];
          for (const each of factors) inputs.push(tensor('float32', [size], each));
          const exact = Array.from({ length: rows }, (_, i) =>
            of(Float64Array.from(x.subarray(i * size, (i + 1) * size)), factors),
          ).flat();
          yield {
            run: (wg) =>
              runNode(wg, {
                op: name,
                attributes: isReduction ? { keepdims: 1 } : { axis: -1 },
                inputs: isReduction
                  ? [inputs[0], { dtype: 'int64', shape: [1], data: BigInt64Array.of(-1n) }]
                  : inputs,
              }),
            errorAt: (i, y) => Math.abs(y - exact[i]) / ulp(exact[i], floats.float32),
          };
        }
      }
    },
  };
}

export const operatorRows = [
  ...Object.keys(functions).flatMap((name) => [
    functionRow(name, 'float32'),
    functionRow(name, 'float64'),
  ]),
  ...Object.keys(alongRows).map(alongRow),
];
