/** Checks a graph once, before anything of it runs: its operators, its names and their order. */
import { dtypesOf } from '../../base/arrays.js';
import { ArgumentError, describe, DTypeError, UnsupportedError } from '../../base/errors.js';
import { allOperators as operators } from '../operators/all.js';
import { Attributes, invalid, keyOf, nameOf, titleOf } from '../operators/operator.js';
import type { OnnxModel, OnnxNode, OnnxTensor, OnnxValueInfo } from '../read/model.js';
import { type OnnxDType, storedAs } from '../read/value.js';
import { type Branch, type Branches, expanded } from './branches.js';
import type { CheckedBranch, CheckedNode } from './checked.js';
import { expand } from './expand.js';
import { products } from './products.js';
import { nodesOf, tables } from './tables.js';

const op = 'loadModel';

/** The most nodes, or names, that one error lists. */
const mostListed = 20;

/** The most operators that one error lists. No model has as many. */
const mostOperators = 500;

/** @internal A graph that is checked. */
export interface CheckedGraph {
  /** The nodes that outputs need, each after those that make its inputs. */
  readonly nodes: readonly CheckedNode[];
  readonly constants: ReadonlyMap<string, OnnxTensor>;
  /** The inputs of a run. If the caller chose outputs, only inputs that these need. */
  readonly inputs: readonly OnnxValueInfo[];
  /** Values of the inputs that a run may omit. */
  readonly defaults: ReadonlyMap<string, OnnxTensor>;
  readonly outputs: readonly OnnxValueInfo[];
}

/** @internal @param chosen the names of the outputs. Default: those that the model declares */
export function checkGraph(
  { graph, opsets, irVersion }: OnnxModel,
  chosen?: readonly string[],
): CheckedGraph {
  const isInput = new Set(graph.inputs.map(({ name }) => name));
  const constants = new Map<string, OnnxTensor>();
  const defaults = new Map<string, OnnxTensor>();
  const unread = new Map<string, string>();
  const branches: Branches = new Map();
  const all = graph.nodes.flatMap((node) => expand(expanded(node, branches)));
  const nested = Array.from(branches.values(), (both) => both.map((one) => [...one.initializers]));
  for (const [name, tensor] of [...graph.initializers, ...nested.flat(2)]) {
    if (tensor.data === undefined) unread.set(name, tensor.dtype);
    // Before version 4 each initializer was an input, too.
    else if (irVersion >= 4 && isInput.has(name)) defaults.set(name, tensor);
    else constants.set(name, tensor);
  }
  const given = graph.inputs.filter(({ name }) => !constants.has(name));
  const makers = findMakers(all, given, graph.initializers);
  const outputs = chosen ? chosenOutputs(graph, chosen, makers) : graph.outputs;
  const needed = findNeeded(outputs, makers);
  const nodes = checkOperators(
    neededIn(all, needed, makers),
    opsets,
    outputs,
    branches,
    makers,
    constants,
  );
  const inputs = given.filter(({ name }) => !chosen || needed.has(name));
  for (const { name, dtype } of inputs) {
    if (
      Object.values(dtypesOf)
        .flat()
        .includes(storedAs(dtype as OnnxDType))
    )
      continue;
    throw lacking(name, `input ${describe(name)} is`, dtype);
  }
  const check = (name: string, argument: string, title: string) => {
    const dtype = unread.get(name);
    if (dtype !== undefined)
      throw lacking(argument, `${title} the constant ${describe(name)}`, dtype);
  };
  for (const { node } of withBranches(nodes))
    for (const name of node.inputs) check(name, node.name, `${titleOf(node)} takes`);
  for (const { name } of outputs) check(name, name, 'the model returns');
  // The map of a ZipMap is a tensor here.
  const isMap = ({ name }: OnnxValueInfo) => makers.get(name)?.op === 'ZipMap';
  const results = outputs.map((info) =>
    isMap(info) ? Object.freeze({ ...info, dtype: 'float32' as const, shape: undefined }) : info,
  );
  return { nodes, constants, inputs, defaults, outputs: results };
}

