/** Attention: its options, and how a call of it is read and runs. */
import {
  ArgumentError,
  describe,
  DTypeError,
  type GemmError,
  ShapeError,
  UnsupportedError,
} from '../base/errors.js';
import { contiguousStrides } from '../base/layout.js';
import { readOptions } from '../base/read-options.js';
import { bytesOf } from '../base/arrays.js';
import type { DataArray, DType, NBitsArray } from '../base/tensor.js';
import type { Arguments, Call, Operation } from '../call/call.js';
import { type Operand, type Reader, readTensor } from '../call/operand.js';
import { readFlag } from '../call/options.js';
import { makeCall } from '../call/run.js';
import { compute, copyIn, roomOf, stagedOf } from '../call/staging.js';
import type { Core } from '../instance/core.js';
import type { TensorLike, TensorView } from '../instance/heap.js';
import { operatorsOf } from '../instance/operators.js';

/**
 * Options of `attention`.
 *
 * @typeParam A the class of the array of q, and of `out`
 * @category Operations
 */
export interface AttentionOptions<A extends DataArray = NBitsArray> {
  /**
   * Added to the scores before the softmax: a float32, float16 or bfloat16 tensor that broadcasts
   * to (batch, heads, queries, keys). `-Infinity` hides a key. Default: none.
   */
  mask?: TensorLike<NBitsArray> | TensorView<NBitsArray> | null | undefined;
  /**
   * How many keys each batch has, as int32 or int64 of shape (batch): k and v may have room for
   * more, which the call does not read. Default: all.
   */
  lengths?:
    | TensorLike<Int32Array | BigInt64Array>
    | TensorView<Int32Array | BigInt64Array>
    | null
    | undefined;
  /**
   * Whether a query sees no keys after its own. The queries belong to the last keys: with as many
   * queries as keys, query i sees keys 0 to i. Any number except 0 is true. Default false.
   */
  causal?: boolean | number | undefined;
  /** Factor of the products of q and k. Default: 1 / sqrt(size). */
  scale?: number | undefined;
  /** Scores s become softcap * tanh(s / softcap). 0: they stay. Default 0. */
  softcap?: number | undefined;
  /** How many keys a query sees at most: the last ones. Default: all. */
  window?: number | undefined;
  /**
   * A tensor of the shape and the type of the result. The call writes it and returns it. It must
   * not overlap an input. Default: none, so that the call returns a new array.
   */
  out?: TensorLike<A> | TensorView<A> | undefined;
}

const op = 'attention';
const names = ['mask', 'lengths', 'causal', 'scale', 'softcap', 'window', 'out'];
const floats: readonly DType[] = ['float32', 'float16', 'bfloat16'];

/** @internal The place of the options among the arguments. */
export const attentionOptionsAt = 3;

/** @internal Throws unless the instance has the operators of models. */
export function checkModels(has: boolean): void {
  if (!has)
    throw new UnsupportedError(
      op,
      'models',
      `${op}: the instance lacks it; create the instance with models: true`,
    );
}

/** @internal Reads a call, and checks what needs no elements. */
export function readAttention(reader: Reader, args: readonly unknown[]): Arguments {
  reader.checkAlive(op);
  const [q, k, v, options] = args;
  const read = readOptions(op, options, names, 'options', reader.callOptions);
  const { mask, lengths, causal, scale, softcap, window, out } = read;
  const isCausal = readFlag(op, 'causal', causal, 0);
  const factor = readNumber('scale', scale, NaN, 'a finite number of float32', () => true);
  const capRule = '0, or a positive finite number of float32';
  const cap = readNumber('softcap', softcap, 0, capRule, (x) => x === 0 || Math.fround(x) > 0);
  const windowRule = 'a whole number of at least 1, or Infinity';
  const most =
    window === Infinity
      ? window
      : readNumber('window', window, Infinity, windowRule, (x) => Number.isInteger(x) && x >= 1);
  const optional = (name: string, value: unknown) =>
    value === undefined || value === null ? null : readTensor(reader, op, name, value);
  const operands = [
    readTensor(reader, op, 'q', q),
    readTensor(reader, op, 'k', k),
    readTensor(reader, op, 'v', v),
    optional('mask', mask),
    optional('lengths', lengths),
    out === undefined ? null : readTensor(reader, op, 'out', out),
  ] as const;
  checkShapes(reader, operands);
  const attributes = Float64Array.of(factor, cap, isCausal, most);
  return { ...attentionOf(attributes, operands), out };
}

