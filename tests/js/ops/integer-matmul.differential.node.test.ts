/**
 * Seeded random problems of the integer products, computed by the library with B as it is and with
 * B packed, by the reference, and by ONNX Runtime Web: all bits must be the same.
 *
 * The runtime has int8 x uint8 only in MatMulInteger and DynamicQuantizeMatMul, quantizes to the
 * type of A only, and refuses scales and zero points per row. If the scale of A underflows to 0, it
 * divides by that. For these problems only the reference counts.
 */
import { describe, expect, it } from 'vitest';
import { type DType } from 'wgemm';
import { encodeModel } from '../../peers/onnx.mjs';
import { get, quantized, type Quantized, round, set, arrayClasses } from '../support/dtypes.js';
import {
  argumentsOf,
  type Call,
  describeCall,
  draw as drawCall,
  type Operation,
  operations,
  reference,
} from '../support/integer-products.js';
import { typePairs } from '../support/quantized.js';
import type { Matrix } from '../support/reference.js';
import { Random } from '../support/random.js';
import { ort, wg } from '../support/with-ort.js';

/** The operators, their domain, and their inputs in order. */
const operators = {
  matmulInteger: ['MatMulInteger', '', 'a', 'b', 'aZeroPoint', 'bZeroPoint'],
  qlinearMatmul: [
    'QLinearMatMul',
    '',
    'a',
    'aScale',
    'aZeroPoint',
    'b',
    'bScale',
    'bZeroPoint',
    'yScale',
    'yZeroPoint',
  ],
  dynamicQuantizeMatmul: [
    'DynamicQuantizeMatMul',
    'com.microsoft',
    'a',
    'b',
    'bScale',
    'bZeroPoint',
    'bias',
  ],
  matmulIntegerToFloat: [
    'MatMulIntegerToFloat',
    'com.microsoft',
    'a',
    'b',
    'aScale',
    'bScale',
    'aZeroPoint',
    'bZeroPoint',
    'bias',
  ],
} as const;

/** A call's numbers as float32, and as float16 where the call has it. */
interface Problem {
  readonly call: Call;
  readonly half: boolean;
}

const halfNames = ['aScale', 'bScale', 'yScale', 'bias'];
function toHalf(matrix: Matrix): Matrix {
  const data = new arrayClasses.float16(matrix.data.length);
  Array.from(matrix.data as Float32Array).forEach((value, i) => set(data, 'float16', i, value));
  return { data, shape: matrix.shape, dtype: 'float16' };
}

/** The call as it is made: with float16 numbers, if it has them. */
function given({ call, half }: Problem): Call {
  if (!half) return call;
  const vectors = Object.entries(call.vectors).map(([name, vector]) => [
    name,
    halfNames.includes(name) ? toHalf(vector) : vector,
  ]);
  return {
    ...call,
    vectors: Object.fromEntries(vectors) as Call['vectors'],
    bias: call.bias && toHalf(call.bias),
  };
}

/** What the runtime computes. Constant: B and its parameters are a part of the model. */
async function runOrt(problem: Problem, dtype: DType, constant: boolean): Promise<Matrix> {
  const { op, a, b, vectors, bias } = given(problem);
  const [type, domain, ...names] = operators[op];
  const all = { ...vectors, a, b, bias } as Record<string, Matrix | undefined>;
  const inputs = names.map((name) => {
    const input = all[name];
    const isConstant = constant && /^b(?!ias)/.test(name);
    const declared = { name, dtype: input?.dtype as DType, shape: input?.shape as number[] };
    return input ? { ...declared, ...(isConstant && { data: input.data }) } : null;
  });
  const model = encodeModel({
    type,
    domain,
    opset: problem.half ? 21 : 13,
    inputs,
    output: { dtype },
  });
  const session = await ort.createSession(model);
  const feeds = inputs.flatMap((input) =>
    input && !('data' in input)
      ? [[input.name, ort.tensor(all[input.name] as never)] as const]
      : [],
  );
  const { Y } = await session.run(Object.fromEntries(feeds));
  return { data: Y.data, shape: Y.dims, dtype: Y.type as DType };
}

/** Expects the numbers of `wanted`, rounded to the type of the result. */
function expectSame(found: Matrix, wanted: Matrix, dtype: DType, what: string): void {
  expect([...found.shape, found.dtype], what).toEqual([...wanted.shape, dtype]);
  for (let i = 0; i < wanted.data.length; ++i) {
    const value = Number(wanted.data[i]);
    const expected = dtype === 'float16' ? round(dtype, value) : value;
    const result = get(found.data, dtype, i);
    if (!Object.is(result, expected))
      expect.fail(`Y[${i}] is ${result}; it must be ${expected} ${what}`);
  }
}

const batches = [
  [[], []],
  [[], []],
  [[3], []],
  [[], [2]],
  [[2], [2]],
  [[2, 1], [3]],
  [
    [2, 3],
    [2, 3],
  ],
] as const;

