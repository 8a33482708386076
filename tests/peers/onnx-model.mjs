// Encodes models in the format of ONNX.
import protobuf from 'protobufjs';

/** TensorProto.DataType: by our names, which are ONNX's. */
export const dataTypes = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  string: 8,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
  bfloat16: 16,
  uint4: 21,
  int4: 22,
};

/** AttributeProto.AttributeType: the field of the value, by the number of the type. */
const attributeFields = [
  undefined,
  ...['f', 'i', 's', 't', 'g', 'floats', 'ints', 'strings', 'tensors', 'graphs'],
];

const field = (id, type, rule, options) => ({ id, type, rule, options });
const list = (id, type) => field(id, type, 'repeated', { packed: false });
const packed = (id, type) => field(id, type, 'repeated', { packed: true });
const message = (fields) => ({ fields });

/** https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, without what no test needs. */
const definitions = protobuf.Root.fromJSON({
  nested: {
    ModelProto: message({
      irVersion: field(1, 'int64'),
      producerName: field(2, 'string'),
      producerVersion: field(3, 'string'),
      docString: field(6, 'string'),
      graph: field(7, 'GraphProto'),
      opsetImport: list(8, 'OperatorSetIdProto'),
      metadataProps: list(14, 'StringStringEntryProto'),
      functions: list(25, 'FunctionProto'),
    }),
    OperatorSetIdProto: message({ domain: field(1, 'string'), version: field(2, 'int64') }),
    StringStringEntryProto: message({ key: field(1, 'string'), value: field(2, 'string') }),
    FunctionProto: message({ name: field(1, 'string'), domain: field(10, 'string') }),
    GraphProto: message({
      node: list(1, 'NodeProto'),
      name: field(2, 'string'),
      initializer: list(5, 'TensorProto'),
      docString: field(10, 'string'),
      input: list(11, 'ValueInfoProto'),
      output: list(12, 'ValueInfoProto'),
      valueInfo: list(13, 'ValueInfoProto'),
      sparseInitializer: list(15, 'SparseTensorProto'),
    }),
    NodeProto: message({
      input: list(1, 'string'),
      output: list(2, 'string'),
      name: field(3, 'string'),
      opType: field(4, 'string'),
      attribute: list(5, 'AttributeProto'),
      docString: field(6, 'string'),
      domain: field(7, 'string'),
    }),
    AttributeProto: message({
      name: field(1, 'string'),
      f: field(2, 'float'),
      i: field(3, 'int64'),
      s: field(4, 'bytes'),
      t: field(5, 'TensorProto'),
      g: field(6, 'GraphProto'),
      floats: list(7, 'float'),
      ints: list(8, 'int64'),
      strings: list(9, 'bytes'),
      tensors: list(10, 'TensorProto'),
      graphs: list(11, 'GraphProto'),
      type: field(20, 'int32'),
      refAttrName: field(21, 'string'),
      sparseTensor: field(22, 'SparseTensorProto'),
    }),
    TensorProto: message({
      dims: list(1, 'int64'),
      dataType: field(2, 'int32'),
      floatData: packed(4, 'float'),
      int32Data: packed(5, 'int32'),
      stringData: list(6, 'bytes'),
      int64Data: packed(7, 'int64'),
      name: field(8, 'string'),
      rawData: field(9, 'bytes'),
      doubleData: packed(10, 'double'),
      uint64Data: packed(11, 'uint64'),
      externalData: list(13, 'StringStringEntryProto'),
      dataLocation: field(14, 'int32'),
    }),
    SparseTensorProto: message({ values: field(1, 'TensorProto'), dims: list(3, 'int64') }),
    ValueInfoProto: message({ name: field(1, 'string'), type: field(2, 'TypeProto') }),
    TypeProto: message({
      tensorType: field(1, 'TensorType'),
      sequenceType: field(4, 'SequenceType'),
    }),
    TensorType: message({ elemType: field(1, 'int32'), shape: field(2, 'TensorShapeProto') }),
    SequenceType: message({ elemType: field(1, 'TypeProto') }),
    TensorShapeProto: message({ dim: list(1, 'Dimension') }),
    Dimension: message({ dimValue: field(1, 'int64'), dimParam: field(2, 'string') }),
  },
});

/** The bytes of a message: of a ModelProto, whose fields have the names of onnx.proto in camelCase. */
export function encodeProto(fields, type = 'ModelProto') {
  return new Uint8Array(definitions[type].encode(fields).finish()); // in Node it is a Buffer
}

/** The types of the fields of a message, by their names. */
export function fieldsOf(type) {
  return Object.fromEntries(
    definitions[type].fieldsArray.map(({ name, type, repeated }) => [name, { type, repeated }]),
  );
}

