// Assembles index.html at build time:
//   <!-- section NAME -->              the file sections/NAME.html
//   %NAV%                              the links of the head of the site
//   %SITE%, %TITLE% and others         where the pages of the site are, and `words`, below
//   <pre data-code="FILE"></pre>       a file, highlighted, with a button that copies it. Paths
//                                      start at examples/
//   <pre data-code="FILE#NAME"></pre>  its lines between `// #region NAME` and `// #endregion`
import { readFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { transformerStyleToClass } from '@shikijs/transformers';
import { codeToHtml } from 'shiki';
import { about, headOf } from '../../../docs/.vitepress/head.mjs';
import { nav } from '../../../docs/.vitepress/sidebar.mjs';

const demo = resolve(import.meta.dirname, '..');
const examples = resolve(demo, '..');
const languages = { '.ts': 'ts', '.mjs': 'js' };

/** Where the colours of code are. The policy forbids style elements. */
const codeStyles = 'assets/code.css';

const theme = 'assets/theme.js';

/** The links of the head. The site has the same. */
const links = nav
  .flatMap((entry) => entry.items ?? [entry]) // a menu has items
  .map(({ text, link }) => {
    if (link.startsWith('/demo/')) return `<a href="./index.html" aria-current="page">${text}</a>`;
    const file = /\.html$/.test(link) ? link : `${link.replace(/\/$/, '/index')}.html`;
    return `<a href="%SITE%${file}">${text}</a>`;
  })
  .join('\n        ');

const title = 'Matrix multiplication in your browser | wgemm demo';
const description =
  'Measure matrix multiplication in your browser, search 100,000 vectors, run your .onnx file, ' +
  'and compare wgemm with ONNX Runtime Web and tfjs.';

const words = {
  TITLE: title,
  DESCRIPTION: description,
  SOURCE: about.source,
  VERSION: about.version,
  LICENSE: about.license,
};

/** What pages of the site have in their heads, too. Vite knows the icon. */
const sharedHead = headOf({ page: 'demo/index.md', title, description })
  .filter(([, { rel }]) => rel !== 'icon')
  .map(([tag, attrs]) => ({ tag, attrs, injectTo: 'head' }));

/** Two plugins: index.html must have its sections before Vite reads it. */
export function page({ site }) {
  let styles = '';
  return [
    {
      name: 'page',
      transformIndexHtml: {
        order: 'pre',
        async handler(html) {
          const whole = html
            .replace(/^ *<!-- section ([\w-]+) -->\n/gm, (_, name) =>
              readFileSync(join(demo, 'sections', `${name}.html`), 'utf8'),
            )
            .replace('%NAV%', links)
            .replace(/%([A-Z]+)%/g, (found, name) => ({ ...words, SITE: site })[name] ?? found);
          const shown = await showCode(whole);
          styles = shown.styles;
          return shown.html;
        },
      },
      generateBundle() {
        this.emitFile({ type: 'asset', fileName: codeStyles, source: styles });
        const script = readFileSync(join(demo, 'src', 'theme.js'), 'utf8');
        this.emitFile({ type: 'asset', fileName: theme, source: script });
      },
    },
    {
      name: 'page-styles',
      transformIndexHtml: {
        order: 'post',
        handler: () => [
          ...sharedHead,
          { tag: 'script', attrs: { src: `./${theme}` }, injectTo: 'head' },
          { tag: 'link', attrs: { rel: 'stylesheet', href: `./${codeStyles}` }, injectTo: 'head' },
        ],
      },
    },
  ];
}

/** A file, or the lines of a region of it without the indentation that they share. */
function readCode(file, name) {
  const text = readFileSync(join(examples, file), 'utf8').trimEnd();
  if (name === undefined) return text;
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.trim() === `// #region ${name}`);
  const length = lines.slice(first + 1).findIndex((line) => line.trim() === '// #endregion');
  if (first < 0 || length < 0) throw new Error(`examples/${file} has no region ${name}`);
  const found = lines.slice(first + 1, first + 1 + length);
  const indents = found.filter((line) => line.trim()).map((line) => line.search(/\S/));
  return found.map((line) => line.slice(Math.min(...indents))).join('\n');
}

async function showCode(html) {
  // The policy forbids style attributes, so colours become classes.
  const toClass = transformerStyleToClass({ classPrefix: 'c-' });
  let result = html;
  const place = /<pre data-code="([^"#]+)(?:#([\w-]+))?"><\/pre>/g;
  for (const [found, file, name] of html.matchAll(place)) {
    const code = await codeToHtml(readCode(file, name), {
      lang: languages[extname(file)],
      // The usual themes have too little contrast for comments.
      themes: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
      transformers: [toClass],
    });
    const button = `<button type="button" class="copy" aria-label="Copy the code">Copy</button>`;
    result = result.replace(found, () => `<div class="code">${code}${button}</div>`);
  }
  return { html: result, styles: toClass.getCSS() };
}
