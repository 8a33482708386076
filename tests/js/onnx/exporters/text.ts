/**
 * Reads graphs in the textual syntax of ONNX (onnx.parser), with two additions for inputs of nodes:
 *
 * - `int64[1] {0}` is a constant. It becomes a node Constant, or an initializer.
 * - `float[32, 64] weight` is an initializer with this name. Without `{...}`, its
 *   elements are random.
 *
 * So a graph reads as the program that wrote it shows it, node for node.
 */
import type { DataArray } from 'wgemm';
import {
  type AttributeSpec,
  encodeGraph,
  type GraphSpec,
  type NodeSpec,
  type TensorSpec,
  type ValueSpec,
} from '../../../peers/onnx-model.mjs';
import { Random } from '../../support/random.js';

export interface TextModel {
  /** `name (inputs) => (outputs) { nodes }`. */
  readonly text: string;
  /** The version of each domain. */
  readonly opsets: Readonly<Record<string, number>>;
  /** What constants among the inputs of nodes become. Default: nodes, as PyTorch writes them. */
  readonly constants?: 'nodes' | 'initializers';
  readonly seed?: number;
}

/** The bytes of a model. */
export function encodeText(model: TextModel): Uint8Array {
  return encodeGraph({ ...parseText(model), opsets: model.opsets, irVersion: 8 });
}

/** The nodes of a text, as the body of a branch. */
export const nodesOf = (text: string): string =>
  text.slice(text.indexOf('{\n', text.indexOf('=>')) + 1, text.lastIndexOf('}'));

export function parseText(model: TextModel): Required<GraphSpec> {
  const parser = new Parser(model);
  return { ...parser.graph(), initializers: parser.initializers };
}

const dtypes: Readonly<Record<string, string>> = {
  float: 'float32',
  double: 'float64',
  float16: 'float16',
  int64: 'int64',
  int32: 'int32',
  int8: 'int8',
  uint8: 'uint8',
  bool: 'bool',
};
const classes: Readonly<Record<string, { from(values: readonly number[]): unknown }>> = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

