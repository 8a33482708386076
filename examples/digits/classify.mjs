// Classifies digits with the network that `npm run digits` trained and saved: run that first, then
// `npm run classify`.
import { accuracy, showSome } from './answers.mjs';
import { readDigits } from './data.mjs';
import { ChangedError, file, loadLayers } from './file.mjs';
import { allocOutputs, classify, forward, multiplyBy } from './network.mjs';

const { createGemm, PackMismatchError } = await import('wgemm').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('wgemm is not built here: run `npm run classify`, which builds it first.');
  process.exit(1);
});

const wg = await createGemm();
try {
  const layers = loadLayers(wg);
  const { test } = readDigits();
  const input = wg.alloc('float32', [test.count, layers[0].weights.shape[0]]);
  input.data.set(test.images);
  const answers = classify(
    forward(layers, input, allocOutputs(wg, layers, test.count), multiplyBy(wg)),
  );
  console.log(`${layers[0].weights.dtype} weights of ${file}`);
  console.log(
    `${test.count} digits that it did not learn from: ${accuracy(answers, test)} right\n`,
  );
  showSome(test, answers);
} catch (error) {
  if (error.code === 'ENOENT' && error.path === file)
    console.error(`There is no ${file}: run \`npm run digits\` first.`);
  else if (error instanceof PackMismatchError || error instanceof ChangedError) {
    console.error(`${file} was changed: run \`npm run digits\` again. ${error.message}`);
  } else throw error;
  process.exitCode = 1;
} finally {
  wg.dispose(); // frees every tensor too
}