/** The nodes that make needed names, each after the nodes that make its inputs. */
function neededIn(
  nodes: readonly OnnxNode[],
  needed: ReadonlySet<string>,
  makers: Makers,
): readonly OnnxNode[] {
  const isNeeded = ({ outputs }: OnnxNode) => outputs.some((name) => name && needed.has(name));
  return inOrder(nodes.filter(isNeeded), makers);
}

/** @internal Nodes, and the nodes in their branches. */
export const withBranches = (nodes: readonly CheckedNode[]): readonly CheckedNode[] =>
  nodes.flatMap((one) => [
    one,
    ...(one.branches?.flatMap(({ nodes }) => withBranches(nodes)) ?? []),
  ]);

const lacking = (argument: string, what: string, dtype: string) =>
  new DTypeError(op, argument, `${op}: ${what} of type ${dtype}, which wgemm does not have`);

/** Compiles nodes. Throws one error that lists the missing operators and all other faults. */
function checkOperators(
  nodes: readonly OnnxNode[],
  opsets: ReadonlyMap<string, number>,
  outputs: readonly OnnxValueInfo[],
  branches: Branches,
  makers: Makers,
  constants: Map<string, OnnxTensor>,
): CheckedNode[] {
  /** By operator and reason: the first node, and the number of nodes. */
  const faults = new Map<string, { node: OnnxNode; reason: string; count: number }>();
  /** Names of values that need a node at fault. */
  const spoilt = new Set<string>();
  const checkAll = (nodes: readonly OnnxNode[], makers: Makers): CheckedNode[] => {
    const checked: CheckedNode[] = [];
    for (const node of nodes) {
      const opset = opsets.get(node.domain) ?? (node.domain === 'com.microsoft' ? 1 : undefined);
      const both = branches.get(node);
      let reason = both ? undefined : versionProblem(node, opset);
      try {
        if (both)
          checked.push(
            ifOf(
              node,
              both.map((branch) => checkBranch(branch, makers)),
            ),
          );
        else if (reason === undefined)
          checked.push(...compileAll(node, opset as number, constants));
      } catch (error) {
        if (!(error instanceof UnsupportedError)) throw error;
        reason = error.message.replace(`${op}: ${titleOf(node)} `, '');
      }
      const isSpoilt = (name: string) => spoilt.has(name);
      const isInner = both?.some(({ outputs }) => outputs.some(isSpoilt)) === true;
      if (reason === undefined && !isInner && !node.inputs.some(isSpoilt)) continue;
      for (const name of node.outputs) if (name) spoilt.add(name);
      if (reason === undefined) continue;
      const key = `${keyOf(node)} ${reason}`;
      const fault = faults.get(key);
      if (fault) ++fault.count;
      else faults.set(key, { node, reason, count: 1 });
    }
    return checked;
  };
  /** @param outer the makers of the names around the node */
  const checkBranch = ({ nodes, initializers, outputs }: Branch, outer: Makers): CheckedBranch => {
    const around = new Map(Array.from(outer.keys(), (name) => [name, undefined] as const));
    const makers = new Map([...around, ...findMakers(nodes, [], initializers)]);
    return { nodes: checkAll(neededIn(nodes, findMade(outputs, makers), makers), makers), outputs };
  };
  const checked = checkAll(nodes, makers);
  if (faults.size === 0) return checked;
  const missing: string[] = [];
  const wrong: string[] = [];
  let count = 0;
  for (const { node, reason, count: each } of faults.values()) {
    const nodes = each === 1 ? 'node' : `${each} nodes, the first is`;
    if (reason === '')
      missing.push(`${keyOf(node).slice(0, 60)} (${nodes} ${describe(nameOf(node))})`);
    else {
      wrong.push(`${titleOf(node)} ${reason}${each === 1 ? '' : ` (${each} such nodes)`}`);
      count += each;
    }
  }
  const told = (count: number, thing: string, what: string, list: string[], most: number) => {
    const more = list.length > most ? `, and ${list.length - most} more` : '';
    const separator = thing === 'node' ? '; ' : ', ';
    const things = count === 1 ? `${thing} is` : `${thing}s are`;
    return list.length === 0
      ? []
      : `${count} ${things} ${what}: ${list.slice(0, most).join(separator)}${more}`;
  };
  const fine = outputs.flatMap(({ name }) => (spoilt.has(name) ? [] : name));
  throw new UnsupportedError(
    op,
    '',
    `${op}: ${[
      told(missing.length, 'operator', 'missing', missing, mostOperators),
      told(count, 'node', 'not supported', wrong, mostListed),
      fine.length > 0
        ? `to load the outputs that do not need them, pass outputs: [${listNames(fine)}]`
        : [],
    ]
      .flat()
      .join('; ')}`,
  );
}

