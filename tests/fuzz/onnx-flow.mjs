// Steps of random graphs that make an If, or keep tensors from run to run.
import { dataTypes } from '../peers/onnx-model.mjs';
import { exact, isFloat, known, sizeOf } from './onnx-builder.mjs';

const mostDepth = 2;
const largest = 2n ** 63n - 1n;

/** A boolean scalar: of constants, an input, sizes, or elements. */
function condition(graph) {
  const { random } = graph;
  const flag = () => Uint8Array.of(random.upTo(1));
  const scalar = [['bool', []]];
  switch (random.upTo(4)) {
    case 0:
      return graph.constant('bool', [], flag());
    case 1: {
      const [size] = graph.add('Size', [graph.take(() => true)], [['int64', []]]);
      const most = graph.scalar(BigInt(random.pick([1, 6, 20])), 'int64');
      return graph.add('Less', [size, most], scalar)[0];
    }
    case 2: {
      const x = graph.take(({ dtype, shape }) => dtype === 'float32' && shape.length > 0);
      const [most] = graph.add('ReduceMax', [x], [['float32', []]], { keepdims: 0 });
      return graph.add('Less', [most, graph.scalar(random.pick([0, 1]))], scalar)[0];
    }
    default: {
      const input = graph.input('bool', []);
      return graph.chance(0.5) ? input : graph.add('Not', [input], scalar)[0];
    }
  }
}

const isSame = (a) => (b) => a.dtype === b.dtype && String(a.shape) === String(b.shape);

/** The nodes of a branch, and its results: any of them, or results like given ones. */
function branchOf(graph, steps, wanted) {
  const { random, nodes: outer } = graph;
  const [values, constants] = [graph.values, graph.constants.length];
  graph.values = [...values];
  graph.nodes = [];
  ++graph.depth;
  for (let i = random.upTo(4); i > 0; --i) random.pick(steps)(graph);
  const made = () => new Set(graph.nodes.flatMap(({ outputs }) => outputs));
  const own = made();
  const isOwn = ({ name, dtype }) => own.has(name) && dtype !== 'bool';
  const list = wanted ?? Array.from({ length: 1 + random.upTo(1) }, () => graph.take(isOwn));
  const results = list.map((like) => {
    const base = like ?? graph.take(({ dtype }) => dtype !== 'bool');
    const other = wanted ? graph.take(isSame(base)) : base;
    const x = other ?? graph[graph.chance(0.5) ? 'constant' : 'input'](base.dtype, base.shape);
    if (own.has(x.name)) return x;
    return graph.like(isFloat(x) && graph.chance(0.5) ? 'Neg' : 'Identity', x);
  });
  // If a result stands twice, the second one is a copy.
  results.forEach((result, i) => {
    if (results.indexOf(result) < i) results[i] = graph.like('Identity', result);
  });
  const branch = { nodes: graph.nodes, results, initializers: [] };
  for (const name of made()) graph.inner.add(name);
  if (graph.chance(0.5)) {
    branch.initializers = graph.constants.slice(constants);
    for (const { name } of branch.initializers) graph.inner.add(name);
  }
  graph.nodes = outer;
  graph.values = [
    ...values,
    ...graph.values.filter((one) => graph.feeds[one.name] && !values.includes(one)),
  ];
  --graph.depth;
  return branch;
}

/** Both branches have the same names: they may, since these names end with them. */
function renamed({ nodes, results, initializers }, depth) {
  const names = [
    ...nodes.flatMap(({ outputs }) => outputs),
    ...initializers.map(({ name }) => name),
  ];
  const map = new Map(names.map((name, i) => [name, `branch ${depth} ${i}`]));
  const rename = (name) => map.get(name) ?? name;
  const inside = ({ graph }) => ({
    graph: {
      ...graph,
      nodes: graph.nodes.map(renameNode),
      outputs: graph.outputs.map((info) => ({ ...info, name: rename(info.name) })),
    },
  });
  const renameNode = (node) => ({
    ...node,
    inputs: node.inputs.map((name) => name && rename(name)),
    outputs: node.outputs.map((name) => name && rename(name)),
    attributes: Object.fromEntries(
      Object.entries(node.attributes ?? {}).map(([name, value]) => [
        name,
        value?.graph ? inside(value) : value,
      ]),
    ),
  });
  return {
    nodes: nodes.map(renameNode),
    initializers: initializers.map((one) => ({ ...one, name: rename(one.name) })),
    results: results.map((one) => ({ ...one, name: rename(one.name) })),
  };
}

