/** Checks a graph once, before anything of it runs: its operators, its names and their order. */
import { ArgumentError, describe, dtypesOf, DTypeError, UnsupportedError } from './internals.js';
import type { OnnxModel, OnnxNode, OnnxTensor, OnnxValueInfo } from './model.js';
import { Attributes, invalid, keyOf, type Run, titleOf } from './operator.js';
import { allOperators as operators } from './operators/all.js';
import { type ProductCall, products } from './products.js';
import { type OnnxDType, storedAs } from './value.js';

const op = 'loadModel';

/** The most problems that one error lists. */
const mostListed = 20;

/** @internal A node that is supported: either an operator, or a product. */
export interface CheckedNode {
  readonly node: OnnxNode;
  readonly run: Run | undefined;
  readonly product: ProductCall | undefined;
}

/** @internal A graph that is checked. */
export interface CheckedGraph {
  /** The nodes that outputs need, each after those that make its inputs. */
  readonly nodes: readonly CheckedNode[];
  readonly constants: ReadonlyMap<string, OnnxTensor>;
  /** The inputs of a run. */
  readonly inputs: readonly OnnxValueInfo[];
  /** Values of the inputs that a run may omit. */
  readonly defaults: ReadonlyMap<string, OnnxTensor>;
  readonly outputs: readonly OnnxValueInfo[];
}

/** @internal */
export function checkGraph({ graph, opsets, irVersion }: OnnxModel): CheckedGraph {
  const checked = checkOperators(graph.nodes, opsets);
  const isInput = new Set(graph.inputs.map(({ name }) => name));
  const constants = new Map<string, OnnxTensor>();
  const defaults = new Map<string, OnnxTensor>();
  const unread = new Map<string, string>();
  for (const [name, tensor] of graph.initializers) {
    if (tensor.data === undefined) unread.set(name, tensor.dtype);
    // Before version 4 each initializer was an input, too.
    else if (irVersion >= 4 && isInput.has(name)) defaults.set(name, tensor);
    else constants.set(name, tensor);
  }
  const inputs = graph.inputs.filter(({ name }) => !constants.has(name));
  for (const { name, dtype } of inputs) {
    if (
      Object.values(dtypesOf)
        .flat()
        .includes(storedAs(dtype as OnnxDType))
    )
      continue;
    throw lacking(name, `input ${describe(name)} is`, dtype);
  }
  const makers = findMakers(checked, inputs, graph.initializers);
  const ordered = inOrder(checked, makers);
  const needed = findNeeded(graph.outputs, makers);
  const nodes = ordered.filter((one) => needed.has(one));
  const check = (name: string, argument: string, title: string) => {
    const dtype = unread.get(name);
    if (dtype !== undefined)
      throw lacking(argument, `${title} the constant ${describe(name)}`, dtype);
  };
  for (const { node } of nodes)
    for (const name of node.inputs) check(name, node.name, `${titleOf(node)} takes`);
  for (const { name } of graph.outputs) check(name, name, 'the model returns');
  return { nodes, constants, inputs, defaults, outputs: graph.outputs };
}

const lacking = (argument: string, what: string, dtype: string) =>
  new DTypeError(op, argument, `${op}: ${what} of type ${dtype}, which wgemm does not have`);

/** Compiles all nodes. Throws one error that lists those that are not supported. */
function checkOperators(
  nodes: readonly OnnxNode[],
  opsets: ReadonlyMap<string, number>,
): CheckedNode[] {
  const wrong: string[] = [];
  const checked: CheckedNode[] = [];
  for (const node of nodes) {
    const reason = versionProblem(node, opsets);
    if (reason !== undefined) {
      wrong.push(`${titleOf(node)} ${reason}`);
      continue;
    }
    try {
      checked.push(compile(trimmed(node), opsets.get(node.domain) as number));
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      wrong.push(error.message.replace(/^loadModel: /, ''));
    }
  }
  if (wrong.length === 0) return checked;
  const more = wrong.length > mostListed ? `; and ${wrong.length - mostListed} more` : '';
  const count = wrong.length === 1 ? '1 node is' : `${wrong.length} nodes are`;
  const list = wrong.slice(0, mostListed).join('; ');
  throw new UnsupportedError(op, '', `${op}: ${count} not supported: ${list}${more}`);
}

/** The node without absent inputs and outputs at the end of their lists. */
function trimmed(node: OnnxNode): OnnxNode {
  const trim = (names: readonly string[]) => {
    let { length } = names;
    while (length > 0 && names[length - 1] === '') --length;
    return length === names.length ? names : names.slice(0, length);
  };
  return { ...node, inputs: trim(node.inputs), outputs: trim(node.outputs) };
}