const token =
  /\s*(?:#.*\n\s*)*(=>|"[^"]*"|-?inf\b|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|[\w/.:]+|[^\s\w])/g;

class Parser {
  private readonly tokens: readonly string[];
  private at = 0;
  private readonly random: Random;
  private nodes: NodeSpec[] = [];
  /** Of all graphs: branches share them. */
  readonly initializers: TensorSpec[] = [];
  private names = 0;

  constructor(private readonly model: TextModel) {
    this.random = new Random(model.seed ?? 1);
    this.tokens = Array.from(model.text.matchAll(token), ([, word]) => word as string);
  }

  graph(): Omit<Required<GraphSpec>, 'initializers'> {
    const outer = this.nodes;
    this.nodes = [];
    const name = this.next();
    const inputs = this.list('(', ')', () => this.value());
    this.expect('=>');
    const outputs = this.list('(', ')', () => this.value());
    this.expect('{');
    while (!this.take('}')) this.node();
    const { nodes } = this;
    this.nodes = outer;
    return { name, nodes, inputs, outputs };
  }

  private peek = () => this.tokens[this.at];

  private next(): string {
    const token = this.tokens[this.at++];
    if (token === undefined) throw new Error('the text ends too early');
    return token;
  }

  private take(token: string): boolean {
    const found = this.peek() === token;
    if (found) ++this.at;
    return found;
  }

  private expect(token: string): void {
    const found = this.next();
    if (found === token) return;
    const around = this.tokens.slice(Math.max(0, this.at - 12), this.at + 3);
    throw new Error(`${found} instead of ${token} in: ${around.join(' ')}`);
  }

  private list<T>(from: string, to: string, read: () => T): T[] {
    this.expect(from);
    const items: T[] = [];
    while (!this.take(to)) {
      items.push(read());
      if (this.peek() !== to) this.expect(',');
    }
    return items;
  }

  /** A type and a shape, if the next tokens are these. */
  private type(): { dtype: string; shape: (number | string)[] } | undefined {
    const dtype = dtypes[this.peek() ?? ''];
    if (dtype === undefined) return undefined;
    this.next();
    const size = () => {
      const word = this.next();
      return /^\d+$/.test(word) ? Number(word) : word;
    };
    return { dtype, shape: this.peek() === '[' ? this.list('[', ']', size) : [] };
  }

  /** An input or an output of a graph. Without brackets, its shape is not declared. */
  private value(): ValueSpec {
    const map = 'seq(map(int64,float))';
    if (this.tokens.slice(this.at, this.at + 9).join('') === map) {
      this.at += 9;
      return { name: this.next(), dtype: map };
    }
    const hasShape = this.tokens[this.at + 1] === '[';
    const { dtype, shape } = this.type() ?? {};
    if (dtype === undefined) throw new Error(`${this.peek()} is not a type`);
    return { name: this.next(), dtype, ...(hasShape && { shape }) };
  }

  private node(): void {
    const outputs: (string | null)[] = [];
    do outputs.push(this.peek() === ',' || this.peek() === '=' ? null : this.next());
    while (this.take(','));
    this.expect('=');
    const [, domain = '', op = ''] = /^(?:(.*)\.)?(\w+)$/.exec(this.next()) ?? [];
    const attributes: Record<string, AttributeSpec> = {};
    if (this.peek() === '<')
      this.list('<', '>', () => {
        const name = this.next();
        this.expect('=');
        attributes[name] = this.attribute();
      });
    this.expect('(');
    const inputs: (string | null)[] = [];
    if (!this.take(')')) {
      do inputs.push(this.input());
      while (this.take(','));
      this.expect(')');
    }
    this.nodes.push({ op, domain, name: `${op} ${outputs[0]}`, inputs, outputs, attributes });
  }

  private attribute(): AttributeSpec {
    const word = this.peek() as string;
    if (word.startsWith('"')) return this.next().slice(1, -1);
    const type = this.type();
    if (type) return { tensor: { ...type, shape: type.shape as number[], ...this.elements(type) } };
    if (word === '[') {
      const words = this.list('[', ']', () => this.next());
      if (words.some((word) => word.startsWith('"'))) return words.map((word) => word.slice(1, -1));
      return words.some(isFloat)
        ? { floats: words.map(numberOf) }
        : words.map((word) => BigInt(word));
    }
    if (/^-?(\d|inf)/.test(word))
      return isFloat(this.next()) ? { float: numberOf(word) } : BigInt(word);
    return { graph: this.graph() };
  }

  private input(): string | null {
    if (this.peek() === ',' || this.peek() === ')') return null;
    const type = this.type();
    if (!type) return this.next();
    const shape = type.shape as number[];
    if (this.peek() === '{') {
      const tensor = { dtype: type.dtype, shape, ...this.elements(type) };
      const name = `constant${++this.names}`;
      if (this.model.constants === 'initializers') this.initializers.push({ name, ...tensor });
      else
        this.nodes.push({
          op: 'Constant',
          name,
          inputs: [],
          outputs: [name],
          attributes: { value: { tensor } },
        });
      return name;
    }
    const name = this.next();
    const data =
      this.peek() === '{' ? this.elements(type).data : this.draw(name, type.dtype, shape);
    if (!this.initializers.some((other) => other.name === name))
      this.initializers.push({ name, dtype: type.dtype, shape, data });
    return name;
  }

  /** `{1, 2}`. */
  private elements({ dtype }: { dtype: string }): { data: DataArray } {
    const words = this.list('{', '}', () => this.next());
    if (dtype === 'int64') return { data: BigInt64Array.from(words.map((word) => BigInt(word))) };
    return { data: classes[dtype]?.from(words.map(numberOf)) as DataArray };
  }

  /** Random weights. Scales and variances are close to 1, and 8 bits do not saturate sums. */
  private draw(name: string, dtype: string, shape: readonly number[]): DataArray {
    const length = shape.reduce((product, size) => product * size, 1);
    const between = (least: number, most: number) =>
      Array.from({ length }, () => least + this.random.next() * (most - least));
    const last = shape.at(-1) ?? 1;
    // Positions, and the mask of a decoder.
    if (dtype === 'int64') return BigInt64Array.from({ length }, (_, i) => BigInt(i));
    if (dtype === 'bool')
      return Uint8Array.from({ length }, (_, i) => (i % last <= Math.floor(i / last) ? 1 : 0));
    if (dtype === 'int8') return Int8Array.from(between(-63, 63), Math.round);
    if (dtype === 'uint8') return Uint8Array.from(between(65, 191), Math.round);
    const isScale = /norm\S*weight|ln\S*weight|gamma|var|std/i.test(name) && shape.length < 2;
    const most = shape.length < 2 ? 0.3 : Math.sqrt(3 / (shape.at(-2) as number));
    const values = isScale ? between(0.7, 1.3) : between(-most, most);
    return dtype === 'float64' ? Float64Array.from(values) : Float32Array.from(values);
  }
}

const isFloat = (word: string) => /[.ef]/.test(word);
const numberOf = (word: string) => Number(word.replace('inf', 'Infinity'));
