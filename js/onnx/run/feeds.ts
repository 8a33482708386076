/** Feeds of a run: reads what the caller passes, and checks it against what the model declares. */
import {
  checkAttached,
  classOf,
  bufferOf,
  dtypesOf,
  lengthOf,
  offsetOf,
  viewOf,
} from '../../base/arrays.js';
import {
  ArgumentError,
  describe,
  DisposedError,
  DTypeError,
  ShapeError,
} from '../../base/errors.js';
import { isRank } from '../../base/layout.js';
import { has, isList, isReadable, unpolluted } from '../../base/properties.js';
import type { DataArray } from '../../base/tensor.js';
import { HeapTensor, imitatesHandle } from '../../instance/heap.js';
import { listNames } from '../graph/graph.js';
import { newArray, sizeOf } from '../operators/storage.js';
import type { OnnxValueInfo } from '../read/model.js';
import { type OnnxDType, storedAs, type Value } from '../read/value.js';

/** @internal An input of a model. */
export interface ModelInput {
  readonly info: OnnxValueInfo;
  /** Whether it has a default, so that a run may omit it. */
  readonly isOptional: boolean;
}

/** By the name of a size: the size in this run, and the input that has it. */
type Sizes = Map<string, { size: number; by: string }>;

/**
 * @internal The feeds of a run, in the order of the inputs; undefined for an absent feed. After
 * this function, no code of the caller runs.
 *
 * @param kept names of inputs that a state has
 */
export function readFeeds(
  op: string,
  inputs: readonly ModelInput[],
  feeds: unknown,
  kept?: ReadonlySet<string>,
): (Value | undefined)[] {
  checkNames(op, inputs, 'feeds', feeds, 'a tensor');
  const sizes: Sizes = new Map();
  const found = inputs.map(({ info, isOptional }) => {
    const value: unknown = has(feeds, info.name) ? feeds[info.name] : undefined;
    if (value !== undefined) return readFeed(op, info, value, sizes);
    if (isOptional || kept?.has(info.name)) return undefined;
    const names = listNames(inputs.map(({ info }) => info.name));
    throw new ArgumentError(
      op,
      info.name,
      `${op}: input ${describe(info.name)} is absent; the model needs ${names}`,
    );
  });
  // A getter of one feed may have detached another.
  return found.map((feed) => feed?.());
}

/** A mask of tokens. If it hides all of them, nodes such as GroupQueryAttention refuse it. */
const isMask = ({ name, dtype }: OnnxValueInfo) => name === 'attention_mask' && dtype === 'int64';

/**
 * @internal Feeds of zeros, and of ones for a mask of tokens. `shapes`: by the name of an input.
 * `kept`: as in `readFeeds`.
 */
export function zeros(
  op: string,
  inputs: readonly ModelInput[],
  shapes: unknown = {},
  kept?: ReadonlySet<string>,
): Record<string, { readonly data: DataArray; readonly shape: readonly number[] }> {
  checkNames(op, inputs, 'shapes', shapes, 'a shape');
  const feeds = Object.create(null) as ReturnType<typeof zeros>;
  for (const { info, isOptional } of inputs) {
    const own = has(shapes, info.name) ? shapes[info.name] : undefined;
    if ((isOptional || kept?.has(info.name)) && own === undefined) continue;
    const shape = (own ??
      info.shape?.map((size) => (typeof size === 'number' ? size : 1)) ??
      []) as readonly number[];
    // A wrong shape is refused as the shape of a feed.
    const size = sizeOf(sizesIn(shape) ?? []);
    const data = newArray(info.dtype as OnnxDType, size, op);
    if (isMask(info)) (data as BigInt64Array).fill(1n);
    feeds[info.name] = { data, shape };
  }
  return feeds;
}

/** Throws unless a value is an object whose keys are names of inputs. */
function checkNames(
  op: string,
  inputs: readonly ModelInput[],
  argument: string,
  value: unknown,
  each: string,
): asserts value is Record<string, unknown> {
  const names = new Set(inputs.map(({ info }) => info.name));
  if (!isReadable(value) || Array.isArray(value) || classOf(value) !== undefined)
    throw new ArgumentError(
      op,
      argument,
      `${op}: ${argument} is ${describe(value)}; ` +
        `it must be an object with ${each} for each input: ${listNames(names)}`,
    );
  for (const key of Object.keys(value)) {
    if (!names.has(key))
      throw new ArgumentError(
        op,
        key,
        `${op}: the model has no input ${describe(key)}; it has ${listNames(names)}`,
      );
  }
}

