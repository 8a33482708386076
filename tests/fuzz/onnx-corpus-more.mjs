// Models of the fuzzer of wgemm/onnx: with branches, tables, attention, and all other operators.
import { bytes, f, float, learning, list, microsoft, node, ramp, x } from './onnx-corpus-parts.mjs';

const scalar = (name, value) => ({
  name,
  dtype: 'int64',
  shape: [],
  data: BigInt64Array.of(BigInt(value)),
});
const branch = (nodes, output, initializers = []) => ({
  graph: { nodes, initializers, outputs: output.split(' ').map((name) => x(name)) },
});

/** Branches that take names from around them, one in the other, and names that both have. */
const branches = {
  opsets: { '': 17 },
  inputs: [x('x', 'n', 3), { name: 'flag', dtype: 'bool', shape: [] }],
  outputs: [x('y'), x('z'), x('w')],
  initializers: [
    float('one', [], f(1)),
    { name: 'yes', dtype: 'bool', shape: [1], data: Uint8Array.of(1) },
    float('w1', [3, 3], ramp(9)),
  ],
  nodes: [
    node('Relu', 'x', 'a'),
    node('If', 'flag', 'y z', {
      then_branch: branch(
        [
          node('MatMul', 'a w1', 'inner'),
          node('If', 'yes', 'other', {
            then_branch: branch([node('Add', 'inner x', 'deep')], 'deep'),
            else_branch: branch([node('Sub', 'inner own', 'deep')], 'deep'),
          }),
        ],
        'inner other',
        [float('own', [3], ramp(3))],
      ),
      else_branch: branch(
        [node('Neg', 'a', 'inner'), node('Identity', 'x', 'other')],
        'inner other',
      ),
    }),
    node('ReduceMax', 'y', 'most', { keepdims: 0 }),
    node('Less', 'most one', 'isSmall'),
    node('If', 'isSmall', 'w', {
      then_branch: branch([node('Concat', 'y z', 'c', { axis: 0 })], 'c'),
      else_branch: branch([node('Identity', 'y', 'd')], 'd'),
    }),
  ],
};

const floats = (length) => ({ floats: Array.from(ramp(length)) });

/** What scikit-learn exports. */
const tables = {
  opsets: { '': 17, [learning]: 3 },
  inputs: [x('x', 'n', 4)],
  outputs: [{ name: 'label', dtype: 'int64' }, x('map'), x('value')],
  initializers: [list('columns', 3, 0)],
  nodes: [
    node('Scaler', 'x', 's', { offset: floats(4), scale: floats(1) }, learning),
    node('Normalizer', 's', 'n', { norm: 'L2' }, learning),
    node('ArrayFeatureExtractor', 'n columns', 'part', undefined, learning),
    node(
      'LinearClassifier',
      'n',
      'label scores',
      {
        coefficients: floats(12),
        intercepts: floats(3),
        classlabels_ints: [7, -1, 3],
        multi_class: 1,
        post_transform: 'SOFTMAX',
      },
      learning,
    ),
    node('ZipMap', 'scores', 'map', { classlabels_int64s: [7, -1, 3] }, learning),
    node(
      'LinearRegressor',
      'part',
      'value',
      { coefficients: floats(2), intercepts: floats(1), targets: 1 },
      learning,
    ),
  ],
};

const past = (name, ...shape) => x(name, ...shape);

/** A decoder, whose outputs `present` become inputs `past`. */
const decoder = {
  opsets: { '': 23, [microsoft]: 1 },
  inputs: [
    x('x', 1, 'tokens', 8),
    past('past.k', 1, 1, 'before', 4),
    past('past.v', 1, 1, 'before', 4),
  ],
  outputs: [x('y'), x('present.k'), x('present.v')],
  initializers: [
    float('gain', [8], ramp(8)),
    float('w', [8, 16], ramp(128)),
    float('cos', [64, 2], ramp(128)),
    float('sin', [64, 2], ramp(128)),
    scalar('two', 2),
    scalar('one', 1),
    list('parts', 8, 4, 4),
    list('single', 1),
  ],
  nodes: [
    node('RMSNormalization', 'x gain', 'n', { axis: -1 }),
    node('MatMul', 'n w', 'qkv'),
    node('Split', 'qkv parts', 'q k v', { axis: -1 }),
    node('Shape', 'past.k', 'sizes'),
    node('Gather', 'sizes two', 'before', { axis: 0 }),
    node('Shape', 'x', 'own'),
    node('Gather', 'own one', 'tokens', { axis: 0 }),
    node('Add', 'before tokens', 'sum'),
    node('Cast', 'sum', 'total', { to: 6 }),
    node('Sub', 'sum one', 'last'),
    node('Reshape', 'last single', 'lasts'),
    node('Cast', 'lasts', 'lengths', { to: 6 }),
    node(
      'GroupQueryAttention',
      'q k v past.k past.v lengths total cos sin',
      'o present.k present.v',
      { num_heads: 2, kv_num_heads: 1, do_rotary: 1 },
      microsoft,
    ),
    node('SkipSimplifiedLayerNormalization', 'o x gain', 'y', undefined, microsoft),
  ],
};

