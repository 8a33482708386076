/**
 * BERT as torch.onnx.export(dynamo=True) writes it at opset 18, before its optimizer runs:
 * functions of torchlib are inlined, and their constants are nodes.
 */
import { exported } from './exported.js';

/** aten.view. The sizes are names of scalars, or numbers. */
const view = (y: string, x: string, ...sizes: (string | number)[]): string => {
  const parts = sizes.map((size, i) =>
    typeof size === 'number' ? `int64[1] {${size}}` : `${y}.size${i}`,
  );
  const scalars = sizes.flatMap((size, i) =>
    typeof size === 'number'
      ? []
      : [`  ${y}.size${i} = Reshape <allowzero = 0> (${size}, int64[1] {-1})`],
  );
  return `${scalars.join('\n')}
  ${y}.sizes = Concat <axis = 0> (${parts.join(', ')})
  ${y}.cast = Cast <to = 7> (${y}.sizes)
  ${y} = Reshape <allowzero = 1> (${x}, ${y}.cast)`;
};

/** aten.linear of three axes. */
const linear = (y: string, x: string, name: string, from: number, to: number): string => `
  ${y}.t = Transpose <perm = [1, 0]> (float[${to}, ${from}] ${name}.weight)
  ${y}.product = MatMul (${x}, ${y}.t)
  ${y} = Add (${y}.product, float[${to}] ${name}.bias)`;

const heads = (part: string): string => `
${linear(`${part}.linear`, 'layer_norm', `${part}_proj`, 32, 32)}
${view(`${part}.view`, `${part}.linear`, 'sym_size_int_1', 'sym_size_int', 4, 8)}
  ${part} = Transpose <perm = [0, 2, 1, 3]> (${part}.view)`;

/** aten.scaled_dot_product_attention with a mask of float32. */
const attention = `
  q_shape = Shape <start = 0> (query)
  minus_1 = Constant <value_ints = [-1]> ()
  q_last_dim = Gather <axis = 0> (q_shape, minus_1)
  embedding_size = CastLike (q_last_dim, query)
  one = Constant <value_float = 1.0> ()
  cast_one = CastLike (one, query)
  root = Sqrt (embedding_size)
  scale = Div (cast_one, root)
  scale_0 = CastLike (scale, query)
  key_shape = Shape <start = 0> (key)
  last = Constant <value_ints = [9223372036854775807]> ()
  key_last_dim = Slice (key_shape, int64[1] {-1}, last)
  key_second_last_dim = Slice (key_shape, int64[1] {-2}, int64[1] {-1})
  first = Constant <value_ints = [-9223372036854775808]> ()
  key_first_dims = Slice (key_shape, first, int64[1] {-2})
  minus_1_0 = Constant <value_ints = [-1]> ()
  key_squeezed_shape = Concat <axis = 0> (minus_1_0, key_second_last_dim, key_last_dim)
  key_squeezed = Reshape <allowzero = 0> (key, key_squeezed_shape)
  key_squeezed_transposed = Transpose <perm = [0, 2, 1]> (key_squeezed)
  key_transposed_shape = Concat <axis = 0> (key_first_dims, key_last_dim, key_second_last_dim)
  key_transposed = Reshape <allowzero = 0> (key_squeezed_transposed, key_transposed_shape)
  scale_root = Sqrt (scale_0)
  query_scaled = Mul (query, scale_root)
  scale_root_0 = Sqrt (scale_0)
  key_transposed_scaled = Mul (key_transposed, scale_root_0)
  scores = MatMul (query_scaled, key_transposed_scaled)
  masked = Add (scores, mask)
  attn_weight = Softmax <axis = -1> (masked)
  dropout_p = Constant <value_float = 0.0> ()
  attn_weight_0, = Dropout (attn_weight, dropout_p)
  scaled_dot_product_attention = MatMul (attn_weight_0, value)`;

const gelu = `
  root_2 = Constant <value_float = 1.4142135> ()
  root_2_cast = CastLike (root_2, linear_4)
  gelu.inner = Div (linear_4, root_2_cast)
  gelu.erf = Erf (gelu.inner)
  gelu.one = Constant <value_int = 1> ()
  gelu.one_cast = CastLike (gelu.one, gelu.erf)
  gelu.sum = Add (gelu.erf, gelu.one_cast)
  gelu.product = Mul (linear_4, gelu.sum)
  gelu.half = Constant <value_float = 0.5> ()
  gelu.half_cast = CastLike (gelu.half, gelu.product)
  gelu = Mul (gelu.half_cast, gelu.product)`;

