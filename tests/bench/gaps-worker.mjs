// The worker of gaps.mjs: makes the calls of one setting, and posts the rows of the table.
import { PerformanceObserver } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { randomArray } from './data.mjs';
import { bestAndMedian } from './turns.mjs';

/**
 * V8 replaces the code of a new instance while it runs for warmUpMs. A contestant makes calls for
 * settleMs before calls are timed: by then the threads of the contestant before it sleep.
 */
const times = { warmUpMs: 200, settleMs: 6, batchMs: 30, rowMs: 750, minCalls: 3, minRounds: 3 };

/** Up to this many milliseconds an idle caller waits in a loop. */
const longestLoop = 0.1;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

function wait(ms) {
  if (ms > longestLoop) {
    Atomics.wait(sleeper, 0, 0, ms);
    return;
  }
  const end = performance.now() + ms;
  while (performance.now() < end);
}

// A few arrays live on, so that the collector has something to move.
const alive = new Array(512);
let oldest = 0;

function litter(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    alive[oldest] = Array.from({ length: 32 }, (_, i) => ({ i }));
    oldest = (oldest + 1) % alive.length;
  }
}

/** What the caller does in a gap of some milliseconds. */
const pauses = { wait, litter };

/** A call of a contestant, with its operands in the heap of wgemm. */
function callOf(wg, [m, n, k]) {
  const tensor = (rows, cols, seed) => {
    const handle = wg.alloc('float32', [rows, cols]);
    handle.data.set(randomArray('float32', rows * cols, seed));
    return handle;
  };
  const [a, b, out] = [tensor(m, k, 1), tensor(k, n, 2), tensor(m, n, 3)];
  const options = { out };
  return {
    run: () => wg.gemm(a, b, null, options),
    threads: wg.explain('gemm', a, b, null, options).threads,
    dispose: () => [a, b, out].forEach((handle) => handle.dispose()),
  };
}

/** Makes calls with gaps for `ms`, at least `least` calls. Times each if there are `samples`. */
function makeCalls({ run }, pause, gap, ms, least, samples) {
  const end = performance.now() + ms;
  for (let i = 0; i < least || performance.now() < end; ++i) {
    if (gap > 0) pause(gap);
    const start = performance.now();
    run();
    samples?.push(performance.now() - start);
  }
}

let collections = 0;

/** Lets the observer of the collector run. */
const breathe = () => new Promise((done) => setImmediate(done));

/** The times of all calls of a case with a gap, in the order of `calls`. */
async function timeRow(calls, pause, gap) {
  await breathe();
  const before = collections;
  const samples = calls.map(() => []);
  const end = performance.now() + times.rowMs;
  for (let round = 0; round < times.minRounds || performance.now() < end; ++round) {
    for (const [i, call] of calls.entries()) {
      makeCalls(call, pause, gap, times.settleMs, 1);
      makeCalls(call, pause, gap, times.batchMs, times.minCalls, samples[i]);
    }
    await breathe();
  }
  return { collections: collections - before, times: samples.map(bestAndMedian) };
}

/** Times all cases, and posts the rows. */
async function timeCases({ threads, builds, cases, gaps, pause: name }) {
  const pause = pauses[name];
  new PerformanceObserver((list) => (collections += list.getEntries().length)).observe({
    entryTypes: ['gc'],
  });
  const contestants = [];
  for (const build of builds) {
    const { createGemm } = await import(build);
    for (const count of [1, threads])
      contestants.push({ build, wg: await createGemm({ threads: count }) });
  }
  parentPort.postMessage({ isReady: true });
  for (const shape of cases) {
    const calls = contestants.map(({ wg }) => callOf(wg, shape));
    for (const call of calls) makeCalls(call, pause, 0, times.warmUpMs, 8);
    let without;
    for (const gap of gaps) {
      const row = await timeRow(calls, pause, gap);
      without ??= row.times;
      for (let i = 1; i < calls.length; i += 2) {
        const [one, many] = [row.times[i - 1], row.times[i]];
        parentPort.postMessage({
          shape,
          gap,
          build: contestants[i].build,
          threads: calls[i].threads,
          ...many,
          one,
          toOne: { best: many.best / one.best, median: many.median / one.median },
          toNoGap: { best: many.best / without[i].best, median: many.median / without[i].median },
          collections: row.collections,
        });
      }
    }
    for (const call of calls) call.dispose();
  }
  for (const { wg } of contestants) wg.dispose();
}

await timeCases(workerData);
