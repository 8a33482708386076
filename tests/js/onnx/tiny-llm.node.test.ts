/** The example tiny-llm: its gradients, its KV cache, its files. */
import { createGemm, type Gemm, type HeapTensor } from 'wgemm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Random } from '../support/random.js';

const load = (name: string): Promise<unknown> =>
  import(new URL(`../../../examples/tiny-llm/${name}.mjs`, import.meta.url).href);

interface Model {
  sizes: { size: number; layers: number; heads: number; context: number };
  weights: Record<string, Float32Array>;
}
interface Trainer {
  matrices: Record<string, HeapTensor<Float64Array>>;
  gradients: Record<string, HeapTensor<Float64Array>>;
  differentiate(tokens: Uint8Array, targets: Uint8Array): number;
  finish(): void;
}
interface Decoder {
  step(token: number): Float32Array;
  reset(): void;
  dispose(): void;
}

const { createModel, toBytes, fromBytes } = (await load('model')) as {
  createModel: (sizes: Model['sizes'], random: () => number) => Model;
  toBytes: (model: Model) => Uint8Array;
  fromBytes: (bytes: Uint8Array) => Model;
};
const { createTrainer } = (await load('train')) as {
  createTrainer: (wg: Gemm, model: Model, options: { batch: number; dtype?: string }) => Trainer;
};
const { createDecoder, perplexity } = (await load('decoder')) as {
  createDecoder: (wg: Gemm, model: Model, form: string) => Decoder;
  perplexity: (decoder: Decoder, tokens: Uint8Array) => number;
};

const sizes = { size: 32, layers: 2, heads: 2, context: 8 };
const random = new Random(1);
const randomTokens = (length: number) => Uint8Array.from({ length }, () => random.between(0, 95));

/** A model without a matrix of zeros: behind such a matrix, every derivative is 0. */
function randomModel(): Model {
  const model = createModel(sizes, () => random.next());
  for (const weights of Object.values(model.weights))
    for (let i = 0; i < weights.length; ++i) weights[i] = random.next() - 0.5;
  return model;
}

let wg: Gemm;
beforeAll(async () => (wg = await createGemm({ models: true })));
afterAll(() => wg.dispose());

it('gradients equal finite differences, in float64', () => {
  const batch = 2;
  const trainer = createTrainer(wg, randomModel(), { batch, dtype: 'float64' });
  const tokens = randomTokens(batch * sizes.context);
  const targets = randomTokens(batch * sizes.context);
  trainer.differentiate(tokens, targets);
  const gradients = Object.entries(trainer.gradients).map(
    ([name, { data }]) => [name, data.slice()] as const,
  );
  const change = 1e-5;
  for (const [name, gradient] of gradients) {
    const matrix = trainer.matrices[name]!;
    const used = [...gradient.keys()].filter((i) => gradient[i] !== 0);
    expect(used.length).toBeGreaterThan(0);
    for (let sample = 0; sample < 20; ++sample) {
      const at = random.pick(used);
      const lossAt = (weight: number) => {
        matrix.data[at] = weight;
        return trainer.differentiate(tokens, targets);
      };
      const weight = matrix.data[at]!;
      const difference = (lossAt(weight + change) - lossAt(weight - change)) / (2 * change);
      matrix.data[at] = weight;
      expect(Math.abs(difference - gradient[at]!), `${name}[${at}]`).toBeLessThan(1e-7);
    }
  }
  trainer.finish();
});

it('a decoder that keeps keys and values has the loss of the training', () => {
  const model = randomModel();
  const tokens = randomTokens(sizes.context + 1);
  const trainer = createTrainer(wg, model, { batch: 1 });
  const loss = trainer.differentiate(tokens.subarray(0, -1), tokens.subarray(1));
  trainer.finish();
  const decoder = createDecoder(wg, model, 'float32');
  expect(Math.log(perplexity(decoder, tokens))).toBeCloseTo(loss, 5);
  decoder.dispose();
});

it('a decoder goes on when its cache is full', () => {
  const model = randomModel();
  model.sizes = { ...sizes, layers: 1 }; // so the scores depend on one context of tokens only
  const decoder = createDecoder(wg, model, 'float32');
  const tokens = randomTokens(5 * sizes.context);
  const reached = sizes.context + 3; // the oldest token of a context reads three before it
  tokens.forEach((token, i) => {
    decoder.step(token);
    if (i < reached) return;
    decoder.reset();
    for (const earlier of tokens.subarray(i - reached + 1, i)) decoder.step(earlier);
    const expected = decoder.step(token).slice();
    decoder.reset();
    for (const earlier of tokens.subarray(0, i)) decoder.step(earlier);
    decoder.step(token).forEach((score, j) => expect(score).toBeCloseTo(expected[j]!, 4));
  });
  decoder.dispose();
});

it('a model is the same after it was saved', () => {
  const model = randomModel();
  const bytes = toBytes(model);
  expect(fromBytes(bytes)).toEqual(model);
  for (const wrong of [bytes.subarray(0, 8), bytes.subarray(1), bytes.subarray(0, -4)])
    expect(() => fromBytes(wrong)).toThrow('not the bytes of a model');
});
