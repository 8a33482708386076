/**
 * Calls of the integer products that are refused. Each kind of bad input throws its error, here and
 * in a worker. The call writes nothing and keeps no memory, and the instance still works.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type DType,
  type Gemm,
  GemmError,
  type HeapTensor,
  type PackedWeights,
} from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import { quantized, quantizedTypes } from '../support/dtypes.js';
import { expectError, expectRefusedInWorker, thrown, type Wanted } from '../support/errors.js';
import { type Operation, operations, reference } from '../support/integer-products.js';
import type { Matrix } from '../support/reference.js';
import { float32, int32, sameBytes, tensor } from '../support/tensors.js';

let wg: Gemm;
let other: Gemm;
let weights: PackedWeights;
let theirs: { tensor: HeapTensor; weights: PackedWeights };
let inWorker: WorkerGemm;
beforeAll(async () => {
  [wg, other, inWorker] = await Promise.all([createGemm(), createGemm(), startWorker()]);
  weights = wg.pack(bytes(), { op: 'qgemm' });
  theirs = { tensor: other.alloc('int8', [3, 2]), weights: other.pack(bytes(), { op: 'qgemm' }) };
});
afterAll(() => {
  for (const each of [wg, other, inWorker]) each.dispose();
});

const uint8 = (shape: readonly number[], ...numbers: number[]) => ({
  data: Uint8Array.from(numbers),
  shape,
});
const int8 = (shape: readonly number[], ...numbers: number[]) => ({
  data: Int8Array.from(numbers),
  shape,
});
const half = (shape: readonly number[], ...numbers: number[]) => tensor('float16', shape, numbers);
const bytes = () => int8([3, 2], 1, -2, 3, -4, 5, -128);

const [isDynamic, isLinear, isInteger] = (
  ['dynamicQuantizeMatmul', 'qlinearMatmul', 'matmulInteger'] as const
).map((name) => (op: Operation) => op === name) as [Test, Test, Test];
type Test = (op: Operation) => boolean;
const hasBias: Test = (op) => !isLinear(op) && !isInteger(op);
const typeOfResult = (op: Operation): DType =>
  isInteger(op) ? 'int32' : isLinear(op) ? 'uint8' : 'float32';

type Named = Record<string, unknown>;

/**
 * What every case starts from: A (2, 3), B (3, 2), all other inputs of the operation, and an out
 * that a good call would overwrite.
 */
function operands(op: Operation): Named {
  const all: Named = {
    a: isDynamic(op) ? float32([2, 3], 1, -2, 3, 4, 5, 0.25) : uint8([2, 3], 1, 2, 3, 4, 5, 255),
    b: bytes(),
    bZeroPoint: int8([2], 7, -7),
    out: tensor(typeOfResult(op), [2, 2], [9, 9, 9, 9]),
  };
  if (!isDynamic(op)) all.aZeroPoint = Uint8Array.of(3);
  if (!isInteger(op)) all.bScale = Float32Array.of(0.25, 0.75);
  if (!isInteger(op) && !isDynamic(op)) all.aScale = 0.5;
  if (isLinear(op)) Object.assign(all, { yScale: 30, yZeroPoint: 100 });
  if (hasBias(op)) all.bias = Float32Array.of(3, -5);
  return all;
}

const optionNames = ['out', 'transA', 'transB', 'activation'];

/** The arguments of a call, with these changes. `inputs` and `options` stand for all of them. */
function argsOf(op: Operation, o: Named, changes: Named): unknown[] {
  const { inputs, options, ...rest } = changes;
  const { a, b, ...others } = { ...o, ...rest };
  if (!isLinear(op)) return [a, b, 'options' in changes ? options : others];
  const isOption = ([key]: [string, unknown]) => optionNames.includes(key);
  const parts = Object.entries(others);
  return [
    'inputs' in changes
      ? inputs
      : { a, b, ...Object.fromEntries(parts.filter((part) => !isOption(part))) },
    'options' in changes ? options : Object.fromEntries(parts.filter(isOption)),
  ];
}

type Loose = Record<string, (...args: unknown[]) => unknown>;
const call = (op: Operation, args: readonly unknown[]) =>
  (wg as unknown as Loose)[op]?.(...args) as Matrix;
const explain = (op: Operation, args: readonly unknown[]) =>
  (wg.explain as Loose[string])(op, ...args);

