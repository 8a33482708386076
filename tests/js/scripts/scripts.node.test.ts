/** The commands of a clone, on a copy of the scripts or as they are. */
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const scratch: string[] = [];

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'wgemm-scripts-'));
  scratch.push(folder);
  return folder;
}

afterAll(async () => {
  for (const folder of scratch) await rm(folder, { recursive: true, force: true });
});

interface Ended {
  code: number | null;
  said: string;
}

/** Runs a program to its end, and ends it if that takes more than 20 s. */
function start(
  program: string,
  cwd: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const options = {
      cwd,
      env: { ...process.env, ...env },
      timeout: 20_000,
      killSignal: 'SIGKILL',
    } as const;
    const child = spawn(program, args, options);
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (said += text));
    }
    child.on('error', reject).on('close', (code) => {
      resolve({ code, said });
    });
  });
}

const run = start.bind(undefined, process.execPath);

describe('clean', () => {
  const removed = [
    'build',
    'dist',
    'coverage',
    'node_modules',
    'tests/package/node_modules',
    'tests/package/runtimes/node_modules',
  ];
  let fetched: string[];
  let clone: string;
  let cache: string;

  async function add(folder: string, names: string[]): Promise<void> {
    for (const name of names) {
      await mkdir(join(folder, name), { recursive: true });
      await writeFile(join(folder, name, 'file'), 'x');
    }
  }

  /** What scripts name in the cache. */
  async function namesInCache(): Promise<string[]> {
    const names = (await readdir(join(root, 'scripts'))).map((name) => join(root, 'scripts', name));
    const texts = await Promise.all(names.map((name) => readFile(name, 'utf8')));
    const found = texts.join('').matchAll(/join\(cache, '([\w.-]+)'\)|^ +folder: '([\w.-]+)'/gm);
    return Array.from(found, ([, alone, ofSources]) => alone ?? ofSources!).filter(
      (name) => name !== 'lock',
    );
  }

  beforeEach(async () => {
    const names = await namesInCache();
    expect(names).toEqual(
      expect.arrayContaining(['emscripten-3.1.69-1', 'xnnpack-4ea82e5', 'apt']),
    );
    fetched = [...names, 'xnnpack-4ea82e5.partial'];
    clone = await newFolder();
    cache = await newFolder();
    await cp(join(root, 'scripts'), join(clone, 'scripts'), { recursive: true });
    await writeFile(join(clone, 'package.json'), '{ "type": "module" }');
    await add(clone, removed);
    await add(cache, [...fetched, 'of-another']);
  });

  const clean = (...args: string[]) =>
    run(clone, ['scripts/clean.mjs', ...args], { WGEMM_CACHE: cache });

  it('removes what is in the clone, and says that it keeps what clones share', async () => {
    const { code, said } = await clean();
    for (const name of removed) expect(said).toContain(`clean: removed ${join(clone, name)} (`);
    expect(said).toMatch(
      /clean: kept .* MB\), which all clones of this user share; `npm run clean -- --cache` removes it too\n/,
    );
    expect(code).toBe(0);
    expect((await readdir(clone)).sort()).toEqual(['package.json', 'scripts', 'tests']);
    expect((await readdir(cache)).sort()).toEqual([...fetched, 'of-another'].sort());
  });

  it('removes with --cache all that set-up fetched, and nothing else', async () => {
    const { code, said } = await clean('--cache');
    for (const name of fetched) expect(said).toContain(`clean: removed ${join(cache, name)} (`);
    expect(code).toBe(0);
    expect(await readdir(cache)).toEqual(['of-another']);
    expect((await clean('--cache')).said).toBe('clean: nothing to remove\n');
  });

  it('refuses what it does not know', async () => {
    expect(await clean('--all')).toEqual({
      code: 1,
      said: 'wgemm: clean: --all is not known; it takes --cache.\n',
    });
    expect(await readdir(clone)).toContain('build');
  });

  it('knows every folder that Git ignores', async () => {
    const ignored = (await readFile(join(root, '.gitignore'), 'utf8')).split('\n').filter(Boolean);
    expect(ignored.map((line) => line.replaceAll('/', '')).sort()).toEqual([
      'build',
      'coverage',
      'dist',
      'docs.vitepress.temp',
      'docsreference',
      'node_modules',
    ]);
  });
});

