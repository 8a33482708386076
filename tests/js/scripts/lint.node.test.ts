/** The checks of `npm run lint` that are the project's own, on texts that break them. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const scripts = [
  ...['banned-words', 'lint-language', 'lint-imports', 'lint-includes', 'lint-lab', 'lint-length'],
  'run',
];
let clone: string;

beforeEach(async () => {
  clone = await mkdtemp(join(tmpdir(), 'wgemm-lint-'));
  for (const name of scripts) {
    const script = join('scripts', `${name}.mjs`);
    await cp(join(root, script), join(clone, script));
  }
  await writeFile(join(clone, 'package.json'), '{ "type": "module" }');
  await add('src/base/types.h', '#include "wgemm.h"\n');
});

afterEach(() => rm(clone, { recursive: true, force: true }));

async function add(name: string, text: string): Promise<void> {
  await mkdir(dirname(join(clone, name)), { recursive: true });
  await writeFile(join(clone, name), text);
}

/** What a check says, line by line; nothing if it finds nothing. */
function lint(check: string): Promise<string[]> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join('scripts', check)], { cwd: clone }, (error, _, said) => {
      expect(error !== null).toBe(said !== '');
      resolve(said.split('\n').filter((line) => line !== ''));
    });
  });
}

describe('lint-language', () => {
  interface Rule {
    find: RegExp;
    say: string;
    such: string;
    in?: RegExp;
  }
  let rules: Rule[];

  beforeEach(async () => {
    const table = pathToFileURL(join(root, 'scripts', 'banned-words.mjs')).href;
    ({ bannedWords: rules } = (await import(table)) as { bannedWords: Rule[] });
  });

  it('finds the example of each rule, and says what to write instead', async () => {
    for (const { such, in: where } of rules) {
      const name = where?.test('src/plan.cc') === false ? 'js/call.ts' : 'src/plan.cc';
      await add(name, `\n${such}\n`);
      const said = await lint('lint-language.mjs');
      expect(said.at(-1)).toMatch(/^wgemm: Use the words above/);
      expect(said[0]).toMatch(`${name}:2: "`);
      await rm(join(clone, name));
    }
    expect(await lint('lint-language.mjs')).toEqual([]);
  });

  it('finds them in names, in two lines of a comment, and in documents', async () => {
    const { such, find, say } = rules[0]!;
    const [first, second] = find.exec(such)![0].toLowerCase().split(' ') as [string, string];
    const upper = (word: string) => word.replace(/^./, (letter) => letter.toUpperCase());
    await add('js/call.ts', `const ${first}${upper(second)} = 1;\n`);
    await add(
      'src/plan.cc',
      `  // all of ${first}\n  // ${second} is read\nint ${first}_${second};`,
    );
    await add('README.md', `\nA ${first}-${second} and ${first} ${second}.\n`);
    expect((await lint('lint-language.mjs')).slice(0, -1)).toEqual([
      `src/plan.cc:1: "${first} ${second}": say "${say}"`,
      `src/plan.cc:3: "${first} ${second}": say "${say}"`,
      `js/call.ts:1: "${first} ${upper(second)}": say "${say}"`,
      `README.md:2: "${first} ${second}": say "${say}"`,
    ]);
  });

  it('finds them under the newest heading of the changelog alone', async () => {
    const { such } = rules[0]!;
    await add('CHANGELOG.md', `# Changelog\n\n## 2\n\n${such}\n\n## 1\n\n${such}\n`);
    expect(await lint('lint-language.mjs')).toEqual([
      expect.stringMatching(/^CHANGELOG.md:5: /),
      expect.stringMatching(/^wgemm: .* in 1 places\.$/),
    ]);
  });

  it('finds lines of more than 100 columns', async () => {
    await add('js/call.ts', `${'é'.repeat(100)}\n${'x'.repeat(101)}\n`);
    await add('README.md', 'x'.repeat(101));
    expect(await lint('lint-language.mjs')).toEqual([
      'js/call.ts:2: 101 columns of at most 100',
      expect.stringMatching(/^wgemm: .* in 1 places\.$/),
    ]);
  });
});

