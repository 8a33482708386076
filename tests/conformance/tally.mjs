// Runs test vectors on instances, with B plain and packed, and counts their outcomes by build,
// operation, opset and type. Needs no file system, so that a page can use it too.
import { check, forms, notPacked, notSupported } from './check.mjs';
import { readVectors } from './vectors.mjs';

/**
 * The kernels with relaxed 8-bit dot products that this engine has. Only packed weights use them.
 */
const dotsOf = ({ info }) =>
  info.kernels.flatMap(({ name, dtype, preferred }) =>
    dtype === 'int8' && preferred && name.includes('_relaxed_') ? [name] : [],
  );

export class Tally {
  /** Runs of cases by the form of B. */
  plain = { passed: 0, failed: 0 };
  packed = { passed: 0, failed: 0 };
  /** Reason -> how many runs with B packed were left out. */
  notPacked = {};
  /** Reason -> how many cases were skipped. */
  skipped = {};
  #rows = new Map();
  #kernels = new Map(); // instance -> the kernels that packed cases used

  /**
   * @param instances of the library, each of which runs every case
   * @param onFailure is called with a sentence that names the case and what is wrong
   */
  constructor(instances, onFailure) {
    this.instances = instances;
    this.onFailure = onFailure;
    for (const wg of instances) this.#kernels.set(wg, new Set());
  }

  get passed() {
    return this.plain.passed + this.packed.passed;
  }

  get failed() {
    return this.plain.failed + this.packed.failed;
  }

  /**
   * Runs the cases of a file with this text. Returns their count.
   *
   * @param pause is called after each case, and awaited
   * @param skip (number, case) returns why a case is skipped; undefined: it runs
   */
  async run(file, text, { pause = () => undefined, skip = () => undefined } = {}) {
    let cases = 0;
    try {
      for (const kase of readVectors(file, text)) {
        ++cases;
        const reason = kase.skip ?? notSupported(kase) ?? skip(cases, kase);
        if (reason) this.skipped[reason] = (this.skipped[reason] ?? 0) + 1;
        for (const wg of this.instances) this.#runCase(wg, file, kase, reason);
        await pause();
      }
    } catch (error) {
      throw new Error(`conformance: ${file} could not be run beyond case ${cases}`, {
        cause: error,
      });
    }
    return cases;
  }

  /**
   * Call it after all files: an instance with relaxed 8-bit dot products fails unless a packed case
   * used one.
   */
  finish() {
    for (const wg of this.instances) {
      const dots = dotsOf(wg);
      if (dots.length === 0 || dots.some((name) => this.#kernels.get(wg).has(name))) continue;
      ++this.packed.failed;
      this.onFailure(
        `no case with B packed takes ${dots.join(' or ')} (${wg.info.build}, threads ` +
          `${wg.info.threads})`,
      );
    }
  }

  #runCase(wg, file, kase, reason) {
    const { build } = wg.info;
    const row = this.#rowOf(build, kase);
    if (reason) return ++row.skipped;
    for (const form of forms) {
      const isPacked = form === 'packed';
      const wrong = check(
        wg,
        kase,
        form,
        (kernel) => isPacked && this.#kernels.get(wg).add(kernel),
      );
      const reason = !wrong && isPacked && notPacked(kase);
      if (reason) {
        this.notPacked[reason] = (this.notPacked[reason] ?? 0) + 1;
        ++row['not packed'];
        continue;
      }
      const outcome = wrong ? 'failed' : 'passed';
      ++this[form][outcome];
      ++row[`${form} ${outcome}`];
      if (wrong)
        this.onFailure(
          `${file}: ${kase.name} (${kase.op} ${kase.opset} ${kase.type}, ${build}): ${wrong}`,
        );
    }
  }

  #rowOf(build, { op, opset, type }) {
    const key = [build, op, opset, type].join();
    if (!this.#rows.has(key)) {
      const counts = forms.flatMap((form) => [`${form} passed`, `${form} failed`]);
      const columns = [...counts, 'not packed', 'skipped'];
      const zeros = Object.fromEntries(columns.map((column) => [column, 0]));
      this.#rows.set(key, { build, operation: op, opset, type, ...zeros });
    }
    return this.#rows.get(key);
  }

  /** Forms in the order of their columns. */
  get rows() {
    const order = (row) =>
      [row.build, row.operation, String(row.opset).padStart(6), row.type].join();
    return [...this.#rows.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1));
  }
}
