// Makes random calls of every operation in little memory. Each must have the result that it has
// with enough memory: to the bit in strict mode, for integers and for 8-bit operands. With enough
// memory, each must have the same bits for every number of threads, also in fast mode.
import { arrayOf, valueOf } from '../conformance/elements.mjs';
import { Random } from './random.mjs';

const allTypes = 'float32 float64 float16 bfloat16 int32 uint32 int64 uint64'.split(' ');
const isFloat = (dtype) => /float/.test(dtype);
const count = (shape) => shape.reduce((product, size) => product * size, 1);

/** The most bytes of an instance. A test allocates all but `memory` of a call before the call. */
const maxMemory = 2_500_000;

/** The bits of a float16 or a bfloat16 from -1 to 1, some of them subnormal. */
function halfBits(random, dtype) {
  const exponents = dtype === 'float16' ? [0, 8, 11, 12, 13, 14] : [0, 120, 123, 124, 125, 126];
  const digits = dtype === 'float16' ? 10 : 7;
  const sign = random.upTo(1) << 15;
  return sign | (random.pick(exponents) << digits) | random.upTo(2 ** digits - 1);
}

const specials = [NaN, Infinity, -Infinity, -0, 2 ** -149];
const specialBits = { float16: [0x7e00, 0x7c00, 0xfc00, 0x8000], bfloat16: [0x7fc0, 0x7f80, 1] };

/** An element: floating point from -1 to 1, integers over their whole range. */
function element(random, dtype, isSpecial) {
  if (isSpecial && isFloat(dtype) && random.upTo(40) === 0)
    return random.pick(specialBits[dtype] ?? specials);
  if (dtype === 'float16' || dtype === 'bfloat16') return halfBits(random, dtype);
  if (isFloat(dtype)) return 2 * random.next() - 1;
  const low = Math.floor(random.next() * 2 ** 32);
  if (!dtype.endsWith('64')) return low;
  return BigInt(low) | (BigInt(Math.floor(random.next() * 2 ** 32)) << 32n);
}

/** A contiguous tensor. */
function plain(random, dtype, shape, value = () => element(random, dtype, false)) {
  const data = new (arrayOf(dtype))(count(shape));
  for (let i = 0; i < data.length; ++i) data[i] = value();
  return { data, shape, dtype };
}

/** A tensor in any layout. `repeats`: an axis may have stride 0. */
function laidOut(random, dtype, shape, { repeats = true, isSpecial = false } = {}) {
  const value = () => element(random, dtype, isSpecial);
  if (random.upTo(2) === 0 || shape.includes(0)) return plain(random, dtype, shape, value);
  const axes = shape.map((_, axis) => axis).reverse(); // from the shortest stride on
  for (let last = axes.length - 1; last > 0; --last) {
    const other = random.upTo(last);
    [axes[last], axes[other]] = [axes[other], axes[last]];
  }
  const strides = shape.map(() => 0);
  const [gap, offset] = [random.pick([0, 0, 1, 3]), random.pick([0, 0, 2])];
  const step = random.pick([1, 1, 1, 2]);
  let extent = step;
  for (const axis of axes) {
    if (repeats && random.upTo(12) === 0) continue;
    strides[axis] = extent;
    extent = extent * shape[axis] + gap;
  }
  const last = shape.reduce((sum, size, axis) => sum + (size - 1) * strides[axis], 0);
  const { data } = plain(random, dtype, [offset + last + 1 + random.pick([0, 2])], value);
  return { data, shape, dtype, strides, offset };
}

/** Sizes near whole blocks. */
function usualSizes(random) {
  const m = 1 + random.upTo(random.pick([8, 40, 40, 300]));
  const n = 1 + random.upTo(random.pick([6, 6, 16, 40, 130]));
  const k = Math.max(0, 64 * random.upTo(6) + random.upTo(8) - 4);
  return [m, n, k];
}

/** Sizes from which several threads compute most calls. */
const largeSizes = (random) => [
  60 + random.upTo(240),
  60 + random.upTo(180),
  100 + random.upTo(280),
];

const flag = (random) => random.upTo(1) === 1;
const swapped = (swaps, a, b) => (swaps ? [b, a] : [a, b]);
const bounds = (random) => random.pick([undefined, undefined, 'relu', [-0.5, 0.75]]);

const batches = [
  [[], []],
  [[], []],
  [[3], []],
  [[], [2]],
  [[2, 1], [3]],
  [
    [2, 2],
    [2, 2],
  ],
];

