/**
 * Calls that are refused. Each kind of bad input throws its error. The call writes nothing and keeps
 * no memory, and the instance still works.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type CreateOptions, type Gemm, GemmError, HeapTensor } from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import { dtypes, integers, type Integer, integerTypes, isFloat } from '../support/dtypes.js';
import { bytesAt, sourcesOf } from '../support/assets.js';
import {
  expectError,
  expectRefusedInWorker,
  notCreated,
  thrown,
  type Wanted,
} from '../support/errors.js';
import { expectGemm, float32, int32, tensor } from '../support/tensors.js';

let wg: Gemm;
let other: Gemm;
let theirs: HeapTensor;
let inWorker: WorkerGemm;
beforeAll(async () => {
  wg = await createGemm();
  other = await createGemm();
  theirs = other.alloc('float32', [3, 2]);
  inWorker = await startWorker();
});
afterAll(() => {
  wg.dispose();
  other.dispose();
  inWorker.dispose();
});

/**
 * What every case starts from: A (2, 3), B (3, 2), C and an out (2, 2) that a good call would
 * overwrite.
 */
function operands() {
  return {
    a: float32([2, 3], 1, 2, 3, 4, 5, 6),
    b: float32([3, 2], 1, 2, 3, 4, 5, 6),
    c: float32([2, 2], 1, 2, 3, 4),
    out: float32([2, 2], 9, 9, 9, 9),
  };
}
type Operands = ReturnType<typeof operands>;

/**
 * The arguments of a call to gemm, of any type, as JavaScript may pass them. Absent: the arguments of
 * `operands()`.
 */
interface Call {
  a?: unknown;
  b?: unknown;
  c?: unknown;
  options?: unknown;
}

const argumentsOf = (o: Operands, { a = o.a, b = o.b, c = o.c, options }: Call) => {
  const all =
    typeof options === 'object' && options !== null && !Array.isArray(options)
      ? { out: o.out, ...options }
      : (options ?? { out: o.out });
  return [a, b, c, all] as [never, never, never, never];
};
const call = (o: Operands, changes: Call, run: 'gemm' | 'explain' = 'gemm') => {
  const all = argumentsOf(o, changes);
  return run === 'gemm' ? wg.gemm(...all) : wg.explain('gemm', ...all);
};

/** Makes the call. Expects its error, and that it writes nothing and keeps no memory. */
function expectRefused(bad: (o: Operands) => Call, wanted: Wanted): void {
  const o = operands();
  const arguments_ = bad(o);
  const inUse = wg.memory().inUse;
  expectError(
    thrown(() => call(o, arguments_)),
    wanted,
  );
  const fresh = operands();
  for (const name of ['a', 'b', 'c', 'out'] as const) {
    // A case that takes an array away leaves nothing to compare.
    if (o[name].data.length > 0) expect(o[name].data, name).toEqual(fresh[name].data);
  }
  expect(wg.memory().inUse, 'bytes in use').toBe(inUse);
  expectGemm(wg, fresh.a, fresh.b, fresh.c, { alpha: 2, out: fresh.out }, 'the next good call');
  expectGemm(wg, fresh.a, fresh.b);
}

/** Cases by name. */
type Cases = Record<string, [bad: (o: Operands) => Call, wanted: Wanted]>;

function refuses(what: string, cases: Cases): void {
  describe(what, () => {
    it.each(Object.entries(cases).map(([name, [bad, wanted]]) => ({ name, bad, wanted })))(
      '$name',
      async ({ bad, wanted }) => {
        expectRefused(bad, wanted);
        if (wanted.code === 'DISPOSED') return; // views of another heap are any array there
        const inWorkerToo = (o: Operands) => inWorker.gemm(...argumentsOf(o, bad(o)));
        await expectRefusedInWorker(inWorker, operands, (o) => call(o, bad(o)), inWorkerToo);
      },
    );
  });
}

const data = (length: number) => new Float32Array(length);

/** A proxy that has been revoked. */
function revoked(target: object = {}): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** An array that states any length. */
const ofLength = (array: number[], length: unknown) =>
  new Proxy(array, {
    get: (target, key) => (key === 'length' ? length : (Reflect.get(target, key) as unknown)),
  });

const conversion = /; convert it by tensor\(\.\.\.\)$/;

const calledSo = 'call gemm(a, b, c, options)';
const addsNothing = (beta: string): Wanted => ({
  code: 'ARGUMENT',
  argument: 'beta',
  says: [`beta is ${beta}, which has no effect without C; to add to out, pass out as C, too`],
});
const optionsAreFourth = (name: string): Wanted => ({
  code: 'ARGUMENT',
  argument: 'C',
  says: [`C is an object with ${name}; options come fourth: gemm(a, b, null, { ${name} })`],
});

refuses('refuses an operand that is not a tensor:', {
  'A is null': [
    () => ({ a: null }),
    { code: 'ARGUMENT', argument: 'A', says: ['is null', '{ data, shape }'] },
  ],
  'A is a number': [
    () => ({ a: 5 }),
    { code: 'ARGUMENT', argument: 'A', says: ['is 5', 'tensor'] },
  ],
  'B is a string': [
    () => ({ b: 'B'.repeat(99) }),
    { code: 'ARGUMENT', argument: 'B', says: ['"BBB', '...', 'tensor'] },
  ],
  'B is a function': [
    () => ({ b: () => 1 }),
    { code: 'ARGUMENT', argument: 'B', says: ['a function', 'tensor'] },
  ],
  'C is true': [
    () => ({ c: true }),
    { code: 'ARGUMENT', argument: 'C', says: ['is true', 'tensor'] },
  ],
  'C is a huge bigint': [
    () => ({ c: 1n << (2n ** 24n) }),
    { code: 'ARGUMENT', argument: 'C', says: ['a bigint of more than 128 bits'] },
  ],
  'C is a bigint': [
    () => ({ c: 1n }),
    { code: 'ARGUMENT', argument: 'C', says: ['1n', 'float32', 'int64 and uint64'] },
  ],
  'C is a symbol': [
    () => ({ c: Symbol('c') }),
    { code: 'ARGUMENT', argument: 'C', says: ['a symbol', 'tensor'] },
  ],
  'sizes come first, as in BLAS': [
    (o) => ({ a: 2, b: 2, c: 3, options: o.a }),
    { code: 'ARGUMENT', argument: 'options', says: ['a tensor', calledSo] },
  ],
  'A is a size': [
    () => ({ a: 2 }),
    { code: 'ARGUMENT', argument: 'A', says: ['A is 2', 'tensor', calledSo] },
  ],
  'A is a letter of BLAS': [
    () => ({ a: 'N' }),
    { code: 'ARGUMENT', argument: 'A', says: ['"N"', 'tensor', calledSo] },
  ],
  'A is a promise': [
    () => ({ a: Promise.resolve(1) }),
    { code: 'DTYPE', argument: 'A', says: ['a promise, which must be awaited'] },
  ],
  'A has rows and cols, and no shape': [
    () => ({ a: { data: data(6), rows: 2, cols: 3 } }),
    { code: 'SHAPE', argument: 'A', says: ['shape undefined', 'an array', 'such as [2, 3]'] },
  ],
  'out is null': [
    () => ({ options: { out: null } }),
    { code: 'ARGUMENT', argument: 'out', says: ['is null', 'tensor'] },
  ],
  'out is a bare array': [
    (o) => ({ options: { out: o.out.data } }),
    { code: 'DTYPE', argument: 'out', says: ['without a shape', 'Float32Array'] },
  ],
  'A is a bare array': [
    (o) => ({ a: o.a.data }),
    { code: 'DTYPE', argument: 'A', says: ['without a shape', 'Float32Array'] },
  ],
  'A is an empty object': [
    () => ({ a: {} }),
    { code: 'DTYPE', argument: 'A', says: ['undefined', 'Float32Array', conversion] },
  ],
  'B is a nested array': [
    () => ({ b: [[1], [2], [3]] }),
    { code: 'DTYPE', argument: 'B', says: ['B is an array; ', '{ data, shape }', conversion] },
  ],
  'out is an object of another library': [
    () => ({ options: { out: { size: 4, get: () => 1 } } }),
    { code: 'DTYPE', argument: 'out', says: ['undefined', conversion] },
  ],
  'C is the options': [() => ({ c: { transB: true } }), optionsAreFourth('transB')],
  'C is options that have no effect': [
    () => ({ c: { out: undefined, typo: 1 } }),
    optionsAreFourth('out'),
  ],
  'C is a tensor without data that has options': [
    () => ({ c: { shape: [2, 2], beta: 2 } }),
    optionsAreFourth('beta'),
  ],
  'C only inherits options': [
    () => ({ c: Object.create({ activation: 'relu' }) as unknown }),
    optionsAreFourth('activation'),
  ],
  'C is an object without options': [
    () => ({ c: { transb: true } }),
    { code: 'DTYPE', argument: 'C', says: ['undefined', 'Float32Array', conversion] },
  ],
  'A only inherits from HeapTensor': [
    () => ({ a: Object.create(HeapTensor.prototype) as unknown }),
    { code: 'ARGUMENT', argument: 'A', says: ['is a copy of a handle'] },
  ],
  'A is a revoked proxy': [
    () => ({ a: revoked() }),
    { code: 'ARGUMENT', argument: 'A', says: ['a revoked proxy', 'tensor'] },
  ],
  'C is a revoked proxy of an array': [
    () => ({ c: revoked([1, 2]) }),
    { code: 'ARGUMENT', argument: 'C', says: ['a revoked proxy', 'tensor'] },
  ],
  'out is a revoked proxy': [
    () => ({ options: { out: revoked() } }),
    { code: 'ARGUMENT', argument: 'out', says: ['a revoked proxy', 'tensor'] },
  ],
  'A is a proxy of a heap tensor': [
    () => ({ a: new Proxy(theirs, {}) }),
    { code: 'ARGUMENT', argument: 'A', says: ['is a copy of a handle'] },
  ],
});

