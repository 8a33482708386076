/**
 * The operations, one row each. The core, the readers of arguments, `explain` and the worker know
 * an operation by its row. bindings/embind.cc reads the block of arguments in the order of these
 * rows.
 */
import { dtypesOf } from '../base/arrays.js';
import type { Operation, OperationName, Places, Product } from '../call/call.js';
import {
  resultOfGemm,
  resultOfMatMul,
  resultOfNBits,
  resultOfQuantized,
  resultOfSyrk,
} from './results.js';

/**
 * Places attributes in the block one after the other. `words`: how many numbers each takes. The
 * places replace them in the same object, since an object of Object.fromEntries() is slow to read.
 */
function placesOf<N extends string>(words: Record<N, number>): Places<N> {
  let length = 0;
  for (const name in words) {
    const count = words[name];
    words[name] = length;
    length += count;
  }
  return { at: words, length };
}

type Row<N extends string> = Omit<Operation<N>, 'number' | 'inputs' | 'run' | 'explain'> &
  Partial<Pick<Operation, 'inputs'>>;

const operation = <N extends string>(number: number, row: Row<N>): Operation<N> => ({
  number,
  inputs: [],
  ...row,
  run: (module, end) => module.compute(number, end),
  explain: (module, reserved) => module.explain(number, reserved),
});

/** A product's row. @param parameters the operands before `matrices` */
const product = <N extends string>(
  number: number,
  matrices: Product['matrices'],
  row: Omit<Row<N>, 'operands' | 'outOfCore'> & Partial<Pick<Operation, 'outOfCore'>>,
  parameters: readonly string[] = [],
): Product<N> => ({
  matrices,
  ...operation(number, {
    operands: [...parameters, ...matrices, 'out'],
    outOfCore: matrices,
    ...row,
  }),
});

/** @internal Scales and zero points of products of 8-bit operands, in the order of the block. */
export const parameterNames = [
  'aScale',
  'aZeroPoint',
  'bScale',
  'bZeroPoint',
  'yScale',
  'yZeroPoint',
] as const;

const transposes = ['transA', 'transB'] as const;
const boundsAndOut = ['activation', 'out'] as const;

/** `gemm` and `matmul` have no type of 8 bits. */
const wideArrays = Object.keys(dtypesOf).filter((name) => !/int8/i.test(name));

/**
 * A product of 8-bit operands. `op` in the block tells the core which one it is: the IntegerOp of
 * wgemm.h, or QuantizedArgs::kQGemm in src/ops/ops.h.
 */
function quantized(
  name: OperationName,
  op: number,
  row: Pick<Operation, 'options' | 'optionsAt'> & Partial<Pick<Operation, 'inputs'>>,
) {
  const words = { op: 1, transA: 1, transB: 1, alpha: 1, activation: 2 };
  const common = { name, attributes: placesOf(words), resultType: resultOfQuantized };
  const matrices = ['A', 'B', name === 'qgemm' ? 'C' : 'bias'] as const;
  return { op, ...product(2, matrices, { ...common, ...row }, parameterNames) };
}

/** @internal */
export const operations = {
  gemm: product(0, ['A', 'B', 'C'], {
    name: 'gemm',
    attributes: placesOf({
      ...{ alpha: 2, beta: 2, transA: 1, transB: 1, opset: 1, broadcast: 1 },
      activation: 2,
    }),
    resultType: resultOfGemm,
    options: ['alpha', 'beta', ...transposes, 'opset', 'broadcast', ...boundsAndOut],
    optionsAt: 3,
    arrays: wideArrays,
  }),
  matmul: product(1, ['src', 'weights', 'bias'], {
    name: 'matmul',
    attributes: placesOf({ alpha: 2, transposeA: 1, transposeB: 1, outType: 1, activation: 2 }),
    resultType: resultOfMatMul,
    options: ['alpha', 'transposeA', 'transposeB', 'outType', ...boundsAndOut],
    optionsAt: 3,
    arrays: wideArrays,
  }),
  qgemm: quantized('qgemm', 4, {
    inputs: [
      ...['a', 'aScale', 'aZeroPoint', 'b', 'bScale', 'bZeroPoint', 'c'],
      ...['yScale', 'yZeroPoint'],
    ],
    options: ['alpha', ...transposes, ...boundsAndOut],
    optionsAt: 1,
  }),
  matmulInteger: quantized('matmulInteger', 0, {
    options: ['aZeroPoint', 'bZeroPoint', ...transposes, 'out'],
    optionsAt: 2,
  }),
  qlinearMatmul: quantized('qlinearMatmul', 1, {
    inputs: ['a', 'b', ...parameterNames],
    options: [...transposes, ...boundsAndOut],
    optionsAt: 1,
  }),
  dynamicQuantizeMatmul: quantized('dynamicQuantizeMatmul', 2, {
    options: ['bScale', 'bZeroPoint', 'bias', ...transposes, ...boundsAndOut],
    optionsAt: 2,
  }),
  matmulIntegerToFloat: quantized('matmulIntegerToFloat', 3, {
    options: [
      ...['aScale', 'bScale', 'aZeroPoint', 'bZeroPoint', 'bias'],
      ...transposes,
      ...boundsAndOut,
    ],
    optionsAt: 2,
  }),
  matmulNBits: product(
    3,
    ['A', 'B', 'bias'],
    {
      name: 'matmulNBits',
      attributes: placesOf({ accuracyLevel: 1, activation: 2, k: 1, n: 1, bits: 1, blockSize: 1 }),
      outOfCore: ['A', 'bias'],
      resultType: resultOfNBits,
      options: ['bias', 'accuracyLevel', ...boundsAndOut],
      optionsAt: 2,
    },
    ['scales', 'zeroPoints'],
  ),
  syrk: operation(4, {
    name: 'syrk',
    attributes: placesOf({ alpha: 2, transA: 1 }),
    operands: ['A', 'out'],
    outOfCore: [],
    resultType: resultOfSyrk,
    options: ['alpha', 'transA', 'out'],
    optionsAt: 1,
    arrays: ['Float32Array', 'Float64Array'],
  }),
} as const satisfies Record<OperationName, Operation>;

/** @internal */
export function isOperation(name: unknown): name is OperationName {
  return typeof name === 'string' && Object.hasOwn(operations, name);
}
