/**
 * Calls of qgemm and pack that are refused. Each kind of bad input throws its error. The call writes
 * nothing and keeps no memory, and the instance still works.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type Gemm,
  GemmError,
  HeapTensor,
  PackedWeights,
  type QGemmInputs,
  type QGemmOptions,
} from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import { type Quantized, quantized, quantizedTypes, type Integer } from '../support/dtypes.js';
import { expectError, expectRefusedInWorker, thrown, type Wanted } from '../support/errors.js';
import { expectQGemm, packed } from '../support/quantized.js';
import { expectGemm, float32, int32, tensor } from '../support/tensors.js';

let wg: Gemm;
let other: Gemm;
let theirs: { tensor: HeapTensor; weights: PackedWeights };
let weights: PackedWeights;
let inWorker: WorkerGemm;
beforeAll(async () => {
  [wg, other] = await Promise.all([createGemm(), createGemm()]);
  const { b } = operands();
  theirs = { tensor: other.alloc('int8', [3, 2]), weights: packed(other, b) };
  weights = packed(wg, b);
  inWorker = await startWorker();
});
afterAll(() => {
  wg.dispose();
  other.dispose();
  inWorker.dispose();
});

/** The errors of qgemm, for short. */
const error =
  (code: Wanted['code']) =>
  (argument: string, ...says: (string | RegExp)[]): Wanted => ({
    code,
    op: 'qgemm',
    argument,
    says,
  });
const [shape, dtype, argument, disposed] = [
  error('SHAPE'),
  error('DTYPE'),
  error('ARGUMENT'),
  error('DISPOSED'),
];

const uint8 = (shape: readonly number[], ...numbers: number[]) => ({
  data: Uint8Array.from(numbers),
  shape,
});
const int8 = (shape: readonly number[], ...numbers: number[]) => ({
  data: Int8Array.from(numbers),
  shape,
});

/**
 * What every case starts from: A (2, 3), B (3, 2), C and an out (2, 2) that a good call would
 * overwrite.
 */
function operands() {
  return {
    a: uint8([2, 3], 1, 2, 3, 4, 5, 255),
    aScale: 0.5,
    aZeroPoint: Uint8Array.of(3),
    b: int8([3, 2], 1, -2, 3, -4, 5, -128),
    bScale: Float32Array.of(0.25, 0.75),
    bZeroPoint: int8([2], 7, -7),
    c: int32([2, 2], 1, 2, 3, 4),
    out: float32([2, 2], 9, 9, 9, 9),
  };
}
type Operands = ReturnType<typeof operands>;
function withoutOut() {
  const { a, aScale, aZeroPoint, b, bScale, bZeroPoint, c } = operands();
  return { a, aScale, aZeroPoint, b, bScale, bZeroPoint, c };
}

/**
 * What a call changes of that, of any type, as JavaScript may pass it; `inputs` and `options` stand
 * for all of them.
 */
type Changes = Record<string, unknown>;

function argumentsOf(
  { out, ...operands }: Operands,
  changes: Changes,
): [inputs: QGemmInputs, options: QGemmOptions] {
  const { inputs, options } = changes;
  const ofOptions = Object.entries(changes).filter(([key]) =>
    ['alpha', 'transA', 'transB', 'out', 'options'].includes(key),
  );
  const ofInputs = Object.entries(changes).filter(
    (entry) => !ofOptions.some(([key]) => key === entry[0]),
  );
  return [
    'inputs' in changes ? inputs : { ...operands, ...Object.fromEntries(ofInputs) },
    'options' in changes ? options : { out, ...Object.fromEntries(ofOptions) },
  ] as [QGemmInputs, QGemmOptions];
}

/**
 * Makes the call. Expects its error, nothing written and no memory kept. Explain must throw the
 * same error, also for values.
 */
function expectRefused(bad: (o: Operands) => Changes, wanted: Wanted): void {
  const o = operands();
  const [inputs, options] = argumentsOf(o, bad(o));
  const inUse = wg.memory().inUse;
  const found = thrown(() => wg.qgemm(inputs, options));
  expectError(found, wanted);
  expect((thrown(() => wg.explain('qgemm', inputs, options)) as GemmError).message).toBe(
    (found as GemmError).message,
  );
  const fresh = operands();
  expect(o).toEqual(fresh);
  expect(wg.memory().inUse, 'bytes in use').toBe(inUse);
  expectQGemm(wg, withoutOut(), { alpha: 2, out: fresh.out }, 'the next good call');
  expectQGemm(wg, { ...withoutOut(), b: weights });
}

/** The same call in a worker, with weights of its own where it has packed ones. */
async function callInWorker(o: Operands, changes: Changes): Promise<void> {
  const [inputs, options] = argumentsOf(o, changes) as [never, never];
  const { b } = (inputs ?? {}) as QGemmInputs;
  if (b !== weights) return void (await inWorker.qgemm(inputs, options));
  const theirs = await inWorker.pack(operands().b, { op: 'qgemm' });
  try {
    await inWorker.qgemm({ ...(inputs as object), b: theirs } as never, options);
  } finally {
    theirs.dispose();
  }
}

/** Cases by name. */
type Cases = Record<string, [bad: Changes | ((o: Operands) => Changes), wanted: Wanted]>;

function refuses(what: string, cases: Cases): void {
  describe(what, () => {
    it.each(Object.entries(cases).map(([name, [bad, wanted]]) => ({ name, bad, wanted })))(
      '$name',
      async ({ bad, wanted }) => {
        const change = typeof bad === 'function' ? bad : () => bad;
        expectRefused(change, wanted);
        const call = (o: Operands) => wg.qgemm(...argumentsOf(o, change(o)));
        await expectRefusedInWorker(inWorker, operands, call, (o) => callInWorker(o, change(o)));
      },
    );
  });
}

