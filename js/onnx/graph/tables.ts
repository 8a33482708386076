/**
 * Operators of ai.onnx.ml, as scikit-learn's exporters write them: linear models, and what is
 * around them. Each stands for nodes that exist anyway.
 */
import { UnsupportedError } from '../../base/errors.js';
import { refuse, reshaped } from '../operators/define.js';
import { type Attributes, invalid, keyOf, type Run, unsupported } from '../operators/operator.js';
import { sizeOf } from '../operators/storage.js';
import type { OnnxAttribute, OnnxNode, OnnxTensor } from '../read/model.js';
import type { Value } from '../read/value.js';
import type { CheckedNode } from './checked.js';

/** Adds a node of ONNX, and returns the name of its output. */
type Add = (
  op: string,
  inputs: readonly string[],
  attributes?: Readonly<Record<string, OnnxAttribute>>,
  output?: string,
) => string;

/** What adds the nodes. */
interface Builder {
  readonly add: Add;
  /** Adds a node that has a function of its own. */
  readonly run: (inputs: readonly string[], output: string, run: Run) => void;
  readonly constant: (shape: readonly number[], values: readonly number[]) => string;
  /** The function of a node of ONNX. */
  readonly compile: (op: string, attributes: Readonly<Record<string, OnnxAttribute>>) => Run;
}

type Table = (node: OnnxNode, attributes: Attributes, to: Builder) => void;

const float32 = 1; // of TensorProto.DataType

/** Refuses names of classes: results would be strings. */
function checkLabels(node: OnnxNode, attributes: Attributes, name: string): void {
  attributes.ignore(name);
  const labels = node.attributes.get(name);
  if (Array.isArray(labels) && labels.length > 0)
    throw unsupported(
      node,
      'has labels that are strings, which are not supported; export integers',
    );
}

/** Adds the last node of a linear model. */
function transformed(
  node: OnnxNode,
  attributes: Attributes,
  { add }: Builder,
  x: string,
  y: string,
) {
  const transform = attributes.string('post_transform', 'NONE');
  const nodes: Record<string, [string, Record<string, OnnxAttribute>?]> = {
    NONE: ['Identity'],
    SOFTMAX: ['Softmax', { axis: -1 }],
    LOGISTIC: ['Sigmoid'],
  };
  const found = Object.hasOwn(nodes, transform) ? nodes[transform] : undefined;
  if (!found) throw unsupported(node, `has post_transform ${transform}, which is not supported`);
  add(found[0], [x], found[1], y);
}

/** Adds the product of a linear model. `rows`: how many results there are. */
function scored(
  node: OnnxNode,
  attributes: Attributes,
  { add, constant }: Builder,
  rows: number,
): string {
  const weights = attributes.floats('coefficients');
  const bias = attributes.floats('intercepts', []);
  const columns = weights.length / rows;
  if (!(rows > 0 && Number.isInteger(columns) && columns > 0 && [0, rows].includes(bias.length)))
    throw invalid(
      node,
      `has ${weights.length} coefficients and ${bias.length} intercepts for ${rows} results`,
    );
  const x = add('Cast', [node.inputs[0] as string], { to: float32 });
  const parts = [x, constant([rows, columns], weights)];
  if (bias.length > 0) parts.push(constant([rows], bias));
  return add('Gemm', parts, { transB: 1 });
}

const linearRegressor: Table = (node, attributes, to) => {
  const scores = scored(node, attributes, to, attributes.int('targets', 1));
  transformed(node, attributes, to, scores, node.outputs[0] as string);
};

const linearClassifier: Table = (node, attributes, to) => {
  checkLabels(node, attributes, 'classlabels_strings');
  attributes.ignore('multi_class');
  const count = attributes.ints('classlabels_ints').length;
  const labels = (node.attributes.get('classlabels_ints') as (number | bigint)[]).map(BigInt);
  const [label = '', y = ''] = node.outputs;
  if (attributes.floats('intercepts', []).length === 1 || count < 2)
    throw unsupported(node, `has one score for ${count} labels; there must be one per label`);
  const scores = scored(node, attributes, to, count);
  if (y) transformed(node, attributes, to, scores, y);
  else attributes.ignore('post_transform');
  if (label) to.run([scores], label, argMax(labels));
};

/** The label of the first largest score of each row. */
const argMax =
  (labels: readonly bigint[]): Run =>
  ([scores], make) => {
    const data = (scores as Value).data as Float32Array;
    const y = make('int64', (scores as Value).shape.slice(0, 1));
    const to = y.data as BigInt64Array;
    for (let row = 0; row < to.length; ++row) {
      const own = data.subarray(row * labels.length, (row + 1) * labels.length);
      to[row] = labels[Math.max(own.indexOf(Math.max(...own)), 0)] as bigint;
    }
    return y;
  };

