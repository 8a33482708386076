// How fast wgemm is beside its peers, in one process and on one thread each; the largest products in other builds, strictly, and on two
// threads too. The figures move with the machine and what else it does; the ratios of one run hold.
//   npm run bench                        every case
//   npm run bench -- --filter 1024       cases whose name contains the text
//   npm run bench -- --calls             a million calls of 16 x 16 x 16: time of each, and whether memory grows
//   npm run bench -- --kernels           every micro-kernel, and whether the table prefers the fastest: in Node and in the browsers that
//                                        are here, or those of --engine node,chromium,firefox,webkit; --build relaxed|simd128; --filter float32
import { setFlagsFromString } from 'node:v8';
import { parseArgs } from 'node:util';
import { runInNewContext } from 'node:vm';
import * as np from 'numpy-ts';
import { createGemm } from 'wgemm';
import { encodeModel, loadOrt } from '../peers/onnx.mjs';
import { startTfjs, tfjsMatMul, version as tfjsVersion } from '../peers/tfjs.mjs';

const gemm = { contestants: gemmContestants, toleranceOf: toleranceOfGemm };
const matmul = { contestants: matmulContestants, toleranceOf: toleranceOfGemm };
const qgemm = { contestants: qgemmContestants, toleranceOf: () => 0 };

const gemmCases = [
  { dtype: 'float32', m: 1024, n: 1024, k: 1024, variants: ['simd128', 'strict', '2 threads'] },
  { dtype: 'float32', m: 256, n: 256, k: 256 },
  { dtype: 'float32', m: 64, n: 64, k: 64 },
  { dtype: 'float32', m: 16, n: 16, k: 16 },
  { dtype: 'float32', m: 128, n: 3072, k: 768 },
  { dtype: 'float32', m: 1, n: 4096, k: 4096 },
  ...['float64', 'float16', 'bfloat16', 'int32', 'uint32', 'int64', 'uint64'].map((dtype) => ({ dtype, m: 256, n: 256, k: 256 })),
].map((each) => ({ ...each, operation: gemm, name: `${each.dtype} ${sizeOf(each)}` }));

// B is packed before unless it is raw, and takes all its bits unless it is said how many; the result is float32 unless it has a type.
const qgemmCases = [
  { typeOfA: 'uint8', typeOfB: 'int8', m: 1024, n: 1024, k: 1024, variants: ['2 threads'] },
  { typeOfA: 'uint8', typeOfB: 'uint8', m: 1024, n: 1024, k: 1024 },
  { typeOfA: 'int8', typeOfB: 'int8', m: 1024, n: 1024, k: 1024 },
  { typeOfA: 'int8', typeOfB: 'uint8', m: 1024, n: 1024, k: 1024 },
  { typeOfA: 'uint8', typeOfB: 'int8', m: 1024, n: 1024, k: 1024, bits: 7 },
  { typeOfA: 'uint8', typeOfB: 'int8', m: 256, n: 256, k: 256 },
  { typeOfA: 'uint8', typeOfB: 'int8', m: 256, n: 256, k: 256, raw: true },
  { typeOfA: 'uint8', typeOfB: 'int8', m: 64, n: 64, k: 64 },
  { typeOfA: 'uint8', typeOfB: 'int8', typeOfY: 'uint8', m: 128, n: 3072, k: 768 },
  { typeOfA: 'uint8', typeOfB: 'int8', m: 1, n: 4096, k: 4096 },
].map((each) => {
  const { typeOfA, typeOfB, typeOfY, raw, bits } = each;
  const suffix = `${typeOfY ? ` to ${typeOfY}` : ''}${raw ? ', raw B' : ''}${bits ? `, B of ${bits} bits` : ''}`;
  return { typeOfY: 'float32', ...each, operation: qgemm, name: `${typeOfA} x ${typeOfB} ${sizeOf(each)}${suffix}` };
});
const combinations = qgemmCases.slice(0, 4); // all that there are of two types

