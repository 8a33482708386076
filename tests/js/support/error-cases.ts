/**
 * How calls go wrong: one row per message, by operation. Its key is the whole message, except for
 * the name of the operation at its begin. Its value is the code of the error, the argument, and how
 * a good call of error-calls.ts is spoiled. errors.test.ts runs every row.
 */
import type { GemmError } from 'wgemm';
import {
  type ArrayClass,
  type CallName,
  codes,
  detached,
  floats,
  get,
  goodBytes,
  type GoodCall,
  goodCalls,
  type Handles,
  inOneBuffer,
  integers,
  type Named,
  ofLength,
  ofType,
  revoked,
  square,
  stacks,
  withByte,
  withSizes,
} from './error-calls.js';
import { float32, int32, int8, uint8 } from './tensors.js';

export type Row = readonly [
  code: GemmError['code'],
  argument: string,
  /** The arguments that differ from the good call. `'a.shape'`: a property of the argument `a`. */
  changes: Named | ((handles: Handles) => Named),
];
/** Rows by the names of calls, separated by spaces, and by message. */
export type Table = Readonly<Record<string, Readonly<Record<string, Row>>>>;

type Changes = Row[2];
const argument = (name: string, changes: Changes): Row => ['ARGUMENT', name, changes];
const shape = (name: string, changes: Changes): Row => ['SHAPE', name, changes];
const dtype = (name: string, changes: Changes): Row => ['DTYPE', name, changes];
const opset = (name: string, changes: Changes): Row => ['OPSET', name, changes];
const mismatch = (name: string, changes: Changes): Row => ['PACK_MISMATCH', name, changes];

const integer = 'matmulInteger qlinearMatmul dynamicQuantizeMatmul matmulIntegerToFloat';
const quantized = `qgemm ${integer}`;
const products = `gemm matmul ${quantized} matmulNBits syrk`;

// Sentences of several rows.
const aTensor = 'it must be a tensor, { data, shape } or from alloc()';
const withShape = 'it must be a tensor, { data, shape }';
const nbits = 'it must be { data, scales, k, n, blockSize }, as quantizeNBits() returns it';
const otherLayout =
  'which differs from its shape and strides; pass tensor(x) of this package, or ' +
  'shape, strides and offset, with these two in elements';
const aSource =
  'it must be a Uint8Array, an ArrayBuffer, a Blob, a URL, or a function that reads a range';
const aMatrix = 'it must be [N, K]; pass the place of a matrix in it to packFrom()';
const asOfF32 = 'it must be float32 or float16 or bfloat16 for F32, and absent for other types';
const aPackable =
  'it must be F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K';
const aList = 'it must be an array of whole numbers, such as [2, 3]';
const eachSize = 'each size must be a whole number from 0 to 2^53 - 1';
const eachStride = 'each stride must be a whole number from 0 to 2^53 - 1';
const aRank = 'its length must be a whole number from 0 to 64';
const anOffset = 'it must be a whole number from 0 to 2^53 - 1';
const inRange = 'it must be whole and in the range of the type';
const bounds = "it must be 'relu', 'relu6' or [min, max]";
const byTensor = 'convert it by tensor(...)';
const aFlag = 'it must be a boolean or a number';
const noSharing =
  'each stride must exceed the extent of the axes with smaller strides, so that no ' +
  'two elements share memory';
const perColumn =
  'it must be one value or one per column, of shape [N] if B has no batch axes, or ' +
  '[..., 1, N] after batch axes []';
const perRow =
  'it must be one value or one per row, of shape [M], or [..., M, 1] after batch ' + 'axes []';
const oneOrEach = 'it must be one value or one per column, of shape [], [1] or [N]';
const oneValue = 'it must be one value, of shape [] or [1]';
const otherTrans = 'and must be the same; pack it with another trans if K and N are exchanged';
const sameK = 'and must be the same';
const whenPacking = 'transpose when packing, by trans';
const aWhole = 'it must be a whole number of at most 2^53';
const bigintToo = 'it must be a number, or a bigint with int64 and uint64';
const broadcast = 'allowed are [], [1], [N], [1, 1], [1, N], [M, 1] and [M, N]';
const same = 'they must be the same';
const realHandle = 'pass the handle that alloc() or pack() returned';
const batchAxes =
  'sizes of batch axes, aligned at the right, must be the same, or 1 in one of ' + 'them';
const finiteScale = 'a scale must be finite';
const vector8 = 'it must be a number, an Int8Array or Uint8Array, or a tensor';
const vector32 = 'it must be a number, a Float32Array, or a tensor';
const bytesOnly = 'it must be a Uint8Array or an ArrayBuffer';
// Some engines have no Float16Array.
const halves = 'Float16Array' in globalThis ? ' or Float16Array' : '';
const floatArrays = `Float32Array or Float64Array${halves}`;
const wideArrays = `${floatArrays} or Int32Array or Uint32Array or BigInt64Array or BigUint64Array`;
const anArrayOfFloats = `it must be ${wideArrays} or Uint16Array`;
const anArray = `it must be ${wideArrays} or Int8Array or Uint8Array or Uint16Array`;
const floatTypes = 'float32 or float64 or float16 or bfloat16';
const aType = `it must be ${floatTypes} or int32 or uint32 or int64 or uint64 or int8 or uint8`;
const optionsOfGemm = 'alpha, beta, transA, transB, opset, broadcast, activation, out';
const optionsOfMatMul = 'alpha, transposeA, transposeB, outType, activation, out';
const optionsOfQGemm = 'alpha, transA, transB, activation, out';
const inputsOfQGemm = 'a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint';
const optionsOfInteger = 'aZeroPoint, bZeroPoint, transA, transB, out';
const optionsOfLinear = 'transA, transB, activation, out';
const inputsOfLinear = 'a, b, aScale, aZeroPoint, bScale, bZeroPoint, yScale, yZeroPoint';
const optionsOfDynamic = 'bScale, bZeroPoint, bias, transA, transB, activation, out';
const optionsOfToFloat =
  'aScale, bScale, aZeroPoint, bZeroPoint, bias, transA, transB, activation, ' + 'out';
const optionsOfNBits = 'bias, accuracyLevel, activation, out';
const optionsOfSyrk = 'alpha, transA, out';

/** What advice says of how a method is called. */
const callOf: Readonly<Record<string, string>> & Record<'gemm' | 'matmul' | 'syrk', string> = {
  gemm: 'call gemm(a, b, c or null, options)',
  matmul: 'call matmul(src, weights, bias or null, options)',
  syrk: 'call syrk(a, options)',
};

/** Options that are not an object, against `rule`, and a name that is not one of `names`. */
const wrongOptions = (rule: string, names: string): Readonly<Record<string, Row>> => ({
  [`options is an array; ${rule}`]: argument('options', { options: [[1, 2]] }),
  [`options is Float32Array; ${rule}`]: argument('options', { options: new Float32Array(4) }),
  [`options is a tensor; ${rule}`]: argument('options', { options: floats([2, 2]) }),
  [`options is packed weights; ${rule}`]: argument('options', (h) => ({ options: h.forGemm })),
  [`options is Map; ${rule}`]: argument('options', { options: new Map([['alpha', 2]]) }),
  [`options is a promise, which must be awaited; ${rule}`]: argument('options', {
    options: Promise.resolve({ alpha: 2 }),
  }),
  [`the option "foo" is not known; it must be one of ${names}`]: argument('foo', {
    options: { foo: undefined },
  }),
});

