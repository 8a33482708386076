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
 * A server may answer any address with this page, so the page cannot know where scripts and styles
 * are. It loads none.
 */
export function writeNotFound(folder) {
  writeFileSync(
    join(folder, '404.html'),
    `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width,initial-scale=1" />
    <title>404 | wgemm</title>
    <link rel="icon" href="data:," />
    <style>
      :root { color-scheme: light dark; }
      body { font: 16px/1.6 system-ui, sans-serif; max-width: 34rem; }
      body { margin: 15vh auto; padding: 0 1.5rem; }
    </style>
  </head>
  <body>
    <h1>There is no page here</h1>
    <p>The page may have another address now. The search on the home page finds it.</p>
  </body>
</html>
`,
  );
}