// A Float16Array only if the engine has one, and no arrays of 8-bit elements.
const buffers =
  /must be Float32Array or Float64Array or (Float16Array or )?Int32Array or Uint32Array or BigInt64Array or BigUint64Array or Uint16Array(;|$)/;
refuses('refuses data of another kind:', {
  'a plain array': [
    (o) => ({ a: { ...o.a, data: [1, 2, 3, 4, 5, 6] } }),
    { code: 'DTYPE', argument: 'A', says: ['an array', buffers] },
  ],
  'a DataView': [
    (o) => ({ a: { ...o.a, data: new DataView(new ArrayBuffer(24)) } }),
    { code: 'DTYPE', argument: 'A', says: ['an object', buffers] },
  ],
  'an ArrayBuffer': [
    (o) => ({ b: { ...o.b, data: new ArrayBuffer(24) } }),
    { code: 'DTYPE', argument: 'B', says: ['an object', buffers] },
  ],
  'a Uint8ClampedArray': [
    (o) => ({ b: { ...o.b, data: new Uint8ClampedArray(6) } }),
    { code: 'DTYPE', argument: 'B', says: ['Uint8ClampedArray', buffers] },
  ],
  'an Int16Array': [
    (o) => ({ c: { ...o.c, data: new Int16Array(4) } }),
    { code: 'DTYPE', argument: 'C', says: ['Int16Array', buffers] },
  ],
  'a Uint16Array without dtype': [
    (o) => ({ a: { ...o.a, data: new Uint16Array(6) } }),
    { code: 'DTYPE', argument: 'A', says: ['Uint16Array', 'no dtype', 'float16 or bfloat16'] },
  ],
  'a Uint16Array for another type': [
    (o) => ({ a: { ...o.a, data: new Uint16Array(6), dtype: 'int32' } }),
    { code: 'DTYPE', argument: 'A', says: ['"int32"', 'Uint16Array', 'float16 or bfloat16'] },
  ],
  'an object that says that it is a Float32Array': [
    (o) => ({
      a: {
        ...o.a,
        data: {
          [Symbol.toStringTag]: 'Float32Array',
          length: 6,
          __proto__: Float32Array.prototype,
        },
      },
    }),
    { code: 'DTYPE', argument: 'A', says: ['an object', buffers] },
  ],
  'a revoked proxy': [
    (o) => ({ a: { ...o.a, data: revoked() } }),
    { code: 'DTYPE', argument: 'A', says: ['a revoked proxy', buffers] },
  ],
  'a proxy of an array': [
    (o) => ({ a: { ...o.a, data: new Proxy(o.a.data, {}) } }),
    { code: 'DTYPE', argument: 'A', says: ['an object', buffers] },
  ],
  'a heap tensor of another instance': [
    (o) => ({ a: { ...o.a, data: theirs } }),
    { code: 'ARGUMENT', argument: 'A', says: ['a tensor of another instance', 'alloc it here'] },
  ],
});

refuses('refuses types that do not agree:', {
  'B is int32': [
    () => ({ b: int32([3, 2], 1, 2, 3, 4, 5, 6) }),
    { code: 'DTYPE', argument: 'B', says: ['int32', 'float32', 'the same'] },
  ],
  'B is float16, which float32 takes only packed': [
    () => ({ b: tensor('float16', [3, 2], [1, 2, 3, 4, 5, 6]) }),
    {
      code: 'DTYPE',
      argument: 'B',
      says: ['float16', /the same, or pack\(\) must pack the weights for gemm$/],
    },
  ],
  'B is bfloat16, which float32 takes only packed': [
    () => ({ b: tensor('bfloat16', [3, 2], [1, 2, 3, 4, 5, 6]) }),
    { code: 'DTYPE', argument: 'B', says: ['bfloat16', 'pack() must pack the weights for gemm'] },
  ],
  'B is float32, which float16 does not take': [
    () => ({ a: tensor('float16', [2, 3], [1, 2, 3, 4, 5, 6]) }),
    { code: 'DTYPE', argument: 'B', says: [/; they must be the same$/] },
  ],
  'C is bfloat16': [
    () => ({ c: tensor('bfloat16', [2], [1, 2]) }),
    { code: 'DTYPE', argument: 'C', says: ['bfloat16', /; they must be the same$/] },
  ],
  'A is int8': [
    () => ({ a: { data: new Int8Array(6), shape: [2, 3] } }),
    { code: 'DTYPE', argument: 'A', says: ['A has type int8', '8-bit operands are for qgemm'] },
  ],
  'B is uint8': [
    () => ({ b: { data: new Uint8Array(6), shape: [3, 2] } }),
    { code: 'DTYPE', argument: 'B', says: ['B has type uint8', '8-bit operands are for qgemm'] },
  ],
  'C is int32': [
    () => ({ c: int32([2], 1, 2) }),
    { code: 'DTYPE', argument: 'C', says: ['int32', 'float32', 'the same'] },
  ],
  'out is int32': [
    () => ({ options: { out: int32([2, 2], 1, 2, 3, 4) } }),
    { code: 'DTYPE', argument: 'out', says: ['int32', 'float32', 'the same'] },
  ],
  'dtype is not the type of the array': [
    (o) => ({ a: { ...o.a, dtype: 'int32' } }),
    { code: 'DTYPE', argument: 'A', says: ['"int32"', 'Float32Array', 'float32'] },
  ],
  'dtype is misspelt': [
    (o) => ({ b: { ...o.b, dtype: 'Float32' } }),
    { code: 'DTYPE', argument: 'B', says: ['"Float32"', 'float32'] },
  ],
  'dtype is null': [
    (o) => ({ c: { ...o.c, dtype: null } }),
    { code: 'DTYPE', argument: 'C', says: ['null', 'float32'] },
  ],
  'dtype is of another operation': [
    (o) => ({ a: { ...o.a, dtype: 'int8' } }),
    { code: 'DTYPE', argument: 'A', says: ['"int8"', 'Float32Array', 'float32'] },
  ],
  'two types of 16 bits': [
    () => ({
      a: tensor('bfloat16', [2, 3], [1, 2, 3, 4, 5, 6]),
      b: tensor('float16', [3, 2], [1, 2, 3, 4, 5, 6]),
    }),
    { code: 'DTYPE', argument: 'B', says: ['float16', 'bfloat16', 'the same'] },
  ],
});