/** Errors that JavaScript finds, also for a worker, and without a message to it. */
export const ofJavaScript: Table = {
  [products]: {
    'options is 5; it must be an object': argument('options', { options: 5 }),
    [`out is null; ${aTensor}`]: argument('out', { out: null }),
    [`out is a Float32Array without a shape; ${withShape}`]: dtype('out', {
      out: new Float32Array(4),
    }),
  },
  'gemm matmul qgemm qlinearMatmul dynamicQuantizeMatmul matmulIntegerToFloat matmulNBits': {
    [`activation is "tanh"; ${bounds}`]: argument('activation', { activation: 'tanh' }),
    'activation is an array of 1 elements; it must be [min, max]': argument('activation', {
      activation: [0],
    }),
    'activation has "6"; it must be [min, max], two numbers': argument('activation', {
      activation: [0, '6'],
    }),
    'activation has 0n; it must be [min, max], two numbers': argument('activation', {
      activation: [0n, 6],
    }),
    'activation is an array of a symbol elements; it must be [min, max]': argument('activation', {
      activation: ofLength([0, 6], Symbol('2')),
    }),
  },
  [quantized]: {
    [`A is a Uint8Array without a shape; ${withShape}`]: dtype('A', { a: new Uint8Array(6) }),
    [`the data of A is an array; ${anArray}; ${byTensor}`]: dtype('A', {
      'a.data': [1, 2, 3, 4, 5, 6],
    }),
    [`B is null; ${aTensor}`]: argument('B', { b: null }),
    [`the data of B is an array; ${anArray}; ${byTensor}`]: dtype('B', { 'b.data': [1, 2] }),
    [`the data of B is Uint8ClampedArray; ${anArray}`]: dtype('B', {
      'b.data': new Uint8ClampedArray(6),
    }),
    'B has type int32; it must be int8 or uint8': dtype('B', { b: ofType('int32', 3, 2) }),
    'B has 6 elements; its shape [3, 2] and strides [3, 1] need 8': shape('B', {
      'b.strides': [3, 1],
    }),
    [`transA is "no"; ${aFlag}`]: argument('transA', { transA: 'no' }),
    [`transB is NaN; ${aFlag}`]: argument('transB', { transB: NaN }),
    [`bZeroPoint is 1n; ${aTensor}`]: argument('bZeroPoint', { bZeroPoint: 1n }),
    [`bZeroPoint is -129, which int8 cannot hold; ${inRange}`]: argument('bZeroPoint', {
      bZeroPoint: -129,
    }),
    [`bZeroPoint is an array; ${vector8}`]: dtype('bZeroPoint', { bZeroPoint: [1] }),
    'bZeroPoint has 2 elements; its shape [2] and strides [2] need 3': shape('bZeroPoint', {
      'bZeroPoint.strides': [2],
    }),
    [`B is a copy of a handle; ${realHandle}`]: argument('B', (h) => ({
      b: Object.create(h.forQGemm) as unknown,
    })),
  },
  [integer]: {
    [`A is 5; ${aTensor}`]: argument('A', { a: 5 }),
  },
  'qgemm matmulInteger qlinearMatmul matmulIntegerToFloat': {
    'A has dtype "int16" and a Uint8Array; that holds uint8': dtype('A', { 'a.dtype': 'int16' }),
    [`aZeroPoint is an object without data; ${aTensor}; ${byTensor}`]: argument('aZeroPoint', {
      aZeroPoint: {},
    }),
    [`aZeroPoint is "x"; ${aTensor}`]: argument('aZeroPoint', { aZeroPoint: 'x' }),
    [`aZeroPoint is an array; ${vector8}`]: dtype('aZeroPoint', { aZeroPoint: [1] }),
    [`aZeroPoint is -1, which uint8 cannot hold; ${inRange}`]: argument('aZeroPoint', {
      aZeroPoint: -1,
    }),
    'A has type float32; it must be int8 or uint8': dtype('A', {
      a: float32([2, 3], 1, 2, 3, 4, 5, 6),
    }),
  },
  'qgemm qlinearMatmul dynamicQuantizeMatmul matmulIntegerToFloat': {
    [`bScale is "x"; ${aTensor}`]: argument('bScale', { bScale: 'x' }),
    [`bScale is an array; ${vector32}`]: dtype('bScale', { bScale: [1, 2] }),
    [`bScale is an object without data; ${aTensor}; ${byTensor}`]: argument('bScale', {
      bScale: new DataView(new ArrayBuffer(8)),
    }),
  },
  'qgemm qlinearMatmul matmulIntegerToFloat': {
    [`aScale is "x"; ${aTensor}`]: argument('aScale', { aScale: 'x' }),
    [`aScale is an array; ${vector32}`]: dtype('aScale', { aScale: [1] }),
  },
  'dynamicQuantizeMatmul matmulIntegerToFloat': {
    [`bias is "b"; ${aTensor}`]: argument('bias', { bias: 'b' }),
    [`bias is an array; ${vector32}`]: dtype('bias', { bias: [1, 2] }),
  },
  gemm: {
    'options is "transA"; it must be an object': argument('options', { options: 'transA' }),
    'options is a function; it must be an object': argument('options', { options: () => 1 }),
    'options is a symbol; it must be an object': argument('options', { options: Symbol('x') }),
    'options is a revoked proxy; it must be an object': argument('options', { options: revoked() }),
    ...wrongOptions(callOf.gemm, optionsOfGemm),
    [`out is 1; ${aTensor}`]: argument('out', { out: 1 }),
    [`activation is null; ${bounds}`]: argument('activation', { activation: null }),
    [`activation is 6; ${bounds}`]: argument('activation', { activation: 6 }),
    [`activation is an object; ${bounds}`]: argument('activation', { activation: {} }),
    'activation has undefined; it must be [min, max], two numbers': argument('activation', {
      activation: [undefined, 6],
    }),
    [`activation is a revoked proxy; ${bounds}`]: argument('activation', {
      activation: revoked([0, 6]),
    }),
    [`A is null; ${aTensor}`]: argument('A', { a: null }),
    [`A is 5; ${aTensor}; ${callOf.gemm}`]: argument('A', { a: 5 }),
    [`A is "N"; ${aTensor}; ${callOf.gemm}`]: argument('A', { a: 'N' }),
    [`A is undefined; ${aTensor}`]: argument('A', { a: undefined }),
    [`A is a Float32Array without a shape; ${withShape}`]: dtype('A', { a: new Float32Array(6) }),
    [`A is an object without data; ${aTensor}; ${callOf.gemm}`]: argument('A', { a: {} }),
    'A has dtype "int32" and as data a tensor of float32; it must be float32 or absent': dtype(
      'A',
      (h) => ({ a: { data: h.tensor, shape: [2, 2], dtype: 'int32' } }),
    ),
    [`the data of A is an object; ${anArrayOfFloats}; ${byTensor}`]: dtype('A', (h) => ({
      a: { data: h.forGemm, shape: [2, 2] },
    })),
    [`B is "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB..."; ${aTensor}`]: argument('B', {
      b: 'B'.repeat(99),
    }),
    [`B is an array; ${withShape}; ${byTensor}`]: dtype('B', { b: [[1], [2], [3]] }),
    [`B is null; ${aTensor}`]: argument('B', { b: null }),
    'C is 1n, which float32 cannot hold; bigints are for int64 and uint64': argument('C', {
      c: 1n,
    }),
    'C is a bigint of more than 128 bits, which float32 cannot hold; bigints are for int64 and uint64':
      argument('C', { c: 1n << 9999n }),
    [`C is a Float32Array without a shape; ${withShape}`]: dtype('C', { c: new Float32Array(4) }),
    [`C is an object with "transB" and no data; ${aTensor}; ${callOf.gemm}`]: argument('C', {
      c: { transB: true },
    }),
    [`C is an object with "out" and no data; ${aTensor}; ${callOf.gemm}`]: argument('C', {
      c: { out: undefined, typo: 1 },
    }),
    [`C is an object with "shape" and no data; ${aTensor}; ${callOf.gemm}`]: argument('C', {
      c: { shape: [2, 2], beta: 2 },
    }),
    [`C is an object with "${'x'.repeat(40)}..." and no data; ${aTensor}; ${callOf.gemm}`]:
      argument('C', { c: { ['x'.repeat(99)]: 1 } }),
    // As a matrix of another library.
    [`C is an object with "rows" and no data; ${aTensor}; ${byTensor}`]: argument('C', {
      c: Object.assign(Object.create({}) as object, { rows: 2 }),
    }),
    [`C is an object without data; ${aTensor}; ${byTensor}`]: argument('C', {
      c: Object.create({ activation: 'relu' }) as unknown,
    }),
    [`the data of C is undefined; ${anArrayOfFloats}; ${byTensor}`]: dtype('C', {
      c: { data: undefined, shape: [2, 2] },
    }),
    [`the option "transa" is not known; it must be one of ${optionsOfGemm}`]: argument('transa', {
      options: { transa: true },
    }),
    [`the option "toString" is not known; it must be one of ${optionsOfGemm}`]: argument(
      'toString',
      { options: { toString: 1 } },
    ),
    [`alpha is "1"; ${bigintToo}`]: argument('alpha', { alpha: '1' }),
    [`alpha is null; ${bigintToo}`]: argument('alpha', { alpha: null }),
    [`alpha is an object; ${bigintToo}`]: argument('alpha', { alpha: {} }),
    [`alpha is a symbol; ${bigintToo}`]: argument('alpha', { alpha: Symbol('x') }),
    [`beta is an array; ${bigintToo}`]: argument('beta', { beta: [1] }),
    'beta is 1, which has no effect without C; to add to out, pass out as C, too': argument(
      'beta',
      { c: null, beta: 1 },
    ),
    'beta is NaN, which has no effect without C; to add to out, pass out as C, too': argument(
      'beta',
      { c: null, beta: NaN },
    ),
    [`transA is "false"; ${aFlag}`]: argument('transA', { transA: 'false' }),
    [`transA is an object; ${aFlag}`]: argument('transA', { transA: {} }),
    [`transA is NaN; ${aFlag}`]: argument('transA', { transA: NaN }),
    [`transB is NaN; ${aFlag}`]: argument('transB', { transB: NaN }),
    [`transB is null; ${aFlag}`]: argument('transB', { transB: null }),
    [`broadcast is an object; ${aFlag}`]: argument('broadcast', { opset: 6, broadcast: {} }),
    'opset is 6.5; it must be a whole number, 1 or more': opset('opset', { opset: 6.5 }),
    'opset is "13"; it must be a whole number, 1 or more': opset('opset', { opset: '13' }),
    'opset is NaN; it must be a whole number, 1 or more': opset('opset', { opset: NaN }),
    [`the data of A is an array; ${anArrayOfFloats}; ${byTensor}`]: dtype('A', {
      'a.data': [1, 2, 3, 4, 5, 6],
    }),
    [`the data of B is Uint8ClampedArray; ${anArrayOfFloats}`]: dtype('B', {
      'b.data': new Uint8ClampedArray(6),
    }),
    [`the data of A is Uint8ClampedArray; ${anArrayOfFloats}`]: dtype('A', {
      'a.data': new Uint8ClampedArray(6),
    }),
    [`the data of out is Uint8ClampedArray; ${anArrayOfFloats}`]: dtype('out', {
      'out.data': new Uint8ClampedArray(4),
    }),
    [`the data of C is Int16Array; ${anArrayOfFloats}`]: dtype('C', {
      'c.data': new Int16Array(4),
    }),
    'A has dtype "int32" and a Uint16Array; that holds float16 or bfloat16': dtype('A', {
      'a.data': new Uint16Array(6),
      'a.dtype': 'int32',
    }),
    'B has dtype "Float32" and a Float32Array; that holds float32': dtype('B', {
      'b.dtype': 'Float32',
    }),
    'out has dtype "int8" and a Float32Array; that holds float32': dtype('out', {
      'out.dtype': 'int8',
    }),
    [`A has shape 6; ${aList}`]: shape('A', { 'a.shape': 6 }),
    [`A has shape an object; ${aList}`]: shape('A', { 'a.shape': { length: 2, 0: 2, 1: 3 } }),
    [`A has shape a revoked proxy; ${aList}`]: shape('A', { 'a.shape': revoked([2, 3]) }),
    [`A has shape an array of length "2"; ${aRank}`]: shape('A', {
      'a.shape': ofLength([2, 3], '2'),
    }),
    [`B has shape an array of length NaN; ${aRank}`]: shape('B', {
      'b.shape': ofLength([3, 2], NaN),
    }),
    [`C has shape an array of length -1; ${aRank}`]: shape('C', {
      'c.shape': ofLength([2, 2], -1),
    }),
    [`out has shape an array of length 1.5; ${aRank}`]: shape('out', {
      'out.shape': ofLength([2, 2], 1.5),
    }),
    [`A has shape an array of length a symbol; ${aRank}`]: shape('A', {
      'a.shape': ofLength([2, 3], Symbol('2')),
    }),
    [`out has shape an array of length an object; ${aRank}`]: shape('out', {
      'out.shape': ofLength([2, 2], { valueOf: () => 2 }),
    }),
    [`A has shape [-2, -3]; ${eachSize}`]: shape('A', { 'a.shape': [-2, -3] }),
    [`B has shape [1.5, 4]; ${eachSize}`]: shape('B', { 'b.shape': [1.5, 4] }),
    [`C has shape [Infinity]; ${eachSize}`]: shape('C', { 'c.shape': [Infinity] }),
    [`A has shape ["2", "3"]; ${eachSize}`]: shape('A', { 'a.shape': ['2', '3'] }),
    [`A has shape [undefined, 3]; ${eachSize}`]: shape('A', { 'a.shape': [undefined, 3] }),
    [`A has shape [a symbol, 3]; ${eachSize}`]: shape('A', { 'a.shape': [Symbol('2'), 3] }),
    [`A has shape [a function, 3]; ${eachSize}`]: shape('A', { 'a.shape': [() => 1, 3] }),
    [`A has shape [an array, a revoked proxy]; ${eachSize}`]: shape('A', {
      'a.shape': [[2], revoked()],
    }),
    'A has 6 elements; its shape [2, 3] and strides [4, 1] need 7': shape('A', {
      'a.strides': [4, 1],
    }),
    'out has 4 elements; its shape [2, 2] and strides [3, 1] need 5': shape('out', {
      'out.strides': [3, 1],
    }),
    'A has 6 elements; its shape [2, 3] and offset 1 need 7': shape('A', { 'a.offset': 1 }),
    'A has 6 elements; its shape [2, 3], strides [3, 1] and offset 2 need 8': shape('A', {
      'a.offset': 2,
      'a.strides': [3, 1],
    }),
    'A has 6 elements; its shape [2, 3] and offset 9007199254740991 need more than 2^53': shape(
      'A',
      { 'a.offset': 2 ** 53 - 1 },
    ),
    [`B has offset 0.5; ${anOffset}`]: shape('B', { 'b.offset': 0.5 }),
    [`C has offset "1"; ${anOffset}`]: shape('C', { 'c.offset': '1' }),
    [`out has offset 1n; ${anOffset}`]: shape('out', { 'out.offset': 1n }),
    'out has 4 elements; its shape [2, 2] and offset 1 need 5': shape('out', { 'out.offset': 1 }),
    [`A has offset true; ${anOffset}`]: shape('A', { 'a.offset': true }),
    [`A has offset an array; ${anOffset}`]: shape('A', { 'a.offset': [1] }),
    [`A has strides a revoked proxy; ${aList}`]: shape('A', { 'a.strides': revoked([3, 1]) }),
    [`A has strides an array of length "2"; ${aRank}`]: shape('A', {
      'a.strides': ofLength([3, 1], '2'),
    }),
    [`A has strides null; ${aList}`]: shape('A', { 'a.strides': null }),
    [`A has strides [-3, 1]; ${eachStride}`]: shape('A', { 'a.strides': [-3, 1] }),
    [`B has strides [2, 0.5]; ${eachStride}`]: shape('B', { 'b.strides': [2, 0.5] }),
    'A has 6 elements; its shape [2, 3] and strides [9007199254740991, 2] need more than 2^53':
      shape('A', { 'a.strides': [2 ** 53 - 1, 2] }),
    'out has 4 elements; its shape [2, 2] and strides [9007199254740991, 2] need more than 2^53':
      shape('out', { 'out.strides': [2 ** 53 - 1, 2] }),
    [`A has stride [1, 2], ${otherLayout}`]: shape('A', { 'a.stride': [1, 2] }),
    [`B has stride [-2, 1], ${otherLayout}`]: shape('B', { 'b.stride': [-2, 1] }),
    [`out has stride [1, 2], ${otherLayout}`]: shape('out', { 'out.stride': [1, 2] }),
    [`C has stride [1, 2], ${otherLayout}`]: shape('C', { 'c.stride': [1, 2] }),
    [`A has stride 3, ${otherLayout}`]: shape('A', { 'a.stride': 3 }),
    [`A has stride a revoked proxy, ${otherLayout}`]: shape('A', { 'a.stride': revoked([3, 1]) }),
    [`B has byteOffset 4, ${otherLayout}`]: shape('B', { 'b.byteOffset': 4 }),
    [`A has start 2, ${otherLayout}`]: shape('A', { 'a.start': 2 }),
    [`A has step 2, ${otherLayout}`]: shape('A', { 'a.step': 2 }),
    [`A has begin 2, ${otherLayout}`]: shape('A', { 'a.begin': 2 }),
    [`A has storageOffset 2, ${otherLayout}`]: shape('A', { 'a.storageOffset': 2 }),
    [`A has order "column-major", ${otherLayout}`]: shape('A', { 'a.order': 'column-major' }),
    [`B has layout "colMajor", ${otherLayout}`]: shape('B', { 'b.layout': 'colMajor' }),
    [`B has isFortran true, ${otherLayout}`]: shape('B', { 'b.isFortran': true }),
    [`B has column_major true, ${otherLayout}`]: shape('B', { 'b.column_major': true }),
    [`B has colMajor true, ${otherLayout}`]: shape('B', { 'b.colMajor': true }),
    [`B has isColumnMajor true, ${otherLayout}`]: shape('B', { 'b.isColumnMajor': true }),
    [`B has fortranOrder true, ${otherLayout}`]: shape('B', { 'b.fortranOrder': true }),
    [`C has fortran_order true, ${otherLayout}`]: shape('C', { 'c.fortran_order': true }),
    [`out has columnMajor true, ${otherLayout}`]: shape('out', { 'out.columnMajor': true }),
    [`A has transposed true, ${otherLayout}`]: shape('A', { 'a.transposed': true }),
    [`C is 0.5, which int32 cannot hold; ${inRange}`]: argument('C', { ...integers(), c: 0.5 }),
    [`C is NaN, which int32 cannot hold; ${inRange}`]: argument('C', { ...integers(), c: NaN }),
    [`C is Infinity, which int32 cannot hold; ${inRange}`]: argument('C', {
      ...integers(),
      c: Infinity,
    }),
    'C is 1n, which int32 cannot hold; bigints are for int64 and uint64': argument('C', {
      ...integers(),
      c: 1n,
    }),
    'C is 9223372036854775808n, which int64 cannot hold; it must be in the range of the type':
      argument('C', { ...integers('int64'), c: 2n ** 63n }),
    'C is -1n, which uint64 cannot hold; it must be in the range of the type': argument('C', {
      ...integers('uint64'),
      c: -1n,
    }),
    [`C is -1, which uint64 cannot hold; ${inRange}`]: argument('C', {
      ...integers('uint64'),
      c: -1,
    }),
  },
  matmul: {
    ...wrongOptions(callOf.matmul, optionsOfMatMul),
    'out has strides [1, 1] and shape [2, 3, 5]; there must be one stride per axis': shape('out', {
      'out.strides': [1, 1],
    }),
    [`src is null; ${aTensor}`]: argument('src', { src: null }),
    [`src is 5; ${aTensor}; ${callOf.matmul}`]: argument('src', { src: 5 }),
    [`src is an array; ${withShape}; ${byTensor}`]: dtype('src', { src: [[1, 2, 3, 4]] }),
    [`src is a Float32Array without a shape; ${withShape}`]: dtype('src', {
      src: new Float32Array(24),
    }),
    [`weights is "w"; ${aTensor}`]: argument('weights', { weights: 'w' }),
    'bias is 1n, which float32 cannot hold; bigints are for int64 and uint64': argument('bias', {
      bias: 1n,
    }),
    [`bias is a Float32Array without a shape; ${withShape}`]: dtype('bias', {
      bias: new Float32Array(5),
    }),
    [`the data of weights is an array; ${anArrayOfFloats}; ${byTensor}`]: dtype('weights', {
      'weights.data': [1, 2],
    }),
    'outType is "float" and src has type float32; it must be float32': dtype('outType', {
      outType: 'float',
    }),
    'outType is "float64" and src has type bfloat16; it must be bfloat16 or float32': dtype(
      'outType',
      { src: ofType('bfloat16', 2, 3, 4), out: undefined, outType: 'float64' },
    ),
    [`out has type float32 and outType is "float16"; ${same}`]: dtype('outType', {
      src: ofType('float16', 2, 3, 4),
      outType: 'float16',
    }),
    [`src has shape 24; ${aList}`]: shape('src', { 'src.shape': 24 }),
    'src has 24 elements; its shape [2, 3, 4] and strides [13, 4, 1] need 25': shape('src', {
      'src.strides': [13, 4, 1],
    }),
    'out has 30 elements; its shape [2, 3, 5] and strides [15, 5, 2] need 34': shape('out', {
      'out.strides': [15, 5, 2],
    }),
    [`the option "transA" is not known; it must be one of ${optionsOfMatMul}`]: argument('transA', {
      options: { transA: true },
    }),
    [`the option "beta" is not known; it must be one of ${optionsOfMatMul}`]: argument('beta', {
      options: { beta: 1 },
    }),
    [`transposeA is "true"; ${aFlag}`]: argument('transposeA', { transposeA: 'true' }),
    [`transposeB is NaN; ${aFlag}`]: argument('transposeB', { transposeB: NaN }),
    [`alpha is "1"; ${bigintToo}`]: argument('alpha', { alpha: '1' }),
    [`bias is 0.5, which int32 cannot hold; ${inRange}`]: argument('bias', {
      ...stacks('int32'),
      bias: 0.5,
    }),
    'bias is 9223372036854775808n, which int64 cannot hold; it must be in the range of the type':
      argument('bias', { ...stacks('int64'), bias: 2n ** 63n }),
  },
  qgemm: {
    ...wrongOptions(`it must be an object with ${optionsOfQGemm}`, optionsOfQGemm),
    [`inputs is null; it must be an object with ${inputsOfQGemm}`]: argument('inputs', {
      inputs: null,
    }),
    'inputs is a revoked proxy; it must be an object': argument('inputs', { inputs: revoked() }),
    [`inputs is an array; it must be an object with ${inputsOfQGemm}`]: argument('inputs', {
      inputs: [1, 2],
    }),
    [`inputs is a tensor; it must be an object with ${inputsOfQGemm}`]: argument('inputs', {
      inputs: floats([2, 2]),
    }),
    [`A is undefined; ${aTensor}`]: argument('A', { inputs: {} }),
    [`the input "a_scale" is not known; it must be one of ${inputsOfQGemm}; options come second`]:
      argument('a_scale', { a_scale: 1 }),
    [`the input "scale" is not known; it must be one of ${inputsOfQGemm}; options come second`]:
      argument('scale', { scale: undefined }),
    [`the input "alpha" is not known; it must be one of ${inputsOfQGemm}; options come second`]:
      argument('alpha', { inputs: { alpha: 1 } }),
    [`the input "transB" is not known; it must be one of ${inputsOfQGemm}; options come second`]:
      argument('transB', { inputs: { transB: true } }),
    [`the option "beta" is not known; it must be one of ${optionsOfQGemm}`]: argument('beta', {
      options: { beta: 1 },
    }),
    'alpha is "1"; it must be a number': argument('alpha', { alpha: '1' }),
    'C is 1n, which int32 cannot hold; bigints are for int64 and uint64': argument('C', { c: 1n }),
    [`C is 0.5, which int32 cannot hold; ${inRange}`]: argument('C', { c: 0.5 }),
    [`the data of C is an array; ${anArray}; ${byTensor}`]: dtype('C', {
      c: { data: [], shape: [] },
    }),
    'aScale is undefined; it must be a number, an array or a tensor': argument('aScale', {
      aScale: undefined,
    }),
    'bScale is null; it must be a number, an array or a tensor': argument('bScale', {
      bScale: null,
    }),
    [`yZeroPoint is -200, which uint8 cannot hold; ${inRange}`]: argument('yZeroPoint', {
      yScale: 1,
      yZeroPoint: -200,
    }),
    [`yZeroPoint is an object without data; ${aTensor}; ${byTensor}`]: argument('yZeroPoint', {
      yScale: 1,
      yZeroPoint: {},
    }),
    [`yZeroPoint is an array; ${vector8}`]: dtype('yZeroPoint', { yScale: 1, yZeroPoint: [3] }),
    'bScale has a Uint16Array and no dtype; dtype must be float16 or bfloat16': dtype('bScale', {
      bScale: Uint16Array.of(1),
    }),
  },
  matmulInteger: {
    ...wrongOptions(`it must be an object with ${optionsOfInteger}`, optionsOfInteger),
    [`the option "alpha" is not known; it must be one of ${optionsOfInteger}`]: argument('alpha', {
      options: { alpha: 1 },
    }),
    [`the option "a_zero_point" is not known; it must be one of ${optionsOfInteger}`]: argument(
      'a_zero_point',
      { options: { a_zero_point: 1 } },
    ),
    [`the option "bScale" is not known; it must be one of ${optionsOfInteger}`]: argument(
      'bScale',
      { 'b.shape': [1, 3, 2], bScale: 1, out: undefined },
    ),
    [`the option "bias" is not known; it must be one of ${optionsOfInteger}`]: argument('bias', {
      bias: Float32Array.of(1, 2),
    }),
    [`the option "activation" is not known; it must be one of ${optionsOfInteger}`]: argument(
      'activation',
      { activation: 'relu' },
    ),
  },
  qlinearMatmul: {
    ...wrongOptions(`it must be an object with ${optionsOfLinear}`, optionsOfLinear),
    [`the option "alpha" is not known; it must be one of ${optionsOfLinear}`]: argument('alpha', {
      options: { alpha: 1 },
    }),
    [`the option "a_zero_point" is not known; it must be one of ${optionsOfLinear}`]: argument(
      'a_zero_point',
      { options: { a_zero_point: 1 } },
    ),
    [`the input "bias" is not known; it must be one of ${inputsOfLinear}; options come second`]:
      argument('bias', { b: int8([3], 1, 2, 3), bZeroPoint: 1, out: undefined, bias: undefined }),
    [`inputs is null; it must be an object with ${inputsOfLinear}`]: argument('inputs', {
      inputs: null,
    }),
    [`inputs is a tensor; it must be an object with ${inputsOfLinear}`]: argument('inputs', {
      inputs: floats([2, 2]),
    }),
    [`the input "out" is not known; it must be one of ${inputsOfLinear}; options come second`]:
      argument('out', { inputs: { out: 1 } }),
    [`yZeroPoint is -1, which uint8 cannot hold; ${inRange}`]: argument('yZeroPoint', {
      yZeroPoint: -1,
    }),
  },
  dynamicQuantizeMatmul: {
    ...wrongOptions(`it must be an object with ${optionsOfDynamic}`, optionsOfDynamic),
    'A has dtype "int16" and a Float32Array; that holds float32': dtype('A', {
      'a.dtype': 'int16',
    }),
    [`the option "alpha" is not known; it must be one of ${optionsOfDynamic}`]: argument('alpha', {
      options: { alpha: 1 },
    }),
    [`the option "a_zero_point" is not known; it must be one of ${optionsOfDynamic}`]: argument(
      'a_zero_point',
      { options: { a_zero_point: 1 } },
    ),
    [`the option "aZeroPoint" is not known; it must be one of ${optionsOfDynamic}`]: argument(
      'aZeroPoint',
      { aZeroPoint: 1 },
    ),
  },
  matmulIntegerToFloat: {
    ...wrongOptions(`it must be an object with ${optionsOfToFloat}`, optionsOfToFloat),
    [`the option "alpha" is not known; it must be one of ${optionsOfToFloat}`]: argument('alpha', {
      options: { alpha: 1 },
    }),
    [`the option "a_zero_point" is not known; it must be one of ${optionsOfToFloat}`]: argument(
      'a_zero_point',
      { options: { a_zero_point: 1 } },
    ),
  },
  matmulNBits: {
    ...wrongOptions(`it must be an object with ${optionsOfNBits}`, optionsOfNBits),
    [`A is 5; ${aTensor}`]: argument('A', { a: 5 }),
    [`A is a Float32Array without a shape; ${withShape}`]: dtype('A', { a: new Float32Array(20) }),
    [`weights is undefined; ${nbits}, or from pack()`]: argument('weights', { weights: undefined }),
    [`weights is Uint8Array; ${nbits}, or from pack()`]: argument('weights', {
      weights: new Uint8Array(3),
    }),
    [`weights is a tensor; ${nbits}, or from pack()`]: argument('weights', {
      weights: floats([20, 2]),
    }),
    [`weights is an object with packed weights as data; ${nbits}, or from pack()`]: argument(
      'weights',
      (h) => ({ 'weights.data': h.forNBits }),
    ),
    [`B is a copy of a handle; ${realHandle}`]: argument('B', (h) => ({
      weights: Object.create(h.forNBits) as unknown,
    })),
    [`B is undefined; ${aTensor}`]: argument('B', { 'weights.data': undefined }),
    [`B is a Uint8Array without a shape; ${withShape}`]: dtype('B', {
      'weights.data': new Uint8Array(32),
    }),
    [`scales is undefined; ${aTensor}`]: argument('scales', { 'weights.scales': undefined }),
    [`zeroPoints is 8; ${aTensor}`]: argument('zeroPoints', { 'weights.zeroPoints': 8 }),
    [`bias is "b"; ${aTensor}`]: argument('bias', { bias: 'b' }),
    [`bias is an array; ${vector32}`]: dtype('bias', { bias: [1, 2] }),
    'the property of weights "zeroPoint" is not known; it must be one of data, scales, zeroPoints, k, n, bits, blockSize':
      argument('zeroPoint', { 'weights.zeroPoint': 1 }),
    'gIdx is given, which ONNX Runtime has deprecated; reorder K of A and B by it, or dequantize the weights':
      argument('gIdx', { 'weights.gIdx': int32([20]) }),
    [`the option "transB" is not known; it must be one of ${optionsOfNBits}`]: argument('transB', {
      options: { transB: true },
    }),
    [`k is undefined; ${aWhole}`]: argument('k', { 'weights.k': undefined }),
    'k is -1; it must be from 0 to 2^53': shape('k', { 'weights.k': -1 }),
    [`n is "2"; ${aWhole}`]: argument('n', { 'weights.n': '2' }),
    'n is -3; it must be from 0 to 2^53': shape('n', { 'weights.n': -3 }),
    [`bits is null; ${aWhole}`]: argument('bits', { 'weights.bits': null }),
    [`blockSize is undefined; ${aWhole}`]: argument('blockSize', {
      'weights.blockSize': undefined,
    }),
    [`accuracyLevel is 0.5; ${aWhole}`]: argument('accuracyLevel', { accuracyLevel: 0.5 }),
  },
  syrk: {
    ...wrongOptions(callOf.syrk, optionsOfSyrk),
    [`the option "transB" is not known; it must be one of ${optionsOfSyrk}`]: argument('transB', {
      options: { transB: true },
    }),
    [`A is 5; ${aTensor}; ${callOf.syrk}`]: argument('A', { a: 5 }),
    [`A is "U"; ${aTensor}; ${callOf.syrk}`]: argument('A', { a: 'U' }),
    [`A is undefined; ${aTensor}`]: argument('A', { a: undefined }),
    [`A is a Float32Array without a shape; ${withShape}`]: dtype('A', { a: new Float32Array(6) }),
    [`A is an array; ${withShape}; ${byTensor}`]: dtype('A', { a: [[1], [2], [3]] }),
    [`the data of A is an array; it must be Float32Array or Float64Array; ${byTensor}`]: dtype(
      'A',
      { 'a.data': [1, 2, 3, 4, 5, 6] },
    ),
    'the data of A is Uint8ClampedArray; it must be Float32Array or Float64Array': dtype('A', {
      'a.data': new Uint8ClampedArray(6),
    }),
    'alpha is "1"; it must be a number': argument('alpha', { alpha: '1' }),
    'alpha is null; it must be a number': argument('alpha', { alpha: null }),
    'alpha is 1n; it must be a number': argument('alpha', { alpha: 1n }),
    [`transA is "T"; ${aFlag}`]: argument('transA', { transA: 'T' }),
    [`transA is NaN; ${aFlag}`]: argument('transA', { transA: NaN }),
    'A has 6 elements; its shape [2, 3] and strides [4, 1] need 7': shape('A', {
      'a.strides': [4, 1],
    }),
  },
  pack: {
    [`B is undefined; ${aTensor}`]: argument('B', { b: undefined }),
    [`B is a Float32Array without a shape; ${withShape}`]: dtype('B', { b: new Float32Array(6) }),
    "op is 'gemm' and B has a blockSize; for such weights it must be 'matmulNBits'": argument(
      'op',
      { b: codes() },
    ),
    "op is 'qgemm' and B has a blockSize; for such weights it must be 'matmulNBits'": argument(
      'op',
      { b: codes(), op: 'qgemm' },
    ),
    "op is undefined; it must be 'gemm', 'matmul', 'qgemm' or 'matmulNBits'": argument('op', {
      options: undefined,
    }),
    'options is "gemm"; it must be an object': argument('options', { options: 'gemm' }),
    'the option "transB" is not known; it must be one of op, trans, as': argument('transB', {
      transB: true,
    }),
    [`trans is "yes"; ${aFlag}`]: argument('trans', { trans: 'yes' }),
    [`as is "half"; ${aType}`]: dtype('as', { as: 'half' }),
    [`the data of B is an array; ${anArray}; ${byTensor}`]: dtype('B', { 'b.data': [1, 2] }),
    'B has dtype "uint8" and a Float32Array; that holds float32': dtype('B', {
      'b.dtype': 'uint8',
    }),
    [`B has shape [-3, -2]; ${eachSize}`]: shape('B', { 'b.shape': [-3, -2] }),
    'B has 6 elements; its shape [3, 2] and strides [4, 1] need 10': shape('B', {
      'b.strides': [4, 1],
    }),
    'B is packed already': argument('B', (h) => ({ b: h.forGemm })),
  },
  packForNBits: {
    [`weights is a tensor; ${nbits}`]: argument('weights', { weights: floats([20, 2]) }),
    [`weights is 5; ${nbits}`]: argument('weights', { weights: 5 }),
    [`weights is Uint8Array; ${nbits}`]: argument('weights', { weights: new Uint8Array(3) }),
    'B is packed already': argument('B', (h) => ({ weights: h.forNBits })),
    'trans is true; for matmulNBits it must be absent': argument('trans', { trans: true }),
    'as is "float16"; for matmulNBits it must be absent': argument('as', { as: 'float16' }),
    [`B is undefined; ${aTensor}`]: argument('B', { 'weights.data': undefined }),
    'the property of weights "zeroPoint" is not known; it must be one of data, scales, zeroPoints, k, n, bits, blockSize':
      argument('zeroPoint', { 'weights.zeroPoint': 1 }),
    'gIdx is given, which ONNX Runtime has deprecated; reorder K of A and B by it, or dequantize the weights':
      argument('gIdx', { 'weights.gIdx': int32([20]) }),
    [`k is 20.5; ${aWhole}`]: argument('k', { 'weights.k': 20.5 }),
    'k is -1; it must be from 0 to 2^53': shape('k', { 'weights.k': -1 }),
    [`n is "2"; ${aWhole}`]: argument('n', { 'weights.n': '2' }),
    'n is -3; it must be from 0 to 2^53': shape('n', { 'weights.n': -3 }),
    [`bits is null; ${aWhole}`]: argument('bits', { 'weights.bits': null }),
    [`blockSize is undefined; ${aWhole}`]: argument('blockSize', {
      'weights.blockSize': undefined,
    }),
    [`scales is 1; ${aTensor}`]: argument('scales', { 'weights.scales': 1 }),
    [`zeroPoints is 8; ${aTensor}`]: argument('zeroPoints', { 'weights.zeroPoints': 8 }),
  },
  explain: {
    [`op is "conv"; it must be 'gemm', 'matmul', 'qgemm', 'matmulInteger', 'qlinearMatmul', 'dynamicQuantizeMatmul', 'matmulIntegerToFloat', 'matmulNBits' or 'syrk'`]:
      argument('op', { op: 'conv' }),
  },
  alloc: {
    [`dtype is "complex64"; ${aType}`]: dtype('dtype', { dtype: 'complex64' }),
    [`shape is undefined; ${aList}`]: shape('shape', { shape: undefined }),
    [`shape is [2, -1]; ${eachSize}`]: shape('shape', { shape: [2, -1] }),
    [`shape is an array of length 65; ${aRank}`]: shape('shape', { shape: Array(65).fill(1) }),
    'shape is [134217728, 134217728], of more than 2^53 elements': shape('shape', {
      shape: [2 ** 27, 2 ** 27],
    }),
  },
  deserialize: {
    [`bytes is undefined; ${bytesOnly}`]: argument('bytes', { bytes: undefined }),
    [`bytes is "wgemm-pw"; ${bytesOnly}: fetch it first`]: argument('bytes', { bytes: 'wgemm-pw' }),
    [`bytes is an object; ${bytesOnly}: fetch it first`]: argument('bytes', {
      bytes: new URL('https://example.com/weights'),
    }),
    [`bytes is a promise, which must be awaited; ${bytesOnly}`]: argument('bytes', {
      bytes: Promise.resolve(1),
    }),
    [`bytes is an object; ${bytesOnly}: await its arrayBuffer()`]: argument('bytes', {
      bytes: new Response(''),
    }),
    [`bytes is Int8Array; ${bytesOnly}`]: argument('bytes', { bytes: new Int8Array(8) }),
    [`bytes is an object; ${bytesOnly}`]: argument('bytes', {
      bytes: new DataView(new ArrayBuffer(8)),
    }),
    [`bytes is an array; ${bytesOnly}`]: argument('bytes', { bytes: [1, 2] }),
    'bytes is a detached array; it was transferred, or the memory under it grew': argument(
      'bytes',
      { bytes: detached(Uint8Array) },
    ),
  },
  packFrom: {
    [`source is 5; ${aSource}`]: argument('source', { from: 5 }),
    'file is Uint8Array; it must be what readGGUF() or readSafetensors() returned, and not a copy':
      argument('file', { place: 'w' }),
    'file is an object; it must be what readGGUF() or readSafetensors() returned, and not a copy':
      argument('file', { from: {}, place: undefined }),
    'options is 5; it must be an object': argument('options', { options: 5 }),
    'the option "of" is not known; it must be one of as, signal': argument('of', { of: 1 }),
    'signal must be an AbortSignal': argument('signal', { signal: { aborted: false } }),
    [`as is "int8"; ${asOfF32}`]: dtype('as', { as: 'int8' }),
    [`as is "float32"; ${asOfF32}`]: dtype('as', { as: 'float32', 'place.type': 'F16' }),
    [`as is "float16"; ${asOfF32}`]: dtype('as', {
      ...{ as: 'float16', place: { type: 'Q4_K', shape: [1, 256] } },
    }),
    'the property of place "ne" is not known; it must be one of type, shape, offset': argument(
      'ne',
      { 'place.ne': [2] },
    ),
    [`place is a tensor of type 12; ${aPackable}`]: dtype('place', { 'place.type': 12 }),
    [`place is a tensor of type a symbol; ${aPackable}`]: dtype('place', {
      'place.type': Symbol('F32'),
    }),
    [`place is a tensor of type an object; ${aPackable}`]: dtype('place', {
      'place.type': Object.create(null) as object,
    }),
    [`place has a shape that is undefined; ${aList}`]: shape('place', { 'place.shape': undefined }),
    [`place has a shape that is [2, -1]; ${eachSize}`]: shape('place', { 'place.shape': [2, -1] }),
    'place has offset 0.5; it must be a whole number from 0': argument('place', {
      'place.offset': 0.5,
    }),
    'place has offset 9007199254740991; the matrix must end before byte 2^53': argument('place', {
      'place.offset': 2 ** 53 - 1,
    }),
    'place is of type Q4_K and shape [2, 100]; the last size must be a multiple of 256': shape(
      'place',
      { place: { type: 'Q4_K', shape: [2, 100] } },
    ),
    [`place is a tensor of shape [3, 2, 1]; ${aMatrix}`]: shape('place', {
      'place.shape': [3, 2, 1],
    }),
    [`place is a tensor of shape [2]; ${aMatrix}`]: shape('place', { 'place.shape': [2] }),
    [`place is a tensor of type IQ4_XS; ${aPackable}`]: dtype('place', {
      ...{ place: { type: 'IQ4_XS', shape: [1, 256] } },
    }),
    [`place is a tensor of type I8; ${aPackable}`]: dtype('place', { 'place.type': 'I8' }),
    [`place is a tensor of type q4_k; ${aPackable}`]: dtype('place', { 'place.type': 'q4_k' }),
  },
};

