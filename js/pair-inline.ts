/** The pair of a script that has both inside: in the place of pair.ts. */
import * as module from './wgemm-simd128.mjs';
import bytes from './wgemm-simd128.wasm';

/** @internal */
export const file = 'wgemm-simd128.wasm';

/** @internal */
export const wasm = (): URL | Uint8Array => bytes;

/** @internal */
export const glue = () => Promise.resolve(module);
