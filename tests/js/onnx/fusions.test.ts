/**
 * Nodes that are fused: each row on all forms that it takes, and on mutations of these. A mutation
 * must give the result, or the error, that the model gives if every value is an output. Nothing is
 * fused then.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { loadModel, type ModelResult, type ModelTensor, readOnnx } from 'wgemm/onnx';
import { fusions } from '../../../js/onnx/graph/fusions.js';
import { quantizedProducts } from '../../../js/onnx/graph/qdq.js';
import { keyOf } from '../../../js/onnx/operators/operator.js';
import {
  encodeGraph,
  type ModelSpec,
  type NodeSpec,
  type TensorSpec,
} from '../../peers/onnx-model.mjs';
import { plannedSteps } from '../support/planned.js';
import { between, byteTensor, floats, info, node, scalar } from './static-products.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
});
afterAll(() => {
  wg.dispose();
});

/** Nodes that are fused to one. */
interface Form {
  name: string;
  spec: ModelSpec;
  feeds: Record<string, ModelTensor>;
  /** The node that replaces them. */
  becomes: string;
  /** The nodes that it does not replace. */
  others?: readonly string[];
  /**
   * The bound of a difference of floats, relative to 1 + |value|. Integers then differ by 1 at most.
   * 0: every bit is the same.
   */
  bound: number;
}

type Feeds = Form['feeds'];

/** The outcome of a model: its results by name, or the message of its error. */
async function outcome(spec: ModelSpec, feeds: Feeds, outputs?: string[]) {
  const before = wg.memory().inUse;
  const results = await loadModel(encodeGraph(spec), { wg, ...(outputs && { outputs }) })
    .then((model) => model.run(feeds).finally(() => model.dispose()))
    .catch((error: unknown) => (error as Error).message);
  expect(wg.memory().inUse).toBe(before);
  return results;
}

/** The steps of a model: the operator of each, its first output, and whether it is fused. */
async function planned(
  spec: ModelSpec,
): Promise<(readonly [key: string, output: string, isFused: boolean])[]> {
  const model = await readOnnx(encodeGraph(spec));
  const steps = await plannedSteps(model);
  return steps.map(({ checked, outputs, originals }) => [
    keyOf(checked.node),
    outputs[0] as string,
    originals.length > 0,
  ]);
}

/** An outcome. Of an error, the text before B, which may be packed. */
const startOf = (found: unknown): unknown =>
  typeof found === 'string' ? found.replace(/ and B .*/, '') : found;

/** Throws unless a model gives what it gives without fusion. Returns whether y is fused. */
async function expectSame({ spec, feeds, becomes, bound }: Form): Promise<boolean> {
  const fused = (await planned(spec)).filter(([, , isFused]) => isFused);
  const found = await outcome(spec, feeds);
  const all = spec.nodes.flatMap(({ outputs }) => outputs.flatMap((name) => name ?? []));
  const wanted = await outcome(spec, feeds, all);
  const isFused = fused.some(([key, output]) => key === becomes && output === 'y');
  if (typeof found === 'string' || typeof wanted === 'string') {
    expect(startOf(found)).toBe(startOf(wanted));
    expect(found).toContain('node'); // the feeds are right
    return isFused;
  }
  for (const [name, one] of Object.entries(found)) {
    const other = wanted[name] as ModelResult;
    expect(one.shape).toEqual(other.shape);
    expect(one.dtype).toBe(other.dtype);
    if (fused.length === 0 || bound === 0) expect(one.data).toEqual(other.data);
    else expect(distance(one, other)).toBeLessThan(one.dtype === 'float32' ? bound : 1.01);
  }
  return isFused;
}

/** The largest difference. The difference of floats is relative to 1 + |value|. */
function distance(a: ModelResult, b: ModelResult): number {
  let most = 0;
  const isRelative = a.dtype === 'float32';
  (a.data as Float32Array).forEach((value, i) => {
    const other = b.data[i] as number;
    const far = Math.abs(value - other) / (isRelative ? 1 + Math.abs(other) : 1);
    if (!Object.is(value, other)) most = Math.max(most, Number.isNaN(far) ? Infinity : far);
  });
  return most;
}

// The forms.