/** A good call, with and without weights. */
function expectGood(op: Operation): void {
  const { a, b, out, bias, ...vectors } = operands(op);
  const zero = (dtype: DType, value: unknown): Matrix =>
    typeof value === 'number'
      ? tensor(dtype, [], [value])
      : ({
          ...(ArrayBuffer.isView(value)
            ? { data: value, shape: [(value as Int8Array).length] }
            : (value as Matrix)),
          dtype,
        } as Matrix);
  const typed = (name: string): DType =>
    name.endsWith('Scale') ? 'float32' : name.startsWith('b') ? 'int8' : 'uint8';
  const given = Object.fromEntries(
    Object.entries(vectors).map(([name, value]) => [name, zero(typed(name), value)]),
  );
  const wanted = reference({
    op,
    a: { ...(a as Matrix), dtype: isDynamic(op) ? 'float32' : 'uint8' },
    b: { ...(b as Matrix), dtype: 'int8' },
    vectors: given,
    bias: bias === undefined ? undefined : zero('float32', bias),
  });
  expect(Array.from(call(op, argsOf(op, operands(op), { out })).data as Float32Array)).toEqual(
    Array.from(wanted.data as Float32Array),
  );
  const { data } = call(op, argsOf(op, operands(op), { b: weights, out: undefined }));
  expect(sameBytes(data, wanted.data), 'the next good call').toBe(true);
}

/**
 * Makes the call. Expects its error, nothing written and no memory kept. Explain must throw the
 * same error, unless only the elements of A are at fault.
 */
function expectRefused(op: Operation, change: Change, wanted: Omit<Wanted, 'op'>): void {
  const o = operands(op);
  const args = argsOf(op, o, change(o));
  const { inUse } = wg.memory();
  const found = thrown(() => call(op, args)) as GemmError;
  expectError(found, { ...wanted, op });
  if (wanted.says[0] !== 'A has') {
    const { message } = thrown(() => explain(op, args)) as GemmError;
    expect(message).toBe(found.message);
  }
  expect(o).toEqual(operands(op));
  expect(wg.memory().inUse, 'bytes in use').toBe(inUse);
  expectGood(op);
}

type Change = (o: Named) => Named;
/** Which operations, what changes, and the error. */
type Case = [
  of: Operation | Test | 'all',
  changes: Named | Change,
  code: Wanted['code'],
  argument: string,
  ...says: (string | RegExp)[],
];

const opsOf = (of: Case[0]) =>
  of === 'all' ? operations : typeof of === 'string' ? [of] : operations.filter((op) => of(op));

function refuses(what: string, cases: Record<string, Case>): void {
  describe(what, () => {
    const each = Object.entries(cases).flatMap(([name, [of, ...rest]]) =>
      opsOf(of).map((op) => ({ name, op, rest })),
    );
    it.each(each)('$name: $op', async ({ op, rest: [changes, code, argument, ...says] }) => {
      const change = typeof changes === 'function' ? changes : () => changes;
      expectRefused(op, change, { code, argument, says });
      await expectRefusedInWorker(
        inWorker,
        () => operands(op),
        (o) => call(op, argsOf(op, o, change(o))),
        (o) => callInWorker(op, argsOf(op, o, change(o))),
      );
    });
  });
}

/** The same call in a worker, with weights of its own where it has packed ones. */
async function callInWorker(op: Operation, args: unknown[]): Promise<void> {
  const mine = await inWorker.pack(bytes(), { op: 'qgemm' });
  const exchange = (value: unknown): unknown =>
    value === weights
      ? mine
      : typeof value === 'object' && value !== null && Object.values(value).includes(weights)
        ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, exchange(part)]))
        : value;
  try {
    await (inWorker as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[op]?.(
      ...args.map(exchange),
    );
  } finally {
    mine.dispose();
  }
}

const not = (test: Test) => (op: Operation) => !test(op);
const hasScaleOfA: Test = (op) => !isInteger(op) && !isDynamic(op);
const mayBeHalf = hasScaleOfA;
const toFloat = 'matmulIntegerToFloat';

