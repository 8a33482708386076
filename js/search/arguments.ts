/** The arguments of an index, as they are read from the caller's objects, here and for a worker. */
import { checkAttached, classOf, dtypesOf, lengthOf } from '../base/arrays.js';
import {
  ArgumentError,
  describe,
  DTypeError,
  OutOfMemoryError,
  ShapeError,
} from '../base/errors.js';
import { has, isList } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray, DType } from '../base/tensor.js';
import { type Operand, operandOf, readData, type Reader, readTensor } from '../call/operand.js';
import { readFlag } from '../call/options.js';
import type { IndexDType, Metric, VectorId } from './types.js';

/** @internal In the order of `Metric` in wgemm.h. */
export const metrics: readonly Metric[] = ['dot', 'cosine', 'euclidean'];

/** @internal */
export const indexTypes: readonly IndexDType[] = [
  'float32',
  'float16',
  'bfloat16',
  'int8',
  'uint8',
];

/** @internal */
export const rescoreTypes = [undefined, 'float32', 'bfloat16'] as const;

/** @internal The most elements of a vector: with more, a sum of 8-bit products could wrap. */
export const mostDimensions = 32768;

/** @internal The default of `capacity`. */
export const defaultCapacity = 1024;

/** @internal One more than the greatest position. */
export const mostPositions = 2 ** 32;

/** @internal Options of `createIndex`, checked. */
export interface Settings {
  readonly dimensions: number;
  readonly metric: Metric;
  readonly dtype: IndexDType;
  readonly rescore: 'float32' | 'bfloat16' | undefined;
  readonly capacity: number;
}

/**
 * @internal Reads options as `readOptions` does. If a page gave `Object.prototype` properties of
 * these names, they do not count: `readOptions` only ignores the names that other calls have.
 */
export function readNamed(
  op: string,
  options: unknown,
  names: readonly string[],
  besides = names, // the default of readOptions would be a new array
  what = 'options',
): Record<string, unknown> {
  // Arrays have a method `filter`.
  if (isList(options) || classOf(options)) throw refused(op, what, options, 'an object');
  const given = readOptions(op, options, names, what, besides);
  if (!names.some(isPolluted)) return given;
  const own = Object.create(null) as Record<string, unknown>;
  for (const name of names) if (has(given, name)) own[name] = given[name];
  return own;
}

const isPolluted = (name: string) => name in Object.prototype;

/** @internal Returns what `make` makes. Throws if the engine has no memory for it. */
export function allocated<T>(op: string, what: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const message = `${op}: cannot allocate ${what} (${String(error)})`;
    throw new OutOfMemoryError(op, '', message);
  }
}

function refused(op: string, name: string, value: unknown, rule: string): ArgumentError {
  return new ArgumentError(op, name, `${op}: ${name} is ${describe(value)}; it must be ${rule}`);
}

