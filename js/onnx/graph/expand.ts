/** Nodes that stand for a product and a node after it. */
import { invalid } from '../operators/operator.js';
import type { OnnxNode } from '../read/model.js';

/** The operator of the product, the inputs of the product, and the inputs of the node after it. */
type Form = readonly [op: string, of: readonly number[], rest: readonly number[]];

/** By operator of com.microsoft. */
const forms = new Map<string, Form>([
  ['Attention', ['FusedMatMul', [0, 1, 2], [3, 4, 5]]],
  ['QAttention', ['MatMulIntegerToFloat', [0, 1, 3, 4, 6, 7, 2], [5, 8]]],
]);

/** @internal The nodes that compute a node. */
export function expand(node: OnnxNode): OnnxNode[] {
  const form = node.domain === 'com.microsoft' ? forms.get(node.op) : undefined;
  if (!form) return [node];
  const [op, of, rest] = form;
  const { inputs } = node;
  const most = of.length + rest.length;
  if (!inputs[0] || !inputs[1] || inputs.length > most)
    throw invalid(
      node,
      `has ${inputs.length} inputs; it must have an input, weights, and at most ${most} inputs`,
    );
  const product = `${node.outputs[0]}/${op}`;
  const pick = (list: readonly number[]) => list.map((i) => inputs[i] ?? '');
  return [
    { ...node, op, inputs: pick(of), outputs: [product], attributes: new Map() },
    { ...node, op: 'Attention', inputs: [product, ...pick(rest)] },
  ];
}
