/** Handles that the page has of tensors and weights in a worker. */
import { arrayOf, checkAttached, classOf, dtypesOf, lengthOf } from '../base/arrays.js';
import { disposable } from '../base/dispose.js';
import { ArgumentError, describe, DTypeError, ShapeError } from '../base/errors.js';
import { printable } from '../base/printable.js';
import { handleKey } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { DataArray, DType, Matching, NewArrays } from '../base/tensor.js';
import { type Handle, type Operand, operandOf, type Reader } from '../call/operand.js';
import {
  type BlockFormat,
  disposedHandle,
  foreignHandle,
  type PackedWeights,
} from '../instance/heap.js';
import type { PartedWeights, PartPlace } from '../ops/pack-parts.js';

/** @internal A request of a handle to the worker. */
export interface HandleRequest {
  readonly values: { readonly offset: number } | { readonly object: number } | undefined;
  readonly operands: readonly Operand[];
  /** Makes the result of the call from the elements that the worker sent. */
  readonly result: (outcome: unknown, data: DataArray | undefined) => unknown;
}

/** @internal A request about a model. */
export interface ModelRequest {
  readonly op: string;
  readonly values: unknown;
  readonly operands: readonly (Operand | null)[];
  readonly result: (outcome: { readonly value?: unknown; readonly held?: Held }) => unknown;
  readonly progress?: ((done: number) => void) | undefined;
}

/** @internal The link to a worker, for functions that take an instance. */
export interface InstanceLink extends HandleLink {
  /** Whether the worker has the operators of models. */
  readonly models: boolean;
  readonly dtypes: readonly DType[];
  checkAlive(op: string): void;
  /** Makes a handle. */
  handleOf(held: Held): WorkerObject;
  /** The number of a handle. */
  numberOf(handle: WorkerObject, op: string, name: string): number;
  /** Makes a call of `packFrom`. */
  packFrom(
    options: CallOptions,
    values: PartedWeights | PartPlace,
    operands: readonly Operand[],
  ): Promise<unknown>;
  callModel(
    method: 'loadModel' | 'run' | 'explainModel' | 'modelState',
    options: CallOptions | undefined,
    read: () => ModelRequest,
  ): Promise<unknown>;
}

/** @internal The functions of the link to its worker that a handle needs. */
export interface HandleLink {
  readonly ended: boolean;
  /** Posts an order that has no answer. */
  order(order: { readonly kind: 'dispose' | 'forget'; readonly id: number }): unknown;
  call(
    method: 'read' | 'write' | 'serialize' | 'run',
    options: unknown,
    read: () => HandleRequest,
  ): Promise<unknown>;
}

/** @internal Options that every call takes. */
export const callOptions: readonly string[] = ['transfer', 'signal'];

/**
 * If the caller drops a handle without dispose(), this tells the worker. If the caller drops an
 * instance, this ends its worker.
 */
const net =
  typeof FinalizationRegistry === 'function'
    ? new FinalizationRegistry<() => void>((end) => end())
    : undefined;

/** @internal Calls `end` after the collector took `object`. */
export function whenCollected(object: object, end: () => void): void {
  net?.register(object, end, object);
}

/** @internal Undoes `whenCollected`. */
export function keepAtEnd(object: object): void {
  net?.unregister(object);
}

/** Returns the object of the worker that a handle names; undefined for other objects. */
let heldBy: (object: object) => Held | undefined;

/**
 * @internal The number of a handle in the worker of `link`. Throws what `wgemm` throws for a handle
 * of another instance, or one that is disposed.
 */
export let numberOf: (handle: Handle, link: HandleLink, op: string, name: string) => number;

/**
 * A handle of memory of an instance in a worker: a {@link WorkerTensor} or {@link WorkerWeights}.
 * `dispose()` frees the memory. So does garbage collection, but at no known time.
 *
 * @category Tensors
 */
export abstract class WorkerObject {
  readonly #link: HandleLink;
  readonly #held: Held;
  #disposed = false;

  /** @internal */
  constructor(link: HandleLink, held: Held) {
    this.#link = link;
    this.#held = held;
    Object.freeze(held.shape);
    // Also after dispose(): until 'forget' the worker keeps what the number stands for.
    whenCollected(this, () => link.order({ kind: 'forget', id: held.id }));
  }

  /** Whether it has ended: by its own `dispose()`, or with its instance. */
  get disposed(): boolean {
    return this.#disposed || this.#link.ended;
  }

  /** The type of the elements. For packed weights, the type that they are packed as. */
  get dtype(): DType {
    return this.#held.dtype;
  }