const norm = (y: string, x: string, name: string): string => `
  ${y} = LayerNormalization <axis = -1, epsilon = 1e-12, stash_type = 1>
    (${x}, float[32] ${name}.weight, float[32] ${name}.bias)`;

const bert = `main_graph (
  int64[b, s] input_ids,
  int64[b, s] attention_mask,
  int64[b, s] token_type_ids,
) => (float[b, s, 32] last_hidden_state, float[b, 32] pooler_output) {
  size_0 = Shape <end = 2, start = 1> (input_ids)
  sym_size_int = Squeeze (size_0)
  size_1 = Shape <end = 1, start = 0> (input_ids)
  sym_size_int_1 = Squeeze (size_1)
  slice_end = Reshape <allowzero = 0> (sym_size_int, int64[1] {-1})
  slice_1 = Slice (int64[1, 64] position_ids, int64[1] {0}, slice_end, int64[1] {1}, int64[1] {1})
  embedding = Gather <axis = 0> (float[50, 32] word_embeddings.weight, input_ids)
  embedding_1 = Gather <axis = 0> (float[2, 32] type_embeddings.weight, token_type_ids)
  add = Add (embedding, embedding_1)
  embedding_2 = Gather <axis = 0> (float[64, 32] position_embeddings.weight, slice_1)
  add_1 = Add (add, embedding_2)
  ${norm('layer_norm.own', 'add_1', 'embeddings.norm')}
  layer_norm = Identity (layer_norm.own)

  unsqueeze = Unsqueeze (attention_mask, int64[1] {1})
  unsqueeze_1 = Unsqueeze (unsqueeze, int64[1] {2})
  expand.b = Reshape <allowzero = 0> (sym_size_int_1, int64[1] {-1})
  expand.q = Reshape <allowzero = 0> (sym_size_int, int64[1] {-1})
  expand.k = Reshape <allowzero = 0> (sym_size_int, int64[1] {-1})
  expand.size = Concat <axis = 0> (expand.b, int64[1] {1}, expand.q, expand.k)
  expand.cast = Cast <to = 7> (expand.size)
  expand.abs = Abs (expand.cast)
  expand = Expand (unsqueeze_1, expand.abs)
  _to_copy = Cast <to = 1> (expand)
  rsub.one = Constant <value_float = 1.0> ()
  rsub = Sub (rsub.one, _to_copy)
  _to_copy_1 = Cast <to = 9> (rsub)
  fill = Constant <value = float {-3.4028235e+38}> ()
  fill_cast = CastLike (fill, rsub)
  mask = Where (_to_copy_1, fill_cast, rsub)
  ${['query', 'key', 'value'].map(heads).join('\n')}
  ${attention}
  transpose_3 = Transpose <perm = [0, 2, 1, 3]> (scaled_dot_product_attention)
  ${view('view_3', 'transpose_3', 'sym_size_int_1', 'sym_size_int', 32)}
  ${linear('linear_3', 'view_3', 'output', 32, 32)}
  add_3 = Add (linear_3, layer_norm)
  ${norm('layer_norm_1', 'add_3', 'output.norm')}
  ${linear('linear_4', 'layer_norm_1', 'intermediate', 32, 64)}
  ${gelu}
  ${linear('linear_5', 'gelu', 'dense', 64, 32)}
  add_4 = Add (linear_5, layer_norm_1)
  ${norm('last_hidden_state', 'add_4', 'dense.norm')}
  select = Gather <axis = 1> (last_hidden_state, int64 {0})
  linear_6 = Gemm <transB = 1> (select, float[32, 32] pooler.weight, float[32] pooler.bias)
  pooler_output = Tanh (linear_6)
}`;

export const dynamoBert = exported({
  name: 'dynamo: BERT',
  text: bert,
  opsets: { '': 18 },
  runs: [
    { b: 1, s: 7 },
    { b: 3, s: 12 },
  ],
  bound: 1e-5,
});
