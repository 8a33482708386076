// Runs test vectors on instances, and counts what came of them by build, operation, opset and type. Needs no file system, so that a page
// runs them as Node does.
import { check, supported } from './check.mjs';
import { readVectors } from './vectors.mjs';

export class Tally {
  passed = 0;
  failed = 0;
  /** By reason, how many cases were. */
  skipped = {};
  #rows = new Map();

  /**
   * @param instances of the library, each of which runs every case
   * @param onFailure gets what is wrong, as a sentence that names the case
   */
  constructor(instances, onFailure) {
    this.instances = instances;
    this.onFailure = onFailure;
  }

  /**
   * Runs the cases of a file, of which `text` is all. Returns how many there are.
   *
   * @param pause is called after each case, and awaited
   * @param skip gives the reason not to run the case of a number, or nothing
   */
  async run(file, text, { pause = () => undefined, skip = () => undefined } = {}) {
    let cases = 0;
    try {
      for (const kase of readVectors(file, text)) {
        ++cases;
        const reason = kase.skip ?? skip(cases);
        if (reason) this.skipped[reason] = (this.skipped[reason] ?? 0) + 1;
        for (const wg of this.instances) this.#runCase(wg, file, kase, reason);
        await pause();
      }
    } catch (error) {
      throw new Error(`conformance: ${file} could not be run beyond case ${cases}`, { cause: error });
    }
    return cases;
  }

  #runCase(wg, file, kase, reason) {
    const { build } = wg.info;
    if (reason) return this.#count(build, kase, 'skipped');
    const runnable = supported(kase);
    if (!runnable) return this.#count(build, kase, 'not supported');
    const wrong = check(wg, runnable);
    this.#count(build, kase, wrong ? 'failed' : 'passed');
    if (wrong) this.onFailure(`${file}: ${kase.name} (${kase.op} ${kase.opset} ${kase.type}, ${build}): ${wrong}`);
  }

  #count(build, { op, opset, type }, outcome) {
    const key = [build, op, opset, type].join();
    if (!this.#rows.has(key)) {
      this.#rows.set(key, { build, operation: op, opset, type, passed: 0, failed: 0, 'not supported': 0, skipped: 0 });
    }
    ++this.#rows.get(key)[outcome];
    if (outcome === 'passed' || outcome === 'failed') ++this[outcome];
  }

  /** In the order of their columns. */
  get rows() {
    const order = (row) => [row.build, row.operation, String(row.opset).padStart(6), row.type].join();
    return [...this.#rows.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1));
  }
}
