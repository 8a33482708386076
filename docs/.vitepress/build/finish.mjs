// Changes the files that VitePress wrote, so that the site works under a Content-Security-Policy
// without inline scripts.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

export const pagesIn = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.html'))
    .map((name) => name.replaceAll(sep, '/'))
    .sort();

const neighbours = /(?:<script(?: id="[^"]*")?>[^<]*<\/script>\s*)+/g;
const script = /<script[^>]*>([^<]*)<\/script>/g;

/** Moves each run of inline scripts of every page into a file. */
export function moveInlineScripts(folder) {
  const assets = join(folder, 'assets');
  mkdirSync(assets, { recursive: true });
  for (const page of pagesIn(folder)) {
    const file = join(folder, page);
    const html = readFileSync(file, 'utf8').replace(neighbours, (found) => {
      const text = [...found.matchAll(script)].map(([, body]) => `${body};\n`).join('');
      const hash = createHash('sha256').update(text).digest('hex').slice(0, 8);
      const target = join(assets, `inline.${hash}.js`);
      writeFileSync(target, text);
      return `<script src="${relative(dirname(file), target).replaceAll(sep, '/')}"></script>\n`;
    });
    writeFileSync(file, html);
  }
}

/**
 * Lists the pages for search engines, at their published addresses.
 *
 * @param addressOf the address of a page, from its path
 */
export function writeSitemap(folder, home, addressOf) {
  const pages = pagesIn(folder).filter((page) => page !== '404.html');
  const urls = pages.map((page) => `<url><loc>${addressOf(page)}</loc></url>\n`).join('');
  writeFileSync(
    join(folder, 'sitemap.xml'),
    '<?xml version="1.0" encoding="UTF-8"?>\n' +
      `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${urls}</urlset>\n`,
  );
  writeFileSync(
    join(folder, 'robots.txt'),
    `User-agent: *\nAllow: /\n\nSitemap: ${home}sitemap.xml\n`,
  );
}

/**
 * A server may answer any address with this page, so the page cannot know where scripts and styles
 * are. It loads none, and its links lead to the published site.
 *
 * @param home the address of the published site
 */
export function writeNotFound(folder, home, source) {
  writeFileSync(
    join(folder, '404.html'),
    `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width,initial-scale=1" />
    <meta name="robots" content="noindex" />
    <title>Page not found | wgemm</title>
    <link rel="icon" href="data:," />
    <style>
      :root { color-scheme: light dark; }
      body { font: 16px/1.6 system-ui, sans-serif; max-width: 34rem; }
      body { margin: 15vh auto; padding: 0 1.5rem; }
      a { color: light-dark(#0f766e, #4fd1c1); }
      li { margin: 0.25rem 0; }
    </style>
  </head>
  <body>
    <h1>Page not found</h1>
    <p>The page may have another address now. These pages lead to all others:</p>
    <ul>
      <li><a href="${home}">The first page</a>, which has a search</li>
      <li><a href="${home}guide/">What you can do</a></li>
      <li><a href="${home}reference/">API</a></li>
      <li><a href="${home}demo/index.html">Demo</a></li>
    </ul>
    <p>If a link led you here, <a href="${source}/issues">tell us</a>.</p>
  </body>
</html>
`,
  );
}
