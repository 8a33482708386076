// Reads the code blocks of README.md, so that tests run what users read.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';

const file = join(root, 'README.md');

/**
 * All fenced blocks in order: { headings, language, file, code, line }. `headings` is the path to
 * it, outermost first; `file` is NAME where the fence's info string says file=NAME.
 */
export function readBlocks(text = readFileSync(file, 'utf8')) {
  const blocks = [];
  const headings = [];
  let open;
  for (const [i, line] of text.split('\n').entries()) {
    const fence = /^(`{3,})\s*(.*)$/.exec(line);
    if (open) {
      if (fence && fence[1].length >= open.fence.length && fence[2] === '') {
        blocks.push({ ...open.block, code: open.lines.map((text) => `${text}\n`).join('') });
        open = undefined;
      } else open.lines.push(line);
    } else if (fence) {
      const [language, ...rest] = fence[2].split(/\s+/);
      const name = rest.find((word) => word.startsWith('file='))?.slice('file='.length);
      open = {
        fence: fence[1],
        lines: [],
        block: { headings: headings.filter(Boolean), language, file: name, line: i + 1 },
      };
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
  if (open) throw new Error(`README.md: the block of line ${open.block.line} has no end`);
  return blocks;
}

/** The one block under a heading that has this language, and this file name if one is given. */
export function blockOf(heading, language, name) {
  const found = readBlocks().filter(
    (block) =>
      block.headings.at(-1) === heading &&
      block.language === language &&
      (name === undefined || block.file === name),
  );
  if (found.length !== 1)
    throw new Error(
      `README.md: '${heading}' has ${found.length} blocks of ${language} ${name ?? ''}; it ` +
        'must have 1',
    );
  return found[0];
}
