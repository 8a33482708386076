/**
 * The files of the builds. Bundlers find the files by the expressions below, so their form matters.
 * builds-worker.ts replaces this file in `wgemm-worker.js`, and builds-inline.ts in `wgemm/inline`.
 */
import type { Factory } from './glue.js';

/** @internal By name of a build: where its `.wasm` is, or the bytes. */
export interface Builds {
  simd128: () => URL | Uint8Array;
  relaxed?: () => URL;
  'simd128-mt'?: () => URL;
  'relaxed-mt'?: () => URL;
}

/** @internal */
export const builds: Builds = {
  simd128: () => new URL('./wgemm-simd128.wasm', import.meta.url),
  relaxed: () => new URL('./wgemm-relaxed.wasm', import.meta.url),
  'simd128-mt': () => new URL('./wgemm-simd128-mt.wasm', import.meta.url),
  'relaxed-mt': () => new URL('./wgemm-relaxed-mt.wasm', import.meta.url),
};

/**
 * @internal The glue of the builds with threads, one for both. It is a file of its own: in a worker
 * whose name begins with `em-pthread`, its last statement starts a thread. As a part of this script
 * it would take over the workers of other programs that Emscripten made.
 */
export const threadedGlue = async (): Promise<Factory> => (await import('./wgemm-mt.js')).default;

/**
 * @internal Where the script of a thread is. For `new Worker(...)` bundlers would make a second
 * file from it.
 */
export const thread = () => new URL('./wgemm-thread.js', import.meta.url);
