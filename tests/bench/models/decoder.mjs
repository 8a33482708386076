// The graph of a decoder of text with 4-bit weights, as the model builder of ONNX Runtime GenAI
// writes it for Llama, SmolLM2, Qwen2 and Qwen3. Weights are random.
import { randomFrom } from '../../conformance/qgemm.mjs';
import { graphMaker } from './graph.mjs';

/** The sizes of SmolLM2-135M. */
export const smolLm2 = {
  layers: 30,
  hidden: 576,
  heads: 9,
  keyHeads: 3,
  head: 64,
  intermediate: 1536,
  vocabulary: 49152,
  positions: 8192,
  theta: 100000,
};

/** Sizes for tests. */
export const smallDecoder = {
  layers: 2,
  hidden: 64,
  heads: 4,
  keyHeads: 2,
  head: 16,
  intermediate: 96,
  vocabulary: 300,
  positions: 128,
  theta: 10000,
};

/**
 * The bytes of the model. Its inputs are `input_ids`, `attention_mask`, `position_ids` unless
 * attention rotates, and the past keys and values. Its outputs are `logits` and the present ones.
 *
 * @param options the sizes, as in smolLm2, and:
 *   - `isPacked`: one product makes queries, keys and values, as the builder writes for a CPU
 *   - `rotates`: attention rotates queries and keys, as for a CPU; else RotaryEmbedding does
 *   - `hasBias`: queries, keys and values have a bias, as in Qwen2
 *   - `hasNorms`: each head of queries and keys is normalized, as in Qwen3. Needs isPacked: false
 *   - `isSymmetric`: weights have no zero points
 *   - `accuracyLevel` and `blockSize` of the products
 *   - `headScale`: how far logits are from 0
 *   - `location`: the name of a file for the tensors. Then { bytes, weights } is returned
 */