// Scores and contexts of twelve heads of attention.
const matmulCases = [
  { batch: 12, m: 128, n: 128, k: 64, transposeB: false },
  { batch: 12, m: 128, n: 128, k: 64, transposeB: true },
  { batch: 12, m: 128, n: 64, k: 128, transposeB: false },
  { batch: 12, m: 128, n: 64, k: 128, transposeB: true },
].map((each) => ({
  ...each,
  dtype: 'float32',
  operation: matmul,
  name: `matmul float32 ${each.batch} x ${sizeOf(each)}${each.transposeB ? ', transposeB' : ''}`,
}));

const cases = [...gemmCases, ...matmulCases, ...qgemmCases];
const nameWidth = Math.max(...cases.map(({ name }) => name.length)) + 2;

// ONNX Runtime Web's own kernels: Gemm for floating point, MatMul alone for integers, none for bfloat16.
const ortOperator = {
  float32: 'Gemm',
  float64: 'Gemm',
  float16: 'Gemm',
  int32: 'MatMul',
  uint32: 'MatMul',
  int64: 'MatMul',
  uint64: 'MatMul',
};

// V8 compiles WebAssembly quickly at first, and puts better code in place at some later call: nothing is timed before that.
const warmUpMs = 600;
const warmUpCalls = 20;
// One timing holds as many calls as fill this, so that neither the clock nor one `await` shows in it.
const sampleMs = 8;
const caseMs = 2500;
const minRounds = 15;

const { values: args } = parseArgs({
  options: {
    filter: { type: 'string', default: '' },
    calls: { type: 'boolean', default: false },
    kernels: { type: 'boolean', default: false },
    engine: { type: 'string' },
    build: { type: 'string' },
  },
});
let wg; // but for --kernels
const variants = { simd128: { simd: 'simd128' }, strict: { determinism: 'strict' }, '2 threads': { threads: 2 } };
const instances = new Map(); // of them, as they are asked for
if (args.kernels) {
  await (await import('./kernels.mjs')).rankKernels(args);
} else if (args.engine !== undefined || args.build !== undefined) {
  console.error('--engine and --build are for --kernels: say that too.');
  process.exitCode = 1;
} else {
  wg = await createGemm();
  if (args.calls) await countCalls();
  else await compare();
  for (const each of [wg, ...instances.values()]) each.dispose();
}

async function compare() {
  const chosen = cases.filter(({ name }) => name.includes(args.filter));
  if (chosen.length === 0) {
    console.error(`No case contains "${args.filter}"; there are ${cases.map(({ name }) => name).join(', ')}.`);
    process.exitCode = 1;
    return;
  }
  const ort = await loadOrt();
  await startTfjs();
  console.log(
    `wgemm ${wg.info.version} (${wg.info.kernels[0].name}), ONNX Runtime Web ${ort.version} (wasm), tfjs ${tfjsVersion} (wasm), numpy-ts ${np.__version__}, Node ${process.versions.node}`,
  );
  console.log('M x N x K; GOP/s counts 2*M*N*K; wgemm reads and writes tensors in its heap, with 8-bit B packed before;');
  console.log('a ratio compares the best times\n');
  printRow('case', 'library', 'GOP/s best', 'median', 'time best', 'median', 'wgemm is');
  for (const problem of chosen) await compareOn(problem, ort);
  if (combinations.every((problem) => chosen.includes(problem))) await compareCombinations();
}

async function compareOn(problem, ort) {
  const { name, operation, batch = 1, m, n, k } = problem;
  const contestants = await operation.contestants(problem, ort);
  const times = await race(contestants);
  const [own, ...peers] = contestants.map(({ result }) => result());
  const tolerance = operation.toleranceOf(problem);
  for (const [i, peer] of peers.entries()) checkEqual(own, peer, tolerance, `${name}: wgemm and ${contestants[i + 1].name}`);

  const operations = 2 * batch * m * n * k;
  const speed = (ms) => (operations / ms / 1e6).toFixed(1);
  const bestPeer = Math.min(...times.filter((_, i) => !contestants[i].own).map(({ best }) => best));
  contestants.forEach((contestant, i) => {
    const { best, median } = times[i];
    const ratio = (i === 0 ? bestPeer : best) / times[0].best;
    const verdict = bestPeer === Infinity ? 'without a peer' : i === 0 ? `${ratio.toFixed(2)}x the best peer` : `${ratio.toFixed(2)}x this`;
    printRow(i === 0 ? name : '', contestant.name, speed(best), speed(median), duration(best), duration(median), verdict);
  });
  for (const { dispose } of contestants) await dispose();
}

