/**
 * Models of scikit-learn as skl2onnx writes them. ZipMap gives a tensor here, and a list of maps
 * in the runtime. So the runtime computes the tensor before it.
 */
import { exported, type Text } from './exported.js';

const map = 'seq(map(int64, float)) output_probability';

/** A classifier, whose text ends with `probabilities` and `label`. */
const classifier = (
  input: string,
  text: string,
  ...labels: number[]
): Pick<Text, 'text' | 'theirs'> => {
  const model = (
    type: string,
    last: string,
  ) => `pipeline (${input}) => (int64[b] output_label, ${type}) {
  ${text}
  output_label = Cast <to = 7> (label)
  output_probability = ${last} (probabilities)
}`;
  return {
    text: model(map, `ai.onnx.ml.ZipMap <classlabels_int64s = [${labels.join(', ')}]>`),
    theirs: model('float output_probability', 'Identity'),
  };
};

const logisticBinary = classifier(
  'float[b, 4] X',
  `
  label, probability_tensor = ai.onnx.ml.LinearClassifier <classlabels_ints = [0, 1],
    coefficients = [-0.42, 0.96, -2.51, -1.08, 0.42, -0.96, 2.51, 1.08],
    intercepts = [0.25, -0.25], multi_class = 0, post_transform = "LOGISTIC"> (X)
  probabilities = ai.onnx.ml.Normalizer <norm = "L1"> (probability_tensor)`,
  0,
  1,
);

const threeClasses = (x: string, transform = 'SOFTMAX') => `
  label, probability_tensor = ai.onnx.ml.LinearClassifier <classlabels_ints = [3, 5, 8],
    coefficients = [-0.42, 0.96, -2.51, -1.08, 0.53, -0.32, -0.2, -0.94, -0.11, -0.64, 2.71, 2.02],
    intercepts = [0.9, 0.2, -1.1], multi_class = 1, post_transform = "${transform}"> (${x})
  probabilities = ai.onnx.ml.Normalizer <norm = "L1"> (probability_tensor)`;

const logistic = classifier('float[b, 4] X', threeClasses('X'), 3, 5, 8);
const oneVersusRest = classifier('float[b, 4] X', threeClasses('X', 'LOGISTIC'), 3, 5, 8);

/** Columns of whole numbers, and a pipeline of scalers. */
const scaled = classifier(
  'int64[b, 4] X',
  `
  scaled = ai.onnx.ml.Scaler
    <offset = [24.5, 25.1, 22.9, 26.0], scale = [0.07, 0.066, 0.071, 0.069]> (X)
  limited = ai.onnx.ml.Scaler
    <offset = [-1.7, -1.72, -1.65, -1.8], scale = [0.29, 0.3, 0.31, 0.28]> (scaled)
  variable = ai.onnx.ml.Normalizer <norm = "L2"> (limited)
  ${threeClasses('variable')}`,
  3,
  5,
  8,
);

/** ColumnTransformer. */
const columns = classifier(
  'float[b, 5] X',
  `
  extracted = ai.onnx.ml.ArrayFeatureExtractor (X, int64[2] {0, 3})
  variable = ai.onnx.ml.Scaler <offset = [0.1, -0.2], scale = [1.7, 1.9]> (extracted)
  extracted_1 = ai.onnx.ml.ArrayFeatureExtractor (X, int64[2] {1, 4})
  variable_1 = ai.onnx.ml.Normalizer <norm = "MAX"> (extracted_1)
  transformed_column = Concat <axis = 1> (variable, variable_1)
  ${threeClasses('transformed_column')}`,
  3,
  5,
  8,
);

/** The label of the largest of the values. */
const argMax = (values: string, label = 'label', type = 1): string => `
  argmax_output = ArgMax <axis = 1> (${values})
  array_feature_extractor_result = ai.onnx.ml.ArrayFeatureExtractor
    (int32[3] classes {3, 5, 8}, argmax_output)
  cast2_result = Cast <to = ${type}> (array_feature_extractor_result)
  reshaped_result = Reshape (cast2_result, int64[1] {-1})
  ${label} = Cast <to = 7> (reshaped_result)`;

/** LogisticRegression of columns of float64, without ZipMap. */
const logisticDouble = `pipeline (double[b, 4] X) => (int64[b] label, double[b, 3] probabilities) {
  multiplied = MatMul (X, double[4, 3] coef)
  raw_scores = Add (multiplied, double[1, 3] intercept)
  ${argMax('raw_scores', 'label', 11)}
  probabilities = Softmax <axis = -1> (raw_scores)
}`;

