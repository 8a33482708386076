/** Replaces builds.ts in a script that contains the `.wasm` of the build that runs everywhere. */
import type { Builds } from './builds.js';
import bytes from './wgemm-simd128.wasm';

/** @internal */
export const hasAll: boolean = false;

/** @internal */
export const builds = (): Builds => ({ simd128: bytes });

/** @internal Never called, since this entry has no build with threads. */
export const threadedGlue = (): never => undefined as never;

/** @internal Never called, like `threadedGlue`. */
export const thread = () => ({ script: '' });
