// Finds the ten nearest of 100,000 vectors by wgemm/search in three types, and by plain JavaScript.
// Run it with `npm run search`, which builds wgemm first.
import { agreement, searchInJavaScript } from './plain.mjs';
import { makeVectors } from './vectors.mjs';

const count = 100_000;
const size = 384;
const seed = 1;
const queries = 25;
const k = 10;

/** The options of each index, and the part of the nearest that it must find. */
const indexes = [
  [{ dtype: 'float32' }, 1],
  [{ dtype: 'bfloat16' }, 0.95],
  [{ dtype: 'int8', rescore: 'bfloat16' }, 0.95],
];

const [{ createGemm }, { createIndex }] = await Promise.all([
  import('wgemm'),
  import('wgemm/search'),
]).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('wgemm is not built here: run `npm run search`, which builds it first.');
  process.exit(1);
});

const rows = new Float32Array(count * size);
timed(`made ${count.toLocaleString('en')} vectors of ${size} dimensions`, () =>
  Array.from(makeVectors({ data: rows, shape: [count, size] }, seed)),
);
const queryOf = (i) => rows.subarray(i * size, (i + 1) * size);
const chosen = Array.from({ length: queries }, (_, i) => queryOf(i * Math.floor(count / queries)));

const wg = await createGemm();
try {
  console.log(`wgemm ${wg.info.version}: build ${wg.info.build}, ${wg.info.threads} thread`);
  console.log(`the ${k} nearest of ${queries} queries, one by one:\n`);

  const scores = new Float32Array(count);
  const plain = compare((query) => searchInJavaScript(rows, query, k, scores));
  console.log(line('plain JavaScript', plain.ms));

  for (const [options, expected] of indexes) {
    const index = createIndex(wg, { dimensions: size, capacity: count, ...options });
    index.add(rows);
    const { ms, results } = compare((query) => index.search(query, k));
    const agree = results.reduce((sum, found, i) => {
      const ids = found.map(({ id }) => id);
      return sum + agreement(ids, rows, chosen[i], plain.results[i]);
    }, 0);
    const name = Object.values(options).join(' + ');
    const megabytes = `${Math.round(index.byteLength / 1e6)} MB`.padStart(6);
    const text = `${line(name, ms)}, ${megabytes}, ${agree} of ${queries * k} agree`;
    // float32 is exact. The other types round the vectors, and may miss some.
    if (agree < expected * queries * k) throw new Error(text);
    console.log(text);
    index.dispose();
  }
} finally {
  wg.dispose();
}

/** Searches for each query. Returns the results, and the median of the times in ms. */
function compare(search) {
  const times = [];
  const results = chosen.map((query) => {
    search(query); // the first time is slower, until the engine has compiled the code
    const start = performance.now();
    const found = search(query);
    times.push(performance.now() - start);
    return found;
  });
  return { ms: times.sort((a, b) => a - b)[queries >> 1], results };
}

function line(name, ms) {
  return `${name.padEnd(17)}${ms.toFixed(2).padStart(6)} ms per query`;
}

function timed(name, run) {
  const start = performance.now();
  run();
  console.log(`${name} in ${((performance.now() - start) / 1000).toFixed(2)} s`);
}
