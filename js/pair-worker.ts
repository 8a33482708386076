/**
 * Replaces pair.ts in a script that contains the glue, since bundlers make a worker from one file
 * by default. The builds without threads have the same glue, and so do the builds with threads;
 * scripts/build.mjs checks that.
 */
import * as module from './wgemm-simd128.mjs';
import * as threaded from './wgemm-simd128-mt.mjs';
import type { Pairs } from './pair.js';

const glue = () => Promise.resolve(module);
const threadedGlue = () => Promise.resolve(threaded);

/** @internal */
export const pairs: Pairs = {
  simd128: { wasm: () => new URL('./wgemm-simd128.wasm', import.meta.url), glue },
  relaxed: { wasm: () => new URL('./wgemm-relaxed.wasm', import.meta.url), glue },
  'simd128-mt': {
    wasm: () => new URL('./wgemm-simd128-mt.wasm', import.meta.url),
    glue: threadedGlue,
  },
  'relaxed-mt': {
    wasm: () => new URL('./wgemm-relaxed-mt.wasm', import.meta.url),
    glue: threadedGlue,
  },
};

/** @internal */
export const thread = () => new URL('./wgemm-thread.js', import.meta.url);
