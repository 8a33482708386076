/**
 * Decoders as the model builder of ONNX Runtime GenAI and optimum write them, against ONNX Runtime
 * Web.
 */
import { describe, expect, it } from 'vitest';
import { loadModel, type Model } from 'wgemm/onnx';
import { decoder, keptOf, smallDecoder, tokenFeeds } from '../../bench/models/decoder.mjs';
import { writtenDecoder } from '../../bench/models/written-decoder.mjs';
import { ort, wg } from '../support/with-ort.js';

type Options = typeof smallDecoder & { accuracyLevel?: number };
interface Form {
  readonly make?: (options: Options) => Uint8Array;
  /** Relative to the largest logit. Level 4 quantizes what the products take. */
  readonly bound?: number;
  readonly settings?: object;
  /** The number of products by weights. */
  readonly products?: number;
}
const genai = (options: Options) => decoder(options);
const forms: Record<string, Form> = {
  'with one product for queries, keys and values': {},
  'with a bias': { settings: { hasBias: true } },
  'with three products': { settings: { isPacked: false }, products: 15 },
  'with RotaryEmbedding': { settings: { isPacked: false, rotates: false }, products: 15 },
  'with heads that are normalized': {
    settings: { isPacked: false, hasNorms: true },
    products: 15,
  },
  'with zero points': { settings: { isSymmetric: false } },
  'that quantizes activations': { settings: { accuracyLevel: 4 }, bound: 0.05 },
  'written out in nodes': { make: writtenDecoder, settings: { rotates: false }, products: 15 },
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

async function peerOf(bytes: Uint8Array, settings: object): Promise<Runner> {
  const session = await ort.createSession(bytes);
  const links = Object.entries(keptOf(smallDecoder));
  let kept = Object.fromEntries(links.map(([, input]) => [input, ort.tensor(empty)]));
  return async (ids, count) => {
    const given = Object.entries(tokenFeeds(ids, count, settings));
    const feeds = Object.fromEntries(given.map(([name, value]) => [name, ort.tensor(value)]));
    const results = (await session.run({ ...feeds, ...kept })) as unknown as Record<string, Result>;
    kept = Object.fromEntries(links.map(([output, input]) => [input, results[output] as never]));
    return results.logits!.data;
  };
}

describe.each(Object.entries(forms))('a decoder %s', (_, given) => {
  const { make = genai, bound = 1e-5, settings = {}, products: count = 11 } = given;
  const bytes = make({ ...smallDecoder, accuracyLevel: 0, ...settings });

  it('has the logits of ONNX Runtime Web, token by token', async () => {
    const before = wg.memory().inUse;
    const model: Model = await loadModel(bytes, { wg });
    const state = await model.state(keptOf(smallDecoder));
    const peer = await peerOf(bytes, settings);
    let ids = [3, 17, 42, 5, 9];
    let worst = 0;
    for (let past = 0; past < 40;) {
      const { logits } = await model.run(tokenFeeds(ids, past, settings), { state });
      const theirs = await peer(ids, past);
      expect(logits!.shape).toEqual([1, ids.length, smallDecoder.vocabulary]);
      const most = theirs.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      (logits!.data as Float32Array).forEach((value, i) => {
        worst = Math.max(worst, Math.abs(value - theirs[i]!) / most);
      });
      past += ids.length;
      const last = theirs.subarray(-smallDecoder.vocabulary);
      ids = [last.indexOf(Math.max(...last))];
    }
    expect(worst).toBeLessThan(bound);
    model.dispose();
    expect(wg.memory().inUse).toBe(before);
  });

  it('is explained with all tokens seen', async () => {
    const model = await loadModel(bytes, { wg });
    const feeds = Object.entries(tokenFeeds([1], 20, settings));
    const shapes = Object.fromEntries(feeds.map(([name, { shape }]) => [name, shape]));
    for (const input of Object.values(keptOf(smallDecoder))) shapes[input] = [1, 2, 20, 16];
    const products = await model.explain(shapes);
    const weighted = products.filter(({ op }) => op === 'com.microsoft.MatMulNBits');
    expect(weighted).toHaveLength(count);
    const steps = await model.explain(shapes, { steps: true });
    expect(steps.filter(({ where }) => where === 'JavaScript')).toEqual([]);
    model.dispose();
  });
});
