// Pictures by Chromium: of the first screen, and of every part in its finished state, at both
// widths, light and dark; and of the top of the page for README.md.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { desktop, phone, startBrowser } from '../browser/tabs.mjs';
import { expectHash } from './bits.mjs';
import { drawSeven } from './digit.mjs';
import { letWrite } from './llm.mjs';
import { serveDemo } from './served.mjs';

const untilIdle = (tab, part) =>
  tab.waitFor(
    `${part} is done`,
    (part) => document.querySelector(`#${part} .job`)?.hidden !== false,
    {
      args: [part],
      timeout: 60_000,
    },
  );

/** What brings each part to a state worth seeing. */
const drives = {
  meter: (tab) => tab.waitFor('the meter', () => !document.querySelector('#meter-again').disabled),
  size: (tab) =>
    tab.waitFor('the curve', () => document.querySelector('#size').dataset.sweep === 'done'),
  async digit(tab) {
    await tab.click('#digit-train');
    await tab.waitFor('the training', () =>
      document.querySelector('#digit-trained').textContent.startsWith('Trained'),
    );
    await drawSeven(tab);
    await tab.waitFor('the times', () => document.querySelector('#digit-words').textContent);
  },
  async find(tab) {
    await tab.waitFor('the vectors', () => document.querySelector('#find-list').children.length);
    const { x, y, width, height } = await tab.boxOf('#find-map');
    await tab.hover([{ x: x + 0.6 * width, y: y + 0.4 * height }]);
    await sleep(1500); // the loop checks
  },
  attention: async (tab) => {
    await tab.click('#attention-tokens button:nth-child(2)');
    await tab.waitFor('the times', () =>
      [...document.querySelectorAll('#attention-times td')].every((cell) => cell.textContent),
    );
    await sleep(2500); // it measures after a pause
  },
  async onnx(tab) {
    await tab.click('#onnx-sample');
    await tab.waitFor(
      'the steps',
      () => document.querySelector('#onnx-steps').tBodies[0].rows.length,
    );
  },
  async llm(tab) {
    await letWrite(tab, 'The kernel ');
    await tab.click('#llm-measure');
    await tab.waitFor(
      'the speeds',
      () => document.querySelector('#llm-table td').textContent !== '-',
    );
  },
  bits: (tab) => expectHash(tab),
  embed: () => undefined,
};

const schemes = ['light', 'dark'];

async function choose(tab, scheme) {
  await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await sleep(700); // the needle and the canvases
}

/** @param only names of parts */
export async function takeScreenshots(demo, folder, only) {
  mkdirSync(folder, { recursive: true });
  const parts = Object.keys(drives).filter((part) => only.includes(part));
  const server = await serveDemo(demo, { isIsolated: true });
  const browser = await startBrowser('chromium');
  try {
    for (const viewport of [desktop, phone]) {
      const tab = await browser.open(server, viewport);
      await tab.goto();
      await tab.waitFor(
        'the figure',
        () => document.querySelector('#figure').dataset.state === 'done',
      );
      for (const scheme of only.includes('page') ? schemes : []) {
        await choose(tab, scheme);
        await tab.page.screenshot({ path: join(folder, `top-${viewport.width}-${scheme}.png`) });
      }
      for (const part of parts) {
        await tab.reveal(`#${part}`);
        await drives[part](tab);
        await untilIdle(tab, part);
        for (const scheme of schemes) {
          await choose(tab, scheme);
          const element = await tab.page.$(`#${part}`);
          await element.screenshot({
            path: join(folder, `${part}-${viewport.width}-${scheme}.png`),
          });
        }
      }
      await tab.close();
    }
  } finally {
    await browser.close();
    await server.close();
  }
  console.log(`demo: pictures of ${parts.join(', ')} in ${folder}`);
}

/** Writes demo-light.png and demo-dark.png: what a visitor of a desktop sees first. */
export async function takePictures(demo, folder) {
  mkdirSync(folder, { recursive: true });
  const server = await serveDemo(demo, { isIsolated: true });
  const browser = await startBrowser('chromium');
  let shown;
  try {
    const tab = await browser.open(server, { width: 1120, height: 720, deviceScaleFactor: 1.5 });
    await tab.goto();
    await tab.waitFor(
      'the vectors',
      () => document.querySelector('#find-agree-int8').dataset.query,
    );
    const { x, y, width, height } = await tab.evaluate(() => {
      const { x, y, width, height } = document.querySelector('#find-map').getBoundingClientRect();
      return { x, y, width, height };
    });
    shown = `${await tab.textOf('#figure-own')} GOP/s, ${await tab.textOf('#figure-times')}`;
    await tab.hover([{ x: x + 0.62 * width, y: y + 0.32 * height }]);
    for (const scheme of schemes) {
      await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      await sleep(1500); // the loop checks
      await tab.page.screenshot({ path: join(folder, `demo-${scheme}.png`) });
    }
  } finally {
    await browser.close();
    await server.close();
  }
  console.log(`demo: demo-light.png and demo-dark.png in ${folder}, which show ${shown}`);
}
