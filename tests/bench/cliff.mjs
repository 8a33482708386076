// Finds sizes at which speed drops: one size grows while the others stay.
//   M or N from 1 to 64, the others 1024: the time, next to that time for the next multiple of the
//   tile
//   K from 256 to 65536, the others 64: the rate, the slowest next to the fastest
import { randomArray } from './data.mjs';
import { race } from './turns.mjs';

const most = 1.15;
const largest = 64;
const depths = [256, 512, 1000, 1024, 2048, 4096, 5000, 8192, 16384, 32768, 40001, 65536];

// All sizes take a turn in each round, so that neighbours are timed at nearly the same time. The
// best of many rounds counts.
const turns = {
  warmUpMs: 20,
  warmUpCalls: 3,
  sampleMs: 1,
  raceMs: 8000,
  minRounds: 25,
  slow: Infinity,
};
const again = { ...turns, raceMs: 1000 };

/** @returns { contestants: with their times, goals } */
export async function runCliff(cliff, wg) {
  const { axis } = cliff;
  const heap = new Map();
  const product = (size) =>
    productOn(wg, cliff, { name: `${axis} = ${size}`, ...sizesAt(axis, size) }, heap);
  const tile = axis === 'K' ? 1 : product(largest).plan().tile[axis === 'M' ? 0 : 1];
  const sizes =
    axis === 'K'
      ? depths
      : Array.from({ length: Math.ceil(largest / tile) * tile }, (_, i) => i + 1);
  const entrants = sizes.map((size) => ({ size, ...product(size) }));
  keepBest(entrants, await race(entrants, turns));
  // A size that misses its goal is timed again, next to the size that it is compared with: on a
  // busy machine the best of a few rounds is not yet the best.
  const asked = new Set();
  for (;;) {
    const pair = goalsOf(axis, tile, entrants).find(
      ({ of, than, ratio }) => ratio > most && !asked.has(`${of.name} ${than.name}`),
    );
    if (!pair) break;
    const { of, than } = pair;
    asked.add(`${of.name} ${than.name}`);
    keepBest([of, than], await race([of, than], again));
  }
  heap.forEach((each) => each.dispose());
  return {
    contestants: entrants.map(({ name, kind, operations, best, median }) => ({
      name,
      kind,
      operations,
      best,
      median,
    })),
    goals: goalsOf(axis, tile, entrants)
      .filter(({ ratio }, i) => i === 0 || ratio > most)
      .map(({ of, than, ratio }) => ({ of: of.name, than: than.name, ratio, atMost: most })),
  };
}

function keepBest(entrants, times) {
  entrants.forEach((entrant, i) => {
    if (!(entrant.best < times[i].best)) Object.assign(entrant, times[i]);
  });
}

/** The worst first. */
function goalsOf(axis, tile, entrants) {
  if (axis === 'K') {
    const rate = ({ operations, best }) => operations / best;
    const [slowest, ...others] = entrants.toSorted((a, b) => rate(a) - rate(b));
    const fastest = others.at(-1);
    return [{ of: slowest, than: fastest, ratio: rate(fastest) / rate(slowest) }];
  }
  return entrants
    .filter(({ size }) => size % tile !== 0)
    .map((of) => ({ of, than: entrants[Math.ceil(of.size / tile) * tile - 1] }))
    .map(({ of, than }) => ({ of, than, ratio: of.best / than.best }))
    .sort((a, b) => b.ratio - a.ratio);
}

function sizesAt(axis, size) {
  if (axis === 'K') return { m: 64, n: 64, k: size };
  return axis === 'M' ? { m: size, n: 1024, k: 1024 } : { m: 1024, n: size, k: 1024 };
}

/** Operands that two sizes share are in the heap once. */
function productOn(
  wg,
  { operation, dtype, typeOfA = dtype, typeOfB = dtype, packed },
  { name, m, n, k },
  heap,
) {
  const kept = (key, make) => {
    if (!heap.has(key)) heap.set(key, make());
    return heap.get(key);
  };
  const tensor = (role, type, shape) =>
    kept(`${role} ${shape}`, () => {
      const made = wg.alloc(type, shape);
      made.data.set(randomArray(type, shape[0] * shape[1], 1));
      return made;
    });
  const [a, plain] = [tensor('A', typeOfA, [m, k]), tensor('B', typeOfB, [k, n])];
  const b = packed ? kept(`packed ${[k, n]}`, () => wg.pack(plain, { op: operation })) : plain;
  const out = tensor('Y', operation === 'qgemm' ? 'float32' : dtype, [m, n]);
  const args =
    operation === 'qgemm'
      ? [{ a, aScale: 0.02, aZeroPoint: 133, b, bScale: 0.005 }, { out }]
      : [a, b, null, { out }];
  return {
    name,
    kind: 'own',
    operations: 2 * m * n * k,
    plan: () => wg.explain(operation, ...args),
    run(times) {
      for (let i = 0; i < times; ++i) wg[operation](...args);
    },
  };
}
