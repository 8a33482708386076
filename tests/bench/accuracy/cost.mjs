// Measures the cost of strict mode: fast and strict instances take turns.
import { createGemm } from 'wgemm';
import { ownOn } from '../contestants.mjs';
import { duration, lossText } from '../print.mjs';
import { race } from '../turns.mjs';
import { draw } from './data.mjs';

const square = (dtype, size) => ({
  name: `gemm ${dtype}, ${size} x ${size} x ${size}`,
  ...{ operation: 'gemm', dtype, m: size, n: size, k: size },
});

/**
 * Most calls take a millisecond or two. On a busy machine, other programs slow down even the
 * fastest of longer calls.
 */
const cases = [
  square('float32', 1024),
  square('float32', 512),
  square('float32', 128),
  {
    name: 'gemm float32, 1 x 1024 x 1024, B packed',
    ...{ operation: 'gemm', dtype: 'float32', m: 1, n: 1024, k: 1024, packed: true },
  },
  square('float64', 256),
  square('float16', 256),
  square('bfloat16', 256),
  {
    name: 'matmulNBits 4 bits, level 0, 32 x 1024 x 1024',
    ...{ operation: 'matmulNBits', m: 32, n: 1024, k: 1024, bits: 4, blockSize: 32 },
    ...{ packed: true, level: 0 },
  },
  { name: 'attention float32, 12 x 128 x 128 x 64', operation: 'attention' },
];

/** Calls of attention on tensors in the heap. */
function attentionOn(wg) {
  const tensors = [1, 2, 3].map((seed) => {
    const tensor = wg.alloc('float32', [12, 128, 64]);
    tensor.data.set(draw(seed, 'float32', tensor.shape).data);
    return tensor;
  });
  const out = wg.alloc('float32', [12, 128, 64]);
  return {
    run(times) {
      for (let i = 0; i < times; ++i) wg.attention(...tensors, { out });
    },
    dispose: () => [...tensors, out].forEach((each) => each.dispose()),
  };
}

const on = (wg, problem) =>
  problem.operation === 'attention' ? attentionOn(wg) : ownOn(wg, problem, problem);

/**
 * Times each case whose name contains the filter.
 *
 * @returns { name, fast, strict } of each, in milliseconds per call
 */
export async function raceModes({ threads, filter }) {
  const chosen = cases.filter(({ name }) => `cost ${name}`.includes(filter));
  if (chosen.length === 0) return [];
  using fast = await createGemm({ threads, models: true });
  using strict = await createGemm({ threads, models: true, determinism: 'strict' });
  const timed = [];
  for (const problem of chosen) {
    const contestants = [fast, strict].map((wg) => on(wg, problem));
    const times = await race(contestants, { warmUpMs: 300, raceMs: 3000, sampleMs: 1 });
    for (const { dispose } of contestants) dispose();
    const row = { name: problem.name, fast: times[0], strict: times[1] };
    timed.push(row);
    console.log(
      `cost ${row.name}: fast ${duration(row.fast.best)}, strict ${duration(row.strict.best)}: ` +
        `${lossText(row)} of the speed lost`,
    );
  }
  return timed;
}
