// The work of one engine, in Node, in Bun or in a page: it starts wgemm and the peers, and measures
// what the settings name. It tells each result at once.
import { choose } from './cases.mjs';
import { runCliff } from './cliff.mjs';
import { contestantsOf, hasLimits, limitOf, startAll, stepOf } from './contestants.mjs';
import { measure } from './measure.mjs';
import { raceModels } from './models.mjs';
import { raceShapes } from './random.mjs';

// A sweep asks for many sizes of code that has become fast at other sizes already.
const sweepTurns = { warmUpMs: 120, warmUpCalls: 3, raceMs: 1000, minRounds: 5 };

/**
 * @param settings `threads`; `filter`; with `random` also `count` and `seed`; `models`: races
 *   models instead
 * @param tell called with the kind of a result and the result, and awaited. The first kind is
 *   'start', with `build`, `versions`, and `withoutThreads`: the peers that have one thread here
 *   whatever `threads` is
 */
export async function work({ random, models, ...settings }, tell) {
  if (models) return raceModels(settings, tell);
  const library = await startAll(settings);
  const { wg, versions, withoutThreads } = library;
  await tell('start', { build: wg.info.build, versions, withoutThreads });
  await (random ? raceShapes : measureCases)(settings, library, tell);
  library.dispose();
}

async function measureCases({ filter }, library, tell) {
  const { cases, sweeps, cliffs } = choose(filter);
  for (const problem of cases)
    await tell('case', await measure(problem, await contestantsOf(problem, library)));
  if (sweeps.length > 0 && hasLimits) {
    const limits = (await limitsOfSweep(library)).map((each) => limitOf(...each));
    await tell('limits', await measure({ name: 'sweep limit' }, await Promise.all(limits)));
  }
  for (const problem of sweeps)
    await tell('sweep', await measure(problem, await contestantsOf(problem, library), sweepTurns));
  for (const { name, ...cliff } of cliffs)
    await tell('cliff', { name, ...(await runCliff(cliff, library.wg)) });
}

/** Arguments of limitOf(): for the relaxed build only if the engine takes it. */
async function limitsOfSweep(library) {
  const problem = choose('sweep').sweeps.find(({ operation }) => operation === 'qgemm');
  const [own, ...others] = await contestantsOf(problem, library);
  const step = stepOf(own.plan());
  for (const { dispose } of [own, ...others]) await dispose?.();
  const { build } = library.wg.info;
  return [
    ...(build === 'relaxed' ? [[build, 'float32', 'float32, relaxed']] : []),
    ['simd128', 'float32', 'float32, simd128'],
    step === 'int8'
      ? ['simd128', step, 'uint8 x int8, simd128']
      : [build, step, 'uint8 x int8, relaxed'],
  ];
}
