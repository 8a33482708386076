/**
 * Models as ONNX Runtime writes them: after optimizer.py of its tools for transformers, and as a
 * session saves what it optimized (optimized_model_filepath).
 */
import { exported } from './exported.js';
import { llama } from './torch-llama.js';

const opsets = { '': 17, 'com.microsoft': 1 };
const texts = [
  { b: 1, s: 7 },
  { b: 3, s: 12 },
];
const tokens = [
  { b: 2, s: 5, p: 0, t: 5 },
  { b: 2, s: 1, p: 5, t: 6 },
  { b: 1, s: 3, p: 8, t: 11 },
];

/** Padding after each text but the first, since a mask index is where it ends. */
const rightPadded = (_: unknown, [rows = 1, columns = 1]: readonly number[]) =>
  Array.from({ length: rows * columns }, (_, i) =>
    (i % columns) + Math.floor(i / columns) < columns ? 1 : 0,
  );

/** From attention to the last layer. */
const encoderEnd = `
  o/MatMul = MatMul (attention, float[32, 32] o.weight)
  SkipLN_0 = com.microsoft.SkipLayerNormalization <epsilon = 1e-12>
    (o/MatMul, embedding, float[32] SkipLN_0.norm.weight, float[32] SkipLN_0.bias, float[32] o.bias)
  i/MatMul = MatMul (SkipLN_0, float[32, 64] i.weight)
  BiasGelu_0 = com.microsoft.BiasGelu (i/MatMul, float[64] i.bias)
  d/MatMul = MatMul (BiasGelu_0, float[64, 32] d.weight)
  last_hidden_state = com.microsoft.SkipLayerNormalization <epsilon = 1e-12>
    (d/MatMul, SkipLN_0, float[32] SkipLN_1.norm.weight, float[32] SkipLN_1.bias, float[32] d.bias)
  Gather_9 = Gather <axis = 1> (last_hidden_state, int64 {0})
  p/Gemm = Gemm <alpha = 1.0, beta = 1.0, transB = 1>
    (Gather_9, float[32, 32] p.weight, float[32] p.bias)
  pooler_output = Tanh (p/Gemm)
}`;

const encoderStart = `main_graph (
  int64[b, s] input_ids,
  int64[b, s] attention_mask,
  int64[b, s] token_type_ids,
) => (float last_hidden_state, float[b, 32] pooler_output) {
  input_ids_int32 = Cast <to = 6> (input_ids)
  token_type_ids_int32 = Cast <to = 6> (token_type_ids)
  attention_mask_int32 = Cast <to = 6> (attention_mask)
  embedding, mask_index = com.microsoft.EmbedLayerNormalization <epsilon = 1e-12>
    (input_ids_int32, token_type_ids_int32, float[50, 32] word.weight, float[64, 32] pos.weight,
    float[2, 32] type.weight, float[32] ln.weight, float[32] ln.bias, attention_mask_int32)`;

/** --model_type bert. */
const bert = `${encoderStart}
  attention = com.microsoft.Attention <num_heads = 4>
    (embedding, float[32, 96] qkv_weight, float[96] qkv_bias, mask_index)
  ${encoderEnd}`;

/** The same with --use_raw_attention_mask. */
const raw = bert
  .replace('mask_index = com', 'unused = com')
  .replace('mask_index)', 'attention_mask_int32)')
  .replace('num_heads = 4', 'num_heads = 4, mask_filter_value = -3.4028235e+38');

/** The same with --use_multi_head_attention. */
const multiHead = `${encoderStart}
  q/MatMul = MatMul (embedding, float[32, 32] q.weight)
  k/MatMul = MatMul (embedding, float[32, 32] k.weight)
  v/MatMul = MatMul (embedding, float[32, 32] v.weight)
  attention = com.microsoft.MultiHeadAttention <num_heads = 4>
    (q/MatMul, k/MatMul, v/MatMul, float[96] qkv_bias, mask_index)
  ${encoderEnd}`;

