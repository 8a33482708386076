/** Shapes, strides and offsets of tensors. */
import { describe, ShapeError } from './errors.js';
import { isList } from './properties.js';

/** @internal Whether a tensor may have this number of axes. */
export function isRank(length: unknown): length is number {
  return Number.isInteger(length) && 0 <= (length as number) && (length as number) <= 64;
}

/**
 * @internal Reads a shape or strides: an array of whole numbers from 0 to 2^53 - 1.
 * @param label the start of an error message about them
 */
export function readSizes(
  op: string,
  argument: string,
  label: string,
  value: unknown,
  what = 'size',
): number[] {
  if (!isList(value)) {
    throw new ShapeError(
      op,
      argument,
      `${op}: ${label} ${describe(value)}; it must be an array of whole numbers, such as [2, 3]`,
    );
  }
  const sizes: number[] = [];
  const rank = value.length; // of a proxy it may be anything, and differ each time
  if (!isRank(rank)) {
    throw new ShapeError(
      op,
      argument,
      `${op}: ${label} an array of length ${describe(rank)}; ` +
        'its length must be a whole number from 0 to 64',
    );
  }
  for (let i = 0; i < rank; ++i) {
    const size: unknown = value[i];
    if (!Number.isSafeInteger(size) || (size as number) < 0) {
      const found = Array.from({ length: rank }, (_, at) => describe(value[at])).join(', ');
      const rule = `each ${what} must be a whole number from 0 to 2^53 - 1`;
      throw new ShapeError(op, argument, `${op}: ${label} [${found}]; ${rule}`);
    }
    sizes.push(size as number);
  }
  return sizes;
}

/**
 * @internal Properties of a tensor. The properties after `offset` are from other libraries, and
 * must agree with shape and strides.
 */
export const tensorKeys = [
  ...['data', 'shape', 'dtype', 'strides', 'offset'],
  ...['stride', 'byteOffset', 'start', 'step', 'order', 'layout'],
  ...['storageOffset', 'begin', 'fortranOrder', 'fortran_order', 'isFortran'],
  ...['columnMajor', 'column_major', 'colMajor', 'isColumnMajor', 'transposed'],
];

/** @internal Where the elements of a tensor are in its data. */
export interface Layout {
  readonly sizes: readonly number[];
  /** null if the caller gives no strides: contiguous. */
  readonly steps: readonly number[] | null;
  /** null if the caller gives none: 0. */
  readonly offset: number | null;
}

/** @internal Reads where the elements of a tensor are. */
export function readLayout(op: string, name: string, tensor: Record<string, unknown>): Layout {
  const { shape, strides, offset, stride, byteOffset, start, step, order, layout } = tensor;
  const { storageOffset, begin, fortranOrder, fortran_order, isFortran } = tensor;
  const { columnMajor, column_major, colMajor, isColumnMajor, transposed } = tensor;
  const sizes = readSizes(op, name, `${name} has shape`, shape);
  const steps =
    strides === undefined ? null : readSizes(op, name, `${name} has strides`, strides, 'stride');
  if (steps !== null && steps.length !== sizes.length) {
    const found = `${name} has strides [${steps.join(', ')}] and shape [${sizes.join(', ')}]`;
    throw new ShapeError(op, name, `${op}: ${found}; there must be one stride per axis`);
  }
  const first = isAbsent(offset) ? null : offset;
  if (first !== null && !(Number.isSafeInteger(first) && (first as number) >= 0)) {
    const found = `${name} has offset ${describe(first)}`;
    const message = `${op}: ${found}; it must be a whole number from 0 to 2^53 - 1`;
    throw new ShapeError(op, name, message);
  }
  const places = stride ?? byteOffset ?? start ?? step ?? storageOffset ?? begin;
  const fortran = order ?? layout ?? fortranOrder ?? fortran_order ?? isFortran;
  const columns = columnMajor ?? column_major ?? colMajor ?? isColumnMajor ?? transposed;
  if ((places ?? fortran ?? columns ?? null) !== null) {
    const before = { byteOffset, start, storageOffset, begin };
    const turned = {
      order,
      layout,
      fortranOrder,
      fortran_order,
      isFortran,
      columnMajor,
      column_major,
    };
    const flags = { colMajor, isColumnMajor, transposed };
    checkOthers(op, name, sizes, steps, { stride, step, ...before, ...turned, ...flags });
  }
  return { sizes, steps, offset: first as number | null };
}

