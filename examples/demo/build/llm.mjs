// The tiny language model of the demo, as a file made at build time. `virtual:llm` exports its
// address.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { seededRandom } from '../../random.mjs';
import { encode } from '../../tiny-llm/alphabet.mjs';
import { learn } from '../../tiny-llm/learn.mjs';
import { createModel } from '../../tiny-llm/model.mjs';
import { readText } from '../../tiny-llm/text.mjs';
import { examples, keptFolder } from './kept.mjs';
import { sizes, writeModel } from './llm-file.mjs';

const name = 'virtual:llm';
const seed = 1;
// A short training is enough to test the page.
const training = { steps: process.env.DEMO_SHORT ? 600 : 3000, batch: 4 };

/** The bytes of a model that learned the prose of this repository. */
async function trainModel(text) {
  const { createGemm } = await import('wgemm');
  const wg = await createGemm({ determinism: 'strict' }); // the same file on every machine
  try {
    const random = seededRandom(seed);
    const model = createModel(sizes, random);
    const steps = learn(wg, model, encode(text), { ...training, random });
    while (!steps.next().done);
    return writeModel(model);
  } finally {
    wg.dispose();
  }
}

/** Everything that the file is made from. */
function inputsKey(text) {
  const wgemm = createRequire(import.meta.url).resolve('wgemm');
  const hash = createHash('sha256').update(text).update(String(training.steps));
  for (const file of [
    import.meta.filename,
    join(import.meta.dirname, 'llm-file.mjs'),
    ...['alphabet', 'learn', 'model', 'rows', 'train'].map((name) =>
      join(examples, 'tiny-llm', `${name}.mjs`),
    ),
    join(examples, 'random.mjs'),
    wgemm,
    join(wgemm, '..', 'wgemm-simd128.wasm'),
  ])
    hash.update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

/** The folder of the file. It is kept between builds, since the training takes a minute. */
function makeFile() {
  const { training: text } = readText();
  return keptFolder('demo-llm', inputsKey(text), async () => ({
    'llm.bin': await trainModel(text),
  }));
}

let made;

export function llm() {
  return {
    name: 'llm',
    resolveId: (id) => (id === name ? `\0${name}` : undefined),
    async load(id) {
      if (id !== `\0${name}`) return undefined;
      const file = join(await (made ??= makeFile()), 'llm.bin').replaceAll('\\', '/');
      return `export { default } from ${JSON.stringify(`${file}?url`)};\n`;
    },
  };
}
