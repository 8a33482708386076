// Finds the ten nearest of 100,000 vectors by wgemm: exactly in float32, while int8 may miss one.
// Run it with `npm run search`, which builds wgemm first.
import { searchInJavaScript } from './plain.mjs';
import { agreement } from './top.mjs';
import { makeVectors } from './vectors.mjs';

const count = 100_000;
const size = 384;
const seed = 1;
const queries = 25;
const wanted = 10;

const [{ createGemm }, { float32Index, int8Index }] = await Promise.all([
  import('wgemm'),
  import('./index.mjs'), // which imports wgemm, too
]).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('wgemm is not built here: run `npm run search`, which builds it first.');
  process.exit(1);
});

const wg = await createGemm();
try {
  console.log(`wgemm ${wg.info.version}: build ${wg.info.build}, ${wg.info.threads} thread`);
  const vectors = wg.alloc('float32', [count, size]);
  timed(`made ${count.toLocaleString('en')} vectors of ${size} dimensions`, () =>
    finish(makeVectors(vectors, seed)),
  );
  const int8 = timed('packed them as int8', () => finish(int8Index(wg, vectors)));
  const float32 = float32Index(wg, vectors);
  const cosines = new Float32Array(count);
  console.log(`the ${wanted} nearest of ${queries} queries, one by one:\n`);

  const expected = compare('plain JavaScript', (query) =>
    searchInJavaScript(vectors, query, wanted, cosines),
  );
  compare('float32', (query) => float32.search(query, wanted), expected);
  compare('int8', (query) => int8.search(query, wanted), expected);

  /** Searches for each query. Prints ms per query, and how many are as expected. */
  function compare(name, search, expected) {
    const times = [];
    const results = Array.from({ length: queries }, (_, i) => {
      const row = i * Math.floor(count / queries);
      const query = vectors.data.slice(row * size, (row + 1) * size);
      search(query); // the first time is slower, until the engine has compiled the code
      const start = performance.now();
      const found = search(query);
      times.push(performance.now() - start);
      return found;
    });
    const median = times.sort((a, b) => a - b)[queries >> 1];
    let line = `${name.padEnd(17)}${median.toFixed(2).padStart(6)} ms per query`;
    if (expected) {
      const agree = results.reduce((sum, found, i) => sum + agreement(found, expected[i]), 0);
      line += `, ${agree} of ${queries * wanted} agree`;
      // float32 is exact. int8 may miss some: its candidates are chosen by rounded cosines.
      if (agree < { float32: 1, int8: 0.98 }[name] * queries * wanted) throw new Error(line);
    }
    console.log(line);
    return results;
  }
} finally {
  wg.dispose(); // frees all tensors and weights too
}

/** Runs all steps, and returns what they return. */
function finish(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

function timed(name, run) {
  const start = performance.now();
  const result = run();
  console.log(`${name} in ${((performance.now() - start) / 1000).toFixed(2)} s`);
  return result;
}
