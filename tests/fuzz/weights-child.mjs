// Reads mutated files of weights, one after the other, for scripts/fuzz-weights.mjs. It tells its
// parent each seed before it begins, so that the parent knows which one never ends.
import { createGemm, GemmError } from 'wgemm';
import * as weights from 'wgemm/weights';
import { expectClear, tryBlocks, tryFile } from './weights-mutate.mjs';

const [first, count, seconds] = process.argv.slice(2, 5).map(Number);
const end = performance.now() + 1000 * seconds;
const reached = { read: 0, loaded: 0, converted: 0, packed: 0, refused: 0 };
const wg = await createGemm({ maxMemory: 2 ** 26 });
const modules = { ...weights, wg, GemmError };

/** Waits until the message is sent: a file that never ends would keep it here. */
const tell = (message) => new Promise((resolve) => process.send(message, resolve));

/** What is wrong with an error; undefined for one that a user can understand. */
function faultOf(error) {
  if (!(error instanceof GemmError)) return error.stack;
  try {
    expectClear(error);
    return undefined;
  } catch (unclear) {
    return unclear.stack;
  }
}

let seed = first;
for (; seed < first + count && performance.now() < end; ++seed) {
  await tell({ seed });
  const start = performance.now();
  try {
    await tryBlocks(seed, modules, reached);
    await tryFile(seed, modules, reached);
  } catch (error) {
    ++reached.refused;
    const fault = faultOf(error);
    if (fault) await tell({ seed, fault });
  }
  const ms = performance.now() - start;
  if (ms > 2000) await tell({ seed, fault: `took ${ms.toFixed(0)} ms` });
}
const peak = process.resourceUsage().maxRSS / 1024;
if (peak > 400) await tell({ seed, fault: `memory had a peak of ${peak.toFixed(0)} MB` });
await tell({ reached, next: seed, peak });
process.disconnect();
