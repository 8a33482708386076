// Checks the form of the measurements in docs/lab/rows.tsv, which has tab-separated columns:
// docs/lab/index.md says what each column holds.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fail, main } from './run.mjs';

const path = join('docs', 'lab', 'rows.tsv');
const columns = [
  ...['date', 'commit', 'machine', 'area', 'shape', 'before', 'after', 'unit', 'kept', 'note'],
];
const areas = [
  ...['peers', 'micro-kernel', 'packing', 'blocking', 'GEMV', 'skinny GEMM', 'prefetch', 'streams'],
  ...['epilogue', 'quantized', 'small calls', 'threads', 'size', 'start', 'out-of-core', 'CI'],
  ...['memory', 'layers', '16-bit', 'integers', 'attention', 'models', 'compiler', 'site'],
];

const isThere = (text) => text !== '';
/** Column -> whether it accepts a value, and what it must be. */
const rules = {
  date: [(text) => /^\d{4}-\d\d-\d\d$/.test(text), 'YYYY-MM-DD'],
  commit: [(text) => /^[0-9a-f]{7,40}$/.test(text), 'a hash of at least 7 digits'],
  machine: [isThere, 'the processor, cores and engine, or any'],
  area: [(text) => areas.includes(text), `one of ${areas.join(', ')}`],
  kept: [(text) => ['yes', 'no', ''].includes(text), 'yes, no or nothing'],
  note: [isThere, 'a sentence'],
};

/** @returns what is wrong, each as file:line: what was found and what is allowed */
function findWrong() {
  const [head, ...rows] = readFileSync(path, 'utf8').replace(/\n$/, '').split('\n');
  if (head !== columns.join('\t')) return [`${path}:1: the columns must be ${columns.join(', ')}`];
  return rows.flatMap((row, i) => {
    const cells = row.split('\t');
    const place = `${path}:${i + 2}`;
    if (cells.length !== columns.length)
      return [`${place}: ${cells.length} columns instead of ${columns.length}`];
    return columns.flatMap((column, at) => {
      const [accepts, must] = rules[column] ?? [() => true];
      return accepts(cells[at])
        ? []
        : [`${place}: ${column} is '${cells[at]}'; it must be ${must}`];
    });
  });
}

export function lintLab() {
  if (!existsSync(path)) return;
  const wrong = findWrong();
  if (wrong.length === 0) return;
  console.error(wrong.join('\n'));
  fail('Correct the rows of the lab above: docs/lab/index.md says what the columns hold.');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(lintLab);
