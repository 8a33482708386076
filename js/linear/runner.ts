/** How a layer computes. */
import { type Operand, operandOf, packedWeights } from '../call/operand.js';
import { makeCall, runCall, runInHeap } from '../call/run.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, type PackedWeights } from '../instance/heap.js';
import { attributesOfMatMul } from '../ops/matmul.js';
import { operations } from '../ops/operations.js';
import type { Form } from './arguments.js';

/** @internal */
export interface Runner {
  /** From operands that were read and checked. */
  run(x: Operand, result: Operand | null, out: unknown): unknown;
  /** From tensors that were checked. Makes no objects, as `runInHeap` of call.ts. */
  runHeld(x: HeapTensor, out: HeapTensor): HeapTensor;
  dispose(): void;
}

/** @internal The runner of a layer with weights of floating point. */
export function floatRunner(
  core: Core,
  [, n, , , , min, max]: Form,
  weights: PackedWeights,
  bias: HeapTensor | null,
): Runner {
  const operation = operations.matmul;
  const float32 = core.dtypes.indexOf('float32');
  const attributes = attributesOfMatMul(false, false, float32, [min, max]);
  const b = operandOf('weights', packedWeights, [], weights);
  const c = bias && operandOf('bias', float32, [n], bias);
  return {
    run(x, result, out) {
      const operands = [{ ...x, name: 'src' }, b, c, result];
      return runCall(makeCall(core, { operation, attributes, operands, out }));
    },
    runHeld(x, out) {
      core.block.set(attributes);
      return runInHeap(core, operation, attributes.length, x, weights, bias, out);
    },
    dispose: () => undefined,
  };
}
