/**
 * The fusions of static quantization: a product between DequantizeLinear and QuantizeLinear becomes
 * a product of integers. Its results have the same bits as in ONNX Runtime Web, which fuses the
 * same nodes.
 */
import type { OnnxNode } from '../read/model.js';
import type { Value } from '../read/value.js';
import { isFloat } from './fusions.js';
import type { Found, Fusion, Pattern } from './match.js';

const dequantized = (x: string): Pattern => {
  const name = x.toUpperCase();
  return ['DequantizeLinear', x, `${name}_SCALE`, `${name}_ZERO`];
};
const factors = [dequantized('a'), dequantized('B')];
const matmul = ['MatMul', ...factors];
/** Gemm with a bias of int32, or without one. */
const gemm = ['Gemm', ...factors, { either: [dequantized('C'), 'C'] }];

const operands = ['a', 'A_SCALE', 'A_ZERO', 'B', 'B_SCALE', 'B_ZERO'];
const qgemm = ['com.microsoft.QGemm', ...operands, 'C'] as const;
const toFloat = [
  'com.microsoft.MatMulIntegerToFloat',
  ...['a', 'B', 'A_SCALE', 'B_SCALE', 'A_ZERO', 'B_ZERO'],
] as const;

const numberOf = (node: OnnxNode | undefined, name: string, absent = 1): number =>
  Number(node?.attributes.get(name) ?? absent);
const nodeOf = ({ nodes }: Found, op: string) => nodes.find((node) => node.op === op);

/**
 * The scales of an operand: one, or one per element along an axis that is counted from the end.
 * Empty if a product does not take the scales, or if there are not as many zero points.
 */
function scalesOf({ nodes, constant, name }: Found, operand: string, axis = -1): number[] {
  const [scale, zero = scale] = [constant(`${operand}_SCALE`), constant(`${operand}_ZERO`)];
  const shape = constant(operand)?.shape ?? [];
  const node = nodes.find(({ inputs }) => inputs[0] === name(operand));
  const length = scale?.data.length;
  const isAlong = [axis, axis + shape.length].includes(numberOf(node, 'axis'));
  return isFloat(scale, 1) &&
    zero?.data.length === length &&
    (length === 1 || (length === shape.at(axis) && isAlong))
    ? [...(scale?.data as Float32Array)]
    : [];
}

/** Whether A, B and a bias are operands of a product of integers whose sums cannot wrap. */
function fits(found: Found): boolean {
  const { nodes, constant } = found;
  const { dtype, shape } = constant('B') as Value;
  const gemm = nodeOf(found, 'Gemm');
  const isTurned = numberOf(gemm, 'transB', 0);
  const [aScale = 0] = scalesOf(found, 'A');
  const factor = Math.fround(numberOf(gemm, 'alpha') * aScale);
  const scales = scalesOf(found, 'B', isTurned ? -2 : -1).map((scale) => factor * scale);
  const [c, zero] = [constant('C'), constant('C_ZERO')];
  const cScales = c ? scalesOf(found, 'C') : scales;
  const most = 2 ** 31 - 255 ** 2 * (shape.at(isTurned ? -1 : -2) as number);
  return (
    dtype.endsWith('int8') &&
    ['block_size', 'output_dtype'].every(
      (name) => !nodes.some((node) => node.attributes.has(name)),
    ) &&
    scales.length > 0 &&
    cScales.length <= scales.length &&
    // Smaller scales would lose bits. Tools round the scales of a bias in another order.
    scales.every(
      (scale, i) =>
        scale > 2 ** -120 &&
        Math.abs((cScales[i] ?? (cScales[0] as number)) / scale - 1) <= 2 ** -22,
    ) &&
    [c, zero].every((each) => !each || each.dtype === 'int32') &&
    !(zero?.data as Int32Array | undefined)?.some(Boolean) &&
    (!c || numberOf(gemm, 'beta') === 1) &&
    [0, ...((c?.data ?? []) as Int32Array)].every((each) => Math.abs(each) < most)
  );
}

/** Whether Y has one scale, and saturates wherever Relu would cut it off. */
function isSaturated(found: Found): boolean {
  const zero = found.constant('Y_ZERO');
  const [scale = 0] = scalesOf(found, 'Y');
  const isLeast = zero?.data[0] === (zero?.dtype === 'int8' ? -128 : 0);
  return scale > 0 && zero?.dtype.endsWith('int8') === true && (isLeast || !nodeOf(found, 'Relu'));
}

/** QGemm has no beta, which is 1 if there is a bias. */
const attributes = (found: Found) =>
  Object.fromEntries(
    [...(nodeOf(found, 'Gemm')?.attributes ?? [])].filter(([name]) => name !== 'beta'),
  );

const whole = (pattern: Pattern, becomes: Fusion['becomes']): Fusion => ({
  pattern: ['QuantizeLinear', { either: [pattern, ['Relu', pattern]] }, 'Y_SCALE', 'Y_ZERO'],
  becomes: [...becomes, 'Y_SCALE', 'Y_ZERO'],
  isExact: false,
  fits: (found) => fits(found) && isSaturated(found),
  attributes,
});

/** @internal These fusions need the DequantizeLinear nodes of constants. */
export const quantizedProducts: readonly Fusion[] = [
  whole(gemm, qgemm),
  whole(matmul, ['QLinearMatMul', ...operands]),
  { pattern: gemm, becomes: qgemm, isExact: false, fits, attributes },
  { pattern: matmul, becomes: toFloat, isExact: false, fits, attributes },
];