/** An If. The model to compare with computes both branches, and chooses by Where. */
export function choose(graph, steps) {
  if (graph.depth >= mostDepth) return;
  const flag = condition(graph);
  const isList = graph.chance(0.2);
  const given = isList ? graph.add('Reshape', [flag, graph.numbers(1)], [['bool', [1]]])[0] : flag;
  const yes = branchOf(graph, steps);
  const no = branchOf(graph, steps, yes.results);
  const outputs = yes.results.map(({ dtype, shape, isConstant, isFinite }, i) => ({
    name: graph.name('v'),
    dtype,
    shape,
    isConstant: Boolean(isConstant ?? no.results[i].isConstant),
    isFinite: isFinite && no.results[i].isFinite,
  }));
  const isShared = graph.chance(0.5);
  const branch = (one) => {
    const { nodes, initializers, results } = isShared ? renamed(one, graph.depth) : one;
    const outputs = results.map(({ name, dtype }) => ({ name, dtype }));
    return { graph: { nodes, initializers, outputs } };
  };
  graph.nodes.push({
    op: 'If',
    domain: '',
    inputs: [given.name],
    outputs: outputs.map(({ name }) => name),
    attributes: { then_branch: branch(yes), else_branch: branch(no) },
  });
  outputs.forEach(({ name }, i) => {
    const inputs = [flag, yes.results[i], no.results[i]].map((value) => value.name);
    graph.others.push({ op: 'Where', domain: '', inputs, outputs: [name], attributes: {} });
  });
  graph.values.push(...outputs);
}

/** A tensor of a state: an input that an output becomes, with more rows along an axis. */
function keptInput(graph, group, dtype, shape, axis) {
  const input = { name: graph.name('kept'), dtype, shape, axis };
  const tensor = { input, output: undefined };
  group.tensors.push(tensor);
  return { value: input, tensor };
}

const rowsAt = (shape, axis, rows) => shape.map((size, i) => (i === axis ? rows : size));

/** A value whose size along an axis differs from run to run. */
function move(graph, op, inputs, dtype, shape, axis, attributes) {
  const [value] = graph.add(op, inputs, [[dtype, rowsAt(shape, axis, NaN)]], attributes);
  graph.values.pop();
  return { ...value, axis };
}

/** Appends rows to a tensor that a state keeps. */
export function grow(graph) {
  if (graph.depth > 0 || graph.kept.length > 2) return;
  const { random } = graph;
  const dtype = random.pick(
    'float32 float32 float32 float64 float16 bfloat16 int32 int64 int8'.split(' '),
  );
  const shape = Array.from({ length: 1 + random.upTo(3) }, () => random.pick([1, 2, 3]));
  const axis = random.upTo(shape.length - 1);
  const rows = random.pick([1, 1, 1, 2, 5]);
  const group = { axis, tensors: [], feeds: [] };
  const { value: past, tensor } = keptInput(graph, group, dtype, shape, axis);
  let fresh;
  if (graph.chance(0.5)) {
    const part = rowsAt(shape, axis, rows);
    const like = graph.take(isSame({ dtype, shape: part }));
    fresh = like ?? graph.input(dtype, part);
    group.rowsOf = () => rows;
  } else {
    // Another number of rows in each run.
    fresh = { name: graph.name('rows'), dtype, shape, axis };
    group.rowsOf = () => random.pick([rows, rows, rows, 1, 4]);
    group.feeds.push({ ...fresh, shapeOf: (_, rows) => rowsAt(shape, axis, rows) });
  }
  const isFirst = graph.chance(0.8);
  const list = isFirst ? [past, fresh] : [fresh, past];
  let present = move(graph, 'Concat', list, dtype, shape, axis, { axis });
  const kind = random.upTo(4);
  if (kind === 0)
    present = move(graph, isFloat({ dtype }) ? 'Neg' : 'Identity', [present], dtype, shape, axis);
  else if (kind === 1) {
    const sizes = graph.numbers(...rowsAt(shape, axis, -1));
    present = move(graph, 'Reshape', [present, sizes], dtype, shape, axis);
  }
  tensor.output = present;
  graph.kept.push(group);
  graph.moving.push(present, { ...past, isEmpty: true });
  if (graph.chance(0.5)) graph.shown.push(move(graph, 'Identity', [present], dtype, shape, axis));
  consume(graph);
}