const wholeNumber = 'a whole number from 0 to 2^53 - 1';
refuses('refuses a shape:', {
  'that is absent': [
    () => ({ a: { data: data(6) } }),
    { code: 'SHAPE', argument: 'A', says: ['shape undefined', 'an array of whole numbers'] },
  ],
  'that is a number': [
    (o) => ({ a: { ...o.a, shape: 6 } }),
    { code: 'SHAPE', argument: 'A', says: ['shape 6', 'an array of whole numbers'] },
  ],
  'that is like an array': [
    (o) => ({ a: { ...o.a, shape: { length: 2, 0: 2, 1: 3 } } }),
    { code: 'SHAPE', argument: 'A', says: ['an object', 'an array'] },
  ],
  'that is a revoked proxy': [
    (o) => ({ a: { ...o.a, shape: revoked([2, 3]) } }),
    { code: 'SHAPE', argument: 'A', says: ['a revoked proxy', 'an array'] },
  ],
  'whose length is a text': [
    (o) => ({ a: { ...o.a, shape: ofLength([2, 3], '2') } }),
    { code: 'SHAPE', argument: 'A', says: ['length "2"', '64'] },
  ],
  'whose length is NaN': [
    (o) => ({ b: { ...o.b, shape: ofLength([3, 2], NaN) } }),
    { code: 'SHAPE', argument: 'B', says: ['length NaN', '64'] },
  ],
  'whose length is negative': [
    (o) => ({ c: { ...o.c, shape: ofLength([2, 2], -1) } }),
    { code: 'SHAPE', argument: 'C', says: ['length -1', '64'] },
  ],
  'whose length is a fraction': [
    (o) => ({ options: { out: { ...o.out, shape: ofLength([2, 2], 1.5) } } }),
    { code: 'SHAPE', argument: 'out', says: ['length 1.5', '64'] },
  ],
  'whose length is a symbol': [
    (o) => ({ a: { ...o.a, shape: ofLength([2, 3], Symbol('2')) } }),
    { code: 'SHAPE', argument: 'A', says: ['length a symbol', '64'] },
  ],
  'whose length is an object': [
    (o) => ({ options: { out: { ...o.out, shape: ofLength([2, 2], { valueOf: () => 2 }) } } }),
    { code: 'SHAPE', argument: 'out', says: ['length an object', '64'] },
  ],
  'with a negative number': [
    (o) => ({ a: { ...o.a, shape: [-2, -3] } }),
    { code: 'SHAPE', argument: 'A', says: ['-2', wholeNumber] },
  ],
  'with a fraction': [
    (o) => ({ b: { ...o.b, shape: [1.5, 4] } }),
    { code: 'SHAPE', argument: 'B', says: ['1.5', wholeNumber] },
  ],
  'with NaN': [
    (o) => ({ c: { ...o.c, shape: [NaN] } }),
    { code: 'SHAPE', argument: 'C', says: ['NaN', wholeNumber] },
  ],
  'with infinity': [
    (o) => ({ c: { ...o.c, shape: [Infinity] } }),
    { code: 'SHAPE', argument: 'C', says: ['Infinity', wholeNumber] },
  ],
  'with 2^53': [
    (o) => ({ a: { ...o.a, shape: [2 ** 53, 1] } }),
    { code: 'SHAPE', argument: 'A', says: ['9007199254740992', wholeNumber] },
  ],
  'with strings': [
    (o) => ({ a: { ...o.a, shape: ['2', '3'] } }),
    { code: 'SHAPE', argument: 'A', says: ['"2"', wholeNumber] },
  ],
  'with bigints': [
    (o) => ({ a: { ...o.a, shape: [2n, 3n] } }),
    { code: 'SHAPE', argument: 'A', says: ['2n', wholeNumber] },
  ],
  'with a hole': [
    // eslint-disable-next-line no-sparse-arrays
    (o) => ({ a: { ...o.a, shape: [, 3] } }),
    { code: 'SHAPE', argument: 'A', says: ['undefined', wholeNumber] },
  ],
  'with a product beyond 2^53': [
    (o) => ({ a: { ...o.a, shape: [2 ** 27, 2 ** 27] } }),
    { code: 'SHAPE', argument: 'A', says: ['[134217728, 134217728]', '2^53'] },
  ],
  'with a product beyond float64': [
    (o) => ({ a: { ...o.a, shape: Array<number>(64).fill(2 ** 52) } }),
    { code: 'SHAPE', argument: 'A', says: ['2^53'] },
  ],
  'with an empty product beyond 2^53': [
    () => ({ a: { data: data(0), shape: [0, 2 ** 52, 4] } }),
    { code: 'SHAPE', argument: 'A', says: ['2^53'] },
  ],
  'of rank 0': [
    () => ({ a: { data: data(1), shape: [] } }),
    { code: 'SHAPE', argument: 'A', says: ['[]', 'rank 0', 'rank 2'] },
  ],
  'of rank 1': [
    () => ({ b: { data: data(3), shape: [3] } }),
    { code: 'SHAPE', argument: 'B', says: ['[3]', 'rank 1', 'rank 2'] },
  ],
  'of rank 3': [
    () => ({ a: { data: data(6), shape: [1, 2, 3] } }),
    { code: 'SHAPE', argument: 'A', says: ['[1, 2, 3]', 'rank 3', 'rank 2'] },
  ],
  'of rank 65': [
    () => ({ a: { data: data(1), shape: Array(65).fill(1) } }),
    { code: 'SHAPE', argument: 'A', says: ['65', '64'] },
  ],
  'of rank 64, saying what rank it must have': [
    () => ({ a: { data: data(1), shape: Array(64).fill(1) } }),
    { code: 'SHAPE', argument: 'A', says: ['rank 64', 'rank 2'] },
  ],
  'that is (N, K)': [
    () => ({ b: { data: data(12), shape: [4, 3] } }),
    { code: 'SHAPE', argument: 'B', says: ['K is 3 in A and 4 in B', 'set transB if B is (N, K)'] },
  ],
  'that is not (N, K)': [
    () => ({ b: { data: data(12), shape: [3, 4] }, options: { transB: true } }),
    { code: 'SHAPE', argument: 'B', says: ['(transposed)', 'unset transB if B is (K, N)'] },
  ],
  'whose K is not the K of A': [
    () => ({ b: { data: data(4), shape: [2, 2] } }),
    { code: 'SHAPE', argument: 'B', says: ['[2, 3]', '[2, 2]', 'K is 3 in A and 2 in B'] },
  ],
  'whose K is not the K of A, transposed': [
    (o) => ({ b: o.a, options: { transA: true, transB: true } }),
    { code: 'SHAPE', argument: 'B', says: ['transposed', 'K is 2 in A and 3 in B'] },
  ],
  'of which Y would have 2^53 elements': [
    () => ({
      a: { data: data(0), shape: [2 ** 30, 0] },
      b: { data: data(0), shape: [0, 2 ** 30] },
      c: null,
      options: { out: undefined },
    }),
    { code: 'SHAPE', argument: 'out', says: ['[1073741824, 1073741824]', '2^53'] },
  ],
  'of out that is not (M, N)': [
    () => ({ options: { out: float32([4, 1], 1, 2, 3, 4) } }),
    { code: 'SHAPE', argument: 'out', says: ['[4, 1]', '[2, 2]'] },
  ],
  'of out that has rank 1': [
    () => ({ options: { out: float32([4], 1, 2, 3, 4) } }),
    { code: 'SHAPE', argument: 'out', says: ['[4]', '[2, 2]'] },
  ],
  'of out that has rank 3': [
    () => ({ options: { out: float32([1, 2, 2], 1, 2, 3, 4) } }),
    { code: 'SHAPE', argument: 'out', says: ['[1, 2, 2]', '[2, 2]'] },
  ],
});

refuses('refuses a C that does not broadcast to (M, N):', {
  '(M), M not being N': [
    () => ({
      a: { data: data(9), shape: [3, 3] },
      c: float32([3], 1, 2, 3),
      options: { out: undefined },
    }),
    { code: 'SHAPE', argument: 'C', says: ['[3]', '[3, 2]', '[M, 1]'] },
  ],
  '(N, 1), N not being M': [
    () => ({
      b: { data: data(9), shape: [3, 3] },
      c: float32([3, 1], 1, 2, 3),
      options: { out: undefined },
    }),
    { code: 'SHAPE', argument: 'C', says: ['[3, 1]', '[2, 3]'] },
  ],
  'rank 3 with a leading 1': [
    () => ({ c: float32([1, 2, 2], 1, 2, 3, 4) }),
    { code: 'SHAPE', argument: 'C', says: ['[1, 2, 2]', '[2, 2]'] },
  ],
  'a size that is neither 1 nor the target': [
    () => ({ c: { data: data(6), shape: [2, 3] } }),
    { code: 'SHAPE', argument: 'C', says: ['[2, 3]', '[2, 2]'] },
  ],
  'an empty C': [
    () => ({ c: { data: data(0), shape: [0] } }),
    { code: 'SHAPE', argument: 'C', says: ['[0]', '[2, 2]'] },
  ],
  'even where beta is 0': [
    () => ({ c: float32([3], 1, 2, 3), options: { beta: 0 } }),
    { code: 'SHAPE', argument: 'C', says: ['[3]'] },
  ],
});

refuses('refuses an array of a length that is not', {
  'its shape: one element short': [
    (o) => ({ a: { ...o.a, data: data(5) } }),
    { code: 'SHAPE', argument: 'A', says: ['5 elements', '[2, 3]', 'needs 6'] },
  ],
  'its shape: one element long': [
    (o) => ({ b: { ...o.b, data: data(7) } }),
    { code: 'SHAPE', argument: 'B', says: ['7 elements', '[3, 2]', 'needs 6'] },
  ],
  'its shape: empty': [
    (o) => ({ c: { ...o.c, data: data(0) } }),
    { code: 'SHAPE', argument: 'C', says: ['0 elements', '[2, 2]', 'needs 4'] },
  ],
  'its shape: elements for an empty shape': [
    () => ({ a: { data: data(1), shape: [0, 3] } }),
    { code: 'SHAPE', argument: 'A', says: ['1 elements', '[0, 3]', 'needs 0'] },
  ],
  'its shape: an out too long': [
    (o) => ({ options: { out: { ...o.out, data: data(5) } } }),
    { code: 'SHAPE', argument: 'out', says: ['5 elements', 'needs 4'] },
  ],
  'its strides: short': [
    (o) => ({ a: { ...o.a, strides: [4, 1] } }),
    { code: 'SHAPE', argument: 'A', says: ['6 elements', '[4, 1]', 'need 7'] },
  ],
});