refuses('refuses an operand that is not a tensor:', {
  'A is a number': ['all', { a: 5 }, 'ARGUMENT', 'A', 'is 5', '{ data, shape }'],
  'A is undefined': ['all', { a: undefined }, 'ARGUMENT', 'A', 'is undefined', 'tensor'],
  'A is a bare array': [
    'all',
    (o) => ({ a: (o.a as Matrix).data }),
    'DTYPE',
    'A',
    'without a shape',
  ],
  'B is null': ['all', { b: null }, 'ARGUMENT', 'B', 'is null', 'tensor'],
  'B is a plain array': ['all', { b: { data: [1], shape: [1, 1] } }, 'DTYPE', 'B', 'Int8Array'],
  'bZeroPoint is true': [
    'all',
    { bZeroPoint: true },
    'ARGUMENT',
    'bZeroPoint',
    'is true',
    'tensor',
  ],
  'bZeroPoint is a bigint': ['all', { bZeroPoint: 1n }, 'ARGUMENT', 'bZeroPoint', '1n'],
  'bScale is a plain array': [
    not(isInteger),
    { bScale: [1, 2] },
    'DTYPE',
    'bScale',
    'an array',
    'Float32Array',
  ],
  'aScale is a string': [hasScaleOfA, { aScale: '1' }, 'ARGUMENT', 'aScale', '"1"', 'tensor'],
  'aZeroPoint is an object': [
    not(isDynamic),
    { aZeroPoint: {} },
    'DTYPE',
    'aZeroPoint',
    'undefined',
    'Int8Array or Uint8Array',
  ],
  'yScale is a symbol': [
    'qlinearMatmul',
    { yScale: Symbol('y') },
    'ARGUMENT',
    'yScale',
    'a symbol',
  ],
  'yZeroPoint is a function': [
    'qlinearMatmul',
    { yZeroPoint: () => 1 },
    'ARGUMENT',
    'yZeroPoint',
    'a function',
  ],
  'bias is a string': [hasBias, { bias: 'b' }, 'ARGUMENT', 'bias', '"b"', 'tensor'],
  'out is null': ['all', { out: null }, 'ARGUMENT', 'out', 'is null', 'tensor'],
  'out is a bare array': [
    'all',
    (o) => ({ out: (o.out as Matrix).data }),
    'DTYPE',
    'out',
    'without a shape',
  ],
});

const eight = 'int8 or uint8';
refuses('refuses types:', {
  'A float32': [
    not(isDynamic),
    { a: float32([2, 3], 1, 2, 3, 4, 5, 6) },
    'DTYPE',
    'A',
    'float32',
    eight,
  ],
  'A quantized already': [
    'dynamicQuantizeMatmul',
    { a: uint8([2, 3], 1, 2, 3, 4, 5, 6) },
    'DTYPE',
    'A',
    'uint8',
    'must be float32',
  ],
  'A float64': [
    'dynamicQuantizeMatmul',
    { a: tensor('float64', [1, 3], [1, 2, 3]) },
    'DTYPE',
    'A',
    'float64',
    'must be float32',
  ],
  'B int32': ['all', { b: int32([3, 2], 1, 2, 3, 4, 5, 6) }, 'DTYPE', 'B', 'int32', eight],
  'B float16': ['all', { b: half([3, 2], 1, 2, 3, 4, 5, 6) }, 'DTYPE', 'B', 'float16', eight],
  'aZeroPoint of another type than A': [
    not(isDynamic),
    { aZeroPoint: Int8Array.of(1) },
    'DTYPE',
    'aZeroPoint',
    'int8',
    'uint8',
  ],
  'aZeroPoint int32': [
    not(isDynamic),
    { aZeroPoint: int32([], 1) },
    'DTYPE',
    'aZeroPoint',
    'int32',
    'uint8',
  ],
  'bZeroPoint of another type than B': [
    'all',
    { bZeroPoint: Uint8Array.of(1) },
    'DTYPE',
    'bZeroPoint',
    'uint8',
    'int8',
  ],
  'bZeroPoint of another type than packed B': [
    'all',
    () => ({ b: weights, bZeroPoint: Uint8Array.of(1) }),
    'DTYPE',
    'bZeroPoint',
    'uint8',
    'int8',
  ],
  'bZeroPoint float32': [
    'all',
    { bZeroPoint: Float32Array.of(1) },
    'DTYPE',
    'bZeroPoint',
    'float32',
    'int8',
  ],
  'bScale float64': [
    not(isInteger),
    { bScale: Float64Array.of(1) },
    'DTYPE',
    'bScale',
    'float64',
    'float32',
  ],
  'bScale int8': [not(isInteger), { bScale: int8([], 1) }, 'DTYPE', 'bScale', 'int8', 'float32'],
  'bScale float16': [
    'dynamicQuantizeMatmul',
    { bScale: half([], 1) },
    'DTYPE',
    'bScale',
    'float16',
    'must be float32',
  ],
  'scales of two types': [
    mayBeHalf,
    { aScale: half([], 1) },
    'DTYPE',
    'bScale',
    'float32',
    'float16',
    'the same',
  ],
  'yScale of another type than the others': [
    'qlinearMatmul',
    { yScale: half([], 1) },
    'DTYPE',
    'bScale',
    'float16',
    'the same',
  ],
  'yZeroPoint float32': [
    'qlinearMatmul',
    { yZeroPoint: Float32Array.of(1) },
    'DTYPE',
    'yZeroPoint',
    'float32',
    eight,
  ],
  'yZeroPoint int32': [
    'qlinearMatmul',
    { yZeroPoint: int32([], 1) },
    'DTYPE',
    'yZeroPoint',
    'int32',
    eight,
  ],
  'bias int32': [hasBias, { bias: int32([2], 1, 2) }, 'DTYPE', 'bias', 'int32', 'float32'],
  'bias float16 next to float32 scales': [
    hasBias,
    { bias: half([2], 1, 2) },
    'DTYPE',
    'bias',
    'float16',
    'float32',
  ],
  'bias float32 next to float16 scales': [
    toFloat,
    { aScale: half([], 1), bScale: half([], 1), out: undefined },
    'DTYPE',
    'bias',
    'float32',
    'float16',
  ],
  'out of another type': [
    'all',
    { out: tensor('float64', [2, 2], [1, 2, 3, 4]) },
    'DTYPE',
    'out',
    'float64',
    /the result has type (int32|uint8|float32)/,
  ],
  'out of the other 8-bit type': [
    'qlinearMatmul',
    { yZeroPoint: Int8Array.of(1) },
    'DTYPE',
    'out',
    'uint8',
    'int8',
    'the type of yZeroPoint',
  ],
  'out float32 next to float16 scales': [
    toFloat,
    { aScale: half([], 1), bScale: half([], 1), bias: null },
    'DTYPE',
    'out',
    'float32',
    'float16',
  ],
});

