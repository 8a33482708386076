// The figures of the home page and of README.md.
import { caseNamed, fastest, rateOf, usual } from './cases.mjs';
import { engineText, machineOf, processorOf, readRuns, runsOf } from './runs.mjs';

/** The run of the front figures: the newest of Chromium on one thread. */
const frontPage = 'chromium-1';
export const frontCase = 'float32 1024x1024x1024';
const columns = [
  { library: 'wgemm', names: usual, start: 'wgemm' },
  {
    library: 'ONNX Runtime Web',
    names: ['ORT', 'ORT, constant B'],
    start: 'onnxruntime-web',
    version: 'onnxruntime-web',
  },
  { library: 'tfjs', names: ['tfjs'], start: 'tfjs', version: 'tfjs' },
];

const rateUnit = (rate) => `${rate.toPrecision(3)} GOP/s`;

/** A bar of each library: lengths are in percent of the largest value. */
function barOf({ title, detail, values, text, isMore }) {
  const largest = Math.max(...values);
  return {
    title,
    detail,
    better: isMore ? 'more is faster' : 'less is better',
    bars: values.map((value, i) => ({
      library: columns[i].library,
      text: text(value),
      width: Math.round((value / largest) * 1000) / 10,
    })),
  };
}

/**
 * Size, start and speed next to two peers: the newest start-up times, and the newest run of
 * Chromium on one thread of the same processor.
 */
export function loadFront(all = readRuns()) {
  const startId = Object.keys(all)
    .filter((name) => name.endsWith('-start'))
    .sort()
    .at(-1);
  const start = all[startId];
  const processor = processorOf(startId).join('');
  const found = runsOf(all, frontPage).find(
    ({ id, results }) =>
      processorOf(id).join('') === processor && results && caseNamed(results, frontCase),
  );
  if (!found) throw new Error(`docs/bench/runs.json has no run of ${frontPage} on ${processor}`);
  const { id, results } = found;
  const inPage = columns.map((column) =>
    start.rows.find(({ library, brotli }) => library === column.start && brotli),
  );
  const problem = caseNamed(results, frontCase);
  const rates = columns.map(({ names }) =>
    rateOf(fastest(problem.contestants.filter(({ name }) => names.includes(name)))),
  );
  return {
    page: frontPage,
    results,
    date: [...new Set([results.date.slice(0, 10), startId.slice(0, 10)])].join(' and '),
    machine: machineOf(id, results.processor),
    engine: engineText(results).replace(/\..*/, ''),
    libraries: columns.map(({ library, version }) => ({
      library,
      version: version ? results.versions[version] : '',
    })),
    figures: [
      barOf({
        title: 'Download',
        detail: 'the bundle and its .wasm, with brotli',
        values: inPage.map(({ brotli }) => brotli),
        text: (bytes) => `${(bytes / 1000).toFixed(0)} kB`,
      }),
      barOf({
        title: 'First result',
        detail: 'from the import on',
        values: inPage.map(({ best }) => best),
        text: (ms) => `${ms.toFixed(0)} ms`,
      }),
      barOf({
        title: 'Speed',
        detail: 'float32, 1024 × 1024 × 1024',
        values: rates,
        text: rateUnit,
        isMore: true,
      }),
    ],
  };
}

/** The figures that the home page shows. */
export function loadHome() {
  const { page, date, machine, engine, libraries, figures } = loadFront();
  return { page, date, machine, engine, libraries, figures };
}