const x = floats('x', [3, 5, 8], 7, 4) as Feeds[string];
const pairs = <A, B>(a: readonly A[], b: readonly B[]) =>
  a.flatMap((one) => b.map((other) => [one, other] as const));

/** x / 2 times the value f. */
const halves = {
  'half of the product': [node('Mul', ['x', 'f'], 'h'), node('Mul', ['h', '0.5'], 'y')],
  'half of x': [node('Mul', ['x', '0.5'], 'h'), node('Mul', ['h', 'f'], 'y')],
  'half of the factor': [node('Mul', ['f', '0.5'], 'h'), node('Mul', ['h', 'x'], 'y')],
};
const erfs = {
  'Div by a root': [node('Div', ['x', 'root 2'], 'a')],
  'Mul by a root': [node('Mul', ['x', 'root 1/2'], 'a')],
};
const [root, cubes] = ['root 2/pi', '0.044715'];
const byCube = [node('Mul', ['c', cubes], 'd'), node('Add', ['x', 'd'], 'e')];
const tanhs = {
  Pow: [node('Pow', ['x', '3'], 'c'), ...byCube, node('Mul', ['e', root], 'a')],
  'Mul twice': [
    node('Mul', ['x', 'x'], 'b'),
    node('Mul', ['b', 'x'], 'c'),
    ...byCube,
    node('Mul', ['e', root], 'a'),
  ],
  'a factor of x': [
    node('Mul', ['x', root], 'b'),
    node('Mul', ['x', cubes], 'c'),
    node('Mul', ['c', 'x'], 'd'),
    node('Add', ['d', '1'], 'e'),
    node('Mul', ['b', 'e'], 'a'),
  ],
};
const numbers = Object.entries({
  '0.5': 0.5,
  '1': 1,
  '2': 2,
  '3': 3,
  'root 2': Math.SQRT2,
  'root 1/2': Math.SQRT1_2,
  [root]: Math.sqrt(2 / Math.PI),
  [cubes]: 0.044715,
}).map(([name, value]) => scalar(name, value));
/** A model of these nodes, with the constants that they take. */
const specOf = (nodes: NodeSpec[], constants: TensorSpec[] = [], opset = 17): ModelSpec => ({
  opsets: { '': opset },
  nodes,
  inputs: [info('x', 'float32')],
  outputs: [info('y')],
  initializers: [...numbers, ...constants].filter(({ name }) =>
    nodes.some(({ inputs }) => inputs.includes(name as string)),
  ),
});
const gelus = (op: string, becomes: string, starts: Record<string, NodeSpec[]>): Form[] =>
  pairs(Object.entries(starts), Object.entries(halves)).map(([[how, start], [half, end]]) => ({
    name: `Gelu by ${op}, ${how}, ${half}`,
    spec: specOf([...start, node(op, ['a'], 'g'), node('Add', ['g', '1'], 'f'), ...end]),
    feeds: { x },
    becomes,
    bound: 4e-7,
  }));

interface Written {
  square?: 'Pow' | 'Mul';
  /** Whether the numerator and the square have a Sub of their own. */
  isTwice?: boolean;
  hasBeta?: boolean;
  shape?: number[];
  opset?: number;
}
function normalization({
  square = 'Pow',
  isTwice = false,
  hasBeta = true,
  shape = [8],
  opset = 17,
}: Written): Form {
  const mean = (input: string, output: string) =>
    opset < 18
      ? node('ReduceMean', [input], output, { axes: [-1] })
      : node('ReduceMean', [input, 'axes'], output, { keepdims: 1 });
  const [d, scaled] = [isTwice ? 'd2' : 'd', hasBeta ? 'scaled' : 'y'];
  const nodes = [
    mean('x', 'm'),
    node('Sub', ['x', 'm'], 'd'),
    ...(isTwice ? [node('Sub', ['x', 'm'], 'd2')] : []),
    square === 'Pow' ? node('Pow', [d, '2'], 's') : node('Mul', [d, d], 's'),
    mean('s', 'v'),
    node('Add', ['v', 'EPSILON'], 'e'),
    node('Sqrt', ['e'], 'r'),
    node('Div', ['d', 'r'], 'n'),
    node('Mul', ['n', 'GAMMA'], scaled),
    ...(hasBeta ? [node('Add', ['scaled', 'BETA'], 'y')] : []),
  ];
  const axes = { name: 'axes', dtype: 'int64', shape: [1], data: BigInt64Array.of(-1n) };
  const factors = [floats('GAMMA', shape, 2, 3), floats('BETA', shape, 3)];
  const parts = [square, isTwice ? 'two Sub' : 'one Sub', hasBeta ? 'BETA' : 'no BETA'].join(', ');
  return {
    name: `LayerNormalization of opset ${opset}, ${parts}, ${JSON.stringify(shape)}`,
    spec: specOf(nodes, [...factors, scalar('EPSILON', 1e-3), axes], opset),
    feeds: { x },
    becomes: 'LayerNormalization',
    bound: 2e-6,
  };
}
const normalizations = [
  ...pairs(['Pow', 'Mul'] as const, [false, true]).flatMap(([square, isTwice]) =>
    [true, false].map((hasBeta) => normalization({ square, isTwice, hasBeta })),
  ),
  normalization({ shape: [1] }),
  normalization({ shape: [], square: 'Mul' }),
  normalization({ opset: 18 }),
];

