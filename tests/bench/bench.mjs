// How fast wgemm is beside its peers, in one process and on one thread each. The figures move with the machine and what else it does;
// the ratios of one run hold.
//   npm run bench                        every case
//   npm run bench -- --filter 1024       cases whose name contains the text
//   npm run bench -- --calls             a million calls of 16 x 16 x 16: time of each, and whether memory grows
import { setFlagsFromString } from 'node:v8';
import { parseArgs } from 'node:util';
import { runInNewContext } from 'node:vm';
import { createGemm } from 'wgemm';
import { encodeModel, loadOrt } from '../peers/onnx.mjs';

const cases = [
  { m: 1024, n: 1024, k: 1024 },
  { m: 256, n: 256, k: 256 },
  { m: 64, n: 64, k: 64 },
  { m: 16, n: 16, k: 16 },
  { m: 128, n: 3072, k: 768 },
  { m: 1, n: 4096, k: 4096 },
].map((sizes) => ({ ...sizes, name: `float32 ${sizes.m}x${sizes.n}x${sizes.k}` }));

// V8 compiles WebAssembly quickly at first, and puts better code in place at some later call: nothing is timed before that.
const warmUpMs = 600;
const warmUpCalls = 20;
// One timing holds as many calls as fill this, so that neither the clock nor one `await` shows in it.
const sampleMs = 8;
const caseMs = 3000;
const minRounds = 15;

const { values: args } = parseArgs({ options: { filter: { type: 'string', default: '' }, calls: { type: 'boolean', default: false } } });
const wg = await createGemm();
if (args.calls) await countCalls();
else await compare();
wg.dispose();

async function compare() {
  const chosen = cases.filter(({ name }) => name.includes(args.filter));
  if (chosen.length === 0) {
    console.error(`No case contains "${args.filter}"; there are ${cases.map(({ name }) => name).join(', ')}.`);
    process.exitCode = 1;
    return;
  }
  const ort = await loadOrt();
  console.log(
    `wgemm ${wg.info.version} (${wg.info.kernels[0].name}), ONNX Runtime Web ${ort.version} (wasm), Node ${process.versions.node}`,
  );
  console.log('M x N x K; GOP/s counts 2*M*N*K; wgemm reads and writes tensors in its heap; a ratio compares the best times\n');
  printRow('case', 'library', 'GOP/s best', 'median', 'time best', 'median', 'wgemm is');
  for (const sizes of chosen) await compareOn(sizes, ort);
}

async function compareOn({ name, m, n, k }, ort) {
  const a = randomArray(m * k, 1);
  const b = randomArray(k * n, 2);
  const contestants = [
    wgemmOn(m, n, k, a, b),
    await ortOn(ort, m, n, k, a, b, { constantB: false }),
    await ortOn(ort, m, n, k, a, b, { constantB: true }),
  ];
  const times = await race(contestants);
  const [own, ...peers] = contestants.map(({ result }) => result());
  // Sums of K products, each below 1, in whatever order.
  for (const [i, peer] of peers.entries()) checkEqual(own, peer, 1e-6 * k, `${name}: wgemm and ${contestants[i + 1].name}`);

  const operations = 2 * m * n * k;
  const speed = (ms) => (operations / ms / 1e6).toFixed(1);
  const bestPeer = Math.min(...times.slice(1).map(({ best }) => best));
  contestants.forEach((contestant, i) => {
    const { best, median } = times[i];
    const ratio = (i === 0 ? bestPeer : best) / times[0].best;
    const verdict = i === 0 ? `${ratio.toFixed(2)}x the best peer` : `${ratio.toFixed(2)}x this`;
    printRow(i === 0 ? name : '', contestant.name, speed(best), speed(median), duration(best), duration(median), verdict);
  });
  for (const { dispose } of contestants) await dispose();
}

// A contestant runs its product `times` times; `result()` is what the last one gave.

function wgemmOn(m, n, k, a, b) {
  const { x, w, y } = tensorsOn(m, n, k, a, b);
  const options = { out: y };
  return {
    name: 'wgemm',
    run(times) {
      for (let i = 0; i < times; ++i) wg.gemm(x, w, null, options);
    },
    result: () => y.data.slice(),
    dispose: () => [x, w, y].forEach((tensor) => tensor.dispose()),
  };
}

function tensorsOn(m, n, k, a, b) {
  const x = wg.alloc('float32', [m, k]);
  const w = wg.alloc('float32', [k, n]);
  const y = wg.alloc('float32', [m, n]);
  x.data.set(a);
  w.data.set(b);
  return { x, w, y };
}

