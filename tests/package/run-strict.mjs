// node run-strict.mjs: the fixed problems by the package that is installed next to this file, in
// every build that the runtime has.
import * as wgemm from 'wgemm';
import { strict } from './strict.mjs';

const builds = await strict(wgemm, { builds: ['simd128', 'relaxed'] });
console.log(`strict passed: ${builds.join(', ')}`);
