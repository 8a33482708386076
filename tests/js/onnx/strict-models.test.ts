/** With `determinism: 'strict'`, a whole model has the same bits in every engine and build. */
import { expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { miniLm, textsOf } from '../../bench/models/minilm.mjs';
import { hashOf, hasThreads, threadCounts } from '../support/fixed-problems.js';

/** Of the outputs for texts of 33 tokens, and then for two texts of 7. */
const hashes = {
  float32: '7ded5a869e13927e15daf0dc66eb75fb40802f8f721526bfd4a984397819fa6d',
  int8: 'bb4eb5a2dbcdf2a3ff9a629be20b90d42ac67a41730f131a1c35d2eb5d5759a1',
};

const cases = (['float32', 'int8'] as const).flatMap((variant) =>
  threadCounts
    .filter((count) => count === 1 || hasThreads)
    .map((threads) => [variant, threads] as const),
);

it.each(cases)(
  'MiniLM in %s has the same bits everywhere; threads: %i',
  async (variant, threads) => {
    const bytes = miniLm({ variant });
    for (const simd of ['simd128', 'auto'] as const) {
      const wg = await createGemm({ models: true, determinism: 'strict', threads, simd });
      const model = await loadModel(bytes, { wg });
      const results: Uint8Array[] = [];
      for (const text of [{ tokens: 33 }, { batch: 2, tokens: 7 }, { tokens: 33 }]) {
        const { last_hidden_state: y } = await model.run(textsOf(text));
        const { buffer, byteOffset, byteLength } = y?.data as Float32Array;
        results.push(new Uint8Array(buffer, byteOffset, byteLength));
      }
      expect(results[2], 'the same run again').toEqual(results[0]);
      expect(await hashOf(results.slice(0, 2)), wg.info.build).toBe(hashes[variant]);
      wg.dispose();
    }
  },
);
