/**
 * The two files of a build, glue and `.wasm`. Bundlers find them by the very expressions here. `wgemm-worker.js` and `wgemm/inline` are made
 * with another file in the place of this one: pair-worker.ts, pair-inline.ts.
 */

/** @internal What the option `assets` is asked for. */
export const file = 'wgemm-simd128.wasm';

/** @internal Where the `.wasm` is, or its bytes. */
export const wasm = (): URL | Uint8Array => new URL('./wgemm-simd128.wasm', import.meta.url);

/** @internal */
export const glue = () => import('./wgemm-simd128.mjs');