const anObject = 'an object with a, aScale, aZeroPoint, b';
refuses('refuses inputs', {
  'that are null': [{ inputs: null }, argument('inputs', 'is null', anObject)],
  'that are undefined': [{ inputs: undefined }, argument('inputs', 'is undefined', anObject)],
  'that are a number': [{ inputs: 5 }, argument('inputs', 'is 5', anObject)],
  'that are a string': [{ inputs: 'a' }, argument('inputs', 'is "a"', anObject)],
  'that are a function': [{ inputs: () => ({}) }, argument('inputs', 'a function', anObject)],
  'that are an array': [
    (o) => ({ inputs: [o.a, o.b] }),
    argument('0', '"0"', 'not known', 'aScale'),
  ],
  'that are an empty array': [{ inputs: [] }, argument('A', 'is undefined', 'tensor')],
  'that are A': [(o) => ({ inputs: o.a }), argument('data', '"data"', 'not known', 'bZeroPoint')],
  'without any': [{ inputs: {} }, argument('A', 'is undefined', 'tensor')],
  'with an out': [
    (o) => ({ inputs: o }),
    argument('out', '"out"', 'not known', /; options come second$/),
  ],
  'with a_scale, as ONNX spells it': [
    { a_scale: 1 },
    argument('a_scale', '"a_scale"', 'not known', 'aScale'),
  ],
  'with an unknown one that is undefined': [
    { scale: undefined },
    argument('scale', '"scale"', 'not known'),
  ],
  'with an option': [
    (o) => ({ inputs: { ...argumentsOf(o, {})[0], alpha: 1 } }),
    argument('alpha', '"alpha"', 'not known'),
  ],
  'without a': [{ a: undefined }, argument('A', 'is undefined', 'tensor')],
  'without b': [{ b: null }, argument('B', 'is null', 'tensor')],
  'without aScale': [
    { aScale: undefined },
    argument('aScale', 'is undefined', 'a number, an array or a tensor'),
  ],
  'without bScale': [
    { bScale: null },
    argument('bScale', 'is null', 'a number, an array or a tensor'),
  ],
});

refuses('refuses an operand that is not a tensor:', {
  'A is a number': [{ a: 5 }, argument('A', 'is 5', '{ data, shape }')],
  'A is a bare array': [(o) => ({ a: o.a.data }), dtype('A', 'without a shape', 'Uint8Array')],
  'A is a tensor of a plain array': [
    { a: { data: [1, 2, 3, 4, 5, 6], shape: [2, 3] } },
    dtype('A', /or Int8Array or Uint8Array or Uint16Array; convert it by tensor\(\.\.\.\)$/),
  ],
  'B is a string': [{ b: 'B' }, argument('B', 'is "B"', 'tensor')],
  'C is a bigint': [{ c: 1n }, argument('C', '1n', 'int32', 'int64 and uint64')],
  'C is true': [{ c: true }, argument('C', 'is true', 'tensor')],
  'aScale is a bigint': [{ aScale: 1n }, argument('aScale', '1n', 'tensor')],
  'aScale is a string': [{ aScale: '1' }, argument('aScale', '"1"', 'tensor')],
  'bScale is a plain array': [{ bScale: [1, 2] }, dtype('bScale', 'an array', 'Float32Array')],
  'bScale is a DataView': [
    { bScale: new DataView(new ArrayBuffer(8)) },
    dtype('bScale', 'undefined', 'must be Float32Array or '),
  ],
  'aZeroPoint is true': [{ aZeroPoint: true }, argument('aZeroPoint', 'is true', 'tensor')],
  'bZeroPoint is a bigint': [{ bZeroPoint: 1n }, argument('bZeroPoint', '1n', 'tensor')],
  'aZeroPoint is an object': [
    { aZeroPoint: {} },
    dtype('aZeroPoint', 'undefined', 'Int8Array or Uint8Array'),
  ],
  'yScale is a symbol': [{ yScale: Symbol('y') }, argument('yScale', 'a symbol', 'tensor')],
  'yZeroPoint is a function': [
    { yScale: 1, yZeroPoint: () => 1 },
    argument('yZeroPoint', 'a function', 'tensor'),
  ],
  'out is null': [{ out: null }, argument('out', 'is null', 'tensor')],
  'out is a number': [{ out: 1 }, argument('out', 'is 1', 'tensor')],
  'out is a bare array': [
    (o) => ({ out: o.out.data }),
    dtype('out', 'without a shape', 'Float32Array'),
  ],
});

refuses('refuses types:', {
  'A float32': [{ a: float32([2, 3], 1, 2, 3, 4, 5, 6) }, dtype('A', 'float32', 'int8 or uint8')],
  'A int32': [{ a: int32([2, 3], 1, 2, 3, 4, 5, 6) }, dtype('A', 'int32', 'int8 or uint8')],
  'B float16': [
    { b: tensor('float16', [3, 2], [1, 2, 3, 4, 5, 6]) },
    dtype('B', 'float16', 'int8 or uint8'),
  ],
  'B uint32': [
    { b: tensor('uint32', [3, 2], [1, 2, 3, 4, 5, 6]) },
    dtype('B', 'uint32', 'int8 or uint8'),
  ],
  'B a Uint8ClampedArray': [
    (o) => ({ b: { ...o.b, data: new Uint8ClampedArray(6) } }),
    dtype('B', 'Uint8ClampedArray', 'Int8Array'),
  ],
  'A of a dtype that is not its array’s': [
    (o) => ({ a: { ...o.a, dtype: 'int8' } }),
    dtype('A', '"int8"', 'Uint8Array', 'uint8'),
  ],
  'C float32': [{ c: float32([2], 1, 2) }, dtype('C', 'float32', 'int32')],
  'C int8': [{ c: int8([2], 1, 2) }, dtype('C', 'int8', 'int32')],
  'aScale a Float64Array': [{ aScale: Float64Array.of(1) }, dtype('aScale', 'float64', 'float32')],
  'aScale int8': [{ aScale: int8([], 1) }, dtype('aScale', 'int8', 'float32')],
  'bScale a Uint16Array': [
    { bScale: Uint16Array.of(1) },
    dtype('bScale', 'Uint16Array', 'float16 or bfloat16'),
  ],
  'bScale int64': [{ bScale: BigInt64Array.of(1n) }, dtype('bScale', 'int64', 'float32')],
  'yScale int32': [{ yScale: int32([], 1), yZeroPoint: 1 }, dtype('yScale', 'int32', 'float32')],
  'aZeroPoint of another type than A': [
    { aZeroPoint: Int8Array.of(1) },
    dtype('aZeroPoint', 'int8', 'uint8'),
  ],
  'aZeroPoint a Float32Array': [
    { aZeroPoint: Float32Array.of(1) },
    dtype('aZeroPoint', 'float32', 'uint8'),
  ],
  'aZeroPoint a Uint8ClampedArray': [
    { aZeroPoint: Uint8ClampedArray.of(1) },
    dtype('aZeroPoint', 'Uint8Array'),
  ],
  'bZeroPoint of another type than B': [
    { bZeroPoint: uint8([2], 1, 2) },
    dtype('bZeroPoint', 'uint8', 'int8'),
  ],
  'bZeroPoint of another type than packed B': [
    () => ({ b: weights, bZeroPoint: Uint8Array.of(1) }),
    dtype('bZeroPoint', 'uint8', 'int8'),
  ],
  'bZeroPoint int32': [{ bZeroPoint: Int32Array.of(1) }, dtype('bZeroPoint', 'int32', 'int8')],
  'yZeroPoint a Float32Array': [
    { yScale: 1, yZeroPoint: Float32Array.of(1) },
    dtype('yZeroPoint', 'float32', 'int8 or uint8'),
  ],
  'yZeroPoint int32': [
    { yScale: 1, yZeroPoint: int32([], 1) },
    dtype('yZeroPoint', 'int32', 'int8 or uint8'),
  ],
  'out int8 without yScale': [
    { out: int8([2, 2], 1, 2, 3, 4) },
    dtype('out', 'int8', 'float32', 'yScale is absent'),
  ],
  'out float32 with yScale': [
    { yScale: 1, yZeroPoint: 1 },
    dtype('out', 'float32', 'uint8', 'yZeroPoint'),
  ],
  'out of the other 8-bit type': [
    { yScale: 1, yZeroPoint: 1, out: int8([2, 2], 1, 2, 3, 4) },
    dtype('out', 'int8', 'uint8', 'the type of yZeroPoint'),
  ],
  'out int32': [{ out: int32([2, 2], 1, 2, 3, 4) }, dtype('out', 'int32', 'float32')],
});

