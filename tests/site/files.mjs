// Checks what is in the files of the built site, without a browser.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { pagesIn } from '../../docs/.vitepress/build/finish.mjs';
import { about, addressOf, lengths } from '../../docs/.vitepress/head.mjs';
import { miniSearch } from '../../docs/.vitepress/search.mjs';
import { root } from '../../scripts/run.mjs';
import { addresses } from './addresses.mjs';
import { words } from './words.mjs';

/** Bytes of the home page and of everything that it loads, with gzip. Its live part comes later. */
const homeBudget = 150_000;

/** The files that a page of the top folder loads, without what its scripts load later. */
function loadedBy(site, page) {
  const html = readFileSync(join(site, page), 'utf8');
  const found = html.matchAll(/<(?:script|link|img)\b[^>]*?\s(?:src|href)="([^":]+)"/g);
  return [...new Set([page, ...Array.from(found, ([, path]) => path.replace(/^\.\//, ''))])];
}

/** @returns the bytes of the home page, as text */
export function weighHome(site, refuse) {
  const files = loadedBy(site, 'index.html');
  const sizes = files.map((name) => gzipSync(readFileSync(join(site, name))).length);
  const bytes = sizes.reduce((sum, each) => sum + each, 0);
  if (files.length < 5) refuse(`the home page loads ${files.join(' and ')} only`);
  if (bytes > homeBudget) refuse(`the home page has ${bytes} bytes of at most ${homeBudget}`);
  return `${files.length} files, ${bytes} bytes`;
}

/** @returns a sentence per word that leads to another page first */
export async function searchWords(site) {
  const client = join(root, 'docs', 'node_modules', 'vitepress', 'dist', 'client');
  const { loadLocalSearchIndex } = await import(
    pathToFileURL(join(client, 'theme-default', 'support', 'local-search.js')).href
  );
  const chunks = join(site, 'assets', 'chunks');
  const name = readdirSync(chunks).find((each) => each.startsWith('@localSearchIndexroot'));
  const { default: json } = await import(pathToFileURL(join(chunks, name)).href);
  const index = loadLocalSearchIndex(json, miniSearch);
  return words.flatMap(([word, page]) => {
    const [first] = index.search(word);
    const found = first?.id.replace(/#.*$/, '');
    return found === page ? [] : [`${word}: ${found} comes first; expected ${page}`];
  });
}

/** @returns a sentence per address of an earlier version that leads nowhere */
export function checkAddresses(site) {
  return Object.entries(addresses).flatMap(([page, anchors]) => {
    if (!existsSync(join(site, page))) return [`there is no ${page}, which older pages link to`];
    const html = readFileSync(join(site, page), 'utf8');
    return anchors
      .filter((anchor) => !html.includes(` id="${anchor}"`))
      .map((anchor) => `${page} has no #${anchor}, which older pages link to`);
  });
}

const decoded = (text) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

/** @returns a sentence per fault in the head of a page, or in the files for search engines */
export function checkHeads(site) {
  const pages = pagesIn(site).filter((page) => page !== '404.html');
  const canonicals = new Set();
  const pageOf = new Map(); // of each title and each description
  const errors = pages.flatMap((page) => {
    const html = readFileSync(join(site, page), 'utf8');
    const content = (pattern) => decoded(pattern.exec(html)?.[1] ?? '');
    const canonical = content(/<link rel="canonical" href="([^"]*)"/);
    canonicals.add(canonical);
    const title = content(/<title>([^<]*)<\/title>/);
    const description = content(/<meta name="description" content="([^"]*)"/);
    const faults = [title, description].flatMap((text) => {
      const twin = pageOf.get(text);
      pageOf.set(text, page);
      return twin ? [`${page} and ${twin} have the same text: ${text}`] : [];
    });
    if (description.length < lengths.least || description.length > lengths.most)
      faults.push(`${page}: its description has ${description.length} characters: ${description}`);
    const lacks = [
      [title, 'title'],
      [description, 'description'],
      [content(/<meta property="og:title" content="([^"]*)"/), 'og:title'],
      [content(/<meta property="og:image" content="([^"]*)"/), 'og:image'],
      [content(/<meta name="version" content="([^"]*)"/) === about.version, 'version'],
      [canonical === addressOf(page), `canonical address: it is "${canonical}"`],
      [html.includes(`href="${about.source}"`), 'link to the source'],
    ].flatMap(([isThere, what]) => (isThere ? [] : [`${page} lacks its ${what}`]));
    return [...lacks, ...faults];
  });
  const text = (name) => readFileSync(join(site, name), 'utf8');
  const listed = new Set(
    Array.from(text('sitemap.xml').matchAll(/<loc>(.*?)<\/loc>/g), ([, at]) => at),
  );
  for (const address of canonicals)
    if (!listed.has(address)) errors.push(`sitemap.xml lacks ${address}`);
  if (!text('robots.txt').includes(`Sitemap: ${about.home}sitemap.xml`))
    errors.push('robots.txt names no sitemap');
  if (statSync(join(site, 'og.png')).size > 200_000) errors.push('og.png is larger than 200 kB');
  return errors;
}
