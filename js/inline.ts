/**
 * The API of `wgemm` in one file that contains the glue and the `.wasm`: it loads nothing.
 *
 * @packageDocumentation
 */
export * from './index.js';
export * from './linear.js';