/** QGemm's combinations of types beside each other: they take turns once more, because times of different moments do not compare. */
async function compareCombinations() {
  const contestants = combinations.map((problem) => qgemmOn(problem, qgemmData(problem)));
  const times = (await race(contestants)).map(({ best }) => best);
  const each = combinations.map(({ typeOfA, typeOfB }, i) => `${typeOfA} x ${typeOfB} ${duration(times[i])}`);
  const ratio = Math.max(...times) / Math.min(...times);
  console.log(
    `\n${sizeOf(combinations[0])}, taking turns: ${each.join(', ')}; the slowest takes ${ratio.toFixed(3)}x the time of the fastest`,
  );
  for (const { dispose } of contestants) dispose();
}

/** The same contestant on other instances. */
async function variantsOf({ variants: names = [] }, make) {
  const contestants = [];
  for (const name of names) {
    if (!instances.has(name)) instances.set(name, await createGemm(variants[name]));
    contestants.push({ ...make(instances.get(name)), name: `wgemm, ${name}` });
  }
  return contestants;
}

// A contestant runs its product `times` times; `result()` is what the last one gave. wgemm is the first; what else is its own is no peer.

async function gemmContestants(problem, ort) {
  const { dtype, m, n, k } = problem;
  const a = randomArray(dtype, m * k, 1);
  const b = randomArray(dtype, k * n, 2);
  const contestants = [wgemmOn(problem, a, b), ...(await variantsOf(problem, (wg) => wgemmOn(problem, a, b, wg)))];
  if (dtype in ortOperator) {
    const inputs = [
      { name: 'A', dtype, shape: [m, k], data: a },
      { name: 'B', dtype, shape: [k, n], data: b },
    ];
    contestants.push(...(await ortOn(ort, { type: ortOperator[dtype], inputs, output: { dtype, shape: [m, n] } })));
  }
  if (dtype === 'float32') contestants.push(tfjsMatMul({ data: a, shape: [m, k] }, { data: b, shape: [k, n] }));
  if (dtype !== 'bfloat16') contestants.push(numpyOn(problem, a, b));
  return contestants;
}

/** wgemm's matmul, as many calls of its gemm, and the peers. ONNX Runtime's MatMul has no flag: it gets what is transposed already. */
async function matmulContestants({ dtype, batch, m, n, k, transposeB }, ort) {
  const a = { data: randomArray(dtype, batch * m * k, 1), shape: [batch, m, k] };
  const b = { data: randomArray(dtype, batch * k * n, 2), shape: [batch, k, n] };
  const given = transposeB ? { data: transposeEach(b), shape: [batch, n, k] } : b;
  const tensors = [a, given, { shape: [batch, m, n] }].map(({ data, shape }) => {
    const tensor = wg.alloc(dtype, shape);
    if (data) tensor.data.set(data);
    return tensor;
  });
  const [x, w, y] = tensors;
  const options = { transposeB, out: y };
  const together = {
    name: 'wgemm',
    own: true,
    run(times) {
      for (let i = 0; i < times; ++i) wg.matmul(x, w, null, options);
    },
    result: () => y.data.slice(),
    dispose: () => tensors.forEach((tensor) => tensor.dispose()),
  };
  const parts = tensors.map(({ shape: [, rows, columns] }) => Array.from({ length: batch }, () => wg.alloc(dtype, [rows, columns])));
  parts.slice(0, 2).forEach((matrices, i) => {
    const { data } = tensors[i];
    matrices.forEach((matrix, j) => matrix.data.set(data.subarray(j * matrix.size, (j + 1) * matrix.size)));
  });
  const calls = parts[0].map((_, i) => [parts[0][i], parts[1][i], null, { transB: transposeB, out: parts[2][i] }]);
  const apart = {
    name: `wgemm, ${batch} gemm`,
    own: true,
    run(times) {
      for (let i = 0; i < times; ++i) for (const call of calls) wg.gemm(...call);
    },
    result: () => Float32Array.from(parts[2].flatMap(({ data }) => [...data])),
    dispose: () => parts.flat().forEach((tensor) => tensor.dispose()),
  };
  const inputs = [
    { name: 'A', dtype, ...a },
    { name: 'B', dtype, ...b },
  ];
  const ortModel = { type: 'MatMul', inputs, output: { dtype, shape: [batch, m, n] } };
  return [together, apart, ...(await ortOn(ort, ortModel)), tfjsMatMul(a, given, transposeB)];
}