/** Keys and values of a text, which are kept, too. */
const generator = {
  opsets: { '': 23, [microsoft]: 1 },
  inputs: [
    x('x', 'batch', 2, 4),
    past('past.a', 'batch', 2, 'before', 2),
    past('past.b', 'batch', 2, 'before', 2),
    past('past.c', 2, 'batch', 2, 'before', 2),
    x('past.s', 'batch', 2, 4),
  ],
  outputs: [x('y'), x('present.a'), x('present.b'), x('present.c'), x('present.s')],
  initializers: [
    float('w', [4, 12], ramp(48)),
    float('bias', [12], ramp(12)),
    float('gain', [4], ramp(4)),
    list('heads', 0, 0, 2, 2),
  ],
  nodes: [
    node(
      'MultiHeadAttention',
      'x x x bias _ _ past.a past.b',
      'm a b',
      { num_heads: 2, unidirectional: 1 },
      microsoft,
    ),
    node('Identity', 'a', 'present.a'),
    node('Concat', 'past.b turned', 'present.b', { axis: 2 }),
    node('Reshape', 'x heads', 'split'),
    node('Transpose', 'split', 'turned', { perm: [0, 2, 1, 3] }),
    node('Attention', 'm w bias _ past.c', 'n present.c', { num_heads: 2 }, microsoft),
    node('Attention', 'turned turned turned', 'q', { is_causal: 1 }),
    node('SkipLayerNormalization', 'n past.s gain', 'present.s', undefined, microsoft),
    node('ReduceSum', 'q', 'sum'),
    node('Add', 'present.s sum', 'y'),
  ],
};

/** The start of an encoder, and an attention in 8 bits. */
const encoderStart = {
  opsets: { '': 23, [microsoft]: 1 },
  inputs: [
    { name: 'ids', dtype: 'int32', shape: ['batch', 3] },
    { name: 'mask', dtype: 'int32', shape: ['batch', 3] },
  ],
  outputs: [x('y'), { name: 'count', dtype: 'int32' }],
  initializers: [
    float('words', [5, 4], ramp(20)),
    float('places', [3, 4], ramp(12)),
    float('gain', [4], ramp(4)),
    { name: 'w', dtype: 'uint8', shape: [4, 12], data: bytes(48) },
    float('bias', [12], ramp(12)),
    float('scale', [], f(0.02)),
    { name: 'zero', dtype: 'uint8', shape: [], data: Uint8Array.of(120) },
    float('cos', [3, 1], ramp(3)),
    list('first', 0),
    float('v', [4, 2], ramp(8)),
  ],
  nodes: [
    node(
      'EmbedLayerNormalization',
      'ids _ words places _ gain gain mask',
      'e count',
      undefined,
      microsoft,
    ),
    node('QuantizeLinear', 'e scale zero', 'q'),
    node('QAttention', 'q w bias scale scale mask zero zero', 'a', { num_heads: 2 }, microsoft),
    node('BiasGelu', 'a gain', 'g', undefined, microsoft),
    node('RotaryEmbedding', 'g first cos cos', 'r', { num_heads: 2 }, microsoft),
    node('RotaryEmbedding', 'turned cos3 cos3', 'r2', {}),
    node('Unsqueeze', 'cos first', 'cos3'),
    node('Unsqueeze', 'r first', 'r4'),
    node('Slice', 'r4 first last first', 'turned'),
    node('Constant', '', 'last', { value_ints: [1] }),
    node('FusedMatMul', 'r v', 'f', { alpha: 0.5 }, microsoft),
    node('SimplifiedLayerNormalization', 'r gain', 's'),
    node('ReduceMean', 'f', 'mean', { keepdims: 0 }),
    node('Add', 's mean', 'y'),
  ],
};

/** A chain of functions, then comparisons. */
const unaries =
  'Abs Sign Floor Ceil Round Exp Softplus Softsign Mish Elu HardSigmoid HardSwish ' +
  'ThresholdedRelu Sin Cos';