const columnsRule = 'one value or one per column';
const rowsRule = 'one value or one per row';
refuses('refuses shapes:', {
  'A of rank 0': [
    'all',
    (o) => ({ a: { ...(o.a as Matrix), data: (o.a as Matrix).data.slice(0, 1), shape: [] } }),
    'SHAPE',
    'A',
    'rank 0',
    'rank 1 or more',
  ],
  'B of rank 0': ['all', { b: int8([], 1) }, 'SHAPE', 'B', 'rank 0', 'rank 1 or more'],
  'A short': [
    'all',
    (o) => ({ a: { ...(o.a as Matrix), shape: [3, 3] } }),
    'SHAPE',
    'A',
    '6 elements',
    '[3, 3]',
    'needs 9',
  ],
  'B with strides that are short': [
    'all',
    { b: { ...bytes(), strides: [3, 1] } },
    'SHAPE',
    'B',
    '6 elements',
    'need 8',
  ],
  'K of A and B': [
    'all',
    { b: int8([2, 2], 1, 2, 3, 4) },
    'SHAPE',
    'B',
    '[2, 3]',
    '[2, 2]',
    'K is 3 in A and 2 in B',
  ],
  'K, transposed': [
    'all',
    (o) => ({ ...o, transB: true }),
    'SHAPE',
    'B',
    'transposed',
    'K is 3 in A and 2 in B',
  ],
  'K of a vector': ['all', { b: int8([2], 1, 2) }, 'SHAPE', 'B', '[2]', 'K is 3 in A and 2 in B'],
  'batch axes': [
    'all',
    (o) => ({
      a: { ...(o.a as Matrix), shape: [2, 1, 3] },
      b: int8([3, 3, 1], 1, 2, 3, 4, 5, 6, 7, 8, 9),
    }),
    'SHAPE',
    'B',
    '[2]',
    '[3]',
  ],
  'aZeroPoint per column of A': [
    (op) => isInteger(op) || isLinear(op),
    { aZeroPoint: uint8([3], 1, 2, 3) },
    'SHAPE',
    'aZeroPoint',
    '[3]',
    '2 rows',
    rowsRule,
  ],
  'aZeroPoint [1, M]': [
    (op) => isInteger(op) || isLinear(op),
    { aZeroPoint: uint8([1, 2], 1, 2) },
    'SHAPE',
    'aZeroPoint',
    '[1, 2]',
    rowsRule,
  ],
  'aZeroPoint empty': [
    not(isDynamic),
    { aZeroPoint: new Uint8Array(0) },
    'SHAPE',
    'aZeroPoint',
    '[0]',
    'it must be one value',
  ],
  'aZeroPoint per row': [
    toFloat,
    { aZeroPoint: Uint8Array.of(1, 2) },
    'SHAPE',
    'aZeroPoint',
    '[2]',
    'it must be one value',
  ],
  'aScale per row': [
    toFloat,
    { aScale: Float32Array.of(1, 2) },
    'SHAPE',
    'aScale',
    '[2]',
    'it must be one value',
  ],
  'aScale per column': [
    'qlinearMatmul',
    { aScale: Float32Array.of(1, 2, 3) },
    'SHAPE',
    'aScale',
    '[3]',
    rowsRule,
  ],
  'yScale of three': [
    'qlinearMatmul',
    { yScale: Float32Array.of(1, 2, 3) },
    'SHAPE',
    'yScale',
    '[3]',
    '2 rows',
    rowsRule,
  ],
  'yZeroPoint [1, N]': [
    'qlinearMatmul',
    { yZeroPoint: uint8([1, 2], 1, 2) },
    'SHAPE',
    'yZeroPoint',
    '[1, 2]',
    rowsRule,
  ],
  'bZeroPoint per row of B': [
    'all',
    { bZeroPoint: Int8Array.of(1, 2, 3) },
    'SHAPE',
    'bZeroPoint',
    '[3]',
    '2 columns',
    columnsRule,
  ],
  'bZeroPoint [N, 1]': [
    'all',
    { bZeroPoint: int8([2, 1], 1, 2) },
    'SHAPE',
    'bZeroPoint',
    '[2, 1]',
    columnsRule,
  ],
  'bZeroPoint of packed B': [
    'all',
    () => ({ b: weights, bZeroPoint: Int8Array.of(1, 2, 3) }),
    'SHAPE',
    'bZeroPoint',
    '[3]',
    '2 columns',
    columnsRule,
  ],
  'bZeroPoint [N] next to batch axes': [
    'all',
    (o) => ({
      b: int8([1, 3, 2], 1, 2, 3, 4, 5, 6),
      out: undefined,
      ...('bScale' in o && { bScale: 1 }),
    }),
    'SHAPE',
    'bZeroPoint',
    '[2]',
    '[..., 1, N]',
  ],
  'bScale per row of B': [
    not(isInteger),
    { bScale: Float32Array.of(1, 2, 3) },
    'SHAPE',
    'bScale',
    '[3]',
    '2 columns',
    columnsRule,
  ],
  'bScale next to a vector': [
    not(isInteger),
    (o) => ({
      b: int8([3], 1, 2, 3),
      bZeroPoint: 1,
      out: undefined,
      ...('bias' in o && { bias: undefined }),
    }),
    'SHAPE',
    'bScale',
    '[2]',
    columnsRule,
  ],
  'bScale short': [
    not(isInteger),
    { bScale: { data: Float32Array.of(1), shape: [2] } },
    'SHAPE',
    'bScale',
    '1 elements',
    'needs 2',
  ],
  'bias of one element': [
    hasBias,
    { bias: Float32Array.of(1) },
    'SHAPE',
    'bias',
    '[1]',
    '2 columns',
    '[N]',
  ],
  'bias [1, N]': [hasBias, { bias: float32([1, 2], 1, 2) }, 'SHAPE', 'bias', '[1, 2]', '[N]'],
  'a bias that is a number': [hasBias, { bias: 1 }, 'SHAPE', 'bias', '[]', '[N]'],
  'out that is not (M, N)': [
    'all',
    (o) => ({ out: { ...(o.out as Matrix), shape: [4] } }),
    'SHAPE',
    'out',
    '[4]',
    '[2, 2]',
  ],
  'out of which elements share places': [
    'all',
    (o) => ({ out: { ...(o.out as Matrix), strides: [1, 1] } }),
    'SHAPE',
    'out',
    '[1, 1]',
    'share',
  ],
});

