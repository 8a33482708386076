/** The limit that the benchmark states: tests/bench/limit.cc, as it was compiled and linked. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { codeOf, count, simd } from '../support/wasm-code.js';

const steps = {
  simd128: {
    float32: simd(0xe6),
    float64: simd(0xf2),
    int32: simd(0xb5),
    int64: simd(0xd5),
    int8: simd(0xba),
  },
  relaxed: {
    float32: simd(0x105),
    float64: simd(0x107),
    int32: simd(0xb5),
    int64: simd(0xd5),
    int8: simd(0xba),
    dot: simd(0x113),
    dot_7bit: simd(0x112),
  },
};
const cases = Object.entries(steps).flatMap(([build, types]) =>
  Object.entries(types).map(([type, step]) => [build, type, step] as const),
);

describe('the limit', () => {
  it.each(cases)('in %s runs as many steps of %s as it counts', async (build, type, step) => {
    const file = fileURLToPath(
      new URL(`../../../build/wasm-${build}/wgemm_bench_kernels`, import.meta.url),
    );
    const glue = await readFile(`${file}.mjs`, 'utf8');
    const [, exported] = new RegExp(`_limit_${type}"\\]=wasmExports\\["(\\w+)"\\]`).exec(glue)!;
    const code = codeOf(await readFile(`${file}.wasm`)).exported.get(exported!)!;
    // Two loops, of thirteen chains and of twenty. The compiler may unroll either.
    const found = count(step, code);
    const unrolled = [1, 2, 4, 8];
    const allowed = unrolled.flatMap((few) => unrolled.map((many) => 13 * few + 20 * many));
    expect(allowed).toContain(found);
  });
});
