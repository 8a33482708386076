/**
 * The API of `wgemm` in one file, glue and `.wasm` inside: nothing is fetched or imported.
 *
 * @packageDocumentation
 */
export * from './index.js';
