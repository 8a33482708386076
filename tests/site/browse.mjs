// Drives Chromium and Firefox through the site by puppeteer-core.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../../scripts/run.mjs';
import { programOf } from '../browser/engines.mjs';

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

/** @param preferences of Firefox, besides those that every test needs */
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

/** ms until a page counts as dead; a busy machine takes some of them. */
const patience = 20_000;

export const phone = { width: 390, height: 844 };
export const desktop = { width: 1280, height: 800 };

/**
 * Opens a tab that records everything that must not happen. `errors()` returns the record, and
 * clears it.
 *
 * @param origin the origin of the site; a request to another origin is an error
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
  await page.evaluateOnNewDocument(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) =>
      window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`),
    );
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

/** Returns what a loaded page says about itself, after Vue has taken it over. */
export async function look(page) {
  return page.evaluate(async (patience) => {
    const app = document.querySelector('#app');
    const end = performance.now() + patience;
    while (app && !app.__vue_app__ && performance.now() < end)
      await new Promise((resolve) => setTimeout(resolve, 5));
    const { scrollWidth, clientWidth } = document.documentElement;
    return {
      isAlive: !app || Boolean(app.__vue_app__),
      title: document.querySelector('h1')?.innerText ?? '',
      overflow: scrollWidth - clientWidth,
      violations: window.violations,
    };
  }, patience);
}

/** Follows a link to a page of the site as a click does, without loading another document. */
export async function follow(page, href) {
  return page.evaluate(
    async (href, patience) => {
      const old = document.querySelector('.VPContent h1');
      const link = Object.assign(document.createElement('a'), { href, textContent: 'link' });
      document.body.append(link);
      link.click();
      link.remove();
      const end = performance.now() + patience;
      while (document.querySelector('.VPContent h1') === old && performance.now() < end)
        await new Promise((resolve) => setTimeout(resolve, 5));
      const { scrollWidth, clientWidth } = document.documentElement;
      return {
        title: document.querySelector('.VPContent h1')?.innerText ?? '',
        overflow: scrollWidth - clientWidth,
        violations: window.violations,
      };
    },
    href,
    patience,
  );
}