/**
 * The fields of a model, for encodeProto().
 *
 * @param graph.nodes { op, domain?, name?, inputs, outputs, attributes? }: null or '' among the names
 *   is absent. An attribute is a number, a string or an array of one of these. Whole numbers are INT
 *   or INTS, and others FLOAT or FLOATS; { float: 1 } and { floats: [1] } are, too. { tensor } and
 *   { graph } hold what describes one here
 * @param graph.inputs { name, dtype, shape? }: a size may be a name or undefined
 * @param graph.outputs the same
 * @param graph.initializers { name, dtype, shape, data, typed?, external? }: data is a typed array,
 *   or one of bytes for `bool` and types that wgemm has not. `typed` writes the elements to the
 *   field of their type, and external: { location, offset?, length? } writes none
 * @param graph.opsets versions by domain
 */
export function modelProto({ opsets = { '': 17 }, irVersion = 8, metadata = {}, ...graph }) {
  return {
    irVersion,
    producerName: 'wgemm tests',
    producerVersion: '1',
    opsetImport: Object.entries(opsets).map(([domain, version]) => ({ domain, version })),
    metadataProps: Object.entries(metadata).map(([key, value]) => ({ key, value })),
    graph: graphProto(graph),
  };
}

/** The bytes of a model. The parameters are those of modelProto(). */
export const encodeGraph = (model) => encodeProto(modelProto(model));

function graphProto({ name = 'graph', nodes, inputs = [], outputs = [], initializers = [] }) {
  return {
    name,
    node: nodes.map(nodeProto),
    input: inputs.map(valueProto),
    output: outputs.map(valueProto),
    initializer: initializers.map(tensorProto),
  };
}

function nodeProto({ op, domain = '', name = '', inputs, outputs, attributes = {} }) {
  return {
    opType: op,
    domain,
    name,
    input: inputs.map((input) => input ?? ''),
    output: outputs.map((output) => output ?? ''),
    attribute: Object.entries(attributes).map(([name, value]) => attributeProto(name, value)),
  };
}

const utf8 = new TextEncoder();

function attributeProto(name, value) {
  const [field, encoded] = attributeValue(value);
  return { name, type: attributeFields.indexOf(field), [field]: encoded };
}

function attributeValue(value) {
  const isWhole = (number) => typeof number === 'bigint' || Number.isInteger(number);
  if (Array.isArray(value)) {
    if (typeof value[0] === 'string') return ['strings', value.map((text) => utf8.encode(text))];
    return value.every(isWhole) ? ['ints', value.map(longOf)] : ['floats', value];
  }
  if (typeof value === 'string') return ['s', utf8.encode(value)];
  if (typeof value !== 'object') return isWhole(value) ? ['i', longOf(value)] : ['f', value];
  if ('float' in value) return ['f', value.float];
  if ('floats' in value) return ['floats', value.floats];
  if ('graph' in value) return ['g', graphProto(value.graph)];
  return ['t', tensorProto(value.tensor)];
}

/** A whole number as protobufjs takes it. */
function longOf(value) {
  const bits = BigInt.asUintN(64, BigInt(value));
  return { low: Number(bits & 0xffffffffn) | 0, high: Number(bits >> 32n) | 0, unsigned: false };
}

function valueProto({ name, dtype, shape }) {
  const tensorType = { elemType: dataTypes[dtype] };
  if (shape) {
    tensorType.shape = {
      dim: shape.map((size) => {
        if (size === undefined) return {};
        return typeof size === 'string' ? { dimParam: size } : { dimValue: size };
      }),
    };
  }
  return { name, type: { tensorType } };
}

const typedFields = { float32: 'floatData', int64: 'int64Data', float64: 'doubleData' };

function tensorProto({ name = '', dtype, shape, data, typed = false, external }) {
  const tensor = { name, dims: shape, dataType: dataTypes[dtype] };
  if (external) {
    const externalData = Object.entries(external).map(([key, value]) => ({
      key,
      value: String(value),
    }));
    return { ...tensor, dataLocation: 1, externalData };
  }
  if (typed) {
    const isHalf = dtype === 'float16' || dtype === 'bfloat16';
    const elements = isHalf ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data;
    const field = typedFields[dtype] ?? (/^uint(32|64)$/.test(dtype) ? 'uint64Data' : 'int32Data');
    const isInt64 = field === 'int64Data' || field === 'uint64Data';
    return { ...tensor, [field]: Array.from(elements, isInt64 ? longOf : Number) };
  }
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { ...tensor, rawData: bytes };
}
