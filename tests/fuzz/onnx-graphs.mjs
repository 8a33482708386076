// Makes random graphs whose results do not depend on what is fused, folded, packed or in place.
import { arrayOf } from '../conformance/elements.mjs';
import { dataTypes } from '../peers/onnx-model.mjs';
import {
  broadcast,
  exact,
  fits,
  Graph,
  halves,
  isFloat,
  known,
  learning,
  microsoft,
  mostAxes,
  mostElements,
  oneOf,
  sizeOf,
} from './onnx-builder.mjs';
import {
  attend,
  choose,
  consume,
  endKept,
  grow,
  keepSame,
  otherFeeds,
  runsOf,
} from './onnx-flow.mjs';
import { Random } from './random.mjs';

function clip(graph, x) {
  const bound = (values) => {
    const value = graph.random.pick(values);
    return value === undefined || halves[x.dtype]
      ? undefined
      : graph.scalar(value, x.dtype, graph.random.pick([[], [], [1]]));
  };
  return graph.like('Clip', x, [
    x,
    bound([undefined, 0, 0, -0, -1]),
    bound([undefined, 0, 0.5, 6]),
  ]);
}

/** Functions that are finite if their input is. */
const finite = 'Relu Tanh Sigmoid Neg Identity Abs Sign Floor Ceil Round Sin Cos Elu'.split(' ');

function unary(graph, x = graph.take()) {
  const op = graph.random.pick(
    (
      'Relu Relu Clip LeakyRelu Sigmoid Tanh Erf Gelu ms.Gelu ms.FastGelu Neg Sqrt Identity ' +
      'Abs Sign Reciprocal Floor Ceil Round Exp Log Sin Cos Softplus Softsign Mish Elu ' +
      'HardSigmoid HardSwish ThresholdedRelu ms.QuickGelu'
    ).split(' '),
  );
  if (op === 'Clip') return clip(graph, x);
  const bias = op === 'ms.FastGelu' && graph.chance(0.7) ? graph.operand(x.dtype, x.shape) : null;
  const result = graph.like(op, x, bias ? [x, bias] : [x]);
  result.isFinite = x.isFinite && finite.includes(op);
  return result;
}

function binary(graph, x = graph.take(({ dtype }) => dtype !== 'bool' && dtype !== 'uint8')) {
  const { random } = graph;
  const y = graph.chance(0.1) ? x : graph.operand(x.dtype, x.shape);
  const op = random.pick(['Add', 'Add', 'Sub', 'Mul', 'Div', 'Pow']);
  const [a, b] = random.pick([
    [x, y],
    [y, x],
  ]);
  if (op !== 'Pow') return graph.like(op, x, [a, b]);
  const exponent = graph.chance(0.5) ? graph.scalar(2, 'float32') : b;
  return graph.like('Pow', exponent === b ? x : a, [a, exponent]);
}

const bools = (shape) => [['bool', shape]];

/** A comparison, what is made of its result, and a selection by it. */
function compare(graph) {
  const { random } = graph;
  const x = graph.take(({ dtype }) => dtype !== 'bool');
  const y = graph.operand(x.dtype, x.shape);
  const op = random.pick(['Equal', 'Less', 'LessOrEqual', 'Greater', 'GreaterOrEqual']);
  let [z] = graph.add(op, [x, y], bools(x.shape));
  const others = [z];
  if (isFloat(x) && graph.chance(0.4))
    others.push(...graph.add(random.pick(['IsNaN', 'IsInf']), [x], bools(x.shape)));
  others.push(graph.take(({ dtype, shape }) => dtype === 'bool' && fits(shape, x.shape)));
  if (graph.chance(0.5))
    [z] = graph.add(random.pick(['And', 'Or', 'Xor']), [z, random.pick(others)], bools(x.shape));
  if (graph.chance(0.4)) [z] = graph.add('Not', [z], bools(x.shape));
  if (graph.chance(0.5)) graph.add('Where', [z, x, y], [[x.dtype, x.shape]]);
}

/** Operators of one or more inputs, which may be the same, and of two inputs of any type. */
function combine(graph) {
  const { random } = graph;
  const x = graph.take(({ dtype }) => dtype !== 'bool' && dtype !== 'uint8');
  const inputs = [x];
  while (graph.chance(0.6)) inputs.push(graph.chance(0.2) ? x : graph.operand(x.dtype, x.shape));
  const op = random.pick(isFloat(x) ? ['Min', 'Max', 'Sum', 'Mean'] : ['Min', 'Max']);
  graph.like(op, x, inputs);
  const other = graph.operand(x.dtype, x.shape);
  if (graph.chance(0.3)) graph.like('PRelu', x, [x, other]);
  if (graph.chance(0.3))
    graph.like('Mod', x, [x, other], { fmod: isFloat(x) ? 1 : random.upTo(1) });
}

/** Normalizes each channel, or along some axes. */
function normalizeChannels(graph) {
  const { random } = graph;
  const x = graph.take(({ dtype, shape }) => dtype.includes('float') && shape.length > 1);
  if (!x) return undefined;
  const { dtype, shape } = x;
  const part = () => graph[graph.chance(0.8) ? 'constant' : 'input'](dtype, [shape[1]]);
  const op = random.pick(['Batch', 'Batch', 'Instance', 'MeanVariance']);
  if (op === 'MeanVariance') {
    const axes = shape.map((_, axis) => axis - random.pick([0, shape.length]));
    axes.splice(random.upTo(axes.length - 1), 1);
    return graph.like('MeanVarianceNormalization', x, [x], { axes });
  }
  const [scale, bias, mean, variance] = [0, 1, 2, 3].map(part);
  if (op === 'Instance') return graph.like('InstanceNormalization', x, [x, scale, bias]);
  // Not the result of a Gemm, which would compute it, too.
  const inputs = [graph.like('Identity', x), scale, bias, mean, graph.like('Abs', variance)];
  return graph.like('BatchNormalization', x, inputs);
}