/** The batch axes of a result. */
function joined(a, b) {
  const rank = Math.max(a.length, b.length);
  const size = (shape, axis) => shape[axis - (rank - shape.length)] ?? 1;
  return Array.from({ length: rank }, (_, axis) => Math.max(size(a, axis), size(b, axis)));
}

/** The option `out`, in a third of all calls. */
const outOf = (random, dtype, shape) =>
  random.upTo(2) === 0 ? { out: laidOut(random, dtype, shape, { repeats: false }) } : {};

/**
 * How a third of all calls pack B, if it is small enough: the place of B among the arguments or the
 * inputs, and the options of pack().
 */
const packing = (random, b, place, options) =>
  random.upTo(2) === 0 && b.data.length <= 50_000 ? [place, options] : undefined;

const makers = {
  gemm(random, sizesOf) {
    const dtype = random.pick(allTypes);
    const [m, n, k] = sizesOf(random);
    const [transA, transB] = [flag(random), flag(random)];
    const special = { isSpecial: random.upTo(9) === 0 };
    const a = laidOut(random, dtype, swapped(transA, m, k), special);
    const b = laidOut(random, dtype, swapped(transB, k, n), special);
    const out = outOf(random, dtype, [m, n]);
    const shape = random.pick([undefined, 'out', [], [1], [n], [1, n], [m, 1], [m, n]]);
    const c = shape === 'out' ? (out.out ?? null) : shape && laidOut(random, dtype, shape);
    const [alpha, beta] = isFloat(dtype) ? [0.37, -1.5] : [3, 2];
    const options = { transA, transB, ...(flag(random) && { alpha }), ...out };
    if (c && flag(random)) options.beta = beta;
    if (isFloat(dtype)) options.activation = bounds(random);
    return {
      dtype,
      sizes: [m, n, k],
      args: [a, b, c, options],
      weights: packing(random, b, 1, { op: 'gemm', trans: transB }),
    };
  },
  matmul(random, sizesOf) {
    const dtype = random.pick(allTypes);
    const [m, n, k] = sizesOf(random);
    const [batchA, batchB] = random.pick(batches);
    const [transposeA, transposeB] = [flag(random), flag(random)];
    const special = { isSpecial: random.upTo(9) === 0 };
    const a = laidOut(random, dtype, [...batchA, ...swapped(transposeA, m, k)], special);
    const b = laidOut(random, dtype, [...batchB, ...swapped(transposeB, k, n)], special);
    const shape = [...joined(batchA, batchB), m, n];
    const outType = dtype.endsWith('16') && flag(random) ? 'float32' : dtype;
    const bias = random.pick([undefined, [], [n], [m, 1], [m, n], shape]);
    const as = dtype === 'float32' ? random.pick(['float32', 'float16', 'bfloat16']) : dtype;
    return {
      dtype,
      sizes: [m, n, k],
      args: [
        a,
        b,
        bias && laidOut(random, dtype, bias),
        {
          transposeA,
          transposeB,
          ...(outType !== dtype && { outType }),
          ...(flag(random) && { alpha: isFloat(dtype) ? 0.37 : 3 }),
          ...(isFloat(dtype) && { activation: bounds(random) }),
          ...outOf(random, outType, shape),
        },
      ],
      weights: packing(random, b, 1, { op: 'matmul', trans: transposeB, as }),
    };
  },
  qgemm(random, sizesOf) {
    const [typeA, typeB] = [random.pick(['int8', 'uint8']), random.pick(['int8', 'uint8'])];
    const [m, n, k] = sizesOf(random);
    const [transA, transB] = [flag(random), flag(random)];
    const inputs = {
      a: laidOut(random, typeA, swapped(transA, m, k)),
      b: laidOut(random, typeB, swapped(transB, k, n)),
      aScale: 0.02,
      bScale: flag(random)
        ? 0.03
        : plain(random, 'float32', [n], () => 0.01 + random.next() / 9).data,
    };
    if (flag(random)) inputs.aZeroPoint = random.upTo(100);
    if (flag(random)) inputs.bZeroPoint = plain(random, typeB, [flag(random) ? n : 1]).data;
    const shape = random.pick([undefined, [], [n], [m, 1], [m, n]]);
    if (shape) inputs.c = laidOut(random, 'int32', shape);
    const typeY = random.pick(['float32', 'int8', 'uint8']);
    if (typeY !== 'float32')
      Object.assign(inputs, { yScale: 0.9, yZeroPoint: new (arrayOf(typeY))([7]) });
    return {
      isExact: true,
      sizes: [m, n, k],
      args: [
        inputs,
        {
          transA,
          transB,
          activation: bounds(random),
          ...(flag(random) && { alpha: 0.5 }),
          ...outOf(random, typeY, [m, n]),
        },
      ],
      weights: packing(random, inputs.b, 'b', { op: 'qgemm', trans: transB }),
    };
  },
  matmulInteger: integer,
  qlinearMatmul: integer,
  dynamicQuantizeMatmul: integer,
  matmulIntegerToFloat: integer,
  matmulNBits(random, sizesOf) {
    const dtype = random.pick(['float32', 'float16', 'bfloat16']);
    const [m, n, k] = sizesOf(random);
    const [bits, blockSize] = [random.pick([2, 4, 8]), 16 << random.upTo(4)];
    const blocks = Math.ceil(k / blockSize);
    const zeroPoints = random.pick([
      undefined,
      () => plain(random, 'uint8', [n, Math.ceil((blocks * bits) / 8)]),
      () => plain(random, dtype, [n, blocks]),
    ])?.();
    const accuracyLevel = random.pick([0, 4, 4]);
    const weights = {
      data: plain(random, 'uint8', [n, blocks, (blockSize * bits) / 8]),
      scales: plain(random, dtype, [n, blocks]),
      ...(zeroPoints && { zeroPoints }),
      ...{ k, n, bits, blockSize },
    };
    return {
      dtype,
      isExact: accuracyLevel === 4 && zeroPoints?.dtype !== dtype,
      greatest: 2 ** (bits + 1),
      sizes: [m, n, k],
      args: [
        laidOut(random, dtype, [m, k]),
        weights,
        {
          ...(flag(random) && { bias: plain(random, dtype, [n]) }),
          accuracyLevel,
          activation: bounds(random),
          ...outOf(random, dtype, [m, n]),
        },
      ],
      weights: packing(random, weights.data, 1, { op: 'matmulNBits' }),
    };
  },
  syrk(random, sizesOf) {
    const dtype = random.pick(['float32', 'float64']);
    const [n, , k] = sizesOf(random);
    const transA = flag(random);
    const special = { isSpecial: random.upTo(9) === 0 };
    return {
      dtype,
      sizes: [n, n, k],
      args: [
        laidOut(random, dtype, swapped(transA, n, k), special),
        { transA, ...(flag(random) && { alpha: 0.37 }), ...outOf(random, dtype, [n, n]) },
      ],
    };
  },
  /** A layer. */
  run(random, sizesOf) {
    const [m, n, k] = sizesOf(random);
    const as = random.pick(['float32', 'float16', 'bfloat16', 'int8']);
    const trans = flag(random);
    const out = as === 'int8' ? {} : outOf(random, 'float32', [m, n]);
    return {
      dtype: 'float32',
      isExact: as === 'int8',
      sizes: [m, n, k],
      args: [laidOut(random, 'float32', [m, k]), out],
      layer: {
        weights: plain(random, 'float32', swapped(trans, k, n)),
        ...(flag(random) && { bias: plain(random, 'float32', [n]) }),
        ...{ as, trans, activation: bounds(random) },
      },
    };
  },
};

