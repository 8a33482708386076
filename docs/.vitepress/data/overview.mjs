// The overview of the benchmarks: a sentence, the charts, the ratios of each page, and all start-up
// times.
import { rangeOf } from './cases.mjs';
import { enginesChart, modelsChart, peersChart } from './charts.mjs';
import { loadFront } from './front.mjs';
import { loadPages } from './pages.mjs';
import { factsOf, readRuns, titleOf } from './runs.mjs';
import { libraryOf, ratioText, sizeText, timeText } from './texts.mjs';

function startOf(name, run) {
  return {
    id: name,
    title: titleOf(name, run),
    facts: factsOf(run),
    rows: run.rows.map(({ where, library, best, median, ratio, brotli }) => ({
      where,
      library: libraryOf(library),
      best: timeText(best),
      median: timeText(median),
      ratio: library === 'wgemm' ? '' : ratioText(ratio),
      size: brotli ? sizeText(brotli) : '',
    })),
  };
}

/** The overview: { lead, charts, pages, starts }. */
export function loadOverview(all = readRuns()) {
  const front = loadFront(all);
  const plain = (ratio) => ratioText(ratio).replace('×', '');
  const { cases, lowest, median, highest } = rangeOf(front.results);
  return {
    lead:
      `In ${front.engine} on one thread, wgemm is ${plain(median)} times as fast as the fastest ` +
      `peer, in the median of ${cases} cases. The lowest ratio is ${plain(lowest)}, and the ` +
      `highest is ${plain(highest)}.`,
    charts: {
      peers: peersChart(front),
      engines: enginesChart(all, front),
      models: modelsChart(all),
    },
    pages: loadPages(all).map(({ page, title, ratios }) => ({ page, title, ratios })),
    starts: Object.entries(all)
      .filter(([name]) => name.endsWith('-start'))
      .map(([name, run]) => startOf(name, run))
      .sort((a, b) => b.id.localeCompare(a.id)),
  };
}
