/**
 * Llama as torch.onnx.export(dynamo=True) writes it at opset 18, after its optimizer: constants are
 * initializers. The mask is of recent versions of transformers, which index the mask of the caller.
 * The dense layers are from Phi-3, which
 * splits the product of two layers.
 */
import { exported } from './exported.js';

const norm = (y: string, x: string, name: string): string => `
  ${y}.pow = Pow (${x}, float {2.0})
  ${y}.mean = ReduceMean <keepdims = 1, noop_with_empty_axes = 0> (${y}.pow, int64[1] {-1})
  ${y}.add = Add (${y}.mean, float {1e-05})
  ${y}.sqrt = Sqrt (${y}.add)
  ${y}.rsqrt = Reciprocal (${y}.sqrt)
  ${y}.mul = Mul (${x}, ${y}.rsqrt)
  ${y} = Mul (float[32] ${name}.weight, ${y}.mul)`;

const heads = (part: string, count: number): string => `
  linear_${part} = MatMul (mul_norm, float[32, ${count * 8}] ${part}_proj)
  view_${part}.size = Concat <axis = 0> (batch, tokens, int64[1] {-1}, int64[1] {8})
  view_${part} = Reshape <allowzero = 1> (linear_${part}, view_${part}.size)
  ${part} = Transpose <perm = [0, 2, 1, 3]> (view_${part})`;

const rotate = (part: string): string => `
  mul_${part} = Mul (${part}, cos)
  slice_${part} = Slice (${part}, int64[1] {0}, int64[1] {4}, int64[1] {3}, int64[1] {1})
  slice_${part}_1 = Slice (${part}, int64[1] {4}, int64[1] {9223372036854775807}, int64[1] {3},
    int64[1] {1})
  neg_${part} = Neg (slice_${part}_1)
  cat_${part} = Concat <axis = -1> (neg_${part}, slice_${part})
  mul_${part}_1 = Mul (cat_${part}, sin)
  add_${part} = Add (mul_${part}, mul_${part}_1)`;

/** repeat_kv() of transformers. */
const repeat = (part: string, x: string): string => `
  unsqueeze_${part} = Unsqueeze (${x}, int64[1] {2})
  expand_${part}.size = Concat <axis = 0> (batch, int64[1] {2}, int64[1] {2}, total, int64[1] {8})
  expand_${part}.abs = Abs (expand_${part}.size)
  expand_${part} = Expand (unsqueeze_${part}, expand_${part}.abs)
  repeat_${part}.size = Concat <axis = 0> (batch, int64[1] {4}, total, int64[1] {8})
  repeat_${part} = Reshape <allowzero = 1> (expand_${part}, repeat_${part}.size)`;

