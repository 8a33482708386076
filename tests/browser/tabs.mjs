// One way to drive the three browsers: Chromium and Firefox by puppeteer-core, WebKitGTK by
// WebDriver.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail } from '../../scripts/run.mjs';
import { refuse } from '../package/results.mjs';
import { launch, openTab } from './puppeteer.mjs';
import { startWebKit } from './webkit.mjs';

export const phone = { width: 390, height: 844 };
export const desktop = { width: 1280, height: 800 };

/** The files that a server must have, so that its pages record what must not happen. */
export const recordFiles = {
  '/test/record.js': readFileSync(join(import.meta.dirname, 'page', 'record.js')),
};

/** Adds scripts to the text of a page, in front of its own scripts; the record comes first. */
export function addScripts(html, paths = []) {
  const scripts = [...Object.keys(recordFiles), ...paths].map(
    (path) => `<script src="${path}"></script>`,
  );
  if (!html.includes('<head>')) fail(`browser: a page has no <head>: ${html.slice(0, 100)}`);
  return html.replace('<head>', () => `<head>${scripts.join('')}`);
}

/**
 * Starts a browser.
 *
 * @param isIsolated WebKitGTK has shared memory only if it is asked for
 * @param isReduced whether the visitor wants reduced motion
 * @returns `open(server, viewport)` opens a tab. `hasOneTab`: all tabs are the same tab. `close()`
 *   ends the browser. `server` has `origin` and `url(path)`. It may have `activity`, a function
 *   that runs in the page and returns what the page does.
 */
export async function startBrowser(engine, { isIsolated = true, isReduced = false } = {}) {
  if (engine === 'webkit') {
    const driver = await startWebKit({
      environment: { JSC_useSharedArrayBuffer: isIsolated ? '1' : '0' },
      settings: isReduced ? { 'gtk-enable-animations': 0 } : {},
    });
    return {
      hasOneTab: true,
      async open(server, viewport) {
        const tab = new WebDriverTab(driver, server);
        await tab.setViewport(viewport);
        return tab;
      },
      close: () => driver.end(),
    };
  }
  const browser = await launch(engine, { 'ui.prefersReducedMotion': isReduced ? 1 : 0 });
  return {
    hasOneTab: false,
    async open(server, viewport) {
      const opened = await openTab(browser, server.origin, viewport);
      if (engine === 'chromium' && isReduced)
        await opened.page.emulateMediaFeatures([
          { name: 'prefers-reduced-motion', value: 'reduce' },
        ]);
      return new PuppeteerTab(engine, opened, server);
    },
    close: () => browser.close(),
  };
}

/** What the tabs of all browsers can do. Points are `{ x, y }`, in pixels of the viewport. */
class Tab {
  constructor(engine, server) {
    this.engine = engine;
    this.server = server;
  }

  /** Waits until a function of the page returns something, which is returned. */
  async waitFor(what, body, { args = [], timeout = 40_000 } = {}) {
    const end = performance.now() + timeout;
    for (;;) {
      const value = await this.evaluate(body, ...args);
      if (value) return value;
      if (performance.now() > end) {
        const { activity } = this.server;
        const does = activity ? ` ${await this.evaluate(activity)}` : '';
        const told = `${what}: not within ${timeout / 1000} s.${does}`;
        throw Object.assign(new Error(told), { isLate: true, told });
      }
      await sleep(40);
    }
  }

  /** Scrolls to an element, which starts a part of the page. */
  reveal(selector, block = 'start') {
    return this.evaluate(
      (selector, block) =>
        document.querySelector(selector).scrollIntoView({ behavior: 'instant', block }),
      selector,
      block,
    );
  }

  /** Where an element is: `{ x, y, width, height }`. Scrolls until it is seen. */
  async boxOf(selector) {
    await this.reveal(selector, 'center');
    return this.evaluate((selector) => {
      const { x, y, width, height } = document.querySelector(selector).getBoundingClientRect();
      return { x, y, width, height };
    }, selector);
  }

