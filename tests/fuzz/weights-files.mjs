// Writes files of GGUF and safetensors, as valid or as wrong as a test wants them.

/** The numbers of the types of metadata. */
const metadataTypes = [
  ...['uint8', 'int8', 'uint16', 'int16', 'uint32', 'int32', 'float32', 'bool', 'text', 'list'],
  ...['uint64', 'int64', 'float64'],
];
const setters = {
  uint8: [1, 'setUint8'],
  int8: [1, 'setInt8'],
  uint16: [2, 'setUint16'],
  int16: [2, 'setInt16'],
  uint32: [4, 'setUint32'],
  int32: [4, 'setInt32'],
  float32: [4, 'setFloat32'],
  bool: [1, 'setUint8'],
  uint64: [8, 'setBigUint64'],
  int64: [8, 'setBigInt64'],
  float64: [8, 'setFloat64'],
};

/** Bytes to which values are appended, little-endian. */
class Writer {
  parts = [];
  length = 0;

  bytes(part) {
    this.parts.push(part);
    this.length += part.length;
  }

  number(type, value) {
    const [size, setter] = setters[type];
    const view = new DataView(new ArrayBuffer(size));
    view[setter](0, type.endsWith('int64') ? BigInt(value) : Number(value), true);
    this.bytes(new Uint8Array(view.buffer));
  }

  text(value) {
    const bytes = new TextEncoder().encode(value);
    this.number('uint64', bytes.length);
    this.bytes(bytes);
  }

  /** A value of the metadata: its type, and what is behind it. */
  value(type, value) {
    if (type === 'text') this.text(value);
    else if (type === 'list') {
      const [inner, values, length = values.length] = value;
      this.type(inner);
      this.number('uint64', length);
      for (const each of values) this.value(inner, each);
    } else this.number(type, value);
  }

  type(type) {
    this.number('uint32', typeof type === 'number' ? type : metadataTypes.indexOf(type));
  }

  pad(alignment) {
    this.bytes(new Uint8Array((alignment - (this.length % alignment)) % alignment));
  }