function product(
  shape: number[],
  n: number,
  { dtype = 'int8', scales = [n], zeros = [] as number[] | undefined, isLarge = false } = {},
): Form {
  const k = shape.at(-1) as number;
  const weights = byteTensor('W', dtype, [k, n], 4);
  if (isLarge) weights.data?.fill(127 as never); // sums beyond 2^24 round
  const nodes = [
    { op: 'DynamicQuantizeLinear', name: 'q', inputs: ['x'], outputs: ['q', 'scale', 'zero'] },
    node('MatMulInteger', ['q', 'W', 'zero', ...(zeros ? ['ZEROS'] : [])], 'sums'),
    node('Mul', ['scale', 'S'], 's'),
    node('Cast', ['sums'], 'c', { to: 1 }),
    node('Mul', ['c', 's'], 'y'),
  ];
  const constants = [weights, floats('S', scales, 5), byteTensor('ZEROS', dtype, zeros ?? [], 6)];
  const isDifferent = `${scales.length ? `scales ${JSON.stringify(scales)}` : 'a scale'} and zero points ${JSON.stringify(zeros)}`;
  return {
    name: `${dtype} product of ${JSON.stringify(shape)} by ${n}, ${isDifferent}${isLarge ? ', large' : ''}`,
    spec: specOf(nodes, constants),
    feeds: { x: floats('x', shape, 8, 5) as Feeds[string] },
    becomes: 'com.microsoft.MatMulIntegerToFloat',
    others: ['DynamicQuantizeLinear'],
    bound: 0,
  };
}
const quantized = [
  product([2, 3, 40], 24),
  product([7, 33], 17, { dtype: 'uint8', scales: [], zeros: [17] }),
  product([40], 9, { scales: [1], zeros: undefined }),
  product([4, 3], 1, { zeros: [1] }),
  product([3, 0], 5),
  product([5, 3000], 12, { isLarge: true }),
];

const ofStaticScales = [
  between({}),
  between({ transB: 1, alpha: 0.5, hasBias: true, isPerColumn: true }),
  between({ dtype: 'int8', hasBias: true, ends: ['Relu', 'QuantizeLinear'] }),
  between({ transB: 1, hasBias: true, ends: [] }),
  between({ ends: ['Relu'], hasZeros: false, weights: 'uint8' }),
  between({ op: 'MatMul', shape: [2, 3, 40], isPerColumn: true, opset: 23 }),
  between({ op: 'MatMul', weights: 'uint8', ends: ['Relu', 'QuantizeLinear'] }),
  between({ op: 'MatMul', shape: [40], dtype: 'int8', ends: [] }),
];

const gelu = gelus('Erf', 'com.microsoft.Gelu', erfs);
const tanh = gelus('Tanh', 'com.microsoft.FastGelu', tanhs);
const forms: Form[] = [...gelu, ...tanh, ...normalizations, ...quantized, ...ofStaticScales];