const asHere = [
  'which differs from its shape and strides',
  'pass tensor(x) of this package',
  'shape, strides and offset, with these two in elements',
];
const layout = (argument: string, ...found: string[]): Wanted => ({
  code: 'SHAPE',
  argument,
  says: [...found, ...asHere],
});
class View {
  constructor(
    readonly data: Float32Array,
    readonly shape: number[],
  ) {}
  get begin() {
    return 1;
  }
}
refuses('refuses what other libraries say of an array:', {
  'a transposed ndarray': [
    (o) => ({ a: { data: o.a.data, shape: [2, 3], stride: [1, 2], offset: 0 } }),
    layout('A', 'stride [1, 2]'),
  ],
  'a reversed ndarray': [
    (o) => ({ b: { data: o.b.data, shape: [3, 2], stride: [-2, 1], offset: 4 } }),
    layout('B', 'stride [-2, 1]'),
  ],
  'an ndarray as out': [
    (o) => ({ options: { out: { data: o.out.data, shape: [2, 2], stride: [1, 2], offset: 0 } } }),
    layout('out', 'stride [1, 2]'),
  ],
  'a transposed ndarray as C': [
    (o) => ({ c: { data: o.c.data, shape: [2, 2], stride: [1, 2], offset: 0 } }),
    layout('C', 'stride [1, 2]'),
  ],
  'a begin by a getter of a class': [
    (o) => ({ a: new View(o.a.data, [2, 3]) }),
    layout('A', 'begin 1'),
  ],
  'a stride that is not among the strides': [
    (o) => ({ a: { ...o.a, strides: [1, 2], stride: [3, 1] } }),
    layout('A', 'stride [3, 1]'),
  ],
  'a stride that is a number': [(o) => ({ a: { ...o.a, stride: 3 } }), layout('A', 'stride 3')],
  'a stride that is a revoked proxy': [
    (o) => ({ a: { ...o.a, stride: revoked([3, 1]) } }),
    layout('A', 'stride a revoked proxy'),
  ],
  'an offset in bytes': [(o) => ({ b: { ...o.b, byteOffset: 4 } }), layout('B', 'byteOffset 4')],
  'a start': [(o) => ({ a: { ...o.a, start: 2 } }), layout('A', 'start 2')],
  'a step': [(o) => ({ a: { ...o.a, step: 2 } }), layout('A', 'step 2')],
  'column-major order, of @stdlib': [
    (o) => ({ a: { ...o.a, order: 'column-major' } }),
    layout('A', 'order "column-major"'),
  ],
  'the order of Fortran, of NumPy': [
    (o) => ({ b: { ...o.b, order: 'F' } }),
    layout('B', 'order "F"'),
  ],
  ...Object.fromEntries(
    ['F_CONTIGUOUS', 'F-order', ' F', 'f-contiguous', 'CM', 'cm', 'blas-col'].map((order) => [
      `the order ${order}`,
      [
        (o: Operands) => ({ a: { ...o.a, order } }),
        layout('A', `order ${JSON.stringify(order)}`),
      ] as Cases[string],
    ]),
  ),
  'an offset of PyTorch': [
    (o) => ({ a: { ...o.a, storageOffset: 2 } }),
    layout('A', 'storageOffset 2'),
  ],
  'a begin': [(o) => ({ a: { ...o.a, begin: 2 } }), layout('A', 'begin 2')],
  ...Object.fromEntries(
    ['isFortran', 'column_major', 'colMajor', 'isColumnMajor'].map((flag) => [
      `a flag ${flag}`,
      [
        (o: Operands) => ({ b: { ...o.b, [flag]: true } }),
        layout('B', `${flag} true`),
      ] as Cases[string],
    ]),
  ),
  'a layout of columns': [
    (o) => ({ b: { ...o.b, layout: 'colMajor' } }),
    layout('B', 'layout "colMajor"'),
  ],
  'the order of Fortran, of an .npy file': [
    (o) => ({ b: { ...o.b, fortranOrder: true } }),
    layout('B', 'fortranOrder true'),
  ],
  'the same by another name': [
    (o) => ({ c: { ...o.c, fortran_order: true } }),
    layout('C', 'fortran_order true'),
  ],
  'columns by a flag': [
    (o) => ({ options: { out: { ...o.out, columnMajor: true } } }),
    layout('out', 'columnMajor true'),
  ],
  'a transpose by a flag': [
    (o) => ({ a: { ...o.a, transposed: true } }),
    layout('A', 'transposed true'),
  ],
});

it('refuses an order that is a String object', () => {
  expectRefused((o) => ({ a: { ...o.a, order: new String('F') } }), layout('A', 'order "F"'));
});

/** Properties that agree with shape and strides, or do not concern the elements. */
const sayingTheSame: [string, (o: Operands) => Call][] = [
  [
    'an ndarray',
    (o) => ({ a: { ...o.a, stride: [3, 1], offset: 0, order: [1, 0], step: () => 0 } }),
  ],
  [
    'a row of an ndarray',
    (o) => ({
      a: { ...o.a, data: data(3), shape: [1, 3], stride: [7, 1], offset: 0 },
      c: 0,
      options: { out: undefined },
    }),
  ],
  [
    'an empty ndarray',
    () => ({
      a: { data: data(0), shape: [0, 3], stride: [9, 9], offset: 0 },
      c: 0,
      options: { out: undefined },
    }),
  ],
  ['strides and a stride', (o) => ({ a: { ...o.a, strides: [1, 2], stride: [1, 2] } })],
  [
    'an array of @stdlib',
    (o) => ({ b: { ...o.b, strides: [2, 1], offset: 0, order: 'row-major' } }),
  ],
  [
    'one whose strides say columns',
    (o) => ({ b: { ...o.b, strides: [1, 3], offset: 0, order: 'column-major' } }),
  ],
  [
    'a vector of columns',
    (o) => ({ c: { ...o.c, data: data(2), shape: [1, 2], order: 'F', fortranOrder: true } }),
  ],
  [
    'an .npy file',
    (o) => ({ c: { ...o.c, fortranOrder: false, step: 1, start: 0, byteOffset: 0 } }),
  ],
  [
    'nothing',
    (o) => ({
      a: { ...o.a, stride: undefined, offset: null, order: undefined, transposed: false },
    }),
  ],
  ...['C', 'C_CONTIGUOUS', 'K', 'A'].map((order): (typeof sayingTheSame)[number] => [
    `order ${order}`,
    (o) => ({ a: { ...o.a, order } }),
  ]),
  [
    'something else',
    (o) => ({ a: { ...o.a, name: 'x', id: 7, requiresGrad: true, layout: 'NCHW' } }),
  ],
];
it.each(sayingTheSame)('takes what says the same: %s', async (_, change) => {
  const o = operands();
  const { a, b, c, options } = change(o);
  const [A, B, C] = [a ?? o.a, b ?? o.b, c ?? o.c] as [never, never, never];
  const all = { out: o.out, ...(options as object) };
  expectGemm(wg, A, B, C, all);
  const y = await inWorker.gemm(A, B, C);
  expect(y.data).toEqual(wg.gemm(A, B, C).data);
});

refuses('refuses strides', {
  'that are a revoked proxy': [
    (o) => ({ a: { ...o.a, strides: revoked([3, 1]) } }),
    { code: 'SHAPE', argument: 'A', says: ['strides a revoked proxy', 'an array'] },
  ],
  'whose length is a text': [
    (o) => ({ a: { ...o.a, strides: ofLength([3, 1], '2') } }),
    { code: 'SHAPE', argument: 'A', says: ['length "2"', '64'] },
  ],
  'that are null': [
    (o) => ({ a: { ...o.a, strides: null } }),
    { code: 'SHAPE', argument: 'A', says: ['strides null', 'an array'] },
  ],
  'with a negative number': [
    (o) => ({ a: { ...o.a, strides: [-3, 1] } }),
    { code: 'SHAPE', argument: 'A', says: ['-3', 'strides', wholeNumber] },
  ],
  'with a fraction': [
    (o) => ({ b: { ...o.b, strides: [2, 0.5] } }),
    { code: 'SHAPE', argument: 'B', says: ['0.5', 'strides', wholeNumber] },
  ],
  'of higher rank': [
    (o) => ({ a: { ...o.a, strides: [3, 1, 1] } }),
    { code: 'SHAPE', argument: 'A', says: ['[3, 1, 1]', '[2, 3]', 'one stride per axis'] },
  ],
  'of lower rank': [
    (o) => ({ a: { ...o.a, strides: [1] } }),
    { code: 'SHAPE', argument: 'A', says: ['[1]', '[2, 3]', 'one stride per axis'] },
  ],
  'that reach beyond 2^53': [
    (o) => ({ a: { ...o.a, strides: [2 ** 53 - 1, 2] } }),
    { code: 'SHAPE', argument: 'A', says: ['9007199254740991', '2^53'] },
  ],
  'of 0 in out': [
    () => ({ options: { out: { data: data(2), shape: [2, 2], strides: [0, 1] } } }),
    { code: 'SHAPE', argument: 'out', says: ['[0, 1]', 'share'] },
  ],
  'by which rows of out run into one another': [
    () => ({ options: { out: { data: data(3), shape: [2, 2], strides: [1, 1] } } }),
    { code: 'SHAPE', argument: 'out', says: ['[1, 1]', 'share'] },
  ],
});