/** Errors that the core finds in the arguments. */
export const ofCore: Table = {
  'gemm matmul qgemm qlinearMatmul dynamicQuantizeMatmul matmulIntegerToFloat matmulNBits': {
    'activation has a min that is NaN; it must be a number, which may be infinite': argument(
      'activation',
      { activation: [NaN, 6] },
    ),
    'activation has a max that is NaN; it must be a number, which may be infinite': argument(
      'activation',
      { activation: [0, NaN] },
    ),
    'activation has a min above its max; min must be at most max': argument('activation', {
      activation: [6, 0],
    }),
  },
  'gemm qgemm matmulInteger qlinearMatmul dynamicQuantizeMatmul matmulIntegerToFloat': {
    'out has shape [4]; the result has shape [2, 2]': shape('out', { 'out.shape': [4] }),
    [`out has strides [1, 1] and shape [2, 2]; ${noSharing}`]: shape('out', {
      'out.strides': [1, 1],
    }),
  },
  [quantized]: {
    'A has 6 elements; its shape [3, 3] needs 9': shape('A', { 'a.shape': [3, 3] }),
    [`A has shape [2, 3] and B has shape [2, 2]; K is 3 in A and 2 in B, ${sameK}; set transA if A is (K, M)`]:
      shape('B', { b: int8([2, 2], 1, 2, 3, 4) }),
    [`A has shape [2, 3] and B has shape [4, 3]; K is 3 in A and 4 in B, ${sameK}; set transB if B is (N, K)`]:
      shape('B', { b: int8([4, 3], ...Array<number>(12).fill(1)) }),
    [`A has shape [2, 3] and B (transposed) has shape [3, 2]; K is 3 in A and 2 in B, ${sameK}; unset transB if B is (K, N)`]:
      shape('B', { transB: true }),
    'bZeroPoint has type uint8; it must be int8': dtype('bZeroPoint', {
      bZeroPoint: Uint8Array.of(1),
    }),
    'B is packed for gemm and matmul; pack it for qgemm': mismatch('B', (h) => ({ b: h.forGemm })),
    'B is packed for matmulNBits; pack it for qgemm': mismatch('B', (h) => ({ b: h.forNBits })),
    [`transB is set and B is packed; ${whenPacking}`]: argument('transB', (h) => ({
      b: h.forQGemm,
      transB: true,
    })),
    [`A has shape [3, 2] and B is packed from shape [3, 2]; K is 2 in A and 3 in B, ${otherTrans}`]:
      shape('B', (h) => ({ b: h.forQGemm, 'a.shape': [3, 2] })),
    [`A (transposed) has shape [2, 3] and B is packed from shape [3, 2]; K is 2 in A and 3 in B, ${otherTrans}`]:
      shape('B', (h) => ({ b: h.forQGemm, transA: true })),
  },
  'qgemm matmulInteger qlinearMatmul matmulIntegerToFloat': {
    'aZeroPoint has type int8; it must be uint8': dtype('aZeroPoint', {
      aZeroPoint: Int8Array.of(1),
    }),
  },
  'qgemm qlinearMatmul dynamicQuantizeMatmul matmulIntegerToFloat': {
    'bScale has 1 elements; its shape [2] needs 2': shape('bScale', {
      bScale: { data: Float32Array.of(1), shape: [2] },
    }),
  },
  [integer]: {
    'B has rank 0; it must have rank 1 or more': shape('B', { b: int8([], 1) }),
    [`A has batch axes [2] and B has [3]; ${batchAxes}`]: shape('B', {
      'a.shape': [2, 1, 3],
      b: int8([3, 3, 1], 1, 2, 3, 4, 5, 6, 7, 8, 9),
    }),
  },
  'qlinearMatmul dynamicQuantizeMatmul matmulIntegerToFloat': {
    [`bScale has shape [2] and B' has 3 columns; ${perColumn}`]: shape('bScale', {
      transA: true,
      transB: true,
    }),
    [`bZeroPoint has shape [2, 1] and B' has 2 columns; ${perColumn}`]: shape('bZeroPoint', {
      bZeroPoint: int8([2, 1], 1, 2),
    }),
    'bScale is absent; it must be given': argument('bScale', { bScale: undefined }),
    [`bScale is NaN; ${finiteScale}`]: argument('bScale', { bScale: NaN }),
    [`bScale is infinite; ${finiteScale}`]: argument('bScale', { bScale: Infinity }),
  },
  'qgemm qlinearMatmul matmulIntegerToFloat': {
    'aScale has 1 elements; its shape [2] needs 2': shape('aScale', {
      aScale: { data: Float32Array.of(1), shape: [2] },
    }),
  },
  'matmulInteger qlinearMatmul matmulIntegerToFloat': {
    'A has rank 0; it must have rank 1 or more': shape('A', {
      a: { data: new Uint8Array(1), shape: [] },
    }),
  },
  'matmulInteger qlinearMatmul': {
    [`aZeroPoint has shape [3] and A' has 2 rows; ${perRow}`]: shape('aZeroPoint', {
      aZeroPoint: uint8([3], 1, 2, 3),
    }),
  },
  'dynamicQuantizeMatmul matmulIntegerToFloat': {
    'out has type float64; the result has type float32': dtype('out', {
      out: ofType('float64', 2, 2),
    }),
    'bias has type int32; it must be float32': dtype('bias', { bias: int32([2], 1, 2) }),
    "bias has shape [1] and B' has 2 columns; it must have one element per column, of shape [N]":
      shape('bias', { bias: Float32Array.of(1) }),
  },
  'qlinearMatmul matmulIntegerToFloat': {
    'bScale has type float64; it must be float32 or float16': dtype('bScale', {
      bScale: Float64Array.of(1),
    }),
    'aScale is absent; it must be given': argument('aScale', { aScale: null }),
    [`aScale is NaN; ${finiteScale}`]: argument('aScale', { aScale: NaN }),
    [`aScale is infinite; ${finiteScale}`]: argument('aScale', { aScale: -Infinity }),
    [`bScale has type float32 and another scale has type float16; ${same}`]: dtype('bScale', {
      aScale: ofType('float16', 1),
    }),
    'aScale has type float64; it must be float32 or float16': dtype('aScale', {
      aScale: Float64Array.of(1),
    }),
    'aScale * bScale, divided by yScale if there is one, is not finite in float32; it must be':
      argument('bScale', { aScale: 1e20, bScale: Float32Array.of(1, -1e20) }),
  },
  matmul: {
    'out has 30 elements; its shape [4] needs 4': shape('out', { 'out.shape': [4] }),
    'weights is packed for qgemm; pack it for matmul': mismatch('weights', (h) => ({
      weights: h.forQGemm,
    })),
    'weights is packed for matmulNBits; pack it for matmul': mismatch('weights', (h) => ({
      weights: h.forNBits,
    })),
    [`src has shape [2, 3, 4] and weights is packed from shape [3, 2]; K is 4 in src and 3 in weights, ${sameK}`]:
      shape('weights', (h) => ({ weights: h.forGemm })),
    [`src has shape [2] and weights is packed from shape [3, 2]; K is 2 in src and 3 in weights, ${otherTrans}`]:
      shape('weights', (h) => ({ src: floats([2]), weights: h.forGemm })),
    'bias has shape [5], which does not broadcast to [3, 3, 2]; aligned at the right, each size must be the same or 1, and there may be no more axes':
      shape('bias', (h) => ({ weights: h.batch, src: floats([3, 3, 3]) })),
    [`transposeB is set and weights is packed; ${whenPacking}`]: argument('transposeB', (h) => ({
      src: floats([2, 3]),
      weights: h.forGemm,
      transposeB: true,
    })),
    [`weights is packed as float32 and src has type int32; ${same}, or float16 or bfloat16 for a float32 src`]:
      dtype('weights', (h) => ({ src: ofType('int32', 2, 3), weights: h.forGemm })),
    [`weights has type float64 and src has type float32; ${same}`]: dtype('weights', {
      weights: ofType('float64', 4, 5),
    }),
    [`weights has type bfloat16 and src has type float32; ${same}, or pack() must pack the weights for gemm`]:
      dtype('weights', { weights: ofType('bfloat16', 4, 5) }),
    'weights has type int8, which MatMul does not have; 8-bit operands are for qgemm': dtype(
      'weights',
      { weights: ofType('int8', 4, 5) },
    ),
    [`bias has type int32 and src has type float32; ${same}`]: dtype('bias', {
      bias: ofType('int32', 5),
    }),
    [`bias has type uint8 and src has type float32; ${same}; 8-bit operands are for qgemm`]: dtype(
      'bias',
      { bias: ofType('uint8', 5) },
    ),
    [`out has type int32 and src has type float32; ${same}, or float32 from float16 and bfloat16`]:
      dtype('out', { out: ofType('int32', 2, 3, 5) }),
    'src has type int8, which MatMul does not have; 8-bit operands are for qgemm': dtype('src', {
      src: ofType('int8', 4),
      weights: ofType('int8', 4, 5),
      bias: null,
      out: undefined,
    }),
    'src has rank 0; it must have rank 1 or more': shape('src', { src: floats([]) }),
    'weights has rank 0; it must have rank 1 or more': shape('weights', { weights: floats([]) }),
    [`src has shape [2, 3, 4] and weights has shape [5, 5]; K is 4 in src and 5 in weights, ${sameK}`]:
      shape('weights', { weights: floats([5, 5]) }),
    [`src (transposed) has shape [2, 3, 4] and weights has shape [4, 5]; K is 3 in src and 4 in weights, ${sameK}; unset transposeA if src is (M, K)`]:
      shape('weights', { transposeA: true }),
    [`src has shape [2, 3, 4] and weights (transposed) has shape [4, 5]; K is 4 in src and 5 in weights, ${sameK}; unset transposeB if weights is (K, N)`]:
      shape('weights', { transposeB: true }),
    [`src has shape [9, 4] and weights (transposed) has shape [6, 2]; K is 4 in src and 2 in weights, ${sameK}`]:
      shape('weights', { src: floats([9, 4]), weights: floats([6, 2]), transposeB: true }),
    [`src (transposed) has shape [3, 7] and weights (transposed) has shape [6, 2]; K is 3 in src and 2 in weights, ${sameK}`]:
      shape('weights', {
        src: floats([3, 7]),
        weights: floats([6, 2]),
        transposeA: true,
        transposeB: true,
      }),
    [`src has shape [3, 2] and weights (transposed) has shape [15, 3]; K is 2 in src and 3 in weights, ${sameK}; set transposeA if src is (K, M)`]:
      shape('weights', { src: floats([3, 2]), weights: floats([15, 3]), transposeB: true }),
    [`src (transposed) has shape [10, 1] and weights (transposed) has shape [10, 8]; K is 10 in src and 8 in weights, ${sameK}; unset transposeB if weights is (K, N)`]:
      shape('weights', {
        src: floats([10, 1]),
        weights: floats([10, 8]),
        transposeA: true,
        transposeB: true,
      }),
    [`src (transposed) has shape [1, 4] and weights has shape [3, 4]; K is 1 in src and 3 in weights, ${sameK}`]:
      shape('weights', { src: floats([1, 4]), weights: floats([3, 4]), transposeA: true }),
    [`src (transposed) has shape [7, 6] and weights has shape [6, 7]; K is 7 in src and 6 in weights, ${sameK}; set transposeB if weights is (N, K)`]:
      shape('weights', { src: floats([7, 6]), weights: floats([6, 7]), transposeA: true }),
    [`src (transposed) has shape [7, 5] and weights (transposed) has shape [40, 5]; K is 7 in src and 5 in weights, ${sameK}; unset transposeA if src is (M, K)`]:
      shape('weights', {
        src: floats([7, 5]),
        weights: floats([40, 5]),
        transposeA: true,
        transposeB: true,
      }),
    [`src has shape [5] and weights has shape [4, 5]; K is 5 in src and 4 in weights, ${sameK}; set transposeB if weights is (N, K)`]:
      shape('weights', { src: floats([5]), transposeA: true }),
    [`src has shape [2, 3, 4] and weights has shape [3]; K is 4 in src and 3 in weights, ${sameK}; set transposeA if src is (K, M)`]:
      shape('weights', { weights: floats([3]), transposeB: true }),
    [`src has batch axes [2] and weights has [3]; ${batchAxes}`]: shape('weights', {
      weights: floats([3, 4, 5]),
    }),
    'out would have shape [268435456, 8192, 8192], of more than 2^53 elements': shape('out', {
      src: floats([2 ** 28, 2 ** 13, 0]),
      weights: floats([0, 2 ** 13]),
      bias: null,
      out: undefined,
    }),
    'out has shape [2, 5, 3]; the result has shape [2, 3, 5]': shape('out', {
      out: floats([2, 5, 3]),
    }),
    'src has 23 elements; its shape [2, 3, 4] needs 24': shape('src', {
      'src.data': new Float32Array(23),
    }),
    'weights has 21 elements; its shape [4, 5] needs 20': shape('weights', {
      'weights.data': new Float32Array(21),
    }),
    'src has more than 2^53 elements, by its shape [134217728, 134217728]': shape('src', {
      'src.shape': [2 ** 27, 2 ** 27],
    }),
    'bias has 4 elements; its shape [5] needs 5': shape('bias', {
      'bias.data': new Float32Array(4),
    }),
    [`out has strides [0, 5, 1] and shape [2, 3, 5]; ${noSharing}`]: shape('out', {
      'out.strides': [0, 5, 1],
    }),
    'alpha is a 64-bit integer; with float32 it must be a number': argument('alpha', { alpha: 2n }),
    'alpha is NaN; with int32 it must be finite': argument('alpha', {
      ...stacks('int32'),
      alpha: NaN,
    }),
    'alpha is infinite; with int32 it must be finite': argument('alpha', {
      ...stacks('int32'),
      alpha: -Infinity,
    }),
    'alpha is beyond 2^53; with int32 it must be from -2^53 to 2^53': argument('alpha', {
      ...stacks('int32'),
      alpha: 2 ** 53 + 2,
    }),
    'activation has a min that is not a whole number from -2^53 to 2^53; with int32 it must be one, or infinite':
      argument('activation', { ...stacks('int32'), activation: [0.5, 6] }),
  },
  matmulNBits: {
    'out has 6 elements; its shape [4] needs 4': shape('out', { 'out.shape': [4] }),
    [`out has strides [1, 1] and shape [3, 2]; ${noSharing}`]: shape('out', {
      'out.strides': [1, 1],
    }),
    'B is packed for gemm and matmul; pack it for matmulNBits': mismatch('B', (h) => ({
      weights: h.forGemm,
    })),
    'B is packed for qgemm; pack it for matmulNBits': mismatch('B', (h) => ({
      weights: h.forQGemm,
    })),
    'A has shape [3, 16]; its last size must be K, which is 20 in the weights': shape('A', (h) => ({
      weights: h.forNBits,
      a: floats([3, 16]),
    })),
    [`scales has type float32 and A has type float16; ${same}`]: dtype('scales', (h) => ({
      weights: h.forNBits,
      a: ofType('float16', 3, 20),
      bias: null,
      out: undefined,
    })),
    'B would have [2, 9007199254740992] codes, which is more than 2^53': shape('B', {
      'weights.k': 2 ** 53,
    }),
    'B has shape [2, 2, 8]; for these K, N, bits and blockSize it must be [2, 3, 8]': shape('B', {
      'weights.k': 33,
    }),
    'bits is 3; it must be 2, 4 or 8': argument('bits', { 'weights.bits': 3 }),
    'blockSize is 24; it must be 16, 32, 64, 128 or 256': argument('blockSize', {
      'weights.blockSize': 24,
    }),
    'accuracyLevel is 5; it must be from 0 to 4': argument('accuracyLevel', { accuracyLevel: 5 }),
    'A has type float64; it must be float32, float16 or bfloat16': dtype('A', {
      a: ofType('float64', 3, 20),
    }),
    'B has type int8; it must be uint8': dtype('B', {
      'weights.data': { data: new Int8Array(32), shape: [2, 2, 8] },
    }),
    'scales has type float64; it must be float32, float16 or bfloat16': dtype('scales', {
      'weights.scales': ofType('float64', 2, 2),
    }),
    'zeroPoints has type int8; it must be uint8, or float32 as scales': dtype('zeroPoints', {
      'weights.zeroPoints': int8([2, 1], 1, 1),
    }),
    [`bias has type float16 and A has type float32; ${same}`]: dtype('bias', {
      bias: ofType('float16', 2),
    }),
    [`out has type float16 and A has type float32; ${same}`]: dtype('out', {
      out: ofType('float16', 3, 2),
    }),
    'A has rank 0; it must have rank 1 or more': shape('A', { a: floats([]) }),
    'A has 60 elements; its shape [4, 20] needs 80': shape('A', { 'a.shape': [4, 20] }),
    'B has strides [8, 16, 1]; it must be contiguous': shape('B', {
      'weights.data': { ...codes().data, strides: [8, 16, 1] },
    }),
    'scales has shape [2]; for these K, N, bits and blockSize it must be [2, 2], or flat': shape(
      'scales',
      { 'weights.scales': floats([2]) },
    ),
    'zeroPoints has shape [2, 2]; for these K, N, bits and blockSize it must be [2, 1], or flat':
      shape('zeroPoints', { 'weights.zeroPoints': uint8([2, 2], 1, 1, 1, 1) }),
    'bias has shape [20]; it must have N elements, of shape [2]': shape('bias', {
      bias: new Float32Array(20),
    }),
  },
  syrk: {
    'A has type int32; it must be float32 or float64': dtype('A', { a: ofType('int32', 2, 3) }),
    'A has type float16; it must be float32 or float64': dtype('A', { a: ofType('float16', 2, 3) }),
    'A has shape [6] of rank 1; it must have rank 2': shape('A', { 'a.shape': [6] }),
    'A has shape [1, 2, 3] of rank 3; it must have rank 2': shape('A', { 'a.shape': [1, 2, 3] }),
    'A has 6 elements; its shape [3, 3] needs 9': shape('A', { 'a.shape': [3, 3] }),
    'A has more than 2^53 elements, by its shape [134217728, 134217728]': shape('A', {
      'a.shape': [2 ** 27, 2 ** 27],
    }),
    'out would have shape [1073741824, 1073741824], of more than 2^53 elements': shape('out', {
      a: floats([2 ** 30, 0]),
      out: undefined,
    }),
    'out has shape [4]; the result has shape [2, 2]': shape('out', { 'out.shape': [4] }),
    'out has shape [2, 2]; the result has shape [3, 3]': shape('out', { transA: true }),
    'out has 5 elements; its shape [2, 2] needs 4': shape('out', {
      'out.data': new Float32Array(5),
    }),
    [`out has strides [1, 1] and shape [2, 2]; ${noSharing}`]: shape('out', {
      'out.strides': [1, 1],
    }),
    [`out has type float64 and A has type float32; ${same}`]: dtype('out', {
      out: ofType('float64', 2, 2),
    }),
  },
  gemm: {
    'A has shape [2, 0] and B is packed from shape [3, 2]; K is 0 in A and 3 in B, and must be the same':
      shape('B', (h) => ({ a: floats([2, 0]), b: h.forGemm })),
    'B is packed for qgemm; pack it for gemm': mismatch('B', (h) => ({ b: h.forQGemm })),
    'B is packed for matmulNBits; pack it for gemm': mismatch('B', (h) => ({ b: h.forNBits })),
    'B is packed with batch axes [3]; for gemm it must have rank 2': shape('B', (h) => ({
      b: h.batch,
    })),
    [`transB is set and B is packed; ${whenPacking}`]: argument('transB', (h) => ({
      b: h.forGemm,
      transB: true,
    })),
    [`A has shape [3, 2] and B is packed from shape [3, 2]; K is 2 in A and 3 in B, ${otherTrans}`]:
      shape('B', (h) => ({ b: h.forGemm, 'a.shape': [3, 2] })),
    [`A (transposed) has shape [2, 3] and B is packed from shape [3, 2]; K is 2 in A and 3 in B, ${otherTrans}`]:
      shape('B', (h) => ({ b: h.forGemm, transA: true })),
    [`C has type float32 and A has type float64; ${same}`]: dtype('C', (h) => ({
      b: h.forGemm,
      a: ofType('float64', 2, 3),
    })),
    [`C has type float32 and A has type int32; ${same}`]: dtype('C', (h) => ({
      b: h.halves,
      a: ofType('int32', 2, 3),
    })),
    [`A (transposed) has shape [4, 2] and B is packed from shape [3, 2]; K is 4 in A and 3 in B, ${sameK}`]:
      shape('B', (h) => ({
        b: h.forGemm,
        a: floats([4, 2]),
        transA: true,
        c: null,
        out: undefined,
      })),
    [`C has type float32 and A has type bfloat16; ${same}`]: dtype('C', (h) => ({
      b: h.forGemm,
      a: ofType('bfloat16', 2, 3),
    })),
    'alpha is a 64-bit integer; with float32 it must be a number': argument('alpha', { alpha: 1n }),
    'beta is a 64-bit integer; with float32 it must be a number': argument('beta', { beta: 1n }),
    'opset 13 means Gemm-13, which has no attribute broadcast; C broadcasts by itself from opset 7':
      opset('broadcast', { broadcast: false }),
    'opset is 0; it must be 1 or more': opset('opset', { opset: 0 }),
    'opset 10 means Gemm-9, which demands C; C is optional from opset 11': opset('C', {
      opset: 10,
      c: null,
    }),
    'C has shape [2]; Gemm-6 without broadcast demands exactly [2, 2], the shape of the result':
      shape('C', { opset: 6, c: float32([2], 1, 2) }),
    'A has type int8, which Gemm does not have; 8-bit operands are for qgemm': dtype('A', {
      a: { data: ofType('int8', 2, 3).data, shape: [2, 3] },
    }),
    [`B has type int32 and A has type float32; ${same}`]: dtype('B', { b: ofType('int32', 3, 2) }),
    [`B has type float16 and A has type float32; ${same}, or pack() must pack the weights for gemm`]:
      dtype('B', { b: ofType('float16', 3, 2) }),
    [`B has type float32 and A has type float16; ${same}`]: dtype('B', {
      a: ofType('float16', 2, 3),
    }),
    [`B has type float32 and A has type float64; ${same}`]: dtype('B', {
      a: ofType('float64', 2, 3),
    }),
    [`B has type uint8 and A has type float32; ${same}; 8-bit operands are for qgemm`]: dtype('B', {
      b: ofType('uint8', 3, 2),
    }),
    [`B has type bfloat16 and A has type float16; ${same}`]: dtype('B', {
      b: ofType('bfloat16', 3, 2),
      a: ofType('float16', 2, 3),
    }),
    [`C has type int32 and A has type float32; ${same}`]: dtype('C', { c: ofType('int32', 2) }),
    [`C has type int8 and A has type float32; ${same}; 8-bit operands are for qgemm`]: dtype('C', {
      c: ofType('int8', 2, 2),
    }),
    [`out has type int32 and A has type float32; ${same}`]: dtype('out', {
      out: ofType('int32', 2, 2),
    }),
    [`out has type int8 and A has type float32; ${same}; 8-bit operands are for qgemm`]: dtype(
      'out',
      { out: ofType('int8', 2, 2) },
    ),
    'A has more than 2^53 elements, by its shape [134217728, 134217728]': shape('A', {
      'a.shape': [2 ** 27, 2 ** 27],
    }),
    'B has more than 2^53 elements, by its shape [134217728, 134217728]': shape('B', {
      'b.shape': [2 ** 27, 2 ** 27],
    }),
    'C has more than 2^53 elements, by its shape [134217728, 134217728]': shape('C', {
      'c.shape': [2 ** 27, 2 ** 27],
    }),
    'out has more than 2^53 elements, by its shape [134217728, 134217728]': shape('out', {
      'out.shape': [2 ** 27, 2 ** 27],
    }),
    'A has shape [] of rank 0; it must have rank 2': shape('A', {
      'a.shape': [],
      'a.data': new Float32Array(1),
    }),
    'B has shape [6] of rank 1; it must have rank 2': shape('B', { 'b.shape': [6] }),
    [`A has shape [2, 3] and B has shape [4, 3]; K is 3 in A and 4 in B, ${sameK}; set transB if B is (N, K)`]:
      shape('B', { b: floats([4, 3]) }),
    [`A has shape [2, 3] and B (transposed) has shape [3, 4]; K is 3 in A and 4 in B, ${sameK}; unset transB if B is (K, N)`]:
      shape('B', { b: floats([3, 4]), transB: true }),
    [`A has shape [2, 3] and B has shape [2, 2]; K is 3 in A and 2 in B, ${sameK}; set transA if A is (K, M)`]:
      shape('B', { b: floats([2, 2]) }),
    [`A (transposed) has shape [2, 3] and B (transposed) has shape [2, 3]; K is 2 in A and 3 in B, ${sameK}; unset transB if B is (K, N)`]:
      shape('B', { b: floats([2, 3]), transA: true, transB: true }),
    [`A (transposed) has shape [2, 3] and B has shape [3, 2]; K is 2 in A and 3 in B, ${sameK}; set transB if B is (N, K)`]:
      shape('B', { transA: true }),
    'out would have shape [1073741824, 1073741824], of more than 2^53 elements': shape('out', {
      a: floats([2 ** 30, 0]),
      b: floats([0, 2 ** 30]),
      c: null,
      out: undefined,
    }),
    [`C has shape [3], which does not broadcast to [2, 2]; ${broadcast}`]: shape('C', {
      c: floats([3]),
    }),
    'A has 5 elements; its shape [2, 3] needs 6': shape('A', { 'a.data': new Float32Array(5) }),
    'B has 7 elements; its shape [3, 2] needs 6': shape('B', { 'b.data': new Float32Array(7) }),
    'C has 0 elements; its shape [2, 2] needs 4': shape('C', { 'c.data': new Float32Array(0) }),
    'out has 5 elements; its shape [2, 2] needs 4': shape('out', {
      'out.data': new Float32Array(5),
    }),
    'alpha is NaN; with int32 it must be finite': argument('alpha', { ...integers(), alpha: NaN }),
    'beta is NaN; with int32 it must be finite': argument('beta', { ...integers(), beta: NaN }),
    'beta is infinite; with int32 it must be finite': argument('beta', {
      ...integers(),
      beta: -Infinity,
    }),
    'alpha is infinite; with int32 it must be finite': argument('alpha', {
      ...integers(),
      alpha: Infinity,
    }),
    'alpha is beyond 2^53; with int32 it must be from -2^53 to 2^53': argument('alpha', {
      ...integers(),
      alpha: 2 ** 53 + 2,
    }),
    'beta is beyond 2^53; with int32 it must be from -2^53 to 2^53': argument('beta', {
      ...integers(),
      beta: -(2 ** 53) - 2,
    }),
    'opset 8 means Gemm-7, which has no int32; opset must be at least 9': opset('opset', {
      ...integers(),
      opset: 8,
    }),
    'alpha is a 64-bit integer; with int32 it must be a number': argument('alpha', {
      ...integers(),
      alpha: 1n,
    }),
    'activation has a min that is not a whole number from -2^53 to 2^53; with int32 it must be one, or infinite':
      argument('activation', { ...integers(), activation: [0.5, 6] }),
    'activation has a max that is not a whole number from -2^53 to 2^53; with int32 it must be one, or infinite':
      argument('activation', { ...integers(), activation: [0, 2 ** 54] }),
    'activation has a max that is not a whole number from -2^53 to 2^53; with int64 it must be one, or infinite':
      argument('activation', { ...integers('int64'), activation: [0, 6.5] }),
    'alpha has a fraction and beta is a 64-bit integer; alpha must then be whole': argument(
      'alpha',
      { ...integers('int64'), alpha: 0.5, beta: 1n },
    ),
    'beta has a fraction and alpha is a 64-bit integer; beta must then be whole': argument('beta', {
      ...integers('int64'),
      alpha: 1n,
      beta: 0.5,
    }),
    'alpha is NaN; with int64 it must be finite': argument('alpha', {
      ...integers('int64'),
      alpha: NaN,
      beta: 1n,
    }),
  },
  qgemm: {
    'alpha is not finite in float32; it must be': argument('alpha', { alpha: NaN }),
    'alpha * aScale is not finite in float32; it must be': argument('aScale', {
      alpha: 1e20,
      aScale: 1e20,
    }),
    'alpha * aScale * bScale, divided by yScale if there is one, is not finite in float32; it must be':
      argument('bScale', { aScale: 1e20, bScale: Float32Array.of(1, 1e20) }),
    'C has type float32; it must be int32': dtype('C', { c: float32([2], 1, 2) }),
    'yScale has type int32; it must be float32': dtype('yScale', {
      yScale: Int32Array.of(1),
      yZeroPoint: 1,
    }),
    [`yScale has shape [2]; ${oneValue}`]: shape('yScale', {
      yScale: Float32Array.of(1, 2),
      yZeroPoint: 1,
    }),
    [`yZeroPoint has shape [2]; ${oneValue}`]: shape('yZeroPoint', {
      yScale: 1,
      yZeroPoint: Int8Array.of(1, 2),
    }),
    'yZeroPoint has type float32; it must be int8 or uint8': dtype('yZeroPoint', {
      yScale: 1,
      yZeroPoint: Float32Array.of(1),
    }),
    'yZeroPoint is absent and yScale is given; give both for a quantized result, or neither for float32':
      argument('yZeroPoint', { yScale: 1 }),
    'yScale is absent and yZeroPoint is given; give both for a quantized result, or neither for float32':
      argument('yScale', { yZeroPoint: 0 }),
    'out has type float32; the result has type uint8, the type of yZeroPoint': dtype('out', {
      yScale: 1,
      yZeroPoint: 1,
    }),
    [`yScale is 0; ${finiteScale} and above 0`]: argument('yScale', {
      yScale: 0,
      yZeroPoint: 3,
      out: undefined,
    }),
    [`yScale is negative; ${finiteScale} and above 0`]: argument('yScale', {
      yScale: -1,
      yZeroPoint: 3,
      out: undefined,
    }),
    [`yScale is infinite; ${finiteScale} and above 0`]: argument('yScale', {
      yScale: 1e39,
      yZeroPoint: 3,
      out: undefined,
    }),
    'out has type int8; the result has type float32, since yScale is absent': dtype('out', {
      out: int8([2, 2], 1, 2, 3, 4),
    }),
    [`aScale is 0; ${finiteScale} and above 0`]: argument('aScale', { aScale: 0 }),
    [`aScale is negative; ${finiteScale} and above 0`]: argument('aScale', { aScale: -1 }),
    [`aScale is infinite; ${finiteScale} and above 0`]: argument('aScale', {
      aScale: Float32Array.of(Infinity),
    }),
    [`bScale is 0; ${finiteScale} and above 0`]: argument('bScale', { bScale: 1e-50 }),
    [`bScale is negative; ${finiteScale} and above 0`]: argument('bScale', {
      bScale: Float32Array.of(1, -1),
    }),
    [`bScale is infinite; ${finiteScale} and above 0`]: argument('bScale', { bScale: 1e39 }),
    'aScale has type float64; it must be float32': dtype('aScale', { aScale: Float64Array.of(1) }),
    'bScale has type float64; it must be float32': dtype('bScale', { bScale: Float64Array.of(1) }),
    [`aScale has shape [2]; ${oneValue}`]: shape('aScale', { aScale: Float32Array.of(1, 2) }),
    [`aZeroPoint has shape [2]; ${oneValue}`]: shape('aZeroPoint', {
      aZeroPoint: Uint8Array.of(1, 2),
    }),
    [`bScale has shape [3] and B' has 2 columns; ${oneOrEach}`]: shape('bScale', {
      bScale: Float32Array.of(1, 2, 3),
    }),
    [`bZeroPoint has shape [3] and B' has 2 columns; ${oneOrEach}`]: shape('bZeroPoint', {
      bZeroPoint: Int8Array.of(1, 2, 3),
    }),
    'B is packed with batch axes [1]; for qgemm it must have rank 2': shape('B', (h) => ({
      b: h.stack,
    })),
    'A has shape [3] of rank 1; it must have rank 2': shape('A', { a: uint8([3], 1, 2, 3) }),
    'B has shape [] of rank 0; it must have rank 2': shape('B', { b: int8([], 1) }),
    [`C has shape [3], which does not broadcast to [2, 2]; ${broadcast}`]: shape('C', {
      c: int32([3], 1, 2, 3),
    }),
    'C has 3 elements; its shape [2, 2] needs 4': shape('C', { 'c.data': new Int32Array(3) }),
    'out would have shape [1073741824, 1073741824], of more than 2^53 elements': shape('out', {
      inputs: { a: uint8([2 ** 30, 0]), aScale: 1, b: int8([0, 2 ** 30]), bScale: 1 },
      out: undefined,
    }),
  },
  matmulInteger: {
    [`bZeroPoint has shape [2] and B' has 3 columns; ${perColumn}`]: shape('bZeroPoint', {
      transA: true,
      transB: true,
    }),
    'out has type float64; the result has type int32': dtype('out', {
      out: ofType('float64', 2, 2),
    }),
  },
  matmulIntegerToFloat: {
    'aZeroPoint has shape [3]; it must be one value': shape('aZeroPoint', {
      aZeroPoint: uint8([3], 1, 2, 3),
    }),
    'aScale has shape [3]; it must be one value': shape('aScale', {
      aScale: Float32Array.of(1, 2, 3),
    }),
  },
  dynamicQuantizeMatmul: {
    'A has type uint8; it must be float32': dtype('A', {
      a: { data: new Uint8Array(1), shape: [] },
    }),
    'bScale has type float64; it must be float32': dtype('bScale', { bScale: Float64Array.of(1) }),
  },
  qlinearMatmul: {
    'out has type float64; the result has type uint8, the type of yZeroPoint': dtype('out', {
      out: ofType('float64', 2, 2),
    }),
    [`aScale has shape [3] and A' has 2 rows; ${perRow}`]: shape('aScale', {
      aScale: Float32Array.of(1, 2, 3),
    }),
    'yScale is absent; it must be given': argument('yScale', { yScale: null }),
    'yScale is 0; it must be finite and not 0': argument('yScale', { yScale: 0 }),
    [`yScale is NaN; ${finiteScale}`]: argument('yScale', { yScale: NaN }),
    [`yScale is infinite; ${finiteScale}`]: argument('yScale', {
      yScale: Float32Array.of(Infinity),
    }),
    [`yScale has shape [3] and A' has 2 rows; ${perRow}`]: shape('yScale', {
      yScale: Float32Array.of(1, 2, 3),
    }),
    [`yScale has type float16 and another scale has type float32; ${same}`]: dtype('yScale', {
      yScale: ofType('float16', 1),
    }),
    'yZeroPoint has type float32; it must be int8 or uint8': dtype('yZeroPoint', {
      yZeroPoint: Float32Array.of(1),
    }),
    [`yZeroPoint has shape [1, 2] and A' has 2 rows; ${perRow}`]: shape('yZeroPoint', {
      yZeroPoint: uint8([1, 2], 1, 2),
    }),
  },
  pack: {
    'as is float64 and B has type float32; it must be float32, float16 or bfloat16': dtype('as', {
      as: 'float64',
    }),
    'as is bfloat16 and B has type int32; it must be int32': dtype('as', {
      b: ofType('int32', 3, 2),
      as: 'bfloat16',
    }),
    'B has type int8; 8-bit weights are for qgemm': dtype('B', {
      b: int8([3, 2], 1, 2, 3, 4, 5, 6),
    }),
    'B has type float32; for qgemm it must be int8 or uint8': dtype('B', { op: 'qgemm' }),
    'B has shape [6] of rank 1; it must have rank 2 or more': shape('B', { 'b.shape': [6] }),
    'B has 6 elements; its shape [3, 3] needs 9': shape('B', { 'b.shape': [3, 3] }),
    'B has more than 2^53 elements, by its shape [0, 9007199254740991, 2]': shape('B', {
      'b.shape': [0, 2 ** 53 - 1, 2],
      'b.data': new Float32Array(0),
    }),
  },
  packForNBits: {
    'B has shape [2, 2, 8]; for these K, N, bits and blockSize it must be [2, 3, 8]': shape('B', {
      'weights.k': 33,
    }),
    'bits is 3; it must be 2, 4 or 8': argument('bits', { 'weights.bits': 3 }),
    'blockSize is 24; it must be 16, 32, 64, 128 or 256': argument('blockSize', {
      'weights.blockSize': 24,
    }),
    'scales has shape [2]; for these K, N, bits and blockSize it must be [2, 2], or flat': shape(
      'scales',
      { 'weights.scales': floats([2]) },
    ),
    'scales has type float64; it must be float32, float16 or bfloat16': dtype('scales', {
      'weights.scales': ofType('float64', 2, 2),
    }),
    'B has type int8; it must be uint8': dtype('B', {
      'weights.data': { data: new Int8Array(32), shape: [2, 2, 8] },
    }),
    'B has strides [8, 16, 1]; it must be contiguous': shape('B', {
      'weights.data': { ...codes().data, strides: [8, 16, 1] },
    }),
    'zeroPoints has type int8; it must be uint8, or float32 as scales': dtype('zeroPoints', {
      'weights.zeroPoints': int8([2, 1], 1, 1),
    }),
    'zeroPoints has shape [2, 2]; for these K, N, bits and blockSize it must be [2, 1], or flat':
      shape('zeroPoints', { 'weights.zeroPoints': uint8([2, 2], 1, 1, 1, 1) }),
  },
  deserialize: {
    'bytes has 0 bytes; expected at least 56': mismatch('bytes', { bytes: new Uint8Array(0) }),
    'bytes has 160 bytes; expected 168': mismatch('bytes', { bytes: goodBytes().subarray(0, 160) }),
    'bytes is not packed weights: it does not begin with "wgemm-pw"': mismatch('bytes', {
      bytes: withByte(0, 0),
    }),
    'bytes has byte order 2; this machine has 1, and 1 is little-endian': mismatch('bytes', {
      bytes: withByte(8, 2),
    }),
    'bytes is of version 9; this library reads versions 1 and 2': mismatch('bytes', {
      bytes: withByte(12, 9),
    }),
    'bytes is for an unknown operation; it must be gemm, qgemm or nbits': mismatch('bytes', {
      bytes: withByte(24, 0),
    }),
    'bytes has elements of an unknown type; see DType': mismatch('bytes', {
      bytes: withByte(33, 0),
    }),
    'bytes has panels of 4 columns, or of another layout; expected 8 columns': mismatch('bytes', {
      bytes: withByte(40, 4),
    }),
    'bytes has a rank above 64': mismatch('bytes', { bytes: withByte(48, 65) }),
    'bytes is corrupt: the checksum does not match the contents': mismatch('bytes', {
      bytes: withByte(107, 0),
    }),
    'bytes has more than 2^53 elements, by its shape [4294967296, 4294967296]': mismatch('bytes', {
      bytes: withSizes(2 ** 32, 2 ** 32),
    }),
  },
};

