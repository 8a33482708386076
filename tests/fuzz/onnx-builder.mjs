// Builds random graphs: values, nodes, and the nodes of the model to compare with.
import { arrayOf } from '../conformance/elements.mjs';

export const microsoft = 'com.microsoft';
export const learning = 'ai.onnx.ml';
const domains = { ms: microsoft, ml: learning };
export const sizeOf = (shape) => shape.reduce((product, size) => product * size, 1);
export const isFloat = ({ dtype }) => dtype.includes('float');
/** Products of the small ones are -0. */
const reals = [0, -0, 1, -1, 0.5, -2, 1e-30, -1e-30];
export const oneOf = (dtype) => (halves[dtype] ? halves[dtype][2] : dtype === 'int64' ? 1n : 1);
export const halves = {
  float16: [0, 0x8000, 0x3c00, 0xbc00, 0x3800, 0xc000, 1, 0x8001],
  bfloat16: [0, 0x8000, 0x3f80, 0xbf80, 0x3f00, 0xc000, 1, 0x8001],
};

/** The most elements of a value. */
export const mostElements = 6000;
export const mostAxes = 4;

/** The shape of two operands; undefined if they do not fit, or make too many elements. */
export function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  const shape = Array.from({ length: rank }, (_, axis) => {
    const [s, t] = [a, b].map((from) => from[axis - rank + from.length] ?? 1);
    return s === 1 ? t : t === 1 || s === t ? s : NaN;
  });
  return sizeOf(shape) <= mostElements ? shape : undefined;
}

export const fits = (part, shape) => String(broadcast(part, shape)) === String(shape);

export class Graph {
  names = 0;
  nodes = [];
  /** The nodes of the model to compare with: the same, but an inexact fusion is one node. */
  others = [];
  constants = [];
  feeds = {};
  /** Values that nodes may take, in the order in which nodes make them. */
  values = [];
  /** How many branches are around the nodes that are added. */
  depth = 0;
  /** Names of values and constants of branches, which no other node can take. */
  inner = new Set();
  /** Groups of tensors that a state keeps. */
  kept = [];
  /** Values with a size that differs from run to run, and those among them that are outputs. */
  moving = [];
  shown = [];

  constructor(random) {
    this.random = random;
  }

  chance(part) {
    return this.random.next() < part;
  }

  name(letter) {
    return `${letter}${++this.names}`;
  }

  data(dtype, shape) {
    const { random } = this;
    if (dtype === 'bool') return Uint8Array.from({ length: sizeOf(shape) }, () => random.upTo(1));
    return arrayOf(dtype).from({ length: sizeOf(shape) }, () => {
      if (dtype === 'int64') return BigInt(random.upTo(6) - 3);
      if (halves[dtype]) return random.pick(halves[dtype]) ^ random.upTo(random.pick([0, 63]));
      if (!dtype.includes('float')) return random.upTo(255) - 128;
      return this.chance(0.3) ? random.pick(reals) : 4 * random.next() - 2;
    });
  }

  input(dtype, shape) {
    const value = { name: this.name('x'), dtype, shape, isFinite: true };
    this.feeds[value.name] = { data: this.data(dtype, shape), shape };
    this.values.push(value);
    return value;
  }

  constant(dtype, shape, data = this.data(dtype, shape)) {
    const value = { name: this.name('c'), dtype, shape, data, isConstant: true };
    this.constants.push(value);
    return value;
  }

  numbers(...values) {
    return this.constant('int64', [values.length], BigInt64Array.from(values, BigInt));
  }

  scalar(value, dtype = 'float32', shape = []) {
    return this.constant(dtype, shape, arrayOf(dtype).of(value));
  }

  /** Adds a node. Results are [dtype, shape]. */
  add(op, inputs, results, attributes = {}, lists = [this.nodes, this.others]) {
    const [type, prefix] = op.split('.').reverse();
    const domain = domains[prefix] ?? '';
    const isConstant = inputs.every((input) => !input || input.isConstant);
    const outputs = results.map(([dtype, shape]) => {
      return { name: this.name('v'), dtype, shape, isConstant };
    });
    const node = {
      op: type,
      domain,
      inputs: inputs.map((input) => input?.name ?? null),
      outputs: outputs.map(({ name }) => name),
      attributes,
    };
    for (const list of lists) list.push(node);
    if (lists.length > 1) this.values.push(...outputs);
    return outputs;
  }

  /** A node whose result has the type and the shape of a value. */
  like(op, x, inputs = [x], attributes = {}) {
    return this.add(op, inputs, [[x.dtype, x.shape]], attributes)[0];
  }

  /** A value, more often a late one. */
  take(accept = isFloat) {
    const list = this.values.filter(accept);
    return list[list.length - 1 - Math.floor(this.random.next() ** 2 * list.length)];
  }

  /** A shape that broadcasts to another one. */
  part(shape) {
    const from = this.random.upTo(shape.length);
    return shape.slice(from).map((size) => (this.chance(0.3) ? 1 : size));
  }

  /** An operand that broadcasts to a shape: a constant, an input or a result. */
  operand(dtype, shape, part = this.part(shape)) {
    const known = this.take((value) => value.dtype === dtype && fits(value.shape, shape));
    if (known && this.chance(0.5)) return known;
    if (this.chance(0.4)) return this.constant(dtype, part);
    const input = this.input(dtype, part);
    return isFloat(input) && this.chance(0.8) ? this.like('Tanh', input) : input;
  }

  axis(shape) {
    return this.random.upTo(shape.length - 1);
  }
}

/** An operand of exactly this shape. */
export function exact(graph, shape, dtype = 'float32') {
  const isSame = (value) => value.dtype === dtype && String(value.shape) === String(shape);
  const known = graph.take(isSame);
  if (known && graph.chance(0.5)) return known;
  if (graph.chance(0.3)) return graph.constant(dtype, shape);
  return graph.like('Tanh', graph.input(dtype, shape));
}

/** Numbers that a model always knows. */
export function known(graph, ...values) {
  const tensor = {
    dtype: 'int64',
    shape: [values.length],
    data: BigInt64Array.from(values, BigInt),
  };
  return graph.add('Constant', [], [['int64', tensor.shape]], { value: { tensor } })[0];
}