describe('lint-lab', () => {
  const line = (...cells: string[]) => `${cells.join('\t')}\n`;
  const head = line(
    ...['date', 'commit', 'machine', 'area', 'shape', 'before', 'after', 'unit', 'kept', 'note'],
  );
  const row = line(
    ...['2026-11-24', 'abcdef0', 'Zen 4', 'GEMV', '', '2', '1', 'ms', 'yes', 'Panels far apart.'],
  );

  it('accepts rows of the form', async () => {
    await add('docs/lab/rows.tsv', head + row);
    expect(await lint('lint-lab.mjs')).toEqual([]);
  });

  it.each([
    ['2026-11-24', '2026-12', "date is '2026-12'"],
    ['abcdef0', 'main', "commit is 'main'"],
    ['Zen 4', '', "machine is ''"],
    ['GEMV', 'speed', "area is 'speed'"],
    ['yes', 'maybe', "kept is 'maybe'"],
    ['Panels far apart.', '', "note is ''"],
    ['ms\t', '', '9 columns instead of 10'],
  ])('refuses %j instead of %j', async (right, wrong, said) => {
    await add('docs/lab/rows.tsv', head + row + row.replace(right, wrong));
    const [first] = await lint('lint-lab.mjs');
    expect(first?.replace(/; it must be .+$/, '')).toBe(`docs/lab/rows.tsv:3: ${said}`);
  });

  it('refuses other columns', async () => {
    await add('docs/lab/rows.tsv', row);
    expect((await lint('lint-lab.mjs'))[0]).toMatch(/^docs\/lab\/rows.tsv:1: the columns must/);
  });
});

describe('lint-includes', () => {
  it('finds an include that points up, and a file that is in no folder', async () => {
    await add('src/plan/plan.h', '#include <vector>\n#include "base/types.h"\n');
    await add('src/ops/gemm.cc', '#include "ops/ops.h"\n#include "wgemm.h"\n');
    await add('src/ops/ops.h', '#include "../base/types.h"\n');
    await add('src/include/wgemm.h', '');
    expect(await lint('lint-includes.mjs')).toEqual([]);

    await add('src/base/types.h', '#include "wgemm.h"\n\n#include "plan/plan.h"\n');
    await add('src/include/wgemm.h', '#include "../ops/ops.h"\n');
    await add('src/run.cc', '');
    expect((await lint('lint-includes.mjs')).sort()).toEqual([
      'src/base/types.h:3: base must not include plan (plan.h)',
      'src/include/wgemm.h:1: include must not include ops (ops.h)',
      'src/run.cc: no folder of the table in scripts/lint-includes.mjs',
      expect.stringMatching(/^wgemm: Includes in src/),
    ]);
  });
});

describe('lint-imports', () => {
  it('finds an import that points up, an entry that is imported, and a cycle', async () => {
    await add('js/base/errors.ts', '');
    await add('js/call/run.ts', "import { a } from '../base/errors.js';\n");
    await add('js/index.ts', "export { run } from './call/run.js';\n");
    await add('js/inline.ts', "export * from './index.js';\n");
    expect(await lint('lint-imports.mjs')).toEqual([]);

    await add('js/base/errors.ts', "\nexport type { b } from '../call/run.js';\n");
    await add('js/call/call.ts', "type A = import('../index.js').A;\n");
    await add('js/misc/run.ts', '');
    expect((await lint('lint-imports.mjs')).sort()).toEqual([
      'js/base/errors.ts: a cycle of imports: base/errors.ts, call/run.ts, base/errors.ts',
      'js/base/errors.ts:2: base must not import call (call/run.ts)',
      'js/call/call.ts:1: no file imports an entry (index.ts)',
      'js/misc/run.ts: no layer of the list in scripts/lint-imports.mjs',
      expect.stringMatching(/^wgemm: Imports in js/),
    ]);
  });
});

describe('lint-length', () => {
  /** A function whose body has this many lines of code, and other lines that do not count. */
  const withLines = (head: string, count: number) =>
    `${head} {\n  // Why.\n\n${'  work();  // a { brace\n'.repeat(count)}}\n`;
  const inClass = (body: string) => `namespace wgemm {\nclass C {\n${body}};\n}\n`;
  const signature = 'int\nf(int a,\n  int b)';

  it('finds a long function, and where it begins', async () => {
    const text = `#define X {\n${withLines(signature, 60)}${inClass(withLines('void g()', 60))}`;
    await add('src/plan/plan.cc', text);
    expect(await lint('lint-length.mjs')).toEqual([]);

    await add('src/plan/plan.cc', withLines(signature, 61));
    await add(
      'src/plan/plan.h',
      inClass(withLines("char g() const { return '}'; }\nvoid h()", 62)),
    );
    expect(await lint('lint-length.mjs')).toEqual([
      'src/plan/plan.cc:3: 61 lines; a function has at most 60',
      'src/plan/plan.h:4: 62 lines; a function has at most 60',
      expect.stringMatching(/^wgemm: Split what is too long/),
    ]);
  });

  it('finds a long file, and allows long kernels, tables and the manual', async () => {
    await add('src/kernels/f32.cc', withLines(signature, 70));
    await add('src/plan/rules.cc', withLines('const Rule kRules[] =', 70));
    await add('src/include/wgemm.h', '//\n'.repeat(501));
    await add('src/plan/plan.h', '//\n'.repeat(500));
    expect(await lint('lint-length.mjs')).toEqual([]);

    await add('src/kernels/f32.cc', '//\n'.repeat(501));
    expect((await lint('lint-length.mjs'))[0]).toBe(
      'src/kernels/f32.cc: 501 lines; a file has at most 500',
    );
  });
});
