// The training of the network, in steps: the caller shows progress between them, or ends it.
import { classes, pixels, shifted, shuffle } from './images.mjs';
import { createTrainer } from './network.mjs';

export const sizes = [pixels, 128, classes]; // numbers of neurons

const usual = {
  momentum: 0.9,
  rateAt: () => 0.05, // of the part of the training that is done, from 0 to 1
};

/**
 * Trains layers on digits, and yields after each batch: the part that is done, the epoch from 1 on,
 * whether it ends, and its mean loss so far. `count` must be a multiple of `batch`.
 */
export function* learn(wg, layers, { images, labels, count }, options) {
  const { epochs, batch, random, momentum, rateAt } = { ...usual, ...options };
  const trainer = createTrainer(wg, layers, { batch, momentum });
  const order = Uint16Array.from({ length: count }, (_, i) => i);
  const batchLabels = new Uint8Array(batch);
  const partAt = (epoch, row) => (epoch - 1 + row / count) / epochs;
  try {
    for (let epoch = 1; epoch <= epochs; ++epoch) {
      shuffle(order, random);
      let lossSum = 0;
      for (let first = 0; first < count; first += batch) {
        const input = trainer.input.data;
        for (let i = 0; i < batch; ++i) {
          const row = order[first + i];
          input.set(shifted(images, row, random), i * pixels);
          batchLabels[i] = labels[row];
        }
        lossSum += trainer.step(batchLabels, rateAt(partAt(epoch, first)));
        const next = first + batch;
        yield {
          part: partAt(epoch, next),
          epoch,
          endsEpoch: next === count,
          loss: lossSum / (next / batch),
        };
      }
    }
  } finally {
    trainer.dispose();
  }
}
