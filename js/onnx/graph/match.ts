/** Finds the nodes of a pattern in a graph, and puts one node in their place. */
import { DTypeError } from '../../base/errors.js';
import { allOperators, isShared } from '../operators/all.js';
import { refuse } from '../operators/define.js';
import { keyOf } from '../operators/operator.js';
import type { OnnxAttribute, OnnxNode } from '../read/model.js';
import type { Value } from '../read/value.js';
import type { CheckedNode } from './checked.js';
import { compile } from './graph.js';

/**
 * @internal A value, and how nodes compute it.
 *
 * - A name is a variable, which stands for one value. In capitals it stands for a constant, or for
 *   an input that is absent; otherwise for a value that is not a constant.
 * - A number is a scalar of float32 with this value. A bigint is an int64 constant of one element.
 * - An array is a node: its key in the table of operators, and its inputs. They may have either
 *   order if the operator commutes.
 * - `either` lists patterns, of which one must match.
 */
export type Pattern =
  string | number | bigint | readonly Pattern[] | { readonly either: readonly Pattern[] };

/** @internal The nodes and constants that match a pattern. */
export interface Found {
  readonly nodes: readonly OnnxNode[];
  /** The name of the value that a variable stands for. */
  readonly name: (variable: string) => string;
  /** The constant that a variable stands for; undefined if the input is absent. */
  readonly constant: (variable: string) => Value | undefined;
  /** The node that has the value of a variable as its first output. */
  readonly maker: (variable: string) => OnnxNode | undefined;
}

/** @internal Nodes, and the node that computes the same in one step. */
export interface Fusion {
  readonly pattern: Pattern;
  /** The node: its key, and its inputs, which are variables of the pattern. */
  readonly becomes: readonly [key: string, ...inputs: string[]];
  /** Whether the bits of the result stay. Otherwise the node rounds less often. */
  readonly isExact: boolean;
  /** Whether attributes and constants are those that the node needs. Default: always. */
  readonly fits?: (found: Found) => boolean;
  /** The attributes of the node. Default: none. */
  readonly attributes?: (found: Found) => Record<string, OnnxAttribute>;
}

/** @internal By the name of a value: the nodes that take it, once per input. */
export function findTakers(nodes: readonly CheckedNode[]): Map<string, CheckedNode[]> {
  const takers = new Map<string, CheckedNode[]>();
  for (const checked of nodes) {
    for (const name of checked.node.inputs) {
      const list = takers.get(name);
      if (list) list.push(checked);
      else takers.set(name, [checked]);
    }
  }
  return takers;
}

const outputOf = ({ node }: CheckedNode): string => node.outputs[0] ?? '';

/**
 * @internal Replaces the nodes of each fusion by one node, which keeps them as its `originals`.
 * Nothing but these nodes may need a value between them.
 */
export function fuse(
  nodes: readonly CheckedNode[],
  isOutput: ReadonlySet<string>,
  constants: ReadonlyMap<string, Value>,
  fusions: readonly Fusion[],
): readonly CheckedNode[] {
  const takers = findTakers(nodes);
  const makers = new Map(nodes.map((checked) => [outputOf(checked), checked]));
  const places = new Map(nodes.map((checked, i) => [checked, i]));
  /** By a node that is fused: the node in its place, if it is the last one of its fusion. */
  const replaced = new Map<CheckedNode, CheckedNode | undefined>();
  /** The match so far. */
  const names = new Map<string, string>();
  const matched: CheckedNode[] = [];

  /** Whether a value matches, and the rest of the pattern then matches, too. */
  const matches = (pattern: Pattern, name: string, rest: () => boolean): boolean => {
    const constant = constants.get(name);
    if (typeof pattern === 'string') {
      const known = names.get(pattern);
      if (known !== undefined) return known === name && rest();
      const isConstant = name === '' || constant !== undefined;
      if (isConstant !== /[A-Z]/.test(pattern)) return false;
      names.set(pattern, name);
      if (rest()) return true;
      names.delete(pattern);
      return false;
    }
    if (typeof pattern !== 'object') {
      const isBig = typeof pattern === 'bigint';
      return (
        constant?.dtype === (isBig ? 'int64' : 'float32') &&
        (isBig ? constant.data.length === 1 : constant.shape.length === 0) &&
        constant.data[0] === (isBig ? pattern : Math.fround(pattern)) &&
        rest()
      );
    }
    if ('either' in pattern) return pattern.either.some((one) => matches(one, name, rest));
    const [key, ...inputs] = pattern as readonly [string, ...Pattern[]];
    const maker = makers.get(name);
    if (!maker || replaced.has(maker) || keyOf(maker.node) !== key) return false;
    const given = maker.node.inputs;
    if (given.length > inputs.length) return false;
    const matchFrom = (list: readonly string[], i: number): boolean =>
      i === inputs.length
        ? rest()
        : matches(inputs[i] as Pattern, list[i] ?? '', () => matchFrom(list, i + 1));
    matched.push(maker);
    if (matchFrom(given, 0)) return true;
    const { commutes } = allOperators.get(key) ?? {};
    if (commutes && matchFrom([...given].reverse(), 0)) return true;
    matched.pop();
    return false;
  };

  const found: Found = {
    get nodes() {
      return matched.map(({ node }) => node);
    },
    name: (variable) => names.get(variable) as string,
    constant: (variable) => constants.get(names.get(variable) as string),
    maker: (variable) => makers.get(names.get(variable) as string)?.node,
  };
  for (const { pattern, becomes, fits, attributes } of fusions) {
    for (const last of nodes) {
      names.clear();
      matched.length = 0;
      const isInner = (checked: CheckedNode) =>
        !isOutput.has(outputOf(checked)) &&
        (isShared(checked.node) ||
          takers.get(outputOf(checked))?.every((taker) => matched.includes(taker)));
      const isWhole = () =>
        matched.every((checked) => checked === last || isInner(checked)) && (!fits || fits(found));
      if (!matches(pattern, outputOf(last), isWhole)) continue;
      const [key, ...inputs] = becomes;
      const dot = key.lastIndexOf('.');
      const node = {
        ...last.node, // its name, so that errors name a node of the model
        op: key.slice(dot + 1),
        domain: key.slice(0, Math.max(dot, 0)),
        inputs: inputs.map(found.name),
        attributes: new Map(Object.entries(attributes?.(found) ?? {})),
      };
      const { run, product } = compile(node, 1);
      const originals = [...new Set(matched)].sort(
        (a, b) => (places.get(a) as number) - (places.get(b) as number),
      );
      for (const one of originals) if (!isShared(one.node)) replaced.set(one, undefined);
      replaced.set(last, {
        node,
        product,
        originals,
        // The constants are float32. The original nodes refuse other types; the operator may not.
        run:
          run &&
          ((inputs, make) => {
            const dtype = inputs[0]?.dtype;
            if (dtype !== 'float32') refuse(DTypeError, 'input', `has dtype ${dtype}`, 'float32');
            return run(inputs, make);
          }),
      });
    }
  }
  const fused = nodes.flatMap((checked) =>
    replaced.has(checked) ? (replaced.get(checked) ?? []) : checked,
  );
  const left = findTakers(fused);
  const isNeeded = (name: string) => isOutput.has(name) || left.has(name);
  return fused.filter((checked) => !isShared(checked.node) || isNeeded(outputOf(checked)));
}
