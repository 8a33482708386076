/** Tensors of a file: where they are, and their elements. */
import { viewOf } from '../base/arrays.js';
import { describe, DTypeError } from '../base/errors.js';
import { halfOf } from '../base/half.js';
import type { Arrays, DType, Tensor } from '../base/tensor.js';
import { allocate, count } from '../convert/quantize-numbers.js';
import { blockTypes } from './blocks.js';
import type { Source } from './source.js';

/**
 * A tensor in a file, as its header describes it.
 *
 * @category Files of weights
 */
export interface WeightsInfo {
  /** The name, which no other tensor of the file has. */
  readonly name: string;
  /**
   * The type, as the format names it: a key of {@link WeightsTypes}, or a type that cannot be
   * loaded, such as `'IQ4_XS'` or `'F8_E4M3'`. `'type 99'` is one that the library does not know.
   */
  readonly type: string;
  /**
   * The size of each axis, in elements. The elements of the last axis are contiguous, also in GGUF,
   * whose files list the sizes in the other order.
   */
  readonly shape: readonly number[];
  /** Where the tensor begins in the file, in bytes. */
  readonly offset: number;
  /** Bytes of the tensor; NaN in GGUF if the library does not know the type. */
  readonly byteLength: number;
}

/** @internal Where a matrix is in a file. */
export type MatrixInfo = Pick<WeightsInfo, 'type' | 'shape' | 'offset' | 'byteLength'>;

/**
 * The types of tensors that can be loaded: the `dtype` and the array of the tensor. Types with one
 * number per element have a type of the library. Blocks of ggml stay bytes.
 *
 * @category Files of weights
 */
export interface WeightsTypes {
  /** float64. */
  F64: ['float64', Arrays['float64']];
  /** float32. */
  F32: ['float32', Arrays['float32']];
  /** float16. */
  F16: ['float16', Arrays['float16']];
  /** bfloat16. */
  BF16: ['bfloat16', Arrays['bfloat16']];
  /** int64. */
  I64: ['int64', Arrays['int64']];
  /** int32. */
  I32: ['int32', Arrays['int32']];
  /** int16, which no call takes; `tensor` converts it. */
  I16: ['int16', Int16Array];
  /** int8. */
  I8: ['int8', Arrays['int8']];
  /** uint64, only in safetensors. */
  U64: ['uint64', Arrays['uint64']];
  /** uint32, only in safetensors. */
  U32: ['uint32', Arrays['uint32']];
  /** uint16, which no call takes; `tensor` converts it. Only in safetensors. */
  U16: ['uint16', Uint16Array];
  /** uint8, only in safetensors. */
  U8: ['uint8', Arrays['uint8']];
  /** Booleans, only in safetensors: a byte is 0 or 1. */
  BOOL: ['uint8', Arrays['uint8']];
  /** 32 elements of 4 bits with a scale, in 18 bytes. */
  Q4_0: ['Q4_0', Uint8Array];
  /** 32 elements of 4 bits with a scale and a minimum, in 20 bytes. */
  Q4_1: ['Q4_1', Uint8Array];
  /** 32 elements of 5 bits with a scale, in 22 bytes. */
  Q5_0: ['Q5_0', Uint8Array];
  /** 32 elements of 5 bits with a scale and a minimum, in 24 bytes. */
  Q5_1: ['Q5_1', Uint8Array];
  /** 32 elements of 8 bits with a scale, in 34 bytes. */
  Q8_0: ['Q8_0', Uint8Array];
  /** 256 elements of 2 bits with scales and minima, in 84 bytes. */
  Q2_K: ['Q2_K', Uint8Array];
  /** 256 elements of 3 bits with scales, in 110 bytes. */
  Q3_K: ['Q3_K', Uint8Array];
  /** 256 elements of 4 bits with scales and minima, in 144 bytes. */
  Q4_K: ['Q4_K', Uint8Array];
  /** 256 elements of 5 bits with scales and minima, in 176 bytes. */
  Q5_K: ['Q5_K', Uint8Array];
  /** 256 elements of 6 bits with scales, in 210 bytes. */
  Q6_K: ['Q6_K', Uint8Array];
}

