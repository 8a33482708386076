/**
 * `wgemm` whose instances have two threads where there can be so many, and a test says neither how
 * many nor where the files are: in the place of `wgemm` in the projects of those builds, and in
 * pages.
 */
import { createGemm as create, type CreateOptions, type Gemm } from '../../dist/index.js';
import { hasThreads } from './fixed-problems.js';

export * from '../../dist/index.js';

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
