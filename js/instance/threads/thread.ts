/**
 * The script of a thread's worker, `wgemm-thread.js`: the glue, which starts by itself in a worker.
 * All builds with threads have the same glue; scripts/build.mjs checks that. The script imports
 * and exports nothing, so that bundlers may copy it unchanged.
 */
import './thread-scope.js';
import '../wgemm-glue-mt.mjs';