describe('is fused', () => {
  it.each(forms.map((form) => [form.name, form] as const))('%s', async (_, form) => {
    const keys = (await planned(form.spec)).map(([key]) => key);
    expect(keys).toEqual([...(form.others ?? []), form.becomes]);
    expect(await expectSame(form)).toBe(true);
  });

  it('by every row, which says whether it is exact', () => {
    const rows = [...fusions, ...quantizedProducts];
    const told = (key: string, isExact: boolean) => `${key}, ${isExact ? '' : 'not '}exact`;
    const wanted = rows.map(({ becomes: [key], isExact }) => told(key, isExact));
    const found = forms.map(({ becomes, bound }) => told(becomes, bound === 0));
    expect(new Set(found)).toEqual(new Set(wanted));
  });

  it('one after another, with what follows a product', async () => {
    const ends = (nodes: readonly NodeSpec[], from: string, to: string) =>
      nodes.map((one) => {
        const rename = (name: string | null) =>
          name === 'x'
            ? from
            : name === 'y'
              ? to
              : numbers.some((n) => n.name === name) || /[A-Z]/.test(name ?? '')
                ? name
                : `${to}.${name}`;
        return { ...one, inputs: one.inputs.map(rename), outputs: one.outputs.map(rename) };
      });
    const first = normalizations[0] as Form;
    const second = product([3, 5, 8], 8);
    const nodes = [
      ...ends(first.spec.nodes, 'x', 'n'),
      ...ends(second.spec.nodes, 'n', 'p'),
      node('Add', ['bias', 'p'], 'b'),
      ...ends((gelu[0] as Form).spec.nodes, 'b', 'u'),
      ...ends((tanh[0] as Form).spec.nodes, 'u', 'y'),
    ];
    const constants = [first, second].flatMap(({ spec }) => spec.initializers ?? []);
    const spec = specOf(nodes, [...constants.slice(1), floats('bias', [8], 4)]);
    const feeds = { x };
    expect((await planned(spec)).map(([key]) => key)).toEqual([
      'LayerNormalization',
      'DynamicQuantizeLinear',
      'com.microsoft.MatMulIntegerToFloat',
      'com.microsoft.Gelu',
      'com.microsoft.FastGelu',
    ]);
    // A normalization that rounds less often may quantize to another byte.
    await expectSame({ ...first, spec, feeds, bound: 0.05 });
    const model = await loadModel(encodeGraph(spec), { wg });
    expect(await model.explain({ x: [3, 5, 8] })).toMatchObject([
      {
        node: 'the sums',
        op: 'MatMulInteger',
        fused: ['Mul', 'Cast', 'Mul', 'Add'],
        packed: true,
        plan: { op: 'matmulIntegerToFloat' },
      },
    ]);
    model.dispose();
  });
});

