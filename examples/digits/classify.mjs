// Classifies digits with what `npm run digits` learned and saved: run that first, then `node examples/digits/classify.mjs`.
import { createGemm, PackMismatchError } from 'wgemm';
import { accuracy, showSome } from './answers.mjs';
import { readDigits } from './data.mjs';
import { file, loadLayers } from './file.mjs';
import { allocOutputs, classify, forward, multiplyBy } from './network.mjs';

const wg = await createGemm();
try {
  const layers = loadLayers(wg);
  const { test } = readDigits();
  const input = wg.alloc('float32', [test.count, layers[0].weights.shape[0]]);
  input.data.set(test.images);
  const answers = classify(forward(layers, input, allocOutputs(wg, layers, test.count), multiplyBy(wg)));
  console.log(`${layers[0].weights.dtype} weights of ${file}`);
  console.log(`${test.count} digits that it did not learn from: ${accuracy(answers, test)} right\n`);
  showSome(test, answers);
} catch (error) {
  if (error.code === 'ENOENT') console.error(`There is no ${file}: run \`npm run digits\` first.`);
  else if (error instanceof PackMismatchError || error instanceof SyntaxError) {
    console.error(`${file} was changed: run \`npm run digits\` again. ${error.message}`);
  } else throw error;
  process.exitCode = 1;
} finally {
  wg.dispose(); // and with it every tensor
}
