// Reads the code blocks of README.md, the guide, the operator cards and the recipes, so that tests
// run what users read.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';

/** Pages whose every block is run by a test, by their path from the root. */
export function pagesWithCode() {
  const folders = ['guide', 'guide/bundlers', 'operators', 'recipes'];
  const inDocs = folders.flatMap((folder) =>
    readdirSync(join(root, 'docs', folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${folder}/${name}`),
  );
  return ['README.md', 'docs/index.md', ...inDocs.sort()];
}

/**
 * All fenced blocks of a page in order:
 *   page, line  where it is
 *   headings    the path to it, outermost first
 *   language    the first word of the fence's info string
 *   file        NAME if the info string says file=NAME
 *   code        its text
 *   before      code that it takes as given, from a comment `<!-- before` before it
 *   after       checks, from a comment `<!-- after` after it
 *   continued   the comment `<!-- continued -->` is before it: the code of the previous block
 *               runs first
 * Readers of a page do not see the comments.
 */
export function readBlocks(page, text = readFileSync(join(root, page), 'utf8')) {
  const blocks = [];
  const headings = [];
  const broken = (line, what) => {
    throw new Error(`${page}: ${what} of line ${line} has no end`);
  };
  let open;
  let comment;
  let given = {};
  for (const [i, line] of text.split('\n').entries()) {
    const fence = /^(\s*)(`{3,})\s*(.*)$/.exec(line);
    if (open) {
      if (fence && fence[2].length >= open.fence.length && fence[3] === '') {
        blocks.push({ ...open.block, code: open.lines.map((text) => `${text}\n`).join('') });
        open = undefined;
      } else open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
    } else if (comment) {
      if (line.trim() === '-->') {
        if (comment.kind === 'before') given = { before: comment.lines.join('\n') };
        else if (blocks.length > 0) blocks.at(-1).after = comment.lines.join('\n');
        comment = undefined;
      } else comment.lines.push(line);
    } else if (fence) {
      const [language, ...rest] = fence[3].split(/\s+/);
      const file = rest.find((word) => word.startsWith('file='))?.slice('file='.length);
      open = {
        indent: fence[1],
        fence: fence[2],
        lines: [],
        block: { page, headings: headings.filter(Boolean), language, file, line: i + 1, ...given },
      };
      given = {};
    } else if (/^\s*<!-- (before|after)$/.test(line)) {
      comment = { kind: line.trim().split(' ')[1], lines: [], line: i + 1 };
    } else if (/^\s*<!-- continued -->$/.test(line)) {
      given = { continued: true };
    } else {
      const [, level, title] = /^(#+)\s+(.*?)\s*$/.exec(line) ?? [];
      if (level)
        headings.splice(
          level.length - 1,
          Infinity,
          ...Array(Math.max(0, level.length - 1 - headings.length)),
          title,
        );
    }
  }
  if (open) broken(open.block.line, 'the block');
  if (comment) broken(comment.line, 'the comment');
  return blocks;
}

export const allBlocks = () => pagesWithCode().flatMap((page) => readBlocks(page));

/** The one block of a page, or of several pages, that has these properties. */
export function blockOf(pages, wanted) {
  const found = [pages]
    .flat()
    .flatMap((page) => readBlocks(page))
    .filter((block) => Object.entries(wanted).every(([name, value]) => block[name] === value));
  if (found.length !== 1) {
    const what = Object.entries(wanted).map((each) => each.join(' '));
    throw new Error(
      `${[pages].flat().join(' and ')} must have one block of ${what.join(', ')}; it has ` +
        `${found.length}`,
    );
  }
  return found[0];
}
