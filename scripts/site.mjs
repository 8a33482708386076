// Builds the site of docs/ into build/site/: TypeDoc writes docs/reference/, VitePress makes the
// pages, and Vite makes the demo. dist/ must be there. The site works from any folder of any static
// server, without network.
//   npm run site
//     --serve   serves it on this machine afterwards, with the headers that the tests use
//     --short   for tests: the language model of the demo learns for a fifth of the time
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { startServer } from '../tests/browser/server.mjs';
import { siteHeaders } from '../tests/site/headers.mjs';
import { buildDemo } from './demo.mjs';
import { lintLab } from './lint-lab.mjs';
import { fail, main, root, run } from './run.mjs';
import { setUp } from './setup.mjs';

const docs = join(root, 'docs');
const out = join(root, 'build', 'site');
const modules = join(docs, 'node_modules');

function readArguments() {
  try {
    return parseArgs({
      options: {
        serve: { type: 'boolean', default: false },
        short: { type: 'boolean', default: false },
      },
    }).values;
  } catch ({ message }) {
    fail(`site: ${message}`);
  }
}

/** Draws the sweep of every run that has one, for light and for dark pages. */
async function drawPictures() {
  const { listSweeps } = await import('../docs/.vitepress/data/runs.mjs');
  const { draw } = await import('../tests/bench/picture.mjs');
  const folder = join(out, 'pictures');
  mkdirSync(folder, { recursive: true });
  for (const { id, results } of listSweeps()) {
    for (const theme of ['light', 'dark'])
      writeFileSync(join(folder, `${id}-${theme}.svg`), draw(results, { theme }));
  }
}

/** Copies the data that pages are made of, since pages link to it. */
function copyData() {
  for (const [folder, ending] of [
    ['bench', '.json'],
    ['lab', '.tsv'],
  ]) {
    mkdirSync(join(out, folder), { recursive: true });
    for (const name of readdirSync(join(docs, folder)).filter((name) => name.endsWith(ending)))
      copyFileSync(join(docs, folder, name), join(out, folder, name));
  }
}

/**
 * Bundles the worker of the home page's live part by the guide's recipe for esbuild: the files of
 * the package lie next to the bundle.
 */
async function buildLive() {
  const { build } = await import('esbuild');
  const dist = join(root, 'dist');
  const folder = join(out, 'live');
  await build({
    entryPoints: [join(docs, '.vitepress', 'live', 'worker.js')],
    outdir: folder,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    legalComments: 'none',
    alias: { wgemm: join(dist, 'index.js'), 'wgemm/search': join(dist, 'search.js') },
  });
  for (const name of ['wgemm-relaxed.wasm', 'wgemm-simd128.wasm'])
    copyFileSync(join(dist, name), join(folder, name));
}

async function build(short) {
  lintLab(); // the pages of the lab take its form for granted
  rmSync(join(docs, 'reference'), { recursive: true, force: true });
  rmSync(out, { recursive: true, force: true });
  await run('node', [join(modules, 'typedoc', 'bin', 'typedoc'), '--options', 'typedoc.json'], {
    cwd: docs,
    otherwise: 'TypeDoc cannot document the API: correct the comments that it names above.',
  });
  await run('node', [join(modules, 'vitepress', 'bin', 'vitepress.js'), 'build'], {
    cwd: docs,
    otherwise: 'VitePress cannot build the site: correct the pages that it names above.',
  });
  await drawPictures();
  copyData();
  await buildLive();
  const { moveInlineScripts, pagesIn, writeNotFound, writeSitemap } =
    await import('../docs/.vitepress/build/finish.mjs');
  const { about, addressOf } = await import('../docs/.vitepress/head.mjs');
  await buildDemo({ out: join(out, 'demo'), site: '..', short });
  writeNotFound(out, about.home, about.source);
  writeSitemap(out, about.home, addressOf);
  moveInlineScripts(out);
  const { checkSite } = await import('../docs/.vitepress/build/check.mjs');
  const errors = checkSite(out);
  if (errors.length > 0) {
    console.error(errors.join('\n'));
    fail('site: correct the errors above.');
  }
  return pagesIn(out).length;
}

await main(async () => {
  const { serve, short } = readArguments();
  await setUp('site');
  const start = performance.now();
  const pages = await build(short);
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  console.log(`site: ${pages} pages in ${relative('', out)}, in ${seconds} s`);
  if (short) console.log('site: do not publish it: its language model has learned too little');
  if (!serve) return;
  const server = await startServer({ folders: { '/': out }, headers: siteHeaders });
  console.log(`site: ${server.url('/')} (Ctrl+C ends it)`);
});
