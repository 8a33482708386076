/**
 * The messages between a page and its worker, and the operands of calls in them:
 * docs/design/worker-protocol.md.
 */
import type { Held } from '../api/worker-handles.js';
import { bufferOf, byteLengthOf, classOf, isDetached, lengthOf, offsetOf } from '../base/arrays.js';
import type { ErrorCode } from '../base/errors.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { OperationName } from '../call/call.js';
import { findIn, type Handle, type Operand, operandOf } from '../call/operand.js';
import type { HeapTensor, PackedWeights } from '../instance/heap.js';
import type { Info, Settings as InstanceSettings } from '../instance/start-core.js';
import type { LinearArguments } from '../linear/arguments.js';
import type { AllocArguments } from '../ops/alloc.js';
import { parameterNames } from '../ops/operations.js';
import type { PackArguments } from '../ops/pack.js';
import type { PartedWeights, PartPlace } from '../ops/pack-parts.js';
import type { PlainFilter, Settings } from '../search/arguments.js';
import type { IndexInfo, SearchOut, VectorId } from '../search/types.js';

/** @internal By call: its arguments besides the operands. The page has checked them. */
export interface Values extends Record<
  OperationName | 'attention',
  { readonly attributes: Float64Array }
> {
  createGemm: Omit<InstanceSettings, 'assets'> & { readonly hasAssets: boolean };
  explain: { readonly operation: OperationName; readonly attributes: Float64Array };
  /** Its operands are the operands of PackArguments. */
  pack: Omit<PackArguments, 'operands'>;
  /** To begin, without operands; or to pack a part: its operands are the weights and the part. */
  packFrom: PartedWeights | PartPlace;
  /** Its operand is the bytes. */
  deserialize: undefined;
  /** Its operands are the operands of LinearArguments. */
  createLinear: Omit<LinearArguments, 'operands'>;
  /** Its operand is the bytes. */
  deserializeLinear: undefined;
  /**
   * Its operands are x and `out` of a layer, the feeds of a model, or none for a recording.
   * `object`: its number. `state`: the number of a state of the model.
   */
  run: { readonly object: number; readonly state?: number | undefined };
  loadModel: ModelOrder;
  /** Its operands are the feeds. `object`: the number of the model. */
  explainModel: {
    readonly object: number;
    readonly state?: number | undefined;
    readonly hasSteps?: boolean | undefined;
  };
  modelState: StateOrder;
  /** Its operands are the operands of all calls, one call after the other. */
  record: {
    readonly calls: readonly {
      readonly name: OperationName;
      readonly attributes: Float64Array;
    }[];
  };
  alloc: AllocArguments;
  memory: undefined;
  /** Its operand is the tensor. */
  read: undefined;
  /** Its operands are the tensor and the data. */
  write: { readonly offset: number };
  /** Its operand is the weights. */
  serialize: undefined;
  createIndex: Settings;
  /** Its operand is the bytes. */
  deserializeIndex: undefined;
  /** Its operand is the vectors. `object`, also below: the number of the index. */
  add: { readonly object: number; readonly ids: readonly VectorId[] | null };
  /** Its operand is the vectors. */
  update: { readonly object: number; readonly ids: readonly VectorId[] | null };
  remove: { readonly object: number; readonly ids: readonly VectorId[] };
  /** Its operand is the query. */
  search: {
    readonly object: number;
    readonly k: number;
    readonly filter: PlainFilter | undefined;
    readonly minScore: number | undefined;
    readonly candidates: number | undefined;
    readonly fast: number;
    /** Whether the outcome is a SearchResult, and not matches. */
    readonly hasOut: boolean;
  };
  idOf: { readonly object: number; readonly position: number };
  /** Its operand is the query. */
  maxSim: { readonly object: number; readonly documents: Uint32Array; readonly fast: number };
}

/** @internal The calls of an index. Each has an IndexAnswer as outcome. */
export type IndexMethod = 'add' | 'update' | 'remove' | 'search' | 'idOf' | 'maxSim';

/** @internal An index in the worker, as the page knows it. */
export type IndexState = Pick<
  IndexInfo,
  'dimensions' | 'metric' | 'dtype' | 'size' | 'nextPosition' | 'byteLength'
>;

/** @internal */
export interface IndexAnswer {
  readonly state: IndexState;
  readonly result: unknown;
}

/** @internal Matches. Row i begins at i * step. */
export interface SearchResult extends Required<SearchOut> {
  readonly step: number;
}

/** @internal The page's request to load a model. js/onnx/run/in-worker.ts reads it. */
export interface ModelOrder {
  /** The model that `readOnnx` returned. */
  readonly model: object;
  readonly outputs: readonly string[] | undefined;
  /** Whether the page wants to know the progress. */
  readonly hasProgress: boolean;
  /** Weights that are packed already, by the names of constants. The model takes them over. */
  readonly prepacked: readonly (readonly [name: string, handle: number])[];
}

/** @internal The page's request about a state. Without `length`, to copy it. */
export interface StateOrder {
  /** The number of the state; with `keep`, the number of the model that makes one. */
  readonly object: number;
  /** The indices of outputs, and of the inputs that they become. */
  readonly keep?: readonly (readonly [output: number, input: number])[];
  /** How many rows stay. */
  readonly length?: number;
}

