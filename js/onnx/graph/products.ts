/** The operators that multiply matrices: which call of the instance computes each, and how. */
import type { DataArray } from '../../base/tensor.js';
import type { OperationName } from '../../call/call.js';
import type { Activation } from '../../call/options.js';
import { type Attributes, unsupported } from '../operators/operator.js';
import type { OnnxNode } from '../read/model.js';
import type { OnnxDType } from '../read/value.js';

/** @internal A tensor as calls take it. */
export interface ProductOperand {
  readonly dtype: OnnxDType;
  readonly shape: readonly number[];
  readonly data: DataArray;
  readonly strides?: readonly number[] | undefined;
}

/** @internal The properties of packed weights that calls need. */
export interface ProductWeights {
  readonly dtype: OnnxDType;
  /** (..., K, N) */
  readonly shape: readonly number[];
  dispose(): void;
}

/** @internal Options by which a call also computes the nodes that follow its node. */
export interface Extra {
  alpha?: number;
  bias?: ProductOperand;
  activation?: Activation;
  out?: ProductOperand;
}

type ProductInputs = readonly (ProductOperand | undefined)[];

/** An operand whose elements are not needed. */
export type Shaped = Pick<ProductOperand, 'dtype' | 'shape'>;

/** @internal How a node is computed. */
export interface ProductCall {
  /** The call of the instance. */
  readonly name: OperationName;
  /** The indices of A and B among the inputs. B comes from `weights` if it is packed. */
  readonly a: number;
  readonly b: number;
  /** The inputs that are packed, if all of them are constants. */
  readonly packed: readonly number[];
  /** The options of `Extra` that the call has. `'columns'`: a bias of N elements only. */
  readonly fuses: {
    readonly alpha: boolean;
    readonly bias: 'any' | 'columns' | 'none';
    readonly activation: boolean;
  };
  /** The arguments of `pack`; undefined if it refuses such a B. */
  pack(inputs: ProductInputs): [b: unknown, options: object] | undefined;
  /** The type and the shape of the result, if the call accepts the operands. */
  result(inputs: readonly (Shaped | undefined)[], weights: ProductWeights | undefined): Shaped;
  /** The arguments of the call. */
  arguments(inputs: ProductInputs, weights: ProductWeights | undefined, extra: Extra): unknown[];
}

/** @internal */
export interface Product {
  readonly opsets: readonly [from: number, to: number];
  /** The most inputs. The call refuses a node that has too few. */
  readonly most: number;
  compile(attributes: Attributes, opset: number, node: OnnxNode): ProductCall;
}

/** The newest opset of ONNX that is known. */
const newest = 26;
const noFusion = { alpha: false, bias: 'none', activation: false } as const;

/** The shape of MatMul: of matrices in the last two axes, of vectors, and of stacks of matrices. */
function shapeOfMatMul(a: readonly number[], b: readonly number[]): number[] {
  const [stackA, stackB] = [a.slice(0, -2), b.slice(0, -2)];
  const rank = Math.max(stackA.length, stackB.length);
  const sizeAt = (stack: readonly number[], axis: number) => stack[axis - rank + stack.length] ?? 1;
  const stack = Array.from({ length: rank }, (_, axis) => {
    const size = sizeAt(stackA, axis);
    return size === 1 ? sizeAt(stackB, axis) : size;
  });
  return [...stack, ...(a.length > 1 ? a.slice(-2, -1) : []), ...(b.length > 1 ? b.slice(-1) : [])];
}

const shapeOf = (operand: Shaped | undefined): readonly number[] => operand?.shape ?? [];

/** The properties that all products of stacks share. */
function stacked(
  name: OperationName,
  b: number,
  dtypeOf: (inputs: readonly (Shaped | undefined)[]) => OnnxDType,
): Pick<ProductCall, 'name' | 'a' | 'b' | 'packed' | 'pack' | 'result'> {
  return {
    name,
    a: 0,
    b,
    packed: [b],
    pack: (inputs) => {
      const op = name === 'matmul' ? 'gemm' : 'qgemm';
      return shapeOf(inputs[b]).length < 2 ? undefined : [inputs[b], { op, trans: false }];
    },
    result: (inputs, weights) => ({
      dtype: dtypeOf(inputs),
      shape: shapeOfMatMul(shapeOf(inputs[0]), weights?.shape ?? shapeOf(inputs[b])),
    }),
  };
}

const typeOf = (operand: Shaped | undefined, absent: OnnxDType = 'float32'): OnnxDType =>
  operand?.dtype ?? absent;

