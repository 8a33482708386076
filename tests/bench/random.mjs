// npm run bench -- --random: random products next to the fastest peer. It prints the losses first.
//
// M, N and K are log-uniform from 1 to 4096, with at most `mostWork` multiply-adds. The same seed
// gives the same shapes. Each shape is measured twice: on operands in the memory of each library,
// and on plain arrays, of which each call makes tensors and from which it reads the result.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fail } from '../../scripts/run.mjs';
import { sizeOf } from './cases.mjs';
import { contestantsOf } from './contestants.mjs';
import { measure } from './measure.mjs';
import { duration } from './print.mjs';

const largest = 4096;
const mostWork = 3e8;
// numpy-ts has a heap that does not grow.
const numpyElements = 1 << 21;

// How often each type occurs. No peer has a product of bfloat16, or of int8 by uint8.
const types = [
  [6, { dtype: 'float32' }],
  [2, { dtype: 'float64' }],
  [2, { dtype: 'float16' }],
  [1, { dtype: 'int32' }],
  [1, { dtype: 'uint32' }],
  [1, { dtype: 'int64' }],
  [1, { dtype: 'uint64' }],
  [3, { typeOfA: 'uint8', typeOfB: 'int8' }],
  [2, { typeOfA: 'uint8', typeOfB: 'uint8' }],
  [1, { typeOfA: 'int8', typeOfB: 'int8' }],
].flatMap(([times, type]) => Array(times).fill(type));

// A first look, and then a race of the usual length for ratios below `doubtful`.
const look = { warmUpMs: 15, warmUpCalls: 4, sampleMs: 1, raceMs: 90, minRounds: 5, slow: 3 };
const doubtful = 1.05;
// Less than 1 by the noise of a run.
const lost = 0.97;
const leastMedian = 2.3; // in the heap

/** @param args `count`, `seed`, `filter`: text that the name of a shape must contain */
export async function raceRandom({ count, seed, filter, json, targets }, library, about) {
  const shapes = shapesOf(wholeNumber('--count', count), wholeNumber('--seed', seed)).filter(
    ({ name }) => name.includes(filter),
  );
  if (shapes.length === 0) fail(`bench: none of the ${count} shapes contains "${filter}"`);
  mkdirSync(dirname(json), { recursive: true });
  const rows = [];
  for (const [i, shape] of shapes.entries()) {
    for (const arrays of [false, true]) rows.push(await raceOne(shape, arrays, library));
    if (process.stderr.isTTY) process.stderr.write(`\r${i + 1} of ${shapes.length}`);
  }
  if (process.stderr.isTTY) process.stderr.write('\r');
  print(rows);
  if (targets) judge(rows);
  writeFileSync(json, `${JSON.stringify({ ...about, seed: Number(seed), rows }, null, 1)}\n`);
  console.log(`\nresults: ${relative('', json)}`);
}

function wholeNumber(option, text) {
  if (!/^[1-9]\d{0,8}$/.test(text))
    fail(`bench: ${option} is ${text}; it must be a whole number of at least 1`);
  return Number(text);
}

function shapesOf(count, seed) {
  const random = randomNumbers(seed);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const size = () => Math.round(Math.exp(random() * Math.log(largest)));
  return Array.from({ length: count }, () => {
    const type = pick(types);
    let shape;
    do shape = { m: size(), n: size(), k: size() };
    while (shape.m * shape.n * shape.k > mostWork);
    const [transA, transB, packed] = [1, 2, 3].map(() => random() < 0.5);
    return shapeOf(type, shape, type.dtype ? { transA, transB, packed } : { packed });
  });
}

/** Numbers from 0 to 1: a linear congruential generator, of which the upper bits count. */
function randomNumbers(seed) {
  let state = BigInt(seed);
  return () => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return Number(state >> 11n) / 2 ** 53;
  };
}

