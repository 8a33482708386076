// The digits and the trained network of the demo, as files made at build time. `virtual:digits`
// exports their addresses.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { readDigits } from '../../digits/data.mjs';
import { pixels } from '../../digits/images.mjs';
import { learn, sizes } from '../../digits/learn.mjs';
import { createLayers } from '../../digits/network.mjs';
import { seededRandom } from '../../random.mjs';
import { counts, writeDigits, writeNetwork } from './digit-files.mjs';
import { examples, keptFolder, root } from './kept.mjs';

const name = 'virtual:digits';

/** The digits held back, then those to learn from: the page first needs the former. */
function chooseDigits({ training, test }) {
  const pick = (of, count) => ({
    images: of.images.subarray(0, count * pixels),
    labels: of.labels.subarray(0, count),
  });
  const parts = [pick(test, counts.test), pick(training, counts.training)];
  const images = new Float32Array((counts.test + counts.training) * pixels);
  const labels = new Uint8Array(images.length / pixels);
  parts.forEach((part, i) => {
    images.set(part.images, i * counts.test * pixels);
    labels.set(part.labels, i * counts.test);
  });
  return { images, labels };
}

/** The bytes of the network of `npm run digits`: all digits, its seed, epochs and batches. */
async function trainNetwork({ training }) {
  const { createGemm } = await import('wgemm');
  const wg = await createGemm({ determinism: 'strict' }); // the same file on every machine
  try {
    const random = seededRandom(2);
    const layers = createLayers(wg, sizes, random);
    const [{ weights }] = layers;
    const before = weights.data.slice();
    const steps = learn(wg, layers, training, { epochs: 20, batch: 100, random });
    while (!steps.next().done);
    // Pixels that no digit has inked kept their random weights. Zeros disturb less, and need fewer
    // bytes.
    const outputs = sizes[1];
    for (let start = 0; start < weights.size; start += outputs) {
      const row = weights.data.subarray(start, start + outputs);
      if (row.every((weight, i) => weight === before[start + i])) row.fill(0);
    }
    return writeNetwork(layers);
  } finally {
    wg.dispose();
  }
}

/** Everything that the files are made from. */
function inputsKey() {
  const require = createRequire(join(root, 'package.json'));
  const wgemm = createRequire(import.meta.url).resolve('wgemm');
  const hash = createHash('sha256');
  for (const file of [
    import.meta.filename,
    join(import.meta.dirname, 'digit-files.mjs'),
    ...['data', 'images', 'learn', 'network'].map((name) =>
      join(examples, 'digits', `${name}.mjs`),
    ),
    join(examples, 'random.mjs'),
    require.resolve('mnist/package.json'),
    wgemm,
    join(wgemm, '..', 'wgemm-simd128.wasm'),
  ])
    hash.update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

/** The folder of the files. It is kept between builds, since the training takes seconds. */
const makeFiles = () =>
  keptFolder('demo-digits', inputsKey(), async () => {
    const digits = readDigits();
    return {
      'digits.bin': writeDigits(chooseDigits(digits)),
      'network.bin': await trainNetwork(digits),
    };
  });

let made;

export function digits() {
  return {
    name: 'digits',
    resolveId: (id) => (id === name ? `\0${name}` : undefined),
    async load(id) {
      if (id !== `\0${name}`) return undefined;
      const folder = await (made ??= makeFiles());
      const url = (file) => JSON.stringify(`${join(folder, file).replaceAll('\\', '/')}?url`);
      return (
        `export { default as digits } from ${url('digits.bin')};\n` +
        `export { default as network } from ${url('network.bin')};\n`
      );
    },
  };
}
