// The text that the model learns from: the prose of this repository, which are its Markdown files
// and the comments of its code.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folders = ['.', 'docs', 'js', 'src', 'bindings', 'examples', 'scripts', 'tests'];
const leftOut = /(^|\/)(node_modules|build|dist|reference|bench|lab|\.temp)\/|\[/;
const heldBackEvery = 16; // one of 16 sections of the Markdown files

/** The text to learn from, and text held back. Both are the same in every run. */
export function readText() {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: folder !== '.' })
      .map((name) => join(folder, name).replaceAll('\\', '/'))
      .filter((name) => !leftOut.test(name))
      .sort(),
  );
  const textsOf = (pattern) =>
    files
      .filter((name) => pattern.test(name))
      .map((name) => readFileSync(join(root, name), 'utf8').replaceAll('\r', ''));
  const sections = textsOf(/\.md$/).flatMap((text) => proseOf(text).split(/\n(?=#)/));
  const isHeldBack = (_, i) => i % heldBackEvery === heldBackEvery - 1;
  const comments = textsOf(/\.(ts|mjs|h|cc)$/).flatMap(commentsOf);
  const heldBack = sections.filter(isHeldBack);
  const learned = sections.filter((section, i) => !isHeldBack(section, i));
  return {
    training: [...new Set([...comments, ...learned])].join('\n'),
    heldBack: heldBack.join('\n'),
  };
}

/** Markdown without code blocks, tables and the targets of links. Each paragraph is a line. */
function proseOf(markdown) {
  return unwrapped(
    markdown
      .replace(/<!--[^]*?-->/g, '')
      .replace(/^---\n[^]*?\n---\n/, '')
      .replace(/^( *)(`{3,}).*\n[^]*?\n\1\2$/gm, '')
      .replace(/^ *[|<].*$/gm, '')
      .replace(/^\[[^\]]*\]: .*$/gm, '')
      .replace(/!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?/g, '$1'),
  );
}

/** The comments of code that are sentences. Each paragraph is a line. */
function commentsOf(code) {
  const found = code.match(/\/\*\*[^]*?\*\/|(?:^ *\/\/.*\n)+/gm) ?? [];
  return found
    .flatMap((comment) =>
      unwrapped(comment.replace(/\*\/|^ *(\/\*\*|\*|\/{2,}) ?/gm, '')).split('\n'),
    )
    .filter((line) => /^[A-Z`@].*[a-z)`]\.?$/.test(line) && line.length > 40);
}

/** Joins the lines of each paragraph. */
function unwrapped(text) {
  return text
    .replace(/([^\n])\n *(?![ #@]|[-*] |\d+\. |\n)/g, '$1 ')
    .replace(/\n\s*\n/g, '\n')
    .trim();
}