function shapeOf({ dtype, ...pair }, size, { transA = false, transB = false, packed }) {
  const kind = dtype ?? `${pair.typeOfA} x ${pair.typeOfB}`;
  const flags = [transA && 'transA', transB && 'transB', packed && 'B packed'].filter(Boolean);
  const { m, n, k } = size;
  const fitsNumpy = Math.max(m * k, k * n, m * n) <= numpyElements;
  return {
    name: [`${kind} ${sizeOf(size)}`, ...flags].join(', '),
    kind,
    ...size,
    ...(dtype ? { operation: 'gemm', dtype, transA, transB } : { operation: 'qgemm', ...pair }),
    typeOfY: 'float32',
    packed,
    peers: [packed ? 'ORT, constant B' : 'ORT', 'tfjs', ...(fitsNumpy ? ['numpy-ts'] : [])],
  };
}

/** numpy-ts rounds some integers to float32. Then it takes no part, since its result is wrong. */
async function raceOne(shape, arrays, library) {
  try {
    return await raceWith(shape, arrays, library);
  } catch (error) {
    if (!shape.dtype?.includes('int') || !error.message.includes('numpy-ts disagree')) throw error;
    const peers = shape.peers.filter((name) => name !== 'numpy-ts');
    return raceWith({ ...shape, peers }, arrays, library);
  }
}

async function raceWith(shape, arrays, library) {
  const { name, kind, packed } = shape;
  const problem = { ...shape, arrays, own: [{ packed }] };
  let row;
  for (const turns of [look, {}]) {
    const contestants = await contestantsOf(problem, library);
    const { kernel, regime } = contestants[0].plan();
    const [own, ...peers] = (await measure(problem, contestants, turns)).contestants;
    const peer = peers.reduce((a, b) => (b.best < a.best ? b : a));
    row = {
      name: arrays ? `${name}, arrays` : name,
      kind,
      arrays,
      kernel,
      regime,
      best: own.best,
      peer: peer.name,
      bestOfPeer: peer.best,
      ratio: peer.best / own.best,
    };
    if (row.ratio >= doubtful) break;
  }
  return row;
}

const inHeap = (rows) => rows.filter((row) => !row.arrays);

function print(rows) {
  const sorted = rows.toSorted((a, b) => a.ratio - b.ratio);
  const slower = sorted.filter(({ ratio }) => ratio < 1);
  console.log(
    `\nratio: the time of the fastest peer by the time of wgemm; slower, the worst first:`,
  );
  const width = Math.max(4, ...slower.map(({ name }) => name.length)) + 2;
  for (const { name, ratio, best, peer, bestOfPeer, kernel } of slower) {
    console.log(
      `  ${ratio.toFixed(2)}  ${name.padEnd(width)}${duration(best).padStart(10)}  ` +
        `${peer} ${duration(bestOfPeer)}  ${kernel}`,
    );
  }
  console.log(`\n${'type, operands'.padEnd(28)}shapes   worst  median  below ${lost}   below 1`);
  const groups = [...new Set(rows.map(({ kind }) => kind))].sort().flatMap((kind) =>
    [false, true].map((arrays) => ({
      title: `${kind}${arrays ? ', arrays' : ''}`,
      of: sorted.filter((row) => row.kind === kind && row.arrays === arrays),
    })),
  );
  const inAll = [
    { title: 'all', of: inHeap(sorted) },
    { title: 'all, arrays', of: sorted.filter((row) => row.arrays) },
  ];
  for (const { title, of } of [...groups, ...inAll]) {
    if (of.length === 0) continue;
    const below = (limit) => of.filter(({ ratio }) => ratio < limit).length;
    const cells = [
      [String(of.length), 6],
      [of[0].ratio.toFixed(2), 8],
      [of[of.length >> 1].ratio.toFixed(2), 8],
      [String(below(lost)), 12],
      [String(below(1)), 10],
    ];
    console.log(title.padEnd(28) + cells.map(([text, wide]) => text.padStart(wide)).join(''));
  }
}

function judge(rows) {
  const ratiosOf = (of) => of.map(({ ratio }) => ratio).sort((a, b) => a - b);
  const [worst] = ratiosOf(rows);
  const heap = ratiosOf(inHeap(rows)),
    median = heap[heap.length >> 1];
  const goals = [
    ['the worst ratio', worst, lost],
    ['the median in the heap', median, leastMedian],
  ];
  console.log('');
  for (const [what, is, atLeast] of goals) {
    console.log(
      `${what} is ${is.toFixed(2)}; target: at least ${atLeast}: ` +
        (is >= atLeast ? 'reached' : 'MISSED'),
    );
  }
}