/**
 * A tensor of a type, with its data.
 *
 * @typeParam T the type
 * @category Files of weights
 */
export interface WeightsTensorOf<T extends keyof WeightsTypes> {
  /** The name in the file. */
  readonly name: string;
  /** The type in the file. */
  readonly type: T;
  /** The type of the elements of `data`. Calls refuse the types of blocks. */
  readonly dtype: WeightsTypes[T][0];
  /** The size of each axis, in elements. The elements of the last axis are contiguous. */
  readonly shape: readonly number[];
  /**
   * The elements in row-major order, or the bytes of all blocks. It is a view of the source if the
   * source is bytes and the elements are aligned, else a new array.
   */
  readonly data: WeightsTypes[T][1];
  /**
   * Returns the elements in float32. For `'F32'` it returns `data` itself, else a new array. For
   * blocks each number has the bits that ggml's `dequantize_row_*` returns, except in NaN.
   *
   * Throws a {@link DTypeError} for integers and `'F64'`. The function `tensor` of `wgemm` converts
   * them: `tensor(x, { dtype: 'float32' })`.
   */
  toFloat32(): Tensor<Float32Array>;
}

/**
 * A tensor of a file, with its data. Its `type` tells the others: after
 * `tensor.type === 'BF16'`, TypeScript knows that `data` is a Uint16Array.
 *
 * @category Files of weights
 */
export type WeightsTensor = {
  [T in keyof WeightsTypes]: WeightsTensorOf<T>;
}[keyof WeightsTypes];

type Element = DType | 'int16' | 'uint16';

/** Types with one number per element, by name. */
const elementTypes = new Map<string, readonly [dtype: Element, bytes: number]>([
  ['F64', ['float64', 8]],
  ['F32', ['float32', 4]],
  ['F16', ['float16', 2]],
  ['BF16', ['bfloat16', 2]],
  ['I64', ['int64', 8]],
  ['I32', ['int32', 4]],
  ['I16', ['int16', 2]],
  ['I8', ['int8', 1]],
  ['U64', ['uint64', 8]],
  ['U32', ['uint32', 4]],
  ['U16', ['uint16', 2]],
  ['U8', ['uint8', 1]],
  ['BOOL', ['uint8', 1]],
]);

/** @internal Whether a value is a size or an offset: a whole number from 0 to 2^53 - 1. */
export const isSize = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * @internal The bytes of a tensor; NaN if its type is not known.
 * @param wrong the error of a tensor
 */
export function byteLengthOf(
  wrong: (what: string) => Error,
  type: string,
  shape: readonly number[],
): number {
  const [elements, bytes] = blockTypes.get(type) ?? [1, elementTypes.get(type)?.[1] ?? NaN];
  const length = (shape.includes(0) ? 0 : count(shape) / elements) * bytes;
  const found = `of type ${type} and shape [${shape.join(', ')}]`;
  if ((shape.at(-1) ?? 1) % elements !== 0)
    throw wrong(`${found}; the last size must be a multiple of ${elements}`);
  if (length > Number.MAX_SAFE_INTEGER) throw wrong(`${found}, which has more than 2^53 bytes`);
  return length;
}

/**
 * @internal Checks that tensors, which are in the order of the file, do not overlap and are in it.
 */
export function checkPlaces(source: Source, infos: readonly WeightsInfo[]): void {
  let end = 0;
  for (const { name, offset, byteLength } of infos) {
    const found = `has tensor ${describe(name)} at ${offset}`;
    if (offset < end) throw source.malformed(`${found}, within another that ends at ${end}`);
    end = offset + (byteLength || 0);
    if (!isSize(end)) throw source.malformed(`${found}, which ends beyond 2^53 bytes`);
    if (source.size !== undefined && end > source.size)
      throw source.malformed(`${found}, which ends at ${end}; the file has ${source.size} bytes`);
  }
}

