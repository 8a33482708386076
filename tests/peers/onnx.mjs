// Starts ONNX Runtime Web, and makes models of one operator for it.
import { encodeGraph } from './onnx-model.mjs';

/**
 * The bytes of a model with one node.
 *
 * @param op.type `Gemm`, `MatMul`, `QGemm`...
 * @param op.domain '' or `com.microsoft`, whose opset is 1
 * @param op.opset of the domain ''
 * @param op.attributes by name: a number, a string, or an array of whole numbers (INTS). A whole
 *   number becomes INT and any other FLOAT; { float: 1 } is a FLOAT
 * @param op.inputs in the operator's order: { name, dtype, shape } is an input of each run; with
 *   `data` (a typed array) it is a constant of the model; null is omitted
 * @param op.output { dtype, shape? }, named Y
 */
export function encodeModel({ type, domain = '', opset = 13, attributes = {}, inputs, output }) {
  const given = inputs.filter((input) => input !== null);
  const names = inputs.map((input) => input?.name ?? '');
  return encodeGraph({
    name: type,
    opsets: { '': opset, ...(domain !== '' && { [domain]: 1 }) },
    nodes: [{ op: type, domain, name: type, inputs: names, outputs: ['Y'], attributes }],
    inputs: given.filter((input) => !input.data),
    initializers: given.filter((input) => input.data),
    outputs: [{ name: 'Y', ...output }],
  });
}

/**
 * ONNX Runtime Web's WebAssembly on `threads` threads. Call it before the first session: all
 * sessions share its threads.
 */
export async function loadOrt({ threads = 1 } = {}) {
  const { default: ort } = await import('onnxruntime-web');
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = 'error';
  return {
    version: ort.env.versions.web,

    /** A session for the bytes of a model. */
    createSession: (model, options = {}) =>
      ort.InferenceSession.create(model, {
        ...options,
        executionProviders: ['wasm'],
        logSeverityLevel: 3, // errors: it warns of each model of an old opset
      }),

    /** A tensor for session.run(). */
    tensor: ({ dtype, shape, data }) => new ort.Tensor(dtype, data, shape),
  };
}