/** One of the four integer products. */
function integer(random, sizesOf, op) {
  const [typeA, typeB] = [random.pick(['int8', 'uint8']), random.pick(['int8', 'uint8'])];
  const [m, n, k] = sizesOf(random);
  const [batchA, batchB] = random.pick(batches);
  const [transA, transB] = [flag(random), flag(random)];
  const typeOfA = op === 'dynamicQuantizeMatmul' ? 'float32' : typeA;
  const a = laidOut(random, typeOfA, [...batchA, ...swapped(transA, m, k)]);
  const b = laidOut(random, typeB, [...batchB, ...swapped(transB, k, n)]);
  const batch = joined(batchA, batchB);
  const rows = (batch) => random.pick([[], [m], [...batch, m, 1]]);
  const columns = () => random.pick([[1], batchB.length === 0 ? [n] : [...batchB, 1, n]]);
  const scales = (shape) => plain(random, 'float32', shape, () => 0.01 + random.next() / 9);
  const typeY = random.pick(['int8', 'uint8']);
  const vectors = {
    matmulInteger: { aZeroPoint: plain(random, typeA, rows(batchA)) },
    qlinearMatmul: {
      aScale: scales(rows(batchA)),
      aZeroPoint: plain(random, typeA, rows(batchA)),
      bScale: scales(columns()),
      yScale: scales(rows(batch)),
      yZeroPoint: plain(random, typeY, rows(batch)),
    },
    dynamicQuantizeMatmul: { bScale: scales(columns()) },
    matmulIntegerToFloat: {
      aScale: 0.04,
      aZeroPoint: plain(random, typeA, []),
      bScale: scales(columns()),
    },
  }[op];
  if (flag(random)) delete vectors.aZeroPoint;
  if (flag(random)) vectors.bZeroPoint = plain(random, typeB, columns());
  const options = { transA, transB };
  if (op !== 'matmulInteger') options.activation = bounds(random);
  if (vectors.bScale && !vectors.yScale && flag(random))
    options.bias = plain(random, 'float32', [n]);
  const typeOfResult = { matmulInteger: 'int32', qlinearMatmul: typeY }[op] ?? 'float32';
  Object.assign(options, outOf(random, typeOfResult, [...batch, m, n]));
  const takesInputs = op === 'qlinearMatmul';
  return {
    isExact: true,
    sizes: [m, n, k],
    args: takesInputs ? [{ a, b, ...vectors }, options] : [a, b, { ...vectors, ...options }],
    weights: packing(random, b, takesInputs ? 'b' : 1, { op: 'qgemm', trans: transB }),
  };
}