/** Values that depend on shapes or constants only. */
function generate(graph) {
  const { random } = graph;
  const x = graph.take(() => true);
  const shape = graph.part(x.shape);
  const [zeros] = graph.add('ConstantOfShape', [graph.numbers(...shape)], [['float32', shape]]);
  const size = 1 + random.upTo(8);
  const [start, limit, delta] = [0, size, 1].map((value) => graph.scalar(value));
  const [range] = graph.add('Range', [start, limit, delta], [['float32', [size]]]);
  graph.add('Size', [x], [['int64', []]]);
  graph.add('CastLike', [x, random.pick([zeros, range])], [['float32', x.shape]]);
}

/** Adds or multiplies values of any two shapes that fit. */
function widening(graph) {
  const x = graph.take();
  const y = graph.take(({ dtype, shape }) => dtype === x.dtype && broadcast(shape, x.shape));
  if (!y) return;
  const shape = broadcast(x.shape, y.shape);
  graph.add(graph.random.pick(['Add', 'Mul']), [x, y], [[x.dtype, shape]]);
}

function normalize(graph) {
  const x = graph.take(({ dtype, shape }) => dtype.includes('float') && shape.length > 0);
  const { dtype, shape } = x;
  const axis = graph.axis(shape);
  const op = graph.random.pick([
    'Softmax',
    'LogSoftmax',
    'LayerNormalization',
    'LayerNormalization',
  ]);
  if (op !== 'LayerNormalization') return graph.like(op, x, [x], { axis });
  const part = () => (graph.chance(0.4) ? shape.slice(axis) : graph.part(shape));
  const inputs = [x, graph.operand(dtype, shape, part())];
  if (graph.chance(0.7)) inputs.push(graph.operand(dtype, shape, part()));
  const rows = shape.map((size, i) => (i < axis ? size : 1));
  const statistics = graph.chance(0.2) ? Array(2).fill(['float32', rows]) : [];
  graph.add(op, inputs, [[dtype, shape], ...statistics], { axis });
}

const reductions = 'Sum Max Min Prod L1 L2 SumSquare LogSum LogSumExp Mean'.split(' ');

function reduce(graph) {
  const { random } = graph;
  const x = graph.take(({ dtype, shape }) => dtype.includes('float') && shape.length > 0);
  const { dtype, shape } = x;
  const axis = graph.axis(shape);
  if (graph.chance(0.3)) return along(graph, x, axis);
  const keepdims = random.upTo(1);
  const result = shape.flatMap((size, i) => (i !== axis ? size : keepdims ? 1 : []));
  const kind = random.pick(reductions);
  // If the axes are not known, JavaScript computes. These would have other bits then.
  const axes = /Log|Mean/.test(kind) ? known(graph, axis) : graph.numbers(axis);
  return graph.add(`Reduce${kind}`, [x, axes], [[dtype, result]], { keepdims })[0];
}

/** Operators along one axis. */
function along(graph, x, axis) {
  const { random } = graph;
  const { dtype, shape } = x;
  const size = shape[axis];
  const withSize = (count) => shape.map((each, i) => (i === axis ? count : each));
  const op = random.pick(['ArgMax', 'ArgMin', 'TopK', 'CumSum']);
  if (op === 'CumSum') {
    const attributes = { exclusive: random.upTo(1), reverse: random.upTo(1) };
    return graph.like(op, x, [x, graph.numbers(axis)], attributes);
  }
  if (op !== 'TopK') {
    const attributes = { axis, select_last_index: random.upTo(1) };
    return graph.add(op, [x], [['int64', withSize(1)]], attributes)[0];
  }
  const k = 1 + random.upTo(size - 1);
  const results = [dtype, 'int64'].map((type) => [type, withSize(k)]);
  const attributes = { axis, largest: random.upTo(1) };
  return graph.add(op, [x, graph.numbers(k)], results, attributes)[0];
}

/** Indices along an axis of a size, from either end. */
function indicesOf(graph, shape, size) {
  const data = BigInt64Array.from({ length: sizeOf(shape) }, () =>
    BigInt(graph.random.upTo(2 * size - 1) - size),
  );
  return graph.constant('int64', shape, data);
}

