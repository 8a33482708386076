/** The calls of an instance in a worker: what the page reads of each, and makes of its outcome. */
import { callOptions, handleOf, numberOf } from '../api/worker-handles.js';
import { recordingOf } from '../api/worker-recording.js';
import { bufferOf, classOf } from '../base/arrays.js';
import { ArgumentError } from '../base/errors.js';
import { messageOf } from '../base/port.js';
import { has } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray } from '../base/tensor.js';
import type { Arguments, OperationName } from '../call/call.js';
import { type Handle, type Operand, type Reader, readTensor } from '../call/operand.js';
import { readAlloc } from '../ops/alloc.js';
import type {} from '../ops/explain.js';
import { readBytes, readPack } from '../ops/pack.js';
import { readExplained } from '../ops/read-call.js';
import { readRecording } from '../ops/record.js';
import type { Link, Request } from './link.js';
import { arrayOf, type Method, move, type Outcome, type SentArray, sentArray } from './message.js';

/** @internal A call that computes. */
export function computing<M extends OperationName | 'attention'>(
  link: Link,
  { operation, attributes, operands, out }: Arguments,
): Request<M> {
  const result = resultIn(link, operation.name, operands, out);
  return { values: { attributes }, operands, result };
}

/** Makes what a call that computes returns. The last operand is `out`. */
function resultIn(
  link: Link,
  op: string,
  operands: readonly (Operand | null)[],
  out: unknown,
): Request<Method>['result'] {
  const target = operands.at(-1) as Operand;
  const isArray = out !== undefined && classOf(target.source) !== undefined;
  const given = isArray ? sentArray(target.source as DataArray).array : null;
  return ({ shape, dtype }, data, transfer) => {
    if (out === undefined) return { data, shape, dtype };
    if (data === undefined || given === null) return out; // a handle
    if (transfer) return movedOut(link, out as object, target, given, data);
    fill(op, target, given, data);
    return out;
  };
}

/** @internal The request of a layer's call. `number` returns the layer's number in the worker. */
export function running(
  link: Link,
  number: () => number,
  x: unknown,
  options: unknown,
): Request<'run'> {
  const op = 'run';
  const { out } = readOptions(op, options, ['out', 'signal']);
  const operands = [
    readTensor(link, op, 'x', x),
    out === undefined ? null : readTensor(link, op, 'out', out),
  ];
  const result = resultIn(link, op, operands, out);
  return { values: { object: number() }, operands, result };
}

/** @internal */
export function explaining(link: Link, op: unknown, args: unknown[]): Request<'explain'> {
  const { operation, attributes, operands } = readExplained(link, op, args);
  const { name } = operation;
  return { op: name, values: { operation: name, attributes }, operands, result: valueOf };
}

/** @internal */
export function packing(link: Link, b: unknown, options: unknown): Request<'pack'> {
  const { operands, ...values } = readPack(link, b, options);
  return { values, operands, result: heldIn(link) };
}

/** @internal */
export function deserializing(
  link: Link,
  bytes: unknown,
  options: unknown,
): Request<'deserialize'> {
  readOptions('deserialize', options, callOptions);
  const operand = readBytes(link, bytes);
  const result: Request<'deserialize'>['result'] = (outcome, data, transfer) => {
    if (transfer) move(bufferOf(operand.source as Uint8Array));
    return heldIn(link)(outcome);
  };
  return { values: undefined, operands: [operand], result };
}

/** @internal */
export function allocating(
  link: Link,
  dtype: unknown,
  shape: unknown,
  options: unknown,
): Request<'alloc'> {
  readOptions('alloc', options, callOptions);
  return { values: readAlloc(link, dtype, shape), operands: [], result: heldIn(link) };
}

/** @internal */
export function recording(link: Link, body: unknown, options: unknown): Request<'record'> {
  readOptions('record', options, callOptions);
  const { dtypes, handles } = link;
  // Without callOptions: a recorded call takes none.
  const reader: Reader = { dtypes, handles, checkAlive: (op) => link.checkAlive(op) };
  const calls: { name: OperationName; attributes: Float64Array }[] = [];
  const all: (Operand | null)[] = [];
  readRecording(reader, body, ({ operation: { name }, attributes, operands }) => {
    for (const operand of operands)
      if (typeof operand?.source === 'object')
        numberOf(operand.source as Handle, link, name, operand.name); // throws if it is disposed
    calls.push({ name, attributes });
    all.push(...operands);
  });
  const sources = all.map((operand) => operand?.source);
  return {
    values: { calls },
    operands: all,
    result: ({ held }) => held && recordingOf(link, handleOf(link, held), calls.length, sources),
  };
}

/** @internal A call whose outcome is a plain value. */
export function asking<M extends Method>(values: Request<M>['values']): Request<M> {
  return { values, operands: [], result: valueOf };
}

const valueOf = ({ value }: Outcome): unknown => value;

const heldIn =
  (link: Link) =>
  ({ held }: Outcome): unknown =>
    held && handleOf(link, held);

/**
 * Returns a copy of `out` with another array, since the array of `out` moved away. It is the same
 * array over the buffer that came back. If only the elements of the result came back, it has these.
 *
 * @param given describes the array of `out`
 * @param elements the elements of the result
 */
function movedOut(
  link: Link,
  out: object,
  target: Operand,
  given: SentArray,
  elements: DataArray,
): object {
  const { shape, strides, offset, dtype } = target;
  const { buffer, byteOffset, BYTES_PER_ELEMENT: bytes } = elements;
  const isWhole =
    given.offset + (offset ?? 0) * bytes === byteOffset &&
    given.offset + given.length * bytes <= buffer.byteLength;
  const data = isWhole ? arrayOf(given, [buffer as ArrayBuffer]) : elements;
  const type = has(out, 'dtype') && { dtype: link.dtypes[dtype] };
  const first = offset !== null && { offset: isWhole ? offset : 0 };
  const view = { ...(strides && { strides }), ...first };
  const copy: Record<string, unknown> = { data, shape, ...view, ...type };
  // The call has read these properties. A getter might return something else now.
  const known = ['data', 'shape', 'dtype', 'strides', 'offset'];
  for (const key of Object.keys(out))
    if (!known.includes(key)) copy[key] = (out as Record<string, unknown>)[key];
  return copy;
}

/**
 * Writes the elements of a result into the caller's array, and nothing between them. It uses an
 * array of the library over the same buffer, since the caller's class may have methods of its own.
 */
function fill(
  op: string,
  { source, shape, strides, offset }: Operand,
  given: SentArray,
  result: DataArray,
): void {
  try {
    const { array, buffers } = sentArray(source as DataArray);
    if (array.length !== given.length) throw new RangeError('its length has changed');
    if (result.length === 0) return; // strides may lead past the end
    const target = arrayOf(array, buffers).subarray(offset ?? 0) as Uint8Array;
    const row = (source: DataArray, at: number) => target.set(source as Uint8Array, at);
    if (!strides) return row(result, 0);
    const walk = (axis: number, at: number): void => {
      const [n, step] = [shape[axis] ?? 1, strides[axis] ?? 1];
      if (axis >= shape.length - 1 && step === 1) return row(result.subarray(at, at + n), at);
      for (let i = 0; i < n; ++i) walk(axis + 1, at + i * step);
    };
    walk(0, 0);
  } catch (error) {
    const found = `out can no longer be written (${messageOf(error)})`;
    const advice = 'do not change its array until the call is done';
    throw new ArgumentError(op, 'out', `${op}: ${found}; ${advice}`);
  }
}