refuses('refuses shapes:', {
  'A of rank 1': [{ a: uint8([3], 1, 2, 3) }, shape('A', '[3]', 'rank 1', 'rank 2')],
  'A of rank 3': [{ a: uint8([1, 1, 3], 1, 2, 3) }, shape('A', '[1, 1, 3]', 'rank 3', 'rank 2')],
  'B of rank 0': [{ b: int8([], 1) }, shape('B', '[]', 'rank 0', 'rank 2')],
  'A without': [
    (o) => ({ a: { data: o.a.data } }),
    shape('A', 'shape undefined', 'an array of whole numbers'),
  ],
  'A short': [{ a: uint8([2, 3], 1, 2, 3, 4, 5) }, shape('A', '5 elements', '[2, 3]', 'needs 6')],
  'B with strides that are short': [
    (o) => ({ b: { ...o.b, strides: [3, 1] } }),
    shape('B', '6 elements', '[3, 1]', 'need 8'),
  ],
  'K of A and B': [
    { b: int8([2, 2], 1, 2, 3, 4) },
    shape('B', '[2, 3]', '[2, 2]', 'K is 3 in A and 2 in B'),
  ],
  'K of A and B, transposed': [
    (o) => ({ b: int8([2, 3], 1, 2, 3, 4, 5, 6), a: o.a, transA: true, transB: true }),
    shape('B', 'transposed', 'K is 2 in A and 3 in B'),
  ],
  'Y of more than 2^53 elements': [
    { inputs: { a: uint8([2 ** 30, 0]), aScale: 1, b: int8([0, 2 ** 30]), bScale: 1 } },
    shape('out', '[1073741824, 1073741824]', '2^53'),
  ],
  'C (M)': [
    { a: uint8([3, 3], 1, 2, 3, 4, 5, 6, 7, 8, 9), c: int32([3], 1, 2, 3), out: undefined },
    shape('C', '[3]', '[3, 2]', '[M, 1]'),
  ],
  'C (N, 1)': [
    {
      b: int8([3, 3], 1, 2, 3, 4, 5, 6, 7, 8, 9),
      bScale: 1,
      bZeroPoint: 0,
      c: int32([3, 1], 1, 2, 3),
      out: undefined,
    },
    shape('C', '[3, 1]', '[2, 3]'),
  ],
  'C of rank 3': [{ c: int32([1, 2, 2], 1, 2, 3, 4) }, shape('C', '[1, 2, 2]', '[2, 2]')],
  'C empty': [{ c: int32([0]) }, shape('C', '[0]', '[2, 2]')],
  'out that is not (M, N)': [{ out: float32([4], 1, 2, 3, 4) }, shape('out', '[4]', '[2, 2]')],
  'out of which elements share places': [
    { out: { data: new Float32Array(3), shape: [2, 2], strides: [1, 1] } },
    shape('out', '[1, 1]', 'share'),
  ],
});

const [oneValue, oneOrEach] = ['it must be one value', 'one value or one per column'];
refuses('refuses scales and zero points of a shape:', {
  'aScale [2]': [{ aScale: Float32Array.of(1, 2) }, shape('aScale', '[2]', oneValue)],
  'aScale [1, 1]': [{ aScale: float32([1, 1], 1) }, shape('aScale', '[1, 1]', oneValue)],
  'aScale empty': [{ aScale: new Float32Array(0) }, shape('aScale', '[0]', oneValue)],
  'aScale short': [
    { aScale: { data: Float32Array.of(1), shape: [2] } },
    shape('aScale', '1 elements', 'needs 2'),
  ],
  'aZeroPoint a row': [{ aZeroPoint: Uint8Array.of(1, 2) }, shape('aZeroPoint', '[2]', oneValue)],
  'aZeroPoint a column of A’s': [
    { aZeroPoint: uint8([3], 1, 2, 3) },
    shape('aZeroPoint', '[3]', oneValue),
  ],
  'a bScale for each row': [
    { bScale: Float32Array.of(1, 2, 3) },
    shape('bScale', '[3]', '2 columns', oneOrEach),
  ],
  'bScale [1, N]': [{ bScale: float32([1, 2], 1, 2) }, shape('bScale', '[1, 2]', oneOrEach)],
  'bScale empty': [{ bScale: new Float32Array(0) }, shape('bScale', '[0]', oneOrEach)],
  'a bScale for each row, with transB': [
    { b: int8([2, 3], 1, 2, 3, 4, 5, 6), transB: true, bScale: Float32Array.of(1, 2, 3) },
    shape('bScale', '[3]', '2 columns'),
  ],
  'a bScale for each row, with packed weights': [
    () => ({ b: weights, bScale: Float32Array.of(1, 2, 3) }),
    shape('bScale', '[3]', '2 columns'),
  ],
  'a bZeroPoint for each row': [
    { bZeroPoint: Int8Array.of(1, 2, 3) },
    shape('bZeroPoint', '[3]', '2 columns', oneOrEach),
  ],
  'bZeroPoint [N, 1]': [
    { bZeroPoint: int8([2, 1], 1, 2) },
    shape('bZeroPoint', '[2, 1]', oneOrEach),
  ],
  'bZeroPoint with gaps, short': [
    { bZeroPoint: { data: Int8Array.of(1, 2), shape: [2], strides: [2] } },
    shape('bZeroPoint', '2 elements', 'need 3'),
  ],
  'yScale [N]': [
    { yScale: Float32Array.of(1, 2), yZeroPoint: 1 },
    shape('yScale', '[2]', oneValue),
  ],
  'yZeroPoint [N]': [
    { yScale: 1, yZeroPoint: Int8Array.of(1, 2) },
    shape('yZeroPoint', '[2]', oneValue),
  ],
});