/** Errors that the core finds in the elements of A, which `explain` does not read. */
export const ofElements: Table = {
  dynamicQuantizeMatmul: {
    'A has NaN; each element, and their range in float32, must be finite': argument('A', {
      'a.data': Float32Array.of(1, 2, 3, 4, NaN, 6),
    }),
    'A has an infinite element; each element, and their range in float32, must be finite': argument(
      'A',
      { 'a.data': Float32Array.of(Infinity, 2, 3, 4, 5, 6) },
    ),
    'A has an infinite range; each element, and their range in float32, must be finite': argument(
      'A',
      { 'a.data': Float32Array.of(3e38, 2, 3, 4, 5, -3e38) },
    ),
    'the scale of A times bScale is not finite in float32; it must be': argument('bScale', {
      'a.data': Float32Array.of(3e38, 2, 3, 4, 5, 6),
      bScale: 1e38,
    }),
  },
};

const standsForB = (name: string) => name === 'B' || name === 'weights';

/** Rows for one operand. `Class`: the class of array that it takes. */
function rowsOf(call: CallName, key: string, name: string, Class: ArrayClass): [string, Row][] {
  const { method } = goodCalls[call];
  const row = (message: string, code: Row[0], value: unknown): [string, Row] => [
    `${name} ${message}`,
    [code, name, { [key]: value }],
  ];
  const held = (message: string, code: Row[0], handle: (h: Handles) => unknown): [string, Row] => [
    `${name} ${message}`,
    [code, name, (h) => ({ [key]: handle(h) })],
  ];
  const rows = [
    row(`is true; ${aTensor}`, 'ARGUMENT', true),
    row(`is a symbol; ${aTensor}`, 'ARGUMENT', Symbol('x')),
    row(`is a function; ${aTensor}`, 'ARGUMENT', () => 1),
    row(`is a revoked proxy; ${aTensor}`, 'ARGUMENT', revoked()),
    row(
      `is an object with "alpha" and no data; ${aTensor}; ${callOf[method] ?? byTensor}`,
      'ARGUMENT',
      { alpha: 2 },
    ),
    row(`is a promise, which must be awaited; ${withShape}`, 'DTYPE', Promise.resolve()),
    row(
      'has dtype "int32" and a Float32Array; that holds float32',
      'DTYPE',
      square(Float32Array, { dtype: 'int32' }),
    ),
    row(`has shape undefined; ${aList}`, 'SHAPE', { data: new Class(4) }),
    row(`has shape [2, -2]; ${eachSize}`, 'SHAPE', square(Class, { shape: [2, -2] })),
    row(
      `has shape an array of length 65; ${aRank}`,
      'SHAPE',
      square(Class, { shape: Array(65).fill(1) }),
    ),
    row(
      'has strides [1] and shape [2, 2]; there must be one stride per axis',
      'SHAPE',
      square(Class, { strides: [1] }),
    ),
    row(`has offset -1; ${anOffset}`, 'SHAPE', square(Class, { offset: -1 })),
    row(
      'has 4 elements; its shape [2, 2] and offset 4 need 8',
      'SHAPE',
      square(Class, { offset: 4 }),
    ),
    row(`has order "F", ${otherLayout}`, 'SHAPE', square(Class, { order: 'F' })),
    row(
      'has a detached array as data; it was transferred, or the memory under it grew',
      'ARGUMENT',
      { data: detached(Class), shape: [2, 2] },
    ),
    held(`is a copy of a handle; ${realHandle}`, 'ARGUMENT', (h) => new Proxy(h.tensor, {})),
    held('is a disposed tensor', 'DISPOSED', (h) => h.disposed),
    held(
      'is a tensor of another instance; copy its data, or alloc it here',
      'ARGUMENT',
      (h) => h.foreign,
    ),
  ];
  const withoutType =
    method === 'syrk'
      ? `the data of ${name} is Uint16Array; it must be Float32Array or Float64Array`
      : `${name} has a Uint16Array and no dtype; dtype must be float16 or bfloat16`;
  rows.push([withoutType, ['DTYPE', name, { [key]: square(Uint16Array) }]]);
  if (!standsForB(name)) {
    const message = 'is packed weights, which can only stand for the second matrix of a product';
    rows.push(held(message, 'ARGUMENT', (h) => h.forGemm));
  } else if (method !== 'pack') {
    const change = (weights: 'disposedWeights' | 'foreignWeights') => (h: Handles) => ({
      [key.replace('.data', '')]: h[weights],
    });
    rows.push(
      [`${name} is disposed weights`, ['DISPOSED', name, change('disposedWeights')]],
      [
        `${name} is packed weights of another instance; pack them here`,
        ['ARGUMENT', name, change('foreignWeights')],
      ],
    );
  }
  return rows;
}

