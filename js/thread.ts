/**
 * What runs in the worker of a thread, as `wgemm-thread.js`: the glue of the builds with threads,
 * all of which have the same (scripts/build.mjs checks that). There it starts by itself. The script
 * imports nothing and exports nothing, so that bundlers may copy it as it is.
 */
import './thread-scope.js';
import './wgemm-simd128-mt.mjs';
