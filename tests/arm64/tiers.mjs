// Repeats qgemm with packed weights of changing sizes until the engine has compiled every function
// by its last tier, and checks every result. A relaxed instruction may return another result once
// its function is compiled again: an error may show only after thousands of calls, and rarely.
//   node tiers.mjs least CALLS  every element of A and B is the least value of int8
//   node tiers.mjs ends CALLS   A, B and zero points are at any end of any 8-bit type, or B has
//                               several values
import { createGemm } from 'wgemm';
import { Random } from '../js/support/random.ts';

const [kind, number] = process.argv.slice(2);
const calls = Number(number);
const largest = { m: 12, n: 48, k: 80 };
const shown = 5; // wrong calls told in full

const types = {
  least: [{ dtype: 'int8', array: Int8Array, ends: [-128], zeroPoints: [0] }],
  ends: [
    { dtype: 'int8', array: Int8Array, ends: [-128, 127], zeroPoints: [-128, 0, 127] },
    { dtype: 'uint8', array: Uint8Array, ends: [0, 255], zeroPoints: [0, 128, 255] },
  ],
}[kind];

const random = new Random(24);
const wg = await createGemm({ threads: 1 });

/** Each A is a section of one of these arrays, which have one value. */
const fills = types.flatMap((type) =>
  type.ends.map((value) => {
    const data = new type.array(largest.m * largest.k).fill(value);
    return { ...type, value, data };
  }),
);

/** The values of B: one value, both ends of its type, or any value. */
const contents = {
  least: [(ends) => ends],
  ends: [([low]) => [low], ([, high]) => [high], (ends) => ends, () => undefined],
}[kind];

function makeWeights() {
  const { dtype, array, ends, zeroPoints } = random.pick(types);
  const [k, n] = [random.between(1, largest.k), random.between(1, largest.n)];
  const values = random.pick(contents)(ends);
  const data = random.fill(new array(k * n));
  if (values) data.forEach((_, i) => (data[i] = random.pick(values)));
  const sums = new Float64Array(n); // of each column
  data.forEach((value, i) => (sums[i % n] += value));
  const packed = wg.pack({ data, shape: [k, n] }, { op: 'qgemm' });
  const what = `packed ${dtype} [${k}, ${n}] of ${values?.join(' and ') ?? 'any value'}`;
  return { k, n, sums, zeroPoints, packed, what };
}

/** More than the calls that an instance remembers, so that most calls are planned again. */
const weights = Array.from({ length: 40 }, makeWeights);

let wrong = 0;
for (let call = 1; call <= calls; ++call) {
  const a = random.pick(fills);
  const { k, n, sums, zeroPoints, packed, what } = random.pick(weights);
  const m = random.between(1, largest.m);
  const [aZeroPoint, bZeroPoint] = [random.pick(a.zeroPoints), random.pick(zeroPoints)];
  const { data } = wg.qgemm({
    a: { data: a.data.subarray(0, m * k), shape: [m, k] },
    aScale: 1,
    aZeroPoint,
    b: packed,
    bScale: 1,
    bZeroPoint,
  });
  // float32 represents these exactly.
  const expected = Array.from(sums, (sum) => (a.value - aZeroPoint) * (sum - k * bZeroPoint));
  const at = data.findIndex((value, i) => value !== expected[i % n]);
  if (at < 0 && data.length === m * n) continue;
  if (++wrong > shown) continue;
  console.error(
    `call ${call}: ${a.dtype} [${m}, ${k}] of ${a.value} with zero point ${aZeroPoint}, ` +
      `by ${what} with zero point ${bZeroPoint}: ` +
      `Y[${Math.floor(at / n)}, ${at % n}] is ${data[at]}; it must be ${expected[at % n]}`,
  );
}
if (wrong > 0) {
  console.error(`${wrong} of ${calls} calls were wrong (${wg.info.build})`);
  process.exitCode = 1;
} else {
  console.log(`${calls} calls, ${wg.info.build}`);
}
