// npm run bench -- --random: random products next to the fastest peer.
//
// M, N and K are log-uniform from 1 to 4096, with at most `mostWork` multiply-adds. The same seed
// gives the same shapes. Every third shape is narrow. Each shape is measured twice: on operands in
// the memory of each library, and on plain arrays, of which each call makes tensors and from which
// it reads the result.
import { sizeOf } from './cases.mjs';
import { contestantsOf } from './contestants.mjs';
import { measure } from './measure.mjs';
import { clockTick } from './turns.mjs';

const largest = 4096;
const narrow = 8; // the largest N or M of every third shape
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

/**
 * Tells the row of each shape, twice: in the memory of each library, and on plain arrays.
 *
 * @param settings `count`, `seed`; `filter`: text that the name of a shape must contain
 */
export async function raceShapes({ count, seed, filter }, library, tell) {
  // The clock of a page is coarse.
  const first = { ...look, sampleMs: Math.max(look.sampleMs, 100 * clockTick()) };
  for (const shape of shapesOf(count, seed).filter(({ name }) => name.includes(filter)))
    for (const arrays of [false, true])
      await tell('row', await raceOne({ ...shape, arrays }, library, [first, {}]));
}

function shapesOf(count, seed) {
  const random = randomNumbers(seed);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const size = () => Math.round(Math.exp(random() * Math.log(largest)));
  return Array.from({ length: count }, (_, i) => {
    const type = pick(types);
    const short = i % 3 === 2 ? pick(['m', 'n']) : '';
    let shape;
    do {
      shape = { m: size(), n: size(), k: size() };
      if (short) shape[short] = 1 + Math.floor(random() * narrow);
    } while (shape.m * shape.n * shape.k > mostWork);
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
async function raceOne(shape, library, races) {
  try {
    return await raceWith(shape, library, races);
  } catch (error) {
    if (!shape.dtype?.includes('int') || !error.message.includes('numpy-ts disagree')) throw error;
    const peers = shape.peers.filter((name) => name !== 'numpy-ts');
    return raceWith({ ...shape, peers }, library, races);
  }
}

async function raceWith(shape, library, races) {
  const { name, kind, arrays, packed } = shape;
  const problem = { ...shape, own: [{ packed }] };
  let row;
  for (const turns of races) {
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
