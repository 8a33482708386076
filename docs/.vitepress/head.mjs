// Makes the head of a page, for search engines and for pages that link to it.
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');
const { version, license, homepage, repository, description, exports } = JSON.parse(
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

/** Code is indented. Headings, tables and lists begin with a sign. Decisions begin with an area. */
const isProse = (paragraph) => /^(?!\*\*Area\*\*)[\w[`*\\]/.test(paragraph);

/** Characters of a description: enough to say something, and as many as search engines show. */
export const lengths = { least: 50, most: 160 };

/** Markdown as text. */
const plain = (text) =>
  text
    .replace(/!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/<[^>]+>|[`*]/g, '')
    .replace(/\\(.)/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();

const sentencesOf = (paragraph) =>
  (plain(paragraph).match(/.+?[.!?](?=\s|$)|.+$/g) ?? []).map((sentence) => sentence.trim());

/** As many words as fit, with an ellipsis if some are left. */
const cut = (text, most) =>
  text.length > most ? `${text.slice(0, most - 1).replace(/\s+\S*$/, '')}…` : text;

/**
 * The sentences of the first paragraph of a page that fit in a description, and later sentences if
 * these say too little. A page without text of its own may show another file.
 *
 * @param file the page
 * @param most characters
 */
export function describe(file, most = lengths.most) {
  const source = readFileSync(file, 'utf8');
  const paragraphs = source
    .replace(/^---\n[^]*?\n---\n/, '')
    .replace(/^(```|<!--)[^]*?(^```$|-->$)/gm, '')
    .split(/\n\s*\n/)
    .map((each) => each.replace(/^\n+/, ''))
    .filter(isProse);
  const shown = /<!--@include: ([^{]+?)(\{.*)?-->/.exec(source)?.[1];
  if (paragraphs.length === 0) return shown ? describe(resolve(dirname(file), shown), most) : '';
  let text = '';
  for (const sentences of paragraphs.map(sentencesOf)) {
    for (const each of sentences) {
      // A sentence that ends with a colon needs what follows it.
      const isLeft = each.endsWith(':') || text.length + each.length + 1 > most;
      if (text.length >= lengths.least && isLeft) return text;
      text = cut(text ? `${text} ${each}` : each, most);
    }
    if (text.length >= lengths.least) break;
  }
  return text;
}

/**
 * The description and the rest of the title of a page of the reference. Several entries have
 * functions of the same name, and the first sentence of a type is short.
 *
 * @param page its path in docs/
 */
export function aboutReference(page, title) {
  if (!page.startsWith('reference/wgemm/') || page.endsWith('/index.md')) return {};
  const [, name, folder] = page.split('/');
  const entry = exports[`./${folder}`] ? `${name}/${folder}` : name;
  const start = `${title} in the JavaScript API of ${entry}: `;
  const text = describe(join(root, 'docs', page), lengths.most - start.length);
  return { description: `${start}${text}`, titleTemplate: `:title | ${entry} API` };
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