/** What a session saves of a model with scaled_dot_product_attention. */
const session = `main_graph (
  int64[b, s] input_ids,
  int64[b, s] attention_mask,
  int64[b, s] token_type_ids,
) => (float last_hidden_state, float[b, 32] pooler_output) {
  Unsqueeze = Unsqueeze (attention_mask, int64[2] {1, 2})
  Cast = Cast <to = 1> (Unsqueeze)
  Sub = Sub (float {1.0}, Cast)
  mask = Mul (Sub, float {-3.4028235e+38})
  Shape = Shape <end = 2, start = 1> (input_ids)
  Slice = Slice (int64[1, 64] position_ids, int64[1] {0}, Shape, int64[1] {1}, int64[1] {1})
  word/Gather = Gather <axis = 0> (float[50, 32] word.weight, input_ids)
  type/Gather = Gather <axis = 0> (float[2, 32] type.weight, token_type_ids)
  Add = Add (word/Gather, type/Gather)
  pos/Gather = Gather <axis = 0> (float[64, 32] pos.weight, Slice)
  Add_1 = Add (Add, pos/Gather)
  embedding = LayerNormalization <axis = -1, epsilon = 1e-12, stash_type = 1>
    (Add_1, float[32] ln.weight, float[32] ln.bias)
  ${['q', 'k', 'v']
    .map(
      (part) => `
  ${part}/MatMul = MatMul (embedding, float[32, 32] ${part}.weight)
  ${part}/Add = Add (${part}/MatMul, float[32] ${part}.bias)
  ${part}/Reshape = Reshape <allowzero = 0> (${part}/Add, int64[4] {0, 0, 4, 8})
  ${part}/Transpose = Transpose <perm = [0, 2, 1, 3]> (${part}/Reshape)`,
    )
    .join('')}
  FusedMatMul = com.microsoft.FusedMatMul
    <alpha = 0.35355338, transA = 0, transB = 1, transBatchA = 0, transBatchB = 0>
    (q/Transpose, k/Transpose)
  masked = Add (FusedMatMul, mask)
  Softmax = Softmax <axis = -1> (masked)
  MatMul = MatMul (Softmax, v/Transpose)
  Transpose = Transpose <perm = [0, 2, 1, 3]> (MatMul)
  attention = Reshape <allowzero = 0> (Transpose, int64[3] {0, 0, 32})
  ${encoderEnd}`;

/** --model_type gpt2. */
const gpt2 = `main_graph (
  int64[b, s] input_ids,
  int64[b, s] position_ids,
  int64[b, t] attention_mask,
  float[2, b, 4, p, 8] past_0,
) => (float logits, float present_0) {
  input_ids_int32 = Cast <to = 6> (input_ids)
  position_ids_int32 = Cast <to = 6> (position_ids)
  attention_mask_int32 = Cast <to = 6> (attention_mask)
  ln, , sum_0 = com.microsoft.EmbedLayerNormalization <epsilon = 1e-05>
    (input_ids_int32, , float[50, 32] wte.weight, float[64, 32] wpe.weight, ,
    float[32] ln_1.weight, float[32] ln_1.bias, , position_ids_int32)
  attention, present_0 = com.microsoft.Attention
    <num_heads = 4, unidirectional = 1, mask_filter_value = -3.4028235e+38>
    (ln, float[32, 96] c_attn.weight, float[96] c_attn.bias, attention_mask_int32, past_0)
  c_proj = MatMul (attention, float[32, 32] c_proj.weight)
  ln_2, , , sum_1 = com.microsoft.SkipLayerNormalization <epsilon = 1e-05>
    (sum_0, c_proj, float[32] ln_2.weight, float[32] ln_2.bias, float[32] c_proj.bias)
  c_fc = MatMul (ln_2, float[32, 64] c_fc.weight)
  gelu = com.microsoft.FastGelu (c_fc, float[64] c_fc.bias)
  c_proj_1 = MatMul (gelu, float[64, 32] c_proj_1.weight)
  ln_f = com.microsoft.SkipLayerNormalization <epsilon = 1e-05>
    (sum_1, c_proj_1, float[32] ln_f.weight, float[32] ln_f.bias, float[32] c_proj_1.bias)
  logits = MatMul (ln_f, float[32, 50] lm_head)
}`;

/** Everything but attention, for a number of heads of keys. */
const fusedLlama = (keyHeads: number, mask: string, attention: string): string => `main_graph (
  int64[b, s] input_ids,
  int64[b, t] attention_mask,
  int64[b, s] position_ids,
  float[b, ${keyHeads}, p, 8] past_key_values.0.key,
  float[b, ${keyHeads}, p, 8] past_key_values.0.value,
) => (float logits, float present.0.key, float present.0.value) {
  embed_tokens/Gather = Gather (float[50, 32] embed_tokens.weight, input_ids)
  ${mask}
  ln = SimplifiedLayerNormalization <axis = -1, epsilon = 1e-05, stash_type = 1>
    (embed_tokens/Gather, float[32] input_layernorm.weight)
  q = MatMul (ln, float[32, 32] q_proj.weight)
  k = MatMul (ln, float[32, ${keyHeads * 8}] k_proj.weight)
  v = MatMul (ln, float[32, ${keyHeads * 8}] v_proj.weight)
  q/Rotary = com.microsoft.RotaryEmbedding
    <interleaved = 0, num_heads = 4, rotary_embedding_dim = 0>
    (q, position_ids, float[64, 4] cos_cache, float[64, 4] sin_cache)
  k/Rotary = com.microsoft.RotaryEmbedding
    <interleaved = 0, num_heads = ${keyHeads}, rotary_embedding_dim = 0>
    (k, position_ids, cos_cache, sin_cache)
  ${attention}
  o = MatMul (attention, float[32, 32] o_proj.weight)
  ln_1, , , sum = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 1e-05>
    (embed_tokens/Gather, o, float[32] post_layernorm.weight)
  gate = MatMul (ln_1, float[32, 64] gate_proj.weight)
  Sigmoid = Sigmoid (gate)
  silu = Mul (gate, Sigmoid)
  up = MatMul (ln_1, float[32, 64] up_proj.weight)
  gated = Mul (silu, up)
  down = MatMul (gated, float[64, 32] down_proj.weight)
  ln_2 = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 1e-05>
    (sum, down, float[32] norm.weight)
  logits = MatMul (ln_2, float[32, 50] lm_head.weight)
}`;

