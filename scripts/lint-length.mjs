// Checks that C++ in src/ is short: functions without their signatures, comments and blank lines,
// and files. ESLint checks the same for js/. Alone:
//   node scripts/lint-length.mjs
import { readdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { fail, main } from './run.mjs';

const functionLines = 60;
const fileLines = 500;
/** Micro-kernels are unrolled on purpose. */
const isKernel = (name) => name.startsWith('kernels/');
/** The public header is the manual. */
const isManual = (name) => name === 'include/wgemm.h';

/** The text without comments, and without what braces in literals and preprocessor lines hold. */
const onlyCode = (text) =>
  text
    .replace(/\/\/.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'/g, (found) =>
      found[0] === '/' ? '' : '0',
    )
    .replace(/^[ \t]*#(?:.*\\\n)*.*/gm, (found) => found.replace(/[^\n]+/g, '#'));

/** Whether functions may stand behind this text and a brace. */
const opensScope = (head) => /\b(namespace|class|struct|union|extern)\b[^()]*$/.test(head);
const opensTable = (head) => /=\s*$/.test(head);

/** @returns each function, with the line of its opening brace and its number of lines */
function functionsOf(text) {
  const code = onlyCode(text);
  const lineAt = (end) => code.slice(0, end).split('\n').length;
  const functions = [];
  const open = []; // the braces that are open, with what each opens
  let head = 0; // where the text before the next brace begins
  for (const { 0: mark, index } of code.matchAll(/[{};]/g)) {
    if (mark === '{') {
      const text = code.slice(head, index);
      const isOutside = open.every((brace) => brace.isScope);
      const isScope = isOutside && opensScope(text);
      open.push({ index, isScope, isFunction: isOutside && !isScope && !opensTable(text) });
    } else if (mark === '}') {
      const { index: begin, isFunction } = open.pop();
      const lines = code
        .slice(begin + 1, index)
        .split('\n')
        .filter((line) => line.trim() !== '');
      if (isFunction) functions.push({ line: lineAt(begin), lines: lines.length });
    }
    head = index + 1;
  }
  return functions;
}

/** @returns what is too long in a file of src/, each as file:line: how many lines of how many */
function tooLongIn(name) {
  const path = `src/${name}`;
  const text = readFileSync(path, 'utf8');
  const wrong = [];
  const lines = text.split('\n').length - 1;
  if (lines > fileLines && !isManual(name))
    wrong.push(`${path}: ${lines} lines; a file has at most ${fileLines}`);
  if (isKernel(name)) return wrong;
  for (const { line, lines } of functionsOf(text)) {
    if (lines > functionLines)
      wrong.push(`${path}:${line}: ${lines} lines; a function has at most ${functionLines}`);
  }
  return wrong;
}

export function lintLength() {
  const wrong = readdirSync('src', { recursive: true })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\.(c|cc|h)$/.test(name))
    .flatMap(tooLongIn);
  if (wrong.length === 0) return;
  console.error(wrong.join('\n'));
  fail('Split what is too long: a part with a name of its own is read, changed and tested alone.');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(lintLength);
