/** Decoders as the model builder of ONNX Runtime GenAI writes them, against ONNX Runtime Web. */
import { describe, expect, it } from 'vitest';
import { loadModel, type Model } from 'wgemm/onnx';
import { decoder, keptOf, smallDecoder, tokenFeeds } from '../../bench/models/decoder.mjs';
import { ort, wg } from '../support/with-ort.js';

/** The bounds are relative to the largest logit. Level 4 quantizes what the products take. */
const forms = {
  'one product for queries, keys and values': {},
  'with a bias': { hasBias: true },
  'three products': { isPacked: false },
  'RotaryEmbedding on its own': { isPacked: false, rotates: false },
  'heads that are normalized': { isPacked: false, hasNorms: true },
  'zero points': { isSymmetric: false },
  'quantized activations': { accuracyLevel: 4, bound: 0.05 },
};

interface Result {
  readonly data: Float32Array;
}
type Runner = (ids: readonly number[], count: number) => Promise<Float32Array>;

const empty = {
  dtype: 'float32',
  shape: [1, smallDecoder.keyHeads, 0, smallDecoder.head],
  data: new Float32Array(),
} as const;

async function peerOf(bytes: Uint8Array, form: object): Promise<Runner> {
  const session = await ort.createSession(bytes);
  const links = Object.entries(keptOf(smallDecoder));
  let kept = Object.fromEntries(links.map(([, input]) => [input, ort.tensor(empty)]));
  return async (ids, count) => {
    const given = Object.entries(tokenFeeds(ids, count, form));
    const feeds = Object.fromEntries(given.map(([name, value]) => [name, ort.tensor(value)]));
    const results = (await session.run({ ...feeds, ...kept })) as unknown as Record<string, Result>;
    kept = Object.fromEntries(links.map(([output, input]) => [input, results[output] as never]));
    return results.logits!.data;
  };
}

describe.each(Object.entries(forms))('a decoder, %s', (_, { bound = 1e-5, ...form }: Form) => {
  const settings = { ...smallDecoder, accuracyLevel: 0, ...form };

  it('has the logits of ONNX Runtime Web, token by token', async () => {
    const bytes = decoder(settings);
    const before = wg.memory().inUse;
    const model: Model = await loadModel(bytes, { wg });
    const state = await model.state(keptOf(smallDecoder));
    const peer = await peerOf(bytes, form);
    let ids = [3, 17, 42, 5, 9];
    let worst = 0;
    for (let count = 0; count < 40; count += ids.length) {
      const { logits } = await model.run(tokenFeeds(ids, count, form), { state });
      const theirs = await peer(ids, count);
      expect(logits!.shape).toEqual([1, ids.length, smallDecoder.vocabulary]);
      const most = theirs.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      (logits!.data as Float32Array).forEach((value, i) => {
        worst = Math.max(worst, Math.abs(value - theirs[i]!) / most);
      });
      const last = theirs.subarray(-smallDecoder.vocabulary);
      ids = [last.indexOf(Math.max(...last))];
    }
    expect(worst).toBeLessThan(bound);
    model.dispose();
    expect(wg.memory().inUse).toBe(before);
  });

  it('is explained with all tokens seen', async () => {
    const model = await loadModel(decoder(settings), { wg });
    const feeds = Object.entries(tokenFeeds([1], 20, form));
    const shapes = Object.fromEntries(feeds.map(([name, { shape }]) => [name, shape]));
    for (const input of Object.values(keptOf(smallDecoder))) shapes[input] = [1, 2, 20, 16];
    const products = await model.explain(shapes);
    expect(products.every(({ op }) => op === 'com.microsoft.MatMulNBits')).toBe(true);
    expect(products).toHaveLength('isPacked' in form ? 15 : 11);
    const steps = await model.explain(shapes, { steps: true });
    expect(steps.filter(({ where }) => where === 'JavaScript')).toEqual([]);
    model.dispose();
  });
});

type Form = (typeof forms)[keyof typeof forms] & { readonly bound?: number };
