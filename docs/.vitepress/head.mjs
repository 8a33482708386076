// Makes the head of a page, for search engines and for pages that link to it.
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');
const { version, license, homepage, repository, description } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);

/** Facts about the package. Addresses end with '/' only if they are folders. */
export const about = {
  version,
  license,
  description,
  source: repository.url.replace(/^git\+|\.git$/g, ''),
  home: homepage.replace(/\/?$/, '/'),
};

/** Code is indented, and headings, tables and lists begin with a sign. */
const isProse = (paragraph) => /^[\w[`*\\]/.test(paragraph);

const longest = 160; // characters of a description that search engines show

/** Markdown as text. */
const plain = (text) =>
  text
    .replace(/!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/<[^>]+>|[`*]/g, '')
    .replace(/\\(.)/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();

/**
 * The first sentences of a page that fit in a description, or the first words of a long one. A page
 * without text of its own may show another file.
 *
 * @param file the page
 */
export function describe(file) {
  const source = readFileSync(file, 'utf8');
  const paragraphs = source
    .replace(/^---\n[^]*?\n---\n/, '')
    .replace(/^(```|<!--)[^]*?(^```$|-->$)/gm, '')
    .split(/\n\s*\n/);
  const first = paragraphs.map((each) => each.replace(/^\n+/, '')).find(isProse);
  const shown = /<!--@include: ([^{]+?)(\{.*)?-->/.exec(source)?.[1];
  if (first === undefined) return shown ? describe(resolve(dirname(file), shown)) : '';
  const sentences = plain(first).match(/.+?[.!?](?=\s|$)|.+$/g) ?? [];
  let text = '';
  for (const each of sentences.map((sentence) => sentence.trim())) {
    // A sentence that ends with a colon needs what follows it.
    if (text && (text.length + each.length + 1 > longest || each.endsWith(':'))) break;
    text = text ? `${text} ${each}` : each;
  }
  return text.length > longest ? `${text.slice(0, longest - 1).replace(/\s+\S*$/, '')}…` : text;
}

/** The address of a page, from its path in docs/ or in the built site. */
export const addressOf = (page) =>
  about.home + page.replace(/(^|\/)index\.(md|html)$/, '$1').replace(/\.md$/, '.html');

/** @param page its path in docs/ */
export function headOf({ page, title, description }) {
  const up = '../'.repeat(page.split('/').length - 1);
  const address = addressOf(page);
  const meta = (property, content) => ['meta', { property, content }];
  return [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${up}logo.svg` }],
    ['link', { rel: 'canonical', href: address }],
    ['meta', { name: 'theme-color', content: '#12998b' }],
    ['meta', { name: 'version', content: version }],
    meta('og:type', 'website'),
    meta('og:site_name', 'wgemm'),
    meta('og:title', title),
    meta('og:description', description),
    meta('og:url', address),
    meta('og:image', `${about.home}og.png`),
    meta('og:image:width', '1200'),
    meta('og:image:height', '630'),
    meta('og:image:alt', 'wgemm: fast matrix multiplication for the web'),
    ['meta', { name: 'twitter:card', content: 'summary_large_image' }],
  ];
}