describe.skipIf(process.platform === 'win32')('cached-link', () => {
  let folder: string;

  /** A linker that copies in.o to its output, and counts its runs. */
  const linker = `#!/bin/sh
echo run >>runs
for last; do :; done
[ -e refuses ] && exit 7
cp in.o "$last" && cp in.o "\${last%.mjs}.wasm"
`;

  beforeEach(async () => {
    folder = await newFolder();
    await writeFile(join(folder, 'em++'), linker, { mode: 0o755 });
    await writeFile(join(folder, 'emscripten-version.txt'), '"1.2.3"');
    await writeFile(join(folder, 'in.o'), 'first');
  });

  const link = (words: string[], env: Record<string, string> = {}) =>
    run(
      folder,
      [
        join(root, 'scripts', 'cached-link.mjs'),
        ...[join(folder, 'em++'), ...words, 'in.o', '-o', 'out.mjs'],
      ],
      { WGEMM_LINK_CACHE: join(folder, 'kept'), ...env },
    );
  const runs = async () => (await readFile(join(folder, 'runs'), 'utf8')).split('\n').length - 1;
  const made = async (name: string) => readFile(join(folder, name), 'utf8');

  it('links again only what has changed', async () => {
    await link(['-O3']);
    await rm(join(folder, 'out.wasm'));
    expect(await link(['-O3'])).toEqual({ code: 0, said: '' });
    expect([await runs(), await made('out.mjs'), await made('out.wasm')]).toEqual([
      ...[1, 'first', 'first'],
    ]);
    await writeFile(join(folder, 'in.o'), 'second');
    await link(['-O3']);
    expect([await runs(), await made('out.wasm')]).toEqual([2, 'second']);
    await link(['-O2']);
    await writeFile(join(folder, 'emscripten-version.txt'), '"1.2.4"');
    await link(['-O2']);
    expect(await runs()).toBe(4);
    await writeFile(join(folder, 'in.o'), 'first');
    await link(['-O2']);
    expect([await runs(), await made('out.wasm')]).toEqual([5, 'first']);
  });

  it('keeps nothing of a link that fails, and nothing without a folder', async () => {
    await writeFile(join(folder, 'refuses'), '');
    const twice = async (words: string[], env = {}) => [
      (await link(words, env)).code,
      (await link(words, env)).code,
    ];
    expect(await twice([])).toEqual([7, 7]);
    await rm(join(folder, 'refuses'));
    expect(await twice([], { WGEMM_LINK_CACHE: '' })).toEqual([0, 0]);
    expect(await twice(['@in.o'])).toEqual([0, 0]);
    expect(await runs()).toBe(6);
    expect(await readdir(folder)).not.toContain('kept');
  });
});

describe.skipIf(process.platform !== 'linux')('packages of npm', () => {
  it('are kept for later clones with the same lock', async () => {
    const [kept, bin, folder] = [await newFolder(), await newFolder(), await newFolder()];
    const npm = `#!/bin/sh
echo run >>runs && mkdir -p node_modules && cp package-lock.json node_modules/.package-lock.json`;
    await writeFile(join(bin, 'npm'), npm, { mode: 0o755 });
    const setup = pathToFileURL(join(root, 'scripts', 'setup.mjs')).href;
    const program = `await (await import('${setup}')).installFrom('${folder}');`;
    const note = join(folder, 'node_modules', '.package-lock.json');

    await writeFile(join(folder, 'package.json'), '{}');

    /** Installs by a lock. Returns how often npm has run. */
    const install = async (version: string) => {
      const lock = JSON.stringify({ packages: { 'node_modules/it': { version } } });
      await writeFile(join(folder, 'package-lock.json'), lock);
      const { code, said } = await run(folder, ['--input-type=module', '--eval', program], {
        PATH: [bin, process.env['PATH']].join(delimiter),
        WGEMM_PACKAGES_CACHE: kept,
      });
      expect(code, said).toBe(0);
      expect(await readFile(note, 'utf8')).toBe(lock);
      return (await readFile(join(folder, 'runs'), 'utf8')).split('\n').length - 1;
    };
    expect(await install('1.0.0')).toBe(1);
    // npm writes into its note, and must not change what is kept.
    for (let i = 0; i < 2; ++i) {
      await writeFile(note, 'changed');
      expect(await install('1.0.0')).toBe(1);
    }
    await rm(join(folder, 'node_modules'), { recursive: true });
    expect(await install('1.0.0')).toBe(1);
    expect(await install('2.0.0')).toBe(2);
    expect(await install('1.0.0')).toBe(3);
  });
});

