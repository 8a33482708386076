/** Folds BatchNormalization into the constant weights and the bias of the Gemm before it. */
import { broadcasted, scalar } from '../operators/define.js';
import { channelsOf } from '../operators/statistics.js';
import { inArray } from '../operators/storage.js';
import type { Value } from '../read/value.js';
import type { CheckedNode } from './checked.js';
import { compile } from './graph.js';
import { findTakers } from './match.js';

/** @internal Returns the nodes that are left. Their new weights and biases become constants. */
export function foldChannels(
  nodes: readonly CheckedNode[],
  isOutput: ReadonlySet<string>,
  constants: Map<string, Value>,
): readonly CheckedNode[] {
  const takers = findTakers(nodes);
  const makers = new Map(nodes.map((checked) => [checked.node.outputs[0], checked]));
  const replaced = new Map<CheckedNode, CheckedNode | undefined>();
  for (const last of nodes) {
    const [x = '', ...names] = last.node.inputs;
    const gemm = makers.get(x);
    if (
      last.node.op !== 'BatchNormalization' ||
      gemm?.product?.name !== 'gemm' ||
      isOutput.has(x) ||
      takers.get(x)?.length !== 1
    )
      continue;
    const { inputs, attributes } = gemm.node;
    const [a = '', b = '', c = ''] = inputs;
    const [weights, bias, ...parts] = [b, c, ...names].map((name) => constants.get(name));
    const columns = parts[0]?.data.length as number;
    const has = (value: Value | undefined, size: number) =>
      value?.dtype === 'float32' && value.data.length === size;
    const transB = attributes.get('transB');
    const shape = weights?.shape ?? [];
    if (
      weights?.dtype !== 'float32' ||
      shape.length !== 2 ||
      shape[transB ? 0 : 1] !== columns ||
      (c && !has(bias, 1) && !has(bias, columns)) ||
      (attributes.get('beta') ?? 1) !== 1 ||
      !parts.every((part) => has(part, columns))
    )
      continue;
    const [factor, shift] = channelsOf(parts as Value[], last.node, 'float32', [columns]);
    /** No name of a model has half of a surrogate pair. */
    const add = (what: string, inputs: readonly Value[]) => {
      const name = `\ud800${what}${x}`;
      constants.set(name, broadcasted(inArray, 'Affine', inputs, 'float32', [0, 1]));
      return name;
    };
    const zero = scalar('float32', 0);
    const own = bias ? { ...bias, shape: [bias.data.length] } : zero;
    const along = transB ? { ...factor, shape: [columns, 1] } : factor;
    const node = {
      ...gemm.node,
      inputs: [a, add('B', [weights, along, zero]), add('C', [own, factor, shift])],
      outputs: last.node.outputs,
    };
    replaced.set(gemm, undefined);
    replaced.set(last, compile(node, 13));
  }
  return nodes.flatMap((each) => (replaced.has(each) ? (replaced.get(each) ?? []) : each));
}