/** Keeps a value of each run as an input of the next one. `endKept` chooses the value. */
export function keepSame(graph) {
  if (graph.depth > 0 || graph.kept.length > 2) return;
  const like = graph.take(({ dtype, shape }) => dtype !== 'bool' && sizeOf(shape) > 0);
  const group = { axis: undefined, tensors: [], feeds: [], rowsOf: () => 0 };
  graph.kept.push(group);
  graph.values.push(keptInput(graph, group, like.dtype, like.shape).value);
}

/** Chooses the outputs that a state keeps and that have none yet. */
export function endKept(graph) {
  const made = new Set(graph.nodes.flatMap(({ outputs }) => outputs));
  for (const tensor of graph.kept.flatMap(({ tensors }) => tensors)) {
    if (tensor.output) continue;
    const { input } = tensor;
    tensor.output =
      graph.take((value) => made.has(value.name) && isSame(input)(value)) ??
      graph.like(isFloat(input) ? 'Neg' : 'Identity', input);
    made.delete(tensor.output.name);
  }
}

/** Takes a value whose size differs from run to run, and makes one of a known shape of it. */
export function consume(graph) {
  const { random } = graph;
  if (graph.moving.length === 0) return;
  const x = random.pick(graph.moving);
  if (x.isEmpty) {
    const [sizes] = graph.add('Shape', [x], [['int64', [x.shape.length]]]);
    if (graph.chance(0.5)) graph.add('Size', [x], [['int64', []]]);
    return sizes;
  }
  let value = x;
  const { dtype } = x;
  let { shape, axis } = x;
  const step = (op, inputs, attributes) =>
    (value = move(graph, op, inputs, dtype, shape, axis, attributes));
  for (let i = random.upTo(2); i > 0; --i) {
    const kind = random.upTo(isFloat(x) ? 4 : 2);
    if (kind === 0) step('Identity', [value]);
    else if (kind === 1 && shape.length > 1) {
      const perm = shape.map((_, i) => i).reverse();
      [shape, axis] = [perm.map((i) => shape[i]), perm.indexOf(axis)];
      step('Transpose', [value], { perm });
    } else if (kind === 2) step('Max', [value, graph.constant(dtype, [])]);
    else if (kind === 3) step('Softmax', [value], { axis });
    else if (kind === 4) step(random.pick(['Relu', 'Tanh', 'Abs']), [value]);
  }
  return reduceRows(graph, value, shape, axis);
}

