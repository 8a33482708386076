/**
 * Decoders with 4-bit weights, as the model builder of ONNX Runtime GenAI writes them. The
 * benchmark of models has their graph.
 */
import { decoder, keptOf, smallDecoder, tokenFeeds } from '../../../bench/models/decoder.mjs';
import { tensor } from '../onnx-nodes.js';
import type { Exported } from './exported.js';

/** Options of the builder, of the graph and of the comparison. */
const forms = {
  Llama: { accuracyLevel: 0 },
  // The default of the builder: the runtime rounds the rows of products to 8 bits.
  'Llama, accuracy level 4': { accuracyLevel: 4 },
  'SmolLM2, with separate products and zero points': {
    accuracyLevel: 0,
    isPacked: false,
    isSymmetric: false,
  },
  'Llama, with RotaryEmbedding': { accuracyLevel: 0, isPacked: false, rotates: false },
  Qwen2: { accuracyLevel: 0, hasBias: true },
  Qwen3: { accuracyLevel: 0, isPacked: false, hasNorms: true, rotates: false },
};

export const genai = Object.entries(forms).map(([name, form]): Exported => {
  const options = { ...smallDecoder, ...form, vocabulary: 50 };
  const bytes = decoder(options);
  const { layers, keyHeads, head } = options;
  return {
    name: `genai: ${name}`,
    bytes,
    theirs: bytes,
    bound: form.accuracyLevel === 0 ? 1e-5 : 0.02,
    kept: keptOf(options),
    runs: [
      { s: 5, p: 0 },
      { s: 1, p: 5 },
      { s: 3, p: 8 },
    ],
    feeds({ s = 1, p = 0 }, random) {
      const ids = Array.from({ length: s }, () => random.between(0, 49));
      const shape = [1, keyHeads, p, head];
      const past = Array.from({ length: layers }, (_, i) =>
        ['key', 'value'].map((part) => {
          const values = Array.from({ length: keyHeads * p * head }, () => random.next() * 2 - 1);
          return [`past_key_values.${i}.${part}`, tensor('float32', shape, values)] as const;
        }),
      ).flat();
      return { ...tokenFeeds(ids, p, options), ...Object.fromEntries(past) };
    },
  };
});