const aNumber = 'must be a number';
refuses('refuses the option', {
  'options is a number': [
    () => ({ options: 5 }),
    { code: 'ARGUMENT', argument: 'options', says: ['is 5', 'an object'] },
  ],
  'options is a string': [
    () => ({ options: 'transA' }),
    { code: 'ARGUMENT', argument: 'options', says: ['"transA"', 'an object'] },
  ],
  'options is a function': [
    () => ({ options: () => 1 }),
    { code: 'ARGUMENT', argument: 'options', says: ['a function', 'an object'] },
  ],
  'activation is a revoked proxy': [
    () => ({ options: { activation: revoked([0, 6]) } }),
    { code: 'ARGUMENT', argument: 'activation', says: ['a revoked proxy', '[min, max]'] },
  ],
  'activation of a length that is a symbol': [
    () => ({ options: { activation: ofLength([0, 6], Symbol('2')) } }),
    { code: 'ARGUMENT', argument: 'activation', says: ['a symbol', '[min, max]'] },
  ],
  'transa, misspelt': [
    () => ({ options: { transa: true } }),
    { code: 'ARGUMENT', argument: 'transa', says: ['"transa"', 'not known', 'transA'] },
  ],
  'toString, inherited by objects': [
    () => ({ options: { toString: 1 } }),
    { code: 'ARGUMENT', argument: 'toString', says: ['"toString"', 'not known'] },
  ],
  'an unknown one that is undefined': [
    () => ({ options: { gamma: undefined } }),
    { code: 'ARGUMENT', argument: 'gamma', says: ['"gamma"', 'alpha, beta'] },
  ],
  'alpha: a string': [
    () => ({ options: { alpha: '1' } }),
    { code: 'ARGUMENT', argument: 'alpha', says: ['"1"', aNumber] },
  ],
  'alpha: null': [
    () => ({ options: { alpha: null } }),
    { code: 'ARGUMENT', argument: 'alpha', says: ['null', aNumber] },
  ],
  'beta: a bigint': [
    () => ({ options: { beta: 1n } }),
    { code: 'ARGUMENT', argument: 'beta', says: ['64-bit integer', 'float32', aNumber] },
  ],
  'beta: an array': [
    () => ({ options: { beta: [1] } }),
    { code: 'ARGUMENT', argument: 'beta', says: ['an array', aNumber] },
  ],
  ...Object.fromEntries(
    [1, -0.5, NaN].map((beta): [string, Cases[string]] => [
      `beta: ${beta} with out and without C`,
      [() => ({ c: null, options: { beta } }), addsNothing(`${beta}`)],
    ]),
  ),
  'transA: a string': [
    () => ({ options: { transA: 'false' } }),
    { code: 'ARGUMENT', argument: 'transA', says: ['"false"', 'a boolean or a number'] },
  ],
  'transB: NaN': [
    () => ({ options: { transB: NaN } }),
    { code: 'ARGUMENT', argument: 'transB', says: ['NaN', 'a boolean or a number'] },
  ],
  'transB: null': [
    () => ({ options: { transB: null } }),
    { code: 'ARGUMENT', argument: 'transB', says: ['null', 'a boolean or a number'] },
  ],
  'broadcast: an object': [
    () => ({ options: { opset: 6, broadcast: {} } }),
    { code: 'ARGUMENT', argument: 'broadcast', says: ['an object', 'a boolean or a number'] },
  ],
  'broadcast: given at opset 13': [
    () => ({ options: { broadcast: false } }),
    {
      code: 'OPSET',
      argument: 'broadcast',
      says: ['opset 13', 'no attribute broadcast', 'opset 7'],
    },
  ],
  'opset: 0': [
    () => ({ options: { opset: 0 } }),
    { code: 'OPSET', argument: 'opset', says: ['0', '1 or more'] },
  ],
  'opset: -1': [
    () => ({ options: { opset: -1 } }),
    { code: 'OPSET', argument: 'opset', says: ['-1', '1 or more'] },
  ],
  'opset: a fraction': [
    () => ({ options: { opset: 6.5 } }),
    { code: 'OPSET', argument: 'opset', says: ['6.5', 'a whole number, 1 or more'] },
  ],
  'opset: NaN': [
    () => ({ options: { opset: NaN } }),
    { code: 'OPSET', argument: 'opset', says: ['NaN', 'a whole number, 1 or more'] },
  ],
  'opset: a string': [
    () => ({ options: { opset: '13' } }),
    { code: 'OPSET', argument: 'opset', says: ['"13"', 'a whole number, 1 or more'] },
  ],
  'opset: 10 without C': [
    () => ({ c: null, options: { opset: 10 } }),
    { code: 'OPSET', argument: 'C', says: ['opset 10', 'Gemm-9', 'opset 11'] },
  ],
});

describe.each(dtypes)('%s and B of another type:', (dtype) => {
  it.each(dtypes)('%s', (other) => {
    const a = tensor(dtype, [1, 1], [2]);
    const b = tensor(other, [1, 1], [3]);
    if (dtype === other) {
      expectGemm(wg, a, b, a);
      return;
    }
    const says = [other, dtype, 'the same'];
    const run = (...[a, b, c, out]: unknown[]) =>
      thrown(() => wg.gemm(a as never, b as never, c as never, { out: out as never }));
    expectError(run(a, b), { code: 'DTYPE', argument: 'B', says });
    expectError(run(a, a, b), { code: 'DTYPE', argument: 'C', says });
    expectError(run(a, a, a, b), { code: 'DTYPE', argument: 'out', says });
  });
});

/** A call with integers, 1-by-1 matrices and C of rank 0, unless given. */
const integerCall = (dtype: Integer, options: object, c: unknown = tensor(dtype, [], [1])) => {
  const one = tensor(dtype, [1, 1], [1]);
  return () => ({ a: one, b: one, c, options: { out: undefined, ...options } });
};
const factor = (argument: string, ...says: string[]): Wanted => ({
  code: 'ARGUMENT',
  argument,
  says,
});
const cannotHold = (dtype: Integer): Wanted => ({
  code: 'ARGUMENT',
  argument: 'C',
  says: [dtype, 'cannot hold'],
});
for (const dtype of integerTypes) {
  const { bits, signed } = integers[dtype];
  const end = 2 ** (signed ? bits - 1 : bits);
  refuses(`refuses with ${dtype}`, {
    'alpha NaN': [integerCall(dtype, { alpha: NaN }), factor('alpha', 'NaN', dtype, 'finite')],
    'beta infinite': [
      integerCall(dtype, { beta: -Infinity }),
      factor('beta', 'infinite', dtype, 'finite'),
    ],
    'beta NaN where there is no C': [
      integerCall(dtype, { beta: NaN }, null),
      factor('beta', 'NaN', 'finite'),
    ],
    'alpha beyond 2^53': [
      integerCall(dtype, { alpha: 2 ** 53 + 2 }),
      factor('alpha', 'beyond 2^53', dtype),
    ],
    'beta beyond -2^53': [
      integerCall(dtype, { beta: -(2 ** 53) - 2 }),
      factor('beta', 'beyond 2^53', dtype),
    ],
    'C a fraction': [integerCall(dtype, {}, 0.5), cannotHold(dtype)],
    'C above the type': [integerCall(dtype, {}, end), cannotHold(dtype)],
    'C below the type': [integerCall(dtype, {}, signed ? -end - 4096 : -1), cannotHold(dtype)],
    'C NaN': [integerCall(dtype, { beta: 0 }, NaN), cannotHold(dtype)],
    'C infinite': [integerCall(dtype, {}, Infinity), cannotHold(dtype)],
    'C a bigint above the type': [integerCall(dtype, {}, BigInt(end)), cannotHold(dtype)],
    'C a bigint below the type': [
      integerCall(dtype, {}, signed ? -BigInt(end) - 1n : -1n),
      cannotHold(dtype),
    ],
    'opset 8': [
      integerCall(dtype, { opset: 8 }),
      { code: 'OPSET', argument: 'opset', says: ['opset 8', 'Gemm-7', dtype, 'at least 9'] },
    ],
  });
}
for (const dtype of ['int64', 'uint64'] as const) {
  refuses(`refuses with ${dtype}`, {
    'a fraction as alpha next to a bigint': [
      integerCall(dtype, { alpha: 0.5, beta: 1n }),
      factor('alpha', 'fraction', 'beta', 'whole'),
    ],
    'a fraction as beta next to a bigint': [
      integerCall(dtype, { alpha: 1n, beta: 0.5 }),
      factor('beta', 'fraction', 'alpha', 'whole'),
    ],
    'NaN next to a bigint': [
      integerCall(dtype, { alpha: NaN, beta: 1n }),
      factor('alpha', 'NaN', 'finite'),
    ],
  });
}
describe.each(dtypes.filter((dtype) => isFloat(dtype) || integers[dtype].bits < 64))(
  'refuses a bigint with %s',
  (dtype) => {
    const one = tensor(dtype, [1, 1], [1]);
    it.each(['alpha', 'beta'])('as %s', (name) => {
      expectRefused(() => ({ a: one, b: one, c: one, options: { out: undefined, [name]: 1n } }), {
        code: 'ARGUMENT',
        argument: name,
        says: ['64-bit integer', dtype, 'a number'],
      });
    });
    it('as C', () => {
      expectRefused(() => ({ a: one, b: one, c: 1n, options: { out: undefined } }), {
        code: 'ARGUMENT',
        argument: 'C',
        says: ['1n', dtype, 'int64 and uint64'],
      });
    });
  },
);