refuses('refuses one of yScale and yZeroPoint alone:', {
  yScale: [
    { yScale: 1 },
    argument('yZeroPoint', 'yZeroPoint is absent and yScale is given', 'both'),
  ],
  'yScale, the other null': [
    { yScale: Float32Array.of(1), yZeroPoint: null },
    argument('yZeroPoint', 'yScale is given', 'both'),
  ],
  yZeroPoint: [
    { yZeroPoint: 0 },
    argument('yScale', 'yScale is absent and yZeroPoint is given', 'both'),
  ],
});

const whole = 'it must be whole and in the range of the type';
refuses('refuses as C', {
  'a fraction': [{ c: 0.5 }, argument('C', '0.5', 'int32', whole)],
  NaN: [{ c: NaN }, argument('C', 'NaN', 'int32', whole)],
  '2^31': [{ c: 2 ** 31 }, argument('C', '2147483648', 'int32', whole)],
});

describe.each(quantizedTypes)('refuses as a zero point of %s', (type) => {
  const { min, max } = quantized[type];
  const one = tensor(type, [1, 1], [1]);
  const fresh: Changes = {
    a: one,
    b: one,
    aZeroPoint: 0,
    bScale: 1,
    bZeroPoint: 0,
    c: null,
    out: undefined,
  };
  it.each([min - 1, max + 1, 0.5, NaN, Infinity, -Infinity, 2 ** 32, 1e300])(
    'the number %d',
    (value) => {
      const says = [String(value), type, whole];
      expectRefused(() => ({ ...fresh, aZeroPoint: value }), argument('aZeroPoint', ...says));
      expectRefused(() => ({ ...fresh, bZeroPoint: value }), argument('bZeroPoint', ...says));
      expectRefused(
        () => ({ ...fresh, yScale: 1, yZeroPoint: value }),
        argument('yZeroPoint', ...says),
      );
    },
  );
  it('a number that only packed weights of another type would hold', () => {
    using mine = packed(wg, one);
    expectRefused(
      () => ({ ...fresh, b: mine, bZeroPoint: type === 'int8' ? 200 : -5 }),
      argument('bZeroPoint', type, whole),
    );
  });
});

const scaleRule = 'a scale must be finite and above 0';
const bad: [number, string][] = [
  [NaN, 'NaN'],
  [0, '0'],
  [-0, '0'],
  [1e-50, '0'],
  [-1, 'negative'],
  [-Infinity, 'negative'],
  [Infinity, 'infinite'],
  [1e39, 'infinite'],
];
describe.each(bad)('refuses as a scale %d', (value, found) => {
  const cases: [name: string, argument: string, changes: (scale: unknown) => Changes][] = [
    ['aScale', 'aScale', (aScale) => ({ aScale })],
    ['bScale', 'bScale', (bScale) => ({ bScale })],
    ['yScale', 'yScale', (yScale) => ({ yScale, yZeroPoint: 3, out: undefined })],
  ];
  it.each(cases)('%s: as a number, in an array, in a tensor, in the heap', (_, name, changes) => {
    using heap = wg.alloc('float32', []);
    heap.data[0] = value;
    for (const scale of [value, Float32Array.of(value), float32([], value), heap]) {
      expectRefused(() => changes(scale), argument(name, `is ${found};`, scaleRule));
    }
  });
  it('in any column of bScale', () => {
    const b = int8([3, 40], ...Array<number>(120).fill(1));
    for (const column of [0, 15, 16, 39]) {
      const bScale = new Float32Array(40).fill(1);
      bScale[column] = value;
      expectRefused(
        () => ({ b, bScale, bZeroPoint: 0, c: null, out: undefined }),
        argument('bScale', `is ${found};`, scaleRule),
      );
    }
  });
});

refuses('refuses factors that are not finite:', {
  'alpha NaN': [{ alpha: NaN }, argument('alpha', 'alpha', 'not finite')],
  'alpha infinite': [{ alpha: -Infinity }, argument('alpha', 'not finite')],
  'alpha infinite in float32': [{ alpha: 1e39 }, argument('alpha', 'not finite in float32')],
  'alpha * aScale': [
    { alpha: 1e20, aScale: 1e20 },
    argument('aScale', 'alpha * aScale', 'not finite'),
  ],
  'aScale * bScale': [
    { aScale: 1e20, bScale: Float32Array.of(1, 1e20) },
    argument('bScale', 'aScale * bScale', 'not finite'),
  ],
  'aScale * bScale / yScale': [
    { aScale: 1e20, bScale: 1e10, yScale: 1e-20, yZeroPoint: 0, out: undefined },
    argument('bScale', 'divided by yScale', 'not finite'),
  ],
  'aScale * bScale, though yScale would bring it back': [
    { aScale: 1e20, bScale: 1e20, yScale: 1e20, yZeroPoint: 0, out: undefined },
    argument('bScale', 'not finite'),
  ],
});

