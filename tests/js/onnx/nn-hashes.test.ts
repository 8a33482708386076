/** Every operator of src/nn/ has the same strict bits in every build, and natively. */
import { expect, it } from 'vitest';
import { createWithGlue } from '../support/glue.js';
import { hasThreads, threadCounts } from '../support/fixed-problems.js';
import { wrongRows } from '../support/nn-hashes.js';

it.each(threadCounts.filter((count) => count === 1 || hasThreads))(
  'operators have the stored bits; threads: %i',
  async (threads) => {
    for (const simd of ['simd128', 'auto'] as const) {
      const { wg, glue } = await createWithGlue({ simd, threads, determinism: 'strict' });
      expect(wrongRows(glue), wg.info.build).toEqual([]);
      wg.dispose();
    }
  },
);