/** The mask as PyTorch has written it. */
const torchMask = llama.slice(llama.indexOf('  Shape ='), llama.indexOf('  Shape_16 ='));

/** Convert_to_onnx of Llama: fused, with a mask per head. */
const multiHeadLlama = fusedLlama(
  4,
  torchMask,
  `
  mask = Concat <axis = 1> (ScatterND, ScatterND, ScatterND, ScatterND)
  attention, present.0.key, present.0.value = com.microsoft.MultiHeadAttention <num_heads = 4>
    (q/Rotary, k/Rotary, v, , , mask, past_key_values.0.key, past_key_values.0.value)`,
);

/** The same after replace_mha_with_gqa(). */
const groupedLlama = fusedLlama(
  2,
  `
  mask_int32 = Cast <to = 6> (attention_mask)
  ReduceSum = ReduceSum <keepdims = 0> (mask_int32, int64[1] {1})
  seqlens_k = Sub (ReduceSum, int32[1] {1})
  mask/Shape = Shape (attention_mask)
  Gather = Gather <axis = 0> (mask/Shape, int64 {1})
  total_seq_len = Cast <to = 6> (Gather)`,
  `
  attention, present.0.key, present.0.value = com.microsoft.GroupQueryAttention
    <num_heads = 4, kv_num_heads = 2, local_window_size = -1>
    (q/Rotary, k/Rotary, v, past_key_values.0.key, past_key_values.0.value, seqlens_k,
    total_seq_len)`,
);

/** What a session saves of a dense network. */
const dense = `main_graph (float[b, 10] x) => (float[b, 3] y) {
  relu = com.microsoft.FusedGemm <activation = "Relu", alpha = 1.0, beta = 1.0, transA = 0,
    transB = 1> (x, float[16, 10] fc1.weight, float[16] fc1.bias)
  leaky = com.microsoft.FusedGemm <activation = "LeakyRelu", activation_alpha = 0.2, alpha = 1.0,
    beta = 1.0, transA = 0, transB = 1> (relu, float[16, 16] fc2.weight, float[16] fc2.bias)
  hard = com.microsoft.FusedGemm <activation = "HardSigmoid", activation_alpha = 0.16666667,
    activation_beta = 0.4, alpha = 0.5, beta = 2.0, transA = 0, transB = 0>
    (leaky, float[16, 8] fc3.weight, float[8] fc3.bias)
  y = com.microsoft.FusedGemm <activation = "Tanh", alpha = 1.0, beta = 1.0, transA = 0,
    transB = 1> (hard, float[3, 8] fc4.weight, float[3] fc4.bias)
}`;

const common = { opsets, constants: 'initializers', bound: 1e-5 } as const;
const encoder = { ...common, runs: texts, inputs: { attention_mask: rightPadded } };
const decoder = { ...common, runs: tokens };
const kept = {
  'present.0.key': 'past_key_values.0.key',
  'present.0.value': 'past_key_values.0.value',
};

export const ortFloat32 = [
  exported({ ...encoder, name: "ONNX Runtime's optimizer: BERT", text: bert }),
  exported({ ...encoder, name: "ONNX Runtime's optimizer: BERT with a raw mask", text: raw }),
  exported({
    ...encoder,
    name: "ONNX Runtime's optimizer: BERT, MultiHeadAttention",
    text: multiHead,
  }),
  exported({ ...encoder, name: 'ONNX Runtime, saved by a session: BERT', text: session }),
  exported({
    ...decoder,
    name: "ONNX Runtime's optimizer: GPT-2",
    text: gpt2,
    kept: { present_0: 'past_0' },
    // A query that sees no key belongs to padding. ONNX Runtime takes the mean of all values, and
    // wgemm the mean of the values before it. So padding follows the text.
    inputs: { attention_mask: rightPadded },
  }),
  exported({
    ...common,
    name: 'ONNX Runtime, saved by a session: a dense network',
    text: dense,
    runs: [{ b: 1 }, { b: 33 }],
  }),
  exported({ ...decoder, name: "ONNX Runtime's optimizer: Llama", text: multiHeadLlama, kept }),
  exported({
    ...decoder,
    name: "ONNX Runtime's optimizer: Llama, GroupQueryAttention",
    text: groupedLlama,
    kept,
    // A mask only says how many tokens there are.
    inputs: {
      attention_mask: (_, shape) => new Array<number>(shape[0]! * shape[1]!).fill(1),
    },
  }),
];