/** By `keyOf`. */
export const products = new Map<string, Product>([
  ['Gemm', { opsets: [1, newest], most: 3, compile: compileGemm }],
  ['MatMul', { opsets: [1, newest], most: 2, compile: compileMatMul }],
  ['MatMulInteger', { opsets: [10, newest], most: 4, compile: compileMatMulInteger }],
  ['QLinearMatMul', { opsets: [10, newest], most: 8, compile: compileQLinearMatMul }],
  ['com.microsoft.QGemm', { opsets: [1, 1], most: 9, compile: compileQGemm }],
  ['com.microsoft.DynamicQuantizeMatMul', { opsets: [1, 1], most: 5, compile: compileDynamic }],
  ['com.microsoft.MatMulIntegerToFloat', { opsets: [1, 1], most: 7, compile: compileToFloat }],
  ['com.microsoft.MatMulNBits', { opsets: [1, 1], most: 6, compile: compileNBits }],
  ['com.microsoft.FusedMatMul', { opsets: [1, 1], most: 3, compile: compileFused }],
]);

/** M or N: the size of the axis that does not vanish. */
const sizeIn = (operand: Shaped | undefined, axis: number): number => operand?.shape[axis] ?? 0;

function compileGemm(attributes: Attributes, opset: number, node: OnnxNode): ProductCall {
  const alpha = attributes.float('alpha', undefined);
  const beta = attributes.float('beta', undefined);
  const transA = attributes.flag('transA', false);
  const transB = attributes.flag('transB', false);
  const broadcast = opset < 7 ? attributes.flag('broadcast', false) : undefined;
  const hasC = Boolean(node.inputs[2]);
  return {
    name: 'gemm',
    a: 0,
    b: 1,
    packed: [1],
    fuses: { alpha: false, bias: hasC || opset < 11 ? 'none' : 'any', activation: true },
    pack: ({ 1: b }) => (b?.shape.length === 2 ? [b, { op: 'gemm', trans: transB }] : undefined),
    result: ({ 0: a, 1: b }, weights) => ({
      dtype: typeOf(a),
      shape: [
        sizeIn(a, transA ? 1 : 0),
        weights ? (weights.shape[1] as number) : sizeIn(b, transB ? 0 : 1),
      ],
    }),
    arguments: ([a, b, c], weights, { bias, activation, out }) => [
      a,
      weights ?? b,
      c ?? bias,
      {
        ...(alpha !== undefined && { alpha }),
        ...(beta !== undefined && c && { beta }),
        transA,
        transB: transB && !weights,
        opset,
        ...(broadcast !== undefined && { broadcast }),
        activation,
        out,
      },
    ],
  };
}

function compileMatMul(): ProductCall {
  return {
    ...stacked('matmul', 1, ([a]) => typeOf(a)),
    fuses: { alpha: true, bias: 'any', activation: true },
    arguments: ([a, b], weights, { bias, ...options }) => [a, weights ?? b, bias, options],
  };
}

/** A node that `expand` makes may also have a bias. */
function compileFused(attributes: Attributes, _: number, node: OnnxNode): ProductCall {
  const alpha = attributes.float('alpha', 1);
  const transposeA = attributes.flag('transA', false);
  const transposeB = attributes.flag('transB', false);
  if (attributes.flag('transBatchA', false) || attributes.flag('transBatchB', false))
    throw unsupported(node, 'has transBatchA or transBatchB, which is not supported');
  const turned = (shape: readonly number[], isTurned: boolean) =>
    isTurned && shape.length > 1 ? [...shape.slice(0, -2), ...shape.slice(-2).reverse()] : shape;
  return {
    ...stacked('matmul', 1, ([a]) => typeOf(a)),
    fuses: { alpha: false, bias: node.inputs[2] ? 'none' : 'any', activation: true },
    pack: ({ 1: b }) =>
      shapeOf(b).length < 2 ? undefined : [b, { op: 'gemm', trans: transposeB }],
    result: (inputs, weights) => ({
      dtype: typeOf(inputs[0]),
      shape: shapeOfMatMul(
        turned(shapeOf(inputs[0]), transposeA),
        weights?.shape ?? turned(shapeOf(inputs[1]), transposeB),
      ),
    }),
    arguments: ([a, b, c], weights, { bias, ...options }) => [
      a,
      weights ?? b,
      c ?? bias,
      { alpha, transposeA, transposeB: transposeB && !weights, ...options },
    ],
  };
}