describe('products of static quantization', () => {
  it('leave a DequantizeLinear to other nodes that take it', async () => {
    const { spec, feeds, ...form } = between({ op: 'MatMul', shape: [3, 12], ends: [] });
    const [first, ...rest] = spec.nodes as [NodeSpec, ...NodeSpec[]];
    const twice = rest.map((each) => ({
      ...each,
      outputs: each.outputs.map((name) => `${name}2`),
    }));
    const second = twice.map((each) => ({
      ...each,
      inputs: each.inputs.map((name) => (name === 'b' ? 'b2' : name)),
    }));
    const both = { ...spec, nodes: [first, ...rest, ...second], outputs: [info('y'), info('y2')] };
    const fused = ['y', 'y2'].map((name) => [form.becomes, name, true]);
    expect(await planned(both)).toEqual(fused);
    await expectSame({ ...form, spec: both, feeds });
    const residual = { ...both, nodes: [...both.nodes, node('Add', ['a', 'y'], 'sum')] };
    const third = { ...residual, outputs: [...both.outputs, info('sum')] };
    expect(await planned(third)).toEqual([
      ['DequantizeLinear', 'a', false],
      ...fused,
      ['Add', 'sum', false],
    ]);
    await expectSame({ ...form, spec: third, feeds });
  });

  it('end a value that other nodes take, too', async () => {
    const memoryOf = async (count: number) => {
      const { spec } = between({ op: 'MatMul', shape: [1, 12], ends: [] });
      const nodes: NodeSpec[] = [node('Identity', ['x'], 'x 0')];
      for (let i = 1; i <= count; ++i)
        nodes.push(
          node('QuantizeLinear', [`x ${i - 1}`, 'A_SCALE', 'A_ZERO'], `q ${i}`),
          node('DequantizeLinear', [`q ${i}`, 'A_SCALE', 'A_ZERO'], `a ${i}`),
          node('Tanh', [`a ${i}`], `t ${i}`),
          node('DequantizeLinear', ['B', 'B_SCALE', 'B_ZERO'], `b ${i}`),
          node('MatMul', [`a ${i}`, `b ${i}`], `y ${i}`),
          node('Add', [`t ${i}`, `y ${i}`], `x ${i}`),
        );
      const ends = { inputs: [info('x', 'float32')], outputs: [info(`x ${count}`)] };
      const whole = { ...spec, nodes, ...ends };
      expect((await planned(whole)).filter(([, , isFused]) => isFused)).toHaveLength(count);
      const model = await loadModel(encodeGraph(whole), { wg });
      await model.run({ x: floats('x', [1000, 12]) as Feeds[string] });
      const { inUse } = wg.memory();
      model.dispose();
      return inUse;
    };
    const more = (await memoryOf(12)) - (await memoryOf(3));
    expect(more / 9).toBeLessThan(12_000); // the plan of a product; a value has 48,000 bytes
  });

  it.each([
    ['a sum that may wrap', between({ shape: [1, 33_100] })],
    [
      'a result that is cut off and does not saturate',
      between({ ends: ['Relu', 'QuantizeLinear'] }),
    ],
  ])('%s', async (_, { spec, ...form }) => {
    const all = spec.initializers?.map((one) =>
      one.name === 'Y_ZERO' ? { ...one, data: Uint8Array.of(1) } : one,
    );
    const changed = { ...spec, initializers: all ?? [] };
    expect(await expectSame({ ...form, spec: changed })).toBe(false);
  });
});

describe('runs the nodes on their own, if the fused node refuses', () => {
  const wide = normalization({});
  const withoutZeros = between({ ends: [], hasZeros: false });
  const refused: [what: string, form: Form, shape: number[] | string][] = [
    [
      'a scale that enlarges the result',
      { ...wide, feeds: { x: floats('x', [3, 1]) as Feeds[string] } },
      [3, 8],
    ],
    [
      'rows of another length',
      { ...wide, feeds: { x: floats('x', [3, 5]) as Feeds[string] } },
      'run: node Mul "the scaled"',
    ],
    ['no axes', { ...wide, feeds: { x: floats('x', []) as Feeds[string] } }, 'node ReduceMean'],
    ['several scales of one column', product([4, 6], 1, { scales: [5] }), [4, 5]],
    [
      'an A of int32',
      {
        ...withoutZeros,
        spec: { ...withoutZeros.spec, inputs: [info('x', 'int32')] },
        feeds: { x: { data: Int32Array.from({ length: 80 }, (_, i) => 50 * i), shape: [2, 40] } },
      },
      [2, 12],
    ],
    [
      'an A of three axes',
      { ...between({}), feeds: { x: byteTensor('x', 'uint8', [1, 2, 40], 1) as Feeds[string] } },
      'run: node Gemm "the product"',
    ],
    [
      'a wrong number of zero points',
      product([4, 6], 3, { zeros: [2] }),
      'run: node MatMulInteger "the sums"',
    ],
  ];
  it.each(refused)('%s', async (_, form, wanted) => {
    expect(await expectSame(form)).toBe(true);
    const found = await outcome(form.spec, form.feeds);
    if (typeof wanted === 'string') expect(found).toContain(wanted);
    else expect((found as Record<string, ModelResult>).y?.shape).toEqual(wanted);
  });

  it('with what follows the product', async () => {
    const { spec, feeds, ...form } = product([4, 6], 1, { scales: [5] });
    const nodes = [
      ...spec.nodes,
      node('Add', ['y', 'bias'], 'b'),
      node('Relu', ['b'], 'r'),
      node('Sqrt', ['r'], 'z'),
    ];
    const initializers = [...(spec.initializers ?? []), floats('bias', [5], 3)];
    const whole = { ...spec, nodes, initializers, outputs: [info('z')] };
    await expectSame({ ...form, spec: whole, feeds });
    const model = await loadModel(encodeGraph(whole), { wg });
    for (let i = 0; i < 3; ++i)
      expect((await model.run(feeds)).z).toEqual(
        ((await outcome(whole, feeds)) as Record<string, ModelResult>).z,
      );
    expect(await model.explain({ x: [4, 6] })).toMatchObject([
      { node: 'the sums', op: 'MatMulInteger', fused: [] },
    ]);
    model.dispose();
  });
});

