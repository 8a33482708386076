/**
 * Makes the steps of a model: folds what is constant, fuses what is written out in several nodes,
 * and joins to products what follows them.
 */
import { arrayOf } from '../../base/arrays.js';
import { foldChannels } from '../graph/channels.js';
import type { CheckedBranch, CheckedNode } from '../graph/checked.js';
import { fusions } from '../graph/fusions.js';
import { type CheckedGraph, compile } from '../graph/graph.js';
import { findTakers, fuse } from '../graph/match.js';
import { quantizedProducts } from '../graph/qdq.js';
import { isShared, operatorOf } from '../operators/all.js';
import type { Link } from '../operators/operator.js';
import { type Recorder, recordBy } from '../operators/record.js';
import { elementBytes, sizeOf } from '../operators/storage.js';
import type { OnnxNode } from '../read/model.js';
import { type Make, type OnnxDType, storedAs, type Value } from '../read/value.js';

/** @internal A node after a product. The call of the product computes it, too, if it can. */
export type ProductLink = {
  readonly checked: CheckedNode;
  readonly input: string;
  /** The types of its constants, which must be the type of the product. */
  readonly dtypes: readonly OnnxDType[];
} & (
  | (Extract<Link, { kind: 'alpha' }> & { readonly rank: number })
  | (Extract<Link, { kind: 'bias' }> & { readonly other: string })
  | Extract<Link, { kind: 'activation' | 'transpose' }>
);

/** @internal */
export interface PlannedStep {
  readonly checked: CheckedNode;
  /** The names of the inputs. For a view, the name of the tensor it views. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** The nodes that follow a product, in order. */
  readonly links: readonly ProductLink[];
  /** The Transpose before an operand of a product, by the index of the input. */
  readonly views: ReadonlyMap<number, CheckedNode>;
  /** For a fused node: the steps that run instead, if it refuses its operands. Otherwise none. */
  readonly originals: readonly PlannedStep[];
  /** For an If: the steps if the condition is true, and otherwise. */
  readonly branches?: readonly (readonly PlannedStep[])[] | undefined;
}

/** @internal */
export interface PlannedModel {
  readonly graph: CheckedGraph;
  readonly steps: readonly PlannedStep[];
  /** Constants of the model and those that were folded, by name. */
  readonly constants: ReadonlyMap<string, Value>;
}

/**
 * A constant that is folded may have this many bytes, or `timesLarger` times the bytes of its
 * inputs.
 */
const fewBytes = 2 ** 16;
const timesLarger = 8;

/** The most bytes of all that are folded, beyond the constants of the model. */
const mostFolded = 2 ** 26;

/**
 * @internal Plans the steps of a model. @param calculator computes what is constant
 */
export function planModel(graph: CheckedGraph, calculator: Recorder): PlannedModel {
  const constants = new Map<string, Value>(graph.constants);
  const fold = folderOf(constants, calculator);
  const plan = (checked: readonly CheckedNode[], outputs: Iterable<string>): PlannedStep[] => {
    const isOutput = new Set(outputs);
    const quantized = fold(checked, isShared);
    const products = fuse(quantized, isOutput, constants, quantizedProducts);
    const unfolded = fold(products);
    const folded = recordBy(calculator, () => foldChannels(unfolded, isOutput, constants));
    const nodes = fuse(folded, isOutput, constants, fusions);
    return join(nodes, isOutput, constants).map((step) => {
      const { node, branches } = step.checked;
      const condition = constants.get(node.inputs[0] ?? '')?.data[0];
      // A condition that is constant leaves one branch.
      const runs = (i: number) => condition === undefined || i === (condition ? 0 : 1);
      return branches
        ? { ...step, branches: branches.map((one, i) => (runs(i) ? planBranch(node, one) : [])) }
        : step;
    });
  };
  const planBranch = (node: OnnxNode, { nodes, outputs }: CheckedBranch): PlannedStep[] => [
    ...plan(nodes, outputs),
    ...node.outputs.flatMap((output, i) =>
      output ? stepOf(compile(identity(outputs[i] as string, output), 13)) : [],
    ),
  ];
  return {
    graph,
    steps: plan(
      graph.nodes,
      graph.outputs.map(({ name }) => name),
    ),
    constants,
  };
}

/** The node that gives the output of a branch its name outside. */
const identity = (input: string, output: string): OnnxNode => ({
  name: '',
  op: 'Identity',
  domain: '',
  inputs: [input],
  outputs: [output],
  attributes: new Map(),
});

/**
 * Returns a function that computes nodes whose inputs are constants. It returns the other nodes,
 * and those that `keeps` keeps.
 */
function folderOf(constants: Map<string, Value>, calculator: Recorder) {
  const bytesOf = ({ dtype, shape }: Pick<Value, 'dtype' | 'shape'>) =>
    sizeOf(shape) * elementBytes(dtype);
  let left = mostFolded;
  for (const value of constants.values()) left += timesLarger * bytesOf(value);
  return (nodes: readonly CheckedNode[], keeps?: (node: OnnxNode) => boolean): CheckedNode[] =>
    nodes.filter(({ node, run }) => {
      if (!run || keeps?.(node)) return true;
      if (!node.inputs.every((name) => name === '' || constants.has(name))) return true;
      const inputs = node.inputs.map((name) => constants.get(name));
      const inputBytes = inputs.reduce((sum, input) => sum + (input ? bytesOf(input) : 0), 0);
      const most = Math.min(left, Math.max(fewBytes, timesLarger * inputBytes));
      const make: Make = (dtype, shape) => {
        // The run makes the value, or throws the error.
        if (!(bytesOf({ dtype, shape }) <= most)) throw new RangeError();
        return { dtype, shape, data: arrayOf(storedAs(dtype), sizeOf(shape)) };
      };
      try {
        const results = recordBy(calculator, () => [run(inputs, make)].flat());
        node.outputs.forEach((name, i) => {
          const value = results[i];
          if (name === '' || value === undefined) return;
          constants.set(name, value);
          left -= bytesOf(value);
        });
        return false;
      } catch {
        return true; // the run throws the error
      }
    });
}