function transposeEach({ data, shape: [, rows, columns] }) {
  return data.map((_, i) => {
    const [matrix, at] = [Math.floor(i / (rows * columns)), i % (rows * columns)];
    return data[matrix * rows * columns + (at % rows) * columns + Math.floor(at / rows)];
  });
}

/** Sums of K products, each below 1, in whatever order; integers wrap. */
function toleranceOfGemm({ dtype, k }) {
  return { float32: 1e-6 * k, float64: 1e-14 * k, float16: 0.02 * Math.sqrt(k) }[dtype] ?? 0;
}

function wgemmOn({ dtype, m, n, k }, a, b, instance = wg) {
  const [x, w, y] = [instance.alloc(dtype, [m, k]), instance.alloc(dtype, [k, n]), instance.alloc(dtype, [m, n])];
  x.data.set(a);
  w.data.set(b);
  const options = { out: y };
  return {
    name: 'wgemm',
    own: true,
    run(times) {
      for (let i = 0; i < times; ++i) instance.gemm(x, w, null, options);
    },
    result: () => y.data.slice(),
    dispose: () => [x, w, y].forEach((tensor) => tensor.dispose()),
  };
}

/** numpy-ts keeps its arrays in its own heap, and frees a result when the collector finds it, or when it is told. */
function numpyOn({ dtype, m, n, k }, a, b) {
  const [x, w] = [np.array(Array.from(a), dtype).reshape(m, k), np.array(Array.from(b), dtype).reshape(k, n)];
  let y;
  return {
    name: 'numpy-ts',
    run(times) {
      for (let i = 0; i < times; ++i) {
        y?.dispose?.();
        y = np.matmul(x, w);
      }
    },
    result: () => y.data,
    dispose() {
      y = undefined;
    },
  };
}

async function qgemmContestants(problem, ort) {
  const { typeOfA, typeOfB, typeOfY, m, n, k } = problem;
  const data = qgemmData(problem);
  const own = [qgemmOn(problem, data), ...(await variantsOf(problem, (wg) => qgemmOn(problem, data, wg)))];
  if (typeOfA === 'int8' && typeOfB === 'uint8') return own; // ONNX Runtime lacks it
  const arrays = { float32: Float32Array, int8: Int8Array, uint8: Uint8Array };
  const one = (name, dtype, value) => (value === null ? null : { name, dtype, shape: [], data: arrays[dtype].of(value) });
  const inputs = [
    { name: 'A', dtype: typeOfA, shape: [m, k], data: data.a },
    one('a_scale', 'float32', data.aScale),
    one('a_zero_point', typeOfA, data.aZeroPoint),
    { name: 'B', dtype: typeOfB, shape: [k, n], data: data.b },
    one('b_scale', 'float32', data.bScale),
    one('b_zero_point', typeOfB, data.bZeroPoint),
    null,
    one('y_scale', 'float32', data.yScale),
    one('y_zero_point', typeOfY, data.yZeroPoint),
  ];
  const output = { dtype: typeOfY, shape: [m, n] };
  return [...own, ...(await ortOn(ort, { type: 'QGemm', domain: 'com.microsoft', inputs, output }))];
}

/** Activations about a point beside the middle, weights about the middle of their type, and a result that mostly fits its own. */
function qgemmData({ typeOfA, typeOfB, typeOfY, m, n, k, bits = 8 }) {
  const quantized = typeOfY !== 'float32';
  return {
    a: randomArray(typeOfA, m * k, 1),
    aScale: 0.02,
    aZeroPoint: typeOfA === 'int8' ? 5 : 133,
    b: randomArray(typeOfB, k * n, 2).map((element) => element >> (8 - bits)),
    bScale: 0.005,
    bZeroPoint: typeOfB === 'int8' ? 0 : 128,
    yScale: quantized ? 0.01 * Math.sqrt(k) : null,
    yZeroPoint: quantized ? 120 : null,
  };
}