/** Two matrices (2, 2) in one array, the second `shift` elements behind the first. */
function overlapping(shift: number) {
  const array = new Float32Array(8).fill(1);
  return {
    first: { data: array.subarray(0, 4), shape: [2, 2] },
    second: { data: array.subarray(shift, shift + 4), shape: [2, 2] },
  };
}
const square = float32([2, 2], 1, 2, 3, 4);
const onlyC = 'only C may be written over';

refuses('refuses an out that overlaps', {
  A: [
    () => {
      const { first } = overlapping(0);
      return { a: first, b: square, options: { out: first } };
    },
    { code: 'ARGUMENT', argument: 'out', says: ['overlaps A', onlyC] },
  ],
  'A by one element': [
    () => {
      const { first, second } = overlapping(3);
      return { a: first, b: square, options: { out: second } };
    },
    { code: 'ARGUMENT', argument: 'out', says: ['overlaps A', onlyC] },
  ],
  'B by one element, from before': [
    () => {
      const { first, second } = overlapping(3);
      return { a: square, b: second, options: { out: first } };
    },
    { code: 'ARGUMENT', argument: 'out', says: ['overlaps B', onlyC] },
  ],
  'C in part': [
    () => {
      const { first, second } = overlapping(2);
      return { a: square, b: square, c: first, options: { out: second } };
    },
    {
      code: 'ARGUMENT',
      argument: 'out',
      says: ['overlaps C', 'the memory, shape and strides of C'],
    },
  ],
  'C of another shape': [
    () => {
      const { first } = overlapping(0);
      return {
        a: square,
        b: square,
        c: { data: first.data.subarray(0, 2), shape: [2] },
        options: { out: first },
      };
    },
    {
      code: 'ARGUMENT',
      argument: 'out',
      says: ['overlaps C', 'the memory, shape and strides of C'],
    },
  ],
  'C of other strides': [
    () => {
      const { first } = overlapping(0);
      return { a: square, b: square, c: { ...first, strides: [1, 2] }, options: { out: first } };
    },
    {
      code: 'ARGUMENT',
      argument: 'out',
      says: ['overlaps C', 'the memory, shape and strides of C'],
    },
  ],
  'C in part, even where beta is 0': [
    () => {
      const { first, second } = overlapping(1);
      return { a: square, b: square, c: first, options: { beta: 0, out: second } };
    },
    {
      code: 'ARGUMENT',
      argument: 'out',
      says: ['overlaps C', 'the memory, shape and strides of C'],
    },
  ],
  'both A and C, being C': [
    () => {
      const { first } = overlapping(0);
      return { a: first, b: square, c: first, options: { out: first } };
    },
    { code: 'ARGUMENT', argument: 'out', says: ['overlaps A', onlyC] },
  ],
  'A, between whose elements it lies in part': [
    () => {
      const array = new Float32Array(16);
      const a = { data: array.subarray(0, 10), shape: [2, 2], strides: [8, 1] };
      return {
        a,
        b: square,
        options: { out: { data: array.subarray(1, 11), shape: [2, 2], strides: [8, 1] } },
      };
    },
    { code: 'ARGUMENT', argument: 'out', says: ['overlaps A', onlyC] },
  ],
  'A in the heap, taken as a view': [
    () => {
      using heap = wg.alloc('float32', [2, 2]); // disposed of at once: a view of it must not be used
      return { a: { data: heap.data, shape: [2, 2] }, b: square };
    },
    { code: 'DISPOSED', argument: 'A', says: ['a view of a tensor that was disposed'] },
  ],
});

it('refuses an array in the place of the options', () => {
  const run = () => wg.gemm(2 as never, 2 as never, 3, data(4) as never);
  const says = ['Float32Array', calledSo];
  const nested = thrown(() => wg.gemm(2 as never, 2 as never, 3, [[1, 2]] as never));
  expectError(nested, { code: 'ARGUMENT', argument: 'options', says: ['an array', calledSo] });
  expectError(thrown(run), { code: 'ARGUMENT', argument: 'options', says });
});

describe('beta with out and without C', () => {
  it.each([0, -0, 0n, undefined])('is taken if it is %s, here and in the heap', (beta) => {
    const x = { data: BigInt64Array.of(3n), shape: [1, 1] };
    using held = wg.alloc('int64', [1, 1]);
    using y = wg.alloc('int64', [1, 1]);
    held.data.set([3n]);
    y.data.set([100n]);
    for (const c of [null, undefined]) {
      const out = { data: BigInt64Array.of(100n), shape: [1, 1] };
      expect(wg.gemm(x, x, c, { beta, out }).data[0]).toBe(9n);
      expect(wg.gemm(held, held, c, { beta, out: y }).data[0]).toBe(9n);
    }
  });

  it('is refused in the heap, too, and as a bigint', () => {
    using x = wg.alloc('int64', [1, 1]);
    using y = wg.alloc('int64', [1, 1]);
    y.data.set([100n]);
    expectError(
      thrown(() => wg.gemm(x, x, null, { beta: 1n, out: y })),
      addsNothing('1n'),
    );
    expect(y.data[0]).toBe(100n);
    // Without out, there is nothing that a caller could mean by it.
    expect(wg.gemm(x, x, null, { beta: 1n }).data[0]).toBe(0n);
  });
});

describe('refuses an out in the heap', () => {
  it('that overlaps an input', () => {
    using heap = wg.alloc('float32', [3, 2]);
    using y = wg.alloc('float32', [2, 2]);
    const part = (from: number) => ({ data: heap.data.subarray(from, from + 4), shape: [2, 2] });
    const wanted: Wanted = { code: 'ARGUMENT', argument: 'out', says: ['overlaps A', onlyC] };
    heap.data.fill(5);
    expectError(
      thrown(() => wg.gemm(y, square, null, { out: y })),
      wanted,
    );
    expectError(
      thrown(() => wg.gemm(y, y, null, { out: { data: y.data, shape: [2, 2] } })),
      wanted,
    );
    expectError(
      thrown(() => wg.gemm(part(0), square, null, { out: part(2) })),
      wanted,
    );
    expect(Array.from(heap.data)).toEqual([5, 5, 5, 5, 5, 5]);
    expect(Array.from(y.data)).toEqual([0, 0, 0, 0]);
  });
});

describe('refuses what is disposed or of another instance:', () => {
  const wantedDisposed: Wanted = { code: 'DISPOSED', argument: 'A', says: ['disposed tensor'] };

  it.each(['A', 'B', 'C', 'out'])('a tensor as %s', (name) => {
    const place = { A: 'a', B: 'b', C: 'c', out: 'out' }[name] as string;
    const disposed = wg.alloc('float32', [2, 2]);
    disposed.dispose();
    expect(disposed.disposed).toBe(true);
    const call = (tensor: HeapTensor): Call =>
      place === 'out' ? { options: { out: tensor } } : { [place]: tensor };
    expectRefused(() => call(disposed), { ...wantedDisposed, argument: name });
    expectRefused(() => call(theirs), {
      code: 'ARGUMENT',
      argument: name,
      says: ['another instance', 'copy'],
    });
  });

  it('the data of a tensor', async () => {
    const disposed = wg.alloc('float32', [2, 2]);
    disposed.dispose();
    expectError(
      thrown(() => disposed.data),
      { code: 'DISPOSED', op: 'data', argument: 'tensor', says: ['disposed'] },
    );
    const instance = await createGemm();
    const tensor = instance.alloc('int32', [1]);
    instance.dispose();
    expect(tensor.disposed).toBe(true);
    expectError(
      thrown(() => tensor.data),
      { code: 'DISPOSED', op: 'data', argument: 'tensor', says: ['disposed'] },
    );
    tensor.dispose();
  });

  it('an instance', async () => {
    const instance = await createGemm();
    const tensor = instance.alloc('float32', [2, 2]);
    expect(instance.disposed).toBe(false);
    instance.dispose();
    expect(instance.disposed).toBe(true);
    const wanted = (op: string): Wanted => ({
      code: 'DISPOSED',
      op,
      argument: 'instance',
      says: ['disposed', 'createGemm()'],
    });
    expectError(
      thrown(() => instance.gemm(square, square)),
      wanted('gemm'),
    );
    expectError(
      thrown(() => instance.gemm(tensor, tensor, null, { out: tensor })),
      wanted('gemm'),
    );
    expectError(
      thrown(() => instance.explain('gemm', square, square)),
      wanted('gemm'),
    );
    expectError(
      thrown(() => instance.alloc('float32', [1])),
      wanted('alloc'),
    );
    expectError(
      thrown(() => instance.memory()),
      wanted('memory'),
    );
    expectGemm(wg, square, square, null, {}, 'on another instance');
  });
});