/** @internal A call whose operands were checked. */
export function attentionOf(
  attributes: Float64Array,
  operands: readonly (Operand | null)[],
): Arguments {
  const { dtype, shape } = operands[0] as Operand;
  const width = operands[2]?.shape.at(-1) as number;
  const operation = {
    name: op,
    resultType: () => ({ dtype, shape: [...shape.slice(0, -1), width] }),
  };
  return {
    operation: operation as unknown as Operation,
    attributes,
    operands,
    out: operands.at(-1)?.source,
  };
}

/** Reads a finite number that `fits`; `absent` if there is none. */
function readNumber(
  name: string,
  value: unknown,
  absent: number,
  rule: string,
  fits: (value: number) => boolean,
): number {
  if (value === undefined) return absent;
  if (typeof value === 'number' && Number.isFinite(Math.fround(value)) && fits(value)) return value;
  throw new ArgumentError(op, name, `${op}: ${name} is ${describe(value)}; it must be ${rule}`);
}

function refuse(
  Class: new (op: string, argument: string, message: string) => GemmError,
  name: string,
  found: string,
  rule: string,
): never {
  throw new Class(op, name, `${op}: ${name} has ${found}; expected ${rule}`);
}

type Operands = readonly [Operand, Operand, Operand, Operand?, Operand?, Operand?];

const shown = (list: readonly number[]): string => `[${list.join(', ')}]`;

/** The sizes of an operand of rank 2 to 4: batch, heads, rows, and elements of a row. */
const sizesOf = ({ shape }: Operand): [number, number, number, number] =>
  [1, 1, ...shape].slice(-4) as never;

/** Checks types and shapes. */
function checkShapes({ dtypes }: Reader, all: readonly (Operand | null)[]): void {
  const [q, k, v, mask, lengths, out] = all as readonly Operand[] as Operands;
  const check = (
    operand: Operand | undefined,
    types: readonly DType[],
    wanted: readonly number[],
    rule?: string,
  ) => {
    if (!operand) return;
    const { name, shape } = operand;
    const type = dtypes[operand.dtype] as DType;
    if (!types.includes(type)) refuse(DTypeError, name, `type ${type}`, types.join(' or '));
    if (shape.length !== wanted.length || shape.some((size, axis) => size !== wanted[axis]))
      refuse(ShapeError, name, `shape ${shown(shape)}`, rule ?? shown(wanted));
  };
  const { shape } = q;
  const rank = shape.length;
  check(q, floats, rank < 2 || rank > 4 ? [] : shape, 'rank 2 to 4');
  const own = [dtypes[q.dtype] as DType];
  const [batch, heads, queries, size] = sizesOf(q);
  const [, groups, keys] = sizesOf(k);
  const width = v.shape.at(-1) as number;
  const sizes = (...list: number[]) => list.slice(4 - rank);
  check(k, own, sizes(batch, groups, keys, size));
  if (heads % groups !== 0)
    refuse(ShapeError, 'k', `${groups} heads`, `a divisor of the ${heads} heads of q`);
  check(v, own, sizes(batch, groups, keys, width));
  const scores = [batch, heads, queries, keys];
  const part = (mask?.shape ?? []).map((size, axis, { length }) =>
    size === 1 ? 1 : (scores[4 - length + axis] as number),
  );
  if (mask) check(mask, floats, part, `one that broadcasts to ${shown(scores)}`);
  check(lengths, ['int32', 'int64'], [batch]);
  check(out, own, [...shape.slice(0, -1), width]);
}

/** @internal Locates the operands of a call that was read, and checks their elements. */
export function makeAttention(core: Core, read: Arguments): Call {
  const call = makeCall(core, read);
  const { operands, result } = call;
  for (const operand of operands) {
    if (!operand || operand.strides) continue;
    const count = operand.shape.reduce((all, size) => all * size, 1);
    if (operand.size !== count)
      refuse(ShapeError, operand.name, `${operand.size} elements`, `${count} elements`);
  }
  if (result.strides) checkDistinct(result);
  const bytes = ({ address, size, dtype }: Operand) =>
    address ? [address, address + size * bytesOf(core.dtypes[dtype] as DType)] : undefined;
  const overlap = (a: Operand, b: Operand) => {
    const [x, y] = [placeOf(a.outside), placeOf(b.outside)];
    if (x && y) return a.outside?.buffer === b.outside?.buffer && x[0] < y[1] && y[0] < x[1];
    const [inHeap, other] = [bytes(a), bytes(b)] as [number, number][];
    return !!inHeap && !!other && inHeap[0] < other[1] && other[0] < inHeap[1];
  };
  for (const operand of operands.slice(0, -1))
    if (operand && overlap(operand, result))
      throw new ArgumentError(op, 'out', `${op}: out overlaps ${operand.name}; it must not`);
  return call;
}

