// Runs small apps with each bundler, and with none, in Chromium under the headers that the guide
// shows. Apps, configurations and commands are blocks of the guide. The test adds a line that
// reports what the page shows, and a script that reports errors.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../../scripts/run.mjs';
import { openIn, programOf } from '../browser/engines.mjs';
import { startServer } from '../browser/server.mjs';
import { runChild } from './child.mjs';
import { makeProject } from './packed.mjs';
import { allBlocks, blockOf, pagesWithCode, readBlocks } from './pages.mjs';
import { refuse, twoAtATime } from './results.mjs';

const tools = join(import.meta.dirname, 'node_modules');
const ownTools = join(root, 'node_modules');

const pageOf = (name) => `docs/guide/bundlers/${name}.md`;
/** The index.html of all bundlers. The page without a bundler has its own. */
const htmlPage = () =>
  blockOf(
    pagesWithCode().filter((page) => page !== pageOf('none')),
    { file: 'index.html' },
  ).code;

/** Entries that `--fast` tests with some of the bundlers. */
const testedLess = ['wgemm/inline', 'wgemm/onnx', 'wgemm/tfjs'];

/**
 * Packages that a user installs for each page of the guide. Tests report the version of the first;
 * `as` is its folder here. `configured`: the files on the page are for this version. `develop`: it
 * has a development server, which bundles dependencies. `leftOut`: the entries that are not
 * tested with `--fast`.
 */
const bundlers = [
  { name: 'Vite', packages: ['vite'], develop: true, leftOut: ['wgemm/inline'] },
  {
    ...{ name: 'Vite', packages: ['vite'], as: 'vite-7', configured: true, develop: true },
    leftOut: testedLess,
  },
  { name: 'webpack', packages: ['webpack', 'webpack-cli'], leftOut: testedLess },
  { name: 'esbuild', packages: ['esbuild'], from: ownTools },
  // It needs another plugin for packages like tfjs.
  {
    ...{ name: 'Rollup', packages: ['rollup', '@rollup/plugin-node-resolve'], withoutTfjs: true },
    leftOut: ['wgemm/inline'],
  },
].map((each) => ({ ...each, page: pageOf(each.name.toLowerCase()) }));

const folderOf = ({ from = tools, packages, as = packages[0] }) => join(from, as);
const manifestOf = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** Makes a project as a user does: packages, the tarball, and the configuration of the guide. */
function setUpProject(project, bundler) {
  if (bundler.configured) {
    const files = readBlocks(bundler.page).filter(({ file }) => file?.includes('.config.'));
    if (files.length === 0) refuse(`${bundler.page} has no configuration`);
    for (const { file, code } of files) writeFileSync(join(project, file), code);
  }
  const link = (path, target) => {
    mkdirSync(dirname(join(project, 'node_modules', path)), { recursive: true });
    symlinkSync(target, join(project, 'node_modules', path));
  };
  link('@tensorflow', join(ownTools, '@tensorflow'));
  for (const [i, name] of bundler.packages.entries()) {
    const folder = i === 0 ? folderOf(bundler) : join(bundler.from ?? tools, name);
    link(name, folder);
    const { bin = {} } = manifestOf(folder);
    for (const [program, file] of Object.entries(typeof bin === 'string' ? { [name]: bin } : bin))
      link(join('.bin', program), join(folder, file));
  }
}

/**
 * The apps of the guide, by entry: { entry, code, shows }; `shows`: the text of the page, as the
 * comment there says.
 */
function readApps() {
  const apps = allBlocks().filter(({ language, file }) => language === 'js' && file === 'app.js');
  const found = apps.map(({ page, code, line }) => {
    const [, shows] =
      /textContent = .*;\s*\/\/ (.*)$/m.exec(code) ??
      refuse(`${page}:${line} does not say what the page shows`);
    const [, entry] = /from '(wgemm[^']*)'/.exec(code);
    return { entry, code, shows };
  });
  const entries = found.map(({ entry }) => entry).sort();
  if (entries.join() !== 'wgemm,wgemm/inline,wgemm/onnx,wgemm/worker')
    throw new Error(`the guide must have an app.js for each entry; it has ${entries.join(', ')}`);
  return found;
}

/** An app of `wgemm/tfjs`. Its backend has no files, which bundlers would have to find. */
const appWithTfjs = {
  entry: 'wgemm/tfjs',
  code: `
import '@tensorflow/tfjs-backend-cpu';
import * as tf from '@tensorflow/tfjs-core';
import { createGemm } from 'wgemm';
import { install } from 'wgemm/tfjs';

const wg = await createGemm();
const before = wg.memory().inUse;
await install(tf, { wg, always: true });
const [a, b] = [tf.ones([2, 3]), tf.fill([3, 2], 2)];
for (let times = 0; times < 2; ++times) tf.matMul(a, b).dispose();
const isPacked = wg.memory().inUse > before;
document.body.textContent = [...tf.matMul(a, b).dataSync(), isPacked].join();
`,
  shows: '6,6,6,6,true',
};
/** Texts that only one of the other entries has. */
const onlyInOthers = ['_FusedMatMul', 'loadModel', 'readOnnx', 'readGGUF'];