describe('refuses a detached array', () => {
  it.each(['a', 'b', 'c', 'out'] as const)('as %s', (name) => {
    for (const shape of [
      [2, 2],
      [0, 2],
    ]) {
      const buffer = new ArrayBuffer(4 * (shape[0] as number) * 2);
      const detached = { data: new Float32Array(buffer), shape };
      structuredClone(buffer, { transfer: [buffer] });
      expectRefused(
        () => (name === 'out' ? { options: { out: detached } } : { [name]: detached }),
        {
          code: 'ARGUMENT',
          argument: name === 'out' ? 'out' : name.toUpperCase(),
          says: ['detached', 'transferred'],
        },
      );
    }
  });

  it('if a view of the heap ended when the memory grew', async () => {
    const instance = await createGemm();
    const tensor = instance.alloc('float32', [2, 2]);
    const view = tensor.data;
    const { committed } = instance.memory();
    instance.alloc('float32', [committed / 4]);
    expect(instance.memory().committed).toBeGreaterThan(committed);
    if (view.buffer[Symbol.toStringTag] === 'SharedArrayBuffer') {
      // Views of shared memory stay valid, and the tensor has not moved.
      view.set([1, 2, 3, 4]);
      expectGemm(instance, { data: view, shape: [2, 2] }, square);
    } else {
      expectError(
        thrown(() => instance.gemm({ data: view, shape: [2, 2] }, square)),
        { code: 'ARGUMENT', argument: 'A', says: ['detached', 'grew'] },
      );
    }
    instance.gemm({ data: tensor.data, shape: [2, 2] }, square);
    instance.dispose();
  });
});

describe('when a getter among the arguments calls back', () => {
  it('the number that is C stays as in its call', () => {
    const one = float32([1, 1], 1);
    const options = {
      get alpha() {
        wg.gemm(one, one, 100);
        return 1;
      },
    };
    expect(wg.gemm(one, one, 5, options).data[0]).toBe(6);
  });

  it('a tensor that it disposes of is not read', () => {
    const tensor = wg.alloc('float32', [2, 2]);
    const options = {
      get alpha() {
        tensor.dispose();
        return 1;
      },
    };
    expectError(
      thrown(() => wg.gemm(tensor, square, null, options)),
      { code: 'DISPOSED', argument: 'A', says: ['disposed tensor'] },
    );
  });

  it('an instance that it disposes of is not used', async () => {
    const instance = await createGemm();
    const options = {
      get alpha() {
        instance.dispose();
        return 1;
      },
    };
    expectError(
      thrown(() => instance.gemm(square, square, 1, options)),
      { code: 'DISPOSED', argument: 'instance', says: ['disposed'] },
    );
  });

  it('its own error comes through, and nothing is kept', () => {
    const inUse = wg.memory().inUse;
    const options = {
      get out(): never {
        throw new RangeError('mine');
      },
    };
    expect(() => wg.gemm(square, square, null, options)).toThrow(new RangeError('mine'));
    expect(wg.memory().inUse).toBe(inUse);
  });
});

describe('refuses to take more memory than there is', () => {
  it('for alloc, beyond maxMemory', async () => {
    const instance = await createGemm({ maxMemory: 10_000 });
    expectError(
      thrown(() => instance.alloc('float32', [2500])),
      {
        code: 'OUT_OF_MEMORY',
        op: 'alloc',
        argument: '',
        says: ['10000 bytes', '0 bytes are in use'],
      },
    );
    expect(instance.memory().inUse).toBe(0);
    const tensor = instance.alloc('float32', [2000]);
    expect(thrown(() => instance.alloc('float32', [2000]))).toMatchObject({
      code: 'OUT_OF_MEMORY',
    });
    tensor.dispose();
    instance.alloc('float32', [2000]);
    instance.dispose();
  });

  it('for copies of arrays, beyond maxMemory', async () => {
    const instance = await createGemm({ maxMemory: 10_000 });
    const held = instance.alloc('uint8', [9900]); // or it would be computed block by block
    const { inUse } = instance.memory();
    const wide = { data: data(2500), shape: [1, 2500] };
    const out = float32([1, 2500], ...Array<number>(2500).fill(9));
    for (const options of [{}, { out }]) {
      expectError(
        thrown(() => instance.gemm(float32([1, 1], 1), wide, null, options)),
        { code: 'OUT_OF_MEMORY', argument: '', says: [/no memory for \d+ bytes/, 'in use'] },
      );
    }
    expect(out.data.every((value) => value === 9)).toBe(true);
    expect(instance.memory().inUse).toBe(inUse);
    held.dispose();
    expectGemm(instance, square, square, 1);
    instance.dispose();
  });

  it('for scratch, beyond maxMemory, with tensors in the heap', async () => {
    const scratch = wg.explain(
      'gemm',
      { data: data(1024), shape: [32, 32] },
      { data: data(1024), shape: [32, 32] },
      1,
    ).scratch;
    // Each tensor has 64 bytes of its own.
    const instance = await createGemm({ maxMemory: 3 * (4096 + 64) + 64 + scratch - 1 });
    const make = () => instance.alloc('float32', [32, 32]);
    const [a, b, out] = [make(), make(), make()];
    out.data.fill(9);
    const inUse = instance.memory().inUse;
    const run = () => instance.gemm(a, b, 1, { out });
    expectError(thrown(run), {
      code: 'OUT_OF_MEMORY',
      argument: '',
      says: [/no memory for \d+ bytes of scratch/, 'in use'],
    });
    expect(out.data.every((value) => value === 9)).toBe(true);
    expect(instance.memory().inUse).toBe(inUse);
    expectGemm(instance, square, square);
    instance.dispose();
  });

  it('is true to the byte: what maxMemory allows, works', async () => {
    const scratch = wg.explain(
      'gemm',
      { data: data(1024), shape: [32, 32] },
      { data: data(1024), shape: [32, 32] },
      1,
    ).scratch;
    const instance = await createGemm({ maxMemory: 3 * (4096 + 64) + scratch + 64 });
    const [a, b, out] = [
      instance.alloc('float32', [32, 32]),
      instance.alloc('float32', [32, 32]),
      instance.alloc('float32', [32, 32]),
    ];
    instance.gemm(a, b, 1, { out });
    instance.dispose();
  });

  it.each([2 ** 30 - 16, 2 ** 30, 2 ** 31, 2 ** 40, 2 ** 53 - 1])(
    'for %i elements, which 4 GB do not hold',
    (size) => {
      const before = wg.memory();
      const wanted: Wanted = {
        code: 'OUT_OF_MEMORY',
        op: 'alloc',
        argument: '',
        says: [/no memory for \d+ bytes/],
      };
      expectError(
        thrown(() => wg.alloc('float32', [size])),
        wanted,
      );
      if (size >= 2 ** 40) {
        const column = { data: data(1), shape: [size, 1], strides: [0, 0] }; // an array may hold the result of less
        expectError(
          thrown(() => wg.gemm(column, float32([1, 1], 1))),
          { ...wanted, op: 'gemm' },
        );
      }
      expect(wg.memory()).toEqual(before);
      expectGemm(wg, square, square);
    },
  );
});