/** @internal */
export type Method = keyof Values;

/** @internal A call as the page sends it. */
export type CallOrder<M extends Method = Method> = {
  [Each in M]: {
    readonly kind: 'call';
    readonly id: number;
    readonly method: Each;
    readonly values: Values[Each];
    readonly packet: Packet;
    /** Whether the worker only checks the packet, and then waits for another with the arrays. */
    readonly isTrial: boolean;
  };
}[M];

/** @internal From the page. */
export type Order =
  | CallOrder
  /** The arrays of a call that the worker has accepted. */
  | { readonly kind: 'packet'; readonly id: number; readonly packet: Packet }
  | { readonly kind: 'cancel'; readonly id: number }
  /** `id` is the number of a handle. After 'forget' no message names it. */
  | { readonly kind: 'dispose' | 'forget'; readonly id: number }
  /** The value that `assets` returned. */
  | { readonly kind: 'asset'; readonly source: unknown };

/** @internal To the page. */
export type Answer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'closing'; readonly why: string }
  | { readonly kind: 'asset'; readonly file: string }
  | { readonly kind: 'accepted'; readonly id: number }
  | { readonly kind: 'progress'; readonly id: number; readonly done: number }
  | { readonly kind: 'outcome'; readonly id: number; readonly outcome: Outcome }
  | ErrorAnswer;

/** @internal The error that a call threw. */
export interface ErrorAnswer {
  readonly kind: 'error';
  readonly id: number;
  readonly code: ErrorCode;
  readonly op: string;
  readonly argument: string;
  readonly message: string;
  readonly cause: SentCause | undefined;
}

/** @internal The cause of an error: not every engine can clone an error. */
export interface SentCause {
  /** Undefined for a cause that is not an Error. */
  readonly name: string | undefined;
  readonly message: string;
  readonly cause: SentCause | undefined;
}

/** @internal The result of a call: a plain value, an array, or a handle. */
export interface Outcome {
  readonly value?: unknown;
  /** The elements of the result, or the array that was sent for `out`. */
  readonly array?: SentArray;
  readonly buffers: ArrayBuffer[];
  readonly shape?: readonly number[];
  readonly dtype?: DType;
  readonly held?: Held;
}

/** @internal The result of `createGemm` in the worker. */
export interface Started {
  readonly info: Info;
  readonly dtypes: readonly DType[];
}

/** @internal A typed array in a message. */
export interface SentArray {
  /** Name of its class. */
  readonly name: string;
  /** Index among the buffers of the message. */
  buffer: number;
  /** In bytes, from the start of that buffer. */
  offset: number;
  /** In elements. */
  readonly length: number;
}

/** An operand in a message. The message has only the elements of an array, so offset is null. */
interface SentOperand extends Pick<
  Operand,
  'name' | 'dtype' | 'shape' | 'strides' | 'offset' | 'size'
> {
  readonly source: SentArray | { readonly handle: number } | number | bigint | null;
}

/** @internal The operands of a call. */
export interface Packet {
  readonly operands: readonly (SentOperand | null)[];
  /** A number stands for a buffer of that many bytes, whose contents no check reads. */
  readonly buffers: readonly (ArrayBuffer | number)[];
}

/**
 * @internal How a packet has the buffers of arrays. `'copy'`: as copies. `'move'`: it takes the
 * buffers themselves, which detaches them. It copies buffers that cannot move, such as the buffer
 * of a WebAssembly.Memory. `'describe'`: it has only their sizes.
 */
export type Way = 'copy' | 'move' | 'describe';

/** An array of the caller among the operands. */
interface ArraySource {
  readonly name: string;
  readonly sent: SentArray;
  readonly array: DataArray;
  /** Its length and its place in the buffer when the call was made. */
  readonly length: number;
  readonly byteOffset: number;
  readonly buffer: ArrayBufferLike;
  /** The start and the end of the operand's elements in the buffer, in bytes. */
  readonly start: number;
  readonly end: number;
  /** Whether a check of the call reads its elements: scales and zero points. */
  readonly isRead: boolean;
}

/**
 * @internal Makes packets of the operands of a call. Arrays that overlap also overlap in each
 * packet: `out` may be C, but must not overlap A.
 *
 * @param op the call that errors name
 * @param numberOf the number of a handle in the worker
 * @param changed the error for an array that was detached or resized since this call
 */
