// Runs the API tests and the test vectors, with the package as it is served from dist/.
import { tests } from 'all-tests';
import { createGemm } from 'wgemm';
import { Tally } from '../../conformance/tally.mjs';
import { runTests, skipTest } from './vitest.js';

const shown = 10; // failures that are reported

// The tests ask for files of the package by its name. The bundler replaces import.meta.resolve by
// this.
globalThis.resolveInPackage = (specifier) =>
  new URL(specifier.replace('wgemm/assets/', '/dist/'), location.href).href;

// Tests that watch the garbage collector start it.
globalThis.gc ??= () => skipTest('no gc() in this engine');

const tellProgress = (text) => fetch('/progress', { method: 'POST', body: text });

/** Lets the engine run its own tasks, from time to time. */
function makePause() {
  let last = performance.now();
  return async () => {
    if (performance.now() - last < 500) return;
    await new Promise((resolve) => setTimeout(resolve));
    last = performance.now();
  };
}

/** Returns why a number is skipped if only every n-th runs here; undefined if it runs. */
const leaveTo =
  (others, { part = 0, parts = 1 }) =>
  (number) =>
    number % parts === Number(part) ? undefined : `left to ${others}`;

/**
 * @param settings `place`
 *   `only`: paths of test files in tests/js, and names of files of vectors; absent: all of them
 *   `part`, `parts`: only tests whose number modulo `parts` is `part`
 *   `vectorPart`, `vectorParts`: the same for cases that are made from a rule, which take long
 * @returns info, the counts of tests and of vectors, and seconds of each
 */
export async function runSuite({ place, only, part, parts, vectorPart, vectorParts }) {
  const vectorFiles = await (await fetch('/vectors/index.json')).json();
  const asked = only?.split(',');
  const missing = asked?.find((name) => !tests[name] && !vectorFiles.includes(name));
  if (missing !== undefined) throw new Error(`tests/js and the vectors have no file ${missing}`);
  const isAsked = (name) => !asked || asked.includes(name);
  const start = performance.now();
  const files = Object.fromEntries(
    Object.entries(tests).filter(
      ([name]) => isAsked(name) && (place === 'page' || !name.startsWith('worker/')),
    ),
  );
  const others = only ? 'the run of everything' : "the engine's other rows";
  const leave = leaveTo(others, { part, parts });
  // Tests of wgemm/worker run only in pages.
  const skip = (number, file) => (file.startsWith('worker/') && !only ? undefined : leave(number));
  const api = await runTests(files, { skip, onFile: tellProgress });
  const afterTests = performance.now();

  const wg = await createGemm();
  const failures = [];
  const tally = new Tally([wg], (failure) => failures.push(failure));
  const pause = makePause();
  for (const file of vectorFiles) {
    if (!isAsked(file)) continue;
    await tellProgress(file);
    const isMade = !file.endsWith('.jsonl');
    const skipMade = isMade ? leaveTo(others, { part: vectorPart, parts: vectorParts }) : undefined;
    await tally.run(file, await (await fetch(`/vectors/${file}`)).text(), {
      pause,
      skip: skipMade,
    });
  }
  tally.finish();
  const { info } = wg;
  wg.dispose();
  const end = performance.now();
  return {
    info,
    api: { ...api, failures: api.failures.slice(0, shown), seconds: (afterTests - start) / 1000 },
    vectors: {
      passed: tally.passed,
      failed: tally.failed,
      packed: tally.packed.passed,
      notPacked: tally.notPacked,
      skipped: tally.skipped,
      failures: failures.slice(0, shown),
      seconds: (end - afterTests) / 1000,
    },
  };
}
