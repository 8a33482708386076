/** The pair of a script that has the glue inside, since bundlers make a worker of one file by default: in the place of pair.ts. */
import * as module from './wgemm-simd128.mjs';

/** @internal */
export { file, wasm } from './pair.js';

/** @internal */
export const glue = () => Promise.resolve(module);
