/**
 * The builds, each a pair of files: glue and `.wasm`. Bundlers find them by the very expressions
 * here. `wgemm-worker.js` and `wgemm/inline` are made with another file in the place of this one:
 * pair-worker.ts, pair-inline.ts.
 */

/** @internal */
export interface Pair {
  /** Where the `.wasm` is, or its bytes. */
  wasm(): URL | Uint8Array;
  glue(): Promise<typeof import('./wgemm-simd128.mjs')>;
}

/** @internal By their names. */
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
 * @internal Where the script of a thread is: not as `new Worker(...)`, of which bundlers would make
 * another file than the one that there is.
 */
export const thread = () => new URL('./wgemm-thread.js', import.meta.url);
