// What the site adds to the Markdown of VitePress.
import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** Files outside docs/ that a page shows. */
const shownBy = {
  'README.md': '/index.md',
  'CHANGELOG.md': '/changelog.md',
  'CONTRIBUTING.md': '/contributing.md',
  'SECURITY.md': '/security.md',
  'js/README.md': '/design/javascript.md',
  'src/README.md': '/design/architecture.md',
};

/**
 * Links to files outside docs/ work on a code host. The site has no such files: it shows the path,
 * or links to the page that shows the file. A link to a file that is not there fails the build.
 */
export function outsideLinks(md, docs) {
  const root = join(docs, '..');

  /** The path from the root, or undefined if the link leads to this page or to another host. */
  function pathOf(href, folder) {
    if (!href || /^([a-z][a-z\d+.-]*:|#|\/)/i.test(href)) return undefined;
    const target = resolve(folder, decodeURI(href.replace(/[?#].*$/, '')));
    return relative(root, target).replaceAll(sep, '/');
  }

  function rewrite(tokens, { page, folder, isIncluded, Token }) {
    const kept = [];
    for (let i = 0; i < tokens.length; ++i) {
      const token = tokens[i];
      const href = token.type === 'link_open' ? token.attrGet('href') : undefined;
      const path = pathOf(href, folder);
      const inside = path?.startsWith('docs/') ? path.slice('docs'.length) : undefined;
      if (path === undefined || (inside && !isIncluded)) {
        kept.push(token);
        continue;
      }
      if (path.startsWith('../') || !existsSync(join(root, path)))
        throw new Error(`${page}: the link to ${href} is dead: there is no ${path}`);
      const shown = inside ?? shownBy[path];
      if (shown && page !== join(docs, shown)) {
        token.attrSet('href', shown + (/#.*$/.exec(href)?.[0] ?? ''));
        kept.push(token);
        continue;
      }
      const end = tokens.findIndex(({ type }, at) => at > i && type === 'link_close');
      const text = tokens.slice(i + 1, end);
      const says = text.map(({ content }) => content).join('');
      kept.push(...text);
      if (!path.endsWith(says.replace(/\/$/, ''))) {
        const [before, code, after] = ['text', 'code_inline', 'text'].map(
          (type) => new Token(type, type === 'text' ? '' : 'code', 0),
        );
        [before.content, code.content, after.content] = [' (', path, ')'];
        kept.push(before, code, after);
      } else if (text.length === 1 && text[0].type === 'text') {
        kept.pop();
        const code = new Token('code_inline', 'code', 0);
        code.content = says;
        kept.push(code);
      }
      i = end;
    }
    return kept;
  }

  md.core.ruler.push('outside_links', ({ tokens, env, Token }) => {
    const page = env.realPath ?? env.path;
    if (!page) return;
    // VitePress marks where an included file begins and ends.
    const folders = [dirname(page)];
    for (const token of tokens) {
      if (token.type === 'html_block') {
        for (const [, folder] of token.content.matchAll(/<!-- @include-(?:start: (.*?)|end) -->/g))
          if (folder === undefined) folders.pop();
          else folders.push(folder);
      } else if (token.type === 'inline' && token.children)
        token.children = rewrite(token.children, {
          page,
          folder: folders.at(-1),
          isIncluded: folders.length > 1,
          Token,
        });
    }
  });
}

/** Shows the file name of a block that has one, as in ```js file=app.js. */
export function fileNames(md) {
  const { fence } = md.renderer.rules;
  md.renderer.rules.fence = (...args) => {
    const [tokens, i] = args;
    const name = /\bfile=(\S+)/.exec(tokens[i].info)?.[1];
    const html = fence(...args);
    if (!name) return html;
    const caption = `<p class="file-name">${md.utils.escapeHtml(name)}</p>`;
    return `<div class="code-of-file">${caption}${html}</div>`;
  };
}

/** Gives cells with sentences a class, so that narrow pages do not break them into single words. */
export function proseCells(md) {
  md.core.ruler.push('prose_cells', ({ tokens }) => {
    for (const [i, token] of tokens.entries()) {
      if (token.type !== 'td_open') continue;
      const text = (tokens[i + 1].children ?? []).map(({ content }) => content).join('');
      if (text.length > 50) token.attrJoin('class', 'prose');
    }
  });
}

/** Corrects links: VitePress and TypeDoc disagree on the anchor of [Symbol.dispose]. */
export function symbolAnchors(md) {
  md.core.ruler.push('symbol_anchors', ({ tokens, env }) => {
    if (!env.relativePath?.startsWith('reference/')) return;
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' && token.attrGet('href');
      if (href) token.attrSet('href', href.replace(/#symbol([a-z]+)$/, '#symbol-$1'));
    }
  });
}
