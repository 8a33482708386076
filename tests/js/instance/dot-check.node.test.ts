/** The unsigned kernels by relaxed dot products, as they were compiled and linked. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { codeOf, count, simd } from '../support/wasm-code.js';

const dot = simd(0x113); // i32x4.relaxed_dot_i8x16_i7x16_add_s

/**
 * The probe has three. A tile of 4 x 8 has eight accumulators, and a step of the masked one two dot
 * products of each. Signed kernels, which need no check, have tiles of 4 x 16 and of 4 x 8. The
 * GEMV kernel has tiles of 1 x 32 and of 1 x 8, whose loops mask or do not. The unsigned kernel for
 * joined vectors has a tile of 4 x 16.
 */
const [probe, once, masked, gemv, joined] = [3, 8, 16, 8 + 2, 16];
const signed = [2 * once + once, 2 * masked + masked];

// The check tells of the code that runs it. If the compiler moved the check or a loop to another
// function, the engine could replace that alone.
it.each(['relaxed', 'relaxed-mt'])(
  'the check and the two loops of each are one function of %s',
  async (build) => {
    const file = fileURLToPath(new URL(`../../../dist/wgemm-${build}.wasm`, import.meta.url));
    const counts = codeOf(await readFile(file)).functions.map((code) => count(dot, code));
    const alone = [probe, once, masked, ...signed];
    expect(
      counts.filter((found) => found > 0 && !alone.includes(found)).sort((x, y) => x - y),
    ).toEqual([1 + gemv, 1 + joined, 1 + once + masked]);
  },
);