refuses('refuses the option', {
  'options is a number': [{ options: 5 }, argument('options', 'is 5', 'an object')],
  'options is a function': [{ options: () => 1 }, argument('options', 'a function', 'an object')],
  'beta, which QGemm has not': [
    { options: { beta: 1 } },
    argument('beta', '"beta"', 'not known', 'alpha, transA, transB, activation, out'),
  ],
  'alpha: a string': [{ alpha: '1' }, argument('alpha', '"1"', 'must be a number')],
  'alpha: null': [{ alpha: null }, argument('alpha', 'null', 'must be a number')],
  'alpha: a bigint': [{ alpha: 1n }, argument('alpha', '1n', 'must be a number')],
  'transA: a string': [{ transA: 'no' }, argument('transA', '"no"', 'a boolean or a number')],
  'transB: NaN': [{ transB: NaN }, argument('transB', 'NaN', 'a boolean or a number')],
  'transB: null': [{ transB: null }, argument('transB', 'null', 'a boolean or a number')],
});

describe('refuses an out that overlaps', () => {
  /** A call in one buffer, whose parts do not overlap unless a name is given another place. */
  function inOneBuffer(heap: boolean, places: Record<string, number>) {
    const at = {
      a: 0,
      aScale: 16,
      aZeroPoint: 32,
      b: 48,
      bScale: 64,
      bZeroPoint: 80,
      c: 96,
      yScale: 128,
      yZeroPoint: 144,
      out: 160,
      ...places,
    };
    const arena = wg.alloc('uint8', [192]);
    const [buffer, start] = heap
      ? [arena.data.buffer, arena.data.byteOffset]
      : [new ArrayBuffer(192), 0];
    const of = <T>(
      ArrayClass: new (buffer: ArrayBufferLike, at: number, length: number) => T,
      name: keyof typeof at,
      shape: number[],
    ) => ({
      data: new ArrayClass(
        buffer,
        start + at[name],
        shape.reduce((x, y) => x * y, 1),
      ),
      shape,
    });
    const inputs = {
      a: of(Uint8Array, 'a', [2, 3]),
      aScale: of(Float32Array, 'aScale', []),
      aZeroPoint: of(Uint8Array, 'aZeroPoint', [1]),
      b: of(Int8Array, 'b', [3, 2]),
      bScale: of(Float32Array, 'bScale', [2]),
      bZeroPoint: of(Int8Array, 'bZeroPoint', [2]),
      c: of(Int32Array, 'c', [2, 2]),
      yScale: of(Float32Array, 'yScale', [1]),
      yZeroPoint: of(Uint8Array, 'yZeroPoint', []),
    };
    for (const scale of [inputs.aScale, inputs.bScale, inputs.yScale]) scale.data.fill(1);
    return {
      arena,
      inputs,
      out: of(Uint8Array, 'out', [2, 2]),
      bytes: () => new Uint8Array(buffer, start, 192).slice(),
    };
  }
  // An out of 4 bytes that has only one in common with the input: its first, or its last.
  const names = {
    a: ['A', 5],
    aScale: ['aScale', 13],
    aZeroPoint: ['aZeroPoint', 32],
    b: ['B', 45],
    bScale: ['bScale', 71],
    bZeroPoint: ['bZeroPoint', 81],
    c: ['C', 111],
    yScale: ['yScale', 125],
    yZeroPoint: ['yZeroPoint', 141],
  } as const;

  describe.each([false, true])('in the heap: %o', (heap) => {
    it.each(Object.entries(names))('%s', (_, [name, out]) => {
      const { arena, inputs, out: y, bytes } = inOneBuffer(heap, { out });
      const before = bytes();
      const inUse = wg.memory().inUse;
      expectError(
        thrown(() => wg.qgemm(inputs, { out: y })),
        argument('out', `overlaps ${name} `, 'must overlap no input'),
      );
      expect(bytes()).toEqual(before);
      expect(wg.memory().inUse).toBe(inUse);
      arena.dispose();
    });
    it('nothing, which is taken', () => {
      const { arena, inputs, out } = inOneBuffer(heap, {});
      expectQGemm(wg, inputs, { out });
      arena.dispose();
    });
  });

  it('C exactly, which gemm would take', () => {
    const buffer = new ArrayBuffer(16);
    expectRefused(
      () => ({
        c: { data: new Int32Array(buffer), shape: [2, 2] },
        out: { data: new Float32Array(buffer), shape: [2, 2] },
      }),
      argument('out', 'overlaps C', 'must overlap no input'),
    );
  });
});

const places: [key: string, name: string, dtype: Quantized | 'float32' | 'int32'][] = [
  ['a', 'A', 'uint8'],
  ['aScale', 'aScale', 'float32'],
  ['aZeroPoint', 'aZeroPoint', 'uint8'],
  ['b', 'B', 'int8'],
  ['bScale', 'bScale', 'float32'],
  ['bZeroPoint', 'bZeroPoint', 'int8'],
  ['c', 'C', 'int32'],
  ['yScale', 'yScale', 'float32'],
  ['yZeroPoint', 'yZeroPoint', 'uint8'],
  ['out', 'out', 'float32'],
];

describe('refuses what is disposed, of another instance, or gone:', () => {
  it.each(places)('a tensor as %s', (key, name, dtype) => {
    const gone = wg.alloc(dtype, [2, 2]);
    const view: unknown = gone.data;
    gone.dispose();
    expectRefused(() => ({ [key]: gone }), disposed(name, 'disposed tensor'));
    expectRefused(() => ({ [key]: theirs.tensor }), argument(name, 'another instance', 'copy'));
    expectRefused(
      () => ({ [key]: { data: view, shape: [2, 2] } }),
      disposed(name, 'a view of a tensor that was disposed'),
    );
    if (/Scale|Point/.test(key))
      expectRefused(
        () => ({ [key]: view }),
        disposed(name, 'a view of a tensor that was disposed'),
      );
  });

  it.each(places)('a detached array as %s', (key, name, dtype) => {
    const { data } = tensor(dtype, [4], [1, 2, 3, 4]);
    structuredClone(data.buffer, { transfer: [data.buffer as ArrayBuffer] });
    expectRefused(
      () => ({ [key]: { data, shape: [2, 2] } }),
      argument(name, 'detached', 'transferred'),
    );
    if (/Scale|Point/.test(key))
      expectRefused(() => ({ [key]: data }), argument(name, 'detached', 'transferred'));
  });

  it('weights', () => {
    const gone = packed(wg, operands().b);
    gone.dispose();
    expect(gone.disposed).toBe(true);
    expectRefused(() => ({ b: gone }), disposed('B', 'disposed weights'));
    expectRefused(
      () => ({ b: theirs.weights }),
      argument('B', 'weights of another instance', 'pack them here'),
    );
  });

  it('an instance, its tensors and its weights', async () => {
    const instance = await createGemm();
    const inputs = withoutOut();
    const mine = packed(instance, inputs.b);
    instance.dispose();
    expect(mine.disposed).toBe(true);
    const wanted = (op: string): Wanted => ({
      code: 'DISPOSED',
      op,
      argument: 'instance',
      says: ['disposed', 'createGemm()'],
    });
    for (const call of [
      () => instance.qgemm(inputs),
      () => instance.qgemm({ ...inputs, b: mine }),
      () => instance.explain('qgemm', inputs),
    ]) {
      expectError(thrown(call), wanted('qgemm'));
    }
    expectError(
      thrown(() => instance.pack(inputs.b, { op: 'qgemm' })),
      wanted('pack'),
    );
    expectRefused(() => ({ b: mine }), argument('B', 'another instance'));
  });
});

