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

/** Whether a copy of the options says the same, and they lack `assets`. */
function isPlain(options: CreateOptions | undefined): boolean {
  if (options === undefined) return true;
  try {
    const own = Object.getOwnPropertyDescriptors(options);
    const hasGetters = Object.values(own).some((property) => !('value' in property));
    return Object.getPrototypeOf(options) === Object.prototype && !hasGetters && !own.assets?.value;
  } catch {
    return false; // a revoked proxy, or no object
  }
}
