// Starts ONNX Runtime Web, and makes models of one operator for it in memory.
import protobuf from 'protobufjs';

/** TensorProto.DataType: by our names, which are ONNX's. */
const dataTypes = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
  bfloat16: 16,
};

/** AttributeProto.AttributeType */
const attributeTypes = { FLOAT: 1, INT: 2, STRING: 3, FLOATS: 6, INTS: 7 };

const field = (id, type, rule) => ({ id, type, rule });
const message = (fields) => ({ fields });

// The definitions of onnx.proto that such a model needs.
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
const { ModelProto } = protobuf.Root.fromJSON({
  nested: {
    ModelProto: message({
      irVersion: field(1, 'int64'),
      graph: field(7, 'GraphProto'),
      opsetImport: field(8, 'OperatorSetIdProto', 'repeated'),
    }),
    OperatorSetIdProto: message({ domain: field(1, 'string'), version: field(2, 'int64') }),
    GraphProto: message({
      node: field(1, 'NodeProto', 'repeated'),
      name: field(2, 'string'),
      initializer: field(5, 'TensorProto', 'repeated'),
      input: field(11, 'ValueInfoProto', 'repeated'),
      output: field(12, 'ValueInfoProto', 'repeated'),
    }),
    NodeProto: message({
      input: field(1, 'string', 'repeated'),
      output: field(2, 'string', 'repeated'),
      name: field(3, 'string'),
      opType: field(4, 'string'),
      attribute: field(5, 'AttributeProto', 'repeated'),
      domain: field(7, 'string'),
    }),
    AttributeProto: message({
      name: field(1, 'string'),
      f: field(2, 'float'),
      i: field(3, 'int64'),
      s: field(4, 'bytes'),
      floats: field(7, 'float', 'repeated'),
      ints: field(8, 'int64', 'repeated'),
      type: field(20, 'int32'),
    }),
    TensorProto: message({
      dims: field(1, 'int64', 'repeated'),
      dataType: field(2, 'int32'),
      name: field(8, 'string'),
      rawData: field(9, 'bytes'),
    }),
    ValueInfoProto: message({ name: field(1, 'string'), type: field(2, 'TypeProto') }),
    TypeProto: message({ tensorType: field(1, 'TensorType') }),
    TensorType: message({ elemType: field(1, 'int32'), shape: field(2, 'TensorShapeProto') }),
    TensorShapeProto: message({ dim: field(1, 'Dimension', 'repeated') }),
    Dimension: message({ dimValue: field(1, 'int64'), dimParam: field(2, 'string') }),
  },
});

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
  const opsetImport = [{ domain: '', version: opset }];
  if (domain !== '') opsetImport.push({ domain, version: 1 });
  const model = {
    irVersion: 8,
    opsetImport,
    graph: {
      name: type,
      node: [
        {
          input: inputs.map((input) => input?.name ?? ''),
          output: ['Y'],
          name: type,
          opType: type,
          domain,
          attribute: Object.entries(attributes).map(([name, value]) =>
            encodeAttribute(name, value),
          ),
        },
      ],
      input: given.filter((input) => !input.data).map(encodeValue),
      initializer: given.filter((input) => input.data).map(encodeInitializer),
      output: [encodeValue({ name: 'Y', ...output })],
    },
  };
  return ModelProto.encode(ModelProto.fromObject(model)).finish();
}

function encodeAttribute(name, value) {
  if (Array.isArray(value)) return { name, type: attributeTypes.INTS, ints: value };
  if (typeof value === 'string')
    return { name, type: attributeTypes.STRING, s: Buffer.from(value) };
  if (typeof value === 'object') return { name, type: attributeTypes.FLOAT, f: value.float };
  return Number.isInteger(value)
    ? { name, type: attributeTypes.INT, i: value }
    : { name, type: attributeTypes.FLOAT, f: value };
}

function encodeValue({ name, dtype, shape }) {
  const tensorType = { elemType: dataTypes[dtype] };
  if (shape) tensorType.shape = { dim: shape.map((size) => ({ dimValue: size })) };
  return { name, type: { tensorType } };
}

function encodeInitializer({ name, dtype, shape, data }) {
  return {
    name,
    dims: shape,
    dataType: dataTypes[dtype],
    rawData: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  };
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
    createSession: (model) => ort.InferenceSession.create(model, { executionProviders: ['wasm'] }),

    /** A tensor for session.run(). */
    tensor: ({ dtype, shape, data }) => new ort.Tensor(dtype, data, shape),
  };
}