/** @internal Returns a whole number in a range. Makes no object. */
export function readWhole(
  op: string,
  name: string,
  value: unknown,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isSafeInteger(value) && least <= (value as number) && (value as number) <= most)
    return value as number;
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`;
  throw refused(op, name, value, `a whole number ${range}`);
}

/** @internal Returns the option `minScore` or `fallback`. Makes no object. */
export function readScore(op: string, value: unknown, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && !Number.isNaN(value)) return value;
  throw refused(op, 'minScore', value, 'a number');
}

/** @internal */
export const readFast = (op: string, value: unknown) => readFlag(op, 'fast', value, 0);

/** @internal Reads the options of `createIndex`. */
export function readSettings(reader: Reader, options: unknown): Settings {
  const op = 'createIndex';
  reader.checkAlive(op);
  if (options === undefined || options === null)
    throw refused(op, 'options', options, 'an object with dimensions');
  const names = ['dimensions', 'metric', 'dtype', 'rescore', 'capacity'];
  const given = readNamed(op, options, names, reader.callOptions && ['signal']);
  const {
    dimensions,
    metric = 'cosine',
    dtype = 'float32',
    rescore,
    capacity = defaultCapacity,
  } = given;
  readWhole(op, 'dimensions', dimensions, 1, mostDimensions);
  if (!metrics.includes(metric as Metric))
    throw refused(op, 'metric', metric, "'dot', 'cosine' or 'euclidean'");
  if (!indexTypes.includes(dtype as IndexDType)) {
    const rule = `it must be ${indexTypes.join(' or ')}`;
    throw new DTypeError(op, 'dtype', `${op}: dtype is ${describe(dtype)}; ${rule}`);
  }
  if (rescore !== undefined && dtype !== 'int8')
    throw refused(op, 'rescore', rescore, `absent, since dtype is ${describe(dtype)} and not int8`);
  if (!rescoreTypes.includes(rescore as undefined)) {
    const rule = "it must be 'float32' or 'bfloat16'";
    throw new DTypeError(op, 'rescore', `${op}: rescore is ${describe(rescore)}; ${rule}`);
  }
  readWhole(op, 'capacity', capacity, 1, mostPositions);
  return { dimensions, metric, dtype, rescore, capacity } as Settings;
}

/** @internal Vectors that a call reads. */
export interface Vectors {
  /** It has shape [rows, dimensions]. If it has strides, it has one per axis. */
  readonly operand: Operand;
  /** Whether the caller gave one vector, without an axis of rows. */
  readonly isOne: boolean;
}

/**
 * @internal Reads vectors: a tensor, or an array without a shape. This may run code of the caller.
 * @param isQuery an array without a shape must be one vector
 */
export function readVectors(
  reader: Reader,
  op: string,
  name: string,
  value: unknown,
  dimensions: number,
  isQuery: boolean,
): Vectors {
  const given = isList(value) ? numbersIn(op, name, value, dimensions, isQuery) : value;
  const array = classOf(given);
  if (array === undefined) return vectorsIn(readTensor(reader, op, name, given), op, dimensions);
  const { data, dtype } = readData(op, name, { data: given, dtype: undefined }, dtypesOf, array);
  checkAttached(op, name, data, 'is a detached array');
  const rows = rowsOf(op, name, lengthOf(data), dimensions, isQuery);
  const operand = operandOf(name, reader.dtypes.indexOf(dtype), [rows, dimensions], data);
  return { operand, isOne: rows === 1 };
}

/** The number of vectors in an array without a shape. */
function rowsOf(
  op: string,
  name: string,
  length: number,
  dimensions: number,
  isQuery: boolean,
): number {
  const rows = length / dimensions;
  if (isQuery ? rows === 1 : Number.isInteger(rows)) return rows;
  const several = `pass several as a tensor of shape [n, ${dimensions}]`;
  const rule = isQuery
    ? `a vector of the index has ${dimensions}; ${several}`
    : `it must have a multiple of ${dimensions}, the dimensions of the index`;
  throw new ShapeError(op, name, `${op}: ${name} has ${length} elements; ${rule}`);
}

/** @internal The error for a tensor that is not made of vectors. */
export function wrongShape(
  op: string,
  name: string,
  shape: readonly number[],
  dimensions: number,
): ShapeError {
  const rule = `it must have shape [n, ${dimensions}] or [${dimensions}]`;
  return new ShapeError(op, name, `${op}: ${name} has shape [${shape.join(', ')}]; ${rule}`);
}

function vectorsIn(operand: Operand, op: string, dimensions: number): Vectors {
  const { name, dtype, shape, strides, source, offset } = operand;
  const isOne = shape.length === 1;
  if ((!isOne && shape.length !== 2) || shape.at(-1) !== dimensions)
    throw wrongShape(op, name, shape, dimensions);
  if (!isOne) return { operand, isOne };
  const both = strides && [0, ...strides];
  return { operand: operandOf(name, dtype, [1, ...shape], source, both, offset), isOne };
}

/** @internal The length of an array. The length of a proxy may be anything. */
export function lengthOfList(op: string, name: string, list: readonly unknown[]): number {
  const length: unknown = list.length;
  if (Number.isInteger(length) && 0 <= (length as number) && (length as number) < 2 ** 32)
    return length as number;
  throw new ArgumentError(op, name, `${op}: ${name} is an array of length ${describe(length)}`);
}

/** JavaScript's numbers as float32. */
function numbersIn(
  op: string,
  name: string,
  list: readonly unknown[],
  dimensions: number,
  isQuery: boolean,
): Float32Array {
  const length = lengthOfList(op, name, list);
  rowsOf(op, name, length, dimensions, isQuery);
  const numbers = allocated(op, `${length} numbers`, () => new Float32Array(length));
  for (let i = 0; i < length; ++i) {
    const number = list[i];
    if (typeof number !== 'number') {
      const rule = 'each element must be a number; pass several vectors as a tensor';
      const message = `${op}: ${name} has ${describe(number)} at [${i}]; ${rule}`;
      throw new DTypeError(op, name, message);
    }
    numbers[i] = number;
  }
  return numbers;
}

/** @internal Throws unless an operand, after `locate`, has as many elements as its shape needs. */
export function checkSize(op: string, { name, shape, strides, size }: Operand): void {
  const [rows, dimensions] = shape as [number, number];
  if (strides !== null || size === rows * dimensions) return;
  const rule = `its shape [${shape.join(', ')}] needs ${rows * dimensions}`;
  throw new ShapeError(op, name, `${op}: ${name} has ${size} elements; ${rule}`);
}

/** @internal Returns an id. -0 becomes 0, as in a Map. */
export function readId(op: string, name: string, value: unknown, label = `${name} is`): VectorId {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value === 0 ? 0 : value;
  const rule = 'an id must be a string or a finite number';
  throw new ArgumentError(op, name, `${op}: ${label} ${describe(value)}; ${rule}`);
}

/** @internal Whether a value is a Set of any realm. Runs no code of the caller. */
export function isSet(value: unknown): value is ReadonlySet<unknown> {
  try {
    return typeof Set.prototype.has.call(value as Set<unknown>, 0) === 'boolean';
  } catch {
    return false;
  }
}

/** @internal Reads ids: an array, and unless `isOnlyArray` a Set. Returns a new array. */
export function readIds(op: string, name: string, value: unknown, isOnlyArray = false): VectorId[] {
  const ids: VectorId[] = [];
  const take = (id: unknown) => void ids.push(readId(op, name, id, `${name} has`));
  if (isList(value)) {
    const length = lengthOfList(op, name, value);
    for (let i = 0; i < length; ++i) take(value[i]);
  } else if (!isOnlyArray && isSet(value)) {
    Set.prototype.forEach.call(value as Set<unknown>, take);
  } else {
    throw refused(op, name, value, `an array${isOnlyArray ? '' : ' or a Set'} of ids`);
  }
  return ids;
}

/** @internal A filter as it crosses to a worker: ids, or bits by position. */
export type PlainFilter = readonly VectorId[] | Uint32Array;

/** @internal Whether a filter is bits by position. */
export const isBits = (filter: unknown): filter is Uint32Array => classOf(filter) === 'Uint32Array';

/** @internal The error for a value that is not a filter. */
export function wrongFilter(op: string, filter: unknown, withFunction: boolean): ArgumentError {
  const found = classOf(filter) ?? describe(filter);
  const rule = `an array or a Set of ids, ${withFunction ? '' : 'or '}a Uint32Array of bits`;
  const more = withFunction ? ', or a function' : '; a worker takes no function';
  const message = `${op}: filter is ${found}; it must be ${rule}${more}`;
  return new ArgumentError(op, 'filter', message);
}

/** @internal Throws unless `value` is an array of this class with at least `least` elements. */
export function checkArray(
  op: string,
  name: string,
  label: string,
  value: unknown,
  dtype: DType,
  least: number,
): void {
  const found = classOf(value);
  const wanted = dtype === 'float32' ? 'Float32Array' : 'Uint32Array';
  if (found !== wanted) {
    const message = `${op}: ${label} is ${found ?? describe(value)}; it must be a ${wanted}`;
    throw new DTypeError(op, name, message);
  }
  const array = value as DataArray;
  if (lengthOf(array) >= least) return;
  checkAttached(op, name, array, `has a detached array as ${label}`);
  const message = `${op}: ${label} has ${lengthOf(array)} elements; it needs ${least}`;
  throw new ShapeError(op, name, message);
}

/** @internal Throws unless the arrays of `out` have room for k matches of each query. */
export function checkOut(
  op: string,
  positions: unknown,
  scores: unknown,
  found: unknown,
  rows: number,
  k: number,
): void {
  checkArray(op, 'out', 'out.positions', positions, 'uint32', rows * k);
  checkArray(op, 'out', 'out.scores', scores, 'float32', rows * k);
  if (found !== undefined) checkArray(op, 'out', 'out.found', found, 'uint32', rows);
}

/** @internal Names of the options of `search`, and of its arrays. */
export const searchNames = ['filter', 'minScore', 'candidates', 'fast', 'out'];
/** @internal */
export const outNames = ['positions', 'scores', 'found'];
