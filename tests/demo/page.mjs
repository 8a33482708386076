// Tests of what no part of the page owns.
import { setTimeout as sleep } from 'node:timers/promises';
import { nav } from '../../docs/.vitepress/sidebar.mjs';
import { desktop, startBrowser } from '../browser/tabs.mjs';
import { refuse } from '../package/results.mjs';
import { expectHash } from './bits.mjs';
import { expectCopies } from './code.mjs';
import { drawSeven } from './digit.mjs';
import { isModel } from './llm.mjs';
import { expectNoPeers } from './meter.mjs';
import { isOfModels } from './onnx.mjs';
import { serveDemo, weightOf } from './served.mjs';

/** Bytes after brotli that the page may transfer, without what visitors ask for. */
const budget = 428_000;
/** ms of a task that a visitor notices. */
const longestTask = 50;

/**
 * Fails if the page told of an error, or asked for a file that is not there.
 *
 * @param before what it told before it was loaded again
 */
export async function expectQuiet(tab, before = []) {
  const errors = [
    ...before,
    ...(await tab.errors()),
    ...tab.server.missing().map((path) => `it asked for ${path}, which is not there`),
    ...(await tab.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .filter(({ name }) => !name.startsWith(`${location.origin}/`))
        .map(({ name }) => `request to another host: ${name}`),
    )),
  ];
  if (errors.length > 0) refuse(errors.slice(0, 20).join('\n'));
}

/** The page was just loaded. */
export async function testPaint(test, tab) {
  await test('shows the figure above the fold', async () => {
    const shown = await tab.waitFor('the figure', () => {
      const [own, times] = ['own', 'times'].map((id) => document.querySelector(`#figure-${id}`));
      const { bottom } = times.getBoundingClientRect();
      return (
        times.textContent !== '-' && { own: own.textContent, times: times.textContent, bottom }
      );
    });
    const fold = await tab.evaluate(() => innerHeight);
    if (shown.bottom > fold) refuse(`it ends at ${shown.bottom} of ${fold} pixels`);
    if (!(Number.parseFloat(shown.times) > 1)) refuse(`it shows ${shown.times}`);
    return `${shown.own} GOP/s, ${shown.times} plain JavaScript`;
  });
  await test('paints before it fetches WebAssembly', async () => {
    const painted = await tab.waitFor('the page paints', () => {
      const [entry] = performance.getEntriesByName('first-contentful-paint');
      return entry && performance.timeOrigin + entry.startTime;
    });
    const fetched = () => tab.server.requested().find(({ path }) => path.endsWith('.wasm'));
    for (let waited = 0; waited < 20_000 && !fetched(); waited += 20) await sleep(20);
    const first = fetched() ?? refuse('the page fetches no WebAssembly');
    const wait = first.at - painted;
    if (wait <= 0) refuse(`WebAssembly is fetched ${Math.round(-wait)} ms before the first paint`);
    return `${Math.round(wait)} ms`;
  });
}

/** The head: its links, and the switch, whose preference the site shares. */
export async function testHead(test, tab) {
  await test('has the links of the site', async () => {
    const texts = await tab.evaluate(() =>
      [...document.querySelectorAll('.top :is(nav a, .search)')].map((link) => link.textContent),
    );
    const expected = nav.flatMap(({ text, items }) =>
      (items ?? [{ text }]).map((each) => each.text),
    );
    const missing = [...expected, 'Search'].filter((text) => !texts.includes(text));
    if (missing.length > 0) refuse(`the head has no ${missing.join()}`);
    const cut = await tab.evaluate(() => {
      const { scrollWidth, clientWidth } = document.querySelector('.top nav');
      return scrollWidth - clientWidth;
    });
    if (cut > 0) refuse(`${cut} pixels of the links are out of sight`);
    return texts.join(', ');
  });
  await test('shows the install line above the fold, and copies it', async () => {
    const { bottom, fold } = await tab.evaluate(() => {
      const { bottom } = document.querySelector('.install').getBoundingClientRect();
      return { bottom: bottom + scrollY, fold: innerHeight };
    });
    if (bottom > fold) refuse(`it ends at ${bottom} of ${fold} pixels`);
    return await expectCopies(tab, '.install', 'npm install wgemm');
  });
  await test('stores light and dark as the site does', async () => {
    const look = () =>
      tab.evaluate(() => ({
        isDark: document.documentElement.classList.contains('dark'),
        checked: document.querySelector('#theme').getAttribute('aria-checked'),
        stored: localStorage.getItem('vitepress-theme-appearance'),
        page: getComputedStyle(document.body).backgroundColor,
      }));
    const expect = async (isDark, stored) => {
      // The switch is told when the page has loaded.
      let found = await look();
      for (let i = 0; i < 20 && found.checked !== String(isDark); ++i) {
        await sleep(100);
        found = await look();
      }
      if (found.isDark !== isDark || found.checked !== String(isDark) || found.stored !== stored)
        refuse(`expected ${isDark ? 'dark' : 'light'}, ${stored}: ${JSON.stringify(found)}`);
      return found.page;
    };
    const light = await expect(false, null);
    await tab.click('#theme');
    const dark = await expect(true, 'dark');
    if (dark === light) refuse(`the page stays ${light}`);
    await tab.goto();
    await expect(true, 'dark');
    await tab.click('#theme');
    await expect(false, 'auto');
    await tab.evaluate(() => localStorage.clear());
  });
}

