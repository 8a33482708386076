/** With `determinism: 'strict'`, a whole model has the same bits in every engine and build. */
import { expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { miniLm, textsOf } from '../../bench/models/minilm.mjs';
import { hashOf, hasThreads, threadCounts } from '../support/fixed-problems.js';

/** The first half of the hash of the outputs for texts of 31 tokens, and then for two texts of 7. */
const hashes = {
  float32: '2c35ac04d33be5f1168781d79f5036d6',
  int8: '9c18f44154a3634e614a06bc9d3ee774',
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
      for (const text of [{ tokens: 31 }, { batch: 2, tokens: 7 }, { tokens: 31 }]) {
        const { last_hidden_state: y } = await model.run(textsOf(text));
        const { buffer, byteOffset, byteLength } = y?.data as Float32Array;
        results.push(new Uint8Array(buffer, byteOffset, byteLength));
      }
      expect(results[2], 'the same run again').toEqual(results[0]);
      expect(await hashOf(results.slice(0, 2)), wg.info.build).toMatch(hashes[variant]);
      wg.dispose();
    }
  },
);
