// The graph of a decoder as optimum exports Llama and SmolLM2 from PyTorch, and transformers.js
// loads it: attention, rotation and normalization are written out in nodes. Then the products by
// weights have 4 bits. Weights are random.
import { productMaker } from './decoder.mjs';
import { graphMaker } from './graph.mjs';

const least = -3.4028234663852886e38; // of float32

/** The bytes of the model. The options are the sizes of decoder.mjs, `accuracyLevel` and `seed`. */
export function writtenDecoder(options) {
  const { layers, hidden, heads, keyHeads, head, intermediate, vocabulary, theta } = options;
  const { accuracyLevel = 0, seed = 1 } = options;
  const graph = graphMaker(seed);
  const { node, floats, nearOne, tensor, constant } = graph;
  const product = productMaker(graph, { accuracyLevel, seed });
  const int = (name, value) => constant(name, 'int64', value);
  const float = (name, value) => constant(name, 'float32', value);

  /** One size of a value, as a list of one. */
  const sizeOf = (x, axis, name) => {
    const shape = node('Shape', [x], `${name}/Shape`);
    const one = node('Gather', [shape, int(`${name}/index`, axis)], `${name}/Gather`, { axis: 0 });
    return node('Unsqueeze', [one, int(`${name}/axes`, [0])], name);
  };
  /** A list of sizes: of values, or numbers. */
  const sizes = (list, name) => {
    const parts = list.map((size, i) =>
      typeof size === 'string' ? size : int(`${name}/size ${i}`, [size]),
    );
    return node('Concat', parts, name, { axis: 0 });
  };
  const unsqueeze = (x, axis, name) => node('Unsqueeze', [x, int(`${name}/axes`, [axis])], name);
  const scalarOf = (x, name) => node('Squeeze', [x, int(`${name}/axes`, [0])], name);

  const normalize = (x, name) => {
    const squares = node('Pow', [x, float(`${name}/two`, 2)], `${name}/Pow`);
    const mean = node('ReduceMean', [squares], `${name}/ReduceMean`, { axes: [-1], keepdims: 1 });
    const sum = node('Add', [mean, float(`${name}/epsilon`, 1e-5)], `${name}/Add`);
    const root = node('Sqrt', [sum], `${name}/Sqrt`);
    const inverse = node('Div', [float(`${name}/one`, 1), root], `${name}/Div`);
    const scaled = node('Mul', [x, inverse], `${name}/Mul`);
    return node('Mul', [nearOne(`${name}.weight`, [hidden]), scaled], `${name}/Mul_1`);
  };

  // The sizes of the run.
  const batch = sizeOf('input_ids', 0, '/model/batch');
  const rows = sizeOf('input_ids', 1, '/model/rows');
  const past = sizeOf('past_key_values.0.key', 2, '/model/past');
  const all = node('Add', [past, rows], '/model/all');

  // The least number for a key that is after a query, or that the mask hides.
  const one = int('/model/one', 1);
  const [from, end] = [scalarOf(past, '/model/from'), scalarOf(all, '/model/end')];
  const queries = node('Range', [from, end, one], '/model/Range');
  const keys = node('Range', [int('/model/zero', 0), end, one], '/model/Range_1');
  const column = node('Reshape', [queries, int('/model/column', [-1, 1])], '/model/Reshape');
  const isLater = node('Greater', [keys, column], '/model/Greater');
  const full = node('ConstantOfShape', [sizes([rows, all], '/model/square')], '/model/Full', {
    value: { tensor: { dtype: 'float32', shape: [1], data: Float32Array.of(least) } },
  });
  const later = node('Cast', [isLater], '/model/Cast', { to: 1 });
  const causal = node('Mul', [full, later], '/model/Mul');
  const flat = unsqueeze(unsqueeze(causal, 0, '/model/Unsqueeze'), 1, '/model/Unsqueeze_1');
  const square = sizes([batch, 1, rows, all], '/model/square_1');
  const wide = node('Expand', [flat, square], '/model/Expand');
  const given = unsqueeze(unsqueeze('attention_mask', 1, '/model/mask'), 2, '/model/mask_1');
  const seen = node('Cast', [given], '/model/Cast_1', { to: 1 });
  const both = node('Add', [wide, seen], '/model/Add_1');
  const isHidden = node('Equal', [both, float('/model/nothing', 0)], '/model/Equal');
  const mask = node('Where', [isHidden, float('/model/least', least), wide], '/model/Where');

  // The angles of the rotation.
  const frequencies = tensor(
    'inv_freq',
    'float32',
    [1, head / 2, 1],
    Float32Array.from({ length: head / 2 }, (_, i) => theta ** (-i / (head / 2))),
  );
  const rotary = '/model/rotary_emb';
  const expanded = node(
    'Expand',
    [frequencies, sizes([batch, head / 2, 1], `${rotary}/sizes`)],
    `${rotary}/Expand`,
  );
  const places = node('Cast', [unsqueeze('position_ids', 1, `${rotary}/ids`)], `${rotary}/Cast`, {
    to: 1,
  });
  const angles = node('MatMul', [expanded, places], `${rotary}/MatMul`);
  const turned = node('Transpose', [angles], `${rotary}/Transpose`, { perm: [0, 2, 1] });
  const doubled = node('Concat', [turned, turned], `${rotary}/Concat`, { axis: -1 });
  const factors = ['Cos', 'Sin'].map((op) => {
    const scaled = node(
      'Mul',
      [node(op, [doubled], `${rotary}/${op}`), float(`${rotary}/${op} one`, 1)],
      `${rotary}/${op}/Mul`,
    );
    return unsqueeze(scaled, 1, `${rotary}/${op}/Unsqueeze`);
  });

  const rotate = (x, name) => {
    const slice = (start, end, part) =>
      node(
        'Slice',
        [x, ...[[start], [end], [3], [1]].map((list, i) => int(`${name}/${part} ${i}`, list))],
        `${name}/${part}`,
      );
    const first = slice(0, head / 2, 'Slice');
    const second = node('Neg', [slice(head / 2, 2n ** 63n - 1n, 'Slice_1')], `${name}/Neg`);
    const crossed = node('Concat', [second, first], `${name}/Concat`, { axis: -1 });
    const [cos, sin] = factors;
    const straight = node('Mul', [x, cos], `${name}/Mul`);
    return node('Add', [straight, node('Mul', [crossed, sin], `${name}/Mul_1`)], `${name}/Add`);
  };
  const toHeads = (x, count, name) => {
    const list = sizes([batch, rows, count, head], `${name}/sizes`);
    const parts = node('Reshape', [x, list], `${name}/Reshape`);
    return node('Transpose', [parts], `${name}/Transpose`, { perm: [0, 2, 1, 3] });
  };
  /** Keys or values, for each head of queries. */
  const repeat = (x, name) => {
    const group = heads / keyHeads;
    const list = sizes([batch, keyHeads, group, all, head], `${name}/sizes`);
    const many = node('Expand', [unsqueeze(x, 2, `${name}/Unsqueeze`), list], `${name}/Expand`);
    const rest = sizes([batch, heads, all, head], `${name}/sizes_1`);
    return node('Reshape', [many, rest], `${name}/Reshape`);
  };

  const attention = (x, i, name) => {
    const [q, k, v] = ['q', 'k', 'v'].map((part) => {
      const count = part === 'q' ? heads : keyHeads;
      const y = product(x, `${name}/${part}_proj/MatMul`, hidden, count * head);
      return toHeads(y, count, `${name}/${part}`);
    });
    const fresh = { key: rotate(k, `${name}/k_rotated`), value: v };
    const [allKeys, allValues] = Object.entries(fresh).map(([part, rows]) =>
      node('Concat', [`past_key_values.${i}.${part}`, rows], `present.${i}.${part}`, { axis: 2 }),
    );
    const keysOf = repeat(allKeys, `${name}/keys`);
    const columns = node('Transpose', [keysOf], `${name}/keys/turned`, { perm: [0, 1, 3, 2] });
    // PyTorch multiplies queries and keys by the root of the scale.
    const root = float(`${name}/root`, head ** -0.25);
    const left = node('Mul', [rotate(q, `${name}/q_rotated`), root], `${name}/Mul`);
    const right = node('Mul', [columns, root], `${name}/Mul_1`);
    const scores = node('MatMul', [left, right], `${name}/MatMul`);
    const masked = node('Add', [scores, mask], `${name}/Add`);
    const shares = node('Softmax', [masked], `${name}/Softmax`, { axis: -1 });
    const mixed = node('MatMul', [shares, repeat(allValues, `${name}/values`)], `${name}/MatMul_1`);
    const back = node('Transpose', [mixed], `${name}/Transpose`, { perm: [0, 2, 1, 3] });
    const list = sizes([batch, rows, heads * head], `${name}/sizes`);
    const y = node('Reshape', [back, list], `${name}/Reshape`);
    return product(y, `${name}/o_proj/MatMul`, heads * head, hidden);
  };
  const mlp = (x, name) => {
    const gate = product(x, `${name}/gate_proj/MatMul`, hidden, intermediate);
    const open = node('Sigmoid', [gate], `${name}/act_fn/Sigmoid`);
    const active = node('Mul', [gate, open], `${name}/act_fn/Mul`);
    const up = product(x, `${name}/up_proj/MatMul`, hidden, intermediate);
    const y = node('Mul', [active, up], `${name}/Mul`);
    return product(y, `${name}/down_proj/MatMul`, intermediate, hidden);
  };

  const table = floats('model.embed_tokens.weight', [vocabulary, hidden], Math.sqrt(3));
  let x = node('Gather', [table, 'input_ids'], '/model/embed_tokens/Gather');
  for (let i = 0; i < layers; ++i) {
    const name = `/model/layers.${i}`;
    const attended = attention(normalize(x, `${name}/input_layernorm`), i, `${name}/self_attn`);
    x = node('Add', [x, attended], `${name}/Add`);
    const added = mlp(normalize(x, `${name}/post_attention_layernorm`), `${name}/mlp`);
    x = node('Add', [x, added], `${name}/Add_1`);
  }
  product(normalize(x, '/model/norm'), '/lm_head/MatMul', hidden, vocabulary, 'logits');

  const perLayer = (prefix, rows) =>
    Array.from({ length: layers }, (_, i) =>
      ['key', 'value'].map((part) => ({
        name: `${prefix}.${i}.${part}`,
        dtype: 'float32',
        shape: ['batch_size', keyHeads, rows, head],
      })),
    ).flat();
  const ints = (name, columns) => ({ name, dtype: 'int64', shape: ['batch_size', columns] });
  return graph.encode({
    opsets: { '': 14, 'com.microsoft': 1 },
    irVersion: 7,
    inputs: [
      ints('input_ids', 'sequence_length'),
      ints('attention_mask', 'past_sequence_length + 1'),
      ints('position_ids', 'sequence_length'),
      ...perLayer('past_key_values', 'past_sequence_length'),
    ],
    outputs: [
      { name: 'logits', dtype: 'float32', shape: ['batch_size', 'sequence_length', vocabulary] },
      ...perLayer('present', 'past_sequence_length + 1'),
    ],
  });
}
