/**
 * Everything that `wgemm` and `wgemm/linear` export, in one file that contains the `.wasm`, so
 * that it loads nothing. It has the build `simd128`, and no threads.
 *
 * @module wgemm/inline
 */
export * from './index.js';
export * from './linear.js';