/** Small sizes more often than large ones. */
const size = (random: Random, most = 70) => Math.floor((most + 1) ** random.next());

interface Wanted {
  op: Operation;
  types: { a: Quantized; b: Quantized };
  half?: boolean;
  sizes?: readonly [m: number, n: number, k: number];
  /** Makes the elements of A and B. */
  ends?: boolean;
}

function draw(random: Random, { op, types, half = false, sizes, ends = false }: Wanted): Problem {
  const [m, n, k] = sizes ?? [
    size(random),
    size(random),
    size(random, random.next() < 0.1 ? 3000 : 70),
  ];
  const isDynamic = op === 'dynamicQuantizeMatmul';
  const isRow = !isDynamic && random.next() < 0.1;
  const isColumn = random.next() < 0.1;
  const [ofA, ofB] = k > 1000 ? batches[0] : random.pick(batches);
  const [batchA, batchB] = [isRow ? [] : ofA, isColumn ? [] : ofB];
  const scaleType = half ? 'float16' : 'float32';
  const fill = (dtype: DType, shape: readonly number[], value: () => number): Matrix => {
    const data = new arrayClasses[dtype](shape.reduce((x, y) => x * y, 1)) as Float32Array;
    for (let i = 0; i < data.length; ++i) data[i] = value();
    return { data, shape, dtype };
  };
  const bytes = (dtype: Quantized, shape: readonly number[]) => {
    const { min, max } = quantized[dtype];
    const end = ends ? random.pick([min, max]) : undefined;
    return fill(dtype, shape, () => end ?? random.between(min, max));
  };
  const spread = 2 ** random.between(-130, 20);
  const a = isRow ? [k] : [...batchA, m, k];
  const one = () => random.pick([[], [1]]);
  const columns = isColumn
    ? one()
    : random.pick([[], [1], batchB.length > 0 ? [...batchB, 1, n] : [n]]);
  // The runtime takes scale and zero point per column, and both in one shape.
  const scale = (shape: readonly number[], most: number) =>
    fill('float32', shape, () => {
      const value = random.pick([1, 1, 1, -1]) * most * (0.05 + random.next());
      return random.next() < 0.03 ? 0 : round(scaleType, value);
    });
  const maybe = <T>(value: T) => (random.next() < 0.7 ? value : undefined);
  const isLinear = op === 'qlinearMatmul';
  const [hasA, hasScales] = [!isDynamic, op !== 'matmulInteger'];
  const needed = <T>(value: T) => (isLinear ? value : maybe(value));
  const vectors = {
    aScale: hasA && hasScales ? scale(one(), 0.1) : undefined,
    aZeroPoint: hasA ? needed(bytes(types.a, one())) : undefined,
    bScale: hasScales ? scale(columns, 0.1) : undefined,
    bZeroPoint: needed(bytes(types.b, columns)),
    yScale: isLinear
      ? fill('float32', one(), () => round(scaleType, 0.01 + random.next() * Math.sqrt(k)))
      : undefined,
    yZeroPoint: isLinear ? bytes(types.a, one()) : undefined,
  };
  const call: Call = {
    op,
    a: isDynamic
      ? fill('float32', a, () => Math.fround((random.next() * 2 - 0.7) * spread))
      : bytes(types.a, a),
    b: bytes(types.b, isColumn ? [k] : [...batchB, k, n]),
    vectors: Object.fromEntries(Object.entries(vectors).filter(([, vector]) => vector)),
    bias:
      hasScales && !isLinear
        ? maybe(fill('float32', [isColumn ? 1 : n], () => round(scaleType, random.next() * 9 - 4)))
        : undefined,
  };
  return { call, half };
}

const inOrt = (op: Operation, { a, b }: Wanted['types']) =>
  op === 'matmulInteger' || op === 'dynamicQuantizeMatmul' || a === 'uint8' || b === 'int8';

async function expectAllSame(problem: Problem, random: Random, inRuntime = true): Promise<void> {
  const { call, half } = problem;
  const wanted = reference(call);
  const { op } = call;
  const isFloat = op === 'dynamicQuantizeMatmul' || op === 'matmulIntegerToFloat';
  const dtype = (isFloat && half ? 'float16' : wanted.dtype) as DType;
  const constant = random.pick([false, true]);
  const what = `${describeCall(given(problem))}${constant ? ', constant B' : ''}`;
  if (inRuntime) {
    const found = await runOrt(problem, dtype, constant);
    expectSame(found, wanted, dtype, `of the runtime, ${what}`);
  }
  const run = (args: unknown[]) =>
    (wg as unknown as Record<string, (...args: unknown[]) => Matrix>)[op]?.(...args) as Matrix;
  const made = given(problem);
  expectSame(run(argumentsOf(made)), wanted, dtype, what);
  if (call.b.shape.length < 2) return;
  const weights = wg.pack(call.b, { op: 'qgemm' });
  try {
    expectSame(run(argumentsOf(made, {}, undefined, weights)), wanted, dtype, `${what}, packed`);
  } finally {
    weights.dispose();
  }
}