export function decoder(options = smolLm2) {
  const { layers, hidden, heads, keyHeads, head, intermediate, vocabulary, positions, theta } =
    options;
  const { isPacked = true, rotates = true, hasBias = false, hasNorms = false } = options;
  const {
    isSymmetric = true,
    accuracyLevel = 4,
    blockSize = 32,
    headScale = 1,
    seed = 1,
  } = options;
  const { location } = options;
  const graph = graphMaker(seed);
  const { node, floats, nearOne, tensor, constant } = graph;
  const epsilon = { float: 1e-5 };
  const [queries, keys] = [heads * head, keyHeads * head];

  const product = productMaker(graph, { isSymmetric, accuracyLevel, blockSize, seed });
  const projected = (x, name, to) => {
    const y = product(x, `${name}/MatMul`, hidden, to);
    if (!hasBias) return y;
    return node('Add', [y, floats(`${name}.Add.bias`, [to], 0.1)], `${name}/Add/output_0`);
  };

  /** Normalizes each head of x. */
  const normalizeHeads = (x, name, width) => {
    const list = constant(`${name}/to heads`, 'int64', [0, -1, head]);
    const rows = node('Reshape', [x, list], `${name}/Reshape_1/output_0`);
    const y = normalize([rows], `${name}/SimplifiedLayerNormalization/output_0`, head);
    const back = constant(`${name}/to rows`, 'int64', [0, -1, width]);
    return node('Reshape', [y, back], `${name}/Reshape_2/output_0`);
  };
  const normalize = ([x], y, width) => {
    const weight = nearOne(`${y}.weight`, [width]);
    const attributes = { axis: -1, stash_type: 1, epsilon };
    return node('SimplifiedLayerNormalization', [x, weight], y, attributes);
  };
  /** Adds, and normalizes the sum. Returns both. */
  const addAndNormalize = (x, skip, name, isLast) => {
    const inputs = [x, skip, nearOne(`${name}.weight`, [hidden])];
    const [y, sum] = [`${name}/output_0`, `${name}/output_3`];
    const outputs = isLast ? [y] : [y, '', '', sum];
    node('com.microsoft.SkipSimplifiedLayerNormalization', inputs, outputs, { epsilon });
    return [y, sum];
  };

  // The numbers of tokens, from the mask.
  const mask = '/model/attn_mask_reformat/attn_mask_subgraph';
  const one = constant('/model/constants/INT64/[1]', 'int64', [1]);
  const sums = node('ReduceSum', ['attention_mask', one], `${mask}/ReduceSum/output_0`, {
    keepdims: 0,
  });
  const less = node('Sub', [sums, one], `${mask}/Sub/output_0`);
  const lengths = node('Cast', [less], `${mask}/Sub/Cast/output_0`, { to: 6 });
  const shape = node('Shape', ['attention_mask'], `${mask}/Shape/output_0`);
  const index = constant('/model/constants/INT64/1', 'int64', 1);
  const size = node('Gather', [shape, index], `${mask}/Gather/output_0`, { axis: 0 });
  const total = node('Cast', [size], `${mask}/Gather/Cast/output_0`, { to: 6 });

  const caches = ['cos', 'sin'].map((name) => {
    const data = new Float32Array(positions * (head / 2));
    for (let i = 0; i < data.length; ++i) {
      const angle = Math.floor(i / (head / 2)) * theta ** (-(i % (head / 2)) / (head / 2));
      data[i] = Math[name](angle);
    }
    return tensor(`${name}_cache`, 'float32', [positions, head / 2], data);
  });
  const rotate = (x, name) =>
    node(
      'com.microsoft.RotaryEmbedding',
      [x, 'position_ids', ...caches],
      `${name}/RotaryEmbedding/output_0`,
      { interleaved: 0, num_heads: 0, rotary_embedding_dim: 0 },
    );

  const attention = (x, i, name) => {
    let parts;
    if (isPacked) parts = [projected(x, `${name}/qkv_proj`, queries + 2 * keys), '', ''];
    else {
      parts = [
        projected(x, `${name}/q_proj`, queries),
        projected(x, `${name}/k_proj`, keys),
        projected(x, `${name}/v_proj`, keys),
      ];
      if (hasNorms) {
        parts[0] = normalizeHeads(parts[0], `${name}/q_norm`, queries);
        parts[1] = normalizeHeads(parts[1], `${name}/k_norm`, keys);
      }
      if (!rotates)
        ['q', 'k'].forEach((part, p) => (parts[p] = rotate(parts[p], `${name}/${part}_rotary`)));
    }
    const past = ['key', 'value'].map((part) => `past_key_values.${i}.${part}`);
    const present = ['key', 'value'].map((part) => `present.${i}.${part}`);
    const inputs = [...parts, ...past, lengths, total, ...(rotates ? caches : ['', '']), '', ''];
    const y = `${name}/GroupQueryAttention/output_0`;
    node('com.microsoft.GroupQueryAttention', inputs, [y, ...present], {
      ...{ num_heads: heads, kv_num_heads: keyHeads, scale: { float: 1 / Math.sqrt(head) } },
      ...{ local_window_size: -1, softcap: { float: 0 } },
      ...{ do_rotary: Number(rotates), rotary_interleaved: 0 },
    });
    return product(y, `${name}/o_proj/MatMul`, queries, hidden);
  };
  const mlp = (x, name) => {
    const gate = product(x, `${name}/gate_proj/MatMul`, hidden, intermediate);
    const up = product(x, `${name}/up_proj/MatMul`, hidden, intermediate);
    const open = node('Sigmoid', [gate], `${name}/act_fn/Sigmoid/output_0`);
    const active = node('Mul', [gate, open], `${name}/act_fn/Mul/output_0`);
    const both = node('Mul', [active, up], `${name}/Mul/output_0`);
    return product(both, `${name}/down_proj/MatMul`, intermediate, hidden);
  };

  const table = floats('model.embed_tokens.weight', [vocabulary, hidden], Math.sqrt(3));
  const embedded = node('Gather', [table, 'input_ids'], '/model/embed_tokens/Gather/output_0');
  let sum = embedded;
  let x = normalize([sum], '/model/layers.0/input_layernorm/output_0', hidden);
  for (let i = 0; i < layers; ++i) {
    const name = `/model/layers.${i}`;
    const attended = attention(x, i, `${name}/attn`);
    [x, sum] = addAndNormalize(sum, attended, `${name}/post_attention_layernorm`);
    const added = mlp(x, `${name}/mlp`);
    const isLast = i === layers - 1;
    const next = isLast ? `/model/layers.${layers}/final_norm` : `/model/layers.${i + 1}/input`;
    [x, sum] = addAndNormalize(sum, added, `${next}_layernorm`, isLast);
  }
  product(x, '/lm_head/MatMul', hidden, vocabulary, 'logits', headScale);

  const perLayer = (prefix, rows) =>
    Array.from({ length: layers }, (_, i) =>
      ['key', 'value'].map((part) => ({
        name: `${prefix}.${i}.${part}`,
        dtype: 'float32',
        shape: ['batch_size', keyHeads, rows, head],
      })),
    ).flat();
  const ints = (name, columns) => ({ name, dtype: 'int64', shape: ['batch_size', columns] });
  const logits = ['batch_size', 'sequence_length', vocabulary];
  const model = {
    opsets: { '': 21, 'com.microsoft': 1 },
    irVersion: 10,
    inputs: [
      ints('input_ids', 'sequence_length'),
      ints('attention_mask', 'total_sequence_length'),
      ...(rotates ? [] : [ints('position_ids', 'sequence_length')]),
      ...perLayer('past_key_values', 'past_sequence_length'),
    ],
    outputs: [
      { name: 'logits', dtype: 'float32', shape: logits },
      ...perLayer('present', 'total_sequence_length'),
    ],
  };
  return location ? graph.encodeWithFile(model, location) : graph.encode(model);
}

