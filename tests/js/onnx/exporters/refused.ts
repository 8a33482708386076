/**
 * Graphs of the same exporters that need operators which are not supported, and what the error
 * says.
 */
import type { TextModel } from './text.js';

const opsets = { '': 17, 'ai.onnx.ml': 1, 'com.microsoft': 1 };

/** From distances to probabilities, as in KNeighborsClassifier. */
const neighbours = (
  distances: string,
): string => `pipeline (float[b, 4] X) => (float probabilities) {
  ${distances}
  To_Values0, To_Indices0 = TopK <axis = -1, largest = 0, sorted = 1> (distances, int64[1] {3})
  Sh_shape0 = Shape (To_Indices0)
  Fl_output0 = Flatten (To_Indices0)
  Ar_Z0 = ai.onnx.ml.ArrayFeatureExtractor (int64[5] labels {0, 1, 1, 0, 1}, Fl_output0)
  Re_reshaped0 = Reshape (Ar_Z0, Sh_shape0)
  Eq_C0 = Equal (Re_reshaped0, int64[1] {1})
  Ca_output0 = Cast <to = 1> (Eq_C0)
  Re_reduced0 = ReduceSum <keepdims = 1> (Ca_output0, int64[1] {1})
  probabilities = Div (Re_reduced0, float[1] {3.0})
}`;

const texts: Record<string, readonly [text: string, ...says: string[]]> = {
  'skl2onnx: KNeighborsClassifier': [
    neighbours(`
  UU0, cdistd_scan = Scan <num_scan_inputs = 1,
    body = cdistd (float[5, 4] next_in, float[4] next) =>
      (float[5, 4] next_out, float[5] scan_out) {
      next_out = Identity (next_in)
      diff = Sub (next_in, next)
      norm = ReduceSumSquare <axes = [1], keepdims = 0> (diff)
      scan_out = Identity (norm)
    }> (float[5, 4] training, X)
  distances = Sqrt (cdistd_scan)`),
    'Scan',
  ],
  'skl2onnx: KNeighborsClassifier with optim cdist': [
    neighbours(`
  distances = com.microsoft.CDist <metric = "euclidean"> (X, float[5, 4] training)`),
    'com.microsoft.CDist',
  ],
  'skl2onnx: SVC': [
    `pipeline (float[b, 2] X) => (int64[b] label, float probabilities) {
  label, probabilities = ai.onnx.ml.SVMClassifier <classlabels_ints = [0, 1],
    coefficients = [1.0, 0.5, -1.5], kernel_params = [0.5, 0.0, 3.0], kernel_type = "RBF",
    post_transform = "NONE", rho = [0.25], vectors_per_class = [2, 1],
    support_vectors = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]> (X)
}`,
    'ai.onnx.ml.SVMClassifier',
  ],
  'skl2onnx: RandomForestRegressor': [
    `pipeline (float[b, 2] X) => (float variable) {
  variable = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0],
    nodes_nodeids = [0, 1, 2], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"]> (X)
}`,
    'ai.onnx.ml.TreeEnsembleRegressor',
    'computes decision trees',
  ],
  'skl2onnx: LogisticRegression with names of classes': [
    `pipeline (float[b, 2] X) => (float probabilities) {
  label, probabilities = ai.onnx.ml.LinearClassifier <classlabels_strings = ["cat", "dog"],
    coefficients = [-1.0, 2.0, 1.0, -2.0], intercepts = [0.5, -0.5], multi_class = 0,
    post_transform = "LOGISTIC"> (X)
}`,
    'ai.onnx.ml.LinearClassifier',
    'has labels that are strings',
  ],
  'skl2onnx: SimpleImputer': [
    `pipeline (float[b, 2] X) => (float variable) {
  variable = ai.onnx.ml.Imputer <imputed_value_floats = [0.5, 1.5], replaced_value_float = 0.0> (X)
}`,
    'ai.onnx.ml.Imputer',
  ],
  'ONNX Runtime, saved by a session: Gemm and Selu': [
    `main_graph (float[b, 4] x) => (float y) {
  y = com.microsoft.FusedGemm <activation = "Selu", alpha = 1.0, beta = 1.0, transB = 1>
    (x, float[8, 4] weight, float[8] bias)
}`,
    'com.microsoft.FusedGemm',
  ],
  "ONNX Runtime's quantize_dynamic: EmbedLayerNormalization": [
    `main_graph (int32[b, s] input_ids) => (float y) {
  y, mask_index = com.microsoft.QEmbedLayerNormalization <epsilon = 1e-12>
    (input_ids, , uint8[50, 8] word.weight, uint8[64, 8] pos.weight, , uint8[8] ln.weight,
    uint8[8] ln.bias, , float word.scale {0.01}, float pos.scale {0.01}, ,
    float ln.scale {0.01}, float ln.bias.scale {0.01}, uint8 word.zero {128},
    uint8 pos.zero {128}, , uint8 ln.zero {0}, uint8 ln.bias.zero {128})
}`,
    'com.microsoft.QEmbedLayerNormalization',
  ],
};

export const refused = Object.entries(texts).map(([name, [text, ...says]]) => ({
  name,
  model: { text, opsets, constants: 'initializers' } as const satisfies TextModel,
  says,
}));
