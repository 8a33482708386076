// Tests the package's files in every engine by tests/browser. Here are only the rows of the table.
import { join } from 'node:path';
import { titleOf } from '../browser/engines.mjs';
import { runBrowsers, titleOfRow } from '../browser/run.mjs';
import { makeProject } from './packed.mjs';
import { refuse } from './results.mjs';

export async function testEngines(results, { fast = false } = {}) {
  const dist = join(await makeProject('engines'), 'node_modules', 'wgemm', 'dist');
  const told = [];
  const tell = ({ wrong, seconds, result, ...row }) => {
    const { engine, version, task } = row;
    const where = `${titleOf(engine)} ${version}`;
    const body = () => {
      if (wrong.length > 0) refuse(wrong.join('\n'));
      const { api, vectors, info } = result;
      return task === 'suite'
        ? `${info.build}, threads ${info.threads}, ${api.passed} tests, ${vectors.passed} vectors`
        : 'as it should';
    };
    told.push(results.test('engines', where, titleOfRow(row), body, seconds));
  };
  await runBrowsers({ ...(fast && { smoke: true, engines: ['chromium'] }), dist, onRow: tell });
  await Promise.all(told);
}
