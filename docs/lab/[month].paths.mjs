// A page per month of the lab: every row of lab/YYYY-MM.tsv is a row of one table.
import { readdirSync, readFileSync } from 'node:fs';
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

function monthName(month) {
  const [year, number] = month.split('-').map(Number);
  const name = new Date(Date.UTC(year, number - 1)).toLocaleString('en', {
    month: 'long',
    timeZone: 'UTC',
  });
  return `${name} ${year}`;
}

function pageOf(month, text) {
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
    `# ${monthName(month)}`,
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
  watch: ['./*.tsv'],
  paths: () =>
    readdirSync(import.meta.dirname)
      .filter((name) => name.endsWith('.tsv'))
      .map((name) => {
        const month = name.replace(/\.tsv$/, '');
        const text = readFileSync(join(import.meta.dirname, name), 'utf8');
        return { params: { month }, content: pageOf(month, text) };
      }),
};