/** The class of the array of an argument of a good call. */
function classIn(args: Named, key: string): ArrayClass {
  const value = get(args, key);
  const data = ArrayBuffer.isView(value) ? value : (value as { data?: object } | undefined)?.data;
  return (data?.constructor ?? Float32Array) as ArrayClass;
}

const names = Object.keys(goodCalls) as CallName[];

/** JavaScript finds these errors in every operand of every operation. */
export const ofOperands: Table = Object.fromEntries(
  names.map((call) => {
    const { args, operands }: GoodCall = goodCalls[call];
    const rows = Object.entries(operands).flatMap(([key, name]) =>
      rowsOf(call, key, name, classIn(args(), key)),
    );
    return [call, Object.fromEntries(rows)];
  }),
);

const mayOverlap: Record<string, string> = { gemm: 'C', matmul: 'bias' };

/** The core finds that `out` begins where another operand does. */
export const ofOverlaps: Table = Object.fromEntries(
  names
    .filter((call) => 'out' in goodCalls[call].operands)
    .map((call) => {
      const others = Object.entries(goodCalls[call].operands).filter(([key]) => key !== 'out');
      const may = mayOverlap[call];
      const rows = others.map(([key, name]): [string, Row] => {
        const rule =
          may === undefined
            ? 'it must overlap no input'
            : name === may
              ? `it must have the memory, shape and strides of ${may}, or not overlap it`
              : `only ${may} may be written over`;
        const message = `out overlaps ${name} in memory; ${rule}`;
        return [message, ['ARGUMENT', 'out', () => inOneBuffer(call, key)]];
      });
      return [call, Object.fromEntries(rows)];
    }),
);

/** The rows of a table, one per operation and message. */
export const rowsIn = (table: Table): [name: CallName, message: string, row: Row][] =>
  Object.entries(table).flatMap(([calls, rows]) =>
    calls
      .split(' ')
      .flatMap((name) =>
        Object.entries(rows).map(([message, row]): [CallName, string, Row] => [
          name as CallName,
          message,
          row,
        ]),
      ),
  );
