// Encodes models in the format of ONNX.
import { PbfWriter } from 'pbf';

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

/**
 * A field of messages: its number and its type. Fields of arrays are packed if the name says so.
 */
const messages = {
  ModelProto: {
    irVersion: [1, 'int'],
    producerName: [2, 'string'],
    producerVersion: [3, 'string'],
    docString: [6, 'string'],
    graph: [7, 'GraphProto'],
    opsetImport: [8, 'OperatorSetIdProto'],
    metadataProps: [14, 'StringStringEntryProto'],
    functions: [25, 'FunctionProto'],
  },
  OperatorSetIdProto: { domain: [1, 'string'], version: [2, 'int'] },
  StringStringEntryProto: { key: [1, 'string'], value: [2, 'string'] },
  FunctionProto: { name: [1, 'string'], domain: [10, 'string'] },
  GraphProto: {
    node: [1, 'NodeProto'],
    name: [2, 'string'],
    initializer: [5, 'TensorProto'],
    docString: [10, 'string'],
    input: [11, 'ValueInfoProto'],
    output: [12, 'ValueInfoProto'],
    valueInfo: [13, 'ValueInfoProto'],
    sparseInitializer: [15, 'SparseTensorProto'],
  },
  NodeProto: {
    input: [1, 'string'],
    output: [2, 'string'],
    name: [3, 'string'],
    opType: [4, 'string'],
    attribute: [5, 'AttributeProto'],
    docString: [6, 'string'],
    domain: [7, 'string'],
  },
  AttributeProto: {
    name: [1, 'string'],
    f: [2, 'float'],
    i: [3, 'int'],
    s: [4, 'string'],
    t: [5, 'TensorProto'],
    g: [6, 'GraphProto'],
    floats: [7, 'float'],
    ints: [8, 'int'],
    strings: [9, 'string'],
    tensors: [10, 'TensorProto'],
    graphs: [11, 'GraphProto'],
    type: [20, 'int'],
    refAttrName: [21, 'string'],
    sparseTensor: [22, 'SparseTensorProto'],
  },
  TensorProto: {
    dims: [1, 'int'],
    dataType: [2, 'int'],
    floatData: [4, 'packed float'],
    int32Data: [5, 'packed int'],
    stringData: [6, 'string'],
    int64Data: [7, 'packed int'],
    name: [8, 'string'],
    rawData: [9, 'bytes'],
    doubleData: [10, 'packed double'],
    uint64Data: [11, 'packed int'],
    externalData: [13, 'StringStringEntryProto'],
    dataLocation: [14, 'int'],
  },
  SparseTensorProto: { values: [1, 'TensorProto'], dims: [3, 'int'] },
  ValueInfoProto: { name: [1, 'string'], type: [2, 'TypeProto'] },
  TypeProto: {
    tensorType: [1, 'TensorType'],
    sequenceType: [4, 'SequenceType'],
    mapType: [5, 'MapType'],
  },
  TensorType: { elemType: [1, 'int'], shape: [2, 'TensorShapeProto'] },
  SequenceType: { elemType: [1, 'TypeProto'] },
  MapType: { keyType: [1, 'int'], valueType: [2, 'TypeProto'] },
  TensorShapeProto: { dim: [1, 'Dimension'] },
  Dimension: { dimValue: [1, 'int'], dimParam: [2, 'string'] },
};

/**
 * The bytes of a message, such as a ModelProto. Its fields have the names of onnx.proto in
 * camelCase. A whole number may be a bigint.
 */
export function encodeProto(fields, type = 'ModelProto') {
  const writer = new PbfWriter();
  writeFields(messages[type])(fields, writer);
  return writer.finish().slice();
}

const writeFields = (known) => (fields, writer) => {
  for (const [name, value] of Object.entries(fields)) {
    if (!known[name]) throw new Error(`no field ${name}`);
    const [id, type] = known[name];
    const scalar = type.replace('packed ', '');
    if (value === undefined) continue;
    if (scalar !== type) {
      writer.writeMessage(id, (list) => list.forEach((item) => write[scalar](writer, item)), value);
      continue;
    }
    for (const item of Array.isArray(value) && type !== 'bytes' ? value : [value]) {
      if (!write[type]) {
        writer.writeMessage(id, writeFields(messages[type]), item);
        continue;
      }
      writer.writeTag(id, wireTypes[type]);
      write[type](writer, item);
    }
  }
};

const utf8 = new TextEncoder();

const wireTypes = { int: 0, double: 1, string: 2, bytes: 2, float: 5 };

const write = {
  int(writer, value) {
    let rest = BigInt.asUintN(64, BigInt(value)); // writeVarint() rounds it
    const bytes = [];
    for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
    bytes.push(Number(rest));
    writer.realloc(bytes.length);
    writer.buf.set(bytes, writer.pos);
    writer.pos += bytes.length;
  },
  float: (writer, value) => writer.writeFloat(value),
  double: (writer, value) => writer.writeDouble(value),
  // writeString() writes some letters as others.
  string: (writer, value) => writer.writeBytes(utf8.encode(value)),
  bytes: (writer, value) => writer.writeBytes(value),
};

/**
 * The fields of a model, for encodeProto().
 *
 * @param graph.nodes { op, domain?, name?, inputs, outputs, attributes? }: null or '' among the
 *   names is absent. An attribute is a number, a string or an array of one of these. Whole numbers
 *   are INT or INTS, and others FLOAT or FLOATS; { float: 1 } and { floats: [1] } are, too.
 *   { tensor } and { graph } hold what describes one here
 * @param graph.inputs { name, dtype, shape? }: a size may be a name or undefined
 * @param graph.outputs the same. The dtype of an output of ZipMap is 'seq(map(int64,float))'
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

/** The bytes of a model. The parameters are as in modelProto(). */
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

function attributeProto(name, value) {
  const [field, encoded] = attributeValue(value);
  return { name, type: attributeFields.indexOf(field), [field]: encoded };
}

function attributeValue(value) {
  const isWhole = (number) => typeof number === 'bigint' || Number.isInteger(number);
  if (Array.isArray(value)) {
    if (typeof value[0] === 'string') return ['strings', value];
    return value.every(isWhole) ? ['ints', value] : ['floats', value];
  }
  if (typeof value === 'string') return ['s', value];
  if (typeof value !== 'object') return isWhole(value) ? ['i', value] : ['f', value];
  if ('float' in value) return ['f', value.float];
  if ('floats' in value) return ['floats', value.floats];
  if ('graph' in value) return ['g', graphProto(value.graph)];
  return ['t', tensorProto(value.tensor)];
}

function valueProto({ name, dtype, shape }) {
  if (dtype === 'seq(map(int64,float))') {
    const valueType = { tensorType: { elemType: dataTypes.float32 } };
    const mapType = { keyType: dataTypes.int64, valueType };
    return { name, type: { sequenceType: { elemType: { mapType } } } };
  }
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
    return { ...tensor, [field]: Array.from(elements) };
  }
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { ...tensor, rawData: bytes };
}
