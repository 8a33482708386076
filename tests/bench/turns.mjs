// Times contestants in turns, so that a busy moment of the machine affects all alike.

// V8 compiles WebAssembly quickly at first, and replaces it by better code at some later call:
// nothing is timed before that. One timing has as many calls as fill sampleMs, so that neither the
// clock nor one `await` affects it. A contestant that takes more than `slow` times as long as the
// fastest is timed only in every fourth round, so that the others need not wait for it.
const usual = {
  warmUpMs: 600,
  warmUpCalls: 8,
  sampleMs: 8,
  raceMs: 2500,
  minRounds: 12,
  slow: 6,
  rest: 0,
  goOn: () => true,
};

/** A timing spans this many ticks of a coarse clock, unless they take longer than `mostMs`. */
const coarse = { ticks: 15, mostMs: 25 };
let tick;

/**
 * @param contestants each with run(times), which may be asynchronous
 * @param options options of `usual` that differ. `goOn` is awaited before each timing; if it
 * returns false, the race ends. `rest`: milliseconds before each timing; a call that is not timed
 * then follows
 * @returns milliseconds per call of each, { best, median }; undefined if `goOn` ended the race
 */
export async function race(contestants, options = {}) {
  const { warmUpMs, warmUpCalls, raceMs, minRounds, slow, rest, goOn, ...asked } = {
    ...usual,
    ...options,
  };
  tick ??= clockTick();
  const sampleMs = Math.max(asked.sampleMs, Math.min(coarse.ticks * tick, coarse.mostMs));
  const runners = [];
  for (const { run } of contestants) {
    const start = performance.now();
    const elapsed = () => performance.now() - start;
    let calls = 0;
    for (; elapsed() < warmUpMs || (calls < warmUpCalls && elapsed() < 4 * warmUpMs); ++calls) {
      if (!(await goOn())) return undefined;
      await run(1);
    }
    await pause();
    let tried = Math.max(1, calls >> 3);
    let perCall = await timeOf(run, tried);
    // A coarse clock tells nothing of less.
    while (perCall * tried < sampleMs / 4) {
      if (!(await goOn())) return undefined;
      perCall = await timeOf(run, (tried *= 2));
    }
    const times = Math.max(1, Math.round(sampleMs / perCall));
    runners.push({ run, perCall, times, samples: [] });
  }
  const sampleTime = ({ perCall, times }) => perCall * times;
  const fastest = Math.min(...runners.map(sampleTime));
  const usualRunners = runners.filter(
    (runner) => sampleTime(runner) <= slow * Math.max(fastest, sampleMs),
  );
  const end = performance.now() + raceMs;
  const isMissing = () => runners.some(({ samples }) => samples.length === 0);
  for (let round = 0; round < minRounds || performance.now() < end || isMissing(); ++round) {
    // Each goes first in turn: a contestant that follows a peer finds the peer's data in the
    // caches.
    const entrants = round % 4 === 0 ? runners : usualRunners;
    for (let i = 0; i < entrants.length; ++i) {
      const entrant = entrants[(round + i) % entrants.length];
      const { run, times, samples } = entrant;
      if (!(await goOn())) return undefined;
      if (rest > 0) {
        await pause(rest);
        await run(1); // wakes threads
      }
      const ms = await timeOf(run, times);
      // Too short for the clock: other programs slowed down the calls that chose `times`.
      if (ms * times < sampleMs / 4) entrant.times *= 2;
      else samples.push(ms);
    }
  }
  return runners.map(({ samples }) => bestAndMedian(samples));
}

/** Lets the engine run its own tasks: a page may compile better code only then. */
export const pause = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

/** The smallest step of the clock, in milliseconds: pages have coarse clocks. */
export function clockTick() {
  const steps = Array.from({ length: 20 }, () => {
    const start = performance.now();
    let now = start;
    while (now === start) now = performance.now();
    return now - start;
  });
  return Math.min(...steps);
}

/** Milliseconds per call, over `times` calls. */
export async function timeOf(run, times) {
  const start = performance.now();
  await run(times);
  return (performance.now() - start) / times;
}

export function bestAndMedian(samples) {
  samples.sort((a, b) => a - b);
  return { best: samples[0], median: samples[samples.length >> 1] };
}
