/** The unsigned kernel by relaxed dot products, as it was compiled and linked. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { codeOf, count, simd } from './wasm-code.js';

const dot = simd(0x113); // i32x4.relaxed_dot_i8x16_i7x16_add_s

/**
 * The probe has three. A tile of 4 x 8 has eight accumulators, and a step of the masked one two dot
 * products of each.
 */
const [probe, once, masked] = [3, 8, 16];

// The check tells of the code that runs it. If the compiler moved the check or a loop to another
// function, the engine could replace that alone.
it.each(['relaxed', 'relaxed-mt'])(
  'its check and its two loops are one function of %s',
  async (build) => {
    const file = fileURLToPath(new URL(`../../dist/wgemm-${build}.wasm`, import.meta.url));
    const counts = codeOf(await readFile(file)).functions.map((code) => count(dot, code));
    expect(counts.filter((found) => found === 1 + once + masked)).toHaveLength(1);
    expect(
      counts.filter((found) => found > 0 && ![probe, once, masked].includes(found)),
    ).toHaveLength(1);
  },
);
