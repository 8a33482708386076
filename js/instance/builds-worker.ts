/**
 * Replaces builds.ts in the scripts of workers, which contain both glues: bundlers make a worker
 * from one file by default.
 */
import factory from './wgemm-glue-mt.mjs';

export { builds, hasAll, thread } from './builds.js';

/** @internal */
export const threadedGlue = () => Promise.resolve(factory);