  whole() {
    const bytes = new Uint8Array(this.length);
    let at = 0;
    for (const part of this.parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
}

/**
 * The bytes of a GGUF file.
 * @param file `metadata`: a list of [key, type, value]. The value of a list is [type, values].
 *   `tensors`: a list of { name, ne, type, data }, where `type` is the number of ggml, and `offset`
 *   is where the data should be said to be. `tensorCount` and `metadataCount` are what the header
 *   says of their numbers.
 */
export function encodeGGUF({
  magic = 'GGUF',
  version = 3,
  alignment = 32,
  metadata = [],
  tensors = [],
  tensorCount = tensors.length,
  metadataCount = metadata.length,
}) {
  const writer = new Writer();
  writer.bytes(new TextEncoder().encode(magic));
  writer.number('uint32', version);
  writer.number('uint64', tensorCount);
  writer.number('uint64', metadataCount);
  for (const [key, type, value] of metadata) {
    writer.text(key);
    writer.type(type);
    if (value !== undefined) writer.value(type, value);
  }
  let next = 0;
  for (const { name, ne, type, data, offset = next } of tensors) {
    writer.text(name);
    writer.number('uint32', ne.length);
    for (const size of ne) writer.number('uint64', size);
    writer.number('uint32', type);
    writer.number('uint64', offset);
    next = Math.ceil((next + data.length) / alignment) * alignment;
  }
  for (const { data } of tensors) {
    writer.pad(alignment);
    writer.bytes(data);
  }
  return writer.whole();
}

/**
 * The bytes of a file of safetensors.
 * @param file `tensors`: a list of { name, dtype, shape, data }. `header`: what the JSON should be
 *   instead, a text or a value. `length`: what the file says of the length of the JSON.
 */
export function encodeSafetensors({ metadata, tensors = [], header, length }) {
  const value = metadata ? { __metadata__: metadata } : {};
  let next = 0;
  for (const { name, dtype, shape, data } of tensors) {
    const data_offsets = [next, next + data.length];
    Object.defineProperty(value, name, { value: { dtype, shape, data_offsets }, enumerable: true });
    next += data.length;
  }
  const text = typeof header === 'string' ? header : JSON.stringify(header ?? value);
  const json = new TextEncoder().encode(text);
  const writer = new Writer();
  writer.number('uint64', length ?? json.length);
  writer.bytes(json);
  for (const { data } of tensors) writer.bytes(data);
  return writer.whole();
}

/** Counts from 0 on, so that each range of bytes differs. */
const counted = (length) => Uint8Array.from({ length }, (_, i) => i % 251);

/** Files for the fuzz test, as [format, what the writers above take]. */
export const corpus = [
  ['gguf', {}],
  [
    'gguf',
    {
      metadata: [
        ['general.architecture', 'text', 'llama'],
        ['general.alignment', 'uint32', 32],
        ['a.uint8', 'uint8', 200],
        ['a.int8', 'int8', -2],
        ['a.uint16', 'uint16', 60000],
        ['a.int16', 'int16', -300],
        ['a.int32', 'int32', -70000],
        ['a.float32', 'float32', 0.5],
        ['a.bool', 'bool', 1],
        ['a.uint64', 'uint64', 2n ** 40n],
        ['a.int64', 'int64', -(2n ** 60n)],
        ['a.float64', 'float64', 1e-300],
        ['tokens', 'list', ['text', ['<s>', 'é', 'b', '']]],
        ['scores', 'list', ['float32', [1, 2, 3]]],
        ['flags', 'list', ['bool', [0, 1]]],
        [
          'lists',
          'list',
          [
            'list',
            [
              ['uint8', [1]],
              ['list', []],
            ],
          ],
        ],
      ],
      tensors: [
        { name: 'f32', ne: [3, 2], type: 0, data: counted(24) },
        { name: 'f16', ne: [5], type: 1, data: counted(10) },
        { name: 'q4_0', ne: [64, 2], type: 2, data: counted(72) },
        { name: 'q4_1', ne: [32], type: 3, data: counted(20) },
        { name: 'q5_0', ne: [32], type: 6, data: counted(22) },
        { name: 'q5_1', ne: [32], type: 7, data: counted(24) },
        { name: 'q8_0', ne: [32, 3, 1], type: 8, data: counted(102) },
      ],
    },
  ],
  [
    'gguf',
    {
      version: 2,
      alignment: 64,
      metadata: [['general.alignment', 'uint32', 64]],
      tensors: [
        { name: 'q2_k', ne: [256], type: 10, data: counted(84) },
        { name: 'q3_k', ne: [256], type: 11, data: counted(110) },
        { name: 'q4_k', ne: [256, 2], type: 12, data: counted(288) },
        { name: 'q5_k', ne: [256], type: 13, data: counted(176) },
        { name: 'q6_k', ne: [256], type: 14, data: counted(210) },
        { name: 'iq4_xs', ne: [256], type: 23, data: counted(136) },
        { name: 'bf16', ne: [2, 2, 1, 1], type: 30, data: counted(8) },
        { name: 'i64', ne: [1], type: 27, data: counted(8) },
        { name: 'none', ne: [0, 4], type: 0, data: counted(0) },
        { name: 'scalar', ne: [], type: 28, data: counted(8) },
      ],
    },
  ],
  ['safetensors', {}],
  [
    'safetensors',
    {
      metadata: { format: 'pt', é: '"' },
      tensors: [
        { name: 'f64', dtype: 'F64', shape: [2], data: counted(16) },
        { name: 'f32', dtype: 'F32', shape: [2, 2], data: counted(16) },
        { name: 'f16', dtype: 'F16', shape: [3, 1], data: counted(6) },
        { name: 'bf16', dtype: 'BF16', shape: [1], data: counted(2) },
        { name: 'i64', dtype: 'I64', shape: [], data: counted(8) },
        { name: 'bool', dtype: 'BOOL', shape: [3], data: counted(3) },
        { name: 'i16', dtype: 'I16', shape: [2], data: counted(4) },
        { name: 'f8', dtype: 'F8_E4M3', shape: [2], data: counted(2) },
        { name: 'none', dtype: 'U32', shape: [0], data: counted(0) },
        { name: '__proto__', dtype: 'U8', shape: [1], data: counted(1) },
      ],
    },
  ],
];
