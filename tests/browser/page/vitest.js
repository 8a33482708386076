// Exports what the tests import from 'vitest', made of the libraries that Vitest itself uses,
// without Node.
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  getState,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect';
import { getCurrentTest, startTests } from '@vitest/runner';
import * as chai from 'chai';

export { afterAll, afterEach, beforeAll, beforeEach, describe, it, test } from '@vitest/runner';

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);

export const expect = Object.assign(
  (value, message) => chai.expect(value, message),
  chai.expect,
  globalThis[ASYMMETRIC_MATCHERS_OBJECT],
);
expect.getState = () => getState(expect);
expect.setState = (state) => setState(state, expect);
setState({ assertionCalls: 0, isExpectingAssertions: false }, expect);

/** Types were checked when they were compiled. */
const nothing = new Proxy(() => nothing, { get: () => nothing, apply: () => nothing });
export const expectTypeOf = nothing;

/** Ends the running test, as skipped for a reason. */
export function skipTest(reason) {
  getCurrentTest().context.skip(reason);
}

const config = {
  root: '/',
  setupFiles: [],
  name: undefined,
  passWithNoTests: false,
  testNamePattern: undefined,
  allowOnly: false,
  sequence: { seed: 0, hooks: 'stack', setupFiles: 'list' },
  chaiConfig: undefined,
  maxConcurrency: 1,
  testTimeout: 60_000, // as in vitest.config.ts
  hookTimeout: 30_000,
  retry: 0,
  includeTaskLocation: false,
  tags: [],
  tagsFilter: undefined,
  strictTags: false,
};

/**
 * Runs test files.
 *
 * @param files by name, a function that imports it
 * @param skip (number, file) returns why this test of the file is skipped; undefined: it runs
 * @param onFile is called with the name of each file before its tests
 * @returns { passed, failed, skipped: reason -> count, failures: sentences }
 */
export async function runTests(files, { skip, onFile }) {
  const counts = { passed: 0, failed: 0, skipped: {}, failures: [] };
  const fail = (name, { errors } = {}) => {
    ++counts.failed;
    counts.failures.push(
      `${name}: ` +
        `${errors?.map((error) => error.message).join('; ') || 'it failed without an error'}`,
    );
  };
  const countTask = (task, path) => {
    const name = [...path, task.name].join(' > ');
    if (task.type === 'suite') {
      // A suite itself fails if its file does not load, or if a hook throws.
      if (task.result?.errors?.length) fail(name, task.result);
      for (const child of task.tasks) countTask(child, [...path, task.name]);
    } else if (task.result?.state === 'pass') {
      ++counts.passed;
    } else if (task.mode === 'skip' || task.mode === 'todo' || task.result?.state === 'skip') {
      const reason = reasons.get(task) ?? task.result?.note ?? 'skipped by the test itself';
      counts.skipped[reason] = (counts.skipped[reason] ?? 0) + 1;
    } else {
      fail(name, task.result);
    }
  };
  const reasons = new Map(); // test -> why it is skipped
  const testsOf = (task) => (task.type === 'test' ? [task] : task.tasks.flatMap(testsOf));
  const choose = (file) => {
    for (const [number, test] of testsOf(file).entries()) {
      const reason = skip(number, file.name);
      if (!reason) continue;
      reasons.set(test, reason);
      test.mode = 'skip';
    }
  };
  const done = await startTests(Object.keys(files), {
    config,
    importFile: (path) => files[path](),
    onCollected: (collected) => collected.forEach(choose),
    onBeforeRunSuite: async (suite) => {
      if (suite.filepath) await onFile(suite.filepath);
    },
  });
  for (const file of done) countTask(file, []);
  return counts;
}
