/**
 * A classifier of tables and two policies, as torch.onnx.export writes them by TorchScript at
 * opset 17.
 */
import { exported } from './exported.js';

const mlp = `main_graph (
  float[b, 10] x,
) => (float p, float l) {
  ReduceL2 = ReduceL2 <axes = [1], keepdims = 1> (x)
  Clip = Clip (ReduceL2, float {1e-12}, )
  Shape = Shape (x)
  Expand = Expand (Clip, Shape)
  Div = Div (x, Expand)
  net/net.0/Gemm = Gemm <transB = 1> (Div, float[16, 10] net.0.weight, float[16] net.0.bias)
  net/net.1/BN = BatchNormalization <epsilon = 1e-05, momentum = 0.9, training_mode = 0>
    (net/net.0/Gemm, float[16] net.1.weight, float[16] net.1.bias, float[16] net.1.running_mean,
    float[16] net.1.running_var)
  net/net.2/Relu = Relu (net/net.1/BN)
  net/net.4/Gemm = Gemm <transB = 1> (net/net.2/Relu, float[8, 16] net.4.weight, float[8]
    net.4.bias)
  net/net.5/BN = BatchNormalization <epsilon = 1e-05, momentum = 0.9, training_mode = 0>
    (net/net.4/Gemm, float[8] net.5.weight, float[8] net.5.bias, float[8] net.5.running_mean,
    float[8] net.5.running_var)
  net/net.6/LeakyRelu = LeakyRelu <alpha = 0.01> (net/net.5/BN)
  net/net.7/Gemm = Gemm <transB = 1> (net/net.6/LeakyRelu, float[3, 8] net.7.weight, float[3]
    net.7.bias)
  p = Softmax <axis = -1> (net/net.7/Gemm)
  net/net.0_1/Gemm = Gemm <transB = 1> (x, net.0.weight, net.0.bias)
  net/net.1_1/BN = BatchNormalization <epsilon = 1e-05, momentum = 0.9, training_mode = 0>
    (net/net.0_1/Gemm, net.1.weight, net.1.bias, net.1.running_mean, net.1.running_var)
  net/net.2_1/Relu = Relu (net/net.1_1/BN)
  net/net.4_1/Gemm = Gemm <transB = 1> (net/net.2_1/Relu, net.4.weight, net.4.bias)
  net/net.5_1/BN = BatchNormalization <epsilon = 1e-05, momentum = 0.9, training_mode = 0>
    (net/net.4_1/Gemm, net.5.weight, net.5.bias, net.5.running_mean, net.5.running_var)
  net/net.6_1/LeakyRelu = LeakyRelu <alpha = 0.01> (net/net.5_1/BN)
  net/net.7_1/Gemm = Gemm <transB = 1> (net/net.6_1/LeakyRelu, net.7.weight, net.7.bias)
  l = LogSoftmax <axis = -1> (net/net.7_1/Gemm)
}`;

