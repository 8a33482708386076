/** The core as the rest of js/ sees it: its lifetime, heap, block of arguments and errors. */
import { bytesOf, viewOf } from '../base/arrays.js';
import {
  ArgumentError,
  DisposedError,
  DTypeError,
  type ErrorCode,
  GemmError,
  OpsetError,
  OutOfMemoryError,
  PackMismatchError,
  ShapeError,
} from '../base/errors.js';
import { messageOf } from '../base/port.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { CoreModule } from './glue.js';
import type { LoadedCore } from './load.js';

/** In the order of `Code` in wgemm.h, without kOk. */
const errorClasses = [
  ShapeError,
  DTypeError,
  OpsetError,
  ArgumentError,
  OutOfMemoryError,
  PackMismatchError,
];

/**
 * If the caller drops a tensor without dispose(), this frees it. If the caller drops an instance,
 * this ends its threads. All instances share one registry: if V8 collects a registry before its
 * callbacks, it finalizes nothing more in the process.
 */
const net =
  typeof FinalizationRegistry === 'function' // not everywhere on servers
    ? new FinalizationRegistry<{ core: Core; address: number }>(({ core, address }) =>
        address === 0 ? core.endThreads() : core.free(address),
      )
    : undefined;

/**
 * If copies take more bytes than this, a call first asks the core whether they fit. Asking costs
 * little compared with copying them.
 */
const manyBytes = 2 ** 18;

/**
 * An upper bound of the scratch of a call, in bytes per thread, except for an A that the call
 * quantizes. The block sizes in src/plan/ imply it. Even if it were wrong, a call without memory
 * for scratch would throw an OutOfMemoryError.
 */
const mostScratch = 2 ** 25;

/** @internal Stands for the bytes of a program, which no view shows. */
export const aProgram = -1;

/** Bytes of a page of `#pages`: a tensor has few pages, and a page has few tensors. */
const pageBytes = 2 ** 16;

