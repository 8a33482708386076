// The site works from any folder of any static server, without network. It has no inline scripts:
// build/finish.mjs moves those that VitePress writes into files.
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { fileNames, outsideLinks, proseCells, symbolAnchors } from './markdown.mjs';
import { miniSearch, render } from './search.mjs';
import { nav, sidebar } from './sidebar.mjs';

const docs = join(import.meta.dirname, '..');
const out = join(docs, '..', 'build', 'site');

export default defineConfig({
  title: 'wgemm',
  description: 'Matrix multiplication for the web: ONNX Gemm, QGemm, MatMulNBits and oneDNN MatMul',
  lang: 'en',
  base: './',
  router: { prefetchLinks: false }, // pages are small, and a list may link to a hundred
  outDir: out,
  cacheDir: join(docs, '..', 'build', 'site-cache'),
  srcExclude: ['.vitepress/**', 'bench/**'],
  vite: {
    publicDir: join(import.meta.dirname, 'public'),
    build: { chunkSizeWarningLimit: 2000 }, // kB; the search index is the largest
  },
  transformHead: ({ page }) => [
    [
      'link',
      {
        rel: 'icon',
        type: 'image/svg+xml',
        href: `${'../'.repeat(page.split('/').length - 1)}logo.svg`,
      },
    ],
    ['meta', { name: 'theme-color', content: '#12998b' }],
  ],
  markdown: {
    // Words such as :x: and {m} must stay as they are written.
    emoji: false,
    attrs: false,
    config(md) {
      outsideLinks(md, docs);
      fileNames(md);
      proseCells(md);
      symbolAnchors(md);
    },
  },
  themeConfig: {
    logo: '/logo.svg',
    nav,
    sidebar,
    outline: { level: [2, 3], label: 'On this page' },
    search: {
      provider: 'local',
      options: { detailedView: 'auto', miniSearch, _render: render },
    },
  },
});
