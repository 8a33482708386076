// Drives every part of the built demo in Chromium, Firefox and WebKitGTK, isolated and not, under a
// strict Content-Security-Policy.
//   npm run test:demo              builds the demo first
//     --folder F                   the built demo; without it, build/demo
//     --engine chromium,firefox    some of the browsers
//     --only meter,page            some of the parts; `page` is what no part owns
//     --smoke                      Chromium only, isolated, without peers and without the test of
//                                  long tasks
//     --screenshots FOLDER         pictures of every part, by Chromium, and no tests
//     --pictures docs              the pictures of README.md, and no tests
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, main, root } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import { engineNames as engines } from '../browser/engines.mjs';
import { desktop, phone, startBrowser } from '../browser/tabs.mjs';
import { refuse, Results, twoAtATime } from '../package/results.mjs';
import { testAttention } from './attention.mjs';
import { testBits } from './bits.mjs';
import { testCode } from './code.mjs';
import { testDigit } from './digit.mjs';
import { testEmbed } from './embed.mjs';
import { testFind } from './find.mjs';
import { testLlm } from './llm.mjs';
import { testMeter, testPeers } from './meter.mjs';
import { testOnnx } from './onnx.mjs';
import * as page from './page.mjs';
import { testSize, testSizeWithPeers } from './size.mjs';
import { readDemo, serveDemo } from './served.mjs';

const parts = {
  find: testFind,
  meter: testMeter,
  onnx: testOnnx,
  size: testSize,
  digit: testDigit,
  attention: testAttention,
  llm: testLlm,
  bits: testBits,
  embed: testEmbed,
};

const names = [...Object.keys(parts), 'code', 'peers', 'page'];

function readArguments() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        folder: { type: 'string', default: join(root, 'build', 'demo') },
        engine: { type: 'string' },
        only: { type: 'string' },
        smoke: { type: 'boolean', default: false },
        screenshots: { type: 'string' },
        pictures: { type: 'string' },
      },
    }));
  } catch ({ message }) {
    fail(`demo: ${message}`);
  }
  const listed = (name, all, otherwise) => {
    const chosen = values[name]?.split(',') ?? otherwise;
    const wrong = chosen.find((one) => !all.includes(one));
    if (wrong !== undefined) fail(`demo: --${name} has ${wrong}; there are ${all.join(', ')}.`);
    return chosen;
  };
  return {
    ...values,
    engines: listed('engine', engines, values.smoke ? ['chromium'] : engines),
    only: listed('only', names, values.smoke ? names.filter((name) => name !== 'peers') : names),
  };
}

/**
 * Drives the page in one browser, as one visitor does: every part, then the peers. With isolation
 * it is a desktop; without, a phone whose user wants reduced motion.
 */
async function testIn(engine, isIsolated, { results, demo, only }) {
  const where = `${engine}${isIsolated ? ', isolated' : ''}`;
  const has = (part) => only.includes(part);
  const testOf = (part) => {
    let isStuck = false;
    // If a part no longer answers, its other tests would only wait, too.
    return (what, body) =>
      results.test(part, where, what, async () => {
        if (isStuck) refuse('not tried, since the part no longer answers');
        try {
          return await body();
        } catch (error) {
          isStuck = error.isLate === true;
          throw error;
        }
      });
  };
  const about = { demo, engine, isIsolated };
  const errors = [];
  const server = await serveDemo(demo, { isIsolated });
  const browser = await startBrowser(engine, { isIsolated, isReduced: !isIsolated });
  try {
    const tab = await browser.open(server, isIsolated ? desktop : phone);
    await tab.goto();
    if (has('page')) {
      await page.testPaint(testOf('page'), tab, about);
      await page.testHead(testOf('page'), tab);
    }
    for (const [part, drive] of Object.entries(parts)) {
      if (!has(part)) continue;
      const { failed } = results;
      await tab.reveal(`#${part}`);
      await drive(testOf(part), tab, about);
      if (results.failed === failed) continue;
      errors.push(...(await tab.errors()));
      await tab.goto(); // the next part may need what this one broke
    }
    if (has('code')) await testCode(testOf('code'), tab);
    if (has('page')) await page.testWhole(testOf('page'), tab, about);
    if (has('peers')) {
      if (!has('meter')) await tab.reveal('#meter');
      await testPeers(testOf('peers'), tab, about);
      if (isIsolated) await testSizeWithPeers(testOf('peers'), tab);
    }
    await results.test('page', where, 'nothing goes wrong', () => page.expectQuiet(tab, errors));
    await tab.close();
    if (has('page')) {
      const open = async (changes, viewport) => {
        const changed = await serveDemo(demo, { isIsolated, ...changes });
        return browser.open(changed, viewport);
      };
      const test = isIsolated ? page.testWithoutWorkers : page.testWithoutWasm;
      await test(testOf('page'), open, desktop, Object.keys(parts));
      if (isIsolated) await page.testSavingData(testOf('page'), open, desktop);
    }
  } finally {
    await browser.close();
    await server.close();
  }
}

await main(async () => {
  const { folder, engines, only, smoke, screenshots, pictures } = readArguments();
  await setUp('site', ...engines);
  const demo = readDemo(folder);
  if (screenshots) {
    const { takeScreenshots } = await import('./screenshots.mjs');
    await takeScreenshots(demo, screenshots, only);
    return;
  }
  if (pictures) {
    const { takePictures } = await import('./screenshots.mjs');
    await takePictures(demo, pictures);
    return;
  }
  const results = new Results();
  // First and alone: others would take the time that it measures.
  if (!smoke && engines.includes('chromium') && only.includes('page'))
    await page.testSlowMachine(
      (what, body) => results.test('page', 'chromium, slow', what, body),
      demo,
    );
  const visitors = engines.flatMap((engine) =>
    (smoke ? [true] : [true, false]).map((isIsolated) => ({ engine, isIsolated })),
  );
  await twoAtATime(visitors, ({ engine, isIsolated }) =>
    testIn(engine, isIsolated, { results, demo, only }),
  );
  results.finish();
});
