/** The form that all operators share, and how they read the attributes of a node. */
import { ArgumentError, describe, UnsupportedError } from '../../base/errors.js';
import type { Activation } from '../../call/options.js';
import type { OnnxAttribute, OnnxNode, OnnxTensor, OnnxUnreadTensor } from '../read/model.js';
import type { Make, Value } from '../read/value.js';

/** @internal Computes the results of a node. It keeps no value, and may return an input. */
export type Run = (inputs: readonly (Value | undefined)[], make: Make) => Value | Value[];

/** @internal */
export interface Operator {
  /** The first and the last opset of its domain that this implementation knows. */
  readonly opsets: readonly [from: number, to: number];
  /** The most outputs. */
  readonly outputs: number;
  /** Whether its two inputs may have either order. */
  readonly commutes: boolean;
  /** Whether a fusion may take its result if other nodes do, too. The node then stays. */
  readonly isShared?: boolean | undefined;
  /** How the node joins the call of a product. Without this, the node does not join. */
  readonly link?: LinkOf | undefined;
  /** Reads and checks a node, once. Throws if something is not supported. */
  compile(attributes: Attributes, opset: number, node: OnnxNode): Run;
}

/** @internal The part of a product's call that computes a node after the product. */
export type Link =
  | { readonly kind: 'alpha'; readonly alpha: number }
  | { readonly kind: 'bias' }
  | { readonly kind: 'activation'; readonly activation: Activation }
  | { readonly kind: 'transpose' };

/** @internal The number of an input, if it is a constant with one element of floating point. */
export type NumberOf = (input: number) => number | undefined;

/** @param at the input that is the result of the product */
type LinkOf = (node: OnnxNode, at: number, numberOf: NumberOf) => Link | undefined;

/** @internal The key of a node in `allOperators`: `'Add'`, `'com.microsoft.Gelu'`. */
export function keyOf({ op, domain }: OnnxNode): string {
  return domain === '' ? op : `${domain}.${op}`;
}

/** @internal The name of a node; if it has none, the name of its first output. */
export const nameOf = (node: OnnxNode): string =>
  node.name || (node.outputs.find((output) => output !== '') ?? '');

/** @internal A node as messages name it. Names are optional, but a useful node has an output. */
export function titleOf(node: OnnxNode): string {
  const name = nameOf(node);
  const title = `${keyOf(node).slice(0, 60)} ${describe(name)}`;
  return node.name || !name ? `node ${title}` : `node ${title} (by its output)`;
}

/**
 * @internal The error of a node that breaks a rule of ONNX.
 * @param what for example 'has axis 4; it must be less than its rank 3'
 */
export function invalid(node: OnnxNode, what: string): ArgumentError {
  return new ArgumentError('loadModel', node.name, `loadModel: ${titleOf(node)} ${what}`);
}

/** @internal The error of a node that uses what this library lacks. */
export function unsupported(node: OnnxNode, what: string): UnsupportedError {
  return new UnsupportedError('loadModel', node.name, `loadModel: ${titleOf(node)} ${what}`);
}

/**
 * @internal Reads the attributes of a node. Each call names an attribute, and the value to return
 * if the node lacks it. Without such a value, the attribute is required. `end` refuses attributes
 * that no call has named. `name@13` names an attribute that exists from opset 13 on.
 */
export class Attributes {
  readonly #known = new Set<string>();

  constructor(
    readonly node: OnnxNode,
    readonly opset: number,
  ) {}

  /** A whole number, rounded to a number if it is beyond 2^53. */
  int(name: string): number;
  int<T>(name: string, absent: T): number | T;
  int(name: string, ...absent: unknown[]): unknown {
    return this.#read(name, 'a whole number', wholeNumber, absent);
  }

  /** A whole number that stands for true or false. */
  flag(name: string, absent: boolean): boolean {
    return this.int(name, absent ? 1 : 0) !== 0;
  }

  /** Whole numbers, each rounded to a number if it is beyond 2^53. */
  ints(name: string): number[];
  ints<T>(name: string, absent: T): number[] | T;
  ints(name: string, ...absent: unknown[]): unknown {
    return this.#read(name, 'a list of whole numbers', listOf(wholeNumber), absent);
  }

  float(name: string): number;
  float<T>(name: string, absent: T): number | T;
  float(name: string, ...absent: unknown[]): unknown {
    return this.#read(name, 'a number', number, absent);
  }

  floats(name: string): number[];
  floats<T>(name: string, absent: T): number[] | T;
  floats(name: string, ...absent: unknown[]): unknown {
    return this.#read(name, 'a list of numbers', listOf(number), absent);
  }

  string(name: string): string;
  string<T>(name: string, absent: T): string | T;
  string(name: string, ...absent: unknown[]): unknown {
    return this.#read(name, 'a string', text, absent);
  }

  tensor(name: string): OnnxTensor {
    const value = this.#read(name, 'a tensor', tensor, []) as OnnxTensor | OnnxUnreadTensor;
    if (value.data) return value;
    throw unsupported(this.node, `has a ${name} of type ${value.dtype}, which wgemm does not have`);
  }

  /** Names attributes that have no effect here. */
  ignore(...names: string[]): void {
    for (const name of names) this.#read(name, '', () => true, [0]);
  }

  /** Throws if the node has an attribute that no call has named. */
  end(): void {
    for (const name of this.node.attributes.keys())
      if (!this.#known.has(name))
        throw unsupported(
          this.node,
          `has the attribute ${describe(name)}, which is not supported in opset ${this.opset}`,
        );
  }

  #read<T>(key: string, kind: string, convert: Convert<T>, absent: unknown[]): unknown {
    const [name, from] = key.split('@') as [string, string?];
    if (this.opset < Number(from)) return absent[0];
    this.#known.add(name);
    const value = this.node.attributes.get(name);
    if (value === undefined) {
      if (absent.length > 0) return absent[0];
      throw invalid(this.node, `lacks the attribute ${name}; it must be ${kind}`);
    }
    const converted = convert(value);
    if (converted !== undefined) return converted;
    throw invalid(this.node, `has ${name} ${shown(value)}; it must be ${kind}`);
  }
}

type Convert<T> = (value: OnnxAttribute) => T | undefined;

const number: Convert<number> = (value) => (typeof value === 'number' ? value : undefined);
const wholeNumber: Convert<number> = (value) =>
  typeof value === 'bigint' || Number.isInteger(value) ? Number(value) : undefined;
const text: Convert<string> = (value) => (typeof value === 'string' ? value : undefined);
const tensor: Convert<OnnxTensor | OnnxUnreadTensor> = (value) =>
  typeof value === 'object' && value !== null && 'data' in value ? value : undefined;

function listOf<T>(convert: Convert<T>): Convert<T[]> {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    const items = (value as OnnxAttribute[]).map(convert);
    return items.includes(undefined) ? undefined : (items as T[]);
  };
}

function shown(value: OnnxAttribute): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return describe(value);
  return 'nodes' in value ? 'a graph' : `a tensor of ${(value as OnnxTensor).dtype}`;
}
