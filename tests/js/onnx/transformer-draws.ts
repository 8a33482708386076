/** Random problems of the operators of transformers. */
import { type Input, type NodeCase, randomTensor, tensor } from './onnx-nodes.js';
import type { Random } from '../support/random.js';

type Draw = (random: Random) => Omit<NodeCase, 'op' | 'domain'>;

const f32 = 'float32';
const floats = (random: Random, ...shape: number[]) => randomTensor(random, f32, shape, 1);
const float = (value: number) => ({ float: value });
/** Zeros and ones, and a one first. */
const flags = (random: Random, rows: number, columns: number) =>
  tensor(
    'int32',
    [rows, columns],
    Array.from({ length: rows * columns }, (_, i) =>
      i % columns === 0 ? 1 : random.between(0, 1),
    ),
  );
const int32 = (shape: readonly number[], values: readonly number[]) =>
  tensor('int32', shape, values);

function seeingFirst(mask: Input): Input {
  const data = mask.data as Uint8Array;
  const keys = mask.shape.at(-1) as number;
  for (let i = 0; i < data.length; i += keys) data[i] = 1;
  return mask;
}

/** Bounds for values of about 1. */
const near = [32, 4e-6] as const;

const attention: Draw = (random) => {
  const is3D = random.next() < 0.5;
  const [batch, keyHeads, group] = [random.pick([1, 2]), random.pick([1, 2]), random.pick([1, 3])];
  const heads = keyHeads * group;
  const [queries, size, width] = [random.pick([1, 3, 7]), random.pick([4, 8]), random.pick([4, 5])];
  const past = random.pick([0, 0, 3]);
  const isCausal = random.between(0, 1);
  const rows = isCausal ? queries : random.pick([1, 4, 9]);
  const total = past + rows;
  const of = (count: number, rows: number, size: number) =>
    is3D ? floats(random, batch, rows, count * size) : floats(random, batch, count, rows, size);
  const shape = random.pick([
    [queries, total],
    [batch, 1, queries, total],
    [batch, heads, queries, total],
  ]);
  const mask = random.pick([
    null,
    randomTensor(random, f32, shape, 1),
    // Each query sees its first key.
    seeingFirst(randomTensor(random, 'bool', shape)),
  ]);
  const inputs: (Input | null)[] = [
    of(heads, queries, size),
    of(keyHeads, rows, size),
    of(keyHeads, rows, width),
    mask,
  ];
  if (past)
    inputs.push(
      floats(random, batch, keyHeads, past, size),
      floats(random, batch, keyHeads, past, width),
    );
  while (inputs.at(-1) === null) inputs.pop();
  const scores = random.next() < 0.3 ? { qk_matmul_output_mode: random.between(0, 3) } : undefined;
  return {
    opset: 23,
    inputs,
    outputs: scores ? 4 : past ? 3 : 1,
    attributes: {
      is_causal: isCausal,
      ...scores,
      ...(random.next() < 0.3 && { softcap: float(2) }),
      ...(is3D && { q_num_heads: heads, kv_num_heads: keyHeads }),
      ...(random.next() < 0.3 && { scale: float(0.3) }),
    },
  };
};

const rms = (name: string): Draw => {
  return (random) => {
    const shape = [random.between(1, 4), random.between(1, 5), random.pick([2, 7, 16])];
    const axis = random.pick([-1, 2]);
    return {
      opset: name === 'RMSNormalization' ? 23 : 17,
      inputs: [floats(random, ...shape), floats(random, shape[2] as number)],
      attributes: { axis, epsilon: float(0.01) },
    };
  };
};

