// Checks the imports in js/: they point down the layers, no file imports an entry, and no files
// import each other in a cycle. js/README.md describes the layers. Alone:
//   node scripts/lint-imports.mjs
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fail, main } from './run.mjs';

/** The folders of js/. Each may import itself and the folders before it. */
const layers = [
  ...['base', 'instance', 'call', 'convert', 'ops', 'api', 'linear', 'search', 'tfjs', 'worker'],
  'weights',
  ...['onnx/read', 'onnx/operators', 'onnx/graph', 'onnx/run'],
];

/** Entries that consist of other entries. */
const composed = ['cli.ts', 'inline.ts'];

const folderOf = (name) => dirname(name).replace(/^(?!onnx)(\w+)\/.*/, '$1');

/** Each import of a file of js/, with its line. */
function importsOf(name) {
  const text = readFileSync(join('js', name), 'utf8');
  return Array.from(text.matchAll(/(?:\bfrom|\bimport\(?)\s*'(\.[^']+)\.js'/g), (match) => ({
    line: text.slice(0, match.index).split('\n').length,
    file: normalize(join(dirname(name), `${match[1]}.ts`)).replaceAll('\\', '/'),
  }));
}

/** @returns why a file must not import another; undefined if it may */
function whyNot(name, imported) {
  const [folder, other] = [folderOf(name), folderOf(imported)];
  if (other === '.')
    return composed.includes(name) ? undefined : `no file imports an entry (${imported})`;
  if (folder === '.' || layers.indexOf(other) <= layers.indexOf(folder)) return undefined;
  return `${folder} must not import ${other} (${imported})`;
}

/** @returns a cycle that a depth-first search from `name` finds, as a list of files */
function cycleFrom(name, graph, done, path = []) {
  const start = path.indexOf(name);
  if (start >= 0) return [...path.slice(start), name];
  if (done.has(name)) return undefined;
  for (const { file } of graph.get(name) ?? []) {
    const cycle = cycleFrom(file, graph, done, [...path, name]);
    if (cycle) return cycle;
  }
  done.add(name);
  return undefined;
}

export function lintImports() {
  const files = readdirSync('js', { recursive: true })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.ts'))
    .sort();
  const graph = new Map(
    files.map((name) => [name, importsOf(name).filter(({ file }) => files.includes(file))]),
  );
  const wrong = files
    .filter((name) => ![...layers, '.'].includes(folderOf(name)))
    .map((name) => `js/${name}: no layer of the list in scripts/lint-imports.mjs`);
  for (const [name, imports] of graph) {
    for (const { line, file } of imports) {
      const why = whyNot(name, file);
      if (why) wrong.push(`js/${name}:${line}: ${why}`);
    }
  }
  const done = new Set();
  for (const name of files) {
    const cycle = cycleFrom(name, graph, done);
    if (!cycle) continue;
    wrong.push(`js/${name}: a cycle of imports: ${cycle.join(', ')}`);
    break;
  }
  if (wrong.length === 0) return;
  console.error(wrong.join('\n'));
  fail('Imports in js/ point down: move what is shared to a lower folder, or pass it as data.');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(lintImports);
