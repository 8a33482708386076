/** The core as the rest of js/ sees it: its life, its heap, the block of arguments, and its errors. */
import type { LoadedCore } from './load.js';
import type { DataArray, DType } from './tensor.js';
import type { CoreModule } from './wgemm-simd128.mjs';
import {
  ArgumentError,
  DisposedError,
  DTypeError,
  GemmError,
  OpsetError,
  OutOfMemoryError,
  PackMismatchError,
  ShapeError,
} from './errors.js';

/** In the order of `Code` in wgemm.h, without kOk. */
const errorClasses = [ShapeError, DTypeError, OpsetError, ArgumentError, OutOfMemoryError, PackMismatchError];

/**
 * The net under dispose(), of tensors and of instances with threads: frees what nobody can reach any more. One for all, since V8 finalizes
 * nothing more in the whole process once a registry has died between a collection and its callbacks.
 */
const net =
  typeof FinalizationRegistry === 'function' // not everywhere on servers
    ? new FinalizationRegistry<{ core: Core; address: number }>(({ core, address }) =>
        address === 0 ? core.endThreads() : core.free(address),
      )
    : undefined;

/** @internal */
export class Core {
  /** By address, of all that is in the heap: the bytes that users can see through views. */
  readonly held = new Map<number, number>();
  /** Names of the types that the core has, in the order of its numbers. */
  readonly dtypes: readonly DType[];
  #module: CoreModule | undefined;
  readonly #maxMemory: number;
  readonly #blockAddress: number;
  readonly #blockLength: number;
  #block: Float64Array | undefined;
  /** All that its memory has shown itself as: what shared memory was before it grew shows the same bytes still. */
  readonly #buffers = new WeakSet<ArrayBufferLike>();
  #endThreads: () => void;
  #death: string | undefined;
  /** Of tensors; kept here, so that a tensor that is held does not hold the memory of a disposed instance. */
  #views = new WeakMap<object, DataArray>();

  /** @param maxMemory in bytes; 0 for what the engine allows */
  constructor({ module, endThreads }: LoadedCore, maxMemory: number) {
    this.#module = module;
    this.#endThreads = endThreads;
    this.#maxMemory = maxMemory;
    this.dtypes = Array.from({ length: module.dtypeCount() }, (_, i) => this.text(module.dtypeName(i)) as DType);
    this.#blockAddress = module.block();
    this.#blockLength = module.blockLength();
  }

  get disposed(): boolean {
    return this.#module === undefined;
  }

  /** Lets go of the memory and all that is in it, and ends the threads. */
  dispose(): void {
    this.endThreads();
    this.#module = undefined;
    this.#block = undefined;
    this.#views = new WeakMap();
    this.held.clear();
  }

  endThreads(): void {
    this.#endThreads();
    this.#endThreads = () => undefined; // and holds nothing of the module
  }

  /** Has every call from now on fail, since one on several threads would wait for ever. */
  die(why: string): void {
    this.#death ??= why;
  }

  /** Throws unless alive. */
  checkAlive(op: string): void {
    if (this.#death !== undefined && this.#module) {
      throw new GemmError(
        'WORKER',
        op,
        'instance',
        `${op}: a thread of the instance died (${this.#death}); create another with createGemm()`,
      );
    }
    if (!this.#module) throw new DisposedError(op, 'instance', `${op}: the instance is disposed; create another with createGemm()`);
  }

  get module(): CoreModule {
    return this.#module as CoreModule;
  }

  get buffer(): ArrayBufferLike {
    return this.module.HEAPU8.buffer;
  }

  /** Whether the bytes of a buffer are its memory's. */
  owns(buffer: ArrayBufferLike): boolean {
    return buffer === this.buffer || this.#buffers.has(buffer);
  }

  /** Where arguments are written and numbers come back. Valid until the memory grows. */
  get block(): Float64Array {
    // A view that the memory grew away from is detached and has no length; one of shared memory goes on showing the same bytes.
    if (this.#block === undefined || this.#block.length === 0) {
      this.#block = new Float64Array(this.buffer, this.#blockAddress, this.#blockLength);
    }
    return this.#block;
  }

  /** The view of a tensor, made anew when the memory has moved. */
  viewFor(tensor: object, make: () => DataArray): DataArray {
    let view = this.#views.get(tensor);
    if (view?.buffer !== this.buffer) {
      this.#buffers.add(this.buffer);
      view = make();
      this.#views.set(tensor, view);
    }
    return view;
  }

  /** Throws what the core says of `code`, or returns if that is 0. */
  check(code: number, op: string): void {
    if (code === 0) return;
    const ErrorClass = errorClasses[code - 1];
    const argument = this.text(this.module.errorArgument());
    const message = this.text(this.module.errorMessage());
    throw ErrorClass ? new ErrorClass(op, argument, message) : new GemmError('ARGUMENT', op, argument, message);
  }

  /** The zero-ended text at an address. */
  text(address: number): string {
    const bytes = this.module.HEAPU8;
    let text = '';
    for (let i = address; bytes[i]; ++i) text += String.fromCharCode(bytes[i] as number);
    return text;
  }

  /** Ends the threads when nobody can call on `owner` any more; tensors may live on, so that the memory stays. */
  endThreadsWith(owner: object): void {
    net?.register(owner, { core: this, address: 0 });
  }

  /** Ties memory at `address` to the life of `owner`. */
  adopt(owner: object, address: number, viewed: number): void {
    this.held.set(address, viewed);
    net?.register(owner, { core: this, address }, owner);
  }

  /** Frees it before that life ends. */
  abandon(owner: object, address: number): void {
    net?.unregister(owner);
    this.free(address);
  }

  /** Frees what is at `address`, if it is still there. */
  free(address: number): void {
    if (this.held.delete(address)) this.#module?.release(address);
  }

  /** Aligned memory that is not cleared. */
  allocate(bytes: number, op: string): number {
    const address = this.module.allocate(bytes);
    if (address === 0) throw this.outOfMemory(bytes, op);
    return address;
  }

  outOfMemory(bytes: number, op: string): OutOfMemoryError {
    const limit = this.#maxMemory === 0 ? 'the limit is that of the engine, 4 GB at the most' : `maxMemory is ${this.#maxMemory}`;
    return new OutOfMemoryError(op, '', `${op}: no memory for ${bytes} bytes; ${this.module.bytesInUse()} bytes are in use, and ${limit}`);
  }
}