interface Job {
  name?: string;
  uses?: string;
  permissions?: Record<string, string>;
  strategy?: { matrix: Record<string, string[]> };
  steps?: { run?: string; uses?: string }[];
}

describe('CI', async () => {
  const script = new URL('../../../scripts/ci.mjs', import.meta.url);
  const { steps, elsewhere } = (await import(script.href)) as Record<
    'steps' | 'elsewhere',
    Record<string, string[][]>
  >;
  const workflows = Object.fromEntries(
    await Promise.all(
      ['ci', 'release'].map(async (name) => {
        const text = await readFile(join(root, '.github', 'workflows', `${name}.yml`), 'utf8');
        return [name, parse(text) as { permissions: unknown; jobs: Record<string, Job> }] as const;
      }),
    ),
  );
  const jobs = Object.values(workflows).flatMap((workflow) => Object.entries(workflow.jobs));

  /** The steps of scripts/ci.mjs that a job runs. */
  const stepsOf = ({ steps: own = [], strategy }: Job) =>
    own
      .flatMap(({ run: command = '' }) => /^node scripts\/ci\.mjs (.+)$/.exec(command)?.[1] ?? [])
      .flatMap((words) =>
        words === '${{ matrix.step }}' ? strategy!.matrix.step! : words.split(' '),
      );

  it('has each step in a job, and no other step', () => {
    expect(stepsOf(workflows.ci!.jobs.linux!).sort()).toEqual(Object.keys(steps).sort());
    const found = new Set(jobs.flatMap(([, job]) => stepsOf(job)));
    expect(found).toEqual(new Set(Object.keys({ ...steps, ...elsewhere })));
  });

  it('runs nothing else that could drift', () => {
    for (const [name, job] of Object.entries(workflows.ci!.jobs))
      expect(stepsOf(job), name).not.toEqual([]);
    const scripts = Object.values({ ...steps, ...elsewhere }).flat();
    for (const words of scripts) expect(['npm', 'node']).toContain(words[0]);
  });

  it('knows the scripts of package.json and the parts of npm test', async () => {
    const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const { parts } = (await import(
      new URL('../../../scripts/test.mjs', import.meta.url).href
    )) as {
      parts: Record<string, unknown>;
    };
    const commands = Object.values({ ...steps, ...elsewhere }).flat();
    for (const [program, , script] of commands)
      if (program === 'npm') expect(Object.keys(scripts)).toContain(script);
    const tested = commands.flatMap(([, , script, ...words]) =>
      script === 'test' ? words[words.indexOf('--only') + 1] : [],
    );
    expect(tested).toEqual(Object.keys(parts));
  });

  it('pins actions by their commit, and may write only where it releases', () => {
    for (const [, { steps: own = [], uses = '' }] of jobs)
      for (const action of [uses, ...own.map((step) => step.uses ?? '')].filter(Boolean))
        expect(action).toMatch(/^\.\/|@[0-9a-f]{40}$/);
    for (const workflow of Object.values(workflows))
      expect(workflow.permissions).toEqual({ contents: 'read' });
    const rights = jobs.flatMap(([name, { permissions }]) =>
      permissions ? [[name, permissions]] : [],
    );
    expect(rights).toEqual([
      ['publish', { 'id-token': 'write' }],
      ['attach', { contents: 'write' }],
    ]);
  });

  it('refuses a step that it does not know', async () => {
    const { code, said } = await run(root, ['scripts/ci.mjs', 'tests']);
    expect(said).toMatch(/^wgemm: ci: there is no step 'tests'; there are digits, native, /);
    expect(code).toBe(1);
  });
});