refuses('refuses what is absent:', {
  'no bScale': [
    not(isInteger),
    { bScale: undefined },
    'ARGUMENT',
    'bScale',
    'is absent',
    'it must be given',
  ],
  'bScale null': [not(isInteger), { bScale: null }, 'ARGUMENT', 'bScale', 'is absent'],
  'no aScale': [hasScaleOfA, { aScale: undefined }, 'ARGUMENT', 'aScale', 'is absent'],
  'no yScale': ['qlinearMatmul', { yScale: null }, 'ARGUMENT', 'yScale', 'is absent'],
  'no options': [
    'dynamicQuantizeMatmul',
    { options: undefined },
    'ARGUMENT',
    'bScale',
    'is absent',
  ],
  'options null': [toFloat, { options: null }, 'ARGUMENT', 'aScale', 'is absent'],
});

describe.each(quantizedTypes)('refuses as a zero point of %s', (type) => {
  const { min, max } = quantized[type];
  const one = tensor(type, [1, 1], [1]);
  const changes: Named = { b: one, aZeroPoint: undefined, bZeroPoint: 0, out: undefined };
  const whole = 'it must be whole and in the range of the type';
  it.each([min - 1, max + 1, 0.5, NaN, -Infinity, 2 ** 32])('the number %d', (value) => {
    const says = [String(value), type, whole];
    for (const op of operations) {
      const a = isDynamic(op) ? float32([1, 1], 1) : one;
      const good: Named = {
        ...changes,
        a,
        ...(hasBias(op) && { bias: Float32Array.of(1) }),
        ...(!isInteger(op) && { bScale: 1 }),
      };
      if (isDynamic(op)) delete good.aZeroPoint;
      const refused = (name: string, argument: string) =>
        expectRefused(op, () => ({ ...good, [name]: value }), { code: 'ARGUMENT', argument, says });
      refused('bZeroPoint', 'bZeroPoint');
      if (!isDynamic(op)) refused('aZeroPoint', 'aZeroPoint');
      if (isLinear(op)) refused('yZeroPoint', 'yZeroPoint');
    }
  });
});