function versionProblem(node: OnnxNode, opsets: ReadonlyMap<string, number>): string | undefined {
  const key = keyOf(node);
  const known = products.get(key) ?? operators.get(key);
  if (known === undefined) return 'is of an operator that is not known';
  const opset = opsets.get(node.domain);
  if (opset === undefined) return 'is of a domain for which the model states no opset';
  const [from, to] = known.opsets;
  if (from <= opset && opset <= to) return undefined;
  return `is of opset ${opset}; it must be ${from === to ? from : `${from} to ${to}`}`;
}

function compile(node: OnnxNode, opset: number): CheckedNode {
  const key = keyOf(node);
  const product = products.get(key);
  const operator = operators.get(key);
  const check = (list: 'inputs' | 'outputs', most = Infinity) => {
    const { length } = node[list];
    if (length > most) throw invalid(node, `has ${length} ${list}; it must have at most ${most}`);
  };
  check('inputs', product?.most);
  check('outputs', operator?.outputs ?? 1);
  const attributes = new Attributes(node, opset);
  const compiled = {
    node,
    run: operator?.compile(attributes, opset, node),
    product: product?.compile(attributes, opset, node),
  };
  attributes.end();
  return compiled;
}

/** The node that makes each name. `undefined` stands for inputs and constants. */
type Makers = ReadonlyMap<string, CheckedNode | undefined>;

function findMakers(
  nodes: readonly CheckedNode[],
  inputs: readonly OnnxValueInfo[],
  initializers: ReadonlyMap<string, unknown>,
): Makers {
  const makers = new Map<string, CheckedNode | undefined>();
  for (const { name } of inputs) {
    if (makers.has(name) || name === '') {
      const found = `two inputs of the model, or one without a name, are called ${describe(name)}`;
      throw new ArgumentError(op, name, `${op}: ${found}`);
    }
    makers.set(name, undefined);
  }
  for (const name of initializers.keys()) makers.set(name, undefined);
  for (const checked of nodes) {
    for (const name of checked.node.outputs) {
      if (name === '') continue;
      if (makers.has(name)) {
        const other = makers.get(name);
        const by = other ? titleOf(other.node) : 'an input or a constant';
        const what = `makes ${describe(name)}, as ${by} does; each name must be made once`;
        throw invalid(checked.node, what);
      }
      makers.set(name, checked);
    }
  }
  return makers;
}

/** The nodes that the outputs need. */
function findNeeded(outputs: readonly OnnxValueInfo[], makers: Makers): Set<CheckedNode> {
  const names = new Set<string>();
  for (const { name } of outputs) {
    const found = names.has(name) ? 'is there twice' : makers.has(name) ? '' : 'is made by nothing';
    if (found) throw new ArgumentError(op, name, `${op}: output ${describe(name)} ${found}`);
    names.add(name);
  }
  if (names.size === 0) throw new ArgumentError(op, '', `${op}: the model has no outputs`);
  const needed = new Set<CheckedNode>();
  for (const name of names) {
    const maker = makers.get(name);
    if (maker === undefined || needed.has(maker)) continue;
    needed.add(maker);
    for (const input of maker.node.inputs) names.add(input); // the loop reaches them, too
  }
  return needed;
}

/** Nodes in an order in which each follows those that make its inputs: their own, if it is one. */
function inOrder(nodes: readonly CheckedNode[], makers: Makers): readonly CheckedNode[] {
  const ordered = new Set<CheckedNode>();
  /** Nodes that come after one that is not placed yet, and which of their inputs that makes. */
  const waiting = new Map<CheckedNode, { checked: CheckedNode; next: number }[]>();
  for (const first of nodes) {
    const open = [{ checked: first, next: 0 }];
    for (let one = open.pop(); one; one = open.pop()) {
      const { node } = one.checked;
      let maker: CheckedNode | undefined;
      for (; one.next < node.inputs.length; ++one.next) {
        const name = node.inputs[one.next] as string;
        maker = makers.get(name);
        if (maker ? !ordered.has(maker) : name !== '' && !makers.has(name)) break;
      }
      if (one.next === node.inputs.length) {
        ordered.add(one.checked);
        for (const other of (waiting.get(one.checked) ?? []).reverse()) open.push(other);
        continue;
      }
      const missing = describe(node.inputs[one.next]);
      if (!maker) throw invalid(node, `takes ${missing}, which nothing makes`);
      const list = waiting.get(maker);
      if (list) list.push(one);
      else waiting.set(maker, [one]);
    }
  }
  const left = nodes.find((checked) => !ordered.has(checked));
  if (left) throw invalid(left.node, 'is part of a cycle, or follows one');
  return [...ordered];
}