/** One versus rest in float64. */
const sigmoidDouble = logisticDouble.replace(
  'probabilities = Softmax <axis = -1> (raw_scores)',
  `raw_scoressig = Sigmoid (raw_scores)
  norm_abs = Abs (raw_scoressig)
  norm = ReduceSum <keepdims = 1> (norm_abs, int64[1] {1})
  probabilities = Div (raw_scoressig, norm)`,
);

const linearSvc = `pipeline (float[b, 4] X) => (int64[b] label, float probabilities) {
  label, raw_scores_tensor = ai.onnx.ml.LinearClassifier <classlabels_ints = [0, 1],
    coefficients = [-0.42, 0.96, -2.51, -1.08, 0.42, -0.96, 2.51, 1.08],
    intercepts = [0.25, -0.25], multi_class = 0, post_transform = "NONE"> (X)
  probabilities = ai.onnx.ml.ArrayFeatureExtractor
    (raw_scores_tensor, int64 positive_class_index {1})
}`;

const regression = `pipeline (float[b, 4] X) => (float[b, 1] variable) {
  variable = ai.onnx.ml.LinearRegressor
    <coefficients = [1.25, -0.5, 0.03, 7.75], intercepts = [152.13]> (X)
}`;

const targets = `pipeline (int64[b, 4] X) => (float[b, 2] variable) {
  cast_input = Cast <to = 1> (X)
  variable = ai.onnx.ml.LinearRegressor
    <coefficients = [1.25, -0.5, 0.03, 7.75, 0.1, 0.2, -0.3, 1.5], intercepts = [152.13, -7.0],
    targets = 2> (cast_input)
}`;

const regressionDouble = `pipeline (double[b, 4] X) => (double[b, 1] variable) {
  multiplied = MatMul (X, double[4, 1] coef)
  resh = Add (multiplied, double[1] intercept)
  variable = Reshape (resh, int64[2] {-1, 1})
}`;

/** The layers of a perceptron. */
const layers = (activation: string, last: string, outputs: number): string => `
  cast_input = Cast <to = 1> (X)
  mul_result = MatMul (cast_input, float[4, 10] coefficient)
  add_result = Add (mul_result, float[1, 10] intercepts)
  next_activations = ${activation} (add_result)
  mul_result1 = MatMul (next_activations, float[10, 7] coefficient1)
  add_result1 = Add (mul_result1, float[1, 7] intercepts1)
  next_activations1 = ${activation} (add_result1)
  mul_result2 = MatMul (next_activations1, float[7, ${outputs}] coefficient2)
  add_result2 = Add (mul_result2, float[1, ${outputs}] intercepts2)
  out_activations_result = ${last} (add_result2)`;

/** The labels of a perceptron, from its probabilities. */
const perceptronLabels = (classes: string): string => `
  argmax_output = ArgMax <axis = 1> (probabilities)
  array_feature_extractor_result = ai.onnx.ml.ArrayFeatureExtractor (${classes}, argmax_output)
  reshaped_result = Reshape (array_feature_extractor_result, int64[1] {-1})
  label = Cast <to = 7> (reshaped_result)`;

const perceptron = classifier(
  'float[b, 4] X',
  `${layers('Relu', 'Softmax', 3)}
  probabilities = Identity (out_activations_result)
  ${perceptronLabels('int32[3] classes {3, 5, 8}')}`,
  3,
  5,
  8,
);

const perceptronBinary = classifier(
  'float[b, 4] X',
  `${layers('Tanh', 'Sigmoid', 1)}
  negative_class_proba = Sub (float unity {1.0}, out_activations_result)
  probabilities = Concat <axis = 1> (negative_class_proba, out_activations_result)
  ${perceptronLabels('int32[2] classes {0, 1}')}`,
  0,
  1,
);

const perceptronRegressor = `pipeline (float[b, 4] X) => (float[b, 1] variable) {
  ${layers('Sigmoid', 'Identity', 1)}
  variable = Reshape (out_activations_result, int64[2] {-1, 1})
}`;

const kMeans = `pipeline (float[b, 4] X) => (int64[b] label, float[b, 3] scores) {
  Re_reduced0 = ReduceSumSquare <axes = [1], keepdims = 1> (X)
  Mu_C0 = Mul (Re_reduced0, float[1] Mu_Mulcst {0.0})
  Ge_Y0 = Gemm <alpha = -2.0, transB = 1> (X, float[3, 4] Ge_Gemmcst
    {0.5, -0.5, 0.25, 0.0, -0.75, 0.5, 0.0, 0.25, 0.0, 0.0, -0.5, -0.75}, Mu_C0)
  Ad_C01 = Add (Re_reduced0, Ge_Y0)
  Ad_C0 = Add (float[3] Ad_Addcst {0.5625, 0.875, 0.8125}, Ad_C01)
  label = ArgMin <axis = 1, keepdims = 0> (Ad_C0)
  scores = Sqrt (Ad_C0)
}`;

