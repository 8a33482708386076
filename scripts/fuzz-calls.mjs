// Makes random calls of every operation in little memory, on every build, for ten minutes or
// `--seconds`. Their results must be the same as with enough memory. With enough memory, they must
// have the same bits on 1, 2, 3 and 4 threads. Each call has a seed: `--seed n --count 1` makes
// that call again.
import { parseArgs } from 'node:util';
import { createGemm } from 'wgemm';
import { createLinear } from 'wgemm/linear';
import { instancesOf, instancesOfThreads, tryCall, tryThreads } from '../tests/fuzz/calls.mjs';
import { fail, main, wholeNumbers } from './run.mjs';

/** The program ends after this many failures. */
const most = 10;

await main(async () => {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '600' },
      seed: { type: 'string', default: '1' },
      count: { type: 'string', default: '1000000000' },
    },
  });
  const [seconds, seed, count] = wholeNumbers(values, 'seconds', 'seed', 'count');
  const whole = await createGemm({ simd: 'simd128', threads: 1, determinism: 'strict' });
  const instances = [];
  const threaded = [];
  for (const simd of ['simd128', 'relaxed']) {
    threaded.push(await instancesOfThreads(createGemm, simd));
    for (const threads of [1, 2])
      instances.push(...(await instancesOf(createGemm, { simd, threads })));
  }
  const end = performance.now() + 1000 * seconds;
  const perSeed = instances.length + threaded.flat().length;
  let [next, outOfCore, failed] = [seed, 0, 0];
  const tell = () =>
    console.log(
      `seeds ${seed} to ${next - 1}: ${(next - seed) * perSeed} calls, ` +
        `${outOfCore} of them known to be out-of-core, ${failed} seeds fail`,
    );
  for (; next < seed + count && performance.now() < end && failed < most; ++next) {
    const done = tryCall(next, whole, instances, createLinear);
    outOfCore += done.outOfCore;
    const faults = threaded.flatMap((each) => tryThreads(next, each, createLinear));
    faults.unshift(...done.faults);
    if (faults.length > 0) {
      ++failed;
      console.error(faults.join('\n'));
    }
    if ((next - seed) % 5000 === 4999) tell();
  }
  tell();
  for (const { wg } of [{ wg: whole }, ...instances, ...threaded.flat()]) wg.dispose();
  if (failed > 0)
    fail(`fuzz: ${failed} calls differ in little memory, or on several threads: see above.`);
});