it('values end as early if the nodes run on their own', async () => {
  const memoryOf = async (count: number) => {
    const one = normalization({});
    const nodes: NodeSpec[] = [node('Identity', ['x'], 'a 0')];
    for (let i = 1; i <= count; ++i) {
      const rename = (name: string | null) =>
        name === 'x' ? `t ${i}` : /^([A-Z]+|2)$/.test(name ?? '') ? name : `${name} ${i}`;
      nodes.push(
        node('Add', [`a ${i - 1}`, 'x'], `a ${i}`),
        node('Tanh', [`a ${i}`], `t ${i}`),
        ...one.spec.nodes.map((each) => ({
          ...each,
          inputs: each.inputs.map(rename),
          outputs: each.outputs.map(rename),
        })),
        node('ReduceMean', [`y ${i}`], `z ${i}`),
      );
    }
    const outputs = Array.from({ length: count }, (_, i) => info(`z ${i + 1}`));
    const model = await loadModel(encodeGraph({ ...one.spec, nodes, outputs }), { wg });
    const methods = Object.getPrototypeOf(wg) as { alloc: (...args: unknown[]) => unknown };
    const { alloc } = methods;
    const sizes: number[] = [];
    methods.alloc = function (this: Gemm, ...args) {
      sizes.push((args[1] as [number])[0]);
      return alloc.apply(this, args);
    };
    try {
      await model.run({ x: floats('x', [3000, 1]) as Feeds[string] });
    } finally {
      methods.alloc = alloc;
      model.dispose();
    }
    return Math.max(...sizes); // of the block of all values
  };
  expect(await memoryOf(12)).toBe((await memoryOf(3)) + 9 * 64); // a line per output
});

// The mutations.

const replaceNode = (spec: ModelSpec, old: NodeSpec, change: Partial<NodeSpec>): ModelSpec => ({
  ...spec,
  nodes: spec.nodes.map((one) => (one === old ? { ...one, ...change } : one)),
});
const replaceConstant = (spec: ModelSpec, old: TensorSpec, change: Partial<TensorSpec>) => ({
  ...spec,
  initializers: spec.initializers?.map((one) => (one === old ? { ...one, ...change } : one)) ?? [],
});

type Mutation = readonly [what: string, form: Form, isFused: boolean | undefined];

/** Nodes of the pattern: a DynamicQuantizeLinear stays as it is. */
const nodesOf = ({ spec, others = [] }: Form) =>
  spec.nodes.filter(({ op }) => !others.includes(op));
const isCommutative = ({ op }: NodeSpec) => op === 'Add' || op === 'Mul';
const swapped = ({ inputs: [a, b, ...rest] }: NodeSpec) => [b ?? null, a ?? null, ...rest];

/** Another order of inputs: all at once, and one node at a time. */
function* swaps(form: Form): Generator<Mutation> {
  const { spec } = form;
  const nodes = spec.nodes.map((one) =>
    isCommutative(one) ? { ...one, inputs: swapped(one) } : one,
  );
  yield ['all that commutes is swapped', { ...form, spec: { ...spec, nodes } }, true];
  for (const one of nodesOf(form)) {
    if (one.inputs.length < 2) continue;
    const inputs = swapped(one);
    const mutant = replaceNode(spec, one, { inputs });
    yield [`${one.name} has swapped inputs`, { ...form, spec: mutant }, isCommutative(one)];
  }
}

/** Something else needs a value between the nodes. */
function* takers(form: Form): Generator<Mutation> {
  const { spec } = form;
  for (const { op, outputs } of nodesOf(form).slice(0, -1)) {
    const name = outputs[0] as string;
    const nodes = [...spec.nodes, node('Identity', [name], 'z')];
    const taken = { ...spec, nodes, outputs: [...(spec.outputs ?? []), info('z')] };
    const isShared = op === 'DequantizeLinear';
    yield [`${name} has another taker`, { ...form, spec: taken }, isShared];
    const returned = { ...spec, outputs: [...(spec.outputs ?? []), info(name)] };
    yield [`${name} is an output`, { ...form, spec: returned }, false];
  }
}

