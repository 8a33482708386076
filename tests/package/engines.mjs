// Tests the package's files in every engine by tests/browser. Here are only the rows of the table.
import { join } from 'node:path';
import { titleOf } from '../browser/engines.mjs';
import { runBrowsers } from '../browser/run.mjs';
import { makeProject } from './packed.mjs';
import { refuse } from './results.mjs';

export async function testEngines(results, { fast = false } = {}) {
  const dist = join(await makeProject('engines'), 'node_modules', 'wgemm', 'dist');
  const told = [];
  const tell = ({ engine, version, place, isolated, task, wrong, seconds, result }) => {
    const where = `${titleOf(engine)} ${version}`;
    const refused = task === 'refusal' ? ', forbidden by the policy' : '';
    const what = `${place}${isolated ? ', isolated' : ''}${refused}`;
    const body = () => {
      if (wrong.length > 0) refuse(wrong.join('\n'));
      const { api, vectors, info } = result;
      return task === 'refusal'
        ? 'refused'
        : `${info.build}, threads ${info.threads}, ${api.passed} tests, ${vectors.passed} vectors`;
    };
    told.push(results.test('engines', where, what, body, seconds));
  };
  await runBrowsers({ ...(fast && { smoke: true, engines: ['chromium'] }), dist, onRow: tell });
  await Promise.all(told);
}