describe.each(operations)('%s', (op) => {
  it('of any types', async () => {
    const [random, choices] = [new Random(11), new Random(400)];
    for (let i = 0; i < 60; ++i)
      await expectAllSame({ call: drawCall(random, op, true), half: false }, choices);
  }, 60_000);

  const pairs = typePairs.filter((types) => inOrt(op, types));
  const own = op === 'dynamicQuantizeMatmul' ? pairs.filter(({ a }) => a === 'uint8') : pairs;

  it.each(own)('$a x $b', async (types) => {
    const random = new Random(operations.indexOf(op) * 10 + typePairs.indexOf(types));
    for (let i = 0; i < 60; ++i) await expectAllSame(draw(random, { op, types }), random);
  });

  it.each(own)('$a x $b at the ends of their ranges', async (types) => {
    const random = new Random(100 + operations.indexOf(op) * 10 + typePairs.indexOf(types));
    for (const m of [1, 2, 25]) {
      for (let i = 0; i < 3; ++i)
        await expectAllSame(draw(random, { op, types, sizes: [m, 5, 4096], ends: true }), random);
    }
  });

  const takesHalf = op === 'qlinearMatmul' || op === 'matmulIntegerToFloat';
  if (takesHalf) {
    it.each(own)('$a x $b with float16 scales', async (types) => {
      const random = new Random(200 + operations.indexOf(op) * 10 + typePairs.indexOf(types));
      for (let i = 0; i < 40; ++i)
        await expectAllSame(draw(random, { op, types, half: true }), random);
    });
  }
});

it('sums wrap as in the runtime', async () => {
  const random = new Random(300);
  const op = 'matmulInteger';
  for (const types of typePairs) {
    const problem = draw(random, { op, types, sizes: [1, 1, 1] });
    const k = 40_000;
    const full = (dtype: Quantized, shape: number[]): Matrix => ({
      data: new (arrayClasses[dtype] as typeof Int8Array)(k).fill(dtype === 'int8' ? -128 : 255),
      shape,
      dtype,
    });
    const vectors = {
      aZeroPoint: {
        data: new (arrayClasses[types.a] as typeof Int8Array)(1).fill(types.a === 'int8' ? 127 : 0),
        shape: [],
        dtype: types.a,
      },
    };
    const call = { ...problem.call, vectors, a: full(types.a, [1, k]), b: full(types.b, [k, 1]) };
    await expectAllSame({ call, half: false }, random);
  }
});

it('A of dynamicQuantizeMatmul at its extremes', async () => {
  const random = new Random(400);
  const tiny = 2 ** -149;
  for (const numbers of [
    [0, 0],
    [0, -0],
    [1e-45, 0],
    [100 * tiny, -20 * tiny],
    [200 * tiny, 3 * tiny],
    [382 * tiny, tiny],
    [-300 * tiny, 190 * tiny],
    [3.4e38, 1],
    [1.7e38, -1.7e38],
    [127.5, -0.5],
    [-255, -1],
  ]) {
    for (const b of ['int8', 'uint8'] as const) {
      const { call } = draw(random, {
        op: 'dynamicQuantizeMatmul',
        types: { a: 'uint8', b },
        sizes: [1, 1, 2],
      });
      const a: Matrix = { data: Float32Array.from(numbers), shape: [1, 2], dtype: 'float32' };
      const bias = undefined;
      const weights = { data: call.b.data.slice(0, 2), shape: [2, 1], dtype: b };
      const scale: Matrix = { data: Float32Array.of(0.01), shape: [], dtype: 'float32' };
      const own = { op: call.op, a, b: weights, bias, vectors: { bScale: scale } };
      const underflows =
        Math.fround((Math.max(0, ...numbers) - Math.min(0, ...numbers)) / 255) === 0;
      await expectAllSame({ call: own, half: false }, random, !underflows);
    }
  }
});

it('the runtime refuses the problems that it does not get', async () => {
  const random = new Random(500);
  const without = 'Could not find an implementation';
  for (const op of ['qlinearMatmul', 'matmulIntegerToFloat'] as const) {
    const problem = draw(random, { op, types: { a: 'int8', b: 'uint8' }, sizes: [2, 2, 2] });
    await expect(
      runOrt(problem, op === 'qlinearMatmul' ? 'int8' : 'float32', false),
    ).rejects.toThrow(without);
  }
  const { call } = draw(random, {
    op: 'matmulInteger',
    types: { a: 'uint8', b: 'int8' },
    sizes: [2, 2, 2],
  });
  const rows = { data: Uint8Array.of(1, 2), shape: [2], dtype: 'uint8' as const };
  const a = { data: Uint8Array.of(1, 2, 3, 4), shape: [2, 2], dtype: 'uint8' as const };
  const own = { ...call, a, vectors: { aZeroPoint: rows } };
  await expect(runOrt({ call: own, half: false }, 'int32', false)).rejects.toThrow();
});