export function packetsOf(
  op: string,
  operands: readonly (Operand | null)[],
  numberOf: (handle: Handle, name: string) => number,
  changed: (name: string) => unknown,
): (way: Way) => Packet {
  const sources: ArraySource[] = [];
  const sent = operands.map((operand): SentOperand | null => {
    if (operand === null) return null;
    const source = send(operand); // which finds the size
    const { name, dtype, shape, strides, size } = operand;
    const offset = classOf(operand.source) === undefined ? operand.offset : null;
    return { name, dtype, shape, strides, offset, size, source };
  });

  function send(operand: Operand): SentOperand['source'] {
    const { name, source } = operand;
    if (typeof source !== 'object' || source === null) return source;
    if (classOf(source) === undefined) return { handle: numberOf(source as Handle, name) };
    const array = source as DataArray;
    const [buffer, length, byteOffset] = [bufferOf(array), lengthOf(array), offsetOf(array)];
    if (length === 0 && isDetached(buffer)) throw changed(name);
    const bytes = byteLengthOf(array) / length || 0; // of an element
    const start = byteOffset + findIn(op, operand, length) * bytes;
    const sent = { ...describeArray(array), length: operand.size };
    const [end, isRead] = [start + operand.size * bytes, parameterNames.includes(name as never)];
    sources.push({ name, sent, array, length, byteOffset, buffer, start, end, isRead });
    return sent;
  }

  return (way) => {
    for (const source of sources) if (!isUnchanged(source)) throw changed(source.name);
    const buffers: (ArrayBuffer | number)[] = [];
    const place = (group: readonly ArraySource[], from: number, buffer: ArrayBuffer | number) => {
      for (const { sent, start } of group)
        Object.assign(sent, { buffer: buffers.length, offset: start - from });
      buffers.push(buffer);
    };
    for (const buffer of new Set(sources.map((source) => source.buffer))) {
      const inIt = sources
        .filter((source) => source.buffer === buffer)
        .sort((a, b) => a.start - b.start);
      const hasElements = inIt.some(({ start, end }) => start < end);
      const moved = way === 'move' && hasElements ? move(buffer) : undefined;
      if (moved) {
        place(inIt, 0, moved);
        continue;
      }
      for (const cluster of clusters(inIt)) {
        // From a multiple of 8 bytes, so that every array stays aligned.
        const first = Math.floor((cluster[0] as ArraySource).start / 8) * 8;
        const last = Math.max(...cluster.map((source) => source.end));
        const isDescribed = way === 'describe' && !cluster.some((source) => source.isRead);
        place(cluster, first, isDescribed ? last - first : copyOf(buffer, first, last));
      }
    }
    return { operands: sent, buffers };
  };
}

function isUnchanged({ array, length, byteOffset, buffer }: ArraySource): boolean {
  return lengthOf(array) === length && offsetOf(array) === byteOffset && !isDetached(buffer);
}

function copyOf(buffer: ArrayBufferLike, first: number, last: number): ArrayBuffer {
  const copy = new Uint8Array(last - first);
  copy.set(new Uint8Array(buffer, first, last - first));
  return copy.buffer;
}

/** @internal Moves bytes to another buffer and detaches the first; undefined if it cannot move. */
export function move(buffer: ArrayBufferLike): ArrayBuffer | undefined {
  try {
    return structuredClone(buffer as ArrayBuffer, { transfer: [buffer as ArrayBuffer] });
  } catch {
    return undefined;
  }
}

/** Groups arrays that overlap. They are of one buffer, in the order of their starts. */
function clusters(sources: readonly ArraySource[]): ArraySource[][] {
  const found: ArraySource[][] = [];
  let end = -1;
  for (const source of sources) {
    if (source.start < end) found.at(-1)?.push(source);
    else found.push([source]);
    end = Math.max(end, source.end);
  }
  return found;
}

/**
 * @internal The operands of a packet. If it has only the size of a buffer, the buffer is zeros.
 *
 * @param objectOf what a handle's number stands for
 */
export function operandsOf(
  { operands, buffers }: Packet,
  objectOf: (handle: number) => HeapTensor | PackedWeights,
): (Operand | null)[] {
  const all = buffers.map((buffer) =>
    typeof buffer === 'number' ? new ArrayBuffer(buffer) : buffer,
  );
  const receive = (source: SentOperand['source']): Operand['source'] => {
    if (typeof source !== 'object' || source === null) return source;
    return 'handle' in source ? objectOf(source.handle) : arrayOf(source, all);
  };
  return operands.map((sent) => {
    if (sent === null) return null;
    const { name, dtype, shape, strides, offset, size, source } = sent;
    return Object.assign(operandOf(name, dtype, shape, receive(source), strides, offset), { size });
  });
}

/** @internal An array of a message. */
export function arrayOf(
  { name, buffer, offset, length }: SentArray,
  buffers: readonly ArrayBuffer[],
): DataArray {
  type ArrayClass = new (buffer: ArrayBuffer, offset: number, length: number) => DataArray;
  const ArrayOfName = (globalThis as unknown as Record<string, ArrayClass>)[name] as ArrayClass;
  return new ArrayOfName(buffers[buffer] as ArrayBuffer, offset, length);
}

/** Describes an array whose buffer is the first of a message. */
function describeArray(array: DataArray): SentArray {
  const [name, offset, length] = [classOf(array) as string, offsetOf(array), lengthOf(array)];
  return { name, buffer: 0, offset, length };
}

/** @internal A message of one array, with its whole buffer. */
export function sentArray(array: DataArray): { array: SentArray; buffers: ArrayBuffer[] } {
  return { array: describeArray(array), buffers: [bufferOf(array) as ArrayBuffer] };
}
