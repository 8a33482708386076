// Opens every page of build/site in Chromium, Firefox and WebKitGTK, at the width of a phone or of
// a desktop. The server has the site in a deep folder, under a strict Content-Security-Policy.
//   npm run test:site          builds the site first
//     --engine firefox,webkit  some of the browsers
//     --smoke                  Chromium only, and a tenth of the generated pages
//     --page TEXT              pages whose path contains the text, and no other tests
//     --screenshots FOLDER     pictures of these pages, by Chromium, at both widths, light and dark
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { checkSite } from '../../docs/.vitepress/build/check.mjs';
import { pagesIn } from '../../docs/.vitepress/build/finish.mjs';
import { fail, main, root } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import { engineNames as engines } from '../browser/engines.mjs';
import { pageAt, startServer } from '../browser/server.mjs';
import { addScripts, desktop, phone, recordFiles, startBrowser } from '../browser/tabs.mjs';
import { readBlocks } from '../package/pages.mjs';
import { refuse, Results } from '../package/results.mjs';
import { follow, load } from './browse.mjs';
import { checkAddresses, checkHeads, searchWords, weighHome } from './files.mjs';
import { siteHeaders } from './headers.mjs';
import { words } from './words.mjs';

const site = join(root, 'build', 'site');
const prefix = '/some/deep/folder/';

function readArguments() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        engine: { type: 'string' },
        smoke: { type: 'boolean', default: false },
        page: { type: 'string', default: '' },
        screenshots: { type: 'string' },
      },
    }));
  } catch ({ message }) {
    fail(`site: ${message}`);
  }
  const used = values.engine?.split(',') ?? (values.smoke ? ['chromium'] : engines);
  const wrong = used.find((engine) => !engines.includes(engine));
  if (wrong !== undefined) fail(`site: --engine has ${wrong}; there are ${engines.join(', ')}.`);
  return { ...values, used };
}

/** Fails with all sentences of a list, if it has any. */
function expectNone(errors) {
  if (errors.length === 0) return;
  const shown = errors.slice(0, 30).join('\n');
  refuse(errors.length > 30 ? `${shown}\nand ${errors.length - 30} more` : shown);
}

/** Many pages of the same layout: the reference, and the decisions. */
const isGenerated = (name) => /^(reference|design\/decisions)\//.test(name);

/**
 * There are two ways to open a page: by its address at the width of a phone, and by a link at the
 * width of a desktop. Each browser opens most pages in both ways. Each generated page is opened by
 * its address in one browser, and by a link in another: with three, this takes a third of the time.
 */
function splitPages(chosen, used, engine) {
  const isTurn = (name, i, turn) =>
    !isGenerated(name) || (i + used.indexOf(engine) + turn) % used.length === 0;
  return {
    loaded: chosen.filter((name, i) => isTurn(name, i, 0)),
    linked: chosen
      .filter((name, i) => isTurn(name, i, 1))
      .filter((name) => !['index.html', '404.html', 'demo/index.html'].includes(name)),
  };
}

/** Runs `body` for all pages, in as many tabs as make the browser fast. */
async function inTabs(pages, browser, open, body) {
  const waiting = [...pages];
  const work = async () => {
    const tab = await open();
    while (waiting.length > 0) await body(tab, waiting.shift());
    await tab.close();
  };
  await Promise.all(Array.from({ length: browser.hasOneTab ? 1 : 3 }, work));
}

// --- without a browser ---------------------------------------------------------------------------

