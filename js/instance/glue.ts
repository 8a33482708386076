/** The interface of the glue that Emscripten makes. Addresses and lengths are in bytes. */

/** @internal The functions that bindings/ binds, and what Emscripten adds. */
export interface CoreModule {
  /** A new one replaces it when the memory grows. */
  readonly HEAPU8: Uint8Array;
  /** In builds with threads: the part of Emscripten's library that takes workers. */
  readonly PThread?: {
    readonly unusedWorkers: ThreadWorker[];
    readonly runningWorkers: ThreadWorker[];
    loadWasmModuleToWorker(worker: ThreadWorker): Promise<unknown>;
  };
  /** The core calls it while it computes; see js/call/out-of-core.ts. */
  moveBlock?(
    place: number,
    offset: number,
    count: number,
    length: number,
    runStride: number,
    stride: number,
    address: number,
  ): void;
  start(memoryLimit: number, strict: boolean): void;
  setThreads(threads: number): number;
  /** Bytes of the vectors that kernels are chosen for: 16 or 32. */
  setVectors(bytes: number): void;
  /** In builds with relaxed SIMD. Adds vectors for that many steps: see js/instance/vectors.ts. */
  readonly addVectors?: (gaps: boolean, steps: number) => void;
  block(): number;
  blockLength(): number;
  staging(): number;
  compute(this: void, operation: number, end: number): number;
  /** Checks the call in the block, except for the values of scales and zero points. */
  check(operation: number): number;
  explain(operation: number, reserved: number): number;
  pack(): number;
  packNBits(): number;
  /** Begins weights that `packPart` packs. The block is then as after `pack`. */
  beginPack(dtype: number, k: number, n: number): number;
  packPart(): number;
  /** Begins weights of a block format, a BlockFormat of wgemm.h, with k rows and n columns. */
  beginBlocks(format: number, k: number, n: number): number;
  /** Packs the columns from `first` on, which begin at an address. */
  packBlocks(weights: number, first: number, bytes: number, length: number): number;
  quantize(): number;
  serializedBytes(weights: number): number;
  serialize(weights: number, bytes: number, length: number): number;
  deserialize(bytes: number, length: number): number;
  /** Indexes of vectors: bindings/search.cc. */
  vectors(this: void, operation: number): number;
  kernelCount(): number;
  kernel(index: number): void;
  errorMessage(): number;
  errorArgument(): number;
  allocate(bytes: number): number;
  release(address: number): void;
  bytesInUse(): number;
  dtypeCount(): number;
  dtypeName(index: number): number;
  /** The block then begins with the address of the program. */
  makeProgram(words: number, count: number): number;
  runProgram(this: void, program: number, first: number, end: number): number;
  /** The node of the step that failed in the last run. */
  failedNode(program: number): number;
  dropProgram(program: number): void;
  // In modules for models, from bindings/models.cc:
  /** A program takes the plans of products from another one, if their words are the same. */
  takePlans?(program: number, other: number): void;
  operatorName?(number: number): number;
}

/** @internal The interface of a worker that Emscripten's library uses. */
export interface ThreadWorker {
  postMessage(message: unknown): void;
  terminate(): void;
  onmessage: ((event: { data: unknown }) => void) | null;
}

/** @internal Starts an instance of a module. */
export type Factory = (options: {
  instantiateWasm(
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ): Record<string, never>;
  wasmMemory: WebAssembly.Memory;
}) => Promise<CoreModule>;