/** Where a view begins and ends in its buffer, in bytes. */
const placeOf = (view: ArrayBufferView | null): [number, number] | undefined =>
  view ? [view.byteOffset, view.byteOffset + view.byteLength] : undefined;

/** Refuses a result of which two elements share a place. */
function checkDistinct({ shape, strides }: Operand): void {
  const axes = shape.map((size, axis) => [strides?.[axis] as number, size] as const);
  let extent = 0;
  for (const [stride, size] of axes.sort(([a], [b]) => a - b)) {
    if (size <= 1) continue;
    if (stride <= extent)
      refuse(ShapeError, 'out', `strides [${strides?.join(', ')}]`, 'a place for each element');
    extent += (size - 1) * stride;
  }
}

/** @internal */
export function runAttention(core: Core, read: Arguments): unknown {
  checkModels(!!core.module.operatorName);
  const made = makeAttention(core, read);
  const operation = { ...made.operation, run: () => step(call) };
  const call: Call = { ...made, operation };
  return core.guard(op, () => {
    const staged = stagedOf(call);
    const room = roomOf(core, staged);
    const address = room && core.allocate(room, op);
    try {
      copyIn(call, staged, address);
      return compute(call);
    } finally {
      if (address !== 0) core.module.release(address);
    }
  });
}

/**
 * Writes the type, the address and the strides of an operand.
 *
 * @param places the axis of each of the operand's last axes, and 1 for the axis of heads
 * @param group the heads that share a head of keys, if the operand has these heads; else 0
 */
function writeOperand(
  words: Float64Array,
  at: number,
  { shape, strides, dtype, address }: Operand,
  places: readonly number[],
  group: number,
): void {
  words[at] = dtype;
  words[at + 1] = address;
  const own = strides ?? contiguousStrides(shape);
  for (let i = 0; i < shape.length; ++i) {
    const axis = places[places.length - shape.length + i] as number;
    const stride = shape[i] === 1 ? 0 : (own[i] as number);
    words[at + 2 + axis] = axis === 1 && group ? stride * group : stride;
    if (axis === 1 && group) words[at + 4] = stride;
  }
}

/** Computes, as a program of one step. The axes and attributes are as in src/nn/attention.cc. */
function step({ core, attributes, operands }: Call): number {
  const [q, k, v, mask, lengths, y] = operands as readonly Operand[] as Operands;
  const [batch, heads, queries, size] = sizesOf(q);
  const [, groups, keys] = sizesOf(k);
  const group = groups && heads / groups;
  const [scale, softcap, causal, window] = attributes as unknown as [
    number,
    number,
    number,
    number,
  ];
  const dims = [batch, groups, group, queries, keys, size, v.shape.at(-1) as number];
  if (dims.some((each, axis) => each === 0 && axis !== 4 && axis !== 5)) return 0;
  const { module } = core;
  const words = new Float64Array(3 + 8 + 6 * 9 + 7);
  words.set([
    operatorsOf(core).get('Attention') as number,
    0,
    words.length - 3,
    dims.length,
    ...dims,
  ]);
  let next = 11;
  const add = (operand: Operand, places: readonly number[], isGrouped: boolean) => {
    writeOperand(words, next, operand, places, isGrouped ? group : 0);
    next += 9;
  };
  const bytes = 8 * (words.length + 1);
  const memory = core.allocate(bytes + 8, op);
  try {
    const nothing = (dtype: DType) => {
      words[next] = core.dtypes.indexOf(dtype);
      words[next + 1] = memory + bytes;
      next += 9;
    };
    add(q, [0, 1, 3, 5], true);
    add(k, [0, 1, 4, 5], false);
    add(v, [0, 1, 4, 6], false);
    if (mask) add(mask, [0, 1, 3, 4], true);
    else nothing('float32');
    if (lengths) add(lengths, [0], false);
    else nothing('int32');
    add(y as Operand, [0, 1, 3, 6], true);
    const first = causal ? (lengths ? 1 : keys + 1) - queries : lengths ? 0 : Infinity;
    const factor = Number.isNaN(scale) ? 1 / Math.sqrt(size) : scale;
    words.set([factor, softcap, mask ? 1 : 0, first, causal, window], next);
    // A word after the program is 0, and so is what absent tensors point to.
    const block = new Float64Array(core.buffer, memory, words.length + 2);
    block.set(words);
    block.fill(0, words.length);
    if (module.makeProgram(memory, words.length) !== 0) throw core.outOfMemory(bytes, op);
    const program = core.block[0] as number;
    const code = module.runProgram(program, 0, 1);
    module.dropProgram(program);
    if (code !== 0) throw core.outOfMemory(bytes, op);
    return 0;
  } finally {
    module.release(memory);
  }
}