describe('refuses packed weights', () => {
  it.each(places.filter(([key]) => key !== 'b'))('as %s', (key, name) => {
    expectRefused(
      () => ({ [key]: weights }),
      argument(name, 'packed weights', 'can only stand for B'),
    );
  });

  it('of another K', () => {
    expectRefused(
      () => ({ a: uint8([2, 2], 1, 2, 3, 4), b: weights }),
      shape('B', '[2, 2]', 'packed from shape [3, 2]', 'K is 2 in A and 3 in B'),
    );
    expectRefused(
      (o) => ({ a: o.a, b: weights, transA: true }),
      shape('B', 'A (transposed)', 'K is 2 in A and 3 in B'),
    );
  });

  it('with transB', () => {
    for (const transB of [true, 1])
      expectRefused(() => ({ b: weights, transB }), argument('transB', 'B is packed', 'trans'));
  });

  it('in gemm', () => {
    const c = float32([2, 2], 1, 2, 3, 4);
    const wanted = (code: Wanted['code'], name: string, ...says: string[]): Wanted => ({
      code,
      op: 'gemm',
      argument: name,
      says,
    });
    const gemm = (...[a, b, c, out]: unknown[]) =>
      thrown(() => wg.gemm(a as never, b as never, c as never, { out } as never));
    expectError(
      gemm(c, weights),
      wanted('PACK_MISMATCH', 'B', 'packed for qgemm', 'pack it for gemm'),
    );
    expectError(gemm(weights, c), wanted('ARGUMENT', 'A', 'can only stand for B'));
    expectError(gemm(c, c, weights), wanted('ARGUMENT', 'C', 'can only stand for B'));
    expectError(gemm(c, c, null, weights), wanted('ARGUMENT', 'out', 'can only stand for B'));
    expectError(
      thrown(() => wg.explain('gemm', c, weights as never)),
      wanted('PACK_MISMATCH', 'B', 'packed for qgemm'),
    );
    expectGemm(wg, c, c);
  });

  it('that are none', () => {
    const prototype = PackedWeights.prototype;
    const { op, dtype: type, shape } = weights;
    const fakes: unknown[] = [
      Object.create(prototype),
      Object.create(prototype, { op: { value: op } }),
      Object.create(weights),
      new Proxy(weights, {}),
      { op, type, shape },
      Object.assign(() => 0, { op }),
      Object.create(HeapTensor.prototype),
    ];
    for (const fake of fakes) {
      const found = thrown(() =>
        wg.qgemm({ ...withoutOut(), b: fake } as QGemmInputs),
      ) as GemmError;
      expect(['DTYPE', 'ARGUMENT']).toContain(found.code);
      expectRefused(() => ({ b: fake }), error(found.code)('B'));
      expectPackRefused(fake, { op: 'qgemm' }, error(found.code)('B'));
    }
  });

  it('that change', () => {
    for (const change of [
      { shape: [300, 2] },
      { dtype: 'uint8' },
      { op: 'gemm' },
      { byteLength: 1 },
      { own: 1 },
    ]) {
      expect(() => Object.assign(weights, change)).toThrow(TypeError);
    }
    expect(() => (weights.shape as number[]).push(3)).toThrow(TypeError);
  });
});

/** Packs. Expects the error, and that no memory is kept. */
function expectPackRefused(b: unknown, options: unknown, wanted: Wanted): void {
  const before = wg.memory();
  expectError(
    thrown(() => wg.pack(b as never, options as never)),
    { ...wanted, op: 'pack' },
  );
  expect(wg.memory()).toEqual(before);
  using good = packed(wg, operands().b);
  expectQGemm(wg, { ...withoutOut(), b: good });
}

