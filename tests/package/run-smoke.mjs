// node run-smoke.mjs ENTRY: the smoke test of an entry of the package that is installed beside this
// file.
import process from 'node:process';
import { smoke, smokeOfWorker } from './smoke.mjs';

// A runtime that ends before a promise is settled returns 0: the printed line proves success.
const wgemm = await import(process.argv[2]);
await smoke(wgemm);
if (process.argv[2] === 'wgemm/worker') await smokeOfWorker(wgemm);
console.log('smoke passed');
