// node run-race.mjs: times each operation of the package that is installed next to this file, and
// prints the best milliseconds of each as JSON. So another runtime can be compared with Node.
import { createGemm, quantizeNBits } from 'wgemm';

const [n, k] = [512, 512];
const least = 40; // milliseconds per case, so that the engine has optimized its code
const wg = await createGemm();

const floats = (rows, columns) => ({
  data: Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(i)),
  shape: [rows, columns],
});
const bytes = (rows, columns) => ({
  data: Int8Array.from({ length: rows * columns }, (_, i) => (i * 37) % 256),
  shape: [rows, columns],
});
const b = floats(k, n);
const codes = bytes(k, n);
const scales = { aScale: 0.1, bScale: 0.1 };
const packed = Object.fromEntries(
  Object.entries({ gemm: b, matmul: b, qgemm: codes, matmulNBits: quantizeNBits(b) }).map(
    ([op, weights]) => [op, wg.pack(weights, { op })],
  ),
);

/** Name -> a call on rows of floats or bytes. */
const calls = {
  gemm: (x) => wg.gemm(x, b),
  'gemm, packed': (x) => wg.gemm(x, packed.gemm),
  matmul: (x) => wg.matmul(x, packed.matmul),
  qgemm: (_, a) => wg.qgemm({ a, b: packed.qgemm, ...scales }),
  matmulInteger: (_, a) => wg.matmulInteger(a, codes),
  qlinearMatmul: (_, a) =>
    wg.qlinearMatmul({ a, b: codes, yScale: 10, yZeroPoint: Int8Array.of(0), ...scales }),
  dynamicQuantizeMatmul: (x) => wg.dynamicQuantizeMatmul(x, codes, { bScale: 0.1 }),
  matmulIntegerToFloat: (_, a) => wg.matmulIntegerToFloat(a, codes, scales),
  matmulNBits: (x) => wg.matmulNBits(x, packed.matmulNBits),
  'matmulNBits, level 4': (x) => wg.matmulNBits(x, packed.matmulNBits, { accuracyLevel: 4 }),
};

const times = {};
for (const [name, call] of Object.entries(calls)) {
  for (const m of [1, 64]) {
    const operands = [floats(m, k), bytes(m, k)];
    let best = Infinity;
    const start = performance.now();
    for (let runs = 0; runs < 10 || performance.now() - start < least; ++runs) {
      const before = performance.now();
      call(...operands);
      best = Math.min(best, performance.now() - before);
    }
    times[`${name}, ${m === 1 ? '1 row' : `${m} rows`}`] = best;
  }
}
wg.dispose();
console.log(JSON.stringify(times));