/** Operators that choose or write elements by indices. */
function index(graph) {
  const { random } = graph;
  const x = graph.take(({ dtype, shape }) => dtype !== 'bool' && shape.length > 0);
  const { dtype, shape } = x;
  const axis = graph.axis(shape);
  const size = shape[axis];
  const op = random.pick(
    'GatherElements GatherND ScatterElements ScatterND OneHot NonZero Pad Tile Trilu'.split(' '),
  );
  const rest = shape.slice(1);
  const rows = indicesOf(graph, [2, 1], shape[0]);
  const reduction = random.pick([{}, { reduction: 'add' }, { reduction: 'max' }]);
  switch (op) {
    case 'GatherElements': {
      const along = shape.map((each, i) => (i === axis ? 1 + random.upTo(size - 1) : each));
      return graph.add(op, [x, indicesOf(graph, along, size)], [[dtype, along]], { axis });
    }
    case 'ScatterElements':
      return graph.like(op, x, [x, indicesOf(graph, shape, size), graph.like('Identity', x)], {
        axis,
        ...reduction,
      });
    case 'GatherND':
      if (2 * sizeOf(rest) > mostElements) return undefined;
      return graph.add(op, [x, rows], [[dtype, [2, ...rest]]]);
    case 'ScatterND': {
      const part = [2, ...rest];
      if (sizeOf(part) > mostElements) return undefined;
      const isPart = (value) => value.dtype === dtype && String(value.shape) === String(part);
      const updates = graph.take(isPart) ?? graph.constant(dtype, part);
      return graph.like(op, x, [x, rows, updates], reduction);
    }
    case 'OneHot': {
      if (3 * sizeOf(shape) > mostElements || shape.length === mostAxes) return undefined;
      const [places] = graph.add('Cast', [x], [['int64', shape]], { to: dataTypes.int64 });
      const values = graph.constant(dtype, [2]);
      return graph.add(op, [places, graph.numbers(3), values], [[dtype, [...shape, 3]]]);
    }
    case 'NonZero': {
      // The result has a shape of its own: take its first element, after one that is there.
      const [flat] = graph.add('Reshape', [x, graph.numbers(-1)], [[dtype, [sizeOf(shape)]]]);
      const one = graph.constant(dtype, [1], arrayOf(dtype).of(oneOf(dtype)));
      const more = graph.add('Concat', [one, flat], [[dtype, [sizeOf(shape) + 1]]], { axis: 0 });
      const places = graph.add(op, more, [['int64', [1, NaN]]], {})[0];
      graph.values.pop();
      const ends = [0, 1, 1].map((value) => graph.numbers(value));
      return graph.add('Slice', [places, ...ends], [['int64', [1, 1]]]);
    }
    case 'Pad': {
      const mode = random.pick(['constant', 'edge', 'reflect', 'wrap']);
      const pads = shape.flatMap((each) =>
        random.upTo(mode === 'constant' ? 2 : Math.min(each - 1, 2)),
      );
      const ends = shape.map((each) =>
        random.upTo(mode === 'constant' ? 2 : Math.min(each - 1, 2)),
      );
      const along = shape.map((each, i) => each + pads[i] + ends[i]);
      if (sizeOf(along) > mostElements) return undefined;
      const inputs = [x, graph.numbers(...pads, ...ends)];
      if (mode === 'constant' && graph.chance(0.5)) inputs.push(graph.constant(dtype, []));
      return graph.add(op, inputs, [[dtype, along]], { mode });
    }
    case 'Tile': {
      const times = shape.map(() => random.pick([1, 1, 2]));
      const along = shape.map((each, i) => each * times[i]);
      if (sizeOf(along) > mostElements) return undefined;
      return graph.add(op, [x, graph.numbers(...times)], [[dtype, along]]);
    }
    default:
      if (shape.length < 2) return undefined;
      return graph.like(op, x, [x, graph.scalar(BigInt(random.upTo(4) - 2), 'int64')], {
        upper: random.upTo(1),
      });
  }
}

function convert(graph) {
  const x = graph.take(() => true);
  const to = graph.random.pick(['float32', 'float32', 'float64', 'float16', 'int32', 'bool']);
  const [y] = graph.add('Cast', [x], [[to, x.shape]], { to: dataTypes[to] });
  if (to !== 'bool') return;
  const [a, b] = [0, 1].map(() => graph.operand('float32', x.shape));
  const shape = broadcast(x.shape, broadcast(a.shape, b.shape));
  graph.add('Where', [y, a, b], [['float32', shape]]);
}

function reshape(graph) {
  const x = graph.take(() => true);
  const { dtype, shape } = x;
  const { random } = graph;
  const size = sizeOf(shape);
  const axis = graph.axis(shape);
  const to = (op, inputs, shape, attributes) => graph.add(op, inputs, [[dtype, shape]], attributes);
  switch (random.upTo(shape.length > 0 ? 11 : 1)) {
    case 0:
      return to('Reshape', [x, graph.numbers(-1)], [size]);
    case 1:
      if (shape.length === mostAxes) return undefined;
      return to('Unsqueeze', [x, graph.numbers(0)], [1, ...shape]);
    case 2: {
      const reversed = [...shape].reverse();
      return to('Reshape', [x, graph.numbers(...reversed)], reversed);
    }
    case 3:
      return transpose(graph, x);
    case 4: {
      const inner = sizeOf(shape.slice(axis));
      return to('Flatten', [x], [size / inner, inner], { axis });
    }
    case 5: {
      const along = shape.map((size, i) => (i === axis ? 2 * size : size));
      if (2 * size > mostElements) return undefined;
      return to('Concat', [x, graph.like('Identity', x)], along, { axis });
    }
    case 6: {
      const along = shape.map((size, i) => (i === axis ? 2 : size));
      if (sizeOf(along) > mostElements) return undefined;
      return to('Gather', [x, graph.numbers(-1, 0)], along, { axis });
    }
    case 7: {
      const count = shape[axis];
      const parts = [count >> 1, count - (count >> 1)].filter(Boolean);
      const along = parts.map((part) => [
        dtype,
        shape.map((size, i) => (i === axis ? part : size)),
      ]);
      return graph.add('Split', [x, graph.numbers(...parts)], along, { axis });
    }
    case 8: {
      const ones = shape.flatMap((size, i) => (size === 1 ? i : []));
      if (ones.length === 0) return undefined;
      const one = random.pick(ones);
      const rest = shape.filter((_, i) => i !== one);
      return to('Squeeze', [x, graph.numbers(one - random.pick([0, shape.length]))], rest);
    }
    case 9:
      return slice(graph, x, axis);
    case 10: {
      const [sizes] = graph.add('Shape', [x], [['int64', [shape.length]]]);
      return to('Reshape', [graph.like('Dropout', x), sizes], shape);
    }
    default: {
      const known = shape.map((size) => (size === 1 ? random.pick([1, 3]) : size));
      if (sizeOf(known) > mostElements) return undefined;
      return to('Expand', [x, graph.numbers(...known)], known);
    }
  }
}

/** Every element or every second one along an axis, in either direction. */
function slice(graph, x, axis) {
  const size = x.shape[axis];
  const step = graph.random.pick([1, 2, -1, -2]);
  const first = graph.random.upTo(size - 1);
  const [from, to] = step > 0 ? [first, size] : [first - size, -1 - size];
  const count = Math.ceil((step > 0 ? size - first : first + 1) / Math.abs(step));
  const shape = x.shape.map((each, i) => (i === axis ? count : each));
  const inputs = [from, to, axis, step].map((value) => graph.numbers(value));
  graph.add('Slice', [x, ...inputs], [[x.dtype, shape]]);
}