/** Session.run() copies the inputs that are given at each run to its heap, and the result from there: it has no other way. */
async function ortOn(ort, m, n, k, a, b, { constantB }) {
  const inputA = { name: 'A', dtype: 'float32', shape: [m, k] };
  const inputB = { name: 'B', dtype: 'float32', shape: [k, n] };
  const model = encodeModel({
    type: 'Gemm',
    inputs: [inputA, constantB ? { ...inputB, data: b } : inputB],
    output: { dtype: 'float32', shape: [m, n] },
  });
  const session = await ort.createSession(model);
  const feeds = { A: ort.tensor({ ...inputA, data: a }) };
  if (!constantB) feeds.B = ort.tensor({ ...inputB, data: b });
  let result;
  return {
    name: constantB ? 'ORT, constant B' : 'ORT',
    async run(times) {
      for (let i = 0; i < times; ++i) result = await session.run(feeds);
    },
    result: () => result.Y.data,
    dispose: () => session.release(),
  };
}

/** Milliseconds a call, best and median, of contestants that take turns, so that a busy moment of the machine hits all alike. */
async function race(contestants) {
  const runners = [];
  for (const { run } of contestants) {
    const start = performance.now();
    let calls = 0;
    for (; calls < warmUpCalls || performance.now() - start < warmUpMs; ++calls) await run(1);
    const perCall = await timeOf(run, Math.max(1, calls >> 3));
    const times = Math.max(1, Math.round(sampleMs / perCall));
    runners.push({ run, times, samples: [] });
  }
  const end = performance.now() + caseMs;
  for (let round = 0; round < minRounds || performance.now() < end; ++round) {
    // Each goes first in turn: what runs after a peer finds the caches full of the peer's data.
    for (let i = 0; i < runners.length; ++i) {
      const { run, times, samples } = runners[(round + i) % runners.length];
      samples.push(await timeOf(run, times));
    }
  }
  return runners.map(({ samples }) => bestAndMedian(samples));
}

async function timeOf(run, times) {
  const start = performance.now();
  await run(times);
  return (performance.now() - start) / times;
}

function bestAndMedian(samples) {
  samples.sort((a, b) => a - b);
  return { best: samples[0], median: samples[samples.length >> 1] };
}

async function countCalls() {
  const total = 1_000_000;
  const batch = 10_000;
  const { run } = wgemmOn(16, 16, 16, randomArray(256, 1), randomArray(256, 2));
  for (let i = 0; i < 5; ++i) {
    run(batch);
    await new Promise((resolve) => setTimeout(resolve, 20)); // better code is put in place between calls
  }
  const before = await memoryNow();
  const samples = [];
  for (let i = 0; i < total / batch; ++i) samples.push(await timeOf(run, batch));
  const after = await memoryNow();

  const { best, median } = bestAndMedian(samples);
  const grown = after.js - before.js;
  const kilobytes = (bytes) => `${(bytes / 1024).toFixed(0)} kB`;
  console.log(`float32 16x16x16 in the heap, ${total} calls: ${duration(best)} a call at best, ${duration(median)} in the median batch`);
  console.log(`wasm memory: ${kilobytes(before.committed)} before, ${kilobytes(after.committed)} after`);
  console.log(`tensors in it: ${before.inUse} bytes before, ${after.inUse} bytes after`);
  console.log(`JavaScript heap, garbage collected: ${kilobytes(before.js)} before, ${kilobytes(after.js)} after`);
  // No leak is as small as a byte a call; the engine itself keeps a little.
  const leaks = after.committed > before.committed || after.inUse !== before.inUse || grown > total;
  console.log(leaks ? 'memory GROWS' : 'neither grows');
  if (leaks) process.exitCode = 1;
}

async function memoryNow() {
  setFlagsFromString('--expose-gc');
  const collect = globalThis.gc ?? runInNewContext('gc'); // the flag holds for contexts made after it
  for (let i = 0; i < 3; ++i) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 20)); // finalizers run between tasks
  }
  return { ...wg.memory(), js: process.memoryUsage().heapUsed };
}

function checkEqual(own, peer, tolerance, who) {
  if (own.length !== peer.length) throw new Error(`${who} give ${own.length} and ${peer.length} elements`);
  own.forEach((value, i) => {
    if (!(Math.abs(value - peer[i]) <= tolerance)) throw new Error(`${who} disagree at element ${i}: ${value} and ${peer[i]}`);
  });
}

/** Numbers from -1 to 1, the same in every run. */
function randomArray(length, seed) {
  let state = seed;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  });
}

function duration(ms) {
  return ms < 0.1 ? `${(ms * 1000).toFixed(2)} us` : `${ms.toFixed(2)} ms`;
}

function printRow(name, library, ...columns) {
  const verdict = columns.pop();
  console.log(`${name.padEnd(24)}${library.padEnd(17)}${columns.map((text) => text.padStart(11)).join('')}   ${verdict}`);
}