const policy = `main_graph (
  float[b, 9] obs,
) => (float action, float value, float log_prob, float std) {
  Sub = Sub (obs, float[9] rm)
  Div = Div (Sub, float[9] Div_84)
  Clip = Clip (Div, float {-5.0}, float {5.0})
  m/m.0/Gemm = Gemm <transB = 1> (Clip, float[16, 9] m.0.weight, float[16] m.0.bias)
  m/m.1/Elu = Elu <alpha = 1.0> (m/m.0/Gemm)
  m/m.2/Gemm = Gemm <transB = 1> (m/m.1/Elu, float[16, 16] m.2.weight, float[16] m.2.bias)
  m/m.3/Tanh = Tanh (m/m.2/Gemm)
  mu/Gemm = Gemm <transB = 1> (m/m.3/Tanh, float[4, 16] mu.weight, float[4] mu.bias)
  Shape = Shape (mu/Gemm)
  ConstantOfShape = ConstantOfShape <value = float[1] {1.0}> (Shape)
  Exp = Exp (float[4] log_std)
  Mul = Mul (ConstantOfShape, Exp)
  Clip_1 = Clip (mu/Gemm, float {-1.0}, float {1.0})
  Sub_1 = Sub (Clip_1, mu/Gemm)
  Div_1 = Div (Sub_1, Mul)
  Pow = Pow (Div_1, float {2.0})
  Add = Add (Pow, float[4] Add_89)
  Add_1 = Add (Add, float {1.837877})
  ReduceSum = ReduceSum <keepdims = 0> (Add_1, int64[1] {-1})
  log_prob = Mul (ReduceSum, float {-0.5})
  Tanh = Tanh (mu/Gemm)
  Add_2 = Add (Tanh, float {1.0})
  Mul_2 = Mul (Add_2, float {0.5})
  Mul_3 = Mul (Mul_2, float {2.0})
  Sub_2 = Sub (Mul_3, float {1.0})
  action = Clip (Sub_2, float {-1.0}, float {1.0})
  vf/Gemm = Gemm <transB = 1> (m/m.3/Tanh, float[1, 16] vf.weight, float[1] vf.bias)
  value = Squeeze (vf/Gemm, int64[1] {1})
  Shape_1 = Shape (mu/Gemm)
  Gather = Gather <axis = 0> (Shape_1, int64 {0})
  Unsqueeze = Unsqueeze (Gather, int64[1] {0})
  Concat = Concat <axis = 0> (Unsqueeze, int64[1] {-1})
  Reshape = Reshape (Concat, int64[1] {-1})
  Shape_2 = Shape (Reshape)
  ConstantOfShape_1 = ConstantOfShape <value = int64[1] {1}> (Shape_2)
  Mul_4 = Mul (ConstantOfShape_1, int64 {-1})
  Equal = Equal (Reshape, Mul_4)
  Where = Where (Equal, ConstantOfShape_1, Reshape)
  std = Expand (Mul, Where)
}`;

const critic = `main_graph (
  float[b, 9] obs,
  float[b, 5] mask,
) => (float pr, float ev, int64 oh, float tv, int64 ti, float g, float mx, float cs) {
  l/Gemm = Gemm <transB = 1> (obs, float[16, 9] l.weight, float[16] l.bias)
  Relu = Relu (l/Gemm)
  Sigmoid = Sigmoid (Relu)
  Mul = Mul (Relu, Sigmoid)
  o/Gemm = Gemm <transB = 1> (Mul, float[5, 16] o.weight, float[5] o.bias)
  Mul_1 = Mul (o/Gemm, mask)
  Sub = Sub (float {1.0}, mask)
  Mul_2 = Mul (Sub, float {-100000000.0})
  Add = Add (Mul_1, Mul_2)
  ReduceLogSumExp = ReduceLogSumExp <axes = [-1], keepdims = 1> (Add)
  Sub_1 = Sub (Add, ReduceLogSumExp)
  pr = Exp (Sub_1)
  dist/Gemm = Gemm <transB = 1> (Mul, float[35, 16] dist.weight, float[35] dist.bias)
  Reshape = Reshape (dist/Gemm, int64[3] {-1, 5, 7})
  Softmax = Softmax <axis = -1> (Reshape)
  Mul_3 = Mul (Softmax, float[7] {-1.0, -0.6666666, -0.3333333, -2.9802322e-08, 0.3333333,
    0.6666666, 1.0})
  ev = ReduceSum <keepdims = 0> (Mul_3, int64[1] {2})
  ArgMax = ArgMax <axis = 1, keepdims = 0, select_last_index = 0> (ev)
  oh = OneHot <axis = -1> (ArgMax, int64 {5}, int64[2] {0, 1})
  tv, ti = TopK <axis = -1, largest = 1, sorted = 1> (pr, int64[1] {2})
  ArgMax_1 = ArgMax <axis = -1, keepdims = 1, select_last_index = 0> (Sub_1)
  g = GatherElements <axis = 1> (ev, ArgMax_1)
  mx = ReduceMax <axes = [1], keepdims = 0> (ev)
  cs = CumSum (pr, int32 {-1})
}`;

const common = { opsets: { '': 17 }, runs: [{ b: 1 }, { b: 33 }], bound: 1e-5 };

export const torchSmall = [
  exported({ ...common, name: 'torch: dense network with BatchNorm1d', text: mlp }),
  exported({ ...common, name: 'torch: policy of continuous actions', text: policy }),
  exported({
    ...common,
    name: 'torch: policy of masked discrete actions',
    text: critic,
    inputs: {
      mask: (random, shape) =>
        Array.from({ length: shape[0]! * 5 }, (_, i) => (i % 5 ? random.between(0, 1) : 1)),
    },
  }),
];