describe('alloc refuses', () => {
  const cases: [string, unknown, unknown, Wanted][] = [
    [
      'an unknown type',
      'complex64',
      [1],
      {
        code: 'DTYPE',
        op: 'alloc',
        argument: 'dtype',
        says: ['"complex64"', 'float32 or float64 or float16'],
      },
    ],
    [
      'a type that is an array class',
      Float32Array,
      [1],
      { code: 'DTYPE', op: 'alloc', argument: 'dtype', says: ['a function', 'float32'] },
    ],
    [
      'no type',
      undefined,
      [1],
      { code: 'DTYPE', op: 'alloc', argument: 'dtype', says: ['undefined', 'float32'] },
    ],
    [
      'no shape',
      'float32',
      undefined,
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['undefined', 'an array'] },
    ],
    [
      'a number as shape',
      'float32',
      5,
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['5', 'an array'] },
    ],
    [
      'a negative size',
      'int32',
      [2, -1],
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['-1', wholeNumber] },
    ],
    [
      'a fraction',
      'int32',
      [0.5],
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['0.5', wholeNumber] },
    ],
    [
      'NaN',
      'int32',
      [NaN],
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['NaN', wholeNumber] },
    ],
    [
      'more than 64 axes',
      'int32',
      Array(65).fill(1),
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['65', '64'] },
    ],
    [
      '2^53 elements',
      'int32',
      [2 ** 27, 2 ** 27],
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['[134217728, 134217728]', '2^53'] },
    ],
    [
      'more than 2^53 elements except for a 0, as gemm does',
      'int32',
      [2 ** 27, 0, 2 ** 27],
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['2^53'] },
    ],
    [
      'a product beyond float64',
      'int32',
      [...Array<number>(30).fill(2 ** 52), 0],
      { code: 'SHAPE', op: 'alloc', argument: 'shape', says: ['2^53'] },
    ],
  ];
  it.each(cases)('%s', (_, dtype, shape, wanted) => {
    const before = wg.memory();
    expectError(
      thrown(() => wg.alloc(dtype as never, shape as never)),
      wanted,
    );
    expect(wg.memory()).toEqual(before);
    expectGemm(wg, square, square);
  });
});

describe('explain refuses', () => {
  it('another operation', () => {
    for (const [op, says] of [
      ['conv', '"conv"'],
      ['pack', '"pack"'],
      [undefined, 'undefined'],
      [7, '7'],
    ]) {
      expectError(
        thrown(() => wg.explain(op as never, square, square)),
        {
          code: 'ARGUMENT',
          op: 'explain',
          argument: 'op',
          says: [says as string, "'gemm', 'matmul', 'qgemm'"],
        },
      );
    }
  });

  it('what gemm refuses', () => {
    const o = operands();
    const bad: Call[] = [
      { a: 1 },
      { a: { ...o.a, data: data(5) } },
      { b: square },
      { c: float32([3], 1, 2, 3) },
      { options: { opset: 0 } },
    ];
    for (const arguments_ of bad) {
      const gemm = thrown(() => call(o, arguments_)) as GemmError;
      const explain = thrown(() => call(o, arguments_, 'explain')) as GemmError;
      expect({ ...explain, message: explain.message }).toEqual({ ...gemm, message: gemm.message });
    }
  });
});

describe('createGemm', () => {
  const wasm = new URL(import.meta.resolve('wgemm/assets/wgemm-simd128.wasm'));

  const argument = (argument: string, ...says: string[]): Wanted => ({
    code: 'ARGUMENT',
    op: 'createGemm',
    argument,
    says,
  });
  const cases: [string, unknown, Wanted][] = [
    ['options that are a number', 5, argument('options', '5', 'an object')],
    ['an unknown option', { thread: 1 }, argument('thread', '"thread"', 'not known', 'threads')],
    ['threads: 0', { threads: 0 }, argument('threads', '0', "from 1 to 64, or 'auto'")],
    [
      'threads: a fraction',
      { threads: 1.5 },
      argument('threads', '1.5', "from 1 to 64, or 'auto'"),
    ],
    ['threads: a string', { threads: '1' }, argument('threads', '"1"', "from 1 to 64, or 'auto'")],
    ['threads: null', { threads: null }, argument('threads', 'null', "from 1 to 64, or 'auto'")],
    ['threads: 65', { threads: 65 }, argument('threads', '65', "from 1 to 64, or 'auto'")],
    ['simd: an unknown one', { simd: 'avx' }, argument('simd', '"avx"', "'simd128'")],
    ['simd: an object', { simd: {} }, argument('simd', 'an object', "'simd128'")],
    [
      'determinism: an unknown one',
      { determinism: true },
      argument('determinism', 'true', "'strict'"),
    ],
    [
      'maxMemory: 0',
      { maxMemory: 0 },
      argument('maxMemory', '0', 'a whole number of bytes, 1 or more'),
    ],
    [
      'maxMemory: a fraction',
      { maxMemory: 0.5 },
      argument('maxMemory', '0.5', 'a whole number of bytes'),
    ],
    [
      'maxMemory: infinity',
      { maxMemory: Infinity },
      argument('maxMemory', 'Infinity', 'a whole number of bytes'),
    ],
    [
      'maxMemory: a bigint',
      { maxMemory: 1n },
      argument('maxMemory', '1n', 'a whole number of bytes'),
    ],
    [
      'assets: an address',
      { assets: 'https://example.com' },
      argument('assets', '"https://example.com"', 'a function'),
    ],
    ['assets: null', { assets: null }, argument('assets', 'null', 'a function')],
    [
      'assets that give nothing',
      { assets: () => undefined },
      argument('assets', 'undefined', 'a URL, bytes or a WebAssembly.Module'),
    ],
    [
      'assets that give an object',
      { assets: () => ({}) },
      argument('assets', 'an object', 'a URL, bytes or a WebAssembly.Module'),
    ],
  ];
  it.each(cases)('refuses %s', async (_, options, wanted) => {
    expectError(await notCreated(options), wanted);
  });

  it.each([
    undefined,
    null,
    {},
    { threads: 1 },
    { threads: 'auto' },
    { simd: 'simd128' },
    { determinism: 'strict' },
    { simd: 'auto', determinism: 'fast', maxMemory: 2 ** 53 - 1 },
  ])('takes %o', async (options) => {
    const instance = await createGemm(options as CreateOptions);
    expectGemm(instance, square, square);
    instance.dispose();
  });

  it('asks assets for the file by its name, and takes addresses, bytes and modules of it', async () => {
    const bytes = await bytesAt(wasm);
    const asked: string[] = [];
    for (const source of sourcesOf(wasm, bytes)) {
      for (const answer of [source, Promise.resolve(source)]) {
        const instance = await createGemm({
          simd: 'simd128',
          assets(file) {
            asked.push(file);
            return answer;
          },
        });
        expectGemm(instance, square, square);
        instance.dispose();
      }
    }
    expect(asked).toEqual(Array(12).fill('wgemm-simd128.wasm'));
  });

  it('says so if a file is not there, or is not what it should be', async () => {
    const load = (...says: (string | RegExp)[]): Wanted => ({
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says,
    });
    const absent = new URL('absent.wasm', wasm);
    expectError(
      await notCreated({ assets: () => absent }),
      load(absent.href, /ENOENT|404/, 'option assets'),
    );
    expectError(
      await notCreated({ assets: () => 'not an address' }),
      load('not an address', 'cannot be fetched'),
    );
    const garbage = await notCreated({ simd: 'simd128', assets: () => new Uint8Array(100) });
    expectError(garbage, load('wgemm-simd128.wasm is not WebAssembly', 'option assets'));
    const page = new TextEncoder().encode('<!doctype html>');
    expectError(
      await notCreated({ simd: 'simd128', assets: () => page }),
      load('wgemm-simd128.wasm is a page of HTML, not WebAssembly', 'option assets'),
    );
    expect((garbage as GemmError).cause).toBeInstanceOf(WebAssembly.CompileError);
    for (const [begin, what] of [
      ['', 'an empty file'],
      ['version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n', 'a pointer of Git LFS'],
      ['{"error":404}', 'JSON'],
      ['\x1f\x8b\x08\0', 'gzip'],
      ['Not found', 'text'],
    ] as const) {
      const bytes = Uint8Array.from(begin, (letter) => letter.charCodeAt(0));
      expectError(
        await notCreated({ simd: 'simd128', assets: () => bytes }),
        load(`wgemm-simd128.wasm is ${what}, not WebAssembly (`),
      );
    }
    expectError(await notCreated({ assets: () => new Response('') }), {
      ...load(
        /^createGemm: assets\("wgemm-\w+.wasm"\) returned an object; .*: await its arrayBuffer/,
      ),
      code: 'ARGUMENT',
      argument: 'assets',
    });
    const truncated = (await bytesAt(wasm)).subarray(0, 5000);
    expectError(await notCreated({ assets: () => truncated }), load('does not compile'));
  });

  it('says so if the module is not of this library', async () => {
    // Without imports or exports; it compiles, and it starts.
    const empty = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
    const outcome = Promise.race([
      notCreated({ simd: 'simd128', assets: () => empty }),
      new Promise((resolve) => setTimeout(resolve, 2000, 'still waiting')),
    ]);
    expectError(await outcome, {
      code: 'LOAD',
      op: 'createGemm',
      argument: '',
      says: ['wgemm-simd128.wasm', 'does not start'],
    });
  });

  it('lets an error of the caller’s own assets through', async () => {
    const mine = new RangeError('mine');
    const assets = () => {
      throw mine;
    };
    expect(await notCreated({ assets })).toBe(mine);
    expect(await notCreated({ assets: () => Promise.reject(mine) })).toBe(mine);
  });

  it('works after it failed', async () => {
    const instance = await createGemm();
    expectGemm(instance, square, square);
    instance.dispose();
  });
});
