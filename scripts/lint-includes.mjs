// Checks that the folders of src/ include only what stands below them: src/README.md has the
// figure. Alone:
//   node scripts/lint-includes.mjs
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fail, main } from './run.mjs';

/** Folder of src/ -> the folders that it may include besides itself and include/. */
const below = {
  include: [],
  base: [],
  problem: ['base'],
  ops: ['base', 'problem'],
  kernels: ['base', 'problem'],
  pack: ['base', 'problem', 'kernels'],
  plan: ['base', 'problem', 'kernels'],
  execute: ['base', 'problem', 'pack', 'plan'],
  out_of_core: ['base', 'problem', 'plan', 'execute'],
  nn: ['base', 'problem', 'plan', 'execute'],
  search: ['base', 'problem', 'pack', 'plan', 'execute'],
  cblas: ['base', 'kernels', 'problem', 'plan', 'execute'],
  program: ['base', 'api'],
  api: ['base', 'ops', 'pack', 'plan', 'execute', 'out_of_core', 'search'],
};

const files = readdirSync('src', { recursive: true })
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => /\.(cc|h|def)$/.test(name));
const folderOf = (name) => name.split('/')[0];

/** The file of src/ that an include means, or undefined if that is not a file of src/. */
function find(name, included) {
  const places = [dirname(name), '.', 'include'].map((folder) => normalize(join(folder, included)));
  return places.map((place) => place.replaceAll('\\', '/')).find((place) => files.includes(place));
}

/** @returns each include that points up, as file:line: why */
function wrongIncludesOf(name) {
  const folder = folderOf(name);
  const allowed = below[folder];
  if (!allowed) return [`src/${name}: no folder of the table in scripts/lint-includes.mjs`];
  return readFileSync(join('src', name), 'utf8')
    .split('\n')
    .flatMap((line, i) => {
      const included = /^\s*#\s*include\s+["<]([^">]+)[">]/.exec(line)?.[1];
      const found = included && find(name, included);
      if (!found) return [];
      const other = folderOf(found);
      if (other === folder || other === 'include' || allowed.includes(other)) return [];
      return [`src/${name}:${i + 1}: ${folder} must not include ${other} (${basename(found)})`];
    });
}

export function lintIncludes() {
  const wrong = files.flatMap(wrongIncludesOf);
  if (wrong.length === 0) return;
  console.error(wrong.join('\n'));
  fail('Includes in src/ point down: move what is shared to a lower folder, or pass it as data.');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(lintIncludes);
