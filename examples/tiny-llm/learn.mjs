// The training of the model, in steps: the caller shows progress between them, or ends it.
import { createTrainer } from './train.mjs';

export const settings = {
  full: { sizes: { size: 128, layers: 3, heads: 4, context: 128 }, steps: 4500, batch: 4 },
  short: { sizes: { size: 64, layers: 2, heads: 4, context: 64 }, steps: 500, batch: 4 },
};

const highestRate = 4e-3;
const warmup = 0.05; // the part of the steps in which the rate rises; then it falls to 0

/**
 * Trains a model on tokens, and yields after each step: its number from 1 on, and a running mean
 * of the loss. Each step learns from `batch` texts at random places.
 */
export function* learn(wg, model, tokens, { steps, batch, random }) {
  const { context } = model.sizes;
  const trainer = createTrainer(wg, model, { batch });
  const [inputs, targets] = [new Uint8Array(batch * context), new Uint8Array(batch * context)];
  let mean;
  try {
    for (let step = 1; step <= steps; ++step) {
      for (let i = 0; i < batch; ++i) {
        const start = Math.floor(random() * (tokens.length - context));
        inputs.set(tokens.subarray(start, start + context), i * context);
        targets.set(tokens.subarray(start + 1, start + context + 1), i * context);
      }
      const part = step / steps;
      const loss = trainer.step(inputs, targets, highestRate * Math.min(part / warmup, 1 - part));
      mean = step === 1 ? loss : 0.98 * mean + 0.02 * loss;
      yield { step, loss: mean };
    }
  } finally {
    trainer.finish();
  }
}
