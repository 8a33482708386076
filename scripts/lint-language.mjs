// Finds banned words (scripts/banned-words.mjs) and long lines. Alone:
//   node scripts/lint-language.mjs [FOLDER OR FILE...]
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bannedWords } from './banned-words.mjs';
import { fail, main } from './run.mjs';

const places = [
  ...['src', 'bindings', 'js', 'tests', 'scripts', 'examples', 'cmake', 'docs', '.ci', '.github'],
];
const files = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'CMakeLists.txt'],
  'NOTICE',
  'CMakePresets.json',
  ...['eslint.config.js', 'vitest.config.ts', 'package.json'],
];
const isText = /\.(cc|h|def|[cm]?js|m?ts|vue|css|cmake|txt|md|json|html|yml)$|^\.ci|^NOTICE$/;
const isSkipped = /node_modules|package-lock\.json|^scripts\/banned-words\.mjs$/;
/** Files that VitePress, TypeDoc, the bench and a test write. */
const isWritten = /^docs\/(reference|bench|\.vitepress\/\.temp)\/|^tests\/native\/nn_hashes\.json$/;
const columns = 100;
/**
 * Tables of Markdown and texts of licences may be wide. Tests of errors keep each message whole,
 * for searches.
 */
const mayBeLong = /^NOTICE$|\.md$|^tests\/(js|native)\/|\.json$/;

/** Every text that people write here, by its path from the root, with `/`. */
export function textFiles(chosen = [...places, ...files]) {
  return chosen
    .filter((name) => existsSync(name))
    .flatMap((name) =>
      statSync(name).isDirectory()
        ? readdirSync(name, { recursive: true }).map((inner) => join(name, inner))
        : name,
    )
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => isText.test(name) && !isSkipped.test(name) && !isWritten.test(name));
}

/** Lines that are looked at; the others are empty, so that numbers stay. */
function linesOf(name, text) {
  const lines = text.split(/\r?\n/);
  // The sections of released versions keep their words.
  if (name !== 'CHANGELOG.md') return lines;
  const headings = lines.flatMap((line, i) => (line.startsWith('## ') ? [i] : []));
  const isOldName = (i) => [lines[i], lines[i - 1]].some((line) => line?.startsWith('- Renamed:'));
  return lines.slice(0, headings[1]).map((line, i) => (isOldName(i) ? '' : line));
}

/** 'kLeastCost' and 'least_cost' as 'k Least Cost' and 'least cost'. */
const wordsOf = (line) => line.replace(/([a-z\d])(?=[A-Z])/g, '$1 ').replace(/[_\s]+/g, ' ');
const isBlank = (found) => ' '.repeat(found.length);

/** @returns hits in a file, each as file:line: "these words": say "those" */
export function bannedIn(name, text) {
  const rules = bannedWords.filter((rule) => !rule.in || rule.in.test(name));
  const lines = linesOf(name, text).map(wordsOf);
  return lines.flatMap((line, i) => {
    // A sentence goes on behind the next line's comment mark.
    const next = (lines[i + 1] ?? '').replace(/^[\s/*#>-]+/, '');
    return rules.flatMap(({ find, say, except }) => {
      const both = `${line} ${next}`;
      const found = find.exec(except ? both.replace(except, isBlank) : both);
      if (!found || found.index >= line.length) return [];
      return [`${name}:${i + 1}: "${found[0]}": say ${say.includes('"') ? say : `"${say}"`}`];
    });
  });
}

/** @returns hits in a file, each as file:line: 104 columns of at most 100 */
export function longLinesIn(name, text) {
  if (mayBeLong.test(name)) return [];
  return text.split(/\r?\n/).flatMap((line, i) => {
    const { length } = Array.from(line);
    return length > columns ? [`${name}:${i + 1}: ${length} columns of at most ${columns}`] : [];
  });
}

export function lintLanguage(names = textFiles()) {
  const hits = names.flatMap((name) => {
    const text = readFileSync(name, 'utf8');
    return [...bannedIn(name, text), ...longLinesIn(name, text)];
  });
  if (hits.length === 0) return;
  console.error(hits.join('\n'));
  fail(`Use the words above, and lines of at most ${columns} columns, in ${hits.length} places.`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const chosen = process.argv.slice(2);
  await main(() => lintLanguage(textFiles(chosen.length > 0 ? chosen : undefined)));
}