function reduceRows(graph, x, shape, axis) {
  const { random } = graph;
  const { dtype } = x;
  const rest = shape.filter((_, i) => i !== axis);
  const one = [[dtype, rowsAt(shape, axis, 1)]];
  const last = [-1n, largest, BigInt(axis)].map((value) =>
    graph.constant('int64', [1], BigInt64Array.of(value)),
  );
  const kinds = ['Gather', 'Slice', 'Shape', 'Reshape'];
  if (isFloat(x) || dtype === 'int32') kinds.push('Reduce', 'Reduce', 'ArgMax');
  if (dtype === 'float32' && shape.length > 1 && axis >= shape.length - 2) kinds.push('MatMul');
  switch (random.pick(kinds)) {
    case 'Gather':
      return graph.add('Gather', [x, graph.numbers(-1, 0)], [[dtype, rowsAt(shape, axis, 2)]], {
        axis,
      });
    case 'Slice':
      return graph.add('Slice', [x, ...last], one);
    case 'Shape':
      return graph.add('Shape', [x], [['int64', [shape.length]]]);
    case 'Reshape': {
      const flat = move(graph, 'Reshape', [x, graph.numbers(-1)], dtype, [1], 0);
      const parts = [-1n, largest].map((value) =>
        graph.constant('int64', [1], BigInt64Array.of(value)),
      );
      return graph.add('Slice', [flat, ...parts], [[dtype, [1]]]);
    }
    case 'ArgMax':
      return graph.add('ArgMax', [x], [['int64', one[0][1]]], { axis });
    case 'MatMul': {
      const perm = shape.map((_, i) => i);
      perm.push(...perm.splice(-2).reverse());
      const turned = perm.map((i) => shape[i]);
      const side = perm.indexOf(axis);
      const t = move(graph, 'Transpose', [x], dtype, turned, side, { perm });
      const [a, b] = axis === shape.length - 1 ? [x, t] : [t, x];
      const width = axis === shape.length - 1 ? shape.at(-2) : shape.at(-1);
      const square = [...shape.slice(0, -2), width, width];
      return graph.add('MatMul', [a, b], [[dtype, square]]);
    }
    default: {
      const op = random.pick(['Sum', 'Max', 'Min', 'Mean', 'L1', 'SumSquare']);
      const keepdims = random.upTo(1);
      const result = [[dtype, keepdims ? one[0][1] : rest]];
      return graph.add(`Reduce${op}`, [x, known(graph, axis)], result, { keepdims });
    }
  }
}

/** An attention whose keys and values a state keeps. */
export function attend(graph) {
  if (graph.depth > 0 || graph.kept.length > 1) return;
  const { random } = graph;
  const [batch, heads, rows] = [random.pick([1, 2]), random.pick([1, 2]), random.pick([1, 1, 3])];
  const size = 4;
  const width = heads * size;
  const of = (...shape) => exact(graph, shape);
  const group = { axis: 2, tensors: [], feeds: [], rowsOf: () => rows };
  const shape = [batch, heads, 1, size];
  const pair = () => [0, 1].map(() => keptInput(graph, group, 'float32', shape, 2));
  const moved = ['float32', rowsAt(shape, 2, NaN)];
  const end = (op, inputs, result, pasts, attributes) => {
    const results = [['float32', result], ...pasts.map(() => moved)];
    if (op === 'ms.Attention') results[1] = ['float32', [2, ...moved[1]]];
    const [y, ...presents] = graph.add(op, inputs, results, attributes);
    graph.values.splice(-presents.length);
    pasts.forEach(({ tensor }, i) => (tensor.output = { ...presents[i], axis: group.axis }));
    graph.kept.push(group);
    graph.moving.push(...pasts.map(({ tensor }) => tensor.output));
    consume(graph);
    return y;
  };
  switch (random.upTo(3)) {
    case 0: {
      const pasts = pair();
      const q = of(batch, heads, rows, size);
      const hasMask = graph.chance(0.5);
      const mask = { name: graph.name('mask'), dtype: 'float32', shape: [rows, 1], axis: 1 };
      if (hasMask) group.feeds.push({ ...mask, shapeOf: (before) => [rows, before + rows] });
      const inputs = [q, of(...q.shape), of(...q.shape), hasMask ? mask : null];
      inputs.push(...pasts.map(({ value }) => value));
      return end('Attention', inputs, q.shape, pasts, { is_causal: random.upTo(1) });
    }
    case 1: {
      const pasts = pair();
      const q = of(batch, rows, width);
      const bias = graph.chance(0.5) ? of(3 * width) : null;
      const inputs = [q, of(...q.shape), of(...q.shape), bias, null, null];
      inputs.push(...pasts.map(({ value }) => value));
      const attributes = { num_heads: heads, unidirectional: random.upTo(1) };
      return end('ms.MultiHeadAttention', inputs, q.shape, pasts, attributes);
    }
    case 2: {
      group.axis = 3;
      const pasts = [keptInput(graph, group, 'float32', [2, ...shape], 3)];
      const inputs = [of(batch, rows, 3), graph.constant('float32', [3, 3 * width]), of(3 * width)];
      inputs.push(null, pasts[0].value);
      const attributes = { num_heads: heads, unidirectional: random.upTo(1) };
      return end('ms.Attention', inputs, [batch, rows, width], pasts, attributes);
    }
    default: {
      const pasts = pair();
      const add = (op, inputs, result, attributes) =>
        graph.add(op, inputs, [result], attributes)[0];
      const sizes = add('Shape', [pasts[0].value], ['int64', [4]]);
      const before = add('Gather', [sizes, graph.scalar(2n, 'int64')], ['int64', []], { axis: 0 });
      const sum = add('Add', [before, graph.scalar(BigInt(rows), 'int64')], ['int64', []]);
      const total = add('Cast', [sum], ['int32', []], { to: dataTypes.int32 });
      const most = add('Sub', [total, graph.scalar(1, 'int32')], ['int32', []]);
      const lengths = add('Expand', [most, graph.numbers(batch)], ['int32', [batch]]);
      const q = of(batch, rows, 2 * width);
      const inputs = [q, of(batch, rows, width), of(batch, rows, width)];
      inputs.push(...pasts.map(({ value }) => value), lengths, total);
      const rotates = random.upTo(1);
      if (rotates) inputs.push(...[0, 1].map(() => graph.constant('float32', [80, size / 2])));
      const attributes = { num_heads: 2 * heads, kv_num_heads: heads, do_rotary: rotates };
      return end('ms.GroupQueryAttention', inputs, q.shape, pasts, attributes);
    }
  }
}

