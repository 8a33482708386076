// node run-smoke.mjs ENTRY: the smoke test of an entry of the package that is installed next to
// this file.
import process from 'node:process';
import { smoke, smokeOfTfjs, smokeOfWeights, smokeOfWorker } from './smoke.mjs';

// A runtime that ends before a promise is settled returns 0: the printed line proves success.
const [, , entry] = process.argv;
const found = await import(entry);
// The other entries work with instances of `wgemm`.
const wgemm = found.createGemm ? found : { ...(await import('wgemm')), ...found };
await smoke(wgemm);
if (entry === 'wgemm/worker') await smokeOfWorker(wgemm);
if (entry === 'wgemm/tfjs') await smokeOfTfjs(wgemm);
if (entry === 'wgemm/weights') await smokeOfWeights(wgemm);
console.log('smoke passed');