/** The number of a constant with one float; undefined for another constant, or none. */
function numberIn(value: Value | undefined): number | undefined {
  return value &&
    (value.dtype === 'float32' || value.dtype === 'float64') &&
    value.data.length === 1
    ? Number(value.data[0])
    : undefined;
}

/** The step of a node on its own. */
const stepOf = (checked: CheckedNode): PlannedStep => {
  const { inputs, outputs } = checked.node;
  return { checked, inputs, outputs, links: [], views: new Map(), originals: [] };
};

function join(
  nodes: readonly CheckedNode[],
  isOutput: ReadonlySet<string>,
  constants: ReadonlyMap<string, Value>,
): PlannedStep[] {
  const takers = findTakers(nodes);
  const viewed = findViews(nodes, isOutput, takers, constants);
  /** By the node at whose place the step runs. */
  const chains = new Map<CheckedNode, { product: CheckedNode; links: ProductLink[] }>();
  const joined = new Set<CheckedNode>(viewed.values());
  for (const product of nodes) {
    if (!product.product) continue;
    const links: ProductLink[] = [];
    let input = product.node.outputs[0] as string;
    while (!isOutput.has(input)) {
      const [taker, ...others] = takers.get(input) ?? [];
      if (!taker || others.length > 0 || joined.has(taker)) break;
      const link = linkOf(taker, input, product, links, constants);
      if (!link) break;
      links.push(link);
      joined.add(taker);
      input = taker.node.outputs[0] as string;
    }
    chains.set(links.at(-1)?.checked ?? product, { product, links });
    if (links.length > 0) joined.add(product);
  }

  const steps: PlannedStep[] = [];
  for (const checked of nodes) {
    const chain = chains.get(checked);
    if (!chain) {
      if (!joined.has(checked)) {
        steps.push({ ...stepOf(checked), originals: (checked.originals ?? []).map(stepOf) });
      }
      continue;
    }
    const { product, links } = chain;
    const views = new Map<number, CheckedNode>();
    const inputs = product.node.inputs.map((name, i) => {
      const view = viewed.get(name);
      if (!view) return name;
      views.set(i, view);
      return view.node.inputs[0] as string;
    });
    const { outputs } = checked.node;
    const linked = product.originals ? links.map(({ checked }) => checked) : [];
    const originals = [...(product.originals ?? []), ...linked].map(stepOf);
    steps.push({ checked: product, inputs, outputs, links, views, originals });
  }
  return steps;
}

/**
 * By the name of its output: each Transpose that only products of floats take, as A or B. These
 * products read its input by strides. If one Transpose follows another, only the last is a view.
 */
function findViews(
  nodes: readonly CheckedNode[],
  isOutput: ReadonlySet<string>,
  takers: ReadonlyMap<string, readonly CheckedNode[]>,
  constants: ReadonlyMap<string, Value>,
): Map<string, CheckedNode> {
  const viewed = new Map<string, CheckedNode>();
  for (const checked of nodes) {
    const { node } = checked;
    const name = node.outputs[0] ?? '';
    const link = operatorOf(node)?.link?.(node, 0, () => undefined);
    if (link?.kind !== 'transpose' || isOutput.has(name)) continue;
    if (constants.has(node.inputs[0] as string)) continue;
    const canView = ({ node: taker, product }: CheckedNode) =>
      product
        ? ['gemm', 'matmul'].includes(product.name) && !taker.inputs.slice(2).includes(name)
        : false;
    if (takers.get(name)?.every(canView)) viewed.set(name, checked);
  }
  return viewed;
}

/** How a node follows a product and the links so far; undefined: it must run on its own. */
function linkOf(
  checked: CheckedNode,
  input: string,
  { product }: CheckedNode,
  links: readonly ProductLink[],
  constants: ReadonlyMap<string, Value>,
): ProductLink | undefined {
  const { node } = checked;
  const fuses = product?.fuses;
  const has = (...kinds: ProductLink['kind'][]) => links.some(({ kind }) => kinds.includes(kind));
  if (!fuses || !checked.run || node.outputs.length !== 1 || has('transpose')) return undefined;
  const { inputs } = node;
  const at = inputs.indexOf(input);
  const found = operatorOf(node)?.link?.(node, at, (i) => numberIn(constants.get(inputs[i] ?? '')));
  const other = inputs[1 - at] ?? '';
  // Operators with a link have at most 3 inputs. Concat may have thousands.
  const dtypes = inputs.slice(0, 3).flatMap((name) => constants.get(name)?.dtype ?? []);
  const link = { checked, input, dtypes };
  switch (found?.kind) {
    case 'alpha': {
      const rank = constants.get(other)?.shape.length ?? 0;
      const isFirst = links.length === 0 && Number.isFinite(found.alpha);
      return fuses.alpha && isFirst ? { ...link, ...found, rank } : undefined;
    }
    case 'bias':
      if (fuses.bias === 'none' || has('bias', 'activation')) return undefined;
      return { ...link, ...found, other };
    case 'activation':
      return fuses.activation && !has('activation') ? { ...link, ...found } : undefined;
    case 'transpose':
      return fuses.bias === 'any' ? { ...link, ...found } : undefined;
    default:
      return undefined;
  }
}