/** Constants of another value, type or shape. */
function* constants(form: Form): Generator<Mutation> {
  const { spec } = form;
  const of = (old: TensorSpec, change: Partial<TensorSpec>) => ({
    ...form,
    spec: replaceConstant(spec, old, change),
  });
  for (const old of spec.initializers ?? []) {
    const { name, dtype, shape, data } = old as Required<TensorSpec>;
    if (dtype === 'float32') {
      const values = data as Float32Array;
      const isNumber = /[a-z\d]/.test(name);
      const isScale = name === 'S' || name.endsWith('_SCALE');
      const isFree = isNumber ? false : !isScale || undefined;
      const change = (by: number) => of(old, { data: values.map((value) => value * by) });
      if (isNumber) yield [`${name} is 3 times as large`, change(3), false];
      yield [`${name} is one ulp larger`, change(1 + 2 ** -23), isFree];
      const isKept = isScale ? name === 'Y_SCALE' && undefined : isFree;
      yield [`${name} is NaN`, change(NaN), isKept];
      yield [`${name} is infinite`, change(Infinity), isKept];
      if (isScale) {
        yield [`${name} is negative`, change(-1), undefined];
        yield [`${name} is 2^20 times as large`, change(2 ** 20), undefined];
        yield [`${name} is tiny`, change(2 ** -120), undefined];
      }
      const doubles = { dtype: 'float64', data: Float64Array.from(values) };
      yield [`${name} is float64`, of(old, doubles), false];
      const more = of(old, { shape: [1, 1, 1, 1, ...shape] });
      yield [`${name} has 4 more axes`, more, false];
      if (isNumber) yield [`${name} has an axis`, of(old, { shape: [1] }), false];
    } else if (dtype.endsWith('int8')) {
      const [other, array] =
        dtype === 'int8' ? (['uint8', Uint8Array] as const) : (['int8', Int8Array] as const);
      const changed = { dtype: other, data: new array(data.buffer as ArrayBuffer) };
      yield [`${name} is ${other}`, of(old, changed), undefined];
      yield [`${name} has 4 more axes`, of(old, { shape: [1, 1, 1, 1, ...shape] }), undefined];
      const dual = { dtype: 'int32', data: Int32Array.from(data as Int8Array) };
      yield [`${name} is int32`, of(old, dual), undefined];
    } else if (dtype === 'int32') {
      const isZero = name === 'C_ZERO';
      const more = (data as Int32Array).map((value) => value + 7);
      yield [`${name} is 7 larger`, of(old, { data: more }), !isZero];
      const most = (data as Int32Array).map(() => 2 ** 31 - 1);
      yield [`${name} is as large as can be`, of(old, { data: most }), false];
      yield [`${name} has 4 more axes`, of(old, { shape: [1, 1, 1, 1, ...shape] }), undefined];
      const bytes = { dtype: 'int8', data: Int8Array.from(data as Int32Array) };
      yield [`${name} is int8`, of(old, bytes), undefined];
      const longs = BigInt64Array.from(data as Int32Array, BigInt);
      yield [`${name} is int64`, of(old, { dtype: 'int64', data: longs }), undefined];
    } else {
      yield ['the axes are [-2]', of(old, { data: BigInt64Array.of(-2n) }), false];
      const two = { data: BigInt64Array.of(-1n, -2n), shape: [2] };
      yield ['the axes are [-1, -2]', of(old, two), false];
    }
  }
  const doubles = (one: TensorSpec | ModelTensor) => ({
    ...one,
    dtype: 'float64',
    data: Float64Array.from(one.data as Float32Array),
  });
  const inputs = [info('x', 'float64')];
  const others = { ...form, feeds: { x: doubles(form.feeds.x as ModelTensor) } as Feeds };
  yield ['x is float64', { ...others, spec: { ...spec, inputs } }, undefined];
  const initializers =
    spec.initializers?.map((one) => (one.dtype === 'float32' ? doubles(one) : one)) ?? [];
  yield ['all is float64', { ...others, spec: { ...spec, inputs, initializers } }, false];
}

