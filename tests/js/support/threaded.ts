/**
 * Replaces `wgemm` in the test projects of the builds with threads, and in pages. Its instances have
 * two threads if threads are possible and the test states neither their number nor `assets`.
 */
import { createGemm as create, type CreateOptions, type Gemm } from '../../../dist/index.js';
import { hasThreads } from './fixed-problems.js';

export * from '../../../dist/index.js';

export function createGemm(options?: CreateOptions): Promise<Gemm> {
  return create(isPlain(options) && hasThreads ? { threads: 2, ...options } : options);
}

function isPlain(options: CreateOptions | undefined): boolean {
  try {
    return (
      options === undefined || (typeof options === 'object' && options !== null && !options.assets)
    );
  } catch {
    return false; // a revoked proxy
  }
}