/** The call of a seed. */
function callOf(seed, sizesOf = usualSizes) {
  const random = new Random(seed);
  const op = random.pick(Object.keys(makers));
  const call = makers[op](random, sizesOf, op);
  const memory = Math.floor(1000 * 2 ** (6 * random.next())); // of the blocks, in bytes
  return { op, memory, ...call };
}

const textOf = (key, value) =>
  ArrayBuffer.isView(value) ? `${value.constructor.name}(${value.length})` : value;
/** Describes the call in one line. */
const describe = (call) =>
  JSON.stringify(call, (key, value) =>
    typeof value === 'bigint' ? `${value}n` : textOf(key, value),
  );

const bytesOf = ({ buffer, byteOffset, byteLength }) =>
  new Uint8Array(buffer, byteOffset, byteLength);
const isSame = (a, b) => bytesOf(a).every((byte, i) => byte === bytesOf(b)[i]);

/** Calls `body` while about `memory` bytes of the instance are free, or more if blocks need it. */
function inLittleMemory(wg, memory, body) {
  for (; ; memory *= 1.5) {
    const spare = Math.floor(maxMemory - wg.memory().inUse - memory - 128);
    let held;
    try {
      held = spare > 0 ? wg.alloc('uint8', [spare]) : undefined;
      return body();
    } catch (error) {
      if (error.code !== 'OUT_OF_MEMORY' || spare <= 0) throw error;
    } finally {
      held?.dispose();
    }
  }
}

/**
 * Makes a call in an instance. Returns the result, and whether it was computed out-of-core.
 * `memory`: the bytes that are free. Default: all.
 */
function runCall(wg, { op, args, weights, layer }, createLinear, memory) {
  const held = [];
  let given = args;
  const hold = (handle) => (held.push(handle), handle);
  try {
    let callee = wg;
    if (layer) callee = hold(createLinear(wg, layer));
    if (weights) {
      const [place, options] = weights;
      const isArgument = typeof place === 'number';
      const packed = hold(wg.pack(isArgument ? args[place] : args[0][place], options));
      if (isArgument) given = args.with(place, packed);
      else given = args.with(0, { ...args[0], [place]: packed });
      const last = { ...given.at(-1) };
      for (const name of ['transB', 'transposeB']) delete last[name];
      given = given.with(-1, last);
    }
    let isOutOfCore = false;
    const make = () => {
      const options = { ...given.at(-1) };
      const all = given.with(-1, options);
      const before = options.out;
      if (before) {
        options.out = { ...before, data: before.data.slice() };
        for (let i = 0; i + 1 < all.length; ++i) if (all[i] === before) all[i] = options.out;
      }
      if (!layer) isOutOfCore = wg.explain(op, ...all).outOfCore;
      try {
        return callee[op](...all);
      } catch (error) {
        if (before && !isSame(before.data, options.out.data))
          throw new Error(`${error.message}; it has written to out`, { cause: error });
        throw error;
      }
    };
    const result = memory === undefined ? make() : inLittleMemory(wg, memory, make);
    return { result, isOutOfCore };
  } finally {
    for (const handle of held) handle.dispose();
  }
}

/** Whether two results have the same bits, except in a NaN, whose bits depend on the engine. */
const isEqual = (dtype, a, b) =>
  isSame(a, b) || a.every((one, i) => Object.is(valueOf(dtype, one), valueOf(dtype, b[i])));

