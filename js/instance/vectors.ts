/**
 * Finds out whether the engine joins two vectors of 16 bytes to one of 32, for the option
 * `vectors`. Nothing but time shows this. The core has two loops with the same instructions. One
 * stores vectors next to each other, where V8 begins to join. The other leaves gaps between them.
 * The ratio of their times is the gain.
 */
import type { CoreModule } from './glue.js';

/**
 * Between two measurements, calls take this long. V8 meanwhile compiles the loops again. It
 * replaces code only at the next call.
 */
const pauseMs = 20;

/** Measurements until the vectors stay at 16 bytes. */
const most = 6;

/** Steps of a loop. They take a quarter of a millisecond once V8 has optimized the loop. */
const steps = 200_000;

/**
 * What joining gains if it works: about 2. Loops that are not optimized, or not joined, take the
 * same time. On a busy machine, one loop may take several times as long as the other.
 */
const [leastGain, mostGain] = [1.5, 2.6];

/** @internal Measures after some calls, and changes to vectors of 32 bytes if they are faster. */
export function watchVectors(module: CoreModule): void {
  const { addVectors, compute, runProgram } = module;
  if (!addVectors) return; // the build has no kernels for joined vectors
  let busy = 0;
  let measured = 0;
  let faster = 0;
  const timed =
    <Args extends unknown[]>(call: (...args: Args) => number) =>
    (...args: Args): number => {
      const start = performance.now();
      const code = call(...args);
      busy += performance.now() - start;
      if (!(busy >= pauseMs)) return code; // the clock of a test may give anything
      busy = 0;
      const gain = measure(addVectors);
      // A single answer may be chance.
      faster = gain > leastGain && gain < mostGain ? faster + 1 : 0;
      if (faster === 2) module.setVectors(32);
      if (faster === 2 || ++measured === most) Object.assign(module, { compute, runProgram });
      return code;
    };
  module.compute = timed(compute);
  module.runProgram = timed(runProgram);
}

/**
 * The fewest steps of the clock that a loop must take. In a page that is not isolated the clock has
 * steps of 0.1 ms, which cannot tell.
 */
const leastClockSteps = 20;

/** In ms; Infinity if the clock stands still, or nearly so. */
function clockStep(): number {
  const start = performance.now();
  for (let i = 0; i < 10_000; ++i) {
    const now = performance.now();
    if (now > start) return now - start;
  }
  return Infinity;
}

/** How many times as long the loop with gaps takes; 0 if the clock is too coarse. */
function measure(addVectors: NonNullable<CoreModule['addVectors']>): number {
  const times = [Infinity, Infinity];
  for (let i = 0; i < 4; ++i) {
    const start = performance.now();
    addVectors(i % 2 === 1, steps);
    times[i % 2] = Math.min(times[i % 2] as number, performance.now() - start);
  }
  const [next, gapped] = times as [number, number];
  return next < leastClockSteps * clockStep() ? 0 : gapped / next;
}
