/** wgemm and ONNX Runtime Web, started before the tests of the file that imports them. */
import { afterAll, beforeAll } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { loadOrt, type Ort } from '../../peers/onnx.mjs';

export let wg: Gemm;
export let ort: Ort;

beforeAll(async () => {
  [wg, ort] = await Promise.all([createGemm({ models: true }), loadOrt()]);
});
afterAll(() => {
  wg.dispose();
});
