/** What this entry shares with `wgemm`. Its bundle names nothing else of `internals`. */
import { internals } from '../index.js';

/** @internal */
export const { bytesIn, classOf, describe, readOptions, viewOf } = internals;