/** Quantizes, with a scale or one per index of an axis, and back to floating point. */
function quantize(graph) {
  const x = graph.take();
  const { dtype, shape } = x;
  const axis = graph.axis(shape);
  const scales = shape.length > 0 && graph.chance(0.5) ? [shape[axis]] : [];
  const type = graph.random.pick(['float32', dtype]);
  const values = arrayOf(type).from({ length: sizeOf(scales) }, () =>
    graph.random.pick(halves[type] ? halves[type].slice(4, 5) : [0.25, 0.02, 1]),
  );
  const scale = graph.constant(type, scales, values);
  const zero = graph.constant(graph.random.pick(['int8', 'uint8']), scales);
  const inputs = [scale, zero];
  const attributes = scales.length > 0 ? { axis } : {};
  const [q] = graph.add('QuantizeLinear', [x, ...inputs], [[zero.dtype, shape]], attributes);
  graph.add('DequantizeLinear', [q, ...inputs], [[scale.dtype, shape]], attributes);
}

/** A node without inputs. */
function constant(graph) {
  const { random } = graph;
  const dtype = random.pick(['float32', 'float32', 'float64', 'int64']);
  const shape = graph.part(graph.take().shape);
  const value = { tensor: { dtype, shape, data: graph.data(dtype, shape) } };
  graph.add('Constant', [], [[dtype, shape]], { value });
}

function transpose(graph, x) {
  const perm = x.shape.map((_, i) => i);
  for (let i = perm.length - 1; i > 0; --i) {
    const j = graph.random.upTo(i);
    [perm[i], perm[j]] = [perm[j], perm[i]];
  }
  const shape = perm.map((axis) => x.shape[axis]);
  return graph.add('Transpose', [x], [[x.dtype, shape]], { perm })[0];
}

/**
 * Gelu as exporters write it, which one step computes. No other node takes its values. It takes no
 * constant, since nodes of constants are folded: each of them rounds.
 */
function gelu(graph) {
  const x = graph.take(({ dtype, isConstant }) => dtype === 'float32' && !isConstant);
  const add = (op, inputs) => graph.add(op, inputs, [['float32', x.shape]], {}, [graph.nodes])[0];
  const [half, one] = [graph.scalar(0.5), graph.scalar(1)];
  const isFast = graph.chance(0.5);
  let factor;
  if (isFast) {
    const cube = graph.chance(0.5)
      ? add('Pow', [x, graph.scalar(3)])
      : add('Mul', [x, add('Mul', [x, x])]);
    const sum = add('Add', [x, add('Mul', [graph.scalar(0.044715), cube])]);
    factor = add('Tanh', [add('Mul', [graph.scalar(Math.sqrt(2 / Math.PI)), sum])]);
  } else if (graph.chance(0.5)) factor = add('Erf', [add('Div', [x, graph.scalar(Math.SQRT2)])]);
  else factor = add('Erf', [add('Mul', [graph.scalar(Math.SQRT1_2), x])]);
  const sum = add('Add', [factor, one]);
  if (graph.chance(0.5)) add('Mul', [add('Mul', [x, sum]), half]);
  else add('Mul', [sum, add('Mul', [half, x])]);
  isOne(graph, x, { op: isFast ? 'FastGelu' : 'Gelu', domain: microsoft, inputs: [x.name] });
}

/** A Gemm and BatchNormalization with constants, which one Gemm with other constants computes. */
function normalizedGemm(graph) {
  const { random } = graph;
  const x = graph.take(({ dtype, shape }) => dtype === 'float32' && shape.length === 2);
  if (!x || x.isConstant) return;
  const n = random.pick([1, 5, 9, 40]);
  const shape = [x.shape[0], n];
  if (sizeOf(shape) > mostElements) return;
  const transB = random.upTo(1);
  const w = graph.constant('float32', transB ? [n, x.shape[1]] : [x.shape[1], n]);
  const c = graph.chance(0.7)
    ? graph.constant('float32', random.pick([[n], [1, n], [1], []]))
    : null;
  const [scale, bias, mean, variance] = [0, 1, 2, 3].map(() => graph.constant('float32', [n]));
  variance.data.forEach((value, i) => (variance.data[i] = Math.abs(value)));
  const add = (op, inputs, attributes) =>
    graph.add(op, inputs, [['float32', shape]], attributes, [graph.nodes])[0];
  const attributes = { transB, alpha: { float: random.pick([1, 0.5]) } };
  const y = add('Gemm', c ? [x, w, c] : [x, w], attributes);
  add('BatchNormalization', [y, scale, bias, mean, variance], { epsilon: { float: 0.25 } });
  const factors = scale.data.map((value, i) => value / Math.sqrt(variance.data[i] + 0.25));
  const shifts = bias.data.map((value, i) => value - mean.data[i] * factors[i]);
  const columnOf = (i) => (transB ? Math.floor(i / x.shape[1]) : i % n);
  // The addition makes 0 of -0.
  const weights = w.data.map((value, i) => value * factors[columnOf(i)] + 0);
  const biases = shifts.map((shift, i) => {
    const own = c ? c.data[c.data.length > 1 ? i : 0] : 0;
    return own * factors[i] + shift;
  });
  const folded = [graph.constant('float32', w.shape, weights)];
  folded.push(graph.constant('float32', [n], biases));
  const inputs = [x, ...folded].map(({ name }) => name);
  isOne(graph, { dtype: 'float32', shape }, { op: 'Gemm', inputs, attributes });
}

/** Compares the last node with another one, whose result has the type and the shape of x. */
function isOne(graph, x, node) {
  const { outputs } = graph.nodes.at(-1);
  graph.others.push({ ...node, outputs });
  graph.values.push({ name: outputs[0], dtype: x.dtype, shape: x.shape });
}