const skip =
  (isSimple: boolean): Draw =>
  (random) => {
    const [batch, rows, width] = [
      random.between(1, 3),
      random.between(1, 5),
      random.pick([2, 7, 16]),
    ];
    const x = floats(random, batch, rows, width);
    const part = () => floats(random, width);
    const beta = isSimple ? [] : [random.pick([part(), null])];
    const inputs: (Input | null)[] = [
      x,
      floats(
        random,
        ...random.pick([
          [batch, rows, width],
          [batch, rows, width],
          [1, rows, width],
        ]),
      ),
      part(),
      ...beta,
      random.pick([part(), null]),
    ];
    while (inputs.at(-1) === null) inputs.pop();
    return { opset: 17, inputs, attributes: { epsilon: float(0.01) } };
  };

const rotary =
  (isOnnx: boolean): Draw =>
  (random) => {
    const [batch, heads, rows, size] = [
      random.pick([1, 2]),
      random.pick([1, 3]),
      random.pick([1, 5]),
      16,
    ];
    const is3D = random.next() < 0.5;
    const x = is3D
      ? floats(random, batch, rows, heads * size)
      : floats(random, batch, heads, rows, size);
    const angles = (...shape: number[]) => [floats(random, ...shape), floats(random, ...shape)];
    const interleaved = random.between(0, 1);
    if (!isOnnx) {
      const first = random.pick([0, 2]);
      const positions =
        random.next() < 0.5
          ? tensor('int64', [1], [first])
          : tensor(
              'int64',
              [batch, rows],
              Array.from({ length: batch * rows }, () => random.between(0, 9)),
            );
      return {
        opset: 17,
        inputs: [x, positions, ...angles(10, size / 2)],
        attributes: { interleaved },
      };
    }
    const dim = random.pick([0, 8]);
    const half = (dim || size) / 2;
    const hasPositions = random.next() < 0.5;
    return {
      opset: 23,
      inputs: [
        x,
        ...(hasPositions ? angles(10, half) : angles(batch, rows, half)),
        ...(hasPositions
          ? [
              tensor(
                'int64',
                [batch, rows],
                Array.from({ length: batch * rows }, () => random.between(0, 9)),
              ),
            ]
          : []),
      ],
      attributes: {
        interleaved,
        ...(is3D && { num_heads: heads }),
        ...(dim && { rotary_embedding_dim: dim }),
      },
    };
  };

const embed: Draw = (random) => {
  const [batch, rows, width] = [random.pick([1, 2]), random.between(1, 5), random.pick([3, 8])];
  const ids = (most: number) =>
    int32(
      [batch, rows],
      Array.from({ length: batch * rows }, () => random.between(0, most)),
    );
  const hasTypes = random.next() < 0.6;
  const inputs: (Input | null)[] = [
    ids(10),
    hasTypes ? ids(1) : null,
    floats(random, 11, width),
    floats(random, 7, width),
    hasTypes ? floats(random, 2, width) : null,
    floats(random, width),
    floats(random, width),
    random.pick([flags(random, batch, rows), null]),
  ];
  while (inputs.at(-1) === null) inputs.pop();
  return { opset: 17, inputs, outputs: 2, attributes: { epsilon: float(0.01) } };
};

/** A mask of the attentions of com.microsoft. */
const maskOf = (random: Random, batch: number, queries: number, keys: number) =>
  random.pick([
    null,
    flags(random, batch, keys),
    int32(
      [batch],
      Array.from({ length: batch }, () => random.between(1, keys)),
    ),
    { ...flags(random, batch * queries, keys), shape: [batch, queries, keys] },
  ]);

const multiHead: Draw = (random) => {
  const [batch, heads, queries] = [random.pick([1, 2]), random.pick([1, 2]), random.pick([1, 4])];
  const past = random.pick([0, 0, 3]);
  const size = random.pick([4, 8]);
  const width = past ? size : random.pick([4, 6]); // the runtime refuses other sizes with a past
  const rows = past ? queries : random.pick([queries, 5]);
  const keys = past + rows;
  const isCausal = rows === queries ? random.between(0, 1) : 0;
  const inputs: (Input | null)[] = [
    floats(random, batch, queries, heads * size),
    floats(random, batch, rows, heads * size),
    floats(random, batch, rows, heads * width),
    random.pick([null, floats(random, heads * (2 * size + width))]),
    past ? null : maskOf(random, batch, queries, keys),
    random.pick([
      null,
      floats(random, random.pick([1, batch]), random.pick([1, heads]), queries, keys),
    ]),
    past ? floats(random, batch, heads, past, size) : null,
    past ? floats(random, batch, heads, past, width) : null,
  ];
  while (inputs.at(-1) === null) inputs.pop();
  return {
    opset: 17,
    inputs,
    outputs: past ? 3 : 1,
    attributes: {
      num_heads: heads,
      unidirectional: isCausal,
      ...(random.next() < 0.3 && { scale: float(0.3) }),
    },
  };
};