/** The rounding of a type, relative to a number. */
const digitsOf = { float64: 2 ** -53, float32: 2 ** -24, float16: 2 ** -11, bfloat16: 2 ** -8 };

/** Describes what is wrong with a result. `isStrict`: the instance is in strict mode. */
function faultOf(call, wanted, found, isStrict) {
  if (found.data.length !== wanted.data.length || found.dtype !== wanted.dtype)
    return `is ${found.dtype} of ${found.data.length} elements`;
  const { isExact, sizes, greatest = 1 } = call;
  const dtype = wanted.dtype ?? call.dtype;
  if (isExact || isStrict || !isFloat(dtype)) {
    if (isSame(wanted.data, found.data)) return undefined;
    const at = wanted.data.findIndex((value, i) => !Object.is(value, found.data[i]));
    return `has ${found.data[at]} at ${at}, not ${wanted.data[at]}`;
  }
  // Each result has at most (K + 8) roundings, of sums of which each part is at most `greatest`.
  const steps = sizes[2] + 8;
  const compute = dtype === 'float64' ? digitsOf.float64 : digitsOf.float32;
  const bound = 2 * steps * compute * (steps * greatest + 4);
  for (let i = 0; i < wanted.data.length; ++i) {
    const [one, other] = [wanted.data[i], found.data[i]].map((value) =>
      Number(valueOf(dtype, value)),
    );
    if (Object.is(one, other)) continue;
    const rounding = 4 * digitsOf[dtype] * Math.abs(one) + 2 ** -24;
    if (!(Math.abs(one - other) <= bound + rounding)) return `has ${other} at ${i}, not ${one}`;
  }
  return undefined;
}

/** Makes instances of a build that compute in little memory. `options`: of createGemm. */
export async function instancesOf(createGemm, options) {
  const modes = ['fast', 'strict'];
  return Promise.all(
    modes.map(async (determinism) => ({
      name: JSON.stringify({ ...options, determinism }),
      isStrict: determinism === 'strict',
      wg: await createGemm({ ...options, determinism, maxMemory }),
    })),
  );
}

/**
 * Makes the call of a seed in `whole`, which has room and is in strict mode, and in all instances.
 * Returns what is wrong, and how many calls were out-of-core.
 */
export function tryCall(seed, whole, instances, createLinear) {
  const call = callOf(seed);
  const faults = [];
  const tell = (name, fault) => faults.push(`seed ${seed}: ${call.op} of ${name} ${fault}`);
  let outOfCore = 0;
  try {
    const { result: wanted } = runCall(whole, call, createLinear);
    for (const { name, isStrict, wg } of instances) {
      const { result, isOutOfCore } = runCall(wg, call, createLinear, call.memory);
      if (isOutOfCore) ++outOfCore;
      const fault = faultOf(call, wanted, result, isStrict);
      if (fault) tell(name, fault);
      const { inUse } = wg.memory();
      if (inUse !== 0) tell(name, `leaves ${inUse} bytes in use`);
    }
  } catch (error) {
    tell('a build', `fails: ${error.stack}`);
  }
  if (faults.length > 0) faults.push(`  ${describe(call)}`);
  return { faults, outOfCore };
}

/** Makes instances of a build in fast mode with enough memory, one for each number of threads. */
export const instancesOfThreads = (createGemm, simd) =>
  Promise.all(
    [1, 2, 3, 4].map(async (threads) => ({
      name: JSON.stringify({ simd, threads }),
      isStrict: false,
      wg: await createGemm({ simd, threads }),
    })),
  );

/**
 * Makes the call of a seed in the instances of instancesOfThreads(). Returns what is wrong: all
 * results must have the same bits. Every fourth call is large.
 */
export function tryThreads(seed, instances, createLinear) {
  const call = callOf(seed, seed % 4 === 0 ? largeSizes : usualSizes);
  try {
    const [first, ...others] = instances.map(({ wg }) => runCall(wg, call, createLinear).result);
    const faults = others.flatMap(({ data }, i) => {
      if (isEqual(first.dtype ?? call.dtype, first.data, data)) return [];
      const at = data.findIndex((value, j) => !Object.is(value, first.data[j]));
      const [one, other] = [instances[0].name, instances[i + 1].name];
      const found = `${other} has ${data[at]} at ${at}, ${one} has ${first.data[at]}`;
      return `seed ${seed}: ${call.op}: ${found}`;
    });
    return faults.length > 0 ? [...faults, `  ${describe(call)}`] : [];
  } catch (error) {
    return [`seed ${seed}: ${call.op} fails: ${error.stack}`, `  ${describe(call)}`];
  }
}
