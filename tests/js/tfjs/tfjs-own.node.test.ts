// tfjs' own tests of matrix products, with wgemm installed in both backends.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { install } from 'wgemm/tfjs';
import { bundleTfjs } from '../../peers/tfjs-bundle.mjs';
import { watchOldKernels } from './tfjs.js';

const { tf, declareTests } = await bundleTfjs();
const old = ['wasm', 'cpu'].map((name) => watchOldKernels(tf, name));
const remove = await install(tf, { always: true });

/** As Vitest's, and with what Jasmine has for tests that expect nothing. */
const expectOfJasmine = (...values: [] | [unknown]) =>
  values.length === 0 ? { nothing: () => undefined } : expect(values[0]);
/** One test has a product of int32, which the backend `wasm` lacks. */
const itOfJasmine = (name: string, body: () => void) =>
  (name === 'upcasts when dtypes dont match' && isWasm ? it.skip : it)(name, body);
let isWasm = false;
const describeOfJasmine = (name: string, body: () => void) =>
  describe(name, () => {
    isWasm = name.includes('wasm');
    body();
  });
Object.assign(globalThis, {
  ...{ afterAll, afterEach, beforeAll, beforeEach },
  describe: describeOfJasmine,
  it: itOfJasmine,
  expect: expectOfJasmine,
});
declareTests();

afterAll(() => {
  // All products of float32 were of shapes that wgemm computes.
  expect(old.map(({ calls }) => calls)).toEqual([0, 0]);
  remove();
});
