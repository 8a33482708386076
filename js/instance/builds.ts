/**
 * The files of the builds. Bundlers and file tracers find the files by the expressions below, so
 * the form of the expressions matters. Tracers see a URL in an object, but not a URL that a
 * function returns. builds-worker.ts replaces this file in the scripts of workers, and
 * builds-inline.ts in `wgemm/inline`.
 */
import type { Factory } from './glue.js';

/**
 * @internal By name of a module: the address of its `.wasm`, or the bytes. `mt` means threads, and
 * `models` the operators of models.
 */
export interface Builds {
  readonly simd128: URL | Uint8Array;
  readonly relaxed?: URL;
  readonly 'simd128-mt'?: URL;
  readonly 'relaxed-mt'?: URL;
  readonly 'simd128-models'?: URL;
  readonly 'relaxed-models'?: URL;
  readonly 'simd128-mt-models'?: URL;
  readonly 'relaxed-mt-models'?: URL;
}

/** @internal Whether this entry has all modules, or `simd128` only. */
export const hasAll: boolean = true;

/** @internal Throws if this script does not know its own address. */
export const builds = (): Builds => ({
  simd128: new URL('./wgemm-simd128.wasm', import.meta.url),
  relaxed: new URL('./wgemm-relaxed.wasm', import.meta.url),
  'simd128-mt': new URL('./wgemm-simd128-mt.wasm', import.meta.url),
  'relaxed-mt': new URL('./wgemm-relaxed-mt.wasm', import.meta.url),
  'simd128-models': new URL('./wgemm-simd128-models.wasm', import.meta.url),
  'relaxed-models': new URL('./wgemm-relaxed-models.wasm', import.meta.url),
  'simd128-mt-models': new URL('./wgemm-simd128-mt-models.wasm', import.meta.url),
  'relaxed-mt-models': new URL('./wgemm-relaxed-mt-models.wasm', import.meta.url),
});

/**
 * @internal The glue of the modules with threads, one for all. It is a file of its own: in a worker
 * whose name begins with `em-pthread`, its last statement starts a thread. As a part of this script
 * it would take over the workers of other programs that Emscripten made.
 */
export const threadedGlue = async (): Promise<Factory> => (await import('./wgemm-mt.js')).default;

/**
 * @internal Where the script of a thread is. For `new Worker(...)` bundlers would make a second
 * file from it. Throws as `builds` does.
 */
export const thread = () => ({ script: new URL('./wgemm-thread.js', import.meta.url) });
