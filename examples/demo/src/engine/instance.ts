/** The instance of wgemm that all parts of the page share. */
import { createGemm, type Gemm } from 'wgemm';

let started: Promise<Gemm> | undefined;

/** Starts wgemm when it is first asked for. Rejects if the engine or the page cannot have it. */
export function instance(): Promise<Gemm> {
  started ??= createGemm({ threads: 'auto' });
  return started;
}