  /**
   * The size of each axis, in elements. For packed weights (..., K, N), after the transpose that
   * `trans` asks for.
   */
  get shape(): readonly number[] {
    return this.#held.shape;
  }

  /** Frees the memory once earlier calls are done. Does nothing the second time. */
  dispose(): void {
    if (!this.#disposed) this.#link.order({ kind: 'dispose', id: this.#held.id });
    this.#disposed = true;
  }

  /** The same as `dispose()`, for `using`. */
  declare [Symbol.dispose]: () => void;

  /** @internal */
  protected async call(
    method: Parameters<HandleLink['call']>[0],
    options: unknown,
    read: () => HandleRequest,
  ): Promise<unknown> {
    return await this.#link.call(method, options, read);
  }

  static {
    heldBy = (object) => (#held in object ? object.#held : undefined);
    numberOf = (handle, link, op, name) => {
      const isWeights = 'byteLength' in handle;
      if (!(#held in handle) || handle.#link !== link) throw foreignHandle(op, name, isWeights);
      if (handle.disposed) throw disposedHandle(op, name, isWeights);
      return handle.#held.id;
    };
  }
}
disposable(WorkerObject.prototype);

/**
 * A contiguous tensor in the memory of an instance in a worker. `alloc` makes it, filled with
 * zeros. The caller must `dispose()` of it.
 *
 * @typeParam A the class of the array that `read()` returns
 * @category Tensors
 */
export class WorkerTensor<A extends DataArray = DataArray> extends WorkerObject {
  static {
    Object.defineProperty(this.prototype, handleKey, { value: 'a tensor in a worker' });
  }

  private constructor(link: HandleLink, held: Held) {
    super(link, held);
    Object.freeze(this);
  }

  /** Number of elements. */
  get size(): number {
    return this.shape.reduce((product, n) => product * n, 1);
  }

  /**
   * Returns a copy of the elements, after all earlier calls.
   *
   * @param options all have defaults
   * @returns a promise of a new array, which the caller owns
   * @throws by rejection: DisposedError, OutOfMemoryError
   */
  async read(options?: CallOptions): Promise<A> {
    const op = 'read';
    return (await this.call(op, options, () => {
      readOptions(op, options, callOptions);
      const operands = [operandOf('tensor', 0, [], this)];
      return { values: undefined, operands, result: (_, data) => data };
    })) as A;
  }

  /**
   * Writes elements, after all earlier calls and before all later ones.
   *
   * @param data elements of the type of the tensor. The call copies them, unless `transfer` is true
   * @param options `offset`: index of the first element of the tensor that is written, default 0
   * @returns a promise that resolves when the elements are written
   * @throws by rejection: DTypeError, ShapeError, ArgumentError, DisposedError; nothing is written
   * then
   */
  async write(
    data: Matching<A>,
    options: CallOptions & { offset?: number | undefined } = {},
  ): Promise<void> {
    await this.call('write', options, () => this.#readWrite(data, options));
  }

  #readWrite(data: unknown, options: unknown): HandleRequest {
    const op = 'write';
    const { offset = 0 } = readOptions(op, options, ['offset', ...callOptions]);
    const { dtype, size } = this;
    const found = classOf(data) ?? describe(data);
    if (!dtypesOf[found]?.includes(dtype)) {
      const wanted = classOf(arrayOf(dtype, 0));
      const message = `${op}: data is ${found}; for ${dtype} it must be ${wanted}`;
      throw new DTypeError(op, 'data', message);
    }
    if (!Number.isSafeInteger(offset) || (offset as number) < 0) {
      const message = `${op}: offset is ${describe(offset)}; it must be a whole number from 0`;
      throw new ArgumentError(op, 'offset', message);
    }
    checkAttached(op, 'data', data as DataArray, 'is a detached array');
    const length = lengthOf(data as DataArray);
    if ((offset as number) + length > size) {
      const found = `data has ${length} elements and offset is ${String(offset)}`;
      throw new ShapeError(op, 'data', `${op}: ${found}; the tensor has ${size} elements`);
    }
    const tensor = operandOf('tensor', 0, [], this);
    const operands = [tensor, operandOf('data', 0, [], data as DataArray)];
    return { values: { offset: offset as number }, operands, result: () => undefined };
  }
}

printable(
  WorkerTensor.prototype,
  () => 'data: in a worker; await read() copies it\n  await write(data) changes it',
);

/**
 * Weights that are packed once, in the memory of an instance in a worker. `pack`, `deserialize` and
 * `packFrom` of `wgemm/weights` make them. The caller must `dispose()` of them.
 *
 * @category Operations
 */
export class WorkerWeights extends WorkerObject {
  static {
    Object.defineProperty(this.prototype, handleKey, { value: 'packed weights in a worker' });
  }

  /** The operation that they are for: `'gemm'` means `matmul` too. */
  readonly op: 'gemm' | 'qgemm' | 'matmulNBits';
  /**
   * The block format of ggml that they keep, such as `'Q4_K'`; undefined for other weights.
   * `packFrom` of `wgemm/weights` makes weights with a format, for `matmulNBits`.
   */
  readonly format: BlockFormat | undefined;
  /** Bytes of memory that they take. */
  readonly byteLength: number;

  private constructor(link: HandleLink, held: Held) {
    super(link, held);
    this.op = held.op ?? 'gemm';
    this.format = held.format;
    this.byteLength = held.byteLength ?? 0;
    Object.freeze(this);
  }

  /**
   * Returns the weights as bytes. `deserialize` makes weights from them, here or in `wgemm`. While
   * the call runs, the memory of the instance must have room for the bytes.
   *
   * @param options all have defaults
   * @returns a promise of a new array, which the caller owns
   * @throws by rejection: DisposedError, OutOfMemoryError
   */
  async serialize(options?: CallOptions): Promise<NewArrays['uint8']> {
    const op = 'serialize';
    return (await this.call(op, options, () => {
      readOptions(op, options, callOptions);
      const operands = [operandOf('weights', 0, [], this)];
      return { values: undefined, operands, result: (_, data) => data };
    })) as NewArrays['uint8'];
  }
}

printable(
  WorkerWeights.prototype,
  ({ op }) => `for ${op === 'gemm' ? 'gemm and matmul' : op}\n  save them by await serialize()`,
);

/** @internal How readers recognize these handles. */
export const handles: NonNullable<Reader['handles']> = {
  isTensor: (value): value is WorkerTensor => kindOf(value) === 'tensor',
  isWeights: (value): value is WorkerWeights => kindOf(value) === 'weights',
  resembles: (value) => value instanceof WorkerObject,
};

function kindOf(value: unknown): Held['kind'] | undefined {
  return typeof value === 'object' && value !== null ? heldBy(value)?.kind : undefined;
}

/** The constructor of a handle, which users do not see. */
type Constructor<T> = new (link: HandleLink, held: Held) => T;

/** @internal Makes a handle of memory that the worker holds. */
export function handleOf(link: HandleLink, held: Held): WorkerTensor | WorkerWeights {
  return held.kind === 'tensor'
    ? new (WorkerTensor as unknown as Constructor<WorkerTensor>)(link, held)
    : new (WorkerWeights as unknown as Constructor<WorkerWeights>)(link, held);
}

/** @internal A handle, as the worker describes it to the page. */
export interface Held {
  readonly kind: 'tensor' | 'weights';
  /** Its number in the worker. */
  readonly id: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Only for packed weights: the operation that they are for. A layer has kind `weights`, too. */
  readonly op?: PackedWeights['op'];
  /** Only for packed weights of a block format. */
  readonly format?: BlockFormat | undefined;
  /** Only for kind `weights`: their size in memory, in bytes. */
  readonly byteLength?: number;
}

/**
 * An AbortSignal, declared here for projects whose TypeScript does not know it.
 *
 * @category Operations
 */
export interface Signal {
  /** Whether it has aborted. */
  readonly aborted: boolean;
  /** Why it aborted. A call that it ends is rejected with this value. */
  readonly reason?: unknown;
  /**
   * Adds a function that runs when it aborts.
   * @param type the event
   * @param listener the function
   */
  addEventListener(type: 'abort', listener: () => void): void;
  /**
   * Removes a function that `addEventListener` added.
   * @param type the event
   * @param listener the function
   */
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * Options that every call in `wgemm/worker` takes.
 *
 * @category Operations
 */
export interface CallOptions {
  /**
   * True: the buffers of the arguments' arrays move to the worker, which detaches the arrays. They
   * move when the worker accepts the call, so do not touch them before the promise settles. If the
   * call is refused, or aborted before it begins, they stay as they were. If an accepted call
   * fails, for example because the engine grants less memory than expected, their contents are
   * lost.
   *
   * The call returns `out` as a new tensor, with a new array. Memory that cannot move, such as
   * shared memory or a WebAssembly.Memory, is copied. To check the call, `pack` first packs zeros.
   * `deserialize` must read the bytes to check them: it copies them, and detaches the array if it
   * succeeds. Default false: the call copies the arrays to the worker when it is made.
   */
  transfer?: boolean | undefined;
  /**
   * When it aborts, the call is rejected with its reason. A waiting call then never begins. A
   * running call completes, but its result is dropped and `out` in an array is not written.
   * Default: none.
   */
  signal?: Signal | undefined;
}
