/** What `npm run release -- --check` says before it builds, and what it finds in a build. */
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const root = resolve(fileURLToPath(new URL('../../..', import.meta.url)));

describe('before it builds', () => {
  let clone: string;

  const git = (...args: string[]) => {
    const own = ['-c', 'user.name=wgemm', '-c', 'user.email=wgemm', '-c', 'commit.gpgsign=false'];
    const { status, stderr } = spawnSync('git', [...own, ...args], { cwd: clone });
    expect(status, String(stderr)).toBe(0);
  };

  const commit = () => {
    git('add', '--all');
    git('commit', '--quiet', '--message', 'all');
  };

  /** Changes a file of the clone. */
  const change = (name: string, from: RegExp, to: string) => {
    const text = readFileSync(join(clone, name), 'utf8');
    expect(text).toMatch(from);
    writeFileSync(join(clone, name), text.replace(from, to));
  };

  const release = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(clone, 'scripts', 'release.mjs'), ...args],
      { encoding: 'utf8' },
    );
    expect(status).toBe(1); // it never gets as far as a build
    return stdout + stderr;
  };

  beforeEach(() => {
    clone = mkdtempSync(join(tmpdir(), 'wgemm-release-'));
    for (const name of [
      ...['scripts', 'js', 'cmake', 'docs/guide', 'src/include', 'examples/native'],
      ...['tests/package/package.json', 'tests/arm64/node/package.json'],
      ...['package.json', 'package-lock.json', 'CMakeLists.txt', 'NOTICE'],
      ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
    ])
      cpSync(join(root, name), join(clone, name), { recursive: true });
    git('init', '--quiet');
    commit();
  });

  afterEach(() => {
    rmSync(clone, { recursive: true, force: true });
  });

  it('takes --check', () => {
    expect(release()).toBe(
      'wgemm: release: it publishes nothing; it takes --set VERSION, or --check, and with that ' +
        '--against PATH.\n',
    );
    expect(release('--check', '--against', 'nothing')).toBe(
      'wgemm: release: --against is nothing, which is not here; it takes a folder or a .tgz.\n',
    );
  });

  it('names each file that differs from the commit, or is new', () => {
    appendFileSync(join(clone, 'src/include/wgemm.h'), ' ');
    appendFileSync(join(clone, 'js/new.ts'), '');
    expect(release('--check')).toBe(
      'wgemm: release: src/include/wgemm.h is not as it was committed: commit it, or restore it.\n' +
        '  js/new.ts is not as it was committed: commit it, or restore it.\n',
    );
  });

  it('names the places of a version that differs', () => {
    change('js/instance/start-core.ts', /(?<=export const version = ').*(?=')/, '7.1.0');
    commit();
    expect(release('--check')).toMatch(
      /The version of wgemm must be the same everywhere; it is .+ in package.json, .*7.1.0 in js.instance.start-core.ts/,
    );
  });

  it('sets a version everywhere', () => {
    const set = (version: string) => {
      const script = join(clone, 'scripts', 'release.mjs');
      const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--set', version], {
        encoding: 'utf8',
      });
      return { status, said: stdout + stderr };
    };
    for (const version of ['7', '7.1', '7.1.0-rc.1', 'v7.1.0', '07.1.0', ''])
      expect(set(version).said).toBe(
        `wgemm: release: --set is '${version}'; it must be three numbers such as 0.2.0.\n`,
      );
    const { version: now } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as {
      version: string;
    };
    for (const version of [now, '0.0.99'])
      expect(set(version).said).toContain(`--set is ${version}; it must come after ${now}.`);

    expect(set('7.1.0')).toMatchObject({ status: 0 });
    const changelog = () => readFileSync(join(clone, 'CHANGELOG.md'), 'utf8');
    expect(changelog()).toContain('\n## 7.1.0 (unreleased)\n');
    expect(changelog()).not.toContain(`\n## ${now} (`);
    change('CHANGELOG.md', /\(unreleased\)/, '(2026-01-01)');
    expect(set('7.10.0')).toMatchObject({ status: 0 });
    expect(changelog()).toContain('\n## 7.10.0 (unreleased)\n\n## 7.1.0 (2026-01-01)\n');
    expect(readFileSync(join(clone, 'examples/native/CMakeLists.txt'), 'utf8')).toContain(
      'find_package(wgemm 7.10 ',
    );
    commit();
    expect(release('--check')).toMatch(
      /versions: 7\.10\.0 in \d+ files[^]*CHANGELOG.md has no entry/,
    );
  });

  it('wants the version of the tag, and a changelog with a day', () => {
    git('tag', 'v7.1.0');
    expect(release('--check')).toMatch(/The commit has the tag v7.1.0, but its version is \d/);
    git('tag', '--delete', 'v7.1.0');
    const { version } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as {
      version: string;
    };
    change('CHANGELOG.md', /^## [\d.]+ \(.*\)$/m, `## ${version} (unreleased)`);
    git('add', '--all');
    git('commit', '--quiet', '--allow-empty', '--message', 'unreleased');
    git('tag', `v${version}`);
    expect(release('--check')).toContain(
      `CHANGELOG.md says '## ${version} (unreleased)', but the commit has a tag.`,
    );
    change('CHANGELOG.md', /\(unreleased\)/, '(2999-01-01)');
    commit();
    expect(release('--check')).toContain(`'## ${version} (2999-01-01)', which is after today.`);
  });
});

