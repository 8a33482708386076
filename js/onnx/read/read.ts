/**
 * Reads the messages of a model.
 *
 * https://github.com/onnx/onnx/blob/main/onnx/onnx.proto has the numbers of their fields.
 */
import { classOf } from '../../base/arrays.js';
import { type Format, formatOf, givenBytes } from '../../base/bytes.js';
import { ArgumentError, describe, GemmError, UnsupportedError } from '../../base/errors.js';
import { messageOf } from '../../base/port.js';
import { readOptions } from '../../base/read-options.js';
import { Source, type WeightsSource } from '../../weights/source.js';
import type {
  OnnxAttribute,
  OnnxGraph,
  OnnxModel,
  OnnxNode,
  OnnxTensor,
  OnnxUnreadTensor,
  OnnxValueInfo,
} from './model.js';
import {
  type ExternalData,
  type Fetch,
  fetchPending,
  type PendingData,
  readEntry,
  readTensorField,
  typeOf,
} from './tensors.js';
import { Wire } from './wire.js';

const op = 'readOnnx';

/** @internal The models that `readOnnx` has returned. */
export const models = new WeakSet<object>();

/** The most graphs within each other. */
const mostGraphs = 16;

/** Formats of files that users pass by mistake. */
const formats: readonly Format[] = [
  [/^.{8}\{"/s, 'safetensors'],
  [/^GGUF/, 'GGUF'],
  [/^.{4}ORTM/s, 'the ORT format'],
  [/^.{4}TFL3/s, 'TensorFlow Lite'],
  [/^PK/, 'a zip archive, such as PyTorch writes'],
  [/^\x80./s, 'a pickle of Python'],
  [/^\x89HDF/, 'HDF5'],
  [/^\0asm/, 'WebAssembly'],
  [/^(\x89PNG|\xff\xd8|GIF8|RIFF)/, 'an image'],
];

/**
 * Returns the bytes of a tensor that is in another file, or a promise of them.
 *
 * @param part where the bytes are
 *
 * @category Models
 */
export type ReadExternalData = (
  part: ExternalData,
) => Uint8Array | ArrayBuffer | Promise<Uint8Array | ArrayBuffer>;

/**
 * Options of {@link readOnnx}.
 *
 * @category Models
 */
export interface ReadOptions {
  /**
   * Data that the model keeps outside of it, such as in a file next to it. Default: a model with
   * external data is refused.
   *
   * - An object has the files by `location`, the path that the model states. `loadModel` packs most
   *   constant weights of `MatMul` and `Gemm` while it reads them, so that they never lie in memory
   *   twice.
   * - A function returns the bytes of a tensor. It is called for one tensor after the other.
   */
  externalData?: Readonly<Record<string, WeightsSource>> | ReadExternalData | undefined;
}

/**
 * Reads a model, and knows nothing about operators. A model of strangers is safe to read: all sizes
 * are checked. The objects of the result are frozen.
 *
 * Throws an {@link ArgumentError} if the bytes are not a model, or external data is missing.
 *
 * @category Models
 * @param bytes the bytes of an .onnx file. Tensors of the result may be views of them
 * @param options options
 */
export async function readOnnx(
  bytes: Uint8Array | ArrayBuffer,
  options?: ReadOptions,
): Promise<OnnxModel> {
  const { externalData } = readOptions(op, options, ['externalData']);
  checkFetch(op, externalData);
  return readChecked(bytes, externalData as ReadOptions['externalData']);
}

/** @internal Elements of a tensor that are not read yet, and the file that has them. */
export interface LeftData extends PendingData {
  readonly source: Source;
}

/**
 * @internal As `readOnnx`.
 * @param check refuses a model before its external data is fetched, and returns the tensors whose
 * elements need not be read
 * @param left receives the tensors whose elements are not read: `check` returned them, and the
 * option `externalData` has their files
 */
export async function readChecked(
  bytes: Uint8Array | ArrayBuffer,
  externalData: ReadOptions['externalData'],
  check?: (model: OnnxModel) => ReadonlySet<OnnxTensor>,
  left: LeftData[] = [],
): Promise<OnnxModel> {
  const given = givenBytes(op, 'bytes', bytes);
  // Another thread may change shared memory after a check.
  const isShared = Object.prototype.toString.call(given.buffer) === '[object SharedArrayBuffer]';
  const wire = new Wire(isShared ? given.slice() : given);
  const files = filesOf(externalData);
  const pending: PendingData[] = [];
  let model;
  try {
    model = readModel(wire, pending);
  } catch (error) {
    const format = error instanceof UnsupportedError ? undefined : formatOf(given, formats);
    if (format) throw new ArgumentError(op, 'bytes', `${op}: bytes is ${format}, not a model`);
    if (error instanceof GemmError) throw error;
    throw wire.malformed(`cannot be read: ${messageOf(error)}`);
  }
  const stays = pending.length > 0 ? check?.(model) : undefined;
  const fetched = pending.filter((data) => {
    const source = stays?.has(data.tensor) ? files?.get(data.location) : undefined;
    if (source) left.push({ ...data, source });
    return !source;
  });
  await fetchPending(fetched, files ? readerOf(files) : (externalData as Fetch | undefined));
  models.add(model);
  return frozen(model);
}

/** @internal */
export function checkFetch(op: string, externalData: unknown): void {
  if (externalData === undefined || typeof externalData === 'function') return;
  let found = classOf(externalData) ?? describe(externalData);
  if (found === 'an object') {
    found = Object.prototype.toString.call(externalData).slice(8, -1);
    if (found === 'Object') return;
  }
  const rule = 'it must be a function, or an object of files by location';
  throw new ArgumentError(op, 'externalData', `${op}: externalData is ${found}; ${rule}`);
}

/** The files by location, if `externalData` is an object of them, and undefined otherwise. */
function filesOf(externalData: ReadOptions['externalData']): Map<string, Source> | undefined {
  if (typeof externalData !== 'object') return undefined;
  const what = 'the external data of this model';
  const entries = Object.entries(externalData);
  return new Map(entries.map(([location, given]) => [location, new Source(op, what, given)]));
}

/** A function that reads the parts of files. */
const readerOf =
  (files: ReadonlyMap<string, Source>): Fetch =>
  ({ location, offset, length }) => {
    const source = files.get(location);
    if (source) return source.read(offset, length);
    const found = `externalData has no ${describe(location)}, where the model keeps a tensor`;
    throw new ArgumentError(op, 'externalData', `${op}: ${found}; pass the file under this name`);
  };

/** @internal Freezes a value and all of its parts, except typed arrays, which cannot be frozen. */
export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  const isOfNumbers = Array.isArray(value) && typeof value[0] !== 'object';
  if (!isOfNumbers)
    for (const part of value instanceof Map ? value.values() : Object.values(value)) frozen(part);
  return Object.freeze(value);
}

function readModel(wire: Wire, pending: PendingData[]): OnnxModel {
  let irVersion = 0;
  let graph: OnnxGraph | undefined;
  const producer = { name: '', version: '' };
  const opsets = new Map<string, number>();
  const metadata = new Map<string, string>();
  const functions: string[] = [];
  wire.fields((field) => {
    if (field === 1) irVersion = wire.size('ir_version');
    else if (field === 2) producer.name = wire.text();
    else if (field === 3) producer.version = wire.text();
    else if (field === 7) {
      if (graph) throw wire.malformed('has two graphs');
      graph = readGraph(wire, 'graph', pending, 1);
    } else if (field === 8) readOpset(wire, opsets);
    else if (field === 14) readEntry(wire, 'metadata', metadata);
    else if (field === 25) functions.push(readFunction(wire));
  });
  if (!graph) throw wire.malformed('has no graph');
  return { irVersion, producer, opsets, graph, metadata, functions };
}

function readOpset(wire: Wire, opsets: Map<string, number>): void {
  let domain = '';
  let version = 0;
  wire.message('opset import', () => {
    wire.fields((field) => {
      if (field === 1) domain = standard(wire.text());
      else if (field === 2) version = wire.size('version');
    });
  });
  opsets.set(domain, version); // some files state a domain twice: the last one counts
}

/** The domain of ONNX itself has two names. */
const standard = (domain: string) => (domain === 'ai.onnx' ? '' : domain);

function readFunction(wire: Wire): string {
  let name = '';
  let domain = '';
  wire.message('function', () =>
    wire.fields((field) => {
      if (field === 1) name = wire.text();
      else if (field === 10) domain = standard(wire.text());
    }),
  );
  return domain === '' ? name : `${domain}.${name}`;
}

function readGraph(wire: Wire, title: string, pending: PendingData[], depth: number): OnnxGraph {
  if (depth > mostGraphs) throw wire.malformed(`has graphs nested more than ${mostGraphs} deep`);
  let name = '';
  const nodes: OnnxNode[] = [];
  const inputs: OnnxValueInfo[] = [];
  const outputs: OnnxValueInfo[] = [];
  const values: OnnxValueInfo[] = [];
  const initializers = new Map<string, OnnxTensor | OnnxUnreadTensor>();
  wire.message(title, () =>
    wire.fields((field) => {
      if (field === 1) nodes.push(readNode(wire, nodes.length, pending, depth));
      else if (field === 2) name = wire.text();
      else if (field === 5) {
        const tensor = readTensorField(wire, 'initializer', pending);
        if (initializers.has(tensor.name))
          throw wire.malformed(`has two initializers ${describe(tensor.name)}`);
        if (tensor.name === '') throw wire.malformed('has an initializer without a name');
        initializers.set(tensor.name, tensor);
      } else if (field === 11) inputs.push(readValueInfo(wire, 'input'));
      else if (field === 12) outputs.push(readValueInfo(wire, 'output'));
      else if (field === 13) values.push(readValueInfo(wire, 'value'));
      else if (field === 15) {
        const message = `${op}: ${title} has sparse initializers, which are not supported`;
        throw new UnsupportedError(op, 'bytes', message);
      }
    }),
  );
  return { name, nodes, inputs, outputs, values, initializers };
}

const noAttributes: ReadonlyMap<string, OnnxAttribute> = new Map();

function readNode(wire: Wire, index: number, pending: PendingData[], depth: number): OnnxNode {
  let name = '';
  let type = '';
  let domain = '';
  const inputs: string[] = [];
  const outputs: string[] = [];
  let attributes: Map<string, OnnxAttribute> | undefined;
  return wire.message(`node ${index}`, () => {
    wire.fields((field) => {
      if (field === 1) inputs.push(wire.text());
      else if (field === 2) outputs.push(wire.text());
      else if (field === 3) name = wire.text();
      else if (field === 4) type = wire.text();
      else if (field === 5) {
        const [key, value] = readAttribute(wire, pending, depth);
        if (attributes?.has(key)) throw wire.malformed(`repeats the attribute ${describe(key)}`);
        attributes ??= new Map();
        attributes.set(key, value);
      } else if (field === 7) domain = standard(wire.text());
    });
    if (type === '') throw wire.malformed(`${describe(name)} has no operator`);
    return { name, op: type, domain, inputs, outputs, attributes: attributes ?? noAttributes };
  });
}

function readAttribute(
  wire: Wire,
  pending: PendingData[],
  depth: number,
): [name: string, value: OnnxAttribute] {
  return wire.message('attribute', () => {
    let name = '';
    let type = 0;
    let seen = 0;
    /** By the number of the field. A writer may omit a number or a text that is the default. */
    const numbers: (number | bigint)[] = [0, 0, 0, 0];
    let string = '';
    let tensor: OnnxTensor | OnnxUnreadTensor | undefined;
    let graph: OnnxGraph | undefined;
    const floats: number[] = [];
    const ints: (number | bigint)[] = [];
    const strings: string[] = [];
    const tensors: (OnnxTensor | OnnxUnreadTensor)[] = [];
    const graphs: OnnxGraph[] = [];
    wire.fields((field) => {
      if (field === 1) name = wire.text();
      else if (field === 2) numbers[2] = wire.float();
      else if (field === 3) numbers[3] = wire.int();
      else if (field === 4) string = wire.text();
      else if (field === 5) tensor = readTensorField(wire, 'tensor', pending);
      else if (field === 6) graph = readGraph(wire, 'graph', pending, depth + 1);
      else if (field === 7) wire.floats((value) => wire.add(floats, value));
      else if (field === 8) wire.ints((value) => wire.add(ints, value));
      else if (field === 9) strings.push(wire.text());
      else if (field === 10) tensors.push(readTensorField(wire, 'tensor', pending));
      else if (field === 11) graphs.push(readGraph(wire, 'graph', pending, depth + 1));
      else if (field === 20) type = wire.size('type');
      else if (field === 21) throw wire.malformed('refers to an attribute of a function');
      if (2 <= field && field <= 11) seen = field;
    });
    // Old models state no type. Types that are read are one less than their field.
    const field = type === 0 ? seen : type + 1;
    const values: Record<number, OnnxAttribute | undefined> = {
      2: numbers[2],
      3: numbers[3],
      4: string,
      5: tensor,
      6: graph,
      7: floats,
      8: ints,
      9: strings,
      10: tensors,
      11: graphs,
    };
    const value = field in values ? values[field] : null;
    if (value === undefined) throw wire.malformed(`${describe(name)} has no value`);
    return [name, value];
  });
}

function readValueInfo(wire: Wire, title: string): OnnxValueInfo {
  let name = '';
  let type: Pick<OnnxValueInfo, 'dtype' | 'shape'> = { dtype: 'none', shape: undefined };
  wire.message(title, () =>
    wire.fields((field) => {
      if (field === 1) name = wire.text();
      else if (field === 2) {
        type = wire.message('type', () => {
          let tensor: typeof type = { dtype: 'other', shape: undefined };
          wire.fields((field) => {
            if (field === 1) tensor = readTensorType(wire);
          });
          return tensor;
        });
      }
    }),
  );
  return { name, ...type };
}

function readTensorType(wire: Wire): Pick<OnnxValueInfo, 'dtype' | 'shape'> {
  let [dtype]: ReturnType<typeof typeOf> = typeOf(0);
  let shape: (number | string | undefined)[] | undefined;
  wire.message('tensor', () =>
    wire.fields((field) => {
      if (field === 1) [dtype] = typeOf(wire.int());
      else if (field === 2) {
        const sizes: typeof shape = [];
        shape = sizes;
        wire.message('shape', () =>
          wire.fields((field) => {
            if (field === 1) sizes.push(readDimension(wire));
          }),
        );
      }
    }),
  );
  return { dtype, shape };
}

function readDimension(wire: Wire): number | string | undefined {
  let size: number | string | undefined;
  wire.message('size', () =>
    wire.fields((field) => {
      if (field === 1) {
        const value = wire.int();
        // Some programs write -1 for a dynamic size.
        size = typeof value === 'number' && value >= 0 ? value : undefined;
      } else if (field === 2) size = wire.text() || undefined;
    }),
  );
  return size;
}
