import type { Report } from './report.ts';

/** ms between two questions to the page: seldom enough to cost nothing. */
const interval = 40;

/** A function that asks the page now and then whether to go on, at a fraction of the job. */
export function paced<T>(report: Report<T>, fraction: () => number): () => Promise<boolean> {
  let last = performance.now();
  let answer = true;
  return async () => {
    if (performance.now() - last > interval) {
      answer = await report(fraction());
      last = performance.now();
    }
    return answer;
  };
}