describe('refuses as a scale', () => {
  const bad: [number, string][] = [
    [NaN, 'is NaN'],
    [Infinity, 'is infinite'],
    [-Infinity, 'is infinite'],
    [1e39, 'is infinite'],
  ];
  const places: [key: string, name: string, Test][] = [
    ['aScale', 'aScale', hasScaleOfA],
    ['bScale', 'bScale', not(isInteger)],
    ['yScale', 'yScale', isLinear],
  ];
  it.each(bad)('%d', (value, found) => {
    using heap = wg.alloc('float32', []);
    heap.data[0] = value;
    for (const [key, argument, test] of places) {
      for (const op of operations.filter((op) => test(op))) {
        const wanted = { code: 'ARGUMENT' as const, argument, says: [found, 'finite'] };
        for (const scale of [value, Float32Array.of(value), float32([1, 1], value), heap])
          expectRefused(op, () => ({ [key]: scale }), wanted);
        const many = key === 'bScale' ? [1, value] : undefined;
        if (many) expectRefused(op, () => ({ [key]: Float32Array.from(many) }), wanted);
        if (isLinear(op) && !many)
          expectRefused(op, () => ({ [key]: float32([2, 1], 1, value) }), wanted);
      }
    }
  });
  it.each([0, -0, 1e-50])('of Y: %d', (value) => {
    const wanted = { code: 'ARGUMENT' as const, argument: 'yScale', says: ['is 0', 'not 0'] };
    for (const yScale of [value, Float32Array.of(1, value), float32([2, 1], value, 1)])
      expectRefused('qlinearMatmul', () => ({ yScale }), wanted);
  });
  it('nothing that is negative or 0', () => {
    for (const op of operations.filter(not(isInteger))) {
      for (const scale of [-1, 0]) {
        const aScale = hasScaleOfA(op) ? { aScale: scale } : {};
        expect(() =>
          call(op, argsOf(op, operands(op), { ...aScale, bScale: scale })),
        ).not.toThrow();
      }
    }
  });
});

refuses('refuses products of scales that are not finite:', {
  'aScale * bScale': [
    hasScaleOfA,
    { aScale: 1e20, bScale: Float32Array.of(1, -1e20) },
    'ARGUMENT',
    'bScale',
    'not finite',
  ],
  'divided by yScale': [
    'qlinearMatmul',
    { aScale: 1e20, bScale: 1e10, yScale: 1e-20 },
    'ARGUMENT',
    'bScale',
    'not finite',
  ],
});

refuses('refuses elements of A:', {
  NaN: [
    'dynamicQuantizeMatmul',
    { a: float32([2, 3], 1, 2, 3, 4, NaN, 6) },
    'ARGUMENT',
    'A',
    'A has',
    'NaN',
  ],
  Infinity: [
    'dynamicQuantizeMatmul',
    { a: float32([2, 3], Infinity, 2, 3, 4, 5, 6) },
    'ARGUMENT',
    'A',
    'A has',
    'finite',
  ],
  '-Infinity': [
    'dynamicQuantizeMatmul',
    { a: float32([2, 3], 1, 2, 3, 4, 5, -Infinity) },
    'ARGUMENT',
    'A',
    'A has',
    'finite',
  ],
  'a range that is infinite in float32': [
    'dynamicQuantizeMatmul',
    { a: float32([2, 3], 3e38, 2, 3, 4, 5, -3e38) },
    'ARGUMENT',
    'A',
    'A has',
    'range',
  ],
});