/** Other elements of the feeds. */
export function otherFeeds(graph) {
  const inputs = graph.values.filter(({ name }) => graph.feeds[name]);
  return Object.fromEntries(
    inputs.map(({ name, dtype, shape }) => [name, { data: graph.data(dtype, shape), shape }]),
  );
}

/** The most rows of a kept tensor. The cosines of a rotation have as many. */
const mostRows = 80;

/**
 * What happens to a model with a state, run by run: { feeds, kept, cut, isCopied }. `kept` has
 * feeds of kept inputs, which replace the state. Sizes of feeds follow from the rows that are kept.
 */
export function* runsOf(graph) {
  const { random } = graph;
  const lengths = graph.kept.map(() => 0);
  const growing = graph.kept.flatMap(({ axis }, i) => (axis === undefined ? [] : i));
  for (let left = random.pick([2, 5, 24]); left > 0; --left) {
    const kept = {};
    const feeds = graph.chance(0.5) ? {} : otherFeeds(graph);
    let cut;
    if (growing.length > 0 && graph.chance(0.06)) {
      cut = random.upTo(Math.min(...growing.map((i) => lengths[i])));
      for (const i of growing) lengths[i] = cut;
    }
    const isCopied = graph.chance(0.05);
    for (const [i, { axis, tensors, feeds: others, rowsOf }] of graph.kept.entries()) {
      if (graph.chance(0.04)) {
        lengths[i] = axis === undefined ? 0 : random.upTo(20);
        for (const { input } of tensors) {
          const shape = rowsAt(input.shape, axis, lengths[i]);
          kept[input.name] = { data: graph.data(input.dtype, shape), shape };
        }
      }
      const rows = rowsOf();
      for (const { name, dtype, shapeOf } of others) {
        const shape = shapeOf(lengths[i], rows);
        feeds[name] = { data: graph.data(dtype, shape), shape };
      }
      if (axis !== undefined) lengths[i] += rows;
    }
    if (lengths.some((length) => length > mostRows - 25)) return;
    yield { feeds, kept, cut, isCopied };
  }
}
