/** A call whose operands are in the heap makes no object, so the collector finds nothing. */
import { expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { fewestCollections } from '../support/collections.js';

it('a hundred thousand calls in the heap leave nothing for the collector', async () => {
  const wg = await createGemm();
  const [a, b, out] = [
    wg.alloc('float32', [16, 16]),
    wg.alloc('float32', [16, 16]),
    wg.alloc('float32', [16, 16]),
  ];
  const weights = wg.pack(b, { op: 'gemm' });
  const options = { out };
  const run = (calls: number) => {
    for (let i = 0; i < calls; ++i) {
      wg.gemm(a, b, null, options);
      wg.gemm(a, weights, null, options);
      wg.matmul(a, b, null, options);
    }
  };
  expect(await fewestCollections(run, 5000, 33_333)).toBeLessThanOrEqual(1); // 30 if each made but a few
  wg.dispose();
});