// A clone may have copies of binaries that were linked elsewhere.
const isBuilt = existsSync(join(root, 'build', 'wasm-relaxed-mt', 'wgemm_wasm.map'));

describe.runIf(isBuilt)('in a build', async () => {
  type Found = Map<{ name: string }, { files: Set<string> }>;
  const script = new URL('../../../scripts/components.mjs', import.meta.url);
  const { findComponents, wrongInNotice } = (await import(script.href)) as {
    findComponents: (checkout: string) => Found;
    wrongInNotice: (notice: string, dependencies: string, found: Found) => string[];
  };
  const notice = readFileSync(join(root, 'NOTICE'), 'utf8');
  const dependencies = readFileSync(join(root, 'cmake', 'Dependencies.cmake'), 'utf8');
  const found = isBuilt ? findComponents(root) : (new Map() as Found);

  it('NOTICE names what the files contain', () => {
    expect(wrongInNotice(notice, dependencies, found)).toEqual([]);
    const files = Object.fromEntries(
      [...found].map(([{ name }, component]) => [name, [...component.files].sort()]),
    );
    expect(files.pbf).toEqual(['onnx.js']);
    expect(files.XNNPACK).toContain('inline.js');
  });

  it.each([
    [/^ {4}pbf .*\n/m, '', /^NOTICE lacks pbf, which is in onnx.js\.$/],
    [/^ {4}pbf .*$/m, '$&\n    zlib    MIT', /^NOTICE names zlib, which .* does not know\.$/],
    [
      /^( {4}SIMDe .*)MIT$/m,
      '$1BSD 3-clause',
      /^NOTICE says that SIMDe is BSD-3-Clause; it is MIT/,
    ],
    [/^( {2}In all binaries)\n/m, '$1\n    SIMDe  MIT\n', /^NOTICE has SIMDe 'In all binaries'/],
    [/^ {4}SIMDe .*\n/m, '', /^NOTICE lacks simd-everywhere.simde, which .* builds\.$/],
    [/2019 Google/, '2018 Google', /^NOTICE lacks 'Copyright 2019 Google LLC'/],
  ])('a NOTICE without %s is refused', (from, to, sentence) => {
    expect(notice).toMatch(from);
    const wrong = wrongInNotice(notice.replace(from, to), dependencies, found);
    expect(wrong).toEqual([expect.stringMatching(sentence)]);
  });
});