  /** Clicks as a visitor does: the element must be enabled, and in front, and the page at rest. */
  async click(selector) {
    await this.waitFor(
      `${selector} can be clicked, and nothing covers it`,
      (selector) => {
        const element = document.querySelector(selector);
        if (!element || element.disabled || element.offsetWidth === 0) return false;
        element.scrollIntoView({ behavior: 'instant', block: 'center' });
        const { x, y, width, height } = element.getBoundingClientRect();
        return element.contains(document.elementFromPoint(x + width / 2, y + height / 2));
      },
      { args: [selector] },
    );
    const { x, y, width, height } = await this.boxOf(selector);
    await this.drag([{ x: x + width / 2, y: y + height / 2 }]);
  }

  /**
   * What canvases show: for each, `inked`, the part of its pixels that is not transparent, and
   * `colours`, how many it has.
   */
  drawnIn(selector) {
    return this.evaluate((selector) => {
      // A copy: reading a canvas itself makes it slower, and the browser warns of that.
      const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      return [...document.querySelectorAll(selector)].map((canvas) => {
        const { width, height } = canvas;
        if (width * height === 0) return { inked: 0, colours: 0 };
        Object.assign(copy.canvas, { width, height });
        copy.drawImage(canvas, 0, 0);
        const pixels = new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer);
        const inked = pixels.reduce((sum, pixel) => sum + (pixel ? 1 : 0), 0) / pixels.length;
        return { inked, colours: new Set(pixels).size };
      });
    }, selector);
  }

  /** Waits until some canvases show that many colours. */
  async untilDrawn(selector, colours, count = 1) {
    const end = performance.now() + 10_000;
    for (;;) {
      const drawn = await this.drawnIn(selector);
      if (drawn.length === count && drawn.every((one) => one.colours >= colours)) return;
      if (performance.now() > end)
        refuse(`${selector} shows ${drawn.map((one) => one.colours).join(', ') || 'no'} colours`);
      await sleep(100);
    }
  }

  textOf(selector) {
    return this.evaluate((selector) => document.querySelector(selector)?.innerText, selector);
  }

  /** Chooses an option of a `select`. */
  select(selector, value) {
    return this.evaluate(
      (selector, value) => {
        const element = document.querySelector(selector);
        element.value = value;
        element.dispatchEvent(new Event('change', { bubbles: true }));
      },
      selector,
      value,
    );
  }

  /** Replaces the text of an input by keyboard. */
  async retype(selector, text) {
    await this.click(selector);
    await this.evaluate((selector) => document.querySelector(selector).select(), selector);
    await this.type(text);
  }

  /** What the clipboard has, pasted by keyboard into a text area. */
  async paste() {
    await this.evaluate(() => {
      const area = Object.assign(document.createElement('textarea'), { id: 'test-paste' });
      // In view, or the page would scroll to it, even after this has ended.
      Object.assign(area.style, { position: 'fixed', top: '0' });
      document.body.append(area);
      area.focus({ preventScroll: true });
    });
    await this.press('v', ['Control']);
    await sleep(100);
    return this.evaluate(() => {
      const area = document.querySelector('#test-paste');
      area.remove();
      return area.value;
    });
  }

  /** How far the page scrolls sideways, in pixels, and what makes it. */
  overflow() {
    return this.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      if (scrollWidth <= clientWidth) return undefined;
      const isScrolled = (element) => {
        for (let at = element.parentElement; at; at = at.parentElement)
          if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(at).overflowX)) return true;
        return false;
      };
      const wide = [...document.querySelectorAll('body *')].filter(
        (element) =>
          element.getBoundingClientRect().right > clientWidth + 1 && !isScrolled(element),
      );
      const names = wide
        .slice(-3)
        .map(({ tagName, id, className }) =>
          [
            tagName.toLowerCase(),
            id && `#${id}`,
            className && ` of ${className.baseVal ?? className}`,
          ]
            .filter(Boolean)
            .join(''),
        );
      return `${scrollWidth - clientWidth} pixels, by ${names.join(', ')}`;
    });
  }

  /** What the page's own record says since the last call. */
  recorded() {
    return this.evaluate(() => window.testRecord?.splice(0) ?? ['the page has no record']);
  }
}

class PuppeteerTab extends Tab {
  #errors;

  constructor(engine, { page, errors }, server) {
    super(engine, server);
    this.page = page;
    this.#errors = errors;
  }

  async goto(path = '/') {
    await this.page.goto(this.server.url(path), { waitUntil: 'load' });
  }

