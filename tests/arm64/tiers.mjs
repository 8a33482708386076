// Repeats qgemm with packed weights of changing sizes until the engine has compiled every function
// by its last tier, and checks every result. A relaxed instruction may give another result once its
// function is compiled again: an error may only show after thousands of calls, and in few of them.
//   node tiers.mjs least CALLS  A and B hold the least value of int8 alone
//   node tiers.mjs ends CALLS   A, B and zero points are at any end of any 8-bit type
import { createGemm } from 'wgemm';
import { Random } from '../js/random.ts';

const [kind, number] = process.argv.slice(2);
const calls = Number(number);
const largest = { m: 12, n: 48, k: 80 };
const shown = 5; // wrong calls told in full

const typesOf = {
  least: [{ dtype: 'int8', array: Int8Array, ends: [-128] }],
  ends: [
    { dtype: 'int8', array: Int8Array, ends: [-128, 127] },
    { dtype: 'uint8', array: Uint8Array, ends: [0, 255] },
  ],
}[kind];

/** Arrays of one value each. */
const fills = typesOf.flatMap(({ dtype, array, ends }) =>
  ends.map((value) => ({
    dtype,
    value,
    zeroPoints: kind === 'least' ? [0] : [0, ...ends],
    data: new array(Math.max(largest.m, largest.n) * largest.k).fill(value),
  })),
);

const random = new Random(24);
const wg = await createGemm({ threads: 1 });

/** More weights than plans are kept, so that most calls make a plan anew. */
const weights = Array.from({ length: 32 }, () => {
  const [k, n] = [random.between(1, largest.k), random.between(1, largest.n)];
  const fill = random.pick(fills);
  const b = { data: fill.data.subarray(0, k * n), shape: [k, n] };
  return { ...fill, k, n, packed: wg.pack(b, { op: 'qgemm' }) };
});

let wrong = 0;
for (let call = 1; call <= calls; ++call) {
  const a = random.pick(fills);
  const b = random.pick(weights);
  const { k, n } = b;
  const m = random.between(1, largest.m);
  const [aZeroPoint, bZeroPoint] = [random.pick(a.zeroPoints), random.pick(b.zeroPoints)];
  const { data } = wg.qgemm({
    a: { data: a.data.subarray(0, m * k), shape: [m, k] },
    aScale: 1,
    aZeroPoint,
    b: b.packed,
    bScale: 1,
    bZeroPoint,
  });
  const expected = k * (a.value - aZeroPoint) * (b.value - bZeroPoint) + 0; // float32 holds it
  const at = data.findIndex((value) => value !== expected);
  if (at < 0 && data.length === m * n) continue;
  if (++wrong > shown) continue;
  console.error(
    `call ${call}: ${a.dtype} [${m}, ${k}] of ${a.value} with zero point ${aZeroPoint}, ` +
      `by packed ${b.dtype} [${k}, ${n}] of ${b.value} with zero point ${bZeroPoint}: ` +
      `Y[${Math.floor(at / n)}, ${at % n}] is ${data[at]}; it must be ${expected}`,
  );
}
if (wrong > 0) {
  console.error(`${wrong} of ${calls} calls were wrong (${wg.info.build})`);
  process.exitCode = 1;
} else {
  console.log(`${calls} calls, ${wg.info.build}`);
}
