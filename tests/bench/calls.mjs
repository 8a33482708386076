// npm run bench -- --calls: a million of the smallest calls, and whether memory grows; and calls
// that are recorded, next to the same calls one by one and to their kernels alone.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createGemm } from 'wgemm';
import { buildPrograms } from './build-programs.mjs';
import { gemmOn, microKernelOf } from './contestants.mjs';
import { randomArray } from './data.mjs';
import { duration } from './print.mjs';
import { bestAndMedian, race, timeOf } from './turns.mjs';

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
  await raceRecorded(wg);
}

/** Prints how long a list of small products takes in each of three ways, and its kernels alone. */
async function raceRecorded(wg) {
  const count = 20;
  await buildPrograms([wg.info.build]);
  for (const size of [4, 16]) {
    const tensors = (seed) =>
      Array.from({ length: count }, (_, i) => {
        const tensor = wg.alloc('float32', [size, size]);
        tensor.data.set(randomArray('float32', size * size, seed + i));
        return tensor;
      });
    const [a, y, [b]] = [tensors(1), tensors(101), tensors(201)];
    const options = y.map((out) => ({ out }));
    const list = (calls) => {
      for (let i = 0; i < count; ++i) calls.gemm(a[i], b, null, options[i]);
    };
    const recording = wg.record(list);
    const repeat = (body) => (times) => {
      for (let i = 0; i < times; ++i) body();
    };
    const plan = wg.explain('gemm', a[0], b, null, options[0]);
    const kernel = await microKernelOf(wg.info.build, plan, { m: size, n: size, k: size });
    const [calls, same, recorded, alone] = await race([
      { run: repeat(() => list(wg)) },
      {
        run: repeat(() => {
          for (let i = 0; i < count; ++i) wg.gemm(a[0], b, null, options[0]);
        }),
      },
      { run: repeat(() => recording.run()) },
      { run: (times) => kernel.run(count * times) },
    ]);
    const besides = (recorded.best - alone.best) / count;
    console.log(
      `float32 ${size}x${size}x${size} in the heap, ${count} products: ` +
        `${duration(calls.best)} by calls, ${duration(same.best)} by one call again and again, ` +
        `${duration(recorded.best)} recorded, ${duration(alone.best)} the kernels alone ` +
        `(${plan.kernel}); recorded ${(calls.best / recorded.best).toFixed(1)} times as fast as ` +
        `calls, ${duration(besides)} per product in addition to its kernel`,
    );
    for (const tensor of [recording, ...a, ...y]) tensor.dispose();
  }
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
