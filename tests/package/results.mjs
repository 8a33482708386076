// Collects the outcomes of tests: prints each as it ends, and all as one table at the end.
export class Results {
  /** By part and place: { part, where, passed: [what...], failed: [what...], seconds }. */
  #rows = new Map();
  #started = performance.now();
  passed = 0;
  failed = 0;

  /**
   * Runs one test; never throws.
   *
   * @param part `tarball`, `runtimes`...
   * @param where the row of the table: a runtime, a bundler, a tool
   * @param what is tested, in a few words
   * @param body throws if it fails; it may return a short text, which follows `what` in the table
   * @param took seconds, if they were not spent in the body
   */
  async test(part, where, what, body, took) {
    const key = `${part}\0${where}`;
    if (!this.#rows.has(key))
      this.#rows.set(key, { part, where, passed: [], failed: [], seconds: 0 });
    const row = this.#rows.get(key);
    const start = performance.now();
    let error;
    let told;
    try {
      told = await body();
    } catch (caught) {
      error = caught;
    }
    const seconds = took ?? (performance.now() - start) / 1000;
    row.seconds += seconds;
    if (error) {
      ++this.failed;
      row.failed.push(what);
      console.error(
        `${part}: ${where}: ${what}: FAILED\n${indent(error.told ?? error.stack ?? String(error))}`,
      );
    } else {
      ++this.passed;
      row.passed.push(told ? `${what} (${told})` : what);
      console.log(
        `${part}: ${where}: ${what}: passed${told ? `, ${told}` : ''} (${seconds.toFixed(1)} s)`,
      );
    }
    return !error;
  }

  /** Prints the table, and sets the exit code. */
  finish() {
    const rows = [...this.#rows.values()];
    const table = rows.map(({ part, where, passed, failed, seconds }) => [
      part,
      where,
      failed.length === 0 ? 'passed' : 'FAILED',
      `${seconds.toFixed(1)} s`,
      (failed.length > 0 ? failed : passed).join(', '),
    ]);
    const widths = [0, 1, 2, 3].map((column) =>
      Math.max(0, ...table.map((cells) => cells[column].length)),
    );
    console.log();
    for (const cells of table) {
      console.log(
        cells
          .map((cell, i) => (i === 3 ? cell.padStart(widths[i]) : cell.padEnd(widths[i] ?? 0)))
          .join('  '),
      );
    }
    console.log(`in ${((performance.now() - this.#started) / 1000).toFixed(0)} s`);
    console.log(`${this.passed} passed, ${this.failed} failed`);
    if (this.failed > 0 || this.passed === 0) process.exitCode = 1;
  }
}

const indent = (text) => text.replace(/^/gm, '    ');

/** A failure that needs no stack trace. */
export function refuse(told) {
  throw Object.assign(new Error(told), { told });
}

/** Runs two at a time: each test uses one thread, most of the time. */
export async function twoAtATime(items, body) {
  const waiting = [...items];
  const one = async () => {
    while (waiting.length > 0) await body(waiting.shift());
  };
  await Promise.all([one(), one()]);
}
