/**
 * The types of elements, from the definitions of IEEE 754 and not from the library: their arrays,
 * and their elements as numbers.
 */
import type { DataArray, DType, Float16ArrayLike } from 'wgemm';

/**
 * Binary floating point: bits of the significand, and the exponents of the smallest and the largest
 * normal numbers.
 */
export const floats = {
  float32: { digits: 24, least: -126, most: 127 },
  float64: { digits: 53, least: -1022, most: 1023 },
  float16: { digits: 11, least: -14, most: 15 },
  bfloat16: { digits: 8, least: -126, most: 127 },
};
export type Float = keyof typeof floats;

export const integers = {
  int32: { bits: 32, signed: true },
  uint32: { bits: 32, signed: false },
  int64: { bits: 64, signed: true },
  uint64: { bits: 64, signed: false },
};
export type Integer = keyof typeof integers;

/** The 8-bit types, which Gemm and MatMul do not have. */
export const quantized = {
  int8: { min: -128, max: 127 },
  uint8: { min: 0, max: 255 },
};
export type Quantized = keyof typeof quantized;

export const floatTypes = Object.keys(floats) as Float[];
export const integerTypes = Object.keys(integers) as Integer[];
export const quantizedTypes = Object.keys(quantized) as Quantized[];
/** The types of Gemm. */
export type GemmType = Float | Integer;
export const dtypes: readonly GemmType[] = [...floatTypes, ...integerTypes];
export const allTypes: readonly DType[] = [...dtypes, ...quantizedTypes];
export const isFloat = (dtype: DType): dtype is Float => dtype in floats;

export interface ArrayClass {
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
  new (lengthOrBuffer: number | ArrayBufferLike): DataArray;
}

/** undefined if the engine has none. */
export const Float16 = (globalThis as { Float16Array?: ArrayClass }).Float16Array;

/** The arrays that results come in. */
export const arrayClasses: Record<DType, ArrayClass> = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Float16 ?? Uint16Array,
  bfloat16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
};
export const bytesOf = (dtype: DType): number => arrayClasses[dtype].BYTES_PER_ELEMENT;

/** The type of a tensor: its `dtype`, or else the type of its array. */
export function dtypeOf({
  dtype,
  data,
}: {
  readonly dtype?: DType;
  readonly data: DataArray;
}): DType {
  return dtype ?? (allTypes.find((name) => data.constructor === arrayClasses[name]) as DType);
}

/** An element as its value: bits are decoded. */
export function get(data: DataArray, dtype: DType, index: number): number | bigint {
  return data instanceof Uint16Array
    ? fromBits(dtype as Float, data[index] as number)
    : (data[index] as number | bigint);
}

/** Stores a value, rounded to the type or modulo 2^bits. */
export function set(data: DataArray, dtype: DType, index: number, value: number | bigint): void {
  if (data instanceof Uint16Array) data[index] = toBits(dtype as Float, Number(value));
  else if (data instanceof BigInt64Array || data instanceof BigUint64Array)
    data[index] = BigInt(value);
  else (data as Float16ArrayLike)[index] = Number(value);
}

/** All elements of a tensor, as its array holds them. */
export function valuesOf(tensor: {
  readonly dtype?: DType;
  readonly data: DataArray;
}): (number | bigint)[] {
  const dtype = dtypeOf(tensor);
  return Array.from({ length: tensor.data.length }, (_, i) => get(tensor.data, dtype, i));
}

/** The exponent of a number in a type. Subnormal numbers have the least. */
const exponentOf = (value: number, { least }: { least: number }) =>
  Math.max(Math.floor(Math.log2(Math.abs(value))), least);

/** A number rounded to a type, to nearest even. */
export function round(dtype: Float, value: number): number {
  const format = floats[dtype];
  if (dtype === 'float64' || value === 0 || !Number.isFinite(value)) return value;
  const infinity = 2 ** format.most * 2;
  if (Math.abs(value) >= infinity) return Math.sign(value) * Infinity;
  // Adding a float64 whose last bit is one unit of the type rounds to that unit.
  const large = 1.5 * 2 ** (52 + exponentOf(value, format) - format.digits + 1);
  const rounded = value + large - large;
  return Math.abs(rounded) >= infinity ? Math.sign(value) * Infinity : rounded;
}

/** A number as a type of 16 bits holds it: sign, exponent, fraction. */
export function toBits(dtype: Float, value: number): number {
  const { digits, least, most } = floats[dtype];
  const hidden = 2 ** (digits - 1);
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(round(dtype, value));
  const infinity = (most - least + 2) * hidden;
  if (Number.isNaN(value)) return infinity + hidden / 2;
  if (magnitude === Infinity) return sign + infinity;
  const exponent = exponentOf(magnitude, floats[dtype]);
  // A normal number's hidden bit carries into the exponent, which is 1 above what it is for a
  // subnormal one.
  return sign + (exponent - least) * hidden + magnitude / 2 ** (exponent - digits + 1);
}

export function fromBits(dtype: Float, bits: number): number {
  const { digits, least, most } = floats[dtype];
  const hidden = 2 ** (digits - 1);
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = Math.floor((bits & 0x7fff) / hidden);
  const fraction = bits & (hidden - 1);
  if (exponent === most - least + 2) return fraction === 0 ? sign * Infinity : NaN;
  return (
    sign *
    (exponent === 0 ? fraction : hidden + fraction) *
    2 ** (Math.max(exponent, 1) - 1 + least - digits + 1)
  );
}

/** The types in which kernels multiply and accumulate. */
export const computedIn: Record<GemmType, DType> = {
  float32: 'float32',
  float64: 'float64',
  float16: 'float32',
  bfloat16: 'float32',
  int32: 'int32',
  uint32: 'int32',
  int64: 'int64',
  uint64: 'int64',
};