/** @internal Loads a tensor. */
export async function load(
  op: string,
  source: Source,
  { name, type, shape, offset, byteLength }: WeightsInfo,
): Promise<WeightsTensor> {
  const element = elementTypes.get(type);
  if (!element && !blockTypes.get(type)?.[2]) {
    const found = `${op}: tensor ${describe(name)} has type ${type}, which is not supported`;
    const advice = 'its bytes are at offset and byteLength of tensors.get(name)';
    throw new DTypeError(op, 'name', `${found}; ${advice}`);
  }
  const bytes = await source.read(offset, byteLength);
  source.checkUsable(bytes);
  if (bytes.length !== byteLength) {
    const found = `has ${byteLength} bytes, and only ${bytes.length} of them`;
    throw source.malformed(`has tensor ${describe(name)}, which ${found} are in the file`);
  }
  const data = alignedElements(op, type, bytes);
  const dtype = element ? element[0] : type;
  const tensor = {
    ...{ name, type, dtype, shape, data },
    toFloat32: () => ({
      data: float32Of('toFloat32', type, shape, data),
      shape,
      dtype: 'float32',
    }),
  };
  return tensor as WeightsTensor;
}

/** @internal The elements in bytes of a file: a view of the bytes, or of an aligned copy. */
export function alignedElements(op: string, type: string, bytes: Uint8Array) {
  const [dtype, size] = elementTypes.get(type) ?? ['uint8', 1];
  if (bytes.byteOffset % size !== 0) {
    const copy = allocate(op, 'source', 'uint8', bytes.length);
    copy.set(bytes);
    bytes = copy;
  }
  const { buffer, byteOffset } = bytes;
  const length = bytes.length / size;
  return dtype === 'int16'
    ? new Int16Array(buffer, byteOffset, length)
    : viewOf(dtype === 'uint16' ? 'bfloat16' : dtype, buffer, byteOffset, length);
}

/** @internal The type of the elements; undefined for blocks. */
export const dtypeOf = (type: string): Element | undefined => elementTypes.get(type)?.[0];

/** @internal Whether {@link float32Of} takes a type. */
export const isConvertible = (type: string): boolean =>
  /^b?float(16|32)$/.test(elementTypes.get(type)?.[0] ?? '') || !!blockTypes.get(type)?.[2];

/** @internal The types that {@link float32Of} takes, for errors. */
export const convertible = (): string =>
  [...elementTypes.keys(), ...blockTypes.keys()].filter(isConvertible).join(', ');

/** @internal The elements in float32. */
export function float32Of(
  op: string,
  type: string,
  shape: readonly number[],
  data: WeightsTensor['data'],
): Float32Array {
  if (type === 'F32') return data as Float32Array;
  const [size = 0, bytesOfBlock = 0, dequantize] = blockTypes.get(type) ?? [];
  const dtype = elementTypes.get(type)?.[0];
  const half = halfOf(dtype);
  if (!half && !dequantize) {
    const advice = "convert it by tensor(x, { dtype: 'float32' }) of wgemm";
    throw new DTypeError(op, 'type', `${op}: the tensor has type ${type}; ${advice}`);
  }
  const y = allocate(op, 'data', 'float32', count(shape));
  if (half) {
    // Not the numbers of a Float16Array: their NaN would have other bits.
    const codes = new Uint16Array(data.buffer, data.byteOffset, y.length);
    for (let i = 0; i < y.length; ++i) y[i] = half.values[codes[i] as number] as number;
  } else {
    for (let to = 0, at = 0; to < y.length; to += size, at += bytesOfBlock)
      dequantize?.(data as Uint8Array, at, y, to);
  }
  return y;
}