it('takes NaN between the elements of A', () => {
  const a = {
    data: Float32Array.of(255, NaN, 1, NaN, NaN, 2, NaN, 3),
    shape: [2, 2],
    strides: [5, 2],
  };
  const b = int8([2, 1], 1, 1);
  expect([...wg.dynamicQuantizeMatmul(a, b, { bScale: 1 }).data]).toEqual([256, 5]);
});

const inputsRule = 'an object with a, b, aScale, aZeroPoint, bScale';
refuses('refuses inputs', {
  'that are null': ['qlinearMatmul', { inputs: null }, 'ARGUMENT', 'inputs', 'is null', inputsRule],
  'that are a number': ['qlinearMatmul', { inputs: 5 }, 'ARGUMENT', 'inputs', 'is 5', inputsRule],
  'that are A': [
    'qlinearMatmul',
    (o) => ({ inputs: o.a }),
    'ARGUMENT',
    'data',
    '"data"',
    'not known',
    'bZeroPoint',
  ],
  'without any': ['qlinearMatmul', { inputs: {} }, 'ARGUMENT', 'A', 'is undefined', 'tensor'],
  'with an option': [
    'qlinearMatmul',
    (o) => ({ inputs: { ...o } }),
    'ARGUMENT',
    'out',
    '"out"',
    'not known',
  ],
});

refuses('refuses the option', {
  'options is a number': ['all', { options: 5 }, 'ARGUMENT', 'options', 'is 5', 'an object'],
  'options is a function': [
    'all',
    { options: () => 1 },
    'ARGUMENT',
    'options',
    'a function',
    'an object',
  ],
  alpha: [
    'all',
    { options: { alpha: 1 } },
    'ARGUMENT',
    'alpha',
    '"alpha"',
    'not known',
    'transA, transB',
  ],
  'as ONNX spells it': [
    'all',
    { options: { a_zero_point: 1 } },
    'ARGUMENT',
    'a_zero_point',
    'not known',
  ],
  aZeroPoint: [
    'dynamicQuantizeMatmul',
    { aZeroPoint: 1 },
    'ARGUMENT',
    'aZeroPoint',
    'not known',
    'bScale',
  ],
  'a scale': ['matmulInteger', { bScale: 1 }, 'ARGUMENT', 'bScale', 'not known', 'aZeroPoint'],
  bias: ['matmulInteger', { bias: Float32Array.of(1, 2) }, 'ARGUMENT', 'bias', 'not known'],
  activation: ['matmulInteger', { activation: 'relu' }, 'ARGUMENT', 'activation', 'not known'],
  'activation: a name that is none': [
    not(isInteger),
    { activation: 'tanh' },
    'ARGUMENT',
    'activation',
    '"tanh"',
    'relu6',
  ],
  'activation: min above max': [
    not(isInteger),
    { activation: [6, 0] },
    'ARGUMENT',
    'activation',
    'a min above its max',
  ],
  'transA: a string': [
    'all',
    { transA: 'no' },
    'ARGUMENT',
    'transA',
    '"no"',
    'a boolean or a number',
  ],
  'transB: NaN': ['all', { transB: NaN }, 'ARGUMENT', 'transB', 'NaN', 'a boolean or a number'],
  'transB next to packed weights': [
    'all',
    () => ({ b: weights, transB: true }),
    'ARGUMENT',
    'transB',
    'B is packed',
  ],
});

refuses('refuses packed weights', {
  'as A': [
    'all',
    () => ({ a: weights }),
    'ARGUMENT',
    'A',
    'packed weights',
    'can only stand for B',
  ],
  'as bZeroPoint': [
    'all',
    () => ({ bZeroPoint: weights }),
    'ARGUMENT',
    'bZeroPoint',
    'can only stand for B',
  ],
  'as bias': [hasBias, () => ({ bias: weights }), 'ARGUMENT', 'bias', 'can only stand for B'],
  'as out': ['all', () => ({ out: weights }), 'ARGUMENT', 'out', 'can only stand for B'],
  'of another K': [
    'all',
    (o) => ({ a: { ...(o.a as Matrix), shape: [3, 2] }, b: weights }),
    'SHAPE',
    'B',
    'packed from shape [3, 2]',
    'K is 2 in A and 3 in B',
  ],
});