/** @internal Names as errors show them. */
export function listNames(names: Iterable<string>): string {
  const list = [...names];
  const shown = list.slice(0, mostListed).map(describe).join(', ');
  const more = list.length - mostListed;
  return more > 0 ? `${shown} and ${more} more` : shown || 'none';
}

/** Why operators that wgemm does not have are not supported, if others cannot replace them. */
const refused: readonly (readonly [operators: RegExp, reason: string])[] = [
  [/^(Loop|Scan)$/, 'repeats a graph, which is not supported; export the model without loops'],
  [/^ai\.onnx\.ml\.TreeEnsemble/, 'computes decision trees, which are not supported'],
  [
    /^String|^RegexFullMatch$|^ai\.onnx\.ml\.(CategoryMapper|DictVectorizer|LabelEncoder)$|TfIdf/,
    'computes strings, which are not supported',
  ],
];

/** Why the opset of a node is not supported; '' if its operator is not known. */
function versionProblem(node: OnnxNode, opset: number | undefined): string | undefined {
  const key = keyOf(node);
  const known = products.get(key) ?? operators.get(key) ?? tables.get(key);
  if (known === undefined) return refused.find(([operators]) => operators.test(key))?.[1] ?? '';
  if (opset === undefined) return 'is of a domain without an opset in the model';
  const [from, to] = known.opsets;
  if (from <= opset && opset <= to) return undefined;
  return `is of opset ${opset}; it must be ${from === to ? from : `from ${from} to ${to}`}`;
}

/** An If. It is compiled already, except for the operator that reads its condition. */
function ifOf(node: OnnxNode, branches: readonly CheckedBranch[]): CheckedNode {
  return { node, run: undefined, product: undefined, originals: undefined, branches };
}

/** Compiles a node, or the nodes that it stands for. */
function compileAll(
  node: OnnxNode,
  opset: number,
  constants: Map<string, OnnxTensor>,
): CheckedNode[] {
  return tables.has(keyOf(node))
    ? nodesOf(node, new Attributes(node, opset), compile, constants)
    : [compile(node, opset)];
}

/** @internal */
export function compile(node: OnnxNode, opset: number): CheckedNode {
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
    originals: undefined,
  };
  attributes.end();
  return compiled;
}

/** The node that makes each name. `undefined` stands for inputs and constants. */
type Makers = ReadonlyMap<string, OnnxNode | undefined>;