/** LayerNormalization as exporters write it, with the conditions of `gelu`. */
function layerNormalization(graph) {
  const x = graph.take(
    ({ dtype, shape, isConstant }) => dtype === 'float32' && shape.at(-1) > 1 && !isConstant,
  );
  if (!x) return;
  const add = (op, inputs, shape = x.shape, attributes = {}) =>
    graph.add(op, inputs, [['float32', shape]], attributes, [graph.nodes])[0];
  const rows = [...x.shape.slice(0, -1), 1];
  const axes = graph.numbers(-1);
  const centered = add('Sub', [x, add('ReduceMean', [x, axes], rows)]);
  const squares = graph.chance(0.5)
    ? add('Pow', [centered, graph.scalar(2)])
    : add('Mul', [centered, centered]);
  const epsilon = graph.scalar(2 ** -10);
  const sum = add('Add', [add('ReduceMean', [squares, axes], rows), epsilon], rows);
  const normalized = add('Div', [centered, add('Sqrt', [sum], rows)]);
  const [scale, bias] = [0, 1].map(() =>
    graph.constant('float32', graph.random.pick([[], [x.shape.at(-1)]])),
  );
  add('Add', [bias, add('Mul', [normalized, scale])]);
  isOne(graph, x, {
    op: 'LayerNormalization',
    inputs: [x, scale, bias].map(({ name }) => name),
    attributes: { epsilon: 2 ** -10 },
  });
}

/** A product between DequantizeLinear and QuantizeLinear, which one step computes. */
function staticProduct(graph) {
  const { random } = graph;
  const x = graph.take(({ dtype, shape }) => dtype === 'float32' && shape.length > 0);
  if (!x || x.isConstant) return;
  const n = random.pick([1, 5, 9, 40]);
  const shape = [...x.shape.slice(0, -1), n];
  if (sizeOf(shape) > mostElements) return;
  const isGemm = x.shape.length === 2 && graph.chance(0.7);
  const transB = isGemm ? random.upTo(1) : 0;
  const columns = random.pick([[], [n]]);
  const along = (axis) => (columns.length > 0 ? { axis } : {});
  const [aType, bType, yType] = [0, 1, 2].map(() => random.pick(['int8', 'uint8']));
  const a = [graph.scalar(0.03), graph.constant(aType, [])];
  const scales = Float32Array.from({ length: sizeOf(columns) }, () => 0.01 + random.next() / 50);
  const w = graph.constant(bType, transB ? [n, x.shape.at(-1)] : [x.shape.at(-1), n]);
  const b = [graph.constant('float32', columns, scales), graph.constant(bType, columns)];
  const add = (op, inputs, { dtype, shape }, attributes) =>
    graph.add(op, inputs, [[dtype, shape]], attributes, [graph.nodes])[0];
  const float = (shape) => ({ dtype: 'float32', shape });
  const [q] = graph.add('QuantizeLinear', [x, ...a], [[aType, x.shape]]);
  const factors = [
    add('DequantizeLinear', [q, ...a], x),
    add('DequantizeLinear', [w, ...b], float(w.shape), along(transB ? 0 : 1)),
  ];
  let c = null;
  if (isGemm && graph.chance(0.7)) {
    const products = scales.map((scale) => a[0].data[0] * scale);
    c = graph.constant('int32', [n]);
    const parts = [graph.constant('float32', columns, products)];
    factors.push(add('DequantizeLinear', [c, ...parts], float([n]), along(0)));
  }
  const attributes = isGemm ? { transB } : {};
  let y = add(isGemm ? 'Gemm' : 'MatMul', factors, float(shape), attributes);
  const ends = [];
  if (graph.chance(0.6)) {
    const hasRelu = graph.chance(0.4);
    const least = graph.scalar(yType === 'int8' ? -128 : 0, yType);
    if (hasRelu) y = add('Relu', [y], y);
    ends.push(graph.scalar(0.1), hasRelu ? least : graph.constant(yType, []));
    y = add('QuantizeLinear', [y, ...ends], { dtype: yType, shape });
  }
  const [op, ...inputs] = isGemm
    ? ['QGemm', q, ...a, w, ...b, c, ...ends]
    : ends.length > 0
      ? ['QLinearMatMul', q, ...a, w, ...b, ...ends]
      : ['MatMulIntegerToFloat', q, w, a[0], b[0], a[1], b[1]];
  const names = inputs.map((input) => input?.name ?? null);
  const domain = op === 'QLinearMatMul' ? '' : microsoft;
  isOne(graph, y, { op, domain, inputs: names, attributes });
}

/** A product of 8 bits with a quantized result. */
function linearProduct(graph) {
  const { random } = graph;
  const [stack, m, k, n] = [random.pick([[], [2]]), 1 + random.upTo(4), 7, random.pick([1, 9, 40])];
  const [aType, bType, yType] = [0, 1, 2].map(() => random.pick(['int8', 'uint8']));
  const a = exact(graph, [...stack, m, k]);
  const scale = graph.scalar(0.01);
  const zero = graph.constant(aType, []);
  const [q] = graph.add('QuantizeLinear', [a, scale, zero], [[aType, a.shape]]);
  const columns = random.pick([[], [n]]);
  const scales = graph.constant(
    'float32',
    columns,
    Float32Array.from({ length: sizeOf(columns) }, () => 0.01 + random.next() / 50),
  );
  const b = [graph.constant(bType, [k, n]), scales, graph.constant(bType, columns)];
  const ends = [graph.scalar(0.1), graph.constant(yType, [])];
  const inputs = [q, scale, zero, ...b, ...ends];
  graph.add('QLinearMatMul', inputs, [[yType, [...stack, m, n]]]);
}