function qgemmOn({ typeOfA, typeOfB, typeOfY, m, n, k, raw }, { a, b, ...factors }, instance = wg) {
  const [x, w, y] = [instance.alloc(typeOfA, [m, k]), instance.alloc(typeOfB, [k, n]), instance.alloc(typeOfY, [m, n])];
  x.data.set(a);
  w.data.set(b);
  const weights = raw ? w : instance.pack(w, { op: 'qgemm' });
  const inputs = { ...factors, a: x, b: weights };
  const options = { out: y };
  return {
    name: 'wgemm',
    own: true,
    run(times) {
      for (let i = 0; i < times; ++i) instance.qgemm(inputs, options);
    },
    result: () => y.data.slice(),
    dispose: () => [x, w, weights, y].forEach((each) => each.dispose()),
  };
}

/** ONNX Runtime Web with B given at each run, and with B as a constant of the model, which it prepacks where it can. */
async function ortOn(ort, model) {
  return [await ortGiven(ort, model, ['A', 'B'], 'ORT'), await ortGiven(ort, model, ['A'], 'ORT, constant B')];
}

/** Session.run() copies the inputs that are given at each run to its heap, and the result from there: it has no other way. */
async function ortGiven(ort, model, given, name) {
  const isGiven = (input) => given.includes(input?.name);
  const inputs = model.inputs.map((input) => (isGiven(input) ? { ...input, data: undefined } : input));
  const session = await ort.createSession(encodeModel({ ...model, inputs }));
  const feeds = Object.fromEntries(model.inputs.filter(isGiven).map((input) => [input.name, ort.tensor(input)]));
  let result;
  return {
    name,
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
  const { run } = wgemmOn({ dtype: 'float32', m: 16, n: 16, k: 16 }, randomArray('float32', 256, 1), randomArray('float32', 256, 2));
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
    const near = tolerance === 0 ? value === peer[i] : Math.abs(value - peer[i]) <= tolerance;
    if (!near) throw new Error(`${who} disagree at element ${i}: ${value} and ${peer[i]}`);
  });
}

/** Numbers from -1 to 1, or integers over their type's range, the same in every run. */
function randomArray(dtype, length, seed) {
  let state = seed;
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) | 0);
  const fill = (array, value) => array.map(value);
  const fraction = () => next() / 2 ** 31;
  switch (dtype) {
    case 'float64':
      return fill(new Float64Array(length), fraction);
    case 'float16':
      return fill(new Float16Array(length), fraction);
    case 'bfloat16': // the upper halves of float32
      return Uint16Array.from(new Uint32Array(fill(new Float32Array(length), fraction).buffer), (bits) => bits >>> 16);
    case 'int32':
      return fill(new Int32Array(length), next);
    case 'uint32':
      return fill(new Uint32Array(length), next);
    case 'int64':
      return fill(new BigInt64Array(length), () => (BigInt(next()) << 32n) | BigInt(next() >>> 0));
    case 'uint64':
      return fill(new BigUint64Array(length), () => BigInt.asUintN(64, (BigInt(next()) << 32n) | BigInt(next() >>> 0)));
    case 'int8':
      return fill(new Int8Array(length), () => next() >> 24);
    case 'uint8':
      return fill(new Uint8Array(length), () => next() >>> 24);
    default:
      return fill(new Float32Array(length), fraction);
  }
}

function sizeOf({ m, n, k }) {
  return `${m}x${n}x${k}`;
}

function duration(ms) {
  return ms < 0.1 ? `${(ms * 1000).toFixed(2)} us` : `${ms.toFixed(2)} ms`;
}

function printRow(name, library, ...columns) {
  const verdict = columns.pop();
  console.log(`${name.padEnd(nameWidth)}${library.padEnd(17)}${columns.map((text) => text.padStart(11)).join('')}   ${verdict}`);
}