function findMakers(
  nodes: readonly OnnxNode[],
  inputs: readonly OnnxValueInfo[],
  initializers: ReadonlyMap<string, unknown>,
): Makers {
  const makers = new Map<string, OnnxNode | undefined>();
  for (const { name } of inputs) {
    if (makers.has(name) || name === '') {
      const found = `the model has two inputs ${describe(name)}, or an input without a name`;
      throw new ArgumentError(op, name, `${op}: ${found}`);
    }
    makers.set(name, undefined);
  }
  for (const name of initializers.keys()) makers.set(name, undefined);
  for (const node of nodes) {
    for (const name of node.outputs) {
      if (name === '') continue;
      if (makers.has(name)) {
        const other = makers.get(name);
        const by = other ? `an output of ${titleOf(other)}` : 'an input or a constant';
        const what = `has output ${describe(name)}, which is also ${by}; each name must be unique`;
        throw invalid(node, what);
      }
      makers.set(name, node);
    }
  }
  return makers;
}

/** Values that the caller chose as outputs, as the model declares them. */
function chosenOutputs(
  { outputs, values, inputs }: OnnxModel['graph'],
  chosen: readonly string[],
  makers: Makers,
): OnnxValueInfo[] {
  // The first of a name counts, so it comes last.
  const all = [...outputs, ...values, ...inputs].reverse();
  const declared = new Map(all.map((info) => [info.name, info]));
  return chosen.map((name) => {
    if (!makers.has(name)) {
      const names = listNames(outputs.map(({ name }) => name));
      const found = `outputs has ${describe(name)}, which is not a value of the model`;
      throw new ArgumentError(op, 'outputs', `${op}: ${found}; its outputs are ${names}`);
    }
    return declared.get(name) ?? Object.freeze({ name, dtype: 'none', shape: undefined });
  });
}

/** The names of outputs, and of every value that they need. */
function findNeeded(outputs: readonly OnnxValueInfo[], makers: Makers): Set<string> {
  const names = new Set<string>();
  for (const { name } of outputs) {
    const found = names.has(name)
      ? 'is listed twice'
      : makers.has(name)
        ? ''
        : 'is not computed by any node';
    if (found) throw new ArgumentError(op, name, `${op}: output ${describe(name)} ${found}`);
    names.add(name);
  }
  if (names.size === 0) throw new ArgumentError(op, '', `${op}: the model has no outputs`);
  return findMade(names, makers);
}

/** Names, and every name that they need. */
function findMade(wanted: Iterable<string>, makers: Makers): Set<string> {
  const names = new Set(wanted);
  const needed = new Set<OnnxNode>();
  for (const name of names) {
    const maker = makers.get(name);
    if (maker === undefined || needed.has(maker)) continue;
    needed.add(maker);
    for (const input of maker.inputs) names.add(input); // the loop reaches them, too
  }
  return names;
}

/** Sorts nodes so that each follows the nodes that make its inputs. Keeps a list that is sorted. */
function inOrder(nodes: readonly OnnxNode[], makers: Makers): readonly OnnxNode[] {
  const ordered = new Set<OnnxNode>();
  /** By a node that is not placed yet: the nodes that wait for it, and the input it makes. */
  const waiting = new Map<OnnxNode, { node: OnnxNode; next: number }[]>();
  for (const first of nodes) {
    const open = [{ node: first, next: 0 }];
    for (let one = open.pop(); one; one = open.pop()) {
      const { node } = one;
      let maker: OnnxNode | undefined;
      for (; one.next < node.inputs.length; ++one.next) {
        const name = node.inputs[one.next] as string;
        maker = makers.get(name);
        if (maker ? !ordered.has(maker) : name !== '' && !makers.has(name)) break;
      }
      if (one.next === node.inputs.length) {
        ordered.add(node);
        for (const other of (waiting.get(node) ?? []).reverse()) open.push(other);
        continue;
      }
      const missing = describe(node.inputs[one.next]);
      if (!maker)
        throw invalid(
          node,
          `takes ${missing}, which is not an input, a constant or an output of a node`,
        );
      const list = waiting.get(maker);
      if (list) list.push(one);
      else waiting.set(maker, [one]);
    }
  }
  const left = nodes.find((node) => !ordered.has(node));
  if (left) throw invalid(left, 'is part of a cycle, or follows one');
  return [...ordered];
}