const scaler: Table = (node, attributes, { add, constant }) => {
  const offset = attributes.floats('offset', []);
  const scale = attributes.floats('scale', []);
  let x = add('Cast', [node.inputs[0] as string], { to: float32 });
  if (offset.length > 0) x = add('Sub', [x, constant([offset.length], offset)]);
  if (scale.length > 0) x = add('Mul', [x, constant([scale.length], scale)]);
  add('Identity', [x], {}, node.outputs[0]);
};

const norms: Record<string, (row: Float32Array) => number> = {
  MAX: (row) => row.reduce((most, x) => Math.max(most, x), -Infinity),
  L1: (row) => row.reduce((sum, x) => sum + Math.abs(x), 0),
  L2: (row) => Math.sqrt(row.reduce((sum, x) => sum + x * x, 0)),
};

const normalizer: Table = (node, attributes, { add, run }) => {
  const name = attributes.string('norm', 'MAX');
  const norm = Object.hasOwn(norms, name) ? norms[name] : undefined;
  if (!norm) throw unsupported(node, `has norm ${name}; it must be MAX, L1 or L2`);
  const x = add('Cast', [node.inputs[0] as string], { to: float32 });
  run([x], node.outputs[0] as string, ([x], make) => {
    const { shape, data } = x as Value;
    const y = make('float32', shape);
    const to = y.data as Float32Array;
    const size = shape.at(-1) ?? 1;
    for (let at = 0; at < to.length; at += size) {
      const row = (data as Float32Array).subarray(at, at + size);
      const divisor = norm(row) || 1; // rows of zeros stay
      row.forEach((each, i) => (to[at + i] = each / divisor));
    }
    return y;
  });
};

const arrayFeatureExtractor: Table = (node, attributes, { run, compile }) => {
  const gather = compile('Gather', { axis: -1 });
  run(node.inputs, node.outputs[0] as string, (inputs, make) => {
    const [x, indices] = inputs as [Value, Value];
    const outer = x.shape.length > 1 ? x.shape.slice(0, -1) : [1];
    if (x.shape.length === 0 || indices.dtype !== 'int64')
      refuse(UnsupportedError, 'Y', `has dtype ${indices.dtype}`, 'int64, for X with an axis');
    return reshaped(gather(inputs, make) as Value, [...outer, sizeOf(indices.shape)]);
  });
};

/** The map of a row becomes the row. */
const zipMap: Table = (node, attributes, { add }) => {
  checkLabels(node, attributes, 'classlabels_strings');
  attributes.ignore('classlabels_int64s');
  add('Identity', node.inputs, {}, node.outputs[0]);
};

interface TableOperator {
  readonly opsets: readonly [from: number, to: number];
  readonly inputs: number;
  readonly outputs: number;
  readonly table: Table;
}

const row = (name: string, table: Table, inputs = 1, outputs = 1): [string, TableOperator] => [
  `ai.onnx.ml.${name}`,
  { opsets: [1, 5], inputs, outputs, table },
];

/** @internal By `keyOf`. */
export const tables: ReadonlyMap<string, TableOperator> = new Map([
  row('ArrayFeatureExtractor', arrayFeatureExtractor, 2),
  row('LinearClassifier', linearClassifier, 1, 2),
  row('LinearRegressor', linearRegressor),
  row('Normalizer', normalizer),
  row('Scaler', scaler),
  row('ZipMap', zipMap),
]);

/** The opset of the nodes that are added. */
const opset = 13;

/**
 * @internal The nodes that a node of `tables` stands for.
 *
 * @param compile compiles a node of ONNX
 * @param constants receives the constants of the nodes
 */
export function nodesOf(
  node: OnnxNode,
  attributes: Attributes,
  compile: (node: OnnxNode, opset: number) => CheckedNode,
  constants: Map<string, OnnxTensor>,
): CheckedNode[] {
  const { inputs, outputs, table } = tables.get(keyOf(node)) as TableOperator;
  if (node.inputs.length !== inputs || node.outputs.length > outputs)
    throw invalid(node, `must have ${inputs} inputs and at most ${outputs} outputs`);
  const nodes: CheckedNode[] = [];
  const start = node.outputs.find(Boolean) ?? '';
  let names = 0;
  const newName = () => `${start} ${node.op} ${++names}`;
  const nodeOf = (op: string, inputs: readonly string[], output: string, given = {}): OnnxNode => ({
    name: node.name,
    op,
    domain: '',
    inputs,
    outputs: [output],
    attributes: new Map(Object.entries(given)),
  });
  table(node, attributes, {
    add(op, inputs, given, output = newName()) {
      nodes.push(compile(nodeOf(op, inputs, output, given), opset));
      return output;
    },
    run(inputs, output, run) {
      const own = { ...node, inputs, outputs: [output] };
      nodes.push({ node: own, run, product: undefined, originals: undefined });
    },
    constant(shape, values) {
      const name = newName();
      constants.set(name, { name, dtype: 'float32', shape, data: Float32Array.from(values) });
      return name;
    },
    compile: (op, given) => compile(nodeOf(op, node.inputs, start, given), opset).run as Run,
  });
  attributes.end();
  return nodes;
}