const pca = `pipeline (float[b, 4] X) => (float[b, 2] variable) {
  sub_result = Sub (X, float[4] mean)
  variable = MatMul (sub_result, float[4, 2] transform_matrix)
}`;

const whitened = `pipeline (float[b, 4] X) => (float[b, 2] variable) {
  sub_result = Sub (X, float[4] mean)
  matmul_result = MatMul (sub_result, float[4, 2] transform_matrix)
  explained_variance_root = Sqrt (float[2] explained_variance)
  variable = Div (matmul_result, explained_variance_root)
}`;

/** Probabilities of naive Bayes, and its label. */
const bayes = `
  ${argMax('sum_result')}
  reduce_log_sum_exp_result = ReduceLogSumExp <axes = [1], keepdims = 0> (sum_result)
  reshaped_log_prob = Reshape (reduce_log_sum_exp_result, int64[2] {-1, 1})
  log_prob = Sub (sum_result, reshaped_log_prob)
  probabilities = Exp (log_prob)`;

const gaussian = classifier(
  'float[b, 4] X',
  `
  reshaped_input = Reshape (X, int64[3] {-1, 1, 4})
  subtracted_input = Sub (reshaped_input, float[1, 3, 4] theta)
  pow_result = Pow (subtracted_input, float exponent {2.0})
  div_result = Div (pow_result, float[1, 3, 4] sigma
    {0.12, 0.14, 0.03, 0.01, 0.26, 0.1, 0.22, 0.04, 0.4, 0.1, 0.3, 0.07})
  reduced_sum = ReduceSum <keepdims = 0> (div_result, int64[1] axis {2})
  mul_result = Mul (reduced_sum, float prod_operand {0.5})
  part_log_likelihood = Sub (float[1, 3] sigma_sum_log {1.5, 0.1, -0.5}, mul_result)
  sum_result = Add (float[1, 3] jointi {-1.1, -1.0, -1.2}, part_log_likelihood)
  ${bayes}`,
  3,
  5,
  8,
);

const bernoulli = classifier(
  'float[b, 4] X',
  `
  condition = Greater (X, float[1] threshold {0.0})
  cast_values = Cast <to = 1> (condition)
  binarised_input = Add (float[1, 4] zero_tensor {0.0, 0.0, 0.0, 0.0}, cast_values)
  exp_result = Exp (float[4, 3] feature_log_prob
    {-0.2, -1.1, -0.7, -0.9, -0.3, -2.1, -0.4, -0.5, -0.6, -1.7, -0.8, -0.1})
  sub_result = Sub (float constant {1.0}, exp_result)
  neg_prob = Log (sub_result)
  sum_neg_prob = ReduceSum (neg_prob, int64[1] axis {0})
  difference_matrix = Sub (feature_log_prob, neg_prob)
  dot_prod = MatMul (binarised_input, difference_matrix)
  partial_sum_result = Add (dot_prod, sum_neg_prob)
  sum_result = Add (partial_sum_result, float[1, 3] class_log_prior {-1.1, -1.0, -1.2})
  ${bayes}`,
  3,
  5,
  8,
);

const models: Record<string, Pick<Text, 'text' | 'theirs'>> = {
  'LogisticRegression of two classes': logisticBinary,
  'LogisticRegression of three classes': logistic,
  'LogisticRegression, one versus rest': oneVersusRest,
  'StandardScaler, MinMaxScaler, Normalizer, LogisticRegression': scaled,
  ColumnTransformer: columns,
  'LogisticRegression in float64': { text: logisticDouble },
  'LogisticRegression in float64, one versus rest': { text: sigmoidDouble },
  LinearSVC: { text: linearSvc },
  LinearRegression: { text: regression },
  'LinearRegression of two targets': { text: targets },
  'LinearRegression in float64': { text: regressionDouble },
  'MLPClassifier of three classes': perceptron,
  'MLPClassifier of two classes': perceptronBinary,
  MLPRegressor: { text: perceptronRegressor },
  KMeans: { text: kMeans },
  PCA: { text: pca },
  'PCA with whiten': { text: whitened },
  GaussianNB: gaussian,
  BernoulliNB: bernoulli,
};

export const skl2onnx = Object.entries(models).map(([name, texts]) =>
  exported({
    ...texts,
    name: `skl2onnx: ${name}`,
    opsets: { '': 17, 'ai.onnx.ml': 1 },
    constants: 'initializers',
    runs: [{ b: 1 }, { b: 33 }],
    bound: 1e-5,
  }),
);
