/**
 * The builds, each a pair of files: glue and `.wasm`. Bundlers find them by the very expressions here. `wgemm-worker.js` and `wgemm/inline` are
 * made with another file in the place of this one: pair-worker.ts, pair-inline.ts.
 */

/** @internal */
export interface Pair {
  /** Where the `.wasm` is, or its bytes. */
  wasm(): URL | Uint8Array;
  glue(): Promise<typeof import('./wgemm-simd128.mjs')>;
}

/** @internal By their names. */
export const pairs: { simd128: Pair; relaxed?: Pair } = {
  simd128: {
    wasm: () => new URL('./wgemm-simd128.wasm', import.meta.url),
    glue: () => import('./wgemm-simd128.mjs'),
  },
  relaxed: {
    wasm: () => new URL('./wgemm-relaxed.wasm', import.meta.url),
    glue: () => import('./wgemm-relaxed.mjs'),
  },
};
