/** MiniLM in float32 and int8, of the benchmark of models, against ONNX Runtime Web. */
import { describe, expect, it } from 'vitest';
import { loadModel } from 'wgemm/onnx';
import { miniLm, textsOf } from '../../bench/models/minilm.mjs';
import { ort, wg } from '../support/with-ort.js';

/**
 * The bounds are relative to the largest value. In int8, elements of later layers may round to
 * another integer: see tests/bench/models.mjs. In the first layer few do.
 */
const cases = [
  { variant: 'float32', layers: 6, bound: 1e-5 },
  { variant: 'int8', layers: 1, bound: 0.01 },
  { variant: 'int8', layers: 6, bound: 0.05 },
] as const;

interface Result {
  readonly dims: readonly number[];
  readonly data: Float32Array;
}

describe.each(cases)('MiniLM in $variant, layers: $layers', ({ variant, layers, bound }) => {
  it('gives what ONNX Runtime Web gives', async () => {
    const bytes = miniLm({ variant, layers });
    const before = wg.memory().inUse;
    const [model, session] = await Promise.all([
      loadModel(bytes, { wg }),
      ort.createSession(bytes),
    ]);
    for (const text of [
      { tokens: 16 },
      { batch: 2, tokens: 16 }, // the second one is padded
      { tokens: 5 },
    ]) {
      const feeds = textsOf(text);
      const { last_hidden_state: own } = await model.run(feeds);
      const theirs = Object.fromEntries(
        Object.entries(feeds).map(([name, value]) => [name, ort.tensor(value)]),
      );
      const results = (await session.run(theirs)) as unknown as Record<string, Result>;
      const { dims, data } = results.last_hidden_state!;
      expect(own!.shape).toEqual(dims);
      const most = data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      let far = 0;
      (own!.data as Float32Array).forEach((value, i) => {
        far = Math.max(far, Math.abs(value - data[i]!));
      });
      expect(far / most).toBeLessThan(bound);
    }
    model.dispose();
    expect(wg.memory().inUse).toBe(before);
  });
});