  evaluate(body, ...args) {
    return this.page.evaluate(body, ...args);
  }

  /** Moves the pointer through points; presses its button at the first, releases it at the last. */
  async drag([first, ...rest]) {
    const { mouse } = this.page;
    await mouse.move(first.x, first.y);
    await mouse.down();
    for (const { x, y } of rest) await mouse.move(x, y);
    await mouse.up();
  }

  async hover(points) {
    for (const { x, y } of points) await this.page.mouse.move(x, y);
  }

  async press(key, modifiers = []) {
    const { keyboard } = this.page;
    for (const modifier of modifiers) await keyboard.down(modifier);
    // Chromium does the editing that a shortcut stands for only if it is told.
    const commands = modifiers.includes('Control') && key === 'v' ? ['Paste'] : [];
    await keyboard.press(key, this.engine === 'chromium' ? { commands } : {});
    for (const modifier of modifiers) await keyboard.up(modifier);
  }

  type(text) {
    return this.page.keyboard.type(text);
  }

  setViewport(viewport) {
    return this.page.setViewport(viewport);
  }

  async errors() {
    return [...new Set([...this.#errors(), ...(await this.recorded())])];
  }

  async close() {
    await this.page.close();
  }
}

/** The code points of keys that are not characters. */
const keys = {
  ArrowDown: 0xe015,
  ArrowLeft: 0xe012,
  ArrowRight: 0xe014,
  ArrowUp: 0xe013,
  Backspace: 0xe003,
  Control: 0xe009,
  Delete: 0xe017,
  End: 0xe010,
  Enter: 0xe007,
  Escape: 0xe00c,
  Home: 0xe011,
  Shift: 0xe008,
  Tab: 0xe004,
};

/** The one tab of a browser that WebDriver drives. */
class WebDriverTab extends Tab {
  constructor(driver, server) {
    super('webkit', server);
    this.driver = driver;
  }

  async goto(path = '/') {
    await this.driver.post('url', { url: this.server.url(path) });
  }

  async evaluate(body, ...args) {
    const script = `
      const [args, done] = arguments;
      (async () => (${body})(...args))().then(
        (value) => done({ value }),
        (error) => done({ error: error + ' ' + (error?.stack ?? '') }),
      );`;
    const { value, error } = await this.driver.post('execute/async', { script, args: [args] });
    if (error !== undefined) throw new Error(error);
    return value ?? undefined;
  }

  async #pointer(actions) {
    const parameters = { pointerType: 'mouse' };
    await this.driver.post('actions', {
      actions: [{ type: 'pointer', id: 'mouse', parameters, actions }],
    });
  }

  async drag(points) {
    const moves = points.map(moveTo);
    await this.#pointer([
      moves[0],
      { type: 'pointerDown', button: 0 },
      ...moves.slice(1),
      { type: 'pointerUp', button: 0 },
    ]);
  }

  async hover(points) {
    await this.#pointer(points.map(moveTo));
  }

  async #keys(actions) {
    await this.driver.post('actions', { actions: [{ type: 'key', id: 'keyboard', actions }] });
  }

  async press(key, modifiers = []) {
    const values = [...modifiers, key].map((name) =>
      name in keys ? String.fromCodePoint(keys[name]) : name,
    );
    await this.#keys([
      ...values.map((value) => ({ type: 'keyDown', value })),
      ...values.reverse().map((value) => ({ type: 'keyUp', value })),
    ]);
  }

  async type(text) {
    await this.#keys(
      [...text].flatMap((value) => [
        { type: 'keyDown', value },
        { type: 'keyUp', value },
      ]),
    );
  }

  /** The window is higher than the viewport, by its bar. */
  async setViewport({ width, height }) {
    const bar = await this.evaluate(() => outerHeight - innerHeight);
    await this.driver.post('window/rect', { x: 0, y: 0, width, height: height + bar });
    await this.waitFor(`a width of ${width}`, (width) => innerWidth === width, { args: [width] });
  }

  async errors() {
    return [...new Set(await this.recorded())];
  }

  /** The next one is the same tab. */
  async close() {
    await this.driver.post('url', { url: 'about:blank' });
  }
}

const moveTo = ({ x, y }) => ({
  type: 'pointerMove',
  duration: 10,
  x: Math.round(x),
  y: Math.round(y),
});