const operators: Record<string, string[]> = {
  Add: ['Sub', 'Mul'],
  Sub: ['Add', 'Div'],
  Mul: ['Add', 'Div'],
  Div: ['Mul', 'Sub'],
  Pow: ['Mul', 'Div'],
  Sqrt: ['Tanh', 'Erf'],
  Erf: ['Tanh', 'Sigmoid'],
  Tanh: ['Erf', 'Sigmoid'],
};

/** Other operators, inputs and attributes. */
function* nodes(form: Form): Generator<Mutation> {
  const { spec, feeds } = form;
  const change = (old: NodeSpec, by: Partial<NodeSpec>) => ({
    ...form,
    spec: replaceNode(spec, old, by),
  });
  for (const one of nodesOf(form)) {
    const { op, name, inputs, attributes } = one;
    for (const other of operators[op] ?? [])
      yield [`${name} is computed by ${other}`, change(one, { op: other }), false];
    const sets: object[] =
      op === 'ReduceMean'
        ? [
            { keepdims: 0 },
            ...('axes' in (attributes ?? {})
              ? [{ axes: [-2] }, { axes: [2] }, { axes: [-2, -1] }, { axes: [2n ** 63n - 1n] }]
              : []),
          ]
        : op === 'Cast'
          ? [{ to: 10 }, { to: 11 }, { to: 6 }]
          : [];
    // Whether these are fused depends on the form.
    const others: object[] =
      op === 'Gemm'
        ? [
            { alpha: { float: 0.25 } },
            { alpha: { float: -1 } },
            { beta: { float: 0.5 } },
            { transA: 1 },
            { transB: 1 },
          ]
        : op.endsWith('tizeLinear')
          ? [{ axis: 0 }, { axis: -1 }, { axis: 5 }]
          : [];
    if (op.endsWith('tizeLinear') && spec.opsets?.[''] === 23)
      others.push({ block_size: 8 }, { output_dtype: 10 }, { output_dtype: 3 });
    for (const set of others) {
      const merged = { ...attributes, ...set };
      yield [`${name} has ${JSON.stringify(set)}`, change(one, { attributes: merged }), undefined];
    }
    for (const set of sets)
      yield [
        `${name} has ${Object.entries(set).join()}`,
        change(one, { attributes: { ...attributes, ...set } }),
        false,
      ];
    for (const [i, input] of inputs.entries()) {
      const tensor = spec.initializers?.find(({ name }) => name === input);
      if (tensor && !/[A-Z]/.test(input as string)) continue;
      if (input === 'x' && op === 'DequantizeLinear') continue; // no node would take x
      // A second x, of other elements; or a value from elsewhere, of the same type.
      const given = inputs.map((name, j) => (j === i ? 'other' : name));
      const isBytes = ['q', 'zero'].includes(input as string);
      const shape =
        tensor?.shape ?? (['zero', 'scale'].includes(input as string) ? [] : feeds.x?.shape);
      const value = isBytes
        ? byteTensor('other', 'uint8', shape as number[], 9)
        : tensor && tensor.dtype !== 'float32'
          ? tensor
          : floats('other', [...(shape ?? [])], 9);
      const mutant = replaceNode(spec, one, { inputs: given });
      mutant.inputs = [...(spec.inputs ?? []), info('other', value.dtype)];
      yield [
        `input ${i} of ${name} is another value`,
        { ...form, spec: mutant, feeds: { ...feeds, other: value as Feeds[string] } },
        false,
      ];
    }
  }
}

const families = { swaps, takers, constants, nodes };

describe.each(Object.entries(families))('gives the same with %s', (_, mutate) => {
  it.each(forms.map((form) => [form.name, form] as const))('%s', async (_, form) => {
    for (const [what, mutant, isFused] of mutate(form)) {
      const found = await expectSame(mutant).catch((error: unknown) => {
        throw new Error(`${what}: ${(error as Error).message}`);
      });
      if (isFused !== undefined) expect(`${what}: ${found}`).toBe(`${what}: ${isFused}`);
    }
  });
});
