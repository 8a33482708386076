/**
 * The glue that Emscripten makes from bindings/embind.cc, and the functions that are bound there.
 * Addresses and lengths are in bytes.
 */
declare module '*.mjs' {
  export interface CoreModule {
    /** A new one replaces it when the memory grows. */
    readonly HEAPU8: Uint8Array;
    /** In builds with threads: the part of Emscripten's library that takes workers. */
    readonly PThread?: {
      readonly unusedWorkers: ThreadWorker[];
      readonly runningWorkers: ThreadWorker[];
      loadWasmModuleToWorker(worker: ThreadWorker): Promise<unknown>;
    };
    /** The core calls it while it computes; see js/out-of-core.ts. */
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
    block(): number;
    blockLength(): number;
    compute(operation: number, end: number): number;
    explain(operation: number, beside: number): number;
    pack(): number;
    packNBits(): number;
    quantize(): number;
    serializedBytes(weights: number): number;
    serialize(weights: number, bytes: number, length: number): number;
    deserialize(bytes: number, length: number): number;
    kernelCount(): number;
    kernel(index: number): void;
    errorMessage(): number;
    errorArgument(): number;
    allocate(bytes: number): number;
    release(address: number): void;
    bytesInUse(): number;
    dtypeCount(): number;
    dtypeName(index: number): number;
  }
  export interface ThreadWorker {
    postMessage(message: unknown): void;
    terminate(): void;
    onmessage: ((event: { data: unknown }) => void) | null;
  }
  export default function factory(options: {
    instantiateWasm(
      imports: WebAssembly.Imports,
      done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
    ): Record<string, never>;
    wasmMemory: WebAssembly.Memory;
  }): Promise<CoreModule>;
}

/** The bytes of the file, which the build puts into the script. */
declare module '*.wasm' {
  const bytes: Uint8Array;
  export default bytes;
}