describe('pack refuses', () => {
  const b = int8([3, 2], 1, 2, 3, 4, 5, 6);
  const op = 'qgemm';
  const of = (code: Wanted['code'], argument: string, ...says: (string | RegExp)[]): Wanted => ({
    code,
    argument,
    says,
  });
  const aFlag = 'a boolean or a number';
  const cases: [name: string, b: unknown, options: unknown, wanted: Wanted][] = [
    ['no options', b, undefined, of('ARGUMENT', 'op', 'is undefined', "'qgemm'")],
    ['null as options', b, null, of('ARGUMENT', 'op', 'is undefined', "'qgemm'")],
    ['a string as options', b, 'qgemm', of('ARGUMENT', 'options', '"qgemm"', 'an object')],
    ['no op', b, { trans: true }, of('ARGUMENT', 'op', 'is undefined', "'qgemm'")],
    ['an unknown op', b, { op: 'QGemm' }, of('ARGUMENT', 'op', '"QGemm"', "'qgemm'")],
    [
      'an op that is an object',
      b,
      { op: { toString: () => 'qgemm' } },
      of('ARGUMENT', 'op', 'an object', "'qgemm'"),
    ],
    ['int8 for gemm', b, { op: 'gemm' }, of('DTYPE', 'B', 'int8', 'qgemm')],
    ['int8 for matmul', b, { op: 'matmul' }, of('DTYPE', 'B', 'int8', 'qgemm')],
    [
      'an unknown option',
      b,
      { op, transB: true },
      of('ARGUMENT', 'transB', '"transB"', 'not known', 'op, trans'),
    ],
    ['trans: a string', b, { op, trans: 'yes' }, of('ARGUMENT', 'trans', '"yes"', aFlag)],
    ['trans: NaN', b, { op, trans: NaN }, of('ARGUMENT', 'trans', 'NaN', aFlag)],
    ['trans: null', b, { op, trans: null }, of('ARGUMENT', 'trans', 'null', aFlag)],
    ['nothing', undefined, { op }, of('ARGUMENT', 'B', 'is undefined', 'tensor')],
    ['null', null, { op }, of('ARGUMENT', 'B', 'is null', 'tensor')],
    ['a number', 5, { op }, of('ARGUMENT', 'B', 'is 5', 'tensor')],
    ['a bare array', b.data, { op }, of('DTYPE', 'B', 'without a shape', 'Int8Array')],
    [
      'float32',
      float32([3, 2], 1, 2, 3, 4, 5, 6),
      { op },
      of('DTYPE', 'B', 'float32', 'int8 or uint8'),
    ],
    ['int32', int32([3, 2], 1, 2, 3, 4, 5, 6), { op }, of('DTYPE', 'B', 'int32', 'int8 or uint8')],
    [
      'a Uint16Array without dtype',
      { ...b, data: new Uint16Array(6) },
      { op },
      of('DTYPE', 'B', 'Uint16Array', 'no dtype'),
    ],
    [
      'a dtype that is not the array’s',
      { ...b, dtype: 'uint8' },
      { op },
      of('DTYPE', 'B', '"uint8"', 'Int8Array'),
    ],
    ['no shape', { data: b.data }, { op }, of('SHAPE', 'B', 'undefined', 'an array')],
    ['rank 1', { ...b, shape: [6] }, { op }, of('SHAPE', 'B', '[6]', 'rank 1', 'rank 2')],
    [
      'an array that is short',
      { ...b, shape: [3, 3] },
      { op },
      of('SHAPE', 'B', '6 elements', 'needs 9'),
    ],
    [
      'strides of another rank',
      { ...b, strides: [1] },
      { op },
      of('SHAPE', 'B', '[1]', 'one stride per axis'),
    ],
    ['negative sizes', { ...b, shape: [-3, -2] }, { op }, of('SHAPE', 'B', '-3')],
    [
      'more than 2^53 elements',
      { data: new Int8Array(0), shape: [0, 2 ** 53 - 1, 2] },
      { op },
      of('SHAPE', 'B', '2^53'),
    ],
  ];
  it.each(cases)('%s', (_, b, options, wanted) => {
    expectPackRefused(b, options, wanted);
  });

  it('packed weights, and tensors that are not there or not here', () => {
    const gone = wg.alloc('int8', [3, 2]);
    const view = gone.data;
    gone.dispose();
    const detached = int8([3, 2], 1, 2, 3, 4, 5, 6);
    structuredClone(detached.data.buffer, { transfer: [detached.data.buffer] });
    expectPackRefused(weights, { op }, of('ARGUMENT', 'B', 'packed already'));
    expectPackRefused(theirs.weights, { op }, of('ARGUMENT', 'B', 'packed already'));
    expectPackRefused(gone, { op }, of('DISPOSED', 'B', 'disposed tensor'));
    expectPackRefused(theirs.tensor, { op }, of('ARGUMENT', 'B', 'another instance'));
    expectPackRefused(
      { data: view, shape: [3, 2] },
      { op },
      of('DISPOSED', 'B', 'a view of a tensor that was disposed'),
    );
    expectPackRefused(detached, { op }, of('ARGUMENT', 'B', 'detached'));
  });

  it('more than there is memory for', async () => {
    using instance = await createGemm({ maxMemory: 100_000 });
    const wanted: Wanted = {
      code: 'OUT_OF_MEMORY',
      op: 'pack',
      argument: '',
      says: [/no memory for/, 'in use'],
    };
    const tooWide = { data: new Int8Array(120_000), shape: [1, 120_000] };
    // There is no room for the copy, or none for the weights behind it.
    for (const width of [120_000, 60_000]) {
      const b = { data: tooWide.data.subarray(0, width), shape: [1, width] };
      expectError(
        thrown(() => instance.pack(b, { op })),
        wanted,
      );
      expect(instance.memory().inUse).toBe(0);
    }
    for (const size of [2 ** 29, 2 ** 30, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 52]) {
      for (const shape of [
        [size, 1],
        [1, size],
      ]) {
        const b = { data: new Int8Array(1), shape, strides: [0, 0] };
        expectError(
          thrown(() => instance.pack(b, { op })),
          wanted,
        );
        expectError(
          thrown(() => instance.pack({ ...b, shape: shape.toReversed() }, { op, trans: true })),
          wanted,
        );
      }
    }
    expect(instance.memory().inUse).toBe(0);
    packed(instance, operands().b);
  });
});

describe('refuses to take more memory than there is', () => {
  const size = 64;
  const square = { data: new Uint8Array(size * size).fill(3), shape: [size, size] };
  const scales = { aScale: 1, bScale: 1 };
  const wanted: Wanted = {
    code: 'OUT_OF_MEMORY',
    op: 'qgemm',
    argument: '',
    says: [/no memory for \d+ bytes/, 'in use'],
  };

  it('for copies of arrays', async () => {
    using instance = await createGemm({ maxMemory: 10_000 });
    const held = instance.alloc('uint8', [9500]); // or it would be computed block by block
    const { inUse } = instance.memory();
    for (const out of [undefined, float32([size, size], ...Array<number>(size * size).fill(9))]) {
      expectError(
        thrown(() => instance.qgemm({ a: square, b: square, ...scales }, { out } as QGemmOptions)),
        wanted,
      );
      expect(out?.data.every((value) => value === 9)).not.toBe(false);
      expect(instance.memory().inUse).toBe(inUse);
    }
    held.dispose();
    expectQGemm(instance, withoutOut());
  });

  it('for scratch, to the byte', async () => {
    const { scratch } = wg.explain('qgemm', { a: square, b: square, ...scales });
    const room = 2 * (size * size + 64) + (4 * size * size + 64);
    for (const missing of [1, 0]) {
      using instance = await createGemm({ maxMemory: room + scratch + 64 - missing });
      const [a, b] = [instance.alloc('uint8', [size, size]), instance.alloc('int8', [size, size])];
      const out = instance.alloc('float32', [size, size]);
      out.data.fill(9);
      const { inUse } = instance.memory();
      const run = () => instance.qgemm({ a, b, ...scales }, { out });
      if (missing === 0) run();
      else
        expectError(thrown(run), {
          ...wanted,
          says: [/no memory for \d+ bytes of scratch/, 'in use'],
        });
      expect(out.data.every((value) => value === 9 * missing)).toBe(true);
      expect(instance.memory().inUse).toBe(inUse);
    }
  });
});

