// Starts Chromium and Firefox, and opens tabs in them, by puppeteer-core.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../../scripts/run.mjs';
import { programOf } from './engines.mjs';

const require = createRequire(join(root, 'docs', 'package.json'));

const launches = {
  chromium: {
    browser: 'chrome',
    args: [
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      '--disable-dev-shm-usage', // it is small in containers
      '--disable-gpu',
      '--hide-scrollbars', // as phones do
    ],
  },
  firefox: {
    browser: 'firefox',
    protocol: 'webDriverBiDi',
    // Lets tabs in the background run as fast as the tab in front.
    extraPrefsFirefox: {
      'dom.min_background_timeout_value': 4,
      'dom.timeout.enable_budget_timer_throttling': false,
    },
  },
};

/** @param preferences of Firefox, added to the preferences that every test needs */
export async function launch(engine, preferences = {}) {
  // When this file is loaded, the set-up may not have installed it yet.
  const { default: puppeteer } = await import(
    pathToFileURL(require.resolve('puppeteer-core')).href
  );
  return puppeteer.launch({
    ...launches[engine],
    ...(engine === 'firefox' && {
      extraPrefsFirefox: { ...launches.firefox.extraPrefsFirefox, ...preferences },
    }),
    executablePath: programOf(engine),
    headless: true,
  });
}

/**
 * Opens a tab that notes what must not happen, as the browser tells it. `errors()` returns the
 * notes, and clears them.
 *
 * @param origin the origin of the pages; a request to another origin is an error
 */
export async function openTab(browser, origin, viewport) {
  const page = await browser.newPage();
  await page.setViewport(viewport);
  let errors = [];
  const note = (what) => errors.push(what);
  page.on('console', (message) => {
    if (['error', 'warn', 'warning', 'assert'].includes(message.type()))
      note(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => note(`error: ${error?.stack ?? error}`));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !/^(data|about|blob):/.test(url))
      note(`request to another host: ${url}`);
  });
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? '';
    // When the browser leaves a page, it cancels what it was loading ahead.
    if (!/ABORTED/i.test(why)) note(`failed: ${request.url()} ${why}`);
  });
  page.on('response', (response) => {
    if (response.status() !== 200 && response.status() !== 304)
      note(`status ${response.status()}: ${response.url()}`);
  });
  return {
    page,
    errors() {
      const noted = errors;
      errors = [];
      return noted;
    },
  };
}
