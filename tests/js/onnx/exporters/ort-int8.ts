/**
 * Models with 8-bit weights, as ONNX Runtime's quantization writes them, and as a session saves
 * them.
 */
import { exported } from './exported.js';

/** A scale per column. */
const scales = (columns: number): string =>
  Array.from({ length: columns }, (_, i) => 0.003 + i / 1e4).join(', ');

const scaleOf = (name: string) => `float ${name}.scale {0.011}`;

/** A weight of a table, which quantize_dynamic also quantizes. */
const table = (name: string, rows: number, indices: string): string => `
  ${name}.rows = Gather <axis = 0> (int8[${rows}, 32] ${name}.weight_quantized, ${indices})
  ${name} = DequantizeLinear (${name}.rows, float ${name}.weight_scale {0.02},
    int8 ${name}.weight_zero_point {0})`;

const embeddings = `
  Shape = Shape (input_ids)
  Gather_s = Gather <axis = 0> (Shape, int64 {1})
  Unsqueeze_s = Unsqueeze (Gather_s, int64[1] {0})
  Slice = Slice (int64[1, 64] position_ids, int64[1] {0}, Unsqueeze_s, int64[1] {1}, int64[1] {1})
  ${table('word', 50, 'input_ids')}
  ${table('type', 2, 'token_type_ids')}
  ${table('pos', 64, 'Slice')}
  Add = Add (word, type)
  Add_1 = Add (Add, pos)
  ln = LayerNormalization <axis = -1, epsilon = 1e-12>
    (Add_1, float[32] ln.weight, float[32] ln.bias)
  mask_int32 = Cast <to = 6> (attention_mask)`;

const inputs = `main_graph (
  int64[b, s] input_ids,
  int64[b, s] attention_mask,
  int64[b, s] token_type_ids,
) => (float last_hidden_state) {`;

const quantized = (x: string): string => `
  ${x}_quantized, ${x}_scale, ${x}_zero_point = DynamicQuantizeLinear (${x})`;

/** A product of quantize_dynamic: a scale per product, or one per column. */
const product = (y: string, x: string, from: number, to: number, isPerChannel = false): string => `
  ${quantized(x)}
  ${y}_quant = MatMulInteger (${x}_quantized, int8[${from}, ${to}] ${y}.weight_quantized,
    ${x}_zero_point, int8${isPerChannel ? `[${to}]` : ''} ${y}.weight_zero_point
    {${isPerChannel ? new Array(to).fill(0).join(', ') : 0}})
  ${y}_cast = Cast <to = 1> (${y}_quant)
  ${y}_scales = Mul (${x}_scale, ${
    isPerChannel ? `float[${to}] ${y}.weight_scale {${scales(to)}}` : scaleOf(`${y}.weight`)
  })
  ${y} = Mul (${y}_cast, ${y}_scales)`;

const skip = (y: string, x: string, skipped: string, name: string): string => `
  ${y} = com.microsoft.SkipLayerNormalization <epsilon = 1e-12> (${x}, ${skipped},
    float[32] ${name}.norm.weight, float[32] ${name}.norm.bias, float[32] ${name}.bias)`;

/** quantize_dynamic of a model that optimizer.py has fused. */
const dynamic = (isPerChannel: boolean): string => `${inputs}
  ${embeddings}
  ${quantized('ln')}
  attention = com.microsoft.QAttention <num_heads = 4>
    (ln_quantized, int8[32, 96] qkv.weight_quantized, float[96] qkv.bias, ln_scale,
    float qkv.weight_scale {0.004}, mask_int32, ln_zero_point, int8 qkv.weight_zero_point {0})
  ${product('o', 'attention', 32, 32, isPerChannel)}
  ${skip('skip', 'o', 'ln', 'o')}
  ${product('i', 'skip', 32, 64, isPerChannel)}
  gelu = com.microsoft.BiasGelu (i, float[64] i.bias)
  ${product('d', 'gelu', 64, 32, isPerChannel)}
  ${skip('last_hidden_state', 'd', 'skip', 'd')}
}`;

/** A product as a session saves it. */
const fused = (y: string, x: string, from: number, to: number): string => `
  ${y} = com.microsoft.DynamicQuantizeMatMul (${x}, int8[${from}, ${to}] ${y}.weight_quantized,
    float ${y}.weight_scale {0.006}, int8 ${y}.weight_zero_point {0}, float[${to}] ${y}.bias)`;

const heads = (part: string): string => `
  ${part} = com.microsoft.MatMulIntegerToFloat
    (ln_quantized, uint8[32, 32] ${part}.weight_quantized, ln_scale,
    float ${part}.weight_scale {0.004}, ln_zero_point, uint8 ${part}.weight_zero_point {128},
    float[32] ${part}.bias)
  ${part}_4 = Reshape <allowzero = 0> (${part}, int64[4] {0, 0, 4, 8})
  ${part}_t = Transpose <perm = [0, 2, 1, 3]> (${part}_4)`;