const functions = {
  opsets: { '': 22, [microsoft]: 1 },
  inputs: [x('x', 2, 'c', 3)],
  outputs: [x('y'), x('z'), { name: 'flags', dtype: 'bool' }],
  initializers: [
    float('part', [3], ramp(3)),
    float('scale', [2], f(1, 2)),
    float('four', [], f(4)),
    list('sizes', 2, 3),
  ],
  nodes: [
    ...unaries.split(' ').map((op, i) => node(op, i === 0 ? 'x' : `u${i - 1}`, `u${i}`)),
    node('Reciprocal', 'u14', 'r'),
    node('Log', 'r', 'l'),
    node('QuickGelu', 'l', 'g', undefined, microsoft),
    node('PRelu', 'g part', 'p'),
    node('Min', 'p part x', 'least'),
    node('Max', 'least x', 'most'),
    node('Mean', 'most x part', 'mean'),
    node('Sum', 'mean x', 'sum'),
    node('Mod', 'sum four', 'mod', { fmod: 1 }),
    node('MeanVarianceNormalization', 'mod', 'm', { axes: [0, 2] }),
    node('Transpose', 'm', 't', { perm: [1, 0, 2] }),
    node('BatchNormalization', 't scale scale scale scale', 'b'),
    node('InstanceNormalization', 't scale scale', 'y'),
    node('Equal', 'b y', 'e'),
    node('Less', 'b y', 'f1'),
    node('LessOrEqual', 'b y', 'f2'),
    node('Greater', 'b y', 'f3'),
    node('GreaterOrEqual', 'b y', 'f4'),
    node('Not', 'e', 'n'),
    node('And', 'f1 f2', 'o1'),
    node('Or', 'f3 f4', 'o2'),
    node('Xor', 'o1 o2', 'o3'),
    node('IsNaN', 'b', 'nan'),
    node('IsInf', 'b', 'inf'),
    node('Where', 'nan o3 inf', 'w'),
    node('Or', 'w n', 'flags'),
    node('Size', 'b', 'size'),
    node('CastLike', 'size part', 'c'),
    node('Range', 'zero c one', 'range'),
    node('Constant', '', 'zero', { value_float: { float: 0 } }),
    node('Constant', '', 'one', { value_float: { float: 1 } }),
    node('ConstantOfShape', 'sizes', 'zeros', {
      value: { tensor: { dtype: 'float32', shape: [1], data: f(2) } },
    }),
    node('ReduceSum', 'range', 'total', { keepdims: 0 }),
    node('Add', 'zeros total', 'z'),
  ],
};

const reduced = 'Max Min Prod L1 L2 SumSquare LogSum LogSumExp';
/** Folds, and operators that take indices. */
const indices = {
  opsets: { '': 20 },
  inputs: [x('x', 'n', 4), { name: 'at', dtype: 'int64', shape: ['n', 4] }],
  outputs: [x('y'), x('z'), x('w'), { name: 'places', dtype: 'int64' }],
  initializers: [
    list('axis', 1),
    list('two', 2),
    list('twice', 1, 2),
    list('pads', 0, 1, 1, 0),
    scalar('k', 1),
    { name: 'rows', dtype: 'int64', shape: [2, 1], data: BigInt64Array.of(0n, -1n) },
    float('updates', [2, 4], ramp(8)),
    float('ends', [2], f(0, 1)),
    scalar('depth', 3),
  ],
  nodes: [
    ...reduced.split(' ').map((op, i) => node(`Reduce${op}`, 'x axis', `r${i}`)),
    node('Sum', 'r0 r1 r2 r3 r4 r5 r6 r7', 'sum'),
    node('ArgMax', 'x', 'most', { axis: 1 }),
    node('ArgMin', 'x', 'least', { axis: 0, select_last_index: 1 }),
    node('Add', 'most least', 'both'),
    node('TopK', 'x two', 'values order', { axis: 1 }),
    node('CumSum', 'values axis0', 'running', { reverse: 1 }),
    node('Squeeze', 'axis', 'axis0'),
    node('Pad', 'running pads', 'padded', { mode: 'edge' }),
    node('Tile', 'padded twice', 'tiled'),
    node('Trilu', 'tiled k', 'y', { upper: 0 }),
    node('GatherElements', 'x at', 'picked', { axis: 0 }),
    node('ScatterElements', 'picked at x', 'scattered', { axis: 1, reduction: 'add' }),
    node('GatherND', 'scattered rows', 'chosen'),
    node('ScatterND', 'x rows chosen', 'written', { reduction: 'max' }),
    node('OneHot', 'order depth ends', 'hot'),
    node('ReduceSum', 'hot', 'z', { keepdims: 0 }),
    node('Add', 'written sum', 'w'),
    node('NonZero', 'both', 'places'),
  ],
};

export const more = [branches, tables, decoder, generator, encoderStart, functions, indices];
