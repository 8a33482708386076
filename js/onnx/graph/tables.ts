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
  /** Adds a constant of float32, or of another type. */
  readonly constant: (
    shape: readonly number[],
    values: readonly number[],
    tensor?: Pick<OnnxTensor, 'dtype' | 'data'>,
  ) => string;
  /** Changes how the last node runs. */
  readonly wrap: (change: (run: Run) => Run) => void;
}

type Table = (node: OnnxNode, attributes: Attributes, to: Builder) => void;

// As in TensorProto.DataType.
const float32 = 1;
const float64 = 11;

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

/** The operator that an attribute names. */
function chosen(
  node: OnnxNode,
  attribute: string,
  name: string,
  operators: Readonly<Record<string, string>>,
  rule: string,
): string {
  if (Object.hasOwn(operators, name)) return operators[name] as string;
  throw unsupported(node, `has ${attribute} ${name}${rule}`);
}

/** Adds the last node of a linear model. */
function transformed(
  node: OnnxNode,
  attributes: Attributes,
  { add }: Builder,
  x: string,
  y: string,
) {
  const name = attributes.string('post_transform', 'NONE');
  const operators = { NONE: 'Identity', SOFTMAX: 'Softmax', LOGISTIC: 'Sigmoid' };
  add(chosen(node, 'post_transform', name, operators, ', which is not supported'), [x], {}, y);
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
  const labels = node.attributes.get('classlabels_ints') as readonly (number | bigint)[];
  const [label = '', y = ''] = node.outputs;
  if (attributes.floats('intercepts', []).length === 1 || count < 2)
    throw unsupported(node, `has one score for ${count} labels; there must be one per label`);
  const scores = scored(node, attributes, to, count);
  if (y) transformed(node, attributes, to, scores, y);
  else attributes.ignore('post_transform');
  if (!label) return;
  const data = BigInt64Array.from(labels, BigInt);
  const names = to.constant([count], [], { dtype: 'int64', data });
  const best = to.add('ArgMax', [scores], { axis: 1, keepdims: 0 });
  to.add('Gather', [names, best], {}, label);
};

const scaler: Table = (node, attributes, { add, constant }) => {
  const offset = attributes.floats('offset', []);
  const scale = attributes.floats('scale', []);
  let x = add('Cast', [node.inputs[0] as string], { to: float32 });
  if (offset.length > 0) x = add('Sub', [x, constant([offset.length], offset)]);
  if (scale.length > 0) x = add('Mul', [x, constant([scale.length], scale)]);
  add('Identity', [x], {}, node.outputs[0]);
};

/** Rows of zeros stay. */
const normalizer: Table = (node, attributes, { add, constant }) => {
  const name = attributes.string('norm', 'MAX');
  const norms = { MAX: 'ReduceMax', L1: 'ReduceL1', L2: 'ReduceL2' };
  const x = add('Cast', [add('Cast', node.inputs, { to: float32 })], { to: float64 });
  const op = chosen(node, 'norm', name, norms, '; it must be MAX, L1 or L2');
  const norm = add(op, [x], { axes: [-1] });
  const [zero, one] = [0, 1].map((each) => add('Cast', [constant([], [each])], { to: float64 }));
  const isZero = add('Equal', [norm, zero as string]);
  const divisor = add('Where', [isZero, one as string, norm]);
  add('Cast', [add('Div', [x, divisor])], { to: float32 }, node.outputs[0]);
};

const arrayFeatureExtractor: Table = (node, attributes, { add, wrap }) => {
  add('Gather', node.inputs, { axis: -1 }, node.outputs[0]);
  wrap((gather) => (inputs, make) => {
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
  table(node, attributes, {
    add(op, inputs, given = {}, output = newName()) {
      const own = new Map(Object.entries(given));
      const one = { name: node.name, op, domain: '', inputs, outputs: [output], attributes: own };
      nodes.push(compile(one, opset));
      return output;
    },
    constant(shape, values, tensor) {
      const name = newName();
      const data = Float32Array.from(values);
      constants.set(name, { name, shape, dtype: 'float32', data, ...tensor });
      return name;
    },
    wrap(change) {
      const last = nodes.pop() as CheckedNode;
      nodes.push({ ...last, node, run: change(last.run as Run) });
    },
  });
  attributes.end();
  return nodes;
}