/** A product, and what may join its call. */
function product(graph) {
  const { random } = graph;
  const n = random.pick([1, 2, 5, 9, 40, 1100]);
  const kind = random.pick(['MatMul', 'MatMul', 'Gemm', 'view', 'dynamic', 'nBits', 'integer']);
  const isDynamic = kind === 'dynamic' || kind === 'integer';
  const x = graph.take(
    ({ dtype, shape, isFinite }) =>
      shape.length > (kind === 'view' ? 1 : 0) &&
      (kind === 'Gemm' ? shape.length === 2 : true) &&
      (isDynamic ? isFinite && dtype === 'float32' : dtype.includes('float')) &&
      (kind === 'nBits' ? dtype === 'float32' : true),
  );
  if (!x) return;
  const { dtype, shape } = x;
  const k = shape.at(-1);
  let y;
  const result = [...shape.slice(0, -1), n];
  if (sizeOf(result) > mostElements) return;
  /** Something of the shape of the result, to be added to it, is often there before. */
  const early = graph.chance(0.5) && graph.operand(dtype, result, result);
  const make = (op, inputs, attributes) => graph.add(op, inputs, [[dtype, result]], attributes)[0];
  if (kind === 'MatMul') {
    const isB = (value) => value.dtype === dtype && String(value.shape) === String([k, n]);
    y = make('MatMul', [x, graph.take(isB) ?? graph.constant(dtype, [k, n])]);
  } else if (kind === 'Gemm') {
    const transB = random.upTo(1);
    const b = graph.constant(dtype, transB ? [n, k] : [k, n]);
    const c = graph.chance(0.5) ? [graph.operand(dtype, result)] : [];
    const [alpha, beta] = [0, 1].map(() => ({ float: random.pick([1, 1, 0.5, -2]) }));
    y = make('Gemm', [x, b, ...c], { transB, alpha, beta });
  } else if (kind === 'view') {
    const perm = shape.map((_, i) => i);
    perm.push(...perm.splice(-2).reverse());
    const square = [...shape.slice(0, -1), shape.at(-2)];
    if (sizeOf(square) > mostElements) return;
    const [turned] = graph.add('Transpose', [x], [[dtype, perm.map((i) => shape[i])]], { perm });
    y = graph.add('MatMul', [x, turned], [[dtype, square]])[0];
  } else if (kind === 'nBits') {
    const blocks = Math.ceil(k / 16);
    const data = graph.constant('uint8', [n, blocks, 8]);
    const scales = graph.constant('float32', [n * blocks]);
    y = make('ms.MatMulNBits', [x, data, scales], { K: k, N: n, bits: 4, block_size: 16 });
  } else if (isDynamic) {
    const b = graph.constant(random.pick(['uint8', 'int8']), [k, n]);
    const scale = graph.scalar(0.02);
    if (kind === 'dynamic') y = make('ms.DynamicQuantizeMatMul', [x, b, scale]);
    else {
      const types = [
        ['uint8', shape],
        ['float32', []],
        ['uint8', []],
      ];
      const [a, aScale, aZero] = graph.add('DynamicQuantizeLinear', [x], types);
      const op = random.pick(['MatMulInteger', 'ms.QGemm', 'ms.MatMulIntegerToFloat']);
      if (op === 'MatMulInteger') {
        const [sums] = graph.add(op, graph.chance(0.3) ? [a, b] : [a, b, aZero], [
          ['int32', result],
        ]);
        if (graph.chance(0.2)) return;
        const scales = graph.random.pick([[], [n]]);
        const factor = graph.add(
          'Mul',
          [aScale, graph.constant('float32', scales)],
          [['float32', scales]],
        )[0];
        const floats = graph.add('Cast', [sums], [['float32', result]], { to: 1 })[0];
        y = make('Mul', graph.chance(0.5) ? [floats, factor] : [factor, floats]);
      } else
        y =
          op === 'ms.QGemm' && shape.length === 2
            ? make(op, [a, aScale, aZero, b, scale, graph.constant(b.dtype, [])])
            : make('ms.MatMulIntegerToFloat', [a, b, aScale, scale, aZero]);
    }
  }
  const number = (value) => graph.scalar(value, dtype, random.pick([[], [], [1], [1, 1]]));
  const isHalf = halves[dtype] !== undefined;
  if (graph.chance(0.3) && !isHalf && y.shape.length > 1)
    y = graph.like('Mul', y, [y, number(random.pick([0.5, 0.3, -2, 0, -0]))]);
  else if (graph.chance(0.2) && !isHalf && y.shape.length > 1)
    y = graph.like('Div', y, [y, number(random.pick([8, 3, -0.5]))]);
  if (early && graph.chance(0.8) && fits(early.shape, y.shape))
    y = graph.like('Add', y, graph.chance(0.5) ? [y, early] : [early, y]);
  else if (graph.chance(0.5)) {
    const part = random.pick([y.shape.slice(-1), y.shape, graph.part(y.shape)]);
    y = graph.like('Add', y, [y, graph.operand(dtype, y.shape, part)]);
  }
  if (graph.chance(0.7)) y = graph.chance(0.5) ? graph.like('Relu', y) : clip(graph, y);
  if (graph.chance(0.3)) transpose(graph, y);
}

/** A normalization or a sum of transformers. */
function transformerRow(graph) {
  const x = graph.take(({ dtype, shape }) => dtype === 'float32' && shape.length > 1);
  if (!x) return;
  const { shape } = x;
  const width = [shape.at(-1)];
  const row = () => exact(graph, width);
  const op = graph.random.pick([
    'RMSNormalization',
    'SimplifiedLayerNormalization',
    'ms.SkipLayerNormalization',
    'ms.SkipSimplifiedLayerNormalization',
    'ms.BiasGelu',
    'ms.EmbedLayerNormalization',
  ]);
  if (op === 'ms.BiasGelu') return graph.like(op, x, [x, row()]);
  if (op === 'ms.EmbedLayerNormalization') {
    if (shape.length !== 2) return;
    const ids = graph.constant('int32', [2, 3], Int32Array.of(0, 0, shape[0] - 1, 0, 0, 0));
    const places = exact(graph, [3, ...width]);
    const mask = graph.constant('int32', [2, 3], Int32Array.of(1, 1, 0, 1, 0, 0));
    const inputs = [ids, null, x, places, null, row(), row(), mask];
    const results = [
      ['float32', [2, 3, ...width]],
      ['int32', [2]],
    ];
    return graph.add(op, inputs, results);
  }
  if (!op.startsWith('ms.')) return graph.like(op, x, [x, row()]);
  const skip = exact(graph, shape);
  const beta = op === 'ms.SkipLayerNormalization' ? [graph.chance(0.5) ? row() : null] : [];
  graph.like(op, x, [x, skip, row(), ...beta, graph.chance(0.5) ? row() : null]);
}