/** What a session saves of a dynamically quantized model whose attention is not fused. */
const session = `${inputs}
  ${embeddings}
  Unsqueeze = Unsqueeze (mask_int32, int64[2] {1, 2})
  Cast = Cast <to = 1> (Unsqueeze)
  Sub = Sub (float {1.0}, Cast)
  mask = Mul (Sub, float {-3.4028235e+38})
  ${quantized('ln')}
  ${['q', 'k', 'v'].map(heads).join('')}
  scores = com.microsoft.FusedMatMul
    <alpha = 0.35355338, transA = 0, transB = 1, transBatchA = 0, transBatchB = 0> (q_t, k_t)
  masked = Add (scores, mask)
  Softmax = Softmax <axis = -1> (masked)
  MatMul = MatMul (Softmax, v_t)
  Transpose = Transpose <perm = [0, 2, 1, 3]> (MatMul)
  attention = Reshape <allowzero = 0> (Transpose, int64[3] {0, 0, 32})
  ${fused('o', 'attention', 32, 32)}
  skip = com.microsoft.SkipLayerNormalization <epsilon = 1e-12>
    (o, ln, float[32] o.norm.weight, float[32] o.norm.bias)
  ${fused('i', 'skip', 32, 64)}
  gelu = com.microsoft.Gelu (i)
  ${fused('d', 'gelu', 64, 32)}
  last_hidden_state = com.microsoft.SkipLayerNormalization <epsilon = 1e-12>
    (d, skip, float[32] d.norm.weight, float[32] d.norm.bias)
}`;

/** QuantizeLinear and DequantizeLinear of an activation. */
const qdq = (x: string, scale: number, zero: number): string => `
  ${x}_q = QuantizeLinear (${x}, float ${x}_scale {${scale}}, uint8 ${x}_zero_point {${zero}})
  ${x}_dq = DequantizeLinear (${x}_q, ${x}_scale, ${x}_zero_point)`;

/** The weight of a product, with a scale per column. */
const weight = (name: string, from: number, to: number): string => `
  ${name}_dq = DequantizeLinear <axis = 1> (int8[${from}, ${to}] ${name}_quantized, float[${to}]
    ${name}_scale {${scales(to)}},
    int8[${to}] ${name}_zero_point {${new Array(to).fill(0).join(', ')}})`;

const dense = (y: string, x: string, from: number, to: number, scale: number): string => `
  ${weight(`${y}.weight`, from, to)}
  ${y}.product = MatMul (${x}_dq, ${y}.weight_dq)
  ${qdq(`${y}.product`, scale, 128)}
  ${y} = Add (${y}.product_dq, float[${to}] ${y}.bias)`;

const qdqHeads = (part: string): string => `
  ${dense(part, 'ln', 32, 32, 0.03)}
  ${qdq(part, 0.03, 128)}
  ${part}_4 = Reshape (${part}_dq, int64[4] {0, -1, 4, 8})
  ${qdq(`${part}_4`, 0.03, 128)}
  ${part}_t = Transpose <perm = [0, 2, ${part === 'k' ? '3, 1' : '1, 3'}]> (${part}_4_dq)
  ${qdq(`${part}_t`, 0.03, 128)}`;

/** quantize_static in the form QDQ, with ranges of a calibration. */
const staticQdq = `main_graph (float[b, s, 32] x) => (float y) {
  ${qdq('x', 0.008, 128)}
  ln = LayerNormalization <axis = -1, epsilon = 1e-12>
    (x_dq, float[32] ln.weight, float[32] ln.bias)
  ${qdq('ln', 0.02, 128)}
  ${['q', 'k', 'v'].map(qdqHeads).join('')}
  scores = MatMul (q_t_dq, k_t_dq)
  ${qdq('scores', 0.1, 128)}
  Div = Div (scores_dq, float {2.828427})
  ${qdq('Div', 0.04, 128)}
  Softmax = Softmax <axis = -1> (Div_dq)
  ${qdq('Softmax', 0.00390625, 0)}
  MatMul = MatMul (Softmax_dq, v_t_dq)
  ${qdq('MatMul', 0.02, 128)}
  Transpose = Transpose <perm = [0, 2, 1, 3]> (MatMul_dq)
  ${qdq('Transpose', 0.02, 128)}
  attention = Reshape (Transpose_dq, int64[3] {0, -1, 32})
  ${qdq('attention', 0.02, 128)}
  ${dense('o', 'attention', 32, 32, 0.02)}
  ${qdq('o', 0.02, 128)}
  Add = Add (o_dq, ln_dq)
  ${qdq('Add', 0.03, 128)}
  ${dense('i', 'Add', 32, 64, 0.04)}
  ${qdq('i', 0.04, 128)}
  Relu = Relu (i_dq)
  ${qdq('Relu', 0.02, 0)}
  ${dense('d', 'Relu', 64, 32, 0.04)}
  ${qdq('d', 0.04, 128)}
  y = Add (d_dq, Add_dq)
}`;

const common = {
  opsets: { '': 17, 'com.microsoft': 1 },
  constants: 'initializers',
  runs: [
    { b: 1, s: 7 },
    { b: 3, s: 12 },
  ],
  // A value close to the middle of two integers may round to the other one.
  bound: 0.02,
} as const;

export const ortInt8 = [
  exported({
    ...common,
    name: "ONNX Runtime's quantize_dynamic: BERT",
    text: dynamic(false),
  }),
  exported({
    ...common,
    name: "ONNX Runtime's quantize_dynamic: BERT, a scale per column",
    text: dynamic(true),
  }),
  exported({ ...common, name: 'ONNX Runtime, saved by a session: BERT in int8', text: session }),
  exported({ ...common, name: "ONNX Runtime's quantize_static: an encoder", text: staticQdq }),
];
