// The page of the lab's rows: every row of lab/rows.tsv is a row of one table.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** These come last: readers first look at what was measured, and how fast it was. */
const last = ['commit', 'machine'];
const figures = ['before', 'after'];

const escaped = (text) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

/** Backquotes mean code. */
const rendered = (text) => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>');

function pageOf(text) {
  const [head, ...rows] = text
    .split(/\r?\n/)
    .filter((line) => line !== '')
    .map((line) => line.split('\t'));
  const at = (cells, column) => cells[head.indexOf(column)];
  const columns = [...head.filter((column) => !last.includes(column)), ...last];
  const classOf = (column) => (figures.includes(column) ? ' class="figure"' : ` class="${column}"`);
  const heading = (column) => `<th${classOf(column)}>${column}</th>`;
  const cell = (cells) => (column) => `<td${classOf(column)}>${rendered(at(cells, column))}</td>`;
  const row = (cells) =>
    `<tr data-area="${escaped(at(cells, 'area'))}" data-kept="${escaped(at(cells, 'kept'))}">` +
    `${columns.map(cell(cells)).join('')}</tr>`;
  return [
    '# Rows of the lab',
    '',
    `${rows.length} rows of the lab. [About the lab](./index.md) says what each column means.`,
    '',
    '<LabFilter />',
    '',
    '<div class="lab-rows" tabindex="0"><table v-pre>',
    `<thead><tr>${columns.map(heading).join('')}</tr></thead>`,
    `<tbody>${rows.map(row).join('\n')}</tbody>`,
    '</table></div>',
    '',
  ].join('\n');
}

export default {
  watch: ['./rows.tsv'],
  paths: () => {
    const text = readFileSync(join(import.meta.dirname, 'rows.tsv'), 'utf8');
    return [{ params: { file: 'rows' }, content: pageOf(text) }];
  },
};