/** All parts were driven, and no peer was fetched. */
export async function testWhole(test, tab, { demo, engine, isIsolated }) {
  const paths = tab.server.requested().map(({ path }) => path);
  await test('fetches no peer by itself', () => expectNoPeers(paths));
  if (engine === 'chromium')
    await test(`weighs less than ${budget / 1000} kB`, () => {
      const weight = weightOf(
        demo,
        paths.filter((path) => !isModel(path) && !isOfModels(path)),
      );
      if (weight > budget) refuse(`it weighs ${weight} bytes`);
      return `${weight} bytes`;
    });
  await test('has a name for every control and picture', async () => {
    const nameless = await tab.evaluate(() =>
      [
        ...document.querySelectorAll(
          'main :is(button, input, select, textarea, canvas, progress, [role=img], [tabindex="0"])',
        ),
      ]
        .filter((element) => {
          const ids = element.getAttribute('aria-labelledby')?.split(' ') ?? [];
          const name =
            element.getAttribute('aria-label') ||
            ids.map((id) => document.getElementById(id)?.textContent ?? '').join('') ||
            [...(element.labels ?? [])].map((label) => label.textContent).join('') ||
            (element.tagName === 'BUTTON' ? element.textContent : '');
          // Code is focusable so that a keyboard scrolls it.
          return (
            !name.trim() &&
            element.tagName !== 'PRE' &&
            !element.parentElement.closest('[aria-hidden=true], [role=img]') &&
            element.ariaHidden !== 'true'
          );
        })
        .map((element) => element.outerHTML.slice(0, 100)),
    );
    if (nameless.length > 0) refuse(nameless.join('\n'));
  });
  await test('holds still when a part above the window grows', async () => {
    await tab.reveal('#bits-title');
    const moved = await tab.evaluate(async () => {
      const frames = async () => {
        for (let i = 0; i < 3; ++i) await new Promise(requestAnimationFrame);
      };
      const title = document.querySelector('#bits-title');
      const { style } = document.querySelector('#digit');
      await frames();
      const { top } = title.getBoundingClientRect();
      style.paddingBottom = '500px';
      await frames();
      const moved = title.getBoundingClientRect().top - top;
      style.paddingBottom = '';
      await frames();
      return moved;
    });
    if (Math.abs(moved) > 1) refuse(`the page moves by ${moved} pixels`);
  });
  await test(`does not scroll sideways, ${isIsolated ? 'desktop' : 'phone'}`, async () => {
    const overflow = await tab.overflow();
    if (overflow) refuse(overflow);
  });
  if (!isIsolated)
    await test('moves nothing if the visitor wants less motion', async () => {
      const moving = await tab.evaluate(() => {
        if (!matchMedia('(prefers-reduced-motion: reduce)').matches)
          return ['the browser was not told'];
        return [
          ...[...document.querySelectorAll('*')]
            .filter((element) => {
              const style = getComputedStyle(element);
              const lasts = (times) => times.split(',').some((time) => Number.parseFloat(time) > 0);
              return (
                (style.transitionProperty !== 'none' && lasts(style.transitionDuration)) ||
                (style.animationName !== 'none' && lasts(style.animationDuration)) ||
                (style.scrollBehavior === 'smooth' && element === document.documentElement)
              );
            })
            .map(({ tagName, className }) => `${tagName} ${className.baseVal ?? className} moves`),
          ...document.getAnimations().map((animation) => `${animation.effect?.target} is animated`),
        ];
      });
      if (moving.length > 0) refuse(moving.slice(0, 10).join('\n'));
    });
}

/** Fails if a part does not start, or says that something is not to be had. */
async function expectStarted(tab, parts) {
  for (const part of parts) {
    await tab.reveal(`#${part}`);
    const says = await tab.waitFor(
      `${part} starts`,
      (part) => {
        const section = document.querySelector(`#${part}`);
        const notice = section.querySelector('.notice');
        return (!notice.hidden && notice.innerText) || ('started' in section.dataset && ' ');
      },
      { args: [part], timeout: 90_000 }, // without workers, a part may measure for a minute
    );
    if (says.trim()) refuse(`${part} says: ${says}`);
  }
}

/** @param open opens a tab on a changed page */
export async function testWithoutWorkers(test, open, viewport, parts) {
  await test('works without workers', async () => {
    const tab = await open({ hasWorkers: false }, viewport);
    try {
      await tab.goto();
      const says = await tab.waitFor('the notice', () => {
        const notice = document.querySelector('#lack');
        return !notice.hidden && notice.innerText;
      });
      if (!/workers/.test(says)) refuse(`the notice says: ${says}`);
      await tab.waitFor(
        'the figure',
        () => document.querySelector('#figure').dataset.state === 'done',
      );
      await expectStarted(tab, parts);
      await drawSeven(tab);
      await tab.reveal('#bits');
      await expectHash(tab);
      await expectQuiet(tab);
    } finally {
      await tab.close();
      await tab.server.close();
    }
  });
}

