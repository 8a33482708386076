// node run-smoke.mjs ENTRY: the smoke test of an entry of the package that is installed where this
// file lies.
import process from 'node:process';
import { smoke, smokeOfWorker } from './smoke.mjs';

// A runtime that ends before a promise is settled ends well: what is printed tells.
const wgemm = await import(process.argv[2]);
await smoke(wgemm);
if (process.argv[2] === 'wgemm/worker') await smokeOfWorker(wgemm);
console.log('smoke passed');
