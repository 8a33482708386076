/** Nodes that stand for a product and a node after it. */
import { invalid, keyOf } from '../operators/operator.js';
import type { OnnxNode } from '../read/model.js';

/** The operator of the product, the inputs of the product, and the inputs of the node after it. */
type Form = readonly [op: string, of: readonly number[], rest: readonly number[]];

/** @internal By operator of com.microsoft. */
export const forms: ReadonlyMap<string, Form> = new Map<string, Form>([
  ['Attention', ['FusedMatMul', [0, 1, 2], [3, 4, 5]]],
  ['QAttention', ['MatMulIntegerToFloat', [0, 1, 3, 4, 6, 7, 2], [5, 8]]],
]);

/** The activations of FusedGemm that are supported. */
const activations =
  /^(Elu|HardSigmoid|LeakyRelu|Relu|Sigmoid|Softplus|Softsign|Tanh|ThresholdedRelu)$/;

const prefix = 'activation_';

/** A Gemm, and the activation that ONNX Runtime has joined to it. */
function gemmAndActivation(node: OnnxNode, op: string): OnnxNode[] {
  const product = `${node.outputs[0]}/Gemm`;
  const given = [...node.attributes].filter(([name]) => name !== 'activation');
  const own = given.filter(([name]) => !name.startsWith(prefix));
  const after = given.filter(([name]) => name.startsWith(prefix));
  return [
    { ...node, domain: '', op: 'Gemm', outputs: [product], attributes: new Map(own) },
    {
      ...node,
      domain: '',
      op,
      inputs: [product],
      attributes: new Map(after.map(([name, value]) => [name.slice(prefix.length), value])),
    },
  ];
}

/** @internal The nodes that compute a node. */
export function expand(node: OnnxNode): OnnxNode[] {
  const activation = node.attributes.get('activation');
  if (keyOf(node) === 'com.microsoft.FusedGemm' && typeof activation === 'string')
    if (activations.test(activation)) return gemmAndActivation(node, activation);
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
