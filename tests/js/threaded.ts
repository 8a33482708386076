/**
 * `wgemm` whose instances have two threads where a test says neither how many nor where the files are: in the place of `wgemm` in the projects of
 * those builds.
 */
import { createGemm as create, type CreateOptions, type Gemm } from '../../dist/index.js';

export * from '../../dist/index.js';

export function createGemm(options?: CreateOptions): Promise<Gemm> {
  return create(
    (typeof options === 'object' && options !== null && !options.assets) || options === undefined ? { threads: 2, ...options } : options,
  );
}