/** Whole numbers. */
const int32 = (graph, shape, valueAt) =>
  graph.constant(
    'int32',
    shape,
    Int32Array.from({ length: sizeOf(shape) }, (_, i) => valueAt(i)),
  );

/** A mask of the attentions of com.microsoft: lengths, or flags of keys or of queries and keys. */
function maskOf(graph, batch, queries, keys) {
  const { random } = graph;
  const flag = (i) => (i % keys === 0 ? 1 : random.upTo(1));
  const shape = random.pick([[batch], [batch, keys], [batch, queries, keys]]);
  const mask = int32(graph, shape, shape.length === 1 ? () => 1 + random.upTo(keys - 1) : flag);
  if (graph.chance(0.5)) return mask;
  const input = graph.input('int32', shape);
  graph.feeds[input.name].data = mask.data;
  return mask;
}

/** An attention, of values of the right shape or new ones. */
function attention(graph) {
  const { random } = graph;
  const dtype = random.pick(['float32', 'float32', 'float32', 'float16', 'bfloat16']);
  const [batch, heads, rows, size] = [
    random.pick([1, 2]),
    random.pick([1, 2]),
    random.pick([1, 5]),
    4,
  ];
  const of = (...shape) => exact(graph, shape, dtype);
  const past = random.pick([0, 3]);
  const total = past + rows;
  const width = heads * size;
  const whole = [dtype, [batch, rows, width]];
  const present = [dtype, [batch, heads, total, size]];
  const pasts = () => [0, 1].map(() => (past ? of(batch, heads, past, size) : null));
  const mask = () => (graph.chance(0.5) ? of(rows, total) : null);
  const flags = () => (graph.chance(0.5) ? maskOf(graph, batch, rows, total) : null);
  switch (random.upTo(7)) {
    case 0: {
      const q = of(batch, heads, rows, size);
      const results = [[dtype, q.shape], present, present];
      const inputs = [q, of(...q.shape), of(...q.shape), mask(), ...pasts()];
      return graph.add('Attention', inputs, results, { is_causal: random.upTo(1) });
    }
    case 1: {
      const q = of(batch, rows, width);
      const bias = graph.chance(0.5) ? of(3 * width) : null;
      const scores = graph.chance(0.3) ? of(1, heads, rows, total) : null;
      const inputs = [q, of(...q.shape), of(...q.shape), bias, flags(), scores, ...pasts()];
      const attributes = { num_heads: heads, unidirectional: random.upTo(1) };
      return graph.add('ms.MultiHeadAttention', inputs, [whole, present, present], attributes);
    }
    case 2: {
      const q = of(batch, rows, 2 * width);
      const [k, v] = [0, 1].map(() => of(batch, rows, width));
      const tables = [0, 1].map(() => graph.constant(dtype, [total, size / 2]));
      const lengths = int32(graph, [batch], () => total - 1);
      const inputs = [q, k, v, ...pasts(), lengths, int32(graph, [], () => total), ...tables];
      const attributes = { num_heads: 2 * heads, kv_num_heads: heads, do_rotary: 1 };
      const results = [[dtype, q.shape], present, present];
      return graph.add('ms.GroupQueryAttention', inputs, results, attributes);
    }
    case 3: {
      const w = graph.constant(dtype, [3, 3 * width]);
      const both = past ? of(2, batch, heads, past, size) : null;
      const inputs = [of(batch, rows, 3), w, of(3 * width), flags(), both];
      const results = [whole, [dtype, [2, ...present[1]]]];
      return graph.add('ms.Attention', inputs, results, { num_heads: heads });
    }
    case 4: {
      const x = of(batch, rows, width);
      const tables = [0, 1].map(() => of(batch, rows, size / 2));
      return graph.like('RotaryEmbedding', x, [x, ...tables], { num_heads: heads });
    }
    case 5: {
      const x = of(batch, rows, width);
      const tables = [0, 1].map(() => of(rows, size / 2));
      return graph.like('ms.RotaryEmbedding', x, [x, graph.numbers(0), ...tables]);
    }
    case 6: {
      const [x, w] = ['uint8', random.pick(['int8', 'uint8'])].map((type, i) =>
        graph.constant(type, i === 0 ? [batch, rows, 3] : [3, 3 * width]),
      );
      const scales = [0, 1].map(() => graph.scalar(0.01));
      const seen = graph.chance(0.5) ? maskOf(graph, batch, rows, rows) : null;
      const zero = graph.scalar(120, 'uint8');
      const own = graph.input('uint8', x.shape);
      const inputs = [graph.chance(0.7) ? own : x, w, exact(graph, [3 * width]), ...scales, seen];
      const result = [['float32', whole[1]]];
      return graph.add('ms.QAttention', [...inputs, zero], result, { num_heads: heads });
    }
    default: {
      const transB = random.upTo(1);
      const shape = transB ? [2, width] : [width, 2];
      const b = graph.chance(0.5) ? graph.constant(dtype, shape) : of(...shape);
      const inputs = [of(batch, rows, width), b];
      return graph.add('ms.FusedMatMul', inputs, [[dtype, [batch, rows, 2]]], {
        transB,
        alpha: 0.5,
      });
    }
  }
}

