// Runs the fixed problems in every build: results and packed weights must have the bytes that other
// engines compute.
import * as wgemm from 'wgemm';
import { hashes, hashOf, makeProblems, serialized } from '../js/support/fixed-problems.ts';
import { strict } from '../package/strict.mjs';

const builds = await strict(wgemm, { builds: ['simd128', 'relaxed'] });
const wg = await wgemm.createGemm({ threads: 1 });
const hash = await hashOf(makeProblems().map((problem) => serialized(wg, problem)));
if (hash !== hashes.serialized) {
  throw new Error(`the SHA-256 of the packed weights is ${hash}, and not ${hashes.serialized}`);
}
console.log(builds.join(', '));
