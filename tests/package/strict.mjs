// Computes the fixed problems with `determinism: 'strict'`: the results must be as in every
// other engine and of native code. The caller passes the package: it is not imported.
import { hashes, hashOf, makeProblems, run, threadCounts } from '../js/support/fixed-problems.ts';

const problems = makeProblems();
const exact = problems.filter((problem) => problem.exact);
const sums = [
  { determinism: 'strict', asked: problems, wanted: hashes.strict },
  { determinism: 'fast', asked: exact, wanted: hashes.exact },
];

/**
 * @param builds to test, as the option `simd`; an engine may lack relaxed SIMD
 * @param threads counts to test, with each build
 * @param options for every createGemm()
 * @returns the names of the builds that the engine has
 */
export async function strict(
  { createGemm, UnsupportedError },
  { builds, threads = threadCounts },
  options,
) {
  const found = [];
  for (const simd of builds) {
    try {
      for (const count of threads) {
        for (const { determinism, asked, wanted } of sums) {
          const wg = await createGemm({ ...options, simd, determinism, threads: count });
          for (const isPacked of [false, true]) {
            const hash = await hashOf(
              asked.map((problem) => run(wg, problem, isPacked ? wg : undefined)),
            );
            const where =
              `${wg.info.build}, ${determinism}, threads ` +
              `${wg.info.threads}${isPacked ? ', packed' : ''}`;
            if (hash !== wanted)
              throw new Error(`${where}: the SHA-256 of the results is ${hash}, and not ${wanted}`);
          }
          if (!found.includes(wg.info.build)) found.push(wg.info.build);
          wg.dispose();
        }
      }
    } catch (error) {
      if (!(simd === 'relaxed' && error instanceof UnsupportedError && error.argument === 'simd'))
        throw error;
    }
  }
  return found;
}
