/** The instances of wgemm that all parts of the page share. */
import { createGemm, type Gemm } from 'wgemm';

/** Whether the engine computes in the page itself, since it has no worker. */
export const isInPage = typeof document === 'object';

/** In the page, the main thread would spin while the other threads compute. */
export const threads = isInPage ? 1 : 'auto';

let main: Promise<Gemm> | undefined;
let single: Promise<Gemm> | undefined;

/** Starts wgemm when it is first asked for. Rejects if the engine or the page cannot have it. */
export function instance(): Promise<Gemm> {
  main ??= createGemm({ threads });
  return main;
}

/** An instance on one thread, to compare with a library that has no more. */
export function singleThreaded(): Promise<Gemm> {
  single ??= createGemm();
  return single;
}
