/** Elements of arrays of any kind: reading them, and converting them to a type. */
import { bytesOf, classOf, dtypeNames, dtypesOf } from '../base/arrays.js';
import { ArgumentError, describe } from '../base/errors.js';
import { encode, halfOf } from '../base/half.js';
import { isList } from '../base/properties.js';
import type { DataArray, DType } from '../base/tensor.js';
import { readData } from '../call/operand.js';
import { allocate, count } from './quantize-numbers.js';

/** @internal */
export function isDType(value: unknown): value is DType {
  return dtypeNames.includes(value as DType);
}

/** @internal Reads the element at an index. */
export type ReadElement = (index: number) => unknown;

/**
 * @internal Describes the elements of an array, or of an object that has `get(index)`. Returns a
 * function that reads them, and their type, which is undefined if the library does not have it. The
 * functions here are not named by properties, since esbuild would name them by defineProperty().
 * Its descriptor inherits from `Object.prototype`, which pages may change.
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
): [dtype: DType | undefined, read: ReadElement] {
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
  return [dtype, half ? (index) => half.values[data[index] as number] : (index) => data[index]];
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