const group: Draw = (random) => {
  const [batch, keyHeads, each] = [random.pick([1, 2]), random.pick([1, 2]), random.pick([1, 3])];
  const heads = keyHeads * each;
  const size = 16;
  const past = random.pick([0, 0, 5]);
  const rows = past ? random.pick([1, 1, batch === 1 ? 3 : 1]) : random.pick([1, 6]);
  const isPacked = random.next() < 0.4;
  const rotates = random.between(0, 1);
  const total = past + rows;
  const inputs: (Input | null)[] = [
    floats(random, batch, rows, (heads + (isPacked ? 2 * keyHeads : 0)) * size),
    isPacked ? null : floats(random, batch, rows, keyHeads * size),
    isPacked ? null : floats(random, batch, rows, keyHeads * size),
    past ? floats(random, batch, keyHeads, past, size) : null,
    past ? floats(random, batch, keyHeads, past, size) : null,
    int32([batch], Array<number>(batch).fill(total - 1)),
    int32([], [total]),
    ...(rotates ? [floats(random, 20, size / 2), floats(random, 20, size / 2)] : [null, null]),
    random.next() < 0.3
      ? tensor(
          'int64',
          [batch, rows],
          Array.from({ length: batch * rows }, () => random.between(0, 9)),
        )
      : null,
    random.next() < 0.3
      ? floats(random, random.pick([1, batch]), random.pick([1, heads]), rows, total)
      : null,
  ];
  while (inputs.at(-1) === null) inputs.pop();
  return {
    opset: 17,
    inputs,
    outputs: 3,
    attributes: {
      num_heads: heads,
      kv_num_heads: keyHeads,
      do_rotary: rotates,
      ...(rotates && { rotary_interleaved: random.between(0, 1) }),
      ...(random.next() < 0.3 && { local_window_size: 3 }),
      ...(random.next() < 0.3 && { softcap: float(2) }),
      ...(random.next() < 0.3 && { scale: float(0.3) }),
    },
  };
};

const microsoft = (random: Random, isWhole = true): ReturnType<Draw> => {
  const [batch, heads, rows] = [random.pick([1, 2]), random.pick([1, 2]), random.pick([1, 4])];
  const [size, depth] = [random.pick([4, 8]), 5];
  const past = random.pick([0, 0, 3]);
  // Values may have fewer elements than keys.
  const narrow = isWhole && past === 0 && random.next() < 0.3;
  const width = (narrow ? 2.5 : 3) * heads * size;
  const inputs: (Input | null)[] = [
    floats(random, batch, rows, depth),
    floats(random, depth, width),
    floats(random, width),
    maskOf(random, batch, rows, past + rows),
    past ? floats(random, 2, batch, heads, past, size) : null,
    // The runtime refuses both.
    past === 0 && random.next() < 0.3
      ? floats(random, random.pick([1, batch]), random.pick([1, heads]), rows, rows)
      : null,
  ];
  while (inputs.at(-1) === null) inputs.pop();
  return {
    opset: 17,
    inputs,
    outputs: past ? 2 : 1,
    attributes: {
      num_heads: heads,
      unidirectional: random.between(0, 1),
      ...(isWhole && random.next() < 0.3 && { scale: float(0.3) }),
      ...(random.next() < 0.3 && { mask_filter_value: float(-100) }),
      ...(narrow && { qkv_hidden_sizes: [heads * size, heads * size, heads * (size / 2)] }),
    },
  };
};

