// The page of each engine and number of threads.
import { threadsText } from '../../../tests/bench/print.mjs';
import { groupsOf } from '../../../tests/bench/random-rows.mjs';
import { casesOf, labelOf, rangeOf } from './cases.mjs';
import { engines, factsOf, hasSweep, pageOf, readRuns, runsOf } from './runs.mjs';
import { ratioText, timeText } from './texts.mjs';

/** Lengths of bars in percent of the width, on a logarithmic scale. */
function barsOf(cases) {
  const shown = cases.filter(({ best }) => best);
  const lowest = Math.min(1, ...shown.map(({ best }) => best));
  const from = lowest < 1 ? Math.min(Math.log2(lowest), -0.25) : 0;
  const to = Math.ceil(Math.log2(Math.max(...shown.map(({ best }) => best))));
  const at = (ratio) => Math.round(((Math.log2(ratio) - from) / (to - from)) * 1000) / 10;
  return {
    bars: shown.map((each) => {
      const [start, end] = [at(1), at(each.best)].sort((a, b) => a - b);
      return {
        label: labelOf(each),
        ratio: ratioText(each.best),
        peer: each.peer.library,
        start,
        width: Math.max(end - start, 0.4),
        slower: each.best < 1,
      };
    }),
    ticks: Array.from({ length: to + 1 }, (_, i) => ({ text: `${2 ** i}×`, at: at(2 ** i) })),
  };
}

function randomOf({ rows, seed }) {
  const groups = groupsOf(rows).map(({ kind, arrays, shapes, worst, median, slower }) => ({
    kind: kind.replace(' x ', '\u00a0× '), // breaks only after the sign
    arrays,
    shapes,
    worst: ratioText(worst),
    median: ratioText(median),
    slower,
  }));
  return {
    seed,
    places: [
      { title: 'in the memory of each library', groups: groups.filter(({ arrays }) => !arrays) },
      { title: 'on plain arrays', groups: groups.filter(({ arrays }) => arrays) },
    ],
  };
}

/** Rows of whole models: ONNX Runtime Web's time next to ours. */
export const modelsOf = ({ cases }) =>
  cases.map(({ model, variant, contestants }) => {
    const [own, peer] = ['own', 'peer'].map((kind) =>
      contestants.find((each) => each.kind === kind),
    );
    const ratio = peer.median / own.median;
    return {
      model,
      variant,
      time: timeText(own.median),
      ratio: ratioText(ratio),
      slower: ratio < 1,
    };
  });

function runOf({ id, title, about, results, random, models }) {
  const cases = results && casesOf(results);
  return {
    id,
    title,
    facts: factsOf(about),
    ...(cases && { cases }),
    ...(cases?.some(({ best }) => best) && { chart: barsOf(cases) }),
    sweep: hasSweep(results),
    ...(random && { random: randomOf(random) }),
    ...(models && { models: modelsOf(models) }),
  };
}

/** The ratios of the newest run with cases, as texts, or undefined. */
function ratiosOf(runs) {
  const newest = runs.find(({ results }) => results && casesOf(results).some(({ best }) => best));
  if (!newest) return undefined;
  const { cases, lowest, median, highest } = rangeOf(newest.results);
  return {
    cases,
    lowest: ratioText(lowest),
    median: ratioText(median),
    highest: ratioText(highest),
    run: newest.title,
  };
}

/**
 * A page for each engine and number of threads that has a run: { page, title, engine, threads,
 * runs }, the newest run first.
 */
export function loadPages(all = readRuns()) {
  const pages = [...new Set(runsOf(all).map(({ about }) => pageOf(about)))].map((page) => {
    const runs = runsOf(all, page);
    const { engine, threads } = runs[0].about;
    return {
      page,
      title: `${engine.name}, ${threadsText(threads)}`,
      engine: engine.name,
      threads,
      runs: runs.map(runOf),
      ratios: ratiosOf(runs),
    };
  });
  const rank = ({ engine }) => engines.indexOf(engine);
  return pages.sort((a, b) => rank(a) - rank(b) || a.threads - b.threads);
}
