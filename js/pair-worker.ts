/**
 * The pairs of a script that has the glue inside, since bundlers make a worker of one file by default: in the place of pair.ts. Builds without
 * threads have the same glue; scripts/build.mjs checks that.
 */
import * as module from './wgemm-simd128.mjs';
import type { Pair } from './pair.js';

const glue = () => Promise.resolve(module);

/** @internal */
export const pairs: { simd128: Pair; relaxed: Pair } = {
  simd128: { wasm: () => new URL('./wgemm-simd128.wasm', import.meta.url), glue },
  relaxed: { wasm: () => new URL('./wgemm-relaxed.wasm', import.meta.url), glue },
};