const quantized: Draw = (random) => {
  const { inputs, attributes, opset } = microsoft(random, false);
  const [x, w, bias, mask] = inputs as readonly Input[];
  const scale = (value: number) => tensor(f32, [], [value]);
  return {
    opset,
    attributes,
    inputs: [
      randomTensor(random, 'uint8', (x as Input).shape),
      randomTensor(random, random.pick(['int8', 'uint8']), (w as Input).shape),
      bias as Input,
      scale(0.01),
      scale(0.01),
      mask && mask.shape.length === 2 && mask.shape[1] === (x as Input).shape[1] ? mask : null,
      tensor('uint8', [], [120]),
    ],
  };
};

const fused: Draw = (random) => {
  const [transA, transB] = [random.between(0, 1), random.between(0, 1)];
  const [m, k, n] = [random.between(1, 9), random.between(1, 9), random.between(1, 9)];
  const stack = random.pick([[], [2], [2, 3]]);
  return {
    opset: 17,
    inputs: [
      floats(random, ...stack, ...(transA ? [k, m] : [m, k])),
      floats(random, ...stack, ...(transB ? [n, k] : [k, n])),
    ],
    attributes: { transA, transB, alpha: float(random.pick([1, 0.3])) },
  };
};

/** A Gemm and an activation, whose attributes have a prefix. */
const fusedGemm: Draw = (random) => {
  const product = fused(random);
  const inputs = product.inputs.map((input) => {
    const shape = input!.shape.slice(-2);
    return floats(random, ...shape);
  });
  const columns = inputs[1]!.shape[product.attributes!['transB'] ? 0 : 1] as number;
  if (random.next() < 0.7) inputs.push(floats(random, columns));
  const activation = random.pick(
    'Elu HardSigmoid LeakyRelu Relu Sigmoid Softplus Softsign Tanh ThresholdedRelu'.split(' '),
  );
  // The runtime has no defaults.
  const hasAlpha = /Elu|Hard|Leaky|Thresholded/.test(activation);
  return {
    ...product,
    inputs,
    attributes: {
      ...product.attributes,
      beta: float(random.pick([1, 0.4])),
      activation,
      ...(hasAlpha && { activation_alpha: float(random.pick([0.2, 0.9])) }),
      ...(activation === 'HardSigmoid' && { activation_beta: float(0.4) }),
    },
  };
};

const biasGelu: Draw = (random) => {
  const width = random.between(1, 20);
  return {
    opset: 17,
    inputs: [floats(random, random.between(1, 4), width), floats(random, width)],
  };
};

/** As in onnx-draws.ts. */
export const transformerDraws: Record<string, readonly [Draw, ulps?: number, absolute?: number]> = {
  Attention: [attention, ...near],
  RMSNormalization: [rms('RMSNormalization'), ...near],
  SimplifiedLayerNormalization: [rms('SimplifiedLayerNormalization'), ...near],
  RotaryEmbedding: [rotary(true), 4, 1e-6],
  'com.microsoft.RotaryEmbedding': [rotary(false), 4, 1e-6],
  'com.microsoft.SkipLayerNormalization': [skip(false), ...near],
  'com.microsoft.SkipSimplifiedLayerNormalization': [skip(true), ...near],
  'com.microsoft.EmbedLayerNormalization': [embed, ...near],
  'com.microsoft.MultiHeadAttention': [multiHead, ...near],
  'com.microsoft.GroupQueryAttention': [group, ...near],
  'com.microsoft.Attention': [(random) => microsoft(random), ...near],
  'com.microsoft.QAttention': [quantized, ...near],
  'com.microsoft.FusedMatMul': [fused, ...near],
  'com.microsoft.FusedGemm': [fusedGemm, ...near],
  'com.microsoft.BiasGelu': [biasGelu, 6, 1e-6],
};