/** The headers that the guide recommends. */
function readHeaders() {
  const { code } = blockOf('docs/guide/threads.md', { language: 'http' });
  return Object.fromEntries(
    code
      .trim()
      .split('\n')
      .map((line) => line.split(/:\s+/, 2).map((text, i) => (i === 0 ? text.toLowerCase() : text))),
  );
}

/** Reports errors of a page that occur before its program runs. */
const reporter = (origin) => `
  const tell = (error) => {
    const body = JSON.stringify({ error: String(error) });
    fetch('${origin}/result', { method: 'POST', mode: 'no-cors', body });
  };
  const address = ({ src, href }) => src ?? href;
  addEventListener('error', (event) =>
    tell(event.message ?? 'cannot load ' + address(event.target)), true);
  addEventListener('unhandledrejection', (event) => tell(event.reason?.stack ?? event.reason));
  document.addEventListener('securitypolicyviolation', (event) =>
    tell(event.violatedDirective + ' forbids ' + event.blockedURI));
`;
const withReporter = (page) =>
  page.replace('</title>', '</title>\n<script src="/reporter.js"></script>');

/** The program, and a line that reports its result. */
const withResult = (code, origin) =>
  `${code}\nfetch('${origin}/result', { method: 'POST', mode: 'no-cors', body: ` +
  `JSON.stringify({ text: document.body.textContent }) });\n`;

/** @param refused text that the error of the page must contain; absent: there must be no error */
async function expectPage(url, shows, refused) {
  const { text, error } = await openIn('chromium', url);
  if (refused) {
    if (!error?.includes(refused)) refuse(`the page says '${error}'; it must say '${refused}'`);
    return;
  }
  if (error) refuse(error);
  if (text !== shows) refuse(`the page shows '${text}'; it must show '${shows}'`);
}

/**
 * The program for an isolated page, which uses threads: the bundle must have their files too.
 */
const withThreads = ({ entry, code }) => {
  if (entry === 'wgemm/inline' || entry === 'wgemm/tfjs') return code;
  if (entry === 'wgemm/onnx')
    return `${code}
const several = await loadModel(bytes, { threads: 2 });
if ((await several.run({ x })).y.data[5] !== 0)
  throw new Error('two threads return another result');
several.dispose();`;
  return `${code}
const several = await createGemm({ threads: 2 });
const square = { data: new Float32Array(256 * 256).fill(1), shape: [256, 256] };
const product = await several.gemm(square, square);
if (several.info.threads !== 2 || product.data[5] !== 256)
  throw new Error('two threads return ' + product.data[5]);
several.dispose();`;
};

/**
 * An app that imports only `wgemm` must not have the other entries. Some apps have a copy of each
 * `wgemm-*`, such as the scripts of workers, which they do not load.
 */
function checkNothingElse(folder) {
  const scripts = readdirSync(folder, { recursive: true }).filter(
    (name) => /\.m?js$/.test(name) && !/wgemm-(models-)?worker\.js$/.test(name),
  );
  if (scripts.length === 0) refuse('the bundle has no scripts');
  for (const name of scripts) {
    const text = readFileSync(join(folder, name), 'utf8');
    const part = onlyInOthers.find((each) => text.includes(each));
    if (part) refuse(`${name} has ${part}, which the app does not import`);
  }
}

/** Serves a folder, and opens its index.html. */
async function runIn(folder, shows, headers) {
  const server = await startServer({
    folders: { '/': folder },
    files: { '/reporter.js': reporter('') },
    headers,
  });
  try {
    await expectPage(server.url('/'), shows);
  } finally {
    await server.close();
  }
}

/** Follows a page of the guide: writes files, runs commands, serves dist/. */
async function buildAndRun(project, { page }, app, headers) {
  rmSync(join(project, 'dist'), { recursive: true, force: true });
  writeFileSync(join(project, 'index.html'), withReporter(htmlPage()));
  writeFileSync(join(project, 'app.js'), withResult(withThreads(app), ''));
  const { code: commands } = blockOf(page, { language: 'sh' });
  await runChild('sh', ['-e', '-c', commands], { cwd: project });
  if (app.entry === 'wgemm') checkNothingElse(join(project, 'dist'));
  await runIn(join(project, 'dist'), app.shows, headers);
}

/**
 * Tests Vite's development server. It serves modules one by one and bundles dependencies, which
 * easily loses .wasm files.
 */
async function developAndRun(project, bundler, app, refused) {
  const { createServer } = await import(bundler.as ?? 'vite');
  // The page comes from Vite, and posts its result to our server.
  const target = { url: '' };
  const files = {
    get '/'() {
      return `<meta http-equiv="refresh" content="0; url=${target.url}" />`;
    },
  };
  const waiting = await startServer({ files });
  writeFileSync(join(project, 'index.html'), withReporter(htmlPage()));
  writeFileSync(join(project, 'reporter.js'), reporter(waiting.origin));
  writeFileSync(join(project, 'app.js'), withResult(app.code, waiting.origin));
  rmSync(join(project, 'node_modules', '.vite'), { recursive: true, force: true });
  const vite = await createServer({
    root: project,
    logLevel: 'error',
    server: { port: 0, host: '127.0.0.1', watch: null },
  });
  try {
    await vite.listen();
    target.url = `http://127.0.0.1:${vite.httpServer.address().port}/`;
    await expectPage(waiting.url('/'), app.shows, refused);
  } finally {
    await vite.close();
    await waiting.close();
  }
}