/** An operator of ai.onnx.ml. */
function table(graph) {
  const { random } = graph;
  const x = graph.take(({ dtype, shape }) => dtype !== 'bool' && shape.length === 2);
  if (!x) return;
  const [rows, width] = x.shape;
  const floats = (length) => ({ floats: Array.from(graph.data('float32', [length])) });
  const add = (op, inputs, results, attributes) =>
    graph.add(`ml.${op}`, inputs, results, attributes);
  const float = (shape) => ['float32', shape];
  const count = 2 + random.upTo(2);
  const linear = {
    coefficients: floats(count * width),
    intercepts: floats(count),
    post_transform: random.pick(['NONE', 'SOFTMAX', 'LOGISTIC']),
  };
  const isNumber = ['float32', 'float64', 'int64', 'int32'].includes(x.dtype);
  switch (isNumber ? random.upTo(4) : 0) {
    case 0: {
      const along = graph.constant('int64', [1, 2], BigInt64Array.of(0n, BigInt(width - 1)));
      return add('ArrayFeatureExtractor', [x, along], [[x.dtype, [rows, 2]]]);
    }
    case 1:
      return add('LinearRegressor', [x], [float([rows, count])], { ...linear, targets: count });
    case 2: {
      const labels = Array.from({ length: count }, (_, i) => 10 - 3 * i);
      const results = [['int64', [rows]], float([rows, count])];
      const [, scores] = add('LinearClassifier', [x], results, {
        ...linear,
        classlabels_ints: labels,
      });
      return add('ZipMap', [scores], [float(scores.shape)], { classlabels_int64s: labels });
    }
    case 3:
      return add('Scaler', [x], [float(x.shape)], { offset: floats(width), scale: floats(1) });
    default:
      return add('Normalizer', [x], [float(x.shape)], { norm: random.pick(['MAX', 'L1', 'L2']) });
  }
}

const steps = [unary, unary, binary, binary, widening, normalize, normalize, reduce, convert];
steps.push(
  reshape,
  reshape,
  reduce,
  index,
  index,
  quantize,
  constant,
  compare,
  combine,
  normalizeChannels,
  generate,
  normalizedGemm,
  gelu,
  layerNormalization,
  product,
  product,
  product,
  staticProduct,
  linearProduct,
  attention,
  attention,
  transformerRow,
  transformerRow,
  table,
  (graph) => choose(graph, steps),
  consume,
);

/** Steps of graphs with a state. */
const keepers = [grow, grow, keepSame, attend];

/** What a kept tensor begins with: zeros, without rows along its axis. */
function zerosOf({ dtype, shape, axis }) {
  const sizes = shape.map((size, i) => (i === axis ? 0 : size));
  return { data: new (arrayOf(dtype))(sizeOf(sizes)), shape: sizes };
}

/**
 * The graph of a seed: a model with a few outputs, and one of the same nodes with all values as
 * outputs, so that nothing in it is fused or in place. In half of these, constants are inputs, so
 * that nothing is folded or packed, too. A fifth of the models keeps tensors: `keep` is what
 * `model.state` takes, `first` has what they begin with, `axes` the axes along which they grow, and
 * `runs` says what changes from run to run.
 */
export function graphOf(seed) {
  const random = new Random(seed);
  const graph = new Graph(random);
  const size = () => random.pick([1, 1, 2, 3, 4, 7, 17]);
  const dtypes = 'float32 float32 float32 float32 float64 float16 bfloat16';
  const dtype = random.pick(dtypes.split(' '));
  for (let i = random.upTo(2); i >= 0; --i)
    graph.input(dtype, Array.from({ length: random.pick([1, 2, 2, 2, 3]) }, size));
  if (random.upTo(4) === 0) graph.input('int32', [size(), size()]);
  graph.input('float32', [random.pick([1, 3, 36]), random.pick([17, 40])]);
  const keeps = graph.chance(0.2);
  for (let i = 2 + random.upTo(14); i > 0; --i) {
    if (keeps && graph.chance(0.2)) random.pick(keepers)(graph);
    random.pick(steps)(graph);
  }
  if (graph.nodes.length === 0) unary(graph);
  endKept(graph);
  const opsets = { '': 23, [microsoft]: 1, [learning]: 3 };
  const known = graph.others.flatMap(({ outputs }) => outputs);
  const kept = graph.kept.flatMap(({ tensors }) => tensors);
  const keep = Object.fromEntries(kept.map(({ output, input }) => [output.name, input.name]));
  const free = known.filter((name) => !graph.inner.has(name) && !keep[name]);
  const outputs = new Set([free.at(-1), ...graph.shown.map(({ name }) => name)]);
  for (let i = random.upTo(2); i > 0; --i) outputs.add(random.pick(free));
  const asInputs = random.upTo(1) === 0;
  const info = (name) => ({ name, dtype: 'none' });
  const declared = ({ name, dtype, shape }) => ({ name, dtype, shape });
  const moving = graph.kept.flatMap(({ axis, tensors, feeds }, i) => [
    ...tensors.map(({ input }) => ({ ...input, axis, size: `rows ${i}` })),
    ...feeds.map((feed) => ({ ...feed, size: `rows of ${feed.name}` })),
  ]);
  const inputs = [
    ...graph.values.filter(({ name }) => graph.feeds[name]).map(declared),
    ...moving.map(({ size, axis, ...input }) => ({
      ...declared(input),
      shape: input.shape.map((each, i) => (i === axis ? size : each)),
    })),
  ];
  const common = { opsets, inputs, initializers: graph.constants };
  const constants = graph.constants.map(({ name, data, shape }) => [name, { data, shape }]);
  return {
    model: {
      ...common,
      nodes: graph.nodes,
      outputs: [...outputs, ...Object.keys(keep)].map(info),
      initializers: graph.constants.filter(({ name }) => !graph.inner.has(name)),
    },
    feeds: graph.feeds,
    keep,
    first: Object.fromEntries(kept.map(({ input }) => [input.name, zerosOf(input)])),
    axes: Object.fromEntries(kept.map(({ input }) => [input.name, input.axis])),
    runs: keeps
      ? [...runsOf(graph)]
      : graph.chance(0.5)
        ? [{}]
        : [{}, { feeds: otherFeeds(graph) }, {}],
    reference: {
      ...common,
      nodes: graph.others,
      outputs: known.map(info),
      ...(asInputs && {
        inputs: [...inputs, ...graph.constants.map(declared)],
        initializers: [],
      }),
    },
    referenceFeeds: asInputs ? { ...graph.feeds, ...Object.fromEntries(constants) } : graph.feeds,
  };
}