function compileMatMulInteger(): ProductCall {
  return {
    ...stacked('matmulInteger', 1, () => 'int32'),
    fuses: noFusion,
    arguments: ([a, b, aZeroPoint, bZeroPoint], weights, { out }) => [
      a,
      weights ?? b,
      { aZeroPoint, bZeroPoint, out },
    ],
  };
}

function compileQLinearMatMul(): ProductCall {
  return {
    ...stacked('qlinearMatmul', 3, (inputs) => typeOf(inputs[7], typeOf(inputs[0]))),
    fuses: noFusion,
    arguments: (
      [a, aScale, aZeroPoint, b, bScale, bZeroPoint, yScale, yZeroPoint],
      weights,
      { out },
    ) => [
      { a, aScale, aZeroPoint, b: weights ?? b, bScale, bZeroPoint, yScale, yZeroPoint },
      { out },
    ],
  };
}

function compileQGemm(attributes: Attributes): ProductCall {
  const alpha = attributes.float('alpha', 1);
  const transA = attributes.flag('transA', false);
  const transB = attributes.flag('transB', false);
  return {
    name: 'qgemm',
    a: 0,
    b: 3,
    packed: [3],
    fuses: { alpha: false, bias: 'none', activation: true },
    pack: ({ 3: b }) => (b?.shape.length === 2 ? [b, { op: 'qgemm', trans: transB }] : undefined),
    result: (inputs, weights) => ({
      dtype: inputs[7] ? typeOf(inputs[8], typeOf(inputs[0])) : 'float32',
      shape: [
        sizeIn(inputs[0], transA ? 1 : 0),
        weights ? (weights.shape[1] as number) : sizeIn(inputs[3], transB ? 0 : 1),
      ],
    }),
    arguments: (
      [a, aScale, aZeroPoint, b, bScale, bZeroPoint, c, yScale, yZeroPoint],
      weights,
      { activation, out },
    ) => [
      { a, aScale, aZeroPoint, b: weights ?? b, bScale, bZeroPoint, c, yScale, yZeroPoint },
      { alpha, transA, transB: transB && !weights, activation, out },
    ],
  };
}

function compileDynamic(_: Attributes, opset: number, node: OnnxNode): ProductCall {
  return {
    ...stacked('dynamicQuantizeMatmul', 1, () => 'float32'),
    fuses: { alpha: false, bias: node.inputs[4] ? 'none' : 'columns', activation: true },
    arguments: ([a, b, bScale, bZeroPoint, bias], weights, extra) => [
      a,
      weights ?? b,
      { bScale, bZeroPoint, ...extra, bias: bias ?? extra.bias },
    ],
  };
}

function compileToFloat(_: Attributes, opset: number, node: OnnxNode): ProductCall {
  return {
    ...stacked('matmulIntegerToFloat', 1, (inputs) => typeOf(inputs[2])),
    fuses: { alpha: false, bias: node.inputs[6] ? 'none' : 'columns', activation: true },
    arguments: ([a, b, aScale, bScale, aZeroPoint, bZeroPoint, bias], weights, extra) => [
      a,
      weights ?? b,
      { aScale, bScale, aZeroPoint, bZeroPoint, ...extra, bias: bias ?? extra.bias },
    ],
  };
}

function compileNBits(attributes: Attributes, _: number, node: OnnxNode): ProductCall {
  const k = attributes.int('K');
  const n = attributes.int('N');
  const bits = attributes.int('bits', 4);
  const blockSize = attributes.int('block_size');
  const accuracyLevel = attributes.int('accuracy_level', 0);
  const weightsOf = ([, data, scales, zeroPoints, gIdx]: ProductInputs) => ({
    data,
    scales,
    zeroPoints,
    k,
    n,
    bits,
    blockSize,
    ...(gIdx && { gIdx }), // which the call refuses
  });
  return {
    name: 'matmulNBits',
    a: 0,
    b: 1,
    packed: [1, 2, 3, 4],
    fuses: { alpha: false, bias: node.inputs[5] ? 'none' : 'columns', activation: true },
    pack: (inputs) => [weightsOf(inputs), { op: 'matmulNBits' }],
    result: ({ 0: a }) => ({
      dtype: typeOf(a),
      shape: [...shapeOf(a).slice(0, -1), Math.max(n, 0)],
    }),
    arguments: (inputs, weights, extra) => [
      inputs[0],
      weights ?? weightsOf(inputs),
      { accuracyLevel, ...extra, bias: inputs[5] ?? extra.bias },
    ],
  };
}