/** Whether a property that other libraries have, too, has no value: some have it as a method. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'function';
}

/**
 * @internal The elements of a tensor from its first to its last one, in data of `length` elements.
 * Throws if the data has too few, or without strides and offset too many.
 */
export function extentIn(
  op: string,
  name: string,
  length: number,
  { sizes, steps, offset }: Layout,
): number {
  const strides = steps ?? contiguousStrides(sizes);
  const extent = sizes.includes(0)
    ? 0
    : sizes.reduce((last, size, axis) => last + (size - 1) * (strides[axis] as number), 1);
  const needed = (offset ?? 0) + extent;
  const mayBeLonger = steps !== null || offset !== null;
  if (mayBeLonger ? needed <= length : needed === length) return extent;
  let found = `${name} has ${length} elements; its shape [${sizes.join(', ')}]`;
  if (steps) found += `${offset ? ',' : ' and'} strides [${steps.join(', ')}]`;
  if (offset) found += ` and offset ${offset}`;
  const number = needed > 2 ** 53 ? 'more than 2^53' : needed;
  throw new ShapeError(op, name, `${op}: ${found} need${steps || offset ? '' : 's'} ${number}`);
}

/** Throws if a property of another library contradicts shape and strides. */
function checkOthers(
  op: string,
  name: string,
  sizes: number[],
  steps: number[] | null,
  said: Record<string, unknown>,
): void {
  const strides = steps ?? contiguousStrides(sizes);
  const long = sizes.flatMap((size, axis) => (size > 1 ? [axis] : [])); // axes with steps
  const isOneWay = steps !== null || long.length < 2 || sizes.includes(0);
  for (const [key, value] of Object.entries(said)) {
    if (isAbsent(value)) continue;
    let found = describe(value);
    let same;
    if (key === 'stride') {
      const list = isList(value) ? sizes.map((_, axis) => value[axis]) : undefined;
      if (list) found = `[${list.map(describe).join(', ')}]`;
      same =
        list !== undefined &&
        (sizes.includes(0) || long.every((axis) => list[axis] === strides[axis]));
    } else if (key === 'step') {
      same = value === 1;
    } else if (offsetKeys.includes(key)) {
      same = value === 0;
    } else if (key === 'order' || key === 'layout') {
      const text = textIn(value); // the order of an ndarray is a list of axes, and may be any
      same = isOneWay || !columnMajorText.test(text);
      found = describe(text);
    } else {
      same = isOneWay || !value;
    }
    if (same) continue;
    const advice =
      'pass tensor(x) of this package, or shape, strides and offset, with these two in elements';
    throw new ShapeError(
      op,
      name,
      `${op}: ${name} has ${key} ${found}, which differs from its shape and strides; ${advice}`,
    );
  }
}

const offsetKeys = ['byteOffset', 'start', 'storageOffset', 'begin'];
const columnMajorText = /^\s*(f\b|f_|fortran|cm\b)|col/i;
/** The text of a string or String object, else ''. Runs no code of the caller. */
function textIn(value: unknown): string {
  try {
    return String.prototype.valueOf.call(value);
  } catch {
    return '';
  }
}

/** @internal The strides of a contiguous tensor. */
export function contiguousStrides(shape: readonly number[]): number[] {
  const strides = [...shape];
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis] as number;
  }
  return strides;
}
