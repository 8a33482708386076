/**
 * The pair of a script that has both files inside, of the build that runs everywhere: in the place
 * of pair.ts.
 */
import * as module from './wgemm-simd128.mjs';
import bytes from './wgemm-simd128.wasm';
import type { Pairs } from './pair.js';

/** @internal */
export const pairs: Pairs = { simd128: { wasm: () => bytes, glue: () => Promise.resolve(module) } };

/** @internal Nothing asks for it. */
export const thread = (): string => '';
