// The site works from any folder of any static server, without network. It has no inline scripts:
// build/finish.mjs moves those that VitePress writes into files.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { about, aboutReference, describe, headOf } from './head.mjs';
import { fileNames, outsideLinks, proseCells, symbolAnchors } from './markdown.mjs';
import { miniSearch, render } from './search.mjs';
import { nav, sidebar } from './sidebar.mjs';
import { assignOnlyChanges, lazyComponents } from './startup.mjs';

const docs = join(import.meta.dirname, '..');
const out = join(docs, '..', 'build', 'site');

const { version, license, source } = about;
const sourceIcon =
  '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M8.7 6.3 3 12l5.7 5.7 1.4-1.4L5.8 12l4.3-' +
  '4.3zm6.6 0-1.4 1.4 4.3 4.3-4.3 4.3 1.4 1.4L21 12z"/></svg>';

export default defineConfig({
  title: 'wgemm',
  description: about.description,
  lang: 'en',
  base: './',
  // To stop transitions, a page would compute all its styles once more at its start.
  appearance: { disableTransition: false },
  router: { prefetchLinks: false }, // pages are small, and a list may link to a hundred
  outDir: out,
  cacheDir: join(docs, '..', 'build', 'site-cache'),
  srcExclude: ['.vitepress/**', 'bench/**'],
  vite: {
    plugins: [lazyComponents(), assignOnlyChanges()],
    publicDir: join(import.meta.dirname, 'public'),
    build: { chunkSizeWarningLimit: 2000 }, // kB; the search index is the largest
  },
  transformPageData(page) {
    const file = join(docs, page.filePath);
    const { relativePath, title } = page;
    const given = page.params?.description || page.description;
    const reference = aboutReference(relativePath, title);
    const isRecipe = relativePath.startsWith('recipes/');
    return {
      ...reference,
      ...(isRecipe && {
        titleTemplate: ':title | wgemm recipes',
        frontmatter: { ...page.frontmatter, aside: false, pageClass: 'recipe' },
      }),
      description: given || reference.description || (existsSync(file) ? describe(file) : ''),
    };
  },
  transformHead: headOf,
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
    about: { version, license, source },
    nav,
    sidebar,
    socialLinks: [{ icon: { svg: sourceIcon }, link: source, ariaLabel: 'Source code' }],
    editLink: {
      // It also runs in the page. The reference is written from the comments in js/.
      pattern({ filePath, frontmatter: { source = `docs/${filePath}` } }) {
        const path = /^docs\/reference\//.test(source) ? 'js' : source;
        return `https://github.com/wgemm/wgemm/blob/main/${path}`;
      },
      text: 'Source of this page',
    },
    outline: { level: [2, 3], label: 'On this page' },
    search: {
      provider: 'local',
      options: { detailedView: 'auto', miniSearch, _render: render },
    },
  },
});
