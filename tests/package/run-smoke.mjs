// node run-smoke.mjs ENTRY: the smoke test of an entry of the package that is installed next to
// this file.
import process from 'node:process';
import { smoke, smokeOfTfjs, smokeOfWorker } from './smoke.mjs';

// A runtime that ends before a promise is settled returns 0: the printed line proves success.
const [, , entry] = process.argv;
const found = await import(entry);
// `wgemm/linear`, `wgemm/search`, `wgemm/onnx` and `wgemm/tfjs` work with instances of `wgemm`.
const wgemm = found.createGemm ? found : { ...(await import('wgemm')), ...found };
await smoke(wgemm);
if (entry === 'wgemm/worker') await smokeOfWorker(wgemm);
if (entry === 'wgemm/tfjs') await smokeOfTfjs(wgemm);
console.log('smoke passed');
