// npm run bench -- --calls: a million of the smallest calls, and whether memory grows.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createGemm } from 'wgemm';
import { gemmOn } from './contestants.mjs';
import { randomArray } from './data.mjs';
import { duration } from './print.mjs';
import { bestAndMedian, timeOf } from './turns.mjs';

export async function countCalls({ threads }) {
  const total = 1_000_000;
  const batch = 10_000;
  using wg = await createGemm({ threads });
  const matrix = (seed) => ({ shape: [16, 16], data: randomArray('float32', 256, seed) });
  const { run } = gemmOn(
    wg,
    { dtype: 'float32', m: 16, n: 16, k: 16 },
    {},
    { a: matrix(1), b: matrix(2) },
  );
  for (let i = 0; i < 5; ++i) {
    run(batch);
    // The engine replaces code by better code between calls.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const before = await memoryNow(wg);
  const samples = [];
  for (let i = 0; i < total / batch; ++i) samples.push(await timeOf(run, batch));
  const after = await memoryNow(wg);

  const { best, median } = bestAndMedian(samples);
  const grown = after.js - before.js;
  const kilobytes = (bytes) => `${(bytes / 1024).toFixed(0)} kB`;
  console.log(
    `float32 16x16x16 in the heap, ${total} calls: ${duration(best)} a call at best, ` +
      `${duration(median)} in the median batch`,
  );
  console.log(
    `wasm memory: ${kilobytes(before.committed)} before, ${kilobytes(after.committed)} after`,
  );
  console.log(`tensors in it: ${before.inUse} bytes before, ${after.inUse} bytes after`);
  console.log(
    `JavaScript heap, garbage collected: ${kilobytes(before.js)} before, ` +
      `${kilobytes(after.js)} after`,
  );
  // No leak is smaller than one byte per call; the engine itself keeps a little.
  const leaks = after.committed > before.committed || after.inUse !== before.inUse || grown > total;
  console.log(leaks ? 'memory GROWS' : 'neither grows');
  if (leaks) process.exitCode = 1;
}

async function memoryNow(wg) {
  setFlagsFromString('--expose-gc');
  // The flag applies to contexts that are made after it is set.
  const collect = globalThis.gc ?? runInNewContext('gc');
  for (let i = 0; i < 3; ++i) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 20)); // finalizers run between tasks
  }
  return { ...wg.memory(), js: process.memoryUsage().heapUsed };
}
