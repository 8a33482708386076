// The charts of the overview: products of all peers, one product in all engines, whole models.
import { threadsText } from '../../../tests/bench/print.mjs';
import { caseNamed, labelOf, ownOf, partsOf, peersOf, rateOf } from './cases.mjs';
import { frontCase } from './front.mjs';
import { engines, engineText, machineOf, pageOf, runsOf } from './runs.mjs';
import { libraryOf, ratioText, rateText, timeText, versionsText } from './texts.mjs';

/** A chart: bars from 0 on one linear scale. @param groups [{ label, bars: [{ value, ... }] }] */
function chartOf({ groups, tickText, ...rest }) {
  const highest = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)));
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const step = steps.find((each) => highest / each <= 6) ?? highest;
  const end = Math.ceil(highest / step) * step;
  const at = (value) => Math.round((value / end) * 1000) / 10;
  return {
    ...rest,
    groups: groups.map(({ label, bars }) => ({
      label,
      bars: bars.map(({ value, ...bar }) => ({ ...bar, width: at(value) })),
    })),
    ticks: Array.from({ length: Math.round(end / step) + 1 }, (_, i) => ({
      text: tickText(Math.round(i * step * 10) / 10),
      at: at(i * step),
    })),
  };
}

const chartCases = [
  frontCase,
  'float32 64x64x64',
  'float32 1x4096x4096',
  'float64 256x256x256',
  'int32 512x512x512',
  'uint8 x int8 1024x1024x1024',
  'uint8 x int8 1x4096x4096',
];

/** A bar of a rate. */
const rateBar = (one, name = libraryOf(one.name)) => ({
  name,
  value: rateOf(one),
  text: rateText(rateOf(one)),
  isOwn: one.kind === 'own',
});

/** Every peer that computes a case. */
export function peersChart({ page, results, machine, engine }) {
  const problems = chartCases.map((name) => caseNamed(results, name)).filter(Boolean);
  return chartOf({
    unit: 'GOP/s; more is faster',
    tickText: (rate) => `${rate}`,
    about:
      `${engine} on an ${machine}, one thread, ${results.date.slice(0, 10)}. ` +
      `${versionsText(results.versions)}.`,
    page,
    groups: problems.map((problem) => ({
      label: labelOf(partsOf(problem)),
      bars: [rateBar(ownOf(problem), 'wgemm'), ...peersOf(problem).map((peer) => rateBar(peer))],
    })),
  });
}

/** One product in each engine, on each number of threads, next to the fastest peer there. */
export function enginesChart(all, { results: { processor } }) {
  const found = runsOf(all)
    .filter(({ results }) => results?.processor === processor && caseNamed(results, frontCase))
    .filter(
      ({ about }, i, runs) => runs.findIndex((run) => pageOf(run.about) === pageOf(about)) === i,
    );
  const withCase = engines
    .map((name) => found.filter(({ about }) => about.engine.name === name))
    .filter((runs) => runs.length > 0);
  const dates = [...new Set(found.map(({ about }) => about.date.slice(0, 10)))].sort();
  return chartOf({
    unit: 'GOP/s; more is faster',
    tickText: (rate) => `${rate}`,
    about:
      `float32, 1024 × 1024 × 1024, on an ${machineOf(found[0].id, processor)} with ` +
      `${processor.split(', ').at(-1)}, ${dates.join(' and ')}. Each bar of wgemm is next to the ` +
      'fastest peer of the same run. A peer without threads in the engine has one.',
    groups: withCase.map((runs) => ({
      label: engineText(runs[0].about),
      bars: runs
        .sort((a, b) => a.about.threads - b.about.threads)
        .flatMap(({ results }) => {
          const problem = caseNamed(results, frontCase);
          const [peer] = peersOf(problem);
          const nameOfBar = (library) => {
            const hasOne = results.withoutThreads?.includes(library);
            return `${library}, ${threadsText(hasOne ? 1 : results.threads)}`;
          };
          return [
            rateBar(ownOf(problem), nameOfBar('wgemm')),
            rateBar(peer, nameOfBar(libraryOf(peer.name))),
          ];
        }),
    })),
  });
}

const chartModels = [
  ['MiniLM, 16 tokens', 'float32'],
  ['MiniLM, 16 tokens', 'int8'],
  ['MiniLM, 128 tokens', 'float32'],
  ['MiniLM, 128 tokens', 'int8'],
  ['wake word', 'float32'],
  ['table', 'float32'],
];

/** Whole models on each number of threads; 1 is the speed of ONNX Runtime Web on one thread. */
export function modelsChart(all) {
  const [newest] = runsOf(all).filter(({ models }) => models?.threads === 1);
  const { processor, engine } = newest.models;
  const found = runsOf(all)
    .map(({ models }) => models)
    .filter((models) => models?.processor === processor && models.engine.name === engine.name)
    .filter(({ threads }, i, runs) => runs.findIndex((run) => run.threads === threads) === i)
    .sort((a, b) => a.threads - b.threads);
  const rowOf = ({ cases }, [model, variant]) =>
    cases.find((each) => each.model === model && each.variant === variant);
  const dates = [...new Set(found.map(({ date }) => date.slice(0, 10)))].sort();
  return chartOf({
    unit: 'times as fast as ONNX Runtime Web on one thread; more is faster',
    tickText: (ratio) => `${ratio}×`,
    about:
      `${engineText(newest.models)} on an ${machineOf(newest.id, processor)}, ` +
      `${dates.join(' and ')}. ` +
      `${versionsText(newest.models.versions)}. Times are medians of whole runs.`,
    page: pageOf(newest.models),
    groups: chartModels
      .filter((each) => found.every((run) => rowOf(run, each)))
      .map((each) => {
        const one = rowOf(found[0], each).contestants.find(({ kind }) => kind === 'peer').median;
        return {
          label: each.join(', '),
          bars: found.flatMap((run) =>
            rowOf(run, each).contestants.map(({ name, kind, median }) => ({
              name: `${name}, ${threadsText(run.threads)}`,
              value: one / median,
              text: `${ratioText(one / median)}, ${timeText(median)}`,
              isOwn: kind === 'own',
            })),
          ),
        };
      }),
  });
}