const llama = `main_graph (
  int64[b, s] input_ids,
  int64[b, t] attention_mask,
  int64[b, s] position_ids,
  float[b, 2, p, 8] past_key_values_key_cache_0,
  float[b, 2, p, 8] past_key_values_value_cache_0,
) => (float[b, s, 50] logits, float present_key_0, float present_value_0) {
  batch = Shape <end = 1, start = 0> (input_ids)
  sym_size_int_b = Squeeze (batch)
  tokens = Shape <end = 2, start = 1> (input_ids)
  sym_size_int_s = Squeeze (tokens)
  past = Shape <end = 3, start = 2> (past_key_values_key_cache_0)
  sym_size_int_p = Squeeze (past)
  embedding = Gather <axis = 0> (float[50, 32] embed_tokens.weight, input_ids)
  add_total = Add (sym_size_int_s, sym_size_int_p)
  total = Reshape <allowzero = 0> (add_total, int64[1] {-1})
  arange = Range (sym_size_int_p, add_total, int64 {1})

  _to_copy = Cast <to = 9> (attention_mask)
  arange_b = Range (int64 {0}, sym_size_int_b, int64 {1})
  arange_k = Range (int64 {0}, add_total, int64 {1})
  index_b = Unsqueeze (arange_b, int64[3] {1, 2, 3})
  index_q = Unsqueeze (arange, int64[3] {0, 1, 3})
  index_k = Unsqueeze (arange_k, int64[3] {0, 1, 2})
  le = LessOrEqual (index_k, index_q)
  index.max = Max (index_b, index_k)
  index.shape = Shape <start = 0> (index.max)
  index.b = Expand (index_b, index.shape)
  index.b1 = Unsqueeze (index.b, int64[1] {-1})
  index.k = Expand (index_k, index.shape)
  index.k1 = Unsqueeze (index.k, int64[1] {-1})
  index.all = Concat <axis = -1> (index.b1, index.k1)
  index = GatherND <batch_dims = 0> (_to_copy, index.all)
  new_ones = Expand (bool {1}, int64[0] {})
  bitwise_and = And (new_ones, le)
  bitwise_and_1 = And (bitwise_and, index)
  expand.size = Concat <axis = 0> (batch, int64[1] {-1}, tokens, total)
  expand.abs = Abs (expand.size)
  mask = Expand (bitwise_and_1, expand.abs)

  unsqueeze_freq = Unsqueeze (float[4] inv_freq {1.0, 0.1, 0.01, 0.001}, int64[2] {0, 2})
  expand_freq.size = Concat <axis = 0> (batch, int64[1] {-1}, int64[1] {1})
  expand_freq.abs = Abs (expand_freq.size)
  expand_freq = Expand (unsqueeze_freq, expand_freq.abs)
  unsqueeze_pos = Unsqueeze (position_ids, int64[1] {1})
  _to_copy_1 = Cast <to = 1> (unsqueeze_pos)
  matmul = MatMul (expand_freq, _to_copy_1)
  transpose = Transpose <perm = [0, 2, 1]> (matmul)
  cat = Concat <axis = -1> (transpose, transpose)
  cos_1 = Cos (cat)
  sin_1 = Sin (cat)
  cos = Unsqueeze (cos_1, int64[1] {1})
  sin = Unsqueeze (sin_1, int64[1] {1})
  ${norm('mul_norm', 'embedding', 'input_layernorm')}
  ${heads('q', 4)}
  ${heads('k', 2)}
  ${heads('v', 2)}
  ${rotate('q')}
  ${rotate('k')}
  present_key_0 = Concat <axis = -2> (past_key_values_key_cache_0, add_k)
  present_value_0 = Concat <axis = -2> (past_key_values_value_cache_0, v)
  ${repeat('k', 'present_key_0')}
  ${repeat('v', 'present_value_0')}

  key_shape = Shape <start = 0> (repeat_k)
  key_last_dim = Slice (key_shape, int64[1] {-1}, int64[1] {9223372036854775807})
  key_second_last_dim = Slice (key_shape, int64[1] {-2}, int64[1] {-1})
  key_first_dims = Slice (key_shape, int64[1] {-9223372036854775808}, int64[1] {-2})
  key_squeezed_shape = Concat <axis = 0> (int64[1] {-1}, key_second_last_dim, key_last_dim)
  key_squeezed = Reshape <allowzero = 0> (repeat_k, key_squeezed_shape)
  key_squeezed_transposed = Transpose <perm = [0, 2, 1]> (key_squeezed)
  key_transposed_shape = Concat <axis = 0> (key_first_dims, key_last_dim, key_second_last_dim)
  key_transposed = Reshape <allowzero = 0> (key_squeezed_transposed, key_transposed_shape)
  query_scaled = Mul (add_q, float[1] {0.59460354})
  key_scaled = Mul (key_transposed, float[1] {0.59460354})
  scores = MatMul (query_scaled, key_scaled)
  float_mask = Where (mask, float {0.0}, float {-inf})
  masked = Add (scores, float_mask)
  softmax = Softmax <axis = -1> (masked)
  is_nan = IsNaN (softmax)
  weights = Where (is_nan, float {0.0}, softmax)
  attention = MatMul (weights, repeat_v)
  transpose_o = Transpose <perm = [0, 2, 1, 3]> (attention)
  view_o.size = Concat <axis = 0> (batch, tokens, int64[1] {-1})
  view_o = Reshape <allowzero = 1> (transpose_o, view_o.size)
  linear_o = MatMul (view_o, float[32, 32] o_proj)
  add_o = Add (embedding, linear_o)
  ${norm('mul_norm_1', 'add_o', 'post_attention_layernorm')}
  linear_gate_up = MatMul (mul_norm_1, float[32, 128] gate_up_proj)
  split_0, split_1 = Split <axis = -1, num_outputs = 2> (linear_gate_up)
  sigmoid = Sigmoid (split_0)
  silu = Mul (split_0, sigmoid)
  mul_up = Mul (split_1, silu)
  linear_down = MatMul (mul_up, float[64, 32] down_proj)
  add_down = Add (add_o, linear_down)
  ${norm('mul_norm_2', 'add_down', 'norm')}
  logits = MatMul (mul_norm_2, float[32, 50] lm_head)
}`;

export const dynamoLlama = exported({
  name: 'dynamo: Llama with past keys and values',
  text: llama,
  opsets: { '': 18 },
  constants: 'initializers',
  runs: [
    { b: 2, s: 5, p: 0, t: 5 },
    { b: 2, s: 1, p: 5, t: 6 },
    { b: 1, s: 3, p: 8, t: 11 },
  ],
  bound: 1e-5,
  kept: {
    present_key_0: 'past_key_values_key_cache_0',
    present_value_0: 'past_key_values_value_cache_0',
  },
});
