/** `wgemm-mt.js`: the glue of the builds with threads. It starts a thread in a thread's worker. */
export { default } from '../wgemm-glue-mt.mjs';