/** The count of numbers that are at most `limit`. The numbers must ascend. */
function countUpTo(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] as number) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A text of the core, with the names that arguments have in JavaScript. */
function renamed(text: string): string {
  return text
    .replace(/\b(Y|dst)\b/g, 'out')
    .replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** @internal */
export class Core {
  /** Bytes that views can show, by address of every object in the heap; `aProgram` for programs. */
  readonly #held = new Map<number, number>();
  /** How many objects in the heap have been freed. */
  disposals = 0;
  /** Addresses of the tensors that overlap a page, ascending, by number of the page. */
  readonly #pages = new Map<number, number[]>();
  /** Names of the types, in the order of the core's numbers. */
  readonly dtypes: readonly DType[];
  /** The numbers of operators: see `operatorsOf`. */
  readonly operators = new Map<string, number>();
  /** The most bytes of memory: 2^32 is the limit of the engine. */
  readonly maxMemory: number;
  #module: CoreModule | undefined;
  readonly #threads: number;
  readonly #blockAddress: number;
  readonly #blockLength: number;
  /** The address of memory for the copies of a small call. */
  readonly staging: number;
  #block: Float64Array | undefined;
  /** By type: the whole memory. */
  #elements: Partial<Record<DType, DataArray>> = {};
  /**
   * All buffers of its memory so far. After shared memory grew, the old ones show its bytes too.
   */
  readonly #buffers = new WeakSet<ArrayBufferLike>();
  #endThreads: () => void;
  /** Why the instance ended, if not by dispose(). */
  #death: { readonly code: ErrorCode; readonly found: string } | undefined;
  /** The call that changes the instance, or that the engine interrupted; '' for none. */
  #running = '';
  /**
   * The views of tensors. They are here, and not in the tensors, which would keep the memory of a
   * disposed instance alive.
   */
  #views = new WeakMap<object, DataArray>();

  /** @param maxMemory in bytes; 0 for the limit of the engine */
  constructor({ module, threads, endThreads }: LoadedCore, maxMemory: number) {
    this.#threads = threads;
    this.#module = module;
    this.#endThreads = endThreads;
    this.maxMemory = maxMemory || 2 ** 32;
    this.dtypes = Array.from(
      { length: module.dtypeCount() },
      (_, i) => this.text(module.dtypeName(i)) as DType,
    );
    this.#blockAddress = module.block();
    this.#blockLength = module.blockLength();
    this.staging = module.staging();
  }

  /**
   * Whether the instance has ended. If the engine interrupted the last call, this ends it. Must not
   * be called inside `guard`.
   */
  get disposed(): boolean {
    if (this.#running !== '') this.#giveUp('a timeout or a stack overflow');
    return this.#module === undefined;
  }

  /** Drops the memory with everything in it, and ends the threads. */
  dispose(): void {
    this.#letGo();
    this.endThreads();
    this.#running = '';
  }

  #letGo(): void {
    this.#module = undefined;
    this.#block = undefined;
    this.#elements = {};
    this.#views = new WeakMap();
    this.#held.clear();
    this.#pages.clear();
  }

  endThreads(): void {
    // When the stack is empty: near the end of the stack, terminate() of Node leaves a worker that
    // keeps the process alive.
    void Promise.resolve().then(this.#endThreads);
    this.#endThreads = () => undefined; // the old one refers to the module
  }

  /** Makes every call from now on fail. */
  die(code: ErrorCode, found: string): void {
    this.#death ??= { code, found };
  }

  /** Throws unless alive. */
  checkAlive(op: string): void {
    if (this.disposed || this.#death) {
      throw this.ended(
        op,
        'instance',
        'the instance is disposed; create another with createGemm()',
      );
    }
  }

  /** The error of a call after the instance ended: why it ended, or that it is `disposed`. */
  ended(op: string, argument: string, disposed: string): GemmError {
    if (!this.#death) return new DisposedError(op, argument, `${op}: ${disposed}`);
    const { code, found } = this.#death;
    return new GemmError(code, op, 'instance', `${op}: ${found}; create another with createGemm()`);
  }

  /**
   * Runs code that changes the instance. The engine may interrupt it, by an exception (stack
   * overflow) or without one (timeout of `vm`). The state of wasm is then unknown, so the instance
   * ends. `run` must not call code of the user.
   */
  guard<T>(op: string, run: () => T): T {
    this.enter(op);
    try {
      const result = run();
      this.leave();
      return result;
    } catch (error) {
      this.leave(error);
      throw error;
    }
  }

  /** As `guard`, for calls too short for a closure. `leave` or `leave(error)` must follow. */
  enter(op: string): void {
    this.#running = op;
  }

  /** Our own errors leave the instance usable. Any other error ends it. */
  leave(error?: unknown): void {
    if (error === undefined || error instanceof GemmError) this.#running = '';
    else this.#giveUp(messageOf(error));
  }

  #giveUp(why: string): void {
    this.die(
      'INTERRUPTED',
      `the instance ended when the engine interrupted its call of ${this.#running} (${why})`,
    );
    this.#letGo();
    this.endThreads();
    this.#running = ''; // last: if the engine interrupts this, too, the next call repeats it
  }

  get module(): CoreModule {
    return this.#module as CoreModule;
  }

  /**
   * Calls `body` without computing its product. Instead, `take` receives the operation of the
   * product and the end of its block of arguments.
   * @param result the address of the result. The block of the product contains this address
   */
  withoutComputing(
    result: number,
    take: (operation: number, end: number) => void,
    body: () => void,
  ): void {
    const module = this.module;
    const compute = (operation: number, end: number) => {
      if (this.block.subarray(0, end).includes(result)) return (take(operation, end), 0);
      // The engine has interrupted `body`, and this is another call.
      this.#module = module;
      return module.compute(operation, end);
    };
    this.#module = Object.create(module, { compute: { value: compute } }) as CoreModule;
    try {
      body();
    } finally {
      if (this.#module !== undefined) this.#module = module;
    }
  }

  get buffer(): ArrayBufferLike {
    return this.module.HEAPU8.buffer;
  }

  /** Whether a buffer is of its memory. */
  owns(buffer: ArrayBufferLike): boolean {
    return buffer === this.buffer || this.#buffers.has(buffer);
  }

  /** The block of arguments, in which numbers come back. Valid until the memory grows. */
  get block(): Float64Array {
    // If the memory has grown, the old view is detached and has no length. A view of shared memory
    // still shows the same bytes.
    if (this.#block === undefined || this.#block.length === 0) {
      this.#block = new Float64Array(this.buffer, this.#blockAddress, this.#blockLength);
    }
    return this.#block;
  }

  /** The memory as elements of a type. Valid until the memory grows. */
  elements(dtype: DType): DataArray {
    let view = this.#elements[dtype];
    if (view?.buffer !== this.buffer) {
      const length = Math.floor(this.buffer.byteLength / bytesOf(dtype));
      view = viewOf(dtype, this.buffer, 0, length);
      this.#elements[dtype] = view;
    }
    return view;
  }

  /** The view of a tensor, a new one if the memory has moved. */
  viewFor(tensor: object, make: () => DataArray): DataArray {
    let view = this.#views.get(tensor);
    if (view?.buffer !== this.buffer) {
      this.#buffers.add(this.buffer);
      view = make();
      this.#views.set(tensor, view);
    }
    return view;
  }

  /**
   * Throws the core's error if `code` is not 0.
   * @param where what its message names instead of the operation
   */
  check(code: number, op: string, where?: string): void {
    if (code === 0) return;
    const ErrorClass = errorClasses[code - 1];
    const argument = renamed(this.text(this.module.errorArgument()));
    let message = renamed(this.text(this.module.errorMessage()));
    if (where !== undefined) message = message.replace(/^\w+/, where);
    // The core does not state the limit.
    if (message.endsWith(' in use')) message += `, and ${this.#limit}`;
    throw ErrorClass
      ? new ErrorClass(op, argument, message)
      : new GemmError('ARGUMENT', op, argument, message);
  }

  /** The zero-terminated text at an address. */
  text(address: number): string {
    const bytes = this.module.HEAPU8;
    let text = '';
    for (let i = address; bytes[i]; ++i) text += String.fromCharCode(bytes[i] as number);
    return text;
  }

  /** Ends the threads when `owner` is collected. Tensors may outlive it, so the memory stays. */
  endThreadsWith(owner: object): void {
    net?.register(owner, { core: this, address: 0 });
  }

  /**
   * Frees the memory at `address` when `owner` is collected. `viewed`: bytes that views can show,
   * or `aProgram`.
   */
  adopt(owner: object, address: number, viewed: number): void {
    this.#held.set(address, viewed);
    for (let page = Math.floor(address / pageBytes); page * pageBytes < address + viewed; ++page) {
      const starts = this.#pages.get(page);
      if (starts) starts.splice(countUpTo(starts, address), 0, address);
      else this.#pages.set(page, [address]);
    }
    net?.register(owner, { core: this, address }, owner);
  }

  /** Frees the memory at `address`, unless it is free. `owner`: its owner, unless collected. */
  free(address: number, owner?: object): void {
    if (this.disposed) return;
    const viewed = this.#held.get(address);
    if (viewed === undefined) return;
    this.guard('dispose', () => {
      if (owner) net?.unregister(owner);
      this.#held.delete(address);
      for (
        let page = Math.floor(address / pageBytes);
        page * pageBytes < address + viewed;
        ++page
      ) {
        const starts = this.#pages.get(page) as number[];
        if (starts.length === 1) this.#pages.delete(page);
        else starts.splice(countUpTo(starts, address) - 1, 1);
      }
      ++this.disposals;
      if (viewed === aProgram) this.module.dropProgram(address);
      else this.module.release(address);
    });
  }

  /** Whether these bytes are part of a tensor that lives. Views of freed memory are refused. */
  holds(start: number, bytes: number): boolean {
    const starts = this.#pages.get(Math.floor(start / pageBytes)) ?? [];
    const address = starts[countUpTo(starts, start) - 1] ?? Infinity;
    return start + bytes <= address + (this.#held.get(address) ?? -Infinity);
  }

  /** Whether a call must ask the core if `bytes` of copies fit next to the scratch. */
  mustAsk(bytes: number): boolean {
    const most = this.buffer.byteLength + bytes + mostScratch * this.#threads;
    return bytes > manyBytes || most > this.maxMemory;
  }

  /** Returns aligned memory, which is not cleared. */
  allocate(bytes: number, op: string): number {
    const address = this.module.allocate(bytes);
    if (address === 0) throw this.outOfMemory(bytes, op);
    return address;
  }

  /** Makes a program of words. Returns its address. */
  makeProgram(op: string, words: ArrayLike<number>): number {
    const { length } = words;
    return this.guard(op, () => {
      const address = this.allocate(8 * length, op);
      try {
        new Float64Array(this.buffer, address, length).set(words);
        this.check(this.module.makeProgram(address, length), op, op);
        return this.block[0] as number;
      } finally {
        this.module.release(address);
      }
    });
  }

  /** The limit of the memory, as a message states it. */
  get #limit(): string {
    return this.maxMemory === 2 ** 32
      ? 'the engine allows at most 4 GB'
      : `maxMemory is ${this.maxMemory}`;
  }

  outOfMemory(bytes: number, op: string): OutOfMemoryError {
    const inUse = this.module.bytesInUse();
    const message = `no memory for ${bytes} bytes; ${inUse} bytes are in use, and ${this.#limit}`;
    return new OutOfMemoryError(op, '', `${op}: ${message}`);
  }
}

/** @internal The core of each instance, for functions that take an instance. */
export const cores = new WeakMap<object, Core>();

/** @internal The link of each instance in a worker: an InstanceLink of api/worker-handles.ts. */
export const links = new WeakMap<object, object>();
