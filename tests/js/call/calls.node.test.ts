/** A call whose operands are in the heap makes no object, so the collector finds nothing. */
import { PerformanceObserver } from 'node:perf_hooks';
import { expect, it } from 'vitest';
import { createGemm } from 'wgemm';

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
  const pause = () => new Promise((resolve) => setTimeout(resolve, 20)); // better code is put in place between calls
  for (let i = 0; i < 10; ++i) {
    run(5000);
    await pause();
  }
  let fewest = Infinity;
  // Garbage of other tests in this process may be collected in one of the rounds.
  for (let round = 0; round < 3; ++round) {
    let collections = 0;
    const observer = new PerformanceObserver((list) => (collections += list.getEntries().length));
    observer.observe({ entryTypes: ['gc'] });
    run(33_333);
    await pause();
    observer.disconnect();
    fewest = Math.min(fewest, collections);
  }
  expect(fewest).toBeLessThanOrEqual(1); // 30 if each made but a few
  wg.dispose();
});
