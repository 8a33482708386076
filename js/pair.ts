/**
 * The builds, each a pair of files: glue and `.wasm`. Bundlers find the files by the expressions
 * below, so their form matters. pair-worker.ts replaces this file in `wgemm-worker.js`, and
 * pair-inline.ts in `wgemm/inline`.
 */

/** @internal */
export interface Pair {
  /** Where the `.wasm` is, or its bytes. */
  wasm(): URL | Uint8Array;
  glue(): Promise<typeof import('./wgemm-simd128.mjs')>;
}

/** @internal By name of the build. */
export interface Pairs {
  simd128: Pair;
  relaxed?: Pair;
  'simd128-mt'?: Pair;
  'relaxed-mt'?: Pair;
}

/** @internal */
export const pairs: Pairs = {
  simd128: {
    wasm: () => new URL('./wgemm-simd128.wasm', import.meta.url),
    glue: () => import('./wgemm-simd128.mjs'),
  },
  relaxed: {
    wasm: () => new URL('./wgemm-relaxed.wasm', import.meta.url),
    glue: () => import('./wgemm-relaxed.mjs'),
  },
  'simd128-mt': {
    wasm: () => new URL('./wgemm-simd128-mt.wasm', import.meta.url),
    glue: () => import('./wgemm-simd128-mt.mjs'),
  },
  'relaxed-mt': {
    wasm: () => new URL('./wgemm-relaxed-mt.wasm', import.meta.url),
    glue: () => import('./wgemm-relaxed-mt.mjs'),
  },
};

/**
 * @internal Where the script of a thread is. For `new Worker(...)` bundlers would make a second
 * file from it.
 */
export const thread = () => new URL('./wgemm-thread.js', import.meta.url);
