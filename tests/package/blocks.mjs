// A test runs every code block of README.md, the guide, the operator cards and the recipes. This
// one runs programs and fragments. The table says which test runs each of the others.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';
import { runChild } from './child.mjs';
import { makeProject } from './packed.mjs';
import { allBlocks } from './pages.mjs';
import { refuse, twoAtATime } from './results.mjs';
import { compilerOf } from './tarball.mjs';

const hasFile =
  (...names) =>
  ({ file }) =>
    names.includes(file);
const isOn =
  (...pages) =>
  ({ page }) =>
    pages.some((each) => page.startsWith(each));
const isCode = ({ language, file }) => ['js', 'ts'].includes(language) && !file;
const isFragment = ({ before, continued }) => before !== undefined || continued;
/** Recipes are for JavaScript: their functions have no types of parameters. */
const isLoose = (block) => isFragment(block) || isOn('docs/recipes/')(block);
const isNative = ({ language }) => language === 'cpp' || language === 'cmake';

/** The test that runs a block: the first that matches. */
const runBy = [
  [
    hasFile('app.js', 'index.html', 'vite.config.js', 'local.js', 'local.html'),
    'tests/package/bundlers.mjs',
  ],
  [({ headings }) => headings.includes('Deno'), 'tests/package/runtimes.mjs'],
  [
    ({ language, page }) => language === 'sh' && isOn('docs/guide/bundlers/')({ page }),
    'tests/package/bundlers.mjs',
  ],
  [
    (block) => isOn('docs/guide/bundlers/frameworks.md')(block) && block.file,
    'tests/package/components.mjs',
  ],
  [isOn('docs/guide/bundlers/frameworks.md'), 'tests/package/hosts.mjs'],
  [isOn('docs/guide/bundlers/cdn.md'), 'tests/browser/cdn.mjs'],
  [({ language }) => language === 'http', 'tests/package/bundlers.mjs'],
  [hasFile('worker.js'), 'tests/package/runtimes.mjs'],
  [({ code }) => code === 'npm install wgemm\n', 'tests/package/packed.mjs'],
  [isOn('docs/guide/own-module.md'), 'tests/package/cblas.mjs'],
  [isNative, 'scripts/native-package.mjs'],
  [isOn('docs/guide/cpp.md'), 'scripts/native-package.mjs'],
  [
    ({ page, language, headings }) =>
      page === 'README.md' && language === 'sh' && headings.includes('From a clone'),
    'scripts/ci.mjs',
  ],
  [(block) => isCode(block) || block.language === 'text', 'tests/package/blocks.mjs'],
];

/** Checks that each block has a test, and that each program and fragment can fail. */
function checkTable(blocks) {
  for (const [i, block] of blocks.entries()) {
    const place = `the block of ${block.page}:${block.line}`;
    const [, file] = runBy.find(([fits]) => fits(block)) ?? [];
    if (!file) refuse(`no test runs ${place}`);
    if (!existsSync(join(root, file))) refuse(`${file} must run ${place}, but it does not exist`);
    if (!isCode(block)) continue;
    if (!isFragment(block) && !block.code.includes("from 'wgemm"))
      refuse(`${place} is not a program: a comment before it must define what it takes as given`);
    if (block.after === undefined && printedBy(blocks, i) === undefined)
      refuse(`${place} needs what it prints, in a block after it, or checks in a comment`);
  }
  return `${blocks.length} blocks`;
}

/** What a program prints, as the block after it says. */
function printedBy(blocks, i) {
  const next = blocks[i + 1];
  return next?.language === 'text' && next.page === blocks[i].page ? next.code : undefined;
}

/** The code of a block with everything that it takes as given. */
function wholeOf(blocks, i) {
  const { before = '', code, continued, page, line } = blocks[i];
  if (!continued) return `${before}\n${code}`;
  const previous = blocks.findLastIndex((block, at) => at < i && isCode(block));
  if (previous < 0 || blocks[previous].page !== page)
    refuse(`${page}:${line} is continued, but no block is before it`);
  return `${wholeOf(blocks, previous)}\n${code}`;
}

const nameOf = ({ page, line }) => `${page.replaceAll(/[/.]/g, '-')}-${line}`;

/** What the compiler does not know: modules of bundlers, and packages without types. */
const modules = ["'*.wasm'", "'ndarray'", "'@stdlib/ndarray-base-ctor'"]
  .map((name) => `declare module ${name} { const value: any; export default value; }\n`)
  .join('');

/**
 * Compiles the blocks as TypeScript, with the defaults of the newest compiler. Programs must pass
 * its strict checks. Fragments, recipes, and what a server loads, may have parameters without
 * types.
 */
async function checkTypes(blocks, project) {
  const tsc = compilerOf('7.0');
  const isForServer = hasFile('worker.js');
  const numbers = [...blocks.keys()];
  const isApp = hasFile('app.js');
  const programs = numbers.filter(
    (i) => (isCode(blocks[i]) && !isLoose(blocks[i])) || isApp(blocks[i]),
  );
  const looser = numbers.filter(
    (i) => (isCode(blocks[i]) && isLoose(blocks[i])) || isForServer(blocks[i]),
  );
  if (programs.length === 0 || looser.length === 0) refuse('the pages have no blocks to compile');
  for (const [name, group, more] of [
    ['strict', programs, []],
    ['looser', looser, ['--noImplicitAny', 'false']],
  ]) {
    const folder = join(project, name);
    mkdirSync(folder);
    await runChild(process.execPath, [tsc, '--init'], { cwd: folder });
    writeFileSync(join(folder, 'modules.d.ts'), modules);
    for (const i of group)
      writeFileSync(join(folder, `${nameOf(blocks[i])}.ts`), wholeOf(blocks, i));
    const options = ['--types', 'node', '--outDir', 'emitted', ...more];
    await runChild(process.execPath, [tsc, '-p', '.', ...options], { cwd: folder });
  }
  return `${programs.length} programs, ${looser.length} others`;
}

export async function testBlocks(results) {
  const blocks = allBlocks();
  await results.test('pages', 'every block', 'run by a test', () => checkTable(blocks));
  const project = await makeProject('blocks');
  await results.test('pages', 'TypeScript 7', 'compiles', () => checkTypes(blocks, project));
  const say = async (block, code) => {
    const name = `${nameOf(block)}.${block.language === 'ts' ? 'mts' : 'mjs'}`;
    writeFileSync(join(project, name), code);
    return await runChild(process.execPath, [name], { cwd: project });
  };
  await twoAtATime(
    [...blocks.keys()].filter((i) => isCode(blocks[i])),
    async (i) => {
      const block = blocks[i];
      const what = `line ${block.line}`;
      await results.test('pages', block.page, what, async () => {
        const said = await say(block, `${wholeOf(blocks, i)}\n${block.after ?? ''}\n`);
        const printed = printedBy(blocks, i)?.trim();
        if (printed === undefined) return;
        // A block that is continued prints after the blocks before it.
        const right = block.continued ? said.trim().endsWith(printed) : said.trim() === printed;
        if (!right) refuse(`${block.page}:${block.line} prints\n${said}and not\n${printed}`);
      });
    },
  );
}