/** @param open opens a tab on a changed page */
export async function testSavingData(test, open, viewport) {
  await test('starts nothing large if the visitor saves data', async () => {
    const tab = await open({ savesData: true }, viewport);
    try {
      await tab.goto();
      await expectStarted(tab, ['find', 'digit']);
      await sleep(500);
      if (await tab.evaluate(() => document.querySelector('#find-list').children.length))
        refuse('it made vectors');
      const isOfDigits = ({ path }) => /\/(digits|network)[^/]*\.bin$/.test(path);
      const fetched = () => tab.server.requested().filter(isOfDigits);
      if (fetched().length > 0) refuse(`it fetched ${fetched()[0].path}`);
      await tab.click('#digit-pad');
      await tab.waitFor('the digits', () => !document.querySelector('#digit-next').disabled);
      if (fetched().length === 0) refuse('it fetched no digits');
      await expectQuiet(tab);
    } finally {
      await tab.close();
      await tab.server.close();
    }
  });
}

export async function testWithoutWasm(test, open, viewport, parts) {
  await test('says why it cannot compute, if the policy forbids WebAssembly', async () => {
    const tab = await open({ hasWasm: false }, viewport);
    try {
      await tab.goto();
      for (const part of parts) {
        await tab.reveal(`#${part}`);
        if (part === 'find') await tab.click('#find-make');
        if (part === 'onnx') await tab.click('#onnx-sample');
        if (part === 'embed') continue; // it computes nothing before it has a model
        const says = await tab.waitFor(
          `the notice of ${part}`,
          (part) => {
            const notice = document.querySelector(`#${part} .notice`);
            return !notice.hidden && notice.innerText;
          },
          { args: [part] },
        );
        if (!says.includes('wasm-unsafe-eval')) refuse(`the notice of ${part} says: ${says}`);
      }
      await tab.waitFor(
        'plain JavaScript finds ten',
        () => document.querySelector('#find-list').children.length === 10,
      );
      const uncaught = (await tab.errors()).filter((error) => error.startsWith('error:'));
      if (uncaught.length > 0) refuse(uncaught.join('\n'));
    } finally {
      await tab.close();
      await tab.server.close();
    }
  });
}

/**
 * Tasks of the page while it measures its figure, in Chromium slowed four times: ms of processor
 * time, which other programs do not lengthen as they do time on the clock.
 */
async function watchFigure(server) {
  const browser = await startBrowser('chromium');
  try {
    const tab = await browser.open(server, desktop);
    const devtools = await tab.page.createCDPSession();
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 });
    await tab.page.tracing.start({
      categories: ['disabled-by-default-devtools.timeline', 'blink.user_timing'],
    });
    await tab.goto();
    // Watches from inside, since questions from outside are tasks, too.
    const figure = await tab.evaluate(
      () =>
        new Promise((resolve) => {
          const gauge = document.querySelector('#figure');
          const look = () => {
            const { state } = gauge.dataset;
            const isStarted = performance.getEntriesByName('test-start').length > 0;
            if (state && !isStarted) performance.mark('test-start');
            if (state !== 'done') return;
            performance.mark('test-end');
            resolve(document.querySelector('#figure-times').textContent);
          };
          new MutationObserver(look).observe(gauge, { attributes: true });
          look();
        }),
    );
    const { traceEvents } = JSON.parse(new TextDecoder().decode(await tab.page.tracing.stop()));
    const markOf = (name) =>
      traceEvents.find((event) => event.name === name) ?? refuse(`the trace has no ${name}`);
    const [start, end] = [markOf('test-start'), markOf('test-end')];
    const tasks = traceEvents.filter(
      ({ name, pid, tid }) => name === 'RunTask' && pid === start.pid && tid === start.tid,
    );
    const during = tasks.filter(({ ts, dur }) => ts + dur > start.ts && ts < end.ts);
    if (during.length === 0) refuse('the trace has no tasks');
    return {
      figure,
      ms: (end.ts - start.ts) / 1000,
      longest: Math.max(...during.map(({ tdur }) => tdur / 1000)),
    };
  } finally {
    await browser.close();
  }
}

/**
 * Tries a few times: a processor that others slow down takes more time for the same task. A task
 * that is too long by itself is so each time.
 */
export async function testSlowMachine(test, demo) {
  await test(`no task above ${longestTask} ms while the page measures`, async () => {
    const server = await serveDemo(demo, { isIsolated: true });
    const told = [];
    try {
      for (let attempt = 0; attempt < 5; ++attempt) {
        const { ms, figure, longest } = await watchFigure(server);
        if (!/times/.test(figure)) refuse(`the figure is ${figure}`);
        const shown = `${Math.round(longest)} ms, of ${Math.round(ms)} ms`;
        if (longest <= longestTask) return `the longest ${shown}`;
        told.push(shown);
      }
      refuse(`tasks of ${told.join('; then ')}`);
    } finally {
      await server.close();
    }
  });
}
