/**
 * Reads tensors: TensorProto. Every size is compared with the bytes that are there, before memory
 * is allocated for it.
 */
import { viewOf } from '../../base/arrays.js';
import { givenBytes } from '../../base/bytes.js';
import { ArgumentError, describe } from '../../base/errors.js';
import type { DataArray } from '../../base/tensor.js';
import type { OnnxOtherDType, OnnxTensor, OnnxUnreadTensor } from './model.js';
import { type OnnxDType, storedAs } from './value.js';
import type { Wire } from './wire.js';

const op = 'readOnnx';

/** The field of TensorProto that has the elements, if they are not raw. */
const [floats, int32s, int64s, doubles, uint64s] = [4, 5, 7, 10, 11];
const typedFields = [floats, int32s, 6, int64s, doubles, uint64s];

/** By TensorProto.DataType: the type, and for those that are read bytes per element and a field. */
type Encoding = readonly [OnnxDType, bytes: number, field: number];
type Unread = readonly [OnnxOtherDType];
const types: readonly (Encoding | Unread)[] = [
  ['none'],
  ['float32', 4, floats],
  ['uint8', 1, int32s],
  ['int8', 1, int32s],
  ['uint16'],
  ['int16'],
  ['int32', 4, int32s],
  ['int64', 8, int64s],
  ['string'],
  ['bool', 1, int32s],
  ['float16', 2, int32s],
  ['float64', 8, doubles],
  ['uint32', 4, uint64s],
  ['uint64', 8, uint64s],
  ['complex64'],
  ['complex128'],
  ['bfloat16', 2, int32s],
  ['float8e4m3fn'],
  ['float8e4m3fnuz'],
  ['float8e5m2'],
  ['float8e5m2fnuz'],
  ['uint4'],
  ['int4'],
  ['float4e2m1'],
];

/** @internal The type of a number of TensorProto.DataType. */
export function typeOf(number: number | bigint): Encoding | Unread {
  return types[Number(number)] ?? ['other'];
}

/**
 * Bytes that the model keeps outside of it.
 *
 * @category Models
 */
export interface ExternalData {
  /** A path relative to the model, as the model states it. Check it before you use it. */
  readonly location: string;
  /** Where the bytes begin, in bytes. */
  readonly offset: number;
  /** How many bytes there must be. */
  readonly length: number;
}

