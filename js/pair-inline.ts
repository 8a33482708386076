/** Replaces pair.ts in a script that contains both files of the build that runs everywhere. */
import * as module from './wgemm-simd128.mjs';
import bytes from './wgemm-simd128.wasm';
import type { Pairs } from './pair.js';

/** @internal */
export const pairs: Pairs = { simd128: { wasm: () => bytes, glue: () => Promise.resolve(module) } };

/** @internal Never called, since this entry has no build with threads. */
export const thread = (): string => '';
