/** Changed files are read, or give an error that says what is wrong. */
import { expect, it } from 'vitest';
import { createGemm, GemmError } from 'wgemm';
import * as weights from 'wgemm/weights';
import { corpus } from '../../fuzz/weights-files.mjs';
import { expectClear, tryFile } from '../../fuzz/weights-mutate.mjs';

it('500 changed files', async () => {
  const wg = await createGemm();
  const reached = { read: 0, loaded: 0, converted: 0, packed: 0 };
  let refused = 0;
  for (let seed = 1; seed <= 500; ++seed) {
    try {
      await tryFile(seed, { ...weights, wg, GemmError }, reached);
    } catch (error) {
      if (!(error instanceof GemmError)) throw new Error(`seed ${seed}`, { cause: error });
      expectClear(error);
      ++refused;
    }
  }
  expect(reached.read + refused).toBe(500);
  expect(Math.min(reached.read, refused)).toBeGreaterThan(100);
  expect(reached.converted).toBeGreaterThan(reached.read);
  expect(reached.packed).toBeGreaterThan(100);
  expect(corpus.length).toBe(5);
  wg.dispose();
});