/** @internal External data, and the function that takes it. */
export interface PendingData extends ExternalData {
  readonly tensor: OnnxTensor;
  /** The tensor, for errors. */
  readonly title: string;
  readonly take: (bytes: Uint8Array) => void;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** @internal Reads the tensor in a field. External data is added to `pending`. */
export function readTensorField(
  wire: Wire,
  title: string,
  pending: PendingData[],
): OnnxTensor | OnnxUnreadTensor {
  return wire.message(title, () => {
    const shape: number[] = [];
    let type = typeOf(0);
    let name = '';
    let raw: Uint8Array | undefined;
    let isTyped = false;
    let isExternal = false;
    const external = new Map<string, string>();
    wire.fields((field) => {
      if (field === 1) wire.ints((size) => addSize(wire, shape, size));
      else if (field === 2) type = typeOf(wire.int());
      else if (field === 3)
        throw wire.malformed('is a segment of a tensor, which is not supported');
      else if (field === 8) name = wire.text();
      else if (field === 9) raw = wire.bytes();
      else if (field === 13) readEntry(wire, 'external data', external);
      else if (field === 14) isExternal = wire.int() === 1;
      else if (typedFields.includes(field)) isTyped = true;
    });
    if (type.length === 1) return { name, dtype: type[0], shape, data: undefined };
    const [dtype, bytesPerElement] = type;
    const invalid = (what: string) => wire.malformed(`${describe(name)} ${what}`);
    if ([raw !== undefined, isTyped, isExternal].filter(Boolean).length > 1)
      throw invalid('has elements in more than one field');
    const count = shape.includes(0) ? 0 : shape.reduce((product, size) => product * size, 1);
    const length = count * bytesPerElement; // Infinity if it is too large
    const tensor: Mutable<OnnxTensor> = { name, dtype, shape, data: nothing };
    const take = (bytes: Uint8Array) => {
      tensor.data = elementsIn(dtype, bytes, count, bytesPerElement);
    };
    if (isExternal) {
      const part = readLocation(invalid, external, length);
      const named = name === '' ? title : `${title} ${describe(name)}`;
      if (length > 0) pending.push({ ...part, tensor, title: named, take });
      else take(nothing);
    } else if (raw) {
      if (raw.length !== length)
        throw invalid(`has ${raw.length} bytes; its shape [${shape.join(', ')}] needs ${length}`);
      take(raw);
    } else {
      tensor.data = readTyped(wire, invalid, count, type);
    }
    return tensor;
  });
}

const nothing = new Uint8Array();

/** Elements in a field of their own type. */
function readTyped(
  wire: Wire,
  invalid: (what: string) => Error,
  count: number,
  [dtype, bytesPerElement, wanted]: Encoding,
): DataArray {
  // Each element has a byte or more.
  if (count > wire.extent)
    throw invalid(`has ${wire.extent} bytes; its shape needs ${count} elements`);
  const buffer = new ArrayBuffer(count * bytesPerElement);
  // The fields have the bits of halves.
  const stored = viewOf(
    dtype === 'float16' ? 'bfloat16' : storedAs(dtype),
    buffer,
    0,
    count,
  ) as Exclude<DataArray, { readonly [Symbol.toStringTag]: 'Float16Array' }>;
  const isBig = wanted === int64s || dtype === 'uint64';
  let found = 0;
  const take = (value: number | bigint) => {
    if (found < count) {
      const element = isBig ? BigInt(value) : value;
      stored[found] = element;
      if (wanted === int32s || dtype === 'uint32') {
        if (stored[found] !== element)
          throw invalid(`has element ${value}, which is not of type ${dtype}`);
        if (dtype === 'bool') stored[found] = value === 0 ? 0 : 1;
      }
    }
    ++found;
  };
  wire.again((field) => {
    if (!typedFields.includes(field)) return;
    if (field !== wanted) throw invalid(`has elements that are not of type ${dtype}`);
    if (field === floats) wire.floats(take);
    else if (field === doubles) wire.doubles(take);
    else wire.ints(take);
  });
  if (found !== count) throw invalid(`has ${found} elements; its shape needs ${count}`);
  return viewOf(storedAs(dtype), buffer, 0, count);
}

/** @internal The elements in bytes: a view if they are aligned, else a copy. */
export function elementsIn(
  dtype: OnnxDType,
  bytes: Uint8Array,
  count: number,
  bytesPerElement: number,
) {
  const isBad = dtype === 'bool' && bytes.some((value) => value > 1);
  const from = isBad || bytes.byteOffset % bytesPerElement !== 0 ? bytes.slice() : bytes;
  if (isBad) from.forEach((value, i) => (from[i] = value === 0 ? 0 : 1));
  return viewOf(storedAs(dtype), from.buffer, from.byteOffset, count);
}

function addSize(wire: Wire, shape: number[], size: number | bigint): void {
  if (shape.push(wire.natural(size, 'size')) > 64) throw wire.malformed('has more than 64 axes');
}

/** @internal Reads an entry of a map: a key and a value. */
export function readEntry(wire: Wire, title: string, entries: Map<string, string>): void {
  wire.message(title, () => {
    let key = '';
    let value = '';
    wire.fields((field) => {
      if (field === 1) key = wire.text();
      else if (field === 2) value = wire.text();
    });
    entries.set(key, value);
  });
}

function readLocation(
  invalid: (what: string) => Error,
  entries: ReadonlyMap<string, string>,
  length: number,
): ExternalData {
  const number = (key: string, absent: number) => {
    const text = entries.get(key);
    if (text === undefined) return absent;
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (Number.isSafeInteger(value)) return value;
    throw invalid(`has external data with ${key} ${describe(text)}; it must be a whole number`);
  };
  const location = entries.get('location');
  if (!location) throw invalid('has external data without a location');
  const offset = number('offset', 0);
  const stated = number('length', length);
  if (stated !== length)
    throw invalid(`has external data of ${stated} bytes; its shape needs ${length}`);
  if (!Number.isSafeInteger(offset + length))
    throw invalid('has external data that ends beyond 2^53 bytes');
  return { location, offset, length };
}

/** @internal The option `externalData`, if it is a function. */
export type Fetch = (
  part: ExternalData,
) => Uint8Array | ArrayBuffer | Promise<Uint8Array | ArrayBuffer>;

/** @internal Fetches the data outside of the model, one tensor after the other. */
export async function fetchPending(pending: readonly PendingData[], fetch?: Fetch): Promise<void> {
  for (const { title, take, location, offset, length } of pending) {
    if (!fetch) {
      const found = `${title} is in another file, ${describe(location)}`;
      const message = `${op}: ${found}; pass the option externalData, which returns its bytes`;
      throw new ArgumentError(op, 'externalData', message);
    }
    const returned: unknown = await fetch({ location, offset, length });
    const label = `the result of externalData for ${title}`;
    const bytes = givenBytes(op, 'externalData', returned, `${label} (${length} bytes)`);
    if (bytes.length !== length) {
      const message = `${op}: ${label} has ${bytes.length} bytes; expected ${length}`;
      throw new ArgumentError(op, 'externalData', message);
    }
    take(bytes);
  }
}