async function testFiles(results) {
  const test = (what, body) => results.test('site', 'files', what, body);
  await test('links lead to pages and headings, nothing comes from another host', () =>
    expectNone(checkSite(site)));
  await test('links of README.md to the site', () => {
    const { homepage } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    if (!homepage) refuse('package.json has no homepage');
    const home = homepage.replace(/(#.*|\/)?$/, '/');
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const links = [...readme.matchAll(/https?:\/\/[^\s)>"'`]+/g)]
      .map(([link]) => link)
      .filter((link) => link.startsWith(home));
    if (links.length === 0) refuse(`README.md has no link to ${home}`);
    const there = pages();
    const errors = links.flatMap((link) => {
      const { pathname, hash } = new URL(link);
      const path = decodeURIComponent(pathname.slice(new URL(home).pathname.length));
      const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
      if (!there.has(file)) return [`${link}: there is no ${file}`];
      const text = readFileSync(join(site, file), 'utf8');
      return hash === '' || text.includes(`id="${decodeURIComponent(hash.slice(1))}"`)
        ? []
        : [`${link}: ${file} has no ${hash}`];
    });
    expectNone(errors);
    return `${links.length} links`;
  });
  await test('old addresses lead to a page and its place', () => expectNone(checkAddresses(site)));
  await test('the first example of README.md is on the home page', () => {
    const first = (page) => {
      const blocks = readBlocks(page);
      const at = blocks.findIndex(({ language }) => language === 'js');
      return JSON.stringify(blocks.slice(at, at + 2).map(({ code }) => code));
    };
    if (first('README.md') !== first('docs/index.md'))
      refuse('docs/index.md has another example, or another output');
  });
  await test('the home page is small', () => weighHome(site, refuse));
  await test('search knows the words of users', async () => {
    expectNone(await searchWords(site));
    return `${words.length} words`;
  });
  await test('heads of pages, the sitemap and robots.txt', () => expectNone(checkHeads(site)));
  await test('every row of the lab is on its page', () => {
    const lab = join(root, 'docs', 'lab');
    let total = 0;
    for (const name of readdirSync(lab).filter((name) => name.endsWith('.tsv'))) {
      const text = readFileSync(join(lab, name), 'utf8').trimEnd();
      const rows = text.split('\n').length - 1;
      const page = readFileSync(join(site, 'lab', name.replace('.tsv', '.html')), 'utf8');
      const shown = page.match(/<tr data-area/g)?.length ?? 0;
      if (shown !== rows) refuse(`${name} has ${rows} rows, its page ${shown}`);
      total += rows;
    }
    if (total === 0) refuse('docs/lab has no rows');
    return `${total} rows`;
  });
}

const pages = () => new Set(pagesIn(site));

// --- in a browser --------------------------------------------------------------------------------

/** What is wrong with the page that a tab shows, from what `load` or `follow` returned. */
async function errorsOf(tab, name, { isAlive, title, at }) {
  const address = tab.server.url(name).replace(/index\.html$/, '');
  const overflow = await tab.overflow();
  const errors = [
    ...(isAlive ? [] : ['its scripts do not start']),
    ...(title ? [] : ['it has no title']),
    ...(at === undefined || at === address ? [] : [`it is at ${at}`]),
    ...(overflow ? [`it scrolls sideways by ${overflow}`] : []),
    ...(await tab.errors()),
  ];
  return errors.map((what) => `${name}: ${what}`);
}

async function testBrowser(engine, results, server, { chosen, loaded, linked, isPart }) {
  const test = (what, body) => results.test('site', engine, what, body);
  const browser = await startBrowser(engine);
  const open = (viewport) => browser.open(server, viewport);
  try {
    await test('pages by their address, at the width of a phone', async () => {
      const errors = [];
      await inTabs(
        isPart ? chosen : loaded,
        browser,
        () => open(phone),
        async (tab, name) => {
          errors.push(...(await errorsOf(tab, name, await load(tab, name))));
        },
      );
      expectNone(errors);
      return `${(isPart ? chosen : loaded).length} pages`;
    });
    if (isPart) return;

    await test('pages by links, at the width of a desktop', async () => {
      const tab = await open(desktop);
      const errors = [];
      for (const [i, name] of linked.entries()) {
        // WebKit lets a document change its address 100 times in 10 s. A link changes it twice.
        if (i % 40 === 0) await load(tab, 'index.html');
        errors.push(...(await errorsOf(tab, name, await follow(tab, name))));
      }
      await tab.close();
      expectNone(errors);
      return `${linked.length} pages`;
    });

    await test('search finds transB', async () => {
      const tab = await open(desktop);
      const start = 'guide/getting-started.html';
      await load(tab, start);
      await tab.click('.VPNavBarSearchButton');
      await tab.retype('.VPLocalSearchBox input', 'transB');
      const result = await tab.waitFor(
        'a result',
        () => document.querySelector('.VPLocalSearchBox .result')?.href,
      );
      await tab.press('Enter');
      const at = await tab.waitFor(
        'the page of the result',
        (old) =>
          location.href !== old &&
          document.querySelector('.VPContent h1') &&
          !document.querySelector('.VPLocalSearchBox') &&
          location.href,
        { args: [server.url(start)] },
      );
      const { pathname } = new URL(at);
      if (pathname !== new URL(result).pathname) refuse(`${result} is at ${at}`);
      const says = await tab.textOf('.VPContent');
      if (!says.includes('transB')) refuse(`${pathname} says nothing of transB`);
      expectNone(await tab.errors());
      await tab.close();
      return pathname.slice(prefix.length);
    });

    await test('an address opens the search', async () => {
      const tab = await open(desktop);
      await load(tab, 'index.html?search');
      await tab.waitFor('the input of the search', () =>
        Boolean(document.querySelector('.VPLocalSearchBox input')),
      );
      expectNone(await tab.errors());
      await tab.close();
    });

    await test('the menus of a phone lead to other pages', async () => {
      const tab = await open(phone);
      const reached = [];
      for (const [name, button, link] of [
        ['guide/getting-started', '.VPLocalNav .menu', '.VPSidebar.open a[href$="/layers.html"]'],
        ['guide/layers', '.VPNavBarHamburger', '.VPNavScreen a[href$="/recipes/index.html"]'],
      ]) {
        await load(tab, `${name}.html`);
        await tab.click(button);
        await tab.click(link);
        reached.push(
          await tab.waitFor(
            `another page than ${name}`,
            (name) => !location.pathname.includes(name) && location.pathname,
            { args: [name] },
          ),
        );
      }
      expectNone(await tab.errors());
      await tab.close();
      return reached.map((path) => path.slice(prefix.length)).join(', ');
    });

    const searchTime = () =>
      document.querySelector('.home-live[data-state=running] figcaption strong')?.textContent;

    await test('the home page searches by itself, and stops when asked', async () => {
      const tab = await open(desktop);
      await load(tab, 'index.html');
      const said = await tab.waitFor('a search', searchTime);
      if (!/^(< )?\d+(\.\d)? ms$/.test(said)) refuse(`a search takes "${said}"`);
      await tab.click('.home-live button');
      await tab.waitFor('it stops', () =>
        document.querySelector('.home-live').matches('[data-state=paused]'),
      );
      expectNone(await tab.errors());
      await tab.close();
      return said;
    });

    // Only Chromium changes these settings for one tab.
    if (engine === 'chromium') {
      await test('the home page loads no search for visitors who want less', async () => {
        for (const ask of [
          (page) =>
            page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]),
          (page) =>
            page.evaluateOnNewDocument(() =>
              Object.defineProperty(navigator, 'connection', { value: { saveData: true } }),
            ),
        ]) {
          const tab = await open(desktop);
          const requests = [];
          tab.page.on('request', (request) => requests.push(request.url()));
          await ask(tab.page);
          await load(tab, 'index.html');
          await tab.waitFor('the button', () =>
            document.querySelector('.home-live').matches('[data-state=asked]'),
          );
          await sleep(1000);
          if (requests.some((url) => url.includes('/live/')))
            refuse('it starts without being asked');
          await tab.click('.home-live button');
          await tab.waitFor('a search', searchTime);
          expectNone(await tab.errors());
          await tab.close();
        }
      });
    }

    await test('dark and light', async () => {
      const tab = await open(desktop);
      const isDark = () => tab.evaluate(() => document.documentElement.classList.contains('dark'));
      await load(tab, 'benchmarks/node-1.html');
      const before = await isDark();
      await tab.click('.VPNavBarAppearance button');
      await tab.waitFor(
        'the other colours',
        (before) => document.documentElement.classList.contains('dark') !== before,
        { args: [before] },
      );
      await load(tab, 'benchmarks/node-1.html');
      const after = await isDark();
      if (after === before) refuse('the choice is lost when the page loads again');
      const shown = await tab.evaluate(() =>
        [...document.querySelectorAll('.picture img')]
          .filter((picture) => picture.offsetWidth > 0)
          .map(({ src }) => src),
      );
      expectNone(await tab.errors());
      await tab.close();
      const wanted = after ? '-dark.svg' : '-light.svg';
      if (shown.length !== 1 || !shown[0].endsWith(wanted))
        refuse(`the page shows ${shown.join(' and ') || 'no picture'}`);
    });

    await test('charts show every bar and its value', async () => {
      let shown = 0;
      for (const size of [phone, desktop]) {
        const tab = await open(size);
        await load(tab, 'benchmarks/index.html');
        const charts = await tab.evaluate(() =>
          [...document.querySelectorAll('.chart')].map((chart) => {
            const boxOf = (element) => element.getBoundingClientRect();
            const rows = [...chart.querySelectorAll('.chart-row:not(.chart-axis)')];
            const isCut = (row) => {
              const [bar, track, value] = ['bar', 'track', 'value'].map((name) =>
                boxOf(row.querySelector(`.chart-${name}`)),
              );
              const isBarCut = bar.width < 1 || bar.right > track.right + 0.5;
              return isBarCut || value.right > boxOf(chart).right + 0.5;
            };
            return {
              caption: chart.querySelector('figcaption').textContent,
              peers: rows.filter((row) => !row.classList.contains('own')).length,
              own: rows.filter((row) => row.classList.contains('own')).length,
              cut: rows.filter(isCut).map((row) => row.textContent),
            };
          }),
        );
        if (charts.length !== 3) refuse(`the page has ${charts.length} charts`);
        for (const { caption, peers, own, cut } of charts) {
          if (!/\d{4}-\d\d-\d\d/.test(caption)) refuse(`a chart has no date: ${caption}`);
          if (own === 0 || peers < own) refuse(`${caption}: ${own} bars, ${peers} of peers`);
          if (cut.length > 0) refuse(`${size.width} px, cut: ${cut.join('; ')}`);
          shown += own + peers;
        }
        expectNone(await tab.errors());
        await tab.close();
      }
      return `${shown} bars`;
    });

    await test('code fits on a desktop, and boxes that scroll show it', async () => {
      let scrolled = 0;
      for (const size of [phone, desktop]) {
        const tab = await open(size);
        for (const name of [
          'guide/accuracy',
          'guide/own-module',
          'operators/gemm',
          'benchmarks/node-1',
        ]) {
          await load(tab, `${name}.html`);
          const boxes = await tab.evaluate(() =>
            [...document.querySelectorAll('.vp-doc :is(pre, table, .picture)')]
              .filter((box) => box.scrollWidth > box.clientWidth)
              .map((box) => ({
                text: box.textContent.trim().slice(0, 60),
                isCode: box.localName === 'pre',
                isCut: getComputedStyle(box).overflowX !== 'auto',
                hasSign: getComputedStyle(box).backgroundAttachment.includes('local'),
              })),
          );
          for (const { text, isCode, isCut, hasSign } of boxes) {
            if (isCode && size === desktop) refuse(`${name}: code does not fit: ${text}`);
            if (isCut || !hasSign) refuse(`${name}: cut without a sign: ${text}`);
          }
          scrolled += boxes.length;
        }
        expectNone(await tab.errors());
        await tab.close();
      }
      if (scrolled === 0) refuse('no box scrolls on a phone');
      return `${scrolled} boxes scroll`;
    });

    await test('every run of the bench', async () => {
      const tab = await open(phone);
      await load(tab, 'benchmarks/node-1.html');
      const runs = await tab.evaluate(() =>
        [...document.querySelectorAll('select option')].map(({ value }) => value),
      );
      if (runs.length < 2) refuse(`the page has ${runs.length} runs`);
      for (const run of runs) {
        await tab.select('select', run);
        const shown = await tab.textOf('.facts');
        if (!shown.includes(run.slice(0, 10))) refuse(`the page of ${run} says ${shown}`);
      }
      expectNone(await tab.errors());
      await tab.close();
      return `${runs.length} runs`;
    });

    await test('the filter of the lab', async () => {
      const tab = await open(phone);
      await load(tab, 'lab/rows.html');
      const count = () =>
        tab.evaluate(() => document.querySelectorAll('.lab-rows tbody tr:not([hidden])').length);
      const all = await count();
      const word = await tab.textOf('.lab-rows tbody td.area');
      await tab.select('.lab-filter select', word);
      const some = await count();
      if (!(some > 0 && some < all)) refuse(`area ${word} leaves ${some} of ${all} rows`);
      await tab.retype('.lab-filter input', 'no row has these words');
      if ((await count()) !== 0) refuse('words that no row has leave some');
      expectNone(await tab.errors());
      await tab.close();
      return `${some} of ${all} rows in ${word}`;
    });
  } finally {
    await browser.close();
  }
}

async function takeScreenshots(folder, server, chosen) {
  const browser = await startBrowser('chromium');
  try {
    for (const scheme of ['light', 'dark']) {
      for (const viewport of [desktop, phone]) {
        await inTabs(
          chosen,
          browser,
          async () => {
            const tab = await browser.open(server, viewport);
            await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
            return tab;
          },
          async (tab, name) => {
            await load(tab, name);
            const path = join(folder, name.replace('.html', `-${viewport.width}-${scheme}.png`));
            mkdirSync(dirname(path), { recursive: true });
            await tab.page.screenshot({ path, fullPage: true });
          },
        );
      }
    }
  } finally {
    await browser.close();
  }
  console.log(`site: ${chosen.length * 4} pictures in ${folder}`);
}

await main(async () => {
  const { used, smoke, page: part, screenshots } = readArguments();
  await setUp('site', ...used);
  const chosen = [...pages()]
    .filter((name) => name.includes(part))
    .filter((name, i) => !smoke || !isGenerated(name) || i % 10 === 0);
  if (chosen.length === 0) fail(`site: no page of build/site contains "${part}".`);
  const recorded = [...pages()].map((name) => [
    prefix + name,
    addScripts(readFileSync(join(site, name), 'utf8')),
  ]);
  const server = await startServer({
    folders: { [prefix]: site },
    files: { ...recordFiles, ...Object.fromEntries(recorded) },
    headers: (path) => ({ ...siteHeaders(path), 'cache-control': 'max-age=3600' }),
  });
  const served = { ...server, url: (name) => server.url(prefix + name) };
  const told = pageAt(server.origin);
  const results = new Results();
  try {
    if (part === '') await testFiles(results);
    await Promise.all(
      used.map((engine) =>
        testBrowser(engine, results, served, {
          chosen,
          ...splitPages(chosen, used, engine),
          isPart: part !== '',
        }),
      ),
    );
    await results.test('site', 'server', 'every request was for a file that is there', () =>
      expectNone([...new Set(told.missing)]),
    );
    if (screenshots) await takeScreenshots(screenshots, served, chosen);
  } finally {
    await server.close();
  }
  results.finish();
});
