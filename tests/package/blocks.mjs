// Every code block of README.md is run: here those that no other test runs, with definitions of the
// names that they use. For the others, the table says which test runs them.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';
import { runChild } from './child.mjs';
import { makeProject } from './packed.mjs';
import { readBlocks } from './readme.mjs';
import { refuse } from './results.mjs';
import { compilerOf } from './tarball.mjs';

const zeros = (length) => `new Float32Array(${length})`;
const instance = (entry) =>
  `import { createGemm } from '${entry}';\nconst wg = await createGemm();\n`;

/** Heading -> code before and after a fragment there: its definitions, and what must hold then. */
const parts = {
  'In a worker': [
    `${instance('wgemm/worker')} const [matrix, activations] = ` +
      `[${zeros('768 * 768')}.fill(1), ${zeros('128 * 768')}.fill(2)];`,
    'if (result.length !== 128 * 768 || result[5] !== 1536 || matrix.length !== 0) throw new ' +
      `Error('wrong'); wg.dispose();`,
  ],
  API: [
    `${instance('wgemm')} const [weights, inputs] = [${zeros('512 * 512')}.fill(1), ` +
      `${zeros('64 * 512')}.fill(2)];`,
    `if (out.data[5] !== 1024) throw new Error('wrong');`,
  ],
  Threads: [
    `import { createGemm } from 'wgemm';`,
    'if (y.length !== 256 * 256 || y.buffer instanceof SharedArrayBuffer || ' +
      `!(wg.info.threads >= 1)) throw new Error('wrong'); wg.dispose();`,
  ],
  'Kept weights': [
    `import { readFile, writeFile } from 'node:fs/promises';
     ${instance('wgemm')}
     const weights = { data: ${zeros('6')}.fill(1 + 2 ** -12), shape: [2, 3] };`,
    `const y = wg.matmul({ data: ${zeros('2')}.fill(1), shape: [1, 2] }, again);
     if (again.dtype !== 'bfloat16' || y.data.length !== 3 || y.data[2] !== 2)
       throw new Error('wrong');`,
  ],
  Quantized: [
    `import { createGemm, quantize, quantizeBias } from 'wgemm';
     const wg = await createGemm();
     const input = { data: Float32Array.of(1, 0.5, 0, 0.25, 1, 0.75), shape: [2, 3] };
     const weights = { data: Float32Array.of(0.1, -2, 0.3, 4, -0.5, 6), shape: [3, 2] };
     const bias = { data: Float32Array.of(1, -1), shape: [2] };`,
    `const wanted = [1.25, -1, 0.95, 7.01];
     if (y.data.some((value, i) => !(Math.abs(value - (wanted[i] ?? NaN)) < 0.05)))
       throw new Error('wrong');`,
  ],
  'Stacks of matrices': [
    `${instance('wgemm')} const [heads, tokens, width] = [2, 3, 4];
     const tensor = (fill = 0) => ({
       data: ${zeros('tokens * heads * width')}.fill(fill),
       shape: [tokens, heads * width],
       dtype: undefined,
     });
     const [q, k, v, context] = [tensor(1), tensor(2), tensor(3), tensor()];
     const softmax = (x) => ({ ...x, data: x.data.map(() => 1 / tokens) });
     const packedWeights = wg.pack(
       { data: ${zeros('64')}.fill(1), shape: [8, 8] },
       { op: 'matmul' },
     );
     const bias = 0.5;`,
    `if (scores.data[0] !== 4 || Math.abs(y.data[0] - 24.5) > 1e-4) throw new Error('wrong');`,
  ],
};

const hasFile =
  (...names) =>
  ({ file }) =>
    names.includes(file);
const isUnder =
  (heading) =>
  ({ headings }) =>
    headings.includes(heading);
const isProgram = ({ language, code, file }) =>
  language === 'js' && !file && code.includes("from 'wgemm");
const isPart = ({ language, code, file }) =>
  language === 'js' && !file && !code.includes("from 'wgemm");