/** Returns a function that adds a product by random weights of 4 bits. */
export function productMaker(graph, { isSymmetric = true, accuracyLevel, blockSize = 32, seed }) {
  const random = randomFrom(seed);
  const { node, nearOne, tensor, takeBack } = graph;
  return (x, name, from, to, y = `${name}/output_0`, scale = 1) => {
    const blocks = Math.ceil(from / blockSize);
    const path = name.slice(1).replaceAll('/', '.');
    const bytes = new Uint8Array(to * blocks * (blockSize / 2));
    // from 1 to 15, so that the mean is 8: the zero point
    const four = () => 1 + Math.floor(15 * random());
    for (let i = 0; i < bytes.length; ++i) bytes[i] = four() | (four() << 4);
    const shape = [to, blocks, blockSize / 2];
    const weights = tensor(`${path}.weight_Q4G${blockSize}`, 'uint8', shape, bytes);
    nearOne(`${path}.weight_scale`, [to * blocks], 0.2);
    const scales = takeBack();
    const spread = scale / (4.3 * Math.sqrt(from)); // so that y is as large as x
    tensor(
      scales.name,
      'float32',
      scales.shape,
      scales.data.map((value) => value * spread),
    );
    const inputs = [x, weights, scales.name];
    if (!isSymmetric) {
      const zeros = new Uint8Array(to * Math.ceil(blocks / 2)).fill(0x88);
      inputs.push(tensor(`${path}.weight_zp`, 'uint8', [zeros.length], zeros));
    }
    return node('com.microsoft.MatMulNBits', inputs, y, {
      ...{ K: from, N: to, bits: 4, block_size: blockSize, accuracy_level: accuracyLevel },
    });
  };
}

/** The outputs that become inputs of the next run, for model.state(). */
export const keptOf = ({ layers }) =>
  Object.fromEntries(
    Array.from({ length: layers }, (_, i) =>
      ['key', 'value'].map((part) => [`present.${i}.${part}`, `past_key_values.${i}.${part}`]),
    ).flat(),
  );

/**
 * The inputs of a run besides what is kept.
 *
 * @param ids the new tokens
 * @param past how many tokens the runs before had
 */
export function tokenFeeds(ids, past, { rotates = true } = {}) {
  const ints = (list) => ({
    dtype: 'int64',
    shape: [1, list.length],
    data: BigInt64Array.from(list, BigInt),
  });
  return {
    input_ids: ints(ids),
    attention_mask: ints(new Array(past + ids.length).fill(1)),
    ...(rotates ? {} : { position_ids: ints(ids.map((_, i) => past + i)) }),
  };
}
