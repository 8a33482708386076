/** The instances of wgemm that all parts of the page share. */
import { createGemm, type Gemm } from 'wgemm';

let main: Promise<Gemm> | undefined;
let single: Promise<Gemm> | undefined;

/** Starts wgemm when it is first asked for. Rejects if the engine or the page cannot have it. */
export function instance(): Promise<Gemm> {
  // In the page, the main thread would spin while the other threads compute.
  main ??= createGemm({ threads: typeof document === 'object' ? 1 : 'auto' });
  return main;
}

/** An instance on one thread, to compare with a library that has no more. */
export function singleThreaded(): Promise<Gemm> {
  single ??= createGemm();
  return single;
}
