// Checks the files of the site. Every link must lead to a page and a heading that exist, and links
// must reach every page. No script may be inline, and no page may load anything from another host.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';
import { pagesIn } from './finish.mjs';

const decoded = (text) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

/** The attributes of a tag, by name. */
function attributesOf(tag) {
  const pairs = tag.matchAll(/\s([\w:@-]+)(?:="([^"]*)")?/g);
  return Object.fromEntries([...pairs].map(([, name, value = '']) => [name, decoded(value)]));
}

function readPage(folder, name) {
  const html = readFileSync(join(folder, name), 'utf8');
  const tags = [...html.matchAll(/<([a-z][\w-]*)((?:\s+[^\s>=]+(?:="[^"]*")?)*)\s*\/?>/gi)].map(
    ([, tag, attributes]) => ({ tag, ...attributesOf(attributes) }),
  );
  return { name, tags, ids: new Set(tags.flatMap(({ id }) => id ?? [])) };
}

/** The file that a static server answers with, by its path from `folder`. */
function fileAt(folder, path) {
  if (path.startsWith('..')) return undefined;
  const file = join(folder, path);
  if (!existsSync(file)) return undefined;
  return statSync(file).isDirectory() ? join(path, 'index.html') : path;
}

/**
 * Where an address on a page leads: { outside } if it leads to another host. Otherwise the path,
 * the file if it exists, and the fragment.
 */
function follow(folder, page, address) {
  if (/^(data|mailto):/.test(address)) return { ignored: true };
  if (/^([a-z][a-z\d+.-]*:|\/\/)/i.test(address)) return { outside: address };
  if (address.startsWith('/')) return { path: address }; // it leaves the site's folder
  const [to, fragment = ''] = address.replace(/\?[^#]*/, '').split('#');
  const path = to ? normalize(join(dirname(page), decodeURIComponent(to))) : page;
  return {
    path: path.replaceAll(sep, '/'),
    file: fileAt(folder, path)?.replaceAll(sep, '/'),
    fragment: decodeURIComponent(fragment),
  };
}

/** 'a', 'a and b', 'a, b and 40 more'. */
function several(names) {
  const list = [...names];
  if (list.length < 3) return list.join(' and ');
  return `${list[0]}, ${list[1]} and ${list.length - 2} more`;
}

/** @returns a sentence per error */
export function checkSite(folder) {
  const pages = new Map(pagesIn(folder).map((name) => [name, readPage(folder, name)]));
  const errors = new Map(); // what is wrong -> the pages; a sidebar is on many
  const reached = new Set(['index.html', '404.html']);
  for (const { name, tags } of pages.values()) {
    const wrong = (what) => errors.set(what, (errors.get(what) ?? new Set()).add(name));
    for (const each of tags) {
      const { tag, href, src } = each;
      if (tag === 'script' && src === undefined) wrong('a script is inline');
      const handler = Object.keys(each).find((attribute) => /^on[a-z]+$/.test(attribute));
      if (handler) wrong(`<${tag}> has an inline script, ${handler}`);
      for (const address of [href, src].filter((value) => value !== undefined)) {
        const { ignored, outside, path, file, fragment } = follow(folder, name, address);
        if (ignored) continue;
        if (outside) {
          if (tag !== 'a' && each.rel !== 'canonical') wrong(`<${tag}> loads ${outside}`);
          else if (!/^https?:/.test(outside)) wrong(`the link to ${outside} is not an address`);
        } else if (file === undefined) wrong(`a link leads to ${path}, which is not there`);
        else if (tag === 'a') {
          if (file !== name) reached.add(file);
          if (fragment && pages.has(file) && !pages.get(file).ids.has(fragment))
            wrong(`${file} has no heading #${fragment}`);
        }
      }
    }
  }
  for (const name of pages.keys())
    if (!reached.has(name)) errors.set(`no page links to ${name}`, new Set(['sidebar.mjs']));
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!name.endsWith('.css')) continue;
    const text = readFileSync(join(folder, name), 'utf8');
    for (const [, address] of text.matchAll(/(?:url\(|@import\s+)["']?((?:https?:)?\/\/[^"')]+)/g))
      errors.set(`a style loads ${address}`, new Set([name]));
  }
  return [...errors].map(([what, names]) => `${several(names)}: ${what}`);
}
