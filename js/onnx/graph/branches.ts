/**
 * The graphs of an If. Their names become unique in the model, and the names that they take from
 * around the If become its inputs. So the nodes of a branch can run in place of the If.
 */
import { describe } from '../../base/errors.js';
import { invalid } from '../operators/operator.js';
import type { OnnxGraph, OnnxNode, OnnxTensor, OnnxUnreadTensor } from '../read/model.js';
import { expand } from './expand.js';

/** @internal The graph of an If that runs if the condition is true, or the other one. */
export interface Branch {
  readonly nodes: readonly OnnxNode[];
  readonly initializers: ReadonlyMap<string, OnnxTensor | OnnxUnreadTensor>;
  /** The names that become the outputs of the If. */
  readonly outputs: readonly string[];
}

/** @internal The branches of nodes that are an If: for true, and for false. */
export type Branches = Map<OnnxNode, readonly Branch[]>;

type Rename = (name: string) => string;

/** The node without absent inputs and outputs at the end of their lists. */
function trimmed(names: readonly string[]): readonly string[] {
  let { length } = names;
  while (length > 0 && names[length - 1] === '') --length;
  return names.slice(0, length);
}

/** Whether a node is an If. */
const isIf = ({ op, domain }: OnnxNode): boolean => op === 'If' && domain === '';

/**
 * @internal A node without absent inputs and outputs at the end of their lists. The inputs of an If
 * are the condition, and all names that its branches take.
 *
 * @param branches receives the branches of the node and of nodes in them
 */
export function expanded(
  node: OnnxNode,
  branches: Branches,
  rename: Rename = (name) => name,
): OnnxNode {
  const outputs = trimmed(node.outputs).map(rename);
  const inputs = trimmed(node.inputs).map(rename);
  const own = { ...node, inputs, outputs };
  if (!isIf(node)) return own;
  if (inputs.length !== 1) throw invalid(own, `has ${inputs.length} inputs; it must have 1`);
  const both = ['then_branch', 'else_branch'].map((name) => {
    const graph = node.attributes.get(name);
    if (typeof graph !== 'object' || graph === null || !('nodes' in graph))
      throw invalid(own, `lacks the attribute ${name}; it must be a graph`);
    return branchOf(own, name, graph, branches, rename);
  });
  const taken = both.flatMap(({ nodes, initializers, outputs }) => {
    const made = new Set([...initializers.keys(), ...nodes.flatMap(({ outputs }) => outputs)]);
    const all = [...nodes.flatMap(({ inputs }) => inputs), ...outputs];
    return all.filter((name) => name !== '' && !made.has(name));
  });
  const whole = { ...own, inputs: [...inputs, ...new Set(taken)] };
  branches.set(whole, both);
  return whole;
}

function branchOf(
  node: OnnxNode,
  title: string,
  graph: OnnxGraph,
  branches: Branches,
  outer: Rename,
): Branch {
  const count = node.outputs.length;
  if (graph.inputs.length > 0 || graph.outputs.length < count)
    throw invalid(
      node,
      `has a ${title} of ${graph.inputs.length} inputs and ${graph.outputs.length} outputs; ` +
        `it must have no inputs and ${count} outputs`,
    );
  const made = graph.nodes.flatMap(({ outputs }) => outputs).filter(Boolean);
  const own = new Set([...graph.initializers.keys(), ...made]);
  if (own.size < graph.initializers.size + made.length)
    throw invalid(node, `has a ${title} that makes a name twice`);
  // An output of the If is unique in the graph around it.
  const start = `${node.outputs.find(Boolean) ?? describe(node.name)} ${title}: `;
  const rename: Rename = (name) => (own.has(name) ? start + name : name && outer(name));
  return {
    nodes: graph.nodes.flatMap((one) => expand(expanded(one, branches, rename))),
    initializers: new Map(
      Array.from(graph.initializers, ([name, tensor]) => [rename(name), tensor]),
    ),
    outputs: graph.outputs.slice(0, count).map(({ name }) => rename(name)),
  };
}