/** The test that runs a block: the first that matches. */
const runBy = [
  [hasFile('app.js', 'index.html', 'vite.config.js'), 'tests/package/bundlers.mjs'],
  [
    ({ language, headings }) => language === 'sh' && headings.includes('In a page'),
    'tests/package/bundlers.mjs',
  ],
  [({ language }) => language === 'http', 'tests/package/bundlers.mjs'],
  [hasFile('worker.js'), 'tests/package/runtimes.mjs'],
  [({ code }) => code === 'npm install wgemm\n', 'tests/package/packed.mjs'],
  [isUnder('In C++'), 'scripts/native-package.mjs'],
  [({ language, headings }) => language === 'sh' && headings.includes('From a clone'), '.ci/run'],
  [({ language }) => language === 'js' || language === 'text', 'tests/package/blocks.mjs'],
];

/**
 * Compiles the blocks as TypeScript, with the defaults of the newest compiler. Programs are strict;
 * parts, and what a server loads, have functions in which JavaScript names no types.
 */
async function checkTypes(blocks, project) {
  const tsc = compilerOf('7.0');
  const isForServer = hasFile('worker.js');
  const programs = blocks.filter((block) => isProgram(block) || hasFile('app.js')(block));
  const looser = blocks.filter((block) => isPart(block) || isForServer(block));
  if (programs.length === 0 || looser.length === 0) refuse('README.md has no blocks to compile');
  for (const [name, group, more] of [
    ['strict', programs, []],
    ['looser', looser, ['--noImplicitAny', 'false']],
  ]) {
    const folder = join(project, name);
    mkdirSync(folder);
    await runChild(process.execPath, [tsc, '--init'], { cwd: folder });
    writeFileSync(
      join(folder, 'wasm.d.ts'),
      `declare module '*.wasm' { const module: object; export default module; }\n`,
    );
    for (const { headings, code, file, line } of group) {
      const [before] = (isPart({ language: 'js', code, file }) && parts[headings.at(-1)]) || [''];
      writeFileSync(join(folder, `line${line}.ts`), `${before}\n${code}`);
    }
    const options = ['--types', 'node', '--outDir', 'emitted', ...more];
    await runChild(process.execPath, [tsc, '-p', '.', ...options], { cwd: folder });
  }
  return `${programs.length} programs, ${looser.length} others`;
}

export async function testBlocks(results) {
  const blocks = readBlocks();
  await results.test('README', 'every block', 'run by a test', () => {
    for (const block of blocks) {
      const [, file] = runBy.find(([fits]) => fits(block)) ?? [];
      if (!file) refuse(`no test runs the block of line ${block.line}`);
      if (!existsSync(join(root, file)))
        refuse(`${file} must run the block of line ${block.line}, but it does not exist`);
    }
    return `${blocks.length} blocks`;
  });
  const project = await makeProject('blocks');
  await results.test('README', 'TypeScript 7', 'compiles', () => checkTypes(blocks, project));
  const say = async (code) => {
    writeFileSync(join(project, 'block.mjs'), code);
    return await runChild(process.execPath, ['block.mjs'], { cwd: project });
  };
  for (const [i, block] of blocks.entries()) {
    if (!isProgram(block)) continue;
    await results.test('README', block.headings.at(-1), 'prints what it says', async () => {
      const printed = blocks[i + 1];
      if (printed?.language !== 'text')
        refuse(`the program of line ${block.line} is not followed by what it prints`);
      const said = await say(block.code);
      if (said.trim() !== printed.code.trim())
        refuse(`the program of line ${block.line} prints\n${said}`);
    });
  }
  for (const block of blocks.filter(isPart)) {
    const heading = block.headings.at(-1);
    await results.test('README', heading, 'runs in Node', async () => {
      const [before, after] =
        parts[heading] ??
        refuse(
          `this test does not know what the part of a program in line ${block.line} takes as given`,
        );
      await say(`${before}\n${block.code}\n${after}\n`);
    });
  }
}
