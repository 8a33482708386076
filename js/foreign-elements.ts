/** Elements of arrays of any kind: reading them, and converting them to a type. */
import { ArgumentError, describe } from './errors.js';
import { readData } from './operand.js';
import { isList } from './properties.js';
import { allocate, count, large } from './quantize-numbers.js';
import { bytesOf, classOf, type DataArray, type DType, dtypeNames, dtypesOf } from './tensor.js';

/** Bits of the fraction, and the least exponent of a normal number. */
type Half = readonly [fraction: number, least: number];
/** @internal */
export const float16: Half = [10, -14];
const bfloat16: Half = [7, -126];

/** @internal */
export function halfOf(dtype: unknown): Half | undefined {
  return dtype === 'float16' ? float16 : dtype === 'bfloat16' ? bfloat16 : undefined;
}

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer); // little-endian, as WebAssembly

/**
 * @internal The bits of a number, rounded half to even. Its last bit stands for 2^(exponent -
 * fraction).
 */
export function encode(value: number, [fraction, least]: Half): number {
  double[0] = value;
  const high = words[1] as number;
  const exponent = Math.min(Math.max(((high >> 20) & 0x7ff) - 1023, least), 2 - least);
  const rounded = Math.abs(value) * 2 ** (fraction - exponent) + large - large;
  const infinity = (3 - 2 * least) << fraction;
  // A fraction that is rounded up to the next power of two adds 1 to the exponent.
  const magnitude = Math.min((exponent - least) * 2 ** fraction + rounded, infinity);
  return ((high >> 16) & 0x8000) | (value === value ? magnitude : infinity + 2 ** (fraction - 1));
}

/** @internal The number that these bits stand for. */
export function decode(code: number, [fraction, least]: Half): number {
  const magnitude = code & 0x7fff;
  const exponent = Math.max(magnitude >> fraction, 1) - 1;
  const last = magnitude - exponent * 2 ** fraction;
  const value =
    exponent < 2 - 2 * least
      ? last * 2 ** (exponent + least - fraction)
      : last > 2 ** fraction
        ? NaN
        : Infinity;
  return code & 0x8000 ? -value : value;
}

/** @internal */
export function isDType(value: unknown): value is DType {
  return dtypeNames.includes(value as DType);
}

/** @internal Reads the element at an index. */
export type Read = (index: number) => unknown;

/**
 * @internal The elements of an array, or of an object that has `get(index)`: their type, or
 * undefined if it is no type of the library; and a function that reads them. The functions here are
 * not named by properties, since esbuild would name them by defineProperty(). Its descriptor
 * inherits from `Object.prototype`, which pages may change.
 *
 * @param said what the owner of the array says of its type
 * @param wanted the type that they are converted to
 */
export function readElements(
  op: string,
  name: string,
  source: unknown,
  said: unknown,
  wanted: unknown,
): [dtype: DType | undefined, read: Read] {
  const array = classOf(source);
  const data = source as { [index: number]: unknown; get(index: number): unknown };
  if (array === undefined && !isList(source)) return [undefined, (index) => data.get(index)];
  const held = dtypesOf[array ?? ''];
  let dtype: DType | undefined;
  if (held && !(said === 'uint16' && wanted !== undefined && !halfOf(wanted))) {
    // In engines without Float16Array, numpy-ts has float16 in a Float32Array.
    const isSaid =
      said === 'uint16' || (isDType(said) && !(halfOf(said) && array === 'Float32Array'));
    const given = isSaid ? said : held.length > 1 ? wanted : undefined;
    ({ dtype } = readData(op, name, { data, dtype: given }, dtypesOf));
  }
  const half = array === 'Uint16Array' ? halfOf(dtype) : undefined;
  return [dtype, half ? (index) => decode(data[index] as number, half) : (index) => data[index]];
}

/**
 * @internal A new array, and a function that converts the next element of it. `place`: the index
 * along each axis of this element.
 */
export function makeArray(
  op: string,
  dtype: DType,
  shape: readonly number[],
  place: readonly number[],
): [data: DataArray, put: (value: unknown) => void] {
  const data: DataArray = allocate(op, 'x', dtype, count(shape));
  const half = halfOf(dtype);
  const target: DataArray = half ? new Uint16Array(data.buffer) : data;
  const isFloat = dtype.includes('float');
  const size = 2n ** BigInt(8 * bytesOf(dtype));
  const low = dtype.startsWith('u') ? 0n : -size / 2n;
  const is64 = dtype.endsWith('64');
  const [least, most] = [low, low + size - 1n].map((n) => (is64 ? n : Number(n))) as [
    number,
    number,
  ];
  let next = 0;
  return [
    data,
    (value) => {
      let rule;
      const isBig = typeof value === 'bigint';
      if (!isBig && typeof value !== 'number') {
        rule = 'a number or a bigint';
      } else if (
        !isFloat &&
        !((isBig || Number.isInteger(value)) && least <= value && value <= most)
      ) {
        rule = `whole and from ${least} to ${most}`;
      } else {
        target[next++] = half
          ? encode(Number(value), half)
          : is64 && !isFloat
            ? BigInt(value)
            : Number(value);
        return;
      }
      const found = describe(value);
      const message = shape.length > 0 ? `has ${found} at [${place.join(', ')}]` : `is ${found}`;
      throw new ArgumentError(op, 'x', `${op}: x ${message}; for ${dtype} it must be ${rule}`);
    },
  ];
}