/** Reads and checks a feed. Returns a function that finds its elements. */
function readFeed(op: string, info: OnnxValueInfo, value: unknown, sizes: Sizes): () => Value {
  const { name } = info;
  const label = `${op}: input ${describe(name)}`;
  if (!isReadable(value) || !has(value, 'data') || !has(value, 'shape') || imitatesHandle(value))
    throw new ArgumentError(
      op,
      name,
      `${label} is ${describe(value)}; it must be a tensor, { data, shape }`,
    );
  const disposed = () => new DisposedError(op, name, `${label} is a disposed tensor`);
  if (has(value, 'disposed') && (value as { disposed?: unknown }).disposed === true)
    throw disposed();
  const tensor = unpolluted(value, ['data', 'shape', 'dtype', 'strides', 'offset']);
  const { data, shape, dtype, strides, offset } = tensor;
  const wanted = info.dtype as OnnxDType;
  checkType(op, label, wanted, info.name, data, dtype);
  if (strides !== undefined || (offset ?? 0) !== 0)
    throw new ArgumentError(op, name, `${label} has strides or an offset; it must be contiguous`);
  const axes = sizesIn(shape);
  if (!axes)
    throw new ShapeError(
      op,
      name,
      `${label} has shape ${describe(shape)}; it must be an array of whole numbers`,
    );
  checkShape(op, label, info, axes, sizes);
  const find = (): DataArray => {
    const isHeld = HeapTensor.is(value);
    if (isHeld && value.disposed) throw disposed();
    const array = isHeld ? value.data : (data as DataArray);
    checkAttached(op, name, array);
    const length = lengthOf(array);
    if (length === sizeOf(axes)) return array;
    const rule = `its shape [${axes.join(', ')}] needs ${sizeOf(axes)}`;
    throw new ShapeError(op, name, `${label} has ${length} elements; ${rule}`);
  };
  find();
  return () => {
    const array = find();
    const own = viewOf(storedAs(wanted), bufferOf(array), offsetOf(array), lengthOf(array));
    // Any value but 0 is true, as in models.
    const isBool = wanted === 'bool';
    const elements = isBool ? (own as Uint8Array).map((value) => Math.min(value, 1)) : own;
    return { dtype: wanted, shape: axes, data: elements };
  };
}

/** Throws unless elements have the type that the model declares. */
function checkType(
  op: string,
  label: string,
  wanted: OnnxDType,
  name: string,
  data: unknown,
  dtype: unknown,
): void {
  const stored = storedAs(wanted);
  const found = classOf(data) ?? describe(data);
  const isOfType = [wanted, stored].includes((dtype ?? wanted) as OnnxDType);
  if (dtypesOf[found]?.includes(stored) && isOfType) return;
  const type = dtype === undefined ? found : `${found} with dtype ${describe(dtype)}`;
  throw new DTypeError(op, name, `${label} has ${type} as data; the model declares ${wanted}`);
}

function sizesIn(shape: unknown): number[] | undefined {
  const length = isList(shape) ? shape.length : undefined;
  if (!isRank(length)) return undefined;
  const sizes = Array.from({ length }, (_, axis) => (shape as unknown[])[axis]);
  return sizes.every((size) => Number.isSafeInteger(size) && (size as number) >= 0)
    ? sizes.map((size) => (size as number) + 0) // -0 is 0
    : undefined;
}

/** @internal Throws unless a shape is the declared one, and agrees with those before it. */
export function checkShape(
  op: string,
  label: string,
  { name, shape: declared }: OnnxValueInfo,
  shape: readonly number[],
  sizes: Sizes,
): void {
  if (!declared) return;
  const shown = declared.map((size) => size ?? '?').join(', ');
  const found = `${label} has shape [${shape.join(', ')}]`;
  const fits =
    shape.length === declared.length &&
    declared.every((size, axis) => typeof size !== 'number' || size === shape[axis]);
  if (!fits) throw new ShapeError(op, name, `${found}; the model declares [${shown}]`);
  declared.forEach((symbol, axis) => {
    if (typeof symbol !== 'string') return;
    const size = shape[axis] as number;
    const before = sizes.get(symbol);
    if (!before) sizes.set(symbol, { size, by: name });
    else if (before.size !== size)
      throw new ShapeError(
        op,
        name,
        `${found} and ${describe(symbol)} is ${before.size} in ${describe(before.by)}; ` +
          'sizes of the same name must be the same',
      );
  });
}