describe('refuses what is disposed, of another instance, or gone:', () => {
  it.each(operations)('%s', (op) => {
    const names = {
      a: 'A',
      b: 'B',
      bZeroPoint: 'bZeroPoint',
      aZeroPoint: 'aZeroPoint',
      aScale: 'aScale',
      bScale: 'bScale',
      yScale: 'yScale',
      yZeroPoint: 'yZeroPoint',
      bias: 'bias',
      out: 'out',
    };
    for (const [key, argument] of Object.entries(names)) {
      if (!(key in operands(op))) continue;
      const gone = wg.alloc('int8', [3, 2]);
      gone.dispose();
      const refused = (value: unknown, code: Wanted['code'], ...says: string[]) =>
        expectRefused(op, () => ({ [key]: value }), { code, argument, says });
      refused(gone, 'DISPOSED', 'disposed tensor');
      refused(theirs.tensor, 'ARGUMENT', 'another instance');
      const detached = new Int8Array(6);
      structuredClone(detached.buffer, { transfer: [detached.buffer] });
      refused({ data: detached, shape: [3, 2] }, 'ARGUMENT', 'detached');
    }
    const weightsOfNone = wg.pack(bytes(), { op: 'qgemm' });
    weightsOfNone.dispose();
    const refused = (b: unknown, code: Wanted['code'], ...says: string[]) =>
      expectRefused(op, () => ({ b }), { code, argument: 'B', says });
    refused(weightsOfNone, 'DISPOSED', 'disposed weights');
    refused(theirs.weights, 'ARGUMENT', 'weights of another instance');
    const forGemm = wg.pack(float32([3, 2], 1, 2, 3, 4, 5, 6), { op: 'gemm' });
    refused(forGemm, 'PACK_MISMATCH', 'packed for gemm', 'pack it for qgemm');
    forGemm.dispose();
  });

  it('an instance', async () => {
    const instance = await createGemm();
    instance.dispose();
    for (const op of operations) {
      const args = argsOf(op, operands(op), {});
      for (const run of [
        () => (instance as unknown as Loose)[op]?.(...args),
        () => (instance.explain as Loose[string])(op, ...args),
      ])
        expectError(thrown(run), {
          code: 'DISPOSED',
          op,
          argument: 'instance',
          says: ['createGemm()'],
        });
    }
  });
});

describe('refuses an out that overlaps', () => {
  describe.each([false, true])('in the heap: %o', (heap) => {
    it.each(operations)('%s', (op) => {
      const arena = wg.alloc('uint8', [512]);
      const buffer = heap ? arena.data.buffer : new ArrayBuffer(512);
      const start = heap ? arena.data.byteOffset : 0;
      let next = start;
      const at: Record<string, number> = {};
      /** The tensor of the operand, in the one buffer. */
      const move = (name: string, value: unknown): unknown => {
        const isZero = name.endsWith('ZeroPoint');
        const { data, shape } = (
          typeof value === 'number'
            ? tensor(isZero ? 'uint8' : 'float32', [], [value])
            : ArrayBuffer.isView(value)
              ? { data: value, shape: [(value as Int8Array).length] }
              : value
        ) as { data: Float32Array; shape: number[] };
        const Class = data.constructor as typeof Float32Array;
        at[name] = next;
        const moved = new Class(buffer as ArrayBuffer, next, data.length);
        moved.set(data);
        next += 32;
        return { data: moved, shape };
      };
      const o = Object.fromEntries(
        Object.entries(operands(op)).map(([name, value]) => [name, move(name, value)]),
      );
      const before = new Uint8Array(buffer, start, 512).slice();
      const names = {
        a: 'A',
        b: 'B',
        aZeroPoint: 'aZeroPoint',
        bZeroPoint: 'bZeroPoint',
        aScale: 'aScale',
        bScale: 'bScale',
        yScale: 'yScale',
        yZeroPoint: 'yZeroPoint',
        bias: 'bias',
      };
      for (const [name, argument] of Object.entries(names)) {
        if (!(name in o)) continue;
        const Class = (o.out as Matrix).data.constructor as typeof Float32Array;
        const out = { data: new Class(buffer as ArrayBuffer, at[name], 4), shape: [2, 2] };
        expectError(
          thrown(() => call(op, argsOf(op, o, { out }))),
          {
            code: 'ARGUMENT',
            op,
            argument: 'out',
            says: [`overlaps ${argument} `, 'must overlap no input'],
          },
        );
        expect(new Uint8Array(buffer, start, 512).slice()).toEqual(before);
      }
      expect(call(op, argsOf(op, o, {}))).toBe(o.out);
      arena.dispose();
    });
  });
});