describe('when a getter among the arguments calls back', () => {
  const good = withoutOut();

  it('numbers stay as in their call', () => {
    const one = uint8([1, 1], 1);
    const inputs = {
      a: one,
      aScale: 2,
      aZeroPoint: 3,
      b: one,
      bScale: 5,
      bZeroPoint: 7,
      c: 11,
      yScale: 0.5,
      yZeroPoint: 13,
    };
    const wanted = wg.qgemm(inputs).data;
    const options = {
      get alpha() {
        wg.qgemm({
          a: one,
          aScale: 9,
          aZeroPoint: 9,
          b: one,
          bScale: 9,
          bZeroPoint: 9,
          c: 9,
          yScale: 9,
          yZeroPoint: 9,
        });
        return 1;
      },
    };
    expect(wg.qgemm(inputs, options).data).toEqual(wanted);
  });

  /** The same object, but that something is done as one of its properties is read. */
  const reading = <T extends object>(object: T, name: string, act: () => void): T =>
    Object.defineProperty({ ...object }, name, {
      get() {
        act();
        return object[name as keyof T];
      },
      enumerable: true,
    });
  const options = { alpha: 1, transA: false, out: float32([2, 2], 9, 9, 9, 9) };

  /**
   * Calls in which `end` is called in the middle: by every input and option, and within tensors.
   */
  const calls: Record<
    string,
    (b: QGemmInputs['b'], end: () => void) => [QGemmInputs, QGemmOptions]
  > = {
    'inputs.a': (b, end) => [reading({ ...good, b }, 'a', end), options],
    'inputs.b': (b, end) => [reading({ ...good, b }, 'b', end), options],
    'inputs.yZeroPoint': (b, end) => [
      reading({ ...good, b, yZeroPoint: undefined } as never, 'yZeroPoint', end),
      options,
    ],
    'options.alpha': (b, end) => [{ ...good, b }, reading(options, 'alpha', end)],
    'options.out': (b, end) => [{ ...good, b }, reading(options, 'out', end)],
    'A’s shape': (b, end) => [{ ...good, b, a: reading(good.a, 'shape', end) }, options],
    'C’s data': (b, end) => [{ ...good, b, c: reading(good.c, 'data', end) }, options],
    'bZeroPoint’s shape': (b, end) => [
      { ...good, b, bZeroPoint: reading(good.bZeroPoint, 'shape', end) },
      options,
    ],
    'out’s shape': (b, end) => [
      { ...good, b },
      { ...options, out: reading(options.out, 'shape', end) },
    ],
  };
  const names = Object.keys(calls);
  const callOf = (name: string) => calls[name] as (typeof calls)[string];

  it.each(names)('weights that it disposes of at %s are not used', (name) => {
    for (const run of ['qgemm', 'explain'] as const) {
      const gone = packed(wg, good.b);
      const [inputs, options] = callOf(name)(gone, () => gone.dispose());
      expectError(
        thrown(() =>
          run === 'qgemm' ? wg.qgemm(inputs, options) : wg.explain('qgemm', inputs, options),
        ),
        disposed('B', 'disposed weights'),
      );
    }
    expect(Array.from(options.out.data)).toEqual([9, 9, 9, 9]);
  });

  it.each(names)('an instance that it disposes of at %s is not used', async (name) => {
    const instance = await createGemm();
    const [inputs, options] = callOf(name)(packed(instance, good.b), () => instance.dispose());
    expectError(
      thrown(() => instance.qgemm(inputs, options)),
      disposed('instance', 'disposed'),
    );
  });

  it.each(names)('its own error at %s comes through, and nothing is kept', (name) => {
    const { inUse } = wg.memory();
    const [inputs, options] = callOf(name)(good.b, () => {
      throw new RangeError('mine');
    });
    expect(() => wg.qgemm(inputs, options)).toThrow(new RangeError('mine'));
    expect(wg.memory().inUse).toBe(inUse);
  });

  it.each(['op', 'trans', 'shape', 'data', 'strides'])(
    'pack uses no tensor or instance that it disposes of at %s',
    async (name) => {
      const instance = await createGemm();
      const tensor = instance.alloc('int8', [3, 2]);
      const view = tensor.data;
      const pack = (act: () => void) => {
        const options = { op: 'qgemm', trans: false } as const;
        const b = { data: view, shape: [3, 2], strides: [2, 1] };
        if (name in b) return instance.pack(reading(b, name, act), options);
        return instance.pack(b, reading(options, name, act));
      };
      const wanted = (argument: string, says: string): Wanted => ({
        code: 'DISPOSED',
        op: 'pack',
        argument,
        says: [says],
      });
      expectError(
        thrown(() => pack(() => tensor.dispose())),
        wanted('B', 'a view of a tensor that was disposed'),
      );
      expect(instance.memory().inUse).toBe(0);
      expectError(
        thrown(() => pack(() => instance.dispose())),
        wanted('instance', 'is disposed'),
      );
    },
  );
});

describe('gemm refuses 8 bits', () => {
  it.each(quantizedTypes)('of %s', (type: Quantized) => {
    const eight = tensor(type, [1, 1], [1]);
    const wanted = (argument: string, ...says: string[]): Wanted => ({
      code: 'DTYPE',
      op: 'gemm',
      argument,
      says: [type, ...says],
    });
    expectError(
      thrown(() => wg.gemm(eight as never, eight as never)),
      wanted('A', 'Gemm does not have', 'qgemm'),
    );
    for (const dtype of ['float32', 'int32'] as (Integer | 'float32')[]) {
      const one = tensor(dtype, [1, 1], [1]);
      const run = (...[a, b, c, out]: unknown[]) =>
        thrown(() => wg.gemm(a as never, b as never, c as never, { out: out as never }));
      expectError(run(one, eight), wanted('B', dtype, 'the same'));
      expectError(run(one, one, eight), wanted('C', dtype, 'the same'));
      expectError(run(one, one, one, eight), wanted('out', dtype, 'the same'));
    }
  });
});
