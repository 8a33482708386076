/** Counts garbage collections, to show that calls make no objects. */
import { PerformanceObserver } from 'node:perf_hooks';

/**
 * Returns the fewest collections in three rounds of calls, since garbage of other tests in this
 * process may be collected in one of the rounds.
 * @param run makes calls
 * @param warm how many calls precede, ten times: until the engine has optimized them
 * @param calls how many calls a round has
 */
export async function fewestCollections(
  run: (calls: number) => void,
  warm: number,
  calls: number,
): Promise<number> {
  // The engine puts better code in place between calls.
  const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
  for (let i = 0; i < 10; ++i) {
    run(warm);
    await pause();
  }
  let fewest = Infinity;
  for (let round = 0; round < 3; ++round) {
    let collections = 0;
    const observer = new PerformanceObserver((list) => (collections += list.getEntries().length));
    observer.observe({ entryTypes: ['gc'] });
    run(calls);
    await pause();
    observer.disconnect();
    fewest = Math.min(fewest, collections);
  }
  return fewest;
}
