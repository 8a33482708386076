// Classifies digits with the network that `npm run digits` trained and saved: run that first, then
// `npm run classify`.
import { accuracy, showSome } from './answers.mjs';
import { readDigits } from './data.mjs';
import { classify } from './network.mjs';

const [{ createGemm, PackMismatchError }, { file, loadLayers }, { runner }] = await Promise.all([
  import('wgemm'),
  import('./file.mjs'), // which imports wgemm, too
  import('./layers.mjs'),
]).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('wgemm is not built here: run `npm run classify`, which builds it first.');
  process.exit(1);
});

const wg = await createGemm();
try {
  const layers = loadLayers(wg);
  const { test } = readDigits();
  const input = { data: test.images, shape: [test.count, layers[0].inputs] };
  const answers = classify(runner(wg, layers, test.count)(input));
  console.log(`${layers[0].dtype} weights of ${file}`);
  console.log(
    `${test.count} digits that it did not learn from: ${accuracy(answers, test)} right\n`,
  );
  showSome(test, answers);
} catch (error) {
  if (error.code === 'ENOENT' && error.path === file)
    console.error(`There is no ${file}: run \`npm run digits\` first.`);
  else if (error instanceof PackMismatchError) {
    console.error(`${file} was changed: run \`npm run digits\` again. ${error.message}`);
  } else throw error;
  process.exitCode = 1;
} finally {
  wg.dispose(); // frees every tensor too
}