/** @param fast runs all blocks of the guide, but not all of them in every bundler */
export async function testBundlers(results, { fast = false } = {}) {
  const all = [...readApps(), appWithTfjs];
  const headers = readHeaders();
  const testWith = async (bundler) => {
    const where = `${bundler.name} ${manifestOf(folderOf(bundler)).version}`;
    const project = await makeProject(join('apps', where.replace(' ', '-')));
    setUpProject(project, bundler);
    const leftOut = [
      ...(fast ? (bundler.leftOut ?? []) : []),
      ...(bundler.withoutTfjs ? ['wgemm/tfjs'] : []),
    ];
    const apps = all.filter(({ entry }) => !leftOut.includes(entry));
    const developed = apps.filter(({ entry }) => !fast || entry !== 'wgemm/tfjs');
    if (!(fast && bundler.configured && bundler.develop)) {
      for (const app of apps)
        await results.test('bundlers', where, app.entry, () =>
          buildAndRun(project, bundler, app, headers),
        );
    }
    if (!bundler.develop) return;
    for (const app of developed)
      await results.test('bundlers', `${where}, in development`, app.entry, () =>
        developAndRun(project, bundler, app),
      );
    if (!bundler.configured) return;
    // Without the configuration the error names it.
    rmSync(join(project, 'vite.config.js'));
    for (const app of apps.filter(({ entry }) =>
      fast ? entry === 'wgemm' : entry !== 'wgemm/inline',
    ))
      await results.test('bundlers', `${where}, not configured`, app.entry, () =>
        developAndRun(project, bundler, app, "optimizeDeps: { exclude: ['wgemm'] }"),
      );
  };
  await twoAtATime(
    [
      ...bundlers.map((bundler) => () => testWith(bundler)),
      () => testWithoutBundler(results, all, headers, fast),
      () => testFromFile(results),
    ],
    (test) => test(),
  );
}

/** The page of the guide that is opened as a file. It cannot post its result to a server. */
async function testFromFile(results) {
  const page = pageOf('one-file');
  const project = await makeProject(join('apps', 'file'));
  setUpProject(
    project,
    bundlers.find(({ name }) => name === 'esbuild'),
  );
  await results.test('bundlers', 'none: file://', 'wgemm/inline', async () => {
    const [script, html] = ['local.js', 'local.html'].map((file) => blockOf(page, { file }));
    for (const { file, code } of [script, html]) writeFileSync(join(project, file), code);
    await runChild('sh', ['-e', '-c', blockOf(page, { language: 'sh' }).code], { cwd: project });
    const [, shows] = /textContent = .*;\s*\/\/ (.*)$/m.exec(script.code);
    const dump = async () => {
      const shown = await runChild(programOf('chromium'), [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--virtual-time-budget=10000'],
        `--user-data-dir=${join(project, 'profile')}`,
        '--dump-dom',
        pathToFileURL(join(project, html.file)).href,
      ]);
      // Whether the line break after the script follows the text depends on which comes first.
      const [, body] = /<body>([^<]*)<\/body>/.exec(shown) ?? [];
      return { shown, body: body?.trim() };
    };
    // Virtual time does not wait for WebAssembly that a busy machine compiles.
    let dumped = await dump();
    for (let tries = 1; dumped.body !== shows && tries < 3; ++tries) dumped = await dump();
    if (dumped.body !== shows) refuse(`the page is\n${dumped.shown}`);
  });
}

async function testWithoutBundler(results, apps, headers, fast) {
  const project = await makeProject(join('apps', 'none'));
  const { code: page } = blockOf(pageOf('none'), { file: 'index.html' });
  const [, map] =
    /<script type="importmap">([^]*?)<\/script>/.exec(page) ??
    refuse(`${pageOf('none')} has no import map`);
  const { imports } = JSON.parse(map);
  for (const app of apps.filter(({ entry }) => imports[entry])) {
    const run = async (page, code, headers) => {
      writeFileSync(join(project, 'index.html'), withReporter(page));
      writeFileSync(join(project, 'app.js'), withResult(code, ''));
      await runIn(project, app.shows, headers);
    };
    if (!existsSync(join(project, imports[app.entry])))
      refuse(`${imports[app.entry]} is not in the package`);
    if (!fast || app.entry === 'wgemm')
      await results.test('bundlers', 'none: import map', app.entry, () => run(page, app.code, {}));
    await results.test('bundlers', 'none: path, strict', app.entry, () =>
      run(
        page.replace(/<script type="importmap">[^]*?<\/script>/, ''),
        withThreads(app).replace(`'${app.entry}'`, `'${imports[app.entry]}'`),
        headers,
      ),
    );
  }
}
