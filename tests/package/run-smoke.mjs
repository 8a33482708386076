// node run-smoke.mjs ENTRY: the smoke test of an entry of the package that is installed where this file lies.
import process from 'node:process';
import { smoke } from './smoke.mjs';

// A runtime that ends before a promise is settled ends well: what is printed tells.
await smoke(await import(process.argv[2]));
console.log('smoke passed');