describe('bench:start without Chromium', () => {
  const withArguments = (...args: string[]) => ['tests/bench/start.mjs', '--samples', '1', ...args];

  it('ends at once, if the variable names what is not there', { timeout: 30_000 }, async () => {
    const { code, said } = await run(root, withArguments(), {
      WGEMM_CHROMIUM: '/nothing/chromium',
    });
    expect(said).toBe(
      'wgemm: WGEMM_CHROMIUM is /nothing/chromium, which is not here: correct it, or unset it.\n',
    );
    expect(code).toBe(1);
  });

  it.runIf(process.platform === 'linux')(
    'ends at once, if none is on PATH',
    { timeout: 30_000 },
    async () => {
      const { code, said } = await run(root, withArguments(), {
        PATH: '/nothing',
        WGEMM_CHROMIUM: '',
      });
      expect(said).toBe(
        'wgemm: Chromium is not here: install it, or name its program in WGEMM_CHROMIUM.\n',
      );
      expect(code).toBe(1);
    },
  );

  it('ends at once, if it is asked for a place that there is not', async () => {
    const { code, said } = await run(root, withArguments('--only', 'node,opera'));
    expect(said).toBe('wgemm: --only is node,opera; there are node and chromium.\n');
    expect(code).toBe(1);
  });
});

// With a CMake that builds nothing, but tells what it is asked for.
describe.runIf(process.platform !== 'win32')('digits', () => {
  const cmake = `#!/bin/sh
echo "$*" >> calls
if [ "$1" = --preset ]; then
  for word; do case $word in -D*) echo "\${word#-D}" | sed s/=/:STRING=/ ;; esac; done > build/$2/CMakeCache.txt
  touch build/$2/build.ninja
fi
`;
  const example = `import { createGemm } from 'wgemm';
const wg = await createGemm();
console.log('the build ' + wg.info.build);
wg.dispose();
`;
  let clone: string;

  beforeEach(async () => {
    clone = await newFolder();
    const built = join(clone, 'build', 'wasm-relaxed');
    await mkdir(built, { recursive: true });
    await mkdir(join(clone, 'bin'));
    await mkdir(join(clone, 'examples', 'digits'), { recursive: true });
    for (const name of ['scripts', 'js', 'package.json', 'package-lock.json']) {
      await cp(join(root, name), join(clone, name), { recursive: true });
    }
    await symlink(join(root, 'node_modules'), join(clone, 'node_modules'));
    for (const file of ['wgemm-relaxed.mjs', 'wgemm-relaxed.wasm'])
      await cp(join(root, 'build', 'wasm-relaxed', file), join(built, file));
    await writeFile(join(clone, 'CMakePresets.json'), '{}');
    await writeFile(join(clone, 'bin', 'cmake'), cmake, { mode: 0o755 });
    await writeFile(join(clone, 'examples', 'digits', 'digits.mjs'), example);
  });

  /** What it said, and what CMake was asked for. */
  async function digits(): Promise<Ended & { calls: string[] }> {
    await rm(join(clone, 'calls'), { force: true });
    const path = [join(clone, 'bin'), process.env.PATH].join(delimiter);
    const ended = await start('npm', clone, ['run', '--silent', 'digits'], { PATH: path });
    const calls = await readFile(join(clone, 'calls'), 'utf8');
    return { ...ended, calls: calls.trimEnd().split('\n') };
  }

  const configure = /^--preset wasm-relaxed -D/;
  const build = /^--build --preset wasm-relaxed --target wgemm_wasm /;

  it(
    'makes one build and no dist/, and nothing again if nothing has changed',
    { timeout: 60_000 },
    async () => {
      const first = await digits();
      expect(first.said).toMatch(/^build: build.example-library\nthe build relaxed\n/m);
      expect(first).toMatchObject({
        code: 0,
        calls: [expect.stringMatching(configure), expect.stringMatching(build)],
      });
      expect(await readdir(clone)).not.toContain('dist');

      const second = await digits();
      expect(second.said).not.toContain('example-library');
      expect(second).toMatchObject({ code: 0, calls: [expect.stringMatching(build)] });

      await writeFile(join(clone, 'js', 'base', 'errors.ts'), '// changed\n', { flag: 'a' });
      expect((await digits()).said).toContain('build: build/example-library\n');
      await rm(join(clone, 'build', 'example-library', 'wgemm-relaxed.wasm'));
      expect((await digits()).said).toContain('build: build/example-library\n');
      expect((await digits()).said).not.toContain('example-library');
    },
  );
});
